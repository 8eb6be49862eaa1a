/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/replay.h"
#include "replay/mm_kin.h"
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
	nrp_tiering_clear(&replay->tiering);
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

/* What verify found; NRP_HOST_VARIANT: it found nothing. */
static int8_t host_variant(const struct nrp_verify_check *check)
{
	const struct nrp_verify_variant *v = &check->variant[check->chosen];

	return v->agree && !v->disagree ? (int8_t)check->chosen : NRP_HOST_VARIANT;
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
	if (v[NRP_FAMILY_MIGRATE_OUTCOME] == NRP_HOST_VARIANT)
		v[NRP_FAMILY_MIGRATE_OUTCOME] = host_variant(&r->outcome);
	if (v[NRP_FAMILY_SCAN_RESET] == NRP_HOST_VARIANT)
		v[NRP_FAMILY_SCAN_RESET] = host_variant(&r->reset);
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

/* Huge pages apart, all generations let the same attempts through. */
static bool same_outcome(int8_t a, int8_t b)
{
	return a == b || (a != NRP_OUTCOME_612 && b != NRP_OUTCOME_612);
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
	if (same_outcome(r->lane[0].variant[NRP_FAMILY_MIGRATE_OUTCOME],
			 r->lane[1].variant[NRP_FAMILY_MIGRATE_OUTCOME]))
		r->differs[NRP_FAMILY_MIGRATE_OUTCOME] = false;
	r->differs[NRP_FAMILY_TIERING_PROMOTE] |= r->tiering_differs;
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		r->differs[f] &= !r->moot[f];
}

/* ---- families that this capture may not exercise ------------------------------------ */

/* Attempts on huge pages in processes with kin: others may map the page, too. */
static int count_shared_huge(struct nrp_replay *r, struct nrp_store *store,
			     const struct nrp_capture *capture, struct nrp_error *err)
{
	uint32_t huge = capture->facts.huge_pages > 0 ? (uint32_t)capture->facts.huge_pages : 512;
	struct nrp_mm_kin *kin = NULL;
	uint64_t last = 0;
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < r->attempts.count; i++) {
		const struct nrp_attempt *a = &r->attempts.at[i];

		if (a->pages < huge)
			continue;
		if (!kin)
			ret = nrp_mm_kin_load(&kin, store, capture, err);
		if (ret == 0 && (a->mm == last || nrp_mm_kin_has_any(kin, a->mm))) {
			r->shared_huge_pages += a->pages;
			last = a->mm;
		}
	}
	nrp_mm_kin_free(kin);
	return ret;
}

static struct nrp_tiering_lane_params tiering_params(const struct nrp_lane_spec *spec,
						     const struct nrp_capture *capture,
						     struct nrp_tiering_lane_params host)
{
	int family = NRP_FAMILY_TIERING_PROMOTE;
	uint64_t page = nrp_capture_page_size(capture);
	uint64_t mbps = nrp_lane_get(spec, family, "rate_limit_mbps", UINT64_MAX);

	host.policy.hot_threshold_ms = (uint32_t)nrp_lane_get(spec, family, "hot_threshold_ms",
							      host.policy.hot_threshold_ms);
	if (mbps != UINT64_MAX)
		host.policy.limit = nrp_tiering_limit(mbps, page);
	return host;
}

static bool same_tiering(const struct nrp_tiering_lane_params *a,
			 const struct nrp_tiering_lane_params *b)
{
	return a->policy.variant == b->policy.variant &&
	       a->policy.hot_threshold_ms == b->policy.hot_threshold_ms &&
	       a->policy.limit == b->policy.limit;
}

