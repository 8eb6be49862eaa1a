/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/lock_contention.h"

#include "replay/merge.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MM_SIZE 65536 /* bytes; no mm_struct without its CPU mask is larger */

struct wait {
	uint64_t sem, start, ns;
	bool write, left, ended, of_mm;
};

struct task {
	uint64_t asks_mm;               /* mmap_lock that it asked for, 0: none */
	uint64_t munmap_mm, munmap_end; /* its munmap */
	size_t wait;                    /* number of its open wait plus one */
};

struct reader {
	struct nrp_lock_contention *ret;
	struct nrp_pages *tasks; /* by tid */
	struct nrp_pages *mms;   /* address spaces on record */
	struct wait *waits;
	size_t count, room;
	uint64_t last_mm;
};

static int know_mm(struct reader *d, uint64_t mm)
{
	uint32_t *known;

	if (mm == d->last_mm)
		return 0;
	d->last_mm = mm;
	known = nrp_pages_get(d->mms, mm, 0);
	if (!known)
		return -ENOMEM;
	*known = 1;
	return 0;
}

/* The lock at @sem is that of @mm. */
static void learn(struct nrp_lock_contention *c, uint64_t sem, uint64_t mm)
{
	if (sem <= mm || sem - mm >= MM_SIZE)
		return;
	if (c->samples++ && c->offset != sem - mm)
		c->conflicting = true;
	c->offset = sem - mm;
}

static int begin(struct reader *d, struct task *task, const struct nrp_lock *l)
{
	if (d->count == d->room) {
		size_t room = d->room ? 2 * d->room : 256;
		struct wait *waits = reallocarray(d->waits, room, sizeof(*waits));

		if (!waits)
			return -ENOMEM;
		d->waits = waits;
		d->room = room;
	}
	d->waits[d->count++] =
		(struct wait){ .sem = l->sem, .start = l->time, .write = l->write != 0 };
	task->wait = d->count;
	if (task->asks_mm)
		learn(d->ret, l->sem, task->asks_mm);
	return 0;
}

static int see_lock(struct reader *d, const struct nrp_lock *l)
{
	struct task *task = nrp_pages_get(d->tasks, 0, (uint32_t)l->tid);

	if (!task)
		return -ENOMEM;
	switch (l->op) {
	case NRP_LOCK_REQUEST:
		task->asks_mm = NRP_NULL(l, lock, mm) ? 0 : l->mm;
		return know_mm(d, task->asks_mm);
	case NRP_LOCK_GRANT:
	case NRP_LOCK_FAILED:
		task->asks_mm = 0;
		return 0;
	case NRP_LOCK_DOWNGRADE:
		if (!NRP_NULL(l, lock, sem) && task->munmap_mm && l->time <= task->munmap_end)
			learn(d->ret, l->sem, task->munmap_mm);
		return 0;
	case NRP_LOCK_QUEUED:
		return begin(d, task, l);
	case NRP_LOCK_DEQUEUED:
	case NRP_LOCK_LEFT:
		if (!task->wait || d->waits[task->wait - 1].sem != l->sem)
			return 0;
		d->waits[task->wait - 1].ended = true;
		d->waits[task->wait - 1].left = l->op == NRP_LOCK_LEFT;
		d->waits[task->wait - 1].ns = l->time - d->waits[task->wait - 1].start;
		task->wait = 0;
		return 0;
	default:
		return 0;
	}
}

static int see_munmap(struct reader *d, const struct nrp_munmap *m)
{
	struct task *task = nrp_pages_get(d->tasks, 0, (uint32_t)m->tid);

	if (!task)
		return -ENOMEM;
	task->munmap_mm = NRP_NULL(m, munmap, mm) ? 0 : m->mm;
	task->munmap_end = NRP_NULL(m, munmap, end_time) ? UINT64_MAX : m->end_time;
	return know_mm(d, task->munmap_mm);
}

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	struct reader *d = context;

	if (kind == NRP_LOCK)
		return see_lock(d, row);
	if (kind == NRP_MUNMAP)
		return see_munmap(d, row);
	if (kind == NRP_SCAN_PASS)
		return know_mm(d, ((const struct nrp_scan_pass *)row)->mm);
	return NRP_NULL((const struct nrp_hint_fault *)row, hint_fault, mm)
		       ? 0
		       : know_mm(d, ((const struct nrp_hint_fault *)row)->mm);
}

/* ---- sums ----------------------------------------------------------------------------- */

