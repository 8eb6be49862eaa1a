/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/common.h"
#include "cli/csv.h"
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_CSV, OPT_KIND, OPT_OUTPUT, OPT_FROM, OPT_TO, OPT_CAPTURE };

static const struct cli_option options[] = {
	[OPT_CSV] = { "csv", 0, NULL, "comma-separated values (the default)" },
	[OPT_KIND] = { "kind", 0, "KIND", "only this kind of record; may be repeated" },
	[OPT_OUTPUT] = { "output", 'o', "DIR",
			 "a file per kind in this folder, instead of stdout" },
	[OPT_FROM] = { "from", 0, "TIME", "only records from this time on" },
	[OPT_TO] = { "to", 0, "TIME", "only records up to this time" },
	[OPT_CAPTURE] = { "capture", 0, "NAME|ID", "which capture, where there are several" },
	{ NULL, 0, NULL, NULL },
};

struct request {
	const char *path;
	struct nrp_store *store;
	struct nrp_capture capture;
	uint64_t from, to;  /* ns */
	const char *folder; /* NULL: stdout */
	bool wanted[NRP_NR_KINDS];
	bool named; /* kinds were asked for by name */
	struct csv csv;
	struct nrp_error err;
};

/* ---- options ------------------------------------------------------------------------ */

/* "N": ns as in column time; "+S": seconds from the first event. */
static enum nrp_status parse_time(const char *text, const struct nrp_capture *capture,
				  uint64_t *ret)
{
	double seconds;
	char *end;

	if (!text)
		return NRP_DONE;
	errno = 0;
	if (*text == '+') {
		seconds = strtod(text + 1, &end) * 1e9;
		if (end != text + 1 && !*end && seconds >= 0 &&
		    seconds < (double)(UINT64_MAX - capture->first_time)) {
			*ret = capture->first_time + (uint64_t)llround(seconds);
			return NRP_DONE;
		}
	} else if (*text >= '0' && *text <= '9') {
		*ret = strtoull(text, &end, 10);
		if (!*end && !errno)
			return NRP_DONE;
	}
	cli_error_text("'%s' is no time: give ns of the capture's clock, or +SECONDS from its "
		       "first event",
		       text);
	return NRP_USAGE;
}

static enum nrp_status choose_kinds(struct request *e, const struct cli_args *args)
{
	e->named = cli_given(args, OPT_KIND);
	for (int k = 0; k < NRP_NR_KINDS; k++)
		e->wanted[k] = !e->named;
	for (size_t i = 0; i < args->option[OPT_KIND].count; i++) {
		const char *name = args->option[OPT_KIND].value[i];
		int k = 0;

		while (k < NRP_NR_KINDS &&
		       strcmp(nrp_kind((enum nrp_record_kind)k)->name, name) != 0)
			k++;
		if (k == NRP_NR_KINDS) {
			cli_error_text("no kind of record '%s': numareplay info lists those of a "
				       "database",
				       name);
			return NRP_USAGE;
		}
		e->wanted[k] = true;
	}
	return NRP_DONE;
}

/* ---- rows --------------------------------------------------------------------------- */

static void put_names(struct csv *csv, const struct nrp_kind *kind)
{
	csv_text(csv, "capture_id");
	for (uint32_t i = 0; i < kind->nr_columns; i++)
		csv_text(csv, kind->columns[i].name);
	csv_end_row(csv);
}

static void put_value(struct csv *csv, const struct nrp_column *column, const uint8_t *row)
{
#define PUT(type_, is_signed)                                                                      \
	{                                                                                          \
		type_ v;                                                                           \
		memcpy(&v, row + column->offset, sizeof(v));                                       \
		csv_number(csv, (uint64_t)v, is_signed);                                           \
		break;                                                                             \
	}
	switch (column->type) {
	case NRP_T_u8:
		PUT(uint8_t, false)
	case NRP_T_u16:
		PUT(uint16_t, false)
	case NRP_T_u32:
		PUT(uint32_t, false)
	case NRP_T_u64:
		PUT(uint64_t, false)
	case NRP_T_i8:
		PUT(int8_t, true)
	case NRP_T_i16:
		PUT(int16_t, true)
	case NRP_T_i32:
		PUT(int32_t, true)
	case NRP_T_i64:
		PUT(int64_t, true)
	}
#undef PUT
}

