/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The munmap.lock lane over small captures; expected values by hand. Times are us. */
#include "replay/lock_lane.h"
#include "tests/lock_records.h"

#define LENGTH (UINT64_C(4) << 30)

enum { MAIN = 100, OTHER };

static struct lane_file file;
static struct nrp_lock_lanes lanes;

/* ---- the capture ---------------------------------------------------------------------- */

/* Takes the lock 1 us after the exception, at once unless @granted is later. */
static void fault(int32_t tid, uint64_t addr, uint64_t us, uint64_t granted, uint64_t released)
{
	record_exception(&file, tid, addr, us);
	record_hold(&file, tid, false, us + 1, granted, released);
}

/* An unmap of 4 GiB under the write lock: 10 us, then 100 us of zap. */
static void unmap(uint64_t us)
{
	record_munmap(&file, MAIN, us + 2, us + 10, us + 110, us + 110, us + 110, LENGTH);
	record_hold(&file, MAIN, true, us, us, us + 110);
}

static void begin(void)
{
	static const char *const probes[] = { "mmap_lock_start_locking", "sched_skip_vma_numa",
					      NULL };

	lane_begin(&file, probes);
}

static void load(void)
{
	struct nrp_error err = NRP_ERROR_INIT;

	lane_ready(&file);
	assert_ok(nrp_lock_lanes_load(&lanes, file.store, &file.capture, &err), &err);
	assert_true(lanes.host.known);
	assert_int_equal(nrp_lock_lanes_check(&lanes), 0);
	assert_int_equal(nrp_lock_lanes_start(&lanes), 0);
}

static struct nrp_lock_result run(enum nrp_munmap_variant variant, bool vma_locks)
{
	struct nrp_lock_params params = nrp_lock_host_params(variant);
	struct nrp_lock_result ret;

	params.vma_locks = vma_locks;
	assert_int_equal(nrp_lock_lanes_run(&ret, &lanes, &params), 0);
	return ret;
}

static void end(void)
{
	nrp_lock_lanes_clear(&lanes);
	lane_end(&file);
}

/* ---- tests ---------------------------------------------------------------------------- */

/* Map, touch, unmap in a loop: what stress-ng's mmap stressor does (seed 001). */
static void one_thread_gains_nothing(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 0; i < 5; i++) {
		fault(MAIN, RANGE, 1000 * i + 10, 1000 * i + 12, 1000 * i + 20);
		unmap(1000 * i + 100);
	}
	load();
	assert_int_equal(lanes.host.variant, NRP_MUNMAP_WRITE);
	assert_int_equal(lanes.host.blame.unmaps, 5);
	assert_int_equal(lanes.host.blame.contended_unmaps, 0);
	assert_int_equal(lanes.host.blame.nr_top, 0);
	for (int v = 0; v < NRP_NR_MUNMAP_VARIANTS; v++) {
		struct nrp_lock_result r = run((enum nrp_munmap_variant)v, false);

		assert_int_equal(r.changed, 0);
		assert_int_equal(r.upper[NRP_LOCK_OF_READERS].ns,
				 lanes.record.value[NRP_LOCK_OF_READERS].ns);
	}
	end();
}

/* The unmap holds the lock from 100 to 210; a fault asks at 151 and gets it 2 us late. */
static void contended(void)
{
	begin();
	fault(OTHER, 0x1000, 10, 12, 20);
	unmap(100);
	fault(OTHER, 0x2000, 150, 212, 220);
	load();
}

static void the_unmap_is_the_blocker(void **state)
{
	const struct nrp_lock_blame *b = &lanes.host.blame;

	(void)state;
	contended();
	assert_int_equal(b->behind_munmap, 59 * US);
	assert_int_equal(b->behind_writers, 0);
	assert_int_equal(b->behind_none, 2 * US);
	assert_int_equal(b->contended_unmaps, 1);
	assert_int_equal(b->longest_unmap, LENGTH);
	assert_int_equal(b->nr_top, 1);
	assert_true(b->top[0].munmap);
	assert_int_equal(b->top[0].tid, MAIN);
	assert_int_equal(b->top[0].victims, 1);
	assert_int_equal(b->top[0].wait_ns, 59 * US);
	assert_int_equal(b->top[0].held, 110 * US);
	end();
}

