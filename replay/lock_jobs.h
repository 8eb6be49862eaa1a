/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorded requests for mmap_locks as jobs for the engine in mmap_lock.h, one list for each
 * address space (spec mmap-hugetlb.md 1.9). What fits into no job is counted, not repaired.
 */
#ifndef NRP_LOCK_JOBS_H
#define NRP_LOCK_JOBS_H

#include "numareplay/store.h"
#include "replay/mmap_lock.h"

/* Where the phases of an unmap come from. */
enum nrp_lock_split {
	NRP_LOCK_SPLIT_PHASES,    /* probes of its phases */
	NRP_LOCK_SPLIT_DOWNGRADE, /* what came before the downgrade, and what behind it */
	NRP_LOCK_SPLIT_MODEL,     /* the hold only: the part before is taken to last 8 us */
};

/* What the record says of a job. */
struct nrp_lock_seen {
	int32_t tid;
	bool write;
	uint64_t requested;  /* ns; the first try of the same fault */
	uint64_t granted;    /* ns; UINT64_MAX: not, or a try that failed */
	uint64_t downgraded; /* ns; UINT64_MAX: not */
	uint64_t released;   /* ns; UINT64_MAX: not before the capture ended */
	bool failed_first;   /* a try failed before: it found the lock taken */
	bool may_downgrade;  /* a munmap: its caller lets it */
	bool user;           /* a fault: of user mode */
	uint64_t addr;       /* a fault: its address; a munmap: start of its range */
	/* What the engine makes of it under the host's own rule: */
	uint64_t own_wait;
	uint32_t own_queued;
	bool own_skipped, own_late_skipped; /* a scan: if handed over at once; if late */
	uint64_t length;                    /* of a called one: bytes, up to whole pages */
	bool called;                        /* the first writer inside a munmap() of the task */
	bool release_lost;                  /* released is when the task asked anew */
	enum nrp_lock_split split;          /* a munmap */
	uint32_t work;                      /* a munmap: index into nrp_lock_mm.work */
};

struct nrp_lock_mm {
	uint64_t mm;
	struct nrp_lock_job *job;   /* in the order of first requests */
	struct nrp_lock_seen *seen; /* the same numbers */
	uint32_t nr_jobs, room;
	struct nrp_munmap_work *work;
	uint32_t nr_work;
	uint64_t unmap_faults; /* faults in a range that is unmapped later, or meanwhile */
};

#define NRP_LOCK_JOBS_LISTED 8

struct nrp_lock_impossible {
	uint64_t time, mm;
	int32_t tid;
	const char *what;
};

/* What was found on the way. */
struct nrp_lock_counts {
	uint64_t requests, grants, faults, scans, munmaps;
	uint64_t failed_tries; /* tries that failed and no request came after, but for scans */
	uint64_t began_before; /* releases of locks that were taken before the capture began */
	uint64_t by_others;    /* releases by another task than the one that took the lock */
	uint64_t impossible;   /* events that cannot follow on what was before */
	struct nrp_lock_impossible listed[NRP_LOCK_JOBS_LISTED]; /* the first of them */
	uint64_t split_by_downgrade, split_by_model; /* unmaps without probes of their phases */
	uint64_t never_ended;         /* granted or waiting at the end of the capture */
	uint64_t page_faults;         /* exceptions on record */
	uint64_t phases_without_lock; /* munmaps on record whose lock is not */
};

struct nrp_lock_jobs {
	struct nrp_lock_mm *mm;
	size_t nr_mms;
	struct nrp_lock_counts counts;
};

/* Reads the records; nrp_lock_jobs_clear() frees, after a failure too. */
int nrp_lock_jobs_load(struct nrp_lock_jobs *ret, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err);
void nrp_lock_jobs_clear(struct nrp_lock_jobs *jobs);

#endif
