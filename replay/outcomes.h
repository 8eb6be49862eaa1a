/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What came of each recorded attempt to move a page, and does it fit the kernel's own rules: order
 * of the preconditions, counters, events, return values and flags (spec migrate.md 2.7, 2.8).
 */
#ifndef NRP_OUTCOMES_H
#define NRP_OUTCOMES_H

#include "numareplay/store.h"
#include "replay/policies/migrate_outcome.h"

/* How far the record tells attempts apart. */
enum nrp_attempt_end {
	NRP_END_MOVED,
	NRP_END_RATELIMITED,    /* the limiter's own event says so (up to 4.18) */
	NRP_END_EXEC_SHARED,    /* prepare: -EACCES */
	NRP_END_PREPARE,        /* prepare: -EAGAIN: dirty file page, too little memory, or not
				 * isolated; the kernel does not tell them apart */
	NRP_END_REFUSED,        /* without a prepare step: one of the preconditions; on kernels with
				 * limiter not the limiter */
	NRP_END_MIGRATE_FAILED, /* in migrate_pages: allocation, references or copy */
	NRP_END_THP_FAILED,     /* in the function for huge pages (up to 5.13), not the limiter */
	NRP_END_UNKNOWN,        /* still open at a loss or at the end, or the return was lost */
	NRP_NR_ATTEMPT_ENDS
};

struct nrp_end_count {
	uint64_t attempts;
	uint64_t pages; /* base pages; an attempt of unknown size counts as one */
};

/* Attempts to one target node. */
struct nrp_end_counts {
	struct nrp_end_count end[NRP_NR_ATTEMPT_ENDS];
};

/* One generation's rules against the record. */
struct nrp_outcome_check {
	uint64_t decisions, agree, disagree, undecided;
	uint64_t decided_by_end[NRP_NR_ATTEMPT_ENDS], agree_by_end[NRP_NR_ATTEMPT_ENDS];
	bool indistinguishable; /* no attempt on record that it and the chosen one explain
				 * differently */
};

/* Growth of counters that the attempts explain, by the chosen generation's rules; pages. */
struct nrp_outcome_counters {
	uint64_t numa_pages_migrated, pgmigrate_success;
	uint64_t pgmigrate_fail_lower, pgmigrate_fail_upper; /* a lost copy is not counted */
	uint64_t huge_moves; /* by the function of their own: without an mm_migrate_pages event */
};

struct nrp_outcomes {
	struct nrp_end_counts all;
	struct nrp_end_counts *node; /* [nr_nodes], by target; attempts of unknown target are in
				      * all only */
	int nr_nodes;
	enum nrp_outcome_variant chosen; /* by the functions that the kernel has */
	struct nrp_outcome_check check[NRP_NR_OUTCOME_VARIANTS];
	struct nrp_outcome_counters counters;
	bool prepare_recorded; /* results of the prepare step, or that there is none, are on record
				*/
	bool reports_recorded; /* task_numa_fault was on record */
	bool events_missing;   /* events were lost, or belong to no record */
	bool migrations_recorded;    /* mm_migrate_pages was on record */
	uint64_t first_disagreement; /* ns: time of the first fault against the chosen rules;
				      * 0: none */
};

/* "moved", "ratelimited", ..; NULL outside the range. */
const char *nrp_attempt_end_name(enum nrp_attempt_end end);

/*
 * Reads the hinting faults of a capture once. Without any attempt all counts are 0 and the family
 * has no evidence. clear() frees.
 */
int nrp_outcomes_load(struct nrp_outcomes *ret, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err);
void nrp_outcomes_clear(struct nrp_outcomes *outcomes);

#endif
