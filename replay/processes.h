/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What single address spaces have on record and in the lanes, beside the totals. */
#ifndef NRP_PROCESSES_H
#define NRP_PROCESSES_H

#include "replay/waits.h"
#include "replay/worlds.h"

enum nrp_process_measure {
	NRP_PROCESS_FAULTS,  /* hinting faults */
	NRP_PROCESS_MOVED,   /* base pages that they moved */
	NRP_PROCESS_WAITS,   /* of its tasks for pages under migration */
	NRP_PROCESS_WAIT_NS, /* ns; an open wait counts 0 */
	NRP_NR_PROCESS_MEASURES
};

/* One address space; a pointer that was used again is one. */
struct nrp_process {
	uint64_t mm;
	uint64_t record[NRP_NR_PROCESS_MEASURES];
	/* In the worlds of each lane that did not run: in the central one, least and most. */
	struct {
		uint64_t value[NRP_NR_PROCESS_MEASURES];
		uint64_t least[NRP_NR_PROCESS_MEASURES], most[NRP_NR_PROCESS_MEASURES];
	} lane[2];
};

struct nrp_processes {
	struct nrp_process *at; /* by mm */
	size_t count;
	/* Sums of a lane's least and most over all worlds, each world as a whole. */
	uint64_t least[2][NRP_NR_PROCESS_MEASURES], most[2][NRP_NR_PROCESS_MEASURES];
};

/* Which worlds have which wait, while the faults are fed. */
struct nrp_kept_waits;

/* *ret is NULL where there are no waits. -ENOMEM. */
int nrp_kept_waits_new(struct nrp_kept_waits **ret, const struct nrp_waits *waits);
struct nrp_kept_waits *nrp_kept_waits_free(struct nrp_kept_waits *kept);
/* A fault that made others wait: bit w of @worlds: world w makes its attempt, too. */
void nrp_kept_waits_fault(struct nrp_kept_waits *kept, uint64_t time, int32_t tid, uint32_t worlds);

/*
 * After nrp_worlds_finish(). @first: first world of each lane, -1: it ran; @nr: so many worlds. A
 * wait whose cause is not known is in the worlds' most, but not in their least.
 */
int nrp_processes_collect(struct nrp_processes *ret, struct nrp_worlds *worlds,
			  const struct nrp_waits *waits, const struct nrp_kept_waits *kept,
			  const int first[2], const int nr[2]);
void nrp_processes_clear(struct nrp_processes *processes);

#endif
