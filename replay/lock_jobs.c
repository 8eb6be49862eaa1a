/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/lock_jobs_internal.h"

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
	uint64_t tried_time;
	uint64_t asked;     /* ns: start of the try or wait that has no answer yet */
	uint64_t last_time; /* ns, of its event before */
	bool seen;          /* it had an event before */
	bool held_before;   /* it got the lock before the capture began */
};

/*
 * A fault asks again right after its try. Where exceptions are not on record, that is all that says
 * that the two belong together.
 */
#define TRY_TO_REQUEST_NS 100000

/* A task in all of them. */
struct task {
	uint64_t faults;     /* exceptions so far */
	uint64_t used_fault; /* the last one that a job belongs to, or that is over */
	uint64_t time, addr; /* of the last one */
	bool user;
	uint64_t scan_end; /* it is in task_numa_work() until then */
	uint64_t scan_mm;
	uint64_t call_end; /* it is in a system call until then; 0: in none */
	uint64_t call_addr, call_len;
	int8_t call;         /* NRP_CALL_* */
	bool call_wrote;     /* and has asked for the lock to write */
	uint64_t write_mm;   /* write_job is one of its */
	uint32_t write_job;  /* the last one that it took to write */
	uint64_t killed_mm;  /* killed_job is one of its */
	uint32_t killed_job; /* wait that seems to have ended with the task */
};

struct builder {
	struct nrp_lock_jobs *ret;
	struct nrp_pages *users; /* by mm and tid */
	struct nrp_pages *tasks; /* by tid */
	struct nrp_pages *mms;   /* index into ret->mm plus one */
	size_t room;
	struct nrp_loss_spans losses;
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

/*
 * An event cannot follow on what the task did at @since, unless what came in between is lost. 0:
 * nothing of the task is on record before.
 */
static void impossible(struct builder *b, const struct nrp_lock *l, uint64_t since,
		       enum nrp_lock_oddity what)
{
	struct nrp_lock_impossible event = { l->time, l->mm, l->tid, what,
					     nrp_loss_spans_touch(&b->losses, since, l->time) };

	nrp_lock_impossible_add(&b->ret->counts, &event);
}

/* ---- requests ------------------------------------------------------------------------- */

static enum nrp_lock_kind kind_of(struct builder *b, struct task *task, const struct nrp_lock *l)
{
	if (l->write)
		return NRP_LOCK_WRITER;
	if (task->scan_end >= l->time && task->scan_mm == l->mm)
		return NRP_LOCK_SCAN;
	/* the first reader of a task behind an exception is the fault's own */
	if (b->ret->counts.page_faults && task->faults > task->used_fault) {
		task->used_fault = task->faults;
		return NRP_LOCK_FAULT;
	}
	return NRP_LOCK_READER;
}

/* Does the try that failed before belong to this request? A scan's try has none. */
static bool goes_on(const struct builder *b, const struct nrp_lock_mm *mm, const struct user *user,
		    const struct task *task, const struct nrp_lock *l)
{
	if (!user->tried || l->write || mm->seen[user->tried - 1].write ||
	    mm->job[user->tried - 1].kind == NRP_LOCK_SCAN)
		return false;
	if (b->ret->counts.page_faults)
		return user->tried_fault == task->faults;
	return l->time - user->tried_time <= TRY_TO_REQUEST_NS;
}

/* A task that was killed does nothing of its own any more: this one's request was a slow try. */
static void lived_on(struct builder *b, struct task *task)
{
	struct nrp_lock_mm *mm;

	if (!task->killed_job)
		return;
	mm = mm_of(b, task->killed_mm);
	mm->seen[task->killed_job - 1].killed = UINT64_MAX;
	b->ret->counts.killed_waits--;
	task->killed_job = NO_JOB;
}

/* The first request for writing inside a munmap() is the unmap's. */
static void take_call(struct task *task, struct nrp_lock_seen *s)
{
	s->call = -1;
	if (task->call_end < s->requested)
		return;
	s->call = task->call;
	if (!s->write || task->call_wrote || task->call != NRP_CALL_MUNMAP)
		return;
	task->call_wrote = true;
	s->called = true;
	s->addr = task->call_addr;
	s->length = task->call_len;
}

static int request(struct builder *b, struct nrp_lock_mm *mm, struct user *user, struct task *task,
		   const struct nrp_lock *l)
{
	uint32_t i = mm->nr_jobs;

	b->ret->counts.requests++;
	user->asked = l->time;
	if (goes_on(b, mm, user, task, l)) {
		user->asking = user->tried;
		user->tried = NO_JOB;
		mm->seen[user->asking - 1].failed_first = true;
		mm->seen[user->asking - 1].failed = false;
		lived_on(b, task);
		return 0;
	}
	if (user->asking != NO_JOB)
		impossible(b, l, mm->seen[user->asking - 1].requested, NRP_LOCK_ODD_ASKS_TWICE);
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
		.killed = UINT64_MAX,
		.addr = task->addr,
		.user = task->user,
	};
	take_call(task, &mm->seen[i]);
	mm->nr_jobs++;
	user->asking = mm->nr_jobs;
	user->last = mm->nr_jobs;
	user->tried = NO_JOB;
	return 0;
}

