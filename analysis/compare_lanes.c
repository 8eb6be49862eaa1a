/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The numbers of one lane: one that ran on the host, one that did not, or balancing off. */
#include "analysis/compare_internal.h"

#include <math.h>
#include <string.h>

/* At least @value, and up to @open more. */
static struct nrp_quantity counted(uint64_t value, uint64_t open, int tier)
{
	return open ? nrp_bounded((double)value, (double)value, (double)(value + open), tier)
		    : nrp_exact((double)value, tier);
}

/* ---- locality ----------------------------------------------------------------------- */

/* The central world's, between the extremes of all worlds. @accesses: else residency. */
static struct nrp_quantity spread_time(const struct nrp_remote *worlds, int n, bool accesses)
{
	const struct nrp_page_time *t = accesses ? &worlds[0].accesses : &worlds[0].residency;
	double low = t->lower, high = t->upper;

	for (int k = 1; k < n; k++) {
		const struct nrp_page_time *u =
			accesses ? &worlds[k].accesses : &worlds[k].residency;

		low = fmin(low, u->lower);
		high = fmax(high, u->upper);
	}
	return nrp_bounded(t->value, low, high, 3);
}

/* Page-seconds; whose users are not seen one by one, modelled. */
static struct nrp_quantity residency(const struct nrp_remote *worlds, int n)
{
	struct nrp_quantity q = spread_time(worlds, n, false);

	for (int k = 0; k < n; k++)
		if (worlds[k].shared > 0)
			q.class = NRP_CLASS_MODELLED;
	return q;
}

/*
 * Touch rates are estimates with sampling error, and a rate of an unwatched node is borrowed: the
 * number is modelled. Where some remote page-time has no rate at all there is no upper bound, and
 * where more than half has none there is no number.
 */
static struct nrp_quantity touches(const struct nrp_remote *worlds, int n)
{
	struct nrp_quantity q = spread_time(worlds, n, true);

	q.class = NRP_CLASS_MODELLED;
	for (int k = 0; k < n; k++) {
		if (worlds[k].uncovered > worlds[k].covered + worlds[k].borrowed)
			return nrp_not_observable(3);
		if (worlds[k].uncovered > 0)
			q.has_upper = false;
	}
	return q;
}

/* ---- the lane that ran on the host -------------------------------------------------- */

/* From begin to end of each pass on record. */
static struct nrp_quantity recorded_scan_time(const struct nrp_scan_bounds *s)
{
	double ns = (double)s->pass_ns;

	if (!s->timed_passes)
		return nrp_not_observable(3);
	return s->open_ns ? nrp_bounded(ns, ns, ns + (double)s->open_ns, 3) : nrp_exact(ns, 3);
}

static void observed_lane(struct nrp_builder *b, int i)
{
	const struct nrp_replay_observed *o = &b->r->observed;
	const struct nrp_scan_count *scans = &b->r->scans.recorded;
	const struct nrp_replay_lane *lane = &b->r->lane[i];
	struct nrp_quantity *q = b->q[i];
	double unknown = (double)b->r->attempts.unknown;
	bool certain = !b->r->attempts.unknown || lane->e0.params.variant == NRP_RATELIMIT_NONE;
	double refused = certain ? (double)o->refused : (double)lane->e0.denied;
	double attempts = (double)o->attempts;

	q[HINT_FAULTS] = nrp_exact((double)o->hint_faults, 3);
	q[HINT_FAULTS_REMOTE] = counted(o->remote_faults, o->unplaced_faults, 3);
	q[HINT_FAULT_PAGES] = nrp_exact((double)o->hint_fault_pages, 3);
	if (scans->passes) {
		q[PTE_UPDATES] = nrp_exact((double)scans->armed_pages, 3);
		q[SCAN_PASSES] = nrp_exact((double)scans->passes, 3);
		q[SCAN_RANGES] = nrp_exact((double)scans->ranges, 3);
	}
	q[MIGRATION_ATTEMPTS] = nrp_exact(attempts, 3);
	q[MIGRATION_ATTEMPT_PAGES] = nrp_exact((double)o->attempt_pages, 3);
	if (certain) {
		q[MIGRATIONS_DENIED] = nrp_exact(refused, 3);
		q[MIGRATIONS_ADMITTED] = nrp_exact(attempts - refused, 3);
		if (nrp_comparison_unexplained(b->r)) {
			/* Any of the failures may have been a refusal. */
			q[MIGRATIONS_DENIED].upper += unknown;
			q[MIGRATIONS_DENIED].class = NRP_CLASS_BOUNDED;
			q[MIGRATIONS_ADMITTED].lower -= unknown;
			q[MIGRATIONS_ADMITTED].class = NRP_CLASS_BOUNDED;
		}
	} else {
		double low = (double)lane->e0.admitted_min, high = (double)lane->e0.admitted_max;

		q[MIGRATIONS_ADMITTED] = nrp_bounded(attempts - refused, low, high, 3);
		q[MIGRATIONS_DENIED] = nrp_bounded(refused, attempts - high, attempts - low, 3);
	}
	q[MIGRATED_PAGES] = counted(o->moved_pages, o->open_pages, 3);
	q[REMOTE_RESIDENCY] = residency(&b->r->remote, 1);
	q[REMOTE_ACCESSES] = touches(&b->r->remote, 1);
	q[SCAN_TIME] = recorded_scan_time(&b->r->scans);
	if (b->r->starved_vmas >= 0)
		q[STARVED_VMAS] = nrp_exact((double)b->r->starved_vmas, 3);
	if (o->has_migration_waits) {
		q[PAGE_MIGRATION_WAITS] = nrp_exact((double)o->migration_waits, 3);
		q[PAGE_MIGRATION_WAIT_NS] = nrp_exact((double)o->migration_wait_ns, 3);
	}
}

