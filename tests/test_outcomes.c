/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ends of recorded attempts, and the check against the rules of spec migrate.md 2.8: hand-made
 * attempts of every end; each then with one fact that the kernel of that generation cannot leave.
 */
#include <errno.h>

#include "lane_util.h"
#include "replay/outcomes.h"

#define MS UINT64_C(1000000)
#define NOTHING INT32_MIN

static const char *const with_migrations[] = { "fault_begin", "mm_migrate_pages", NULL };

/* What an attempt left on record. */
struct left {
	uint8_t kind; /* NRP_ATTEMPT_*, 0 counts as FOLIO */
	uint32_t pages;
	int nid;                   /* target */
	int32_t prepare, result;   /* NOTHING: not on record */
	int64_t succeeded, failed; /* -1 -1: no event */
	int tnf;                   /* -1: not reported */
	int mem_nid;
	bool limited, open;
};

/* A base page that moved to node 1 on 5.10 or 6.1; one that was refused before migrate_pages. */
#define MOVED                                                                                      \
	{                                                                                          \
		.pages = 1, .nid = 1, .prepare = NOTHING, .result = 1, .succeeded = 1,             \
		.failed = 0, .tnf = NRP_TNF_MIGRATED, .mem_nid = 1                                 \
	}
#define REFUSED                                                                                    \
	{                                                                                          \
		.pages = 1, .nid = 1, .prepare = NOTHING, .result = 0, .succeeded = -1,            \
		.failed = -1, .tnf = NRP_TNF_MIGRATE_FAIL, .mem_nid = 0                            \
	}

static void put(struct lane_file *file, uint64_t time, const struct left *l, bool has_limiter)
{
	LANE_ROW(hint_fault, f, time);

	NRP_SET(&f, hint_fault, cpu, 4);
	NRP_SET(&f, hint_fault, tid, 100);
	NRP_SET(&f, hint_fault, addr, 0x7000);
	NRP_SET(&f, hint_fault, vm_flags, 0x100073);
	NRP_SET(&f, hint_fault, attempt, l->kind ? l->kind : NRP_ATTEMPT_FOLIO);
	NRP_SET(&f, hint_fault, attempt_delay, 10);
	NRP_SET(&f, hint_fault, attempt_nid, (int16_t)l->nid);
	NRP_SET(&f, hint_fault, inferred, l->open ? NRP_INFER_OPEN : 0);
	if (!l->open)
		NRP_SET(&f, hint_fault, attempt_ns, 500);
	if (has_limiter)
		NRP_SET(&f, hint_fault, ratelimited, l->limited);
	if (l->prepare != NOTHING)
		NRP_SET(&f, hint_fault, prepare_result, l->prepare);
	if (l->result != NOTHING)
		NRP_SET(&f, hint_fault, migrate_result, l->result);
	if (l->succeeded >= 0) {
		NRP_SET(&f, hint_fault, migrated_pages, (uint32_t)l->succeeded);
		NRP_SET(&f, hint_fault, failed_pages, (uint32_t)l->failed);
	}
	if (l->tnf >= 0) {
		NRP_SET(&f, hint_fault, tnf_flags, (uint8_t)l->tnf);
		NRP_SET(&f, hint_fault, mem_nid, (int16_t)l->mem_nid);
		NRP_SET(&f, hint_fault, moved, (l->tnf & NRP_TNF_MIGRATED) != 0);
	} else if (!l->open) {
		NRP_SET(&f, hint_fault, moved, l->succeeded > 0);
	}
	if (l->pages)
		NRP_SET(&f, hint_fault, pages, l->pages);
	lane_put(file, NRP_HINT_FAULT, &f);
}

/* Facts of a kernel of a generation whose events were all probed. */
static void set_facts(struct nrp_host_facts *facts, enum nrp_outcome_variant variant)
{
	facts->has_prepare_step = variant == NRP_OUTCOME_612;
	facts->has_ratelimit_event = variant == NRP_OUTCOME_418;
	facts->has_thp_function = variant <= NRP_OUTCOME_510;
	facts->moved_result = variant != NRP_OUTCOME_612;
	facts->has_task_fault = true;
}

/* Stores @n attempts, 1 ms apart, and loads them. */
static struct nrp_outcomes load_file(struct lane_file *file, enum nrp_outcome_variant variant,
				     const struct left *left, size_t n)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_outcomes o;

	for (size_t i = 0; i < n; i++)
		put(file, (i + 1) * MS, &left[i], variant == NRP_OUTCOME_418);
	lane_ready(file);
	assert_ok(nrp_outcomes_load(&o, file->store, &file->capture, &err), &err);
	lane_end(file);
	assert_int_equal(o.chosen, variant);
	return o;
}

