/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What migration waits waited for. Hand-made captures: thread 1 of address space MM_A takes the
 * hinting faults, thread 2 waits. A fault at time t attempts from t+10 to t+110.
 */
#include "replay/waits.h"
#include "store_util.h"

#include <string.h>

#define MM_A UINT64_C(0xffff888000001000)
#define MM_B UINT64_C(0xffff888000002000)
#define ADDR UINT64_C(0x7f0000400000) /* aligned to 2 MiB */
#define PAGE_A UINT64_C(0xffffea0000000040)
#define COMPACTION 0

static struct nrp_store *store;
static struct nrp_writer *writer;
static struct nrp_capture capture;
static struct nrp_waits waits;
static struct nrp_error err;

static int open_capture(void **state)
{
	(void)state;
	err = (struct nrp_error)NRP_ERROR_INIT;
	store = util_open("waits.db", NRP_STORE_CREATE);
	util_capture(&capture, "waits", 1);
	capture.facts.page_size = 4096;
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_ok(nrp_store_add_capture(store, &capture, &err), &err);
	assert_ok(nrp_writer_new(&writer, store, capture.id, &err), &err);
	return 0;
}

static int close_capture(void **state)
{
	(void)state;
	nrp_waits_clear(&waits);
	nrp_writer_free(writer);
	nrp_capture_clear(&capture);
	nrp_store_rollback(store);
	nrp_store_close(store);
	return 0;
}

static void append(enum nrp_record_kind kind, const void *row)
{
	assert_ok(nrp_writer_append(writer, kind, row, &err), &err);
}

static void load(void)
{
	assert_ok(nrp_writer_flush(writer, &err), &err);
	assert_ok(nrp_waits_load(&waits, store, &capture, &err), &err);
}

/* A fault whose attempt moves the page; the caller changes what differs. */
static struct nrp_hint_fault fault(uint64_t time, int tid, uint64_t mm, uint64_t addr)
{
	struct nrp_hint_fault f = { .null = ~UINT64_C(0) };

	NRP_SET(&f, hint_fault, time, time);
	NRP_SET(&f, hint_fault, cpu, 0);
	NRP_SET(&f, hint_fault, tid, tid);
	NRP_SET(&f, hint_fault, mm, mm);
	NRP_SET(&f, hint_fault, addr, addr);
	NRP_SET(&f, hint_fault, attempt, NRP_ATTEMPT_FOLIO);
	NRP_SET(&f, hint_fault, attempt_delay, 10);
	NRP_SET(&f, hint_fault, attempt_ns, 100);
	NRP_SET(&f, hint_fault, moved, 1);
	NRP_SET(&f, hint_fault, pages, 1);
	return f;
}

static void add_fault(uint64_t time, int tid, uint64_t mm, uint64_t addr)
{
	struct nrp_hint_fault f = fault(time, tid, mm, addr);

	append(NRP_HINT_FAULT, &f);
}

static void add_wait(uint64_t time, uint64_t ns, int tid, uint64_t mm, uint64_t addr)
{
	struct nrp_migration_wait w = { .null = ~UINT64_C(0) };

	NRP_SET(&w, migration_wait, time, time);
	NRP_SET(&w, migration_wait, end_time, time + ns);
	NRP_SET(&w, migration_wait, cpu, 1);
	NRP_SET(&w, migration_wait, tid, tid);
	NRP_SET(&w, migration_wait, mm, mm);
	NRP_SET(&w, migration_wait, addr, addr);
	append(NRP_MIGRATION_WAIT, &w);
}

static void add_life(uint64_t time, int kind, int tid, int child)
{
	struct nrp_task_life l = { .null = ~UINT64_C(0) };

	NRP_SET(&l, task_life, time, time);
	NRP_SET(&l, task_life, cpu, 0);
	NRP_SET(&l, task_life, kind, (uint8_t)kind);
	NRP_SET(&l, task_life, tid, tid);
	if (kind == NRP_LIFE_FORK)
		NRP_SET(&l, task_life, child_tid, child);
	append(NRP_TASK_LIFE, &l);
}

