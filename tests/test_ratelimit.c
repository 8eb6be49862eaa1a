/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.ratelimit, one attempt at a time: the vectors R1..R10 of spec migrate.md 1.9, typed in
 * from the table, and the properties of 1.3 on random streams. Serially the kind of lock does not
 * matter, so spin-grid must equal trylock and trylock-stretch must equal spin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/policies/migrate_ratelimit.h"
#include "tests/test_random.h"

#define HUGE_PAGES 512 /* H */

static const enum nrp_ratelimit_variant stretched[] = { NRP_RATELIMIT_SPIN,
							NRP_RATELIMIT_TRYLOCK_STRETCH };
static const enum nrp_ratelimit_variant on_grid[] = { NRP_RATELIMIT_TRYLOCK,
						      NRP_RATELIMIT_SPIN_GRID };

/* ---- vectors ------------------------------------------------------------------------ */

/* @count attempts of @pages each: first @admitted, then @denied; then the window is {end, nr}. */
struct burst {
	uint64_t jiffies;
	unsigned int count;
	uint64_t pages;
	unsigned int admitted, denied;
	struct nrp_ratelimit_window after;
};

struct host {
	uint64_t interval, quota;
	struct nrp_ratelimit_window start;
};

static const struct host usual = { .interval = 10, .quota = 4 };

static void check_bursts(enum nrp_ratelimit_variant variant, const struct host *host,
			 const struct burst *bursts, size_t n)
{
	const struct nrp_ratelimit_params params = { .variant = variant,
						     .quota = host->quota,
						     .interval = host->interval };
	struct nrp_ratelimit_window window = host->start;

	for (size_t i = 0; i < n; i++) {
		const struct burst *b = &bursts[i];

		assert_int_equal(b->admitted + b->denied, b->count);
		for (unsigned int k = 0; k < b->count; k++)
			assert_int_equal(
				nrp_ratelimit_admit(&params, &window, b->jiffies, b->pages),
				k < b->admitted);
		assert_int_equal(window.end, b->after.end);
		assert_int_equal(window.pages, b->after.pages);
	}
}

/* No limit: the same attempts all pass and the window is not touched. */
static void check_none(const struct host *host, const struct burst *bursts, size_t n)
{
	const struct nrp_ratelimit_params params = { .variant = NRP_RATELIMIT_NONE,
						     .quota = host->quota,
						     .interval = host->interval };
	struct nrp_ratelimit_window window = host->start;

	for (size_t i = 0; i < n; i++)
		for (unsigned int k = 0; k < bursts[i].count; k++)
			assert_true(nrp_ratelimit_admit(&params, &window, bursts[i].jiffies,
							bursts[i].pages));
	assert_int_equal(window.end, host->start.end);
	assert_int_equal(window.pages, host->start.pages);
}

static void check_columns(const struct host *host, const struct burst *spin, size_t nr_spin,
			  const struct burst *trylock, size_t nr_trylock)
{
	for (size_t i = 0; i < 2; i++) {
		check_bursts(stretched[i], host, spin, nr_spin);
		check_bursts(on_grid[i], host, trylock, nr_trylock);
	}
	check_none(host, spin, nr_spin);
}

#define CHECK(host, spin, trylock)                                                                 \
	check_columns((host), (spin), sizeof(spin) / sizeof((spin)[0]), (trylock),                 \
		      sizeof(trylock) / sizeof((trylock)[0]))

/*
 * The table names W and nr at some points; the others are hand-made from "nr += n when admitted"
 * and "a new window starts at 0".
 */
static void r1_window_is_over_strictly_after_its_end(void **state)
{
	static const struct host host = { .interval = 10, .quota = 4, .start = { 10, 0 } };
	static const struct burst spin[] = {
		{ 10, 3, 1, 3, 0, { 10, 3 } },
		{ 10, 3, 1, 2, 1, { 10, 5 } },
		{ 11, 1, 1, 1, 0, { 21, 1 } },
	};
	static const struct burst trylock[] = {
		{ 10, 3, 1, 3, 0, { 10, 3 } },
		{ 10, 3, 1, 2, 1, { 10, 5 } },
		{ 11, 1, 1, 1, 0, { 20, 1 } },
	};

	(void)state;
	CHECK(&host, spin, trylock);
}

