/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limiter lanes over recorded attempts: which first window and grid phase the record chooses, the
 * fitted quota, and what unknown charges, races, losses and the first window leave open. All values
 * are worked out by hand from migrate.md 1.1-1.8. Quota 4 and interval 10 unless said; one tick is
 * 4 ms.
 */
#include "replay/ratelimit_lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define QUOTA 4
#define INTERVAL 10
#define TICK_NS UINT64_C(4000000)
#define ROOM 256

enum { A = NRP_LIMITER_ADMITTED, D = NRP_LIMITER_DENIED, U = NRP_LIMITER_UNKNOWN };

/* Attempts under construction. */
struct record {
	struct nrp_attempt at[ROOM];
	struct nrp_loss_span loss;
	struct nrp_attempts all;
};

static void add_to(struct record *r, int nid, uint64_t jiffies, uint32_t pages, int evidence)
{
	struct nrp_attempt *a = &r->at[r->all.count];

	assert_true(r->all.count < ROOM);
	/* In sequence within the tick: nothing overlaps. */
	*a = (struct nrp_attempt){
		.time = jiffies * TICK_NS + r->all.count * 1000,
		.end_time = jiffies * TICK_NS + r->all.count * 1000 + 500,
		.jiffies = jiffies,
		.ordinal = r->all.count,
		.pages = pages,
		.nid = (int16_t)nid,
		.evidence = (uint8_t)evidence,
		.charge_known = evidence != U,
		.moved = evidence == A,
	};
	r->all.at = r->at;
	r->all.count++;
	r->all.unknown += evidence == U;
	r->all.denied += evidence == D;
	if (nid >= r->all.nr_nodes)
		r->all.nr_nodes = nid + 1;
	if (pages > r->all.max_pages)
		r->all.max_pages = pages;
}

static void add(struct record *r, uint64_t jiffies, uint32_t pages, int evidence, int times)
{
	for (int i = 0; i < times; i++)
		add_to(r, 0, jiffies, pages, evidence);
}

static struct nrp_ratelimit_params params(enum nrp_ratelimit_variant variant)
{
	return (struct nrp_ratelimit_params){ .variant = variant,
					      .quota = QUOTA,
					      .interval = INTERVAL };
}

static struct nrp_ratelimit_lane run(const struct record *r, enum nrp_ratelimit_variant variant,
				     bool is_host)
{
	struct nrp_ratelimit_params p = params(variant);
	struct nrp_ratelimit_lane lane;

	assert_int_equal(nrp_ratelimit_lane_run(&lane, &r->all, &p, is_host, NULL), 0);
	return lane;
}

static void check_certainty(const struct nrp_ratelimit_lane *lane, const char *expected)
{
	static const char letters[] = "-CLSR"; /* certain, charge, loss, start, race */

	for (size_t i = 0; expected[i]; i++)
		if (letters[lane->decision[i].certainty] != expected[i])
			fail_msg("attempt %zu: %c instead of %c", i,
				 letters[lane->decision[i].certainty], expected[i]);
}

static void check_admitted(const struct nrp_ratelimit_lane *lane, const char *expected)
{
	for (size_t i = 0; expected[i]; i++)
		if (lane->decision[i].admitted != (expected[i] == 'A'))
			fail_msg("attempt %zu: not %c", i, expected[i]);
}

/*
 * The capture begins inside a used-up window that ends with tick 105. Window from 106 to 116: R+1 =
 * 5 admitted. Of the 23 starts only "spent, ends 5 ticks after the first attempt" explains it.
 * Without the kernel's answers races would be open: the attempts of ticks 105 and 116 may come to
 * the limiter one tick later and are then admitted, and in the first case the fifth one of that
 * window is not.
 */
