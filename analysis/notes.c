/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reader must know beside the numbers. The codes are published in docs/notes.md. */
#include "analysis/compare_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *side(int i)
{
	return i ? "new" : "old";
}

static bool limits(const struct nrp_replay_lane *lane)
{
	return !lane->off && lane->e0.params.variant != NRP_RATELIMIT_NONE;
}

static void limiter_notes(struct nrp_comparison *c, const struct nrp_replay *r)
{
	if (r->identical) {
		nrp_comparison_note(
			c, "identical_on_trace",
			json_pack("{s:I,s:I,s:I,s:I}", "max_pages_in_window",
				  (json_int_t)r->max_pages_in_window, "max_pages_in_two_windows",
				  (json_int_t)r->max_pages_two_windows, "window_ticks",
				  (json_int_t)r->window_ticks, "quota", (json_int_t)r->quota),
			"no more than %llu pages were attempted to one node within any %llu ticks "
			"(%llu within twice that), and the quota is %llu: no variant refuses "
			"anything",
			(unsigned long long)r->max_pages_in_window,
			(unsigned long long)r->window_ticks,
			(unsigned long long)r->max_pages_two_windows, (unsigned long long)r->quota);
		return;
	}
	if (limits(&r->lane[0]) || limits(&r->lane[1]))
		nrp_comparison_note(
			c, "window_load",
			json_pack("{s:I,s:I,s:I}", "max_pages_in_window",
				  (json_int_t)r->max_pages_in_window, "window_ticks",
				  (json_int_t)r->window_ticks, "quota", (json_int_t)r->quota),
			"at most %llu pages were attempted to one node within %llu ticks; the "
			"quota is %llu",
			(unsigned long long)r->max_pages_in_window,
			(unsigned long long)r->window_ticks, (unsigned long long)r->quota);
}

static void e0_note(struct nrp_comparison *c, const struct nrp_replay_lane *lane, int i)
{
	const struct nrp_ratelimit_lane *e0 = &lane->e0;

	nrp_comparison_note(
		c, "e0_decisions",
		json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:I}", "lane", side(i), "variant",
			  nrp_ratelimit_variant_name(e0->params.variant), "attempts",
			  (json_int_t)(e0->admitted + e0->denied), "admitted",
			  (json_int_t)e0->admitted, "denied", (json_int_t)e0->denied,
			  "admitted_lower", (json_int_t)e0->admitted_min, "admitted_upper",
			  (json_int_t)e0->admitted_max, "ambiguous", (json_int_t)e0->ambiguous,
			  "fitted", e0->fitted, "races", (json_int_t)e0->races),
		"%s lane (%s), every recorded attempt judged where its page was: %llu admitted, "
		"%llu denied with %s; %llu to %llu admitted over all unknowns, %llu decisions "
		"ambiguous",
		side(i), nrp_ratelimit_variant_name(e0->params.variant),
		(unsigned long long)e0->admitted, (unsigned long long)e0->denied,
		e0->fitted ? "the window start that fits the kernel's answers"
			   : "the first window at the first attempt",
		(unsigned long long)e0->admitted_min, (unsigned long long)e0->admitted_max,
		(unsigned long long)e0->ambiguous);
	if (!e0->fitted)
		nrp_comparison_note(c, "first_window_unknown", json_pack("{s:s}", "lane", side(i)),
				    "%s lane: the capture cannot show what the limiter had charged "
				    "before it began%s; the decisions count every start, the "
				    "metrics' bounds the fresh one and %d spent ones",
				    side(i),
				    nrp_ratelimit_on_grid(e0->params.variant)
					    ? ", nor the phase of its fixed windows"
					    : "",
				    NRP_LOW_WORLDS - 1);
}

/* Shares of page-time that pages are elsewhere, and of faults whose task could prefer another node.
 */
struct divergence {
	double taint, unsure;
};