static struct nrp_outcomes load(enum nrp_outcome_variant variant, const struct left *left, size_t n,
				const char *const *probes)
{
	struct lane_file file;

	lane_begin(&file, probes);
	set_facts(&file.capture.facts, variant);
	return load_file(&file, variant, left, n);
}

static void check_end(const struct nrp_outcomes *o, enum nrp_attempt_end end, uint64_t attempts,
		      uint64_t pages)
{
	assert_int_equal(o->all.end[end].attempts, attempts);
	assert_int_equal(o->all.end[end].pages, pages);
}

static void check_agreement(const struct nrp_outcomes *o, uint64_t agree, uint64_t disagree,
			    uint64_t undecided)
{
	const struct nrp_outcome_check *c = &o->check[o->chosen];

	assert_int_equal(c->decisions, agree + disagree + undecided);
	assert_int_equal(c->agree, agree);
	assert_int_equal(c->disagree, disagree);
	assert_int_equal(c->undecided, undecided);
}

static void test_4_18_ends(void **state)
{
	static const struct left left[] = {
		MOVED,
		REFUSED,
		{ .pages = 1,
		  .prepare = NOTHING,
		  .result = 0,
		  .succeeded = 0,
		  .failed = 1,
		  .tnf = 16,
		  .mem_nid = 1 },
		{ .pages = 1,
		  .nid = 1,
		  .prepare = NOTHING,
		  .result = 0,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = 16,
		  .limited = true },
		{ .kind = NRP_ATTEMPT_THP,
		  .pages = 512,
		  .nid = 1,
		  .prepare = NOTHING,
		  .result = 0,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = 16,
		  .limited = true },
	};
	struct nrp_outcomes o = load(NRP_OUTCOME_418, left, 5, with_migrations);

	(void)state;
	check_end(&o, NRP_END_MOVED, 1, 1);
	check_end(&o, NRP_END_REFUSED, 1, 1);
	check_end(&o, NRP_END_MIGRATE_FAILED, 1, 1);
	check_end(&o, NRP_END_RATELIMITED, 2, 513);
	check_agreement(&o, 5, 0, 0);
	/* The two refusals by the limiter are the difference to a kernel without one. */
	assert_int_equal(o.check[NRP_OUTCOME_510].disagree, 2);
	assert_false(o.check[NRP_OUTCOME_510].indistinguishable);
	assert_int_equal(o.nr_nodes, 2);
	assert_int_equal(o.node[0].end[NRP_END_MIGRATE_FAILED].attempts, 1);
	assert_int_equal(o.node[1].end[NRP_END_RATELIMITED].pages, 513);
	assert_int_equal(o.counters.numa_pages_migrated, 1);
	assert_int_equal(o.counters.pgmigrate_fail_lower, 1);
	assert_int_equal(o.counters.pgmigrate_fail_upper, 1);
	nrp_outcomes_clear(&o);
}

static void test_5_10_huge_moves_count_512_pages_and_have_no_event(void **state)
{
	static const struct left left[] = {
		{ .kind = NRP_ATTEMPT_THP,
		  .pages = 512,
		  .nid = 1,
		  .prepare = NOTHING,
		  .result = 1,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = 1,
		  .mem_nid = 1 },
		{ .kind = NRP_ATTEMPT_THP,
		  .pages = 512,
		  .nid = 1,
		  .prepare = NOTHING,
		  .result = 0,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = 16 },
		MOVED,
	};
	struct nrp_outcomes o = load(NRP_OUTCOME_510, left, 3, with_migrations);

	(void)state;
	check_end(&o, NRP_END_MOVED, 2, 513);
	check_end(&o, NRP_END_THP_FAILED, 1, 512);
	check_agreement(&o, 3, 0, 0);
	assert_int_equal(o.counters.numa_pages_migrated, 513);
	assert_int_equal(o.counters.pgmigrate_success, 513);
	assert_int_equal(o.counters.huge_moves, 1);
	/* A copy that lost its race is the one failure that is not counted. */
	assert_int_equal(o.counters.pgmigrate_fail_lower, 0);
	assert_int_equal(o.counters.pgmigrate_fail_upper, 512);
	assert_int_equal(o.check[NRP_OUTCOME_61].disagree, 2);
	nrp_outcomes_clear(&o);
}

