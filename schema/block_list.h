/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blocks of one kind in a capture, as tables block and block_range list them.
 *
 * A block's checksum covers its data only. What the tables say about it decides whether its data is
 * read at all, so import seals that, too: setting blocks.KIND of the capture holds sums over it,
 * and whatever is used of it is summed up again and compared. Captures of earlier programs have no
 * seal. It shows damage, not forgery: who can write the tables can write the seal.
 */
#ifndef NRP_BLOCK_LIST_H
#define NRP_BLOCK_LIST_H

#include "schema/block.h"
#include "schema/internal.h"

/* Position in the order of rows: time, then the order of writing. */
struct nrp_position {
	uint64_t time;
	int64_t block_id;
};

static inline bool nrp_position_before(const struct nrp_position *a, const struct nrp_position *b)
{
	return a->time != b->time ? a->time < b->time : a->block_id < b->block_id;
}

struct nrp_block_entry {
	struct nrp_position start;
	uint64_t time_max;
	uint32_t rows;
};

/* Sums over the rows of tables block and block_range, in whatever order they come. */
struct nrp_block_seal {
	uint64_t rows;
	uint64_t list; /* id, times, rows of each block */
	/* of column c in block_range; [0], since that has no time: tgid and nid of block */
	uint64_t range[NRP_BLOCK_MAX_COLUMNS];
};

/* A statement's columns @from .. @from + @count - 1, four at most, of column @column of block @id.
 */
uint64_t nrp_seal_hash(sqlite3_stmt *stmt, int from, int count, int64_t id, int column);

/*
 * Blocks that may hold a row within all @bounds, in the order of their start; the caller frees
 * *ret. @counts (may be NULL) counts those that were left out. NRP_INPUT: the list contradicts
 * itself or its seal.
 */
int nrp_block_list(sqlite3 *db, const char *path, int64_t capture_id, enum nrp_record_kind kind,
		   const struct nrp_bound *bounds, size_t nr_bounds,
		   struct nrp_block_counts *counts, struct nrp_block_entry **ret, size_t *ret_count,
		   struct nrp_error *err);

/* A block of that kind is not as it was written. NRP_INPUT; -ENOMEM, -ENOTSUP: these instead. */
int nrp_block_fail(const char *path, enum nrp_record_kind kind, int64_t id, int code,
		   const char *why, struct nrp_error *err);

#endif
