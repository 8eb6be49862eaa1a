/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Side files of perf: what becomes of each line, and what the records add up to. The capture lasts
 * from 100 s to 110 s. Lines have the shapes that versions of perf print; values are made up.
 */
#include "capture/samples.h"
#include "replay/memory_samples.h"
#include "store_util.h"
#include "test_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define MM UINT64_C(0xffff888000001000)

static struct nrp_store *store;
static struct nrp_capture capture;
static struct nrp_samples_options options;
static struct nrp_samples_stats stats;
static struct nrp_error err;

static int open_capture(void **state)
{
	(void)state;
	err = (struct nrp_error)NRP_ERROR_INIT;
	memset(&stats, 0, sizeof(stats));
	options = (struct nrp_samples_options){ .path = "x.samples" };
	store = util_open("samples.db", NRP_STORE_CREATE);
	util_capture(&capture, "samples", 1);
	snprintf(capture.facts.clock, sizeof(capture.facts.clock), "mono");
	capture.first_time = 100 * SECOND;
	capture.last_time = 110 * SECOND;
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_ok(nrp_store_add_capture(store, &capture, &err), &err);
	return 0;
}

static int close_capture(void **state)
{
	(void)state;
	nrp_capture_clear(&capture);
	nrp_store_rollback(store);
	nrp_store_close(store);
	return 0;
}

static int read_text(const char *text)
{
	util_write_file("x.samples", text, strlen(text));
	return nrp_samples_read(&options, store, &capture, &stats, &err);
}

/* The only sample of the only line that is one. */
static struct nrp_memory_sample only(const char *text)
{
	struct nrp_memory_sample s = { 0 };
	struct nrp_cursor *cursor;
	const void *row;

	close_capture(NULL);
	open_capture(NULL);
	assert_ok(read_text(text), &err);
	assert_int_equal(stats.kept, 1);
	assert_ok(
		nrp_cursor_open(&cursor, store, capture.id, NRP_MEMORY_SAMPLE, ~UINT64_C(0), &err),
		&err);
	assert_int_equal(nrp_cursor_next(cursor, &row, &err), 1);
	s = *(const struct nrp_memory_sample *)row;
	assert_int_equal(nrp_cursor_next(cursor, &row, &err), 0);
	nrp_cursor_close(cursor);
	return s;
}

static void expect_refused(const char *text, enum nrp_status status, const char *what,
			   const char *remedy)
{
	const struct nrp_samples_options given = options;

	close_capture(NULL);
	open_capture(NULL);
	options = given;
	assert_true(read_text(text) < 0);
	assert_int_equal(err.status, status);
	assert_string_equal(err.file, "x.samples");
	if (!strstr(err.what, what) || !strstr(err.remedy, remedy))
		fail_msg("%s: %s", err.what, err.remedy);
}

/* ---- perf script --------------------------------------------------------------------- */

static void test_all_fields_of_a_sample(void **state)
{
	struct nrp_memory_sample s = only(
		"        numaload  1234/1237  [003]   104.000123:          7 "
		"cpu/mem-loads,ldlat=30/P:     7f0000001234       68501042 |OP LOAD|LVL Remote RAM "
		"(1 hop) hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A              412   "
		"          401234 sum+0x34 (/usr/bin/numaload)\n");

	(void)state;
	assert_int_equal(s.null & ~(NRP_BIT(memory_sample, count) | NRP_BIT(memory_sample, span) |
				    NRP_BIT(memory_sample, running)),
			 0);
	assert_int_equal(s.time, 104 * SECOND + 123000);
	assert_int_equal(s.cpu, 3);
	assert_int_equal(s.tgid, 1234);
	assert_int_equal(s.tid, 1237);
	assert_int_equal(s.addr, 0x7f0000001234);
	assert_int_equal(s.level, NRP_LEVEL_REMOTE);
	assert_int_equal(s.op, NRP_OP_LOAD);
	assert_int_equal(s.weight, 412);
	assert_int_equal(s.period, 7);
	assert_int_equal(util_integer(store, "SELECT text = 'cpu/mem-loads,ldlat=30/P' FROM name "
					     "WHERE id = (SELECT max(id) FROM name)"),
			 1);
}

