/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_effects.h"
#include "replay/mm_kin.h"
#include "replay/pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODE_UNKNOWN UINT32_MAX

/*
 * Address space: the lane's armed ranges (vma: certain), those in which it met pages that no fault
 * had shown, and the record's ranges (vma: node on which pages lie that were passed over).
 */
struct space {
	struct nrp_mm armed, met, passed;
	uint64_t uncertain; /* ns: from here on the lane may arm more than is listed; 0: never */
	bool single_threaded;
	bool diverged;
	uint32_t cpu_nid; /* of the pass that is running */
};

/* Pages of one extra range that no fault has shown. */
struct unseen {
	uint64_t mm;
	uint32_t nid;       /* where they lie */
	double pages;       /* base pages, resident or not */
	double away_at_arm; /* seconds with threads on other nodes, until the lane armed them */
};

struct nrp_scan_effects {
	const struct nrp_host_facts *facts;
	const struct nrp_scan_lane *lane;
	size_t next_range;
	uint64_t page_size, origin;
	int pte;
	struct nrp_scan_pte_lane *filter; /* NULL: as on the host */
	struct nrp_pages *spaces;         /* keyed by mm */
	struct nrp_pages *last_fault;     /* keyed by (mm, page): ns, in the lane */
	struct unseen *unseen;
	size_t nr_unseen, room;
	double armed_entries,
		armed_size; /* first armings on record: how much of a range is there */
	struct nrp_scan_effects_result result;
};

int nrp_scan_effects_new(struct nrp_scan_effects **ret, const struct nrp_capture *capture,
			 const struct nrp_scan_lane *lane, int host_pte, int pte,
			 struct nrp_error *err)
{
	struct nrp_scan_effects *e = calloc(1, sizeof(*e));
	int r = 0;

	if (!e)
		return nrp_fail_nomem(err);
	e->facts = &capture->facts;
	e->lane = lane;
	e->page_size = nrp_capture_page_size(capture);
	e->pte = pte;
	e->spaces = nrp_pages_new(sizeof(struct space));
	e->last_fault = nrp_pages_new(sizeof(uint64_t));
	if (!e->spaces || !e->last_fault)
		r = -ENOMEM;
	if (r == 0 && pte != host_pte)
		r = nrp_scan_pte_lane_new(&e->filter, &capture->facts, host_pte);
	for (size_t i = 0; r == 0 && lane && i < lane->nr_mms; i++) {
		struct space *s = nrp_pages_get(e->spaces, lane->mm[i].mm, 0);

		if (!s) {
			r = -ENOMEM;
			break;
		}
		s->uncertain = lane->mm[i].uncertain;
		s->diverged = lane->mm[i].diverged != 0;
	}
	if (r < 0) {
		nrp_scan_effects_free(e);
		return nrp_fail_nomem(err);
	}
	*ret = e;
	return 0;
}

struct nrp_scan_effects *nrp_scan_effects_free(struct nrp_scan_effects *e)
{
	size_t position = 0;
	uint64_t mm, page;
	struct space *s;

