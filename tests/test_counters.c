/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters before and after. Expected values are those of the specification (migrate.md 1.10 and
 * 2.9) or of hand calculation. Where the specification gives only a difference of hinting faults,
 * the local ones are put to 0.
 */
#include "analysis/counters.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct nrp_counters_options defaults;

/* Analyses texts that are right. */
static void analyse(struct nrp_counters_report *ret, const struct nrp_counters_options *options,
		    size_t files, const char *const *text)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_counters_file file[NRP_COUNTERS_FILES] = { 0 };

	for (size_t i = 0; i < files; i++)
		if (nrp_counters_parse(&file[i], "text", text[i], strlen(text[i]), &err) < 0)
			fail_msg("text %zu: offset %lld: %s", i, (long long)err.offset, err.what);
	if (nrp_counters_analyse(ret, file, files, options, &err) < 0)
		fail_msg("%s: %s", err.file, err.what);
	for (size_t i = 0; i < files; i++)
		nrp_counters_file_clear(&file[i]);
}

static void table(struct nrp_counters_report *ret, int64_t page_size, const char *text)
{
	struct nrp_counters_options options = { .page_size = page_size };

	analyse(ret, &options, 1, &text);
}

/* Parses a text that is wrong and checks where and why. */
static void refused(const char *text, size_t size, int64_t offset, const char *what)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_counters_file file;

	assert_int_equal(nrp_counters_parse(&file, "text", text, size, &err), -EBADMSG);
	assert_int_equal(err.status, NRP_INPUT);
	assert_int_equal(err.offset, offset);
	if (!strstr(err.what, what))
		fail_msg("'%s' is not in '%s'", what, err.what);
}

static const struct nrp_invariant *invariant(const struct nrp_counters_report *r, int run,
					     const char *name)
{
	for (size_t i = 0; i < r->nr_invariants; i++)
		if (r->invariant[i].run == run && !strcmp(r->invariant[i].name, name))
			return &r->invariant[i];
	fail_msg("no invariant %s", name);
	return NULL;
}

static bool has_note(const struct nrp_counters_report *r, const char *code)
{
	for (size_t i = 0; i < r->nr_notes; i++)
		if (!strcmp(r->note[i].code, code))
			return true;
	return false;
}

static void assert_count(const struct nrp_counters_report *r, int run, const char *name,
			 int64_t value)
{
	struct nrp_count c = nrp_counters_count(r, run, name);

	assert_int_equal(c.state, NRP_COUNT_KNOWN);
	assert_int_equal(c.value, value);
}

/* ---- the table of the specification ------------------------------------------------- */

struct cell {
	const char *name, *text;
	int64_t page_size, quota;
	int64_t remote[2], huge[2], migrated[2], bound[2];
	double percent[2]; /* migrated per remote fault */
	bool can_refuse[2];
	double needs[2]; /* percent of the run; 0: none */
};

