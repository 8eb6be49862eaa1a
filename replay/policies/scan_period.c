/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.period: task_scan_min(), task_scan_start(), task_scan_max(), update_task_scan_period(),
 * kernel/sched/fair.c; spec scan.md 3.2, 3.4 and 10, migrate.md 3.3 (sticky back-off).
 *
 *   start and bounds of groups               b5dd77c8bdad (4.14)
 *   adaptation by private and shared faults  37ec97deb3a8 (4.14)
 *   placement only past numa_migrate_retry   4.19 (spec 3.4)
 *
 * The period is spread over the windows that an address space fills, so that big ones scan more
 * often. It grows while faults are local or private and shrinks while they are remote and shared;
 * each tenth of the way above or below 70 % is worth one tenth of the period.
 */
#include "replay/policies/scan_period.h"
#include "replay/policies/ticks.h"

/* No task scans more than this in a second, whatever its size. */
#define MAX_SCAN_MB_PER_S 2560u
#define MSEC_PER_SEC 1000u
#define SLOTS 10u
#define THRESHOLD 7u
#define RETRIES_PER_PERIOD 16u

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

/* Nothing to learn from, or the target nodes are full? */
static enum nrp_period_by early(const struct nrp_scan_task *task, uint32_t rules, uint64_t shared)
{
	if (!(rules & NRP_PERIOD_ADAPT))
		return NRP_PERIOD_BY_NOTHING;
	if ((rules & NRP_PERIOD_FAILED) && task->failed)
		return NRP_PERIOD_BY_FAILED;
	if ((rules & NRP_PERIOD_EMPTY) && task->local + shared == 0)
		return NRP_PERIOD_BY_EMPTY;
	return NRP_NR_PERIOD_BY;
}

static void clear(struct nrp_scan_task *task)
{
	task->remote = 0;
	task->local = 0;
	task->failed = 0;
}

static void scan_less(struct nrp_scan_task *task)
{
	task->period_ms = task->period_ms <= task->period_max_ms / 2 ? task->period_ms * 2
								     : task->period_max_ms;
}

enum nrp_period_by nrp_scan_adapt(struct nrp_scan_task *task, uint32_t rules, uint64_t shared,
				  uint64_t private, uint32_t min_ms, uint32_t max_ms)
{
	uint64_t ps = tenths_of(private, private + shared);
	uint64_t lr = tenths_of(task->local, task->remote + task->local);
	uint32_t slot = task->period_ms / SLOTS + (task->period_ms % SLOTS != 0);
	int64_t period = (int64_t)task->period_ms + (int64_t)slot * slots_to_add(ps, lr);
	enum nrp_period_by by = early(task, rules, shared);

	if (by == NRP_PERIOD_BY_NOTHING)
		return by;
	if (by != NRP_NR_PERIOD_BY) {
		scan_less(task);
		if (!(rules & NRP_PERIOD_STICKY))
			clear(task);
		return by;
	}
	task->period_ms = period < min_ms ? min_ms : period > max_ms ? max_ms : (uint32_t)period;
	clear(task);
	return ps >= THRESHOLD   ? NRP_PERIOD_BY_PRIVATE
	       : lr >= THRESHOLD ? NRP_PERIOD_BY_LOCAL
				 : NRP_PERIOD_BY_REMOTE;
}

uint64_t nrp_scan_retry(uint64_t jiffies, uint32_t period_ms, uint32_t hz)
{
	uint64_t wait = nrp_ms_to_ticks(period_ms, hz) / RETRIES_PER_PERIOD;

	return jiffies + (wait < hz ? wait : hz);
}

bool nrp_scan_placement_may_run(enum nrp_scan_period_variant variant, uint64_t jiffies,
				uint64_t retry)
{
	return variant == NRP_SCAN_PERIOD_418 || jiffies > retry;
}

const char *nrp_period_rule_name(unsigned int bit)
{
	static const char *const names[NRP_NR_PERIOD_RULES] = { "adapt", "empty", "failed",
								"sticky" };

	return names[bit];
}

const char *nrp_period_by_name(enum nrp_period_by by)
{
	static const char *const names[NRP_NR_PERIOD_BY] = { "empty", "failed", "private",
							     "local", "remote", "nothing" };

	return names[by];
}
