/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_extra.h"
#include "replay/attempts.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>

#define NODE_UNKNOWN UINT32_MAX

/* Ranges of an address space. */
enum ranges {
	PASSED, /* on record; vma: the node on which pages lie that it passed over */
	FULL,   /* on record, every page was armed */
	EXTRA,  /* by the lane, where that adds faults; vma: arrivals of threads */
	NR_RANGES
};

struct space {
	struct nrp_mm of[NR_RANGES];
	struct nrp_scan_ranges queue; /* of the pass that began last */
	bool single_threaded;
	uint32_t nid, arrivals; /* of that pass */
	unsigned int nodes;     /* with threads then */
};

/* What recorded faults show of a page. */
struct page {
	uint64_t fault; /* ns of the last one, 0: none */
	bool several;   /* threads on several nodes used it, and none of them had moved */
	bool local;     /* the last one left it on its thread's node */
	int16_t nid;
	int32_t tid;
	uint32_t arrivals; /* of threads, at the last recorded or extra fault; since then: */
	uint32_t moves;    /* recorded and extra ones */
	uint32_t added;    /* extra ones */
};

struct nrp_scan_extra {
	uint64_t page_size;
	struct nrp_pages *spaces, *pages;
	uint64_t faults, moves;
};

struct nrp_scan_extra *nrp_scan_extra_new(uint64_t page_size)
{
	struct nrp_scan_extra *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->page_size = page_size;
	x->spaces = nrp_pages_new(sizeof(struct space));
	x->pages = nrp_pages_new_dense(sizeof(struct page));
	return x->spaces && x->pages ? x : nrp_scan_extra_free(x);
}

struct nrp_scan_extra *nrp_scan_extra_free(struct nrp_scan_extra *x)
{
	size_t position = 0;
	uint64_t mm, page;
	struct space *s;

	if (!x)
		return NULL;
	while (x->spaces && (s = nrp_pages_next(x->spaces, &position, &mm, &page))) {
		for (int k = 0; k < NR_RANGES; k++)
			nrp_mm_clear(&s->of[k]);
		free(s->queue.at);
	}
	nrp_pages_free(x->spaces);
	nrp_pages_free(x->pages);
	free(x);
	return NULL;
}

/* The newest range over @addr, NULL: none. */
static const struct nrp_armed_range *newest(struct space *s, enum ranges which, uint64_t addr)
{
	return nrp_mm_newest(&s->of[which], addr, UINT64_MAX);
}

/* ---- one page ----------------------------------------------------------------------- */

/* Neighbouring pages to which the same happens. */
struct run {
	uint64_t first, last; /* virtual pages */
	bool adds;            /* faults that the record does not have */
	uint64_t moves;       /* of each page */
};

/*
 * Armed on record when the lane came by? The host came by in the same pass, or before it and no
 * fault was since. A single thread's scanner leaves local pages unarmed, others arm what is there:
 * what a fault has shown, or what was armed before.
 */
static bool armed_on_record(struct space *s, uint64_t time, uint64_t addr, bool known,
			    const struct page *p)
{
	const struct nrp_armed_range *passed = newest(s, PASSED, addr);

	if (!passed)
		return false;
	if (passed->time >= time)
		return true;
	if (s->single_threaded)
		return false;
	/* Faulted since then: it was armed. */
	if (known)
		return p->fault && (p->fault > time || passed->time > p->fault);
	return newest(s, FULL, addr);
}

/*
 * With more threads than one a page may still be armed from an earlier time, and move once between
 * two arrivals without a new arming.
 */
static uint64_t moves_before(struct space *s, uint64_t addr)
{
	const struct nrp_armed_range *before = newest(s, EXTRA, addr);

	return before && !s->single_threaded && s->arrivals - before->vma > 1;
}

/* A page that no fault has shown. */
static uint64_t moves_of_unseen(struct space *s, uint64_t addr)
{
	const struct nrp_armed_range *before = newest(s, EXTRA, addr);

	return (!before || before->vma != s->arrivals) + moves_before(s, addr);
}

static void count_from(struct page *p, uint32_t arrivals)
{
	if (p->arrivals != arrivals)
		p->moves = p->added = 0;
	p->arrivals = arrivals;
}

