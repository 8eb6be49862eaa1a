/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the parts of a rate-limiter lane: ratelimit_lane.c (starts, fit, decisions),
 * ratelimit_open.c (what races and losses leave open), ratelimit_quota.c (the host's quota).
 */
#ifndef NRP_RATELIMIT_INTERNAL_H
#define NRP_RATELIMIT_INTERNAL_H

#include "replay/ratelimit_lane.h"

/*
 * Interval simulation of one node: the same window ends, pages between those of low and of central,
 * which charges every attempt it admits.
 */
struct nrp_limiter_node {
	bool seen;
	bool apart;       /* low is not what central is */
	uint64_t windows; /* begun so far, the one at the first attempt included */
	struct nrp_ratelimit_window central, low;
};

struct nrp_limiter_simulation {
	const struct nrp_ratelimit_params *params;
	struct nrp_limiter_node *node;
	uint64_t grid_origin;
};

enum { NRP_STEP_DENY = 0, NRP_STEP_ADMIT = 1, NRP_STEP_CHARGE_DECIDES = 2 };

/* Begins a simulation of all nodes; -ENOMEM. Free sim->node. */
int nrp_limiter_start(struct nrp_limiter_simulation *sim, const struct nrp_attempts *attempts,
		      const struct nrp_ratelimit_params *params);
/*
 * One attempt: bit NRP_STEP_ADMIT is the central decision (every admitted attempt is charged),
 * NRP_STEP_CHARGE_DECIDES is set where attempts of unknown charge make the difference.
 */
int nrp_limiter_step(struct nrp_limiter_simulation *sim, const struct nrp_attempt *a,
		     const struct nrp_ratelimit_start *start);

/* Marks the decisions that races and losses leave open; -ENOMEM. */
int nrp_limiter_mark_races(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts);
int nrp_limiter_mark_losses(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts);
/* Counts what is open and widens the bounds of the admitted count by it. */
void nrp_limiter_count_open(struct nrp_ratelimit_lane *lane, const struct nrp_attempts *attempts);

#endif
