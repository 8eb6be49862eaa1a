/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.pte: the 18 rows of the specification's table (scan.md 8), each under F0..F5, and what
 * stays open where facts are missing. Counts are raw: a page mapped n times has mapcount n - 1.
 */
#include "replay/policies/scan_pte.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Answers of F0..F5: A armed, - skipped, ? not known. */
static void check(const struct nrp_scan_pte *pte, const char *answers)
{
	char got[NRP_NR_SCAN_PTE_VARIANTS + 1] = "";

	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++) {
		struct nrp_scan_pte_policy p = nrp_scan_pte_policy((enum nrp_scan_pte_variant)v);

		got[v] = "-A?"[nrp_scan_pte_decide(&p, pte).arms];
	}
	assert_string_equal(got, answers);
}

static enum nrp_scan_pte_test test_of(enum nrp_scan_pte_variant variant,
				      const struct nrp_scan_pte *pte)
{
	struct nrp_scan_pte_policy p = nrp_scan_pte_policy(variant);

	return nrp_scan_pte_decide(&p, pte).test;
}

/* A page of a private writable mapping of a process with threads. */
static struct nrp_scan_pte cow_page(int32_t mapped, int32_t refcount)
{
	struct nrp_scan_pte p = nrp_scan_pte_base();

	p.cow = NRP_KNOWN_YES;
	p.mapcount = nrp_pte_count(mapped - 1);
	p.refcount = nrp_pte_count(refcount);
	return p;
}

static struct nrp_scan_pte shared_page(int32_t mapped, int32_t refcount)
{
	struct nrp_scan_pte p = cow_page(mapped, refcount);

	p.cow = NRP_KNOWN_NO;
	p.vm_shared = NRP_KNOWN_YES;
	return p;
}

/* A huge page mapped by PMDs, @mapped of them. */
static struct nrp_scan_pte cow_pmd(int32_t mapped)
{
	struct nrp_scan_pte p = cow_page(mapped, mapped);

	p.pmd = true;
	p.large = NRP_KNOWN_YES;
	p.many_mms = mapped > 1 ? NRP_KNOWN_YES : NRP_KNOWN_NO;
	p.folio_mapcount = p.entire_mapcount = nrp_pte_count(mapped - 1);
	p.first_mapcount = nrp_pte_count(-1);
	p.folio_pages = nrp_pte_count(512);
	return p;
}

/* A huge page mapped by 512 PTEs of each of @mms processes. */
static struct nrp_scan_pte pte_mapped_huge(int32_t mms)
{
	struct nrp_scan_pte p = cow_page(mms, 512 * mms);

	p.large = NRP_KNOWN_YES;
	p.many_mms = mms > 1 ? NRP_KNOWN_YES : NRP_KNOWN_NO;
	p.folio_mapcount = nrp_pte_count(512 * mms - 1);
	p.entire_mapcount = nrp_pte_count(-1);
	p.first_mapcount = nrp_pte_count(mms - 1);
	p.folio_pages = nrp_pte_count(512);
	return p;
}

static void row_1_exclusive_anonymous_page(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);

	(void)state;
	check(&p, "AAAAAA");
}

static void row_2_anonymous_page_after_fork(void **state)
{
	struct nrp_scan_pte p = cow_page(2, 2);

	(void)state;
	check(&p, "A-----");
	assert_int_equal(test_of(NRP_SCAN_PTE_F1, &p), NRP_PTE_SHARED_COW);
}

static void row_3_page_in_the_swap_cache(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 2);

	(void)state;
	check(&p, "AA-AAA");
}

static void row_4_clean_page_of_a_private_file_mapping(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 2);

	(void)state;
	p.file = NRP_KNOWN_YES;
	check(&p, "AA-AAA");
}

static void row_5_data_section_of_288_processes(void **state)
{
	struct nrp_scan_pte p = cow_page(288, 289);

	(void)state;
	p.file = NRP_KNOWN_YES;
	check(&p, "A-----");
}

/*
 * The same program in numbers: 4,000,000 bytes of it in each of 288 processes, which is 977 pages.
 * One process alone holds a page once, and the page cache once more.
 */
