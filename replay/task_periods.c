/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scan periods of tasks between two sights of them, which are filter calls and the task's own scan
 * passes. Between two sights with the same scan sequence no placement pass ran, so that only a
 * reset can change the period; otherwise as many passes ran as the sequence grew, or fewer.
 */
#include "replay/host.h"
#include "replay/policies/scan_period.h"
#include "replay/task_moves_internal.h"

static bool is_reset_by_some(const struct nrp_scan_reset_event *event)
{
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++)
		if (nrp_scan_reset_decide((enum nrp_scan_reset_variant)v, event) != NRP_RESET_NO)
			return true;
	return false;
}

/* "Reset at least once": certain if any step is, open if any step is open. */
static uint8_t either(uint8_t a, uint8_t b)
{
	if (a == NRP_RESET_YES || b == NRP_RESET_YES)
		return NRP_RESET_YES;
	return a == NRP_RESET_UNKNOWN || b == NRP_RESET_UNKNOWN ? NRP_RESET_UNKNOWN : NRP_RESET_NO;
}

void nrp_periods_step(struct nrp_task_moves *m, struct nrp_task *task,
		      const struct nrp_scan_reset_event *event)
{
	if (!is_reset_by_some(event))
		return;
	task->sight.reset_possible = true;
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++) {
		uint8_t answer =
			(uint8_t)nrp_scan_reset_decide((enum nrp_scan_reset_variant)v, event);

		m->reset[v].refused += answer == NRP_RESET_NO;
		m->reset[v].lower += answer == NRP_RESET_YES;
		m->reset[v].upper += answer != NRP_RESET_NO;
		task->sight.reset[v] = either(task->sight.reset[v], answer);
	}
}

/* ---- resets against the record ------------------------------------------------------ */

/*
 * A reset that changes nothing is no contradiction: the period may have been the start value. For a
 * task without a group that is at most the minimum for an address space of one window.
 */
static bool reset_would_show(const struct nrp_host_facts *facts, uint32_t period)
{
	struct nrp_scan_tunables t = nrp_host_tunables(facts);

	return period > nrp_scan_min(&t, 0);
}

/* A young task's first tick sets its period from scan_delay to the start value. */
static bool may_be_the_first_tick(const struct nrp_period_sight *s,
				  const struct nrp_host_facts *facts)
{
	return facts->scan_delay_ms < 0 || s->period == facts->scan_delay_ms;
}

enum verdict { AGREE, DISAGREE, UNDECIDED, IF_UNGROUPED };

static enum verdict judge(const struct nrp_task_moves *m, const struct nrp_period_sight *s,
			  const struct nrp_host_facts *facts, uint8_t answer, bool changed)
{
	if (answer == NRP_RESET_UNKNOWN)
		return UNDECIDED;
	if (changed == (answer == NRP_RESET_YES))
		return AGREE;
	if (m->events_missing)
		return UNDECIDED;
	if (changed)
		return may_be_the_first_tick(s, facts) ? UNDECIDED : DISAGREE;
	return reset_would_show(facts, s->period) ? IF_UNGROUPED : UNDECIDED;
}

static void check_resets(struct nrp_task_moves *m, struct nrp_task *task,
			 const struct nrp_host_facts *facts, uint32_t period)
{
	const struct nrp_period_sight *s = &task->sight;
	bool changed = s->period != period;

	if (!changed && !s->reset_possible)
		return;
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++) {
		struct nrp_reset_count *c = &m->reset[v];
		enum verdict verdict = judge(m, s, facts, s->reset[v], changed);

		c->decisions++;
		c->agree += verdict == AGREE;
		c->disagree += verdict == DISAGREE;
		c->undecided += verdict == UNDECIDED || verdict == IF_UNGROUPED;
		task->hidden[v] += verdict == IF_UNGROUPED;
	}
}

void nrp_periods_group(struct nrp_task_moves *m, struct nrp_task *task, bool grouped)
{
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++) {
		if (!grouped) {
			m->reset[v].disagree += task->hidden[v];
			m->reset[v].undecided -= task->hidden[v];
		}
		task->hidden[v] = 0;
	}
}

/* ---- the sticky back-off ------------------------------------------------------------ */

enum growth { DOUBLED, CAPPED, OTHER, OPEN };

/*
 * How did a period get from @from to @to in @passes placement passes of a task that backs off? Each
 * pass also sets the task's longest period anew: @longest is that of the last one, 0 if it was not
 * seen.
 */
