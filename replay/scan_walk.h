/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A capture's scan passes and hinting faults in time order, with the VMA lists kept up to date. */
#ifndef NRP_SCAN_WALK_H
#define NRP_SCAN_WALK_H

#include "replay/scan_space.h"
#include "replay/scan_trace.h"

/*
 * Hinting faults of the address space while a pass ran: what one did in a VMA counts for the pass
 * only if it came before the pass did.
 */
struct nrp_scan_meanwhile {
	struct {
		struct nrp_hint_fault fault;
		size_t area;
		size_t next; /* later fault in the same VMA, NRP_NO_AREA: none */
	} * at;
	size_t count, room;
	size_t *first; /* [nr_areas of the space]: earliest fault in it, NRP_NO_AREA: none */
	size_t first_room;
};

struct nrp_scan_walk_ops {
	/*
	 * A pass that walked: @space has the VMAs that it met. The faults of @meanwhile are the
	 * callee's to apply. 0 or a negative errno.
	 */
	int (*pass)(void *context, size_t pass, struct nrp_scan_space *space,
		    const struct nrp_scan_meanwhile *meanwhile);
	/* A counted hinting fault in VMA @area of the space. */
	int (*fault)(void *context, uint32_t number, struct nrp_scan_space *space, size_t area,
		     const struct nrp_hint_fault *fault);
	void *context;
	size_t nr_lanes; /* of the spaces */
};

/* Walks a loaded trace once. The ops' own errors fill no @err; -ENOMEM is filled in here. */
int nrp_scan_walk(const struct nrp_scan_trace *trace, struct nrp_store *store,
		  const struct nrp_capture *capture, const struct nrp_scan_walk_ops *ops,
		  struct nrp_error *err);

/* What one pass covers, as far as ranges are taken to go. */
uint64_t nrp_scan_size_mb(const struct nrp_host_facts *facts);
/* What depends on scan_delay_ms; the host's ticks a second must be known. */
void nrp_scan_policy_delay(struct nrp_scan_vma_policy *policy, uint64_t ms,
			   const struct nrp_host_facts *facts);
/* What the host's settings and facts say, for a policy: sizes in bytes, delay in jiffies. */
int nrp_scan_policy_of(struct nrp_scan_vma_policy *ret, const struct nrp_host_facts *facts,
		       struct nrp_error *err);

#endif
