/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tiering.promote: should_numa_migrate_memory() for pages of slow nodes, kernel/sched/fair.c;
 * spec migrate.md 2.6.
 *
 *   6.1   hot threshold 33024536bafd, rate limit c6833e10008f, adjustment c959924b0dc5
 *   7.2   + PGPROMOTE_CANDIDATE_NRL: pages let through for free space are counted
 *
 * A page that is touched soon after it was armed is hot. How soon is "hot" follows from how many
 * candidates there are: the threshold is lowered while they exceed the rate limit, raised while
 * they are below it.
 */
#include "replay/policies/tiering_promote.h"

#include <stddef.h>

#define MSEC_PER_SEC 1000u
#define ADJUST_STEPS 16u
/* The access time needs 12 bits, about 4 s. A narrower field counts in larger units. */
#define ACCESS_TIME_MIN_BITS 12u

uint64_t nrp_tiering_limit(uint64_t mb_per_s, uint64_t page_size)
{
	return (mb_per_s << 20) / page_size;
}

uint32_t nrp_tiering_ms(uint64_t jiffies, uint64_t hz)
{
	return (uint32_t)((unsigned __int128)jiffies * MSEC_PER_SEC / hz);
}

static unsigned int unit_bits(const struct nrp_tiering_params *params)
{
	return params->cpupid_bits < ACCESS_TIME_MIN_BITS
		       ? ACCESS_TIME_MIN_BITS - params->cpupid_bits
		       : 0;
}

static uint32_t field_mask(const struct nrp_tiering_params *params)
{
	return params->cpupid_bits >= 32 ? UINT32_MAX : (1u << params->cpupid_bits) - 1;
}

uint32_t nrp_tiering_stamp(const struct nrp_tiering_params *params, uint32_t ms)
{
	return (ms >> unit_bits(params)) & field_mask(params);
}

uint32_t nrp_tiering_mask(const struct nrp_tiering_params *params)
{
	return field_mask(params) << unit_bits(params);
}

/* Once in a longest scan period: do the candidates keep within 10 % of the rate limit? */
static void adjust_threshold(const struct nrp_tiering_params *params, struct nrp_tiering_node *node,
			     uint32_t now)
{
	uint32_t hot = params->hot_threshold_ms, unit = hot * 2 / ADJUST_STEPS;
	uint32_t threshold = node->threshold_ms ? node->threshold_ms : hot;
	uint64_t wanted = params->limit * params->scan_period_max_ms / MSEC_PER_SEC;
	uint64_t seen = node->candidates - node->threshold_candidates;

	if (now - node->threshold_start_ms <= params->scan_period_max_ms)
		return;
	node->threshold_start_ms = now;
	if (seen > wanted * 11 / 10) {
		threshold -= unit;
		if (threshold < unit)
			threshold = unit;
	} else if (seen < wanted * 9 / 10) {
		threshold += unit;
		if (threshold > hot * 2)
			threshold = hot * 2;
	}
	node->threshold_candidates = node->candidates;
	node->threshold_ms = threshold;
}

/* A candidate counts before it is judged, refused or not. */
static bool over_limit(const struct nrp_tiering_params *params, struct nrp_tiering_node *node,
		       uint32_t now, uint32_t pages)
{
	node->candidates += pages;
	if (now - node->window_start_ms > MSEC_PER_SEC) {
		node->window_start_ms = now;
		node->window_candidates = node->candidates;
	}
	return node->candidates - node->window_candidates >= params->limit;
}

struct nrp_tiering_result nrp_tiering_decide(const struct nrp_tiering_params *params,
					     struct nrp_tiering_node *node,
					     const struct nrp_tiering_call *call)
{
	struct nrp_tiering_result r = { .admitted = true, .reason = NRP_TIERING_FREE_SPACE };
	uint32_t threshold;

	if (call->free_space) {
		node->threshold_ms = 0;
		if (params->variant == NRP_TIERING_72)
			node->candidates_unlimited += call->pages;
		return r;
	}
	if (params->variant != NRP_TIERING_STATIC)
		adjust_threshold(params, node, call->now_ms);
	threshold = params->variant != NRP_TIERING_STATIC && node->threshold_ms
			    ? node->threshold_ms
			    : params->hot_threshold_ms;
	r.latency_ms =
		(call->now_ms - (call->accessed << unit_bits(params))) & nrp_tiering_mask(params);
	r.stamped = true;
	if (r.latency_ms >= threshold) {
		r.admitted = false;
		r.reason = NRP_TIERING_COLD;
	} else if (over_limit(params, node, call->now_ms, call->pages)) {
		r.admitted = false;
		r.reason = NRP_TIERING_LIMITED;
	} else {
		r.reason = NRP_TIERING_HOT;
	}
	return r;
}

void nrp_tiering_enable(struct nrp_tiering_node *node, uint32_t now_ms)
{
	node->threshold_ms = 0;
	node->threshold_candidates = node->candidates;
	node->threshold_start_ms = now_ms;
}
