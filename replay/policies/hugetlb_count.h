/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hugetlb.count: is a hugetlb page shared? Processes that share a page table (PMD sharing) map its
 * pages once, so that counts of mappings do not count processes (spec mmap-hugetlb.md 2.3, 2.4).
 */
#ifndef NRP_POLICY_HUGETLB_COUNT_H
#define NRP_POLICY_HUGETLB_COUNT_H

#include <stdbool.h>
#include <stdint.h>

enum nrp_hugetlb_variant {
	NRP_HUGETLB_MAPCOUNT,  /* mapcount alone: up to 6.1 */
	NRP_HUGETLB_PMD_CHECK, /* + is its table shared? 3489dbb696d2, 73bdf65ea748 */
	NRP_HUGETLB_ADJUSTED,  /* each sharer counts; proposed in 2023 */
	NRP_HUGETLB_PT_SHARE,  /* pmd-check with a counter of its own: 59d9094df3d7 */
	NRP_HUGETLB_ACTUAL,    /* processes that can reach it: no kernel has that */
	NRP_NR_HUGETLB_VARIANTS
};

const char *nrp_hugetlb_variant_name(enum nrp_hugetlb_variant variant);

/* A present page as seen through one entry of one table. */
struct nrp_hugetlb_view {
	uint32_t map;       /* entries that map it: each counts once, whoever shares its table */
	uint32_t adjusted;  /* each entry counts as often as its table is used */
	uint32_t sharers;   /* uses of this table, 1 or more */
	uint32_t processes; /* address spaces that can reach it */
};

/* Is it Shared_Hugetlb in smaps, or Private_Hugetlb? */
bool nrp_hugetlb_is_shared(enum nrp_hugetlb_variant variant, const struct nrp_hugetlb_view *view);
/* Do mbind() and migrate_pages() with MOVE take it? @move_all: they may move shared ones, too. */
bool nrp_hugetlb_is_isolated(enum nrp_hugetlb_variant variant, const struct nrp_hugetlb_view *view,
			     bool move_all);
/* Does move_pages() without MOVE_ALL refuse it with -EACCES? No kernel looks at its table there. */
bool nrp_hugetlb_is_refused(enum nrp_hugetlb_variant variant, const struct nrp_hugetlb_view *view);
/* Bit 56 of pagemap: mapped by nobody else. Up to 6.1 that looks at no table. */
bool nrp_hugetlb_is_exclusive(enum nrp_hugetlb_variant variant,
			      const struct nrp_hugetlb_view *view);
/* What kpagecount and the mapmax of numa_maps say. */
uint32_t nrp_hugetlb_mapcount(enum nrp_hugetlb_variant variant,
			      const struct nrp_hugetlb_view *view);

/* Who uses a page, and how much: any unit, the same for all. */
struct nrp_hugetlb_user {
	int nid; /* where it runs */
	uint64_t weight;
};

/* Remote uses of a page on node @nid. */
uint64_t nrp_hugetlb_remote(const struct nrp_hugetlb_user *users, uint32_t nr_users, int nid);

#endif
