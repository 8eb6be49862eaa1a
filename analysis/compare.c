/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/compare.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *nrp_class_name(enum nrp_class class)
{
	static const char *const names[] = { "exact", "bounded", "modelled", "not_observable" };

	return names[class];
}

static struct nrp_quantity exact(double value, int tier)
{
	return (struct nrp_quantity){ .value = value,
				      .lower = value,
				      .upper = value,
				      .has_value = true,
				      .has_lower = true,
				      .has_upper = true,
				      .class = NRP_CLASS_EXACT,
				      .tier = tier };
}

static struct nrp_quantity bounded(double value, double lower, double upper, int tier)
{
	if (value < lower)
		lower = value;
	if (value > upper)
		upper = value;
	return (struct nrp_quantity){ .value = value,
				      .lower = lower,
				      .upper = upper,
				      .has_value = true,
				      .has_lower = true,
				      .has_upper = true,
				      .class = NRP_CLASS_BOUNDED,
				      .tier = tier };
}

/* At least @value, and up to @open more. */
static struct nrp_quantity counted(uint64_t value, uint64_t open, int tier)
{
	return open ? bounded((double)value, (double)value, (double)(value + open), tier)
		    : exact((double)value, tier);
}

static struct nrp_quantity at_least(double lower, int tier)
{
	return (struct nrp_quantity){
		.lower = lower, .has_lower = true, .class = NRP_CLASS_BOUNDED, .tier = tier
	};
}

static struct nrp_quantity not_observable(int tier)
{
	return (struct nrp_quantity){ .class = NRP_CLASS_NOT_OBSERVABLE, .tier = tier };
}

/* ---- metrics ------------------------------------------------------------------------ */

enum metric {
	HINT_FAULTS,
	HINT_FAULTS_REMOTE,
	PTE_UPDATES,
	HINT_FAULT_PAGES,
	MIGRATION_ATTEMPTS,
	MIGRATIONS_ADMITTED,
	MIGRATIONS_DENIED,
	MIGRATION_ATTEMPT_PAGES,
	MIGRATED_PAGES,
	REMOTE_ACCESSES,
	REMOTE_RESIDENCY,
	SCAN_PASSES,
	SCAN_RANGES,
	SCANS_LOCK_SKIPPED,
	STARVED_VMAS,
	CPU_COST,
	PAGE_MIGRATION_WAITS,
	PAGE_MIGRATION_WAIT_NS,
	LOCK_WAIT_FAULTS_NS,
	LOCK_WAIT_FAULTS_OVER,
	LOCK_WAIT_READERS_NS,
	LOCK_WAIT_READERS_OVER,
	LOCK_WAIT_WRITERS_NS,
	LOCK_WAIT_WRITERS_OVER,
	LOCK_WAIT_MUNMAP_NS,
	LOCK_WAIT_MUNMAP_OVER,
	HUGETLB_ISOLATED,
	HUGETLB_MIGRATED,
	SMAPS_PRIVATE,
	SMAPS_SHARED,
	NR_METRICS
};

#define NUMA                                                                                       \
	(UINT32_C(1) << NRP_FAMILY_SCAN_VMA | UINT32_C(1) << NRP_FAMILY_SCAN_PTE |                 \
	 UINT32_C(1) << NRP_FAMILY_SCAN_SHMEM | UINT32_C(1) << NRP_FAMILY_SCAN_RESET |             \
	 UINT32_C(1) << NRP_FAMILY_MIGRATE_FILTER | UINT32_C(1) << NRP_FAMILY_MIGRATE_RATELIMIT)
#define LOCK (UINT32_C(1) << NRP_FAMILY_MUNMAP_LOCK)
#define HUGETLB (UINT32_C(1) << NRP_FAMILY_HUGETLB_COUNT)

