/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_effects.h"
#include "replay/attempts.h"
#include "replay/host.h"
#include "replay/pages.h"
#include "replay/policies/scan_shmem.h"
#include "replay/scan_extra.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODE_UNKNOWN UINT32_MAX

/* Ranges of an address space, newest first: what is their vma. */
enum ranges {
	ARMED,   /* by the lane: certain, and what they find there was armed on record, too */
	PERHAPS, /* by the lane: others. 1: certain, but on record they changed nothing */
	ALL,     /* by the lane, from the beginning of the capture to its end */
	MET,     /* by the lane: in which it met pages that no fault had shown */
	PASSED,  /* on record: node on which pages lie that were passed over */
	CHANGED, /* on record: those that armed something */
	NR_RANGES
};

struct space {
	struct nrp_mm of[NR_RANGES];
	uint64_t uncertain; /* ns: from here on the lane may arm more than is listed; 0: never */
	bool single_threaded;
	bool diverged;
	uint32_t cpu_nid; /* of the pass that is running */
};

/* Neighbouring pages that only the lane armed, and that no fault had shown then. */
struct unseen {
	uint64_t mm, first, last; /* virtual pages */
	uint32_t nid;             /* where they lie, or NODE_UNKNOWN */
	double away_at_arm; /* seconds with threads on other nodes, until the lane armed them */
};

/* A page in the lane. */
struct lane_page {
	uint64_t fault; /* ns of its last one */
	bool apart;     /* it perhaps lacks one that moved the page on record */
};

struct nrp_scan_effects {
	const struct nrp_host_facts *facts;
	const struct nrp_scan_lane *lane;
	struct nrp_scan_extra *extra; /* NULL: no lane of its own */
	size_t next_range, next_possible;
	uint64_t page_size, origin;
	struct nrp_scan_pte_policy pte;
	bool loses_shmem;
	struct nrp_scan_pte_lane *filter; /* NULL: as on the host */
	struct nrp_pages *spaces;         /* keyed by mm */
	struct nrp_pages *pages;          /* keyed by (mm, page): struct lane_page */
	struct unseen *unseen;
	size_t nr_unseen, room;
	double armed_entries,
		armed_size; /* first armings on record: how much of a range is there */
	struct nrp_scan_effects_result result;
};

static int arm(struct nrp_scan_effects *e, const struct nrp_scan_lane_range *g, enum ranges which,
	       uint32_t vma)
{
	struct space *s = nrp_pages_get(e->spaces, g->mm, 0);

	return s ? nrp_mm_arm(&s->of[which], g->start, g->end, g->time, vma) : -ENOMEM;
}

int nrp_scan_effects_new(struct nrp_scan_effects **ret, const struct nrp_capture *capture,
			 const struct nrp_scan_lane *lane, int host_pte,
			 const struct nrp_scan_pte_policy *pte, struct nrp_error *err)
{
	struct nrp_scan_effects *e = calloc(1, sizeof(*e));
	int r = 0;

	if (!e)
		return nrp_fail_nomem(err);
	e->facts = &capture->facts;
	e->lane = lane;
	e->page_size = nrp_host_page_size(&capture->facts);
	if (pte)
		e->pte = *pte;
	e->spaces = nrp_pages_new(sizeof(struct space));
	e->pages = nrp_pages_new_dense(sizeof(struct lane_page));
	if (lane)
		e->extra = nrp_scan_extra_new(e->page_size);
	if (!e->spaces || !e->pages || (lane && !e->extra))
		r = -ENOMEM;
	if (r == 0 && pte)
		r = nrp_scan_pte_lane_new(&e->filter, &capture->facts, host_pte);
	for (size_t i = 0; r == 0 && lane && i < lane->nr_mms; i++) {
		struct space *s = nrp_pages_get(e->spaces, lane->mm[i].mm, 0);

		if (!s) {
			r = -ENOMEM;
			break;
		}
		/* A pointer may serve several in turn: what holds of one stays. */
		if (lane->mm[i].uncertain &&
		    (!s->uncertain || lane->mm[i].uncertain < s->uncertain))
			s->uncertain = lane->mm[i].uncertain;
		s->diverged |= lane->mm[i].diverged != 0;
	}
	for (size_t i = 0; r == 0 && lane && i < lane->nr_ranges; i++)
		r = arm(e, &lane->range[i], ALL, 0);
	for (size_t i = 0; r == 0 && lane && i < lane->possible_ranges; i++)
		r = arm(e, &lane->possible[i], ALL, 0);
	if (r < 0) {
		nrp_scan_effects_free(e);
		return nrp_fail_nomem(err);
	}
	*ret = e;
	return 0;
}

