/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs made of recorded mmap_lock events; what fits into none. Times are us. */
#include "replay/lock_jobs.h"
#include "tests/lock_records.h"

#include <string.h>

#define OTHER_MM UINT64_C(0xff11000000141000)
#define TASK 100

static struct lane_file file;
static struct nrp_lock_jobs jobs;

/* ---- the capture ---------------------------------------------------------------------- */

static void begin(void)
{
	static const char *const probes[] = { "mmap_lock_start_locking", NULL };

	lane_begin(&file, probes);
}

static void event_of(int32_t tid, uint64_t mm, int op, bool write, uint64_t us)
{
	record_lock(&file, tid, mm, op, write, us);
}

static void request(bool write, uint64_t us)
{
	event_of(TASK, MM, NRP_LOCK_REQUEST, write, us);
}

static void grant(bool write, uint64_t us)
{
	event_of(TASK, MM, NRP_LOCK_GRANT, write, us);
}

static void fail_at(uint64_t us)
{
	event_of(TASK, MM, NRP_LOCK_FAILED, false, us);
}

static void release(bool write, uint64_t us)
{
	event_of(TASK, MM, NRP_LOCK_RELEASE, write, us);
}

static void exception(uint64_t us)
{
	record_exception(&file, TASK, RANGE + 4096, us);
}

static void pass(uint64_t us, uint64_t end_us)
{
	record_pass(&file, TASK, us, end_us);
}

static void call(uint64_t us, uint64_t end_us, uint64_t len)
{
	record_call(&file, TASK, NRP_CALL_MUNMAP, us, end_us, len);
}

/* Phases at 20, 30 and 90 us of an unmap that begins at 15. */
static void phases(uint64_t len)
{
	record_munmap(&file, TASK, 15, 20, 30, 90, 95, len);
}

static void load(void)
{
	struct nrp_error err = NRP_ERROR_INIT;

	lane_ready(&file);
	assert_ok(nrp_lock_jobs_load(&jobs, file.store, &file.capture, &err), &err);
}

static void end(void)
{
	nrp_lock_jobs_clear(&jobs);
	lane_end(&file);
}

static void job_is(uint32_t i, enum nrp_lock_kind kind, uint64_t requested, uint64_t granted,
		   uint64_t hold)
{
	assert_true(i < jobs.mm[0].nr_jobs);
	assert_int_equal(jobs.mm[0].job[i].kind, kind);
	assert_int_equal(jobs.mm[0].seen[i].requested, requested * US);
	assert_int_equal(jobs.mm[0].job[i].arrival, requested * US);
	assert_int_equal(jobs.mm[0].seen[i].granted, granted * US);
	assert_int_equal(jobs.mm[0].job[i].hold, hold * US);
}

static void work_is(uint32_t i, uint64_t find, uint64_t zap, uint64_t pgtables, uint64_t left)
{
	const struct nrp_munmap_work *w = jobs.mm[0].job[i].work;

	assert_int_equal(jobs.mm[0].job[i].kind, NRP_LOCK_MUNMAP);
	assert_int_equal(w->find + w->detach, find * US);
	assert_int_equal(w->zap, zap * US);
	assert_int_equal(w->pgtables, pgtables * US);
	assert_int_equal(w->free, left * US);
}

/* ---- requests ------------------------------------------------------------------------- */

static void a_fault_tries_first_and_waits_from_its_try_on(void **state)
{
	(void)state;
	begin();
	exception(10);
	request(false, 11);
	fail_at(12);
	request(false, 13);
	grant(false, 50);
	release(false, 60);
	request(false, 70);
	grant(false, 71);
	release(false, 75);
	load();
	assert_int_equal(jobs.mm[0].nr_jobs, 2);
	job_is(0, NRP_LOCK_FAULT, 11, 50, 10);
	assert_true(jobs.mm[0].seen[0].failed_first);
	job_is(1, NRP_LOCK_READER, 70, 71, 4);
	assert_int_equal(jobs.mm[0].job[1].after, 0);
	assert_int_equal(jobs.counts.impossible, 0);
	end();
}

