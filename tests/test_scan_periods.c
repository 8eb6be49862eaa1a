/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scan periods rebuilt from records, and passes that come by modelled periods: small captures whose
 * periods are worked out by hand from spec scan.md 3.2 to 3.4. HZ 250, defaults of the kernel: 256
 * MB, 1000 to 60000 ms, delay 1000 ms. One address space of one window; thread 10 scans it.
 */
#include "lane_util.h"
#include "replay/cadence.h"
#include "replay/scan_periods.h"

#define MS UINT64_C(1000000)
#define MM UINT64_C(0xff00)
#define FAIL NRP_TNF_MIGRATE_FAIL
#define LOCAL NRP_TNF_FAULT_LOCAL
#define NO_GROUP NRP_TNF_NO_GROUP
#define UNSET ((1u << 14) - 1)
#define UNSEEN 0 /* a period that a fault's filter call did not show */

static struct lane_file file;

/* Ticks of 4 ms. */
static uint64_t ticks(uint64_t ms)
{
	return 100000 + ms / 4;
}

static void fork_of(int tid, int child, uint64_t ms)
{
	LANE_ROW(task_life, l, ms * MS);

	NRP_SET(&l, task_life, kind, NRP_LIFE_FORK);
	NRP_SET(&l, task_life, tid, tid);
	NRP_SET(&l, task_life, child_tid, child);
	lane_put(&file, NRP_TASK_LIFE, &l);
}

static void begin(void)
{
	static const char *const probes[] = { "fault_begin", NULL };

	lane_begin(&file, probes);
	file.capture.facts.scan_delay_ms = 1000;
	file.capture.facts.scan_period_min_ms = 1000;
	file.capture.facts.scan_period_max_ms = 60000;
	file.capture.facts.scan_size_mb = 256;
	file.capture.first_time = MS;
	file.capture.last_time = 100000 * MS;
	fork_of(1, 10, 1);
}

/* @next: jiffies of the next scan as the pass finds it. */
static struct nrp_scan_pass pass_row(uint64_t ms, int seq, uint64_t next, uint32_t period,
				     uint32_t period_max, int task_seq)
{
	LANE_ROW(scan_pass, p, ms * MS);

	NRP_SET(&p, scan_pass, end_time, ms * MS + MS / 2);
	NRP_SET(&p, scan_pass, tid, 10);
	NRP_SET(&p, scan_pass, mm, MM);
	NRP_SET(&p, scan_pass, jiffies, ticks(ms));
	NRP_SET(&p, scan_pass, next_scan, next);
	NRP_SET(&p, scan_pass, mm_scan_seq, seq);
	NRP_SET(&p, scan_pass, scan_period, period);
	NRP_SET(&p, scan_pass, scan_period_max, period_max);
	NRP_SET(&p, scan_pass, task_scan_seq, task_seq);
	NRP_SET(&p, scan_pass, armed_pages, 10);
	return p;
}

static void pass(uint64_t ms, int seq, uint64_t next, uint32_t period, uint32_t period_max,
		 int task_seq)
{
	struct nrp_scan_pass p = pass_row(ms, seq, next, period, period_max, task_seq);

	lane_put(&file, NRP_SCAN_PASS, &p);
}

/* A fault on an untouched page; its filter call shows @seq and @period unless that is UNSEEN. */
static struct nrp_hint_fault fault_row(uint64_t ms, uint8_t flags, int seq, uint32_t period)
{
	LANE_ROW(hint_fault, f, ms * MS);

	NRP_SET(&f, hint_fault, tid, 10);
	NRP_SET(&f, hint_fault, cpu, 0);
	NRP_SET(&f, hint_fault, mm, MM);
	NRP_SET(&f, hint_fault, attempt, NRP_ATTEMPT_NONE);
	NRP_SET(&f, hint_fault, last_cpupid, UNSET);
	NRP_SET(&f, hint_fault, pages, 1);
	NRP_SET(&f, hint_fault, mem_nid, (int16_t) !(flags & LOCAL));
	NRP_SET(&f, hint_fault, tnf_flags, flags);
	NRP_SET(&f, hint_fault, end_delay, MS / 10);
	if (period != UNSEEN) {
		NRP_SET(&f, hint_fault, scan_seq, seq);
		NRP_SET(&f, hint_fault, scan_period, period);
	}
	return f;
}

