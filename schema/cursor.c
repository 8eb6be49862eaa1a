/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the rows of one kind in time order. Blocks are sorted inside but may overlap, so that the
 * cursor merges those that are open; a block is opened when the cursor reaches its first time.
 */
#include "schema/block_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* An open block with the rows decoded last. */
struct source {
	struct nrp_position at; /* of the next row */
	uint64_t time_max;
	struct nrp_block *block;
	uint8_t *rows; /* NRP_BLOCK_BATCH */
	uint32_t row, nr_rows;
};

struct nrp_cursor {
	sqlite3 *db;
	char *path;
	const struct nrp_kind *desc;
	enum nrp_record_kind kind;
	uint64_t columns;
	int where; /* column that rows are chosen by, -1: all rows */
	sqlite3_stmt *select;
	struct nrp_block_entry *entries; /* in order of their start */
	size_t nr_entries, next_entry;
	struct nrp_block_counts *counts; /* NULL: nobody counts */
	struct source **heap;            /* open blocks, the one with the next row first */
	size_t nr_open;
	struct source **idle; /* finished ones, whose buffers are used again */
	size_t nr_idle;
	size_t room;       /* of heap and idle */
	uint32_t run;      /* rows of heap[0] that come before any other block's next row */
	uint32_t run_done; /* of these, handed out */
	const uint8_t *row;
	bool failed;
};

static int fail_block(struct nrp_cursor *cursor, int64_t id, int code, const char *why,
		      struct nrp_error *err)
{
	return nrp_block_fail(cursor->path, cursor->kind, id, code, why, err);
}

/* ---- open blocks -------------------------------------------------------------------- */

static struct source *free_source(struct source *source)
{
	if (!source)
		return NULL;
	nrp_block_free(source->block);
	free(source->rows);
	free(source);
	return NULL;
}

/* A source with its buffers; there is room for it in the heap and among the idle. */
static struct source *new_source(struct nrp_cursor *cursor)
{
	struct source *source;

	if (cursor->nr_idle) {
		source = cursor->idle[--cursor->nr_idle];
		memset(source->rows, 0, NRP_BLOCK_BATCH * cursor->desc->row_size);
		return source;
	}
	if (cursor->nr_open == cursor->room) {
		size_t room = cursor->room ? cursor->room * 2 : 8;
		struct source **p = realloc(cursor->heap, room * sizeof(struct source *));

		if (!p)
			return NULL;
		cursor->heap = p;
		p = realloc(cursor->idle, room * sizeof(struct source *));
		if (!p)
			return NULL;
		cursor->idle = p;
		cursor->room = room;
	}
	source = calloc(1, sizeof(*source));
	if (!source)
		return NULL;
	source->block = nrp_block_new();
	/* Zero for each block: members that it does not fill stay zero. */
	source->rows = calloc(NRP_BLOCK_BATCH, cursor->desc->row_size);
	if (!source->block || !source->rows)
		return free_source(source);
	return source;
}

/* Takes the current row of cursor->select into @block; as nrp_block_load(). */
static int take_block(struct nrp_cursor *cursor, struct nrp_block *block, uint64_t columns,
		      const char **ret_why)
{
	const void *data = sqlite3_column_blob(cursor->select, 0);
	size_t size = (size_t)sqlite3_column_bytes(cursor->select, 0);
	uint64_t checksum = nrp_from_sql(sqlite3_column_int64(cursor->select, 1));
	int64_t codec = sqlite3_column_int64(cursor->select, 2);

	if (!data && size)
		return -ENOMEM;
	if (codec != NRP_BLOCK_CODEC) {
		*ret_why = "its codec is unknown to this program";
		return codec > NRP_BLOCK_CODEC ? -ENOTSUP : -EBADMSG;
	}
	if (XXH3_64bits(data, size) != checksum) {
		*ret_why = "its checksum does not match";
		return -EBADMSG;
	}
	return nrp_block_load(block, cursor->kind, data, size, columns, ret_why);
}

/* Reads @columns of a block from the file. */
static int load_block(struct nrp_cursor *cursor, const struct nrp_block_entry *entry,
		      struct nrp_block *block, uint64_t columns, struct nrp_error *err)
{
	int64_t id = entry->start.block_id;
	const char *why = "";
	int step, r;