static void r2_one_more_than_the_quota_passes(void **state)
{
	static const struct burst spin[] = { { 1, 7, 1, 5, 2, { 11, 5 } } };
	static const struct burst trylock[] = { { 1, 7, 1, 5, 2, { 10, 5 } } };

	(void)state;
	CHECK(&usual, spin, trylock);
}

/* R3: two attempts at every tick 1..35. */
struct saturation {
	size_t nr_windows;
	uint64_t reset_at[4];
	unsigned int admitted_in[4];
	unsigned int admitted, denied;
};

static void check_saturated(enum nrp_ratelimit_variant variant, const struct saturation *want)
{
	const struct nrp_ratelimit_params params = { .variant = variant,
						     .quota = 4,
						     .interval = 10 };
	struct nrp_ratelimit_window window = { 0, 0 };
	unsigned int admitted_in[4] = { 0 };
	unsigned int admitted = 0, denied = 0;
	size_t nr_windows = 0;

	for (uint64_t j = 1; j <= 35; j++) {
		for (int k = 0; k < 2; k++) {
			uint64_t end = window.end;
			bool ok = nrp_ratelimit_admit(&params, &window, j, 1);

			if (window.end != end) {
				assert_true(nr_windows < want->nr_windows);
				assert_int_equal(j, want->reset_at[nr_windows]);
				nr_windows++;
			}
			admitted_in[nr_windows - 1] += ok;
			admitted += ok;
			denied += !ok;
		}
	}
	assert_int_equal(nr_windows, want->nr_windows);
	assert_memory_equal(admitted_in, want->admitted_in, sizeof(admitted_in));
	assert_int_equal(admitted, want->admitted);
	assert_int_equal(denied, want->denied);
}

static void r3_stretched_window_is_one_tick_longer(void **state)
{
	static const struct saturation spin = { 4, { 1, 12, 23, 34 }, { 5, 5, 5, 4 }, 19, 51 };
	static const struct saturation trylock = { 4, { 1, 11, 21, 31 }, { 5, 5, 5, 5 }, 20, 50 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		check_saturated(stretched[i], &spin);
		check_saturated(on_grid[i], &trylock);
	}
}

static void r3_without_limit_all_70_pass(void **state)
{
	const struct nrp_ratelimit_params params = { .variant = NRP_RATELIMIT_NONE,
						     .quota = 4,
						     .interval = 10 };
	struct nrp_ratelimit_window window = { 0, 0 };
	unsigned int admitted = 0;

	(void)state;
	for (uint64_t j = 1; j <= 35; j++)
		for (int k = 0; k < 2; k++)
			admitted += nrp_ratelimit_admit(&params, &window, j, 1);
	assert_int_equal(admitted, 70);
}

static void r4_grid_denies_what_a_stretched_window_admits(void **state)
{
	static const struct burst spin[] = {
		{ 1, 5, 1, 5, 0, { 11, 5 } },
		{ 38, 6, 1, 5, 1, { 48, 5 } },
		{ 41, 6, 1, 0, 6, { 48, 5 } },
		{ 49, 1, 1, 1, 0, { 59, 1 } },
	};
	static const struct burst trylock[] = {
		{ 1, 5, 1, 5, 0, { 10, 5 } },
		{ 38, 6, 1, 5, 1, { 40, 5 } },
		{ 41, 6, 1, 5, 1, { 50, 5 } },
		{ 49, 1, 1, 0, 1, { 50, 5 } },
	};

	(void)state;
	CHECK(&usual, spin, trylock);
}

