/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/lock_blockers.h"

#include <errno.h>
#include <stdlib.h>

/* A hold for writing: no two of one lock overlap. */
struct hold {
	uint64_t start, end;
	uint32_t job;
	uint64_t victims, wait_ns;
	uint64_t by_kind[NRP_NR_LOCK_KINDS]; /* of the victims */
	uint64_t lost_scans;
	uint32_t worst; /* the victim that waits longest meanwhile */
	uint64_t worst_ns;
};

const char *nrp_lock_call_name(int call)
{
	static const char *const names[NRP_NR_CALLS] = {
		[NRP_CALL_MMAP] = "mmap",       [NRP_CALL_MUNMAP] = "munmap",
		[NRP_CALL_MBIND] = "mbind",     [NRP_CALL_MPROTECT] = "mprotect",
		[NRP_CALL_MLOCK] = "mlock",     [NRP_CALL_MUNLOCK] = "munlock",
		[NRP_CALL_MREMAP] = "mremap",   [NRP_CALL_BRK] = "brk",
		[NRP_CALL_MADVISE] = "madvise", [NRP_CALL_SHMDT] = "shmdt",
	};

	return call >= 0 && call < NRP_NR_CALLS ? names[call] : NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct hold *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->job > y->job) - (x->job < y->job);
}

static uint64_t end_of_write(const struct nrp_lock_seen *s)
{
	return s->downgraded != UINT64_MAX ? s->downgraded : s->released;
}

static size_t collect(struct hold *holds, const struct nrp_lock_mm *mm)
{
	size_t n = 0;

	for (uint32_t i = 0; i < mm->nr_jobs; i++)
		if (mm->seen[i].write && mm->seen[i].granted != UINT64_MAX)
			holds[n++] = (struct hold){ .start = mm->seen[i].granted,
						    .end = end_of_write(&mm->seen[i]),
						    .job = i };
	qsort(holds, n, sizeof(*holds), by_start);
	return n;
}

/* First hold that ends behind @time. */
static size_t first_behind(const struct hold *holds, size_t n, uint64_t time)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (holds[mid].end > time)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Parts one wait among the holds that it overlaps. */
static void part(struct nrp_lock_blame *blame, const struct nrp_lock_mm *mm, struct hold *holds,
		 size_t n, uint32_t i)
{
	const struct nrp_lock_seen *s = &mm->seen[i];
	uint64_t left = s->granted - s->requested;

	for (size_t k = first_behind(holds, n, s->requested); k < n; k++) {
		uint64_t from = holds[k].start > s->requested ? holds[k].start : s->requested;
		uint64_t to = holds[k].end < s->granted ? holds[k].end : s->granted;

		if (holds[k].start >= s->granted)
			break;
		if (from >= to)
			continue;
		holds[k].victims++;
		holds[k].by_kind[mm->job[i].kind]++;
		holds[k].wait_ns += to - from;
		if (to - from > holds[k].worst_ns) {
			holds[k].worst_ns = to - from;
			holds[k].worst = i;
		}
		if (mm->job[holds[k].job].kind == NRP_LOCK_MUNMAP)
			blame->behind_munmap += to - from;
		else
			blame->behind_writers += to - from;
		left -= to - from < left ? to - from : left;
	}
	blame->behind_none += left;
}

static bool is_worse(const struct hold *h, const struct nrp_lock_blocker *b)
{
	return h->wait_ns != b->wait_ns ? h->wait_ns > b->wait_ns : h->lost_scans > b->lost_scans;
}

/* A scan gives up at once: because of who writes then, or of a writer in line (part 3, 1). */
static void lose_scan(struct nrp_lock_blame *blame, struct hold *holds, size_t n,
		      const struct nrp_lock_seen *s)
{
	size_t k = first_behind(holds, n, s->requested);

	if (k < n && holds[k].start <= s->requested)
		holds[k].lost_scans++;
	else
		blame->scans_behind_line++;
}

static void rank(struct nrp_lock_blame *blame, const struct nrp_lock_mm *mm, const struct hold *h)
{
	const struct nrp_lock_job *j = &mm->job[h->job];
	size_t i = blame->nr_top;

	if (!h->wait_ns && !h->lost_scans)
		return;
	for (; i && is_worse(h, &blame->top[i - 1]); i--)
		if (i < NRP_LOCK_BLOCKERS)
			blame->top[i] = blame->top[i - 1];
	if (i == NRP_LOCK_BLOCKERS)
		return;
	blame->nr_top += blame->nr_top < NRP_LOCK_BLOCKERS;
	blame->top[i] = (struct nrp_lock_blocker){
		.mm = mm->mm,
		.granted = h->start,
		.held = h->end == UINT64_MAX ? 0 : h->end - h->start,
		.victims = h->victims,
		.wait_ns = h->wait_ns,
		.length = j->kind == NRP_LOCK_MUNMAP ? j->work->length : 0,
		.tid = mm->seen[h->job].tid,
		.munmap = j->kind == NRP_LOCK_MUNMAP,
		.call = mm->seen[h->job].call,
		.faults = h->by_kind[NRP_LOCK_FAULT],
		.readers = h->by_kind[NRP_LOCK_READER] + h->by_kind[NRP_LOCK_SCAN],
		.writers = h->by_kind[NRP_LOCK_WRITER] + h->by_kind[NRP_LOCK_MUNMAP],
		.lost_scans = h->lost_scans,
		.worst = { h->victims ? mm->seen[h->worst].tid : 0, mm->job[h->worst].kind,
			   h->worst_ns },
	};
}

/* Does another task ask while the unmap @i has the lock, or wait for it when it gets it? */
static bool is_contended(const struct nrp_lock_mm *mm, uint32_t i, const struct hold *h)
{
	const struct nrp_lock_seen *s = &mm->seen[i];

	if (h->victims)
		return true;
	for (uint32_t k = i + 1; k < mm->nr_jobs && mm->seen[k].requested < s->released; k++)
		if (mm->seen[k].tid != s->tid && mm->seen[k].requested >= s->granted)
			return true;
	return false;
}

int nrp_lock_blame_add(struct nrp_lock_blame *blame, const struct nrp_lock_mm *mm,
		       uint64_t overhead)
{
	struct hold *holds = calloc((size_t)mm->nr_jobs + 1, sizeof(*holds));
	size_t n;

	if (!holds)
		return -ENOMEM;
	n = collect(holds, mm);
	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		const struct nrp_lock_seen *s = &mm->seen[i];

		if (s->granted != UINT64_MAX && s->granted > s->requested + overhead)
			part(blame, mm, holds, n, i);
		else if (s->granted == UINT64_MAX && mm->job[i].kind == NRP_LOCK_SCAN)
			lose_scan(blame, holds, n, s);
	}
	for (size_t k = 0; k < n; k++) {
		rank(blame, mm, &holds[k]);
		if (mm->job[holds[k].job].kind != NRP_LOCK_MUNMAP)
			continue;
		blame->unmaps++;
		if (mm->job[holds[k].job].work->length > blame->longest_unmap)
			blame->longest_unmap = mm->job[holds[k].job].work->length;
		blame->contended_unmaps += is_contended(mm, holds[k].job, &holds[k]);
	}
	free(holds);
	return 0;
}