	if (cursor->counts)
		cursor->counts->read++;
	sqlite3_bind_int64(cursor->select, 1, id);
	step = sqlite3_step(cursor->select);
	if (step == SQLITE_ROW) {
		r = take_block(cursor, block, columns, &why);
		if (r == 0 && nrp_block_rows(block) != entry->rows) {
			why = "its number of rows is not the recorded one";
			r = -EBADMSG;
		}
		if (r < 0)
			r = fail_block(cursor, id, r, why, err);
	} else if (step == SQLITE_DONE) {
		r = nrp_fail(err, NRP_INPUT, -EBUSY, cursor->path, -1,
			     "close the other program that uses the file, then try again",
			     "the file changed while it was read");
	} else {
		r = nrp_db_fail(cursor->db, cursor->path, err, "read a block");
	}
	sqlite3_reset(cursor->select);
	return r;
}

static uint64_t row_time(const struct nrp_cursor *cursor, const struct source *source, uint32_t row)
{
	uint64_t time;

	memcpy(&time,
	       source->rows + (size_t)row * cursor->desc->row_size +
		       cursor->desc->columns[0].offset,
	       sizeof(time));
	return time;
}

/* Decodes the next rows of a block; none are left if source->nr_rows is 0 afterwards. */
static int read_batch(struct nrp_cursor *cursor, struct source *source, struct nrp_error *err)
{
	uint64_t last = source->at.time;

	source->row = 0;
	source->nr_rows = nrp_block_read(source->block, source->rows);
	for (uint32_t i = 0; i < source->nr_rows; i++) {
		uint64_t time = row_time(cursor, source, i);

		if (time < last || time > source->time_max)
			return fail_block(cursor, source->at.block_id, -EBADMSG,
					  "its times are in the wrong order", err);
		last = time;
	}
	if (!source->nr_rows && last != source->time_max && cursor->where < 0)
		return fail_block(cursor, source->at.block_id, -EBADMSG,
				  "its last time is not the recorded one", err);
	if (source->nr_rows)
		source->at.time = row_time(cursor, source, 0);
	return 0;
}

/* ---- the heap ----------------------------------------------------------------------- */

static void sift_down(struct nrp_cursor *cursor)
{
	struct source **heap = cursor->heap, *moving = heap[0];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= cursor->nr_open)
			break;
		if (child + 1 < cursor->nr_open &&
		    nrp_position_before(&heap[child + 1]->at, &heap[child]->at))
			child++;
		if (!nrp_position_before(&heap[child]->at, &moving->at))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moving;
}

static void push(struct nrp_cursor *cursor, struct source *source)
{
	struct source **heap = cursor->heap;
	size_t i = cursor->nr_open++;

	while (i && nrp_position_before(&source->at, &heap[(i - 1) / 2]->at)) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = source;
}

static void pop(struct nrp_cursor *cursor)
{
	struct source *source = cursor->heap[0];

	cursor->heap[0] = cursor->heap[--cursor->nr_open];
	if (cursor->nr_open)
		sift_down(cursor);
	cursor->idle[cursor->nr_idle++] = source;
}

/* Opens the next block of the list. */
static int open_next(struct nrp_cursor *cursor, struct nrp_error *err)
{
	const struct nrp_block_entry *entry = &cursor->entries[cursor->next_entry++];
	struct source *source = new_source(cursor);
	int r;

	if (!source)
		return nrp_fail_nomem(err);
	nrp_block_choose(source->block, cursor->where);
	source->at = entry->start;
	source->time_max = entry->time_max;
	/* Cursors merge by the time. */
	r = load_block(cursor, entry, source->block, cursor->columns | 1, err);
	if (r == 0)
		r = read_batch(cursor, source, err);
	if (r == 0 && source->at.time != entry->start.time && cursor->where < 0)
		r = fail_block(cursor, entry->start.block_id, -EBADMSG,
			       "its first time is not the recorded one", err);
	if (r < 0) {
		free_source(source);
		return r;
	}
	if (source->nr_rows)
		push(cursor, source);
	else
		cursor->idle[cursor->nr_idle++] = source; /* none of its rows is wanted */
	return 0;
}

