/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the recorded scans did with each VMA, over captures written by hand: expected values are
 * counted from the records.
 */
#include "replay/scan_lane.h"
#include "scan_records.h"

#define AT(ms) ((ms)*MS)
#define FAR UINT64_C(1000000000)

static void record(struct scan_records *r, struct nrp_scan_record *ret)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_verify v;

	scan_records_commit(r);
	assert_ok(nrp_scan_lane_verify_record(&v, ret, r->store, &r->capture, &err), &err);
}

static void check_why(const struct nrp_scan_starvation *n, uint64_t never_set, uint64_t cleared,
		      uint64_t others)
{
	assert_int_equal(n->inactive_by[NRP_INACTIVE_NEVER_SET], never_set);
	assert_int_equal(n->inactive_by[NRP_INACTIVE_CLEARED], cleared);
	assert_int_equal(n->inactive_by[NRP_INACTIVE_OTHERS], others);
	assert_int_equal(n->unarmed[NRP_SCAN_SKIP_PID_INACTIVE], never_set + cleared + others);
}

/*
 * Scanned by thread 100 alone. A: nobody's. B: thread 100 faulted in it once. C: thread 200's. D:
 * thread 189's, whose bit is that of thread 100 (both 12). In seq 4 all are armed, later left out.
 */
static void four_vmas(struct scan_records *r)
{
	scan_records_begin(r, true);
	add_pass(r, 1000, 100, 4, 0);
	for (uint64_t mb = 0; mb < 400; mb += 100)
		add_range(r, mb, mb + 10, mb, mb + 10, 2560, NULL);
	add_fault(r, 1500000, 100, 100, 110, 7);
	add_fault(r, 1600000, 200, 200, 210, 7);
	add_fault(r, 1700000, 189, 300, 310, 7);
	for (int i = 0; i < 4; i++) {
		add_pass(r, 20000 + (uint64_t)i * 1000, 100, 5 + i, 0);
		for (uint64_t mb = 0; mb < 400; mb += 100)
			add_skip(r, mb, mb + 10, NRP_SKIP_PID_INACTIVE);
	}
}

static void test_inactive_because_never_set_cleared_or_others(void **state)
{
	struct scan_records r;
	struct nrp_scan_record rec;

	(void)state;
	four_vmas(&r);
	record(&r, &rec);
	assert_true(rec.has_skips);
	assert_int_equal(rec.nr_vmas, 4);
	check_why(&rec.vma[0].record, 4, 0, 0);
	check_why(&rec.vma[1].record, 0, 4, 0);
	check_why(&rec.vma[2].record, 0, 0, 4);
	check_why(&rec.vma[3].record, 0, 4, 0);
	nrp_scan_record_clear(&rec);
	scan_records_end(&r);
}

static void test_time_passes_and_sequences_since_the_last_complete_scan(void **state)
{
	struct scan_records r;
	struct nrp_scan_record rec;

	(void)state;
	four_vmas(&r);
	record(&r, &rec);
	for (size_t i = 0; i < 4; i++) {
		const struct nrp_scan_starvation *n = &rec.vma[i].record;

		assert_int_equal(rec.vma[i].vm_start, i * 100 * MB);
		assert_int_equal(rec.vma[i].first_seen, AT(1000));
		assert_int_equal(rec.vma[i].last_seen, AT(23000));
		assert_int_equal(rec.vma[i].passes, 5);
		assert_int_equal(n->visits, 5);
		assert_int_equal(n->last_complete, AT(1000));
		assert_int_equal(n->completed, 1);
		assert_int_equal(n->passes_since, 4);
		assert_int_equal(n->sequences_since, 4); /* 4 to 8 */
		assert_int_equal(n->armed_passes, 1);
		assert_int_equal(n->armed_entries, 2560);
		assert_int_equal(n->unknown_ranges, 0);
		assert_true(n->starved); /* 4 > 1 thread + 1 */
	}
	nrp_scan_record_clear(&rec);
	scan_records_end(&r);
}