static struct divergence divergence_of(const struct nrp_replay *r, int i)
{
	const struct nrp_replay_lane *lane = &r->lane[i];
	const struct nrp_world_result *w = &lane->world[NRP_WORLD_CENTRAL];
	struct divergence d = { 0 };

	if (lane->observed || lane->off)
		return d;
	if (r->totals.page_seconds > 0)
		d.taint = w->tainted_seconds / r->totals.page_seconds;
	if (r->observed.hint_faults)
		d.unsure = (double)w->unsure_preferred / (double)r->observed.hint_faults;
	return d;
}

double nrp_comparison_divergence(const struct nrp_replay *r, int i)
{
	struct divergence d = divergence_of(r, i);

	return d.taint > d.unsure ? d.taint : d.unsure;
}

double nrp_comparison_untracked(const struct nrp_replay *r)
{
	return r->observed.hint_faults
		       ? (double)r->totals.untracked_faults / (double)r->observed.hint_faults
		       : 0;
}

/* The lanes differ in limiters only, and these refuse nothing here. */
static bool same_here(const struct nrp_replay *r)
{
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		if (r->differs[f] && f != NRP_FAMILY_MIGRATE_RATELIMIT)
			return false;
	return r->identical;
}

bool nrp_comparison_withheld(const struct nrp_replay *r, int i)
{
	return r->lane[i].spec.profile && !same_here(r) &&
	       nrp_comparison_divergence(r, i) > NRP_DIVERGENCE_LIMIT;
}

bool nrp_comparison_short_histories(const struct nrp_replay *r)
{
	return r->differs[NRP_FAMILY_MIGRATE_FILTER] && !r->lane[0].off && !r->lane[1].off &&
	       r->passes < 2;
}

static void divergence_note(struct nrp_comparison *c, const struct nrp_replay *r, int i)
{
	const struct nrp_world_result *w = &r->lane[i].world[NRP_WORLD_CENTRAL];
	struct divergence d = divergence_of(r, i);
	bool withheld = nrp_comparison_withheld(r, i);

	nrp_comparison_note(
		c, "divergence",
		json_pack("{s:s,s:f,s:f,s:b,s:I,s:I,s:I,s:I}", "lane", side(i), "tainted_page_time",
			  d.taint, "unsure_preferred", d.unsure, "totals_withheld", withheld,
			  "suppressed_moves", (json_int_t)w->suppressed, "added_moves",
			  (json_int_t)w->added, "model_attempts", (json_int_t)w->model_attempts,
			  "undecided_filters", (json_int_t)w->undecided_filters),
		"%s lane: pages are elsewhere than recorded for %.1f %% of their time, and %.1f %% "
		"of the faults are by tasks whose preferred node could differ%s",
		side(i), d.taint * 100, d.unsure * 100,
		withheld ? "; above 10 % a kernel profile has decisions only, no totals"
		: nrp_comparison_divergence(r, i) > NRP_DIVERGENCE_LIMIT
			? "; above 10 % the numbers are indicative"
			: "");
}

static void feedback_notes(struct nrp_comparison *c, const struct nrp_replay *r)
{
	bool refuses = false;

	for (int i = 0; i < 2; i++) {
		const struct nrp_replay_lane *lane = &r->lane[i];

		refuses |= limits(lane) && (lane->e0.denied || lane->world[0].denied);
		if (!lane->observed && !lane->off && r->totals.page_seconds > 0)
			divergence_note(c, r, i);
	}
	if (refuses && !r->identical)
		nrp_comparison_note(
			c, "sticky_scan_period", NULL,
			"a refused migration makes its task double its scan period at every later "
			"placement, for life: refusals change how often pages are sampled, so "
			"fewer faults are fewer samples, not fewer remote accesses");
}

bool nrp_comparison_unexplained(const struct nrp_replay *r)
{
	const struct nrp_attempts *a = &r->attempts;

	return r->lane[0].observed && r->lane[0].e0.params.variant == NRP_RATELIMIT_NONE &&
	       a->unknown >= 100 && a->unknown * 5 >= a->count;
}

