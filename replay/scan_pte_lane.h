/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.pte over a capture: would another variant have armed the entry that this hinting fault
 * answers? The test must hold when the scanner came by, the record shows the counts when the fault
 * came; spec scan.md 7.1 bridges the two.
 *
 * Fed in time order with task_life, scan_pass, scan_range and page_fault records, and asked once
 * per hint_fault. State per page and per 2 MiB of scanned address space; a fault costs O(1).
 */
#ifndef NRP_SCAN_PTE_LANE_H
#define NRP_SCAN_PTE_LANE_H

#include "numareplay/store.h"
#include "replay/policies/scan_pte.h"
#include "replay/scan_pte_proofs.h"

#define NRP_SCAN_PTE_HOST_UNKNOWN (-1)

enum nrp_scan_pte_answer {
	NRP_FAULT_KEPT,    /* the lane arms the entry too: the fault stays */
	NRP_FAULT_AVOIDED, /* it does not: there is no such fault */
	NRP_FAULT_UNKNOWN, /* the record does not say */
};

struct nrp_scan_pte_lane;

/*
 * @host_variant: enum nrp_scan_pte_variant that armed the recorded entries, or
 * NRP_SCAN_PTE_HOST_UNKNOWN; with a known one its own tests are facts about the time of the scan.
 */
int nrp_scan_pte_lane_new(struct nrp_scan_pte_lane **ret, const struct nrp_host_facts *facts,
			  int host_variant);
/* What the whole capture shows, learned by nrp_scan_pte_lane_count(); kept, not owned. */
void nrp_scan_pte_lane_know(struct nrp_scan_pte_lane *lane, struct nrp_scan_pte_proofs *proofs);
struct nrp_scan_pte_lane *nrp_scan_pte_lane_free(struct nrp_scan_pte_lane *lane);

/* Records in time order; 0 or -ENOMEM. */
int nrp_scan_pte_lane_life(struct nrp_scan_pte_lane *lane, const struct nrp_task_life *life);
int nrp_scan_pte_lane_pass(struct nrp_scan_pte_lane *lane, const struct nrp_scan_pass *pass);
/*
 * A write breaks copy-on-write: whoever writes has a page of its own from then on. Only for
 * captures that have all page faults; what no page fault shows (pages unmapped or reclaimed, writes
 * through other processes) is taken not to happen.
 */
int nrp_scan_pte_lane_page_fault(struct nrp_scan_pte_lane *lane,
				 const struct nrp_page_fault *fault);
int nrp_scan_pte_lane_range(struct nrp_scan_pte_lane *lane, const struct nrp_scan_range *range);
/* Begins to fetch what a fault on virtual page @page needs. */
void nrp_scan_pte_lane_prefetch(const struct nrp_scan_pte_lane *lane, uint64_t mm, uint64_t page);
/* The answer under each of @policy; also remembers the fault: ask once. @ret has nr_policies. */
int nrp_scan_pte_lane_fault(struct nrp_scan_pte_lane *lane, const struct nrp_hint_fault *fault,
			    const struct nrp_scan_pte_policy *policy, size_t nr_policies,
			    enum nrp_scan_pte_answer *ret);

/*
 * Until when (ns) the page of @addr in @mm was certainly shared, at all times since @from; 0: not
 * known. For what the page's own faults do not show: each process that is alive has it, if as many
 * map it.
 */
uint64_t nrp_scan_pte_lane_shared_until(struct nrp_scan_pte_lane *lane, uint64_t mm, uint64_t addr,
					uint64_t from);

/* All faults of a capture by their answers. */
struct nrp_scan_pte_counts {
	uint64_t faults;
	/* [variant][enum nrp_scan_pte_answer] */
	uint64_t answers[NRP_NR_SCAN_PTE_VARIANTS][3];
};

/* @learned takes what the capture shows of pages; NULL: nothing is kept. */
int nrp_scan_pte_lane_count(struct nrp_scan_pte_counts *ret, struct nrp_store *store,
			    const struct nrp_capture *capture, int host_variant,
			    struct nrp_scan_pte_proofs *learned, struct nrp_error *err);
/*
 * The variants that the host can be: bit v is clear if the host has a fault that v certainly
 * avoids. One bit: known; else it stays open.
 */
uint32_t nrp_scan_pte_possible_hosts(const struct nrp_scan_pte_counts *counts);

#endif
