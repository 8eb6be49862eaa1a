/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/block_list.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define REMEDY "copy the file again, or import the trace again with --force"

/* Columns of the statement: seal, block, its own ranges, and three for each bound. */
enum {
	AT_SEAL,
	AT_ID,
	AT_LIST, /* time_min, time_max, rows */
	AT_TGID = AT_LIST + 3,
	AT_NID = AT_TGID + 2,
	AT_BOUNDS = AT_NID + 2
};
#define AT_RANGE(bound) (AT_BOUNDS + 3 * (int)(bound))

struct list {
	sqlite3 *db;
	const char *path;
	enum nrp_record_kind kind;
	const struct nrp_kind *desc;
	const struct nrp_bound *bounds;
	size_t nr_bounds;
	bool own_ranges;           /* a bound is on a column whose range is in table block itself */
	struct nrp_block_seal sum; /* of what was read */
	struct nrp_block_entry *entries;
	size_t nr_entries, room;
	struct nrp_block_counts *counts;
	struct nrp_error *err;
};

int nrp_block_fail(const char *path, enum nrp_record_kind kind, int64_t id, int code,
		   const char *why, struct nrp_error *err)
{
	if (code == -ENOMEM)
		return nrp_fail_nomem(err);
	if (code == -ENOTSUP)
		return nrp_fail(err, NRP_INPUT, code, path, -1, "use a newer numareplay",
				"block %lld of kind %s: %s", (long long)id, nrp_kind(kind)->name,
				why);
	return nrp_fail(err, NRP_INPUT, code, path, -1, REMEDY,
			"block %lld of kind %s is damaged: %s", (long long)id, nrp_kind(kind)->name,
			why);
}

uint64_t nrp_seal_hash(sqlite3_stmt *stmt, int from, int count, int64_t id, int column)
{
	uint64_t row[7] = { htole64((uint64_t)id), htole64((uint64_t)column) };

	for (int i = 0; i < count; i++) {
		if (sqlite3_column_type(stmt, from + i) == SQLITE_NULL)
			row[2] |= htole64(UINT64_C(1) << i);
		row[3 + i] = htole64(nrp_from_sql(sqlite3_column_int64(stmt, from + i)));
	}
	return XXH3_64bits(row, sizeof(row));
}

/* ---- one block ----------------------------------------------------------------------- */

/*
 * Can the block hold a time in [lo, hi], compared as SQL does? A block across 2^63 holds large
 * positive and negative numbers, and is kept.
 */
static bool overlaps(const struct nrp_block_entry *entry, int64_t lo, int64_t hi)
{
	int64_t min = nrp_to_sql(entry->start.time), max = nrp_to_sql(entry->time_max);

	return min > max || (min <= hi && max >= lo);
}

/* The smallest and largest value of a column's type, as SQL has them. */
static void type_limits(enum nrp_column_type type, int64_t *ret_min, int64_t *ret_max)
{
	static const int64_t limits[][2] = {
		[NRP_T_u8] = { 0, UINT8_MAX },          [NRP_T_u16] = { 0, UINT16_MAX },
		[NRP_T_u32] = { 0, UINT32_MAX },        [NRP_T_u64] = { INT64_MIN, INT64_MAX },
		[NRP_T_i8] = { INT8_MIN, INT8_MAX },    [NRP_T_i16] = { INT16_MIN, INT16_MAX },
		[NRP_T_i32] = { INT32_MIN, INT32_MAX }, [NRP_T_i64] = { INT64_MIN, INT64_MAX },
	};

	*ret_min = limits[type][0];
	*ret_max = limits[type][1];
}

/*
 * Can a range, which stands at columns @at and @at + 1, hold a value within the bound? NULL: no row
 * has one. -EBADMSG: it is none.
 */
static int range_meets(const struct list *list, sqlite3_stmt *stmt, int at,
		       const struct nrp_bound *bound)
{
	bool no_min = sqlite3_column_type(stmt, at) == SQLITE_NULL;
	bool no_max = sqlite3_column_type(stmt, at + 1) == SQLITE_NULL;
	int64_t min = sqlite3_column_int64(stmt, at), max = sqlite3_column_int64(stmt, at + 1);
	int64_t lowest, highest;

	type_limits(list->desc->columns[bound->column].type, &lowest, &highest);
	if (no_min && no_max)
		return 0;
	if (no_min || no_max || min > max || min < lowest || max > highest)
		return -EBADMSG;
	return max >= bound->lo && min <= bound->hi;
}

/* Where the range of a column stands that is in the table of blocks itself; 0: not there. */
static int own_range(const struct nrp_kind *desc, int column)
{
	if (column == desc->tgid_column)
		return AT_TGID;
	for (size_t i = 0; i < sizeof(desc->nid_columns) / sizeof(desc->nid_columns[0]); i++)
		if (column == desc->nid_columns[i])
			return AT_NID;
	return 0;
}

