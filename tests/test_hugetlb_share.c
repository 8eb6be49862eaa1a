/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared hugetlb page tables: vectors H-1 to H-11 and H-6r of the specification (mmap-hugetlb.md
 * 2.8). All mappings are of file 0 from its first huge page on, shared, read-write, 512 huge pages
 * on a 1 GiB boundary, unless the vector says otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replay/hugetlb_share.h"

#include <errno.h>

#define GIB NRP_HUGETLB_SLOT
#define HUGE NRP_HUGETLB_SIZE
#define MIB (UINT64_C(1) << 20)
#define BASE (UINT64_C(16) * GIB)
#define RW 0xfb
#define READ_ONLY 0xf9

enum { P1 = 1, P2, P3 };
#define OLD NRP_HUGETLB_MAPCOUNT
#define A NRP_HUGETLB_PMD_CHECK
#define B NRP_HUGETLB_ADJUSTED

static struct nrp_hugetlb_share *s;

static const struct nrp_hugetlb_rules today = { true, true, true };

static void begin(const struct nrp_hugetlb_rules *rules)
{
	s = nrp_hugetlb_share_new(rules);
	assert_non_null(s);
}

static void end(void)
{
	s = nrp_hugetlb_share_free(s);
}

static const struct nrp_hugetlb_tables *tables(void)
{
	const struct nrp_hugetlb_tables *t = nrp_hugetlb_share_tables(s);

	assert_true(nrp_hugetlb_counts_hold(t)); /* after every event */
	return t;
}

static void map_at(uint64_t mm, uint64_t start, uint64_t size, uint64_t flags, bool uffd)
{
	const struct nrp_hugetlb_mapping m = { .mm = mm,
					       .start = start,
					       .end = start + size,
					       .flags = flags,
					       .may_share = true,
					       .uffd = uffd };

	assert_int_equal(nrp_hugetlb_map(s, &m), 0);
}

static void map(uint64_t mm)
{
	map_at(mm, BASE, GIB, RW, false);
}

/* Touches huge page @k of the mapping at BASE. */
static void touch(uint64_t mm, uint64_t k)
{
	assert_int_equal(nrp_hugetlb_touch(s, mm, BASE + k * HUGE), 0);
	tables();
}

static void touch_many(uint64_t mm, uint64_t n)
{
	for (uint64_t k = 0; k < n; k++)
		touch(mm, k);
}

static void expect_counts_at(uint64_t mm, uint64_t addr, uint32_t of_map, uint32_t adjusted)
{
	struct nrp_hugetlb_view v;

	assert_true(nrp_hugetlb_look(tables(), mm, addr, &v));
	assert_int_equal(v.map, of_map);
	assert_int_equal(v.adjusted, adjusted);
}

static void expect_counts(uint64_t mm, uint64_t k, uint32_t of_map, uint32_t adjusted)
{
	expect_counts_at(mm, BASE + k * HUGE, of_map, adjusted);
}

static void expect_sharers(uint64_t mm, uint64_t addr, uint32_t n)
{
	assert_int_equal(nrp_hugetlb_sharers(tables(), nrp_hugetlb_table(tables(), mm, addr)), n);
}

static void expect_work(uint64_t entries, uint64_t updates, uint64_t installs)
{
	const struct nrp_hugetlb_work *w = nrp_hugetlb_work(tables());

	assert_int_equal(w->entries, entries);
	assert_int_equal(w->updates, updates);
	assert_int_equal(w->installs, installs);
	assert_int_equal(w->entries, 512 * (w->shares + w->unshares));
}

static void expect_smaps(int variant, uint64_t mm, uint64_t private_mib, uint64_t shared_mib)
{
	uint64_t private, shared;

	nrp_hugetlb_smaps(tables(), (enum nrp_hugetlb_variant)variant, mm, 0, UINT64_MAX, &private,
			  &shared);
	assert_int_equal(private, private_mib * MIB);
	assert_int_equal(shared, shared_mib * MIB);
}

/* How many of the first @n pages a walk with MOVE takes. */
static uint32_t isolated(int variant, uint64_t mm, uint64_t n, bool move_all)
{
	struct nrp_hugetlb_view v;
	uint32_t count = 0;

	for (uint64_t k = 0; k < n; k++)
		count += nrp_hugetlb_look(tables(), mm, BASE + k * HUGE, &v) &&
			 nrp_hugetlb_is_isolated((enum nrp_hugetlb_variant)variant, &v, move_all);
	return count;
}

