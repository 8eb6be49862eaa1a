/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.filter: should_numa_migrate_memory(), kernel/sched/fair.c; spec migrate.md 2.4 (rules),
 * 2.1 (cpupid) and 2.3 (who calls it).
 *
 *   4.18  the two-stage filter and the group weights, 10f39042711b
 *   4.19  + D4, 37355bdc5a12
 *   6.1   + D1 and D3, memory tiering, 33024536bafd; the default memory policy returns before the
 *	     filter when the page is local (LOCALMARK; between 5.10 and 6.1)
 *   6.12  + D0, a target node without memory ("sched/numa, mm: do not try to migrate memory to
 *	     memoryless nodes", 6.9)
 *
 * The idea behind the rules: a page should follow its user, but one access by a task says little.
 * So a page moves on the second access in a row from the target node (D5), or when the same task
 * comes back (D6), unless the task's group is spread over nodes, in which case the group's use of
 * both nodes decides (D8, D9).
 */
#include "replay/policies/migrate_filter.h"

#include <stddef.h>

#define PID_BITS 8
#define PID_MASK 0xffu

/* A task is young until this many scans of its address space are complete (D4). */
#define YOUNG_SCANS 4
/* A node is active when it has at least 1/3 of the busiest node's weight (D8). */
#define ACTIVE_NODE_FRACTION 3

const char *nrp_filter_variant_name(enum nrp_filter_variant variant)
{
	switch (variant) {
	case NRP_FILTER_418:
		return "4.18";
	case NRP_FILTER_419:
		return "4.19";
	case NRP_FILTER_61:
		return "6.1";
	case NRP_FILTER_612:
		return "6.12";
	case NRP_NR_FILTER_VARIANTS:
		break;
	}
	return NULL;
}

const char *nrp_filter_rule_name(enum nrp_filter_rule rule)
{
	static const char *const names[NRP_NR_FILTER_RULES] = {
		"D0", "D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9",
	};

	return (unsigned int)rule < NRP_NR_FILTER_RULES ? names[rule] : NULL;
}

/* ---- cpupid: who touched the page last ---------------------------------------------- */

uint32_t nrp_filter_cpupid_unset(const struct nrp_filter_host *host)
{
	return host->cpupid_bits >= 32 ? UINT32_MAX : (1u << host->cpupid_bits) - 1;
}

uint32_t nrp_filter_cpupid(const struct nrp_filter_host *host, int cpu, int32_t tid)
{
	uint32_t cpupid = ((uint32_t)cpu << PID_BITS) | ((uint32_t)tid & PID_MASK);

	return cpupid & nrp_filter_cpupid_unset(host);
}

/* Only the pid byte is looked at: a thread with tid % 256 == 255 looks like nobody. */
static bool pid_unset(uint32_t cpupid)
{
	return (cpupid & PID_MASK) == PID_MASK;
}

/* Only the pid byte is compared: threads 256 apart are taken for one another. */
static bool pid_matches(uint32_t cpupid, int32_t tid)
{
	return (cpupid & PID_MASK) == ((uint32_t)tid & PID_MASK);
}

static uint32_t cpupid_cpu(const struct nrp_filter_host *host, uint32_t cpupid)
{
	return (cpupid & nrp_filter_cpupid_unset(host)) >> PID_BITS;
}

static bool cpupid_valid(const struct nrp_filter_host *host, uint32_t cpupid)
{
	return host->nr_cpus > 0 && cpupid_cpu(host, cpupid) < (uint32_t)host->nr_cpus;
}

/*
 * -1 for a CPU outside the table or without a known node. The kernel would read some node there;
 * we cannot know which, and a node that differs from every target makes D5 answer "stay".
 */
static int cpupid_nid(const struct nrp_filter_host *host, uint32_t cpupid)
{
	return cpupid_valid(host, cpupid) ? host->cpu_nid[cpupid_cpu(host, cpupid)] : -1;
}

/* ---- the rules ---------------------------------------------------------------------- */

static struct nrp_filter_result stay(enum nrp_filter_rule rule)
{
	return (struct nrp_filter_result){ .answer = NRP_FILTER_STAY, .rule = rule };
}

static struct nrp_filter_result move(enum nrp_filter_rule rule)
{
	return (struct nrp_filter_result){ .answer = NRP_FILTER_MOVE, .rule = rule };
}

static struct nrp_filter_result undecided(enum nrp_filter_rule rule)
{
	return (struct nrp_filter_result){ .answer = NRP_FILTER_UNDECIDED, .rule = rule };
}

/*
 * D8, D9: the group's tasks share the page. All products are the kernel's unsigned long, wrapping
 * included. Without weights nobody can tell which of the two rules would have answered; D9, the
 * last one, stands for both.
 */
static struct nrp_filter_result decide_by_group(const struct nrp_filter_call *call)
{
	if (!call->weights_known)
		return undecided(NRP_FILTER_D9);

	/* The group hardly runs on the page's node: bring the memory to where it does run. */
	if (call->cpu_dst > call->cpu_src * ACTIVE_NODE_FRACTION)
		return move(NRP_FILTER_D8);

	/*
	 * Spread memory like CPU use: move when CPU/memory of the target exceeds 4/3 of the
	 * source's, written without divisions; the third is there against ping-pong.
	 */
	if (call->cpu_dst * call->mem_src * 3 > call->cpu_src * call->mem_dst * 4)
		return move(NRP_FILTER_D9);
	return stay(NRP_FILTER_D9);
}

struct nrp_filter_result nrp_filter_decide(enum nrp_filter_variant variant,
					   const struct nrp_filter_host *host,
					   const struct nrp_filter_call *call)
{
	bool memory_checked = variant >= NRP_FILTER_612;
	bool tiers = variant >= NRP_FILTER_61;
	bool quick_start = variant >= NRP_FILTER_419;
	uint32_t last = call->last_cpupid;
	bool untouched = pid_unset(last);
	bool own = pid_matches(last, call->tid);

	if (memory_checked && call->dst_without_memory)
		return stay(NRP_FILTER_D0);

	/* On a slow node the field holds an access time, which only the promotion policy reads. */
	if (tiers && host->tiering && call->src_slow_tier)
		return undecided(NRP_FILTER_D1);

	/* D2: from here on the page remembers this access, whatever the answer. */

	/* Tiering was switched off: what the page carries may still be an access time. */
	if (tiers && !host->tiering && call->src_slow_tier && !cpupid_valid(host, last))
		return stay(NRP_FILTER_D3);

	/* The start of a task: what it allocated before it was placed should follow at once. */
	if (quick_start && (call->preferred_nid == -1 || call->scan_seq <= YOUNG_SCANS) &&
	    (untouched || own))
		return move(NRP_FILTER_D4);

	/* First stage: two accesses in a row from the target node, or the page stays. */
	if (!untouched && cpupid_nid(host, last) != call->dst_nid)
		return stay(NRP_FILTER_D5);

	/* Second stage: private pages move; so do shared ones when no group is known. */
	if (own)
		return move(NRP_FILTER_D6);
	if (!call->grouped)
		return move(NRP_FILTER_D7);

	return decide_by_group(call);
}

bool nrp_filter_is_called(enum nrp_filter_variant variant, int src_nid, int this_nid)
{
	return variant < NRP_FILTER_61 || src_nid != this_nid;
}

bool nrp_filter_exchanges(enum nrp_filter_rule rule)
{
	return rule != NRP_FILTER_D0 && rule != NRP_FILTER_D1;
}
