/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A capture repeated: the ring-buffer pages of every CPU several times, each time as much later
 * as the capture is long. Times are all that changes: jiffies, scan sequences and so on begin
 * again with every repetition.
 */
#include "bench/generate.h"

#include "capture/tracefile_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define CHUNK_PAGES 10          /* of uncompressed input */
#define PAUSE UINT64_C(1000000) /* ns between two repetitions */
#define STAMP_BITS 59           /* of an absolute time stamp in a page */
#define DELTA_BITS 27           /* of these in the event header */

enum { TYPE_PADDING = 29, TYPE_TIME_EXTEND = 30, TYPE_TIME_STAMP = 31 };

struct repeat {
	struct nrp_page_source source;
	struct nrp_bench_files *files;
	unsigned int times;
	uint64_t period; /* ns from one repetition to the next */

	unsigned int round; /* repetition that the CPU is in */
	bool inside;        /* pos and chunks are those of this round */
	uint64_t pos;       /* next byte of the input */
	uint32_t chunks;    /* left, if compressed */
	uint8_t *chunk;
	size_t room;
};

/* The input's data of a CPU: both lists have the CPUs with data in the order of the file. */
static const struct nrp_stream *stream_of(const struct repeat *r, size_t buffer, size_t cpu)
{
	const struct nrp_trace_parts *parts = r->files->parts;
	const struct nrp_tracefile *in = r->files->in;
	size_t at = cpu;

	for (size_t i = 0; i < buffer; i++)
		at += parts->buffers[i].nr_cpus;
	return at < in->nr_streams && in->streams[at].cpu == parts->buffers[buffer].cpus[cpu].cpu
		       ? &in->streams[at]
		       : NULL;
}

static bool reserve(struct repeat *r, size_t size)
{
	uint8_t *grown = size > r->room ? realloc(r->chunk, size) : r->chunk;

	if (!grown)
		return false;
	r->room = size > r->room ? size : r->room;
	r->chunk = grown;
	return true;
}

static bool read_packed(struct repeat *r, size_t *ret_size)
{
	const struct nrp_tracefile *in = r->files->in;
	uint32_t packed = nrp_load32(in->map + r->pos, in->big);
	uint32_t size = nrp_load32(in->map + r->pos + 4, in->big);

	if (!reserve(r, size) ||
	    ZSTD_decompress(r->chunk, size, in->map + r->pos + 8, packed) != size)
		return false;
	r->pos += 8 + (uint64_t)packed;
	r->chunks--;
	*ret_size = size;
	return true;
}

static bool read_plain(struct repeat *r, const struct nrp_stream *s, size_t *ret_size)
{
	uint64_t left = s->end - r->pos, size = CHUNK_PAGES * (uint64_t)s->page_size;

	size = left < size ? left : size;
	if (!reserve(r, size))
		return false;
	memcpy(r->chunk, r->files->in->map + r->pos, size);
	r->pos += size;
	*ret_size = size;
	return true;
}

/* The time stamp at @p: 27 bits in the header word, 32 behind it; above them is what there was. */
static void shift_stamp(uint8_t *p, uint64_t shift, bool big)
{
	uint32_t word = nrp_load32(p, big), low = (UINT32_C(1) << DELTA_BITS) - 1;
	uint64_t time = (big ? word & low : word >> 5) | (uint64_t)nrp_load32(p + 4, big)
								 << DELTA_BITS;

	time = (time + shift) & ((UINT64_C(1) << STAMP_BITS) - 1);
	word = big ? (word & ~low) | ((uint32_t)time & low)
		   : (word & 31) | ((uint32_t)time & low) << 5;
	nrp_store_number(p, word, 4, big);
	nrp_store_number(p + 4, time >> DELTA_BITS, 4, big);
}

