/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/ratelimit_lane.h"

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

/* Interval simulation of one node: the same window ends, pages in [low, high]. */
struct node {
	bool seen;
	uint64_t windows; /* begun so far, the one at the first attempt included */
	struct nrp_ratelimit_window central, low, high;
};

struct simulation {
	const struct nrp_ratelimit_params *params;
	struct node *node;
	uint64_t grid_origin;
};

enum { DENY = 0, ADMIT = 1, CHARGE_DECIDES = 2 };

static int start_simulation(struct simulation *sim, const struct nrp_attempts *attempts,
			    const struct nrp_ratelimit_params *params)
{
	sim->params = params;
	sim->grid_origin = attempts->count ? attempts->at[0].jiffies : 0;
	sim->node = calloc((size_t)attempts->nr_nodes + 1, sizeof(*sim->node));
	return sim->node ? 0 : -ENOMEM;
}

/*
 * One attempt: bit ADMIT is the central decision (every admitted attempt is charged), CHARGE_DECIDES is set where
 * attempts of unknown charge make the difference.
 */
static int step(struct simulation *sim, const struct nrp_attempt *a,
		const struct nrp_ratelimit_start *start)
{
	const struct nrp_ratelimit_params *params = sim->params;
	struct node *node = &sim->node[a->nid];
	bool central, low, high, first = !node->seen;
	uint64_t end;

	if (!node->seen) {
		node->seen = true;
		node->central = nrp_ratelimit_first_window(params, start, a->jiffies,
							   sim->grid_origin);
		node->low = node->central;
		node->high = node->central;
	}
	end = node->central.end;
	central = nrp_ratelimit_admit(params, &node->central, a->jiffies, a->pages);
	node->windows += first || node->central.end != end;
	low = nrp_ratelimit_admit(params, &node->low, a->jiffies, a->pages);
	if (low && !a->charge_known)
		node->low.pages -= a->pages; /* perhaps never charged */
	high = nrp_ratelimit_admit(params, &node->high, a->jiffies, a->pages);
	return (central ? ADMIT : DENY) | (low != high ? CHARGE_DECIDES : 0);
}

/* How well a start explains one node. */
struct score {
	uint64_t contradictions, unexplained, admitted;
	uint64_t low, high; /* admitted under the extremes of unknown charge */
};

