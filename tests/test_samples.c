/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records written to the store come back: values, order, columns, as SQL. */
#include "store_util.h"
#include "schema/block.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "samples.db"

/* Reads all rows of a kind and compares the columns of @mask with @rows. */
static void check_rows(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		       const void *rows, uint32_t nr_rows, uint64_t mask)
{
	struct nrp_error err = NRP_ERROR_INIT;
	size_t row_size = nrp_kind(kind)->row_size;
	struct nrp_cursor *cursor;
	const void *row;
	uint64_t count;
	uint32_t i = 0;
	int r;

	assert_ok(nrp_cursor_open(&cursor, store, capture_id, kind, mask, &err), &err);
	while ((r = nrp_cursor_next(cursor, &row, &err)) > 0) {
		assert_true(i < nr_rows);
		util_assert_row(kind, row, (const uint8_t *)rows + i * row_size, mask | 1, i);
		i++;
	}
	assert_ok(r, &err);
	assert_int_equal(i, nr_rows);
	assert_int_equal(nrp_cursor_next(cursor, &row, &err), 0); /* stays at the end */
	nrp_cursor_close(cursor);
	assert_ok(nrp_store_count(store, capture_id, kind, &count, &err), &err);
	assert_int_equal(count, nr_rows);
}

static void every_kind_round_trips(void **state)
{
	(void)state;
	util_seed();
	for (int i = 0; i < NRP_NR_KINDS; i++) {
		enum nrp_record_kind kind = (enum nrp_record_kind)i;
		/* Single rows, whole batches, and sizes around them. */
		static const uint32_t sizes[] = { 1, 2, 63, 64, 65, 255, 256, 257, 1000, 5000 };

		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
			struct nrp_capture capture;
			struct nrp_store *store = util_new_store(PATH, &capture);
			void *rows = util_alloc_rows(kind, sizes[k]);

			util_random_rows(kind, rows, sizes[k], 1000, k % 2 ? 5000 : 0);
			util_write_rows(store, capture.id, kind, rows, sizes[k]);
			util_sort_rows(kind, rows, sizes[k]);
			check_rows(store, capture.id, kind, rows, sizes[k], ~UINT64_C(0));
			free(rows);
			nrp_store_close(store);
		}
	}
}

static void several_blocks_of_a_kind_round_trip(void **state)
{
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	uint32_t nr_rows = 2 * NRP_BLOCK_ROWS + 777;
	void *rows = util_alloc_rows(NRP_HINT_FAULT, nr_rows);

	(void)state;
	util_seed();
	/* A jitter of 40 rows: neighbouring blocks overlap a little. */
	util_random_rows(NRP_HINT_FAULT, rows, nr_rows, 1u << 20, 4000);
	util_write_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM block"), 3);
	assert_int_equal(util_integer(store, "SELECT max(rows) FROM block"), NRP_BLOCK_ROWS);
	util_sort_rows(NRP_HINT_FAULT, rows, nr_rows);
	check_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows, ~UINT64_C(0));
	free(rows);
	nrp_store_close(store);
}

static void rows_of_overlapping_blocks_come_in_time_order(void **state)
{
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	const uint32_t each = 700, blocks = 40;
	size_t row_size = sizeof(struct nrp_migration);
	uint8_t *rows = util_alloc_rows(NRP_MIGRATION, each * blocks);

	(void)state;
	util_seed();
	for (uint32_t b = 0; b < blocks; b++) {
		uint8_t *part = rows + (size_t)b * each * row_size;
		/* Anywhere within four blocks' time, many times equal; some over 2^63. */
		uint64_t start = util_below(4) * 20000 + (b % 8 == 0 ? UINT64_C(1) << 63 : 0);

		util_random_rows(NRP_MIGRATION, part, each, start, b % 2 ? 70000 : 0);
		util_write_rows(store, capture.id, NRP_MIGRATION, part, each);
	}
	assert_int_equal(util_integer(store, "SELECT count(*) FROM block"), blocks);
	util_sort_rows(NRP_MIGRATION, rows, each * blocks);
	check_rows(store, capture.id, NRP_MIGRATION, rows, each * blocks, ~UINT64_C(0));
	free(rows);
	nrp_store_close(store);
}

