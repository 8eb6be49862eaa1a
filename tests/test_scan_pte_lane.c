/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.pte lanes: the specification's worked counterfactual (scan.md 8) with its variants, and
 * every reason that leaves a fault open. Times in seconds; process 1 (mm 0xff00) forks process 2
 * (mm 0xee00), so that both share page X copy-on-write.
 */
#include "replay/scan_pte_lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MM1 UINT64_C(0xff00)
#define MM2 UINT64_C(0xee00)
#define VMA UINT64_C(0x7f0000000000)
#define VMA_END (VMA + (UINT64_C(4) << 20))
#define X (VMA + 5 * UINT64_C(4096))
#define PAGE_X UINT64_C(0xabc0)
#define PRIVATE_RW UINT64_C(0x100073)
#define SHARED_RW UINT64_C(0xfb)
#define S(time) ((uint64_t)(time)*1000000000)

enum { KEPT = NRP_FAULT_KEPT, AVOIDED = NRP_FAULT_AVOIDED, UNKNOWN = NRP_FAULT_UNKNOWN };

static int16_t cpu_nid[2] = { 0, 1 };
static struct nrp_host_facts facts;

static struct nrp_scan_pte_lane *new_lane(int host)
{
	struct nrp_scan_pte_lane *l;

	nrp_host_facts_init(&facts);
	facts.page_size = 4096;
	facts.huge_pages = 512;
	facts.has_prepare_step = true; /* the fault holds no reference yet */
	facts.cpu_nid = cpu_nid;
	facts.nr_cpus = 2;
	assert_int_equal(nrp_scan_pte_lane_new(&l, &facts, host), 0);
	return l;
}

static void life(struct nrp_scan_pte_lane *l, int time, int kind, int32_t tid, int32_t child)
{
	struct nrp_task_life row;

	memset(&row, 0, sizeof(row));
	row.null = ~UINT64_C(0);
	NRP_SET(&row, task_life, time, S(time));
	NRP_SET(&row, task_life, kind, (uint8_t)kind);
	NRP_SET(&row, task_life, tid, tid);
	if (kind == NRP_LIFE_FORK)
		NRP_SET(&row, task_life, child_tid, child);
	assert_int_equal(nrp_scan_pte_lane_life(l, &row), 0);
}

static void scan_by(struct nrp_scan_pte_lane *l, int time, int32_t tid, uint64_t mm,
		    int32_t threads, uint32_t cpu)
{
	struct nrp_scan_pass p;
	struct nrp_scan_range g;

	memset(&p, 0, sizeof(p));
	memset(&g, 0, sizeof(g));
	p.null = g.null = ~UINT64_C(0);
	NRP_SET(&p, scan_pass, time, S(time));
	NRP_SET(&p, scan_pass, tid, tid);
	NRP_SET(&p, scan_pass, mm, mm);
	NRP_SET(&p, scan_pass, mm_users, threads);
	NRP_SET(&p, scan_pass, nr_threads, threads);
	NRP_SET(&g, scan_range, time, S(time));
	NRP_SET(&g, scan_range, cpu, cpu);
	NRP_SET(&g, scan_range, tid, tid);
	NRP_SET(&g, scan_range, mm, mm);
	NRP_SET(&g, scan_range, start, VMA);
	NRP_SET(&g, scan_range, end, VMA_END);
	NRP_SET(&g, scan_range, vm_start, VMA);
	NRP_SET(&g, scan_range, vm_end, VMA_END);
	assert_int_equal(nrp_scan_pte_lane_pass(l, &p), 0);
	assert_int_equal(nrp_scan_pte_lane_range(l, &g), 0);
}

static void scan(struct nrp_scan_pte_lane *l, int time, int32_t tid, uint64_t mm)
{
	scan_by(l, time, tid, mm, 1, 0);
}

