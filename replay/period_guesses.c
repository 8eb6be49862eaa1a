/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/period_guesses.h"
#include "replay/policies/ticks.h"

#include <string.h>

/* More windows than this are not tried one by one. */
#define MOST_WINDOWS 16
#define TENTHS 10u

void nrp_period_guesses_fresh(struct nrp_period_guesses *g, uint32_t period_ms, uint64_t retry_high)
{
	memset(g, 0, sizeof(*g));
	g->at[0].retry_high = retry_high;
	g->at[0].counters_known = true;
	g->at[0].period_known = period_ms != 0;
	g->at[0].task.period_ms = period_ms;
	g->count = 1;
}

void nrp_period_guesses_lose(struct nrp_period_guesses *g)
{
	memset(g, 0, sizeof(*g));
}

/* Equal but for their retry times. */
static bool same(const struct nrp_period_guess *a, const struct nrp_period_guess *b)
{
	const size_t from = offsetof(struct nrp_period_guess, shared);

	return !memcmp((const char *)a + from, (const char *)b + from, sizeof(*a) - from);
}

/* false: no more room. Guesses that differ in their retry times only become one. */
static bool add(struct nrp_period_guesses *g, const struct nrp_period_guess *guess)
{
	for (size_t i = 0; i < g->count; i++) {
		struct nrp_period_guess *there = &g->at[i];

		if (!same(there, guess))
			continue;
		if (guess->retry_low < there->retry_low)
			there->retry_low = guess->retry_low;
		if (guess->retry_high > there->retry_high)
			there->retry_high = guess->retry_high;
		return true;
	}
	if (g->count == NRP_MAX_PERIOD_GUESSES)
		return false;
	memcpy(&g->at[g->count++], guess, sizeof(*guess));
	return true;
}

/* ---- one placement pass --------------------------------------------------------------- */

struct bounds {
	uint32_t min_ms, max_ms;
};

/* The kernel's bounds for an address space of @windows; a group's longest period is not known. */
static struct bounds bounds_of(const struct nrp_period_rule *rule, uint64_t windows, bool grouped)
{
	static const struct nrp_scan_group none = { 0 };
	const struct nrp_scan_tunables *t = &rule->tunables;
	uint64_t rss = windows * (((uint64_t)t->size_mb << 20) / t->page_size);

	return (struct bounds){ nrp_scan_min(t, rss),
				grouped ? UINT32_MAX : nrp_scan_max(t, rss, &none) };
}

static bool finish(struct nrp_period_guesses *out, struct nrp_period_guess guess,
		   enum nrp_period_by by)
{
	guess.by = (uint8_t)by;
	guess.shared = guess.private = guess.either = 0;
	if (!nrp_period_is_early(by))
		guess.nearby = 0;
	return add(out, &guess);
}

/* All counts are known. */
static bool adapt(struct nrp_period_guesses *out, struct nrp_period_guess guess,
		  const struct nrp_period_rule *rule, const struct bounds *b)
{
	enum nrp_period_by by = nrp_scan_adapt(&guess.task, rule->rules, guess.shared,
					       guess.private, b->min_ms, b->max_ms);

	return finish(out, guess, by);
}

static unsigned int tenths(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned int)(TENTHS * part / whole) : 0;
}

/* A share of exactly so many tenths, with something of each kind as far as there can be. */
static void split(unsigned int part, uint64_t *ret_part, uint64_t *ret_rest)
{
	*ret_part = part * 100 + 1;
	*ret_rest = 1000 - (part == TENTHS ? 1000 : part * 100 + 1);
}

/* A failed migration is on record: whatever else is counted, the period doubles. */
static bool backs_off(const struct nrp_period_guess *guess, const struct nrp_period_rule *rule)
{
	return guess->task.failed && (rule->rules & NRP_PERIOD_FAILED);
}

/*
 * Some faults may count either way: the rule sees tenths only, so that each pair of tenths that can
 * be is tried. Early exits are those of the certain counts.
 */