static void r5_huge_pages_overshoot_by_one_huge_page(void **state)
{
	static const struct host host = { .interval = 25, .quota = 32768, .start = { 4, 0 } };
	static const struct burst spin[] = {
		{ 5, 66, HUGE_PAGES, 65, 1, { 30, 33280 } },
		{ 5, 1, 1, 0, 1, { 30, 33280 } },
	};
	static const struct burst trylock[] = {
		{ 5, 66, HUGE_PAGES, 65, 1, { 29, 33280 } },
		{ 5, 1, 1, 0, 1, { 29, 33280 } },
	};

	(void)state;
	CHECK(&host, spin, trylock);
}

static void r6_mixed_pages_overshoot_and_the_windows_end_apart(void **state)
{
	static const struct host host = { .interval = 25, .quota = 32768, .start = { 4, 0 } };
	static const struct burst spin[] = {
		{ 5, 32768, 1, 32768, 0, { 30, 32768 } },
		{ 5, 2, HUGE_PAGES, 1, 1, { 30, 33280 } },
		{ 5, 1, 1, 0, 1, { 30, 33280 } },
		{ 30, 1, 1, 0, 1, { 30, 33280 } },
		{ 31, 1, 1, 1, 0, { 56, 1 } },
	};
	static const struct burst trylock[] = {
		{ 5, 32768, 1, 32768, 0, { 29, 32768 } },
		{ 5, 2, HUGE_PAGES, 1, 1, { 29, 33280 } },
		{ 5, 1, 1, 0, 1, { 29, 33280 } },
		{ 30, 1, 1, 1, 0, { 54, 1 } },
		{ 31, 1, 1, 1, 0, { 54, 2 } },
	};

	(void)state;
	CHECK(&host, spin, trylock);
}

static void r7_quota_of_64k_pages(void **state)
{
	static const struct host host = { .interval = 25, .quota = 2048, .start = { 4, 0 } };
	static const struct burst spin[] = {
		{ 5, 2050, 1, 2049, 1, { 30, 2049 } },
		{ 5, 1, 32, 0, 1, { 30, 2049 } },
	};
	static const struct burst trylock[] = {
		{ 5, 2050, 1, 2049, 1, { 29, 2049 } },
		{ 5, 1, 32, 0, 1, { 29, 2049 } },
	};

	(void)state;
	CHECK(&host, spin, trylock);
}

static void r8_forty_days_idle_keep_the_grid(void **state)
{
	static const struct host host = { .interval = 25, .quota = 4, .start = { 100, 0 } };
	static const struct burst spin[] = {
		{ 864000123, 1, 1, 1, 0, { 864000148, 1 } },
		{ 864000150, 1, 1, 1, 0, { 864000175, 1 } },
	};
	static const struct burst trylock[] = {
		{ 864000123, 1, 1, 1, 0, { 864000125, 1 } },
		{ 864000150, 1, 1, 1, 0, { 864000150, 1 } },
	};

	(void)state;
	CHECK(&host, spin, trylock);
}

static void r9_over_quota_window_denies_until_it_is_over(void **state)
{
	static const struct host host = { .interval = 10, .quota = 4, .start = { 10, 7 } };
	static const struct burst spin[] = {
		{ 3, 1, 1, 0, 1, { 10, 7 } },
		{ 10, 1, 1, 0, 1, { 10, 7 } },
		{ 11, 1, 1, 1, 0, { 21, 1 } },
	};
	static const struct burst trylock[] = {
		{ 3, 1, 1, 0, 1, { 10, 7 } },
		{ 10, 1, 1, 0, 1, { 10, 7 } },
		{ 11, 1, 1, 1, 0, { 20, 1 } },
	};

	(void)state;
	CHECK(&host, spin, trylock);
}

