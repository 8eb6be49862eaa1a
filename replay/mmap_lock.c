/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/mmap_lock.h"

#include <errno.h>
#include <stdlib.h>

#define NONE NRP_LOCK_NO_JOB

/* At one time, in this order. */
enum event_class { EVENT_END, EVENT_ARRIVAL };

struct event {
	uint64_t time;
	uint32_t class, job;
};

enum state { COMING, SPINNING, WAITING, HOLDING, ENDED };

/* A job on its way. */
struct actor {
	enum state state;
	struct nrp_munmap_hold hold; /* the current one, or the one requested */
	uint64_t hold_nr;
	uint64_t requested;
	uint32_t before, behind; /* WAITING: in line; SPINNING: among those */
	uint32_t next_after;     /* next job that comes after the same one */
	uint32_t first_after;    /* jobs that come after this one */
};

struct list {
	uint32_t head, tail; /* NONE: empty */
};

struct lock {
	const struct nrp_lock_params *params;
	struct nrp_lock_job *jobs;
	struct actor *actors;
	uint32_t nr_jobs;
	struct event *heap;
	size_t nr_heap, heap_room;
	bool failed; /* out of memory */
	uint64_t now;
	uint32_t writer; /* NONE: not held for writing */
	uint32_t readers;
	struct list line, spinners;
	struct vma {
		uint64_t busy;  /* end of the last fault under its own lock */
		bool marked;    /* an unmap has it, or took it out */
		uint32_t unmap; /* the job that unmaps it; NONE: not known */
	} * vmas;
	uint32_t nr_vmas;
	nrp_lock_grant_fn *grant;
	void *context;
};

/* ---- events --------------------------------------------------------------------------- */

static bool earlier(const struct event *a, const struct event *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return a->class != b->class ? a->class < b->class : a->job < b->job;
}

