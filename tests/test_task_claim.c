/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task.claim against the vectors C1..C6 of spec migrate.md 3.4, times in tenths. Upper bounds by
 * hand: the claim may be up to EARLY older than the request and LATE longer than the move.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/policies/task_claim.h"

enum { X = 101, Y = 102, Z = 103 };

static struct nrp_claim_request ask(int tid, uint64_t time, int cpu, uint64_t done, uint64_t early,
				    uint64_t late)
{
	return (struct nrp_claim_request){ .time = time,
					   .done = done,
					   .earliest = time - early,
					   .latest = done + late,
					   .tid = tid,
					   .dst_cpu = cpu };
}

static void check(struct nrp_claim_request *requests, size_t n, uint64_t lower, uint64_t upper)
{
	struct nrp_claim_count c = nrp_claim_run(requests, n);

	assert_int_equal(c.requests, n);
	assert_int_equal(c.suppressed_lower, lower);
	assert_int_equal(c.suppressed_upper, upper);
}

static void test_c1_inside(void **state)
{
	struct nrp_claim_request r[] = { ask(Y, 110, 5, 130, 0, 0), ask(X, 100, 5, 120, 0, 0) };

	(void)state;
	check(r, 2, 1, 1);
}

static void test_c2_after_it_is_done(void **state)
{
	struct nrp_claim_request apart[] = { ask(X, 100, 5, 120, 0, 0), ask(Y, 130, 5, 140, 0, 0) };
	struct nrp_claim_request early[] = { ask(X, 100, 5, 120, 0, 0),
					     ask(Y, 130, 5, 140, 10, 0) };
	struct nrp_claim_request late[] = { ask(X, 100, 5, 120, 0, 10), ask(Y, 130, 5, 140, 0, 0) };

	(void)state;
	check(apart, 2, 0, 0);
	/* Y chose at 120 already, or X gave the CPU back at 130 only. */
	check(early, 2, 0, 1);
	check(late, 2, 0, 1);
}

static void test_c3_another_cpu(void **state)
{
	struct nrp_claim_request r[] = { ask(X, 100, 5, 120, 50, 50), ask(Y, 110, 6, 130, 50, 50) };

	(void)state;
	check(r, 2, 0, 0);
}

static void test_c4_three_for_one_cpu(void **state)
{
	struct nrp_claim_request r[] = { ask(X, 100, 5, 120, 0, 0), ask(Y, 110, 5, 130, 0, 0),
					 ask(Z, 110, 5, 130, 0, 0) };

	(void)state;
	check(r, 3, 2, 2);
}

/* C5: X's request is a swap; to the CPU it is the same. */
static void test_c5_swap_and_move(void **state)
{
	struct nrp_claim_request r[] = { ask(X, 100, 5, 120, 0, 0), ask(Y, 110, 5, 130, 0, 0) };

	(void)state;
	check(r, 2, 1, 1);
}

static void test_c6_the_earlier_request_wins(void **state)
{
	struct nrp_claim_request r[] = { ask(X, 100, 5, 200, 0, 0), ask(Y, 95, 5, 110, 0, 0),
					 ask(Z, 150, 5, 160, 0, 0) };

	(void)state;
	/* X is suppressed and holds nothing: Z, inside X, is not; it may be if X came first. */
	check(r, 3, 1, 2);
}

static void test_the_end_of_a_claim_still_counts(void **state)
{
	struct nrp_claim_request r[] = { ask(X, 100, 5, 120, 0, 0), ask(Y, 120, 5, 140, 0, 0) };

	(void)state;
	check(r, 2, 1, 1);
}

static void test_nothing_asked(void **state)
{
	(void)state;
	check(NULL, 0, 0, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c1_inside),
		cmocka_unit_test(test_c2_after_it_is_done),
		cmocka_unit_test(test_c3_another_cpu),
		cmocka_unit_test(test_c4_three_for_one_cpu),
		cmocka_unit_test(test_c5_swap_and_move),
		cmocka_unit_test(test_c6_the_earlier_request_wins),
		cmocka_unit_test(test_the_end_of_a_claim_still_counts),
		cmocka_unit_test(test_nothing_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
