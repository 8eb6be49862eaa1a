/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a lane's own ranges make of recorded faults (scan.md 6), by hand. One range over two MiB, on
 * node 0; faults come from pages on node 1 and move them to node 0. A range that armed nothing on
 * record found the pages armed, or on the scanner's node: in a lane that lacks the fault that moved
 * them they may be neither.
 */
#include "replay/scan_effects.h"
#include "replay/scan_evidence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MM UINT64_C(0xff00)
#define START UINT64_C(0x200000)
#define END UINT64_C(0x400000)

static int16_t cpu_nid[2] = { 0, 1 };
static int64_t node_memkb[2] = { 1000000, 1000000 };

struct setting {
	struct nrp_capture capture;
	struct nrp_scan_lane_mm mm;
	struct nrp_scan_lane_range range[4];
	struct nrp_scan_lane lane;
	struct nrp_worlds *worlds;
	struct nrp_scan_effects *effects;
};

/* The lane's ranges, by time; @recorded: entries that they armed on record, -1: not there. */
static void begin(struct setting *s, const uint64_t *times, const int64_t *recorded, size_t n)
{
	struct nrp_world_config config = { .limiter = { .variant = NRP_RATELIMIT_NONE },
					   .nr_nodes = 2,
					   .filter_passes = true };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_host_facts *f;

	memset(s, 0, sizeof(*s));
	f = &s->capture.facts;
	nrp_host_facts_init(f);
	f->cpu_nid = cpu_nid;
	f->nr_cpus = 2;
	f->node_memkb = node_memkb;
	f->nr_nodes = 2;
	f->page_size = 4096;
	f->huge_pages = 512;
	f->hz = 250;
	for (size_t i = 0; i < n; i++)
		s->range[i] = (struct nrp_scan_lane_range){ .time = times[i],
							    .mm = MM,
							    .start = START,
							    .end = END,
							    .vm_start = START,
							    .vm_end = END,
							    .recorded_pages = recorded[i],
							    .certain = true };
	s->mm = (struct nrp_scan_lane_mm){ .mm = MM, .passes = n, .diverged = 1 };
	s->lane = (struct nrp_scan_lane){
		.range = s->range, .nr_ranges = n, .mm = &s->mm, .nr_mms = 1
	};
	assert_int_equal(
		nrp_worlds_new(&s->worlds, f, NRP_FILTER_61, 60000, 0, false, &config, 1, &err), 0);
	assert_int_equal(nrp_scan_effects_new(&s->effects, &s->capture, &s->lane,
					      NRP_SCAN_PTE_HOST_UNKNOWN, NULL, &err),
			 0);
}

static void end(struct setting *s)
{
	nrp_scan_effects_free(s->effects);
	nrp_worlds_free(s->worlds);
}

/* A recorded pass over the range. */
static void scan(struct setting *s, uint64_t time, int32_t users, uint64_t pages)
{
	struct nrp_scan_pass p = { .null = ~UINT64_C(0) };
	struct nrp_scan_range g = { .null = ~UINT64_C(0) };

	NRP_SET(&p, scan_pass, time, time);
	NRP_SET(&p, scan_pass, mm, MM);
	NRP_SET(&p, scan_pass, cpu, 0);
	NRP_SET(&p, scan_pass, mm_users, users);
	NRP_SET(&g, scan_range, time, time);
	NRP_SET(&g, scan_range, mm, MM);
	NRP_SET(&g, scan_range, start, START);
	NRP_SET(&g, scan_range, end, END);
	NRP_SET(&g, scan_range, pages, pages);
	assert_int_equal(nrp_scan_effects_pass(s->effects, s->worlds, &p), 0);
	assert_int_equal(nrp_scan_effects_range(s->effects, s->worlds, &g), 0);
}

static struct nrp_hint_fault moving_fault(uint64_t time)
{
	struct nrp_hint_fault f = { .null = ~UINT64_C(0) };

