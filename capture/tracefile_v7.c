/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of version 7: a chain of sections, described in trace-cmd.dat.v7(5). */
#include "capture/tracefile_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#define SECTION_HEADER 16 /* bytes: u16 id, u16 flags, u32 string, u64 size */

/* The header of a section, whose data must lie in the file; those of CPUs may be cut if salvaged.
 */
static int section_at(struct nrp_tracefile *file, uint64_t at, struct nrp_section *ret,
		      struct nrp_error *err)
{
	struct nrp_cursor c = {
		.data = file->map,
		.size = file->size,
		.in_file = true,
		.big = file->big,
	};
	uint64_t size;

	if (at > file->size)
		return nrp_cut_short(file, file->size, "section", at, err);
	c.pos = at;
	*ret = (struct nrp_section){ .at = at };
	ret->id = nrp_cursor_u16(&c);
	ret->flags = nrp_cursor_u16(&c);
	ret->string = nrp_cursor_u32(&c);
	size = nrp_cursor_u64(&c);
	if (c.state != NRP_CURSOR_OK)
		return nrp_cursor_check(file, &c, "section header", err);
	ret->start = c.pos;
	ret->end = ret->want_end = size > UINT64_MAX - c.pos ? UINT64_MAX : c.pos + size;
	if (size > file->size - c.pos) {
		if (!file->salvage || ret->id != NRP_OPTION_BUFFER)
			return nrp_cut_short(file, at, "section", ret->want_end, err);
		ret->end = file->size;
	}
	if ((ret->flags & NRP_SECTION_COMPRESSED) && !file->zstd)
		return nrp_damaged(file, err, at, "compressed section in an uncompressed file");
	return 0;
}

/*
 * A cursor over a section's data; *@ret_owned is what the caller frees afterwards, or NULL.
 */
static int section_data(struct nrp_tracefile *file, const struct nrp_section *section,
			struct nrp_cursor *ret, uint8_t **ret_owned, struct nrp_error *err)
{
	struct nrp_cursor c = {
		.data = file->map + section->start,
		.size = section->end - section->start,
		.base = section->start,
		.in_file = true,
		.big = file->big,
	};
	uint32_t packed, size;
	const uint8_t *data;
	uint8_t *owned;
	size_t n;

	*ret_owned = NULL;
	*ret = c;
	if (!(section->flags & NRP_SECTION_COMPRESSED))
		return 0;
	packed = nrp_cursor_u32(&c);
	size = nrp_cursor_u32(&c);
	data = nrp_cursor_take(&c, packed);
	if (!data)
		return nrp_damaged(file, err, section->at, "section smaller than its contents");
	if (size > NRP_MAX_SECTION)
		return nrp_damaged(file, err, section->at, "section of %u bytes", size);
	owned = malloc(size ? size : 1);
	if (!owned)
		return nrp_fail_nomem(err);
	n = ZSTD_decompress(owned, size, data, packed);
	if (ZSTD_isError(n) || n != size) {
		free(owned);
		return nrp_damaged(file, err, section->at, "section does not decompress");
	}
	*ret_owned = owned;
	*ret = (struct nrp_cursor){
		.data = owned,
		.size = size,
		.base = section->at,
		.big = file->big,
	};
	return 0;
}

/* A section that an option points at, read by @parse. */
static int read_section(struct nrp_tracefile *file, uint16_t id, struct nrp_cursor *option,
			int (*parse)(struct nrp_tracefile *, struct nrp_cursor *,
				     struct nrp_error *),
			struct nrp_error *err)
{
	uint64_t at = nrp_cursor_offset(option);
	uint64_t offset = nrp_cursor_u64(option);
	struct nrp_section section;
	struct nrp_cursor c;
	uint8_t *owned;
	int rc;

	if (option->state != NRP_CURSOR_OK)
		return nrp_cursor_check(file, option, "option", err);
	rc = section_at(file, offset, &section, err);
	if (rc)
		return rc;
	if (section.id != id)
		return nrp_damaged(file, err, at, "option %u points at a section of kind %u", id,
				   section.id);
	if (!parse)
		return 0;
	rc = section_data(file, &section, &c, &owned, err);
	if (!rc)
		rc = parse(file, &c, err);
	free(owned);
	return rc;
}

