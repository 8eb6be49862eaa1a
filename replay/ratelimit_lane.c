/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/ratelimit_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t nrp_ratelimit_nr_starts(const struct nrp_ratelimit_params *params)
{
	if (params->variant == NRP_RATELIMIT_NONE)
		return 1;
	if (nrp_ratelimit_on_grid(params->variant))
		return 2 * params->interval;
	return 1 + 2 * (params->interval + 1);
}

/* The first start is the nominal one: a fresh window opens at the first attempt. */
struct nrp_ratelimit_start nrp_ratelimit_start_at(const struct nrp_ratelimit_params *params,
						  size_t i)
{
	int64_t interval = (int64_t)params->interval;

	if (nrp_ratelimit_on_grid(params->variant)) {
		/* Full window first, then those that end sooner. */
		return (struct nrp_ratelimit_start){
			.first_end = interval - 1 - (int64_t)i % interval,
			.exhausted = (int64_t)i >= interval,
		};
	}
	if (i == 0)
		return (struct nrp_ratelimit_start){ .first_end = -1 };
	return (struct nrp_ratelimit_start){ .first_end = (int64_t)(i - 1) / 2,
					     .exhausted = (i - 1) % 2 };
}

struct nrp_ratelimit_window nrp_ratelimit_first_window(const struct nrp_ratelimit_params *params,
						       const struct nrp_ratelimit_start *start,
						       uint64_t jiffies, uint64_t grid_origin)
{
	struct nrp_ratelimit_window w = { .pages = start->exhausted ? params->quota + 1 : 0 };

	if (params->variant == NRP_RATELIMIT_NONE)
		return w;
	if (nrp_ratelimit_on_grid(params->variant)) {
		uint64_t end = grid_origin + (uint64_t)start->first_end;

		/* The grid point at or after the node's first attempt ends its current window. */
		if ((int64_t)(jiffies - end) > 0)
			end += (jiffies - end + params->interval - 1) / params->interval *
			       params->interval;
		w.end = start->exhausted ? end : end - params->interval;
		return w;
	}
	w.end = start->first_end < 0 ? jiffies - 1 : jiffies + (uint64_t)start->first_end;
	return w;
}

int nrp_limiter_start(struct nrp_limiter_simulation *sim, const struct nrp_attempts *attempts,
		      const struct nrp_ratelimit_params *params)
{
	sim->params = params;
	sim->grid_origin = attempts->count ? attempts->at[0].jiffies : 0;
	sim->node = calloc((size_t)attempts->nr_nodes + 1, sizeof(*sim->node));
	return sim->node ? 0 : -ENOMEM;
}

int nrp_limiter_step(struct nrp_limiter_simulation *sim, const struct nrp_attempt *a,
		     const struct nrp_ratelimit_start *start)
{
	const struct nrp_ratelimit_params *params = sim->params;
	struct nrp_limiter_node *node = &sim->node[a->nid];
	bool central, low, first = !node->seen;
	uint64_t end;

	if (!node->seen) {
		node->seen = true;
		node->central =
			nrp_ratelimit_first_window(params, start, a->jiffies, sim->grid_origin);
	}
	end = node->central.end;
	central = nrp_ratelimit_admit(params, &node->central, a->jiffies, a->pages);
	node->windows += first || node->central.end != end;
	low = central;
	if (node->apart)
		low = nrp_ratelimit_admit(params, &node->low, a->jiffies, a->pages);
	if (low && !a->charge_known) {
		if (!node->apart)
			node->low = node->central;
		node->apart = true;
		node->low.pages -= a->pages; /* perhaps never charged */
	}
	return (central ? NRP_STEP_ADMIT : NRP_STEP_DENY) |
	       (low != central ? NRP_STEP_CHARGE_DECIDES : 0);
}

/* How well a start explains one node. */
struct score {
	uint64_t contradictions, unexplained, admitted;
	uint64_t low, high; /* admitted under the extremes of unknown charge */
};

