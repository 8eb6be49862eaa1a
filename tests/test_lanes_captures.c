/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Outcomes of attempts, scan periods of tasks and tiers on every real capture: what the kernels
 * recorded must follow from the rules. Expected sums come from other events of the same kernel.
 *
 * Without arguments all captures of tests/data run; with --wide those of the folders kernels/ and
 * policy-pairs/ in the folder that NRP_TRACES names (exit status 77, skipped, where it is not set).
 */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/import.h"
#include "lane_util.h"
#include "replay/outcomes.h"
#include "replay/task_moves.h"
#include "replay/tiering.h"
#include "wide.h"

#define MAX_CAPTURES 256
#define HUGE_PAGES 512 /* of 4 KiB; all captures are of x86 */

static char *path[MAX_CAPTURES];
static size_t nr_paths;

/* ---- captures ----------------------------------------------------------------------- */

static int collect(const char *name, const struct stat *st, int type)
{
	size_t length = strlen(name);

	(void)st;
	if (type != FTW_F || length < 4 || strcmp(name + length - 4, ".dat") != 0)
		return 0;
	if (nr_paths == MAX_CAPTURES)
		return -1;
	path[nr_paths] = strdup(name);
	return path[nr_paths++] ? 0 : -1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool collect_folder(const char *folder, const char *sub)
{
	char name[PATH_MAX], full[PATH_MAX];

	snprintf(name, sizeof(name), "%s/%s", folder, sub);
	return realpath(name, full) && ftw(full, collect, 8) == 0;
}

static void import(struct lane_file *file, const char *from)
{
	struct nrp_import_options options = { .path = from };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_join_stats stats;

	memset(file, 0, sizeof(*file));
	unlink("capture.db");
	file->store = util_open("capture.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(file->store, &err), &err);
	assert_ok(nrp_import_trace(file->store, &options, &file->capture, &stats, NULL, NULL, &err),
		  &err);
	assert_ok(nrp_store_commit(file->store, &err), &err);
	assert_ok(nrp_store_register_tables(file->store, &err), &err);
}

/* ---- what must hold on each --------------------------------------------------------- */

static void check_outcomes(struct lane_file *file, const char *name)
{
	struct nrp_error err = NRP_ERROR_INIT;
	const struct nrp_outcome_check *c;
	struct nrp_outcomes o;
	int64_t attempts, by_event;

	assert_ok(nrp_outcomes_load(&o, file->store, &file->capture, &err), &err);
	c = &o.check[o.chosen];
	attempts = util_integer(file->store, "SELECT count(*) FROM hint_fault WHERE attempt <> 0");
	by_event = util_integer(file->store, "SELECT coalesce(sum(succeeded), 0) FROM migration "
					     "WHERE reason = 5");
	if (c->disagree)
		fail_msg("%s: %llu outcomes do not fit, first at %llu", name,
			 (unsigned long long)c->disagree, (unsigned long long)o.first_disagreement);
	assert_int_equal(c->decisions, attempts);
	/* Attempts cut off by the capture's ends may lack their record, but not their events. */
	if (!c->undecided && !file->capture.unjoined_events && o.migrations_recorded)
		assert_int_equal(o.counters.numa_pages_migrated,
				 (uint64_t)by_event + o.counters.huge_moves * HUGE_PAGES);
	nrp_outcomes_clear(&o);
}

static uint64_t check_periods(struct lane_file *file, const char *name)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_task_moves m;
	enum nrp_scan_reset_variant host =
		file->capture.facts.has_ratelimit_event ? NRP_SCAN_RESET_418 : NRP_SCAN_RESET_LIM;

	assert_ok(nrp_task_moves_run(&m, file->store, &file->capture, &err), &err);
	if (m.sticky.disagree || m.reset[host].disagree)
		fail_msg("%s: %llu periods of sticky tasks and %llu resets do not fit", name,
			 (unsigned long long)m.sticky.disagree,
			 (unsigned long long)m.reset[host].disagree);
	for (int v = 0; v < NRP_NR_SCAN_RESET_VARIANTS; v++) {
		assert_true(m.reset[v].lower <= m.reset[v].value);
		assert_true(m.reset[v].value <= m.reset[v].upper);
	}
	assert_true(m.claim.suppressed_lower <= m.claim.suppressed_upper);
	return m.sticky.doubled;
}

/* No capture was made with tiers. */
static void check_tiers(struct lane_file *file)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tiering_lane_params p;
	struct nrp_tiering t;

	assert_ok(nrp_tiering_host_params(&p, NRP_TIERING_61, file->store, &file->capture, &err),
		  &err);
	assert_ok(nrp_tiering_run(&t, file->store, &file->capture, &p, 1, &err), &err);
	assert_int_equal(t.slow.faults, 0);
	assert_int_equal(t.lane[0].upper.faults, 0);
	if (file->capture.facts.balancing == 1)
		assert_true(t.identical);
	nrp_tiering_clear(&t);
}

static void test_records_follow_from_the_rules(void **state)
{
	uint64_t doubled = 0;

	(void)state;
	for (size_t i = 0; i < nr_paths; i++) {
		struct lane_file file;

		import(&file, path[i]);
		check_outcomes(&file, path[i]);
		doubled += check_periods(&file, path[i]);
		check_tiers(&file);
		lane_end(&file);
	}
	assert_true(nr_paths > 0);
	assert_true(doubled > 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_follow_from_the_rules),
	};
	const char *traces = wide_folder(argc, argv);
	bool found;
	int r;

	found = traces ? collect_folder(traces, "kernels") && collect_folder(traces, "policy-pairs")
		       : collect_folder(NRP_TEST_DATA, ".");
	if (!found) {
		fprintf(stderr, "the captures cannot be listed\n");
		return 1;
	}
	qsort(path, nr_paths, sizeof(*path), by_name);
	r = cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
	for (size_t i = 0; i < nr_paths; i++)
		free(path[i]);
	return r;
}