/* ---- a lane that did not ------------------------------------------------------------ */

/* The central world's count, between the extremes of all worlds. @offset: of a uint64_t. */
static struct nrp_quantity spread(const struct nrp_replay_lane *lane, size_t offset)
{
	double value = 0, low = INFINITY, high = 0;

	for (int k = 0; k < lane->nr_worlds; k++) {
		uint64_t n;

		memcpy(&n, (const char *)&lane->world[k] + offset, sizeof(n));
		if (k == NRP_WORLD_CENTRAL)
			value = (double)n;
		low = fmin(low, (double)n);
		high = fmax(high, (double)n);
	}
	return nrp_bounded(value, low, high, 3);
}

#define SPREAD(lane, field) spread(lane, offsetof(struct nrp_world_result, field))

/*
 * Other decisions change scan periods, and so how often pages are sampled: passes come at most once
 * per shortest period, and not more rarely than once per longest. A lane with another scanner is
 * asked what it does in the recorded passes (spec scan.md 6: the cadence is the observed one): it
 * has no more of them.
 */
static struct nrp_quantity scaled(double value, double least, double most,
				  const struct nrp_replay_lane *lane,
				  const struct nrp_scan_bounds *s)
{
	double dense = nrp_replay_own_scanner(lane) || !s->recorded.passes
			       ? 1
			       : (double)s->passes_most / (double)s->recorded.passes;

	if (!s->recorded.passes)
		return nrp_at_least(0, 3);
	return nrp_bounded(value, least, ceil(most * dense), 3);
}

/*
 * Each fault in ranges that only the lane arms may block all other threads that were seen. Missing
 * faults are of pages that one single thread maps.
 */
static double extra_waiters(const struct nrp_replay_lane *lane)
{
	uint64_t tasks = lane->has_scan ? lane->effects.tasks : 0;

	return tasks > 1 ? (double)lane->effects.extra_pages * (double)(tasks - 1) : 0;
}

/*
 * Waits for pages that the lane moves, too, and for what is no migration of a hinting fault. Moves
 * that the record does not have may block others: as often as recorded attempts do, at best guess;
 * in a lane with another scanner at most all that may use the page, each as long as the longest
 * wait on record.
 */
static void waits(const struct nrp_builder *b, const struct nrp_replay_lane *lane,
		  struct nrp_quantity *q)
{
	const struct nrp_replay_observed *o = &b->r->observed;
	const struct nrp_world_result *w = lane->world;
	double attempts = o->attempts ? (double)o->attempts : 1;
	double guess = (double)w->new_attempts / attempts;
	struct nrp_quantity n = spread(lane, offsetof(struct nrp_world_result, kept.waits));
	struct nrp_quantity ns = spread(lane, offsetof(struct nrp_world_result, kept.ns));
	double blocked = 0;
	bool new_attempts = false;

