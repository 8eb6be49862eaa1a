/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lanes over moves of tasks: where scan periods are set back (scan.reset), which requests for a CPU
 * would not have been made (task.claim), and whether one failed migration makes a task's period
 * double for good, as the record's own periods show (spec migrate.md 3.3, 3.4).
 */
#ifndef NRP_TASK_MOVES_H
#define NRP_TASK_MOVES_H

#include "numareplay/store.h"
#include "replay/policies/scan_reset.h"
#include "replay/policies/task_claim.h"

/* One variant of scan.reset. */
struct nrp_reset_count {
	uint64_t lower;   /* resets for certain */
	uint64_t value;   /* + those of the steps left open, at the rate of the decided ones */
	uint64_t upper;   /* + all steps left open */
	uint64_t refused; /* steps on which another variant resets, or may, and this one does not */
	/*
	 * Against the record: a period that differs between two sights of a task without a
	 * placement pass between them was set back. Only spans with a step that could do it, or
	 * with a change, are decisions.
	 */
	uint64_t decisions, agree, disagree, undecided;
};

/* Periods of tasks over placement passes. */
struct nrp_sticky {
	uint64_t tasks;        /* that reported hinting faults */
	uint64_t sticky_tasks; /* of these: with a MIGRATE_FAIL on record */
	uint64_t first_fail;   /* ns: the first of them; 0: none */
	/* Spans of sticky tasks with at least one placement pass in them: */
	uint64_t doubled;                /* doubled at each pass, below the longest period */
	uint64_t doubled_despite_faults; /* of these: with local faults in the counters, so that
					  * nothing but the failure explains it */
	uint64_t capped;                 /* reached the longest period, or stayed there */
	uint64_t disagree;               /* neither */
	uint64_t undecided; /* less than doubled, and the longest period of that pass was not
			     * seen; or a step that may set it back */
	/* The same spans of tasks without a failure on record, for contrast: */
	uint64_t clean_doubled, clean_capped, clean_other;
	uint64_t first_disagreement; /* ns; 0: none */
};

struct nrp_task_moves {
	uint64_t moves;          /* changes of CPU on record */
	uint64_t cross_node;     /* of these: known to change the node */
	uint64_t chosen;         /* times that placement chose a CPU */
	uint64_t faults_unknown; /* cross_node moves of tasks that may lack fault arrays */
	bool events_missing;     /* events were lost, or belong to no record: what contradicts a
				  * rule is undecided then */
	struct nrp_reset_count reset[NRP_NR_SCAN_RESET_VARIANTS];
	struct nrp_claim_count claim;
	struct nrp_sticky sticky;
};

/*
 * Reads task_life, preferred, task_move, scan_pass and hint_fault once, side by side. A task's
 * preferred node and scan sequence are those last seen; what was not seen yet, or may have changed
 * since, is unknown.
 */
int nrp_task_moves_run(struct nrp_task_moves *ret, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err);

#endif
