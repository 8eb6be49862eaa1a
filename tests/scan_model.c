/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan_model.h"

#include <stdlib.h>

/* The kernel's int, which wraps. */
static int32_t as_int(int64_t value)
{
	return (int32_t)(uint32_t)((uint64_t)value & UINT32_MAX);
}

static uint64_t bit_of(int32_t tid)
{
	uint64_t product = (uint64_t)(uint32_t)tid * 0x61C88647u;

	return UINT64_C(1) << ((product & UINT32_MAX) >> 26);
}

void model_fault(struct model *m, int vma, int32_t tid)
{
	if (m->vma[vma].has_state)
		m->vma[vma].current |= bit_of(tid);
}

static void event(struct model *m, enum model_what what, int vma, int first, int last)
{
	if (m->nr_events == MODEL_EVENTS)
		abort();
	if (vma != NO_VMA)
		m->state[m->nr_events] = m->vma[vma];
	m->event[m->nr_events++] =
		(struct model_event){ .what = what, .vma = vma, .first = first, .last = last };
}

static int first_page(const struct model *m, int vma)
{
	int p = 0;

	while (m->page[p].vma != vma)
		p++;
	return p;
}

static int end_page(const struct model *m, int vma)
{
	int p = first_page(m, vma);

	while (p < MODEL_PAGES && m->page[p].vma == vma)
		p++;
	return p;
}

/* First page of any VMA at or above @p; MODEL_PAGES: none. */
static int mapped_page(const struct model *m, int p)
{
	while (p < MODEL_PAGES && m->page[p].vma == NO_VMA)
		p++;
	return p < MODEL_PAGES ? p : MODEL_PAGES;
}

/* What is left of the budget; negative: overdrawn. */
struct budget {
	int pages, virtual_pages;
};

struct pass {
	struct model *m;
	const struct model_pass *p;
	struct budget left;
	int start;
	bool skipped, forced, stopped;
};

static uint64_t clock_of(const struct pass *x)
{
	return x->p->jiffies + (x->m->visits > x->p->tick_at);
}

/* The table of rules a to d; PID_INACTIVE: none of them. */
static enum model_what accessed(struct pass *x, int vma)
{
	struct model *m = x->m;
	const struct model_vma *v = &m->vma[vma];
	int32_t base = m->generation >= 2 ? v->start_seq : 0;

	if (as_int((int64_t)m->seq - base) < 2)
		return ARMED_FIRST_TWO;
	if ((v->previous | v->current) & bit_of(x->p->tid))
		return ARMED_PID;
	if (m->generation >= 2 && m->offset > first_page(m, vma)) {
		event(m, IGNORE_PID, vma, 0, 0);
		return ARMED_PARTIAL;
	}
	if (m->generation >= 3 && m->seq > as_int((int64_t)v->prev_seq + x->p->nr_threads))
		return ARMED_STALE;
	return PID_INACTIVE;
}

static void rotate(struct pass *x, struct model_vma *v)
{
	if (x->m->seq == 0 || clock_of(x) <= v->reset)
		return;
	v->reset += 4 * x->m->delay;
	v->previous = v->current;
	v->current = 0;
}

static void give_state(struct pass *x, struct model_vma *v)
{
	if (v->has_state)
		return;
	*v = (struct model_vma){ .class = v->class,
				 .has_state = true,
				 .next_scan = x->p->jiffies + x->m->delay,
				 .reset = x->p->jiffies + 5 * x->m->delay,
				 .start_seq = x->m->seq,
				 .prev_seq = as_int((int64_t)x->m->seq - 1) };
}

/* An ARMED_ answer, or the reason why the VMA is skipped. */
static enum model_what turn_of(struct pass *x, int vma)
{
	struct model *m = x->m;
	struct model_vma *v = &m->vma[vma];
	enum model_what answer;

	if (v->class >= 0)
		return (enum model_what)v->class;
	if (m->generation == 0)
		return ARMED_UNFILTERED;
	give_state(x, v);
	if (m->seq != 0 && clock_of(x) < v->next_scan)
		return SCAN_DELAY;
	if (m->generation == 1) {
		answer = accessed(x, vma);
		if (answer != PID_INACTIVE)
			rotate(x, v);
		return answer;
	}
	rotate(x, v);
	if (v->prev_seq == m->seq) {
		m->offset = end_page(m, vma);
		return SEQ_COMPLETED;
	}
	if (x->forced)
		return ARMED_FORCED;
	answer = accessed(x, vma);
	x->skipped |= answer == PID_INACTIVE;
	return answer;
}

static void arm(struct pass *x, int vma, enum model_what why)
{
	struct model *m = x->m;
	int end = end_page(m, vma), p;

	if (x->start < first_page(m, vma))
		x->start = first_page(m, vma);
	do {
		int target = x->start + x->left.pages, entries = 0;

		for (p = x->start; p < end && (p < target || p % m->huge_pages); p++) {
			entries += m->page[p].present && !m->page[p].armed;
			m->page[p].armed |= m->page[p].present;
		}
		event(m, why, vma, x->start, p);
		x->left.virtual_pages -= p - x->start;
		if (entries)
			x->left.pages -= p - x->start;
		x->start = p;
		x->stopped = x->left.pages <= 0 || x->left.virtual_pages <= 0;
	} while (!x->stopped && p < end);
}

/* true: the pass ends inside the address space. */
static bool walk(struct pass *x)
{
	struct model *m = x->m;
	int at;

	x->start = m->offset;
	at = mapped_page(m, x->start);
	if (at == MODEL_PAGES) {
		m->seq = as_int((int64_t)m->seq + 1);
		m->begin_wraps++;
		m->offset = x->start = 0;
		at = mapped_page(m, 0);
	}
	while (at < MODEL_PAGES) {
		int vma = m->page[at].vma;
		enum model_what answer;

		if (m->visits < MODEL_VISITS && x->p->fault[m->visits])
			model_fault(m, vma, x->p->fault[m->visits]);
		m->visits++;
		answer = turn_of(x, vma);
		if (answer >= ARMED_UNFILTERED) {
			arm(x, vma, answer);
			if (x->stopped)
				return true;
			if (m->generation >= 1)
				m->vma[vma].prev_seq = m->seq;
			if (x->forced)
				return true;
		} else {
			event(m, answer, vma, 0, 0);
		}
		at = mapped_page(m, end_page(m, vma));
	}
	return false;
}

void model_run(struct model *m, const struct model_pass *pass)
{
	struct pass x = { .m = m, .p = pass, .left = { m->scan_pages, 8 * m->scan_pages } };

	m->nr_events = m->begin_wraps = m->end_wraps = m->visits = 0;
	if (m->generation == 4 && pass->cpuset_one_node) {
		event(m, CPUSET, NO_VMA, 0, 0);
		return;
	}
	if (walk(&x)) {
		m->offset = x.start;
		return;
	}
	if (m->generation >= 2 && x.skipped) {
		x.forced = true;
		if (walk(&x)) {
			m->offset = x.start;
			return;
		}
	}
	m->seq = as_int((int64_t)m->seq + 1);
	m->end_wraps++;
	m->offset = 0;
}
