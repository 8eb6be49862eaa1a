/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of tiering.c. */
#ifndef NRP_TIERING_INTERNAL_H
#define NRP_TIERING_INTERNAL_H

#include "replay/tiering.h"

/* ---- tiering_age.c: when was a page armed? ------------------------------------------ */

struct nrp_arming; /* ranges so far, and each page's last fault */

/* Between which times, ns, a page was armed. */
struct nrp_armed {
	bool known;
	uint64_t from, to;
	uint64_t middle; /* of the range that armed it most likely */
};

struct nrp_arming *nrp_arming_new(void);
struct nrp_arming *nrp_arming_free(struct nrp_arming *arming);
/* A range is made PROT_NONE; in time order. */
int nrp_arming_add(struct nrp_arming *arming, const struct nrp_scan_range *range);
/*
 * A fault on the page of @pages base pages (of @page_size bytes): when was it armed? Remembers the
 * fault. -ENOMEM.
 */
int nrp_arming_fault(struct nrp_arming *arming, const struct nrp_hint_fault *fault,
		     uint64_t page_size, uint32_t pages, struct nrp_armed *ret);

/* ---- tiering_lane.c: one set of parameters ------------------------------------------ */

/* A fault on a slow node. */
struct nrp_slow_fault {
	uint64_t time; /* ns, of the decision */
	struct nrp_armed armed;
	uint32_t pages;
	int dst_nid;
	int answer;   /* of the kernel: 0, 1; -1: not on record */
	bool certain; /* the mode is on for sure, and no event was lost so far */
};

struct nrp_tiering_state; /* of one lane: targets, recent candidates */

/* @slack_ms: a tick; @margin: pages by which the kernel's counter may lag. NULL: no memory. */
struct nrp_tiering_state *nrp_tiering_state_new(const struct nrp_tiering_lane_params *params,
						const struct nrp_host_facts *facts,
						uint64_t first_time);
struct nrp_tiering_state *nrp_tiering_state_free(struct nrp_tiering_state *state);
int nrp_tiering_state_fault(struct nrp_tiering_state *state, const struct nrp_slow_fault *fault,
			    struct nrp_tiering_lane *lane);
/* Applies the rate limit to the upper bound. */
void nrp_tiering_state_finish(const struct nrp_tiering_state *state, struct nrp_tiering_lane *lane);

#endif
