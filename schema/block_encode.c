/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/block.h"
#include "schema/bytes.h"
#include "numareplay/store.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>

#define LEVEL 1 /* higher ones take longer and win nothing on planes */
/* zstd cannot win anything on fewer bytes. */
#define MIN_COMPRESS 32
/* Rows looked at to estimate the size of an encoding. */
#define SAMPLE 4096
/* Runs that are stored as such, of a block's rows. */
#define MAX_RUNS(rows) ((rows) / 64 < NRP_BLOCK_RUNS ? (rows) / 64 : NRP_BLOCK_RUNS)
/* Slots of the hash table behind a dictionary; a power of two. */
#define DICT_SLOTS 1024

struct stream {
	size_t offset; /* in the pool */
	uint32_t size;
	uint64_t hash;
};

struct encoder_column {
	enum nrp_block_encoding encoding;
	uint8_t planes;
	bool nulls;
	uint64_t base;
	uint16_t nr_streams;
	uint16_t streams[10];
};

struct nrp_encoder {
	ZSTD_CCtx *zstd;
	uint64_t *values;  /* a column widened */
	uint64_t *deltas;  /* its zigzag differences */
	uint8_t *index;    /* its dictionary indices */
	uint64_t *bitmaps; /* NULL bitmaps: NRP_BLOCK_ROWS / 64 words for each column */
	uint8_t *pool;     /* the distinct streams, uncompressed */
	size_t pool_size, pool_room;
	uint8_t *out;
	size_t out_room;
	struct stream streams[NRP_BLOCK_MAX_STREAMS];
	uint32_t nr_streams;
	struct encoder_column columns[NRP_BLOCK_MAX_COLUMNS];
	struct nrp_value_runs runs;
	uint64_t dict[NRP_BLOCK_DICT];
	uint32_t dict_size;
	struct {
		uint64_t value;
		uint32_t stamp; /* slot is in use if this is the encoder's */
		uint8_t index;
	} slots[DICT_SLOTS];
	uint32_t stamp;
};

struct nrp_encoder *nrp_encoder_new(void)
{
	struct nrp_encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->zstd = ZSTD_createCCtx();
	e->values = malloc(NRP_BLOCK_ROWS * sizeof(*e->values));
	e->deltas = malloc(NRP_BLOCK_ROWS * sizeof(*e->deltas));
	e->index = malloc(NRP_BLOCK_ROWS);
	e->bitmaps = malloc(NRP_BLOCK_MAX_COLUMNS * NRP_BITMAP_WORDS * sizeof(*e->bitmaps));
	if (!e->zstd || !e->values || !e->deltas || !e->index || !e->bitmaps)
		return nrp_encoder_free(e);
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, LEVEL);
	/* The stream table holds the size, the block table a checksum. */
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_contentSizeFlag, 0);
	return e;
}

struct nrp_encoder *nrp_encoder_free(struct nrp_encoder *e)
{
	if (!e)
		return NULL;
	ZSTD_freeCCtx(e->zstd);
	free(e->values);
	free(e->deltas);
	free(e->index);
	free(e->bitmaps);
	free(e->pool);
	free(e->out);
	free(e);
	return NULL;
}

/* ---- streams ------------------------------------------------------------------------ */

static int grow(uint8_t **buffer, size_t *room, size_t need)
{
	size_t size = *room ? *room : 1u << 16;
	uint8_t *p;

	if (need <= *room)
		return 0;
	while (size < need)
		size *= 2;
	p = realloc(*buffer, size);
	if (!p)
		return -ENOMEM;
	*buffer = p;
	*room = size;
	return 0;
}

/* Room for a stream of @size bytes at the end of the pool; keep_stream() keeps it. */
static uint8_t *new_stream(struct nrp_encoder *e, size_t size)
{
	if (grow(&e->pool, &e->pool_room, e->pool_size + size) < 0)
		return NULL;
	return e->pool + e->pool_size;
}

/* Gives the stream just written a number, that of an equal one if there is one. */
static void keep_stream(struct nrp_encoder *e, struct encoder_column *column, uint32_t size)
{
	const uint8_t *bytes = e->pool + e->pool_size;
	uint64_t hash = XXH3_64bits(bytes, size);
	uint32_t i;

	for (i = 0; i < e->nr_streams; i++) {
		const struct stream *s = &e->streams[i];

		if (s->hash == hash && s->size == size &&
		    memcmp(e->pool + s->offset, bytes, size) == 0)
			break;
	}
	if (i == e->nr_streams) {
		e->streams[e->nr_streams++] = (struct stream){ e->pool_size, size, hash };
		e->pool_size += size;
	}
	column->streams[column->nr_streams++] = (uint16_t)i;
}

