/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store_util.h"
#include "test_random.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static uint64_t random_state = 1;

int util_enter_dir(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/nrp-test-XXXXXX");
	if (!mkdtemp(directory) || chdir(directory) < 0)
		return -1;
	return 0;
}

int util_leave_dir(void **state)
{
	struct dirent *entry;
	DIR *dir = opendir(".");

	(void)state;
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    unlink(entry->d_name) < 0)
			rmdir(entry->d_name);
	}
	closedir(dir);
	return chdir("/") < 0 || rmdir(directory) < 0 ? -1 : 0;
}

void util_seed(void)
{
	random_state = random_seed("rows");
}

uint64_t util_random(void)
{
	return random_next(&random_state);
}

uint64_t util_below(uint64_t limit)
{
	return random_range(&random_state, 0, limit - 1);
}

void util_write_file(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

void *util_read_file(const char *path, size_t *ret_size)
{
	size_t size = (size_t)util_file_size(path);
	FILE *f = fopen(path, "rb");
	void *data = malloc(size + 1);

	assert_non_null(f);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, size, f), size);
	fclose(f);
	*ret_size = size;
	return data;
}

int64_t util_file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : (int64_t)st.st_size;
}

void util_capture(struct nrp_capture *capture, const char *name, uint8_t number)
{
	*capture = (struct nrp_capture){ .source = "trace.dat" };
	nrp_host_facts_init(&capture->facts);
	snprintf(capture->name, sizeof(capture->name), "%s", name);
	memset(capture->hash, number, sizeof(capture->hash));
}

int64_t util_integer(struct nrp_store *store, const char *sql)
{
	struct nrp_error err = NRP_ERROR_INIT;
	sqlite3_stmt *stmt = nrp_store_prepare(store, sql, &err);
	int64_t value;

	if (!stmt)
		fail_msg("%s: %s", sql, err.what);
	if (sqlite3_step(stmt) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(nrp_store_db(store)));
	value = sqlite3_column_int64(stmt, 0);
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	sqlite3_finalize(stmt);
	return value;
}

/* ---- rows --------------------------------------------------------------------------- */

static size_t type_size(enum nrp_column_type type)
{
	static const size_t sizes[] = { 1, 2, 4, 8, 1, 2, 4, 8 };

	return sizes[type];
}

static void set_value(const struct nrp_column *column, void *row, uint64_t value)
{
	uint8_t *p = (uint8_t *)row + column->offset;

	for (size_t i = 0; i < type_size(column->type); i++)
		p[i] = (uint8_t)(value >> (8 * i)); /* the tests run on little-endian machines */
}

uint64_t util_value(const struct nrp_column *column, const void *row)
{
	const uint8_t *p = (const uint8_t *)row + column->offset;
	size_t size = type_size(column->type);
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)p[i] << (8 * i);
	if (column->type >= NRP_T_i8 && size < 8 && (value >> (8 * size - 1) & 1))
		value |= ~UINT64_C(0) << (8 * size);
	return value;
}

/* One value of a column whose rows follow the pattern number @pattern. */
static uint64_t pattern_value(unsigned int pattern, uint64_t base, uint32_t row)
{
	static const uint64_t extremes[] = {
		0,    1,    ~UINT64_C(0), INT64_MAX, (uint64_t)INT64_MIN, INT32_MAX, 0x80000000u,
		0x7f, 0x80, 0x7fff,       0x8000,
	};

	switch (pattern) {
	case 0:
		return base;
	case 1:
		return util_random();
	case 2:
		return extremes[util_below(sizeof(extremes) / sizeof(extremes[0]))];
	case 3: /* narrow, about zero */
		return util_below(200) - 100;
	case 4: /* few wide values: a dictionary of 1, 255, 256, 257 or more */
		return (util_below(base % 300 + 1) + 1) * UINT64_C(0x123456789abcd);
	case 5: /* rising */
		return base + (uint64_t)row * 4096 + util_below(3);
	case 6: /* falling */
		return base - (uint64_t)row * 8;
	default: /* runs */
		return base + row / 1000;
	}
}
#define NR_PATTERNS 8

void util_random_rows(enum nrp_record_kind kind, void *rows, uint32_t nr_rows, uint64_t start,
		      uint64_t jitter)
{
	const struct nrp_kind *desc = nrp_kind(kind);

	memset(rows, 0, (size_t)nr_rows * desc->row_size);
	for (uint32_t c = 0; c < desc->nr_columns; c++) {
		unsigned int pattern = (unsigned int)util_below(NR_PATTERNS);
		/* Out of 16: never, rarely, half, always NULL. */
		static const uint8_t null_share[] = { 0, 0, 1, 8, 15, 16 };
		uint64_t nulls = null_share[util_below(sizeof(null_share))];
		uint64_t base = util_random();
		uint8_t *row = rows;

		for (uint32_t i = 0; i < nr_rows; i++, row += desc->row_size) {
			uint64_t *null = (uint64_t *)(void *)row;

			if (c == 0)
				set_value(&desc->columns[0], row,
					  start + (uint64_t)i * 100 +
						  (jitter ? util_below(jitter) : 0));
			else if (util_below(16) < nulls)
				*null |= UINT64_C(1) << c;
			else
				set_value(&desc->columns[c], row, pattern_value(pattern, base, i));
		}
	}
}

