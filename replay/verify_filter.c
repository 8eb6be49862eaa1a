/* SPDX-License-Identifier: GPL-2.0-or-later */
/* migrate.filter against every recorded answer of should_numa_migrate_memory(). */
#include "replay/verify_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct nrp_filter_check {
	const struct nrp_host_facts *facts;
	struct nrp_filter_host host;
	struct nrp_verify_variant variant[NRP_NR_FILTER_VARIANTS];
	struct nrp_verify_rule rule[NRP_NR_FILTER_VARIANTS][NRP_NR_FILTER_RULES];
	/* differ[a][b]: calls that a and b answer differently */
	uint64_t differ[NRP_NR_FILTER_VARIANTS][NRP_NR_FILTER_VARIANTS];
	uint64_t moves[NRP_NR_FILTER_VARIANTS];
};

struct nrp_filter_host nrp_filter_host_of(const struct nrp_host_facts *facts)
{
	return (struct nrp_filter_host){
		/* Unknown width: rules look at the pid byte and the CPU, which any width keeps. */
		.cpupid_bits = facts->cpupid_bits > 0 ? (unsigned int)facts->cpupid_bits : 32,
		.cpu_nid = facts->cpu_nid,
		.nr_cpus = facts->nr_cpus,
		.tiering = facts->balancing > 0 && (facts->balancing & 2),
	};
}

/* A node without CPUs is taken for slow memory; the tier map itself is in no capture. */
static bool slow_tier(const struct nrp_host_facts *facts, int nid)
{
	if (facts->topology_inferred || facts->nr_cpus == 0)
		return false;
	for (int cpu = 0; cpu < facts->nr_cpus; cpu++)
		if (facts->cpu_nid[cpu] == nid)
			return false;
	return true;
}

bool nrp_filter_call_of(struct nrp_filter_call *ret, const struct nrp_host_facts *facts,
			const struct nrp_hint_fault *f)
{
	int dst;

	if (NRP_NULL(f, hint_fault, filter_delay) || NRP_NULL(f, hint_fault, dst_cpu) ||
	    NRP_NULL(f, hint_fault, src_nid) || NRP_NULL(f, hint_fault, last_cpupid) ||
	    NRP_NULL(f, hint_fault, preferred_nid) || NRP_NULL(f, hint_fault, scan_seq))
		return false;
	dst = nrp_host_cpu_nid(facts, f->dst_cpu);
	if (dst < 0)
		return false;
	*ret = (struct nrp_filter_call){
		.tid = f->tid,
		.src_nid = f->src_nid,
		.dst_nid = dst,
		.last_cpupid = f->last_cpupid,
		.preferred_nid = f->preferred_nid,
		.scan_seq = f->scan_seq,
		.grouped = !NRP_NULL(f, hint_fault, numa_group),
		.dst_without_memory = dst < facts->nr_nodes && facts->node_memkb[dst] == 0,
		.src_slow_tier = slow_tier(facts, f->src_nid),
		.weights_known = !NRP_NULL(f, hint_fault, group_cpu_src) &&
				 !NRP_NULL(f, hint_fault, group_cpu_dst) &&
				 !NRP_NULL(f, hint_fault, group_mem_src) &&
				 !NRP_NULL(f, hint_fault, group_mem_dst),
		.cpu_src = f->group_cpu_src,
		.cpu_dst = f->group_cpu_dst,
		.mem_src = f->group_mem_src,
		.mem_dst = f->group_mem_dst,
	};
	return true;
}

int nrp_filter_check_new(struct nrp_filter_check **ret, const struct nrp_host_facts *facts)
{
	struct nrp_filter_check *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->facts = facts;
	c->host = nrp_filter_host_of(facts);
	for (int v = 0; v < NRP_NR_FILTER_VARIANTS; v++) {
		c->variant[v].variant = nrp_filter_variant_name((enum nrp_filter_variant)v);
		for (int r = 0; r < NRP_NR_FILTER_RULES; r++)
			c->rule[v][r].rule = nrp_filter_rule_name((enum nrp_filter_rule)r);
	}
	*ret = c;
	return 0;
}

struct nrp_filter_check *nrp_filter_check_free(struct nrp_filter_check *check)
{
	free(check);
	return NULL;
}

