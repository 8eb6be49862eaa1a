/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.period on real captures: the kernel's version says which variant ran, and every period that
 * a capture shows must follow from the faults before it.
 *
 * Without arguments the captures of tests/data run; with --wide those of the folder that NRP_TRACES
 * names (exit status 77, skipped, where it is not set).
 */
#include "capture/import.h"
#include "replay/scan_periods.h"
#include "wide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *traces; /* NRP_TRACES, with --wide */
static char scratch[] = "period-captures-XXXXXX";

#define V418 NRP_SCAN_PERIOD_418
#define V419 NRP_SCAN_PERIOD_419

/* "/" in the name: of the wider set. */
static const struct {
	const char *name;
	enum nrp_scan_period_variant host;
	bool told_apart; /* the other variant is contradicted */
} cases[] = {
	{ "idle-5.10", V419, true },
	{ "shared-4.18", V418, true },
	{ "thp-6.12", V419, true },
	{ "shared-7.2", V419, false },
	{ "kernels/4.18/idle", V418, false },
	{ "kernels/4.18/numa01", V418, true },
	{ "kernels/4.18/shared", V418, true },
	{ "kernels/4.18/thp", V418, false },
	{ "kernels/4.18/cow", V418, false },
	{ "kernels/4.18-trylock/cow", V418, false },
	{ "kernels/4.18-trylock/numa01", V418, true },
	{ "kernels/4.18-F0/cow", V418, true },
	{ "kernels/4.18-F0/cowmix", V418, true },
	{ "kernels/5.10/idle", V419, true },
	{ "kernels/5.10/shared", V419, true },
	{ "kernels/5.10/thp", V419, true },
	{ "kernels/5.10/cow", V419, false },
	{ "kernels/5.10/munmap", V419, false },
	{ "kernels/5.10/numa01-default", V419, false },
	{ "kernels/6.1/idle", V419, false },
	{ "kernels/6.1/shared", V419, true },
	{ "kernels/6.1/thp", V419, false },
	{ "kernels/6.1/cow", V419, false },
	{ "kernels/6.1/munmap", V419, false },
	{ "kernels/6.12/idle", V419, false },
	{ "kernels/6.12/mthp", V419, true },
	{ "kernels/6.12/thp", V419, true },
	{ "kernels/6.12/shared", V419, false },
	{ "kernels/6.12/cow", V419, false },
	{ "kernels/6.12/munmap", V419, false },
	{ "kernels/7.2/idle", V419, true },
	{ "kernels/7.2/mthp", V419, true },
	{ "kernels/7.2/thp", V419, false },
	{ "kernels/7.2/shared", V419, false },
	{ "kernels/7.2/cow", V419, false },
	{ "kernels/7.2/munmap", V419, false },
	{ "policy-pairs/idle-vma0", V419, false },
	{ "policy-pairs/idle-vma1", V419, false },
	{ "policy-pairs/idle-vma2", V419, false },
	{ "policy-pairs/idle-vma3", V419, false },
	{ "policy-pairs/idlemix-P2-s1", V419, false },
	{ "policy-pairs/idlemix-P2-s2", V419, true },
	{ "policy-pairs/idlemix-P3-s1", V419, true },
	{ "policy-pairs/idlemix-P3-s2", V419, true },
	{ "policy-pairs/cow-skip0", V419, false },
	{ "policy-pairs/cow-skip1", V419, false },
};

/* false: not in this set of captures. */
static bool run(const char *name, struct nrp_scan_periods *ret)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_import_options options = { 0 };
	struct nrp_join_stats stats;
	struct nrp_capture capture;
	struct nrp_store *store;
	bool wide = strchr(name, '/') != NULL;
	char path[512], db[512];

	if (wide != (traces != NULL))
		return false;
	snprintf(path, sizeof(path), "%s/%s.dat", wide ? traces : NRP_TEST_DATA, name);
	if (access(path, R_OK) != 0) {
		assert_true(wide); /* another selection of captures */
		return false;
	}
	options.path = path;
	snprintf(db, sizeof(db), "%s/capture.db", scratch);
	if (nrp_store_open(&store, db, NRP_STORE_CREATE, &err) < 0 ||
	    nrp_store_begin(store, &err) < 0 ||
	    nrp_import_trace(store, &options, &capture, &stats, NULL, NULL, &err) < 0 ||
	    nrp_store_commit(store, &err) < 0 ||
	    nrp_scan_periods_run(ret, store, &capture, &err) < 0)
		fail_msg("%s: %s", path, err.what);
	nrp_capture_clear(&capture);
	nrp_store_close(store);
	unlink(db);
	return true;
}

static void test_the_hosts_periods_are_reproduced(void **state)
{
	uint64_t next_scans = 0, next_scans_agree = 0, agree = 0, undecided = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct nrp_period_count *own, *other;
		struct nrp_scan_periods p;

		if (!run(cases[i].name, &p))
			continue;
		own = &p.variant[cases[i].host];
		other = &p.variant[!cases[i].host];
		print_message("  %s: %llu of %llu, %llu undecided; next scan %llu of %llu\n",
			      cases[i].name, (unsigned long long)own->agree,
			      (unsigned long long)own->decisions,
			      (unsigned long long)own->undecided,
			      (unsigned long long)own->next_scans_agree,
			      (unsigned long long)own->next_scans);
		assert_int_equal(own->disagree, 0);
		assert_true(own->agree > 0);
		assert_int_equal(other->disagree > 0, cases[i].told_apart);
		next_scans += own->next_scans;
		next_scans_agree += own->next_scans_agree;
		agree += own->agree;
		undecided += own->undecided;
	}
	print_message("%llu agree, %llu undecided; next scan %llu of %llu\n",
		      (unsigned long long)agree, (unsigned long long)undecided,
		      (unsigned long long)next_scans_agree, (unsigned long long)next_scans);
	/* Threads that share an address space race for its next scan. */
	assert_true(next_scans_agree * 100 >= next_scans * 99);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_hosts_periods_are_reproduced),
	};
	int r;

	traces = wide_folder(argc, argv);
	if (!mkdtemp(scratch)) {
		perror(scratch);
		return 1;
	}
	r = cmocka_run_group_tests_name("period_captures", tests, NULL, NULL);
	rmdir(scratch);
	return r;
}
