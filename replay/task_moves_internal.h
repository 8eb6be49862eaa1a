/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of task_moves.c. */
#ifndef NRP_TASK_MOVES_INTERNAL_H
#define NRP_TASK_MOVES_INTERNAL_H

#include "replay/task_moves.h"

/* One sight of a task's scan period, and what happened since. */
struct nrp_period_sight {
	bool seen;
	bool local_before;   /* the task's counters held local faults already */
	bool reset_possible; /* a step that some variant resets on, or may */
	bool broken;         /* forked or executed since: sequence numbers mean nothing */
	uint32_t period;     /* ms */
	int32_t scan_seq;
	uint8_t reset[NRP_NR_SCAN_RESET_VARIANTS]; /* enum nrp_scan_reset_answer */
};

/* Two sights with placement passes between them; how long a period may be is not seen yet. */
struct nrp_period_span {
	bool used;
	uint32_t from, to; /* ms */
	int32_t scan_seq;  /* at the second sight */
	int64_t passes;
	uint64_t time; /* ns, of the second sight */
};

/* What is known about one task. */
struct nrp_task {
	bool met;                                   /* is set up */
	bool gone;                                  /* exited */
	bool reported;                              /* counted in sticky.tasks */
	bool failed;                                /* MIGRATE_FAIL on record: sticky */
	bool unsure;                                /* failed, then executed another program */
	bool local_since;                           /* a local fault since: the failure keeps it */
	uint8_t faults;                             /* enum nrp_scan_reset_answer: arrays? */
	uint8_t faults_before;                      /* .. before faults_from */
	uint64_t faults_from;                       /* ns */
	struct nrp_scan_reset_number preferred_nid; /* as last seen */
	struct nrp_scan_reset_number scan_seq;
	struct nrp_period_sight sight;
	struct nrp_period_span waiting;
	/* Resets that did not show: contradictions, if the task is in no group. By variant. */
	uint32_t hidden[NRP_NR_SCAN_RESET_VARIANTS];
	/* Claims: indices + 1 into the requests; 0: none. */
	size_t open;        /* own request that is not done */
	size_t pending;     /* own request that is done; the CPU may still be claimed */
	size_t partner;     /* swap that moves this task to the requesting task's CPU */
	uint64_t idle_from; /* ns: end of the last event before the next one */
};

/* Requests for CPUs, in the order of their events. */
struct nrp_claims {
	struct nrp_claim_request *at;
	struct nrp_swap_state {
		int32_t src_cpu; /* where the partner goes */
		bool own_done;
	} * swap; /* [room] */
	size_t count, room;
};

/* ---- task_periods.c ----------------------------------------------------------------- */

/* A step of @task: counted for each variant, and remembered until its period is seen again. */
void nrp_periods_step(struct nrp_task_moves *m, struct nrp_task *task,
		      const struct nrp_scan_reset_event *event);
/*
 * The task's period is seen. @period_max 0: not seen. @time: of the sight, ns.
 */
void nrp_periods_see(struct nrp_task_moves *m, struct nrp_task *task,
		     const struct nrp_host_facts *facts, uint64_t time, uint32_t period,
		     int32_t scan_seq, uint32_t period_max);
/* A filter call shows whether the task is in a numa_group. Who is in none was in none before. */
void nrp_periods_group(struct nrp_task_moves *m, struct nrp_task *task, bool grouped);
/* No more sights of this task. */
void nrp_periods_end(struct nrp_task_moves *m, const struct nrp_task *task);
/* Sets the values between lower and upper. */
void nrp_periods_finish(struct nrp_task_moves *m);

/* ---- task_claims.c ------------------------------------------------------------------ */

/* A move or swap request by @task. */
int nrp_claims_request(struct nrp_claims *claims, struct nrp_task *task,
		       const struct nrp_task_move *move, uint64_t first_time);
/* @task has changed to @cpu: completes its own request, or its part in another's. */
void nrp_claims_moved(struct nrp_claims *claims, struct nrp_task *task, uint64_t time, int cpu);
/* Any other event of the task, which ends at @end: what was open before is over. */
void nrp_claims_event(struct nrp_claims *claims, struct nrp_task *task, uint64_t time,
		      uint64_t end);
/* Counts; @last_time: end of the capture. */
struct nrp_claim_count nrp_claims_finish(struct nrp_claims *claims, uint64_t last_time);
void nrp_claims_clear(struct nrp_claims *claims);

#endif
