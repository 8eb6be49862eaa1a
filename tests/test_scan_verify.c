/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which object a VMA is, which sequence an address space is in and which tick the clock shows, as a
 * record has it: spec scan.md 2.1 (life of the per-VMA state), 2.4 traps 4 (forks) and 7 (ticks),
 * 1.1 with 8 (VMA filter). Captures written by hand, for which the specification says what P2 and
 * P3 do.
 */
#include "replay/scan_lane.h"
#include "replay/scan_walk.h"
#include "scan_records.h"

#include <string.h>

#define FAR UINT64_C(1000000000)
#define P2 NRP_SCAN_VMA_P2
#define P3 NRP_SCAN_VMA_P3

static void verify(struct scan_records *r, struct nrp_scan_verify *v)
{
	struct nrp_error err = NRP_ERROR_INIT;

	scan_records_commit(r);
	assert_ok(nrp_scan_lane_verify(v, r->store, &r->capture, &err), &err);
}

/* P2 and P3 explain all @passes: with one thread and short gaps nothing is stale. */
static void check_all_agree(const struct nrp_scan_verify *v, uint64_t passes)
{
	assert_int_equal(v->passes, passes);
	assert_int_equal(v->unjudged, 0);
	for (int i = P2; i <= P3; i++) {
		assert_int_equal(v->check[i].variant, i);
		assert_int_equal(v->check[i].first_disagreement, 0);
		assert_int_equal(v->check[i].agree, passes);
		assert_int_equal(v->check[i].races, 0);
	}
}

static void check_differs_at(const struct nrp_scan_verify *v, enum nrp_scan_vma_variant variant,
			     uint64_t ms)
{
	assert_int_equal(v->check[variant].first_disagreement, ms * MS);
}

static void scanned(struct scan_records *r, uint64_t start_mb, uint64_t end_mb)
{
	add_range(r, start_mb, end_mb, start_mb, end_mb, (end_mb - start_mb) * (MB / PAGE), NULL);
}

static void waits(struct scan_records *r, uint64_t start_mb, uint64_t end_mb)
{
	add_skip(r, start_mb, end_mb, NRP_SKIP_SCAN_DELAY);
}

/* Left out, and taken by the second walk. */
static void inactive_and_forced(struct scan_records *r, uint64_t start_mb, uint64_t end_mb)
{
	add_skip(r, start_mb, end_mb, NRP_SKIP_PID_INACTIVE);
	scanned(r, start_mb, end_mb);
}

/* Two sequences over one VMA: from then on its state lets nobody in. */
static void begin_with(struct scan_records *r, uint64_t start_mb, uint64_t end_mb)
{
	scan_records_begin(r, true);
	add_pass(r, 1000, 100, 0, 0);
	scanned(r, start_mb, end_mb);
	add_pass(r, 3000, 100, 1, 0);
	scanned(r, start_mb, end_mb);
}

/* ---- 2.1: life of the state ----------------------------------------------------------- */

/* Thread 100 uses [0,10), nobody [10,20); as one VMA with the state of the lower they are used. */
static void test_merged_vma_has_the_state_of_the_lower_survivor(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, true);
	for (int i = 0; i < 2; i++) {
		add_pass(&r, 1000 + 2000 * (uint64_t)i, 100, i, 0);
		scanned(&r, 0, 10);
		scanned(&r, 10, 20);
	}
	add_fault(&r, 3500000, 100, 0, 10, 0);
	add_pass(&r, 4000, 100, 2, 0);
	scanned(&r, 0, 20);
	verify(&r, &v);
	check_all_agree(&v, 3);
	scan_records_end(&r);
}

/* The other way round: the used one's state is freed with it. */
static void test_state_of_the_vma_that_a_merge_frees_is_gone(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, true);
	for (int i = 0; i < 2; i++) {
		add_pass(&r, 1000 + 2000 * (uint64_t)i, 100, i, 0);
		scanned(&r, 0, 10);
		scanned(&r, 10, 20);
	}
	add_fault(&r, 3500000, 100, 10, 20, 0);
	add_pass(&r, 4000, 100, 2, 0);
	inactive_and_forced(&r, 0, 20);
	verify(&r, &v);
	check_all_agree(&v, 3);
	scan_records_end(&r);
}

