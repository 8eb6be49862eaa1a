/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/host.h"
#include "replay/replay_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void nrp_replay_clear(struct nrp_replay *replay)
{
	for (int i = 0; i < 2; i++) {
		nrp_ratelimit_lane_clear(&replay->lane[i].e0);
		if (!replay->lane[i].lent_scan)
			nrp_scan_lane_clear(&replay->lane[i].scan);
		nrp_hugetlb_result_clear(&replay->lane[i].hugetlb);
	}
	nrp_hugetlb_result_clear(&replay->hugetlb_record);
	nrp_attempts_clear(&replay->attempts);
	nrp_waits_clear(&replay->waits);
	nrp_processes_clear(&replay->processes);
	nrp_tiering_clear(&replay->tiering);
	nrp_scan_attempts_clear(&replay->scan_attempts);
	nrp_scan_pte_proofs_free(replay->pte_proofs);
	free(replay->rates);
}

/* ---- the limiter, judged where pages were ------------------------------------------- */

static struct nrp_ratelimit_params limiter_params(const struct nrp_replay *r,
						  const struct nrp_replay_lane *lane,
						  const struct nrp_capture *capture)
{
	int family = NRP_FAMILY_MIGRATE_RATELIMIT;
	uint64_t quota = r->ratelimit.quota_fitted
				 ? r->ratelimit.quota
				 : nrp_ratelimit_quota(nrp_host_page_size(&capture->facts));
	uint64_t ms = nrp_lane_get(&lane->spec, family, "interval", 100);

	return (struct nrp_ratelimit_params){
		.variant = (enum nrp_ratelimit_variant)lane->variant[family],
		.quota = nrp_lane_get(&lane->spec, family, "quota", quota),
		.interval = nrp_ratelimit_interval(ms, r->hz),
	};
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
	bool host = r->has_ratelimit_check &&
		    nrp_replay_same_as_host(&r->ratelimit, lane->variant[family]) &&
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
	lane->observed =
		!lane->off && (host || i == 0) &&
		(lane->e0.fitted || params.variant == NRP_RATELIMIT_NONE) &&
		nrp_replay_same_as_host(&r->filter, lane->variant[NRP_FAMILY_MIGRATE_FILTER]) &&
		nrp_replay_as_host(r, i);
	if (params.variant == NRP_RATELIMIT_NONE && lane->e0.contradictions)
		lane->observed = false; /* the host refused attempts */
	return 0;
}

