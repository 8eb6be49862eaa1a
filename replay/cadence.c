/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/cadence.h"
#include "replay/host.h"
#include "replay/pages.h"
#include "replay/policies/task_fault.h"
#include "replay/policies/ticks.h"
#include "replay/tick_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000.0

enum { RECORD, LANE, NR_SIDES };

struct side {
	bool placed; /* has a preferred node: retry times are set */
	bool other;  /* of the lane: its period is not the record's any more */
	bool seq_known;
	int32_t seq; /* that it took note of */
	uint64_t retry;
	struct nrp_task_faults faults; /* .at: behind the task */
};

struct task {
	bool met;
	uint32_t longest_ms; /* of its last pass, where a group stretched it; else 0 */
	struct side side[NR_SIDES];
	uint64_t counters[]; /* of both sides */
};

/* What faults of one interval between two passes add up to. */
struct sums {
	double faults, remote, pages;
};

struct space {
	bool met;
	uint64_t last;           /* ns: of the last pass */
	double period[NR_SIDES]; /* ms: that it set */
	double weight;           /* of the last interval: modelled passes for one recorded */
	struct sums since;       /* since the last pass */
};

struct nrp_cadence {
	const struct nrp_scan_timeline *timeline;
	struct nrp_cadence_lane rule[NR_SIDES];
	uint32_t nr_nodes, unset_cpupid;
	const struct nrp_host_facts *facts;
	struct nrp_tick_clock clock;
	struct nrp_pages *tasks, *spaces;
	uint64_t passes, diverged;
	double armed, period_sum[NR_SIDES];
	double weighted_passes, weighted_armed;
	struct sums all, weighted;
};

int nrp_cadence_new(struct nrp_cadence **ret, const struct nrp_host_facts *facts,
		    const struct nrp_scan_timeline *timeline, const struct nrp_cadence_lane *host,
		    const struct nrp_cadence_lane *lane, struct nrp_error *err)
{
	struct nrp_cadence *c = calloc(1, sizeof(*c));

	if (!c)
		return nrp_fail_nomem(err);
	c->nr_nodes = facts->nr_nodes > 0 ? (uint32_t)facts->nr_nodes : 1;
	c->unset_cpupid = facts->cpupid_bits > 8 && facts->cpupid_bits < 32
				  ? (UINT32_C(1) << facts->cpupid_bits) - 1
				  : UINT32_MAX;
	c->facts = facts;
	c->timeline = timeline;
	c->rule[RECORD] = *host;
	c->rule[LANE] = *lane;
	c->clock.hz = nrp_host_number(facts->hz, 1);
	c->tasks =
		nrp_pages_new(sizeof(struct task) +
			      NR_SIDES * sizeof(uint64_t) * NRP_TASK_FAULT_COUNTERS(c->nr_nodes));
	c->spaces = nrp_pages_new(sizeof(struct space));
	if (!c->tasks || !c->spaces) {
		nrp_cadence_free(c);
		return nrp_fail_nomem(err);
	}
	*ret = c;
	return 0;
}

struct nrp_cadence *nrp_cadence_free(struct nrp_cadence *cadence)
{
	if (!cadence)
		return NULL;
	nrp_pages_free(cadence->tasks);
	nrp_pages_free(cadence->spaces);
	free(cadence);
	return NULL;
}

/* ---- tasks ---------------------------------------------------------------------------- */

static void begin(const struct nrp_cadence *c, struct task *t)
{
	size_t n = NRP_TASK_FAULT_COUNTERS(c->nr_nodes);

	memset(t, 0, sizeof(*t) + NR_SIDES * n * sizeof(uint64_t));
	t->met = true;
	for (size_t i = 0; i < NR_SIDES; i++)
		t->side[i].faults.scan.period_ms = c->rule[i].delay_ms;
}

/* Valid until the next call: the table may move, and with it the counters. */
static struct task *task_of(const struct nrp_cadence *c, int32_t tid)
{
	struct task *t = nrp_pages_get(c->tasks, (uint32_t)tid, 0);

	if (!t)
		return NULL;
	if (!t->met)
		begin(c, t);
	for (size_t i = 0; i < NR_SIDES; i++) {
		t->side[i].faults.nr_nodes = c->nr_nodes;
		t->side[i].faults.at = t->counters + i * NRP_TASK_FAULT_COUNTERS(c->nr_nodes);
	}
	return t;
}

