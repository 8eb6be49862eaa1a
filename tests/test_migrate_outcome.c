/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.outcome against the table Q1..Q11 of spec migrate.md 2.8, typed in from the table, and
 * against the order of tests of 2.7. H is 512.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "replay/policies/migrate_outcome.h"

#define H 512u
#define NONE INT32_MIN /* the function was not reached, or does not exist */

enum event { NO_EVENT, EVENT };

/* One cell of the table. */
struct cell {
	uint32_t charge, limited; /* pages charged; pages in the ratelimit event */
	uint32_t ok, fail, pgm;
	enum event event;
	uint32_t succeeded, failed;
	int32_t prepare, result;
	bool moved;
};

static void check(enum nrp_outcome_variant v, const struct nrp_outcome_attempt *a,
		  const struct cell *c)
{
	struct nrp_outcome o = nrp_outcome_decide(v, a);

	assert_int_equal(o.charged, c->charge);
	assert_int_equal(o.has_ratelimit_event, c->limited != 0);
	assert_int_equal(o.ratelimit_pages, c->limited);
	assert_int_equal(o.pgmigrate_success, c->ok);
	assert_int_equal(o.pgmigrate_fail, c->fail);
	assert_int_equal(o.numa_pages_migrated, c->pgm);
	assert_int_equal(o.has_event, c->event == EVENT);
	assert_int_equal(o.succeeded, c->succeeded);
	assert_int_equal(o.failed, c->failed);
	assert_int_equal(o.has_prepare, c->prepare != NONE);
	if (c->prepare != NONE)
		assert_int_equal(o.prepare_result, c->prepare);
	assert_int_equal(o.has_result, c->result != NONE);
	if (c->result != NONE)
		assert_int_equal(o.result, c->result);
	/* All failures set 0x10 in the task_numa_fault that follows; a move sets 1. */
	assert_int_equal(o.tnf_flags, c->moved ? 0x01 : 0x10);
}

struct row {
	struct nrp_outcome_attempt attempt;
	struct cell cell[NRP_NR_OUTCOME_VARIANTS]; /* 4.18, 5.10, 6.1, 6.12 */
};

static void check_row(const struct row *row)
{
	for (int v = 0; v < NRP_NR_OUTCOME_VARIANTS; v++)
		check((enum nrp_outcome_variant)v, &row->attempt, &row->cell[v]);
}

static void test_q1_anonymous_page_moves(void **state)
{
	static const struct row row = { { .pages = 1 },
					{ { 1, 0, 1, 0, 1, EVENT, 1, 0, NONE, 1, true },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, NONE, 1, true },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, NONE, 1, true },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, 0, 0, true } } };

	(void)state;
	check_row(&row);
}

static void test_q2_library_text_is_not_charged_and_leaves_nothing(void **state)
{
	static const struct row row = {
		{ .pages = 1, .file = true, .executable = true, .shared = true },
		{ { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
		  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
		  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
		  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, -13, NONE, false } }
	};

	(void)state;
	check_row(&row);
}

static void test_q3_dirty_file_page_is_not_charged_and_leaves_nothing(void **state)
{
	static const struct row row = { { .pages = 1, .file = true, .dirty = true },
					{ { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, -11, NONE, false } } };

	(void)state;
	check_row(&row);
}

static void test_q4_over_quota_is_an_event_in_4_18_and_a_move_later(void **state)
{
	static const struct row row = { { .pages = 1, .over_quota = true },
					{ { 0, 1, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, NONE, 1, true },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, NONE, 1, true },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, 0, 0, true } } };

	(void)state;
	check_row(&row);
}

static void test_q5_low_memory_is_charged_in_4_18(void **state)
{
	static const struct row row = { { .pages = 1, .low_memory = true },
					{ { 1, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, -11, NONE, false } } };

	(void)state;
	check_row(&row);
}

static void test_q6_failed_allocation_is_counted_by_migrate_pages(void **state)
{
	static const struct row row = { { .pages = 1, .no_target = true },
					{ { 1, 0, 0, 1, 0, EVENT, 0, 1, NONE, 0, false },
					  { 0, 0, 0, 1, 0, EVENT, 0, 1, NONE, 0, false },
					  { 0, 0, 0, 1, 0, EVENT, 0, 1, NONE, 0, false },
					  { 0, 0, 0, 1, 0, EVENT, 0, 1, 0, -11, false } } };

	(void)state;
	check_row(&row);
}