static const struct cell cells[] = {
	{ "Haswell multi",
	  "Event                   Before  After\n"
	  "numa_hint_faults        26907   72692\n"
	  "numa_hint_faults_local  24279   62270\n"
	  "numa_huge_pte_updates   0       48\n"
	  "numa_pages_migrated     363     2225\n",
	  4096,
	  32768,
	  { 2628, 10422 },
	  { 0, 48 },
	  { 363, 2225 },
	  { 2628, 34950 },
	  { 13.8, 21.3 },
	  { false, true },
	  { 0, 94 } },
	{ "Haswell single",
	  "numa_hint_faults        3042    3989\n"
	  "numa_hint_faults_local  0       0\n"
	  "numa_huge_pte_updates   20      42\n"
	  "numa_pages_migrated     668     915\n",
	  4096,
	  32768,
	  { 3042, 3989 },
	  { 20, 42 },
	  { 668, 915 },
	  { 13262, 25451 },
	  { 22.0, 22.9 },
	  { false, false },
	  { 0, 0 } },
	{ "Power9 multi",
	  "numa_hint_faults        1258    622\n"
	  "numa_hint_faults_local  0       0\n"
	  "numa_huge_pte_updates   0       0\n"
	  "numa_pages_migrated     149     92\n",
	  65536,
	  2048,
	  { 1258, 622 },
	  { 0, 0 },
	  { 149, 92 },
	  { 1258, 622 },
	  { 11.8, 14.8 },
	  { false, false },
	  { 0, 0 } },
	{ "Power9 single",
	  "numa_hint_faults        101     45\n"
	  "numa_hint_faults_local  0       0\n"
	  "numa_huge_pte_updates   0       0\n"
	  "numa_pages_migrated     5       2\n",
	  65536,
	  2048,
	  { 101, 45 },
	  { 0, 0 },
	  { 5, 2 },
	  { 101, 45 },
	  { 5.0, 4.4 },
	  { false, false },
	  { 0, 0 } },
	{ "Power7 multi",
	  "numa_hint_faults        8089    18917\n"
	  "numa_hint_faults_local  0       0\n"
	  "numa_huge_pte_updates   0       0\n"
	  "numa_pages_migrated     1224    2376\n",
	  65536,
	  2048,
	  { 8089, 18917 },
	  { 0, 0 },
	  { 1224, 2376 },
	  { 8089, 18917 },
	  { 15.1, 12.6 },
	  { true, true },
	  { 25, 11 } },
	{ "Power7 single",
	  "numa_hint_faults        7803    9069\n"
	  "numa_hint_faults_local  0       0\n"
	  "numa_huge_pte_updates   0       0\n"
	  "numa_pages_migrated     616     703\n",
	  65536,
	  2048,
	  { 7803, 9069 },
	  { 0, 0 },
	  { 616, 703 },
	  { 7803, 9069 },
	  { 7.9, 7.8 },
	  { true, true },
	  { 26, 23 } },
};

static void the_six_cells_come_out_as_in_the_specification(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		const struct cell *c = &cells[i];
		struct nrp_counters_report r;

		table(&r, c->page_size, c->text);
		print_message("%s\n", c->name);
		assert_int_equal(r.nr_runs, 2);
		assert_int_equal(r.options.quota, c->quota);
		assert_false(r.violated);
		for (int run = 0; run < 2; run++) {
			const struct nrp_counters_limiter *l = &r.limiter[run];
			double percent =
				100.0 * (double)l->migrated.value / (double)l->remote_faults.value;

			assert_int_equal(l->remote_faults.value, c->remote[run]);
			assert_int_equal(l->huge_pte_updates.value, c->huge[run]);
			assert_int_equal(l->migrated.value, c->migrated[run]);
			assert_int_equal(l->upper_bound.value, c->bound[run]);
			assert_true(percent > c->percent[run] - 0.0501 &&
				    percent < c->percent[run] + 0.0501);
			assert_int_equal(l->can_refuse, c->can_refuse[run] ? NRP_TRUE : NRP_FALSE);
			assert_int_equal(l->has_share, c->can_refuse[run]);
			if (l->has_share)
				assert_int_equal((int)(l->share_of_run * 100 + 0.5),
						 (int)c->needs[run]);
		}
		assert_true(has_note(&r, "single_runs"));
		assert_true(has_note(&r, "what_would_decide"));
		nrp_counters_report_clear(&r);
	}
}

/* The same texts with pages of 4 KiB: then the limiter is excluded on Power7 too. */
static void the_page_size_decides_the_quota(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 4096, cells[4].text);
	assert_int_equal(r.limiter[0].can_refuse, NRP_FALSE);
	assert_int_equal(r.limiter[1].can_refuse, NRP_FALSE);
	nrp_counters_report_clear(&r);
}

