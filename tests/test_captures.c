/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Real captures, end to end through the libraries: import, own-policy verification, limiter lanes
 * against the kernel's own answers, and intervals against what real kernels did. Expected counts
 * come from a second reader (libtracecmd) and from the kernel's own record.
 *
 * Without arguments the captures of tests/data run; with --wide those of the folder that NRP_TRACES
 * names (exit status 77, skipped, where it is not set).
 */
#include "analysis/compare.h"
#include "capture/import.h"
#include "replay/waits.h"
#include "second_reader.h"
#include "second_reader_leaks.h"
#include "wide.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *data_dir = NRP_TEST_DATA;
static const char *traces; /* NRP_TRACES, with --wide */
static char scratch[] = "captures-XXXXXX";

/* ---- an imported capture ------------------------------------------------------------ */

struct imported {
	struct nrp_store *store;
	struct nrp_capture capture;
	struct nrp_join_stats stats;
	char path[512], db[512];
};

static bool find(char *path, size_t size, const char *name)
{
	/* "kernels/.." and "policy-pairs/.." belong to the wider set. */
	bool wide = strchr(name, '/') != NULL;

	if (wide != (traces != NULL))
		return false;
	snprintf(path, size, "%s/%s.dat", wide ? traces : data_dir, name);
	if (access(path, R_OK) == 0)
		return true;
	if (wide)
		return false; /* another selection of captures */
	print_error("%s is missing\n", path);
	fail();
	return false;
}

/* false: not in this set of captures. */
static bool import(struct imported *im, const char *name)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_import_options options = { .path = im->path };
	static int number;

	memset(im, 0, sizeof(*im));
	if (!find(im->path, sizeof(im->path), name))
		return false;
	snprintf(im->db, sizeof(im->db), "%s/%d.db", scratch, number++);
	if (nrp_store_open(&im->store, im->db, NRP_STORE_CREATE, &err) < 0 ||
	    nrp_store_begin(im->store, &err) < 0 ||
	    nrp_import_trace(im->store, &options, &im->capture, &im->stats, NULL, NULL, &err) < 0 ||
	    nrp_store_commit(im->store, &err) < 0) {
		print_error("%s: %s\n", im->path, err.what);
		fail();
	}
	return true;
}

static void drop(struct imported *im)
{
	nrp_capture_clear(&im->capture);
	nrp_store_close(im->store);
	unlink(im->db);
}

static const struct nrp_verify_check *check_of(const struct nrp_verify *v, const char *family)
{
	for (size_t i = 0; i < v->nr_checks; i++)
		if (!strcmp(v->check[i].family, family))
			return &v->check[i];
	fail_msg("no check of %s", family);
	return NULL;
}

static const struct nrp_verify_counter *counter_of(const struct nrp_verify *v, const char *name)
{
	for (size_t i = 0; i < v->nr_counters; i++)
		if (!strcmp(v->counter[i].name, name))
			return &v->counter[i];
	return NULL;
}

static uint64_t sql_number(struct nrp_store *store, const char *sql)
{
	struct nrp_error err = NRP_ERROR_INIT;
	sqlite3_stmt *s = nrp_store_prepare(store, sql, &err);
	uint64_t n;

	assert_non_null(s);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	n = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return n;
}

/* ---- verify ------------------------------------------------------------------------- */

struct capture_case {
	const char *name;
	const char *filter;     /* the host's variant */
	const char *ratelimit;  /* the host's variant, NULL: not asked */
	uint64_t quota;         /* fitted, 0: not asked */
	int64_t max_difference; /* of numa_pages_migrated */
	bool agrees; /* whole verdict; false: vmstat counts far beyond the window's edges */
	bool cut;    /* begins and ends in the middle of things */
};

