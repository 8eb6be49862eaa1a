/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/lock_order.h"

#include <errno.h>
#include <stdlib.h>

#define NONE NRP_LOCK_NO_JOB
#define NEVER UINT64_MAX
#define MOST_WAITERS 256 /* of a line that are asked: one is enough, and a line may be long */

/* What happens to a job, in this order. */
enum class { REQUESTED, LEFT, GRANTED, DOWNGRADED, RELEASED };

/*
 * At one time holds that began before it end first; then job after job, as they asked. Clocks can
 * stand still for many jobs.
 */
struct event {
	uint64_t time;
	bool begins; /* its request or its hold is of this time */
	enum class class;
	uint32_t job;
};

struct waiter {
	uint32_t before, behind; /* in line */
	bool waits;
	bool together;    /* the rule gave it the lock with other readers; it returns later */
	bool past_writer; /* and a writer that asked earlier still waits */
	uint64_t chance;  /* when the lock first stood free with it as the head; NEVER */
};

struct lock {
	struct nrp_lock_order *order;
	const struct nrp_lock_order_params *params;
	const struct nrp_lock_mm *mm;
	struct waiter *waiter;
	uint32_t head, tail;
	uint32_t writer; /* on record */
	uint32_t readers;
	uint64_t free_since;  /* when it last came to stand free */
	uint64_t free_until;  /* when it last stopped; NEVER: it does now */
	uint64_t write_until; /* when it was last held for writing; NEVER: it is now */
};

/* ---- the line ------------------------------------------------------------------------- */

static void get_in_line(struct lock *l, uint32_t i)
{
	struct waiter *w = &l->waiter[i];

	*w = (struct waiter){ .before = l->tail, .behind = NONE, .waits = true, .chance = NEVER };
	if (l->tail == NONE)
		l->head = i;
	else
		l->waiter[l->tail].behind = i;
	l->tail = i;
}

static void leave(struct lock *l, uint32_t i)
{
	struct waiter *w = &l->waiter[i];

	if (!w->waits)
		return;
	w->waits = false;
	if (w->before == NONE)
		l->head = w->behind;
	else
		l->waiter[w->before].behind = w->behind;
	if (w->behind == NONE)
		l->tail = w->before;
	else
		l->waiter[w->behind].before = w->before;
}

static bool is_free(const struct lock *l)
{
	return l->writer == NONE && !l->readers;
}

/* Nobody waits for a lock that is not held for writing while a reader is the head of the line. */
static void wake(struct lock *l, uint64_t now)
{
	bool past_writer = false;
	uint32_t granted = 0;

	if (l->head == NONE || l->writer != NONE)
		return;
	if (l->mm->seen[l->head].write) {
		if (is_free(l) && l->waiter[l->head].chance == NEVER)
			l->waiter[l->head].chance = now;
		return;
	}
	for (uint32_t i = l->head, next; i != NONE && granted < NRP_LOCK_BATCH; i = next) {
		next = l->waiter[i].behind;
		if (l->mm->seen[i].write) {
			past_writer = true;
			if (l->params->prefix)
				return;
			continue;
		}
		leave(l, i);
		l->waiter[i].together = true;
		l->waiter[i].past_writer = past_writer;
		granted++;
	}
}

/* ---- a grant -------------------------------------------------------------------------- */

static void against(struct lock *l, uint32_t i, uint32_t passed, const char *what)
{
	const struct nrp_lock_seen *s = &l->mm->seen[i];
	struct nrp_lock_order *o = l->order;

	o->against++;
	if (o->nr_listed == NRP_LOCK_ORDER_LISTED)
		return;
	o->listed[o->nr_listed++] = (struct nrp_lock_out_of_order){
		.mm = l->mm->mm,
		.requested = s->requested,
		.granted = s->granted,
		.tid = s->tid,
		.passed = passed == NONE ? -1 : l->mm->seen[passed].tid,
		.write = s->write,
		.what = what,
	};
}

/* Did a reader that asked before @i have to get in line though nobody wrote? Then @head is in it.
 */
static bool shows_line(const struct lock *l, uint32_t head, uint32_t i)
{
	const struct nrp_lock_seen *seen = l->mm->seen;
	uint32_t k = l->waiter[head].behind;

	for (int n = 0; n < MOST_WAITERS && k != NONE && k != i; n++, k = l->waiter[k].behind)
		if (!seen[k].write && l->write_until < seen[k].requested &&
		    seen[k].requested + l->params->at_once < seen[i].requested)
			return true;
	return false;
}

/*
 * A reader that found no line though writer @head had asked, which would have taken a lock that
 * nobody has.
 */
static bool passed_spinning(struct lock *l, uint32_t i, uint32_t head)
{
	const struct nrp_lock_seen *s = &l->mm->seen[i], *h = &l->mm->seen[head];
	uint64_t spin = s->requested - h->requested;

	if (s->write || !h->write || s->granted - s->requested > l->params->at_once ||
	    l->write_until >= s->requested || shows_line(l, head, i) ||
	    (is_free(l) && s->granted - l->free_since > l->params->at_once))
		return false;
	l->order->spinning++;
	if (spin > l->order->longest_spin)
		l->order->longest_spin = spin;
	return true;
}

