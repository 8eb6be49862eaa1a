/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hugetlb.count: the recorded life of hugetlb page tables, and what a walk that moves pages takes
 * of them under a variant (spec mmap-hugetlb.md 2.3 - 2.6).
 *
 * huge_pte_alloc() returns the address of an entry, so that the record says which slots share a
 * table: no rule has to be guessed. Sharing ends with unmaps, exits and moves of pages.
 */
#ifndef NRP_HUGETLB_LANE_H
#define NRP_HUGETLB_LANE_H

#include "numareplay/store.h"
#include "replay/hugetlb_tables.h"

#define NRP_HUGETLB_NODES 64

/* Entries that a walk with MOVE or MOVE_ALL came to, against what a variant says. */
struct nrp_hugetlb_tally {
	uint64_t agree, disagree;
	/* It would take the page, and the kernel left it: it may be where the call wants it. */
	uint64_t undecided;
};

/* One mapping, when smaps first said most of it. Bytes. */
struct nrp_hugetlb_vma {
	uint64_t mm, start, end;
	int32_t tid;                            /* a thread that touched it */
	uint64_t private, shared;               /* by the lane's variant */
	uint64_t actual_private, actual_shared; /* by the processes that reach its pages */
};

struct nrp_hugetlb_count {
	uint64_t value, lower, upper;
};

struct nrp_hugetlb_result {
	uint64_t faults, allocs, walks; /* on record; walks: calls that came to an entry */
	uint64_t decisions;             /* present entries in walks that may move */
	uint64_t unknown;               /* of these: the page's table was not seen to be filled */
	uint64_t isolated_record, moved_record;
	struct nrp_hugetlb_tally tally[NRP_NR_HUGETLB_VARIANTS]; /* in the lane's state */
	struct nrp_hugetlb_count isolated, migrated;             /* huge pages */
	uint64_t left_by_moves; /* slots that lost their table when pages moved */
	uint64_t surprises;     /* slots that turned up with another table than they had */
	uint64_t ns;            /* from the first record to the last */
	struct nrp_hugetlb_work work;
	/*
	 * Of the pages that the lane takes: those who share their table, by the node where each
	 * address space touched hugetlb pages last, one for each page; [NRP_HUGETLB_NODES]: others.
	 */
	uint64_t users[NRP_HUGETLB_NODES + 1];
	struct nrp_hugetlb_vma *vma; /* in the order of first touches */
	size_t nr_vmas;
	uint64_t private, shared, actual_private, actual_shared; /* sums over these */
};

/*
 * Reads task_life, mm_call and hugetlb. @observed: pages are isolated and moved as on record, else
 * as @variant says. nrp_hugetlb_result_clear() frees, always.
 */
int nrp_hugetlb_run(struct nrp_hugetlb_result *ret, struct nrp_store *store,
		    const struct nrp_capture *capture, enum nrp_hugetlb_variant variant,
		    bool observed, struct nrp_error *err);
void nrp_hugetlb_result_clear(struct nrp_hugetlb_result *result);

#endif