static const struct capture_case cases[] = {
	/* shipped */
	{ "limiter-6.12", "6.12", "none", 0, 0, true, false },
	{ "limiter-spin-6.12", "6.12", "none", 0, 1000000, true, false },
	{ "limiter-trylock-6.12", "6.12", "none", 0, 1000000, true, false },
	{ "shared-4.18", "4.18", "spin", 256, 1000, true, false },
	{ "thp-4.18", "4.18", "spin", 0, 0, true, false },
	{ "shared-5.10", "4.19", "none", 0, 0, true, false },
	{ "thp-5.10", "4.19", "none", 0, 0, true, false },
	{ "thp-6.1", "6.1", "none", 0, 0, true, false },
	{ "thp-6.12", "6.12", "none", 0, 0, true, false },
	{ "thp-7.2", "6.12", "none", 0, 0, true, false },
	{ "thp-6.12-v6", "6.12", "none", 0, 0, true, false },
	{ "thp-5.10-none", "4.19", "none", 0, 0, true, false },
	{ "idle-5.10", "4.19", "none", 0, 0, true, false },
	{ "shared-7.2", "6.12", "none", 0, 0, true, false },
	{ "cowmix-4.18", "4.18", "spin", 0, 1000, false, false },
	{ "shared-6.1", "6.1", "none", 0, 0, true, true },
	{ "mthp-6.12", "6.12", "none", 0, 0, true, true },
	{ "numa01-4.18-trylock", "4.18", "trylock", 256, 0, true, true },
	/* the wider set */
	{ "kernels/5.10/numa01-default", "4.19", "none", 0, 0, true, false },
	{ "kernels/5.10/shared", "4.19", "none", 0, 0, true, false },
	{ "kernels/5.10/thp", "4.19", "none", 0, 0, true, false },
	{ "kernels/5.10/idle", "4.19", "none", 0, 0, true, false },
	{ "kernels/6.1/numa01-default", "6.1", "none", 0, 0, true, false },
	{ "kernels/6.1/shared", "6.1", "none", 0, 0, true, false },
	{ "kernels/6.1/thp", "6.1", "none", 0, 0, true, false },
	{ "kernels/6.1/idle", "6.1", "none", 0, 0, true, false },
	{ "kernels/6.12/numa01-default", "6.12", "none", 0, 0, true, false },
	{ "kernels/6.12/shared", "6.12", "none", 0, 0, true, false },
	{ "kernels/6.12/thp", "6.12", "none", 0, 0, true, false },
	{ "kernels/6.12/mthp", "6.12", "none", 0, 0, true, false },
	{ "kernels/6.12/idle", "6.12", "none", 0, 0, true, false },
	{ "kernels/7.2/numa01-default", "6.12", "none", 0, 0, true, false },
	{ "kernels/7.2/shared", "6.12", "none", 0, 0, true, false },
	{ "kernels/7.2/thp", "6.12", "none", 0, 0, true, false },
	{ "kernels/7.2/mthp", "6.12", "none", 0, 0, true, false },
	{ "kernels/7.2/idle", "6.12", "none", 0, 0, true, false },
	/* On these vmstat also counts much of the tracer's own start and end. */
	{ "kernels/4.18/numa01", "4.18", "spin", 256, 1000, true, false },
	{ "kernels/4.18/shared", "4.18", "spin", 256, 1000, true, false },
	{ "kernels/4.18/idle", "4.18", "spin", 256, 1000, false, false },
	{ "kernels/4.18/thp", "4.18", "spin", 0, 0, true, false },
	{ "kernels/4.18-trylock/numa01", "4.18", "trylock", 256, 1000, false, false },
};

/* Every recorded answer of the filter, none undecided, by the variant that belongs to the kernel.
 */
