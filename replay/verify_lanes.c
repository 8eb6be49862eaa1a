/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What lanes of their own check: the ends of attempts, resets of scan periods, the sticky back-off,
 * scan passes, waits for mmap_locks.
 */
#include "replay/registry.h"
#include "replay/verify_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- migrate.outcome ---------------------------------------------------------------- */

static void outcome_check(struct nrp_verify_check *k, const struct nrp_outcomes *o)
{
	*k = (struct nrp_verify_check){ .family = "migrate.outcome",
					.chosen = (int)o->chosen,
					.nr_variants = NRP_NR_OUTCOME_VARIANTS,
					.nr_rules = NRP_NR_ATTEMPT_ENDS };
	for (int v = 0; v < NRP_NR_OUTCOME_VARIANTS; v++) {
		const struct nrp_outcome_check *c = &o->check[v];

		k->variant[v] = (struct nrp_verify_variant){ .variant = nrp_outcome_variant_name(
								     (enum nrp_outcome_variant)v),
							     .decisions = c->decisions,
							     .agree = c->agree,
							     .disagree = c->disagree,
							     .undecided = c->undecided };
		k->indistinguishable[v] = v != (int)o->chosen && c->indistinguishable;
	}
	for (int e = 0; e < NRP_NR_ATTEMPT_ENDS; e++)
		k->rule[e] = (struct nrp_verify_rule){
			.rule = nrp_attempt_end_name((enum nrp_attempt_end)e),
			.decisions = o->check[o->chosen].decided_by_end[e],
			.agree = o->check[o->chosen].agree_by_end[e],
		};
}

/* ---- scan.reset --------------------------------------------------------------------- */

static bool better(const struct nrp_reset_count *a, const struct nrp_reset_count *b)
{
	return a->disagree < b->disagree;
}

/*
 * Periods are seen now and then, and a change between two sights is told from a reset by what else
 * was recorded: evidence, but no verdict.
 */
static void reset_check(struct nrp_verify_check *k, const struct nrp_task_moves *m,
			const struct nrp_host_facts *facts)
{
	/* Among equals, the one that was released with the functions that the kernel has. */
	int best = facts->has_ratelimit_event ? NRP_SCAN_RESET_418 : NRP_SCAN_RESET_LIM;

	*k = (struct nrp_verify_check){ .family = "scan.reset",
					.advisory = true,
					.nr_variants = NRP_NR_SCAN_RESET_VARIANTS };
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++) {
		const struct nrp_reset_count *c = &m->reset[v];

		k->variant[v] = (struct nrp_verify_variant){
			.variant = nrp_scan_reset_variant_name((enum nrp_scan_reset_variant)v),
			.decisions = c->decisions,
			.agree = c->agree,
			.disagree = c->disagree,
			.undecided = c->undecided,
		};
		if (better(c, &m->reset[best]))
			best = v;
	}
	k->chosen = best;
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++)
		k->indistinguishable[v] = v != best && !better(&m->reset[best], &m->reset[v]);
}

static void sticky_note(struct nrp_verify *v)
{
	const struct nrp_sticky *s = &v->moves.sticky;

	if (!s->sticky_tasks)
		return;
	nrp_verify_note(v, "sticky_tasks",
			"%llu of %llu tasks have a failed migration on record and back off for "
			"life: over placement passes their scan period doubled %llu times and "
			"stayed at the longest %llu times, against the rule %llu times, undecided "
			"%llu times",
			(unsigned long long)s->sticky_tasks, (unsigned long long)s->tasks,
			(unsigned long long)s->doubled, (unsigned long long)s->capped,
			(unsigned long long)s->disagree, (unsigned long long)s->undecided);
}

static void outcomes_note(struct nrp_verify *v)
{
	char text[256] = "";

	for (int e = 0; e < NRP_NR_ATTEMPT_ENDS; e++) {
		const struct nrp_end_count *c = &v->outcomes.end[e];
		size_t used = strlen(text);

		if (c->attempts)
			snprintf(text + used, sizeof(text) - used, "%s%s %llu (%llu pages)",
				 used ? ", " : "", nrp_attempt_end_name((enum nrp_attempt_end)e),
				 (unsigned long long)c->attempts, (unsigned long long)c->pages);
	}
	if (text[0])
		nrp_verify_note(v, "attempt_ends", "attempts by their end: %s", text);
}

