/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's format file of an event:
 *
 *	name: fault_begin
 *	ID: 1496
 *	format:
 *		field:int common_pid;	offset:4;	size:4;	signed:1;
 *
 *		field:u64 addr;	offset:40;	size:8;	signed:0;
 *	print fmt: "..", ..
 *
 * A damaged one would place fields where others are, or cost the parser memory that it loses.
 */
#include "capture/event_format.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PAYLOAD 65535 /* bytes; an event fits into a sub-buffer */
#define LONG 0            /* in the table: as the kernel's long */

struct text {
	const char *at, *end;
};

struct field {
	struct text type, name, array; /* array: behind the name, with its brackets */
	uint32_t offset, size;         /* bytes */
};

struct fields {
	struct field *list;
	size_t count, room;
};

static size_t length(struct text t)
{
	return (size_t)(t.end - t.at);
}

static bool is(struct text t, const char *word)
{
	return length(t) == strlen(word) && !memcmp(t.at, word, length(t));
}

static bool take(struct text *t, const char *word)
{
	size_t n = strlen(word);

	if (length(*t) < n || memcmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

/* A decimal number and what must follow it. */
static bool take_number(struct text *t, const char *then, uint32_t *ret)
{
	uint32_t n = 0;
	const char *digits = t->at;

	for (; t->at < t->end && isdigit((unsigned char)*t->at); t->at++) {
		if (n > MAX_PAYLOAD)
			return false;
		n = n * 10 + (uint32_t)(*t->at - '0');
	}
	*ret = n;
	return t->at > digits && take(t, then);
}

static struct text trim(struct text t)
{
	while (t.at < t.end && *t.at == ' ')
		t.at++;
	while (t.at < t.end && t.end[-1] == ' ')
		t.end--;
	return t;
}

/* ---- declarations ------------------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Words and stars; anything printable inside of brackets, which are balanced. */
static bool is_declaration(struct text t)
{
	int round = 0, square = 0;

	for (; t.at < t.end; t.at++) {
		bool inside = round + square > 0;

		round += (*t.at == '(') - (*t.at == ')');
		square += (*t.at == '[') - (*t.at == ']');
		if (round < 0 || square < 0 ||
		    !(inside ? isprint((unsigned char)*t.at)
			     : is_word(*t.at) || strchr(" *([", *t.at)))
			return false;
	}
	return !round && !square;
}

/* "const char * name", "u64 faults[8]", "__data_loc char[] name" */
static bool split_declaration(struct text whole, struct field *f)
{
	struct text t = trim(whole);

	if (!is_declaration(t))
		return false;
	f->array = (struct text){ t.end, t.end };
	if (t.at < t.end && t.end[-1] == ']') {
		while (t.at < t.end && *t.end != '[')
			t.end--;
		f->array.at = t.end;
	}
	f->name = (struct text){ t.end, t.end };
	while (f->name.at > t.at && is_word(f->name.at[-1]))
		f->name.at--;
	f->type = trim((struct text){ t.at, f->name.at });
	return length(f->name) && !isdigit((unsigned char)*f->name.at) && length(f->type);
}

/* Bytes of a type that has the same size everywhere; -1: not known. */
static int type_size(struct text type, int long_size)
{
	static const struct {
		const char *name;
		int size;
	} known[] = {
		{ "u8", 1 },
		{ "s8", 1 },
		{ "char", 1 },
		{ "unsigned char", 1 },
		{ "bool", 1 },
		{ "u16", 2 },
		{ "s16", 2 },
		{ "short", 2 },
		{ "unsigned short", 2 },
		{ "u32", 4 },
		{ "s32", 4 },
		{ "int", 4 },
		{ "unsigned int", 4 },
		{ "pid_t", 4 },
		{ "u64", 8 },
		{ "s64", 8 },
		{ "long long", 8 },
		{ "unsigned long long", 8 },
		{ "long", LONG },
		{ "unsigned long", LONG },
	};

	if (type.end[-1] == '*')
		return long_size;
	take(&type, "const ");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (is(type, known[i].name))
			return known[i].size == LONG ? long_size : known[i].size;
	return -1;
}

/* @any_long: system calls keep each argument in a long, whatever its type. */
static bool size_fits(const struct field *f, int long_size, bool any_long)
{
	struct text type = f->type;
	int size = type_size(f->type, long_size);

	if (take(&type, "__data_loc ") || take(&type, "__rel_loc "))
		return f->size == 4;
	if (!f->size || size < 0)
		return f->size > 0;
	if (length(f->array)) /* kernels name any number of elements */
		return f->size % (uint32_t)size == 0;
	return f->size == (uint32_t)size || (any_long && f->size == (uint32_t)long_size);
}

/* ---- lines -------------------------------------------------------------------------- */

static bool parse_field(struct text line, struct field *f)
{
	const char *semicolon = memchr(line.at, ';', length(line));
	uint32_t is_signed;

	if (!semicolon || !split_declaration((struct text){ line.at, semicolon }, f))
		return false;
	line.at = semicolon;
	if (!take(&line, ";\toffset:") || !take_number(&line, ";\tsize:", &f->offset) ||
	    !take_number(&line, ";", &f->size))
		return false;
	/* Kernels before 2.6.32 do not say it. */
	if (take(&line, "\tsigned:") && !take_number(&line, ";", &is_signed))
		return false;
	return !length(line);
}

static int add_field(struct fields *fields, const struct field *f)
{
	if (fields->count == fields->room) {
		size_t room = fields->room ? 2 * fields->room : 32;
		struct field *list = reallocarray(fields->list, room, sizeof(*list));

		if (!list)
			return -ENOMEM;
		fields->list = list;
		fields->room = room;
	}
	fields->list[fields->count++] = *f;
	return 0;
}

static struct text next_line(struct text *t)
{
	const char *end = memchr(t->at, '\n', length(*t));
	struct text line = { t->at, end ? end : t->end };

	t->at = end ? end + 1 : t->end;
	return line;
}

/* Up to the print format, which may have any text in it. */
static int read_fields(struct text *t, struct fields *fields, const char **ret_what)
{
	while (t->at < t->end) {
		struct text line = next_line(t);
		struct field f;

		if (take(&line, "print fmt:"))
			return 0;
		if (!length(line))
			continue;
		if (!take(&line, "\tfield:") || !parse_field(line, &f)) {
			*ret_what = "a line that is no field";
			return -EBADMSG;
		}
		if (add_field(fields, &f) < 0)
			return -ENOMEM;
	}
	*ret_what = "no print format";
	return -EBADMSG;
}

static bool has_more_fields(struct text t)
{
	while (t.at < t.end) {
		struct text line = next_line(&t);

		if (take(&line, "\tfield:"))
			return true;
	}
	return false;
}

static bool read_head(struct text *t, const struct nrp_event_format *format)
{
	struct text line = next_line(t);
	uint32_t id;

	if (!take(&line, "name: ") || !is(line, format->name))
		return false;
	line = next_line(t);
	if (!take(&line, "ID: ") || !take_number(&line, "", &id) || length(line) ||
	    (int)id != format->id)
		return false;
	line = next_line(t);
	return is(line, "format:");
}

/* ---- together ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct field *f = a, *g = b;
	size_t n = length(f->name), m = length(g->name);
	int order = memcmp(f->name.at, g->name.at, n < m ? n : m);

	return order ? order : (n > m) - (n < m);
}

static const char *check_fields(struct fields *fields, int long_size, bool any_long)
{
	uint32_t end = 0;

	if (!fields->count)
		return "no field";
	for (size_t i = 0; i < fields->count; i++) {
		const struct field *f = &fields->list[i];

		if (!size_fits(f, long_size, any_long))
			return "a field that has not the size of its type";
		if (f->offset < end)
			return "a field that lies in another";
		end = f->offset + f->size;
		if (end > MAX_PAYLOAD)
			return "a field outside of the event";
	}
	qsort(fields->list, fields->count, sizeof(*fields->list), by_name);
	for (size_t i = 1; i < fields->count; i++)
		if (!by_name(&fields->list[i - 1], &fields->list[i]))
			return "two fields of one name";
	return NULL;
}

int nrp_event_format_check(const struct nrp_event_format *format, int long_size,
			   const char **ret_what)
{
	struct text t = { format->text, format->text + format->size };
	struct fields fields = { 0 };
	const char *what = NULL;
	int r = 0;

	if (!read_head(&t, format))
		what = "no name and ID at its head";
	else
		r = read_fields(&t, &fields, &what);
	if (r == 0 && !what && has_more_fields(t))
		what = "fields behind the print format";
	if (r == 0 && !what)
		what = check_fields(&fields, long_size, !strcmp(format->system, "syscalls"));
	free(fields.list);
	if (what) {
		*ret_what = what;
		r = -EBADMSG;
	}
	return r;
}