/* A fault on X on node 0 whose page is mapped @mapped times and has no other references. */
static struct nrp_hint_fault fault(int time, int32_t tid, uint64_t mm, int32_t mapped)
{
	struct nrp_hint_fault f;

	memset(&f, 0, sizeof(f));
	f.null = ~UINT64_C(0);
	NRP_SET(&f, hint_fault, time, S(time));
	NRP_SET(&f, hint_fault, tid, tid);
	NRP_SET(&f, hint_fault, mm, mm);
	NRP_SET(&f, hint_fault, addr, X);
	NRP_SET(&f, hint_fault, vm_start, VMA);
	NRP_SET(&f, hint_fault, vm_end, VMA_END);
	NRP_SET(&f, hint_fault, vm_flags, PRIVATE_RW);
	NRP_SET(&f, hint_fault, mapcount, mapped - 1);
	NRP_SET(&f, hint_fault, refcount, mapped);
	NRP_SET(&f, hint_fault, pages, 1);
	NRP_SET(&f, hint_fault, src_nid, 0);
	return f;
}

/* The answers of F0..F5 with the rules @off switched off. */
static void answers_of(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f, uint32_t off,
		       enum nrp_scan_pte_answer ret[NRP_NR_SCAN_PTE_VARIANTS])
{
	struct nrp_scan_pte_policy policy[NRP_NR_SCAN_PTE_VARIANTS];

	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++) {
		policy[v] = nrp_scan_pte_policy((enum nrp_scan_pte_variant)v);
		policy[v].rules &= ~off;
	}
	assert_int_equal(nrp_scan_pte_lane_fault(l, f, policy, NRP_NR_SCAN_PTE_VARIANTS, ret), 0);
}

#define ask(l, f, ...)                                                                             \
	do {                                                                                       \
		static const int want_[] = { __VA_ARGS__ };                                        \
		enum nrp_scan_pte_answer got_[NRP_NR_SCAN_PTE_VARIANTS];                           \
                                                                                                   \
		answers_of((l), (f), 0, got_);                                                     \
		for (int v_ = 0; v_ < NRP_NR_SCAN_PTE_VARIANTS; v_++)                              \
			if ((int)got_[v_] != want_[v_])                                            \
				fail_msg("F%d: %d instead of %d", v_, (int)got_[v_], want_[v_]);   \
	} while (0)

/* Up to the fault at 18: process 1 execs and forks, both are scanned and fault. */
static struct nrp_scan_pte_lane *counterfactual(int host)
{
	struct nrp_scan_pte_lane *l = new_lane(host);
	struct nrp_hint_fault f;

	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 1, MM1);
	f = fault(12, 1, MM1, 2);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	scan(l, 15, 2, MM2);
	f = fault(18, 2, MM2, 2);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	return l;
}

static void test_shared_page_is_avoided_and_the_last_owners_kept(void **state)
{
	static const int hosts[] = { NRP_SCAN_PTE_F0, NRP_SCAN_PTE_HOST_UNKNOWN };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct nrp_scan_pte_lane *l = counterfactual(hosts[i]);
		struct nrp_hint_fault f = fault(27, 1, MM1, 1);

		life(l, 20, NRP_LIFE_EXIT, 2, 0);
		scan(l, 25, 1, MM1);
		/* F2 sees references that come and go. */
		ask(l, &f, KEPT, KEPT, UNKNOWN, KEPT, KEPT, KEPT);
		nrp_scan_pte_lane_free(l);
	}
}

