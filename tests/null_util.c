/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "null_util.h"
#include "capture/import.h"
#include "store_util.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- captures ----------------------------------------------------------------------- */

static void new_database(struct loaded *c, const char *scratch)
{
	struct nrp_error err = NRP_ERROR_INIT;
	static int number;

	snprintf(c->db, sizeof(c->db), "%s/%d.db", scratch, number++);
	assert_ok(nrp_store_open(&c->store, c->db, NRP_STORE_CREATE, &err), &err);
	assert_ok(nrp_store_begin(c->store, &err), &err);
}

static void close_database(struct loaded *c)
{
	struct nrp_error err = NRP_ERROR_INIT;

	assert_ok(nrp_store_commit(c->store, &err), &err);
	assert_ok(nrp_verify_run(&c->verify, c->store, &c->capture, &err), &err);
}

/* "kernels/6.1/shared" of "FOLDER/kernels/6.1/shared.dat". */
static void name_of(struct loaded *c, const char *folder, const char *path)
{
	const char *name = path + strlen(folder) + 1;

	snprintf(c->name, sizeof(c->name), "%.*s", (int)(strlen(name) - strlen(".dat")), name);
}

static void import(struct loaded *c, const char *path, const char *scratch)
{
	struct nrp_import_options options = { .path = path };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_join_stats stats;

	new_database(c, scratch);
	assert_ok(nrp_import_trace(c->store, &options, &c->capture, &stats, NULL, NULL, &err),
		  &err);
	close_database(c);
}

void null_load(struct loaded **set, size_t *count, const char *folder, const char *pattern,
	       const char *scratch)
{
	char full[512];
	glob_t found;

	snprintf(full, sizeof(full), "%s/%s", folder, pattern);
	if (glob(full, 0, NULL, &found) != 0)
		return;
	*set = reallocarray(*set, *count + found.gl_pathc, sizeof(**set));
	assert_non_null(*set);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct loaded *c = *set + *count;

		memset(c, 0, sizeof(*c));
		name_of(c, folder, found.gl_pathv[i]);
		import(c, found.gl_pathv[i], scratch);
		if (c->verify.hint_faults)
			++*count;
		else
			null_drop(c);
	}
	globfree(&found);
}

struct loaded *null_find(struct loaded *set, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(set[i].name, name))
			return &set[i];
	return NULL;
}

void null_drop(struct loaded *c)
{
	nrp_verify_clear(&c->verify);
	nrp_capture_clear(&c->capture);
	c->store = nrp_store_close(c->store);
	unlink(c->db);
}

void null_drop_all(struct loaded *set, size_t count)
{
	for (size_t i = 0; i < count; i++)
		null_drop(&set[i]);
	free(set);
}

/* ---- copies ------------------------------------------------------------------------- */

static void copy_facts(struct nrp_host_facts *to, const struct nrp_host_facts *from)
{
	*to = *from;
	to->cpu_nid = calloc((size_t)from->nr_cpus + 1, sizeof(*to->cpu_nid));
	to->node_memkb = calloc((size_t)from->nr_nodes + 1, sizeof(*to->node_memkb));
	assert_true(to->cpu_nid && to->node_memkb);
	if (from->nr_cpus)
		memcpy(to->cpu_nid, from->cpu_nid, (size_t)from->nr_cpus * sizeof(*to->cpu_nid));
	if (from->nr_nodes)
		memcpy(to->node_memkb, from->node_memkb,
		       (size_t)from->nr_nodes * sizeof(*to->node_memkb));
}

/* Which events there were, settings, counters, and the names in the order of their numbers. */
static void copy_tables(struct loaded *to, const struct loaded *from)
{
	static const char *const tables[] = {
		"UPDATE capture SET probe_set = (SELECT probe_set FROM original.capture)",
		"INSERT INTO host_setting SELECT * FROM original.host_setting",
		"INSERT INTO counter SELECT * FROM original.counter",
		"INSERT INTO name SELECT * FROM original.name ORDER BY id",
	};
	struct nrp_error err = NRP_ERROR_INIT;

	/* Both have one capture, the first. */
	assert_int_equal(to->capture.id, from->capture.id);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		assert_ok(nrp_store_exec(to->store, tables[i], &err), &err);
}