/* The data of the CPUs that a BUFFER option lists behind its page size. */
static int read_cpus(struct nrp_tracefile *file, struct nrp_cursor *c,
		     const struct nrp_section *section, uint32_t rank, bool *ret_any,
		     struct nrp_error *err)
{
	struct nrp_cpu_data data = {
		.rank = rank,
		.limit = section->want_end,
		.compressed = (section->flags & NRP_SECTION_COMPRESSED) != 0,
	};
	uint32_t count, i;
	int rc;

	data.page_size = nrp_cursor_u32(c);
	count = nrp_cursor_u32(c);
	if (c->state != NRP_CURSOR_OK)
		return 0; /* the caller looks */
	rc = nrp_tracefile_check_page_size(file, data.page_size, nrp_cursor_offset(c), err);
	for (i = 0; i < count && !rc; i++) {
		uint64_t at = nrp_cursor_offset(c);

		data.cpu = nrp_cursor_u32(c);
		data.offset = nrp_cursor_u64(c);
		data.size = nrp_cursor_u64(c);
		if (c->state != NRP_CURSOR_OK)
			break;
		if (data.size && data.offset < section->start)
			data.limit = 0; /* outside */
		rc = nrp_tracefile_add_cpu(file, &data, at, err);
		data.limit = section->want_end;
		*ret_any |= data.size != 0;
	}
	return rc;
}

/* The table of this section of CPU data was found. */
static void note_buffer(struct nrp_tracefile *file, uint64_t at)
{
	size_t i;

	for (i = 0; i < file->nr_sections; i++) {
		if (file->sections[i].at == at)
			file->sections[i].has_table = true;
	}
}

static int read_buffer(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	uint64_t at = nrp_cursor_offset(c);
	uint64_t offset = nrp_cursor_u64(c);
	const char *name = nrp_cursor_text(c, NRP_MAX_NAME);
	const char *clock = nrp_cursor_text(c, NRP_MAX_NAME);
	struct nrp_section section;
	bool any = false;
	uint32_t rank;
	int rc;

	if (c->state != NRP_CURSOR_OK)
		return nrp_cursor_check(file, c, "option of an instance", err);
	rc = section_at(file, offset, &section, err);
	if (rc)
		return rc;
	if (section.id != NRP_OPTION_BUFFER)
		return nrp_damaged(file, err, at, "instance points at a section of kind %u",
				   section.id);
	rank = name[0] ? ++file->nr_buffers : 0;
	note_buffer(file, offset);
	rc = read_cpus(file, c, &section, rank, &any, err);
	if (!rc)
		rc = nrp_cursor_check(file, c, "option of an instance", err);
	if (rc || !any)
		return rc;
	return nrp_tracefile_data_clock(file, clock, at, err);
}

static int read_option(struct nrp_tracefile *file, uint16_t id, struct nrp_cursor *c,
		       struct nrp_error *err)
{
	switch (id) {
	case NRP_OPTION_BUFFER:
		return read_buffer(file, c, err);
	case NRP_OPTION_BUFFER_TEXT:
		file->has_text_buffer = true;
		return 0;
	case NRP_OPTION_HEADER_INFO:
		return read_section(file, id, c, nrp_meta_header_info, err);
	case NRP_OPTION_FTRACE_EVENTS:
		return read_section(file, id, c, nrp_meta_ftrace_formats, err);
	case NRP_OPTION_EVENT_FORMATS:
		return read_section(file, id, c, nrp_meta_event_formats, err);
	case NRP_OPTION_KALLSYMS:
	case NRP_OPTION_PRINTK:
	case NRP_OPTION_CMDLINES:
		return read_section(file, id, c, NULL, err);
	default:
		return nrp_meta_option(file, id, c, err);
	}
}

