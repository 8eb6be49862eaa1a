/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scan windows lost to the mmap_lock, and what that costs; expected values by hand. Times are us.
 */
#include "replay/lost_scans.h"
#include "tests/lock_records.h"

#include <math.h>

#define LENGTH (UINT64_C(4) << 30)
#define HEAP UINT64_C(0x600000000000) /* what is scanned */
#define END UINT64_C(400000)
#define PERIOD 100 /* ms */

enum { MAIN = 100, OTHER };

static struct lane_file file;
static struct nrp_lock_lanes lanes;
static struct nrp_scan_attempts attempts;

/* ---- the capture ---------------------------------------------------------------------- */

static void begin(void)
{
	static const char *const probes[] = { "mmap_lock_start_locking", "sched_skip_vma_numa",
					      NULL };

	lane_begin(&file, probes);
}

/* An unmap of 4 GiB: 10 us, then 100 us of zap, under the write lock or downgraded. */
static void unmap(uint64_t us, bool downgrades)
{
	record_munmap(&file, MAIN, us + 2, us + 10, us + 110, us + 110, us + 110, LENGTH);
	record_lock(&file, MAIN, MM, NRP_LOCK_REQUEST, true, us);
	record_lock(&file, MAIN, MM, NRP_LOCK_GRANT, true, us);
	if (downgrades)
		record_lock(&file, MAIN, MM, NRP_LOCK_GRANT, false, us + 10);
	record_lock(&file, MAIN, MM, NRP_LOCK_RELEASE, !downgrades, us + 110);
}

static void pass(uint64_t us, uint32_t ranges, uint64_t pages)
{
	LANE_ROW(scan_pass, p, us * US);
	NRP_SET(&p, scan_pass, end_time, (us + 20) * US);
	NRP_SET(&p, scan_pass, tid, OTHER);
	NRP_SET(&p, scan_pass, mm, MM);
	NRP_SET(&p, scan_pass, scan_period, PERIOD);
	NRP_SET(&p, scan_pass, ranges, ranges);
	NRP_SET(&p, scan_pass, armed_pages, pages);
	lane_put(&file, NRP_SCAN_PASS, &p);
}

/* Tries 1 us after its begin; armed entries of HEAP, none if it fails. */
static void scan(uint64_t us, uint64_t pages)
{
	pass(us, pages ? 1 : 0, pages);
	record_lock(&file, OTHER, MM, NRP_LOCK_REQUEST, false, us + 1);
	record_lock(&file, OTHER, MM, pages ? NRP_LOCK_GRANT : NRP_LOCK_FAILED, false, us + 2);
	if (!pages)
		return;
	LANE_ROW(scan_range, r, (us + 3) * US);
	NRP_SET(&r, scan_range, tid, OTHER);
	NRP_SET(&r, scan_range, mm, MM);
	NRP_SET(&r, scan_range, pass_time, us * US);
	NRP_SET(&r, scan_range, start, HEAP);
	NRP_SET(&r, scan_range, end, HEAP + pages * 4096);
	NRP_SET(&r, scan_range, pages, pages);
	lane_put(&file, NRP_SCAN_RANGE, &r);
	record_lock(&file, OTHER, MM, NRP_LOCK_RELEASE, false, us + 10);
}

static void hint_fault(uint64_t page, int16_t src, int16_t this_nid, uint32_t pages, uint64_t us)
{
	LANE_ROW(hint_fault, f, us * US);
	NRP_SET(&f, hint_fault, tid, OTHER);
	NRP_SET(&f, hint_fault, mm, MM);
	NRP_SET(&f, hint_fault, addr, HEAP + page * 4096);
	NRP_SET(&f, hint_fault, src_nid, src);
	NRP_SET(&f, hint_fault, this_nid, this_nid);
	NRP_SET(&f, hint_fault, pages, pages);
	NRP_SET(&f, hint_fault, moved, page == 1);
	lane_put(&file, NRP_HINT_FAULT, &f);
}

/* Touched twice a second from node 1; the bounds are those of the sample. */
static const struct nrp_touch_rate rates[] = {
	{ .mm = MM, .vm_start = HEAP - 4096, .vm_end = HEAP, .nid = 1, .rate = 7, .upper = 8 },
	{ .mm = MM, .vm_start = HEAP, .vm_end = HEAP + (1 << 20), .nid = 0, .rate = 5, .upper = 6 },
	{ .mm = MM, .vm_start = HEAP, .vm_end = HEAP + (1 << 20), .nid = 1, .rate = 2, .upper = 3 },
	{ .mm = MM + 1, .vm_start = HEAP, .vm_end = HEAP + (1 << 20), .nid = 1, .rate = 9 },
};

static void load(void)
{
	struct nrp_error err = NRP_ERROR_INIT;

	file.capture.last_time = END * US;
	lane_ready(&file);
	assert_ok(nrp_lock_lanes_load(&lanes, file.store, &file.capture, &err), &err);
	assert_int_equal(nrp_lock_lanes_check(&lanes), 0);
	assert_int_equal(nrp_lock_lanes_start(&lanes), 0);
	assert_int_equal(nrp_scan_attempts_collect(&attempts, &lanes), 0);
}

/* The old lane is the host's. */
static void run(enum nrp_munmap_variant variant)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lock_params params = nrp_lock_host_params(variant);
	struct nrp_lock_result result;

	load();
	nrp_scan_attempts_lane(&attempts, NRP_LOST_OLD, NULL);
	assert_int_equal(nrp_lock_lanes_run(&result, &lanes, &params), 0);
	nrp_scan_attempts_lane(&attempts, NRP_LOST_NEW, &lanes);
	assert_ok(nrp_scan_attempts_windows(&attempts, file.store, &file.capture, &err), &err);
	assert_ok(nrp_scan_attempts_touches(&attempts, file.store, &file.capture, rates,
					    sizeof(rates) / sizeof(rates[0]), &err),
		  &err);
}

