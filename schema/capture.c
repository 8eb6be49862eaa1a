/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures, their host facts, interned names and counters. */
#include "numareplay/text.h"
#include "schema/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a member of struct nrp_capture is stored. */
enum field_type {
	FIELD_TEXT,     /* char[]; NOT NULL */
	FIELD_TEXT_OPT, /* char[]; "" is NULL */
	FIELD_HASH,     /* uint8_t[32]; all zero is NULL */
	FIELD_U64,
	FIELD_I64,
	FIELD_I64_OPT, /* -1 is NULL */
	FIELD_INT,
	FIELD_BOOL,
};

struct field {
	const char *column;
	enum field_type type;
	size_t offset;
	size_t size;
};

#define MEMBER(type, column, member)                                                               \
	{                                                                                          \
#column, type, offsetof(struct nrp_capture, member),                               \
			sizeof(((struct nrp_capture *)0)->member)                                  \
	}
#define FACT(type, name) MEMBER(type, name, facts.name)

static const struct field fields[] = {
	MEMBER(FIELD_TEXT, name, name),
	MEMBER(FIELD_TEXT, source, source),
	MEMBER(FIELD_HASH, hash, hash),
	MEMBER(FIELD_U64, first_time, first_time),
	MEMBER(FIELD_U64, last_time, last_time),
	MEMBER(FIELD_U64, events, events),
	MEMBER(FIELD_U64, lost_events, lost_events),
	MEMBER(FIELD_I64, loss_gaps, loss_gaps),
	MEMBER(FIELD_I64_OPT, probe_misses, probe_misses),
	MEMBER(FIELD_U64, unjoined_events, unjoined_events),
	MEMBER(FIELD_U64, other_events, other_events),
	FACT(FIELD_TEXT_OPT, kernel),
	FACT(FIELD_TEXT_OPT, clock),
	FACT(FIELD_I64_OPT, hz),
	FACT(FIELD_I64_OPT, page_size),
	FACT(FIELD_I64_OPT, huge_pages),
	FACT(FIELD_I64_OPT, cpupid_shift),
	FACT(FIELD_I64_OPT, cpupid_bits),
	FACT(FIELD_I64_OPT, nid_shift),
	FACT(FIELD_I64_OPT, balancing),
	FACT(FIELD_I64_OPT, scan_delay_ms),
	FACT(FIELD_I64_OPT, scan_period_min_ms),
	FACT(FIELD_I64_OPT, scan_period_max_ms),
	FACT(FIELD_I64_OPT, scan_size_mb),
	FACT(FIELD_I64_OPT, moved_result),
	FACT(FIELD_INT, nr_cpus),
	FACT(FIELD_INT, nr_nodes),
	FACT(FIELD_BOOL, topology_inferred),
	FACT(FIELD_BOOL, has_ratelimit_event),
	FACT(FIELD_BOOL, has_prepare_step),
	FACT(FIELD_BOOL, has_thp_function),
	FACT(FIELD_BOOL, has_task_fault),
	FACT(FIELD_BOOL, has_fault_probe),
};
#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

enum capture_statement { CAPTURE_INSERT, CAPTURE_UPDATE, CAPTURE_SELECT };

/* The statement over all fields, so that no list of columns has to be kept in step by hand. */
static int prepare_capture(struct nrp_store *store, enum capture_statement what, sqlite3_stmt **ret,
			   struct nrp_error *err)
{
	sqlite3_str *sql = sqlite3_str_new(store->db);
	char *text;
	int r;

