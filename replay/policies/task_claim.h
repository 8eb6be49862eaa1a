/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task.claim: which recorded requests of NUMA placement would not have been made if a CPU could
 * be the target of one task at a time?
 * A re-telling of numa_migrate_on in task_numa_assign() and task_numa_migrate()
 * (kernel/sched/fair.c, 4.19 on).
 */
#ifndef NRP_POLICY_TASK_CLAIM_H
#define NRP_POLICY_TASK_CLAIM_H

#include <stddef.h>
#include <stdint.h>

/* One sched_move_numa or sched_swap_numa: a task asks for a CPU. Times in any unit. */
struct nrp_claim_request {
	uint64_t time;     /* of the request */
	uint64_t done;     /* the move is done, or given up: >= time */
	uint64_t earliest; /* the CPU may have been chosen from here on: <= time */
	uint64_t latest;   /* the CPU is free again from here on, for certain: >= done */
	int32_t tid;
	int32_t dst_cpu;
};

struct nrp_claim_count {
	uint64_t requests;
	uint64_t suppressed_lower; /* asked for a CPU while another request for it was open */
	uint64_t suppressed_upper; /* perhaps chose it while it was claimed */
};

/*
 * Counts over @n requests (spec migrate.md 3.4); sorts them. What a suppressed task would have done
 * instead is not known.
 */
struct nrp_claim_count nrp_claim_run(struct nrp_claim_request *requests, size_t n);

#endif
