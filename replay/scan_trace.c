/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_trace.h"
#include "replay/merge.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DECISIONS (SIZE_MAX / sizeof(struct nrp_scan_decision) / 4)
#define MOST_THREADS (1 << 22) /* the kernel's limit on thread ids */

/* ---- address spaces ----------------------------------------------------------------- */

struct mm_state {
	uint32_t space;
	uint32_t live; /* known threads that have not exited */
	bool seen;
	bool single;       /* one user at the last pass */
	bool fork_pending; /* a thread forked since the last pass, when it was single */
	size_t last;       /* its last pass */
};

struct task_state {
	uint64_t mm;
	uint32_t space;
	bool known, gone;
};

struct loader {
	struct nrp_scan_trace *trace;
	struct nrp_store *store;
	int64_t capture_id;
	struct nrp_pages *mms, *tasks;
	size_t room;
};

static void leave(struct loader *l, struct task_state *t)
{
	struct mm_state *m;

	if (!t->known || t->gone)
		return;
	t->gone = true;
	m = nrp_pages_get(l->mms, t->mm, 0);
	if (m && m->space == t->space && m->live)
		m->live--;
}

static int see_life(struct loader *l, const struct nrp_task_life *life)
{
	struct task_state *t = nrp_pages_get(l->tasks, (uint32_t)life->tid, 0);
	struct mm_state *m;

	if (!t)
		return -ENOMEM;
	if (life->kind != NRP_LIFE_FORK) {
		leave(l, t); /* exec: into a new address space */
		return 0;
	}
	if (!t->known || t->gone)
		return 0;
	m = nrp_pages_get(l->mms, t->mm, 0);
	if (!m)
		return -ENOMEM;
	if (m->space == t->space && m->single)
		m->fork_pending = true;
	return 0;
}

/* Is this pass the first of a new address space at a pointer used before? */
static bool born_anew(const struct mm_state *m, const struct task_state *t,
		      const struct nrp_scan_pass *p)
{
	if (!NRP_NULL(p, scan_pass, next_scan) && p->next_scan == 0)
		return true;
	return (!t->known || t->gone || t->space != m->space) && m->live == 0;
}

static int place_pass(struct loader *l, size_t index)
{
	struct nrp_scan_visit *v = &l->trace->pass[index];
	const struct nrp_scan_pass *p = &v->rec;
	struct mm_state *m = nrp_pages_get(l->mms, p->mm, 0);
	struct task_state *t = nrp_pages_get(l->tasks, (uint32_t)p->tid, 0);

	if (!m || !t)
		return -ENOMEM;
	if (!m->seen || born_anew(m, t, p)) {
		*m = (struct mm_state){ .space = l->trace->nr_spaces++, .seen = true };
	} else {
		const struct nrp_scan_pass *before = &l->trace->pass[m->last].rec;

		v->reset_before =
			p->mm_scan_seq == 0 && (before->mm_scan_seq > 0 || m->fork_pending);
	}
	if (!t->known || t->gone || t->space != m->space) {
		*t = (struct task_state){ .mm = p->mm, .space = m->space, .known = true };
		m->live++;
	}
	m->single = !NRP_NULL(p, scan_pass, mm_users) && p->mm_users == 1;
	m->fork_pending = false;
	m->last = index;
	v->space = m->space;
	return 0;
}

/* ---- passes ------------------------------------------------------------------------- */

static int add_pass(struct loader *l, const struct nrp_scan_pass *p)
{
	struct nrp_scan_trace *t = l->trace;

	if (t->nr_passes == l->room) {
		size_t room = l->room ? l->room * 2 : 256;
		struct nrp_scan_visit *grown = reallocarray(t->pass, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->pass = grown;
		l->room = room;
	}
	t->pass[t->nr_passes] = (struct nrp_scan_visit){ .rec = *p, .next = NRP_NO_PASS };
	return place_pass(l, t->nr_passes++);
}

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	return kind == NRP_TASK_LIFE ? see_life(context, row) : add_pass(context, row);
}

/* Passes and the lives of tasks, in one order of time. */
static int load_passes(struct loader *l, struct nrp_error *err)
{
	static const struct nrp_merge_input inputs[] = { { NRP_TASK_LIFE, ~UINT64_C(0) },
							 { NRP_SCAN_PASS, ~UINT64_C(0) } };

	return nrp_merge_each(l->store, l->capture_id, inputs, sizeof(inputs) / sizeof(inputs[0]),
			      see, l, err);
}