	sqlite3_str_appendall(sql, what == CAPTURE_INSERT   ? "INSERT INTO capture ("
				   : what == CAPTURE_UPDATE ? "UPDATE capture SET "
							    : "SELECT ");
	for (size_t i = 0; i < NR_FIELDS; i++)
		sqlite3_str_appendf(sql, "%s%s%s", i ? ", " : "", fields[i].column,
				    what == CAPTURE_UPDATE ? " = ?" : "");
	if (what == CAPTURE_INSERT) {
		for (size_t i = 0; i < NR_FIELDS; i++)
			sqlite3_str_appendall(sql, i ? ", ?" : ") VALUES (?");
		sqlite3_str_appendchar(sql, 1, ')');
	} else {
		sqlite3_str_appendall(sql, what == CAPTURE_SELECT ? " FROM capture WHERE id = ?"
								  : " WHERE id = ?");
	}
	text = sqlite3_str_finish(sql);
	if (!text)
		return nrp_fail_nomem(err);
	r = nrp_db_prepare(store->db, store->path, text, ret, err);
	sqlite3_free(text);
	return r;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

/* A failed bind leaves the parameter NULL and shows up as the error of the step. */
static int bind_field(sqlite3_stmt *stmt, int index, const struct field *field,
		      const struct nrp_capture *capture)
{
	const void *p = (const char *)capture + field->offset;
	int64_t value;

	switch (field->type) {
	case FIELD_TEXT:
	case FIELD_TEXT_OPT:
		if (field->type == FIELD_TEXT_OPT && !*(const char *)p)
			return sqlite3_bind_null(stmt, index);
		return sqlite3_bind_text(stmt, index, p, (int)strnlen(p, field->size),
					 SQLITE_STATIC);
	case FIELD_HASH:
		if (is_zero(p, NRP_HASH_SIZE))
			return sqlite3_bind_null(stmt, index);
		return sqlite3_bind_blob(stmt, index, p, NRP_HASH_SIZE, SQLITE_STATIC);
	case FIELD_INT:
		return sqlite3_bind_int(stmt, index, *(const int *)p);
	case FIELD_BOOL:
		return sqlite3_bind_int(stmt, index, *(const bool *)p);
	case FIELD_U64:
	case FIELD_I64:
	case FIELD_I64_OPT:
		break;
	}
	memcpy(&value, p, sizeof(value));
	if (field->type == FIELD_I64_OPT && value == -1)
		return sqlite3_bind_null(stmt, index);
	return sqlite3_bind_int64(stmt, index, value);
}

static void load_field(sqlite3_stmt *stmt, int index, const struct field *field,
		       struct nrp_capture *capture)
{
	void *p = (char *)capture + field->offset;
	const char *text;
	int64_t value;

	switch (field->type) {
	case FIELD_TEXT:
	case FIELD_TEXT_OPT:
		text = (const char *)sqlite3_column_text(stmt, index);
		snprintf(p, field->size, "%s", text ? text : "");
		nrp_text_clean(p);
		return;
	case FIELD_HASH:
		memset(p, 0, NRP_HASH_SIZE);
		if (sqlite3_column_bytes(stmt, index) == NRP_HASH_SIZE)
			memcpy(p, sqlite3_column_blob(stmt, index), NRP_HASH_SIZE);
		return;
	case FIELD_INT:
		*(int *)p = sqlite3_column_int(stmt, index);
		return;
	case FIELD_BOOL:
		*(bool *)p = sqlite3_column_int(stmt, index) != 0;
		return;
	case FIELD_U64:
	case FIELD_I64:
	case FIELD_I64_OPT:
		break;
	}
	value = sqlite3_column_int64(stmt, index);
	if (field->type == FIELD_I64_OPT && sqlite3_column_type(stmt, index) == SQLITE_NULL)
		value = -1;
	memcpy(p, &value, sizeof(value));
}

/* Steps a statement that returns no row, and frees it. */
static int finish(struct nrp_store *store, sqlite3_stmt *stmt, const char *doing,
		  struct nrp_error *err)
{
	int r = 0;

	if (sqlite3_step(stmt) != SQLITE_DONE)
		r = nrp_store_fail(store, err, doing);
	sqlite3_finalize(stmt);
	return r;
}

/* ---- writing ------------------------------------------------------------------------ */

/* One row per CPU and node: the arrays of the host facts. */
static int put_topology(struct nrp_store *store, const struct nrp_capture *capture,
			struct nrp_error *err)
{
	const struct nrp_host_facts *facts = &capture->facts;
	sqlite3_stmt *cpus = NULL, *nodes = NULL;
	bool ok = true;
	int r;

