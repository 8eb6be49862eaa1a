/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Salvage of damaged captures: small captures of tests/data are written in every format and damaged
 * place by place. What must still be read is known from libtracecmd's reading of the undamaged
 * file, which also says where in it each event lies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "second_reader_leaks.h"

#include "capture/tracefile_internal.h"
#include "tests/trace_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trace-cmd.h>
#include <unistd.h>

#define MAX_CPUS 8
#define PAGE 4096
#define CHUNK_PAGES 2
#define TIME_LIMIT 900 /* seconds for all: a reader that runs in a circle ends here */

static const char *const captures[] = {
	NRP_TEST_DATA "/thp-5.10.dat",
	NRP_TEST_DATA "/hugetlb-6.12.dat",
	NRP_TEST_DATA "/thp-7.2.dat",
};

/* One event as libtracecmd sees it in the undamaged file of version 6. */
struct truth_event {
	uint64_t time;
	uint64_t start, end; /* in the file, with its header */
	uint32_t size, sum;
};

struct truth {
	struct truth_event *event[MAX_CPUS];
	size_t count[MAX_CPUS];
	uint64_t data[MAX_CPUS]; /* file offset of the CPU's first page */
	uint32_t pages[MAX_CPUS];
	uint64_t first_data; /* of all CPUs */
};

static uint32_t sum_of(const uint8_t *p, uint32_t size)
{
	uint32_t sum = 2166136261u;

	while (size--)
		sum = (sum ^ *p++) * 16777619u;
	return sum;
}

static void read_truth(struct truth *t, const char *path)
{
	struct tracecmd_input *input = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	struct tep_record *record;
	int cpu;

	must(input != NULL);
	*t = (struct truth){ .first_data = UINT64_MAX };
	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		while ((record = tracecmd_read_data(input, cpu))) {
			size_t n = t->count[cpu]++;

			if (n % 1024 == 0)
				t->event[cpu] = reallocarray(t->event[cpu], n + 1024,
							     sizeof(struct truth_event));
			must(t->event[cpu] != NULL);
			t->event[cpu][n] = (struct truth_event){
				.time = record->ts,
				.start = record->offset,
				.end = record->offset + (unsigned int)record->record_size,
				.size = (uint32_t)record->size,
				.sum = sum_of(record->data, (uint32_t)record->size),
			};
			tracecmd_free_record(record);
		}
		if (!t->count[cpu])
			continue;
		t->data[cpu] = t->event[cpu][0].start / PAGE * PAGE;
		t->pages[cpu] =
			(uint32_t)((t->event[cpu][t->count[cpu] - 1].start - t->data[cpu]) / PAGE) +
			1;
		if (t->data[cpu] < t->first_data)
			t->first_data = t->data[cpu];
	}
	tracecmd_close(input);
}

static void free_truth(struct truth *t)
{
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		free(t->event[cpu]);
}

/* Page of the CPU that an event lies in. */
static uint32_t page_of(const struct truth *t, int cpu, const struct truth_event *e)
{
	return (uint32_t)((e->start - t->data[cpu]) / PAGE);
}

/* A capture of tests/data in one format. */
struct subject {
	struct truth truth;
	struct nrp_blob bytes;
	uint64_t data[MAX_CPUS]; /* file offset of the CPU's data in @bytes */
	uint64_t end[MAX_CPUS];
};

static void subject_init(struct subject *s, const char *path, enum sample_format format)
{
	const char *why = "";
	struct nrp_trace_parts *parts = nrp_parts_read(path, &why);
	struct nrp_tracefile *file;
	size_t i;

	if (!parts)
		fail_msg("%s: %s", path, why);
	parts->chunk_size = CHUNK_PAGES * PAGE;
	memset(s, 0, sizeof(*s));
	read_truth(&s->truth, sample_write(parts, SAMPLE_V6));
	s->bytes = sample_bytes(parts, format);
	nrp_parts_free(parts);
	/* where the data are is all that is taken from the code under test */
	file = sample_open(sample_file(s->bytes.data, s->bytes.size));
	for (i = 0; i < file->nr_streams; i++) {
		s->data[file->streams[i].cpu] = file->streams[i].start;
		s->end[file->streams[i].cpu] = file->streams[i].end;
	}
	nrp_tracefile_close(file);
}

static void subject_done(struct subject *s)
{
	free_truth(&s->truth);
	free(s->bytes.data);
}