static void r10_equal_totals_have_different_victims(void **state)
{
	static const struct burst spin[] = {
		{ 1, 6, 1, 5, 1, { 11, 5 } },  { 10, 1, 1, 0, 1, { 11, 5 } },
		{ 11, 6, 1, 0, 6, { 11, 5 } }, { 12, 6, 1, 5, 1, { 22, 5 } },
		{ 21, 1, 1, 0, 1, { 22, 5 } }, { 22, 6, 1, 0, 6, { 22, 5 } },
		{ 23, 6, 1, 5, 1, { 33, 5 } },
	};
	static const struct burst trylock[] = {
		{ 1, 6, 1, 5, 1, { 10, 5 } },  { 10, 1, 1, 0, 1, { 10, 5 } },
		{ 11, 6, 1, 5, 1, { 20, 5 } }, { 12, 6, 1, 0, 6, { 20, 5 } },
		{ 21, 1, 1, 1, 0, { 30, 1 } }, { 22, 6, 1, 4, 2, { 30, 5 } },
		{ 23, 6, 1, 0, 6, { 30, 5 } },
	};
	unsigned int spin_total = 0, trylock_total = 0, attempts = 0;

	(void)state;
	CHECK(&usual, spin, trylock);
	for (size_t i = 0; i < 7; i++) {
		spin_total += spin[i].admitted;
		trylock_total += trylock[i].admitted;
		attempts += spin[i].count;
	}
	assert_int_equal(spin_total, 15);
	assert_int_equal(trylock_total, 15);
	assert_int_equal(attempts, 32);
}

/* ---- wrap of jiffies ---------------------------------------------------------------- */

static void window_survives_the_wrap_of_jiffies(void **state)
{
	/* The old end is 2^64 - 6. */
	static const struct host host = { .interval = 10,
					  .quota = 4,
					  .start = { UINT64_MAX - 5, 5 } };
	static const struct burst spin[] = {
		{ UINT64_MAX - 5, 1, 1, 0, 1, { UINT64_MAX - 5, 5 } },
		{ UINT64_MAX - 2, 1, 1, 1, 0, { 7, 1 } }, /* 2^64 - 3 + 10 */
		{ UINT64_MAX, 1, 1, 1, 0, { 7, 2 } },
		{ 0, 1, 1, 1, 0, { 7, 3 } },
		{ 7, 1, 1, 1, 0, { 7, 4 } },
		{ 8, 1, 1, 1, 0, { 18, 1 } },
	};
	static const struct burst trylock[] = {
		{ UINT64_MAX - 5, 1, 1, 0, 1, { UINT64_MAX - 5, 5 } },
		{ UINT64_MAX - 2, 1, 1, 1, 0, { 4, 1 } }, /* 2^64 - 6 + 10 */
		{ UINT64_MAX, 1, 1, 1, 0, { 4, 2 } },
		{ 0, 1, 1, 1, 0, { 4, 3 } },
		{ 4, 1, 1, 1, 0, { 4, 4 } },
		{ 5, 1, 1, 1, 0, { 14, 1 } },
	};

	(void)state;
	CHECK(&host, spin, trylock);
}

static void expiry_looks_half_the_clock_ahead(void **state)
{
	/* As time_after(): 2^63 ticks after the end is over, one more is "before". */
	static const uint64_t half = UINT64_C(1) << 63;
	static const struct host host = { .interval = 1, .quota = 4, .start = { 0, 5 } };
	const struct burst before[] = { { half + 1, 1, 1, 0, 1, { 0, 5 } } };
	const struct burst spin[] = { { half, 1, 1, 1, 0, { half + 1, 1 } } };
	const struct burst trylock[] = { { half, 1, 1, 1, 0, { half, 1 } } };

	(void)state;
	CHECK(&host, before, before);
	CHECK(&host, spin, trylock);
}

/* ---- properties of spec 1.3 --------------------------------------------------------- */

#define STREAMS 300
#define ATTEMPTS 400

enum mix { BASE_ONLY, HUGE_ONLY, MIXED, NR_MIXES };

