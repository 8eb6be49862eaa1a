/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/compare_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *nrp_class_name(enum nrp_class class)
{
	static const char *const names[] = { "exact", "bounded", "modelled", "not_observable" };

	return names[class];
}

/* ---- metrics ------------------------------------------------------------------------ */

#define BIT(family) (UINT32_C(1) << NRP_FAMILY_##family)
#define NUMA                                                                                       \
	(BIT(SCAN_VMA) | BIT(SCAN_PTE) | BIT(SCAN_SHMEM) | BIT(SCAN_PERIOD) | BIT(SCAN_RESET) |    \
	 BIT(MIGRATE_FILTER) | BIT(MIGRATE_RATELIMIT) | BIT(TIERING_PROMOTE) | BIT(TASK_CLAIM) |   \
	 BIT(MIGRATE_OUTCOME))
#define LOCK BIT(MUNMAP_LOCK)
#define HUGETLB BIT(HUGETLB_COUNT)

/* Name, unit, and the families that can move it. */
static const struct {
	const char *name, *unit;
	uint32_t families;
} metrics[NRP_NR_METRICS] = {
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
	[REMOTE_LOADS] = { "remote_loads", "loads", NUMA },
	[REMOTE_RESIDENCY] = { "remote_residency", "page-seconds", NUMA },
	[SCAN_PASSES] = { "scan_passes", "passes", NUMA },
	[SCAN_RANGES] = { "scan_ranges", "ranges", NUMA },
	[SCAN_TIME] = { "scan_time", "ns", NUMA },
	[SCANS_LOCK_SKIPPED] = { "scans_lock_skipped", "passes", NUMA | LOCK },
	[SCAN_LOCK_DELAY] = { "scan_lock_delay", "page-seconds", NUMA | LOCK },
	[SCAN_LOCK_ACCESSES] = { "scan_lock_delay_accesses", "touches", NUMA | LOCK },
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
	[SCAN_PERIOD_RESETS] = { "scan_period_resets", "resets", BIT(SCAN_RESET) },
	[TASK_MOVES_SUPPRESSED] = { "task_moves_suppressed", "moves", BIT(TASK_CLAIM) },
	[TIERING_PROMOTIONS] = { "tiering_promotions", "faults", BIT(TIERING_PROMOTE) },
	[SMAPS_SHARED] = { "smaps_shared_hugetlb_bytes", "bytes", HUGETLB },
};

/* ---- old against new ---------------------------------------------------------------- */

static struct nrp_quantity difference(const struct nrp_quantity *a, const struct nrp_quantity *b)
{
	struct nrp_quantity d = { .tier = a->tier < b->tier ? a->tier : b->tier };

	if (a->class == NRP_CLASS_NOT_OBSERVABLE || b->class == NRP_CLASS_NOT_OBSERVABLE)
		return nrp_not_observable(d.tier);
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
	/* Limiters that refuse nothing here are the same. */
	return r->identical ? families & ~BIT(MIGRATE_RATELIMIT) : families;
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
		if (r->differs[f] && (!replayed(f) || r->unknown[f]) &&
		    !(r->lane[0].off && r->lane[1].observed) &&
		    !(r->lane[1].off && r->lane[0].observed))
			families |= UINT32_C(1) << f;
	return families;
}

/* A lane whose feedback cannot be followed has no numbers of its own. */
static bool withheld(const struct nrp_replay *r, int i)
{
	const struct nrp_replay_lane *lane = &r->lane[i];

	return !lane->observed && !lane->off &&
	       (nrp_comparison_withheld(r, i) || nrp_comparison_short_histories(r));
}

/* 0, not -0. */
static void normalise(struct nrp_quantity *q)
{
	q->value += 0.0;
	q->lower += 0.0;
	q->upper += 0.0;
}

static void fill(struct nrp_metric *out, const struct nrp_builder *b, enum nrp_metric_id m)
{
	const struct nrp_replay *r = b->r;
	uint32_t moved_by = differing(r) & metrics[m].families;

	out->old_lane = b->q[0][m];
	out->new_lane = b->q[1][m];
	if (not_replayed(r) & metrics[m].families) {
		/* The host's own side keeps its numbers, and off has its zeros. */
		if (!r->lane[0].observed && !r->lane[0].off)
			out->old_lane = nrp_not_observable(3);
		if (!r->lane[1].off)
			out->new_lane = nrp_not_observable(3);
		out->avoided = difference(&out->old_lane, &out->new_lane);
		return;
	}
	if (!moved_by) {
		out->new_lane = out->old_lane;
		out->avoided = nrp_exact(0, 3);
		return;
	}
	if (withheld(r, 0) || withheld(r, 1)) {
		for (int i = 0; i < 2; i++)
			if (withheld(r, i))
				*(i ? &out->new_lane : &out->old_lane) = nrp_not_observable(3);
		out->avoided = nrp_not_observable(3);
		return;
	}
	out->avoided = b->paired[m] ? b->avoided[m] : difference(&out->old_lane, &out->new_lane);
}

static void put(struct nrp_comparison *c, const struct nrp_builder *b, enum nrp_metric_id m)
{
	struct nrp_metric *out = &c->metric[c->nr_metrics++];

	snprintf(out->name, sizeof(out->name), "%s", metrics[m].name);
	snprintf(out->unit, sizeof(out->unit), "%s", metrics[m].unit);
	fill(out, b, m);
	normalise(&out->old_lane);
	normalise(&out->new_lane);
	normalise(&out->avoided);
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
	for (size_t k = 0; o && k < lane->spec.nr_set; k++) {
		const struct nrp_setting *s = &lane->spec.set[k];
		char key[80];

		if (s->family < 0) {
			if (strcmp(s->name, "hz") != 0)
				json_object_set_new(o, s->name, json_integer((json_int_t)s->value));
			continue;
		}
		snprintf(key, sizeof(key), "%s.%s", nrp_family((enum nrp_family_id)s->family)->name,
			 s->name);
		json_object_set_new(o, key, json_integer((json_int_t)s->value));
	}
	if (o && lane->spec.modelled_cadence)
		json_object_set_new(o, "cadence", json_string("modelled"));
	if (o)
		json_object_set_new(o, "hz", json_integer((json_int_t)hz));
	return o;
}

int nrp_comparison_build(struct nrp_comparison *ret, const struct nrp_replay *r,
			 const struct nrp_capture *capture, const struct nrp_verify *verify,
			 struct nrp_error *err)
{
	struct nrp_comparison c = { .capture_id = capture->id };
	struct nrp_builder b = { .r = r };

	snprintf(c.capture, sizeof(c.capture), "%s", capture->name);
	for (int i = 0; i < 2; i++) {
		snprintf(c.name[i], sizeof(c.name[i]), "%s", r->lane[i].spec.name);
		c.variants[i] = lane_variants(&r->lane[i]);
		c.set[i] = lane_set(&r->lane[i], r->hz);
		if (!c.variants[i] || !c.set[i]) {
			nrp_comparison_clear(&c);
			return nrp_fail_nomem(err);
		}
		nrp_build_lane(&b, i);
	}
	nrp_build_pairs(&b);
	for (int m = 0; m < NRP_NR_METRICS; m++)
		put(&c, &b, (enum nrp_metric_id)m);
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
