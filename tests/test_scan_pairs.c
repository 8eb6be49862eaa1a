/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pairs of captures: the same program on two kernels that differ in one scan policy. What a replay
 * reports for the other kernel must hold what that kernel recorded, and must not be so wide that it
 * says nothing. Expected values are counts of the other kernel's own capture, or of repeated runs
 * of it. Needs the captures that NRP_TRACES names: --wide.
 */
#include "null_util.h"
#include "wide.h"

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

static const char *traces;
static char scratch[] = "scan-pairs-XXXXXX";
static struct loaded *set;
static size_t nr_set;

static const struct nrp_metric *metric(const struct compared *c, const char *name)
{
	const struct nrp_metric *m = nrp_comparison_metric(&c->comparison, name);

	assert_non_null(m);
	return m;
}

/* The new lane's interval holds [@low, @high], its upper bound is at most @most. */
static void check(const struct compared *c, const char *name, double low, double high, double most)
{
	const struct nrp_quantity *q = &metric(c, name)->new_lane;

	print_message("  %-24s [%.0f, %.0f] holds [%g, %g], upper <= %g\n", name, q->lower,
		      q->upper, low, high, most);
	assert_true(q->has_lower && q->has_upper);
	assert_true(q->lower <= low && q->upper >= high);
	assert_true(q->upper <= most);
}

static bool compare(struct compared *c, const char *name, const char *old_lane,
		    const char *new_lane)
{
	const struct loaded *l = null_find(set, nr_set, name);

	if (!l)
		return false; /* another selection of captures */
	print_message("%s: %s\n", name, new_lane);
	null_compare(c, l, old_lane, new_lane, NULL);
	return true;
}

/* ---- shared copy-on-write pages ------------------------------------------------------ */

struct pte_case {
	const char *name;
	double faults[2], pages[2]; /* of the other kernel: mean +- 2 sd of its runs, or one run */
	double most_faults, most_pages;
};

/* Runs of cowmix on the other kernel: 4 to 9 faults, 4 to 7 migrated pages (draws.tsv). */
#define COWMIX_FAULTS                                                                              \
	{                                                                                          \
		1.7, 8.8                                                                           \
	}
#define COWMIX_PAGES                                                                               \
	{                                                                                          \
		2.4, 7.1                                                                           \
	}

static const json_t *detail(const struct compared *c, const char *code)
{
	for (size_t i = 0; i < c->comparison.nr_notes; i++)
		if (strcmp(c->comparison.note[i].code, code) == 0)
			return c->comparison.note[i].detail;
	fail_msg("no note %s", code);
	return NULL;
}

/* 502 waits on the old kernel, none on the new one; it is the first that is said. */
static void check_blocked(const struct compared *c)
{
	char *text = nrp_comparison_text(&c->comparison, 1000);
	const char *blocked;
	const json_t *cost = json_object_get(detail(c, "verdict"), "cost");

	check(c, "page_migration_waits", 0, 0, 50);
	check(c, "page_migration_wait_ns", 0, 0, 1.85e9);
	assert_string_equal(json_string_value(json_object_get(cost, "page_migration_waits")),
			    "fewer");
	assert_string_equal(json_string_value(json_object_get(cost, "page_migration_wait_ns")),
			    "fewer");
	assert_non_null(text);
	blocked = strstr(text, "blocked: on record tasks of ");
	assert_non_null(blocked);
	assert_non_null(strstr(blocked, " waited 502 times, 18.500 s in all"));
	assert_true(blocked < strstr(text, "on record: "));
	free(text);
}

