/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reader of counters must know beside them. The codes are published in docs/notes.md. */
#include "analysis/counters.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define QUOTA_64K 2048 /* pages: 128 MiB of 64 KiB */

/* Adds a note; takes over @detail, which may be NULL. */
__attribute__((format(printf, 4, 5))) static void
note(struct nrp_counters_report *r, const char *code, json_t *detail, const char *fmt, ...)
{
	struct nrp_note *n;
	va_list ap;

	if (r->nr_notes == NRP_MAX_NOTES) {
		json_decref(detail);
		return;
	}
	n = &r->note[r->nr_notes++];
	snprintf(n->code, sizeof(n->code), "%s", code);
	n->detail = detail;
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
}

/* Names that a note of @state lists: of what is missing only what is needed. */
static json_t *names_in_state(const struct nrp_counters_report *r, enum nrp_count_state state)
{
	static const char *const needed[] = { "numa_hint_faults",      "numa_hint_faults_local",
					      "numa_pages_migrated",   "numa_pte_updates",
					      "numa_huge_pte_updates", "pgmigrate_success" };
	json_t *names = json_array();

	for (size_t i = 0; state == NRP_COUNT_MISSING && i < sizeof(needed) / sizeof(needed[0]);
	     i++)
		if (nrp_counters_count(r, 0, needed[i]).state == state ||
		    nrp_counters_count(r, r->nr_runs - 1, needed[i]).state == state)
			json_array_append_new(names, json_string(needed[i]));
	for (size_t i = 0; state != NRP_COUNT_MISSING && i < r->nr_rows; i++) {
		const struct nrp_counters_row *row = &r->row[i];

		if (row->before.state == state || row->after.state == state ||
		    row->delta.state == state)
			json_array_append_new(names, json_string(row->name));
	}
	return names;
}

/* Counters without a count, by reason; the sentence lists as many as fit. */
static void state_note(struct nrp_counters_report *r, enum nrp_count_state state, const char *code,
		       const char *why)
{
	json_t *names = names_in_state(r, state);
	char list[512] = "";

	for (size_t i = 0; i < json_array_size(names); i++) {
		size_t used = strlen(list);

		if (used + NRP_COUNTER_NAME + 8 > sizeof(list)) {
			snprintf(list + used, sizeof(list) - used, ", ..");
			break;
		}
		snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
			 json_string_value(json_array_get(names, i)));
	}
	if (list[0])
		note(r, code, json_pack("{s:O}", "counters", names), "%s: %s", why, list);
	json_decref(names);
}

static void assumption_notes(struct nrp_counters_report *r)
{
	bool bounded = false, huge = false;

	for (int run = 0; run < r->nr_runs; run++) {
		bounded |= r->limiter[run].can_refuse != NRP_UNKNOWN;
		huge |= r->limiter[run].huge_pte_updates.value > 0;
	}
	if (!bounded)
		return;
	note(r, "bound_assumptions", NULL,
	     "the bound takes every remote fault for an attempt, as under the default memory "
	     "policy, of "
	     "one page%s",
	     r->large_folios ? " or any larger folio, up to a huge page"
			     : "; of a huge page as often as one was armed in the run");
	if (r->large_folios)
		note(r, "large_folios", NULL,
		     "this kernel moves folios of every size on a fault, and no counter tells "
		     "their "
		     "sizes: the bound counts %" PRId64 " pages for each remote fault",
		     r->options.huge_pages);
	if (r->quota_assumed)
		note(r, "quota_assumed",
		     r->page_size_assumed ? json_pack("{s:I}", "quota_64k", (json_int_t)QUOTA_64K)
					  : NULL,
		     "the quota is taken to be that of kernels up to 4.18, 128 MiB: %" PRId64
		     " pages%s; the answer holds for no other, see --quota%s",
		     r->options.quota,
		     r->page_size_assumed
			     ? " of 4 KiB, which is an assumption too (of 64 KiB: 2048)"
			     : "",
		     r->page_size_assumed ? " and --page-size" : "");
	if (huge && r->huge_pages_assumed && r->options.page_size != 4096)
		note(r, "huge_pages_assumed",
		     json_pack("{s:I}", "huge_pages", (json_int_t)r->options.huge_pages),
		     "a huge page is taken to be %" PRId64
		     " pages, the largest there is for this page size: see --huge-pages",
		     r->options.huge_pages);
	note(r, "first_window_unknown", NULL,
	     "what the limiter had charged before the run cannot be known: in a window that was "
	     "open "
	     "when the run began it can refuse earlier than this bound says");
}

