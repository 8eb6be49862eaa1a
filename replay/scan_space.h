/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which VMAs an address space has, as far as the record shows: visits of the scanner, hinting
 * faults and munmap() add, resize and remove them. Several lanes keep their own per-VMA state of
 * the same list.
 *
 * When a VMA is cut or grows, the kernel's object that keeps the state is the one that survives
 * (spec scan.md 2.1): growing keeps it; each half split off is a new object. The kernel splits
 * around what a call changes, so that the changed part is the old one: where its kind shows which
 * that is, it is taken; else the inner part of three, and the upper of two. Where VMAs merge the
 * specification names no survivor: one whose kind is that of the whole, the lower of equals. If
 * equals had states that differ, the choice is counted in open_merges.
 */
#ifndef NRP_SCAN_SPACE_H
#define NRP_SCAN_SPACE_H

#include "replay/policies/scan_vma.h"

#define NRP_MAX_SPACE_VMAS (1 << 20) /* limit on the VMAs of one address space */
#define NRP_NO_AREA SIZE_MAX

struct nrp_scan_area {
	uint64_t start, end;
	enum nrp_scan_vma_class class;
	size_t report; /* index of the user's data about it; NRP_NO_AREA: none yet */
};

struct nrp_scan_space {
	struct nrp_scan_area *area; /* ascending */
	size_t nr_areas;
	struct nrp_scan_mm *lane; /* [nr_lanes]; their VMAs are in the order of area */
	size_t nr_lanes;
	uint64_t open_merges; /* nobody knows whose state survived */
};

int nrp_scan_space_init(struct nrp_scan_space *space, size_t nr_lanes);
void nrp_scan_space_clear(struct nrp_scan_space *space);

/*
 * What a look at the address space showed: @seen, ascending and apart, are there (their report is
 * ignored), and nothing else is in the @nr_walked stretches of @walked. -ENOMEM, -E2BIG.
 */
struct nrp_scan_stretch {
	uint64_t start, end;
};
int nrp_scan_space_see(struct nrp_scan_space *space, const struct nrp_scan_area *seen,
		       size_t nr_seen, const struct nrp_scan_stretch *walked, size_t nr_walked);
/* munmap() of [@start, @end). */
int nrp_scan_space_unmap(struct nrp_scan_space *space, uint64_t start, uint64_t end);
/* Index of the VMA that holds @addr, or NRP_NO_AREA. */
size_t nrp_scan_space_find(const struct nrp_scan_space *space, uint64_t addr);

#endif