static void grant(struct builder *b, struct nrp_lock_mm *mm, struct user *user, struct task *task,
		  const struct nrp_lock *l)
{
	struct nrp_lock_seen *seen;

	/* A downgrade looks like a reader's grant that nobody asked for. */
	if (!user->asking && user->holding && !l->write) {
		seen = &mm->seen[user->holding - 1];
		if (!seen->write || seen->downgraded != UINT64_MAX)
			impossible(b, l, seen->granted, NRP_LOCK_ODD_DOWNGRADE);
		else
			seen->downgraded = l->time;
		return;
	}
	if (!user->asking && !user->seen) { /* asked for, or downgraded, before the capture */
		user->held_before = true;
		return;
	}
	if (!user->asking || mm->seen[user->asking - 1].write != l->write) {
		impossible(b, l, user->last_time,
			   user->asking ? NRP_LOCK_ODD_OTHER_MODE : NRP_LOCK_ODD_UNASKED_GRANT);
		return;
	}
	b->ret->counts.grants++;
	if (user->holding != NO_JOB) {
		impossible(b, l, mm->seen[user->holding - 1].granted, NRP_LOCK_ODD_STILL_HELD);
		/* It cannot have held it when it asked again: that ends the hold at the latest. */
		mm->seen[user->holding - 1].released = mm->seen[user->asking - 1].requested;
		mm->seen[user->holding - 1].release_lost = true;
	}
	mm->seen[user->asking - 1].granted = l->time;
	user->holding = user->asking;
	user->asking = NO_JOB;
	if (l->write) {
		task->write_mm = l->mm;
		task->write_job = user->holding;
	}
}

/*
 * A try returns at once; a blocking request that fails has waited, and its task is being killed. It
 * has waited for sure if the fault's try came before.
 */
static bool is_killed(const struct nrp_lock_mm *mm, const struct user *user,
		      const struct nrp_lock *l)
{
	uint32_t i = user->asking - 1;

	if (mm->job[i].kind == NRP_LOCK_SCAN)
		return false;
	return mm->seen[i].failed_first || l->time - user->asked > TRY_TO_REQUEST_NS;
}