static void fault(uint64_t ms, uint8_t flags, int seq, uint32_t period)
{
	struct nrp_hint_fault f = fault_row(ms, flags, seq, period);

	lane_put(&file, NRP_HINT_FAULT, &f);
}

/* @owner: low byte of the thread that touched the page last; @mapcount as the probe fetches it. */
static void fault_of(uint64_t ms, uint8_t flags, uint32_t owner, int mapcount)
{
	struct nrp_hint_fault f = fault_row(ms, flags, 0, UNSEEN);

	NRP_SET(&f, hint_fault, last_cpupid, owner);
	NRP_SET(&f, hint_fault, mapcount, mapcount);
	lane_put(&file, NRP_HINT_FAULT, &f);
}

static struct nrp_scan_periods run(void)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_periods p;

	lane_ready(&file);
	assert_ok(nrp_scan_periods_run(&p, file.store, &file.capture, &err), &err);
	lane_end(&file);
	return p;
}

static void check(const struct nrp_scan_periods *p, enum nrp_scan_period_variant v, uint64_t agree,
		  uint64_t disagree, uint64_t undecided)
{
	const struct nrp_period_count *c = &p->variant[v];

	assert_int_equal(c->agree, agree);
	assert_int_equal(c->disagree, disagree);
	assert_int_equal(c->undecided, undecided);
	assert_int_equal(c->decisions, agree + disagree + undecided);
}

/* The first pass finds a new address space, the second arms: sequence 1 follows. */
static void first_passes(void)
{
	begin();
	pass(1000, 0, 0, 1000, 0, 0);
	pass(3000, 0, ticks(1000) + 250, 1000, 0, 0);
}

/*
 * At 3100 ms the task takes note of sequence 1: no faults so far, so that 2000 ms follow and the
 * next scan is put off. At 6000 it has three local faults on its own pages: 3 tenths longer.
 */
static void grow_to(uint32_t period)
{
	first_passes();
	fault(3100, LOCAL | NO_GROUP, 0, UNSEEN);
	fault(3200, LOCAL | NO_GROUP, 0, UNSEEN);
	fault(3300, LOCAL | NO_GROUP, 0, UNSEEN);
	pass(5200, 1, ticks(3100) + 500, 2000, 60000, 1);
	fault(6000, LOCAL | NO_GROUP, 0, UNSEEN);
	pass(9200, 2, ticks(5200) + 500, period, 60000, 2);
}

static void test_periods_grow_without_faults_and_with_private_ones(void **state)
{
	struct nrp_scan_periods p;

	(void)state;
	grow_to(2600);
	p = run();
	for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++) {
		check(&p, (enum nrp_scan_period_variant)v, 2, 0, 0);
		assert_int_equal(p.variant[v].agree_by[NRP_PERIOD_BY_EMPTY], 1);
		assert_int_equal(p.variant[v].agree_by[NRP_PERIOD_BY_PRIVATE], 1);
		/* All but the first pass, whose address space is new. */
		assert_int_equal(p.variant[v].next_scans, 3);
		assert_int_equal(p.variant[v].next_scans_agree, 3);
	}
}

static void test_another_period_contradicts_the_rule(void **state)
{
	struct nrp_scan_periods p;

	(void)state;
	grow_to(2500);
	p = run();
	check(&p, NRP_SCAN_PERIOD_419, 1, 1, 0);
	assert_int_equal(p.variant[NRP_SCAN_PERIOD_419].first_disagreement, 9200 * MS);
	/* An event that is missing may have been the reason. */
	grow_to(2500);
	file.capture.lost_events = 1;
	p = run();
	check(&p, NRP_SCAN_PERIOD_419, 1, 0, 1);
}