/* It stood free after @i had asked, and the head of the line had been woken not long ago. */
static bool took_free(struct lock *l, uint32_t i, uint32_t head)
{
	const struct nrp_lock_seen *s = &l->mm->seen[i];
	uint64_t chance = l->waiter[head].chance;

	if (l->mm->job[i].kind == NRP_LOCK_SCAN || (l->params->prefix && !s->write) ||
	    l->free_until < s->requested ||
	    (chance != NEVER && s->granted > chance + NRP_LOCK_HANDOFF + l->params->late))
		return false;
	l->order->stolen++;
	return true;
}

/* By which rule does @i get the lock, if nobody is in its way? */
static void judge(struct lock *l, uint32_t i)
{
	const struct nrp_lock_seen *s = &l->mm->seen[i];
	uint32_t head = l->head;

	if (l->writer != NONE) {
		against(l, i, l->writer, "another task held it for writing");
	} else if (s->write && l->readers) {
		against(l, i, NONE, "other tasks held it for reading");
	} else if (l->waiter[i].together) {
		*(l->waiter[i].past_writer ? &l->order->together : &l->order->in_line) += 1;
	} else if (head == i || head == NONE ||
		   l->mm->seen[head].requested + l->params->at_once >= s->requested) {
		l->order->in_line++;
	} else if (!passed_spinning(l, i, head) && !took_free(l, i, head)) {
		against(l, i, head, "an earlier request was in line");
	}
}

static void grant(struct lock *l, uint32_t i, uint64_t now)
{
	l->order->grants++;
	judge(l, i);
	leave(l, i);
	if (is_free(l))
		l->free_until = now;
	if (l->mm->seen[i].write) {
		l->writer = i;
		l->write_until = NEVER;
	} else {
		l->readers++;
	}
}

/* ---- all of it ------------------------------------------------------------------------ */

static void release(struct lock *l, uint32_t i, uint64_t now, bool downgrade)
{
	if (l->writer == i) {
		l->writer = NONE;
		l->write_until = now;
		l->readers += downgrade;
	} else if (l->readers) {
		l->readers--;
	}
	if (is_free(l)) {
		l->free_since = now;
		l->free_until = NEVER;
	}
}

static void happen(struct lock *l, const struct event *e)
{
	switch (e->class) {
	case RELEASED:
	case DOWNGRADED:
		release(l, e->job, e->time, e->class == DOWNGRADED);
		break;
	case LEFT:
		leave(l, e->job);
		break;
	case REQUESTED:
		get_in_line(l, e->job);
		break;
	case GRANTED:
		grant(l, e->job, e->time);
		break;
	}
	wake(l, e->time);
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->begins != y->begins)
		return x->begins - y->begins;
	if (x->job != y->job)
		return x->job < y->job ? -1 : 1;
	return (x->class > y->class) - (x->class < y->class);
}

static void add(struct event *list, size_t *n, const struct event *e)
{
	if (e->time != NEVER)
		list[(*n)++] = *e;
}

static size_t list_events(struct event *list, const struct nrp_lock_mm *mm)
{
	size_t n = 0;

	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		const struct nrp_lock_seen *s = &mm->seen[i];

		if (s->granted == NEVER && mm->job[i].kind == NRP_LOCK_SCAN)
			continue; /* a try that failed */
		add(list, &n, &(struct event){ s->requested, true, REQUESTED, i });
		if (s->granted == NEVER) {
			add(list, &n, &(struct event){ mm->job[i].give_up, true, LEFT, i });
			continue;
		}
		add(list, &n, &(struct event){ s->granted, true, GRANTED, i });
		add(list, &n,
		    &(struct event){ s->downgraded, s->downgraded == s->granted, DOWNGRADED, i });
		add(list, &n,
		    &(struct event){ s->released, s->released == s->granted, RELEASED, i });
	}
	qsort(list, n, sizeof(*list), by_time);
	return n;
}

int nrp_lock_order_add(struct nrp_lock_order *order, const struct nrp_lock_mm *mm,
		       const struct nrp_lock_order_params *params)
{
	struct event *list = calloc(4 * (size_t)mm->nr_jobs + 1, sizeof(*list));
	struct lock l = {
		.order = order,
		.params = params,
		.mm = mm,
		.waiter = calloc((size_t)mm->nr_jobs + 1, sizeof(*l.waiter)),
		.head = NONE,
		.tail = NONE,
		.writer = NONE,
		.free_until = NEVER,
	};
	int r = list && l.waiter ? 0 : -ENOMEM;
	size_t n = r == 0 ? list_events(list, mm) : 0;

	for (size_t i = 0; i < n; i++)
		happen(&l, &list[i]);
	free(list);
	free(l.waiter);
	return r;
}