static void check_filter(const struct nrp_verify *v, const struct capture_case *c,
			 const struct imported *im, const struct second_reading *second)
{
	const struct nrp_verify_check *k = check_of(v, "migrate.filter");
	const struct nrp_verify_variant *host = &k->variant[k->chosen];
	uint64_t by_rule = 0, answers = second->filter_answers;

	answers -= im->stats.unjoined_by_event[NRP_EV_FILTER_END];
	assert_string_equal(host->variant, c->filter);
	assert_int_equal(host->decisions, answers);
	assert_int_equal(host->agree, answers);
	assert_int_equal(host->disagree, 0);
	assert_int_equal(host->undecided, 0);
	for (size_t i = 0; i < k->nr_rules; i++) {
		assert_int_equal(k->rule[i].agree, k->rule[i].decisions);
		by_rule += k->rule[i].decisions;
	}
	assert_int_equal(by_rule, answers);
}

static void check_limiter(const struct nrp_verify *v, const struct capture_case *c,
			  const struct second_reading *second)
{
	const struct nrp_verify_check *k = check_of(v, "migrate.ratelimit");
	const struct nrp_verify_variant *host = &k->variant[k->chosen];

	if (c->ratelimit)
		assert_string_equal(host->variant, c->ratelimit);
	assert_int_equal(host->disagree, 0);
	if (c->quota) {
		assert_int_equal(k->quota, c->quota);
		assert_int_equal(k->quota_max, c->quota);
		if (!c->cut)
			assert_int_equal(host->decisions, second->nr_answers);
		/* 3 of 26,585 at most: races at a window's end or the quota's edge. */
		assert_in_range(host->agree, host->decisions - 3, host->decisions);
		assert_int_equal(host->undecided, host->decisions - host->agree);
	}
}

static void check_counters(const struct nrp_verify *v, const struct capture_case *c)
{
	const struct nrp_verify_counter *moved = counter_of(v, "numa_pages_migrated");
	const struct nrp_verify_counter *faults = counter_of(v, "numa_hint_faults");

	if (!moved)
		return; /* a cut without its vmstat */
	assert_in_range(moved->vmstat - moved->trace, 0, c->max_difference);
	if (c->agrees)
		assert_true(faults->vmstat == faults->trace ||
			    faults->explained == NRP_WINDOW_EDGES);
}

static void check_records(struct imported *im, const struct capture_case *c,
			  const struct second_reading *second)
{
	struct nrp_error err = NRP_ERROR_INIT;

	assert_int_equal(im->capture.facts.hz, 250);
	if (!c->cut)
		assert_int_equal(im->stats.unjoined, 0);

	assert_int_equal(nrp_store_register_tables(im->store, &err), 0);
	assert_int_equal(sql_number(im->store, "SELECT count(*) FROM hint_fault"),
			 second->fault_begins);
	assert_int_equal(sql_number(im->store,
				    "SELECT count(*) FROM hint_fault WHERE tnf_flags IS NOT NULL"),
			 second->task_faults - im->stats.unjoined_by_event[NRP_EV_TASK_FAULT]);
	if (c->cut)
		return;
	assert_int_equal(
		sql_number(im->store, "SELECT count(*) FROM hint_fault WHERE tnf_flags & 1"),
		second->moved_flags);
	assert_int_equal(
		sql_number(im->store, "SELECT count(*) FROM hint_fault WHERE tnf_flags & 8"),
		second->local_flags);
	assert_int_equal(sql_number(im->store, "SELECT coalesce(sum(pages), 0) FROM scan_range"),
			 second->armed_pages);
	assert_int_equal(sql_number(im->store, "SELECT coalesce(sum(succeeded), 0) FROM migration "
					       "WHERE reason = 5"),
			 second->numa_succeeded);
	/* Facts behind a NULL group pointer are no facts. */
	assert_int_equal(sql_number(im->store,
				    "SELECT count(*) FROM hint_fault WHERE numa_group IS NULL AND "
				    "(group_id IS NOT NULL OR group_cpu_src IS NOT NULL OR "
				    "group_cpu_dst IS NOT NULL OR group_mem_src IS NOT NULL OR "
				    "group_mem_dst IS NOT NULL)"),
			 0);
	assert_int_equal(sql_number(im->store, "SELECT count(*) FROM hint_fault WHERE numa_group "
					       "IS NOT NULL"),
			 second->groups);
	assert_int_equal(sql_number(im->store, "SELECT count(*) FROM group_weight"),
			 second->groups * (uint64_t)im->capture.facts.nr_nodes);
}

