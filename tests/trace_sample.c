/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trace-cmd files made by the tests themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/trace_sample.h"

#include "capture/bytes.h"
#include "tests/test_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TYPE_PADDING 29
#define TYPE_TIME_EXTEND 30
#define TYPE_TIME_STAMP 31
#define DELTA_MASK ((1u << 27) - 1)

/* The file of sample_file(): it is in memory only. */
static int file_fd = -1;
static char file_name[64];

/* Numbers that do not fit are a mistake in the test. */
static void put(struct nrp_blob *out, uint64_t value, unsigned int bytes, bool big)
{
	must(nrp_blob_number(out, value, bytes, big));
}

void page_begin(struct sample_page *page, struct nrp_blob *out, uint32_t page_size, int long_size,
		bool big, uint64_t time)
{
	*page = (struct sample_page){
		.out = out,
		.start = out->size,
		.page_size = page_size,
		.long_size = long_size,
		.big = big,
		.time = time,
	};
	put(out, time, 8, big);
	put(out, 0, (unsigned int)long_size, big);
}

uint32_t page_room(const struct sample_page *page)
{
	return page->page_size - 8 - (uint32_t)page->long_size - page->used;
}

void page_u32(struct sample_page *page, uint32_t value)
{
	put(page->out, value, 4, page->big);
	page->used += 4;
}

void page_word(struct sample_page *page, unsigned int type, uint32_t delta)
{
	page_u32(page, page->big ? type << 27 | delta : delta << 5 | type);
}

void page_event(struct sample_page *page, uint32_t delta, int id, uint32_t size, uint32_t mark)
{
	uint32_t i;

	page->time += delta;
	page_word(page, size <= 28 * 4 ? size / 4 : 0, delta);
	if (size > 28 * 4)
		page_u32(page, size + 4);
	put(page->out, (uint64_t)id, 2, page->big);
	put(page->out, 0, 2, page->big);
	page->used += 4;
	page_u32(page, mark);
	for (i = 8; i < size; i += 4)
		page_u32(page, mark ^ i);
}

void page_time_extend(struct sample_page *page, uint64_t delta)
{
	page->time += delta;
	page_word(page, TYPE_TIME_EXTEND, (uint32_t)delta & DELTA_MASK);
	page_u32(page, (uint32_t)(delta >> 27));
}

void page_time_stamp(struct sample_page *page, uint64_t time)
{
	page->time = time;
	page_word(page, TYPE_TIME_STAMP, (uint32_t)time & DELTA_MASK);
	page_u32(page, (uint32_t)(time >> 27));
}

void page_discarded(struct sample_page *page, uint32_t delta, uint32_t size)
{
	uint32_t i;

	page->time += delta;
	page_word(page, TYPE_PADDING, delta);
	page_u32(page, size);
	for (i = 4; i < size; i += 4)
		page_u32(page, 0xfffffffd);
}

void page_end(struct sample_page *page, int64_t missed)
{
	uint64_t commit = page->used;
	struct nrp_blob word = { 0 };
	uint32_t rest;

	if (missed)
		commit |= missed < 0 ? UINT64_C(1) << 31 : UINT64_C(3) << 30;
	put(&word, commit, (unsigned int)page->long_size, page->big);
	memcpy(page->out->data + page->start + 8, word.data, word.size);
	free(word.data);
	if (missed > 0) {
		put(page->out, (uint64_t)missed, (unsigned int)page->long_size, page->big);
		page->used += (uint32_t)page->long_size;
	}
	rest = page_room(page);
	while (rest--) /* not zeros: a reader must not look there */
		put(page->out, 0xa5, 1, false);
	must(page->out->size == page->start + page->page_size);
}

static void add_text_format(struct nrp_blob *out, const char *name, int id, bool big)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "name: %s\nID: %d\nformat:\n"
			 "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			 "\n\tfield:unsigned int mark;\toffset:4;\tsize:4;\tsigned:0;\n",
			 name, id);

	put(out, (uint64_t)n, 8, big);
	nrp_blob_append(out, text, (size_t)n);
}

static void add_header_info(struct nrp_trace_parts *parts, int long_size)
{
	struct nrp_blob *out = &parts->header_info;
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
			 "\tfield: local_t commit;\toffset:8;\tsize:%d;\tsigned:1;\n"
			 "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
			 "\tfield: char data;\toffset:%d;\tsize:%d;\tsigned:1;\n",
			 long_size, 8 + long_size, SAMPLE_PAGE - 8 - long_size);

	nrp_blob_append(out, "header_page", 12);
	put(out, (uint64_t)n, 8, parts->big);
	nrp_blob_append(out, text, (size_t)n);
	nrp_blob_append(out, "header_event", 13);
	put(out, 9, 8, parts->big);
	nrp_blob_append(out, "type_len\n", 9);
}

