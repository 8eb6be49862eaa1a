/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The numbers of the rules' own tables (vectors V-1 .. V-11c and L-1; times have no unit there),
 * from the slow model and from the engine; then the two beside each other over random scenarios.
 */
#include "tests/lock_scenario.h"
#include "tests/test_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- vectors -------------------------------------------------------------------------- */

static void one(enum model_policy policy, int64_t length)
{
	scene_start(policy);
	scene_munmap(0)->length = length;
	scene_fault(100, 5);
	scene_run();
}

static void v1_a_fault_during_the_unmap(void **state)
{
	(void)state;
	one(MODEL_OLD, 4 * GIB);
	scene_ends(0, 0, 1020, 1, 0);
	scene_gets(1, 1020, 920);
	one(MODEL_V1, 4 * GIB);
	scene_ends(0, 5, 1061, 2, 0, 269);
	scene_gets(1, 264, 164);
	one(MODEL_V2, 4 * GIB);
	scene_ends(0, 0, 1020, 2, 0, 1014);
	scene_gets(1, 100, 0);
	one(MODEL_V3, 4 * GIB);
	scene_ends(0, 0, 1020, 3, 0, 6, 1006);
	scene_gets(1, 100, 0);
	one(MODEL_MRG, 4 * GIB);
	scene_ends(0, 0, 1020, 1, 0);
	assert_int_equal(scene_job[0].downgrade, 10);
	scene_gets(1, 100, 0);
}

static void two(enum model_policy policy)
{
	scene_start(policy);
	scene_munmap(0);
	scene_writer(50, 20);
	scene_fault(100, 5);
	scene_fault(200, 5);
	scene_run();
}

static void v2_a_queued_writer_takes_the_gain(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		two(k ? MODEL_MRG : MODEL_OLD);
		scene_gets(1, 1020, 970);
		scene_gets(2, 1040, 940);
		scene_gets(3, 1040, 840);
	}
	two(MODEL_V1);
	scene_ends(0, 25, 1081, 2, 0, 289);
	scene_gets(1, 264, 214);
	scene_gets(2, 284, 184);
	scene_gets(3, 284, 84);
	two(MODEL_V2);
	scene_ends(0, 25, 1045, 2, 0, 1039);
	scene_gets(1, 1014, 964);
	scene_gets(2, 1034, 934);
	scene_gets(3, 1034, 834);
	two(MODEL_V3);
	scene_ends(0, 25, 1045, 3, 0, 6, 1031);
	scene_gets(1, 1006, 956);
	scene_gets(2, 1026, 926);
	scene_gets(3, 1026, 826);
}

static void three(enum model_policy policy, bool prefix)
{
	scene_start(policy);
	scene_lock.prefix = prefix;
	scene_munmap(0);
	scene_fault(2, 5);
	scene_writer(4, 20);
	scene_fault(6, 5);
	scene_run();
}

static void v3_what_a_batch_takes(void **state)
{
	(void)state;
	three(MODEL_OLD, false);
	scene_gets(1, 1020, 1018);
	scene_gets(3, 1020, 1014);
	scene_gets(2, 1025, 1021);
	three(MODEL_MRG, false);
	scene_gets(1, 10, 8);
	scene_gets(3, 10, 4);
	scene_gets(2, 1020, 1016);
	three(MODEL_OLD, true);
	scene_gets(1, 1020, 1018);
	scene_gets(2, 1025, 1021);
	scene_gets(3, 1045, 1039);
	three(MODEL_MRG, true);
	scene_gets(1, 10, 8);
	scene_gets(2, 1020, 1016);
	scene_gets(3, 1040, 1034);
}

static void four(enum model_policy policy, bool first, bool second, bool third)
{
	scene_start(policy);
	scene_munmap(0);
	scene_scan(5, 30);
	scene_scan(100, 30);
	scene_writer(500, 20);
	scene_scan(600, 30);
	scene_scan(1100, 30);
	scene_run();
	scene_is_skipped(1, first);
	scene_is_skipped(2, second);
	scene_is_skipped(4, third);
	scene_is_skipped(5, false);
}

