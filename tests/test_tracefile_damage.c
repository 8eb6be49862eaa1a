/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace-file reader on files that are cut short or damaged: it must say so, with a place, and
 * never crash, hang or read such a file as a shorter one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/bytes.h"
#include "capture/tracefile.h"
#include "tests/test_random.h"
#include "tests/trace_sample.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TIME_LIMIT 600 /* seconds for all: a reader that runs in a circle ends here */
#define FLIPS 1000
#define MAX_ERRORS 100000 /* damaged pages of a file */

static const struct sample_kind small = {
	.long_size = 8,
	.page_size = 512,
	.pages = 2,
	.name = { "", "inst" },
};

/* What opening and reading to the end, across damaged pages, gave. */
struct outcome {
	int rc;               /* of the first failure, 0: none */
	struct nrp_error err; /* of the first failure */
	size_t nr_events;
};

static struct outcome read_all(const char *path)
{
	struct outcome outcome = { .err = NRP_ERROR_INIT };
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event event;
	unsigned int errors = 0;
	uint8_t sum = 0;
	int rc;

	outcome.rc = nrp_tracefile_open(&file, path, &outcome.err);
	while (!outcome.rc || file) {
		rc = nrp_tracefile_next(file, &event, &outcome.err); /* the first error stays */
		if (!rc)
			break;
		if (rc < 0) {
			outcome.rc = outcome.rc ? outcome.rc : rc;
			assert_true(errors++ < MAX_ERRORS);
			continue;
		}
		outcome.nr_events++;
		sum = (uint8_t)(sum + event.data[0] + event.data[event.size - 1]);
	}
	nrp_tracefile_close(file);
	return outcome;
}

/* What is left of a file must come without a crash or an end in a circle; the number of events. */
static size_t salvage_all(const char *path)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event event;
	unsigned int errors = 0;
	size_t n = 0, read = 0, i;
	int rc = nrp_tracefile_salvage(&file, path, &err);

	if (rc) {
		assert_int_equal(err.status, NRP_INPUT);
		return 0;
	}
	while ((rc = nrp_tracefile_next(file, &event, &err))) {
		assert_true(rc > 0 || (rc != -ENOMEM && errors++ < MAX_ERRORS));
		n += rc > 0;
	}
	for (i = 0; nrp_tracefile_reading(file, i); i++)
		read += nrp_tracefile_reading(file, i)->events;
	assert_int_equal(read, n);
	nrp_tracefile_close(file);
	return n;
}

/* A failure must be one of the input, with a place in it and words. */
static void check_failure(const struct outcome *outcome, uint64_t size)
{
	assert_int_equal(outcome->err.status, NRP_INPUT);
	assert_int_equal(outcome->err.code, outcome->rc);
	assert_in_range((uint64_t)outcome->err.offset, 0, size);
	assert_true(outcome->err.what[0] && outcome->err.file[0]);
}

/* ---- cut short ---------------------------------------------------------------------- */

static void check_cut(const char *path, uint64_t size)
{
	struct outcome outcome;

	must(!truncate(path, (off_t)size));
	outcome = read_all(path);
	if (!outcome.rc)
		fail_msg("cut to %llu bytes it reads without an error", (unsigned long long)size);
	check_failure(&outcome, size);
}

static void a_file_cut_short_by_any_number_of_bytes_is_refused(void **state)
{
	struct sample *sample = sample_new(&small, 1);
	int format;

	(void)state;
	for (format = 0; format < SAMPLE_NR_FORMATS; format++) {
		struct nrp_blob bytes = sample_bytes(sample->parts, (enum sample_format)format);
		const char *path = sample_file(bytes.data, bytes.size);
		uint64_t size;

		assert_int_equal(read_all(path).rc, 0);
		for (size = bytes.size - 1; size; size--)
			check_cut(path, size);
		free(bytes.data);
	}
	sample_free(sample);
}

