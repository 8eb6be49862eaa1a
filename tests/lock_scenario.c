/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lock_scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct model_lock scene_lock;
struct model_job scene_job[SCENE_MAX];
int scene_count;
struct nrp_lock_job scene_made[SCENE_MAX];
struct nrp_munmap_work scene_work[SCENE_MAX];

/* ---- scenarios ------------------------------------------------------------------------ */

void scene_start(enum model_policy policy)
{
	scene_lock =
		(struct model_lock){ .policy = policy, .resched = true, .batch = 256, .step = GIB };
	scene_count = 0;
}

struct model_job *scene_add(enum model_kind kind, int64_t arrival, int64_t hold)
{
	struct model_job *j = &scene_job[scene_count++];

	*j = (struct model_job){ .kind = kind,
				 .arrival = arrival,
				 .hold = hold,
				 .after = -1,
				 .vma = -1,
				 .give_up = -1 };
	return j;
}

struct model_job *scene_munmap(int64_t arrival)
{
	struct model_job *j = scene_add(MODEL_MUNMAP, arrival, 0);

	j->find = 6;
	j->det = 4;
	j->zap = 1000;
	j->pt = 8;
	j->free = 2;
	j->length = 4 * GIB;
	j->vma = 0;
	return j;
}

struct model_job *scene_fault(int64_t arrival, int64_t hold)
{
	return scene_add(MODEL_READER, arrival, hold);
}

struct model_job *scene_writer(int64_t arrival, int64_t hold)
{
	return scene_add(MODEL_WRITER, arrival, hold);
}

struct model_job *scene_scan(int64_t arrival, int64_t hold)
{
	return scene_add(MODEL_SCAN, arrival, hold);
}

/* ---- the engine beside the model ------------------------------------------------------ */

void scene_convert(void)
{
	static const enum nrp_lock_kind kinds[] = {
		[MODEL_READER] = NRP_LOCK_FAULT,
		[MODEL_WRITER] = NRP_LOCK_WRITER,
		[MODEL_SCAN] = NRP_LOCK_SCAN,
		[MODEL_MUNMAP] = NRP_LOCK_MUNMAP,
	};

	for (int i = 0; i < scene_count; i++) {
		const struct model_job *j = &scene_job[i];

		scene_work[i] = (struct nrp_munmap_work){
			.find = (uint64_t)j->find,
			.detach = (uint64_t)j->det,
			.zap = (uint64_t)j->zap,
			.pgtables = (uint64_t)j->pt,
			.free = (uint64_t)j->free,
			.length = (uint64_t)j->length,
			.special = j->special,
			.keeps_write = j->no_downgrade,
		};
		scene_made[i] = (struct nrp_lock_job){
			.kind = kinds[j->kind],
			.arrival = (uint64_t)j->arrival,
			.hold = (uint64_t)j->hold,
			.give_up = j->give_up < 0 ? UINT64_MAX : (uint64_t)j->give_up,
			.think = (uint64_t)j->think,
			.after = j->after < 0 ? NRP_LOCK_NO_JOB : (uint32_t)j->after,
			.vma = j->vma < 0 ? NRP_LOCK_NO_VMA : (uint32_t)j->vma,
			.offset = GIB,
			.lockable = j->lockable,
			.work = &scene_work[i],
		};
	}
}

/* Each grant is one of the model, in its own order. */
static void count_grant(void *context, uint32_t i, bool write, uint64_t requested, uint64_t granted)
{
	int *seen = context;
	const struct model_job *j = &scene_job[i];

	(void)write;
	assert_true(seen[i] < j->grants);
	assert_int_equal(requested, j->request[seen[i]]);
	assert_int_equal(granted, j->grant[seen[i]]);
	seen[i]++;
}

void scene_run_until(int64_t end)
{
	static const enum nrp_munmap_variant variants[] = {
		[MODEL_OLD] = NRP_MUNMAP_WRITE,     [MODEL_V1] = NRP_MUNMAP_SECTIONS,
		[MODEL_V2] = NRP_MUNMAP_TWO_PHASE,  [MODEL_V3] = NRP_MUNMAP_TWO_PHASE_DEAD,
		[MODEL_MRG] = NRP_MUNMAP_DOWNGRADE,
	};
	struct nrp_lock_params params = {
		.munmap = { variants[scene_lock.policy], (uint64_t)scene_lock.step },
		.resched = scene_lock.resched,
		.prefix = scene_lock.prefix,
		.batch = (uint32_t)scene_lock.batch,
		.vma_locks = scene_lock.vma_locks,
		.closed = scene_lock.closed,
		.spin = (uint64_t)scene_lock.spin,
		.handoff = (uint64_t)scene_lock.handoff,
	};
	int seen[SCENE_MAX] = { 0 };

	model_run(&scene_lock, scene_job, scene_count, end);
	scene_convert();
	assert_int_equal(nrp_mmap_lock_run(&params, scene_made, (uint32_t)scene_count,
					   (uint64_t)end, count_grant, seen),
			 0);
	for (int i = 0; i < scene_count; i++) {
		assert_int_equal(scene_made[i].grants, scene_job[i].grants);
		assert_int_equal(scene_made[i].wait, scene_job[i].wait);
		assert_int_equal(scene_made[i].longest, scene_job[i].longest);
		assert_int_equal(scene_made[i].done, (uint64_t)scene_job[i].done);
		assert_int_equal(scene_made[i].downgraded, (uint64_t)scene_job[i].downgrade);
		assert_int_equal(scene_made[i].skipped, scene_job[i].skipped);
		assert_int_equal(scene_made[i].by_vma, scene_job[i].by_vma);
		assert_int_equal(scene_made[i].gave_up, scene_job[i].gave_up);
	}
}

void scene_run(void)
{
	scene_run_until(100000);
}

/* ---- what must come out --------------------------------------------------------------- */

/* Wait and end of a munmap, or of anything else that gets the lock; grants behind them. */
void scene_ends(int i, int64_t wait, int64_t done, int grants, ...)
{
	va_list ap;

	assert_int_equal(scene_job[i].wait, wait);
	assert_int_equal(scene_job[i].done, done);
	assert_int_equal(scene_job[i].grants, grants);
	va_start(ap, grants);
	for (int k = 0; k < grants; k++)
		assert_int_equal(scene_job[i].grant[k], va_arg(ap, int));
	va_end(ap);
}

/* Grant and wait of a job with one hold. */
void scene_gets(int i, int64_t grant, int64_t wait)
{
	scene_ends(i, wait, grant + scene_job[i].hold, 1, (int)grant);
}

void scene_is_skipped(int i, bool skipped)
{
	assert_int_equal(scene_job[i].skipped, skipped);
}
