/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One block: up to NRP_BLOCK_ROWS rows of one kind as compressed columns (block.data, codec 1).
 *
 * A block is a table of columns over a pool of byte streams. Each column is reduced to 0 .. 8
 * byte planes (plane k holds bits 8k .. 8k+7 of every row's value), which is what makes it
 * narrow: planes that are zero in all rows are not there. Planes, NULL bitmaps and dictionaries
 * are streams; equal streams are stored once, so that columns that follow each other (a VMA's
 * start, end and flags, the fields that are NULL together) cost nothing beyond the first. Every
 * stream is one zstd frame of its own, or stored as it is where zstd does not shrink it, so that
 * a reader decompresses the columns that it wants and no others.
 *
 *	"NRPB", u16 version, u16 kind, u32 rows, u16 columns, u16 streams, u32 bytes of columns
 *	columns: u8 type, u8 encoding, u8 planes, u8 nulls, u64 base, then u16 stream numbers:
 *		 the NULL bitmap if nulls is 1, the dictionary if encoding is DICT, the planes;
 *		 if encoding is RUNS the ends and the values instead of planes
 *	streams: u32 bytes as stored, u32 bytes as decompressed (equal: stored as it is)
 *	the streams' bytes, one after the other
 *
 * Everything is little-endian. Encodings of a value v (all arithmetic modulo 2^64):
 *
 *	NULLS  every row is NULL; no streams
 *	FRAME  v - base
 *	DELTA  zigzag(v - previous v), base being the value before the first
 *	DICT   index into a stream of u64 values, one plane
 *	RUNS   a stream of u32: the row behind each run of equal values; a stream of their u64
 *values (from version 2 on). Most columns follow the VMA or the state of the process
 *
 * A NULL slot repeats a value near to it and reads back as 0 with its NULL bit set.
 */
#ifndef NRP_SCHEMA_BLOCK_H
#define NRP_SCHEMA_BLOCK_H

#include "numareplay/store.h"

#define NRP_BLOCK_CODEC 1
#define NRP_BLOCK_VERSION 2
#define NRP_BLOCK_HEADER 20
#define NRP_BLOCK_COLUMN 12 /* fixed part of a column's entry */
#define NRP_BLOCK_STREAM 8  /* one stream's entry */
#define NRP_BLOCK_DICT 256  /* values in a dictionary */
#define NRP_BLOCK_RUNS 256  /* runs of a column stored as such */
/* Limits on what a file can make us allocate. */
#define NRP_BLOCK_MAX_COLUMNS 64
#define NRP_BLOCK_MAX_STREAMS (NRP_BLOCK_MAX_COLUMNS * 10)
#define NRP_BLOCK_MAX_RAW (64u << 20)
/* Rows that one nrp_block_read() decodes at most: few enough to stay in the nearest cache. */
#define NRP_BLOCK_BATCH 64
/* Rows that are taken apart together: few enough to stay in the nearest cache. */
#define NRP_COLUMNS_BATCH 64

enum nrp_block_encoding {
	NRP_ENC_NULLS,
	NRP_ENC_FRAME,
	NRP_ENC_DELTA,
	NRP_ENC_DICT,
	NRP_ENC_RUNS,
};

/* ---- collecting --------------------------------------------------------------------- */

/* The runs of equal values in a column. */
struct nrp_value_runs {
	uint32_t nr;   /* more than NRP_BLOCK_RUNS: too many, the rest means nothing */
	uint32_t rows; /* in all of them */
	uint32_t from[NRP_BLOCK_RUNS];  /* first row of each */
	uint64_t value[NRP_BLOCK_RUNS]; /* sign-extended */
};

/*
 * The rows of a block to be, column by column. Rows are wide and a block has many: taken apart
 * while they are in the cache, each column is read later as one short array. Most columns change
 * now and then only: as long as NRP_BLOCK_RUNS are enough, their runs are all that is kept.
 */
struct nrp_columns {
	const struct nrp_kind *desc;
	uint32_t rows;
	uint64_t present;  /* columns that have a value in some row */
	uint64_t *nulls;   /* NULL word of each row */
	uint64_t any_null; /* columns that are NULL in some row */
	uint64_t whole;    /* columns that are arrays; the others are runs */
	/* Arrays of the columns' own types; a NULL slot repeats some value near to it. */
	void *values[NRP_BLOCK_MAX_COLUMNS];
	struct nrp_value_runs *runs[NRP_BLOCK_MAX_COLUMNS]; /* their .rows is not used */
};

/*
 * Adds @nr_rows rows, best NRP_COLUMNS_BATCH at a time, at most NRP_BLOCK_ROWS in all; -ENOMEM.
 * Start with a zeroed object + desc.
 */
int nrp_columns_add(struct nrp_columns *columns, const uint8_t *const *rows, uint32_t nr_rows);
/* After the last row: makes @column, which has a value, an array. -ENOMEM. */
int nrp_columns_fill(struct nrp_columns *columns, uint32_t column);
/* Forgets the rows, keeps the memory. */
void nrp_columns_reset(struct nrp_columns *columns);
void nrp_columns_clear(struct nrp_columns *columns);
/* Bytes of one value. */
size_t nrp_type_size(enum nrp_column_type type);

/* An order of a block's rows: theirs, but for some that came late. Start with nr_runs = 0. */
struct nrp_order {
	uint32_t nr_runs;
	struct nrp_run {
		uint32_t from, n;
	} run[NRP_BLOCK_ROWS]; /* rows that stay together */
	/* Runs with all rows of the runs before them, and no others, in front; the first one, too.
	 */
	uint32_t nr_cuts;
	struct nrp_cut {
		uint32_t run, row; /* row: the first one, in this order and by itself */
	} cut[NRP_BLOCK_ROWS];
};
/* The next row in that order. */
void nrp_order_add(struct nrp_order *order, uint32_t row);
/* After the last row: finds the cuts. */
void nrp_order_cut(struct nrp_order *order);

/* Finds the runs among values, in order. */
void nrp_column_runs(enum nrp_column_type type, const void *values, const struct nrp_order *order,
		     struct nrp_value_runs *ret);
/* The same of a column that is kept as runs. */
void nrp_columns_runs(const struct nrp_columns *columns, uint32_t column,
		      const struct nrp_order *order, struct nrp_value_runs *ret);
/* Smallest and largest of @rows values, in the type's own order, sign-extended. */
void nrp_column_range(enum nrp_column_type type, const void *values, uint32_t rows,
		      uint64_t *ret_min, uint64_t *ret_max);
/* All values in order, sign-extended. */
void nrp_column_widen(enum nrp_column_type type, const void *values, const struct nrp_order *order,
		      uint64_t *to);
/* The lowest bytes of values - @base, in order. */
void nrp_column_narrow(enum nrp_column_type type, const void *values, const struct nrp_order *order,
		       uint8_t base, uint8_t *to);
/* NULL bitmaps of all columns, NRP_BITMAP_WORDS each: row i is bit i % 64 of word i / 64. */
#define NRP_BITMAP_WORDS 1024
void nrp_columns_bitmaps(const struct nrp_columns *columns, const struct nrp_order *order,
			 uint64_t *bitmaps);

/* ---- encoding ----------------------------------------------------------------------- */

/* The encoded block and what the block table says about it; valid until the next call. */
struct nrp_block_image {
	const uint8_t *data;
	size_t size;
	size_t raw_size;
	uint64_t min[NRP_BLOCK_MAX_COLUMNS]; /* smallest value of each column, in its own order */
	uint64_t max[NRP_BLOCK_MAX_COLUMNS];
};

struct nrp_encoder;

/* NULL: out of memory. */
struct nrp_encoder *nrp_encoder_new(void);
struct nrp_encoder *nrp_encoder_free(struct nrp_encoder *encoder);
/* Encodes the rows (at least one), in the order @order; -ENOMEM. Makes some of @columns arrays. */
int nrp_block_encode(struct nrp_encoder *encoder, enum nrp_record_kind kind,
		     struct nrp_columns *columns, const struct nrp_order *order,
		     struct nrp_block_image *ret);

/* ---- decoding ----------------------------------------------------------------------- */

struct nrp_block;

struct nrp_block *nrp_block_new(void);
struct nrp_block *nrp_block_free(struct nrp_block *block);
/*
 * Takes @data apart and decompresses the streams of @columns; @data is not needed afterwards.
 * Columns that the block lacks are NULL. -EBADMSG: damaged, -ENOTSUP: of a newer version, both
 * with the reason in *ret_why; -ENOMEM. Trusts no byte of @data.
 */
int nrp_block_load(struct nrp_block *block, enum nrp_record_kind kind, const void *data,
		   size_t size, uint64_t columns, const char **ret_why);
uint32_t nrp_block_rows(const struct nrp_block *block);
/* Rows read so far, from the first one on. */
uint32_t nrp_block_position(const struct nrp_block *block);
/* Read only rows whose @column (among those loaded) is neither 0 nor NULL; -1: all rows. */
void nrp_block_choose(struct nrp_block *block, int column);
/*
 * Decodes the next rows into @rows and returns their number, 0 at the end. @rows is an array of
 * NRP_BLOCK_BATCH rows, zeroed before the first call and the same one for the whole block: what
 * does not change from one call to the next is not written again. Members of other columns are left
 * alone.
 */
uint32_t nrp_block_read(struct nrp_block *block, void *rows);
/*
 * Decodes one column alone, sign-extended, without rows: the NRP_BLOCK_BATCH rows from @first on,
 * or what is left of them. Returns the rows that are not NULL, as bits; the values of the others
 * mean nothing. Batches are read in order, each once.
 */
uint64_t nrp_block_values(struct nrp_block *block, int column, uint32_t first, uint64_t *values);

#endif
