/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/compare_internal.h"
#include "analysis/counters.h"
#include "replay/host.h"

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

json_t *nrp_quantity_json(const struct nrp_quantity *q)
{
	return json_pack("{s:o,s:o,s:o,s:s,s:i}", "value", number(q->has_value, q->value), "lower",
			 number(q->has_lower, q->lower), "upper", number(q->has_upper, q->upper),
			 "class", nrp_class_name(q->class), "tier", q->tier);
}

static json_t *note(const struct nrp_note *n)
{
	json_t *o = json_pack("{s:s,s:s}", "code", n->code, "text", n->text);

	if (n->detail)
		json_object_update(o, n->detail);
	return o;
}

json_t *nrp_comparison_json(const struct nrp_comparison *c)
{
	json_t *metrics = json_array(), *notes = json_array();

	for (size_t i = 0; i < c->nr_metrics; i++) {
		const struct nrp_metric *m = &c->metric[i];

		json_array_append_new(metrics,
				      json_pack("{s:s,s:s,s:o,s:o,s:o}", "name", m->name, "unit",
						m->unit, "old", nrp_quantity_json(&m->old_lane),
						"new", nrp_quantity_json(&m->new_lane), "avoided",
						nrp_quantity_json(&m->avoided)));
	}
	for (size_t i = 0; i < c->nr_notes; i++)
		json_array_append_new(notes, note(&c->note[i]));
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

static json_t *matches_json(const struct nrp_verify_check *k)
{
	json_t *list = json_array();

	for (size_t i = 0; i < k->nr_matches; i++)
		json_array_append_new(list, json_pack("{s:s,s:s?}", "variant", k->match[i].variant,
						      "switched_off", k->match[i].off));
	return list;
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
		json_array_append_new(rules,
				      json_pack("{s:s,s:I,s:I}", "rule", k->rule[i].rule,
						"decisions", (json_int_t)k->rule[i].decisions,
						"agree", (json_int_t)k->rule[i].agree));
	o = json_pack("{s:s,s:s,s:o,s:I,s:I,s:I,s:I,s:o,s:o}", "family", k->family, "variant",
		      v->variant, "indistinguishable", alike, "decisions", (json_int_t)v->decisions,
		      "agree", (json_int_t)v->agree, "disagree", (json_int_t)v->disagree,
		      "undecided", (json_int_t)v->undecided, "rules", rules, "others", others);
	if (k->nr_matches)
		json_object_set_new(o, "reproduced_by", matches_json(k));
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
			 "vmstat", (json_int_t)k->vmstat, "difference", (json_int_t)k->difference,
			 "explained", explained ? json_string(explained) : json_null());
}

static json_t *coverage_json(const struct nrp_verify *v)
{
	json_t *spaces = json_array();

	for (size_t i = 0; i < v->nr_coverage; i++) {
		const struct nrp_coverage *c = &v->coverage[i];
		char mm[24];

		snprintf(mm, sizeof(mm), "%016llx", (unsigned long long)c->mm);
		json_array_append_new(
			spaces,
			json_pack("{s:s,s:o,s:I,s:I,s:[III],s:o}", "mm", mm, "tgid",
				  c->tgid < 0 ? json_null() : json_integer(c->tgid), "faults",
				  (json_int_t)c->faults, "passes", (json_int_t)c->passes,
				  "pages_seen", (json_int_t)c->pages_seen[0],
				  (json_int_t)c->pages_seen[1], (json_int_t)c->pages_seen[2],
				  "needs_seconds",
				  number(c->passes > 0,
					 c->passes ? v->seconds * 2 / (double)c->passes : 0)));
	}
	return json_pack("{s:o,s:[III],s:o}", "passes", number(true, v->passes), "pages_seen",
			 (json_int_t)v->pages_seen[0], (json_int_t)v->pages_seen[1],
			 (json_int_t)v->pages_seen[2], "address_spaces", spaces);
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
	return json_pack(
		"{s:s,s:s,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:o,s:I,s:o}", "schema",
		"numareplay.verify/1", "capture", capture->name, "kernel",
		known ? json_string(release) : json_null(), "verdict", verdicts[v->verdict],
		"checks", checks, "counters", counters, "coverage", coverage_json(v),
		"starved_vmas", nrp_starved_record(v, nrp_host_page_size(&capture->facts)),
		"lock_sequences", nrp_lock_sequences(&v->locks), "lock_contention",
		nrp_lock_contention_json(&v->contention), "lost_events",
		(json_int_t)capture->lost_events, "probe_misses",
		capture->probe_misses < 0 ? json_null() : json_integer(capture->probe_misses),
		"unjoined_events", (json_int_t)capture->unjoined_events, "notes", notes);
}

/* ---- counters ----------------------------------------------------------------------- */

static json_t *count(struct nrp_count c)
{
	return c.state == NRP_COUNT_KNOWN ? json_integer((json_int_t)c.value) : json_null();
}

