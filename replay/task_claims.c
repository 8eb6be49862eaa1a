/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of NUMA placement for a CPU: sched_move_numa and sched_swap_numa, done when the task
 * arrives (a swap: when both do), or given up with the task's next event.
 *
 * Placement runs inside a hinting fault's report and ends there: so the CPU was not chosen before
 * the task's event before the request, and it is free again before the task's event after the move.
 */
#include "replay/task_moves_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int reserve(struct nrp_claims *c)
{
	size_t room = c->room ? c->room * 2 : 256;
	struct nrp_claim_request *at;
	struct nrp_swap_state *swap;

	if (c->count < c->room)
		return 0;
	at = reallocarray(c->at, room, sizeof(*at));
	if (!at)
		return -ENOMEM;
	c->at = at;
	swap = reallocarray(c->swap, room, sizeof(*swap));
	if (!swap)
		return -ENOMEM;
	c->swap = swap;
	c->room = room;
	return 0;
}

int nrp_claims_request(struct nrp_claims *c, struct nrp_task *task,
		       const struct nrp_task_move *move, uint64_t first_time)
{
	uint64_t idle_from = task->idle_from ? task->idle_from : first_time;

	nrp_claims_event(c, task, move->time, move->time);
	if (reserve(c) < 0)
		return -ENOMEM;
	c->at[c->count] = (struct nrp_claim_request){
		.time = move->time,
		.done = UINT64_MAX,
		.earliest = idle_from < move->time ? idle_from : move->time,
		.latest = UINT64_MAX,
		.tid = move->tid,
		.dst_cpu = move->dst_cpu,
	};
	c->swap[c->count] = (struct nrp_swap_state){ .src_cpu = move->src_cpu };
	c->count++;
	task->open = c->count;
	return 0;
}

static void complete(struct nrp_claims *c, struct nrp_task *task, uint64_t time)
{
	c->at[task->open - 1].done = time;
	task->pending = task->open;
	task->open = 0;
}

void nrp_claims_event(struct nrp_claims *c, struct nrp_task *task, uint64_t time, uint64_t end)
{
	if (task->pending)
		c->at[task->pending - 1].latest = time;
	task->pending = 0;
	if (task->open) {
		complete(c, task, time);
		c->at[task->pending - 1].latest = time;
		task->pending = 0;
	}
	if (end > task->idle_from)
		task->idle_from = end;
}

/* The partner of a swap arrives, or goes elsewhere: the later of both arrivals ends the request. */
static void partner_moved(struct nrp_claims *c, struct nrp_task *task, uint64_t time, int cpu)
{
	size_t i = task->partner - 1;

	task->partner = 0;
	if (c->swap[i].src_cpu == cpu && c->swap[i].own_done && c->at[i].latest == UINT64_MAX)
		c->at[i].done = time;
}

void nrp_claims_moved(struct nrp_claims *c, struct nrp_task *task, uint64_t time, int cpu)
{
	size_t i = task->open - 1;

	if (task->partner)
		partner_moved(c, task, time, cpu);
	if (!task->open || c->at[i].dst_cpu != cpu) {
		nrp_claims_event(c, task, time, time);
		return;
	}
	complete(c, task, time);
	c->swap[i].own_done = true;
	if (time > task->idle_from)
		task->idle_from = time;
}

struct nrp_claim_count nrp_claims_finish(struct nrp_claims *c, uint64_t last_time)
{
	for (size_t i = 0; i < c->count; i++) {
		struct nrp_claim_request *r = &c->at[i];

		/* Never heard of again: it claims nothing for certain, and perhaps to the end. */
		if (r->done == UINT64_MAX)
			r->done = r->time;
		if (r->latest == UINT64_MAX)
			r->latest = last_time > r->done ? last_time : r->done;
	}
	return nrp_claim_run(c->at, c->count);
}

void nrp_claims_clear(struct nrp_claims *c)
{
	free(c->at);
	free(c->swap);
	memset(c, 0, sizeof(*c));
}