static void test_fields_may_be_missing(void **state)
{
	struct nrp_memory_sample s;

	(void)state;
	/* No CPU, no pid, no period, ns instead of us, only one number: the data source. */
	s = only("ls 14753 104.072400123: l1d-miss:    88000182 |OP STORE|LVL Local RAM hit|SNP "
		 "N/A|TLB Walker hit|LCK No|BLK  N/A ffffa7c22b4b2a00 [unknown] "
		 "([kernel.kallsyms])\n");
	assert_int_equal(s.time, 104 * SECOND + 72400123);
	assert_int_equal(s.tid, 14753);
	assert_int_equal(s.op, NRP_OP_STORE);
	assert_int_equal(s.level, NRP_LEVEL_LOCAL);
	assert_true(NRP_NULL(&s, memory_sample, cpu));
	assert_true(NRP_NULL(&s, memory_sample, tgid));
	assert_true(NRP_NULL(&s, memory_sample, period));
	assert_true(NRP_NULL(&s, memory_sample, addr));
	assert_true(NRP_NULL(&s, memory_sample, weight)); /* the number is an instruction's */
	/* Neither thread nor event. */
	s = only("104.500000: 7f0000002000 68501042 |OP LOAD|LVL L3 hit|SNP None|LCK No 33\n");
	assert_true(NRP_NULL(&s, memory_sample, tid));
	assert_true(NRP_NULL(&s, memory_sample, event));
	assert_int_equal(s.addr, 0x7f0000002000);
	assert_int_equal(s.level, NRP_LEVEL_CACHE);
	assert_int_equal(s.weight, 33);
	/* An address of 0 is none. */
	s = only("a 1 104.500000: ibs_op//: 0 21a01042 |OP LOAD|LVL Local RAM hit|SNP N/A\n");
	assert_true(NRP_NULL(&s, memory_sample, addr));
}

static void test_names_of_programs_do_not_confuse(void **state)
{
	struct nrp_memory_sample s;

	(void)state;
	s = only("Web 12.000000: [7] x 77/88 [001] 104.500000:  1 ev:u: 1000 68501042 |OP LOAD|LVL "
		 "RAM hit|SNP None|TLB N/A|LCK N/A|BLK N/A 5 7 0 7fad7c47425d f (a|b)\n");
	assert_int_equal(s.time, 104 * SECOND + 500000000);
	assert_int_equal(s.tgid, 77);
	assert_int_equal(s.tid, 88);
	assert_int_equal(s.cpu, 1);
	assert_int_equal(s.weight, 5);
	assert_int_equal(s.level, NRP_LEVEL_LOCAL);
}

