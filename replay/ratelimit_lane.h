/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A rate-limiter lane over the recorded attempts, every decision judged where the page factually
 * was (E0 of spec migrate.md 6.2): interval simulation of the charged pages, unknown first
 * window, grid phase fitted to the evidence or carried.
 */
#ifndef NRP_RATELIMIT_LANE_H
#define NRP_RATELIMIT_LANE_H

#include "replay/attempts.h"
#include "replay/policies/migrate_ratelimit.h"

/* One assumption about the time before the capture. */
struct nrp_ratelimit_start {
	/*
	 * Stretched window: W of the node, in ticks after its first attempt; -1: expired, so that
	 * the first attempt opens a window. Grid: ticks from the capture's first attempt to the
	 * next end of a window, 0 .. I-1, the same for all nodes.
	 */
	int64_t first_end;
	bool exhausted; /* the quota of the window running at the first attempt is used up */
};

/* One attempt in the lane. */
enum nrp_certainty {
	NRP_CERTAIN,          /* the same under every start and charge that fits */
	NRP_AMBIGUOUS_CHARGE, /* depends on attempts of unknown charge */
	NRP_AMBIGUOUS_LOSS,   /* events were lost in or before its window */
	NRP_AMBIGUOUS_START,  /* depends on the unknown first window or grid phase */
	NRP_AMBIGUOUS_RACE /* in flight with another attempt at a window's end or the quota's edge
			    */
};

struct nrp_ratelimit_decision {
	uint8_t admitted;  /* under the chosen start */
	uint8_t certainty; /* enum nrp_certainty */
	bool first_window; /* in its node's first window, which may have begun before the capture */
};

struct nrp_ratelimit_lane {
	struct nrp_ratelimit_params params;
	struct nrp_ratelimit_start *start; /* [attempts->nr_nodes], chosen */
	bool fitted;             /* the evidence chose it: this lane is the host's own policy */
	bool no_denial_possible; /* every window holds at most the quota */
	size_t starts_left;      /* starts that fit the evidence equally well */
	struct nrp_ratelimit_decision *decision; /* [attempts->count] */
	uint64_t admitted, denied;               /* under the chosen start */
	uint64_t admitted_pages, denied_pages;
	uint64_t admitted_min, admitted_max; /* over starts and unknown charges, and races */
	uint64_t ambiguous;                  /* attempts whose decision is not certain */
	uint64_t races;                      /* of these: attempts in flight at a boundary */
	uint64_t contradictions;             /* chosen start against certain evidence */
	uint64_t unexplained;           /* admitted, but the attempt failed for unknown reason */
	uint64_t max_pages_in_window;   /* in any I+1 ticks, to one node */
	uint64_t max_pages_two_windows; /* in any 2(I+1) ticks */
};

/*
 * Runs the lane. @is_host: the lane is taken for the host's own policy, so that the capture's
 * evidence may choose the unknown start; it is used only if it also fits (see fitted). clear()
 * frees.
 */
int nrp_ratelimit_lane_run(struct nrp_ratelimit_lane *ret, const struct nrp_attempts *attempts,
			   const struct nrp_ratelimit_params *params, bool is_host,
			   struct nrp_error *err);
void nrp_ratelimit_lane_clear(struct nrp_ratelimit_lane *lane);

/*
 * Contradictions tolerated in a fit: races at window boundaries, which serial semantics cannot
 * reproduce, are at most this many of @certain attempts.
 */
uint64_t nrp_ratelimit_fit_tolerance(uint64_t certain);

/*
 * The quotas that the kernel's own answers imply under @params' variant and interval, started at
 * @start: least violations of "admitted -> charged <= R, denied -> charged > R" (pages), from
 * *ret_min to *ret_max. Each node's first window counts only if nothing else was refused. false in
 * *ret_refused: no attempt was refused, and there is no fit.
 */
int nrp_ratelimit_fit_quota(const struct nrp_attempts *attempts,
			    const struct nrp_ratelimit_params *params,
			    const struct nrp_ratelimit_start *start, uint64_t *ret_min,
			    uint64_t *ret_max, bool *ret_refused, struct nrp_error *err);

/*
 * Longest interval that is replayed, in ticks: 10 s at 1000 HZ. Every start is simulated over all
 * attempts, and there are two per tick of the interval.
 */
#define NRP_RATELIMIT_MAX_INTERVAL 10000

/* Number of starts that nrp_ratelimit_lane_run() considers, and the i-th of them. */
size_t nrp_ratelimit_nr_starts(const struct nrp_ratelimit_params *params);
struct nrp_ratelimit_start nrp_ratelimit_start_at(const struct nrp_ratelimit_params *params,
						  size_t i);

/*
 * A node's window just before its first attempt at @jiffies, under a start; @grid_origin is the
 * tick of the capture's first attempt to any node.
 */
struct nrp_ratelimit_window nrp_ratelimit_first_window(const struct nrp_ratelimit_params *params,
						       const struct nrp_ratelimit_start *start,
						       uint64_t jiffies, uint64_t grid_origin);

#endif