/* What reading must give: all events but these. */
struct expected {
	int cpu;             /* with the damage; -1: none */
	uint32_t first, end; /* events of it that are lost: from first, before end */
	uint8_t cause;
	int64_t lost;                /* -1 unknown */
	uint64_t offset, end_offset; /* the damage is told to be from offset to before end_offset */
	uint64_t ahead;              /* times before event end are this much later */
};

/* The index in its CPU of the event that must come next. */
static void check_event(const struct truth *t, const struct nrp_raw_event *got, size_t *next,
			const struct expected *want)
{
	const struct truth_event *e;
	bool here = (int)got->cpu == want->cpu;
	bool gap = here && *next == want->first;
	uint64_t time;

	if (gap)
		*next = want->end;
	assert_in_range(*next, 0, t->count[got->cpu] - 1);
	e = &t->event[got->cpu][*next];
	time = e->time + (here && *next < want->end ? want->ahead : 0);
	if (got->time != time)
		fail_msg("CPU %u event %zu: time %llu instead of %llu", got->cpu, *next,
			 (unsigned long long)got->time, (unsigned long long)time);
	assert_int_equal(got->size, e->size);
	assert_int_equal(sum_of(got->data, got->size), e->sum);
	assert_int_equal(got->lost_before, gap);
	if (gap) {
		assert_int_equal(got->lost_cause, want->cause);
		assert_int_equal(got->lost, want->lost);
		assert_int_equal(got->read_before, want->first);
		assert_int_equal(
			got->lost_since,
			want->first ? t->event[got->cpu][want->first - 1].time + want->ahead : 0);
		if (want->cause != NRP_LOSS_OVERRUN)
			assert_in_range(got->lost_offset, want->offset, want->end_offset - 1);
	}
	++*next;
}

static void check_reading(const struct truth *t, struct nrp_tracefile *file, const size_t *next,
			  const struct expected *want)
{
	const struct nrp_cpu_reading *cpu;
	size_t i;

	for (i = 0; (cpu = nrp_tracefile_reading(file, i)); i++) {
		size_t count = t->count[cpu->cpu];
		bool here = (int)cpu->cpu == want->cpu;
		bool at_end = here && want->first < want->end && want->end == count;
		bool damaged = here && want->cause != NRP_LOSS_OVERRUN;

		assert_int_equal(next[cpu->cpu], at_end ? want->first : count);
		assert_int_equal(cpu->events, here ? count - (want->end - want->first) : count);
		assert_int_equal(cpu->lost_at_end, at_end);
		assert_int_equal(cpu->damages > 0, damaged);
		if (damaged)
			assert_in_range(cpu->offset, want->offset, want->end_offset - 1);
		if (at_end)
			assert_int_equal(cpu->end_lost, want->lost);
		assert_int_equal(cpu->gaps, here && !at_end && want->lost < 0);
	}
}

/* Reads the damaged @bytes. */
static void expect_salvage(const struct truth *t, const struct nrp_blob *bytes,
			   const struct expected *want)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event event;
	size_t next[MAX_CPUS] = { 0 };
	unsigned int damages = 0;
	int rc;

	rc = nrp_tracefile_salvage(&file, sample_file(bytes->data, bytes->size), &err);
	if (rc)
		fail_msg("offset %lld: %s", (long long)err.offset, err.what);
	assert_int_equal(nrp_tracefile_damage(file, &err), 0);
	while ((rc = nrp_tracefile_next(file, &event, &err))) {
		if (rc < 0)
			damages++;
		else
			check_event(t, &event, &next[event.cpu], want);
	}
	assert_int_equal(damages > 0, want->cause != NRP_LOSS_OVERRUN);
	check_reading(t, file, next, want);
	nrp_tracefile_close(file);
}

/* Events of pages @page to before @end_page of a CPU. */
static struct expected events_of(const struct truth *t, int cpu, uint32_t page, uint32_t end_page)
{
	struct expected want = { .cpu = cpu, .cause = NRP_LOSS_DAMAGED, .lost = -1 };

	for (; want.end < t->count[cpu]; want.end++) {
		uint32_t at = page_of(t, cpu, &t->event[cpu][want.end]);

		if (at < page)
			want.first = want.end + 1;
		if (at >= end_page)
			break;
	}
	return want;
}

static void put(uint8_t *to, uint64_t value, size_t size)
{
	value = htole64(value);
	memcpy(to, &value, size);
}