static void v4_scans_give_up(void **state)
{
	(void)state;
	four(MODEL_OLD, true, true, true);
	scene_gets(3, 1020, 520);
	four(MODEL_V1, true, true, true);
	scene_gets(3, 528, 28);
	scene_ends(0, 20, 1076, 2, 0, 548);
	four(MODEL_V2, false, false, true);
	scene_gets(3, 1014, 514);
	scene_ends(0, 20, 1040, 2, 0, 1034);
	four(MODEL_V3, true, false, true);
	scene_gets(3, 1006, 506);
	scene_ends(0, 20, 1040, 3, 0, 6, 1026);
	four(MODEL_MRG, true, false, true);
	scene_gets(3, 1020, 520);
	scene_ends(0, 0, 1020, 1, 0);
}

static void v5_thresholds(void **state)
{
	(void)state;
	for (int p = MODEL_OLD; p < MODEL_MRG; p++) {
		one((enum model_policy)p, GIB - 4096);
		scene_gets(1, 1020, 920);
	}
	one(MODEL_MRG, GIB - 4096);
	scene_gets(1, 100, 0);
	one(MODEL_V1, GIB);
	scene_gets(1, 1020, 920);
	one(MODEL_V2, GIB);
	scene_ends(0, 0, 1020, 2, 0, 1014);
	scene_gets(1, 100, 0);
	one(MODEL_V3, GIB);
	scene_ends(0, 0, 1020, 3, 0, 6, 1006);
	scene_gets(1, 100, 0);
	one(MODEL_V1, GIB + 4096);
	scene_gets(1, 1018, 918);
	scene_ends(0, 5, 1037, 2, 0, 1023);
}

static void six(enum model_policy policy)
{
	scene_start(policy);
	scene_munmap(0)->special = true;
	scene_fault(3, 5);
	scene_fault(100, 5);
	scene_run();
}

static void v6_hugetlb_is_special(void **state)
{
	(void)state;
	six(MODEL_OLD);
	scene_gets(1, 1020, 1017);
	scene_gets(2, 1020, 920);
	six(MODEL_V1);
	scene_gets(1, 264, 261);
	scene_gets(2, 264, 164);
	scene_ends(0, 5, 1061, 2, 0, 269);
	six(MODEL_V2);
	scene_gets(1, 3, 0);
	scene_ends(0, 2, 1022, 2, 0, 8);
	scene_gets(2, 1022, 922);
	six(MODEL_V3);
	scene_gets(1, 6, 3);
	scene_ends(0, 5, 1025, 2, 0, 11);
	scene_gets(2, 1025, 925);
	six(MODEL_MRG);
	scene_gets(1, 10, 7);
	scene_gets(2, 100, 0);
}

static void seven(enum model_policy policy, bool resched)
{
	scene_start(policy);
	scene_lock.resched = resched;
	scene_munmap(0);
	scene_fault(100, 5);
	scene_writer(150, 20);
	scene_fault(600, 5);
	scene_run();
}

static void v7_with_and_without_resched(void **state)
{
	(void)state;
	seven(MODEL_OLD, true);
	scene_gets(1, 1020, 920);
	scene_gets(3, 1020, 420);
	scene_gets(2, 1025, 875);
	seven(MODEL_V1, true);
	scene_gets(1, 264, 164);
	scene_gets(2, 269, 119);
	scene_gets(3, 817, 217);
	scene_ends(0, 30, 1086, 3, 0, 289, 822);
	seven(MODEL_V1, false);
	scene_ends(0, 0, 1056, 1, 0);
	scene_gets(1, 1056, 956);
	scene_gets(3, 1056, 456);
	scene_gets(2, 1061, 911);
}

