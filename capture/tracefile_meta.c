/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a trace-cmd file that versions 6 and 7 share: page header description, event
 * formats and options.
 */
#include "capture/tracefile_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

int nrp_cut_short(const struct nrp_tracefile *file, uint64_t offset, const char *what,
		  uint64_t need, struct nrp_error *err)
{
	return nrp_fail(err, NRP_INPUT, -ENODATA, file->path, (int64_t)offset, NRP_REMEDY_COPY,
			"cut short: %s needs %llu bytes, file has %llu", what,
			(unsigned long long)need, (unsigned long long)file->size);
}

int nrp_cursor_check(const struct nrp_tracefile *file, const struct nrp_cursor *c, const char *what,
		     struct nrp_error *err)
{
	if (c->state == NRP_CURSOR_OK)
		return 0;
	if (c->state == NRP_CURSOR_BAD)
		return nrp_damaged(file, err, nrp_cursor_offset(c), "%s: a name does not end",
				   what);
	if (c->in_file && c->base + c->size == file->size)
		return nrp_cut_short(
			file, nrp_cursor_offset(c), what,
			c->need > UINT64_MAX - c->base ? UINT64_MAX : c->base + c->need, err);
	return nrp_damaged(file, err, nrp_cursor_offset(c), "%s needs %llu bytes, but has %llu",
			   what, (unsigned long long)c->need, (unsigned long long)c->size);
}

/* The number behind @key within the @size bytes at @text; false if there is none. */
static bool number_after(const char *text, size_t size, const char *key, int64_t *ret)
{
	const char *p = memmem(text, size, key, strlen(key));
	const char *end = text + size;
	int64_t value = 0;
	bool any = false;

	if (!p)
		return false;
	for (p += strlen(key); p < end && *p == ' '; p++)
		;
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (value > (INT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (*p - '0');
		any = true;
	}
	if (any)
		*ret = value;
	return any;
}

/* The rest of the line behind a line's start @key; NULL if no line starts so. */
static const char *line_after(const char *text, size_t size, const char *key, size_t *ret_size)
{
	const char *line = text, *end = text + size;
	size_t key_size = strlen(key);

	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t line_size = (size_t)((stop ? stop : end) - line);

		if (line_size >= key_size && !memcmp(line, key, key_size)) {
			line += key_size;
			line_size -= key_size;
			for (; line_size && *line == ' '; line++)
				line_size--;
			*ret_size = line_size;
			return line;
		}
		if (!stop)
			break;
		line = stop + 1;
	}
	return NULL;
}

/* The kernel's long is as wide as the field "commit" of its page header. */
static int read_long_size(struct nrp_tracefile *file, const char *text, size_t size, uint64_t at,
			  struct nrp_error *err)
{
	const char *commit;
	int64_t value;

	if (!size)
		return 0; /* a kernel without this file: the file header's word stands */
	commit = memmem(text, size, " commit;", 8);
	if (!commit || !number_after(commit, size - (size_t)(commit - text), "size:", &value) ||
	    (value != 4 && value != 8))
		return nrp_damaged(file, err, at, "page header without a usable field commit");
	file->long_size = (int)value;
	return 0;
}

/* One "NAME\0", 64-bit size, text. */
static const uint8_t *header_text(struct nrp_cursor *c, const char *name, uint64_t *ret_size,
				  bool *ret_bad)
{
	size_t name_size = strlen(name) + 1;
	const uint8_t *p = nrp_cursor_take(c, name_size);

	if (p && memcmp(p, name, name_size))
		*ret_bad = true;
	*ret_size = nrp_cursor_u64(c);
	return *ret_bad ? NULL : nrp_cursor_take(c, *ret_size);
}

int nrp_meta_header_info(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	struct nrp_error damage = NRP_ERROR_INIT;
	uint64_t at = nrp_cursor_offset(c);
	bool bad = false;
	uint64_t page_size, event_size;
	const uint8_t *page = header_text(c, "header_page", &page_size, &bad);
	int rc;

	if (!bad)
		header_text(c, "header_event", &event_size, &bad);
	if (bad)
		return nrp_damaged(file, err, at, "header_page or header_event is missing");
	if (c->state != NRP_CURSOR_OK)
		return nrp_cursor_check(file, c, "page header description", err);
	file->has_header_info = true;
	rc = read_long_size(file, (const char *)page, page_size, at, &damage);
	return nrp_tracefile_tolerate(file, rc, &damage, err);
}