static void test_6_1_failure_may_go_unreported(void **state)
{
	static const struct left left[] = {
		MOVED,
		REFUSED,
		{ .pages = 0,
		  .nid = 1,
		  .prepare = NOTHING,
		  .result = 0,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = -1 },
		{ .pages = 512,
		  .nid = 1,
		  .prepare = NOTHING,
		  .result = 1,
		  .succeeded = 512,
		  .failed = 0,
		  .tnf = 1,
		  .mem_nid = 1 },
	};
	struct nrp_outcomes o = load(NRP_OUTCOME_61, left, 4, with_migrations);

	(void)state;
	check_end(&o, NRP_END_MOVED, 2, 513);
	check_end(&o, NRP_END_REFUSED, 2, 2);
	check_agreement(&o, 4, 0, 0);
	assert_int_equal(o.counters.huge_moves, 0);
	/* 5.10 reports the third, and has a function of its own for the fourth. */
	assert_int_equal(o.check[NRP_OUTCOME_510].disagree, 2);
	nrp_outcomes_clear(&o);
}

static void test_6_12_ends(void **state)
{
	static const struct left left[] = {
		{ .pages = 16,
		  .nid = 1,
		  .prepare = 0,
		  .result = 0,
		  .succeeded = 16,
		  .failed = 0,
		  .tnf = 1,
		  .mem_nid = 1 },
		{ .pages = 1,
		  .nid = 1,
		  .prepare = -EAGAIN,
		  .result = NOTHING,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = 16 },
		{ .pages = 1,
		  .nid = 1,
		  .prepare = -EACCES,
		  .result = NOTHING,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = 16 },
		{ .pages = 512,
		  .nid = 1,
		  .prepare = 0,
		  .result = -EAGAIN,
		  .succeeded = 0,
		  .failed = 512,
		  .tnf = 16 },
	};
	struct nrp_outcomes o = load(NRP_OUTCOME_612, left, 4, with_migrations);

	(void)state;
	check_end(&o, NRP_END_MOVED, 1, 16);
	check_end(&o, NRP_END_PREPARE, 1, 1);
	check_end(&o, NRP_END_EXEC_SHARED, 1, 1);
	check_end(&o, NRP_END_MIGRATE_FAILED, 1, 512);
	/* -EACCES in a VMA that is not executable: the kernel cannot have said that. */
	check_agreement(&o, 3, 1, 0);
	assert_int_equal(o.check[NRP_OUTCOME_612].agree_by_end[NRP_END_EXEC_SHARED], 0);
	assert_int_equal(o.first_disagreement, 3 * MS);
	assert_int_equal(o.check[NRP_OUTCOME_61].agree, 0);
	nrp_outcomes_clear(&o);
}

/* One wrong fact each: none of them is explained. */
static void test_contradictions_are_found(void **state)
{
	struct left wrong[] = { MOVED, MOVED,   MOVED,   MOVED,   MOVED, MOVED,
				MOVED, REFUSED, REFUSED, REFUSED, MOVED };
	size_t n = sizeof(wrong) / sizeof(wrong[0]);
	struct nrp_outcomes o;

	(void)state;
	wrong[0].succeeded = -1;             /* moved without event */
	wrong[1].tnf = NRP_TNF_MIGRATE_FAIL; /* moved, reported as failed */
	wrong[2].tnf = 17;                   /* reported as both */
	wrong[3].mem_nid = 0;                /* moved, but not to the target */
	wrong[4].succeeded = 2;              /* more pages than the fault's */
	wrong[5].result = 0;                 /* the polarity of 6.12 */
	wrong[6].prepare = 0;                /* a step that 5.10 does not have */
	wrong[7].succeeded = 0;              /* one page failed twice */
	wrong[7].failed = 2;
	wrong[8].tnf = 0;                 /* refused, but not reported as failed */
	wrong[9].tnf = -1;                /* not reported: 5.10 always does */
	wrong[10].kind = NRP_ATTEMPT_THP; /* a huge page moved with an event */
	wrong[10].pages = 512;
	wrong[10].succeeded = 512;
	o = load(NRP_OUTCOME_510, wrong, n, with_migrations);
	check_agreement(&o, 0, n, 0);
	assert_int_equal(o.first_disagreement, MS);
	nrp_outcomes_clear(&o);
}