static void test_verify(void **state)
{
	int ran = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct capture_case *c = &cases[i];
		struct nrp_error err = NRP_ERROR_INIT;
		struct second_reading second;
		struct nrp_verify v;
		struct imported im;

		if (!import(&im, c->name))
			continue;
		print_message("  %s\n", c->name);
		assert_int_equal(second_reading(&second, im.path), 0);
		assert_int_equal(nrp_verify_run(&v, im.store, &im.capture, &err), 0);
		check_filter(&v, c, &im, &second);
		check_limiter(&v, c, &second);
		check_counters(&v, c);
		check_records(&im, c, &second);
		assert_int_equal(v.verdict, c->agrees ? NRP_AGREES : NRP_DISAGREES);
		nrp_verify_clear(&v);
		second_reading_free(&second);
		drop(&im);
		ran++;
	}
	print_message("%d captures\n", ran);
}

/* 914 faults of this capture never reached task_numa_fault; all were filtered and all agree. */
static void test_unreported_faults(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct imported im;

	(void)state;
	if (!import(&im, "kernels/6.1/shared"))
		skip();
	assert_int_equal(nrp_store_register_tables(im.store, &err), 0);
	assert_int_equal(sql_number(im.store,
				    "SELECT count(*) FROM hint_fault WHERE tnf_flags IS NULL AND "
				    "filter_answer IS NOT NULL AND last_cpupid IS NOT NULL AND "
				    "inferred & 1"),
			 914);
	drop(&im);
}

/* ---- limiter lanes against the kernel's own answers --------------------------------- */

static void compare_lane(const char *name, enum nrp_ratelimit_variant variant, uint64_t quota,
			 size_t max_races)
{
	struct nrp_ratelimit_params params = { .variant = variant, .quota = quota, .interval = 25 };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_ratelimit_lane lane;
	struct nrp_attempts attempts;
	struct second_reading second;
	struct imported im;
	size_t races = 0;

	if (!import(&im, name))
		return;
	assert_int_equal(second_reading(&second, im.path), 0);
	assert_int_equal(nrp_attempts_load(&attempts, im.store, &im.capture, &err), 0);
	assert_int_equal(nrp_ratelimit_lane_run(&lane, &attempts, &params, true, &err), 0);
	assert_true(lane.fitted);
	assert_int_equal(attempts.count, second.nr_answers);
	for (size_t i = 0; i < attempts.count; i++) {
		const struct kernel_answer *k = &second.answers[i];

		assert_int_equal(attempts.at[i].time, k->time);
		assert_int_equal(attempts.at[i].tid, k->tid);
		if (lane.decision[i].admitted == k->admitted)
			continue;
		/* Serial replay may differ only where it says so. */
		assert_int_equal(lane.decision[i].certainty, NRP_AMBIGUOUS_RACE);
		races++;
	}
	print_message("  %s: %zu calls, %zu races\n", name, attempts.count, races);
	assert_in_range(races, 0, max_races);
	nrp_ratelimit_lane_clear(&lane);
	nrp_attempts_clear(&attempts);
	second_reading_free(&second);
	drop(&im);
}