struct nrp_trace_parts *sample_parts(bool big, int long_size)
{
	static const char clocks[] = "local [global] counter\n";
	static const char stat[] =
		"CPU: 2\nentries: 5\noverrun: 12\ncommit overrun: 3\nbytes: 0\n"
		"oldest event ts:     1.0\nnow ts:     2.0\ndropped events: 4\nread events: 9\n\n";
	static const char short_stat[] = "CPU: 129\nentries: 0\noverrun: 0\n";
	struct nrp_trace_parts *parts = calloc(1, sizeof(*parts));
	struct nrp_blob count = { 0 };

	must(parts != NULL);
	parts->big = big;
	/* the word of the file header is that of user space: here always the other one */
	parts->long_size = long_size == 8 ? 4 : 8;
	parts->page_size = SAMPLE_PAGE;
	parts->cpu_count = 130;
	add_header_info(parts, long_size);
	put(&parts->ftrace_formats, 1, 4, big);
	add_text_format(&parts->ftrace_formats, "function", 1, big);
	put(&parts->event_formats, 2, 4, big);
	nrp_blob_append(&parts->event_formats, "empty", 6);
	put(&parts->event_formats, 0, 4, big);
	nrp_blob_append(&parts->event_formats, "sched", 6);
	put(&parts->event_formats, 1, 4, big);
	add_text_format(&parts->event_formats, "sample", SAMPLE_ID, big);
	put(&parts->cmdlines, 6, 8, big);
	nrp_blob_append(&parts->cmdlines, "1 sh\n", 6);
	put(&count, parts->cpu_count, 4, big);
	nrp_parts_add_option(parts, 8, count.data, count.size);
	free(count.data);
	nrp_parts_add_option(parts, 4, clocks, sizeof(clocks));
	nrp_parts_add_option(parts, 5, SAMPLE_UNAME, sizeof(SAMPLE_UNAME));
	nrp_parts_add_option(parts, 2, "\nBuffer: x\n\n", 13);
	nrp_parts_add_option(parts, 2, stat, sizeof(stat));
	nrp_parts_add_option(parts, 2, short_stat, sizeof(short_stat));
	nrp_parts_add_option(parts, 4242, "unknown", 7);
	return parts;
}

static void remember(struct sample *sample, struct sample_event event)
{
	size_t n = sample->nr_events;

	if (n % 4096 == 0)
		sample->events = reallocarray(sample->events, n + 4096, sizeof(*sample->events));
	must(sample->events != NULL);
	sample->events[sample->nr_events++] = event;
}

/* One page of random events of one CPU; *@time is that of the CPU's last event, 0: none. */
static void random_page(struct sample *sample, struct sample_page *page, uint32_t cpu,
			uint32_t rank, uint64_t *time, uint64_t *random)
{
	int64_t missed = random_range(random, 0, 5) ? 0 : (int64_t)random_range(random, 0, 9) - 1;
	bool first = true;

	while (page_room(page) > 700 || (first && page_room(page) > 64)) {
		struct sample_event event = {
			.cpu = cpu,
			.rank = rank,
			.id = SAMPLE_ID,
			.size = 4 * (uint32_t)random_range(random, 2, 10),
			.mark = (uint32_t)random_next(random),
		};

		switch (random_range(random, 0, 15)) {
		case 0:
			page_time_extend(page, random_range(random, 0, 1u << 30));
			break;
		case 1:
			page_time_stamp(page, page->time + random_range(random, 0, 1000));
			break;
		case 2:
			page_discarded(page, 1 + (uint32_t)random_range(random, 0, 5), 12);
			break;
		case 3:
			event.size = page_room(page) > 1000 ? 400 : event.size;
			event.id = 1;
			break;
		}
		page_event(page, (uint32_t)random_range(random, 0, 3) * 100, event.id, event.size,
			   event.mark);
		event.time = page->time;
		event.lost_before = first && missed;
		event.lost = event.lost_before ? missed : 0;
		event.lost_since = event.lost_before ? *time : 0;
		*time = event.time;
		first = false;
		remember(sample, event);
	}
	page_end(page, missed);
}

static int compare(const void *pa, const void *pb)
{
	const struct sample_event *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return 0;
}

