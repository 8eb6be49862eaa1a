/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/block.h"
#include "schema/bytes.h"
#include "numareplay/store.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#define NOT_LOADED UINT32_MAX
#define RUNS_WRONG "a column's runs are wrong"

struct stream {
	const uint8_t *data; /* as stored */
	uint32_t stored;
	uint32_t raw;
	uint32_t offset; /* of the decompressed bytes, NOT_LOADED */
};

/* A wanted column that has values. */
struct column {
	const struct nrp_column *desc;
	uint32_t number;
	uint8_t encoding;
	uint8_t nr_planes;
	uint16_t plane_streams[8];
	int32_t null_stream;              /* -1: no NULLs */
	int32_t dict_stream;              /* -1: none */
	int32_t end_stream, value_stream; /* RUNS; -1: none */
	bool constant;                    /* the same value in all rows */
	uint64_t base;
	uint64_t previous; /* DELTA: value of the row before @at */
	uint32_t at;       /* DELTA: next row */
	uint64_t written;  /* rows of the batch whose member may not be 0 */
	const uint8_t *planes[8];
	const uint8_t *nulls;
	uint64_t *dict; /* NRP_BLOCK_DICT values: no index is out of range */
	const uint8_t *ends,
		*run_values;     /* RUNS: each end beyond the one before, the last is all */
	uint32_t run, run_start; /* RUNS: the one looked at last, and its first row */
};

struct nrp_block {
	ZSTD_DCtx *zstd;
	const struct nrp_kind *desc;
	uint32_t rows, next;
	uint64_t null_base; /* columns that have no value here */
	struct column columns[NRP_BLOCK_MAX_COLUMNS];
	uint32_t nr_columns;
	struct stream streams[NRP_BLOCK_MAX_STREAMS];
	uint32_t nr_streams;
	uint8_t *raw;
	size_t raw_size, raw_room;
	int32_t where;   /* column number that rows are chosen by, -1: all rows */
	uint64_t *dicts; /* NRP_BLOCK_DICT values for each column that has one */
	uint32_t dict_room;
};

/* Bytes that are still to be taken apart. */
struct reader {
	const uint8_t *p;
	size_t left;
};

struct nrp_block *nrp_block_new(void)
{
	struct nrp_block *block = calloc(1, sizeof(*block));

	if (!block)
		return NULL;
	block->where = -1;
	block->zstd = ZSTD_createDCtx();
	return block->zstd ? block : nrp_block_free(block);
}

struct nrp_block *nrp_block_free(struct nrp_block *block)
{
	if (!block)
		return NULL;
	ZSTD_freeDCtx(block->zstd);
	free(block->raw);
	free(block->dicts);
	free(block);
	return NULL;
}

uint32_t nrp_block_rows(const struct nrp_block *block)
{
	return block->rows;
}

/* ---- taking it apart ---------------------------------------------------------------- */

static int damaged(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EBADMSG;
}

static const uint8_t *take(struct reader *reader, size_t size)
{
	const uint8_t *p = reader->p;

	if (size > reader->left)
		return NULL;
	reader->p += size;
	reader->left -= size;
	return p;
}

static int read_header(struct nrp_block *block, struct reader *all, enum nrp_record_kind kind,
		       uint32_t *ret_columns, struct reader *ret_table, const char **ret_why)
{
	const uint8_t *h = take(all, NRP_BLOCK_HEADER);
	size_t table_size;

	if (!h || memcmp(h, "NRPB", 4) != 0)
		return damaged(ret_why, "it does not start like a block");
	if (nrp_get16(h + 4) > NRP_BLOCK_VERSION) {
		*ret_why = "its format is newer than this program";
		return -ENOTSUP;
	}
	block->rows = nrp_get32(h + 8);
	*ret_columns = nrp_get16(h + 12);
	block->nr_streams = nrp_get16(h + 14);
	table_size = nrp_get32(h + 16);
	if (nrp_get16(h + 4) == 0 || nrp_get16(h + 6) != (unsigned int)kind)
		return damaged(ret_why, "its header is wrong");
	if (block->rows == 0 || block->rows > NRP_BLOCK_ROWS)
		return damaged(ret_why, "its number of rows is out of range");
	if (*ret_columns > block->desc->nr_columns) {
		*ret_why = "it has columns that are newer than this program";
		return -ENOTSUP;
	}
	if (block->nr_streams > NRP_BLOCK_MAX_STREAMS)
		return damaged(ret_why, "it has too many streams");
	ret_table->left = table_size;
	ret_table->p = take(all, table_size);
	if (!ret_table->p)
		return damaged(ret_why, "its column table is cut off");
	return 0;
}