/* Most pages one window admits, and (when something was denied) the least. */
static uint64_t most_pages(enum mix mix, uint64_t quota, uint64_t huge)
{
	switch (mix) {
	case BASE_ONLY:
		return quota + 1;
	case HUGE_ONLY:
		return huge * (quota / huge + 1);
	default:
		return quota + huge;
	}
}

static uint64_t least_pages_when_denied(enum mix mix, uint64_t quota, uint64_t huge)
{
	return mix == MIXED ? quota + 1 : most_pages(mix, quota, huge);
}

struct stream {
	struct nrp_ratelimit_params params;
	enum mix mix;
	uint64_t huge;
	uint64_t w0;       /* the window's end at the start */
	uint64_t opened;   /* tick of the attempt that opened the window */
	uint64_t admitted; /* pages, in this window */
	struct nrp_ratelimit_window window;
};

/* A window opens exactly when the old one is over, anchored now or on the grid of w0. */
static void check_window(struct stream *s, const struct nrp_ratelimit_window *before,
			 uint64_t jiffies)
{
	const uint64_t interval = s->params.interval;
	const bool late = jiffies - before->end - 1 < UINT64_C(1) << 62;

	assert_int_equal(s->window.end != before->end, late);
	if (late) {
		s->opened = jiffies;
		s->admitted = 0;
	}
	if (nrp_ratelimit_on_grid(s->params.variant)) {
		/* (W - I, W]: I ticks */
		assert_int_equal((s->window.end - s->w0) % interval, 0);
		assert_true(s->window.end - jiffies < interval);
	} else {
		/* [opened, opened + I]: I + 1 ticks */
		assert_int_equal(s->window.end, s->opened + interval);
		assert_true(jiffies - s->opened <= interval);
	}
}

static void check_attempt(struct stream *s, uint64_t jiffies, uint64_t pages)
{
	const struct nrp_ratelimit_window before = s->window;
	const bool ok = nrp_ratelimit_admit(&s->params, &s->window, jiffies, pages);

	check_window(s, &before, jiffies);

	/* Admitted ones add all their pages, denied ones nothing; a new window denies nobody. */
	assert_true(ok || s->admitted);
	s->admitted += ok ? pages : 0;
	assert_int_equal(s->window.pages, s->admitted);

	assert_true(s->admitted <= most_pages(s->mix, s->params.quota, s->huge));
	if (!ok)
		assert_true(s->admitted >=
			    least_pages_when_denied(s->mix, s->params.quota, s->huge));
}

static void check_stream(enum nrp_ratelimit_variant variant, enum mix mix, uint64_t *rng)
{
	const uint64_t w0 = random_next(rng); /* anywhere, close to the wrap included */
	struct stream s = {
		.params = { .variant = variant,
			    .quota = random_range(rng, 0, 40),
			    .interval = random_range(rng, 1, 40) },
		.mix = mix,
		.huge = random_range(rng, 2, 16),
		.w0 = w0,
		.window = { .end = w0, .pages = 0 },
	};
	const uint64_t gap = random_range(rng, 0, 2 * s.params.interval);
	uint64_t jiffies = w0 + 1;

	for (int i = 0; i < ATTEMPTS; i++) {
		const bool huge = mix == HUGE_ONLY || (mix == MIXED && random_range(rng, 0, 1));

		check_attempt(&s, jiffies, huge ? s.huge : 1);
		if (random_range(rng, 0, 7) == 0)
			jiffies += random_range(rng, 0, gap);
	}
}

static void pages_per_window_are_bounded(void **state)
{
	uint64_t rng = random_seed(__func__);

	(void)state;
	for (int i = 0; i < STREAMS; i++)
		for (int mix = BASE_ONLY; mix < NR_MIXES; mix++)
			for (int v = NRP_RATELIMIT_SPIN; v < NRP_RATELIMIT_NONE; v++)
				check_stream((enum nrp_ratelimit_variant)v, (enum mix)mix, &rng);
}

