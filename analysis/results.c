/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comparisons and fidelity in the database. */
#include "analysis/results_internal.h"
#include "numareplay/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Steps a statement that returns nothing, and frees it. */
static int finish(struct nrp_store *store, sqlite3_stmt *s, const char *doing,
		  struct nrp_error *err)
{
	int r = sqlite3_step(s) == SQLITE_DONE ? 0 : nrp_store_fail(store, err, doing);

	sqlite3_finalize(s);
	return r;
}

int nrp_results_step(sqlite3_stmt *s, struct nrp_store *store, struct nrp_error *err)
{
	int r = sqlite3_step(s) == SQLITE_DONE ? 0 : nrp_store_fail(store, err, "store results");

	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return r;
}

/* Binds @value, or NULL. */
static void bind_optional(sqlite3_stmt *s, int i, bool has, double value)
{
	if (has)
		sqlite3_bind_double(s, i, value);
	else
		sqlite3_bind_null(s, i);
}

int nrp_results_bind_quantity(sqlite3_stmt *s, int i, const struct nrp_quantity *q)
{
	bind_optional(s, i, q->has_value, q->value);
	bind_optional(s, i + 1, q->has_lower, q->lower);
	bind_optional(s, i + 2, q->has_upper, q->upper);
	sqlite3_bind_text(s, i + 3, nrp_class_name(q->class), -1, SQLITE_STATIC);
	sqlite3_bind_int(s, i + 4, q->tier);
	return i + 5;
}

/* {"variants": .., "set": ..} of a lane; malloc'd. */
static char *lane_text(const struct nrp_comparison *c, int i)
{
	json_t *o = json_pack("{s:O,s:O}", "variants", c->variants[i], "set", c->set[i]);
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	return text;
}

/*
 * What the same arguments gave before goes, also if an earlier version stored it, which knew fewer
 * families.
 */
static int delete_replay(struct nrp_store *store, const struct nrp_comparison *c, const char *key,
			 struct nrp_error *err)
{
	char *set[2] = { json_dumps(c->set[0], JSON_COMPACT), json_dumps(c->set[1], JSON_COMPACT) };
	sqlite3_stmt *s = NULL;
	int r;

	if (set[0] && set[1])
		s = nrp_store_prepare(
			store,
			"DELETE FROM replay WHERE key = ?1 OR (capture_id = ?2 AND old_name = ?3 "
			"AND new_name = ?4 AND "
			"CASE WHEN json_valid(old_set) THEN json_extract(old_set, '$.set') END = "
			"?5 "
			"AND CASE WHEN json_valid(new_set) THEN json_extract(new_set, '$.set') END "
			"= ?6)",
			err);
	else
		nrp_fail_nomem(err);
	if (!s) {
		r = err && err->code ? err->code : -EIO;
	} else {
		sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
		sqlite3_bind_int64(s, 2, c->capture_id);
		sqlite3_bind_text(s, 3, c->name[0], -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 4, c->name[1], -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 5, set[0], -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 6, set[1], -1, SQLITE_STATIC);
		r = finish(store, s, "replace a replay", err);
	}
	free(set[0]);
	free(set[1]);
	return r;
}

static int save_replay(struct nrp_comparison *c, struct nrp_store *store, struct nrp_error *err)
{
	char *lane[2] = { lane_text(c, 0), lane_text(c, 1) };
	char key[64], seed[2 * NRP_LANE_NAME + 32];
	sqlite3_stmt *s = NULL;
	int r = 0;

	if (!lane[0] || !lane[1]) {
		r = nrp_fail_nomem(err);
		goto out;
	}
	snprintf(seed, sizeof(seed), "%lld|%s|%s", (long long)c->capture_id, c->name[0],
		 c->name[1]);
	snprintf(key, sizeof(key), "%016llx%016llx",
		 (unsigned long long)XXH3_64bits(seed, strlen(seed)),
		 (unsigned long long)(XXH3_64bits(lane[0], strlen(lane[0])) * 31 +
				      XXH3_64bits(lane[1], strlen(lane[1]))));
	r = delete_replay(store, c, key, err);
	if (r < 0)
		goto out;
	s = nrp_store_prepare(store,
			      "INSERT INTO replay (capture_id, key, old_name, new_name, old_set, "
			      "new_set) VALUES (?, ?, ?, ?, ?, ?)",
			      err);
	if (!s) {
		r = err ? err->code : -EIO;
		goto out;
	}
	sqlite3_bind_int64(s, 1, c->capture_id);
	sqlite3_bind_text(s, 2, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, c->name[0], -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 4, c->name[1], -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 5, lane[0], -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 6, lane[1], -1, SQLITE_STATIC);
	r = finish(store, s, "store a replay", err);
	if (r == 0)
		c->replay_id = sqlite3_last_insert_rowid(nrp_store_db(store));
out:
	free(lane[0]);
	free(lane[1]);
	return r;
}