static uint64_t first_uncertain(struct scan_records *r, enum nrp_scan_vma_variant variant)
{
	struct nrp_scan_lane_config config = { .variant = variant, .scan_delay_ms = UINT64_MAX };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_lane lane;
	uint64_t time;

	assert_ok(nrp_scan_lane_run(&lane, r->store, &r->capture, &config, &err), &err);
	assert_int_equal(lane.nr_mms, 1);
	time = lane.mm[0].uncertain;
	nrp_scan_lane_clear(&lane);
	return time;
}

/* Whose state a VMA has that was two: unknown, unless both had the same. P0 has none. */
static void test_merge_leaves_a_lane_uncertain_where_the_states_differ(void **state)
{
	(void)state;
	for (int used = 0; used < 2; used++) {
		struct scan_records r;
		struct nrp_scan_verify v;

		scan_records_begin(&r, true);
		for (int i = 0; i < 2; i++) {
			add_pass(&r, 1000 + 2000 * (uint64_t)i, 100, i, 0);
			scanned(&r, 0, 10);
			scanned(&r, 10, 20);
		}
		if (used)
			add_fault(&r, 3500000, 100, 0, 10, 0);
		add_pass(&r, 4000, 100, 2, 0);
		if (used)
			scanned(&r, 0, 20);
		else
			inactive_and_forced(&r, 0, 20);
		verify(&r, &v);
		check_all_agree(&v, 3);
		assert_int_equal(first_uncertain(&r, P2), used ? 4000 * MS : 0);
		assert_int_equal(first_uncertain(&r, NRP_SCAN_VMA_P0), 0);
		scan_records_end(&r);
	}
}

/* Inaccessible memory above that was made like [0,10) became part of it. */
static void test_merge_keeps_the_state_of_the_kind_that_stays(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, true);
	for (int i = 0; i < 2; i++) {
		add_pass(&r, 1000 + 2000 * (uint64_t)i, 100, i, 0);
		add_skip(&r, 0, 10, NRP_SKIP_INACCESSIBLE);
		scanned(&r, 10, 20);
	}
	add_fault(&r, 3500000, 100, 10, 20, 0);
	add_pass(&r, 4000, 100, 2, 0);
	scanned(&r, 0, 20); /* it was used */
	verify(&r, &v);
	check_all_agree(&v, 3);
	assert_int_equal(first_uncertain(&r, P2), 0);
	scan_records_end(&r);
}

/*
 * mremap() to another place shows as a VMA that is gone and one that is new: it waits, and then
 * has its own two sequences, which P1 does not give it. Back at the old place it is new again.
 */
static void test_moved_vma_is_new(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 10);
	add_pass(&r, 4000, 100, 2, 0);
	waits(&r, 100, 110);
	add_pass(&r, 5000, 100, 3, 0);
	scanned(&r, 100, 110);
	add_pass(&r, 6000, 100, 4, 0);
	waits(&r, 0, 10);
	add_pass(&r, 7000, 100, 5, 0);
	scanned(&r, 0, 10);
	verify(&r, &v);
	check_all_agree(&v, 6);
	check_differs_at(&v, NRP_SCAN_VMA_P1, 5000);
	scan_records_end(&r);
}

/* The kernel may well put the new object where the old one was in its slab. */
static void test_new_vma_at_an_old_address_is_new(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 10);
	add_unmap(&r, 3500, 0, 10);
	add_pass(&r, 4000, 100, 2, 0);
	waits(&r, 0, 10);
	add_pass(&r, 5000, 100, 3, 0);
	scanned(&r, 0, 10);
	verify(&r, &v);
	check_all_agree(&v, 4);
	scan_records_end(&r);
}

static void test_both_sides_of_a_hole_are_new(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 30);
	add_unmap(&r, 3500, 10, 20);
	add_pass(&r, 4000, 100, 2, 0);
	waits(&r, 0, 10);
	waits(&r, 20, 30);
	verify(&r, &v);
	check_all_agree(&v, 3);
	scan_records_end(&r);
}

/* mprotect() of the upper half: the lower is the new object. */
static void test_lower_half_of_a_split_is_new(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 20);
	add_pass(&r, 4000, 100, 2, 0);
	waits(&r, 0, 10);
	add_skip(&r, 10, 20, NRP_SKIP_PID_INACTIVE);
	waits(&r, 0, 10); /* the second walk begins at 0 */
	scanned(&r, 10, 20);
	verify(&r, &v);
	check_all_agree(&v, 3);
	scan_records_end(&r);
}

