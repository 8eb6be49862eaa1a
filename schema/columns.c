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

/*
 * RANGE_type: four at a time, since a single smallest and largest value would each wait for the one
 * before. RUNS_type: of an array. COLLECT_type: of rows; NULL slots belong to the run before.
 */
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
	static void collect_##name(const uint8_t *const *rows, size_t offset, uint32_t n,          \
				   const uint64_t *nulls, uint32_t column, bool any_null,          \
				   struct nrp_value_runs *runs)                                    \
	{                                                                                          \
		for (uint32_t i = 0; i < n && runs->nr <= NRP_BLOCK_RUNS; i++) {                   \
			type v;                                                                    \
                                                                                                   \
			if (any_null && nulls[i] >> column & 1)                                    \
				continue;                                                          \
			memcpy(&v, rows[i] + offset, sizeof(v));                                   \
			if (!runs->nr || runs->value[runs->nr - 1] != (uint64_t)(wide)v)           \
				add_run(runs, i, (uint64_t)(wide)v);                               \
		}                                                                                  \
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

void nrp_column_runs(enum nrp_column_type type, const void *values, const struct nrp_order *order,
		     struct nrp_value_runs *ret)
{
	const uint8_t *from = values;

	ret->nr = ret->rows = 0;
	for (uint32_t i = 0; i < order->nr_runs && ret->nr <= NRP_BLOCK_RUNS; i++) {
		const struct nrp_run *run = &order->run[i];

		FOR_TYPE(type, runs, (const void *)(from + run->from * nrp_type_size(type)), run->n,
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

/* ---- taking rows apart --------------------------------------------------------------- */

/*
 * COPY_type: a column of some rows in which nothing is NULL. MIX_type: some of it is NULL, and
 * those slots get the value before, at first @before. FILL_type: one value. Signs do not matter
 * here.
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
	static void fill_##type(type *to, uint32_t n, uint64_t value)                              \
	{                                                                                          \
		for (uint32_t i = 0; i < n; i++)                                                   \
			to[i] = (type)value;                                                       \
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

/* A column of runs becomes an array of all rows so far. */
static int make_whole(struct nrp_columns *columns, uint32_t c)
{
	size_t size = nrp_type_size(columns->desc->columns[c].type);
	const struct nrp_value_runs *runs = columns->runs[c];

	if (!columns->values[c])
		columns->values[c] = malloc(NRP_BLOCK_ROWS * size);
	if (!columns->values[c])
		return -ENOMEM;
	for (uint32_t i = 0; i < runs->nr && i < NRP_BLOCK_RUNS; i++) {
		uint32_t from = runs->from[i], to = columns->rows;

		if (from >= columns->rows)
			break; /* of the rows that were being added */
		if (i + 1 < runs->nr && i + 1 < NRP_BLOCK_RUNS && runs->from[i + 1] < to)
			to = runs->from[i + 1];
		FOR_SIZE(size, fill, (void *)((uint8_t *)columns->values[c] + from * size),
			 to - from, runs->value[i]);
	}
	columns->whole |= UINT64_C(1) << c;
	return 0;
}

/* Does the column fit into runs with some rows more? If not, it is an array without them. */
static int add_to_runs(struct nrp_columns *columns, uint32_t c, const uint8_t *const *rows,
		       uint32_t n, bool any_null)
{
	const struct nrp_column *desc = &columns->desc->columns[c];
	struct nrp_value_runs *runs = columns->runs[c];

	if (!runs)
		runs = columns->runs[c] = calloc(1, sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	runs->rows = columns->rows;
	FOR_TYPE(desc->type, collect, rows, desc->offset, n, columns->nulls + columns->rows, c,
		 any_null, runs);
	runs->from[0] = 0; /* NULL slots before the first value get that */
	return runs->nr > NRP_BLOCK_RUNS ? make_whole(columns, c) : 0;
}

static void add_to_array(struct nrp_columns *columns, uint32_t c, const uint8_t *const *rows,
			 uint32_t n, bool any_null)
{
	size_t offset = columns->desc->columns[c].offset;
	size_t size = nrp_type_size(columns->desc->columns[c].type);
	const uint64_t *nulls = columns->nulls + columns->rows;
	uint8_t *to = (uint8_t *)columns->values[c] + columns->rows * size;
	uint32_t known = 0;

	if (!any_null) {
		FOR_SIZE(size, copy, (void *)to, rows, offset, n);
		return;
	}
	while (nulls[known] >> c & 1)
		known++;
	FOR_SIZE(size, mix, (void *)to, rows, offset, n, nulls, c,
		 columns->rows ? to - size : rows[known] + offset);
}

/* A column that has a value in some of the rows. */
static int add_column(struct nrp_columns *columns, uint32_t c, const uint8_t *const *rows,
		      uint32_t n, bool any_null)
{
	int r = columns->whole >> c & 1 ? 0 : add_to_runs(columns, c, rows, n, any_null);

	if (r == 0 && (columns->whole >> c & 1))
		add_to_array(columns, c, rows, n, any_null);
	columns->present |= UINT64_C(1) << c;
	return r;
}

/* Slots from the last value to before @to repeat it. */
static void repeat_last(struct nrp_columns *columns, uint32_t c, uint32_t n)
{
	size_t size = nrp_type_size(columns->desc->columns[c].type);
	uint8_t *to = (uint8_t *)columns->values[c] + columns->rows * size;

	for (uint32_t i = 0; i < n; i++)
		memcpy(to + i * size, to - size, size);
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
		if (!(all >> c & 1)) {
			if (add_column(columns, c, rows, n, any >> c & 1) < 0)
				return -ENOMEM;
		} else if (columns->whole >> c & 1) {
			repeat_last(columns, c, n);
		}
	}
	columns->any_null |= any;
	columns->rows += n;
	return 0;
}

int nrp_columns_fill(struct nrp_columns *columns, uint32_t c)
{
	return columns->whole >> c & 1 ? 0 : make_whole(columns, c);
}

void nrp_columns_reset(struct nrp_columns *columns)
{
	columns->rows = 0;
	columns->present = 0;
	columns->any_null = 0;
	columns->whole = 0;
	for (size_t c = 0; c < NRP_BLOCK_MAX_COLUMNS; c++)
		if (columns->runs[c])
			columns->runs[c]->nr = 0;
}

void nrp_columns_clear(struct nrp_columns *columns)
{
	nrp_columns_reset(columns);
	for (size_t c = 0; c < NRP_BLOCK_MAX_COLUMNS; c++) {
		free(columns->values[c]);
		free(columns->runs[c]);
		columns->values[c] = NULL;
		columns->runs[c] = NULL;
	}
	free(columns->nulls);
	columns->nulls = NULL;
}

/* ---- order ---------------------------------------------------------------------------- */

void nrp_order_add(struct nrp_order *order, uint32_t row)
{
	struct nrp_run *last = order->run + order->nr_runs - 1;

	if (order->nr_runs && row == last->from + last->n)
		last->n++;
	else
		order->run[order->nr_runs++] = (struct nrp_run){ row, 1 };
}

void nrp_order_cut(struct nrp_order *order)
{
	uint32_t rows = 0, end = 0; /* of the runs so far: how many rows; behind the last of them */

	order->nr_cuts = 0;
	for (uint32_t i = 0; i < order->nr_runs; i++) {
		const struct nrp_run *run = &order->run[i];

		if (rows == end)
			order->cut[order->nr_cuts++] = (struct nrp_cut){ i, rows };
		rows += run->n;
		end = run->from + run->n > end ? run->from + run->n : end;
	}
}

/* The last cut that is not behind @row. */
static uint32_t cut_of(const struct nrp_order *order, uint32_t row)
{
	uint32_t low = 0, high = order->nr_cuts;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		*(order->cut[middle].row <= row ? &low : &high) = middle;
	}
	return low;
}

/* @value from @row of the order on, if it is another one. */
static void go_on(struct nrp_value_runs *ret, uint32_t row, uint64_t value)
{
	ret->rows = row;
	if (ret->nr <= NRP_BLOCK_RUNS && (!ret->nr || ret->value[ret->nr - 1] != value))
		add_run(ret, 0, value);
}

/* The rows from cut @k to the next, where @i is the run of the first of them. */
static void reorder(const struct nrp_value_runs *runs, uint32_t i, const struct nrp_order *order,
		    uint32_t k, struct nrp_value_runs *ret)
{
	uint32_t end = k + 1 < order->nr_cuts ? order->cut[k + 1].run : order->nr_runs;
	uint32_t row = order->cut[k].row, m = i;

	for (uint32_t s = order->cut[k].run; s < end; s++) {
		uint32_t from = order->run[s].from, left = order->run[s].n, n;

		while (m > i && runs->from[m] > from)
			m--;
		for (; left; left -= n, from += n, row += n) {
			while (m + 1 < runs->nr && runs->from[m + 1] <= from)
				m++;
			n = m + 1 < runs->nr && runs->from[m + 1] - from < left
				    ? runs->from[m + 1] - from
				    : left;
			go_on(ret, row, runs->value[m]);
		}
	}
}

/* Only where a run ends among rows that are out of order something changes. */
void nrp_columns_runs(const struct nrp_columns *columns, uint32_t c, const struct nrp_order *order,
		      struct nrp_value_runs *ret)
{
	const struct nrp_value_runs *runs = columns->runs[c];
	uint32_t i = 0;

	ret->nr = 0;
	while (i < runs->nr && ret->nr <= NRP_BLOCK_RUNS) {
		uint32_t k = cut_of(order, runs->from[i]), start = order->cut[k].row;
		uint32_t end = k + 1 < order->nr_cuts ? order->cut[k + 1].row : columns->rows;
		uint32_t next = i + 1 < runs->nr ? runs->from[i + 1] : columns->rows;

		if (runs->from[i] == start && next >= end) {
			go_on(ret, start, runs->value[i++]);
			continue;
		}
		reorder(runs, runs->from[i] > start ? i - 1 : i, order, k, ret);
		while (i < runs->nr && runs->from[i] < end)
			i++;
		/* the next ones are another run's end again, or all of the last run */
		if (end < columns->rows && (i == runs->nr || cut_of(order, runs->from[i]) > k + 1))
			go_on(ret, end, runs->value[i - 1]);
	}
	ret->rows = columns->rows;
}

/* ---- NULL words ------------------------------------------------------------------------ */

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
