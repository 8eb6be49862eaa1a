/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Worlds: where every page would be under another policy, fed with the recorded faults (spec
 * migrate.md 6). Location feedback (E1): a page that a world did not move stays remote, and its
 * later recorded faults try again. Taint: the world's location differs from the recorded one.
 * Missing faults (E2): a remote page of a single-threaded process would have been armed again once
 * per scan pass.
 *
 * All worlds of a replay advance together over one pass of the records. A page that is in all
 * worlds as it is on record costs one look-up; only pages that differ somewhere have places of
 * their own.
 */
#ifndef NRP_WORLDS_H
#define NRP_WORLDS_H

#include "numareplay/store.h"
#include "replay/faulters.h"
#include "replay/locality.h"
#include "replay/policies/migrate_filter.h"
#include "replay/policies/migrate_ratelimit.h"
#include "replay/ratelimit_lane.h"
#include "replay/waits.h"

#define NRP_MAX_WORLDS 20

/* What happens where the record cannot say: an admitted attempt that never ran, an undecided
 * filter. */
enum nrp_unknown { NRP_UNKNOWN_FAILS, NRP_UNKNOWN_EXPECTED, NRP_UNKNOWN_SUCCEEDS };

/* Would the lane's scanner have armed the page of this fault? */
enum nrp_armed {
	NRP_ARMED_YES,
	NRP_ARMED_NO,      /* it did not come by, and does not any more */
	NRP_ARMED_LATER,   /* nor had it come by, but it perhaps does after the fault */
	NRP_ARMED_REFUSED, /* it came by and left this page alone */
	NRP_ARMED_UNKNOWN,
};

/* Until when (ns) a lane's scanner certainly left a page alone, at all times since @from; or 0. */
struct nrp_scan_effects;
typedef uint64_t (*nrp_refused_until_fn)(struct nrp_scan_effects *scanner, uint64_t mm,
					 uint64_t addr, uint64_t from);

/* Decides an attempt of @pages base pages to @nid at @time; for tests and special lanes. */
typedef bool (*nrp_admit_fn)(void *context, uint64_t time, int nid, uint64_t pages);

struct nrp_world_config {
	int lane; /* worlds of a lane have the same scanner and filter */
	enum nrp_filter_variant filter;
	struct nrp_ratelimit_params limiter;
	/* Start of the first window per node; nodes from nr_starts on: a fresh one at the first
	 * attempt. */
	const struct nrp_ratelimit_start *start;
	int nr_starts;
	int nr_nodes;         /* of the host */
	uint64_t grid_origin; /* tick of the capture's first attempt */
	nrp_admit_fn admit;   /* instead of the limiter, if given */
	void *context;
	nrp_refused_until_fn refused_until; /* NULL: nothing is known */
	struct nrp_scan_effects *scanner;
	bool filter_passes; /* instead of the filter: always yes (tests) */
	enum nrp_unknown unknown;
	/*
	 * Once a decision in an address space differs from the recorded one, its scans may come as
	 * rarely as once per longest scan period: faults of passes in between are dropped.
	 */
	bool thin_after_divergence;
	bool diverged;   /* from the start */
	bool leaves_out; /* the lane's scanner leaves out faults of the record */
};

struct nrp_world_result {
	uint64_t hint_faults, hint_fault_pages;
	uint64_t remote_faults;    /* hint faults whose page is on another node in this world */
	uint64_t extra_faults_max; /* missing faults: at most so many more, all remote */
	uint64_t extra_moves_max;  /* base pages that these can move: each once */
	uint64_t attempts, admitted, denied; /* at the limiter's place */
	uint64_t attempt_pages;
	uint64_t moves, moved_pages;
	uint64_t suppressed;     /* recorded moves of pages that this world left where they were */
	uint64_t added;          /* moves that the record does not have */
	uint64_t model_attempts; /* attempts that the record does not have */
	uint64_t new_attempts;   /* admitted, but on record refused, failed or not made */
	uint64_t new_waiters;    /* that these can block: at most */
	uint64_t undecided_filters; /* filter calls with unknown inputs */
	uint64_t unarmed_faults;    /* recorded faults that the lane's scanner leaves out */
	uint64_t unarmed_unknown;   /* recorded faults that it perhaps leaves out */
	/* Waits for pages of recorded attempts that this world makes, too: its own, and perhaps
	 * its own. */
	struct nrp_wait_count kept, kept_perhaps;
	double tainted_seconds;    /* page-seconds at another place than recorded */
	uint64_t unsure_preferred; /* faults of tasks whose preferred node could differ */
};

struct nrp_worlds_totals {
	uint64_t untracked_faults; /* without mm, address, source or accessing node */
	uint64_t external_moves;   /* pages that moved without a recorded fault */
	uint64_t observed_moves, observed_moved_pages, observed_remote_faults;
	uint64_t shared_pages; /* pages known under more than one address space */
	uint64_t splits;       /* folios that were found in pieces */
	double page_seconds;   /* sum over pages of first to last sight */
	/* Share of the top 1 % of pages in remote page-seconds, on record and in world 0. */
	double concentration, world_concentration;
	uint64_t pages; /* known at the end */
	/* Recorded moves that took a page back to where its last recorded move came from. */
	uint64_t moves_back, moved_back_pages;
};

