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

/* ---- adaptation ---------------------------------------------------------------------- */

/*
 * Adaptation is the same in all kernels. They differ in when a task takes note of a new scan
 * sequence: at its next hinting fault, or (4.19) at one after numa_migrate_retry.
 */
enum nrp_scan_period_variant { NRP_SCAN_PERIOD_418, NRP_SCAN_PERIOD_419, NRP_NR_SCAN_PERIODS };

/* Rules that can be switched off. */
#define NRP_PERIOD_ADAPT 1u  /* off: a period stays as it is */
#define NRP_PERIOD_EMPTY 2u  /* without local or shared faults the period doubles */
#define NRP_PERIOD_FAILED 4u /* failed migrations double it */
#define NRP_PERIOD_STICKY 8u /* doubling keeps the counters: one failure doubles for good */
#define NRP_NR_PERIOD_RULES 4
#define NRP_PERIOD_RULES ((1u << NRP_NR_PERIOD_RULES) - 1)
/* "adapt", "empty", ..: names of the switches, by bit. */
const char *nrp_period_rule_name(unsigned int bit);

/* What adaptation reads and writes. */
struct nrp_scan_task {
	uint32_t period_ms;
	uint32_t period_max_ms;         /* of the task: nrp_scan_max() at its last placement */
	uint64_t remote, local, failed; /* pages of faults since the counters were cleared */
};

/* What decided about a period. */
enum nrp_period_by {
	NRP_PERIOD_BY_EMPTY,   /* no local or shared faults: doubled */
	NRP_PERIOD_BY_FAILED,  /* failed migrations: doubled */
	NRP_PERIOD_BY_PRIVATE, /* at least 7 of 10 faults private: longer */
	NRP_PERIOD_BY_LOCAL,   /* at least 7 of 10 faults local: longer */
	NRP_PERIOD_BY_REMOTE,  /* neither: shorter */
	NRP_PERIOD_BY_NOTHING, /* adaptation is off */
	NRP_NR_PERIOD_BY
};
/* "empty", "failed", ... */
const char *nrp_period_by_name(enum nrp_period_by by);

/*
 * Doubled: the early exit, which keeps the counters, and puts the address space's next scan to now
 * + the new period.
 */
static inline bool nrp_period_is_early(enum nrp_period_by by)
{
	return by <= NRP_PERIOD_BY_FAILED;
}

/*
 * One placement pass (spec scan.md 3.4) with the rules @rules (NRP_PERIOD_*): @shared and @private
 * are the pages that it moved out of the buffers, @min_ms and @max_ms the bounds of now. With all
 * rules on, one failed migration makes every later pass double the period (sticky).
 */
enum nrp_period_by nrp_scan_adapt(struct nrp_scan_task *task, uint32_t rules, uint64_t shared,
				  uint64_t private, uint32_t min_ms, uint32_t max_ms);

/* numa_migrate_retry after a fault at @jiffies that tried the preferred node; @hz ticks/s. */
uint64_t nrp_scan_retry(uint64_t jiffies, uint32_t period_ms, uint32_t hz);
/* May a fault run the placement pass that a new sequence asks for? */
bool nrp_scan_placement_may_run(enum nrp_scan_period_variant variant, uint64_t jiffies,
				uint64_t retry);

#endif