	NRP_SET(&f, hint_fault, time, time);
	NRP_SET(&f, hint_fault, cpu, 0);
	NRP_SET(&f, hint_fault, tid, 1);
	NRP_SET(&f, hint_fault, mm, MM);
	NRP_SET(&f, hint_fault, addr, START);
	NRP_SET(&f, hint_fault, pages, 1);
	NRP_SET(&f, hint_fault, src_nid, 1);
	NRP_SET(&f, hint_fault, this_nid, 0);
	NRP_SET(&f, hint_fault, mem_nid, 0);
	NRP_SET(&f, hint_fault, moved, 1);
	return f;
}

static enum nrp_armed armed(struct setting *s, uint64_t time)
{
	struct nrp_hint_fault f = moving_fault(time);
	enum nrp_armed ret;

	assert_int_equal(nrp_scan_effects_fault(s->effects, s->worlds, &f, &ret), 0);
	return ret;
}

/* A lane without shared memory: the fault may be in a file's shared mapping, or in a private one.
 */
static void test_fault_in_a_shared_mapping_is_open_to_sh0(void **state)
{
	static const struct {
		uint64_t flags;
		enum nrp_armed want;
	} cases[] = { { 0xfb, NRP_ARMED_UNKNOWN }, { 0x100073, NRP_ARMED_YES } };
	struct nrp_error err = NRP_ERROR_INIT;
	struct setting s;

	(void)state;
	begin(&s, NULL, NULL, 0);
	nrp_scan_effects_free(s.effects);
	assert_int_equal(nrp_scan_effects_new(&s.effects, &s.capture, NULL,
					      NRP_SCAN_PTE_HOST_UNKNOWN, NULL, &err),
			 0);
	nrp_scan_effects_lose_shmem(s.effects);
	scan(&s, 1000, 1, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nrp_hint_fault f = moving_fault(1500 + i);
		enum nrp_armed got;

		NRP_SET(&f, hint_fault, vm_flags, cases[i].flags);
		assert_int_equal(nrp_scan_effects_fault(s.effects, s.worlds, &f, &got), 0);
		assert_int_equal(got, cases[i].want);
	}
	assert_int_equal(armed(&s, 2000), NRP_ARMED_UNKNOWN); /* its flags are not on record */
	end(&s);
}

static void test_lane_that_comes_by_later_may_fault_later(void **state)
{
	static const uint64_t times[] = { 3000 };
	static const int64_t recorded[] = { 0 };
	struct setting s;

	(void)state;
	begin(&s, times, recorded, 1);
	scan(&s, 1000, 1, 1);
	assert_int_equal(armed(&s, 1500), NRP_ARMED_LATER);
	scan(&s, 3000, 1, 0);
	/* In the lane the page lies where it did: armed at 3000, or by a fault since local. */
	scan(&s, 4000, 1, 1);
	assert_int_equal(armed(&s, 4500), NRP_ARMED_UNKNOWN);
	/* No range of the lane is left. */
	scan(&s, 5000, 1, 1);
	assert_int_equal(armed(&s, 5500), NRP_ARMED_NO);
	end(&s);
}

/* Armed on record at 1000, found so at 3000, by the lane too; it faults at 4000 in both. */
static void test_page_found_armed_is_armed_in_the_lane(void **state)
{
	static const uint64_t times[] = { 3000 };
	static const int64_t recorded[] = { 0 };

	(void)state;
	for (int32_t users = 1; users <= 2; users++) {
		struct setting s;

		begin(&s, times, recorded, 1);
		scan(&s, 1000, users, 1);
		scan(&s, 3000, users, 0);
		assert_int_equal(armed(&s, 4000), NRP_ARMED_YES);
		end(&s);
	}
}

/* The page may have been made after 3000, where the lane came by last. */
static void test_page_armed_after_the_lane_came_by_is_open(void **state)
{
	static const uint64_t times[] = { 3000 };
	static const int64_t recorded[] = { 0 };
	struct setting s;

	(void)state;
	begin(&s, times, recorded, 1);
	scan(&s, 3000, 2, 0);
	scan(&s, 3500, 2, 1);
	assert_int_equal(armed(&s, 4000), NRP_ARMED_UNKNOWN);
	end(&s);
}

