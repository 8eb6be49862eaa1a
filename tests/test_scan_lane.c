/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scan lanes over captures written by hand: the specification's vectors B1, B2 and B4 (scan.md 9)
 * as records, and cases around forks, splits, overlaps and losses worked out from scan.md 2.
 */
#include "replay/scan_lane.h"
#include "scan_records.h"

#include <errno.h>
#include <string.h>

#define FAR UINT64_C(1000000000)
#define AT(ms) ((ms)*MS)

static const struct nrp_scan_lane_config as_host = { .scan_delay_ms = UINT64_MAX };

static void verify(struct scan_records *r, struct nrp_scan_verify *v)
{
	struct nrp_error err = NRP_ERROR_INIT;

	scan_records_commit(r);
	assert_ok(nrp_scan_lane_verify(v, r->store, &r->capture, &err), &err);
}

/* An uncommitted capture is committed on the first run. */
static void run(struct scan_records *r, struct nrp_scan_lane *lane,
		enum nrp_scan_vma_variant variant)
{
	struct nrp_scan_lane_config config = as_host;
	struct nrp_error err = NRP_ERROR_INIT;

	config.variant = variant;
	if (!r->capture.id)
		scan_records_commit(r);
	assert_ok(nrp_scan_lane_run(lane, r->store, &r->capture, &config, &err), &err);
}

static void check_agrees(const struct nrp_scan_verify *v, enum nrp_scan_vma_variant variant,
			 uint64_t agree, uint64_t disagree, uint64_t first_ms)
{
	const struct nrp_scan_check *c = &v->check[variant];

	assert_int_equal(c->variant, variant);
	assert_int_equal(c->rule_off, 0);
	assert_int_equal(c->agree, agree);
	assert_int_equal(c->disagree, disagree);
	assert_int_equal(c->first_disagreement, AT(first_ms));
}

static const struct nrp_scan_check *check_without(const struct nrp_scan_verify *v,
						  enum nrp_scan_vma_variant variant, uint32_t rule)
{
	for (size_t i = 0; i < v->nr_checks; i++)
		if (v->check[i].variant == variant && v->check[i].rule_off == rule)
			return &v->check[i];
	fail_msg("no check of P%d without %x", variant, rule);
	return NULL;
}

static void check_range(const struct nrp_scan_lane *lane, size_t i, uint64_t ms, uint64_t start_mb,
			uint64_t end_mb, int64_t recorded, enum nrp_scan_vma_pass by, bool certain)
{
	const struct nrp_scan_lane_range *g;

	assert_in_range(i, 0, lane->nr_ranges - 1);
	g = &lane->range[i];
	assert_int_equal(g->time, AT(ms));
	assert_int_equal(g->mm, MM);
	assert_int_equal(g->start, start_mb * MB);
	assert_int_equal(g->end, end_mb * MB);
	assert_int_equal(g->recorded_pages, recorded);
	assert_int_equal(g->by, by);
	assert_int_equal(g->certain, certain);
}

/* ---- B2: a VMA starves under P2 ------------------------------------------------------ */

/*
 * B[0,100) idle below A[1000,1600), which thread 100 uses: A takes three passes a sequence, and it
 * is touched again after each third.
 */
static void b2_passes(struct scan_records *r, int sequences)
{
	struct nrp_scan_vma_state a = { .pids_reset = FAR,
					.pids = { 0, nrp_scan_pid_bit(100) },
					.prev_seq = 4 };

	for (int i = 0; i < sequences; i++) {
		uint64_t ms = 50000 + (uint64_t)i * 3000;

		add_pass(r, ms, 100, 5 + i, 0);
		add_skip(r, 0, 100, NRP_SKIP_PID_INACTIVE);
		add_range(r, 1000, 1256, 1000, 1600, 65536, &a);
		add_pass(r, ms + 1000, 100, 5 + i, 1256);
		add_range(r, 1256, 1512, 1000, 1600, 65536, &a);
		add_pass(r, ms + 2000, 100, 5 + i, 1512);
		add_range(r, 1512, 1600, 1000, 1600, 22528, &a);
		a.prev_seq = 5 + i;
		/* One page of each piece shows that there is something to arm again. */
		for (uint64_t mb = 0; mb < 600; mb += 2)
			add_fault(r, (ms + 2500) * 1000 + mb, 100, 1000, 1600, mb * 256);
	}
	add_pass(r, 50000 + (uint64_t)sequences * 3000, 100, 5 + sequences, 0);
	add_skip(r, 0, 100, NRP_SKIP_PID_INACTIVE);
	add_range(r, 1000, 1256, 1000, 1600, 65536, &a);
}

