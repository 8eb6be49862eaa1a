/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jiffies between records that hold them: the last known ones, and the clock since. */
#ifndef NRP_TICK_CLOCK_H
#define NRP_TICK_CLOCK_H

#include <stdint.h>

struct nrp_tick_clock {
	uint32_t hz;          /* ticks/s, at least 1 */
	uint64_t time, ticks; /* ns and jiffies of the last record with both; time 0: none yet */
};

static inline void nrp_tick_clock_set(struct nrp_tick_clock *clock, uint64_t time, uint64_t ticks)
{
	clock->time = time;
	clock->ticks = ticks;
}

/* Ticks that are over at @time, ns, if all came on time: there may be one more. */
static inline uint64_t nrp_tick_clock_at(const struct nrp_tick_clock *clock, uint64_t time)
{
	const uint64_t ns_per_s = 1000000000;
	uint64_t ns = time > clock->time ? time - clock->time : 0;

	return clock->ticks + ns / ns_per_s * clock->hz + ns % ns_per_s * clock->hz / ns_per_s;
}

#endif
