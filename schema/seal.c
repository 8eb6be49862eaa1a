/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the seals on the blocks of a capture (block_list.h). */
#include "schema/block_list.h"

#include <stdio.h>

#define SEAL_SIZE ((NRP_BLOCK_MAX_COLUMNS + 2) * 21) /* characters: numbers with a blank each */

/* Gives each row of a statement, whose parameters are the capture and the kind, to @take. */
static int each_row(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		    const char *sql, void (*take)(sqlite3_stmt *, struct nrp_block_seal *),
		    struct nrp_block_seal *seal, struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int step, r = nrp_db_prepare(store->db, store->path, sql, &stmt, err);

	if (r < 0)
		return r;
	sqlite3_bind_int64(stmt, 1, capture_id);
	sqlite3_bind_int(stmt, 2, (int)kind);
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW)
		take(stmt, seal);
	if (step != SQLITE_DONE)
		r = nrp_store_fail(store, err, "seal the blocks");
	sqlite3_finalize(stmt);
	return r;
}

static void take_block(sqlite3_stmt *stmt, struct nrp_block_seal *seal)
{
	int64_t id = sqlite3_column_int64(stmt, 0);

	seal->rows += nrp_from_sql(sqlite3_column_int64(stmt, 3));
	seal->list += nrp_seal_hash(stmt, 1, 3, id, 0);
	seal->range[0] += nrp_seal_hash(stmt, 4, 4, id, 0);
}

static void take_range(sqlite3_stmt *stmt, struct nrp_block_seal *seal)
{
	int column = sqlite3_column_int(stmt, 1);

	seal->range[column] += nrp_seal_hash(stmt, 2, 2, sqlite3_column_int64(stmt, 0), column);
}

static int seal_kind(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		     struct nrp_error *err)
{
	const struct nrp_kind *desc = nrp_kind(kind);
	struct nrp_block_seal seal = { 0 };
	char name[64], text[SEAL_SIZE];
	int n, r;

	r = each_row(store, capture_id, kind,
		     "SELECT id, time_min, time_max, rows, tgid_min, tgid_max, nid_min, nid_max "
		     "FROM block WHERE capture_id = ? AND kind = ?",
		     take_block, &seal, err);
	if (r == 0)
		r = each_row(store, capture_id, kind,
			     "SELECT r.block_id, r.column, r.min, r.max FROM block b JOIN "
			     "block_range r ON r.block_id = b.id WHERE b.capture_id = ? AND "
			     "b.kind = ? AND r.column BETWEEN 1 AND 63",
			     take_range, &seal, err);
	n = snprintf(text, sizeof(text), "%llu %llx", (unsigned long long)seal.rows,
		     (unsigned long long)seal.list);
	for (uint32_t c = 0; seal.rows && c < desc->nr_columns; c++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %llx",
			      (unsigned long long)seal.range[c]);
	snprintf(name, sizeof(name), "blocks.%s", desc->name);
	return r < 0 ? r : nrp_store_put_setting(store, capture_id, name, text, err);
}

int nrp_store_seal(struct nrp_store *store, int64_t capture_id, struct nrp_error *err)
{
	int r = 0;

	for (int kind = 0; r == 0 && kind < NRP_NR_KINDS; kind++)
		r = seal_kind(store, capture_id, (enum nrp_record_kind)kind, err);
	return r;
}