static void add_entry(uint64_t time, int op, int tid, uint64_t addr)
{
	struct nrp_migration_entry e = { .null = ~UINT64_C(0) };

	NRP_SET(&e, migration_entry, time, time);
	NRP_SET(&e, migration_entry, cpu, 0);
	NRP_SET(&e, migration_entry, tid, tid);
	NRP_SET(&e, migration_entry, op, (uint8_t)op);
	NRP_SET(&e, migration_entry, pmd, 0);
	NRP_SET(&e, migration_entry, addr, addr);
	append(NRP_MIGRATION_ENTRY, &e);
}

/* @start 0: not on record. */
static void add_migration(uint64_t start, uint64_t end, int tid, int reason)
{
	struct nrp_migration m = { .null = ~UINT64_C(0) };

	NRP_SET(&m, migration, time, end);
	if (start)
		NRP_SET(&m, migration, start_time, start);
	NRP_SET(&m, migration, cpu, 0);
	NRP_SET(&m, migration, tid, tid);
	NRP_SET(&m, migration, mode, 0);
	NRP_SET(&m, migration, reason, (uint8_t)reason);
	append(NRP_MIGRATION, &m);
}

static void expect_fault(size_t i, uint64_t time, int tid, enum nrp_wait_evidence evidence,
			 enum nrp_wait_certainty certainty)
{
	const struct nrp_wait *w = &waits.at[i];

	assert_true(i < waits.count);
	assert_int_equal(w->cause, NRP_WAIT_HINT_FAULT);
	assert_int_equal(w->cause_time, time);
	assert_int_equal(w->cause_tid, tid);
	assert_int_equal(w->evidence, evidence);
	assert_int_equal(w->certainty, certainty);
	assert_int_equal(w->reason, NRP_REASON_NUMA_MISPLACED);
}

static void expect_nothing(size_t i)
{
	assert_true(i < waits.count);
	assert_int_equal(waits.at[i].cause, NRP_WAIT_UNATTRIBUTED);
	assert_int_equal(waits.at[i].certainty, NRP_WAIT_UNKNOWN);
	assert_int_equal(waits.at[i].candidates, 0);
}

static void test_no_waits(void **state)
{
	(void)state;
	add_fault(1000, 1, MM_A, ADDR);
	load();
	assert_int_equal(waits.count, 0);
	assert_int_equal(waits.totals.all.waits, 0);
	assert_int_equal(nrp_waits_of_fault(&waits, 1000, 1).certain.waits, 0);
}

