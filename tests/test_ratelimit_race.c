/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.ratelimit, overlapping attempts: the complete outcome sets of the table in spec
 * migrate.md 1.6, typed in row by row, and properties of every outcome on random cases. The
 * same sets come out of tests/tools/race_oracle.py.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/policies/migrate_ratelimit.h"
#include "tests/test_random.h"

#define MAX_OUTCOMES 2048 /* more than 8 answers x 4 reset counts x 4 ends x 16 counts */

/* ---- the table ---------------------------------------------------------------------- */

/* Part of a row: these answers with each of these reset counts and each of these final counts. */
struct part {
	uint8_t admitted;  /* bit i: call i */
	uint8_t resets[4]; /* ends with NONE */
	uint64_t pages[5]; /* ends with 0 */
};
#define NONE 0xff
#define RESETS(...)                                                                                \
	{                                                                                          \
		__VA_ARGS__, NONE                                                                  \
	}
#define PAGES(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

struct row {
	uint64_t end, pages; /* before */
	size_t nr_calls;
	uint64_t jiffies[3];
	uint64_t end_after;
	struct part parts[12]; /* ends with an empty pages list */
};

static const uint64_t one_page[] = { 1, 1, 1 };

static bool part_has(const struct part *part, const struct nrp_ratelimit_outcome *outcome)
{
	bool resets = false, pages = false;

	for (size_t i = 0; part->resets[i] != NONE; i++)
		resets |= part->resets[i] == outcome->resets;
	for (size_t i = 0; part->pages[i]; i++)
		pages |= part->pages[i] == outcome->window.pages;
	return part->admitted == outcome->admitted && resets && pages;
}

static int part_size(const struct part *part)
{
	int resets = 0, pages = 0;

	while (part->resets[resets] != NONE)
		resets++;
	while (part->pages[pages])
		pages++;
	return resets * pages;
}

/* The outcomes are distinct, so: all are in the row, and they are as many as the row has. */
static void check_row(enum nrp_ratelimit_variant variant, const struct row *row)
{
	const struct nrp_ratelimit_params params = { .variant = variant,
						     .quota = 4,
						     .interval = 10 };
	const struct nrp_ratelimit_window window = { .end = row->end, .pages = row->pages };
	struct nrp_ratelimit_outcome outcomes[MAX_OUTCOMES];
	int n = nrp_ratelimit_race(&params, window, row->jiffies, one_page, row->nr_calls, outcomes,
				   MAX_OUTCOMES);
	int expected = 0;

	assert_in_range(n, 1, MAX_OUTCOMES);
	for (int i = 0; i < n; i++) {
		int parts = 0;

		assert_int_equal(outcomes[i].window.end, row->end_after);
		for (const struct part *part = row->parts; part->pages[0]; part++)
			parts += part_has(part, &outcomes[i]);
		assert_int_equal(parts, 1);
	}
	for (const struct part *part = row->parts; part->pages[0]; part++)
		expected += part_size(part);
	assert_int_equal(n, expected);
}

/*
 * At one and the same tick the two kinds of window differ only in the new end, so the mixed
 * variants share the sets of the one with the same lock.
 */
static void check_rows(const struct row *spin, uint64_t spin_grid_end, const struct row *trylock,
		       uint64_t trylock_stretch_end)
{
	struct row mixed = *spin;

	check_row(NRP_RATELIMIT_SPIN, spin);
	mixed.end_after = spin_grid_end;
	check_row(NRP_RATELIMIT_SPIN_GRID, &mixed);

	check_row(NRP_RATELIMIT_TRYLOCK, trylock);
	mixed = *trylock;
	mixed.end_after = trylock_stretch_end;
	check_row(NRP_RATELIMIT_TRYLOCK_STRETCH, &mixed);
}

static void two_racers_after_an_over_quota_window(void **state)
{
	static const struct row spin = {
		.end = 10,
		.pages = 9,
		.nr_calls = 2,
		.jiffies = { 11, 11 },
		.end_after = 21,
		.parts = { { 3, RESETS(1, 2), PAGES(1, 2) } },
	};
	static const struct row trylock = {
		.end = 10,
		.pages = 9,
		.nr_calls = 2,
		.jiffies = { 11, 11 },
		.end_after = 20,
		.parts = { { 3, RESETS(1, 2), PAGES(1, 2) },
			   { 1, RESETS(1), PAGES(1) },
			   { 2, RESETS(1), PAGES(1) } },
	};

	(void)state;
	check_rows(&spin, 20, &trylock, 21);
}

