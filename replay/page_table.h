/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages by address space and virtual page number: base pages, and folios as aligned head plus size.
 * A folio that splits is cut into aligned pieces with its history; base pages that become a
 * folio give way to it. Pages that several address spaces map are one page under several names.
 *
 * One page is one cache line; a look-up touches one line as a rule.
 */
#ifndef NRP_PAGE_TABLE_H
#define NRP_PAGE_TABLE_H

#include "replay/address_space.h"

struct nrp_page {
	uint64_t vfn;   /* virtual page number of the first base page */
	uint32_t mm;    /* number of the address space + 1; 0: free slot */
	uint32_t pages; /* base pages; 0: the page is no more */
	/* All below is the caller's, zero at first. */
	uint64_t last_time; /* ns; of its faults */
	uint64_t moved_at;  /* end of its last recorded move, 0: none */
	uint32_t cpupid;    /* in all worlds, if apart is set */
	uint32_t vma;
	uint32_t split;       /* number of its places in worlds, 0: where it is on record in all */
	int16_t nid;          /* as recorded, after the last fault */
	int16_t accessor;     /* node of the last fault's CPU */
	int16_t moved_from;   /* by its last recorded move */
	uint8_t mappings;     /* address spaces known to map it */
	bool seen;            /* has faulted */
	bool apart;           /* last_cpupid is not the recorded one in any world */
	float remote_seconds; /* page-seconds on another node than its accessor */
	float differs;        /* what the first world has more of them */
};

struct nrp_page_table;

/* What the caller does when a page gives rise to another one, or ends. */
struct nrp_page_table_ops {
	/* @piece got @page's state, and must get its own copy of what that points to; -ENOMEM. */
	int (*copy)(void *context, struct nrp_page *page, struct nrp_page *piece);
	/* @page is no more. @continued: its pieces have copies; else what it was ends here. */
	void (*end)(void *context, struct nrp_page *page, bool continued);
	void *context;
};

/* NULL: out of memory. @ops stays the caller's. */
struct nrp_page_table *nrp_page_table_new(const struct nrp_page_table_ops *ops);
struct nrp_page_table *nrp_page_table_free(struct nrp_page_table *table);

/*
 * The page that holds virtual page @vfn and has @pages base pages (0 or no power of two: unknown).
 * Splits what is larger, ends what is smaller. NULL: out of memory. Valid until the next call. @mm
 * is @number's address space.
 */
struct nrp_page *nrp_page_table_get(struct nrp_page_table *table, struct nrp_mm *mm,
				    uint32_t number, uint64_t vfn, uint32_t pages);
/* Fetches the cache line of a page that is soon asked for. */
void nrp_page_table_prefetch(const struct nrp_page_table *table, uint32_t number, uint64_t vfn);
/* The page that begins at @vfn, if it is found at once; NULL says nothing. */
const struct nrp_page *nrp_page_table_peek(const struct nrp_page_table *table, uint32_t number,
					   uint64_t vfn);
/* Without making one: NULL if no page holds @vfn. */
struct nrp_page *nrp_page_table_find(struct nrp_page_table *table, const struct nrp_mm *mm,
				     uint32_t number, uint64_t vfn);
/* Walks all pages, in a reproducible order: start with *position = 0; NULL: end. */
struct nrp_page *nrp_page_table_next(struct nrp_page_table *table, size_t *position);

#endif