/* mprotect() in the middle: the kernel splits off what is below and what is above. */
static void test_inner_part_of_three_is_the_old_object(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 30);
	add_pass(&r, 4000, 100, 2, 0);
	waits(&r, 0, 10);
	add_skip(&r, 10, 20, NRP_SKIP_PID_INACTIVE);
	waits(&r, 20, 30);
	waits(&r, 0, 10); /* the second walk begins at 0 */
	scanned(&r, 10, 20);
	add_pass(&r, 5000, 100, 2, 20);
	scanned(&r, 20, 30); /* its own first two sequences */
	verify(&r, &v);
	check_all_agree(&v, 4);
	scan_records_end(&r);
}

/* The lower half was made inaccessible: that is the old object, and the rest of it is new. */
static void test_part_of_another_kind_is_the_old_object(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 20);
	add_pass(&r, 4000, 100, 2, 0);
	add_skip(&r, 0, 10, NRP_SKIP_INACCESSIBLE);
	waits(&r, 10, 20);
	add_pass(&r, 5000, 100, 3, 0);
	add_skip(&r, 0, 10, NRP_SKIP_PID_INACTIVE); /* accessible again, its state is old */
	scanned(&r, 10, 20);
	scanned(&r, 0, 10);
	verify(&r, &v);
	assert_int_equal(v.check[P2].first_disagreement, 0);
	scan_records_end(&r);
}

/* Unmapped where munmap() is not probed: what kept the state went with the hole. */
static void test_both_sides_of_an_unseen_hole_are_new(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 30);
	add_pass(&r, 4000, 100, 2, 0);
	waits(&r, 0, 10);
	waits(&r, 20, 30);
	verify(&r, &v);
	check_all_agree(&v, 3);
	scan_records_end(&r);
}

/* ---- trap 4: forks and the sequence --------------------------------------------------- */

/*
 * Two threads, so the fork resets nothing: the child begins in the parent's sequence and at its
 * offset, with VMAs that have no state.
 */
static void test_child_inherits_sequence_and_offset_but_no_state(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 10);
	r.nr_threads = 2;
	add_pass(&r, 4000, 100, 2, 0);
	inactive_and_forced(&r, 0, 10);
	add_life(&r, 4500, NRP_LIFE_FORK, 100, 300);
	r.nr_threads = 1;
	r.mm = CHILD_MM;
	add_pass(&r, 5000, 300, 2, 10); /* nothing above 10: sequence 3, and 4 at its end */
	waits(&r, 0, 10);
	add_pass(&r, 6000, 300, 4, 0);
	scanned(&r, 0, 10); /* born in 3 */
	add_pass(&r, 7000, 300, 5, 0);
	inactive_and_forced(&r, 0, 10);
	r.mm = MM;
	r.nr_threads = 2;
	add_pass(&r, 8000, 100, 2, 10); /* the parent goes on where it was */
	inactive_and_forced(&r, 0, 10);
	verify(&r, &v);
	check_all_agree(&v, 7);
	/* Without passes counted per VMA the child's would never be scanned: vector B8. */
	for (size_t i = 0; i < v.nr_checks; i++)
		if (v.check[i].variant == P2 && v.check[i].rule_off == NRP_SCAN_RULE_START_SEQ)
			assert_int_equal(v.check[i].first_disagreement, 6000 * MS);
	scan_records_end(&r);
}

/*
 * The first pthread_create() sets the sequence to 0, neither the offset nor the VMAs' state; the
 * second changes nothing.
 */
static void test_only_the_first_pthread_create_resets(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 10);
	add_pass(&r, 4000, 100, 2, 0);
	inactive_and_forced(&r, 0, 10);
	add_life(&r, 4500, NRP_LIFE_FORK, 100, 101);
	r.nr_threads = 2;
	add_pass(&r, 5000, 100, 0, 10); /* nothing above 10: sequence 1, in which rule a holds */
	scanned(&r, 0, 10);
	add_life(&r, 5500, NRP_LIFE_FORK, 100, 102);
	r.nr_threads = 3;
	add_pass(&r, 6000, 100, 2, 0);
	inactive_and_forced(&r, 0, 10);
	add_pass(&r, 7000, 100, 2, 10);
	inactive_and_forced(&r, 0, 10);
	verify(&r, &v);
	check_all_agree(&v, 6);
	scan_records_end(&r);
}