static void test_spent_first_window(void **state)
{
	struct record r = { 0 };
	struct nrp_ratelimit_lane lane;

	(void)state;
	for (uint64_t j = 100; j <= 105; j++)
		add(&r, j, 1, D, 1);
	add(&r, 106, 1, A, 5);
	add(&r, 106, 1, D, 1);
	add(&r, 116, 1, D, 1);
	add(&r, 117, 1, A, 1);
	lane = run(&r, NRP_RATELIMIT_SPIN, true);
	assert_true(lane.fitted);
	assert_int_equal(lane.starts_left, 1);
	assert_int_equal(lane.start[0].first_end, 5);
	assert_true(lane.start[0].exhausted);
	assert_int_equal(lane.contradictions, 0);
	check_admitted(&lane, "DDDDDDAAAAADDA");
	for (size_t i = 0; i < r.all.count; i++)
		assert_int_equal(lane.decision[i].first_window, i < 6);
	check_certainty(&lane, "-----R----R-R-");
	assert_int_equal(lane.admitted, 6);
	assert_int_equal(lane.admitted_min, 5);
	assert_int_equal(lane.admitted_max, 8);
	nrp_ratelimit_lane_clear(&lane);
}

/*
 * The same record for a lane that is not the host's: a fresh window at 100, so 5 of the first 6
 * pass, then the window 100..110 is full, and that from 111 takes both later ones. Least: a spent
 * window that lasts to 106 or longer refuses all 12 before 116. Most: an empty window that ends at
 * 104 takes 5, the next one, 105..115, 5 more, and the last takes two.
 */
static void test_unknown_first_window(void **state)
{
	struct record r = { 0 };
	struct nrp_ratelimit_lane lane;

	(void)state;
	for (uint64_t j = 100; j <= 105; j++)
		add(&r, j, 1, U, 1);
	add(&r, 106, 1, U, 6);
	add(&r, 116, 1, U, 1);
	add(&r, 117, 1, U, 1);
	for (size_t i = 0; i < r.all.count; i++)
		r.at[i].charge_known = true;
	lane = run(&r, NRP_RATELIMIT_SPIN, false);
	assert_false(lane.fitted);
	assert_int_equal(lane.start[0].first_end, -1);
	assert_int_equal(lane.starts_left, 1 + 2 * (INTERVAL + 1));
	check_admitted(&lane, "AAAAADDDDDDDAA");
	check_certainty(&lane, "SSSSSSSSSSS");
	assert_int_equal(lane.admitted, 7);
	assert_int_equal(lane.admitted_min, 2);
	assert_int_equal(lane.admitted_max, 12);
	nrp_ratelimit_lane_clear(&lane);
}

/*
 * Grid with ends at 103, 113, .. 143; three attempts a tick. Window ..103: 12 attempts, 5 pass.
 * Four windows of 30 attempts: 5 pass each. 144: 3 pass. Two nodes share the phase: node 1 first
 * comes at 108, and a new window lets it pass at 114.
 */
static void test_grid_phase(void **state)
{
	struct record r = { 0 };
	struct nrp_ratelimit_lane lane;

	(void)state;
	for (uint64_t j = 100; j <= 144; j++) {
		for (int k = 0; k < 3; k++) {
			uint64_t since = j <= 103 ? 100 : j - (j - 104) % 10;

			add(&r, j, 1, (j - since) * 3 + (uint64_t)k < 5 ? A : D, 1);
		}
		if (j == 108 || j == 113)
			for (int k = 0; k < 3; k++)
				add_to(&r, 1, j, 1, j == 113 && k == 2 ? D : A);
		if (j == 114)
			add_to(&r, 1, j, 1, A);
	}
	lane = run(&r, NRP_RATELIMIT_TRYLOCK, true);
	assert_true(lane.fitted);
	assert_int_equal(lane.contradictions, 0);
	assert_int_equal(lane.starts_left, 1);
	for (int n = 0; n < 2; n++) {
		assert_int_equal(lane.start[n].first_end, 3);
		assert_false(lane.start[n].exhausted);
	}
	assert_int_equal(lane.admitted, 28 + 6);
	nrp_ratelimit_lane_clear(&lane);
	/* Stretched windows of 11 ticks drift away from these of 10. */
	lane = run(&r, NRP_RATELIMIT_SPIN, true);
	assert_true(lane.contradictions > nrp_ratelimit_fit_tolerance(r.all.count));
	assert_false(lane.fitted);
	nrp_ratelimit_lane_clear(&lane);
}

