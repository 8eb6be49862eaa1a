/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lanes over moves of tasks, on small captures: counts by hand from spec migrate.md 3.3 (S1..S10)
 * and 3.4 (C1..C6). CPUs 0-3 are node 0, 4-7 node 1. Times are ms.
 */
#include "lane_util.h"
#include "replay/task_moves.h"

#define MS UINT64_C(1000000)
#define FAIL NRP_TNF_MIGRATE_FAIL
#define LOCAL NRP_TNF_FAULT_LOCAL

static const char *const all_probes[] = { "fault_begin", "preferred", NULL };

static struct lane_file file;

static void begin(const char *const *probes)
{
	lane_begin(&file, probes);
	file.capture.facts.scan_delay_ms = 5;
	file.capture.first_time = MS;
	file.capture.last_time = 100000 * MS;
}

static struct nrp_task_moves run(void)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_task_moves m;

	lane_ready(&file);
	assert_ok(nrp_task_moves_run(&m, file.store, &file.capture, &err), &err);
	lane_end(&file);
	return m;
}

/* A fault whose filter call saw the task's state; reported after half a ms. */
static void put_fault(uint64_t ms, int tid, int preferred, int seq, uint32_t period, uint8_t flags,
		      bool grouped)
{
	LANE_ROW(hint_fault, f, ms * MS);

	NRP_SET(&f, hint_fault, tid, tid);
	NRP_SET(&f, hint_fault, attempt, NRP_ATTEMPT_NONE);
	NRP_SET(&f, hint_fault, preferred_nid, (int16_t)preferred);
	NRP_SET(&f, hint_fault, scan_seq, seq);
	NRP_SET(&f, hint_fault, scan_period, period);
	NRP_SET(&f, hint_fault, tnf_flags, flags);
	NRP_SET(&f, hint_fault, end_delay, MS / 2);
	if (grouped)
		NRP_SET(&f, hint_fault, numa_group, 0xff10);
	lane_put(&file, NRP_HINT_FAULT, &f);
}

static void fault(uint64_t ms, int tid, int preferred, int seq, uint32_t period, uint8_t flags)
{
	put_fault(ms, tid, preferred, seq, period, flags, false);
}

static void pass(uint64_t ms, int tid, int preferred, int seq, uint32_t period, uint32_t period_max)
{
	LANE_ROW(scan_pass, p, ms * MS);

	NRP_SET(&p, scan_pass, end_time, ms * MS + 1000);
	NRP_SET(&p, scan_pass, tid, tid);
	NRP_SET(&p, scan_pass, preferred_nid, (int16_t)preferred);
	NRP_SET(&p, scan_pass, task_scan_seq, seq);
	NRP_SET(&p, scan_pass, scan_period, period);
	NRP_SET(&p, scan_pass, scan_period_max, period_max);
	lane_put(&file, NRP_SCAN_PASS, &p);
}

/* @partner 0: none. */
static void move(uint64_t ms, uint8_t kind, int tid, int src_cpu, int dst_cpu, int partner)
{
	LANE_ROW(task_move, m, ms * MS);

	NRP_SET(&m, task_move, kind, kind);
	NRP_SET(&m, task_move, tid, tid);
	NRP_SET(&m, task_move, src_cpu, src_cpu);
	NRP_SET(&m, task_move, dst_cpu, dst_cpu);
	if (partner)
		NRP_SET(&m, task_move, dst_tid, partner);
	lane_put(&file, NRP_TASK_MOVE, &m);
}

static void migrate(uint64_t ms, int tid, int src_cpu, int dst_cpu)
{
	move(ms, NRP_MOVE_MIGRATE, tid, src_cpu, dst_cpu, 0);
}

static void life(uint64_t ms, uint8_t kind, int tid, int child)
{
	LANE_ROW(task_life, l, ms * MS);

	NRP_SET(&l, task_life, kind, kind);
	NRP_SET(&l, task_life, tid, tid);
	if (child)
		NRP_SET(&l, task_life, child_tid, child);
	lane_put(&file, NRP_TASK_LIFE, &l);
}