/* posix_spawn() is a vfork() and an exec(): the parent begins again, the child has all new. */
static void test_posix_spawn_resets_the_parent(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 10);
	add_life(&r, 3500, NRP_LIFE_FORK, 100, 300);
	add_life(&r, 3501, NRP_LIFE_EXEC, 300, 0);
	add_pass(&r, 4000, 100, 0, 0);
	scanned(&r, 0, 10);
	r.mm = CHILD_MM;
	add_pass(&r, 4500, 300, 0, 0);
	scanned(&r, 0, 20);
	add_pass(&r, 5000, 300, 1, 0); /* made at 4500 */
	waits(&r, 0, 20);
	r.mm = MM;
	add_pass(&r, 6000, 100, 1, 0);
	scanned(&r, 0, 10);
	verify(&r, &v);
	check_all_agree(&v, 6);
	scan_records_end(&r);
}

/* The first two sequences of a VMA go on over the end of the ints and over 0. */
static void sequence_wraps(int32_t first)
{
	struct nrp_scan_vma_state born = { .pids_reset = FAR,
					   .start_seq = first,
					   .prev_seq = nrp_scan_seq_add(first, -1) };
	struct scan_records r;
	struct nrp_scan_verify v;

	scan_records_begin(&r, true);
	add_pass(&r, 1000, 100, first, 0);
	add_range(&r, 0, 10, 0, 10, 2560, &born);
	add_pass(&r, 2000, 100, nrp_scan_seq_add(first, 1), 0);
	scanned(&r, 0, 10);
	add_pass(&r, 3000, 100, nrp_scan_seq_add(first, 2), 0);
	inactive_and_forced(&r, 0, 10);
	verify(&r, &v);
	check_all_agree(&v, 3);
	scan_records_end(&r);
}

static void test_sequence_wraps(void **state)
{
	(void)state;
	sequence_wraps(INT32_MAX);
	sequence_wraps(INT32_MAX - 1);
	sequence_wraps(-1);
}

/* ---- trap 7: a tick during the pass ---------------------------------------------------- */

/* [0,10) was made at 1000. A pass that began one tick too early scans it. */
static void early_pass(struct scan_records *r, uint64_t ticks)
{
	scan_records_begin(r, true);
	add_pass(r, 1000, 100, 0, 0);
	scanned(r, 0, 10);
	r->ticks = ticks;
	add_pass(r, 1999, 100, 1, 0);
	scanned(r, 0, 10);
	waits(r, 20, 30); /* made here, at 1999: when the pass began */
	r->ticks = 0;
	add_pass(r, 2998, 100, 2, 0);
	add_skip(r, 0, 10, NRP_SKIP_PID_INACTIVE);
	waits(r, 20, 30);
	scanned(r, 0, 10);
	add_pass(r, 2999, 100, 2, 10);
	scanned(r, 20, 30);
}

static void test_tick_during_the_pass_may_end_the_wait(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	early_pass(&r, 1);
	verify(&r, &v);
	for (int i = P2; i <= P3; i++) {
		assert_int_equal(v.check[i].agree, 4);
		assert_int_equal(v.check[i].disagree, 0);
		assert_int_equal(v.check[i].races, 1);
	}
	scan_records_end(&r);
}

static void test_without_a_tick_the_wait_goes_on(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	early_pass(&r, 0);
	verify(&r, &v);
	check_differs_at(&v, P2, 1999);
	check_differs_at(&v, P3, 1999);
	assert_int_equal(v.check[P2].races, 0);
	scan_records_end(&r);
}

/*
 * [0,10) and [20,30) were made at 1000 and wait until 2000. A pass that began at 1999 leaves the
 * first out and scans the second: the tick came between.
 */
static void tick_between(struct scan_records *r, uint64_t ticks)
{
	scan_records_begin(r, true);
	add_pass(r, 1000, 100, 0, 0);
	scanned(r, 0, 10);
	scanned(r, 20, 30);
	r->ticks = ticks;
	add_pass(r, 1999, 100, 1, 0);
	waits(r, 0, 10);
	scanned(r, 20, 30);
}

