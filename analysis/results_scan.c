/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What scanners did with each VMA, in the database. */
#include "analysis/results_internal.h"

static const char *const sides[2] = { "old", "new" };

static void bind(sqlite3_stmt *s, int i, bool known, uint64_t value)
{
	if (known)
		sqlite3_bind_int64(s, i, (sqlite3_int64)value);
}

/* ---- VMAs ---------------------------------------------------------------------------- */

/* Whose VMAs, and what is known of them. */
struct owner {
	int64_t capture_id, replay_id; /* 0: the record */
	const char *lane;
	bool has_skips;
	const struct nrp_scan_lane *scan; /* NULL: the record */
};

static bool has_diverged(const struct nrp_scan_lane *lane, uint64_t mm)
{
	for (size_t i = 0; i < lane->nr_mms; i++)
		if (lane->mm[i].mm == mm && lane->mm[i].diverged)
			return true;
	return false;
}

static int bind_skips(sqlite3_stmt *s, int i, const struct nrp_scan_starvation *n)
{
	static const enum nrp_scan_vma_skip kept[] = { NRP_SCAN_SKIP_DELAY,
						       NRP_SCAN_SKIP_PID_INACTIVE,
						       NRP_SCAN_SKIP_SEQ_COMPLETED };

	bind(s, i++, true,
	     n->skips[NRP_SCAN_SKIP_UNSUITABLE] + n->skips[NRP_SCAN_SKIP_SHARED_RO] +
		     n->skips[NRP_SCAN_SKIP_INACCESSIBLE]);
	for (int k = 0; k < 3; k++)
		bind(s, i++, true, n->skips[kept[k]]);
	for (int k = 0; k < 3; k++)
		bind(s, i++, true, n->unarmed[kept[k]]);
	for (int k = 0; k < NRP_NR_SCAN_INACTIVE; k++)
		bind(s, i++, true, n->inactive_by[k]);
	bind(s, i++, true, n->starved);
	return i;
}

static void bind_vma(sqlite3_stmt *s, const struct owner *o, const struct nrp_scan_lane_vma *v)
{
	const struct nrp_scan_starvation *n = o->scan ? &v->lane : &v->record;
	bool as_recorded = !n->unknown_ranges && (!o->scan || !has_diverged(o->scan, v->mm));
	uint64_t from = n->last_complete ? n->last_complete : v->first_seen;

	sqlite3_bind_int64(s, 1, o->capture_id);
	bind(s, 2, o->replay_id != 0, (uint64_t)o->replay_id);
	sqlite3_bind_text(s, 3, o->lane, -1, SQLITE_STATIC);
	bind(s, 4, true, v->mm);
	bind(s, 5, true, v->vm_start);
	bind(s, 6, true, v->vm_end);
	bind(s, 7, v->vm_flags_known, v->vm_flags);
	bind(s, 8, true, v->first_seen);
	bind(s, 9, true, v->last_seen);
	bind(s, 10, true, v->passes);
	bind(s, 11, o->has_skips, n->visits);
	bind(s, 12, true, n->armed_passes);
	bind(s, 13, true, n->armed_ranges);
	bind(s, 14, as_recorded, n->armed_entries);
	bind(s, 15, true, n->completed);
	bind(s, 16, n->last_complete != 0, n->last_complete);
	bind(s, 17, true, v->last_seen > from ? v->last_seen - from : 0);
	bind(s, 18, true, n->passes_since);
	bind(s, 19, true, n->sequences_since);
	if (o->has_skips)
		bind_skips(s, 20, n);
	sqlite3_bind_int(s, 31, !o->scan || v->lane_certain);
}

static int save_vmas(const struct owner *o, const struct nrp_scan_lane_vma *vma, size_t nr_vmas,
		     struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store,
		"INSERT INTO scan_vma (capture_id, replay_id, lane, mm, vm_start, vm_end, "
		"vm_flags, "
		"first_seen, last_seen, passes, visits, armed_passes, armed_ranges, armed_pages, "
		"completed, last_complete, since_ns, passes_since, sequences_since, "
		"skips_ineligible, skips_scan_delay, skips_pid_inactive, skips_seq_completed, "
		"row_scan_delay, row_pid_inactive, row_seq_completed, inactive_never_set, "
		"inactive_cleared, inactive_others, starved, certain) VALUES (?, ?, ?, ?, ?, ?, ?, "
		"?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		err);
	int r = s ? 0 : nrp_results_code(err);

	for (size_t i = 0; r == 0 && i < nr_vmas; i++) {
		bind_vma(s, o, &vma[i]);
		r = nrp_results_step(s, store, err);
	}
	sqlite3_finalize(s);
	return r;
}

int nrp_save_scan_record(const struct nrp_scan_record *record, struct nrp_store *store,
			 int64_t capture_id, struct nrp_error *err)
{
	struct owner o = { .capture_id = capture_id,
			   .lane = "record",
			   .has_skips = record->has_skips };
	sqlite3_stmt *s = nrp_store_prepare(
		store, "DELETE FROM scan_vma WHERE capture_id = ? AND replay_id IS NULL", err);
	int r = s ? 0 : nrp_results_code(err);

	if (r == 0) {
		sqlite3_bind_int64(s, 1, capture_id);
		r = nrp_results_step(s, store, err);
	}
	sqlite3_finalize(s);
	return r == 0 ? save_vmas(&o, record->vma, record->nr_vmas, store, err) : r;
}

/* ---- divergence ---------------------------------------------------------------------- */

static void bind_divergence(sqlite3_stmt *s, const struct nrp_scan_lane *lane,
			    const struct nrp_scan_lane_mm *mm)
{
	const struct nrp_scan_lane_range *g = nrp_scan_lane_first_added(lane, mm->mm);

	bind(s, 4, true, mm->mm);
	bind(s, 5, true, mm->passes);
	bind(s, 6, mm->diverged != 0, mm->diverged);
	bind(s, 7, mm->uncertain != 0, mm->uncertain);
	if (!g)
		return;
	bind(s, 8, true, g->time);
	bind(s, 9, true, g->start);
	bind(s, 10, true, g->end);
	sqlite3_bind_text(s, 11, nrp_scan_reason_name(g->by), -1, SQLITE_STATIC);
	sqlite3_bind_int(s, 12, g->certain);
}

static int save_divergence(int64_t replay_id, int side, const struct nrp_scan_lane *lane,
			   struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store, "INSERT INTO scan_divergence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		err);
	int r = s ? 0 : nrp_results_code(err);

	for (size_t i = 0; r == 0 && i < lane->nr_mms; i++) {
		sqlite3_bind_int64(s, 1, replay_id);
		sqlite3_bind_text(s, 2, sides[side], -1, SQLITE_STATIC);
		bind(s, 3, true, i);
		bind_divergence(s, lane, &lane->mm[i]);
		r = nrp_results_step(s, store, err);
	}
	sqlite3_finalize(s);
	return r;
}

int nrp_save_scan_lanes(const struct nrp_comparison *c, struct nrp_store *store,
			const struct nrp_replay *replay, struct nrp_error *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < 2; i++) {
		const struct nrp_scan_lane *lane = &replay->lane[i].scan;
		struct owner o = { .capture_id = c->capture_id,
				   .replay_id = c->replay_id,
				   .lane = sides[i],
				   .has_skips = true, /* of a model, all is known */
				   .scan = lane };

		if (!replay->lane[i].has_scan)
			continue;
		r = save_vmas(&o, lane->vma, lane->nr_vmas, store, err);
		if (r == 0)
			r = save_divergence(c->replay_id, i, lane, store, err);
	}
	return r;
}