	for (int k = 0; k < lane->nr_worlds; k++) {
		new_attempts |= w[k].new_attempts > 0;
		blocked = fmax(blocked, (double)w[k].new_waiters);
		n.upper = fmax(n.upper, (double)w[k].kept.waits + (double)w[k].kept_perhaps.waits);
		ns.upper = fmax(ns.upper, (double)w[k].kept.ns + (double)w[k].kept_perhaps.ns);
	}
	n.value += (double)o->other_waits.waits + guess * (double)o->migration_waits;
	ns.value += (double)o->other_waits.ns + guess * (double)o->migration_wait_ns;
	n.lower += (double)o->other_waits.waits;
	ns.lower += (double)o->other_waits.ns;
	n.upper += (double)o->other_waits.waits + (double)o->unattributed_waits.waits;
	ns.upper += (double)o->other_waits.ns + (double)o->unattributed_waits.ns;
	if (nrp_replay_own_scanner(lane)) {
		blocked += extra_waiters(lane);
		n.upper += blocked;
		ns.upper += blocked * (double)b->r->waits.totals.max_ns;
		ns.has_upper = blocked <= 0 || b->r->waits.totals.max_ns > 0;
	} else {
		n.has_upper = ns.has_upper = !new_attempts;
	}
	q[PAGE_MIGRATION_WAITS] = n;
	q[PAGE_MIGRATION_WAIT_NS] = ns;
}

static struct nrp_quantity as_recorded(double value, double least,
				       const struct nrp_replay_lane *lane,
				       const struct nrp_scan_bounds *s)
{
	return scaled(value, least, value, lane, s);
}

/* ---- another scanner ---------------------------------------------------------------- */

/* The lane whose scanner visits other VMAs than the host's; NULL: neither. */
static const struct nrp_replay_lane *scanning_lane(const struct nrp_replay *r, int i)
{
	return r->lane[i].has_scan ? &r->lane[i] : r->lane[!i].has_scan ? &r->lane[!i] : NULL;
}

static void add_model(struct nrp_quantity *q, double value, double upper)
{
	if (q->class == NRP_CLASS_NOT_OBSERVABLE)
		return;
	q->value += value;
	q->upper += upper;
	q->class = NRP_CLASS_MODELLED;
}

/* Which thread comes to scan which VMA is the scheduler's chance in another run. */
static struct nrp_quantity starved(const struct nrp_replay *r, const struct nrp_replay_lane *lane)
{
	uint64_t n = 0;

	if (!lane->has_scan)
		return r->starved_vmas < 0 ? nrp_not_observable(3)
					   : nrp_bounded((double)r->starved_vmas, 0,
							 (double)r->eligible_vmas, 3);
	for (size_t i = 0; i < lane->scan.nr_vmas; i++)
		n += lane->scan.vma[i].lane.starved;
	return nrp_bounded((double)n, 0, (double)lane->scan.nr_vmas, 3);
}

/* Pages in VMAs that the host's scanner leaves out: never seen on record, a model in both lanes. */
static void add_unseen(const struct nrp_builder *b, int i, struct nrp_quantity *q)
{
	const struct nrp_replay_lane *lane = scanning_lane(b->r, i);
	const struct nrp_scan_effects_result *e;
	bool own;

	if (!lane)
		return;
	e = &lane->effects;
	own = lane == &b->r->lane[i];
	if (!own && !b->r->lane[i].observed)
		return;
	add_model(&q[REMOTE_ACCESSES], own ? e->touches_after : e->touches_before,
		  e->touches_upper);
	add_model(&q[REMOTE_RESIDENCY], own ? e->remote_after : e->remote_before, e->remote_upper);
}

/* What the lane's own ranges say, instead of the record's. */
static void scanned(const struct nrp_builder *b, const struct nrp_replay_lane *lane,
		    struct nrp_quantity *q)
{
	const struct nrp_scan_effects_result *e = &lane->effects;
	const struct nrp_scan_bounds *scans = &b->r->scans;
	double extra = (double)e->extra_pages, moves = (double)e->extra_moves;
	double faults = floor(e->faults + 0.5);
	double kept = (double)lane->world[NRP_WORLD_CENTRAL].hint_faults /
		      (double)b->r->observed.hint_faults;

