/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lanes of their own check: the ends of attempts, resets of scan periods, the sticky back-off.
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
	char text[400] = "";

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
	int r = nrp_scan_lane_verify(&v->scan, store, capture, &why);

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
	return check_scans(v, store, capture, err);
}
