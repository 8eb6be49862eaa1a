/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which scan passes armed which addresses, per address space. */
#ifndef NRP_SCAN_HISTORY_H
#define NRP_SCAN_HISTORY_H

#include "numareplay/record.h"

#include <stdbool.h>

#define NRP_HISTORY_WORLDS 32 /* bits of kept */

struct nrp_armed_range {
	uint64_t start, end, time;
	uint32_t kept; /* bit w: world w has this pass */
};

struct nrp_mm_history {
	struct nrp_armed_range *ranges; /* in time order */
	size_t count, room;
	bool single_threaded;                       /* mm_users was 1 at the last pass */
	uint32_t kept;                              /* of the pass that is running */
	uint64_t last_kept[NRP_HISTORY_WORLDS];     /* time of the last pass that a world kept */
	uint64_t differs_since[NRP_HISTORY_WORLDS]; /* first decision that differs, 0: none */
};

struct nrp_scan_history;

struct nrp_scan_history *nrp_scan_history_new(void);
struct nrp_scan_history *nrp_scan_history_free(struct nrp_scan_history *history);
/* The address space, made on first use; NULL: out of memory. Valid until the next call. */
struct nrp_mm_history *nrp_scan_history_mm(struct nrp_scan_history *history, uint64_t mm);
int nrp_mm_history_add(struct nrp_mm_history *mm, uint64_t start, uint64_t end, uint64_t time);
/*
 * The newest range that covers @addr and began before @time; NULL: none, or none among the last
 * few thousand (then *ret_unsure is set).
 */
const struct nrp_armed_range *nrp_mm_history_armed(const struct nrp_mm_history *mm, uint64_t addr,
						   uint64_t time, bool *ret_unsure);
/* Ranges that cover @addr and began in (@from, @to]. */
uint64_t nrp_mm_history_count(const struct nrp_mm_history *mm, uint64_t addr, uint64_t from,
			      uint64_t to);

#endif