static uint32_t refused(int variant, uint64_t mm, uint64_t n)
{
	struct nrp_hugetlb_view v;
	uint32_t count = 0;

	for (uint64_t k = 0; k < n; k++)
		count += nrp_hugetlb_look(tables(), mm, BASE + k * HUGE, &v) &&
			 nrp_hugetlb_is_refused((enum nrp_hugetlb_variant)variant, &v);
	return count;
}

/* ---- vectors -------------------------------------------------------------------------- */

static void state_h1(void)
{
	begin(&today);
	map(P1);
	touch_many(P1, 3);
	map(P2);
	expect_counts(P1, 0, 1, 1);
	touch(P2, 0);
}

static void h1(void **state)
{
	(void)state;
	state_h1();
	expect_sharers(P2, BASE, 2);
	for (uint64_t k = 0; k < 3; k++)
		expect_counts(P2, k, 1, 2);
	for (uint64_t p = P1; p <= P2; p++) {
		expect_smaps(OLD, p, 6, 0);
		expect_smaps(A, p, 0, 6);
		expect_smaps(B, p, 0, 6);
		expect_smaps(NRP_HUGETLB_PT_SHARE, p, 0, 6);
		expect_smaps(NRP_HUGETLB_ACTUAL, p, 0, 6);
	}
	expect_work(512, 3, 0);
	end();
}

static void state_h2(void)
{
	state_h1();
	touch(P2, 3);
}

static void h2(void **state)
{
	(void)state;
	state_h2();
	expect_counts(P1, 3, 1, 2);
	expect_smaps(OLD, P1, 8, 0);
	expect_smaps(A, P1, 0, 8);
	expect_smaps(B, P1, 0, 8);
	expect_work(512, 3, 1);
	end();
}

static void h3(void **state)
{
	(void)state;
	state_h2();
	nrp_hugetlb_exit(s, P1);
	expect_sharers(P2, BASE, 1);
	for (uint64_t k = 0; k < 4; k++)
		expect_counts(P2, k, 1, 1);
	for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++) {
		expect_smaps(v, P2, 8, 0);
		assert_int_equal(isolated(v, P2, 4, false), 4);
	}
	expect_work(1024, 7, 1);
	nrp_hugetlb_exit(s, P2);
	expect_work(1024, 7, 1);
	assert_int_equal(nrp_hugetlb_page(tables(), P2, BASE), NRP_HUGETLB_NO_PAGE);
	end();
}

static void h4(void **state)
{
	(void)state;
	begin(&today);
	map(P1);
	map_at(P2, BASE + HUGE, GIB, RW, false);
	touch(P1, 0);
	touch(P2, 1);
	expect_sharers(P1, BASE, 1);
	expect_sharers(P2, BASE, 1);
	expect_counts(P1, 0, 2, 2);
	expect_counts(P2, 1, 2, 2);
	for (int v = OLD; v <= B; v++) {
		expect_smaps(v, P1, 0, 2);
		assert_int_equal(isolated(v, P1, 1, false), 0);
	}
	end();

	begin(&today); /* 512 MiB hold no whole slot */
	map_at(P1, BASE, GIB / 2, RW, false);
	map_at(P2, BASE, GIB / 2, RW, false);
	touch(P1, 0);
	touch(P2, 0);
	expect_counts(P1, 0, 2, 2);
	expect_sharers(P1, BASE, 1);
	end();
}

static void h5(void **state)
{
	(void)state;
	state_h2();
	assert_int_equal(isolated(OLD, P2, 4, false), 4);
	assert_int_equal(isolated(A, P2, 4, false), 0);
	assert_int_equal(isolated(B, P2, 4, false), 0);
	assert_int_equal(refused(OLD, P2, 4), 0);
	assert_int_equal(refused(A, P2, 4), 0);
	assert_int_equal(refused(NRP_HUGETLB_PT_SHARE, P2, 4), 0);
	assert_int_equal(refused(B, P2, 4), 4);
	for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++)
		assert_int_equal(isolated(v, P2, 4, true), 4);
	end();
}

static void h6(void **state)
{
	(void)state;
	begin(&today);
	for (uint64_t p = P1; p <= P3; p++)
		map(p);
	touch_many(P1, 4);
	touch(P2, 0);
	touch(P3, 0);
	expect_sharers(P3, BASE, 3);
	expect_counts(P1, 0, 1, 3);
	expect_work(1024, 8, 0);
	assert_int_equal(nrp_hugetlb_move(s, P3, BASE), 0);
	assert_int_equal(nrp_hugetlb_work(tables())->unshares, 2);
	expect_sharers(P3, BASE, 1);
	for (uint64_t k = 0; k < 4; k++)
		expect_counts(P3, k, 1, 1);
	expect_work(2048, 16, 0);
	touch(P1, 0);
	touch(P2, 0);
	expect_sharers(P1, BASE, 3);
	expect_counts(P2, 3, 1, 3);
	expect_work(3072, 24, 0);
	end();
}

