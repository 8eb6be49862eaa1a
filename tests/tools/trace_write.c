/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts a trace-cmd file together; the layouts are those of trace-cmd.dat.v6(5) and v7(5). */
#include "tests/tools/trace_parts.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define LEVEL 19       /* of zstd, if the parts do not say */
#define CHUNK_PAGES 10 /* pages in a compressed chunk, as trace-cmd has it */

/* The file so far; after a failure nothing is added any more. */
struct output {
	FILE *file;
	uint64_t size; /* bytes written */
	const struct nrp_trace_parts *parts;
	struct nrp_page_source *pages;
	struct nrp_blob strings; /* v7: names of the sections */
	enum nrp_packing packing;
	bool failed;
};

static void put(struct output *out, const void *data, size_t size)
{
	if (!out->failed && size)
		out->failed = fwrite(data, 1, size, out->file) != size;
	out->size += size;
}

static void put_zeros(struct output *out, size_t size)
{
	static const uint8_t zeros[4096];

	for (; size > sizeof(zeros); size -= sizeof(zeros))
		put(out, zeros, sizeof(zeros));
	put(out, zeros, size);
}

static void put_number(struct output *out, uint64_t value, unsigned int bytes)
{
	uint8_t number[8];

	nrp_store_number(number, value, bytes, out->parts->big);
	put(out, number, bytes);
}

/* Overwrites a number at @at. */
static void patch(struct output *out, uint64_t at, uint64_t value, unsigned int bytes)
{
	uint64_t end = out->size;

	out->failed |= fseeko(out->file, (off_t)at, SEEK_SET) != 0;
	put_number(out, value, bytes);
	out->size = end;
	out->failed |= fseeko(out->file, (off_t)end, SEEK_SET) != 0;
}

/* The next pages of a CPU; none at their end. */
static struct nrp_blob next_pages(struct output *out, size_t buffer, size_t cpu)
{
	struct nrp_blob pages = { 0 };

	if (!out->failed)
		out->failed = !out->pages->next(out->pages, buffer, cpu, &pages);
	return out->failed ? (struct nrp_blob){ 0 } : pages;
}

static void align_to_page(struct output *out, uint32_t page_size)
{
	size_t rest = page_size ? out->size % page_size : 0;

	if (rest)
		put_zeros(out, page_size - rest);
}

static void put_file_header(struct output *out, const char *version)
{
	put(out, "\x17\x08\x44tracing", 10);
	put(out, version, 2);
	put_number(out, out->parts->big, 1);
	put_number(out, out->parts->long_size, 1);
	put_number(out, out->parts->page_size, 4);
}

static void put_option(struct output *out, uint16_t id, const void *data, size_t size)
{
	put_number(out, id, 2);
	put_number(out, size, 4);
	put(out, data, size);
}

static const char *top_clock(const struct nrp_trace_parts *parts)
{
	size_t i;

	for (i = 0; i < parts->nr_buffers; i++) {
		if (parts->buffers[i].clock[0])
			return parts->buffers[i].clock;
	}
	return "";
}

/* "[clock]" with a size in front, as v6 has it behind every table. */
static void put_clock(struct output *out, const char *clock)
{
	put_number(out, strlen(clock) + 2, 8);
	put(out, "[", 1);
	put(out, clock, strlen(clock));
	put(out, "]", 1);
}

/* The options that both versions keep as they are. */
static void put_kept_options(struct output *out)
{
	const struct nrp_trace_parts *parts = out->parts;
	size_t i;

	for (i = 0; i < parts->nr_options; i++) {
		const struct nrp_part_option *option = &parts->options[i];
		const char *clock = top_clock(parts);
		struct nrp_blob text = { 0 };

		if (option->id != 4 || option->data.size) {
			put_option(out, option->id, option->data.data, option->data.size);
			continue;
		}
		/* v6 may leave the text to the table; v7 has no other place for it */
		out->failed |= !nrp_blob_append(&text, "[", 1) ||
			       !nrp_blob_append(&text, clock, strlen(clock)) ||
			       !nrp_blob_append(&text, "]", 2);
		put_option(out, option->id, text.data, text.size);
		free(text.data);
	}
}

