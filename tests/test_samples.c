/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records written to the store come back: values, order, columns, as SQL; damage is noticed. */
#include "store_util.h"
#include "schema/block.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "samples.db"

/* A new file with one capture, in an open transaction. */
static struct nrp_store *new_store(struct nrp_capture *capture)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	unlink(PATH);
	assert_ok(nrp_store_open(&store, PATH, NRP_STORE_CREATE, &err), &err);
	assert_ok(nrp_store_begin(store, &err), &err);
	util_capture(capture, "first", 1);
	assert_ok(nrp_store_add_capture(store, capture, &err), &err);
	return store;
}

static void write_rows(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		       const void *rows, uint32_t nr_rows)
{
	struct nrp_error err = NRP_ERROR_INIT;
	size_t row_size = nrp_kind(kind)->row_size;
	struct nrp_writer *writer;

	assert_ok(nrp_writer_new(&writer, store, capture_id, &err), &err);
	for (uint32_t i = 0; i < nr_rows; i++)
		assert_ok(
			nrp_writer_append(writer, kind, (const uint8_t *)rows + i * row_size, &err),
			&err);
	assert_ok(nrp_writer_flush(writer, &err), &err);
	nrp_writer_free(writer);
}

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

static void *alloc_rows(enum nrp_record_kind kind, uint32_t nr_rows)
{
	void *rows = calloc(nr_rows, nrp_kind(kind)->row_size);

	assert_non_null(rows);
	return rows;
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
			struct nrp_store *store = new_store(&capture);
			void *rows = alloc_rows(kind, sizes[k]);

			util_random_rows(kind, rows, sizes[k], 1000, k % 2 ? 5000 : 0);
			write_rows(store, capture.id, kind, rows, sizes[k]);
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
	struct nrp_store *store = new_store(&capture);
	uint32_t nr_rows = 2 * NRP_BLOCK_ROWS + 777;
	void *rows = alloc_rows(NRP_HINT_FAULT, nr_rows);

	(void)state;
	util_seed();
	/* A jitter of 40 rows: neighbouring blocks overlap a little. */
	util_random_rows(NRP_HINT_FAULT, rows, nr_rows, 1u << 20, 4000);
	write_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows);
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
	struct nrp_store *store = new_store(&capture);
	const uint32_t each = 700, blocks = 40;
	size_t row_size = sizeof(struct nrp_migration);
	uint8_t *rows = alloc_rows(NRP_MIGRATION, each * blocks);

	(void)state;
	util_seed();
	for (uint32_t b = 0; b < blocks; b++) {
		uint8_t *part = rows + (size_t)b * each * row_size;
		/* Anywhere within four blocks' time, many times equal; some over 2^63. */
		uint64_t start = util_below(4) * 20000 + (b % 8 == 0 ? UINT64_C(1) << 63 : 0);

		util_random_rows(NRP_MIGRATION, part, each, start, b % 2 ? 70000 : 0);
		write_rows(store, capture.id, NRP_MIGRATION, part, each);
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
	struct nrp_store *store = new_store(&capture);
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
	struct nrp_store *store = new_store(&capture);
	const uint32_t nr_rows = 3000;
	void *rows = alloc_rows(NRP_HINT_FAULT, nr_rows);

	(void)state;
	util_seed();
	util_random_rows(NRP_HINT_FAULT, rows, nr_rows, 0, 100);
	write_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows);
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
	struct nrp_store *store = new_store(&capture);
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
	write_rows(store, capture.id, NRP_HINT_FAULT, rows, 3);
	write_rows(store, capture.id, NRP_LOSS, &loss, 1);
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
	struct nrp_store *store = new_store(&capture);
	struct nrp_loss loss = { .null = NRP_BIT(loss, time) };
	struct nrp_writer *writer;

	(void)state;
	assert_ok(nrp_writer_new(&writer, store, capture.id, &err), &err);
	assert_int_equal(nrp_writer_append(writer, NRP_LOSS, &loss, &err), -EINVAL);
	assert_int_equal(err.status, NRP_INTERNAL);
	nrp_writer_free(writer);
	nrp_store_close(store);
}

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
		void *rows = alloc_rows(kind, ROWS), *out = alloc_rows(kind, NRP_BLOCK_BATCH);
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
	struct nrp_store *store = new_store(&capture);
	void *rows = alloc_rows(NRP_HINT_FAULT, nr_rows);

	util_random_rows(NRP_HINT_FAULT, rows, nr_rows, 0, 300);
	write_rows(store, capture.id, NRP_HINT_FAULT, rows, nr_rows);
	util_random_rows(NRP_LOCK, rows, nr_rows, 0, 0);
	write_rows(store, capture.id, NRP_LOCK, rows, nr_rows);
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
	struct nrp_store *store = new_store(&capture);
	const uint32_t nr_rows = 600;

	(void)state;
	util_seed();
	assert_ok(nrp_store_register_tables(store, &err), &err);
	for (int i = 0; i < NRP_NR_KINDS; i++) {
		enum nrp_record_kind kind = (enum nrp_record_kind)i;
		void *rows = alloc_rows(kind, nr_rows);

		check_query(store, kind, "", capture.id, rows, 0);
		util_random_rows(kind, rows, nr_rows, 0, 1000);
		write_rows(store, capture.id, kind, rows, nr_rows);
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
	struct nrp_store *store = new_store(&first);
	const size_t size = sizeof(struct nrp_ratelimit);
	uint8_t *rows = alloc_rows(NRP_RATELIMIT, 1000), *others = alloc_rows(NRP_RATELIMIT, 10);

	(void)state;
	util_seed();
	util_capture(&second, "second", 2);
	assert_ok(nrp_store_add_capture(store, &second, &err), &err);
	assert_ok(nrp_store_register_tables(store, &err), &err);
	/* Ten blocks of 100 rows, row i at time 100 * i; the other capture's are later. */
	util_random_rows(NRP_RATELIMIT, rows, 1000, 0, 0);
	for (uint32_t i = 0; i < 1000; i += 100)
		write_rows(store, first.id, NRP_RATELIMIT, rows + i * size, 100);
	util_random_rows(NRP_RATELIMIT, others, 10, 1000000, 0);
	write_rows(store, second.id, NRP_RATELIMIT, others, 10);

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
	struct nrp_store *store = new_store(&capture);
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
			write_rows(store, capture.id, NRP_LOSS, rows, 6);
		else
			assert_ok(nrp_store_exec(store, "DELETE FROM block", &err), &err);
		for (uint32_t i = 0; round == 1 && i < 6; i++)
			write_rows(store, capture.id, NRP_LOSS, &rows[i], 1);
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
		cmocka_unit_test(damaged_images_never_crash_the_decoder),
		cmocka_unit_test(a_changed_byte_of_a_block_is_reported_as_damage),
		cmocka_unit_test(block_rows_that_contradict_the_table_are_damage),
		cmocka_unit_test(a_truncated_file_is_an_error_and_no_crash),
		cmocka_unit_test(a_file_with_changed_bytes_is_an_error_and_no_crash),
		cmocka_unit_test(columns_of_few_runs_come_back),
		cmocka_unit_test(runs_that_do_not_hold_every_row_once_are_damage),
		cmocka_unit_test(blocks_of_other_minor_versions),
		cmocka_unit_test(a_block_with_a_newer_codec_asks_for_a_newer_program),
		cmocka_unit_test(sql_shows_the_values_of_every_kind),
		cmocka_unit_test(sql_constraints_select_the_right_rows),
		cmocka_unit_test(sql_compares_times_over_2_63_as_negative_numbers),
		cmocka_unit_test(sql_reports_a_damaged_block),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