/* ---- scan.period -------------------------------------------------------------------- */

static const char *period_variant(int v)
{
	return nrp_family(NRP_FAMILY_SCAN_PERIOD)->variant[v].name;
}

/* How periods were decided, and where the next scan was put. */
static void period_rules(struct nrp_verify_check *k, const struct nrp_period_count *c)
{
	for (int by = 0; by < NRP_PERIOD_BY_NOTHING; by++)
		k->rule[k->nr_rules++] =
			(struct nrp_verify_rule){ nrp_period_by_name((enum nrp_period_by)by),
						  c->decisions_by[by], c->agree_by[by] };
	k->rule[k->nr_rules++] =
		(struct nrp_verify_rule){ "next_scan", c->next_scans, c->next_scans_agree };
}

/*
 * The step is exact given its inputs, but the size of the address space, and with a group more, is
 * not on record: evidence, but no verdict.
 */
static void period_check(struct nrp_verify *v, const struct nrp_host_facts *facts)
{
	const struct nrp_period_count *c = v->periods.variant;
	struct nrp_verify_check *k = &v->check[v->nr_checks++];
	/* Among equals, the one that was released with the functions that the kernel has. */
	int best = facts->has_ratelimit_event ? NRP_SCAN_PERIOD_418 : NRP_SCAN_PERIOD_419;

	*k = (struct nrp_verify_check){ .family = "scan.period",
					.advisory = true,
					.nr_variants = NRP_NR_SCAN_PERIODS };
	if (c[!best].disagree < c[best].disagree)
		best = !best;
	k->chosen = best;
	k->indistinguishable[!best] = c[0].disagree == c[1].disagree;
	for (int i = 0; i < NRP_NR_SCAN_PERIODS; i++)
		k->variant[i] = (struct nrp_verify_variant){ .variant = period_variant(i),
							     .decisions = c[i].decisions,
							     .agree = c[i].agree,
							     .disagree = c[i].disagree,
							     .undecided = c[i].undecided };
	period_rules(k, &c[best]);
}

/* ---- scan.vma ----------------------------------------------------------------------- */

static const char *rule_off_name(const struct nrp_scan_check *c)
{
	return c->rule_off ? nrp_scan_vma_rule_name((unsigned int)__builtin_ctz(c->rule_off))
			   : NULL;
}

static struct nrp_verify_variant scan_variant(const char *name, const struct nrp_scan_check *c)
{
	return (struct nrp_verify_variant){ .variant = name,
					    .decisions = c->agree + c->disagree,
					    .agree = c->agree,
					    .disagree = c->disagree };
}

/* The variants in a row that this capture does not tell from the chosen one. */
static void not_discriminated_note(struct nrp_verify *v, const struct nrp_verify_check *k)
{
	int oldest = v->scan.has_skips || v->scan.has_state ? NRP_SCAN_VMA_P1 : NRP_SCAN_VMA_P0;
	int first = k->chosen, last = k->chosen;

	while (first > oldest && k->indistinguishable[first - 1])
		first--;
	while (last + 1 < NRP_NR_SCAN_VMA_VARIANTS && k->indistinguishable[last + 1])
		last++;
	if (first == last)
		return;
	nrp_verify_note(v, "scan_not_discriminated",
			"scan.vma: no decision discriminates %s..%s: over all %llu passes they arm "
			"and leave out the same",
			k->variant[first].variant, k->variant[last].variant,
			(unsigned long long)v->scan.passes);
}

static void scan_matches(struct nrp_verify_check *k, const struct nrp_scan_verify *s)
{
	for (size_t i = 0; i < s->nr_checks; i++)
		if (!s->check[i].disagree)
			k->match[k->nr_matches++] = (struct nrp_verify_match){
				nrp_scan_vma_variant_name(s->check[i].variant),
				rule_off_name(&s->check[i])
			};
}