static void count(struct score *s, const struct nrp_attempt *a, int result)
{
	bool admitted = result & ADMIT;

	s->admitted += admitted;
	if (!(result & CHARGE_DECIDES)) {
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
	struct simulation sim;

	if (start_simulation(&sim, attempts, params) < 0)
		return -ENOMEM;
	memset(score, 0, sizeof(*score) * (size_t)attempts->nr_nodes);
	for (size_t i = 0; i < attempts->count; i++)
		count(&score[attempts->at[i].nid], &attempts->at[i],
		      step(&sim, &attempts->at[i], start));
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
 * Chooses the start per node (per phase on a grid): the best fit, or the nominal one. plausible[start * nodes + n]
 * tells which starts are left.
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
	lane->fitted = is_host && certain &&
		       total.contradictions <= nrp_ratelimit_fit_tolerance(certain);
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
	/* A fit (within the tolerance for races) has shown that the unknown attempts are charged. */
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
	struct simulation sim;

	if (start_simulation(&sim, attempts, &lane->params) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		int result = step(&sim, a, &lane->start[a->nid]);
		bool admitted = result & ADMIT;

		lane->decision[i].first_window = sim.node[a->nid].windows <= 1;
		lane->decision[i].admitted = admitted;
		lane->decision[i].certainty = result & CHARGE_DECIDES && !lane->fitted
						      ? NRP_AMBIGUOUS_CHARGE
						      : NRP_CERTAIN;
		lane->admitted += admitted;
		lane->denied += !admitted;
		*(admitted ? &lane->admitted_pages : &lane->denied_pages) += a->pages;
		if (a->evidence == NRP_LIMITER_UNKNOWN)
			lane->unexplained += admitted;
		else
			lane->contradictions +=
				admitted != (a->evidence == NRP_LIMITER_ADMITTED);
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
		struct simulation sim;
		bool any = false;

		for (size_t n = 0; n < s->nodes; n++)
			any |= plausible[k * s->nodes + n];
		if (!any)
			continue;
		if (start_simulation(&sim, attempts, &lane->params) < 0)
			return -ENOMEM;
		for (size_t i = 0; i < attempts->count; i++) {
			const struct nrp_attempt *a = &attempts->at[i];
			int result = step(&sim, a, &start);

			if (plausible[k * s->nodes + (size_t)a->nid] &&
			    (result & ADMIT) != lane->decision[i].admitted &&
			    lane->decision[i].certainty == NRP_CERTAIN)
				lane->decision[i].certainty = NRP_AMBIGUOUS_START;
		}
		free(sim.node);
	}
	return 0;
}

/* Attempts looked back at for those still in flight. */
#define RACE_REACH 16

/* A node's window before each of its last attempts. */
struct history {
	struct nrp_ratelimit_window before[RACE_REACH];
	size_t attempt[RACE_REACH];
	size_t count;
};

/*
 * A window of node a->nid expired at attempt @i. Refused attempts that were still in flight when the tick changed
 * may have reached the limiter after the change.
 */
static void mark_tick_races(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts,
			    size_t i, uint64_t old_end)
{
	uint64_t last_old_tick = 0;
	size_t from = i > RACE_REACH ? i - RACE_REACH : 0;

	for (size_t k = from; k < i; k++)
		if ((int64_t)(attempts->at[k].jiffies - old_end) <= 0)
			last_old_tick = attempts->at[k].time;
	for (size_t k = from; k < i; k++) {
		const struct nrp_attempt *a = &attempts->at[k];

		if (a->nid == attempts->at[i].nid && !lane->decision[k].admitted &&
		    a->jiffies == old_end && a->end_time >= last_old_tick)
			lane->decision[k].certainty = NRP_AMBIGUOUS_RACE;
	}
}

#define MAX_OUTCOMES 256

/* Attempts in flight together with the newest of @h: those that any interleaving decides otherwise. */
static int mark_overlap(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts,
			const struct history *h)
{
	struct nrp_ratelimit_outcome outcomes[MAX_OUTCOMES];
	uint64_t jiffies[NRP_RATELIMIT_RACERS], pages[NRP_RATELIMIT_RACERS], sum = 0;
	size_t call[NRP_RATELIMIT_RACERS], n = 0;
	struct nrp_ratelimit_window before = { 0 };
	uint8_t any = 0, all = 0xff;
	bool expires = false;
	int found;

	/* Newest first: the newest, and the older ones that had not ended when it began. */
	for (size_t k = 0; k < RACE_REACH && k < h->count && n < NRP_RATELIMIT_RACERS; k++) {
		size_t slot = (h->count - 1 - k) % RACE_REACH;
		const struct nrp_attempt *a = &attempts->at[h->attempt[slot]];
		const struct nrp_attempt *newest =
			&attempts->at[h->attempt[(h->count - 1) % RACE_REACH]];

		if (k > 0 && a->end_time < newest->time)
			continue;
		call[n] = h->attempt[slot];
		jiffies[n] = a->jiffies;
		pages[n] = a->pages;
		sum += a->pages;
		before = h->before[slot];
		expires |= (int64_t)(a->jiffies - before.end) > 0;
		n++;
	}
	/* Far from the quota and from the window's end the order is no matter. */
	if (n < 2 || (!expires && (before.pages > lane->params.quota ||
				   before.pages + sum <= lane->params.quota)))
		return 0;
	found = nrp_ratelimit_race(&lane->params, before, jiffies, pages, n, outcomes,
				   MAX_OUTCOMES);
	if (found < 0)
		return found;
	for (int i = 0; i < found && i < MAX_OUTCOMES; i++) {
		any |= outcomes[i].admitted;
		all &= outcomes[i].admitted;
	}
	for (size_t k = 0; k < n; k++)
		if ((any & ~all) >> k & 1)
			lane->decision[call[k]].certainty = NRP_AMBIGUOUS_RACE;
	return 0;
}

/* Pages that races may have charged to a window in addition, or not at all. */
struct slack {
	uint64_t extra, less;
};

static void add_slack(struct slack *s, const struct nrp_ratelimit_lane *lane,
		      const struct nrp_attempts *attempts, size_t i)
{
	if (lane->decision[i].certainty != NRP_AMBIGUOUS_RACE)
		return;
	if (lane->decision[i].admitted)
		s->less += attempts->at[i].pages;
	else
		s->extra += attempts->at[i].pages;
}

/*
 * A racer that was charged to the other window moves the edge of the quota: decisions that close
 * to it may have gone the other way.
 */
static int mark_edges(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts)
{
	uint64_t quota = lane->params.quota;
	struct slack *slack = calloc((size_t)attempts->nr_nodes + 1, sizeof(*slack));
	struct simulation sim;

	if (!slack || start_simulation(&sim, attempts, &lane->params) < 0) {
		free(slack);
		return -ENOMEM;
	}
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		struct node *node = &sim.node[a->nid];
		struct slack *s = &slack[a->nid];
		uint64_t windows = node->windows, charged;

		step(&sim, a, &lane->start[a->nid]);
		if (node->windows != windows) {
			*s = (struct slack){ 0, 0 };
			for (size_t k = i > RACE_REACH ? i - RACE_REACH : 0; k < i; k++)
				if (attempts->at[k].nid == a->nid)
					add_slack(s, lane, attempts, k);
			s->less = 0; /* what was admitted before belongs to the old window */
		}
		charged = node->central.pages - (lane->decision[i].admitted ? a->pages : 0);
		if (lane->decision[i].certainty != NRP_CERTAIN) {
			add_slack(s, lane, attempts, i);
		} else if (lane->decision[i].admitted) {
			if (charged + s->extra > quota)
				lane->decision[i].certainty = NRP_AMBIGUOUS_RACE;
		} else if (charged <= quota + s->less && s->less) {
			/* Room for so many refused pages more, and then no longer. */
			lane->decision[i].certainty = NRP_AMBIGUOUS_RACE;
			s->less -= s->less < a->pages ? s->less : a->pages;
		}
	}
	free(sim.node);
	free(slack);
	return 0;
}

