/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hugetlb.count over small captures; expected values by hand. Times are us. */
#include "replay/hugetlb_lane.h"
#include "tests/lane_util.h"

#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000)
#define HUGE NRP_HUGETLB_SIZE
#define BASE (UINT64_C(1) << 40)
#define TABLE UINT64_C(0xff11000000ea1000)
#define OTHER_TABLE UINT64_C(0xff11000000ea2000)
#define PAGE UINT64_C(0xffd4000000008000)
#define MOVE 2
#define MOVE_ALL 4

enum { P1 = 101, P2, P3 };

static struct lane_file file;
static struct nrp_hugetlb_result res;
static uint64_t now; /* us */

static void begin(void)
{
	static const char *const probes[] = { "hugetlb_fault", NULL };

	lane_begin(&file, probes);
	now = 1;
}

static uint64_t mm_of(int32_t tid)
{
	return UINT64_C(0xff11000060a00000) + (uint64_t)tid * 0x1000;
}

static struct nrp_hugetlb *row(int32_t tid, int op)
{
	static struct nrp_hugetlb h;

	memset(&h, 0, sizeof(h));
	h.null = ~UINT64_C(0);
	NRP_SET(&h, hugetlb, time, now++ * US);
	NRP_SET(&h, hugetlb, tid, tid);
	NRP_SET(&h, hugetlb, cpu, tid == P3 ? 4 : 0);
	NRP_SET(&h, hugetlb, op, (uint8_t)op);
	return &h;
}

/* Touches huge page @k, whose slot turns out to have @table; @result: of the fault. */
static void touch_in(int32_t tid, uint64_t k, uint64_t table, int64_t result)
{
	struct nrp_hugetlb *h = row(tid, NRP_HUGETLB_FAULT);

	NRP_SET(h, hugetlb, mm, mm_of(tid));
	NRP_SET(h, hugetlb, addr, BASE + k * HUGE);
	NRP_SET(h, hugetlb, vm_start, BASE);
	NRP_SET(h, hugetlb, vm_end, BASE + 512 * HUGE);
	NRP_SET(h, hugetlb, result, result);
	lane_put(&file, NRP_HUGETLB, h);
	h = row(tid, NRP_HUGETLB_PTE_ALLOC);
	NRP_SET(h, hugetlb, mm, mm_of(tid));
	NRP_SET(h, hugetlb, addr, BASE + k * HUGE);
	NRP_SET(h, hugetlb, size, HUGE);
	NRP_SET(h, hugetlb, pte, table + 8 * k);
	lane_put(&file, NRP_HUGETLB, h);
}

static void touch(int32_t tid, uint64_t k)
{
	touch_in(tid, k, TABLE, 0);
}

/* A call that ends @us after it begins. */
static void call(int32_t tid, int what, uint64_t addr, uint64_t len, uint64_t flags, uint64_t us)
{
	LANE_ROW(mm_call, c, now++ * US);
	NRP_SET(&c, mm_call, end_time, c.time + us * US);
	NRP_SET(&c, mm_call, tid, tid);
	NRP_SET(&c, mm_call, call, (uint8_t)what);
	NRP_SET(&c, mm_call, addr, addr);
	NRP_SET(&c, mm_call, len, len);
	NRP_SET(&c, mm_call, flags, flags);
	NRP_SET(&c, mm_call, result, 0);
	lane_put(&file, NRP_MM_CALL, &c);
}

/* The walk comes to page @k in frame @k + 1; @taken: it is isolated. */
static void walk(int32_t tid, uint64_t k, bool taken)
{
	struct nrp_hugetlb *h = row(tid, NRP_HUGETLB_QUEUE);

	NRP_SET(h, hugetlb, addr, BASE + k * HUGE);
	NRP_SET(h, hugetlb, pte, TABLE + 8 * k);
	NRP_SET(h, hugetlb, entry, (k + 1) << 21 | 0x80000000000000e7);
	lane_put(&file, NRP_HUGETLB, h);
	if (!taken)
		return;
	h = row(tid, NRP_HUGETLB_ISOLATE);
	NRP_SET(h, hugetlb, page, PAGE + 0x8000 * k);
	lane_put(&file, NRP_HUGETLB, h);
}

