/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page tables of hugetlb mappings that processes may share, and the pages in them, with every
 * count that a hugetlb.count variant looks at (spec mmap-hugetlb.md 2.1, 2.3). It knows neither
 * records nor who shares with whom: replay/hugetlb_share.h decides that by the kernel's rule,
 * replay/hugetlb_lane.h reads it from the record.
 *
 * A slot is 1 GiB of one address space, a table has NRP_HUGETLB_ENTRIES entries of 2 MiB each.
 * Numbers of tables and pages are the caller's.
 */
#ifndef NRP_HUGETLB_TABLES_H
#define NRP_HUGETLB_TABLES_H

#include "replay/policies/hugetlb_count.h"

#include <stddef.h>

#define NRP_HUGETLB_ENTRIES 512
#define NRP_HUGETLB_SIZE (UINT64_C(2) << 20)
#define NRP_HUGETLB_SLOT (UINT64_C(1) << 30)
#define NRP_HUGETLB_NO_PAGE UINT64_MAX

/* What the variant `adjusted` would have cost: a table is looked through at each use and disuse. */
struct nrp_hugetlb_work {
	uint64_t shares, unshares; /* uses of a table that another slot uses */
	uint64_t entries;          /* entries looked at: NRP_HUGETLB_ENTRIES of each of them */
	uint64_t updates;          /* pages whose counts change then; each has two counts */
	uint64_t installs; /* pages that come into a table in use by several: one more each */
};

struct nrp_hugetlb_tables;

/* NULL: out of memory. */
struct nrp_hugetlb_tables *nrp_hugetlb_tables_new(void);
struct nrp_hugetlb_tables *nrp_hugetlb_tables_free(struct nrp_hugetlb_tables *t);

/* Table of the slot at @addr; 0: none. */
uint64_t nrp_hugetlb_table(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr);
/* The slot, which has no table, uses @table (not 0), a new one or another slot's. -ENOMEM. */
int nrp_hugetlb_attach(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr, uint64_t table);
/* The slot's table is not used by it any more; the last user takes its pages out. */
void nrp_hugetlb_detach(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr);
/* All slots of an address space. */
void nrp_hugetlb_detach_all(struct nrp_hugetlb_tables *t, uint64_t mm);

/*
 * What is unmapped between @start and @end: the slot leaves a shared table as a whole, other tables
 * lose their pages there (spec 2.3).
 */
void nrp_hugetlb_clear_range(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t start,
			     uint64_t end);

/* Page at @addr; NRP_HUGETLB_NO_PAGE: none. */
uint64_t nrp_hugetlb_page(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr);
/* Puts @page into the empty entry at @addr of the slot's table. -ENOMEM. */
int nrp_hugetlb_install(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr, uint64_t page);
/* The page there, if any, is @page, which other tables may have, too. -ENOMEM. */
int nrp_hugetlb_identify(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr, uint64_t page);
/* It moves: of each table that has it one user is left, and returns how many went. */
uint32_t nrp_hugetlb_unshare_page(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr);
/* Empties the entry. */
void nrp_hugetlb_take_out(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr);

/* Address space of user @i, from 0 on, of the table of the slot at @addr; 0 behind the last. */
uint64_t nrp_hugetlb_user_of(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr,
			     uint32_t i);
uint32_t nrp_hugetlb_sharers(const struct nrp_hugetlb_tables *t, uint64_t table);
/* The page at @addr; false: there is none. */
bool nrp_hugetlb_look(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr,
		      struct nrp_hugetlb_view *ret);
/* Bytes that smaps calls private and shared between @start and @end. */
void nrp_hugetlb_smaps(const struct nrp_hugetlb_tables *t, enum nrp_hugetlb_variant variant,
		       uint64_t mm, uint64_t start, uint64_t end, uint64_t *ret_private,
		       uint64_t *ret_shared);

/* Each slot in turn, @i from 0 on; false behind the last. */
bool nrp_hugetlb_slot_at(const struct nrp_hugetlb_tables *t, size_t i, uint64_t *ret_mm,
			 uint64_t *ret_addr, uint64_t *ret_table);
const struct nrp_hugetlb_work *nrp_hugetlb_work(const struct nrp_hugetlb_tables *t);
/* Are all counts what the tables say? For tests: it looks at everything. */
bool nrp_hugetlb_counts_hold(const struct nrp_hugetlb_tables *t);

#endif
