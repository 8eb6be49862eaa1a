/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/replay.h"
#include "replay/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void nrp_replay_clear(struct nrp_replay *replay)
{
	for (int i = 0; i < 2; i++)
		nrp_ratelimit_lane_clear(&replay->lane[i].e0);
	nrp_attempts_clear(&replay->attempts);
	nrp_waits_clear(&replay->waits);
	free(replay->rates);
}

/* ---- lanes -------------------------------------------------------------------------- */

static bool same_params(const struct nrp_ratelimit_params *a, const struct nrp_ratelimit_params *b)
{
	if (a->variant != b->variant)
		return false;
	return a->variant == NRP_RATELIMIT_NONE ||
	       (a->quota == b->quota && a->interval == b->interval);
}

static bool same_as_host(const struct nrp_verify_check *check, int variant)
{
	return variant == check->chosen || check->indistinguishable[variant];
}

/* Names the host's variants where verify found them. */
static void resolve_variants(struct nrp_replay *r, struct nrp_replay_lane *lane)
{
	int8_t *v = lane->variant;

	memcpy(v, lane->spec.variant, sizeof(lane->variant));
	lane->off = lane->spec.off;
	if (v[NRP_FAMILY_MIGRATE_FILTER] == NRP_HOST_VARIANT)
		v[NRP_FAMILY_MIGRATE_FILTER] = (int8_t)r->filter.chosen;
	if (v[NRP_FAMILY_MIGRATE_RATELIMIT] == NRP_HOST_VARIANT)
		v[NRP_FAMILY_MIGRATE_RATELIMIT] = r->has_ratelimit_check
							  ? (int8_t)r->ratelimit.chosen
							  : (int8_t)NRP_RATELIMIT_NONE;
}

static struct nrp_ratelimit_params limiter_params(const struct nrp_replay *r,
						  const struct nrp_replay_lane *lane,
						  const struct nrp_capture *capture)
{
	int family = NRP_FAMILY_MIGRATE_RATELIMIT;
	int64_t page = capture->facts.page_size > 0 ? capture->facts.page_size : 4096;
	uint64_t quota = r->ratelimit.quota_fitted ? r->ratelimit.quota
						   : nrp_ratelimit_quota((uint64_t)page);
	uint64_t ms = nrp_lane_get(&lane->spec, family, "interval", 100);

	return (struct nrp_ratelimit_params){
		.variant = (enum nrp_ratelimit_variant)lane->variant[family],
		.quota = nrp_lane_get(&lane->spec, family, "quota", quota),
		.interval = nrp_ratelimit_interval(ms, r->hz),
	};
}

/* Families in which the lanes are not known to be the same. */
static void find_differences(struct nrp_replay *r)
{
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		r->differs[f] = r->lane[0].variant[f] != r->lane[1].variant[f];
	/* Variants that this capture cannot tell apart from the host's are the host's. */
	if (same_as_host(&r->filter, r->lane[0].variant[NRP_FAMILY_MIGRATE_FILTER]) &&
	    same_as_host(&r->filter, r->lane[1].variant[NRP_FAMILY_MIGRATE_FILTER]))
		r->differs[NRP_FAMILY_MIGRATE_FILTER] = false;
	for (int i = 0; i < 2; i++) {
		int8_t v = r->lane[i].variant[NRP_FAMILY_MIGRATE_FILTER];

		r->alike[i] = v != r->filter.chosen && r->filter.indistinguishable[v];
	}
	r->off_differs = r->lane[0].off != r->lane[1].off;
	r->differs[NRP_FAMILY_MIGRATE_RATELIMIT] =
		!same_params(&r->lane[0].e0.params, &r->lane[1].e0.params);
}

/*
 * The old lane, and a lane whose limiter verify found on the host, may be fitted to the
 * evidence; if that succeeds, the record is what this lane did.
 */
