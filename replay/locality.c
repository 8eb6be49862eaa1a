/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/locality_internal.h"
#include "replay/pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct nrp_locality *nrp_locality_new(int nr_nodes, int nr_worlds)
{
	struct nrp_locality *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->nr_nodes = nr_nodes;
	b->nr_worlds = nr_worlds;
	b->numbers = nrp_pages_new(sizeof(uint64_t));
	return b->numbers ? b : nrp_locality_free(b);
}

struct nrp_locality *nrp_locality_free(struct nrp_locality *b)
{
	if (!b)
		return NULL;
	for (uint32_t i = 0; i < b->count; i++) {
		free(b->vmas[i].node);
		free(b->vmas[i].differs);
		free(b->vmas[i].uncertain);
	}
	free(b->vmas);
	free(b->inhabited);
	free(b->dirty);
	free(b->pools);
	free(b->habits);
	nrp_pages_free(b->numbers);
	free(b);
	return NULL;
}

/* ---- VMAs --------------------------------------------------------------------------- */

static bool reserve(struct nrp_locality *b)
{
	uint32_t room = b->room ? b->room * 2 : 64;
	struct nrp_vma *vmas;
	uint32_t *dirty;

	if (b->count < b->room)
		return true;
	vmas = reallocarray(b->vmas, room, sizeof(*vmas));
	if (!vmas)
		return false;
	b->vmas = vmas;
	dirty = reallocarray(b->dirty, room, sizeof(*dirty));
	if (!dirty)
		return false;
	b->dirty = dirty;
	b->room = room;
	return true;
}

static int64_t new_vma(struct nrp_locality *b, uint32_t mm, uint64_t start)
{
	struct nrp_vma v = { .mm = mm, .start = start, .leader = b->count, .address_spaces = 1 };

	if (!reserve(b))
		return -ENOMEM;
	v.node = calloc((size_t)b->nr_nodes, sizeof(*v.node));
	if (!v.node)
		return -ENOMEM;
	b->vmas[b->count] = v;
	return b->count++;
}

int64_t nrp_locality_vma(struct nrp_locality *b, uint32_t mm, uint64_t start, uint64_t end,
			 uint64_t flags)
{
	uint64_t *number = nrp_pages_get(b->numbers, mm, start);
	struct nrp_vma *v;

	if (!number)
		return -ENOMEM;
	if (!*number) {
		int64_t new = new_vma(b, mm, start);

		if (new < 0)
			return new;
		*number = (uint64_t) new + 1;
	}
	v = &b->vmas[*number - 1];
	if (end > v->end)
		v->end = end;
	v->flags = flags;
	return (int64_t)*number - 1;
}

void nrp_locality_join(struct nrp_locality *b, uint32_t x, uint32_t y)
{
	x = nrp_locality_leader(b, x);
	y = nrp_locality_leader(b, y);
	if (x == y)
		return;
	if (y < x) {
		uint32_t swap = x;

		x = y;
		y = swap;
	}
	b->vmas[y].leader = x;
	b->vmas[x].address_spaces += b->vmas[y].address_spaces;
}

/* ---- armed entries ------------------------------------------------------------------ */

static void settle_vma(struct nrp_vma *v, const struct nrp_presence *presence, int nr_nodes)
{
	double pages = v->pending_pages, time = v->pending_time;

	v->armed += time;
	for (int n = 0; n < nr_nodes; n++) {
		const struct nrp_presence *p = &presence[n];

		v->node[n].watched +=
			p->threads ? pages * (p->seconds - p->since) + time : pages * p->seconds;
	}
	v->pending_pages = v->pending_time = 0;
	v->dirty = false;
}

void nrp_locality_settle(struct nrp_locality *b, uint32_t mm, const struct nrp_presence *presence)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->nr_dirty; i++) {
		struct nrp_vma *v = &b->vmas[b->dirty[i]];

		if (v->mm == mm)
			settle_vma(v, presence, b->nr_nodes);
		else
			b->dirty[kept++] = b->dirty[i];
	}
	b->nr_dirty = kept;
}