static void equal_times_keep_the_order_of_writing(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	struct nrp_preferred row = { .null = 0, .time = 5, .cpu = 0, .nid = 0 };
	struct nrp_writer *writer;
	struct nrp_cursor *cursor;
	const void *got;

	(void)state;
	assert_ok(nrp_writer_new(&writer, store, capture.id, &err), &err);
	for (int i = 0; i < 1000; i++) {
		row.tid = i;
		assert_ok(nrp_writer_append(writer, NRP_PREFERRED, &row, &err), &err);
		if (i % 300 == 299)
			assert_ok(nrp_writer_flush(writer, &err), &err);
	}
	assert_ok(nrp_writer_flush(writer, &err), &err);
	nrp_writer_free(writer);
	assert_ok(nrp_cursor_open(&cursor, store, capture.id, NRP_PREFERRED, ~UINT64_C(0), &err),
		  &err);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(nrp_cursor_next(cursor, &got, &err), 1);
		assert_int_equal(((const struct nrp_preferred *)got)->tid, i);
	}
	nrp_cursor_close(cursor);
	nrp_store_close(store);
}

static void a_cursor_decodes_the_columns_asked_for(void **state)
{
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	const uint32_t nr_rows = 3000;
	void *rows = util_alloc_rows(NRP_HINT_FAULT, nr_rows);

	(void)state;
	util_seed();
	util_random_rows(NRP_HINT_FAULT, rows, nr_rows, 0, 100);
	util_write_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows);
	util_sort_rows(NRP_HINT_FAULT, rows, nr_rows);
	check_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows, 0);
	for (uint32_t c = 0; c < NRP_NCOLS_hint_fault; c++)
		check_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows, UINT64_C(1) << c);
	for (int i = 0; i < 20; i++)
		check_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows, util_random());
	free(rows);
	nrp_store_close(store);
}

static void blocks_record_their_ranges(void **state)
{
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	struct nrp_hint_fault rows[3] = {
		{ .time = 30, .tgid = 7, .src_nid = 2, .this_nid = 1, .target_nid = -1 },
		{ .time = 10, .tgid = 9, .src_nid = 3, .this_nid = 1, .target_nid = 0 },
		{ .time = 20,
		  .null = NRP_BIT(hint_fault, tgid) | NRP_BIT(hint_fault, src_nid),
		  .tgid = 1000,
		  .src_nid = 77,
		  .this_nid = 5,
		  .target_nid = 0 },
	};
	struct nrp_loss loss = { .time = UINT64_MAX };

	(void)state;
	util_write_rows(store, capture.id, NRP_HINT_FAULT, rows, 3);
	util_write_rows(store, capture.id, NRP_LOSS, &loss, 1);
	assert_int_equal(
		util_integer(
			store,
			"SELECT count(*) FROM block WHERE kind = 0 AND "
			"time_min = 10 AND time_max = 30 AND tgid_min = 7 AND tgid_max = 9 AND "
			"nid_min = -1 AND nid_max = 5 AND epoch = 0 AND probability = 1.0"),
		1);
	assert_int_equal(util_integer(store,
				      "SELECT count(*) FROM block WHERE kind = 17 AND "
				      "time_min = -1 AND tgid_min IS NULL AND nid_max IS NULL"),
			 1);
	nrp_store_close(store);
}

static void a_record_without_a_time_is_refused(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	struct nrp_loss loss = { .null = NRP_BIT(loss, time) };
	struct nrp_writer *writer;

	(void)state;
	assert_ok(nrp_writer_new(&writer, store, capture.id, &err), &err);
	assert_int_equal(nrp_writer_append(writer, NRP_LOSS, &loss, &err), -EINVAL);
	assert_int_equal(err.status, NRP_INTERNAL);
	nrp_writer_free(writer);
	nrp_store_close(store);
}

/* ---- SQL ---------------------------------------------------------------------------- */

