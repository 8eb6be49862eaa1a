/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace-cmd files made by the tests themselves: pages written event by event, so that what a
 * reader must find is known without reading them.
 */
#ifndef NRP_TESTS_TRACE_SAMPLE_H
#define NRP_TESTS_TRACE_SAMPLE_H

#include "capture/tracefile.h"
#include "tests/tools/trace_parts.h"

#include <stdlib.h>

#define SAMPLE_UNAME "Linux sample 6.12.0 x86_64"
#define SAMPLE_PAGE 4096
#define SAMPLE_ID 311 /* id of the event sched:sample; 1 is ftrace:function */

/* For what only a mistake in the test, or a full disk, can make false. */
static inline void must(bool ok)
{
	if (!ok)
		abort();
}

/* A page being written, and the time its last event has. */
struct sample_page {
	struct nrp_blob *out;
	size_t start;
	uint32_t page_size;
	uint32_t used; /* bytes behind the header */
	int long_size;
	bool big;
	uint64_t time;
};

void page_begin(struct sample_page *page, struct nrp_blob *out, uint32_t page_size, int long_size,
		bool big, uint64_t time);
uint32_t page_room(const struct sample_page *page);
/* A header word; @type as in the ring buffer, @delta in 27 bits. */
void page_word(struct sample_page *page, unsigned int type, uint32_t delta);
void page_u32(struct sample_page *page, uint32_t value);
/* An event of @size payload bytes (a multiple of 4): id, two zeros, @mark, then filling. */
void page_event(struct sample_page *page, uint32_t delta, int id, uint32_t size, uint32_t mark);
void page_time_extend(struct sample_page *page, uint64_t delta);
void page_time_stamp(struct sample_page *page, uint64_t time);
/* A discarded event: @size bytes behind the header word. */
void page_discarded(struct sample_page *page, uint32_t delta, uint32_t size);
/* @missed: -1 unknown, 0 none, else the number that is stored behind the events. */
void page_end(struct sample_page *page, int64_t missed);

/* An event as the reader must report it. */
struct sample_event {
	uint64_t time;
	uint32_t cpu, rank;
	int id;
	uint32_t size, mark;
	bool lost_before;
	int64_t lost;
	uint64_t lost_since;
};

struct sample {
	struct nrp_trace_parts *parts;
	struct sample_event *events; /* in the order of time, CPU, instance */
	size_t nr_events;
};

struct sample_kind {
	bool big;
	int long_size;
	uint32_t page_size;  /* of the ring buffer */
	unsigned int pages;  /* a CPU */
	const char *name[2]; /* of instances; NULL: none */
};

/* Headers, formats and options without data. */
struct nrp_trace_parts *sample_parts(bool big, int long_size);
/* Random events on CPUs 0, 2 and 129. */
struct sample *sample_new(const struct sample_kind *kind, uint64_t seed);
struct sample *sample_free(struct sample *sample);

enum sample_format { SAMPLE_V6, SAMPLE_V7, SAMPLE_V7_ZSTD, SAMPLE_NR_FORMATS };
struct nrp_blob sample_bytes(const struct nrp_trace_parts *parts, enum sample_format format);

/* A file with these bytes; there is one, which the next call overwrites. */
const char *sample_file(const void *data, size_t size);
/* Overwrites a byte of it. */
void sample_patch(size_t at, uint8_t byte);
/* sample_bytes() in a file. */
const char *sample_write(const struct nrp_trace_parts *parts, enum sample_format format);

/* Opens a file, which must succeed. */
struct nrp_tracefile *sample_open(const char *path);
/* The next event must be this one; there must be no more. */
void sample_expect_event(struct nrp_tracefile *file, const struct sample_event *want);
void sample_expect_end(struct nrp_tracefile *file);

#endif