	r = nrp_db_prepare(store->db, store->path, "INSERT INTO host_cpu VALUES (?, ?, ?)", &cpus,
			   err);
	if (r == 0)
		r = nrp_db_prepare(store->db, store->path, "INSERT INTO host_node VALUES (?, ?, ?)",
				   &nodes, err);
	for (int cpu = 0; r == 0 && ok && facts->cpu_nid && cpu < facts->nr_cpus; cpu++) {
		sqlite3_bind_int64(cpus, 1, capture->id);
		sqlite3_bind_int(cpus, 2, cpu);
		if (facts->cpu_nid[cpu] < 0)
			sqlite3_bind_null(cpus, 3);
		else
			sqlite3_bind_int(cpus, 3, facts->cpu_nid[cpu]);
		ok = sqlite3_step(cpus) == SQLITE_DONE && sqlite3_reset(cpus) == SQLITE_OK;
	}
	for (int nid = 0; r == 0 && ok && facts->node_memkb && nid < facts->nr_nodes; nid++) {
		sqlite3_bind_int64(nodes, 1, capture->id);
		sqlite3_bind_int(nodes, 2, nid);
		if (facts->node_memkb[nid] < 0)
			sqlite3_bind_null(nodes, 3);
		else
			sqlite3_bind_int64(nodes, 3, facts->node_memkb[nid]);
		ok = sqlite3_step(nodes) == SQLITE_DONE && sqlite3_reset(nodes) == SQLITE_OK;
	}
	if (!ok)
		r = nrp_store_fail(store, err, "store the topology");
	sqlite3_finalize(cpus);
	sqlite3_finalize(nodes);
	return r;
}

/* What the file could not give back is refused before it is written. */
static int check_capture(struct nrp_store *store, const struct nrp_capture *capture,
			 struct nrp_error *err)
{
	const struct nrp_host_facts *facts = &capture->facts;

	if (!capture->name[0])
		return nrp_fail(err, NRP_USAGE, -EINVAL, store->path, -1, "give a name with --name",
				"a capture needs a name");
	if (!nrp_text_is_clean(capture->name))
		return nrp_fail(err, NRP_USAGE, -EINVAL, store->path, -1, "give a name with --name",
				"%s: a name is UTF-8 text without control characters",
				capture->name);
	if (facts->nr_cpus < 0 || facts->nr_cpus > NRP_MAX_CPUS || facts->nr_nodes < 0 ||
	    facts->nr_nodes > NRP_MAX_NODES)
		return nrp_fail(err, NRP_INPUT, -ERANGE, store->path, -1, NULL,
				"capture %s: %d CPUs and %d nodes are beyond the limits %d and %d",
				capture->name, facts->nr_cpus, facts->nr_nodes, NRP_MAX_CPUS,
				NRP_MAX_NODES);
	return 0;
}

static int refuse_duplicate(struct nrp_store *store, const struct nrp_capture *capture,
			    struct nrp_error *err)
{
	int64_t id;
	int r;

