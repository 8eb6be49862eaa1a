/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tiering.promote lane on small captures. All CPUs are on node 0, so that node 1 is slow. One
 * tick is 4 ms, ages are modulo 16384 ms (14 bits), the capture begins at 1000 ms. Bounds by hand:
 * an age from "end of range to fault" less a tick to "begin of range to fault" plus a tick and the
 * ms that rounding hides.
 */
#include "lane_util.h"
#include "replay/tiering.h"

#define MS UINT64_C(1000000)
#define MM UINT64_C(0xff00)
#define FIRST UINT64_C(0x40000000)
#define LAST UINT64_C(0x50000000)

static struct lane_file file;

static void begin(void)
{
	static const char *const probes[] = { "fault_begin", "filter_begin", NULL };

	lane_begin(&file, probes);
	for (int cpu = 0; cpu < file.capture.facts.nr_cpus; cpu++)
		file.capture.facts.cpu_nid[cpu] = 0;
	file.capture.facts.balancing = 3;
	file.capture.first_time = 1000 * MS;
	file.capture.last_time = 100000 * MS;
}

/* The whole of [FIRST, LAST) is armed. */
static void arm(uint64_t from_ms, uint64_t to_ms)
{
	LANE_ROW(scan_range, r, from_ms * MS);

	NRP_SET(&r, scan_range, end_time, to_ms * MS);
	NRP_SET(&r, scan_range, mm, MM);
	NRP_SET(&r, scan_range, start, FIRST);
	NRP_SET(&r, scan_range, end, LAST);
	lane_put(&file, NRP_SCAN_RANGE, &r);
}

/* @answer -1: not on record. */
static void fault(uint64_t ms, uint64_t addr, int src, uint32_t pages, int answer)
{
	LANE_ROW(hint_fault, f, ms * MS);

	NRP_SET(&f, hint_fault, mm, MM);
	NRP_SET(&f, hint_fault, addr, addr);
	NRP_SET(&f, hint_fault, attempt, NRP_ATTEMPT_NONE);
	NRP_SET(&f, hint_fault, src_nid, (int16_t)src);
	NRP_SET(&f, hint_fault, filter_delay, 0);
	NRP_SET(&f, hint_fault, dst_cpu, 3);
	NRP_SET(&f, hint_fault, pages, pages);
	if (answer >= 0)
		NRP_SET(&f, hint_fault, filter_answer, (uint8_t)answer);
	lane_put(&file, NRP_HINT_FAULT, &f);
}

static struct nrp_tiering_lane_params params(enum nrp_tiering_variant variant,
					     enum nrp_tiering_free free_space)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tiering_lane_params p;

	assert_ok(nrp_tiering_host_params(&p, variant, file.store, &file.capture, &err), &err);
	assert_int_equal(p.policy.hot_threshold_ms, 1000);
	assert_int_equal(p.policy.limit, 16777216);
	assert_int_equal(p.policy.cpupid_bits, 14);
	p.free = free_space;
	return p;
}

static struct nrp_tiering run(const struct nrp_tiering_lane_params *p, size_t n)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tiering t;

	assert_ok(nrp_tiering_run(&t, file.store, &file.capture, p, n, &err), &err);
	assert_int_equal(t.nr_lanes, n);
	lane_end(&file);
	return t;
}

/* One static lane whose target is full. */
static struct nrp_tiering run_static(void)
{
	struct nrp_tiering_lane_params p;

	lane_ready(&file);
	p = params(NRP_TIERING_STATIC, NRP_TIERING_FREE_NEVER);
	return run(&p, 1);
}

static void check(const struct nrp_tiering_lane *lane, uint64_t lower, uint64_t value,
		  uint64_t upper)
{
	assert_int_equal(lane->lower.faults, lower);
	assert_int_equal(lane->value.faults, value);
	assert_int_equal(lane->upper.faults, upper);
}

/*
 *   A at 5500   armed 5000..5010: 486..505 ms
 *   B at 6500   1486..1505
 *   A at 7000   armed 6900..6905, after its fault: 91..105
 *   C at 7000   armed at 5000, or came later and was armed at 6900: 91..2005
 *   D at 7000   outside all ranges: any age
 */
static void put_five_faults(void)
{
	arm(5000, 5010);
	arm(6900, 6905);
	fault(5500, FIRST, 1, 1, 1);
	fault(6500, FIRST + 0x1000, 1, 1, 0);
	fault(7000, FIRST, 1, 1, 0);
	fault(7000, FIRST + 0x2000, 1, 1, 1);
	fault(7000, LAST, 1, 1, -1);
	fault(7000, FIRST + 0x3000, 0, 1, 1); /* on the fast node */
}

