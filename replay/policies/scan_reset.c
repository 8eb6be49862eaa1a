/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.reset: task_numa_migrate() and update_scan_period(), kernel/sched/fair.c; spec migrate.md
 * 3.3, scan.md 3.2.
 *
 *   S418   up to 4.18, in task_numa_migrate()
 *   S_ALL  "sched/numa: Reset scan rate whenever task moves across nodes" (4.19)
 *   S_LIM  "sched/numa: Limit the conditions where scan period is reset" (4.19)
 *
 * A task on a new node has to learn where its memory is, so it scans fast again. Two exceptions
 * came with S_LIM: the move to the preferred node is what scanning asked for, and a task that was
 * off its preferred node already scans fast.
 *
 * Facts may be unknown; the answers are combined by three-valued logic.
 */
#include "replay/policies/scan_reset.h"

#include <stddef.h>

const char *nrp_scan_reset_variant_name(enum nrp_scan_reset_variant variant)
{
	static const char *const names[NRP_NR_SCAN_RESET_VARIANTS] = { "S418", "S_ALL", "S_LIM" };

	return (unsigned int)variant < NRP_NR_SCAN_RESET_VARIANTS ? names[variant] : NULL;
}

typedef enum nrp_scan_reset_answer answer;

static answer not(answer a)
{
	return a == NRP_RESET_UNKNOWN ? a : a == NRP_RESET_NO ? NRP_RESET_YES : NRP_RESET_NO;
}

static answer both(answer a, answer b)
{
	if (a == NRP_RESET_NO || b == NRP_RESET_NO)
		return NRP_RESET_NO;
	return a == NRP_RESET_YES ? b : a;
}

static answer either(answer a, answer b)
{
	return not(both(not(a), not(b)));
}

static answer equal(struct nrp_scan_reset_number a, struct nrp_scan_reset_number b)
{
	if (!a.known || !b.known)
		return NRP_RESET_UNKNOWN;
	return a.value == b.value ? NRP_RESET_YES : NRP_RESET_NO;
}

/* The moves that S_LIM leaves out. Before the first placement (sequence 0) there are none. */
static answer excepted(const struct nrp_scan_reset_event *e)
{
	answer placed = not(equal(e->scan_seq, NRP_RESET_KNOWN(0)));
	answer wanted = equal(e->dst_nid, e->preferred_nid);
	answer was_off = both(not(equal(e->preferred_nid, NRP_RESET_KNOWN(-1))),
			      not(equal(e->src_nid, e->preferred_nid)));

	return both(placed, either(wanted, was_off));
}

enum nrp_scan_reset_answer nrp_scan_reset_decide(enum nrp_scan_reset_variant variant,
						 const struct nrp_scan_reset_event *e)
{
	answer crosses;

	/* Placement asks for a task that has fault arrays: it looked at them. */
	if (variant == NRP_SCAN_RESET_418)
		return e->step == NRP_RESET_CHOSEN ? NRP_RESET_YES : NRP_RESET_NO;
	if (e->step != NRP_RESET_MOVED)
		return NRP_RESET_NO;
	crosses = both(e->faults, not(equal(e->src_nid, e->dst_nid)));
	return variant == NRP_SCAN_RESET_ALL ? crosses : both(crosses, not(excepted(e)));
}