/* The first fault is treated alike and keeps its wait of 1 us, the second finds the lock shared. */
static void a_downgrade_lets_the_fault_in(void **state)
{
	struct nrp_lock_result r;

	(void)state;
	contended();
	assert_int_equal(lanes.record.value[NRP_LOCK_OF_FAULTS].ns, 62 * US);
	assert_int_equal(lanes.record.write_held, 110 * US);
	assert_int_equal(run(NRP_MUNMAP_WRITE, false).changed, 0);
	r = run(NRP_MUNMAP_DOWNGRADE, false);
	assert_int_equal(r.changed, 1);
	assert_int_equal(r.write_held, 10 * US);
	assert_int_equal(r.upper[NRP_LOCK_OF_FAULTS].queued, 0);
	/* its events and the lock take as long as on record elsewhere: 1 us */
	assert_int_equal(r.upper[NRP_LOCK_OF_FAULTS].ns, 2 * US);
	r = run(NRP_MUNMAP_WRITE, true);
	assert_int_equal(r.upper[NRP_LOCK_OF_FAULTS].longest, 0);
	end();
}

/* A waiter in line: from the engine's wait to that plus the host's lateness. */
static void what_is_still_in_line_is_as_late_as_on_the_host(void **state)
{
	struct nrp_lock_result r;

	(void)state;
	begin();
	unmap(100);
	fault(OTHER, 0x2000, 102, 212, 220);
	load();
	r = run(NRP_MUNMAP_DOWNGRADE, false); /* asks at 103, downgraded at 110 */
	assert_int_equal(r.lower[NRP_LOCK_OF_FAULTS].ns, 7 * US);
	assert_int_equal(r.upper[NRP_LOCK_OF_FAULTS].ns, 9 * US);
	end();
}

/* Half of the range is zapped at 160: a fault in the first quarter gets a new page. */
static void what_faults_in_the_range_see(void **state)
{
	struct nrp_lock_result r;

	(void)state;
	begin();
	fault(OTHER, RANGE, 10, 12, 20);
	unmap(100);
	fault(OTHER, RANGE + LENGTH / 4, 159, 212, 220);
	load();
	assert_int_equal(lanes.record.unmap_faults, 2);
	assert_int_equal(lanes.record.segv, 1);
	r = run(NRP_MUNMAP_DOWNGRADE, false);
	assert_int_equal(r.segv, 1);
	assert_int_equal(r.repopulated, 0);
	r = run(NRP_MUNMAP_TWO_PHASE, false);
	assert_int_equal(r.segv, 0);
	assert_int_equal(r.repopulated, 1);
	end();
}

/*
 * Asks at 11, 151 and 301, for 8 us each, and thinks 131 and 81 us. Closed: it ends at 19 and asks
 * at 150, has the lock from 210 on (downgrade: 150), asks again at 299 (239) and ends at 307 (247):
 * 296 (236) us after it first asked.
 */
static void faults_a_second_of_a_task(void **state)
{
	(void)state;
	begin();
	fault(OTHER, 0x1000, 10, 12, 20);
	unmap(100);
	fault(OTHER, 0x2000, 150, 212, 220);
	fault(OTHER, 0x3000, 300, 302, 310);
	load();
	assert_int_equal(lanes.record.fault_rate * 296 + 0.5, 3000000);
	assert_int_equal(run(NRP_MUNMAP_DOWNGRADE, false).fault_rate * 236 + 0.5, 3000000);
	end();
}

/*
 * Vector L-1 (spec part 3, 4), 1000 us later: mbind() walks its queue for 50 us and moves 100 huge
 * pages, 20 us each, under the write lock; a fault comes at 100 and a scan at 200.
 */
static void moving_pages(bool unlocked)
{
	uint64_t released = unlocked ? 1050 : 3050, fault_at = unlocked ? 1100 : 3050;

	begin();
	record_call(&file, MAIN, NRP_CALL_MBIND, 990, 3100, LENGTH);
	record_hold(&file, MAIN, true, 1000, 1000, released);
	LANE_ROW(migration, m, 3050 * US);
	NRP_SET(&m, migration, start_time, 1050 * US);
	NRP_SET(&m, migration, tid, MAIN);
	NRP_SET(&m, migration, reason, 4);
	lane_put(&file, NRP_MIGRATION, &m);
	record_exception(&file, OTHER, 0x1000, 1099);
	record_hold(&file, OTHER, false, 1100, fault_at, fault_at + 5);
	record_pass(&file, OTHER + 1, 1199, 1240);
	record_lock(&file, OTHER + 1, MM, NRP_LOCK_REQUEST, false, 1200);
	record_lock(&file, OTHER + 1, MM, unlocked ? NRP_LOCK_GRANT : NRP_LOCK_FAILED, false, 1200);
	if (unlocked)
		record_lock(&file, OTHER + 1, MM, NRP_LOCK_RELEASE, false, 1230);
	load();
}