static int save_metrics(const struct nrp_comparison *c, struct nrp_store *store,
			struct nrp_error *err)
{
	for (size_t i = 0; i < c->nr_metrics; i++) {
		const struct nrp_metric *m = &c->metric[i];
		sqlite3_stmt *s = nrp_store_prepare(
			store,
			"INSERT INTO lane_metric (replay_id, metric, unit, old_value, old_lower, "
			"old_upper, old_class, old_tier, new_value, new_lower, new_upper, "
			"new_class, new_tier, avoided_value, avoided_lower, avoided_upper, "
			"avoided_class, avoided_tier) VALUES "
			"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			err);
		int at, r;

		if (!s)
			return err ? err->code : -EIO;
		sqlite3_bind_int64(s, 1, c->replay_id);
		sqlite3_bind_text(s, 2, m->name, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 3, m->unit, -1, SQLITE_STATIC);
		at = nrp_results_bind_quantity(s, 4, &m->old_lane);
		at = nrp_results_bind_quantity(s, at, &m->new_lane);
		nrp_results_bind_quantity(s, at, &m->avoided);
		r = finish(store, s, "store metrics", err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int save_rates(const struct nrp_comparison *c, struct nrp_store *store,
		      const struct nrp_replay *r, struct nrp_error *err)
{
	for (size_t i = 0; i < r->nr_rates; i++) {
		const struct nrp_touch_rate *t = &r->rates[i];
		sqlite3_stmt *s = nrp_store_prepare(store,
						    "INSERT INTO touch_rate VALUES (?, ?, ?, ?, ?, "
						    "?, ?, ?, ?, ?, ?, ?, ?, ?)",
						    err);
		int e;

		if (!s)
			return err ? err->code : -EIO;
		sqlite3_bind_int64(s, 1, c->replay_id);
		sqlite3_bind_int64(s, 2, (int64_t)i);
		sqlite3_bind_int64(s, 3, (int64_t)t->mm);
		sqlite3_bind_int64(s, 4, (int64_t)t->vm_start);
		sqlite3_bind_int64(s, 5, (int64_t)t->vm_end);
		sqlite3_bind_int64(s, 6, t->address_spaces);
		sqlite3_bind_int(s, 7, t->nid);
		sqlite3_bind_int64(s, 8, (int64_t)t->touches);
		sqlite3_bind_double(s, 9, t->armed_page_seconds);
		sqlite3_bind_double(s, 10, t->remote_page_seconds);
		sqlite3_bind_double(s, 11, t->rate);
		sqlite3_bind_double(s, 12, t->lower);
		sqlite3_bind_double(s, 13, t->upper);
		sqlite3_bind_int(s, 14, t->borrowed);
		e = finish(store, s, "store touch rates", err);
		if (e < 0)
			return e;
	}
	return 0;
}

static int save_lost_scan(const struct nrp_scan_attempt *a, size_t i,
			  const struct nrp_comparison *c, struct nrp_store *store,
			  struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(store,
					    "INSERT INTO lost_scan VALUES (?, ?, ?, ?, ?, ?, ?, ?, "
					    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
					    err);

	if (!s)
		return err ? err->code : -EIO;
	sqlite3_bind_int64(s, 1, c->replay_id);
	sqlite3_bind_int64(s, 2, (int64_t)i);
	sqlite3_bind_int64(s, 3, (int64_t)a->mm);
	sqlite3_bind_int64(s, 4, (int64_t)a->time);
	sqlite3_bind_int(s, 5, a->tid);
	for (int who = 0; who < NRP_NR_LOST_IN; who++)
		sqlite3_bind_int(s, 6 + who, a->lost >> who & 1);
	if (a->period)
		sqlite3_bind_int64(s, 9, (int64_t)a->period);
	sqlite3_bind_int64(s, 10, (int64_t)a->gap);
	sqlite3_bind_int(s, 11, a->followed);
	if (a->has_window) {
		sqlite3_bind_int64(s, 12, (int64_t)a->window);
		sqlite3_bind_int64(s, 13, (int64_t)a->pages);
		sqlite3_bind_int64(s, 14, (int64_t)a->remote_faults);
		sqlite3_bind_int64(s, 15, (int64_t)a->remote_pages);
		sqlite3_bind_int64(s, 16, (int64_t)a->moved_pages);
		sqlite3_bind_double(s, 17, a->touches);
		sqlite3_bind_double(s, 18, a->touches_upper);
	}
	return finish(store, s, "store lost scans", err);
}

static int save_lost_scans(const struct nrp_comparison *c, struct nrp_store *store,
			   const struct nrp_replay *r, struct nrp_error *err)
{
	int e = 0;

	for (size_t i = 0; e == 0 && i < r->scan_attempts.count; i++)
		if (r->scan_attempts.at[i].lost)
			e = save_lost_scan(&r->scan_attempts.at[i], i, c, store, err);
	return e;
}

static void bind_unless_zero(sqlite3_stmt *s, int i, uint64_t value)
{
	if (value)
		sqlite3_bind_int64(s, i, (int64_t)value);
}

static int save_waits(const struct nrp_comparison *c, struct nrp_store *store,
		      const struct nrp_replay *r, struct nrp_error *err)
{
	static const char *const causes[NRP_NR_WAIT_CAUSES] = { "unattributed", "hint_fault",
								"other_migration" };
	static const char *const certainties[NRP_NR_WAIT_CERTAINTIES] = { "unknown", "ambiguous",
									  "late", "exact" };

	for (size_t i = 0; i < r->waits.count; i++) {
		const struct nrp_wait *w = &r->waits.at[i];
		sqlite3_stmt *s = nrp_store_prepare(
			store, "INSERT INTO wait_cause VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			err);
		int e;

		if (!s)
			return err ? err->code : -EIO;
		sqlite3_bind_int64(s, 1, c->replay_id);
		sqlite3_bind_int64(s, 2, (int64_t)i);
		sqlite3_bind_int64(s, 3, (int64_t)w->time);
		if (!w->open)
			sqlite3_bind_int64(s, 4, (int64_t)nrp_wait_ns(w));
		sqlite3_bind_int(s, 5, w->tid);
		bind_unless_zero(s, 6, w->mm);
		bind_unless_zero(s, 7, w->addr);
		sqlite3_bind_text(s, 8, causes[w->cause], -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 9, certainties[w->certainty], -1, SQLITE_STATIC);
		bind_unless_zero(s, 10, w->cause_time);
		if (w->cause_time)
			sqlite3_bind_int(s, 11, w->cause_tid);
		bind_unless_zero(s, 12, w->cause_mm);
		e = finish(store, s, "store waits", err);
		if (e < 0)
			return e;
	}
	return 0;
}

static int save_notes(const struct nrp_comparison *c, struct nrp_store *store,
		      struct nrp_error *err)
{
	for (size_t i = 0; i < c->nr_notes; i++) {
		const struct nrp_note *n = &c->note[i];
		sqlite3_stmt *s =
			nrp_store_prepare(store,
					  "INSERT INTO note (replay_id, capture_id, code, "
					  "text, detail) VALUES (?, ?, ?, ?, ?)",
					  err);
		char *detail = n->detail ? json_dumps(n->detail, JSON_COMPACT) : NULL;
		int r;

		if (!s) {
			free(detail);
			return err ? err->code : -EIO;
		}
		sqlite3_bind_int64(s, 1, c->replay_id);
		sqlite3_bind_int64(s, 2, c->capture_id);
		sqlite3_bind_text(s, 3, n->code, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 4, n->text, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 5, detail, -1, SQLITE_STATIC);
		r = finish(store, s, "store notes", err);
		free(detail);
		if (r < 0)
			return r;
	}
	return 0;
}

static void bind_decision(sqlite3_stmt *s, const struct nrp_attempt *a,
			  const struct nrp_ratelimit_decision *old_d,
			  const struct nrp_ratelimit_decision *new_d)
{
	static const char *const why[] = { NULL, "unknown_charge", "lost_events", "first_window",
					   "race" };
	uint8_t worst = old_d->certainty > new_d->certainty ? old_d->certainty : new_d->certainty;

	sqlite3_bind_int64(s, 3, (sqlite3_int64)a->time);
	sqlite3_bind_int(s, 4, a->tid);
	sqlite3_bind_int64(s, 5, a->cpu);
	sqlite3_bind_int64(s, 6, (sqlite3_int64)a->mm);
	sqlite3_bind_int64(s, 7, (sqlite3_int64)a->addr);
	sqlite3_bind_int(s, 8, a->nid);
	sqlite3_bind_int64(s, 9, a->pages);
	sqlite3_bind_int(s, 10, old_d->admitted);
	sqlite3_bind_int(s, 11, new_d->admitted);
	sqlite3_bind_int(s, 12, worst == NRP_CERTAIN);
	sqlite3_bind_text(s, 13, why[worst], -1, SQLITE_STATIC);
}

/* Attempts that the lanes judge differently where they were (E0). */
static int save_decisions(const struct nrp_comparison *c, struct nrp_store *store,
			  const struct nrp_replay *replay, struct nrp_error *err)
{
	const struct nrp_ratelimit_lane *a = &replay->lane[0].e0, *b = &replay->lane[1].e0;
	sqlite3_int64 ordinal = 0;
	sqlite3_stmt *s;
	int r = 0;

	if (replay->lane[0].off || replay->lane[1].off)
		return 0;
	s = nrp_store_prepare(store,
			      "INSERT INTO decision (replay_id, ordinal, time, tid, cpu, mm, addr, "
			      "nid, pages, old_answer, new_answer, certain, note, family) VALUES "
			      "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'migrate.ratelimit')",
			      err);
	if (!s)
		return err ? err->code : -EIO;
	sqlite3_bind_int64(s, 1, c->replay_id);
	for (size_t i = 0; r == 0 && i < replay->attempts.count; i++) {
		if (a->decision[i].admitted == b->decision[i].admitted)
			continue;
		sqlite3_bind_int64(s, 2, ++ordinal);
		bind_decision(s, &replay->attempts.at[i], &a->decision[i], &b->decision[i]);
		if (sqlite3_step(s) != SQLITE_DONE)
			r = nrp_store_fail(store, err, "store decisions");
		sqlite3_reset(s);
	}
	sqlite3_finalize(s);
	return r;
}

int nrp_comparison_save(struct nrp_comparison *c, struct nrp_store *store,
			const struct nrp_replay *replay, struct nrp_error *err)
{
	int r = save_replay(c, store, err);

	if (r == 0)
		r = save_metrics(c, store, err);
	if (r == 0)
		r = save_notes(c, store, err);
	if (r == 0)
		r = save_decisions(c, store, replay, err);
	if (r == 0)
		r = save_rates(c, store, replay, err);
	if (r == 0)
		r = save_lost_scans(c, store, replay, err);
	if (r == 0)
		r = save_waits(c, store, replay, err);
	if (r == 0)
		r = nrp_save_scan_lanes(c, store, replay, err);
	if (r == 0)
		r = nrp_save_faults(c, store, replay, err);
	return r;
}

/* ---- loading ------------------------------------------------------------------------ */

static void copy_text(char *to, size_t size, sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	snprintf(to, size, "%s", text ? text : "");
	nrp_text_clean(to);
}

static double optional(sqlite3_stmt *s, int column, bool *has)
{
	*has = sqlite3_column_type(s, column) != SQLITE_NULL;
	return *has ? sqlite3_column_double(s, column) : 0;
}

int nrp_results_load_quantity(sqlite3_stmt *s, int i, struct nrp_quantity *q)
{
	const char *class = (const char *)sqlite3_column_text(s, i + 3);

	q->value = optional(s, i, &q->has_value);
	q->lower = optional(s, i + 1, &q->has_lower);
	q->upper = optional(s, i + 2, &q->has_upper);
	q->class = NRP_CLASS_NOT_OBSERVABLE;
	for (int k = 0; class && k <= NRP_CLASS_NOT_OBSERVABLE; k++)
		if (!strcmp(class, nrp_class_name((enum nrp_class)k)))
			q->class = (enum nrp_class)k;
	q->tier = sqlite3_column_int(s, i + 4);
	return isfinite(q->value) && isfinite(q->lower) && isfinite(q->upper) ? i + 5 : -1;
}

static int damaged(struct nrp_store *store, struct nrp_error *err, const char *what)
{
	return nrp_fail(err, NRP_INPUT, -EBADMSG, nrp_store_path(store), -1, "replay again", "%s",
			what);
}

static int load_lane(struct nrp_comparison *c, int i, struct nrp_store *store, const char *text,
		     struct nrp_error *err)
{
	json_t *o = text ? json_loads(text, 0, NULL) : NULL;

	c->variants[i] = json_incref(json_object_get(o, "variants"));
	c->set[i] = json_incref(json_object_get(o, "set"));
	json_decref(o);
	return c->variants[i] && c->set[i] ? 0
					   : damaged(store, err, "a stored lane is not readable");
}

static int load_replay(struct nrp_comparison *c, struct nrp_store *store, int64_t id,
		       struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store,
		"SELECT r.id, c.id, c.name, r.old_name, r.new_name, r.old_set, r.new_set "
		"FROM replay r JOIN capture c ON c.id = r.capture_id "
		"WHERE c.id = ?1 AND (?2 = 0 OR r.id = ?2) ORDER BY r.id DESC LIMIT 1",
		err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	sqlite3_bind_int64(s, 1, c->capture_id);
	sqlite3_bind_int64(s, 2, id);
	r = sqlite3_step(s);
	if (r == SQLITE_ROW) {
		c->replay_id = sqlite3_column_int64(s, 0);
		copy_text(c->capture, sizeof(c->capture), s, 2);
		copy_text(c->name[0], sizeof(c->name[0]), s, 3);
		copy_text(c->name[1], sizeof(c->name[1]), s, 4);
		r = load_lane(c, 0, store, (const char *)sqlite3_column_text(s, 5), err);
		if (r == 0)
			r = load_lane(c, 1, store, (const char *)sqlite3_column_text(s, 6), err);
	} else {
		r = r == SQLITE_DONE ? -ENOENT : nrp_store_fail(store, err, "read a replay");
	}
	sqlite3_finalize(s);
	return r;
}

static int load_metrics(struct nrp_comparison *c, struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store,
		"SELECT metric, unit, old_value, old_lower, old_upper, old_class, old_tier, "
		"new_value, new_lower, new_upper, new_class, new_tier, avoided_value, "
		"avoided_lower, avoided_upper, avoided_class, avoided_tier "
		"FROM lane_metric WHERE replay_id = ? ORDER BY id",
		err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	sqlite3_bind_int64(s, 1, c->replay_id);
	while ((r = sqlite3_step(s)) == SQLITE_ROW && c->nr_metrics < NRP_MAX_METRICS) {
		struct nrp_metric *m = &c->metric[c->nr_metrics++];
		int at;

		copy_text(m->name, sizeof(m->name), s, 0);
		copy_text(m->unit, sizeof(m->unit), s, 1);
		at = nrp_results_load_quantity(s, 2, &m->old_lane);
		if (at > 0)
			at = nrp_results_load_quantity(s, at, &m->new_lane);
		if (at > 0)
			at = nrp_results_load_quantity(s, at, &m->avoided);
		if (at < 0) {
			r = damaged(store, err, "a stored metric is not a number");
			break;
		}
	}
	if (r > 0)
		r = r == SQLITE_DONE || r == SQLITE_ROW
			    ? 0
			    : nrp_store_fail(store, err, "read metrics");
	sqlite3_finalize(s);
	return r;
}

static int load_notes(struct nrp_comparison *c, struct nrp_store *store, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(
		store, "SELECT code, text, detail FROM note WHERE replay_id = ? ORDER BY id", err);
	int r;

	if (!s)
		return err ? err->code : -EIO;
	sqlite3_bind_int64(s, 1, c->replay_id);
	while ((r = sqlite3_step(s)) == SQLITE_ROW && c->nr_notes < NRP_MAX_NOTES) {
		struct nrp_note *n = &c->note[c->nr_notes++];
		const char *detail = (const char *)sqlite3_column_text(s, 2);

		copy_text(n->code, sizeof(n->code), s, 0);
		copy_text(n->text, sizeof(n->text), s, 1);
		n->detail = detail ? json_loads(detail, 0, NULL) : NULL;
	}
	r = r == SQLITE_DONE || r == SQLITE_ROW ? 0 : nrp_store_fail(store, err, "read notes");
	sqlite3_finalize(s);
	return r;
}

int nrp_comparison_load(struct nrp_comparison *ret, struct nrp_store *store, int64_t capture_id,
			int64_t id, struct nrp_error *err)
{
	struct nrp_comparison c = { .capture_id = capture_id };
	int r = load_replay(&c, store, id, err);

	if (r == 0)
		r = load_metrics(&c, store, err);
	if (r == 0)
		r = load_notes(&c, store, err);
	if (r < 0) {
		nrp_comparison_clear(&c);
		return r;
	}
	*ret = c;
	return 0;
}

/* ---- fidelity ----------------------------------------------------------------------- */

static int clear_fidelity(struct nrp_store *store, int64_t capture_id, const char *sql,
			  struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(store, sql, err);

	if (!s)
		return err ? err->code : -EIO;
	sqlite3_bind_int64(s, 1, capture_id);
	return finish(store, s, "replace fidelity", err);
}

static int save_variant(struct nrp_store *store, int64_t capture_id,
			const struct nrp_verify_check *k, int i, struct nrp_error *err)
{
	const struct nrp_verify_variant *v = &k->variant[i];
	sqlite3_stmt *s = nrp_store_prepare(store,
					    "INSERT INTO fidelity (capture_id, family, variant, "
					    "chosen, decisions, agree, disagree, undecided) VALUES "
					    "(?, ?, ?, ?, ?, ?, ?, ?)",
					    err);

	if (!s)
		return err ? err->code : -EIO;
	sqlite3_bind_int64(s, 1, capture_id);
	sqlite3_bind_text(s, 2, k->family, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, v->variant, -1, SQLITE_STATIC);
	sqlite3_bind_int(s, 4, i == k->chosen);
	sqlite3_bind_int64(s, 5, (sqlite3_int64)v->decisions);
	sqlite3_bind_int64(s, 6, (sqlite3_int64)v->agree);
	sqlite3_bind_int64(s, 7, (sqlite3_int64)v->disagree);
	sqlite3_bind_int64(s, 8, (sqlite3_int64)v->undecided);
	return finish(store, s, "store fidelity", err);
}

static int save_rule(struct nrp_store *store, int64_t capture_id, const char *family,
		     const struct nrp_verify_rule *rule, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(store,
					    "INSERT INTO fidelity_rule (capture_id, family, rule, "
					    "decisions, agree) VALUES (?, ?, ?, ?, ?)",
					    err);

	if (!s)
		return err ? err->code : -EIO;
	sqlite3_bind_int64(s, 1, capture_id);
	sqlite3_bind_text(s, 2, family, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, rule->rule, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 4, (sqlite3_int64)rule->decisions);
	sqlite3_bind_int64(s, 5, (sqlite3_int64)rule->agree);
	return finish(store, s, "store fidelity", err);
}

static int save_coverage(const struct nrp_verify *v, struct nrp_store *store, int64_t capture_id,
			 struct nrp_error *err)
{
	int r = clear_fidelity(store, capture_id, "DELETE FROM coverage WHERE capture_id = ?", err);

	for (size_t i = 0; r == 0 && i < v->nr_coverage; i++) {
		const struct nrp_coverage *c = &v->coverage[i];
		sqlite3_stmt *s = nrp_store_prepare(
			store, "INSERT INTO coverage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", err);

		if (!s)
			return err ? err->code : -EIO;
		sqlite3_bind_int64(s, 1, capture_id);
		sqlite3_bind_int64(s, 2, (int64_t)c->mm);
		if (c->tgid >= 0)
			sqlite3_bind_int(s, 3, c->tgid);
		sqlite3_bind_int64(s, 4, (int64_t)c->faults);
		sqlite3_bind_int64(s, 5, (int64_t)c->passes);
		for (int k = 0; k < 3; k++)
			sqlite3_bind_int64(s, 6 + k, (int64_t)c->pages_seen[k]);
		bind_optional(s, 9, c->passes > 0,
			      c->passes ? v->seconds * 2 / (double)c->passes : 0);
		r = finish(store, s, "store coverage", err);
	}
	return r;
}

int nrp_fidelity_save(const struct nrp_verify *verify, struct nrp_store *store, int64_t capture_id,
		      struct nrp_error *err)
{
	int r = clear_fidelity(store, capture_id, "DELETE FROM fidelity WHERE capture_id = ?", err);

	if (r == 0)
		r = clear_fidelity(store, capture_id,
				   "DELETE FROM fidelity_rule WHERE capture_id = ?", err);
	for (size_t i = 0; r == 0 && i < verify->nr_checks; i++) {
		const struct nrp_verify_check *k = &verify->check[i];

		for (size_t v = 0; r == 0 && v < k->nr_variants; v++)
			r = save_variant(store, capture_id, k, (int)v, err);
		for (size_t n = 0; r == 0 && n < k->nr_rules; n++)
			r = save_rule(store, capture_id, k->family, &k->rule[n], err);
	}
	if (r == 0)
		r = save_coverage(verify, store, capture_id, err);
	return r == 0 ? nrp_save_scan_record(&verify->scan_record, store, capture_id, err) : r;
}
