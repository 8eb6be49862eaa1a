/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.period: task_scan_min(), task_scan_start(), task_scan_max(), update_task_scan_period(),
 * kernel/sched/fair.c; spec scan.md 3.2, 3.4 and 10, migrate.md 3.3 (sticky back-off).
 *
 *   start and bounds of groups               b5dd77c8bdad (4.14)
 *   adaptation by private and shared faults  37ec97deb3a8 (4.14)
 *
 * The period is spread over the windows that an address space fills, so that big ones scan more
 * often. It grows while faults are local or private and shrinks while they are remote and shared;
 * each tenth of the way above or below 70 % is worth one tenth of the period.
 */
#include "replay/policies/scan_period.h"

/* No task scans more than this in a second, whatever its size. */
#define MAX_SCAN_MB_PER_S 2560u
#define MSEC_PER_SEC 1000u
#define SLOTS 10u
#define THRESHOLD 7u

uint64_t nrp_scan_windows(const struct nrp_scan_tunables *tunables, uint64_t rss_pages)
{
	uint64_t window = ((uint64_t)tunables->size_mb << 20) / tunables->page_size;

	return rss_pages ? (rss_pages - 1) / window + 1 : 1;
}

uint32_t nrp_scan_min(const struct nrp_scan_tunables *tunables, uint64_t rss_pages)
{
	uint32_t windows_per_s =
		tunables->size_mb < MAX_SCAN_MB_PER_S ? MAX_SCAN_MB_PER_S / tunables->size_mb : 1;
	uint32_t floor_ms = MSEC_PER_SEC / windows_per_s;
	uint64_t scan = tunables->period_min_ms / nrp_scan_windows(tunables, rss_pages);

	return scan > floor_ms ? (uint32_t)scan : floor_ms;
}

/* Tasks of a group scan for one another: the more of them, and the more they share, the less each
 * one. */
static uint64_t stretch(uint64_t period, const struct nrp_scan_group *group)
{
	return period * group->references * (group->shared + 1) /
	       (group->private + group->shared + 1);
}

uint32_t nrp_scan_start(const struct nrp_scan_tunables *tunables, uint64_t rss_pages,
			const struct nrp_scan_group *group)
{
	uint32_t least = nrp_scan_min(tunables, rss_pages);
	uint64_t period = group->references ? stretch(least, group) : least;

	return period > least ? (uint32_t)period : least;
}

uint32_t nrp_scan_max(const struct nrp_scan_tunables *tunables, uint64_t rss_pages,
		      const struct nrp_scan_group *group)
{
	uint32_t least = nrp_scan_min(tunables, rss_pages);
	uint64_t most = tunables->period_max_ms / nrp_scan_windows(tunables, rss_pages);

	if (group->references && stretch(most, group) > most)
		most = stretch(most, group);
	return most > least ? (uint32_t)most : least;
}

/* The kernel does not come here with an empty whole: every fault counts in both ratios. */
static uint64_t tenths_of(uint64_t part, uint64_t whole)
{
	return whole ? SLOTS * part / whole : 0;
}

/* Tenths of the period to add; negative: to take off. */
static int32_t slots_to_add(uint64_t private_tenths, uint64_t local_tenths)
{
	uint64_t tenths = private_tenths;

	if (tenths < THRESHOLD && local_tenths > tenths)
		tenths = local_tenths;
	if (tenths < THRESHOLD)
		return -(int32_t)(THRESHOLD - tenths);
	return tenths > THRESHOLD ? (int32_t)(tenths - THRESHOLD) : 1;
}

bool nrp_scan_adapt(struct nrp_scan_task *task, uint64_t shared, uint64_t private, uint32_t min_ms,
		    uint32_t max_ms)
{
	uint32_t slot = task->period_ms / SLOTS + (task->period_ms % SLOTS != 0), period;

	/* Nothing to learn from, or the target nodes are full: scan less. */
	if (task->local + shared == 0 || task->failed) {
		uint32_t doubled = task->period_ms * 2;

		task->period_ms = doubled < task->period_max_ms ? doubled : task->period_max_ms;
		return true;
	}
	period = task->period_ms +
		 slot * (uint32_t)slots_to_add(tenths_of(private, private + shared),
					       tenths_of(task->local, task->remote + task->local));
	task->period_ms = period < min_ms ? min_ms : period > max_ms ? max_ms : period;
	task->remote = 0;
	task->local = 0;
	task->failed = 0;
	return false;
}
