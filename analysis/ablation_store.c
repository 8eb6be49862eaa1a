/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An ablation in the database: tables ablation, ablation_step and ablation_metric. */
#include "analysis/ablation.h"
#include "analysis/results_internal.h"
#include "numareplay/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps a statement that may not have been prepared. */
static int insert(struct nrp_store *store, sqlite3_stmt *s, struct nrp_error *err)
{
	return s ? nrp_results_step(s, store, err) : nrp_results_code(err);
}

static int save_head(const struct nrp_ablation *a, struct nrp_store *store, struct nrp_error *err)
{
	char *set = json_dumps(a->set, JSON_COMPACT);
	sqlite3_stmt *s;
	int r;

	if (!set)
		return nrp_fail_nomem(err);
	s = nrp_store_prepare(store, "DELETE FROM ablation WHERE capture_id = ?", err);
	if (s)
		sqlite3_bind_int64(s, 1, a->capture_id);
	r = insert(store, s, err);
	sqlite3_finalize(s);
	if (r == 0) {
		s = nrp_store_prepare(
			store, "INSERT INTO ablation (capture_id, settings) VALUES (?, ?)", err);
		if (s) {
			sqlite3_bind_int64(s, 1, a->capture_id);
			sqlite3_bind_text(s, 2, set, -1, SQLITE_STATIC);
		}
		r = insert(store, s, err);
		sqlite3_finalize(s);
	}
	free(set);
	return r;
}

static int save_steps(const struct nrp_ablation *a, struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store,
		"INSERT INTO ablation_step (capture_id, step, name, policy, switched_off, host, "
		"discriminated) VALUES (?, ?, ?, ?, ?, ?, ?)",
		err);
	int r = s ? 0 : nrp_results_code(err);

	for (size_t i = 0; r == 0 && i < NRP_ABLATION_STEPS; i++) {
		const struct nrp_ablation_step *step = &a->step[i];

		sqlite3_bind_int64(s, 1, a->capture_id);
		sqlite3_bind_int64(s, 2, (sqlite3_int64)i + 1);
		sqlite3_bind_text(s, 3, step->name, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 4, step->policy, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 5, step->switched_off, -1, SQLITE_STATIC);
		sqlite3_bind_int(s, 6, step->host);
		if (i)
			sqlite3_bind_int(s, 7, step->discriminated);
		r = nrp_results_step(s, store, err);
	}
	sqlite3_finalize(s);
	return r;
}

static int save_metrics(const struct nrp_ablation *a, struct nrp_store *store,
			struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store,
		"INSERT INTO ablation_metric (capture_id, step, ordinal, metric, unit, value, "
		"lower, upper, "
		"class, tier, change_value, change_lower, change_upper, change_class, change_tier) "
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		err);
	int r = s ? 0 : nrp_results_code(err);

	for (size_t i = 0; r == 0 && i < NRP_ABLATION_STEPS; i++)
		for (size_t k = 0; r == 0 && k < NRP_ABLATION_METRICS; k++) {
			const struct nrp_ablation_metric *m = &a->step[i].metric[k];

			sqlite3_bind_int64(s, 1, a->capture_id);
			sqlite3_bind_int64(s, 2, (sqlite3_int64)i + 1);
			sqlite3_bind_int64(s, 3, (sqlite3_int64)k + 1);
			sqlite3_bind_text(s, 4, m->name, -1, SQLITE_STATIC);
			sqlite3_bind_text(s, 5, m->unit, -1, SQLITE_STATIC);
			nrp_results_bind_quantity(s, 6, &m->value);
			if (i)
				nrp_results_bind_quantity(s, 11, &m->change);
			r = nrp_results_step(s, store, err);
		}
	sqlite3_finalize(s);
	return r;
}

int nrp_ablation_save(const struct nrp_ablation *a, struct nrp_store *store, struct nrp_error *err)
{
	int r = save_head(a, store, err);

	if (r == 0)
		r = save_steps(a, store, err);
	return r == 0 ? save_metrics(a, store, err) : r;
}

/* ---- read back ---------------------------------------------------------------------- */

static int damaged(struct nrp_store *store, struct nrp_error *err)
{
	return nrp_fail(err, NRP_INPUT, -EBADMSG, nrp_store_path(store), -1,
			"replay --ablation again", "the stored ablation is damaged");
}

