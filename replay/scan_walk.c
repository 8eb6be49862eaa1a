/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_walk.h"
#include "replay/host.h"
#include "replay/pages.h"
#include "replay/policies/ticks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_HUGE_SIZE (UINT64_C(2) << 20)

uint64_t nrp_scan_size_mb(const struct nrp_host_facts *facts)
{
	const uint64_t most = NRP_MAX_SCAN_RANGE >> 20;
	uint64_t size = nrp_host_tunables(facts).size_mb;

	return size < most ? size : most;
}

void nrp_scan_policy_delay(struct nrp_scan_vma_policy *policy, uint64_t ms,
			   const struct nrp_host_facts *facts)
{
	policy->delay_jiffies = nrp_ms_to_ticks(ms, (uint64_t)facts->hz);
	policy->window_jiffies = nrp_ms_to_ticks(4 * ms, (uint64_t)facts->hz);
}

int nrp_scan_policy_of(struct nrp_scan_vma_policy *ret, const struct nrp_host_facts *facts,
		       struct nrp_error *err)
{
	uint64_t page = nrp_host_page_size(facts);

	if (facts->hz <= 0)
		return nrp_fail(err, NRP_INPUT, -ENODATA, NULL, -1,
				"capture with probes that record jiffies, or say --set hz=",
				"the kernel's ticks a second are not known");
	*ret = (struct nrp_scan_vma_policy){
		.page_size = page,
		.huge_size = facts->huge_pages > 0 ? (uint64_t)facts->huge_pages * page
						   : DEFAULT_HUGE_SIZE,
		.scan_pages = (nrp_scan_size_mb(facts) << 20) / page,
	};
	nrp_scan_policy_delay(ret, nrp_host_scan_delay_ms(facts), facts);
	return 0;
}

/* ---- one walk ----------------------------------------------------------------------- */

struct current {
	uint32_t space;
	bool known;
};

struct walker {
	const struct nrp_scan_trace *trace;
	const struct nrp_scan_walk_ops *ops;
	struct nrp_scan_space *space; /* [trace->nr_spaces] */
	struct nrp_pages *mms;        /* payload: struct current */
	struct nrp_scan_area *seen;   /* scratch: VMAs that a pass met */
	size_t room;
	size_t hit; /* index of the VMA found last */
	struct nrp_cursor *fault, *unmap;
	const void *next_fault, *next_unmap;
	struct nrp_scan_meanwhile meanwhile;
	/* Faults read ahead of their time, in order: those at [taken, count). */
	struct {
		struct nrp_hint_fault *at;
		size_t taken, count, room;
	} ahead;
};

