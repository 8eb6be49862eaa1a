/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the null tests share: sets of captures, copies of captures, and replays of both. */
#ifndef NRP_TESTS_NULL_UTIL_H
#define NRP_TESTS_NULL_UTIL_H

#include "analysis/compare.h"

/* A capture in a database of its own, with what verify says of it. */
struct loaded {
	char name[160]; /* "limiter-6.12"; "kernels/6.1/shared" */
	char db[256];
	struct nrp_store *store;
	struct nrp_capture capture;
	struct nrp_verify verify;
};

/*
 * Imports every capture of a folder with hinting faults: @pattern is a shell pattern below @folder.
 * Appends to @set, of @count; fails the test if one does not import.
 */
void null_load(struct loaded **set, size_t *count, const char *folder, const char *pattern,
	       const char *scratch);
/* A capture by name; NULL: not in the set. */
struct loaded *null_find(struct loaded *set, size_t count, const char *name);
void null_drop(struct loaded *capture);
void null_drop_all(struct loaded *set, size_t count);

/* What becomes of a capture in a copy. */
struct copy_plan {
	/* Changes the facts, which are a copy of the original's. */
	void (*facts)(void *context, struct nrp_host_facts *facts);
	/* Changes a row in place; false: the copy does not have it. NULL: all stay as they are. */
	bool (*row)(void *context, enum nrp_record_kind kind, void *row);
	void *context;
};

/*
 * A copy of a capture in a new database: all records of all kinds in their order, probes, settings,
 * counters and names. Verifies it.
 */
void null_copy(struct loaded *ret, const struct loaded *from, const struct copy_plan *plan,
	       const char *scratch);

struct compared {
	struct nrp_replay replay;
	struct nrp_comparison comparison;
};

/* One comparison; @set is "quota=256" or "new:quota=256", NULL: nothing. */
void null_compare(struct compared *ret, const struct loaded *capture, const char *old_lane,
		  const char *new_lane, const char *set);
void null_compared_clear(struct compared *compared);

/* Text of a note's code; NULL: there is none. */
const struct nrp_note *null_note(const struct nrp_comparison *comparison, const char *code);

#endif