/* The same for a bound: by the block's own range of that column, and by its row in block_range. */
static int bound_meets(struct list *list, sqlite3_stmt *stmt, size_t i, int64_t id)
{
	const struct nrp_bound *bound = &list->bounds[i];
	int at = own_range(list->desc, bound->column), meets = 1, r;

	if (at)
		meets = range_meets(list, stmt, at, bound);
	at = AT_RANGE(i);
	if (meets < 0 || sqlite3_column_type(stmt, at) == SQLITE_NULL)
		return meets;
	list->sum.range[bound->column] += nrp_seal_hash(stmt, at + 1, 2, id, bound->column);
	r = range_meets(list, stmt, at + 1, bound);
	return r < 0 ? r : meets && r;
}

/* 1: a row within all bounds may be there. */
static int block_meets(struct list *list, sqlite3_stmt *stmt, const struct nrp_block_entry *entry)
{
	int meets = 1;

	if (list->own_ranges)
		list->sum.range[0] += nrp_seal_hash(stmt, AT_TGID, 4, entry->start.block_id, 0);
	for (size_t i = 0; i < list->nr_bounds; i++) {
		int r = list->bounds[i].column
				? bound_meets(list, stmt, i, entry->start.block_id)
				: overlaps(entry, list->bounds[i].lo, list->bounds[i].hi);

		if (r < 0)
			return r;
		meets &= r;
	}
	return meets;
}

static int add_entry(struct list *list, const struct nrp_block_entry *entry)
{
	if (list->nr_entries == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct nrp_block_entry *p = reallocarray(list->entries, room, sizeof(*p));

		if (!p)
			return nrp_fail_nomem(list->err);
		list->entries = p;
		list->room = room;
	}
	list->entries[list->nr_entries++] = *entry;
	return 0;
}

static int take_block(struct list *list, sqlite3_stmt *stmt)
{
	struct nrp_block_entry entry = {
		.start.block_id = sqlite3_column_int64(stmt, AT_ID),
		.start.time = nrp_from_sql(sqlite3_column_int64(stmt, AT_LIST)),
		.time_max = nrp_from_sql(sqlite3_column_int64(stmt, AT_LIST + 1)),
		.rows = (uint32_t)sqlite3_column_int64(stmt, AT_LIST + 2),
	};
	int meets;

	list->sum.rows += nrp_from_sql(sqlite3_column_int64(stmt, AT_LIST + 2));
	list->sum.list += nrp_seal_hash(stmt, AT_LIST, 3, entry.start.block_id, 0);
	if (entry.time_max < entry.start.time)
		return nrp_block_fail(list->path, list->kind, entry.start.block_id, -EBADMSG,
				      "its times are in the wrong order", list->err);
	meets = block_meets(list, stmt, &entry);
	if (meets < 0)
		return nrp_block_fail(list->path, list->kind, entry.start.block_id, meets,
				      "the range of a column is none", list->err);
	if (meets)
		return add_entry(list, &entry);
	if (list->counts)
		list->counts->left_out++;
	return 0;
}

/* ---- the seal ------------------------------------------------------------------------- */

/* The next number of a seal's text, which is moved behind it; 0 behind the last. */
static uint64_t next_number(const char **text, int base)
{
	char *end;
	uint64_t value = strtoull(*text, &end, base);

	*text = end;
	return value;
}

/* As nrp_store_seal() writes it: the rows, then the sums in hexadecimal. */
static void parse_seal(const char *text, struct nrp_block_seal *ret)
{
	ret->rows = next_number(&text, 10);
	ret->list = next_number(&text, 16);
	for (size_t i = 0; i < NRP_BLOCK_MAX_COLUMNS; i++)
		ret->range[i] = next_number(&text, 16);
}

static bool ranges_fit(const struct list *list, const struct nrp_block_seal *seal)
{
	if (list->own_ranges && list->sum.range[0] != seal->range[0])
		return false;
	for (size_t i = 0; i < list->nr_bounds; i++) {
		int c = list->bounds[i].column;

		if (c && list->sum.range[c] != seal->range[c])
			return false;
	}
	return true;
}

static int check_seal(const struct list *list, const char *text)
{
	struct nrp_block_seal seal;

	parse_seal(text, &seal);
	if (list->sum.rows != seal.rows)
		return nrp_fail(list->err, NRP_INPUT, -EBADMSG, list->path, -1, REMEDY,
				"is damaged: its blocks of kind %s have %llu of %llu records",
				list->desc->name, (unsigned long long)list->sum.rows,
				(unsigned long long)seal.rows);
	if (list->sum.list != seal.list || !ranges_fit(list, &seal))
		return nrp_fail(list->err, NRP_INPUT, -EBADMSG, list->path, -1, REMEDY,
				"is damaged: what it says about its blocks of kind %s is not what "
				"was written",
				list->desc->name);
	return 0;
}

