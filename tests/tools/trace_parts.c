/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes a trace-cmd file apart. The file was accepted by the reader, so little is checked. */
#include "tests/tools/trace_parts.h"

#include "capture/bytes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define MAX_NAME 4096

struct input {
	struct nrp_blob file; /* mapped */
	struct nrp_trace_parts *parts;
	const char *why; /* reason of a failure */
	bool zstd;
	bool headers_only; /* leave out the pages */
};

/* Room that a blob of @size bytes has: a power of two. */
static size_t room(size_t size)
{
	size_t n = 64;

	while (n < size)
		n *= 2;
	return n;
}

bool nrp_blob_append(struct nrp_blob *blob, const void *data, size_t size)
{
	uint8_t *grown = blob->data;

	if (!grown || room(blob->size + size) > room(blob->size)) {
		grown = realloc(blob->data, room(blob->size + size));
		if (!grown)
			return false;
		blob->data = grown;
	}
	if (size && data)
		memcpy(grown + blob->size, data, size);
	else
		memset(grown + blob->size, 0, size);
	blob->size += size;
	return true;
}

void nrp_store_number(uint8_t *out, uint64_t value, unsigned int bytes, bool big)
{
	unsigned int i;

	for (i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * (big ? bytes - 1 - i : i));
}

bool nrp_blob_number(struct nrp_blob *blob, uint64_t value, unsigned int bytes, bool big)
{
	uint8_t out[8];

	nrp_store_number(out, value, bytes, big);
	return nrp_blob_append(blob, out, bytes);
}

bool nrp_parts_add_option(struct nrp_trace_parts *parts, uint16_t id, const void *data, size_t size)
{
	struct nrp_part_option *grown =
		reallocarray(parts->options, parts->nr_options + 1, sizeof(*grown));

	if (!grown)
		return false;
	parts->options = grown;
	grown[parts->nr_options] = (struct nrp_part_option){ .id = id };
	return nrp_blob_append(&grown[parts->nr_options++].data, data, size);
}