/* All rows of a query over all columns equal @rows, columns in order, behind capture_id. */
static void check_query(struct nrp_store *store, enum nrp_record_kind kind, const char *where,
			int64_t capture_id, const uint8_t *rows, uint32_t nr_rows)
{
	const struct nrp_kind *desc = nrp_kind(kind);
	struct nrp_error err = NRP_ERROR_INIT;
	char sql[256];
	sqlite3_stmt *stmt;
	uint32_t n = 0;
	int step;

	snprintf(sql, sizeof(sql), "SELECT * FROM \"%s\" %s", desc->name, where);
	stmt = nrp_store_prepare(store, sql, &err);
	if (!stmt)
		fail_msg("%s: %s", sql, err.what);
	assert_int_equal(sqlite3_column_count(stmt), desc->nr_columns + 1);
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
		const uint8_t *row = rows + (size_t)n * desc->row_size;

		assert_true(n < nr_rows);
		n++;
		assert_int_equal(sqlite3_column_int64(stmt, 0), capture_id);
		for (int c = 0; c < (int)desc->nr_columns; c++) {
			assert_string_equal(sqlite3_column_name(stmt, c + 1),
					    desc->columns[c].name);
			if (*(const uint64_t *)(const void *)row >> c & 1) {
				assert_int_equal(sqlite3_column_type(stmt, c + 1), SQLITE_NULL);
				continue;
			}
			assert_int_equal(sqlite3_column_type(stmt, c + 1), SQLITE_INTEGER);
			assert_int_equal(sqlite3_column_int64(stmt, c + 1),
					 (int64_t)util_value(&desc->columns[c], row));
		}
	}
	assert_int_equal(step, SQLITE_DONE);
	sqlite3_finalize(stmt);
	if (n != nr_rows)
		fail_msg("%s: %u rows instead of %u", sql, n, nr_rows);
}

static void sql_shows_the_values_of_every_kind(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	const uint32_t nr_rows = 600;

	(void)state;
	util_seed();
	assert_ok(nrp_store_register_tables(store, &err), &err);
	for (int i = 0; i < NRP_NR_KINDS; i++) {
		enum nrp_record_kind kind = (enum nrp_record_kind)i;
		void *rows = util_alloc_rows(kind, nr_rows);

		check_query(store, kind, "", capture.id, rows, 0);
		util_random_rows(kind, rows, nr_rows, 0, 1000);
		util_write_rows(store, capture.id, kind, rows, nr_rows);
		util_sort_rows(kind, rows, nr_rows);
		check_query(store, kind, "", capture.id, rows, nr_rows);
		free(rows);
	}
	nrp_store_close(store);
}

