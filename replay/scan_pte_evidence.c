/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One fault: what it shows of its entry at the time when that was armed; spec scan.md 7.1. */
#include "replay/scan_pte_internal.h"
#include "replay/attempts.h"

#include <errno.h>
#include <string.h>

/* Forks between a process and the ancestor whose scanned entries it may have inherited. */
#define MAX_ANCESTORS 8
/* Bit of a page fault's error code. */
#define ERROR_WRITE 2

/* ---- writes of those that share a page ---------------------------------------------------- */

int nrp_scan_pte_lane_page_fault(struct nrp_scan_pte_lane *l, const struct nrp_page_fault *f)
{
	struct nrp_pte_task *t = nrp_scan_pte_task(l, f->tid);
	struct nrp_pte_family *family;
	uint64_t *written;

	if (!t)
		return -ENOMEM;
	if (!l->writes_since)
		l->writes_since = f->time;
	if (NRP_NULL(f, page_fault, error_code) || !(f->error_code & ERROR_WRITE) || !t->family ||
	    t->gone)
		return 0;
	family = &l->family[t->family];
	if (!t->mm) {
		family->stranger_wrote = f->time;
		return 0;
	}
	written = nrp_pages_get(l->written, t->mm, f->addr / l->page_size);
	if (!written)
		return -ENOMEM;
	if (*written <= family->last_fork)
		*written = f->time;
	return 0;
}

/* The family's address spaces that live, if every live task is in one of them; 0: not known. */
static uint32_t live_members(struct nrp_scan_pte_lane *l, uint32_t family)
{
	const struct nrp_pte_family *f = &l->family[family];
	uint32_t spaces = 0, tasks = 0;

	if (!f->complete || f->nr_members > NRP_PTE_MEMBERS)
		return 0;
	for (uint32_t i = 0; i < f->nr_members; i++) {
		const struct nrp_pte_mm *m = nrp_pages_get(l->mms, f->member[i], 0);

		if (!m || m->family != family)
			return 0; /* the pointer is another's by now */
		spaces += m->live > 0;
		tasks += m->live;
	}
	return tasks == f->live ? spaces : 0;
}

/* A page mapped as often as there are address spaces is in each of them. */
static int see_together(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			const struct nrp_pte_mm *m, uint64_t virtual_page)
{
	uint64_t *together;

	if (!l->writes_since || (uint32_t)f->mapcount + 1 != live_members(l, m->family))
		return 0;
	together = nrp_pages_get(l->together, m->family, virtual_page);
	if (!together)
		return -ENOMEM;
	*together = f->time;
	return 0;
}

/* Did it write to the page between the last fork and @time? */
static bool has_own(struct nrp_scan_pte_lane *l, uint64_t mm, uint64_t virtual_page, uint64_t fork,
		    uint64_t time)
{
	const uint64_t *written = nrp_pages_get(l->written, mm, virtual_page);

	return written && *written > fork && *written <= time;
}

/*
 * Was the anonymous page that @mm alone has now shared when it was armed? Yes, if another had it
 * with @mm since the last fork, and neither wrote to it or left until then; no, if all others did.
 */
static enum nrp_known shared_when_armed(struct nrp_scan_pte_lane *l, uint64_t mm,
					const struct nrp_pte_mm *m, uint64_t virtual_page,
					uint64_t armed)
{
	const struct nrp_pte_family *f = &l->family[m->family];
	const uint64_t *together = nrp_pages_get(l->together, m->family, virtual_page);
	uint64_t fork = f->last_fork;
	bool proved, others = false;

	if (!together || !l->writes_since || l->writes_since > fork || armed <= fork ||
	    f->stranger_wrote > fork || f->stranger_left > fork || !live_members(l, m->family))
		return NRP_KNOWN_NOT;
	if (has_own(l, mm, virtual_page, fork, armed))
		return NRP_KNOWN_NO;
	proved = *together > fork && *together <= armed;
	for (uint32_t i = 0; i < f->nr_members; i++) {
		const struct nrp_pte_mm *other = nrp_pages_get(l->mms, f->member[i], 0);

		if (f->member[i] != mm && other && (other->live || other->left > armed))
			others |= !has_own(l, f->member[i], virtual_page, fork, armed);
	}
	return !others ? NRP_KNOWN_NO : proved ? NRP_KNOWN_YES : NRP_KNOWN_NOT;
}