static void test_sharer_that_left_after_the_scan_leaves_it_open(void **state)
{
	struct nrp_scan_pte_lane *l = counterfactual(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(27, 1, MM1, 1);

	(void)state;
	scan(l, 25, 1, MM1);
	life(l, 26, NRP_LIFE_EXIT, 2, 0);
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

static void page_fault(struct nrp_scan_pte_lane *l, int ms, int32_t tid, uint64_t addr,
		       uint64_t error_code)
{
	struct nrp_page_fault row;

	memset(&row, 0, sizeof(row));
	row.null = ~UINT64_C(0);
	NRP_SET(&row, page_fault, time, (uint64_t)ms * 1000000);
	NRP_SET(&row, page_fault, tid, tid);
	NRP_SET(&row, page_fault, addr, addr);
	NRP_SET(&row, page_fault, error_code, error_code);
	assert_int_equal(nrp_scan_pte_lane_page_fault(l, &row), 0);
}

/* Write to a page that is there. */
#define WRITE 7

/*
 * The worked variant with the page faults of both on record: process 2 exits at 26, process 1
 * faults at 27 on a page armed at 25. @writer writes to it at @ms.
 */
static void counterfactual_with_writes(int32_t writer, int ms, uint64_t error_code,
				       enum nrp_scan_pte_answer third)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	enum nrp_scan_pte_answer got[NRP_NR_SCAN_PTE_VARIANTS];
	struct nrp_hint_fault f;

	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	page_fault(l, 1000, 1, X, WRITE);
	life(l, 2, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 1, MM1);
	f = fault(12, 1, MM1, 2);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	scan(l, 15, 2, MM2);
	f = fault(18, 2, MM2, 2);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	if (writer && ms < 25000)
		page_fault(l, ms, writer, X, error_code);
	scan(l, 25, 1, MM1);
	if (writer && ms >= 25000)
		page_fault(l, ms, writer, X, error_code);
	life(l, 26, NRP_LIFE_EXIT, 2, 0);
	f = fault(27, 1, MM1, 1);
	answers_of(l, &f, 0, got);
	for (int v = NRP_SCAN_PTE_F1; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		assert_int_equal(got[v], v == NRP_SCAN_PTE_F2 && third == NRP_FAULT_KEPT
						 ? NRP_FAULT_UNKNOWN
						 : third);
	nrp_scan_pte_lane_free(l);
}

/* Exactly three are avoided without a write, exactly two with one before 25. */
static void test_writes_of_the_sharer_decide_the_third_fault(void **state)
{
	(void)state;
	counterfactual_with_writes(0, 0, 0, NRP_FAULT_AVOIDED);
	counterfactual_with_writes(2, 20000, WRITE, NRP_FAULT_KEPT);
	counterfactual_with_writes(1, 20000, WRITE, NRP_FAULT_KEPT);
	/* Too late; only read. */
	counterfactual_with_writes(2, 25500, WRITE, NRP_FAULT_AVOIDED);
	counterfactual_with_writes(2, 20000, 5, NRP_FAULT_AVOIDED);
}

/* A third process that no event places in an address space may share the page, or not. */
static void test_writes_say_nothing_with_a_stranger_in_the_family(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f;

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	page_fault(l, 1000, 1, X, WRITE);
	life(l, 2, NRP_LIFE_FORK, 1, 2);
	life(l, 2, NRP_LIFE_FORK, 1, 3);
	scan(l, 10, 1, MM1);
	scan(l, 15, 2, MM2);
	f = fault(18, 2, MM2, 2);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	page_fault(l, 20000, 2, X, WRITE);
	scan(l, 25, 1, MM1);
	f = fault(27, 1, MM1, 1);
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

static void test_fork_after_the_scan_leaves_a_shared_page_open(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(12, 1, MM1, 2);

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	scan(l, 5, 1, MM1); /* exclusive then: armed by every variant */
	life(l, 6, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 1, MM1);
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	/* From now on it was armed while shared. */
	scan(l, 15, 1, MM1);
	f = fault(16, 1, MM1, 2);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	nrp_scan_pte_lane_free(l);
}

static void test_child_may_inherit_what_its_parent_had_armed(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(12, 2, MM2, 2);

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	scan(l, 5, 1, MM1);
	life(l, 6, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 2, MM2);
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

static void test_process_from_before_the_capture_may_have_relatives(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(12, 1, MM1, 1);

	(void)state;
	scan(l, 10, 1, MM1);
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

static void test_thread_is_no_relative(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(12, 3, MM1, 1);

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 3);
	scan_by(l, 10, 3, MM1, 2, 0); /* two threads: that is all of the family */
	ask(l, &f, KEPT, KEPT, UNKNOWN, KEPT, KEPT, KEPT);
	nrp_scan_pte_lane_free(l);

	l = new_lane(NRP_SCAN_PTE_F0);
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 3);
	scan_by(l, 10, 3, MM1, 1, 0); /* one: the other is a process */
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

/* One reference more than mappings: perhaps the page cache's. */
static void test_page_that_may_be_a_files_is_open(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(12, 1, MM1, 2);

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 1, MM1);
	f.refcount = 3;
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);

	/* Once proved anonymous it stays so. */
	scan(l, 13, 1, MM1);
	f = fault(14, 1, MM1, 2);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	scan(l, 15, 1, MM1);
	f = fault(16, 1, MM1, 2);
	f.refcount = 3;
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	nrp_scan_pte_lane_free(l);
}

static void test_relative_proves_the_same_page_anonymous(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f;

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 1, MM1);
	scan(l, 10, 2, MM2);
	f = fault(12, 1, MM1, 2);
	NRP_SET(&f, hint_fault, page, PAGE_X);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	f = fault(13, 2, MM2, 2);
	NRP_SET(&f, hint_fault, page, PAGE_X);
	f.refcount = 3;
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	nrp_scan_pte_lane_free(l);
}

static void test_host_with_the_test_proves_the_page_exclusive(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F1);
	struct nrp_hint_fault f = fault(12, 1, MM1, 2); /* shared since the scan */

	(void)state;
	scan(l, 10, 1, MM1);
	ask(l, &f, KEPT, KEPT, UNKNOWN, KEPT, KEPT, KEPT);
	f = fault(13, 1, MM1, 1);
	f.refcount = 1025; /* pinned: F1 does not ask */
	ask(l, &f, KEPT, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	nrp_scan_pte_lane_free(l);

	l = new_lane(NRP_SCAN_PTE_F2);
	scan(l, 10, 1, MM1);
	/* One reference when it was armed: the mapping. The pin came later. */
	ask(l, &f, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT);
	nrp_scan_pte_lane_free(l);
}

static void test_shared_mapping_is_not_copy_on_write(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F3);
	struct nrp_hint_fault f = fault(12, 1, MM1, 5);

	(void)state;
	f.vm_flags = SHARED_RW;
	scan(l, 10, 1, MM1);
	ask(l, &f, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT);
	f.refcount = 1030;
	ask(l, &f, KEPT, KEPT, KEPT, KEPT, KEPT, UNKNOWN);
	nrp_scan_pte_lane_free(l);

	/* A host without the test of dirty file pages says nothing about them. */
	l = new_lane(NRP_SCAN_PTE_F0);
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

/* Only F5 asks of a PMD whether a single thread has it on its own node. */
static void test_local_huge_page_is_avoided_by_f5(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F3);
	struct nrp_hint_fault f = fault(12, 1, MM1, 1);

	(void)state;
	f.pages = 512;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	scan_by(l, 10, 1, MM1, 1, 0);
	ask(l, &f, KEPT, KEPT, KEPT, KEPT, KEPT, AVOIDED);
	scan_by(l, 13, 1, MM1, 1, 1); /* scanned from node 1 */
	f.time = S(14);
	ask(l, &f, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT);
	nrp_scan_pte_lane_free(l);
}

