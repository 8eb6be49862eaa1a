/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes rows apart into arrays, one per column; what the encoder does to such an array. */
#include "schema/block.h"
#include "numareplay/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(NRP_BITMAP_WORDS * 64 == NRP_BLOCK_ROWS, "a bitmap has a bit for every row");

size_t nrp_type_size(enum nrp_column_type type)
{
	switch (type) {
	case NRP_T_u8:
	case NRP_T_i8:
		return 1;
	case NRP_T_u16:
	case NRP_T_i16:
		return 2;
	case NRP_T_u32:
	case NRP_T_i32:
		return 4;
	case NRP_T_u64:
	case NRP_T_i64:
		break;
	}
	return 8;
}

/*
 * COPY_type: a column of a batch in which nothing is NULL. FILL_type: some or all of it is NULL,
 * and those slots get the value before, or after @first rows without any, the first one after.
 * Signs do not matter here.
 */
#define DEFINE_COLUMN(type)                                                                        \
	static void copy_##type(type *to, const uint8_t *from, size_t row_size, uint32_t n)        \
	{                                                                                          \
		for (uint32_t i = 0; i < n; i++)                                                   \
			memcpy(&to[i], from + i * row_size, sizeof(type));                         \
	}                                                                                          \
	static void fill_##type(type *values, uint32_t first, const uint8_t *from,                 \
				size_t row_size, uint32_t n, const uint64_t *nulls,                \
				uint32_t column, bool started)                                     \
	{                                                                                          \
		type *to = values + first, v = 0;                                                  \
		uint32_t i = 0;                                                                    \
                                                                                                   \
		if (started && first) {                                                            \
			v = to[-1];                                                                \
		} else {                                                                           \
			while (i < n && (nulls[i] >> column & 1))                                  \
				i++;                                                               \
			if (i < n)                                                                 \
				memcpy(&v, from + i * row_size, sizeof(type));                     \
			for (uint32_t k = 0; k < first; k++)                                       \
				values[k] = v;                                                     \
		}                                                                                  \
		for (i = 0; i < n; i++) {                                                          \
			if (!(nulls[i] >> column & 1))                                             \
				memcpy(&v, from + i * row_size, sizeof(type));                     \
			to[i] = v;                                                                 \
		}                                                                                  \
	}
DEFINE_COLUMN(uint8_t)
DEFINE_COLUMN(uint16_t)
DEFINE_COLUMN(uint32_t)
DEFINE_COLUMN(uint64_t)

#define CALL(type)                                                                                 \
	do {                                                                                       \
		if (any_null || !started)                                                          \
			fill_##type(values, first, from, row_size, n, nulls, column, started);     \
		else                                                                               \
			copy_##type((type *)values + first, from, row_size, n);                    \
	} while (0)

static void add_column(void *values, size_t size, uint32_t first, const uint8_t *from,
		       size_t row_size, uint32_t n, const uint64_t *nulls, uint32_t column,
		       bool started, bool any_null)
{
	switch (size) {
	case 1:
		CALL(uint8_t);
		break;
	case 2:
		CALL(uint16_t);
		break;
	case 4:
		CALL(uint32_t);
		break;
	default:
		CALL(uint64_t);
		break;
	}
}

/* A batch, short enough that its rows stay in the cache from column to column. */
static int add_batch(struct nrp_columns *columns, const uint8_t *rows, uint32_t n)
{
	const struct nrp_kind *desc = columns->desc;
	uint64_t *nulls = columns->nulls + columns->rows;
	uint64_t any = 0, all = ~UINT64_C(0);

	for (uint32_t i = 0; i < n; i++) {
		/* Every row struct starts with its NULL word. */
		memcpy(&nulls[i], rows + i * desc->row_size, sizeof(nulls[i]));
		any |= nulls[i];
		all &= nulls[i];
	}
	for (uint32_t c = 0; c < desc->nr_columns; c++) {
		size_t size = nrp_type_size(desc->columns[c].type);
		bool started = columns->present >> c & 1;

		if (!started && (all >> c & 1))
			continue;
		if (!columns->values[c])
			columns->values[c] = malloc(NRP_BLOCK_ROWS * size);
		if (!columns->values[c])
			return -ENOMEM;
		add_column(columns->values[c], size, columns->rows, rows + desc->columns[c].offset,
			   desc->row_size, n, nulls, c, started, any >> c & 1);
		columns->present |= UINT64_C(1) << c;
	}
	columns->any_null |= any;
	columns->rows += n;
	return 0;
}

