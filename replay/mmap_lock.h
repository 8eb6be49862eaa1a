/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One address space's mmap_lock (a rw_semaphore) as a discrete-event model: who gets it when, if
 * unmaps hold it as a munmap.lock variant says (spec mmap-hugetlb.md 1.4, 1.8). It knows no
 * records.
 *
 * Times are ns. At one time what ends comes before what arrives, and of either the job with the
 * lowest number first: jobs are numbered in the order of their first requests.
 */
#ifndef NRP_MMAP_LOCK_H
#define NRP_MMAP_LOCK_H

#include "replay/policies/munmap_lock.h"

#include <stddef.h>

enum nrp_lock_kind {
	NRP_LOCK_FAULT,  /* reads; may get by with the lock of its VMA */
	NRP_LOCK_READER, /* reads */
	NRP_LOCK_WRITER, /* writes */
	NRP_LOCK_SCAN,   /* task_numa_work(): tries to read, and gives up at once */
	NRP_LOCK_MUNMAP, /* as the variant says */
	NRP_NR_LOCK_KINDS
};

#define NRP_LOCK_NO_JOB UINT32_MAX
#define NRP_LOCK_NO_VMA UINT32_MAX

struct nrp_lock_job {
	enum nrp_lock_kind kind;
	uint64_t arrival; /* on record */
	uint64_t hold;    /* not of a munmap */
	uint64_t moving;  /* of hold: moves pages, as mbind() does up to 6.6 */
	uint64_t give_up; /* a waiter for its first request leaves then (killed); UINT64_MAX: never
			   */
	uint64_t think;   /* closed: from the end of @after to the arrival */
	uint32_t after; /* job of the same thread before it, with a lower number; NRP_LOCK_NO_JOB */
	uint32_t vma;   /* of faults and unmaps, numbered from 0 on; NRP_LOCK_NO_VMA: not known */
	bool lockable;  /* the fault tries the lock of its VMA */
	uint64_t offset; /* of a fault in the range of the unmap that has its VMA: bytes, below its
			    length */
	const struct nrp_munmap_work *work; /* of a munmap */

	/* What became of it. */
	uint64_t arrived;                  /* in this run */
	uint64_t wait;                     /* over all its requests */
	uint64_t longest;                  /* of them */
	uint64_t first_grant;              /* if there is one */
	uint64_t downgraded;               /* UINT64_MAX: not */
	uint64_t done;                     /* UINT64_MAX: still waiting or holding at the end */
	uint32_t requests, grants, queued; /* queued: grants that it had to wait for in line */
	bool skipped;                      /* a scan that found it taken */
	bool gave_up;
	bool by_vma;                 /* never asked for the mmap_lock */
	enum nrp_munmap_sight sight; /* of a fault, when it gets its lock */
};

struct nrp_lock_params {
	struct nrp_munmap_params munmap;
	bool resched;   /* sections: the task should yield whenever it is asked */
	bool prefix;    /* up to 5.2: readers are granted up to the first writer in line only */
	uint32_t batch; /* readers granted together at most; the kernel's is NRP_LOCK_BATCH */
	bool vma_locks; /* faults try the lock of their VMA first (from 6.4 on) */
	bool moves_unlocked; /* 6.7 on: mbind() moves pages when it has released the lock */
	bool closed;         /* arrivals follow from think times instead of the record */
	uint64_t spin; /* ns that a writer spins before it gets in line; it may steal meanwhile */
	uint64_t handoff; /* ns from a grant to a waiter in line until it runs */
};

#define NRP_LOCK_BATCH 256

/* Is told every grant, in order. */
typedef void nrp_lock_grant_fn(void *context, uint32_t job, bool write, uint64_t requested,
			       uint64_t granted);

/*
 * Runs all jobs up to @end (ns; UINT64_MAX: until all have ended) and fills in what became of them.
 * @grant may be NULL. -ENOMEM; -EINVAL: a job comes after one that does not come before it.
 */
int nrp_mmap_lock_run(const struct nrp_lock_params *params, struct nrp_lock_job *jobs,
		      uint32_t nr_jobs, uint64_t end, nrp_lock_grant_fn *grant, void *context);

#endif
