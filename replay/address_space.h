/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address spaces as a replay follows them: which scan passes armed which addresses, on which nodes
 * the threads are, and which page sizes are in use.
 */
#ifndef NRP_ADDRESS_SPACE_H
#define NRP_ADDRESS_SPACE_H

#include "numareplay/record.h"

#include <stdbool.h>

#define NRP_HISTORY_WORLDS 32 /* bits of kept */
#define NRP_NO_RANGE UINT32_MAX

struct nrp_armed_range {
	uint64_t start, end, time;
	uint32_t kept; /* bit w: world w has this pass */
	uint32_t vma;  /* number in the locality book */
};

/* Addresses whose newest arming is one range. */
struct nrp_armed_segment {
	uint64_t start, end;
	uint32_t range;
};

/*
 * Seconds for which at least one thread of the address space was on a node, as a clock that can be
 * read at the present time.
 */
struct nrp_presence {
	uint32_t threads;
	double seconds; /* until since */
	double since;   /* s; meaningful while threads > 0 */
};

struct nrp_mm {
	uint64_t mm;                    /* the kernel's pointer */
	struct nrp_armed_range *ranges; /* in time order */
	size_t count, room;
	struct nrp_armed_segment *segments; /* by address, not overlapping */
	size_t nr_segments, segment_room, hit;
	struct nrp_presence *presence;     /* [nr_nodes] */
	bool single_threaded;              /* mm_users was 1 at the last pass */
	uint64_t task_pairs, task_repeats; /* faults after a task's last event; from its node */
	uint64_t passes;                   /* so far */
	uint64_t arrivals;                 /* of threads on a node where they were not before */
	uint32_t orders;                   /* bit o: pages of 2^o base pages were seen */
	uint32_t kept;                     /* of the pass that is running */
	uint32_t diverged;                 /* bit w: world w has a decision that differs */
	uint64_t last_kept[NRP_HISTORY_WORLDS]; /* time of the last pass that a world kept */
};

struct nrp_address_spaces;

/* NULL: out of memory. */
struct nrp_address_spaces *nrp_address_spaces_new(int nr_nodes);
struct nrp_address_spaces *nrp_address_spaces_free(struct nrp_address_spaces *spaces);
/* Number of the address space, made on first use, from 0; -ENOMEM. */
int64_t nrp_address_space_of(struct nrp_address_spaces *spaces, uint64_t mm);
/* The same, if it was the one found last; else -1. */
int64_t nrp_address_space_again(const struct nrp_address_spaces *spaces, uint64_t mm);
struct nrp_mm *nrp_address_space(struct nrp_address_spaces *spaces, uint32_t number);
uint32_t nrp_nr_address_spaces(const struct nrp_address_spaces *spaces);

/* Frees what an address space holds, for those that stand alone. */
void nrp_mm_clear(struct nrp_mm *mm);
/* Adds a range to the pass that is running. Empty ranges are left out. -ENOMEM. */
int nrp_mm_arm(struct nrp_mm *mm, uint64_t start, uint64_t end, uint64_t time, uint32_t vma);
/*
 * Index of the newest range that covers @addr and began before @time. NRP_NO_RANGE: none, or none
 * among the last few thousand (then *ret_unsure is set).
 */
uint32_t nrp_mm_armed(struct nrp_mm *mm, uint64_t addr, uint64_t time, bool *ret_unsure);
/* The same range itself; NULL where it is NRP_NO_RANGE. */
const struct nrp_armed_range *nrp_mm_newest(struct nrp_mm *mm, uint64_t addr, uint64_t time);
/* Ranges that cover @addr and began in (@from, @to]. */
uint64_t nrp_mm_count(const struct nrp_mm *mm, uint64_t addr, uint64_t from, uint64_t to);

/* Presence clock of a node at @now (s). */
static inline double nrp_presence_at(const struct nrp_presence *p, double now)
{
	return p->threads ? p->seconds + (now - p->since) : p->seconds;
}

#endif
