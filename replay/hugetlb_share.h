/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who shares a page table with whom, and what system calls and faults do to shared ones: the
 * kernel's rules on mappings of files (spec mmap-hugetlb.md 2.2, 2.3). Pages are those of a file:
 * every mapping of the same place of the same file has the same page.
 */
#ifndef NRP_HUGETLB_SHARE_H
#define NRP_HUGETLB_SHARE_H

#include "replay/hugetlb_tables.h"

struct nrp_hugetlb_rules {
	bool lazy_fork;     /* 6.0 and later: a child shares at its first touch */
	bool looks_at_uffd; /* 5.13 and later: no sharing with write-protect or minor faults */
	bool split_leaves;  /* 6.2 and later, stable: a split inside a slot ends its sharing */
};

struct nrp_hugetlb_mapping {
	uint64_t mm, start, end; /* bytes, whole huge pages */
	uint32_t file;           /* any number of it */
	uint64_t index;          /* huge pages in front of it in the file */
	uint64_t flags;          /* VM_*; those of locked memory make no difference */
	bool may_share;          /* MAP_SHARED */
	bool uffd;               /* registered for write-protect or minor faults */
};

struct nrp_hugetlb_share;

/* NULL: out of memory. */
struct nrp_hugetlb_share *nrp_hugetlb_share_new(const struct nrp_hugetlb_rules *rules);
struct nrp_hugetlb_share *nrp_hugetlb_share_free(struct nrp_hugetlb_share *s);

/* A new mapping, in a range without one. -ENOMEM; -EINVAL: not whole huge pages, or not free. */
int nrp_hugetlb_map(struct nrp_hugetlb_share *s, const struct nrp_hugetlb_mapping *mapping);
/* A touch of @addr: its page is there then. -ENOMEM; -EFAULT: nothing is mapped. */
int nrp_hugetlb_touch(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t addr);
int nrp_hugetlb_unmap(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start, uint64_t end);
int nrp_hugetlb_protect(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start, uint64_t end,
			uint64_t flags);
int nrp_hugetlb_register_uffd(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start,
			      uint64_t end);
int nrp_hugetlb_fork(struct nrp_hugetlb_share *s, uint64_t parent, uint64_t child);
void nrp_hugetlb_exit(struct nrp_hugetlb_share *s, uint64_t mm);
/* The page at @addr moves: of each table one user is left. -EFAULT: there is none. */
int nrp_hugetlb_move(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t addr);

const struct nrp_hugetlb_tables *nrp_hugetlb_share_tables(const struct nrp_hugetlb_share *s);
/*
 * Slots that could have used one of several tables: the kernel's order among these is not to be
 * known; here it is that of their places in the file, then that of mapping.
 */
uint64_t nrp_hugetlb_ambiguous(const struct nrp_hugetlb_share *s);

#endif