static void what_the_limiter_can_do_is_put_in_words(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 4096, cells[0].text);
	assert_string_equal(
		r.limiter[0].text,
		"cannot have refused anything: the whole run attempts at most 2628 pages, "
		"fewer than the quota of 32768");
	assert_string_equal(r.limiter[1].text,
			    "could have, if more than 32768 of at most 34950 pages fell into one "
			    "window to one node: that takes 93.8 % of the run");
	/* (32769 - 2628) / 511 = 58.98 */
	assert_int_equal(r.limiter[0].edge_huge_pages.value, 59);
	assert_true(has_note(&r, "armed_before_window"));
	nrp_counters_report_clear(&r);
}

/* 1.10: tools with different windows, and PTEs armed before the window. */
static void windows_that_do_not_fit_are_named_not_explained_away(void **state)
{
	static const struct {
		int64_t events, pages, huge;
		const char *explained;
	} pair[] = { { 365, 363, 0, NULL },
		     { 637, 668, 20, "thp_units" },
		     { 637, 668, 0, "different_windows" },
		     { 1350, 1224, 0, NULL } };

	(void)state;
	for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++) {
		struct nrp_counters_report r;
		char text[256];

		snprintf(text, sizeof(text),
			 "migrate:mm_migrate_pages %lld 0\nnuma_pages_migrated %lld 0\n"
			 "numa_huge_pte_updates %lld 0\n",
			 (long long)pair[i].events, (long long)pair[i].pages,
			 (long long)pair[i].huge);
		table(&r, 4096, text);
		assert_true(has_note(&r, "inconsistent_windows"));
		assert_int_equal(invariant(&r, 0, "migrated_within_events")->holds,
				 pair[i].explained ? NRP_FALSE : NRP_TRUE);
		if (pair[i].explained)
			assert_string_equal(invariant(&r, 0, "migrated_within_events")->explained,
					    pair[i].explained);
		assert_false(r.violated);
		nrp_counters_report_clear(&r);
	}
}

static void faults_may_exceed_pte_updates_by_what_was_armed_before(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 0, "numa_hint_faults 403 13422\nnuma_pte_updates 400 13374\n");
	for (int run = 0; run < 2; run++) {
		const struct nrp_invariant *i = invariant(&r, run, "faults_within_pte_updates");

		assert_int_equal(i->holds, NRP_FALSE);
		assert_string_equal(i->explained, "armed_before_window");
	}
	assert_false(r.violated);
	/* The local faults are missing: nothing about the limiter. */
	assert_int_equal(r.limiter[0].can_refuse, NRP_UNKNOWN);
	assert_int_equal(invariant(&r, 0, "local_faults_within_faults")->holds, NRP_UNKNOWN);
	assert_true(has_note(&r, "missing_counters"));
	nrp_counters_report_clear(&r);
}

/* ---- invariants --------------------------------------------------------------------- */

static void more_local_faults_than_faults_is_not_explained(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 0,
	      "numa_hint_faults 10 10\nnuma_hint_faults_local 10 11\n"
	      "numa_huge_pte_updates 0 0\n");
	assert_int_equal(invariant(&r, 0, "local_faults_within_faults")->holds, NRP_TRUE);
	assert_int_equal(invariant(&r, 1, "local_faults_within_faults")->holds, NRP_FALSE);
	assert_null(invariant(&r, 1, "local_faults_within_faults")->explained);
	assert_true(r.violated);
	assert_int_equal(r.limiter[1].can_refuse, NRP_UNKNOWN);
	nrp_counters_report_clear(&r);
}

/* Up to 1 % and 64 can be under way at the ends; 1000 + 10 + 64 = 1074. */
static void migrated_pages_are_successes_but_for_the_edges(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 0, "numa_pages_migrated 1074 1075\npgmigrate_success 1000 1000\n");
	assert_string_equal(invariant(&r, 0, "migrated_within_success")->explained, "window_edges");
	assert_null(invariant(&r, 1, "migrated_within_success")->explained);
	assert_true(r.violated);
	nrp_counters_report_clear(&r);
}

