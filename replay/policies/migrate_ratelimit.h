/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.ratelimit: how many pages per window may be pulled to one node?
 * A re-telling of numamigrate_update_ratelimit() (mm/migrate.c, up to 4.18), of the trylock patch
 * that never reached a release, and of the two mixed forms.
 */
#ifndef NRP_POLICY_MIGRATE_RATELIMIT_H
#define NRP_POLICY_MIGRATE_RATELIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lock (spin, trylock) x window (stretched, fixed grid). */
enum nrp_ratelimit_variant {
	NRP_RATELIMIT_SPIN,      /* spin lock, window restarts at the first attempt after expiry */
	NRP_RATELIMIT_TRYLOCK,   /* trylock, windows on a fixed grid */
	NRP_RATELIMIT_SPIN_GRID, /* spin lock, fixed grid */
	NRP_RATELIMIT_TRYLOCK_STRETCH, /* trylock, stretched window */
	NRP_RATELIMIT_NONE,            /* 4.19 and later: no limit */
	NRP_NR_RATELIMIT_VARIANTS
};

struct nrp_ratelimit_params {
	enum nrp_ratelimit_variant variant;
	uint64_t quota; /* R, pages: an attempt is refused when more than R are already charged */
	uint64_t interval; /* I, jiffies (>= 1) */
};

/* State of one target node. */
struct nrp_ratelimit_window {
	uint64_t end;   /* W, jiffies: the window is over when now is after it (wrap-safe) */
	uint64_t pages; /* nr: pages charged in this window */
};

const char *nrp_ratelimit_variant_name(enum nrp_ratelimit_variant variant);
/* Are the windows on a fixed grid? (trylock, spin-grid) */
bool nrp_ratelimit_on_grid(enum nrp_ratelimit_variant variant);

/* 100 ms (or @ms) in ticks of @hz, rounded up: the kernel's msecs_to_jiffies. */
uint64_t nrp_ratelimit_interval(uint64_t ms, uint64_t hz);
/* The kernel's quota: 128 MiB in pages of @page_size bytes. */
uint64_t nrp_ratelimit_quota(uint64_t page_size);

/*
 * One serial attempt of @pages pages at @jiffies: true = admitted (and charged). The common
 * tail refuses when window->pages > quota, before adding (spec migrate.md 1.2).
 */
bool nrp_ratelimit_admit(const struct nrp_ratelimit_params *params,
			 struct nrp_ratelimit_window *window, uint64_t jiffies, uint64_t pages);

/* ---- concurrency (spec 1.6) --------------------------------------------------------- */

#define NRP_RATELIMIT_RACERS 3 /* calls in flight that are enumerated exhaustively */

/* One possible outcome of calls that overlap in time. */
struct nrp_ratelimit_outcome {
	uint8_t admitted;                   /* bit i: call i was admitted */
	uint8_t resets;                     /* times the window was reset */
	struct nrp_ratelimit_window window; /* state after all calls */
};

/*
 * All outcomes of @n <= NRP_RATELIMIT_RACERS overlapping calls of @pages[i] pages at @jiffies[i],
 * over every interleaving of the step model (test expiry; lock or trylock; zero; set end; unlock;
 * compare; load; store). Writes up to @max distinct outcomes in no particular order and returns
 * their number (which may exceed @max), or -EINVAL.
 */
int nrp_ratelimit_race(const struct nrp_ratelimit_params *params,
		       struct nrp_ratelimit_window window, const uint64_t *jiffies,
		       const uint64_t *pages, size_t n, struct nrp_ratelimit_outcome *ret_outcomes,
		       size_t max);

#endif