/* Failures that a limiter would explain, on a host that is taken to have none. */
static void unexplained_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_attempts *a = &r->attempts;

	if (!nrp_comparison_unexplained(r))
		return;
	nrp_comparison_note(c, "unexplained_failures",
			    json_pack("{s:I,s:I}", "failed", (json_int_t)a->unknown, "attempts",
				      (json_int_t)a->count),
			    "%llu of %zu attempts failed for a reason that the capture does not "
			    "show; if this host limits migrations, say so: --old "
			    "migrate.ratelimit=VARIANT --set old:quota=PAGES",
			    (unsigned long long)a->unknown, a->count);
}

/* Do two scanners decide alike in every recorded pass, and is every pass on record? */
static bool same_scans(const struct nrp_replay *r, int8_t a, int8_t b)
{
	return r->has_scan && r->scan.passes && !r->scan.unjudged && !r->lossy &&
	       !r->scan.told_apart[a][b];
}

/* Families that the lanes name differently, and that make no difference here. */
static void same_notes(struct nrp_comparison *c, const struct nrp_replay *r)
{
	for (int f = 0; f < NRP_NR_FAMILIES; f++) {
		const struct nrp_family *family = nrp_family((enum nrp_family_id)f);
		int8_t a = r->lane[0].variant[f], b = r->lane[1].variant[f];

		if (r->differs[f] || a == b || a < 0 || b < 0 || r->off_differs ||
		    f == NRP_FAMILY_MIGRATE_FILTER ||
		    (f == NRP_FAMILY_SCAN_PERIOD && !r->lane[0].spec.modelled_cadence))
			continue;
		if (f == NRP_FAMILY_SCAN_VMA && same_scans(r, a, b)) {
			nrp_comparison_note(
				c, "identical_on_trace",
				json_pack("{s:s,s:s,s:s,s:s,s:I}", "family", family->name, "old",
					  family->variant[a].name, "new", family->variant[b].name,
					  "reason", "same_decisions", "passes",
					  (json_int_t)r->scan.passes),
				"%s: in all %llu recorded scan passes %s and %s decide the same",
				family->name, (unsigned long long)r->scan.passes,
				family->variant[a].name, family->variant[b].name);
			continue;
		}
		nrp_comparison_note(
			c, "no_difference_on_trace",
			json_pack("{s:s,s:s,s:s,s:s}", "family", family->name, "old",
				  family->variant[a].name, "new", family->variant[b].name, "reason",
				  r->moot[f] ? "not_exercised" : "not_told_apart"),
			"%s: nothing on this capture that %s and %s decide differently%s",
			family->name, family->variant[a].name, family->variant[b].name,
			r->moot[f] ? "" : ", as far as it can be told");
	}
}

static void scope_notes(struct nrp_comparison *c, const struct nrp_replay *r)
{
	same_notes(c, r);
	for (int f = 0; f < NRP_NR_FAMILIES; f++) {
		const char *name = nrp_family((enum nrp_family_id)f)->name;

		if (r->differs[f] && f != NRP_FAMILY_MUNMAP_LOCK &&
		    (!nrp_family((enum nrp_family_id)f)->replayed || r->unknown[f]) &&
		    !r->lane[0].off && !r->lane[1].off)
			nrp_comparison_note(
				c, "family_not_replayed", json_pack("{s:s}", "family", name),
				r->unknown[f] ? "the lanes differ in %s, and the capture lacks "
						"what a replay of it needs, or leaves the host's "
						"variant open (name it with --old and --new): "
						"what it can move is not observable"
					      : "the lanes differ in %s, which this version does "
						"not replay: what it can move is not observable",
				name);
	}
	for (int i = 0; i < 2; i++)
		if (r->alike[i])
			nrp_comparison_note(
				c, "indistinguishable_on_trace",
				json_pack("{s:s,s:s,s:s,s:s}", "lane", side(i), "family",
					  "migrate.filter", "variant",
					  nrp_filter_variant_name(
						  (enum nrp_filter_variant)r->lane[i]
							  .variant[NRP_FAMILY_MIGRATE_FILTER]),
					  "host",
					  nrp_filter_variant_name(
						  (enum nrp_filter_variant)r->filter.chosen)),
				"%s lane: on this capture migrate.filter=%s decides as the host's "
				"own does, every time",
				side(i),
				nrp_filter_variant_name(
					(enum nrp_filter_variant)r->lane[i]
						.variant[NRP_FAMILY_MIGRATE_FILTER]));
	if (!r->lane[0].observed && !r->lane[1].observed)
		nrp_comparison_note(c, "neither_lane_is_host", NULL,
				    "neither lane reproduces what this host recorded: both are "
				    "counterfactual");
	nrp_comparison_note(c, "not_estimated", NULL, "cpu_cost is not estimated by this version");
}