static void test_open_attempts_and_unknown_sizes_are_undecided(void **state)
{
	static const struct left left[] = {
		{ .pages = 1,
		  .nid = 1,
		  .prepare = NOTHING,
		  .result = NOTHING,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = -1,
		  .open = true },
		{ .kind = NRP_ATTEMPT_THP,
		  .pages = 0,
		  .nid = 1,
		  .prepare = NOTHING,
		  .result = 0,
		  .succeeded = -1,
		  .failed = -1,
		  .tnf = 16 },
	};
	struct nrp_outcomes o = load(NRP_OUTCOME_510, left, 2, with_migrations);

	(void)state;
	check_end(&o, NRP_END_UNKNOWN, 1, 1);
	check_end(&o, NRP_END_THP_FAILED, 1, 1);
	check_agreement(&o, 0, 0, 2);
	nrp_outcomes_clear(&o);
}

/* A report or an event that is gone proves nothing; what is there still does. */
static void test_missing_events_leave_moves_undecided(void **state)
{
	struct left left[] = { MOVED, MOVED, MOVED };
	struct lane_file file;
	struct nrp_outcomes o;

	(void)state;
	left[0].tnf = -1; /* moved is known from the result */
	left[1].succeeded = -1;
	left[2].tnf = NRP_TNF_MIGRATE_FAIL;
	lane_begin(&file, with_migrations);
	set_facts(&file.capture.facts, NRP_OUTCOME_510);
	file.capture.unjoined_events = 2;
	o = load_file(&file, NRP_OUTCOME_510, left, 3);
	check_agreement(&o, 0, 1, 2);
	assert_int_equal(o.first_disagreement, 3 * MS);
	nrp_outcomes_clear(&o);
}

/* Then a failed attempt may have ended before or in migrate_pages. */
static void test_without_the_event_on_record_failures_stay_unknown(void **state)
{
	static const char *const probes[] = { "fault_begin", NULL };
	struct left left[] = { MOVED, REFUSED };
	struct nrp_outcomes o;

	(void)state;
	left[0].succeeded = -1;
	o = load(NRP_OUTCOME_61, left, 2, probes);
	check_end(&o, NRP_END_MOVED, 1, 1);
	check_end(&o, NRP_END_UNKNOWN, 1, 1);
	check_agreement(&o, 2, 0, 0);
	assert_int_equal(o.counters.pgmigrate_fail_lower, 0);
	assert_int_equal(o.counters.pgmigrate_fail_upper, 1);
	nrp_outcomes_clear(&o);
}

static void test_what_was_not_probed_is_not_asked_for(void **state)
{
	struct left left[] = { MOVED };
	struct lane_file file;
	struct nrp_outcomes o;

	(void)state;
	left[0].tnf = -1;
	lane_begin(&file, with_migrations);
	set_facts(&file.capture.facts, NRP_OUTCOME_510);
	file.capture.facts.has_task_fault = false;
	o = load_file(&file, NRP_OUTCOME_510, left, 1);
	check_agreement(&o, 1, 0, 0);
	nrp_outcomes_clear(&o);

	/* The turned return value shows the generation though its prepare step was not probed. */
	left[0].tnf = NRP_TNF_MIGRATED;
	left[0].result = 0;
	lane_begin(&file, with_migrations);
	set_facts(&file.capture.facts, NRP_OUTCOME_612);
	file.capture.facts.has_prepare_step = false;
	o = load_file(&file, NRP_OUTCOME_612, left, 1);
	check_agreement(&o, 1, 0, 0);
	nrp_outcomes_clear(&o);
}

static void test_no_attempt_is_no_evidence(void **state)
{
	struct nrp_outcomes o = load(NRP_OUTCOME_61, NULL, 0, with_migrations);

	(void)state;
	check_agreement(&o, 0, 0, 0);
	assert_int_equal(o.nr_nodes, 0);
	nrp_outcomes_clear(&o);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_4_18_ends),
		cmocka_unit_test(test_5_10_huge_moves_count_512_pages_and_have_no_event),
		cmocka_unit_test(test_6_1_failure_may_go_unreported),
		cmocka_unit_test(test_6_12_ends),
		cmocka_unit_test(test_contradictions_are_found),
		cmocka_unit_test(test_open_attempts_and_unknown_sizes_are_undecided),
		cmocka_unit_test(test_without_the_event_on_record_failures_stay_unknown),
		cmocka_unit_test(test_missing_events_leave_moves_undecided),
		cmocka_unit_test(test_what_was_not_probed_is_not_asked_for),
		cmocka_unit_test(test_no_attempt_is_no_evidence),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
