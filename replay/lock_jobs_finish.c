/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is known of the jobs when all records are read: holds, the work of unmaps, VMAs of faults.
 */
#include "replay/lock_jobs_internal.h"

#include <errno.h>
#include <stdlib.h>

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

/*
 * Of an unmap without probes the record has the hold, and the downgrade where there was one; else
 * what is done before the pages go is taken to last as long as it was measured once (spec 1.1).
 */
#define FIND_NS 8000

static void work_of_hold(struct nrp_munmap_work *w, const struct nrp_lock_seen *s, uint64_t end)
{
	uint64_t hold = end > s->granted ? end - s->granted : 0;

	*w = (struct nrp_munmap_work){ .length = s->length ? s->length : 1 };
	if (s->split == NRP_LOCK_SPLIT_DOWNGRADE)
		w->find = s->downgraded - s->granted;
	else
		w->find = hold < FIND_NS ? hold : FIND_NS;
	w->zap = hold - w->find;
}

/* Numbers of the work of unmaps without probes, behind those with. */
static int add_work(struct nrp_lock_jobs *ret, struct nrp_lock_mm *mm)
{
	uint32_t n = mm->nr_work;
	struct nrp_munmap_work *work;

	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		struct nrp_lock_seen *s = &mm->seen[i];

		if (mm->job[i].kind != NRP_LOCK_WRITER || s->granted == UINT64_MAX ||
		    (!s->called && s->downgraded == UINT64_MAX))
			continue;
		mm->job[i].kind = NRP_LOCK_MUNMAP;
		s->split = s->downgraded == UINT64_MAX ? NRP_LOCK_SPLIT_MODEL
						       : NRP_LOCK_SPLIT_DOWNGRADE;
		s->may_downgrade = true;
		s->work = n++;
		ret->counts.munmaps++;
		ret->counts.split_by_downgrade += s->split == NRP_LOCK_SPLIT_DOWNGRADE;
		ret->counts.split_by_model += s->split == NRP_LOCK_SPLIT_MODEL;
	}
	if (n == mm->nr_work)
		return 0;
	work = reallocarray(mm->work, n, sizeof(*work));
	if (!work)
		return -ENOMEM;
	mm->work = work;
	mm->nr_work = n;
	return 0;
}

/*
 * From the end of the job before it in its thread to its arrival; a skipped scan ends at once, a
 * killed wait when its task leaves.
 */
static uint64_t think_before(const struct nrp_lock_seen *before, const struct nrp_lock_job *j)
{
	uint64_t end = before->granted != UINT64_MAX  ? before->released
		       : before->killed != UINT64_MAX ? before->killed
						      : before->requested;

	return end < j->arrival ? j->arrival - end : 0;
}

/*
 * Holds of the jobs; those that never got the lock go, but for scans that gave up and killed
 * waiters.
 */
static int set_holds(struct nrp_lock_jobs *ret, struct nrp_lock_mm *mm,
		     const struct nrp_loss_spans *losses, uint64_t last_time)
{
	uint32_t *number = calloc((size_t)mm->nr_jobs + 1, sizeof(*number)), n = 0;

	if (!number)
		return -ENOMEM;
	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		struct nrp_lock_job *j = &mm->job[i];
		struct nrp_lock_seen *s = &mm->seen[i];
		uint64_t end = s->released == UINT64_MAX ? last_time : s->released;

		/* The job before it in its thread, or the one before that if it went. */
		if (j->after != NRP_LOCK_NO_JOB)
			j->after = number[j->after] ? number[j->after] - 1 : NRP_LOCK_NO_JOB;
		number[i] = j->after == NRP_LOCK_NO_JOB ? 0 : j->after + 1;
		if (s->granted == UINT64_MAX &&
		    (!s->failed || (j->kind != NRP_LOCK_SCAN && s->killed == UINT64_MAX))) {
			ret->counts.failed_tries += s->failed;
			ret->counts.unanswered += !s->failed;
			continue;
		}
		j->give_up = s->killed;
		s->lossy = nrp_loss_spans_touch(losses, s->requested,
						s->granted != UINT64_MAX  ? end
						: s->killed != UINT64_MAX ? s->killed
									  : s->requested + 1);
		ret->counts.lossy += s->lossy;
		ret->counts.never_ended += s->granted != UINT64_MAX && s->released == UINT64_MAX;
		if (s->granted != UINT64_MAX)
			j->hold = end > s->granted ? end - s->granted : 0;
		if (j->kind == NRP_LOCK_MUNMAP) {
			if (s->split == NRP_LOCK_SPLIT_PHASES)
				phases(&mm->work[s->work], s, end);
			else
				work_of_hold(&mm->work[s->work], s, end);
			mm->work[s->work].keeps_write = !s->may_downgrade;
			j->work = &mm->work[s->work];
		}
		if (j->after != NRP_LOCK_NO_JOB)
			j->think = think_before(&mm->seen[j->after], j);
		ret->counts.faults += j->kind == NRP_LOCK_FAULT;
		ret->counts.scans += j->kind == NRP_LOCK_SCAN;
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
			mm->unmap_faults++;
			j->offset = s->addr - mm->seen[unmaps[k]].addr;
			break;
		}
	}
	free(unmaps);
	return 0;
}

int nrp_lock_jobs_finish(struct nrp_lock_jobs *jobs, const struct nrp_loss_spans *losses,
			 uint64_t last_time)
{
	for (size_t i = 0; i < jobs->nr_mms; i++) {
		struct nrp_lock_mm *mm = &jobs->mm[i];

		if (add_work(jobs, mm) < 0 || set_holds(jobs, mm, losses, last_time) < 0 ||
		    number_vmas(mm) < 0 || nrp_lock_overlaps(&jobs->counts, mm) < 0)
			return -ENOMEM;
	}
	return 0;
}
