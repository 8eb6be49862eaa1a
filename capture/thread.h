/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Per-thread state of the joiner: the records that are being put together. */
#ifndef NRP_THREAD_H
#define NRP_THREAD_H

#include "numareplay/record.h"

#include <stdbool.h>

#define NRP_HUGETLB_OPS 7 /* NRP_HUGETLB_FAULT .. NRP_HUGETLB_MOVED: one may be open of each */

struct nrp_thread {
	int32_t tid;
	int32_t tgid; /* 0: not named by any event so far */

	bool fault_open;
	bool filter_open;             /* filter_begin without filter_end */
	bool attempt_open;            /* between the first and the last event of the attempt */
	struct nrp_hint_fault *fault; /* the writer's row that is filled; NULL: none so far */
	uint64_t *weights;            /* [4 * nodes] of the open fault; allocated once */
	uint32_t weight_nodes;        /* 0: the fault has no weights */

	bool pass_open, range_open;
	uint32_t ordinal; /* of the next range or skip in the pass */
	struct nrp_scan_pass pass;
	struct nrp_scan_range range;

	bool wait_open, munmap_open, call_open;
	struct nrp_migration_wait wait;
	struct nrp_munmap munmap;
	struct nrp_mm_call call;
	uint64_t contended; /* rw_semaphore that it waits for in line, 0: none */
	bool contended_write;

	bool hugetlb_open[NRP_HUGETLB_OPS];
	struct nrp_hugetlb hugetlb[NRP_HUGETLB_OPS];

	uint64_t migrate_start; /* time of mm_migrate_pages_start, 0: none */
};

struct nrp_thread_table;

struct nrp_thread_table *nrp_thread_table_new(void);
struct nrp_thread_table *nrp_thread_table_free(struct nrp_thread_table *table);
/* State of a thread, made on first use; NULL: out of memory. The idle tasks (tid 0) are told apart
 * by CPU. */
struct nrp_thread *nrp_thread_get(struct nrp_thread_table *table, int32_t tid, uint32_t cpu);
/* The i-th thread in order of first appearance; NULL behind the last. */
struct nrp_thread *nrp_thread_at(struct nrp_thread_table *table, size_t i);

#endif
