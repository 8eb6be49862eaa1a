/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.filter: may this hinting fault pull the page to the faulting CPU's node?
 * A re-telling of should_numa_migrate_memory() (kernel/sched/fair.c) in four generations.
 */
#ifndef NRP_POLICY_MIGRATE_FILTER_H
#define NRP_POLICY_MIGRATE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

enum nrp_filter_variant {
	NRP_FILTER_418, /* up to 4.18: the two-stage cpupid filter and group weights */
	NRP_FILTER_419, /* 4.19..5.10: + D4, pages follow a young task at once */
	NRP_FILTER_61,  /* 6.1: + D1, D3 (tiers); local faults no longer reach the filter */
	NRP_FILTER_612, /* 6.12..7.2: + D0, target node without memory */
	NRP_NR_FILTER_VARIANTS
};

/* Which rule decided, in the order they are tried. D2 is the cpupid exchange: it decides nothing.
 */
enum nrp_filter_rule {
	NRP_FILTER_D0, /* target node has no memory: stay */
	NRP_FILTER_D1, /* tiering, page on a slow node: decided by the promotion policy */
	NRP_FILTER_D2,
	NRP_FILTER_D3, /* slow node, tiering off, last access unknown: stay */
	NRP_FILTER_D4, /* task without preferred node or young, page untouched or own: move */
	NRP_FILTER_D5, /* last access came from another node: stay */
	NRP_FILTER_D6, /* last access was by this task: move */
	NRP_FILTER_D7, /* task without group: move */
	NRP_FILTER_D8, /* the group runs three times as much on the target: move */
	NRP_FILTER_D9, /* compare the group's use of both nodes: move or stay */
	NRP_NR_FILTER_RULES
};

enum nrp_filter_answer { NRP_FILTER_STAY = 0, NRP_FILTER_MOVE = 1, NRP_FILTER_UNDECIDED = 2 };

/* What does not change from call to call. */
struct nrp_filter_host {
	unsigned int cpupid_bits; /* width of last_cpupid, 8 pid bits included (e.g. 14, 21) */
	const int16_t *cpu_nid;   /* [nr_cpus], -1 unknown */
	int nr_cpus;
	bool tiering; /* kernel.numa_balancing bit 2 */
};

struct nrp_filter_call {
	int32_t tid;
	int src_nid, dst_nid;
	uint32_t last_cpupid;                        /* before the exchange */
	int preferred_nid;                           /* -1: none */
	int32_t scan_seq;                            /* the task's copy */
	bool grouped;                                /* the task has a numa_group */
	bool dst_without_memory;                     /* rule D0 */
	bool src_slow_tier;                          /* rules D1, D3 */
	bool weights_known;                          /* the four weights below are valid */
	uint64_t cpu_src, cpu_dst, mem_src, mem_dst; /* C[src], C[dst], M[src], M[dst] */
};

struct nrp_filter_result {
	enum nrp_filter_answer answer; /* UNDECIDED: D1, or D8/D9 without weights */
	enum nrp_filter_rule rule;
};

/* "4.18", "4.19", "6.1", "6.12"; NULL outside the range. */
const char *nrp_filter_variant_name(enum nrp_filter_variant variant);
/* "D0" .. "D9". */
const char *nrp_filter_rule_name(enum nrp_filter_rule rule);

/*
 * One decision (spec migrate.md 2.4). The page's last_cpupid becomes nrp_filter_cpupid()
 * afterwards, whatever the answer, unless D0 or D1 decided (nrp_filter_exchanges()).
 */
struct nrp_filter_result nrp_filter_decide(enum nrp_filter_variant variant,
					   const struct nrp_filter_host *host,
					   const struct nrp_filter_call *call);

/* Does a fault of the default memory policy reach the filter? (LOCALMARK, spec 2.3) */
bool nrp_filter_is_called(enum nrp_filter_variant variant, int src_nid, int this_nid);

/* last_cpupid after an access by @tid on @cpu (spec 2.1). */
uint32_t nrp_filter_cpupid(const struct nrp_filter_host *host, int cpu, int32_t tid);
/* last_cpupid of a page nobody touched: all ones. */
uint32_t nrp_filter_cpupid_unset(const struct nrp_filter_host *host);
/* Does this rule leave the page's last_cpupid alone? */
bool nrp_filter_exchanges(enum nrp_filter_rule rule);

#endif