static void moved(int32_t tid, uint64_t k)
{
	struct nrp_hugetlb *h = row(tid, NRP_HUGETLB_MOVED);

	NRP_SET(h, hugetlb, page, PAGE + 0x8000 * k);
	lane_put(&file, NRP_HUGETLB, h);
}

static void exits(int32_t tid)
{
	LANE_ROW(task_life, l, now++ * US);
	NRP_SET(&l, task_life, tid, tid);
	NRP_SET(&l, task_life, kind, NRP_LIFE_EXIT);
	lane_put(&file, NRP_TASK_LIFE, &l);
}

static void run(enum nrp_hugetlb_variant variant, bool observed)
{
	struct nrp_error err = NRP_ERROR_INIT;

	nrp_hugetlb_result_clear(&res);
	assert_ok(nrp_hugetlb_run(&res, file.store, &file.capture, variant, observed, &err), &err);
}

static void end(void)
{
	nrp_hugetlb_result_clear(&res);
	lane_end(&file);
}

static void expect_tally(enum nrp_hugetlb_variant v, uint64_t agree, uint64_t disagree,
			 uint64_t undecided)
{
	assert_int_equal(res.tally[v].agree, agree);
	assert_int_equal(res.tally[v].disagree, disagree);
	assert_int_equal(res.tally[v].undecided, undecided);
}

static void expect(const struct nrp_hugetlb_count *c, uint64_t lower, uint64_t value,
		   uint64_t upper)
{
	assert_int_equal(c->lower, lower);
	assert_int_equal(c->value, value);
	assert_int_equal(c->upper, upper);
}

/* H-5 of the spec on a kernel that looks at the mapcount: four pages are taken and three move. */
static void a_kernel_that_counts_mappings_moves_shared_pages(void **state)
{
	(void)state;
	begin();
	for (uint64_t k = 0; k < 3; k++)
		touch(P1, k);
	touch(P2, 0);
	touch(P2, 3);
	call(P2, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE, 100);
	for (uint64_t k = 0; k < 4; k++)
		walk(P2, k, true);
	for (uint64_t k = 0; k < 3; k++)
		moved(P2, k);
	lane_ready(&file);

	run(NRP_HUGETLB_MAPCOUNT, true);
	assert_int_equal(res.decisions, 4);
	assert_int_equal(res.unknown, 0);
	expect_tally(NRP_HUGETLB_MAPCOUNT, 4, 0, 0);
	expect_tally(NRP_HUGETLB_PMD_CHECK, 0, 4, 0);
	expect_tally(NRP_HUGETLB_ADJUSTED, 0, 4, 0);
	expect(&res.isolated, 4, 4, 4);
	expect(&res.migrated, 3, 3, 3);
	assert_int_equal(res.left_by_moves, 1);
	assert_int_equal(res.private, 2 * 4 * HUGE); /* 8 MiB in each smaps */
	assert_int_equal(res.shared, 0);
	assert_int_equal(res.actual_shared, 2 * 4 * HUGE);
	assert_int_equal(res.work.shares, 1);
	assert_int_equal(res.work.unshares, 1);
	assert_int_equal(res.work.updates, 3 + 4);
	assert_int_equal(res.work.installs, 1);

	run(NRP_HUGETLB_PMD_CHECK, false);
	expect(&res.isolated, 0, 0, 0);
	expect(&res.migrated, 0, 0, 0);
	assert_int_equal(res.left_by_moves, 0);
	assert_int_equal(res.shared, 2 * 4 * HUGE);
	end();
}