static void push(struct lock *l, uint64_t time, enum event_class class, uint32_t job)
{
	struct event e = { time, class, job };
	size_t i = l->nr_heap;

	if (i == l->heap_room) {
		struct event *heap = reallocarray(l->heap, 2 * i, sizeof(*heap));

		l->failed = !heap;
		if (!heap)
			return;
		l->heap = heap;
		l->heap_room = 2 * i;
	}
	l->nr_heap++;
	for (; i && earlier(&e, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
		l->heap[i] = l->heap[(i - 1) / 2];
	l->heap[i] = e;
}

static struct event pop(struct lock *l)
{
	struct event top = l->heap[0], e = l->heap[--l->nr_heap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < l->nr_heap) {
		if (child + 1 < l->nr_heap && earlier(&l->heap[child + 1], &l->heap[child]))
			child++;
		if (!earlier(&l->heap[child], &e))
			break;
		l->heap[i] = l->heap[child];
		i = child;
	}
	l->heap[i] = e;
	return top;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ---- lists ---------------------------------------------------------------------------- */

static void append(struct lock *l, struct list *list, uint32_t i)
{
	struct actor *a = &l->actors[i];

	a->before = list->tail;
	a->behind = NONE;
	if (list->tail == NONE)
		list->head = i;
	else
		l->actors[list->tail].behind = i;
	list->tail = i;
}

static void take_out(struct lock *l, struct list *list, uint32_t i)
{
	const struct actor *a = &l->actors[i];

	if (a->before == NONE)
		list->head = a->behind;
	else
		l->actors[a->before].behind = a->behind;
	if (a->behind == NONE)
		list->tail = a->before;
	else
		l->actors[a->behind].before = a->before;
}

static void get_in_line(struct lock *l, uint32_t i)
{
	l->actors[i].state = WAITING;
	append(l, &l->line, i);
}

/* ---- grants --------------------------------------------------------------------------- */

static bool is_held(const struct lock *l)
{
	return l->writer != NONE || l->readers;
}

/*
 * An unmap takes its VMA at @start: faults in it go to the mmap_lock from here on. Returns how long
 * it waits for those that are under way.
 */
static uint64_t mark_vma(struct lock *l, const struct nrp_lock_job *j, uint64_t start)
{
	struct vma *vma;

	if (!l->params->vma_locks || j->kind != NRP_LOCK_MUNMAP || j->vma == NRP_LOCK_NO_VMA)
		return 0;
	vma = &l->vmas[j->vma];
	if (vma->marked)
		return 0;
	vma->marked = true;
	return vma->busy > start ? vma->busy - start : 0;
}

/* What a fault sees that gets its lock now: how far is the unmap of its VMA? */
static void look(struct lock *l, struct nrp_lock_job *j)
{
	uint32_t u = j->vma == NRP_LOCK_NO_VMA ? NONE : l->vmas[j->vma].unmap;
	const struct actor *a = &l->actors[u == NONE ? 0 : u];
	struct nrp_munmap_progress progress;

	if (j->kind != NRP_LOCK_FAULT || u == NONE)
		return;
	progress.started = l->jobs[u].grants && l->jobs[u].first_grant <= l->now;
	progress.ended = a->hold_nr + (a->state == ENDED);
	progress.ns = progress.started ? l->now - l->jobs[u].first_grant : 0;
	j->sight = nrp_munmap_fault_sees(&l->params->munmap, l->jobs[u].work, &progress, j->offset);
}

static void take(struct lock *l, uint32_t i, bool from_line)
{
	struct nrp_lock_job *j = &l->jobs[i];
	struct actor *a = &l->actors[i];
	uint64_t start = from_line ? add(l->now, l->params->handoff) : l->now;
	uint64_t wait = start - a->requested, until = add(start, a->hold.ns);

	if (a->hold.write) {
		l->writer = i;
		until = add(until, mark_vma(l, j, start));
	} else {
		l->readers++;
	}
	if (!j->grants++)
		j->first_grant = start;
	j->queued += from_line;
	j->wait = add(j->wait, wait);
	j->longest = wait > j->longest ? wait : j->longest;
	look(l, j);
	a->state = HOLDING;
	if (l->grant)
		l->grant(l->context, i, a->hold.write, a->requested, start);
	push(l, until, EVENT_END, i);
}

/* Readers in line, past the writers between them or up to the first of these. */
static void grant_readers(struct lock *l)
{
	uint32_t granted = 0;

	for (uint32_t i = l->line.head, next; i != NONE && granted < l->params->batch; i = next) {
		next = l->actors[i].behind;
		if (l->actors[i].hold.write) {
			if (l->params->prefix)
				return;
			continue;
		}
		take_out(l, &l->line, i);
		take(l, i, true);
		granted++;
	}
}

/* A writer that spins takes a lock that nobody has, whoever is in line. */
static bool steal(struct lock *l)
{
	uint32_t first = l->spinners.head;

	if (first == NONE)
		return false;
	for (uint32_t i = first; i != NONE; i = l->actors[i].behind)
		first = i < first ? i : first;
	take_out(l, &l->spinners, first);
	take(l, first, false);
	return true;
}

static void dispatch(struct lock *l)
{
	uint32_t i = l->line.head;

	if (is_held(l) || steal(l) || i == NONE)
		return;
	if (!l->actors[i].hold.write) {
		grant_readers(l);
		return;
	}
	take_out(l, &l->line, i);
	take(l, i, true);
}

/* What of a hold is done without the lock, behind it. */
static uint64_t unlocked(const struct lock *l, const struct nrp_lock_job *j)
{
	if (!l->params->moves_unlocked)
		return 0;
	return j->moving < j->hold ? j->moving : j->hold;
}

static void end_job(struct lock *l, uint32_t i)
{
	struct nrp_lock_job *j = &l->jobs[i];
	uint64_t end = add(l->now, unlocked(l, j));

	l->actors[i].state = ENDED;
	j->done = l->now;
	for (uint32_t k = l->actors[i].first_after; k != NONE; k = l->actors[k].next_after) {
		uint64_t at = l->jobs[k].arrival;

		if (l->params->closed)
			at = add(end, l->jobs[k].think);
		else if (at < end)
			at = end;
		push(l, at, EVENT_ARRIVAL, k);
	}
}

/* Asks for the current hold. */
static void request(struct lock *l, uint32_t i)
{
	struct nrp_lock_job *j = &l->jobs[i];
	struct actor *a = &l->actors[i];
	bool busy = l->writer != NONE || l->line.head != NONE || (a->hold.write && l->readers);

	a->requested = l->now;
	j->requests++;
	if (!busy) {
		take(l, i, false);
	} else if (j->kind == NRP_LOCK_SCAN) {
		j->skipped = true;
		end_job(l, i);
	} else if (a->hold.write && l->params->spin) {
		a->state = SPINNING;
		append(l, &l->spinners, i);
		push(l, add(l->now, l->params->spin), EVENT_ARRIVAL, i);
	} else {
		get_in_line(l, i);
	}
	if ((a->state == SPINNING || a->state == WAITING) && j->requests == 1 &&
	    j->give_up != UINT64_MAX)
		push(l, j->give_up > l->now ? j->give_up : l->now, EVENT_ARRIVAL, i);
}

/* ---- what happens --------------------------------------------------------------------- */

static void arrive(struct lock *l, uint32_t i)
{
	struct nrp_lock_job *j = &l->jobs[i];
	struct actor *a = &l->actors[i];

	j->arrived = l->now;
	if (j->kind == NRP_LOCK_FAULT && j->lockable && l->params->vma_locks &&
	    j->vma != NRP_LOCK_NO_VMA && !l->vmas[j->vma].marked) {
		struct vma *vma = &l->vmas[j->vma];
		uint64_t until = add(l->now, j->hold);

		j->by_vma = true;
		look(l, j);
		vma->busy = until > vma->busy ? until : vma->busy;
		a->state = HOLDING;
		push(l, until, EVENT_END, i);
		return;
	}
	if (j->kind == NRP_LOCK_MUNMAP)
		nrp_munmap_hold(&l->params->munmap, j->work, 0, &a->hold);
	else
		a->hold = (struct nrp_munmap_hold){ .write = j->kind == NRP_LOCK_WRITER,
						    .ns = j->hold - unlocked(l, j) };
	request(l, i);
}

/* A waiter that is killed leaves; what it kept others from goes on. */
static void give_up(struct lock *l, uint32_t i)
{
	struct actor *a = &l->actors[i];
	bool was_head = l->line.head == i;

	l->jobs[i].gave_up = true;
	l->jobs[i].wait = add(l->jobs[i].wait, l->now - a->requested);
	take_out(l, a->state == SPINNING ? &l->spinners : &l->line, i);
	end_job(l, i);
	if (!was_head || l->line.head == NONE)
		return;
	if (!is_held(l))
		dispatch(l);
	else if (l->writer == NONE && !l->actors[l->line.head].hold.write)
		grant_readers(l);
}

/* Events of a job that has not got what it waits for. */
static void waiting_event(struct lock *l, uint32_t i)
{
	struct actor *a = &l->actors[i];

	if (a->state == COMING) {
		arrive(l, i);
	} else if (a->state == SPINNING || a->state == WAITING) {
		if (l->jobs[i].give_up <= l->now && l->jobs[i].requests == 1) {
			give_up(l, i);
		} else if (a->state == SPINNING && l->now - a->requested >= l->params->spin) {
			take_out(l, &l->spinners, i);
			get_in_line(l, i);
		}
	}
}

static void next_hold(struct lock *l, uint32_t i, const struct nrp_munmap_hold *next)
{
	l->actors[i].hold = *next;
	l->actors[i].hold_nr++;
}

static void hold_ends(struct lock *l, uint32_t i)
{
	struct nrp_lock_job *j = &l->jobs[i];
	struct actor *a = &l->actors[i];
	struct nrp_munmap_hold next = { .step = NRP_MUNMAP_REQUEST };
	bool more = j->kind == NRP_LOCK_MUNMAP &&
		    nrp_munmap_hold(&l->params->munmap, j->work, a->hold_nr + 1, &next);

	if (j->by_vma) {
		end_job(l, i);
		return;
	}
	if (more && next.step == NRP_MUNMAP_DOWNGRADE_STEP) {
		next_hold(l, i, &next);
		l->writer = NONE;
		l->readers++;
		j->downgraded = l->now;
		push(l, add(l->now, next.ns), EVENT_END, i);
		if (l->line.head != NONE && !l->actors[l->line.head].hold.write)
			grant_readers(l);
		return;
	}
	if (more && next.step == NRP_MUNMAP_IF_WANTED &&
	    !(l->line.head != NONE && l->params->resched)) {
		next_hold(l, i, &next);
		push(l, add(l->now, next.ns), EVENT_END, i);
		return;
	}
	if (a->hold.write)
		l->writer = NONE;
	else
		l->readers--;
	if (more)
		next_hold(l, i, &next);
	else
		end_job(l, i);
	dispatch(l);
	if (more)
		request(l, i);
}

/* ---- all of it ------------------------------------------------------------------------ */

/* Jobs as they come; those behind another one arrive when it has ended. */
static int set_up(struct lock *l)
{
	for (uint32_t i = 0; i < l->nr_jobs; i++)
		l->actors[i].first_after = NONE;
	for (uint32_t i = 0; i < l->nr_vmas; i++)
		l->vmas[i].unmap = NONE;
	for (uint32_t i = l->nr_jobs; i--;) {
		struct nrp_lock_job *j = &l->jobs[i];

		j->arrived = j->wait = j->longest = j->first_grant = 0;
		j->downgraded = j->done = UINT64_MAX;
		j->requests = j->grants = j->queued = 0;
		j->skipped = j->gave_up = j->by_vma = false;
		j->sight = NRP_MUNMAP_NORMAL;
		if (j->kind == NRP_LOCK_MUNMAP && j->vma != NRP_LOCK_NO_VMA)
			l->vmas[j->vma].unmap = i;
		if (j->after == NONE) {
			push(l, j->arrival, EVENT_ARRIVAL, i);
			continue;
		}
		if (j->after >= i)
			return -EINVAL;
		l->actors[i].next_after = l->actors[j->after].first_after;
		l->actors[j->after].first_after = i;
	}
	return 0;
}

static int allocate(struct lock *l)
{
	for (uint32_t i = 0; i < l->nr_jobs; i++)
		if (l->jobs[i].vma != NRP_LOCK_NO_VMA && l->jobs[i].vma >= l->nr_vmas)
			l->nr_vmas = l->jobs[i].vma + 1;
	l->actors = calloc(l->nr_jobs + 1, sizeof(*l->actors));
	l->vmas = calloc((size_t)l->nr_vmas + 1, sizeof(*l->vmas));
	l->heap_room = (size_t)l->nr_jobs + 1;
	l->heap = reallocarray(NULL, l->heap_room, sizeof(*l->heap));
	return l->actors && l->vmas && l->heap ? 0 : -ENOMEM;
}

int nrp_mmap_lock_run(const struct nrp_lock_params *params, struct nrp_lock_job *jobs,
		      uint32_t nr_jobs, uint64_t end, nrp_lock_grant_fn *grant, void *context)
{
	struct lock l = {
		.params = params,
		.jobs = jobs,
		.nr_jobs = nr_jobs,
		.writer = NONE,
		.line = { NONE, NONE },
		.spinners = { NONE, NONE },
		.grant = grant,
		.context = context,
	};
	int r = allocate(&l);

	if (r == 0)
		r = set_up(&l);
	while (r == 0 && !l.failed && l.nr_heap && l.heap[0].time < end) {
		struct event e = pop(&l);

		l.now = e.time;
		if (e.class == EVENT_END)
			hold_ends(&l, e.job);
		else
			waiting_event(&l, e.job);
	}
	free(l.actors);
	free(l.vmas);
	free(l.heap);
	return l.failed ? -ENOMEM : r;
}