static void v8_the_next_vma_grows(void **state)
{
	(void)state;
	scene_start(MODEL_MRG);
	scene_munmap(0)->no_downgrade = true;
	scene_fault(100, 5);
	scene_run();
	scene_gets(1, 1020, 920);
	assert_int_equal(scene_job[0].downgrade, -1);
}

static int completed(enum model_policy policy, int64_t *ret_wait)
{
	int n = 0;

	scene_start(policy);
	scene_lock.closed = true;
	scene_munmap(500);
	for (int i = 0; i < 60; i++) {
		struct model_job *j = scene_fault(0, 5);

		j->think = 45;
		j->after = i ? scene_count - 2 : -1;
	}
	scene_run_until(2100);
	*ret_wait = 0;
	for (int i = 1; i < scene_count; i++) {
		if (scene_job[i].done < 0 || scene_job[i].done >= 2000)
			continue;
		n++;
		*ret_wait += scene_job[i].wait;
	}
	return n;
}

static void v9_a_thread_that_faults_and_thinks(void **state)
{
	static const struct {
		enum model_policy policy;
		int completed;
		int64_t wait;
	} want[] = {
		{ MODEL_OLD, 20, 1020 }, { MODEL_V1, 22, 921 }, { MODEL_V2, 40, 0 },
		{ MODEL_V3, 40, 20 },    { MODEL_MRG, 40, 10 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		int64_t wait;

		assert_int_equal(completed(want[i].policy, &wait), want[i].completed);
		assert_int_equal(wait, want[i].wait);
		if (want[i].policy == MODEL_V1) {
			assert_int_equal(scene_job[0].wait, 20);
			assert_int_equal(scene_job[0].done, 1576);
		}
	}
}

static void ten(enum model_policy policy)
{
	scene_start(policy);
	scene_munmap(0);
	scene_munmap(20);
	scene_fault(100, 5);
	scene_run();
}

static void ten_b(enum model_policy policy)
{
	scene_start(policy);
	scene_fault(0, 40);
	scene_munmap(10);
	scene_fault(20, 5);
	scene_scan(25, 30);
	scene_run();
}

static void v10_two_unmaps_and_a_reader_first(void **state)
{
	(void)state;
	ten(MODEL_OLD);
	scene_ends(1, 1000, 2040, 1, 1020);
	scene_gets(2, 2040, 1940);
	ten(MODEL_V2);
	scene_ends(0, 20, 1040, 2, 0, 1034);
	scene_ends(1, 6, 1046, 2, 20, 1040);
	scene_gets(2, 100, 0);
	ten(MODEL_MRG);
	scene_ends(1, 1000, 2040, 1, 1020);
	assert_int_equal(scene_job[1].downgrade, 1030);
	scene_gets(2, 1030, 930);

	ten_b(MODEL_OLD);
	scene_ends(1, 30, 1060, 1, 40);
	scene_gets(2, 1060, 1040);
	scene_is_skipped(3, true);
	ten_b(MODEL_V2);
	scene_ends(1, 0, 1030, 2, 10, 1024);
	scene_gets(2, 20, 0);
	scene_is_skipped(3, false);
	ten_b(MODEL_MRG);
	scene_ends(1, 30, 1060, 1, 40);
	assert_int_equal(scene_job[1].downgrade, 50);
	scene_gets(2, 50, 30);
	scene_is_skipped(3, true);
}

static void on(struct model_job *j, int vma)
{
	j->vma = vma;
	j->lockable = true;
}

static void eleven(enum model_policy policy, bool vma_locks)
{
	scene_start(policy);
	scene_lock.vma_locks = vma_locks;
	scene_munmap(0);
	on(scene_fault(100, 5), 1);
	scene_fault(100, 5);
	on(scene_fault(5, 5), 0);
	scene_scan(200, 30);
	scene_run();
	assert_int_equal(scene_job[1].by_vma, vma_locks);
	assert_false(scene_job[3].by_vma);
	assert_int_equal(scene_made[3].sight, NRP_MUNMAP_SEGV);
	if (vma_locks)
		scene_ends(1, 0, 105, 0);
}

static void v11_vma_locks(void **state)
{
	(void)state;
	for (int on_off = 0; on_off < 2; on_off++) {
		eleven(MODEL_OLD, on_off);
		if (!on_off)
			scene_gets(1, 1020, 920);
		scene_gets(2, 1020, 920);
		scene_gets(3, 1020, 1015);
		scene_is_skipped(4, true);
		eleven(MODEL_MRG, on_off);
		if (!on_off)
			scene_gets(1, 100, 0);
		scene_gets(2, 100, 0);
		scene_gets(3, 10, 5);
		scene_is_skipped(4, false);
	}
}

static void eleven_b(enum model_policy policy, bool vma_locks)
{
	scene_start(policy);
	scene_lock.vma_locks = vma_locks;
	on(scene_fault(0, 40), 0);
	scene_munmap(10);
	on(scene_fault(20, 5), 1);
	scene_fault(20, 5);
	scene_run();
}

static void v11b_the_unmap_waits_for_a_fault_in_its_vma(void **state)
{
	(void)state;
	eleven_b(MODEL_MRG, true);
	scene_ends(1, 0, 1060, 1, 10);
	assert_int_equal(scene_job[1].downgrade, 50);
	scene_ends(2, 0, 25, 0);
	scene_gets(3, 50, 30);
	eleven_b(MODEL_MRG, false);
	scene_ends(1, 30, 1060, 1, 40);
	assert_int_equal(scene_job[1].downgrade, 50);
	scene_gets(2, 50, 30);
	scene_gets(3, 50, 30);
	eleven_b(MODEL_OLD, true);
	scene_ends(1, 0, 1060, 1, 10);
	scene_ends(2, 0, 25, 0);
	scene_gets(3, 1060, 1040);
	eleven_b(MODEL_OLD, false);
	scene_ends(1, 30, 1060, 1, 40);
	scene_gets(2, 1060, 1040);
	scene_gets(3, 1060, 1040);
}

static void v11c_vma_locks_help_no_scan(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		scene_start(k ? MODEL_MRG : MODEL_OLD);
		scene_lock.vma_locks = true;
		scene_munmap(0);
		scene_writer(50, 20);
		on(scene_fault(100, 5), 1);
		scene_fault(100, 5);
		scene_scan(200, 30);
		scene_run();
		scene_ends(2, 0, 105, 0);
		scene_gets(3, 1040, 940);
		scene_is_skipped(4, true);
		scene_gets(1, 1020, 970);
	}
}

