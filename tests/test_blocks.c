/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Column blocks: damage is noticed, runs come back, versions of the format. */
#include "store_util.h"
#include "schema/block.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "blocks.db"

/* ---- damage ------------------------------------------------------------------------- */

/* Loads a block image and, if that works, reads all of it. */
static int load_image(struct nrp_block *block, enum nrp_record_kind kind, const void *data,
		      size_t size, uint64_t mask, void *rows)
{
	const char *why = NULL;
	/* A copy of the exact size lets the sanitizer see every byte read too far. */
	uint8_t *copy = malloc(size ? size : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, data, size);
	r = nrp_block_load(block, kind, copy, size, mask, &why);
	free(copy);
	if (r < 0)
		assert_non_null(why);
	while (r == 0 && nrp_block_read(block, rows))
		;
	return r;
}

static void damaged_images_never_crash_the_decoder(void **state)
{
	struct nrp_encoder *encoder = nrp_encoder_new();
	struct nrp_block *block = nrp_block_new();
	enum { ROWS = 150 };

	(void)state;
	util_seed();
	for (int round = 0; round < 8; round++) {
		enum nrp_record_kind kind = (enum nrp_record_kind)util_below(NRP_NR_KINDS);
		struct nrp_columns columns = { .desc = nrp_kind(kind) };
		void *rows = util_alloc_rows(kind, ROWS),
		     *out = util_alloc_rows(kind, NRP_BLOCK_BATCH);
		struct nrp_block_image image;
		uint8_t *data;

		util_random_rows(kind, rows, ROWS, 0, 0);
		util_columns(&columns, rows, ROWS);
		assert_int_equal(
			nrp_block_encode(encoder, kind, &columns, util_order(ROWS), &image), 0);
		data = malloc(image.size + 8);
		assert_non_null(data);
		memcpy(data, image.data, image.size);
		assert_int_equal(load_image(block, kind, data, image.size, ~UINT64_C(0), out), 0);

		for (size_t i = 0; i < image.size; i++) {
			uint8_t old = data[i];

			data[i] ^= (uint8_t)(1u << util_below(8));
			load_image(block, kind, data, image.size, util_random(), out);
			data[i] = (uint8_t)util_random();
			load_image(block, kind, data, image.size, ~UINT64_C(0), out);
			data[i] = 0xff;
			load_image(block, kind, data, image.size, ~UINT64_C(0), out);
			data[i] = old;
		}
		/* Any number of bytes too few or too many is noticed without a checksum. */
		for (size_t size = 0; size < image.size; size++)
			assert_int_equal(load_image(block, kind, data, size, 0, out), -EBADMSG);
		assert_int_equal(load_image(block, kind, data, image.size + 1, 0, out), -EBADMSG);
		free(data);
		free(rows);
		free(out);
		nrp_columns_clear(&columns);
	}
	nrp_encoder_free(encoder);
	nrp_block_free(block);
}

/* Reads everything in the file; the first error. */
static int read_everything(const char *path, struct nrp_error *err)
{
	struct nrp_store *store;
	struct nrp_capture capture;
	int r;

	r = nrp_store_open(&store, path, NRP_STORE_READ, err);
	if (r < 0)
		return r;
	r = nrp_store_load_capture(store, NULL, &capture, err);
	for (int i = 0; r == 0 && i < NRP_NR_KINDS; i++) {
		struct nrp_cursor *cursor;
		const void *row;

		r = nrp_cursor_open(&cursor, store, capture.id, (enum nrp_record_kind)i,
				    ~UINT64_C(0), err);
		if (r < 0)
			break;
		while ((r = nrp_cursor_next(cursor, &row, err)) > 0)
			;
		nrp_cursor_close(cursor);
	}
	if (err->status == NRP_DONE)
		nrp_capture_clear(&capture);
	nrp_store_close(store);
	return r;
}

/* A committed file with rows of two kinds. */
static void make_file(uint32_t nr_rows)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store = util_new_store(PATH, &capture);
	void *rows = util_alloc_rows(NRP_HINT_FAULT, nr_rows);

	util_random_rows(NRP_HINT_FAULT, rows, nr_rows, 0, 300);
	util_write_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows);
	util_random_rows(NRP_LOCK, rows, nr_rows, 0, 0);
	util_write_rows(store, capture.id, NRP_LOCK, rows, nr_rows);
	free(rows);
	assert_ok(nrp_store_commit(store, &err), &err);
	nrp_store_close(store);
}

