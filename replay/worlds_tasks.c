/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where tasks run, and which node they would prefer: a task prefers the node with most of its
 * memory faults (its group's, in a group), halved at each pass of the scanner. A world that has
 * pages elsewhere gives other sums; where these could choose another node, what follows is not
 * known.
 */
#include "replay/pages.h"
#include "replay/worlds_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tasks -------------------------------------------------------------------------- */

static uint32_t new_task(struct nrp_worlds *w, int32_t tid)
{
	if (w->nr_tasks == w->room_tasks) {
		uint32_t room = w->room_tasks ? w->room_tasks * 2 : 64;
		struct nrp_task *grown = reallocarray(w->tasks, room, sizeof(*grown));

		if (!grown)
			return 0;
		w->tasks = grown;
		w->room_tasks = room;
	}
	w->tasks[w->nr_tasks++] = (struct nrp_task){ .tid = tid, .node = NRP_NOWHERE };
	return w->nr_tasks;
}

struct nrp_task *nrp_worlds_task(struct nrp_worlds *w, int32_t tid)
{
	uint32_t *cached = &w->task_cache[(uint32_t)tid & 255];
	uint64_t *number;

	if (*cached && w->tasks[*cached - 1].tid == tid)
		return &w->tasks[*cached - 1];
	number = nrp_pages_get(w->task_numbers, (uint32_t)tid, 0);
	if (!number)
		return NULL;
	if (!*number)
		*number = new_task(w, tid);
	if (!*number)
		return NULL;
	*cached = (uint32_t)*number;
	return &w->tasks[*number - 1];
}

/* ---- presence ----------------------------------------------------------------------- */

static void leave_node(struct nrp_worlds *w, const struct nrp_task *t, double now)
{
	struct nrp_mm *mm = nrp_address_space(w->spaces, t->mm - 1);
	struct nrp_presence *p = &mm->presence[t->node];

	if (p->threads == 1) {
		nrp_locality_settle(w->locality, t->mm - 1, mm->presence);
		p->seconds = nrp_presence_at(p, now);
	}
	p->threads--;
}

static void enter_node(struct nrp_worlds *w, const struct nrp_task *t, double now)
{
	struct nrp_mm *mm = nrp_address_space(w->spaces, t->mm - 1);
	struct nrp_presence *p = &mm->presence[t->node];

	mm->arrivals++;
	if (!p->threads) {
		nrp_locality_settle(w->locality, t->mm - 1, mm->presence);
		p->since = now;
	}
	p->threads++;
}

int nrp_worlds_task_seen(struct nrp_worlds *w, struct nrp_task *t, uint32_t mm, int nid,
			 uint64_t time)
{
	double now = nrp_worlds_seconds(w, time);

	if (t->alive && t->mm == mm + 1 && t->node == nid)
		return 0;
	if (t->alive)
		leave_node(w, t, now);
	t->mm = mm + 1;
	t->node = (int16_t)nid;
	t->alive = true;
	enter_node(w, t, now);
	return 0;
}

int nrp_worlds_task_move(struct nrp_worlds *w, const struct nrp_task_move *move)
{
	int nid = nrp_host_cpu_nid(w->facts, move->dst_cpu);
	struct nrp_task *t;

	if (move->kind != NRP_MOVE_MIGRATE || nid < 0 || nid >= w->nr_nodes)
		return 0;
	t = nrp_worlds_task(w, move->tid);
	if (!t)
		return -ENOMEM;
	return t->alive ? nrp_worlds_task_seen(w, t, t->mm - 1, nid, move->time) : 0;
}

int nrp_worlds_task_life(struct nrp_worlds *w, const struct nrp_task_life *life)
{
	struct nrp_task *t;

	/* After an exec the task is in a new address space, which its next fault names. */
	if (life->kind != NRP_LIFE_EXIT && life->kind != NRP_LIFE_EXEC)
		return 0;
	t = nrp_worlds_task(w, life->tid);
	if (!t)
		return -ENOMEM;
	if (t->alive)
		leave_node(w, t, nrp_worlds_seconds(w, life->time));
	t->alive = false;
	return 0;
}

void nrp_worlds_learn_task(struct nrp_task *task, const struct nrp_hint_fault *f)
{
	int32_t group;

	if (NRP_NULL(f, hint_fault, filter_delay) || NRP_NULL(f, hint_fault, scan_seq) ||
	    NRP_NULL(f, hint_fault, preferred_nid))
		return;
	task->known = true;
	task->scan_seq = f->scan_seq;
	task->preferred_nid = f->preferred_nid;
	task->grouped = !NRP_NULL(f, hint_fault, numa_group);
	group = NRP_NULL(f, hint_fault, group_id) ? 0 : f->group_id;
	if (group != task->group_id)
		task->preference = 0;
	task->group_id = group;
	if (NRP_NULL(f, hint_fault, group_cpu_src) || NRP_NULL(f, hint_fault, group_cpu_dst) ||
	    NRP_NULL(f, hint_fault, group_mem_src) || NRP_NULL(f, hint_fault, group_mem_dst) ||
	    f->src_nid == f->this_nid)
		return;
	task->weights_known = true;
	task->nid[0] = f->src_nid;
	task->nid[1] = f->this_nid;
	task->cpu[0] = f->group_cpu_src;
	task->cpu[1] = f->group_cpu_dst;
	task->mem[0] = f->group_mem_src;
	task->mem[1] = f->group_mem_dst;
}

/* ---- preferred nodes ---------------------------------------------------------------- */

static bool new_preference(struct nrp_worlds *w, struct nrp_preference *p)
{
	size_t nodes = (size_t)w->nr_nodes;

	*p = (struct nrp_preference){ .pages = calloc(nodes, sizeof(double)),
				      .differs = calloc(2 * nodes, sizeof(double)) };
	if (p->pages && p->differs)
		return true;
	free(p->pages);
	free(p->differs);
	return false;
}

static struct nrp_preference *preference_of(struct nrp_worlds *w, struct nrp_task *t)
{
	bool grouped = t->group_id > 0;
	uint64_t *number;

	if (t->preference)
		return &w->preferences[t->preference - 1];
	number = nrp_pages_get(w->preference_numbers, grouped,
			       (uint32_t)(grouped ? t->group_id : t->tid));
	if (!number)
		return NULL;
	if (!*number) {
		if (w->nr_preferences == w->room_preferences) {
			uint32_t room = w->room_preferences ? w->room_preferences * 2 : 64;
			struct nrp_preference *grown =
				reallocarray(w->preferences, room, sizeof(*grown));

			if (!grown)
				return NULL;
			w->preferences = grown;
			w->room_preferences = room;
		}
		if (!new_preference(w, &w->preferences[w->nr_preferences]))
			return NULL;
		*number = ++w->nr_preferences;
	}
	t->preference = (uint32_t)*number;
	return &w->preferences[*number - 1];
}

static void decay(const struct nrp_worlds *w, struct nrp_preference *p, uint64_t passes)
{
	double keep = ldexp(1, -(int)(passes - p->passes > 60 ? 60 : passes - p->passes));

	p->passes = passes;
	for (int n = 0; n < w->nr_nodes; n++)
		p->pages[n] *= keep;
	if (!p->apart)
		return;
	for (int n = 0; n < 2 * w->nr_nodes; n++)
		p->differs[n] *= keep;
	p->off[0] *= keep;
	p->off[1] *= keep;
}

static void add_difference(struct nrp_preference *p, int lane, double *at, double pages)
{
	p->off[lane] += fabs(*at + pages) - fabs(*at);
	*at += pages;
}

/* Could the lane's sums choose another node than the record's? */
static bool unsure(const struct nrp_worlds *w, const struct nrp_preference *p, int lane)
{
	double first = 0, second = 0;

	if (p->off[lane] <= 0.5)
		return false;
	for (int n = 0; n < w->nr_nodes; n++) {
		if (p->pages[n] > first) {
			second = first;
			first = p->pages[n];
		} else if (p->pages[n] > second) {
			second = p->pages[n];
		}
	}
	return first - second <= p->off[lane];
}

int nrp_worlds_prefer(struct nrp_worlds *w, const struct nrp_step *s, const int nid[2])
{
	struct nrp_preference *p = preference_of(w, s->task);
	double pages = (double)s->pages;

	if (!p)
		return -ENOMEM;
	if (p->passes != s->mm->passes)
		decay(w, p, s->mm->passes);
	p->pages[s->observed_nid] += pages;
	if (!p->apart && nid[0] == s->observed_nid && nid[1] == s->observed_nid)
		return 0;
	for (int lane = 0; lane < 2; lane++) {
		int central = w->first_of_lane[lane];
		double *d = p->differs + lane * w->nr_nodes;

		if (central < 0)
			continue;
		if (nid[lane] != s->observed_nid) {
			add_difference(p, lane, &d[nid[lane]], pages);
			add_difference(p, lane, &d[s->observed_nid], -pages);
			p->apart = true;
		}
		if (p->apart)
			w->world[central].result.unsure_preferred += unsure(w, p, lane);
	}
	return 0;
}