/* How far the unmap, job 0, is at @g: its holds in turn, each after its own grant or behind the
 * other. */
static struct nrp_munmap_progress progress_at(const struct nrp_munmap_params *params, uint64_t g)
{
	struct nrp_munmap_progress p = { .started = scene_job[0].grant[0] <= (int64_t)g };
	uint64_t at = (uint64_t)scene_job[0].grant[0];
	struct nrp_munmap_hold hold;
	int grant = 0;

	p.ns = g - at;
	for (uint64_t i = 0; nrp_munmap_hold(params, &scene_work[0], i, &hold); i++) {
		if (i && hold.step != NRP_MUNMAP_DOWNGRADE_STEP &&
		    grant + 1 < scene_job[0].grants &&
		    scene_job[0].grant[grant + 1] >= (int64_t)at && hold.step == NRP_MUNMAP_REQUEST)
			at = (uint64_t)scene_job[0].grant[++grant];
		at += hold.ns;
		if (at > g)
			break;
		p.ended++;
	}
	return p;
}

static void twelve(enum model_policy policy, int64_t arrival, int64_t wait,
		   enum nrp_munmap_sight want)
{
	static const enum nrp_munmap_variant variants[] = { NRP_MUNMAP_WRITE, NRP_MUNMAP_SECTIONS,
							    NRP_MUNMAP_TWO_PHASE,
							    NRP_MUNMAP_TWO_PHASE_DEAD,
							    NRP_MUNMAP_DOWNGRADE };
	struct nrp_munmap_params params = { variants[policy], GIB };
	struct nrp_munmap_progress p;