static void a_changed_byte_of_a_block_is_reported_as_damage(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	int64_t size;

	(void)state;
	util_seed();
	make_file(500);
	assert_ok(nrp_store_open(&store, PATH, NRP_STORE_WRITE, &err), &err);
	size = util_integer(store, "SELECT length(data) FROM block WHERE id = 1");
	for (int i = 0; i < 200; i++) {
		int64_t at = i < 20 ? i : (int64_t)util_below((uint64_t)size);
		struct nrp_cursor *cursor;
		const void *row;
		sqlite3_blob *blob;
		uint8_t byte;
		int r;

		assert_ok(nrp_store_begin(store, &err), &err);
		assert_int_equal(sqlite3_blob_open(nrp_store_db(store), "main", "block", "data", 1,
						   1, &blob),
				 SQLITE_OK);
		assert_int_equal(sqlite3_blob_read(blob, &byte, 1, (int)at), SQLITE_OK);
		byte ^= (uint8_t)(1u << util_below(8));
		assert_int_equal(sqlite3_blob_write(blob, &byte, 1, (int)at), SQLITE_OK);
		sqlite3_blob_close(blob);

		assert_ok(nrp_cursor_open(&cursor, store, 1, NRP_HINT_FAULT, ~UINT64_C(0), &err),
			  &err);
		r = nrp_cursor_next(cursor, &row, &err);
		assert_int_equal(r, -EBADMSG);
		assert_int_equal(err.status, NRP_INPUT);
		assert_string_equal(err.file, PATH);
		assert_string_equal(err.what, "block 1 of kind hint_fault is damaged: "
					      "its checksum does not match");
		assert_true(err.remedy[0]);
		err = (struct nrp_error)NRP_ERROR_INIT;
		nrp_cursor_close(cursor);
		nrp_store_rollback(store);
	}
	nrp_store_close(store);
}

static void block_rows_that_contradict_the_table_are_damage(void **state)
{
	static const char *const changes[] = {
		"rows = rows - 1",
		"rows = 0",
		"time_min = time_min + 1",
		"time_min = -1",
		"codec = 0",
		"time_max = time_max + 1",
		"time_max = time_max - 1",
		"checksum = 0",
		"data = x''",
		"kind = 3",
	};

	(void)state;
	util_seed();
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct nrp_error err = NRP_ERROR_INIT;
		struct nrp_store *store;
		char sql[128];

		make_file(700);
		assert_ok(nrp_store_open(&store, PATH, NRP_STORE_WRITE, &err), &err);
		snprintf(sql, sizeof(sql), "UPDATE block SET %s WHERE id = 2", changes[i]);
		assert_ok(nrp_store_exec(store, sql, &err), &err);
		nrp_store_close(store);
		if (read_everything(PATH, &err) != -EBADMSG)
			fail_msg("%s: not noticed: %s", changes[i], err.what);
		assert_int_equal(err.status, NRP_INPUT);
		assert_non_null(strstr(err.what, "block 2 of kind "));
	}
}

static void a_truncated_file_is_an_error_and_no_crash(void **state)
{
	size_t size;
	void *data;

	(void)state;
	util_seed();
	make_file(4000);
	data = util_read_file(PATH, &size);
	assert_true(size > 40 * 4096);
	for (size_t cut = 0; cut < size; cut += 4096) {
		struct nrp_error err = NRP_ERROR_INIT;

		util_write_file("cut.db", data, cut);
		assert_true(read_everything("cut.db", &err) < 0);
		assert_int_equal(err.status, NRP_INPUT);
		assert_string_equal(err.file, "cut.db");
		assert_int_equal(err.offset, cut);
	}
	free(data);
}

static void a_file_with_changed_bytes_is_an_error_and_no_crash(void **state)
{
	size_t size;
	uint8_t *data;

	(void)state;
	util_seed();
	make_file(300);
	data = util_read_file(PATH, &size);
	for (int i = 0; i < 1500; i++) {
		struct nrp_error err = NRP_ERROR_INIT;
		size_t at[3];
		uint8_t old[3];
		int n = 1 + (int)util_below(3);

		/* Half of the time where the schema and the tables' roots are. */
		for (int k = 0; k < n; k++) {
			at[k] = (size_t)util_below(i % 2 ? size : 40960);
			old[k] = data[at[k]];
			data[at[k]] = (uint8_t)util_random();
		}
		util_write_file("changed.db", data, size);
		/* A table whose root is that of another one may seem to hold several captures. */
		if (read_everything("changed.db", &err) < 0 && err.status != NRP_INPUT &&
		    !strstr(err.what, "holds several captures"))
			fail_msg("status %d, %d: %s", (int)err.status, err.code, err.what);
		for (int k = n; k-- > 0;)
			data[at[k]] = old[k];
	}
	free(data);
}