static void row_5_seed_program_in_numbers(void **state)
{
	static const uint64_t all[NRP_NR_SCAN_PTE_VARIANTS] = { 281376, 0, 0, 0, 0, 0 };
	static const uint64_t alone[NRP_NR_SCAN_PTE_VARIANTS] = { 977, 977, 0, 977, 977, 977 };
	const uint64_t pages = (4000000 + 4095) / 4096;

	(void)state;
	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++) {
		struct nrp_scan_pte_policy p = nrp_scan_pte_policy((enum nrp_scan_pte_variant)v);

		for (int32_t processes = 1; processes <= 288; processes += 287) {
			struct nrp_scan_pte page = cow_page(processes, processes + 1);
			uint64_t armed = 0;

			page.file = NRP_KNOWN_YES;
			for (uint64_t i = 0; i < (uint64_t)processes * pages; i++)
				armed += nrp_scan_pte_decide(&p, &page).arms == NRP_KNOWN_YES;
			assert_int_equal(armed, processes == 1 ? alone[v] : all[v]);
		}
	}
}

static void row_6_clean_page_of_a_shared_file_mapping(void **state)
{
	struct nrp_scan_pte once = shared_page(1, 2), often = shared_page(5, 6);

	(void)state;
	once.file = often.file = NRP_KNOWN_YES;
	check(&once, "AAAAAA");
	check(&often, "AAAAAA");
}

static void row_7_dirty_page_of_a_shared_file_mapping(void **state)
{
	struct nrp_scan_pte p = shared_page(1, 2);
	struct nrp_scan_pte_policy f1_of_416 = nrp_scan_pte_policy(NRP_SCAN_PTE_F1);

	(void)state;
	p.file = p.dirty = NRP_KNOWN_YES;
	check(&p, "A-----");
	f1_of_416.rules &= ~(uint32_t)NRP_SCAN_PTE_RULE_DIRTY;
	assert_int_equal(nrp_scan_pte_decide(&f1_of_416, &p).arms, NRP_KNOWN_YES);
}

static void row_8_zero_page(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);

	(void)state;
	p.no_page = NRP_KNOWN_YES;
	check(&p, "------");
}

static void row_9_page_merged_by_ksm(void **state)
{
	struct nrp_scan_pte p = cow_page(3, 3);

	(void)state;
	p.ksm = NRP_KNOWN_YES;
	check(&p, "------");
}

static void row_10_local_page_of_a_single_threaded_process(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);
	struct nrp_scan_pte_policy before_410 = nrp_scan_pte_policy(NRP_SCAN_PTE_F0);

	(void)state;
	p.single_threaded = p.local = NRP_KNOWN_YES;
	check(&p, "------");
	before_410.rules &= ~(uint32_t)NRP_SCAN_PTE_RULE_LOCAL;
	assert_int_equal(nrp_scan_pte_decide(&before_410, &p).arms, NRP_KNOWN_YES);
	/* Only private mappings. */
	p.cow = NRP_KNOWN_NO;
	p.vm_shared = NRP_KNOWN_YES;
	check(&p, "AAAAAA");
}

static void row_11_remote_page_of_a_single_threaded_process(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);

	(void)state;
	p.single_threaded = NRP_KNOWN_YES;
	check(&p, "AAAAAA");
}

static void row_12_huge_page_shared_by_fork(void **state)
{
	struct nrp_scan_pte p = cow_pmd(2);

	(void)state;
	check(&p, "AAAAA-");
}

static void row_13_local_huge_page_of_a_single_threaded_process(void **state)
{
	struct nrp_scan_pte p = cow_pmd(1);

	(void)state;
	p.single_threaded = p.local = NRP_KNOWN_YES;
	check(&p, "AAAAA-");
}

static void row_14_huge_page_mapped_by_ptes(void **state)
{
	struct nrp_scan_pte p = pte_mapped_huge(1), shared = pte_mapped_huge(2);

	(void)state;
	check(&p, "AA-AAA");
	check(&shared, "A-----");
}