static void count(struct score *s, const struct nrp_attempt *a, int result)
{
	bool admitted = result & NRP_STEP_ADMIT;

	s->admitted += admitted;
	if (!(result & NRP_STEP_CHARGE_DECIDES)) {
		s->low += admitted;
		s->high += admitted;
	} else {
		s->high++;
	}
	if (a->evidence == NRP_LIMITER_UNKNOWN)
		s->unexplained += admitted;
	else
		s->contradictions += admitted != (a->evidence == NRP_LIMITER_ADMITTED);
}

static int score_start(const struct nrp_attempts *attempts,
		       const struct nrp_ratelimit_params *params,
		       const struct nrp_ratelimit_start *start, struct score *score)
{
	struct nrp_limiter_simulation sim;

	if (nrp_limiter_start(&sim, attempts, params) < 0)
		return -ENOMEM;
	memset(score, 0, sizeof(*score) * (size_t)attempts->nr_nodes);
	for (size_t i = 0; i < attempts->count; i++)
		count(&score[attempts->at[i].nid], &attempts->at[i],
		      nrp_limiter_step(&sim, &attempts->at[i], start));
	free(sim.node);
	return 0;
}

/*
 * Certain answers count first. A failure of unknown reason is explained by a refusal, but also by
 * many other things: only a clear difference in their number speaks for a start.
 */
#define CLEAR_DIFFERENCE 16

static bool better(const struct score *a, const struct score *b)
{
	if (a->contradictions != b->contradictions)
		return a->contradictions < b->contradictions;
	return a->unexplained + CLEAR_DIFFERENCE < b->unexplained;
}

static bool equal(const struct score *a, const struct score *b)
{
	return !better(a, b) && !better(b, a);
}

uint64_t nrp_ratelimit_fit_tolerance(uint64_t certain)
{
	return 5 + certain / 1000;
}

/* All scores, [start * nr_nodes + node]. */
struct scores {
	struct score *at;
	struct score *sum; /* on a grid: of all nodes, [start], as the phase is common; else NULL */
	size_t starts, nodes;
};

static struct score sum_nodes(const struct scores *s, size_t start)
{
	struct score sum = { 0 };

	for (size_t n = 0; n < s->nodes; n++) {
		const struct score *one = &s->at[start * s->nodes + n];

		sum.contradictions += one->contradictions;
		sum.unexplained += one->unexplained;
		sum.admitted += one->admitted;
		sum.low += one->low;
		sum.high += one->high;
	}
	return sum;
}

static struct score score_of(const struct scores *s, size_t start, size_t node)
{
	return s->sum ? s->sum[start] : s->at[start * s->nodes + node];
}

static void clear_scores(struct scores *s)
{
	free(s->at);
	free(s->sum);
}

static int score_all(struct scores *s, const struct nrp_attempts *attempts,
		     const struct nrp_ratelimit_params *params)
{
	s->starts = nrp_ratelimit_nr_starts(params);
	s->nodes = (size_t)attempts->nr_nodes;
	s->at = calloc(s->starts * s->nodes + 1, sizeof(*s->at));
	if (nrp_ratelimit_on_grid(params->variant))
		s->sum = calloc(s->starts, sizeof(*s->sum));
	if (!s->at || (nrp_ratelimit_on_grid(params->variant) && !s->sum))
		return -ENOMEM;
	for (size_t i = 0; i < s->starts; i++) {
		struct nrp_ratelimit_start start = nrp_ratelimit_start_at(params, i);

		if (score_start(attempts, params, &start, s->at + i * s->nodes) < 0)
			return -ENOMEM;
		if (s->sum)
			s->sum[i] = sum_nodes(s, i);
	}
	return 0;
}

/*
 * Chooses the start per node (per phase on a grid): the best fit, or the nominal one.
 * plausible[start * nodes + n] tells which starts are left.
 */