/* A task that gives up its scan and reads later, in no other fault, scans no more. */
static void a_skipped_scan_stays_skipped(void **state)
{
	(void)state;
	begin();
	exception(5);
	pass(10, 20);
	request(false, 12);
	fail_at(13);
	request(false, 40);
	grant(false, 41);
	release(false, 44);
	load();
	assert_int_equal(jobs.mm[0].nr_jobs, 2);
	assert_int_equal(jobs.mm[0].job[0].kind, NRP_LOCK_SCAN);
	assert_int_equal(jobs.mm[0].seen[0].granted, UINT64_MAX);
	job_is(1, NRP_LOCK_READER, 40, 41, 3);
	end();
}

/* On kernels with locks of VMAs most faults come to no mmap_lock; a later reader is not theirs. */
static void an_exception_that_is_over_owns_no_reader(void **state)
{
	(void)state;
	begin();
	exception(10);
	request(true, 20);
	grant(true, 21);
	release(true, 25);
	request(false, 30);
	grant(false, 31);
	release(false, 33);
	load();
	job_is(0, NRP_LOCK_WRITER, 20, 21, 4);
	job_is(1, NRP_LOCK_READER, 30, 31, 2);
	assert_int_equal(jobs.counts.faults, 0);
	end();
}

/* An event carries no order among records of one time: a release there is the fault's before. */
static void a_release_at_the_time_of_the_next_exception(void **state)
{
	(void)state;
	begin();
	exception(10);
	request(false, 11);
	grant(false, 12);
	release(false, 20);
	exception(20);
	request(false, 21);
	grant(false, 22);
	release(false, 23);
	load();
	job_is(0, NRP_LOCK_FAULT, 11, 12, 8);
	job_is(1, NRP_LOCK_FAULT, 21, 22, 1);
	end();
}

static void without_exceptions_only_what_follows_at_once_belongs_to_a_try(void **state)
{
	(void)state;
	begin();
	request(false, 10);
	fail_at(11);
	request(false, 12);
	grant(false, 20);
	release(false, 25);
	request(false, 30);
	fail_at(31);
	request(false, 5000);
	grant(false, 5001);
	release(false, 5002);
	load();
	assert_int_equal(jobs.mm[0].nr_jobs, 2);
	job_is(0, NRP_LOCK_READER, 10, 20, 5);
	job_is(1, NRP_LOCK_READER, 5000, 5001, 1);
	assert_int_equal(jobs.counts.failed_tries, 1);
	end();
}

/* khugepaged tries to write; what it reads next is another matter. */
static void a_failed_try_to_write_is_no_reader(void **state)
{
	(void)state;
	begin();
	request(true, 10);
	event_of(TASK, MM, NRP_LOCK_FAILED, true, 11);
	request(false, 12);
	grant(false, 13);
	release(false, 14);
	load();
	assert_int_equal(jobs.mm[0].nr_jobs, 1);
	job_is(0, NRP_LOCK_READER, 12, 13, 1);
	assert_int_equal(jobs.counts.failed_tries, 1);
	assert_int_equal(jobs.counts.impossible, 0);
	end();
}

/* A task may hold the locks of two address spaces: fork, process_vm_readv(). */
static void two_address_spaces_at_once(void **state)
{
	(void)state;
	begin();
	event_of(TASK, MM, NRP_LOCK_REQUEST, true, 10);
	event_of(TASK, MM, NRP_LOCK_GRANT, true, 11);
	event_of(TASK, OTHER_MM, NRP_LOCK_REQUEST, true, 12);
	event_of(TASK, OTHER_MM, NRP_LOCK_GRANT, true, 13);
	event_of(TASK, OTHER_MM, NRP_LOCK_RELEASE, true, 20);
	event_of(TASK, MM, NRP_LOCK_RELEASE, true, 30);
	load();
	assert_int_equal(jobs.nr_mms, 2);
	job_is(0, NRP_LOCK_WRITER, 10, 11, 19);
	assert_int_equal(jobs.mm[1].job[0].hold, 7 * US);
	assert_int_equal(jobs.counts.impossible, 0);
	end();
}

/* ---- what cannot be ------------------------------------------------------------------- */