/* 100 remote faults, no huge page armed: 100 pages, or 51200 if all were armed before. */
static void more_moves_than_the_bound_refute_it(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 4096,
	      "numa_hint_faults 100 100\nnuma_hint_faults_local 0 0\n"
	      "numa_huge_pte_updates 0 0\nnuma_pages_migrated 101 60000\n");
	assert_string_equal(invariant(&r, 0, "migrated_within_bound")->explained,
			    "armed_before_window");
	assert_true(r.limiter[0].refuted);
	assert_int_equal(r.limiter[0].update_bound.value, 100);
	assert_int_equal(r.limiter[0].upper_bound.value, 51200);
	assert_int_equal(r.limiter[0].can_refuse, NRP_TRUE);
	assert_true(has_note(&r, "bound_refuted"));
	/* 60000 is beyond that too. */
	assert_null(invariant(&r, 1, "migrated_within_bound")->explained);
	assert_int_equal(r.limiter[1].can_refuse, NRP_UNKNOWN);
	assert_true(r.violated);
	nrp_counters_report_clear(&r);
}

/* mprotect() of huge pages counts as numa_huge_pte_updates: 3 * 512 > 1000. */
static void huge_updates_may_come_from_mprotect(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 4096, "numa_huge_pte_updates 3 1\nnuma_pte_updates 1000 1000\n");
	assert_string_equal(invariant(&r, 0, "huge_updates_within_pte_updates")->explained,
			    "mprotect");
	assert_int_equal(invariant(&r, 1, "huge_updates_within_pte_updates")->holds, NRP_TRUE);
	assert_false(r.violated);
	nrp_counters_report_clear(&r);
}

/* 64 faults of 512 pages are 32768: not one page too many, however the bound is made. */
static void few_faults_cannot_exceed_the_quota_whatever_they_move(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 4096,
	      "numa_hint_faults 64 65\nnuma_hint_faults_local 0 0\n"
	      "numa_huge_pte_updates 100 100\n");
	assert_int_equal(r.limiter[0].upper_bound.value, 64 + 511 * 100);
	assert_int_equal(r.limiter[0].can_refuse, NRP_FALSE);
	assert_int_equal(r.limiter[1].can_refuse, NRP_TRUE);
	nrp_counters_report_clear(&r);
}

/* ---- forms of input ----------------------------------------------------------------- */

static void snapshots_give_the_difference_and_keep_unknown_counters(void **state)
{
	static const char *const text[] = {
		"nr_free_pages 900\r\nnuma_hint_faults 100\t# faults\r\n"
		"numa_hint_faults_local 40 //local\r\n\r\nsomething_new 7\r\nonly_before 1\r\n",
		"nr_free_pages 800\nnuma_hint_faults 150\nnuma_hint_faults_local 60\n"
		"something_new 9\nnuma_huge_pte_updates 2",
	};
	struct nrp_counters_report r;

	(void)state;
	analyse(&r, &defaults, 2, text);
	assert_int_equal(r.nr_runs, 1);
	assert_int_equal(r.input[0].kind, NRP_COUNTERS_SNAPSHOT);
	assert_count(&r, 0, "numa_hint_faults", 50);
	assert_count(&r, 0, "numa_hint_faults_local", 20);
	assert_count(&r, 0, "something_new", 2);
	assert_count(&r, 0, "nr_free_pages", -100); /* a gauge may go down */
	assert_int_equal(nrp_counters_count(&r, 0, "only_before").state, NRP_COUNT_MISSING);
	/* On one side only, so there is no difference and no bound. */
	assert_int_equal(nrp_counters_count(&r, 0, "numa_huge_pte_updates").state,
			 NRP_COUNT_MISSING);
	assert_int_equal(r.limiter[0].upper_bound.state, NRP_COUNT_MISSING);
	nrp_counters_report_clear(&r);
}

