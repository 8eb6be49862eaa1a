/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The locality book: how often pages are touched from each node, and how long they lie on each.
 *
 * Armed pages are censored survival observations: an entry is armed by a scan range, and either a
 * hinting fault ends it (a touch, from a node) or the end of the capture does. Per VMA and
 * accessing node the touch rate is touches / armed page-seconds; page-seconds count for a node only
 * while the address space has a thread there. remote_accesses of a world is the rate times the
 * page-seconds that its pages lie elsewhere, summed over VMAs and nodes: a lower estimate of the
 * accesses, since at most the first touch of an armed page is seen.
 *
 * VMAs whose pages several address spaces map are joined, and use wall-clock time instead.
 *
 * Times are seconds from an origin of the caller's. All functions that return int: 0 or -ENOMEM.
 */
#ifndef NRP_LOCALITY_H
#define NRP_LOCALITY_H

#include "replay/address_space.h"

#include <stdint.h>

struct nrp_locality;

/* NULL: out of memory. */
struct nrp_locality *nrp_locality_new(int nr_nodes, int nr_worlds);
struct nrp_locality *nrp_locality_free(struct nrp_locality *book);

/* The VMA of an address space that begins at @start; < 0: -ENOMEM. Its newest end and flags stay.
 */
int64_t nrp_locality_vma(struct nrp_locality *book, uint32_t mm, uint64_t start, uint64_t end,
			 uint64_t flags);
/* Pages of both VMAs are the same pages from here on. */
void nrp_locality_join(struct nrp_locality *book, uint32_t a, uint32_t b);

/* @pages entries of the VMA were armed. */
void nrp_locality_arm(struct nrp_locality *book, uint32_t vma, const struct nrp_presence *presence,
		      double now, double pages);
/* A fault on @pages armed pages, from node @nid. */
void nrp_locality_touch(struct nrp_locality *book, uint32_t vma, double now, double pages, int nid);
/*
 * Must be called before a presence clock of address space @mm starts or stops: what was touched
 * since the last time is put down with the clocks as they are.
 */
void nrp_locality_settle(struct nrp_locality *book, uint32_t mm,
			 const struct nrp_presence *presence);

/* Pages come to lie on @nid (sign -1 of the clock), or leave it (+1), on record. */
void nrp_locality_resident(struct nrp_locality *book, uint32_t vma,
			   const struct nrp_presence *presence, double now, double pages, int nid,
			   bool enters);
/* The same for the first and last sight of pages, wherever they lie. */
void nrp_locality_seen(struct nrp_locality *book, uint32_t vma, const struct nrp_presence *presence,
		       double now, double pages, bool enters);
/* In a world, pages come to lie on @nid while the record has them on @recorded, or no longer. */
int nrp_locality_differs(struct nrp_locality *book, uint32_t vma, int world,
			 const struct nrp_presence *presence, double now, double pages, int nid,
			 int recorded, bool enters);

/* Ends all observations at @now. @spaces: the address spaces by number. */
int nrp_locality_finish(struct nrp_locality *book, struct nrp_address_spaces *spaces, double now);

/* ---- results, after nrp_locality_finish() ------------------------------------------- */

struct nrp_touch_rate {
	uint64_t mm, vm_start, vm_end; /* of the first VMA of joined ones */
	uint32_t address_spaces;       /* that map its pages, as far as known */
	int nid;                       /* accessing node */
	uint64_t touches;
	double armed_page_seconds;  /* observed */
	double remote_page_seconds; /* on record */
	double rate, lower, upper;  /* touches per page-second; 95 % of sampling error */
	bool borrowed; /* no armed page was observed from this node: the rate of the VMA, or of the
			  address space, from all nodes */
};

struct nrp_remote_accesses {
	double value, lower, upper; /* touches */
	double uncovered;           /* remote page-seconds without any rate */
	double borrowed;            /* remote page-seconds with a borrowed rate */
	double covered;             /* remote page-seconds with a rate of their own */
};

/* Walks the rates of all VMAs and nodes that matter: start with *position = 0; false: end. */
bool nrp_locality_rate(const struct nrp_locality *book, size_t *position,
		       struct nrp_touch_rate *ret);
/* @world -1: on record. */
int nrp_locality_remote(const struct nrp_locality *book, int world,
			struct nrp_remote_accesses *ret);
/* Record minus world, with the same rates on both sides: bounds are of the difference. */
int nrp_locality_avoided(const struct nrp_locality *book, int world,
			 struct nrp_remote_accesses *ret);
/* Touches and armed page-seconds over everything. */
void nrp_locality_total(const struct nrp_locality *book, uint64_t *ret_touches,
			double *ret_armed_page_seconds);

#endif