/* Possible armings do not hide a certain one before them. */
static void test_certain_arming_counts_behind_a_possible_one(void **state)
{
	static const uint64_t times[] = { 1000, 2000 };
	static const int64_t recorded[] = { 1, 0 };
	struct setting s;

	(void)state;
	begin(&s, times, recorded, 2);
	s.range[1].certain = false;
	scan(&s, 1000, 1, 1);
	scan(&s, 2000, 1, 0);
	assert_int_equal(armed(&s, 2500), NRP_ARMED_YES);
	end(&s);
}

/* ---- ranges that only the lane arms -------------------------------------------------- */

static void pass_only(struct setting *s, uint64_t time, int32_t users)
{
	struct nrp_scan_pass p = { .null = ~UINT64_C(0) };

	NRP_SET(&p, scan_pass, time, time);
	NRP_SET(&p, scan_pass, mm, MM);
	NRP_SET(&p, scan_pass, cpu, 0);
	NRP_SET(&p, scan_pass, mm_users, users);
	assert_int_equal(nrp_scan_effects_pass(s->effects, s->worlds, &p), 0);
}

static struct nrp_scan_effects_result finish(struct setting *s)
{
	struct nrp_scan_effects_result r;

	assert_int_equal(nrp_worlds_finish(s->worlds, 9000), 0);
	assert_int_equal(nrp_scan_effects_result(s->effects, s->worlds, 9000, &r), 0);
	end(s);
	return r;
}

/* 512 pages that nobody knows, twice; no thread comes to another node in between. */
static void test_unknown_pages_fault_at_each_arming_and_move_once(void **state)
{
	static const uint64_t times[] = { 2000, 3000 };
	static const int64_t recorded[] = { -1, -1 };
	struct nrp_scan_effects_result r;
	struct setting s;

	(void)state;
	begin(&s, times, recorded, 2);
	pass_only(&s, 2000, 1);
	pass_only(&s, 3000, 1);
	r = finish(&s);
	assert_int_equal(r.extra_pages, 1024);
	assert_int_equal(r.extra_moves, 512);
}

/* The host armed all of them before, and nobody touched them: they are armed already. */
static void test_pages_armed_on_record_add_nothing(void **state)
{
	static const uint64_t times[] = { 2000 };
	static const int64_t recorded[] = { -1 };
	struct nrp_scan_effects_result r;
	struct setting s;

	(void)state;
	begin(&s, times, recorded, 1);
	scan(&s, 1000, 2, 512);
	pass_only(&s, 2000, 2);
	r = finish(&s);
	assert_int_equal(r.extra_pages, 0);
	assert_int_equal(r.extra_moves, 0);
}

/* In the same pass both scanners come by, whatever the limits of their ranges are. */
static void test_pages_scanned_in_the_same_pass_add_nothing(void **state)
{
	static const uint64_t times[] = { 2000 };
	static const int64_t recorded[] = { -1 };
	struct setting s;

	(void)state;
	begin(&s, times, recorded, 1);
	scan(&s, 2000, 1, 300);
	assert_int_equal(finish(&s).extra_pages, 0);
}

/* Ranges that hang on unknown facts count as well. */
static void test_possible_ranges_add_faults(void **state)
{
	static const uint64_t times[] = { 2000 };
	static const int64_t recorded[] = { -1 };
	struct nrp_scan_effects_result r;
	struct setting s;

	(void)state;
	begin(&s, times, recorded, 1);
	s.lane.possible = s.range;
	s.lane.possible_ranges = 1;
	s.lane.nr_ranges = 0;
	pass_only(&s, 2000, 1);
	r = finish(&s);
	assert_int_equal(r.extra_pages, 512);
	assert_int_equal(r.ranges, 0);
	assert_int_equal(r.possible_ranges, 1);
}

/* ---- did the range arm anything? ----------------------------------------------------- */

static enum nrp_known arms_after_lost_move(bool single_threaded)
{
	struct nrp_scan_evidence *e = nrp_scan_evidence_new(4096, 2 << 20, NRP_SCAN_RUNS);
	struct nrp_scan_evidence_range g = {
		.time = 1000, .start = START, .end = END, .vm_start = START
	};
	struct nrp_scan_evidence_pass pass = { .single_threaded = single_threaded, .nid = 0 };
	struct nrp_hint_fault f = moving_fault(1500);
	enum nrp_known had[NRP_SCAN_RUNS], ret;

