/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the scanner did, and between which limits it could have done it under other decisions: scan
 * periods adapt to faults and refusals, so passes may have come as rarely as once per longest
 * period, or as densely as once per shortest.
 */
#ifndef NRP_SCAN_BOUNDS_H
#define NRP_SCAN_BOUNDS_H

#include "numareplay/store.h"
#include "replay/scan_cost.h"

struct nrp_scan_count {
	uint64_t passes, ranges, armed_pages;
};

struct nrp_scan_bounds {
	struct nrp_scan_count recorded;
	struct nrp_scan_count least; /* recorded passes that lie a longest period apart */
	uint64_t passes_most;        /* one per shortest period in every address space */
	uint64_t period_min_ms, period_max_ms;
	/* ns from begin to end of all passes; those whose end is not on record last open_ns at most
	 * until the capture ends. */
	uint64_t pass_ns, open_ns;
	uint64_t timed_passes; /* whose end is on record */
	bool has_cost;
	struct nrp_scan_cost_fit cost; /* of ranges */
	/*
	 * Entries of all recorded ranges that these did not arm: not resident, armed already, or
	 * left alone. Another test of entries arms at most so many more in the same ranges, each
	 * for one fault.
	 */
	uint64_t unarmed;
	bool unarmed_known; /* every range says how many it armed */
};

/* Reads the scan passes of a capture, twice, and their ranges. */
int nrp_scan_bounds_load(struct nrp_scan_bounds *ret, struct nrp_store *store,
			 const struct nrp_capture *capture, struct nrp_error *err);

#endif
