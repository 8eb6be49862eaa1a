/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which blocks the SQL tables read: no more than they must, and never one too few. */
#include "store_util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 8
#define BLOCK_ROWS 50

static void put_block(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		      const void *rows, uint32_t nr_rows)
{
	const struct nrp_kind *desc = nrp_kind(kind);
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_writer *writer;

	assert_ok(nrp_writer_new(&writer, store, capture_id, &err), &err);
	for (uint32_t i = 0; i < nr_rows; i++)
		assert_ok(nrp_writer_append(writer, kind,
					    (const uint8_t *)rows + i * desc->row_size, &err),
			  &err);
	assert_ok(nrp_writer_flush(writer, &err), &err);
	nrp_writer_free(writer);
}

/* A new store with one capture, in an open transaction, and its SQL tables. */
static struct nrp_store *new_store(int64_t *ret_capture)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	remove("p.db");
	store = util_open("p.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	*ret_capture = util_add_capture(store, "one", 1);
	assert_ok(nrp_store_register_tables(store, &err), &err);
	return store;
}

/* Block @i has times from 1000 i, tgid and nodes @i, a VMA of its own; the last block lacks them.
 */
static void put_hint_faults(struct nrp_store *store, int64_t capture)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct nrp_hint_fault rows[BLOCK_ROWS] = { 0 };

		for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
			rows[k].time = 1000 * i + k;
			rows[k].tgid = (int32_t)(100 + i);
			rows[k].src_nid = (int16_t)i;
			rows[k].this_nid = 1;
			rows[k].target_nid = (int16_t)i;
			rows[k].vma = UINT64_C(0xffff888000000000) + i * 64;
			rows[k].vm_start = UINT64_C(0x7f0000000000) + i * 0x10000;
			if (i == BLOCKS - 1)
				rows[k].null =
					NRP_BIT(hint_fault, tgid) | NRP_BIT(hint_fault, src_nid) |
					NRP_BIT(hint_fault, vma) | NRP_BIT(hint_fault, vm_start);
		}
		put_block(store, capture, NRP_HINT_FAULT, rows, BLOCK_ROWS);
	}
}

/* The query has @nr_rows rows, of @blocks blocks. */
static void check(struct nrp_store *store, const char *where, int64_t nr_rows, int64_t blocks)
{
	int64_t before = util_integer(store, "SELECT nrp_blocks_read()"), read;
	int64_t left = util_integer(store, "SELECT nrp_blocks_left_out()"), rows;
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM hint_fault WHERE %s", where);
	rows = util_integer(store, sql);
	read = util_integer(store, "SELECT nrp_blocks_read()") - before;
	left = util_integer(store, "SELECT nrp_blocks_left_out()") - left;
	if (rows != nr_rows || read != blocks || read + left != BLOCKS)
		fail_msg("%s: %lld rows of %lld blocks, %lld left out", where, (long long)rows,
			 (long long)read, (long long)left);
}

static void comparisons_read_the_blocks_they_need(void **state)
{
	int64_t capture;
	struct nrp_store *store = new_store(&capture);
	struct nrp_error err = NRP_ERROR_INIT;

	(void)state;
	put_hint_faults(store, capture);
	check(store, "1", 400, 8);
	check(store, "time BETWEEN 2010 AND 3009", 50, 2);
	check(store, "time >= 2010 AND time < 9999 AND time <= 3009", 50, 2);
	check(store, "tgid = 103", 50, 1);
	check(store, "tgid IN (103, 104)", 100, 2);
	check(store, "tgid IN (101, 104)", 100, 4);
	check(store, "tgid IN (101, NULL)", 50, 1);
	check(store, "tgid < 102", 100, 2);
	check(store, "src_nid = 5", 50, 1);
	check(store, "src_nid = 5 AND tgid = 105", 50, 1);
	check(store, "src_nid = 5 AND this_nid = 1", 50, 1);
	check(store, "src_nid > 5 AND this_nid = 1", 50, 1);
	check(store, "this_nid <> 1", 0, 8);
	check(store, "vm_start = 0x7f0000020000", 50, 1);
	check(store, "vm_start >= 0x7f0000020000 AND vm_start < 0x7f0000040000", 100, 2);
	check(store, "vma = 0xffff888000000040", 50, 1);
	check(store, "vma = 0xffff888000000040 AND time < 500", 0, 0);
	check(store, "vma > 0xffff888000000100", 100, 2);
	check(store, "tgid IS NULL", 50, 8);
	check(store, "mm = 0", 400, 8);
	/* A block that is not like its range: a column that the file says nothing about. */
	assert_ok(nrp_store_exec(store, "DELETE FROM block_range WHERE block_id = 3", &err), &err);
	check(store, "vm_start = 0x7f0000020000", 50, 1);
	check(store, "vm_start = 0x7f0000010000", 50, 2);
	/* A file of an earlier version: times, tgids and nodes only. */
	assert_ok(nrp_store_exec(store, "DROP TABLE block_range", &err), &err);
	check(store, "tgid = 103", 50, 1);
	/* The range is that of source, accessing and target node together: from 1 on. */
	check(store, "src_nid = 5", 50, 3);
	check(store, "vm_start = 0x7f0000020000", 50, 8);
	nrp_store_close(store);
}