static void two_pairs_are_two_runs(void **state)
{
	static const char *const text[] = {
		"numa_hint_faults 100\n",       "numa_hint_faults 130\n",
		"numa_hint_faults 5\n",         "numa_hint_faults 25\n",
		"7 migrate:mm_migrate_pages\n", "9 migrate:mm_migrate_pages\n",
	};
	struct nrp_counters_report r;

	(void)state;
	analyse(&r, &defaults, 6, text);
	assert_int_equal(r.nr_runs, 2);
	assert_count(&r, 0, "numa_hint_faults", 30);
	assert_count(&r, 1, "numa_hint_faults", 20);
	assert_int_equal(r.row[0].delta.value, -10);
	assert_count(&r, 1, "migrate:mm_migrate_pages", 9);
	nrp_counters_report_clear(&r);
}

static void perf_stat_is_read_with_separators_and_gaps(void **state)
{
	static const char *const text[] = {
		"99 bottles of output\n\n Performance counter stats for 'sleep 1':\n\n"
		"         1,234,567      sched:sched_move_numa\n"
		"     <not counted>      sched:sched_stick_numa\n"
		"   <not supported>      sched:sched_swap_numa\n"
		"            12,345      migrate:mm_migrate_pages   #  1.2 K/sec\n"
		"     9,876,543,210      cycles:u      #  3.0 GHz          (83.21%)\n"
		"                42      faults                         (100.00%)\n"
		"              1.50 msec task-clock    #  0.001 CPUs utilized\n\n"
		"       1.001234567 seconds time elapsed\n",
	};
	struct nrp_counters_report r;

	(void)state;
	analyse(&r, &defaults, 1, text);
	assert_int_equal(r.nr_runs, 1);
	assert_int_equal(r.input[0].kind, NRP_COUNTERS_PERF);
	assert_int_equal(r.input[0].counters, 6);
	assert_count(&r, 0, "sched:sched_move_numa", 1234567);
	assert_count(&r, 0, "migrate:mm_migrate_pages", 12345);
	assert_count(&r, 0, "faults", 42);
	assert_int_equal(nrp_counters_count(&r, 0, "sched:sched_stick_numa").state,
			 NRP_COUNT_NOT_COUNTED);
	assert_int_equal(nrp_counters_count(&r, 0, "cycles:u").state, NRP_COUNT_ESTIMATED);
	assert_true(has_note(&r, "not_counted"));
	assert_true(has_note(&r, "estimated_counts"));
	nrp_counters_report_clear(&r);
}

static void a_table_is_found_in_the_words_of_a_mail(void **state)
{
	static const char mail[] =
		"> On a 2 socket machine, 8 JVMs:\n> JVMS  Prev     Current  %Change\n"
		"> 16    25804.2  25355.9  -1.73\n>\n"
		"> Event                     Before     After   %Change\n"
		"> cs                        13,941,377 14,285,708  2.47\n"
		"> sched:sched_move_numa     2,005      <not counted>\n"
		"> numa_hint_faults          26907      72692   +170.2%\n";
	struct nrp_counters_report r;

	(void)state;
	table(&r, 4096, mail);
	assert_int_equal(r.input[0].kind, NRP_COUNTERS_TABLE);
	assert_int_equal(r.nr_rows, 3);
	assert_count(&r, 0, "cs", 13941377);
	assert_count(&r, 1, "numa_hint_faults", 72692);
	assert_int_equal(nrp_counters_count(&r, 1, "sched:sched_move_numa").state,
			 NRP_COUNT_NOT_COUNTED);
	nrp_counters_report_clear(&r);
}

