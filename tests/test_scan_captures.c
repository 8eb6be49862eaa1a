/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scan policies on real captures: which variant the host ran is known from the kernel, every pass
 * must be reproduced, and no fault that a host took may be one that its own variant avoids.
 *
 * Without arguments the captures of tests/data run; with --wide those of the folder that NRP_TRACES
 * names (exit status 77, skipped, where it is not set).
 */
#include "capture/import.h"
#include "replay/scan_lane.h"
#include "replay/scan_pte_lane.h"
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
static char scratch[] = "scan-captures-XXXXXX";

#define P0 (1u << NRP_SCAN_VMA_P0)
#define P1 (1u << NRP_SCAN_VMA_P1)
#define P2 (1u << NRP_SCAN_VMA_P2)
#define P34 (1u << NRP_SCAN_VMA_P3 | 1u << NRP_SCAN_VMA_P4)
#define ALL (P0 | P1 | P2 | P34)
#define F(v) (NRP_SCAN_PTE_F##v)

struct capture_case {
	const char *name;
	enum nrp_scan_vma_variant host; /* what the kernel is */
	uint32_t rule_off;              /* switched off in it */
	uint32_t consistent;            /* variants that no recorded decision rules out */
	enum nrp_scan_pte_variant filter;
};

/* "/" in the name: of the wider set. */
static const struct capture_case cases[] = {
	{ "idle-5.10", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "shared-4.18", NRP_SCAN_VMA_P0, 0, P0, F(1) },
	{ "thp-6.1", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "munmap-6.1", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "thp-6.12", NRP_SCAN_VMA_P3, 0, P34, F(3) },
	{ "thp-7.2", NRP_SCAN_VMA_P4, 0, P34, F(5) },
	{ "munmap-6.12", NRP_SCAN_VMA_P3, 0, P2 | P34, F(3) },
	{ "shared-7.2", NRP_SCAN_VMA_P4, 0, P2 | P34, F(5) },
	{ "kernels/4.18/idle", NRP_SCAN_VMA_P0, 0, P0, F(1) },
	{ "kernels/4.18/numa01", NRP_SCAN_VMA_P0, 0, P0, F(1) },
	{ "kernels/4.18/shared", NRP_SCAN_VMA_P0, 0, P0, F(1) },
	{ "kernels/4.18/thp", NRP_SCAN_VMA_P0, 0, P0, F(1) },
	{ "kernels/4.18/cow", NRP_SCAN_VMA_P0, 0, P0, F(1) },
	{ "kernels/4.18-trylock/cow", NRP_SCAN_VMA_P0, 0, P0, F(1) },
	{ "kernels/4.18-trylock/numa01", NRP_SCAN_VMA_P0, 0, P0, F(1) },
	{ "kernels/4.18-F0/cow", NRP_SCAN_VMA_P0, 0, P0, F(0) },
	{ "kernels/4.18-F0/cowmix", NRP_SCAN_VMA_P0, 0, P0, F(0) },
	{ "kernels/5.10/idle", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/5.10/shared", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/5.10/thp", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/5.10/cow", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/5.10/munmap", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/5.10/numa01-default", NRP_SCAN_VMA_P0, 0, ALL, F(2) },
	{ "kernels/6.1/idle", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/6.1/shared", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/6.1/thp", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/6.1/cow", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/6.1/munmap", NRP_SCAN_VMA_P0, 0, P0, F(2) },
	{ "kernels/6.1/numa01-default", NRP_SCAN_VMA_P0, 0, ALL, F(2) },
	{ "kernels/6.12/idle", NRP_SCAN_VMA_P3, 0, P34, F(3) },
	{ "kernels/6.12/mthp", NRP_SCAN_VMA_P3, 0, P34, F(3) },
	{ "kernels/6.12/thp", NRP_SCAN_VMA_P3, 0, P34, F(3) },
	{ "kernels/6.12/shared", NRP_SCAN_VMA_P3, 0, P2 | P34, F(3) },
	{ "kernels/6.12/cow", NRP_SCAN_VMA_P3, 0, P2 | P34, F(3) },
	{ "kernels/6.12/munmap", NRP_SCAN_VMA_P3, 0, P2 | P34, F(3) },
	{ "kernels/6.12/numa01-default", NRP_SCAN_VMA_P3, 0, ALL, F(3) },
	{ "kernels/7.2/idle", NRP_SCAN_VMA_P4, 0, P34, F(5) },
	{ "kernels/7.2/mthp", NRP_SCAN_VMA_P4, 0, P34, F(5) },
	{ "kernels/7.2/thp", NRP_SCAN_VMA_P4, 0, P34, F(5) },
	{ "kernels/7.2/shared", NRP_SCAN_VMA_P4, 0, P2 | P34, F(5) },
	{ "kernels/7.2/cow", NRP_SCAN_VMA_P4, 0, P2 | P34, F(5) },
	{ "kernels/7.2/munmap", NRP_SCAN_VMA_P4, 0, P2 | P34, F(5) },
	{ "kernels/7.2/numa01-default", NRP_SCAN_VMA_P4, 0, ALL, F(5) },
	{ "policy-pairs/idle-vma0", NRP_SCAN_VMA_P2, NRP_SCAN_RULE_PID, 0, F(3) },
	{ "policy-pairs/idle-vma1", NRP_SCAN_VMA_P2, NRP_SCAN_RULE_PARTIAL, P2, F(3) },
	{ "policy-pairs/idle-vma2", NRP_SCAN_VMA_P2, 0, P2, F(3) },
	{ "policy-pairs/idle-vma3", NRP_SCAN_VMA_P3, 0, P34, F(3) },
	{ "policy-pairs/idlemix-P2-s1", NRP_SCAN_VMA_P2, 0, P2, F(3) },
	{ "policy-pairs/idlemix-P2-s2", NRP_SCAN_VMA_P2, 0, P2, F(3) },
	{ "policy-pairs/idlemix-P3-s1", NRP_SCAN_VMA_P3, 0, P34, F(3) },
	{ "policy-pairs/idlemix-P3-s2", NRP_SCAN_VMA_P3, 0, P34, F(3) },
	{ "policy-pairs/cow-skip0", NRP_SCAN_VMA_P3, 0, P34, F(0) },
	{ "policy-pairs/cow-skip1", NRP_SCAN_VMA_P3, 0, P2 | P34, F(3) },
};

struct imported {
	struct nrp_store *store;
	struct nrp_capture capture;
	char db[512];
};

/* false: not in this set of captures. */
static bool import(struct imported *im, const char *name)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_import_options options = { 0 };
	struct nrp_join_stats stats;
	bool wide = strchr(name, '/') != NULL;
	static int number;
	char path[512];

	memset(im, 0, sizeof(*im));
	if (wide != (traces != NULL))
		return false;
	snprintf(path, sizeof(path), "%s/%s.dat", wide ? traces : NRP_TEST_DATA, name);
	if (access(path, R_OK) != 0) {
		assert_true(wide); /* another selection of captures */
		return false;
	}
	options.path = path;
	snprintf(im->db, sizeof(im->db), "%s/%d.db", scratch, number++);
	if (nrp_store_open(&im->store, im->db, NRP_STORE_CREATE, &err) < 0 ||
	    nrp_store_begin(im->store, &err) < 0 ||
	    nrp_import_trace(im->store, &options, &im->capture, &stats, NULL, NULL, &err) < 0 ||
	    nrp_store_commit(im->store, &err) < 0)
		fail_msg("%s: %s", path, err.what);
	return true;
}

