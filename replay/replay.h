/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One comparison: two lanes over one capture. */
#ifndef NRP_REPLAY_H
#define NRP_REPLAY_H

#include "replay/cadence.h"
#include "replay/lost_scans.h"
#include "replay/memory_samples.h"
#include "replay/processes.h"
#include "replay/ratelimit_lane.h"
#include "replay/registry.h"
#include "replay/scan_bounds.h"
#include "replay/scan_effects.h"
#include "replay/tiering.h"
#include "replay/verify.h"
#include "replay/waits.h"
#include "replay/worlds.h"

/* Worlds of one lane; their spread is the lane's interval. */
#define NRP_LOW_WORLDS 6 /* pessimistic worlds, by what the first window had left */
enum {
	NRP_WORLD_CENTRAL,
	NRP_WORLD_HIGH,
	NRP_WORLD_SPARSE, /* fewest attempts: all succeed, rare passes */
	NRP_WORLD_LOW,
	NRP_MAX_LANE_WORLDS = NRP_WORLD_LOW + NRP_LOW_WORLDS
};

struct nrp_replay_lane {
	struct nrp_lane_spec spec;
	int8_t variant[NRP_NR_FAMILIES]; /* resolved; NRP_HOST_VARIANT: the host's, not known by
					    name */
	bool off;
	bool observed; /* the host itself ran this lane: what was recorded is what it did */
	struct nrp_ratelimit_lane e0; /* every recorded attempt judged where it was */
	/* Where the scanner is not the host's: */
	struct nrp_scan_lane scan;
	bool has_scan; /* scan is filled: scan.vma differs */
	const struct nrp_scan_lane
		*lent_scan;                /* then a copy of this, which is another's; or NULL */
	struct nrp_lock_result lock;       /* munmap.lock; if the host's locks are known */
	bool own_lock;                     /* not as on the host */
	struct nrp_hugetlb_result hugetlb; /* hugetlb.count; if the host's is known */
	bool own_hugetlb;                  /* another variant than the host's */
	int pte;                           /* scan.pte of the lane, as replayed; -1: the host's */
	struct nrp_scan_pte_policy pte_policy; /* unless -1 */
	bool loses_shmem;                      /* scan.shmem: SH0, where the host may have SH1 */
	bool gains_shmem; /* the other way round; what it may add is in scan's possible ranges */
	bool opens;       /* pages may be armed that the record cannot show */
	struct nrp_scan_effects_result effects;
	struct nrp_cadence_result cadence; /* valid: passes come by modelled periods */
	/* Unless observed: */
	int nr_worlds;
	struct nrp_world_result world[NRP_MAX_LANE_WORLDS];
	struct nrp_remote remote[NRP_MAX_LANE_WORLDS];  /* in each world */
	struct nrp_remote avoided[NRP_MAX_LANE_WORLDS]; /* record minus world */
};

/* How a hinting fault ended. */
enum nrp_fault_outcome {
	NRP_FAULT_LOCAL,   /* the page was on the thread's node; nothing was tried */
	NRP_FAULT_REFUSED, /* remote, and left there by policy or filter */
	NRP_FAULT_LIMITED, /* the rate limiter refused the attempt */
	NRP_FAULT_FAILED,  /* the attempt did not move the page */
	NRP_FAULT_MOVED,   /* it did */
	/* Of these: a later one took the page back to where it came from. */
	NRP_FAULT_MOVED_BACK,
	NRP_FAULT_OPEN,     /* an attempt without outcome on record */
	NRP_FAULT_UNPLACED, /* without attempt, and a node is not known */
	NRP_NR_FAULT_OUTCOMES
};

/* Is the lane's scanner, or its filter of VMAs or entries, another than the host's? */
static inline bool nrp_replay_own_scanner(const struct nrp_replay_lane *lane)
{
	return lane->has_scan || lane->pte >= 0 || lane->loses_shmem;
}

/* What the capture itself counts. */
struct nrp_replay_observed {
	struct {
		uint64_t faults, pages;
	} outcome[NRP_NR_FAULT_OUTCOMES];
	uint64_t hint_faults, hint_fault_pages, remote_faults;
	uint64_t unplaced_faults; /* on an unknown node, or a page's node is not known */
	uint64_t moves, moved_pages;
	uint64_t open_pages;              /* of attempts whose outcome is not on record */
	uint64_t attempts, attempt_pages; /* at the limiter's place */
	uint64_t refused;                 /* by the host's own limiter: known or taken so */
	uint64_t migration_waits, migration_wait_ns;
	struct nrp_wait_count other_waits;        /* for migrations that are no hinting fault's */
	struct nrp_wait_count unattributed_waits; /* for what, is not known */
	bool has_migration_waits;                 /* migration_entry_wait was probed */
	uint64_t duration_ns;
};

