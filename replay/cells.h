/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cells: the stretches of a VMA that the scanner arms as a whole, cut at multiples of the huge page
 * size. A cell is named by its first address.
 */
#ifndef NRP_CELLS_H
#define NRP_CELLS_H

#include <stdint.h>

/* The cell of @addr in the VMA that begins at @vm_start. */
static inline uint64_t nrp_cell_of(uint64_t huge_size, uint64_t vm_start, uint64_t addr)
{
	uint64_t start = addr - addr % huge_size;

	return start > vm_start ? start : vm_start;
}

/* First address behind the cell of @addr. */
static inline uint64_t nrp_cell_next(uint64_t huge_size, uint64_t addr)
{
	uint64_t left = huge_size - addr % huge_size;

	return left > UINT64_MAX - addr ? UINT64_MAX : addr + left;
}

#endif