static void b2_record(struct scan_records *r, int sequences)
{
	scan_records_begin(r, true);
	b2_passes(r, sequences);
}

static void test_starving_host_is_p1_or_p2(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	b2_record(&r, 2);
	verify(&r, &v);
	assert_int_equal(v.passes, 7);
	assert_int_equal(v.idle, 0);
	assert_int_equal(v.unjudged, 0);
	assert_true(v.has_skips);
	assert_int_equal(v.vma_states, 7);
	assert_int_equal(v.consistent, 1u << NRP_SCAN_VMA_P1 | 1u << NRP_SCAN_VMA_P2);
	assert_int_equal(v.check[v.chosen].variant, NRP_SCAN_VMA_P2);
	check_agrees(&v, NRP_SCAN_VMA_P1, 7, 0, 0);
	check_agrees(&v, NRP_SCAN_VMA_P2, 7, 0, 0);
	/* B was last scanned in 4: stale at 6 and, still not scanned, at 7. */
	check_agrees(&v, NRP_SCAN_VMA_P3, 5, 2, 53000);
	check_agrees(&v, NRP_SCAN_VMA_P4, 5, 2, 53000);
	/* Scans B in the three passes that begin at 0; the others begin inside A. */
	check_agrees(&v, NRP_SCAN_VMA_P0, 4, 3, 50000);
	assert_int_equal(v.told_apart[NRP_SCAN_VMA_P2][NRP_SCAN_VMA_P3], 2);
	assert_int_equal(v.told_apart[NRP_SCAN_VMA_P3][NRP_SCAN_VMA_P2], 2);
	assert_int_equal(v.told_apart[NRP_SCAN_VMA_P1][NRP_SCAN_VMA_P2], 0);
	assert_int_equal(v.told_apart[NRP_SCAN_VMA_P2][NRP_SCAN_VMA_P2], 0);
	assert_int_equal(check_without(&v, NRP_SCAN_VMA_P3, NRP_SCAN_RULE_STALE)->disagree, 0);
	/* Without the filter: as P0. */
	assert_int_equal(check_without(&v, NRP_SCAN_VMA_P2, NRP_SCAN_RULE_PID)->disagree, 3);
	scan_records_end(&r);
}