	q[HINT_FAULTS].value += faults;
	q[HINT_FAULTS].upper += extra;
	q[HINT_FAULTS_REMOTE].value += faults;
	q[HINT_FAULTS_REMOTE].upper = q[HINT_FAULTS].upper;
	q[HINT_FAULT_PAGES].value += faults;
	q[HINT_FAULT_PAGES].upper += extra;
	q[MIGRATION_ATTEMPTS].value += faults;
	q[MIGRATION_ATTEMPT_PAGES].value += faults;
	q[MIGRATIONS_ADMITTED].value += faults;
	q[MIGRATIONS_ADMITTED].upper += moves;
	q[MIGRATED_PAGES].value += faults;
	q[MIGRATED_PAGES].upper += moves;
	q[SCAN_RANGES] =
		nrp_bounded((double)e->ranges, 0, (double)(e->ranges + e->possible_ranges), 3);
	/* An entry is armed again after each fault: as many fewer as there are fewer faults. */
	q[PTE_UPDATES] =
		nrp_bounded(floor((double)scans->recorded.armed_pages * kept + e->armed + 0.5), 0,
			    (double)scans->recorded.armed_pages + extra, 3);
	if (e->faults > 0)
		for (enum nrp_metric_id m = HINT_FAULTS; m <= MIGRATED_PAGES; m++)
			if (q[m].class == NRP_CLASS_BOUNDED)
				q[m].class = NRP_CLASS_MODELLED;
}

/* Another filter of entries: each avoided fault is an entry that was not armed. */
static void filtered(const struct nrp_builder *b, const struct nrp_replay_lane *lane,
		     struct nrp_quantity *q)
{
	double armed = (double)b->r->scans.recorded.armed_pages;
	double avoided = (double)b->r->observed.hint_fault_pages -
			 (double)lane->world[NRP_WORLD_CENTRAL].hint_fault_pages;

	q[PTE_UPDATES].value = fmax(armed - avoided, 0);
	q[PTE_UPDATES].lower = 0;
	if (lane->loses_shmem)
		q[SCAN_RANGES].lower = 0;
}

/*
 * Shared memory that only this lane scans: how much of it is used from other nodes was never seen.
 * What it can add to the rest are ranges of the lane.
 */
static void open_remote(struct nrp_quantity *q)
{
	q[REMOTE_ACCESSES].has_upper = q[REMOTE_RESIDENCY].has_upper = false;
}

/*
 * What passes take beside their ranges stays as it is on record, per pass; ranges and entries cost
 * what they cost on record, on average. Neither the spread of single ranges nor another machine is
 * in the bounds.
 */
static struct nrp_quantity scan_time(const struct nrp_scan_bounds *s, const struct nrp_quantity *q)
{
	const struct nrp_scan_cost_fit *f = &s->cost;
	const struct nrp_quantity *passes = &q[SCAN_PASSES], *ranges = &q[SCAN_RANGES];
	const struct nrp_quantity *entries = &q[PTE_UPDATES];
	double rest = (double)s->pass_ns - f->per_range * (double)s->recorded.ranges -
		      f->per_entry * (double)s->recorded.armed_pages;
	struct nrp_quantity time;

	if (!s->timed_passes || !s->has_cost || !passes->has_value || !ranges->has_value ||
	    !entries->has_value)
		return nrp_not_observable(3);
	/* Passes cut off may have armed more than their time on record explains. */
	rest = fmax(rest, 0) / (double)s->recorded.passes;
	time = nrp_bounded(floor(rest * passes->value + f->per_range * ranges->value +
				 f->per_entry * entries->value + 0.5),
			   floor(rest * passes->lower + f->per_range * ranges->lower +
				 f->per_entry * entries->lower),
			   ceil(rest * passes->upper + f->per_range * ranges->upper +
				f->per_entry * entries->upper),
			   3);
	time.has_upper = passes->has_upper && ranges->has_upper && entries->has_upper;
	time.class = NRP_CLASS_MODELLED;
	return time;
}

static void open(struct nrp_quantity *q)
{
	if (q->class == NRP_CLASS_EXACT)
		q->class = NRP_CLASS_BOUNDED;
	if (q->class != NRP_CLASS_NOT_OBSERVABLE)
		q->has_upper = false;
}

/* Pages may be armed that the record cannot show: nothing of it has an upper bound. */
static void open_scanner(struct nrp_quantity *q, bool limits)
{
	static const enum nrp_metric_id opened[] = { HINT_FAULTS,
						     HINT_FAULTS_REMOTE,
						     PTE_UPDATES,
						     HINT_FAULT_PAGES,
						     MIGRATION_ATTEMPTS,
						     MIGRATIONS_ADMITTED,
						     MIGRATION_ATTEMPT_PAGES,
						     MIGRATED_PAGES,
						     SCAN_RANGES,
						     SCAN_TIME,
						     PAGE_MIGRATION_WAITS,
						     PAGE_MIGRATION_WAIT_NS };

	for (size_t k = 0; k < sizeof(opened) / sizeof(opened[0]); k++)
		open(&q[opened[k]]);
	if (limits)
		open(&q[MIGRATIONS_DENIED]);
}