static void test_kernel_answers(void **state)
{
	(void)state;
	compare_lane("limiter-spin-6.12", NRP_RATELIMIT_SPIN, 200, 5);
	compare_lane("limiter-trylock-6.12", NRP_RATELIMIT_TRYLOCK, 200, 5);
	compare_lane("shared-4.18", NRP_RATELIMIT_SPIN, 256, 0);
	compare_lane("policy-pairs/ratelimit1", NRP_RATELIMIT_SPIN, 256, 0);
	compare_lane("policy-pairs/ratelimit2", NRP_RATELIMIT_TRYLOCK, 256, 5);
	compare_lane("policy-pairs/limiter1-s1", NRP_RATELIMIT_SPIN, 200, 5);
	compare_lane("policy-pairs/limiter1-s2", NRP_RATELIMIT_SPIN, 200, 5);
	compare_lane("policy-pairs/limiter2-s1", NRP_RATELIMIT_TRYLOCK, 200, 5);
	compare_lane("policy-pairs/limiter2-s2", NRP_RATELIMIT_TRYLOCK, 200, 5);
	compare_lane("kernels/4.18/numa01", NRP_RATELIMIT_SPIN, 256, 0);
	compare_lane("kernels/4.18/shared", NRP_RATELIMIT_SPIN, 256, 0);
	compare_lane("kernels/4.18/idle", NRP_RATELIMIT_SPIN, 256, 0);
	compare_lane("kernels/4.18-trylock/numa01", NRP_RATELIMIT_TRYLOCK, 256, 3);
}

/* ---- intervals against another run of a real kernel --------------------------------- */

struct prediction {
	const char *from;
	const char *old_lane, *new_lane;
	uint64_t quota;
	uint64_t truth;           /* numa_pages_migrated of the real kernel under the new policy */
	double at_least, at_most; /* the interval must be within */
};

#define RL "migrate.ratelimit="
static const struct prediction predictions[] = {
	/* shipped; truth from the same workload and seed on the same kernel, policy switched */
	{ "limiter-6.12", RL "none", RL "spin", 200, 730, 201, 3200 },
	{ "limiter-6.12", RL "none", RL "trylock", 200, 1208, 201, 3200 },
	{ "limiter-spin-6.12", RL "spin", RL "none", 200, 3063, 201, 3200 },
	{ "limiter-trylock-6.12", RL "trylock", RL "none", 200, 3063, 201, 3200 },
	{ "limiter-spin-6.12", RL "spin", RL "trylock", 200, 1208, 0, 3200 },
	{ "limiter-trylock-6.12", RL "trylock", RL "spin", 200, 730, 0, 3200 },
	/* the wider set */
	{ "policy-pairs/ratelimit0", RL "none", RL "spin", 256, 2064, 257, 6400 },
	{ "policy-pairs/ratelimit0", RL "none", RL "trylock", 256, 2215, 257, 6400 },
	{ "policy-pairs/ratelimit1", RL "spin", RL "none", 256, 6121, 257, 6400 },
	{ "policy-pairs/ratelimit2", RL "trylock", RL "none", 256, 6121, 257, 6400 },
	{ "policy-pairs/limiter0-s2", RL "none", RL "spin", 200, 805, 201, 3700 },
	{ "policy-pairs/limiter0-s2", RL "none", RL "trylock", 200, 1208, 201, 3700 },
	{ "policy-pairs/limiter1-s2", RL "spin", RL "none", 200, 3565, 201, 3700 },
	{ "policy-pairs/limiter2-s2", RL "trylock", RL "none", 200, 3565, 201, 3700 },
	{ "kernels/4.18/numa01", "host", RL "trylock", 256, 4075, 257, 6400 },
	{ "kernels/4.18-trylock/numa01", "host", RL "spin", 256, 3796, 257, 6400 },
};

static void run_replay(struct nrp_comparison *ret, struct nrp_replay *replay, struct imported *im,
		       const char *old_lane, const char *new_lane, uint64_t quota)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lane_spec lane[2];
	struct nrp_verify verify;
	char set[64];

	assert_int_equal(nrp_lane_parse(&lane[0], old_lane, &err), 0);
	assert_int_equal(nrp_lane_parse(&lane[1], new_lane, &err), 0);
	if (quota) {
		snprintf(set, sizeof(set), "quota=%llu", (unsigned long long)quota);
		assert_int_equal(nrp_lane_set(&lane[0], &lane[1], set, &err), 0);
	}
	assert_int_equal(nrp_verify_run(&verify, im->store, &im->capture, &err), 0);
	assert_int_equal(
		nrp_replay_run(replay, im->store, &im->capture, &verify, &lane[0], &lane[1], &err),
		0);
	assert_int_equal(nrp_comparison_build(ret, replay, &im->capture, &verify, &err), 0);
	nrp_verify_clear(&verify);
}

