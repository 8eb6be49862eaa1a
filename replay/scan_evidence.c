/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_evidence.h"
#include "replay/attempts.h"
#include "replay/cells.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>

/* With more threads than one, the scanner arms pages of its own node too. */
#define REFUSES_NONE (-2)

struct cell {
	/* The host's last two armings, ns; 0: none. */
	uint64_t host, host_before;
	uint64_t host_start, host_end;  /* range of the last one */
	bool host_armed;                /* it changed something, as far as known */
	bool ever_armed;                /* any one did, or may have */
	uint64_t last_change;           /* the last arming that changed something, or may have */
	uint64_t full_first, full_last; /* armings that changed every entry of their range */
	uint64_t fault[2];              /* last fault; last one that left its page elsewhere */
	int16_t fault_nid[2];           /* where they left it, -1 unknown */
	bool all_as_host;               /* the last arming of every run is the host's last one */
	uint32_t apart;                 /* bit r: run r perhaps has a page of it elsewhere */
	struct armed {
		uint64_t time; /* the lane's last arming */
		int16_t nid;   /* whose pages that one passed over: REFUSES_NONE, -1 unknown */
		bool as_host;  /* the host armed the same range then */
	} lane[];              /* of each run */
};

struct page_state {
	uint64_t fault; /* last recorded one, ns */
	uint64_t had;   /* whether run r has it: enum nrp_known, in bits 2r and 2r + 1 */
	uint32_t apart; /* bit r: run r perhaps lacks a fault that moved the page */
};

_Static_assert(NRP_MAX_EVIDENCE_RUNS <= 32, "bits of a page's state");
#define ALL_YES (UINT64_MAX / 3 * NRP_KNOWN_YES)

/* Entries of a VMA that the host armed and that no fault has answered; never fewer than there are.
 */
struct vma_state {
	uint64_t armed;
};

struct nrp_scan_evidence {
	struct nrp_pages *cells, *pages, *vmas;
	uint64_t page_size, huge_size;
	unsigned int nr_runs;
};

struct nrp_scan_evidence *nrp_scan_evidence_new(uint64_t page_size, uint64_t huge_size,
						unsigned int nr_runs)
{
	struct nrp_scan_evidence *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->nr_runs = nr_runs;
	e->page_size = page_size;
	e->huge_size = huge_size;
	e->cells = nrp_pages_new(sizeof(struct cell) + nr_runs * sizeof(struct armed));
	e->pages = nrp_pages_new_dense(sizeof(struct page_state));
	e->vmas = nrp_pages_new(sizeof(struct vma_state));
	if (!e->cells || !e->pages || !e->vmas)
		return nrp_scan_evidence_free(e);
	return e;
}

struct nrp_scan_evidence *nrp_scan_evidence_free(struct nrp_scan_evidence *e)
{
	if (e) {
		nrp_pages_free(e->cells);
		nrp_pages_free(e->pages);
		nrp_pages_free(e->vmas);
		free(e);
	}
	return NULL;
}

/* ---- cells of a range --------------------------------------------------------------- */

static struct cell *get_cell(struct nrp_scan_evidence *e, uint32_t space, uint64_t vm_start,
			     uint64_t addr)
{
	return nrp_pages_get(e->cells, space, nrp_cell_of(e->huge_size, vm_start, addr));
}

/* ---- does an arming change anything? ------------------------------------------------- */

/* Did a fault since @time leave a page here that the scanner arms? */
static bool unarmed_since(const struct cell *c, uint64_t time,
			  const struct nrp_scan_evidence_pass *pass)
{
	for (int i = 0; i < 2; i++) {
		if (c->fault[i] <= time)
			continue;
		/* A single thread's scanner passes over what lies on its own node. */
		if (!pass->single_threaded ||
		    (c->fault_nid[i] >= 0 && pass->nid >= 0 && c->fault_nid[i] != pass->nid))
			return true;
	}
	return false;
}

/* What all cells of a range have in common, as one run sees them. */
struct summary {
	bool touched;     /* a page is known to be present and not armed */
	bool as_host;     /* the lane's last arming is the host's, everywhere */
	bool not_newer;   /* ... or older */
	bool not_older;   /* ... or newer */
	bool host_within; /* a whole recorded range that armed something lies in it, and the lane's
			     last arming of all is older than the recorded one before that */
	bool unchanged;   /* since the lane's last arming the host's changed nothing */
	bool never_armed; /* no recorded arming ever changed anything */
	bool apart;       /* which pages lie on the scanner's node is another matter here */
};

