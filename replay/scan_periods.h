/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.period against the record: the periods that filter calls and scan passes show are rebuilt
 * from the faults that each task reported (policies/task_fault.h, scan_period.h; spec scan.md 3.4,
 * 4, 7.3), and so is the time of the next scan that each pass found.
 *
 * The step is exact given its inputs. Those that no record holds are bounded: the resident pages by
 * the longest periods that passes of the address space show, one window more or less; what a
 * numa_group decides (policies/task_fault.h) by both answers.
 */
#ifndef NRP_SCAN_PERIODS_H
#define NRP_SCAN_PERIODS_H

#include "numareplay/store.h"
#include "replay/policies/scan_period.h"

struct nrp_period_count {
	/* Spans between two sights of a task's period with a placement pass in them. */
	uint64_t decisions, agree, disagree, undecided;
	uint64_t decisions_by[NRP_NR_PERIOD_BY], agree_by[NRP_NR_PERIOD_BY]; /* decided ones */
	uint64_t first_disagreement;                                         /* ns, 0: none */
	/* Passes whose next_scan follows from the pass before it, and those where it is so. */
	uint64_t next_scans, next_scans_agree;
};

struct nrp_scan_periods {
	struct nrp_period_count variant[NRP_NR_SCAN_PERIODS];
	uint64_t sights; /* of a task's period */
};

/*
 * Reads task_life, preferred, task_move, scan_pass and hint_fault, twice. Without ticks or without
 * a period on record all counts are 0.
 */
int nrp_scan_periods_run(struct nrp_scan_periods *ret, struct nrp_store *store,
			 const struct nrp_capture *capture, struct nrp_error *err);

#endif