static void the_error_of_a_cut_file_says_what_is_missing(void **state)
{
	struct sample *sample = sample_new(&small, 1);
	struct nrp_blob bytes = sample_bytes(sample->parts, SAMPLE_V6);
	const char *path = sample_file(bytes.data, bytes.size);
	struct outcome outcome;
	char want[128];

	(void)state;
	must(!truncate(path, (off_t)bytes.size - 1));
	outcome = read_all(path);
	assert_int_equal(outcome.rc, -ENODATA);
	snprintf(want, sizeof(want), "cut short: data of a CPU needs %zu bytes, file has %zu",
		 bytes.size, bytes.size - 1);
	assert_string_equal(outcome.err.what, want);
	assert_string_equal(outcome.err.remedy, "copy the file again, or record it again");
	free(bytes.data);
	sample_free(sample);
}

/* The data were there when the file was opened. Mapped, this would be a signal. */
static void shorten_while_reading(enum sample_format format)
{
	struct sample *sample = sample_new(&small, 3);
	const char *path = sample_write(sample->parts, format);
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event event;
	bool lost = false;
	size_t n = 0, i;
	int rc;

	must(!nrp_tracefile_salvage(&file, path, &err));
	must(!truncate(path, 0));
	while ((rc = nrp_tracefile_next(file, &event, &err)))
		n += rc > 0;
	assert_true(n < sample->nr_events);
	assert_int_equal(err.status, NRP_INPUT);
	assert_non_null(strstr(err.what, "became shorter"));
	for (i = 0; nrp_tracefile_reading(file, i); i++)
		lost |= nrp_tracefile_reading(file, i)->lost_at_end;
	assert_true(lost);
	nrp_tracefile_close(file);
	sample_free(sample);
}

static void a_file_that_becomes_shorter_while_it_is_read_has_lost_its_end(void **state)
{
	(void)state;
	for (int format = 0; format < SAMPLE_NR_FORMATS; format++)
		shorten_while_reading((enum sample_format)format);
}

/* ---- salvaged ----------------------------------------------------------------------- */

/*
 * The events that come must be some of the sample's, in their order; if not all do, some CPU has
 * lost its end, or the damage is in the headers.
 */
static size_t expect_part(const struct sample *sample, const char *path)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;
	struct nrp_raw_event event;
	bool lost = false;
	size_t at = 0, n = 0, i;
	int rc = nrp_tracefile_salvage(&file, path, &err);

	if (rc)
		return 0;
	while ((rc = nrp_tracefile_next(file, &event, &err))) {
		bool big = nrp_tracefile_swapped(file) != (__BYTE_ORDER == __BIG_ENDIAN);

		if (rc < 0)
			continue;
		while (at < sample->nr_events &&
		       (sample->events[at].time != event.time ||
			sample->events[at].mark != nrp_load32(event.data + 4, big)))
			at++;
		assert_true(at++ < sample->nr_events);
		n++;
	}
	for (i = 0; nrp_tracefile_reading(file, i); i++)
		lost |= nrp_tracefile_reading(file, i)->lost_at_end;
	assert_true(lost || n == sample->nr_events);
	assert_true(lost || nrp_tracefile_damage(file, &err));
	nrp_tracefile_close(file);
	return n;
}

static void a_cut_file_of_any_byte_order_and_word_gives_a_part_of_its_events(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 4 * SAMPLE_NR_FORMATS; i++) {
		struct sample_kind kind = small;
		struct sample *sample;
		struct nrp_blob bytes;
		const char *path;
		size_t before, size;

		kind.big = i & 1;
		kind.long_size = i & 2 ? 4 : 8;
		sample = sample_new(&kind, (uint64_t)i + 1);
		bytes = sample_bytes(sample->parts, (enum sample_format)(i / 4));
		path = sample_file(bytes.data, bytes.size);
		before = sample->nr_events;
		for (size = bytes.size - 1; size; size--) {
			size_t n;

			must(!truncate(path, (off_t)size));
			n = expect_part(sample, path);
			/* a shorter file never has more; in v7 the sample's statistics are wrong */
			assert_true(n <= before || i / 4 != SAMPLE_V6);
			before = n;
		}
		free(bytes.data);
		sample_free(sample);
	}
}