static void choose(struct nrp_ratelimit_lane *lane, const struct scores *s, uint64_t certain,
		   bool is_host, bool *plausible)
{
	struct score total = { 0 };
	size_t best[NRP_MAX_NODES] = { 0 };

	for (size_t n = 0; n < s->nodes; n++) {
		for (size_t i = 1; is_host && i < s->starts; i++) {
			struct score a = score_of(s, i, n), b = score_of(s, best[n], n);

			if (better(&a, &b))
				best[n] = i;
		}
		total.contradictions += s->at[best[n] * s->nodes + n].contradictions;
	}
	lane->fitted =
		is_host && certain && total.contradictions <= nrp_ratelimit_fit_tolerance(certain);
	for (size_t n = 0; n < s->nodes; n++) {
		if (!lane->fitted)
			best[n] = 0;
		lane->start[n] = nrp_ratelimit_start_at(&lane->params, best[n]);
		for (size_t i = 0; i < s->starts; i++) {
			struct score a = score_of(s, i, n), b = score_of(s, best[n], n);

			plausible[i * s->nodes + n] = !lane->fitted || equal(&a, &b);
			lane->starts_left += n == 0 && plausible[i * s->nodes + n];
		}
	}
}

/* Extremes of the admitted count over the plausible starts. */
static void bound(struct nrp_ratelimit_lane *lane, const struct scores *s, const bool *plausible)
{
	/* A fit (within the tolerance for races) has shown that the unknown attempts are charged.
	 */
	bool charges_known = lane->fitted;
	bool grid = nrp_ratelimit_on_grid(lane->params.variant);

	for (size_t n = 0; n < (grid && s->nodes ? 1 : s->nodes); n++) {
		uint64_t low = UINT64_MAX, high = 0;

		for (size_t i = 0; i < s->starts; i++) {
			struct score a = score_of(s, i, n);

			if (!plausible[i * s->nodes + n])
				continue;
			if (charges_known)
				a.low = a.high = a.admitted;
			if (a.low < low)
				low = a.low;
			if (a.high > high)
				high = a.high;
		}
		lane->admitted_min += low == UINT64_MAX ? 0 : low;
		lane->admitted_max += high;
	}
}

/* Decisions under the chosen start, with where they depend on charges. */
static int decide(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts)
{
	struct nrp_limiter_simulation sim;

	if (nrp_limiter_start(&sim, attempts, &lane->params) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		int result = nrp_limiter_step(&sim, a, &lane->start[a->nid]);
		bool admitted = result & NRP_STEP_ADMIT;

		lane->decision[i].first_window = sim.node[a->nid].windows <= 1;
		lane->decision[i].admitted = admitted;
		lane->decision[i].certainty = result & NRP_STEP_CHARGE_DECIDES && !lane->fitted
						      ? NRP_AMBIGUOUS_CHARGE
						      : NRP_CERTAIN;
		lane->admitted += admitted;
		lane->denied += !admitted;
		*(admitted ? &lane->admitted_pages : &lane->denied_pages) += a->pages;
		if (a->evidence == NRP_LIMITER_UNKNOWN)
			lane->unexplained += admitted;
		else
			lane->contradictions += admitted != (a->evidence == NRP_LIMITER_ADMITTED);
	}
	free(sim.node);
	return 0;
}

/* Marks decisions that another plausible start would turn round. */
static int mark_starts(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts,
		       const struct scores *s, const bool *plausible)
{
	for (size_t k = 0; k < s->starts; k++) {
		struct nrp_ratelimit_start start = nrp_ratelimit_start_at(&lane->params, k);
		struct nrp_limiter_simulation sim;
		bool any = false;

		for (size_t n = 0; n < s->nodes; n++)
			any |= plausible[k * s->nodes + n];
		if (!any)
			continue;
		if (nrp_limiter_start(&sim, attempts, &lane->params) < 0)
			return -ENOMEM;
		for (size_t i = 0; i < attempts->count; i++) {
			const struct nrp_attempt *a = &attempts->at[i];
			int result = nrp_limiter_step(&sim, a, &start);

			if (plausible[k * s->nodes + (size_t)a->nid] &&
			    (result & NRP_STEP_ADMIT) != lane->decision[i].admitted &&
			    lane->decision[i].certainty == NRP_CERTAIN)
				lane->decision[i].certainty = NRP_AMBIGUOUS_START;
		}
		free(sim.node);
	}
	return 0;
}

void nrp_ratelimit_lane_clear(struct nrp_ratelimit_lane *lane)
{
	free(lane->decision);
	free(lane->start);
	memset(lane, 0, sizeof(*lane));
}

