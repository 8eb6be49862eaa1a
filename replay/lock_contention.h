/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waits in line for rw_semaphores (lock:contention_begin and _end, 5.19 on): what is left to say of
 * mmap_locks where their own events are not on record. A wait begins when its task gets in line,
 * behind its spinning, so that sums are lower bounds; who holds the lock, and for how long, is not
 * said (spec mmap-hugetlb.md 1.9).
 */
#ifndef NRP_LOCK_CONTENTION_H
#define NRP_LOCK_CONTENTION_H

#include "numareplay/store.h"

/* Waits to read, or to write. */
struct nrp_contention_waits {
	uint64_t waits, ns, longest, p99; /* ns; of those whose end is on record */
	uint64_t open;                    /* without end on record */
	uint64_t left;                    /* of waits: ended without the lock */
};

struct nrp_contended_lock {
	uint64_t sem;                      /* the kernel's pointer */
	uint64_t mm;                       /* address space whose mmap_lock it is; 0: not known */
	struct nrp_contention_waits by[2]; /* read, write */
};

#define NRP_CONTENDED_LISTED 16

struct nrp_lock_contention {
	bool known;          /* waits are on record */
	bool has_offset;     /* of the mmap_lock in its mm: learned, and always the same */
	uint64_t offset;     /* bytes */
	uint64_t samples;    /* from which it was learned */
	bool conflicting;    /* they do not agree: no lock is tied to an address space */
	uint64_t locks;      /* rw_semaphores with waits */
	uint64_t mmap_locks; /* of these, tied to an address space */
	struct nrp_contention_waits of_mms[2], nameless[2]; /* sums, longest; p99 of all of them */
	struct nrp_contended_lock listed[NRP_CONTENDED_LISTED]; /* longest sums first */
	size_t nr_listed;
};

/*
 * Reads the records. The offset of the mmap_lock in its mm is a constant of the kernel's build: it
 * is learned from a downgrade_write() inside a munmap() whose mm is known, or from waits between
 * mmap_lock events. A lock counts as an mmap_lock if what lies that far before it is an address
 * space on record.
 */
int nrp_lock_contention_load(struct nrp_lock_contention *ret, struct nrp_store *store,
			     const struct nrp_capture *capture, struct nrp_error *err);

#endif
