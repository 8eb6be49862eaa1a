/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recorded scan passes of a capture with their decisions, in memory. */
#ifndef NRP_SCAN_TRACE_H
#define NRP_SCAN_TRACE_H

#include "numareplay/store.h"
#include "replay/policies/scan_vma.h"

/* Bytes: limit on a range that is read, and on what a pass may arm. */
#define NRP_MAX_SCAN_RANGE (UINT64_C(1) << 36)

/* One range or skip of a pass. */
struct nrp_scan_decision {
	bool range;
	bool pages_known, state_known, flags_known, vma_known;
	uint8_t reason; /* of a skip: enum nrp_skip_reason */
	uint32_t ordinal;
	uint64_t time;       /* ns */
	uint64_t start, end; /* of a range */
	uint64_t vm_start, vm_end, vm_flags;
	uint64_t pages; /* entries armed */
	struct nrp_scan_vma_state state;
	size_t pass;
};

#define NRP_NO_PASS SIZE_MAX

struct nrp_scan_visit {
	struct nrp_scan_pass rec;
	uint32_t space;      /* number of the address space: an mm pointer may be used again */
	size_t first, count; /* decisions, in order */
	size_t next;         /* next pass of the space that began after this one ended */
	bool walked;         /* not an early return */
	bool judged;         /* all facts are there */
	bool reset_before;   /* a fork set the sequence to 0 since the pass before */
	bool lost_before;    /* events were lost since then */
};

struct nrp_scan_trace {
	struct nrp_scan_visit *pass; /* in time order */
	size_t nr_passes;
	struct nrp_scan_decision *decision;
	size_t nr_decisions;
	uint32_t nr_spaces;
	int32_t *most_threads; /* [nr_spaces]: of the thread group, in any pass; 0: not known */
	bool has_skips;        /* skipped VMAs are on record */
	bool has_state;        /* so is the VMAs' state */
	bool sees_all;         /* every eligible VMA that a pass comes by is on record */
};

/* -ENODATA: there are passes, but none with jiffies, sequence and offset. */
int nrp_scan_trace_load(struct nrp_scan_trace *ret, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err);
void nrp_scan_trace_clear(struct nrp_scan_trace *trace);

/*
 * Threads that rule d of scan.vma goes by: those of the pass, else at least 1 and at most what any
 * pass of the space shows, or what no process has.
 */
struct nrp_scan_threads {
	int32_t least, most;
};
struct nrp_scan_threads nrp_scan_visit_threads(const struct nrp_scan_trace *trace,
					       const struct nrp_scan_visit *visit);
/* Did the walk reach the end of the address space? false if not known. */
bool nrp_scan_visit_reached_end(const struct nrp_scan_trace *trace,
				const struct nrp_scan_visit *visit);

#endif
