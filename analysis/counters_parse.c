/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Texts of counters. Three forms, told apart by the lines they are made of:
 *   /proc/vmstat	name value [comment]
 *   perf stat		count event [comment]; headings and times around it
 *   table		name before after [change]; the words of a mail around it
 */
#include "analysis/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TEXT (16 << 20) /* bytes; a /proc/vmstat is 4 KB */
#define MAX_FIELDS 6        /* a table line has up to five; more make a line something else */
#define KNOWN_WEIGHT 1000   /* a line with a known counter tells more than one of prose */

#define REMEDY_FORM "give /proc/vmstat, the output of perf stat, or a table: name before after"

struct field {
	const char *at;
	size_t length;
};

struct text_line {
	const char *at;
	size_t length;
	struct field field[MAX_FIELDS + 1];
	size_t fields;
};

struct parser {
	const char *path, *text;
	size_t size;
	struct nrp_counters_file file;
	size_t room;
	struct nrp_error *err;
};

bool nrp_counter_is_known(const char *name)
{
	static const char *const prefixes[] = {
		"numa_",           "pgmigrate_",   "pgpromote_",       "pgdemote_",
		"thp_migration_",  "sched:sched_", "sched_move_numa",  "sched_stick_numa",
		"sched_swap_numa", "migrate:",     "mm_migrate_pages", "mm_numa_migrate_ratelimit",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

const char *nrp_counters_kind_name(enum nrp_counters_kind kind)
{
	static const char *const names[] = { "vmstat", "perf", "table" };

	return names[kind];
}

void nrp_counters_file_clear(struct nrp_counters_file *file)
{
	free(file->line);
	file->line = NULL;
	file->nr_lines = 0;
}

/* ---- lines and fields --------------------------------------------------------------- */

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/* ASCII whatever the locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Does a comment begin here: "#" or "//"? */
static bool comment(const char *p, const char *end)
{
	return *p == '#' || (*p == '/' && p + 1 < end && p[1] == '/');
}

static bool field_is(struct field f, const char *text)
{
	return f.length == strlen(text) && !memcmp(f.at, text, f.length);
}

/* Splits at blanks. "<not counted>" is one field; marks of quoting in a mail are none. */
static void split(struct text_line *line)
{
	const char *p = line->at, *end = line->at + line->length;

	line->fields = 0;
	while (p < end && (blank(*p) || *p == '>'))
		p++;
	while (p < end && line->fields <= MAX_FIELDS) {
		struct field *f = &line->field[line->fields];
		char stop = *p == '<' && memchr(p, '>', (size_t)(end - p)) ? '>' : ' ';

		if (comment(p, end))
			break;
		f->at = p;
		while (p < end && (stop == '>' ? *p != '>' : !blank(*p)))
			p++;
		if (stop == '>')
			p++;
		f->length = (size_t)(p - f->at);
		line->fields++;
		while (p < end && blank(*p))
			p++;
	}
}

/* The line that begins at *at; moves *at behind it. */
static bool next_line(const struct parser *p, size_t *at, struct text_line *ret)
{
	const char *end;

	if (*at >= p->size)
		return false;
	ret->at = p->text + *at;
	end = memchr(ret->at, '\n', p->size - *at);
	ret->length = end ? (size_t)(end - ret->at) : p->size - *at;
	*at += ret->length + 1;
	split(ret);
	return true;
}

static bool name_like(struct field f)
{
	if (!f.length || f.length >= NRP_COUNTER_NAME || !(is_letter(f.at[0]) || f.at[0] == '_'))
		return false;
	for (size_t i = 0; i < f.length; i++)
		if (!is_letter(f.at[i]) && !is_digit(f.at[i]) && !strchr("_:/.,=-@*?{}", f.at[i]))
			return false;
	return f.at[f.length - 1] != ':'; /* a label, no name */
}

static bool known_field(struct field f)
{
	char name[NRP_COUNTER_NAME];

	if (f.length >= sizeof(name))
		return false;
	memcpy(name, f.at, f.length);
	name[f.length] = '\0';
	return nrp_counter_is_known(name);
}

enum number { NOT_A_NUMBER, NO_COUNT, INTEGER, FRACTION };

/* Digits, bare or with a comma before every three. Moves *at; false: neither. */
static bool digits(struct field f, size_t *at, uint64_t *ret, bool *overflow)
{
	size_t start = *at, group = start;

	*ret = 0;
	*overflow = false;
	for (; *at < f.length; ++*at) {
		char c = f.at[*at];

		if (c == ',') {
			size_t n = *at - group;

			if (group == start ? n < 1 || n > 3 : n != 3)
				return false;
			group = *at + 1;
			continue;
		}
		if (!is_digit(c))
			break;
		*overflow |= __builtin_mul_overflow(*ret, (uint64_t)10, ret);
		*overflow |= __builtin_add_overflow(*ret, (uint64_t)(c - '0'), ret);
	}
	return *at > group && (group == start || *at - group == 3);
}

static enum number parse_number(struct field f, struct nrp_count *ret)
{
	bool negative = f.length && f.at[0] == '-', overflow;
	size_t at = negative || (f.length && f.at[0] == '+') ? 1 : 0;
	uint64_t magnitude;

	*ret = (struct nrp_count){ 0, NRP_COUNT_NOT_COUNTED };
	if (field_is(f, "<not counted>") || field_is(f, "<not supported>"))
		return NO_COUNT;
	if (!digits(f, &at, &magnitude, &overflow))
		return NOT_A_NUMBER;
	if (at + 1 < f.length && f.at[at] == '.') {
		at++;
		while (at < f.length && is_digit(f.at[at]))
			at++;
		return at == f.length ? FRACTION : NOT_A_NUMBER;
	}
	if (at != f.length)
		return NOT_A_NUMBER;
	if (overflow || magnitude > INT64_MAX) {
		ret->state = NRP_COUNT_OUT_OF_RANGE;
		return INTEGER;
	}
	ret->value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	ret->state = NRP_COUNT_KNOWN;
	return INTEGER;
}

static bool counts(struct field f, struct nrp_count *ret)
{
	enum number n = parse_number(f, ret);

	return n == INTEGER || n == NO_COUNT;
}

/* ---- the three forms ---------------------------------------------------------------- */

static bool snapshot_line(const struct text_line *line, struct nrp_counters_line *ret)
{
	return line->fields == 2 && name_like(line->field[0]) &&
	       parse_number(line->field[1], &ret->count[0]) == INTEGER;
}

/* "-6.15", "+170%", "%": the fourth column, which follows from the others. */
static bool change(struct field f)
{
	struct nrp_count unused;

	if (f.length && f.at[f.length - 1] == '%')
		f.length--;
	return !f.length || parse_number(f, &unused) != NOT_A_NUMBER;
}

static bool table_line(const struct text_line *line, struct nrp_counters_line *ret)
{
	if (line->fields < 3 || line->fields > 5 || !name_like(line->field[0]))
		return false;
	for (size_t i = 3; i < line->fields; i++)
		if (!change(line->field[i]))
			return false;
	return counts(line->field[1], &ret->count[0]) && counts(line->field[2], &ret->count[1]);
}

static bool is_unit(struct field f)
{
	static const char *const units[] = { "msec", "ns", "Joules", "C", "Bytes", "KiB", "MiB" };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (field_is(f, units[i]))
			return true;
	return false;
}

/* "(83.20%)" of a counter that did not run all the time, "( +- 1.2% )" of an average. */
static bool estimated(const struct text_line *line)
{
	const char *p = line->at, *end = line->at + line->length;

	while (p < end && (p = memchr(p, '(', (size_t)(end - p)))) {
		static const char all[] = "100.00%";

		p++;
		while (p < end && blank(*p))
			p++;
		if (p < end && *p == '+')
			return true;
		if (p < end && is_digit(*p) &&
		    ((size_t)(end - p) < strlen(all) || memcmp(p, all, strlen(all)) != 0))
			return true;
	}
	return false;
}

/* The field with the name; 0: no line of perf stat. */
static size_t perf_line(const struct text_line *line, struct nrp_counters_line *ret)
{
	size_t name = 1;

	if (line->fields < 2 || !counts(line->field[0], &ret->count[0]))
		return 0;
	if (line->fields > 2 && is_unit(line->field[1]))
		name = 2;
	if (!name_like(line->field[name]))
		return 0;
	if (ret->count[0].state == NRP_COUNT_KNOWN && estimated(line))
		ret->count[0] = (struct nrp_count){ 0, NRP_COUNT_ESTIMATED };
	return name;
}

/* Reads @line in the form @kind; false: it has another. */
static bool take(const struct text_line *line, enum nrp_counters_kind kind,
		 struct nrp_counters_line *ret)
{
	size_t name = 0;
	bool ok;

	memset(ret, 0, sizeof(*ret));
	if (kind == NRP_COUNTERS_SNAPSHOT) {
		ok = snapshot_line(line, ret);
	} else if (kind == NRP_COUNTERS_TABLE) {
		ok = table_line(line, ret);
	} else {
		name = perf_line(line, ret);
		ok = name > 0;
	}
	if (ok)
		memcpy(ret->name, line->field[name].at, line->field[name].length);
	return ok;
}

/* ---- a file ------------------------------------------------------------------------- */

static int bad(struct parser *p, const char *at, const char *remedy, const char *what)
{
	return nrp_fail(p->err, NRP_INPUT, -EBADMSG, p->path, at - p->text, remedy, "%s", what);
}

static int check_text(struct parser *p)
{
	if (!p->size)
		return nrp_fail(p->err, NRP_INPUT, -EBADMSG, p->path, -1, REMEDY_FORM, "is empty");
	for (size_t i = 0; i < p->size; i++) {
		unsigned char c = (unsigned char)p->text[i];

		if (c < ' ' && c != '\n' && !blank((char)c))
			return bad(p, p->text + i, REMEDY_FORM,
				   "binary data, not a text of counters");
	}
	return 0;
}

static bool mentions_known(const struct text_line *line)
{
	for (size_t i = 0; i < line->fields; i++)
		if (known_field(line->field[i]))
			return true;
	return false;
}

/* The form that most lines have; -1: none. Where perf stat begins is put into *ret_start. */
static int recognise(const struct parser *p, size_t *ret_start)
{
	static const enum nrp_counters_kind order[] = { NRP_COUNTERS_TABLE, NRP_COUNTERS_SNAPSHOT,
							NRP_COUNTERS_PERF };
	size_t score[3] = { 0 }, at = 0, start = 0, line_at = 0;
	struct nrp_counters_line unused;
	struct text_line line;
	int best = -1;

	for (; next_line(p, &at, &line); line_at = at) {
		if (!start && line.fields > 2 && field_is(line.field[0], "Performance") &&
		    field_is(line.field[1], "counter") && field_is(line.field[2], "stats"))
			start = line_at;
		for (size_t k = 0; k < 3; k++)
			if (take(&line, order[k], &unused))
				score[k] += nrp_counter_is_known(unused.name) ? KNOWN_WEIGHT : 1;
	}
	for (int k = 0; k < 3; k++)
		if (score[k] && (best < 0 || score[k] > score[best]))
			best = k;
	if (best < 0)
		return -1;
	*ret_start = order[best] == NRP_COUNTERS_PERF ? start : 0;
	return (int)order[best];
}

static int add(struct parser *p, const struct nrp_counters_line *line, const char *at)
{
	struct nrp_counters_file *f = &p->file;

	for (size_t i = 0; i < 2; i++)
		if (line->count[i].value < 0 && nrp_counter_is_known(line->name))
			return bad(p, at, "give the counts as they were read",
				   "a negative number of events");
	for (size_t i = 0; i < f->nr_lines; i++)
		if (!strcmp(f->line[i].name, line->name))
			return nrp_fail(p->err, NRP_INPUT, -EBADMSG, p->path, at - p->text,
					"keep one measurement per file", "%s comes a second time",
					line->name);
	if (f->nr_lines == NRP_COUNTERS_MAX)
		return bad(p, at, "give the counters only", "more than 4096 counters");
	if (f->nr_lines == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		void *grown = reallocarray(f->line, room, sizeof(*f->line));

		if (!grown)
			return nrp_fail_nomem(p->err);
		f->line = grown;
		p->room = room;
	}
	f->line[f->nr_lines] = *line;
	f->line[f->nr_lines++].offset = at - p->text;
	return 0;
}

/* A line that has not the form of its file: words around a table, or damage? */
static int odd_line(struct parser *p, const struct text_line *line)
{
	struct nrp_count first;

	if (!line->fields)
		return 0;
	if (p->file.kind == NRP_COUNTERS_SNAPSHOT)
		return bad(p, line->field[0].at, "give the unchanged text of /proc/vmstat",
			   "not a \"name value\" line");
	if (p->file.kind == NRP_COUNTERS_TABLE && known_field(line->field[0]))
		return bad(p, line->field[0].at, "complete the line or remove it",
			   "not a \"name before after\" line");
	if (p->file.kind == NRP_COUNTERS_PERF && mentions_known(line) &&
	    (line->field[0].at[0] == '<' || parse_number(line->field[0], &first) != NOT_A_NUMBER ||
	     is_digit(line->field[0].at[0])))
		return bad(p, line->field[0].at,
			   "give the totals of perf stat, without -I, -A or -x",
			   "not a \"count event\" line");
	return 0;
}

static int parse_lines(struct parser *p, size_t start)
{
	struct nrp_counters_line entry;
	struct text_line line;
	size_t at = start;
	int r = 0;

	while (r == 0 && next_line(p, &at, &line)) {
		if (take(&line, p->file.kind, &entry))
			r = add(p, &entry, line.field[0].at);
		else
			r = odd_line(p, &line);
	}
	return r;
}

int nrp_counters_parse(struct nrp_counters_file *ret, const char *path, const char *text,
		       size_t size, struct nrp_error *err)
{
	struct parser p = { .path = path, .text = text, .size = size, .err = err };
	size_t start = 0;
	int r = check_text(&p), kind;

	if (r < 0)
		return r;
	kind = recognise(&p, &start);
	if (kind < 0)
		return bad(&p, text, REMEDY_FORM, "holds no counters in a form that is known");
	p.file.kind = (enum nrp_counters_kind)kind;
	snprintf(p.file.path, sizeof(p.file.path), "%s", path);
	r = parse_lines(&p, start);
	if (r == 0 && !p.file.nr_lines)
		r = bad(&p, text, REMEDY_FORM, "holds no counters");
	if (r < 0) {
		nrp_counters_file_clear(&p.file);
		return r;
	}
	*ret = p.file;
	return 0;
}

/* All that @fd gives, up to the limit. */
static int read_all(int fd, const char *path, char **ret, size_t *ret_size, struct nrp_error *err)
{
	size_t room = 65536, size = 0;
	char *text = malloc(room);

	while (text) {
		ssize_t n = read(fd, text + size, room - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || size + (size_t)n > MAX_TEXT) {
			int code = n < 0 ? -errno : -EFBIG;

			free(text);
			return nrp_fail(err, NRP_INPUT, code, path, -1, "name a file of counters",
					"%s", n < 0 ? strerror(-code) : "is larger than 16 MiB");
		}
		if (n == 0) {
			*ret = text;
			*ret_size = size;
			return 0;
		}
		size += (size_t)n;
		if (size == room) {
			char *grown = realloc(text, 2 * room);

			if (!grown)
				free(text);
			text = grown;
			room *= 2;
		}
	}
	return nrp_fail_nomem(err);
}

int nrp_counters_read(struct nrp_counters_file *ret, const char *path, struct nrp_error *err)
{
	bool standard = !strcmp(path, "-");
	const char *name = standard ? "standard input" : path;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), r;
	char *text = NULL;
	size_t size = 0;

	if (fd < 0) {
		int code = -errno;

		return nrp_fail(err, NRP_INPUT, code, path, -1, "name a readable file", "%s",
				strerror(-code));
	}
	r = read_all(fd, name, &text, &size, err);
	if (!standard)
		close(fd);
	if (r < 0)
		return r;
	r = nrp_counters_parse(ret, name, text, size, err);
	free(text);
	return r;
}