/* The last scan of the page before the last fork, here or in an ancestor; 0: none. */
static int armed_before_fork(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			     const struct nrp_pte_mm *m, uint64_t vm_start, uint64_t *ret)
{
	uint64_t fork = nrp_scan_pte_last_fork(l, m), latest = 0, mm = f->mm, until = fork;

	for (int i = 0; i < MAX_ANCESTORS && mm; i++) {
		const struct nrp_pte_mm *ancestor = nrp_pages_get(l->mms, mm, 0);
		struct nrp_pte_cell *c =
			ancestor ? nrp_scan_pte_cell(l, mm, vm_start, f->addr) : NULL;
		uint64_t armed;

		if (!c)
			return -ENOMEM;
		nrp_scan_pte_forget_old(c, ancestor);
		armed = c->armed <= until ? c->armed : c->before_fork;
		if (armed > until)
			armed = until; /* scanned between this fork and a later one */
		if (armed > latest)
			latest = armed;
		until = ancestor->born < until ? ancestor->born : until;
		mm = ancestor->parent_mm;
	}
	*ret = latest;
	return 0;
}

/* Could another address space of the family be alive after @time? */
static bool relatives_since(const struct nrp_scan_pte_lane *l, uint64_t mm,
			    const struct nrp_pte_mm *m, uint64_t time)
{
	const struct nrp_pte_family *f = &l->family[m->family];

	if (!f->complete || (f->live > m->live && f->alone_mm != mm))
		return true;
	for (int i = 0; i < 2; i++)
		if (f->left[i].time >= time && f->left[i].time && f->left[i].mm != mm)
			return true;
	return false;
}

/* Who scanned it, and from where. */
static void find_scan(const struct nrp_pte_cell *c, const struct nrp_hint_fault *f,
		      struct nrp_scan_pte *pte)
{
	pte->single_threaded = c->armed ? c->single_threaded : NRP_KNOWN_NOT;
	if (c->armed && c->nid >= 0 && !NRP_NULL(f, hint_fault, src_nid))
		pte->local = nrp_known_of(c->nid == f->src_nid);
}

/* As many map the shared page as the family has tasks: each of its address spaces does. */
static int note_everyones(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			  const struct nrp_pte_mm *m)
{
	const struct nrp_pte_family *family = &l->family[m->family];
	struct nrp_pte_everyones *e;

	if (!family->complete || (uint32_t)f->mapcount + 1 < family->live)
		return 0;
	e = nrp_pages_get(l->everyones, m->family, f->addr / l->page_size);
	if (!e)
		return -ENOMEM;
	*e = (struct nrp_pte_everyones){ .time = f->time, .fork = nrp_scan_pte_last_fork(l, m) };
	return 0;
}

uint64_t nrp_scan_pte_lane_shared_until(struct nrp_scan_pte_lane *l, uint64_t mm, uint64_t addr,
					uint64_t from)
{
	const struct nrp_pte_mm *m = nrp_pages_get(l->mms, mm, 0);
	const struct nrp_pte_everyones *e;

	if (!m || !m->family || m->born > from)
		return 0;
	e = nrp_pages_get(l->everyones, m->family, addr / l->page_size);
	return e && e->time && e->fork <= from ? e->time : 0;
}

static int find_sharing(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			const struct nrp_pte_page *p, struct nrp_scan_pte *pte,
			struct nrp_pte_evidence *e)
{
	uint64_t vm_start = NRP_NULL(f, hint_fault, vm_start) ? 0 : f->vm_start, before;
	const struct nrp_pte_mm *found = nrp_pages_get(l->mms, f->mm, 0), *m;
	const struct nrp_pte_cell *c = nrp_scan_pte_cell(l, f->mm, vm_start, f->addr);
	struct nrp_pte_mm copy;
	int r;

