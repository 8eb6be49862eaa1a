/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace-file reader against libtracecmd on real captures: those of tests/data, or with --wide
 * every .dat below the folder that the environment variable NRP_TRACES names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "second_reader_leaks.h"

#include "capture/tracefile.h"
#include "tests/test_random.h"
#include "tests/trace_sample.h"

#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trace-cmd.h>
#include <unistd.h>

#define SKIPPED 77
#define MAX_INSTANCES 16
#define FLIPS 40          /* damaged copies of a small capture */
#define SMALL (600 << 10) /* bytes of captures that are damaged and cut */

static glob_t files;

/* ---- libtracecmd's events, merged by the plainest means ----------------------------- */

struct reference {
	struct tracecmd_input *input; /* of the file */
	struct tracecmd_input *instances[MAX_INSTANCES];
	struct tep_record **heads[MAX_INSTANCES]; /* next event of every CPU */
	int nr_instances, nr_cpus;
};

static bool reference_open(struct reference *ref, const char *path, int nr_cpus)
{
	int i, cpu, n;

	*ref = (struct reference){ .nr_cpus = nr_cpus };
	ref->input = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	if (!ref->input)
		return false;
	n = tracecmd_buffer_instances(ref->input);
	assert_in_range(n, 0, MAX_INSTANCES - 1);
	ref->instances[ref->nr_instances++] = ref->input;
	for (i = 0; i < n; i++) {
		struct tracecmd_input *instance = tracecmd_buffer_instance_handle(ref->input, i);

		if (instance)
			ref->instances[ref->nr_instances++] = instance;
	}
	for (i = 0; i < ref->nr_instances; i++) {
		ref->heads[i] = calloc((size_t)nr_cpus, sizeof(*ref->heads[i]));
		must(ref->heads[i] != NULL);
		for (cpu = 0; cpu < nr_cpus; cpu++)
			ref->heads[i][cpu] = tracecmd_read_data(ref->instances[i], cpu);
	}
	return true;
}

static void reference_close(struct reference *ref)
{
	int i, cpu;

	for (i = 0; i < ref->nr_instances; i++) {
		for (cpu = 0; cpu < ref->nr_cpus; cpu++) {
			if (ref->heads[i][cpu])
				tracecmd_free_record(ref->heads[i][cpu]);
		}
		free(ref->heads[i]);
		if (i)
			tracecmd_close(ref->instances[i]);
	}
	tracecmd_close(ref->input);
}

/* The earliest event; of equal times that of the lowest CPU, then of the first instance. */
static struct tep_record *reference_next(struct reference *ref)
{
	struct tep_record *best = NULL;
	int i, cpu, best_instance = 0;

	for (cpu = 0; cpu < ref->nr_cpus; cpu++) {
		for (i = 0; i < ref->nr_instances; i++) {
			struct tep_record *head = ref->heads[i][cpu];

			if (head && (!best || head->ts < best->ts)) {
				best = head;
				best_instance = i;
			}
		}
	}
	if (best)
		ref->heads[best_instance][best->cpu] =
			tracecmd_read_data(ref->instances[best_instance], best->cpu);
	return best;
}

/* ---- against it --------------------------------------------------------------------- */

static void compare_event(const char *path, size_t i, struct tep_handle *tep,
			  const struct nrp_raw_event *got, struct tep_record *want)
{
	if (got->time != want->ts || (int)got->cpu != want->cpu ||
	    got->size != (uint32_t)want->size)
		fail_msg("%s: event %zu: time %llu cpu %u size %u, libtracecmd: %llu %d %d", path,
			 i, (unsigned long long)got->time, got->cpu, got->size, want->ts, want->cpu,
			 want->size);
	assert_int_equal(got->id, tep_data_type(tep, want));
	assert_memory_equal(got->data, want->data, got->size);
	/* libtracecmd forgets about lost events if a page does not start with an event */
	if (want->missed_events) {
		assert_true(got->lost_before);
		assert_int_equal(got->lost, want->missed_events < 0 ? -1 : want->missed_events);
	}
}

