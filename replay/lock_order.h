/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is the order in which a mmap_lock was granted on record one that its rule allows?
 *
 * The engine in mmap_lock.h hands a lock over in no time and lets every writer get in line at once;
 * on a real host its order drifts away from the record, as holds begin later. Here everything
 * happens when the record says, and each grant is asked for the rule behind it (spec
 * mmap-hugetlb.md 1.4): who asked first gets the lock first, but for
 *
 * - readers in line, who get it together when one of them is its head, past the writers between
 *   them (up to 5.2 only up to the first writer);
 * - a writer that spins, and so is in no line yet: a reader gets a lock that is held for reading at
 *   once. Nobody can do so when a writer is in line, so that a request that waits behind the writer
 *   shows that it is;
 * - a lock that stands free until a woken waiter runs: others may take it, from 5.11 on readers
 *   too, for 4 ms and as long as that waiter needs to wake up.
 */
#ifndef NRP_LOCK_ORDER_H
#define NRP_LOCK_ORDER_H

#include "replay/lock_jobs.h"

#define NRP_LOCK_HANDOFF 4000000 /* ns after which the kernel keeps the lock for a waiter */

struct nrp_lock_order_params {
	bool prefix; /* up to 5.2: readers together up to the first writer, and none steals */
	/* ns: two requests so close together are in no order, and one that is granted as fast found
	   no line */
	uint64_t at_once;
	uint64_t late; /* ns that a woken waiter may need to run */
};

struct nrp_lock_out_of_order {
	uint64_t mm, requested, granted; /* ns */
	int32_t tid, passed;             /* passed: who asked earlier, or holds the lock */
	bool write;
	const char *what;
};

#define NRP_LOCK_ORDER_LISTED 8

/* Each grant is counted once. */
struct nrp_lock_order {
	uint64_t grants;
	uint64_t in_line;      /* nobody who asked earlier was waiting */
	uint64_t together;     /* with readers in line, past writers */
	uint64_t spinning;     /* before a writer that was not in line yet */
	uint64_t stolen;       /* it stood free, and a waiter had not woken up */
	uint64_t against;      /* no rule allows it */
	uint64_t longest_spin; /* ns from a writer's request to the last reader that passed it so */
	struct nrp_lock_out_of_order
		listed[NRP_LOCK_ORDER_LISTED]; /* the first that are against it */
	size_t nr_listed;
};

/* Adds the grants of one address space to @order. -ENOMEM. */
int nrp_lock_order_add(struct nrp_lock_order *order, const struct nrp_lock_mm *mm,
		       const struct nrp_lock_order_params *params);

#endif