static void test_tick_may_come_between_two_vmas(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	tick_between(&r, 1);
	verify(&r, &v);
	for (int i = P2; i <= P3; i++) {
		const struct nrp_scan_check *c = &v.check[i];

		assert_int_equal(c->disagree, 0);
		assert_int_equal(c->agree, 2);
		assert_int_equal(c->races, 1);
		assert_int_equal(c->late_bits, 0);
		assert_int_equal(c->nr_ties, 1);
		assert_int_equal(c->tie[0].time, 1999 * MS);
		assert_int_equal(c->tie[0].mm, MM);
		assert_true(c->tie[0].tick);
		assert_false(c->tie[0].late_bit);
	}
	scan_records_end(&r);

	/* The clock did not tick. */
	tick_between(&r, 0);
	verify(&r, &v);
	check_differs_at(&v, P2, 1999);
	assert_int_equal(v.check[P2].nr_ties, 0);
	scan_records_end(&r);
}

/* Time does not run back: the first scanned, the second not. */
static void test_tick_does_not_come_before_and_go(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, true);
	add_pass(&r, 1000, 100, 0, 0);
	scanned(&r, 0, 10);
	scanned(&r, 20, 30);
	r.ticks = 1;
	add_pass(&r, 1999, 100, 1, 0);
	scanned(&r, 0, 10);
	waits(&r, 20, 30);
	verify(&r, &v);
	check_differs_at(&v, P2, 1999);
	assert_int_equal(v.check[P2].races, 0);
	scan_records_end(&r);
}

/* A tick before the second walk: it finds no longer waiting what the first left out. */
static void test_tick_may_come_between_two_walks(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 20, 30);
	add_pass(&r, 4000, 100, 2, 0);
	waits(&r, 0, 10); /* made here: until 5000 */
	add_skip(&r, 20, 30, NRP_SKIP_PID_INACTIVE);
	waits(&r, 0, 10);
	scanned(&r, 20, 30);
	r.ticks = 1;
	add_pass(&r, 4999, 100, 2, 30); /* nothing above: sequence 3 */
	waits(&r, 0, 10);
	add_skip(&r, 20, 30, NRP_SKIP_PID_INACTIVE);
	scanned(&r, 0, 10); /* forced */
	verify(&r, &v);
	for (int i = P2; i <= P3; i++) {
		assert_int_equal(v.check[i].disagree, 0);
		assert_int_equal(v.check[i].races, 1);
		assert_int_equal(v.check[i].tie[0].time, 4999 * MS);
	}
	scan_records_end(&r);
}

/* A window that ends at 6000 is turned by the tick to 6001, and with it the bit of thread 100. */
static void test_tick_during_the_pass_may_turn_the_window(void **state)
{
	(void)state;
	for (int tick = 0; tick <= 1; tick++) {
		struct nrp_scan_vma_state used = { .pids_reset = 6000,
						   .pids = { nrp_scan_pid_bit(100), 0 },
						   .prev_seq = 8 };
		struct nrp_scan_vma_state turned = { .pids_reset = 10000, .prev_seq = 8 };
		struct scan_records r;
		struct nrp_scan_verify v;

		scan_records_begin(&r, true);
		r.nr_threads = 9;
		used.prev_seq = 7;
		add_pass(&r, 5000, 100, 8, 0);
		add_range(&r, 0, 10, 0, 10, 2560, &used);
		used.prev_seq = 8;
		r.ticks = 1;
		add_pass(&r, 6000, 100, 9, 0);
		if (tick)
			add_skip(&r, 0, 10, NRP_SKIP_PID_INACTIVE);
		add_range(&r, 0, 10, 0, 10, 0, tick ? &turned : &used);
		verify(&r, &v);
		assert_int_equal(v.check[P2].agree, 2);
		assert_int_equal(v.check[P2].races, tick);
		scan_records_end(&r);
	}
}

/* ---- 1.1 and 8: the VMA filter -------------------------------------------------------- */

/*
 * Text [0,10) is SHARED_RO everywhere; tmpfs [20,30) is UNSUITABLE to SH0 and like any other VMA to
 * SH1; anonymous memory [40,50). The filter's skips repeat in the second walk.
 */
