/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of version 6: parts in a fixed order, described in trace-cmd.dat.v6(5). */
#include "capture/tracefile_internal.h"

#include <errno.h>

#define TAG_SIZE 10 /* "options  ", "latency  " and "flyrecord" with their NUL */

/* Skips a part with a 32- or 64-bit size in front of it. */
static void skip_sized(struct nrp_cursor *c, bool wide)
{
	nrp_cursor_take(c, wide ? nrp_cursor_u64(c) : nrp_cursor_u32(c));
}

/* The text that names the clock, behind a table of CPU data. */
static int read_table_clock(struct nrp_tracefile *file, struct nrp_cursor *c,
			    char clock[NRP_MAX_NAME + 1], struct nrp_error *err)
{
	uint64_t at = nrp_cursor_offset(c);
	uint64_t size;
	const uint8_t *text;

	clock[0] = '\0';
	if (!file->has_clock_option)
		return 0;
	size = nrp_cursor_u64(c);
	if (size > NRP_MAX_OPTION_TEXT)
		return nrp_damaged(file, err, at, "text of the trace clock has %llu bytes",
				   (unsigned long long)size);
	text = nrp_cursor_take(c, size);
	if (text)
		nrp_meta_clock(clock, (const char *)text, size);
	return nrp_cursor_check(file, c, "trace clock", err);
}

/* Offset and size of every CPU's data, and the clock. */
static int read_table(struct nrp_tracefile *file, struct nrp_cursor *c, uint32_t rank,
		      struct nrp_error *err)
{
	char clock[NRP_MAX_NAME + 1];
	uint64_t at = nrp_cursor_offset(c);
	bool any = false;
	uint32_t cpu;
	int rc;

	for (cpu = 0; cpu < file->cpu_count; cpu++) {
		struct nrp_cpu_data data = {
			.cpu = cpu,
			.page_size = file->page_size,
			.rank = rank,
			.limit = file->size,
		};
		uint64_t entry = nrp_cursor_offset(c);

		data.offset = nrp_cursor_u64(c);
		data.size = nrp_cursor_u64(c);
		if (c->state != NRP_CURSOR_OK)
			return nrp_cursor_check(file, c, "table of the CPUs' data", err);
		rc = nrp_tracefile_add_cpu(file, &data, entry, err);
		if (rc)
			return rc;
		any |= data.size != 0;
	}
	rc = read_table_clock(file, c, clock, err);
	if (rc)
		return rc;
	if (clock[0] && !file->clock[0])
		memcpy(file->clock, clock, sizeof(clock));
	return any ? nrp_tracefile_data_clock(file, clock, at, err) : 0;
}

/* The table of an instance that the option at the cursor names. */
static int read_instance(struct nrp_tracefile *file, struct nrp_cursor *option, uint32_t rank,
			 struct nrp_error *err)
{
	uint64_t at = nrp_cursor_offset(option);
	uint64_t offset = nrp_cursor_u64(option);
	struct nrp_cursor c = {
		.data = file->map,
		.size = file->size,
		.in_file = true,
		.big = file->big,
	};
	const uint8_t *tag;

	if (option->state != NRP_CURSOR_OK)
		return nrp_cursor_check(file, option, "option of an instance", err);
	if (offset > file->size)
		return nrp_cut_short(file, at, "table of an instance", offset, err);
	c.pos = offset;
	tag = nrp_cursor_take(&c, TAG_SIZE);
	if (!tag)
		return nrp_cursor_check(file, &c, "table of an instance", err);
	if (memcmp(tag, "flyrecord", TAG_SIZE))
		return nrp_damaged(file, err, offset, "no table of an instance here");
	return read_table(file, &c, rank, err);
}

/* The same; in a file that is salvaged, damage means that the instance's events are lost. */
static int take_instance(struct nrp_tracefile *file, struct nrp_cursor *option, uint32_t rank,
			 struct nrp_error *err)
{
	struct nrp_error damage = NRP_ERROR_INIT;
	size_t before = file->nr_streams;
	int rc = read_instance(file, option, rank, &damage);

