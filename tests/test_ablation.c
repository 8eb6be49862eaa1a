/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ablation of scan.vma. By hand: the specification's vector B2 (scan.md 9) as a capture, where
 * a VMA starves until P3. On real captures: the step that is the host's own shows the record's
 * counts, and every step is what a replay with the same switches says by itself.
 *
 * Without arguments that record and the captures of tests/data run; with --wide those of the folder
 * that NRP_TRACES names (exit status 77, skipped, where it is not set).
 */
#include "analysis/ablation.h"
#include "null_util.h"
#include "scan_records.h"
#include "wide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *traces; /* NRP_TRACES, with --wide */
static char scratch[] = "ablation-XXXXXX";

enum { P0, DELAY, PID, START_SEQ, PARTIAL, FORCED, STALE };
enum { HINT_FAULTS, PTE_UPDATES, SCAN_RANGES, MIGRATED, STARVED };

static void ablate(struct nrp_ablation *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, const struct nrp_verify *verify)
{
	struct nrp_error err = NRP_ERROR_INIT, unused = NRP_ERROR_INIT;
	struct nrp_lane_spec base;

	assert_ok(nrp_lane_parse(&base, "host", &err), &err);
	if (capture->facts.hz <= 0)
		assert_ok(nrp_lane_set(&base, &base, "new:hz=250", &unused), &unused);
	assert_ok(nrp_ablation_run(ret, store, capture, verify, &base, &err), &err);
}

/* ---- B2 by hand ---------------------------------------------------------------------- */

/*
 * B[0,100) idle below A[1000,1600), which the only thread uses: A takes three passes a sequence of
 * 65536, 65536 and 22528 pages, and a page in each MiB pair is touched after each third. Three
 * sequences, and the first pass of the fourth, under P1 or P2.
 */
#define SEQUENCES 3

static void b2_record(struct scan_records *r)
{
	struct nrp_scan_vma_state a = { .pids_reset = UINT64_C(1000000000),
					.pids = { 0, nrp_scan_pid_bit(100) },
					.prev_seq = 4 };
	uint64_t ms = 50000;

	scan_records_begin(r, true);
	for (int i = 0; i < SEQUENCES; i++, ms += 3000) {
		r->armed_pages = 65536;
		add_pass(r, ms, 100, 5 + i, 0);
		add_skip(r, 0, 100, NRP_SKIP_PID_INACTIVE);
		add_range(r, 1000, 1256, 1000, 1600, 65536, &a);
		add_pass(r, ms + 1000, 100, 5 + i, 1256);
		add_range(r, 1256, 1512, 1000, 1600, 65536, &a);
		r->armed_pages = 22528;
		add_pass(r, ms + 2000, 100, 5 + i, 1512);
		add_range(r, 1512, 1600, 1000, 1600, 22528, &a);
		a.prev_seq = 5 + i;
		for (uint64_t mb = 0; mb < 600; mb += 2)
			add_fault(r, (ms + 2500) * 1000 + mb, 100, 1000, 1600, mb * 256);
	}
	r->armed_pages = 65536;
	add_pass(r, ms, 100, 5 + SEQUENCES, 0);
	add_skip(r, 0, 100, NRP_SKIP_PID_INACTIVE);
	add_range(r, 1000, 1256, 1000, 1600, 65536, &a);
	scan_records_commit(r);
	r->capture.first_time = 50000 * MS;
	r->capture.last_time = (ms + 100) * MS;
}

static void check_exact(const struct nrp_quantity *q, double value)
{
	assert_int_equal(q->class, NRP_CLASS_EXACT);
	assert_true(q->has_value && q->value == value);
}

/*
 * Ranges where the idle VMA has nothing to arm (the value; how much it has, is not on record):
 * with P0 and without PID filter B too when a pass begins at 0: 4 a sequence, 2 in the last pass.
 * P1 and P2 leave it out: 3 and 1. P3 takes it at 53000 (6 > 4 + 1) and, then scanned in sequence
 * 6, again at 59000 (8 > 6 + 1): 2 more.
 */