static void test_large_folio_is_open_unless_the_host_is_the_same(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F3);
	struct nrp_hint_fault f = fault(12, 1, MM1, 1);

	(void)state;
	f.pages = 16;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	scan(l, 10, 1, MM1);
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, KEPT, UNKNOWN, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

/* The tests that avoid a fault are the ones whose rule is on. */
static void test_rule_switched_off_avoids_nothing(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(12, 1, MM1, 2);
	enum nrp_scan_pte_answer got[NRP_NR_SCAN_PTE_VARIANTS];

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 1, MM1);
	answers_of(l, &f, NRP_SCAN_PTE_RULE_COW, got);
	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		assert_int_equal(got[v], KEPT);
	scan(l, 13, 1, MM1);
	f = fault(14, 1, MM1, 2);
	answers_of(l, &f, NRP_SCAN_PTE_RULE_PINNED | NRP_SCAN_PTE_RULE_LOCAL, got);
	for (int v = NRP_SCAN_PTE_F1; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		assert_int_equal(got[v], AVOIDED);
	nrp_scan_pte_lane_free(l);

	l = new_lane(NRP_SCAN_PTE_F3);
	f = fault(12, 1, MM1, 1);
	f.pages = 512;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	scan_by(l, 10, 1, MM1, 1, 0);
	answers_of(l, &f, NRP_SCAN_PTE_RULE_LOCAL, got);
	assert_int_equal(got[NRP_SCAN_PTE_F5], KEPT);
	nrp_scan_pte_lane_free(l);
}