/* Passes that agree only if the clock ticked, or a PID bit was set, at one moment on their way. */
static void ties_note(struct nrp_verify *v, const struct nrp_scan_check *c)
{
	char list[320] = "";

	for (size_t i = 0; i < c->nr_ties; i++) {
		const struct nrp_scan_tie *t = &c->tie[i];
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%llu.%09llu s mm %llx (%s)",
			 used ? ", " : "", (unsigned long long)(t->time / 1000000000),
			 (unsigned long long)(t->time % 1000000000), (unsigned long long)t->mm,
			 t->tick ? t->late_bit ? "both" : "tick" : "bit");
	}
	if (list[0])
		nrp_verify_note(v, "scan_ties",
				"scan.vma: passes that agree only if the clock ticked between two "
				"of their VMAs: %llu; if a PID bit was set at the moment its VMA "
				"was looked at: %llu; %s",
				(unsigned long long)c->races, (unsigned long long)c->late_bits,
				list);
}

/*
 * A pass is one decision. Passes of several threads overlap and fault events lag behind the PID
 * bits they set, so that single passes may come out otherwise: evidence, but no verdict.
 */
static void scan_check(struct nrp_verify *v)
{
	struct nrp_verify_check *k = &v->check[v->nr_checks++];
	const struct nrp_scan_verify *s = &v->scan;
	const struct nrp_scan_check *best = &s->check[s->chosen];

	*k = (struct nrp_verify_check){ .family = "scan.vma",
					.advisory = true,
					.chosen = (int)best->variant,
					.nr_variants = NRP_NR_SCAN_VMA_VARIANTS,
					.nr_rules = NRP_NR_SCAN_REASONS };
	for (int i = 0; i < NRP_NR_SCAN_VMA_VARIANTS; i++) {
		k->variant[i] = scan_variant(
			nrp_scan_vma_variant_name((enum nrp_scan_vma_variant)i), &s->check[i]);
		k->indistinguishable[i] =
			i != k->chosen && !best->rule_off && !s->told_apart[i][k->chosen];
	}
	for (unsigned int i = 0; i < NRP_NR_SCAN_REASONS; i++)
		k->rule[i] = (struct nrp_verify_rule){ nrp_scan_reason_name(i),
						       best->decisions_by[i], best->agree_by[i] };
	scan_matches(k, s);
	ties_note(v, best);
	if (!best->rule_off) {
		not_discriminated_note(v, k);
		return;
	}
	k->switched_off = rule_off_name(best);
	k->chosen = (int)k->nr_variants;
	k->variant[k->nr_variants++] =
		scan_variant(nrp_scan_vma_without_name(best->variant, best->rule_off), best);
	nrp_verify_note(v, "scan_rule_off",
			"scan.vma: %s with rule %s off explains %llu of %llu passes, with all "
			"rules on %llu",
			nrp_scan_vma_variant_name(best->variant), rule_off_name(best),
			(unsigned long long)best->agree, (unsigned long long)s->passes,
			(unsigned long long)s->check[best->variant].agree);
}

static int check_scans(struct nrp_verify *v, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_error why = NRP_ERROR_INIT;
	int r = nrp_scan_lane_verify_record(&v->scan, &v->scan_record, store, capture, &why);

	if (r == -ENODATA)
		return 0;
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	if (!v->scan.passes)
		return 0;
	/* A capture that begins in the middle of things may not show enough of the VMAs' state. */
	if (v->scan.check[v->scan.chosen].disagree > v->scan.passes / 2) {
		nrp_verify_note(
			v, "scan_not_explained",
			"scan.vma: no variant explains more than %llu of %llu passes; the host's "
			"is taken for unknown",
			(unsigned long long)v->scan.check[v->scan.chosen].agree,
			(unsigned long long)v->scan.passes);
		return 0;
	}
	v->has_scan = true;
	scan_check(v);
	return 0;
}

/* ---- munmap.lock ---------------------------------------------------------------------- */

