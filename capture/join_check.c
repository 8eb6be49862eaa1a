/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does the topology of a facts file agree with what the kernel recorded? All of it is certain: the
 * kernel looks at page, CPU and nodes under one lock.
 */
#include "capture/join_internal.h"

static void contradict(struct nrp_joiner *j, int32_t cpu, int32_t nid)
{
	struct nrp_contradiction *c = &j->stats.contradiction;

	if (!c->count++) {
		c->cpu = cpu;
		c->nid = nid;
	}
}

static bool checked(const struct nrp_joiner *j)
{
	return j->facts->nr_nodes > 0 && !j->facts->topology_inferred;
}

/* A page lies on node @nid, or a task has it as its target. */
static void check_nid(struct nrp_joiner *j, bool known, int16_t nid)
{
	if (known && nid >= j->facts->nr_nodes)
		contradict(j, -1, nid);
}

void nrp_join_check_cpu(struct nrp_joiner *j, int32_t cpu, int32_t nid)
{
	if (checked(j) && cpu >= 0 && nid >= 0 && nrp_host_cpu_nid(j->facts, cpu) != nid)
		contradict(j, cpu, nid);
}

void nrp_join_check_fault(struct nrp_joiner *j, const struct nrp_hint_fault *f)
{
	bool has_mem = !NRP_NULL(f, hint_fault, mem_nid);
	bool has_target = !NRP_NULL(f, hint_fault, target_nid);

	if (!checked(j))
		return;
	if (NRP_NULL(f, hint_fault, this_nid))
		contradict(j, (int32_t)f->cpu, -1);
	check_nid(j, !NRP_NULL(f, hint_fault, src_nid), f->src_nid);
	check_nid(j, has_mem, f->mem_nid);
	check_nid(j, has_target, f->target_nid);
	/* An admitted page goes to the node of the CPU that faulted. */
	if (has_target && !NRP_NULL(f, hint_fault, dst_cpu) &&
	    !NRP_NULL(f, hint_fault, filter_answer) && f->filter_answer)
		nrp_join_check_cpu(j, f->dst_cpu, f->target_nid);
	/* Local before the migration, and there was none. */
	if (has_mem && !NRP_NULL(f, hint_fault, tnf_flags) &&
	    (f->tnf_flags & (NRP_TNF_FAULT_LOCAL | NRP_TNF_MIGRATED)) == NRP_TNF_FAULT_LOCAL)
		nrp_join_check_cpu(j, (int32_t)f->cpu, f->mem_nid);
}
