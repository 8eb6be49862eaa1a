/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table column_doc: what the columns of the record kinds mean, as record.h says it. */
#include "schema/internal.h"

#include <stdlib.h>

struct doc_cursor {
	sqlite3_vtab_cursor base;
	int kind;
	uint32_t column;
};

enum { DOC_KIND, DOC_KIND_DOC, DOC_NUMBER, DOC_NAME, DOC_TYPE, DOC_UNIT, DOC_NULL, DOC_SOURCE };

static int doc_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
		       sqlite3_vtab **ret, char **ret_error)
{
	int r = sqlite3_declare_vtab(
		db, "CREATE TABLE x(kind TEXT, kind_doc TEXT, number INTEGER, name TEXT, "
		    "type TEXT, unit TEXT, null_means TEXT, source TEXT)");

	(void)aux;
	(void)argc;
	(void)argv;
	(void)ret_error;
	if (r != SQLITE_OK)
		return r;
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	*ret = calloc(1, sizeof(**ret));
	return *ret ? SQLITE_OK : SQLITE_NOMEM;
}

static int doc_disconnect(sqlite3_vtab *table)
{
	free(table);
	return SQLITE_OK;
}

static int doc_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	info->estimatedRows = 250;
	info->estimatedCost = 250;
	return SQLITE_OK;
}

static int doc_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	struct doc_cursor *cursor = calloc(1, sizeof(*cursor));

	(void)table;
	if (!cursor)
		return SQLITE_NOMEM;
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int doc_close(sqlite3_vtab_cursor *base)
{
	free(base);
	return SQLITE_OK;
}

static int doc_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
		      sqlite3_value **argv)
{
	struct doc_cursor *cursor = (struct doc_cursor *)base;

	(void)idx_num;
	(void)idx_str;
	(void)argc;
	(void)argv;
	cursor->kind = 0;
	cursor->column = 0;
	return SQLITE_OK;
}

static int doc_next(sqlite3_vtab_cursor *base)
{
	struct doc_cursor *cursor = (struct doc_cursor *)base;

	if (++cursor->column == nrp_kind((enum nrp_record_kind)cursor->kind)->nr_columns) {
		cursor->kind++;
		cursor->column = 0;
	}
	return SQLITE_OK;
}

static int doc_eof(sqlite3_vtab_cursor *base)
{
	return ((struct doc_cursor *)base)->kind == NRP_NR_KINDS;
}

static const char *type_name(enum nrp_column_type type)
{
	static const char *const names[] = {
		[NRP_T_u8] = "u8", [NRP_T_u16] = "u16", [NRP_T_u32] = "u32", [NRP_T_u64] = "u64",
		[NRP_T_i8] = "i8", [NRP_T_i16] = "i16", [NRP_T_i32] = "i32", [NRP_T_i64] = "i64",
	};

	return names[type];
}

static int doc_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	const struct doc_cursor *cursor = (const struct doc_cursor *)base;
	const struct nrp_kind *kind = nrp_kind((enum nrp_record_kind)cursor->kind);
	const struct nrp_column *column = &kind->columns[cursor->column];
	const char *const texts[] = {
		[DOC_KIND] = kind->name,       [DOC_KIND_DOC] = kind->doc,
		[DOC_NAME] = column->name,     [DOC_TYPE] = type_name(column->type),
		[DOC_UNIT] = column->unit,     [DOC_NULL] = column->null,
		[DOC_SOURCE] = column->source,
	};

	if (number == DOC_NUMBER)
		sqlite3_result_int64(context, cursor->column);
	else
		sqlite3_result_text(context, texts[number], -1, SQLITE_STATIC);
	return SQLITE_OK;
}

static int doc_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	const struct doc_cursor *cursor = (const struct doc_cursor *)base;

	*ret = cursor->kind * INT64_C(64) + cursor->column;
	return SQLITE_OK;
}

static const sqlite3_module doc_module = {
	.iVersion = 0,
	.xConnect = doc_connect,
	.xBestIndex = doc_best_index,
	.xDisconnect = doc_disconnect,
	.xOpen = doc_open,
	.xClose = doc_close,
	.xFilter = doc_filter,
	.xNext = doc_next,
	.xEof = doc_eof,
	.xColumn = doc_column,
	.xRowid = doc_rowid,
};

int nrp_register_column_doc(sqlite3 *db)
{
	return sqlite3_create_module_v2(db, "column_doc", &doc_module, NULL, NULL);
}