static bool has_note(const struct nrp_comparison *c, const char *code)
{
	for (size_t i = 0; i < c->nr_notes; i++)
		if (!strcmp(c->note[i].code, code))
			return true;
	return false;
}

static void test_predictions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(predictions) / sizeof(predictions[0]); i++) {
		const struct prediction *p = &predictions[i];
		const struct nrp_quantity *q;
		struct nrp_comparison c;
		struct nrp_replay replay;
		struct imported im;

		if (!import(&im, p->from))
			continue;
		run_replay(&c, &replay, &im, p->old_lane, p->new_lane, p->quota);
		q = &nrp_comparison_metric(&c, "migrated_pages")->new_lane;
		print_message("  %s %s -> %s: %.0f [%.0f, %.0f], the kernel %llu\n", p->from,
			      p->old_lane, p->new_lane, q->value, q->lower, q->upper,
			      (unsigned long long)p->truth);
		assert_true(q->has_lower && q->has_upper);
		assert_true(q->lower <= (double)p->truth && (double)p->truth <= q->upper);
		assert_true(q->lower >= p->at_least && q->upper <= p->at_most);
		assert_true(has_note(&c, "sticky_scan_period"));
		nrp_comparison_clear(&c);
		nrp_replay_clear(&replay);
		drop(&im);
	}
}

/* E0 with the first window at the first attempt, by an independent model. */
static void test_e0(void **state)
{
	struct nrp_comparison c;
	struct nrp_replay replay;
	struct imported im;

	(void)state;
	if (!import(&im, "policy-pairs/ratelimit0"))
		skip();
	run_replay(&c, &replay, &im, RL "none", RL "spin", 256);
	assert_int_equal(replay.lane[1].e0.admitted, 1053);
	assert_int_equal(replay.lane[1].e0.denied, 5143);
	assert_true(has_note(&c, "e0_decisions"));
	assert_true(has_note(&c, "first_window_unknown"));
	nrp_comparison_clear(&c);
	nrp_replay_clear(&replay);
	drop(&im);
}

/* ---- null tests --------------------------------------------------------------------- */

/* Old = new: nothing avoided, anywhere, exactly. */
/*
 * Another scanner: cost one way, locality the other, as the real kernel with the other policy had
 * it. Expected values are the captures of the other side.
 */
static const struct sign {
	const char *from, *new_lane;
	int faults, accesses; /* -1: the new lane has more, 1: fewer, 0: unchanged within error */
	uint64_t true_faults, true_moved;
	bool certain_faults; /* the sign of the faults is in the bounds, too */
	bool same_readers;   /* as many readers on each node, all of them seen */
} signs[] = {
	/* shipped: forked readers, whose pages no longer fault (kernels/4.18/cow: 8 faults) */
	{ "cowmix-4.18", "scan.pte=F1", 1, 0, 8, 8, true, false },
	/* the starvation fix: idle-vma3 has 4500 faults and 4352 pages moved */
	{ "policy-pairs/idle-vma2", "scan.vma=P3", -1, 1, 4500, 4352, false, false },
	/* shared copy-on-write pages: cow-skip1 has 8 faults, 8 pages */
	{ "policy-pairs/cow-skip0", "scan.pte=F3", 1, 0, 8, 8, true, true },
};

static int sign_of(double x)
{
	return (x > 0) - (x < 0);
}

/* No sentence may read a difference of faults as locality. */
static void check_words(const struct nrp_comparison *c)
{
	static const char *const praise[] = { " gain", "improve", " better", "worse" };
	char *text = nrp_comparison_text(c, 0);

	assert_non_null(text);
	for (size_t i = 0; i < sizeof(praise) / sizeof(praise[0]); i++)
		assert_null(strstr(text, praise[i]));
	assert_non_null(strstr(text, "cost: hinting faults"));
	assert_non_null(strstr(text, "locality:"));
	free(text);
}