/* ---- damaged ------------------------------------------------------------------------ */

static void flip_bytes(const struct nrp_blob *bytes, uint64_t *random, unsigned int n)
{
	uint8_t *copy = malloc(bytes->size);
	unsigned int i, j;

	must(copy != NULL);
	for (i = 0; i < n; i++) {
		unsigned int flips = (unsigned int)random_range(random, 1, 3);
		struct outcome outcome;
		const char *path;

		memcpy(copy, bytes->data, bytes->size);
		for (j = 0; j < flips; j++) {
			/* half of them near the start: that is where the headers are */
			uint64_t end = random_range(random, 0, 1) ? bytes->size : bytes->size / 3;

			copy[random_range(random, 0, end - 1)] ^=
				(uint8_t)(1 << random_range(random, 0, 7));
		}
		path = sample_file(copy, bytes->size);
		outcome = read_all(path);
		if (outcome.rc)
			assert_int_equal(outcome.err.status, NRP_INPUT);
		salvage_all(path);
	}
	free(copy);
}

static void flipped_bits_are_an_error_of_the_input_or_go_unnoticed(void **state)
{
	uint64_t random = random_seed("flips");
	int i;

	(void)state;
	for (i = 0; i < 2 * SAMPLE_NR_FORMATS; i++) {
		struct sample_kind kind = small;
		struct sample *sample;
		struct nrp_blob bytes;

		kind.big = i >= SAMPLE_NR_FORMATS;
		kind.long_size = kind.big ? 4 : 8;
		sample = sample_new(&kind, random_next(&random));
		bytes = sample_bytes(sample->parts, (enum sample_format)(i % SAMPLE_NR_FORMATS));
		flip_bytes(&bytes, &random, FLIPS);
		free(bytes.data);
		sample_free(sample);
	}
}

/* Every byte in turn takes the values that make numbers extreme. */
static void extreme_bytes_anywhere_are_an_error_of_the_input_or_go_unnoticed(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct sample_kind kind = { .long_size = 8, .page_size = 512, .pages = 1, .name = { "i" } };
	struct sample *sample = sample_new(&kind, 7);
	int format;

	(void)state;
	for (format = 0; format < SAMPLE_NR_FORMATS; format++) {
		struct nrp_blob bytes = sample_bytes(sample->parts, (enum sample_format)format);
		const char *path = sample_file(bytes.data, bytes.size);
		size_t i, v;

		for (i = 0; i < bytes.size; i++) {
			for (v = 0; v < sizeof(values); v++) {
				struct outcome outcome;

				sample_patch(i, values[v]);
				outcome = read_all(path);
				if (outcome.rc)
					assert_int_equal(outcome.err.status, NRP_INPUT);
				if (outcome.rc && v & 1)
					salvage_all(path);
			}
			sample_patch(i, bytes.data[i]);
		}
		free(bytes.data);
	}
	sample_free(sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_becomes_shorter_while_it_is_read_has_lost_its_end),
		cmocka_unit_test(a_file_cut_short_by_any_number_of_bytes_is_refused),
		cmocka_unit_test(the_error_of_a_cut_file_says_what_is_missing),
		cmocka_unit_test(a_cut_file_of_any_byte_order_and_word_gives_a_part_of_its_events),
		cmocka_unit_test(flipped_bits_are_an_error_of_the_input_or_go_unnoticed),
		cmocka_unit_test(extreme_bytes_anywhere_are_an_error_of_the_input_or_go_unnoticed),
	};

	alarm(TIME_LIMIT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