static void end(void)
{
	nrp_scan_attempts_clear(&attempts);
	nrp_lock_lanes_clear(&lanes);
	lane_end(&file);
}

static void is_about(double value, double want)
{
	assert_true(fabs(value - want) < 1e-9);
}

#define BIT(who) (1 << (who))

/* ---- tests ---------------------------------------------------------------------------- */

/*
 * The scan at 151 us finds the unmap's write lock. The one at 100201 arms the same window, of 256
 * entries; of these pages 1 and 2 (two base pages) lie on another node than the thread that
 * touches them, so that they were touched 3 x 2 times a second in the 0.10005 s before.
 */
static void a_lost_window_is_marked_one_attempt_later(void **state)
{
	const struct nrp_scan_attempt *a;
	struct nrp_lost_windows lost;

	(void)state;
	begin();
	unmap(100, false);
	scan(150, 0);
	scan(100200, 256);
	hint_fault(1, 0, 1, 1, 150000);
	hint_fault(2, 0, 1, 2, 150001);
	hint_fault(4, 1, 1, 1, 150002); /* local */
	scan(200200, 8);
	hint_fault(3, 0, 1, 1, 250000); /* armed anew: not this window's */
	run(NRP_MUNMAP_DOWNGRADE);
	a = &attempts.at[0];
	assert_int_equal(attempts.count, 3);
	assert_int_equal(a->lost, BIT(NRP_LOST_ON_RECORD) | BIT(NRP_LOST_OLD));
	assert_true(a->on_record && a->followed && a->has_window);
	assert_int_equal(a->period, UINT64_C(100000000));
	assert_int_equal(a->gap, 100050 * US);
	assert_int_equal(a->window, 100200 * US);
	assert_int_equal(a->pages, 256);
	assert_int_equal(a->remote_faults, 2);
	assert_int_equal(a->remote_pages, 3);
	assert_int_equal(a->moved_pages, 1);
	is_about(a->touches, 3 * 2);
	is_about(a->touches_upper, 3 * 3);
	lost = nrp_lost_windows(&attempts, NRP_LOST_OLD, NRP_NR_LOST_IN, 0);
	assert_int_equal(lost.windows, 1);
	assert_int_equal(lost.pages, 256);
	assert_int_equal(lost.unknown, 0);
	is_about(lost.seconds, 0.10005);
	is_about(lost.page_seconds, 256 * 0.10005);
	is_about(lost.accesses, 6 * 0.10005);
	is_about(lost.accesses_upper, 9 * 0.10005);
	/* Downgraded at 110, the lock is read, and nobody waits: the scan gets it. */
	assert_int_equal(nrp_lost_windows(&attempts, NRP_LOST_NEW, NRP_NR_LOST_IN, 0).windows, 0);
	assert_int_equal(nrp_lost_windows(&attempts, NRP_LOST_OLD, NRP_LOST_NEW, 0).windows, 1);
	assert_int_equal(nrp_lost_windows(&attempts, NRP_LOST_OLD, NRP_NR_LOST_IN, MM).windows, 1);
	assert_int_equal(nrp_lost_windows(&attempts, NRP_LOST_OLD, NRP_NR_LOST_IN, MM + 1).windows,
			 0);
	end();
}

/* Spec part 3, 1, the other way round: a host that downgrades, and a lane that does not. */
static void a_lane_loses_what_the_host_armed(void **state)
{
	struct nrp_lost_windows more;

	(void)state;
	begin();
	unmap(100, true);
	scan(150, 64);
	hint_fault(5, 0, 1, 1, 5000);
	scan(100200, 256);
	run(NRP_MUNMAP_WRITE);
	assert_int_equal(attempts.at[0].lost, BIT(NRP_LOST_NEW));
	more = nrp_lost_windows(&attempts, NRP_LOST_NEW, NRP_LOST_OLD, 0);
	assert_int_equal(more.windows, 1);
	assert_int_equal(more.pages, 64); /* its own window */
	is_about(more.page_seconds, 64 * 0.10005);
	is_about(more.accesses, 2 * 0.10005);
	assert_int_equal(nrp_lost_windows(&attempts, NRP_LOST_OLD, NRP_LOST_NEW, 0).windows, 0);
	end();
}

/* Of two lost in a row each counts up to the next attempt; what comes last has no window. */
static void windows_lost_in_a_row(void **state)
{
	struct nrp_lost_windows lost;

	(void)state;
	begin();
	unmap(100, false);
	scan(150, 0);
	unmap(100100, false);
	scan(100150, 0);
	scan(200150, 16);
	unmap(300100, false);
	scan(300150, 0);
	run(NRP_MUNMAP_WRITE);
	lost = nrp_lost_windows(&attempts, NRP_LOST_NEW, NRP_NR_LOST_IN, 0);
	assert_int_equal(lost.windows, 3);
	assert_int_equal(lost.unknown, 1);
	assert_int_equal(lost.pages, 2 * 16);
	is_about(lost.page_seconds, 16 * 0.2);
	assert_false(attempts.at[3].followed);
	assert_int_equal(attempts.at[3].gap, (END - 300151) * US);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_window_is_marked_one_attempt_later),
		cmocka_unit_test(a_lane_loses_what_the_host_armed),
		cmocka_unit_test(windows_lost_in_a_row),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
