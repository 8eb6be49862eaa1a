/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hinting fault: fault_begin [filter_begin filter_end] fault_target
 * [prepare_begin prepare_end] [migrate_begin .. migrate_end | thp_begin .. thp_end] task_fault.
 * A fault without task_fault (the PTE changed during the attempt) is written when its thread
 * begins the next one, exits, or the capture ends.
 */
#include "capture/join_internal.h"

#include <errno.h>
#include <stdlib.h>

static int begin(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_hint_fault *f = t->fault;
	uint64_t taken;
	int nid;

	if (!f)
		f = t->fault = nrp_writer_row(j->writer, NRP_HINT_FAULT);
	if (!f)
		return nrp_fail_nomem(err);
	/* What is NULL may hold anything, but for the two that add up. */
	f->null = ~UINT64_C(0);
	f->migrated_pages = f->failed_pages = 0;
	NRP_SET(f, hint_fault, time, step->raw->time);
	NRP_SET(f, hint_fault, cpu, step->raw->cpu);
	NRP_SET(f, hint_fault, tid, t->tid);
	NRP_SET(f, hint_fault, attempt, NRP_ATTEMPT_NONE);
	NRP_SET(f, hint_fault, inferred, 0);
	if (t->tgid)
		NRP_SET(f, hint_fault, tgid, t->tgid);
	/* together: each change of the NULL word waits for the one before */
	taken = NRP_TAKEN(step, f, hint_fault, mm, FAULT_BEGIN, mm) |
		NRP_TAKEN(step, f, hint_fault, addr, FAULT_BEGIN, addr) |
		NRP_TAKEN(step, f, hint_fault, vma, FAULT_BEGIN, vma) |
		NRP_TAKEN(step, f, hint_fault, vm_start, FAULT_BEGIN, vm_start) |
		NRP_TAKEN(step, f, hint_fault, vm_end, FAULT_BEGIN, vm_end) |
		NRP_TAKEN(step, f, hint_fault, vm_flags, FAULT_BEGIN, vm_flags) |
		NRP_TAKEN(step, f, hint_fault, page, FAULT_BEGIN, page) |
		NRP_TAKEN(step, f, hint_fault, page_flags, FAULT_BEGIN, page_flags) |
		NRP_TAKEN(step, f, hint_fault, mapcount, FAULT_BEGIN, mapcount) |
		NRP_TAKEN(step, f, hint_fault, refcount, FAULT_BEGIN, refcount);
	f->null &= ~taken;
	nid = nrp_host_cpu_nid(j->facts, (int)step->raw->cpu);
	if (nid >= 0)
		NRP_SET(f, hint_fault, this_nid, (int16_t)nid);
	t->fault_open = true;
	t->filter_open = false;
	t->attempt_open = false;
	t->weight_nodes = 0;
	return 0;
}

/* The group's faults[], from an array field or from f0, f1, ..; 0 nodes if the probe has neither.
 */
static int take_weights(struct nrp_joiner *j, const struct nrp_step *step)
{
	const struct nrp_field *array = &step->desc->field[NRP_EF_FILTER_BEGIN_faults];
	struct nrp_field at = *array;
	struct nrp_thread *t = step->thread;
	uint32_t nodes;

	if (!array->size) {
		at = step->desc->field[NRP_EF_FILTER_BEGIN_f0];
		at.size = (uint16_t)(at.size * j->cat->weight_fields);
	}
	nodes = at.size / 8 / 4;
	if (!nodes || !nrp_has(&at, step->raw))
		return 0;
	if (!t->weights) {
		t->weights = calloc(4 * (size_t)nodes, sizeof(*t->weights));
		if (!t->weights)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < 4 * nodes; i++)
		t->weights[i] = nrp_load(step->raw->data + at.offset + 8 * i, 8, false, step->swap);
	t->weight_nodes = nodes;
	return 0;
}

/* C[n] and M[n]: private + shared faults of node n (spec 2.5). */
static uint64_t cpu_weight(const struct nrp_thread *t, uint32_t nid)
{
	const uint64_t *cpu = t->weights + 2 * t->weight_nodes;

	return cpu[2 * nid] + cpu[2 * nid + 1];
}

static uint64_t mem_weight(const struct nrp_thread *t, uint32_t nid)
{
	return t->weights[2 * nid] + t->weights[2 * nid + 1];
}