static void sql_reports_a_damaged_block(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	sqlite3_stmt *stmt;

	(void)state;
	util_seed();
	make_file(100);
	assert_ok(nrp_store_open(&store, PATH, NRP_STORE_WRITE, &err), &err);
	assert_ok(nrp_store_exec(store, "UPDATE block SET checksum = checksum + 1 WHERE kind = 12",
				 &err),
		  &err);
	assert_ok(nrp_store_register_tables(store, &err), &err);
	stmt = nrp_store_prepare(store, "SELECT count(tid) FROM lock", &err);
	assert_non_null(stmt);
	assert_int_equal(sqlite3_step(stmt) & 0xff, SQLITE_CORRUPT);
	assert_int_equal(nrp_store_fail(store, &err, "run the query"), -EBADMSG);
	assert_int_equal(err.status, NRP_INPUT);
	assert_non_null(strstr(err.what, "block 2 of kind lock is damaged"));
	sqlite3_finalize(stmt);
	/* Blocks that the constraints leave out are not read. */
	assert_int_equal(util_integer(store, "SELECT count(tid) FROM lock WHERE time > 100000"), 0);
	nrp_store_close(store);
}

/* ---- runs --------------------------------------------------------------------------- */

enum { RUN_ROWS = 6400 };

/* Columns that change now and then, one of them NULL for a while, and a time that never repeats. */
static struct nrp_munmap *rows_in_runs(void)
{
	struct nrp_munmap *rows = calloc(RUN_ROWS, sizeof(*rows));

	assert_non_null(rows);
	for (uint32_t i = 0; i < RUN_ROWS; i++) {
		rows[i].time = 1000 + 3 * i;
		rows[i].null = NRP_BIT(munmap, flushed_time);
		rows[i].tid = i < 1000 ? -5 : 7;
		rows[i].cpu = i == 6399 ? 70000 : 3;
		rows[i].mm = UINT64_MAX - i / 640;
		rows[i].downgrade = i / 100 % 2;
		if (i >= 300 && i < 900)
			rows[i].null |= NRP_BIT(munmap, len);
		else
			rows[i].len = i < 300 ? 4096 : UINT64_C(1) << 40;
	}
	return rows;
}

/* Decodes all rows in order and compares them. */
static void check_runs(const struct nrp_block_image *image, const struct nrp_munmap *want,
		       bool chosen)
{
	struct nrp_block *block = nrp_block_new();
	struct nrp_munmap got[NRP_BLOCK_BATCH];
	const char *why;
	uint32_t n, i = 0;

	memset(got, 0, sizeof(got));
	nrp_block_choose(block, chosen ? NRP_COL_munmap_downgrade : -1);
	assert_int_equal(
		nrp_block_load(block, NRP_MUNMAP, image->data, image->size, ~UINT64_C(0), &why), 0);
	while ((n = nrp_block_read(block, got))) {
		for (uint32_t k = 0; k < n; k++, i++) {
			while (chosen && !want[i].downgrade)
				i++;
			assert_memory_equal(&got[k], &want[i], sizeof(got[k]));
		}
	}
	assert_int_equal(i, RUN_ROWS);
	nrp_block_free(block);
}

static void columns_of_few_runs_come_back(void **state)
{
	struct nrp_columns columns = { .desc = nrp_kind(NRP_MUNMAP) };
	struct nrp_encoder *encoder = nrp_encoder_new();
	struct nrp_munmap *rows = rows_in_runs(), *swapped = calloc(RUN_ROWS, sizeof(*swapped));
	struct nrp_order *order = calloc(1, sizeof(*order));
	struct nrp_block_image image;

	(void)state;
	assert_non_null(swapped);
	assert_non_null(order);
	util_columns(&columns, rows, RUN_ROWS);
	assert_int_equal(
		nrp_block_encode(encoder, NRP_MUNMAP, &columns, util_order(RUN_ROWS), &image), 0);
	check_runs(&image, rows, false);
	check_runs(&image, rows, true);
	assert_int_equal(image.min[NRP_COL_munmap_tid], (uint64_t)-5);
	assert_int_equal(image.max[NRP_COL_munmap_tid], 7);
	assert_int_equal(image.max[NRP_COL_munmap_cpu], 70000);
	assert_int_equal(image.max[NRP_COL_munmap_mm], UINT64_MAX);

	/* the second half first */
	order->nr_runs = 2;
	order->run[0] = (struct nrp_run){ RUN_ROWS / 2, RUN_ROWS / 2 };
	order->run[1] = (struct nrp_run){ 0, RUN_ROWS / 2 };
	memcpy(swapped, rows + RUN_ROWS / 2, RUN_ROWS / 2 * sizeof(*rows));
	memcpy(swapped + RUN_ROWS / 2, rows, RUN_ROWS / 2 * sizeof(*rows));
	assert_int_equal(nrp_block_encode(encoder, NRP_MUNMAP, &columns, order, &image), 0);
	check_runs(&image, swapped, false);
	free(order);
	free(swapped);
	free(rows);
	nrp_columns_clear(&columns);
	nrp_encoder_free(encoder);
}