static void test_b2_counts_are_those_of_the_specification(void **state)
{
	static const double ranges[NRP_ABLATION_STEPS] = { 14, 14, 10, 10, 10, 10, 12 };
	static const double starved[NRP_ABLATION_STEPS] = { 0, 0, 1, 1, 1, 1, 0 };
	static const bool host[NRP_ABLATION_STEPS] = { [PID] = true, [FORCED] = true };
	static const bool new[NRP_ABLATION_STEPS] = { [P0] = true, [PID] = true, [STALE] = true };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_ablation a;
	struct nrp_verify verify;
	struct scan_records r;

	(void)state;
	b2_record(&r);
	assert_ok(nrp_verify_run(&verify, r.store, &r.capture, &err), &err);
	ablate(&a, r.store, &r.capture, &verify);
	for (size_t i = 0; i < NRP_ABLATION_STEPS; i++) {
		const struct nrp_ablation_step *s = &a.step[i];
		const struct nrp_ablation_metric *m = s->metric;

		assert_true(m[SCAN_RANGES].value.value == ranges[i]);
		assert_true(m[STARVED].value.value == starved[i]);
		assert_int_equal(s->discriminated, new[i]);
		if (i && !s->discriminated)
			for (size_t k = 0; k < NRP_ABLATION_METRICS; k++)
				check_exact(&m[k].change, 0);
		else if (i)
			assert_true(m[SCAN_RANGES].change.value == ranges[i] - ranges[i - 1]);
		if (!host[i])
			continue;
		assert_true(s->host);
		check_exact(&m[HINT_FAULTS].value, SEQUENCES * 300);
		check_exact(&m[PTE_UPDATES].value, SEQUENCES * (65536 + 65536 + 22528) + 65536);
		check_exact(&m[SCAN_RANGES].value, ranges[i]);
		check_exact(&m[STARVED].value, 1);
		check_exact(&m[MIGRATED].value, 0);
	}
	assert_false(a.step[P0].host || a.step[DELAY].host || a.step[STALE].host);
	/* If the 25600 pages of B are all there, its two scans arm them: 51200 more entries. */
	assert_true(a.step[STALE].metric[PTE_UPDATES].value.upper >=
		    SEQUENCES * 153600 + 65536 + 2 * 25600);
	assert_true(a.step[STALE].metric[PTE_UPDATES].value.lower <= SEQUENCES * 153600 + 65536);
	nrp_ablation_clear(&a);
	nrp_verify_clear(&verify);
	scan_records_end(&r);
}

