/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports for people. Tables by libsmartcols; the words of the notes wrapped to the width. */
#include "analysis/compare_internal.h"
#include "analysis/counters.h"
#include "analysis/text_internal.h"
#include "numareplay/text.h"
#include "replay/host.h"

#include <inttypes.h>
#include <libsmartcols.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows --------------------------------------------------------------------------- */

enum form { PLAIN, ADDRESS, SECONDS };

struct column {
	const char *key, *header;
	enum form form;
};

/* "-": null; "value [lower, upper]": an object of these; a string as it is. */
static void format_json(char *buf, size_t size, const json_t *value, const char *missing,
			enum form form)
{
	if (json_is_object(value)) {
		char part[3][40];

		format_json(part[0], sizeof(part[0]), json_object_get(value, "value"), "?", form);
		format_json(part[1], sizeof(part[1]), json_object_get(value, "lower"), "..", form);
		format_json(part[2], sizeof(part[2]), json_object_get(value, "upper"), "..", form);
		snprintf(buf, size, "%s [%s, %s]", part[0], part[1], part[2]);
	} else if (json_is_string(value)) {
		snprintf(buf, size, "%s", json_string_value(value));
		nrp_text_clean(buf);
	} else if (!json_is_number(value)) {
		snprintf(buf, size, "%s", missing);
	} else if (form == ADDRESS) {
		snprintf(buf, size, "%llx", (unsigned long long)json_integer_value(value));
	} else if (form == SECONDS) {
		snprintf(buf, size, "%.3f", json_number_value(value) * 1e-9);
	} else {
		nrp_text_value(buf, size, true, json_number_value(value), "-");
	}
}

/* Rows of a note as a table; the first column stands left, the others right. */
static void print_rows(FILE *out, const json_t *rows, const struct column *columns, size_t width)
{
	const char *headers[16] = { NULL };
	struct libscols_table *t;
	const json_t *row;
	size_t i, n = 0;

	for (; columns[n].key && n < 15; n++)
		headers[n] = columns[n].header;
	t = nrp_text_table(width, headers, ~1u);
	json_array_foreach((json_t *)rows, i, row)
	{
		struct libscols_line *line = t ? scols_table_new_line(t, NULL) : NULL;
		char text[144];

		for (size_t k = 0; k < n; k++) {
			format_json(text, sizeof(text), json_object_get(row, columns[k].key), "-",
				    columns[k].form);
			nrp_text_cell(line, k, text);
		}
	}
	if (t)
		nrp_text_print(out, t);
}

static const struct column starved_columns[] = {
	{ "lane", "STARVED", PLAIN },
	{ "mm", "ADDRESS SPACE", ADDRESS },
	{ "vm_start", "VM_START", ADDRESS },
	{ "vm_end", "VM_END", ADDRESS },
	{ "sequences_since", "SEQUENCES", PLAIN },
	{ "passes_since", "PASSES", PLAIN },
	{ "since_ns", "SECONDS", SECONDS },
	{ "never_set", "NEVER SET", PLAIN },
	{ "cleared", "CLEARED", PLAIN },
	{ "others", "OTHERS", PLAIN },
	{ "armed_bytes_per_pass", "BYTES/PASS", PLAIN },
	{ NULL, NULL, PLAIN },
};

static const struct column divergence_columns[] = {
	{ "lane", "DIVERGED", PLAIN },
	{ "mm", "ADDRESS SPACE", ADDRESS },
	{ "passes", "PASSES", PLAIN },
	{ "diverged", "AT", SECONDS },
	{ "uncertain", "UNCERTAIN FROM", SECONDS },
	{ "added_time", "FIRST ADDED", SECONDS },
	{ "added_start", "START", ADDRESS },
	{ "added_end", "END", ADDRESS },
	{ "added_by", "RULE", PLAIN },
	{ NULL, NULL, PLAIN },
};

static const struct column outcome_columns[] = {
	{ "outcome", "FAULTS", PLAIN }, { "faults", "ON RECORD", PLAIN },
	{ "pages", "PAGES", PLAIN },    { "old", "OLD", PLAIN },
	{ "new", "NEW", PLAIN },        { NULL, NULL, PLAIN },
};