static void drop(struct imported *im)
{
	nrp_capture_clear(&im->capture);
	nrp_store_close(im->store);
	unlink(im->db);
}

static void check_verify(const struct imported *im, const struct capture_case *c)
{
	struct nrp_error err = NRP_ERROR_INIT;
	const struct nrp_scan_check *own = NULL;
	struct nrp_scan_verify v;

	assert_int_equal(nrp_scan_lane_verify(&v, im->store, &im->capture, &err), 0);
	for (size_t i = 0; i < v.nr_checks; i++)
		if (v.check[i].variant == c->host && v.check[i].rule_off == c->rule_off)
			own = &v.check[i];
	assert_non_null(own);
	assert_true(v.passes > 0);
	assert_int_equal(own->agree, v.passes);
	assert_int_equal(own->disagree, 0);
	assert_int_equal(v.unjudged, 0);
	assert_int_equal(v.consistent, c->consistent);
	/* What is told apart is so by a decision. */
	for (int a = 0; a < NRP_NR_SCAN_VMA_VARIANTS; a++)
		for (int b = 0; b < NRP_NR_SCAN_VMA_VARIANTS; b++)
			if (c->consistent >> a & 1 && c->consistent >> b & 1)
				assert_int_equal(v.told_apart[a][b], 0);
	if (c->host >= NRP_SCAN_VMA_P1)
		assert_true(v.vma_states > 0);
}

static void check_own_lane(const struct imported *im, const struct capture_case *c)
{
	struct nrp_scan_lane_config config = { .variant = c->host,
					       .rules_off = c->rule_off,
					       .scan_delay_ms = UINT64_MAX };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_lane lane;

	assert_int_equal(nrp_scan_lane_run(&lane, im->store, &im->capture, &config, &err), 0);
	/* Passes that overlap, and ticks that pass during one, are beyond a serial lane. */
	if (!strstr(c->name, "5.10/shared") && !strstr(c->name, "munmap")) {
		assert_int_equal(lane.nr_ranges, lane.armed_ranges_recorded);
		assert_int_equal(lane.possible_ranges, 0);
		for (size_t i = 0; i < lane.nr_mms; i++)
			assert_int_equal(lane.mm[i].diverged, 0);
		for (size_t i = 0; i < lane.nr_vmas; i++)
			assert_int_equal(lane.vma[i].lane.starved, lane.vma[i].record.starved);
	}
	nrp_scan_lane_clear(&lane);
}

