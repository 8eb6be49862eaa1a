/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/common.h"
#include "cli/csv.h"
#include "cli/options.h"
#include "numareplay/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON, OPT_STATS };

#define MAX_SQL (1 << 20)    /* bytes of a statement read from standard input */
#define MAX_VALUE (64 << 20) /* bytes of a value or row; a block of records is never larger */

static const struct cli_option options[] = {
	[OPT_JSON] = { "json", 0, NULL, "rows as a JSON array of objects instead of CSV" },
	[OPT_STATS] = { "stats", 0, NULL,
			"then print to stderr how many blocks were read, as JSON with --json" },
	{ NULL, 0, NULL, NULL },
};

static void put_csv_names(struct csv *csv, sqlite3_stmt *s)
{
	for (int i = 0; i < sqlite3_column_count(s); i++) {
		const char *name = sqlite3_column_name(s, i);

		csv_text(csv, name ? name : "");
	}
	csv_end_row(csv);
}

static void put_csv_row(struct csv *csv, sqlite3_stmt *s)
{
	for (int i = 0; i < sqlite3_column_count(s); i++)
		csv_value(csv, s, i);
	csv_end_row(csv);
}

/* JSON holds UTF-8 only: what is not gets question marks. */
static json_t *text_json(const char *text, size_t size)
{
	json_t *o = json_stringn(text, size);
	char *copy = o ? NULL : malloc(size + 1);

	if (copy) {
		memcpy(copy, text, size);
		copy[size] = '\0';
		/* A NUL ends what is cleaned, not the text. */
		for (size_t at = 0; at < size; at += strlen(copy + at) + 1)
			nrp_text_clean(copy + at);
		o = json_stringn(copy, size);
		free(copy);
	}
	return o;
}

static json_t *value_json(sqlite3_stmt *s, int i)
{
	double real;

	switch (sqlite3_column_type(s, i)) {
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(s, i));
	case SQLITE_FLOAT:
		real = sqlite3_column_double(s, i);
		return isfinite(real) ? json_real(real) : json_null(); /* JSON has no infinity */
	case SQLITE_TEXT:
		return text_json((const char *)sqlite3_column_text(s, i),
				 (size_t)sqlite3_column_bytes(s, i));
	case SQLITE_BLOB: {
		int n = sqlite3_column_bytes(s, i);
		const unsigned char *blob = sqlite3_column_blob(s, i);
		char *hex = malloc(2 * (size_t)n + 1);
		json_t *o;

		if (!hex)
			return NULL;
		for (int k = 0; k < n; k++)
			snprintf(hex + 2 * k, 3, "%02x", blob[k]);
		hex[2 * n] = '\0';
		o = json_string(hex);
		free(hex);
		return o;
	}
	default:
		return json_null();
	}
}

static json_t *row_json(sqlite3_stmt *s)
{
	json_t *row = json_object();

	for (int i = 0; i < sqlite3_column_count(s); i++)
		json_object_set_new(row, sqlite3_column_name(s, i), value_json(s, i));
	return row;
}

/* Prints the rows of one statement; SQLite's result code of the last step. */
static int print_csv(sqlite3_stmt *s)
{
	struct csv *csv = malloc(sizeof(*csv));
	int r;

	if (!csv)
		return SQLITE_NOMEM;
	csv_start(csv, stdout);
	if (sqlite3_column_count(s) > 0)
		put_csv_names(csv, s);
	while ((r = sqlite3_step(s)) == SQLITE_ROW)
		put_csv_row(csv, s);
	csv_finish(csv); /* what fails is seen at the end of the program */
	free(csv);
	return r;
}

static int print_json(sqlite3_stmt *s)
{
	json_t *rows = json_array();
	int r;

	while ((r = sqlite3_step(s)) == SQLITE_ROW)
		json_array_append_new(rows, row_json(s));
	if (sqlite3_column_count(s) > 0)
		cli_print_json(rows);
	else
		json_decref(rows);
	return r;
}

/* Pragmas that look something up in the schema; all others with an argument change a setting. */
static bool is_lookup(const char *pragma)
{
	static const char *const lookups[] = { "table_info",      "table_xinfo", "table_list",
					       "index_list",      "index_info",  "index_xinfo",
					       "foreign_key_list" };

	for (size_t i = 0; i < sizeof(lookups) / sizeof(lookups[0]); i++)
		if (!sqlite3_stricmp(pragma, lookups[i]))
			return true;
	return false;
}

/*
 * Only reading is allowed. That the file is opened read-only would not stop ATTACH and VACUUM INTO,
 * which write other files.
 */
