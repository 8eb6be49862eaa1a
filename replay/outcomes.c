/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record does not say why an attempt failed, only what it left behind. So each generation's
 * rules are asked for everything that can go wrong, one thing at a time, and the record agrees with
 * a generation if one of the answers is exactly what is on record.
 */
#include "replay/outcomes.h"
#include "replay/attempts.h"
#include "replay/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TNF_OUTCOME (NRP_TNF_MIGRATED | NRP_TNF_MIGRATE_FAIL)

const char *nrp_attempt_end_name(enum nrp_attempt_end end)
{
	static const char *const names[NRP_NR_ATTEMPT_ENDS] = {
		"moved",   "ratelimited",    "exec-shared", "prepare",
		"refused", "migrate-failed", "thp-failed",  "unknown",
	};

	return (unsigned int)end < NRP_NR_ATTEMPT_ENDS ? names[end] : NULL;
}

/* ---- one attempt -------------------------------------------------------------------- */

/* Did the attempt come to its end on record? */
static bool complete(const struct nrp_hint_fault *f)
{
	return !(f->inferred & NRP_INFER_OPEN) && !NRP_NULL(f, hint_fault, attempt_ns);
}

/* What a huge page leaves behind depends on its size. */
static bool decidable(const struct nrp_hint_fault *f)
{
	return complete(f) && (f->attempt != NRP_ATTEMPT_THP || !NRP_NULL(f, hint_fault, pages));
}

static bool has_migrate_event(const struct nrp_hint_fault *f)
{
	return !NRP_NULL(f, hint_fault, migrated_pages) || !NRP_NULL(f, hint_fault, failed_pages);
}

static enum nrp_attempt_end end_of(const struct nrp_outcomes *o, const struct nrp_hint_fault *f)
{
	if (nrp_fault_moved(f))
		return NRP_END_MOVED;
	if (!NRP_NULL(f, hint_fault, ratelimited) && f->ratelimited)
		return NRP_END_RATELIMITED;
	if (!NRP_NULL(f, hint_fault, prepare_result) && f->prepare_result != 0)
		return f->prepare_result == -EACCES ? NRP_END_EXEC_SHARED : NRP_END_PREPARE;
	if (NRP_NULL(f, hint_fault, moved) || !complete(f))
		return NRP_END_UNKNOWN;
	if (f->attempt == NRP_ATTEMPT_THP)
		return NRP_END_THP_FAILED;
	if (has_migrate_event(f) || !NRP_NULL(f, hint_fault, prepare_result))
		return NRP_END_MIGRATE_FAILED;
	return o->migrations_recorded ? NRP_END_REFUSED : NRP_END_UNKNOWN;
}

/* Where events are missing, a move without its report or its event contradicts nothing. */
static bool may_lack_events(const struct nrp_outcomes *o, const struct nrp_hint_fault *f)
{
	return o->events_missing && (NRP_NULL(f, hint_fault, tnf_flags) ||
				     (nrp_fault_moved(f) && !has_migrate_event(f)));
}

/* ---- a generation's answer against the record --------------------------------------- */

/* The facts that can end an attempt, one of them true in each. */
static const struct nrp_outcome_attempt obstacles[] = {
	{ .pages = 1 },
	{ .file = true, .shared = true, .executable = true },
	{ .file = true, .dirty = true },
	{ .over_quota = true },
	{ .shared = true },
	{ .low_memory = true },
	{ .not_isolated = true },
	{ .no_target = true },
	{ .extra_refs = true },
	{ .changed = true },
};
#define NR_OBSTACLES (sizeof(obstacles) / sizeof(obstacles[0]))

/*
 * The fault is reported with the outcome in its flags and, if the page moved, on its new node. From
 * 5.14 on it is not reported if the migrating function failed and the PTE changed meanwhile.
 */
static bool report_matches(enum nrp_outcome_variant variant, const struct nrp_outcome *o,
			   const struct nrp_hint_fault *f)
{
	bool moved = o->stage == NRP_OUTCOME_MOVED;

	if (NRP_NULL(f, hint_fault, tnf_flags))
		return variant >= NRP_OUTCOME_61 && o->has_result && !moved;
	if ((f->tnf_flags & TNF_OUTCOME) != o->tnf_flags)
		return false;
	return !moved || NRP_NULL(f, hint_fault, mem_nid) || NRP_NULL(f, hint_fault, attempt_nid) ||
	       f->mem_nid == f->attempt_nid;
}

