/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that build a comparison share: quantities and the list of metrics. */
#ifndef NRP_COMPARE_INTERNAL_H
#define NRP_COMPARE_INTERNAL_H

#include "analysis/compare.h"

static inline struct nrp_quantity nrp_exact(double value, int tier)
{
	return (struct nrp_quantity){ .value = value,
				      .lower = value,
				      .upper = value,
				      .has_value = true,
				      .has_lower = true,
				      .has_upper = true,
				      .class = NRP_CLASS_EXACT,
				      .tier = tier };
}

static inline struct nrp_quantity nrp_bounded(double value, double lower, double upper, int tier)
{
	if (value < lower)
		lower = value;
	if (value > upper)
		upper = value;
	return (struct nrp_quantity){ .value = value,
				      .lower = lower,
				      .upper = upper,
				      .has_value = true,
				      .has_lower = true,
				      .has_upper = true,
				      .class = NRP_CLASS_BOUNDED,
				      .tier = tier };
}

static inline struct nrp_quantity nrp_at_least(double lower, int tier)
{
	return (struct nrp_quantity){
		.lower = lower, .has_lower = true, .class = NRP_CLASS_BOUNDED, .tier = tier
	};
}

static inline struct nrp_quantity nrp_not_observable(int tier)
{
	return (struct nrp_quantity){ .class = NRP_CLASS_NOT_OBSERVABLE, .tier = tier };
}

enum nrp_metric_id {
	HINT_FAULTS,
	HINT_FAULTS_REMOTE,
	PTE_UPDATES,
	HINT_FAULT_PAGES,
	MIGRATION_ATTEMPTS,
	MIGRATIONS_ADMITTED,
	MIGRATIONS_DENIED,
	MIGRATION_ATTEMPT_PAGES,
	MIGRATED_PAGES,
	REMOTE_ACCESSES,
	REMOTE_LOADS,
	REMOTE_RESIDENCY,
	SCAN_PASSES,
	SCAN_RANGES,
	SCAN_TIME,
	SCANS_LOCK_SKIPPED,
	SCAN_LOCK_DELAY,
	SCAN_LOCK_ACCESSES,
	STARVED_VMAS,
	CPU_COST,
	PAGE_MIGRATION_WAITS,
	PAGE_MIGRATION_WAIT_NS,
	LOCK_WAIT_FAULTS_NS,
	LOCK_WAIT_FAULTS_OVER,
	LOCK_WAIT_READERS_NS,
	LOCK_WAIT_READERS_OVER,
	LOCK_WAIT_WRITERS_NS,
	LOCK_WAIT_WRITERS_OVER,
	LOCK_WAIT_MUNMAP_NS,
	LOCK_WAIT_MUNMAP_OVER,
	HUGETLB_ISOLATED,
	HUGETLB_MIGRATED,
	SMAPS_PRIVATE,
	SMAPS_SHARED,
	SCAN_PERIOD_RESETS,
	TASK_MOVES_SUPPRESSED,
	TIERING_PROMOTIONS,
	NRP_NR_METRICS
};

struct nrp_builder {
	const struct nrp_replay *r;
	struct nrp_quantity q[2][NRP_NR_METRICS];
	/* Differences that are narrower than those of the two lanes' intervals. */
	struct nrp_quantity avoided[NRP_NR_METRICS];
	bool paired[NRP_NR_METRICS];
};

/* {"value": .., "lower": .., "upper": .., "class": .., "tier": ..} (analysis/json.c). */
json_t *nrp_quantity_json(const struct nrp_quantity *q);
/* All metrics of lane @i (analysis/compare_lanes.c). */
void nrp_build_lane(struct nrp_builder *b, int i);
/* Of these, waits for mmap_locks and what scans lose to them (analysis/compare_locks.c). */
void nrp_build_locks(struct nrp_builder *b, int i);
/* Windows that one lane loses and the other does not: what both lose cancels out. */
void nrp_pair_locks(struct nrp_builder *b);
/* Costs of a lane whose passes come by modelled periods, and the note on it (analysis/cadence.c).
 */
void nrp_apply_cadence(struct nrp_builder *b, int i);
void nrp_add_cadence_notes(struct nrp_comparison *c, const struct nrp_replay *r);
/* Notes on lanes with a scanner of their own (analysis/scan_notes.c); after the metrics. */
void nrp_add_scanner_notes(struct nrp_comparison *c, const struct nrp_replay *r,
			   const struct nrp_capture *capture, const struct nrp_verify *verify);
/* Notes with rows: what scans and faults did to VMAs, pages, processes (analysis/scan_report.c). */
void nrp_add_scan_reports(struct nrp_comparison *c, const struct nrp_replay *r,
			  const struct nrp_capture *capture, const struct nrp_verify *verify);
/* .. and how faults ended, their nodes, and processes (analysis/fault_report.c). */
void nrp_add_fault_reports(struct nrp_comparison *c, const struct nrp_replay *r);
/* "local", "refused", .. */
const char *nrp_fault_outcome_name(enum nrp_fault_outcome outcome);
/* "hint_faults", ..: the metric of all processes. */
const char *nrp_process_measure_name(enum nrp_process_measure measure);
bool nrp_process_measured(const struct nrp_replay *r, enum nrp_process_measure measure);
/* Did lane @i not run on the host, and does the comparison have numbers of it? */
bool nrp_lane_has_details(const struct nrp_comparison *c, const struct nrp_replay *r, int i,
			  const char *metric);
/* Of such a lane; outcomes before NRP_FAULT_OPEN. */
struct nrp_quantity nrp_outcome_in_lane(const struct nrp_comparison *c, const struct nrp_replay *r,
					int i, enum nrp_fault_outcome outcome);
struct nrp_quantity nrp_process_in_lane(const struct nrp_comparison *c, const struct nrp_replay *r,
					int i, enum nrp_process_measure measure,
					const struct nrp_process *p);
/* The recorded scans' starved VMAs for verify's document; NULL: out of memory. */
json_t *nrp_starved_record(const struct nrp_verify *verify, uint64_t page_size);
/*
 * The recorded sequences of mmap_lock events, and those that cannot be, for verify's document; null
 * where no request for an mmap_lock is on record. NULL: out of memory.
 */
json_t *nrp_lock_sequences(const struct nrp_lock_host *host);
/* Recorded waits in line for rw_semaphores; null: none on record. NULL: out of memory. */
json_t *nrp_lock_contention_json(const struct nrp_lock_contention *contention);
/* Notes on lanes that hold the mmap_lock differently (analysis/lock_notes.c). */
void nrp_add_lock_notes(struct nrp_comparison *c, const struct nrp_replay *r);
/* Notes on lanes that count hugetlb pages differently (analysis/hugetlb_notes.c). */
void nrp_add_hugetlb_notes(struct nrp_comparison *c, const struct nrp_replay *r, int nr_nodes);
/*
 * Is what the lane arms besides the host's entries bounded by what the recorded ranges did not arm?
 * Only with the host's VMAs and ranges.
 */
static inline bool nrp_unarmed_bounds(const struct nrp_replay *r,
				      const struct nrp_replay_lane *lane)
{
	return lane->opens && !lane->gains_shmem && !lane->has_scan && r->scans.unarmed_known;
}

/* What lane @i arms that is not on record, and which capture would show more of it. */
void nrp_add_unobserved_note(struct nrp_comparison *c, const struct nrp_replay *r, int i);
/* Differences of a lane with the record, world by world. */
void nrp_build_pairs(struct nrp_builder *b);

#endif