static int run_e0(struct nrp_replay *r, int i, const struct nrp_capture *capture,
		  struct nrp_error *err)
{
	struct nrp_replay_lane *lane = &r->lane[i];
	struct nrp_ratelimit_params params = limiter_params(r, lane, capture);
	int family = NRP_FAMILY_MIGRATE_RATELIMIT;
	bool host = r->has_ratelimit_check && same_as_host(&r->ratelimit, lane->variant[family]) &&
		    (params.variant == NRP_RATELIMIT_NONE ||
		     (capture->facts.has_ratelimit_event &&
		      (!r->ratelimit.quota_fitted || (params.quota >= r->ratelimit.quota &&
						      params.quota <= r->ratelimit.quota_max))));
	int ret;

	if (params.variant != NRP_RATELIMIT_NONE && params.interval > NRP_RATELIMIT_MAX_INTERVAL)
		return nrp_fail(
			err, NRP_USAGE, -ERANGE, NULL, -1,
			"choose a shorter one with --set interval=MS",
			"an interval of %llu ticks is longer than the %d that can be replayed",
			(unsigned long long)params.interval, NRP_RATELIMIT_MAX_INTERVAL);
	ret = nrp_ratelimit_lane_run(&lane->e0, &r->attempts, &params, i == 0 || host, err);
	if (ret < 0)
		return ret;
	lane->observed = !lane->off && (host || i == 0) &&
			 (lane->e0.fitted || params.variant == NRP_RATELIMIT_NONE) &&
			 same_as_host(&r->filter, lane->variant[NRP_FAMILY_MIGRATE_FILTER]);
	if (params.variant == NRP_RATELIMIT_NONE && lane->e0.contradictions)
		lane->observed = false; /* the host refused attempts */
	return 0;
}

/* Where the old lane's refusals explain the record, a lane that refuses otherwise did not run. */
static void settle_observed(struct nrp_replay *r)
{
	const struct nrp_ratelimit_lane *old = &r->lane[0].e0;

	if (r->lane[0].observed && old->denied && !same_params(&old->params, &r->lane[1].e0.params))
		r->lane[1].observed = false;
}

static void find_identity(struct nrp_replay *r)
{
	const struct nrp_ratelimit_lane *e0[2] = { &r->lane[0].e0, &r->lane[1].e0 };
	bool identical = true;

	r->quota = UINT64_MAX;
	for (int i = 0; i < 2; i++) {
		identical &= e0[i]->no_denial_possible;
		/* Of two limiters the tighter one is shown. */
		if (e0[i]->params.variant == NRP_RATELIMIT_NONE || e0[i]->params.quota >= r->quota)
			continue;
		r->quota = e0[i]->params.quota;
		r->max_pages_in_window = e0[i]->max_pages_in_window;
		r->max_pages_two_windows = e0[i]->max_pages_two_windows;
		r->window_ticks = e0[i]->params.interval + 1;
	}
	r->identical = identical && !r->lossy && !r->off_differs && !r->attempts.denied &&
		       r->differs[NRP_FAMILY_MIGRATE_RATELIMIT];
}

/* ---- what the capture counts -------------------------------------------------------- */

static int load_waits(struct nrp_replay *r, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_replay_observed *o = &r->observed;
	const struct nrp_wait_totals *t = &r->waits.totals;
	int ret = nrp_waits_load(&r->waits, store, capture, err);

	if (ret < 0)
		return ret;
	o->migration_waits = t->all.waits;
	o->migration_wait_ns = t->all.ns;
	o->other_waits = t->by_cause[NRP_WAIT_OTHER_MIGRATION];
	o->unattributed_waits = t->by_cause[NRP_WAIT_UNATTRIBUTED];
	return nrp_store_capture_has_probe(store, capture->id, "migration_wait",
					   &o->has_migration_waits, err);
}

/* What others waited for this fault's migration. With lost events no cause is certain. */
static struct nrp_fault_waits waits_of(const struct nrp_replay *r, const struct nrp_hint_fault *f)
{
	struct nrp_fault_waits w = nrp_waits_of_fault(&r->waits, f->time, f->tid);

	if (r->lossy) {
		w.possible.waits += w.certain.waits;
		w.possible.ns += w.certain.ns;
		w.certain = (struct nrp_wait_count){ 0 };
	}
	return w;
}

