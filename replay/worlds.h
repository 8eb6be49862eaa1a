/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Worlds: where every page would be under another policy, fed with the recorded faults (spec
 * migrate.md 6). Location feedback (E1): a page that a world did not move stays remote, and its
 * later recorded faults try again. Taint: the world's location differs from the recorded one.
 * Missing faults (E2): a remote page of a single-threaded process would have been armed again once
 * per scan pass.
 *
 * All worlds of a replay advance together over one pass of the records.
 */
#ifndef NRP_WORLDS_H
#define NRP_WORLDS_H

#include "numareplay/store.h"
#include "replay/policies/migrate_filter.h"
#include "replay/policies/migrate_ratelimit.h"
#include "replay/ratelimit_lane.h"

#define NRP_MAX_WORLDS 20

/* What happens where the record cannot say: an admitted attempt that never ran, an undecided
 * filter. */
enum nrp_unknown { NRP_UNKNOWN_FAILS, NRP_UNKNOWN_EXPECTED, NRP_UNKNOWN_SUCCEEDS };

/* Decides an attempt of @pages base pages to @nid at @time; for tests and special lanes. */
typedef bool (*nrp_admit_fn)(void *context, uint64_t time, int nid, uint64_t pages);

struct nrp_world_config {
	struct nrp_ratelimit_params limiter;
	/* Start of the first window per node; nodes from nr_starts on: a fresh one at the first
	 * attempt. */
	const struct nrp_ratelimit_start *start;
	int nr_starts;
	int nr_nodes;         /* of the host */
	uint64_t grid_origin; /* tick of the capture's first attempt */
	nrp_admit_fn admit;   /* instead of the limiter, if given */
	void *context;
	bool filter_passes; /* instead of the filter: always yes (tests) */
	enum nrp_unknown unknown;
	/*
	 * Once a decision in an address space differs from the recorded one, its scans may come as
	 * rarely as once per longest scan period: faults of passes in between are dropped.
	 */
	bool thin_after_divergence;
};

struct nrp_world_result {
	uint64_t hint_faults, hint_fault_pages;
	uint64_t remote_faults;    /* hint faults whose page is on another node in this world */
	uint64_t extra_faults_max; /* missing faults: at most so many more, all remote */
	uint64_t attempts, admitted, denied; /* at the limiter's place */
	uint64_t attempt_pages;
	uint64_t moves, moved_pages;
	uint64_t suppressed;     /* recorded moves of pages that this world left where they were */
	uint64_t added;          /* moves that the record does not have */
	uint64_t model_attempts; /* attempts that the record does not have */
	uint64_t undecided_filters;     /* of those: the filter's inputs are unknown */
	double remote_seconds_previous; /* page-seconds remote, accessor held from the previous
					   fault */
	double remote_seconds_next;     /* accessor taken from the next fault */
	double tainted_seconds;         /* page-seconds at another place than recorded */
};

struct nrp_worlds_totals {
	uint64_t untracked_faults; /* without mm, source or accessing node */
	uint64_t external_moves;   /* pages that moved without a recorded fault */
	uint64_t observed_moves, observed_moved_pages, observed_remote_faults;
	double page_seconds; /* sum over pages of first to last sight */
	double observed_remote_previous, observed_remote_next; /* page-seconds, as recorded */
};

struct nrp_worlds;

/*
 * @facts give page size, HZ, topology; @filter is the host's own migrate.filter variant, which
 * decides attempts that the record does not have. @period_max_ms bounds thinning.
 */
int nrp_worlds_new(struct nrp_worlds **ret, const struct nrp_host_facts *facts,
		   enum nrp_filter_variant filter, uint64_t period_max_ms,
		   const struct nrp_world_config *configs, int nr_worlds, struct nrp_error *err);
struct nrp_worlds *nrp_worlds_free(struct nrp_worlds *worlds);

/* Feed in time order (faults: order of their decision time, nrp_worlds_decision_time()). */
int nrp_worlds_scan_pass(struct nrp_worlds *worlds, const struct nrp_scan_pass *pass);
int nrp_worlds_scan_range(struct nrp_worlds *worlds, const struct nrp_scan_range *range);
/*
 * @refused: the host's own limiter refused (or is taken to have refused) this fault's attempt, so
 * that its outcome without refusal is unknown.
 */
int nrp_worlds_fault(struct nrp_worlds *worlds, const struct nrp_hint_fault *fault, bool refused);
/* Ends at @end_time: the last fault's state holds until there. */
void nrp_worlds_finish(struct nrp_worlds *worlds, uint64_t end_time);

const struct nrp_world_result *nrp_worlds_result(const struct nrp_worlds *worlds, int world);
const struct nrp_worlds_totals *nrp_worlds_totals(const struct nrp_worlds *worlds);
/* Node of a page in a world; -1: never seen. */
int nrp_worlds_location(struct nrp_worlds *worlds, int world, uint64_t mm, uint64_t page,
			bool *ret_tainted);

/* When a fault is decided: the attempt's first event, else the fault itself. */
uint64_t nrp_worlds_decision_time(const struct nrp_hint_fault *fault);

#endif