static void row_15_pinned_anonymous_page(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1025);

	(void)state;
	check(&p, "AA----");
	assert_int_equal(test_of(NRP_SCAN_PTE_F4, &p), NRP_PTE_SHARED_COW);
	assert_int_equal(test_of(NRP_SCAN_PTE_F5, &p), NRP_PTE_PINNED);
}

static void row_16_pinned_shared_page(void **state)
{
	struct nrp_scan_pte p = shared_page(1, 1025);

	(void)state;
	check(&p, "AAAAA-");
	p.refcount = nrp_pte_count(1023); /* plain references */
	check(&p, "AAAAAA");
	p.refcount = nrp_pte_count(1024);
	check(&p, "AAAAA-");
}

static void row_17_anonymous_page_made_read_only(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);

	(void)state;
	/* mprotect() keeps VM_MAYWRITE: still a copy-on-write mapping. */
	p.cow = nrp_vma_is_cow(0x100071) ? NRP_KNOWN_YES : NRP_KNOWN_NO;
	assert_int_equal(p.cow, NRP_KNOWN_YES);
	check(&p, "AAAAAA");
}

static void row_18_page_on_its_way_to_the_lru(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 2);

	(void)state;
	check(&p, "AA-AAA");
}

/* ---- what the table does not show ---------------------------------------------------- */

static void armed_entries_and_device_pages_stay(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);

	(void)state;
	p.device = NRP_KNOWN_YES;
	check(&p, "AA----");
	p.armed = NRP_KNOWN_YES;
	check(&p, "------");
}

static void top_tier_pages_stay_without_normal_balancing(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1), pmd = cow_pmd(1);

	(void)state;
	p.top_tier_only = pmd.top_tier_only = NRP_KNOWN_YES;
	check(&p, "AA----");
	check(&pmd, "AA----");
}

static void mark_of_many_mms_outlives_the_sharing(void **state)
{
	struct nrp_scan_pte p = pte_mapped_huge(1);

	(void)state;
	p.many_mms = NRP_KNOWN_YES;
	check(&p, "AA-A--");
	/* With one mapping left the mark is not asked. */
	p.folio_mapcount = nrp_pte_count(0);
	p.refcount = nrp_pte_count(1);
	check(&p, "AAAAAA");
}

static void f3_guesses_from_the_first_page(void **state)
{
	struct nrp_scan_pte p = pte_mapped_huge(1);

	(void)state;
	/* 400 mappings, the first page twice: likely shared, though this page is not. */
	p.folio_mapcount = nrp_pte_count(399);
	p.first_mapcount = nrp_pte_count(1);
	check(&p, "AA--AA");
	/* More mappings than pages: shared, whatever the first page says. */
	p.folio_mapcount = nrp_pte_count(512);
	p.first_mapcount = nrp_pte_count(0);
	check(&p, "AA--AA");
	/* Exactly as many: not. */
	p.folio_mapcount = nrp_pte_count(511);
	check(&p, "AA-AAA");
	/* Mapped as a whole too. */
	p.entire_mapcount = nrp_pte_count(0);
	check(&p, "AA--AA");
}

static void unknown_counts_leave_copy_on_write_open(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);

	(void)state;
	p.mapcount = NRP_PTE_COUNT_UNKNOWN;
	check(&p, "A?A???");
	p = cow_page(1, 1);
	p.refcount = NRP_PTE_COUNT_UNKNOWN;
	check(&p, "AA????"); /* may be pinned from F3 on */
	p = cow_page(2, 2);
	p.refcount = NRP_PTE_COUNT_UNKNOWN;
	check(&p, "A-?---");
	p = shared_page(2, 2);
	p.mapcount = p.refcount = NRP_PTE_COUNT_UNKNOWN;
	check(&p, "AAAAA?");
	assert_int_equal(test_of(NRP_SCAN_PTE_F5, &p), NRP_PTE_PINNED);
}

static void one_known_refusal_outweighs_all_that_is_unknown(void **state)
{
	struct nrp_scan_pte p = nrp_scan_pte_unknown();

	(void)state;
	check(&p, "??????");
	p.ksm = NRP_KNOWN_YES;
	check(&p, "------");
	assert_int_equal(test_of(NRP_SCAN_PTE_F3, &p), NRP_PTE_KSM);
}

