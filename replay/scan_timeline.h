/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What scan passes show of their address spaces over time: the sequence, and the size. */
#ifndef NRP_SCAN_TIMELINE_H
#define NRP_SCAN_TIMELINE_H

#include "numareplay/store.h"
#include "replay/policies/scan_period.h"

struct nrp_scan_timeline;

/* Reads the scan passes of a capture; nrp_scan_timeline_free() frees. */
int nrp_scan_timeline_load(struct nrp_scan_timeline **ret, struct nrp_store *store,
			   const struct nrp_capture *capture,
			   const struct nrp_scan_tunables *tunables, struct nrp_error *err);
struct nrp_scan_timeline *nrp_scan_timeline_free(struct nrp_scan_timeline *timeline);

#define NRP_MAX_SEQS 3
struct nrp_scan_state {
	int32_t seq[NRP_MAX_SEQS]; /* the sequence is one of these */
	size_t nr_seqs;            /* 0: no pass of this address space is on record */
	/*
	 * Scan windows that its pages fill: what the passes before and after show, if both do; else
	 * one more or less. high 0: no pass shows it.
	 */
	uint64_t windows_low, windows_high;
};
/* At @time, ns. */
struct nrp_scan_state nrp_scan_timeline_at(const struct nrp_scan_timeline *timeline, uint64_t mm,
					   uint64_t time);

#endif