/* @apart: it perhaps lies elsewhere in the lane than on record. */
static uint64_t moves_of_seen(struct space *s, uint64_t addr, struct page *p, bool apart)
{
	uint32_t most = p->several && s->nodes > 1 ? s->nodes : 1;
	uint64_t n = 0;

	if (p->local && !apart && !p->several && p->arrivals == s->arrivals)
		return 0;
	if (p->arrivals != s->arrivals)
		n = moves_before(s, addr);
	count_from(p, s->arrivals);
	if (p->moves >= most)
		return n;
	p->moves++;
	p->added++;
	return n + 1;
}

static int look_at(struct nrp_scan_extra *x, struct nrp_worlds *worlds, struct space *s,
		   const struct nrp_scan_lane_range *g, struct run *ret)
{
	uint64_t addr = ret->first * x->page_size;
	bool known = nrp_worlds_knows(worlds, g->mm, ret->first);
	struct page *p = known ? nrp_pages_get(x->pages, g->mm, ret->first) : NULL;
	const struct nrp_armed_range *passed = newest(s, PASSED, addr);

	if (known && !p)
		return -ENOMEM;
	ret->adds = !armed_on_record(s, g->time, addr, known, p);
	/* It lies where the scanner runs, and is left alone. */
	if (!known && passed && passed->vma != NODE_UNKNOWN && passed->vma == s->nid)
		ret->adds = false;
	ret->moves = 0;
	if (ret->adds && !known)
		ret->moves = moves_of_unseen(s, addr);
	else if (ret->adds)
		ret->moves =
			moves_of_seen(s, addr, p, nrp_worlds_is_apart(worlds, g->mm, ret->first));
	return 0;
}

/* ---- the lane's ranges -------------------------------------------------------------- */

static int end_run(struct nrp_scan_extra *x, struct space *s, uint64_t time, const struct run *run)
{
	uint64_t pages = run->last + 1 - run->first;

	if (!run->adds)
		return 0;
	x->faults += pages;
	x->moves += pages * run->moves;
	return nrp_mm_arm(&s->of[EXTRA], run->first * x->page_size, (run->last + 1) * x->page_size,
			  time, s->arrivals);
}

/* A range of many GiB is looked at in steps: what is between them is like them. */
static int judge(struct nrp_scan_extra *x, struct nrp_worlds *worlds, struct space *s,
		 const struct nrp_scan_lane_range *g)
{
	uint64_t first = g->start / x->page_size, last = (g->end - 1) / x->page_size;
	uint64_t step = 1 + (last - first) / 65536;
	struct run run = { .first = first };

	for (uint64_t v = first; v <= last; v += step) {
		struct run here = { .first = v };

		if (look_at(x, worlds, s, g, &here) < 0)
			return -ENOMEM;
		if (v == first || here.adds != run.adds || here.moves != run.moves) {
			if (v != first && end_run(x, s, g->time, &run) < 0)
				return -ENOMEM;
			run = here;
		}
		run.last = v + step - 1 < last ? v + step - 1 : last;
	}
	return end_run(x, s, g->time, &run);
}

static int judge_queue(struct nrp_scan_extra *x, struct nrp_worlds *worlds, struct space *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->queue.count; i++)
		r = judge(x, worlds, s, &s->queue.at[i]);
	s->queue.count = 0;
	return r;
}

int nrp_scan_extra_lane_range(struct nrp_scan_extra *x, const struct nrp_scan_lane_range *g)
{
	struct space *s = nrp_pages_get(x->spaces, g->mm, 0);

	return s ? nrp_scan_ranges_add(&s->queue, g) : -ENOMEM;
}

/* ---- the record --------------------------------------------------------------------- */

int nrp_scan_extra_pass(struct nrp_scan_extra *x, struct nrp_worlds *worlds, uint64_t mm,
			bool single_threaded, int nid)
{
	struct space *s = nrp_pages_get(x->spaces, mm, 0);

	if (!s || judge_queue(x, worlds, s) < 0)
		return -ENOMEM;
	s->single_threaded = single_threaded;
	s->nid = nid < 0 ? NODE_UNKNOWN : (uint32_t)nid;
	s->arrivals = (uint32_t)nrp_worlds_arrivals(worlds, mm);
	s->nodes = nrp_worlds_nodes(worlds, mm);
	return 0;
}