/* Name, unit, and the families that can move it. */
static const struct {
	const char *name, *unit;
	uint32_t families;
} metrics[NR_METRICS] = {
	[HINT_FAULTS] = { "hint_faults", "faults", NUMA },
	[HINT_FAULTS_REMOTE] = { "hint_faults_remote", "faults", NUMA },
	[PTE_UPDATES] = { "pte_updates", "pages", NUMA },
	[HINT_FAULT_PAGES] = { "hint_fault_pages", "pages", NUMA },
	[MIGRATION_ATTEMPTS] = { "migration_attempts", "attempts", NUMA },
	[MIGRATIONS_ADMITTED] = { "migrations_admitted", "attempts", NUMA },
	[MIGRATIONS_DENIED] = { "migrations_denied", "attempts", NUMA },
	[MIGRATION_ATTEMPT_PAGES] = { "migration_attempt_pages", "pages", NUMA },
	[MIGRATED_PAGES] = { "migrated_pages", "pages", NUMA },
	[REMOTE_ACCESSES] = { "remote_accesses", "touches", NUMA },
	[REMOTE_RESIDENCY] = { "remote_residency", "page-seconds", NUMA },
	[SCAN_PASSES] = { "scan_passes", "passes", NUMA },
	[SCAN_RANGES] = { "scan_ranges", "ranges", NUMA },
	[SCANS_LOCK_SKIPPED] = { "scans_lock_skipped", "passes", NUMA | LOCK },
	[STARVED_VMAS] = { "starved_vmas", "VMAs", NUMA },
	[CPU_COST] = { "cpu_cost", "seconds", NUMA },
	[PAGE_MIGRATION_WAITS] = { "page_migration_waits", "waits", NUMA },
	[PAGE_MIGRATION_WAIT_NS] = { "page_migration_wait_ns", "ns", NUMA },
	[LOCK_WAIT_FAULTS_NS] = { "lock_wait_faults_ns", "ns", LOCK },
	[LOCK_WAIT_FAULTS_OVER] = { "lock_wait_faults_over_2ms", "waits", LOCK },
	[LOCK_WAIT_READERS_NS] = { "lock_wait_readers_ns", "ns", LOCK },
	[LOCK_WAIT_READERS_OVER] = { "lock_wait_readers_over_2ms", "waits", LOCK },
	[LOCK_WAIT_WRITERS_NS] = { "lock_wait_writers_ns", "ns", LOCK },
	[LOCK_WAIT_WRITERS_OVER] = { "lock_wait_writers_over_2ms", "waits", LOCK },
	[LOCK_WAIT_MUNMAP_NS] = { "lock_wait_munmap_ns", "ns", LOCK },
	[LOCK_WAIT_MUNMAP_OVER] = { "lock_wait_munmap_over_2ms", "waits", LOCK },
	[HUGETLB_ISOLATED] = { "hugetlb_isolated", "huge pages", HUGETLB },
	[HUGETLB_MIGRATED] = { "hugetlb_migrated", "huge pages", HUGETLB },
	[SMAPS_PRIVATE] = { "smaps_private_hugetlb_bytes", "bytes", HUGETLB },
	[SMAPS_SHARED] = { "smaps_shared_hugetlb_bytes", "bytes", HUGETLB },
};

struct builder {
	const struct nrp_replay *r;
	struct nrp_quantity q[2][NR_METRICS];
};

static double min2(double a, double b)
{
	return a < b ? a : b;
}

static double max2(double a, double b)
{
	return a > b ? a : b;
}

/* ---- the lane that ran on the host -------------------------------------------------- */

