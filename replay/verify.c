/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/verify.h"
#include "replay/attempts.h"
#include "replay/host.h"
#include "replay/pages.h"
#include "replay/verify_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nrp_verify_note(struct nrp_verify *v, const char *code, const char *fmt, ...)
{
	va_list ap;

	if (v->nr_notes == NRP_MAX_VERIFY_NOTES)
		return;
	v->note[v->nr_notes].code = code;
	va_start(ap, fmt);
	vsnprintf(v->note[v->nr_notes].text, sizeof(v->note[0].text), fmt, ap);
	va_end(ap);
	v->nr_notes++;
}

/* ---- one pass over the hint faults -------------------------------------------------- */

struct fault_pass {
	struct nrp_verify *v;
	const struct nrp_host_facts *facts;
	struct nrp_filter_check *filter;
	struct nrp_trace_counts counts;
	struct nrp_pages *pages;   /* payload: struct seen_page */
	struct nrp_pages *mms;     /* payload: struct nrp_coverage, page 0 */
	struct nrp_coverage *last; /* of last_mm; no other is made while faults are read */
	uint64_t last_mm;
};

struct seen_page {
	uint32_t faults;
	uint32_t nodes; /* bit n: from node n, or from one above 31 */
};

static void count_sight(struct fault_pass *p, struct nrp_coverage *c, struct seen_page *seen)
{
	if (seen->faults < 3) {
		p->v->pages_seen[seen->faults]++;
		c->pages_seen[seen->faults]++;
		if (seen->faults) {
			p->v->pages_seen[seen->faults - 1]--;
			c->pages_seen[seen->faults - 1]--;
		}
	}
	seen->faults += seen->faults < UINT32_MAX;
}

static int see_fault(struct fault_pass *p, const struct nrp_hint_fault *f)
{
	uint64_t size = nrp_host_page_size(p->facts);
	uint32_t pages = nrp_fault_pages(f);
	struct nrp_coverage *c;
	struct seen_page *seen;

	nrp_filter_check_fault(p->filter, f);
	nrp_count_fault(&p->counts, f, p->facts);
	p->v->unreported_faults += NRP_NULL(f, hint_fault, tnf_flags);
	p->v->without_last_cpupid += NRP_NULL(f, hint_fault, last_cpupid);
	p->v->shared_faults += (!NRP_NULL(f, hint_fault, mapcount) && f->mapcount > 0) ||
			       (!NRP_NULL(f, hint_fault, vm_flags) && f->vm_flags & NRP_VM_SHARED);
	if (NRP_NULL(f, hint_fault, mm))
		return 0;
	seen = nrp_pages_get(p->pages, f->mm, nrp_page_of(f->addr, size, pages));
	if (!seen)
		return -ENOMEM;
	c = p->last && p->last_mm == f->mm ? p->last : nrp_pages_get(p->mms, f->mm, 0);
	if (!c)
		return -ENOMEM;
	p->last = c;
	p->last_mm = f->mm;
	count_sight(p, c, seen);
	if (!NRP_NULL(f, hint_fault, this_nid) && f->this_nid >= 0)
		seen->nodes |= UINT32_C(1) << (f->this_nid < 31 ? f->this_nid : 31);
	c->faults++;
	return 0;
}

static int pass_faults(struct fault_pass *p, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_HINT_FAULT, ~UINT64_C(0), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		r = see_fault(p, row);
		if (r < 0)
			nrp_fail_nomem(err);
	}
	nrp_cursor_close(cursor);
	return r;
}

/* Pages whose faults' nodes are not known count under 0 nodes. */
static void count_faulters(struct fault_pass *p)
{
	const struct seen_page *seen;
	size_t position = 0;
	uint64_t mm, page;

	while ((seen = nrp_pages_next(p->pages, &position, &mm, &page)))
		nrp_faulters_add(&p->v->faulters, seen->nodes, seen->faults);
}

/* ---- scan passes per address space -------------------------------------------------- */

struct mm_scan {
	uint64_t seen;
	int64_t last_seq;
	uint64_t increments; /* full traversals finished */
	int32_t tgid;        /* 0: not known */
};