static int add_stream(struct nrp_encoder *e, struct encoder_column *column, const void *bytes,
		      uint32_t size)
{
	uint8_t *p = new_stream(e, size);

	if (!p)
		return -ENOMEM;
	memcpy(p, bytes, size);
	keep_stream(e, column, size);
	return 0;
}

/* Adds the planes of values - base. */
static int add_planes(struct nrp_encoder *e, struct encoder_column *column, const uint64_t *values,
		      uint32_t rows, uint64_t base)
{
	for (unsigned int k = 0; k < column->planes; k++) {
		uint8_t *plane = new_stream(e, rows);

		if (!plane)
			return -ENOMEM;
		for (uint32_t i = 0; i < rows; i++)
			plane[i] = (uint8_t)((values[i] - base) >> (8 * k));
		keep_stream(e, column, rows);
	}
	return 0;
}

/* ---- choosing an encoding ----------------------------------------------------------- */

static uint8_t planes_of(uint64_t value)
{
	uint8_t planes = 0;

	for (; value; value >>= 8)
		planes++;
	return planes;
}

/* log2(x) * 256 for x >= 1; linear between the powers of two is good enough to compare sizes. */
static uint32_t log2_256(uint32_t x)
{
	uint32_t top = 31 - (uint32_t)__builtin_clz(x);

	return top * 256 + (uint32_t)((((uint64_t)x - (UINT64_C(1) << top)) << 8) >> top);
}

/* Bits per SAMPLE rows, times 256, of byte @k of values - base if each byte stood alone. */
static uint64_t plane_cost(const uint64_t *values, uint32_t rows, uint64_t base, unsigned int k)
{
	uint32_t count[256] = { 0 };
	uint32_t step = rows > SAMPLE ? rows / SAMPLE : 1, total = 0;
	uint64_t cost = 0;

	for (uint32_t i = 0; i < rows; i += step, total++)
		count[(uint8_t)((values[i] - base) >> (8 * k))]++;
	for (unsigned int b = 0; b < 256; b++) {
		if (count[b])
			cost += (uint64_t)count[b] * (log2_256(total) - log2_256(count[b]));
	}
	return cost;
}

static uint64_t planes_cost(const uint64_t *values, uint32_t rows, uint64_t base,
			    unsigned int planes)
{
	uint64_t cost = 0;

	for (unsigned int k = 0; k < planes; k++)
		cost += plane_cost(values, rows, base, k);
	return cost;
}

/* Fills the deltas; returns their common bits. */
static uint64_t make_deltas(struct nrp_encoder *e, const uint64_t *values, uint32_t rows)
{
	uint64_t bits = 0;

	e->deltas[0] = 0;
	for (uint32_t i = 1; i < rows; i++) {
		uint64_t d = values[i] - values[i - 1], delta = (d << 1) ^ (0 - (d >> 63));

		e->deltas[i] = delta;
		bits |= delta;
	}
	return bits;
}