static void observed_lane(struct builder *b, int i)
{
	const struct nrp_replay_observed *o = &b->r->observed;
	const struct nrp_scan_count *scans = &b->r->scans.recorded;
	const struct nrp_replay_lane *lane = &b->r->lane[i];
	const struct nrp_worlds_totals *t = &b->r->totals;
	struct nrp_quantity *q = b->q[i];
	double unknown = (double)b->r->attempts.unknown;
	bool certain = !b->r->attempts.unknown || lane->e0.params.variant == NRP_RATELIMIT_NONE;
	double refused = certain ? (double)o->refused : (double)lane->e0.denied;
	double attempts = (double)o->attempts;

	q[HINT_FAULTS] = exact((double)o->hint_faults, 3);
	q[HINT_FAULTS_REMOTE] = counted(o->remote_faults, o->unplaced_faults, 3);
	q[HINT_FAULT_PAGES] = exact((double)o->hint_fault_pages, 3);
	if (scans->passes) {
		q[PTE_UPDATES] = exact((double)scans->armed_pages, 3);
		q[SCAN_PASSES] = exact((double)scans->passes, 3);
		q[SCAN_RANGES] = exact((double)scans->ranges, 3);
	}
	q[MIGRATION_ATTEMPTS] = exact(attempts, 3);
	q[MIGRATION_ATTEMPT_PAGES] = exact((double)o->attempt_pages, 3);
	if (certain) {
		q[MIGRATIONS_DENIED] = exact(refused, 3);
		q[MIGRATIONS_ADMITTED] = exact(attempts - refused, 3);
		if (nrp_comparison_unexplained(b->r)) {
			/* Any of the failures may have been a refusal. */
			q[MIGRATIONS_DENIED].upper += unknown;
			q[MIGRATIONS_DENIED].class = NRP_CLASS_BOUNDED;
			q[MIGRATIONS_ADMITTED].lower -= unknown;
			q[MIGRATIONS_ADMITTED].class = NRP_CLASS_BOUNDED;
		}
	} else {
		double low = (double)lane->e0.admitted_min, high = (double)lane->e0.admitted_max;

		q[MIGRATIONS_ADMITTED] = bounded(attempts - refused, low, high, 3);
		q[MIGRATIONS_DENIED] = bounded(refused, attempts - high, attempts - low, 3);
	}
	q[MIGRATED_PAGES] = counted(o->moved_pages, o->open_pages, 3);
	q[REMOTE_RESIDENCY] =
		bounded(t->observed_remote_previous,
			min2(t->observed_remote_previous, t->observed_remote_next),
			max2(t->observed_remote_previous, t->observed_remote_next), 3);
	if (o->has_migration_waits) {
		q[PAGE_MIGRATION_WAITS] = exact((double)o->migration_waits, 3);
		q[PAGE_MIGRATION_WAIT_NS] = exact((double)o->migration_wait_ns, 3);
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
		low = min2(low, (double)n);
		high = max2(high, (double)n);
	}
	return bounded(value, low, high, 3);
}

#define SPREAD(lane, field) spread(lane, offsetof(struct nrp_world_result, field))

/*
 * Other decisions change scan periods, and so how often pages are sampled: passes come at most once
 * per shortest period, and not more rarely than once per longest.
 */
static struct nrp_quantity scaled(double value, double least, const struct nrp_scan_bounds *s)
{
	if (!s->recorded.passes)
		return at_least(0, 3);
	return bounded(value, least,
		       ceil(value * (double)s->passes_most / (double)s->recorded.passes), 3);
}

