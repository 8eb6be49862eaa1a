/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notes on a lane with a scanner of its own: where it first leaves the record, and what predictors
 * that know nothing of scan policies would say.
 */
#include "analysis/compare_internal.h"
#include "replay/host.h"

#include <math.h>
#include <stdio.h>

static const char *const sides[2] = { "old", "new" };

/* ---- the first range that the record does not have ----------------------------------- */

/* Address spaces that the note lists. */
#define MOST_SPACES 16

static json_t *describe(const struct nrp_scan_lane_mm *mm, const struct nrp_scan_lane_range *g)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:s,s:b,s:I}", "mm", (json_int_t)mm->mm, "time",
			 (json_int_t)g->time, "start", (json_int_t)g->start, "end",
			 (json_int_t)g->end, "rule", nrp_scan_reason_name(g->by), "certain",
			 g->certain, "diverged", (json_int_t)mm->diverged);
}

static void first_added_note(struct nrp_comparison *c, const struct nrp_replay *r, int i)
{
	const struct nrp_scan_lane *lane = &r->lane[i].scan;
	const struct nrp_scan_lane_range *earliest = NULL;
	json_t *spaces = json_array();

	for (size_t k = 0; spaces && k < lane->nr_mms; k++) {
		const struct nrp_scan_lane_range *g =
			nrp_scan_lane_first_added(lane, lane->mm[k].mm);

		if (!g)
			continue;
		if (json_array_size(spaces) < MOST_SPACES)
			json_array_append_new(spaces, describe(&lane->mm[k], g));
		if (!earliest || g->time < earliest->time)
			earliest = g;
	}
	if (!earliest) {
		json_decref(spaces);
		return;
	}
	nrp_comparison_note(
		c, "first_added_scan", json_pack("{s:s,s:o}", "lane", sides[i], "spaces", spaces),
		"%s lane: the first range that it arms and the record does not: "
		"[%#llx, %#llx) of address space %#llx at %.6f s, %s (rule: %s)",
		sides[i], (unsigned long long)earliest->start, (unsigned long long)earliest->end,
		(unsigned long long)earliest->mm, (double)earliest->time * 1e-9,
		earliest->certain ? "certain" : "if unknown facts are so",
		nrp_scan_reason_name(earliest->by));
}

/* ---- trivial predictors --------------------------------------------------------------- */

struct resident {
	double pages, visits; /* of all VMAs; each in each pass of its address space */
};

/* What the VMAs that scans met could hold at most. */
static struct resident resident_pages(const struct nrp_scan_lane *lane, uint64_t page_size)
{
	struct resident n = { 0 };

	for (size_t i = 0; i < lane->nr_vmas; i++) {
		const struct nrp_scan_lane_vma *v = &lane->vma[i];
		double pages = (double)((v->vm_end - v->vm_start) / page_size);

		n.pages += pages;
		for (size_t k = 0; k < lane->nr_mms; k++)
			if (lane->mm[k].mm == v->mm)
				n.visits += pages * (double)lane->mm[k].passes;
	}
	return n;
}

/* No change, all resident pages, proportional to the entries armed. */
static json_t *predict(const struct nrp_metric *m, double most, double share)
{
	return json_pack("{s:f,s:[f,f],s:f}", "no_change", m->old_lane.value, "all_resident", 0.0,
			 most, "proportional_armed", m->old_lane.value * share);
}

static void predictors_note(struct nrp_comparison *c, const struct nrp_replay *r, int i,
			    uint64_t page_size)
{
	const struct nrp_metric *faults = nrp_comparison_metric(c, "hint_faults");
	const struct nrp_metric *moved = nrp_comparison_metric(c, "migrated_pages");
	const struct nrp_metric *armed = nrp_comparison_metric(c, "pte_updates");
	struct resident n = resident_pages(&r->lane[i].scan, page_size);
	double share;

	/* They predict another lane from the record. */
	if (i != 1 || !r->lane[0].observed || !faults || !moved || !armed ||
	    armed->old_lane.value <= 0)
		return;
	share = armed->new_lane.value / armed->old_lane.value;
	nrp_comparison_note(
		c, "trivial_predictors",
		json_pack("{s:s,s:o,s:o}", "lane", sides[i], "hint_faults",
			  predict(faults, n.visits, share), "migrated_pages",
			  predict(moved, n.pages, share)),
		"%s lane: predictors that know no scan policy: no change %.0f hinting faults, %.0f "
		"migrated pages; all resident pages, each in each pass up to %.0f, each moved once "
		"%.0f; in proportion to armed entries %.0f and %.0f",
		sides[i], faults->old_lane.value, moved->old_lane.value, n.visits, n.pages,
		faults->old_lane.value * share, moved->old_lane.value * share);
}

/* ---- entries that the host left alone -------------------------------------------------- */

/*
 * Snapshots and the kernel's own test say which entries the host refused. Whether anybody touches
 * these, no capture of this policy can say: an entry that is not armed does not fault.
 */
void nrp_add_unobserved_note(struct nrp_comparison *c, const struct nrp_replay *r, int i)
{
	const struct nrp_replay_lane *lane = &r->lane[i];
	bool bounded = nrp_unarmed_bounds(r, lane);
	json_t *unarmed = bounded ? json_integer((json_int_t)r->scans.unarmed) : json_null();
	json_t *options = json_array();
	char most[160] = "";

	if (options) {
		json_array_append_new(options, json_string("pagemap_kpagecount_at_pass"));
		if (lane->pte >= 0)
			json_array_append_new(options, json_string("folio_can_map_prot_numa"));
		if (lane->gains_shmem)
			json_array_append_new(options, json_string("smaps_of_shared_memory"));
	}
	if (bounded)
		snprintf(most, sizeof(most),
			 "at most one fault for each of the %llu entries that the recorded ranges "
			 "did not arm (not resident, armed already, or left alone)",
			 (unsigned long long)r->scans.unarmed);
	nrp_comparison_note(
		c, "unobserved_entries",
		json_pack("{s:s,s:o,s:o}", "lane", sides[i], "unarmed_entries", unarmed,
			  "narrow_by", options),
		"%s lane: its scanner may arm pages that the host's left alone; which of these are "
		"touched, the record cannot show: they add %s. Narrower with a capture that has "
		"%s; "
		"only a run under this policy shows the touches themselves",
		sides[i], bounded ? most : "what has no upper bound",
		lane->gains_shmem
			? "a snapshot of smaps and pagemap of shared memory at a scan pass"
			: "a snapshot of pagemap and kpagecount at a scan pass (pages that are "
			  "resident, and mapped more than once), or the answers of "
			  "folio_can_map_prot_numa (6.19 and later)");
}

void nrp_add_scanner_notes(struct nrp_comparison *c, const struct nrp_replay *r,
			   const struct nrp_capture *capture, const struct nrp_verify *verify)
{
	for (int i = 0; i < 2; i++) {
		if (!r->lane[i].has_scan || r->lane[i].observed)
			continue;
		first_added_note(c, r, i);
		predictors_note(c, r, i, nrp_host_page_size(&capture->facts));
	}
	nrp_add_scan_reports(c, r, capture, verify);
}
