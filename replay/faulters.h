/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages by the number of nodes whose threads faulted on them. */
#ifndef NRP_FAULTERS_H
#define NRP_FAULTERS_H

#include <stdint.h>

#define NRP_MAX_FAULTER_NODES 16 /* so many or more */

struct nrp_faulters {
	struct {
		uint64_t pages, faults;
	} of[NRP_MAX_FAULTER_NODES + 1]; /* by distinct nodes; 0: none is known */
};

/* A page with @faults; bit n of @nodes: some from node n. */
static inline void nrp_faulters_add(struct nrp_faulters *f, uint32_t nodes, uint32_t faults)
{
	int n = __builtin_popcount(nodes);

	if (!faults)
		return;
	if (n > NRP_MAX_FAULTER_NODES)
		n = NRP_MAX_FAULTER_NODES;
	f->of[n].pages++;
	f->of[n].faults += faults;
}

#endif
