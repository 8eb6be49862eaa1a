/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace-file reader on files that the test made itself: every combination of version,
 * compression, byte order and word size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/tracefile.h"
#include "tests/test_random.h"
#include "tests/trace_sample.h"

#include <string.h>
#include <xxhash.h>

static void expect_sample(struct nrp_tracefile *file, const struct sample *sample)
{
	size_t i;

	for (i = 0; i < sample->nr_events; i++)
		sample_expect_event(file, &sample->events[i]);
	sample_expect_end(file);
}

/* Reads a sample in all three formats. */
static void check_all_formats(const struct sample_kind *kind, uint64_t seed, size_t chunk_size)
{
	struct sample *sample = sample_new(kind, seed);
	int format;

	sample->parts->chunk_size = chunk_size;
	for (format = 0; format < SAMPLE_NR_FORMATS; format++) {
		struct nrp_tracefile *file =
			sample_open(sample_write(sample->parts, (enum sample_format)format));

		assert_int_equal(nrp_tracefile_version(file), format == SAMPLE_V6 ? 6 : 7);
		assert_int_equal(nrp_tracefile_long_size(file), kind->long_size);
		expect_sample(file, sample);
		nrp_tracefile_close(file);
	}
	sample_free(sample);
}

static void all_events_come_in_order_of_time_cpu_and_instance(void **state)
{
	uint64_t seed = random_seed("order");
	unsigned int i;

	(void)state;
	for (i = 0; i < 8; i++) {
		struct sample_kind kind = {
			.big = i & 1,
			.long_size = i & 2 ? 4 : 8,
			.page_size = SAMPLE_PAGE,
			.pages = 25,
			.name = { "", i & 4 ? "inst" : NULL },
		};

		check_all_formats(&kind, seed + i, 0);
	}
}

static void an_instance_alone_has_its_events_read(void **state)
{
	struct sample_kind kind = {
		.long_size = 8,
		.page_size = SAMPLE_PAGE,
		.pages = 3,
		.name = { "alone" },
	};

	(void)state;
	check_all_formats(&kind, random_seed("alone"), 0);
}

static void pages_may_be_larger_than_those_of_the_system_and_span_chunks(void **state)
{
	struct sample_kind kind = {
		.long_size = 8,
		.page_size = 16384,
		.pages = 9,
		.name = { "" },
	};

	(void)state;
	check_all_formats(&kind, random_seed("large pages"), 0);
	check_all_formats(&kind, random_seed("chunks of 40960"), 40960);
	check_all_formats(&kind, random_seed("chunks of 1000"), 1000);
}

static void rewind_starts_again_at_any_point(void **state)
{
	struct sample_kind kind = {
		.long_size = 8,
		.page_size = SAMPLE_PAGE,
		.pages = 12,
		.name = { "" },
	};
	struct sample *sample = sample_new(&kind, random_seed("rewind"));
	struct nrp_tracefile *file = sample_open(sample_write(sample->parts, SAMPLE_V7_ZSTD));
	size_t i, n;

	(void)state;
	for (n = 0; n < sample->nr_events; n = 2 * n + 1) {
		nrp_tracefile_rewind(file);
		for (i = 0; i < n; i++)
			sample_expect_event(file, &sample->events[i]);
	}
	nrp_tracefile_rewind(file);
	expect_sample(file, sample);
	nrp_tracefile_rewind(file);
	expect_sample(file, sample);
	nrp_tracefile_close(file);
	sample_free(sample);
}