static void numbers_beyond_2_to_the_63_are_no_counts(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 0,
	      "numa_hint_faults 9223372036854775807 9223372036854775808\n"
	      "numa_hint_faults_local 0 99999999999999999999999999\n"
	      "numa_huge_pte_updates 9223372036854775807 1\nother -9 -8\n");
	assert_count(&r, 0, "numa_hint_faults", INT64_MAX);
	assert_int_equal(nrp_counters_count(&r, 1, "numa_hint_faults").state,
			 NRP_COUNT_OUT_OF_RANGE);
	assert_int_equal(r.limiter[0].upper_bound.state, NRP_COUNT_OUT_OF_RANGE);
	assert_int_equal(r.limiter[0].can_refuse, NRP_UNKNOWN);
	assert_count(&r, 0, "other", -9);
	assert_true(has_note(&r, "value_out_of_range"));
	nrp_counters_report_clear(&r);
}

static void zeros_are_counts(void **state)
{
	struct nrp_counters_report r;

	(void)state;
	table(&r, 0,
	      "numa_hint_faults 0 0\nnuma_hint_faults_local 0 0\nnuma_pte_updates 0 0\n"
	      "numa_huge_pte_updates 0 0\nnuma_pages_migrated 0 0\npgmigrate_success 0 0\n");
	assert_int_equal(r.limiter[0].can_refuse, NRP_FALSE);
	assert_int_equal(r.limiter[0].upper_bound.value, 0);
	assert_false(r.violated);
	assert_true(has_note(&r, "no_balancing"));
	nrp_counters_report_clear(&r);
}

/* ---- damage ------------------------------------------------------------------------- */

#define REFUSED(text, offset, what) refused(text, sizeof(text) - 1, offset, what)

static void damage_is_refused_with_its_place(void **state)
{
	(void)state;
	refused("", 0, -1, "is empty");
	REFUSED("numa_hit 1\nnuma\0miss 2\n", 15, "binary data");
	REFUSED("\x7f"
		"ELF\x02\x01\n",
		4, "binary data");
	REFUSED("Dear all,\nnothing to count here.\n", 0, "no counters");
	REFUSED("numa_hit 1\nnuma_miss\nnuma_other 2\n", 11, "name value");
	REFUSED("numa_hit 1\nnuma_miss x\nnuma_other 2\n", 11, "name value");
	REFUSED("numa_hit 1\nnuma_miss 2\nnuma_hit 3\n", 23, "numa_hit comes a second time");
	REFUSED("numa_hit 1\nnuma_miss -2\n", 11, "negative");
	REFUSED("numa_hit 1 2\n> numa_miss 1 x\n", 15, "name before after");
	REFUSED("numa_hit 1 2\nnuma_miss 1,23 5\n", 13, "name before after");
	REFUSED("numa_hit 1 2\nnuma_miss 1,234,56 5\n", 13, "name before after");
	REFUSED("numa_hit 1 2\nnuma_hit 1 2\n", 13, "second time");
	REFUSED(" 12 migrate:mm_migrate_pages\n 1.0 13 sched:sched_move_numa\n", 30, "count event");
}

static void analyse_fails(size_t files, const char *const *text, enum nrp_status status,
			  int64_t offset, const char *what)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_counters_file file[NRP_COUNTERS_FILES + 1];
	struct nrp_counters_report r;

	for (size_t i = 0; i < files; i++)
		assert_int_equal(
			nrp_counters_parse(&file[i], "text", text[i], strlen(text[i]), &err), 0);
	assert_true(nrp_counters_analyse(&r, file, files, &defaults, &err) < 0);
	assert_int_equal(err.status, status);
	assert_int_equal(err.offset, offset);
	if (!strstr(err.what, what))
		fail_msg("'%s' is not in '%s'", what, err.what);
	for (size_t i = 0; i < files; i++)
		nrp_counters_file_clear(&file[i]);
}