/* The stream table and where each stream lies; the streams must fill the rest exactly. */
static int read_streams(struct nrp_block *block, struct reader *all, const char **ret_why)
{
	const uint8_t *table = take(all, (size_t)block->nr_streams * NRP_BLOCK_STREAM);
	uint64_t raw = 0;

	if (!table)
		return damaged(ret_why, "its stream table is cut off");
	for (uint32_t i = 0; i < block->nr_streams; i++, table += NRP_BLOCK_STREAM) {
		struct stream *s = &block->streams[i];

		s->stored = nrp_get32(table);
		s->raw = nrp_get32(table + 4);
		s->offset = NOT_LOADED;
		s->data = take(all, s->stored);
		raw += s->raw;
		if (!s->data || s->stored > s->raw)
			return damaged(ret_why, "a stream has an impossible size");
	}
	if (raw > NRP_BLOCK_MAX_RAW)
		return damaged(ret_why, "it would be too large");
	if (all->left)
		return damaged(ret_why, "bytes are left over behind it");
	return 0;
}

/* Next stream number of a column; it must have @n items of @size bytes. */
static int take_stream(const struct nrp_block *block, struct reader *table, uint32_t size,
		       uint32_t n)
{
	const uint8_t *p = take(table, 2);
	uint32_t i;

	if (!p)
		return -1;
	i = nrp_get16(p);
	return i < block->nr_streams && block->streams[i].raw == size * n ? (int)i : -1;
}

/* The same of a stream with 1 .. @max items. */
static int take_list(const struct nrp_block *block, struct reader *table, uint32_t size,
		     uint32_t max)
{
	const uint8_t *p = take(table, 2);
	uint32_t i, raw;

	if (!p)
		return -1;
	i = nrp_get16(p);
	if (i >= block->nr_streams)
		return -1;
	raw = block->streams[i].raw;
	return raw && raw % size == 0 && raw / size <= max ? (int)i : -1;
}

static bool known_encoding(uint8_t encoding, uint8_t planes, uint8_t nulls)
{
	switch (encoding) {
	case NRP_ENC_NULLS:
		return !planes && !nulls;
	case NRP_ENC_FRAME:
	case NRP_ENC_DELTA:
		return planes <= 8 && nulls <= 1;
	case NRP_ENC_DICT:
		return planes == 1 && nulls <= 1;
	case NRP_ENC_RUNS:
		return !planes && nulls <= 1;
	default:
		return false;
	}
}

/* One entry of the column table. */
static int read_column(const struct nrp_block *block, struct reader *table, struct column *column,
		       const char **ret_why)
{
	const uint8_t *p = take(table, NRP_BLOCK_COLUMN);
	int stream;

	if (!p)
		return damaged(ret_why, "its column table is cut off");
	if (p[0] != column->desc->type)
		return damaged(ret_why, "a column has another type");
	column->encoding = p[1];
	column->nr_planes = p[2];
	column->base = column->previous = nrp_get64(p + 4);
	column->at = 0;
	column->written = 0;
	column->null_stream = column->dict_stream = -1;
	column->end_stream = column->value_stream = -1;
	column->run = column->run_start = 0;
	if (!known_encoding(p[1], p[2], p[3]))
		return damaged(ret_why, "a column has an unknown encoding");
	if (column->number == 0 && (p[1] == NRP_ENC_NULLS || p[3]))
		return damaged(ret_why, "rows without a time");

	if (p[3]) {
		column->null_stream = take_stream(block, table, 1, (block->rows + 7) / 8);
		if (column->null_stream < 0)
			return damaged(ret_why, "a column's NULLs are wrong");
	}
	if (p[1] == NRP_ENC_DICT) {
		column->dict_stream = take_list(block, table, 8, NRP_BLOCK_DICT);
		if (column->dict_stream < 0)
			return damaged(ret_why, "a column's dictionary is wrong");
	}
	if (p[1] == NRP_ENC_RUNS) {
		column->end_stream = take_list(block, table, 4, block->rows);
		if (column->end_stream >= 0)
			column->value_stream = take_stream(
				block, table, 8, block->streams[column->end_stream].raw / 4);
		if (column->value_stream < 0)
			return damaged(ret_why, RUNS_WRONG);
	}
	for (uint32_t k = 0; k < column->nr_planes; k++) {
		stream = take_stream(block, table, 1, block->rows);
		if (stream < 0)
			return damaged(ret_why, "a column's data are wrong");
		column->plane_streams[k] = (uint16_t)stream;
	}
	column->constant = column->nr_planes == 0 && column->null_stream < 0 &&
			   column->encoding != NRP_ENC_RUNS;
	return 0;
}

