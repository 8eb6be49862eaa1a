/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tiering.promote lane: which hinting faults on pages of slow nodes each variant and set of
 * parameters would let through (spec migrate.md 2.6). A node without CPUs is taken for slow.
 *
 * What no capture shows: when a page was armed to the ms (only the scanned range that did it), free
 * memory of the target, candidates before the capture, and the threshold that they led to. So each
 * lane has bounds.
 */
#ifndef NRP_TIERING_H
#define NRP_TIERING_H

#include "numareplay/store.h"
#include "replay/policies/tiering_promote.h"

/* What is assumed about free memory of the target node. */
enum nrp_tiering_free {
	NRP_TIERING_FREE_UNKNOWN, /* any fault may have been let through for it */
	NRP_TIERING_FREE_NEVER    /* the target is full: the usual case where tiers matter */
};

struct nrp_tiering_lane_params {
	struct nrp_tiering_params policy; /* cpupid_bits 0: unknown, then all ages are open */
	enum nrp_tiering_free free;
};

struct nrp_tiering_count {
	uint64_t faults, pages;
};

struct nrp_tiering_lane {
	struct nrp_tiering_count lower; /* admitted whatever is unknown */
	struct nrp_tiering_count value; /* target full, threshold and limiter new at the start, page
					 * armed in the middle of its range */
	struct nrp_tiering_count upper;
	/* Against the kernel's own answers, where they are on record and the bounds decide. */
	uint64_t decisions, agree, disagree, undecided;
};

struct nrp_tiering {
	struct nrp_tiering_count slow; /* faults on slow nodes that came to the decision */
	uint64_t never_armed;          /* of these: no range on record armed the page */
	/*
	 * Nothing to decide: the mode is off, or no fault on a slow node is on record and no event
	 * was lost. All lanes are the same, exact.
	 */
	bool identical;
	bool tiers_known;              /* nodes without CPUs can be told */
	struct nrp_tiering_lane *lane; /* [nr_lanes], as the parameters */
	size_t nr_lanes;
};

/* @variant with the host's own settings; the kernel's defaults where they are not on record. */
int nrp_tiering_host_params(struct nrp_tiering_lane_params *ret, enum nrp_tiering_variant variant,
			    struct nrp_store *store, const struct nrp_capture *capture,
			    struct nrp_error *err);

/* Runs @n lanes over scan_range and hint_fault, each read once. clear() frees. */
int nrp_tiering_run(struct nrp_tiering *ret, struct nrp_store *store,
		    const struct nrp_capture *capture, const struct nrp_tiering_lane_params *params,
		    size_t n, struct nrp_error *err);
void nrp_tiering_clear(struct nrp_tiering *tiering);

#endif