/* How long a capture must be for two passes, at the pace of this one. */
static void coverage_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	double seconds = r->passes > 0 ? r->seconds * 2 / r->passes : 0;
	const char *then = nrp_comparison_short_histories(r)
				   ? ", and what another filter does with them is not observable"
				   : "";

	if (seconds > 0)
		nrp_comparison_note(
			c, "coverage_below_two_passes",
			json_pack("{s:f,s:f}", "passes", r->passes, "needs_seconds", seconds),
			"%.1f full scan passes per address space: page histories are "
			"short%s; a capture of %.0f s would have two",
			r->passes, then, ceil(seconds));
	else
		nrp_comparison_note(c, "coverage_below_two_passes",
				    json_pack("{s:f,s:n}", "passes", r->passes, "needs_seconds"),
				    "no full scan pass: page histories are short%s; capture for "
				    "more than two of this host's longest scan periods (%.0f s)",
				    then, (double)r->scans.period_max_ms * 2e-3);
}

static void untracked_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	uint64_t faults = r->totals.untracked_faults;
	double share = nrp_comparison_untracked(r);

	if (!faults)
		return;
	nrp_comparison_note(
		c, "untracked_faults",
		json_pack("{s:I,s:f}", "faults", (json_int_t)faults, "share", share),
		"%llu faults (%.1f %%) have no known page, source or accessing node and "
		"are the same in every lane%s",
		(unsigned long long)faults, share * 100,
		share > NRP_UNTRACKED_MOST
			? "; so many that remote accesses and residency are not observable"
		: share > NRP_UNTRACKED_LIMIT
			? "; all of their pages may be remote: remote_residency has room "
			  "for them, remote_accesses no upper bound"
			: "");
}

static void evidence_notes(struct nrp_comparison *c, const struct nrp_replay *r,
			   const struct nrp_capture *capture, const struct nrp_verify *v)
{
	if (v->verdict == NRP_DISAGREES)
		nrp_comparison_note(c, "own_policy_mismatch", NULL,
				    "the capture does not verify: see numareplay verify");
	if (v->passes < 2)
		coverage_note(c, r);
	if (nrp_unjoined_share(capture) > NRP_UNJOINED_LIMIT)
		nrp_comparison_note(
			c, "unjoined_events",
			json_pack("{s:I,s:f}", "events", (json_int_t)capture->unjoined_events,
				  "share", nrp_unjoined_share(capture)),
			"%llu events (%.1f %%) fit into no record, so others are missing: nothing "
			"is exact, as if events were lost",
			(unsigned long long)capture->unjoined_events,
			nrp_unjoined_share(capture) * 100);
	if (capture->lost_events || capture->loss_gaps)
		nrp_comparison_note(
			c, "lost_events",
			json_pack("{s:I,s:I}", "lost", (json_int_t)capture->lost_events, "gaps",
				  (json_int_t)capture->loss_gaps),
			"events were lost: counts are too low, and windows that touch a "
			"gap are undecided");
	if (v->damaged_gaps)
		nrp_comparison_note(
			c, "damaged_capture",
			json_pack("{s:I}", "gaps", (json_int_t)v->damaged_gaps),
			"the capture's file was damaged, and what could be read of it was "
			"salvaged: see numareplay info");
	if (r->totals.external_moves)
		nrp_comparison_note(
			c, "external_moves",
			json_pack("{s:I}", "pages", (json_int_t)r->totals.external_moves),
			"%llu times a page was found on another node than its last "
			"fault left it (compaction, mbind, a shared mapping)",
			(unsigned long long)r->totals.external_moves);
	untracked_note(c, r);
	if (r->attempts.ticks_from_clock)
		nrp_comparison_note(c, "tick_phase_unknown", NULL,
				    "the capture has no jiffies: ticks are computed from its clock "
				    "and may be off by one");
}