static void test_filter_of_shared_pages(void **state)
{
	static const struct pte_case cases[] = {
		{ "policy-pairs/cow-skip0", { 8, 8 }, { 8, 8 }, 300, 300 },
		{ "policy-pairs/cowmix-skip0-s1", COWMIX_FAULTS, COWMIX_PAGES, 2586 / 4.0,
		  1105 / 4.0 },
		{ "policy-pairs/cowmix-skip0-s2", COWMIX_FAULTS, COWMIX_PAGES, 4429 / 4.0,
		  2004 / 4.0 },
		{ "kernels/4.18-F0/cow", { 8, 8 }, { 8, 8 }, 336, 178 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pte_case *k = &cases[i];
		struct compared c;

		if (!compare(&c, k->name, "scan.pte=F0", "scan.pte=F1"))
			continue;
		check(&c, "hint_faults", k->faults[0], k->faults[1], k->most_faults);
		check(&c, "migrated_pages", k->pages[0], k->pages[1], k->most_pages);
		if (strcmp(k->name, "kernels/4.18-F0/cow") == 0)
			check_blocked(&c);
		null_compared_clear(&c);
	}
}

/*
 * The other way round: 12 of 24601 entries were armed (sums over the capture's ranges). How many of
 * the others somebody touches is not on record; the note says what would narrow it.
 */
static void test_filter_that_lets_shared_pages_through(void **state)
{
	const json_t *note;
	struct compared c;

	(void)state;
	if (!compare(&c, "policy-pairs/cow-skip1", "scan.pte=F3", "scan.pte=F0"))
		return;
	check(&c, "hint_faults", 12971, 12971, 24601);
	check(&c, "migrated_pages", 6535, 6535, 24601);
	note = detail(&c, "unobserved_entries");
	assert_int_equal(json_integer_value(json_object_get(note, "unarmed_entries")), 24601 - 12);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(note, "narrow_by"), 0)),
		"pagemap_kpagecount_at_pass");
	null_compared_clear(&c);
}

/* ---- VMAs that are left out ----------------------------------------------------------- */

struct vma_case {
	const char *name, *lane;
	double faults, pages; /* of the other side */
	double most_faults;   /* all pages resident in each pass: R x passes; 0: no limit here */
	double most_pages;    /* 0: no limit here */
};

static void test_filter_of_vmas(void **state)
{
	static const struct vma_case cases[] = {
		{ "policy-pairs/idle-vma0", "scan.vma=P3", 4500, 4352, 0, 0 },
		{ "policy-pairs/idle-vma2", "scan.vma=P3", 4500, 4352, 1.81e6, 3 * 4352 },
		{ "policy-pairs/idle-vma3", "scan.vma=P2", 1327, 1280, 1.83e6, 10315 },
		{ "policy-pairs/idlemix-P2-s1", "scan.vma=P3", 50949, 7597, 656625, 0 },
		{ "policy-pairs/idlemix-P2-s2", "scan.vma=P3", 68491, 8164, 1014627, 0 },
		{ "policy-pairs/idlemix-P3-s1", "scan.vma=P2", 28259, 4888, 785375, 0 },
		{ "policy-pairs/idlemix-P3-s2", "scan.vma=P2", 67076, 5086, 945132, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vma_case *k = &cases[i];
		struct compared c;

		if (!compare(&c, k->name, "host", k->lane))
			continue;
		check(&c, "hint_faults", k->faults, k->faults,
		      k->most_faults > 0 ? k->most_faults : INFINITY);
		check(&c, "migrated_pages", k->pages, k->pages,
		      k->most_pages > 0 ? k->most_pages : INFINITY);
		null_compared_clear(&c);
	}
}

/*
 * Without the PID filter the host armed all; P3 arms fewer ranges, but in the end moves the same
 * pages: its own capture has 109 remote accesses [86, 137] and 39.8 remote page-seconds.
 */
static void test_starved_lane_may_have_the_locality_of_the_other_kernel(void **state)
{
	const struct nrp_quantity *q;
	struct compared c;

	(void)state;
	if (!compare(&c, "policy-pairs/idle-vma0", "host", "scan.vma=P3"))
		return;
	q = &metric(&c, "remote_accesses")->new_lane;
	assert_true(q->lower <= 137 && q->upper >= 109);
	q = &metric(&c, "remote_residency")->new_lane;
	/* Another run of the program: as long to a hundredth. */
	assert_true(q->lower <= 39.78 * 1.01 && q->upper >= 39.78);
	null_compared_clear(&c);
}

static double member(const json_t *predictor, const char *name)
{
	return json_number_value(json_object_get(predictor, name));
}

/*
 * The program has one address space, with 10315 pages in VMAs (audited by hand from the record's
 * ranges and skips), and 1327 faults on the host.
 */
static void test_first_added_scan_and_trivial_predictors_are_told(void **state)
{
	const json_t *spaces, *faults, *moved;
	struct compared c;

	(void)state;
	if (!compare(&c, "policy-pairs/idle-vma2", "host", "scan.vma=P3"))
		return;
	spaces = json_object_get(detail(&c, "first_added_scan"), "spaces");
	assert_int_equal(json_array_size(spaces), 1);
	assert_true(json_is_true(json_object_get(json_array_get(spaces, 0), "certain")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(spaces, 0), "rule")),
			    "stale");
	faults = json_object_get(detail(&c, "trivial_predictors"), "hint_faults");
	moved = json_object_get(detail(&c, "trivial_predictors"), "migrated_pages");
	assert_true(member(faults, "no_change") == 1327);
	assert_true(member(moved, "no_change") == 1280);
	assert_true(json_number_value(json_array_get(json_object_get(moved, "all_resident"), 1)) ==
		    10315);
	null_compared_clear(&c);
}