static unsigned int windows_under_saturation(enum nrp_ratelimit_variant variant, uint64_t interval,
					     uint64_t ticks)
{
	const struct nrp_ratelimit_params params = { .variant = variant,
						     .quota = 0,
						     .interval = interval };
	struct nrp_ratelimit_window window = { .end = 1000, .pages = 0 };
	unsigned int admitted = 0;

	for (uint64_t j = 1001; j <= 1000 + ticks; j++)
		for (int k = 0; k < 2; k++)
			admitted += nrp_ratelimit_admit(&params, &window, j, 1);
	return admitted;
}

/* With quota 0 one page passes per window: I windows of I + 1 ticks last as long as I + 1 of I. */
static void saturated_grid_gains_one_window_in_i(void **state)
{
	static const uint64_t intervals[] = { 1, 2, 10, 25, 30, 100 };

	(void)state;
	for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
		uint64_t interval = intervals[i], ticks = interval * (interval + 1);

		for (int k = 0; k < 2; k++) {
			assert_int_equal(windows_under_saturation(stretched[k], interval, ticks),
					 interval);
			assert_int_equal(windows_under_saturation(on_grid[k], interval, ticks),
					 interval + 1);
		}
	}
}

/* Property 3: the last tick of a grid cell and the first of the next, after idleness. */
static void two_quotas_pass_within_two_ticks_on_the_grid(void **state)
{
	static const struct burst spin[] = {
		{ 40, 6, 1, 5, 1, { 50, 5 } },
		{ 41, 6, 1, 0, 6, { 50, 5 } },
	};
	static const struct burst trylock[] = {
		{ 40, 6, 1, 5, 1, { 40, 5 } },
		{ 41, 6, 1, 5, 1, { 50, 5 } },
	};

	(void)state;
	CHECK(&usual, spin, trylock);
}

static void only_the_distance_to_the_window_matters(void **state)
{
	uint64_t rng = random_seed(__func__);

	(void)state;
	for (int i = 0; i < 2000; i++) {
		const struct nrp_ratelimit_params params = {
			.variant = (enum nrp_ratelimit_variant)random_range(&rng, 0, 3),
			.quota = random_range(&rng, 0, 5),
			.interval = random_range(&rng, 1, 30),
		};
		const uint64_t shift = random_next(&rng);
		struct nrp_ratelimit_window here = { .end = 100, .pages = 0 };
		struct nrp_ratelimit_window there = { .end = 100 + shift, .pages = 0 };
		uint64_t j = random_range(&rng, 90, 130);

		for (int k = 0; k < 40; k++) {
			assert_int_equal(nrp_ratelimit_admit(&params, &here, j, 1),
					 nrp_ratelimit_admit(&params, &there, j + shift, 1));
			assert_int_equal(here.end + shift, there.end);
			assert_int_equal(here.pages, there.pages);
			j += random_range(&rng, 0, 9);
		}
	}
}

/* What the kernel does: add intervals until the end is not before now. */
static void grid_equals_adding_one_interval_at_a_time(void **state)
{
	uint64_t rng = random_seed(__func__);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const struct nrp_ratelimit_params params = {
			.variant = on_grid[i % 2],
			.quota = 4,
			.interval = random_range(&rng, 1, i % 3 ? 10 : 1000),
		};
		const uint64_t w0 = random_next(&rng);
		const uint64_t jiffies = w0 + random_range(&rng, 1, i % 5 ? 100 : 3000);
		struct nrp_ratelimit_window window = { .end = w0, .pages = 9 };
		uint64_t looped = w0;

		while ((int64_t)(looped - jiffies) < 0)
			looped += params.interval;
		assert_true(nrp_ratelimit_admit(&params, &window, jiffies, 1));
		assert_int_equal(window.end, looped);
		assert_int_equal(window.pages, 1);
	}
}

/* ---- constants ---------------------------------------------------------------------- */

