/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What memory samples (memory_sample, from a side file of perf) say about local and remote loads: a
 * measure to hold the estimate of remote accesses against. Nothing here is an estimate.
 */
#ifndef NRP_MEMORY_SAMPLES_H
#define NRP_MEMORY_SAMPLES_H

#include "numareplay/store.h"

/* Sampled loads of one mapping: VMAs of one address space that overlap count as one. */
struct nrp_samples_area {
	uint64_t mm;
	uint64_t start, end; /* bytes; 0 0: in no VMA that a fault or scan names */
	uint64_t local_loads, remote_loads;
};

struct nrp_samples_summary {
	uint64_t records;
	bool counted;      /* by counters, so that all loads are in it; else sampled ones */
	bool local_known;  /* local_loads was counted; always true of samples */
	bool remote_known; /* the same of remote_loads */
	bool scaled;       /* a counter shared its register: perf scaled its counts up */
	/*
	 * Loads that memory of the CPU's own node and of another node answered. Sampled: records of
	 * loads, or of accesses that do not say what they are. Counted: accesses, summed.
	 */
	uint64_t local_loads, remote_loads;
	uint64_t local_period,
		remote_period;       /* sampled: the same in events of the sampling event */
	uint64_t remote_with_period; /* sampled: remote loads that have one */
	bool incomplete;         /* some of the file was left out, or lies outside the capture */
	uint64_t cache_loads;    /* sampled: answered by a cache, of any node */
	uint64_t unknown_loads;  /* sampled: answered by nobody knows whom */
	uint64_t other_accesses; /* sampled: stores, prefetches */
	uint64_t first, last;    /* ns: first record to end of the last one */
	uint64_t span;           /* ns: counted: sum of the intervals; sampled: last - first */
	struct nrp_samples_area *area; /* by mm and start; sampled loads from memory only */
	size_t nr_areas;
	uint64_t unplaced; /* such loads of threads whose address space is not on record, or that
			      have no address */
};

/*
 * Adds up the memory samples of a capture; all 0 without any. The address space of a thread is the
 * one in which it last faulted or scanned, else the first one after.
 */
int nrp_samples_summary(struct nrp_samples_summary *ret, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err);
void nrp_samples_summary_clear(struct nrp_samples_summary *summary);

#endif