/* Requests whose recorded wait is not what the engine says, the first of them by name. */
static void lock_note(struct nrp_verify *v, const struct nrp_lock_verify *c)
{
	char text[256] = "";

	for (size_t i = 0; i < c->nr_listed && i < 2; i++) {
		size_t used = strlen(text);
		const char *why = c->listed[i].recorded < c->listed[i].model
					  ? "before a waiter that slept"
				  : c->listed[i].queued ? "late"
							: "interrupted or overtaken";

		snprintf(text + used, sizeof(text) - used,
			 "%s task %d at %.6f s (%.3f ms, engine %.3f ms: %s)", used ? "," : ":",
			 c->listed[i].tid, (double)c->listed[i].requested * 1e-9,
			 (double)c->listed[i].recorded * 1e-6, (double)c->listed[i].model * 1e-6,
			 why);
	}
	nrp_verify_note(
		v, "lock_order",
		"munmap.lock: %llu of %llu requests got the lock in the recorded order, %llu "
		"of them before a waiter that had not woken up yet; %llu of %llu scans found "
		"it free or taken as recorded; waiters wake up %.3f ms late (95 %%: %.3f ms); "
		"%llu waits are shorter and %llu longer than that allows%s",
		(unsigned long long)c->in_order, (unsigned long long)c->requests,
		(unsigned long long)c->overtook, (unsigned long long)c->scans_agree,
		(unsigned long long)c->scans, (double)c->lateness_p50 * 1e-6,
		(double)c->lateness_p95 * 1e-6, (unsigned long long)c->below,
		(unsigned long long)c->above, text);
}

/* Is the recorded order one that the lock's rule allows? */
static void order_note(struct nrp_verify *v, const struct nrp_lock_host *h)
{
	const struct nrp_lock_order *o = &h->order;
	char text[256] = "";

	for (size_t i = 0; i < o->nr_listed && i < 3; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s task %d at %.6f s (%s)",
			 used ? "," : ":", o->listed[i].tid, (double)o->listed[i].granted * 1e-9,
			 o->listed[i].what);
	}
	nrp_verify_note(
		v, "lock_rule",
		"munmap.lock: of %llu recorded grants %llu were in line, %llu with readers in "
		"line past a writer, %llu before a writer that spun (at most %.3f ms), %llu of a "
		"lock that stood free until a waiter woke up, %llu against the rule%s; by that "
		"of 5.2 and before %llu would be against it",
		(unsigned long long)o->grants, (unsigned long long)o->in_line,
		(unsigned long long)o->together, (unsigned long long)o->spinning,
		(double)o->longest_spin * 1e-6, (unsigned long long)o->stolen,
		(unsigned long long)o->against, text, (unsigned long long)h->prefix_order.against);
}

static void lock_notes(struct nrp_verify *v)
{
	const struct nrp_lock_host *h = &v->locks;
	const struct nrp_lock_counts *n = &h->counts;

	lock_note(v, &h->check[h->variant]);
	order_note(v, h);
	if (h->kept_write)
		nrp_verify_note(
			v, "munmap_kept_write",
			"%llu of %llu unmaps that may downgrade the lock did not: %s",
			(unsigned long long)h->kept_write, (unsigned long long)h->counts.munmaps,
			h->grows ? "a neighbour that grows, which kernels from 5.8 to 6.4 leave "
				   "under the write lock"
				 : "no rule of this kernel says so, so it holds the lock for "
				   "writing throughout");
	if (n->impossible || n->undecided || n->began_before || n->never_ended || n->killed_waits)
		nrp_verify_note(
			v, "lock_sequences",
			"mmap_lock events: %llu cannot follow on what was before them, and %llu "
			"more may follow on lost events (undecided); %llu releases of locks taken "
			"before the capture, %llu locks held at its end; %llu waits ended without "
			"the lock (killed), and %llu tries failed",
			(unsigned long long)n->impossible, (unsigned long long)n->undecided,
			(unsigned long long)n->began_before, (unsigned long long)n->never_ended,
			(unsigned long long)n->killed_waits, (unsigned long long)n->failed_tries);
	if (n->lossy)
		nrp_verify_note(v, "lock_lost_events",
				"munmap.lock: lost events touch %llu requests for an mmap_lock: "
				"whom they waited for is undecided",
				(unsigned long long)n->lossy);
	if (n->page_faults > n->faults)
		nrp_verify_note(
			v, "faults_without_lock",
			"%llu of %llu page faults never asked for an mmap_lock (they took the "
			"lock of their VMA, or needed none): what another munmap would have "
			"cost them without such locks is not on record",
			(unsigned long long)(n->page_faults - n->faults),
			(unsigned long long)n->page_faults);
}