	scene_start(policy);
	scene_munmap(0);
	scene_fault(arrival, 5)->vma = 0;
	scene_run();
	scene_gets(1, arrival + wait, wait);
	p = progress_at(&params, (uint64_t)(arrival + wait));
	assert_int_equal(nrp_munmap_fault_sees(&params, &scene_work[0], &p, GIB), want);
	assert_int_equal(scene_made[1].sight, want);
}

static void v12_what_a_fault_in_the_range_sees(void **state)
{
	(void)state;
	twelve(MODEL_OLD, 100, 920, NRP_MUNMAP_SEGV);
	twelve(MODEL_V1, 100, 164, NRP_MUNMAP_NORMAL);
	twelve(MODEL_V2, 100, 0, NRP_MUNMAP_NORMAL);
	twelve(MODEL_V3, 100, 0, NRP_MUNMAP_SEGV);
	twelve(MODEL_MRG, 100, 0, NRP_MUNMAP_SEGV);
	twelve(MODEL_OLD, 600, 420, NRP_MUNMAP_SEGV);
	twelve(MODEL_V1, 600, 192, NRP_MUNMAP_SEGV);
	twelve(MODEL_V2, 600, 0, NRP_MUNMAP_REPOPULATED);
	twelve(MODEL_V3, 600, 0, NRP_MUNMAP_SEGV);
	twelve(MODEL_MRG, 600, 0, NRP_MUNMAP_SEGV);
}

/* mbind holds the lock for writing while it moves pages, up to 6.6. */
static void l1_a_wrong_decision_makes_a_long_hold(void **state)
{
	(void)state;
	for (int moves = 0; moves < 2; moves++) {
		scene_start(MODEL_MRG);
		scene_writer(0, 50 + (moves ? 100 * 20 : 0));
		scene_fault(100, 5);
		scene_scan(200, 30);
		scene_run();
		scene_gets(1, moves ? 2050 : 100, moves ? 1950 : 0);
		scene_is_skipped(2, moves);
	}
}

/* ---- random scenarios ----------------------------------------------------------------- */

static uint64_t seed;

static int64_t below(int64_t n)
{
	return (int64_t)random_range(&seed, 0, (uint64_t)n - 1);
}

static void random_munmap(struct model_job *j)
{
	j->find = below(20);
	j->det = below(10);
	j->zap = below(300);
	j->pt = below(20);
	j->free = below(10);
	j->length = GIB / 2 * (1 + below(9)) + 4096 * (below(3) - 1);
	j->special = !below(4);
	j->no_downgrade = !below(4);
	j->vma = (int)below(3);
}

static void random_job(int i)
{
	static const enum model_kind kinds[] = { MODEL_READER, MODEL_READER, MODEL_READER,
						 MODEL_WRITER, MODEL_SCAN,   MODEL_MUNMAP };
	struct model_job *j = scene_add(kinds[below(6)], below(400), below(5) ? below(60) : 0);

	if (j->kind == MODEL_MUNMAP)
		random_munmap(j);
	if (j->kind == MODEL_READER && below(2)) {
		j->vma = (int)below(3);
		j->lockable = true;
	}
	if (i && !below(4)) {
		j->after = (int)below(i);
		j->think = below(80);
	}
	if (!below(6))
		j->give_up = j->arrival + below(200);
}