	if (!found || !c)
		return -ENOMEM;
	copy = *found; /* others are looked up meanwhile */
	m = &copy;
	find_scan(c, f, pte);
	if (c->armed && !relatives_since(l, f->mm, m, c->armed)) {
		/* Nobody to share an anonymous page with. */
		if (p->anonymous || e->pmd == NRP_KNOWN_YES)
			e->shared = NRP_KNOWN_NO;
		return 0;
	}
	if (!e->counts || e->base != NRP_KNOWN_YES || !p->anonymous || f->mapcount < 0)
		return 0;
	if (f->mapcount == 0) {
		e->shared = shared_when_armed(l, f->mm, m, f->addr / l->page_size, c->armed);
		return 0;
	}
	if (see_together(l, f, m, f->addr / l->page_size) < 0)
		return -ENOMEM;
	/* Shared now, so it was since the last fork; all scans that may have armed it are later. */
	r = armed_before_fork(l, f, m, vm_start, &before);
	if (r < 0)
		return r;
	if (c->armed && (p->fault ? p->fault >= before : !before && l->family[m->family].complete))
		e->shared = NRP_KNOWN_YES;
	return e->shared == NRP_KNOWN_YES ? note_everyones(l, f, m) : 0;
}

/* References of other faults on the same page frame, that certainly had one at this time. */
static int32_t references_of_others(const struct nrp_scan_pte_lane *l,
				    const struct nrp_hint_fault *f)
{
	int32_t n = 0;

	if (!l->own_references || NRP_NULL(f, hint_fault, page))
		return 0;
	for (size_t i = 0; i < NRP_PTE_HOLDERS; i++) {
		const struct nrp_pte_holder *h = &l->holders[i];

		n += h->frame == f->page && h->time < f->time && f->time < h->until;
	}
	return n;
}

static void note_holder(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f)
{
	if (f->attempt == NRP_ATTEMPT_NONE || NRP_NULL(f, hint_fault, page))
		return;
	l->holders[l->next_holder++ % NRP_PTE_HOLDERS] = (struct nrp_pte_holder){
		.frame = f->page, .time = f->time, .until = f->time + f->attempt_delay
	};
}

/* Of a page that is shared at this fault: what the whole capture shows of it, or learns. */
static int ask_capture(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f, uint32_t family,
		       uint64_t fork, struct nrp_pte_page *p)
{
	struct nrp_proved_page page = { .mm = f->mm,
					.vfn = f->addr / l->page_size,
					.frame = NRP_NULL(f, hint_fault, page) ? 0 : f->page };
	const struct nrp_pte_mm *shown;
	uint64_t mm;
	int r;

	if (p->anonymous && l->learned)
		return nrp_scan_pte_proofs_add(l->learned, &page, f->time, fork);
	if (p->anonymous || !l->known)
		return 0;
	r = nrp_scan_pte_proofs_hold(l->known, &page, f->time, &mm);
	if (r <= 0)
		return r;
	shown = nrp_pages_get(l->mms, mm, 0);
	if (!shown)
		return -ENOMEM;
	p->anonymous = family && shown->family == family;
	return 0;
}

/* Neighbouring frames as neighbouring keys: the kernel's page structures have a cache line each. */
static uint64_t frame_key(uint64_t frame)
{
	return frame >> 6 | frame << 58;
}

/*
 * Is the page anonymous? Proved where its references are its mappings, once for every relative that
 * has the same page at the same address.
 */
static int prove_anonymous(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			   const struct nrp_pte_evidence *e, struct nrp_pte_page *p)
{
	const struct nrp_pte_mm *m = nrp_pages_get(l->mms, f->mm, 0);
	uint64_t *address = NULL;

	if (!m)
		return -ENOMEM;
	if (!NRP_NULL(f, hint_fault, page)) {
		address = nrp_pages_get(l->proved, m->family, frame_key(f->page));
		if (!address)
			return -ENOMEM;
	}
	if (e->counts && e->base == NRP_KNOWN_YES && f->mapcount >= 0 &&
	    f->refcount == f->mapcount + 1 + l->own_references + references_of_others(l, f))
		p->anonymous = true;
	else if (address && e->base == NRP_KNOWN_YES && *address == f->addr / l->page_size)
		p->anonymous = true;
	if (e->counts && e->base == NRP_KNOWN_YES && f->mapcount >= 1 &&
	    ask_capture(l, f, m->family, nrp_scan_pte_last_fork(l, m), p) < 0)
		return -ENOMEM;
	if (address && p->anonymous)
		*address = f->addr / l->page_size;
	return 0;
}

