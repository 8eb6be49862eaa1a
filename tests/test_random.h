/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers for the property tests; the seed is printed. */
#ifndef NRP_TEST_RANDOM_H
#define NRP_TEST_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* xorshift64*; the state is never 0. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* lo..hi, both included; hi - lo is small, so the bias of the modulo does not matter. */
static inline uint64_t random_range(uint64_t *state, uint64_t lo, uint64_t hi)
{
	return lo + (random_next(state) >> 16) % (hi - lo + 1);
}

/* A new seed every run, or $NRP_TEST_SEED to repeat one; printed with @name. */
static inline uint64_t random_seed(const char *name)
{
	const char *given = getenv("NRP_TEST_SEED");
	struct timespec now = { 0 };
	uint64_t seed;

	timespec_get(&now, TIME_UTC);
	seed = (uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec << 20;
	if (given)
		seed = strtoull(given, NULL, 0);
	printf("%s: NRP_TEST_SEED=%llu\n", name, (unsigned long long)seed);
	return seed ? seed : 1;
}

#endif