static bool adapt_open(struct nrp_period_guesses *out, const struct nrp_period_guess *guess,
		       const struct nrp_period_rule *rule, const struct bounds *b)
{
	const struct nrp_scan_task *t = &guess->task;
	uint64_t faults = guess->shared + guess->private + guess->either;
	uint64_t places = t->remote + t->local + guess->nearby;
	unsigned int most_ps = tenths(guess->private + guess->either, faults);
	unsigned int most_lr = tenths(t->local + guess->nearby, places);
	bool ok = true;

	if (backs_off(guess, rule))
		return adapt(out, *guess, rule, b);
	if (!t->local && !guess->shared)
		ok = adapt(out, *guess, rule, b);
	for (unsigned int ps = tenths(guess->private, faults); ps <= most_ps; ps++) {
		for (unsigned int lr = tenths(t->local, places); lr <= most_lr; lr++) {
			struct nrp_period_guess way = *guess;

			split(ps, &way.private, &way.shared);
			split(lr, &way.task.local, &way.task.remote);
			ok &= adapt(out, way, rule, b);
		}
	}
	return ok;
}

/* Counters that are not known may also not make it leave early; then it clears them. */
static bool place_openly(struct nrp_period_guesses *out, struct nrp_period_guess guess)
{
	guess.period_known = false;
	guess.counters_known = true;
	guess.task.remote = guess.task.local = guess.task.failed = 0;
	return finish(out, guess, NRP_PERIOD_BY_NOTHING);
}

/* With the bounds of one size of the address space. */
static bool place_in(struct nrp_period_guesses *out, struct nrp_period_guess guess,
		     const struct nrp_period_rule *rule, const struct bounds *b)
{
	guess.task.period_max_ms = b->max_ms;
	if (!guess.counters_known && !backs_off(&guess, rule)) {
		struct nrp_scan_task counted = guess.task;

		guess.task.failed = 1;
		nrp_scan_adapt(&guess.task, rule->rules | NRP_PERIOD_FAILED, 0, 0, 0, 0);
		guess.task.failed = counted.failed;
		return finish(out, guess, NRP_PERIOD_BY_EMPTY);
	}
	return guess.either || guess.nearby ? adapt_open(out, &guess, rule, b)
					    : adapt(out, guess, rule, b);
}

static bool place(struct nrp_period_guesses *out, const struct nrp_period_guess *before,
		  const struct nrp_period_rule *rule, const struct nrp_period_fault *f, int32_t seq)
{
	struct nrp_period_guess guess = *before;
	bool ok = true;

	guess.seq = seq;
	guess.seq_known = true;
	guess.passes = guess.passes ? 2 : 1;
	guess.met_faults |= guess.shared + guess.private + guess.either > 0;
	/* A bound that is not known may have cut the period of the pass before. */
	if (guess.uncapped && guess.task.period_ms > guess.least_cap)
		guess.period_known = false;
	if (!guess.counters_known && !backs_off(&guess, rule))
		ok = place_openly(out, guess);
	if (!guess.period_known)
		return finish(out, guess, NRP_PERIOD_BY_NOTHING) && ok;
	if (f->windows_high - f->windows_low >= MOST_WINDOWS)
		return false;
	guess.uncapped = f->grouped;
	guess.least_cap = bounds_of(rule, f->windows_high + 1, false).max_ms;
	guess.most_cap = bounds_of(rule, f->windows_low > 1 ? f->windows_low - 1 : 1, false).max_ms;
	for (uint64_t w = f->windows_low; w <= f->windows_high; w++) {
		struct bounds b = bounds_of(rule, w, f->grouped);

		ok &= place_in(out, guess, rule, &b);
	}
	return ok;
}

/* ---- one fault ------------------------------------------------------------------------ */

/* May the fault run what waits for the retry time, at the earliest and latest ticks? */
static enum nrp_maybe may_run(const struct nrp_period_guess *guess,
			      const struct nrp_period_rule *rule, const struct nrp_period_fault *f)
{
	bool surely = nrp_scan_placement_may_run(rule->variant, f->ticks_low, guess->retry_high);
	bool perhaps = nrp_scan_placement_may_run(rule->variant, f->ticks_high, guess->retry_low);

	return surely ? NRP_MAYBE_YES : perhaps ? NRP_MAYBE_UNKNOWN : NRP_MAYBE_NO;
}