static int read_columns(struct nrp_block *block, struct reader *table, uint32_t stored_columns,
			uint64_t wanted, const char **ret_why)
{
	block->nr_columns = 0;
	block->null_base = ~UINT64_C(0) >> (64 - block->desc->nr_columns);
	for (uint32_t c = 0; c < stored_columns; c++) {
		struct column *column = &block->columns[block->nr_columns];
		int r;

		column->desc = &block->desc->columns[c];
		column->number = c;
		r = read_column(block, table, column, ret_why);
		if (r < 0)
			return r;
		if ((wanted >> c & 1) && column->encoding != NRP_ENC_NULLS) {
			block->null_base &= ~(UINT64_C(1) << c);
			block->nr_columns++;
		}
	}
	if (table->left)
		return damaged(ret_why, "bytes are left over in its column table");
	if (stored_columns == 0)
		return damaged(ret_why, "rows without a time");
	return 0;
}

/* ---- decompressing ------------------------------------------------------------------ */

/* Plans the place of a stream that a wanted column needs. */
static void want(struct nrp_block *block, int32_t stream)
{
	struct stream *s;

	if (stream < 0)
		return;
	s = &block->streams[stream];
	if (s->offset != NOT_LOADED)
		return;
	s->offset = (uint32_t)block->raw_size;
	block->raw_size += s->raw;
}

static int load_streams(struct nrp_block *block, const char **ret_why)
{
	if (block->raw_size > block->raw_room) {
		free(block->raw);
		block->raw_room = 0;
		block->raw = malloc(block->raw_size);
		if (!block->raw)
			return -ENOMEM;
		block->raw_room = block->raw_size;
	}
	for (uint32_t i = 0; i < block->nr_streams; i++) {
		struct stream *s = &block->streams[i];
		uint8_t *to;

		if (s->offset == NOT_LOADED)
			continue;
		to = block->raw + s->offset;
		if (s->stored == s->raw)
			memcpy(to, s->data, s->raw);
		else if (ZSTD_decompressDCtx(block->zstd, to, s->raw, s->data, s->stored) != s->raw)
			return damaged(ret_why, "a stream does not decompress");
	}
	return 0;
}

/* Every row is in one run. */
static bool runs_are_whole(const uint8_t *ends, uint32_t n, uint32_t rows)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t end = nrp_get32(ends + 4 * i);

		if (end <= before)
			return false;
		before = end;
	}
	return before == rows;
}

static bool connect_runs(const struct nrp_block *block, struct column *c)
{
	const struct stream *ends;

	if (c->end_stream < 0)
		return true;
	ends = &block->streams[c->end_stream];
	c->ends = block->raw + ends->offset;
	c->run_values = block->raw + block->streams[c->value_stream].offset;
	return runs_are_whole(c->ends, ends->raw / 4, block->rows);
}

/* Lets the columns point to the decompressed streams. */
static int connect_columns(struct nrp_block *block, const char **ret_why)
{
	uint32_t dicts = 0;

	for (uint32_t i = 0; i < block->nr_columns; i++)
		dicts += block->columns[i].dict_stream >= 0;
	if (dicts > block->dict_room) {
		free(block->dicts);
		block->dict_room = 0;
		block->dicts = malloc(dicts * NRP_BLOCK_DICT * sizeof(*block->dicts));
		if (!block->dicts)
			return -ENOMEM;
		block->dict_room = dicts;
	}
	dicts = 0;
	for (uint32_t i = 0; i < block->nr_columns; i++) {
		struct column *c = &block->columns[i];

		for (uint32_t k = 0; k < c->nr_planes; k++)
			c->planes[k] = block->raw + block->streams[c->plane_streams[k]].offset;
		if (c->null_stream >= 0)
			c->nulls = block->raw + block->streams[c->null_stream].offset;
		if (!connect_runs(block, c))
			return damaged(ret_why, RUNS_WRONG);
		if (c->dict_stream >= 0) {
			const struct stream *s = &block->streams[c->dict_stream];

			c->dict = block->dicts + NRP_BLOCK_DICT * dicts++;
			memset(c->dict, 0, NRP_BLOCK_DICT * sizeof(*c->dict));
			for (uint32_t v = 0; v < s->raw / 8; v++)
				c->dict[v] = nrp_get64(block->raw + s->offset + 8 * v);
		}
	}
	return 0;
}