static void preferred(uint64_t ms, int tid, int nid)
{
	LANE_ROW(preferred, p, ms * MS);

	NRP_SET(&p, preferred, tid, tid);
	NRP_SET(&p, preferred, nid, (int16_t)nid);
	lane_put(&file, NRP_PREFERRED, &p);
}

static void check_resets(const struct nrp_task_moves *m, enum nrp_scan_reset_variant v,
			 uint64_t lower, uint64_t value, uint64_t upper)
{
	assert_int_equal(m->reset[v].lower, lower);
	assert_int_equal(m->reset[v].value, value);
	assert_int_equal(m->reset[v].upper, upper);
}

static void check_record(const struct nrp_task_moves *m, enum nrp_scan_reset_variant v,
			 uint64_t agree, uint64_t disagree, uint64_t undecided)
{
	assert_int_equal(m->reset[v].decisions, agree + disagree + undecided);
	assert_int_equal(m->reset[v].agree, agree);
	assert_int_equal(m->reset[v].disagree, disagree);
	assert_int_equal(m->reset[v].undecided, undecided);
}

/* ---- resets ------------------------------------------------------------------------- */

static void test_resets_by_variant_and_what_is_unknown(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	migrate(10, 200, 0, 4); /* fault arrays? S_ALL, S_LIM open */
	fault(20, 200, 1, 7, 400, 0);
	migrate(30, 200, 4, 0); /* off its preferred node: both */
	migrate(40, 200, 0, 4); /* and back: S_ALL only */
	migrate(50, 200, 4, 5); /* same node: none */
	m = run();
	assert_int_equal(m.moves, 4);
	assert_int_equal(m.cross_node, 3);
	assert_int_equal(m.faults_unknown, 1);
	check_resets(&m, NRP_SCAN_RESET_418, 0, 0, 0);
	check_resets(&m, NRP_SCAN_RESET_ALL, 2, 3, 3);
	/* Decided: one reset of two steps, so half of the open one, rounded up. */
	check_resets(&m, NRP_SCAN_RESET_LIM, 1, 2, 2);
}

static void test_placement_that_chose_a_cpu_is_counted_once(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	move(10, NRP_MOVE_MOVE, 1, 0, 4, 0); /* S1 */
	migrate(12, 1, 0, 4);
	move(20, NRP_MOVE_MOVE, 2, 0, 4, 0); /* S2: fails */
	move(21, NRP_MOVE_STICK, 2, 0, 4, 0);
	move(30, NRP_MOVE_STICK, 3, 0, 5, 0);  /* fails before the request */
	move(40, NRP_MOVE_STICK, 4, 0, -1, 0); /* no CPU found */
	m = run();
	assert_int_equal(m.chosen, 3);
	check_resets(&m, NRP_SCAN_RESET_418, 3, 3, 3);
	assert_int_equal(m.claim.requests, 2);
}

static void test_a_child_has_no_fault_arrays_until_its_first_report(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	life(5, NRP_LIFE_FORK, 1, 300);
	migrate(10, 300, 0, 4); /* S8 */
	fault(20, 300, -1, 3, 400, 0);
	migrate(30, 300, 4, 0); /* S6 */
	life(40, NRP_LIFE_EXIT, 300, 0);
	migrate(50, 300, 0, 4); /* exiting */
	m = run();
	check_resets(&m, NRP_SCAN_RESET_ALL, 1, 1, 1);
	check_resets(&m, NRP_SCAN_RESET_LIM, 1, 1, 1);
}

/* The report of a fault may have run a placement pass: sequence 0 is not sure any more. */
static void test_sequence_zero_goes_stale_with_a_report(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	fault(10, 1, 1, 0, 400, 0);
	migrate(20, 1, 0, 4); /* to the preferred node: reset if the sequence is still 0 */
	pass(30, 1, 1, 0, 400, 1000);
	migrate(40, 1, 4, 0);
	migrate(50, 1, 0, 4); /* it is */
	m = run();
	check_resets(&m, NRP_SCAN_RESET_ALL, 3, 3, 3);
	check_resets(&m, NRP_SCAN_RESET_LIM, 2, 3, 3);
}