int nrp_cadence_life(struct nrp_cadence *cadence, const struct nrp_task_life *life)
{
	struct task *child;

	if (life->kind != NRP_LIFE_FORK || NRP_NULL(life, task_life, child_tid))
		return 0;
	child = task_of(cadence, life->child_tid);
	if (!child)
		return -ENOMEM;
	begin(cadence, child);
	return 0;
}

/* ---- periods -------------------------------------------------------------------------- */

struct bounds {
	uint32_t min_ms, max_ms;
};

/* @windows: of the host's size. */
static struct bounds bounds_of(const struct nrp_cadence *c, int side, const struct task *t,
			       uint64_t windows)
{
	static const struct nrp_scan_group none = { 0 };
	const struct nrp_scan_tunables *host = &c->rule[RECORD].tunables;
	const struct nrp_scan_tunables *own = &c->rule[side].tunables;
	uint64_t rss = windows * (((uint64_t)host->size_mb << 20) / host->page_size);
	struct bounds b = { nrp_scan_min(own, rss), nrp_scan_max(own, rss, &none) };
	uint32_t plain = nrp_scan_max(host, rss, &none);

	/* A group's stretch is the record's. */
	if (t->longest_ms > plain && plain)
		b.max_ms = (uint32_t)((uint64_t)b.max_ms * t->longest_ms / plain);
	return b;
}

static uint64_t windows_at(const struct nrp_scan_state *s)
{
	return s->windows_high ? (s->windows_low + s->windows_high) / 2 : 1;
}

/* Of a task that did not adapt yet: the delay, or the start value of the size of then. */
static uint64_t first_period(const struct nrp_cadence *c, uint32_t period, uint32_t start,
			     uint32_t lane_start)
{
	if (period == c->rule[RECORD].delay_ms && period != start)
		return c->rule[LANE].delay_ms;
	return start ? (uint64_t)lane_start * period / start : lane_start;
}

static bool same_tunables(const struct nrp_cadence *c)
{
	const struct nrp_cadence_lane *a = &c->rule[RECORD], *b = &c->rule[LANE];

	return a->delay_ms == b->delay_ms && a->tunables.size_mb == b->tunables.size_mb &&
	       a->tunables.period_min_ms == b->tunables.period_min_ms &&
	       a->tunables.period_max_ms == b->tunables.period_max_ms;
}

/*
 * The record shows a period. Where it is not the modelled one, it was set back, or an input was
 * missed: what set it back did so in the lane, too; else the lane keeps its distance.
 */
static void see_period(const struct nrp_cadence *c, struct task *t, uint32_t period,
		       const struct nrp_scan_state *s)
{
	struct nrp_scan_task *record = &t->side[RECORD].faults.scan;
	struct nrp_scan_task *lane = &t->side[LANE].faults.scan;
	uint32_t before = record->period_ms, start = bounds_of(c, RECORD, t, windows_at(s)).min_ms;
	struct bounds b = bounds_of(c, LANE, t, windows_at(s));
	bool young = !t->side[RECORD].placed;
	uint64_t scaled;

	record->period_ms = period;
	if (!t->side[LANE].other && same_tunables(c)) {
		lane->period_ms = period;
		return;
	}
	if (before == period && !young)
		return;
	if (young || period == start)
		scaled = first_period(c, period, start, b.min_ms);
	else
		scaled = before ? (uint64_t)lane->period_ms * period / before : period;
	lane->period_ms = scaled < b.min_ms   ? b.min_ms
			  : scaled > b.max_ms ? b.max_ms
					      : (uint32_t)scaled;
}

static void place(const struct nrp_cadence *c, struct task *t, int i, uint64_t windows)
{
	struct side *side = &t->side[i];
	struct bounds b = bounds_of(c, i, t, windows);
	struct nrp_placement p = nrp_task_fault_place(&side->faults, 0, 0);

	side->faults.scan.period_max_ms = b.max_ms;
	side->placed |= p.preferred_nid >= 0;
	nrp_scan_adapt(&side->faults.scan, c->rule[i].rules, p.shared, p.private, b.min_ms,
		       b.max_ms);
}

