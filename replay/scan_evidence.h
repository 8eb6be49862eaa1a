/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the record says about entries that another lane arms: did its arming change anything, and
 * which recorded faults does the lane have too; spec scan.md 6 and 7.2.
 *
 * Kept per page and per cell. A cell is the part of one huge-page-aligned stretch that lies in one
 * VMA: ranges of every variant consist of whole cells.
 */
#ifndef NRP_SCAN_EVIDENCE_H
#define NRP_SCAN_EVIDENCE_H

#include "numareplay/record.h"
#include "replay/policies/scan_pte.h"

#include <stddef.h>

/* Runs of one lane: every unknown fact is taken both ways. */
#define NRP_SCAN_RUNS 4
#define NRP_RUN_ARMS 1u     /* bit of a run: a range that may have armed something did */
#define NRP_RUN_POSSIBLE 2u /* a fault that the lane may have had, it had */

#define NRP_MAX_EVIDENCE_RUNS 32 /* of all lanes that share the evidence */

struct nrp_scan_evidence;

/* Sizes in bytes; up to NRP_MAX_EVIDENCE_RUNS runs, of any lanes. NULL: out of memory. */
struct nrp_scan_evidence *nrp_scan_evidence_new(uint64_t page_size, uint64_t huge_size,
						unsigned int nr_runs);
struct nrp_scan_evidence *nrp_scan_evidence_free(struct nrp_scan_evidence *evidence);

/* A range, recorded or of a lane. */
struct nrp_scan_evidence_range {
	uint32_t space;
	uint64_t time; /* ns, above 0 */
	uint64_t start, end, vm_start;
};

/* Under which conditions a lane scans. */
struct nrp_scan_evidence_pass {
	bool single_threaded; /* one user of the mm: local pages are not armed */
	int nid;              /* node of the scanning CPU, -1 unknown */
};

/*
 * Would run @run of the lane arm anything in this range? @recorded_pages: entries that the record's
 * own pass armed in the same range at the same time, -1: it has no such range, or does not say.
 */
int nrp_scan_evidence_arms(struct nrp_scan_evidence *evidence, unsigned int run,
			   const struct nrp_scan_evidence_range *range,
			   const struct nrp_scan_evidence_pass *pass, int64_t recorded_pages,
			   enum nrp_known *ret);
/* The lane armed it; @as_host: so did the host, in the same pass. */
int nrp_scan_evidence_lane_range(struct nrp_scan_evidence *evidence, unsigned int run,
				 const struct nrp_scan_evidence_range *range,
				 const struct nrp_scan_evidence_pass *pass, bool as_host);
/* The host armed it: after every lane has run the pass. @pages: entries, -1 unknown. */
int nrp_scan_evidence_range(struct nrp_scan_evidence *evidence,
			    const struct nrp_scan_evidence_range *range, int64_t pages);
/*
 * A recorded fault: does each run have it too (censoring rule: YES class 1, UNKNOWN class 2, NO
 * class 3)? Also remembers it. @ret has as many as there are runs.
 */
int nrp_scan_evidence_fault(struct nrp_scan_evidence *evidence, uint32_t space, uint64_t vm_start,
			    const struct nrp_hint_fault *fault, enum nrp_known *ret);

#endif