static void test_preferred_node_follows_its_event_or_goes_stale(void **state)
{
	static const char *const without[] = { "fault_begin", NULL };
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	fault(10, 1, 0, 7, 400, 0);
	preferred(11, 1, 1);
	migrate(20, 1, 0, 4); /* wanted since the event */
	m = run();
	check_resets(&m, NRP_SCAN_RESET_LIM, 0, 0, 0);
	begin(without);
	fault(10, 1, 1, 7, 400, 0);
	migrate(20, 1, 0, 4);
	m = run();
	check_resets(&m, NRP_SCAN_RESET_LIM, 0, 0, 1);
}

/* ---- resets against recorded periods ------------------------------------------------ */

static void test_a_changed_period_without_placement_was_set_back(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	fault(10, 1, 1, 7, 400, 0);
	migrate(20, 1, 4, 0); /* S3 */
	fault(30, 1, 1, 7, 100, 0);
	m = run();
	check_record(&m, NRP_SCAN_RESET_418, 0, 1, 0);
	check_record(&m, NRP_SCAN_RESET_ALL, 1, 0, 0);
	check_record(&m, NRP_SCAN_RESET_LIM, 1, 0, 0);
}

static void test_a_reset_that_would_show_but_does_not(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	fault(10, 1, 1, 7, 2000, 0);
	migrate(20, 1, 0, 4); /* S1: home */
	fault(30, 1, 1, 7, 2000, 0);
	/* 1000 may be the start value: a reset would not show. */
	fault(10, 2, 1, 7, 1000, 0);
	migrate(20, 2, 0, 4);
	fault(30, 2, 1, 7, 1000, 0);
	/* Seen by the task's own pass, and no group shows up later. */
	fault(10, 4, 1, 7, 2000, 0);
	migrate(20, 4, 0, 4);
	pass(30, 4, 1, 7, 2000, 60000);
	fault(40, 4, 1, 7, 2000, 0);
	/* So may any period be that of a task in a group. */
	put_fault(10, 3, 1, 7, 2000, 0, true);
	migrate(20, 3, 0, 4);
	put_fault(30, 3, 1, 7, 2000, 0, true);
	m = run();
	check_record(&m, NRP_SCAN_RESET_418, 4, 0, 0);
	check_record(&m, NRP_SCAN_RESET_ALL, 0, 2, 2);
	check_record(&m, NRP_SCAN_RESET_LIM, 4, 0, 0);
}

static void test_missing_events_leave_contradictions_undecided(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	file.capture.lost_events = 1;
	fault(10, 1, 1, 7, 400, 0);
	fault(30, 1, 1, 7, 100, 0); /* set back, but by which step? */
	fault(10, 2, 1, 1, 1000, FAIL);
	fault(20, 2, 1, 1, 1000, 0);
	fault(120, 2, 1, 2, 3000, 0);
	m = run();
	assert_true(m.events_missing);
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++)
		check_record(&m, (enum nrp_scan_reset_variant)v, 0, 0, 1);
	assert_int_equal(m.sticky.disagree, 0);
	assert_int_equal(m.sticky.undecided, 1);
}

/* scan_delay becomes the start value at a task's first tick, without any move. */
static void test_the_first_tick_is_no_contradiction(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	fault(10, 1, -1, 0, 5, 0);
	fault(30, 1, -1, 0, 100, 0);
	m = run();
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++)
		check_record(&m, (enum nrp_scan_reset_variant)v, 0, 0, 1);
}

/* ---- the sticky back-off ------------------------------------------------------------ */

/* S10 with one pass between two sights each. */
static void test_s10_doubles_to_the_longest_period(void **state)
{
	static const uint32_t periods[] = { 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000 };
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	fault(10, 300, 1, 1, 1000, FAIL);
	for (int i = 0; i < 8; i++)
		fault(20 + 100 * (uint64_t)i, 300, 1, 1 + i, periods[i], i == 2 ? LOCAL : 0);
	/* Within the seventh pass's span: 60000 is the longest period. The last one stays open. */
	pass(650, 300, 1, 7, 60000, 60000);
	m = run();
	assert_int_equal(m.sticky.tasks, 1);
	assert_int_equal(m.sticky.sticky_tasks, 1);
	assert_int_equal(m.sticky.first_fail, 10 * MS);
	assert_int_equal(m.sticky.doubled, 5);
	/* The local fault at 220 is in the counters from the sight at 320 on. */
	assert_int_equal(m.sticky.doubled_despite_faults, 2);
	assert_int_equal(m.sticky.capped, 1);
	assert_int_equal(m.sticky.undecided, 1);
	assert_int_equal(m.sticky.disagree, 0);
}

