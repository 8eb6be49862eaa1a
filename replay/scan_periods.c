/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_periods.h"
#include "replay/host.h"
#include "replay/merge.h"
#include "replay/pages.h"
#include "replay/period_guesses.h"
#include "replay/policies/task_fault.h"
#include "replay/policies/ticks.h"
#include "replay/scan_timeline.h"
#include "replay/tick_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct task {
	bool met;
	bool started;        /* its own scan pass was seen: its first tick is over */
	bool reset_possible; /* moved since the last sight */
	bool grouped;
	enum nrp_maybe preferred;
	struct nrp_period_guesses guesses[NRP_NR_SCAN_PERIODS];
};

/* Ticks come late now and then, and are read once more than they are recorded. */
#define TICK_SLACK 2

/* Where an address space's next scan is put; several, where it is not known which came last. */
#define MOST_NEXT 4
struct next {
	struct {
		uint64_t low, high;
	} at[MOST_NEXT];
	size_t count; /* 0: not known */
};

struct space {
	struct next next[NRP_NR_SCAN_PERIODS];
};

struct run {
	struct nrp_scan_periods p;
	const struct nrp_capture *capture;
	struct nrp_period_rule rule;
	uint32_t unset_cpupid; /* 0: its width is not known */
	uint64_t delay;        /* scan_delay, jiffies */
	bool events_missing;
	int cpu_nodes; /* nodes whose CPUs may fault */
	struct nrp_tick_clock clock;
	struct nrp_scan_timeline *timeline;
	struct nrp_pages *tasks;  /* by tid: struct task */
	struct nrp_pages *spaces; /* by mm: struct space */
};

static struct task *task_of(struct run *r, int32_t tid)
{
	struct task *t = nrp_pages_get(r->tasks, (uint32_t)tid, 0);

	if (t && !t->met) {
		t->met = true;
		t->preferred = NRP_MAYBE_UNKNOWN;
	}
	return t;
}

/* No retry time that was set before is later. */
static uint64_t latest_retry(const struct run *r, uint64_t time)
{
	return r->clock.time ? nrp_tick_clock_at(&r->clock, time) + 1 + r->rule.hz : UINT64_MAX;
}

/* ---- the next scan -------------------------------------------------------------------- */

static void set_next(struct next *n, uint64_t low, uint64_t high)
{
	n->count = 1;
	n->at[0].low = low;
	n->at[0].high = high;
}

/* It may have been put there since. */
static void add_next(struct next *n, uint64_t low, uint64_t high)
{
	if (!n->count)
		return;
	if (n->count == MOST_NEXT) {
		n->count = 0;
		return;
	}
	n->at[n->count].low = low;
	n->at[n->count++].high = high;
}

static bool has_next(const struct next *n, uint64_t jiffies)
{
	for (size_t i = 0; i < n->count; i++)
		if (jiffies + TICK_SLACK >= n->at[i].low && jiffies <= n->at[i].high + TICK_SLACK)
			return true;
	return false;
}

static void check_next(struct run *r, struct space *s, const struct nrp_scan_pass *p)
{
	for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++) {
		struct nrp_period_count *c = &r->p.variant[v];

		if (!s->next[v].count)
			continue;
		c->next_scans++;
		c->next_scans_agree += has_next(&s->next[v], p->next_scan);
	}
}

/* task_numa_work() up to its race for the next scan. */
static int see_next(struct run *r, const struct nrp_scan_pass *p)
{
	struct space *s;
	uint64_t wait;

	if (NRP_NULL(p, scan_pass, next_scan) || NRP_NULL(p, scan_pass, jiffies) ||
	    NRP_NULL(p, scan_pass, scan_period))
		return 0;
	s = nrp_pages_get(r->spaces, p->mm, 0);
	if (!s)
		return -ENOMEM;
	if (p->next_scan)
		check_next(r, s, p);
	if (!p->next_scan)
		wait = r->delay;
	else if (p->jiffies < p->next_scan)
		return 0; /* too early: it stays */
	else
		wait = p->scan_period ? nrp_ms_to_ticks(p->scan_period, r->rule.hz) : UINT64_MAX;
	for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++) {
		if (wait == UINT64_MAX)
			s->next[v].count = 0;
		else
			set_next(&s->next[v], p->jiffies + wait, p->jiffies + wait);
	}
	return 0;
}

