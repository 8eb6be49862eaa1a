/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What another scanner makes of the recorded faults (spec scan.md 6, the censoring rule): a lane's
 * scan.vma policy arms other ranges, its scan.pte filter other pages in them. A recorded fault is
 * there in the lane if the lane armed its page since the page's last fault there. Pages that only
 * the lane arms may fault: at most once per arming.
 *
 * Pages that no fault ever showed, in VMAs that the host's scanner starved, are a model: a single
 * thread's scan that armed nothing passed over pages on its own node, so they lie there; they are
 * touched as often as what is known of the address space.
 */
#ifndef NRP_SCAN_EFFECTS_H
#define NRP_SCAN_EFFECTS_H

#include "replay/scan_lane.h"
#include "replay/scan_pte_lane.h"
#include "replay/worlds.h"

struct nrp_scan_effects;

/*
 * @lane: ranges that the lane arms; NULL: those of the record; it stays the caller's. @host_pte:
 * scan.pte variant of the host, or NRP_SCAN_PTE_HOST_UNKNOWN. @pte: the lane's filter; NULL: the
 * host's.
 */
int nrp_scan_effects_new(struct nrp_scan_effects **ret, const struct nrp_capture *capture,
			 const struct nrp_scan_lane *lane, int host_pte,
			 const struct nrp_scan_pte_policy *pte, struct nrp_error *err);
/* The lane's scanner leaves shared memory alone (scan.shmem SH0), which the host's may scan. */
void nrp_scan_effects_lose_shmem(struct nrp_scan_effects *effects);
/*
 * Until when (ns) the lane's filter certainly left the page of @addr alone, at all times since
 * @from; 0: not known.
 */
uint64_t nrp_scan_effects_refused_until(struct nrp_scan_effects *effects, uint64_t mm,
					uint64_t addr, uint64_t from);
/* What the whole capture shows of pages; NULL: nothing. Kept, not owned. */
void nrp_scan_effects_know(struct nrp_scan_effects *effects, struct nrp_scan_pte_proofs *proofs);
struct nrp_scan_effects *nrp_scan_effects_free(struct nrp_scan_effects *effects);

/* Records in time order; 0 or -ENOMEM. @worlds follow the same records. */
int nrp_scan_effects_life(struct nrp_scan_effects *effects, const struct nrp_task_life *life);
int nrp_scan_effects_pass(struct nrp_scan_effects *effects, struct nrp_worlds *worlds,
			  const struct nrp_scan_pass *pass);
/* Only if the lane has a filter of its own, and no event was lost. */
int nrp_scan_effects_page_fault(struct nrp_scan_effects *effects,
				const struct nrp_page_fault *fault);
int nrp_scan_effects_range(struct nrp_scan_effects *effects, struct nrp_worlds *worlds,
			   const struct nrp_scan_range *range);
/* Begins to fetch what a fault that comes soon needs. */
void nrp_scan_effects_prefetch(const struct nrp_scan_effects *effects,
			       const struct nrp_hint_fault *fault);
/* Is the fault there in the lane? @worlds have not seen it yet. */
int nrp_scan_effects_fault(struct nrp_scan_effects *effects, struct nrp_worlds *worlds,
			   const struct nrp_hint_fault *fault, enum nrp_armed *ret);

struct nrp_scan_effects_result {
	uint64_t ranges;         /* that the lane arms */
	uint64_t certain_ranges; /* of these: whatever the unknown facts are */
	uint64_t possible_ranges;
	uint64_t same_pages;    /* entries armed on record in ranges that the lane arms, too */
	uint64_t certain_pages; /* of these: certain */
	/* What ranges that only the lane (perhaps) arms can add at most (scan_extra.h): pages. */
	uint64_t extra_pages, extra_moves;
	uint64_t tasks; /* seen in the capture */
	/* Of pages that no fault showed: */
	double unseen_pages;                  /* in ranges that only the lane arms, once each */
	double armed;                         /* entries that the lane arms for these: model */
	double faults;                        /* that these add; each moves its page: model */
	double remote_before, remote_after;   /* page-seconds on another node than the threads */
	double remote_upper;                  /* of remote_before: every page resident */
	double touches_before, touches_after; /* remote accesses */
	double touches_upper; /* of touches_before: every page resident, the rate at its upper bound
			       */
	double unplaced_pages; /* nothing says where they lie: no estimate */
};

/* At the end of the capture, once, after nrp_worlds_finish(). 0 or -ENOMEM. */
int nrp_scan_effects_result(struct nrp_scan_effects *effects, struct nrp_worlds *worlds,
			    uint64_t end_time, struct nrp_scan_effects_result *ret);

#endif
