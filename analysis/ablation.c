/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/ablation.h"
#include "analysis/compare_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PASSES_BY_VMA NRP_SCAN_RULE_START_SEQ
#define REVISIT (NRP_SCAN_RULE_FORCED | NRP_SCAN_RULE_SEQ_COMPLETED)

_Static_assert(NRP_ABLATION_STEPS <= NRP_MAX_SCAN_LANES, "all steps share one walk");

/*
 * P2 moved the reset of the PID window before the check of the bits (2e2675db1906): that comes with
 * the first rule of P2. What scans a VMA twice in one sequence came with the second walk
 * (f169c62ff7cd), and so did the rule against it.
 */
static const struct {
	const char *name;
	enum nrp_scan_vma_variant variant;
	uint32_t off; /* NRP_SCAN_RULE_* */
} steps[NRP_ABLATION_STEPS] = {
	{ "P0", NRP_SCAN_VMA_P0, 0 },
	{ "+delay", NRP_SCAN_VMA_P1, NRP_SCAN_RULE_PID },
	{ "+PID filter", NRP_SCAN_VMA_P1, 0 },
	{ "+start_scan_seq", NRP_SCAN_VMA_P2, NRP_SCAN_RULE_PARTIAL | REVISIT },
	{ "+partial", NRP_SCAN_VMA_P2, REVISIT },
	{ "+forced", NRP_SCAN_VMA_P2, 0 },
	{ "+stale", NRP_SCAN_VMA_P3, 0 },
};

static const char *const metrics[NRP_ABLATION_METRICS] = { "hint_faults", "pte_updates",
							   "scan_ranges", "migrated_pages",
							   "starved_vmas" };

/* ---- lanes -------------------------------------------------------------------------- */

int nrp_ablation_lane(struct nrp_lane_spec *ret, const struct nrp_lane_spec *base, size_t i,
		      struct nrp_error *err)
{
	struct nrp_lane_spec spec = *base, unused = *base;
	int r = 0;

	for (size_t k = 0; k < base->nr_set; k++)
		if (base->set[k].family == NRP_FAMILY_SCAN_VMA)
			return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1,
					"leave out what an ablation switches itself",
					"an ablation takes no setting of scan.vma");
	spec.variant[NRP_FAMILY_SCAN_VMA] = (int8_t)steps[i].variant;
	snprintf(spec.name, sizeof(spec.name), "scan.vma=%s",
		 nrp_family(NRP_FAMILY_SCAN_VMA)->variant[steps[i].variant].name);
	for (unsigned int rule = 0; r == 0 && rule < NRP_NR_SCAN_RULES; rule++) {
		char text[64];

		if (!(steps[i].off >> rule & 1))
			continue;
		snprintf(text, sizeof(text), "new:scan.vma.%s=0", nrp_scan_vma_rule_name(rule));
		r = nrp_lane_set(&unused, &spec, text, err);
	}
	if (r == 0)
		*ret = spec;
	return r;
}

static void name_step(struct nrp_ablation_step *s, size_t i)
{
	size_t used = 0;

	snprintf(s->name, sizeof(s->name), "%s", steps[i].name);
	snprintf(s->policy, sizeof(s->policy), "scan.vma=%s",
		 nrp_family(NRP_FAMILY_SCAN_VMA)->variant[steps[i].variant].name);
	for (unsigned int rule = 0; rule < NRP_NR_SCAN_RULES; rule++)
		if (steps[i].off >> rule & 1 && used < sizeof(s->switched_off))
			used += (size_t)snprintf(s->switched_off + used,
						 sizeof(s->switched_off) - used, "%s%s",
						 used ? "," : "", nrp_scan_vma_rule_name(rule));
}

/* ---- steps -------------------------------------------------------------------------- */

static struct nrp_quantity negative(struct nrp_quantity q)
{
	struct nrp_quantity n = q;

	n.value = q.has_value ? 0 - q.value : 0;
	n.has_lower = q.has_upper;
	n.lower = q.has_upper ? 0 - q.upper : 0;
	n.has_upper = q.has_lower;
	n.upper = q.has_lower ? 0 - q.lower : 0;
	return n;
}

struct run {
	struct nrp_store *store;
	const struct nrp_capture *capture;
	const struct nrp_verify *verify;
	struct nrp_lane_spec host, spec[NRP_ABLATION_STEPS];
	struct nrp_scan_lane scan[NRP_ABLATION_STEPS];
	/* Of the host less each step. */
	struct nrp_quantity avoided[NRP_ABLATION_STEPS][NRP_ABLATION_METRICS];
};