static void count_fault(struct nrp_replay_observed *o, const struct nrp_hint_fault *f)
{
	uint64_t pages = nrp_fault_pages(f);
	bool moved = nrp_fault_moved(f);

	o->hint_faults++;
	o->hint_fault_pages += pages;
	o->remote_faults += !NRP_NULL(f, hint_fault, src_nid) &&
			    !NRP_NULL(f, hint_fault, this_nid) && f->src_nid != f->this_nid;
	o->unplaced_faults += NRP_NULL(f, hint_fault, src_nid) || NRP_NULL(f, hint_fault, this_nid);
	o->moves += moved;
	o->moved_pages += moved ? pages : 0;
	o->open_pages +=
		f->attempt != NRP_ATTEMPT_NONE && NRP_NULL(f, hint_fault, moved) ? pages : 0;
}

/* ---- worlds ------------------------------------------------------------------------- */

static bool never(void *context, uint64_t time, int nid, uint64_t pages)
{
	(void)context;
	(void)time;
	(void)nid;
	(void)pages;
	return false;
}

/*
 * Central: the lane as it is. High: every page that was ever attempted moves, as without a limiter:
 * a limiter can delay moves but offers no new ones. Sparse: a page that moved does not try again,
 * so the fewest attempts come where all succeed and passes are rare. Low: nothing unknown succeeds,
 * and passes become rare after the first decision that differs; where the limiter's first window is
 * not known, one such world per start: a fresh window, and spent ones that end after a fifth, two
 * fifths .. of one.
 */
static void configure(struct nrp_replay *r, int i, const struct nrp_capture *capture,
		      struct nrp_world_config *c, struct nrp_ratelimit_start *starts)
{
	struct nrp_replay_lane *lane = &r->lane[i];
	bool start_known = lane->e0.fitted || lane->e0.params.variant == NRP_RATELIMIT_NONE;
	int nr_low = start_known ? 1 : NRP_LOW_WORLDS;
	struct nrp_world_config base = {
		.lane = i,
		.filter = (enum nrp_filter_variant)lane->variant[NRP_FAMILY_MIGRATE_FILTER],
		.limiter = lane->e0.params,
		.start = lane->e0.start,
		.nr_starts = r->attempts.nr_nodes,
		.nr_nodes = capture->facts.nr_nodes > r->attempts.nr_nodes ? capture->facts.nr_nodes
									   : r->attempts.nr_nodes,
		.grid_origin = r->attempts.count ? r->attempts.at[0].jiffies : 0,
		.unknown = NRP_UNKNOWN_EXPECTED,
		.admit = lane->off ? never : NULL,
	};

	/* Without balancing nothing is left open. */
	lane->nr_worlds = lane->off ? 1 : NRP_WORLD_LOW + nr_low;
	for (int k = 0; k < lane->nr_worlds; k++)
		c[k] = base;
	for (int k = 0; k < nr_low && !lane->off; k++) {
		struct nrp_world_config *low = &c[NRP_WORLD_LOW + k];
		struct nrp_ratelimit_start *start = starts + k * r->attempts.nr_nodes;
		int64_t interval = (int64_t)lane->e0.params.interval;

		low->unknown = NRP_UNKNOWN_FAILS;
		low->thin_after_divergence = true;
		if (k == 0)
			continue;
		for (int n = 0; n < r->attempts.nr_nodes; n++)
			start[n] = (struct nrp_ratelimit_start){
				.first_end = (interval - 1) * k / (NRP_LOW_WORLDS - 1),
				.exhausted = true,
			};
		low->start = start;
	}
	if (lane->off)
		return;
	c[NRP_WORLD_SPARSE].unknown = NRP_UNKNOWN_SUCCEEDS;
	c[NRP_WORLD_SPARSE].thin_after_divergence = true;
	c[NRP_WORLD_HIGH].unknown = NRP_UNKNOWN_SUCCEEDS;
	c[NRP_WORLD_HIGH].limiter.variant = NRP_RATELIMIT_NONE;
}

