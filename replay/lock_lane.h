/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * munmap.lock: the recorded jobs of every mmap_lock through the engine, as the host did it and as a
 * lane would have.
 *
 * The engine hands a lock over in no time; a real waiter wakes up later. So what it says is a lower
 * bound of a wait, and for every grant to a waiter in line the 95th percentile of the host's own
 * lateness is added for the upper one (spec mmap-hugetlb.md 1.4).
 */
#ifndef NRP_LOCK_LANE_H
#define NRP_LOCK_LANE_H

#include "replay/lock_blockers.h"
#include "replay/lock_order.h"

#define NRP_LOCK_LONG 2000000 /* ns: waits over this are counted */

enum nrp_lock_class {
	NRP_LOCK_OF_FAULTS,  /* page faults */
	NRP_LOCK_OF_READERS, /* all that read: faults, too */
	NRP_LOCK_OF_WRITERS, /* but for munmap */
	NRP_LOCK_OF_MUNMAP,
	NRP_NR_LOCK_CLASSES
};

const char *nrp_lock_class_name(enum nrp_lock_class class);

/* Waits of one class. */
struct nrp_lock_waits {
	uint64_t requests, queued; /* queued: in line at least once */
	uint64_t ns, longest, p99;
	uint64_t over, over_ns; /* those longer than NRP_LOCK_LONG */
};

struct nrp_lock_result {
	struct nrp_lock_waits lower[NRP_NR_LOCK_CLASSES], upper[NRP_NR_LOCK_CLASSES];
	struct nrp_lock_waits value[NRP_NR_LOCK_CLASSES]; /* late as the median is */
	uint64_t scans;                                   /* that came to the lock */
	uint64_t skipped, skipped_upper; /* and found it taken: handed over at once; late */
	uint64_t changed; /* requests and scans that the engine treats otherwise than the host's */
	uint64_t unmap_faults;      /* faults in a range that is unmapped later, or meanwhile */
	uint64_t segv, repopulated; /* those of them that find no mapping; a new page */
	uint64_t write_held;        /* ns, the holds for writing of writers and unmaps together */
	double fault_rate;          /* closed: faults that ask for a lock, per s of a task */
	bool modelled; /* more than unmaps and readers take part, or a variant that gives the lock
			  up */
};

#define NRP_LOCK_LISTED 8

/* The host's own run against the record. */
struct nrp_lock_verify {
	uint64_t requests;  /* granted ones */
	uint64_t undecided; /* granted ones that lost events touch: in none of the others */
	uint64_t within;    /* recorded wait from the engine's up to that plus the lateness */
	uint64_t below;     /* shorter than the engine's */
	uint64_t above;
	uint64_t in_order; /* got the lock behind the same writers as on record */
	uint64_t overtook; /* of these, before a waiter that had not woken up yet: the engine has
			      none */
	uint64_t scans, scans_agree;
	uint64_t lateness_p50, lateness_p95; /* ns, of grants to waiters in line */
	/* ns, of grants to others: two events and the lock, and what interrupts a task there */
	uint64_t overhead_p50, overhead_p95, overhead_p99;
	struct {
		uint64_t mm, requested, recorded, model;
		int32_t tid;
		bool write, queued; /* queued: by the engine */
	} listed[NRP_LOCK_LISTED];  /* the first that are not within */
	size_t nr_listed;
};

struct nrp_lock_host {
	bool known; /* the record has requests for mmap_locks */
	enum nrp_munmap_variant variant;
	bool grows; /* unmaps did not downgrade though their kernel would: a neighbour grows */
	uint64_t kept_write, downgraded;                      /* unmaps */
	struct nrp_lock_verify check[NRP_NR_MUNMAP_VARIANTS]; /* each against the record */
	struct nrp_lock_counts counts;
	struct nrp_lock_blame blame;
	struct nrp_lock_order order;        /* the recorded one, by the rule from 5.3 on */
	struct nrp_lock_order prefix_order; /* by that of before */
};

struct nrp_lock_lanes {
	struct nrp_lock_jobs jobs;
	struct nrp_lock_host host;
	struct nrp_lock_result record; /* waits on record, lower = value = upper */
};

/* Loads the jobs and finds the host's variant; nrp_lock_lanes_clear() frees, always. */
int nrp_lock_lanes_load(struct nrp_lock_lanes *ret, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err);
void nrp_lock_lanes_clear(struct nrp_lock_lanes *lanes);
/* Every variant against the record, and who kept whom from the lock, of a known host; -ENOMEM. */
int nrp_lock_lanes_check(struct nrp_lock_lanes *lanes);
/* What lanes are compared with, once lanes->host is checked (or taken from where it was); -ENOMEM.
 */
int nrp_lock_lanes_start(struct nrp_lock_lanes *lanes);
/* Runs a lane after that; -ENOMEM. @params: the lane's, with the handoff that the user set or 0. */
int nrp_lock_lanes_run(struct nrp_lock_result *ret, struct nrp_lock_lanes *lanes,
		       const struct nrp_lock_params *params);
/* What a kernel with the host's functions has, but for the variant. */
struct nrp_lock_params nrp_lock_host_params(enum nrp_munmap_variant variant);

#endif