struct nrp_part_buffer *nrp_parts_add_buffer(struct nrp_trace_parts *parts, const char *name,
					     const char *clock, uint32_t page_size)
{
	struct nrp_part_buffer *grown =
		reallocarray(parts->buffers, parts->nr_buffers + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	parts->buffers = grown;
	grown += parts->nr_buffers;
	*grown = (struct nrp_part_buffer){
		.name = strdup(name),
		.clock = strdup(clock),
		.page_size = page_size,
	};
	parts->nr_buffers++;
	return grown->name && grown->clock ? grown : NULL;
}

struct nrp_part_cpu *nrp_parts_add_cpu(struct nrp_part_buffer *buffer, uint32_t cpu)
{
	struct nrp_part_cpu *grown =
		reallocarray(buffer->cpus, buffer->nr_cpus + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	buffer->cpus = grown;
	grown[buffer->nr_cpus] = (struct nrp_part_cpu){ .cpu = cpu };
	return &grown[buffer->nr_cpus++];
}

void nrp_parts_drop_buffer(struct nrp_trace_parts *parts)
{
	struct nrp_part_buffer *buffer = &parts->buffers[--parts->nr_buffers];
	size_t i;

	for (i = 0; i < buffer->nr_cpus; i++)
		free(buffer->cpus[i].pages.data);
	free(buffer->cpus);
	free(buffer->name);
	free(buffer->clock);
}

struct nrp_trace_parts *nrp_parts_free(struct nrp_trace_parts *parts)
{
	size_t i;

	if (!parts)
		return NULL;
	for (i = 0; i < parts->nr_options; i++)
		free(parts->options[i].data.data);
	while (parts->nr_buffers)
		nrp_parts_drop_buffer(parts);
	free(parts->options);
	free(parts->buffers);
	free(parts->header_info.data);
	free(parts->ftrace_formats.data);
	free(parts->event_formats.data);
	free(parts->cmdlines.data);
	free(parts);
	return NULL;
}

static bool fail(struct input *in, const char *why)
{
	if (!in->why)
		in->why = why;
	return false;
}

static bool map_file(struct input *in, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED)
		return fail(in, "cannot read the file");
	in->file = (struct nrp_blob){ map, (size_t)st.st_size };
	return true;
}

static struct nrp_cursor cursor_at(struct input *in, uint64_t pos)
{
	return (struct nrp_cursor){ .data = in->file.data,
				    .size = in->file.size,
				    .pos = pos <= in->file.size ? pos : in->file.size,
				    .in_file = true,
				    .big = in->parts->big };
}

static bool unpack(struct input *in, struct nrp_cursor *c, struct nrp_blob *ret)
{
	uint32_t packed = nrp_cursor_u32(c), size = nrp_cursor_u32(c);
	const uint8_t *data = nrp_cursor_take(c, packed);
	size_t at = ret->size;

	if (!data || !nrp_blob_append(ret, NULL, size) ||
	    ZSTD_decompress(ret->data + at, size, data, packed) != size)
		return fail(in, "cannot decompress");
	return true;
}

/* Contents of the section at @pos. */
static bool section(struct input *in, uint64_t pos, struct nrp_blob *ret)
{
	struct nrp_cursor c = cursor_at(in, pos);
	uint16_t flags;
	uint64_t size;
	const uint8_t *data;

	nrp_cursor_u16(&c);
	flags = nrp_cursor_u16(&c);
	nrp_cursor_u32(&c);
	size = nrp_cursor_u64(&c);
	if (flags & 1)
		return unpack(in, &c, ret);
	data = nrp_cursor_take(&c, size);
	return (data && nrp_blob_append(ret, data, size)) || fail(in, "section is cut short");
}

static bool cpu_pages(struct input *in, struct nrp_part_buffer *buffer, uint32_t cpu,
		      uint64_t offset, uint64_t size, bool packed)
{
	struct nrp_part_cpu *part = nrp_parts_add_cpu(buffer, cpu);
	struct nrp_cursor c = cursor_at(in, offset);
	const uint8_t *data;
	uint32_t chunks;

	if (!part)
		return fail(in, "out of memory");
	if (in->headers_only)
		return true;
	if (!packed) {
		data = nrp_cursor_take(&c, size);
		return (data && nrp_blob_append(&part->pages, data, size)) ||
		       fail(in, "data of a CPU is cut short");
	}
	for (chunks = nrp_cursor_u32(&c); chunks; chunks--) {
		if (!unpack(in, &c, &part->pages))
			return false;
	}
	return true;
}

static bool v7_buffer(struct input *in, struct nrp_cursor *c)
{
	struct nrp_cursor header = cursor_at(in, nrp_cursor_u64(c) + 2);
	const char *name = nrp_cursor_text(c, MAX_NAME), *clock = nrp_cursor_text(c, MAX_NAME);
	uint32_t page_size = nrp_cursor_u32(c), n = nrp_cursor_u32(c);
	bool packed = nrp_cursor_u16(&header) & 1;
	struct nrp_part_buffer *buffer;

	if (!name || !clock)
		return fail(in, "option of an instance is cut short");
	buffer = nrp_parts_add_buffer(in->parts, name, clock, page_size);
	while (buffer && n--) {
		uint32_t cpu = nrp_cursor_u32(c);
		uint64_t offset = nrp_cursor_u64(c), size = nrp_cursor_u64(c);

		if (size && !cpu_pages(in, buffer, cpu, offset, size, packed))
			return false;
	}
	return buffer || fail(in, "out of memory");
}

static bool v7_option(struct input *in, uint16_t id, struct nrp_cursor *c)
{
	struct nrp_trace_parts *parts = in->parts;

	switch (id) {
	case 3:
		return v7_buffer(in, c);
	case 16:
		return section(in, nrp_cursor_u64(c), &parts->header_info);
	case 17:
		return section(in, nrp_cursor_u64(c), &parts->ftrace_formats);
	case 18:
		return section(in, nrp_cursor_u64(c), &parts->event_formats);
	case 21:
		return section(in, nrp_cursor_u64(c), &parts->cmdlines);
	case 19:
	case 20:
		return true;
	case 8:
		if (c->size == 4)
			parts->cpu_count = nrp_load32(c->data, parts->big);
		/* fall through */
	default:
		return nrp_parts_add_option(parts, id, c->data, c->size) ||
		       fail(in, "out of memory");
	}
}

/* The next option of @c, or false at the end of the options. */
static bool next_option(struct nrp_cursor *c, uint16_t *ret_id, struct nrp_cursor *ret)
{
	*ret_id = nrp_cursor_u16(c);
	if (!*ret_id)
		return false;
	ret->size = nrp_cursor_u32(c);
	ret->base = nrp_cursor_offset(c);
	ret->pos = 0;
	ret->state = NRP_CURSOR_OK; /* whatever the option before was like */
	ret->data = nrp_cursor_take(c, ret->size);
	return ret->data != NULL;
}

static bool read_v7(struct input *in, struct nrp_cursor *c)
{
	const char *packing = nrp_cursor_text(c, MAX_NAME);
	uint64_t next;

	nrp_cursor_text(c, MAX_NAME);
	in->zstd = packing && !strcmp(packing, "zstd");
	for (next = nrp_cursor_u64(c); next;) {
		struct nrp_cursor option = { .big = in->parts->big }, options = option;
		struct nrp_blob data = { 0 };
		uint16_t id;
		bool ok = section(in, next, &data);

		options.data = data.data;
		options.size = data.size;
		while (ok && next_option(&options, &id, &option))
			ok = v7_option(in, id, &option);
		nrp_cursor_u32(&options); /* of the last option: id 0, size 8 */
		next = nrp_cursor_u64(&options);
		free(data.data);
		if (!ok)
			return false;
	}
	return true;
}

/* Bytes of the file from @start to the cursor. */
static bool slice(struct input *in, uint64_t start, struct nrp_cursor *c, struct nrp_blob *ret)
{
	return (c->state == NRP_CURSOR_OK &&
		nrp_blob_append(ret, in->file.data + start, c->pos - start)) ||
	       fail(in, "header is cut short");
}

static void skip_formats(struct nrp_cursor *c)
{
	uint32_t n = nrp_cursor_u32(c);

	while (n-- && nrp_cursor_take(c, nrp_cursor_u64(c)))
		;
}

static bool v6_table(struct input *in, struct nrp_cursor *c, const char *name, bool clock_text)
{
	uint64_t clock_at = c->pos + 10 + 16ull * in->parts->cpu_count;
	struct nrp_cursor clock = cursor_at(in, clock_at);
	uint64_t size = clock_text ? nrp_cursor_u64(&clock) : 0;
	const uint8_t *text = nrp_cursor_take(&clock, size);
	char *copy = text ? strndup((const char *)text, size) : NULL;
	char *open = copy ? strchr(copy, '[') : NULL;
	struct nrp_part_buffer *buffer;
	uint32_t cpu;
	bool ok;

	if (open && strchr(open, ']'))
		*strchr(open, ']') = '\0';
	buffer = nrp_parts_add_buffer(in->parts, name, open ? open + 1 : "", in->parts->page_size);
	free(copy);
	ok = buffer != NULL;
	nrp_cursor_take(c, 10); /* "flyrecord" */
	for (cpu = 0; ok && cpu < in->parts->cpu_count; cpu++) {
		uint64_t offset = nrp_cursor_u64(c);

		size = nrp_cursor_u64(c);
		ok = !size || cpu_pages(in, buffer, cpu, offset, size, false);
	}
	return ok || fail(in, "out of memory");
}

/* Options and the tables of the CPUs' data; the cursor is at the number of CPUs. */
static bool v6_rest(struct input *in, struct nrp_cursor *c)
{
	struct nrp_cursor option = { .big = in->parts->big }, again;
	bool clock = false, ok = true;
	const uint8_t *tag;
	uint16_t id;

	in->parts->cpu_count = nrp_cursor_u32(c);
	again = *c;
	tag = nrp_cursor_take(&again, 10);
	if (!tag || memcmp(tag, "options  ", 10))
		return v6_table(in, c, "", false);
	*c = again;
	while (ok && next_option(c, &id, &option)) {
		clock |= id == 4;
		if (id != 3)
			ok = v7_option(in, id, &option);
	}
	ok = ok && v6_table(in, c, "", clock);
	while (ok && next_option(&again, &id, &option)) {
		struct nrp_cursor table = cursor_at(in, nrp_cursor_u64(&option));
		const char *name = nrp_cursor_text(&option, MAX_NAME);

		if (id == 3)
			ok = v6_table(in, &table, name ? name : "", clock);
	}
	return ok;
}

static bool read_v6(struct input *in, struct nrp_cursor *c)
{
	uint64_t start = c->pos;
	uint32_t systems;

	nrp_cursor_text(c, MAX_NAME);
	nrp_cursor_take(c, nrp_cursor_u64(c));
	nrp_cursor_text(c, MAX_NAME);
	nrp_cursor_take(c, nrp_cursor_u64(c));
	if (!slice(in, start, c, &in->parts->header_info))
		return false;
	start = c->pos;
	skip_formats(c);
	if (!slice(in, start, c, &in->parts->ftrace_formats))
		return false;
	start = c->pos;
	for (systems = nrp_cursor_u32(c); systems && c->state == NRP_CURSOR_OK; systems--) {
		nrp_cursor_text(c, MAX_NAME);
		skip_formats(c);
	}
	if (!slice(in, start, c, &in->parts->event_formats))
		return false;
	nrp_cursor_take(c, nrp_cursor_u32(c)); /* kallsyms */
	nrp_cursor_take(c, nrp_cursor_u32(c)); /* printk */
	start = c->pos;
	nrp_cursor_take(c, nrp_cursor_u64(c));
	return slice(in, start, c, &in->parts->cmdlines) && v6_rest(in, c);
}

static struct nrp_trace_parts *read_parts(const char *path, bool headers_only, const char **ret_why)
{
	struct input in = { .parts = calloc(1, sizeof(*in.parts)), .headers_only = headers_only };
	bool ok = in.parts && map_file(&in, path);
	struct nrp_cursor c;
	const char *version;

	if (ok) {
		c = cursor_at(&in, 10);
		version = nrp_cursor_text(&c, 8);
		in.parts->big = nrp_cursor_u8(&c) == 1;
		c.big = in.parts->big;
		in.parts->long_size = nrp_cursor_u8(&c);
		in.parts->page_size = nrp_cursor_u32(&c);
		ok = version && (*version == '6' ? read_v6(&in, &c) : read_v7(&in, &c));
	}
	if (in.file.data)
		munmap(in.file.data, in.file.size);
	if (ok)
		return in.parts;
	*ret_why = in.why ? in.why : "not understood";
	return nrp_parts_free(in.parts);
}

struct nrp_trace_parts *nrp_parts_read(const char *path, const char **ret_why)
{
	return read_parts(path, false, ret_why);
}

struct nrp_trace_parts *nrp_parts_read_headers(const char *path, const char **ret_why)
{
	return read_parts(path, true, ret_why);
}