static void test_levels(void **state)
{
	static const struct {
		const char *text;
		int level;
	} levels[] = {
		{ "Local RAM hit", NRP_LEVEL_LOCAL },
		{ "Remote RAM (1 hop) hit", NRP_LEVEL_REMOTE },
		{ "Remote RAM (2 hops) hit", NRP_LEVEL_REMOTE },
		{ "Remote Cache (1 hop) hit", NRP_LEVEL_REMOTE_CACHE },
		{ "RAM hit", NRP_LEVEL_LOCAL },
		{ "Local RAM or RAM hit", NRP_LEVEL_LOCAL },
		{ "Remote Remote RAM (1 hop) or RAM hit", NRP_LEVEL_REMOTE },
		{ "Remote RAM hit", NRP_LEVEL_REMOTE },
		{ "Remote node, same socket RAM hit", NRP_LEVEL_REMOTE },
		{ "Remote socket, same board RAM hit", NRP_LEVEL_REMOTE },
		{ "Remote core, same node Any cache hit", NRP_LEVEL_CACHE },
		{ "Remote node, same socket Any cache hit", NRP_LEVEL_REMOTE_CACHE },
		{ "L1 hit", NRP_LEVEL_CACHE },
		{ "L2 MHB hit", NRP_LEVEL_CACHE },
		{ "Remote L3 hit", NRP_LEVEL_REMOTE_CACHE },
		{ "L3 or L3 hit", NRP_LEVEL_CACHE },
		{ "Any cache hit", NRP_LEVEL_CACHE },
		{ "L3 or Remote Cache (1 hop) hit", NRP_LEVEL_UNKNOWN },
		{ "LFB/MAB hit", NRP_LEVEL_UNKNOWN },
		{ "L1 miss", NRP_LEVEL_UNKNOWN },
		{ "L3 miss", NRP_LEVEL_UNKNOWN },
		{ "Remote PMEM hit", NRP_LEVEL_REMOTE },
		{ "PMEM hit", NRP_LEVEL_UNKNOWN },
		{ "Uncached hit", NRP_LEVEL_UNKNOWN },
		{ "I/O hit", NRP_LEVEL_UNKNOWN },
		{ "N/A", NRP_LEVEL_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		char line[256];

		snprintf(line, sizeof(line),
			 "x 1 [000] 105.000000: 1 ev: 1000 %x |OP LOAD|LVL %s|SNP None|LCK No\n",
			 0x68501042, levels[i].text);
		if (only(line).level != levels[i].level)
			fail_msg("%s", levels[i].text);
	}
	assert_int_equal(
		only("x 1 [000] 105.000000: 1 ev: 1000 2 |OP LOAD SIMD|LVL L1 hit|SNP N\n").op,
		NRP_OP_LOAD);
	assert_int_equal(
		only("x 1 [000] 105.000000: 1 ev: 1000 2 |OP PFETCH|LVL L1 hit|SNP N\n").op,
		NRP_OP_OTHER);
	assert_int_equal(only("x 1 [000] 105.000000: 1 ev: 1000 2 |OP No|LVL L1 hit|SNP N\n").op,
			 NRP_OP_UNKNOWN);
	/* A version of perf lost what stands before the level. */
	assert_int_equal(only("ls 14753 [011]  105.072400: 1 memory: 88000182 Local RAM hit|SNP "
			      "N/A|TLB Walker hit|LCK No ffffa7c2 [unknown] ([k])\n")
				 .level,
			 NRP_LEVEL_LOCAL);
	/* Without a data source the event's name counts. */
	assert_int_equal(only("a 1 [000] 105.000000: 9 "
			      "cpu/mem_load_l3_miss_retired.remote_dram/pp: 7f0000001000 401234 f "
			      "(x)\n")
				 .level,
			 NRP_LEVEL_REMOTE);
}

static void test_lines_that_are_no_samples(void **state)
{
	(void)state;
	assert_ok(read_text("# captured on: Mon\n"
			    "\n"
			    "a 1 [000] 105.000001: 1 ev: 1000 2 |OP LOAD|LVL L1 hit|SNP None\n"
			    "\t    7f5d2c3b1a00 main+0x10 (/usr/bin/a)\n"
			    "\n"
			    "a 1 [000] 105.000002: PERF_RECORD_MMAP2 1/1: [0x400000(0x1000)]\n"
			    "a 1 [000] 105.000003: 1 cycles: 401234 f (x)\n"
			    "a 1 [000] 105.000004: 1 ibs_op//: 0 0 |OP N/A|LVL N/A|SNP N/A\n"
			    "nonsense\n"
			    "a x [000] 105.000005: 1 ev: 1000 2 |OP LOAD|LVL L1 hit|SNP None\n"
			    "a 1 [000] 99.999999: 1 ev: 1000 2 |OP LOAD|LVL L1 hit|SNP None\n"
			    "a 1 [000] 110.000001: 1 ev: 1000 2 |OP LOAD|LVL L1 hit|SNP None\n"
			    "a 1 [000] 110.000000: 1 ev: 1000 2 |OP LOAD|LVL L1 hit|SNP None"),
		  &err);
	assert_int_equal(stats.lines, 13);
	assert_int_equal(stats.kept, 2);
	assert_int_equal(stats.outside, 2);
	assert_int_equal(stats.without_source, 2);
	assert_int_equal(stats.not_understood, 2);
	assert_int_equal(stats.first_bad_line, 9);
	assert_int_equal(stats.repeated, 0);
	assert_int_equal(util_integer(store, "SELECT value FROM host_setting WHERE name = "
					     "'samples.not_understood'"),
			 2);
}

static void test_one_spe_record_shown_as_several_events(void **state)
{
	(void)state;
	assert_ok(read_text("m 3603 [020] 102.463754: 1 l1d-miss: aaa0 86 |OP LOAD|LVL Remote RAM "
			    "hit|SNP "
			    "N/A\n"
			    "m 3603 [020] 102.463754: 1 llc-miss: aaa0 86 |OP LOAD|LVL Remote RAM "
			    "hit|SNP "
			    "N/A\n"
			    "m 3603 [020] 102.463754: 1 memory: aaa0 86 |OP LOAD|LVL Remote RAM "
			    "hit|SNP "
			    "N/A\n"
			    "m 3603 [020] 102.463755: 1 memory: aaa0 86 |OP LOAD|LVL Remote RAM "
			    "hit|SNP "
			    "N/A\n"
			    "m 3603 [020] 102.463755: 1 memory: aaa0 86 |OP LOAD|LVL Remote RAM "
			    "hit|SNP "
			    "N/A\n"),
		  &err);
	assert_int_equal(stats.kept, 3); /* the last two are two records of one event */
	assert_int_equal(stats.repeated, 2);
}

static void test_bad_script_files(void **state)
{
	static char long_line[70000];

	(void)state;
	expect_refused("", NRP_INPUT, "no memory sample", "perf script -F comm");
	expect_refused("PERFILE2........", NRP_INPUT, "binary file", "perf script");
	expect_refused("what is this\na\nb\n", NRP_INPUT, "line 1: is no sample", "perf script");
	expect_refused("a 1 [000] 105.000003: 1 cycles: 401234 f (x)\n", NRP_INPUT, "data_src",
		       "perf script -F");
	memset(long_line, 'a', sizeof(long_line) - 1);
	expect_refused(long_line, NRP_INPUT, "line 1: is longer than 64 KiB", "");
	/* Other clocks. */
	expect_refused("a 1 [000] 9105.000001: 1 ev: 1000 2 |OP LOAD|LVL L1 hit|SNP None\n",
		       NRP_INPUT,
		       "9105.000001 to 9105.000001 s, do not meet the capture's, 100.000000 to "
		       "110.000000",
		       "perf record -k CLOCK_MONOTONIC");
	snprintf(capture.facts.clock, sizeof(capture.facts.clock), "global");
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_true(read_text("a 1 [000] 9105.000001: 1 ev: 1000 2 |OP LOAD|LVL L1 hit|SNP N\n") <
		    0);
	assert_non_null(strstr(err.remedy, "leave perf record -k out"));
	/* Options of perf stat. */
	options.has_start = true;
	expect_refused("a 1 [000] 105.000001: 1 ev: 1000 2 |OP LOAD|LVL L1 hit|SNP None\n",
		       NRP_USAGE, "no text of perf stat", "leave --samples-start");
	options.has_start = false;
	options.path = "missing.samples";
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_true(nrp_samples_read(&options, store, &capture, &stats, &err) < 0);
	assert_int_equal(err.status, NRP_INPUT);
	util_write_file("nul.samples", "a\0b\n", 4);
	options.path = "nul.samples";
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_true(nrp_samples_read(&options, store, &capture, &stats, &err) < 0);
	assert_non_null(strstr(err.what, "line 1: is not text"));
}

static void test_any_damage_is_an_answer_or_an_error(void **state)
{
	static const char text[] = "numa load 1234/1237 [003] 104.000123: 7 cpu/mem-loads/P: "
				   "7f0000001234 68501042 |OP "
				   "LOAD|LVL Remote RAM (1 hop) hit|SNP None|TLB L1 or L2 hit|LCK "
				   "No|BLK N/A 412 401 f\n"
				   "x 2 [000] 104.000124: 7 ev: 7f0000001234 6 |OP LOAD|LVL L1 "
				   "hit|SNP None|LCK No 4\n";
	static const char counts[] = "     1.000100001,CPU0,12,,node-load-misses:u,9,50.00,,\n"
				     "     2.000100001,CPU0,13,,node-load-misses:u,9,50.00,,\n";
	uint64_t random = random_seed("damage");

	(void)state;
	for (int i = 0; i < 4000; i++) {
		char copy[sizeof(text)];
		bool stat = i & 1;
		size_t size = stat ? sizeof(counts) - 1 : sizeof(text) - 1;

		memcpy(copy, stat ? counts : text, size + 1);
		for (uint64_t n = random_range(&random, 1, 4); n; n--)
			copy[random_range(&random, 0, size - 1)] =
				(char)random_range(&random, 0, 255);
		size = random_range(&random, 0, 3) ? size : random_range(&random, 0, size);
		util_write_file("x.samples", copy, size);
		options.has_start = stat;
		options.start = 100 * SECOND;
		err = (struct nrp_error)NRP_ERROR_INIT;
		if (nrp_samples_read(&options, store, &capture, &stats, &err) < 0) {
			assert_true(err.status == NRP_INPUT || err.status == NRP_USAGE);
			assert_true(err.what[0] && err.remedy[0]);
		}
	}
}

/* ---- perf stat ----------------------------------------------------------------------- */

static struct nrp_samples_summary summary(void)
{
	struct nrp_samples_summary s;

	assert_ok(nrp_samples_summary(&s, store, &capture, &err), &err);
	return s;
}

static void test_counts_of_intervals(void **state)
{
	struct nrp_samples_summary s;

	(void)state;
	options.has_start = true;
	options.start = 101 * SECOND;
	assert_ok(read_text("# started on Mon Nov 30 12:00:00 2026\n"
			    "\n"
			    "     1.000000000,1000,,node-loads,500000,100.00,,\n"
			    "     1.000000000,300,,node-load-misses,500000,100.00,,\n"
			    "     1.000000000,77,,cycles,500000,100.00,,\n"
			    "     3.500000000,<not counted>,,node-loads,0,0.00,,\n"
			    "     3.500000000,50,,node-load-misses,500000,75.50,,\n"),
		  &err);
	assert_true(stats.counts);
	assert_int_equal(stats.kept, 3);
	assert_int_equal(stats.not_counted, 1);
	assert_int_equal(stats.not_understood, 0);
	s = summary();
	assert_int_equal(s.records, 3);
	assert_true(s.counted && s.scaled && s.remote_known && s.local_known);
	assert_int_equal(s.remote_loads, 350);
	assert_int_equal(s.local_loads, 1000 - 350);
	assert_int_equal(s.span, 3500000000);
	assert_int_equal(s.first, 101 * SECOND);
	assert_int_equal(s.last, 104 * SECOND + 500000000);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM block WHERE kind = 18"), 1);
	nrp_samples_summary_clear(&s);
}

static void test_shapes_of_perf_stat(void **state)
{
	static const char *const named[] = { "cpu/event=0xd3,umask=0x2/", NULL };
	static const struct {
		const char *line;
		uint64_t count;
	} shapes[] = {
		{ "1.000000000,12,,ls_any_fills_from_sys.dram_io_far,9,100.00,,\n", 12 },
		{ "1.000000000;13;;OCR.DEMAND_DATA_RD.L3_MISS.REMOTE_DRAM:u;9;100.00;;\n", 13 },
		{ "1.000000000,N0,4,14,,remote_access,9,100.00,,\n", 14 },
		{ "1.000000000,S1-D0-C3,2,15,,cpu/node-load-misses/,9,100.00,1.5,per sec\n", 15 },
		{ "1.000000000,16,node-load-misses\n", 16 }, /* before 3.14: no unit */
		{ "1.000000000,17.00,,node-load-misses,9,100.00\r\n", 17 },
	};
	struct nrp_samples_summary sum;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		close_capture(NULL);
		open_capture(NULL);
		options.has_start = true;
		options.start = 105 * SECOND;
		assert_ok(read_text(shapes[i].line), &err);
		assert_int_equal(stats.kept, 1);
		sum = summary();
		assert_int_equal(sum.remote_loads, shapes[i].count);
		assert_true(sum.remote_known && !sum.local_known && !sum.scaled);
		nrp_samples_summary_clear(&sum);
	}
	/* An event of any name, with the separator in it; CPUs are summed, their interval is one.
	 */
	close_capture(NULL);
	open_capture(NULL);
	options.has_start = true;
	options.start = 105 * SECOND;
	options.events = named;
	assert_ok(read_text("1.000000000,CPU0,20,,cpu/event=0xd3,umask=0x2/:u,9,50.00,,\n"
			    "1.000000000,CPU1,22,,cpu/event=0xd3,umask=0x2/:u,9,50.00,,\n"
			    "1.000000000,CPU1,99,,cpu/event=0xd3,umask=0x20/:u,9,50.00,,\n"),
		  &err);
	assert_int_equal(stats.kept, 2);
	sum = summary();
	assert_int_equal(sum.remote_loads, 42);
	assert_int_equal(sum.span, SECOND);
	assert_true(sum.scaled);
	nrp_samples_summary_clear(&sum);
}

