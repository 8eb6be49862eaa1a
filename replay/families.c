/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/host.h"
#include "replay/mm_kin.h"
#include "replay/policies/scan_shmem.h"
#include "replay/replay_internal.h"
#include "replay/scan_walk.h"

#include <stdlib.h>
#include <string.h>

bool nrp_replay_same_limiter(const struct nrp_ratelimit_params *a,
			     const struct nrp_ratelimit_params *b)
{
	if (a->variant != b->variant)
		return false;
	return a->variant == NRP_RATELIMIT_NONE ||
	       (a->quota == b->quota && a->interval == b->interval);
}

bool nrp_replay_same_as_host(const struct nrp_verify_check *check, int variant)
{
	return variant == check->chosen || check->indistinguishable[variant];
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

/* What verify found; NRP_HOST_VARIANT: it found nothing. */
static int8_t host_variant(const struct nrp_verify_check *check)
{
	const struct nrp_verify_variant *v = &check->variant[check->chosen];

	return v->agree && !v->disagree ? (int8_t)check->chosen : NRP_HOST_VARIANT;
}

/* Passes of several threads overlap, and PID bits race with fault events: a few may be missed. */
static bool nearly_all(const struct nrp_replay *r, const struct nrp_scan_check *c)
{
	return r->has_scan && c->disagree <= 1 + r->scan.passes / 50 && c->agree > c->disagree;
}

/* The variant that explains the passes with all rules on. */
static int8_t host_scanner(const struct nrp_replay *r)
{
	const struct nrp_scan_check *c = &r->scan.check[r->scan.chosen];

	return nearly_all(r, c) && !c->rule_off ? (int8_t)c->variant : NRP_HOST_VARIANT;
}

/* Found by verify; else what kernels with the host's functions were released with. */
static int8_t host_reset(const struct nrp_replay *r)
{
	int8_t found = host_variant(&r->reset);

	if (found >= 0 && r->reset.nr_variants)
		return found;
	return r->has_limiter_event ? NRP_SCAN_RESET_418 : NRP_SCAN_RESET_LIM;
}

/* The claim came with the release that dropped the limiter. */
static int8_t host_claim(const struct nrp_replay *r)
{
	return !r->has_limiter_event;
}

/* Found by verify, or by the functions that the kernel has. */
static int8_t host_period(const struct nrp_replay *r)
{
	if (r->period.nr_variants && r->period.variant[r->period.chosen].agree)
		return (int8_t)r->period.chosen;
	return r->has_limiter_event ? NRP_SCAN_PERIOD_418 : NRP_SCAN_PERIOD_419;
}

uint32_t nrp_replay_period_rules(const struct nrp_lane_spec *spec)
{
	uint32_t rules = 0;

	for (unsigned int i = 0; i < NRP_NR_PERIOD_RULES; i++)
		if (nrp_lane_get(spec, NRP_FAMILY_SCAN_PERIOD, nrp_period_rule_name(i), 1))
			rules |= 1u << i;
	return rules;
}

static const char *const scan_settings[] = { "scan.period_min_ms", "scan.period_max_ms",
					     "scan.size_mb", "scan.delay_ms" };

/* Has the lane the host's periods? With the observed cadence all lanes have. */
static bool same_periods(const struct nrp_replay *r, int i)
{
	const struct nrp_replay_lane *lane = &r->lane[i];

	if (!lane->spec.modelled_cadence)
		return true;
	for (size_t k = 0; k < sizeof(scan_settings) / sizeof(scan_settings[0]); k++)
		if (nrp_lane_get(&lane->spec, -1, scan_settings[k], UINT64_MAX) != UINT64_MAX)
			return false;
	return lane->variant[NRP_FAMILY_SCAN_PERIOD] == host_period(r) &&
	       nrp_replay_period_rules(&lane->spec) == NRP_PERIOD_RULES;
}

static uint32_t setting(const struct nrp_lane_spec *spec, const char *name, uint32_t host)
{
	return (uint32_t)nrp_lane_get(spec, -1, name, host);
}

struct nrp_cadence_lane nrp_replay_cadence_lane(const struct nrp_replay *r,
						const struct nrp_replay_lane *lane,
						const struct nrp_host_facts *facts)
{
	struct nrp_cadence_lane c = {
		.variant = (enum nrp_scan_period_variant)host_period(r),
		.rules = NRP_PERIOD_RULES,
		.delay_ms = nrp_host_scan_delay_ms(facts),
		.tunables = nrp_host_tunables(facts),
	};

	if (!lane)
		return c;
	c.variant = (enum nrp_scan_period_variant)lane->variant[NRP_FAMILY_SCAN_PERIOD];
	c.rules = nrp_replay_period_rules(&lane->spec);
	c.delay_ms = setting(&lane->spec, "scan.delay_ms", c.delay_ms);
	c.tunables.size_mb = setting(&lane->spec, "scan.size_mb", c.tunables.size_mb);
	c.tunables.period_min_ms =
		setting(&lane->spec, "scan.period_min_ms", c.tunables.period_min_ms);
	c.tunables.period_max_ms =
		setting(&lane->spec, "scan.period_max_ms", c.tunables.period_max_ms);
	return c;
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
		v[NRP_FAMILY_SCAN_RESET] = host_reset(r);
	if (v[NRP_FAMILY_TASK_CLAIM] == NRP_HOST_VARIANT)
		v[NRP_FAMILY_TASK_CLAIM] = host_claim(r);
	if (v[NRP_FAMILY_SCAN_VMA] == NRP_HOST_VARIANT)
		v[NRP_FAMILY_SCAN_VMA] = host_scanner(r);
	if (v[NRP_FAMILY_MUNMAP_LOCK] == NRP_HOST_VARIANT && r->locks.known)
		v[NRP_FAMILY_MUNMAP_LOCK] = (int8_t)r->locks.variant;
	if (v[NRP_FAMILY_HUGETLB_COUNT] == NRP_HOST_VARIANT)
		v[NRP_FAMILY_HUGETLB_COUNT] = (int8_t)r->hugetlb_host;
	if (v[NRP_FAMILY_SCAN_PERIOD] == NRP_HOST_VARIANT)
		v[NRP_FAMILY_SCAN_PERIOD] = host_period(r);
	lane->pte = -1;
}

/* Huge pages apart, all generations let the same attempts through. */
static bool same_outcome(int8_t a, int8_t b)
{
	return a == b || (a != NRP_OUTCOME_612 && b != NRP_OUTCOME_612);
}

/* ---- the scanner -------------------------------------------------------------------- */

/* Rules of a scan family that a lane switches off. */
static uint32_t rules_off(const struct nrp_lane_spec *spec, int family)
{
	bool vma = family == NRP_FAMILY_SCAN_VMA;
	unsigned int nr = vma                             ? NRP_NR_SCAN_RULES
			  : family == NRP_FAMILY_SCAN_PTE ? NRP_NR_SCAN_PTE_RULES
							  : 0;
	uint32_t off = 0;

	for (unsigned int i = 0; i < nr; i++) {
		const char *name = vma ? nrp_scan_vma_rule_name(i) : nrp_scan_pte_rule_name(i);

		if (!nrp_lane_get(spec, family, name, 1))
			off |= 1u << i;
	}
	return off;
}

static uint64_t scan_size(const struct nrp_replay *r, const struct nrp_lane_spec *spec)
{
	return nrp_lane_get(spec, -1, "scan.size_mb", r->scan_size_mb);
}

static uint64_t scan_delay(const struct nrp_replay *r, const struct nrp_lane_spec *spec)
{
	return nrp_lane_get(spec, -1, "scan.delay_ms", r->scan_delay_ms);
}

/* Does the lane scan in other pieces, or let VMAs wait another time? P0 lets none wait. */
static bool other_settings(const struct nrp_replay *r, const struct nrp_replay_lane *lane)
{
	return scan_size(r, &lane->spec) != r->scan_size_mb ||
	       (scan_delay(r, &lane->spec) != r->scan_delay_ms &&
		lane->variant[NRP_FAMILY_SCAN_VMA] != NRP_SCAN_VMA_P0);
}

static bool different_settings(const struct nrp_replay *r)
{
	return scan_size(r, &r->lane[0].spec) != scan_size(r, &r->lane[1].spec) ||
	       scan_delay(r, &r->lane[0].spec) != scan_delay(r, &r->lane[1].spec);
}

static bool different_rules(const struct nrp_replay *r, int family)
{
	return rules_off(&r->lane[0].spec, family) != rules_off(&r->lane[1].spec, family);
}

/* Variants of scan.pte that kernels with the host's functions were released with. */
static uint32_t pte_by_functions(const struct nrp_host_facts *f)
{
	if (f->has_ratelimit_event)
		return 1u << NRP_SCAN_PTE_F1;
	if (f->has_thp_function)
		return 1u << NRP_SCAN_PTE_F1 | 1u << NRP_SCAN_PTE_F2;
	if (!f->has_prepare_step)
		return 1u << NRP_SCAN_PTE_F2;
	return 1u << NRP_SCAN_PTE_F3 | 1u << NRP_SCAN_PTE_F4 | 1u << NRP_SCAN_PTE_F5;
}

/* The host's scan.pte, known or the only one that it can be; -1: neither. */
static int host_pte(const struct nrp_replay *r)
{
	if (r->pte_host >= 0)
		return r->pte_host;
	return __builtin_popcount(r->pte_hosts) == 1 ? __builtin_ctz(r->pte_hosts) : -1;
}

/* The lane's scan.pte; -1: the host's, which is not known. */
static int lane_pte(const struct nrp_replay *r, const struct nrp_replay_lane *lane)
{
	int v = lane->spec.variant[NRP_FAMILY_SCAN_PTE];

	return v == NRP_HOST_VARIANT ? host_pte(r) : v;
}

/* Rules of scan.pte that the lane's variant has and the lane has not, if they can matter here. */
static uint32_t pte_off(const struct nrp_replay *r, const struct nrp_replay_lane *lane)
{
	uint32_t off = rules_off(&lane->spec, NRP_FAMILY_SCAN_PTE);
	int v = lane_pte(r, lane);

	if (v >= 0)
		off &= nrp_scan_pte_rules((enum nrp_scan_pte_variant)v);
	return r->balances_normally ? off & ~(uint32_t)NRP_SCAN_PTE_RULE_TIER : off;
}

/* Does the variant with the rules @off make every recorded decision? */
static bool reproduces(const struct nrp_scan_verify *s, int8_t variant, uint32_t off)
{
	off &= variant < 0 ? 0 : nrp_scan_vma_rules((enum nrp_scan_vma_variant)variant);
	for (size_t i = 0; i < s->nr_checks; i++)
		if ((int8_t)s->check[i].variant == variant && s->check[i].rule_off == off)
			return !s->check[i].disagree;
	return false;
}

/* Is the lane's variant of a scan family the host's, known or taken to be? */
static bool same_scanner(const struct nrp_replay *r, int i, int family)
{
	const struct nrp_replay_lane *lane = &r->lane[i];
	int8_t v = lane->spec.variant[family];
	uint32_t off =
		family == NRP_FAMILY_SCAN_PTE ? pte_off(r, lane) : rules_off(&lane->spec, family);

	if (family == NRP_FAMILY_SCAN_VMA && other_settings(r, lane))
		return false;
	if (v == NRP_HOST_VARIANT && !off)
		return true;
	if (family == NRP_FAMILY_SCAN_VMA)
		return r->has_scan && reproduces(&r->scan, lane->variant[family], off);
	if (family == NRP_FAMILY_SCAN_SHMEM)
		return r->shmem_hosts == 1u << v;
	return !off && (r->pte_host >= 0 ? v == r->pte_host : r->pte_hosts >> v & 1);
}

/* A lane with a filter of its own; without rules off only F0 is known to be wider than all. */
static void prepare_pte_lane(struct nrp_replay *r, struct nrp_replay_lane *lane)
{
	struct nrp_scan_pte_policy *p = &lane->pte_policy;
	int v = lane_pte(r, lane);

	if (v < 0) {
		r->unknown[NRP_FAMILY_SCAN_PTE] = true;
		return;
	}
	*p = nrp_scan_pte_policy((enum nrp_scan_pte_variant)v);
	p->rules &= ~pte_off(r, lane);
	lane->pte = v;
	lane->opens |=
		r->pte_host != NRP_SCAN_PTE_F0 || nrp_scan_pte_rules(NRP_SCAN_PTE_F0) & ~p->rules;
}

static int prepare_pte(struct nrp_replay *r, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_scan_pte_counts counts;
	uint32_t possible;
	int ret;

	r->pte_proofs = nrp_scan_pte_proofs_new();
	if (!r->pte_proofs)
		return nrp_fail_nomem(err);
	ret = nrp_scan_pte_lane_count(&counts, store, capture, NRP_SCAN_PTE_HOST_UNKNOWN,
				      r->pte_proofs, err);

	if (ret < 0)
		return ret;
	possible = nrp_scan_pte_possible_hosts(&counts);
	if (__builtin_popcount(possible) == 1)
		r->pte_host = __builtin_ctz(possible);
	r->pte_hosts = possible & pte_by_functions(&capture->facts);
	for (int i = 0; i < 2; i++)
		if (!r->lane[i].off && !same_scanner(r, i, NRP_FAMILY_SCAN_PTE))
			prepare_pte_lane(r, &r->lane[i]);
	return 0;
}

struct nrp_scan_lane_config nrp_replay_scan_config(const struct nrp_lane_spec *spec,
						   const struct nrp_host_facts *facts)
{
	return (struct nrp_scan_lane_config){
		.variant = (enum nrp_scan_vma_variant)spec->variant[NRP_FAMILY_SCAN_VMA],
		.scan_size_mb = nrp_lane_get(spec, -1, "scan.size_mb", nrp_scan_size_mb(facts)),
		.scan_delay_ms =
			nrp_lane_get(spec, -1, "scan.delay_ms", nrp_host_scan_delay_ms(facts)),
		.rules_off = rules_off(spec, NRP_FAMILY_SCAN_VMA),
	};
}

/* Does lane @i need a scanner of its own that can be replayed? */
static bool wants_scan_lane(struct nrp_replay *r, int i)
{
	const struct nrp_replay_lane *lane = &r->lane[i];

	if (lane->off || (same_scanner(r, i, NRP_FAMILY_SCAN_VMA) && !lane->gains_shmem))
		return false;
	if (r->has_scan && lane->variant[NRP_FAMILY_SCAN_VMA] >= 0)
		return true;
	r->unknown[NRP_FAMILY_SCAN_VMA] = true;
	return false;
}

/* The lanes' scanners, in one walk over the records; or as they are given. */
static int run_scan_lanes(struct nrp_replay *r, struct nrp_store *store,
			  const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_scan_lane_config config[2];
	struct nrp_scan_lane scan[2];
	size_t n = 0, at = 0;
	int ret;

	for (int i = 0; i < 2; i++) {
		struct nrp_replay_lane *lane = &r->lane[i];

		if (!wants_scan_lane(r, i))
			continue;
		lane->has_scan = true;
		if (lane->lent_scan && !lane->gains_shmem) {
			lane->scan = *lane->lent_scan;
			continue;
		}
		lane->lent_scan = NULL;
		config[n] = nrp_replay_scan_config(&lane->spec, &capture->facts);
		config[n].variant = (enum nrp_scan_vma_variant)lane->variant[NRP_FAMILY_SCAN_VMA];
		config[n++].gains_shmem = lane->gains_shmem;
	}
	ret = nrp_scan_lanes_run(scan, store, capture, config, n, err);
	for (int i = 0; i < 2; i++) {
		if (!r->lane[i].has_scan || r->lane[i].lent_scan)
			continue;
		if (ret == 0)
			r->lane[i].scan = scan[at++];
		else
			r->lane[i].has_scan = false;
	}
	return ret;
}

/* Shared memory: kernels with the tracepoint of cpusets (6.16) may have SH1, as stable ones may. */
static int find_shmem_hosts(struct nrp_replay *r, struct nrp_store *store,
			    const struct nrp_capture *capture, struct nrp_error *err)
{
	bool may_have_sh1 = false;
	int ret = nrp_store_capture_has_probe(store, capture->id, "sched_skip_cpuset_numa",
					      &may_have_sh1, err);

	r->shmem_hosts = 1u << NRP_SCAN_SHMEM_SH0;
	if (may_have_sh1)
		r->shmem_hosts |= 1u << NRP_SCAN_SHMEM_SH1;
	return ret;
}

/* Which VMAs a lane has more or fewer than the host, if the record shows them. */
static void prepare_shmem(struct nrp_replay *r, int i)
{
	struct nrp_replay_lane *lane = &r->lane[i];

	if (lane->off || same_scanner(r, i, NRP_FAMILY_SCAN_SHMEM))
		return;
	if (lane->spec.variant[NRP_FAMILY_SCAN_SHMEM] == NRP_SCAN_SHMEM_SH0)
		lane->loses_shmem = true;
	else if (r->has_scan && r->scan.has_skips && lane->variant[NRP_FAMILY_SCAN_VMA] >= 0)
		lane->gains_shmem = true;
	else
		lane->opens = true;
}

static int prepare_scanner(struct nrp_replay *r, struct nrp_store *store,
			   const struct nrp_capture *capture, struct nrp_error *err)
{
	int ret = find_shmem_hosts(r, store, capture, err);

	if (ret == 0 && asks_for(r, NRP_FAMILY_SCAN_PTE))
		ret = prepare_pte(r, store, capture, err);
	for (int i = 0; ret == 0 && i < 2; i++)
		prepare_shmem(r, i);
	if (ret == 0)
		ret = run_scan_lanes(r, store, capture, err);
	r->assumed[NRP_FAMILY_SCAN_SHMEM] = asks_for(r, NRP_FAMILY_SCAN_SHMEM);
	r->assumed[NRP_FAMILY_SCAN_PTE] = asks_for(r, NRP_FAMILY_SCAN_PTE) && r->pte_host < 0;
	return ret;
}

/* ---- old against new ---------------------------------------------------------------- */

void nrp_replay_compare_families(struct nrp_replay *r)
{
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		r->differs[f] |= r->lane[0].variant[f] != r->lane[1].variant[f];
	/* Variants that this capture cannot tell apart from the host's are the host's. */
	if (nrp_replay_same_as_host(&r->filter, r->lane[0].variant[NRP_FAMILY_MIGRATE_FILTER]) &&
	    nrp_replay_same_as_host(&r->filter, r->lane[1].variant[NRP_FAMILY_MIGRATE_FILTER]))
		r->differs[NRP_FAMILY_MIGRATE_FILTER] = false;
	for (int i = 0; i < 2; i++) {
		int8_t v = r->lane[i].variant[NRP_FAMILY_MIGRATE_FILTER];

		r->alike[i] = v != r->filter.chosen && r->filter.indistinguishable[v];
	}
	r->off_differs = r->lane[0].off != r->lane[1].off;
	r->differs[NRP_FAMILY_MIGRATE_RATELIMIT] =
		!nrp_replay_same_limiter(&r->lane[0].e0.params, &r->lane[1].e0.params);
	if (same_outcome(r->lane[0].variant[NRP_FAMILY_MIGRATE_OUTCOME],
			 r->lane[1].variant[NRP_FAMILY_MIGRATE_OUTCOME]))
		r->differs[NRP_FAMILY_MIGRATE_OUTCOME] = false;
	r->differs[NRP_FAMILY_TIERING_PROMOTE] |= r->tiering_differs;
	for (int f = NRP_FAMILY_SCAN_VMA; f <= NRP_FAMILY_SCAN_SHMEM; f++) {
		r->differs[f] |= different_rules(r, f);
		r->differs[f] |= f == NRP_FAMILY_SCAN_VMA && different_settings(r);
		if (same_scanner(r, 0, f) && same_scanner(r, 1, f))
			r->differs[f] = false;
	}
	r->differs[NRP_FAMILY_SCAN_PERIOD] = !same_periods(r, 0) || !same_periods(r, 1);
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		r->differs[f] &= !r->moot[f];
}

/* A scanner without filter starves no VMA; of others, skips on record tell. */
static void count_starved(struct nrp_replay *r, const struct nrp_verify *verify)
{
	const struct nrp_scan_record *record = &verify->scan_record;

	r->eligible_vmas = record->nr_vmas;
	r->starved_vmas =
		record->has_skips || (r->has_scan &&
				      r->scan.check[r->scan.chosen].variant == NRP_SCAN_VMA_P0)
			? 0
			: -1;
	for (size_t i = 0; record->has_skips && i < record->nr_vmas; i++)
		r->starved_vmas += record->vma[i].record.starved;
}

void nrp_replay_resolve(struct nrp_replay *r, const struct nrp_verify *verify,
			const struct nrp_host_facts *facts)
{
	for (size_t i = 0; i < verify->nr_checks; i++) {
		if (!strcmp(verify->check[i].family, "migrate.filter"))
			r->filter = verify->check[i];
		if (!strcmp(verify->check[i].family, "migrate.outcome"))
			r->outcome = verify->check[i];
		if (!strcmp(verify->check[i].family, "scan.reset"))
			r->reset = verify->check[i];
		if (!strcmp(verify->check[i].family, "scan.period"))
			r->period = verify->check[i];
		if (!strcmp(verify->check[i].family, "migrate.ratelimit")) {
			r->ratelimit = verify->check[i];
			r->has_ratelimit_check = true;
		}
	}
	r->has_limiter_event = facts->has_ratelimit_event;
	r->scan_size_mb = nrp_scan_size_mb(facts);
	r->scan_delay_ms = nrp_host_scan_delay_ms(facts);
	r->balances_normally = facts->balancing > 0 && facts->balancing & 1;
	r->moves = verify->moves;
	r->scan = verify->scan;
	r->has_scan = verify->has_scan;
	r->locks = verify->locks;
	r->hugetlb_host = verify->hugetlb_host;
	r->contention = verify->contention;
	r->page_faulters = verify->faulters;
	count_starved(r, verify);
	r->pte_host = -1;
	for (int i = 0; i < 2; i++)
		resolve_variants(r, &r->lane[i]);
}

/* ---- families that this capture may not exercise ------------------------------------ */

/* Attempts on huge pages in processes with kin: others may map the page, too. */
static int count_shared_huge(struct nrp_replay *r, struct nrp_store *store,
			     const struct nrp_capture *capture, struct nrp_error *err)
{
	uint64_t huge = nrp_host_huge_pages(&capture->facts);
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
	uint64_t page = nrp_host_page_size(&capture->facts);
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

/* ---- mmap_lock ------------------------------------------------------------------------- */

static struct nrp_lock_params lock_params(const struct nrp_lane_spec *spec, int8_t variant)
{
	struct nrp_lock_params p = nrp_lock_host_params((enum nrp_munmap_variant)variant);
	int family = NRP_FAMILY_MUNMAP_LOCK;

	p.munmap.threshold = nrp_lane_get(spec, family, "threshold", p.munmap.threshold);
	p.resched = nrp_lane_get(spec, family, "resched", 1);
	p.prefix = !nrp_lane_get(spec, family, "discipline", 1);
	p.vma_locks = nrp_lane_get(spec, family, "vma_locks", 0);
	p.spin = nrp_lane_get(spec, family, "wspin_ns", 0);
	p.handoff = nrp_lane_get(spec, family, "handoff_ns", 0);
	p.closed = nrp_lane_get(spec, family, "closed", 0);
	p.moves_unlocked = !nrp_lane_get(spec, family, "mbind_moves", 1);
	return p;
}

static bool same_locks(const struct nrp_lock_params *a, const struct nrp_lock_params *b)
{
	return a->munmap.variant == b->munmap.variant &&
	       a->munmap.threshold == b->munmap.threshold && a->resched == b->resched &&
	       a->prefix == b->prefix && a->vma_locks == b->vma_locks && a->spin == b->spin &&
	       a->handoff == b->handoff && a->closed == b->closed &&
	       a->moves_unlocked == b->moves_unlocked;
}

/* Runs the lanes that do not hold the mmap_lock as the host did. */
static int run_locks(struct nrp_replay *r, struct nrp_store *store,
		     const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_lock_params host = nrp_lock_host_params(r->locks.variant), params[2];
	struct nrp_lock_lanes lanes = { 0 };
	int f = NRP_FAMILY_MUNMAP_LOCK, ret = 0;

	r->unknown[f] = !r->locks.known;
	r->locks_differ = r->lane[0].variant[f] != r->lane[1].variant[f];
	if (!r->locks.known)
		return 0;
	ret = nrp_lock_lanes_load(&lanes, store, capture, err);
	lanes.host = r->locks;
	if (ret == 0 && (nrp_lock_lanes_start(&lanes) < 0 ||
			 nrp_scan_attempts_collect(&r->scan_attempts, &lanes) < 0))
		ret = nrp_fail_nomem(err);
	for (int i = 0; ret == 0 && i < 2; i++) {
		params[i] = lock_params(&r->lane[i].spec, r->lane[i].variant[f]);
		r->lane[i].own_lock = !same_locks(&params[i], &host);
		if (r->lane[i].own_lock)
			ret = nrp_lock_lanes_run(&r->lane[i].lock, &lanes, &params[i]) < 0
				      ? nrp_fail_nomem(err)
				      : 0;
		r->lane[i].own_lock &= r->lane[i].lock.changed > 0;
		if (ret == 0)
			nrp_scan_attempts_lane(&r->scan_attempts, i ? NRP_LOST_NEW : NRP_LOST_OLD,
					       r->lane[i].own_lock ? &lanes : NULL);
	}
	if (ret == 0)
		ret = nrp_scan_attempts_windows(&r->scan_attempts, store, capture, err);
	r->lock_record = lanes.record;
	r->locks_differ = ret == 0 && !same_locks(&params[0], &params[1]);
	r->differs[f] = r->locks_differ;
	r->moot[f] = !r->lane[0].own_lock && !r->lane[1].own_lock;
	nrp_lock_lanes_clear(&lanes);
	return ret;
}

/* ---- hugetlb -------------------------------------------------------------------------- */

/* Runs the record, as the host's variant sees it, and lanes with another one. */
static int run_hugetlb(struct nrp_replay *r, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	int f = NRP_FAMILY_HUGETLB_COUNT, ret;

	r->unknown[f] = r->hugetlb_host < 0;
	if (r->hugetlb_host < 0)
		return 0;
	ret = nrp_hugetlb_run(&r->hugetlb_record, store, capture,
			      (enum nrp_hugetlb_variant)r->hugetlb_host, true, err);
	for (int i = 0; ret == 0 && i < 2; i++) {
		r->lane[i].own_hugetlb = r->lane[i].variant[f] != r->hugetlb_host;
		if (r->lane[i].own_hugetlb)
			ret = nrp_hugetlb_run(&r->lane[i].hugetlb, store, capture,
					      (enum nrp_hugetlb_variant)r->lane[i].variant[f],
					      false, err);
	}
	return ret;
}

/* Which families decide nothing here, whatever their variant? */
int nrp_replay_prepare(struct nrp_replay *r, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	bool reset = true;
	int ret = count_shared_huge(r, store, capture, err);

	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++)
		reset &= !r->moves.reset[v].refused;
	r->moot[NRP_FAMILY_SCAN_RESET] = reset && !r->moves.events_missing;
	r->moot[NRP_FAMILY_TASK_CLAIM] =
		!r->moves.claim.suppressed_upper && !r->moves.events_missing;
	r->assumed[NRP_FAMILY_SCAN_RESET] = asks_for(r, NRP_FAMILY_SCAN_RESET) &&
					    !r->moot[NRP_FAMILY_SCAN_RESET] &&
					    host_variant(&r->reset) < 0;
	r->assumed[NRP_FAMILY_TASK_CLAIM] =
		asks_for(r, NRP_FAMILY_TASK_CLAIM) && !r->moot[NRP_FAMILY_TASK_CLAIM];
	r->moot[NRP_FAMILY_MIGRATE_OUTCOME] = !r->shared_huge_pages;
	r->moot[NRP_FAMILY_TIERING_PROMOTE] = true;
	if (ret == 0 && asks_for(r, NRP_FAMILY_TIERING_PROMOTE)) {
		ret = run_tiering(r, store, capture, err);
		r->moot[NRP_FAMILY_TIERING_PROMOTE] = r->tiering.identical;
	}
	if (ret == 0)
		ret = run_locks(r, store, capture, err);
	if (ret == 0)
		ret = run_hugetlb(r, store, capture, err);
	return ret < 0 ? ret : prepare_scanner(r, store, capture, err);
}

bool nrp_replay_scans_as_host(const struct nrp_replay *r, int lane)
{
	return same_scanner(r, lane, NRP_FAMILY_SCAN_VMA);
}

bool nrp_replay_as_host(const struct nrp_replay *r, int i)
{
	const struct nrp_replay_lane *lane = &r->lane[i];
	static const enum nrp_family_id families[] = { NRP_FAMILY_SCAN_RESET, NRP_FAMILY_TASK_CLAIM,
						       NRP_FAMILY_TIERING_PROMOTE,
						       NRP_FAMILY_MIGRATE_OUTCOME };

	for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
		enum nrp_family_id f = families[k];
		int8_t v = lane->variant[f];
		int8_t host = f == NRP_FAMILY_SCAN_RESET        ? host_reset(r)
			      : f == NRP_FAMILY_TASK_CLAIM      ? host_claim(r)
			      : f == NRP_FAMILY_MIGRATE_OUTCOME ? host_variant(&r->outcome)
								: NRP_HOST_VARIANT;

		if (r->moot[f] || lane->spec.variant[f] == NRP_HOST_VARIANT || v == host)
			continue;
		if (f == NRP_FAMILY_MIGRATE_OUTCOME && same_outcome(v, host))
			continue;
		return false;
	}
	for (int f = NRP_FAMILY_SCAN_VMA; f <= NRP_FAMILY_SCAN_SHMEM; f++)
		if (!same_scanner(r, i, f))
			return false;
	return same_periods(r, i);
}
