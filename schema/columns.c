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
 * COPY_type: a column of some rows in which nothing is NULL. MIX_type: some of it is NULL, and
 * those slots get the value before, at first @before. SAME_type: does all repeat @before? Signs do
 * not matter here.
 */
#define DEFINE_COLUMN(type)                                                                        \
	static void copy_##type(type *to, const uint8_t *const *rows, size_t offset, uint32_t n)   \
	{                                                                                          \
		for (uint32_t i = 0; i < n; i++)                                                   \
			memcpy(&to[i], rows[i] + offset, sizeof(type));                            \
	}                                                                                          \
	static void mix_##type(type *to, const uint8_t *const *rows, size_t offset, uint32_t n,    \
			       const uint64_t *nulls, uint32_t column, const void *before)         \
	{                                                                                          \
		type v, w;                                                                         \
                                                                                                   \
		memcpy(&v, before, sizeof(type));                                                  \
		for (uint32_t i = 0; i < n; i++) { /* no branch: it would be a toss of a coin */   \
			memcpy(&w, rows[i] + offset, sizeof(type));                                \
			v = nulls[i] >> column & 1 ? v : w;                                        \
			to[i] = v;                                                                 \
		}                                                                                  \
	}                                                                                          \
	static void same_##type(const uint8_t *const *rows, size_t offset, uint32_t n,             \
				const void *before, bool *ret)                                     \
	{                                                                                          \
		uint32_t i = 0;                                                                    \
                                                                                                   \
		while (i < n && !memcmp(rows[i] + offset, before, sizeof(type)))                   \
			i++;                                                                       \
		*ret = i == n;                                                                     \
	}
DEFINE_COLUMN(uint8_t)
DEFINE_COLUMN(uint16_t)
DEFINE_COLUMN(uint32_t)
DEFINE_COLUMN(uint64_t)

/* Calls one of the above for a column's size. */
#define FOR_SIZE(size, function, ...)                                                              \
	do {                                                                                       \
		switch (size) {                                                                    \
		case 1:                                                                            \
			function##_uint8_t(__VA_ARGS__);                                           \
			break;                                                                     \
		case 2:                                                                            \
			function##_uint16_t(__VA_ARGS__);                                          \
			break;                                                                     \
		case 4:                                                                            \
			function##_uint32_t(__VA_ARGS__);                                          \
			break;                                                                     \
		default:                                                                           \
			function##_uint64_t(__VA_ARGS__);                                          \
			break;                                                                     \
		}                                                                                  \
	} while (0)

/* Slots from @from to before @to get the value in front of them. */
static void repeat(uint8_t *values, size_t size, uint32_t from, uint32_t to)
{
	uint8_t *p = values + from * size;
	size_t left = (to - from) * size, n = size;

	while (left) {
		n = n < left ? n : left;
		memcpy(p, values + (from - 1) * size, n);
		p += n;
		left -= n;
		n = (size_t)(p - values) - (from - 1) * size;
	}
}

/* A column that has a value in some of the rows. */
static void add_column(struct nrp_columns *columns, uint32_t c, const uint8_t *const *rows,
		       uint32_t n, bool any_null)
{
	size_t offset = columns->desc->columns[c].offset;
	size_t size = nrp_type_size(columns->desc->columns[c].type);
	const uint64_t *nulls = columns->nulls + columns->rows;
	uint8_t *values = columns->values[c], *to = values + columns->rows * size;
	uint32_t filled = columns->filled[c], known = 0;

	if (filled && !any_null) {
		bool same;

		FOR_SIZE(size, same, rows, offset, n, values + (filled - 1) * size, &same);
		if (same)
			return;
	}
	while (nulls[known] >> c & 1)
		known++;
	if (!filled && columns->rows) {
		memcpy(values, rows[known] + offset, size);
		filled = 1;
	}
	if (filled)
		repeat(values, size, filled, columns->rows);
	if (any_null)
		FOR_SIZE(size, mix, (void *)to, rows, offset, n, nulls, c,
			 filled ? to - size : rows[known] + offset);
	else
		FOR_SIZE(size, copy, (void *)to, rows, offset, n);
	columns->filled[c] = columns->rows + n;
	columns->present |= UINT64_C(1) << c;
}

int nrp_columns_add(struct nrp_columns *columns, const uint8_t *const *rows, uint32_t n)
{
	const struct nrp_kind *desc = columns->desc;
	uint64_t any = 0, all = ~UINT64_C(0), *nulls;

	if (!columns->nulls)
		columns->nulls = malloc(NRP_BLOCK_ROWS * sizeof(*columns->nulls));
	if (!columns->nulls)
		return -ENOMEM;
	nulls = columns->nulls + columns->rows;
	for (uint32_t i = 0; i < n; i++) {
		/* Every row struct starts with its NULL word. */
		memcpy(&nulls[i], rows[i], sizeof(nulls[i]));
		any |= nulls[i];
		all &= nulls[i];
	}
	for (uint32_t c = 0; c < desc->nr_columns; c++) {
		if (all >> c & 1)
			continue;
		if (!columns->values[c])
			columns->values[c] =
				malloc(NRP_BLOCK_ROWS * nrp_type_size(desc->columns[c].type));
		if (!columns->values[c])
			return -ENOMEM;
		add_column(columns, c, rows, n, any >> c & 1);
	}
	columns->any_null |= any;
	columns->rows += n;
	return 0;
}

void nrp_columns_fill(struct nrp_columns *columns, uint32_t c)
{
	if (columns->filled[c])
		repeat(columns->values[c], nrp_type_size(columns->desc->columns[c].type),
		       columns->filled[c], columns->rows);
	columns->filled[c] = columns->rows;
}