static void test_own_lane_is_the_record(void **state)
{
	struct scan_records r;
	struct nrp_scan_lane lane;

	(void)state;
	b2_record(&r, 3);
	run(&r, &lane, NRP_SCAN_VMA_P2);
	assert_int_equal(lane.passes, 10);
	assert_int_equal(lane.nr_ranges, 10);
	assert_int_equal(lane.armed_ranges_recorded, 10);
	assert_int_equal(lane.possible_ranges, 0);
	assert_int_equal(lane.nr_mms, 1);
	assert_int_equal(lane.mm[0].diverged, 0);
	assert_int_equal(lane.mm[0].uncertain, 0);
	check_range(&lane, 0, 50000, 1000, 1256, 65536, NRP_SCAN_BY_PID, true);
	check_range(&lane, 2, 52000, 1512, 1600, 22528, NRP_SCAN_BY_PID, true);
	check_range(&lane, 9, 59000, 1000, 1256, 65536, NRP_SCAN_BY_PID, true);
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

/* One thread: more than two sequences. */
static void test_starved_is_more_than_one_sequence_beyond_the_threads(void **state)
{
	(void)state;
	for (int sequences = 2; sequences <= 3; sequences++) {
		struct scan_records r;
		struct nrp_scan_lane lane;
		const struct nrp_scan_lane_vma *b;

		b2_record(&r, sequences);
		run(&r, &lane, NRP_SCAN_VMA_P2);
		assert_int_equal(lane.nr_vmas, 2);
		b = &lane.vma[0];
		assert_int_equal(b->vm_start, 0);
		assert_int_equal(b->vm_end, 100 * MB);
		assert_int_equal(b->first_seen, AT(50000));
		assert_int_equal(b->record.last_complete, 0);
		assert_int_equal(b->record.sequences_since, sequences);
		assert_int_equal(b->record.unarmed[NRP_SCAN_SKIP_PID_INACTIVE], sequences + 1);
		assert_int_equal(b->record.starved, sequences == 3);
		assert_int_equal(b->lane.starved, sequences == 3);
		assert_true(b->lane_certain);
		assert_int_equal(lane.vma[1].record.last_complete,
				 AT(52000 + 3000 * ((uint64_t)sequences - 1)));
		assert_false(lane.vma[1].record.starved);
		nrp_scan_lane_clear(&lane);
		scan_records_end(&r);
	}
}

static void test_first_scan_that_p3_adds_is_certain(void **state)
{
	struct scan_records r;
	struct nrp_scan_lane lane;

	(void)state;
	b2_record(&r, 3);
	run(&r, &lane, NRP_SCAN_VMA_P3);
	check_range(&lane, 2, 52000, 1512, 1600, 22528, NRP_SCAN_BY_PID, true);
	check_range(&lane, 3, 53000, 0, 100, -1, NRP_SCAN_BY_STALE, true);
	/* Whether B has pages decides how far the same pass gets: [1000,1256) or [1000,1156). */
	check_range(&lane, 4, 53000, 1000, 1256, 65536, NRP_SCAN_BY_PID, false);
	assert_int_equal(lane.mm[0].diverged, AT(53000));
	assert_int_equal(lane.mm[0].uncertain, AT(53000));
	assert_true(lane.possible_ranges > 0);
	assert_true(lane.vma[0].record.starved);
	assert_false(lane.vma[0].lane.starved);
	assert_true(lane.vma[0].lane_certain);
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

/* Does the lane arm B in the pass at @ms: certainly, perhaps? */
static void check_b(const struct nrp_scan_lane *lane, uint64_t ms, bool certain, bool perhaps)
{
	bool found = false, possible = false;

	for (size_t i = 0; i < lane->nr_ranges; i++)
		if (lane->range[i].time == AT(ms) && lane->range[i].start == 0) {
			found = lane->range[i].certain;
			possible = !lane->range[i].certain;
		}
	for (size_t i = 0; i < lane->possible_ranges; i++)
		possible |= lane->possible[i].time == AT(ms) && lane->possible[i].start == 0;
	assert_int_equal(found, certain);
	assert_int_equal(possible, perhaps);
}

/*
 * Rule d with an unknown number of threads (7.2): B is stale at 53000 if it is 1, and at 59000 if
 * it is 3 (9, B2).
 */
static void test_unknown_threads_leave_open_when_a_vma_is_stale(void **state)
{
	/* Of a pass that has nothing to do with it; 0: no pass says it. */
	static const struct {
		int32_t known;
		bool certain, perhaps;
	} cases[] = { { 1, true, false }, { 3, false, true }, { 0, false, true } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scan_records r;
		struct nrp_scan_lane lane;
		struct nrp_scan_verify v;

		scan_records_begin(&r, true);
		r.no_threads = true;
		b2_passes(&r, 3);
		r.no_threads = !cases[i].known;
		r.nr_threads = cases[i].known;
		add_pass(&r, 59500, 100, 8, 1256);
		add_range(&r, 1256, 1512, 1000, 1600, 65536, NULL);
		verify(&r, &v);
		/* P2 asks for no threads; P3 agrees as long as there may be many. */
		check_agrees(&v, NRP_SCAN_VMA_P2, 11, 0, 0);
		assert_int_equal(v.check[NRP_SCAN_VMA_P3].disagree == 0, cases[i].known == 0);
		run(&r, &lane, NRP_SCAN_VMA_P3);
		check_b(&lane, 50000, false, false);
		check_b(&lane, 53000, cases[i].certain, cases[i].perhaps);
		assert_int_equal(lane.mm[0].uncertain, AT(53000));
		assert_int_equal(lane.mm[0].nr_threads, cases[i].known);
		nrp_scan_lane_clear(&lane);
		run(&r, &lane, NRP_SCAN_VMA_P2);
		assert_int_equal(lane.mm[0].uncertain, 0);
		nrp_scan_lane_clear(&lane);
		scan_records_end(&r);
	}
}

static void test_vma_that_is_gone_does_not_starve(void **state)
{
	struct scan_records r;
	struct nrp_scan_lane lane;

	(void)state;
	b2_record(&r, 3);
	add_unmap(&r, 60000, 0, 100);
	add_pass(&r, 61000, 100, 8, 1256);
	add_range(&r, 1256, 1512, 1000, 1600, 0, NULL);
	run(&r, &lane, NRP_SCAN_VMA_P2);
	assert_int_equal(lane.vma[0].vm_end, 100 * MB);
	assert_int_equal(lane.vma[0].last_seen, AT(59000));
	assert_int_equal(lane.vma[0].record.sequences_since, 3);
	assert_false(lane.vma[0].record.starved);
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

/* ---- B1: a P0 host without skip events ------------------------------------------------ */

static void b1_record(struct scan_records *r)
{
	static const uint64_t times[] = { 1000, 1500, 2000, 3000, 4000, 5000 };

	scan_records_begin(r, false);
	for (int i = 0; i < 6; i++) {
		add_pass(r, times[i], 100, i, 0);
		add_range(r, 0, 100, 0, 100, i ? 0 : 25600, NULL);
		add_range(r, 200, 300, 200, 300, i ? 0 : 25600, NULL);
	}
}

static void test_host_that_scans_everything_is_p0(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	b1_record(&r);
	verify(&r, &v);
	assert_false(v.has_skips);
	assert_int_equal(v.passes, 6);
	assert_int_equal(v.consistent, 1u << NRP_SCAN_VMA_P0);
	check_agrees(&v, NRP_SCAN_VMA_P0, 6, 0, 0);
	assert_int_equal(v.check[NRP_SCAN_VMA_P1].first_disagreement, AT(1500)); /* delay */
	assert_int_equal(v.chosen, NRP_SCAN_VMA_P0);
	scan_records_end(&r);
}

static void test_p1_scans_untouched_vmas_once(void **state)
{
	struct scan_records r;
	struct nrp_scan_lane lane;

	(void)state;
	b1_record(&r);
	run(&r, &lane, NRP_SCAN_VMA_P1);
	assert_int_equal(lane.nr_ranges, 2);
	check_range(&lane, 0, 1000, 0, 100, 25600, NRP_SCAN_BY_FIRST_TWO, true);
	check_range(&lane, 1, 1000, 200, 300, 25600, NRP_SCAN_BY_FIRST_TWO, true);
	assert_int_equal(lane.possible_ranges, 0);
	assert_int_equal(lane.mm[0].diverged, AT(1500));
	assert_int_equal(lane.mm[0].uncertain, 0);
	for (int i = 0; i < 2; i++) {
		assert_true(lane.vma[i].lane.starved);
		assert_true(lane.vma[i].lane_certain);
		assert_int_equal(lane.vma[i].lane.last_complete, AT(1000));
		assert_int_equal(lane.vma[i].lane.unarmed[NRP_SCAN_SKIP_PID_INACTIVE], 4);
		assert_false(lane.vma[i].record.starved);
		assert_int_equal(lane.vma[i].record.last_complete, AT(5000));
	}
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

/* t=4000: nothing is above 300, so the next sequence begins with A. */
static void test_p2_forces_one_untouched_vma_a_pass(void **state)
{
	struct scan_records r;
	struct nrp_scan_lane lane;

	(void)state;
	b1_record(&r);
	run(&r, &lane, NRP_SCAN_VMA_P2);
	assert_int_equal(lane.nr_ranges, 6);
	check_range(&lane, 2, 2000, 0, 100, 0, NRP_SCAN_BY_FORCE, true);
	check_range(&lane, 3, 3000, 200, 300, 0, NRP_SCAN_BY_FORCE, true);
	check_range(&lane, 4, 4000, 0, 100, 0, NRP_SCAN_BY_FORCE, true);
	check_range(&lane, 5, 5000, 200, 300, 0, NRP_SCAN_BY_FORCE, true);
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

/* A fault in A after the host's second pass over it sets the bit for P1 only as a possibility. */
static void test_fault_behind_a_scan_that_the_lane_lacks_is_only_possible(void **state)
{
	struct scan_records r;
	struct nrp_scan_lane lane;

	(void)state;
	scan_records_begin(&r, false);
	for (int i = 0; i < 4; i++) {
		add_pass(&r, 1000 + 1500 * (uint64_t)i, 100, i, 0);
		/* One page is armed at 4000: the record does not say which. */
		add_range(&r, 0, 100, 0, 100, i == 0 ? 12800 : i == 2 ? 1 : 0, NULL);
		if (i == 2) /* P1 came by at 2500 last */
			add_fault(&r, 5000000, 100, 0, 100, 7);
	}
	run(&r, &lane, NRP_SCAN_VMA_P1);
	assert_int_equal(lane.nr_ranges, 2); /* 1000, 2500: first two, and no delay left */
	assert_int_equal(lane.possible_ranges, 1);
	assert_int_equal(lane.mm[0].uncertain, AT(5500));
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

/* Nothing was armed after 1000, so the page was armed then, by P1 too: it faults at 5000. */
static void test_fault_of_a_page_armed_before_is_certain(void **state)
{
	struct scan_records r;
	struct nrp_scan_lane lane;

	(void)state;
	scan_records_begin(&r, false);
	for (int i = 0; i < 4; i++) {
		add_pass(&r, 1000 + 1500 * (uint64_t)i, 100, i, 0);
		add_range(&r, 0, 100, 0, 100, i == 3 ? 1 : i ? 0 : 12800, NULL);
		if (i == 2)
			add_fault(&r, 5000000, 100, 0, 100, 7);
	}
	run(&r, &lane, NRP_SCAN_VMA_P1);
	assert_int_equal(lane.nr_ranges, 3);
	check_range(&lane, 2, 5500, 0, 100, 1, NRP_SCAN_BY_PID, true);
	assert_int_equal(lane.possible_ranges, 0);
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

/* ---- B4: a VMA scanned in part, and another thread ------------------------------------- */

/*
 * A[0,600) is thread 100's, D[700,710) thread 200's. A pass over D before shows the lanes that it
 * is there; its page was touched again since.
 */
static void b4_record(struct scan_records *r)
{
	struct nrp_scan_vma_state a = { .pids_reset = FAR,
					.pids = { 0, nrp_scan_pid_bit(100) },
					.prev_seq = 4 };
	struct nrp_scan_vma_state d = { .pids_reset = FAR,
					.pids = { 0, nrp_scan_pid_bit(200) },
					.prev_seq = 3 };

	scan_records_begin(r, true);
	r->nr_threads = 2;
	add_pass(r, 49000, 200, 4, 650);
	add_range(r, 700, 710, 700, 710, 2560, &d);
	add_fault(r, 49500000, 200, 700, 710, 0);
	add_pass(r, 50000, 100, 5, 0);
	add_range(r, 0, 256, 0, 600, 65536, &a);
	add_pass(r, 51000, 200, 5, 256);
	add_skip(r, 0, 600, NRP_SKIP_IGNORE_PID);
	add_range(r, 256, 512, 0, 600, 65536, &a);
	add_pass(r, 52000, 200, 5, 512);
	add_skip(r, 0, 600, NRP_SKIP_IGNORE_PID);
	add_range(r, 512, 600, 0, 600, 22528, &a);
	d.prev_seq = 4;
	add_range(r, 700, 710, 700, 710, 1, &d);
}

static void test_another_thread_goes_on_since_p2(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	b4_record(&r);
	/* In sequence 6 now, nothing left to arm: the second walk finds A completed. */
	add_pass(&r, 53000, 100, 6, 0);
	add_range(&r, 0, 256, 0, 600, 0, NULL);
	add_range(&r, 256, 512, 0, 600, 0, NULL);
	add_range(&r, 512, 600, 0, 600, 0, NULL);
	add_skip(&r, 700, 710, NRP_SKIP_PID_INACTIVE);
	add_skip(&r, 0, 600, NRP_SKIP_SEQ_COMPLETED);
	add_range(&r, 700, 710, 700, 710, 0, NULL);
	add_pass(&r, 54000, 100, 6, 710);
	add_range(&r, 0, 256, 0, 600, 0, NULL);
	add_range(&r, 256, 512, 0, 600, 0, NULL);
	add_range(&r, 512, 600, 0, 600, 0, NULL);
	add_skip(&r, 700, 710, NRP_SKIP_PID_INACTIVE);
	add_skip(&r, 0, 600, NRP_SKIP_SEQ_COMPLETED);
	add_range(&r, 700, 710, 700, 710, 0, NULL);
	verify(&r, &v);
	assert_int_equal(v.consistent,
			 1u << NRP_SCAN_VMA_P2 | 1u << NRP_SCAN_VMA_P3 | 1u << NRP_SCAN_VMA_P4);
	check_agrees(&v, NRP_SCAN_VMA_P2, 6, 0, 0);
	check_agrees(&v, NRP_SCAN_VMA_P3, 6, 0, 0);
	/* P1 leaves A out at 51000 and 52000 and has no second walk at 53000 and 54000. */
	check_agrees(&v, NRP_SCAN_VMA_P1, 2, 4, 51000);
	assert_int_equal(
		check_without(&v, NRP_SCAN_VMA_P2, NRP_SCAN_RULE_PARTIAL)->first_disagreement,
		AT(51000));
	scan_records_end(&r);
}

/* P1 loses the rest of A: thread 200 finds only D open, in 51000 and in the next sequence. */
static void test_p1_leaves_the_rest_to_the_thread_that_began(void **state)
{
	struct scan_records r;
	struct nrp_scan_lane lane;

	(void)state;
	b4_record(&r);
	run(&r, &lane, NRP_SCAN_VMA_P1);
	assert_int_equal(lane.nr_ranges, 4);
	check_range(&lane, 0, 49000, 700, 710, 2560, NRP_SCAN_BY_PID, true);
	check_range(&lane, 1, 50000, 0, 256, 65536, NRP_SCAN_BY_PID, true);
	check_range(&lane, 2, 51000, 700, 710, -1, NRP_SCAN_BY_PID, true);
	check_range(&lane, 3, 52000, 700, 710, 1, NRP_SCAN_BY_PID, true);
	assert_int_equal(lane.mm[0].diverged, AT(51000));
	assert_int_equal(lane.mm[0].uncertain, 0);
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

/* ---- what happens between passes ------------------------------------------------------ */

/* Two sequences over one VMA, then a fork: the sequence starts again at 0. */
static void test_fork_of_a_single_thread_resets_the_sequence(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, false);
	for (int i = 0; i < 2; i++) {
		add_pass(&r, 1000 + 1000 * (uint64_t)i, 100, i, 0);
		add_range(&r, 0, 10, 0, 10, 2560, NULL);
	}
	add_life(&r, 2500, NRP_LIFE_FORK, 100, 101);
	add_pass(&r, 3000, 100, 0, 0);
	add_range(&r, 0, 10, 0, 10, 2560, NULL);
	add_pass(&r, 4000, 100, 1, 0);
	add_range(&r, 0, 10, 0, 10, 2560, NULL);
	verify(&r, &v);
	check_agrees(&v, NRP_SCAN_VMA_P0, 4, 0, 0);
	scan_records_end(&r);
}

/* A VMA that lost its tail is a new object: it has to wait again. */
static void trimmed_vma(struct scan_records *r, uint64_t cut_start, uint64_t cut_end,
			uint64_t left_start, uint64_t left_end, bool new_object)
{
	scan_records_begin(r, true);
	add_pass(r, 1000, 100, 0, 0);
	add_range(r, 0, 20, 0, 20, 5120, NULL);
	add_pass(r, 3000, 100, 1, 0);
	add_range(r, 0, 20, 0, 20, 0, NULL);
	add_unmap(r, 3500, cut_start, cut_end);
	add_pass(r, 4000, 100, 2, 0);
	if (new_object) {
		add_skip(r, left_start, left_end, NRP_SKIP_SCAN_DELAY);
	} else {
		add_skip(r, left_start, left_end, NRP_SKIP_PID_INACTIVE);
		add_range(r, left_start, left_end, left_start, left_end, 0, NULL);
	}
}

static void test_lower_part_of_a_cut_vma_is_new(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	trimmed_vma(&r, 10, 20, 0, 10, true);
	verify(&r, &v);
	check_agrees(&v, NRP_SCAN_VMA_P2, 3, 0, 0);
	scan_records_end(&r);
}

static void test_upper_part_of_a_cut_vma_keeps_its_state(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	trimmed_vma(&r, 0, 10, 10, 20, false);
	verify(&r, &v);
	check_agrees(&v, NRP_SCAN_VMA_P2, 3, 0, 0);
	scan_records_end(&r);
}

static void test_vma_that_grew_keeps_its_state(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, true);
	add_pass(&r, 1000, 100, 0, 0);
	add_range(&r, 10, 20, 10, 20, 2560, NULL);
	add_pass(&r, 3000, 100, 1, 0);
	add_range(&r, 4, 20, 4, 20, 1536, NULL); /* down, as a stack */
	add_pass(&r, 4000, 100, 2, 0);
	add_skip(&r, 4, 30, NRP_SKIP_PID_INACTIVE); /* up, as the heap */
	add_range(&r, 4, 30, 4, 30, 0, NULL);
	verify(&r, &v);
	check_agrees(&v, NRP_SCAN_VMA_P2, 3, 0, 0);
	scan_records_end(&r);
}

/* A fault while the pass is still below its VMA opens the VMA for this very pass. */
static void fault_during_a_pass(struct scan_records *r, uint64_t fault_us, bool scanned)
{
	scan_records_begin(r, true);
	for (int i = 0; i < 2; i++) {
		add_pass(r, 1000 + 2000 * (uint64_t)i, 100, i, 0);
		add_range(r, 0, 10, 0, 10, i ? 0 : 2560, NULL);
		add_range(r, 20, 30, 20, 30, i ? 0 : 2560, NULL);
	}
	add_pass(r, 4000, 100, 2, 0);
	add_skip(r, 0, 10, NRP_SKIP_PID_INACTIVE); /* at 4000001 us */
	if (scanned)
		add_range(r, 20, 30, 20, 30, 1, NULL); /* at 4000002 us */
	else
		add_skip(r, 20, 30, NRP_SKIP_PID_INACTIVE);
	add_range(r, 0, 10, 0, 10, 0, NULL);
	add_fault(r, fault_us, 100, 20, 30, 0);
}

static void test_fault_counts_for_vmas_not_reached_yet(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	fault_during_a_pass(&r, 4000001, true);
	verify(&r, &v);
	check_agrees(&v, NRP_SCAN_VMA_P2, 3, 0, 0);
	scan_records_end(&r);

	fault_during_a_pass(&r, 4000500, false);
	verify(&r, &v);
	check_agrees(&v, NRP_SCAN_VMA_P2, 3, 0, 0);
	scan_records_end(&r);
}

/* Two threads scan at once: both see sequence 1, each adds one at its own end. */
static void test_passes_of_two_threads_may_overlap(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, false);
	r.nr_threads = 2;
	add_pass(&r, 1000, 100, 0, 0);
	add_range(&r, 0, 10, 0, 10, 2560, NULL);
	add_pass_until(&r, 2000, 2600, 100, 1, 0);
	add_range(&r, 0, 10, 0, 10, 0, NULL);
	add_pass_until(&r, 2500, 2700, 101, 1, 0);
	add_range(&r, 0, 10, 0, 10, 0, NULL);
	add_pass(&r, 3000, 100, 3, 0);
	add_range(&r, 0, 10, 0, 10, 0, NULL);
	verify(&r, &v);
	check_agrees(&v, NRP_SCAN_VMA_P0, 4, 0, 0);
	scan_records_end(&r);
}

/* The second fault shows the VMA cut below the page of the first. */
static void test_vma_may_be_cut_during_a_pass(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;
	struct nrp_scan_lane lane;

	(void)state;
	scan_records_begin(&r, false);
	add_pass_until(&r, 1000, 1600, 100, 0, 0);
	add_range(&r, 0, 16, 0, 16, 4096, NULL);
	add_fault(&r, 1100000, 100, 0, 16, 15 * 256);
	add_fault(&r, 1200000, 100, 0, 8, 256);
	verify(&r, &v);
	assert_int_equal(v.passes, 1);
	check_agrees(&v, NRP_SCAN_VMA_P0, 1, 0, 0);
	run(&r, &lane, NRP_SCAN_VMA_P0);
	assert_int_equal(lane.nr_ranges, 1);
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

static void test_pass_cut_by_a_loss_is_not_judged(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	scan_records_begin(&r, false);
	for (int i = 0; i < 3; i++) {
		add_pass(&r, 1000 + 1000 * (uint64_t)i, 100, i * 5, 0);
		if (i != 1) /* lost */
			add_range(&r, 0, 10, 0, 10, 2560, NULL);
		else
			add_range(&r, 4, 6, 4, 6, 1, NULL);
	}
	add_loss(&r, 1500, 2500);
	verify(&r, &v);
	assert_int_equal(v.passes, 2);
	assert_int_equal(v.unjudged, 1);
	check_agrees(&v, NRP_SCAN_VMA_P0, 2, 0, 0);
	scan_records_end(&r);
}

static void test_pass_without_decisions_returned_early(void **state)
{
	struct scan_records r;
	struct nrp_scan_verify v;

	(void)state;
	b1_record(&r);
	add_pass(&r, 6000, 101, 6, 0);
	verify(&r, &v);
	assert_int_equal(v.passes, 6);
	assert_int_equal(v.idle, 1);
	scan_records_end(&r);
}

static void test_capture_without_passes_is_refused(void **state)
{
	struct nrp_scan_lane_config config = as_host;
	struct nrp_error err = NRP_ERROR_INIT, err2 = NRP_ERROR_INIT;
	struct nrp_scan_verify v;
	struct nrp_scan_lane lane;
	struct scan_records r;

	(void)state;
	scan_records_begin(&r, false);
	add_fault(&r, 5, 100, 0, 10, 0);
	scan_records_commit(&r);
	assert_int_equal(nrp_scan_lane_verify(&v, r.store, &r.capture, &err), -ENODATA);
	assert_int_equal(err.status, NRP_INPUT);
	assert_int_equal(nrp_scan_lane_run(&lane, r.store, &r.capture, &config, &err2), -ENODATA);
	scan_records_end(&r);
}

static void test_scan_size_has_a_limit(void **state)
{
	struct nrp_scan_lane_config config = as_host;
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_lane lane;
	struct scan_records r;

	(void)state;
	b1_record(&r);
	scan_records_commit(&r);
	config.scan_size_mb = 65537;
	assert_int_equal(nrp_scan_lane_run(&lane, r.store, &r.capture, &config, &err), -EINVAL);
	assert_int_equal(err.status, NRP_USAGE);
	scan_records_end(&r);
}

/* 50 MB a pass: P0 takes four for A and B. */
static void test_lane_has_its_own_scan_size(void **state)
{
	struct nrp_scan_lane_config config = as_host;
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_lane lane;
	struct scan_records r;

	(void)state;
	b1_record(&r);
	scan_records_commit(&r);
	config.scan_size_mb = 50;
	assert_ok(nrp_scan_lane_run(&lane, r.store, &r.capture, &config, &err), &err);
	check_range(&lane, 0, 1000, 0, 50, -1, NRP_SCAN_BY_NO_FILTER, true);
	assert_int_equal(lane.mm[0].diverged, AT(1000));
	nrp_scan_lane_clear(&lane);
	scan_records_end(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starving_host_is_p1_or_p2),
		cmocka_unit_test(test_own_lane_is_the_record),
		cmocka_unit_test(test_starved_is_more_than_one_sequence_beyond_the_threads),
		cmocka_unit_test(test_unknown_threads_leave_open_when_a_vma_is_stale),
		cmocka_unit_test(test_vma_that_is_gone_does_not_starve),
		cmocka_unit_test(test_first_scan_that_p3_adds_is_certain),
		cmocka_unit_test(test_host_that_scans_everything_is_p0),
		cmocka_unit_test(test_p1_scans_untouched_vmas_once),
		cmocka_unit_test(test_p2_forces_one_untouched_vma_a_pass),
		cmocka_unit_test(test_fault_behind_a_scan_that_the_lane_lacks_is_only_possible),
		cmocka_unit_test(test_fault_of_a_page_armed_before_is_certain),
		cmocka_unit_test(test_another_thread_goes_on_since_p2),
		cmocka_unit_test(test_p1_leaves_the_rest_to_the_thread_that_began),
		cmocka_unit_test(test_fork_of_a_single_thread_resets_the_sequence),
		cmocka_unit_test(test_lower_part_of_a_cut_vma_is_new),
		cmocka_unit_test(test_upper_part_of_a_cut_vma_keeps_its_state),
		cmocka_unit_test(test_vma_that_grew_keeps_its_state),
		cmocka_unit_test(test_fault_counts_for_vmas_not_reached_yet),
		cmocka_unit_test(test_passes_of_two_threads_may_overlap),
		cmocka_unit_test(test_vma_may_be_cut_during_a_pass),
		cmocka_unit_test(test_pass_cut_by_a_loss_is_not_judged),
		cmocka_unit_test(test_pass_without_decisions_returned_early),
		cmocka_unit_test(test_capture_without_passes_is_refused),
		cmocka_unit_test(test_scan_size_has_a_limit),
		cmocka_unit_test(test_lane_has_its_own_scan_size),
	};

	return cmocka_run_group_tests_name("scan_lane", tests, util_enter_dir, util_leave_dir);
}