int nrp_columns_add(struct nrp_columns *columns, const void *rows, uint32_t nr_rows)
{
	const uint8_t *p = rows;

	if (!columns->nulls)
		columns->nulls = malloc(NRP_BLOCK_ROWS * sizeof(*columns->nulls));
	if (!columns->nulls)
		return -ENOMEM;
	while (nr_rows) {
		uint32_t n = nr_rows < NRP_COLUMNS_BATCH ? nr_rows : NRP_COLUMNS_BATCH;
		int r = add_batch(columns, p, n);

		if (r < 0)
			return r;
		p += n * columns->desc->row_size;
		nr_rows -= n;
	}
	return 0;
}

void nrp_columns_reset(struct nrp_columns *columns)
{
	columns->rows = 0;
	columns->present = 0;
	columns->any_null = 0;
}

void nrp_columns_clear(struct nrp_columns *columns)
{
	for (size_t c = 0; c < NRP_BLOCK_MAX_COLUMNS; c++) {
		free(columns->values[c]);
		columns->values[c] = NULL;
	}
	free(columns->nulls);
	columns->nulls = NULL;
	nrp_columns_reset(columns);
}

/* ---- one column --------------------------------------------------------------------- */

#define DEFINE_TYPE(name, type, wide)                                                              \
	static void range_##name(const type *v, uint32_t n, uint64_t *ret_min, uint64_t *ret_max)  \
	{                                                                                          \
		type min = v[0], max = v[0];                                                       \
                                                                                                   \
		for (uint32_t i = 1; i < n; i++) {                                                 \
			min = v[i] < min ? v[i] : min;                                             \
			max = v[i] > max ? v[i] : max;                                             \
		}                                                                                  \
		*ret_min = (uint64_t)(wide)min;                                                    \
		*ret_max = (uint64_t)(wide)max;                                                    \
	}                                                                                          \
	static void widen_##name(const type *v, uint32_t n, uint64_t *to)                          \
	{                                                                                          \
		for (uint32_t i = 0; i < n; i++)                                                   \
			to[i] = (uint64_t)(wide)v[i];                                              \
	}                                                                                          \
	static void narrow_##name(const type *v, uint32_t n, uint8_t base, uint8_t *to)            \
	{                                                                                          \
		for (uint32_t i = 0; i < n; i++)                                                   \
			to[i] = (uint8_t)((uint8_t)v[i] - base);                                   \
	}
DEFINE_TYPE(u8, uint8_t, uint64_t)
DEFINE_TYPE(u16, uint16_t, uint64_t)
DEFINE_TYPE(u32, uint32_t, uint64_t)
DEFINE_TYPE(u64, uint64_t, uint64_t)
DEFINE_TYPE(i8, int8_t, int64_t)
DEFINE_TYPE(i16, int16_t, int64_t)
DEFINE_TYPE(i32, int32_t, int64_t)
DEFINE_TYPE(i64, int64_t, int64_t)

