/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tiering.promote against the vectors T1..T9 of spec migrate.md 2.11: S = 14, hot 1000 ms, longest
 * scan period 60000 ms; what is not named is 0. Besides: units, and fields of fewer than 12 bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/policies/tiering_promote.h"

static struct nrp_tiering_params params(enum nrp_tiering_variant variant, uint64_t limit)
{
	return (struct nrp_tiering_params){ .variant = variant,
					    .hot_threshold_ms = 1000,
					    .limit = limit,
					    .scan_period_max_ms = 60000,
					    .cpupid_bits = 14 };
}

/* One call with the page armed at @scan. */
static struct nrp_tiering_result ask(const struct nrp_tiering_params *p,
				     struct nrp_tiering_node *node, uint32_t now, uint32_t scan,
				     uint32_t pages)
{
	struct nrp_tiering_call call = { .now_ms = now,
					 .accessed = nrp_tiering_stamp(p, scan),
					 .pages = pages };

	return nrp_tiering_decide(p, node, &call);
}

static void test_t1_latency_must_be_below_the_threshold(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 10);
	struct nrp_tiering_node node = { .threshold_start_ms = 4000 };
	struct nrp_tiering_result r = ask(&p, &node, 5000, 4001, 1);

	(void)state;
	assert_true(r.admitted);
	assert_int_equal(r.latency_ms, 999);
	assert_int_equal(node.candidates, 1);
	r = ask(&p, &node, 5000, 4000, 1);
	assert_int_equal(r.reason, NRP_TIERING_COLD);
	assert_int_equal(r.latency_ms, 1000);
	assert_int_equal(node.candidates, 1);
	assert_true(r.stamped);
}

static void test_t2_refused_candidates_count_and_the_reset_passes(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 3);
	struct nrp_tiering_node node = { .threshold_start_ms = 4000 };

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_int_equal(ask(&p, &node, 5000, 4900, 1).reason,
				 i < 3 ? NRP_TIERING_HOT : NRP_TIERING_LIMITED);
	assert_int_equal(node.window_candidates, 1);
	assert_int_equal(node.candidates, 6);
	assert_int_equal(ask(&p, &node, 6000, 5900, 1).reason, NRP_TIERING_LIMITED);
	assert_int_equal(node.candidates, 7);
	assert_true(ask(&p, &node, 6001, 5900, 1).admitted);
	assert_int_equal(node.window_candidates, 8);
	assert_true(ask(&p, &node, 6001, 5900, 1).admitted);
}

static void test_t3_folios_pass_until_the_limit_is_reached(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 1000);
	struct nrp_tiering_node node = { .threshold_start_ms = 4000 };

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(ask(&p, &node, 5000, 4900, 512).admitted, i < 2);
	assert_true(ask(&p, &node, 6001, 5900, 512).admitted);
	assert_int_equal(node.candidates, 2560);
	assert_int_equal(node.window_candidates, 2560);
}

static struct nrp_tiering_node adjusting(uint64_t candidates)
{
	return (struct nrp_tiering_node){ .candidates = candidates,
					  .window_candidates = candidates,
					  .window_start_ms = 59990 };
}

static void test_t4_many_candidates_lower_the_threshold(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 10);
	struct nrp_tiering_node node = adjusting(700);
	struct nrp_tiering_result r = ask(&p, &node, 60001, 59990, 1);

	(void)state;
	assert_true(r.admitted);
	assert_int_equal(r.latency_ms, 11);
	assert_int_equal(node.threshold_ms, 875);
	assert_int_equal(node.threshold_start_ms, 60001);
	assert_int_equal(node.threshold_candidates, 700);
}

static void test_t5_few_candidates_raise_it_unless_it_is_static(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 10);
	struct nrp_tiering_node node = adjusting(500);
	struct nrp_tiering_result r = ask(&p, &node, 60001, 58900, 1);

	(void)state;
	assert_true(r.admitted);
	assert_int_equal(r.latency_ms, 1101);
	assert_int_equal(node.threshold_ms, 1125);
	p.variant = NRP_TIERING_STATIC;
	node = adjusting(500);
	assert_int_equal(ask(&p, &node, 60001, 58900, 1).reason, NRP_TIERING_COLD);
}

static void test_t6_the_right_number_keeps_it(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 10);
	struct nrp_tiering_node node = adjusting(600);
	struct nrp_tiering_result r = ask(&p, &node, 60001, 58950, 1);

	(void)state;
	assert_int_equal(node.threshold_ms, 1000);
	assert_int_equal(r.reason, NRP_TIERING_COLD);
	assert_int_equal(r.latency_ms, 1051);
}

static void test_t7_floor_and_ceiling(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 10);
	struct nrp_tiering_node node = adjusting(700);
	struct nrp_tiering_result r;

	(void)state;
	node.threshold_ms = 125;
	r = ask(&p, &node, 60001, 59900, 1);
	assert_int_equal(node.threshold_ms, 125);
	assert_true(r.admitted);
	assert_int_equal(r.latency_ms, 101);
	node = adjusting(0);
	node.threshold_ms = 2000;
	r = ask(&p, &node, 60001, 58100, 1);
	assert_int_equal(node.threshold_ms, 2000);
	assert_true(r.admitted);
	assert_int_equal(r.latency_ms, 1901);
}

