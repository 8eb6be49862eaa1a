/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.shmem: the VMA filter V1..V3 of the specification (scan.md 1.1), its rows in scan.md 8
 * ("VMA-level") and 12.2, and what stays open where facts are missing.
 */
#include "replay/policies/scan_shmem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NO NRP_KNOWN_NO
#define YES NRP_KNOWN_YES
#define NOT NRP_KNOWN_NOT

enum {
	ELIGIBLE = NRP_SCAN_VMA_ELIGIBLE,
	UNSUITABLE = NRP_SCAN_VMA_UNSUITABLE,
	SHARED_RO = NRP_SCAN_VMA_SHARED_RO,
	INACCESSIBLE = NRP_SCAN_VMA_INACCESSIBLE
};

/* Classes under SH0 and SH1. */
static void check(const struct nrp_scan_shmem_vma *v, int sh0, int sh1)
{
	const int want[] = { sh0, sh1 };

	for (int i = 0; i < NRP_NR_SCAN_SHMEM_VARIANTS; i++) {
		struct nrp_scan_shmem_result r =
			nrp_scan_shmem_decide((enum nrp_scan_shmem_variant)i, v);

		assert_true(r.class_known);
		assert_int_equal(r.class, want[i]);
		assert_int_equal(r.eligible, want[i] == ELIGIBLE ? YES : NO);
	}
}

static void check_open(const struct nrp_scan_shmem_vma *v, enum nrp_scan_shmem_variant variant,
		       enum nrp_known eligible)
{
	struct nrp_scan_shmem_result r = nrp_scan_shmem_decide(variant, v);

	assert_false(r.class_known);
	assert_int_equal(r.eligible, eligible);
}

static struct nrp_scan_shmem_vma tmpfs(void)
{
	struct nrp_scan_shmem_vma v = nrp_scan_shmem_private();

	v.file = v.shmem = YES;
	return v;
}

static void shared_memory_is_scanned_since_sh1(void **state)
{
	struct nrp_scan_shmem_vma v = tmpfs();

	(void)state;
	check(&v, UNSUITABLE, ELIGIBLE);
}

static void text_of_a_file_is_read_only_everywhere(void **state)
{
	struct nrp_scan_shmem_vma text = nrp_scan_shmem_private(), rodata, data;

	(void)state;
	text.file = text.executable = YES;
	text.writable = NO;
	check(&text, SHARED_RO, SHARED_RO);
	rodata = text;
	rodata.executable = NO;
	check(&rodata, SHARED_RO, SHARED_RO);
	/* rw- of a file: .data; --x and -w- of it are not "read, but not written". */
	data = nrp_scan_shmem_private();
	data.file = YES;
	check(&data, ELIGIBLE, ELIGIBLE);
	data.readable = NO;
	check(&data, ELIGIBLE, ELIGIBLE);
	text.readable = NO;
	check(&text, ELIGIBLE, ELIGIBLE);
}

/* Its flags of now count, not what it is: anonymous memory made read-only is scanned. */
static void anonymous_memory_made_read_only_is_scanned(void **state)
{
	struct nrp_scan_shmem_vma v = nrp_scan_shmem_private();

	(void)state;
	v.writable = NO;
	check(&v, ELIGIBLE, ELIGIBLE);
	v.readable = NO;
	check(&v, INACCESSIBLE, INACCESSIBLE);
	v.executable = YES;
	check(&v, ELIGIBLE, ELIGIBLE);
}

/* On a system whose root is a tmpfs. */
static void program_on_tmpfs_is_unsuitable_to_sh0(void **state)
{
	struct nrp_scan_shmem_vma text = tmpfs(), data = tmpfs();

	(void)state;
	text.writable = NO;
	text.executable = YES;
	check(&text, UNSUITABLE, SHARED_RO);
	check(&data, UNSUITABLE, ELIGIBLE);
}

static void first_rule_that_hits_is_the_reason(void **state)
{
	struct nrp_scan_shmem_vma none = tmpfs(), text = nrp_scan_shmem_private();

	(void)state;
	none.readable = none.writable = NO;
	check(&none, UNSUITABLE, INACCESSIBLE);
	text.file = YES;
	text.writable = NO;
	for (int i = 0; i < 3; i++) {
		struct nrp_scan_shmem_vma v = text;

		v.unmovable = i == 0 ? YES : NO;
		v.hugetlb = i == 1 ? YES : NO;
		v.mixedmap = i == 2 ? YES : NO;
		check(&v, UNSUITABLE, UNSUITABLE);
		v.readable = NO;
		check(&v, UNSUITABLE, UNSUITABLE);
	}
}

