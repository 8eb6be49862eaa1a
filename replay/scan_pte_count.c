/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All faults of a capture under every variant. */
#include "replay/scan_pte_internal.h"
#include "replay/merge.h"

#include <errno.h>
#include <stdlib.h>

struct counting {
	struct nrp_scan_pte_lane *lane;
	struct nrp_scan_pte_counts *counts;
	struct nrp_scan_pte_policy policy[NRP_NR_SCAN_PTE_VARIANTS];
};

static int feed(void *context, enum nrp_record_kind kind, const void *row)
{
	const struct counting *counting = context;
	struct nrp_scan_pte_counts *counts = counting->counts;
	struct nrp_scan_pte_lane *l = counting->lane;
	enum nrp_scan_pte_answer answers[NRP_NR_SCAN_PTE_VARIANTS];
	int r;

	if (kind == NRP_TASK_LIFE)
		return nrp_scan_pte_lane_life(l, row);
	if (kind == NRP_SCAN_PASS)
		return nrp_scan_pte_lane_pass(l, row);
	if (kind == NRP_SCAN_RANGE)
		return nrp_scan_pte_lane_range(l, row);
	if (kind == NRP_PAGE_FAULT)
		return nrp_scan_pte_lane_page_fault(l, row);
	r = nrp_scan_pte_lane_fault(l, row, counting->policy, NRP_NR_SCAN_PTE_VARIANTS, answers);
	if (r < 0)
		return r;
	counts->faults++;
	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		counts->answers[v][answers[v]]++;
	return 0;
}

static int feed_all(struct nrp_scan_pte_lane *l, struct nrp_scan_pte_counts *counts,
		    struct nrp_store *store, int64_t capture_id, bool writes, struct nrp_error *err)
{
	static const struct nrp_merge_input inputs[] = {
		{ NRP_TASK_LIFE, ~UINT64_C(0) },
		{ NRP_SCAN_PASS, ~UINT64_C(0) },
		{ NRP_SCAN_RANGE, ~UINT64_C(0) },
		{ NRP_HINT_FAULT,
		  NRP_BIT(hint_fault, time) | NRP_BIT(hint_fault, tid) | NRP_BIT(hint_fault, mm) |
			  NRP_BIT(hint_fault, addr) | NRP_BIT(hint_fault, vm_start) |
			  NRP_BIT(hint_fault, vm_flags) | NRP_BIT(hint_fault, page) |
			  NRP_BIT(hint_fault, pages) | NRP_BIT(hint_fault, mapcount) |
			  NRP_BIT(hint_fault, refcount) | NRP_BIT(hint_fault, src_nid) |
			  NRP_BIT(hint_fault, attempt) | NRP_BIT(hint_fault, attempt_delay) },
		{ NRP_PAGE_FAULT, ~UINT64_C(0) }
	};
	struct counting counting = { .lane = l, .counts = counts };
	size_t n = sizeof(inputs) / sizeof(inputs[0]) - !writes;

	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		counting.policy[v] = nrp_scan_pte_policy((enum nrp_scan_pte_variant)v);
	return nrp_merge_each(store, capture_id, inputs, n, feed, &counting, err);
}

int nrp_scan_pte_lane_count(struct nrp_scan_pte_counts *ret, struct nrp_store *store,
			    const struct nrp_capture *capture, int host_variant,
			    struct nrp_scan_pte_proofs *learned, struct nrp_error *err)
{
	struct nrp_scan_pte_counts counts = { 0 };
	struct nrp_scan_pte_lane *l;
	int32_t own_references;
	int r;

	if (nrp_scan_pte_lane_new(&l, &capture->facts, host_variant) < 0)
		return nrp_fail_nomem(err);
	l->learned = learned;
	own_references = l->own_references;
	r = feed_all(l, &counts, store, capture->id, !capture->lost_events && !capture->loss_gaps,
		     err);
	if (learned && l->own_references != own_references)
		nrp_scan_pte_proofs_revoke(learned);
	nrp_scan_pte_lane_free(l);
	if (r == 0)
		*ret = counts;
	return r;
}

uint32_t nrp_scan_pte_possible_hosts(const struct nrp_scan_pte_counts *counts)
{
	uint32_t possible = 0;

	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		if (!counts->answers[v][NRP_FAULT_AVOIDED])
			possible |= 1u << v;
	return possible;
}