/*
 * Pages may be armed that the host left alone, in the ranges that it scanned: so many entries as
 * these did not arm, each for one fault. Whatever faults may move its page, and block all others.
 */
static void add_unarmed(const struct nrp_builder *b, const struct nrp_replay_lane *lane,
			struct nrp_quantity *q)
{
	double unarmed = (double)b->r->scans.unarmed;
	double others = lane->effects.tasks > 1 ? (double)(lane->effects.tasks - 1) : 0;
	double max_ns = (double)b->r->waits.totals.max_ns;

	q[HINT_FAULTS].upper += unarmed;
	q[HINT_FAULT_PAGES].upper += unarmed;
	q[PTE_UPDATES].upper += unarmed;
	q[HINT_FAULTS_REMOTE].upper = q[HINT_FAULTS].upper;
	q[MIGRATIONS_ADMITTED].upper = q[HINT_FAULTS].upper;
	q[MIGRATED_PAGES].upper = q[HINT_FAULT_PAGES].upper;
	q[PAGE_MIGRATION_WAITS].upper += q[HINT_FAULTS].upper * others;
	q[PAGE_MIGRATION_WAIT_NS].upper += q[HINT_FAULTS].upper * others * max_ns;
	if (max_ns <= 0)
		open(&q[PAGE_MIGRATION_WAIT_NS]);
}

/* What is armed besides the host's entries is not on record. */
static void add_unobserved(const struct nrp_builder *b, const struct nrp_replay_lane *lane,
			   struct nrp_quantity *q)
{
	if (nrp_unarmed_bounds(b->r, lane))
		add_unarmed(b, lane, q);
	else
		open_scanner(q, lane->e0.params.variant != NRP_RATELIMIT_NONE);
	open(&q[REMOTE_ACCESSES]);
	open(&q[REMOTE_RESIDENCY]);
	q[REMOTE_ACCESSES].lower = q[REMOTE_RESIDENCY].lower = 0;
}

/* ---- tasks and tiers ---------------------------------------------------------------- */

static struct nrp_quantity range_of(uint64_t lower, uint64_t value, uint64_t upper)
{
	return lower == upper ? nrp_exact((double)lower, 3)
			      : nrp_bounded((double)value, (double)lower, (double)upper, 3);
}

/*
 * What walks take of hugetlb pages, and what smaps says of them. Tables are those on record; pages
 * that were mapped before the capture make it a bound.
 */
static void hugetlb(struct nrp_builder *b, int i)
{
	const struct nrp_replay *r = b->r;
	const struct nrp_hugetlb_result *h =
		r->lane[i].own_hugetlb ? &r->lane[i].hugetlb : &r->hugetlb_record;
	const struct {
		enum nrp_metric_id id;
		struct nrp_hugetlb_count n;
	} counts[] = {
		{ HUGETLB_ISOLATED, h->isolated },
		{ HUGETLB_MIGRATED, h->migrated },
	};

	if (r->hugetlb_host < 0)
		return;
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		const struct nrp_hugetlb_count *n = &counts[k].n;

		b->q[i][counts[k].id] = n->lower == n->upper && !h->unknown
						? nrp_exact((double)n->value, 3)
						: nrp_bounded((double)n->value, (double)n->lower,
							      (double)n->upper, 3);
	}
	if (h->unknown || h->surprises)
		return; /* counts of pages that the record does not show are not known */
	b->q[i][SMAPS_PRIVATE] = nrp_exact((double)h->private, 3);
	b->q[i][SMAPS_SHARED] = nrp_exact((double)h->shared, 3);
}

