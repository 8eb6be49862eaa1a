/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tiering.promote: may this page of a slow memory tier be promoted?
 * A re-telling of the tiering branch of should_numa_migrate_memory() with
 * pgdat_free_space_enough(), numa_promotion_adjust_threshold(), numa_hint_fault_latency() and
 * numa_promotion_rate_limit() (kernel/sched/fair.c). One call at a time.
 */
#ifndef NRP_POLICY_TIERING_PROMOTE_H
#define NRP_POLICY_TIERING_PROMOTE_H

#include <stdbool.h>
#include <stdint.h>

enum nrp_tiering_variant {
	NRP_TIERING_STATIC, /* the threshold stays at hot_threshold_ms */
	NRP_TIERING_61,     /* 6.1..: the threshold follows the number of candidates */
	NRP_TIERING_72,     /* + promotions that bypass the limit are counted */
	NRP_NR_TIERING_VARIANTS
};

struct nrp_tiering_params {
	enum nrp_tiering_variant variant;
	uint32_t hot_threshold_ms;   /* kernel's default 1000 */
	uint64_t limit;              /* pages/s: nrp_tiering_limit() */
	uint32_t scan_period_max_ms; /* kernel's default 60000 */
	unsigned int cpupid_bits;    /* S: width of the field that holds the access time, 1 .. 32 */
};

/* State of one target node; all zero is the kernel's start. */
struct nrp_tiering_node {
	uint32_t threshold_ms;         /* 0: the default */
	uint32_t threshold_start_ms;   /* when the threshold was last looked at */
	uint64_t threshold_candidates; /* candidates then */
	uint32_t window_start_ms;      /* start of the rate limiter's second */
	uint64_t window_candidates;    /* candidates then, the opening one included */
	uint64_t candidates;           /* PGPROMOTE_CANDIDATE, pages */
	uint64_t candidates_unlimited; /* PGPROMOTE_CANDIDATE_NRL, pages (7.2) */
};

struct nrp_tiering_call {
	uint32_t now_ms;   /* jiffies in ms: nrp_tiering_ms() */
	uint32_t accessed; /* what the page's access-time field holds: nrp_tiering_stamp() */
	uint32_t pages;    /* n */
	bool free_space;   /* a zone of the target has PROMO watermark + max(1 GiB, 1/16) free */
};

enum nrp_tiering_reason {
	NRP_TIERING_FREE_SPACE, /* admitted: the target has plenty of memory */
	NRP_TIERING_HOT,        /* admitted */
	NRP_TIERING_COLD,       /* refused: touched too long after it was armed */
	NRP_TIERING_LIMITED,    /* refused: too many candidates in this second */
	NRP_NR_TIERING_REASONS
};

struct nrp_tiering_result {
	bool admitted;
	enum nrp_tiering_reason reason;
	uint32_t latency_ms; /* masked; 0 if free space decided */
	bool stamped;        /* the page's access time becomes nrp_tiering_stamp(now_ms) */
};

/* Pages/s of @page_size bytes from MB/s (sysctl numa_balancing_promote_rate_limit_MBps). */
uint64_t nrp_tiering_limit(uint64_t mb_per_s, uint64_t page_size);
/* Ticks in ms, cut to 32 bits as the kernel does. */
uint32_t nrp_tiering_ms(uint64_t jiffies, uint64_t hz);
/* A time as the page's field holds it: its low bits, in units of 2^(12-S) ms if S < 12. */
uint32_t nrp_tiering_stamp(const struct nrp_tiering_params *params, uint32_t ms);
/* Ages are known modulo this + 1, ms. */
uint32_t nrp_tiering_mask(const struct nrp_tiering_params *params);

/* One decision (spec migrate.md 2.6); updates the target's state. */
struct nrp_tiering_result nrp_tiering_decide(const struct nrp_tiering_params *params,
					     struct nrp_tiering_node *node,
					     const struct nrp_tiering_call *call);

/* kernel.numa_balancing got bit 2 at @now_ms: the threshold starts anew. */
void nrp_tiering_enable(struct nrp_tiering_node *node, uint32_t now_ms);

#endif