static const struct column faulter_columns[] = {
	{ "pages_of", "PAGES OF", PLAIN }, { "nodes", "NODES", PLAIN }, { "pages", "PAGES", PLAIN },
	{ "faults", "FAULTS", PLAIN },     { NULL, NULL, PLAIN },
};

static const struct column process_columns[] = {
	{ "measure", "PER ADDRESS SPACE", PLAIN },
	{ "percentile", "PERCENTILE", PLAIN },
	{ "record", "ON RECORD", PLAIN },
	{ "old", "OLD", PLAIN },
	{ "new", "NEW", PLAIN },
	{ NULL, NULL, PLAIN },
};

/* Notes that have rows. */
static const struct {
	const char *code;
	const struct column *columns;
} row_notes[] = {
	{ "scan_divergence", divergence_columns }, { "starved_vmas", starved_columns },
	{ "fault_outcomes", outcome_columns },     { "faulter_nodes", faulter_columns },
	{ "process_spread", process_columns },
};

static void print_note_rows(FILE *out, const struct nrp_note *n, size_t width)
{
	for (size_t i = 0; i < sizeof(row_notes) / sizeof(row_notes[0]); i++)
		if (!strcmp(n->code, row_notes[i].code))
			print_rows(out, json_object_get(n->detail, "rows"), row_notes[i].columns,
				   width);
}

/* ---- comparison --------------------------------------------------------------------- */

static void print_lane(FILE *out, const struct nrp_comparison *c, int i)
{
	const char *key;
	json_t *value;

	fprintf(out, "  %s  %s", i ? "new" : "old", c->name[i]);
	json_object_foreach (c->set[i], key, value)
		if (json_is_integer(value) && strcmp(key, "hz") != 0)
			fprintf(out, "  %s=%lld", key, (long long)json_integer_value(value));
		else if (json_is_string(value))
			fprintf(out, "  %s=%s", key, json_string_value(value));
	fputc('\n', out);
}

static bool unmoved(const struct nrp_metric *m)
{
	return m->avoided.class == NRP_CLASS_EXACT && m->avoided.value == 0;
}

/* Both sides unknown, or one, and the other none because balancing is off. */
static bool hidden(const struct nrp_metric *m)
{
	const struct nrp_quantity *a = &m->old_lane, *b = &m->new_lane;
	bool no_a = a->class == NRP_CLASS_NOT_OBSERVABLE;
	bool no_b = b->class == NRP_CLASS_NOT_OBSERVABLE;

	return (no_a && no_b) || (no_a && b->class == NRP_CLASS_EXACT && b->value == 0) ||
	       (no_b && a->class == NRP_CLASS_EXACT && a->value == 0);
}

static void list_names(FILE *out, const struct nrp_comparison *c, bool want_unmoved,
		       const char *title, size_t width)
{
	char list[2048] = "";

	for (size_t i = 0; i < c->nr_metrics; i++) {
		const struct nrp_metric *m = &c->metric[i];
		size_t used = strlen(list);

		if (hidden(m) && unmoved(m) == want_unmoved)
			snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
				 m->name);
	}
	if (!list[0])
		return;
	fprintf(out, "%s\n  ", title);
	nrp_text_wrapped(out, list, width, 2, 2);
}

static void print_metrics(FILE *out, const struct nrp_comparison *c, size_t width)
{
	static const char *const headers[] = { "METRIC",           "UNIT", "OLD", "NEW", "AVOIDED",
					       "CLASS OF AVOIDED", NULL };
	struct libscols_table *t = nrp_text_table(width, headers, 0x1c);

	for (size_t i = 0; t && i < c->nr_metrics; i++) {
		const struct nrp_metric *m = &c->metric[i];
		struct libscols_line *line;
		char text[3][160];

		if (hidden(m))
			continue;
		line = scols_table_new_line(t, NULL);
		nrp_text_quantity(text[0], sizeof(text[0]), &m->old_lane);
		nrp_text_quantity(text[1], sizeof(text[1]), &m->new_lane);
		nrp_text_quantity(text[2], sizeof(text[2]), &m->avoided);
		nrp_text_cell(line, 0, m->name);
		nrp_text_cell(line, 1, m->unit);
		for (size_t k = 0; k < 3; k++)
			nrp_text_cell(line, 2 + k, text[k]);
		nrp_text_cell(line, 5, nrp_class_name(m->avoided.class));
	}
	if (t)
		nrp_text_print(out, t);
}