/* Resets, claims and promotions: what the lane's variants make of the recorded steps. */
static void other_families(struct nrp_builder *b, int i)
{
	const struct nrp_replay_lane *lane = &b->r->lane[i];
	const struct nrp_claim_count *c = &b->r->moves.claim;
	int8_t reset = lane->variant[NRP_FAMILY_SCAN_RESET];
	int8_t claim = lane->variant[NRP_FAMILY_TASK_CLAIM];
	struct nrp_quantity *q = b->q[i];

	if (lane->off) {
		q[SCAN_PERIOD_RESETS] = q[TASK_MOVES_SUPPRESSED] = q[TIERING_PROMOTIONS] =
			nrp_exact(0, 3);
		return;
	}
	if (reset >= 0) {
		const struct nrp_reset_count *n = &b->r->moves.reset[reset];

		q[SCAN_PERIOD_RESETS] = range_of(n->lower, n->value, n->upper);
	}
	if (claim >= 0)
		q[TASK_MOVES_SUPPRESSED] =
			claim ? range_of(c->suppressed_lower, c->suppressed_lower,
					 c->suppressed_upper)
			      : nrp_exact(0, 3);
	if (b->r->tiering.nr_lanes == 2) {
		const struct nrp_tiering_lane *t = &b->r->tiering.lane[i];

		q[TIERING_PROMOTIONS] = range_of(t->lower.faults, t->value.faults, t->upper.faults);
	}
}

static void other_lane(struct nrp_builder *b, int i)
{
	const struct nrp_scan_bounds *scans = &b->r->scans;
	const struct nrp_replay_lane *lane = &b->r->lane[i];
	const struct nrp_world_result *w = lane->world;
	double extra = (double)w[NRP_WORLD_CENTRAL].extra_faults_max;
	struct nrp_quantity *q = b->q[i];
	struct nrp_quantity faults = SPREAD(lane, hint_faults);
	struct nrp_quantity pages = SPREAD(lane, hint_fault_pages);

	q[HINT_FAULTS] = scaled(faults.value, faults.lower, faults.upper, lane, scans);
	q[HINT_FAULTS].upper += extra;
	/* None of the faults need be remote; with more passes, all of them may be. */
	q[HINT_FAULTS_REMOTE] = SPREAD(lane, remote_faults);
	q[HINT_FAULTS_REMOTE].lower = 0;
	q[HINT_FAULTS_REMOTE].upper = q[HINT_FAULTS].upper;
	q[HINT_FAULTS_REMOTE].has_upper = q[HINT_FAULTS].has_upper;
	q[HINT_FAULT_PAGES] = scaled(pages.value, pages.lower, pages.upper, lane, scans);
	q[HINT_FAULT_PAGES].upper += extra;
	if (scans->recorded.passes) {
		q[PTE_UPDATES] = as_recorded((double)scans->recorded.armed_pages,
					     (double)scans->least.armed_pages, lane, scans);
		q[PTE_UPDATES].upper += extra;
		q[SCAN_PASSES] = as_recorded((double)scans->recorded.passes,
					     (double)scans->least.passes, lane, scans);
		q[SCAN_RANGES] = as_recorded((double)scans->recorded.ranges,
					     (double)scans->least.ranges, lane, scans);
	}
	/* A refused page tries again at each of its faults: no upper bound for attempts. */
	q[MIGRATION_ATTEMPTS] = SPREAD(lane, attempts);
	q[MIGRATION_ATTEMPTS].has_upper = false;
	q[MIGRATION_ATTEMPT_PAGES] = SPREAD(lane, attempt_pages);
	q[MIGRATION_ATTEMPT_PAGES].has_upper = false;
	q[MIGRATIONS_ADMITTED] = SPREAD(lane, admitted);
	q[MIGRATIONS_DENIED] = SPREAD(lane, denied);
	q[MIGRATIONS_DENIED].has_upper = false;
	if (lane->e0.params.variant == NRP_RATELIMIT_NONE)
		q[MIGRATIONS_DENIED] = nrp_exact(0, 3);
	q[MIGRATED_PAGES] = SPREAD(lane, moved_pages);
	if (b->r->differs[NRP_FAMILY_MIGRATE_FILTER] && !lane->off) {
		/* Another filter offers moves of its own, also at faults that are missing here. */
		q[MIGRATED_PAGES].upper += extra;
		q[MIGRATIONS_ADMITTED].upper += extra;
	}
	if (nrp_replay_own_scanner(lane)) {
		/* A page that a fault of the record does not move is moved by a missing one. */
		q[MIGRATED_PAGES].upper += (double)w[NRP_WORLD_HIGH].extra_moves_max;
		q[MIGRATIONS_ADMITTED].upper += extra;
	}
	q[STARVED_VMAS] = starved(b->r, lane);
	q[REMOTE_RESIDENCY] = residency(lane->remote, lane->nr_worlds);
	q[REMOTE_ACCESSES] = touches(lane->remote, lane->nr_worlds);
	if (b->r->observed.has_migration_waits)
		waits(b, lane, q);
	if (b->r->differs[NRP_FAMILY_MIGRATE_OUTCOME]) {
		/* Huge pages that several processes map move in one generation only. */
		double open = (double)b->r->shared_huge_pages;

		q[MIGRATED_PAGES].lower = fmax(q[MIGRATED_PAGES].lower - open, 0);
		q[MIGRATED_PAGES].upper += open;
	}
	if (lane->pte >= 0 || lane->loses_shmem)
		filtered(b, lane, q);
	if (lane->has_scan)
		scanned(b, lane, q);
	q[SCAN_TIME] = scan_time(scans, q);
	if (lane->gains_shmem)
		open_remote(q);
	if (lane->opens)
		add_unobserved(b, lane, q);
}

