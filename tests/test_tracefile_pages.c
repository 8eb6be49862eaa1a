/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace-file reader on single ring-buffer pages: what they may hold, what they say about
 * lost events, and damage in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/bytes.h"
#include "capture/tracefile.h"
#include "tests/trace_sample.h"

#include <errno.h>
#include <stdio.h>

#define MSEC UINT64_C(1000000)

/* A file with one instance and these CPUs' pages. */
static struct nrp_tracefile *open_pages(struct nrp_blob *cpus, uint32_t n, bool big, int long_size)
{
	struct nrp_trace_parts *parts = sample_parts(big, long_size);
	struct nrp_part_buffer *buffer = nrp_parts_add_buffer(parts, "", "mono", SAMPLE_PAGE);
	struct nrp_tracefile *file;
	uint32_t i;

	for (i = 0; i < n; i++)
		nrp_parts_add_cpu(buffer, i)->pages = cpus[i];
	file = sample_open(sample_write(parts, SAMPLE_V7));
	nrp_parts_free(parts);
	return file;
}

static void times_follow_extensions_absolute_stamps_and_discarded_events(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct nrp_blob cpu = { 0 };
		struct sample_page page;
		struct nrp_tracefile *file;
		bool big = i & 1;
		int long_size = i & 2 ? 4 : 8;

		page_begin(&page, &cpu, SAMPLE_PAGE, long_size, big, UINT64_C(5) << 60 | 1000);
		page_event(&page, 0, 7, 8, 1);
		page_event(&page, 134217727, 7, 112, 2); /* the longest delta and short event */
		page_time_extend(&page, UINT64_C(1) << 58);
		page_event(&page, 3, 7, 116, 3);
		page_discarded(&page, 50, 24);
		page_event(&page, 1, 0xffff, 8, 4);
		/* of 59 bits: the top 5 are the page's */
		page_time_stamp(&page, (UINT64_C(1) << 58) + 77777777777);
		page_event(&page, 2, 7, 8, 5);
		page_word(&page, 29, 0); /* nothing behind this is used */
		page_u32(&page, 0x12345);
		page_end(&page, 0);
		file = open_pages(&cpu, 1, big, long_size);
		uint64_t start = UINT64_C(5) << 60 | 1000, t = start;
		sample_expect_event(
			file, &(struct sample_event){ .time = t, .id = 7, .size = 8, .mark = 1 });
		t += 134217727;
		sample_expect_event(
			file, &(struct sample_event){ .time = t, .id = 7, .size = 112, .mark = 2 });
		t += (UINT64_C(1) << 58) + 3;
		sample_expect_event(
			file, &(struct sample_event){ .time = t, .id = 7, .size = 116, .mark = 3 });
		t += 51;
		sample_expect_event(file, &(struct sample_event){
						  .time = t, .id = 0xffff, .size = 8, .mark = 4 });
		t = (UINT64_C(5) << 60) + (UINT64_C(1) << 58) + 77777777779;
		sample_expect_event(
			file, &(struct sample_event){ .time = t, .id = 7, .size = 8, .mark = 5 });
		sample_expect_end(file);
		assert_string_equal(nrp_tracefile_clock(file), "mono");
		nrp_tracefile_close(file);
	}
}

static void lost_events_are_reported_with_the_next_event_of_the_cpu(void **state)
{
	static const int64_t missed[] = { 0, 5, -1, 3, 4, 0, 2, -1 };
	static const bool empty[] = { false, false, false, true, false, false, true, true };
	static const int64_t lost[] = { 0, 5, -1, 0, 7, 0, 0, 0 };
	struct nrp_blob cpu = { 0 };
	struct nrp_tracefile *file;
	struct sample_page page;
	uint64_t last = 0;
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		page_begin(&page, &cpu, SAMPLE_PAGE, 8, false, (i + 1) * MSEC);
		page_time_extend(&page, 10);
		if (!empty[i]) {
			page_event(&page, 1, SAMPLE_ID, 8, 2 * i);
			page_event(&page, 1, SAMPLE_ID, 8, 2 * i + 1);
		}
		page_end(&page, missed[i]);
	}
	file = open_pages(&cpu, 1, false, 8);
	for (i = 0; i < 8; i++) {
		struct sample_event event = {
			.time = (i + 1) * MSEC + 11,
			.id = SAMPLE_ID,
			.size = 8,
			.mark = 2 * i,
			.lost_before = lost[i] != 0,
			.lost = lost[i],
			.lost_since = lost[i] ? last : 0,
		};

		if (empty[i])
			continue;
		sample_expect_event(file, &event);
		event = (struct sample_event){
			.time = event.time + 1,
			.id = SAMPLE_ID,
			.size = 8,
			.mark = 2 * i + 1,
		};
		sample_expect_event(file, &event);
		last = event.time;
	}
	sample_expect_end(file);
	nrp_tracefile_close(file);
}

/* Three pages of two events on each of two CPUs. */
static void two_cpus(struct nrp_blob cpus[2])
{
	struct sample_page page;
	uint32_t cpu, i;

	for (cpu = 0; cpu < 2; cpu++) {
		for (i = 0; i < 3; i++) {
			page_begin(&page, &cpus[cpu], SAMPLE_PAGE, 8, false, (i + 1) * MSEC + cpu);
			page_event(&page, 0, SAMPLE_ID, 8, i);
			page_event(&page, 10, SAMPLE_ID, 8, i + 10);
			page_end(&page, 0);
		}
	}
}