int nrp_scan_extra_range(struct nrp_scan_extra *x, const struct nrp_scan_range *g)
{
	struct space *s = nrp_pages_get(x->spaces, g->mm, 0);
	bool known = !NRP_NULL(g, scan_range, pages);
	uint32_t nid;

	if (!s)
		return -ENOMEM;
	nid = s->single_threaded && known && !g->pages ? s->nid : NODE_UNKNOWN;
	if (nrp_mm_arm(&s->of[PASSED], g->start, g->end, g->time, nid) < 0)
		return -ENOMEM;
	if (!known || g->pages != (g->end - g->start) / x->page_size)
		return 0;
	return nrp_mm_arm(&s->of[FULL], g->start, g->end, g->time, 0);
}

/* What an extra fault was taken to do, this one does, if no more moves are possible. */
static void see_move(struct nrp_scan_extra *x, struct page *p, uint32_t nodes, uint32_t pages)
{
	uint32_t most = p->several && nodes > 1 ? nodes : 1;

	p->moves++;
	if (p->moves <= most || !p->added)
		return;
	p->moves--;
	p->added--;
	x->moves -= x->moves < pages ? x->moves : pages;
}

/* A thread that faults on another node than before has moved. */
int nrp_scan_extra_fault(struct nrp_scan_extra *x, struct nrp_worlds *worlds,
			 const struct nrp_hint_fault *f)
{
	int16_t nid = NRP_NULL(f, hint_fault, this_nid) ? -1 : f->this_nid;
	uint32_t arrivals = (uint32_t)nrp_worlds_arrivals(worlds, f->mm);
	struct space *s = nrp_pages_get(x->spaces, f->mm, 0);
	struct page *p = nrp_pages_get(x->pages, f->mm,
				       nrp_page_of(f->addr, x->page_size, nrp_fault_pages(f)));
	const struct nrp_armed_range *before;

	if (!p || !s)
		return -ENOMEM;
	before = newest(s, EXTRA, f->addr);
	if (!p->fault && before && before->vma == arrivals)
		*p = (struct page){ .arrivals = arrivals, .moves = 1, .added = 1 };
	p->several |= p->fault && p->nid != nid && p->tid != f->tid && p->arrivals == arrivals;
	p->fault = f->time;
	p->local = nid >= 0 && !NRP_NULL(f, hint_fault, mem_nid) && f->mem_nid == nid;
	p->nid = nid;
	p->tid = f->tid;
	count_from(p, arrivals);
	if (nrp_fault_moved(f))
		see_move(x, p, s->nodes, nrp_fault_pages(f));
	return 0;
}

void nrp_scan_extra_prefetch(const struct nrp_scan_extra *x, uint64_t mm, uint64_t page)
{
	nrp_pages_prefetch(x->pages, mm, page);
}

/* ---- the end ------------------------------------------------------------------------ */

/* Pages that are still armed when a thread arrives after their last extra arming. */
static uint64_t late_moves(const struct nrp_scan_extra *x, const struct space *s, uint64_t arrivals)
{
	const struct nrp_mm *extra = &s->of[EXTRA];
	uint64_t n = 0;

	for (size_t i = 0; !s->single_threaded && i < extra->nr_segments; i++) {
		const struct nrp_armed_segment *g = &extra->segments[i];

		if (extra->ranges[g->range].vma < arrivals)
			n += (g->end - g->start) / x->page_size;
	}
	return n;
}

int nrp_scan_extra_finish(struct nrp_scan_extra *x, struct nrp_worlds *worlds, uint64_t *ret_faults,
			  uint64_t *ret_moves)
{
	size_t position = 0;
	uint64_t mm, page;
	struct space *s;

	while ((s = nrp_pages_next(x->spaces, &position, &mm, &page))) {
		if (judge_queue(x, worlds, s) < 0)
			return -ENOMEM;
		x->moves += late_moves(x, s, nrp_worlds_arrivals(worlds, mm));
	}
	*ret_faults = x->faults;
	*ret_moves = x->moves < x->faults ? x->moves : x->faults;
	return 0;
}
