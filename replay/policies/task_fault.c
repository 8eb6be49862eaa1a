/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/policies/task_fault.h"

#define PID_BYTE 0xffu

bool nrp_fault_is_private(uint32_t last_cpupid, uint32_t unset_cpupid, int32_t tid)
{
	return last_cpupid == unset_cpupid ||
	       (last_cpupid & PID_BYTE) == ((uint32_t)tid & PID_BYTE);
}

static uint64_t *counter(struct nrp_task_faults *task, enum nrp_fault_stat stat, uint32_t nid,
			 bool private)
{
	return &task->at[nrp_fault_index(task->nr_nodes, stat, nid, private)];
}

void nrp_task_fault_add(struct nrp_task_faults *task, const struct nrp_fault_report *report)
{
	if (report->migrated)
		task->migrated += report->pages;
	if (report->failed)
		task->scan.failed += report->pages;
	*counter(task, NRP_STAT_MEMBUF, report->mem_nid, report->private) += report->pages;
	*counter(task, NRP_STAT_CPUBUF, report->cpu_nid, report->private) += report->pages;
	if (report->local)
		task->scan.local += report->pages;
	else
		task->scan.remote += report->pages;
}

/* Half of the old, which leaves a lone 1 as it is, and @fresh. */
static void age(uint64_t *average, uint64_t fresh)
{
	*average += fresh - *average / 2;
}

/* Share of time that the task ran, in 65536ths, over its faults: what a fault on a CPU weighs. */
static uint64_t cpu_weight(const struct nrp_task_faults *task, uint64_t runtime, uint64_t span,
			   uint64_t faults)
{
	uint64_t ran =
		(uint64_t)(((unsigned __int128)runtime << 16) / ((unsigned __int128)span + 1));

	return (uint64_t)((unsigned __int128)ran * faults /
			  (task->scan.remote + task->scan.local + 1));
}

struct nrp_placement nrp_task_fault_place(struct nrp_task_faults *task, uint64_t runtime,
					  uint64_t span)
{
	struct nrp_placement p = { .preferred_nid = -1 };
	uint64_t most = 0;

	for (uint32_t nid = 0; nid < task->nr_nodes; nid++) {
		uint64_t faults = 0;

		for (int private = 0; private < 2; private ++) {
			uint64_t *mem = counter(task, NRP_STAT_MEM, nid, private);
			uint64_t *new_mem = counter(task, NRP_STAT_MEMBUF, nid, private);
			uint64_t *new_cpu = counter(task, NRP_STAT_CPUBUF, nid, private);

			*(private ? &p.private : &p.shared) += *new_mem;
			task->total += *new_mem - *mem / 2;
			age(mem, *new_mem);
			age(counter(task, NRP_STAT_CPU, nid, private),
			    cpu_weight(task, runtime, span, *new_cpu));
			*new_mem = *new_cpu = 0;
			faults += *mem;
		}
		if (faults > most) {
			most = faults;
			p.preferred_nid = (int32_t)nid;
		}
	}
	return p;
}