/* An order in which some rows come up to @late places later than they stand. */
static void shuffle(struct nrp_order *order, uint32_t rows, uint32_t late)
{
	static uint32_t at[NRP_BLOCK_ROWS];

	for (uint32_t i = 0; i < rows; i++)
		at[i] = i;
	for (uint32_t moves = (uint32_t)util_below(40); late && moves--;) {
		uint32_t from = (uint32_t)util_below(rows), n = (uint32_t)util_below(late);
		uint32_t row = at[from];

		for (; n && from + 1 < rows; n--, from++)
			at[from] = at[from + 1];
		at[from] = row;
	}
	order->nr_runs = 0;
	for (uint32_t i = 0; i < rows; i++)
		nrp_order_add(order, at[i]);
	nrp_order_cut(order);
}

/* Runs that are kept while rows come are those of the rows, one by one, in any order. */
static void runs_follow_the_order_of_rows(void **state)
{
	enum { ROWS = 1000, C = 7 };
	static struct nrp_order order;
	struct nrp_munmap *rows = util_alloc_rows(NRP_MUNMAP, ROWS);
	struct nrp_columns columns = { .desc = nrp_kind(NRP_MUNMAP) };
	const struct nrp_column *column = &columns.desc->columns[C];

	(void)state;
	util_seed();
	for (int round = 0; round < 500; round++) {
		uint32_t changes = (uint32_t)util_below(40), row = 0, n = 0;
		struct nrp_value_runs runs;
		uint64_t previous = 0;

		memset(rows, 0, ROWS * sizeof(*rows));
		for (uint32_t i = 0; i <= changes; i++) {
			uint64_t value = util_below(3);
			uint32_t at = (uint32_t)util_below(ROWS);

			for (uint32_t k = i ? at : 0; k < ROWS; k++)
				memcpy((uint8_t *)&rows[k] + column->offset, &value,
				       nrp_type_size(column->type));
		}
		nrp_columns_reset(&columns);
		util_columns(&columns, rows, ROWS);
		assert_false(columns.whole >> C & 1);
		shuffle(&order, ROWS, round % 5 ? (uint32_t)util_below(100) : 0);
		nrp_columns_runs(&columns, C, &order, &runs);
		assert_int_equal(runs.rows, ROWS);
		for (uint32_t i = 0; i < order.nr_runs; i++) {
			for (uint32_t k = 0; k < order.run[i].n; k++, row++) {
				uint64_t value = util_value(column, &rows[order.run[i].from + k]);

				if (row && value == previous)
					continue;
				assert_true(n < runs.nr);
				assert_int_equal(runs.from[n], row);
				assert_int_equal(runs.value[n++], value);
				previous = value;
			}
		}
		assert_int_equal(n, runs.nr);
	}
	nrp_columns_clear(&columns);
	free(rows);
}

