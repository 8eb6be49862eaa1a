/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/common.h"
#include "cli/csv.h"
#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
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

/* A file of the output; NULL: none. */
struct file {
	char *path;    /* its name */
	char *written; /* its name until all files are whole */
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

static void put_row(struct request *e, const struct nrp_kind *kind, const void *row)
{
	uint64_t null;

	memcpy(&null, row, sizeof(null));
	csv_number(&e->csv, (uint64_t)e->capture.id, false);
	for (uint32_t i = 0; i < kind->nr_columns; i++) {
		const struct nrp_column *column = &kind->columns[i];

		if (null >> i & 1)
			csv_null(&e->csv);
		else
			csv_number(&e->csv, nrp_column_value(column, row),
				   nrp_column_is_signed(column));
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
		csv_value(&e->csv, s, 0);
		csv_value(&e->csv, s, 1);
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

/*
 * Files are written under other names in the same folder, and get their own when all of them are
 * whole: a file that was there, or what a link means, is not touched before.
 */
static int name_file(struct request *e, struct file *file, const char *name)
{
	struct stat st;

	if (asprintf(&file->path, "%s/%s.csv", e->folder, name) < 0)
		file->path = NULL;
	else if (asprintf(&file->written, "%s/.%s.csv.%ld", e->folder, name, (long)getpid()) < 0)
		file->written = NULL;
	if (!file->path || !file->written)
		return nrp_fail_nomem(&e->err);
	if (cli_same_file(file->path, e->path))
		return nrp_fail(&e->err, NRP_USAGE, -EINVAL, file->path, -1, "name another folder",
				"is the database itself");
	if (lstat(file->path, &st) == 0 && S_ISDIR(st.st_mode))
		return cli_fail_output(&e->err, file->path, EISDIR);
	return 0;
}

static int write_file(struct request *e, int k, struct file *file)
{
	int fd, r = name_file(e, file,
			      k == NRP_NR_KINDS ? "name" : nrp_kind((enum nrp_record_kind)k)->name);
	FILE *out;

	if (r < 0)
		return r;
	unlink(file->written); /* of a process that had our number, and was killed */
	fd = open(file->written, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		r = cli_fail_output(&e->err, file->path, errno);
		if (fd >= 0)
			close(fd);
		return r;
	}
	csv_start(&e->csv, out);
	errno = 0;
	r = put_set(e, k);
	if (r == 0 && !csv_finish(&e->csv))
		r = cli_fail_output(&e->err, file->path, errno ? errno : EIO);
	if (fclose(out) != 0 && r == 0)
		r = cli_fail_output(&e->err, file->path, errno);
	return r;
}

/* Gives the files their names if all went well (@r), and removes what has none then. */
static int end_files(struct request *e, struct file *files, int r)
{
	for (int k = 0; k <= NRP_NR_KINDS; k++) {
		struct file *file = &files[k];

		if (r == 0 && file->written && rename(file->written, file->path) < 0)
			r = cli_fail_output(&e->err, file->path, errno);
		if (r < 0 && file->written)
			unlink(file->written);
		free(file->written);
		free(file->path);
	}
	return r;
}

static int write_files(struct request *e, const bool *there)
{
	struct file files[NRP_NR_KINDS + 1] = { { NULL, NULL } };
	bool made = mkdir(e->folder, 0777) == 0;
	int r = 0;

	if (!made && errno != EEXIST)
		return cli_fail_output(&e->err, e->folder, errno);
	for (int k = 0; r == 0 && k <= NRP_NR_KINDS; k++)
		if (there[k])
			r = write_file(e, k, &files[k]);
	r = end_files(e, files, r);
	if (r < 0 && made)
		rmdir(e->folder);
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
		if (s == NRP_DONE && e->from > e->to) {
			cli_error_text("--from is later than --to: exchange them");
			s = NRP_USAGE;
		}
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
