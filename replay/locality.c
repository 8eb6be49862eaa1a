/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/locality.h"
#include "replay/pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Page-seconds of one VMA and node. */
struct exposure {
	double armed;    /* of entries whose fault came from the node, since their newest range */
	double watched;  /* armed while the address space had a thread on the node */
	double held[2];  /* remote to a user on the node: held-previous, held-next */
	double tail;     /* of held-previous: after the last fault */
	double lying;    /* of pages that lie on the node */
	double mappings; /* address spaces with a thread on the node, mean over time (joined VMAs)
			  */
	uint64_t touches;
	uint64_t faults; /* touches, and faults on pages armed before the capture */
};

/* What a world has more of it. */
struct difference {
	double held[2], tail, lying;
};

/* Touches and armed page-seconds, from all nodes. */
struct pool {
	double touches, seconds;
};

struct vma {
	uint64_t start, end, flags;
	uint32_t mm;
	uint32_t leader; /* itself, or the VMA it was joined with */
	uint32_t address_spaces;
	double armed_pages; /* now */
	double armed;       /* page-seconds of all armed entries */
	/* Faults since the clocks last changed: pages, and pages times fault time. */
	double pending_pages, pending_time;
	bool dirty;
	uint64_t pairs, repeats;    /* faults on pages seen before; from the node of the last one */
	struct exposure *node;      /* [nr_nodes] */
	double *uncertain;          /* [nr_worlds] squares of page-seconds, NULL: none */
	struct difference *differs; /* [nr_worlds][nr_nodes], NULL: none */
	/* Of a leader, after the end: */
	double ended; /* page-seconds of entries whose fault came, from all nodes */
	struct pool pool;
};

/* How users of an address space persist. */
struct habit {
	uint64_t pairs, repeats;           /* of its pages */
	uint64_t task_pairs, task_repeats; /* of its tasks */
	double chance;                     /* that two faults come from one node */
};

struct nrp_locality {
	int nr_nodes, nr_worlds;
	bool *inhabited; /* [nr_nodes] by pages or threads, after the end: numbers may have holes */
	int nr_inhabited; /* of these, at least 1 */
	struct vma *vmas;
	uint32_t count, room;
	struct nrp_pages *numbers; /* keyed by (mm, start): number + 1 */
	uint32_t *dirty;           /* VMAs with pending faults */
	uint32_t nr_dirty;
	struct pool *pools; /* after the end: per address space, and of all in the last one */
	uint32_t nr_pools;
	struct habit *habits; /* per address space, after the end */
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
	if (!v.node)
		return -ENOMEM;
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

static uint32_t leader_of(const struct nrp_locality *b, uint32_t i)
{
	while (b->vmas[i].leader != i)
		i = b->vmas[i].leader;
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

/* ---- armed entries ------------------------------------------------------------------ */

static void settle_vma(struct vma *v, const struct nrp_presence *presence, int nr_nodes)
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
	v->armed -= pages * now;
	for (int n = 0; n < b->nr_nodes; n++)
		v->node[n].watched -= pages * nrp_presence_at(&presence[n], now);
}

void nrp_locality_touch(struct nrp_locality *b, uint32_t vma, double now, double pages, int nid,
			double armed)
{
	struct vma *v = &b->vmas[vma];

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
	struct exposure *e = &b->vmas[vma].node[nid];

	e->held[0] += previous;
	e->held[1] += next;
	e->tail += last ? previous : 0;
}

void nrp_locality_lie(struct nrp_locality *b, uint32_t vma, int nid, double pages, double now)
{
	b->vmas[vma].node[nid].lying += pages * now;
}

static struct difference *differences_of(struct nrp_locality *b, uint32_t vma, int world)
{
	struct vma *v = &b->vmas[vma];
	size_t nodes = (size_t)b->nr_nodes;

