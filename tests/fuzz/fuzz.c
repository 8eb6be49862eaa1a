/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/fuzz.h"

#include "capture/events.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define SECTION_HEADER 16   /* bytes of a section's id, flags, description and size */
#define REFERENCES (5 * 14) /* bytes of the options that name the sections of headers */

/* Events and damages of one file: far more than a small input can hold. */
#define MAX_STEPS 100000

static void read_events(struct nrp_tracefile *file)
{
	struct nrp_raw_event event;
	int damages = 0;

	for (int i = 0; i < MAX_STEPS && damages < 1000; i++) {
		struct nrp_error err = NRP_ERROR_INIT;
		int r = nrp_tracefile_next(file, &event, &err);

		if (r == 0)
			return;
		damages += r < 0;
		/* A payload that is not there shows up under the sanitizer. */
		for (uint32_t k = 0; r > 0 && k < event.size; k++) {
			volatile uint8_t byte = event.data[k];

			(void)byte;
		}
	}
}

void fuzz_read_trace(const void *data, size_t size)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_catalogue *catalogue;
	struct nrp_tracefile *file;

	if (nrp_tracefile_open(&file, sample_file(data, size), &err) < 0)
		return;
	if (nrp_catalogue_new(&catalogue, file, &err) == 0)
		free(catalogue);
	read_events(file);
	nrp_tracefile_close(file);
}

struct nrp_trace_parts *fuzz_parts(uint8_t flags)
{
	struct nrp_trace_parts *parts = sample_parts(flags & FUZZ_BIG, flags & FUZZ_LONG32 ? 4 : 8);

	while (parts->nr_options)
		free(parts->options[--parts->nr_options].data.data);
	parts->page_size = FUZZ_PAGE;
	return parts;
}

/* Bytes before the offset of the first options in a file of version 7. */
static size_t first_options(enum sample_format format)
{
	const char *packing = format == SAMPLE_V7_ZSTD ? "zstd" : "none";

	return strlen("\x17\x08\x44tracing7") + 1 + 1 + 1 + 4 + strlen(packing) + 1 +
	       strlen(ZSTD_versionString()) + 1;
}

static uint64_t number(const uint8_t *p, bool big)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value |= (uint64_t)p[big ? 7 - i : i] << (8 * i);
	return value;
}

/* The file without options or data of its own; made once, since making it takes longer than reading
 * it. */
static const struct nrp_blob *base_file(uint8_t flags, enum sample_format format)
{
	static struct nrp_blob files[4][SAMPLE_NR_FORMATS];
	struct nrp_blob *file = &files[flags & (FUZZ_BIG | FUZZ_LONG32)][format];

	if (!file->data) {
		struct nrp_trace_parts *parts = fuzz_parts(flags);

		*file = sample_bytes(parts, format);
		nrp_parts_free(parts);
	}
	return file;
}

struct nrp_blob fuzz_trace_v7(uint8_t flags, enum sample_format format, const void *options,
			      size_t size, const void *data, size_t data_size)
{
	const struct nrp_blob *base = base_file(flags, format);
	struct nrp_blob out = { 0 }, offset = { 0 };
	size_t first = first_options(format), references;
	bool big = flags & FUZZ_BIG;

	references = number(base->data + first, big) + SECTION_HEADER;
	must(references + REFERENCES <= base->size);
	must(nrp_blob_append(&out, base->data, base->size));
	must(nrp_blob_number(&out, 0, 4, big) && nrp_blob_number(&out, 0, 4, big) &&
	     nrp_blob_number(&out, REFERENCES + size, 8, big));
	must(nrp_blob_append(&out, base->data + references, REFERENCES) &&
	     (!size || nrp_blob_append(&out, options, size)) &&
	     (!data_size || nrp_blob_append(&out, data, data_size)));
	must(nrp_blob_number(&offset, base->size, 8, big));
	memcpy(out.data + first, offset.data, 8);
	free(offset.data);
	return out;
}

size_t fuzz_data_offset(uint8_t flags, enum sample_format format, size_t options_size)
{
	return base_file(flags, format)->size + SECTION_HEADER + REFERENCES + options_size;
}

struct nrp_store *fuzz_store_begin(void)
{
	static struct nrp_store *store;

	if (!store) {
		const char *folder = getenv("TMPDIR");
		char path[512];
		int fd;

		snprintf(path, sizeof(path), "%s/nrp-fuzz-XXXXXX", folder ? folder : "/tmp");
		fd = mkstemp(path);
		must(fd >= 0 && close(fd) == 0 &&
		     nrp_store_open(&store, path, NRP_STORE_CREATE, NULL) == 0 &&
		     nrp_store_exec(store, "PRAGMA journal_mode = MEMORY", NULL) == 0 &&
		     nrp_store_begin(store, NULL) == 0 && nrp_store_commit(store, NULL) == 0 &&
		     unlink(path) == 0);
	}
	must(nrp_store_begin(store, NULL) == 0);
	return store;
}