/* Calls one of the above for a column's type. */
#define FOR_TYPE(type, function, ...)                                                              \
	do {                                                                                       \
		switch (type) {                                                                    \
		case NRP_T_u8:                                                                     \
			function##_u8(__VA_ARGS__);                                                \
			break;                                                                     \
		case NRP_T_u16:                                                                    \
			function##_u16(__VA_ARGS__);                                               \
			break;                                                                     \
		case NRP_T_u32:                                                                    \
			function##_u32(__VA_ARGS__);                                               \
			break;                                                                     \
		case NRP_T_u64:                                                                    \
			function##_u64(__VA_ARGS__);                                               \
			break;                                                                     \
		case NRP_T_i8:                                                                     \
			function##_i8(__VA_ARGS__);                                                \
			break;                                                                     \
		case NRP_T_i16:                                                                    \
			function##_i16(__VA_ARGS__);                                               \
			break;                                                                     \
		case NRP_T_i32:                                                                    \
			function##_i32(__VA_ARGS__);                                               \
			break;                                                                     \
		case NRP_T_i64:                                                                    \
			function##_i64(__VA_ARGS__);                                               \
			break;                                                                     \
		}                                                                                  \
	} while (0)

void nrp_column_range(enum nrp_column_type type, const void *values, uint32_t rows,
		      uint64_t *ret_min, uint64_t *ret_max)
{
	FOR_TYPE(type, range, values, rows, ret_min, ret_max);
}

void nrp_column_widen(enum nrp_column_type type, const void *values, uint32_t rows, uint64_t *to)
{
	FOR_TYPE(type, widen, values, rows, to);
}

void nrp_column_narrow(enum nrp_column_type type, const void *values, uint32_t rows, uint8_t base,
		       uint8_t *to)
{
	FOR_TYPE(type, narrow, values, rows, base, to);
}

/* With a NULL bitmap, NULL slots repeat the value before them in the new order. */
#define DEFINE_SORT(type)                                                                          \
	static void sort_##type(const type *v, const uint32_t *order, const uint64_t *nulls,       \
				uint32_t n, type *to)                                              \
	{                                                                                          \
		type last = v[order[0]];                                                           \
                                                                                                   \
		for (uint32_t i = 0; !nulls && i < n; i++)                                         \
			to[i] = v[order[i]];                                                       \
		for (uint32_t i = 0; nulls && i < n; i++) {                                        \
			last = nulls[i / 64] >> (i % 64) & 1 ? last : v[order[i]];                 \
			to[i] = last;                                                              \
		}                                                                                  \
	}
DEFINE_SORT(uint8_t)
DEFINE_SORT(uint16_t)
DEFINE_SORT(uint32_t)
DEFINE_SORT(uint64_t)

const void *nrp_column_sort(const void *values, size_t size, const uint32_t *order,
			    const uint64_t *nulls, uint32_t rows, void *sorted)
{
	if (!order)
		return values;
	switch (size) {
	case 1:
		sort_uint8_t(values, order, nulls, rows, sorted);
		break;
	case 2:
		sort_uint16_t(values, order, nulls, rows, sorted);
		break;
	case 4:
		sort_uint32_t(values, order, nulls, rows, sorted);
		break;
	default:
		sort_uint64_t(values, order, nulls, rows, sorted);
		break;
	}
	return sorted;
}

/* Bit c of row i becomes bit i of column c (Hacker's Delight, 7-3). */
static void transpose64(uint64_t m[64])
{
	uint64_t mask = 0x00000000ffffffff;

	for (unsigned int j = 32; j; j >>= 1, mask ^= mask << j) {
		for (unsigned int k = 0; k < 64; k = ((k | j) + 1) & ~j) {
			uint64_t t = (m[k] >> j ^ m[k | j]) & mask;

			m[k] ^= t << j;
			m[k | j] ^= t;
		}
	}
}

void nrp_columns_bitmaps(const struct nrp_columns *columns, const uint32_t *order,
			 uint64_t *bitmaps)
{
	uint64_t m[64];

	for (uint32_t first = 0; first < columns->rows; first += 64) {
		for (uint32_t i = 0; i < 64; i++) {
			uint32_t row = first + i;

			m[i] = row < columns->rows ? columns->nulls[order ? order[row] : row] : 0;
		}
		transpose64(m);
		for (uint32_t c = 0; c < columns->desc->nr_columns; c++)
			bitmaps[c * NRP_BITMAP_WORDS + first / 64] = m[c];
	}
}
