/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A capture and what trace-cmd prints of it give the same records, column by column and row by
 * row. What the text cannot hold is listed in lost_in_text(), each with what trace-cmd 3.1.6
 * prints instead: it must be NULL, and nothing else may differ.
 *
 * Without arguments the captures of tests/data are read; with --wide those of kernels/ and
 * policy-pairs/ in the folder that NRP_TRACES names.
 */
#include "capture/import.h"
#include "wide.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *traces; /* NRP_TRACES, with --wide */
static char scratch[] = "text-captures-XXXXXX";

struct imported {
	struct nrp_store *store;
	struct nrp_capture capture;
	struct nrp_text_stats text;
	char db[512];
};

static void import(struct imported *im, const char *path, const char *facts)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_import_options options = { .path = path, .facts = facts, .ret_text = &im->text };
	struct nrp_join_stats stats;
	static int number;

	memset(im, 0, sizeof(*im));
	snprintf(im->db, sizeof(im->db), "%s/%d.db", scratch, number++);
	if (nrp_store_open(&im->store, im->db, NRP_STORE_CREATE, &err) < 0 ||
	    nrp_store_begin(im->store, &err) < 0 ||
	    nrp_import_trace(im->store, &options, &im->capture, &stats, NULL, NULL, &err) < 0 ||
	    nrp_store_commit(im->store, &err) < 0)
		fail_msg("%s: %s", path, err.what);
}

static void done(struct imported *im)
{
	nrp_capture_clear(&im->capture);
	nrp_store_close(im->store);
	unlink(im->db);
}

static int64_t load(const struct nrp_column *column, const void *row)
{
	const char *p = (const char *)row + column->offset;
	int64_t value;
	int32_t i32;
	int16_t i16;
	int8_t i8;

	switch (column->type) {
	case NRP_T_u8:
		return *(const uint8_t *)p;
	case NRP_T_i8:
		memcpy(&i8, p, 1);
		return i8;
	case NRP_T_u16:
	case NRP_T_i16:
		memcpy(&i16, p, 2);
		return column->type == NRP_T_i16 ? i16 : (uint16_t)i16;
	case NRP_T_u32:
	case NRP_T_i32:
		memcpy(&i32, p, 4);
		return column->type == NRP_T_i32 ? i32 : (int64_t)(uint32_t)i32;
	default:
		memcpy(&value, p, 8);
		return value;
	}
}

/*
 * Is this value of the .dat one that the text does not say?
 *
 * - filter_begin.faults: printed as {0,0,..} whatever it holds, where it is an array (f0.. of 4.18
 *   are printed as they are).
 * - sched_skip_vma_numa.reason: printed by name.
 * - page_fault_*.ip in the kernel: printed as a symbol (%ps), if the file holds the kernel's.
 * - 0 of ratelimited: says that the event was recorded but did not happen; the text shows only
 *   what happened.
 */
enum lost { NEVER, PERHAPS, ALWAYS };

static enum lost lost_in_text(const struct nrp_kind *kind, const struct nrp_column *column,
			      int64_t value, bool arrays, bool ratelimit_seen)
{
	if (!strcmp(kind->name, "hint_fault") && arrays)
		if (!strncmp(column->name, "group_cpu_", 10) ||
		    !strncmp(column->name, "group_mem_", 10))
			return ALWAYS;
	if (!strcmp(kind->name, "hint_fault") && !strcmp(column->name, "ratelimited"))
		return !ratelimit_seen && value == 0 ? ALWAYS : NEVER;
	if (!strcmp(kind->name, "scan_skip") && !strcmp(column->name, "reason_raw"))
		return ALWAYS;
	if (!strcmp(kind->name, "page_fault") && !strcmp(column->name, "ip") && value < 0)
		return PERHAPS;
	return NEVER;
}