/* A range of a part ends what stands in a row, and is no complete scan. */
static void test_partial_scan_ends_the_row_but_is_not_complete(void **state)
{
	struct scan_records r;
	struct nrp_scan_record rec;
	const struct nrp_scan_starvation *n;

	(void)state;
	scan_records_begin(&r, true);
	add_pass(&r, 1000, 100, 4, 0);
	add_range(&r, 0, 300, 0, 300, 76800, NULL);
	add_pass(&r, 2000, 100, 5, 0);
	add_skip(&r, 0, 300, NRP_SKIP_SCAN_DELAY);
	add_pass(&r, 3000, 100, 6, 0);
	add_skip(&r, 0, 300, NRP_SKIP_PID_INACTIVE);
	add_pass(&r, 4000, 100, 7, 0);
	add_range(&r, 0, 100, 0, 300, 0, NULL);
	add_range(&r, 100, 256, 0, 300, 1000, NULL);
	add_pass(&r, 5000, 100, 7, 256);
	add_skip(&r, 0, 300, NRP_SKIP_SEQ_COMPLETED);
	record(&r, &rec);
	assert_int_equal(rec.nr_vmas, 1);
	n = &rec.vma[0].record;
	assert_int_equal(n->visits, 5);
	assert_int_equal(n->armed_passes, 2);
	assert_int_equal(n->armed_ranges, 3);
	assert_int_equal(n->armed_entries, 77800);
	assert_int_equal(n->completed, 1);
	assert_int_equal(n->last_complete, AT(1000));
	assert_int_equal(n->passes_since, 4);
	assert_int_equal(n->skips[NRP_SCAN_SKIP_DELAY], 1);
	assert_int_equal(n->skips[NRP_SCAN_SKIP_PID_INACTIVE], 1);
	assert_int_equal(n->skips[NRP_SCAN_SKIP_SEQ_COMPLETED], 1);
	assert_int_equal(n->unarmed[NRP_SCAN_SKIP_DELAY], 0);
	assert_int_equal(n->unarmed[NRP_SCAN_SKIP_PID_INACTIVE], 0);
	assert_int_equal(n->unarmed[NRP_SCAN_SKIP_SEQ_COMPLETED], 1);
	check_why(n, 0, 0, 0);
	nrp_scan_record_clear(&rec);
	scan_records_end(&r);
}

/* The bits that the record shows count, too: thread 100's, set before the capture began. */
static void test_bits_from_before_the_capture_are_those_on_record(void **state)
{
	struct nrp_scan_vma_state s = { .pids_reset = FAR,
					.pids = { nrp_scan_pid_bit(100), 0 },
					.prev_seq = 3 };
	struct scan_records r;
	struct nrp_scan_record rec;

	(void)state;
	scan_records_begin(&r, true);
	add_pass(&r, 1000, 100, 4, 0);
	add_range(&r, 0, 10, 0, 10, 2560, &s);
	add_pass(&r, 2000, 100, 5, 0);
	add_skip(&r, 0, 10, NRP_SKIP_PID_INACTIVE);
	record(&r, &rec);
	check_why(&rec.vma[0].record, 0, 1, 0);
	assert_false(rec.vma[0].record.starved); /* one sequence */
	nrp_scan_record_clear(&rec);
	scan_records_end(&r);
}

/* A fault after the pass came by does not explain what it decided. */
static void test_fault_behind_the_pass_counts_for_the_next_one(void **state)
{
	struct scan_records r;
	struct nrp_scan_record rec;

	(void)state;
	scan_records_begin(&r, true);
	add_pass(&r, 1000, 100, 4, 0);
	add_range(&r, 0, 10, 0, 10, 2560, NULL);
	add_pass_until(&r, 2000, 2010, 100, 5, 0);
	add_skip(&r, 0, 10, NRP_SKIP_PID_INACTIVE);
	add_fault(&r, 2005000, 200, 0, 10, 7);
	add_pass(&r, 3000, 100, 6, 0);
	add_skip(&r, 0, 10, NRP_SKIP_PID_INACTIVE);
	record(&r, &rec);
	check_why(&rec.vma[0].record, 1, 0, 1);
	nrp_scan_record_clear(&rec);
	scan_records_end(&r);
}

static void test_without_skip_events_only_ranges_are_known(void **state)
{
	struct scan_records r;
	struct nrp_scan_record rec;

	(void)state;
	scan_records_begin(&r, false);
	for (int i = 0; i < 4; i++) {
		add_pass(&r, 1000 + (uint64_t)i * 1000, 100, i, 0);
		add_range(&r, 0, 100, 0, 100, i ? 0 : 25600, NULL);
	}
	record(&r, &rec);
	assert_false(rec.has_skips);
	assert_int_equal(rec.nr_vmas, 1);
	assert_int_equal(rec.vma[0].record.completed, 4);
	assert_int_equal(rec.vma[0].record.armed_entries, 25600);
	assert_int_equal(rec.vma[0].record.passes_since, 0);
	assert_false(rec.vma[0].record.starved);
	nrp_scan_record_clear(&rec);
	scan_records_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inactive_because_never_set_cleared_or_others),
		cmocka_unit_test(test_time_passes_and_sequences_since_the_last_complete_scan),
		cmocka_unit_test(test_partial_scan_ends_the_row_but_is_not_complete),
		cmocka_unit_test(test_bits_from_before_the_capture_are_those_on_record),
		cmocka_unit_test(test_fault_behind_the_pass_counts_for_the_next_one),
		cmocka_unit_test(test_without_skip_events_only_ranges_are_known),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
