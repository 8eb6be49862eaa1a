/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A lane whose scan passes come by modelled periods: its costs in proportion, and what it assumes.
 */
#include "analysis/compare_internal.h"

#include <math.h>

/* The interval of the observed cadence, and as far as the model goes beyond it. */
static void scale(struct nrp_quantity *q, double factor)
{
	if (q->class == NRP_CLASS_NOT_OBSERVABLE)
		return;
	q->value = round(q->value * factor);
	q->lower = floor(q->lower * fmin(factor, 1));
	q->upper = ceil(q->upper * fmax(factor, 1));
	q->class = NRP_CLASS_MODELLED;
}

void nrp_apply_cadence(struct nrp_builder *b, int i)
{
	const struct nrp_cadence_result *c = &b->r->lane[i].cadence;
	struct nrp_quantity *q = b->q[i];

	if (!c->valid)
		return;
	scale(&q[SCAN_PASSES], c->passes);
	scale(&q[SCAN_RANGES], c->passes);
	scale(&q[PTE_UPDATES], c->armed);
	scale(&q[HINT_FAULTS], c->faults);
	scale(&q[HINT_FAULTS_REMOTE], c->remote_faults);
	scale(&q[HINT_FAULT_PAGES], c->fault_pages);
}

void nrp_add_cadence_notes(struct nrp_comparison *c, const struct nrp_replay *r)
{
	for (int i = 0; i < 2; i++) {
		const struct nrp_cadence_result *m = &r->lane[i].cadence;
		uint64_t passes = r->scans.recorded.passes;

		if (!m->valid)
			continue;
		nrp_comparison_note(
			c, "cadence",
			json_pack("{s:s,s:s,s:I,s:f,s:f,s:f,s:f,s:f,s:I}", "lane",
				  i ? "new" : "old", "cadence", "modelled", "passes",
				  (json_int_t)passes, "passes_modelled", (double)passes * m->passes,
				  "period_recorded_ms", m->period_recorded_ms, "period_ms",
				  m->period_ms, "faults_factor", m->faults, "armed_factor",
				  m->armed, "diverged", (json_int_t)m->diverged),
			"%s lane: a model: its own faults would scan every %.1f ms instead of %.1f "
			"on average: %.1f passes for the %llu recorded ones. Passes, entries and "
			"hinting faults are in proportion to that, migrations are not. Taken from "
			"the record: sequences, owners of pages, failures, the size of the address "
			"space, groups, and what else passes wait for",
			i ? "new" : "old", m->period_ms, m->period_recorded_ms,
			(double)passes * m->passes, (unsigned long long)passes);
	}
}
