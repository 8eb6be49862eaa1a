/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starved VMAs ranked: most sequences without a complete scan first, of these the largest. */
#include "analysis/compare_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define PAGE UINT64_C(4096)

static struct nrp_scan_lane_vma starved(uint64_t start, uint64_t pages, uint64_t sequences)
{
	return (struct nrp_scan_lane_vma){
		.mm = 1,
		.vm_start = start,
		.vm_end = start + pages * PAGE,
		.first_seen = 100,
		.last_seen = 1000,
		.record = { .starved = true, .sequences_since = sequences },
	};
}

static json_int_t member(const json_t *o, size_t row, const char *key)
{
	return json_integer_value(
		json_object_get(json_array_get(json_object_get(o, "rows"), row), key));
}

/* Twelve, in no order; the eight worst are listed. */
static void test_worst_are_listed_first(void **state)
{
	static const uint64_t sequences[12] = { 5, 12, 1, 9, 3, 11, 2, 10, 7, 4, 8, 6 };
	struct nrp_scan_lane_vma vma[13];
	struct nrp_verify v = { .scan_record = { .vma = vma, .nr_vmas = 13, .has_skips = true } };
	json_t *o;

	(void)state;
	for (size_t i = 0; i < 12; i++)
		vma[i] = starved(i << 20, 1, sequences[i]);
	vma[12] = starved(UINT64_C(99) << 20, 1, 99);
	vma[12].record.starved = false;
	o = nrp_starved_record(&v, PAGE);
	assert_int_equal(json_integer_value(json_object_get(o, "eligible")), 13);
	assert_int_equal(json_integer_value(json_object_get(o, "starved")), 12);
	assert_int_equal(json_array_size(json_object_get(o, "rows")), 8);
	for (size_t k = 0; k < 8; k++)
		assert_int_equal(member(o, k, "sequences_since"), 12 - k);
	json_decref(o);
}

static void test_of_equals_the_largest_then_the_lowest(void **state)
{
	struct nrp_scan_lane_vma vma[] = { starved(0x3000, 1, 5), starved(0x1000, 1, 5),
					   starved(0x9000, 2, 5) };
	struct nrp_verify v = { .scan_record = { .vma = vma, .nr_vmas = 3, .has_skips = true } };
	json_t *o = nrp_starved_record(&v, PAGE);

	(void)state;
	assert_int_equal(member(o, 0, "vm_start"), 0x9000);
	assert_int_equal(member(o, 1, "vm_start"), 0x1000);
	assert_int_equal(member(o, 2, "vm_start"), 0x3000);
	json_decref(o);
}

/* 900 ns since it was first seen, or 400 since its last complete scan; 6 pages in 2 passes. */
static void test_time_and_bytes_are_null_where_not_known(void **state)
{
	struct nrp_scan_lane_vma vma[] = { starved(0x1000, 1, 7), starved(0x9000, 1, 6),
					   starved(0xf000, 1, 5) };
	struct nrp_verify v = { .scan_record = { .vma = vma, .nr_vmas = 3 } };
	json_t *o, *rows;

	(void)state;
	vma[1].record.last_complete = 600;
	vma[1].record.armed_passes = vma[2].record.armed_passes = 2;
	vma[1].record.armed_entries = vma[2].record.armed_entries = 6;
	vma[2].record.unknown_ranges = 1;
	o = nrp_starved_record(&v, PAGE);
	rows = json_object_get(o, "rows");
	assert_true(json_is_null(json_object_get(o, "starved"))); /* no skips on record */
	assert_int_equal(member(o, 0, "since_ns"), 900);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "last_complete")));
	assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "armed_bytes_per_pass")));
	assert_int_equal(member(o, 1, "since_ns"), 400);
	assert_int_equal(member(o, 1, "armed_bytes_per_pass"), 3 * 4096);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 2), "armed_bytes_per_pass")));
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worst_are_listed_first),
		cmocka_unit_test(test_of_equals_the_largest_then_the_lowest),
		cmocka_unit_test(test_time_and_bytes_are_null_where_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
