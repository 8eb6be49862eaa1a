/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The small tables of a capture: interned names, counters, settings; and counts of records. */
#include "schema/block_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Looks a name up; 1: found, 0: absent. */
static int find_name(struct nrp_store *store, int64_t capture_id, const char *text, int64_t *ret_id,
		     struct nrp_error *err)
{
	sqlite3_stmt *stmt = store->name_find;
	int step, r;

	sqlite3_bind_int64(stmt, 1, capture_id);
	sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
	step = sqlite3_step(stmt);
	if (step == SQLITE_ROW) {
		*ret_id = sqlite3_column_int64(stmt, 0);
		r = 1;
	} else {
		r = step == SQLITE_DONE ? 0 : nrp_store_fail(store, err, "look for a name");
	}
	sqlite3_reset(stmt);
	return r;
}

static int add_name(struct nrp_store *store, int64_t capture_id, const char *text, int64_t *ret_id,
		    struct nrp_error *err)
{
	sqlite3_stmt *stmt = store->name_add;
	int r = 0;

	sqlite3_bind_int64(stmt, 1, capture_id);
	sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
	if (sqlite3_step(stmt) != SQLITE_DONE)
		r = nrp_store_fail(store, err, "store a name");
	else
		*ret_id = sqlite3_last_insert_rowid(store->db);
	sqlite3_reset(stmt);
	return r;
}

int nrp_store_intern(struct nrp_store *store, int64_t capture_id, const char *text,
		     uint32_t *ret_id, struct nrp_error *err)
{
	int64_t id = 0;
	int r = 0;

	if (!store->name_find)
		r = nrp_db_prepare(store->db, store->path,
				   "SELECT id FROM name WHERE capture_id = ? AND text = ?",
				   &store->name_find, err);
	if (r == 0 && !store->name_add)
		r = nrp_db_prepare(store->db, store->path,
				   "INSERT INTO name (capture_id, text) VALUES (?, ?)",
				   &store->name_add, err);
	if (r == 0)
		r = find_name(store, capture_id, text, &id, err);
	if (r == 0)
		r = add_name(store, capture_id, text, &id, err);
	if (r < 0)
		return r;
	/* Records hold ids in 32 bits. */
	if (id < 1 || id > UINT32_MAX)
		return nrp_fail(err, NRP_INPUT, -ERANGE, store->path, -1, NULL,
				"name number %lld is out of range", (long long)id);
	*ret_id = (uint32_t)id;
	return 0;
}

int nrp_store_put_counter(struct nrp_store *store, int64_t capture_id, const char *name,
			  int snapshot, int64_t value, struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int r = nrp_db_prepare(store->db, store->path,
			       "INSERT OR REPLACE INTO counter VALUES (?, ?, ?, ?)", &stmt, err);

	if (r < 0)
		return r;
	sqlite3_bind_int64(stmt, 1, capture_id);
	sqlite3_bind_text(stmt, 2, name, -1, SQLITE_STATIC);
	sqlite3_bind_int(stmt, 3, snapshot);
	sqlite3_bind_int64(stmt, 4, value);
	if (sqlite3_step(stmt) != SQLITE_DONE)
		r = nrp_store_fail(store, err, "store a counter");
	sqlite3_finalize(stmt);
	return r;
}

int nrp_store_counter_delta(struct nrp_store *store, int64_t capture_id, const char *name,
			    int64_t *ret_delta)
{
	sqlite3_stmt *stmt;
	uint64_t value[2];
	int step, r, snapshot = 0;

	if (nrp_store_is_empty(store))
		return -ENOENT;
	r = nrp_db_prepare(store->db, store->path,
			   "SELECT value FROM counter WHERE capture_id = ? AND name = ? "
			   "ORDER BY snapshot",
			   &stmt, NULL);
	if (r < 0)
		return r;
	sqlite3_bind_int64(stmt, 1, capture_id);
	sqlite3_bind_text(stmt, 2, name, -1, SQLITE_STATIC);
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW && snapshot < 2)
		value[snapshot++] = nrp_from_sql(sqlite3_column_int64(stmt, 0));
	if (step != SQLITE_DONE && step != SQLITE_ROW)
		r = nrp_store_fail(store, NULL, "read a counter");
	else if (snapshot < 2)
		r = -ENOENT;
	else
		*ret_delta = nrp_to_sql(value[1] - value[0]);
	sqlite3_finalize(stmt);
	return r;
}

int nrp_store_put_setting(struct nrp_store *store, int64_t capture_id, const char *name,
			  const char *value, struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int r = nrp_db_prepare(store->db, store->path,
			       "INSERT OR REPLACE INTO host_setting VALUES (?, ?, ?)", &stmt, err);

	if (r < 0)
		return r;
	sqlite3_bind_int64(stmt, 1, capture_id);
	sqlite3_bind_text(stmt, 2, name, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 3, value, -1, SQLITE_STATIC);
	if (sqlite3_step(stmt) != SQLITE_DONE)
		r = nrp_store_fail(store, err, "store a setting");
	sqlite3_finalize(stmt);
	return r;
}

int nrp_store_get_setting(struct nrp_store *store, int64_t capture_id, const char *name,
			  char **ret_value, struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int step, r;

	if (nrp_store_is_empty(store))
		return -ENOENT;
	r = nrp_db_prepare(store->db, store->path,
			   "SELECT value FROM host_setting WHERE capture_id = ? AND name = ?",
			   &stmt, err);
	if (r < 0)
		return r;
	sqlite3_bind_int64(stmt, 1, capture_id);
	sqlite3_bind_text(stmt, 2, name, -1, SQLITE_STATIC);
	step = sqlite3_step(stmt);
	if (step == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(stmt, 0);
		char *value = strdup(text ? text : "");

		if (value)
			*ret_value = value;
		else
			r = nrp_fail_nomem(err);
	} else {
		r = step == SQLITE_DONE ? -ENOENT : nrp_store_fail(store, err, "read a setting");
	}
	sqlite3_finalize(stmt);
	return r;
}

int nrp_store_count(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		    uint64_t *ret_rows, struct nrp_error *err)
{
	struct nrp_block_entry *blocks = NULL;
	uint64_t rows = 0;
	size_t n = 0;
	int r = 0;

	if (!nrp_store_is_empty(store))
		r = nrp_block_list(store->db, store->path, capture_id, kind, NULL, 0, NULL, &blocks,
				   &n, err);
	for (size_t i = 0; i < n; i++)
		rows += blocks[i].rows;
	free(blocks);
	if (r == 0)
		*ret_rows = rows;
	return r;
}
