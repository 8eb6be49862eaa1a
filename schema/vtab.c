/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record kinds as eponymous-only virtual tables: hint_fault, scan_pass, ...
 *
 * Column 0 is capture_id, then the kind's columns (record.h). NULL is NULL. SQL integers are
 * signed: an unsigned 64-bit value of 2^63 or more (kernel addresses and pointers) comes out as the
 * negative number with the same bits; printf('%x', addr) shows it as the kernel prints it.
 *
 * Constraints on capture_id and time choose the blocks that are read at all.
 */
#include "schema/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct record_table {
	sqlite3_vtab base;
	sqlite3 *db;
	enum nrp_record_kind kind;
	const struct nrp_kind *desc;
	double rows; /* estimate, from when the table was first used */
};

struct record_cursor {
	sqlite3_vtab_cursor base;
	struct nrp_cursor *cursor; /* over one capture; NULL: at the end */
	sqlite3_stmt *captures;    /* the captures still to be read */
	int64_t capture_id;
	uint64_t columns;
	int64_t lo, hi; /* times, as SQL compares them */
	const uint8_t *row;
	int64_t rowid;
};

/* Bits of idxNum; the arguments of xFilter come in this order. */
#define BY_CAPTURE 1
#define FROM_TIME 2
#define TO_TIME 4

#define COLUMN_CAPTURE 0
#define COLUMN_TIME 1

static const char *db_path(sqlite3 *db)
{
	const char *path = sqlite3_db_filename(db, "main");

	return path ? path : "";
}

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			 sqlite3_vtab **ret, char **ret_error)
{
	const struct nrp_kind *desc = aux;
	struct record_table *table;
	sqlite3_str *sql = sqlite3_str_new(db);
	char *text;
	int64_t rows = 0;
	int r;

	(void)argc;
	(void)argv;
	(void)ret_error;
	sqlite3_str_appendall(sql, "CREATE TABLE x(\"capture_id\" INTEGER");
	for (uint32_t i = 0; i < desc->nr_columns; i++)
		sqlite3_str_appendf(sql, ", \"%w\" INTEGER", desc->columns[i].name);
	sqlite3_str_appendchar(sql, 1, ')');
	text = sqlite3_str_finish(sql);
	if (!text)
		return SQLITE_NOMEM;
	r = sqlite3_declare_vtab(db, text);
	sqlite3_free(text);
	if (r != SQLITE_OK)
		return r;
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);

	table = calloc(1, sizeof(*table));
	if (!table)
		return SQLITE_NOMEM;
	table->db = db;
	table->desc = desc;
	while (nrp_kind(table->kind) != desc)
		table->kind++;
	text = sqlite3_mprintf("SELECT coalesce(sum(rows), 0) FROM main.block WHERE kind = %d",
			       (int)table->kind);
	if (text && nrp_db_integer(db, db_path(db), text, &rows, NULL) == 0)
		table->rows = (double)rows;
	sqlite3_free(text);
	*ret = &table->base;
	return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *base)
{
	free(base);
	return SQLITE_OK;
}

/* Notes the first usable constraint of each sort. */
static void find_constraints(const sqlite3_index_info *info, int *capture, int *from, int *to)
{
	*capture = *from = *to = -1;
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *c = &info->aConstraint[i];

		if (!c->usable)
			continue;
		if (c->iColumn == COLUMN_CAPTURE && c->op == SQLITE_INDEX_CONSTRAINT_EQ &&
		    *capture < 0)
			*capture = i;
		if (c->iColumn != COLUMN_TIME)
			continue;
		if ((c->op == SQLITE_INDEX_CONSTRAINT_GT || c->op == SQLITE_INDEX_CONSTRAINT_GE) &&
		    *from < 0)
			*from = i;
		if ((c->op == SQLITE_INDEX_CONSTRAINT_LT || c->op == SQLITE_INDEX_CONSTRAINT_LE) &&
		    *to < 0)
			*to = i;
	}
}

static int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct record_table *table = (const struct record_table *)base;
	double rows = table->rows > 1 ? table->rows : 1;
	int found[3], args = 0;

	find_constraints(info, &found[0], &found[1], &found[2]);
	info->idxNum = 0;
	for (int i = 0; i < 3; i++) {
		if (found[i] < 0)
			continue;
		/* BY_CAPTURE, FROM_TIME, TO_TIME; SQLite tests every row again. */
		info->idxNum |= 1 << i;
		info->aConstraintUsage[found[i]].argvIndex = ++args;
		rows /= i == 0 ? 2 : 4;
	}
	/* The columns to decode go to xFilter as text; bit 63 stands for all from there on. */
	info->idxStr = sqlite3_mprintf("%llx", (unsigned long long)info->colUsed);
	if (!info->idxStr)
		return SQLITE_NOMEM;
	info->needToFreeIdxStr = 1;
	info->estimatedRows = (sqlite3_int64)rows + 1;
	/* Opening a block costs even if a few of its rows are wanted. */
	info->estimatedCost = rows + 1000;
	return SQLITE_OK;
}