static void fail(struct builder *b, struct nrp_lock_mm *mm, struct user *user, struct task *task,
		 const struct nrp_lock *l)
{
	if (!user->asking) {
		if (user->seen) /* else it asked before the capture began */
			impossible(b, l, user->last_time, NRP_LOCK_ODD_UNASKED_FAILURE);
		return;
	}
	mm->seen[user->asking - 1].failed = true;
	if (is_killed(mm, user, l)) {
		mm->seen[user->asking - 1].killed = l->time;
		b->ret->counts.killed_waits++;
		task->killed_mm = l->mm;
		task->killed_job = user->asking;
	}
	user->tried = user->asking;
	user->tried_fault = task->faults;
	user->tried_time = l->time;
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
			if (user->seen && !user->held_before)
				impossible(b, l, user->last_time, NRP_LOCK_ODD_UNHELD_RELEASE);
			else
				b->ret->counts.began_before++;
			user->held_before = false;
			return;
		}
		b->ret->counts.by_others++;
		user_of(b, mm->mm, seen->tid)->holding = NO_JOB;
	}
	if ((seen->write && seen->downgraded == UINT64_MAX) != (l->write != 0))
		impossible(b, l, seen->granted, NRP_LOCK_ODD_OTHER_RELEASE);
	seen->released = l->time;
	user->holding = NO_JOB;
}

static int see_lock(struct builder *b, const struct nrp_lock *l)
{
	struct task *task = task_of(b, l->tid);
	struct nrp_lock_mm *mm;
	struct user *user;
	int r = 0;

	if (NRP_NULL(l, lock, mm) || NRP_NULL(l, lock, write))
		return 0; /* the downgrade probe of kernels without lock events */
	mm = mm_of(b, l->mm);
	user = user_of(b, l->mm, l->tid);
	if (!task || !mm || !user)
		return -ENOMEM;
	/* What comes behind its fault's lock is not the fault's; at one time, this came before. */
	if (l->op != NRP_LOCK_REQUEST && l->time > task->time)
		task->used_fault = task->faults;
	switch (l->op) {
	case NRP_LOCK_REQUEST:
		r = request(b, mm, user, task, l);
		break;
	case NRP_LOCK_GRANT:
		grant(b, mm, user, task, l);
		break;
	case NRP_LOCK_FAILED:
		fail(b, mm, user, task, l);
		break;
	case NRP_LOCK_RELEASE:
		release(b, mm, user, l);
		break;
	default:
		break;
	}
	user->seen = true;
	user->last_time = l->time;
	return r;
}

/* ---- the rest ------------------------------------------------------------------------- */

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes && bytes <= UINT64_MAX - 4095 ? (bytes + 4095) & ~UINT64_C(4095) : 1;
}

static int see_munmap(struct builder *b, const struct nrp_munmap *m)
{
	struct nrp_lock_mm *mm;
	struct nrp_munmap_work *work;
	struct user *user;
	struct nrp_lock_seen *seen;

	if (NRP_NULL(m, munmap, zap_time))
		return 0; /* nothing was unmapped */
	if (NRP_NULL(m, munmap, mm)) {
		b->ret->counts.phases_without_lock++;
		return 0;
	}
	mm = mm_of(b, m->mm);
	user = user_of(b, m->mm, m->tid);
	if (!mm || !user)
		return -ENOMEM;
	if (!user->holding || !mm->seen[user->holding - 1].write) {
		b->ret->counts.phases_without_lock++;
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
		.length = NRP_NULL(m, munmap, len) ? 1 : whole_pages(m->len),
	};
	mm->job[user->holding - 1].kind = NRP_LOCK_MUNMAP;
	b->ret->counts.munmaps++;
	return 0;
}

static void see_exception(struct builder *b, struct task *task, const struct nrp_page_fault *p)
{
	task->faults++;
	task->time = p->time;
	task->addr = NRP_NULL(p, page_fault, addr) ? 0 : p->addr;
	task->user = !NRP_NULL(p, page_fault, user) && p->user;
	b->ret->counts.page_faults++;
}

static void see_pass(struct task *task, const struct nrp_scan_pass *p)
{
	task->scan_end = NRP_NULL(p, scan_pass, end_time) ? p->time : p->end_time;
	task->scan_mm = NRP_NULL(p, scan_pass, mm) ? 0 : p->mm;
	task->used_fault = task->faults;
}