static void files_that_make_no_run_are_refused(void **state)
{
	static const char snapshot[] = "numa_hit 3\n", perf[] = "3 migrate:mm_migrate_pages\n";
	static const char pair[] = "numa_hit 3 4\n";

	(void)state;
	analyse_fails(1, (const char *[]){ snapshot }, NRP_USAGE, -1, "in pairs");
	analyse_fails(3, (const char *[]){ snapshot, snapshot, snapshot }, NRP_USAGE, -1,
		      "in pairs");
	analyse_fails(3, (const char *[]){ perf, perf, perf }, NRP_USAGE, -1, "more than two");
	analyse_fails(2, (const char *[]){ pair, perf }, NRP_USAGE, -1, "tables only");
	analyse_fails(4, (const char *[]){ snapshot, snapshot, perf, perf }, NRP_USAGE, -1,
		      "one output of perf stat per pair");
	analyse_fails(2, (const char *[]){ pair, pair }, NRP_INPUT, 0, "in another file too");
}

static void counters_that_went_down_are_refused(void **state)
{
	static const char *const text[] = { "nr_dirty 9\nnuma_hit 30\n",
					    "nr_dirty 3\nnuma_hit 4\n" };

	(void)state;
	analyse_fails(2, text, NRP_INPUT, 11, "numa_hit went down, from 30 to 4");
}

/* Any bytes give an error or an answer. */
static void random_changes_never_crash(void **state)
{
	static const char base[] = "numa_hint_faults 26907 72,692 # x\nnuma_hit 3 4 -1%\n"
				   "<not counted> sched:sched_move_numa (3%)\nnr_x 5\n";
	static const char bytes[] = "0123456789,.-+%()<> \t\n\r#/abc_:\0\xff";
	uint64_t seed = UINT64_C(20181002);

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int round = 0; round < 20000; round++) {
		struct nrp_counters_file file[2];
		struct nrp_counters_report r;
		char text[sizeof(base)];
		int parsed;

		memcpy(text, base, sizeof(base));
		for (int k = 0; k < 6; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			text[(seed >> 33) % (sizeof(base) - 1)] =
				bytes[(seed >> 20) % (sizeof(bytes) - 1)];
		}
		parsed = nrp_counters_parse(&file[0], "a", text, sizeof(base) - 1, NULL);
		if (parsed < 0)
			continue;
		if (nrp_counters_analyse(&r, file, 1, &defaults, NULL) == 0) {
			json_t *doc = nrp_counters_json(&r);

			assert_non_null(doc);
			json_decref(doc);
			nrp_counters_report_clear(&r);
		}
		nrp_counters_file_clear(&file[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_six_cells_come_out_as_in_the_specification),
		cmocka_unit_test(the_page_size_decides_the_quota),
		cmocka_unit_test(what_the_limiter_can_do_is_put_in_words),
		cmocka_unit_test(windows_that_do_not_fit_are_named_not_explained_away),
		cmocka_unit_test(faults_may_exceed_pte_updates_by_what_was_armed_before),
		cmocka_unit_test(more_local_faults_than_faults_is_not_explained),
		cmocka_unit_test(migrated_pages_are_successes_but_for_the_edges),
		cmocka_unit_test(more_moves_than_the_bound_refute_it),
		cmocka_unit_test(huge_updates_may_come_from_mprotect),
		cmocka_unit_test(few_faults_cannot_exceed_the_quota_whatever_they_move),
		cmocka_unit_test(snapshots_give_the_difference_and_keep_unknown_counters),
		cmocka_unit_test(two_pairs_are_two_runs),
		cmocka_unit_test(perf_stat_is_read_with_separators_and_gaps),
		cmocka_unit_test(a_table_is_found_in_the_words_of_a_mail),
		cmocka_unit_test(numbers_beyond_2_to_the_63_are_no_counts),
		cmocka_unit_test(zeros_are_counts),
		cmocka_unit_test(damage_is_refused_with_its_place),
		cmocka_unit_test(files_that_make_no_run_are_refused),
		cmocka_unit_test(counters_that_went_down_are_refused),
		cmocka_unit_test(random_changes_never_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