/* The other way round: what was left on record would be taken, unless it is there already. */
static void what_the_kernel_left_may_be_in_place(void **state)
{
	(void)state;
	begin();
	touch(P1, 0);
	touch(P1, 1);
	touch(P2, 0);
	call(P2, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE, 50);
	walk(P2, 0, false);
	walk(P2, 1, false);
	now += 100;
	touch(P1, 2); /* the walk is over */
	lane_ready(&file);
	run(NRP_HUGETLB_PMD_CHECK, true);
	expect_tally(NRP_HUGETLB_PMD_CHECK, 2, 0, 0);
	expect_tally(NRP_HUGETLB_MAPCOUNT, 0, 0, 2);
	expect(&res.isolated, 0, 0, 0);
	run(NRP_HUGETLB_MAPCOUNT, false);
	expect(&res.isolated, 0, 2, 2);
	expect(&res.migrated, 0, 2, 2);
	assert_int_equal(res.left_by_moves, 1); /* both pages are in one table, of two users */
	assert_int_equal(res.users[0], 4);      /* two pages, two users at home on node 0 */
	end();
}

/* MOVE_ALL takes shared pages in all variants; a walk without MOVE decides nothing. */
static void flags_of_the_call(void **state)
{
	(void)state;
	begin();
	touch(P1, 0);
	touch(P3, 0);
	call(P3, NRP_CALL_MBIND, BASE, 512 * HUGE, 1, 50);
	walk(P3, 0, false);
	now += 100;
	call(P3, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE_ALL, 50);
	walk(P3, 0, true);
	lane_ready(&file);
	run(NRP_HUGETLB_PMD_CHECK, true);
	assert_int_equal(res.decisions, 1);
	assert_int_equal(res.walks, 2);
	for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++)
		expect_tally((enum nrp_hugetlb_variant)v, 1, 0, 0);
	assert_int_equal(res.users[0], 1);
	assert_int_equal(res.users[1], 1); /* P3 runs on CPU 4 */
	end();
}

/* An unmap or an exit leaves the table to the other, whose pages are its own then. */
static void tables_are_left(void **state)
{
	(void)state;
	for (int exit = 0; exit < 2; exit++) {
		begin();
		touch(P1, 0);
		touch(P2, 0);
		if (exit)
			exits(P1);
		else
			call(P1, NRP_CALL_MUNMAP, BASE + HUGE, HUGE, 0, 1); /* all of the slot */
		now += 10;
		call(P2, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE, 50);
		walk(P2, 0, true);
		lane_ready(&file);
		run(NRP_HUGETLB_PMD_CHECK, true);
		assert_int_equal(res.work.unshares, 1);
		for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++)
			expect_tally((enum nrp_hugetlb_variant)v, 1, 0, 0);
		/* each had its 2 MiB shared before */
		assert_int_equal(res.nr_vmas, 2);
		assert_int_equal(res.vma[0].shared, 2 * HUGE / 2);
		end();
	}
}

/* One user unmaps a page of its own table: the others of it stay. */
static void an_own_table_loses_what_is_unmapped(void **state)
{
	(void)state;
	begin();
	touch(P1, 0);
	touch(P1, 1);
	call(P1, NRP_CALL_MUNMAP, BASE, HUGE, 0, 1);
	now += 10;
	call(P1, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE, 50);
	walk(P1, 0, true); /* whatever it is, it was not seen to come */
	walk(P1, 1, true);
	lane_ready(&file);
	run(NRP_HUGETLB_PMD_CHECK, true);
	assert_int_equal(res.unknown, 1);
	expect_tally(NRP_HUGETLB_PMD_CHECK, 1, 0, 1);
	expect(&res.isolated, 2, 2, 2);
	run(NRP_HUGETLB_ACTUAL, false);
	expect(&res.isolated, 1, 2, 2);
	end();
}

/* Pages of before the capture are not known; faults that failed bring none. */
static void what_is_not_on_record(void **state)
{
	(void)state;
	begin();
	touch_in(P1, 0, TABLE, 2); /* VM_FAULT_SIGBUS */
	call(P1, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE, 50);
	walk(P1, 0, false);
	now += 100;
	call(P2, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE, 50); /* its mm is not known */
	walk(P2, 0, true);
	lane_ready(&file);
	run(NRP_HUGETLB_PMD_CHECK, true);
	assert_int_equal(res.decisions, 2);
	assert_int_equal(res.unknown, 2);
	expect_tally(NRP_HUGETLB_PMD_CHECK, 0, 0, 2);
	assert_int_equal(res.private + res.shared, 0);
	end();
}

