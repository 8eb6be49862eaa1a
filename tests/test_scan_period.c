/* SPDX-License-Identifier: GPL-2.0-or-later */
/* scan.period against both tables of spec scan.md 10 and S10 of migrate.md 3.3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/policies/scan_period.h"
#include "replay/policies/ticks.h"

static struct nrp_scan_tunables tunables(uint32_t size_mb)
{
	return (struct nrp_scan_tunables){
		.size_mb = size_mb, .period_min_ms = 1000, .period_max_ms = 60000, .page_size = 4096
	};
}

static void test_windows_and_bounds_by_size(void **state)
{
	static const struct {
		uint64_t rss;
		uint32_t size_mb;
		uint64_t windows;
		uint32_t min, max;
	} rows[] = {
		{ 0, 256, 1, 1000, 60000 },       { 1000, 256, 1, 1000, 60000 },
		{ 65536, 256, 1, 1000, 60000 },   { 65537, 256, 2, 500, 30000 },
		{ 262144, 256, 4, 250, 15000 },   { 2621440, 256, 40, 100, 1500 },
		{ 26214400, 256, 400, 100, 150 }, { 262144, 64, 16, 62, 3750 },
		{ 262144, 4096, 1, 1000, 60000 },
	};
	static const struct nrp_scan_group none = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nrp_scan_tunables t = tunables(rows[i].size_mb);

		assert_int_equal(nrp_scan_windows(&t, rows[i].rss), rows[i].windows);
		assert_int_equal(nrp_scan_min(&t, rows[i].rss), rows[i].min);
		assert_int_equal(nrp_scan_start(&t, rows[i].rss, &none), rows[i].min);
		assert_int_equal(nrp_scan_max(&t, rows[i].rss, &none), rows[i].max);
	}
}

static void test_groups_scan_less_the_more_they_share(void **state)
{
	static const struct nrp_scan_group sharing = { 4, 300, 100 }, private = { 4, 0, 1000 };
	struct nrp_scan_tunables t = tunables(256);

	(void)state;
	assert_int_equal(nrp_scan_start(&t, 262144, &sharing), 750);
	assert_int_equal(nrp_scan_max(&t, 262144, &sharing), 45037);
	assert_int_equal(nrp_scan_start(&t, 262144, &private), 250);
	assert_int_equal(nrp_scan_max(&t, 262144, &private), 15000);
}

static void test_adaptation(void **state)
{
	static const struct {
		uint32_t period, period_max;
		uint64_t remote, local, failed, shared, private;
		bool early;
		uint32_t expected;
	} rows[] = {
		{ 1000, 60000, 0, 0, 0, 0, 0, true, 2000 },
		{ 1000, 60000, 10, 0, 0, 0, 10, true, 2000 },
		{ 1000, 60000, 5, 95, 0, 20, 80, false, 1100 },
		{ 1000, 60000, 0, 100, 0, 0, 100, false, 1300 },
		{ 1000, 60000, 20, 80, 0, 60, 40, false, 1100 },
		{ 1000, 60000, 95, 5, 0, 60, 40, false, 700 },
		{ 1000, 60000, 95, 5, 0, 95, 5, false, 300 },
		{ 1000, 60000, 50, 50, 1, 0, 100, true, 2000 },
		{ 300, 60000, 100, 0, 0, 100, 0, false, 250 },
		{ 14000, 15000, 0, 100, 0, 10, 90, false, 15000 },
		{ 1234, 60000, 31, 69, 0, 100, 0, false, 1110 },
		{ 1234, 60000, 30, 70, 0, 30, 70, false, 1358 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nrp_scan_task t = { .period_ms = rows[i].period,
					   .period_max_ms = rows[i].period_max,
					   .remote = rows[i].remote,
					   .local = rows[i].local,
					   .failed = rows[i].failed };

		assert_int_equal(nrp_scan_adapt(&t, rows[i].shared, rows[i].private, 250, 15000),
				 rows[i].early);
		assert_int_equal(t.period_ms, rows[i].expected);
		/* The early exit keeps the counters, the other clears them. */
		assert_int_equal(t.remote, rows[i].early ? rows[i].remote : 0);
		assert_int_equal(t.local, rows[i].early ? rows[i].local : 0);
		assert_int_equal(t.failed, rows[i].early ? rows[i].failed : 0);
	}
}

/* Each pass brings 100 private local faults. */
static void check_series(uint64_t failed, const uint32_t *expected, size_t n)
{
	struct nrp_scan_task t = { .period_ms = 1000, .period_max_ms = 60000, .failed = failed };

	for (size_t i = 0; i < n; i++) {
		t.local += 100;
		nrp_scan_adapt(&t, 0, 100, 1000, 60000);
		assert_int_equal(t.period_ms, expected[i]);
	}
}

static void test_s10_one_failure_doubles_for_good(void **state)
{
	static const uint32_t sticky[] = { 2000, 4000, 8000, 16000, 32000, 60000, 60000 };
	static const uint32_t clean[] = { 1300, 1690, 2197, 2857 };

	(void)state;
	check_series(1, sticky, sizeof(sticky) / sizeof(sticky[0]));
	check_series(0, clean, sizeof(clean) / sizeof(clean[0]));
}

static void test_ticks_round_up(void **state)
{
	(void)state;
	assert_int_equal(nrp_ms_to_ticks(20, 250), 5);
	assert_int_equal(nrp_ms_to_ticks(100, 250), 25);
	assert_int_equal(nrp_ms_to_ticks(750, 250), 188);
	assert_int_equal(nrp_ms_to_ticks(1000, 250), 250);
	assert_int_equal(nrp_ms_to_ticks(750, 100), 75);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_and_bounds_by_size),
		cmocka_unit_test(test_groups_scan_less_the_more_they_share),
		cmocka_unit_test(test_adaptation),
		cmocka_unit_test(test_s10_one_failure_doubles_for_good),
		cmocka_unit_test(test_ticks_round_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