/* ---- first of all ------------------------------------------------------------------- */

static void recorded_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_replay_observed *o = &r->observed;
	uint64_t placed = o->hint_faults - o->unplaced_faults;
	double local = placed ? (double)(placed - o->remote_faults) / (double)placed : 0;
	double percent = round(local * 1000) / 10;

	/* Not all, if some were not. */
	if (percent >= 100 && o->remote_faults)
		percent = 99.9;

	nrp_comparison_note(
		c, "recorded",
		json_pack("{s:I,s:f,s:I,s:I}", "hint_faults", (json_int_t)o->hint_faults,
			  "local_share", local, "moved_pages", (json_int_t)o->moved_pages, "pages",
			  (json_int_t)r->totals.pages),
		"on record: %.1f %% of %llu hinting faults were on local pages, and %llu "
		"pages moved (%llu pages or folios were seen)",
		percent, (unsigned long long)o->hint_faults, (unsigned long long)o->moved_pages,
		(unsigned long long)r->totals.pages);
}

/* Of the larger side: less is no difference that a model can show. */
#define LEAST_SHARE 0.001

/* "fewer", "more", "the same", .. of the new lane, by the interval of the difference. */
static const char *direction(const struct nrp_metric *m, bool model)
{
	const struct nrp_quantity *q = &m->avoided;
	double total = fmax(m->old_lane.value, m->new_lane.value);

	if (q->class == NRP_CLASS_NOT_OBSERVABLE)
		return "not observable";
	if (q->class == NRP_CLASS_EXACT)
		return q->value > 0 ? "fewer" : q->value < 0 ? "more" : "the same";
	if (q->has_lower && q->lower > 0)
		return "fewer";
	if (q->has_upper && q->upper < 0)
		return "more";
	/* Bounds that allow anything do not make a model's answer void; being next to nothing does.
	 */
	if (model && q->has_value && fabs(q->value) >= fmax(0.5, LEAST_SHARE * total))
		return q->value > 0 ? "fewer by the model" : "more by the model";
	if (q->has_lower && q->has_upper)
		return "unchanged within error";
	return q->has_lower && q->lower >= 0   ? "not more"
	       : q->has_upper && q->upper <= 0 ? "not fewer"
					       : "not known";
}

static double bound(bool known, double value)
{
	return known ? value : INFINITY;
}

/*
 * Tasks that were blocked behind pages on the move: what users of shared copy-on-write pages saw.
 * The first line, where a lane has another filter of entries.
 */
