/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task.claim: rq->numa_migrate_on, kernel/sched/fair.c; "sched/numa: Stop multiple tasks from
 * moving to the CPU at the same time" (4.19); spec migrate.md 3.4.
 *
 * A task that chooses a CPU takes its flag and gives it back after the move. A second one that
 * looks at the CPU meanwhile must choose another, or stay. The record shows requests, which come
 * after the choice: so what lies inside a request is a lower bound, and what could have met if
 * each choice was made as early and each flag given back as late as possible is an upper one.
 */
#include "replay/policies/task_claim.h"

#include <stdlib.h>

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_cpu_and_time(const void *x, const void *y)
{
	const struct nrp_claim_request *a = x, *b = y;
	int r = (a->dst_cpu > b->dst_cpu) - (a->dst_cpu < b->dst_cpu);

	if (!r)
		r = compare(a->time, b->time);
	if (!r)
		r = compare(a->done, b->done);
	return r ? r : (a->tid > b->tid) - (a->tid < b->tid);
}

static int by_cpu_and_earliest(const void *x, const void *y)
{
	const struct nrp_claim_request *a = x, *b = y;
	int r = (a->dst_cpu > b->dst_cpu) - (a->dst_cpu < b->dst_cpu);

	if (!r)
		r = compare(a->earliest, b->earliest);
	return r ? r : by_cpu_and_time(x, y);
}

/* The first request holds the CPU until it is done; one that is suppressed holds nothing. */
static uint64_t count_inside(struct nrp_claim_request *requests, size_t n)
{
	const struct nrp_claim_request *holder = NULL;
	uint64_t suppressed = 0;

	qsort(requests, n, sizeof(*requests), by_cpu_and_time);
	for (size_t i = 0; i < n; i++) {
		if (holder && holder->dst_cpu == requests[i].dst_cpu &&
		    requests[i].time <= holder->done)
			suppressed++;
		else
			holder = &requests[i];
	}
	return suppressed;
}

/* Of requests that hang together somebody is first; all others may have met a claim. */
static uint64_t count_possible(struct nrp_claim_request *requests, size_t n)
{
	uint64_t suppressed = 0, latest = 0;

	qsort(requests, n, sizeof(*requests), by_cpu_and_earliest);
	for (size_t i = 0; i < n; i++) {
		if (i && requests[i].dst_cpu == requests[i - 1].dst_cpu &&
		    requests[i].earliest <= latest) {
			suppressed++;
			if (requests[i].latest > latest)
				latest = requests[i].latest;
		} else {
			latest = requests[i].latest;
		}
	}
	return suppressed;
}

struct nrp_claim_count nrp_claim_run(struct nrp_claim_request *requests, size_t n)
{
	struct nrp_claim_count c = { .requests = n };

	if (!n)
		return c;
	c.suppressed_upper = count_possible(requests, n);
	c.suppressed_lower = count_inside(requests, n);
	return c;
}