	r = nrp_store_capture_by_hash(store, capture->hash, &id, err);
	if (r == 0 && id)
		r = nrp_fail(err, NRP_USAGE, -EEXIST, store->path, -1, "replace it with --force",
			     "capture %lld was made from the same bytes as %s", (long long)id,
			     capture->name);
	if (r == 0)
		r = nrp_store_capture_by_name(store, capture->name, &id, err);
	if (r == 0 && id)
		r = nrp_fail(err, NRP_USAGE, -EEXIST, store->path, -1,
			     "choose another name with --name",
			     "there is a capture named %s already", capture->name);
	return r;
}

int nrp_store_add_capture(struct nrp_store *store, struct nrp_capture *capture,
			  struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int r;

	r = check_capture(store, capture, err);
	if (r == 0)
		r = refuse_duplicate(store, capture, err);
	if (r == 0)
		r = prepare_capture(store, CAPTURE_INSERT, &stmt, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < NR_FIELDS; i++)
		bind_field(stmt, (int)i + 1, &fields[i], capture);
	r = finish(store, stmt, "store the capture", err);
	if (r < 0)
		return r;
	capture->id = sqlite3_last_insert_rowid(store->db);
	return put_topology(store, capture, err);
}

/* Runs a statement whose only parameter is a capture's id. */
static int exec_id(struct nrp_store *store, const char *sql, int64_t id, struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int r = nrp_db_prepare(store->db, store->path, sql, &stmt, err);

	if (r < 0)
		return r;
	sqlite3_bind_int64(stmt, 1, id);
	return finish(store, stmt, "change the capture", err);
}

static int no_such_id(struct nrp_store *store, int64_t id, struct nrp_error *err)
{
	return nrp_fail(err, NRP_USAGE, -ENOENT, store->path, -1, NULL, "there is no capture %lld",
			(long long)id);
}

int nrp_store_update_capture(struct nrp_store *store, const struct nrp_capture *capture,
			     struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int r;

	r = check_capture(store, capture, err);
	if (r == 0)
		r = prepare_capture(store, CAPTURE_UPDATE, &stmt, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < NR_FIELDS; i++)
		bind_field(stmt, (int)i + 1, &fields[i], capture);
	sqlite3_bind_int64(stmt, (int)NR_FIELDS + 1, capture->id);
	r = finish(store, stmt, "change the capture", err);
	if (r < 0)
		return r;
	if (sqlite3_changes(store->db) == 0)
		return no_such_id(store, capture->id, err);

	r = exec_id(store, "DELETE FROM host_cpu WHERE capture_id = ?", capture->id, err);
	if (r == 0)
		r = exec_id(store, "DELETE FROM host_node WHERE capture_id = ?", capture->id, err);
	return r < 0 ? r : put_topology(store, capture, err);
}

int nrp_store_delete_capture(struct nrp_store *store, int64_t id, struct nrp_error *err)
{
	/* Everything else goes with it: ON DELETE CASCADE. */
	int r = exec_id(store, "DELETE FROM capture WHERE id = ?", id, err);

	if (r == 0 && sqlite3_changes(store->db) == 0)
		return no_such_id(store, id, err);
	return r;
}

void nrp_capture_clear(struct nrp_capture *capture)
{
	if (!capture)
		return;
	nrp_host_facts_clear(&capture->facts);
	memset(capture, 0, offsetof(struct nrp_capture, facts));
}

/* ---- loading ------------------------------------------------------------------------ */

static int alloc_topology(struct nrp_host_facts *facts)
{
	if (facts->nr_cpus > 0) {
		facts->cpu_nid = malloc((size_t)facts->nr_cpus * sizeof(*facts->cpu_nid));
		if (!facts->cpu_nid)
			return -ENOMEM;
		for (int cpu = 0; cpu < facts->nr_cpus; cpu++)
			facts->cpu_nid[cpu] = -1;
	}
	if (facts->nr_nodes > 0) {
		facts->node_memkb = malloc((size_t)facts->nr_nodes * sizeof(*facts->node_memkb));
		if (!facts->node_memkb)
			return -ENOMEM;
		for (int nid = 0; nid < facts->nr_nodes; nid++)
			facts->node_memkb[nid] = -1;
	}
	return 0;
}

/* Calls for rows (index, value) of one topology table; NULL values and stray indices are left. */
static int load_topology(struct nrp_store *store, struct nrp_capture *capture, bool cpus,
			 struct nrp_error *err)
{
	struct nrp_host_facts *facts = &capture->facts;
	int limit = cpus ? facts->nr_cpus : facts->nr_nodes;
	sqlite3_stmt *stmt;
	int step, r;

	r = nrp_db_prepare(store->db, store->path,
			   cpus ? "SELECT cpu, nid FROM host_cpu WHERE capture_id = ?"
				: "SELECT nid, mem_kb FROM host_node WHERE capture_id = ?",
			   &stmt, err);
	if (r < 0)
		return r;
	sqlite3_bind_int64(stmt, 1, capture->id);
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
		int64_t i = sqlite3_column_int64(stmt, 0);
		int64_t value = sqlite3_column_int64(stmt, 1);

		if (i < 0 || i >= limit || sqlite3_column_type(stmt, 1) == SQLITE_NULL)
			continue;
		if (!cpus)
			facts->node_memkb[i] = value;
		else if (value >= 0 && value < NRP_MAX_NODES)
			facts->cpu_nid[i] = (int16_t)value;
	}
	if (step != SQLITE_DONE)
		r = nrp_store_fail(store, err, "read the topology");
	sqlite3_finalize(stmt);
	return r;
}