/* Adds a format whose name and id were found. */
static int add_format(struct nrp_tracefile *file, const char *system, const char *name,
		      size_t name_size, const char *text, size_t size, int id,
		      struct nrp_error *err)
{
	size_t system_size = strlen(system);
	struct nrp_event_format *format = &file->formats[file->nr_formats];
	char *copy = malloc(system_size + 1 + name_size + 1 + size + 1);

	if (!copy)
		return nrp_fail_nomem(err);
	format->system = copy;
	memcpy(copy, system, system_size + 1);
	copy += system_size + 1;
	format->name = copy;
	memcpy(copy, name, name_size);
	copy[name_size] = '\0';
	copy += name_size + 1;
	format->text = copy;
	memcpy(copy, text, size);
	copy[size] = '\0';
	format->size = size;
	format->id = id;
	file->nr_formats++;
	return 0;
}

static int reserve_format(struct nrp_tracefile *file, uint64_t at, struct nrp_error *err)
{
	struct nrp_event_format *grown;
	size_t n = file->nr_formats;

	if (n >= NRP_MAX_FORMATS)
		return nrp_damaged(file, err, at, "more than %d event formats", NRP_MAX_FORMATS);
	if (n && (n < 64 || (n & (n - 1)) != 0))
		return 0; /* room is doubled at powers of two, from 64 on */
	grown = reallocarray(file->formats, n ? 2 * n : 64, sizeof(*grown));
	if (!grown)
		return nrp_fail_nomem(err);
	file->formats = grown;
	return 0;
}

int nrp_tracefile_lose_format(struct nrp_tracefile *file, int rc, const struct nrp_error *damage,
			      struct nrp_error *err)
{
	if (!rc)
		return 0;
	rc = nrp_tracefile_tolerate(file, rc, damage, err);
	if (!rc)
		nrp_meta_formats_lost(file, damage->offset < 0 ? 0 : (uint64_t)damage->offset);
	return rc;
}

static int understand_format(struct nrp_tracefile *file, const char *system, const char *text,
			     size_t size, uint64_t at, struct nrp_error *err)
{
	size_t name_size;
	const char *name = line_after(text, size, "name:", &name_size);
	int64_t id;
	int rc;

	if (!name || !name_size || name_size > NRP_MAX_NAME || memchr(name, 0, name_size))
		return nrp_damaged(file, err, at, "event format without a name");
	if (!number_after(text, size, "\nID:", &id) || id > UINT16_MAX)
		return nrp_damaged(file, err, at, "event format without a usable ID");
	if (memchr(text, 0, size))
		return nrp_damaged(file, err, at, "event format is not text");
	rc = reserve_format(file, at, err);
	return rc ? rc : add_format(file, system, name, name_size, text, size, (int)id, err);
}

static int read_format(struct nrp_tracefile *file, struct nrp_cursor *c, const char *system,
		       struct nrp_error *err)
{
	struct nrp_error damage = NRP_ERROR_INIT;
	uint64_t at = nrp_cursor_offset(c);
	uint64_t size = nrp_cursor_u64(c);
	const char *text;
	int rc;

	if (size > NRP_MAX_FORMAT_TEXT)
		return nrp_damaged(file, err, at, "event format of %llu bytes",
				   (unsigned long long)size);
	text = (const char *)nrp_cursor_take(c, size);
	if (!text || !size) /* empty: trace-cmd could not read the format */
		return nrp_cursor_check(file, c, "event format", err);
	rc = understand_format(file, system, text, size, at, &damage);
	return nrp_tracefile_lose_format(file, rc, &damage, err);
}

static int read_formats(struct nrp_tracefile *file, struct nrp_cursor *c, const char *system,
			struct nrp_error *err)
{
	uint32_t count = nrp_cursor_u32(c);
	uint32_t i;
	int rc;