/* The same; in a file that is salvaged, damage costs what the option is about. */
static int take_option(struct nrp_tracefile *file, uint16_t id, struct nrp_cursor *c,
		       struct nrp_error *err)
{
	struct nrp_error damage = NRP_ERROR_INIT;
	int rc = read_option(file, id, c, &damage);

	if (!rc)
		return 0;
	rc = nrp_tracefile_tolerate(file, rc, &damage, err);
	if (!rc && id == NRP_OPTION_EVENT_FORMATS)
		nrp_meta_formats_lost(file, (uint64_t)damage.offset);
	return rc;
}

/* The options of one section; *@ret_next is the offset of the next section, 0: none. */
static int read_options(struct nrp_tracefile *file, struct nrp_cursor *c, uint32_t *budget,
			uint64_t *ret_next, struct nrp_error *err)
{
	int rc;

	while (c->state == NRP_CURSOR_OK) {
		struct nrp_cursor option = { .in_file = c->in_file, .big = c->big };
		uint64_t at = nrp_cursor_offset(c);
		uint16_t id = nrp_cursor_u16(c);

		option.size = nrp_cursor_u32(c);
		option.base = nrp_cursor_offset(c);
		option.data = nrp_cursor_take(c, option.size);
		if (!option.data)
			break;
		if (!(*budget)--)
			return nrp_damaged(file, err, at, "more than %u options", NRP_MAX_OPTIONS);
		if (id == NRP_OPTION_DONE) {
			*ret_next = nrp_cursor_u64(&option);
			return nrp_cursor_check(file, &option, "last option", err);
		}
		rc = take_option(file, id, &option, err);
		if (rc)
			return rc;
	}
	return nrp_cursor_check(file, c, "options", err);
}

/* The options section at *@offset, which becomes that of the next one. */
static int follow_options(struct nrp_tracefile *file, uint64_t *offset, uint32_t *budget,
			  struct nrp_error *err)
{
	struct nrp_section section;
	struct nrp_cursor c;
	uint8_t *owned;
	int rc = section_at(file, *offset, &section, err);

	if (rc)
		return rc;
	if (section.id != NRP_OPTION_DONE)
		return nrp_damaged(file, err, *offset, "no options section here");
	rc = section_data(file, &section, &c, &owned, err);
	if (!rc)
		rc = read_options(file, &c, budget, offset, err);
	free(owned);
	return rc;
}

/* Follows the chain of options sections from @offset; @nr_sections is all the file has. */
static int read_all_options(struct nrp_tracefile *file, uint64_t offset, uint32_t nr_sections,
			    struct nrp_error *err)
{
	uint32_t budget = NRP_MAX_OPTIONS, visited = 0;
	int rc;