static void sql_constraints_select_the_right_rows(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture first, second;
	struct nrp_store *store = util_new_store(PATH, &first);
	const size_t size = sizeof(struct nrp_ratelimit);
	uint8_t *rows = util_alloc_rows(NRP_RATELIMIT, 1000),
		*others = util_alloc_rows(NRP_RATELIMIT, 10);

	(void)state;
	util_seed();
	util_capture(&second, "second", 2);
	assert_ok(nrp_store_add_capture(store, &second, &err), &err);
	assert_ok(nrp_store_register_tables(store, &err), &err);
	/* Ten blocks of 100 rows, row i at time 100 * i; the other capture's are later. */
	util_random_rows(NRP_RATELIMIT, rows, 1000, 0, 0);
	for (uint32_t i = 0; i < 1000; i += 100)
		util_write_rows(store, first.id, NRP_RATELIMIT, rows + i * size, 100);
	util_random_rows(NRP_RATELIMIT, others, 10, 1000000, 0);
	util_write_rows(store, second.id, NRP_RATELIMIT, others, 10);

#define CHECK(where, from, n)                                                                      \
	check_query(store, NRP_RATELIMIT, "WHERE " where, first.id, rows + (from)*size, n)
	CHECK("capture_id = 1", 0, 1000);
	CHECK("capture_id = '1' AND time < 250", 0, 3);
	CHECK("capture_id = 1.0 AND time < 250", 0, 3);
	CHECK("capture_id = 1 AND time >= 5000", 50, 950);
	CHECK("capture_id = 1 AND time > 5000", 51, 949);
	CHECK("capture_id = 1 AND time <= 5000", 0, 51);
	CHECK("capture_id = 1 AND time < 5000", 0, 50);
	CHECK("time BETWEEN 9950 AND 10050", 100, 1);
	CHECK("time > 9999.5 AND time < 10100.5", 100, 2);
	CHECK("time >= 9999.5 AND time <= 10000.0", 100, 1);
	CHECK("time > '9999' AND time < 10050", 100, 1);
	CHECK("time < 1e3", 0, 10);
	CHECK("time < 200 AND time < 1e300", 0, 2);
	CHECK("time = 700", 7, 1);
	CHECK("time > -5 AND time < 150", 0, 2);
	CHECK("time > -1e300 AND time < 150", 0, 2);
	CHECK("capture_id IN (1, 77) AND time < 150", 0, 2);
	CHECK("time < -1", 0, 0);
	CHECK("time > 1e300", 0, 0);
	CHECK("time > NULL", 0, 0);
	CHECK("time < 500 AND time > NULL", 0, 0);
	CHECK("capture_id = NULL", 0, 0);
	CHECK("capture_id = 3", 0, 0);
	CHECK("capture_id = 'x'", 0, 0);
	CHECK("time > 500 AND time < 400", 0, 0);
	CHECK("rowid = (SELECT rowid FROM ratelimit WHERE time = 200)", 2, 1);
	CHECK("rowid = 0", 0, 0);
#undef CHECK
	check_query(store, NRP_RATELIMIT, "WHERE time >= 1000000", second.id, others, 10);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM ratelimit"), 1010);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM ratelimit WHERE time + 0 > 500"),
			 1004);
	/* A join runs the inner scan again and again. */
	assert_int_equal(util_integer(store, "SELECT count(*) FROM capture c JOIN ratelimit r "
					     "ON r.capture_id = c.id AND r.time >= 99000"),
			 20);
	free(rows);
	free(others);
	nrp_store_close(store);
}

static void sql_compares_times_over_2_63_as_negative_numbers(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	struct nrp_loss rows[6] = {
		{ .time = 1 },
		{ .time = 1000 },
		{ .time = INT64_MAX },
		{ .time = UINT64_C(1) << 63 },
		{ .time = UINT64_MAX - 9 },
		{ .time = UINT64_MAX },
	};

	(void)state;
	assert_ok(nrp_store_register_tables(store, &err), &err);
	/* As one block across 2^63, then as six. */
	for (int round = 0; round < 2; round++) {
		if (round == 0)
			util_write_rows(store, capture.id, NRP_LOSS, rows, 6);
		else
			assert_ok(nrp_store_exec(store, "DELETE FROM block", &err), &err);
		for (uint32_t i = 0; round == 1 && i < 6; i++)
			util_write_rows(store, capture.id, NRP_LOSS, &rows[i], 1);
#define COUNT(where, n)                                                                            \
	assert_int_equal(util_integer(store, "SELECT count(*) FROM loss WHERE " where), n)
		COUNT("time >= 0", 3);
		COUNT("time < 0", 3);
		COUNT("time >= -10", 5);
		COUNT("time > -10", 4);
		COUNT("time <= -10", 2);
		COUNT("time > 999 AND time < 9223372036854775807", 1);
		COUNT("time <= 9223372036854775807", 6);
		COUNT("time = -9223372036854775808", 1);
		COUNT("time <= -9223372036854775808.0", 1);
		COUNT("time < -9223372036854775808.0", 0);
		COUNT("time >= 9223372036854775807", 1);
		COUNT("time >= 9223372036854775808.0", 0);
#undef COUNT
	}
	nrp_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_round_trips),
		cmocka_unit_test(several_blocks_of_a_kind_round_trip),
		cmocka_unit_test(rows_of_overlapping_blocks_come_in_time_order),
		cmocka_unit_test(equal_times_keep_the_order_of_writing),
		cmocka_unit_test(a_cursor_decodes_the_columns_asked_for),
		cmocka_unit_test(blocks_record_their_ranges),
		cmocka_unit_test(a_record_without_a_time_is_refused),
		cmocka_unit_test(sql_shows_the_values_of_every_kind),
		cmocka_unit_test(sql_constraints_select_the_right_rows),
		cmocka_unit_test(sql_compares_times_over_2_63_as_negative_numbers),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