static int authorize(void *context, int action, const char *first, const char *second,
		     const char *database, const char *trigger)
{
	(void)context;
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_FUNCTION:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_PRAGMA:
		return !second || is_lookup(first) ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_UPDATE: /* SQLite declares a virtual table so; a real one is no reader */
		return !strcmp(first, "sqlite_master") ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

/* Prints why SQLite refused a statement with @code. */
static enum nrp_status sql_error(struct nrp_store *store, int code, const char *sql,
				 const char *doing)
{
	sqlite3 *db = nrp_store_db(store);
	struct nrp_error err = NRP_ERROR_INIT;
	int at = sqlite3_error_offset(db);

	switch (code & 0xff) {
	case SQLITE_AUTH:
		cli_error_text("SQL: query reads only: give a SELECT");
		return NRP_USAGE;
	case SQLITE_TOOBIG:
		cli_error_text("SQL: a value is larger than %d MiB: ask for less at once",
			       MAX_VALUE >> 20);
		return NRP_USAGE;
	case SQLITE_ERROR:
		cli_error_text("SQL: %s%s%.40s", sqlite3_errmsg(db), at >= 0 ? " near: " : "",
			       at >= 0 ? sql + at : "");
		return NRP_USAGE;
	default:
		nrp_store_fail(store, &err, doing);
		return cli_error(&err);
	}
}

/* Statements in order; result sets are parted by an empty line. */
static enum nrp_status run_sql(struct nrp_store *store, const char *sql, bool json)
{
	bool first = true;

	while (*sql) {
		sqlite3_stmt *s = NULL;
		const char *tail;
		int r = sqlite3_prepare_v2(nrp_store_db(store), sql, -1, &s, &tail);

		if (r != SQLITE_OK)
			return sql_error(store, r, sql, "read");
		if (s && !first && !json)
			putchar('\n');
		if (s) { /* not a comment or blanks */
			first = false;
			r = !sqlite3_stmt_readonly(s) ? SQLITE_AUTH
			    : json                    ? print_json(s)
						      : print_csv(s);
			sqlite3_finalize(s);
			if (r != SQLITE_DONE)
				return sql_error(store, r, sql, "run the query");
		}
		sql = tail;
	}
	return NRP_DONE;
}

/*
 * How many blocks of records the queries read, and how many their conditions ruled out. On stderr:
 * what is on stdout stays the rows alone.
 */
static enum nrp_status print_stats(struct nrp_store *store, bool json)
{
	struct nrp_error err = NRP_ERROR_INIT;
	sqlite3_stmt *s =
		nrp_store_prepare(store, "SELECT nrp_blocks_read(), nrp_blocks_left_out()", &err);

	if (!s)
		return cli_error(&err);
	fflush(stdout);
	if (sqlite3_step(s) == SQLITE_ROW)
		fprintf(stderr,
			json ? "{\"schema\": \"numareplay.query_stats/1\", "
			       "\"blocks\": {\"read\": %lld, \"left_out\": %lld}}\n"
			     : "blocks: %lld read, %lld left out\n",
			(long long)sqlite3_column_int64(s, 0),
			(long long)sqlite3_column_int64(s, 1));
	sqlite3_finalize(s);
	return NRP_DONE;
}

static char *read_stdin(void)
{
	char *sql = malloc(MAX_SQL + 1);
	size_t n = sql ? fread(sql, 1, MAX_SQL, stdin) : 0;

	if (sql)
		sql[n] = '\0';
	return sql;
}

static enum nrp_status run(const struct cli_args *args)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	char *input = NULL;
	enum nrp_status s;

	if (nrp_store_open(&store, args->file[0], NRP_STORE_READ, &err) < 0)
		return cli_error(&err);
	if (nrp_store_register_tables(store, &err) < 0) {
		s = cli_error(&err);
	} else {
		sqlite3_set_authorizer(nrp_store_db(store), authorize, NULL);
		sqlite3_limit(nrp_store_db(store), SQLITE_LIMIT_LENGTH, MAX_VALUE);
		if (args->files < 2)
			input = read_stdin();
		s = run_sql(store, args->files < 2 ? input ? input : "" : args->file[1],
			    cli_given(args, OPT_JSON));
		free(input);
		if (s == NRP_DONE && cli_given(args, OPT_STATS))
			s = print_stats(store, cli_given(args, OPT_JSON));
	}
	nrp_store_close(store);
	return s;
}

const struct cli_command cli_query = {
	.name = "query",
	.synopsis = "DB [SQL]",
	.summary = "run SQL over results and records (from standard input without SQL)",
	.details =
		"Every record kind is a table: hint_fault, scan_pass, scan_range, migration, ..\n"
		"column_doc says what their columns mean.\n"
		"Example: numareplay query DB \"SELECT this_nid, src_nid, count(*) FROM "
		"hint_fault\n"
		"GROUP BY 1, 2\". Output is CSV, one empty line between result sets.",
	.min_files = 1,
	.max_files = 2,
	.options = options,
	.run = run,
};
