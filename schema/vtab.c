/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record kinds as eponymous-only virtual tables: hint_fault, scan_pass, ...
 *
 * Column 0 is capture_id, then the kind's columns (record.h). NULL is NULL. SQL integers are
 * signed: an unsigned 64-bit value of 2^63 or more (kernel addresses and pointers) comes out as the
 * negative number with the same bits; printf('%x', addr) shows it as the kernel prints it.
 *
 * Comparisons of columns with values choose the blocks that are read at all; SQLite tests every row
 * again.
 */
#include "schema/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the tables of a connection share; freed with the last of its modules and functions. */
struct tables {
	int users;
	struct nrp_block_counts counts;
	/* What a module is given: its kind, and by way of its number the object it lies in. */
	struct kind_table {
		struct tables *tables;
		enum nrp_record_kind kind;
	} kinds[NRP_NR_KINDS];
};

struct record_table {
	sqlite3_vtab base;
	sqlite3 *db;
	struct nrp_block_counts *counts;
	enum nrp_record_kind kind;
	const struct nrp_kind *desc;
	double rows; /* estimate, from when the table was first used */
};

/* Comparisons that are handed down; more than these only choose rows. */
#define MAX_BOUNDS 16

struct record_cursor {
	sqlite3_vtab_cursor base;
	struct nrp_cursor *cursor; /* over one capture; NULL: at the end */
	sqlite3_stmt *captures;    /* the captures still to be read */
	int64_t capture_id;
	uint64_t columns;
	struct nrp_bound bounds[MAX_BOUNDS + 1]; /* of distinct columns, the time first */
	size_t nr_bounds;
	const uint8_t *row;
};

#define COLUMN_CAPTURE 0

static const char *db_path(sqlite3 *db)
{
	const char *path = sqlite3_db_filename(db, "main");

	return path ? path : "";
}

/* Declares the table's columns to SQLite. */
static int declare(sqlite3 *db, const struct nrp_kind *desc)
{
	sqlite3_str *sql = sqlite3_str_new(db);
	char *text;
	int r;

	sqlite3_str_appendall(sql, "CREATE TABLE x(\"capture_id\" INTEGER");
	for (uint32_t i = 0; i < desc->nr_columns; i++)
		sqlite3_str_appendf(sql, ", \"%w\" INTEGER", desc->columns[i].name);
	sqlite3_str_appendchar(sql, 1, ')');
	text = sqlite3_str_finish(sql);
	if (!text)
		return SQLITE_NOMEM;
	r = sqlite3_declare_vtab(db, text);
	sqlite3_free(text);
	if (r == SQLITE_OK)
		sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	return r;
}

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			 sqlite3_vtab **ret, char **ret_error)
{
	struct kind_table *kind = aux;
	struct nrp_error err = NRP_ERROR_INIT;
	struct record_table *table;
	int64_t rows = 0;
	char *text;
	int r;

	(void)argc;
	(void)argv;
	if (nrp_db_check_version(db, db_path(db), &err) < 0) {
		*ret_error = sqlite3_mprintf("the database %s: %s", err.what, err.remedy);
		return SQLITE_ERROR;
	}
	r = declare(db, nrp_kind(kind->kind));
	if (r != SQLITE_OK)
		return r;
	table = calloc(1, sizeof(*table));
	if (!table)
		return SQLITE_NOMEM;
	table->db = db;
	table->counts = &kind->tables->counts;
	table->kind = kind->kind;
	table->desc = nrp_kind(kind->kind);
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

/* How a comparison is written in idxStr; 0: it is not handed down. */
static char operator_of(sqlite3_index_info *info, int i)
{
	const struct sqlite3_index_constraint *c = &info->aConstraint[i];

	if (!c->usable || c->iColumn < 0)
		return 0;
	switch (c->op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		/* A list of values is handed over as one, so that the table is read once. */
		if (c->iColumn != COLUMN_CAPTURE && sqlite3_vtab_in(info, i, 1))
			return 'i';
		return '=';
	case SQLITE_INDEX_CONSTRAINT_GT:
		return '>';
	case SQLITE_INDEX_CONSTRAINT_GE:
		return 'g';
	case SQLITE_INDEX_CONSTRAINT_LT:
		return '<';
	case SQLITE_INDEX_CONSTRAINT_LE:
		return 'l';
	default:
		return 0;
	}
}

static int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct record_table *table = (const struct record_table *)base;
	double rows = table->rows > 1 ? table->rows : 1;
	sqlite3_str *text = sqlite3_str_new(table->db);
	int args = 0;

	sqlite3_str_appendf(text, "%llx", (unsigned long long)info->colUsed);
	for (int i = 0; i < info->nConstraint && args < MAX_BOUNDS; i++) {
		char op = operator_of(info, i);

		if (!op || (info->aConstraint[i].iColumn == COLUMN_CAPTURE && op != '='))
			continue;
		sqlite3_str_appendf(text, " %c%d", op, info->aConstraint[i].iColumn);
		info->aConstraintUsage[i].argvIndex = ++args;
		rows /= info->aConstraint[i].iColumn == COLUMN_CAPTURE ? 2 : 4;
	}
	info->idxStr = sqlite3_str_finish(text);
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
	return nrp_cursor_open_bounded(&cursor->cursor, table->db, db_path(table->db),
				       cursor->capture_id, table->kind, cursor->columns,
				       cursor->bounds, cursor->nr_bounds, table->counts, err);
}

