/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that may share pages, and the scans that armed them. */
#include "replay/scan_pte_internal.h"
#include "replay/cells.h"
#include "replay/host.h"
#include "replay/scan_trace.h"

#include <errno.h>
#include <stdlib.h>

/* ---- families ----------------------------------------------------------------------- */

/* 0: out of memory. */
static uint32_t new_family(struct nrp_scan_pte_lane *l, bool complete)
{
	if (l->nr_families >= l->family_room) {
		uint32_t room = l->family_room ? l->family_room * 2 : 64;
		struct nrp_pte_family *grown;

		if (room <= l->family_room)
			return 0;
		grown = reallocarray(l->family, room, sizeof(*grown));
		if (!grown)
			return 0;
		l->family = grown;
		l->family_room = room;
	}
	l->family[l->nr_families] = (struct nrp_pte_family){ .complete = complete };
	return l->nr_families++;
}

static int join(struct nrp_scan_pte_lane *l, struct nrp_pte_task *t, uint32_t family, bool complete)
{
	if (!family)
		family = new_family(l, complete);
	if (!family)
		return -ENOMEM;
	t->family = family;
	t->gone = false;
	l->family[family].live++;
	return 0;
}

/* A task exits, or leaves its address space by an exec. */
static int leave(struct nrp_scan_pte_lane *l, struct nrp_pte_task *t, uint64_t time)
{
	struct nrp_pte_family *f;
	struct nrp_pte_mm *m;

	if (!t->family || t->gone)
		return 0;
	f = &l->family[t->family];
	f->live--;
	if (!t->mm)
		t->mm = f->alone_mm;
	else if (t->mm != f->alone_mm)
		f->alone_mm = 0;
	if (f->left[0].mm != t->mm || !f->left[0].time)
		f->left[1] = f->left[0];
	f->left[0].mm = t->mm;
	f->left[0].time = time;
	if (t->mm) {
		m = nrp_pages_get(l->mms, t->mm, 0);
		if (!m)
			return -ENOMEM;
		if (m->family == t->family && m->live && !--m->live)
			m->left = time;
	} else {
		f->stranger_left = time;
	}
	t->gone = true;
	return 0;
}

struct nrp_pte_task *nrp_scan_pte_task(struct nrp_scan_pte_lane *l, int32_t tid)
{
	return nrp_pages_get(l->tasks, (uint32_t)tid, 0);
}

static int see_fork(struct nrp_scan_pte_lane *l, const struct nrp_task_life *life)
{
	struct nrp_pte_task *t = nrp_scan_pte_task(l, life->tid);
	uint64_t parent_mm;
	uint32_t family;
	int r = 0;

	if (!t)
		return -ENOMEM;
	if (!t->family || t->gone) {
		*t = (struct nrp_pte_task){ 0 };
		r = join(l, t, 0, false);
		if (r < 0)
			return r;
	}
	family = t->family;
	parent_mm = t->mm;
	l->family[family].last_fork = life->time;
	l->family[family].alone_mm = 0;
	if (!l->family[family].complete)
		l->stranger_fork = life->time;
	t = nrp_scan_pte_task(l, life->child_tid);
	if (!t)
		return -ENOMEM;
	r = leave(l, t, life->time); /* the number is used again */
	if (r < 0)
		return r;
	*t = (struct nrp_pte_task){ .parent_mm = parent_mm, .born = life->time };
	return join(l, t, family, false);
}

static int see_exec(struct nrp_scan_pte_lane *l, const struct nrp_task_life *life)
{
	struct nrp_pte_task *t = nrp_scan_pte_task(l, life->tid);
	int r = t ? leave(l, t, life->time) : -ENOMEM;

	if (r < 0)
		return r;
	*t = (struct nrp_pte_task){ .born = life->time };
	return join(l, t, 0, true);
}

int nrp_scan_pte_lane_life(struct nrp_scan_pte_lane *l, const struct nrp_task_life *life)
{
	struct nrp_pte_task *t;

	if (life->kind == NRP_LIFE_FORK)
		return NRP_NULL(life, task_life, child_tid) ? 0 : see_fork(l, life);
	if (life->kind == NRP_LIFE_EXEC)
		return see_exec(l, life);
	t = nrp_scan_pte_task(l, life->tid);
	return t ? leave(l, t, life->time) : -ENOMEM;
}