static void test_bounds_by_age_threshold_and_free_space(void **state)
{
	struct nrp_tiering_lane_params p[4];
	struct nrp_tiering t;

	(void)state;
	begin();
	put_five_faults();
	lane_ready(&file);
	p[0] = params(NRP_TIERING_STATIC, NRP_TIERING_FREE_UNKNOWN);
	p[1] = params(NRP_TIERING_STATIC, NRP_TIERING_FREE_NEVER);
	p[2] = params(NRP_TIERING_61, NRP_TIERING_FREE_NEVER);
	p[3] = params(NRP_TIERING_72, NRP_TIERING_FREE_UNKNOWN);
	t = run(p, 4);
	assert_false(t.identical);
	assert_true(t.tiers_known);
	assert_int_equal(t.slow.faults, 5);
	assert_int_equal(t.never_armed, 1);
	/* Both faults on A; C as well if it was armed last. */
	check(&t.lane[0], 2, 3, 5);
	check(&t.lane[1], 2, 3, 4);
	/* The threshold may be anything from 125 to 2000 ms. */
	check(&t.lane[2], 1, 3, 5);
	check(&t.lane[3], 1, 3, 5);
	nrp_tiering_clear(&t);
}

static void test_recorded_answers_are_compared_where_the_bounds_decide(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	put_five_faults();
	t = run_static();
	assert_int_equal(t.lane[0].decisions, 4);
	assert_int_equal(t.lane[0].agree, 2);     /* A, B */
	assert_int_equal(t.lane[0].disagree, 1);  /* A again */
	assert_int_equal(t.lane[0].undecided, 1); /* C */
	nrp_tiering_clear(&t);
}

/* 1002 ms between events may be 998 between ticks. */
static void test_ticks_blur_ages(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	arm(5000, 5000);
	fault(6002, FIRST, 1, 1, -1);
	fault(6004, FIRST + 0x1000, 1, 1, -1); /* at least 1000 */
	t = run_static();
	check(&t.lane[0], 0, 0, 1);
	nrp_tiering_clear(&t);
}

/* 17000 ms look like 616. */
static void test_ages_wrap(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	arm(5000, 5000);
	fault(22000, FIRST, 1, 1, -1);
	t = run_static();
	check(&t.lane[0], 1, 1, 1);
	nrp_tiering_clear(&t);
}

static void test_parameters_decide(void **state)
{
	struct nrp_tiering_lane_params p[2];
	struct nrp_tiering t;

	(void)state;
	begin();
	put_five_faults();
	lane_ready(&file);
	p[0] = p[1] = params(NRP_TIERING_STATIC, NRP_TIERING_FREE_NEVER);
	p[0].policy.hot_threshold_ms = 100; /* C and D perhaps, A again at the edge */
	p[1].policy.limit = 0;
	t = run(p, 2);
	check(&t.lane[0], 0, 2, 3);
	check(&t.lane[1], 0, 0, 0);
	nrp_tiering_clear(&t);
}

/*
 * Limit 1600, counters may lag by 8 x 125 pages: the first huge page has 512 + 1000 < 1600 behind
 * it, the second does not. With exact counters 0, 512, 1024 and 1536 are below the limit, 2048 is
 * not.
 */
static void test_rate_limit_with_lagging_counters(void **state)
{
	struct nrp_tiering_lane_params p;
	struct nrp_tiering t;

	(void)state;
	begin();
	arm(6900, 6905);
	for (unsigned int i = 0; i < 5; i++)
		fault(7000 + i, FIRST + 0x200000 * i, 1, 512, -1);
	lane_ready(&file);
	p = params(NRP_TIERING_STATIC, NRP_TIERING_FREE_NEVER);
	p.policy.limit = 1600;
	t = run(&p, 1);
	assert_int_equal(t.slow.pages, 2560);
	check(&t.lane[0], 1, 4, 5);
	assert_int_equal(t.lane[0].value.pages, 2048);
	nrp_tiering_clear(&t);
}