static void set_weights(struct nrp_thread *t, int dst_nid)
{
	struct nrp_hint_fault *f = t->fault;

	if (!NRP_NULL(f, hint_fault, src_nid) && f->src_nid >= 0 &&
	    (uint32_t)f->src_nid < t->weight_nodes) {
		NRP_SET(f, hint_fault, group_cpu_src, cpu_weight(t, (uint32_t)f->src_nid));
		NRP_SET(f, hint_fault, group_mem_src, mem_weight(t, (uint32_t)f->src_nid));
	}
	if (dst_nid >= 0 && (uint32_t)dst_nid < t->weight_nodes) {
		NRP_SET(f, hint_fault, group_cpu_dst, cpu_weight(t, (uint32_t)dst_nid));
		NRP_SET(f, hint_fault, group_mem_dst, mem_weight(t, (uint32_t)dst_nid));
	}
}

static int filter_begin(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_hint_fault *f = t->fault;

	if (!t->fault_open || !NRP_NULL(f, hint_fault, filter_delay))
		return nrp_join_unjoined(j, step);
	NRP_SET(f, hint_fault, filter_delay, nrp_delay(f->time, step->raw->time));
	NRP_TAKE(step, f, hint_fault, src_nid, FILTER_BEGIN, src_nid);
	NRP_TAKE(step, f, hint_fault, dst_cpu, FILTER_BEGIN, dst_cpu);
	NRP_TAKE(step, f, hint_fault, preferred_nid, FILTER_BEGIN, preferred_nid);
	NRP_TAKE(step, f, hint_fault, scan_seq, FILTER_BEGIN, scan_seq);
	NRP_TAKE(step, f, hint_fault, scan_period, FILTER_BEGIN, scan_period);
	/* Without a group the kernel leaves gid and faults as the ring buffer was: not facts. */
	if (nrp_step_get_or(step, NRP_EF_FILTER_BEGIN_group, 0)) {
		NRP_TAKE(step, f, hint_fault, numa_group, FILTER_BEGIN, group);
		NRP_TAKE(step, f, hint_fault, group_id, FILTER_BEGIN, gid);
		if (take_weights(j, step) < 0)
			return nrp_fail_nomem(err);
		set_weights(t, NRP_NULL(f, hint_fault, dst_cpu)
				       ? -1
				       : nrp_host_cpu_nid(j->facts, f->dst_cpu));
	}
	t->filter_open = true;
	return 0;
}

static int filter_end(struct nrp_joiner *j, const struct nrp_step *step)
{
	struct nrp_thread *t = step->thread;

	if (!t->fault_open || !t->filter_open)
		return nrp_join_unjoined(j, step);
	t->filter_open = false;
	if (nrp_step_has(step, NRP_EF_FILTER_END_allow))
		NRP_SET(t->fault, hint_fault, filter_answer,
			nrp_step_get(step, NRP_EF_FILTER_END_allow) != 0);
	return 0;
}

/* First event of the attempt: prepare where the kernel has that step, else migrate. */
static void attempt_begin(struct nrp_joiner *j, const struct nrp_step *step, uint8_t kind,
			  const struct nrp_field *nid, const struct nrp_field *jiffies)
{
	struct nrp_thread *t = step->thread;
	struct nrp_hint_fault *f = t->fault;
	const uint8_t *data = step->raw->data;

	t->attempt_open = true;
	if (f->attempt != NRP_ATTEMPT_NONE)
		return;
	NRP_SET(f, hint_fault, attempt, kind);
	NRP_SET(f, hint_fault, attempt_delay, nrp_delay(f->time, step->raw->time));
	if (nrp_has_integer(nid, step->raw)) {
		uint64_t value = nrp_load(data + nid->offset, nid->size, true, step->swap);

		if (nrp_fits(value, sizeof(f->attempt_nid)))
			NRP_SET(f, hint_fault, attempt_nid, (int16_t)value);
	}
	if (nrp_has_integer(jiffies, step->raw))
		NRP_SET(f, hint_fault, attempt_jiffies,
			nrp_load(data + jiffies->offset, jiffies->size, false, step->swap));
	if (j->facts->has_ratelimit_event)
		NRP_SET(f, hint_fault, ratelimited, 0);
}

static void attempt_end(const struct nrp_step *step)
{
	struct nrp_hint_fault *f = step->thread->fault;

	step->thread->attempt_open = false;
	NRP_SET(f, hint_fault, attempt_ns, nrp_delay(f->time + f->attempt_delay, step->raw->time));
}

