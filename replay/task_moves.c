/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/task_moves_internal.h"
#include "replay/merge.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct run {
	struct nrp_task_moves m;
	const struct nrp_capture *capture;
	bool preferred_probed;   /* every change of a preferred node is on record */
	struct nrp_pages *tasks; /* by tid; payload struct nrp_task */
	struct nrp_claims claims;
};

/* Valid until the next call. Whether a task has fault arrays is unknown when it is first met. */
static struct nrp_task *task_of(struct run *r, int32_t tid)
{
	struct nrp_task *t = nrp_pages_get(r->tasks, (uint32_t)tid, 0);

	if (t && !t->met) {
		t->met = true;
		t->faults = t->faults_before = NRP_RESET_UNKNOWN;
	}
	return t;
}

/* ---- task life ---------------------------------------------------------------------- */

/*
 * A child has no fault arrays yet. A fork by the only user of an address space sets its scan
 * sequence back to 0, which the task copies with its next placement pass.
 */
static int see_fork(struct run *r, struct nrp_task *parent, const struct nrp_task_life *l)
{
	struct nrp_task *child;

	parent->scan_seq.known = 0;
	parent->sight.broken = true;
	if (NRP_NULL(l, task_life, child_tid))
		return 0;
	child = task_of(r, l->child_tid);
	if (!child)
		return -ENOMEM;
	nrp_periods_end(&r->m, child);
	*child = (struct nrp_task){ .met = true,
				    .faults = NRP_RESET_NO,
				    .faults_before = NRP_RESET_NO };
	return 0;
}

static int see_life(struct run *r, const struct nrp_task_life *l)
{
	struct nrp_task *t = task_of(r, l->tid);

	if (!t)
		return -ENOMEM;
	nrp_claims_event(&r->claims, t, l->time, l->time);
	if (l->kind == NRP_LIFE_FORK)
		return see_fork(r, t, l);
	if (l->kind == NRP_LIFE_EXIT) {
		t->gone = true;
		return 0;
	}
	/* Up to 4.18 exec frees the arrays, with all counters; later it keeps them. */
	if (t->faults == NRP_RESET_YES)
		t->faults = t->faults_before = NRP_RESET_UNKNOWN;
	nrp_periods_group(&r->m, t, true); /* exec leaves the group: nothing follows any more */
	t->unsure = t->failed;
	t->scan_seq.known = 0;
	t->sight.seen = false;
	return 0;
}

/* ---- moves -------------------------------------------------------------------------- */

static struct nrp_scan_reset_number node_of(const struct run *r, int cpu)
{
	int nid = nrp_host_cpu_nid(&r->capture->facts, cpu);

	return nid < 0 ? (struct nrp_scan_reset_number){ 0 } : NRP_RESET_KNOWN(nid);
}

static struct nrp_scan_reset_event event_of(const struct run *r, const struct nrp_task *t,
					    enum nrp_scan_reset_step step,
					    const struct nrp_task_move *move)
{
	uint8_t faults = move->time < t->faults_from ? t->faults_before : t->faults;

	return (struct nrp_scan_reset_event){
		.step = step,
		.src_nid = node_of(r, move->src_cpu),
		.dst_nid = node_of(r, move->dst_cpu),
		.preferred_nid = t->preferred_nid,
		.scan_seq = t->scan_seq,
		.faults = (enum nrp_scan_reset_answer)faults,
	};
}

static void see_cpu_change(struct run *r, struct nrp_task *t, const struct nrp_task_move *move)
{
	struct nrp_scan_reset_event e = event_of(r, t, NRP_RESET_MOVED, move);

	r->m.moves++;
	nrp_claims_moved(&r->claims, t, move->time, move->dst_cpu);
	if (e.src_nid.known && e.dst_nid.known && e.src_nid.value != e.dst_nid.value) {
		r->m.cross_node++;
		r->m.faults_unknown += !t->gone && e.faults == NRP_RESET_UNKNOWN;
	}
	if (!t->gone)
		nrp_periods_step(&r->m, t, &e);
}

static int see_request(struct run *r, struct nrp_task *t, const struct nrp_task_move *move)
{
	struct nrp_task *partner;

	if (nrp_claims_request(&r->claims, t, move, r->capture->first_time) < 0)
		return -ENOMEM;
	if (move->kind != NRP_MOVE_SWAP || NRP_NULL(move, task_move, dst_tid) || move->dst_tid <= 0)
		return 0;
	partner = task_of(r, move->dst_tid);
	if (!partner)
		return -ENOMEM;
	partner->partner = r->claims.count;
	return 0;
}

static int see_move(struct run *r, const struct nrp_task_move *move)
{
	struct nrp_task *t = task_of(r, move->tid);
	bool asked;

	if (!t)
		return -ENOMEM;
	if (move->kind == NRP_MOVE_MIGRATE) {
		see_cpu_change(r, t, move);
		return 0;
	}
	/* A stick after a request is what came of it; without one, the choice ended before it. */
	asked = t->open != 0;
	if (move->kind == NRP_MOVE_STICK)
		nrp_claims_event(&r->claims, t, move->time, move->time);
	if (move->dst_cpu < 0)
		return 0;
	if (move->kind != NRP_MOVE_STICK || !asked) {
		struct nrp_scan_reset_event e = event_of(r, t, NRP_RESET_CHOSEN, move);

		r->m.chosen++;
		nrp_periods_step(&r->m, t, &e);
	}
	return move->kind == NRP_MOVE_STICK ? 0 : see_request(r, t, move);
}

/* ---- what the task knows of itself -------------------------------------------------- */

