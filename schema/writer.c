/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects rows per kind and writes them as blocks. */
#include "schema/block.h"
#include "schema/internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct sort_key {
	uint64_t time;
	uint32_t row;
};

/* Rows that came last: the joiner ends a record later than it begins, so they are nearly in order.
 */
#define WINDOW 128

/* Rows of one allocation. */
struct rows {
	struct rows *next;
	max_align_t row[];
};

struct buffer {
	struct nrp_columns columns;
	struct {
		uint64_t time;
		const uint8_t *row;
	} waiting[WINDOW]; /* in order of time */
	uint32_t nr_waiting;
	bool sorted;
	uint64_t last_time;
	struct rows *rows; /* waiting, free, or being filled by the caller */
	uint8_t *free_row; /* a list: each begins with a pointer to the next */
};

struct nrp_writer {
	struct nrp_store *store;
	int64_t capture_id;
	sqlite3_stmt *insert, *insert_range;
	struct nrp_encoder *encoder;
	struct sort_key *keys; /* NRP_BLOCK_ROWS, once a block is out of order */
	struct nrp_order *order;
	struct buffer buffers[NRP_NR_KINDS];
};

static void release_row(struct buffer *buffer, uint8_t *row)
{
	memcpy(row, &buffer->free_row, sizeof(buffer->free_row));
	buffer->free_row = row;
}

/* WINDOW more free rows. */
static int add_rows(struct buffer *buffer, const struct nrp_kind *desc)
{
	struct rows *rows = malloc(sizeof(*rows) + WINDOW * desc->row_size);

	if (!rows)
		return -ENOMEM;
	rows->next = buffer->rows;
	buffer->rows = rows;
	buffer->columns.desc = desc;
	for (uint32_t i = WINDOW; i--;)
		release_row(buffer, (uint8_t *)rows->row + i * desc->row_size);
	return 0;
}

static void free_rows(struct buffer *buffer)
{
	while (buffer->rows) {
		struct rows *next = buffer->rows->next;

		free(buffer->rows);
		buffer->rows = next;
	}
}

int nrp_writer_new(struct nrp_writer **ret, struct nrp_store *store, int64_t capture_id,
		   struct nrp_error *err)
{
	struct nrp_writer *writer = calloc(1, sizeof(*writer));
	int r = 0;

	if (!writer)
		return nrp_fail_nomem(err);
	writer->store = store;
	writer->capture_id = capture_id;
	writer->encoder = nrp_encoder_new();
	writer->order = malloc(sizeof(*writer->order));
	if (!writer->encoder || !writer->order)
		r = nrp_fail_nomem(err);
	if (r == 0)
		r = nrp_db_prepare(nrp_store_db(store), nrp_store_path(store),
				   "INSERT INTO block (capture_id, kind, rows, time_min, time_max, "
				   "tgid_min, tgid_max, nid_min, nid_max, codec, checksum, "
				   "raw_size, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
				   &writer->insert, err);
	/* Somebody deleted blocks whose numbers come again: what it says about them is not so. */
	if (r == 0)
		r = nrp_store_exec(store,
				   "DELETE FROM block_range WHERE block_id > "
				   "(SELECT coalesce(max(id), 0) FROM block)",
				   err);
	if (r == 0)
		r = nrp_db_prepare(nrp_store_db(store), nrp_store_path(store),
				   "INSERT INTO block_range VALUES (?, ?, ?, ?)",
				   &writer->insert_range, err);
	if (r < 0) {
		nrp_writer_free(writer);
		return r;
	}
	*ret = writer;
	return 0;
}

struct nrp_writer *nrp_writer_free(struct nrp_writer *writer)
{
	if (!writer)
		return NULL;
	for (size_t i = 0; i < NRP_NR_KINDS; i++) {
		nrp_columns_clear(&writer->buffers[i].columns);
		free_rows(&writer->buffers[i]);
	}
	nrp_encoder_free(writer->encoder);
	sqlite3_finalize(writer->insert);
	sqlite3_finalize(writer->insert_range);
	free(writer->keys);
	free(writer->order);
	free(writer);
	return NULL;
}

static int compare_keys(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	/* The row number makes the order stable. */
	return x->row < y->row ? -1 : 1;
}

/*
 * Rows come nearly in order (the joiner ends a record later than it begins), which insertion
 * sorts in a few moves per row; false: not so here, the keys are left in some order.
 */
static bool insertion_sort(struct sort_key *keys, uint32_t n)
{
	uint64_t moves = 8 * (uint64_t)n;

	for (uint32_t i = 1; i < n; i++) {
		struct sort_key key = keys[i];
		uint32_t k = i;

		while (k && keys[k - 1].time > key.time && moves) {
			keys[k] = keys[k - 1];
			k--;
			moves--;
		}
		keys[k] = key;
		if (!moves)
			return false;
	}
	return true;
}