/* What runs past the retry time: the placement pass that a new sequence asks for. */
static void take_note(const struct nrp_cadence *c, struct task *t, int i,
		      const struct nrp_scan_state *s, uint64_t ticks)
{
	struct side *side = &t->side[i];
	int32_t seq = s->nr_seqs ? s->seq[s->nr_seqs - 1] : side->seq;

	if (!side->seq_known) {
		side->seq = seq;
		side->seq_known = s->nr_seqs > 0;
	}
	if (!nrp_scan_placement_may_run(c->rule[i].variant, ticks, side->retry))
		return;
	if (seq != side->seq)
		place(c, t, i, windows_at(s));
	side->seq = seq;
	if (side->placed)
		side->retry = nrp_scan_retry(ticks, side->faults.scan.period_ms, c->clock.hz);
}

/* The task's own copy, as the record shows it. */
static void see_seq(struct task *t, int32_t seq)
{
	for (int i = 0; i < NR_SIDES; i++) {
		struct side *side = &t->side[i];

		if (i == RECORD || !side->seq_known)
			side->seq = seq;
		side->seq_known = true;
	}
}

/* ---- passes --------------------------------------------------------------------------- */

static void add(struct sums *to, const struct sums *s, double weight)
{
	to->faults += s->faults * weight;
	to->remote += s->remote * weight;
	to->pages += s->pages * weight;
}

/* Modelled passes in the time of one recorded interval. */
static double weight_of(const struct nrp_cadence *c, const struct space *s, uint64_t time)
{
	double tick = 1000.0 / c->clock.hz;
	double recorded = s->last ? (double)(time - s->last) / NS_PER_MS : 0;
	double modelled = recorded + s->period[LANE] - s->period[RECORD];

	if (recorded <= 0 || s->period[LANE] == s->period[RECORD])
		return 1;
	return recorded / (modelled > tick ? modelled : tick);
}

int nrp_cadence_pass(struct nrp_cadence *cadence, const struct nrp_scan_pass *pass)
{
	struct nrp_cadence *c = cadence;
	struct task *t = task_of(c, pass->tid);
	struct space *s = nrp_pages_get(c->spaces, pass->mm, 0);
	struct nrp_scan_state state;

	if (!t || !s)
		return -ENOMEM;
	if (!NRP_NULL(pass, scan_pass, jiffies))
		nrp_tick_clock_set(&c->clock, pass->time, pass->jiffies);
	if (NRP_NULL(pass, scan_pass, scan_period) || !pass->scan_period)
		return 0;
	state = nrp_scan_timeline_at(c->timeline, pass->mm, pass->time);
	if (!NRP_NULL(pass, scan_pass, scan_period_max))
		t->longest_ms = pass->scan_period_max;
	if (!NRP_NULL(pass, scan_pass, task_scan_seq))
		see_seq(t, pass->task_scan_seq);
	see_period(c, t, pass->scan_period, &state);
	s->weight = weight_of(c, s, pass->time);
	add(&c->weighted, &s->since, s->weight);
	s->since = (struct sums){ 0 };
	s->met = true;
	s->last = pass->time;
	c->passes++;
	c->armed += (double)pass->armed_pages;
	c->weighted_passes += s->weight;
	c->weighted_armed += s->weight * (double)pass->armed_pages;
	for (int i = 0; i < NR_SIDES; i++) {
		s->period[i] = t->side[i].faults.scan.period_ms;
		c->period_sum[i] += s->period[i];
	}
	if (!c->diverged && s->period[LANE] != s->period[RECORD])
		c->diverged = pass->time;
	return 0;
}

/* ---- faults --------------------------------------------------------------------------- */

static struct nrp_fault_report report_of(const struct nrp_cadence *c,
					 const struct nrp_hint_fault *f)
{
	int cpu_nid = nrp_host_cpu_nid(c->facts, (int)f->cpu);
	uint32_t cpu = cpu_nid >= 0 ? (uint32_t)cpu_nid : 0;
	bool placed = !NRP_NULL(f, hint_fault, mem_nid) && f->mem_nid >= 0;

	return (struct nrp_fault_report){
		.mem_nid =
			placed && (uint32_t)f->mem_nid < c->nr_nodes ? (uint32_t)f->mem_nid : cpu,
		.cpu_nid = cpu < c->nr_nodes ? cpu : 0,
		.pages = NRP_NULL(f, hint_fault, pages) ? 1 : f->pages,
		.private = !NRP_NULL(f, hint_fault, last_cpupid) &&
			   nrp_fault_is_private(f->last_cpupid, c->unset_cpupid, f->tid),
		.local = f->tnf_flags & NRP_TNF_FAULT_LOCAL,
		.migrated = f->tnf_flags & NRP_TNF_MIGRATED,
		.failed = f->tnf_flags & NRP_TNF_MIGRATE_FAIL,
	};
}