static void unknown_locality_matters_to_single_threads_only(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);

	(void)state;
	p.local = NRP_KNOWN_NOT;
	check(&p, "AAAAAA");
	p.single_threaded = NRP_KNOWN_NOT;
	check(&p, "??????");
	assert_int_equal(test_of(NRP_SCAN_PTE_F3, &p), NRP_PTE_LOCAL);
	p.local = NRP_KNOWN_NO;
	check(&p, "AAAAAA");
}

static void unknown_size_is_open_only_where_it_matters(void **state)
{
	struct nrp_scan_pte p = cow_page(2, 2);

	(void)state;
	/* Shared as a base page; as part of a large folio nothing is known about the folio. */
	p.large = NRP_KNOWN_NOT;
	p.pinned = p.many_mms = NRP_KNOWN_NOT;
	check(&p, "A--???");
}

static void copy_on_write_is_private_and_writable_or_may_become_so(void **state)
{
	(void)state;
	assert_true(nrp_vma_is_cow(0x20));
	assert_false(nrp_vma_is_cow(0x28));
	assert_false(nrp_vma_is_cow(0x08));
	assert_false(nrp_vma_is_cow(0));
	assert_true(nrp_vma_is_cow(0x100073));
	assert_false(nrp_vma_is_cow(0x1000fb));
}

/* A page mapped between one time and five, or referenced so often. */
static void counts_between_two_are_open_where_the_test_lies_between(void **state)
{
	struct nrp_scan_pte p = cow_page(1, 1);

	(void)state;
	p.mapcount = (struct nrp_pte_count){ 0, 4 };
	p.refcount = (struct nrp_pte_count){ 1, 1023 };
	check(&p, "A?????");
	p.mapcount = (struct nrp_pte_count){ 1, 4 };
	check(&p, "A-?---");
	p.mapcount = nrp_pte_count(0);
	check(&p, "AA?AAA");
	p.refcount = (struct nrp_pte_count){ 2, 1024 };
	check(&p, "AA-???");
	p.refcount = (struct nrp_pte_count){ 1024, 2000 };
	check(&p, "AA----");
}

/* Answers of F0..F5 with one rule switched off. */
static void check_without(const struct nrp_scan_pte *pte, uint32_t rule, const char *answers)
{
	char got[NRP_NR_SCAN_PTE_VARIANTS + 1] = "";

	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++) {
		struct nrp_scan_pte_policy p = nrp_scan_pte_policy((enum nrp_scan_pte_variant)v);

		p.rules &= ~rule;
		got[v] = "-A?"[nrp_scan_pte_decide(&p, pte).arms];
	}
	assert_string_equal(got, answers);
}

/* Each rule alone refuses a page of one kind (rows 2, 7, 10, 15, 16), and no other kind. */
static void every_rule_can_be_switched_off(void **state)
{
	struct nrp_scan_pte shared = cow_page(2, 2), dirty = shared_page(1, 2);
	struct nrp_scan_pte local = cow_page(1, 1), device = local, tier = local;
	struct nrp_scan_pte pinned_cow = cow_page(1, 1025), pinned = shared_page(1, 1025);
	struct nrp_scan_pte both = cow_page(2, 1025);
	const struct {
		uint32_t rule;
		const struct nrp_scan_pte *page;
		const char *with, *without;
	} cases[] = {
		{ NRP_SCAN_PTE_RULE_COW, &shared, "A-----", "AAAAAA" },
		{ NRP_SCAN_PTE_RULE_DIRTY, &dirty, "A-----", "AAAAAA" },
		{ NRP_SCAN_PTE_RULE_LOCAL, &local, "------", "AAAAAA" },
		{ NRP_SCAN_PTE_RULE_DEVICE, &device, "AA----", "AAAAAA" },
		{ NRP_SCAN_PTE_RULE_TIER, &tier, "AA----", "AAAAAA" },
		{ NRP_SCAN_PTE_RULE_PINNED, &pinned_cow, "AA----", "AA-AAA" },
		{ NRP_SCAN_PTE_RULE_PINNED, &pinned, "AAAAA-", "AAAAAA" },
		/* F2 tells pins and sharing by one count; the others ask twice. */
		{ NRP_SCAN_PTE_RULE_COW, &both, "A-----", "AAA---" },
		{ NRP_SCAN_PTE_RULE_PINNED, &both, "A-----", "A-----" },
	};

	(void)state;
	dirty.file = dirty.dirty = NRP_KNOWN_YES;
	local.single_threaded = local.local = NRP_KNOWN_YES;
	device.device = tier.top_tier_only = NRP_KNOWN_YES;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check(cases[i].page, cases[i].with);
		check_without(cases[i].page, cases[i].rule, cases[i].without);
	}
}

