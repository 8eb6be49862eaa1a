/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lock_model.h"

#include <string.h>

#define MAX_JOBS 256
#define MAX_PARTS 32

/* A part of a job's time with the lock. */
struct part {
	bool write;
	int64_t time;
	enum how { FRESH, DOWNGRADED, IF_WANTED } how; /* it follows on the part before it */
};

enum state { ABSENT, SPINNING, WAITING, HOLDING, ENDED };

struct actor {
	enum state state;
	struct part part[MAX_PARTS];
	int nr_parts, at;
	int64_t until; /* HOLDING: end of the part; SPINNING: end of that */
	bool vma_only;
};

struct world {
	const struct model_lock *lock;
	struct model_job *jobs;
	struct actor actor[MAX_JOBS];
	int n;
	int queue[MAX_JOBS], nr_queue;
	int64_t now;
};

/* ---- what a munmap does --------------------------------------------------------------- */

static void put(struct actor *a, bool write, int64_t time, enum how how)
{
	a->part[a->nr_parts++] = (struct part){ write, time, how };
}

static void sections(struct actor *a, const struct model_job *m, int64_t step)
{
	int64_t n = (m->length + step - 1) / step, zap = m->zap, pt = m->pt;

	for (int64_t i = 0; i < n; i++) {
		int64_t size = i < n - 1 ? step : m->length - step * (n - 1);
		int64_t z = i < n - 1 ? (int64_t)((__int128)m->zap * size / m->length) : zap;
		int64_t p = i < n - 1 ? (int64_t)((__int128)m->pt * size / m->length) : pt;

		zap -= z;
		pt -= p;
		put(a, true, m->find + m->det + z + p + m->free, i ? IF_WANTED : FRESH);
	}
	put(a, true, 0, IF_WANTED);
}

static void munmap_parts(struct actor *a, const struct model_job *m, const struct model_lock *lock)
{
	int64_t all = m->find + m->det + m->zap + m->pt + m->free;

	if (lock->policy == MODEL_V1 && m->length > lock->step) {
		sections(a, m, lock->step);
	} else if (lock->policy == MODEL_V2 && m->length >= lock->step) {
		put(a, false, m->special ? m->find : m->find + m->zap + m->pt, FRESH);
		put(a, true, m->special ? all - m->find : m->det + m->free, FRESH);
	} else if (lock->policy == MODEL_V3 && m->length >= lock->step) {
		put(a, true, m->find, FRESH);
		if (m->special) {
			put(a, true, all - m->find, FRESH);
		} else {
			put(a, false, m->zap, FRESH);
			put(a, true, m->pt + m->det + m->free, FRESH);
		}
	} else if (lock->policy == MODEL_MRG && !m->no_downgrade) {
		put(a, true, m->find + m->det, FRESH);
		put(a, false, m->zap + m->pt + m->free, DOWNGRADED);
	} else {
		put(a, true, all, FRESH);
	}
}

static void parts_of(struct world *w, int i)
{
	const struct model_job *j = &w->jobs[i];
	struct actor *a = &w->actor[i];

	a->nr_parts = a->at = 0;
	if (j->kind == MODEL_MUNMAP)
		munmap_parts(a, j, w->lock);
	else
		put(a, j->kind == MODEL_WRITER, j->hold, FRESH);
}

/* ---- the lock ------------------------------------------------------------------------- */

static int holders(const struct world *w, bool write)
{
	int n = 0;

	for (int i = 0; i < w->n; i++) {
		const struct actor *a = &w->actor[i];

		n += a->state == HOLDING && !a->vma_only && a->part[a->at].write == write;
	}
	return n;
}

static bool wants_write(const struct world *w, int i)
{
	return w->actor[i].part[w->actor[i].at].write;
}

/* A munmap has its VMA, or took it out. */
static bool vma_is_marked(const struct world *w, int vma)
{
	for (int i = 0; i < w->n; i++)
		if (w->jobs[i].marked && w->jobs[i].vma == vma)
			return true;
	return false;
}

/* VMA locks: the unmap that takes a VMA waits for the faults that hold its lock. */
static int64_t stretch(struct world *w, int i, int64_t start)
{
	int64_t last = start;

	if (!w->lock->vma_locks || w->jobs[i].kind != MODEL_MUNMAP || !wants_write(w, i) ||
	    vma_is_marked(w, w->jobs[i].vma))
		return 0;
	for (int k = 0; k < w->n; k++)
		if (w->actor[k].state == HOLDING && w->actor[k].vma_only &&
		    w->jobs[k].vma == w->jobs[i].vma && w->actor[k].until > last)
			last = w->actor[k].until;
	w->jobs[i].marked = true;
	return last - start;
}

static void grant(struct world *w, int i, bool in_line)
{
	struct model_job *j = &w->jobs[i];
	struct actor *a = &w->actor[i];
	int64_t start = w->now + (in_line ? w->lock->handoff : 0);
	int64_t wait = start - j->request[j->grants];

	j->grant[j->grants++] = start;
	j->wait += wait;
	if (wait > j->longest)
		j->longest = wait;
	a->until = start + a->part[a->at].time + stretch(w, i, start);
	a->state = HOLDING;
}

static void leave_queue(struct world *w, int place)
{
	w->nr_queue--;
	for (; place < w->nr_queue; place++)
		w->queue[place] = w->queue[place + 1];
}

static void let_readers_in(struct world *w)
{
	int granted = 0;

	for (int q = 0; q < w->nr_queue && granted < w->lock->batch;) {
		if (wants_write(w, w->queue[q])) {
			if (w->lock->prefix)
				return;
			q++;
			continue;
		}
		grant(w, w->queue[q], true);
		leave_queue(w, q);
		granted++;
	}
}