/* Runs @check on every capture in a format. */
static void on_captures(enum sample_format format, void (*check)(struct subject *s))
{
	size_t i;

	for (i = 0; i < sizeof(captures) / sizeof(*captures); i++) {
		struct subject s;

		subject_init(&s, captures[i], format);
		check(&s);
		subject_done(&s);
	}
}

/* ---- page headers ------------------------------------------------------------------- */

/* Damages one page in every way that can be known for damage. */
static void damage_page(struct subject *s, int cpu, uint32_t page)
{
	const uint64_t commits[] = { 0x7ffffff, PAGE - 15, 0 };
	uint64_t at = s->data[cpu] + (uint64_t)page * PAGE;
	struct expected want = events_of(&s->truth, cpu, page, page + 1);
	uint8_t *p = s->bytes.data + at;
	uint8_t old[16];
	size_t i;

	want.offset = at;
	want.end_offset = at + 1;
	memcpy(old, p, sizeof(old));
	for (i = 0; i < sizeof(commits) / sizeof(*commits); i++) {
		put(p + 8, commits[i], 8);
		expect_salvage(&s->truth, &s->bytes, &want);
	}
	memset(p, 0, sizeof(old));
	expect_salvage(&s->truth, &s->bytes, &want);
	memset(p, 0xff, sizeof(old));
	expect_salvage(&s->truth, &s->bytes, &want);
	memcpy(p, old, sizeof(old));
	/* nothing comes behind the last one, and of two pages either may be the wrong one */
	if (page + 1 < s->truth.pages[cpu] && s->truth.pages[cpu] > 2) {
		put(p, UINT64_C(1) << 60, 8);
		expect_salvage(&s->truth, &s->bytes, &want);
	}
	if (page && page + 1 < s->truth.pages[cpu]) {
		put(p, 1, 8);
		expect_salvage(&s->truth, &s->bytes, &want);
	}
	memcpy(p, old, sizeof(old));
}

static void damage_every_page(struct subject *s)
{
	uint32_t page;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		for (page = 0; page < s->truth.pages[cpu]; page++)
			damage_page(s, cpu, page);
	}
}

static void a_bad_page_header_costs_the_events_of_its_page(void **state)
{
	(void)state;
	on_captures(SAMPLE_V6, damage_every_page);
	on_captures(SAMPLE_V7, damage_every_page);
}

/* ---- chunks ------------------------------------------------------------------------- */

static void damage_chunk(struct subject *s, int cpu, uint32_t chunk, uint64_t at, uint32_t packed)
{
	struct expected want =
		events_of(&s->truth, cpu, chunk * CHUNK_PAGES, (chunk + 1) * CHUNK_PAGES);
	uint8_t *p = s->bytes.data + at;
	uint8_t old[16];

	want.offset = at;
	want.end_offset = at + 8 + packed;
	memcpy(old, p, sizeof(old));
	p[8] ^= 0xff; /* no zstd frame any more */
	expect_salvage(&s->truth, &s->bytes, &want);
	memcpy(p, old, sizeof(old));
	put(p, 0xffffffff, 4); /* compressed size */
	expect_salvage(&s->truth, &s->bytes, &want);
	put(p, packed - 1, 4);
	expect_salvage(&s->truth, &s->bytes, &want);
	put(p, 0, 4);
	expect_salvage(&s->truth, &s->bytes, &want);
	memcpy(p, old, sizeof(old));
	put(p + 4, 0, 4); /* size */
	expect_salvage(&s->truth, &s->bytes, &want);
	put(p + 4, 0xffffffff, 4);
	expect_salvage(&s->truth, &s->bytes, &want);
	memset(p, 0, sizeof(old));
	expect_salvage(&s->truth, &s->bytes, &want);
	memcpy(p, old, sizeof(old));
}

static void damage_every_chunk(struct subject *s)
{
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		uint64_t at = s->data[cpu] + 4;
		uint32_t chunk, count = (s->truth.pages[cpu] + CHUNK_PAGES - 1) / CHUNK_PAGES;

		for (chunk = 0; chunk < count; chunk++) {
			uint32_t packed = nrp_load32(s->bytes.data + at, false);

			damage_chunk(s, cpu, chunk, at, packed);
			at += 8 + packed;
		}
	}
}

static void a_bad_chunk_costs_the_events_of_its_pages(void **state)
{
	(void)state;
	on_captures(SAMPLE_V7_ZSTD, damage_every_chunk);
}