static int count_passes(struct fault_pass *p, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_pages *scans = nrp_pages_new(sizeof(struct mm_scan));
	struct nrp_cursor *cursor = NULL;
	double weighted = 0, weight = 0;
	uint64_t mm, page;
	size_t position = 0;
	const struct mm_scan *scan;
	const void *row;
	int r = scans ? 0 : nrp_fail_nomem(err);

	if (r == 0)
		r = nrp_cursor_open(&cursor, store, capture->id, NRP_SCAN_PASS,
				    NRP_BIT(scan_pass, time) | NRP_BIT(scan_pass, mm) |
					    NRP_BIT(scan_pass, tgid) |
					    NRP_BIT(scan_pass, mm_scan_seq),
				    err);
	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_scan_pass *s = row;
		struct mm_scan *m = nrp_pages_get(scans, s->mm, 0);

		r = 0;
		if (!m) {
			r = nrp_fail_nomem(err);
		} else if (!NRP_NULL(s, scan_pass, mm_scan_seq)) {
			/* A fork or the first thread sets the sequence back to 0. */
			if (m->seen && s->mm_scan_seq > m->last_seq)
				m->increments += (uint64_t)(s->mm_scan_seq - m->last_seq);
			m->seen = 1;
			m->tgid = NRP_NULL(s, scan_pass, tgid) ? m->tgid : s->tgid;
			m->last_seq = s->mm_scan_seq;
		}
	}
	nrp_cursor_close(cursor);
	while (r == 0 && (scan = nrp_pages_next(scans, &position, &mm, &page))) {
		struct nrp_coverage *c = nrp_pages_get(p->mms, mm, 0);

		if (!c) {
			r = nrp_fail_nomem(err);
			break;
		}
		c->passes = scan->increments;
		c->tgid = scan->tgid;
		weighted += (double)scan->increments * (double)c->faults;
		weight += (double)c->faults;
	}
	p->v->passes = weight > 0 ? weighted / weight : 0;
	nrp_pages_free(scans);
	return r;
}

/* The address spaces with most faults; ties by pointer. */
static void keep_coverage(struct fault_pass *p)
{
	struct nrp_verify *v = p->v;
	const struct nrp_coverage *c;
	size_t position = 0;
	uint64_t mm, page;

	while ((c = nrp_pages_next(p->mms, &position, &mm, &page))) {
		size_t i = v->nr_coverage;

		if (!c->faults)
			continue;
		while (i &&
		       (v->coverage[i - 1].faults < c->faults ||
			(v->coverage[i - 1].faults == c->faults && v->coverage[i - 1].mm > mm))) {
			if (i < NRP_MAX_COVERAGE)
				v->coverage[i] = v->coverage[i - 1];
			i--;
		}
		if (i == NRP_MAX_COVERAGE)
			continue;
		v->coverage[i] = *c;
		v->coverage[i].mm = mm;
		v->coverage[i].tgid = c->tgid ? c->tgid : -1;
		if (v->nr_coverage < NRP_MAX_COVERAGE)
			v->nr_coverage++;
	}
}

/* ---- losses ------------------------------------------------------------------------- */

static int count_damage(struct nrp_verify *v, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_LOSS, NRP_BIT(loss, cause), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_loss *l = row;

		r = 0;
		v->damaged_gaps += l->cause == NRP_LOSS_DAMAGED || l->cause == NRP_LOSS_BACKWARDS;
	}
	nrp_cursor_close(cursor);
	return r;
}

/* ---- the whole ---------------------------------------------------------------------- */

static void conclude(struct nrp_verify *v)
{
	bool evidence = false, disagree = false;

	for (size_t i = 0; i < v->nr_checks; i++) {
		const struct nrp_verify_check *c = &v->check[i];

		evidence |= c->variant[c->chosen].agree + c->variant[c->chosen].disagree > 0;
		disagree |= c->variant[c->chosen].disagree > 0 && !c->advisory;
	}
	for (size_t i = 0; i < v->nr_counters; i++) {
		evidence |= v->counter[i].vmstat != 0 || v->counter[i].trace != 0;
		disagree |= !v->counter[i].ok;
	}
	v->verdict = disagree ? NRP_DISAGREES : evidence ? NRP_AGREES : NRP_NO_EVIDENCE;
}

double nrp_unjoined_share(const struct nrp_capture *capture)
{
	uint64_t known = capture->events > capture->other_events
				 ? capture->events - capture->other_events
				 : 0;

	return known ? (double)capture->unjoined_events / (double)known : 0;
}