/* More contradictions than races explain: 20 admissions in one window are no limiter of quota 4. */
static void test_not_the_host(void **state)
{
	struct record r = { 0 };
	struct nrp_ratelimit_lane lane;

	(void)state;
	add(&r, 100, 1, A, 20);
	lane = run(&r, NRP_RATELIMIT_SPIN, true);
	assert_false(lane.fitted);
	assert_int_equal(lane.start[0].first_end, -1); /* the nominal start */
	assert_int_equal(lane.admitted, 5);
	assert_int_equal(lane.contradictions, 15);
	nrp_ratelimit_lane_clear(&lane);
}

/*
 * Three certain attempts, two that failed for an unknown reason, one more, in one fresh window. All
 * charged: the sixth finds 5 > 4 and is refused. None of the two charged: it finds 3 and passes.
 * From 111 on the window is new: certain, but for the start.
 */
static void test_unknown_charge(void **state)
{
	struct record r = { 0 };
	struct nrp_ratelimit_lane lane;

	(void)state;
	add(&r, 100, 1, A, 3);
	add(&r, 101, 1, U, 2);
	add(&r, 102, 1, A, 1);
	lane = run(&r, NRP_RATELIMIT_SPIN, false);
	check_admitted(&lane, "AAAAAD");
	check_certainty(&lane, "SSSSSC");
	assert_int_equal(lane.admitted_min, 0);
	assert_int_equal(lane.admitted_max, 6);
	nrp_ratelimit_lane_clear(&lane);
	/* Fitted, the record says that the sixth passed: one contradiction, taken for a race. */
	lane = run(&r, NRP_RATELIMIT_SPIN, true);
	assert_true(lane.fitted);
	nrp_ratelimit_lane_clear(&lane);
}

/*
 * One place left (4 > 4 is false), two attempts in flight at once: either order, or both before the
 * other's charge is seen. Serial: first yes, second no. Open: 5 or 6 in all; what the lane prints
 * may be one wider, because it does not know that at least one of the two is charged.
 */
static void test_race_at_quota(void **state)
{
	struct record r = { 0 };
	struct nrp_ratelimit_lane lane;

	(void)state;
	add(&r, 100, 1, A, 4);
	add(&r, 101, 1, A, 1);
	add(&r, 101, 1, D, 1);
	r.at[4].end_time = r.at[5].end_time;
	add(&r, 102, 1, D, 1);
	lane = run(&r, NRP_RATELIMIT_SPIN, true);
	assert_true(lane.fitted);
	check_admitted(&lane, "AAAAADD");
	check_certainty(&lane, "----RR");
	assert_in_range(lane.admitted_min, 4, 5);
	assert_in_range(lane.admitted_max, 6, 7);
	nrp_ratelimit_lane_clear(&lane);
	/* Apart in time nothing is open. */
	r.at[4].end_time = r.at[4].time;
	lane = run(&r, NRP_RATELIMIT_SPIN, true);
	assert_int_equal(lane.races, 0);
	assert_int_equal(lane.admitted_min, 5);
	assert_int_equal(lane.admitted_max, 5);
	nrp_ratelimit_lane_clear(&lane);
}

/*
 * A full window expires with two attempts in flight. With spin both reset or one finds the other's
 * window: both pass. With trylock the loser may read the old count and be refused.
 */