static void a_lost_release_ends_when_the_task_asks_again(void **state)
{
	(void)state;
	begin();
	request(false, 10);
	grant(false, 11);
	request(false, 30);
	grant(false, 31);
	release(false, 35);
	event_of(TASK + 1, MM, NRP_LOCK_REQUEST, true, 90000);
	event_of(TASK + 1, MM, NRP_LOCK_GRANT, true, 90001);
	event_of(TASK + 1, MM, NRP_LOCK_RELEASE, true, 90002);
	load();
	job_is(0, NRP_LOCK_READER, 10, 11, 19);
	assert_true(jobs.mm[0].seen[0].release_lost);
	job_is(1, NRP_LOCK_READER, 30, 31, 4);
	assert_int_equal(jobs.counts.impossible, 1);
	assert_int_equal(jobs.counts.listed[0].time, 31 * US);
	assert_int_equal(jobs.counts.listed[0].tid, TASK);
	assert_int_equal(jobs.counts.listed[0].mm, MM);
	assert_int_equal(jobs.counts.listed[0].what, NRP_LOCK_ODD_STILL_HELD);
	end();
}

/* The first event of a task in an address space may follow on what the capture does not have. */
static void what_cannot_be_is_counted_and_listed(void **state)
{
	static const struct {
		uint64_t us;
		enum nrp_lock_oddity what;
	} want[] = {
		{ 13, NRP_LOCK_ODD_UNASKED_GRANT },  { 14, NRP_LOCK_ODD_UNASKED_FAILURE },
		{ 15, NRP_LOCK_ODD_UNHELD_RELEASE }, { 18, NRP_LOCK_ODD_DOWNGRADE },
		{ 19, NRP_LOCK_ODD_OTHER_RELEASE },  { 21, NRP_LOCK_ODD_OTHER_MODE },
		{ 24, NRP_LOCK_ODD_ASKS_TWICE },
	};
	const struct nrp_lock_counts *n = &jobs.counts;

	(void)state;
	begin();
	grant(true, 10);    /* asked for before the capture: possible */
	release(true, 12);  /* of that one */
	grant(true, 13);    /* not asked for */
	fail_at(14);        /* not asked for */
	release(false, 15); /* nobody has it */
	request(false, 16);
	grant(false, 17);
	grant(false, 18);  /* a reader has nothing to downgrade */
	release(true, 19); /* of the other kind */
	request(false, 20);
	grant(true, 21); /* of the other kind */
	for (uint64_t i = 0; i < 20; i++)
		request(false, 24 + i); /* the one at 20 still waits */
	load();
	assert_int_equal(n->began_before, 1);
	assert_int_equal(n->impossible, 6 + 20);
	assert_int_equal(n->undecided, 0);
	assert_int_equal(n->impossible_by[NRP_LOCK_ODD_ASKS_TWICE], 20);
	assert_int_equal(n->nr_listed, NRP_LOCK_JOBS_LISTED);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(n->listed[i].time, want[i].us * US);
		assert_int_equal(n->listed[i].what, want[i].what);
		assert_int_equal(n->impossible_by[want[i].what],
				 want[i].what == NRP_LOCK_ODD_ASKS_TWICE ? 20 : 1);
		assert_false(n->listed[i].undecided);
	}
	assert_int_equal(jobs.mm[0].seen[0].downgraded, UINT64_MAX);
	end();
}

/* 18 us after its request: nobody writes while others hold the lock. */
static void two_holders_of_which_one_writes(void **state)
{
	(void)state;
	begin();
	request(false, 10);
	grant(false, 11);
	event_of(TASK + 1, MM, NRP_LOCK_REQUEST, false, 12);
	event_of(TASK + 1, MM, NRP_LOCK_GRANT, false, 13); /* two readers */
	event_of(TASK + 2, MM, NRP_LOCK_REQUEST, true, 14);
	event_of(TASK + 2, MM, NRP_LOCK_GRANT, true, 32);
	event_of(TASK + 1, MM, NRP_LOCK_RELEASE, false, 33);
	event_of(TASK + 2, MM, NRP_LOCK_GRANT, false, 34); /* a downgrade: readers again */
	event_of(TASK + 3, MM, NRP_LOCK_REQUEST, false, 35);
	event_of(TASK + 3, MM, NRP_LOCK_GRANT, false, 36);
	event_of(TASK + 3, MM, NRP_LOCK_RELEASE, false, 37);
	event_of(TASK + 2, MM, NRP_LOCK_RELEASE, false, 38);
	release(false, 39);
	load();
	assert_int_equal(jobs.counts.impossible, 1);
	assert_int_equal(jobs.counts.listed[0].what, NRP_LOCK_ODD_OVERLAP);
	assert_int_equal(jobs.counts.listed[0].time, 32 * US);
	assert_int_equal(jobs.counts.listed[0].tid, TASK + 2);
	end();
}

