/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notes whose further members are rows of a table: member "rows", each row an object. Text output
 * prints them as a table.
 */
#include "analysis/compare_internal.h"
#include "replay/host.h"

#include <stdio.h>

static const char *const sides[2] = { "old", "new" };

/* ---- starved VMAs -------------------------------------------------------------------- */

#define MOST_STARVED 8

/* The worst starved VMAs: most sequences without a complete scan; of these the largest. */
struct starved {
	const struct nrp_scan_lane_vma *worst[MOST_STARVED];
	size_t listed;
	uint64_t count;
	uint64_t certain; /* of all VMAs: starved or not, whatever unknown facts are */
};

static const struct nrp_scan_starvation *account(const struct nrp_scan_lane_vma *v, bool in_lane)
{
	return in_lane ? &v->lane : &v->record;
}

static bool is_worse(const struct nrp_scan_lane_vma *a, const struct nrp_scan_lane_vma *b,
		     bool in_lane)
{
	uint64_t x = account(a, in_lane)->sequences_since;
	uint64_t y = account(b, in_lane)->sequences_since;

	if (x != y)
		return x > y;
	if (a->vm_end - a->vm_start != b->vm_end - b->vm_start)
		return a->vm_end - a->vm_start > b->vm_end - b->vm_start;
	return a->mm != b->mm ? a->mm < b->mm : a->vm_start < b->vm_start;
}

static struct starved find_starved(const struct nrp_scan_lane_vma *vma, size_t nr_vmas,
				   bool in_lane)
{
	struct starved s = { .count = 0 };

	for (size_t i = 0; i < nr_vmas; i++) {
		size_t k = s.listed;

		s.certain += !in_lane || vma[i].lane_certain;
		if (!account(&vma[i], in_lane)->starved)
			continue;
		s.count++;
		if (s.listed < MOST_STARVED)
			s.listed++;
		else if (!is_worse(&vma[i], s.worst[--k], in_lane))
			continue;
		for (; k && is_worse(&vma[i], s.worst[k - 1], in_lane); k--)
			s.worst[k] = s.worst[k - 1];
		s.worst[k] = &vma[i];
	}
	return s;
}

static json_t *optional(bool known, uint64_t value)
{
	return known ? json_integer((json_int_t)value) : json_null();
}

/* @lane: "record", "old" or "new". */
static json_t *starved_row(const struct nrp_scan_lane_vma *v, const char *lane, bool in_lane,
			   uint64_t page_size)
{
	const struct nrp_scan_starvation *n = account(v, in_lane);
	uint64_t from = n->last_complete ? n->last_complete : v->first_seen;
	/* What a lane's ranges arm is not known to be what the record's did. */
	bool known = !in_lane && !n->unknown_ranges && n->armed_passes;

	return json_pack(
		"{s:s,s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "lane", lane, "mm",
		(json_int_t)v->mm, "vm_start", (json_int_t)v->vm_start, "vm_end",
		(json_int_t)v->vm_end, "last_complete",
		optional(n->last_complete != 0, n->last_complete), "since_ns",
		(json_int_t)(v->last_seen > from ? v->last_seen - from : 0), "passes_since",
		(json_int_t)n->passes_since, "sequences_since", (json_int_t)n->sequences_since,
		"pid_inactive", (json_int_t)n->unarmed[NRP_SCAN_SKIP_PID_INACTIVE], "never_set",
		(json_int_t)n->inactive_by[NRP_INACTIVE_NEVER_SET], "cleared",
		(json_int_t)n->inactive_by[NRP_INACTIVE_CLEARED], "others",
		(json_int_t)n->inactive_by[NRP_INACTIVE_OTHERS], "armed_passes",
		(json_int_t)n->armed_passes, "armed_bytes_per_pass",
		optional(known, known ? n->armed_entries * page_size / n->armed_passes : 0));
}

static void add_rows(json_t *rows, const struct starved *s, const char *lane, bool in_lane,
		     uint64_t page_size)
{
	for (size_t i = 0; rows && i < s->listed; i++)
		json_array_append_new(rows, starved_row(s->worst[i], lane, in_lane, page_size));
}

json_t *nrp_starved_record(const struct nrp_verify *v, uint64_t page_size)
{
	const struct nrp_scan_record *record = &v->scan_record;
	struct starved s = find_starved(record->vma, record->nr_vmas, false);
	json_t *rows = json_array();

	add_rows(rows, &s, "record", false, page_size);
	return json_pack("{s:I,s:o,s:o}", "eligible", (json_int_t)record->nr_vmas, "starved",
			 optional(record->has_skips, s.count), "rows", rows);
}

/* "; new lane: 2 of 9 (certain for 8)" */
static void describe_lane(char *text, size_t size, int side, const struct starved *s,
			  size_t nr_vmas)
{
	snprintf(text, size, "; %s lane: %llu of %zu (certain for %llu)", sides[side],
		 (unsigned long long)s->count, nr_vmas, (unsigned long long)s->certain);
}

