/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Own-policy verification: which variants reproduce the decisions that the host's kernel
 * recorded, and do the records add up to /proc/vmstat (spec migrate.md 2.4, 2.9).
 */
#ifndef NRP_VERIFY_H
#define NRP_VERIFY_H

#include "numareplay/store.h"
#include "replay/policies/migrate_filter.h"
#include "replay/hugetlb_lane.h"
#include "replay/lock_contention.h"
#include "replay/lock_lane.h"
#include "replay/outcomes.h"
#include "replay/ratelimit_lane.h"
#include "replay/scan_lane.h"
#include "replay/faulters.h"
#include "replay/scan_periods.h"
#include "replay/task_moves.h"

#define NRP_MAX_RULES 16
#define NRP_MAX_CHECKS 8

struct nrp_verify_rule {
	const char *rule;
	uint64_t decisions, agree;
};

/* One variant against the record. */
struct nrp_verify_variant {
	const char *variant;
	uint64_t decisions, agree, disagree, undecided;
	uint64_t excluded_by; /* other evidence against it (see exclusion) */
};

struct nrp_verify_check {
	const char *family;
	int chosen;    /* index into variant[]; the family has evidence iff decisions > 0 */
	bool advisory; /* rests on indirect evidence: does not decide the verdict */
	struct nrp_verify_variant variant[8];
	size_t nr_variants;
	bool indistinguishable[8];                  /* from the chosen one, on this capture */
	struct nrp_verify_rule rule[NRP_MAX_RULES]; /* of the chosen variant */
	size_t nr_rules;
	/* scan.vma: what reproduces all decisions; with a rule switched off, or NULL. */
	struct nrp_verify_match {
		const char *variant, *off;
	} match[NRP_MAX_SCAN_CHECKS];
	size_t nr_matches;
	const char *switched_off; /* scan.vma: rule that the chosen one has not; NULL: it has all */
	/* migrate.filter: calls that two variants answer differently, and moves of each variant. */
	uint64_t differ[NRP_NR_FILTER_VARIANTS][NRP_NR_FILTER_VARIANTS];
	uint64_t moves[NRP_NR_FILTER_VARIANTS];
	const char *exclusion;     /* what excluded_by counts, NULL: nothing */
	bool quota_fitted;         /* migrate.ratelimit: refusals show the quota */
	uint64_t quota, quota_max; /* quotas that fit, pages; without a fit the kernel's default */
	uint64_t interval;         /* migrate.ratelimit: ticks */
	uint64_t races; /* migrate.ratelimit: disagreements that are races at a boundary */
};

enum nrp_explained { NRP_EXPLAINED_NOT, NRP_WINDOW_EDGES, NRP_LOST_EVENTS, NRP_UNJOINED };

struct nrp_verify_counter {
	const char *name;
	int64_t trace, vmstat; /* events; pages */
	int64_t difference;    /* vmstat - trace */
	enum nrp_explained explained;
	bool ok; /* equal or explained */
};

#define NRP_MAX_COVERAGE 64

/* How often the scanner came round in one address space, and how often its pages were seen. */
struct nrp_coverage {
	uint64_t mm;
	int32_t tgid;           /* -1: not known */
	uint64_t faults;        /* hinting faults */
	uint64_t passes;        /* full scans finished */
	uint64_t pages_seen[3]; /* pages with one, two, three or more hinting faults */
};

#define NRP_MAX_COUNTERS 8
#define NRP_MAX_VERIFY_NOTES 24

struct nrp_verify_note {
	const char *code;
	char text[512];
};

struct nrp_verify {
	enum { NRP_AGREES, NRP_DISAGREES, NRP_NO_EVIDENCE } verdict;
	struct nrp_verify_check check[NRP_MAX_CHECKS];
	size_t nr_checks;
	struct nrp_verify_counter counter[NRP_MAX_COUNTERS];
	size_t nr_counters;
	double passes;          /* mean full passes over the address spaces that fault */
	double seconds;         /* length of the capture */
	uint64_t pages_seen[3]; /* pages with one, two, three or more hint faults */
	struct nrp_coverage coverage[NRP_MAX_COVERAGE]; /* most faults first */
	size_t nr_coverage;
	struct nrp_faulters faulters; /* of each address space's pages for itself */
	uint64_t hint_faults;
	uint64_t damaged_gaps;          /* losses by damage of the capture's file */
	uint64_t shared_faults;         /* on pages that more than one address space maps */
	uint64_t unreported_faults;     /* without task_fault */
	uint64_t without_last_cpupid;   /* neither from task_fault nor from page flags */
	struct nrp_end_counts outcomes; /* of the recorded attempts */
	struct nrp_task_moves moves;
	struct nrp_attempts attempts; /* as a replay uses them */
	bool has_attempts;
	struct nrp_scan_record scan_record; /* empty without passes that can be judged */
	struct nrp_scan_periods periods;
	struct nrp_scan_verify scan;
	bool has_scan; /* the capture has passes that can be judged */
	struct nrp_lock_host locks;
	struct nrp_hugetlb_result hugetlb; /* as on record */
	int hugetlb_host;                  /* hugetlb.count variant; -1: no decision shows it */
	struct nrp_lock_contention contention;
	struct nrp_verify_note note[NRP_MAX_VERIFY_NOTES];
	size_t nr_notes;
};

/* Verifies one capture; nrp_verify_clear() frees, after a failure too. */
int nrp_verify_run(struct nrp_verify *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, struct nrp_error *err);

void nrp_verify_clear(struct nrp_verify *verify);

/* "window_edges", "lost_events", "unjoined"; NULL for NRP_EXPLAINED_NOT. */
const char *nrp_explained_name(enum nrp_explained explained);

/* The host part of a filter call that a capture's facts give. */
struct nrp_filter_host nrp_filter_host_of(const struct nrp_host_facts *facts);
/* Makes a filter call from a hint fault; false: the filter was not called, or inputs are missing.
 */
bool nrp_filter_call_of(struct nrp_filter_call *ret, const struct nrp_host_facts *facts,
			const struct nrp_hint_fault *fault);

/*
 * Share of the events with a record of their kind, 0 .. 1, that fitted into none. Captures that are
 * whole have next to none: above NRP_UNJOINED_LIMIT begins or ends are missing as if they were
 * lost.
 */
double nrp_unjoined_share(const struct nrp_capture *capture);
#define NRP_UNJOINED_LIMIT 0.01

#endif