void nrp_columns_reset(struct nrp_columns *columns)
{
	columns->rows = 0;
	columns->present = 0;
	columns->any_null = 0;
	memset(columns->filled, 0, sizeof(columns->filled));
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

/* Values looked at together for a change. */
#define SCAN 64

/* A run begins at @row of those that are looked at. */
static void add_run(struct nrp_value_runs *runs, uint32_t row, uint64_t value)
{
	if (runs->nr < NRP_BLOCK_RUNS) {
		runs->from[runs->nr] = runs->rows + row;
		runs->value[runs->nr] = value;
	}
	if (runs->nr <= NRP_BLOCK_RUNS)
		runs->nr++;
}

/* Four at a time: a single smallest and largest value would each wait for the one before. */
#define DEFINE_TYPE(name, type, wide)                                                              \
	static void range_##name(const type *v, uint32_t n, uint64_t *ret_min, uint64_t *ret_max)  \
	{                                                                                          \
		type min[4] = { v[0], v[0], v[0], v[0] }, max[4] = { v[0], v[0], v[0], v[0] };     \
		uint32_t i = 1;                                                                    \
                                                                                                   \
		for (; i + 4 <= n; i += 4) {                                                       \
			for (uint32_t k = 0; k < 4; k++) {                                         \
				min[k] = v[i + k] < min[k] ? v[i + k] : min[k];                    \
				max[k] = v[i + k] > max[k] ? v[i + k] : max[k];                    \
			}                                                                          \
		}                                                                                  \
		for (; i < n; i++) {                                                               \
			min[0] = v[i] < min[0] ? v[i] : min[0];                                    \
			max[0] = v[i] > max[0] ? v[i] : max[0];                                    \
		}                                                                                  \
		for (uint32_t k = 1; k < 4; k++) {                                                 \
			min[0] = min[k] < min[0] ? min[k] : min[0];                                \
			max[0] = max[k] > max[0] ? max[k] : max[0];                                \
		}                                                                                  \
		*ret_min = (uint64_t)(wide)min[0];                                                 \
		*ret_max = (uint64_t)(wide)max[0];                                                 \
	}                                                                                          \
	static void runs_##name(const type *v, uint32_t n, struct nrp_value_runs *runs)            \
	{                                                                                          \
		if (!runs->nr || runs->value[runs->nr - 1] != (uint64_t)(wide)v[0])                \
			add_run(runs, 0, (uint64_t)(wide)v[0]);                                    \
		for (uint32_t i = 1, m; i < n && runs->nr <= NRP_BLOCK_RUNS; i += m) {             \
			type differ = 0;                                                           \
                                                                                                   \
			m = n - i < SCAN ? n - i : SCAN;                                           \
			for (uint32_t k = i; k < i + m; k++)                                       \
				differ |= v[k] ^ v[k - 1];                                         \
			for (uint32_t k = i; differ && k < i + m; k++)                             \
				if (v[k] != v[k - 1])                                              \
					add_run(runs, k, (uint64_t)(wide)v[k]);                    \
		}                                                                                  \
		runs->rows += n;                                                                   \
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

void nrp_column_runs(enum nrp_column_type type, const void *values, uint32_t rows,
		     const struct nrp_order *order, struct nrp_value_runs *ret)
{
	const uint8_t *from = values;

	ret->nr = ret->rows = 0;
	for (uint32_t i = 0; i < order->nr_runs && ret->nr <= NRP_BLOCK_RUNS; i++) {
		const struct nrp_run *run = &order->run[i];
		uint32_t n = order->nr_runs == 1 ? rows : run->n;

		FOR_TYPE(type, runs, (const void *)(from + run->from * nrp_type_size(type)), n,
			 ret);
	}
}

void nrp_column_widen(enum nrp_column_type type, const void *values, const struct nrp_order *order,
		      uint64_t *to)
{
	const uint8_t *from = values;
	size_t size = nrp_type_size(type);

	for (uint32_t i = 0; i < order->nr_runs; i++) {
		const struct nrp_run *run = &order->run[i];

		FOR_TYPE(type, widen, (const void *)(from + run->from * size), run->n, to);
		to += run->n;
	}
}

void nrp_column_narrow(enum nrp_column_type type, const void *values, const struct nrp_order *order,
		       uint8_t base, uint8_t *to)
{
	const uint8_t *from = values;
	size_t size = nrp_type_size(type);

	for (uint32_t i = 0; i < order->nr_runs; i++) {
		const struct nrp_run *run = &order->run[i];

		FOR_TYPE(type, narrow, (const void *)(from + run->from * size), run->n, base, to);
		to += run->n;
	}
}

void nrp_order_add(struct nrp_order *order, uint32_t row)
{
	struct nrp_run *last = order->run + order->nr_runs - 1;

	if (order->nr_runs && row == last->from + last->n)
		last->n++;
	else
		order->run[order->nr_runs++] = (struct nrp_run){ row, 1 };
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

void nrp_columns_bitmaps(const struct nrp_columns *columns, const struct nrp_order *order,
			 uint64_t *bitmaps)
{
	const struct nrp_run *run = order->run;
	uint32_t done = 0; /* rows of the run */

	for (uint32_t first = 0; first < columns->rows; first += 64) {
		uint64_t m[64] = { 0 };

		for (uint32_t i = 0; i < 64 && first + i < columns->rows; i++) {
			m[i] = columns->nulls[run->from + done];
			if (++done == run->n) {
				run++;
				done = 0;
			}
		}
		transpose64(m);
		for (uint32_t c = 0; c < columns->desc->nr_columns; c++)
			bitmaps[c * NRP_BITMAP_WORDS + first / 64] = m[c];
	}
}
