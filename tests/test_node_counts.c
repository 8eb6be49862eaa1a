/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts by two nodes: small ones by hand, larger ones as SQL counts them. */
#include "store_util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_rows(struct nrp_store *store, int64_t capture_id, const struct nrp_hint_fault *rows,
		     uint32_t nr_rows)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_writer *writer;

	assert_ok(nrp_writer_new(&writer, store, capture_id, &err), &err);
	for (uint32_t i = 0; i < nr_rows; i++)
		assert_ok(nrp_writer_append(writer, NRP_HINT_FAULT, &rows[i], &err), &err);
	assert_ok(nrp_writer_flush(writer, &err), &err);
	nrp_writer_free(writer);
}

static struct nrp_store *new_store(int64_t *ret_capture)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	remove("n.db");
	store = util_open("n.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	*ret_capture = util_add_capture(store, "one", 1);
	return store;
}

static int count(struct nrp_store *store, int64_t capture, struct nrp_node_count **ret, size_t *n,
		 struct nrp_error *err)
{
	return nrp_store_count_by_nodes(store, capture, NRP_HINT_FAULT,
					NRP_COL(hint_fault, src_nid),
					NRP_COL(hint_fault, target_nid), ret, n, err);
}

static void nodes_none_and_null_are_counted_apart(void **state)
{
	static const struct nrp_hint_fault first[] = {
		{ .time = 1, .src_nid = 0, .target_nid = -1 },
		{ .time = 2, .src_nid = 0, .target_nid = 1023 },
		{ .time = 3, .null = NRP_BIT(hint_fault, src_nid), .target_nid = 2 },
		{ .time = 4, .src_nid = 0, .target_nid = -1 },
	};
	static const struct nrp_hint_fault second[] = {
		{ .time = 5,
		  .null = NRP_BIT(hint_fault, src_nid) | NRP_BIT(hint_fault, target_nid) },
		{ .time = 6, .null = NRP_BIT(hint_fault, src_nid), .target_nid = 2 },
	};
	static const struct nrp_node_count want[] = {
		{ NRP_NO_NODE, NRP_NO_NODE, 1 },
		{ NRP_NO_NODE, 2, 2 },
		{ 0, -1, 2 },
		{ 0, 1023, 1 },
	};
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_node_count *counts;
	int64_t capture;
	struct nrp_store *store = new_store(&capture);
	size_t n;

	(void)state;
	assert_ok(count(store, capture, &counts, &n, &err), &err);
	assert_int_equal(n, 0);
	free(counts);
	put_rows(store, capture, first, 4);
	put_rows(store, capture, second, 2);
	assert_ok(count(store, capture, &counts, &n, &err), &err);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(counts[i].first, want[i].first);
		assert_int_equal(counts[i].second, want[i].second);
		assert_int_equal(counts[i].rows, want[i].rows);
	}
	free(counts);
	nrp_store_close(store);
}

static void ids_that_no_host_has_are_damage(void **state)
{
	static const int16_t ids[] = { -2, -3, 1024, INT16_MAX, INT16_MIN };

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct nrp_hint_fault row = { .time = 1, .src_nid = 1, .target_nid = ids[i] };
		struct nrp_error err = NRP_ERROR_INIT;
		struct nrp_node_count *counts = NULL;
		int64_t capture;
		struct nrp_store *store = new_store(&capture);
		size_t n;

		put_rows(store, capture, &row, 1);
		assert_int_equal(count(store, capture, &counts, &n, &err), -EBADMSG);
		assert_int_equal(err.status, NRP_INPUT);
		assert_null(counts);
		nrp_store_close(store);
	}
}

static void the_counts_are_those_of_sql(void **state)
{
	enum { ROWS = 70000 };
	struct nrp_hint_fault *rows = calloc(ROWS, sizeof(*rows));
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_node_count *counts;
	int64_t capture;
	struct nrp_store *store = new_store(&capture);
	size_t n;

	(void)state;
	util_seed();
	assert_non_null(rows);
	for (uint32_t i = 0; i < ROWS; i++) {
		rows[i].time = i;
		rows[i].src_nid = (int16_t)util_below(i < ROWS / 2 ? 8 : 700);
		rows[i].target_nid = (int16_t)((int)util_below(5) - 1);
		rows[i].null = util_below(4) ? 0 : NRP_BIT(hint_fault, target_nid);
	}
	put_rows(store, capture, rows, ROWS);
	assert_ok(nrp_store_register_tables(store, &err), &err);
	assert_ok(count(store, capture, &counts, &n, &err), &err);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM (SELECT DISTINCT src_nid, "
					     "target_nid FROM hint_fault)"),
			 n);
	for (size_t i = 0; i < n; i += 1 + n / 40) {
		char sql[200], second[16] = "NULL";

		if (counts[i].second != NRP_NO_NODE)
			snprintf(second, sizeof(second), "%d", counts[i].second);
		snprintf(sql, sizeof(sql),
			 "SELECT count(*) FROM hint_fault WHERE src_nid = %d AND target_nid IS %s",
			 counts[i].first, second);
		assert_int_equal(util_integer(store, sql), counts[i].rows);
	}
	free(counts);
	free(rows);
	nrp_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_none_and_null_are_counted_apart),
		cmocka_unit_test(ids_that_no_host_has_are_damage),
		cmocka_unit_test(the_counts_are_those_of_sql),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