static bool event_matches(const struct nrp_outcome *o, const struct nrp_hint_fault *f)
{
	if (!o->has_event)
		return !has_migrate_event(f);
	return has_migrate_event(f) && f->migrated_pages == o->succeeded &&
	       f->failed_pages == o->failed;
}

static bool prepare_matches(const struct nrp_outcome *o, const struct nrp_hint_fault *f)
{
	if (!o->has_prepare)
		return NRP_NULL(f, hint_fault, prepare_result);
	return !NRP_NULL(f, hint_fault, prepare_result) && o->prepare_result == f->prepare_result;
}

static bool result_matches(const struct nrp_outcome *o, const struct nrp_hint_fault *f)
{
	if (!o->has_result)
		return NRP_NULL(f, hint_fault, migrate_result);
	return !NRP_NULL(f, hint_fault, migrate_result) && o->result == f->migrate_result;
}

static bool limiter_matches(const struct nrp_outcome *o, const struct nrp_hint_fault *f)
{
	bool limited = !NRP_NULL(f, hint_fault, ratelimited) && f->ratelimited;

	return o->has_ratelimit_event == limited;
}

static bool may_apply(const struct nrp_outcome_attempt *obstacle, const struct nrp_hint_fault *f)
{
	return !obstacle->executable || NRP_NULL(f, hint_fault, vm_flags) ||
	       (f->vm_flags & NRP_VM_EXEC);
}

/* Counters that the matching answers leave between them. */
struct explained {
	bool any;
	bool huge_move;
	uint32_t migrated, success, fail_least, fail_most;
};

static void add_explanation(struct explained *e, const struct nrp_outcome *o)
{
	if (!e->any || o->pgmigrate_fail < e->fail_least)
		e->fail_least = o->pgmigrate_fail;
	if (!e->any || o->pgmigrate_fail > e->fail_most)
		e->fail_most = o->pgmigrate_fail;
	/* The same in all that match: the flags tell moves from failures. */
	e->migrated = o->numa_pages_migrated;
	e->success = o->pgmigrate_success;
	e->huge_move = o->stage == NRP_OUTCOME_MOVED && !o->has_event;
	e->any = true;
}

static struct explained explain(const struct nrp_outcomes *outcomes,
				enum nrp_outcome_variant variant, const struct nrp_hint_fault *f)
{
	struct explained e = { 0 };
	uint32_t pages = nrp_fault_pages(f);
	bool thp_function = variant <= NRP_OUTCOME_510 && pages > 1;

	/* Which function was called is on record as well. */
	if (thp_function != (f->attempt == NRP_ATTEMPT_THP))
		return e;
	for (size_t i = 0; i < NR_OBSTACLES; i++) {
		struct nrp_outcome_attempt a = obstacles[i];
		struct nrp_outcome o;

		if (!may_apply(&a, f))
			continue;
		a.pages = pages;
		o = nrp_outcome_decide(variant, &a);
		if ((!outcomes->reports_recorded || report_matches(variant, &o, f)) &&
		    result_matches(&o, f) && limiter_matches(&o, f) &&
		    (!outcomes->prepare_recorded || prepare_matches(&o, f)) &&
		    (!outcomes->migrations_recorded || event_matches(&o, f)))
			add_explanation(&e, &o);
	}
	return e;
}

/* ---- counting ----------------------------------------------------------------------- */