static void add_notes(struct nrp_verify *v, const struct nrp_capture *capture)
{
	const struct nrp_host_facts *f = &capture->facts;

	if (!f->has_fault_probe)
		nrp_verify_note(v, "no_fault_probe",
				"mpol_misplaced was not probed: no record of single hint faults "
				"(capture with the probe set for tier 3)");
	if (capture->lost_events || capture->loss_gaps)
		nrp_verify_note(
			v, "lost_events",
			"%llu events lost and %lld gaps of unknown size: counts are too low",
			(unsigned long long)capture->lost_events, (long long)capture->loss_gaps);
	if (nrp_unjoined_share(capture) > NRP_UNJOINED_LIMIT)
		nrp_verify_note(v, "unjoined_events",
				"%llu events (%.1f %%) fit into no record: what belongs to them is "
				"missing as if it were lost",
				(unsigned long long)capture->unjoined_events,
				nrp_unjoined_share(capture) * 100);
	if (v->damaged_gaps)
		nrp_verify_note(
			v, "damaged_capture",
			"%llu of the gaps are damage of the capture's file, not of the host's "
			"recording: another copy of the file may be whole",
			(unsigned long long)v->damaged_gaps);
	if (!strcmp(capture->source, "text"))
		nrp_verify_note(v, "text_capture",
				"a text shows which events happened, not which were recorded: a "
				"limiter that refused nothing is not seen, unless section [events] "
				"of the facts file lists its event");
	if (f->topology_inferred)
		nrp_verify_note(v, "topology_inferred",
				"no facts file: the node of each CPU is inferred from the events");
	if (v->without_last_cpupid)
		nrp_verify_note(
			v, "cpupid_not_calibrated",
			"the place of last_cpupid in page flags is not certain: %llu faults "
			"without task_numa_fault have none",
			(unsigned long long)v->without_last_cpupid);
	if (v->unreported_faults)
		nrp_verify_note(
			v, "unreported_faults",
			"%llu faults never reached task_numa_fault (the PTE changed "
			"meanwhile, or the capture ended); their last_cpupid comes from page "
			"flags",
			(unsigned long long)v->unreported_faults);
	if (v->passes < 2 && v->hint_faults)
		nrp_verify_note(v, "coverage_below_two_passes",
				"%.1f full scan passes per address space: page histories are short",
				v->passes);
	for (size_t i = 0; i < v->nr_checks; i++)
		if (v->check[i].races)
			nrp_verify_note(v, "races",
					"%s: %llu answers are races at a window boundary, which "
					"serial replay cannot order",
					v->check[i].family, (unsigned long long)v->check[i].races);
}

static int verify_limiter(struct nrp_verify *v, struct nrp_store *store,
			  const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_attempts attempts = { 0 };
	struct nrp_error ticks = NRP_ERROR_INIT;
	int r = nrp_attempts_load(&attempts, store, capture, &ticks);

	if (r == -ENODATA) {
		nrp_verify_note(v, "no_ticks", "%s: migrate.ratelimit is not checked", ticks.what);
		return 0;
	}
	if (r < 0) {
		if (err)
			*err = ticks;
		return r;
	}
	v->attempts = attempts;
	v->has_attempts = true;
	r = nrp_verify_ratelimit(&v->check[v->nr_checks], &attempts, &capture->facts, err);
	if (r == 0)
		v->nr_checks++;
	return r;
}

void nrp_verify_clear(struct nrp_verify *verify)
{
	nrp_scan_record_clear(&verify->scan_record);
	nrp_attempts_clear(&verify->attempts);
	nrp_hugetlb_result_clear(&verify->hugetlb);
	verify->has_attempts = false;
}

int nrp_verify_run(struct nrp_verify *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, struct nrp_error *err)
{
	struct fault_pass p = { .v = ret, .facts = &capture->facts };
	int r;

	memset(ret, 0, sizeof(*ret));
	p.pages = nrp_pages_new_dense(sizeof(struct seen_page));
	p.mms = nrp_pages_new(sizeof(struct nrp_coverage));
	if (!p.pages || !p.mms || nrp_filter_check_new(&p.filter, &capture->facts) < 0)
		r = nrp_fail_nomem(err);
	else
		r = pass_faults(&p, store, capture, err);
	if (r == 0)
		r = count_passes(&p, store, capture, err);
	if (r == 0)
		r = count_damage(ret, store, capture, err);
	if (r == 0) {
		keep_coverage(&p);
		count_faulters(&p);
		ret->hint_faults = p.counts.hint_faults;
		ret->seconds = (double)(capture->last_time - capture->first_time) * 1e-9;
		nrp_filter_check_finish(p.filter, &ret->check[ret->nr_checks++]);
		r = nrp_verify_counters(ret, store, capture, &p.counts, err);
	}
	if (r == 0)
		r = verify_limiter(ret, store, capture, err);
	if (r == 0)
		r = nrp_verify_lanes(ret, store, capture, err);
	nrp_filter_check_free(p.filter);
	nrp_pages_free(p.pages);
	nrp_pages_free(p.mms);
	if (r < 0)
		return r;
	add_notes(ret, capture);
	conclude(ret);
	return 0;
}