/* Of a huge page's pins only the references tell, if there is one: the mapping. */
static void test_huge_page_with_other_references_may_be_pinned(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F3);
	struct nrp_hint_fault f = fault(12, 1, MM1, 1);

	(void)state;
	f.pages = 512;
	f.refcount = 2;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	scan_by(l, 10, 1, MM1, 1, 1);
	ask(l, &f, KEPT, KEPT, KEPT, KEPT, KEPT, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

/* Base page or PMD: each meets other tests. */
static void test_page_of_unknown_size_meets_the_tests_of_both(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F1);
	struct nrp_hint_fault f = fault(12, 1, MM1, 2);

	(void)state;
	f.null |= NRP_BIT(hint_fault, pages);
	f.vm_flags = SHARED_RW;
	f.refcount = 3;
	scan(l, 10, 1, MM1);
	/* F5 asks a PMD whether it is dirty, which F1 did not. */
	ask(l, &f, KEPT, KEPT, KEPT, KEPT, KEPT, UNKNOWN);
	nrp_scan_pte_lane_free(l);
}

static void test_missing_facts_leave_all_but_f0_open(void **state)
{
	static const uint64_t missing[] = { NRP_BIT(hint_fault, mm), NRP_BIT(hint_fault, vm_flags),
					    NRP_BIT(hint_fault, mapcount),
					    NRP_BIT(hint_fault, refcount),
					    NRP_BIT(hint_fault, pages) };

	(void)state;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_HOST_UNKNOWN);
		struct nrp_hint_fault f = fault(12, 1, MM1, 2);

		life(l, 0, NRP_LIFE_EXEC, 1, 0);
		life(l, 1, NRP_LIFE_FORK, 1, 2);
		scan(l, 10, 1, MM1);
		f.null |= missing[i];
		ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
		nrp_scan_pte_lane_free(l);
	}
}

static void test_pointer_of_a_dead_process_starts_afresh(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f;

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	scan(l, 1, 1, MM1);
	life(l, 2, NRP_LIFE_EXIT, 1, 0);
	/* Another program at the same mm pointer and address; its scan at 1 was not its own. */
	life(l, 3, NRP_LIFE_EXEC, 7, 0);
	life(l, 4, NRP_LIFE_FORK, 7, 8);
	scan(l, 10, 7, MM1);
	f = fault(12, 7, MM1, 2);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	nrp_scan_pte_lane_free(l);
}

static void test_hosts_are_those_that_avoid_nothing(void **state)
{
	struct nrp_scan_pte_counts counts = { .faults = 3 };

	(void)state;
	assert_int_equal(nrp_scan_pte_possible_hosts(&counts), 0x3f);
	counts.answers[NRP_SCAN_PTE_F5][NRP_FAULT_AVOIDED] = 1;
	assert_int_equal(nrp_scan_pte_possible_hosts(&counts), 0x1f);
}

