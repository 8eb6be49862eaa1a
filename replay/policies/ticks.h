/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef NRP_TICKS_H
#define NRP_TICKS_H

#include <stdint.h>

/* Ticks of @ms at @hz ticks a second, rounded up as msecs_to_jiffies() does. */
static inline uint64_t nrp_ms_to_ticks(uint64_t ms, uint64_t hz)
{
	/* Whole seconds apart, so that the product stays small for any period a kernel knows. */
	return ms / 1000 * hz + (ms % 1000 * hz + 999) / 1000;
}

#endif