static void runs_that_do_not_hold_every_row_once_are_damage(void **state)
{
	/* ends of the runs of tid, and what they may not be */
	static const uint32_t ends[2] = { 1000, RUN_ROWS };
	static const uint32_t wrong[][2] = {
		{ 1000, RUN_ROWS - 1 }, { 1000, RUN_ROWS + 1 }, { 0, RUN_ROWS },
		{ RUN_ROWS, RUN_ROWS }, { RUN_ROWS, 1000 },     { UINT32_MAX, RUN_ROWS },
	};
	struct nrp_columns columns = { .desc = nrp_kind(NRP_MUNMAP) };
	struct nrp_encoder *encoder = nrp_encoder_new();
	struct nrp_block *block = nrp_block_new();
	struct nrp_munmap *rows = rows_in_runs();
	struct nrp_block_image image;
	const char *why;
	uint8_t *at;

	(void)state;
	util_columns(&columns, rows, RUN_ROWS);
	assert_int_equal(
		nrp_block_encode(encoder, NRP_MUNMAP, &columns, util_order(RUN_ROWS), &image), 0);
	at = memmem(image.data, image.size, ends, sizeof(ends));
	assert_non_null(at); /* so short a stream is stored as it is */
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(at, wrong[i], sizeof(wrong[i]));
		assert_int_equal(nrp_block_load(block, NRP_MUNMAP, image.data, image.size,
						~UINT64_C(0), &why),
				 -EBADMSG);
		assert_string_equal(why, "a column's runs are wrong");
	}
	free(rows);
	nrp_columns_clear(&columns);
	nrp_encoder_free(encoder);
	nrp_block_free(block);
}

static void blocks_of_other_minor_versions(void **state)
{
	struct nrp_encoder *encoder = nrp_encoder_new();
	struct nrp_block *block = nrp_block_new();
	struct nrp_kind older = *nrp_kind(NRP_MUNMAP);
	struct nrp_columns columns = { .desc = &older };
	struct nrp_block_image image;
	struct nrp_munmap row, out[NRP_BLOCK_BATCH];
	const char *why;
	uint8_t *data;

	(void)state;
	/* A block of a program that knew four columns fewer: these are NULL. */
	older.nr_columns -= 4;
	memset(&row, 0x11, sizeof(row));
	row.null = 0;
	util_columns(&columns, &row, 1);
	assert_int_equal(nrp_block_encode(encoder, NRP_MUNMAP, &columns, util_order(1), &image), 0);
	memset(out, 0, sizeof(out));
	assert_int_equal(
		nrp_block_load(block, NRP_MUNMAP, image.data, image.size, ~UINT64_C(0), &why), 0);
	assert_int_equal(nrp_block_read(block, out), 1);
	assert_int_equal(out[0].null, NRP_BIT(munmap, start) | NRP_BIT(munmap, len) |
					      NRP_BIT(munmap, downgrade) | NRP_BIT(munmap, result));
	assert_int_equal(out[0].mm, UINT64_C(0x1111111111111111));

	/* A block with more columns than the kind has, and one of a newer format. */
	data = malloc(image.size);
	assert_non_null(data);
	memcpy(data, image.data, image.size);
	data[12] = (uint8_t)(nrp_kind(NRP_MUNMAP)->nr_columns + 1);
	assert_int_equal(nrp_block_load(block, NRP_MUNMAP, data, image.size, 0, &why), -ENOTSUP);
	assert_string_equal(why, "it has columns that are newer than this program");
	memcpy(data, image.data, image.size);
	data[4] = NRP_BLOCK_VERSION + 1;
	assert_int_equal(nrp_block_load(block, NRP_MUNMAP, data, image.size, 0, &why), -ENOTSUP);
	free(data);
	nrp_columns_clear(&columns);
	nrp_encoder_free(encoder);
	nrp_block_free(block);
}

static void a_block_with_a_newer_codec_asks_for_a_newer_program(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	(void)state;
	util_seed();
	make_file(10);
	assert_ok(nrp_store_open(&store, PATH, NRP_STORE_WRITE, &err), &err);
	assert_ok(nrp_store_exec(store, "UPDATE block SET codec = 9", &err), &err);
	nrp_store_close(store);
	assert_int_equal(read_everything(PATH, &err), -ENOTSUP);
	assert_int_equal(err.status, NRP_INPUT);
	assert_string_equal(err.remedy, "use a newer numareplay");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_images_never_crash_the_decoder),
		cmocka_unit_test(a_changed_byte_of_a_block_is_reported_as_damage),
		cmocka_unit_test(block_rows_that_contradict_the_table_are_damage),
		cmocka_unit_test(a_truncated_file_is_an_error_and_no_crash),
		cmocka_unit_test(a_file_with_changed_bytes_is_an_error_and_no_crash),
		cmocka_unit_test(sql_reports_a_damaged_block),
		cmocka_unit_test(columns_of_few_runs_come_back),
		cmocka_unit_test(runs_follow_the_order_of_rows),
		cmocka_unit_test(runs_that_do_not_hold_every_row_once_are_damage),
		cmocka_unit_test(blocks_of_other_minor_versions),
		cmocka_unit_test(a_block_with_a_newer_codec_asks_for_a_newer_program),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