static struct nrp_lock_result run_mbind(bool moves_unlocked)
{
	struct nrp_lock_params params = nrp_lock_host_params(lanes.host.variant);
	struct nrp_lock_result ret;

	params.moves_unlocked = moves_unlocked;
	assert_int_equal(nrp_lock_lanes_run(&ret, &lanes, &params), 0);
	return ret;
}

static void l1_mbind_that_moves_pages_is_the_blocker(void **state)
{
	const struct nrp_lock_blocker *top = &lanes.host.blame.top[0];
	struct nrp_lock_result r;

	(void)state;
	moving_pages(false);
	assert_int_equal(lanes.record.value[NRP_LOCK_OF_FAULTS].ns, 1950 * US);
	assert_int_equal(lanes.record.skipped, 1);
	assert_int_equal(lanes.host.blame.nr_top, 1);
	assert_int_equal(top->call, NRP_CALL_MBIND);
	assert_string_equal(nrp_lock_call_name(top->call), "mbind");
	assert_false(top->munmap);
	assert_int_equal(top->held, 2050 * US);
	assert_int_equal(top->faults, 1);
	assert_int_equal(top->wait_ns, 1950 * US);
	assert_int_equal(top->worst.tid, OTHER);
	assert_int_equal(top->worst.kind, NRP_LOCK_FAULT);
	assert_int_equal(top->worst.wait_ns, 1950 * US);
	assert_int_equal(top->lost_scans, 1);
	r = run_mbind(false);
	assert_int_equal(r.changed, 0);
	assert_int_equal(r.skipped, 1);
	assert_int_equal(r.write_held, 2050 * US);
	r = run_mbind(true); /* W[50] */
	assert_int_equal(r.write_held, 50 * US);
	assert_int_equal(r.upper[NRP_LOCK_OF_FAULTS].ns, 0);
	assert_int_equal(r.skipped, 0);
	assert_true(r.modelled);
	end();
}

static void l1_mbind_of_67_moves_them_later(void **state)
{
	struct nrp_lock_result r;

	(void)state;
	moving_pages(true);
	assert_int_equal(lanes.record.value[NRP_LOCK_OF_FAULTS].ns, 0);
	assert_int_equal(lanes.record.skipped, 0);
	assert_int_equal(lanes.host.blame.nr_top, 0);
	r = run_mbind(true);
	assert_int_equal(r.changed, 0);
	end();
}

/* The scan finds a reader, and a writer that waits for it (vector V-10b): nobody writes. */
static void a_scan_is_lost_to_a_line(void **state)
{
	(void)state;
	begin();
	record_hold(&file, MAIN, false, 10, 10, 50);
	record_hold(&file, OTHER, true, 20, 50, 60);
	record_pass(&file, OTHER + 1, 24, 40);
	record_lock(&file, OTHER + 1, MM, NRP_LOCK_REQUEST, false, 25);
	record_lock(&file, OTHER + 1, MM, NRP_LOCK_FAILED, false, 26);
	load();
	assert_int_equal(lanes.record.skipped, 1);
	assert_int_equal(lanes.host.blame.scans_behind_line, 1);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_gains_nothing),
		cmocka_unit_test(the_unmap_is_the_blocker),
		cmocka_unit_test(a_downgrade_lets_the_fault_in),
		cmocka_unit_test(what_is_still_in_line_is_as_late_as_on_the_host),
		cmocka_unit_test(what_faults_in_the_range_see),
		cmocka_unit_test(faults_a_second_of_a_task),
		cmocka_unit_test(l1_mbind_that_moves_pages_is_the_blocker),
		cmocka_unit_test(l1_mbind_of_67_moves_them_later),
		cmocka_unit_test(a_scan_is_lost_to_a_line),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
