/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/lock_jobs.h"

#include "replay/merge.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_JOB 0 /* numbers of jobs are kept plus one */

/* A task in one address space. */
struct user {
	uint32_t asking; /* job that waits for an answer */
	uint32_t tried;  /* job whose try failed; a request in the same fault goes on with it */
	uint32_t holding;
	uint32_t last;        /* job before, for the next one to come after */
	uint64_t tried_fault; /* the fault of that try */
};

/* A task in all of them. */
struct task {
	uint64_t faults;     /* exceptions so far */
	uint64_t used_fault; /* the last one that a job belongs to */
	uint64_t addr;       /* of the last one */
	bool user;
	uint64_t scan_end; /* it is in task_numa_work() until then */
	uint64_t scan_mm;
};

struct builder {
	struct nrp_lock_jobs *ret;
	struct nrp_pages *users; /* by mm and tid */
	struct nrp_pages *tasks; /* by tid */
	struct nrp_pages *mms;   /* index into ret->mm plus one */
	size_t room;
	uint64_t last_time;
};

/* ---- lists ---------------------------------------------------------------------------- */

static struct nrp_lock_mm *mm_of(struct builder *b, uint64_t mm)
{
	uint32_t *index = nrp_pages_get(b->mms, mm, 0);
	struct nrp_lock_jobs *ret = b->ret;

	if (!index)
		return NULL;
	if (*index)
		return &ret->mm[*index - 1];
	if (ret->nr_mms == b->room) {
		size_t room = b->room ? 2 * b->room : 16;
		struct nrp_lock_mm *at = reallocarray(ret->mm, room, sizeof(*at));

		if (!at)
			return NULL;
		ret->mm = at;
		b->room = room;
	}
	ret->mm[ret->nr_mms] = (struct nrp_lock_mm){ .mm = mm };
	*index = (uint32_t)++ret->nr_mms;
	return &ret->mm[ret->nr_mms - 1];
}