/* ---- task life and moves -------------------------------------------------------------- */

/* No faults yet. Up to 5.13 the retry time is the parent's, later 0. */
static void begin_task(const struct run *r, struct task *t, uint64_t time, uint32_t period_ms)
{
	uint64_t retry = r->capture->facts.has_thp_function ? latest_retry(r, time) : 0;

	for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++)
		nrp_period_guesses_fresh(&t->guesses[v], period_ms, retry);
}

/* The first thread or child of a single-threaded process sets sequence and next scan back. */
static int see_fork(struct run *r, const struct nrp_task_life *l)
{
	uint32_t delay_ms = nrp_host_number(r->capture->facts.scan_delay_ms, 0);
	struct task *child;

	if (NRP_NULL(l, task_life, child_tid))
		return 0;
	child = task_of(r, l->child_tid);
	if (!child)
		return -ENOMEM;
	*child = (struct task){ .met = true, .preferred = NRP_MAYBE_UNKNOWN };
	begin_task(r, child, l->time, delay_ms);
	return 0;
}

static int see_life(struct run *r, const struct nrp_task_life *l)
{
	struct task *t = task_of(r, l->tid);
	size_t position = 0;
	struct space *s;
	uint64_t mm, page;

	if (!t)
		return -ENOMEM;
	if (l->kind == NRP_LIFE_EXIT)
		return 0;
	/* Whose address space it is, is not on record: any may have been set back. */
	while ((s = nrp_pages_next(r->spaces, &position, &mm, &page)))
		for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++)
			s->next[v].count = 0;
	if (l->kind == NRP_LIFE_FORK)
		return see_fork(r, l);
	/* Exec empties the buffers and keeps the locality counters, or frees all (up to 4.18). */
	t->grouped = false;
	for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++) {
		struct nrp_period_guesses *g = &t->guesses[v];

		if (g->count == 1 && !g->at[0].shared && !g->at[0].private && !g->at[0].either)
			g->at[0].seq_known = false;
		else
			nrp_period_guesses_lose(g);
	}
	return 0;
}

static int see_move(struct run *r, const struct nrp_task_move *m)
{
	struct task *t = task_of(r, m->tid);
	int from = nrp_host_cpu_nid(&r->capture->facts, m->src_cpu);
	int to = nrp_host_cpu_nid(&r->capture->facts, m->dst_cpu);

	if (!t)
		return -ENOMEM;
	t->reset_possible |= m->kind != NRP_MOVE_MIGRATE || from < 0 || from != to;
	return 0;
}

static int see_preferred(struct run *r, const struct nrp_preferred *p)
{
	struct task *t = task_of(r, p->tid);

	if (!t)
		return -ENOMEM;
	t->preferred = p->nid >= 0 ? NRP_MAYBE_YES : NRP_MAYBE_NO;
	return 0;
}

/* ---- sights --------------------------------------------------------------------------- */

static void count_sight(struct run *r, struct nrp_period_count *c, const struct task *t,
			enum nrp_period_verdict verdict, enum nrp_period_by by, uint64_t time)
{
	if (verdict == NRP_PERIOD_NO_DECISION)
		return;
	/* A move, or its first tick, may have set the period back; an event may be missing. */
	if (verdict == NRP_PERIOD_DISAGREES &&
	    (t->reset_possible || !t->started || r->events_missing))
		verdict = NRP_PERIOD_OPEN;
	c->decisions++;
	c->undecided += verdict == NRP_PERIOD_OPEN;
	if (verdict == NRP_PERIOD_OPEN)
		return;
	c->decisions_by[by]++;
	if (verdict == NRP_PERIOD_AGREES) {
		c->agree++;
		c->agree_by[by]++;
		return;
	}
	c->disagree++;
	if (!c->first_disagreement)
		c->first_disagreement = time;
}

