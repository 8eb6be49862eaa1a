/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scenarios of jobs at one mmap_lock, run by the slow model and by the engine: the two must do the
 * same with every job. Times have no unit.
 */
#ifndef NRP_TESTS_LOCK_SCENARIO_H
#define NRP_TESTS_LOCK_SCENARIO_H

#include "replay/mmap_lock.h"
#include "tests/lock_model.h"

#define GIB (INT64_C(1) << 30)
#define SCENE_MAX 128

/* The lock and the jobs, in the order of their numbers; a test changes them before it runs. */
extern struct model_lock scene_lock;
extern struct model_job scene_job[SCENE_MAX];
extern int scene_count;
/* The same for the engine, with what became of them. */
extern struct nrp_lock_job scene_made[SCENE_MAX];
extern struct nrp_munmap_work scene_work[SCENE_MAX];

/* No jobs; munmaps hold the lock as @policy says. */
void scene_start(enum model_policy policy);
struct model_job *scene_add(enum model_kind kind, int64_t arrival, int64_t hold);
/* The unmap of the tables: 4 GiB; find 6, det 4, zap 1000, pt 8, free 2. */
struct model_job *scene_munmap(int64_t arrival);
struct model_job *scene_fault(int64_t arrival, int64_t hold);
struct model_job *scene_writer(int64_t arrival, int64_t hold);
struct model_job *scene_scan(int64_t arrival, int64_t hold);

/* Makes the engine's jobs of the model's. */
void scene_convert(void);
/* Both, up to @end; fails where they differ. */
void scene_run_until(int64_t end);
void scene_run(void);

/* Wait and end of a munmap, or of anything else that gets the lock; @grants times behind them. */
void scene_ends(int i, int64_t wait, int64_t done, int grants, ...);
/* Grant and wait of a job with one hold. */
void scene_gets(int i, int64_t grant, int64_t wait);
void scene_is_skipped(int i, bool skipped);

#endif