static int reserve(struct nrp_lock_mm *mm)
{
	uint32_t room = mm->room ? 2 * mm->room : 64;
	struct nrp_lock_job *job;
	struct nrp_lock_seen *seen;

	if (mm->nr_jobs < mm->room)
		return 0;
	if (room <= mm->room)
		return -ENOMEM;
	job = reallocarray(mm->job, room, sizeof(*job));
	if (!job)
		return -ENOMEM;
	mm->job = job;
	seen = reallocarray(mm->seen, room, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	mm->seen = seen;
	mm->room = room;
	return 0;
}

static struct task *task_of(struct builder *b, int32_t tid)
{
	return nrp_pages_get(b->tasks, 0, (uint32_t)tid);
}

static struct user *user_of(struct builder *b, uint64_t mm, int32_t tid)
{
	return nrp_pages_get(b->users, mm, (uint32_t)tid);
}

/* ---- requests ------------------------------------------------------------------------- */

static enum nrp_lock_kind kind_of(struct builder *b, struct task *task, const struct nrp_lock *l)
{
	if (l->write)
		return NRP_LOCK_WRITER;
	if (task->scan_end >= l->time && task->scan_mm == l->mm)
		return NRP_LOCK_SCAN;
	/* the first reader of a task behind an exception is the fault's own */
	if (b->ret->has_page_faults && task->faults > task->used_fault) {
		task->used_fault = task->faults;
		return NRP_LOCK_FAULT;
	}
	return NRP_LOCK_READER;
}

static int request(struct builder *b, struct nrp_lock_mm *mm, struct user *user, struct task *task,
		   const struct nrp_lock *l)
{
	uint32_t i = mm->nr_jobs;

	b->ret->requests++;
	if (user->tried && user->tried_fault == task->faults && !l->write) {
		user->asking = user->tried;
		user->tried = NO_JOB;
		mm->seen[user->asking - 1].failed_first = true;
		return 0;
	}
	b->ret->impossible += user->asking != NO_JOB;
	if (reserve(mm) < 0)
		return -ENOMEM;
	mm->job[i] = (struct nrp_lock_job){
		.kind = kind_of(b, task, l),
		.arrival = l->time,
		.give_up = UINT64_MAX,
		.after = user->last ? user->last - 1 : NRP_LOCK_NO_JOB,
		.vma = NRP_LOCK_NO_VMA,
	};
	mm->seen[i] = (struct nrp_lock_seen){
		.tid = l->tid,
		.write = l->write,
		.requested = l->time,
		.granted = UINT64_MAX,
		.downgraded = UINT64_MAX,
		.released = UINT64_MAX,
		.addr = task->addr,
		.user = task->user,
	};
	mm->nr_jobs++;
	user->asking = mm->nr_jobs;
	user->last = mm->nr_jobs;
	user->tried = NO_JOB;
	return 0;
}

static void grant(struct builder *b, struct nrp_lock_mm *mm, struct user *user,
		  const struct nrp_lock *l)
{
	struct nrp_lock_seen *seen;

	/* A downgrade looks like a reader's grant that nobody asked for. */
	if (!user->asking && user->holding && !l->write) {
		seen = &mm->seen[user->holding - 1];
		b->ret->impossible += !seen->write || seen->downgraded != UINT64_MAX;
		seen->downgraded = l->time;
		return;
	}
	if (!user->asking || mm->seen[user->asking - 1].write != l->write) {
		b->ret->impossible++;
		return;
	}
	b->ret->grants++;
	b->ret->impossible += user->holding != NO_JOB;
	mm->seen[user->asking - 1].granted = l->time;
	user->holding = user->asking;
	user->asking = NO_JOB;
}

static void fail(struct builder *b, struct user *user, const struct task *task)
{
	if (!user->asking) {
		b->ret->impossible++;
		return;
	}
	user->tried = user->asking;
	user->tried_fault = task->faults;
	user->asking = NO_JOB;
}

/* The oldest job that holds the lock as @write says: for a release by another task. */
static struct nrp_lock_seen *holder(struct nrp_lock_mm *mm, bool write)
{
	uint32_t from = mm->nr_jobs > 4096 ? mm->nr_jobs - 4096 : 0;

	for (uint32_t i = from; i < mm->nr_jobs; i++) {
		struct nrp_lock_seen *s = &mm->seen[i];

		if (s->granted != UINT64_MAX && s->released == UINT64_MAX &&
		    (s->write && s->downgraded == UINT64_MAX) == write)
			return s;
	}
	return NULL;
}

static void release(struct builder *b, struct nrp_lock_mm *mm, struct user *user,
		    const struct nrp_lock *l)
{
	struct nrp_lock_seen *seen = user->holding ? &mm->seen[user->holding - 1] : NULL;

	if (!seen) {
		seen = holder(mm, l->write);
		if (!seen) {
			b->ret->began_before++;
			return;
		}
		b->ret->by_others++;
		user_of(b, mm->mm, seen->tid)->holding = NO_JOB;
	}
	b->ret->impossible += (seen->write && seen->downgraded == UINT64_MAX) != (l->write != 0);
	seen->released = l->time;
	user->holding = NO_JOB;
}

static int see_lock(struct builder *b, const struct nrp_lock *l)
{
	struct task *task = task_of(b, l->tid);
	struct nrp_lock_mm *mm;
	struct user *user;

	b->ret->has_lock_events = true;
	if (NRP_NULL(l, lock, mm) || NRP_NULL(l, lock, write))
		return 0; /* the downgrade probe of kernels without lock events */
	mm = mm_of(b, l->mm);
	user = user_of(b, l->mm, l->tid);
	if (!task || !mm || !user)
		return -ENOMEM;
	switch (l->op) {
	case NRP_LOCK_REQUEST:
		return request(b, mm, user, task, l);
	case NRP_LOCK_GRANT:
		grant(b, mm, user, l);
		return 0;
	case NRP_LOCK_FAILED:
		fail(b, user, task);
		return 0;
	case NRP_LOCK_RELEASE:
		release(b, mm, user, l);
		return 0;
	default:
		return 0;
	}
}

/* ---- the rest ------------------------------------------------------------------------- */

static int see_munmap(struct builder *b, const struct nrp_munmap *m)
{
	struct nrp_lock_mm *mm;
	struct nrp_munmap_work *work;
	struct user *user;
	struct nrp_lock_seen *seen;

	if (NRP_NULL(m, munmap, zap_time))
		return 0; /* nothing was unmapped */
	if (NRP_NULL(m, munmap, mm)) {
		b->ret->phases_without_lock++;
		return 0;
	}
	mm = mm_of(b, m->mm);
	user = user_of(b, m->mm, m->tid);
	if (!mm || !user)
		return -ENOMEM;
	if (!user->holding || !mm->seen[user->holding - 1].write) {
		b->ret->phases_without_lock++;
		return 0;
	}
	if (!(mm->nr_work & (mm->nr_work - 1))) { /* full: it has room for a power of two */
		work = reallocarray(mm->work, mm->nr_work ? 2 * (size_t)mm->nr_work : 1,
				    sizeof(*work));
		if (!work)
			return -ENOMEM;
		mm->work = work;
	}
	work = mm->work;
	seen = &mm->seen[user->holding - 1];
	seen->work = mm->nr_work++;
	seen->may_downgrade = NRP_NULL(m, munmap, downgrade) || m->downgrade;
	seen->addr = NRP_NULL(m, munmap, start) ? 0 : m->start;
	work[seen->work] = (struct nrp_munmap_work){
		/* times as they are on record, for the time being: finish() makes durations of them
		 */
		.zap = m->zap_time,
		.pgtables = NRP_NULL(m, munmap, pgtables_time) ? 0 : m->pgtables_time,
		.free = NRP_NULL(m, munmap, flushed_time) ? 0 : m->flushed_time,
		.length = NRP_NULL(m, munmap, len) || !m->len ? 1 : m->len,
	};
	mm->job[user->holding - 1].kind = NRP_LOCK_MUNMAP;
	b->ret->munmaps++;
	return 0;
}

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	struct builder *b = context;

	if (kind == NRP_LOCK)
		return see_lock(b, row);
	if (kind == NRP_MUNMAP)
		return see_munmap(b, row);
	if (kind == NRP_PAGE_FAULT) {
		const struct nrp_page_fault *p = row;
		struct task *task = task_of(b, p->tid);

		if (!task)
			return -ENOMEM;
		task->faults++;
		task->addr = NRP_NULL(p, page_fault, addr) ? 0 : p->addr;
		task->user = !NRP_NULL(p, page_fault, user) && p->user;
		b->ret->page_faults++;
		b->ret->has_page_faults = true;
		return 0;
	}
	if (kind == NRP_SCAN_PASS) {
		const struct nrp_scan_pass *p = row;
		struct task *task = task_of(b, p->tid);

		if (!task)
			return -ENOMEM;
		task->scan_end = NRP_NULL(p, scan_pass, end_time) ? p->time : p->end_time;
		task->scan_mm = NRP_NULL(p, scan_pass, mm) ? 0 : p->mm;
	}
	return 0;
}