/* P1 and P2 at home on node 0, P3 on node 1: what the move of page 0 costs them. */
static void h6r(void **state)
{
	static const struct nrp_hugetlb_user users[] = { { 0, 100 }, { 0, 100 }, { 1, 50 } };

	(void)state;
	assert_int_equal(nrp_hugetlb_remote(users, 3, 0), 50);
	assert_int_equal(nrp_hugetlb_remote(users, 3, 1), 200);
}

static void h7(void **state)
{
	(void)state;
	begin(&today);
	map(P1);
	map_at(P1, BASE + 4 * GIB, GIB, RW, false);
	touch(P1, 0);
	assert_int_equal(nrp_hugetlb_touch(s, P1, BASE + 4 * GIB), 0);
	expect_sharers(P1, BASE, 2);
	expect_counts(P1, 0, 1, 2);
	expect_smaps(OLD, P1, 4, 0);
	expect_smaps(A, P1, 0, 4);
	expect_smaps(B, P1, 0, 4);
	expect_smaps(NRP_HUGETLB_ACTUAL, P1, 4, 0); /* one process */
	assert_int_equal(isolated(OLD, P1, 1, false), 1);
	assert_int_equal(isolated(A, P1, 1, false), 0);
	assert_int_equal(isolated(B, P1, 1, false), 0);
	assert_int_equal(isolated(NRP_HUGETLB_ACTUAL, P1, 1, false), 1);
	end();
}

static void h8(void **state)
{
	static const struct nrp_hugetlb_rules before = { false, true, true };

	for (int lazy = 0; lazy < 2; lazy++) {
		begin(lazy ? &today : &before);
		map_at(P1, BASE, 3 * GIB, RW, false);
		for (uint64_t k = 0; k < 3; k++)
			touch(P1, 512 * k);
		assert_int_equal(nrp_hugetlb_fork(s, P1, P2), 0);
		for (uint64_t k = 0; k < 3; k++)
			expect_sharers(P1, BASE + k * GIB, lazy ? 1 : 2);
		for (uint64_t k = 0; k < 3; k++) {
			touch(P2, 512 * k);
			expect_sharers(P2, BASE + k * GIB, 2);
		}
		expect_work(1536, 3, 0);
		nrp_hugetlb_exit(s, P2);
		expect_work(3072, 6, 0);
		end();
	}
	(void)state;
}

static void h9(void **state)
{
	(void)state;
	begin(&today);
	map(P1);
	map(P2);
	touch_many(P1, 4);
	touch(P2, 0);
	expect_work(512, 4, 0);
	assert_int_equal(nrp_hugetlb_unmap(s, P2, BASE, BASE + HUGE), 0);
	expect_sharers(P1, BASE, 1);
	for (uint64_t k = 0; k < 4; k++)
		expect_counts(P1, k, 1, 1);
	expect_work(1024, 8, 0);
	for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++)
		expect_smaps(v, P1, 8, 0);
	touch(P2, 2);
	expect_sharers(P2, BASE, 1);
	expect_counts(P1, 2, 2, 2);
	for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++) {
		expect_smaps(v, P1, 6, 2);
		expect_smaps(v, P2, 0, 2);
	}
	assert_int_equal(nrp_hugetlb_touch(s, P2, BASE), -EFAULT);
	end();
}

static void h10(void **state)
{
	(void)state;
	begin(&today);
	map(P1);
	map_at(P2, BASE, GIB, RW, true);
	map_at(P3, BASE, GIB, READ_ONLY, false);
	for (uint64_t p = P1; p <= P3; p++)
		touch(p, 0);
	for (uint64_t p = P1; p <= P3; p++) {
		expect_sharers(p, BASE, 1);
		expect_counts(p, 0, 3, 3);
		for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++)
			expect_smaps(v, p, 0, 2);
	}
	end();
}

/* Up to 5.12 nobody looked at userfaultfd. */
static void uffd_is_looked_at_from_5_13_on(void **state)
{
	static const struct nrp_hugetlb_rules before = { false, false, false };

	(void)state;
	begin(&before);
	map(P1);
	map_at(P2, BASE, GIB, RW, true);
	touch(P1, 0);
	touch(P2, 0);
	expect_sharers(P1, BASE, 2);
	end();

	begin(&today);
	map(P1);
	map(P2);
	touch(P1, 0);
	touch(P2, 0);
	expect_sharers(P1, BASE, 2);
	assert_int_equal(nrp_hugetlb_register_uffd(s, P2, BASE, BASE + GIB), 0);
	expect_sharers(P1, BASE, 1);
	expect_work(1024, 2, 0);
	touch(P2, 0); /* a table of its own now */
	expect_counts(P1, 0, 2, 2);
	end();
}