struct sort_entry {
	uint64_t time;
	uint32_t index;
};

static int compare_entries(const void *a, const void *b)
{
	const struct sort_entry *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

void util_sort_rows(enum nrp_record_kind kind, void *rows, uint32_t nr_rows)
{
	const struct nrp_kind *desc = nrp_kind(kind);
	struct sort_entry *entries = malloc(nr_rows * sizeof(*entries));
	uint8_t *copy = malloc((size_t)nr_rows * desc->row_size);

	assert_non_null(entries);
	assert_non_null(copy);
	memcpy(copy, rows, (size_t)nr_rows * desc->row_size);
	for (uint32_t i = 0; i < nr_rows; i++) {
		entries[i].time = util_value(&desc->columns[0], copy + (size_t)i * desc->row_size);
		entries[i].index = i;
	}
	qsort(entries, nr_rows, sizeof(*entries), compare_entries);
	for (uint32_t i = 0; i < nr_rows; i++)
		memcpy((uint8_t *)rows + (size_t)i * desc->row_size,
		       copy + (size_t)entries[i].index * desc->row_size, desc->row_size);
	free(copy);
	free(entries);
}

void util_assert_row(enum nrp_record_kind kind, const void *got, const void *expected,
		     uint64_t mask, uint32_t index)
{
	const struct nrp_kind *desc = nrp_kind(kind);
	uint64_t got_null = *(const uint64_t *)got;
	uint64_t expected_null = *(const uint64_t *)expected;

	for (uint32_t c = 0; c < desc->nr_columns; c++) {
		const struct nrp_column *column = &desc->columns[c];

		if (!(mask >> c & 1))
			continue;
		if ((got_null ^ expected_null) >> c & 1)
			fail_msg("%s row %u column %s: NULL differs", desc->name, index,
				 column->name);
		/* A NULL reads as 0, and the rows of util_random_rows() hold 0 there. */
		if (util_value(column, got) != util_value(column, expected))
			fail_msg("%s row %u column %s: %llx instead of %llx", desc->name, index,
				 column->name, (unsigned long long)util_value(column, got),
				 (unsigned long long)util_value(column, expected));
	}
}

struct nrp_store *util_open(const char *path, enum nrp_store_mode mode)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	assert_ok(nrp_store_open(&store, path, mode, &err), &err);
	return store;
}

int64_t util_add_capture(struct nrp_store *store, const char *name, uint8_t number)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;

	util_capture(&capture, name, number);
	assert_ok(nrp_store_add_capture(store, &capture, &err), &err);
	return capture.id;
}

/* A committed file with captures of the given names, NULL at the end. */
void util_make_store(const char *path, const char *const *names)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	uint8_t number = 0;

	unlink(path);
	store = util_open(path, NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	for (; *names; names++)
		util_add_capture(store, *names, ++number);
	assert_ok(nrp_store_commit(store, &err), &err);
	nrp_store_close(store);
}

void util_columns(struct nrp_columns *columns, const void *rows, uint32_t nr_rows)
{
	for (uint32_t i = 0; i < nr_rows; i++) {
		const uint8_t *row = (const uint8_t *)rows + i * columns->desc->row_size;

		assert_int_equal(nrp_columns_add(columns, &row, 1), 0);
	}
}

const struct nrp_order *util_order(uint32_t nr_rows)
{
	static struct nrp_order order;

	order.nr_runs = 1;
	order.run[0] = (struct nrp_run){ 0, nr_rows };
	nrp_order_cut(&order);
	return &order;
}

/* ---- records in a file --------------------------------------------------------------- */

struct nrp_store *util_new_store(const char *path, struct nrp_capture *capture)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	unlink(path);
	assert_ok(nrp_store_open(&store, path, NRP_STORE_CREATE, &err), &err);
	assert_ok(nrp_store_begin(store, &err), &err);
	util_capture(capture, "first", 1);
	assert_ok(nrp_store_add_capture(store, capture, &err), &err);
	return store;
}

void util_write_rows(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		     const void *rows, uint32_t nr_rows)
{
	struct nrp_error err = NRP_ERROR_INIT;
	size_t row_size = nrp_kind(kind)->row_size;
	struct nrp_writer *writer;

	assert_ok(nrp_writer_new(&writer, store, capture_id, &err), &err);
	for (uint32_t i = 0; i < nr_rows; i++)
		assert_ok(
			nrp_writer_append(writer, kind, (const uint8_t *)rows + i * row_size, &err),
			&err);
	assert_ok(nrp_writer_flush(writer, &err), &err);
	nrp_writer_free(writer);
}

void *util_alloc_rows(enum nrp_record_kind kind, uint32_t nr_rows)
{
	void *rows = calloc(nr_rows, nrp_kind(kind)->row_size);

	assert_non_null(rows);
	return rows;
}