	if (!offset)
		return nrp_damaged(file, err, 0, "no options");
	while (offset) {
		if (visited++ == nr_sections)
			return nrp_damaged(file, err, offset, "options sections form a loop");
		rc = follow_options(file, &offset, &budget, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Bytes of text that a strings section holds. */
static int strings_size(struct nrp_tracefile *file, const struct nrp_section *section,
			uint64_t *ret, struct nrp_error *err)
{
	struct nrp_cursor c;
	uint8_t *owned;
	int rc = section_data(file, section, &c, &owned, err);

	if (!rc)
		*ret += c.size;
	free(owned);
	return rc;
}

/* For CPU data whose table turns out to be missing. */
static int remember_buffer(struct nrp_tracefile *file, const struct nrp_section *section,
			   struct nrp_error *err)
{
	struct nrp_section *grown =
		reallocarray(file->sections, file->nr_sections + 1, sizeof(*grown));

	if (!grown)
		return nrp_fail_nomem(err);
	file->sections = grown;
	file->sections[file->nr_sections++] = *section;
	return 0;
}

/*
 * Sections follow each other without a gap, so that walking them shows whether the end of the
 * file is missing. The names of sections (strings sections) come last and nothing else points
 * at them: a section named by a text that is not there means they were cut off.
 */
static int check_chain(struct nrp_tracefile *file, uint64_t offset, uint32_t *ret_sections,
		       struct nrp_error *err)
{
	uint64_t strings = 0, highest = 0, highest_at = 0;
	uint32_t n;
	int rc;

	for (n = 0; offset < file->size; *ret_sections = ++n) {
		struct nrp_section section;

		if (n == NRP_MAX_FILE_SECTIONS)
			return nrp_damaged(file, err, offset, "more than %d sections",
					   NRP_MAX_FILE_SECTIONS);
		rc = section_at(file, offset, &section, err);
		if (!rc && section.id == NRP_OPTION_STRINGS)
			rc = strings_size(file, &section, &strings, err);
		if (!rc && section.id == NRP_OPTION_BUFFER && file->salvage)
			rc = remember_buffer(file, &section, err);
		if (!rc && section.end < section.want_end)
			rc = nrp_cut_short(file, section.at, "section", section.want_end, err);
		if (rc)
			return rc;
		if (section.string >= highest) {
			highest = section.string;
			highest_at = offset;
		}
		offset = section.end;
	}
	if (!n)
		return nrp_cut_short(file, offset, "section", offset + SECTION_HEADER, err);
	if (highest >= strings)
		return nrp_fail(err, NRP_INPUT, -ENODATA, file->path, (int64_t)file->size,
				NRP_REMEDY_COPY,
				"cut short: the section at %llu has no name: names end at %llu, "
				"it needs %llu",
				(unsigned long long)highest_at, (unsigned long long)strings,
				(unsigned long long)highest);
	return 0;
}

/* The compression header: two texts. */
static int read_compression(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	uint64_t at = nrp_cursor_offset(c);
	const char *name = nrp_cursor_text(c, NRP_MAX_NAME);
	const char *p;

	nrp_cursor_text(c, NRP_MAX_NAME); /* its version */
	if (c->state != NRP_CURSOR_OK)
		return nrp_cursor_check(file, c, "file header", err);
	file->zstd = !strcmp(name, "zstd");
	if (file->zstd || !strcmp(name, "none"))
		return 0;
	for (p = name; *p; p++) {
		if (!isalnum((unsigned char)*p))
			return nrp_damaged(file, err, at, "name of the compression is damaged");
	}
	return nrp_fail(err, NRP_INPUT, -ENOTSUP, file->path, (int64_t)at,
			"convert it with trace-cmd convert --compression zstd",
			"compressed with %s, which this build does not read", name);
}

/* Finds the CPU data that no table describes. */
static int salvage_buffers(struct nrp_tracefile *file, struct nrp_error *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < file->nr_sections && !rc; i++) {
		const struct nrp_section *section = &file->sections[i];

		if (!section->has_table && section->want_end > section->start)
			rc = nrp_salvage_buffer(file, section, i, err);
	}
	return rc;
}

/* Options and what they point at, whether or not the file is cut or damaged in them. */
static int read_sections(struct nrp_tracefile *file, uint64_t first, uint64_t options,
			 struct nrp_error *err)
{
	struct nrp_error damage = NRP_ERROR_INIT;
	uint32_t nr_sections = 0;
	int rc = check_chain(file, first, &nr_sections, &damage);

	if (rc)
		nr_sections = NRP_MAX_FILE_SECTIONS;
	rc = nrp_tracefile_tolerate(file, rc, &damage, err);
	if (rc)
		return rc;
	damage = (struct nrp_error)NRP_ERROR_INIT;
	rc = read_all_options(file, options, nr_sections, &damage);
	if (!rc && !file->has_header_info)
		rc = nrp_damaged(file, &damage, options, "no page header description");
	rc = nrp_tracefile_tolerate(file, rc, &damage, err);
	return rc ? rc : salvage_buffers(file, err);
}

int nrp_tracefile_read_v7(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	uint64_t options;
	int rc;

	rc = read_compression(file, c, err);
	if (rc)
		return rc;
	options = nrp_cursor_u64(c);
	rc = nrp_cursor_check(file, c, "file header", err);
	return rc ? rc : read_sections(file, c->pos, options, err);
}
