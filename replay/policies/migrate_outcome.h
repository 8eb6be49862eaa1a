/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.outcome: what comes of an attempt to move a misplaced page, and what it leaves behind in
 * counters, events, return values and fault flags.
 * A re-telling of migrate_misplaced_page() / _folio(), migrate_misplaced_transhuge_page() and
 * migrate_misplaced_folio_prepare() (mm/migrate.c) in four generations.
 */
#ifndef NRP_POLICY_MIGRATE_OUTCOME_H
#define NRP_POLICY_MIGRATE_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

enum nrp_outcome_variant {
	NRP_OUTCOME_418, /* up to 4.18: rate limiter; huge pages have a function of their own */
	NRP_OUTCOME_510, /* 4.19..5.13: without limiter */
	NRP_OUTCOME_61,  /* 5.14..6.10: one function for pages of all sizes */
	NRP_OUTCOME_612, /* 6.11..7.2: prepare step in front, return value turned round */
	NRP_NR_OUTCOME_VARIANTS
};

/* Where the attempt ended. */
enum nrp_outcome_stage {
	NRP_OUTCOME_MOVED,       /* migrate_pages, or the THP function, succeeded */
	NRP_OUTCOME_EXEC_SHARED, /* executable file page with more than one mapping */
	NRP_OUTCOME_DIRTY,       /* dirty file page */
	NRP_OUTCOME_RATELIMIT,   /* over the target node's quota */
	NRP_OUTCOME_THP_SHARED,  /* huge page of more than one process */
	NRP_OUTCOME_WATERMARK,   /* too little free memory on the target node */
	NRP_OUTCOME_ISOLATE,     /* not on the LRU */
	NRP_OUTCOME_NO_TARGET,   /* no page could be allocated on the target node */
	NRP_OUTCOME_REFERENCES,  /* somebody else holds a reference */
	NRP_OUTCOME_COPY,        /* the page changed while it was copied */
	NRP_NR_OUTCOME_STAGES
};

/*
 * One attempt. All facts false: an anonymous page that moves. Facts that the attempt does not get
 * to are not looked at.
 */
struct nrp_outcome_attempt {
	uint32_t pages;    /* n, base pages: 1, a folio, or a huge page */
	bool file;         /* page cache, not anonymous or shmem */
	bool executable;   /* VM_EXEC in the VMA */
	bool dirty;        /* PG_dirty */
	bool shared;       /* the generation's own test says "more than one mapping":
			    * up to 6.1 mapcount != 1 (0 too), 6.12 mapcount > 1 or for a large
			    * folio the count of its first page, 7.2 the mm-id bit */
	bool over_quota;   /* the limiter of 4.18 refuses (migrate_ratelimit.h) */
	bool low_memory;   /* no zone of the target above high watermark + n */
	bool not_isolated; /* off the LRU, or taken by somebody else */
	bool no_target;    /* no memory for the copy on the target node */
	bool extra_refs;   /* page_count is not what the mappings explain */
	bool changed;      /* lost the race at copy or re-check; given up after all passes */
	bool freed;        /* the last user left: counts as a move, though nothing moved */
	bool tiering;      /* kernel.numa_balancing bit 2 */
};

/* What task_numa_fault is told: the kernel's TNF bits. */
#define NRP_OUTCOME_TNF_MIGRATED 0x01
#define NRP_OUTCOME_TNF_MIGRATE_FAIL 0x10

struct nrp_outcome {
	enum nrp_outcome_stage stage;
	uint32_t charged;             /* pages charged to the limiter (4.18) */
	uint32_t numa_pages_migrated; /* growth of the vmstat counter, pages */
	uint32_t pgmigrate_success;   /* same */
	uint32_t pgmigrate_fail;      /* same */
	bool has_event;               /* an mm_migrate_pages event, reason numa_misplaced */
	uint32_t succeeded, failed;   /* its counts, pages */
	bool has_ratelimit_event;     /* mm_numa_migrate_ratelimit (4.18) */
	uint32_t ratelimit_pages;     /* its nr_pages */
	bool has_prepare;             /* the generation has the prepare step */
	int32_t prepare_result;       /* 0, -EAGAIN, -EACCES */
	bool has_result;              /* the migrating function was reached */
	int32_t result;               /* up to 6.1: 1 moved, 0 not; later: 0 moved, -EAGAIN not */
	uint8_t tnf_flags;            /* MIGRATED or MIGRATE_FAIL */
	bool kswapd;                  /* kswapd of the target node was woken */
};

/* "4.18", "5.10", "6.1", "6.12"; NULL outside the range. */
const char *nrp_outcome_variant_name(enum nrp_outcome_variant variant);

/* Outcome of one attempt (spec migrate.md 2.7 order, 2.8 counters). */
struct nrp_outcome nrp_outcome_decide(enum nrp_outcome_variant variant,
				      const struct nrp_outcome_attempt *attempt);

#endif