/* ---- lost events and time ----------------------------------------------------------- */

/* Marks every page in turn as one before which events were lost. */
static void mark_every_page(struct subject *s)
{
	uint32_t page;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		for (page = 0; page < s->truth.pages[cpu]; page++) {
			uint8_t *p = s->bytes.data + s->data[cpu] + (uint64_t)page * PAGE;
			struct expected want = events_of(&s->truth, cpu, page, page);
			uint64_t commit = nrp_load64(p + 8, false);
			uint8_t old[8];

			want.cause = NRP_LOSS_OVERRUN;
			put(p + 8, commit | UINT64_C(1) << 31, 8);
			expect_salvage(&s->truth, &s->bytes, &want);
			if (commit + 8 <= PAGE - 16) {
				memcpy(old, p + 16 + commit, 8);
				put(p + 8, commit | UINT64_C(3) << 30, 8);
				put(p + 16 + commit, 77, 8);
				want.lost = 77;
				expect_salvage(&s->truth, &s->bytes, &want);
				memcpy(p + 16 + commit, old, 8);
			}
			put(p + 8, commit, 8);
		}
	}
}

static void lost_event_markers_are_reported_with_their_number(void **state)
{
	(void)state;
	on_captures(SAMPLE_V6, mark_every_page);
	on_captures(SAMPLE_V7, mark_every_page);
}

/*
 * At each page a CPU's clock goes back by more than it has run. Not from the second one:
 * that looks as if the time of the first were wrong.
 */
static void set_back_from_every_page(struct subject *s)
{
	uint32_t page, i;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		uint64_t at = s->data[cpu];
		uint32_t pages = s->truth.pages[cpu];
		uint64_t last =
			pages ? nrp_load64(s->bytes.data + at + PAGE * (pages - 1), false) : 0;

		for (page = 2; page < pages; page++) {
			struct expected want = events_of(&s->truth, cpu, page, page);
			struct nrp_blob copy = { 0 };

			want.ahead = last - s->truth.event[cpu][0].time + 1000;
			want.cause = NRP_LOSS_BACKWARDS;
			want.offset = at + (uint64_t)page * PAGE;
			want.end_offset = want.offset + 1;
			must(nrp_blob_append(&copy, s->bytes.data, s->bytes.size));
			for (i = 0; i < page; i++) {
				uint8_t *p = copy.data + at + (uint64_t)i * PAGE;

				put(p, nrp_load64(p, false) + want.ahead, 8);
			}
			expect_salvage(&s->truth, &copy, &want);
			free(copy.data);
		}
	}
}

static void a_clock_that_goes_back_is_damage_and_its_events_are_kept(void **state)
{
	(void)state;
	on_captures(SAMPLE_V6, set_back_from_every_page);
}

/* ---- cut ---------------------------------------------------------------------------- */

/* Events of a CPU that lie before the file offset @size of the file of version 6. */
static size_t whole_events(const struct truth *t, int cpu, uint64_t size)
{
	size_t n = 0;

	while (n < t->count[cpu] && t->event[cpu][n].end <= size)
		n++;
	return n;
}

/* Events in the first chunks of a CPU, those that lie before the file offset @size as a whole. */
static size_t chunked_events(const struct subject *s, int cpu, uint64_t size)
{
	uint64_t at = s->data[cpu] + 4;
	uint32_t chunk = 0;

	if (!s->truth.pages[cpu])
		return 0;
	while (chunk * CHUNK_PAGES < s->truth.pages[cpu]) {
		at += 8 + nrp_load32(s->bytes.data + at, false);
		if (at > size)
			break;
		chunk++;
	}
	return events_of(&s->truth, cpu, 0, chunk * CHUNK_PAGES).end;
}

/* Reads a file cut to @size: each CPU gives its first @want events, and says if there are more. */
static void expect_cut(const struct truth *t, const char *path, const size_t want[MAX_CPUS])
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event event;
	size_t next[MAX_CPUS] = { 0 }, i, missing = 0;
	const struct nrp_cpu_reading *cpu;
	const struct expected none = { .cpu = -1 };
	int rc = nrp_tracefile_salvage(&file, path, &err);

	if (rc)
		fail_msg("%s", err.what);
	while ((rc = nrp_tracefile_next(file, &event, &err))) {
		if (rc > 0)
			check_event(t, &event, &next[event.cpu], &none);
	}
	for (i = 0; (cpu = nrp_tracefile_reading(file, i)); i++) {
		assert_int_equal(cpu->events, next[cpu->cpu]);
		missing += cpu->lost_at_end;
		if (cpu->events < t->count[cpu->cpu])
			assert_true(cpu->lost_at_end && cpu->damages && cpu->end_lost == -1);
	}
	for (i = 0; i < MAX_CPUS; i++)
		assert_int_equal(next[i], want[i]);
	assert_true(missing || nrp_tracefile_damage(file, &err));
	nrp_tracefile_close(file);
}

