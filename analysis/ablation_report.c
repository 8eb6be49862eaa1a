/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An ablation for people, and as a document. */
#include "analysis/ablation.h"
#include "analysis/compare_internal.h"
#include "analysis/text_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIKE_TEXT                                                                                 \
	"no decision of this capture tells the step from the one before: its scanner arms the "    \
	"same ranges in every pass, whatever the unknown facts are"
#define NO_HOST_TEXT                                                                               \
	"no step makes every recorded decision: the host's scanner is none of them, or decisions " \
	"are missing or raced (numareplay verify)"

static bool has_host(const struct nrp_ablation *a)
{
	bool host = false;

	for (size_t i = 0; i < NRP_ABLATION_STEPS; i++)
		host |= a->step[i].host;
	return host;
}

/* ---- text --------------------------------------------------------------------------- */

static void print_rows(struct libscols_table *t, const struct nrp_ablation *a, size_t k)
{
	for (size_t i = 0; i < NRP_ABLATION_STEPS; i++) {
		const struct nrp_ablation_step *s = &a->step[i];
		const struct nrp_ablation_metric *m = &s->metric[k];
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char text[160];

		nrp_text_cell(line, 0, i ? "" : m->name);
		nrp_text_cell(line, 1, s->name);
		nrp_text_quantity(text, sizeof(text), &m->value);
		nrp_text_cell(line, 2, text);
		nrp_text_cell(line, 3, nrp_class_name(m->value.class));
		nrp_text_quantity(text, sizeof(text), &m->change);
		nrp_text_cell(line, 4, i ? text : "");
		nrp_text_cell(line, 5, i ? nrp_class_name(m->change.class) : "");
		snprintf(text, sizeof(text), "%s%s%s", s->host ? "host" : "",
			 s->host && !s->discriminated ? ", " : "",
			 s->discriminated ? "" : "as before");
		nrp_text_cell(line, 6, text);
	}
}

static void print_steps(FILE *out, const struct nrp_ablation *a)
{
	for (size_t i = 0; i < NRP_ABLATION_STEPS; i++) {
		const struct nrp_ablation_step *s = &a->step[i];

		fprintf(out, "  %-16s %s%s%s\n", s->name, s->policy,
			s->switched_off[0] ? " without " : "", s->switched_off);
	}
}

char *nrp_ablation_text(const struct nrp_ablation *a, size_t width)
{
	static const char *const headers[] = { "METRIC", "STEP",      "VALUE", "CLASS",
					       "CHANGE", "OF CHANGE", "",      NULL };
	struct libscols_table *t = nrp_text_table(width, headers, 0x14);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (!out || !t) {
		scols_unref_table(t);
		if (out)
			fclose(out);
		free(text);
		return NULL;
	}
	fprintf(out,
		"ablation of scan.vma on capture %s: each step adds a rule to the one before\n",
		a->capture);
	print_steps(out, a);
	for (size_t k = 0; k < NRP_ABLATION_METRICS; k++)
		print_rows(t, a, k);
	nrp_text_print(out, t);
	fputs("host: the step makes every recorded decision\n", out);
	nrp_text_wrapped(out, "as before: " ALIKE_TEXT, width, 0, 0);
	if (!has_host(a))
		nrp_text_wrapped(out, NO_HOST_TEXT, width, 0, 0);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- document ----------------------------------------------------------------------- */

static json_t *rules_json(const char *names)
{
	json_t *list = json_array();

	while (*names) {
		size_t n = strcspn(names, ",");

		json_array_append_new(list, json_stringn(names, n));
		names += n + (names[n] == ',');
	}
	return list;
}

static json_t *step_json(const struct nrp_ablation_step *s, bool first)
{
	json_t *metrics = json_array();

	for (size_t k = 0; k < NRP_ABLATION_METRICS; k++) {
		const struct nrp_ablation_metric *m = &s->metric[k];

		json_array_append_new(
			metrics, json_pack("{s:s,s:s,s:o,s:o}", "name", m->name, "unit", m->unit,
					   "value", nrp_quantity_json(&m->value), "change",
					   first ? json_null() : nrp_quantity_json(&m->change)));
	}
	return json_pack("{s:s,s:s,s:o,s:b,s:o,s:o}", "step", s->name, "policy", s->policy,
			 "switched_off", rules_json(s->switched_off), "host", s->host,
			 "discriminated", first ? json_null() : json_boolean(s->discriminated),
			 "metrics", metrics);
}

json_t *nrp_ablation_json(const struct nrp_ablation *a)
{
	json_t *steps = json_array(), *notes = json_array();

	for (size_t i = 0; i < NRP_ABLATION_STEPS; i++) {
		json_array_append_new(steps, step_json(&a->step[i], !i));
		if (!a->step[i].discriminated)
			json_array_append_new(
				notes, json_pack("{s:s,s:s,s:s}", "code", "undiscriminated", "text",
						 ALIKE_TEXT, "step", a->step[i].name));
	}
	if (!has_host(a))
		json_array_append_new(notes, json_pack("{s:s,s:s}", "code", "no_host_step", "text",
						       NO_HOST_TEXT));
	return json_pack("{s:s,s:s,s:s,s:b,s:O,s:o,s:o}", "schema", "numareplay.ablation/1",
			 "capture", a->capture, "family", "scan.vma", "open_loop", 1, "set", a->set,
			 "steps", steps, "notes", notes);
}