static void test_bad_counts(void **state)
{
	static const char *const absent[] = { "no-such-event", NULL };

	(void)state;
	expect_refused("1.000000000,12,,node-load-misses,9,100.00,,\n", NRP_USAGE, "its own start",
		       "--samples-start");
	options.has_start = true;
	expect_refused("1.000000000,12,,cycles,9,100.00,,\n", NRP_USAGE, "no event is known",
		       "--samples-event NAME");
	expect_refused(
		"1.000000000,12,,node-load-misses,9,100.00,,\n"
		"1.000000000,12,,mem_load_l3_miss_retired.remote_dram,9,100.00,,\n",
		NRP_USAGE,
		"node-load-misses and mem_load_l3_miss_retired.remote_dram both count remote",
		"choose one");
	options.events = absent;
	expect_refused("1.000000000,12,,node-load-misses,9,100.00,,\n", NRP_USAGE,
		       "has no event no-such-event", "name an event");
	options.events = NULL;
	/* From 0 s on the capture's clock: before the capture. */
	expect_refused("1.000000000,12,,node-load-misses,9,100.00,,\n", NRP_INPUT,
		       "do not meet the capture's", "--samples-start");
	expect_refused("1.000000000,x,,node-load-misses,9,100.00,,\n"
		       "1.000000000,1x,,node-load-misses,9,100.00,,\n",
		       NRP_USAGE, "no event is known", "");
	expect_refused("5.000000000,1,,node-load-misses,9,100.00,,\n"
		       "4.000000000,1,,node-load-misses,9,100.00,,\n"
		       "3.000000000,1,,node-load-misses,9,100.00,,\n",
		       NRP_INPUT, "line 2: is no sample of perf script and no interval", "");
}