	for (i = 0; i < count && c->state == NRP_CURSOR_OK; i++) {
		rc = read_format(file, c, system, err);
		if (rc)
			return rc;
	}
	return nrp_cursor_check(file, c, "event formats", err);
}

int nrp_meta_ftrace_formats(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	return read_formats(file, c, "ftrace", err);
}

int nrp_meta_event_formats(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	uint32_t systems = nrp_cursor_u32(c);
	const char *system;
	uint32_t i;
	int rc;

	for (i = 0; i < systems && c->state == NRP_CURSOR_OK; i++) {
		system = nrp_cursor_text(c, NRP_MAX_NAME);
		if (!system)
			break;
		rc = read_formats(file, c, system, err);
		if (rc)
			return rc;
	}
	return nrp_cursor_check(file, c, "event formats", err);
}

void nrp_meta_formats_lost(struct nrp_tracefile *file, uint64_t at)
{
	if (!file->lost_formats) {
		file->lost_formats = true;
		file->lost_formats_offset = at;
	}
}

static int read_cpu_stat(struct nrp_tracefile *file, const char *text, size_t size, uint64_t at,
			 struct nrp_error *err)
{
	struct nrp_cpu_stat stat = {
		.group = file->stat_group,
		.overrun = -1,
		.commit_overrun = -1,
		.dropped = -1,
		.entries = -1,
		.read = -1,
	};
	struct nrp_cpu_stat *grown;
	int64_t cpu;

	if (!number_after(text, size, "CPU:", &cpu)) {
		file->stat_group++; /* a heading: the name of an instance */
		return 0;
	}
	if (cpu >= NRP_MAX_CPUS)
		return nrp_damaged(file, err, at, "statistics of CPU %lld", (long long)cpu);
	stat.cpu = (uint32_t)cpu;
	number_after(text, size, "\noverrun:", &stat.overrun);
	number_after(text, size, "\ncommit overrun:", &stat.commit_overrun);
	number_after(text, size, "\ndropped events:", &stat.dropped);
	number_after(text, size, "\nentries:", &stat.entries);
	number_after(text, size, "\nread events:", &stat.read);
	grown = reallocarray(file->stats, file->nr_stats + 1, sizeof(*grown));
	if (!grown)
		return nrp_fail_nomem(err);
	file->stats = grown;
	file->stats[file->nr_stats++] = stat;
	return 0;
}

void nrp_meta_clock(char ret[NRP_MAX_NAME + 1], const char *text, size_t size)
{
	const char *open = size ? memchr(text, '[', size) : NULL;
	const char *close = open ? memchr(open, ']', size - (size_t)(open - text)) : NULL;
	size_t n;

	if (!close)
		return;
	n = (size_t)(close - open) - 1;
	if (!n || n > NRP_MAX_NAME || memchr(open, 0, n))
		return;
	memcpy(ret, open + 1, n);
	ret[n] = '\0';
}

int nrp_meta_option(struct nrp_tracefile *file, uint16_t id, struct nrp_cursor *c,
		    struct nrp_error *err)
{
	const char *text = (const char *)c->data;
	size_t size = c->size < NRP_MAX_OPTION_TEXT ? c->size : NRP_MAX_OPTION_TEXT;

	switch (id) {
	case NRP_OPTION_CPUSTAT:
		return read_cpu_stat(file, text, size, nrp_cursor_offset(c), err);
	case NRP_OPTION_TRACECLOCK:
		file->has_clock_option = true;
		nrp_meta_clock(file->clock, text, size);
		return 0;
	case NRP_OPTION_UNAME:
		free(file->uname);
		file->uname = strndup(text, size);
		return file->uname ? 0 : nrp_fail_nomem(err);
	case NRP_OPTION_CPUCOUNT:
		if (c->size != 4) /* another program's option of the same number */
			return 0;
		file->cpu_count = nrp_cursor_u32(c);
		if (file->cpu_count > NRP_MAX_CPUS)
			return nrp_damaged(file, err, nrp_cursor_offset(c), "%u CPUs",
					   file->cpu_count);
		return 0;
	default:
		return 0;
	}
}