/*
 * A gap may hide attempts: decisions of the window that it touches are open. On the grid the next
 * window is clean; a stretched window begins at an unknown tick until the node was idle for longer than one.
 */
static int mark_losses(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts)
{
	struct node_loss {
		bool unsure, seen;
		uint64_t end, last;
	} *node;
	bool grid = nrp_ratelimit_on_grid(lane->params.variant);
	struct simulation sim;
	uint64_t last = 0; /* end of the losses so far */
	size_t next = 0;

	if (!attempts->nr_losses || lane->params.variant == NRP_RATELIMIT_NONE)
		return 0;
	node = calloc((size_t)attempts->nr_nodes + 1, sizeof(*node));
	if (!node || start_simulation(&sim, attempts, &lane->params) < 0) {
		free(node);
		return -ENOMEM;
	}
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		struct node_loss *n = &node[a->nid];
		bool inside, begins = false;

		step(&sim, a, &lane->start[a->nid]);
		if (n->unsure && (grid ? sim.node[a->nid].central.end != n->end
				       : a->jiffies - n->last > lane->params.interval + 1))
			n->unsure = false;
		n->end = sim.node[a->nid].central.end;
		n->last = a->jiffies;
		for (; next < attempts->nr_losses && attempts->loss[next].from <= a->time; next++) {
			begins = true;
			if (attempts->loss[next].to > last)
				last = attempts->loss[next].to;
		}
		for (int k = 0; begins && k < attempts->nr_nodes; k++)
			node[k].unsure = true;
		inside = next > 0 && last >= a->time;
		if (n->unsure || inside)
			lane->decision[i].certainty = NRP_AMBIGUOUS_LOSS;
		n->unsure |= inside;
	}
	free(sim.node);
	free(node);
	return 0;
}

/* What races and losses leave open widens the bounds of the admitted count. */
static void count_open(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts)
{
	for (size_t i = 0; i < attempts->count; i++) {
		uint8_t certainty = lane->decision[i].certainty;

		if (certainty == NRP_AMBIGUOUS_RACE || certainty == NRP_AMBIGUOUS_LOSS) {
			lane->races += certainty == NRP_AMBIGUOUS_RACE;
			if (lane->decision[i].admitted)
				lane->admitted_min -= lane->admitted_min > 0;
			else
				lane->admitted_max++;
		}
		lane->ambiguous += certainty != NRP_CERTAIN;
	}
}

static int mark_races(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts)
{
	struct history *history;
	struct simulation sim;
	int r = 0;

	if (lane->params.variant == NRP_RATELIMIT_NONE)
		return 0;
	history = calloc((size_t)attempts->nr_nodes + 1, sizeof(*history));
	if (!history || start_simulation(&sim, attempts, &lane->params) < 0) {
		free(history);
		return -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		struct node *node = &sim.node[a->nid];
		struct history *h = &history[a->nid];
		struct nrp_ratelimit_window before = node->central;
		bool seen = node->seen;

		step(&sim, a, &lane->start[a->nid]);
		if (!seen)
			before = nrp_ratelimit_first_window(&lane->params, &lane->start[a->nid],
							    a->jiffies, sim.grid_origin);
		h->before[h->count % RACE_REACH] = before;
		h->attempt[h->count++ % RACE_REACH] = i;
		if (seen && node->central.end != before.end)
			mark_tick_races(lane, attempts, i, before.end);
		r = mark_overlap(lane, attempts, h);
	}
	free(sim.node);
	free(history);
	return r == 0 ? mark_edges(lane, attempts) : r;
}

void nrp_ratelimit_lane_clear(struct nrp_ratelimit_lane *lane)
{
	free(lane->decision);
	free(lane->start);
	memset(lane, 0, sizeof(*lane));
}

