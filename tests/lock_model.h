/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A slow model of one mmap_lock, for tests: time goes on in single units, and in each everything
 * that ends is looked for, then everything that arrives. It shares nothing with the engine that it
 * checks.
 */
#ifndef NRP_LOCK_MODEL_H
#define NRP_LOCK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum model_policy { MODEL_OLD, MODEL_V1, MODEL_V2, MODEL_V3, MODEL_MRG };

enum model_kind { MODEL_READER, MODEL_WRITER, MODEL_SCAN, MODEL_MUNMAP };

#define MODEL_GRANTS 16 /* of one job */

struct model_job {
	enum model_kind kind;
	int64_t arrival; /* on record */
	int64_t hold;    /* not of a munmap */
	int after;       /* job of the same thread that ends first, -1: none */
	int64_t think;   /* closed: from that end to this arrival */
	int64_t give_up; /* leaves the line then, in its first request; -1: never */
	int vma;         /* of a fault and of a munmap; -1: none */
	bool lockable;   /* the fault tries its VMA's lock first */

	/* a munmap */
	int64_t find, det, zap, pt, free;
	int64_t length; /* bytes */
	bool special, no_downgrade;

	/* what became of it */
	int64_t request[MODEL_GRANTS], grant[MODEL_GRANTS];
	int grants;
	int64_t wait, done, downgrade; /* -1: not */
	bool skipped, by_vma, gave_up, marked;
	int64_t longest; /* wait of one request */
};

struct model_lock {
	enum model_policy policy;
	bool resched; /* V1: need_resched() */
	bool prefix;  /* discipline F: a batch ends at the first writer */
	int batch;    /* readers of one batch at most */
	bool vma_locks;
	bool closed;
	int64_t step;    /* bytes: V1's section, threshold of V2 and V3 */
	int64_t spin;    /* a writer gets in line only so long after it came */
	int64_t handoff; /* from a grant to one in line until it runs */
};

/* Runs until all @n jobs ended or @end is reached: those not ended have done = -1. */
void model_run(const struct model_lock *lock, struct model_job *jobs, int n, int64_t end);

#endif