/* What a reader must know before the numbers. */
static bool comes_first(const struct nrp_note *n)
{
	return !strcmp(n->code, "blocked") || !strcmp(n->code, "recorded") ||
	       !strcmp(n->code, "verdict");
}

static void print_first(FILE *out, const struct nrp_comparison *c, size_t width)
{
	for (size_t i = 0; i < c->nr_notes; i++)
		if (comes_first(&c->note[i]))
			nrp_text_wrapped(out, c->note[i].text, width, 0, 0);
}

char *nrp_comparison_text(const struct nrp_comparison *c, size_t width)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "Replay of %s\n", c->capture);
	print_lane(out, c, 0);
	print_lane(out, c, 1);
	fputc('\n', out);
	print_first(out, c, width);
	fprintf(out, "\nvalue [lower, upper]; avoided = old - new, negative when the new policy "
		     "adds\n\n");
	print_metrics(out, c, width);
	fputc('\n', out);
	list_names(out, c, true, "Not moved by this pair (avoided 0, exact):", width);
	list_names(out, c, false, "Not observable in this capture by this version:", width);
	fprintf(out, "Notes\n");
	for (size_t i = 0; i < c->nr_notes; i++)
		if (!comes_first(&c->note[i])) {
			nrp_text_note(out, c->note[i].code, c->note[i].text, width);
			print_note_rows(out, &c->note[i], width);
		}
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- verify ------------------------------------------------------------------------- */

static void print_matches(FILE *out, const struct nrp_verify_check *k)
{
	for (size_t i = 0; i < k->nr_matches; i++)
		fprintf(out, "%s%s%s%s", i ? ", " : "  all reproduced by: ", k->match[i].variant,
			k->match[i].off ? " without " : "", k->match[i].off ? k->match[i].off : "");
	if (k->nr_matches)
		fputc('\n', out);
}

static void print_check(FILE *out, const struct nrp_verify_check *k, size_t width)
{
	static const char *const headers[] = { "VARIANT",   "DECISIONS", "AGREE", "DISAGREE",
					       "UNDECIDED", "",          NULL };
	struct libscols_table *t = nrp_text_table(width, headers, 0x1e);
	bool any = false;

	fprintf(out, "%s: %s", k->family, k->variant[k->chosen].variant);
	if (k->quota_fitted && k->quota_max == k->quota)
		fprintf(out, ", quota %llu pages", (unsigned long long)k->quota);
	else if (k->quota_fitted && k->quota_max < UINT64_MAX)
		fprintf(out, ", quota between %llu and %llu pages", (unsigned long long)k->quota,
			(unsigned long long)k->quota_max);
	else if (k->quota_fitted)
		fprintf(out, ", quota at least %llu pages", (unsigned long long)k->quota);
	fputc('\n', out);
	for (size_t i = 0; t && i < k->nr_variants; i++) {
		const struct nrp_verify_variant *v = &k->variant[i];
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char n[4][24], remark[96] = "";

		snprintf(n[0], sizeof(n[0]), "%llu", (unsigned long long)v->decisions);
		snprintf(n[1], sizeof(n[1]), "%llu", (unsigned long long)v->agree);
		snprintf(n[2], sizeof(n[2]), "%llu", (unsigned long long)v->disagree);
		snprintf(n[3], sizeof(n[3]), "%llu", (unsigned long long)v->undecided);
		if ((int)i == k->chosen)
			snprintf(remark, sizeof(remark), "the host's");
		else if (k->indistinguishable[i])
			snprintf(remark, sizeof(remark), "not to be told apart");
		else if (v->excluded_by > k->variant[k->chosen].excluded_by)
			snprintf(remark, sizeof(remark), "contradicted by %llu faults",
				 (unsigned long long)v->excluded_by);
		nrp_text_cell(line, 0, v->variant);
		for (size_t c = 0; c < 4; c++)
			nrp_text_cell(line, 1 + c, n[c]);
		nrp_text_cell(line, 5, remark);
	}
	if (t)
		nrp_text_print(out, t);
	print_matches(out, k);
	if (!k->nr_rules) {
		fputc('\n', out);
		return;
	}
	fprintf(out, "  by rule:");
	for (size_t i = 0; i < k->nr_rules; i++) {
		if (!k->rule[i].decisions)
			continue;
		fprintf(out, "  %s %llu/%llu", k->rule[i].rule,
			(unsigned long long)k->rule[i].agree,
			(unsigned long long)k->rule[i].decisions);
		any = true;
	}
	fprintf(out, "%s\n\n", any ? "" : "  none exercised");
}