/* The preferred node is tried behind the placement pass: the next time is set. */
static void set_retry(struct nrp_period_guess *guess, const struct nrp_period_rule *rule,
		      const struct nrp_period_fault *f, enum nrp_maybe runs)
{
	bool preferred = guess->met_faults || f->preferred == NRP_MAYBE_YES;
	uint32_t period = guess->period_known ? guess->task.period_ms : 0;
	uint32_t longest = guess->period_known ? period : UINT32_MAX;
	uint64_t low = nrp_scan_retry(f->ticks_low, period, rule->hz);
	uint64_t high = nrp_scan_retry(f->ticks_high, longest, rule->hz);

	if (runs == NRP_MAYBE_NO || (!preferred && f->preferred == NRP_MAYBE_NO))
		return;
	if (runs == NRP_MAYBE_YES && preferred)
		guess->retry_low = low;
	/* What runs is past the time that was set before. */
	if (runs == NRP_MAYBE_YES || high > guess->retry_high)
		guess->retry_high = high;
}

static void count(struct nrp_period_guess *guess, const struct nrp_period_fault *f)
{
	*(f->private == NRP_MAYBE_UNKNOWN ? &guess->either
	  : f->private == NRP_MAYBE_YES   ? &guess->private
					  : &guess->shared) += f->pages;
	*(f->local == NRP_MAYBE_UNKNOWN ? &guess->nearby
	  : f->local == NRP_MAYBE_YES   ? &guess->task.local
					: &guess->task.remote) += f->pages;
	if (f->failed)
		guess->task.failed += f->pages;
}

/* All that may come of one guess. */
static bool step(struct nrp_period_guesses *out, const struct nrp_period_guess *guess,
		 const struct nrp_period_rule *rule, const struct nrp_period_fault *f,
		 enum nrp_maybe runs)
{
	bool stays = runs != NRP_MAYBE_YES || !guess->seq_known, ok = true;

	for (size_t i = 0; i < f->nr_seqs; i++) {
		if (guess->seq_known && f->seq[i] == guess->seq)
			stays = true;
		else if (runs != NRP_MAYBE_NO)
			ok &= place(out, guess, rule, f, f->seq[i]);
	}
	return ok && (!stays || add(out, guess));
}

/* What a placement pass that doubles does to the next scan. */
static void note_early(struct nrp_period_early *early, const struct nrp_period_guess *guess,
		       const struct nrp_period_rule *rule, const struct nrp_period_fault *f)
{
	uint32_t most = guess->task.period_ms;
	uint32_t least = guess->uncapped && guess->least_cap < most ? guess->least_cap : most;
	uint64_t low = f->ticks_low + nrp_ms_to_ticks(least, rule->hz);
	uint64_t high = f->ticks_high + nrp_ms_to_ticks(most, rule->hz);

	if (!guess->period_known) {
		early->possible = true;
		early->high = UINT64_MAX;
		return;
	}
	if (!nrp_period_is_early(guess->by))
		return;
	if (!early->possible || low < early->low)
		early->low = low;
	if (high > early->high)
		early->high = high;
	early->possible = true;
}

struct nrp_period_early nrp_period_guesses_fault(struct nrp_period_guesses *g,
						 const struct nrp_period_rule *rule,
						 const struct nrp_period_fault *fault)
{
	struct nrp_period_guesses out = { 0 };
	struct nrp_period_early early = { .certain = g->count > 0 };
	bool ok = g->count && fault->nr_seqs;

	for (size_t i = 0; ok && i < g->count; i++) {
		enum nrp_maybe runs = may_run(&g->at[i], rule, fault);
		size_t first = out.count;

		ok = step(&out, &g->at[i], rule, fault, runs);
		for (size_t k = first; k < out.count; k++) {
			bool placed = out.at[k].passes != g->at[i].passes ||
				      out.at[k].seq != g->at[i].seq;

			if (placed)
				note_early(&early, &out.at[k], rule, fault);
			early.certain &= placed && out.at[k].period_known &&
					 nrp_period_is_early(out.at[k].by);
			set_retry(&out.at[k], rule, fault, placed ? NRP_MAYBE_YES : runs);
		}
	}
	if (!ok) {
		nrp_period_guesses_lose(g);
		return (struct nrp_period_early){ .possible = true, .high = UINT64_MAX };
	}
	for (size_t i = 0; i < out.count; i++)
		count(&out.at[i], fault);
	*g = out;
	return early;
}

/* ---- one sight ------------------------------------------------------------------------ */