static void test_next_scan_that_follows_from_no_pass(void **state)
{
	struct nrp_scan_periods p;

	(void)state;
	first_passes();
	pass(5200, 0, ticks(3000) + 500, 1000, 0, 0);
	p = run();
	assert_int_equal(p.variant[NRP_SCAN_PERIOD_419].next_scans, 2);
	assert_int_equal(p.variant[NRP_SCAN_PERIOD_419].next_scans_agree, 1);
}

/* One failed migration doubles for good, whatever came since. */
static void test_failure_is_sticky(void **state)
{
	struct nrp_scan_periods p;

	(void)state;
	first_passes();
	fault(3100, LOCAL | NO_GROUP, 0, UNSEEN);
	fault(3200, FAIL | NO_GROUP, 1, 2000);
	pass(5200, 1, ticks(3100) + 500, 2000, 60000, 1);
	fault(6000, LOCAL | NO_GROUP, 0, UNSEEN);
	fault(6500, NO_GROUP, 2, 4000);
	pass(11000, 2, ticks(6000) + 1000, 4000, 60000, 2);
	fault(12000, LOCAL | NO_GROUP, 0, UNSEEN);
	fault(12500, NO_GROUP, 3, 8000);
	pass(20000, 3, ticks(12000) + 2000, 8000, 60000, 3);
	p = run();
	for (int v = 0; v < NRP_NR_SCAN_PERIODS; v++) {
		check(&p, (enum nrp_scan_period_variant)v, 3, 0, 0);
		assert_int_equal(p.variant[v].agree_by[NRP_PERIOD_BY_FAILED], 2);
		assert_int_equal(p.variant[v].next_scans_agree, p.variant[v].next_scans);
	}
}

/*
 * At 6000 ms the task has faults, so that it has a preferred node and waits 40 ticks (2600 ms / 16)
 * before it looks again: at 6120, 30 ticks later, only 4.18 takes note of sequence 3.
 */
static void notes_sequence_3(int seq, uint32_t period)
{
	first_passes();
	fault(3100, LOCAL | NO_GROUP, 0, UNSEEN);
	pass(5200, 1, ticks(3100) + 500, 2000, 60000, 1);
	fault(6000, LOCAL | NO_GROUP, 0, UNSEEN);
	pass(6100, 2, ticks(5200) + 500, 2600, 60000, 2);
	fault(6120, LOCAL | NO_GROUP, 0, UNSEEN);
	fault(6124, NO_GROUP, seq, period);
	pass(6140, 3, ticks(5200) + 500, period, 60000, seq);
}

static void test_a_task_looks_again_after_its_retry_time(void **state)
{
	struct nrp_scan_periods p;

	(void)state;
	notes_sequence_3(2, 2600);
	p = run();
	check(&p, NRP_SCAN_PERIOD_419, 2, 0, 0);
	/* Nor do the sights of 6124 and 6140 ms have it. */
	assert_int_equal(p.variant[NRP_SCAN_PERIOD_418].disagree, 2);
	/* One local private fault since 6000: 3 tenths more. */
	notes_sequence_3(3, 3380);
	p = run();
	check(&p, NRP_SCAN_PERIOD_418, 3, 0, 0);
	assert_int_equal(p.variant[NRP_SCAN_PERIOD_419].disagree, 1);
}

/*
 * Five private and five shared-looking local faults: 6 tenths or fewer private would leave it to
 * the local ones (3 tenths longer), 10 private do the same; with 7 to 9 it is 1 to 2 tenths. Pages
 * that one address space maps cannot make others' faults private.
 */
static void test_what_a_group_decides_is_left_open(void **state)
{
	struct nrp_scan_periods p;

	(void)state;
	for (int mapcount = 0; mapcount < 2; mapcount++) {
		first_passes();
		fault(3100, LOCAL | NO_GROUP, 0, UNSEEN);
		for (int i = 0; i < 4; i++)
			fault(3200 + (uint64_t)i, LOCAL | NO_GROUP, 0, UNSEEN);
		for (int i = 0; i < 5; i++)
			fault_of(3300 + (uint64_t)i, LOCAL, 77, mapcount);
		pass(5200, 1, ticks(3100) + 500, 2000, 60000, 1);
		fault(6000, LOCAL | NO_GROUP, 0, UNSEEN);
		pass(9200, 2, ticks(5200) + 500, 2600, 60000, 2);
		p = run();
		check(&p, NRP_SCAN_PERIOD_419, mapcount ? 1 : 2, 0, mapcount ? 1 : 0);
	}
}