/* @period_max 0: not seen. */
static void see_period(struct run *r, struct task *t, uint64_t time, int32_t seq, uint32_t period,
		       uint32_t period_max)
{
	r->p.sights++;
	for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++) {
		enum nrp_period_by by = NRP_PERIOD_BY_NOTHING;
		enum nrp_period_verdict verdict = nrp_period_guesses_sight(
			&t->guesses[v], seq, period, period_max, latest_retry(r, time), &by);

		count_sight(r, &r->p.variant[v], t, verdict, by, time);
	}
	t->reset_possible = false;
}

/*
 * The first pass over a new address space, by a task that never had a placement pass: there were no
 * faults to count.
 */
static bool is_fresh(const struct nrp_scan_pass *p)
{
	return !NRP_NULL(p, scan_pass, next_scan) && !p->next_scan &&
	       !NRP_NULL(p, scan_pass, scan_period_max) && !p->scan_period_max &&
	       !NRP_NULL(p, scan_pass, scan_period);
}

static int see_pass(struct run *r, const struct nrp_scan_pass *p)
{
	struct task *t = task_of(r, p->tid);

	if (!t)
		return -ENOMEM;
	if (!NRP_NULL(p, scan_pass, jiffies))
		nrp_tick_clock_set(&r->clock, p->time, p->jiffies);
	if (!NRP_NULL(p, scan_pass, preferred_nid))
		t->preferred = p->preferred_nid >= 0 ? NRP_MAYBE_YES : NRP_MAYBE_NO;
	if (is_fresh(p) && !t->guesses[0].count)
		begin_task(r, t, p->time, p->scan_period);
	if (!NRP_NULL(p, scan_pass, task_scan_seq) && !NRP_NULL(p, scan_pass, scan_period))
		see_period(r, t, p->time, p->task_scan_seq, p->scan_period,
			   NRP_NULL(p, scan_pass, scan_period_max) ? 0 : p->scan_period_max);
	t->started = true;
	return see_next(r, p);
}

/* ---- faults --------------------------------------------------------------------------- */

/* A cpupid that was never set has all bits; where their number is not known, no CPU is so large. */
static uint32_t unset_cpupid(const struct run *r, uint32_t cpupid)
{
	bool all_ones = (cpupid & (cpupid + 1)) == 0;

	if (r->unset_cpupid)
		return r->unset_cpupid;
	return all_ones && cpupid >> 8 >= (uint32_t)r->capture->facts.nr_cpus ? cpupid : UINT32_MAX;
}

/*
 * A fault that looks shared counts as private if the task that touched the page runs now, in a
 * group that the faulting one does not join: then it is of another process.
 */
static enum nrp_maybe is_private(const struct run *r, const struct nrp_hint_fault *f)
{
	if (NRP_NULL(f, hint_fault, last_cpupid))
		return NRP_MAYBE_UNKNOWN;
	if (nrp_fault_is_private(f->last_cpupid, unset_cpupid(r, f->last_cpupid), f->tid))
		return NRP_MAYBE_YES;
	if (f->tnf_flags & NRP_TNF_NO_GROUP)
		return NRP_MAYBE_NO;
	return NRP_NULL(f, hint_fault, mapcount) || f->mapcount > 0 ? NRP_MAYBE_UNKNOWN
								    : NRP_MAYBE_NO;
}