/*
 * Whether the filter was reached at all tells generations apart that answer alike: local faults
 * of the default policy reach it up to 5.10 only.
 */
static void count_calls(struct nrp_filter_check *c, const struct nrp_hint_fault *f)
{
	bool called = !NRP_NULL(f, hint_fault, filter_delay);

	if (NRP_NULL(f, hint_fault, src_nid) || NRP_NULL(f, hint_fault, this_nid))
		return;
	for (int v = 0; v < NRP_NR_FILTER_VARIANTS; v++)
		c->variant[v].excluded_by +=
			called !=
			nrp_filter_is_called((enum nrp_filter_variant)v, f->src_nid, f->this_nid);
}

void nrp_filter_check_fault(struct nrp_filter_check *c, const struct nrp_hint_fault *f)
{
	enum nrp_filter_answer answer[NRP_NR_FILTER_VARIANTS];
	struct nrp_filter_call call;
	bool usable;

	count_calls(c, f);
	if (NRP_NULL(f, hint_fault, filter_answer))
		return;
	usable = nrp_filter_call_of(&call, c->facts, f);
	for (int v = 0; v < NRP_NR_FILTER_VARIANTS; v++) {
		struct nrp_filter_result r = { .answer = NRP_FILTER_UNDECIDED,
					       .rule = NRP_FILTER_D9 };
		bool agree;

		if (usable)
			r = nrp_filter_decide((enum nrp_filter_variant)v, &c->host, &call);
		answer[v] = r.answer;
		c->moves[v] += r.answer == NRP_FILTER_MOVE;
		agree = r.answer != NRP_FILTER_UNDECIDED &&
			(r.answer == NRP_FILTER_MOVE) == (f->filter_answer != 0);
		c->variant[v].decisions++;
		if (r.answer == NRP_FILTER_UNDECIDED)
			c->variant[v].undecided++;
		else if (agree)
			c->variant[v].agree++;
		else
			c->variant[v].disagree++;
		if (usable) {
			c->rule[v][r.rule].decisions++;
			c->rule[v][r.rule].agree += agree;
		}
	}
	for (int a = 0; a < NRP_NR_FILTER_VARIANTS; a++)
		for (int b = 0; b < a; b++)
			if (answer[a] != answer[b]) {
				c->differ[a][b]++;
				c->differ[b][a]++;
			}
}

/* Among equals, the generation whose functions the kernel has. */
static int by_functions(const struct nrp_host_facts *facts)
{
	if (facts->has_prepare_step)
		return NRP_FILTER_612;
	if (facts->has_ratelimit_event)
		return NRP_FILTER_418;
	if (facts->has_thp_function)
		return NRP_FILTER_419;
	return NRP_FILTER_61;
}

static bool better(const struct nrp_filter_check *c, int a, int b)
{
	const struct nrp_verify_variant *x = &c->variant[a], *y = &c->variant[b];

	if (x->agree != y->agree)
		return x->agree > y->agree;
	if (x->excluded_by != y->excluded_by)
		return x->excluded_by < y->excluded_by;
	return a == by_functions(c->facts);
}

void nrp_filter_check_finish(const struct nrp_filter_check *c, struct nrp_verify_check *ret)
{
	int best = 0;

	memset(ret, 0, sizeof(*ret));
	for (int v = 1; v < NRP_NR_FILTER_VARIANTS; v++)
		if (better(c, v, best))
			best = v;
	ret->family = "migrate.filter";
	ret->chosen = best;
	ret->nr_variants = NRP_NR_FILTER_VARIANTS;
	memcpy(ret->variant, c->variant, sizeof(c->variant));
	for (int v = 0; v < NRP_NR_FILTER_VARIANTS; v++)
		ret->indistinguishable[v] =
			v != best && !c->differ[v][best] &&
			c->variant[v].excluded_by == c->variant[best].excluded_by;
	memcpy(ret->differ, c->differ, sizeof(c->differ));
	memcpy(ret->moves, c->moves, sizeof(c->moves));
	memcpy(ret->rule, c->rule[best], sizeof(c->rule[best]));
	ret->nr_rules = NRP_NR_FILTER_RULES;
	ret->exclusion = "faults where the filter was (not) reached against the variant";
}