static void test_signs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		const struct nrp_metric *faults, *accesses, *residency, *moved;
		struct nrp_comparison c;
		struct nrp_replay replay;
		struct imported im;

		if (!import(&im, signs[i].from))
			continue;
		run_replay(&c, &replay, &im, "host", signs[i].new_lane, 0);
		faults = nrp_comparison_metric(&c, "hint_faults");
		accesses = nrp_comparison_metric(&c, "remote_accesses");
		residency = nrp_comparison_metric(&c, "remote_residency");
		moved = nrp_comparison_metric(&c, "migrated_pages");
		print_message("  %s -> %s: faults %.0f [%.0f, %.0f], kernel %llu; remote accesses "
			      "avoided %.0f [%.0f, %.0f]\n",
			      signs[i].from, signs[i].new_lane, faults->new_lane.value,
			      faults->new_lane.lower, faults->new_lane.upper,
			      (unsigned long long)signs[i].true_faults, accesses->avoided.value,
			      accesses->avoided.lower, accesses->avoided.upper);
		assert_int_equal(sign_of(faults->avoided.value), signs[i].faults);
		if (signs[i].certain_faults)
			assert_true(faults->avoided.lower > 0);
		assert_true(faults->new_lane.lower <= (double)signs[i].true_faults &&
			    faults->new_lane.upper >= (double)signs[i].true_faults);
		assert_true(moved->new_lane.lower <= (double)signs[i].true_moved &&
			    moved->new_lane.upper >= (double)signs[i].true_moved);
		assert_true(accesses->avoided.lower <= 0 && accesses->avoided.upper >= 0);
		assert_true(residency->avoided.lower <= 0 && residency->avoided.upper >= 0);
		if (signs[i].accesses)
			assert_int_equal(sign_of(accesses->avoided.value), signs[i].accesses);
		if (signs[i].same_readers)
			assert_true(fabs(residency->avoided.value) <
				    0.01 * residency->old_lane.value);
		check_words(&c);
		nrp_comparison_clear(&c);
		nrp_replay_clear(&replay);
		drop(&im);
	}
}

static void test_same_policy(void **state)
{
	static const char *const names[] = { "limiter-6.12", "shared-4.18", "thp-5.10" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct nrp_comparison c;
		struct nrp_replay replay;
		struct imported im;

		assert_true(import(&im, names[i]));
		run_replay(&c, &replay, &im, "host", "host", 0);
		for (size_t m = 0; m < c.nr_metrics; m++) {
			assert_int_equal(c.metric[m].avoided.class, NRP_CLASS_EXACT);
			assert_true(c.metric[m].avoided.value == 0);
			assert_true(c.metric[m].avoided.lower == 0);
			assert_true(c.metric[m].avoided.upper == 0);
		}
		nrp_comparison_clear(&c);
		nrp_replay_clear(&replay);
		drop(&im);
	}
}

/* The kernel's own quota is far above what this capture attempts: identical, and it says why. */
static void test_identical(void **state)
{
	struct nrp_comparison c;
	struct nrp_replay replay;
	struct imported im;

	(void)state;
	assert_true(import(&im, "limiter-6.12"));
	run_replay(&c, &replay, &im, RL "none", RL "spin", 0);
	assert_true(replay.identical);
	assert_true(has_note(&c, "identical_on_trace"));
	assert_false(has_note(&c, "sticky_scan_period"));
	assert_true(replay.max_pages_in_window > 0);
	assert_true(replay.max_pages_in_window <= 32768);
	for (size_t m = 0; m < c.nr_metrics; m++)
		assert_true(c.metric[m].avoided.class == NRP_CLASS_EXACT &&
			    c.metric[m].avoided.value == 0);
	nrp_comparison_clear(&c);
	nrp_replay_clear(&replay);
	drop(&im);
}

/* ---- migration waits ---------------------------------------------------------------- */

