/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of rows by two nodes: two columns, block by block, without rows or their order. */
#include "schema/block.h"
#include "schema/internal.h"

#include <errno.h>
#include <stdlib.h>

/* A node column has NULL, -1 and the ids: places 0, 1, 2 .. in a row of the grid. */
#define PLACES (NRP_MAX_NODES + 2)

struct grid {
	int first, second; /* columns */
	uint64_t *rows;    /* PLACES x PLACES */
	uint64_t highest;  /* place that occurred */
};

/* Turns values into places and returns the highest. */
static uint64_t to_places(uint64_t *values, uint64_t valid, uint32_t n)
{
	uint64_t highest = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t place = valid >> i & 1 ? values[i] + 2 : 0;

		if (!place && valid >> i & 1)
			place = PLACES; /* -2 is no node */
		highest = place > highest ? place : highest;
		values[i] = place;
	}
	return highest;
}

/* False: a value is no node id. */
static bool count_block(struct grid *grid, struct nrp_block *block)
{
	uint64_t a[NRP_BLOCK_BATCH], b[NRP_BLOCK_BATCH];
	uint32_t rows = nrp_block_rows(block);

	for (uint32_t first = 0; first < rows; first += NRP_BLOCK_BATCH) {
		uint32_t n = rows - first < NRP_BLOCK_BATCH ? rows - first : NRP_BLOCK_BATCH;
		uint64_t valid_a = nrp_block_values(block, grid->first, first, a);
		uint64_t valid_b = nrp_block_values(block, grid->second, first, b);
		uint64_t high_a = to_places(a, valid_a, n), high_b = to_places(b, valid_b, n);

		grid->highest = high_a > grid->highest ? high_a : grid->highest;
		grid->highest = high_b > grid->highest ? high_b : grid->highest;
		if (grid->highest >= PLACES)
			return false;
		for (uint32_t i = 0; i < n; i++)
			grid->rows[a[i] * PLACES + b[i]]++;
	}
	return true;
}

static int16_t node_of(size_t place)
{
	return place ? (int16_t)(place - 2) : NRP_NO_NODE;
}

/* The pairs that occur: their number, and if @list is not NULL they themselves. */
static size_t list_pairs(const struct grid *grid, struct nrp_node_count *list)
{
	size_t n = 0;

	for (size_t a = 0; a <= grid->highest; a++) {
		for (size_t b = 0; b <= grid->highest; b++) {
			uint64_t rows = grid->rows[a * PLACES + b];

			if (rows && list)
				list[n] = (struct nrp_node_count){ node_of(a), node_of(b), rows };
			n += rows != 0;
		}
	}
	return n;
}

static int count(struct grid *grid, struct nrp_cursor *cursor, const char *path,
		 struct nrp_error *err)
{
	struct nrp_block *block = nrp_block_new();
	int r;

	if (!block || !grid->rows) {
		nrp_block_free(block);
		return nrp_fail_nomem(err);
	}
	while ((r = nrp_cursor_next_block(cursor, block, err)) > 0) {
		if (count_block(grid, block))
			continue;
		r = nrp_fail(err, NRP_INPUT, -EBADMSG, path, -1, NRP_REMEDY_DAMAGED,
			     "a block has a node id of %d or more", NRP_MAX_NODES);
		break;
	}
	nrp_block_free(block);
	return r;
}

int nrp_store_count_by_nodes(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
			     int first, int second, struct nrp_node_count **ret, size_t *ret_count,
			     struct nrp_error *err)
{
	struct grid grid = { .first = first, .second = second };
	struct nrp_node_count *list;
	struct nrp_cursor *cursor;
	size_t n;
	int r;

	r = nrp_cursor_open(&cursor, store, capture_id, kind,
			    UINT64_C(1) << first | UINT64_C(1) << second, err);
	if (r < 0)
		return r;
	grid.rows = calloc(PLACES * PLACES, sizeof(*grid.rows));
	r = count(&grid, cursor, store->path, err);
	nrp_cursor_close(cursor);
	if (r == 0) {
		n = list_pairs(&grid, NULL);
		list = calloc(n ? n : 1, sizeof(*list));
		if (list) {
			*ret = list;
			*ret_count = list_pairs(&grid, list);
		} else {
			r = nrp_fail_nomem(err);
		}
	}
	free(grid.rows);
	return r;
}
