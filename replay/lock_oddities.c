/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sequences of mmap_lock events that cannot be: their names, and what the whole record shows. */
#include "replay/lock_jobs_internal.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
	const char *name, *text;
} oddities[NRP_NR_LOCK_ODDITIES] = {
	[NRP_LOCK_ODD_ASKS_TWICE] = { "start_while_waiting",
				      "asks again while its request before has no answer" },
	[NRP_LOCK_ODD_UNASKED_GRANT] = { "acquire_without_start", "gets what it did not ask for" },
	[NRP_LOCK_ODD_UNASKED_FAILURE] = { "failure_without_start",
					   "is refused what it did not ask for" },
	[NRP_LOCK_ODD_OTHER_MODE] = { "acquire_in_other_mode",
				      "gets it for reading and asked to write, or the other way "
				      "round" },
	[NRP_LOCK_ODD_STILL_HELD] = { "acquire_while_holding", "gets what it still holds" },
	[NRP_LOCK_ODD_DOWNGRADE] = { "downgrade_without_write",
				     "downgrades what it does not hold for writing" },
	[NRP_LOCK_ODD_UNHELD_RELEASE] = { "release_without_acquire",
					  "releases what no task on record holds" },
	[NRP_LOCK_ODD_OTHER_RELEASE] = { "release_in_other_mode",
					 "releases for reading what it took for writing, or the "
					 "other way round" },
	[NRP_LOCK_ODD_OVERLAP] = { "held_by_two",
				   "gets it while another task holds it, and one of them writes" },
};

const char *nrp_lock_oddity_name(enum nrp_lock_oddity oddity)
{
	return oddities[oddity].name;
}

const char *nrp_lock_oddity_text(enum nrp_lock_oddity oddity)
{
	return oddities[oddity].text;
}

void nrp_lock_impossible_add(struct nrp_lock_counts *counts,
			     const struct nrp_lock_impossible *event)
{
	if (event->undecided) {
		counts->undecided++;
		counts->undecided_by[event->what]++;
	} else {
		counts->impossible++;
		counts->impossible_by[event->what]++;
	}
	if (counts->nr_listed < NRP_LOCK_JOBS_LISTED)
		counts->listed[counts->nr_listed++] = *event;
}

/* A hold, or the part of it for writing. */
struct hold {
	uint64_t start, end;
	uint32_t job;
	bool write;
};

static int by_start(const void *a, const void *b)
{
	const struct hold *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->job > y->job) - (x->job < y->job);
}

/* Holds whose end is known; what was repaired has been listed. */
static size_t collect(struct hold *holds, const struct nrp_lock_mm *mm)
{
	size_t n = 0;

	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		const struct nrp_lock_seen *s = &mm->seen[i];

		if (s->granted == UINT64_MAX || s->release_lost)
			continue;
		holds[n++] =
			(struct hold){ s->granted,
				       s->downgraded != UINT64_MAX ? s->downgraded : s->released, i,
				       s->write };
		if (s->downgraded != UINT64_MAX)
			holds[n++] = (struct hold){ s->downgraded, s->released, i, false };
	}
	qsort(holds, n, sizeof(*holds), by_start);
	return n;
}

/* The latest end of the holds so far, of other jobs than the one asked for. */
struct latest {
	uint64_t end, second;
	uint32_t job;
};

static void extend(struct latest *l, const struct hold *h)
{
	if (h->job == l->job) {
		l->end = h->end > l->end ? h->end : l->end;
	} else if (h->end > l->end) {
		l->second = l->end;
		*l = (struct latest){ h->end, l->second, h->job };
	} else if (h->end > l->second) {
		l->second = h->end;
	}
}

static uint64_t of_others(const struct latest *l, uint32_t job)
{
	return l->job == job ? l->second : l->end;
}

int nrp_lock_overlaps(struct nrp_lock_counts *counts, const struct nrp_lock_mm *mm)
{
	struct latest all = { 0, 0, NRP_LOCK_NO_JOB }, writers = all;
	struct hold *holds = calloc(2 * (size_t)mm->nr_jobs + 1, sizeof(*holds));
	size_t n;

	if (!holds)
		return -ENOMEM;
	n = collect(holds, mm);
	for (size_t i = 0; i < n; i++) {
		const struct hold *h = &holds[i];
		const struct nrp_lock_seen *s = &mm->seen[h->job];

		if (of_others(h->write ? &all : &writers, h->job) > h->start) {
			struct nrp_lock_impossible event = { h->start, mm->mm, s->tid,
							     NRP_LOCK_ODD_OVERLAP, s->lossy };

			nrp_lock_impossible_add(counts, &event);
		}
		extend(&all, h);
		if (h->write)
			extend(&writers, h);
	}
	free(holds);
	return 0;
}
