/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of the store share: temporary files, random rows. */
#ifndef NRP_TESTS_STORE_UTIL_H
#define NRP_TESTS_STORE_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "numareplay/store.h"
#include "schema/block.h"

/* Fails the test with the text of @err if @call does not return 0. */
#define assert_ok(call, err)                                                                       \
	do {                                                                                       \
		int r_ = (call);                                                                   \
		if (r_ != 0)                                                                       \
			fail_msg("%s: %d: %s: %s", #call, r_, (err)->what, (err)->remedy);         \
	} while (0)

/* Group setup and teardown: a directory of its own, which is the working directory meanwhile. */
int util_enter_dir(void **state);
int util_leave_dir(void **state);

/* Seed of the property tests: NRP_TEST_SEED, else of the clock; printed. */
void util_seed(void);
uint64_t util_random(void);
/* 0 .. limit - 1 */
uint64_t util_below(uint64_t limit);

/* File helpers; they fail the test if the file system does. */
void util_write_file(const char *path, const void *data, size_t size);
void *util_read_file(const char *path, size_t *ret_size);
int64_t util_file_size(const char *path); /* -1: absent */

/* A capture with this name, a hash made of @number, and nothing else known. */
void util_capture(struct nrp_capture *capture, const char *name, uint8_t number);

/* Opens a store, adds a capture to an open transaction; both fail the test if they cannot. */
struct nrp_store *util_open(const char *path, enum nrp_store_mode mode);
int64_t util_add_capture(struct nrp_store *store, const char *name, uint8_t number);
/* A committed file with captures of the given names, NULL at the end. */
void util_make_store(const char *path, const char *const *names);

/* First column of the only row. */
int64_t util_integer(struct nrp_store *store, const char *sql);

/*
 * Fills @rows with @nr_rows random rows of a kind, a fresh pattern for each column: constants, few
 * values, any values, the extremes of the type, with or without NULLs. Times are sorted up to a
 * jitter of @jitter ns around a step of 100 ns from @start.
 */
void util_random_rows(enum nrp_record_kind kind, void *rows, uint32_t nr_rows, uint64_t start,
		      uint64_t jitter);
/* Value of a column, sign-extended. */
uint64_t util_value(const struct nrp_column *column, const void *row);
/* Sorts rows by time, stably: what a cursor must return. */
void util_sort_rows(enum nrp_record_kind kind, void *rows, uint32_t nr_rows);
/* Are the columns of @mask the same, NULLs included? Fails the test if not. */
void util_assert_row(enum nrp_record_kind kind, const void *got, const void *expected,
		     uint64_t mask, uint32_t index);

/* A new file with one capture, in an open transaction. */
struct nrp_store *util_new_store(const char *path, struct nrp_capture *capture);
/* Zeroed rows; the caller frees. */
void *util_alloc_rows(enum nrp_record_kind kind, uint32_t nr_rows);
void util_write_rows(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		     const void *rows, uint32_t nr_rows);

/* Gives @columns (zeroed, with its desc) all rows. */
void util_columns(struct nrp_columns *columns, const void *rows, uint32_t nr_rows);
/* All rows as they come; valid until the next call. */
const struct nrp_order *util_order(uint32_t nr_rows);

#endif
