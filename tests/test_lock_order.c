/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recorded orders of grants that the rule of mmap_locks allows, and some that it does not. In us.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replay/lock_order.h"

#include <string.h>

#define US UINT64_C(1000)
#define NEVER UINT64_MAX
#define MAX_JOBS 8

static struct nrp_lock_job job[MAX_JOBS];
static struct nrp_lock_seen seen[MAX_JOBS];
static struct nrp_lock_mm mm;

static void begin(void)
{
	memset(job, 0, sizeof(job));
	memset(seen, 0, sizeof(seen));
	mm = (struct nrp_lock_mm){ .mm = 0xabc, .job = job, .seen = seen };
}

/* Jobs in the order of their requests; thread 1, 2, .. @granted NEVER: not before the end. */
static void add(enum nrp_lock_kind kind, uint64_t requested, uint64_t granted, uint64_t released)
{
	uint32_t i = mm.nr_jobs++;

	job[i] = (struct nrp_lock_job){ .kind = kind, .give_up = NEVER };
	seen[i] = (struct nrp_lock_seen){
		.tid = (int32_t)i + 1,
		.write = kind == NRP_LOCK_WRITER || kind == NRP_LOCK_MUNMAP,
		.requested = requested * US,
		.granted = granted == NEVER ? NEVER : granted * US,
		.downgraded = NEVER,
		.released = released == NEVER ? NEVER : released * US,
	};
}

static void reads(uint64_t requested, uint64_t granted, uint64_t released)
{
	add(NRP_LOCK_FAULT, requested, granted, released);
}

static void writes(uint64_t requested, uint64_t granted, uint64_t released)
{
	add(NRP_LOCK_WRITER, requested, granted, released);
}

/* What takes up to 2 us is at once; woken waiters need up to 50 us. */
static struct nrp_lock_order check(bool prefix)
{
	const struct nrp_lock_order_params params = { prefix, 2 * US, 50 * US };
	struct nrp_lock_order order = { 0 };

	assert_int_equal(nrp_lock_order_add(&order, &mm, &params), 0);
	assert_int_equal(order.grants, order.in_line + order.together + order.spinning +
					       order.stolen + order.against);
	return order;
}

static void first_come_first_served(void **state)
{
	struct nrp_lock_order o;

	(void)state;
	begin();
	writes(0, 1, 100);
	reads(10, 103, 200); /* two readers together */
	reads(20, 102, 210);
	writes(30, 212, 300); /* behind both */
	o = check(false);
	assert_int_equal(o.in_line, 4);
	assert_int_equal(check(true).in_line, 4);
}

/* V-3 of the spec: the readers in line get it with the first of them, or up to the writer. */
static void readers_go_together_past_a_writer(void **state)
{
	struct nrp_lock_order o;

	(void)state;
	begin();
	writes(0, 1, 1020);
	reads(2, 1021, 1025);
	writes(5, 1027, 1045);
	reads(8, 1022, 1026);
	o = check(false);
	assert_int_equal(o.in_line, 3);
	assert_int_equal(o.together, 1);
	o = check(true);
	assert_int_equal(o.against, 1);
	assert_int_equal(o.listed[0].tid, 4);
	assert_int_equal(o.listed[0].passed, 3);
}

/* V-2: a downgrade wakes no reader behind a writer. */
static void a_downgrade_lets_readers_in_unless_a_writer_is_first(void **state)
{
	(void)state;
	begin();
	add(NRP_LOCK_MUNMAP, 0, 0, 1020);
	seen[0].downgraded = 10 * US;
	reads(5, 11, 50); /* the head: let in */
	assert_int_equal(check(false).in_line, 2);
	writes(100, 1021, 1040);
	reads(110, 1042, 1050); /* waits behind the writer, and so shows that it is in line */
	assert_int_equal(check(false).in_line, 4);
	reads(200, 201, 205); /* and this one cannot have found no line */
	assert_int_equal(check(false).against, 1);
}

static void a_writer_that_spins_is_in_no_line(void **state)
{
	struct nrp_lock_order o;

	(void)state;
	begin();
	reads(0, 1, 500);
	writes(10, 501, 520);
	reads(40, 41, 60); /* at once */
	reads(70, 72, 90);
	o = check(false);
	assert_int_equal(o.in_line, 2);
	assert_int_equal(o.spinning, 2);
	assert_int_equal(o.longest_spin, 60 * US);
	seen[3].granted = 73 * US; /* not at once: it was in line, and not behind the writer */
	assert_int_equal(check(false).against, 1);
}

/* From 100 on it stands free; the waiter runs at 140. */
static void a_free_lock_is_taken_before_the_waiter_runs(void **state)
{
	struct nrp_lock_order o;

	(void)state;
	begin();
	writes(0, 1, 100);
	writes(50, 140, 160);
	reads(110, 112, 120);
	o = check(false);
	assert_int_equal(o.in_line, 2);
	assert_int_equal(o.stolen, 1);
	assert_int_equal(check(true).against, 1); /* readers could not */
	job[2].kind = NRP_LOCK_SCAN;              /* nor does a mere try */
	assert_int_equal(check(false).against, 1);
}

/* 4 ms and 50 us after the waiter's chance at 100 it is the waiter's. */
static void a_free_lock_is_kept_for_one_who_waited_long(void **state)
{
	(void)state;
	begin();
	writes(0, 1, 100);
	writes(50, 9000, 9100);
	writes(4000, 4150, 4160);
	assert_int_equal(check(false).stolen, 1);
	seen[2].granted = 4151 * US;
	assert_int_equal(check(false).against, 1);
}

static void two_cannot_have_it(void **state)
{
	struct nrp_lock_order o;

	(void)state;
	begin();
	writes(0, 1, 100);
	reads(10, 99, 200);
	writes(150, 160, 170);
	o = check(false);
	assert_int_equal(o.in_line, 1);
	assert_int_equal(o.against, 2);
	assert_int_equal(o.nr_listed, 2);
	assert_string_equal(o.listed[0].what, "another task held it for writing");
	assert_int_equal(o.listed[0].passed, 1);
	assert_string_equal(o.listed[1].what, "other tasks held it for reading");
	assert_int_equal(o.listed[1].tid, 3);
	assert_int_equal(o.listed[1].mm, 0xabc);
}

/* A clock that stands still: every job takes the lock and gives it back before the next. */
static void at_one_time_jobs_follow_each_other(void **state)
{
	(void)state;
	begin();
	reads(10, 50, 50);
	writes(50, 50, 50);
	reads(50, 50, 50);
	writes(50, 50, 60);
	reads(50, 61, 62);
	assert_int_equal(check(false).in_line, 5);
}

static void who_gives_up_is_in_nobodys_way(void **state)
{
	(void)state;
	begin();
	reads(0, 1, 500);
	writes(10, NEVER, NEVER);
	reads(20, 205, 300); /* behind the writer until that is killed at 200 */
	assert_int_equal(check(false).against, 1);
	job[1].give_up = 200 * US;
	assert_int_equal(check(false).against, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_come_first_served),
		cmocka_unit_test(readers_go_together_past_a_writer),
		cmocka_unit_test(a_downgrade_lets_readers_in_unless_a_writer_is_first),
		cmocka_unit_test(a_writer_that_spins_is_in_no_line),
		cmocka_unit_test(a_free_lock_is_taken_before_the_waiter_runs),
		cmocka_unit_test(a_free_lock_is_kept_for_one_who_waited_long),
		cmocka_unit_test(two_cannot_have_it),
		cmocka_unit_test(at_one_time_jobs_follow_each_other),
		cmocka_unit_test(who_gives_up_is_in_nobodys_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