static void other_lane(struct builder *b, int i)
{
	const struct nrp_scan_bounds *scans = &b->r->scans;
	const struct nrp_replay_lane *lane = &b->r->lane[i];
	const struct nrp_world_result *w = lane->world;
	double extra = (double)w[NRP_WORLD_CENTRAL].extra_faults_max, low = INFINITY, high = 0;
	struct nrp_quantity *q = b->q[i];

	q[HINT_FAULTS] = scaled((double)w[NRP_WORLD_CENTRAL].hint_faults,
				SPREAD(lane, hint_faults).lower, scans);
	q[HINT_FAULTS].upper += extra;
	/* None of the faults need be remote; with more passes, all of them may be. */
	q[HINT_FAULTS_REMOTE] = SPREAD(lane, remote_faults);
	q[HINT_FAULTS_REMOTE].lower = 0;
	q[HINT_FAULTS_REMOTE].upper = q[HINT_FAULTS].upper;
	q[HINT_FAULTS_REMOTE].has_upper = q[HINT_FAULTS].has_upper;
	q[HINT_FAULT_PAGES] = scaled((double)w[NRP_WORLD_CENTRAL].hint_fault_pages,
				     SPREAD(lane, hint_fault_pages).lower, scans);
	q[HINT_FAULT_PAGES].upper += extra;
	if (scans->recorded.passes) {
		q[PTE_UPDATES] = scaled((double)scans->recorded.armed_pages,
					(double)scans->least.armed_pages, scans);
		q[PTE_UPDATES].upper += extra;
		q[SCAN_PASSES] =
			scaled((double)scans->recorded.passes, (double)scans->least.passes, scans);
		q[SCAN_RANGES] =
			scaled((double)scans->recorded.ranges, (double)scans->least.ranges, scans);
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
		q[MIGRATIONS_DENIED] = exact(0, 3);
	q[MIGRATED_PAGES] = SPREAD(lane, moved_pages);
	for (int k = 0; k < lane->nr_worlds; k++) {
		low = min2(low, min2(w[k].remote_seconds_previous, w[k].remote_seconds_next));
		high = max2(high, max2(w[k].remote_seconds_previous, w[k].remote_seconds_next));
	}
	q[REMOTE_RESIDENCY] = bounded(w[NRP_WORLD_CENTRAL].remote_seconds_previous, low, high, 3);
	if (b->r->observed.has_migration_waits) {
		q[PAGE_MIGRATION_WAITS] = at_least(0, 3);
		q[PAGE_MIGRATION_WAIT_NS] = at_least(0, 3);
	}
}

/* Balancing off: nothing is scanned, trapped or moved; pages stay where they were found. */
static void off_lane(struct builder *b, int i)
{
	static const enum metric zero[] = { HINT_FAULTS,
					    HINT_FAULTS_REMOTE,
					    HINT_FAULT_PAGES,
					    PTE_UPDATES,
					    SCAN_PASSES,
					    SCAN_RANGES,
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
		b->q[i][zero[k]] = exact(0, 3);
	b->q[i][REMOTE_RESIDENCY].class = NRP_CLASS_MODELLED;
}

/* Lost events may hold more of everything, and moves that change where pages were. */
static void open_upwards(struct nrp_quantity *q, bool limits)
{
	q[REMOTE_RESIDENCY].lower = 0;
	for (int m = 0; m < NR_METRICS; m++) {
		/* Without a limiter nothing is refused, seen or not. */
		if (m == MIGRATIONS_DENIED && !limits)
			continue;
		if (q[m].class == NRP_CLASS_EXACT)
			q[m].class = NRP_CLASS_BOUNDED;
		q[m].has_upper = false;
	}
}

/* ---- old against new ---------------------------------------------------------------- */

static struct nrp_quantity difference(const struct nrp_quantity *a, const struct nrp_quantity *b)
{
	struct nrp_quantity d = { .tier = a->tier < b->tier ? a->tier : b->tier };

	if (a->class == NRP_CLASS_NOT_OBSERVABLE || b->class == NRP_CLASS_NOT_OBSERVABLE)
		return not_observable(d.tier);
	d.class = a->class > b->class ? a->class : b->class;
	d.has_value = a->has_value && b->has_value;
	d.value = d.has_value ? a->value - b->value : 0;
	d.has_lower = a->has_lower && b->has_upper;
	d.lower = d.has_lower ? a->lower - b->upper : 0;
	d.has_upper = a->has_upper && b->has_lower;
	d.upper = d.has_upper ? a->upper - b->lower : 0;
	return d;
}

/* Families in which the lanes differ; balancing off touches every NUMA family. */
static uint32_t differing(const struct nrp_replay *r)
{
	uint32_t families = r->off_differs ? NUMA : 0;

	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		families |= (uint32_t)r->differs[f] << f;
	return families;
}

static bool replayed(int family)
{
	return nrp_family((enum nrp_family_id)family)->replayed;
}

/* A lane with a variant that is not the host's and that this version does not replay. */
static uint32_t not_replayed(const struct nrp_replay *r)
{
	uint32_t families = 0;

	/* Off runs no policy: only the other side's must be known. */
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		if (r->differs[f] && !replayed(f) && !(r->lane[0].off && r->lane[1].observed) &&
		    !(r->lane[1].off && r->lane[0].observed))
			families |= UINT32_C(1) << f;
	return families;
}

static void put(struct nrp_comparison *c, const struct builder *b, enum metric m)
{
	const struct nrp_replay *r = b->r;
	struct nrp_metric *out = &c->metric[c->nr_metrics++];
	uint32_t moved_by = differing(r) & metrics[m].families;

	snprintf(out->name, sizeof(out->name), "%s", metrics[m].name);
	snprintf(out->unit, sizeof(out->unit), "%s", metrics[m].unit);
	out->old_lane = b->q[0][m];
	out->new_lane = b->q[1][m];
	if (not_replayed(r) & metrics[m].families) {
		/* The host's own side keeps its numbers, and off has its zeros. */
		if (!r->lane[0].observed && !r->lane[0].off)
			out->old_lane = not_observable(3);
		if (!r->lane[1].off)
			out->new_lane = not_observable(3);
		out->avoided = difference(&out->old_lane, &out->new_lane);
		return;
	}
	if (r->identical || !moved_by) {
		out->new_lane = out->old_lane;
		out->avoided = exact(0, 3);
		return;
	}
	out->avoided = difference(&out->old_lane, &out->new_lane);
}

static json_t *lane_variants(const struct nrp_replay_lane *lane)
{
	json_t *o = json_object();

	for (int f = 0; o && f < NRP_NR_FAMILIES; f++) {
		const struct nrp_family *family = nrp_family((enum nrp_family_id)f);
		int8_t v = lane->variant[f];

		json_object_set_new(o, family->name,
				    json_string(lane->off               ? "off"
						: v == NRP_HOST_VARIANT ? "host"
									: family->variant[v].name));
	}
	return o;
}

static json_t *lane_set(const struct nrp_replay_lane *lane, uint64_t hz)
{
	const struct nrp_ratelimit_params *p = &lane->e0.params;
	json_t *o = json_object();

	if (o && p->variant != NRP_RATELIMIT_NONE && !lane->off) {
		json_object_set_new(o, "migrate.ratelimit.quota",
				    json_integer((json_int_t)p->quota));
		json_object_set_new(
			o, "migrate.ratelimit.interval",
			json_integer((json_int_t)nrp_lane_get(
				&lane->spec, NRP_FAMILY_MIGRATE_RATELIMIT, "interval", 100)));
	}
	if (o)
		json_object_set_new(o, "hz", json_integer((json_int_t)hz));
	return o;
}

int nrp_comparison_build(struct nrp_comparison *ret, const struct nrp_replay *r,
			 const struct nrp_capture *capture, const struct nrp_verify *verify,
			 struct nrp_error *err)
{
	struct nrp_comparison c = { .capture_id = capture->id };
	struct builder b = { .r = r };

	snprintf(c.capture, sizeof(c.capture), "%s", capture->name);
	for (int i = 0; i < 2; i++) {
		snprintf(c.name[i], sizeof(c.name[i]), "%s", r->lane[i].spec.name);
		c.variants[i] = lane_variants(&r->lane[i]);
		c.set[i] = lane_set(&r->lane[i], r->hz);
		if (!c.variants[i] || !c.set[i]) {
			nrp_comparison_clear(&c);
			return nrp_fail_nomem(err);
		}
		for (int m = 0; m < NR_METRICS; m++)
			b.q[i][m] = not_observable(3);
		if (r->lane[i].off)
			off_lane(&b, i);
		else if (r->lane[i].observed)
			observed_lane(&b, i);
		else
			other_lane(&b, i);
		if (r->lossy && !r->lane[i].off)
			open_upwards(b.q[i], r->lane[i].e0.params.variant != NRP_RATELIMIT_NONE);
	}
	for (int m = 0; m < NR_METRICS; m++)
		put(&c, &b, (enum metric)m);
	nrp_comparison_add_notes(&c, r, capture, verify);
	*ret = c;
	return 0;
}

void nrp_comparison_clear(struct nrp_comparison *c)
{
	for (int i = 0; i < 2; i++) {
		json_decref(c->variants[i]);
		json_decref(c->set[i]);
	}
	for (size_t i = 0; i < c->nr_notes; i++)
		json_decref(c->note[i].detail);
	memset(c, 0, sizeof(*c));
}

const struct nrp_metric *nrp_comparison_metric(const struct nrp_comparison *c, const char *name)
{
	for (size_t i = 0; i < c->nr_metrics; i++)
		if (!strcmp(c->metric[i].name, name))
			return &c->metric[i];
	return NULL;
}

void nrp_comparison_note(struct nrp_comparison *c, const char *code, json_t *detail,
			 const char *fmt, ...)
{
	struct nrp_note *n = &c->note[c->nr_notes];
	va_list ap;

	if (c->nr_notes == NRP_MAX_NOTES) {
		json_decref(detail);
		return;
	}
	snprintf(n->code, sizeof(n->code), "%s", code);
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
	n->detail = detail;
	c->nr_notes++;
}
