/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Results that go into tables of their own. All run inside the caller's transaction. */
#ifndef NRP_RESULTS_INTERNAL_H
#define NRP_RESULTS_INTERNAL_H

#include "analysis/compare.h"

#include <errno.h>

/* analysis/results_scan.c: what recorded scans did with each VMA; replaces what was there. */
int nrp_save_scan_record(const struct nrp_scan_record *record, struct nrp_store *store,
			 int64_t capture_id, struct nrp_error *err);
/* .. and those of lanes with a scanner of their own, and where these leave the record. */
int nrp_save_scan_lanes(const struct nrp_comparison *c, struct nrp_store *store,
			const struct nrp_replay *replay, struct nrp_error *err);
/* analysis/results_faults.c: how faults ended, faulting nodes, processes. */
int nrp_save_faults(const struct nrp_comparison *c, struct nrp_store *store,
		    const struct nrp_replay *replay, struct nrp_error *err);

/* Five columns from @i on: value, lower, upper, class, tier. Both return the next column. */
int nrp_results_bind_quantity(sqlite3_stmt *s, int i, const struct nrp_quantity *q);
/* -1: a number that no comparison gives. */
int nrp_results_load_quantity(sqlite3_stmt *s, int i, struct nrp_quantity *q);

/* Runs a statement whose values are bound, and makes it ready for the next ones. */
int nrp_results_step(sqlite3_stmt *s, struct nrp_store *store, struct nrp_error *err);
/* Of a statement that could not be prepared. */
static inline int nrp_results_code(const struct nrp_error *err)
{
	return err ? err->code : -EIO;
}

#endif
