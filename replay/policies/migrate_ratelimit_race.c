/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.ratelimit, overlapping attempts: every outcome that numamigrate_update_ratelimit()
 * (mm/migrate.c, up to 4.18, removed by efaffc5e40ae; and its trylock form) allows for a few calls
 * in flight at once; spec migrate.md 1.6.
 *
 * The kernel protects only the opening of a window, and only against other openings: the test
 * before it and the check and the add after it run without the lock. A call is therefore a
 * sequence of small steps on shared memory, and the outcomes are found by a depth-first search over
 * all orders of all calls' steps. A state reached twice is searched once.
 *
 * Time stands still within a call: each keeps the jiffies it is given, where the kernel would read
 * them anew under the lock.
 */
#include "replay/policies/migrate_ratelimit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/policies/migrate_ratelimit_step.h"

/* The step a call takes next; the letters are those of the spec. */
enum race_step {
	STEP_TEST,    /* a: is the window over? */
	STEP_LOCK,    /* b: wait for the lock, or try it */
	STEP_ZERO,    /* c: forget the pages charged so far */
	STEP_END,     /* d: set the new end */
	STEP_UNLOCK,  /* e */
	STEP_COMPARE, /* f: more charged than the quota? */
	STEP_LOAD,    /* g: first half of the add */
	STEP_STORE,   /* h: second half */
	STEP_DONE,
};

/* Everything the future depends on. No padding: states are compared and hashed as bytes. */
struct race_state {
	uint64_t end;                        /* W */
	uint64_t pages;                      /* nr */
	uint64_t kept[NRP_RATELIMIT_RACERS]; /* per call: w from a to d, nr from g to h; else 0 */
	uint8_t step[NRP_RATELIMIT_RACERS];
	uint8_t locked;
	uint8_t admitted;
	uint8_t resets;
	uint8_t used; /* slot of the visited set is taken; always 1 in a state */
	uint8_t unused;
};

_Static_assert(sizeof(struct race_state) == (2 + NRP_RATELIMIT_RACERS) * sizeof(uint64_t) + 8,
	       "a state has no padding");

/* The visited states: open addressing, at most half full. */
struct race_set {
	struct race_state *slots;
	size_t nr_slots; /* a power of two */
	size_t nr_used;
};

struct race {
	const struct nrp_ratelimit_params *params;
	const uint64_t *jiffies;
	const uint64_t *pages;
	size_t n;
	struct race_set visited;
};

#define FIRST_SLOTS 1024

/* ---- visited set -------------------------------------------------------------------- */

/* The slot that holds @state, or the free one where it belongs. */
static struct race_state *race_set_slot(const struct race_set *set, const struct race_state *state)
{
	const unsigned char *bytes = (const unsigned char *)state;
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	size_t slot;