static void blocked_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_replay_observed *o = &r->observed;
	const struct nrp_metric *n = nrp_comparison_metric(c, "page_migration_waits");
	const struct nrp_metric *ns = nrp_comparison_metric(c, "page_migration_wait_ns");
	uint64_t by_others = 0, processes = 0;

	if (!o->migration_waits || !r->differs[NRP_FAMILY_SCAN_PTE] || !n || !ns ||
	    n->new_lane.class == NRP_CLASS_NOT_OBSERVABLE)
		return;
	for (size_t i = 0; i < r->waits.count; i++)
		by_others += r->waits.at[i].cause == NRP_WAIT_HINT_FAULT &&
			     r->waits.at[i].cause_mm != r->waits.at[i].mm;
	for (size_t i = 0; i < r->waits.nr_processes; i++)
		processes += r->waits.process[i].waited > 0;
	nrp_comparison_note(
		c, "blocked",
		json_pack("{s:I,s:I,s:I,s:I}", "waits", (json_int_t)o->migration_waits, "wait_ns",
			  (json_int_t)o->migration_wait_ns, "waits_by_others",
			  (json_int_t)by_others, "processes", (json_int_t)processes),
		"blocked: on record tasks of %llu processes waited %llu times, %.3f s in all, for "
		"pages on the move (%llu times behind another process's fault); in the new lane "
		"%.0f to %.0f times, %.3f to %.3f s",
		(unsigned long long)processes, (unsigned long long)o->migration_waits,
		(double)o->migration_wait_ns * 1e-9, (unsigned long long)by_others,
		n->new_lane.lower, bound(n->new_lane.has_upper, n->new_lane.upper),
		ns->new_lane.lower * 1e-9,
		bound(ns->new_lane.has_upper, ns->new_lane.upper) * 1e-9);
}

/* Cost and locality apart: the first is work done, the second is where memory is used from. */
static void verdict_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	bool model = r->lane[0].effects.faults > 0 || r->lane[1].effects.faults > 0;
	const char *faults = direction(nrp_comparison_metric(c, "hint_faults"), model);
	const char *moved = direction(nrp_comparison_metric(c, "migrated_pages"), model);
	const char *waits = direction(nrp_comparison_metric(c, "page_migration_waits"), model);
	const char *blocked = direction(nrp_comparison_metric(c, "page_migration_wait_ns"), model);
	const char *accesses = direction(nrp_comparison_metric(c, "remote_accesses"), model);
	const char *residency = direction(nrp_comparison_metric(c, "remote_residency"), model);
	bool seen = r->observed.migration_waits > 0;

	nrp_comparison_note(
		c, "verdict",
		json_pack("{s:{s:s,s:s,s:s,s:s},s:{s:s,s:s}}", "cost", "hint_faults", faults,
			  "migrated_pages", moved, "page_migration_waits", waits,
			  "page_migration_wait_ns", blocked, "locality", "remote_accesses",
			  accesses, "remote_residency", residency),
		"new against old: cost: hinting faults %s, migrated pages %s%s%s; locality: remote "
		"accesses %s, remote page-time %s",
		faults, moved, seen ? ", migration waits " : "", seen ? waits : "", accesses,
		residency);
}

static void samples_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	double touched = r->remote.accesses.value;

	if (r->remote_loads < 0)
		return;
	nrp_comparison_note(
		c, "remote_loads_calibrated",
		json_pack("{s:f,s:o,s:b}", "remote_loads", r->remote_loads, "loads_per_touch",
			  touched > 0 ? json_real(r->remote_loads / touched) : json_null(),
			  "counted", r->loads_counted),
		"a side file has %.0f loads from other nodes' memory (%s); remote_loads of a lane "
		"that did not run are in proportion to its remote accesses",
		r->remote_loads, r->loads_counted ? "counted" : "sampled or scaled up");
}