	if (!rc)
		return 0;
	rc = nrp_tracefile_tolerate(file, rc, &damage, err);
	if (!rc && file->nr_streams == before)
		rc = nrp_tracefile_lose_instance(file, rank, nrp_cursor_offset(option), err);
	return rc;
}

static int take_option(struct nrp_tracefile *file, uint16_t id, struct nrp_cursor *option,
		       struct nrp_error *err)
{
	struct nrp_error damage = NRP_ERROR_INIT;
	int rc = nrp_meta_option(file, id, option, &damage);

	return nrp_tracefile_tolerate(file, rc, &damage, err);
}

/* Options up to the one with id 0; with @instances_only, only the tables they point at. */
static int read_options(struct nrp_tracefile *file, struct nrp_cursor *c, bool instances_only,
			struct nrp_error *err)
{
	uint32_t i, rank = 0;
	uint16_t id;
	int rc;

	for (i = 0; i < NRP_MAX_OPTIONS; i++) {
		struct nrp_cursor option = { .in_file = true, .big = file->big };

		id = nrp_cursor_u16(c);
		if (!id || c->state != NRP_CURSOR_OK)
			return nrp_cursor_check(file, c, "options", err);
		option.size = nrp_cursor_u32(c);
		option.base = nrp_cursor_offset(c);
		option.data = nrp_cursor_take(c, option.size);
		if (!option.data)
			return nrp_cursor_check(file, c, "option", err);
		if ((id == NRP_OPTION_BUFFER) != instances_only)
			continue;
		if (instances_only)
			rc = take_instance(file, &option, ++rank, err);
		else
			rc = take_option(file, id, &option, err);
		if (rc)
			return rc;
	}
	return nrp_damaged(file, err, nrp_cursor_offset(c), "more than %u options",
			   NRP_MAX_OPTIONS);
}

/* CPU count, options, and the tables of the top instance and of the others. */
static int read_rest(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	uint64_t at = nrp_cursor_offset(c);
	struct nrp_cursor options;
	bool has_options = false;
	const uint8_t *tag;
	int rc;

	file->cpu_count = nrp_cursor_u32(c);
	if (file->cpu_count > NRP_MAX_CPUS)
		return nrp_damaged(file, err, at, "%u CPUs", file->cpu_count);
	tag = nrp_cursor_take(c, TAG_SIZE);
	if (tag && !memcmp(tag, "options  ", TAG_SIZE)) {
		has_options = true;
		options = *c;
		rc = read_options(file, c, false, err);
		if (rc)
			return rc;
		at = nrp_cursor_offset(c);
		tag = nrp_cursor_take(c, TAG_SIZE);
	}
	if (!tag)
		return nrp_cursor_check(file, c, "file header", err);
	if (!memcmp(tag, "latency  ", TAG_SIZE)) {
		file->has_text_buffer = true;
		return 0;
	}
	if (memcmp(tag, "flyrecord", TAG_SIZE))
		return nrp_damaged(file, err, at, "no table of the CPUs' data here");
	rc = read_table(file, c, 0, err);
	if (!rc && has_options)
		rc = read_options(file, &options, true, err);
	return rc;
}

int nrp_tracefile_read_v6(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	int rc;

	rc = nrp_meta_header_info(file, c, err);
	if (!rc)
		rc = nrp_meta_ftrace_formats(file, c, err);
	if (!rc)
		rc = nrp_meta_event_formats(file, c, err);
	if (rc)
		return rc;
	skip_sized(c, false); /* kallsyms */
	skip_sized(c, false); /* printk formats */
	skip_sized(c, true);  /* command lines */
	rc = nrp_cursor_check(file, c, "symbols and command lines", err);
	return rc ? rc : read_rest(file, c, err);
}