/* Step @i against an earlier one, or against the host (-1). */
static int compare(struct nrp_comparison *ret, bool *ret_host, const struct run *run, int from,
		   size_t i, struct nrp_error *err)
{
	const struct nrp_lane_spec spec[2] = { from < 0 ? run->host : run->spec[from],
					       run->spec[i] };
	const struct nrp_scan_lane *const scan[2] = { from < 0 ? NULL : &run->scan[from],
						      &run->scan[i] };
	struct nrp_replay replay;
	int r = nrp_replay_run_scanned(&replay, run->store, run->capture, run->verify, spec, scan,
				       err);

	if (r < 0)
		return r;
	*ret_host = nrp_replay_scans_as_host(&replay, 1);
	r = nrp_comparison_build(ret, &replay, run->capture, run->verify, err);
	nrp_replay_clear(&replay);
	return r;
}

/* The step by itself: what a replay of it against the host says. */
static int replay_step(struct nrp_ablation *a, struct run *run, size_t i, struct nrp_error *err)
{
	struct nrp_ablation_step *s = &a->step[i];
	struct nrp_comparison c;
	int r = compare(&c, &s->host, run, -1, i, err);

	if (r < 0)
		return r;
	name_step(s, i);
	s->discriminated = !i || !nrp_scan_lanes_alike(&run->scan[i - 1], &run->scan[i]);
	for (size_t k = 0; r == 0 && k < NRP_ABLATION_METRICS; k++) {
		const struct nrp_metric *from = nrp_comparison_metric(&c, metrics[k]);
		struct nrp_ablation_metric *m = &s->metric[k];

		if (!from) {
			r = nrp_fail(err, NRP_INTERNAL, -EINVAL, NULL, -1, NULL,
				     "a comparison has no %s", metrics[k]);
			break;
		}
		snprintf(m->name, sizeof(m->name), "%s", from->name);
		snprintf(m->unit, sizeof(m->unit), "%s", from->unit);
		m->value = from->new_lane;
		run->avoided[i][k] = from->avoided;
		m->change = nrp_not_observable(from->new_lane.tier);
	}
	if (r == 0 && !i)
		a->set = json_incref(c.set[0]);
	nrp_comparison_clear(&c);
	return r;
}

/* What step @i adds to the one before it, with the bounds of the pair. */
static int find_change(struct nrp_ablation *a, const struct run *run, size_t i,
		       struct nrp_error *err)
{
	struct nrp_ablation_step *s = &a->step[i];
	struct nrp_comparison c;
	bool host;
	int r;

	for (size_t k = 0; k < NRP_ABLATION_METRICS; k++)
		if (!s->discriminated)
			s->metric[k].change = nrp_exact(0, s->metric[k].value.tier);
		else if (a->step[i - 1].host)
			s->metric[k].change = negative(run->avoided[i][k]);
		else if (s->host)
			s->metric[k].change = run->avoided[i - 1][k];
	if (!s->discriminated || a->step[i - 1].host || s->host)
		return 0;
	r = compare(&c, &host, run, (int)i - 1, i, err);
	if (r < 0)
		return r;
	for (size_t k = 0; k < NRP_ABLATION_METRICS; k++)
		s->metric[k].change = negative(nrp_comparison_metric(&c, metrics[k])->avoided);
	nrp_comparison_clear(&c);
	return 0;
}

int nrp_ablation_run(struct nrp_ablation *ret, struct nrp_store *store,
		     const struct nrp_capture *capture, const struct nrp_verify *verify,
		     const struct nrp_lane_spec *base, struct nrp_error *err)
{
	struct nrp_ablation a = { .capture_id = capture->id };
	struct run run = { .store = store, .capture = capture, .verify = verify, .host = *base };
	int r = 0;

	snprintf(a.capture, sizeof(a.capture), "%s", capture->name);
	for (size_t i = 0; r == 0 && i < NRP_ABLATION_STEPS; i++)
		r = nrp_ablation_lane(&run.spec[i], base, i, err);
	if (r < 0)
		return r;
	r = nrp_replay_scan(run.scan, store, capture, run.spec, NRP_ABLATION_STEPS, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < NRP_ABLATION_STEPS; i++)
		r = replay_step(&a, &run, i, err);
	for (size_t i = 1; r == 0 && i < NRP_ABLATION_STEPS; i++)
		r = find_change(&a, &run, i, err);
	for (size_t i = 0; i < NRP_ABLATION_STEPS; i++)
		nrp_scan_lane_clear(&run.scan[i]);
	if (r < 0)
		nrp_ablation_clear(&a);
	else
		*ret = a;
	return r;
}

void nrp_ablation_clear(struct nrp_ablation *a)
{
	json_decref(a->set);
	a->set = NULL;
}