static void locality_notes(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_remote *n = &r->remote;
	const struct nrp_metric *m = nrp_comparison_metric(c, "remote_accesses");

	if (m->old_lane.class == NRP_CLASS_NOT_OBSERVABLE &&
	    m->new_lane.class == NRP_CLASS_NOT_OBSERVABLE) {
		if (nrp_comparison_untracked(r) > NRP_UNTRACKED_MOST)
			return; /* note untracked_faults says why */
		nrp_comparison_note(
			c, "locality_not_observable", NULL,
			"no armed page of the remote ones was touched on record: touch "
			"rates, and with them remote accesses, need scan ranges and "
			"faults of at least one scan pass (two longest periods: %.0f s)",
			(double)r->scans.period_max_ms * 2e-3);
		return;
	}
	nrp_comparison_note(
		c, "remote_accesses_lower_estimate",
		json_pack("{s:f,s:f,s:f,s:o}", "borrowed_rate_page_seconds", n->borrowed,
			  "no_rate_page_seconds", n->uncovered, "top_percent_share",
			  r->totals.concentration, "top_percent_share_new",
			  /* The first world is the new lane's where the old one ran. */
			  r->lane[0].observed && r->lane[1].nr_worlds
				  ? json_real(r->totals.world_concentration)
				  : json_null()),
		"remote_accesses are remote page-time times the rate of first touches, no count "
		"of recorded faults, and a lower estimate of accesses: what follows a touch is not "
		"seen; the most remote 1 %% of pages have %.0f %% of the remote page-time on "
		"record",
		r->totals.concentration * 100);
}

/* Whose passes a lane with another scanner is given, and how many more there might be. */
static void cadence_note(struct nrp_comparison *c, const struct nrp_replay *r, int i)
{
	const struct nrp_scan_bounds *s = &r->scans;

	if (!s->recorded.passes || r->lane[i].cadence.valid)
		return;
	nrp_comparison_note(
		c, "cadence",
		json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "lane", side(i), "cadence", "observed",
			  "passes", (json_int_t)s->recorded.passes, "passes_most",
			  (json_int_t)s->passes_most, "period_min_ms", (json_int_t)s->period_min_ms,
			  "period_max_ms", (json_int_t)s->period_max_ms),
		"%s lane: values and bounds are for the %llu recorded scan passes; its own "
		"decisions "
		"would change the scan periods, which is not counted (one pass per shortest "
		"period, "
		"%llu ms, would be %llu)",
		side(i), (unsigned long long)s->recorded.passes,
		(unsigned long long)s->period_min_ms, (unsigned long long)s->passes_most);
}

static void shared_memory_note(struct nrp_comparison *c, const struct nrp_replay_lane *lane, int i)
{
	if (!lane->loses_shmem && !lane->gains_shmem)
		return;
	nrp_comparison_note(
		c, "shared_memory", json_pack("{s:s}", "lane", side(i)),
		lane->loses_shmem
			? "%s lane: its scanner leaves shared memory alone. The record does not "
			  "tell shared memory from shared mappings of files: faults in either are "
			  "undecided; no private mapping is taken to be of a file on tmpfs"
			: "%s lane: its scanner takes shared memory. Each VMA that the host's left "
			  "out as unsuitable may be some: all of it counts as a range that is "
			  "possible in every pass",
		side(i));
}