/* ---- decisions ---------------------------------------------------------------------- */

/* The pass that began at @time in thread @tid. */
static size_t find_pass(const struct nrp_scan_trace *t, uint64_t time, int32_t tid)
{
	size_t low = 0, high = t->nr_passes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->pass[middle].rec.time < time)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < t->nr_passes && t->pass[low].rec.time == time; low++)
		if (t->pass[low].rec.tid == tid)
			return low;
	return NRP_NO_PASS;
}

static int add_decision(struct loader *l, const struct nrp_scan_decision *d)
{
	struct nrp_scan_trace *t = l->trace;

	if (d->pass == NRP_NO_PASS)
		return 0;
	if (t->nr_decisions == l->room) {
		size_t room = l->room ? l->room * 2 : 1024;
		struct nrp_scan_decision *grown;

		if (room > MAX_DECISIONS)
			return -ENOMEM;
		grown = reallocarray(t->decision, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->decision = grown;
		l->room = room;
	}
	t->decision[t->nr_decisions++] = *d;
	return 0;
}

static int see_range(struct loader *l, const struct nrp_scan_range *g)
{
	struct nrp_scan_decision d = {
		.range = true,
		.ordinal = g->ordinal,
		.time = g->time,
		.start = g->start,
		.end = g->end,
		.vm_start = g->vm_start,
		.vm_end = g->vm_end,
		.vm_flags = g->vm_flags,
		.pages = g->pages,
		.pages_known = !NRP_NULL(g, scan_range, pages),
		.flags_known = !NRP_NULL(g, scan_range, vm_flags),
		.vma_known = !NRP_NULL(g, scan_range, vm_start) &&
			     !NRP_NULL(g, scan_range, vm_end) && g->vm_start <= g->start &&
			     g->start < g->end && g->end <= g->vm_end &&
			     g->end - g->start <= NRP_MAX_SCAN_RANGE,
		.state_known =
			!(g->null &
			  (NRP_BIT(scan_range, vma_next_scan) | NRP_BIT(scan_range, pids_reset) |
			   NRP_BIT(scan_range, pids0) | NRP_BIT(scan_range, pids1) |
			   NRP_BIT(scan_range, start_seq) | NRP_BIT(scan_range, prev_seq))),
		.state = { .next_scan = g->vma_next_scan,
			   .pids_reset = g->pids_reset,
			   .pids = { g->pids0, g->pids1 },
			   .start_seq = g->start_seq,
			   .prev_seq = g->prev_seq },
	};

	if (NRP_NULL(g, scan_range, pass_time))
		return 0; /* mbind */
	d.pass = find_pass(l->trace, g->pass_time, g->tid);
	l->trace->has_state |= d.state_known;
	return add_decision(l, &d);
}

static int see_skip(struct loader *l, const struct nrp_scan_skip *s)
{
	struct nrp_scan_decision d = {
		.reason = s->reason,
		.ordinal = s->ordinal,
		.time = s->time,
		.vm_start = s->vm_start,
		.vm_end = s->vm_end,
		.vma_known = !NRP_NULL(s, scan_skip, vm_start) && !NRP_NULL(s, scan_skip, vm_end) &&
			     s->vm_start < s->vm_end && s->reason <= NRP_SKIP_SEQ_COMPLETED,
	};

	if (NRP_NULL(s, scan_skip, pass_time))
		return 0;
	d.pass = find_pass(l->trace, s->pass_time, s->tid);
	return add_decision(l, &d);
}

static int load_decisions(struct loader *l, enum nrp_record_kind kind, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, l->store, l->capture_id, kind, ~UINT64_C(0), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		r = kind == NRP_SCAN_RANGE ? see_range(l, row) : see_skip(l, row);
		if (r < 0)
			nrp_fail_nomem(err);
	}
	nrp_cursor_close(cursor);
	return r;
}