static int attempt_event(struct nrp_joiner *j, const struct nrp_step *step)
{
	struct nrp_thread *t = step->thread;
	struct nrp_hint_fault *f = t->fault;
	const struct nrp_field *field = step->desc->field;
	enum nrp_event event = step->desc->event;

	if (!t->fault_open)
		return nrp_join_unjoined(j, step);
	switch (event) {
	case NRP_EV_PREPARE_BEGIN:
		attempt_begin(j, step, NRP_ATTEMPT_FOLIO, &field[NRP_EF_PREPARE_BEGIN_nid],
			      &field[NRP_EF_PREPARE_BEGIN_jiffies]);
		return 0;
	case NRP_EV_MIGRATE_BEGIN:
		attempt_begin(j, step, NRP_ATTEMPT_FOLIO, &field[NRP_EF_MIGRATE_BEGIN_nid],
			      &field[NRP_EF_MIGRATE_BEGIN_jiffies]);
		return 0;
	case NRP_EV_THP_BEGIN:
		attempt_begin(j, step, NRP_ATTEMPT_THP, &field[NRP_EF_THP_BEGIN_nid],
			      &field[NRP_EF_THP_BEGIN_jiffies]);
		return 0;
	default:
		break;
	}
	if (!t->attempt_open)
		return nrp_join_unjoined(j, step);
	attempt_end(step);
	if (event == NRP_EV_PREPARE_END)
		NRP_TAKE(step, f, hint_fault, prepare_result, PREPARE_END, ret);
	else if (event == NRP_EV_MIGRATE_END)
		NRP_TAKE(step, f, hint_fault, migrate_result, MIGRATE_END, ret);
	else
		NRP_TAKE(step, f, hint_fault, migrate_result, THP_END, ret);
	return 0;
}

static int task_fault(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_hint_fault *f = t->fault;

	if (!t->fault_open)
		return nrp_join_unjoined(j, step);
	f->null &= ~(NRP_TAKEN(step, f, hint_fault, last_cpupid, TASK_FAULT, last_cpupid) |
		     NRP_TAKEN(step, f, hint_fault, mem_nid, TASK_FAULT, nid) |
		     NRP_TAKEN(step, f, hint_fault, pages, TASK_FAULT, pages) |
		     NRP_TAKEN(step, f, hint_fault, tnf_flags, TASK_FAULT, flags));
	NRP_SET(f, hint_fault, end_delay, nrp_delay(f->time, step->raw->time));
	return nrp_join_close_fault(j, t, 0, err);
}

void nrp_join_fault_limited(struct nrp_thread *thread)
{
	if (thread->fault_open && thread->attempt_open)
		NRP_SET(thread->fault, hint_fault, ratelimited, 1);
}

void nrp_join_fault_migrated(struct nrp_thread *thread, uint64_t succeeded, uint64_t failed)
{
	struct nrp_hint_fault *f = thread->fault;

	if (!thread->fault_open || !thread->attempt_open)
		return;
	/* One call per attempt; a second one (a split folio) adds up. */
	NRP_SET(f, hint_fault, migrated_pages, (uint32_t)(f->migrated_pages + succeeded));
	NRP_SET(f, hint_fault, failed_pages, (uint32_t)(f->failed_pages + failed));
}

/* A node id that no kernel has is damage: then the node is not known. */
static void check_node(struct nrp_hint_fault *f, int16_t *nid, uint64_t bit)
{
	if (*nid >= -1 && *nid < NRP_MAX_NODES)
		return;
	*nid = 0;
	f->null |= bit;
}

static void check_nodes(struct nrp_hint_fault *f)
{
	check_node(f, &f->src_nid, NRP_BIT(hint_fault, src_nid));
	check_node(f, &f->target_nid, NRP_BIT(hint_fault, target_nid));
	check_node(f, &f->mem_nid, NRP_BIT(hint_fault, mem_nid));
}

