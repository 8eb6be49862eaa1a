/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modelled cadence (spec scan.md 6): how often a lane's scan passes come where its own faults adapt
 * the periods. Each task's counters are rebuilt twice, from the faults of the record and from those
 * that the lane has, with the page where the lane has it; each adapts a period by scan.period when
 * the task takes note of a sequence.
 *
 * A model, and open in these places: a task takes note of the recorded sequences; a fault counts as
 * private, and its migration as failed, as on record; the time between two passes is the recorded
 * one plus the difference of the two periods, so that what else a pass waits for (ticks, its share
 * of 3 % of the run time, sleep) stays as it was; the address space is as large as on record, and a
 * group stretches the longest period as it did there; a lane's passes that come more or less often
 * arm and fault in proportion, and migrate what they would have.
 */
#ifndef NRP_CADENCE_H
#define NRP_CADENCE_H

#include "numareplay/store.h"
#include "replay/policies/scan_period.h"
#include "replay/scan_timeline.h"

/* What a lane does about periods. */
struct nrp_cadence_lane {
	enum nrp_scan_period_variant variant;
	uint32_t rules; /* NRP_PERIOD_* */
	uint32_t delay_ms;
	struct nrp_scan_tunables tunables;
};

struct nrp_cadence;

/* @host, @lane: of the record and of the lane. @timeline stays the caller's. */
int nrp_cadence_new(struct nrp_cadence **ret, const struct nrp_host_facts *facts,
		    const struct nrp_scan_timeline *timeline, const struct nrp_cadence_lane *host,
		    const struct nrp_cadence_lane *lane, struct nrp_error *err);
struct nrp_cadence *nrp_cadence_free(struct nrp_cadence *cadence);

/* In time order; 0 or -ENOMEM. */
int nrp_cadence_life(struct nrp_cadence *cadence, const struct nrp_task_life *life);
int nrp_cadence_pass(struct nrp_cadence *cadence, const struct nrp_scan_pass *pass);
/* @there: the lane has the fault, its page on node @nid (-1: not known). */
int nrp_cadence_fault(struct nrp_cadence *cadence, const struct nrp_hint_fault *fault, bool there,
		      int nid);

/* Modelled over observed cadence: 1 where nothing differs. */
struct nrp_cadence_result {
	bool valid;                                /* there were passes with periods */
	double passes;                             /* number of scan passes */
	double armed;                              /* of entries armed in them */
	double faults, remote_faults, fault_pages; /* that the lane has */
	uint64_t diverged;                         /* ns: first pass with another period, 0: none */
	double period_recorded_ms, period_ms;      /* mean over the recorded passes */
};
struct nrp_cadence_result nrp_cadence_result(struct nrp_cadence *cadence);

#endif