/* Nothing here starves: no pass in which P2 and P3 decide differently. */
static void test_p2_and_p3_are_identical_where_nothing_starves(void **state)
{
	static const char *const names[] = { "kernels/6.12/numa01-default", "kernels/6.12/shared" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct compared c;

		if (!compare(&c, names[i], "scan.vma=P2", "scan.vma=P3"))
			continue;
		assert_non_null(null_note(&c.comparison, "identical_on_trace"));
		assert_true(metric(&c, "hint_faults")->avoided.lower == 0);
		assert_true(metric(&c, "hint_faults")->avoided.upper == 0);
		null_compared_clear(&c);
	}
}

static void test_p2_and_p3_are_not_identical_where_vmas_starve(void **state)
{
	struct compared c;

	(void)state;
	if (!compare(&c, "policy-pairs/idle-vma2", "scan.vma=P2", "scan.vma=P3"))
		return;
	assert_null(null_note(&c.comparison, "identical_on_trace"));
	assert_non_null(null_note(&c.comparison, "cadence"));
	null_compared_clear(&c);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter_of_shared_pages),
		cmocka_unit_test(test_filter_that_lets_shared_pages_through),
		cmocka_unit_test(test_filter_of_vmas),
		cmocka_unit_test(test_starved_lane_may_have_the_locality_of_the_other_kernel),
		cmocka_unit_test(test_first_added_scan_and_trivial_predictors_are_told),
		cmocka_unit_test(test_p2_and_p3_are_identical_where_nothing_starves),
		cmocka_unit_test(test_p2_and_p3_are_not_identical_where_vmas_starve),
	};
	static const char *const patterns[] = { "policy-pairs/cow*.dat", "policy-pairs/idle*.dat",
						"kernels/4.18-F0/cow.dat",
						"kernels/6.12/numa01-default.dat",
						"kernels/6.12/shared.dat" };
	int r;

	traces = wide_folder(argc, argv);
	if (!traces) {
		printf("skipped: these captures are in the wider set only\n");
		return 77;
	}
	if (!mkdtemp(scratch)) {
		perror(scratch);
		return 1;
	}
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		null_load(&set, &nr_set, traces, patterns[i], scratch);
	r = cmocka_run_group_tests_name("scan_pairs", tests, NULL, NULL);
	null_drop_all(set, nr_set);
	rmdir(scratch);
	return r;
}