/* Waits are measured, and the engine's are those of an ideal lock: evidence, but no verdict. */
static void lock_check(struct nrp_verify *v)
{
	struct nrp_verify_check *k = &v->check[v->nr_checks++];
	const struct nrp_lock_host *h = &v->locks;
	const struct nrp_lock_verify *own = &h->check[h->variant];

	*k = (struct nrp_verify_check){ .family = "munmap.lock",
					.advisory = true,
					.chosen = (int)h->variant,
					.nr_variants = NRP_NR_MUNMAP_VARIANTS };
	for (int i = 0; i < NRP_NR_MUNMAP_VARIANTS; i++) {
		const struct nrp_lock_verify *c = &h->check[i];

		k->variant[i] = (struct nrp_verify_variant){
			.variant = nrp_munmap_variant_name((enum nrp_munmap_variant)i),
			.decisions = c->requests,
			.agree = c->within,
			.disagree = c->requests - c->within,
			.undecided = c->undecided,
		};
		k->indistinguishable[i] = i != (int)h->variant && c->within == own->within &&
					  c->in_order == own->in_order &&
					  c->scans_agree == own->scans_agree;
	}
	lock_notes(v);
}

#define SUM(w, field) ((unsigned long long)((w)[0].field + (w)[1].field))

/* Waits in line for rw_semaphores: all that is known where mmap_lock events are missing. */
static void contention_note(struct nrp_verify *v)
{
	const struct nrp_lock_contention *c = &v->contention;
	char tie[160];

	if (!c->known)
		return;
	if (c->has_offset)
		snprintf(tie, sizeof(tie),
			 "mmap_locks lie %llu bytes into their address space (%llu "
			 "times seen)",
			 (unsigned long long)c->offset, (unsigned long long)c->samples);
	else
		snprintf(tie, sizeof(tie), "which of them are mmap_locks is not known (%s)",
			 c->conflicting ? "what was seen of their place in the address space does "
					  "not agree"
					: "no munmap with downgrade_write probed, and no mmap_lock "
					  "event, tells their place in the address space");
	nrp_verify_note(
		v, "lock_contention",
		"%llu tasks waited in line for mmap_locks, %.3f ms in all (reads %llu of %.3f, "
		"writes %llu of %.3f), and %llu for other or nameless rw_semaphores, %.3f ms; %s; "
		"waits begin when a task gets in line, behind its spinning: lower bounds",
		SUM(c->of_mms, waits), (double)SUM(c->of_mms, ns) * 1e-6,
		(unsigned long long)c->of_mms[0].waits, (double)c->of_mms[0].ns * 1e-6,
		(unsigned long long)c->of_mms[1].waits, (double)c->of_mms[1].ns * 1e-6,
		SUM(c->nameless, waits), (double)SUM(c->nameless, ns) * 1e-6, tie);
}

static int check_locks(struct nrp_verify *v, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_lock_lanes lanes;
	int r = nrp_lock_lanes_load(&lanes, store, capture, err);

	if (r == 0 && lanes.host.known && nrp_lock_lanes_check(&lanes) < 0)
		r = nrp_fail_nomem(err);
	if (r == 0) {
		v->locks = lanes.host;
		if (v->locks.known)
			lock_check(v);
		else if (v->locks.counts.phases_without_lock)
			nrp_verify_note(
				v, "locks_not_recorded",
				"%llu unmaps are on record with their phases, and no request for "
				"an mmap_lock is (the events came with 5.11): who waited for whom "
				"is not known",
				(unsigned long long)v->locks.counts.phases_without_lock);
	}
	nrp_lock_lanes_clear(&lanes);
	if (r == 0)
		r = nrp_lock_contention_load(&v->contention, store, capture, err);
	if (r == 0)
		contention_note(v);
	return r;
}

/* ---- hugetlb.count -------------------------------------------------------------------- */

