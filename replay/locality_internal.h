/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the locality book share: locality.c keeps it, locality_remote.c reads it. */
#ifndef NRP_LOCALITY_INTERNAL_H
#define NRP_LOCALITY_INTERNAL_H

#include "replay/locality.h"
#include "replay/pages.h"

#include <math.h>

/* Page-seconds of one VMA and node. */
struct nrp_exposure {
	double armed;    /* of entries whose fault came from the node, since their newest range */
	double watched;  /* armed while the address space had a thread on the node */
	double held[2];  /* remote to a user on the node: held-previous, held-next */
	double tail;     /* of held-previous: after the last fault */
	double lying;    /* of pages that lie on the node */
	double mappings; /* address spaces with a thread on the node, mean over time (joined VMAs)
			  */
	uint64_t touches;
	uint64_t faults; /* touches, and faults on pages armed before the capture */
};

/* What a world has more of it. */
struct nrp_world_exposure {
	double held[2], tail, lying;
};

/* Touches and armed page-seconds, from all nodes. */
struct nrp_touch_pool {
	double touches, seconds;
};

struct nrp_vma {
	uint64_t start, end, flags;
	uint32_t mm;
	uint32_t leader; /* itself, or the VMA it was joined with */
	uint32_t address_spaces;
	double armed_pages; /* now */
	double armed;       /* page-seconds of all armed entries */
	/* Faults since the clocks last changed: pages, and pages times fault time. */
	double pending_pages, pending_time;
	bool dirty;
	uint64_t pairs, repeats;   /* faults on pages seen before; from the node of the last one */
	struct nrp_exposure *node; /* [nr_nodes] */
	double *uncertain;         /* [nr_worlds] squares of page-seconds, NULL: none */
	struct nrp_world_exposure *differs; /* [nr_worlds][nr_nodes], NULL: none */
	/* Of a leader, after the end: */
	double ended; /* page-seconds of entries whose fault came, from all nodes */
	struct nrp_touch_pool pool;
};

/* How users of an address space persist. */
struct nrp_habit {
	uint64_t pairs, repeats;           /* of its pages */
	uint64_t task_pairs, task_repeats; /* of its tasks */
	double chance;                     /* that two faults come from one node */
};

struct nrp_locality {
	int nr_nodes, nr_worlds;
	bool *inhabited; /* [nr_nodes] by pages or threads, after the end: numbers may have holes */
	int nr_inhabited; /* of these, at least 1 */
	struct nrp_vma *vmas;
	uint32_t count, room;
	struct nrp_pages *numbers; /* keyed by (mm, start): number + 1 */
	uint32_t *dirty;           /* VMAs with pending faults */
	uint32_t nr_dirty;
	struct nrp_touch_pool
		*pools; /* after the end: per address space, and of all in the last one */
	uint32_t nr_pools;
	struct nrp_habit *habits; /* per address space, after the end */
};

/* Less than a page-millisecond of observation says nothing. */
#define NRP_LEAST_PAGE_SECONDS 1e-3

/* The VMA that stands for all that were joined with it. */
static inline uint32_t nrp_locality_leader(const struct nrp_locality *b, uint32_t i)
{
	while (b->vmas[i].leader != i)
		i = b->vmas[i].leader;
	return i;
}

/* Do several address spaces map its pages? */
static inline bool nrp_vma_joined(const struct nrp_vma *v)
{
	return v->address_spaces > 1;
}

/*
 * Seconds of observation from a node. Of one address space: those that its faults ended, plus their
 * share of those that no fault ended.
 */
static inline double nrp_vma_observed(const struct nrp_vma *v, int n)
{
	if (nrp_vma_joined(v))
		return v->node[n].watched;
	if (v->ended <= 0)
		return 0;
	return v->node[n].armed * fmax(1, v->armed / v->ended);
}

#endif