static void filtered_record(struct scan_records *r, bool sh1)
{
	scan_records_begin(r, true);
	for (int i = 0; i < 3; i++) {
		add_pass(r, 1000 + 1500 * (uint64_t)i, 100, i, 0);
		for (int walk = 0; walk < (i == 2 ? 2 : 1); walk++) {
			add_skip(r, 0, 10, NRP_SKIP_SHARED_RO);
			if (!sh1)
				add_skip(r, 20, 30, NRP_SKIP_UNSUITABLE);
			else if (i == 2 && walk == 0)
				add_skip(r, 20, 30, NRP_SKIP_PID_INACTIVE);
			else
				scanned(r, 20, 30);
			if (i == 2 && walk == 0)
				add_skip(r, 40, 50, NRP_SKIP_PID_INACTIVE);
			else if (i < 2 || !sh1)
				scanned(r, 40, 50);
		}
	}
}

static void check_filtered(bool sh1)
{
	struct nrp_scan_lane_config as_host = { .variant = P2, .scan_delay_ms = UINT64_MAX };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_lane lane;
	struct nrp_scan_verify v;
	struct scan_records r;

	filtered_record(&r, sh1);
	verify(&r, &v);
	check_all_agree(&v, 3);
	assert_ok(nrp_scan_lane_run(&lane, r.store, &r.capture, &as_host, &err), &err);
	/* Only eligible VMAs can be starved, or scanned by any lane. */
	assert_int_equal(lane.nr_vmas, sh1 ? 2 : 1);
	assert_int_equal(lane.vma[0].vm_start, (sh1 ? 20 : 40) * MB);
	assert_int_equal(lane.nr_ranges, sh1 ? 5 : 3);
	assert_int_equal(lane.possible_ranges, 0);
	nrp_scan_lane_clear(&lane);
	/* SH1 may take what is UNSUITABLE to SH0, in each pass; not what V2 or V3 refuse. */
	as_host.gains_shmem = true;
	assert_ok(nrp_scan_lane_run(&lane, r.store, &r.capture, &as_host, &err), &err);
	assert_int_equal(lane.nr_ranges, sh1 ? 5 : 3);
	assert_int_equal(lane.possible_ranges, sh1 ? 0 : 3);
	for (size_t i = 0; i < lane.possible_ranges; i++) {
		assert_int_equal(lane.possible[i].time, (1000 + 1500 * i) * MS);
		assert_int_equal(lane.possible[i].start, 20 * MB);
		assert_int_equal(lane.possible[i].end, 30 * MB);
		assert_int_equal(lane.possible[i].recorded_pages, -1);
	}
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

static void test_filtered_vmas_are_skipped_in_each_walk(void **state)
{
	(void)state;
	check_filtered(false);
	check_filtered(true);
}

/* B13: a pass of a task bound to one node changes nothing, and counts as one that returned early.
 */
static void test_pass_of_a_bound_task_changes_nothing(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	begin_with(&r, 0, 10);
	add_pass(&r, 3500, 100, 2, 0);
	add_skip(&r, 0, 0, NRP_SKIP_CPUSET);
	add_pass(&r, 4000, 100, 2, 0);
	inactive_and_forced(&r, 0, 10);
	verify(&r, &v);
	check_all_agree(&v, 3);
	assert_int_equal(v.idle, 1);
	assert_int_equal(v.check[NRP_SCAN_VMA_P4].disagree, 0);
	scan_records_end(&r);
}

/* B11 as a record that begins after the fork: sequence 0, VMAs with the state of sequence 6. */
static void b11_capture_that_begins_after_a_fork(void **state)
{
	struct nrp_scan_vma_state a = { .pids_reset = FAR, .start_seq = 0, .prev_seq = 6 };
	struct nrp_scan_vma_state b = { .pids_reset = FAR, .start_seq = 5, .prev_seq = 6 };
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, true);
	for (int k = 0; k < 2; k++) {
		add_pass(&r, 50000 + 1000 * (uint64_t)k, 100, k, 0);
		add_range(&r, 0, 10, 0, 10, k ? 0 : 2560, &a);
		add_range(&r, 10, 20, 10, 20, k ? 0 : 2560, &b);
		a.prev_seq = b.prev_seq = k;
	}
	add_pass(&r, 52000, 100, 2, 0);
	add_skip(&r, 0, 10, NRP_SKIP_PID_INACTIVE);
	add_range(&r, 10, 20, 10, 20, 0, &b);
	add_range(&r, 0, 10, 0, 10, 0, &a);
	add_pass(&r, 53000, 100, 2, 10);
	add_skip(&r, 10, 20, NRP_SKIP_SEQ_COMPLETED);
	add_pass(&r, 54000, 100, 3, 0);
	add_skip(&r, 0, 10, NRP_SKIP_PID_INACTIVE);
	b.prev_seq = 2;
	add_range(&r, 10, 20, 10, 20, 0, &b);
	a.prev_seq = 2;
	add_range(&r, 0, 10, 0, 10, 0, &a);
	verify(&r, &v);
	check_all_agree(&v, 5);
	scan_records_end(&r);
}