static void bound_memory_stays(void **state)
{
	struct nrp_scan_shmem_vma v = nrp_scan_shmem_private(), s = tmpfs();

	(void)state;
	v.has_policy = s.has_policy = YES;
	check(&v, UNSUITABLE, UNSUITABLE);
	check(&s, UNSUITABLE, UNSUITABLE);
	/* MPOL_F_NUMA_BALANCING */
	v.policy_mof = s.policy_mof = YES;
	check(&v, ELIGIBLE, ELIGIBLE);
	check(&s, ELIGIBLE, ELIGIBLE);
}

/* A bound task scans nothing that has no policy of its own. */
static void policy_of_the_task_stands_in(void **state)
{
	struct nrp_scan_shmem_vma v = nrp_scan_shmem_private(), s = tmpfs();

	(void)state;
	v.task_mof = s.task_mof = NO;
	check(&v, UNSUITABLE, UNSUITABLE);
	check(&s, UNSUITABLE, UNSUITABLE);
	v.has_policy = v.policy_mof = YES;
	check(&v, ELIGIBLE, ELIGIBLE);
}

static void unknown_facts_leave_open_what_hangs_on_them(void **state)
{
	struct nrp_scan_shmem_vma v = nrp_scan_shmem_private();

	(void)state;
	v.shmem = NOT;
	check_open(&v, NRP_SCAN_SHMEM_SH0, NOT);
	assert_int_equal(nrp_scan_shmem_decide(NRP_SCAN_SHMEM_SH1, &v).eligible, YES);
	/* Left out in any case, by one rule or the other. */
	v.file = YES;
	v.writable = NO;
	check_open(&v, NRP_SCAN_SHMEM_SH0, NO);
	check(&(struct nrp_scan_shmem_vma){ .shmem = NOT, .hugetlb = YES, .task_mof = YES },
	      UNSUITABLE, UNSUITABLE);
	v = nrp_scan_shmem_private();
	v.writable = v.file = NOT;
	check_open(&v, NRP_SCAN_SHMEM_SH1, NOT);
}

/* A shared mapping may be a file's: the record does not say. */
static void only_shared_mappings_may_be_lost_with_sh0(void **state)
{
	const enum nrp_scan_shmem_variant sh0 = NRP_SCAN_SHMEM_SH0, sh1 = NRP_SCAN_SHMEM_SH1;

	(void)state;
	assert_int_equal(nrp_scan_shmem_stays(sh1, sh0, YES), NOT);
	assert_int_equal(nrp_scan_shmem_stays(sh1, sh0, NOT), NOT);
	assert_int_equal(nrp_scan_shmem_stays(sh1, sh0, NO), YES);
	assert_int_equal(nrp_scan_shmem_stays(sh1, sh1, YES), YES);
	assert_int_equal(nrp_scan_shmem_stays(sh0, sh0, YES), YES);
	assert_int_equal(nrp_scan_shmem_stays(sh0, sh1, YES), YES);
}

static void names_are_those_of_the_command_line(void **state)
{
	(void)state;
	assert_string_equal(nrp_scan_shmem_variant_name(NRP_SCAN_SHMEM_SH0), "SH0");
	assert_string_equal(nrp_scan_shmem_variant_name(NRP_SCAN_SHMEM_SH1), "SH1");
	assert_null(nrp_scan_shmem_variant_name(NRP_NR_SCAN_SHMEM_VARIANTS));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_memory_is_scanned_since_sh1),
		cmocka_unit_test(text_of_a_file_is_read_only_everywhere),
		cmocka_unit_test(anonymous_memory_made_read_only_is_scanned),
		cmocka_unit_test(program_on_tmpfs_is_unsuitable_to_sh0),
		cmocka_unit_test(first_rule_that_hits_is_the_reason),
		cmocka_unit_test(bound_memory_stays),
		cmocka_unit_test(policy_of_the_task_stands_in),
		cmocka_unit_test(unknown_facts_leave_open_what_hangs_on_them),
		cmocka_unit_test(only_shared_mappings_may_be_lost_with_sh0),
		cmocka_unit_test(names_are_those_of_the_command_line),
	};

	return cmocka_run_group_tests_name("scan_shmem", tests, NULL, NULL);
}