static enum growth growth(uint32_t from, uint32_t to, int64_t passes, uint32_t longest)
{
	struct nrp_scan_task t = { .period_ms = from, .period_max_ms = UINT32_MAX, .failed = 1 };

	for (int64_t i = 0; i < passes && t.period_ms < to; i++) {
		nrp_scan_adapt(&t, NRP_PERIOD_RULES, 0, 0, 0, UINT32_MAX);
		if (t.period_ms == to)
			return to == longest ? CAPPED : DOUBLED;
	}
	if (t.period_ms < to)
		return OTHER;
	if (to == longest)
		return CAPPED;
	/* With several passes the longest period of another one may have cut it. */
	return longest && passes == 1 ? OTHER : OPEN;
}

static void count_span(struct nrp_task_moves *m, const struct nrp_task *task, uint64_t time,
		       enum growth g, bool local_before)
{
	struct nrp_sticky *k = &m->sticky;

	/* A move that set the period back may be among the missing events. */
	if (g == OTHER && m->events_missing)
		g = OPEN;
	if (!task->failed) {
		k->clean_doubled += g == DOUBLED;
		k->clean_capped += g == CAPPED;
		k->clean_other += g == OTHER;
		return;
	}
	k->doubled += g == DOUBLED;
	k->doubled_despite_faults += g == DOUBLED && local_before;
	k->capped += g == CAPPED;
	k->disagree += g == OTHER;
	k->undecided += g == OPEN;
	if (g == OTHER && (!k->first_disagreement || time < k->first_disagreement))
		k->first_disagreement = time;
}

/* A span whose end showed no longest period is judged by the next sight before another pass. */
static void check_waiting(struct nrp_task_moves *m, struct nrp_task *task, int32_t scan_seq,
			  uint32_t period_max)
{
	struct nrp_period_span *w = &task->waiting;

	if (!w->used || (scan_seq == w->scan_seq && !task->sight.broken && !period_max))
		return;
	if (scan_seq != w->scan_seq || task->sight.broken)
		period_max = 0;
	count_span(m, task, w->time, growth(w->from, w->to, w->passes, period_max), false);
	w->used = false;
}

static void check_passes(struct nrp_task_moves *m, struct nrp_task *task, uint64_t time,
			 uint32_t period, int32_t scan_seq, uint32_t period_max)
{
	const struct nrp_period_sight *s = &task->sight;
	int64_t passes = (int64_t)scan_seq - s->scan_seq;
	enum growth g = OPEN;

	if (!s->reset_possible && passes > 0)
		g = growth(s->period, period, passes, period_max);
	else
		passes = 0;
	if (g != OPEN || period_max || !passes) {
		count_span(m, task, time, g, s->local_before);
		return;
	}
	task->waiting = (struct nrp_period_span){ .used = true,
						  .from = s->period,
						  .to = period,
						  .passes = passes,
						  .scan_seq = scan_seq,
						  .time = time };
}

void nrp_periods_see(struct nrp_task_moves *m, struct nrp_task *task,
		     const struct nrp_host_facts *facts, uint64_t time, uint32_t period,
		     int32_t scan_seq, uint32_t period_max)
{
	const struct nrp_period_sight *s = &task->sight;

	check_waiting(m, task, scan_seq, period_max);
	if (s->seen && !s->broken) {
		if (scan_seq == s->scan_seq)
			check_resets(m, task, facts, period);
		else if (!task->unsure)
			check_passes(m, task, time, period, scan_seq, period_max);
	}
	/* 0: the next pass sets it, before it scans. */
	task->sight = (struct nrp_period_sight){
		.seen = period != 0,
		.local_before = task->local_since,
		.period = period,
		.scan_seq = scan_seq,
	};
}

void nrp_periods_end(struct nrp_task_moves *m, const struct nrp_task *task)
{
	const struct nrp_period_span *w = &task->waiting;

	if (w->used)
		count_span(m, task, w->time, growth(w->from, w->to, w->passes, 0), false);
}

/* Open steps are counted at the rate of the decided ones. */
void nrp_periods_finish(struct nrp_task_moves *m)
{
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++) {
		struct nrp_reset_count *c = &m->reset[v];
		uint64_t decided = c->lower + c->refused, open = c->upper - c->lower;

		c->value = c->lower + (decided ? (open * c->lower + decided / 2) / decided : 0);
	}
}