	if (!e)
		return NULL;
	while (e->spaces && (s = nrp_pages_next(e->spaces, &position, &mm, &page))) {
		free(s->armed.ranges);
		free(s->armed.segments);
		free(s->met.ranges);
		free(s->met.segments);
		free(s->passed.ranges);
		free(s->passed.segments);
	}
	nrp_pages_free(e->spaces);
	nrp_pages_free(e->last_fault);
	nrp_scan_pte_lane_free(e->filter);
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

/*
 * Pages of a range that only the lane arms. Those that lie on the scanning thread's own node are
 * not armed; of the others, those that no fault has shown are counted when they are met first.
 */
static int meet_pages(struct nrp_scan_effects *e, struct nrp_worlds *worlds, struct space *s,
		      const struct nrp_scan_lane_range *g)
{
	struct unseen u = { .mm = g->mm, .nid = NODE_UNKNOWN };
	uint64_t first = g->start / e->page_size, last = (g->end - 1) / e->page_size;
	double unplaced = 0;
	bool unsure;

	/* A range of many GiB is looked at in steps: what is between them is like them. */
	for (uint64_t v = first, step = 1 + (last - first) / 65536; v <= last; v += step) {
		uint64_t addr = v * e->page_size;
		uint32_t passed = nrp_mm_armed(&s->passed, addr, g->time, &unsure);
		uint32_t nid = passed == NRP_NO_RANGE ? NODE_UNKNOWN : s->passed.ranges[passed].vma;
		bool known = nrp_worlds_knows(worlds, g->mm, v);

		if (!known && nid != NODE_UNKNOWN && nid == s->cpu_nid)
			continue;
		e->result.extra_pages += step;
		if (known || nrp_mm_armed(&s->met, addr, g->time, &unsure) != NRP_NO_RANGE)
			continue;
		e->result.unseen_pages += (double)step;
		if (nid == NODE_UNKNOWN)
			unplaced += (double)step;
		else
			u.pages += (double)step;
		u.nid = nid == NODE_UNKNOWN ? u.nid : nid;
	}
	e->result.unplaced_pages += unplaced;
	if (u.pages <= 0)
		return 0;
	u.away_at_arm = nrp_worlds_away(worlds, g->mm, (int)u.nid, g->time);
	return nrp_mm_arm(&s->met, g->start, g->end, g->time, 0) < 0 ? -ENOMEM : add_unseen(e, &u);
}

/* The lane's ranges of all passes that have begun by @time. */
static int advance(struct nrp_scan_effects *e, struct nrp_worlds *worlds, uint64_t time)
{
	while (e->lane && e->next_range < e->lane->nr_ranges &&
	       e->lane->range[e->next_range].time <= time) {
		const struct nrp_scan_lane_range *g = &e->lane->range[e->next_range++];
		struct space *s = nrp_pages_get(e->spaces, g->mm, 0);
		int r = 0;

		if (!s)
			return -ENOMEM;
		e->result.ranges++;
		e->result.certain_ranges += g->certain;
		if (g->recorded_pages >= 0) {
			e->result.same_pages += (uint64_t)g->recorded_pages;
			e->result.certain_pages += g->certain ? (uint64_t)g->recorded_pages : 0;
		} else {
			r = meet_pages(e, worlds, s, g);
		}
		if (r == 0)
			r = nrp_mm_arm(&s->armed, g->start, g->end, g->time, g->certain);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the record --------------------------------------------------------------------- */

int nrp_scan_effects_life(struct nrp_scan_effects *e, const struct nrp_task_life *life)
{
	return e->filter ? nrp_scan_pte_lane_life(e->filter, life) : 0;
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
	if (nrp_mm_arm(&s->passed, range->start, range->end, range->time, nid) < 0)
		return -ENOMEM;
	return e->filter ? nrp_scan_pte_lane_range(e->filter, range) : 0;
}

/* By the ranges alone. */
static enum nrp_armed by_ranges(const struct nrp_scan_effects *e, struct space *s,
				const struct nrp_hint_fault *f, uint64_t last)
{
	bool unsure;
	uint32_t host = nrp_mm_armed(&s->passed, f->addr, f->time, &unsure);
	uint32_t i = nrp_mm_armed(&s->armed, f->addr, f->time, &unsure);

	/* Armed before the capture began: in both. */
	if (!e->lane || !s->diverged || host == NRP_NO_RANGE)
		return NRP_ARMED_YES;
	if (i != NRP_NO_RANGE && s->armed.ranges[i].time > last)
		return s->armed.ranges[i].vma ? NRP_ARMED_YES : NRP_ARMED_UNKNOWN;
	return s->uncertain && f->time > s->uncertain ? NRP_ARMED_UNKNOWN : NRP_ARMED_NO;
}

int nrp_scan_effects_fault(struct nrp_scan_effects *e, const struct nrp_hint_fault *f,
			   enum nrp_armed *ret)
{
	enum nrp_scan_pte_answer answers[NRP_NR_SCAN_PTE_VARIANTS];
	struct space *s;
	uint64_t *last;

	*ret = NRP_ARMED_YES;
	if (e->filter && nrp_scan_pte_lane_fault(e->filter, f, answers) < 0)
		return -ENOMEM;
	if (NRP_NULL(f, hint_fault, mm) || NRP_NULL(f, hint_fault, addr))
		return 0;
	s = nrp_pages_get(e->spaces, f->mm, 0);
	last = e->lane ? nrp_pages_get(e->last_fault, f->mm,
				       nrp_page_of(f->addr, e->page_size,
						   NRP_NULL(f, hint_fault, pages) ? 1 : f->pages))
		       : NULL;
	if (!s || (e->lane && !last))
		return -ENOMEM;
	*ret = by_ranges(e, s, f, last ? *last : 0);
	if (last && *ret != NRP_ARMED_NO)
		*last = f->time;
	if (!e->filter || *ret == NRP_ARMED_NO)
		return 0;
	if (answers[e->pte] == NRP_FAULT_AVOIDED)
		*ret = NRP_ARMED_NO;
	else if (answers[e->pte] == NRP_FAULT_UNKNOWN)
		*ret = NRP_ARMED_UNKNOWN;
	return 0;
}

/* ---- the end ------------------------------------------------------------------------ */

void nrp_scan_effects_result(const struct nrp_scan_effects *e, struct nrp_worlds *worlds,
			     uint64_t end_time, struct nrp_scan_effects_result *ret)
{
	double there = e->armed_size > 0 ? fmin(1, e->armed_entries / e->armed_size) : 0;

	*ret = e->result;
	ret->possible_ranges = e->lane ? e->lane->possible_ranges : 0;
	for (size_t i = 0; i < e->nr_unseen; i++) {
		const struct unseen *u = &e->unseen[i];
		double away = nrp_worlds_away(worlds, u->mm, (int)u->nid, end_time);
		double after = away - u->away_at_arm, pages = u->pages * there, upper;
		double rate = nrp_locality_space_rate(nrp_worlds_locality(worlds),
						      nrp_worlds_space(worlds, u->mm), &upper);
		/* Touched at all until the end; once it is, it moves and is local. */
		double touched = 1 - exp(-rate * after);
		double waits = rate > 0 ? touched / rate : after;

		if (after <= 0)
			touched = waits = 0;
		ret->armed += pages;
		ret->faults += pages * touched;
		ret->remote_before += pages * away;
		ret->remote_after += pages * (u->away_at_arm + waits);
		ret->remote_upper += u->pages * away;
		ret->touches_before += pages * rate * away;
		ret->touches_after += pages * rate * (u->away_at_arm + waits);
		ret->touches_upper += u->pages * upper * away;
	}
}
