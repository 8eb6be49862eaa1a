/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The locality book: how often pages are touched from each node, and for how long they lie
 * elsewhere.
 *
 * Armed entries are censored survival observations: a scan range arms them, and a hinting fault
 * ends the observation (a touch, from a node), or the end of the capture does. The touch rate of a
 * VMA from a node is touches / armed page-seconds; remote_accesses is that rate times the
 * page-seconds for which the pages are remote. It is a lower estimate: of an armed page only the
 * first touch is seen.
 *
 * Pages of one address space have a user: the node of the last fault (held-previous) or of the next
 * one (held-next). They are remote while they lie on another node. Armed page-seconds go to the
 * node whose fault ended them; those that none ended, to all in proportion.
 *
 * Pages of several address spaces (joined VMAs) have all of these as users at once, each where its
 * threads are: a single-threaded process never arms pages that are local to it, so the last fault
 * says nothing of those that use the page where it is. Others may map the pages unseen: the bounds
 * allow for users on any node. Armed page-seconds go to the nodes where the
 * address space that armed them has threads.
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

/*
 * Number of the VMA of an address space that begins at @start; < 0: -ENOMEM. Its largest end and
 * its newest flags stay.
 */
int64_t nrp_locality_vma(struct nrp_locality *book, uint32_t mm, uint64_t start, uint64_t end,
			 uint64_t flags);
/* Both VMAs map the same pages. */
void nrp_locality_join(struct nrp_locality *book, uint32_t a, uint32_t b);

/* @pages entries of the VMA were armed. */
void nrp_locality_arm(struct nrp_locality *book, uint32_t vma, const struct nrp_presence *presence,
		      double now, double pages);
/* A fault on @pages armed pages, from node @nid, @armed seconds after the newest range over it. */
void nrp_locality_touch(struct nrp_locality *book, uint32_t vma, double now, double pages, int nid,
			double armed);
/*
 * Must be called before a presence clock of address space @mm starts or stops: what was touched
 * since the last time is put down with the clocks as they are.
 */
void nrp_locality_settle(struct nrp_locality *book, uint32_t mm,
			 const struct nrp_presence *presence);

/*
 * Page-seconds for which pages were remote to their user @nid, on record. @last: after a page's
 * last fault, where there is no next one.
 */
void nrp_locality_held(struct nrp_locality *book, uint32_t vma, int nid, double previous,
		       double next, bool last);
/* The same in a world, minus what it is on record. */
int nrp_locality_held_differs(struct nrp_locality *book, uint32_t vma, int world, int nid,
			      double previous, double next, bool last);
/*
 * Squares of the page-seconds of one page between two faults for which it lies elsewhere in a
 * world, or the sum of such squares.
 */
int nrp_locality_uncertain(struct nrp_locality *book, uint32_t vma, int world, double squares);
/* A fault on a page of the VMA from node @nid. @last: node of the page's last fault, -1: none. */
void nrp_locality_fault(struct nrp_locality *book, uint32_t vma, int nid, int last);
/* Pages come to lie on @nid on record (@now negative), or leave it. */
void nrp_locality_lie(struct nrp_locality *book, uint32_t vma, int nid, double pages, double now);
/* In a world, pages come to lie on @nid while the record has them on @recorded, or no longer. */
int nrp_locality_lie_differs(struct nrp_locality *book, uint32_t vma, int world, int nid,
			     int recorded, double pages, double now);

/* Ends all observations at @now. */
int nrp_locality_finish(struct nrp_locality *book, struct nrp_address_spaces *spaces, double now);

/* ---- results, after nrp_locality_finish() ------------------------------------------- */

struct nrp_touch_rate {
	uint64_t mm, vm_start, vm_end; /* of the first VMA of joined ones */
	uint32_t address_spaces;       /* that map its pages, as far as known */
	int nid;                       /* accessing node */
	uint64_t touches;
	double armed_page_seconds;  /* observed */
	double remote_page_seconds; /* on record, held-previous */
	double rate, lower, upper;  /* touches per page-second; 95 % of sampling error */
	bool borrowed; /* no armed page was observed from this node: the rate of the VMA, of the
			  address space, or of the host, from all nodes */
};

/* A sum with its bounds. */
struct nrp_page_time {
	double value, lower,
		upper; /* by persistence; the least and the most of it and both holds */
};

struct nrp_remote {
	struct nrp_page_time residency; /* page-seconds; shared pages once per address space */
	struct nrp_page_time accesses;  /* touches; bounds with sampling error */
	double shared;    /* page-seconds of it that are of shared pages, and so modelled */
	double uncovered; /* page-seconds without any rate */
	double borrowed;  /* page-seconds with a borrowed rate */
	double covered;   /* page-seconds with a rate of their own */
};

/*
 * Touches per page-second of an address space, from all nodes (of the host, if it has none), and
 * its upper bound; 0: nobody knows.
 */
double nrp_locality_space_rate(const struct nrp_locality *book, int64_t space, double *ret_upper);
/* Walks the rates of all VMAs and nodes that matter: start with *position = 0; false: end. */
bool nrp_locality_rate(const struct nrp_locality *book, size_t *position,
		       struct nrp_touch_rate *ret);
/* In a world; @world -1: on record. */
int nrp_locality_remote(const struct nrp_locality *book, int world, struct nrp_remote *ret);
/* Record minus world, with the same rates and holds on both sides: bounds are of the difference. */
int nrp_locality_avoided(const struct nrp_locality *book, int world, struct nrp_remote *ret);

#endif