static void see_call(struct task *task, const struct nrp_mm_call *c)
{
	task->used_fault = task->faults;
	task->call = (int8_t)c->call;
	task->call_wrote = false;
	task->call_end = NRP_NULL(c, mm_call, end_time) ? UINT64_MAX : c->end_time;
	task->call_addr = NRP_NULL(c, mm_call, addr) ? 0 : c->addr;
	task->call_len = NRP_NULL(c, mm_call, len) ? 1 : whole_pages(c->len);
}

/* Up to 6.6 mbind() moves pages while it holds the lock for writing (spec part 3, 4). */
static void see_migration(struct builder *b, struct task *task, const struct nrp_migration *m)
{
	struct nrp_lock_mm *mm;
	struct nrp_lock_seen *s;
	uint64_t from;

	if (!task->write_job || m->reason != NRP_REASON_MBIND ||
	    NRP_NULL(m, migration, start_time) || m->start_time > m->time)
		return;
	mm = mm_of(b, task->write_mm);
	s = &mm->seen[task->write_job - 1];
	if (s->released != UINT64_MAX || s->downgraded != UINT64_MAX)
		return;
	from = m->start_time > s->granted ? m->start_time : s->granted;
	mm->job[task->write_job - 1].moving += m->time - from;
}

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	struct builder *b = context;
	struct task *task;

	if (kind == NRP_LOCK)
		return see_lock(b, row);
	if (kind == NRP_MUNMAP)
		return see_munmap(b, row);
	task = task_of(b, kind == NRP_PAGE_FAULT  ? ((const struct nrp_page_fault *)row)->tid
			  : kind == NRP_SCAN_PASS ? ((const struct nrp_scan_pass *)row)->tid
			  : kind == NRP_MIGRATION ? ((const struct nrp_migration *)row)->tid
						  : ((const struct nrp_mm_call *)row)->tid);
	if (!task)
		return -ENOMEM;
	if (kind == NRP_SCAN_PASS || kind == NRP_MM_CALL ||
	    (kind == NRP_PAGE_FAULT && ((const struct nrp_page_fault *)row)->user))
		lived_on(b, task);
	if (kind == NRP_PAGE_FAULT)
		see_exception(b, task, row);
	else if (kind == NRP_SCAN_PASS)
		see_pass(task, row);
	else if (kind == NRP_MIGRATION)
		see_migration(b, task, row);
	else
		see_call(task, row);
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
		{ NRP_MM_CALL, NRP_BIT(mm_call, time) | NRP_BIT(mm_call, end_time) |
				       NRP_BIT(mm_call, tid) | NRP_BIT(mm_call, call) |
				       NRP_BIT(mm_call, addr) | NRP_BIT(mm_call, len) },
		{ NRP_MIGRATION, NRP_BIT(migration, time) | NRP_BIT(migration, start_time) |
					 NRP_BIT(migration, tid) | NRP_BIT(migration, reason) },
		{ NRP_LOCK, ~UINT64_C(0) },
		{ NRP_MUNMAP, ~UINT64_C(0) },
	};
	struct builder b = { .ret = ret };
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	b.users = nrp_pages_new(sizeof(struct user));
	b.tasks = nrp_pages_new(sizeof(struct task));
	b.mms = nrp_pages_new(sizeof(uint32_t));
	if (!b.users || !b.tasks || !b.mms)
		r = nrp_fail_nomem(err);
	if (r == 0)
		r = nrp_loss_spans_load(&b.losses, store, capture->id, err);
	if (r == 0)
		r = nrp_merge_each(store, capture->id, inputs, sizeof(inputs) / sizeof(inputs[0]),
				   see, &b, err);
	if (r == 0 && nrp_lock_jobs_finish(ret, &b.losses, capture->last_time) < 0)
		r = nrp_fail_nomem(err);
	nrp_pages_free(b.users);
	nrp_pages_free(b.tasks);
	nrp_pages_free(b.mms);
	nrp_loss_spans_clear(&b.losses);
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