static void hugetlb_note(struct nrp_verify *v)
{
	const struct nrp_hugetlb_result *h = &v->hugetlb;

	nrp_verify_note(v, "hugetlb_pages",
			"hugetlb.count: %llu faults and %llu look-ups of entries put %llu tables "
			"to more than one "
			"use; %llu walks came to %llu pages that they may move, took %llu and "
			"moved %llu; %llu of "
			"these pages were mapped before the capture, %llu slots turned up with "
			"another table",
			(unsigned long long)h->faults, (unsigned long long)h->allocs,
			(unsigned long long)h->work.shares, (unsigned long long)h->walks,
			(unsigned long long)h->decisions, (unsigned long long)h->isolated_record,
			(unsigned long long)h->moved_record, (unsigned long long)h->unknown,
			(unsigned long long)h->surprises);
}

/* The host's is the first of those that contradict least and explain most. */
static int hugetlb_host(const struct nrp_hugetlb_result *h)
{
	int best = 0;

	for (int i = 1; i < NRP_NR_HUGETLB_VARIANTS; i++) {
		const struct nrp_hugetlb_tally *a = &h->tally[i], *b = &h->tally[best];

		if (a->disagree < b->disagree ||
		    (a->disagree == b->disagree && a->agree > b->agree))
			best = i;
	}
	return best;
}

static int check_hugetlb(struct nrp_verify *v, struct nrp_store *store,
			 const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_verify_check *k = &v->check[v->nr_checks];
	const struct nrp_hugetlb_tally *own;
	int r = nrp_hugetlb_run(&v->hugetlb, store, capture, NRP_HUGETLB_MAPCOUNT, true, err);

	v->hugetlb_host = -1;
	if (r < 0 || (!v->hugetlb.decisions && !v->hugetlb.allocs))
		return r;
	hugetlb_note(v);
	if (v->hugetlb.decisions == v->hugetlb.unknown)
		return 0;
	v->hugetlb_host = hugetlb_host(&v->hugetlb);
	v->nr_checks++;
	own = &v->hugetlb.tally[v->hugetlb_host];
	*k = (struct nrp_verify_check){ .family = "hugetlb.count",
					.chosen = v->hugetlb_host,
					.nr_variants = NRP_NR_HUGETLB_VARIANTS };
	for (int i = 0; i < NRP_NR_HUGETLB_VARIANTS; i++) {
		const struct nrp_hugetlb_tally *t = &v->hugetlb.tally[i];

		k->variant[i] = (struct nrp_verify_variant){
			.variant = nrp_hugetlb_variant_name((enum nrp_hugetlb_variant)i),
			.decisions = v->hugetlb.decisions,
			.agree = t->agree,
			.disagree = t->disagree,
			.undecided = t->undecided,
		};
		k->indistinguishable[i] = i != v->hugetlb_host && t->agree == own->agree &&
					  t->disagree == own->disagree;
	}
	return 0;
}

int nrp_verify_lanes(struct nrp_verify *v, struct nrp_store *store,
		     const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_outcomes outcomes;
	int r = nrp_outcomes_load(&outcomes, store, capture, err);

	if (r < 0)
		return r;
	v->outcomes = outcomes.all;
	if (outcomes.check[outcomes.chosen].decisions)
		outcome_check(&v->check[v->nr_checks++], &outcomes);
	nrp_outcomes_clear(&outcomes);
	r = nrp_task_moves_run(&v->moves, store, capture, err);
	if (r < 0)
		return r;
	if (v->moves.reset[NRP_SCAN_RESET_418].decisions)
		reset_check(&v->check[v->nr_checks++], &v->moves, &capture->facts);
	r = nrp_scan_periods_run(&v->periods, store, capture, err);
	if (r < 0)
		return r;
	if (v->periods.variant[NRP_SCAN_PERIOD_418].decisions ||
	    v->periods.variant[NRP_SCAN_PERIOD_419].decisions)
		period_check(v, &capture->facts);
	outcomes_note(v);
	sticky_note(v);
	r = check_scans(v, store, capture, err);
	if (r == 0)
		r = check_locks(v, store, capture, err);
	return r < 0 ? r : check_hugetlb(v, store, capture, err);
}