/* Durations of an unmap from the times of its phases, each at least 0. */
static void phases(struct nrp_munmap_work *w, const struct nrp_lock_seen *s, uint64_t end)
{
	uint64_t zap = w->zap < s->granted ? s->granted : w->zap, pgtables, flushed;

	pgtables = w->pgtables > zap ? w->pgtables : 0;
	flushed = w->free > zap ? w->free : end;
	if (!pgtables)
		pgtables = flushed;
	w->find = (s->downgraded != UINT64_MAX && s->downgraded < zap ? s->downgraded : zap) -
		  s->granted;
	w->detach = 0;
	w->zap = pgtables - s->granted - w->find;
	w->pgtables = flushed > pgtables ? flushed - pgtables : 0;
	w->free = end > flushed ? end - flushed : 0;
}

/* Holds of the jobs; those that never got the lock go, but for scans that gave up. */
static int finish(struct builder *b, struct nrp_lock_mm *mm)
{
	struct nrp_lock_jobs *ret = b->ret;
	uint32_t *number = calloc((size_t)mm->nr_jobs + 1, sizeof(*number)), n = 0;

	if (!number)
		return -ENOMEM;
	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		struct nrp_lock_job *j = &mm->job[i];
		struct nrp_lock_seen *s = &mm->seen[i];
		uint64_t end = s->released == UINT64_MAX ? b->last_time : s->released;

		/* The job before it in its thread, or the one before that if it went. */
		if (j->after != NRP_LOCK_NO_JOB)
			j->after = number[j->after] ? number[j->after] - 1 : NRP_LOCK_NO_JOB;
		number[i] = j->after == NRP_LOCK_NO_JOB ? 0 : j->after + 1;
		if (s->granted == UINT64_MAX && j->kind != NRP_LOCK_SCAN) {
			ret->failed_tries++;
			continue;
		}
		ret->never_ended += s->granted != UINT64_MAX && s->released == UINT64_MAX;
		if (s->granted != UINT64_MAX)
			j->hold = end > s->granted ? end - s->granted : 0;
		if (j->kind == NRP_LOCK_MUNMAP) {
			phases(&mm->work[s->work], s, end);
			mm->work[s->work].keeps_write = !s->may_downgrade;
			mm->downgrades |= s->downgraded != UINT64_MAX;
			mm->kept_write |= s->may_downgrade && s->downgraded == UINT64_MAX;
			j->work = &mm->work[s->work];
		}
		ret->faults += j->kind == NRP_LOCK_FAULT;
		ret->scans += j->kind == NRP_LOCK_SCAN;
		number[i] = n + 1;
		mm->job[n] = *j;
		mm->seen[n++] = *s;
	}
	mm->nr_jobs = n;
	free(number);
	return 0;
}