void nrp_scan_effects_lose_shmem(struct nrp_scan_effects *e)
{
	e->loses_shmem = true;
}

uint64_t nrp_scan_effects_refused_until(struct nrp_scan_effects *e, uint64_t mm, uint64_t addr,
					uint64_t from)
{
	if (!e->filter || e->pte.variant == NRP_SCAN_PTE_F0 ||
	    !(e->pte.rules & NRP_SCAN_PTE_RULE_COW))
		return 0;
	return nrp_scan_pte_lane_shared_until(e->filter, mm, addr, from);
}

void nrp_scan_effects_know(struct nrp_scan_effects *e, struct nrp_scan_pte_proofs *proofs)
{
	if (e->filter)
		nrp_scan_pte_lane_know(e->filter, proofs);
}

struct nrp_scan_effects *nrp_scan_effects_free(struct nrp_scan_effects *e)
{
	size_t position = 0;
	uint64_t mm, page;
	struct space *s;

	if (!e)
		return NULL;
	while (e->spaces && (s = nrp_pages_next(e->spaces, &position, &mm, &page)))
		for (int k = 0; k < NR_RANGES; k++)
			nrp_mm_clear(&s->of[k]);
	nrp_pages_free(e->spaces);
	nrp_pages_free(e->pages);
	nrp_scan_pte_lane_free(e->filter);
	nrp_scan_extra_free(e->extra);
	free(e->unseen);
	free(e);
	return NULL;
}

/* ---- the lane's ranges -------------------------------------------------------------- */