static int summarize(struct nrp_scan_evidence *e, unsigned int run,
		     const struct nrp_scan_evidence_range *g,
		     const struct nrp_scan_evidence_pass *pass, struct summary *ret)
{
	struct summary s = { .as_host = true,
			     .not_newer = true,
			     .not_older = true,
			     .unchanged = true,
			     .never_armed = true };
	bool older = true;

	for (uint64_t at = g->start; at < g->end; at = nrp_cell_next(e->huge_size, at)) {
		const struct cell *c = get_cell(e, g->space, g->vm_start, at);
		uint64_t lane;

		if (!c)
			return -ENOMEM;
		lane = c->lane[run].time;
		s.touched |= unarmed_since(c, lane, pass);
		s.as_host &= lane == c->host;
		s.not_newer &= lane <= c->host;
		s.not_older &= lane >= c->host;
		older &= lane <= c->host_before && c->host;
		s.host_within |= c->host && c->host_armed && c->host_start >= g->start &&
				 c->host_end <= g->end;
		/* What the lane passed over then and would not now, does not count. */
		s.unchanged &= lane && lane >= c->last_change &&
			       (c->lane[run].nid == REFUSES_NONE ||
				(pass->nid >= 0 && c->lane[run].nid == pass->nid));
		s.never_armed &= c->host && !c->ever_armed && !c->fault[0];
		s.apart |= pass->single_threaded && c->apart >> run & 1;
	}
	s.host_within &= older;
	*ret = s;
	return 0;
}

/*
 * The record armed nothing in the same range at the same time: what can be armed there, the host
 * had armed. Had the lane, too?
 */
static int nothing_recorded(struct nrp_scan_evidence *e, const struct nrp_scan_evidence_range *g,
			    const struct summary *s, enum nrp_known *ret)
{
	const struct vma_state *v = nrp_pages_get(e->vmas, g->space, g->vm_start);

	if (!v)
		return -ENOMEM;
	if (s->not_older || s->never_armed || s->unchanged || !v->armed)
		*ret = NRP_KNOWN_NO;
	return 0;
}

int nrp_scan_evidence_arms(struct nrp_scan_evidence *e, unsigned int run,
			   const struct nrp_scan_evidence_range *range,
			   const struct nrp_scan_evidence_pass *pass, int64_t recorded_pages,
			   enum nrp_known *ret)
{
	struct summary s;
	int r = summarize(e, run, range, pass, &s);

	if (r < 0)
		return r;
	*ret = NRP_KNOWN_NOT;
	/* The host passed over what lay on its node, or armed what did not: here it may not. */
	if (s.apart)
		return 0;
	if (recorded_pages >= 0 && s.as_host)
		*ret = recorded_pages ? NRP_KNOWN_YES : NRP_KNOWN_NO;
	else if (recorded_pages > 0 && s.not_newer)
		*ret = NRP_KNOWN_YES; /* what was touched since the host's arming is not armed */
	else if (recorded_pages == 0)
		r = nothing_recorded(e, range, &s, ret);
	if (*ret != NRP_KNOWN_NOT)
		return r;
	if (s.touched || s.host_within)
		*ret = NRP_KNOWN_YES;
	else if (recorded_pages < 0 && pass->single_threaded && (s.unchanged || s.never_armed))
		*ret = NRP_KNOWN_NO; /* the record armed nothing shortly before */
	return r;
}

/* ---- what happened ------------------------------------------------------------------ */

int nrp_scan_evidence_lane_range(struct nrp_scan_evidence *e, unsigned int run,
				 const struct nrp_scan_evidence_range *g,
				 const struct nrp_scan_evidence_pass *pass, bool as_host)
{
	for (uint64_t at = g->start; at < g->end; at = nrp_cell_next(e->huge_size, at)) {
		struct cell *c = get_cell(e, g->space, g->vm_start, at);

		if (!c)
			return -ENOMEM;
		c->lane[run] = (struct armed){
			.time = g->time,
			.nid = (int16_t)(pass->single_threaded ? pass->nid : REFUSES_NONE),
			.as_host = as_host,
		};
		c->all_as_host = false;
	}
	return 0;
}

int nrp_scan_evidence_range(struct nrp_scan_evidence *e, const struct nrp_scan_evidence_range *g,
			    int64_t pages)
{
	bool full = pages >= 0 && (uint64_t)pages == (g->end - g->start) / e->page_size;
	struct vma_state *v = nrp_pages_get(e->vmas, g->space, g->vm_start);

	if (!v)
		return -ENOMEM;
	v->armed += pages >= 0 ? (uint64_t)pages : (g->end - g->start) / e->page_size;

	for (uint64_t at = g->start; at < g->end; at = nrp_cell_next(e->huge_size, at)) {
		struct cell *c = get_cell(e, g->space, g->vm_start, at);

		if (!c)
			return -ENOMEM;
		c->host_before = c->host;
		c->host = g->time;
		c->host_start = g->start;
		c->host_end = g->end;
		c->host_armed = pages > 0;
		c->ever_armed |= pages != 0;
		if (pages != 0)
			c->last_change = g->time;
		c->all_as_host = true;
		for (unsigned int r = 0; r < e->nr_runs; r++)
			c->all_as_host &= c->lane[r].time == c->host;
		if (full) {
			c->full_last = g->time;
			if (!c->full_first)
				c->full_first = g->time;
		}
	}
	return 0;
}