static void lock_is_free(struct world *w)
{
	if (holders(w, true) || holders(w, false))
		return;
	for (int i = 0; i < w->n; i++) {
		if (w->actor[i].state == SPINNING) {
			grant(w, i, false);
			return;
		}
	}
	if (!w->nr_queue)
		return;
	if (!wants_write(w, w->queue[0])) {
		let_readers_in(w);
		return;
	}
	grant(w, w->queue[0], true);
	leave_queue(w, 0);
}

static void ask(struct world *w, int i)
{
	struct model_job *j = &w->jobs[i];
	bool closed = holders(w, true) || w->nr_queue || (wants_write(w, i) && holders(w, false));

	if (closed && j->kind == MODEL_SCAN) {
		j->skipped = true;
		j->done = w->now;
		w->actor[i].state = ENDED;
		return;
	}
	j->request[j->grants] = w->now;
	if (!closed) {
		grant(w, i, false);
		return;
	}
	if (wants_write(w, i) && w->lock->spin) {
		w->actor[i].state = SPINNING;
		w->actor[i].until = w->now + w->lock->spin;
		return;
	}
	w->actor[i].state = WAITING;
	w->queue[w->nr_queue++] = i;
}

/* ---- time ----------------------------------------------------------------------------- */

static void part_ends(struct world *w, int i)
{
	struct model_job *j = &w->jobs[i];
	struct actor *a = &w->actor[i];
	const struct part *next = a->at + 1 < a->nr_parts ? &a->part[a->at + 1] : NULL;

	if (a->vma_only) {
		a->state = ENDED;
		j->done = w->now;
		return;
	}
	if (next && next->how == DOWNGRADED) {
		a->at++;
		a->until = w->now + next->time;
		j->downgrade = w->now;
		if (w->nr_queue && !wants_write(w, w->queue[0]))
			let_readers_in(w);
		return;
	}
	if (next && next->how == IF_WANTED && !(w->nr_queue && w->lock->resched)) {
		a->at++;
		a->until = w->now + next->time;
		return;
	}
	a->state = ABSENT;
	lock_is_free(w);
	if (next) {
		a->at++;
		ask(w, i);
		return;
	}
	a->state = ENDED;
	j->done = w->now;
}

static void end_all(struct world *w)
{
	for (int i = 0; i < w->n; i++) {
		if (w->actor[i].state == HOLDING && w->actor[i].until == w->now) {
			part_ends(w, i);
			i = -1; /* what ends at once is the next, the lowest first */
		}
	}
}

static bool arrives(const struct world *w, int i)
{
	const struct model_job *j = &w->jobs[i];
	int64_t at = j->arrival;

	if (w->actor[i].state != ABSENT || w->actor[i].nr_parts)
		return false;
	if (j->after >= 0) {
		const struct model_job *before = &w->jobs[j->after];

		if (w->actor[j->after].state != ENDED)
			return false;
		if (w->lock->closed)
			at = before->done + j->think;
		else if (before->done > at)
			at = before->done;
	}
	return at == w->now;
}

static bool gives_up(const struct world *w, int i)
{
	enum state state = w->actor[i].state;

	return (state == WAITING || state == SPINNING) && w->jobs[i].give_up >= 0 &&
	       w->jobs[i].give_up <= w->now && !w->jobs[i].grants;
}

static void leave(struct world *w, int i)
{
	struct model_job *j = &w->jobs[i];
	bool head = w->nr_queue && w->queue[0] == i;

	for (int q = 0; q < w->nr_queue; q++)
		if (w->queue[q] == i)
			leave_queue(w, q);
	j->gave_up = true;
	j->wait += w->now - j->request[0];
	j->done = w->now;
	w->actor[i].state = ENDED;
	if (!head || !w->nr_queue)
		return;
	if (holders(w, false) && !wants_write(w, w->queue[0]))
		let_readers_in(w);
	else
		lock_is_free(w);
}

static void arrive(struct world *w, int i)
{
	struct model_job *j = &w->jobs[i];
	struct actor *a = &w->actor[i];

	parts_of(w, i);
	if (w->lock->vma_locks && j->kind == MODEL_READER && j->lockable &&
	    !vma_is_marked(w, j->vma)) {
		j->by_vma = true;
		a->vma_only = true;
		a->state = HOLDING;
		a->until = w->now + j->hold;
		return;
	}
	ask(w, i);
}

void model_run(const struct model_lock *lock, struct model_job *jobs, int n, int64_t end)
{
	struct world w = { .lock = lock, .jobs = jobs, .n = n };
	int left = n;

	for (int i = 0; i < n; i++) {
		jobs[i].grants = 0;
		jobs[i].wait = 0;
		jobs[i].done = jobs[i].downgrade = -1;
		jobs[i].skipped = jobs[i].by_vma = jobs[i].gave_up = jobs[i].marked = false;
		jobs[i].longest = 0;
	}
	for (w.now = 0; left && w.now < end; w.now++) {
		end_all(&w);
		for (int i = 0; i < n; i++) {
			struct actor *a = &w.actor[i];

			if (arrives(&w, i)) {
				arrive(&w, i);
			} else if (gives_up(&w, i)) {
				leave(&w, i);
			} else if (a->state == SPINNING && a->until == w.now) {
				a->state = WAITING;
				w.queue[w.nr_queue++] = i;
			} else {
				continue;
			}
			end_all(&w);
			i = -1;
		}
		left = 0;
		for (int i = 0; i < n; i++)
			left += w.actor[i].state != ENDED;
	}
}