static void three_racers_after_an_over_quota_window(void **state)
{
	static const struct row spin = {
		.end = 10,
		.pages = 9,
		.nr_calls = 3,
		.jiffies = { 11, 11, 11 },
		.end_after = 21,
		.parts = { { 7, RESETS(1, 2, 3), PAGES(1, 2, 3) } },
	};
	static const struct row trylock = {
		.end = 10,
		.pages = 9,
		.nr_calls = 3,
		.jiffies = { 11, 11, 11 },
		.end_after = 20,
		.parts = { { 7, RESETS(1, 2, 3), PAGES(1, 2, 3) },
			   { 3, RESETS(1, 2), PAGES(1, 2) },
			   { 5, RESETS(1, 2), PAGES(1, 2) },
			   { 6, RESETS(1, 2), PAGES(1, 2) },
			   { 1, RESETS(1), PAGES(1) },
			   { 2, RESETS(1), PAGES(1) },
			   { 4, RESETS(1), PAGES(1) } },
	};

	(void)state;
	check_rows(&spin, 20, &trylock, 21);
}

static void two_racers_after_an_under_quota_window(void **state)
{
	static const struct row spin = {
		.end = 10,
		.pages = 3,
		.nr_calls = 2,
		.jiffies = { 11, 11 },
		.end_after = 21,
		.parts = { { 3, RESETS(1, 2), PAGES(1, 2) } },
	};
	static const struct row trylock = {
		.end = 10,
		.pages = 3,
		.nr_calls = 2,
		.jiffies = { 11, 11 },
		.end_after = 20,
		.parts = { { 3, RESETS(1), PAGES(1, 2, 4, 5) }, { 3, RESETS(2), PAGES(1, 2) } },
	};

	(void)state;
	check_rows(&spin, 20, &trylock, 21);
}

/* CPU 0 is still inside the old window (tick 10), CPU 1 opens a new one (tick 11). */
static void check_straddler(uint64_t pages, const struct part *parts, size_t nr_parts)
{
	struct row spin = {
		.end = 10,
		.pages = pages,
		.nr_calls = 2,
		.jiffies = { 10, 11 },
		.end_after = 21,
	};
	struct row trylock;

	for (size_t i = 0; i < nr_parts; i++)
		spin.parts[i] = parts[i];
	trylock = spin;
	trylock.end_after = 20;
	check_rows(&spin, 20, &trylock, 21);
}

static void straddler_can_restore_the_old_count(void **state)
{
	static const struct part parts[] = { { 3, RESETS(1), PAGES(1, 2, 4, 5) } };

	(void)state;
	check_straddler(3, parts, 1);
}

static void straddler_can_make_the_resetting_call_fail(void **state)
{
	static const struct part parts[] = {
		{ 3, RESETS(1), PAGES(1, 2, 5, 6) },
		{ 1, RESETS(1), PAGES(5) },
	};

	(void)state;
	check_straddler(4, parts, 2);
}

static void straddler_over_quota_is_denied_or_comes_after_the_reset(void **state)
{
	static const struct part parts[] = {
		{ 3, RESETS(1), PAGES(1, 2) },
		{ 2, RESETS(1), PAGES(1) },
	};

	(void)state;
	check_straddler(9, parts, 2);
}

static void two_calls_inside_a_window_can_both_take_the_last_place(void **state)
{
	static const struct row row = {
		.end = 20,
		.pages = 4,
		.nr_calls = 2,
		.jiffies = { 15, 15 },
		.end_after = 20,
		.parts = { { 3, RESETS(0), PAGES(5, 6) },
			   { 1, RESETS(0), PAGES(5) },
			   { 2, RESETS(0), PAGES(5) } },
	};

	(void)state;
	check_rows(&row, 20, &row, 20);
}

/* ---- by hand: what the table does not show ------------------------------------------ */

static bool contains(const struct nrp_ratelimit_outcome *outcomes, int n, uint8_t admitted,
		     uint8_t resets, uint64_t end, uint64_t pages)
{
	for (int i = 0; i < n; i++)
		if (outcomes[i].admitted == admitted && outcomes[i].resets == resets &&
		    outcomes[i].window.end == end && outcomes[i].window.pages == pages)
			return true;
	return false;
}

/*
 * Calls of different ticks, the later one first: CPU 1 (tick 25) opens a window, then CPU 0 (tick
 * 11), which tested before that, opens another. Only spin-grid, which reads the end under the lock,
 * keeps the later end.
 */