/* The lane that ran on the host, for what its refusals hide; NULL: none did. */
static const struct nrp_ratelimit_lane *host_lane(const struct nrp_replay *r)
{
	for (int i = 0; i < 2; i++)
		if (r->lane[i].observed && r->lane[i].e0.params.variant != NRP_RATELIMIT_NONE)
			return &r->lane[i].e0;
	return NULL;
}

static int feed_fault(struct nrp_replay *r, struct nrp_worlds *worlds,
		      const struct nrp_hint_fault *f, const struct nrp_ratelimit_lane *host,
		      size_t *attempt)
{
	struct nrp_fault_context context = { 0 };
	struct nrp_attempt a;
	bool has_jiffies;

	count_fault(&r->observed, f);
	if (f->attempt != NRP_ATTEMPT_NONE && nrp_attempt_of_fault(&a, f, &has_jiffies)) {
		context.refused = a.evidence == NRP_LIMITER_DENIED ||
				  (a.evidence == NRP_LIMITER_UNKNOWN && host &&
				   !host->decision[*attempt].admitted);
		context.waits = waits_of(r, f);
		r->observed.attempts++;
		r->observed.attempt_pages += a.pages;
		r->observed.refused += context.refused;
		++*attempt;
	}
	return nrp_worlds_fault(worlds, f, &context);
}

static int feed(struct nrp_replay *r, struct nrp_worlds *worlds, struct nrp_replay_stream *stream,
		const struct nrp_ratelimit_lane *host, struct nrp_error *err)
{
	enum nrp_replay_stream_kind kind;
	const void *row;
	size_t attempt = 0;
	int ret;

	while ((ret = nrp_replay_stream_next(stream, &kind, &row, err)) > 0) {
		switch (kind) {
		case NRP_STREAM_LIFE:
			ret = nrp_worlds_task_life(worlds, row);
			break;
		case NRP_STREAM_MOVE:
			ret = nrp_worlds_task_move(worlds, row);
			break;
		case NRP_STREAM_PASS:
			ret = nrp_worlds_scan_pass(worlds, row);
			break;
		case NRP_STREAM_RANGE:
			ret = nrp_worlds_scan_range(worlds, row);
			break;
		case NRP_STREAM_FAULT:
			ret = feed_fault(r, worlds, row, host, &attempt);
			break;
		}
		if (ret < 0)
			return nrp_fail_nomem(err);
	}
	return ret;
}