static enum nrp_scan_vma_class class_of(const struct nrp_scan_decision *d)
{
	if (d->range)
		return NRP_SCAN_VMA_ELIGIBLE;
	switch (d->reason) {
	case NRP_SKIP_UNSUITABLE:
		return NRP_SCAN_VMA_UNSUITABLE;
	case NRP_SKIP_SHARED_RO:
		return NRP_SCAN_VMA_SHARED_RO;
	case NRP_SKIP_INACCESSIBLE:
		return NRP_SCAN_VMA_INACCESSIBLE;
	default:
		return NRP_SCAN_VMA_ELIGIBLE;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct nrp_scan_area *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The VMAs of a pass, each once, ascending. Those of a damaged record may overlap: they go. */
static int collect(struct walker *w, const struct nrp_scan_visit *v, size_t *ret_count)
{
	size_t n = 0;

	if (v->count > w->room) {
		struct nrp_scan_area *grown = reallocarray(w->seen, v->count, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->seen = grown;
		w->room = v->count;
	}
	for (size_t i = 0; i < v->count; i++) {
		const struct nrp_scan_decision *d = &w->trace->decision[v->first + i];

		w->seen[i] = (struct nrp_scan_area){ .start = d->vm_start,
						     .end = d->vm_end,
						     .class = class_of(d),
						     .report = NRP_NO_AREA };
	}
	if (v->count)
		qsort(w->seen, v->count, sizeof(*w->seen), by_start);
	for (size_t i = 0; i < v->count; i++)
		if (!n || w->seen[i].start >= w->seen[n - 1].end)
			w->seen[n++] = w->seen[i];
	*ret_count = n;
	return 0;
}

/*
 * Where a pass has looked: upwards from its offset, and after each step down from wherever it began
 * again; nothing it did not report lies there.
 */
static size_t stretches(const struct walker *w, const struct nrp_scan_visit *v,
			struct nrp_scan_stretch ret[3])
{
	const struct nrp_scan_decision *d = &w->trace->decision[v->first];
	uint64_t from = v->rec.scan_offset, last = from;
	size_t n = 0;

	if (!w->trace->sees_all)
		return 0;
	for (size_t i = 0; i < v->count; i++) {
		bool again = i && d[i].vm_end <= last && d[i].vm_end != d[i - 1].vm_end;

		if (!i && d[i].vm_end <= from)
			again = true; /* nothing was left above the offset */
		if (again && n < 2) {
			ret[n++] = (struct nrp_scan_stretch){ from, UINT64_MAX };
			from = d[i].vm_end > v->rec.scan_offset ? d[i].vm_start : 0;
		}
		last = d[i].vm_end;
	}
	if (nrp_scan_visit_reached_end(w->trace, v))
		last = UINT64_MAX;
	ret[n++] = (struct nrp_scan_stretch){ from, last };
	return n;
}

/*
 * A VMA that is met for the first time though it has been scanned before, in an address space older
 * than the capture: its state begins with what the record says.
 */
static void adopt(const struct nrp_scan_decision *d, const struct nrp_scan_pass *p,
		  struct nrp_scan_vma *vma)
{
	/* In sequence 0 it may be new. A fork sets the sequence of old ones to 0, too. */
	if (vma->has_state || (p->mm_scan_seq == 0 && !d->state_known))
		return;
	if (d->state_known) {
		vma->state = d->state;
		vma->has_state = true;
	} else if (!d->range && d->reason >= NRP_SKIP_PID_INACTIVE) {
		int32_t behind = d->reason == NRP_SKIP_SEQ_COMPLETED ? 0 : -1;

		vma->state = (struct nrp_scan_vma_state){
			.pids_reset = p->jiffies,
			.start_seq = nrp_scan_seq_add(p->mm_scan_seq, -2),
			.prev_seq = nrp_scan_seq_add(p->mm_scan_seq, behind)
		};
		vma->has_state = true;
	}
}

static void adopt_states(const struct walker *w, const struct nrp_scan_visit *v,
			 struct nrp_scan_space *space)
{
	for (size_t i = v->first; i < v->first + v->count; i++) {
		const struct nrp_scan_decision *d = &w->trace->decision[i];
		size_t at = nrp_scan_space_find(space, d->vm_start);

		for (size_t l = 0; at != NRP_NO_AREA && l < space->nr_lanes; l++)
			adopt(d, &v->rec, &space->lane[l].vma[at]);
	}
}

/* Brings the VMA list up to what the pass met. */
static int meet(struct walker *w, const struct nrp_scan_visit *v)
{
	struct nrp_scan_space *space = &w->space[v->space];
	struct current *c = nrp_pages_get(w->mms, v->rec.mm, 0);
	struct nrp_scan_stretch walked[3];
	size_t nr_seen;
	int r;

	if (!c)
		return -ENOMEM;
	if (!c->known || c->space != v->space) {
		if (c->known)
			nrp_scan_space_clear(&w->space[c->space]);
		*c = (struct current){ .space = v->space, .known = true };
		if (nrp_scan_space_init(space, w->ops->nr_lanes) < 0)
			return -ENOMEM;
	}
	if (!v->judged)
		return 0;
	r = collect(w, v, &nr_seen);
	if (r < 0)
		return r;
	r = nrp_scan_space_see(space, w->seen, nr_seen, walked, stretches(w, v, walked));
	if (r == 0)
		adopt_states(w, v, space);
	return r;
}

/* Is the VMA in the list as it is? Faults in the same one follow each other: it is looked at first.
 */
static bool is_known(struct walker *w, uint32_t number, const struct nrp_scan_area *area)
{
	const struct nrp_scan_space *s = &w->space[number];
	const struct nrp_scan_area *at;

	if (w->hit >= s->nr_areas || s->area[w->hit].start != area->start)
		w->hit = nrp_scan_space_find(s, area->start);
	if (w->hit == NRP_NO_AREA)
		return false;
	at = &s->area[w->hit];
	return at->start == area->start && at->end == area->end && at->class == area->class;
}

/*
 * Makes sure of the fault's VMA; *ret is its address space, NULL: not known. @in_pass: the VMA that
 * the pass met stays as it was then, even if it was cut since.
 */
static int place_fault(struct walker *w, const struct nrp_hint_fault *f, bool in_pass,
		       const struct current **ret)
{
	const uint64_t needed = NRP_BIT(hint_fault, mm) | NRP_BIT(hint_fault, vm_start) |
				NRP_BIT(hint_fault, vm_end);
	struct nrp_scan_area area = { .start = f->vm_start,
				      .end = f->vm_end,
				      .class = NRP_SCAN_VMA_ELIGIBLE,
				      .report = NRP_NO_AREA };
	const struct current *c;

	*ret = NULL;
	if (f->null & needed || f->addr < f->vm_start || f->addr >= f->vm_end)
		return 0;
	c = nrp_pages_get(w->mms, f->mm, 0);
	if (!c)
		return -ENOMEM;
	if (!c->known)
		return 0;
	*ret = c;
	if (in_pass && nrp_scan_space_find(&w->space[c->space], f->addr) != NRP_NO_AREA)
		return 0;
	if (is_known(w, c->space, &area))
		return 0;
	return nrp_scan_space_see(&w->space[c->space], &area, 1, NULL, 0);
}

static int keep_fault(struct nrp_scan_meanwhile *m, const struct nrp_hint_fault *f)
{
	if (m->count == m->room) {
		size_t room = m->room ? m->room * 2 : 256;
		void *grown = reallocarray(m->at, room, sizeof(*m->at));

		if (!grown)
			return -ENOMEM;
		m->at = grown;
		m->room = room;
	}
	m->at[m->count++].fault = *f;
	return 0;
}

static int see_fault(struct walker *w, const struct nrp_hint_fault *f)
{
	const struct nrp_scan_space *s;
	const struct current *c;
	int r = place_fault(w, f, false, &c);

	if (r < 0 || !c)
		return r;
	s = &w->space[c->space];
	if (w->hit >= s->nr_areas || f->addr < s->area[w->hit].start ||
	    f->addr >= s->area[w->hit].end)
		w->hit = nrp_scan_space_find(s, f->addr);
	return w->ops->fault(w->ops->context, c->space, &w->space[c->space], w->hit, f);
}

/*
 * Deals the faults that came while a pass ran to their VMAs; drops those whose VMA a later fault
 * showed to have been cut.
 */
static int deal_meanwhile(struct walker *w, const struct nrp_scan_space *space)
{
	struct nrp_scan_meanwhile *m = &w->meanwhile;
	size_t kept = 0;

	if (space->nr_areas > m->first_room) {
		size_t *grown = reallocarray(m->first, space->nr_areas, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->first = grown;
		m->first_room = space->nr_areas;
	}
	for (size_t i = 0; i < space->nr_areas; i++)
		m->first[i] = NRP_NO_AREA;
	for (size_t i = 0; i < m->count; i++) {
		m->at[i].area = nrp_scan_space_find(space, m->at[i].fault.addr);
		if (m->at[i].area != NRP_NO_AREA)
			m->at[kept++] = m->at[i];
	}
	m->count = kept;
	for (size_t i = m->count; i-- > 0;) {
		m->at[i].next = m->first[m->at[i].area];
		m->first[m->at[i].area] = i;
	}
	return 0;
}

static int see_unmap(struct walker *w, const struct nrp_munmap *u)
{
	const uint64_t needed = NRP_BIT(munmap, mm) | NRP_BIT(munmap, start) |
				NRP_BIT(munmap, len) | NRP_BIT(munmap, zap_time);
	const struct current *c;

	if (u->null & needed || u->len > UINT64_MAX - u->start)
		return 0;
	c = nrp_pages_get(w->mms, u->mm, 0);
	if (!c)
		return -ENOMEM;
	return c->known ? nrp_scan_space_unmap(&w->space[c->space], u->start, u->start + u->len)
			: 0;
}

/* ---- in time order ------------------------------------------------------------------ */

static int advance(struct nrp_cursor *cursor, const void **next, struct nrp_error *err)
{
	int r = nrp_cursor_next(cursor, next, err);

	if (r == 0)
		*next = NULL;
	return r < 0 ? r : 0;
}

static int open_cursors(struct walker *w, struct nrp_store *store, int64_t capture_id,
			struct nrp_error *err)
{
	uint64_t columns = NRP_BIT(hint_fault, time) | NRP_BIT(hint_fault, tid) |
			   NRP_BIT(hint_fault, mm) | NRP_BIT(hint_fault, addr) |
			   NRP_BIT(hint_fault, vm_start) | NRP_BIT(hint_fault, vm_end) |
			   NRP_BIT(hint_fault, pages) | NRP_BIT(hint_fault, src_nid) |
			   NRP_BIT(hint_fault, mem_nid);
	int r = nrp_cursor_open(&w->fault, store, capture_id, NRP_HINT_FAULT, columns, err);

	if (r == 0)
		r = nrp_cursor_open(&w->unmap, store, capture_id, NRP_MUNMAP, ~UINT64_C(0), err);
	if (r == 0)
		r = advance(w->fault, &w->next_fault, err);
	if (r == 0)
		r = advance(w->unmap, &w->next_unmap, err);
	return r;
}

/* The next fault, read ahead or not; NULL: none. */
static const struct nrp_hint_fault *peek_fault(const struct walker *w)
{
	if (w->ahead.taken < w->ahead.count)
		return &w->ahead.at[w->ahead.taken];
	return w->next_fault;
}

static int next_fault(struct walker *w, struct nrp_error *err)
{
	if (w->ahead.taken < w->ahead.count) {
		w->ahead.taken++;
		return 0;
	}
	return advance(w->fault, &w->next_fault, err);
}

/* Everything before @time that is no pass. */
static int catch_up(struct walker *w, uint64_t time, struct nrp_error *err)
{
	int r = 0;

	while (r == 0) {
		const struct nrp_hint_fault *f = peek_fault(w);
		const struct nrp_munmap *u = w->next_unmap;
		uint64_t fault_time = f ? f->time : UINT64_MAX;
		uint64_t unmap_time = u ? u->time : UINT64_MAX;

		if (fault_time <= unmap_time && f && fault_time < time) {
			r = see_fault(w, f);
			if (r == 0)
				r = next_fault(w, err);
		} else if (u && unmap_time < time) {
			r = see_unmap(w, u);
			if (r == 0)
				r = advance(w->unmap, &w->next_unmap, err);
		} else {
			break;
		}
	}
	return r;
}

static int put_ahead(struct walker *w, const struct nrp_hint_fault *f)
{
	if (w->ahead.count == w->ahead.room) {
		size_t room = w->ahead.room ? w->ahead.room * 2 : 256;
		struct nrp_hint_fault *grown = reallocarray(w->ahead.at, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		w->ahead.at = grown;
		w->ahead.room = room;
	}
	w->ahead.at[w->ahead.count++] = *f;
	return 0;
}

/* Is this a fault in the address space of the pass? Then it is kept for it. */
static int take_fault(struct walker *w, const struct nrp_hint_fault *f,
		      const struct nrp_scan_visit *v, bool *ret_taken)
{
	const struct current *c;
	int r;

	*ret_taken = false;
	if (NRP_NULL(f, hint_fault, mm) || f->mm != v->rec.mm)
		return 0;
	*ret_taken = true;
	r = place_fault(w, f, true, &c);
	return r < 0 || !c ? r : keep_fault(&w->meanwhile, f);
}

/*
 * Collects the faults of the pass's own address space before @until; others stay for later: passes
 * of theirs may come before them.
 */
static int gather(struct walker *w, const struct nrp_scan_visit *v, uint64_t until,
		  struct nrp_error *err)
{
	size_t left = w->ahead.taken;
	bool taken;
	int r = 0;

	w->meanwhile.count = 0;
	for (size_t i = w->ahead.taken; r == 0 && i < w->ahead.count; i++) {
		r = 0;
		taken = false;
		if (w->ahead.at[i].time < until)
			r = take_fault(w, &w->ahead.at[i], v, &taken);
		if (!taken)
			w->ahead.at[left++] = w->ahead.at[i];
	}
	w->ahead.count = left;
	if (w->ahead.taken == w->ahead.count)
		w->ahead.taken = w->ahead.count = 0;
	while (r == 0 && w->next_fault &&
	       ((const struct nrp_hint_fault *)w->next_fault)->time < until) {
		r = take_fault(w, w->next_fault, v, &taken);
		if (r == 0 && !taken)
			r = put_ahead(w, w->next_fault);
		if (r == 0)
			r = advance(w->fault, &w->next_fault, err);
	}
	return r;
}

/* A pass's faults are its own until it ends, or until another pass over its VMAs begins. */
static uint64_t end_of(const struct walker *w, size_t index)
{
	const struct nrp_scan_visit *v = &w->trace->pass[index];
	uint64_t until = NRP_NULL(&v->rec, scan_pass, end_time) ? v->rec.time : v->rec.end_time;

	for (size_t i = index + 1; i < w->trace->nr_passes && w->trace->pass[i].rec.time < until;
	     i++)
		if (w->trace->pass[i].walked && w->trace->pass[i].space == v->space)
			return w->trace->pass[i].rec.time;
	return until;
}

static int see_pass(struct walker *w, size_t index, struct nrp_error *err)
{
	const struct nrp_scan_visit *v = &w->trace->pass[index];
	struct nrp_scan_space *space = &w->space[v->space];
	int r = catch_up(w, v->rec.time, err);

	if (r == 0)
		r = meet(w, v);
	if (r == 0)
		r = gather(w, v, end_of(w, index), err);
	if (r == 0)
		r = deal_meanwhile(w, space);
	if (r == 0)
		r = w->ops->pass(w->ops->context, index, space, &w->meanwhile);
	return r;
}

int nrp_scan_walk(const struct nrp_scan_trace *trace, struct nrp_store *store,
		  const struct nrp_capture *capture, const struct nrp_scan_walk_ops *ops,
		  struct nrp_error *err)
{
	struct walker w = { .trace = trace, .ops = ops };
	int r = 0;

	w.mms = nrp_pages_new(sizeof(struct current));
	w.space = calloc(trace->nr_spaces ? trace->nr_spaces : 1, sizeof(*w.space));
	if (!w.mms || !w.space)
		r = -ENOMEM;
	if (r == 0)
		r = open_cursors(&w, store, capture->id, err);
	for (size_t i = 0; r == 0 && i < trace->nr_passes; i++)
		if (trace->pass[i].walked)
			r = see_pass(&w, i, err);
	if (r == 0)
		r = catch_up(&w, UINT64_MAX, err);
	if (r == -ENOMEM)
		nrp_fail_nomem(err);
	else if (r == -E2BIG)
		nrp_fail(err, NRP_INPUT, r, NULL, -1, "", "an address space has too many VMAs");
	nrp_cursor_close(w.fault);
	nrp_cursor_close(w.unmap);
	for (uint32_t s = 0; w.space && s < trace->nr_spaces; s++)
		nrp_scan_space_clear(&w.space[s]);
	free(w.space);
	free(w.seen);
	free(w.ahead.at);
	free(w.meanwhile.at);
	free(w.meanwhile.first);
	nrp_pages_free(w.mms);
	return r;
}