static void names_are_those_of_the_command_line(void **state)
{
	static const char *const rules[] = { "cow", "dirty", "local", "device", "tier", "pinned" };

	(void)state;
	for (unsigned int i = 0; i < NRP_NR_SCAN_PTE_RULES; i++)
		assert_string_equal(nrp_scan_pte_rule_name(i), rules[i]);
	assert_null(nrp_scan_pte_rule_name(NRP_NR_SCAN_PTE_RULES));
	assert_string_equal(nrp_scan_pte_variant_name(NRP_SCAN_PTE_F0), "F0");
	assert_string_equal(nrp_scan_pte_variant_name(NRP_SCAN_PTE_F5), "F5");
	assert_null(nrp_scan_pte_variant_name(NRP_NR_SCAN_PTE_VARIANTS));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(row_1_exclusive_anonymous_page),
		cmocka_unit_test(row_2_anonymous_page_after_fork),
		cmocka_unit_test(row_3_page_in_the_swap_cache),
		cmocka_unit_test(row_4_clean_page_of_a_private_file_mapping),
		cmocka_unit_test(row_5_data_section_of_288_processes),
		cmocka_unit_test(row_5_seed_program_in_numbers),
		cmocka_unit_test(row_6_clean_page_of_a_shared_file_mapping),
		cmocka_unit_test(row_7_dirty_page_of_a_shared_file_mapping),
		cmocka_unit_test(row_8_zero_page),
		cmocka_unit_test(row_9_page_merged_by_ksm),
		cmocka_unit_test(row_10_local_page_of_a_single_threaded_process),
		cmocka_unit_test(row_11_remote_page_of_a_single_threaded_process),
		cmocka_unit_test(row_12_huge_page_shared_by_fork),
		cmocka_unit_test(row_13_local_huge_page_of_a_single_threaded_process),
		cmocka_unit_test(row_14_huge_page_mapped_by_ptes),
		cmocka_unit_test(row_15_pinned_anonymous_page),
		cmocka_unit_test(row_16_pinned_shared_page),
		cmocka_unit_test(row_17_anonymous_page_made_read_only),
		cmocka_unit_test(row_18_page_on_its_way_to_the_lru),
		cmocka_unit_test(armed_entries_and_device_pages_stay),
		cmocka_unit_test(top_tier_pages_stay_without_normal_balancing),
		cmocka_unit_test(mark_of_many_mms_outlives_the_sharing),
		cmocka_unit_test(f3_guesses_from_the_first_page),
		cmocka_unit_test(unknown_counts_leave_copy_on_write_open),
		cmocka_unit_test(one_known_refusal_outweighs_all_that_is_unknown),
		cmocka_unit_test(unknown_locality_matters_to_single_threads_only),
		cmocka_unit_test(unknown_size_is_open_only_where_it_matters),
		cmocka_unit_test(copy_on_write_is_private_and_writable_or_may_become_so),
		cmocka_unit_test(counts_between_two_are_open_where_the_test_lies_between),
		cmocka_unit_test(every_rule_can_be_switched_off),
		cmocka_unit_test(names_are_those_of_the_command_line),
	};

	return cmocka_run_group_tests_name("scan_pte", tests, NULL, NULL);
}