static void print_counters(FILE *out, const struct nrp_verify *v, size_t width)
{
	static const char *const headers[] = {
		"COUNTER", "TRACE", "VMSTAT", "DIFFERENCE", "", NULL
	};
	struct libscols_table *t = nrp_text_table(width, headers, 0x0e);

	for (size_t i = 0; t && i < v->nr_counters; i++) {
		const struct nrp_verify_counter *k = &v->counter[i];
		const char *explained = nrp_explained_name(k->explained);
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char n[3][32];

		snprintf(n[0], sizeof(n[0]), "%lld", (long long)k->trace);
		snprintf(n[1], sizeof(n[1]), "%lld", (long long)k->vmstat);
		snprintf(n[2], sizeof(n[2]), "%lld", (long long)k->difference);
		nrp_text_cell(line, 0, k->name);
		for (size_t c = 0; c < 3; c++)
			nrp_text_cell(line, 1 + c, n[c]);
		nrp_text_cell(line, 4,
			      !k->ok      ? explained ? explained : "does not add up"
			      : explained ? explained
					  : "");
	}
	if (t && v->nr_counters) {
		nrp_text_print(out, t);
		fputc('\n', out);
	} else if (t) {
		scols_unref_table(t);
	}
}

#define COVERAGE_LINES 8

static void print_coverage(FILE *out, const struct nrp_verify *v, size_t width)
{
	static const char *const headers[] = { "ADDRESS SPACE", "PROCESS", "FAULTS", "PASSES",
					       "ONCE",          "TWICE",   "MORE",   NULL };
	struct libscols_table *t;

	if (!v->nr_coverage)
		return;
	t = nrp_text_table(width, headers, 0x7e);
	for (size_t i = 0; t && i < v->nr_coverage && i < COVERAGE_LINES; i++) {
		const struct nrp_coverage *c = &v->coverage[i];
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char text[7][32];

		snprintf(text[0], sizeof(text[0]), "%016llx", (unsigned long long)c->mm);
		snprintf(text[1], sizeof(text[1]), c->tgid < 0 ? "-" : "%d", c->tgid);
		snprintf(text[2], sizeof(text[2]), "%llu", (unsigned long long)c->faults);
		snprintf(text[3], sizeof(text[3]), "%llu", (unsigned long long)c->passes);
		for (int k = 0; k < 3; k++)
			snprintf(text[4 + k], sizeof(text[0]), "%llu",
				 (unsigned long long)c->pages_seen[k]);
		for (size_t k = 0; k < 7; k++)
			nrp_text_cell(line, k, text[k]);
	}
	if (t)
		nrp_text_print(out, t);
	if (v->nr_coverage > COVERAGE_LINES)
		fprintf(out, "  and %zu more address spaces (table coverage)\n",
			v->nr_coverage - COVERAGE_LINES);
}

/* VMAs that starve on record. */
static void print_starved(FILE *out, const struct nrp_verify *v, const struct nrp_host_facts *facts,
			  size_t width)
{
	json_t *o = nrp_starved_record(v, nrp_host_page_size(facts));
	json_int_t starved = json_integer_value(json_object_get(o, "starved"));

	if (starved) {
		fprintf(out,
			"starved VMAs: %lld of %lld that scans can arm were left out for more than "
			"nr_threads + 1 sequences\n",
			(long long)starved,
			(long long)json_integer_value(json_object_get(o, "eligible")));
		print_rows(out, json_object_get(o, "rows"), starved_columns, width);
	}
	json_decref(o);
}