static void interval_is_100_ms_rounded_up_to_ticks(void **state)
{
	(void)state;
	assert_int_equal(nrp_ratelimit_interval(100, 1000), 100);
	assert_int_equal(nrp_ratelimit_interval(100, 300), 30);
	assert_int_equal(nrp_ratelimit_interval(100, 250), 25);
	assert_int_equal(nrp_ratelimit_interval(100, 100), 10);
	assert_int_equal(nrp_ratelimit_interval(1, 250), 1);
	assert_int_equal(nrp_ratelimit_interval(5, 250), 2);
	assert_int_equal(nrp_ratelimit_interval(1001, 100), 101);
}

static void quota_is_128_mib(void **state)
{
	(void)state;
	assert_int_equal(nrp_ratelimit_quota(4096), 32768);
	assert_int_equal(nrp_ratelimit_quota(16384), 8192);
	assert_int_equal(nrp_ratelimit_quota(65536), 2048);
}

static void names_are_those_of_the_command_line(void **state)
{
	(void)state;
	assert_string_equal(nrp_ratelimit_variant_name(NRP_RATELIMIT_SPIN), "spin");
	assert_string_equal(nrp_ratelimit_variant_name(NRP_RATELIMIT_TRYLOCK), "trylock");
	assert_string_equal(nrp_ratelimit_variant_name(NRP_RATELIMIT_SPIN_GRID), "spin-grid");
	assert_string_equal(nrp_ratelimit_variant_name(NRP_RATELIMIT_TRYLOCK_STRETCH),
			    "trylock-stretch");
	assert_string_equal(nrp_ratelimit_variant_name(NRP_RATELIMIT_NONE), "none");
	assert_null(nrp_ratelimit_variant_name(NRP_NR_RATELIMIT_VARIANTS));
	assert_true(nrp_ratelimit_on_grid(NRP_RATELIMIT_TRYLOCK));
	assert_true(nrp_ratelimit_on_grid(NRP_RATELIMIT_SPIN_GRID));
	assert_false(nrp_ratelimit_on_grid(NRP_RATELIMIT_SPIN));
	assert_false(nrp_ratelimit_on_grid(NRP_RATELIMIT_TRYLOCK_STRETCH));
	assert_false(nrp_ratelimit_on_grid(NRP_RATELIMIT_NONE));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(r1_window_is_over_strictly_after_its_end),
		cmocka_unit_test(r2_one_more_than_the_quota_passes),
		cmocka_unit_test(r3_stretched_window_is_one_tick_longer),
		cmocka_unit_test(r3_without_limit_all_70_pass),
		cmocka_unit_test(r4_grid_denies_what_a_stretched_window_admits),
		cmocka_unit_test(r5_huge_pages_overshoot_by_one_huge_page),
		cmocka_unit_test(r6_mixed_pages_overshoot_and_the_windows_end_apart),
		cmocka_unit_test(r7_quota_of_64k_pages),
		cmocka_unit_test(r8_forty_days_idle_keep_the_grid),
		cmocka_unit_test(r9_over_quota_window_denies_until_it_is_over),
		cmocka_unit_test(r10_equal_totals_have_different_victims),
		cmocka_unit_test(window_survives_the_wrap_of_jiffies),
		cmocka_unit_test(expiry_looks_half_the_clock_ahead),
		cmocka_unit_test(pages_per_window_are_bounded),
		cmocka_unit_test(saturated_grid_gains_one_window_in_i),
		cmocka_unit_test(two_quotas_pass_within_two_ticks_on_the_grid),
		cmocka_unit_test(only_the_distance_to_the_window_matters),
		cmocka_unit_test(grid_equals_adding_one_interval_at_a_time),
		cmocka_unit_test(interval_is_100_ms_rounded_up_to_ticks),
		cmocka_unit_test(quota_is_128_mib),
		cmocka_unit_test(names_are_those_of_the_command_line),
	};

	return cmocka_run_group_tests_name("ratelimit", tests, NULL, NULL);
}