static void compare_file(const char *path)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event got;
	struct reference ref;
	struct tep_record *want;
	uint64_t last = 0;
	size_t i, backwards = 0;
	int rc = nrp_tracefile_open(&file, path, &err);
	bool opened = reference_open(&ref, path, rc ? 1 : (int)nrp_tracefile_cpus(file));

	if (rc && opened)
		fail_msg("%s: libtracecmd reads it, but: offset %lld: %s", path,
			 (long long)err.offset, err.what);
	if (rc || !opened) {
		printf("%s: %s; libtracecmd: %s\n", path, rc ? err.what : "read",
		       opened ? "read" : "refused");
		nrp_tracefile_close(file);
		return;
	}
	for (i = 0; (want = reference_next(&ref)); i++) {
		if (nrp_tracefile_next(file, &got, &err) != 1)
			fail_msg("%s: event %zu missing: offset %lld: %s", path, i,
				 (long long)err.offset, err.what);
		compare_event(path, i, tracecmd_get_tep(ref.input), &got, want);
		backwards += got.time < last;
		last = got.time;
		tracecmd_free_record(want);
	}
	assert_int_equal(nrp_tracefile_next(file, &got, &err), 0);
	assert_int_equal(backwards, 0);
	printf("%s: %zu events\n", path, i);
	reference_close(&ref);
	nrp_tracefile_close(file);
}

static void events_are_those_of_libtracecmd_in_order_of_time(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < files.gl_pathc; i++)
		compare_file(files.gl_pathv[i]);
}

/* ---- the same events in every format ------------------------------------------------ */

static struct nrp_tracefile *open_or_fail(const char *path)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;

	if (nrp_tracefile_open(&file, path, &err))
		fail_msg("%s: offset %lld: %s", path, (long long)err.offset, err.what);
	return file;
}

static void compare_headers(const struct nrp_tracefile *a, const struct nrp_tracefile *b)
{
	size_t i;

	assert_int_equal(nrp_tracefile_long_size(a), nrp_tracefile_long_size(b));
	assert_int_equal(nrp_tracefile_page_size(a), nrp_tracefile_page_size(b));
	assert_string_equal(nrp_tracefile_uname(a), nrp_tracefile_uname(b));
	assert_string_equal(nrp_tracefile_clock(a), nrp_tracefile_clock(b));
	assert_int_equal(nrp_tracefile_nr_cpu_stats(a), nrp_tracefile_nr_cpu_stats(b));
	assert_int_equal(nrp_tracefile_nr_formats(a), nrp_tracefile_nr_formats(b));
	for (i = 0; i < nrp_tracefile_nr_formats(a); i++)
		assert_string_equal(nrp_tracefile_format(a, i)->text,
				    nrp_tracefile_format(b, i)->text);
}