static bool has_option(const struct nrp_trace_parts *parts, uint16_t id)
{
	size_t i;

	for (i = 0; i < parts->nr_options; i++) {
		if (parts->options[i].id == id)
			return true;
	}
	return false;
}

/* ---- version 6 ---------------------------------------------------------------------- */

static uint32_t v6_cpu_count(const struct nrp_trace_parts *parts)
{
	uint32_t n = parts->cpu_count;
	size_t i, j;

	for (i = 0; i < parts->nr_buffers; i++) {
		for (j = 0; j < parts->buffers[i].nr_cpus; j++) {
			if (parts->buffers[i].cpus[j].cpu >= n)
				n = parts->buffers[i].cpus[j].cpu + 1;
		}
	}
	return n;
}

/* A table with room for @n CPUs; their data follow later. */
static uint64_t v6_table(struct output *out, const struct nrp_part_buffer *buffer, uint32_t n)
{
	uint64_t at;

	put(out, "flyrecord", 10);
	at = out->size;
	put_zeros(out, 16 * (size_t)n);
	if (has_option(out->parts, 4))
		put_clock(out, buffer ? buffer->clock : "");
	return at;
}

/* Writes all pages of a CPU; returns their bytes. */
static uint64_t v6_pages(struct output *out, size_t buffer, size_t cpu)
{
	uint64_t start = out->size;
	struct nrp_blob pages;

	while ((pages = next_pages(out, buffer, cpu)).size)
		put(out, pages.data, pages.size);
	return out->size - start;
}

static void v6_data(struct output *out, size_t index, uint64_t table, uint32_t n)
{
	const struct nrp_part_buffer *buffer = &out->parts->buffers[index];
	uint32_t cpu;
	size_t i;

	for (cpu = 0; cpu < n; cpu++) {
		uint64_t start, size = 0;

		align_to_page(out, buffer->page_size);
		start = out->size;
		for (i = 0; i < buffer->nr_cpus; i++) {
			if (buffer->cpus[i].cpu == cpu)
				size = v6_pages(out, index, i);
		}
		patch(out, table + 16 * (size_t)cpu, start, 8);
		patch(out, table + 16 * (size_t)cpu + 8, size, 8);
	}
}

/* All tables, then all data: the top instance (empty if there is none) comes first. */
static void v6_buffers(struct output *out, uint64_t *options, uint32_t n)
{
	const struct nrp_trace_parts *parts = out->parts;
	bool has_top = parts->nr_buffers && !parts->buffers[0].name[0];
	uint64_t *tables = calloc(parts->nr_buffers + 1, sizeof(*tables));
	size_t i;

	out->failed |= !tables;
	if (out->failed)
		goto out;
	if (!has_top)
		v6_table(out, NULL, n);
	for (i = 0; i < parts->nr_buffers; i++) {
		if (i || !has_top)
			patch(out, options[i], out->size, 8);
		tables[i] = v6_table(out, &parts->buffers[i], n);
	}
	for (i = 0; i < parts->nr_buffers; i++)
		v6_data(out, i, tables[i], n);
out:
	free(tables);
}

static void write_v6(struct output *out)
{
	const struct nrp_trace_parts *parts = out->parts;
	uint32_t n = v6_cpu_count(parts);
	uint64_t *options = calloc(parts->nr_buffers + 1, sizeof(*options));
	size_t i;

	out->failed = !options;
	put_file_header(out, "6");
	put(out, parts->header_info.data, parts->header_info.size);
	put(out, parts->ftrace_formats.data, parts->ftrace_formats.size);
	put(out, parts->event_formats.data, parts->event_formats.size);
	put_number(out, 0, 4); /* kallsyms */
	put_number(out, 0, 4); /* printk */
	put(out, parts->cmdlines.data, parts->cmdlines.size);
	put_number(out, n, 4);
	put(out, "options  ", 10);
	put_kept_options(out);
	for (i = 0; i < parts->nr_buffers && !out->failed; i++) {
		const char *name = parts->buffers[i].name;

		if (!i && !name[0])
			continue;
		put_number(out, 3, 2);
		put_number(out, 8 + strlen(name) + 1, 4);
		options[i] = out->size;
		put_number(out, 0, 8);
		put(out, name, strlen(name) + 1);
	}
	put_number(out, 0, 2);
	if (options)
		v6_buffers(out, options, n);
	free(options);
}