/* ---- the statement -------------------------------------------------------------------- */

/*
 * One row for each block, and one without a block where there are none: the seal comes with the
 * list, so that nobody can change one of the two in between.
 */
static char *list_sql(const struct list *list, bool has_ranges)
{
	sqlite3_str *sql = sqlite3_str_new(list->db);

	sqlite3_str_appendf(sql, "SELECT s.value, b.id, b.time_min, b.time_max, b.rows, %s",
			    list->own_ranges ? "b.tgid_min, b.tgid_max, b.nid_min, b.nid_max"
					     : "NULL, NULL, NULL, NULL");
	for (size_t i = 0; i < list->nr_bounds; i++)
		if (has_ranges && list->bounds[i].column)
			sqlite3_str_appendf(sql, ", r%d.column, r%d.min, r%d.max", (int)i, (int)i,
					    (int)i);
		else
			sqlite3_str_appendall(sql, ", NULL, NULL, NULL");
	sqlite3_str_appendf(sql,
			    " FROM (SELECT (SELECT value FROM main.host_setting WHERE capture_id = "
			    "?1 AND name = 'blocks.%q') AS value) s "
			    "LEFT JOIN main.block b ON b.capture_id = ?1 AND b.kind = %d",
			    list->desc->name, (int)list->kind);
	for (size_t i = 0; has_ranges && i < list->nr_bounds; i++)
		if (list->bounds[i].column)
			sqlite3_str_appendf(sql,
					    " LEFT JOIN main.block_range r%d ON r%d.block_id = "
					    "b.id AND r%d.column = %d",
					    (int)i, (int)i, (int)i, list->bounds[i].column);
	return sqlite3_str_finish(sql);
}

static int prepare_list(const struct list *list, int64_t capture_id, sqlite3_stmt **ret)
{
	int64_t has_ranges = 0;
	char *text;
	int r;

	/* Files of earlier versions have no such table. */
	r = nrp_db_integer(list->db, list->path,
			   "SELECT count(*) FROM main.sqlite_schema WHERE name = 'block_range'",
			   &has_ranges, list->err);
	if (r < 0)
		return r;
	text = list_sql(list, has_ranges);
	r = text ? nrp_db_prepare(list->db, list->path, text, ret, list->err)
		 : nrp_fail_nomem(list->err);
	sqlite3_free(text);
	if (r == 0)
		sqlite3_bind_int64(*ret, 1, capture_id);
	return r;
}

static int read_list(struct list *list, sqlite3_stmt *stmt)
{
	char *seal = NULL;
	int step, r = 0;

	while (r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (!seal && sqlite3_column_type(stmt, AT_SEAL) != SQLITE_NULL) {
			const char *text = (const char *)sqlite3_column_text(stmt, AT_SEAL);

			seal = text ? strdup(text) : NULL;
			if (!seal)
				r = nrp_fail_nomem(list->err);
		}
		if (r == 0 && sqlite3_column_type(stmt, AT_ID) != SQLITE_NULL)
			r = take_block(list, stmt);
	}
	if (r == 0 && step != SQLITE_DONE)
		r = nrp_db_fail(list->db, list->path, list->err, "list the blocks");
	if (r == 0 && seal)
		r = check_seal(list, seal);
	free(seal);
	return r;
}

static int compare_entries(const void *a, const void *b)
{
	const struct nrp_block_entry *x = a, *y = b;

	return nrp_position_before(&x->start, &y->start)   ? -1
	       : nrp_position_before(&y->start, &x->start) ? 1
							   : 0;
}

int nrp_block_list(sqlite3 *db, const char *path, int64_t capture_id, enum nrp_record_kind kind,
		   const struct nrp_bound *bounds, size_t nr_bounds,
		   struct nrp_block_counts *counts, struct nrp_block_entry **ret, size_t *ret_count,
		   struct nrp_error *err)
{
	struct list list = {
		.db = db,
		.path = path,
		.kind = kind,
		.desc = nrp_kind(kind),
		.bounds = bounds,
		.nr_bounds = nr_bounds,
		.counts = counts,
		.err = err,
	};
	sqlite3_stmt *stmt = NULL;
	int r;

	for (size_t i = 0; i < nr_bounds; i++)
		list.own_ranges |= own_range(list.desc, bounds[i].column) != 0;
	r = prepare_list(&list, capture_id, &stmt);
	if (r == 0)
		r = read_list(&list, stmt);
	sqlite3_finalize(stmt);
	if (r < 0) {
		free(list.entries);
		return r;
	}
	if (list.nr_entries)
		qsort(list.entries, list.nr_entries, sizeof(*list.entries), compare_entries);
	*ret = list.entries;
	*ret_count = list.nr_entries;
	return 0;
}