/* Fills dict and index, in order of first appearance; false: too many values. */
static bool make_dict(struct nrp_encoder *e, const uint64_t *values, uint32_t rows)
{
	uint64_t previous = 0;
	uint8_t index = 0;

	if (++e->stamp == 0) {
		memset(e->slots, 0, sizeof(e->slots));
		e->stamp = 1;
	}
	e->dict_size = 0;
	for (uint32_t i = 0; i < rows; i++) {
		uint64_t v = values[i];
		uint32_t slot;

		if (i && v == previous) {
			e->index[i] = index;
			continue;
		}
		slot = (uint32_t)((v * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
		while (e->slots[slot].stamp == e->stamp && e->slots[slot].value != v)
			slot = (slot + 1) % DICT_SLOTS;
		if (e->slots[slot].stamp != e->stamp) {
			if (e->dict_size == NRP_BLOCK_DICT)
				return false;
			e->slots[slot].stamp = e->stamp;
			e->slots[slot].value = v;
			e->slots[slot].index = (uint8_t)e->dict_size;
			e->dict[e->dict_size++] = v;
		}
		index = e->slots[slot].index;
		e->index[i] = index;
		previous = v;
	}
	return true;
}

static uint64_t dict_cost(const struct nrp_encoder *e, uint32_t rows)
{
	uint32_t count[256] = { 0 };
	uint32_t step = rows > SAMPLE ? rows / SAMPLE : 1, total = 0;
	uint64_t cost = 0;

	for (uint32_t i = 0; i < rows; i += step, total++)
		count[e->index[i]]++;
	for (unsigned int b = 0; b < 256; b++) {
		if (count[b])
			cost += (uint64_t)count[b] * (log2_256(total) - log2_256(count[b]));
	}
	/* The values themselves, as a share of the sample. */
	return cost + (uint64_t)e->dict_size * 64 * 256 * total / rows;
}

static int add_dict(struct nrp_encoder *e, struct encoder_column *column, uint32_t rows)
{
	uint8_t bytes[NRP_BLOCK_DICT * 8];
	int r;

	for (uint32_t i = 0; i < e->dict_size; i++)
		nrp_put64(bytes + 8 * i, e->dict[i]);
	column->encoding = NRP_ENC_DICT;
	column->planes = 1;
	column->base = 0;
	r = add_stream(e, column, bytes, 8 * e->dict_size);
	return r < 0 ? r : add_stream(e, column, e->index, rows);
}

/* Encodes a column of which @column describes the FRAME of two or more planes. */
static int encode_wide(struct nrp_encoder *e, struct encoder_column *column, const uint64_t *values,
		       uint32_t rows)
{
	uint64_t min = column->base;
	uint8_t delta = planes_of(make_deltas(e, values, rows));
	uint64_t frame_cost = planes_cost(values, rows, min, column->planes);
	uint64_t delta_cost = planes_cost(e->deltas, rows, 0, delta);
	uint64_t best = delta_cost < frame_cost ? delta_cost : frame_cost;

	if (make_dict(e, values, rows) && dict_cost(e, rows) <= best)
		return add_dict(e, column, rows);
	if (frame_cost <= delta_cost)
		return add_planes(e, column, values, rows, min);
	column->encoding = NRP_ENC_DELTA;
	column->planes = delta;
	column->base = values[0];
	return add_planes(e, column, e->deltas, rows, 0);
}

/* ---- columns ------------------------------------------------------------------------ */

static int add_bitmap(struct nrp_encoder *e, struct encoder_column *column, const uint64_t *nulls,
		      uint32_t rows)
{
	uint8_t bytes[NRP_BLOCK_ROWS / 8];

	for (uint32_t i = 0; i < (rows + 63) / 64; i++)
		nrp_put64(bytes + 8 * i, nulls[i]);
	column->nulls = true;
	return add_stream(e, column, bytes, (rows + 7) / 8);
}

/* The runs that were found, of all rows. */
static int add_runs(struct nrp_encoder *e, struct encoder_column *column, uint32_t rows)
{
	const struct nrp_value_runs *runs = &e->runs;
	uint8_t ends[NRP_BLOCK_RUNS * 4], values[NRP_BLOCK_RUNS * 8];

	for (uint32_t i = 0; i < runs->nr; i++) {
		nrp_put32(ends + 4 * i, i + 1 < runs->nr ? runs->from[i + 1] : rows);
		nrp_put64(values + 8 * i, runs->value[i]);
	}
	column->encoding = NRP_ENC_RUNS;
	column->planes = 0;
	column->base = 0;
	if (add_stream(e, column, ends, 4 * runs->nr) < 0)
		return -ENOMEM;
	return add_stream(e, column, values, 8 * runs->nr);
}

/* Encodes a column of which @column describes the FRAME of one or more planes. */
static int encode_values(struct nrp_encoder *e, struct encoder_column *column,
			 const struct nrp_columns *columns, uint32_t c,
			 const struct nrp_order *order)
{
	enum nrp_column_type type = columns->desc->columns[c].type;

	if (column->planes == 1) {
		uint8_t *plane = new_stream(e, columns->rows);

		if (!plane)
			return -ENOMEM;
		nrp_column_narrow(type, columns->values[c], order, (uint8_t)column->base, plane);
		keep_stream(e, column, columns->rows);
		return 0;
	}
	nrp_column_widen(type, columns->values[c], order, e->values);
	return encode_wide(e, column, e->values, columns->rows);
}

static int encode_column(struct nrp_encoder *e, struct nrp_columns *columns, uint32_t c,
			 const struct nrp_order *order, struct nrp_block_image *image)
{
	struct encoder_column *column = &e->columns[c];
	enum nrp_column_type type = columns->desc->columns[c].type;
	uint32_t rows = columns->rows;
	bool few;

	*column = (struct encoder_column){ .encoding = NRP_ENC_NULLS };
	image->min[c] = image->max[c] = 0;
	if (!(columns->present >> c & 1))
		return 0;
	if ((columns->any_null >> c & 1) &&
	    add_bitmap(e, column, e->bitmaps + c * NRP_BITMAP_WORDS, rows) < 0)
		return -ENOMEM;

	if (columns->whole >> c & 1)
		nrp_column_runs(type, columns->values[c], order, &e->runs);
	else
		nrp_columns_runs(columns, c, order, &e->runs);
	few = e->runs.nr <= MAX_RUNS(rows) || e->runs.nr == 1;
	if (few) {
		nrp_column_range(nrp_column_is_signed(&columns->desc->columns[c]) ? NRP_T_i64
										  : NRP_T_u64,
				 e->runs.value, e->runs.nr, &image->min[c], &image->max[c]);
	} else {
		if (nrp_columns_fill(columns, c) < 0)
			return -ENOMEM;
		nrp_column_range(type, columns->values[c], rows, &image->min[c], &image->max[c]);
	}
	column->encoding = NRP_ENC_FRAME;
	column->base = image->min[c];
	column->planes = planes_of(image->max[c] - image->min[c]);
	if (column->planes == 0)
		return 0;
	return few ? add_runs(e, column, rows) : encode_values(e, column, columns, c, order);
}

/* ---- the image ---------------------------------------------------------------------- */

static uint8_t *put_columns(const struct nrp_encoder *e, const struct nrp_kind *desc, uint8_t *p)
{
	for (uint32_t c = 0; c < desc->nr_columns; c++) {
		const struct encoder_column *column = &e->columns[c];

		p[0] = (uint8_t)desc->columns[c].type;
		p[1] = (uint8_t)column->encoding;
		p[2] = column->planes;
		p[3] = column->nulls;
		nrp_put64(p + 4, column->base);
		p += NRP_BLOCK_COLUMN;
		for (uint32_t i = 0; i < column->nr_streams; i++, p += 2)
			nrp_put16(p, column->streams[i]);
	}
	return p;
}

/* Compresses one stream to @p (with room for its bound); returns the bytes stored, 0 on failure. */
static size_t put_stream(struct nrp_encoder *e, const struct stream *s, uint8_t *p)
{
	const uint8_t *bytes = e->pool + s->offset;
	size_t n = s->size;

	if (s->size >= MIN_COMPRESS) {
		n = ZSTD_compress2(e->zstd, p, ZSTD_compressBound(s->size), bytes, s->size);
		if (ZSTD_isError(n))
			return 0;
	}
	if (n >= s->size) {
		memcpy(p, bytes, s->size);
		n = s->size;
	}
	return n;
}

static int make_image(struct nrp_encoder *e, enum nrp_record_kind kind,
		      const struct nrp_columns *columns, struct nrp_block_image *image)
{
	const struct nrp_kind *desc = columns->desc;
	size_t bound = NRP_BLOCK_HEADER + NRP_BLOCK_MAX_COLUMNS * (NRP_BLOCK_COLUMN + 20) +
		       NRP_BLOCK_MAX_STREAMS * NRP_BLOCK_STREAM;
	uint8_t *p, *table;

	for (uint32_t i = 0; i < e->nr_streams; i++)
		bound += ZSTD_compressBound(e->streams[i].size);
	if (grow(&e->out, &e->out_room, bound) < 0)
		return -ENOMEM;

	p = e->out;
	memcpy(p, "NRPB", 4);
	nrp_put16(p + 4, NRP_BLOCK_VERSION);
	nrp_put16(p + 6, (uint16_t)kind);
	nrp_put32(p + 8, columns->rows);
	nrp_put16(p + 12, (uint16_t)desc->nr_columns);
	nrp_put16(p + 14, (uint16_t)e->nr_streams);
	table = put_columns(e, desc, p + NRP_BLOCK_HEADER);
	nrp_put32(p + 16, (uint32_t)(table - p) - NRP_BLOCK_HEADER);

	p = table + (size_t)e->nr_streams * NRP_BLOCK_STREAM;
	image->raw_size = (size_t)(p - e->out) + e->pool_size;
	for (uint32_t i = 0; i < e->nr_streams; i++, table += NRP_BLOCK_STREAM) {
		size_t stored = put_stream(e, &e->streams[i], p);

		if (!stored)
			return -ENOMEM;
		nrp_put32(table, (uint32_t)stored);
		nrp_put32(table + 4, e->streams[i].size);
		p += stored;
	}
	image->data = e->out;
	image->size = (size_t)(p - e->out);
	return 0;
}

int nrp_block_encode(struct nrp_encoder *e, enum nrp_record_kind kind, struct nrp_columns *columns,
		     const struct nrp_order *order, struct nrp_block_image *ret)
{
	e->nr_streams = 0;
	e->pool_size = 0;
	if (columns->any_null)
		nrp_columns_bitmaps(columns, order, e->bitmaps);
	for (uint32_t c = 0; c < columns->desc->nr_columns; c++) {
		int r = encode_column(e, columns, c, order, ret);

		if (r < 0)
			return r;
	}
	return make_image(e, kind, columns, ret);
}