/* ---- version 7 ---------------------------------------------------------------------- */

/* Compressed size, size, data. */
static void put_packed(struct output *out, const uint8_t *data, size_t size)
{
	size_t room = ZSTD_compressBound(size);
	uint8_t *packed = malloc(room);
	int level = out->parts->zstd_level ? out->parts->zstd_level : LEVEL;
	size_t n = packed ? ZSTD_compress(packed, room, data, size, level) : 0;

	out->failed |= !packed || ZSTD_isError(n);
	put_number(out, n, 4);
	put_number(out, size, 4);
	put(out, packed, out->failed ? 0 : n);
	free(packed);
}

/* A section's header; its size is known at the end. */
static uint64_t begin_section(struct output *out, uint16_t id, bool packed, const char *name)
{
	uint64_t at = out->size;

	put_number(out, id, 2);
	put_number(out, packed, 2);
	put_number(out, out->strings.size, 4);
	put_number(out, 0, 8);
	out->failed |= !nrp_blob_append(&out->strings, name, strlen(name) + 1);
	return at;
}

static void end_section(struct output *out, uint64_t at)
{
	patch(out, at + 8, out->size - at - 16, 8);
}

static uint64_t put_section(struct output *out, uint16_t id, const char *name,
			    const struct nrp_blob *data)
{
	bool packed = out->packing == NRP_PACK_ZSTD;
	uint64_t at = begin_section(out, id, packed, name);

	if (packed)
		put_packed(out, data->data, data->size);
	else
		put(out, data->data, data->size);
	end_section(out, at);
	return at;
}

static void put_reference(struct output *out, uint16_t id, uint64_t at)
{
	put_number(out, id, 2);
	put_number(out, 8, 4);
	put_number(out, at, 8);
}

/* The data of one CPU from @pages on; returns the size that the option gives: without the chunk
 * count. */
static uint64_t put_pages(struct output *out, size_t buffer, size_t cpu, struct nrp_blob pages)
{
	uint64_t start = out->size;
	uint32_t chunks = 0;

	if (out->packing == NRP_PACK_NONE) {
		for (; pages.size; pages = next_pages(out, buffer, cpu))
			put(out, pages.data, pages.size);
		return out->size - start;
	}
	put_number(out, 0, 4);
	for (; pages.size; pages = next_pages(out, buffer, cpu), chunks++)
		put_packed(out, pages.data, pages.size);
	patch(out, start, chunks, 4);
	return out->size - start - 4;
}

/* The section of an instance; its option is appended to @option. */
static void put_buffer(struct output *out, size_t index, struct nrp_blob *option)
{
	const struct nrp_part_buffer *buffer = &out->parts->buffers[index];
	bool big = out->parts->big, ok = true;
	uint64_t at =
		begin_section(out, 3, out->packing == NRP_PACK_ZSTD, "ring buffer of an instance");
	struct nrp_blob cpus = { 0 };
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < buffer->nr_cpus && ok; i++) {
		struct nrp_blob pages = next_pages(out, index, i);
		uint64_t offset, size;

		if (!pages.size)
			continue;
		align_to_page(out, buffer->page_size);
		offset = out->size;
		size = put_pages(out, index, i, pages);
		ok = nrp_blob_number(&cpus, buffer->cpus[i].cpu, 4, big) &&
		     nrp_blob_number(&cpus, offset, 8, big) && nrp_blob_number(&cpus, size, 8, big);
		n++;
	}
	end_section(out, at);
	ok = ok && nrp_blob_number(option, at, 8, big) &&
	     nrp_blob_append(option, buffer->name, strlen(buffer->name) + 1) &&
	     nrp_blob_append(option, buffer->clock, strlen(buffer->clock) + 1) &&
	     nrp_blob_number(option, buffer->page_size, 4, big) &&
	     nrp_blob_number(option, n, 4, big) &&
	     (!n || nrp_blob_append(option, cpus.data, cpus.size));
	out->failed |= !ok;
	free(cpus.data);
}