static int table_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct record_cursor *cursor = calloc(1, sizeof(*cursor));

	(void)base;
	if (!cursor)
		return SQLITE_NOMEM;
	*ret = &cursor->base;
	return SQLITE_OK;
}

static void end_scan(struct record_cursor *cursor)
{
	cursor->cursor = nrp_cursor_close(cursor->cursor);
	sqlite3_finalize(cursor->captures);
	cursor->captures = NULL;
	cursor->row = NULL;
}

static int table_close(sqlite3_vtab_cursor *base)
{
	end_scan((struct record_cursor *)base);
	free(base);
	return SQLITE_OK;
}

/* Hands an error object to SQLite. */
static int fail(struct record_cursor *cursor, const struct nrp_error *err)
{
	sqlite3_vtab *table = cursor->base.pVtab;

	end_scan(cursor);
	if (err->code == -ENOMEM)
		return SQLITE_NOMEM;
	sqlite3_free(table->zErrMsg);
	table->zErrMsg = sqlite3_mprintf("%s", err->what);
	if (err->code == -EBUSY)
		return SQLITE_BUSY;
	return err->status == NRP_INPUT ? SQLITE_CORRUPT_VTAB : SQLITE_ERROR;
}

/* Goes on to the next capture; the scan ends after the last. */
static int next_capture(struct record_cursor *cursor, struct nrp_error *err)
{
	const struct record_table *table = (const struct record_table *)cursor->base.pVtab;
	int step;

	cursor->cursor = nrp_cursor_close(cursor->cursor);
	step = sqlite3_step(cursor->captures);
	if (step == SQLITE_DONE)
		return 0;
	if (step != SQLITE_ROW)
		return nrp_db_fail(table->db, db_path(table->db), err, "list the captures");
	cursor->capture_id = sqlite3_column_int64(cursor->captures, 0);
	return nrp_cursor_open_range(&cursor->cursor, table->db, db_path(table->db),
				     cursor->capture_id, table->kind, cursor->columns, cursor->lo,
				     cursor->hi, err);
}

/* Is the current row's time in the range? Rows outside would only be thrown away by SQLite. */
static bool in_range(const struct record_cursor *cursor, const uint8_t *row)
{
	const struct record_table *table = (const struct record_table *)cursor->base.pVtab;
	uint64_t time;

	memcpy(&time, row + table->desc->columns[0].offset, sizeof(time));
	return nrp_to_sql(time) >= cursor->lo && nrp_to_sql(time) <= cursor->hi;
}

static int table_next(sqlite3_vtab_cursor *base)
{
	struct record_cursor *cursor = (struct record_cursor *)base;
	struct nrp_error err = NRP_ERROR_INIT;
	const void *row;
	int r;

	while (cursor->cursor) {
		r = nrp_cursor_next(cursor->cursor, &row, &err);
		if (r == 0)
			r = next_capture(cursor, &err);
		else if (r > 0 && in_range(cursor, row)) {
			cursor->row = row;
			cursor->rowid++;
			return SQLITE_OK;
		}
		if (r < 0)
			return fail(cursor, &err);
	}
	end_scan(cursor);
	return SQLITE_OK;
}

/*
 * Narrows the range of times by a bound; false: nothing can satisfy it. The bound may be too wide
 * by one (SQLite tests again), never too narrow. Anything but a number is left to SQLite.
 */
static bool apply_bound(struct record_cursor *cursor, sqlite3_value *value, bool from)
{
	int64_t bound;
	double real;

	switch (sqlite3_value_type(value)) {
	case SQLITE_NULL:
		return false;
	case SQLITE_INTEGER:
		bound = sqlite3_value_int64(value);
		break;
	case SQLITE_FLOAT:
		real = sqlite3_value_double(value);
		if (real >= 9223372036854775807.0)
			return !from;
		if (real < -9223372036854775808.0)
			return from;
		/* Truncation may go either way; beyond 2^53 the neighbours are further apart. */
		bound = (int64_t)real;
		if (from && bound > INT64_MIN)
			bound--;
		if (!from && bound < INT64_MAX)
			bound++;
		break;
	default:
		return true;
	}
	if (from)
		cursor->lo = bound;
	else
		cursor->hi = bound;
	return true;
}