/* Mmap_locks first; reads before writes; the shortest first. */
static int by_class(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	if (x->of_mm != y->of_mm)
		return x->of_mm ? -1 : 1;
	if (x->write != y->write)
		return x->write ? 1 : -1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static int by_lock(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	if (x->sem != y->sem)
		return x->sem < y->sem ? -1 : 1;
	return by_class(a, b);
}

/* Waits @from up to @to, sorted by length; the p99 is the smallest that 99 % do not exceed. */
static void sum(struct nrp_contention_waits *w, const struct wait *from, const struct wait *to)
{
	uint64_t open = 0, rank;

	for (const struct wait *at = from; at < to; at++) {
		open += !at->ended;
		if (!at->ended)
			continue;
		w->waits++;
		w->left += at->left;
		w->ns += at->ns;
		w->longest = at->ns;
	}
	w->open = open;
	rank = (w->waits * 99 + 99) / 100;
	for (const struct wait *at = from; at < to && rank; at++)
		if (at->ended && !--rank)
			w->p99 = at->ns;
}

static uint64_t total(const struct nrp_contended_lock *l)
{
	return l->by[0].ns + l->by[1].ns;
}

static void list(struct nrp_lock_contention *c, const struct nrp_contended_lock *l)
{
	size_t i = c->nr_listed;

	for (; i && total(&c->listed[i - 1]) < total(l); i--)
		if (i < NRP_CONTENDED_LISTED)
			c->listed[i] = c->listed[i - 1];
	if (i == NRP_CONTENDED_LISTED)
		return;
	c->listed[i] = *l;
	c->nr_listed += c->nr_listed < NRP_CONTENDED_LISTED;
}

/* Of all mmap_locks and all others, then of each lock. */
static void sum_up(struct reader *d)
{
	struct nrp_lock_contention *c = d->ret;
	size_t n = d->count;

	qsort(d->waits, n, sizeof(*d->waits), by_class);
	for (size_t i = 0, end; i < n; i = end) {
		const struct wait *w = &d->waits[i];

		for (end = i;
		     end < n && d->waits[end].of_mm == w->of_mm && d->waits[end].write == w->write;)
			end++;
		sum(w->of_mm ? &c->of_mms[w->write] : &c->nameless[w->write], w, d->waits + end);
	}
	qsort(d->waits, n, sizeof(*d->waits), by_lock);
	for (size_t i = 0, end; i < n; i = end) {
		const struct wait *w = &d->waits[i];
		struct nrp_contended_lock l = { .sem = w->sem,
						.mm = w->of_mm ? w->sem - c->offset : 0 };
		size_t writes;

		for (end = i; end < n && d->waits[end].sem == w->sem;)
			end++;
		for (writes = i; writes < end && !d->waits[writes].write;)
			writes++;
		sum(&l.by[0], w, d->waits + writes);
		sum(&l.by[1], d->waits + writes, d->waits + end);
		c->locks++;
		c->mmap_locks += w->of_mm;
		list(c, &l);
	}
}

static int name_locks(struct reader *d)
{
	struct nrp_lock_contention *c = d->ret;

	c->known = d->count > 0;
	c->has_offset = c->samples && !c->conflicting;
	for (size_t i = 0; c->has_offset && i < d->count; i++) {
		const uint32_t *known = nrp_pages_get(d->mms, d->waits[i].sem - c->offset, 0);

		if (!known)
			return -ENOMEM;
		d->waits[i].of_mm = *known;
	}
	return 0;
}

int nrp_lock_contention_load(struct nrp_lock_contention *ret, struct nrp_store *store,
			     const struct nrp_capture *capture, struct nrp_error *err)
{
	static const struct nrp_merge_input inputs[] = {
		{ NRP_MUNMAP, ~UINT64_C(0) },
		{ NRP_SCAN_PASS, NRP_BIT(scan_pass, time) | NRP_BIT(scan_pass, mm) },
		{ NRP_HINT_FAULT, NRP_BIT(hint_fault, time) | NRP_BIT(hint_fault, mm) },
		{ NRP_LOCK, ~UINT64_C(0) },
	};
	struct reader d = { .ret = ret };
	bool recorded = false;
	int r = nrp_store_capture_has_probe(store, capture->id, "contention_begin", &recorded, err);

	memset(ret, 0, sizeof(*ret));
	if (r < 0 || !recorded)
		return r;
	d.tasks = nrp_pages_new(sizeof(struct task));
	d.mms = nrp_pages_new(sizeof(uint32_t));
	if (!d.tasks || !d.mms)
		r = nrp_fail_nomem(err);
	if (r == 0)
		r = nrp_merge_each(store, capture->id, inputs, sizeof(inputs) / sizeof(inputs[0]),
				   see, &d, err);
	if (r == 0 && name_locks(&d) < 0)
		r = nrp_fail_nomem(err);
	if (r == 0)
		sum_up(&d);
	free(d.waits);
	nrp_pages_free(d.tasks);
	nrp_pages_free(d.mms);
	return r;
}