/* Without a facts file any node may have CPUs that no event showed. */
static int count_cpu_nodes(const struct nrp_host_facts *facts)
{
	bool has_cpus[NRP_MAX_NODES];
	int n = 0;

	if (facts->topology_inferred)
		return facts->nr_nodes;
	nrp_host_cpu_nodes(facts, has_cpus);
	for (int nid = 0; nid < NRP_MAX_NODES; nid++)
		n += has_cpus[nid];
	return n;
}

/*
 * Both nodes active in a group that is active on several? Only nodes with CPUs are; of two the
 * weights say so.
 */
static enum nrp_maybe between_active_nodes(const struct run *r, const struct nrp_hint_fault *f)
{
	uint64_t most, least;

	if (r->cpu_nodes != 2 || NRP_NULL(f, hint_fault, group_cpu_src) ||
	    NRP_NULL(f, hint_fault, group_cpu_dst))
		return NRP_MAYBE_UNKNOWN;
	most = f->group_cpu_src > f->group_cpu_dst ? f->group_cpu_src : f->group_cpu_dst;
	least = f->group_cpu_src + f->group_cpu_dst - most;
	return least > most / 3 ? NRP_MAYBE_YES : NRP_MAYBE_NO;
}

static enum nrp_maybe is_local(const struct run *r, const struct task *t,
			       const struct nrp_hint_fault *f, enum nrp_maybe private)
{
	enum nrp_maybe active;

	if (f->tnf_flags & NRP_TNF_FAULT_LOCAL)
		return NRP_MAYBE_YES;
	if (private == NRP_MAYBE_YES || !t->grouped)
		return NRP_MAYBE_NO;
	active = between_active_nodes(r, f);
	return active == NRP_MAYBE_YES && private == NRP_MAYBE_UNKNOWN ? NRP_MAYBE_UNKNOWN : active;
}

static void add_early(struct space *s, int variant, const struct nrp_period_early *early)
{
	struct next *n = &s->next[variant];

	if (early->certain)
		set_next(n, early->low, early->high);
	else if (early->possible && early->high == UINT64_MAX)
		n->count = 0;
	else if (early->possible)
		add_next(n, early->low, early->high);
}

static struct nrp_period_fault describe(const struct run *r, const struct task *t,
					const struct nrp_hint_fault *f)
{
	uint64_t time = f->time + f->end_delay;
	struct nrp_scan_state s = nrp_scan_timeline_at(r->timeline, f->mm, time);
	struct nrp_period_fault p = {
		.pages = NRP_NULL(f, hint_fault, pages) ? 1 : f->pages,
		.failed = f->tnf_flags & NRP_TNF_MIGRATE_FAIL,
		.private = is_private(r, f),
		.ticks_low = nrp_tick_clock_at(&r->clock, time),
		.nr_seqs = r->clock.time ? s.nr_seqs : 0,
		.windows_low = s.windows_high ? s.windows_low : 1,
		.windows_high = s.windows_high ? s.windows_high : UINT64_MAX,
		.grouped = t->grouped,
		.preferred = t->preferred,
	};

	p.local = is_local(r, t, f, p.private);
	p.ticks_high = p.ticks_low + 2;
	memcpy(p.seq, s.seq, sizeof(p.seq));
	return p;
}

static int see_report(struct run *r, struct task *t, const struct nrp_hint_fault *f)
{
	struct nrp_period_fault p = describe(r, t, f);
	struct space *s = nrp_pages_get(r->spaces, f->mm, 0);

	if (!s)
		return -ENOMEM;
	for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++) {
		struct nrp_period_rule rule = r->rule;
		struct nrp_period_early early;

		rule.variant = (enum nrp_scan_period_variant)v;
		early = nrp_period_guesses_fault(&t->guesses[v], &rule, &p);
		add_early(s, v, &early);
	}
	/* The kernel makes a group of one at the first fault of this kind. */
	t->grouped |= p.private != NRP_MAYBE_YES && !(f->tnf_flags & NRP_TNF_NO_GROUP);
	return 0;
}