static void compare_rewritten(const char *path, enum sample_format format)
{
	const char *why = "";
	struct nrp_trace_parts *parts = nrp_parts_read(path, &why);
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *a, *b;
	struct nrp_raw_event x, y;
	int rc;

	if (!parts)
		fail_msg("%s: %s", path, why);
	a = open_or_fail(path);
	b = open_or_fail(sample_write(parts, format));
	nrp_parts_free(parts);
	compare_headers(a, b);
	while ((rc = nrp_tracefile_next(a, &x, &err)) == 1) {
		assert_int_equal(nrp_tracefile_next(b, &y, &err), 1);
		assert_true(x.time == y.time && x.cpu == y.cpu && x.id == y.id && x.size == y.size);
		assert_memory_equal(x.data, y.data, x.size);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(nrp_tracefile_next(b, &y, &err), 0);
	nrp_tracefile_close(a);
	nrp_tracefile_close(b);
}

static bool is_small_capture(const char *path)
{
	struct nrp_tracefile *file = NULL;
	FILE *f = fopen(path, "rb");
	bool small;

	must(f && !fseek(f, 0, SEEK_END));
	small = ftell(f) < SMALL;
	fclose(f);
	small = small && !nrp_tracefile_open(&file, path, NULL);
	nrp_tracefile_close(file);
	return small;
}

static void a_capture_written_as_another_version_has_the_same_events(void **state)
{
	size_t i;
	int format;

	(void)state;
	for (i = 0; i < files.gl_pathc; i++) {
		for (format = 0; format < SAMPLE_NR_FORMATS; format++) {
			if (is_small_capture(files.gl_pathv[i]))
				compare_rewritten(files.gl_pathv[i], (enum sample_format)format);
		}
	}
}

/* ---- damage ------------------------------------------------------------------------- */

static struct nrp_blob load(const char *path)
{
	struct nrp_blob blob = { 0 };
	FILE *f = fopen(path, "rb");
	uint8_t buffer[65536];
	size_t n;

	must(f != NULL);
	while ((n = fread(buffer, 1, sizeof(buffer), f)))
		must(nrp_blob_append(&blob, buffer, n));
	fclose(f);
	return blob;
}

/* First error of opening and reading everything. */
static int read_all(const char *path, struct nrp_error *err)
{
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event event;
	int rc = nrp_tracefile_open(&file, path, err), first = rc;

	while (file && (rc = nrp_tracefile_next(file, &event, err)))
		first = first ? first : rc < 0 ? rc : 0;
	nrp_tracefile_close(file);
	return first;
}

/* Every kilobyte of the first 64, every fourth one of the rest, and the last byte. */
static void cut(const char *path)
{
	struct nrp_blob bytes = load(path);
	const char *copy = sample_file(bytes.data, bytes.size);
	size_t size = bytes.size - 1;

	while (size) {
		struct nrp_error err = NRP_ERROR_INIT;

		must(!truncate(copy, (off_t)size));
		if (!read_all(copy, &err))
			fail_msg("%s: reads without an error cut to %zu bytes", path, size);
		assert_int_equal(err.status, NRP_INPUT);
		assert_in_range((uint64_t)err.offset, 0, size);
		size = (size - 1) / 1024 * 1024;
		if (size > 65536)
			size = size / 4096 * 4096;
	}
	free(bytes.data);
}

static void a_capture_cut_short_anywhere_is_refused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < files.gl_pathc; i++) {
		if (is_small_capture(files.gl_pathv[i]))
			cut(files.gl_pathv[i]);
	}
}

static void a_capture_with_flipped_bytes_is_refused_or_read(void **state)
{
	uint64_t random = random_seed("flips");
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < files.gl_pathc; i++) {
		struct nrp_blob bytes;

		if (!is_small_capture(files.gl_pathv[i]))
			continue;
		bytes = load(files.gl_pathv[i]);
		for (n = 0; n < FLIPS; n++) {
			struct nrp_error err = NRP_ERROR_INIT;
			size_t at = random_range(&random, 0, n & 1 ? bytes.size - 1 : 4095);
			uint8_t old = bytes.data[at];

			bytes.data[at] = (uint8_t)random_next(&random);
			if (read_all(sample_file(bytes.data, bytes.size), &err))
				assert_int_equal(err.status, NRP_INPUT);
			bytes.data[at] = old;
		}
		free(bytes.data);
	}
}

static int keep_capture(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	size_t n = strlen(path);

	(void)st;
	(void)at;
	if (kind == FTW_F && n > 4 && !strcmp(path + n - 4, ".dat"))
		glob(path, files.gl_pathc ? GLOB_APPEND : 0, NULL, &files);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_those_of_libtracecmd_in_order_of_time),
		cmocka_unit_test(a_capture_written_as_another_version_has_the_same_events),
		cmocka_unit_test(a_capture_cut_short_anywhere_is_refused),
		cmocka_unit_test(a_capture_with_flipped_bytes_is_refused_or_read),
	};
	bool wide = argc > 1 && !strcmp(argv[1], "--wide");
	const char *below = wide ? getenv("NRP_TRACES") : NRP_TEST_DATA;
	int rc;

	if (below)
		nftw(below, keep_capture, 16, 0);
	if (!files.gl_pathc) {
		puts("skipped: no captures, or NRP_TRACES names none");
		return SKIPPED;
	}
	/* of many files the first test only: damage is tried on those of tests/data */
	rc = wide ? cmocka_run_group_tests_name("wide", ((struct CMUnitTest[]){ tests[0] }), NULL,
						NULL)
		  : cmocka_run_group_tests(tests, NULL, NULL);
	globfree(&files);
	return rc;
}