static void test_stored_ablation_is_the_same(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_ablation a, b;
	struct nrp_verify verify;
	struct scan_records r;
	json_t *doc[2];

	(void)state;
	b2_record(&r);
	assert_int_equal(nrp_ablation_load(&b, r.store, &r.capture, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	assert_ok(nrp_verify_run(&verify, r.store, &r.capture, &err), &err);
	ablate(&a, r.store, &r.capture, &verify);
	for (int times = 0; times < 2; times++) { /* the second takes the place of the first */
		assert_ok(nrp_store_begin(r.store, &err), &err);
		assert_ok(nrp_ablation_save(&a, r.store, &err), &err);
		assert_ok(nrp_store_commit(r.store, &err), &err);
	}
	assert_ok(nrp_ablation_load(&b, r.store, &r.capture, &err), &err);
	doc[0] = nrp_ablation_json(&a);
	doc[1] = nrp_ablation_json(&b);
	assert_int_equal(json_array_size(json_object_get(doc[0], "steps")), NRP_ABLATION_STEPS);
	assert_true(json_equal(doc[0], doc[1]));
	assert_int_equal(util_integer(r.store, "SELECT count(*) FROM ablation_metric"),
			 NRP_ABLATION_STEPS * NRP_ABLATION_METRICS);
	/* Damage is found. */
	assert_ok(nrp_store_exec(r.store, "DELETE FROM ablation_step WHERE step = 3", &err), &err);
	nrp_ablation_clear(&b);
	assert_int_equal(nrp_ablation_load(&b, r.store, &r.capture, &err), -EBADMSG);
	json_decref(doc[0]);
	json_decref(doc[1]);
	nrp_ablation_clear(&a);
	nrp_verify_clear(&verify);
	scan_records_end(&r);
}

static void test_settings_of_the_family_are_refused(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT, refused = NRP_ERROR_INIT;
	struct nrp_lane_spec base, lane, unused;

	(void)state;
	assert_ok(nrp_lane_parse(&base, "host", &err), &err);
	unused = base;
	assert_ok(nrp_lane_set(&unused, &base, "new:scan.vma.pid=0", &err), &err);
	assert_int_equal(nrp_ablation_lane(&lane, &base, STALE, &refused), -EINVAL);
	assert_int_equal(refused.status, NRP_USAGE);
}

/* ---- real captures ------------------------------------------------------------------- */

static const struct {
	const char *name;
	int host; /* step that the host's kernel is */
} cases[] = {
	{ "idle-5.10", P0 },
	{ "shared-4.18", P0 },
	{ "thp-6.12", STALE },
	{ "shared-7.2", STALE }, /* P4 differs where tasks are bound to one node: none is */
	/* P2 without the PID filter: no VMA is left out as inactive, so nothing else of P2 decides.
	 */
	{ "policy-pairs/idle-vma0", DELAY },
	{ "policy-pairs/idle-vma1", FORCED },
	{ "policy-pairs/idle-vma2", FORCED },
	{ "policy-pairs/idle-vma3", STALE },
	{ "policy-pairs/idlemix-P2-s1", FORCED },
	{ "policy-pairs/idlemix-P3-s1", STALE },
	{ "kernels/4.18/numa01", P0 },
	{ "kernels/5.10/idle", P0 },
	{ "kernels/6.1/shared", P0 },
	{ "kernels/6.12/shared", STALE },
	{ "kernels/7.2/idle", STALE },
};

static bool same(const struct nrp_quantity *a, const struct nrp_quantity *b)
{
	return a->class == b->class && a->tier == b->tier && a->has_value == b->has_value &&
	       a->has_lower == b->has_lower && a->has_upper == b->has_upper &&
	       a->value == b->value && a->lower == b->lower && a->upper == b->upper;
}

/* A separate replay against the host, with the step's switches given as a user gives them. */
static void check_step(const struct loaded *c, const struct nrp_ablation_step *s)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lane_spec lane[2];
	struct nrp_comparison comparison;
	struct nrp_replay replay;
	char rules[sizeof(s->switched_off)], *rest = rules, *rule;

	assert_ok(nrp_lane_parse(&lane[0], "host", &err), &err);
	assert_ok(nrp_lane_parse(&lane[1], s->policy, &err), &err);
	if (c->capture.facts.hz <= 0)
		assert_ok(nrp_lane_set(&lane[0], &lane[1], "hz=250", &err), &err);
	snprintf(rules, sizeof(rules), "%s", s->switched_off);
	while ((rule = strsep(&rest, ",")) && *rule) {
		char text[64];

		snprintf(text, sizeof(text), "new:scan.vma.%s=0", rule);
		assert_ok(nrp_lane_set(&lane[0], &lane[1], text, &err), &err);
	}
	assert_ok(nrp_replay_run(&replay, c->store, &c->capture, &c->verify, &lane[0], &lane[1],
				 &err),
		  &err);
	assert_ok(nrp_comparison_build(&comparison, &replay, &c->capture, &c->verify, &err), &err);
	for (size_t k = 0; k < NRP_ABLATION_METRICS; k++) {
		const struct nrp_ablation_metric *m = &s->metric[k];
		const struct nrp_metric *alone = nrp_comparison_metric(&comparison, m->name);

		if (!same(&m->value, &alone->new_lane))
			fail_msg("%s %s: %s is %f [%f, %f], alone %f [%f, %f]", c->name, s->name,
				 m->name, m->value.value, m->value.lower, m->value.upper,
				 alone->new_lane.value, alone->new_lane.lower,
				 alone->new_lane.upper);
	}
	nrp_comparison_clear(&comparison);
	nrp_replay_clear(&replay);
}

/* The host's own step has the counts of the records. */
static void check_host(const struct loaded *c, const struct nrp_ablation_step *s)
{
	double faults = 0, moved = 0, ranges = 0;
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_cursor *cursor;
	const void *row;

	assert_ok(nrp_cursor_open(&cursor, c->store, c->capture.id, NRP_HINT_FAULT, ~UINT64_C(0),
				  &err),
		  &err);
	while (nrp_cursor_next(cursor, &row, &err) > 0) {
		const struct nrp_hint_fault *f = row;

		faults++;
		if (!NRP_NULL(f, hint_fault, moved) && f->moved)
			moved += NRP_NULL(f, hint_fault, pages) ? 1 : f->pages;
	}
	nrp_cursor_close(cursor);
	assert_ok(nrp_cursor_open(&cursor, c->store, c->capture.id, NRP_SCAN_RANGE, ~UINT64_C(0),
				  &err),
		  &err);
	while (nrp_cursor_next(cursor, &row, &err) > 0)
		ranges++;
	nrp_cursor_close(cursor);
	assert_int_equal(err.code, 0);
	assert_true(s->host);
	check_exact(&s->metric[HINT_FAULTS].value, faults);
	check_exact(&s->metric[SCAN_RANGES].value, ranges);
	assert_true(s->metric[MIGRATED].value.value == moved);
}

static void test_steps_are_what_separate_replays_say(void **state)
{
	size_t seen = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct loaded *set = NULL, c;
		struct nrp_ablation a;
		size_t count = 0;
		char pattern[128];

		if ((strchr(cases[i].name, '/') != NULL) != (traces != NULL))
			continue;
		snprintf(pattern, sizeof(pattern), "%s.dat", cases[i].name);
		null_load(&set, &count, traces ? traces : NRP_TEST_DATA, pattern, scratch);
		if (!count)
			continue; /* another selection of captures */
		c = set[0];
		seen++;
		ablate(&a, c.store, &c.capture, &c.verify);
		print_message("  %s\n", c.name);
		for (size_t s = 0; s < NRP_ABLATION_STEPS; s++)
			check_step(&c, &a.step[s]);
		check_host(&c, &a.step[cases[i].host]);
		nrp_ablation_clear(&a);
		null_drop_all(set, count);
	}
	assert_true(seen > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest by_hand[] = {
		cmocka_unit_test(test_b2_counts_are_those_of_the_specification),
		cmocka_unit_test(test_stored_ablation_is_the_same),
		cmocka_unit_test(test_settings_of_the_family_are_refused),
	};
	const struct CMUnitTest captures[] = {
		cmocka_unit_test(test_steps_are_what_separate_replays_say),
	};
	int failed = 0;

	traces = wide_folder(argc, argv);
	if (!mkdtemp(scratch))
		return 1;
	if (!traces)
		failed = cmocka_run_group_tests(by_hand, NULL, NULL);
	failed += cmocka_run_group_tests(captures, NULL, NULL);
	rmdir(scratch);
	return failed;
}