static int sort_rows(struct nrp_writer *writer, struct nrp_columns *columns)
{
	const uint64_t *times;

	if (nrp_columns_fill(columns, 0) < 0)
		return -ENOMEM;
	times = columns->values[0];
	if (!writer->keys)
		writer->keys = malloc(NRP_BLOCK_ROWS * sizeof(*writer->keys));
	if (!writer->keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < columns->rows; i++)
		writer->keys[i] = (struct sort_key){ times[i], i };
	if (!insertion_sort(writer->keys, columns->rows))
		qsort(writer->keys, columns->rows, sizeof(*writer->keys), compare_keys);
	writer->order->nr_runs = 0;
	for (uint32_t i = 0; i < columns->rows; i++)
		nrp_order_add(writer->order, writer->keys[i].row);
	return 0;
}

/* Smallest and largest value over several signed columns; NULL if none has a value. */
static void bind_range(sqlite3_stmt *stmt, int index, const struct nrp_block_image *image,
		       uint64_t present, const int *columns, size_t nr_columns)
{
	int64_t min = INT64_MAX, max = INT64_MIN;

	for (size_t i = 0; i < nr_columns; i++) {
		int c = columns[i];

		if (c < 0 || !(present >> c & 1))
			continue;
		if ((int64_t)image->min[c] < min)
			min = (int64_t)image->min[c];
		if ((int64_t)image->max[c] > max)
			max = (int64_t)image->max[c];
	}
	if (min > max) {
		sqlite3_bind_null(stmt, index);
		sqlite3_bind_null(stmt, index + 1);
	} else {
		sqlite3_bind_int64(stmt, index, min);
		sqlite3_bind_int64(stmt, index + 1, max);
	}
}

static int insert_block(struct nrp_writer *writer, enum nrp_record_kind kind,
			const struct nrp_columns *columns, const struct nrp_block_image *image,
			struct nrp_error *err)
{
	const struct nrp_kind *desc = columns->desc;
	sqlite3_stmt *stmt = writer->insert;
	int r = 0;

	sqlite3_bind_int64(stmt, 1, writer->capture_id);
	sqlite3_bind_int(stmt, 2, (int)kind);
	sqlite3_bind_int64(stmt, 3, columns->rows);
	sqlite3_bind_int64(stmt, 4, nrp_to_sql(image->min[0]));
	sqlite3_bind_int64(stmt, 5, nrp_to_sql(image->max[0]));
	bind_range(stmt, 6, image, columns->present, &desc->tgid_column, 1);
	bind_range(stmt, 8, image, columns->present, desc->nid_columns, 3);
	sqlite3_bind_int(stmt, 10, NRP_BLOCK_CODEC);
	sqlite3_bind_int64(stmt, 11, nrp_to_sql(XXH3_64bits(image->data, image->size)));
	sqlite3_bind_int64(stmt, 12, (int64_t)image->raw_size);
	sqlite3_bind_blob64(stmt, 13, image->data, image->size, SQLITE_STATIC);
	if (sqlite3_step(stmt) != SQLITE_DONE)
		r = nrp_store_fail(writer->store, err, "store a block of records");
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return r;
}

/* What the columns of the block written last hold, but for the time, which the block itself says.
 */
static int insert_ranges(struct nrp_writer *writer, const struct nrp_columns *columns,
			 const struct nrp_block_image *image, struct nrp_error *err)
{
	sqlite3_stmt *stmt = writer->insert_range;
	int r = 0;

	sqlite3_bind_int64(stmt, 1, sqlite3_last_insert_rowid(writer->store->db));
	for (uint32_t c = 1; r == 0 && c < columns->desc->nr_columns; c++) {
		int64_t min = nrp_to_sql(image->min[c]), max = nrp_to_sql(image->max[c]);

		sqlite3_bind_int(stmt, 2, (int)c);
		if (columns->present >> c & 1) {
			/* Values on both sides of 2^63 are no range as SQL compares them. */
			if (min > max)
				continue;
			sqlite3_bind_int64(stmt, 3, min);
			sqlite3_bind_int64(stmt, 4, max);
		}
		if (sqlite3_step(stmt) != SQLITE_DONE)
			r = nrp_store_fail(writer->store, err, "store the ranges of a block");
		sqlite3_reset(stmt);
		sqlite3_bind_null(stmt, 3);
		sqlite3_bind_null(stmt, 4);
	}
	sqlite3_clear_bindings(stmt);
	return r;
}