/*
 * idxNum: BY_CAPTURE (1): argv has the capture_id that is asked for; FROM_TIME (2): a value that
 * time is > or >= of; TO_TIME (4): one that it is < or <= of; in this order. idxStr: sqlite3's
 * colUsed in hexadecimal, bit 0 being capture_id.
 */
static int table_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
			sqlite3_value **argv)
{
	struct record_cursor *cursor = (struct record_cursor *)base;
	const struct record_table *table = (const struct record_table *)base->pVtab;
	struct nrp_error err = NRP_ERROR_INIT;
	uint64_t used = strtoull(idx_str, NULL, 16);
	bool possible = true;
	int i = 0;

	(void)argc;
	end_scan(cursor);
	cursor->rowid = 0;
	/* Bit 63 of colUsed stands for SQL column 63 and all behind it. */
	cursor->columns = used >> 1 | (used >> 63 ? ~UINT64_C(0) << 62 : 0);
	cursor->lo = INT64_MIN;
	cursor->hi = INT64_MAX;
	if (nrp_db_prepare(table->db, db_path(table->db),
			   idx_num & BY_CAPTURE
				   ? "SELECT id FROM main.capture WHERE id = ? ORDER BY id"
				   : "SELECT id FROM main.capture ORDER BY id",
			   &cursor->captures, &err) < 0)
		return fail(cursor, &err);
	/* SQLite compares as it does for any other column. */
	if (idx_num & BY_CAPTURE)
		sqlite3_bind_value(cursor->captures, 1, argv[i++]);
	if (idx_num & FROM_TIME)
		possible = apply_bound(cursor, argv[i++], true);
	if (idx_num & TO_TIME)
		possible = apply_bound(cursor, argv[i++], false) && possible;
	if (!possible) {
		end_scan(cursor);
		return SQLITE_OK;
	}
	if (next_capture(cursor, &err) < 0)
		return fail(cursor, &err);
	return table_next(base);
}

static int table_eof(sqlite3_vtab_cursor *base)
{
	return ((struct record_cursor *)base)->cursor == NULL;
}

static int table_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	const struct record_cursor *cursor = (const struct record_cursor *)base;
	const struct record_table *table = (const struct record_table *)base->pVtab;
	const struct nrp_column *column;
	uint64_t null;

	if (number == COLUMN_CAPTURE) {
		sqlite3_result_int64(context, cursor->capture_id);
		return SQLITE_OK;
	}
	number--;
	memcpy(&null, cursor->row, sizeof(null));
	if (null >> number & 1)
		return SQLITE_OK; /* NULL unless set */
	column = &table->desc->columns[number];

#define RESULT(type_)                                                                              \
	{                                                                                          \
		type_ v;                                                                           \
		memcpy(&v, cursor->row + column->offset, sizeof(v));                               \
		sqlite3_result_int64(context, (sqlite3_int64)v);                                   \
		break;                                                                             \
	}
	switch (column->type) {
	case NRP_T_u8:
		RESULT(uint8_t)
	case NRP_T_u16:
		RESULT(uint16_t)
	case NRP_T_u32:
		RESULT(uint32_t)
	case NRP_T_u64:
		RESULT(uint64_t)
	case NRP_T_i8:
		RESULT(int8_t)
	case NRP_T_i16:
		RESULT(int16_t)
	case NRP_T_i32:
		RESULT(int32_t)
	case NRP_T_i64:
		RESULT(int64_t)
	}
#undef RESULT
	return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct record_cursor *)base)->rowid;
	return SQLITE_OK;
}

/* No xCreate: the tables exist by their name alone and cannot be created in a file. */
static const sqlite3_module record_module = {
	.iVersion = 0,
	.xConnect = table_connect,
	.xBestIndex = table_best_index,
	.xDisconnect = table_disconnect,
	.xOpen = table_open,
	.xClose = table_close,
	.xFilter = table_filter,
	.xNext = table_next,
	.xEof = table_eof,
	.xColumn = table_column,
	.xRowid = table_rowid,
};

int nrp_register_tables(sqlite3 *db)
{
	for (int i = 0; i < NRP_NR_KINDS; i++) {
		const struct nrp_kind *desc = nrp_kind((enum nrp_record_kind)i);
		int r = sqlite3_create_module_v2(db, desc->name, &record_module, (void *)desc,
						 NULL);

		if (r != SQLITE_OK)
			return r;
	}
	return SQLITE_OK;
}

int nrp_store_register_tables(struct nrp_store *store, struct nrp_error *err)
{
	if (nrp_register_tables(store->db) != SQLITE_OK)
		return nrp_store_fail(store, err, "offer the records as tables");
	return 0;
}
