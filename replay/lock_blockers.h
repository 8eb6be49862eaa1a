/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who kept whom from the mmap_lock, on record. */
#ifndef NRP_LOCK_BLOCKERS_H
#define NRP_LOCK_BLOCKERS_H

#include "replay/lock_jobs.h"

#define NRP_LOCK_BLOCKERS 3

struct nrp_lock_blocker {
	uint64_t mm, granted;      /* ns */
	uint64_t held;             /* ns, for writing */
	uint64_t victims, wait_ns; /* requests that waited meanwhile, and how long in all */
	uint64_t length;           /* of a munmap: bytes */
	int32_t tid;
	bool munmap;
	int8_t call; /* NRP_CALL_*: the system call that it is part of; -1: not on record */
	uint64_t faults, readers, writers; /* of the victims; writers: unmaps, too */
	uint64_t lost_scans;               /* scans that found the lock taken meanwhile */
	struct {
		int32_t tid;
		enum nrp_lock_kind kind;
		uint64_t wait_ns; /* meanwhile */
	} worst;                  /* of the victims */
};

struct nrp_lock_blame {
	/* Waits of requests, ns, by what held the lock for writing meanwhile. */
	uint64_t behind_munmap, behind_writers;
	uint64_t behind_none;       /* others read, or the waiter had not woken up */
	uint64_t scans_behind_line; /* lost while nobody wrote: a writer waited in line */
	uint64_t longest_unmap;     /* bytes */
	uint64_t unmaps,
		contended_unmaps; /* contended: another task asked while it held the lock */
	struct nrp_lock_blocker top[NRP_LOCK_BLOCKERS]; /* by wait_ns, the longest first */
	size_t nr_top;
};

/* "munmap", "mbind", .. of NRP_CALL_*; of another number, such as -1, NULL. */
const char *nrp_lock_call_name(int call);

/*
 * Adds one address space's to @blame; waits up to @overhead ns are those of a lock that nobody has,
 * and are left out. -ENOMEM.
 */
int nrp_lock_blame_add(struct nrp_lock_blame *blame, const struct nrp_lock_mm *mm,
		       uint64_t overhead);

#endif