/*
 * No recorded window can hold more than the quota. Only what was charged before the capture can
 * refuse an attempt, while the window lasts that was open when it began.
 */
static int admit_all(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts,
		     bool is_host)
{
	bool limited = lane->params.variant != NRP_RATELIMIT_NONE;
	int64_t last = (int64_t)lane->params.interval - nrp_ratelimit_on_grid(lane->params.variant);
	uint64_t *first = calloc((size_t)attempts->nr_nodes + 1, sizeof(*first));
	bool *seen = calloc((size_t)attempts->nr_nodes + 1, sizeof(*seen));

	if (!first || !seen) {
		free(first);
		free(seen);
		return -ENOMEM;
	}
	for (int n = 0; n < attempts->nr_nodes; n++)
		lane->start[n] = nrp_ratelimit_start_at(&lane->params, 0);
	lane->starts_left = nrp_ratelimit_nr_starts(&lane->params);
	lane->admitted = lane->admitted_min = lane->admitted_max = attempts->count;
	lane->contradictions = attempts->denied;
	lane->unexplained = attempts->unknown;
	lane->fitted =
		is_host && lane->contradictions <=
				   nrp_ratelimit_fit_tolerance(attempts->count - attempts->unknown);
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];

		lane->decision[i].admitted = 1;
		lane->admitted_pages += a->pages;
		if (!seen[a->nid])
			first[a->nid] = a->jiffies;
		seen[a->nid] = true;
		if (!limited || (int64_t)(a->jiffies - first[a->nid]) > last)
			continue;
		lane->decision[i].first_window = true;
		if (lane->fitted)
			continue;
		lane->decision[i].certainty = NRP_AMBIGUOUS_START;
		lane->ambiguous++;
		lane->admitted_min--;
	}
	free(first);
	free(seen);
	return 0;
}

int nrp_ratelimit_lane_run(struct nrp_ratelimit_lane *ret, const struct nrp_attempts *attempts,
			   const struct nrp_ratelimit_params *params, bool is_host,
			   struct nrp_error *err)
{
	struct nrp_ratelimit_lane lane = { .params = *params };
	struct scores scores = { 0 };
	bool *plausible = NULL;
	int r;

	r = nrp_attempts_max_in_window(attempts, params->interval + 1, &lane.max_pages_in_window,
				       err);
	if (r == 0)
		r = nrp_attempts_max_in_window(attempts, 2 * (params->interval + 1),
					       &lane.max_pages_two_windows, err);
	if (r < 0)
		return r;
	/* A gap may hide attempts. */
	lane.no_denial_possible =
		params->variant == NRP_RATELIMIT_NONE ||
		(lane.max_pages_two_windows <= params->quota && !attempts->nr_losses);
	lane.decision = calloc(attempts->count + 1, sizeof(*lane.decision));
	lane.start = calloc((size_t)attempts->nr_nodes + 1, sizeof(*lane.start));
	if (!lane.decision || !lane.start)
		goto nomem;
	if (lane.no_denial_possible) {
		if (admit_all(&lane, attempts, is_host) < 0)
			goto nomem;
		*ret = lane;
		return 0;
	}
	if (score_all(&scores, attempts, params) < 0)
		goto nomem;
	plausible = calloc(scores.starts * scores.nodes + 1, sizeof(*plausible));
	if (!plausible)
		goto nomem;
	choose(&lane, &scores, attempts->count - attempts->unknown, is_host, plausible);
	bound(&lane, &scores, plausible);
	if (decide(&lane, attempts) < 0 || mark_starts(&lane, attempts, &scores, plausible) < 0 ||
	    nrp_limiter_mark_races(&lane, attempts) < 0 ||
	    nrp_limiter_mark_losses(&lane, attempts) < 0)
		goto nomem;
	nrp_limiter_count_open(&lane, attempts);
	free(plausible);
	clear_scores(&scores);
	*ret = lane;
	return 0;
nomem:
	free(plausible);
	clear_scores(&scores);
	nrp_ratelimit_lane_clear(&lane);
	return nrp_fail_nomem(err);
}