	if (!v->differs)
		v->differs = calloc((size_t)b->nr_worlds * nodes, sizeof(*v->differs));
	return v->differs ? v->differs + (size_t)world * nodes : NULL;
}

int nrp_locality_held_differs(struct nrp_locality *b, uint32_t vma, int world, int nid,
			      double previous, double next, bool last)
{
	struct difference *d = differences_of(b, vma, world);

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
	struct difference *d = differences_of(b, vma, world);

	if (!d)
		return -ENOMEM;
	d[nid].lying += pages * now;
	d[recorded].lying -= pages * now;
	return 0;
}

int nrp_locality_uncertain(struct nrp_locality *b, uint32_t vma, int world, double seconds)
{
	struct vma *v = &b->vmas[vma];

	if (!v->uncertain)
		v->uncertain = calloc((size_t)b->nr_worlds, sizeof(*v->uncertain));
	if (!v->uncertain)
		return -ENOMEM;
	v->uncertain[world] += seconds * seconds;
	return 0;
}

void nrp_locality_fault(struct nrp_locality *b, uint32_t vma, int nid, int last)
{
	struct vma *v = &b->vmas[vma];

	v->node[nid].faults++;
	v->pairs += last >= 0;
	v->repeats += last == nid;
}

/* ---- the end ------------------------------------------------------------------------ */

/* Less than a page-millisecond of observation says nothing. */
#define LEAST_PAGE_SECONDS 1e-3

/* Fewer pairs of faults say nothing of persistence. */
#define LEAST_PAIRS 20

static bool joined(const struct vma *v)
{
	return v->address_spaces > 1;
}

static void merge(const struct nrp_locality *b, struct vma *to, const struct vma *from)
{
	to->armed += from->armed;
	for (int n = 0; n < b->nr_nodes; n++) {
		struct exposure *x = &to->node[n];
		const struct exposure *y = &from->node[n];

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
static void count_mappings(const struct nrp_locality *b, struct vma *leader,
			   const struct nrp_presence *presence, double now)
{
	double most = 0;

	for (int n = 0; n < b->nr_nodes; n++)
		most = fmax(most, nrp_presence_at(&presence[n], now));
	for (int n = 0; most > 0 && n < b->nr_nodes; n++)
		leader->node[n].mappings += nrp_presence_at(&presence[n], now) / most;
}

/*
 * Seconds of observation from a node. Of one address space: those that its faults ended, plus their
 * share of those that no fault ended.
 */
static double observed(const struct vma *v, int n)
{
	if (joined(v))
		return v->node[n].watched;
	if (v->ended <= 0)
		return 0;
	return v->node[n].armed * fmax(1, v->armed / v->ended);
}

static void add_to_pool(struct pool *pool, const struct pool *from)
{
	pool->touches += from->touches;
	pool->seconds += from->seconds;
}

static void sum_up_vma(const struct nrp_locality *b, struct vma *v)
{
	for (int n = 0; n < b->nr_nodes; n++)
		v->ended += v->node[n].armed;
	for (int n = 0; n < b->nr_nodes; n++) {
		double s = observed(v, n);

		if (s <= LEAST_PAGE_SECONDS)
			continue;
		v->pool.touches += (double)v->node[n].touches;
		v->pool.seconds += s;
	}
}

static void find_inhabited(struct nrp_locality *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		for (int n = 0; n < b->nr_nodes; n++) {
			const struct exposure *x = &b->vmas[i].node[n];

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
		const struct vma *v = &b->vmas[i];

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
		struct vma *v = &b->vmas[i], *leader = &b->vmas[leader_of(b, i)];
		const struct nrp_presence *p = nrp_address_space(spaces, v->mm)->presence;

		settle_vma(v, p, b->nr_nodes);
		/* What is still armed was not touched until the end. */
		nrp_locality_arm(b, i, p, now, -v->armed_pages);
		count_mappings(b, leader, p, now);
	}
	b->nr_dirty = 0;
	for (uint32_t i = 0; i < b->count; i++)
		if (leader_of(b, i) != i)
			merge(b, &b->vmas[leader_of(b, i)], &b->vmas[i]);
	for (uint32_t i = 0; i < b->count; i++)
		if (b->vmas[i].leader == i) {
			struct vma *v = &b->vmas[i];

			sum_up_vma(b, v);
			add_to_pool(&b->pools[v->mm], &v->pool);
			add_to_pool(&b->pools[b->nr_pools - 1], &v->pool);
		}
	find_inhabited(b);
	return 0;
}

/* ---- rates -------------------------------------------------------------------------- */

/* 95 % interval of a Poisson mean (Wilson and Hilferty's approximation of chi-square). */
static double poisson_lower(double k)
{
	double t = 1 - 1 / (9 * k) - 1.96 / (3 * sqrt(k));

	return k > 0 && t > 0 ? k * t * t * t : 0;
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

/* The rate from all nodes: of the VMA, else of the address space, else of the host. */
static bool borrow(const struct nrp_locality *b, const struct vma *v, struct nrp_touch_rate *r)
{
	struct pool pool = v->pool;

	if (pool.seconds <= LEAST_PAGE_SECONDS)
		pool = b->pools[v->mm];
	if (pool.seconds <= LEAST_PAGE_SECONDS)
		pool = b->pools[b->nr_pools - 1];
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
	*r = (struct nrp_touch_rate){ .mm = v->mm,
				      .vm_start = v->start,
				      .vm_end = v->end,
				      .address_spaces = v->address_spaces,
				      .nid = n,
				      .touches = v->node[n].touches,
				      .armed_page_seconds = observed(v, n) };
	r->borrowed = r->armed_page_seconds <= LEAST_PAGE_SECONDS;
	if (r->borrowed)
		return borrow(b, v, r);
	set_rate(r, (double)r->touches, r->armed_page_seconds);
	return true;
}

double nrp_locality_space_rate(const struct nrp_locality *b, int64_t space, double *ret_upper)
{
	struct pool pool = { 0 };
	struct nrp_touch_rate r;

	*ret_upper = 0;
	if (space >= 0 && space < (int64_t)b->nr_pools - 1)
		pool = b->pools[space];
	if (pool.seconds <= LEAST_PAGE_SECONDS)
		pool = b->pools[b->nr_pools - 1];
	if (pool.seconds <= LEAST_PAGE_SECONDS)
		return 0;
	set_rate(&r, pool.touches, pool.seconds);
	*ret_upper = r.upper;
	return r.rate;
}

/* ---- remote pages ------------------------------------------------------------------- */

/*
 * Pages of several address spaces are remote to all of these on node @n while they lie elsewhere.
 * @lying: page-seconds on each node.
 */
static double elsewhere(const struct nrp_locality *b, const struct vma *v, const double *lying,
			int n)
{
	double sum = 0;

	for (int k = 0; k < b->nr_nodes; k++)
		sum += k != n ? lying[k] : 0;
	return sum * v->node[n].mappings;
}

/* Share of a VMA's faults that come from node @n. */
static double share_of(const struct nrp_locality *b, const struct vma *v, int n)
{
	double all = 0;

	for (int k = 0; k < b->nr_nodes; k++)
		all += (double)v->node[k].faults;
	return all > 0 ? (double)v->node[n].faults / all : 0;
}

/* Share of repeats above @chance; 1 where there is one user only. */
static double above_chance(uint64_t repeats, uint64_t pairs, double chance)
{
	if (chance > 0.999)
		return 1;
	return fmin(fmax(((double)repeats / (double)pairs - chance) / (1 - chance), 0), 1);
}

/*
 * How far the last user of a page is its present one: 1 always, 0 no more than by chance. By the
 * VMA's pages; where these are too few, by those of its address space, else by its tasks.
 */
static double persistence(const struct nrp_locality *b, const struct vma *v)
{
	const struct habit *h = &b->habits[v->mm];
	double chance = 0;

	for (int n = 0; n < b->nr_nodes; n++)
		chance += share_of(b, v, n) * share_of(b, v, n);
	if (v->pairs >= LEAST_PAIRS)
		return above_chance(v->repeats, v->pairs, chance);
	if (h->pairs >= LEAST_PAIRS)
		return above_chance(h->repeats, h->pairs, h->chance);
	if (h->task_pairs >= LEAST_PAIRS)
		return above_chance(h->task_repeats, h->task_pairs, h->chance);
	return 1;
}

/* Page-seconds remote to users on @n, if these are the VMA's mix of users. */
static double mixed(const struct nrp_locality *b, const struct vma *v, const double *lying, int n)
{
	double sum = 0;

	for (int k = 0; k < b->nr_nodes; k++)
		sum += k != n ? lying[k] : 0;
	return sum * share_of(b, v, n);
}

/* What a world has more than the record, for every leader and node: [count][nr_nodes]. */
static struct difference *sum_differences(const struct nrp_locality *b, int world)
{
	size_t nodes = (size_t)b->nr_nodes;
	struct difference *sum = calloc(b->count * nodes + 1, sizeof(*sum));

	for (uint32_t i = 0; sum && world >= 0 && i < b->count; i++) {
		struct difference *to = sum + leader_of(b, i) * nodes;
		const struct difference *d = b->vmas[i].differs;

		if (!d)
			continue;
		d += (size_t)world * nodes;
		for (size_t n = 0; n < nodes; n++) {
			to[n].held[0] += d[n].held[0];
			to[n].held[1] += d[n].held[1];
			to[n].tail += d[n].tail;
			to[n].lying += d[n].lying;
		}
	}
	return sum;
}

/*
 * Of one node: what remote page-time of joined VMAs may be off by, if the address spaces that are
 * known to map them were on any nodes. @whole: of all page-time; else of page-time that lies
 * elsewhere on one side of a difference.
 */
static double doubt(const struct nrp_locality *b, const struct vma *v, const double *lying,
		    bool whole)
{
	double mappings = 0, seconds = 0;

	for (int n = 0; n < b->nr_nodes; n++) {
		mappings += v->node[n].mappings;
		seconds += fabs(lying[n]);
	}
	return mappings * seconds / (whole ? 1 : 2) / b->nr_inhabited;
}

/* Page-seconds of one leader and node: the estimate, and both holds. */
struct remote_time {
	double value, held[2];
	double mixed; /* of value: by the mix of users, who touch pages at one rate */
};

static void add_time(struct nrp_page_time *t, const struct remote_time *r, double rate, double low,
		     double high)
{
	double least = fmin(r->value, fmin(r->held[0], r->held[1]));
	double most = fmax(r->value, fmax(r->held[0], r->held[1]));

	t->value += rate * r->value;
	t->lower += (least > 0 ? low : high) * least;
	t->upper += (most > 0 ? high : low) * most;
}

/* Of a VMA from all nodes; @missing if nobody knows. */
static double mean_rate(const struct vma *v, double missing)
{
	return v->pool.seconds > LEAST_PAGE_SECONDS ? v->pool.touches / v->pool.seconds : missing;
}

static double add_remote(const struct nrp_locality *b, const struct vma *v, int n,
			 const struct remote_time *t, struct nrp_remote *ret)
{
	struct nrp_touch_rate r;
	double seconds = joined(v) ? fabs(t->value)
				   : fmax(fabs(t->value), fmax(fabs(t->held[0]), fabs(t->held[1])));
	bool known = rate_of(b, v, n, &r);

	add_time(&ret->residency, t, 1, 1, 1);
	ret->shared += joined(v) ? seconds : 0;
	if (known)
		add_time(&ret->accesses, t, r.rate, r.lower, r.upper);
	if (known && t->mixed != 0)
		ret->accesses.value += (mean_rate(v, r.rate) - r.rate) * t->mixed;
	*(!known ? &ret->uncovered : r.borrowed ? &ret->borrowed : &ret->covered) += seconds;
	return known ? r.upper : 0;
}

static void widen(struct nrp_page_time *t, double variance)
{
	double error = 1.96 * sqrt(variance);

	t->lower -= error;
	t->upper += error;
}

/* All nodes of one leader; returns the largest rate. */
static double add_leader(const struct nrp_locality *b, const struct vma *v,
			 const struct difference *d, double record, double other,
			 const double *lying, struct nrp_remote *ret)
{
	double keep = persistence(b, v), fastest = 0;

	for (int n = 0; n < b->nr_nodes; n++) {
		struct remote_time t = { 0 };

		if (joined(v)) {
			/* Who else maps the pages, and where, is known from below only. */
			double open = b->inhabited[n] ? doubt(b, v, lying, record > 0) : 0;

			t.value = elsewhere(b, v, lying, n);
			t.held[0] = record > 0 ? 0 : t.value - open;
			t.held[1] = t.value + open;
		} else {
			for (int h = 0; h < 2; h++)
				t.held[h] = record * v->node[n].held[h] + other * d[n].held[h];
			t.held[1] += keep * (record * v->node[n].tail + other * d[n].tail);
			t.mixed = (1 - keep) * mixed(b, v, lying, n);
			t.value = keep * t.held[0] + t.mixed;
		}
		if (t.value != 0 || t.held[0] != 0 || t.held[1] != 0)
			fastest = fmax(fastest, add_remote(b, v, n, &t, ret));
	}
	return fastest;
}

/* @record times what is on record plus @other times what the world has more. */
static int sum_up(const struct nrp_locality *b, int world, double record, double other,
		  struct nrp_remote *ret)
{
	size_t nodes = (size_t)b->nr_nodes;
	struct difference *all = sum_differences(b, world);
	double *lying = calloc(nodes, sizeof(*lying)),
	       *fastest = calloc(b->count + 1, sizeof(double));
	double variance[2] = { 0, 0 };
	int r = all && lying && fastest ? 0 : -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; r == 0 && i < b->count; i++) {
		const struct vma *v = &b->vmas[i];
		const struct difference *d = all + i * nodes;

		if (v->leader != i)
			continue;
		for (size_t n = 0; n < nodes; n++)
			lying[n] = record * v->node[n].lying + other * d[n].lying;
		fastest[i] = add_leader(b, v, d, record, other, lying, ret);
	}
	for (uint32_t i = 0; r == 0 && world >= 0 && i < b->count; i++) {
		const struct vma *v = &b->vmas[i];
		double rate = fastest[leader_of(b, i)];

		if (!v->uncertain)
			continue;
		variance[0] += v->uncertain[world];
		variance[1] += v->uncertain[world] * rate * rate;
	}
	widen(&ret->residency, variance[0]);
	widen(&ret->accesses, variance[1]);
	free(all);
	free(lying);
	free(fastest);
	return r;
}

int nrp_locality_remote(const struct nrp_locality *b, int world, struct nrp_remote *ret)
{
	int r = sum_up(b, world, 1, 1, ret);

	ret->residency.lower = fmax(ret->residency.lower, 0);
	ret->accesses.lower = fmax(ret->accesses.lower, 0);
	return r;
}

int nrp_locality_avoided(const struct nrp_locality *b, int world, struct nrp_remote *ret)
{
	return sum_up(b, world, 0, -1, ret);
}

bool nrp_locality_rate(const struct nrp_locality *b, size_t *position, struct nrp_touch_rate *ret)
{
	size_t nodes = (size_t)b->nr_nodes;

	for (; *position < b->count * nodes; ++*position) {
		const struct vma *v = &b->vmas[*position / nodes];
		int n = (int)(*position % nodes);
		struct nrp_touch_rate r;

		if (v->leader != *position / nodes)
			continue;
		rate_of(b, v, n, &r);
		r.remote_page_seconds = v->node[n].held[0];
		if (joined(v)) {
			r.remote_page_seconds = 0;
			for (int k = 0; k < b->nr_nodes; k++)
				r.remote_page_seconds +=
					k != n ? v->node[k].lying * v->node[n].mappings : 0;
		}
		if (!r.touches && r.armed_page_seconds <= LEAST_PAGE_SECONDS &&
		    r.remote_page_seconds <= LEAST_PAGE_SECONDS)
			continue;
		++*position;
		*ret = r;
		return true;
	}
	return false;
}