/* ---- lost events ---------------------------------------------------------------------- */

static void loss(uint32_t cpu, uint64_t us, uint64_t end_us)
{
	LANE_ROW(loss, l, us * US);
	NRP_SET(&l, loss, end_time, end_us * US);
	NRP_SET(&l, loss, cpu, cpu);
	NRP_SET(&l, loss, count, 3);
	lane_put(&file, NRP_LOSS, &l);
}

/* The release of the first hold may be among the lost events; that of the second is not. */
static void what_lost_events_may_explain_is_undecided(void **state)
{
	(void)state;
	begin();
	loss(5, 15, 25);
	request(false, 10);
	grant(false, 11);
	request(false, 30);
	grant(false, 31);
	request(false, 40);
	grant(false, 41);
	release(false, 45);
	load();
	assert_int_equal(jobs.counts.undecided, 1);
	assert_int_equal(jobs.counts.impossible, 1);
	assert_int_equal(jobs.counts.listed[0].time, 31 * US);
	assert_true(jobs.counts.listed[0].undecided);
	assert_int_equal(jobs.counts.listed[1].time, 41 * US);
	assert_false(jobs.counts.listed[1].undecided);
	assert_int_equal(jobs.counts.lossy, 1);
	assert_true(jobs.mm[0].seen[0].lossy);
	assert_false(jobs.mm[0].seen[1].lossy);
	end();
}

/* ---- who gives up --------------------------------------------------------------------- */

/* A try has its answer at once; a killed waiter leaves after 2 ms. */
static void a_killed_waiter_is_no_failed_try(void **state)
{
	(void)state;
	begin();
	event_of(TASK + 1, MM, NRP_LOCK_REQUEST, true, 10);
	event_of(TASK + 1, MM, NRP_LOCK_GRANT, true, 11);
	event_of(TASK + 2, MM, NRP_LOCK_REQUEST, true, 20); /* a try of khugepaged */
	event_of(TASK + 2, MM, NRP_LOCK_FAILED, true, 21);
	event_of(TASK + 3, MM, NRP_LOCK_REQUEST, true, 30);
	event_of(TASK + 3, MM, NRP_LOCK_FAILED, true, 2030);
	event_of(TASK + 1, MM, NRP_LOCK_RELEASE, true, 3000);
	load();
	assert_int_equal(jobs.counts.killed_waits, 1);
	assert_int_equal(jobs.counts.failed_tries, 1);
	assert_int_equal(jobs.counts.impossible, 0);
	assert_int_equal(jobs.mm[0].nr_jobs, 2);
	assert_int_equal(jobs.mm[0].job[1].give_up, 2030 * US);
	assert_int_equal(jobs.mm[0].seen[1].killed, 2030 * US);
	assert_int_equal(jobs.mm[0].seen[1].granted, UINT64_MAX);
	end();
}

/* It faults in user mode afterwards: something held up its try for 2 ms, but nobody killed it. */
static void who_lives_on_was_not_killed(void **state)
{
	(void)state;
	begin();
	request(false, 30);
	fail_at(2030);
	exception(2500);
	load();
	assert_int_equal(jobs.counts.killed_waits, 0);
	assert_int_equal(jobs.counts.failed_tries, 1);
	end();
}

/* A fault that tried, asked and failed did wait, however short. */
static void a_fault_that_fails_twice_was_killed(void **state)
{
	(void)state;
	begin();
	exception(10);
	request(false, 11);
	fail_at(12);
	request(false, 13);
	fail_at(50);
	load();
	assert_int_equal(jobs.counts.killed_waits, 1);
	assert_int_equal(jobs.mm[0].nr_jobs, 1);
	assert_int_equal(jobs.mm[0].job[0].give_up, 50 * US);
	end();
}

static void a_release_by_another_task(void **state)
{
	(void)state;
	begin();
	request(false, 10);
	grant(false, 11);
	event_of(TASK + 1, MM, NRP_LOCK_RELEASE, false, 30);
	load();
	job_is(0, NRP_LOCK_READER, 10, 11, 19);
	assert_int_equal(jobs.counts.by_others, 1);
	assert_int_equal(jobs.counts.impossible, 0);
	end();
}

