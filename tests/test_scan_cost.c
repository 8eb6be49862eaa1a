/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fit of what arming costs: lines worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replay/scan_cost.h"

static void test_points_on_a_line_are_explained(void **state)
{
	struct nrp_scan_cost c = { 0 };
	struct nrp_scan_cost_fit f;

	(void)state;
	nrp_scan_cost_add(&c, 0, 100);
	nrp_scan_cost_add(&c, 10, 200);
	nrp_scan_cost_add(&c, 20, 300);
	assert_true(nrp_scan_cost_fit(&c, &f));
	assert_float_equal(f.per_range, 100, 1e-6);
	assert_float_equal(f.per_entry, 10, 1e-6);
	assert_float_equal(f.explained, 1, 1e-6);
	assert_int_equal(f.ranges, 3);
}

/* Fewer entries that take longer: entries cost nothing, a range the mean. */
static void test_entries_do_not_cost_less_than_nothing(void **state)
{
	struct nrp_scan_cost c = { 0 };
	struct nrp_scan_cost_fit f;

	(void)state;
	nrp_scan_cost_add(&c, 0, 300);
	nrp_scan_cost_add(&c, 10, 100);
	assert_true(nrp_scan_cost_fit(&c, &f));
	assert_float_equal(f.per_range, 200, 1e-6);
	assert_float_equal(f.per_entry, 0, 1e-6);
	assert_float_equal(f.explained, 0, 1e-6);
}

/* The line has -50 at 0; through the origin it is (10*50 + 20*150) / (100 + 400). */
static void test_ranges_do_not_cost_less_than_nothing(void **state)
{
	struct nrp_scan_cost c = { 0 };
	struct nrp_scan_cost_fit f;

	(void)state;
	nrp_scan_cost_add(&c, 10, 50);
	nrp_scan_cost_add(&c, 20, 150);
	assert_true(nrp_scan_cost_fit(&c, &f));
	assert_float_equal(f.per_range, 0, 1e-6);
	assert_float_equal(f.per_entry, 7, 1e-6);
}

static void test_one_size_alone_gives_the_mean_and_none_no_fit(void **state)
{
	struct nrp_scan_cost c = { 0 };
	struct nrp_scan_cost_fit f;

	(void)state;
	assert_false(nrp_scan_cost_fit(&c, &f));
	nrp_scan_cost_add(&c, 512, 40);
	nrp_scan_cost_add(&c, 512, 60);
	assert_true(nrp_scan_cost_fit(&c, &f));
	assert_float_equal(f.per_range, 50, 1e-6);
	assert_float_equal(f.per_entry, 0, 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points_on_a_line_are_explained),
		cmocka_unit_test(test_entries_do_not_cost_less_than_nothing),
		cmocka_unit_test(test_ranges_do_not_cost_less_than_nothing),
		cmocka_unit_test(test_one_size_alone_gives_the_mean_and_none_no_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