static void h11(void **state)
{
	(void)state;
	begin(&today);
	map(P1);
	map(P2);
	touch_many(P1, 512);
	touch(P2, 7);
	expect_work(512, 512, 0);
	expect_smaps(OLD, P2, 1024, 0);
	expect_smaps(A, P2, 0, 1024);
	expect_smaps(B, P2, 0, 1024);
	assert_int_equal(nrp_hugetlb_unmap(s, P2, BASE, BASE + GIB), 0);
	expect_work(1024, 1024, 0);
	end();
}

/* A protected mapping leaves the table and does not come back: its flags differ. */
static void mprotect_ends_sharing(void **state)
{
	(void)state;
	state_h2();
	assert_int_equal(nrp_hugetlb_protect(s, P2, BASE, BASE + GIB, READ_ONLY), 0);
	expect_sharers(P1, BASE, 1);
	expect_work(1024, 7, 1);
	touch(P2, 0);
	expect_sharers(P1, BASE, 1);
	expect_counts(P1, 0, 2, 2);
	end();
}

/* A split inside a slot: from 6.2 on its sharing ends there and then. */
static void a_split_ends_sharing_from_6_2_on(void **state)
{
	static const struct nrp_hugetlb_rules before = { true, true, false };

	(void)state;
	for (int leaves = 0; leaves < 2; leaves++) {
		begin(leaves ? &today : &before);
		map_at(P1, BASE, 2 * GIB, RW, false);
		map_at(P2, BASE, 2 * GIB, RW, false);
		touch(P1, 0);
		touch(P2, 0);
		/* protects the upper half of the second slot, whose lower bound is inside of it */
		touch(P1, 512);
		touch(P2, 512);
		assert_int_equal(
			nrp_hugetlb_protect(s, P2, BASE + GIB + GIB / 2, BASE + 2 * GIB, READ_ONLY),
			0);
		expect_sharers(P1, BASE, 2);
		expect_sharers(P1, BASE + GIB, 1); /* mprotect drops it without a split rule, too */
		end();
	}
}

/* Two tables that could be used: the first in the file's order, and it is said. */
static void several_tables_are_ambiguous(void **state)
{
	(void)state;
	begin(&today);
	map(P1);
	touch(P1, 0);
	map_at(P2, BASE, GIB, READ_ONLY, false);
	touch(P2, 0);
	assert_int_equal(nrp_hugetlb_protect(s, P2, BASE, BASE + GIB, RW), 0);
	assert_int_equal(nrp_hugetlb_ambiguous(s), 0);
	map(P3);
	touch(P3, 0);
	assert_int_equal(nrp_hugetlb_ambiguous(s), 1);
	expect_sharers(P1, BASE, 2);
	end();
}

/* Kernels that have the counter of its own say so in pagemap; those before looked at the count. */
static void what_pagemap_and_kpagecount_say(void **state)
{
	struct nrp_hugetlb_view v;

	(void)state;
	state_h1();
	assert_true(nrp_hugetlb_look(tables(), P1, BASE, &v));
	assert_true(nrp_hugetlb_is_exclusive(OLD, &v));
	assert_true(nrp_hugetlb_is_exclusive(A, &v));
	assert_false(nrp_hugetlb_is_exclusive(B, &v));
	assert_false(nrp_hugetlb_is_exclusive(NRP_HUGETLB_PT_SHARE, &v));
	assert_int_equal(nrp_hugetlb_mapcount(A, &v), 1);
	assert_int_equal(nrp_hugetlb_mapcount(B, &v), 2);
	assert_int_equal(nrp_hugetlb_mapcount(NRP_HUGETLB_ACTUAL, &v), 2);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h1),
		cmocka_unit_test(h2),
		cmocka_unit_test(h3),
		cmocka_unit_test(h4),
		cmocka_unit_test(h5),
		cmocka_unit_test(h6),
		cmocka_unit_test(h6r),
		cmocka_unit_test(h7),
		cmocka_unit_test(h8),
		cmocka_unit_test(h9),
		cmocka_unit_test(h10),
		cmocka_unit_test(h11),
		cmocka_unit_test(uffd_is_looked_at_from_5_13_on),
		cmocka_unit_test(mprotect_ends_sharing),
		cmocka_unit_test(a_split_ends_sharing_from_6_2_on),
		cmocka_unit_test(several_tables_are_ambiguous),
		cmocka_unit_test(what_pagemap_and_kpagecount_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