static void engine_and_model_agree(void **state)
{
	(void)state;
	seed = random_seed("mmap_lock");
	for (int round = 0; round < 6000; round++) {
		int n = 2 + (int)below(12);

		scene_start((enum model_policy)below(5));
		scene_lock.resched = below(2);
		scene_lock.prefix = below(2);
		scene_lock.batch = below(3) ? 256 : 2;
		scene_lock.vma_locks = below(2);
		scene_lock.closed = !below(4);
		scene_lock.spin = below(3) ? 0 : below(40);
		scene_lock.handoff = below(3) ? 0 : below(10);
		for (int i = 0; i < n; i++)
			random_job(i);
		scene_run_until(below(10) ? 20000 : below(800));
	}
}

static void a_job_before_the_one_it_follows_is_refused(void **state)
{
	struct nrp_lock_params params = { .munmap = { NRP_MUNMAP_WRITE, GIB }, .batch = 1 };

	(void)state;
	scene_start(MODEL_OLD);
	scene_fault(0, 1);
	scene_fault(0, 1);
	scene_convert();
	scene_made[0].after = 1;
	assert_int_equal(nrp_mmap_lock_run(&params, scene_made, 2, UINT64_MAX, NULL, NULL),
			 -EINVAL);
}

/* To the letter, the second version never reaches its own fast path. */
static void as_posted_is_as_write(void **state)
{
	struct nrp_munmap_params posted = { NRP_MUNMAP_TWO_PHASE_AS_POSTED, GIB };
	struct nrp_munmap_work w = { 6, 4, 1000, 8, 2, 4 * GIB, false, false };
	struct nrp_munmap_hold hold;

	(void)state;
	assert_true(nrp_munmap_hold(&posted, &w, 0, &hold));
	assert_true(hold.write);
	assert_int_equal(hold.ns, 1020);
	assert_false(nrp_munmap_hold(&posted, &w, 1, &hold));
}

/* 80 GiB in sections of 4 KiB: 20 million of them and the lock again. */
static void sections_of_a_page_add_up(void **state)
{
	struct nrp_munmap_params pages = { NRP_MUNMAP_SECTIONS, 4096 };
	struct nrp_munmap_work w = { 1, 0, 2485684000, 77, 0, 80 * GIB, false, false };
	uint64_t last = 20 * 1024 * 1024 - 1, all = 0, zap = 2485684000 / (last + 1);
	struct nrp_munmap_hold hold;

	(void)state;
	for (uint64_t i = 0; nrp_munmap_hold(&pages, &w, i, &hold); i += i == 1 ? last - 2 : 1) {
		if (i == 0)
			assert_int_equal(hold.ns, 1 + zap);
		if (i == last)
			all = hold.ns;
	}
	assert_int_equal(all, 1 + 2485684000 - last * zap + 77);
	assert_int_equal(hold.ns, 0);
	assert_int_equal(hold.step, NRP_MUNMAP_IF_WANTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v1_a_fault_during_the_unmap),
		cmocka_unit_test(v2_a_queued_writer_takes_the_gain),
		cmocka_unit_test(v3_what_a_batch_takes),
		cmocka_unit_test(v4_scans_give_up),
		cmocka_unit_test(v5_thresholds),
		cmocka_unit_test(v6_hugetlb_is_special),
		cmocka_unit_test(v7_with_and_without_resched),
		cmocka_unit_test(v8_the_next_vma_grows),
		cmocka_unit_test(v9_a_thread_that_faults_and_thinks),
		cmocka_unit_test(v10_two_unmaps_and_a_reader_first),
		cmocka_unit_test(v11_vma_locks),
		cmocka_unit_test(v11b_the_unmap_waits_for_a_fault_in_its_vma),
		cmocka_unit_test(v11c_vma_locks_help_no_scan),
		cmocka_unit_test(v12_what_a_fault_in_the_range_sees),
		cmocka_unit_test(l1_a_wrong_decision_makes_a_long_hold),
		cmocka_unit_test(engine_and_model_agree),
		cmocka_unit_test(a_job_before_the_one_it_follows_is_refused),
		cmocka_unit_test(as_posted_is_as_write),
		cmocka_unit_test(sections_of_a_page_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