static void starved_note(struct nrp_comparison *c, const struct nrp_replay *r,
			 const struct nrp_verify *v, uint64_t page_size)
{
	const struct nrp_scan_record *record = &v->scan_record;
	struct starved s = find_starved(record->vma, record->nr_vmas, false);
	json_t *rows = json_array(), *lanes = json_object();
	uint64_t any = s.count;
	char text[2][96] = { "", "" };

	add_rows(rows, &s, "record", false, page_size);
	for (int i = 0; i < 2; i++) {
		const struct nrp_scan_lane *lane = &r->lane[i].scan;
		struct starved n;

		if (!r->lane[i].has_scan)
			continue;
		n = find_starved(lane->vma, lane->nr_vmas, true);
		any += n.count;
		add_rows(rows, &n, sides[i], true, page_size);
		describe_lane(text[i], sizeof(text[i]), i, &n, lane->nr_vmas);
		json_object_set_new(lanes, sides[i],
				    json_pack("{s:I,s:I}", "starved", (json_int_t)n.count,
					      "certain", (json_int_t)n.certain));
	}
	if (!any || !record->has_skips) {
		json_decref(rows);
		json_decref(lanes);
		return;
	}
	nrp_comparison_note(c, "starved_vmas",
			    json_pack("{s:I,s:I,s:o,s:o}", "eligible", (json_int_t)record->nr_vmas,
				      "starved", (json_int_t)s.count, "lanes", lanes, "rows", rows),
			    "%llu of %zu VMAs that scans can arm starve on record%s%s",
			    (unsigned long long)s.count, record->nr_vmas, text[0], text[1]);
}

/* ---- where lanes leave the record ----------------------------------------------------- */

#define MOST_DIVERGED 8

static bool is_earlier(const struct nrp_scan_lane_mm *a, const struct nrp_scan_lane_mm *b)
{
	return a->diverged != b->diverged ? a->diverged < b->diverged : a->mm < b->mm;
}

/* Those that diverge first; returns how many do. */
static size_t find_diverged(const struct nrp_scan_lane *lane,
			    const struct nrp_scan_lane_mm *first[MOST_DIVERGED])
{
	size_t n = 0;

	for (size_t i = 0; i < lane->nr_mms; i++) {
		const struct nrp_scan_lane_mm *mm = &lane->mm[i];
		size_t k = n < MOST_DIVERGED ? n : MOST_DIVERGED;

		if (!mm->diverged)
			continue;
		n++;
		if (k == MOST_DIVERGED && !is_earlier(mm, first[--k]))
			continue;
		for (; k && is_earlier(mm, first[k - 1]); k--)
			first[k] = first[k - 1];
		first[k] = mm;
	}
	return n;
}

static json_t *divergence_row(const struct nrp_scan_lane *lane, const char *side,
			      const struct nrp_scan_lane_mm *mm)
{
	const struct nrp_scan_lane_range *g = nrp_scan_lane_first_added(lane, mm->mm);

	return json_pack("{s:s,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "lane", side, "mm",
			 (json_int_t)mm->mm, "passes", (json_int_t)mm->passes, "diverged",
			 (json_int_t)mm->diverged, "uncertain",
			 optional(mm->uncertain != 0, mm->uncertain), "added_time",
			 optional(g, g ? g->time : 0), "added_start", optional(g, g ? g->start : 0),
			 "added_end", optional(g, g ? g->end : 0), "added_by",
			 g ? json_string(nrp_scan_reason_name(g->by)) : json_null());
}

static void divergence_note(struct nrp_comparison *c, const struct nrp_replay *r, int i)
{
	const struct nrp_scan_lane *lane = &r->lane[i].scan;
	const struct nrp_scan_lane_mm *first[MOST_DIVERGED];
	json_t *rows;
	size_t n;

	if (!r->lane[i].has_scan || r->lane[i].observed)
		return;
	n = find_diverged(lane, first);
	if (!n)
		return;
	rows = json_array();
	for (size_t k = 0; rows && k < n && k < MOST_DIVERGED; k++)
		json_array_append_new(rows, divergence_row(lane, sides[i], first[k]));
	nrp_comparison_note(c, "scan_divergence",
			    json_pack("{s:s,s:I,s:I,s:o}", "lane", sides[i], "spaces",
				      (json_int_t)lane->nr_mms, "diverged", (json_int_t)n, "rows",
				      rows),
			    "%s lane: in %zu of %zu address spaces it arms other ranges than on "
			    "record, first at %.6f s",
			    sides[i], n, lane->nr_mms, (double)first[0]->diverged * 1e-9);
}

/* ---- scan time ----------------------------------------------------------------------- */

/* What scan_time of lanes rests on. */
static void cost_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_scan_bounds *s = &r->scans;
	const struct nrp_metric *m = nrp_comparison_metric(c, "scan_time");

	if (!s->has_cost || !m ||
	    (m->old_lane.class != NRP_CLASS_MODELLED && m->new_lane.class != NRP_CLASS_MODELLED))
		return;
	nrp_comparison_note(
		c, "scan_cost",
		json_pack("{s:f,s:f,s:I,s:f}", "ns_per_range", s->cost.per_range, "ns_per_entry",
			  s->cost.per_entry, "ranges", (json_int_t)s->cost.ranges, "explained",
			  s->cost.explained),
		"scan_time of lanes: a range takes %.0f ns and %.0f ns per armed entry, fitted to "
		"%llu ranges on record, which explains %.0f %% of their variance",
		s->cost.per_range, s->cost.per_entry, (unsigned long long)s->cost.ranges,
		s->cost.explained * 100);
}

void nrp_add_scan_reports(struct nrp_comparison *c, const struct nrp_replay *r,
			  const struct nrp_capture *capture, const struct nrp_verify *verify)
{
	for (int i = 0; i < 2; i++)
		divergence_note(c, r, i);
	cost_note(c, r);
	starved_note(c, r, verify, nrp_host_page_size(&capture->facts));
}