/* Where the old lane's refusals explain the record, a lane that refuses otherwise did not run. */
static void settle_observed(struct nrp_replay *r)
{
	const struct nrp_ratelimit_lane *old = &r->lane[0].e0;

	if (r->lane[0].observed && old->denied &&
	    !nrp_replay_same_limiter(&old->params, &r->lane[1].e0.params))
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

/* Of lanes whose numbers have no ticks. */
#define ANY_HZ 1000

/* ---- what is asked -------------------------------------------------------------------- */

/* Does the lane name anything but how locks are held and hugetlb pages are counted? */
static bool asks_for_balancing(const struct nrp_lane_spec *spec)
{
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		if (spec->variant[f] != NRP_HOST_VARIANT && f != NRP_FAMILY_MUNMAP_LOCK &&
		    f != NRP_FAMILY_HUGETLB_COUNT)
			return true;
	for (size_t i = 0; i < spec->nr_set; i++)
		if (spec->set[i].family != NRP_FAMILY_MUNMAP_LOCK)
			return true;
	return spec->off || spec->modelled_cadence;
}

/* Is there anything to replay, and is known what that takes? */
static int check_request(const struct nrp_capture *capture, const struct nrp_verify *verify,
			 const struct nrp_lane_spec *old_spec, const struct nrp_lane_spec *new_spec,
			 struct nrp_store *store, struct nrp_error *err)
{
	bool balancing = asks_for_balancing(old_spec) || asks_for_balancing(new_spec);
	bool others = verify->locks.known || verify->hugetlb_host >= 0;

	if (capture->facts.hz <= 0 && balancing)
		return nrp_fail(err, NRP_INPUT, -ENODATA, nrp_store_path(store), -1,
				"give it with --set hz=N",
				"the tick rate of capture %s is not known", capture->name);
	/* Differences of times fit a signed number. */
	if (capture->last_time - capture->first_time > INT64_MAX / 2)
		return nrp_fail(err, NRP_INPUT, -EBADMSG, nrp_store_path(store), -1,
				"import the trace again with --force",
				"capture %s is damaged: it lasts more than a century",
				capture->name);
	if (!verify->hint_faults && (balancing || !others))
		return nrp_fail(err, NRP_INPUT, -ENODATA, nrp_store_path(store), -1,
				"capture with the fault probes",
				"capture %s has no hinting faults to replay", capture->name);
	return 0;
}

/* ---- the whole ---------------------------------------------------------------------- */

int nrp_replay_run(struct nrp_replay *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, const struct nrp_verify *verify,
		   const struct nrp_lane_spec *old_spec, const struct nrp_lane_spec *new_spec,
		   struct nrp_error *err)
{
	const struct nrp_lane_spec spec[2] = { *old_spec, *new_spec };
	const struct nrp_scan_lane *const none[2] = { NULL, NULL };

	return nrp_replay_run_scanned(ret, store, capture, verify, spec, none, err);
}

int nrp_replay_scan(struct nrp_scan_lane *ret, struct nrp_store *store,
		    const struct nrp_capture *capture, const struct nrp_lane_spec *spec,
		    size_t nr_lanes, struct nrp_error *err)
{
	struct nrp_scan_lane_config config[NRP_MAX_SCAN_LANES];

	for (size_t i = 0; i < nr_lanes && i < NRP_MAX_SCAN_LANES; i++)
		config[i] = nrp_replay_scan_config(&spec[i], &capture->facts);
	return nrp_scan_lanes_run(ret, store, capture, config, nr_lanes, err);
}

int nrp_replay_run_scanned(struct nrp_replay *ret, struct nrp_store *store,
			   const struct nrp_capture *capture, const struct nrp_verify *verify,
			   const struct nrp_lane_spec spec[2],
			   const struct nrp_scan_lane *const scan[2], struct nrp_error *err)
{
	struct nrp_capture cap = *capture; /* shallow: only HZ may change */
	struct nrp_replay r = { .lane = { { .spec = spec[0], .lent_scan = scan[0] },
					  { .spec = spec[1], .lent_scan = scan[1] } } };
	int e;

	/* One host has one tick rate: whichever lane names it. */
	cap.facts.hz = (int64_t)nrp_lane_get(
		&spec[1], -1, "hz",
		nrp_lane_get(&spec[0], -1, "hz",
			     capture->facts.hz > 0 ? (uint64_t)capture->facts.hz : 0));
	e = check_request(&cap, verify, &spec[0], &spec[1], store, err);
	if (e < 0)
		return e;
	if (cap.facts.hz <= 0)
		cap.facts.hz = ANY_HZ;
	r.hz = (uint64_t)cap.facts.hz;
	r.passes = verify->passes;
	r.seconds = verify->seconds;
	r.lossy = capture->lost_events || capture->loss_gaps ||
		  nrp_unjoined_share(capture) > NRP_UNJOINED_LIMIT;
	r.observed.duration_ns = capture->last_time - capture->first_time;
	if (!verify->has_attempts || verify->attempts.ticks_from_clock)
		e = nrp_attempts_load(&r.attempts, store, &cap, err);
	else
		e = nrp_attempts_copy(&r.attempts, &verify->attempts) < 0 ? nrp_fail_nomem(err) : 0;
	nrp_replay_resolve(&r, verify, &cap.facts);
	if (e == 0)
		e = nrp_replay_prepare(&r, store, capture, err);
	for (int i = 0; e == 0 && i < 2; i++)
		e = run_e0(&r, i, capture, err);
	if (e == 0)
		e = nrp_scan_bounds_load(&r.scans, store, capture, err);
	if (e == 0)
		e = nrp_replay_load_waits(&r, store, capture, err);
	if (e == 0)
		e = nrp_replay_load_samples(&r, store, capture, err);
	if (e == 0) {
		settle_observed(&r);
		nrp_replay_compare_families(&r);
		find_identity(&r);
		e = nrp_replay_run_worlds(&r, store, &cap, verify->shared_faults > 0, err);
	}
	if (e == 0)
		e = nrp_scan_attempts_touches(&r.scan_attempts, store, &cap, r.rates, r.nr_rates,
					      err);
	if (e < 0) {
		nrp_replay_clear(&r);
		return e;
	}
	*ret = r;
	return 0;
}