/* Balancing off: nothing is scanned, trapped or moved; pages stay where they were found. */
static void off_lane(struct nrp_builder *b, int i)
{
	static const enum nrp_metric_id zero[] = { HINT_FAULTS,
						   HINT_FAULTS_REMOTE,
						   HINT_FAULT_PAGES,
						   PTE_UPDATES,
						   SCAN_PASSES,
						   SCAN_RANGES,
						   SCAN_TIME,
						   MIGRATION_ATTEMPTS,
						   MIGRATION_ATTEMPT_PAGES,
						   MIGRATIONS_ADMITTED,
						   MIGRATIONS_DENIED,
						   MIGRATED_PAGES,
						   PAGE_MIGRATION_WAITS,
						   PAGE_MIGRATION_WAIT_NS,
						   CPU_COST };

	other_lane(b, i);
	for (size_t k = 0; k < sizeof(zero) / sizeof(zero[0]); k++)
		b->q[i][zero[k]] = nrp_exact(0, 3);
	b->q[i][REMOTE_RESIDENCY].class = NRP_CLASS_MODELLED;
	b->q[i][STARVED_VMAS] = nrp_not_observable(3); /* there is no scanner to be left out by */
}

/* Lost events may hold more of everything, and moves that change where pages were. */
static void open_upwards(struct nrp_quantity *q, bool limits)
{
	q[REMOTE_RESIDENCY].lower = q[REMOTE_ACCESSES].lower = 0;
	for (int m = 0; m < NRP_NR_METRICS; m++) {
		/* Without a limiter nothing is refused, seen or not. */
		if (m == MIGRATIONS_DENIED && !limits)
			continue;
		if (q[m].class == NRP_CLASS_EXACT)
			q[m].class = NRP_CLASS_BOUNDED;
		q[m].has_upper = false;
	}
}

/*
 * Faults of unknown pages or nodes. Their pages are taken to be seen for as long as the others, and
 * may all be remote; how often they are touched is not known.
 */
static void open_untracked(const struct nrp_replay *r, bool off, struct nrp_quantity *q)
{
	double share = nrp_comparison_untracked(r), most = NRP_UNTRACKED_MOST;
	struct nrp_quantity *residency = &q[REMOTE_RESIDENCY];

	if (!off && (double)r->observed.unplaced_faults > most * (double)r->observed.hint_faults)
		q[HINT_FAULTS_REMOTE] = nrp_not_observable(3);
	if (share > most) {
		*residency = q[REMOTE_ACCESSES] = nrp_not_observable(3);
	} else if (share > NRP_UNTRACKED_LIMIT) {
		q[REMOTE_ACCESSES].has_upper = false;
		residency->upper += r->totals.page_seconds * share / (1 - share);
		if (residency->class == NRP_CLASS_EXACT)
			residency->class = NRP_CLASS_BOUNDED;
	}
}

void nrp_build_lane(struct nrp_builder *b, int i)
{
	const struct nrp_replay_lane *lane = &b->r->lane[i];

	for (int m = 0; m < NRP_NR_METRICS; m++)
		b->q[i][m] = nrp_not_observable(3);
	if (lane->off)
		off_lane(b, i);
	else if (lane->observed)
		observed_lane(b, i);
	else
		other_lane(b, i);
	other_families(b, i);
	nrp_build_locks(b, i);
	hugetlb(b, i);
	add_unseen(b, i, b->q[i]);
	nrp_apply_cadence(b, i);
	open_untracked(b->r, lane->off, b->q[i]);
	if (b->r->lossy && !lane->off)
		open_upwards(b->q[i], lane->e0.params.variant != NRP_RATELIMIT_NONE);
}