/* The sections of all instances and the options that describe them; returns the latter's place. */
static uint64_t put_buffers(struct output *out)
{
	const struct nrp_trace_parts *parts = out->parts;
	struct nrp_blob *options = calloc(parts->nr_buffers + 1, sizeof(*options));
	uint64_t at;
	size_t i;

	out->failed |= !options;
	for (i = 0; i < parts->nr_buffers && !out->failed; i++)
		put_buffer(out, i, &options[i]);
	at = begin_section(out, 0, false, "options of the instances");
	for (i = 0; i < parts->nr_buffers && options; i++) {
		put_option(out, 3, options[i].data, options[i].size);
		free(options[i].data);
	}
	free(options);
	put_reference(out, 0, 0); /* last option: no more sections */
	end_section(out, at);
	return at;
}

static void write_v7(struct output *out)
{
	const struct nrp_trace_parts *parts = out->parts;
	const char *name = out->packing == NRP_PACK_ZSTD ? "zstd" : "none";
	struct nrp_blob nothing = { (uint8_t[4]){ 0 }, 4 };
	uint64_t first, headers, formats, events, symbols, cmdlines, options, at;

	put_file_header(out, "7");
	put(out, name, strlen(name) + 1);
	put(out, ZSTD_versionString(), strlen(ZSTD_versionString()) + 1);
	first = out->size;
	put_number(out, 0, 8);
	headers = put_section(out, 16, "page headers", &parts->header_info);
	formats = put_section(out, 17, "formats of ftrace", &parts->ftrace_formats);
	events = put_section(out, 18, "formats of events", &parts->event_formats);
	symbols = put_section(out, 19, "kernel symbols", &nothing);
	cmdlines = put_section(out, 21, "command lines", &parts->cmdlines);
	options = begin_section(out, 0, false, "options");
	put_reference(out, 16, headers);
	put_reference(out, 17, formats);
	put_reference(out, 18, events);
	put_reference(out, 19, symbols);
	put_reference(out, 21, cmdlines);
	put_kept_options(out);
	at = out->size + 6;
	put_reference(out, 0, 0);
	end_section(out, options);
	patch(out, first, options, 8);
	patch(out, at, put_buffers(out), 8);
	at = begin_section(out, 15, false, "strings");
	put(out, out->strings.data, out->strings.size);
	end_section(out, at);
	free(out->strings.data);
}

/* ---- both ---------------------------------------------------------------------------- */

bool nrp_parts_write(const struct nrp_trace_parts *parts, int version, enum nrp_packing packing,
		     struct nrp_page_source *pages, FILE *file)
{
	struct output out = { .file = file, .parts = parts, .pages = pages, .packing = packing };

	if (version == 6)
		write_v6(&out);
	else
		write_v7(&out);
	return !out.failed;
}

/* The pages that the parts themselves hold, chunk by chunk. */
struct held_pages {
	struct nrp_page_source source;
	const struct nrp_trace_parts *parts;
	size_t pos; /* bytes of the CPU's pages handed out */
};

static bool next_held(struct nrp_page_source *source, size_t buffer, size_t cpu,
		      struct nrp_blob *ret)
{
	struct held_pages *held = (struct held_pages *)source;
	const struct nrp_part_buffer *b = &held->parts->buffers[buffer];
	const struct nrp_blob *pages = &b->cpus[cpu].pages;
	size_t step = held->parts->chunk_size ? held->parts->chunk_size
					      : CHUNK_PAGES * (size_t)b->page_size;
	size_t left = pages->size - held->pos;

	ret->size = left < step ? left : step;
	ret->data = left ? pages->data + held->pos : NULL;
	held->pos = left ? held->pos + ret->size : 0; /* the next CPU's begin */
	return true;
}

static struct nrp_blob write_held(const struct nrp_trace_parts *parts, int version,
				  enum nrp_packing packing)
{
	struct held_pages held = { .source.next = next_held, .parts = parts };
	char *data = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&data, &size);
	bool ok = file && nrp_parts_write(parts, version, packing, &held.source, file);

	if (file && fclose(file))
		ok = false;
	if (ok)
		return (struct nrp_blob){ (uint8_t *)data, size };
	free(data);
	return (struct nrp_blob){ 0 };
}

struct nrp_blob nrp_parts_write_v6(const struct nrp_trace_parts *parts)
{
	return write_held(parts, 6, NRP_PACK_NONE);
}

struct nrp_blob nrp_parts_write_v7(const struct nrp_trace_parts *parts, enum nrp_packing packing)
{
	return write_held(parts, 7, packing);
}