static int keep_rates(struct nrp_replay *r, const struct nrp_locality *book)
{
	struct nrp_touch_rate rate;
	size_t position = 0, room = 0;

	while (nrp_locality_rate(book, &position, &rate)) {
		if (r->nr_rates == room) {
			size_t more = room ? room * 2 : 64;
			struct nrp_touch_rate *grown = reallocarray(r->rates, more, sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			r->rates = grown;
			room = more;
		}
		r->rates[r->nr_rates++] = rate;
	}
	return 0;
}

/* What the worlds and the locality book say in the end. */
static int collect(struct nrp_replay *r, const struct nrp_worlds *worlds, const int first[2])
{
	const struct nrp_locality *book = nrp_worlds_locality(worlds);
	int ret = nrp_locality_remote(book, -1, &r->remote);

	r->totals = *nrp_worlds_totals(worlds);
	for (int i = 0; i < 2; i++) {
		struct nrp_replay_lane *lane = &r->lane[i];

		for (int k = 0; ret == 0 && k < lane->nr_worlds; k++) {
			lane->world[k] = *nrp_worlds_result(worlds, first[i] + k);
			ret = nrp_locality_remote(book, first[i] + k, &lane->remote[k]);
			if (ret == 0)
				ret = nrp_locality_avoided(book, first[i] + k, &lane->avoided[k]);
		}
	}
	return ret < 0 ? ret : keep_rates(r, book);
}

static int run_worlds(struct nrp_replay *r, struct nrp_store *store,
		      const struct nrp_capture *capture, bool shared, struct nrp_error *err)
{
	struct nrp_world_config configs[2 * NRP_MAX_LANE_WORLDS];
	struct nrp_ratelimit_start *starts[2] = { NULL, NULL };
	struct nrp_worlds *worlds = NULL;
	struct nrp_replay_stream *stream = NULL;
	int first[2] = { -1, -1 }, n = 0, ret = 0;

	for (int i = 0; i < 2; i++) {
		if (r->lane[i].observed)
			continue;
		starts[i] =
			calloc((size_t)r->attempts.nr_nodes * NRP_LOW_WORLDS + 1, sizeof(**starts));
		if (!starts[i])
			ret = nrp_fail_nomem(err);
		else
			configure(r, i, capture, configs + n, starts[i]);
		first[i] = n;
		n += r->lane[i].nr_worlds;
	}
	if (ret == 0)
		ret = nrp_worlds_new(
			&worlds, &capture->facts, (enum nrp_filter_variant)r->filter.chosen,
			r->scans.period_max_ms, capture->first_time, shared, configs, n, err);
	if (ret == 0)
		ret = nrp_replay_stream_open(&stream, store, capture->id, shared, err);
	if (ret == 0)
		ret = feed(r, worlds, stream, host_lane(r), err);
	if (ret == 0 &&
	    (nrp_worlds_finish(worlds, capture->last_time) < 0 || collect(r, worlds, first) < 0))
		ret = nrp_fail_nomem(err);
	nrp_replay_stream_close(stream);
	nrp_worlds_free(worlds);
	free(starts[0]);
	free(starts[1]);
	return ret;
}

/* ---- the whole ---------------------------------------------------------------------- */

int nrp_replay_run(struct nrp_replay *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, const struct nrp_verify *verify,
		   const struct nrp_lane_spec *old_spec, const struct nrp_lane_spec *new_spec,
		   struct nrp_error *err)
{
	struct nrp_capture cap = *capture; /* shallow: only HZ may change */
	struct nrp_replay r = { .lane = { { .spec = *old_spec }, { .spec = *new_spec } } };
	int e;

	/* One host has one tick rate: whichever lane names it. */
	cap.facts.hz = (int64_t)nrp_lane_get(
		new_spec, -1, "hz",
		nrp_lane_get(old_spec, -1, "hz",
			     capture->facts.hz > 0 ? (uint64_t)capture->facts.hz : 0));
	if (cap.facts.hz <= 0)
		return nrp_fail(err, NRP_INPUT, -ENODATA, nrp_store_path(store), -1,
				"give it with --set hz=N",
				"the tick rate of capture %s is not known", capture->name);
	if (!verify->hint_faults)
		return nrp_fail(err, NRP_INPUT, -ENODATA, nrp_store_path(store), -1,
				"capture with the fault probes",
				"capture %s has no hinting faults to replay", capture->name);
	r.hz = (uint64_t)cap.facts.hz;
	r.passes = verify->passes;
	r.seconds = verify->seconds;
	r.lossy = capture->lost_events || capture->loss_gaps;
	r.observed.duration_ns = capture->last_time - capture->first_time;
	for (size_t i = 0; i < verify->nr_checks; i++) {
		if (!strcmp(verify->check[i].family, "migrate.filter"))
			r.filter = verify->check[i];
		if (!strcmp(verify->check[i].family, "migrate.ratelimit")) {
			r.ratelimit = verify->check[i];
			r.has_ratelimit_check = true;
		}
	}
	e = nrp_attempts_load(&r.attempts, store, &cap, err);
	for (int i = 0; e == 0 && i < 2; i++) {
		resolve_variants(&r, &r.lane[i]);
		e = run_e0(&r, i, capture, err);
	}
	if (e == 0)
		e = nrp_scan_bounds_load(&r.scans, store, capture, err);
	if (e == 0)
		e = load_waits(&r, store, capture, err);
	if (e == 0) {
		settle_observed(&r);
		find_differences(&r);
		find_identity(&r);
		e = run_worlds(&r, store, &cap, verify->shared_faults > 0, err);
	}
	if (e < 0) {
		nrp_replay_clear(&r);
		return e;
	}
	*ret = r;
	return 0;
}