/* Is the current row's time in the range? Rows outside would only be thrown away by SQLite. */
static bool in_range(const struct record_cursor *cursor, const uint8_t *row)
{
	const struct record_table *table = (const struct record_table *)cursor->base.pVtab;
	uint64_t time;

	memcpy(&time, row + table->desc->columns[0].offset, sizeof(time));
	return nrp_to_sql(time) >= cursor->bounds[0].lo && nrp_to_sql(time) <= cursor->bounds[0].hi;
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
			return SQLITE_OK;
		}
		if (r < 0)
			return fail(cursor, &err);
	}
	end_scan(cursor);
	return SQLITE_OK;
}

/*
 * Narrows @bound to a number from below, from above, or both; the result may be too wide by one
 * (SQLite tests again), never too narrow. False: nothing can satisfy it. Anything but a number is
 * left to SQLite.
 */
static bool narrow(struct nrp_bound *bound, sqlite3_value *value, bool from, bool to)
{
	int64_t lo, hi;
	double real;

	switch (sqlite3_value_type(value)) {
	case SQLITE_NULL:
		return false;
	case SQLITE_INTEGER:
		lo = hi = sqlite3_value_int64(value);
		break;
	case SQLITE_FLOAT:
		real = sqlite3_value_double(value);
		if (real >= 9223372036854775807.0)
			return !from;
		if (real < -9223372036854775808.0)
			return !to;
		/* Truncation may go either way; beyond 2^53 the neighbours are further apart. */
		lo = hi = (int64_t)real;
		lo -= lo > INT64_MIN;
		hi += hi < INT64_MAX;
		break;
	default:
		return true;
	}
	if (from && lo > bound->lo)
		bound->lo = lo;
	if (to && hi < bound->hi)
		bound->hi = hi;
	return bound->lo <= bound->hi;
}

/* The same for one comparison. */
static bool narrow_by(struct nrp_bound *bound, char op, sqlite3_value *value)
{
	bool integer = sqlite3_value_type(value) == SQLITE_INTEGER;
	bool above = integer && op == '>', below = integer && op == '<';

	if (!narrow(bound, value, op != '<' && op != 'l', op != '>' && op != 'g'))
		return false;
	above = above && bound->lo == sqlite3_value_int64(value);
	below = below && bound->hi == sqlite3_value_int64(value);
	if ((above || below) && bound->lo == bound->hi)
		return false;
	bound->lo += above;
	bound->hi -= below;
	return true;
}

/* Narrows @bound to what lies between the smallest and the largest value of a list. */
static bool narrow_to_list(struct nrp_bound *bound, sqlite3_value *list)
{
	struct nrp_bound whole = { .lo = INT64_MIN, .hi = INT64_MAX }, around = { 0 };
	sqlite3_value *value;
	bool some = false;
	int r;

	for (r = sqlite3_vtab_in_first(list, &value); r == SQLITE_OK;
	     r = sqlite3_vtab_in_next(list, &value)) {
		struct nrp_bound one = whole;

		if (!narrow(&one, value, true, true))
			continue;
		around.lo = !some || one.lo < around.lo ? one.lo : around.lo;
		around.hi = !some || one.hi > around.hi ? one.hi : around.hi;
		some = true;
	}
	if (r != SQLITE_DONE)
		return true; /* not read to its end: nothing is known */
	if (some && around.lo > bound->lo)
		bound->lo = around.lo;
	if (some && around.hi < bound->hi)
		bound->hi = around.hi;
	return some && bound->lo <= bound->hi;
}

/* The bound of a column, a new one if it has none yet. */
static struct nrp_bound *bound_of(struct record_cursor *cursor, int column)
{
	struct nrp_bound *bound = cursor->bounds;

	for (size_t i = 0; i < cursor->nr_bounds; i++, bound++)
		if (bound->column == column)
			return bound;
	cursor->nr_bounds++;
	*bound = (struct nrp_bound){ .column = column, .lo = INT64_MIN, .hi = INT64_MAX };
	return bound;
}