/* last_cpupid and the page's node, where no event says them. */
static void resolve_from_flags(const struct nrp_joiner *j, struct nrp_hint_fault *f)
{
	const struct nrp_host_facts *facts = j->facts;

	if (NRP_NULL(f, hint_fault, last_cpupid) && !NRP_NULL(f, hint_fault, page_flags) &&
	    j->cpuid_mask) {
		NRP_SET(f, hint_fault, last_cpupid,
			(uint32_t)((f->page_flags >> facts->cpupid_shift) & j->cpuid_mask));
		f->inferred |= NRP_INFER_CPUPID;
	}
	if (NRP_NULL(f, hint_fault, src_nid) && !NRP_NULL(f, hint_fault, page_flags) &&
	    facts->nid_shift >= 0) {
		uint64_t nid = f->page_flags >> facts->nid_shift;

		if (facts->nr_nodes > 0 && nid < (uint64_t)facts->nr_nodes) {
			NRP_SET(f, hint_fault, src_nid, (int16_t)nid);
			f->inferred |= NRP_INFER_SRC_FLAGS;
		}
	}
	if (NRP_NULL(f, hint_fault, src_nid) && !NRP_NULL(f, hint_fault, mem_nid) &&
	    !NRP_NULL(f, hint_fault, tnf_flags) && !(f->tnf_flags & NRP_TNF_MIGRATED)) {
		NRP_SET(f, hint_fault, src_nid, f->mem_nid);
		f->inferred |= NRP_INFER_SRC_MEM;
	}
}

static void resolve_outcome(const struct nrp_joiner *j, struct nrp_hint_fault *f)
{
	if (!NRP_NULL(f, hint_fault, tnf_flags)) {
		if (f->attempt != NRP_ATTEMPT_NONE || (f->tnf_flags & NRP_TNF_MIGRATED))
			NRP_SET(f, hint_fault, moved, (f->tnf_flags & NRP_TNF_MIGRATED) != 0);
	} else if (!NRP_NULL(f, hint_fault, migrate_result)) {
		if (j->facts->moved_result >= 0)
			NRP_SET(f, hint_fault, moved, f->migrate_result == j->facts->moved_result);
	} else if (!NRP_NULL(f, hint_fault, prepare_result) && f->prepare_result != 0) {
		NRP_SET(f, hint_fault, moved, 0);
	}
	if (!NRP_NULL(f, hint_fault, pages))
		return;
	if (f->attempt == NRP_ATTEMPT_THP && j->facts->huge_pages > 0)
		NRP_SET(f, hint_fault, pages, (uint32_t)j->facts->huge_pages);
	else if (!NRP_NULL(f, hint_fault, migrated_pages) &&
		 f->migrated_pages + f->failed_pages > 0)
		NRP_SET(f, hint_fault, pages, f->migrated_pages + f->failed_pages);
}

static int write_weights(struct nrp_joiner *j, struct nrp_thread *t, struct nrp_error *err)
{
	for (uint32_t nid = 0; nid < t->weight_nodes; nid++) {
		const uint64_t *mem = t->weights + 2 * nid;
		const uint64_t *cpu = mem + 2 * t->weight_nodes;
		struct nrp_group_weight w = {
			.null = 0,
			.time = t->fault->time,
			.tid = t->tid,
			.group_id =
				NRP_NULL(t->fault, hint_fault, group_id) ? 0 : t->fault->group_id,
			.nid = (int16_t)nid,
			.mem_shared = mem[0],
			.mem_private = mem[1],
			.cpu_shared = cpu[0],
			.cpu_private = cpu[1],
		};
		int r = nrp_writer_append(j->writer, NRP_GROUP_WEIGHT, &w, err);

		if (r < 0)
			return r;
	}
	return 0;
}

int nrp_join_close_fault(struct nrp_joiner *j, struct nrp_thread *t, uint8_t flags,
			 struct nrp_error *err)
{
	struct nrp_hint_fault *f = t->fault;
	int r;

	if (!t->fault_open)
		return 0;
	t->fault_open = false;
	f->inferred |= flags;
	check_nodes(f);
	resolve_from_flags(j, f);
	resolve_outcome(j, f);
	nrp_join_check_fault(j, f);
	r = write_weights(j, t, err);
	t->fault = NULL;
	return r < 0 ? r : nrp_writer_append_row(j->writer, NRP_HINT_FAULT, f, err);
}

int nrp_join_fault(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	int r;

	switch (step->desc->event) {
	case NRP_EV_FAULT_BEGIN:
		r = nrp_join_close_fault(j, t, 0, err);
		if (r < 0)
			return r;
		return begin(j, step, err);
	case NRP_EV_FILTER_BEGIN:
		return filter_begin(j, step, err);
	case NRP_EV_FILTER_END:
		return filter_end(j, step);
	case NRP_EV_FAULT_TARGET:
		if (!t->fault_open || !NRP_NULL(t->fault, hint_fault, target_nid))
			return nrp_join_unjoined(j, step);
		NRP_TAKE(step, t->fault, hint_fault, target_nid, FAULT_TARGET, nid);
		return 0;
	case NRP_EV_TASK_FAULT:
		return task_fault(j, step, err);
	default:
		return attempt_event(j, step);
	}
}