	assert_non_null(e);
	assert_int_equal(nrp_scan_evidence_range(e, &g, 1), 0);
	assert_int_equal(nrp_scan_evidence_fault(e, 0, START, &f, had), 0);
	for (int r = 0; r < NRP_SCAN_RUNS; r++)
		assert_int_equal(had[r], NRP_KNOWN_NO);
	g.time = 3000;
	assert_int_equal(nrp_scan_evidence_arms(e, 0, &g, &pass, 0, &ret), 0);
	nrp_scan_evidence_free(e);
	return ret;
}

/*
 * The only entry that was armed has faulted, and nothing is armed at 3000. To one thread's scanner
 * the page is local on record; in the lane it is not. With more threads nothing was there to arm.
 */
static void test_lane_without_the_move_may_arm_what_the_host_did_not(void **state)
{
	(void)state;
	assert_int_equal(arms_after_lost_move(true), NRP_KNOWN_NOT);
	assert_int_equal(arms_after_lost_move(false), NRP_KNOWN_NO);
}

/*
 * A pointer may serve two address spaces in turn. Where the first one's scans differ from the
 * record, those of the second do not make its faults the record's.
 */
static void test_new_space_at_the_same_pointer_hides_no_divergence(void **state)
{
	struct nrp_scan_lane_mm mms[2] = { { .mm = MM, .passes = 1, .diverged = 1000 },
					   { .mm = MM, .passes = 1 } };
	struct nrp_error err = NRP_ERROR_INIT;
	struct setting s;

	(void)state;
	begin(&s, NULL, NULL, 0); /* the lane arms nothing */
	nrp_scan_effects_free(s.effects);
	s.lane.mm = mms;
	s.lane.nr_mms = 2;
	assert_int_equal(nrp_scan_effects_new(&s.effects, &s.capture, &s.lane,
					      NRP_SCAN_PTE_HOST_UNKNOWN, NULL, &err),
			 0);
	scan(&s, 1000, 2, 512);
	assert_int_equal(armed(&s, 1500), NRP_ARMED_NO);
	end(&s);
}

/* .. and what is uncertain in the first stays so, though nothing is in the second. */
static void test_new_space_at_the_same_pointer_hides_no_uncertainty(void **state)
{
	struct nrp_scan_lane_mm mms[2] = {
		{ .mm = MM, .passes = 1, .diverged = 1000, .uncertain = 900 },
		{ .mm = MM, .passes = 1, .diverged = 5000 }
	};
	struct nrp_error err = NRP_ERROR_INIT;
	struct setting s;

	(void)state;
	begin(&s, NULL, NULL, 0);
	nrp_scan_effects_free(s.effects);
	s.lane.mm = mms;
	s.lane.nr_mms = 2;
	assert_int_equal(nrp_scan_effects_new(&s.effects, &s.capture, &s.lane,
					      NRP_SCAN_PTE_HOST_UNKNOWN, NULL, &err),
			 0);
	scan(&s, 1000, 2, 512);
	assert_int_equal(armed(&s, 1500), NRP_ARMED_UNKNOWN);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fault_in_a_shared_mapping_is_open_to_sh0),
		cmocka_unit_test(test_lane_that_comes_by_later_may_fault_later),
		cmocka_unit_test(test_page_found_armed_is_armed_in_the_lane),
		cmocka_unit_test(test_page_armed_after_the_lane_came_by_is_open),
		cmocka_unit_test(test_certain_arming_counts_behind_a_possible_one),
		cmocka_unit_test(test_unknown_pages_fault_at_each_arming_and_move_once),
		cmocka_unit_test(test_pages_armed_on_record_add_nothing),
		cmocka_unit_test(test_pages_scanned_in_the_same_pass_add_nothing),
		cmocka_unit_test(test_possible_ranges_add_faults),
		cmocka_unit_test(test_lane_without_the_move_may_arm_what_the_host_did_not),
		cmocka_unit_test(test_new_space_at_the_same_pointer_hides_no_divergence),
		cmocka_unit_test(test_new_space_at_the_same_pointer_hides_no_uncertainty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