/* A slot that turns up with another table left the old one unseen. One frame in two tables counts
 * twice. */
static void another_table(void **state)
{
	(void)state;
	begin();
	touch(P1, 0);
	touch(P2, 0);
	touch_in(P2, 0, OTHER_TABLE, 0);
	call(P1, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE, 20);
	walk(P1, 0, false);
	now += 100;
	call(P2, NRP_CALL_MBIND, BASE, 512 * HUGE, MOVE, 20);
	walk(P2, 0, false); /* the same frame: mapped twice, left alone by all */
	lane_ready(&file);
	run(NRP_HUGETLB_MAPCOUNT, true);
	assert_int_equal(res.surprises, 1);
	assert_int_equal(res.decisions, 2);
	/* of the first one nobody knew yet that the other table has it, too */
	expect_tally(NRP_HUGETLB_MAPCOUNT, 1, 0, 1);
	end();
}

/* Any records do no harm, and each decision is counted once. */
static void random_records(void **state)
{
	static const enum nrp_record_kind kinds[] = { NRP_HUGETLB, NRP_MM_CALL, NRP_TASK_LIFE };
	enum { ROWS = 300 };

	(void)state;
	util_seed();
	for (int round = 0; round < 40; round++) {
		begin();
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			size_t size = nrp_kind(kinds[k])->row_size;
			uint8_t *rows = util_alloc_rows(kinds[k], ROWS);

			util_random_rows(kinds[k], rows, ROWS, util_below(1000), 0);
			for (size_t i = 0; i < ROWS; i++)
				lane_put(&file, kinds[k], rows + i * size);
			free(rows);
		}
		lane_ready(&file);
		for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++) {
			run((enum nrp_hugetlb_variant)v, round % 2);
			assert_int_equal(res.decisions, res.tally[v].agree + res.tally[v].disagree +
								res.tally[v].undecided);
			assert_true(res.isolated.lower <= res.isolated.value &&
				    res.isolated.value <= res.isolated.upper);
		}
		end();
	}
}

/* The same of events that could be, in any order. */
static void random_event(void)
{
	int32_t tid = P1 + (int32_t)util_below(3);
	uint64_t k = util_below(4), flags = util_below(8);

	switch (util_below(8)) {
	case 0:
	case 1:
		touch_in(tid, k, util_below(4) ? TABLE : OTHER_TABLE, util_below(8) == 0);
		break;
	case 2:
		call(tid, NRP_CALL_MBIND, BASE, 512 * HUGE, flags, util_below(20));
		break;
	case 3:
		call(tid, NRP_CALL_MUNMAP, BASE + k * HUGE, (1 + util_below(600)) * HUGE, 0, 1);
		break;
	case 4:
		moved(tid, k);
		break;
	case 5:
		if (!util_below(4))
			exits(tid);
		break;
	default:
		walk(tid, k, util_below(2));
		break;
	}
	now += util_below(4);
}

static void random_events(void **state)
{
	(void)state;
	util_seed();
	for (int round = 0; round < 150; round++) {
		begin();
		for (int i = 0; i < 120; i++)
			random_event();
		lane_ready(&file);
		for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++) {
			run((enum nrp_hugetlb_variant)v, round % 2);
			assert_int_equal(res.decisions, res.tally[v].agree + res.tally[v].disagree +
								res.tally[v].undecided);
			assert_true(res.isolated.lower <= res.isolated.value &&
				    res.isolated.value <= res.isolated.upper);
			/* what an own table counts is one thing to both */
			assert_int_equal(res.tally[NRP_HUGETLB_PMD_CHECK].agree,
					 res.tally[NRP_HUGETLB_ADJUSTED].agree);
		}
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_that_counts_mappings_moves_shared_pages),
		cmocka_unit_test(what_the_kernel_left_may_be_in_place),
		cmocka_unit_test(flags_of_the_call),
		cmocka_unit_test(tables_are_left),
		cmocka_unit_test(an_own_table_loses_what_is_unmapped),
		cmocka_unit_test(what_is_not_on_record),
		cmocka_unit_test(another_table),
		cmocka_unit_test(random_records),
		cmocka_unit_test(random_events),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