static void delayed_racer_sets_its_own_end(void **state)
{
	static const uint64_t jiffies[] = { 11, 25 };
	static const struct {
		enum nrp_ratelimit_variant variant;
		int nr_ends;
		uint64_t ends[2];
	} cases[] = {
		{ NRP_RATELIMIT_SPIN, 2, { 21, 35 } },
		{ NRP_RATELIMIT_TRYLOCK, 2, { 20, 30 } },
		{ NRP_RATELIMIT_SPIN_GRID, 1, { 30 } },
		{ NRP_RATELIMIT_TRYLOCK_STRETCH, 2, { 21, 35 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct nrp_ratelimit_params params = { .variant = cases[i].variant,
							     .quota = 4,
							     .interval = 10 };
		const struct nrp_ratelimit_window window = { .end = 10, .pages = 0 };
		struct nrp_ratelimit_outcome outcomes[MAX_OUTCOMES];
		int n = nrp_ratelimit_race(&params, window, jiffies, one_page, 2, outcomes,
					   MAX_OUTCOMES);

		assert_in_range(n, 1, MAX_OUTCOMES);
		for (int k = 0; k < cases[i].nr_ends; k++)
			assert_true(contains(outcomes, n, 3, 2, cases[i].ends[k], 2));
		for (int k = 0; k < n; k++)
			assert_true(outcomes[k].window.end == cases[i].ends[0] ||
				    outcomes[k].window.end == cases[i].ends[cases[i].nr_ends - 1]);
	}
}

/* R = 4, one huge page of 8: it is charged between the other racer's reset and its check. */
static void racer_can_be_denied_when_the_others_exceed_the_quota(void **state)
{
	static const uint64_t jiffies[] = { 11, 11 };
	static const uint64_t pages[] = { 8, 1 };
	const struct nrp_ratelimit_params params = { .variant = NRP_RATELIMIT_SPIN,
						     .quota = 4,
						     .interval = 10 };
	const struct nrp_ratelimit_window window = { .end = 10, .pages = 9 };
	struct nrp_ratelimit_outcome outcomes[MAX_OUTCOMES];
	int n;

	(void)state;
	n = nrp_ratelimit_race(&params, window, jiffies, pages, 2, outcomes, MAX_OUTCOMES);
	assert_in_range(n, 1, MAX_OUTCOMES);
	assert_true(contains(outcomes, n, 1, 2, 21, 8));
	assert_true(contains(outcomes, n, 3, 2, 21, 1)); /* 8, forgotten, 1 */
	assert_true(contains(outcomes, n, 3, 2, 21, 9));
}

static void without_limit_there_is_one_outcome(void **state)
{
	static const uint64_t jiffies[] = { 11, 12, 13 };
	const struct nrp_ratelimit_params params = { .variant = NRP_RATELIMIT_NONE,
						     .quota = 4,
						     .interval = 10 };
	const struct nrp_ratelimit_window window = { .end = 10, .pages = 9 };
	struct nrp_ratelimit_outcome outcome;

	(void)state;
	assert_int_equal(nrp_ratelimit_race(&params, window, jiffies, one_page, 3, &outcome, 1), 1);
	assert_true(contains(&outcome, 1, 7, 0, 10, 9));
}

static void no_calls_change_nothing(void **state)
{
	const struct nrp_ratelimit_params params = { .variant = NRP_RATELIMIT_TRYLOCK,
						     .quota = 4,
						     .interval = 10 };
	const struct nrp_ratelimit_window window = { .end = 10, .pages = 9 };
	struct nrp_ratelimit_outcome outcome;

	(void)state;
	assert_int_equal(nrp_ratelimit_race(&params, window, NULL, NULL, 0, &outcome, 1), 1);
	assert_true(contains(&outcome, 1, 0, 0, 10, 9));
}

static void bad_arguments_are_refused_and_leave_the_output_alone(void **state)
{
	static const uint64_t jiffies[] = { 11, 11, 11, 11 };
	static const uint64_t pages[] = { 1, 1, 1, 1 };
	struct nrp_ratelimit_params params = { .variant = NRP_RATELIMIT_SPIN,
					       .quota = 4,
					       .interval = 10 };
	const struct nrp_ratelimit_window window = { .end = 10, .pages = 9 };
	struct nrp_ratelimit_outcome outcome = { .admitted = 0x5a };

	(void)state;
	assert_int_equal(nrp_ratelimit_race(&params, window, jiffies, pages, 4, &outcome, 1),
			 -EINVAL);
	params.interval = 0;
	assert_int_equal(nrp_ratelimit_race(&params, window, jiffies, pages, 2, &outcome, 1),
			 -EINVAL);
	params.interval = 10;
	params.variant = NRP_NR_RATELIMIT_VARIANTS;
	assert_int_equal(nrp_ratelimit_race(&params, window, jiffies, pages, 2, &outcome, 1),
			 -EINVAL);
	assert_int_equal(outcome.admitted, 0x5a);
}

static void small_output_gets_part_of_the_outcomes_and_their_number(void **state)
{
	static const uint64_t jiffies[] = { 11, 11 };
	const struct nrp_ratelimit_params params = { .variant = NRP_RATELIMIT_TRYLOCK,
						     .quota = 4,
						     .interval = 10 };
	const struct nrp_ratelimit_window window = { .end = 10, .pages = 9 };
	struct nrp_ratelimit_outcome outcomes[3] = { { 0 }, { 0 }, { .admitted = 0x5a } };

	(void)state;
	assert_int_equal(nrp_ratelimit_race(&params, window, jiffies, one_page, 2, outcomes, 2), 6);
	assert_int_equal(outcomes[0].window.end, 20);
	assert_int_equal(outcomes[1].window.end, 20);
	assert_int_equal(outcomes[2].admitted, 0x5a);
	assert_int_equal(nrp_ratelimit_race(&params, window, jiffies, one_page, 2, NULL, 0), 6);
}

/* ---- properties --------------------------------------------------------------------- */

#define CASES 400

struct race_case {
	struct nrp_ratelimit_params params;
	struct nrp_ratelimit_window window;
	size_t n;
	uint64_t jiffies[3], pages[3];
	struct nrp_ratelimit_outcome outcomes[MAX_OUTCOMES];
	int nr_outcomes;
};

static struct race_case random_case(uint64_t *rng)
{
	struct race_case c = {
		.params = { .variant = (enum nrp_ratelimit_variant)random_range(rng, 0, 3),
			    .quota = random_range(rng, 0, 8),
			    .interval = random_range(rng, 1, 20) },
		.window = { .end = random_next(rng) },
		.n = random_range(rng, 1, 3),
	};
	bool same_tick = random_range(rng, 0, 1);

	if (random_range(rng, 0, 3) == 0)
		c.window.end = UINT64_MAX - random_range(rng, 0, 5);
	c.window.pages = random_range(rng, 0, 2 * c.params.quota + 1);
	for (size_t i = 0; i < c.n; i++) {
		c.jiffies[i] = c.window.end - 2 + random_range(rng, 0, 3 + 2 * c.params.interval);
		if (same_tick)
			c.jiffies[i] = c.jiffies[0];
		c.pages[i] = random_range(rng, 1, 4);
	}
	c.nr_outcomes = nrp_ratelimit_race(&c.params, c.window, c.jiffies, c.pages, c.n, c.outcomes,
					   MAX_OUTCOMES);
	assert_in_range(c.nr_outcomes, 1, MAX_OUTCOMES);
	return c;
}

static bool is_late(const struct race_case *c, uint64_t end, size_t call)
{
	return (int64_t)(end - c->jiffies[call]) < 0;
}

static void check_serial(const struct race_case *c, const size_t *order)
{
	struct nrp_ratelimit_window window = c->window;
	uint8_t admitted = 0, resets = 0;

	for (size_t k = 0; k < c->n; k++) {
		size_t i = order[k];

		resets = (uint8_t)(resets + is_late(c, window.end, i));
		if (nrp_ratelimit_admit(&c->params, &window, c->jiffies[i], c->pages[i]))
			admitted = (uint8_t)(admitted | 1u << i);
	}
	assert_true(
		contains(c->outcomes, c->nr_outcomes, admitted, resets, window.end, window.pages));
}

static void every_serial_order_is_a_possible_outcome(void **state)
{
	static const size_t orders[3][6][3] = {
		{ { 0 } },
		{ { 0, 1 }, { 1, 0 } },
		{ { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } },
	};
	static const size_t nr_orders[3] = { 1, 2, 6 };
	uint64_t rng = random_seed(__func__);

	(void)state;
	for (int i = 0; i < CASES; i++) {
		struct race_case c = random_case(&rng);

		for (size_t k = 0; k < nr_orders[c.n - 1]; k++)
			check_serial(&c, orders[c.n - 1][k]);
	}
}

/* Is @end what some call that found the window over would set? */
static bool is_an_end(const struct race_case *c, uint64_t end)
{
	for (size_t i = 0; i < c->n; i++) {
		uint64_t grid = c->window.end;

		if (!is_late(c, c->window.end, i))
			continue;
		while ((int64_t)(grid - c->jiffies[i]) < 0)
			grid += c->params.interval;
		if (end == (nrp_ratelimit_on_grid(c->params.variant)
				    ? grid
				    : c->jiffies[i] + c->params.interval))
			return true;
	}
	return false;
}

static uint64_t pages_of(const struct race_case *c, uint8_t calls)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += calls & 1u << i ? c->pages[i] : 0;
	return sum;
}

/*
 * "Bounds per window" of spec 1.6, with C calls in flight. An admitted call saw at most R, so that
 * the count ends at most C calls' pages above R. (The section says R + H; its own last row,
 * where two calls share the last place, has R + 2 with H = 1.)
 */
static void check_bounds(const struct race_case *c, const struct nrp_ratelimit_outcome *o)
{
	const uint8_t everybody = (uint8_t)((1u << c->n) - 1);
	int nr_late = 0;

	for (size_t i = 0; i < c->n; i++)
		nr_late += is_late(c, c->window.end, i);

	/* Resets: 1..k for k racers, and somebody passes in a new window. */
	assert_int_equal(o->admitted & ~everybody, 0);
	assert_true(o->resets <= nr_late);
	assert_int_equal(o->resets > 0, nr_late > 0);
	if (o->resets) {
		assert_int_not_equal(o->admitted, 0);
		assert_true(is_an_end(c, o->window.end));
	} else {
		assert_int_equal(o->window.end, c->window.end);
	}

	if (o->admitted)
		assert_true(o->window.pages <= c->params.quota + pages_of(c, o->admitted));
	else
		assert_int_equal(o->window.pages, c->window.pages);
	/* Inside a window nothing is forgotten, at most adds get lost. */
	if (!o->resets)
		assert_true(o->window.pages >= c->window.pages &&
			    o->window.pages <= c->window.pages + pages_of(c, o->admitted));
}

/*
 * A spin racer is never denied at expiry, as long as the others together stay within the quota
 * and none of them straddles the boundary.
 */
static void check_spin_racers(const struct race_case *c, const struct nrp_ratelimit_outcome *o)
{
	const uint8_t everybody = (uint8_t)((1u << c->n) - 1);

	if (c->params.variant != NRP_RATELIMIT_SPIN && c->params.variant != NRP_RATELIMIT_SPIN_GRID)
		return;
	for (size_t i = 0; i < c->n; i++)
		if (!is_late(c, c->window.end, i) ||
		    pages_of(c, everybody) - c->pages[i] > c->params.quota)
			return;
	assert_int_equal(o->admitted, everybody);
	assert_true(o->window.pages <= pages_of(c, everybody));
}

static void every_outcome_is_within_the_bounds(void **state)
{
	uint64_t rng = random_seed(__func__);

	(void)state;
	for (int i = 0; i < CASES; i++) {
		struct race_case c = random_case(&rng);

		for (int k = 0; k < c.nr_outcomes; k++) {
			check_bounds(&c, &c.outcomes[k]);
			check_spin_racers(&c, &c.outcomes[k]);
		}
	}
}

static void outcomes_are_distinct(void **state)
{
	uint64_t rng = random_seed(__func__);

	(void)state;
	for (int i = 0; i < CASES; i++) {
		struct race_case c = random_case(&rng);

		for (int k = 1; k < c.nr_outcomes; k++) {
			const struct nrp_ratelimit_outcome *o = &c.outcomes[k];

			assert_false(contains(c.outcomes, k, o->admitted, o->resets, o->window.end,
					      o->window.pages));
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_racers_after_an_over_quota_window),
		cmocka_unit_test(three_racers_after_an_over_quota_window),
		cmocka_unit_test(two_racers_after_an_under_quota_window),
		cmocka_unit_test(straddler_can_restore_the_old_count),
		cmocka_unit_test(straddler_can_make_the_resetting_call_fail),
		cmocka_unit_test(straddler_over_quota_is_denied_or_comes_after_the_reset),
		cmocka_unit_test(two_calls_inside_a_window_can_both_take_the_last_place),
		cmocka_unit_test(delayed_racer_sets_its_own_end),
		cmocka_unit_test(racer_can_be_denied_when_the_others_exceed_the_quota),
		cmocka_unit_test(without_limit_there_is_one_outcome),
		cmocka_unit_test(no_calls_change_nothing),
		cmocka_unit_test(bad_arguments_are_refused_and_leave_the_output_alone),
		cmocka_unit_test(small_output_gets_part_of_the_outcomes_and_their_number),
		cmocka_unit_test(every_serial_order_is_a_possible_outcome),
		cmocka_unit_test(every_outcome_is_within_the_bounds),
		cmocka_unit_test(outcomes_are_distinct),
	};

	return cmocka_run_group_tests_name("ratelimit_race", tests, NULL, NULL);
}