/* From 250 to 15000 ms: four windows. Remote shared faults: 7 tenths shorter, not below 250. */
static void test_bounds_follow_the_size_that_passes_show(void **state)
{
	struct nrp_scan_periods p;

	(void)state;
	begin();
	pass(1000, 0, 0, 250, 0, 0);
	pass(3000, 0, ticks(1000) + 250, 250, 0, 0);
	fault_of(3100, NO_GROUP, 77, 0);
	fault_of(3104, NO_GROUP, 77, 0);
	pass(5200, 1, ticks(3100) + 125, 500, 15000, 1);
	fault_of(6000, NO_GROUP, 77, 0);
	pass(9200, 2, ticks(5200) + 125, 250, 15000, 2);
	p = run();
	check(&p, NRP_SCAN_PERIOD_419, 2, 0, 0);
	assert_int_equal(p.variant[NRP_SCAN_PERIOD_419].agree_by[NRP_PERIOD_BY_REMOTE], 1);
}

static void test_without_ticks_there_is_nothing_to_say(void **state)
{
	struct nrp_scan_periods p;

	(void)state;
	grow_to(2600);
	file.capture.facts.hz = -1;
	p = run();
	assert_int_equal(p.sights, 0);
	check(&p, NRP_SCAN_PERIOD_419, 0, 0, 0);
}

/* ---- modelled cadence ----------------------------------------------------------------- */

static const struct nrp_cadence_lane host = {
	.variant = NRP_SCAN_PERIOD_419,
	.rules = NRP_PERIOD_RULES,
	.delay_ms = 1000,
	.tunables = { .size_mb = 256,
		      .period_min_ms = 1000,
		      .period_max_ms = 60000,
		      .page_size = 4096 },
};

#define NEAR(a, b) assert_true((a) > (b)-1e-9 && (a) < (b) + 1e-9)

/*
 * A failure at 3200 ms: on record 4000 ms follow at 6500, and passes at 11000 and 15000. @lane_nid:
 * node of the failing fault's page in the lane.
 */
static struct nrp_cadence_result model(const struct nrp_cadence_lane *lane, int lane_nid)
{
	const struct nrp_scan_pass passes[] = {
		pass_row(1000, 0, 0, 1000, 0, 0),
		pass_row(3000, 0, ticks(1000) + 250, 1000, 0, 0),
		pass_row(6000, 1, ticks(3100) + 500, 2000, 60000, 1),
		pass_row(11000, 2, ticks(6500) + 1000, 4000, 60000, 2),
		pass_row(15000, 2, ticks(11000) + 1000, 4000, 60000, 2),
	};
	const struct nrp_hint_fault faults[] = {
		fault_row(3100, LOCAL | NO_GROUP, 0, UNSEEN),
		fault_row(3200, FAIL | NO_GROUP, 1, 2000),
		fault_row(6500, LOCAL | NO_GROUP, 0, UNSEEN),
		fault_row(12000, LOCAL | NO_GROUP, 0, UNSEEN),
		fault_row(12001, LOCAL | NO_GROUP, 0, UNSEEN),
	};
	static const char order[] = "ppffpfpffp";
	struct nrp_scan_timeline *timeline = NULL;
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_cadence *c = NULL;
	struct nrp_cadence_result r;
	size_t p = 0, f = 0;