/* A stable sort: events of one stream with equal times keep their order. */
static void sort_events(struct sample_event *events, size_t n)
{
	struct sample_event *copy;
	size_t half = n / 2, i = 0, j = half, k;

	if (n < 2)
		return;
	sort_events(events, half);
	sort_events(events + half, n - half);
	copy = malloc(n * sizeof(*copy));
	must(copy != NULL);
	for (k = 0; k < n; k++) {
		bool left = i < half && (j == n || compare(&events[i], &events[j]) <= 0);

		copy[k] = left ? events[i++] : events[j++];
	}
	memcpy(events, copy, n * sizeof(*copy));
	free(copy);
}

struct sample *sample_new(const struct sample_kind *kind, uint64_t seed)
{
	static const uint32_t cpus[] = { 0, 2, 129 };
	struct sample *sample = calloc(1, sizeof(*sample));
	uint64_t random = seed ? seed : 1;
	unsigned int rank, i, p;

	must(sample != NULL);
	sample->parts = sample_parts(kind->big, kind->long_size);
	sample->parts->page_size = kind->page_size;
	for (rank = 0; rank < 2 && kind->name[rank]; rank++) {
		struct nrp_part_buffer *buffer = nrp_parts_add_buffer(
			sample->parts, kind->name[rank], "global", kind->page_size);

		for (i = 0; i < 3; i++) {
			struct nrp_part_cpu *cpu = nrp_parts_add_cpu(buffer, cpus[i]);
			uint64_t start = UINT64_C(0x0800000012345678), time = 0;

			for (p = 0; p < kind->pages; p++) {
				struct sample_page page;

				page_begin(&page, &cpu->pages, kind->page_size, kind->long_size,
					   kind->big, start);
				random_page(sample, &page, cpus[i], rank, &time, &random);
				start = page.time + 100;
			}
		}
	}
	sort_events(sample->events, sample->nr_events);
	return sample;
}

struct sample *sample_free(struct sample *sample)
{
	nrp_parts_free(sample->parts);
	free(sample->events);
	free(sample);
	return NULL;
}

struct nrp_blob sample_bytes(const struct nrp_trace_parts *parts, enum sample_format format)
{
	struct nrp_blob bytes;

	if (format == SAMPLE_V6)
		bytes = nrp_parts_write_v6(parts);
	else
		bytes = nrp_parts_write_v7(parts,
					   format == SAMPLE_V7 ? NRP_PACK_NONE : NRP_PACK_ZSTD);
	must(bytes.data != NULL);
	return bytes;
}

const char *sample_file(const void *data, size_t size)
{
	if (file_fd < 0) {
		file_fd = memfd_create("sample", MFD_CLOEXEC);
		must(file_fd >= 0);
		snprintf(file_name, sizeof(file_name), "/proc/self/fd/%d", file_fd);
	}
	must(!ftruncate(file_fd, 0) && pwrite(file_fd, data, size, 0) == (ssize_t)size);
	return file_name;
}

void sample_patch(size_t at, uint8_t byte)
{
	must(pwrite(file_fd, &byte, 1, (off_t)at) == 1);
}

const char *sample_write(const struct nrp_trace_parts *parts, enum sample_format format)
{
	struct nrp_blob bytes = sample_bytes(parts, format);
	const char *path = sample_file(bytes.data, bytes.size);

	free(bytes.data);
	return path;
}

struct nrp_tracefile *sample_open(const char *path)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;
	int rc = nrp_tracefile_open(&file, path, &err);

	if (rc)
		fail_msg("%s: offset %lld: %s", path, (long long)err.offset, err.what);
	return file;
}

void sample_expect_event(struct nrp_tracefile *file, const struct sample_event *want)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_raw_event got;
	bool big = nrp_tracefile_swapped(file) != (__BYTE_ORDER == __BIG_ENDIAN);

	if (nrp_tracefile_next(file, &got, &err) != 1)
		fail_msg("no event: offset %lld: %s", (long long)err.offset, err.what);
	assert_int_equal(got.time, want->time);
	assert_int_equal(got.cpu, want->cpu);
	assert_int_equal(got.id, want->id);
	assert_int_equal(got.size, want->size);
	assert_int_equal(nrp_load32(got.data + 4, big), want->mark);
	if (want->size > 8)
		assert_int_equal(nrp_load32(got.data + want->size - 4, big),
				 want->mark ^ (want->size - 4));
	assert_int_equal(got.lost_before, want->lost_before);
	assert_int_equal(got.lost, want->lost);
	assert_int_equal(got.lost_since, want->lost_since);
}

void sample_expect_end(struct nrp_tracefile *file)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_raw_event got;

	assert_int_equal(nrp_tracefile_next(file, &got, &err), 0);
	assert_int_equal(nrp_tracefile_next(file, &got, &err), 0);
}