static void test_attempt_in_flight_on_the_page(void **state)
{
	struct nrp_fault_waits of;

	(void)state;
	add_fault(1000, 1, MM_A, ADDR);
	add_wait(1009, 7, 2, MM_A, ADDR);          /* the fault began, the attempt did not */
	add_wait(1010, 30, 2, MM_A, ADDR + 0x123); /* its first ns */
	add_wait(1110, 50, 3, MM_A, ADDR);         /* its last */
	add_wait(1050, 1, 2, MM_A, ADDR + 4096);   /* another page */
	add_wait(1051, 1, 2, MM_B, ADDR);          /* another address space */
	load();
	assert_int_equal(waits.count, 5);
	expect_nothing(0);
	expect_fault(1, 1000, 1, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	expect_nothing(2);
	expect_nothing(3);
	expect_fault(4, 1000, 1, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	of = nrp_waits_of_fault(&waits, 1000, 1);
	assert_int_equal(of.certain.waits, 2);
	assert_int_equal(of.certain.ns, 80);
	assert_int_equal(of.possible.waits, 0);
	assert_int_equal(nrp_waits_of_fault(&waits, 1000, 2).certain.waits, 0);
	assert_int_equal(nrp_waits_of_fault(&waits, 1001, 1).certain.waits, 0);
}

static void test_late_waits_need_a_migration_that_was_reached(void **state)
{
	struct nrp_hint_fault f = fault(1000, 1, MM_A, ADDR + 4096);

	(void)state;
	NRP_SET(&f, hint_fault, moved, 0); /* and no mm_migrate_pages: it set no entry */
	append(NRP_HINT_FAULT, &f);
	add_fault(1000, 3, MM_A, ADDR);
	add_fault(2000, 1, MM_A, ADDR);
	add_wait(2110 + NRP_WAIT_LATE_NS, 5, 2, MM_A, ADDR);
	add_wait(2111 + NRP_WAIT_LATE_NS, 5, 2, MM_A, ADDR);
	add_wait(1500, 5, 2, MM_A, ADDR + 4096);
	load();
	expect_nothing(0);
	expect_fault(1, 2000, 1, NRP_WAIT_SAME_MM, NRP_WAIT_LATE); /* the last one that ended */
	assert_int_equal(waits.at[1].candidates, 1);
	expect_nothing(2);
	assert_int_equal(nrp_waits_of_fault(&waits, 2000, 1).certain.waits, 1);
	assert_int_equal(nrp_waits_of_fault(&waits, 1000, 3).certain.waits, 0);
}

static void test_what_sets_no_entry_is_no_cause(void **state)
{
	struct nrp_hint_fault f = fault(1000, 1, MM_A, ADDR);

	(void)state;
	f.attempt = NRP_ATTEMPT_THP;
	append(NRP_HINT_FAULT, &f);
	f = fault(2000, 1, MM_A, ADDR);
	NRP_SET(&f, hint_fault, ratelimited, 1);
	append(NRP_HINT_FAULT, &f);
	f = fault(3000, 1, MM_A, ADDR);
	NRP_SET(&f, hint_fault, prepare_result, -11);
	append(NRP_HINT_FAULT, &f);
	f = fault(4000, 1, MM_A, ADDR);
	f.attempt = NRP_ATTEMPT_NONE;
	append(NRP_HINT_FAULT, &f);
	add_fault(5000, 2, MM_A, ADDR); /* the waiter's own */
	for (uint64_t t = 1000; t <= 5000; t += 1000)
		add_wait(t + 50, 5, 2, MM_A, ADDR);
	load();
	for (size_t i = 0; i < 5; i++)
		expect_nothing(i);
}

static void test_forked_readers_share_pages(void **state)
{
	(void)state;
	add_life(100, NRP_LIFE_FORK, 1, 2); /* 2 keeps the layout */
	add_life(110, NRP_LIFE_FORK, 1, 3); /* 3 runs something else */
	add_life(120, NRP_LIFE_EXEC, 3, 0);
	add_life(130, NRP_LIFE_FORK, 2, 4); /* a grandchild */
	add_fault(1000, 1, MM_A, ADDR);
	add_wait(1020, 5, 2, MM_B, ADDR);
	add_wait(1030, 5, 3, MM_B + 64, ADDR);
	add_wait(1040, 5, 4, MM_B + 128, ADDR);
	add_wait(1050, 5, 4, MM_B + 192, ADDR); /* 4 called exec, or borrowed it: not on record */
	load();
	expect_nothing(3);
	expect_fault(0, 1000, 1, NRP_WAIT_RELATED_MM, NRP_WAIT_EXACT);
	expect_nothing(1);
	expect_fault(2, 1000, 1, NRP_WAIT_RELATED_MM, NRP_WAIT_EXACT);
	assert_int_equal(waits.at[0].cause_mm, MM_A);
}

/* Thread @tid of @mm faulted on @page, without an attempt. */
static void add_sighting(uint64_t time, int tid, uint64_t mm, uint64_t addr, uint64_t page,
			 int mapcount)
{
	struct nrp_hint_fault f = fault(time, tid, mm, addr);

	f.attempt = NRP_ATTEMPT_NONE;
	f.null |= NRP_BIT(hint_fault, moved);
	NRP_SET(&f, hint_fault, page, page);
	NRP_SET(&f, hint_fault, mapcount, mapcount);
	append(NRP_HINT_FAULT, &f);
}

static void test_forks_before_the_capture_show_in_shared_pages(void **state)
{
	(void)state;
	add_sighting(100, 1, MM_A, ADDR + 0x9000, PAGE_A, 7);
	add_sighting(110, 2, MM_B, ADDR + 0x9000, PAGE_A, 7);
	/* A page mapped once, reused by somebody else: no proof. */
	add_sighting(120, 1, MM_A, ADDR + 0x8000, PAGE_A + 64, 0);
	add_sighting(130, 3, MM_B + 64, ADDR + 0x8000, PAGE_A + 64, 0);
	/* Shared memory at another address: not the same layout. */
	add_sighting(140, 4, MM_B + 128, ADDR + 0x7000, PAGE_A, 7);
	add_fault(1000, 1, MM_A, ADDR);
	add_wait(1020, 5, 2, MM_B, ADDR);
	add_wait(1030, 5, 3, MM_B + 64, ADDR);
	add_wait(1040, 5, 4, MM_B + 128, ADDR);
	load();
	expect_fault(0, 1000, 1, NRP_WAIT_RELATED_MM, NRP_WAIT_EXACT);
	expect_nothing(1);
	expect_nothing(2);
}

static void test_one_struct_page_at_two_addresses(void **state)
{
	struct nrp_hint_fault f = fault(1000, 1, MM_A, ADDR);

	(void)state;
	add_sighting(100, 2, MM_B, ADDR + 0x5000, PAGE_A, 1);
	add_sighting(110, 2, MM_B, ADDR + 0x6000, PAGE_A + 64, 1);
	NRP_SET(&f, hint_fault, page, PAGE_A);
	append(NRP_HINT_FAULT, &f);
	add_wait(1020, 5, 2, MM_B, ADDR + 0x5000);
	add_wait(1030, 5, 2, MM_B, ADDR + 0x6000);
	load();
	expect_fault(0, 1000, 1, NRP_WAIT_SHARED_PAGE, NRP_WAIT_EXACT);
	expect_nothing(1);
}

static void test_several_candidates(void **state)
{
	struct nrp_hint_fault f;
	struct nrp_fault_waits of;

	(void)state;
	/* One moved the page, the other found it taken. */
	add_fault(1000, 1, MM_A, ADDR);
	f = fault(1020, 3, MM_A, ADDR);
	NRP_SET(&f, hint_fault, moved, 0);
	append(NRP_HINT_FAULT, &f);
	add_wait(1050, 5, 2, MM_A, ADDR);
	/* Both came to migrate_pages(). */
	add_fault(20001000, 1, MM_A, ADDR);
	f = fault(20001020, 3, MM_A, ADDR);
	NRP_SET(&f, hint_fault, moved, 0);
	NRP_SET(&f, hint_fault, migrated_pages, 0);
	append(NRP_HINT_FAULT, &f);
	add_wait(20001050, 7, 2, MM_A, ADDR);
	load();
	expect_fault(0, 1000, 1, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	expect_fault(1, 20001020, 3, NRP_WAIT_SAME_MM, NRP_WAIT_AMBIGUOUS);
	assert_int_equal(waits.at[1].candidates, 2);
	of = nrp_waits_of_fault(&waits, 20001000, 1);
	assert_int_equal(of.certain.waits, 0);
	assert_int_equal(of.possible.waits, 1);
	assert_int_equal(of.possible.ns, 7);
	assert_int_equal(nrp_waits_of_fault(&waits, 20001020, 3).possible.waits, 1);
	assert_int_equal(nrp_waits_of_fault(&waits, 1020, 3).possible.waits, 0);
}

static void test_folios_cover_their_pages(void **state)
{
	struct nrp_hint_fault f = fault(1000, 1, MM_A, ADDR + 0x13000);

	(void)state;
	f.pages = 16; /* head: ADDR + 0x10000 */
	append(NRP_HINT_FAULT, &f);
	add_wait(1020, 5, 2, MM_A, ADDR + 0xf000);
	add_wait(1030, 5, 2, MM_A, ADDR + 0x10000);
	add_wait(1040, 5, 2, MM_A, ADDR + 0x1ffff);
	add_wait(1050, 5, 2, MM_A, ADDR + 0x20000);
	load();
	expect_nothing(0);
	expect_fault(1, 1000, 1, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	expect_fault(2, 1000, 1, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	expect_nothing(3);
}

static void test_migration_entries_name_the_address(void **state)
{
	(void)state;
	/* Shared memory: thread 1 faults at ADDR, its entry for MM_B is elsewhere. */
	add_fault(1000, 1, MM_A, ADDR);
	add_entry(1030, 0, 1, ADDR);
	add_entry(1031, 0, 1, ADDR + 0x5000);
	add_wait(1029, 5, 2, MM_B, ADDR + 0x5000); /* not set yet */
	add_wait(1050, 5, 2, MM_B, ADDR + 0x5000);
	add_wait(1051, 5, 2, MM_A, ADDR);
	/* An unrelated address space with the same layout: the entry is the fault's own. */
	add_wait(1052, 5, 2, MM_B, ADDR);
	/* The same thread's attempt on another page begins in the same ns as this one ends. */
	add_fault(1100, 1, MM_A, ADDR + 0x9000);
	add_entry(1110, 0, 1, ADDR + 0x9000);
	add_wait(1110, 5, 2, MM_A, ADDR + 0x9000);
	load();
	expect_nothing(0);
	expect_fault(1, 1000, 1, NRP_WAIT_ENTRY, NRP_WAIT_EXACT);
	expect_fault(2, 1000, 1, NRP_WAIT_ENTRY, NRP_WAIT_EXACT);
	expect_nothing(3);
	expect_fault(4, 1100, 1, NRP_WAIT_ENTRY, NRP_WAIT_EXACT);
}

static void test_migrations_for_other_reasons(void **state)
{
	(void)state;
	/* Under way, page unknown. */
	add_migration(1000, 1200, 9, COMPACTION);
	add_wait(1100, 5, 2, MM_A, ADDR);
	/* Its entry names the page. */
	add_migration(50002000, 50002200, 9, COMPACTION);
	add_entry(50002010, 0, 9, ADDR);
	add_wait(50002100, 5, 2, MM_A, ADDR);
	/* Before 6.1: no start. */
	add_migration(0, 90000000, 9, COMPACTION);
	add_wait(90000000 - NRP_WAIT_LATE_NS - 1, 5, 2, MM_A, ADDR);
	add_wait(90000000 - NRP_WAIT_LATE_NS, 5, 2, MM_A, ADDR);
	/* A hinting fault on the page goes before what is only under way. */
	add_migration(200000000, 200001000, 9, COMPACTION);
	add_fault(200000100, 1, MM_A, ADDR);
	add_wait(200000150, 5, 2, MM_A, ADDR);
	/* NUMA migrations are those of hinting faults: without one on record nobody is blamed. */
	add_migration(300000000, 300001000, 9, NRP_REASON_NUMA_MISPLACED);
	add_wait(300000150, 5, 2, MM_A, ADDR);
	load();
	for (size_t i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		assert_int_equal(waits.at[i].cause, NRP_WAIT_OTHER_MIGRATION);
		assert_int_equal(waits.at[i].reason, COMPACTION);
		assert_int_equal(waits.at[i].cause_tid, 9);
		assert_int_equal(waits.at[i].certainty,
				 i == 1 ? NRP_WAIT_EXACT : NRP_WAIT_AMBIGUOUS);
		assert_int_equal(waits.at[i].evidence,
				 i == 1 ? NRP_WAIT_ENTRY : NRP_WAIT_IN_FLIGHT);
	}
	assert_int_equal(waits.at[0].cause_time, 1200);
	expect_nothing(2);
	expect_fault(4, 200000100, 1, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	expect_nothing(5);
	assert_int_equal(waits.nr_links, 1);
}

static void test_attempts_whose_end_was_lost(void **state)
{
	struct nrp_hint_fault f = fault(1000, 1, MM_A, ADDR);

	(void)state;
	f.null |= NRP_BIT(hint_fault, attempt_ns);
	f.attempt_ns = 0;
	append(NRP_HINT_FAULT, &f);
	f.addr = ADDR + 4096;
	f.tid = 3;
	NRP_SET(&f, hint_fault, end_delay, 500);
	append(NRP_HINT_FAULT, &f);
	add_wait(30000000, 5, 2, MM_A, ADDR);
	add_wait(30000001, 5, 2, MM_A, ADDR + 4096); /* task_fault ended it long ago */
	add_sighting(50000000, 1, MM_A, ADDR + 0x9000, PAGE_A, 0);
	add_wait(70000000, 5, 2, MM_A, ADDR); /* the thread has gone on */
	load();
	expect_fault(0, 1000, 1, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	expect_nothing(1);
	expect_nothing(2);
}

static void test_missing_facts(void **state)
{
	struct nrp_migration_wait w = { .null = ~UINT64_C(0) };

	(void)state;
	add_fault(1000, 1, MM_A, ADDR);
	NRP_SET(&w, migration_wait, time, 1050);
	NRP_SET(&w, migration_wait, tid, 2);
	append(NRP_MIGRATION_WAIT, &w); /* neither address nor end */
	NRP_SET(&w, migration_wait, mm, MM_A);
	NRP_SET(&w, migration_wait, addr, ADDR);
	append(NRP_MIGRATION_WAIT, &w); /* no end */
	load();
	expect_nothing(0);
	assert_true(waits.at[0].open);
	expect_fault(1, 1000, 1, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	assert_int_equal(waits.totals.open, 2);
	assert_int_equal(waits.totals.all.waits, 2);
	assert_int_equal(waits.totals.all.ns, 0);
	assert_int_equal(waits.totals.max_ns, 0);
}

static void test_totals_and_processes(void **state)
{
	struct nrp_hint_fault f = fault(1000, 1, MM_A, ADDR);

	(void)state;
	add_life(10, NRP_LIFE_FORK, 1, 2);
	NRP_SET(&f, hint_fault, tgid, 77);
	append(NRP_HINT_FAULT, &f);
	/* 100 waits of 1 .. 100 ns: 60 of the other process, 40 of a thread of the same. */
	for (uint64_t i = 1; i <= 100; i++)
		add_wait(1010 + i - 1, i, i <= 60 ? 2 : 3, i <= 60 ? MM_B : MM_A, ADDR);
	add_wait(900000000, 1000, 2, MM_B, ADDR);
	load();
	assert_int_equal(waits.totals.all.waits, 101);
	assert_int_equal(waits.totals.all.ns, 5050 + 1000);
	assert_int_equal(waits.totals.by_cause[NRP_WAIT_HINT_FAULT].waits, 100);
	assert_int_equal(waits.totals.by_cause[NRP_WAIT_HINT_FAULT].ns, 5050);
	assert_int_equal(waits.totals.by_cause[NRP_WAIT_UNATTRIBUTED].ns, 1000);
	assert_int_equal(waits.totals.by_certainty[NRP_WAIT_EXACT].waits, 100);
	/* Nearest rank of 101: the 51st, the 100th, the last. */
	assert_int_equal(waits.totals.p50_ns, 51);
	assert_int_equal(waits.totals.p99_ns, 100);
	assert_int_equal(waits.totals.max_ns, 1000);
	assert_int_equal(waits.nr_processes, 2);
	assert_int_equal(waits.process[0].mm, MM_A);
	assert_int_equal(waits.process[0].tgid, 77);
	assert_int_equal(waits.process[0].waited, 40);
	assert_int_equal(waits.process[0].waited_ns, 5050 - 1830);
	assert_int_equal(waits.process[0].caused, 100);
	assert_int_equal(waits.process[0].caused_ns, 5050);
	assert_int_equal(waits.process[1].mm, MM_B);
	assert_int_equal(waits.process[1].tgid, -1);
	assert_int_equal(waits.process[1].waited, 61);
	assert_int_equal(waits.process[1].waited_ns, 1830 + 1000);
	assert_int_equal(waits.process[1].caused, 0);
}

static void test_many_attempts_in_flight(void **state)
{
	(void)state;
	/* 1000 threads, one attempt each, over 20 ms: old ones are dropped, none too early. */
	for (int i = 0; i < 1000; i++)
		add_fault(1000 + (uint64_t)i * 20000, 100 + i, MM_A, ADDR + (uint64_t)i * 4096);
	for (int i = 0; i < 1000; i++)
		add_wait(1050 + (uint64_t)i * 20000, 5, 2, MM_A, ADDR + (uint64_t)i * 4096);
	add_wait(1050 + 999 * 20000, 5, 2, MM_A, ADDR + 501 * 4096); /* ended 9.96 ms before */
	load();
	for (size_t i = 0; i < 1000; i++)
		expect_fault(i, 1000 + i * 20000, 100 + (int)i, NRP_WAIT_SAME_MM, NRP_WAIT_EXACT);
	expect_fault(1000, 1000 + 501 * 20000, 601, NRP_WAIT_SAME_MM, NRP_WAIT_LATE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_capture, close_capture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_waits),
		TEST(test_attempt_in_flight_on_the_page),
		TEST(test_late_waits_need_a_migration_that_was_reached),
		TEST(test_what_sets_no_entry_is_no_cause),
		TEST(test_forked_readers_share_pages),
		TEST(test_forks_before_the_capture_show_in_shared_pages),
		TEST(test_one_struct_page_at_two_addresses),
		TEST(test_several_candidates),
		TEST(test_folios_cover_their_pages),
		TEST(test_migration_entries_name_the_address),
		TEST(test_migrations_for_other_reasons),
		TEST(test_attempts_whose_end_was_lost),
		TEST(test_missing_facts),
		TEST(test_totals_and_processes),
		TEST(test_many_attempts_in_flight),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