/* ---- what other faults show ----------------------------------------------------------- */

/* A shared page with one more reference than mappings at 12; at 18 a fault shows it anonymous. */
static enum nrp_scan_pte_answer before_the_proof(int last_fork)
{
	const struct nrp_proved_page page = { .mm = MM1, .vfn = X / 4096, .frame = PAGE_X };
	struct nrp_scan_pte_proofs *proofs = nrp_scan_pte_proofs_new();
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_scan_pte_policy policy = nrp_scan_pte_policy(NRP_SCAN_PTE_F1);
	enum nrp_scan_pte_answer answer;
	struct nrp_hint_fault f = fault(12, 1, MM1, 2);

	assert_non_null(proofs);
	assert_int_equal(nrp_scan_pte_proofs_add(proofs, &page, S(18), S(last_fork)), 0);
	nrp_scan_pte_lane_know(l, proofs);
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 1, MM1);
	f.refcount++;
	assert_int_equal(nrp_scan_pte_lane_fault(l, &f, &policy, 1, &answer), 0);
	nrp_scan_pte_lane_free(l);
	nrp_scan_pte_proofs_free(proofs);
	return answer;
}

static void test_later_fault_shows_what_an_earlier_one_was_on(void **state)
{
	(void)state;
	assert_int_equal(before_the_proof(1), NRP_FAULT_AVOIDED);
	/* A fork in between: another page may have come to be shared. */
	assert_int_equal(before_the_proof(15), NRP_FAULT_UNKNOWN);
}

static void test_frame_shown_by_a_stranger_was_another_page(void **state)
{
	const struct nrp_proved_page shown = { .mm = MM2, .vfn = X / 4096, .frame = PAGE_X };
	const struct nrp_proved_page asked = { .mm = MM1, .vfn = X / 4096, .frame = PAGE_X };
	struct nrp_scan_pte_proofs *proofs = nrp_scan_pte_proofs_new();
	uint64_t mm;

	(void)state;
	assert_non_null(proofs);
	assert_int_equal(nrp_scan_pte_proofs_hold(proofs, &asked, S(12), &mm), 0);
	assert_int_equal(nrp_scan_pte_proofs_add(proofs, &shown, S(18), S(1)), 0);
	assert_int_equal(nrp_scan_pte_proofs_hold(proofs, &asked, S(12), &mm), 1);
	assert_int_equal(mm, MM2); /* whoever asks looks whether that is a relative */
	assert_int_equal(nrp_scan_pte_proofs_hold(proofs, &asked, S(19), &mm), 0);
	nrp_scan_pte_proofs_revoke(proofs);
	assert_int_equal(nrp_scan_pte_proofs_hold(proofs, &asked, S(12), &mm), 0);
	nrp_scan_pte_proofs_free(proofs);
}

/*
 * A kernel without the prepare step takes the page before the counts are read. Of two faults at
 * once the second sees two mappings and both faults' references: no place for the page cache's.
 */
static void test_reference_of_another_fault_is_not_the_page_caches(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(12, 2, MM2, 2);

	(void)state;
	nrp_scan_pte_lane_free(l);
	facts.has_prepare_step = false;
	assert_int_equal(nrp_scan_pte_lane_new(&l, &facts, NRP_SCAN_PTE_F0), 0);
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 2);
	scan(l, 10, 1, MM1);
	scan(l, 10, 2, MM2);
	NRP_SET(&f, hint_fault, page, PAGE_X);
	NRP_SET(&f, hint_fault, attempt, NRP_ATTEMPT_FOLIO);
	NRP_SET(&f, hint_fault, attempt_delay, 5000);
	f.refcount = 4;
	ask(l, &f, KEPT, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
	f.tid = 1;
	f.mm = MM1;
	f.time += 4000;
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	nrp_scan_pte_lane_free(l);
}

