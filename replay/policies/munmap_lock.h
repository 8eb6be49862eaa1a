/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * munmap.lock: how does munmap() hold the mmap_lock (mmap_sem before 5.8) while it unmaps?
 * A re-telling of do_munmap() up to 4.19, of three patch versions that were posted in 2018, and of
 * what was merged in 4.20 (spec mmap-hugetlb.md 1.1 - 1.3).
 */
#ifndef NRP_POLICY_MUNMAP_LOCK_H
#define NRP_POLICY_MUNMAP_LOCK_H

#include <stdbool.h>
#include <stdint.h>

enum nrp_munmap_variant {
	NRP_MUNMAP_WRITE,     /* up to 4.19: all of it under the write lock */
	NRP_MUNMAP_SECTIONS,  /* first version: section by section, the lock given up in between */
	NRP_MUNMAP_TWO_PHASE, /* second: zap under the read lock, detach under the write lock */
	NRP_MUNMAP_TWO_PHASE_AS_POSTED, /* second, to the letter: never zaps early, so as write */
	NRP_MUNMAP_TWO_PHASE_DEAD, /* third: marks the VMAs dead, then zaps under the read lock */
	NRP_MUNMAP_DOWNGRADE,      /* 4.20: detach, downgrade, zap */
	NRP_NR_MUNMAP_VARIANTS
};

/* 1 GiB: what a PUD maps on x86-64 and on arm64 with pages of 4 KiB. */
#define NRP_MUNMAP_THRESHOLD (UINT64_C(1) << 30)

struct nrp_munmap_params {
	enum nrp_munmap_variant variant;
	uint64_t threshold; /* bytes, >= 4096: section of the first version, least length of the
			       others */
};

/* The work of one call, in the order in which it is done. */
struct nrp_munmap_work {
	uint64_t find, detach, zap, pgtables, free; /* ns, together below 2^63 */
	uint64_t length;                            /* bytes, up to whole pages; > 0 */
	bool special;     /* a VMA of it is VM_LOCKED, VM_HUGETLB or VM_PFNMAP, or has uprobes */
	bool keeps_write; /* never downgrades: its caller, or a neighbour that grows (5.8 - 6.4) */
};

/* How a hold follows on the one before it. */
enum nrp_munmap_step {
	NRP_MUNMAP_REQUEST,   /* the lock is given up and requested anew; the first hold, too */
	NRP_MUNMAP_IF_WANTED, /* the same if others wait and the task should yield; else it is kept
			       */
	NRP_MUNMAP_DOWNGRADE_STEP, /* the write lock becomes a read lock, without a release */
};

struct nrp_munmap_hold {
	bool write;
	enum nrp_munmap_step step;
	uint64_t ns;
};

/* What a fault inside the range finds when it gets its lock. */
enum nrp_munmap_sight {
	NRP_MUNMAP_NORMAL,      /* what was there */
	NRP_MUNMAP_REPOPULATED, /* a new page: the old one was zapped already */
	NRP_MUNMAP_SEGV,        /* no mapping */
};

/* How far a call has come then. */
struct nrp_munmap_progress {
	bool started;   /* it got its first hold */
	uint64_t ended; /* holds that it has behind it */
	uint64_t ns;    /* since the first one began */
};

const char *nrp_munmap_variant_name(enum nrp_munmap_variant variant);
/*
 * Hold number @i of a call, from 0 on; false behind the last. A call has as many as its length has
 * thresholds, so they are not kept anywhere.
 */
bool nrp_munmap_hold(const struct nrp_munmap_params *params, const struct nrp_munmap_work *work,
		     uint64_t i, struct nrp_munmap_hold *ret);
/*
 * At @offset bytes (< length) of the range; modelled where it hangs on what is zapped so far: page
 * after page at one pace (spec 1.5).
 */
enum nrp_munmap_sight nrp_munmap_fault_sees(const struct nrp_munmap_params *params,
					    const struct nrp_munmap_work *work,
					    const struct nrp_munmap_progress *progress,
					    uint64_t offset);

#endif