/* From its end to the first byte of data, by an odd number of bytes and to the page. */
static void cut_v6(struct subject *s)
{
	const char *path = sample_file(s->bytes.data, s->bytes.size);
	uint64_t size = s->bytes.size - 1;

	while (size >= s->truth.first_data) {
		size_t want[MAX_CPUS];
		int cpu;

		for (cpu = 0; cpu < MAX_CPUS; cpu++)
			want[cpu] = whole_events(&s->truth, cpu, size);
		must(!truncate(path, (off_t)size));
		expect_cut(&s->truth, path, want);
		size -= size % PAGE ? size % PAGE < 523 ? size % PAGE : 523 : 1;
	}
}

static void cut_zstd(struct subject *s)
{
	const char *path = sample_file(s->bytes.data, s->bytes.size);
	uint64_t size = s->bytes.size - 1, first = UINT64_MAX;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (s->truth.pages[cpu] && s->data[cpu] < first)
			first = s->data[cpu];
	for (; size >= first; size -= size > s->bytes.size - 500 ? 1 : 61) {
		size_t want[MAX_CPUS];

		for (cpu = 0; cpu < MAX_CPUS; cpu++)
			want[cpu] = chunked_events(s, cpu, size);
		must(!truncate(path, (off_t)size));
		expect_cut(&s->truth, path, want);
	}
}

/* Without the table nobody knows where a CPU's pages end: all is lost, and nothing is made up. */
static void cut_v7(struct subject *s)
{
	const char *path = sample_file(s->bytes.data, s->bytes.size);
	const size_t nothing[MAX_CPUS] = { 0 };
	uint64_t size, first = s->data[0];

	must(s->truth.pages[0]);
	for (size = s->end[0]; size >= first; size -= 1999) {
		must(!truncate(path, (off_t)size));
		expect_cut(&s->truth, path, nothing);
	}
}

static void a_cut_file_gives_every_event_that_is_whole(void **state)
{
	(void)state;
	on_captures(SAMPLE_V6, cut_v6);
	on_captures(SAMPLE_V7_ZSTD, cut_zstd);
	on_captures(SAMPLE_V7, cut_v7);
}

/* Cut in the headers: nothing, or nothing but losses. */
static void cut_headers(struct subject *s)
{
	const char *path = sample_file(s->bytes.data, s->bytes.size);
	uint64_t size = s->data[0];

	for (; size; size -= size > 4096 ? 97 : 1) {
		struct nrp_error err = NRP_ERROR_INIT;
		struct nrp_tracefile *file = NULL;
		struct nrp_raw_event event;

		must(!truncate(path, (off_t)size));
		if (nrp_tracefile_salvage(&file, path, &err)) {
			assert_int_equal(err.status, NRP_INPUT);
			assert_null(file);
			continue;
		}
		assert_true(nrp_tracefile_nr_formats(file) && nrp_tracefile_reading(file, 0));
		while (nrp_tracefile_next(file, &event, &err) < 0)
			;
		assert_true(nrp_tracefile_reading(file, 0)->lost_at_end);
		nrp_tracefile_close(file);
	}
}

static void a_file_cut_in_its_headers_is_refused_or_has_only_losses(void **state)
{
	(void)state;
	on_captures(SAMPLE_V6, cut_headers);
	on_captures(SAMPLE_V7_ZSTD, cut_headers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_page_header_costs_the_events_of_its_page),
		cmocka_unit_test(a_bad_chunk_costs_the_events_of_its_pages),
		cmocka_unit_test(lost_event_markers_are_reported_with_their_number),
		cmocka_unit_test(a_clock_that_goes_back_is_damage_and_its_events_are_kept),
		cmocka_unit_test(a_cut_file_gives_every_event_that_is_whole),
		cmocka_unit_test(a_file_cut_in_its_headers_is_refused_or_has_only_losses),
	};

	alarm(TIME_LIMIT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