static void put_row(struct request *e, const struct nrp_kind *kind, const void *row)
{
	uint64_t null;

	memcpy(&null, row, sizeof(null));
	csv_number(&e->csv, (uint64_t)e->capture.id, false);
	for (uint32_t i = 0; i < kind->nr_columns; i++) {
		if (null >> i & 1)
			csv_null(&e->csv);
		else
			put_value(&e->csv, &kind->columns[i], row);
	}
	csv_end_row(&e->csv);
}

static int put_rows(struct request *e, enum nrp_record_kind k)
{
	const struct nrp_kind *kind = nrp_kind(k);
	struct nrp_cursor *cursor;
	const void *row;
	int r = nrp_cursor_open_between(&cursor, e->store, e->capture.id, k, ~UINT64_C(0), e->from,
					e->to, &e->err);

	if (r < 0)
		return r;
	put_names(&e->csv, kind);
	while ((r = nrp_cursor_next(cursor, &row, &e->err)) > 0) {
		uint64_t time;

		/* The time is the first field of every row, behind its NULLs. */
		memcpy(&time, (const uint8_t *)row + kind->columns[0].offset, sizeof(time));
		if (time >= e->from && time <= e->to)
			put_row(e, kind, row);
	}
	nrp_cursor_close(cursor);
	return r;
}

/* The strings that records refer to by number. */
static int put_strings(struct request *e)
{
	sqlite3_stmt *s = nrp_store_prepare(
		e->store, "SELECT id, text FROM name WHERE capture_id = ? ORDER BY id", &e->err);
	int step, r = 0;

	if (!s)
		return -EBADMSG;
	sqlite3_bind_int64(s, 1, e->capture.id);
	csv_text(&e->csv, "id");
	csv_text(&e->csv, "text");
	csv_end_row(&e->csv);
	while ((step = sqlite3_step(s)) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(s, 1);

		csv_number(&e->csv, (uint64_t)sqlite3_column_int64(s, 0), true);
		csv_text(&e->csv, text ? text : "");
		csv_end_row(&e->csv);
	}
	if (step != SQLITE_DONE)
		r = nrp_store_fail(e->store, &e->err, "read the names");
	sqlite3_finalize(s);
	return r;
}

/* ---- files -------------------------------------------------------------------------- */

/* @k: the kind, NRP_NR_KINDS: the strings. */
static int put_set(struct request *e, int k)
{
	return k == NRP_NR_KINDS ? put_strings(e) : put_rows(e, (enum nrp_record_kind)k);
}

static int write_file(struct request *e, int k, const char *path)
{
	FILE *out;
	int r;

	if (cli_same_file(path, e->path))
		return nrp_fail(&e->err, NRP_USAGE, -EINVAL, path, -1, "name another folder",
				"is the database itself");
	out = fopen(path, "we");
	if (!out)
		return nrp_fail(&e->err, NRP_INTERNAL, -errno, path, -1,
				"name a folder that can be written", "cannot be created: %s",
				strerror(errno));
	csv_start(&e->csv, out);
	r = put_set(e, k);
	if (r == 0 && !csv_finish(&e->csv))
		r = nrp_fail(&e->err, NRP_INTERNAL, -EIO, path, -1,
			     "free some space, then try again", "cannot be written: %s",
			     strerror(errno));
	fclose(out);
	if (r < 0)
		unlink(path); /* half a file would look like a whole one */
	return r;
}

