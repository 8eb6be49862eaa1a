/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small captures of scan passes, written by hand. Times in ms, addresses in MB; 1000 ticks a
 * second. */
#ifndef NRP_TESTS_SCAN_RECORDS_H
#define NRP_TESTS_SCAN_RECORDS_H

#include "store_util.h"

#include "replay/policies/scan_vma.h"

#define MB (UINT64_C(1) << 20)
#define MS UINT64_C(1000000)
#define PAGE UINT64_C(4096)
#define MM UINT64_C(0xff00)
#define PRIVATE_RW UINT64_C(0x100073)
#define CHILD_MM UINT64_C(0xee00)

struct scan_records {
	struct nrp_store *store;
	struct nrp_capture capture;
	struct nrp_writer *writer;
	char path[64];
	/* Of the pass under construction. */
	uint64_t pass_ms;
	int32_t tid, seq;
	uint64_t offset;
	uint32_t ordinal;
	int32_t nr_threads;   /* of all passes; 1 at first */
	bool no_threads;      /* the passes that follow do not record it */
	uint64_t mm;          /* of the records that follow; MM at first */
	uint64_t armed_pages; /* that passes which follow armed in their one range; 0: none */
	uint64_t ticks;       /* that the clock goes on during each pass; 0 at first */
};

/* A file of its own; scan size 256 MB, delay 1000 ms, CPUs 0 and 1 on nodes 0 and 1. */
void scan_records_begin(struct scan_records *r, bool with_skips);
/* Commits; the capture can be read then. */
void scan_records_commit(struct scan_records *r);
void scan_records_end(struct scan_records *r);

/* A pass that begins at @ms and takes 1 ms; its ranges and skips follow. */
void add_pass(struct scan_records *r, uint64_t ms, int32_t tid, int32_t seq, uint64_t offset_mb);
void add_pass_until(struct scan_records *r, uint64_t ms, uint64_t end_ms, int32_t tid, int32_t seq,
		    uint64_t offset_mb);
/* @state: of the VMA, NULL: not recorded. */
void add_range(struct scan_records *r, uint64_t start_mb, uint64_t end_mb, uint64_t vm_start_mb,
	       uint64_t vm_end_mb, uint64_t pages, const struct nrp_scan_vma_state *state);
void add_skip(struct scan_records *r, uint64_t vm_start_mb, uint64_t vm_end_mb,
	      enum nrp_skip_reason reason);
/* A hinting fault at @offset pages into the VMA, counted, that moves it from node 1 to 0. */
void add_fault(struct scan_records *r, uint64_t us, int32_t tid, uint64_t vm_start_mb,
	       uint64_t vm_end_mb, uint64_t offset);
void add_life(struct scan_records *r, uint64_t ms, int kind, int32_t tid, int32_t child);
void add_unmap(struct scan_records *r, uint64_t ms, uint64_t start_mb, uint64_t end_mb);
void add_loss(struct scan_records *r, uint64_t ms, uint64_t end_ms);

#endif
