/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decisions of a rate-limiter lane that calls in flight together, or lost events, leave open. */
#include "replay/ratelimit_internal.h"

#include <errno.h>
#include <stdlib.h>

/* Attempts looked back at for those still in flight. */
#define RACE_REACH 16

/* A node's window before each of its last attempts. */
struct history {
	struct nrp_ratelimit_window before[RACE_REACH];
	size_t attempt[RACE_REACH];
	size_t count;
};

/*
 * A window of node a->nid expired at attempt @i. Refused attempts that were still in flight when
 * the tick changed may have reached the limiter after the change.
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

/* Attempts in flight together with the newest of @h: those that any interleaving decides otherwise.
 */
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
	struct nrp_limiter_simulation sim;

	if (!slack || nrp_limiter_start(&sim, attempts, &lane->params) < 0) {
		free(slack);
		return -ENOMEM;
	}
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		struct nrp_limiter_node *node = &sim.node[a->nid];
		struct slack *s = &slack[a->nid];
		uint64_t windows = node->windows, charged;

		nrp_limiter_step(&sim, a, &lane->start[a->nid]);
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
 * window is clean; a stretched window begins at an unknown tick until the node was idle for longer
 * than one.
 */
int nrp_limiter_mark_losses(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts)
{
	struct node_loss {
		bool unsure, seen;
		uint64_t end, last;
	} * node;
	bool grid = nrp_ratelimit_on_grid(lane->params.variant);
	struct nrp_limiter_simulation sim;
	uint64_t last = 0; /* end of the losses so far */
	size_t next = 0;

	if (!attempts->nr_losses || lane->params.variant == NRP_RATELIMIT_NONE)
		return 0;
	node = calloc((size_t)attempts->nr_nodes + 1, sizeof(*node));
	if (!node || nrp_limiter_start(&sim, attempts, &lane->params) < 0) {
		free(node);
		return -ENOMEM;
	}
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		struct node_loss *n = &node[a->nid];
		bool inside, begins = false;

		nrp_limiter_step(&sim, a, &lane->start[a->nid]);
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
void nrp_limiter_count_open(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts)
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

int nrp_limiter_mark_races(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts)
{
	struct history *history;
	struct nrp_limiter_simulation sim;
	int r = 0;

	if (lane->params.variant == NRP_RATELIMIT_NONE)
		return 0;
	history = calloc((size_t)attempts->nr_nodes + 1, sizeof(*history));
	if (!history || nrp_limiter_start(&sim, attempts, &lane->params) < 0) {
		free(history);
		return -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		struct nrp_limiter_node *node = &sim.node[a->nid];
		struct history *h = &history[a->nid];
		struct nrp_ratelimit_window before = node->central;
		bool seen = node->seen;

		nrp_limiter_step(&sim, a, &lane->start[a->nid]);
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