/* Unmaps looked at for the range that a fault is in. */
#define RANGES_AHEAD 64

/*
 * Faults in a range that is unmapped later, or meanwhile, get its number; all others share one.
 * Whether a fault could take the lock of its VMA is not on record: those of user mode are taken to
 * be able to.
 */
static int number_vmas(struct nrp_lock_mm *mm)
{
	uint32_t *unmaps = calloc((size_t)mm->nr_work + 1, sizeof(*unmaps)), n = 0, first = 0;

	if (!unmaps)
		return -ENOMEM;
	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		if (mm->job[i].kind != NRP_LOCK_MUNMAP)
			continue;
		mm->job[i].vma = n;
		unmaps[n++] = i;
	}
	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		struct nrp_lock_job *j = &mm->job[i];
		const struct nrp_lock_seen *s = &mm->seen[i];

		if (j->kind != NRP_LOCK_FAULT)
			continue;
		while (first < n && mm->seen[unmaps[first]].released <= s->requested)
			first++;
		j->vma = n;
		j->lockable = s->user;
		for (uint32_t k = first; k < n && k - first < RANGES_AHEAD; k++) {
			if (s->addr - mm->seen[unmaps[k]].addr >= mm->job[unmaps[k]].work->length)
				continue;
			j->vma = k;
			break;
		}
	}
	free(unmaps);
	return 0;
}

int nrp_lock_jobs_load(struct nrp_lock_jobs *ret, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	static const struct nrp_merge_input inputs[] = {
		{ NRP_PAGE_FAULT, NRP_BIT(page_fault, time) | NRP_BIT(page_fault, tid) |
					  NRP_BIT(page_fault, addr) | NRP_BIT(page_fault, user) },
		{ NRP_SCAN_PASS, NRP_BIT(scan_pass, time) | NRP_BIT(scan_pass, end_time) |
					 NRP_BIT(scan_pass, tid) | NRP_BIT(scan_pass, mm) },
		{ NRP_LOCK, ~UINT64_C(0) },
		{ NRP_MUNMAP, ~UINT64_C(0) },
	};
	struct builder b = { .ret = ret, .last_time = capture->last_time };
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	b.users = nrp_pages_new(sizeof(struct user));
	b.tasks = nrp_pages_new(sizeof(struct task));
	b.mms = nrp_pages_new(sizeof(uint32_t));
	if (!b.users || !b.tasks || !b.mms)
		r = nrp_fail_nomem(err);
	if (r == 0)
		r = nrp_merge_each(store, capture->id, inputs, sizeof(inputs) / sizeof(inputs[0]),
				   see, &b, err);
	for (size_t i = 0; r == 0 && i < ret->nr_mms; i++)
		r = finish(&b, &ret->mm[i]) < 0 || number_vmas(&ret->mm[i]) < 0
			    ? nrp_fail_nomem(err)
			    : 0;
	nrp_pages_free(b.users);
	nrp_pages_free(b.tasks);
	nrp_pages_free(b.mms);
	return r;
}

void nrp_lock_jobs_clear(struct nrp_lock_jobs *jobs)
{
	for (size_t i = 0; i < jobs->nr_mms; i++) {
		free(jobs->mm[i].job);
		free(jobs->mm[i].seen);
		free(jobs->mm[i].work);
	}
	free(jobs->mm);
	memset(jobs, 0, sizeof(*jobs));
}