/*
 * Censoring rule. The page was touched at the fault and not since the host armed it: at its last
 * arming that changed anything, or at one after which every entry was armed if no fault came in
 * between. The lane has the fault if it armed the page since then. A page that perhaps lies
 * elsewhere was perhaps passed over.
 */
static enum nrp_known has_fault(const struct cell *c, uint64_t fault_before, bool apart,
				const struct nrp_hint_fault *f, unsigned int run)
{
	uint64_t lane = c->lane[run].time, armed = c->host;
	int16_t passed_over = c->lane[run].nid;

	if (!lane || lane <= fault_before)
		return NRP_KNOWN_NO; /* not armed by the lane since its last fault */
	if (apart && passed_over != REFUSES_NONE)
		return NRP_KNOWN_NOT;
	if (lane == c->host)
		return NRP_KNOWN_YES;
	if (c->last_change > fault_before)
		armed = c->last_change;
	if (c->full_last > fault_before && c->full_last < armed)
		armed = c->full_last;
	if (c->full_first > fault_before && c->full_first < armed)
		armed = c->full_first;
	if (passed_over == REFUSES_NONE)
		return lane >= armed ? NRP_KNOWN_YES : NRP_KNOWN_NOT;
	if (passed_over < 0 || NRP_NULL(f, hint_fault, src_nid))
		return NRP_KNOWN_NOT;
	if (f->src_nid != passed_over)
		return lane >= armed ? NRP_KNOWN_YES : NRP_KNOWN_NOT;
	/* Passed over by both, as it lay on the scanner's node; only the host came by again. */
	return lane < armed && c->lane[run].as_host ? NRP_KNOWN_NO : NRP_KNOWN_NOT;
}

static void remember(struct cell *c, const struct nrp_hint_fault *f)
{
	int16_t nid = NRP_NULL(f, hint_fault, mem_nid) ? -1 : f->mem_nid;

	if (c->fault_nid[0] != nid) {
		c->fault[1] = c->fault[0];
		c->fault_nid[1] = c->fault_nid[0];
	}
	c->fault[0] = f->time;
	c->fault_nid[0] = nid;
}

/* Whether each run has the fault, by its own arming. */
static uint64_t had_by_each(const struct nrp_scan_evidence *e, const struct cell *c,
			    const struct page_state *p, const struct nrp_hint_fault *f)
{
	uint64_t had = 0;

	/* Most lanes arm most ranges as the host did. */
	if (c->all_as_host && c->host > p->fault && !p->apart)
		return ALL_YES;
	for (unsigned int r = 0; r < e->nr_runs; r++)
		had |= (uint64_t)has_fault(c, p->fault, p->apart >> r & 1, f, r) << 2 * r;
	return had;
}

int nrp_scan_evidence_fault(struct nrp_scan_evidence *e, uint32_t space, uint64_t vm_start,
			    const struct nrp_hint_fault *f, enum nrp_known *ret)
{
	bool moved = NRP_NULL(f, hint_fault, src_nid) || NRP_NULL(f, hint_fault, mem_nid) ||
		     f->src_nid != f->mem_nid;
	uint32_t size = nrp_fault_pages(f);
	struct cell *c = get_cell(e, space, vm_start, f->addr);
	struct vma_state *v = nrp_pages_get(e->vmas, space, vm_start);
	struct page_state *p =
		nrp_pages_get(e->pages, space, nrp_page_of(f->addr, e->page_size, size));

	if (!c || !p)
		return -ENOMEM;
	if (!v)
		return -ENOMEM;
	/* The first fault since the host armed it. */
	if (c->host && p->fault < c->host)
		v->armed -= v->armed < size ? v->armed : size;
	/* Two threads at the same entry: what holds for the first holds for the second. */
	if (!p->fault || p->fault < c->host)
		p->had = had_by_each(e, c, p, f);
	for (unsigned int r = 0; r < e->nr_runs; r++) {
		ret[r] = (enum nrp_known)(p->had >> 2 * r & 3);
		if (moved && ret[r] != NRP_KNOWN_YES)
			p->apart |= UINT32_C(1) << r;
	}
	p->fault = f->time;
	c->apart |= p->apart;
	remember(c, f);
	return 0;
}