static void name_of(struct imported *im, int64_t id, char *buf, size_t size)
{
	sqlite3_stmt *s = nrp_store_prepare(im->store, "SELECT text FROM name WHERE id = ?", NULL);

	assert_non_null(s);
	sqlite3_bind_int64(s, 1, id);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	snprintf(buf, size, "%s", (const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
}

static void same_value(struct imported *dat, struct imported *text, const struct nrp_column *column,
		       const void *a, const void *b, uint64_t row)
{
	char name[2][512];

	if (strncmp(column->unit, "id in table name", 16) != 0) {
		if (load(column, a) != load(column, b))
			fail_msg("%s: row %llu: %s is %lld in the file and %lld in its text",
				 dat->capture.name, (unsigned long long)row, column->name,
				 (long long)load(column, a), (long long)load(column, b));
		return;
	}
	name_of(dat, load(column, a), name[0], sizeof(name[0]));
	name_of(text, load(column, b), name[1], sizeof(name[1]));
	assert_string_equal(name[0], name[1]);
}

static void same_row(struct imported *dat, struct imported *text, const struct nrp_kind *kind,
		     const void *a, const void *b, uint64_t row)
{
	bool arrays = text->text.zero_arrays > 0;
	bool ratelimit_seen = text->capture.facts.has_ratelimit_event;
	uint64_t null[2];

	memcpy(&null[0], a, 8);
	memcpy(&null[1], b, 8);
	for (uint32_t i = 0; i < kind->nr_columns; i++) {
		const struct nrp_column *column = &kind->columns[i];
		bool is_null[2] = { null[0] >> i & 1, null[1] >> i & 1 };
		enum lost lost = is_null[0] ? NEVER
					    : lost_in_text(kind, column, load(column, a), arrays,
							   ratelimit_seen);

		if (lost == ALWAYS && !is_null[1])
			fail_msg("%s: row %llu: %s.%s is not in the text", dat->capture.name,
				 (unsigned long long)row, kind->name, column->name);
		if (lost != NEVER && is_null[1])
			continue;
		if (is_null[0] != is_null[1])
			fail_msg("%s: row %llu: %s.%s is NULL in the %s only", dat->capture.name,
				 (unsigned long long)row, kind->name, column->name,
				 is_null[0] ? "file" : "text");
		if (!is_null[0])
			same_value(dat, text, column, a, b, row);
	}
}

static void same_kind(struct imported *dat, struct imported *text, enum nrp_record_kind k)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_cursor *cursor[2];
	const void *a, *b;
	uint64_t row = 0, rows[2];
	int r;

	assert_int_equal(nrp_store_count(dat->store, dat->capture.id, k, &rows[0], &err), 0);
	assert_int_equal(nrp_store_count(text->store, text->capture.id, k, &rows[1], &err), 0);
	if (k == NRP_GROUP_WEIGHT && text->text.zero_arrays) {
		assert_int_equal(rows[1], 0);
		return;
	}
	if (rows[0] != rows[1])
		fail_msg("%s: %llu %s in the file, %llu in its text", dat->capture.name,
			 (unsigned long long)rows[0], nrp_kind(k)->name,
			 (unsigned long long)rows[1]);
	assert_int_equal(
		nrp_cursor_open(&cursor[0], dat->store, dat->capture.id, k, ~UINT64_C(0), &err), 0);
	assert_int_equal(
		nrp_cursor_open(&cursor[1], text->store, text->capture.id, k, ~UINT64_C(0), &err),
		0);
	while ((r = nrp_cursor_next(cursor[0], &a, &err)) > 0) {
		assert_int_equal(nrp_cursor_next(cursor[1], &b, &err), 1);
		same_row(dat, text, nrp_kind(k), a, b, row++);
	}
	assert_int_equal(r, 0);
	nrp_cursor_close(cursor[0]);
	nrp_cursor_close(cursor[1]);
}

/* A text says nothing of kernel and clock; what events prove is the same. */
static void same_capture(const struct imported *dat, const struct imported *text)
{
	const struct nrp_host_facts *a = &dat->capture.facts, *b = &text->capture.facts;

	assert_int_equal(dat->capture.events, text->capture.events);
	assert_int_equal(dat->capture.other_events, text->capture.other_events);
	assert_int_equal(dat->capture.unjoined_events, text->capture.unjoined_events);
	assert_int_equal(dat->capture.lost_events, text->capture.lost_events);
	assert_int_equal(dat->capture.loss_gaps, text->capture.loss_gaps);
	assert_int_equal(dat->capture.first_time, text->capture.first_time);
	assert_int_equal(dat->capture.last_time, text->capture.last_time);
	assert_int_equal(a->hz, b->hz);
	/* Pages are named by the bounds of VMAs, if there was a hinting fault. */
	if (b->page_size != -1) {
		assert_int_equal(a->page_size, b->page_size);
		/* Events tell the size of a huge page, or the machine, which the facts name. */
		if (b->huge_pages != -1 || b->kernel[0])
			assert_int_equal(a->huge_pages, b->huge_pages);
	}
	assert_int_equal(a->cpupid_shift, b->cpupid_shift);
	assert_int_equal(a->cpupid_bits, b->cpupid_bits);
	assert_int_equal(a->nid_shift, b->nid_shift);
	/* The format of an event that never happened tells it too; text shows what happened. */
	if (b->moved_result != -1 || text->capture.facts.has_prepare_step)
		assert_int_equal(a->moved_result, b->moved_result);
	assert_int_equal(text->text.bad, 0);
	assert_int_equal(text->text.noise, 0);
	assert_false(text->text.cut);
	assert_string_equal(text->text.format, "trace-cmd report");
}

static void print(const char *path, const char *options, char *ret, size_t size)
{
	char command[1400];

	snprintf(ret, size, "%s/report.txt", scratch);
	snprintf(command, sizeof(command), "trace-cmd report -i '%s' %s >'%s' 2>/dev/null", path,
		 options, ret);
	assert_int_equal(system(command), 0);
}

static void compare(const char *path)
{
	char txt[512], facts[512];
	struct imported dat, text;
	size_t stem = strlen(path) - 4;

	printf("%s\n", path);
	snprintf(facts, sizeof(facts), "%.*s.facts", (int)stem, path);
	print(path, "-t", txt, sizeof(txt));
	import(&dat, path, NULL);
	import(&text, txt, access(facts, R_OK) == 0 ? facts : NULL);
	same_capture(&dat, &text);
	for (int k = 0; k < NRP_NR_KINDS; k++)
		if (k != NRP_MEMORY_SAMPLE) /* of side files */
			same_kind(&dat, &text, (enum nrp_record_kind)k);
	done(&text);
	/* Microseconds, and the latency format: as many records. */
	for (int latency = 0; latency < 2; latency++) {
		print(path, latency ? "-l" : "", txt, sizeof(txt));
		import(&text, txt, NULL);
		for (int k = 0; k < NRP_NR_KINDS; k++) {
			uint64_t rows[2];

			if (k == NRP_GROUP_WEIGHT || k == NRP_MEMORY_SAMPLE)
				continue;
			nrp_store_count(dat.store, dat.capture.id, (enum nrp_record_kind)k,
					&rows[0], NULL);
			nrp_store_count(text.store, text.capture.id, (enum nrp_record_kind)k,
					&rows[1], NULL);
			assert_int_equal(rows[0], rows[1]);
		}
		done(&text);
	}
	unlink(txt);
	done(&dat);
}

static void test_text_of_a_capture_gives_its_records(void **state)
{
	static const char *const folders[] = { "kernels/*", "policy-pairs" };
	char pattern[1024];
	size_t compared = 0;

	(void)state;
	for (size_t i = 0; i < (traces ? 2u : 1u); i++) {
		glob_t found;

		snprintf(pattern, sizeof(pattern), "%s/%s/*.dat", traces ? traces : NRP_TEST_DATA,
			 traces ? folders[i] : ".");
		if (glob(pattern, 0, NULL, &found) != 0)
			continue;
		for (size_t n = 0; n < found.gl_pathc; n++, compared++)
			compare(found.gl_pathv[n]);
		globfree(&found);
	}
	assert_true(compared > 0);
	printf("%zu captures\n", compared);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_of_a_capture_gives_its_records),
	};
	int r;

	traces = wide_folder(argc, argv);
	if (system("trace-cmd --version >/dev/null 2>&1") == 127 * 256) {
		printf("skipped: trace-cmd is not installed\n");
		return 77;
	}
	if (!mkdtemp(scratch)) {
		perror(scratch);
		return 1;
	}
	r = cmocka_run_group_tests_name("text_captures", tests, NULL, NULL);
	rmdir(scratch);
	return r;
}