static int by_pass_and_ordinal(const void *a, const void *b)
{
	const struct nrp_scan_decision *x = a, *y = b;

	if (x->pass != y->pass)
		return x->pass < y->pass ? -1 : 1;
	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static void deal_decisions(struct nrp_scan_trace *t)
{
	if (t->nr_decisions)
		qsort(t->decision, t->nr_decisions, sizeof(*t->decision), by_pass_and_ordinal);
	for (size_t i = 0; i < t->nr_decisions; i++) {
		struct nrp_scan_visit *v = &t->pass[t->decision[i].pass];

		if (!v->count++)
			v->first = i;
	}
}

/* ---- what can be judged ------------------------------------------------------------- */

static bool complete(const struct nrp_scan_trace *t, const struct nrp_scan_visit *v)
{
	const uint64_t needed = NRP_BIT(scan_pass, end_time) | NRP_BIT(scan_pass, jiffies) |
				NRP_BIT(scan_pass, mm_scan_seq) | NRP_BIT(scan_pass, scan_offset);

	if (v->rec.null & needed)
		return false;
	for (size_t i = v->first; i < v->first + v->count; i++)
		if (!t->decision[i].vma_known)
			return false;
	return true;
}

static bool only_cpuset(const struct nrp_scan_trace *t, const struct nrp_scan_visit *v)
{
	return v->count == 1 && !t->decision[v->first].range &&
	       t->decision[v->first].reason == NRP_SKIP_CPUSET;
}

/* A pass without a decision walked only if what it left differs from what it met. */
static bool walked(const struct nrp_scan_trace *t, const struct nrp_scan_visit *v)
{
	const struct nrp_scan_pass *next;

	if (v->count)
		return !only_cpuset(t, v);
	if (t->has_skips || !t->has_state || v->next == NRP_NO_PASS)
		return false;
	next = &t->pass[v->next].rec;
	return !t->pass[v->next].reset_before &&
	       (next->mm_scan_seq != v->rec.mm_scan_seq || next->scan_offset != v->rec.scan_offset);
}

static int link_passes(struct nrp_scan_trace *t)
{
	size_t *newest = malloc((t->nr_spaces ? t->nr_spaces : 1) * sizeof(*newest));

	if (!newest)
		return -ENOMEM;
	for (uint32_t s = 0; s < t->nr_spaces; s++)
		newest[s] = NRP_NO_PASS;
	for (size_t i = t->nr_passes; i-- > 0;) {
		struct nrp_scan_visit *v = &t->pass[i];

		v->next = newest[v->space];
		/* Others that began before this one ended found the lock or the race lost. */
		while (v->next != NRP_NO_PASS && !NRP_NULL(&v->rec, scan_pass, end_time) &&
		       t->pass[v->next].rec.time < v->rec.end_time)
			v->next = t->pass[v->next].next;
		newest[v->space] = i;
	}
	free(newest);
	for (size_t i = 0; i < t->nr_passes; i++) {
		struct nrp_scan_visit *v = &t->pass[i];

		v->walked = walked(t, v);
		v->judged = v->walked && complete(t, v);
	}
	return 0;
}

static int count_threads(struct nrp_scan_trace *t)
{
	t->most_threads = calloc(t->nr_spaces ? t->nr_spaces : 1, sizeof(*t->most_threads));
	if (!t->most_threads)
		return -ENOMEM;
	for (size_t i = 0; i < t->nr_passes; i++) {
		const struct nrp_scan_pass *p = &t->pass[i].rec;
		int32_t *most = &t->most_threads[t->pass[i].space];

		if (!NRP_NULL(p, scan_pass, nr_threads) && p->nr_threads > *most)
			*most = p->nr_threads;
	}
	return 0;
}

struct nrp_scan_threads nrp_scan_visit_threads(const struct nrp_scan_trace *t,
					       const struct nrp_scan_visit *v)
{
	struct nrp_scan_threads n = { v->rec.nr_threads, v->rec.nr_threads };

	if (NRP_NULL(&v->rec, scan_pass, nr_threads)) {
		n.least = 1;
		n.most = t->most_threads[v->space] ? t->most_threads[v->space] : MOST_THREADS;
	}
	return n;
}

/* Losses in order of their beginnings; end is the latest of all so far. */
struct gaps {
	struct {
		uint64_t start, end;
	} * at;
	size_t count;
};

static int load_gaps(struct gaps *gaps, struct loader *l, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	uint64_t rows, latest = 0;
	const void *row;
	int r = nrp_store_count(l->store, l->capture_id, NRP_LOSS, &rows, err);

	if (r < 0 || !rows)
		return r;
	gaps->at = calloc(rows, sizeof(*gaps->at));
	if (!gaps->at)
		return nrp_fail_nomem(err);
	r = nrp_cursor_open(&cursor, l->store, l->capture_id, NRP_LOSS, ~UINT64_C(0), err);
	while (r == 0 && gaps->count < rows && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_loss *loss = row;
		uint64_t end = NRP_NULL(loss, loss, end_time) ? UINT64_MAX : loss->end_time;

		r = 0;
		latest = end > latest ? end : latest;
		gaps->at[gaps->count].start = loss->time;
		gaps->at[gaps->count++].end = latest;
	}
	nrp_cursor_close(cursor);
	return r;
}

static bool gap_within(const struct gaps *gaps, uint64_t from, uint64_t to)
{
	size_t low = 0, high = gaps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (gaps->at[middle].start <= to)
			low = middle + 1;
		else
			high = middle;
	}
	return low && gaps->at[low - 1].end >= from;
}