static int write_block(struct nrp_writer *writer, enum nrp_record_kind kind, struct nrp_error *err)
{
	struct buffer *buffer = &writer->buffers[kind];
	struct nrp_columns *columns = &buffer->columns;
	struct nrp_block_image image;
	int r = 0;

	writer->order->nr_runs = 1;
	writer->order->run[0] = (struct nrp_run){ 0, columns->rows };
	if (!buffer->sorted)
		r = sort_rows(writer, columns);
	nrp_order_cut(writer->order);
	if (r == 0)
		r = nrp_block_encode(writer->encoder, kind, columns, writer->order, &image);
	if (r < 0)
		return nrp_fail_nomem(err);
	r = insert_block(writer, kind, columns, &image, err);
	if (r == 0)
		r = insert_ranges(writer, columns, &image, err);
	nrp_columns_reset(columns);
	return r;
}

/* Takes the oldest rows that wait apart; a full block is written. */
static int take_apart(struct nrp_writer *writer, enum nrp_record_kind kind, struct nrp_error *err)
{
	struct buffer *buffer = &writer->buffers[kind];
	struct nrp_columns *columns = &buffer->columns;
	uint32_t n =
		buffer->nr_waiting < NRP_COLUMNS_BATCH ? buffer->nr_waiting : NRP_COLUMNS_BATCH;
	const uint8_t *rows[NRP_COLUMNS_BATCH];

	if (!n)
		return 0;
	if (!columns->rows)
		buffer->sorted = true;
	else if (buffer->waiting[0].time < buffer->last_time)
		buffer->sorted = false;
	buffer->last_time = buffer->waiting[n - 1].time;
	buffer->nr_waiting -= n;
	for (uint32_t i = 0; i < n; i++)
		rows[i] = buffer->waiting[i].row;
	memmove(buffer->waiting, buffer->waiting + n,
		buffer->nr_waiting * sizeof(buffer->waiting[0]));
	if (nrp_columns_add(columns, rows, n) < 0)
		return nrp_fail_nomem(err);
	for (uint32_t i = 0; i < n; i++)
		release_row(buffer, (uint8_t *)rows[i]);
	return columns->rows == NRP_BLOCK_ROWS ? write_block(writer, kind, err) : 0;
}

_Static_assert(NRP_BLOCK_ROWS % NRP_COLUMNS_BATCH == 0, "a block is a whole number of batches");

void *nrp_writer_row(struct nrp_writer *writer, enum nrp_record_kind kind)
{
	struct buffer *buffer = &writer->buffers[kind];
	uint8_t *row;

	if (!buffer->free_row && add_rows(buffer, nrp_kind(kind)) < 0)
		return NULL;
	row = buffer->free_row;
	memcpy(&buffer->free_row, row, sizeof(buffer->free_row));
	return row;
}

int nrp_writer_append_row(struct nrp_writer *writer, enum nrp_record_kind kind, void *row,
			  struct nrp_error *err)
{
	struct buffer *buffer = &writer->buffers[kind];
	uint64_t null, time;
	uint32_t i;

	/* NULL word and time are the first two members of every row (record.c checks it). */
	memcpy(&null, row, sizeof(null));
	memcpy(&time, (const uint8_t *)row + sizeof(null), sizeof(time));
	if (null & 1)
		return nrp_fail(err, NRP_INTERNAL, -EINVAL, writer->store->path, -1, NULL,
				"a record of kind %s has no time", nrp_kind(kind)->name);
	for (i = buffer->nr_waiting++; i && buffer->waiting[i - 1].time > time; i--)
		buffer->waiting[i] = buffer->waiting[i - 1];
	buffer->waiting[i].time = time;
	buffer->waiting[i].row = row;
	return buffer->nr_waiting == WINDOW ? take_apart(writer, kind, err) : 0;
}

int nrp_writer_append(struct nrp_writer *writer, enum nrp_record_kind kind, const void *row,
		      struct nrp_error *err)
{
	const struct nrp_kind *desc = nrp_kind(kind);
	void *copy;

	if (!desc)
		return nrp_fail(err, NRP_INTERNAL, -EINVAL, writer->store->path, -1, NULL,
				"there is no record kind %d", (int)kind);
	copy = nrp_writer_row(writer, kind);
	if (!copy)
		return nrp_fail_nomem(err);
	memcpy(copy, row, desc->row_size);
	return nrp_writer_append_row(writer, kind, copy, err);
}

int nrp_writer_flush(struct nrp_writer *writer, struct nrp_error *err)
{
	for (size_t i = 0; i < NRP_NR_KINDS; i++) {
		struct buffer *buffer = &writer->buffers[i];
		int r = 0;

		while (r == 0 && buffer->nr_waiting)
			r = take_apart(writer, (enum nrp_record_kind)i, err);
		if (r == 0 && buffer->columns.rows)
			r = write_block(writer, (enum nrp_record_kind)i, err);
		if (r < 0)
			return r;
	}
	return 0;
}