static void check_bypass(enum nrp_tiering_variant variant, uint64_t unlimited)
{
	struct nrp_tiering_params p = params(variant, 10);
	struct nrp_tiering_node node = { .threshold_ms = 1500,
					 .threshold_start_ms = 900,
					 .window_start_ms = 500 };
	struct nrp_tiering_call call = { .now_ms = 1000, .pages = 512, .free_space = true };
	struct nrp_tiering_result r = nrp_tiering_decide(&p, &node, &call);

	assert_true(r.admitted);
	assert_int_equal(r.reason, NRP_TIERING_FREE_SPACE);
	assert_false(r.stamped);
	assert_int_equal(node.threshold_ms, 0);
	assert_int_equal(node.candidates, 0);
	assert_int_equal(node.candidates_unlimited, unlimited);
	r = ask(&p, &node, 1001, 0, 1);
	assert_int_equal(r.reason, NRP_TIERING_COLD);
	assert_int_equal(r.latency_ms, 1001);
}

static void test_t8_free_space_admits_and_forgets_the_threshold(void **state)
{
	(void)state;
	check_bypass(NRP_TIERING_61, 0);
	check_bypass(NRP_TIERING_72, 512);
}

static void test_t9_ages_wrap(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 10);
	struct nrp_tiering_node node = { .threshold_start_ms = 19000, .window_start_ms = 19500 };
	struct nrp_tiering_result r = ask(&p, &node, 20000, 3700, 1);

	(void)state;
	assert_int_equal(r.latency_ms, 16300);
	assert_false(r.admitted);
	r = ask(&p, &node, 20000, 3000, 1);
	assert_int_equal(r.latency_ms, 616);
	assert_true(r.admitted);
}

/* As T4, one ms earlier: a whole scan period is not over before it has passed. */
static void test_the_threshold_stays_for_a_whole_period(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 10);
	struct nrp_tiering_node node = adjusting(700);

	(void)state;
	assert_true(ask(&p, &node, 60000, 59990, 1).admitted);
	assert_int_equal(node.threshold_ms, 0);
	assert_int_equal(node.threshold_start_ms, 0);
}

/* S = 10: units of 4 ms, ages modulo 4096 ms. 5003 ms is stored as (5003 / 4) % 1024 = 226. */
static void test_narrow_fields_count_in_larger_units(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 10);
	struct nrp_tiering_node node = { .threshold_start_ms = 5000 };
	struct nrp_tiering_result r;

	(void)state;
	p.cpupid_bits = 10;
	assert_int_equal(nrp_tiering_mask(&p), 4092);
	assert_int_equal(nrp_tiering_stamp(&p, 5003), 226);
	/* (5110 - 904) % 4096 = 110, in units of 4: 108 */
	r = ask(&p, &node, 5110, 5003, 1);
	assert_int_equal(r.latency_ms, 108);
	assert_true(r.admitted);
}

/* The clock in ms wraps after 49.7 days; differences do not mind. */
static void test_the_clock_wraps(void **state)
{
	struct nrp_tiering_params p = params(NRP_TIERING_61, 1);
	struct nrp_tiering_node node = { .threshold_start_ms = UINT32_MAX - 100,
					 .window_start_ms = UINT32_MAX - 999 };

	(void)state;
	/* Differences of 1000 and 1001 ms. */
	assert_int_equal(ask(&p, &node, 0, UINT32_MAX, 1).reason, NRP_TIERING_LIMITED);
	assert_int_equal(ask(&p, &node, 1, UINT32_MAX, 1).reason, NRP_TIERING_HOT);
	assert_int_equal(node.window_start_ms, 1);
}

static void test_units(void **state)
{
	(void)state;
	assert_int_equal(nrp_tiering_limit(65536, 4096), 16777216);
	assert_int_equal(nrp_tiering_ms(1250, 250), 5000);
	assert_int_equal(nrp_tiering_ms(1, 300), 3);
	/* 64-bit ticks begin 300 s before 2^32: 4294967296 ticks of 1 ms are 0 again. */
	assert_int_equal(nrp_tiering_ms(UINT64_C(4294967301), 1000), 5);
}

static void test_enabling_starts_the_threshold_anew(void **state)
{
	struct nrp_tiering_node node = { .threshold_ms = 1500, .candidates = 77 };

	(void)state;
	nrp_tiering_enable(&node, 4000);
	assert_int_equal(node.threshold_ms, 0);
	assert_int_equal(node.threshold_candidates, 77);
	assert_int_equal(node.threshold_start_ms, 4000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_t1_latency_must_be_below_the_threshold),
		cmocka_unit_test(test_t2_refused_candidates_count_and_the_reset_passes),
		cmocka_unit_test(test_t3_folios_pass_until_the_limit_is_reached),
		cmocka_unit_test(test_t4_many_candidates_lower_the_threshold),
		cmocka_unit_test(test_t5_few_candidates_raise_it_unless_it_is_static),
		cmocka_unit_test(test_t6_the_right_number_keeps_it),
		cmocka_unit_test(test_t7_floor_and_ceiling),
		cmocka_unit_test(test_t8_free_space_admits_and_forgets_the_threshold),
		cmocka_unit_test(test_t9_ages_wrap),
		cmocka_unit_test(test_the_threshold_stays_for_a_whole_period),
		cmocka_unit_test(test_narrow_fields_count_in_larger_units),
		cmocka_unit_test(test_the_clock_wraps),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_enabling_starts_the_threshold_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