static int mark_losses(struct loader *l, struct nrp_error *err)
{
	struct nrp_scan_trace *t = l->trace;
	uint64_t *before = calloc(t->nr_spaces ? t->nr_spaces : 1, sizeof(*before));
	struct gaps gaps = { 0 };
	int r = before ? load_gaps(&gaps, l, err) : nrp_fail_nomem(err);

	for (size_t i = 0; r == 0 && i < t->nr_passes; i++) {
		struct nrp_scan_visit *v = &t->pass[i];
		uint64_t begin = v->rec.time, end = begin;

		if (!NRP_NULL(&v->rec, scan_pass, end_time))
			end = v->rec.end_time;
		v->lost_before = gap_within(&gaps, before[v->space], begin);
		if (gap_within(&gaps, begin, end))
			v->judged = false;
		before[v->space] = begin;
	}
	free(gaps.at);
	free(before);
	return r;
}

bool nrp_scan_visit_reached_end(const struct nrp_scan_trace *trace,
				const struct nrp_scan_visit *visit)
{
	return visit->next != NRP_NO_PASS && trace->pass[visit->next].rec.scan_offset == 0;
}

/* ---- the whole ---------------------------------------------------------------------- */

static int check_facts(const struct nrp_scan_trace *t, struct nrp_error *err)
{
	for (size_t i = 0; i < t->nr_passes; i++)
		if (t->pass[i].judged)
			return 0;
	return nrp_fail(err, NRP_INPUT, -ENODATA, NULL, -1,
			"capture with the probes scan_begin and range_begin, all their fields",
			"no scan pass with its jiffies, sequence, offset and VMAs");
}

int nrp_scan_trace_load(struct nrp_scan_trace *ret, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_scan_trace t = { 0 };
	struct loader l = { .trace = &t, .store = store, .capture_id = capture->id };
	uint64_t skips = 0;
	int r;

	l.mms = nrp_pages_new(sizeof(struct mm_state));
	l.tasks = nrp_pages_new(sizeof(struct task_state));
	r = l.mms && l.tasks ? load_passes(&l, err) : nrp_fail_nomem(err);
	l.room = 0;
	if (r == 0)
		r = nrp_store_count(store, capture->id, NRP_SCAN_SKIP, &skips, err);
	if (r == 0)
		r = nrp_store_capture_has_probe(store, capture->id, "sched_skip_vma_numa",
						&t.has_skips, err);
	t.has_skips |= skips > 0;
	if (r == 0)
		r = load_decisions(&l, NRP_SCAN_RANGE, err);
	if (r == 0)
		r = load_decisions(&l, NRP_SCAN_SKIP, err);
	if (r == 0) {
		deal_decisions(&t);
		t.sees_all = t.has_skips || !t.has_state;
		if (link_passes(&t) < 0 || count_threads(&t) < 0)
			r = nrp_fail_nomem(err);
	}
	if (r == 0)
		r = mark_losses(&l, err);
	if (r == 0)
		r = check_facts(&t, err);
	nrp_pages_free(l.mms);
	nrp_pages_free(l.tasks);
	if (r < 0)
		nrp_scan_trace_clear(&t);
	else
		*ret = t;
	return r;
}

void nrp_scan_trace_clear(struct nrp_scan_trace *trace)
{
	free(trace->pass);
	free(trace->decision);
	free(trace->most_threads);
	memset(trace, 0, sizeof(*trace));
}