/* ---- the summary ---------------------------------------------------------------------- */

static void add_fault(struct nrp_writer *writer, uint64_t time, int tid, uint64_t mm,
		      uint64_t start, uint64_t end)
{
	struct nrp_hint_fault f = { .null = ~UINT64_C(0) };

	NRP_SET(&f, hint_fault, time, time);
	NRP_SET(&f, hint_fault, tid, tid);
	NRP_SET(&f, hint_fault, mm, mm);
	NRP_SET(&f, hint_fault, addr, start);
	NRP_SET(&f, hint_fault, vm_start, start);
	NRP_SET(&f, hint_fault, vm_end, end);
	assert_ok(nrp_writer_append(writer, NRP_HINT_FAULT, &f, &err), &err);
}

static void test_loads_by_mapping(void **state)
{
	static const struct {
		const char *time;
		int tid;
		unsigned int addr;
		const char *op, *level;
	} accesses[] = {
		{ "100.500000", 7, 0x10000, "LOAD", "Local RAM hit" },
		{ "104.000000", 7, 0x27fff, "LOAD", "Remote RAM hit" },
		{ "104.000000", 7, 0x28000, "LOAD", "Remote RAM hit" },
		{ "104.000000", 7, 0x40000, "STORE", "Remote RAM hit" },
		{ "107.000000", 7, 0x10000, "LOAD", "Remote RAM hit" },
		{ "107.000000", 8, 0x10000, "LOAD", "Local RAM hit" },
		{ "108.000000", 7, 0x10000, "LOAD", "L3 hit" },
		{ "109.000000", 7, 0x10000, "LOAD", "L1 miss" },
	};
	char text[2048];
	size_t used = 0;
	struct nrp_writer *writer;
	struct nrp_samples_summary s;

	(void)state;
	assert_ok(nrp_writer_new(&writer, store, capture.id, &err), &err);
	add_fault(writer, 101 * SECOND, 7, MM, 0x10000, 0x20000);
	add_fault(writer, 102 * SECOND, 7, MM, 0x18000, 0x28000); /* it grew */
	add_fault(writer, 103 * SECOND, 7, MM, 0x40000, 0x50000);
	add_fault(writer, 106 * SECOND, 7, MM + 64, 0x10000, 0x20000); /* exec */
	assert_ok(nrp_writer_flush(writer, &err), &err);
	nrp_writer_free(writer);
	for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "a %d [000] %s: 3 ev: %x 2 |OP %s|LVL %s|SNP None\n",
					 accesses[i].tid, accesses[i].time, accesses[i].addr,
					 accesses[i].op, accesses[i].level);
	assert_ok(read_text(text), &err);
	s = summary();
	assert_int_equal(s.records, 8);
	assert_false(s.counted);
	assert_int_equal(s.local_loads, 2);
	assert_int_equal(s.remote_loads, 3);
	assert_int_equal(s.local_period, 6);
	assert_int_equal(s.remote_period, 9);
	assert_int_equal(s.cache_loads, 1);
	assert_int_equal(s.unknown_loads, 1);
	assert_int_equal(s.other_accesses, 1);
	assert_int_equal(s.span, 8500000000);
	assert_int_equal(s.unplaced, 1); /* thread 8 */
	assert_int_equal(s.nr_areas, 3);
	assert_int_equal(s.area[0].mm, MM);
	assert_int_equal(s.area[0].end, 0); /* address 28000 */
	assert_int_equal(s.area[0].remote_loads, 1);
	assert_int_equal(s.area[1].start, 0x10000);
	assert_int_equal(s.area[1].end, 0x28000);
	assert_int_equal(s.area[1].local_loads, 1);
	assert_int_equal(s.area[1].remote_loads, 1);
	assert_int_equal(s.area[2].mm, MM + 64);
	assert_int_equal(s.area[2].remote_loads, 1);
	nrp_samples_summary_clear(&s);
}

static void test_no_samples(void **state)
{
	struct nrp_samples_summary s = summary();

	(void)state;
	assert_int_equal(s.records, 0);
	assert_false(s.local_known || s.remote_known);
	assert_int_equal(s.nr_areas, 0);
	nrp_samples_summary_clear(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_capture, close_capture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_fields_of_a_sample),
		TEST(test_fields_may_be_missing),
		TEST(test_names_of_programs_do_not_confuse),
		TEST(test_levels),
		TEST(test_lines_that_are_no_samples),
		TEST(test_one_spe_record_shown_as_several_events),
		TEST(test_bad_script_files),
		TEST(test_any_damage_is_an_answer_or_an_error),
		TEST(test_counts_of_intervals),
		TEST(test_shapes_of_perf_stat),
		TEST(test_bad_counts),
		TEST(test_loads_by_mapping),
		TEST(test_no_samples),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