static void test_race_at_expiry(void **state)
{
	static const struct {
		enum nrp_ratelimit_variant variant;
		uint64_t races;
	} cases[] = { { NRP_RATELIMIT_SPIN, 0 }, { NRP_RATELIMIT_TRYLOCK_STRETCH, 2 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct record r = { 0 };
		struct nrp_ratelimit_lane lane;

		add(&r, 100, 1, A, 5);
		add(&r, 105, 1, D, 1);
		add(&r, 111, 1, A, 2);
		r.at[6].end_time = r.at[7].end_time;
		lane = run(&r, cases[i].variant, true);
		assert_true(lane.fitted);
		check_admitted(&lane, "AAAAADAA");
		assert_int_equal(lane.races, cases[i].races);
		assert_int_equal(lane.admitted_min, 7 - cases[i].races);
		assert_int_equal(lane.admitted_max, 7);
		nrp_ratelimit_lane_clear(&lane);
	}
}

/*
 * Events were lost at tick 105. Stretched: attempts stay open until the node was idle for more than
 * I+1 ticks (112 is 6 after 106; 130 is 18 after 112). Grid, windows ..109, 110..119: the attempt
 * at 112 is clean.
 */
static void test_loss(void **state)
{
	static const struct {
		enum nrp_ratelimit_variant variant;
		const char *certainty;
	} cases[] = { { NRP_RATELIMIT_SPIN, "-----LL-" }, { NRP_RATELIMIT_SPIN_GRID, "-----L--" } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct record r = { 0 };
		struct nrp_ratelimit_lane lane;

		add(&r, 100, 1, A, 5);
		add(&r, 106, 1, D, 1);
		add(&r, 112, 1, A, 1);
		add(&r, 130, 1, A, 1);
		r.loss = (struct nrp_loss_span){ 105 * TICK_NS, 105 * TICK_NS };
		r.all.loss = &r.loss;
		r.all.nr_losses = 1;
		lane = run(&r, cases[i].variant, true);
		assert_true(lane.fitted);
		assert_false(lane.no_denial_possible);
		check_certainty(&lane, cases[i].certainty);
		nrp_ratelimit_lane_clear(&lane);
	}
}

/* Few attempts, but some may be missing: nothing follows from the load of the windows. */
static void test_loss_forbids_certainty(void **state)
{
	struct record r = { 0 };
	struct nrp_ratelimit_lane lane;

	(void)state;
	add(&r, 100, 1, A, 2);
	r.loss = (struct nrp_loss_span){ 0, UINT64_MAX };
	r.all.loss = &r.loss;
	r.all.nr_losses = 1;
	lane = run(&r, NRP_RATELIMIT_SPIN, true);
	assert_false(lane.no_denial_possible);
	check_certainty(&lane, "LL");
	assert_int_equal(lane.admitted_min, 0);
	nrp_ratelimit_lane_clear(&lane);
}

/*
 * At most 4 pages in 22 ticks: only a window that was used up before the capture refuses, at most
 * to 110 (stretched) or 109 (grid). The attempt of tick 110 tells the two apart.
 */
static void test_light_load(void **state)
{
	static const struct {
		enum nrp_ratelimit_variant variant;
		const char *certainty;
	} cases[] = { { NRP_RATELIMIT_SPIN, "SS-" }, { NRP_RATELIMIT_TRYLOCK, "S--" } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct record r = { 0 };
		struct nrp_ratelimit_lane lane;

		add(&r, 100, 1, U, 1);
		add(&r, 110, 1, U, 1);
		add(&r, 111, 1, U, 1);
		lane = run(&r, cases[i].variant, false);
		assert_true(lane.no_denial_possible);
		check_admitted(&lane, "AAA");
		check_certainty(&lane, cases[i].certainty);
		assert_int_equal(lane.admitted_min, lane.admitted - lane.ambiguous);
		assert_int_equal(lane.admitted_max, 3);
		nrp_ratelimit_lane_clear(&lane);
	}
}

static void fit(const struct record *r, enum nrp_ratelimit_variant variant, uint64_t min,
		uint64_t max)
{
	struct nrp_ratelimit_params p = params(variant);
	struct nrp_ratelimit_start start = nrp_ratelimit_start_at(&p, 0);
	uint64_t low, high;
	bool refused;

	assert_int_equal(nrp_ratelimit_fit_quota(&r->all, &p, &start, &low, &high, &refused, NULL),
			 0);
	assert_true(refused);
	assert_int_equal(low, min);
	assert_int_equal(high, max);
}

/* Base pages: admitted at 0..7 charged, refused at 8: R is 7, whatever the parameters say. */
static void test_quota(void **state)
{
	struct record r = { 0 };

	(void)state;
	for (uint64_t j = 100; j <= 111; j += 11) {
		add(&r, j, 1, A, 8);
		add(&r, j, 1, D, 2);
	}
	fit(&r, NRP_RATELIMIT_SPIN, 7, 7);
	/* A lost update lets one more pass: outvoted by the other windows. */
	add(&r, 122, 1, A, 9);
	add(&r, 122, 1, D, 1);
	fit(&r, NRP_RATELIMIT_SPIN, 7, 7);
}

/* Huge pages: admitted at 0, 512, 1024, refused at 1536: R is 1024..1535. A base page at 1280
 * narrows it. */
static void test_quota_of_huge_pages(void **state)
{
	struct record r = { 0 };

	(void)state;
	for (uint64_t j = 100; j <= 111; j += 11) {
		add(&r, j, 512, A, 3);
		add(&r, j, 512, D, 1);
	}
	fit(&r, NRP_RATELIMIT_SPIN, 1024, 1535);
	add(&r, 122, 512, A, 2);
	add(&r, 122, 256, A, 1);
	add(&r, 122, 1, A, 1);
	fit(&r, NRP_RATELIMIT_SPIN, 1280, 1535);
}

/* The first window may have begun before the capture: it counts only if nothing else was refused.
 */
static void test_quota_first_window(void **state)
{
	struct record r = { 0 };

	(void)state;
	add(&r, 100, 1, A, 2);
	add(&r, 100, 1, D, 1);
	fit(&r, NRP_RATELIMIT_SPIN, 1, 1);
	add(&r, 111, 1, A, 8);
	add(&r, 111, 1, D, 1);
	fit(&r, NRP_RATELIMIT_SPIN, 7, 7);
}

/* Without a refusal there is nothing to fit. */
static void test_quota_without_refusal(void **state)
{
	struct nrp_ratelimit_params p = params(NRP_RATELIMIT_SPIN);
	struct nrp_ratelimit_start start = nrp_ratelimit_start_at(&p, 0);
	struct record r = { 0 };
	uint64_t low, high;
	bool refused = true;

	(void)state;
	add(&r, 100, 1, A, 50);
	assert_int_equal(nrp_ratelimit_fit_quota(&r.all, &p, &start, &low, &high, &refused, NULL),
			 0);
	assert_false(refused);
}

/* Ticks and nodes: 3 pages on node 0 within 3 ticks, 5 on node 1 within one; 6 of node 0 in all. */
static void test_max_in_window(void **state)
{
	struct record r = { 0 };
	uint64_t pages;

	(void)state;
	add_to(&r, 0, 100, 1, A);
	add_to(&r, 1, 100, 5, A);
	add_to(&r, 0, 102, 2, A);
	add_to(&r, 0, 103, 3, A);
	assert_int_equal(nrp_attempts_max_in_window(&r.all, 1, &pages, NULL), 0);
	assert_int_equal(pages, 5);
	assert_int_equal(nrp_attempts_max_in_window(&r.all, 2, &pages, NULL), 0);
	assert_int_equal(pages, 5);
	assert_int_equal(nrp_attempts_max_in_window(&r.all, 4, &pages, NULL), 0);
	assert_int_equal(pages, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spent_first_window),
		cmocka_unit_test(test_unknown_first_window),
		cmocka_unit_test(test_grid_phase),
		cmocka_unit_test(test_not_the_host),
		cmocka_unit_test(test_unknown_charge),
		cmocka_unit_test(test_race_at_quota),
		cmocka_unit_test(test_race_at_expiry),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_loss_forbids_certainty),
		cmocka_unit_test(test_light_load),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_quota_of_huge_pages),
		cmocka_unit_test(test_quota_first_window),
		cmocka_unit_test(test_quota_without_refusal),
		cmocka_unit_test(test_max_in_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