/* What no host has would overflow or never end where it is used. -1, unknown, is no damage. */
static int check_limits(struct nrp_store *store, const struct nrp_capture *capture,
			struct nrp_error *err)
{
	const struct nrp_host_facts *f = &capture->facts;
	const struct {
		const char *column;
		int64_t value, min, max;
	} limits[] = {
		{ "nr_cpus", f->nr_cpus, 0, NRP_MAX_CPUS },
		{ "nr_nodes", f->nr_nodes, 0, NRP_MAX_NODES },
		{ "loss_gaps", capture->loss_gaps, 0, INT64_MAX },
		{ "probe_misses", capture->probe_misses, 0, INT64_MAX },
		{ "hz", f->hz, 24, 20000 },
		{ "page_size", f->page_size, 512, 1 << 22 },
		{ "huge_pages", f->huge_pages, 1, NRP_MAX_HUGE_PAGES },
		{ "cpupid_shift", f->cpupid_shift, 0, 63 },
		{ "cpupid_bits", f->cpupid_bits, 1, 32 },
		{ "nid_shift", f->nid_shift, 0, 63 },
		{ "balancing", f->balancing, 0, NRP_MAX_SYSCTL },
		{ "scan_delay_ms", f->scan_delay_ms, 0, NRP_MAX_SYSCTL },
		{ "scan_period_min_ms", f->scan_period_min_ms, 0, NRP_MAX_SYSCTL },
		{ "scan_period_max_ms", f->scan_period_max_ms, 0, NRP_MAX_SYSCTL },
		{ "scan_size_mb", f->scan_size_mb, 0, NRP_MAX_SYSCTL },
		{ "moved_result", f->moved_result, 0, 1 },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		bool unknown = limits[i].value == -1 && i > 2;

		if (unknown ||
		    (limits[i].value >= limits[i].min && limits[i].value <= limits[i].max))
			continue;
		return nrp_fail(err, NRP_INPUT, -EBADMSG, store->path, -1,
				"import the trace again with --force",
				"capture %s is damaged: %s is %lld", capture->name,
				limits[i].column, (long long)limits[i].value);
	}
	if (capture->last_time < capture->first_time)
		return nrp_fail(err, NRP_INPUT, -EBADMSG, store->path, -1,
				"import the trace again with --force",
				"capture %s is damaged: it ends before it begins", capture->name);
	return 0;
}

static int load(struct nrp_store *store, struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_host_facts *facts = &capture->facts;
	sqlite3_stmt *stmt;
	int r;

	r = prepare_capture(store, CAPTURE_SELECT, &stmt, err);
	if (r < 0)
		return r;
	sqlite3_bind_int64(stmt, 1, capture->id);
	if (sqlite3_step(stmt) == SQLITE_ROW) {
		for (size_t i = 0; i < NR_FIELDS; i++)
			load_field(stmt, (int)i, &fields[i], capture);
	} else {
		r = nrp_store_fail(store, err, "read the capture");
	}
	sqlite3_finalize(stmt);
	if (r < 0)
		return r;

	r = check_limits(store, capture, err);
	if (r < 0)
		return r;
	if (alloc_topology(facts) < 0)
		return nrp_fail_nomem(err);
	r = load_topology(store, capture, true, err);
	return r < 0 ? r : load_topology(store, capture, false, err);
}

int nrp_store_load_capture(struct nrp_store *store, const char *which, struct nrp_capture *ret,
			   struct nrp_error *err)
{
	struct nrp_capture capture = { .id = 0 };
	int r;

	if (nrp_store_is_empty(store))
		return nrp_fail(err, NRP_INPUT, -ENODATA, store->path, -1,
				"import a trace into it first", "holds no capture");
	nrp_host_facts_init(&capture.facts);
	r = nrp_store_find_capture(store, which, &capture.id, err);
	if (r == 0)
		r = load(store, &capture, err);
	if (r < 0) {
		nrp_capture_clear(&capture);
		return r;
	}
	*ret = capture;
	return 0;
}
