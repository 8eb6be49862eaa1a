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
		enum nrp_period_by by;
		uint32_t expected;
	} rows[] = {
		{ 1000, 60000, 0, 0, 0, 0, 0, NRP_PERIOD_BY_EMPTY, 2000 },
		{ 1000, 60000, 10, 0, 0, 0, 10, NRP_PERIOD_BY_EMPTY, 2000 },
		{ 1000, 60000, 5, 95, 0, 20, 80, NRP_PERIOD_BY_PRIVATE, 1100 },
		{ 1000, 60000, 0, 100, 0, 0, 100, NRP_PERIOD_BY_PRIVATE, 1300 },
		{ 1000, 60000, 20, 80, 0, 60, 40, NRP_PERIOD_BY_LOCAL, 1100 },
		{ 1000, 60000, 95, 5, 0, 60, 40, NRP_PERIOD_BY_REMOTE, 700 },
		{ 1000, 60000, 95, 5, 0, 95, 5, NRP_PERIOD_BY_REMOTE, 300 },
		{ 1000, 60000, 50, 50, 1, 0, 100, NRP_PERIOD_BY_FAILED, 2000 },
		{ 300, 60000, 100, 0, 0, 100, 0, NRP_PERIOD_BY_REMOTE, 250 },
		{ 14000, 15000, 0, 100, 0, 10, 90, NRP_PERIOD_BY_PRIVATE, 15000 },
		{ 1234, 60000, 31, 69, 0, 100, 0, NRP_PERIOD_BY_REMOTE, 1110 },
		{ 1234, 60000, 30, 70, 0, 30, 70, NRP_PERIOD_BY_PRIVATE, 1358 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nrp_scan_task t = { .period_ms = rows[i].period,
					   .period_max_ms = rows[i].period_max,
					   .remote = rows[i].remote,
					   .local = rows[i].local,
					   .failed = rows[i].failed };
		bool early;

		assert_int_equal(nrp_scan_adapt(&t, NRP_PERIOD_RULES, rows[i].shared,
						rows[i].private, 250, 15000),
				 rows[i].by);
		assert_int_equal(t.period_ms, rows[i].expected);
		/* The early exit keeps the counters, the other clears them. */
		early = nrp_period_is_early(rows[i].by);
		assert_int_equal(t.remote, early ? rows[i].remote : 0);
		assert_int_equal(t.local, early ? rows[i].local : 0);
		assert_int_equal(t.failed, early ? rows[i].failed : 0);
	}
}

/* Each pass brings 100 private local faults. */
static void check_series(uint64_t failed, const uint32_t *expected, size_t n)
{
	struct nrp_scan_task t = { .period_ms = 1000, .period_max_ms = 60000, .failed = failed };

	for (size_t i = 0; i < n; i++) {
		t.local += 100;
		nrp_scan_adapt(&t, NRP_PERIOD_RULES, 0, 100, 1000, 60000);
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

/* One pass over 50 remote and 50 local private faults, one of them failed, period 1000. */
static struct nrp_scan_task after(uint32_t rules_off, uint64_t local, uint64_t failed)
{
	struct nrp_scan_task t = { .period_ms = 1000,
				   .period_max_ms = 60000,
				   .remote = 100 - local,
				   .local = local,
				   .failed = failed };

	nrp_scan_adapt(&t, NRP_PERIOD_RULES & ~rules_off, 0, 100, 250, 15000);
	return t;
}

static void test_rules_can_be_switched_off(void **state)
{
	(void)state;
	assert_int_equal(after(0, 50, 1).period_ms, 2000);
	assert_int_equal(after(0, 50, 1).failed, 1);
	/* All private: 3 tenths longer. */
	assert_int_equal(after(NRP_PERIOD_FAILED, 50, 1).period_ms, 1300);
	assert_int_equal(after(NRP_PERIOD_STICKY, 50, 1).period_ms, 2000);
	assert_int_equal(after(NRP_PERIOD_STICKY, 50, 1).failed, 0);
	assert_int_equal(after(0, 0, 0).period_ms, 2000);
	assert_int_equal(after(NRP_PERIOD_EMPTY, 0, 0).period_ms, 1300);
	assert_int_equal(after(NRP_PERIOD_ADAPT, 50, 1).period_ms, 1000);
	assert_int_equal(after(NRP_PERIOD_ADAPT, 50, 1).local, 50);
}

/* J(period) / 16, at most a second (spec 3.4); HZ 250: 1000 ms are 250 ticks. */
static void test_placement_waits_for_the_retry_time_from_4_19_on(void **state)
{
	(void)state;
	assert_int_equal(nrp_scan_retry(100, 1000, 250), 115);
	assert_int_equal(nrp_scan_retry(100, 20, 250), 100);
	assert_int_equal(nrp_scan_retry(100, 60000, 250), 350);
	assert_false(nrp_scan_placement_may_run(NRP_SCAN_PERIOD_419, 115, 115));
	assert_true(nrp_scan_placement_may_run(NRP_SCAN_PERIOD_419, 116, 115));
	assert_true(nrp_scan_placement_may_run(NRP_SCAN_PERIOD_418, 100, 115));
}

/* No such period is in use; it must not wrap. */
static void test_the_longest_period_there_is_stays(void **state)
{
	struct nrp_scan_task t = { .period_ms = UINT32_MAX - 1, .period_max_ms = UINT32_MAX };

	(void)state;
	nrp_scan_adapt(&t, NRP_PERIOD_RULES, 0, 0, 1, UINT32_MAX);
	assert_int_equal(t.period_ms, UINT32_MAX);
	t.local = 1;
	nrp_scan_adapt(&t, NRP_PERIOD_RULES, 0, 1, 1, UINT32_MAX);
	assert_int_equal(t.period_ms, UINT32_MAX);
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
		cmocka_unit_test(test_rules_can_be_switched_off),
		cmocka_unit_test(test_placement_waits_for_the_retry_time_from_4_19_on),
		cmocka_unit_test(test_the_longest_period_there_is_stays),
		cmocka_unit_test(test_ticks_round_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