static void test_adapting_after_a_failure_disagrees(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	fault(10, 1, 1, 1, 1000, FAIL);
	fault(20, 1, 1, 1, 1000, 0);
	fault(120, 1, 1, 2, 1300, 0);
	pass(130, 1, 1, 2, 1300, 60000);
	/* More than doubled needs no longest period to be wrong. */
	fault(220, 1, 1, 3, 2700, 0);
	/* The same without failure. */
	fault(20, 2, 1, 1, 1000, 0);
	fault(120, 2, 1, 2, 1300, 0);
	pass(130, 2, 1, 2, 1300, 60000);
	fault(220, 2, 1, 3, 2600, 0);
	m = run();
	assert_int_equal(m.sticky.tasks, 2);
	assert_int_equal(m.sticky.sticky_tasks, 1);
	assert_int_equal(m.sticky.disagree, 2);
	assert_int_equal(m.sticky.first_disagreement, 120 * MS);
	assert_int_equal(m.sticky.clean_other, 1);
	assert_int_equal(m.sticky.clean_doubled, 1);
}

/* The pass in the failing fault's own report still adapts: it is no span of a sticky task. */
static void test_the_failing_report_itself_is_not_judged(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	fault(10, 1, 1, 1, 1000, FAIL);
	fault(20, 1, 1, 2, 1300, 0);
	m = run();
	assert_int_equal(m.sticky.disagree, 0);
	assert_int_equal(m.sticky.undecided, 0);
}

static void test_moves_forks_and_programs_break_the_series(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	for (int tid = 1; tid <= 3; tid++) {
		fault(10, tid, 1, 1, 1000, FAIL);
		fault(20, tid, 1, 1, 1000, 0);
		fault(120, tid, 1, 2, 100, 0);
		pass(130, tid, 1, 2, 100, 60000);
	}
	migrate(50, 1, 4, 0); /* may set the period back */
	life(50, NRP_LIFE_FORK, 2, 20);
	life(50, NRP_LIFE_EXEC, 3, 0);
	m = run();
	assert_int_equal(m.sticky.disagree, 0);
	assert_int_equal(m.sticky.undecided, 1);
	assert_int_equal(m.sticky.sticky_tasks, 3);
}

/* ---- claims ------------------------------------------------------------------------- */

static void check_claims(uint64_t requests, uint64_t lower, uint64_t upper)
{
	struct nrp_task_moves m = run();

	assert_int_equal(m.claim.requests, requests);
	assert_int_equal(m.claim.suppressed_lower, lower);
	assert_int_equal(m.claim.suppressed_upper, upper);
}

static void test_c1_request_inside_another(void **state)
{
	(void)state;
	begin(all_probes);
	move(100, NRP_MOVE_MOVE, 1, 0, 5, 0);
	move(110, NRP_MOVE_MOVE, 2, 1, 5, 0);
	migrate(120, 1, 0, 5);
	check_claims(2, 1, 1);
}

/* The claim may last until the first task is seen again, and begin after the second's last sight.
 */
static void test_c2_after_it_is_done(void **state)
{
	(void)state;
	begin(all_probes);
	fault(10, 2, 1, 7, 100, 0);
	move(100, NRP_MOVE_MOVE, 1, 0, 5, 0);
	migrate(120, 1, 0, 5);
	move(130, NRP_MOVE_MOVE, 2, 1, 5, 0);
	check_claims(2, 0, 1);
	begin(all_probes);
	move(100, NRP_MOVE_MOVE, 1, 0, 5, 0);
	migrate(120, 1, 0, 5);
	fault(122, 1, 1, 7, 100, 0);
	fault(125, 2, 1, 7, 100, 0); /* reported at 125.5: chosen after that */
	move(130, NRP_MOVE_MOVE, 2, 1, 5, 0);
	check_claims(2, 0, 0);
}