/* Leaves the rows of the run behind and restores the heap. */
static int end_run(struct nrp_cursor *cursor, struct nrp_error *err)
{
	struct source *source = cursor->heap[0];
	int r;

	source->row += cursor->run;
	cursor->run = 0;
	if (source->row < source->nr_rows) {
		source->at.time = row_time(cursor, source, source->row);
	} else {
		source->at.time = row_time(cursor, source, source->nr_rows - 1);
		r = read_batch(cursor, source, err);
		if (r < 0)
			return r;
		if (!source->nr_rows) {
			pop(cursor);
			return 0;
		}
	}
	sift_down(cursor);
	return 0;
}

/* Counts the rows of heap[0] that come before everything else: usually the whole batch. */
static void start_run(struct nrp_cursor *cursor)
{
	const struct source *source = cursor->heap[0];
	const struct nrp_position *limit = NULL;
	struct nrp_position at = { .block_id = source->at.block_id };
	uint32_t end = source->nr_rows;

	/* The competitors are the two below the top of the heap and the next block of the list. */
	for (size_t i = 1; i < cursor->nr_open && i <= 2; i++) {
		if (!limit || nrp_position_before(&cursor->heap[i]->at, limit))
			limit = &cursor->heap[i]->at;
	}
	if (cursor->next_entry < cursor->nr_entries &&
	    (!limit || nrp_position_before(&cursor->entries[cursor->next_entry].start, limit)))
		limit = &cursor->entries[cursor->next_entry].start;

	if (limit) {
		at.time = row_time(cursor, source, end - 1);
		/* The last row is not before the limit, so that the loop ends at it. */
		if (!nrp_position_before(&at, limit)) {
			end = source->row;
			do
				at.time = row_time(cursor, source, ++end);
			while (nrp_position_before(&at, limit));
		}
	}
	cursor->run = end - source->row;
	cursor->run_done = 0;
	cursor->row = source->rows + (size_t)source->row * cursor->desc->row_size;
}

/* Finds the next run; 1: there is one, 0: end. */
static int next_run(struct nrp_cursor *cursor, struct nrp_error *err)
{
	int r = 0;

	if (cursor->failed)
		return nrp_fail(err, NRP_INTERNAL, -EINVAL, cursor->path, -1, NULL,
				"read on after an error");
	if (cursor->run)
		r = end_run(cursor, err);
	while (r == 0 && cursor->next_entry < cursor->nr_entries &&
	       (!cursor->nr_open || nrp_position_before(&cursor->entries[cursor->next_entry].start,
							&cursor->heap[0]->at)))
		r = open_next(cursor, err);
	if (r < 0) {
		cursor->failed = true;
		return r;
	}
	if (!cursor->nr_open)
		return 0;
	start_run(cursor);
	return 1;
}

/* ---- interface ---------------------------------------------------------------------- */

int nrp_cursor_open_bounded(struct nrp_cursor **ret, sqlite3 *db, const char *path,
			    int64_t capture_id, enum nrp_record_kind kind, uint64_t columns,
			    const struct nrp_bound *bounds, size_t nr_bounds,
			    struct nrp_block_counts *counts, struct nrp_error *err)
{
	struct nrp_cursor *cursor;
	int r;

	if (!nrp_kind(kind))
		return nrp_fail(err, NRP_INTERNAL, -EINVAL, path, -1, NULL,
				"there is no record kind %d", (int)kind);
	cursor = calloc(1, sizeof(*cursor));
	if (!cursor)
		return nrp_fail_nomem(err);
	cursor->db = db;
	cursor->path = strdup(path);
	cursor->desc = nrp_kind(kind);
	cursor->kind = kind;
	cursor->columns = columns;
	cursor->where = -1;
	cursor->counts = counts;
	r = cursor->path ? 0 : nrp_fail_nomem(err);
	if (r == 0)
		r = nrp_db_prepare(db, path,
				   "SELECT data, checksum, codec FROM main.block WHERE id = ?",
				   &cursor->select, err);
	if (r == 0)
		r = nrp_block_list(db, path, capture_id, kind, bounds, nr_bounds, counts,
				   &cursor->entries, &cursor->nr_entries, err);
	if (r < 0) {
		nrp_cursor_close(cursor);
		return r;
	}
	*ret = cursor;
	return 0;
}