/* All events but those on the second page of CPU 0 come, and the gap and its place are told. */
static void expect_gap(struct nrp_tracefile *file, uint64_t offset, uint32_t first_lost)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_raw_event got;
	uint32_t i, cpu, n = 0;
	uint64_t last = 0;
	int rc, damaged = 0;

	for (i = 0; i < 12; i++) {
		uint32_t page = i / 4;
		uint64_t time;

		cpu = i % 2;
		time = (page + 1) * MSEC + cpu + i % 4 / 2 * 10;
		if (page == 1 && !cpu && n++ >= first_lost)
			continue;
		rc = nrp_tracefile_next(file, &got, &err);
		if (rc < 0) {
			assert_int_equal(rc, -EBADMSG);
			assert_int_equal(err.status, NRP_INPUT);
			assert_int_equal(err.offset, offset);
			damaged++;
			rc = nrp_tracefile_next(file, &got, NULL);
		}
		assert_int_equal(rc, 1);
		assert_int_equal(got.time, time);
		assert_int_equal(got.cpu, cpu);
		assert_int_equal(got.lost_before, page == 2 && !cpu && i == 8);
		if (got.lost_before) {
			assert_int_equal(got.lost, -1);
			assert_int_equal(got.lost_since, last);
		}
		last = cpu ? last : time;
	}
	assert_int_equal(damaged, 1);
	sample_expect_end(file);
}

static void put32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

/* File offset of the page-aligned page that starts with this time. */
static uint64_t page_with_time(const char *path, uint64_t time)
{
	FILE *f = fopen(path, "rb");
	uint8_t page[SAMPLE_PAGE];
	uint64_t offset = 0;

	must(f != NULL);
	while (fread(page, 1, sizeof(page), f) == sizeof(page) && nrp_load64(page, false) != time)
		offset += SAMPLE_PAGE;
	fclose(f);
	return offset;
}

static void reading_goes_on_behind_a_damaged_page(void **state)
{
	/*
	 * What is written over the page of two events of 12 bytes each, at 16 and 28; the word
	 * behind an event's header is its length if it is long, discarded or a time.
	 */
	static const struct {
		uint32_t at, value, next;
		uint32_t events; /* that come before the damage shows */
	} damage[] = {
		{ 8, 0x7ffffff, 0, 0 },         /* more committed bytes than the page has */
		{ 8, 4081, 0, 0 },              /* one too many */
		{ 8, 4, 0, 0 },                 /* the first event reaches beyond them */
		{ 8, 26, 0, 2 },                /* two bytes that are no header */
		{ 16, 0, 0, 0 },                /* a long event of -4 bytes */
		{ 16, 0, 4, 0 },                /* of none */
		{ 16, 0, 0x80000003, 0 },       /* of as many as an int can hold below 0 */
		{ 28, 28, 5, 1 },               /* the second event reaches beyond */
		{ 28, 29 + 32, 0, 1 },          /* discarded: none */
		{ 28, 29 + 32, 0xfffffffc, 1 }, /* discarded: it is its own successor */
		{ 28, 29 + 32, 0xfffffff0, 1 }, /* discarded: goes back */
		{ 28, 29 + 32, 6, 1 },          /* discarded: not a multiple of 4 */
		{ 28, 29 + 32, 0x7ffffffc, 1 },
		{ 28, 0, 13, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
		struct nrp_blob cpus[2] = { { 0 }, { 0 } };
		struct nrp_tracefile *file;

		two_cpus(cpus);
		must(nrp_load32(cpus[0].data + SAMPLE_PAGE + 8, false) == 24);
		put32(cpus[0].data + SAMPLE_PAGE + damage[i].at, damage[i].value);
		put32(cpus[0].data + SAMPLE_PAGE + damage[i].at + 4, damage[i].next);
		file = open_pages(cpus, 2, false, 8);
		expect_gap(file, page_with_time(nrp_tracefile_path(file), 2 * MSEC),
			   damage[i].events);
		nrp_tracefile_close(file);
	}
}

static void reading_goes_on_behind_a_damaged_chunk(void **state)
{
	struct nrp_blob cpus[2] = { { 0 }, { 0 } };
	struct nrp_trace_parts *parts = sample_parts(false, 8);
	struct nrp_part_buffer *buffer = nrp_parts_add_buffer(parts, "", "mono", SAMPLE_PAGE);
	struct nrp_blob bytes;
	struct nrp_tracefile *file;
	uint64_t chunk;
	uint32_t i;

	(void)state;
	two_cpus(cpus);
	for (i = 0; i < 2; i++)
		nrp_parts_add_cpu(buffer, i)->pages = cpus[i];
	parts->chunk_size = SAMPLE_PAGE;
	bytes = sample_bytes(parts, SAMPLE_V7_ZSTD);
	/* the first page boundary whose number is that of the chunks */
	for (chunk = SAMPLE_PAGE; nrp_load32(bytes.data + chunk, false) != 3;)
		chunk += SAMPLE_PAGE;
	chunk += 4;
	chunk += 8 + nrp_load32(bytes.data + chunk, false);
	memset(bytes.data + chunk + 8, 0xee, 4); /* no zstd magic any more */
	file = sample_open(sample_file(bytes.data, bytes.size));
	expect_gap(file, chunk, 0);
	nrp_tracefile_close(file);
	free(bytes.data);
	nrp_parts_free(parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_follow_extensions_absolute_stamps_and_discarded_events),
		cmocka_unit_test(lost_events_are_reported_with_the_next_event_of_the_cpu),
		cmocka_unit_test(reading_goes_on_behind_a_damaged_page),
		cmocka_unit_test(reading_goes_on_behind_a_damaged_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