int nrp_block_load(struct nrp_block *block, enum nrp_record_kind kind, const void *data,
		   size_t size, uint64_t columns, const char **ret_why)
{
	struct reader all = { data, size }, table;
	uint32_t stored_columns;
	int r;

	block->desc = nrp_kind(kind);
	block->rows = block->next = 0;
	block->raw_size = 0;
	if (!block->desc)
		return damaged(ret_why, "its kind does not exist");
	r = read_header(block, &all, kind, &stored_columns, &table, ret_why);
	if (r == 0)
		r = read_streams(block, &all, ret_why);
	if (r == 0)
		r = read_columns(block, &table, stored_columns, columns, ret_why);
	if (r == 0) {
		for (uint32_t i = 0; i < block->nr_columns; i++) {
			const struct column *c = &block->columns[i];

			want(block, c->null_stream);
			want(block, c->dict_stream);
			want(block, c->end_stream);
			want(block, c->value_stream);
			for (uint32_t k = 0; k < c->nr_planes; k++)
				want(block, c->plane_streams[k]);
		}
		r = load_streams(block, ret_why);
	}
	if (r == 0)
		r = connect_columns(block, ret_why);
	if (r < 0)
		block->rows = 0;
	return r;
}

/* ---- decoding ----------------------------------------------------------------------- */

_Static_assert(NRP_BLOCK_BATCH == 64, "the rows of a batch are the bits of a word");

static uint64_t unzigzag(uint64_t v)
{
	return (v >> 1) ^ (0 - (v & 1));
}

/* Sums of the planes' bytes: values - base, indices of a dictionary, or zigzag differences. */
static void join_planes(const struct column *c, uint32_t first, uint32_t n, uint64_t base,
			uint64_t *restrict values)
{
	for (uint32_t i = 0; i < n; i++)
		values[i] = base;
	for (uint32_t k = 0; k < c->nr_planes; k++) {
		const uint8_t *restrict plane = c->planes[k] + first;

		/* Addition is right for FRAME, and the same as "or" where the base is 0. */
		for (uint32_t i = 0; i < n; i++)
			values[i] += (uint64_t)plane[i] << (8 * k);
	}
}

/* Brings DELTA up to row @first, over rows that nobody wanted. */
static void catch_up(struct column *c, uint32_t first)
{
	uint64_t values[NRP_BLOCK_BATCH];

	while (c->at < first) {
		uint32_t n = first - c->at < NRP_BLOCK_BATCH ? first - c->at : NRP_BLOCK_BATCH;
		uint64_t sum = 0;

		join_planes(c, c->at, n, 0, values);
		for (uint32_t i = 0; i < n; i++)
			sum += unzigzag(values[i]);
		c->previous += sum;
		c->at += n;
	}
}

/* Moves to the run that has @row. */
static void find_run(struct column *c, uint32_t row)
{
	if (row < c->run_start)
		c->run = c->run_start = 0;
	while (row >= nrp_get32(c->ends + 4 * c->run))
		c->run_start = nrp_get32(c->ends + 4 * c->run++);
}

static void decode_runs(struct column *c, uint32_t first, uint32_t n, uint64_t *restrict values)
{
	for (uint32_t i = 0, left; i < n; i += left) {
		uint64_t v;

		find_run(c, first + i);
		v = nrp_get64(c->run_values + 8 * c->run);
		left = nrp_get32(c->ends + 4 * c->run) - (first + i);
		left = left < n - i ? left : n - i;
		for (uint32_t k = 0; k < left; k++)
			values[i + k] = v;
	}
}

static void decode_values(struct column *c, uint32_t first, uint32_t n, uint64_t *restrict values)
{
	if (c->encoding == NRP_ENC_RUNS) {
		decode_runs(c, first, n, values);
		return;
	}
	if (c->encoding == NRP_ENC_DICT) {
		const uint8_t *restrict index = c->planes[0] + first;
		const uint64_t *restrict dict = c->dict;

		for (uint32_t i = 0; i < n; i++)
			values[i] = dict[index[i]];
		return;
	}
	join_planes(c, first, n, c->encoding == NRP_ENC_FRAME ? c->base : 0, values);
	if (c->encoding == NRP_ENC_DELTA) {
		uint64_t v;

		catch_up(c, first);
		v = c->previous;
		for (uint32_t i = 0; i < n; i++)
			values[i] = v += unzigzag(values[i]);
		c->previous = v;
		c->at = first + n;
	}
}

