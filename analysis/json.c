/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whole numbers print as integers. */
static json_t *number(bool has, double value)
{
	if (!has)
		return json_null();
	if (value == floor(value) && fabs(value) < 9007199254740992.0)
		return json_integer((json_int_t)value);
	return json_real(value);
}

static json_t *quantity(const struct nrp_quantity *q)
{
	return json_pack("{s:o,s:o,s:o,s:s,s:i}", "value", number(q->has_value, q->value), "lower",
			 number(q->has_lower, q->lower), "upper", number(q->has_upper, q->upper),
			 "class", nrp_class_name(q->class), "tier", q->tier);
}

json_t *nrp_comparison_json(const struct nrp_comparison *c)
{
	json_t *metrics = json_array(), *notes = json_array();

	for (size_t i = 0; i < c->nr_metrics; i++) {
		const struct nrp_metric *m = &c->metric[i];

		json_array_append_new(metrics,
				      json_pack("{s:s,s:s,s:o,s:o,s:o}", "name", m->name, "unit",
						m->unit, "old", quantity(&m->old_lane), "new",
						quantity(&m->new_lane), "avoided",
						quantity(&m->avoided)));
	}
	for (size_t i = 0; i < c->nr_notes; i++) {
		json_t *n = json_pack("{s:s,s:s}", "code", c->note[i].code, "text",
				      c->note[i].text);

		if (c->note[i].detail)
			json_object_update(n, c->note[i].detail);
		json_array_append_new(notes, n);
	}
	return json_pack("{s:s,s:s,s:{s:s,s:O,s:O},s:{s:s,s:O,s:O},s:b,s:o,s:o}", "schema",
			 "numareplay.comparison/1", "capture", c->capture, "old", "name",
			 c->name[0], "variants", c->variants[0], "set", c->set[0], "new", "name",
			 c->name[1], "variants", c->variants[1], "set", c->set[1], "open_loop", 1,
			 "metrics", metrics, "notes", notes);
}

bool nrp_kernel_release(const char *uname, char *buf, size_t size)
{
	/* "Linux NODE RELEASE .." */
	const char *p = strchr(uname, ' ');

	p = p ? strchr(p + 1, ' ') : NULL;
	if (!p || !p[1])
		return false;
	snprintf(buf, size, "%.*s", (int)strcspn(p + 1, " "), p + 1);
	return true;
}

static json_t *check_json(const struct nrp_verify_check *k)
{
	const struct nrp_verify_variant *v = &k->variant[k->chosen];
	json_t *alike = json_array(), *rules = json_array(), *others = json_array(), *o;

	for (size_t i = 0; i < k->nr_variants; i++) {
		const struct nrp_verify_variant *x = &k->variant[i];

		if ((int)i == k->chosen)
			continue;
		if (k->indistinguishable[i])
			json_array_append_new(alike, json_string(x->variant));
		o = json_pack("{s:s,s:I,s:I,s:I,s:I}", "variant", x->variant, "decisions",
			      (json_int_t)x->decisions, "agree", (json_int_t)x->agree, "disagree",
			      (json_int_t)x->disagree, "undecided", (json_int_t)x->undecided);
		if (k->exclusion)
			json_object_set_new(o, "contradicted_by",
					    json_integer((json_int_t)x->excluded_by));
		json_array_append_new(others, o);
	}
	for (size_t i = 0; i < k->nr_rules; i++)
		json_array_append_new(rules, json_pack("{s:s,s:I,s:I}", "rule", k->rule[i].rule,
						       "decisions",
						       (json_int_t)k->rule[i].decisions, "agree",
						       (json_int_t)k->rule[i].agree));
	o = json_pack("{s:s,s:s,s:o,s:I,s:I,s:I,s:I,s:o,s:o}", "family", k->family, "variant",
		      v->variant, "indistinguishable", alike, "decisions",
		      (json_int_t)v->decisions, "agree", (json_int_t)v->agree, "disagree",
		      (json_int_t)v->disagree, "undecided", (json_int_t)v->undecided, "rules", rules,
		      "others", others);
	if (k->quota_fitted) {
		json_object_set_new(o, "quota", json_integer((json_int_t)k->quota));
		json_object_set_new(o, "quota_max",
				    k->quota_max == UINT64_MAX
					    ? json_null()
					    : json_integer((json_int_t)k->quota_max));
	}
	return o;
}

static json_t *counter_json(const struct nrp_verify_counter *k)
{
	const char *explained = nrp_explained_name(k->explained);

	return json_pack("{s:s,s:I,s:I,s:I,s:o}", "name", k->name, "trace", (json_int_t)k->trace,
			 "vmstat", (json_int_t)k->vmstat, "difference",
			 (json_int_t)k->difference, "explained",
			 explained ? json_string(explained) : json_null());
}

json_t *nrp_verify_json(const struct nrp_verify *v, const struct nrp_capture *capture)
{
	static const char *const verdicts[] = { "agrees", "disagrees", "no_evidence" };
	json_t *checks = json_array(), *counters = json_array(), *notes = json_array();
	char release[256];
	bool known = nrp_kernel_release(capture->facts.kernel, release, sizeof(release));

	for (size_t i = 0; i < v->nr_checks; i++)
		json_array_append_new(checks, check_json(&v->check[i]));
	for (size_t i = 0; i < v->nr_counters; i++)
		json_array_append_new(counters, counter_json(&v->counter[i]));
	for (size_t i = 0; i < v->nr_notes; i++)
		json_array_append_new(notes, json_pack("{s:s,s:s}", "code", v->note[i].code, "text",
						       v->note[i].text));
	return json_pack("{s:s,s:s,s:o,s:s,s:o,s:o,s:{s:o,s:[III]},s:I,s:o,s:I,s:o}", "schema",
			 "numareplay.verify/1", "capture", capture->name, "kernel",
			 known ? json_string(release) : json_null(), "verdict",
			 verdicts[v->verdict], "checks", checks, "counters", counters, "coverage",
			 "passes", number(true, v->passes), "pages_seen",
			 (json_int_t)v->pages_seen[0], (json_int_t)v->pages_seen[1],
			 (json_int_t)v->pages_seen[2], "lost_events",
			 (json_int_t)capture->lost_events, "probe_misses",
			 capture->probe_misses < 0 ? json_null()
						   : json_integer(capture->probe_misses),
			 "unjoined_events", (json_int_t)capture->unjoined_events, "notes", notes);
}