/* ---- unmaps --------------------------------------------------------------------------- */

static void an_unmap_with_its_phases(void **state)
{
	(void)state;
	begin();
	call(9, 110, 1 << 20);
	request(true, 10);
	grant(true, 12);
	phases(1 << 20);
	release(true, 100);
	load();
	work_is(0, 8, 10, 60, 10);
	assert_int_equal(jobs.mm[0].seen[0].split, NRP_LOCK_SPLIT_PHASES);
	assert_int_equal(jobs.counts.munmaps, 1);
	assert_int_equal(jobs.counts.split_by_downgrade + jobs.counts.split_by_model, 0);
	end();
}

/* The threshold is compared with whole pages (spec 1.1): this length is 1 GiB. */
static void a_length_counts_in_whole_pages(void **state)
{
	(void)state;
	begin();
	request(true, 10);
	grant(true, 12);
	phases((UINT64_C(1) << 30) - 4095);
	release(true, 100);
	load();
	assert_int_equal(jobs.mm[0].job[0].work->length, UINT64_C(1) << 30);
	end();
}

static void without_probes_the_downgrade_parts_an_unmap(void **state)
{
	(void)state;
	begin();
	call(9, 110, 8192);
	request(true, 10);
	grant(true, 12);
	grant(false, 15);
	release(false, 100);
	request(true, 200); /* behind the call */
	grant(true, 201);
	release(true, 205);
	load();
	work_is(0, 3, 85, 0, 0);
	assert_int_equal(jobs.mm[0].seen[0].split, NRP_LOCK_SPLIT_DOWNGRADE);
	assert_int_equal(jobs.mm[0].job[0].work->length, 8192);
	job_is(1, NRP_LOCK_WRITER, 200, 201, 4);
	assert_int_equal(jobs.counts.munmaps, 1);
	assert_int_equal(jobs.counts.split_by_downgrade, 1);
	end();
}

/* A heap that shrinks downgrades, too, and is no munmap(). */
static void a_downgrade_without_a_call_is_an_unmap(void **state)
{
	(void)state;
	begin();
	request(true, 10);
	grant(true, 12);
	grant(false, 15);
	release(false, 100);
	load();
	work_is(0, 3, 85, 0, 0);
	end();
}

/* 8 us before the pages go: what v10 of the patch measured. */
static void the_hold_alone_is_parted_by_a_model(void **state)
{
	(void)state;
	begin();
	call(9, 60, 8192);
	request(true, 10);
	grant(true, 12);
	release(true, 52);
	call(100, 160, 8192);
	request(true, 101);
	grant(true, 102);
	release(true, 107);
	load();
	work_is(0, 8, 32, 0, 0);
	work_is(1, 5, 0, 0, 0);
	assert_int_equal(jobs.counts.split_by_model, 2);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_tries_first_and_waits_from_its_try_on),
		cmocka_unit_test(a_skipped_scan_stays_skipped),
		cmocka_unit_test(an_exception_that_is_over_owns_no_reader),
		cmocka_unit_test(a_release_at_the_time_of_the_next_exception),
		cmocka_unit_test(without_exceptions_only_what_follows_at_once_belongs_to_a_try),
		cmocka_unit_test(a_failed_try_to_write_is_no_reader),
		cmocka_unit_test(two_address_spaces_at_once),
		cmocka_unit_test(a_lost_release_ends_when_the_task_asks_again),
		cmocka_unit_test(what_cannot_be_is_counted_and_listed),
		cmocka_unit_test(two_holders_of_which_one_writes),
		cmocka_unit_test(what_lost_events_may_explain_is_undecided),
		cmocka_unit_test(a_killed_waiter_is_no_failed_try),
		cmocka_unit_test(who_lives_on_was_not_killed),
		cmocka_unit_test(a_fault_that_fails_twice_was_killed),
		cmocka_unit_test(a_release_by_another_task),
		cmocka_unit_test(an_unmap_with_its_phases),
		cmocka_unit_test(a_length_counts_in_whole_pages),
		cmocka_unit_test(without_probes_the_downgrade_parts_an_unmap),
		cmocka_unit_test(a_downgrade_without_a_call_is_an_unmap),
		cmocka_unit_test(the_hold_alone_is_parted_by_a_model),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