/* What the fault shows of its mapping and of its page's size. */
struct nrp_pte_evidence nrp_scan_pte_look_at(const struct nrp_scan_pte_lane *l,
					     const struct nrp_hint_fault *f,
					     struct nrp_scan_pte *pte)
{
	struct nrp_pte_evidence e = { NRP_NULL(f, hint_fault, mapcount) == 0 &&
					      NRP_NULL(f, hint_fault, refcount) == 0,
				      NRP_KNOWN_NOT, NRP_KNOWN_NOT, NRP_KNOWN_NOT };

	if (!NRP_NULL(f, hint_fault, vm_flags)) {
		pte->cow = nrp_known_of(nrp_vma_is_cow(f->vm_flags));
		pte->vm_shared = nrp_known_of(nrp_vma_is_shared(f->vm_flags));
	}
	if (!NRP_NULL(f, hint_fault, pages)) {
		e.base = nrp_known_of(f->pages == 1);
		e.pmd = nrp_known_of(f->pages == l->huge_pages);
		pte->large = nrp_known_of(f->pages != 1);
	}
	return e;
}

/* Pins last: what is not pinned at the fault was not pinned at the scan. */
static void find_pins(const struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
		      struct nrp_scan_pte *pte)
{
	if (NRP_NULL(f, hint_fault, refcount))
		return;
	if (f->refcount < NRP_PTE_PIN_REFERENCES)
		pte->refcount = (struct nrp_pte_count){ 1, NRP_PTE_PIN_REFERENCES - 1 };
	/* One reference: the mapping that faults. */
	if (f->refcount - l->own_references <= 1)
		pte->pinned = NRP_KNOWN_NO;
}

/* Counts at the scan. Others may hold references that come and go: those stay open. */
static void find_counts(const struct nrp_pte_page *p, const struct nrp_pte_evidence *e,
			struct nrp_scan_pte *pte)
{
	if (p->anonymous || (e->pmd == NRP_KNOWN_YES && pte->cow == NRP_KNOWN_YES))
		pte->file = NRP_KNOWN_NO;
	if (e->shared == NRP_KNOWN_NO) {
		pte->mapcount = pte->folio_mapcount = nrp_pte_count(0);
		pte->many_mms = NRP_KNOWN_NO;
	} else if (e->shared == NRP_KNOWN_YES) {
		pte->mapcount.min = 1;
		pte->refcount.min = 2;
	}
}

int nrp_scan_pte_gather(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			struct nrp_scan_pte *pte, struct nrp_pte_evidence *e)
{
	struct nrp_pte_page *p;
	int r;

	if (NRP_NULL(f, hint_fault, mm))
		return 0;
	r = nrp_scan_pte_live_in(l, f->tid, f->mm);
	if (r < 0)
		return r;
	p = nrp_pages_get(l->pages, f->mm, nrp_page_of(f->addr, l->page_size, nrp_fault_pages(f)));
	if (!p)
		return -ENOMEM;
	/* No page has fewer references than mappings: whoever counts on more is wrong. */
	if (e->counts && e->base == NRP_KNOWN_YES && f->mapcount >= 0 &&
	    f->refcount == f->mapcount + 1)
		l->own_references = 0;
	find_pins(l, f, pte);
	r = prove_anonymous(l, f, e, p);
	if (r == 0)
		r = find_sharing(l, f, p, pte, e);
	if (r == 0)
		find_counts(p, e, pte);
	p->fault = f->time;
	if (r == 0)
		note_holder(l, f);
	return r;
}
