/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a finished locality book says: touch rates, and remote pages with their bounds. */
#include "replay/locality_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static bool borrow(const struct nrp_locality *b, const struct nrp_vma *v, struct nrp_touch_rate *r)
{
	struct nrp_touch_pool pool = v->pool;

	if (pool.seconds <= NRP_LEAST_PAGE_SECONDS)
		pool = b->pools[v->mm];
	if (pool.seconds <= NRP_LEAST_PAGE_SECONDS)
		pool = b->pools[b->nr_pools - 1];
	if (pool.seconds <= NRP_LEAST_PAGE_SECONDS)
		return false;
	set_rate(r, pool.touches, pool.seconds);
	r->lower = 0;
	return true;
}

/* false: nobody knows. */
static bool rate_of(const struct nrp_locality *b, const struct nrp_vma *v, int n,
		    struct nrp_touch_rate *r)
{
	*r = (struct nrp_touch_rate){ .mm = v->mm,
				      .vm_start = v->start,
				      .vm_end = v->end,
				      .address_spaces = v->address_spaces,
				      .nid = n,
				      .touches = v->node[n].touches,
				      .armed_page_seconds = nrp_vma_observed(v, n) };
	r->borrowed = r->armed_page_seconds <= NRP_LEAST_PAGE_SECONDS;
	if (r->borrowed)
		return borrow(b, v, r);
	set_rate(r, (double)r->touches, r->armed_page_seconds);
	return true;
}

double nrp_locality_space_rate(const struct nrp_locality *b, int64_t space, double *ret_upper)
{
	struct nrp_touch_pool pool = { 0 };
	struct nrp_touch_rate r;

	*ret_upper = 0;
	if (space >= 0 && space < (int64_t)b->nr_pools - 1)
		pool = b->pools[space];
	if (pool.seconds <= NRP_LEAST_PAGE_SECONDS)
		pool = b->pools[b->nr_pools - 1];
	if (pool.seconds <= NRP_LEAST_PAGE_SECONDS)
		return 0;
	set_rate(&r, pool.touches, pool.seconds);
	*ret_upper = r.upper;
	return r.rate;
}

/* ---- remote pages ------------------------------------------------------------------- */

/* Page-seconds on other nodes than @n. @lying: page-seconds on each node. */
static double elsewhere(const struct nrp_locality *b, const double *lying, int n)
{
	double sum = 0;

	for (int k = 0; k < b->nr_nodes; k++)
		sum += k != n ? lying[k] : 0;
	return sum;
}

/* Share of a VMA's faults that come from node @n. */
static double share_of(const struct nrp_locality *b, const struct nrp_vma *v, int n)
{
	double all = 0;

	for (int k = 0; k < b->nr_nodes; k++)
		all += (double)v->node[k].faults;
	return all > 0 ? (double)v->node[n].faults / all : 0;
}

/* Fewer pairs of faults say nothing of persistence. */
#define LEAST_PAIRS 20

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
static double persistence(const struct nrp_locality *b, const struct nrp_vma *v)
{
	const struct nrp_habit *h = &b->habits[v->mm];
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

/* What a world has more than the record, for every leader and node: [count][nr_nodes]. */
static struct nrp_world_exposure *sum_differences(const struct nrp_locality *b, int world)
{
	size_t nodes = (size_t)b->nr_nodes;
	struct nrp_world_exposure *sum = calloc(b->count * nodes + 1, sizeof(*sum));

	for (uint32_t i = 0; sum && world >= 0 && i < b->count; i++) {
		struct nrp_world_exposure *to = sum + nrp_locality_leader(b, i) * nodes;
		const struct nrp_world_exposure *d = b->vmas[i].differs;

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
static double doubt(const struct nrp_locality *b, const struct nrp_vma *v, const double *lying,
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
static double mean_rate(const struct nrp_vma *v, double missing)
{
	return v->pool.seconds > NRP_LEAST_PAGE_SECONDS ? v->pool.touches / v->pool.seconds
							: missing;
}

static double add_remote(const struct nrp_locality *b, const struct nrp_vma *v, int n,
			 const struct remote_time *t, struct nrp_remote *ret)
{
	struct nrp_touch_rate r;
	double seconds = nrp_vma_joined(v)
				 ? fabs(t->value)
				 : fmax(fabs(t->value), fmax(fabs(t->held[0]), fabs(t->held[1])));
	bool known = rate_of(b, v, n, &r);

	add_time(&ret->residency, t, 1, 1, 1);
	ret->shared += nrp_vma_joined(v) ? seconds : 0;
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
static double add_leader(const struct nrp_locality *b, const struct nrp_vma *v,
			 const struct nrp_world_exposure *d, double record, double other,
			 const double *lying, struct nrp_remote *ret)
{
	double keep = persistence(b, v), fastest = 0;

	for (int n = 0; n < b->nr_nodes; n++) {
		struct remote_time t = { 0 };

		if (nrp_vma_joined(v)) {
			/*
			 * Remote to all address spaces on the node; who else maps the pages, and
			 * where, is known from below only.
			 */
			double open = b->inhabited[n] ? doubt(b, v, lying, record > 0) : 0;

			t.value = elsewhere(b, lying, n) * v->node[n].mappings;
			t.held[0] = record > 0 ? 0 : t.value - open;
			t.held[1] = t.value + open;
		} else {
			for (int h = 0; h < 2; h++)
				t.held[h] = record * v->node[n].held[h] + other * d[n].held[h];
			t.held[1] += keep * (record * v->node[n].tail + other * d[n].tail);
			/* Remote to users on the node, if these are the VMA's mix of users. */
			t.mixed = (1 - keep) * (elsewhere(b, lying, n) * share_of(b, v, n));
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
	struct nrp_world_exposure *all = sum_differences(b, world);
	double *lying = calloc(nodes, sizeof(*lying)),
	       *fastest = calloc(b->count + 1, sizeof(double));
	double variance[2] = { 0, 0 };
	int r = all && lying && fastest ? 0 : -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; r == 0 && i < b->count; i++) {
		const struct nrp_vma *v = &b->vmas[i];
		const struct nrp_world_exposure *d = all + i * nodes;

		if (v->leader != i)
			continue;
		for (size_t n = 0; n < nodes; n++)
			lying[n] = record * v->node[n].lying + other * d[n].lying;
		fastest[i] = add_leader(b, v, d, record, other, lying, ret);
	}
	for (uint32_t i = 0; r == 0 && world >= 0 && i < b->count; i++) {
		const struct nrp_vma *v = &b->vmas[i];
		double rate = fastest[nrp_locality_leader(b, i)];

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
		const struct nrp_vma *v = &b->vmas[*position / nodes];
		int n = (int)(*position % nodes);
		struct nrp_touch_rate r;

		if (v->leader != *position / nodes)
			continue;
		rate_of(b, v, n, &r);
		r.remote_page_seconds = v->node[n].held[0];
		if (nrp_vma_joined(v)) {
			r.remote_page_seconds = 0;
			for (int k = 0; k < b->nr_nodes; k++)
				r.remote_page_seconds +=
					k != n ? v->node[k].lying * v->node[n].mappings : 0;
		}
		if (!r.touches && r.armed_page_seconds <= NRP_LEAST_PAGE_SECONDS &&
		    r.remote_page_seconds <= NRP_LEAST_PAGE_SECONDS)
			continue;
		++*position;
		*ret = r;
		return true;
	}
	return false;
}