/* Events of mmap_locks that cannot be, the first of them one by one. */
static void print_lock_sequences(FILE *out, const struct nrp_lock_counts *n, size_t width)
{
	static const char *const headers[] = { "TIME [s]", "TASK", "ADDRESS SPACE",
					       "WHAT CANNOT BE", NULL };
	unsigned long long all = (unsigned long long)(n->impossible + n->undecided);
	struct libscols_table *t;

	if (!all)
		return;
	fprintf(out,
		"mmap_lock events that cannot follow on what was before them: %llu, and %llu that "
		"may follow on lost events\n",
		(unsigned long long)n->impossible, (unsigned long long)n->undecided);
	t = nrp_text_table(width, headers, 0x03);
	for (size_t i = 0; t && i < n->nr_listed; i++) {
		const struct nrp_lock_impossible *e = &n->listed[i];
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char text[160];

		snprintf(text, sizeof(text), "%.9f", (double)e->time * 1e-9);
		nrp_text_cell(line, 0, text);
		snprintf(text, sizeof(text), "%d", e->tid);
		nrp_text_cell(line, 1, text);
		snprintf(text, sizeof(text), "%016llx", (unsigned long long)e->mm);
		nrp_text_cell(line, 2, text);
		snprintf(text, sizeof(text), "%s%s", nrp_lock_oddity_text(e->what),
			 e->undecided ? " (undecided: events are lost before it)" : "");
		nrp_text_cell(line, 3, text);
	}
	if (t)
		nrp_text_print(out, t);
	if (all > n->nr_listed)
		fprintf(out, "  and %llu more\n", all - n->nr_listed);
}

char *nrp_verify_text(const struct nrp_verify *v, const struct nrp_capture *capture, size_t width)
{
	static const char *const verdicts[] = {
		"agrees: the host's own policy reproduces what its kernel recorded",
		"disagrees",
		"no evidence: the capture has nothing to check",
	};
	char *text = NULL, release[256];
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s%s%s: %s\n\n", capture->name,
		nrp_kernel_release(capture->facts.kernel, release, sizeof(release)) ? ", kernel "
										    : "",
		nrp_kernel_release(capture->facts.kernel, release, sizeof(release)) ? release : "",
		verdicts[v->verdict]);
	for (size_t i = 0; i < v->nr_checks; i++)
		print_check(out, &v->check[i], width);
	print_counters(out, v, width);
	fprintf(out,
		"coverage: %.1f full scan passes per address space; pages seen once %llu, twice "
		"%llu, "
		"more often %llu\n",
		v->passes, (unsigned long long)v->pages_seen[0],
		(unsigned long long)v->pages_seen[1], (unsigned long long)v->pages_seen[2]);
	print_coverage(out, v, width);
	print_starved(out, v, &capture->facts, width);
	print_lock_sequences(out, &v->locks.counts, width);
	if (v->nr_notes)
		fprintf(out, "notes\n");
	for (size_t i = 0; i < v->nr_notes; i++)
		nrp_text_note(out, v->note[i].code, v->note[i].text, width);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- counters ----------------------------------------------------------------------- */

static void count_cell(struct libscols_line *line, size_t i, struct nrp_count c)
{
	char text[32];

	if (c.state == NRP_COUNT_KNOWN)
		snprintf(text, sizeof(text), "%" PRId64, c.value);
	else
		snprintf(text, sizeof(text), "%s", c.state == NRP_COUNT_MISSING ? "-" : "?");
	nrp_text_cell(line, i, text);
}

static void print_counts(FILE *out, const struct nrp_counters_report *r, size_t width)
{
	static const char *const headers[] = {
		"COUNTER", "BEFORE", "AFTER", "DELTA", "CLASS", NULL
	};
	struct libscols_table *t = nrp_text_table(width, headers, 0x0e);
	size_t others = 0, shown = 0;

	for (size_t i = 0; t && i < r->nr_rows; i++) {
		const struct nrp_counters_row *row = &r->row[i];
		struct libscols_line *line;

		/* A whole /proc/vmstat is too long to read; a table was chosen by somebody. */
		if (r->input[0].kind == NRP_COUNTERS_SNAPSHOT && !nrp_counter_is_known(row->name)) {
			others++;
			continue;
		}
		shown++;
		line = scols_table_new_line(t, NULL);
		nrp_text_cell(line, 0, row->name);
		count_cell(line, 1, row->before);
		count_cell(line, 2, row->after);
		count_cell(line, 3, row->delta);
		nrp_text_cell(line, 4, nrp_class_name(nrp_counters_class(row)));
	}
	if (t && shown)
		nrp_text_print(out, t);
	else if (t)
		scols_unref_table(t);
	if (others)
		fprintf(out, "%zu further counters: --json lists them\n", others);
	fputc('\n', out);
}