static void copy_rows(struct loaded *to, const struct loaded *from, const struct copy_plan *plan)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_writer *writer;

	assert_ok(nrp_writer_new(&writer, to->store, to->capture.id, &err), &err);
	for (int k = 0; k < NRP_NR_KINDS; k++) {
		enum nrp_record_kind kind = (enum nrp_record_kind)k;
		struct nrp_cursor *cursor;
		const void *row;
		void *own = malloc(nrp_kind(kind)->row_size);
		int more;

		assert_non_null(own);
		assert_ok(nrp_cursor_open(&cursor, from->store, from->capture.id, kind,
					  ~UINT64_C(0), &err),
			  &err);
		while ((more = nrp_cursor_next(cursor, &row, &err)) > 0) {
			memcpy(own, row, nrp_kind(kind)->row_size);
			if (!plan->row || plan->row(plan->context, kind, own))
				assert_ok(nrp_writer_append(writer, kind, own, &err), &err);
		}
		assert_ok(more, &err);
		nrp_cursor_close(cursor);
		free(own);
	}
	assert_ok(nrp_writer_flush(writer, &err), &err);
	nrp_writer_free(writer);
	/* The settings that were copied hold the seals of the original's blocks. */
	assert_ok(nrp_store_seal(to->store, to->capture.id, &err), &err);
}

void null_copy(struct loaded *ret, const struct loaded *from, const struct copy_plan *plan,
	       const char *scratch)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct loaded to = { .capture = from->capture };
	char attach[sizeof(from->db) + 32];

	memcpy(to.name, from->name, sizeof(to.name));
	copy_facts(&to.capture.facts, &from->capture.facts);
	if (plan->facts)
		plan->facts(plan->context, &to.capture.facts);
	new_database(&to, scratch);
	assert_ok(nrp_store_commit(to.store, &err), &err);
	snprintf(attach, sizeof(attach), "ATTACH '%s' AS original", from->db);
	assert_ok(nrp_store_exec(to.store, attach, &err), &err);
	assert_ok(nrp_store_begin(to.store, &err), &err);
	assert_ok(nrp_store_add_capture(to.store, &to.capture, &err), &err);
	copy_tables(&to, from);
	copy_rows(&to, from, plan);
	close_database(&to);
	assert_ok(nrp_store_exec(to.store, "DETACH original", &err), &err);
	*ret = to;
}

/* ---- replays ------------------------------------------------------------------------ */

void null_compare(struct compared *ret, const struct loaded *c, const char *old_lane,
		  const char *new_lane, const char *set)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lane_spec lane[2];

	assert_ok(nrp_lane_parse(&lane[0], old_lane, &err), &err);
	assert_ok(nrp_lane_parse(&lane[1], new_lane, &err), &err);
	/* All captures here are of hosts with 250 ticks/s, though too short ones do not show it. */
	if (c->capture.facts.hz <= 0)
		assert_ok(nrp_lane_set(&lane[0], &lane[1], "hz=250", &err), &err);
	if (set)
		assert_ok(nrp_lane_set(&lane[0], &lane[1], set, &err), &err);
	assert_ok(nrp_replay_run(&ret->replay, c->store, &c->capture, &c->verify, &lane[0],
				 &lane[1], &err),
		  &err);
	assert_ok(
		nrp_comparison_build(&ret->comparison, &ret->replay, &c->capture, &c->verify, &err),
		&err);
}

void null_compared_clear(struct compared *compared)
{
	nrp_comparison_clear(&compared->comparison);
	nrp_replay_clear(&compared->replay);
}

const struct nrp_note *null_note(const struct nrp_comparison *c, const char *code)
{
	for (size_t i = 0; i < c->nr_notes; i++)
		if (!strcmp(c->note[i].code, code))
			return &c->note[i];
	return NULL;
}