/* One value; not for DELTA. */
static uint64_t value_at(struct column *c, uint32_t row)
{
	uint64_t v = c->encoding == NRP_ENC_FRAME ? c->base : 0;

	if (c->encoding == NRP_ENC_DICT)
		return c->dict[c->planes[0][row]];
	if (c->encoding == NRP_ENC_RUNS) {
		find_run(c, row);
		return nrp_get64(c->run_values + 8 * c->run);
	}
	for (uint32_t k = 0; k < c->nr_planes; k++)
		v += (uint64_t)c->planes[k][row] << (8 * k);
	return v;
}

/* Rows @first .. that are not NULL, as bits; those from @n on are not set. */
static uint64_t valid_rows(const struct column *c, uint32_t first, uint32_t n)
{
	uint64_t all = n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0), nulls = 0;

	if (c->null_stream < 0)
		return all;
	for (uint32_t i = 0; i < n; i += 8)
		nulls |= (uint64_t)c->nulls[(first + i) / 8] << i;
	return all & ~nulls;
}

static inline void store_column(const struct column *c, uint32_t n, const uint64_t *values,
				uint8_t *rows, size_t row_size)
{
	uint8_t *p = rows + c->desc->offset;

#define STORE(type)                                                                                \
	for (uint32_t i = 0; i < n; i++, p += row_size) {                                          \
		type v = (type)values[i];                                                          \
		memcpy(p, &v, sizeof(v));                                                          \
	}                                                                                          \
	break
	switch (c->desc->type) {
	case NRP_T_u8:
	case NRP_T_i8:
		STORE(uint8_t);
	case NRP_T_u16:
	case NRP_T_i16:
		STORE(uint16_t);
	case NRP_T_u32:
	case NRP_T_i32:
		STORE(uint32_t);
	case NRP_T_u64:
	case NRP_T_i64:
		STORE(uint64_t);
	}
#undef STORE
}

static void store(const struct column *c, uint8_t *row, uint64_t value)
{
	store_column(c, 1, &value, row, 0);
}

/* With so few values in a batch they are fetched one by one. */
#define FEW 12

/* Where most rows are NULL: sets the few that are not, and clears what was there before. */
static void read_few(struct column *c, uint32_t first, uint64_t valid, uint8_t *rows,
		     size_t row_size)
{
	for (uint64_t left = c->written & ~valid; left; left &= left - 1)
		store(c, rows + (size_t)__builtin_ctzll(left) * row_size, 0);
	for (uint64_t left = valid; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);

		store(c, rows + i * row_size, value_at(c, first + i));
	}
}

static void read_many(struct column *c, uint32_t first, uint32_t n, uint64_t valid, uint8_t *rows,
		      size_t row_size)
{
	uint64_t values[NRP_BLOCK_BATCH];

	decode_values(c, first, n, values);
	if (c->null_stream >= 0)
		for (uint32_t i = 0; i < n; i++)
			values[i] &= 0 - (valid >> i & 1);
	store_column(c, n, values, rows, row_size);
}

static void set_nulls(struct nrp_block *block, uint32_t n, const uint64_t *valid, uint8_t *rows)
{
	size_t row_size = block->desc->row_size;
	uint64_t nulls[NRP_BLOCK_BATCH], base = block->null_base;

	memset(nulls, 0, n * sizeof(*nulls));
	for (uint32_t k = 0; k < block->nr_columns; k++) {
		const struct column *c = &block->columns[k];
		uint64_t bit = UINT64_C(1) << c->number, odd;
		bool mostly;

		if (c->null_stream < 0)
			continue;
		/* Only the rows that are unlike most are visited. */
		mostly = __builtin_popcountll(valid[k]) * 2 < (int)n;
		odd = mostly ? valid[k]
			     : ~valid[k] & (n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0));
		base |= mostly ? bit : 0;
		for (; odd; odd &= odd - 1)
			nulls[__builtin_ctzll(odd)] |= bit;
	}
	for (uint32_t i = 0; i < n; i++) {
		nulls[i] ^= base;
		memcpy(rows + i * row_size, &nulls[i], sizeof(nulls[i]));
	}
}