static void test_q7_huge_page_moves_without_event_up_to_5_13(void **state)
{
	static const struct row row = { { .pages = H },
					{ { H, 0, H, 0, H, NO_EVENT, 0, 0, NONE, 1, true },
					  { 0, 0, H, 0, H, NO_EVENT, 0, 0, NONE, 1, true },
					  { 0, 0, H, 0, H, EVENT, H, 0, NONE, 1, true },
					  { 0, 0, H, 0, H, EVENT, H, 0, 0, 0, true } } };

	(void)state;
	check_row(&row);
}

static void test_q8_failed_huge_allocation_counts_all_pages(void **state)
{
	static const struct row row = { { .pages = H, .no_target = true },
					{ { H, 0, 0, H, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, H, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, H, 0, EVENT, 0, H, NONE, 0, false },
					  { 0, 0, 0, H, 0, EVENT, 0, H, 0, -11, false } } };

	(void)state;
	check_row(&row);
}

static void test_q9_huge_page_of_two_processes_moves_from_6_11_on(void **state)
{
	static const struct row row = { { .pages = H, .shared = true },
					{ { H, 0, 0, H, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, H, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, H, 0, H, EVENT, H, 0, 0, 0, true } } };

	(void)state;
	check_row(&row);
}

static void test_q10_over_quota_huge_page(void **state)
{
	static const struct row row = { { .pages = H, .over_quota = true },
					{ { 0, H, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, H, 0, H, NO_EVENT, 0, 0, NONE, 1, true },
					  { 0, 0, H, 0, H, EVENT, H, 0, NONE, 1, true },
					  { 0, 0, H, 0, H, EVENT, H, 0, 0, 0, true } } };

	(void)state;
	check_row(&row);
}

static void test_q11_huge_page_and_low_memory(void **state)
{
	static const struct row row = { { .pages = H, .low_memory = true },
					{ { H, 0, 0, H, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, H, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, -11, NONE, false } } };

	(void)state;
	check_row(&row);
}

/* Below the table: the race of a huge copy is not counted; a freed page counts as moved. */
static void test_lost_copy_of_a_huge_page_is_counted_nowhere(void **state)
{
	static const struct row row = { { .pages = H, .changed = true },
					{ { H, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, 0, 0, NO_EVENT, 0, 0, NONE, 0, false },
					  { 0, 0, 0, H, 0, EVENT, 0, H, NONE, 0, false },
					  { 0, 0, 0, H, 0, EVENT, 0, H, 0, -11, false } } };

	(void)state;
	check_row(&row);
}

static void test_freed_page_counts_as_moved(void **state)
{
	static const struct row row = { { .pages = 1, .freed = true, .no_target = true },
					{ { 1, 0, 1, 0, 1, EVENT, 1, 0, NONE, 1, true },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, NONE, 1, true },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, NONE, 1, true },
					  { 0, 0, 1, 0, 1, EVENT, 1, 0, 0, 0, true } } };

	(void)state;
	check_row(&row);
}

/* ---- order of the tests (2.7) ------------------------------------------------------- */

static enum nrp_outcome_stage stage_of(enum nrp_outcome_variant v,
				       const struct nrp_outcome_attempt *a)
{
	return nrp_outcome_decide(v, a).stage;
}

/*
 * Everything is wrong with the page; then the first obstacle of each row is taken away, and the
 * next one of the table's column must answer.
 */
static void test_order_of_base_pages(void **state)
{
	(void)state;
	for (int i = 0; i < NRP_NR_OUTCOME_VARIANTS; i++) {
		enum nrp_outcome_variant v = (enum nrp_outcome_variant)i;
		struct nrp_outcome_attempt a = {
			.pages = 1,
			.file = true,
			.executable = true,
			.dirty = true,
			.shared = true,
			.over_quota = true,
			.low_memory = true,
			.not_isolated = true,
			.no_target = true,
			.extra_refs = true,
		};

		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_EXEC_SHARED);
		a.executable = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_DIRTY);
		a.dirty = false;
		assert_int_equal(stage_of(v, &a), v == NRP_OUTCOME_418 ? NRP_OUTCOME_RATELIMIT
								       : NRP_OUTCOME_WATERMARK);
		a.over_quota = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_WATERMARK);
		a.low_memory = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_ISOLATE);
		a.not_isolated = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_NO_TARGET);
		a.no_target = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_REFERENCES);
	}
}

