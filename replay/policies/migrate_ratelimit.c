/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.ratelimit: numamigrate_update_ratelimit(), mm/migrate.c; spec migrate.md 1.1-1.3. Removed
 * for 4.19 by efaffc5e40ae. The trylock form existed between two commits on the way there.
 *
 * Memory bandwidth is for the program, not for moving its pages: at most about 128 MiB per 100 ms
 * may be pulled to one node. The first attempt after the end of a window opens the next one;
 * an attempt is charged before anybody knows whether the move succeeds, and is never refunded.
 * Overlapping attempts are the matter of migrate_ratelimit_race.c.
 */
#include "replay/policies/migrate_ratelimit.h"
#include "replay/policies/ticks.h"

#include "replay/policies/migrate_ratelimit_step.h"

#define QUOTA_BYTES (UINT64_C(128) << 20)

const char *nrp_ratelimit_variant_name(enum nrp_ratelimit_variant variant)
{
	switch (variant) {
	case NRP_RATELIMIT_SPIN:
		return "spin";
	case NRP_RATELIMIT_TRYLOCK:
		return "trylock";
	case NRP_RATELIMIT_SPIN_GRID:
		return "spin-grid";
	case NRP_RATELIMIT_TRYLOCK_STRETCH:
		return "trylock-stretch";
	case NRP_RATELIMIT_NONE:
		return "none";
	case NRP_NR_RATELIMIT_VARIANTS:
		break;
	}
	return NULL;
}

bool nrp_ratelimit_on_grid(enum nrp_ratelimit_variant variant)
{
	return variant == NRP_RATELIMIT_TRYLOCK || variant == NRP_RATELIMIT_SPIN_GRID;
}

uint64_t nrp_ratelimit_interval(uint64_t ms, uint64_t hz)
{
	return nrp_ms_to_ticks(ms, hz);
}

uint64_t nrp_ratelimit_quota(uint64_t page_size)
{
	return QUOTA_BYTES / page_size;
}

bool nrp_ratelimit_admit(const struct nrp_ratelimit_params *params,
			 struct nrp_ratelimit_window *window, uint64_t jiffies, uint64_t pages)
{
	if (params->variant == NRP_RATELIMIT_NONE)
		return true;

	/* With one attempt at a time a lock of either kind is free. */
	if (nrp_ratelimit_expired(window->end, jiffies)) {
		window->pages = 0;
		window->end = nrp_ratelimit_next_end(params, window->end, jiffies);
	}

	/* "More than", and before adding: one attempt more than the quota passes. */
	if (window->pages > params->quota)
		return false;
	window->pages += pages;
	return true;
}