static int see_preferred(struct run *r, const struct nrp_preferred *p)
{
	struct nrp_task *t = task_of(r, p->tid);

	if (!t)
		return -ENOMEM;
	t->preferred_nid = NRP_RESET_KNOWN(p->nid);
	return 0;
}

static int see_pass(struct run *r, const struct nrp_scan_pass *p)
{
	struct nrp_task *t = task_of(r, p->tid);

	if (!t)
		return -ENOMEM;
	nrp_claims_event(&r->claims, t, p->time,
			 NRP_NULL(p, scan_pass, end_time) ? p->time : p->end_time);
	if (!NRP_NULL(p, scan_pass, preferred_nid))
		t->preferred_nid = NRP_RESET_KNOWN(p->preferred_nid);
	if (NRP_NULL(p, scan_pass, task_scan_seq))
		return 0;
	t->scan_seq = NRP_RESET_KNOWN(p->task_scan_seq);
	if (!NRP_NULL(p, scan_pass, scan_period))
		nrp_periods_see(&r->m, t, &r->capture->facts, p->time, p->scan_period,
				p->task_scan_seq, p->scan_period_max);
	return 0;
}

/*
 * The report of a fault may run a placement pass: then the scan sequence is no longer 0, and the
 * preferred node may be another one.
 */
static void see_report(struct run *r, struct nrp_task *t, const struct nrp_hint_fault *f)
{
	if (t->faults != NRP_RESET_YES) {
		t->faults_before = t->faults;
		t->faults = NRP_RESET_YES;
		t->faults_from = f->time + f->end_delay;
	}
	if (t->scan_seq.value == 0)
		t->scan_seq.known = 0;
	if (!r->preferred_probed)
		t->preferred_nid.known = 0;
	r->m.sticky.tasks += !t->reported;
	t->reported = true;
	t->local_since |= t->failed && (f->tnf_flags & NRP_TNF_FAULT_LOCAL);
	if (!(f->tnf_flags & NRP_TNF_MIGRATE_FAIL) || t->failed)
		return;
	/* The pass of this report still came before the failure was counted. */
	nrp_periods_end(&r->m, t);
	t->waiting.used = false;
	t->failed = true;
	t->sight.seen = false;
	r->m.sticky.sticky_tasks++;
	if (!r->m.sticky.first_fail)
		r->m.sticky.first_fail = f->time;
}

static int see_fault(struct run *r, const struct nrp_hint_fault *f)
{
	struct nrp_task *t = task_of(r, f->tid);
	bool reported = !NRP_NULL(f, hint_fault, tnf_flags);

	if (!t)
		return -ENOMEM;
	nrp_claims_event(&r->claims, t, f->time, f->time + (reported ? f->end_delay : 0));
	if (!NRP_NULL(f, hint_fault, preferred_nid))
		t->preferred_nid = NRP_RESET_KNOWN(f->preferred_nid);
	if (!NRP_NULL(f, hint_fault, scan_seq)) {
		t->scan_seq = NRP_RESET_KNOWN(f->scan_seq);
		if (!NRP_NULL(f, hint_fault, scan_period))
			nrp_periods_see(&r->m, t, &r->capture->facts, f->time, f->scan_period,
					f->scan_seq, 0);
		nrp_periods_group(&r->m, t, !NRP_NULL(f, hint_fault, numa_group));
	}
	if (reported)
		see_report(r, t, f);
	return 0;
}

/* ---- all records in time order ------------------------------------------------------ */

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	struct run *r = context;

	switch (kind) {
	case NRP_TASK_LIFE:
		return see_life(r, row);
	case NRP_PREFERRED:
		return see_preferred(r, row);
	case NRP_TASK_MOVE:
		return see_move(r, row);
	case NRP_SCAN_PASS:
		return see_pass(r, row);
	default:
		return see_fault(r, row);
	}
}

static int read_all(struct run *run, struct nrp_store *store, struct nrp_error *err)
{
	const uint64_t columns = NRP_BIT(hint_fault, time) | NRP_BIT(hint_fault, tid) |
				 NRP_BIT(hint_fault, preferred_nid) |
				 NRP_BIT(hint_fault, scan_seq) | NRP_BIT(hint_fault, scan_period) |
				 NRP_BIT(hint_fault, numa_group) | NRP_BIT(hint_fault, tnf_flags) |
				 NRP_BIT(hint_fault, end_delay);

	return nrp_merge_task_records(store, run->capture->id, columns, see, run, err);
}

static void end_all_tasks(struct run *run)
{
	size_t position = 0;
	uint64_t tid, page;
	const struct nrp_task *t;

	while ((t = nrp_pages_next(run->tasks, &position, &tid, &page)))
		nrp_periods_end(&run->m, t);
}

int nrp_task_moves_run(struct nrp_task_moves *ret, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	struct run run = { .capture = capture, .tasks = nrp_pages_new(sizeof(struct nrp_task)) };
	int r = run.tasks ? 0 : nrp_fail_nomem(err);

	if (r == 0)
		r = nrp_store_capture_has_probe(store, capture->id, "preferred",
						&run.preferred_probed, err);
	run.m.events_missing =
		capture->lost_events || capture->loss_gaps || capture->unjoined_events;
	if (r == 0)
		r = read_all(&run, store, err);
	if (r == 0) {
		run.m.claim = nrp_claims_finish(&run.claims, capture->last_time);
		end_all_tasks(&run);
		nrp_periods_finish(&run.m);
		*ret = run.m;
	}
	nrp_claims_clear(&run.claims);
	nrp_pages_free(run.tasks);
	return r;
}