	begin();
	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
		lane_put(&file, NRP_SCAN_PASS, &passes[i]);
	lane_ready(&file);
	assert_ok(
		nrp_scan_timeline_load(&timeline, file.store, &file.capture, &host.tunables, &err),
		&err);
	assert_ok(nrp_cadence_new(&c, &file.capture.facts, timeline, &host, lane, &err), &err);
	for (size_t i = 0; order[i]; i++) {
		if (order[i] == 'p')
			assert_int_equal(nrp_cadence_pass(c, &passes[p++]), 0);
		else
			assert_int_equal(
				nrp_cadence_fault(c, &faults[f], true, f == 1 ? lane_nid : -1), 0);
		f += order[i] == 'f';
	}
	r = nrp_cadence_result(c);
	nrp_cadence_free(c);
	nrp_scan_timeline_free(timeline);
	lane_end(&file);
	assert_true(r.valid);
	return r;
}

static void test_the_hosts_own_lane_keeps_its_cadence(void **state)
{
	struct nrp_cadence_result r = model(&host, -1);

	(void)state;
	NEAR(r.passes, 1);
	NEAR(r.armed, 1);
	NEAR(r.faults, 1);
	NEAR(r.remote_faults, 1);
	assert_int_equal(r.diverged, 0);
	NEAR(r.period_ms, r.period_recorded_ms);
	NEAR(r.period_ms, (1000 + 1000 + 2000 + 4000 + 4000) / 5.0);
}

/*
 * The lane has the page at home, so that nothing fails: 2600 ms instead of 4000 from 6500 on, and
 * the 4000 ms between the last two passes hold 4000 / 2600 of them, with two of five faults.
 */
static void check_shorter(const struct nrp_cadence_result *r)
{
	double weight = 4000.0 / 2600.0;

	NEAR(r->passes, (4 + weight) / 5);
	NEAR(r->armed, (4 + weight) / 5);
	NEAR(r->faults, (3 + 2 * weight) / 5);
	assert_int_equal(r->diverged, 11000 * MS);
	NEAR(r->period_ms, (1000 + 1000 + 2000 + 2600 + 2600) / 5.0);
}

static void test_a_failure_that_the_lane_has_not_shortens_its_periods(void **state)
{
	struct nrp_cadence_result r = model(&host, 0);

	(void)state;
	check_shorter(&r);
	/* Nothing is remote there. */
	NEAR(r.remote_faults, 1);
}

static void test_a_rule_that_the_lane_has_not_shortens_its_periods(void **state)
{
	struct nrp_cadence_lane lane = host;
	struct nrp_cadence_result r;

	(void)state;
	lane.rules &= ~NRP_PERIOD_FAILED;
	r = model(&lane, -1);
	check_shorter(&r);
}

/* Half the shortest period from the start: 500, 1000 and 2000 ms. */
static void test_tunables_of_the_lane(void **state)
{
	struct nrp_cadence_lane lane = host;
	struct nrp_cadence_result r;

	(void)state;
	lane.tunables.period_min_ms = 500;
	r = model(&lane, -1);
	NEAR(r.period_ms, (500 + 500 + 1000 + 2000 + 2000) / 5.0);
	assert_int_equal(r.diverged, 1000 * MS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_periods_grow_without_faults_and_with_private_ones),
		cmocka_unit_test(test_another_period_contradicts_the_rule),
		cmocka_unit_test(test_next_scan_that_follows_from_no_pass),
		cmocka_unit_test(test_failure_is_sticky),
		cmocka_unit_test(test_a_task_looks_again_after_its_retry_time),
		cmocka_unit_test(test_what_a_group_decides_is_left_open),
		cmocka_unit_test(test_bounds_follow_the_size_that_passes_show),
		cmocka_unit_test(test_without_ticks_there_is_nothing_to_say),
		cmocka_unit_test(test_the_hosts_own_lane_keeps_its_cadence),
		cmocka_unit_test(test_a_failure_that_the_lane_has_not_shortens_its_periods),
		cmocka_unit_test(test_a_rule_that_the_lane_has_not_shortens_its_periods),
		cmocka_unit_test(test_tunables_of_the_lane),
	};

	return cmocka_run_group_tests_name("scan_periods", tests, util_enter_dir, util_leave_dir);
}