int nrp_cursor_open(struct nrp_cursor **ret, struct nrp_store *store, int64_t capture_id,
		    enum nrp_record_kind kind, uint64_t columns, struct nrp_error *err)
{
	return nrp_cursor_open_bounded(ret, store->db, store->path, capture_id, kind, columns, NULL,
				       0, NULL, err);
}

int nrp_cursor_open_between(struct nrp_cursor **ret, struct nrp_store *store, int64_t capture_id,
			    enum nrp_record_kind kind, uint64_t columns, uint64_t from, uint64_t to,
			    struct nrp_error *err)
{
	struct nrp_bound bound = { .column = 0, .lo = nrp_to_sql(from), .hi = nrp_to_sql(to) };

	/* Bounds are compared as SQL does: not across 2^63. */
	return nrp_cursor_open_bounded(ret, store->db, store->path, capture_id, kind, columns,
				       &bound, from <= INT64_MAX && to <= INT64_MAX, NULL, err);
}

int nrp_cursor_open_where(struct nrp_cursor **ret, struct nrp_store *store, int64_t capture_id,
			  enum nrp_record_kind kind, uint64_t columns, int where,
			  struct nrp_error *err)
{
	int r = nrp_cursor_open(ret, store, capture_id, kind, columns | UINT64_C(1) << where, err);

	if (r == 0)
		(*ret)->where = where;
	return r;
}

int nrp_cursor_next(struct nrp_cursor *cursor, const void **ret_row, struct nrp_error *err)
{
	if (cursor->run_done < cursor->run) {
		cursor->row += cursor->desc->row_size;
	} else {
		int r = next_run(cursor, err);

		if (r <= 0)
			return r;
	}
	cursor->run_done++;
	*ret_row = cursor->row;
	return 1;
}

int nrp_cursor_next_block(struct nrp_cursor *cursor, struct nrp_block *block, struct nrp_error *err)
{
	const struct nrp_block_entry *entry = &cursor->entries[cursor->next_entry];
	int r;

	if (cursor->next_entry == cursor->nr_entries)
		return 0;
	cursor->next_entry++;
	r = load_block(cursor, entry, block, cursor->columns, err);
	return r < 0 ? r : 1;
}

/* More than a block has rows. */
#define ROWID_BITS 20
_Static_assert(NRP_BLOCK_ROWS <= 1 << ROWID_BITS,
	       "a row's place in its block fits into its number");

int64_t nrp_cursor_rowid(const struct nrp_cursor *cursor)
{
	const struct source *source = cursor->heap[0];
	size_t row = (size_t)(cursor->row - source->rows) / cursor->desc->row_size;
	uint64_t place = nrp_block_position(source->block) - source->nr_rows + row;

	return nrp_to_sql((uint64_t)source->at.block_id << ROWID_BITS | place);
}

int nrp_cursor_next_run(struct nrp_cursor *cursor, const void **ret_rows, uint32_t *count,
			struct nrp_error *err)
{
	int r = nrp_cursor_next(cursor, ret_rows, err);
	uint32_t more;

	if (r <= 0)
		return r;
	more = cursor->run - cursor->run_done;
	if (more > *count - 1)
		more = *count - 1;
	cursor->run_done += more;
	cursor->row += (size_t)more * cursor->desc->row_size;
	*count = more + 1;
	return 1;
}

struct nrp_cursor *nrp_cursor_close(struct nrp_cursor *cursor)
{
	if (!cursor)
		return NULL;
	for (size_t i = 0; i < cursor->nr_open; i++)
		free_source(cursor->heap[i]);
	for (size_t i = 0; i < cursor->nr_idle; i++)
		free_source(cursor->idle[i]);
	sqlite3_finalize(cursor->select);
	free(cursor->heap);
	free(cursor->idle);
	free(cursor->entries);
	free(cursor->path);
	free(cursor);
	return NULL;
}