/*
 * Takes the comparisons of idxStr. *ret_capture: the capture_id that is asked for. False: no row
 * satisfies them all.
 */
static bool take_bounds(struct record_cursor *cursor, const char *text, sqlite3_value **argv,
			sqlite3_value **ret_capture)
{
	bool possible = true;
	int column, length;
	char op;

	cursor->nr_bounds = 0;
	bound_of(cursor, 0);
	for (; sscanf(text, " %c%d%n", &op, &column, &length) == 2; text += length, argv++) {
		if (column == COLUMN_CAPTURE)
			*ret_capture = *argv;
		else if (op == 'i')
			possible &= narrow_to_list(bound_of(cursor, column - 1), *argv);
		else
			possible &= narrow_by(bound_of(cursor, column - 1), op, *argv);
	}
	return possible;
}

/*
 * idxStr: sqlite3's colUsed in hexadecimal, bit 0 being capture_id; then, for each value of argv, a
 * blank, how it is compared (= value, > or >= it, < or <= it, i: in the list of values), and the
 * SQL column.
 */
static int table_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
			sqlite3_value **argv)
{
	struct record_cursor *cursor = (struct record_cursor *)base;
	const struct record_table *table = (const struct record_table *)base->pVtab;
	struct nrp_error err = NRP_ERROR_INIT;
	sqlite3_value *capture = NULL;
	char *comparisons;
	uint64_t used = strtoull(idx_str, &comparisons, 16);

	(void)idx_num;
	(void)argc;
	end_scan(cursor);
	/* Bit 63 of colUsed stands for SQL column 63 and all behind it. */
	cursor->columns = used >> 1 | (used >> 63 ? ~UINT64_C(0) << 62 : 0);
	if (!take_bounds(cursor, comparisons, argv, &capture))
		return SQLITE_OK;
	if (nrp_db_prepare(table->db, db_path(table->db),
			   capture ? "SELECT id FROM main.capture WHERE id = ? ORDER BY id"
				   : "SELECT id FROM main.capture ORDER BY id",
			   &cursor->captures, &err) < 0)
		return fail(cursor, &err);
	/* SQLite compares as it does for any other column. */
	if (capture)
		sqlite3_bind_value(cursor->captures, 1, capture);
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
	sqlite3_result_int64(context, nrp_to_sql(nrp_column_value(column, cursor->row)));
	return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	/* SQLite tells rows of different scans apart by it, for OR. */
	*ret = nrp_cursor_rowid(((struct record_cursor *)base)->cursor);
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

static void put_tables(struct tables *tables)
{
	if (--tables->users == 0)
		free(tables);
}

static void put_kind(void *kind)
{
	put_tables(((struct kind_table *)kind)->tables);
}

static void put_function(void *tables)
{
	put_tables(tables);
}

static void blocks_read(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct tables *tables = sqlite3_user_data(context);

	(void)argc;
	(void)argv;
	sqlite3_result_int64(context, (sqlite3_int64)tables->counts.read);
}

static void blocks_left_out(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct tables *tables = sqlite3_user_data(context);

	(void)argc;
	(void)argv;
	sqlite3_result_int64(context, (sqlite3_int64)tables->counts.left_out);
}

/* SQLite calls the destructor of what it does not take, too. */
static int register_all(sqlite3 *db, struct tables *tables)
{
	int r = SQLITE_OK;

	for (int i = 0; r == SQLITE_OK && i < NRP_NR_KINDS; i++) {
		struct kind_table *kind = &tables->kinds[i];

		*kind = (struct kind_table){ tables, (enum nrp_record_kind)i };
		tables->users++;
		r = sqlite3_create_module_v2(db, nrp_kind(kind->kind)->name, &record_module, kind,
					     put_kind);
	}
	if (r == SQLITE_OK) {
		tables->users++;
		r = sqlite3_create_function_v2(db, "nrp_blocks_read", 0, SQLITE_UTF8, tables,
					       blocks_read, NULL, NULL, put_function);
	}
	if (r == SQLITE_OK) {
		tables->users++;
		r = sqlite3_create_function_v2(db, "nrp_blocks_left_out", 0, SQLITE_UTF8, tables,
					       blocks_left_out, NULL, NULL, put_function);
	}
	return r == SQLITE_OK ? nrp_register_column_doc(db) : r;
}

int nrp_register_tables(sqlite3 *db)
{
	struct tables *tables = calloc(1, sizeof(*tables));
	int r;

	if (!tables)
		return SQLITE_NOMEM;
	tables->users = 1; /* until all are registered */
	r = register_all(db, tables);
	put_tables(tables);
	return r;
}
