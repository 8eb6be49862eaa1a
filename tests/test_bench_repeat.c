/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bench_generate repeat on files with absolute time stamps, lost events and instances. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/generate.h"
#include "tests/test_random.h"
#include "tests/trace_sample.h"

#include <stdlib.h>
#include <string.h>

#define TIMES 3
#define PAUSE 1000000 /* ns between two repetitions */

static char in_path[] = "/tmp/bench_repeat_in_XXXXXX";
static char out_path[] = "/tmp/bench_repeat_out_XXXXXX";

static void write_file(const char *path, const struct nrp_blob *bytes)
{
	FILE *f = fopen(path, "wb");

	must(f && fwrite(bytes->data, 1, bytes->size, f) == bytes->size);
	must(!fclose(f));
}

/* The events of the sample again and again; what was lost before the first one stays unknown. */
static void expect_repeated(const struct sample *sample)
{
	const struct sample_event *last = &sample->events[sample->nr_events - 1];
	uint64_t period = last->time - sample->events[0].time + PAUSE;
	struct nrp_tracefile *file = sample_open(out_path);
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_raw_event got;

	for (uint64_t round = 0; round < TIMES; round++) {
		for (size_t i = 0; i < sample->nr_events; i++) {
			const struct sample_event *want = &sample->events[i];

			assert_int_equal(nrp_tracefile_next(file, &got, &err), 1);
			assert_int_equal(got.time, want->time + round * period);
			assert_int_equal(got.cpu, want->cpu);
			assert_int_equal(got.id, want->id);
			assert_int_equal(got.size, want->size);
			assert_int_equal(got.lost_before, want->lost_before);
			assert_int_equal(got.lost, want->lost);
		}
	}
	sample_expect_end(file);
	nrp_tracefile_close(file);
}

static void repeat(const struct sample *sample, enum sample_format format, int version)
{
	struct nrp_blob bytes = sample_bytes(sample->parts, format);
	struct nrp_bench_files files = { .out_path = out_path, .version = version };
	struct nrp_error err = NRP_ERROR_INIT;
	const char *why = "";

	write_file(in_path, &bytes);
	free(bytes.data);
	assert_int_equal(nrp_tracefile_open(&files.in, in_path, &err), 0);
	files.parts = nrp_parts_read_headers(in_path, &why);
	assert_non_null(files.parts);
	files.parts->zstd_level = 1;
	files.out = fopen(out_path, "wb");
	assert_non_null(files.out);
	assert_int_equal(nrp_bench_repeat(&files, TIMES), 0);
	assert_int_equal(fclose(files.out), 0);
	nrp_parts_free(files.parts);
	nrp_tracefile_close(files.in);
	expect_repeated(sample);
}

static void times_go_on_in_every_kind_of_file(void **state)
{
	static const enum sample_format formats[] = { SAMPLE_V6, SAMPLE_V7, SAMPLE_V7_ZSTD };
	uint64_t seed = random_seed("bench_repeat");

	(void)state;
	for (unsigned int kind = 0; kind < 4; kind++) {
		struct sample_kind k = { .big = kind & 1,
					 .long_size = kind & 2 ? 4 : 8,
					 .page_size = 4096,
					 .pages = 12,
					 .name = { "", kind & 1 ? "second" : NULL } };
		struct sample *sample = sample_new(&k, seed + kind);

		for (unsigned int f = 0; f < 3; f++)
			repeat(sample, formats[f], f ? 7 : 6);
		sample_free(sample);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_go_on_in_every_kind_of_file),
	};
	int r;

	must(mkstemp(in_path) >= 0 && mkstemp(out_path) >= 0);
	r = cmocka_run_group_tests_name("bench_repeat", tests, NULL, NULL);
	remove(in_path);
	remove(out_path);
	return r;
}
