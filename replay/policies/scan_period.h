/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.period: how often a task scans its address space, and how that adapts to its faults.
 * A re-telling of task_nr_scan_windows(), task_scan_min(), task_scan_start(), task_scan_max() and
 * update_task_scan_period() (kernel/sched/fair.c), the same from 4.14 to 7.2.
 */
#ifndef NRP_POLICY_SCAN_PERIOD_H
#define NRP_POLICY_SCAN_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

/* The host's tunables. */
struct nrp_scan_tunables {
	uint32_t size_mb;       /* scan_size_mb, >= 1; kernel's default 256 */
	uint32_t period_min_ms; /* 1000 */
	uint32_t period_max_ms; /* 60000 */
	uint64_t page_size;     /* bytes */
};

/* A numa_group; references 0: the task has none. */
struct nrp_scan_group {
	uint64_t references;      /* reference count: normally the tasks in it */
	uint64_t shared, private; /* memory faults of the group, all nodes */
};

/* Scan windows that the resident pages fill, at least 1. */
uint64_t nrp_scan_windows(const struct nrp_scan_tunables *tunables, uint64_t rss_pages);
/* Shortest period of a task, ms. */
uint32_t nrp_scan_min(const struct nrp_scan_tunables *tunables, uint64_t rss_pages);
/* Period after a reset, ms. */
uint32_t nrp_scan_start(const struct nrp_scan_tunables *tunables, uint64_t rss_pages,
			const struct nrp_scan_group *group);
/* Longest period, ms. */
uint32_t nrp_scan_max(const struct nrp_scan_tunables *tunables, uint64_t rss_pages,
		      const struct nrp_scan_group *group);

/* What adaptation reads and writes. */
struct nrp_scan_task {
	uint32_t period_ms;
	uint32_t period_max_ms;         /* of the task: nrp_scan_max() at its last placement */
	uint64_t remote, local, failed; /* pages of faults since the counters were cleared */
};

/*
 * One placement pass (spec scan.md 3.4): @shared and @private are the pages that it moved out of
 * the buffers, @min_ms and @max_ms the bounds of now. true: the early exit, which doubles the
 * period, keeps the counters, and puts the address space's next scan to now + the new period. One
 * failed migration makes every later pass take it (sticky).
 */
bool nrp_scan_adapt(struct nrp_scan_task *task, uint64_t shared, uint64_t private, uint32_t min_ms,
		    uint32_t max_ms);


#endif