static int add_unseen(struct nrp_scan_effects *e, const struct unseen *u)
{
	if (e->nr_unseen == e->room) {
		size_t room = e->room ? e->room * 2 : 64;
		struct unseen *grown = reallocarray(e->unseen, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		e->unseen = grown;
		e->room = room;
	}
	e->unseen[e->nr_unseen++] = *u;
	return 0;
}

/* A range of many GiB is looked at in steps: what is between them is like them. */
static uint64_t step_of(uint64_t first, uint64_t last)
{
	return 1 + (last - first) / 65536;
}

/* NULL: no range covers @addr that began before @time. */
static const struct nrp_armed_range *newest(struct space *s, enum ranges which, uint64_t addr,
					    uint64_t time)
{
	return nrp_mm_newest(&s->of[which], addr, time);
}

/* Where a page lies that the newest recorded range over it passed over. */
static uint32_t passed_on(struct space *s, uint64_t addr, uint64_t time)
{
	const struct nrp_armed_range *g = newest(s, PASSED, addr, time);

	return g ? g->vma : NODE_UNKNOWN;
}

/* A run of pages of an extra range: armed, and perhaps never seen before. */
struct run {
	uint64_t first, last;
	uint32_t nid;
	bool armed, new;
};

static int end_run(struct nrp_scan_effects *e, struct nrp_worlds *worlds, struct space *s,
		   const struct nrp_scan_lane_range *g, const struct run *run)
{
	uint64_t start = run->first * e->page_size, end = (run->last + 1) * e->page_size;
	struct unseen u = { .mm = g->mm, .first = run->first, .last = run->last, .nid = run->nid };

	if (!run->armed)
		return 0;
	if (nrp_mm_arm(&s->of[g->certain ? ARMED : PERHAPS], start, end, g->time, 0) < 0)
		return -ENOMEM;
	if (!run->new)
		return 0;
	if (run->nid != NODE_UNKNOWN)
		u.away_at_arm = nrp_worlds_away(worlds, g->mm, (int)run->nid, g->time);
	return nrp_mm_arm(&s->of[MET], start, end, g->time, 0) < 0 ? -ENOMEM : add_unseen(e, &u);
}

/*
 * A range that only the lane arms. Pages that lie on the scanning thread's own node are left alone;
 * of the others, those that no fault has shown are kept when they are met first.
 */
static int arm_extra(struct nrp_scan_effects *e, struct nrp_worlds *worlds, struct space *s,
		     const struct nrp_scan_lane_range *g)
{
	uint64_t first = g->start / e->page_size, last = (g->end - 1) / e->page_size;
	uint64_t step = step_of(first, last);
	struct run run = { .first = first, .armed = false };

	for (uint64_t v = first; v <= last; v += step) {
		uint64_t addr = v * e->page_size;
		bool known = nrp_worlds_knows(worlds, g->mm, v);
		struct run here = { .first = v, .nid = passed_on(s, addr, g->time) };

		here.armed = known || here.nid == NODE_UNKNOWN || here.nid != s->cpu_nid;
		here.new = here.armed && !known && !newest(s, MET, addr, g->time);
		if (v != first && (here.armed != run.armed || here.new != run.new ||
				   (here.new &&here.nid != run.nid))) {
			if (end_run(e, worlds, s, g, &run) < 0)
				return -ENOMEM;
			run = here;
		} else if (v == first) {
			run = here;
		}
		run.last = v + step - 1 < last ? v + step - 1 : last;
	}
	return end_run(e, worlds, s, g, &run);
}

static int advance_range(struct nrp_scan_effects *e, struct nrp_worlds *worlds,
			 const struct nrp_scan_lane_range *g)
{
	struct space *s = nrp_pages_get(e->spaces, g->mm, 0);
	int r;

	if (!s)
		return -ENOMEM;
	e->result.ranges++;
	e->result.certain_ranges += g->certain;
	if (g->recorded_pages >= 0) {
		e->result.same_pages += (uint64_t)g->recorded_pages;
		e->result.certain_pages += g->certain ? (uint64_t)g->recorded_pages : 0;
	}
	/*
	 * What armed nothing on record found all entries armed, or on the scanner's node: there. In
	 * the lane they may still be unarmed, and remote.
	 */
	if (g->recorded_pages > 0)
		return arm(e, g, g->certain ? ARMED : PERHAPS, 0);
	if (g->recorded_pages == 0)
		return arm(e, g, PERHAPS, g->certain);
	r = arm_extra(e, worlds, s, g);
	return r < 0 ? r : nrp_scan_extra_lane_range(e->extra, g);
}

/* A range that the lane arms only if some unknown facts are so. */
static int advance_possible(struct nrp_scan_effects *e, const struct nrp_scan_lane_range *g)
{
	int r = arm(e, g, PERHAPS, 0);

	return r < 0 || g->recorded_pages >= 0 ? r : nrp_scan_extra_lane_range(e->extra, g);
}

/* The lane's ranges of all passes that have begun by @time. */
static int advance(struct nrp_scan_effects *e, struct nrp_worlds *worlds, uint64_t time)
{
	const struct nrp_scan_lane *l = e->lane;
	int r = 0;

	while (r == 0 && l && e->next_range < l->nr_ranges && l->range[e->next_range].time <= time)
		r = advance_range(e, worlds, &l->range[e->next_range++]);
	while (r == 0 && l && e->next_possible < l->possible_ranges &&
	       l->possible[e->next_possible].time <= time)
		r = advance_possible(e, &l->possible[e->next_possible++]);
	return r;
}

/* ---- the record --------------------------------------------------------------------- */

int nrp_scan_effects_life(struct nrp_scan_effects *e, const struct nrp_task_life *life)
{
	return e->filter ? nrp_scan_pte_lane_life(e->filter, life) : 0;
}

int nrp_scan_effects_page_fault(struct nrp_scan_effects *e, const struct nrp_page_fault *fault)
{
	return e->filter ? nrp_scan_pte_lane_page_fault(e->filter, fault) : 0;
}

int nrp_scan_effects_pass(struct nrp_scan_effects *e, struct nrp_worlds *worlds,
			  const struct nrp_scan_pass *pass)
{
	struct space *s = nrp_pages_get(e->spaces, pass->mm, 0);
	int nid = nrp_host_cpu_nid(e->facts, (int)pass->cpu);

	if (!s)
		return -ENOMEM;
	s->single_threaded = !NRP_NULL(pass, scan_pass, mm_users) && pass->mm_users == 1;
	s->cpu_nid = nid < 0 ? NODE_UNKNOWN : (uint32_t)nid;
	if (e->extra &&
	    nrp_scan_extra_pass(e->extra, worlds, pass->mm, s->single_threaded, nid) < 0)
		return -ENOMEM;
	if (advance(e, worlds, pass->time) < 0)
		return -ENOMEM;
	return e->filter ? nrp_scan_pte_lane_pass(e->filter, pass) : 0;
}

int nrp_scan_effects_range(struct nrp_scan_effects *e, struct nrp_worlds *worlds,
			   const struct nrp_scan_range *range)
{
	struct space *s;
	uint32_t nid;

	if (NRP_NULL(range, scan_range, mm))
		return 0;
	s = nrp_pages_get(e->spaces, range->mm, 0);
	if (!s || advance(e, worlds, range->time) < 0)
		return -ENOMEM;
	if (!NRP_NULL(range, scan_range, pages) && range->pages) {
		e->armed_entries += (double)range->pages;
		e->armed_size += (double)((range->end - range->start) / e->page_size);
	}
	/* Nothing armed, although remote pages would have been: what is there lies on this node. */
	nid = s->single_threaded && !NRP_NULL(range, scan_range, pages) && !range->pages
		      ? s->cpu_nid
		      : NODE_UNKNOWN;
	if (nrp_mm_arm(&s->of[PASSED], range->start, range->end, range->time, nid) < 0)
		return -ENOMEM;
	if ((NRP_NULL(range, scan_range, pages) || range->pages) &&
	    nrp_mm_arm(&s->of[CHANGED], range->start, range->end, range->time, 0) < 0)
		return -ENOMEM;
	if (e->extra && nrp_scan_extra_range(e->extra, range) < 0)
		return -ENOMEM;
	return e->filter ? nrp_scan_pte_lane_range(e->filter, range) : 0;
}

/*
 * The page was armed on record when a range found nothing to arm, if nothing was armed there since.
 * The lane's same range arms it then, unless it lies on the scanner's own node in the lane.
 */
static bool armed_by_then(struct space *s, const struct nrp_hint_fault *f,
			  const struct lane_page *p, const struct nrp_armed_range *found_armed)
{
	const struct nrp_armed_range *changed = newest(s, CHANGED, f->addr, f->time);

	return found_armed->vma && (!changed || changed->time <= found_armed->time) &&
	       !(s->single_threaded && p->apart);
}

/* By the ranges alone. */
static enum nrp_armed by_ranges(struct space *s, const struct nrp_hint_fault *f,
				const struct lane_page *p)
{
	const struct nrp_armed_range *armed = newest(s, ARMED, f->addr, f->time);
	const struct nrp_armed_range *perhaps = newest(s, PERHAPS, f->addr, f->time), *last;

	/* Armed before the capture began: in both. */
	if (!s->diverged || !newest(s, PASSED, f->addr, f->time))
		return NRP_ARMED_YES;
	if (armed && armed->time > p->fault)
		return NRP_ARMED_YES;
	if (perhaps && perhaps->time > p->fault)
		return armed_by_then(s, f, p, perhaps) ? NRP_ARMED_YES : NRP_ARMED_UNKNOWN;
	if (s->uncertain && f->time > s->uncertain)
		return NRP_ARMED_UNKNOWN;
	last = newest(s, ALL, f->addr, UINT64_MAX);
	return s->uncertain || (last && last->time >= f->time) ? NRP_ARMED_LATER : NRP_ARMED_NO;
}

/* By the ranges, and remembers the fault. */
static int scanned(struct nrp_scan_effects *e, struct space *s, const struct nrp_hint_fault *f,
		   enum nrp_armed *ret)
{
	struct lane_page *p = nrp_pages_get(e->pages, f->mm,
					    nrp_page_of(f->addr, e->page_size, nrp_fault_pages(f)));

	if (!p)
		return -ENOMEM;
	*ret = by_ranges(s, f, p);
	if (*ret == NRP_ARMED_YES || *ret == NRP_ARMED_UNKNOWN)
		p->fault = f->time;
	if (*ret != NRP_ARMED_YES && nrp_fault_moved(f))
		p->apart = true;
	return 0;
}

/* Does the lane's scanner pass by the VMA? */
static bool may_lose_vma(const struct nrp_scan_effects *e, const struct nrp_hint_fault *f)
{
	enum nrp_known vm_shared = NRP_NULL(f, hint_fault, vm_flags)
					   ? NRP_KNOWN_NOT
					   : nrp_known_of(nrp_vma_is_shared(f->vm_flags));

	return e->loses_shmem && nrp_scan_shmem_stays(NRP_SCAN_SHMEM_SH1, NRP_SCAN_SHMEM_SH0,
						      vm_shared) != NRP_KNOWN_YES;
}

void nrp_scan_effects_prefetch(const struct nrp_scan_effects *e, const struct nrp_hint_fault *f)
{
	uint64_t page = nrp_page_of(f->addr, e->page_size, nrp_fault_pages(f));

	if (e->lane) {
		nrp_pages_prefetch(e->pages, f->mm, page);
		nrp_scan_extra_prefetch(e->extra, f->mm, page);
	}
	if (e->filter)
		nrp_scan_pte_lane_prefetch(e->filter, f->mm, page);
}

int nrp_scan_effects_fault(struct nrp_scan_effects *e, struct nrp_worlds *worlds,
			   const struct nrp_hint_fault *f, enum nrp_armed *ret)
{
	enum nrp_scan_pte_answer answer;
	struct space *s;

	*ret = NRP_ARMED_YES;
	if (e->filter && nrp_scan_pte_lane_fault(e->filter, f, &e->pte, 1, &answer) < 0)
		return -ENOMEM;
	if (NRP_NULL(f, hint_fault, mm) || NRP_NULL(f, hint_fault, addr))
		return 0;
	s = nrp_pages_get(e->spaces, f->mm, 0);
	if (!s || (e->lane &&
		   (scanned(e, s, f, ret) < 0 || nrp_scan_extra_fault(e->extra, worlds, f) < 0)))
		return -ENOMEM;
	if (*ret == NRP_ARMED_NO || *ret == NRP_ARMED_LATER)
		return 0;
	if (may_lose_vma(e, f))
		*ret = NRP_ARMED_UNKNOWN;
	if (!e->filter)
		return 0;
	if (answer == NRP_FAULT_AVOIDED)
		*ret = NRP_ARMED_REFUSED;
	else if (answer == NRP_FAULT_UNKNOWN)
		*ret = NRP_ARMED_UNKNOWN;
	return 0;
}

/* ---- the end ------------------------------------------------------------------------ */

/*
 * Pages that no fault showed until the end. If the host armed them later, and nobody touched them
 * then, nobody does in the lane.
 */
static double still_unseen(const struct nrp_scan_effects *e, struct nrp_worlds *worlds,
			   const struct unseen *u, uint64_t end_time)
{
	struct space *s = nrp_pages_get(e->spaces, u->mm, 0);
	uint64_t step = step_of(u->first, u->last), pages = 0;

	for (uint64_t v = u->first; s && v <= u->last; v += step)
		if (!nrp_worlds_knows(worlds, u->mm, v) &&
		    passed_on(s, v * e->page_size, end_time) == u->nid)
			pages += step;
	return (double)pages;
}

int nrp_scan_effects_result(struct nrp_scan_effects *e, struct nrp_worlds *worlds,
			    uint64_t end_time, struct nrp_scan_effects_result *ret)
{
	double there = e->armed_size > 0 ? fmin(1, e->armed_entries / e->armed_size) : 0;

	if (e->extra && nrp_scan_extra_finish(e->extra, worlds, &e->result.extra_pages,
					      &e->result.extra_moves) < 0)
		return -ENOMEM;
	*ret = e->result;
	ret->tasks = nrp_worlds_tasks(worlds);
	ret->possible_ranges = e->lane ? e->lane->possible_ranges : 0;
	for (size_t i = 0; i < e->nr_unseen; i++) {
		const struct unseen *u = &e->unseen[i];
		double all = still_unseen(e, worlds, u, end_time), pages = all * there, upper;
		double rate = nrp_locality_space_rate(nrp_worlds_locality(worlds),
						      nrp_worlds_space(worlds, u->mm), &upper);
		double away, after, touched, waits;

		ret->unseen_pages += all;
		if (u->nid == NODE_UNKNOWN) {
			ret->unplaced_pages += all;
			continue;
		}
		away = nrp_worlds_away(worlds, u->mm, (int)u->nid, end_time);
		after = fmax(away - u->away_at_arm, 0);
		/* Touched at all until the end; once it is, it moves and is local. */
		touched = 1 - exp(-rate * after);
		waits = rate > 0 ? touched / rate : after;
		ret->armed += pages;
		ret->faults += pages * touched;
		ret->remote_before += pages * away;
		ret->remote_after += pages * (u->away_at_arm + waits);
		ret->remote_upper += all * away;
		ret->touches_before += pages * rate * away;
		ret->touches_after += pages * rate * (u->away_at_arm + waits);
		ret->touches_upper += all * upper * away;
	}
	return 0;
}