/* No window can hold more than the quota: every start admits everything. */
static void admit_all(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts,
		      bool is_host)
{
	for (int n = 0; n < attempts->nr_nodes; n++)
		lane->start[n] = nrp_ratelimit_start_at(&lane->params, 0);
	for (size_t i = 0; i < attempts->count; i++) {
		lane->decision[i].admitted = 1;
		lane->admitted_pages += attempts->at[i].pages;
	}
	lane->starts_left = nrp_ratelimit_nr_starts(&lane->params);
	lane->admitted = lane->admitted_min = lane->admitted_max = attempts->count;
	lane->contradictions = attempts->denied;
	lane->unexplained = attempts->unknown;
	lane->fitted = is_host && lane->contradictions <= nrp_ratelimit_fit_tolerance(
								 attempts->count - attempts->unknown);
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
	lane.no_denial_possible = params->variant == NRP_RATELIMIT_NONE ||
				  lane.max_pages_two_windows <= params->quota;
	lane.decision = calloc(attempts->count + 1, sizeof(*lane.decision));
	lane.start = calloc((size_t)attempts->nr_nodes + 1, sizeof(*lane.start));
	if (!lane.decision || !lane.start)
		goto nomem;
	if (lane.no_denial_possible) {
		admit_all(&lane, attempts, is_host);
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
	    mark_races(&lane, attempts) < 0 || mark_losses(&lane, attempts) < 0)
		goto nomem;
	count_open(&lane, attempts);
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

/* ---- the host's quota ------------------------------------------------------------------------ */

struct constraint {
	uint64_t pages; /* charged when the kernel answered */
	bool admitted;
};

static int by_pages(const void *x, const void *y)
{
	const struct constraint *a = x, *b = y;

	return (a->pages > b->pages) - (a->pages < b->pages);
}

/*
 * The windows do not depend on R, so the kernel's own admissions give the pages charged at every
 * attempt. Collects what each answer says; returns the number of constraints.
 */
static size_t collect(struct constraint *c, struct simulation *sim,
		      const struct nrp_attempts *attempts, const struct nrp_ratelimit_start *start,
		      bool with_first_window, bool *ret_refused)
{
	size_t n = 0;

	*ret_refused = false;
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		struct node *node = &sim->node[a->nid];

		step(sim, a, start);
		node->central.pages -= a->pages; /* as it was when the kernel compared */
		if (a->evidence != NRP_LIMITER_UNKNOWN && (with_first_window || node->windows > 1)) {
			c[n].pages = node->central.pages;
			c[n].admitted = a->evidence == NRP_LIMITER_ADMITTED;
			*ret_refused |= !c[n].admitted;
			n++;
		}
		if (a->evidence == NRP_LIMITER_ADMITTED)
			node->central.pages += a->pages;
	}
	return n;
}

/* Admitted: charged <= R. Denied: charged > R. The R with the least violations. */
static void least_violations(struct constraint *c, size_t n, uint64_t *ret_min, uint64_t *ret_max)
{
	size_t admitted_above = 0, denied_below = 0, least = SIZE_MAX;

	qsort(c, n, sizeof(*c), by_pages);
	for (size_t i = 0; i < n; i++)
		admitted_above += c[i].admitted;
	/* R from c[i].pages to just below the next: everything up to i passes, the rest fails. */
	for (size_t i = 0; i < n; i++) {
		if (c[i].admitted)
			admitted_above--;
		else
			denied_below++;
		if (i + 1 < n && c[i + 1].pages == c[i].pages)
			continue;
		if (admitted_above + denied_below < least) {
			least = admitted_above + denied_below;
			*ret_min = c[i].pages;
			*ret_max = i + 1 < n ? c[i + 1].pages - 1 : UINT64_MAX;
		}
	}
}

int nrp_ratelimit_fit_quota(const struct nrp_attempts *attempts,
			    const struct nrp_ratelimit_params *params,
			    const struct nrp_ratelimit_start *start, uint64_t *ret_min,
			    uint64_t *ret_max, bool *ret_refused, struct nrp_error *err)
{
	struct nrp_ratelimit_params open = *params;
	struct constraint *c = calloc(attempts->count + 1, sizeof(*c));
	bool refused = false;

	open.quota = UINT64_MAX - UINT32_MAX;
	if (!c)
		return nrp_fail_nomem(err);
	for (int with_first = 0; with_first < 2 && !refused; with_first++) {
		struct simulation sim;
		size_t n;

		if (start_simulation(&sim, attempts, &open) < 0) {
			free(c);
			return nrp_fail_nomem(err);
		}
		n = collect(c, &sim, attempts, start, with_first, &refused);
		free(sim.node);
		if (refused)
			least_violations(c, n, ret_min, ret_max);
	}
	free(c);
	*ret_refused = refused;
	return 0;
}