/*
 * Waits of the capture, ns of all, and how many begin while an attempt on the same virtual page by
 * another thread is in flight, counted over the CSV of the two records. The others begin at most
 * 2.2 ms after the end of such an attempt, which moved its page.
 */
static const struct {
	const char *name;
	uint64_t waits, ns, in_flight;
	bool other_mm; /* forked readers: never the waiter's own address space */
} wait_cases[] = {
	{ "cowmix-4.18", 281, 7527192869, 278, true },
	{ "shared-4.18", 461, 214067681, 442, false },
	{ "kernels/4.18-F0/cow", 502, 18499728593, 501, true },
	{ "kernels/4.18-F0/cowmix", 281, 7527192869, 278, true },
	{ "kernels/4.18/shared", 461, 214067681, 442, false },
	{ "policy-pairs/cowmix-skip0-s1", 504, 113841681, 500, true },
	{ "policy-pairs/cowmix-skip0-s2", 711, 257231612, 704, true },
	{ "policy-pairs/idlemix-P2-s1", 777, 96265127, 776, false },
	{ "policy-pairs/idlemix-P2-s2", 1250, 38028599, 1247, false },
	{ "policy-pairs/idlemix-P3-s1", 925, 84664645, 925, false },
	{ "policy-pairs/idlemix-P3-s2", 910, 36542992, 909, false },
};

static void test_migration_waits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wait_cases) / sizeof(wait_cases[0]); i++) {
		struct nrp_error err = NRP_ERROR_INIT;
		struct nrp_fault_waits of = { 0 };
		struct imported im;
		struct nrp_waits w;

		if (!import(&im, wait_cases[i].name))
			continue;
		assert_int_equal(nrp_waits_load(&w, im.store, &im.capture, &err), 0);
		assert_int_equal(w.totals.all.waits, wait_cases[i].waits);
		assert_int_equal(w.totals.all.ns, wait_cases[i].ns);
		assert_int_equal(w.totals.by_cause[NRP_WAIT_HINT_FAULT].waits, wait_cases[i].waits);
		assert_int_equal(w.totals.by_certainty[NRP_WAIT_EXACT].waits,
				 wait_cases[i].in_flight);
		assert_int_equal(w.totals.by_certainty[NRP_WAIT_LATE].waits,
				 wait_cases[i].waits - wait_cases[i].in_flight);
		for (size_t k = 0; k < w.count; k++)
			assert_int_equal(w.at[k].cause_mm != w.at[k].mm, wait_cases[i].other_mm);
		for (size_t k = 0; k < w.nr_links; k++) {
			if (k && w.link[k].time == w.link[k - 1].time &&
			    w.link[k].tid == w.link[k - 1].tid)
				continue;
			of.certain.waits +=
				nrp_waits_of_fault(&w, w.link[k].time, w.link[k].tid).certain.waits;
		}
		assert_int_equal(of.certain.waits, wait_cases[i].waits);
		nrp_waits_clear(&w);
		drop(&im);
	}
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(scratch) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(scratch);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest shipped[] = {
		cmocka_unit_test(test_verify),      cmocka_unit_test(test_kernel_answers),
		cmocka_unit_test(test_predictions), cmocka_unit_test(test_same_policy),
		cmocka_unit_test(test_identical),   cmocka_unit_test(test_migration_waits),
		cmocka_unit_test(test_signs),
	};
	const struct CMUnitTest wide[] = {
		cmocka_unit_test(test_verify),
		cmocka_unit_test(test_unreported_faults),
		cmocka_unit_test(test_kernel_answers),
		cmocka_unit_test(test_predictions),
		cmocka_unit_test(test_e0),
		cmocka_unit_test(test_migration_waits),
		cmocka_unit_test(test_signs),
	};

	traces = wide_folder(argc, argv);
	return traces ? cmocka_run_group_tests(wide, set_up, tear_down)
		      : cmocka_run_group_tests(shipped, set_up, tear_down);
}
