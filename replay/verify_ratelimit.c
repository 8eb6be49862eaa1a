/* SPDX-License-Identifier: GPL-2.0-or-later */
/* migrate.ratelimit against the kernel's own refusals (the ratelimit tracepoint, up to 4.18). */
#include "replay/host.h"
#include "replay/verify_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RULE_ADMIT, RULE_DENY, NR_RULES };

struct result {
	struct nrp_verify_variant count;
	struct nrp_verify_rule rule[NR_RULES];
	uint64_t quota, quota_max, races;
	uint8_t *answer; /* [attempts->count] */
};

static void compare(struct result *res, const struct nrp_attempts *attempts,
		    const struct nrp_ratelimit_lane *lane)
{
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		const struct nrp_ratelimit_decision *d = &lane->decision[i];
		struct nrp_verify_rule *rule = &res->rule[d->admitted ? RULE_ADMIT : RULE_DENY];
		bool agree = d->admitted == (a->evidence == NRP_LIMITER_ADMITTED);

		res->answer[i] = d->admitted;
		res->count.decisions++;
		if (a->evidence == NRP_LIMITER_UNKNOWN) {
			res->count.undecided++;
			continue;
		}
		rule->decisions++;
		rule->agree += agree;
		if (agree) {
			res->count.agree++;
		} else if (d->certainty == NRP_AMBIGUOUS_RACE) {
			/* Serial replay cannot order what overlapped at the boundary. */
			res->count.undecided++;
			res->races++;
		} else if (d->first_window || d->certainty == NRP_AMBIGUOUS_LOSS) {
			/* What was charged before the capture began, or in a gap, is not known. */
			res->count.undecided++;
		} else {
			res->count.disagree++;
		}
	}
}

static int run_variant(struct result *res, const struct nrp_attempts *attempts,
		       const struct nrp_ratelimit_params *params, struct nrp_error *err)
{
	struct nrp_ratelimit_lane lane;
	int r = nrp_ratelimit_lane_run(&lane, attempts, params, true, err);

	if (r < 0)
		return r;
	res->count = (struct nrp_verify_variant){ .variant = nrp_ratelimit_variant_name(
							  params->variant) };
	res->rule[RULE_ADMIT] = (struct nrp_verify_rule){ .rule = "admit" };
	res->rule[RULE_DENY] = (struct nrp_verify_rule){ .rule = "deny" };
	res->quota = res->quota_max = params->quota;
	res->races = 0;
	compare(res, attempts, &lane);
	nrp_ratelimit_lane_clear(&lane);
	return 0;
}

static bool better(const struct result *a, const struct result *b)
{
	if (a->count.disagree != b->count.disagree)
		return a->count.disagree < b->count.disagree;
	return a->count.agree > b->count.agree;
}

/* Attempts in flight at the quota's edge may overshoot it: the true quota can be a little less. */
#define MAX_OVERSHOOT 2
#define MAX_QUOTAS 16

struct quotas {
	uint64_t low[MAX_QUOTAS], high[MAX_QUOTAS];
	size_t count;
};

static void add_quota(struct quotas *q, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < q->count; i++)
		if (q->low[i] == low)
			return;
	if (q->count == MAX_QUOTAS)
		return;
	q->low[q->count] = low;
	q->high[q->count++] = high;
}

/*
 * The quota is a constant of the kernel build: fitted for every start, the best replay wins. A
 * capture without refusals says nothing about it, and the kernel's default stands.
 */
static int list_quotas(struct quotas *q, const struct nrp_attempts *attempts,
		       const struct nrp_ratelimit_params *params, struct nrp_error *err)
{
	size_t starts = nrp_ratelimit_nr_starts(params);

	add_quota(q, params->quota, params->quota);
	for (size_t i = 0; i < starts; i++) {
		struct nrp_ratelimit_start start = nrp_ratelimit_start_at(params, i);
		uint64_t low, high;
		bool refused;
		int r = nrp_ratelimit_fit_quota(attempts, params, &start, &low, &high, &refused,
						err);

		if (r < 0 || !refused)
			return r;
		if (!low && high)
			low = 1; /* 0 would let one page pass per window: no such kernel */
		add_quota(q, low, high);
		for (uint64_t less = 1; less <= MAX_OVERSHOOT && less < low; less++)
			add_quota(q, low - less, low - less);
	}
	return 0;
}

static int fit(struct result *best, const struct nrp_attempts *attempts,
	       struct nrp_ratelimit_params params, struct nrp_error *err)
{
	struct result trial = { .answer = calloc(attempts->count + 1, 1) };
	struct quotas q = { .count = 0 };
	int r = trial.answer ? list_quotas(&q, attempts, &params, err) : nrp_fail_nomem(err);

	for (size_t i = 0; r == 0 && i < q.count; i++) {
		struct result swap;

		params.quota = q.low[i];
		r = run_variant(i ? &trial : best, attempts, &params, err);
		if (r < 0 || !i)
			continue;
		trial.quota_max = q.high[i];
		swap = *best;
		if (better(&trial, best)) {
			*best = trial;
			trial = swap;
		}
	}
	free(trial.answer);
	return r;
}

int nrp_verify_ratelimit(struct nrp_verify_check *ret, const struct nrp_attempts *attempts,
			 const struct nrp_host_facts *facts, struct nrp_error *err)
{
	struct nrp_ratelimit_params params = {
		.quota = nrp_ratelimit_quota(nrp_host_page_size(facts)),
		.interval =
			nrp_ratelimit_interval(100, (uint64_t)(facts->hz > 0 ? facts->hz : 250)),
	};
	struct result res[NRP_NR_RATELIMIT_VARIANTS] = { 0 };
	int best = facts->has_ratelimit_event ? NRP_RATELIMIT_SPIN : NRP_RATELIMIT_NONE;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	ret->family = "migrate.ratelimit";
	ret->nr_variants = NRP_NR_RATELIMIT_VARIANTS;
	ret->interval = params.interval;
	for (int v = 0; r == 0 && v < NRP_NR_RATELIMIT_VARIANTS; v++) {
		res[v].answer = calloc(attempts->count + 1, 1);
		params.variant = (enum nrp_ratelimit_variant)v;
		r = res[v].answer ? fit(&res[v], attempts, params, err) : nrp_fail_nomem(err);
		ret->variant[v] = res[v].count;
	}
	for (int v = 0; r == 0 && v < NRP_NR_RATELIMIT_VARIANTS; v++)
		if (better(&res[v], &res[best]))
			best = v;
	if (r == 0) {
		ret->chosen = best;
		ret->quota = res[best].quota;
		ret->quota_max = res[best].quota_max;
		ret->quota_fitted = best != NRP_RATELIMIT_NONE && attempts->denied > 0;
		ret->races = res[best].races;
		memcpy(ret->rule, res[best].rule, sizeof(res[best].rule));
		ret->nr_rules = NR_RULES;
		for (int v = 0; v < NRP_NR_RATELIMIT_VARIANTS; v++)
			ret->indistinguishable[v] =
				v != best && res[v].answer && res[best].answer &&
				!memcmp(res[v].answer, res[best].answer, attempts->count);
	}
	for (int v = 0; v < NRP_NR_RATELIMIT_VARIANTS; v++)
		free(res[v].answer);
	return r;
}
