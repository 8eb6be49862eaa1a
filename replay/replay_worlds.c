/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/host.h"
#include "replay/merge.h"
#include "replay/pages.h"
#include "replay/replay_internal.h"
#include "replay/stream.h"

#include <errno.h>
#include <stdlib.h>

/* ---- what the capture counts -------------------------------------------------------- */

int nrp_replay_load_waits(struct nrp_replay *r, struct nrp_store *store,
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

int nrp_replay_load_samples(struct nrp_replay *r, struct nrp_store *store,
			    const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_samples_summary s;
	int ret = nrp_samples_summary(&s, store, capture, err);

	r->remote_loads = -1;
	if (ret < 0)
		return ret;
	if (s.records && s.remote_known) {
		r->loads_counted = s.counted && !s.scaled && !s.incomplete;
		r->remote_loads = (double)s.remote_loads;
		/* A sample without a period is taken to be like those that have one. */
		if (!s.counted && s.remote_with_period)
			r->remote_loads *= (double)s.remote_period / (double)s.remote_with_period;
	}
	nrp_samples_summary_clear(&s);
	return 0;
}

static enum nrp_fault_outcome outcome_of(const struct nrp_hint_fault *f, bool limited)
{
	if (nrp_fault_moved(f))
		return NRP_FAULT_MOVED;
	if (limited)
		return NRP_FAULT_LIMITED;
	if (f->attempt != NRP_ATTEMPT_NONE)
		return NRP_NULL(f, hint_fault, moved) ? NRP_FAULT_OPEN : NRP_FAULT_FAILED;
	if (NRP_NULL(f, hint_fault, src_nid) || NRP_NULL(f, hint_fault, this_nid))
		return NRP_FAULT_UNPLACED;
	return f->src_nid == f->this_nid ? NRP_FAULT_LOCAL : NRP_FAULT_REFUSED;
}

static void count_outcome(struct nrp_replay_observed *o, const struct nrp_hint_fault *f,
			  bool limited)
{
	enum nrp_fault_outcome end = outcome_of(f, limited);

	o->outcome[end].faults++;
	o->outcome[end].pages += nrp_fault_pages(f);
}

static void count_fault(struct nrp_replay_observed *o, const struct nrp_hint_fault *f)
{
	uint64_t pages = nrp_fault_pages(f);
	bool moved = nrp_fault_moved(f);
	bool unplaced = NRP_NULL(f, hint_fault, src_nid) || NRP_NULL(f, hint_fault, this_nid);

	o->hint_faults++;
	o->hint_fault_pages += pages;
	o->remote_faults += !unplaced && f->src_nid != f->this_nid;
	o->unplaced_faults += unplaced;
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

/* Of the host, and of all attempts. */
static int nr_nodes(const struct nrp_replay *r, const struct nrp_capture *capture)
{
	return capture->facts.nr_nodes > r->attempts.nr_nodes ? capture->facts.nr_nodes
							      : r->attempts.nr_nodes;
}

/* Do scans come at another pace from the start, because the scanner or its periods are others? */
static bool other_pace(const struct nrp_replay *r, const struct nrp_replay_lane *lane)
{
	return nrp_replay_own_scanner(lane) || lane->opens || r->differs[NRP_FAMILY_SCAN_RESET] ||
	       r->differs[NRP_FAMILY_TASK_CLAIM];
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
		.nr_nodes = nr_nodes(r, capture),
		.grid_origin = r->attempts.count ? r->attempts.at[0].jiffies : 0,
		.unknown = NRP_UNKNOWN_EXPECTED,
		.admit = lane->off ? never : NULL,
	};

	/* Without balancing nothing is left open. */
	lane->nr_worlds = lane->off ? 1 : NRP_WORLD_LOW + nr_low;
	base.diverged = other_pace(r, lane);
	base.leaves_out = nrp_replay_own_scanner(lane);
	for (int k = 0; k < lane->nr_worlds; k++)
		c[k] = base;
	for (int k = 0; k < nr_low && !lane->off; k++) {
		struct nrp_world_config *low = &c[NRP_WORLD_LOW + k];
		struct nrp_ratelimit_start *start = starts + k * base.nr_nodes;
		int64_t interval = (int64_t)lane->e0.params.interval;

		low->unknown = NRP_UNKNOWN_FAILS;
		low->thin_after_divergence = true;
		if (k == 0)
			continue;
		for (int n = 0; n < base.nr_nodes; n++)
			start[n] = (struct nrp_ratelimit_start){
				.first_end = (interval - 1) * k / (NRP_LOW_WORLDS - 1),
				.exhausted = true,
			};
		low->start = start;
		low->nr_starts = base.nr_nodes;
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

/* What the records go through. */
struct feed {
	const struct nrp_capture *capture;
	const char *path; /* of the store */
	struct nrp_replay *r;
	struct nrp_worlds *worlds;
	struct nrp_scan_effects *effects[2]; /* NULL: the host's own scanner */
	struct nrp_kept_waits *kept;
	struct nrp_cadence *cadence[2]; /* NULL: passes come as observed */
	struct nrp_scan_timeline *timeline;
	int first[2]; /* number of the lane's central world */
	const struct nrp_ratelimit_lane *host;
	size_t attempt;
	/* Last attempt of a thread whose waits were taken: a clock may stand still between two. */
	struct {
		uint64_t time;
		int32_t tid;
	} waited[256];
};

/* What others waited for this fault's migration. With lost events no cause is certain. */
static struct nrp_fault_waits waits_of(struct feed *d, const struct nrp_hint_fault *f)
{
	const struct nrp_replay *r = d->r;
	struct nrp_fault_waits w = { 0 };
	size_t i = (uint32_t)f->tid & 255;

	if (d->waited[i].tid == f->tid && d->waited[i].time == f->time)
		return w;
	d->waited[i].tid = f->tid;
	d->waited[i].time = f->time;
	w = nrp_waits_of_fault(&r->waits, f->time, f->tid);

	if (r->lossy) {
		w.possible.waits += w.certain.waits;
		w.possible.ns += w.certain.ns;
		w.certain = (struct nrp_wait_count){ 0 };
	}
	return w;
}

/* The fault in the lane's central world, which has not seen it yet. */
static int feed_cadence(struct feed *d, int i, const struct nrp_hint_fault *f, enum nrp_armed armed)
{
	uint64_t size = nrp_host_page_size(&d->capture->facts);
	bool there = armed == NRP_ARMED_YES || armed == NRP_ARMED_UNKNOWN, tainted = false;
	int nid = -1;

	if (!NRP_NULL(f, hint_fault, mm) && !NRP_NULL(f, hint_fault, addr))
		nid = nrp_worlds_location(d->worlds, d->first[i], f->mm,
					  nrp_page_of(f->addr, size, nrp_fault_pages(f)), &tainted);
	return nrp_cadence_fault(d->cadence[i], f, there, tainted ? nid : -1);
}

static int feed_fault(struct feed *d, const struct nrp_hint_fault *f)
{
	struct nrp_fault_context context = { 0 };
	struct nrp_replay *r = d->r;
	struct nrp_attempt a;
	bool has_jiffies, limited = false;

	count_fault(&r->observed, f);
	if (f->attempt != NRP_ATTEMPT_NONE && nrp_attempt_of_fault(&a, f, &has_jiffies)) {
		limited = a.evidence == NRP_LIMITER_DENIED;
		context.refused = limited || (a.evidence == NRP_LIMITER_UNKNOWN && d->host &&
					      !d->host->decision[d->attempt].admitted);
		context.waits = waits_of(d, f);
		r->observed.attempts++;
		r->observed.attempt_pages += a.pages;
		r->observed.refused += context.refused;
		d->attempt++;
	}
	count_outcome(&r->observed, f, limited);
	for (int i = 0; i < 2; i++)
		if (d->effects[i] &&
		    nrp_scan_effects_fault(d->effects[i], d->worlds, f, &context.armed[i]) < 0)
			return -ENOMEM;
	for (int i = 0; i < 2; i++)
		if (d->cadence[i] && feed_cadence(d, i, f, context.armed[i]) < 0)
			return -ENOMEM;
	if (nrp_worlds_fault(d->worlds, f, &context) < 0)
		return -ENOMEM;
	if (context.waits.certain.waits || context.waits.possible.waits)
		nrp_kept_waits_fault(d->kept, f->time, f->tid, nrp_worlds_tried(d->worlds));
	return 0;
}

/* What the lanes' scanners and periods need to know of a record that is no fault. */
static int feed_effects(struct feed *d, enum nrp_replay_stream_kind kind, const void *row)
{
	int ret = 0;

	for (int i = 0; ret == 0 && i < 2; i++) {
		if (d->cadence[i] && kind == NRP_STREAM_LIFE)
			ret = nrp_cadence_life(d->cadence[i], row);
		else if (d->cadence[i] && kind == NRP_STREAM_PASS)
			ret = nrp_cadence_pass(d->cadence[i], row);
		if (ret < 0 || !d->effects[i])
			continue;
		if (kind == NRP_STREAM_LIFE)
			ret = nrp_scan_effects_life(d->effects[i], row);
		else if (kind == NRP_STREAM_PASS)
			ret = nrp_scan_effects_pass(d->effects[i], d->worlds, row);
		else if (kind == NRP_STREAM_RANGE)
			ret = nrp_scan_effects_range(d->effects[i], d->worlds, row);
		else if (kind == NRP_STREAM_PAGE_FAULT)
			ret = nrp_scan_effects_page_fault(d->effects[i], row);
	}
	return ret;
}

static int outside(const struct feed *d, struct nrp_error *err)
{
	return nrp_fail(err, NRP_INPUT, -EBADMSG, d->path, -1,
			"import the trace again with --force",
			"capture %s is damaged: it has records outside its time", d->capture->name);
}

/* Far enough ahead for a cache line to arrive. */
#define SOON 6

static void prefetch(const struct feed *d, const struct nrp_replay_stream *stream)
{
	const struct nrp_hint_fault *soon = nrp_replay_stream_ahead(stream, SOON);
	const struct nrp_hint_fault *later = nrp_replay_stream_ahead(stream, 2 * SOON);

	if (!soon || !later)
		return;
	nrp_worlds_prefetch(d->worlds, soon, later);
	for (int i = 0; i < 2; i++)
		if (d->effects[i])
			nrp_scan_effects_prefetch(d->effects[i], soon);
}

static int feed(struct feed *d, struct nrp_replay_stream *stream, struct nrp_error *err)
{
	const uint64_t first = d->capture->first_time, span = d->capture->last_time - first;
	enum nrp_replay_stream_kind kind;
	const void *row;
	int ret;

	while ((ret = nrp_replay_stream_next(stream, &kind, &row, err)) > 0) {
		if (nrp_row_time(row) - first > span)
			return outside(d, err);
		switch (kind) {
		case NRP_STREAM_LIFE:
			ret = nrp_worlds_task_life(d->worlds, row);
			break;
		case NRP_STREAM_MOVE:
			ret = nrp_worlds_task_move(d->worlds, row);
			break;
		case NRP_STREAM_PASS:
			ret = nrp_worlds_scan_pass(d->worlds, row);
			break;
		case NRP_STREAM_RANGE:
			ret = nrp_worlds_scan_range(d->worlds, row);
			break;
		case NRP_STREAM_PAGE_FAULT:
			break;
		case NRP_STREAM_FAULT:
			prefetch(d, stream);
			ret = feed_fault(d, row);
			break;
		}
		if (ret == 0 && kind != NRP_STREAM_FAULT)
			ret = feed_effects(d, kind, row);
		if (ret < 0)
			return nrp_fail_nomem(err);
	}
	return ret;
}

static int keep_rates(struct nrp_replay *r, struct nrp_worlds *worlds,
		      const struct nrp_locality *book)
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
		/* The book numbers address spaces. */
		nrp_worlds_space_count(worlds, (uint32_t)rate.mm, -1, &rate.mm);
		r->rates[r->nr_rates++] = rate;
	}
	return 0;
}

/* What the worlds and the locality book say in the end. */
static int collect(struct nrp_replay *r, struct nrp_worlds *worlds,
		   const struct nrp_kept_waits *kept, const int first[2])
{
	const int nr[2] = { r->lane[0].nr_worlds, r->lane[1].nr_worlds };
	const struct nrp_locality *book = nrp_worlds_locality(worlds);
	int ret = nrp_locality_remote(book, -1, &r->remote);

	r->totals = *nrp_worlds_totals(worlds);
	r->observed.outcome[NRP_FAULT_MOVED_BACK].faults = r->totals.moves_back;
	r->observed.outcome[NRP_FAULT_MOVED_BACK].pages = r->totals.moved_back_pages;
	r->faulters = nrp_worlds_faulters(worlds);
	if (ret == 0)
		ret = nrp_processes_collect(&r->processes, worlds, &r->waits, kept, first, nr);
	for (int i = 0; i < 2; i++) {
		struct nrp_replay_lane *lane = &r->lane[i];

		for (int k = 0; ret == 0 && k < lane->nr_worlds; k++) {
			lane->world[k] = *nrp_worlds_result(worlds, first[i] + k);
			ret = nrp_locality_remote(book, first[i] + k, &lane->remote[k]);
			if (ret == 0)
				ret = nrp_locality_avoided(book, first[i] + k, &lane->avoided[k]);
		}
	}
	return ret < 0 ? ret : keep_rates(r, worlds, book);
}

static int make_effects(struct feed *d, const struct nrp_capture *capture, uint64_t *columns,
			struct nrp_error *err)
{
	int ret = 0;

	for (int i = 0; ret == 0 && i < 2; i++) {
		const struct nrp_replay_lane *lane = &d->r->lane[i];

		if (lane->observed || !nrp_replay_own_scanner(lane))
			continue;
		ret = nrp_scan_effects_new(&d->effects[i], capture,
					   lane->has_scan ? &lane->scan : NULL, d->r->pte_host,
					   lane->pte < 0 ? NULL : &lane->pte_policy, err);
		if (ret == 0 && lane->loses_shmem)
			nrp_scan_effects_lose_shmem(d->effects[i]);
		if (ret == 0)
			nrp_scan_effects_know(d->effects[i], d->r->pte_proofs);
		*columns |= NRP_BIT(hint_fault, vm_start) | NRP_BIT(hint_fault, vm_end) |
			    NRP_BIT(hint_fault, vm_flags) | NRP_BIT(hint_fault, page) |
			    NRP_BIT(hint_fault, mapcount) | NRP_BIT(hint_fault, refcount) |
			    NRP_BIT(hint_fault, mem_nid) | NRP_BIT(hint_fault, attempt_delay);
	}
	return ret;
}

/* For lanes that did not run, if they are to have passes by their own periods. */
static int make_cadences(struct feed *d, struct nrp_store *store, const struct nrp_capture *capture,
			 uint64_t *columns, struct nrp_error *err)
{
	const struct nrp_host_facts *facts = &capture->facts;
	struct nrp_cadence_lane host = nrp_replay_cadence_lane(d->r, NULL, facts);
	int ret = 0;

	for (int i = 0; ret == 0 && i < 2; i++) {
		const struct nrp_replay_lane *lane = &d->r->lane[i];
		struct nrp_cadence_lane own = nrp_replay_cadence_lane(d->r, lane, facts);

		if (lane->observed || lane->off || !lane->spec.modelled_cadence)
			continue;
		if (!d->timeline)
			ret = nrp_scan_timeline_load(&d->timeline, store, capture, &host.tunables,
						     err);
		if (ret == 0)
			ret = nrp_cadence_new(&d->cadence[i], facts, d->timeline, &host, &own, err);
		*columns = ~UINT64_C(0);
	}
	return ret;
}

/* Do page faults say more about a lane? Not if some are lost: what is missing counts, too. */
static bool wants_writes(const struct nrp_replay *r)
{
	return !r->lossy && ((!r->lane[0].observed && r->lane[0].pte >= 0) ||
			     (!r->lane[1].observed && r->lane[1].pte >= 0));
}

int nrp_replay_run_worlds(struct nrp_replay *r, struct nrp_store *store,
			  const struct nrp_capture *capture, bool shared, struct nrp_error *err)
{
	struct nrp_world_config configs[2 * NRP_MAX_LANE_WORLDS];
	struct nrp_ratelimit_start *starts[2] = { NULL, NULL };
	struct feed d = {
		.capture = capture, .path = nrp_store_path(store), .r = r, .host = host_lane(r)
	};
	struct nrp_replay_stream *stream = NULL;
	int first[2] = { -1, -1 }, n = 0, ret = 0;
	uint64_t columns = shared ? NRP_BIT(hint_fault, page) | NRP_BIT(hint_fault, mapcount) |
					    NRP_BIT(hint_fault, vm_start)
				  : 0;

	for (int i = 0; i < 2; i++) {
		if (r->lane[i].observed)
			continue;
		starts[i] =
			calloc((size_t)nr_nodes(r, capture) * NRP_LOW_WORLDS + 1, sizeof(**starts));
		if (!starts[i])
			ret = nrp_fail_nomem(err);
		else
			configure(r, i, capture, configs + n, starts[i]);
		first[i] = d.first[i] = n;
		n += r->lane[i].nr_worlds;
	}
	if (ret == 0 && nrp_kept_waits_new(&d.kept, &r->waits) < 0)
		ret = nrp_fail_nomem(err);
	if (ret == 0)
		ret = make_effects(&d, capture, &columns, err);
	for (int k = 0; ret == 0 && k < n; k++) {
		configs[k].scanner = d.effects[configs[k].lane];
		configs[k].refused_until =
			configs[k].scanner ? nrp_scan_effects_refused_until : NULL;
	}
	if (ret == 0)
		ret = make_cadences(&d, store, capture, &columns, err);
	if (ret == 0)
		ret = nrp_worlds_new(
			&d.worlds, &capture->facts, (enum nrp_filter_variant)r->filter.chosen,
			r->scans.period_max_ms, capture->first_time, shared, configs, n, err);
	if (ret == 0)
		ret = nrp_replay_stream_open(&stream, store, capture->id, columns, wants_writes(r),
					     err);
	if (ret == 0)
		ret = feed(&d, stream, err);
	if (ret == 0 && (nrp_worlds_finish(d.worlds, capture->last_time) < 0 ||
			 collect(r, d.worlds, d.kept, first) < 0))
		ret = nrp_fail_nomem(err);
	for (int i = 0; i < 2; i++) {
		if (ret == 0 && d.effects[i] &&
		    nrp_scan_effects_result(d.effects[i], d.worlds, capture->last_time,
					    &r->lane[i].effects) < 0)
			ret = nrp_fail_nomem(err);
		nrp_scan_effects_free(d.effects[i]);
		if (ret == 0 && d.cadence[i])
			r->lane[i].cadence = nrp_cadence_result(d.cadence[i]);
		nrp_cadence_free(d.cadence[i]);
		free(starts[i]);
	}
	nrp_scan_timeline_free(d.timeline);
	nrp_replay_stream_close(stream);
	nrp_kept_waits_free(d.kept);
	nrp_worlds_free(d.worlds);
	return ret;
}
