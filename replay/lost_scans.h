/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scan windows lost to the mmap_lock: a scan whose trylock fails leaves its window unarmed, and has
 * put off the address space's next scan by one period already (spec mmap-hugetlb.md 1.7, part 3).
 * What that costs is a later marking of the window, by 0 to one period, and the remote accesses to
 * its pages meanwhile.
 */
#ifndef NRP_LOST_SCANS_H
#define NRP_LOST_SCANS_H

#include "replay/locality.h"
#include "replay/lock_lane.h"

/* Who has lost the window. */
enum nrp_lost_in { NRP_LOST_ON_RECORD, NRP_LOST_OLD, NRP_LOST_NEW, NRP_NR_LOST_IN };

/* An attempt to scan: the trylock in task_numa_work(). */
struct nrp_scan_attempt {
	uint64_t mm, time; /* ns */
	int32_t tid;
	uint8_t lost;   /* bits by enum nrp_lost_in */
	bool on_record; /* its pass is on record, with its period */
	bool followed;  /* another attempt comes after it */
	bool has_window;
	uint64_t period; /* ns; of the pass; if that lacks it, the gap to the next attempt */
	uint64_t gap;    /* ns to the address space's next attempt, or to the end of the capture */
	/* Its window: what it arms itself, or else the next pass that gets the lock. */
	uint64_t window;                      /* ns: time of that pass */
	uint64_t pages;                       /* entries armed by it */
	uint64_t remote_faults, remote_pages; /* hinting faults on these from another node */
	uint64_t moved_pages;                 /* of them, moved by the fault */
	double touches, touches_upper; /* by other nodes' threads, per s (touch rates; 95 %) */
};

struct nrp_scan_attempts {
	struct nrp_scan_attempt *at; /* by address space, then by time */
	size_t count;
};

/* What a lane loses. */
struct nrp_lost_windows {
	uint64_t windows, pages;         /* with a window; entries armed later */
	uint64_t unknown;                /* without one: no later scan got the lock */
	double seconds;                  /* of later marking, the windows' sum: at most that */
	double page_seconds;             /* the same times entries */
	double accesses, accesses_upper; /* remote ones meanwhile: touch rate times time */
};

/* All attempts on record, with what the host lost; -ENOMEM. */
int nrp_scan_attempts_collect(struct nrp_scan_attempts *ret, const struct nrp_lock_lanes *lanes);
/* A lane loses what @lanes' last run skipped, or with @lanes NULL what the host lost. */
void nrp_scan_attempts_lane(struct nrp_scan_attempts *attempts, enum nrp_lost_in who,
			    const struct nrp_lock_lanes *lanes);
/* Periods and windows, from the recorded passes. */
int nrp_scan_attempts_windows(struct nrp_scan_attempts *attempts, struct nrp_store *store,
			      const struct nrp_capture *capture, struct nrp_error *err);
/* Remote faults on the windows' pages, and how often these are touched by @rates. */
int nrp_scan_attempts_touches(struct nrp_scan_attempts *attempts, struct nrp_store *store,
			      const struct nrp_capture *capture, const struct nrp_touch_rate *rates,
			      size_t nr_rates, struct nrp_error *err);
void nrp_scan_attempts_clear(struct nrp_scan_attempts *attempts);

/* What @who loses and @but does not (NRP_NR_LOST_IN: whatever others lose); of @mm, or 0: of all.
 */
struct nrp_lost_windows nrp_lost_windows(const struct nrp_scan_attempts *attempts,
					 enum nrp_lost_in who, enum nrp_lost_in but, uint64_t mm);

#endif
