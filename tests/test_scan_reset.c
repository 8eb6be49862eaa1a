/* SPDX-License-Identifier: GPL-2.0-or-later */
/* scan.reset against the vectors S1..S9 of spec migrate.md 3.3, and with unknown facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/policies/scan_reset.h"

enum { N = NRP_RESET_NO, Y = NRP_RESET_YES, U = NRP_RESET_UNKNOWN };
#define UNKNOWN ((struct nrp_scan_reset_number){ 0 })

static struct nrp_scan_reset_event step(enum nrp_scan_reset_step what, int src, int dst, int pref,
					int seq)
{
	return (struct nrp_scan_reset_event){ .step = what,
					      .src_nid = NRP_RESET_KNOWN(src),
					      .dst_nid = NRP_RESET_KNOWN(dst),
					      .preferred_nid = NRP_RESET_KNOWN(pref),
					      .scan_seq = NRP_RESET_KNOWN(seq),
					      .faults = NRP_RESET_YES };
}

static void check(const struct nrp_scan_reset_event *event, int s418, int all, int lim)
{
	assert_int_equal(nrp_scan_reset_decide(NRP_SCAN_RESET_418, event), s418);
	assert_int_equal(nrp_scan_reset_decide(NRP_SCAN_RESET_ALL, event), all);
	assert_int_equal(nrp_scan_reset_decide(NRP_SCAN_RESET_LIM, event), lim);
}

static void moved(int src, int dst, int pref, int seq, int s418, int all, int lim)
{
	struct nrp_scan_reset_event e = step(NRP_RESET_MOVED, src, dst, pref, seq);

	check(&e, s418, all, lim);
}

/* A NUMA move is a choice and a change of CPU. */
static void test_s1_numa_move_to_the_preferred_node(void **state)
{
	struct nrp_scan_reset_event e = step(NRP_RESET_CHOSEN, 0, 1, 1, 7);

	(void)state;
	check(&e, Y, N, N);
	moved(0, 1, 1, 7, N, Y, N);
}

static void test_s2_failed_numa_move(void **state)
{
	struct nrp_scan_reset_event e = step(NRP_RESET_CHOSEN, 0, 1, 1, 7);

	(void)state;
	check(&e, Y, N, N);
}

static void test_s3_to_s6_other_moves(void **state)
{
	(void)state;
	moved(1, 0, 1, 7, N, Y, Y);  /* S3: balanced off the preferred node */
	moved(0, 2, 1, 7, N, Y, N);  /* S4: was off it already */
	moved(0, 1, -1, 0, N, Y, Y); /* S5: not placed yet */
	moved(0, 1, -1, 3, N, Y, Y); /* S6: no preferred node */
}

static void test_s7_same_node(void **state)
{
	(void)state;
	moved(1, 1, 1, 7, N, N, N);
	moved(0, 0, 1, 0, N, N, N);
}

static void test_s8_no_fault_arrays(void **state)
{
	struct nrp_scan_reset_event e = step(NRP_RESET_MOVED, 1, 0, 1, 7);

	(void)state;
	e.faults = NRP_RESET_NO;
	check(&e, N, N, N);
}

static void test_s9_swap_partner_comes_home(void **state)
{
	(void)state;
	moved(1, 0, 0, 9, N, Y, N);
}

/* Sequence 0 overrides both exceptions. */
static void test_before_the_first_placement_every_move_resets(void **state)
{
	(void)state;
	moved(0, 1, 1, 0, N, Y, Y);
	moved(0, 2, 1, 0, N, Y, Y);
}

static void test_unknown_facts_leave_open_only_what_they_decide(void **state)
{
	struct nrp_scan_reset_event e;

	(void)state;
	e = step(NRP_RESET_MOVED, 1, 0, 1, 7);
	e.preferred_nid = UNKNOWN;
	check(&e, N, Y, U);
	e.scan_seq = NRP_RESET_KNOWN(0); /* then the preferred node does not matter */
	check(&e, N, Y, Y);

	e = step(NRP_RESET_MOVED, 1, 0, 1, 7);
	e.scan_seq = UNKNOWN; /* no exception applies anyhow */
	check(&e, N, Y, Y);
	e = step(NRP_RESET_MOVED, 0, 1, 1, 7);
	e.scan_seq = UNKNOWN;
	check(&e, N, Y, U);

	e = step(NRP_RESET_MOVED, 1, 0, 1, 7);
	e.faults = NRP_RESET_UNKNOWN;
	check(&e, N, U, U);
	e = step(NRP_RESET_MOVED, 0, 1, 1, 7);
	e.faults = NRP_RESET_UNKNOWN; /* an exception applies anyhow */
	check(&e, N, U, N);

	e = step(NRP_RESET_MOVED, 1, 0, 1, 7);
	e.dst_nid = UNKNOWN; /* may be home itself */
	check(&e, N, U, U);
	e.faults = NRP_RESET_NO;
	check(&e, N, N, N);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_s1_numa_move_to_the_preferred_node),
		cmocka_unit_test(test_s2_failed_numa_move),
		cmocka_unit_test(test_s3_to_s6_other_moves),
		cmocka_unit_test(test_s7_same_node),
		cmocka_unit_test(test_s8_no_fault_arrays),
		cmocka_unit_test(test_s9_swap_partner_comes_home),
		cmocka_unit_test(test_before_the_first_placement_every_move_resets),
		cmocka_unit_test(test_unknown_facts_leave_open_only_what_they_decide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