static int see_fault(struct run *r, const struct nrp_hint_fault *f)
{
	struct task *t = task_of(r, f->tid);

	if (!t)
		return -ENOMEM;
	if (!NRP_NULL(f, hint_fault, attempt_jiffies) && !NRP_NULL(f, hint_fault, attempt_delay))
		nrp_tick_clock_set(&r->clock, f->time + f->attempt_delay, f->attempt_jiffies);
	if (!NRP_NULL(f, hint_fault, preferred_nid))
		t->preferred = f->preferred_nid >= 0 ? NRP_MAYBE_YES : NRP_MAYBE_NO;
	if (!NRP_NULL(f, hint_fault, dst_cpu))
		t->grouped = !NRP_NULL(f, hint_fault, numa_group);
	if (!NRP_NULL(f, hint_fault, scan_seq) && !NRP_NULL(f, hint_fault, scan_period))
		see_period(r, t, f->time, f->scan_seq, f->scan_period, 0);
	if (NRP_NULL(f, hint_fault, tnf_flags) || NRP_NULL(f, hint_fault, mm))
		return 0;
	return see_report(r, t, f);
}

/* ---- all records in time order -------------------------------------------------------- */

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	struct run *r = context;

	switch (kind) {
	case NRP_TASK_LIFE:
		return see_life(r, row);
	case NRP_PREFERRED:
		return see_preferred(r, row);
	case NRP_TASK_MOVE:
		return see_move(r, row);
	case NRP_SCAN_PASS:
		return see_pass(r, row);
	default:
		return see_fault(r, row);
	}
}

static int read_all(struct run *run, struct nrp_store *store, struct nrp_error *err)
{
#define COL(name) NRP_BIT(hint_fault, name)
	const uint64_t columns = COL(time) | COL(tid) | COL(mm) | COL(mapcount) | COL(last_cpupid) |
				 COL(dst_cpu) | COL(preferred_nid) | COL(scan_seq) |
				 COL(scan_period) | COL(numa_group) | COL(group_cpu_src) |
				 COL(group_cpu_dst) | COL(attempt_delay) | COL(attempt_jiffies) |
				 COL(pages) | COL(tnf_flags) | COL(end_delay);
#undef COL

	return nrp_merge_task_records(store, run->capture->id, columns, see, run, err);
}

int nrp_scan_periods_run(struct nrp_scan_periods *ret, struct nrp_store *store,
			 const struct nrp_capture *capture, struct nrp_error *err)
{
	const struct nrp_host_facts *facts = &capture->facts;
	struct run run = {
		.capture = capture,
		.rule = { .rules = NRP_PERIOD_RULES,
			  .hz = nrp_host_number(facts->hz, 0),
			  .tunables = nrp_host_tunables(facts) },
		.unset_cpupid = facts->cpupid_bits > 8 && facts->cpupid_bits < 32
					? (UINT32_C(1) << facts->cpupid_bits) - 1
					: 0,
		.cpu_nodes = count_cpu_nodes(facts),
		.events_missing =
			capture->lost_events || capture->loss_gaps || capture->unjoined_events,
		.tasks = nrp_pages_new(sizeof(struct task)),
		.spaces = nrp_pages_new(sizeof(struct space)),
	};
	int r = run.tasks && run.spaces ? 0 : nrp_fail_nomem(err);

	run.clock.hz = run.rule.hz;
	run.delay = nrp_ms_to_ticks(nrp_host_scan_delay_ms(facts), run.rule.hz ? run.rule.hz : 1);
	if (r == 0 && run.rule.hz)
		r = nrp_scan_timeline_load(&run.timeline, store, capture, &run.rule.tunables, err);
	if (r == 0 && run.rule.hz)
		r = read_all(&run, store, err);
	if (r == 0)
		*ret = run.p;
	nrp_scan_timeline_free(run.timeline);
	nrp_pages_free(run.tasks);
	nrp_pages_free(run.spaces);
	return r;
}