static int add_to_node(struct nrp_outcomes *o, int nid, enum nrp_attempt_end end, uint32_t pages)
{
	if (nid >= o->nr_nodes) {
		size_t old = (size_t)o->nr_nodes, n = (size_t)nid + 1;
		struct nrp_end_counts *grown = reallocarray(o->node, n, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(grown + old, 0, (n - old) * sizeof(*grown));
		o->node = grown;
		o->nr_nodes = nid + 1;
	}
	o->node[nid].end[end].attempts++;
	o->node[nid].end[end].pages += pages;
	return 0;
}

static void check_attempt(struct nrp_outcomes *o, const struct nrp_hint_fault *f,
			  enum nrp_attempt_end end)
{
	struct explained by[NRP_NR_OUTCOME_VARIANTS];
	const struct explained *e = &by[o->chosen];

	for (int v = 0; v < NRP_NR_OUTCOME_VARIANTS; v++) {
		struct nrp_outcome_check *c = &o->check[v];

		c->decisions++;
		if (!decidable(f)) {
			c->undecided++;
			continue;
		}
		by[v] = explain(o, (enum nrp_outcome_variant)v, f);
		if (!by[v].any && may_lack_events(o, f)) {
			c->undecided++;
			continue;
		}
		c->agree += by[v].any;
		c->disagree += !by[v].any;
		c->decided_by_end[end]++;
		c->agree_by_end[end] += by[v].any;
	}
	if (!decidable(f))
		return;
	for (int v = 0; v < NRP_NR_OUTCOME_VARIANTS; v++)
		o->check[v].indistinguishable &= by[v].any == e->any;
	o->counters.numa_pages_migrated += e->migrated;
	o->counters.pgmigrate_success += e->success;
	o->counters.pgmigrate_fail_lower += e->fail_least;
	o->counters.pgmigrate_fail_upper += e->fail_most;
	o->counters.huge_moves += e->huge_move;
	if (!e->any && !may_lack_events(o, f) && !o->first_disagreement)
		o->first_disagreement = f->time;
}

static int see_fault(struct nrp_outcomes *o, const struct nrp_hint_fault *f)
{
	enum nrp_attempt_end end;
	uint32_t pages;

	if (f->attempt == NRP_ATTEMPT_NONE)
		return 0;
	end = end_of(o, f);
	pages = nrp_fault_pages(f);
	o->all.end[end].attempts++;
	o->all.end[end].pages += pages;
	check_attempt(o, f, end);
	if (NRP_NULL(f, hint_fault, attempt_nid) || f->attempt_nid < 0 ||
	    f->attempt_nid >= NRP_MAX_NODES)
		return 0;
	return add_to_node(o, f->attempt_nid, end, pages);
}

/* ---- the whole ---------------------------------------------------------------------- */

static enum nrp_outcome_variant by_functions(const struct nrp_host_facts *facts)
{
	/* Without a probe on the prepare step the turned return value still shows the kernel. */
	if (facts->has_prepare_step || facts->moved_result == 0)
		return NRP_OUTCOME_612;
	if (facts->has_ratelimit_event)
		return NRP_OUTCOME_418;
	return facts->has_thp_function ? NRP_OUTCOME_510 : NRP_OUTCOME_61;
}

static uint64_t columns(void)
{
	return nrp_attempt_columns() | NRP_BIT(hint_fault, migrate_result) |
	       NRP_BIT(hint_fault, failed_pages) | NRP_BIT(hint_fault, tnf_flags) |
	       NRP_BIT(hint_fault, mem_nid) | NRP_BIT(hint_fault, inferred);
}

static int each_fault(struct nrp_outcomes *o, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_HINT_FAULT, columns(), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		r = see_fault(o, row);
		if (r < 0)
			nrp_fail_nomem(err);
	}
	nrp_cursor_close(cursor);
	return r;
}

int nrp_outcomes_load(struct nrp_outcomes *ret, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_outcomes o = { .chosen = by_functions(&capture->facts) };
	int r = nrp_store_capture_has_probe(store, capture->id, "mm_migrate_pages",
					    &o.migrations_recorded, err);

	o.reports_recorded = capture->facts.has_task_fault;
	o.events_missing = capture->lost_events || capture->loss_gaps || capture->unjoined_events;
	/* Kernels before it have no prepare step: there its absence is a fact. */
	o.prepare_recorded = capture->facts.has_prepare_step || o.chosen != NRP_OUTCOME_612;
	for (int v = 0; v < NRP_NR_OUTCOME_VARIANTS; v++)
		o.check[v].indistinguishable = true;
	if (r == 0)
		r = each_fault(&o, store, capture, err);
	if (r < 0) {
		nrp_outcomes_clear(&o);
		return r;
	}
	*ret = o;
	return 0;
}

void nrp_outcomes_clear(struct nrp_outcomes *outcomes)
{
	free(outcomes->node);
	memset(outcomes, 0, sizeof(*outcomes));
}