/* What an address space has on record or in a world. */
struct nrp_space_count {
	uint64_t faults, moved_pages;
};

struct nrp_worlds;

/*
 * @facts give page size, HZ, topology; @host_filter is the host's own migrate.filter variant. Times
 * count from @origin. @period_max_ms bounds thinning. @shared: some pages have several mappings
 * (else the rows' page frames are not looked at).
 */
int nrp_worlds_new(struct nrp_worlds **ret, const struct nrp_host_facts *facts,
		   enum nrp_filter_variant host_filter, uint64_t period_max_ms, uint64_t origin,
		   bool shared, const struct nrp_world_config *configs, int nr_worlds,
		   struct nrp_error *err);
struct nrp_worlds *nrp_worlds_free(struct nrp_worlds *worlds);

/* Feed in time order (faults: order of their decision time, nrp_worlds_decision_time()). */
int nrp_worlds_scan_pass(struct nrp_worlds *worlds, const struct nrp_scan_pass *pass);
int nrp_worlds_scan_range(struct nrp_worlds *worlds, const struct nrp_scan_range *range);
int nrp_worlds_task_move(struct nrp_worlds *worlds, const struct nrp_task_move *move);
int nrp_worlds_task_life(struct nrp_worlds *worlds, const struct nrp_task_life *life);

/* What others know of a fault. */
struct nrp_fault_context {
	/* The host's own limiter refused (or is taken to have refused) its attempt, so that the
	 * outcome without refusal is unknown. */
	bool refused;
	enum nrp_armed armed[2];      /* by lane */
	struct nrp_fault_waits waits; /* for its page while it was moved */
};

/* Fetches what faults need that come soon: the page of @later, the places of the page of @soon. */
void nrp_worlds_prefetch(const struct nrp_worlds *worlds, const struct nrp_hint_fault *soon,
			 const struct nrp_hint_fault *later);
int nrp_worlds_fault(struct nrp_worlds *worlds, const struct nrp_hint_fault *fault,
		     const struct nrp_fault_context *context);
/* Ends at @end_time: the last fault's state holds until there. */
int nrp_worlds_finish(struct nrp_worlds *worlds, uint64_t end_time);

/* After the end: */
const struct nrp_world_result *nrp_worlds_result(const struct nrp_worlds *worlds, int world);
const struct nrp_worlds_totals *nrp_worlds_totals(const struct nrp_worlds *worlds);
const struct nrp_locality *nrp_worlds_locality(const struct nrp_worlds *worlds);
/* Address spaces with a pass or a fault, from 0; *ret_mm: the kernel's pointer. */
uint32_t nrp_worlds_nr_spaces(const struct nrp_worlds *worlds);
/* @world -1: on record. */
struct nrp_space_count nrp_worlds_space_count(struct nrp_worlds *worlds, uint32_t space, int world,
					      uint64_t *ret_mm);
/* Of pages that several address spaces may map. */
struct nrp_faulters nrp_worlds_faulters(struct nrp_worlds *worlds);
/* Of the last fault: worlds that made its recorded attempt, too. */
uint32_t nrp_worlds_tried(const struct nrp_worlds *worlds);
/* Node of a page in a world; -1: never seen. */
int nrp_worlds_location(struct nrp_worlds *worlds, int world, uint64_t mm, uint64_t page,
			bool *ret_tainted);

/* Number of an address space, < 0: out of memory. */
int64_t nrp_worlds_space(struct nrp_worlds *worlds, uint64_t mm);
/* Has a fault shown this page so far? */
bool nrp_worlds_knows(struct nrp_worlds *worlds, uint64_t mm, uint64_t page);
/* Is it elsewhere than on record in some world, or perhaps? */
bool nrp_worlds_is_apart(struct nrp_worlds *worlds, uint64_t mm, uint64_t page);
/* Seconds until @time for which the address space had threads on other nodes than @nid. */
double nrp_worlds_away(struct nrp_worlds *worlds, uint64_t mm, int nid, uint64_t time);

/* How often, so far, a thread of the address space came to a node where it was not before. */
uint64_t nrp_worlds_arrivals(struct nrp_worlds *worlds, uint64_t mm);

/* Tasks seen so far. */
uint32_t nrp_worlds_tasks(const struct nrp_worlds *worlds);
/* On how many nodes it has threads now, as far as seen. */
unsigned int nrp_worlds_nodes(struct nrp_worlds *worlds, uint64_t mm);

/* When a fault is decided: the attempt's first event, else the fault itself. */
static inline uint64_t nrp_worlds_decision_time(const struct nrp_hint_fault *f)
{
	return f->attempt == NRP_ATTEMPT_NONE ? f->time : f->time + f->attempt_delay;
}

#endif