static int write_files(struct request *e, const bool *there)
{
	int r = 0;

	if (mkdir(e->folder, 0777) < 0 && errno != EEXIST)
		return nrp_fail(&e->err, NRP_INTERNAL, -errno, e->folder, -1,
				"name a folder that can be made", "cannot be made: %s",
				strerror(errno));
	for (int k = 0; r == 0 && k <= NRP_NR_KINDS; k++) {
		char *path;

		if (!there[k])
			continue;
		if (asprintf(&path, "%s/%s.csv", e->folder,
			     k == NRP_NR_KINDS ? "name" : nrp_kind((enum nrp_record_kind)k)->name) <
		    0)
			return nrp_fail_nomem(&e->err);
		r = write_file(e, k, path);
		free(path);
	}
	return r;
}

/* One set behind the other; where they are not all of a kind that was named, with their names. */
static int write_stdout(struct request *e, const bool *there)
{
	bool titles = false, first = true;
	int r = 0, sets = 0;

	for (int k = 0; k < NRP_NR_KINDS; k++)
		sets += there[k];
	titles = !e->named || sets > 1;
	for (int k = 0; r == 0 && k < NRP_NR_KINDS; k++) {
		if (!there[k])
			continue;
		if (titles)
			printf("%s# %s\n", first ? "" : "\n",
			       nrp_kind((enum nrp_record_kind)k)->name);
		first = false;
		csv_start(&e->csv, stdout);
		r = put_set(e, k);
		csv_finish(&e->csv); /* what fails is seen at the end of the program */
	}
	return r;
}

/* Kinds that were named are written even without rows, others only with rows. */
static int export_all(struct request *e)
{
	bool there[NRP_NR_KINDS + 1] = { false };
	int r = 0;

	for (int k = 0; r == 0 && k < NRP_NR_KINDS; k++) {
		uint64_t rows = 0;

		r = nrp_store_count(e->store, e->capture.id, (enum nrp_record_kind)k, &rows,
				    &e->err);
		there[k] = e->wanted[k] && (rows || e->named);
	}
	if (r < 0)
		return r;
	there[NRP_NR_KINDS] = !e->named;
	return e->folder ? write_files(e, there) : write_stdout(e, there);
}

static enum nrp_status run(const struct cli_args *args)
{
	struct request *e = calloc(1, sizeof(*e));
	enum nrp_status s;

	if (!e) {
		cli_error_text("out of memory");
		return NRP_INTERNAL;
	}
	e->path = args->file[0];
	e->folder = cli_value(args, OPT_OUTPUT);
	e->to = UINT64_MAX;
	e->err = (struct nrp_error)NRP_ERROR_INIT;
	s = choose_kinds(e, args);
	if (s == NRP_DONE)
		s = cli_open(&e->store, &e->capture, e->path, cli_value(args, OPT_CAPTURE),
			     NRP_STORE_READ);
	if (s == NRP_DONE) {
		s = parse_time(cli_value(args, OPT_FROM), &e->capture, &e->from);
		if (s == NRP_DONE)
			s = parse_time(cli_value(args, OPT_TO), &e->capture, &e->to);
		if (s == NRP_DONE && export_all(e) < 0)
			s = cli_error(&e->err);
		nrp_capture_clear(&e->capture);
		nrp_store_close(e->store);
	}
	free(e);
	return s;
}

const struct cli_command cli_export = {
	.name = "export",
	.synopsis = "DB [--csv] [--kind KIND ..] [-o DIR]",
	.summary = "write records as CSV, for programs that read no databases",
	.details =
		"Columns are those of the tables in query; column_doc there says what they mean.\n"
		"An empty field is NULL. TIME is ns of the capture's clock as in column time, or\n"
		"+SECONDS from the first event. All kinds that have records are written unless "
		"some\n"
		"are named: into DIR/KIND.csv and DIR/name.csv, or to stdout, each behind a line "
		"# KIND.",
	.min_files = 1,
	.max_files = 1,
	.options = options,
	.run = run,
};