void nrp_locality_arm(struct nrp_locality *b, uint32_t vma, const struct nrp_presence *presence,
		      double now, double pages)
{
	struct nrp_vma *v = &b->vmas[vma];

	v->armed_pages += pages;
	v->armed -= pages * now;
	for (int n = 0; n < b->nr_nodes; n++)
		v->node[n].watched -= pages * nrp_presence_at(&presence[n], now);
}

void nrp_locality_touch(struct nrp_locality *b, uint32_t vma, double now, double pages, int nid,
			double armed)
{
	struct nrp_vma *v = &b->vmas[vma];

	v->node[nid].touches++;
	v->node[nid].armed += armed * pages;
	/* Armed before the capture: its time began before it, and none of it is known. */
	if (pages > v->armed_pages)
		pages = v->armed_pages;
	v->armed_pages -= pages;
	v->pending_pages += pages;
	v->pending_time += pages * now;
	if (!v->dirty) {
		v->dirty = true;
		b->dirty[b->nr_dirty++] = vma;
	}
}

/* ---- where pages lie ---------------------------------------------------------------- */

void nrp_locality_held(struct nrp_locality *b, uint32_t vma, int nid, double previous, double next,
		       bool last)
{
	struct nrp_exposure *e = &b->vmas[vma].node[nid];

	e->held[0] += previous;
	e->held[1] += next;
	e->tail += last ? previous : 0;
}

void nrp_locality_lie(struct nrp_locality *b, uint32_t vma, int nid, double pages, double now)
{
	b->vmas[vma].node[nid].lying += pages * now;
}

static struct nrp_world_exposure *differences_of(struct nrp_locality *b, uint32_t vma, int world)
{
	struct nrp_vma *v = &b->vmas[vma];
	size_t nodes = (size_t)b->nr_nodes;

	if (!v->differs)
		v->differs = calloc((size_t)b->nr_worlds * nodes, sizeof(*v->differs));
	return v->differs ? v->differs + (size_t)world * nodes : NULL;
}

int nrp_locality_held_differs(struct nrp_locality *b, uint32_t vma, int world, int nid,
			      double previous, double next, bool last)
{
	struct nrp_world_exposure *d = differences_of(b, vma, world);

	if (!d)
		return -ENOMEM;
	d[nid].held[0] += previous;
	d[nid].held[1] += next;
	d[nid].tail += last ? previous : 0;
	return 0;
}

int nrp_locality_lie_differs(struct nrp_locality *b, uint32_t vma, int world, int nid, int recorded,
			     double pages, double now)
{
	struct nrp_world_exposure *d = differences_of(b, vma, world);

	if (!d)
		return -ENOMEM;
	d[nid].lying += pages * now;
	d[recorded].lying -= pages * now;
	return 0;
}

int nrp_locality_uncertain(struct nrp_locality *b, uint32_t vma, int world, double squares)
{
	struct nrp_vma *v = &b->vmas[vma];

	if (!v->uncertain)
		v->uncertain = calloc((size_t)b->nr_worlds, sizeof(*v->uncertain));
	if (!v->uncertain)
		return -ENOMEM;
	v->uncertain[world] += squares;
	return 0;
}

void nrp_locality_fault(struct nrp_locality *b, uint32_t vma, int nid, int last)
{
	struct nrp_vma *v = &b->vmas[vma];

	v->node[nid].faults++;
	v->pairs += last >= 0;
	v->repeats += last == nid;
}

/* ---- the end ------------------------------------------------------------------------ */

static void merge(const struct nrp_locality *b, struct nrp_vma *to, const struct nrp_vma *from)
{
	to->armed += from->armed;
	for (int n = 0; n < b->nr_nodes; n++) {
		struct nrp_exposure *x = &to->node[n];
		const struct nrp_exposure *y = &from->node[n];

		x->armed += y->armed;
		x->watched += y->watched;
		x->held[0] += y->held[0];
		x->held[1] += y->held[1];
		x->tail += y->tail;
		x->lying += y->lying;
		x->touches += y->touches;
		x->faults += y->faults;
	}
	to->pairs += from->pairs;
	to->repeats += from->repeats;
}

/* Mean number of address spaces on each node, while they have threads at all. */
static void count_mappings(const struct nrp_locality *b, struct nrp_vma *leader,
			   const struct nrp_presence *presence, double now)
{
	double most = 0;

	for (int n = 0; n < b->nr_nodes; n++)
		most = fmax(most, nrp_presence_at(&presence[n], now));
	for (int n = 0; most > 0 && n < b->nr_nodes; n++)
		leader->node[n].mappings += nrp_presence_at(&presence[n], now) / most;
}