static void edge_notes(struct nrp_counters_report *r)
{
	for (int run = 0; run < r->nr_runs; run++) {
		const struct nrp_counters_limiter *l = &r->limiter[run];

		if (l->refuted)
			note(r, "bound_refuted",
			     json_pack("{s:s,s:I,s:I}", "run", nrp_counters_run_name(r, run),
				       "migrated_pages", (json_int_t)l->migrated.value,
				       "update_bound", (json_int_t)l->update_bound.value),
			     "%s: %" PRId64 " pages were moved, more than the %" PRId64
			     " that the huge pages armed in the run account for; every remote "
			     "fault "
			     "is taken for a huge page instead",
			     nrp_counters_run_name(r, run), l->migrated.value,
			     l->update_bound.value);
		if (!nrp_count_known(l->edge_huge_pages))
			continue;
		note(r, "armed_before_window",
		     json_pack("{s:s,s:I}", "run", nrp_counters_run_name(r, run), "huge_pages",
			       (json_int_t)l->edge_huge_pages.value),
		     "%s: huge pages armed before the run and faulting in it are not in the bound; "
		     "%" PRId64
		     " of them, all to one node in one window, would take it above the quota",
		     nrp_counters_run_name(r, run), l->edge_huge_pages.value);
	}
}

static void unit_notes(struct nrp_counters_report *r)
{
	bool units = false, differ = false;
	char pairs[128] = "";

	for (int run = 0; run < r->nr_runs; run++) {
		const struct nrp_counters_limiter *l = &r->limiter[run];
		struct nrp_count events = nrp_counters_migrate_events(r, run);
		size_t used = strlen(pairs);

		units |= nrp_count_known(l->huge_pte_updates) && l->huge_pte_updates.value > 0;
		units |= nrp_count_known(l->migrated) && nrp_count_known(l->remote_faults) &&
			 l->migrated.value > l->remote_faults.value;
		if (!nrp_count_known(events) || !nrp_count_known(l->migrated) ||
		    events.value == l->migrated.value)
			continue;
		differ = true;
		snprintf(pairs + used, sizeof(pairs) - used, "%s%" PRId64 " against %" PRId64,
			 used ? ", " : "", events.value, l->migrated.value);
	}
	if (units)
		note(r, "thp_units", NULL,
		     "numa_hint_faults counts faults, numa_pages_migrated and numa_pte_updates "
		     "count "
		     "pages: one fault can move a huge page, so pages per fault are no share");
	if (differ)
		note(r, "inconsistent_windows", NULL,
		     "mm_migrate_pages and numa_pages_migrated differ (%s). The first counts "
		     "calls, "
		     "for all reasons, failed ones too, and up to 5.13 none for huge pages; and "
		     "two "
		     "tools do not start and stop together. Do not divide one by the other",
		     pairs);
}

void nrp_counters_add_notes(struct nrp_counters_report *r)
{
	bool idle = true;

	for (int run = 0; run < r->nr_runs; run++) {
		struct nrp_count faults = nrp_counters_count(r, run, "numa_hint_faults");
		struct nrp_count updates = nrp_counters_count(r, run, "numa_pte_updates");

		idle &= nrp_count_known(faults) && !faults.value && nrp_count_known(updates) &&
			!updates.value;
	}
	if (idle)
		note(r, "no_balancing", NULL,
		     "no page was armed and no hinting fault taken: balancing was off, or had "
		     "nothing "
		     "to do");
	assumption_notes(r);
	edge_notes(r);
	unit_notes(r);
	if (r->nr_runs == 2) {
		note(r, "single_runs", NULL,
		     "one run on each side: the differences hold the spread between runs as well "
		     "as any "
		     "effect, and these numbers cannot part the two");
		note(r, "earlier_refusals", NULL,
		     "refusals before the counted time act on: the kernel keeps scanning such "
		     "tasks more "
		     "slowly. No counter shows them");
		note(r, "cost_not_locality", NULL,
		     "hinting faults are samples, taken as often as the scans go: fewer of them "
		     "are not "
		     "fewer remote accesses");
	}
	state_note(r, NRP_COUNT_MISSING, "missing_counters",
		   "not in the input, so what needs them is not checked");
	state_note(r, NRP_COUNT_NOT_COUNTED, "not_counted", "the tool did not count these");
	state_note(r, NRP_COUNT_ESTIMATED, "estimated_counts",
		   "perf stat scaled or averaged these: estimates, not counts");
	state_note(r, NRP_COUNT_OUT_OF_RANGE, "value_out_of_range",
		   "2^63 or more, which no counter reaches");
	note(r, "what_would_decide", NULL,
	     "a capture with the probes of migration attempts: it shows how many pages were tried, "
	     "to "
	     "which node, in which window, and replay then asks the limiter; see numareplay import "
	     "and replay");
}
