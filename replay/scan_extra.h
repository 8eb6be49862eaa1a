/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ranges that only a lane's scanner arms, not the host's in the same pass: how many faults can that
 * add, and how many moves (spec scan.md 6, class 4; 7.2: present pages minus already armed)?
 *
 * A page that is armed on record at that time adds none: its next touch is the next recorded fault,
 * in the lane too. Of the others each may fault once per arming. What threads of one node use is
 * local after it moved, and stays so until one of them goes elsewhere: it moves at most once
 * between two arrivals of threads. Only pages that faults show under threads of several nodes at
 * once may move at each arming.
 */
#ifndef NRP_SCAN_EXTRA_H
#define NRP_SCAN_EXTRA_H

#include "replay/scan_lane.h"
#include "replay/worlds.h"

struct nrp_scan_extra;

/* @page_size in bytes. NULL: out of memory. */
struct nrp_scan_extra *nrp_scan_extra_new(uint64_t page_size);
struct nrp_scan_extra *nrp_scan_extra_free(struct nrp_scan_extra *extra);

/*
 * Records in time order; 0 or -ENOMEM. A pass of @mm begins on node @nid (< 0: unknown): what the
 * lane armed in the one before is judged now.
 */
int nrp_scan_extra_pass(struct nrp_scan_extra *extra, struct nrp_worlds *worlds, uint64_t mm,
			bool single_threaded, int nid);
/* The lane, perhaps, arms a range in the pass that has begun. */
int nrp_scan_extra_lane_range(struct nrp_scan_extra *extra,
			      const struct nrp_scan_lane_range *range);
int nrp_scan_extra_range(struct nrp_scan_extra *extra, const struct nrp_scan_range *range);
/* @worlds have not seen it yet. */
int nrp_scan_extra_fault(struct nrp_scan_extra *extra, struct nrp_worlds *worlds,
			 const struct nrp_hint_fault *fault);

/* Begins to fetch what a fault on virtual page @page needs. */
void nrp_scan_extra_prefetch(const struct nrp_scan_extra *extra, uint64_t mm, uint64_t page);

/* At the end of the capture, once. Base pages; moves are not more than faults. */
int nrp_scan_extra_finish(struct nrp_scan_extra *extra, struct nrp_worlds *worlds,
			  uint64_t *ret_faults, uint64_t *ret_moves);

#endif
