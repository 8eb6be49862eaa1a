/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorded requests for mmap_locks as jobs for the engine in mmap_lock.h, one list for each
 * address space (spec mmap-hugetlb.md 1.9). What fits into no job is counted and listed, not
 * repaired.
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
	bool failed;         /* its answer was no */
	bool failed_first;   /* a try failed before: it found the lock taken */
	bool may_downgrade;  /* a munmap: its caller lets it */
	bool user;           /* a fault: of user mode */
	uint64_t addr;       /* a fault: its address; a munmap: start of its range */
	/* What the engine makes of it under the host's own rule: */
	uint64_t own_wait;
	uint32_t own_queued;
	bool own_skipped, own_late_skipped; /* a scan: if handed over at once; if late */
	bool lane_skipped;                  /* a scan: in the lane that ran last */
	uint64_t killed;   /* ns; UINT64_MAX: not: waited until then, and left without the lock */
	bool lossy;        /* events are missing between its request and its end: undecided */
	uint64_t length;   /* of a called one: bytes, up to whole pages */
	int8_t call;       /* NRP_CALL_*: of the task meanwhile; -1: none on record */
	bool called;       /* the first writer inside a munmap() of the task */
	bool release_lost; /* released is when the task asked anew */
	enum nrp_lock_split split; /* a munmap */
	uint32_t work;             /* a munmap: index into nrp_lock_mm.work */
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

/* Events that cannot follow on what was before them. */
enum nrp_lock_oddity {
	NRP_LOCK_ODD_ASKS_TWICE,      /* start_locking while the one before has no answer */
	NRP_LOCK_ODD_UNASKED_GRANT,   /* acquire_returned, success, without start_locking */
	NRP_LOCK_ODD_UNASKED_FAILURE, /* the same without success */
	NRP_LOCK_ODD_OTHER_MODE,      /* acquire_returned for reading of a request to write, .. */
	NRP_LOCK_ODD_STILL_HELD,      /* acquire_returned, success, by a task that holds it */
	NRP_LOCK_ODD_DOWNGRADE,       /* a downgrade of what is no write lock */
	NRP_LOCK_ODD_UNHELD_RELEASE,  /* released, and no task on record holds it so */
	NRP_LOCK_ODD_OTHER_RELEASE,   /* released for reading what was taken for writing, .. */
	NRP_LOCK_ODD_OVERLAP,         /* held by two tasks at once, by one of them for writing */
	NRP_NR_LOCK_ODDITIES
};

/* "acquire_without_start", ..; and in words. */
const char *nrp_lock_oddity_name(enum nrp_lock_oddity oddity);
const char *nrp_lock_oddity_text(enum nrp_lock_oddity oddity);

#define NRP_LOCK_JOBS_LISTED 16

struct nrp_lock_impossible {
	uint64_t time, mm; /* ns of the event that cannot be */
	int32_t tid;
	enum nrp_lock_oddity what;
	bool undecided; /* events are missing since the task's event before: one of them may
			   explain it */
};

/* What was found on the way. */
struct nrp_lock_counts {
	uint64_t requests, grants, faults, scans, munmaps;
	uint64_t failed_tries; /* tries that failed and no request came after, but for scans */
	uint64_t began_before; /* releases of locks that were taken before the capture began */
	uint64_t by_others;    /* releases by another task than the one that took the lock */
	uint64_t killed_waits; /* blocking requests that ended without the lock */
	/* Events that cannot follow on what was before, lost events apart; all as they came. */
	uint64_t impossible, undecided;
	uint64_t impossible_by[NRP_NR_LOCK_ODDITIES], undecided_by[NRP_NR_LOCK_ODDITIES];
	struct nrp_lock_impossible listed[NRP_LOCK_JOBS_LISTED]; /* the first of both */
	size_t nr_listed;
	uint64_t lossy;                              /* jobs that lost events touch */
	uint64_t split_by_downgrade, split_by_model; /* unmaps without probes of their phases */
	uint64_t unanswered;                         /* requests whose answer is not on record */
	uint64_t never_ended;         /* granted, and held at the end of the capture */
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