/* The same fault where the lane has the page: a page that is here neither moves nor fails to. */
static struct nrp_fault_report in_the_lane(struct nrp_fault_report r, int nid)
{
	if (nid < 0)
		return r;
	r.local = (uint32_t)nid == r.cpu_nid;
	if (r.local) {
		r.mem_nid = r.cpu_nid;
		r.migrated = r.failed = false;
	}
	return r;
}

int nrp_cadence_fault(struct nrp_cadence *cadence, const struct nrp_hint_fault *fault, bool there,
		      int nid)
{
	struct nrp_cadence *c = cadence;
	const bool has[NR_SIDES] = { [RECORD] = true, [LANE] = there };
	struct nrp_fault_report report[NR_SIDES];
	struct nrp_scan_state state;
	struct space *s;
	struct task *t;
	uint64_t ticks;

	if (!NRP_NULL(fault, hint_fault, attempt_jiffies) && fault->attempt != NRP_ATTEMPT_NONE)
		nrp_tick_clock_set(&c->clock, fault->time + fault->attempt_delay,
				   fault->attempt_jiffies);
	if (NRP_NULL(fault, hint_fault, tnf_flags) || NRP_NULL(fault, hint_fault, mm))
		return 0;
	t = task_of(c, fault->tid);
	s = nrp_pages_get(c->spaces, fault->mm, 0);
	if (!t || !s)
		return -ENOMEM;
	ticks = nrp_tick_clock_at(&c->clock, fault->time + fault->end_delay);
	state = nrp_scan_timeline_at(c->timeline, fault->mm, fault->time + fault->end_delay);
	if (!NRP_NULL(fault, hint_fault, scan_period) && fault->scan_period)
		see_period(c, t, fault->scan_period, &state);
	if (!NRP_NULL(fault, hint_fault, scan_seq))
		see_seq(t, fault->scan_seq);
	report[RECORD] = report_of(c, fault);
	report[LANE] = in_the_lane(report[RECORD], nid);
	for (int i = 0; i < NR_SIDES; i++) {
		if (!has[i])
			continue;
		take_note(c, t, i, &state, ticks);
		nrp_task_fault_add(&t->side[i].faults, &report[i]);
	}
	t->side[LANE].other =
		t->side[LANE].faults.scan.period_ms != t->side[RECORD].faults.scan.period_ms;
	if (there) {
		struct sums one = { 1, !report[LANE].local, report[LANE].pages };

		add(&s->since, &one, 1);
		add(&c->all, &one, 1);
	}
	return 0;
}

/* ---- the end -------------------------------------------------------------------------- */

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 1;
}

struct nrp_cadence_result nrp_cadence_result(struct nrp_cadence *cadence)
{
	struct nrp_cadence *c = cadence;
	struct sums weighted = c->weighted;
	size_t position = 0;
	uint64_t mm, page;
	const struct space *s;

	/* Behind an address space's last pass its last weight holds. */
	while ((s = nrp_pages_next(c->spaces, &position, &mm, &page)))
		add(&weighted, &s->since, s->met ? s->weight : 1);
	return (struct nrp_cadence_result){
		.valid = c->passes > 0,
		.passes = ratio(c->weighted_passes, (double)c->passes),
		.armed = ratio(c->weighted_armed, c->armed),
		.faults = ratio(weighted.faults, c->all.faults),
		.remote_faults = ratio(weighted.remote, c->all.remote),
		.fault_pages = ratio(weighted.pages, c->all.pages),
		.diverged = c->diverged,
		.period_recorded_ms = ratio(c->period_sum[RECORD], (double)c->passes),
		.period_ms = ratio(c->period_sum[LANE], (double)c->passes),
	};
}