static bool arm(void *context, const struct nrp_scan_vma *vma, uint64_t start, uint64_t end,
		enum nrp_scan_vma_pass by)
{
	(void)context;
	(void)vma;
	(void)start;
	(void)end;
	(void)by;
	return true;
}

/* 2.1: pids_active_reset is next_scan + J(4 * scan_delay): at 250 Hz and 50 ms 13 + 50 ticks. */
static void window_is_four_delays_in_ms(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_host_facts facts = { .hz = 250, .page_size = 4096, .scan_delay_ms = 50 };
	struct nrp_scan_vma vma = { .end = 4096 };
	struct nrp_scan_mm mm = { .vma = &vma, .nr_vmas = 1 };
	struct nrp_scan_call call = {
		.tid = 1, .nr_threads = 1, .jiffies = 1000, .jiffies_now = 1000
	};
	struct nrp_scan_ops ops = { .arm = arm };
	struct nrp_scan_vma_policy p;

	(void)state;
	assert_ok(nrp_scan_policy_of(&p, &facts, &err), &err);
	p.variant = P3;
	p.rules = nrp_scan_vma_rules(P3);
	nrp_scan_vma_run(&p, &mm, &call, &ops);
	assert_int_equal(vma.state.next_scan, 1013);
	assert_int_equal(vma.state.pids_reset, 1013 + 50);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(b11_capture_that_begins_after_a_fork),
		cmocka_unit_test(window_is_four_delays_in_ms),
		cmocka_unit_test(test_merged_vma_has_the_state_of_the_lower_survivor),
		cmocka_unit_test(test_state_of_the_vma_that_a_merge_frees_is_gone),
		cmocka_unit_test(test_moved_vma_is_new),
		cmocka_unit_test(test_new_vma_at_an_old_address_is_new),
		cmocka_unit_test(test_both_sides_of_a_hole_are_new),
		cmocka_unit_test(test_lower_half_of_a_split_is_new),
		cmocka_unit_test(test_merge_leaves_a_lane_uncertain_where_the_states_differ),
		cmocka_unit_test(test_merge_keeps_the_state_of_the_kind_that_stays),
		cmocka_unit_test(test_inner_part_of_three_is_the_old_object),
		cmocka_unit_test(test_part_of_another_kind_is_the_old_object),
		cmocka_unit_test(test_both_sides_of_an_unseen_hole_are_new),
		cmocka_unit_test(test_child_inherits_sequence_and_offset_but_no_state),
		cmocka_unit_test(test_only_the_first_pthread_create_resets),
		cmocka_unit_test(test_posix_spawn_resets_the_parent),
		cmocka_unit_test(test_sequence_wraps),
		cmocka_unit_test(test_tick_during_the_pass_may_end_the_wait),
		cmocka_unit_test(test_without_a_tick_the_wait_goes_on),
		cmocka_unit_test(test_tick_may_come_between_two_vmas),
		cmocka_unit_test(test_tick_does_not_come_before_and_go),
		cmocka_unit_test(test_tick_may_come_between_two_walks),
		cmocka_unit_test(test_tick_during_the_pass_may_turn_the_window),
		cmocka_unit_test(test_filtered_vmas_are_skipped_in_each_walk),
		cmocka_unit_test(test_pass_of_a_bound_task_changes_nothing),
	};

	return cmocka_run_group_tests_name("scan_verify", tests, util_enter_dir, util_leave_dir);
}
