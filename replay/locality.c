/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/locality.h"
#include "replay/pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Which time counts: while the address space has a thread on the node, or all of it. */
enum clock { PRESENCE, WALL, NR_CLOCKS };

/* Page-seconds of one VMA and node. */
struct exposure {
	double armed[NR_CLOCKS]; /* from arming to fault or end */
	double seen[NR_CLOCKS];  /* from first to last sight, wherever the page lies */
	double local[NR_CLOCKS]; /* of these, lying on the node */
};

struct vma {
	uint64_t start, end, flags;
	uint32_t mm;
	uint32_t leader; /* itself, or the VMA it was joined with */
	uint32_t address_spaces;
	double armed_pages; /* now */
	/* Faults since the clocks last changed: pages, and pages times fault time. */
	double pending_pages, pending_time;
	bool dirty;
	struct exposure *node; /* [nr_nodes] */
	uint64_t *touches;     /* [nr_nodes] */
	double *differs;       /* [nr_worlds][nr_nodes][NR_CLOCKS]: local here minus on record */
};

/* Touches and armed page-seconds of an address space, from all nodes. */
struct pool {
	double touches, seconds;
};

struct nrp_locality {
	int nr_nodes, nr_worlds;
	struct vma *vmas;
	uint32_t count, room;
	struct nrp_pages *numbers; /* keyed by (mm, start): number + 1 */
	uint32_t *dirty;           /* VMAs with pending faults */
	uint32_t nr_dirty;
	struct pool *pools; /* per address space, after the end */
};

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
		free(b->vmas[i].touches);
		free(b->vmas[i].differs);
	}
	free(b->vmas);
	free(b->dirty);
	free(b->pools);
	nrp_pages_free(b->numbers);
	free(b);
	return NULL;
}

/* ---- VMAs --------------------------------------------------------------------------- */

static bool reserve(struct nrp_locality *b)
{
	uint32_t room = b->room ? b->room * 2 : 64;
	struct vma *vmas;
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
	struct vma v = { .mm = mm, .start = start, .leader = b->count, .address_spaces = 1 };

	if (!reserve(b))
		return -ENOMEM;
	v.node = calloc((size_t)b->nr_nodes, sizeof(*v.node));
	v.touches = calloc((size_t)b->nr_nodes, sizeof(*v.touches));
	if (!v.node || !v.touches) {
		free(v.node);
		free(v.touches);
		return -ENOMEM;
	}
	b->vmas[b->count] = v;
	return b->count++;
}