/* Another scanner: what is exact in it, and what is a model. */
static void scan_notes(struct nrp_comparison *c, const struct nrp_replay *r)
{
	for (int i = 0; i < 2; i++) {
		const struct nrp_replay_lane *lane = &r->lane[i];
		const struct nrp_scan_effects_result *e = &lane->effects;
		const struct nrp_world_result *w = &lane->world[NRP_WORLD_CENTRAL];
		char ranges[128] = "";

		if (lane->opens)
			nrp_add_unobserved_note(c, r, i);
		if (lane->observed || !nrp_replay_own_scanner(lane))
			continue;
		shared_memory_note(c, lane, i);
		if (lane->has_scan)
			snprintf(ranges, sizeof(ranges),
				 "; it arms %llu ranges (%llu certain, %llu more possible)",
				 (unsigned long long)e->ranges,
				 (unsigned long long)e->certain_ranges,
				 (unsigned long long)e->possible_ranges);
		nrp_comparison_note(
			c, "scan_decisions",
			json_pack("{s:s,s:I,s:I,s:I,s:I,s:I}", "lane", side(i), "avoided_faults",
				  (json_int_t)w->unarmed_faults, "undecided_faults",
				  (json_int_t)w->unarmed_unknown, "ranges", (json_int_t)e->ranges,
				  "certain_ranges", (json_int_t)e->certain_ranges,
				  "possible_ranges", (json_int_t)e->possible_ranges),
			"%s lane: of the recorded faults on pages that moves leave where they "
			"were, its scanner did not arm %llu, and perhaps not %llu%s",
			side(i), (unsigned long long)w->unarmed_faults,
			(unsigned long long)w->unarmed_unknown, ranges);
		cadence_note(c, r, i);
		if (e->unseen_pages > 0)
			nrp_comparison_note(
				c, "unseen_pages",
				json_pack("{s:s,s:f,s:f,s:f}", "lane", side(i), "pages",
					  e->unseen_pages, "faults", e->faults, "unplaced_pages",
					  e->unplaced_pages),
				"%s lane: it arms %.0f pages that no fault on record showed. Where "
				"a scan passed over them they lie on its node, and are taken to be "
				"touched like the rest of their address space: %.0f more faults. "
				"The remote numbers of both lanes hold them here, not against "
				"other lanes; for %.0f pages nothing says where they lie, and "
				"there is no estimate",
				side(i), e->unseen_pages, e->faults, e->unplaced_pages);
	}
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		if (r->assumed[f])
			nrp_comparison_note(
				c, "variant_assumed",
				json_pack("{s:s}", "family",
					  nrp_family((enum nrp_family_id)f)->name),
				"the host's %s cannot be told from this capture; it is taken to be "
				"what kernels with its functions have",
				nrp_family((enum nrp_family_id)f)->name);
}

static void filter_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	int a = r->lane[0].variant[NRP_FAMILY_MIGRATE_FILTER];
	int b = r->lane[1].variant[NRP_FAMILY_MIGRATE_FILTER];
	const struct nrp_verify_check *k = &r->filter;

	if (!r->differs[NRP_FAMILY_MIGRATE_FILTER] || r->lane[0].off || r->lane[1].off)
		return;
	nrp_comparison_note(
		c, "filter_decisions",
		json_pack("{s:I,s:I,s:I,s:I}", "calls", (json_int_t)k->variant[k->chosen].decisions,
			  "differ", (json_int_t)k->differ[a][b], "old_moves",
			  (json_int_t)k->moves[a], "new_moves", (json_int_t)k->moves[b]),
		"every recorded filter call judged where its page was, local pages too: %s says "
		"yes to %llu of %llu, %s %llu; %llu answers differ",
		k->variant[a].variant, (unsigned long long)k->moves[a],
		(unsigned long long)k->variant[k->chosen].decisions, k->variant[b].variant,
		(unsigned long long)k->moves[b], (unsigned long long)k->differ[a][b]);
}

void nrp_comparison_add_notes(struct nrp_comparison *c, const struct nrp_replay *r,
			      const struct nrp_capture *capture, const struct nrp_verify *verify)
{
	blocked_note(c, r);
	recorded_note(c, r);
	verdict_note(c, r);
	nrp_comparison_note(c, "open_loop", NULL,
			    "replay cannot change the faults that were recorded: bounds cover what "
			    "other decisions would have changed in this run");
	locality_notes(c, r);
	samples_note(c, r);
	scan_notes(c, r);
	nrp_add_cadence_notes(c, r);
	nrp_add_scanner_notes(c, r, capture, verify);
	nrp_add_fault_reports(c, r);
	filter_note(c, r);
	limiter_notes(c, r);
	for (int i = 0; i < 2; i++)
		if (limits(&r->lane[i]) && !r->identical)
			e0_note(c, &r->lane[i], i);
	if (!same_here(r))
		feedback_notes(c, r);
	unexplained_note(c, r);
	nrp_add_lock_notes(c, r);
	nrp_add_hugetlb_notes(c, r, capture->facts.nr_nodes);
	scope_notes(c, r);
	evidence_notes(c, r, capture, verify);
}
