/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which capture is meant. */
#include "schema/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Id of the only row of a bound statement, 0 if there is none; frees the statement. */
static int find_id(struct nrp_store *store, sqlite3_stmt *stmt, int64_t *ret_id,
		   struct nrp_error *err)
{
	int step = sqlite3_step(stmt);
	int r = 0;

	if (step == SQLITE_ROW)
		*ret_id = sqlite3_column_int64(stmt, 0);
	else if (step == SQLITE_DONE)
		*ret_id = 0;
	else
		r = nrp_store_fail(store, err, "look for the capture");
	sqlite3_finalize(stmt);
	return r;
}

int nrp_store_capture_by_hash(struct nrp_store *store, const uint8_t hash[32], int64_t *ret_id,
			      struct nrp_error *err)
{
	static const uint8_t no_hash[NRP_HASH_SIZE];
	sqlite3_stmt *stmt;
	int r;

	if (nrp_store_is_empty(store) || memcmp(hash, no_hash, sizeof(no_hash)) == 0) {
		*ret_id = 0;
		return 0;
	}
	r = nrp_db_prepare(store->db, store->path, "SELECT id FROM capture WHERE hash = ?", &stmt,
			   err);
	if (r < 0)
		return r;
	sqlite3_bind_blob(stmt, 1, hash, NRP_HASH_SIZE, SQLITE_STATIC);
	return find_id(store, stmt, ret_id, err);
}

int nrp_store_capture_by_name(struct nrp_store *store, const char *name, int64_t *ret_id,
			      struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int r;

	if (nrp_store_is_empty(store)) {
		*ret_id = 0;
		return 0;
	}
	r = nrp_db_prepare(store->db, store->path, "SELECT id FROM capture WHERE name = ?", &stmt,
			   err);
	if (r < 0)
		return r;
	sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	return find_id(store, stmt, ret_id, err);
}

/* "a, b, c" of all captures, as far as it fits; *ret_first is the id of the first one. */
static int list_captures(struct nrp_store *store, char *list, size_t size, int *ret_count,
			 int64_t *ret_first, struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	size_t used = 0;
	int count = 0, step, r;

	r = nrp_db_prepare(store->db, store->path, "SELECT id, name FROM capture ORDER BY id",
			   &stmt, err);
	if (r < 0)
		return r;
	list[0] = '\0';
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(stmt, 1);

		if (count++ == 0)
			*ret_first = sqlite3_column_int64(stmt, 0);
		if (used >= size)
			continue;
		used += (size_t)snprintf(list + used, size - used, "%s%s", count > 1 ? ", " : "",
					 name ? name : "");
		if (used >= size)
			snprintf(list + size - 4, 4, "...");
	}
	if (step != SQLITE_DONE)
		r = nrp_store_fail(store, err, "list the captures");
	sqlite3_finalize(stmt);
	*ret_count = count;
	return r;
}

int nrp_store_find_capture(struct nrp_store *store, const char *which, int64_t *ret_id,
			   struct nrp_error *err)
{
	char list[384];
	int64_t id = 0, first = 0;
	int count, r;

	r = list_captures(store, list, sizeof(list), &count, &first, err);
	if (r < 0)
		return r;
	if (count == 0)
		return nrp_fail(err, NRP_INPUT, -ENODATA, store->path, -1,
				"import a trace into it first", "holds no capture");
	if (!which && count > 1)
		return nrp_fail(err, NRP_USAGE, -EINVAL, store->path, -1,
				"choose one with --capture", "holds several captures: %s", list);
	if (!which) {
		*ret_id = first;
		return 0;
	}

	r = nrp_store_capture_by_name(store, which, &id, err);
	if (r == 0 && !id && which[0] && strspn(which, "0123456789") == strlen(which)) {
		sqlite3_stmt *stmt;

		r = nrp_db_prepare(store->db, store->path, "SELECT id FROM capture WHERE id = ?",
				   &stmt, err);
		if (r < 0)
			return r;
		/* Beyond the range it saturates, and no capture has that number. */
		sqlite3_bind_int64(stmt, 1, strtoll(which, NULL, 10));
		r = find_id(store, stmt, &id, err);
	}
	if (r == 0 && !id)
		return nrp_fail(err, NRP_USAGE, -ENOENT, store->path, -1,
				"choose one with --capture", "has no capture %.64s; it holds: %s",
				which, list);
	if (r == 0)
		*ret_id = id;
	return r;
}
