/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a hinting fault adds to its task, and what a placement pass makes of it: task_numa_fault()
 * and task_numa_placement() (kernel/sched/fair.c, 4.14 to 7.2); spec scan.md 4 and 11.
 *
 * Exact for a task without a numa_group. With one, three things hang on facts that no record of the
 * task holds, and are the caller's to give or to bound: whether a fault that looks shared counts as
 * private (task_numa_group() decides by who runs on another CPU), whether a shared fault between
 * active nodes counts as local, and the preferred node (of the group's sums).
 */
#ifndef NRP_POLICY_TASK_FAULT_H
#define NRP_POLICY_TASK_FAULT_H

#include "replay/policies/scan_period.h"

#include <stddef.h>

/* Statistics of a task: decaying averages, and what came since the last placement pass. */
enum nrp_fault_stat {
	NRP_STAT_MEM,
	NRP_STAT_CPU,
	NRP_STAT_MEMBUF,
	NRP_STAT_CPUBUF,
	NRP_NR_FAULT_STATS
};

/* Two counters per statistic and node: shared and private. */
#define NRP_TASK_FAULT_COUNTERS(nr_nodes) ((size_t)(nr_nodes)*2 * NRP_NR_FAULT_STATS)

struct nrp_task_faults {
	uint64_t *at;      /* [NRP_TASK_FAULT_COUNTERS(nr_nodes)], the caller's; 0 at first */
	uint32_t nr_nodes; /* nr_node_ids */
	uint64_t total;    /* total_numa_faults */
	uint64_t migrated; /* pages that its faults moved */
	struct nrp_scan_task scan; /* its locality counters are filled here */
};

/* Where a counter is: numa_faults[] of the kernel has the same order. */
static inline size_t nrp_fault_index(uint32_t nr_nodes, enum nrp_fault_stat stat, uint32_t nid,
				     bool private)
{
	return 2 * ((size_t)stat * nr_nodes + nid) + private;
}

/*
 * Did the task itself touch the page last? A cpupid never set counts as its own. Only the low
 * byte of the thread id is stored: a task whose byte is 255 is told from "never set" by the rest.
 */
bool nrp_fault_is_private(uint32_t last_cpupid, uint32_t unset_cpupid, int32_t tid);

/* One fault as task_numa_fault() reports it. */
struct nrp_fault_report {
	uint32_t mem_nid; /* where the page is, after a migration; below nr_nodes */
	uint32_t cpu_nid; /* of the task's CPU; below nr_nodes */
	uint32_t pages;
	bool private;
	bool local; /* FAULT_LOCAL: before a migration */
	bool migrated, failed;
};
/* A placement pass that is due comes first. */
void nrp_task_fault_add(struct nrp_task_faults *task, const struct nrp_fault_report *report);

struct nrp_placement {
	uint64_t shared, private; /* pages moved out of the buffers */
	int32_t preferred_nid;    /* most faults, the first of equals; -1: none yet */
};

/*
 * Takes the buffers into the averages. @runtime: of the task since its last placement pass, @span:
 * the time since then, both ns; the first time the kernel takes the load's sum and 47742. The
 * period is nrp_scan_adapt()'s, which comes next.
 */
struct nrp_placement nrp_task_fault_place(struct nrp_task_faults *task, uint64_t runtime,
					  uint64_t span);

#endif