static int run_tiering(struct nrp_replay *r, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_tiering_lane_params params[2];
	int ret = 0;

	for (int i = 0; ret == 0 && i < 2; i++) {
		int8_t v = r->lane[i].variant[NRP_FAMILY_TIERING_PROMOTE];
		enum nrp_tiering_variant variant =
			v == NRP_HOST_VARIANT ? NRP_TIERING_61 : (enum nrp_tiering_variant)v;

		ret = nrp_tiering_host_params(&params[i], variant, store, capture, err);
		if (ret == 0)
			params[i] = tiering_params(&r->lane[i].spec, capture, params[i]);
	}
	if (ret == 0)
		ret = nrp_tiering_run(&r->tiering, store, capture, params, 2, err);
	r->tiering_differs = ret == 0 && !same_tiering(&params[0], &params[1]);
	return ret;
}

static bool asks_for(const struct nrp_replay *r, int family)
{
	for (int i = 0; i < 2; i++) {
		const struct nrp_lane_spec *spec = &r->lane[i].spec;

		if (spec->variant[family] != NRP_HOST_VARIANT)
			return true;
		for (size_t k = 0; k < spec->nr_set; k++)
			if (spec->set[k].family == family)
				return true;
	}
	return false;
}

/* Which families decide nothing here, whatever their variant? */
static int find_moot(struct nrp_replay *r, struct nrp_store *store,
		     const struct nrp_capture *capture, struct nrp_error *err)
{
	bool reset = true;
	int ret = count_shared_huge(r, store, capture, err);

	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++)
		reset &= !r->moves.reset[v].refused;
	r->moot[NRP_FAMILY_SCAN_RESET] = reset && !r->moves.events_missing;
	r->moot[NRP_FAMILY_TASK_CLAIM] =
		!r->moves.claim.suppressed_upper && !r->moves.events_missing;
	r->moot[NRP_FAMILY_MIGRATE_OUTCOME] = !r->shared_huge_pages;
	r->moot[NRP_FAMILY_TIERING_PROMOTE] = true;
	if (ret == 0 && asks_for(r, NRP_FAMILY_TIERING_PROMOTE)) {
		ret = run_tiering(r, store, capture, err);
		r->moot[NRP_FAMILY_TIERING_PROMOTE] = r->tiering.identical;
	}
	return ret;
}

/* Does the lane do what the host did, in the families that are no attempts' or filter's? */
static bool as_host(const struct nrp_replay *r, const struct nrp_replay_lane *lane)
{
	static const enum nrp_family_id families[] = { NRP_FAMILY_SCAN_RESET, NRP_FAMILY_TASK_CLAIM,
						       NRP_FAMILY_TIERING_PROMOTE,
						       NRP_FAMILY_MIGRATE_OUTCOME };

	for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
		enum nrp_family_id f = families[k];
		int8_t v = lane->variant[f];
		int8_t host = f == NRP_FAMILY_SCAN_RESET        ? host_variant(&r->reset)
			      : f == NRP_FAMILY_MIGRATE_OUTCOME ? host_variant(&r->outcome)
								: NRP_HOST_VARIANT;

		if (r->moot[f] || lane->spec.variant[f] == NRP_HOST_VARIANT || v == host)
			continue;
		if (f == NRP_FAMILY_MIGRATE_OUTCOME && same_outcome(v, host))
			continue;
		return false;
	}
	return true;
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
			 same_as_host(&r->filter, lane->variant[NRP_FAMILY_MIGRATE_FILTER]) &&
			 as_host(r, lane);
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
		if (!strcmp(verify->check[i].family, "migrate.outcome"))
			r.outcome = verify->check[i];
		if (!strcmp(verify->check[i].family, "scan.reset"))
			r.reset = verify->check[i];
		if (!strcmp(verify->check[i].family, "migrate.ratelimit")) {
			r.ratelimit = verify->check[i];
			r.has_ratelimit_check = true;
		}
	}
	r.moves = verify->moves;
	e = nrp_attempts_load(&r.attempts, store, &cap, err);
	for (int i = 0; i < 2; i++)
		resolve_variants(&r, &r.lane[i]);
	if (e == 0)
		e = find_moot(&r, store, capture, err);
	for (int i = 0; e == 0 && i < 2; i++)
		e = run_e0(&r, i, capture, err);
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