int64_t nrp_locality_vma(struct nrp_locality *b, uint32_t mm, uint64_t start, uint64_t end,
			 uint64_t flags)
{
	uint64_t *number = nrp_pages_get(b->numbers, mm, start);
	struct vma *v;

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

static uint32_t leader_of(struct nrp_locality *b, uint32_t i)
{
	while (b->vmas[i].leader != i) {
		b->vmas[i].leader = b->vmas[b->vmas[i].leader].leader;
		i = b->vmas[i].leader;
	}
	return i;
}

void nrp_locality_join(struct nrp_locality *b, uint32_t x, uint32_t y)
{
	x = leader_of(b, x);
	y = leader_of(b, y);
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

/* ---- armed pages -------------------------------------------------------------------- */

static void settle_vma(struct vma *v, const struct nrp_presence *presence, int nr_nodes)
{
	double pages = v->pending_pages, time = v->pending_time;

	for (int n = 0; n < nr_nodes; n++) {
		const struct nrp_presence *p = &presence[n];

		v->node[n].armed[WALL] += time;
		v->node[n].armed[PRESENCE] +=
			p->threads ? pages * (p->seconds - p->since) + time : pages * p->seconds;
	}
	v->pending_pages = v->pending_time = 0;
	v->dirty = false;
}

void nrp_locality_settle(struct nrp_locality *b, uint32_t mm, const struct nrp_presence *presence)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->nr_dirty; i++) {
		struct vma *v = &b->vmas[b->dirty[i]];

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
	struct vma *v = &b->vmas[vma];

	v->armed_pages += pages;
	for (int n = 0; n < b->nr_nodes; n++) {
		v->node[n].armed[WALL] -= pages * now;
		v->node[n].armed[PRESENCE] -= pages * nrp_presence_at(&presence[n], now);
	}
}

void nrp_locality_touch(struct nrp_locality *b, uint32_t vma, double now, double pages, int nid)
{
	struct vma *v = &b->vmas[vma];

	v->touches[nid]++;
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

static void add(double *to, const struct nrp_presence *p, double now, double pages)
{
	to[WALL] += pages * now;
	to[PRESENCE] += pages * nrp_presence_at(p, now);
}

void nrp_locality_resident(struct nrp_locality *b, uint32_t vma,
			   const struct nrp_presence *presence, double now, double pages, int nid,
			   bool enters)
{
	add(b->vmas[vma].node[nid].local, &presence[nid], now, enters ? -pages : pages);
}

void nrp_locality_seen(struct nrp_locality *b, uint32_t vma, const struct nrp_presence *presence,
		       double now, double pages, bool enters)
{
	for (int n = 0; n < b->nr_nodes; n++)
		add(b->vmas[vma].node[n].seen, &presence[n], now, enters ? -pages : pages);
}

int nrp_locality_differs(struct nrp_locality *b, uint32_t vma, int world,
			 const struct nrp_presence *presence, double now, double pages, int nid,
			 int recorded, bool enters)
{
	struct vma *v = &b->vmas[vma];
	size_t size = (size_t)b->nr_worlds * (size_t)b->nr_nodes * NR_CLOCKS;
	double *d;

	if (!v->differs)
		v->differs = calloc(size, sizeof(*v->differs));
	if (!v->differs)
		return -ENOMEM;
	d = v->differs + (size_t)world * (size_t)b->nr_nodes * NR_CLOCKS;
	if (enters)
		pages = -pages;
	add(d + nid * NR_CLOCKS, &presence[nid], now, pages);
	add(d + recorded * NR_CLOCKS, &presence[recorded], now, -pages);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------ */

static void merge(struct nrp_locality *b, struct vma *to, const struct vma *from)
{
	for (int n = 0; n < b->nr_nodes; n++) {
		to->touches[n] += from->touches[n];
		for (int c = 0; c < NR_CLOCKS; c++) {
			to->node[n].armed[c] += from->node[n].armed[c];
			to->node[n].seen[c] += from->node[n].seen[c];
			to->node[n].local[c] += from->node[n].local[c];
		}
	}
}

static enum clock clock_of(const struct vma *v)
{
	return v->address_spaces > 1 ? WALL : PRESENCE;
}

/* Less than a page-millisecond of observation says nothing. */
#define LEAST_PAGE_SECONDS 1e-3

static void add_vma(const struct nrp_locality *b, const struct vma *v, struct pool *pool)
{
	for (int n = 0; n < b->nr_nodes; n++) {
		double s = v->node[n].armed[clock_of(v)];

		if (s <= LEAST_PAGE_SECONDS)
			continue;
		pool->touches += (double)v->touches[n];
		pool->seconds += s;
	}
}

int nrp_locality_finish(struct nrp_locality *b, struct nrp_address_spaces *spaces, double now)
{
	b->pools = calloc((size_t)nrp_nr_address_spaces(spaces) + 1, sizeof(*b->pools));
	if (!b->pools)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->count; i++) {
		struct vma *v = &b->vmas[i];
		const struct nrp_presence *p = nrp_address_space(spaces, v->mm)->presence;

		settle_vma(v, p, b->nr_nodes);
		/* What is still armed was not touched until the end. */
		nrp_locality_arm(b, i, p, now, -v->armed_pages);
	}
	b->nr_dirty = 0;
	/* Leaders come before those that follow them. */
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t leader = leader_of(b, i);

		if (leader != i)
			merge(b, &b->vmas[leader], &b->vmas[i]);
	}
	for (uint32_t i = 0; i < b->count; i++)
		if (b->vmas[i].leader == i)
			add_vma(b, &b->vmas[i], &b->pools[b->vmas[i].mm]);
	return 0;
}

/* ---- rates -------------------------------------------------------------------------- */

/* 95 % interval of a Poisson mean (Wilson and Hilferty's approximation of chi-square). */
static double poisson_lower(double k)
{
	double t = 1 - 1 / (9 * k) - 1.96 / (3 * sqrt(k));

	return k > 0 ? k * t * t * t : 0;
}

static double poisson_upper(double k)
{
	double m = k + 1, t = 1 - 1 / (9 * m) + 1.96 / (3 * sqrt(m));

	return m * t * t * t;
}

static void set_rate(struct nrp_touch_rate *r, double touches, double seconds)
{
	r->rate = touches / seconds;
	r->lower = poisson_lower(touches) / seconds;
	r->upper = poisson_upper(touches) / seconds;
}

/* The rate from all nodes: of the VMA, else of the address space. */
static bool borrow(const struct nrp_locality *b, const struct vma *v, struct nrp_touch_rate *r)
{
	struct pool pool = { 0 };

	add_vma(b, v, &pool);
	if (pool.seconds <= LEAST_PAGE_SECONDS)
		pool = b->pools[v->mm];
	if (pool.seconds <= LEAST_PAGE_SECONDS)
		return false;
	set_rate(r, pool.touches, pool.seconds);
	r->lower = 0;
	return true;
}

/* false: nobody knows. */
static bool rate_of(const struct nrp_locality *b, const struct vma *v, int n,
		    struct nrp_touch_rate *r)
{
	const struct exposure *e = &v->node[n];
	enum clock c = clock_of(v);

	r->vm_start = v->start;
	r->vm_end = v->end;
	r->mm = v->mm;
	r->address_spaces = v->address_spaces;
	r->nid = n;
	r->touches = v->touches[n];
	r->armed_page_seconds = e->armed[c] > 0 ? e->armed[c] : 0;
	r->remote_page_seconds = e->seen[c] - e->local[c];
	r->borrowed = r->armed_page_seconds <= LEAST_PAGE_SECONDS;
	r->rate = r->lower = r->upper = 0;
	if (r->borrowed)
		return borrow(b, v, r);
	set_rate(r, (double)r->touches, r->armed_page_seconds);
	return true;
}

bool nrp_locality_rate(const struct nrp_locality *b, size_t *position, struct nrp_touch_rate *ret)
{
	size_t nodes = (size_t)b->nr_nodes;

	for (; *position < b->count * nodes; ++*position) {
		const struct vma *v = &b->vmas[*position / nodes];
		struct nrp_touch_rate r;

		if (v->leader != *position / nodes)
			continue;
		if (!rate_of(b, v, (int)(*position % nodes), &r) && r.remote_page_seconds <= 0)
			continue;
		if (!r.touches && r.armed_page_seconds <= LEAST_PAGE_SECONDS &&
		    r.remote_page_seconds <= LEAST_PAGE_SECONDS)
			continue;
		++*position;
		*ret = r;
		return true;
	}
	return false;
}

/* ---- remote accesses ---------------------------------------------------------------- */

/* Local page-seconds in a world minus those on record, of a leader and all that follow it. */
static void differences(const struct nrp_locality *b, int world, double *sum)
{
	size_t nodes = (size_t)b->nr_nodes;

	for (uint32_t i = 0; i < b->count; i++) {
		const struct vma *v = &b->vmas[i];
		uint32_t leader = i;

		if (!v->differs)
			continue;
		while (b->vmas[leader].leader != leader)
			leader = b->vmas[leader].leader;
		for (size_t n = 0; n < nodes; n++)
			sum[leader * nodes + n] +=
				v->differs[((size_t)world * nodes + n) * NR_CLOCKS +
					   clock_of(&b->vmas[leader])];
	}
}

static void weigh(struct nrp_remote_accesses *ret, const struct nrp_touch_rate *r, double seconds)
{
	ret->value += r->rate * seconds;
	ret->lower += (seconds > 0 ? r->lower : r->upper) * seconds;
	ret->upper += (seconds > 0 ? r->upper : r->lower) * seconds;
	if (r->borrowed)
		ret->borrowed += fabs(seconds);
	else
		ret->covered += fabs(seconds);
}

static int sum_up(const struct nrp_locality *b, int world, bool avoided,
		  struct nrp_remote_accesses *ret)
{
	size_t nodes = (size_t)b->nr_nodes;
	double *sum = calloc(b->count * nodes + 1, sizeof(*sum));

	if (!sum)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	if (world >= 0)
		differences(b, world, sum);
	for (uint32_t i = 0; i < b->count; i++) {
		if (b->vmas[i].leader != i)
			continue;
		for (size_t n = 0; n < nodes; n++) {
			struct nrp_touch_rate r;
			double more = sum[i * nodes + n], seconds;
			bool known = rate_of(b, &b->vmas[i], (int)n, &r);

			seconds = avoided ? more : r.remote_page_seconds - more;
			if (known)
				weigh(ret, &r, seconds);
			else
				ret->uncovered += fabs(seconds);
		}
	}
	free(sum);
	return 0;
}

int nrp_locality_remote(const struct nrp_locality *b, int world, struct nrp_remote_accesses *ret)
{
	return sum_up(b, world, false, ret);
}

int nrp_locality_avoided(const struct nrp_locality *b, int world, struct nrp_remote_accesses *ret)
{
	return sum_up(b, world, true, ret);
}

void nrp_locality_total(const struct nrp_locality *b, uint64_t *ret_touches,
			double *ret_armed_page_seconds)
{
	double touches = 0, seconds = 0;

	for (uint32_t i = 0; i < b->count; i++)
		if (b->vmas[i].leader == i)
			for (int n = 0; n < b->nr_nodes; n++)
				touches += (double)b->vmas[i].touches[n];
	/* Every node watches an armed page: the largest share is the page's own time. */
	for (uint32_t i = 0; i < b->count; i++) {
		double most = 0;

		if (b->vmas[i].leader != i)
			continue;
		for (int n = 0; n < b->nr_nodes; n++)
			most = fmax(most, b->vmas[i].node[n].armed[WALL]);
		seconds += most;
	}
	*ret_touches = (uint64_t)touches;
	*ret_armed_page_seconds = seconds;
}