/* ---- a side file of remote loads ---------------------------------------------------- */

static struct nrp_quantity times(const struct nrp_quantity *q, double factor)
{
	struct nrp_quantity n = *q;

	n.value *= factor;
	n.lower *= factor;
	n.upper *= factor;
	return n;
}

/*
 * Loads that the side file counted belong to the lane that ran; in another lane there are as many
 * more or fewer as there are touches.
 */
static void calibrate(struct nrp_builder *b)
{
	const struct nrp_replay *r = b->r;
	double touched = r->remote.accesses.value;

	if (r->remote_loads < 0 || touched <= 0)
		return;
	for (int i = 0; i < 2; i++) {
		struct nrp_quantity *q = &b->q[i][REMOTE_ACCESSES];

		if (q->class == NRP_CLASS_NOT_OBSERVABLE)
			continue;
		b->q[i][REMOTE_LOADS] = times(q, r->remote_loads / touched);
		if (r->lane[i].observed) {
			b->q[i][REMOTE_LOADS] = nrp_exact(r->remote_loads, 0);
			if (!r->loads_counted)
				b->q[i][REMOTE_LOADS].class = NRP_CLASS_MODELLED;
		}
	}
	if (b->paired[REMOTE_ACCESSES]) {
		b->avoided[REMOTE_LOADS] =
			times(&b->avoided[REMOTE_ACCESSES], r->remote_loads / touched);
		b->paired[REMOTE_LOADS] = true;
	}
}

/* ---- world against record ----------------------------------------------------------- */

static struct nrp_quantity negative(const struct nrp_quantity *q)
{
	struct nrp_quantity n = *q;

	n.value = -q->value;
	n.lower = -q->upper;
	n.has_lower = q->has_upper;
	n.upper = -q->lower;
	n.has_upper = q->has_lower;
	return n;
}

/* Of a lane without upper bounds: no more is avoided than there is on record. */
static void open_avoided(struct nrp_quantity *avoided, const struct nrp_quantity *record)
{
	avoided->has_lower = false;
	avoided->has_upper = record->has_upper;
	avoided->upper = record->upper;
}

void nrp_build_pairs(struct nrp_builder *b)
{
	const struct nrp_replay *r = b->r;
	int other = r->lane[0].observed ? 1 : 0;
	const struct nrp_replay_lane *lane = &r->lane[other];

	nrp_pair_locks(b);
	if (lane->observed || !r->lane[!other].observed || r->lossy ||
	    nrp_comparison_untracked(r) > NRP_UNTRACKED_LIMIT) {
		calibrate(b);
		return;
	}
	b->avoided[REMOTE_RESIDENCY] = residency(lane->avoided, lane->nr_worlds);
	if (lane->off)
		b->avoided[REMOTE_RESIDENCY].class = NRP_CLASS_MODELLED;
	b->avoided[REMOTE_ACCESSES] = touches(lane->avoided, lane->nr_worlds);
	if (lane->has_scan) {
		const struct nrp_scan_effects_result *e = &lane->effects;

		add_model(&b->avoided[REMOTE_ACCESSES], e->touches_before - e->touches_after,
			  e->touches_upper);
		add_model(&b->avoided[REMOTE_RESIDENCY], e->remote_before - e->remote_after,
			  e->remote_upper);
	}
	if (lane->opens || lane->gains_shmem) {
		open_avoided(&b->avoided[REMOTE_ACCESSES], &b->q[!other][REMOTE_ACCESSES]);
		open_avoided(&b->avoided[REMOTE_RESIDENCY], &b->q[!other][REMOTE_RESIDENCY]);
	}
	b->paired[REMOTE_RESIDENCY] = true;
	b->paired[REMOTE_ACCESSES] = b->q[0][REMOTE_ACCESSES].class != NRP_CLASS_NOT_OBSERVABLE &&
				     b->q[1][REMOTE_ACCESSES].class != NRP_CLASS_NOT_OBSERVABLE;
	for (int m = 0; other == 0 && m < NRP_NR_METRICS; m++)
		if (b->paired[m] && m != SCAN_LOCK_DELAY && m != SCAN_LOCK_ACCESSES)
			b->avoided[m] = negative(&b->avoided[m]);
	calibrate(b);
}