/* Its period, with the bound that is seen now, or could be. */
static bool fits(struct nrp_period_guess *guess, uint32_t period, uint32_t period_max,
		 bool *ret_sure)
{
	uint32_t is = guess->task.period_ms;

	*ret_sure = guess->period_known;
	if (!guess->period_known)
		return true;
	if (!guess->passes || is == period || is < guess->least_cap)
		return is == period;
	if (!guess->uncapped) {
		/* Cut at a bound that is not known to the window. */
		*ret_sure = false;
		return !period_max && is == guess->task.period_max_ms &&
		       period >= guess->least_cap && period <= guess->most_cap;
	}
	if (period_max)
		return period == (is < period_max ? is : period_max);
	*ret_sure = false;
	return period == is || (period < is && period >= guess->least_cap);
}

static bool bounded_otherwise(const struct nrp_period_guess *guess, uint32_t period_max)
{
	return period_max && guess->passes && guess->period_known && !guess->uncapped &&
	       guess->task.period_max_ms != period_max;
}

/* Guesses that the sight's sequence and longest period leave; false: none. */
static bool keep_possible(struct nrp_period_guesses *g, int32_t seq, uint32_t period_max)
{
	size_t n = 0, other_bound = 0;

	for (size_t i = 0; i < g->count; i++)
		if (!g->at[i].seq_known || g->at[i].seq == seq)
			g->at[n++] = g->at[i];
	g->count = n;
	for (size_t i = 0; i < n; i++)
		other_bound += bounded_otherwise(&g->at[i], period_max);
	if (other_bound == n)
		return n > 0;
	g->count = 0;
	for (size_t i = 0; i < n; i++)
		if (!bounded_otherwise(&g->at[i], period_max))
			g->at[g->count++] = g->at[i];
	return true;
}

/* Goes on from what was seen. */
static void go_on(struct nrp_period_guesses *g, int32_t seq, uint32_t period, uint32_t period_max)
{
	struct nrp_period_guesses out = { 0 };

	for (size_t i = 0; i < g->count; i++) {
		struct nrp_period_guess *guess = &g->at[i];

		guess->seq = seq;
		guess->seq_known = guess->period_known = true;
		guess->task.period_ms = period;
		guess->task.period_max_ms = period_max;
		guess->passes = 0;
		guess->by = 0;
		guess->uncapped = false;
		guess->least_cap = guess->most_cap = 0;
		add(&out, guess);
	}
	*g = out;
}

static void start_anew(struct nrp_period_guesses *g, int32_t seq, uint32_t period,
		       uint64_t retry_high)
{
	nrp_period_guesses_fresh(g, period, retry_high);
	g->at[0].seq = seq;
	g->at[0].seq_known = true;
	g->at[0].counters_known = false;
}

enum nrp_period_verdict nrp_period_guesses_sight(struct nrp_period_guesses *g, int32_t seq,
						 uint32_t period, uint32_t period_max,
						 uint64_t retry_high, enum nrp_period_by *ret_by)
{
	struct nrp_period_guesses fit = { 0 };
	bool all = true, decided = true;

	*ret_by = NRP_PERIOD_BY_NOTHING;
	if (!g->count) {
		start_anew(g, seq, period, retry_high);
		return NRP_PERIOD_NO_DECISION;
	}
	if (!keep_possible(g, seq, period_max)) {
		start_anew(g, seq, period, retry_high);
		return NRP_PERIOD_DISAGREES;
	}
	for (size_t i = 0; i < g->count; i++) {
		bool sure;

		*ret_by = (enum nrp_period_by)g->at[i].by;
		if (fits(&g->at[i], period, period_max, &sure))
			fit.at[fit.count++] = g->at[i];
		else
			all = false;
		all &= sure;
	}
	if (fit.count) {
		*ret_by = (enum nrp_period_by)fit.at[0].by;
		*g = fit;
	}
	for (size_t i = 0; i < g->count; i++)
		decided &= g->at[i].passes > 0;
	go_on(g, seq, period, period_max);
	if (!decided)
		return NRP_PERIOD_NO_DECISION;
	return !fit.count ? NRP_PERIOD_DISAGREES : all ? NRP_PERIOD_AGREES : NRP_PERIOD_OPEN;
}
