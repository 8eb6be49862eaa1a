/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How faults ended, which nodes they came from, and the processes' share, in the database. */
#include "analysis/compare_internal.h"
#include "analysis/results_internal.h"

static const char *const sides[2] = { "old", "new" };

static void bind_real(sqlite3_stmt *s, int i, bool known, double value)
{
	if (known)
		sqlite3_bind_double(s, i, value);
}

static void bind_range(sqlite3_stmt *s, int i, const struct nrp_quantity *q)
{
	bind_real(s, i, q->has_value, q->value);
	bind_real(s, i + 1, q->has_lower, q->lower);
	bind_real(s, i + 2, q->has_upper, q->upper);
}

/* ---- fault_outcome ------------------------------------------------------------------- */

static int save_outcome(sqlite3_stmt *s, const struct nrp_comparison *c, const char *lane,
			enum nrp_fault_outcome outcome, const struct nrp_quantity *q,
			struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_bind_int64(s, 1, c->replay_id);
	sqlite3_bind_text(s, 2, lane, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, nrp_fault_outcome_name(outcome), -1, SQLITE_STATIC);
	bind_range(s, 5, q);
	return nrp_results_step(s, store, err);
}

static int save_outcomes(const struct nrp_comparison *c, struct nrp_store *store,
			 const struct nrp_replay *r, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store, "INSERT INTO fault_outcome VALUES (?, ?, ?, ?, ?, ?, ?)", err);
	int e = s ? 0 : nrp_results_code(err);

	for (int k = 0; e == 0 && k < NRP_NR_FAULT_OUTCOMES; k++) {
		enum nrp_fault_outcome outcome = (enum nrp_fault_outcome)k;
		struct nrp_quantity q = nrp_exact((double)r->observed.outcome[k].faults, 3);

		sqlite3_bind_int64(s, 4, (sqlite3_int64)r->observed.outcome[k].pages);
		e = save_outcome(s, c, "record", outcome, &q, store, err);
		for (int i = 0; e == 0 && i < 2 && k < NRP_FAULT_OPEN; i++) {
			if (!nrp_lane_has_details(c, r, i, "hint_faults"))
				continue;
			q = nrp_outcome_in_lane(c, r, i, outcome);
			e = save_outcome(s, c, sides[i], outcome, &q, store, err);
		}
	}
	sqlite3_finalize(s);
	return e;
}

/* ---- faulter_nodes ------------------------------------------------------------------- */

static int save_faulters(const struct nrp_comparison *c, struct nrp_store *store,
			 const struct nrp_faulters *f, const char *pages_of, struct nrp_error *err)
{
	sqlite3_stmt *s =
		nrp_store_prepare(store, "INSERT INTO faulter_nodes VALUES (?, ?, ?, ?, ?)", err);
	int e = s ? 0 : nrp_results_code(err);

	for (int n = 0; e == 0 && n <= NRP_MAX_FAULTER_NODES; n++) {
		if (!f->of[n].pages)
			continue;
		sqlite3_bind_int64(s, 1, c->replay_id);
		sqlite3_bind_text(s, 2, pages_of, -1, SQLITE_STATIC);
		sqlite3_bind_int(s, 3, n);
		sqlite3_bind_int64(s, 4, (sqlite3_int64)f->of[n].pages);
		sqlite3_bind_int64(s, 5, (sqlite3_int64)f->of[n].faults);
		e = nrp_results_step(s, store, err);
	}
	sqlite3_finalize(s);
	return e;
}

/* ---- lane_process -------------------------------------------------------------------- */

static int save_process(sqlite3_stmt *s, const struct nrp_comparison *c, const char *lane,
			enum nrp_process_measure measure, uint64_t mm, const struct nrp_quantity *q,
			struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_bind_int64(s, 1, c->replay_id);
	sqlite3_bind_text(s, 2, lane, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, nrp_process_measure_name(measure), -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 4, (sqlite3_int64)mm);
	bind_range(s, 5, q);
	return nrp_results_step(s, store, err);
}

static int save_measure(sqlite3_stmt *s, const struct nrp_comparison *c, struct nrp_store *store,
			const struct nrp_replay *r, enum nrp_process_measure measure,
			struct nrp_error *err)
{
	int e = 0;

	for (size_t k = 0; e == 0 && k < r->processes.count; k++) {
		const struct nrp_process *p = &r->processes.at[k];
		struct nrp_quantity q = nrp_exact((double)p->record[measure], 3);

		e = save_process(s, c, "record", measure, p->mm, &q, store, err);
		for (int i = 0; e == 0 && i < 2; i++) {
			if (!nrp_lane_has_details(c, r, i, nrp_process_measure_name(measure)))
				continue;
			q = nrp_process_in_lane(c, r, i, measure, p);
			e = save_process(s, c, sides[i], measure, p->mm, &q, store, err);
		}
	}
	return e;
}

static int save_processes(const struct nrp_comparison *c, struct nrp_store *store,
			  const struct nrp_replay *r, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store, "INSERT INTO lane_process VALUES (?, ?, ?, ?, ?, ?, ?)", err);
	int e = s ? 0 : nrp_results_code(err);

	for (int m = 0; e == 0 && m < NRP_NR_PROCESS_MEASURES; m++)
		if (nrp_process_measured(r, (enum nrp_process_measure)m))
			e = save_measure(s, c, store, r, (enum nrp_process_measure)m, err);
	sqlite3_finalize(s);
	return e;
}

int nrp_save_faults(const struct nrp_comparison *c, struct nrp_store *store,
		    const struct nrp_replay *replay, struct nrp_error *err)
{
	int r = save_outcomes(c, store, replay, err);

	if (r == 0)
		r = save_faulters(c, store, &replay->page_faulters, "all", err);
	if (r == 0)
		r = save_faulters(c, store, &replay->faulters, "shared", err);
	return r == 0 ? save_processes(c, store, replay, err) : r;
}