	for (size_t i = 0; i < sizeof(*state); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	hash ^= hash >> 32;

	slot = (size_t)hash & (set->nr_slots - 1);
	while (set->slots[slot].used && memcmp(&set->slots[slot], state, sizeof(*state)))
		slot = (slot + 1) & (set->nr_slots - 1);
	return &set->slots[slot];
}

static int race_set_grow(struct race_set *set)
{
	struct race_set bigger = {
		.nr_slots = set->nr_slots ? set->nr_slots * 2 : FIRST_SLOTS,
		.nr_used = set->nr_used,
	};

	bigger.slots = calloc(bigger.nr_slots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < set->nr_slots; i++)
		if (set->slots[i].used)
			*race_set_slot(&bigger, &set->slots[i]) = set->slots[i];
	free(set->slots);
	*set = bigger;
	return 0;
}

/* 1: new; 0: seen before; -ENOMEM. */
static int race_set_add(struct race_set *set, const struct race_state *state)
{
	struct race_state *slot;
	int r;

	if (set->nr_used >= set->nr_slots / 2) {
		r = race_set_grow(set);
		if (r < 0)
			return r;
	}
	slot = race_set_slot(set, state);
	if (slot->used)
		return 0;
	*slot = *state;
	set->nr_used++;
	return 1;
}

/* ---- the steps ---------------------------------------------------------------------- */

static bool waits_for_lock(enum nrp_ratelimit_variant variant)
{
	return variant == NRP_RATELIMIT_SPIN || variant == NRP_RATELIMIT_SPIN_GRID;
}

/* A call can always go on, unless it waits for the lock. */
static bool race_can_step(const struct race *race, const struct race_state *state, size_t call)
{
	if (state->step[call] == STEP_DONE)
		return false;
	return state->step[call] != STEP_LOCK || !state->locked ||
	       !waits_for_lock(race->params->variant);
}

static void race_step(const struct race *race, struct race_state *state, size_t call)
{
	const struct nrp_ratelimit_params *params = race->params;
	uint64_t jiffies = race->jiffies[call];
	uint64_t *kept = &state->kept[call];
	uint8_t *step = &state->step[call];

	switch ((enum race_step) * step) {
	case STEP_TEST:
		if (!nrp_ratelimit_expired(state->end, jiffies)) {
			*step = STEP_COMPARE;
			break;
		}
		/* Trylock reads the end once; the spin lock's holder reads it again at d. */
		if (!waits_for_lock(params->variant))
			*kept = state->end;
		*step = STEP_LOCK;
		break;
	case STEP_LOCK:
		if (state->locked) { /* trylock failed: go on with the count that is visible */
			*kept = 0;
			*step = STEP_COMPARE;
			break;
		}
		/* Nobody tests again under the lock: a second reset is possible. */
		state->locked = 1;
		*step = STEP_ZERO;
		break;
	case STEP_ZERO:
		state->pages = 0;
		state->resets++;
		*step = STEP_END;
		break;
	case STEP_END:
		state->end = nrp_ratelimit_next_end(
			params, waits_for_lock(params->variant) ? state->end : *kept, jiffies);
		*kept = 0;
		*step = STEP_UNLOCK;
		break;
	case STEP_UNLOCK:
		state->locked = 0;
		*step = STEP_COMPARE;
		break;
	case STEP_COMPARE:
		*step = state->pages > params->quota ? STEP_DONE : STEP_LOAD;
		break;
	case STEP_LOAD:
		*kept = state->pages;
		*step = STEP_STORE;
		break;
	case STEP_STORE:
		state->pages = *kept + race->pages[call];
		*kept = 0;
		state->admitted = (uint8_t)(state->admitted | 1u << call);
		*step = STEP_DONE;
		break;
	case STEP_DONE:
		break;
	}
}

static bool race_over(const struct race *race, const struct race_state *state)
{
	for (size_t i = 0; i < race->n; i++)
		if (state->step[i] != STEP_DONE)
			return false;
	return true;
}

/* The depth is the number of steps taken, at most 8 per call. */
static int race_search(struct race *race, const struct race_state *state)
{
	int r = race_set_add(&race->visited, state);

	if (r <= 0)
		return r;
	for (size_t i = 0; i < race->n; i++) {
		struct race_state next = *state;

		if (!race_can_step(race, state, i))
			continue;
		race_step(race, &next, i);
		r = race_search(race, &next);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Nothing is remembered at the end, so that different final states are different outcomes. */
static int race_collect(const struct race *race, struct nrp_ratelimit_outcome *ret_outcomes,
			size_t max)
{
	size_t found = 0;

	for (size_t i = 0; i < race->visited.nr_slots; i++) {
		const struct race_state *state = &race->visited.slots[i];

		if (!state->used || !race_over(race, state))
			continue;
		if (found < max)
			ret_outcomes[found] = (struct nrp_ratelimit_outcome){
				.admitted = state->admitted,
				.resets = state->resets,
				.window = { .end = state->end, .pages = state->pages },
			};
		found++;
	}
	return (int)found;
}

int nrp_ratelimit_race(const struct nrp_ratelimit_params *params,
		       struct nrp_ratelimit_window window, const uint64_t *jiffies,
		       const uint64_t *pages, size_t n, struct nrp_ratelimit_outcome *ret_outcomes,
		       size_t max)
{
	struct race race = { .params = params, .jiffies = jiffies, .pages = pages, .n = n };
	struct race_state start = { .end = window.end, .pages = window.pages, .used = 1 };
	int r;

	if (n > NRP_RATELIMIT_RACERS || (unsigned int)params->variant >= NRP_NR_RATELIMIT_VARIANTS)
		return -EINVAL;
	if (params->variant == NRP_RATELIMIT_NONE) {
		/* Nothing is shared, so nothing depends on the order. */
		for (size_t i = 0; i < n; i++) {
			start.admitted = (uint8_t)(start.admitted | 1u << i);
			start.step[i] = STEP_DONE;
		}
	} else if (!params->interval) {
		return -EINVAL;
	}

	r = race_search(&race, &start);
	if (r == 0)
		r = race_collect(&race, ret_outcomes, max);
	free(race.visited.slots);
	return r;
}