/* Two processes live, and two map the page: both do, also the one that does not fault. */
static void test_page_that_as_many_map_as_live_is_shared_by_each(void **state)
{
	struct nrp_scan_pte_lane *l = counterfactual(NRP_SCAN_PTE_F0);

	(void)state;
	assert_int_equal(nrp_scan_pte_lane_shared_until(l, MM1, X, S(12)), S(18));
	/* Another page, and the time before the fork. */
	assert_int_equal(nrp_scan_pte_lane_shared_until(l, MM1, X + 4096, S(12)), 0);
	assert_int_equal(nrp_scan_pte_lane_shared_until(l, MM1, X, S(0)), 0);
	nrp_scan_pte_lane_free(l);
}

static void test_page_that_fewer_map_than_live_is_not_each_ones(void **state)
{
	struct nrp_scan_pte_lane *l = new_lane(NRP_SCAN_PTE_F0);
	struct nrp_hint_fault f = fault(12, 1, MM1, 2);

	(void)state;
	life(l, 0, NRP_LIFE_EXEC, 1, 0);
	life(l, 1, NRP_LIFE_FORK, 1, 2);
	life(l, 1, NRP_LIFE_FORK, 1, 3);
	scan(l, 10, 1, MM1);
	ask(l, &f, KEPT, AVOIDED, AVOIDED, AVOIDED, AVOIDED, AVOIDED);
	assert_int_equal(nrp_scan_pte_lane_shared_until(l, MM1, X, S(10)), 0);
	nrp_scan_pte_lane_free(l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_page_is_avoided_and_the_last_owners_kept),
		cmocka_unit_test(test_sharer_that_left_after_the_scan_leaves_it_open),
		cmocka_unit_test(test_writes_of_the_sharer_decide_the_third_fault),
		cmocka_unit_test(test_writes_say_nothing_with_a_stranger_in_the_family),
		cmocka_unit_test(test_fork_after_the_scan_leaves_a_shared_page_open),
		cmocka_unit_test(test_child_may_inherit_what_its_parent_had_armed),
		cmocka_unit_test(test_process_from_before_the_capture_may_have_relatives),
		cmocka_unit_test(test_thread_is_no_relative),
		cmocka_unit_test(test_page_that_may_be_a_files_is_open),
		cmocka_unit_test(test_relative_proves_the_same_page_anonymous),
		cmocka_unit_test(test_host_with_the_test_proves_the_page_exclusive),
		cmocka_unit_test(test_shared_mapping_is_not_copy_on_write),
		cmocka_unit_test(test_local_huge_page_is_avoided_by_f5),
		cmocka_unit_test(test_large_folio_is_open_unless_the_host_is_the_same),
		cmocka_unit_test(test_rule_switched_off_avoids_nothing),
		cmocka_unit_test(test_huge_page_with_other_references_may_be_pinned),
		cmocka_unit_test(test_page_of_unknown_size_meets_the_tests_of_both),
		cmocka_unit_test(test_missing_facts_leave_all_but_f0_open),
		cmocka_unit_test(test_pointer_of_a_dead_process_starts_afresh),
		cmocka_unit_test(test_later_fault_shows_what_an_earlier_one_was_on),
		cmocka_unit_test(test_frame_shown_by_a_stranger_was_another_page),
		cmocka_unit_test(test_reference_of_another_fault_is_not_the_page_caches),
		cmocka_unit_test(test_page_that_as_many_map_as_live_is_shared_by_each),
		cmocka_unit_test(test_page_that_fewer_map_than_live_is_not_each_ones),
		cmocka_unit_test(test_hosts_are_those_that_avoid_nothing),
	};

	return cmocka_run_group_tests_name("scan_pte_lane", tests, NULL, NULL);
}