/* 4.18 and 5.10: limiter, allocation, watermark, isolation, references, copy. */
static void test_order_of_huge_pages_with_their_own_function(void **state)
{
	static const enum nrp_outcome_variant variants[] = { NRP_OUTCOME_418, NRP_OUTCOME_510 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		enum nrp_outcome_variant v = variants[i];
		struct nrp_outcome_attempt a = {
			.pages = H,
			.file = true,
			.executable = true,
			.dirty = true,
			.shared = true,
			.over_quota = true,
			.no_target = true,
			.low_memory = true,
			.not_isolated = true,
			.changed = true,
		};

		assert_int_equal(stage_of(v, &a), v == NRP_OUTCOME_418 ? NRP_OUTCOME_RATELIMIT
								       : NRP_OUTCOME_NO_TARGET);
		a.over_quota = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_NO_TARGET);
		a.no_target = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_WATERMARK);
		a.low_memory = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_ISOLATE);
		a.not_isolated = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_REFERENCES);
		a.shared = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_COPY);
		a.changed = false;
		assert_int_equal(stage_of(v, &a), NRP_OUTCOME_MOVED);
	}
}

/* 6.1: exec, dirty, huge page of several processes, watermark, isolation. */
static void test_order_of_huge_pages_in_6_1(void **state)
{
	struct nrp_outcome_attempt a = { .pages = H,
					 .file = true,
					 .dirty = true,
					 .shared = true,
					 .low_memory = true,
					 .not_isolated = true };

	(void)state;
	assert_int_equal(stage_of(NRP_OUTCOME_61, &a), NRP_OUTCOME_DIRTY);
	a.dirty = false;
	assert_int_equal(stage_of(NRP_OUTCOME_61, &a), NRP_OUTCOME_THP_SHARED);
	assert_int_equal(stage_of(NRP_OUTCOME_612, &a), NRP_OUTCOME_WATERMARK);
	a.shared = false;
	assert_int_equal(stage_of(NRP_OUTCOME_61, &a), NRP_OUTCOME_WATERMARK);
}

/* The tests of file pages need all their conditions. */
static void test_file_rules_spare_other_pages(void **state)
{
	static const struct nrp_outcome_attempt movable[] = {
		{ .pages = 1, .executable = true, .shared = true },
		{ .pages = 1, .file = true, .shared = true },
		{ .pages = 1, .file = true, .executable = true },
		{ .pages = 1, .dirty = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(movable) / sizeof(movable[0]); i++)
		for (int v = 0; v < NRP_NR_OUTCOME_VARIANTS; v++)
			assert_int_equal(stage_of((enum nrp_outcome_variant)v, &movable[i]),
					 NRP_OUTCOME_MOVED);
}

static void test_kswapd_wakes_on_low_memory_in_tiering_mode_only(void **state)
{
	static const bool woken[] = { false, false, true, true };
	struct nrp_outcome_attempt a = { .pages = 1, .low_memory = true, .tiering = true };

	(void)state;
	for (int v = 0; v < NRP_NR_OUTCOME_VARIANTS; v++)
		assert_int_equal(nrp_outcome_decide((enum nrp_outcome_variant)v, &a).kswapd,
				 woken[v]);
	a.tiering = false;
	for (int v = 0; v < NRP_NR_OUTCOME_VARIANTS; v++)
		assert_false(nrp_outcome_decide((enum nrp_outcome_variant)v, &a).kswapd);
	a.tiering = true;
	a.low_memory = false;
	a.not_isolated = true;
	assert_false(nrp_outcome_decide(NRP_OUTCOME_612, &a).kswapd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_q1_anonymous_page_moves),
		cmocka_unit_test(test_q2_library_text_is_not_charged_and_leaves_nothing),
		cmocka_unit_test(test_q3_dirty_file_page_is_not_charged_and_leaves_nothing),
		cmocka_unit_test(test_q4_over_quota_is_an_event_in_4_18_and_a_move_later),
		cmocka_unit_test(test_q5_low_memory_is_charged_in_4_18),
		cmocka_unit_test(test_q6_failed_allocation_is_counted_by_migrate_pages),
		cmocka_unit_test(test_q7_huge_page_moves_without_event_up_to_5_13),
		cmocka_unit_test(test_q8_failed_huge_allocation_counts_all_pages),
		cmocka_unit_test(test_q9_huge_page_of_two_processes_moves_from_6_11_on),
		cmocka_unit_test(test_q10_over_quota_huge_page),
		cmocka_unit_test(test_q11_huge_page_and_low_memory),
		cmocka_unit_test(test_lost_copy_of_a_huge_page_is_counted_nowhere),
		cmocka_unit_test(test_freed_page_counts_as_moved),
		cmocka_unit_test(test_order_of_base_pages),
		cmocka_unit_test(test_order_of_huge_pages_with_their_own_function),
		cmocka_unit_test(test_order_of_huge_pages_in_6_1),
		cmocka_unit_test(test_file_rules_spare_other_pages),
		cmocka_unit_test(test_kswapd_wakes_on_low_memory_in_tiering_mode_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