/* SQLite joins the scans of an OR by it. */
static void a_row_has_one_number(void **state)
{
	int64_t capture;
	struct nrp_store *store = new_store(&capture);

	(void)state;
	put_hint_faults(store, capture);
	assert_int_equal(util_integer(store, "SELECT count(DISTINCT rowid) FROM hint_fault"), 400);
	assert_int_equal(util_integer(store,
				      "SELECT count(*) FROM (SELECT rowid AS n, time FROM "
				      "hint_fault) a JOIN (SELECT rowid AS n, time FROM hint_fault "
				      "WHERE time >= 2010 AND tgid > 101) b USING (n) WHERE a.time "
				      "= b.time"),
			 240);
	assert_int_equal(util_integer(store,
				      "SELECT count(*) FROM (SELECT rowid AS n, time FROM "
				      "hint_fault) a JOIN (SELECT rowid AS n, time FROM hint_fault "
				      "WHERE time >= 2010 AND tgid > 101) b USING (n) WHERE a.time "
				      "<> b.time"),
			 0);
	nrp_store_close(store);
}

/* Random rows of every kind, @BLOCKS blocks each. */
static void put_random(struct nrp_store *store, int64_t capture)
{
	for (int kind = 0; kind < NRP_NR_KINDS; kind++) {
		const struct nrp_kind *desc = nrp_kind((enum nrp_record_kind)kind);

		for (uint32_t i = 0; i < BLOCKS; i++) {
			void *rows = calloc(BLOCK_ROWS, desc->row_size);

			assert_non_null(rows);
			util_random_rows((enum nrp_record_kind)kind, rows, BLOCK_ROWS, 5000 * i,
					 500);
			put_block(store, capture, (enum nrp_record_kind)kind, rows, BLOCK_ROWS);
			free(rows);
		}
	}
}

/* Wraps around like the values of unsigned columns. */
static int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* A comparison of a random column with a value that occurs in it, for the table, and the
 * same hidden from it by a plus. */
static void random_terms(char *pushed, char *hidden, size_t size, struct nrp_store *store,
			 const struct nrp_kind *desc)
{
	static const char *const ops[] = { "=", "<", "<=", ">", ">=", "BETWEEN", "IN" };
	const char *op = ops[util_below(sizeof(ops) / sizeof(ops[0]))];
	const char *column = desc->columns[util_below(desc->nr_columns)].name;
	char value[128], sql[128], values[300];
	int64_t a, b;

	snprintf(sql, sizeof(sql),
		 "SELECT coalesce(max(\"%s\"), 7) FROM %s WHERE rowid %% 17 = %llu", column,
		 desc->name, (unsigned long long)util_below(17));
	a = util_integer(store, sql);
	b = util_below(2) ? a : plus(a, (int64_t)util_below(1000) - 500);
	snprintf(value, sizeof(value), "%s%lld%s",
		 a == INT64_MIN ? "-9223372036854775808 + 0 * " : "",
		 (long long)(a == INT64_MIN ? 0 : a), util_below(8) ? "" : ".0");
	if (!strcmp(op, "BETWEEN"))
		snprintf(values, sizeof(values), "%lld AND %lld", (long long)plus(a < b ? a : b, 1),
			 (long long)(a < b ? b : a));
	else if (!strcmp(op, "IN"))
		snprintf(values, sizeof(values), "(%lld, %s, NULL, %d)", (long long)plus(b, 1),
			 value, 3);
	else
		snprintf(values, sizeof(values), "%s", value);
	snprintf(pushed, size, "\"%s\" %s %s", column, op, values);
	snprintf(hidden, size, "+\"%s\" %s %s", column, op, values);
}

static void what_is_handed_down_changes_no_result(void **state)
{
	int64_t capture;
	struct nrp_store *store = new_store(&capture);

	(void)state;
	util_seed();
	put_random(store, capture);
	for (int i = 0; i < 1500; i++) {
		const struct nrp_kind *desc =
			nrp_kind((enum nrp_record_kind)util_below(NRP_NR_KINDS));
		char pushed[2][512], hidden[2][512], sql[3000];

		random_terms(pushed[0], hidden[0], sizeof(pushed[0]), store, desc);
		random_terms(pushed[1], hidden[1], sizeof(pushed[1]), store, desc);
		snprintf(sql, sizeof(sql),
			 "SELECT (SELECT count(*) FROM %s WHERE %s AND %s) - "
			 "(SELECT count(*) FROM %s WHERE %s AND %s)",
			 desc->name, pushed[0], pushed[1], desc->name, hidden[0], hidden[1]);
		if (util_integer(store, sql) != 0)
			fail_msg("%s", sql);
	}
	nrp_store_close(store);
}

static void every_column_is_described(void **state)
{
	int64_t capture;
	struct nrp_store *store = new_store(&capture);

	(void)state;
	assert_int_equal(util_integer(store, "SELECT count(DISTINCT kind) FROM column_doc"),
			 NRP_NR_KINDS);
	/* The table's own columns, but for capture_id, are the ones described, in this order. */
	assert_int_equal(util_integer(store,
				      "SELECT count(*) FROM pragma_table_info('scan_range') t "
				      "LEFT JOIN column_doc d ON d.kind = 'scan_range' AND "
				      "d.name = t.name AND d.number = t.cid - 1 "
				      "WHERE d.name IS NULL AND t.name <> 'capture_id'"),
			 0);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM column_doc WHERE "
					     "kind = 'hint_fault' AND name = 'end_delay' AND "
					     "unit = 'ns after time' AND type = 'u64' AND "
					     "null_means = 'no task_fault'"),
			 1);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM column_doc WHERE "
					     "kind = 'scan_pass' AND name = 'scan_period' AND "
					     "unit = 'ms' AND type = 'u32' AND "
					     "source = 'scan_begin.scan_period'"),
			 1);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM column_doc WHERE "
					     "unit = '' OR source = '' OR null_means = ''"),
			 0);
	nrp_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comparisons_read_the_blocks_they_need),
		cmocka_unit_test(a_row_has_one_number),
		cmocka_unit_test(what_is_handed_down_changes_no_result),
		cmocka_unit_test(every_column_is_described),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