/* Chosen after 121.5, while the other claim lasts to 122 at the latest. */
static void test_a_choice_may_be_older_than_its_request(void **state)
{
	(void)state;
	begin(all_probes);
	move(100, NRP_MOVE_MOVE, 1, 0, 5, 0);
	migrate(120, 1, 0, 5);
	fault(121, 2, 1, 7, 100, 0);
	fault(122, 1, 1, 7, 100, 0);
	move(130, NRP_MOVE_MOVE, 2, 1, 5, 0);
	check_claims(2, 0, 1);
}

static void test_c3_other_cpu_and_c4_three_at_once(void **state)
{
	(void)state;
	begin(all_probes);
	move(100, NRP_MOVE_MOVE, 1, 0, 5, 0);
	move(110, NRP_MOVE_MOVE, 2, 1, 6, 0);
	migrate(120, 1, 0, 5);
	check_claims(2, 0, 0);
	begin(all_probes);
	move(100, NRP_MOVE_MOVE, 1, 0, 5, 0);
	move(110, NRP_MOVE_MOVE, 2, 1, 5, 0);
	move(110, NRP_MOVE_MOVE, 3, 2, 5, 0);
	migrate(120, 1, 0, 5);
	check_claims(3, 2, 2);
}

/* A swap is done when both have arrived: at 120, not at 105. */
static void test_c5_swap_needs_both(void **state)
{
	(void)state;
	begin(all_probes);
	move(100, NRP_MOVE_SWAP, 1, 0, 5, 9);
	migrate(105, 1, 0, 5);
	move(110, NRP_MOVE_MOVE, 2, 1, 5, 0);
	migrate(120, 9, 5, 0);
	check_claims(2, 1, 1);
}

/* A request is over with the task's next event, whatever came of it. */
static void test_a_request_ends_with_the_next_event(void **state)
{
	(void)state;
	begin(all_probes);
	move(100, NRP_MOVE_MOVE, 1, 0, 5, 0);
	move(101, NRP_MOVE_STICK, 1, 0, 5, 0);
	fault(109, 2, 1, 7, 100, 0);
	move(110, NRP_MOVE_MOVE, 2, 1, 5, 0);
	check_claims(2, 0, 0);
}

static void test_nothing_on_record(void **state)
{
	struct nrp_task_moves m;

	(void)state;
	begin(all_probes);
	m = run();
	assert_int_equal(m.moves, 0);
	assert_int_equal(m.sticky.tasks, 0);
	check_resets(&m, NRP_SCAN_RESET_LIM, 0, 0, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resets_by_variant_and_what_is_unknown),
		cmocka_unit_test(test_placement_that_chose_a_cpu_is_counted_once),
		cmocka_unit_test(test_a_child_has_no_fault_arrays_until_its_first_report),
		cmocka_unit_test(test_sequence_zero_goes_stale_with_a_report),
		cmocka_unit_test(test_preferred_node_follows_its_event_or_goes_stale),
		cmocka_unit_test(test_a_changed_period_without_placement_was_set_back),
		cmocka_unit_test(test_a_reset_that_would_show_but_does_not),
		cmocka_unit_test(test_missing_events_leave_contradictions_undecided),
		cmocka_unit_test(test_the_first_tick_is_no_contradiction),
		cmocka_unit_test(test_s10_doubles_to_the_longest_period),
		cmocka_unit_test(test_adapting_after_a_failure_disagrees),
		cmocka_unit_test(test_the_failing_report_itself_is_not_judged),
		cmocka_unit_test(test_moves_forks_and_programs_break_the_series),
		cmocka_unit_test(test_c1_request_inside_another),
		cmocka_unit_test(test_c2_after_it_is_done),
		cmocka_unit_test(test_a_choice_may_be_older_than_its_request),
		cmocka_unit_test(test_c3_other_cpu_and_c4_three_at_once),
		cmocka_unit_test(test_c5_swap_needs_both),
		cmocka_unit_test(test_a_request_ends_with_the_next_event),
		cmocka_unit_test(test_nothing_on_record),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