/* Bytes of the event at @p, header word included; 0: nothing follows on this page. */
static uint64_t event_size(const uint8_t *p, bool big)
{
	uint32_t word = nrp_load32(p, big), type = big ? word >> DELTA_BITS : word & 31;
	uint32_t delta = big ? word & ((UINT32_C(1) << DELTA_BITS) - 1) : word >> 5;

	if (type == TYPE_PADDING && !delta)
		return 0;
	if (type == TYPE_TIME_EXTEND || type == TYPE_TIME_STAMP)
		return 8;
	if (type == TYPE_PADDING || !type)
		return 4 + (uint64_t)nrp_load32(p + 4, big);
	return 4 + 4 * (uint64_t)type;
}

static void shift_page(const struct nrp_tracefile *in, uint8_t *page, uint32_t page_size,
		       uint64_t shift)
{
	uint32_t pos = 8 + (uint32_t)in->long_size, commit = nrp_load32(page + 8, in->big), end;
	uint64_t size;

	if (in->big && in->long_size == 8)
		commit = nrp_load32(page + 12, true);
	commit &= ~(UINT32_C(3) << 30); /* flags of lost events */
	end = commit < page_size - pos ? pos + commit : page_size;
	nrp_store_number(page, nrp_load64(page, in->big) + shift, 8, in->big);
	for (; pos + 8 <= end; pos += (uint32_t)size) {
		uint32_t word = nrp_load32(page + pos, in->big);

		if ((in->big ? word >> DELTA_BITS : word & 31) == TYPE_TIME_STAMP)
			shift_stamp(page + pos, shift, in->big);
		size = event_size(page + pos, in->big);
		if (!size || size > end - pos)
			return;
	}
}

/* Begins the next repetition of the CPU; false after the last one. */
static bool next_round(struct repeat *r, const struct nrp_stream *s)
{
	if (r->inside)
		r->round++;
	r->inside = r->round < r->times;
	r->pos = s->start;
	if (s->compressed) {
		r->chunks = nrp_load32(r->files->in->map + r->pos, r->files->in->big);
		r->pos += 4;
	}
	if (!r->inside)
		r->round = 0; /* of the next CPU */
	return r->inside;
}

static bool next_pages(struct nrp_page_source *source, size_t buffer, size_t cpu,
		       struct nrp_blob *ret)
{
	struct repeat *r = (struct repeat *)source;
	const struct nrp_stream *s = stream_of(r, buffer, cpu);
	size_t size, pos;

	if (!s)
		return false;
	if (!r->inside || (s->compressed ? !r->chunks : r->pos >= s->end)) {
		if (!next_round(r, s))
			return true;
	}
	if (!(s->compressed ? read_packed(r, &size) : read_plain(r, s, &size)) ||
	    size % s->page_size)
		return false;
	for (pos = 0; pos < size; pos += s->page_size)
		shift_page(r->files->in, r->chunk + pos, s->page_size, r->round * r->period);
	*ret = (struct nrp_blob){ r->chunk, size };
	return true;
}

/* Reads all events once, so that the rest may trust the file; gives the time from first to last. */
static int measure(struct nrp_tracefile *in, uint64_t *ret_events, uint64_t *ret_span)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_raw_event event;
	uint64_t first = UINT64_MAX, last = 0;
	int rc;

	for (*ret_events = 0; (rc = nrp_tracefile_next(in, &event, &err)) > 0; ++*ret_events) {
		first = event.time < first ? event.time : first;
		last = event.time > last ? event.time : last;
	}
	if (rc < 0)
		fprintf(stderr, "bench_generate: offset %" PRId64 ": %s\n", err.offset, err.what);
	*ret_span = last > first ? last - first : 0;
	return rc;
}

int nrp_bench_repeat(struct nrp_bench_files *files, unsigned int times)
{
	struct repeat r = { .source.next = next_pages, .files = files, .times = times };
	uint64_t events;
	bool ok;

	if (measure(files->in, &events, &r.period) < 0)
		return 3;
	r.period += PAUSE;
	ok = nrp_parts_write(files->parts, files->version, NRP_PACK_ZSTD, &r.source, files->out);
	free(r.chunk);
	if (!ok) {
		fprintf(stderr, "bench_generate: %s: cannot be written\n", files->out_path);
		return 5;
	}
	printf("events %" PRIu64 "\n", events * times);
	return 0;
}
