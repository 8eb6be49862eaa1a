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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_untracked_faults_change_nothing),
		cmocka_unit_test(test_untracked_faults_open_remote_bounds),
		cmocka_unit_test(test_without_half_of_the_faults_locality_is_not_observable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
