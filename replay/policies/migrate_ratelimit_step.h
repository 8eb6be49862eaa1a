/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps of migrate.ratelimit that the serial policy and the race enumeration share (spec
 * migrate.md 1.1, 1.2). Private to replay/policies/migrate_ratelimit*.c.
 */
#ifndef NRP_POLICY_MIGRATE_RATELIMIT_STEP_H
#define NRP_POLICY_MIGRATE_RATELIMIT_STEP_H

#include "replay/policies/migrate_ratelimit.h"

/* The kernel's time_after(jiffies, end): strict, and right across a wrap of jiffies. */
static inline bool nrp_ratelimit_expired(uint64_t end, uint64_t jiffies)
{
	return (int64_t)(end - jiffies) < 0;
}

/*
 * The end of the window that an attempt at @jiffies opens, where @end was the old one.
 * Stretched: one interval from now. Grid: the first of @end, @end + interval, @end + 2 * interval..
 * that is not before now; the kernel finds it by adding one interval at a time.
 */
static inline uint64_t nrp_ratelimit_next_end(const struct nrp_ratelimit_params *params,
					      uint64_t end, uint64_t jiffies)
{
	uint64_t late = jiffies - end;

	if (!nrp_ratelimit_on_grid(params->variant))
		return jiffies + params->interval;
	if (!nrp_ratelimit_expired(end, jiffies))
		return end;
	/* late >= 1 here, so this is interval * ceil(late / interval) without overflow. */
	return end + params->interval * ((late - 1) / params->interval + 1);
}

#endif