static void check_headers(const struct nrp_tracefile *file, const char *path, bool big)
{
	const struct nrp_event_format *format = nrp_tracefile_format(file, 1);
	const struct nrp_cpu_stat *stat = nrp_tracefile_cpu_stat(file, 0);

	assert_string_equal(nrp_tracefile_path(file), path);
	assert_int_equal(nrp_tracefile_swapped(file), big != (__BYTE_ORDER == __BIG_ENDIAN));
	assert_int_equal(nrp_tracefile_page_size(file), SAMPLE_PAGE);
	assert_string_equal(nrp_tracefile_uname(file), SAMPLE_UNAME);
	assert_string_equal(nrp_tracefile_clock(file), "global");
	assert_int_equal(nrp_tracefile_cpus(file), 130);
	assert_int_equal(nrp_tracefile_nr_formats(file), 2);
	assert_string_equal(nrp_tracefile_format(file, 0)->system, "ftrace");
	assert_string_equal(nrp_tracefile_format(file, 0)->name, "function");
	assert_int_equal(nrp_tracefile_format(file, 0)->id, 1);
	assert_string_equal(format->system, "sched");
	assert_string_equal(format->name, "sample");
	assert_int_equal(format->id, SAMPLE_ID);
	assert_int_equal(format->size, strlen(format->text));
	assert_non_null(strstr(format->text, "field:unsigned int mark;"));
	assert_int_equal(nrp_tracefile_nr_cpu_stats(file), 2);
	assert_int_equal(stat->cpu, 2);
	assert_int_equal(stat->overrun, 12);
	assert_int_equal(stat->commit_overrun, 3);
	assert_int_equal(stat->dropped, 4);
	stat = nrp_tracefile_cpu_stat(file, 1);
	assert_int_equal(stat->cpu, 129);
	assert_int_equal(stat->overrun, 0);
	assert_int_equal(stat->commit_overrun, -1);
	assert_int_equal(stat->dropped, -1);
}

static void headers_formats_and_options_are_understood(void **state)
{
	struct sample_kind kind = {
		.long_size = 8,
		.page_size = SAMPLE_PAGE,
		.pages = 1,
		.name = { "" },
	};
	int i;

	(void)state;
	for (i = 0; i < 2 * SAMPLE_NR_FORMATS; i++) {
		struct sample *sample;
		struct nrp_tracefile *file;
		const char *path;

		kind.big = i >= SAMPLE_NR_FORMATS;
		sample = sample_new(&kind, 1);
		path = sample_write(sample->parts, (enum sample_format)(i % SAMPLE_NR_FORMATS));
		file = sample_open(path);
		check_headers(file, path, kind.big);
		nrp_tracefile_close(file);
		sample_free(sample);
	}
}

static void the_hash_is_xxh3_of_all_bytes_and_their_number(void **state)
{
	struct sample_kind kind = {
		.long_size = 8,
		.page_size = SAMPLE_PAGE,
		.pages = 700,
		.name = { "" },
	};
	struct sample *sample = sample_new(&kind, 1);
	struct nrp_blob bytes = sample_bytes(sample->parts, SAMPLE_V6);
	struct nrp_tracefile *file = sample_open(sample_file(bytes.data, bytes.size));
	XXH128_hash_t hash = XXH3_128bits(bytes.data, bytes.size);
	struct nrp_error err = NRP_ERROR_INIT;
	XXH128_canonical_t canonical;
	uint8_t got[32], want[32] = { 0 };
	int i;

	(void)state;
	assert_true(bytes.size > 8 << 20); /* more than the reader takes in one step */
	XXH128_canonicalFromHash(&canonical, hash);
	memcpy(want, canonical.digest, 16);
	for (i = 0; i < 8; i++)
		want[16 + i] = (uint8_t)(bytes.size >> 8 * i);
	assert_int_equal(nrp_tracefile_hash(file, got, &err), 0);
	assert_memory_equal(got, want, sizeof(got));
	nrp_tracefile_close(file);
	free(bytes.data);
	sample_free(sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_events_come_in_order_of_time_cpu_and_instance),
		cmocka_unit_test(an_instance_alone_has_its_events_read),
		cmocka_unit_test(pages_may_be_larger_than_those_of_the_system_and_span_chunks),
		cmocka_unit_test(rewind_starts_again_at_any_point),
		cmocka_unit_test(headers_formats_and_options_are_understood),
		cmocka_unit_test(the_hash_is_xxh3_of_all_bytes_and_their_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