/* Is there one? Databases of earlier versions have no table for it. */
static int load_head(struct nrp_ablation *a, struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_stmt *s;
	const char *text;
	int r, step;

	s = nrp_store_prepare(store,
			      "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = "
			      "'ablation_metric'",
			      err);
	if (!s)
		return nrp_results_code(err);
	step = sqlite3_step(s);
	r = step == SQLITE_ROW    ? 0
	    : step == SQLITE_DONE ? -ENOENT
				  : nrp_store_fail(store, err, "read an ablation");
	sqlite3_finalize(s);
	if (r < 0)
		return r;
	s = nrp_store_prepare(store, "SELECT settings FROM ablation WHERE capture_id = ?", err);
	if (!s)
		return nrp_results_code(err);
	sqlite3_bind_int64(s, 1, a->capture_id);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(s, 0);
		a->set = text ? json_loads(text, 0, NULL) : NULL;
		r = json_is_object(a->set) ? 0 : damaged(store, err);
	} else {
		r = step == SQLITE_DONE ? -ENOENT : nrp_store_fail(store, err, "read an ablation");
	}
	sqlite3_finalize(s);
	return r;
}

static void copy(char *to, size_t size, sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	snprintf(to, size, "%s", text ? text : "");
}

static int load_steps(struct nrp_ablation *a, struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store,
		"SELECT name, policy, switched_off, host, coalesce(discriminated, 1) "
		"FROM ablation_step WHERE capture_id = ? ORDER BY step",
		err);
	size_t n = 0;
	int r;

	if (!s)
		return nrp_results_code(err);
	sqlite3_bind_int64(s, 1, a->capture_id);
	while ((r = sqlite3_step(s)) == SQLITE_ROW && n < NRP_ABLATION_STEPS) {
		struct nrp_ablation_step *step = &a->step[n++];

		copy(step->name, sizeof(step->name), s, 0);
		copy(step->policy, sizeof(step->policy), s, 1);
		copy(step->switched_off, sizeof(step->switched_off), s, 2);
		step->host = sqlite3_column_int(s, 3);
		step->discriminated = sqlite3_column_int(s, 4);
	}
	sqlite3_finalize(s);
	if (r == SQLITE_DONE && n == NRP_ABLATION_STEPS)
		return 0;
	return r == SQLITE_DONE || r == SQLITE_ROW ? damaged(store, err)
						   : nrp_store_fail(store, err, "read an ablation");
}

static int load_metrics(struct nrp_ablation *a, struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store,
		"SELECT metric, unit, value, lower, upper, class, tier, change_value, "
		"change_lower, "
		"change_upper, change_class, change_tier FROM ablation_metric WHERE capture_id = ? "
		"ORDER BY step, ordinal",
		err);
	size_t n = 0;
	int r;

	if (!s)
		return nrp_results_code(err);
	sqlite3_bind_int64(s, 1, a->capture_id);
	while ((r = sqlite3_step(s)) == SQLITE_ROW &&
	       n < (size_t)NRP_ABLATION_STEPS * NRP_ABLATION_METRICS) {
		struct nrp_ablation_metric *m =
			&a->step[n / NRP_ABLATION_METRICS].metric[n % NRP_ABLATION_METRICS];
		int at;

		n++;
		copy(m->name, sizeof(m->name), s, 0);
		copy(m->unit, sizeof(m->unit), s, 1);
		at = nrp_results_load_quantity(s, 2, &m->value);
		if (at < 0 || nrp_results_load_quantity(s, at, &m->change) < 0)
			break;
	}
	sqlite3_finalize(s);
	if (r == SQLITE_DONE && n == (size_t)NRP_ABLATION_STEPS * NRP_ABLATION_METRICS)
		return 0;
	return r == SQLITE_DONE || r == SQLITE_ROW ? damaged(store, err)
						   : nrp_store_fail(store, err, "read an ablation");
}

int nrp_ablation_load(struct nrp_ablation *ret, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_ablation a = { .capture_id = capture->id };
	int r = load_head(&a, store, err);

	snprintf(a.capture, sizeof(a.capture), "%s", capture->name);
	if (r == 0)
		r = load_steps(&a, store, err);
	if (r == 0)
		r = load_metrics(&a, store, err);
	if (r < 0)
		nrp_ablation_clear(&a);
	else
		*ret = a;
	return r;
}