struct nrp_replay {
	struct nrp_replay_lane lane[2];                                    /* old, new */
	struct nrp_verify_check filter, ratelimit, outcome, reset, period; /* the host's own */
	bool has_ratelimit_check;
	bool has_limiter_event; /* the kernel has mm_numa_migrate_ratelimit: up to 4.18 */
	uint64_t scan_size_mb, scan_delay_ms; /* the host's */
	bool balances_normally;               /* bit 1 of kernel.numa_balancing is set */
	struct nrp_task_moves moves;
	struct nrp_tiering tiering; /* lanes old, new; if a lane names the family */
	bool tiering_differs;       /* in variant or parameters */
	uint64_t shared_huge_pages; /* base pages of attempts on huge pages that other processes
				       may map, too */
	struct nrp_replay_observed observed;
	struct nrp_scan_bounds scans;
	struct nrp_worlds_totals totals;
	struct nrp_processes processes;
	struct nrp_faulters page_faulters; /* of each address space's pages for itself */
	struct nrp_faulters faulters;      /* of base pages that several may map */
	struct nrp_remote remote;          /* on record */
	/* Loads from other nodes' memory by a side file of samples or counts; -1: none. Sampled
	 * ones stand for so many events of the sampling event. */
	double remote_loads;
	bool loads_counted;           /* by counters, not sampled or scaled up */
	struct nrp_touch_rate *rates; /* [nr_rates] */
	size_t nr_rates;
	struct nrp_attempts attempts;
	struct nrp_waits waits;
	struct nrp_lock_host locks; /* the host's own */
	struct nrp_lock_result lock_record;
	struct nrp_hugetlb_result hugetlb_record;
	int hugetlb_host;                       /* hugetlb.count variant; -1: not known */
	struct nrp_lock_contention contention;  /* the recorded waits in line */
	struct nrp_scan_attempts scan_attempts; /* and who loses them to the lock */
	bool locks_differ; /* the lanes differ in munmap.lock, whether or not it matters here */
	struct nrp_scan_verify scan; /* the host's own */
	bool has_scan;
	struct nrp_scan_pte_proofs *pte_proofs; /* NULL: no lane asks */
	/* Of the recorded scans: VMAs that they can arm, and those that starve (-1: not known). */
	uint64_t eligible_vmas;
	int64_t starved_vmas;
	uint32_t pte_hosts;            /* bit v: scan.pte variant v may be the host's */
	uint32_t shmem_hosts;          /* the same of scan.shmem */
	int pte_host;                  /* -1: not known */
	bool differs[NRP_NR_FAMILIES]; /* the lanes differ in this family */
	bool unknown[NRP_NR_FAMILIES]; /* and the capture lacks what a replay of it needs */
	bool assumed[NRP_NR_FAMILIES]; /* a lane's variant is taken for the host's, by its functions
					*/
	bool moot[NRP_NR_FAMILIES];    /* nothing on record that its variants decide differently */
	bool off_differs;
	bool alike[2]; /* the lane's migrate.filter is another variant that decides as the host's */
	bool identical;               /* neither limiter can refuse anything on this capture */
	uint64_t max_pages_in_window; /* in I+1 ticks, to one node */
	uint64_t max_pages_two_windows;
	uint64_t window_ticks; /* I+1 */
	uint64_t quota;        /* the smaller of the limiting lanes' */
	bool lossy;            /* events were lost, or too many fit into no record */
	double passes;         /* full scan passes per address space, as verify counts them */
	double seconds;        /* length of the capture */
	uint64_t hz;
};

/*
 * Replays @old_spec and @new_spec on a capture whose own policy is @verify's. clear() frees.
 * NRP_INPUT if the capture has no hinting faults or no ticks.
 */
int nrp_replay_run(struct nrp_replay *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, const struct nrp_verify *verify,
		   const struct nrp_lane_spec *old_spec, const struct nrp_lane_spec *new_spec,
		   struct nrp_error *err);
void nrp_replay_clear(struct nrp_replay *replay);
/*
 * The same where the lanes' scanners have been run already: @scan[i] is taken for lane i if it
 * needs one, and stays the caller's, until the replay is cleared; NULL: it is run.
 */
int nrp_replay_run_scanned(struct nrp_replay *ret, struct nrp_store *store,
			   const struct nrp_capture *capture, const struct nrp_verify *verify,
			   const struct nrp_lane_spec spec[2],
			   const struct nrp_scan_lane *const scan[2], struct nrp_error *err);
/* Does lane @lane's scan.vma make every decision that the host's made, as far as is known? */
bool nrp_replay_scans_as_host(const struct nrp_replay *replay, int lane);
/*
 * Runs the scanners of lanes that name a scan.vma variant in one walk over the records, up to
 * NRP_MAX_SCAN_LANES; clear each of @ret. As nrp_scan_lanes_run().
 */
int nrp_replay_scan(struct nrp_scan_lane *ret, struct nrp_store *store,
		    const struct nrp_capture *capture, const struct nrp_lane_spec *spec,
		    size_t nr_lanes, struct nrp_error *err);

#endif