static void print_invariants(FILE *out, const struct nrp_counters_report *r, size_t width)
{
	static const char *const answers[] = { "not checked", "broken", "holds" }; /* from -1 */

	fprintf(out, "Invariants\n");
	for (size_t i = 0; i < r->nr_invariants; i++) {
		const struct nrp_invariant *v = &r->invariant[i];
		const char *explained = v->explained ? v->explained : "not explained";

		fprintf(out, "  %s%s%s  %s%s%s%s\n      ",
			r->nr_runs == 2 ? nrp_counters_run_name(r, v->run) : "",
			r->nr_runs == 2 ? "  " : "", v->name, answers[v->holds + 1],
			v->holds == NRP_FALSE ? " (" : "", v->holds == NRP_FALSE ? explained : "",
			v->holds == NRP_FALSE ? ")" : "");
		nrp_text_wrapped(out, v->text, width, 6, 6);
	}
	fputc('\n', out);
}

static void print_limiter(FILE *out, const struct nrp_counters_report *r, size_t width)
{
	static const char *const headers[] = { "RUN",      "REMOTE FAULTS",   "HUGE UPDATES",
					       "MIGRATED", "MIGRATED/REMOTE", "ATTEMPTED AT MOST",
					       "QUOTA",    "NEEDS",           NULL };
	struct libscols_table *t = nrp_text_table(width, headers, 0xfe);

	fprintf(out, "Migration limiter: %" PRId64 " pages to one node in a window of ",
		r->options.quota);
	if (r->window_ticks)
		fprintf(out, "%" PRId64 " ticks (%.0f ms)\n", r->window_ticks,
			(double)r->window_ticks * 1000 / (double)r->options.hz);
	else
		fprintf(out, "%" PRId64 " ms and a tick\n", r->options.interval_ms);
	for (int run = 0; t && run < r->nr_runs; run++) {
		const struct nrp_counters_limiter *l = &r->limiter[run];
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char share[32] = "-", needs[32] = "-", quota[32];

		if (l->migrated.state == NRP_COUNT_KNOWN && l->remote_faults.value > 0)
			snprintf(share, sizeof(share), "%.1f %%",
				 (double)l->migrated.value * 100 / (double)l->remote_faults.value);
		if (l->has_share && l->share_of_run < 0.001)
			snprintf(needs, sizeof(needs), "< 0.1 %%");
		else if (l->has_share)
			snprintf(needs, sizeof(needs), "%.1f %%", l->share_of_run * 100);
		snprintf(quota, sizeof(quota), "%" PRId64, r->options.quota);
		nrp_text_cell(line, 0, nrp_counters_run_name(r, run));
		count_cell(line, 1, l->remote_faults);
		count_cell(line, 2, l->huge_pte_updates);
		count_cell(line, 3, l->migrated);
		nrp_text_cell(line, 4, share);
		count_cell(line, 5, l->upper_bound);
		nrp_text_cell(line, 6, quota);
		nrp_text_cell(line, 7, needs);
	}
	if (t)
		nrp_text_print(out, t);
	for (int run = 0; run < r->nr_runs; run++) {
		const struct nrp_counters_limiter *l = &r->limiter[run];

		fprintf(out, "  %s:", nrp_counters_run_name(r, run));
		nrp_text_wrapped(out, l->text, width, 4, 5 + strlen(nrp_counters_run_name(r, run)));
		if (l->has_even_share)
			fprintf(out,
				"    with equal parts for %" PRId64 " nodes, %.1f %% of one part\n",
				r->options.nodes, l->even_share * 100);
	}
	fprintf(out, "  counts are exact; attempted and needed are bounded\n\n");
}

char *nrp_counters_text(const struct nrp_counters_report *r, size_t width)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "Counters of %s (evidence tier 0)\n",
		r->nr_runs == 1 ? "one run" : "two runs, before and after");
	for (size_t i = 0; i < r->nr_inputs; i++)
		fprintf(out, "  %s  %s, %zu counters\n", r->input[i].path,
			nrp_counters_kind_name(r->input[i].kind), r->input[i].counters);
	fputc('\n', out);
	print_counts(out, r, width);
	print_invariants(out, r, width);
	print_limiter(out, r, width);
	fprintf(out, "Notes\n");
	for (size_t i = 0; i < r->nr_notes; i++)
		nrp_text_note(out, r->note[i].code, r->note[i].text, width);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
