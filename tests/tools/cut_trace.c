/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cut_trace [--v6 | --none] [--from SECONDS] [--to SECONDS] IN OUT
 *
 * Development tool that makes small test inputs: writes the trace-cmd file IN again as version
 * 7 with zstd, as version 7 uncompressed (--none) or as version 6 (--v6), without kernel symbols
 * and printk formats, and only with the ring-buffer pages that overlap the time span.
 * Pages are kept as they are. Times are those of the trace's clock.
 */
#include "capture/tracefile.h"
#include "tests/tools/trace_parts.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/kbuffer.h>

struct span {
	uint64_t from, to; /* ns, both included */
};

/* Seconds with up to nine decimals, as ns. */
static bool parse_seconds(const char *text, uint64_t *ret)
{
	uint64_t value = 0, unit = 1000000000;
	bool point = false;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (*text < '0' || *text > '9' || (point && unit == 1) ||
		    value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
		if (point)
			unit /= 10;
	}
	if (value > UINT64_MAX / unit)
		return false;
	*ret = value * unit;
	return true;
}

/* Reads all events once, so that what follows may trust the file; prints what is wrong. */
static bool check_input(const char *path, int *ret_long_size)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event event;
	int rc = nrp_tracefile_open(&file, path, &err);

	if (!rc) {
		*ret_long_size = nrp_tracefile_long_size(file);
		do
			rc = nrp_tracefile_next(file, &event, &err);
		while (rc > 0);
	}
	nrp_tracefile_close(file);
	if (rc)
		fprintf(stderr, "cut_trace: %s: offset %" PRId64 ": %s\n", path, err.offset,
			err.what);
	return !rc;
}

/* Whether the time from a page's first event to its last one and the span overlap. */
static bool overlaps(struct kbuffer *kbuf, uint8_t *page, const struct span *span)
{
	unsigned long long time, last = 0, first = UINT64_MAX;
	void *event;

	if (kbuffer_load_subbuffer(kbuf, page))
		return false;
	for (event = kbuffer_read_event(kbuf, &time); event;
	     event = kbuffer_next_event(kbuf, &time)) {
		first = first < time ? first : time;
		last = time;
	}
	return first <= span->to && last >= span->from;
}

/* Drops the pages of one CPU that lie outside the span. */
static void keep_pages(struct kbuffer *kbuf, struct nrp_blob *pages, uint32_t page_size,
		       const struct span *span)
{
	size_t pos, kept = 0;

	for (pos = 0; pos + page_size <= pages->size; pos += page_size) {
		if (!overlaps(kbuf, pages->data + pos, span))
			continue;
		memmove(pages->data + kept, pages->data + pos, page_size);
		kept += page_size;
	}
	pages->size = kept;
}

static bool keep_span(struct nrp_trace_parts *parts, int long_size, const struct span *span)
{
	struct kbuffer *kbuf =
		kbuffer_alloc(long_size == 8 ? KBUFFER_LSIZE_8 : KBUFFER_LSIZE_4,
			      parts->big ? KBUFFER_ENDIAN_BIG : KBUFFER_ENDIAN_LITTLE);
	size_t i, j;

	if (!kbuf)
		return false;
	for (i = 0; i < parts->nr_buffers; i++) {
		struct nrp_part_buffer *buffer = &parts->buffers[i];

		for (j = 0; j < buffer->nr_cpus; j++)
			keep_pages(kbuf, &buffer->cpus[j].pages, buffer->page_size, span);
	}
	kbuffer_free(kbuf);
	return true;
}

static bool write_file(const char *path, const struct nrp_blob *data)
{
	FILE *f = data->data ? fopen(path, "wb") : NULL;
	bool ok = f && fwrite(data->data, 1, data->size, f) == data->size;

	if (f && fclose(f))
		ok = false;
	if (!ok)
		fprintf(stderr, "cut_trace: cannot write %s\n", path);
	return ok;
}

static int usage(void)
{
	fputs("usage: cut_trace [--v6 | --none] [--from SECONDS] [--to SECONDS] IN OUT\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "v6", no_argument, NULL, '6' },
		{ "none", no_argument, NULL, 'n' },
		{ "from", required_argument, NULL, 'f' },
		{ "to", required_argument, NULL, 't' },
		{ 0 },
	};
	struct span span = { .to = UINT64_MAX };
	struct nrp_trace_parts *parts;
	struct nrp_blob out;
	const char *why = "";
	int c, long_size = 8;
	bool v6 = false, none = false, cut = false, ok;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == '6')
			v6 = true;
		else if (c == 'n')
			none = true;
		else if ((c != 'f' && c != 't') ||
			 !parse_seconds(optarg, c == 'f' ? &span.from : &span.to))
			return usage();
		else
			cut = true;
	}
	if (argc - optind != 2 || (v6 && none))
		return usage();
	if (!check_input(argv[optind], &long_size))
		return 3;
	parts = nrp_parts_read(argv[optind], &why);
	if (!parts || (cut && !keep_span(parts, long_size, &span))) {
		fprintf(stderr, "cut_trace: %s: %s\n", argv[optind], why);
		nrp_parts_free(parts);
		return 3;
	}
	out = v6 ? nrp_parts_write_v6(parts)
		 : nrp_parts_write_v7(parts, none ? NRP_PACK_NONE : NRP_PACK_ZSTD);
	nrp_parts_free(parts);
	ok = write_file(argv[optind + 1], &out);
	free(out.data);
	return ok ? 0 : 5;
}