static void add_member(struct nrp_pte_family *f, uint64_t mm)
{
	for (uint32_t i = 0; i < f->nr_members && i < NRP_PTE_MEMBERS; i++)
		if (f->member[i] == mm)
			return;
	if (f->nr_members < NRP_PTE_MEMBERS)
		f->member[f->nr_members] = mm;
	if (f->nr_members <= NRP_PTE_MEMBERS)
		f->nr_members++;
}

/* A task was seen in an address space. */
int nrp_scan_pte_live_in(struct nrp_scan_pte_lane *l, int32_t tid, uint64_t mm)
{
	struct nrp_pte_mm *m = nrp_pages_get(l->mms, mm, 0);
	struct nrp_pte_task *t = nrp_scan_pte_task(l, tid);
	int r;

	if (!m || !t)
		return -ENOMEM;
	if (!t->family || t->gone) {
		*t = (struct nrp_pte_task){ 0 };
		r = join(l, t, m->live ? m->family : 0, false);
		if (r < 0)
			return r;
	}
	if (t->mm == mm)
		return 0;
	t->mm = mm;
	if (!m->family || m->family != t->family || !m->live)
		*m = (struct nrp_pte_mm){
			.family = t->family, .parent_mm = t->parent_mm, .born = t->born, .users = -1
		};
	m->live++;
	add_member(&l->family[t->family], mm);
	return 0;
}

/* ---- scans -------------------------------------------------------------------------- */

struct nrp_pte_cell *nrp_scan_pte_cell(struct nrp_scan_pte_lane *l, uint64_t mm, uint64_t vm_start,
				       uint64_t addr)
{
	return nrp_pages_get(l->cells, mm, nrp_cell_of(l->huge_size, vm_start, addr));
}

int nrp_scan_pte_lane_pass(struct nrp_scan_pte_lane *l, const struct nrp_scan_pass *p)
{
	int r = nrp_scan_pte_live_in(l, p->tid, p->mm);
	struct nrp_pte_family *f;
	struct nrp_pte_mm *m;

	if (r < 0)
		return r;
	m = nrp_pages_get(l->mms, p->mm, 0);
	if (!m)
		return -ENOMEM;
	m->users = NRP_NULL(p, scan_pass, mm_users) ? -1 : p->mm_users;
	f = &l->family[m->family];
	if (!NRP_NULL(p, scan_pass, nr_threads) && p->nr_threads > 0 &&
	    (uint32_t)p->nr_threads == f->live)
		f->alone_mm = p->mm;
	return 0;
}

/* Scans from before the address space was born belong to another one at the same pointer. */
void nrp_scan_pte_forget_old(struct nrp_pte_cell *c, const struct nrp_pte_mm *m)
{
	if (c->armed && c->armed < m->born)
		*c = (struct nrp_pte_cell){ 0 };
}

/* When the last fork that may concern this address space was. */
uint64_t nrp_scan_pte_last_fork(const struct nrp_scan_pte_lane *l, const struct nrp_pte_mm *m)
{
	const struct nrp_pte_family *f = &l->family[m->family];

	if (!f->complete && l->stranger_fork > f->last_fork)
		return l->stranger_fork;
	return f->last_fork;
}

int nrp_scan_pte_lane_range(struct nrp_scan_pte_lane *l, const struct nrp_scan_range *g)
{
	uint64_t vm_start = NRP_NULL(g, scan_range, vm_start) ? 0 : g->vm_start, fork;
	const struct nrp_pte_mm *m;

	if (NRP_NULL(g, scan_range, mm) || g->start >= g->end ||
	    g->end - g->start > NRP_MAX_SCAN_RANGE)
		return 0;
	m = nrp_pages_get(l->mms, g->mm, 0);
	if (!m)
		return -ENOMEM;
	fork = m->family ? nrp_scan_pte_last_fork(l, m) : 0;
	for (uint64_t at = g->start; at < g->end; at = nrp_cell_next(l->huge_size, at)) {
		struct nrp_pte_cell *c = nrp_scan_pte_cell(l, g->mm, vm_start, at);

		if (!c)
			return -ENOMEM;
		nrp_scan_pte_forget_old(c, m);
		if (c->fork != fork) {
			c->fork = fork;
			c->before_fork = c->armed;
		}
		c->armed = g->time;
		c->single_threaded = m->users < 0 ? NRP_KNOWN_NOT : nrp_known_of(m->users == 1);
		c->nid = (int16_t)nrp_host_cpu_nid(l->facts, (int)g->cpu);
	}
	return 0;
}