static void add_to_pool(struct nrp_touch_pool *pool, const struct nrp_touch_pool *from)
{
	pool->touches += from->touches;
	pool->seconds += from->seconds;
}

static void sum_up_vma(const struct nrp_locality *b, struct nrp_vma *v)
{
	for (int n = 0; n < b->nr_nodes; n++)
		v->ended += v->node[n].armed;
	for (int n = 0; n < b->nr_nodes; n++) {
		double s = nrp_vma_observed(v, n);

		if (s <= NRP_LEAST_PAGE_SECONDS)
			continue;
		v->pool.touches += (double)v->node[n].touches;
		v->pool.seconds += s;
	}
}

static void find_inhabited(struct nrp_locality *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		for (int n = 0; n < b->nr_nodes; n++) {
			const struct nrp_exposure *x = &b->vmas[i].node[n];

			b->inhabited[n] |= x->faults || x->lying > 0 || x->mappings > 0;
		}
	for (int n = 0; n < b->nr_nodes; n++)
		b->nr_inhabited += b->inhabited[n];
	if (!b->nr_inhabited)
		b->nr_inhabited = 1;
}

static double chance_of(const double *faults, int nr_nodes)
{
	double all = 0, squares = 0;

	for (int n = 0; n < nr_nodes; n++) {
		all += faults[n];
		squares += faults[n] * faults[n];
	}
	return all > 0 ? squares / (all * all) : 1;
}

static int find_habits(struct nrp_locality *b, struct nrp_address_spaces *spaces)
{
	uint32_t count = nrp_nr_address_spaces(spaces);
	size_t nodes = (size_t)b->nr_nodes;
	double *faults = calloc((size_t)count * nodes + 1, sizeof(*faults));

	b->habits = calloc((size_t)count + 1, sizeof(*b->habits));
	if (!faults || !b->habits) {
		free(faults);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < b->count; i++) {
		const struct nrp_vma *v = &b->vmas[i];

		b->habits[v->mm].pairs += v->pairs;
		b->habits[v->mm].repeats += v->repeats;
		for (size_t n = 0; n < nodes; n++)
			faults[v->mm * nodes + n] += (double)v->node[n].faults;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct nrp_mm *mm = nrp_address_space(spaces, i);

		b->habits[i].task_pairs = mm->task_pairs;
		b->habits[i].task_repeats = mm->task_repeats;
		b->habits[i].chance = chance_of(faults + i * nodes, b->nr_nodes);
	}
	free(faults);
	return 0;
}

int nrp_locality_finish(struct nrp_locality *b, struct nrp_address_spaces *spaces, double now)
{
	b->nr_pools = nrp_nr_address_spaces(spaces) + 1;
	b->pools = calloc(b->nr_pools, sizeof(*b->pools));
	b->inhabited = calloc((size_t)b->nr_nodes + 1, sizeof(*b->inhabited));
	if (!b->pools || !b->inhabited || find_habits(b, spaces) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->count; i++) {
		struct nrp_vma *v = &b->vmas[i], *leader = &b->vmas[nrp_locality_leader(b, i)];
		const struct nrp_presence *p = nrp_address_space(spaces, v->mm)->presence;

		settle_vma(v, p, b->nr_nodes);
		/* What is still armed was not touched until the end. */
		nrp_locality_arm(b, i, p, now, -v->armed_pages);
		count_mappings(b, leader, p, now);
	}
	b->nr_dirty = 0;
	for (uint32_t i = 0; i < b->count; i++)
		if (nrp_locality_leader(b, i) != i)
			merge(b, &b->vmas[nrp_locality_leader(b, i)], &b->vmas[i]);
	for (uint32_t i = 0; i < b->count; i++)
		if (b->vmas[i].leader == i) {
			struct nrp_vma *v = &b->vmas[i];

			sum_up_vma(b, v);
			add_to_pool(&b->pools[v->mm], &v->pool);
			add_to_pool(&b->pools[b->nr_pools - 1], &v->pool);
		}
	find_inhabited(b);
	return 0;
}