/* Within one second two windows at most: 2 x (1 + 1000) faults pass a limit of one page. */
static void test_rate_limit_bounds_from_above(void **state)
{
	struct nrp_tiering_lane_params p;
	struct nrp_tiering t;

	(void)state;
	begin();
	arm(6900, 6905);
	for (unsigned int i = 0; i < 3000; i++)
		fault(7000 + i / 4, FIRST + 0x1000 * i, 1, 1, -1);
	lane_ready(&file);
	p = params(NRP_TIERING_STATIC, NRP_TIERING_FREE_NEVER);
	p.policy.limit = 1;
	t = run(&p, 1);
	assert_int_equal(t.slow.faults, 3000);
	assert_int_equal(t.lane[0].lower.faults, 0);
	assert_int_equal(t.lane[0].value.faults, 1);
	assert_int_equal(t.lane[0].upper.faults, 2002);
	nrp_tiering_clear(&t);
}

/* Candidates of before the capture may have used up the running second. */
static void test_first_second_is_open(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	arm(1400, 1401);
	fault(1500, FIRST, 1, 1, -1);
	t = run_static();
	check(&t.lane[0], 0, 1, 1);
	nrp_tiering_clear(&t);
}

static void test_no_slow_fault_is_identical(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	arm(5000, 5010);
	fault(5500, FIRST, 0, 1, 1);
	t = run_static();
	assert_true(t.identical);
	check(&t.lane[0], 0, 0, 0);
	nrp_tiering_clear(&t);
}

static void test_mode_off_is_identical(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	file.capture.facts.balancing = 1;
	put_five_faults();
	t = run_static();
	assert_true(t.identical);
	assert_int_equal(t.slow.faults, 0);
	nrp_tiering_clear(&t);
}

static void put_loss(uint64_t from_ms)
{
	LANE_ROW(loss, l, from_ms * MS);

	NRP_SET(&l, loss, cause, NRP_LOSS_OVERRUN);
	lane_put(&file, NRP_LOSS, &l);
}

static void test_a_loss_forbids_identical_and_certainty(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	put_loss(2000);
	t = run_static();
	assert_false(t.identical);
	nrp_tiering_clear(&t);
	begin();
	put_five_faults();
	put_loss(6000);
	t = run_static();
	check(&t.lane[0], 1, 3, 5); /* certain: A at 5500 only */
	nrp_tiering_clear(&t);
}

static void test_unknown_tiers_are_not_identical(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	file.capture.facts.topology_inferred = true;
	put_five_faults();
	t = run_static();
	assert_false(t.identical);
	assert_false(t.tiers_known);
	nrp_tiering_clear(&t);
}

static void test_mode_not_on_record_leaves_all_open(void **state)
{
	struct nrp_tiering t;

	(void)state;
	begin();
	file.capture.facts.balancing = -1;
	put_five_faults();
	t = run_static();
	assert_false(t.identical);
	check(&t.lane[0], 0, 3, 5);
	nrp_tiering_clear(&t);
}

static void test_host_settings_are_used(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tiering_lane_params p;

	(void)state;
	begin();
	assert_ok(nrp_store_put_setting(file.store, file.capture.id,
					"/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms",
					"250", &err),
		  &err);
	assert_ok(nrp_store_put_setting(file.store, file.capture.id,
					"/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
					"100", &err),
		  &err);
	file.capture.facts.scan_period_max_ms = 5000;
	lane_ready(&file);
	assert_ok(nrp_tiering_host_params(&p, NRP_TIERING_61, file.store, &file.capture, &err),
		  &err);
	assert_int_equal(p.policy.hot_threshold_ms, 250);
	assert_int_equal(p.policy.limit, 25600);
	assert_int_equal(p.policy.scan_period_max_ms, 5000);
	lane_end(&file);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds_by_age_threshold_and_free_space),
		cmocka_unit_test(test_recorded_answers_are_compared_where_the_bounds_decide),
		cmocka_unit_test(test_ticks_blur_ages),
		cmocka_unit_test(test_ages_wrap),
		cmocka_unit_test(test_parameters_decide),
		cmocka_unit_test(test_rate_limit_with_lagging_counters),
		cmocka_unit_test(test_rate_limit_bounds_from_above),
		cmocka_unit_test(test_first_second_is_open),
		cmocka_unit_test(test_no_slow_fault_is_identical),
		cmocka_unit_test(test_mode_off_is_identical),
		cmocka_unit_test(test_a_loss_forbids_identical_and_certainty),
		cmocka_unit_test(test_unknown_tiers_are_not_identical),
		cmocka_unit_test(test_mode_not_on_record_leaves_all_open),
		cmocka_unit_test(test_host_settings_are_used),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