static void read_all(struct nrp_block *block, uint32_t first, uint32_t n, uint8_t *rows)
{
	size_t row_size = block->desc->row_size;
	uint64_t valid[NRP_BLOCK_MAX_COLUMNS];

	for (uint32_t k = 0; k < block->nr_columns; k++) {
		struct column *c = &block->columns[k];

		valid[k] = valid_rows(c, first, n);
		/* The first batch is the largest, and the rows keep what it left in them. */
		if (c->constant && first)
			continue;
		/* A NULL slot repeats the value before it: no difference is lost. */
		if (c->null_stream >= 0 && (!valid[k] || (c->encoding != NRP_ENC_DELTA &&
							  __builtin_popcountll(valid[k]) <= FEW)))
			read_few(c, first, valid[k], rows, row_size);
		else
			read_many(c, first, n, valid[k], rows, row_size);
		c->written = valid[k];
	}
	set_nulls(block, n, valid, rows);
}

/* ---- chosen rows -------------------------------------------------------------------- */

static uint64_t choose(const struct nrp_block *block, uint32_t first, uint32_t n)
{
	uint64_t values[NRP_BLOCK_BATCH], chosen = 0;

	for (uint32_t k = 0; k < block->nr_columns; k++) {
		const struct column *c = &block->columns[k];
		struct column copy = *c; /* DELTA is read again with the other columns */

		if ((int32_t)c->number != block->where)
			continue;
		decode_values(&copy, first, n, values);
		for (uint32_t i = 0; i < n; i++)
			chosen |= (uint64_t)(values[i] != 0) << i;
		return chosen & valid_rows(c, first, n);
	}
	return 0;
}

/* The chosen rows of a batch, one behind the other. */
static void read_chosen(struct nrp_block *block, uint32_t first, uint32_t n, uint64_t chosen,
			uint8_t *rows)
{
	size_t row_size = block->desc->row_size;
	uint64_t values[NRP_BLOCK_BATCH], nulls[NRP_BLOCK_BATCH];
	uint32_t count = (uint32_t)__builtin_popcountll(chosen);

	for (uint32_t i = 0; i < count; i++)
		nulls[i] = block->null_base;
	for (uint32_t k = 0; k < block->nr_columns; k++) {
		struct column *c = &block->columns[k];
		uint64_t valid = valid_rows(c, first, n), left = chosen;

		if (c->encoding == NRP_ENC_DELTA)
			decode_values(c, first, n, values);
		for (uint32_t i = 0; i < count; i++, left &= left - 1) {
			uint32_t row = (uint32_t)__builtin_ctzll(left);
			bool null = !(valid >> row & 1);
			uint64_t v = c->encoding == NRP_ENC_DELTA ? values[row]
								  : value_at(c, first + row);

			store(c, rows + i * row_size, null ? 0 : v);
			nulls[i] |= (uint64_t)null << c->number;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		memcpy(rows + i * row_size, &nulls[i], sizeof(nulls[i]));
}

uint32_t nrp_block_position(const struct nrp_block *block)
{
	return block->next;
}

void nrp_block_choose(struct nrp_block *block, int column)
{
	block->where = column;
}

uint32_t nrp_block_read(struct nrp_block *block, void *rows)
{
	while (block->next < block->rows) {
		uint32_t first = block->next, n = block->rows - first;
		uint64_t chosen;

		if (n > NRP_BLOCK_BATCH)
			n = NRP_BLOCK_BATCH;
		block->next += n;
		if (block->where < 0) {
			read_all(block, first, n, rows);
			return n;
		}
		chosen = choose(block, first, n);
		if (chosen) {
			read_chosen(block, first, n, chosen, rows);
			return (uint32_t)__builtin_popcountll(chosen);
		}
	}
	return 0;
}

uint64_t nrp_block_values(struct nrp_block *block, int column, uint32_t first, uint64_t *values)
{
	uint32_t n = block->rows - first;

	for (uint32_t k = 0; k < block->nr_columns; k++) {
		struct column *c = &block->columns[k];

		if ((int)c->number != column)
			continue;
		if (n > NRP_BLOCK_BATCH)
			n = NRP_BLOCK_BATCH;
		decode_values(c, first, n, values);
		return valid_rows(c, first, n);
	}
	return 0;
}
