/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of hand-made replays: what the capture cannot show must not look known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/compare_internal.h"

#include <stdlib.h>
#include <string.h>

/* The host's lane against off: 1000 faults, 100 page-seconds seen, 8 to 12 of them remote. */
static void replay_init(struct nrp_replay *r)
{
	memset(r, 0, sizeof(*r));
	r->lane[0].observed = true;
	r->lane[1].off = true;
	r->remote_loads = -1;
	r->observed.hint_faults = 1000;
	r->observed.remote_faults = 50;
	r->totals.page_seconds = 90;
	r->remote.residency = (struct nrp_page_time){ .value = 10, .lower = 8, .upper = 12 };
	r->remote.accesses = (struct nrp_page_time){ .value = 100, .lower = 80, .upper = 120 };
	r->remote.covered = 10;
	r->lane[1].nr_worlds = 1;
	r->lane[1].remote[0] = r->lane[1].avoided[0] = r->remote;
}

static struct nrp_builder *build(const struct nrp_replay *r)
{
	struct nrp_builder *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->r = r;
	for (int i = 0; i < 2; i++)
		nrp_build_lane(b, i);
	nrp_build_pairs(b);
	return b;
}

static void test_few_untracked_faults_change_nothing(void **state)
{
	static struct nrp_replay r;
	struct nrp_builder *b;

	(void)state;
	replay_init(&r);
	r.totals.untracked_faults = 10; /* 1 % */
	b = build(&r);
	assert_true(b->q[0][REMOTE_RESIDENCY].upper == 12);
	assert_true(b->q[0][REMOTE_ACCESSES].has_upper);
	assert_true(b->paired[REMOTE_RESIDENCY]);
	free(b);
}

static void test_untracked_faults_open_remote_bounds(void **state)
{
	static struct nrp_replay r;
	struct nrp_builder *b;

	(void)state;
	replay_init(&r);
	r.totals.untracked_faults = 100;
	b = build(&r);
	for (int i = 0; i < 2; i++) {
		/* 900 faults have 90 page-seconds, so the other 100 have 10. */
		assert_float_equal(b->q[i][REMOTE_RESIDENCY].lower, 8, 1e-9);
		assert_float_equal(b->q[i][REMOTE_RESIDENCY].upper, 22, 1e-9);
		assert_int_not_equal(b->q[i][REMOTE_RESIDENCY].class, NRP_CLASS_EXACT);
		assert_false(b->q[i][REMOTE_ACCESSES].has_upper);
	}
	assert_false(b->paired[REMOTE_RESIDENCY]);
	assert_false(b->paired[REMOTE_ACCESSES]);
	assert_true(b->q[0][HINT_FAULTS_REMOTE].value == 50);
	free(b);
}

static void test_without_half_of_the_faults_locality_is_not_observable(void **state)
{
	static struct nrp_replay r;
	struct nrp_builder *b;

	(void)state;
	replay_init(&r);
	r.totals.untracked_faults = r.observed.unplaced_faults = 501;
	b = build(&r);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(b->q[i][REMOTE_RESIDENCY].class, NRP_CLASS_NOT_OBSERVABLE);
		assert_int_equal(b->q[i][REMOTE_ACCESSES].class, NRP_CLASS_NOT_OBSERVABLE);
	}
	assert_int_equal(b->q[0][HINT_FAULTS_REMOTE].class, NRP_CLASS_NOT_OBSERVABLE);
	/* Without balancing there is no fault, remote or not. */
	assert_int_equal(b->q[1][HINT_FAULTS_REMOTE].class, NRP_CLASS_EXACT);
	free(b);
}

/* Ten passes armed 7 entries; a laxer test of entries may arm the 93 others of their ranges. */
static void laxer_lane(struct nrp_replay *r)
{
	replay_init(r);
	r->scans = (struct nrp_scan_bounds){ .recorded = { 10, 10, 7 },
					     .least = { 10, 10, 7 },
					     .unarmed = 93,
					     .unarmed_known = true };
	r->observed.has_migration_waits = true;
	r->lane[1].off = false;
	r->lane[1].opens = true;
	r->lane[1].pte = 0;
	r->lane[1].world[0] = (struct nrp_world_result){
		.hint_faults = 5, .hint_fault_pages = 5, .moves = 4, .moved_pages = 4
	};
	r->lane[1].effects.tasks = 3;
}

static void test_entries_left_alone_add_one_fault_each(void **state)
{
	static struct nrp_replay r;
	struct nrp_builder *b;

	(void)state;
	laxer_lane(&r);
	b = build(&r);
	assert_true(b->q[1][HINT_FAULTS].has_upper && b->q[1][HINT_FAULTS].upper == 98);
	assert_true(b->q[1][PTE_UPDATES].has_upper && b->q[1][PTE_UPDATES].upper == 100);
	/* Whatever faults may move, and block the two other tasks. */
	assert_true(b->q[1][MIGRATED_PAGES].has_upper && b->q[1][MIGRATED_PAGES].upper == 98);
	assert_true(b->q[1][PAGE_MIGRATION_WAITS].upper == 196);
	/* No wait on record says how long. */
	assert_false(b->q[1][PAGE_MIGRATION_WAIT_NS].has_upper);
	assert_false(b->q[1][REMOTE_ACCESSES].has_upper);
	assert_true(b->q[1][REMOTE_RESIDENCY].lower == 0);
	free(b);
}

static void test_entries_in_other_vmas_have_no_upper_bound(void **state)
{
	static struct nrp_replay r;
	struct nrp_builder *b;

	(void)state;
	laxer_lane(&r);
	r.lane[1].gains_shmem = true;
	b = build(&r);
	assert_false(b->q[1][HINT_FAULTS].has_upper);
	assert_false(b->q[1][MIGRATED_PAGES].has_upper);
	free(b);
}

static void test_ranges_without_counts_leave_no_upper_bound(void **state)
{
	static struct nrp_replay r;
	struct nrp_builder *b;

	(void)state;
	laxer_lane(&r);
	r.scans.unarmed_known = false;
	b = build(&r);
	assert_false(b->q[1][HINT_FAULTS].has_upper);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_untracked_faults_change_nothing),
		cmocka_unit_test(test_untracked_faults_open_remote_bounds),
		cmocka_unit_test(test_entries_left_alone_add_one_fault_each),
		cmocka_unit_test(test_entries_in_other_vmas_have_no_upper_bound),
		cmocka_unit_test(test_ranges_without_counts_leave_no_upper_bound),
		cmocka_unit_test(test_without_half_of_the_faults_locality_is_not_observable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
