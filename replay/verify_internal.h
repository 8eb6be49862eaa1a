/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of verify.c. */
#ifndef NRP_VERIFY_INTERNAL_H
#define NRP_VERIFY_INTERNAL_H

#include "replay/verify.h"

/* migrate.filter: one pass over the hint faults. */
struct nrp_filter_check;
int nrp_filter_check_new(struct nrp_filter_check **ret, const struct nrp_host_facts *facts);
void nrp_filter_check_fault(struct nrp_filter_check *check, const struct nrp_hint_fault *fault);
void nrp_filter_check_finish(const struct nrp_filter_check *check, struct nrp_verify_check *ret);
struct nrp_filter_check *nrp_filter_check_free(struct nrp_filter_check *check);

/* migrate.ratelimit: over the attempts. */
int nrp_verify_ratelimit(struct nrp_verify_check *ret, const struct nrp_attempts *attempts,
			 const struct nrp_host_facts *facts, struct nrp_error *err);

/*
 * migrate.outcome, scan.reset and the sticky back-off (replay/verify_lanes.c): adds checks, counts
 * and notes.
 */
int nrp_verify_lanes(struct nrp_verify *v, struct nrp_store *store,
		     const struct nrp_capture *capture, struct nrp_error *err);

/* What the records count, for the comparison with /proc/vmstat. */
struct nrp_trace_counts {
	uint64_t hint_faults, local_faults;
	uint64_t thp_moved_pages, thp_failed_pages; /* by migrate_misplaced_transhuge_page */
	uint64_t moved_pages;                       /* by the faults' own flag */
	bool has_migrations;
	uint64_t numa_succeeded, all_succeeded, all_failed; /* mm_migrate_pages */
	uint64_t armed_pages;
};
void nrp_count_fault(struct nrp_trace_counts *counts, const struct nrp_hint_fault *fault,
		     const struct nrp_host_facts *facts);
int nrp_verify_counters(struct nrp_verify *v, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_trace_counts *counts,
			struct nrp_error *err);

void nrp_verify_note(struct nrp_verify *v, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