static json_t *tristate(enum nrp_tristate t)
{
	return t == NRP_UNKNOWN ? json_null() : json_boolean(t == NRP_TRUE);
}

/* 0: not given, not known. */
static json_t *given(int64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

static json_t *invariant_json(const struct nrp_counters_report *r, const struct nrp_invariant *i)
{
	return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:s,s:s,s:i}", "name", i->name, "run",
			 nrp_counters_run_name(r, i->run), "holds", tristate(i->holds), "explained",
			 i->explained ? json_string(i->explained) : json_null(), "left",
			 i->has_sides ? json_integer((json_int_t)i->left) : json_null(), "right",
			 i->has_sides ? json_integer((json_int_t)i->right) : json_null(), "text",
			 i->text, "class",
			 nrp_class_name(strcmp(i->name, "migrated_within_bound")
						? NRP_CLASS_EXACT
						: NRP_CLASS_BOUNDED),
			 "tier", 0);
}

static void put(json_t *object, json_t *classes, const char *name, json_t *value,
		enum nrp_class class)
{
	json_object_set_new(object, name, value);
	json_object_set_new(classes, name, json_string(nrp_class_name(class)));
}

static json_t *limiter_json(const struct nrp_counters_report *r, int run)
{
	const struct nrp_counters_limiter *l = &r->limiter[run];
	json_t *o = json_object(), *classes = json_object();

	json_object_set_new(o, "run", json_string(nrp_counters_run_name(r, run)));
	put(o, classes, "remote_faults", count(l->remote_faults), NRP_CLASS_EXACT);
	put(o, classes, "huge_pte_updates", count(l->huge_pte_updates), NRP_CLASS_EXACT);
	put(o, classes, "migrated_pages", count(l->migrated), NRP_CLASS_EXACT);
	put(o, classes, "upper_bound", count(l->upper_bound), NRP_CLASS_BOUNDED);
	put(o, classes, "update_bound", count(l->update_bound), NRP_CLASS_BOUNDED);
	put(o, classes, "fault_bound", count(l->fault_bound), NRP_CLASS_BOUNDED);
	put(o, classes, "edge_huge_pages", count(l->edge_huge_pages), NRP_CLASS_BOUNDED);
	put(o, classes, "quota", json_integer((json_int_t)r->options.quota), NRP_CLASS_EXACT);
	put(o, classes, "share_of_run", l->has_share ? json_real(l->share_of_run) : json_null(),
	    NRP_CLASS_BOUNDED);
	put(o, classes, "even_share", l->has_even_share ? json_real(l->even_share) : json_null(),
	    NRP_CLASS_BOUNDED);
	json_object_set_new(o, "can_refuse", tristate(l->can_refuse));
	json_object_set_new(o, "text", json_string(l->text));
	json_object_set_new(o, "classes", classes);
	json_object_set_new(o, "tier", json_integer(0));
	return o;
}

json_t *nrp_counters_json(const struct nrp_counters_report *r)
{
	json_t *inputs = json_array(), *counters = json_array(), *invariants = json_array();
	json_t *limiter = json_array(), *notes = json_array();

	for (size_t i = 0; i < r->nr_inputs; i++) {
		json_t *path = json_string(r->input[i].path); /* NULL: a name that is not UTF-8 */

		json_array_append_new(inputs,
				      json_pack("{s:o,s:s,s:I}", "file", path ? path : json_null(),
						"form", nrp_counters_kind_name(r->input[i].kind),
						"counters", (json_int_t)r->input[i].counters));
	}
	for (size_t i = 0; i < r->nr_rows; i++)
		json_array_append_new(
			counters,
			json_pack("{s:s,s:o,s:o,s:o,s:s,s:i}", "name", r->row[i].name, "before",
				  count(r->row[i].before), "after", count(r->row[i].after), "delta",
				  count(r->row[i].delta), "class",
				  nrp_class_name(nrp_counters_class(&r->row[i])), "tier", 0));
	for (size_t i = 0; i < r->nr_invariants; i++)
		json_array_append_new(invariants, invariant_json(r, &r->invariant[i]));
	for (int run = 0; run < r->nr_runs; run++)
		json_array_append_new(limiter, limiter_json(r, run));
	for (size_t i = 0; i < r->nr_notes; i++)
		json_array_append_new(notes, note(&r->note[i]));
	return json_pack(
		"{s:s,s:i,s:o,s:i,s:{s:I,s:I,s:I,s:I,s:o,s:o,s:o},s:o,s:o,s:o,s:o}", "schema",
		"numareplay.counters/1", "tier", 0, "inputs", inputs, "runs", r->nr_runs, "options",
		"page_size", (json_int_t)r->options.page_size, "huge_pages",
		(json_int_t)r->options.huge_pages, "quota", (json_int_t)r->options.quota,
		"interval_ms", (json_int_t)r->options.interval_ms, "hz", given(r->options.hz),
		"window_ticks", given(r->window_ticks), "nodes", given(r->options.nodes),
		"counters", counters, "invariants", invariants, "limiter", limiter, "notes", notes);
}