static void check_filter(const struct imported *im, const struct capture_case *c)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_pte_counts counts;
	uint32_t hosts;

	assert_int_equal(nrp_scan_pte_lane_count(&counts, im->store, &im->capture,
						 NRP_SCAN_PTE_HOST_UNKNOWN, NULL, &err),
			 0);
	hosts = nrp_scan_pte_possible_hosts(&counts);
	assert_true(hosts >> c->filter & 1);
	/* A huge page on its user's node, scanned by a single thread: only F5 leaves it alone. */
	if (strstr(c->name, "thp") && !strstr(c->name, "mthp"))
		assert_int_equal(hosts >> NRP_SCAN_PTE_F5 & 1, c->filter == NRP_SCAN_PTE_F5);
	if (c->filter == NRP_SCAN_PTE_F0)
		assert_int_equal(hosts, 1u << NRP_SCAN_PTE_F0);
}

static void test_host_is_reproduced(void **state)
{
	int ran = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct imported im;

		if (!import(&im, cases[i].name))
			continue;
		print_message("  %s\n", cases[i].name);
		check_verify(&im, &cases[i]);
		check_own_lane(&im, &cases[i]);
		check_filter(&im, &cases[i]);
		drop(&im);
		ran++;
	}
	print_message("%d captures\n", ran);
}

struct avoided_case {
	const char *name;
	enum nrp_scan_pte_variant lane;
	uint64_t faults;    /* of the capture */
	uint64_t left_most; /* that the lane may keep; the new kernel took 8 to 9 in the same
			       workload */
};

/*
 * What shared copy-on-write pages cost: the same workload on the kernel with the test had 8 faults.
 */
static void test_faults_on_shared_pages_are_avoided(void **state)
{
	static const struct avoided_case avoided[] = {
		{ "policy-pairs/cow-skip0", F(3), 12971, 300 },
		{ "kernels/4.18-F0/cow", F(1), 3367, 100 },
		{ "kernels/4.18-F0/cowmix", F(1), 2635, 150 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(avoided) / sizeof(avoided[0]); i++) {
		const struct avoided_case *c = &avoided[i];
		struct nrp_error err = NRP_ERROR_INIT;
		struct nrp_scan_pte_counts counts;
		struct imported im;
		const uint64_t *n;

		if (!import(&im, c->name))
			continue;
		assert_int_equal(nrp_scan_pte_lane_count(&counts, im.store, &im.capture,
							 NRP_SCAN_PTE_F0, NULL, &err),
				 0);
		n = counts.answers[c->lane];
		assert_int_equal(counts.faults, c->faults);
		/* Kept or open: among them the 8 that the other kernel took. */
		assert_in_range(n[NRP_FAULT_KEPT] + n[NRP_FAULT_UNKNOWN], 8, c->left_most);
		assert_int_equal(n[NRP_FAULT_AVOIDED] + n[NRP_FAULT_KEPT] + n[NRP_FAULT_UNKNOWN],
				 c->faults);
		print_message("  %s: %llu of %llu avoided\n", c->name,
			      (unsigned long long)n[NRP_FAULT_AVOIDED],
			      (unsigned long long)counts.faults);
		drop(&im);
	}
}

static size_t starved(const struct nrp_scan_lane *lane, bool in_lane)
{
	size_t n = 0;

	for (size_t i = 0; i < lane->nr_vmas; i++)
		n += in_lane ? lane->vma[i].lane.starved : lane->vma[i].record.starved;
	return n;
}

/* The fix of 6.12: no VMA starves under P3, whatever the unknown facts are. */
static void test_p3_ends_starvation(void **state)
{
	static const char *const names[] = { "policy-pairs/idle-vma2",
					     "policy-pairs/idlemix-P2-s1" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct nrp_scan_lane_config config = { .variant = NRP_SCAN_VMA_P3,
						       .scan_delay_ms = UINT64_MAX };
		struct nrp_error err = NRP_ERROR_INIT;
		struct nrp_scan_lane lane;
		struct imported im;

		if (!import(&im, names[i]))
			continue;
		assert_int_equal(nrp_scan_lane_run(&lane, im.store, &im.capture, &config, &err), 0);
		assert_int_equal(starved(&lane, false), 6);
		assert_int_equal(starved(&lane, true), 0);
		for (size_t k = 0; k < lane.nr_vmas; k++)
			assert_true(lane.vma[k].lane_certain);
		nrp_scan_lane_clear(&lane);
		drop(&im);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host_is_reproduced),
		cmocka_unit_test(test_faults_on_shared_pages_are_avoided),
		cmocka_unit_test(test_p3_ends_starvation),
	};
	int r;

	traces = wide_folder(argc, argv);
	if (!mkdtemp(scratch)) {
		perror(scratch);
		return 1;
	}
	r = cmocka_run_group_tests_name("scan_captures", tests, NULL, NULL);
	rmdir(scratch);
	return r;
}
