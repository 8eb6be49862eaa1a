/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures and what belongs to them; the schema's own conventions. */
#include "store_util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const one[] = { "one", NULL };

/* ---- captures ----------------------------------------------------------------------- */

/* Every member differs from every other and from its unknown value. */
static void fill_capture(struct nrp_capture *capture)
{
	util_capture(capture, "full", 3);
	capture->hash[31] = 4;
	capture->first_time = 5;
	capture->last_time = UINT64_MAX - 1;
	capture->events = UINT64_C(1) << 63;
	capture->lost_events = 6;
	capture->loss_gaps = 7;
	capture->probe_misses = 8;
	capture->unjoined_events = 9;
	capture->other_events = 10;
	snprintf(capture->facts.kernel, sizeof(capture->facts.kernel), "Linux host 6.12");
	snprintf(capture->facts.clock, sizeof(capture->facts.clock), "global");
	capture->facts.hz = 250;
	capture->facts.page_size = 4096;
	capture->facts.huge_pages = 512;
	capture->facts.cpupid_shift = 30;
	capture->facts.cpupid_bits = 21;
	capture->facts.nid_shift = 54;
	capture->facts.balancing = 1;
	capture->facts.scan_delay_ms = 1000;
	capture->facts.scan_period_min_ms = 1001;
	capture->facts.scan_period_max_ms = 60000;
	capture->facts.scan_size_mb = 256;
	capture->facts.moved_result = 0;
	capture->facts.nr_cpus = 3;
	capture->facts.nr_nodes = 2;
	capture->facts.cpu_nid = calloc(3, sizeof(*capture->facts.cpu_nid));
	capture->facts.node_memkb = calloc(2, sizeof(*capture->facts.node_memkb));
	assert_non_null(capture->facts.cpu_nid);
	assert_non_null(capture->facts.node_memkb);
	capture->facts.cpu_nid[0] = 1;
	capture->facts.cpu_nid[1] = -1;
	capture->facts.node_memkb[0] = 1 << 20;
	capture->facts.node_memkb[1] = -1;
	capture->facts.has_prepare_step = true;
	capture->facts.has_fault_probe = true;
}

static void assert_captures_equal(const struct nrp_capture *a, const struct nrp_capture *b)
{
	struct nrp_capture x = *a, y = *b;

	assert_int_equal(x.facts.nr_cpus, y.facts.nr_cpus);
	assert_memory_equal(x.facts.cpu_nid, y.facts.cpu_nid,
			    (size_t)x.facts.nr_cpus * sizeof(*x.facts.cpu_nid));
	assert_int_equal(x.facts.nr_nodes, y.facts.nr_nodes);
	assert_memory_equal(x.facts.node_memkb, y.facts.node_memkb,
			    (size_t)x.facts.nr_nodes * sizeof(*x.facts.node_memkb));
	assert_string_equal(x.name, y.name);
	assert_string_equal(x.source, y.source);
	assert_memory_equal(x.hash, y.hash, sizeof(x.hash));
	assert_memory_equal(&x.first_time, &y.first_time,
			    offsetof(struct nrp_capture, facts) -
				    offsetof(struct nrp_capture, first_time));
	assert_string_equal(x.facts.kernel, y.facts.kernel);
	assert_string_equal(x.facts.clock, y.facts.clock);
	assert_memory_equal(&x.facts.hz, &y.facts.hz,
			    offsetof(struct nrp_host_facts, nr_cpus) -
				    offsetof(struct nrp_host_facts, hz));
	assert_int_equal(x.facts.topology_inferred, y.facts.topology_inferred);
	assert_int_equal(x.facts.has_ratelimit_event, y.facts.has_ratelimit_event);
	assert_int_equal(x.facts.has_prepare_step, y.facts.has_prepare_step);
	assert_int_equal(x.facts.has_thp_function, y.facts.has_thp_function);
	assert_int_equal(x.facts.has_task_fault, y.facts.has_task_fault);
	assert_int_equal(x.facts.has_fault_probe, y.facts.has_fault_probe);
}

static void a_capture_comes_back_as_it_was_stored(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture, loaded;
	struct nrp_store *store;

	(void)state;
	util_make_store("c.db", one);
	store = util_open("c.db", NRP_STORE_WRITE);
	fill_capture(&capture);
	assert_ok(nrp_store_add_capture(store, &capture, &err), &err);
	assert_int_equal(capture.id, 2);
	assert_ok(nrp_store_load_capture(store, "full", &loaded, &err), &err);
	assert_int_equal(loaded.id, 2);
	assert_captures_equal(&capture, &loaded);
	nrp_capture_clear(&loaded);

	/* The capture of which nothing is known holds NULLs, and comes back unknown. */
	assert_int_equal(
		util_integer(store,
			     "SELECT count(*) FROM capture WHERE id = 1 AND "
			     "kernel IS NULL AND clock IS NULL AND hz IS NULL AND moved_result IS "
			     "NULL AND "
			     "balancing IS NULL AND probe_misses = 0 AND scan_size_mb IS NULL AND "
			     "host_id IS NULL AND cohort IS NULL AND probe_set IS NULL"),
		1);
	assert_ok(nrp_store_load_capture(store, "one", &loaded, &err), &err);
	assert_int_equal(loaded.facts.hz, -1);
	assert_int_equal(loaded.facts.balancing, -1);
	assert_string_equal(loaded.facts.kernel, "");
	nrp_capture_clear(&loaded);

	/* An update replaces all of it, the topology too. */
	capture.probe_misses = -1;
	capture.events = 11;
	capture.facts.nr_cpus = 1;
	capture.facts.cpu_nid[0] = 0;
	capture.facts.has_task_fault = true;
	assert_ok(nrp_store_update_capture(store, &capture, &err), &err);
	assert_ok(nrp_store_load_capture(store, "2", &loaded, &err), &err);
	assert_captures_equal(&capture, &loaded);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM host_cpu WHERE capture_id = 2"),
			 1);
	nrp_capture_clear(&loaded);
	capture.id = 44;
	assert_int_equal(nrp_store_update_capture(store, &capture, &err), -ENOENT);
	nrp_capture_clear(&capture);
	nrp_store_close(store);
}

static void a_capture_is_stored_once(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store;
	int64_t id = 99;

	(void)state;
	util_make_store("dup.db", one);
	store = util_open("dup.db", NRP_STORE_WRITE);
	util_capture(&capture, "other name", 1);
	assert_ok(nrp_store_capture_by_hash(store, capture.hash, &id, &err), &err);
	assert_int_equal(id, 1);
	assert_int_equal(nrp_store_add_capture(store, &capture, &err), -EEXIST);
	assert_int_equal(err.status, NRP_USAGE);
	assert_non_null(strstr(err.remedy, "--force"));

	util_capture(&capture, "one", 7);
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_capture_by_hash(store, capture.hash, &id, &err), &err);
	assert_int_equal(id, 0);
	assert_int_equal(nrp_store_add_capture(store, &capture, &err), -EEXIST);
	assert_non_null(strstr(err.remedy, "--name"));

	/* Captures whose bytes are not known are never the same. */
	util_capture(&capture, "sim 1", 0);
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_add_capture(store, &capture, &err), &err);
	util_capture(&capture, "sim 2", 0);
	assert_ok(nrp_store_add_capture(store, &capture, &err), &err);
	assert_ok(nrp_store_capture_by_hash(store, capture.hash, &id, &err), &err);
	assert_int_equal(id, 0);
	nrp_store_close(store);
}

/* Loading fails like this. */
static void check_not_loaded(const char *path, const char *which, enum nrp_status status,
			     const char *what, const char *remedy)
{
	struct nrp_store *store = util_open(path, NRP_STORE_READ);
	struct nrp_error err = NRP_ERROR_INIT;

	assert_true(nrp_store_load_capture(store, which, NULL, &err) < 0);
	assert_int_equal(err.status, status);
	assert_string_equal(err.what, what);
	assert_string_equal(err.remedy, remedy);
	nrp_store_close(store);
}

static void the_capture_meant_is_found(void **state)
{
	static const char *const none[] = { NULL };
	static const char *const several[] = { "alpha", "beta", "1", NULL };
	static const struct {
		const char *which;
		int64_t id;
	} found[] = {
		{ "alpha", 1 }, { "beta", 2 }, { "2", 2 },
		{ "3", 3 },     { "002", 2 },  { "1", 3 }, /* a name before a number */
	};
	struct nrp_store *store;

	(void)state;
	util_make_store("none.db", none);
	check_not_loaded("none.db", NULL, NRP_INPUT, "holds no capture",
			 "import a trace into it first");
	util_make_store("several.db", several);
	check_not_loaded("several.db", NULL, NRP_USAGE, "holds several captures: alpha, beta, 1",
			 "choose one with --capture");
	check_not_loaded("several.db", "gamma", NRP_USAGE,
			 "has no capture gamma; it holds: alpha, beta, 1",
			 "choose one with --capture");
	check_not_loaded("several.db", "4", NRP_USAGE, "has no capture 4; it holds: alpha, beta, 1",
			 "choose one with --capture");
	check_not_loaded("several.db", "99999999999999999999", NRP_USAGE,
			 "has no capture 99999999999999999999; it holds: alpha, beta, 1",
			 "choose one with --capture");
	check_not_loaded("several.db", "", NRP_USAGE, "has no capture ; it holds: alpha, beta, 1",
			 "choose one with --capture");

	store = util_open("several.db", NRP_STORE_READ);
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		struct nrp_error err = NRP_ERROR_INIT;
		struct nrp_capture capture;

		assert_ok(nrp_store_load_capture(store, found[i].which, &capture, &err), &err);
		assert_int_equal(capture.id, found[i].id);
		nrp_capture_clear(&capture);
	}
	nrp_store_close(store);
}

static void a_long_list_of_captures_is_cut(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	(void)state;
	unlink("many.db");
	store = util_open("many.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	for (int i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "capture-%03d", i);
		util_add_capture(store, name, (uint8_t)(i + 1));
	}
	assert_int_equal(nrp_store_load_capture(store, NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.what, "capture-000, capture-001, "));
	assert_string_equal(err.what + strlen(err.what) - 3, "...");
	nrp_store_close(store);
}

/* One row in every table that belongs to a capture or a replay of it. */
static void fill_tables(struct nrp_store *store, int id)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lock lock = { .time = 1 };
	struct nrp_writer *writer;
	char *sql = sqlite3_mprintf(
		"INSERT INTO host_cpu VALUES (%d, 9, 0); INSERT INTO host_node VALUES (%d, 9, 5);"
		"INSERT INTO host_setting VALUES (%d, 'a', 'b');"
		"INSERT INTO name (capture_id, text) VALUES (%d, 'x');"
		"INSERT INTO counter VALUES (%d, 'numa_hit', 0, 1);"
		"INSERT INTO replay VALUES (%d, %d, 'key%d', 'host', 'linux-6.12', '{}', '{}');"
		"INSERT INTO lane_metric VALUES (NULL, %d, 'migrated_pages', 'pages', 3, 3, 3, "
		"'exact', 1, 1, NULL, 2, 'bounded', 1, 2, 1, NULL, 'bounded', 1);"
		"INSERT INTO decision VALUES (NULL, %d, 0, 1, 2, 3, 4, 5, 6, 7, 'scan.vma', 0, 1, "
		"1, 'rule');"
		"INSERT INTO note VALUES (NULL, %d, %d, 'code', 'text', '{}');"
		"INSERT INTO note VALUES (NULL, NULL, %d, 'code', 'text', NULL);"
		"INSERT INTO fidelity VALUES (%d, 'scan.vma', 'P3', 1, 4, 3, 1, 0);"
		"INSERT INTO fidelity_rule VALUES (%d, 'scan.vma', 'r', 4, 3);",
		id, id, id, id, id, id, id, id, id, id, id, id, id, id, id);

	assert_non_null(sql);
	assert_ok(nrp_store_exec(store, sql, &err), &err);
	sqlite3_free(sql);
	assert_ok(nrp_writer_new(&writer, store, id, &err), &err);
	assert_ok(nrp_writer_append(writer, NRP_LOCK, &lock, &err), &err);
	assert_ok(nrp_writer_append(writer, NRP_LOCK, &lock, &err), &err);
	assert_ok(nrp_writer_flush(writer, &err), &err);
	nrp_writer_free(writer);
}

static void deleting_a_capture_deletes_all_that_belongs_to_it(void **state)
{
	static const char *const two[] = { "one", "two", NULL };
	static const char *const tables[] = {
		"capture", "host_cpu", "host_node",     "host_setting", "name",
		"counter", "block",    "replay",        "lane_metric",  "decision",
		"note",    "fidelity", "fidelity_rule",
	};
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	(void)state;
	util_make_store("del.db", two);
	store = util_open("del.db", NRP_STORE_WRITE);
	fill_tables(store, 1);
	fill_tables(store, 2);
	assert_ok(nrp_store_delete_capture(store, 1, &err), &err);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char sql[64];

		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[i]);
		/* The other capture's rows stay. */
		assert_int_equal(util_integer(store, sql), strcmp(tables[i], "note") ? 1 : 2);
	}
	assert_ok(nrp_store_exec(store, "DELETE FROM replay", &err), &err);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM lane_metric"), 0);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM decision"), 0);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM note"), 1);
	assert_int_equal(nrp_store_delete_capture(store, 1, &err), -ENOENT);
	assert_int_equal(err.status, NRP_USAGE);
	nrp_store_close(store);
}

static void names_counters_and_settings(void **state)
{
	static const char *const two[] = { "one", "two", NULL };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	uint32_t a, b, again, other;
	int64_t delta = 77;
	char *value = NULL;

	(void)state;
	util_make_store("n.db", two);
	store = util_open("n.db", NRP_STORE_WRITE);
	assert_ok(nrp_store_intern(store, 1, "kworker", &a, &err), &err);
	assert_ok(nrp_store_intern(store, 1, "bash", &b, &err), &err);
	assert_ok(nrp_store_intern(store, 1, "kworker", &again, &err), &err);
	assert_ok(nrp_store_intern(store, 2, "kworker", &other, &err), &err);
	assert_int_equal(a, 1);
	assert_int_equal(again, a);
	assert_true(b != a && other != a && other != b);
	assert_true(nrp_store_intern(store, 55, "x", &a, &err) < 0); /* no such capture */

	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_put_counter(store, 1, "pgfault", 0, 100, &err), &err);
	assert_int_equal(nrp_store_counter_delta(store, 1, "pgfault", &delta), -ENOENT);
	assert_int_equal(delta, 77);
	assert_ok(nrp_store_put_counter(store, 1, "pgfault", 1, 90, &err), &err);
	assert_ok(nrp_store_put_counter(store, 1, "pgfault", 1, 150, &err), &err);
	assert_int_equal(nrp_store_counter_delta(store, 1, "pgfault", &delta), 0);
	assert_int_equal(delta, 50);
	assert_int_equal(nrp_store_counter_delta(store, 2, "pgfault", &delta), -ENOENT);
	assert_true(nrp_store_put_counter(store, 1, "pgfault", 2, 1, &err) < 0);

	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_int_equal(nrp_store_get_setting(store, 1, "thp", &value, &err), -ENOENT);
	assert_int_equal(err.status, NRP_DONE);
	assert_null(value);
	assert_ok(nrp_store_put_setting(store, 1, "thp", "always", &err), &err);
	assert_ok(nrp_store_put_setting(store, 1, "thp", "madvise", &err), &err);
	assert_ok(nrp_store_get_setting(store, 1, "thp", &value, &err), &err);
	assert_string_equal(value, "madvise");
	free(value);
	nrp_store_close(store);
}

/* ---- schema ------------------------------------------------------------------------- */

static void the_views_show_captures_and_metrics(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	(void)state;
	util_make_store("v.db", one);
	store = util_open("v.db", NRP_STORE_WRITE);
	fill_tables(store, 1);
	util_add_capture(store, "two", 2);
	assert_int_equal(util_integer(store, "SELECT \"lock\" FROM report_capture "
					     "WHERE name = 'one' AND hint_fault = 0"),
			 2);
	assert_int_equal(util_integer(store, "SELECT \"lock\" FROM report_capture "
					     "WHERE name = 'two'"),
			 0);
	assert_int_equal(util_integer(store, "SELECT new_upper FROM report_metrics WHERE "
					     "capture = 'one' AND metric = 'migrated_pages' AND "
					     "new_lower IS NULL AND avoided_value = 2"),
			 2);
	/* Each kind has its column, and counts its own rows. */
	for (int k = 0; k < NRP_NR_KINDS; k++) {
		char *sql = sqlite3_mprintf(
			"INSERT INTO block (capture_id, kind, rows, time_min, time_max, codec, "
			"checksum, raw_size, data) VALUES (2, %d, %d, 0, 0, 1, 0, 0, x'')",
			k, k + 100);
		char query[128];

		assert_non_null(sql);
		assert_ok(nrp_store_exec(store, sql, &err), &err);
		sqlite3_free(sql);
		snprintf(query, sizeof(query), "SELECT \"%s\" FROM report_capture WHERE id = 2",
			 nrp_kind((enum nrp_record_kind)k)->name);
		assert_int_equal(util_integer(store, query), k + 100);
	}
	nrp_store_close(store);
}

static void the_schema_keeps_its_conventions(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	sqlite3_stmt *stmt;
	int columns = 0;

	(void)state;
	util_make_store("s.db", one);
	store = util_open("s.db", NRP_STORE_READ);
	assert_int_equal(util_integer(store,
				      "SELECT count(*) FROM pragma_table_list WHERE "
				      "type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%'"),
			 0);
	assert_int_equal(
		util_integer(
			store,
			"SELECT count(*) FROM sqlite_schema s "
			"JOIN pragma_foreign_key_list(s.name) f WHERE f.on_delete <> 'CASCADE'"),
		0);
	/* Every column has a comment on its line. */
	stmt = nrp_store_prepare(store,
				 "SELECT s.sql, c.name FROM sqlite_schema s "
				 "JOIN pragma_table_info(s.name) c WHERE s.type = 'table'",
				 &err);
	assert_non_null(stmt);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		const char *sql = (const char *)sqlite3_column_text(stmt, 0);
		const char *name = (const char *)sqlite3_column_text(stmt, 1);
		char start[64];
		const char *line;

		columns++;
		snprintf(start, sizeof(start), "\n\t%s ", name);
		line = strstr(sql, start);
		assert_non_null(line);
		line++;
		if (!memmem(line, strcspn(line, "\n"), " -- ", 4))
			fail_msg("column %s has no comment in %s", name, sql);
	}
	assert_true(columns > 100);
	sqlite3_finalize(stmt);
	nrp_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_capture_comes_back_as_it_was_stored),
		cmocka_unit_test(a_capture_is_stored_once),
		cmocka_unit_test(the_capture_meant_is_found),
		cmocka_unit_test(a_long_list_of_captures_is_cut),
		cmocka_unit_test(deleting_a_capture_deletes_all_that_belongs_to_it),
		cmocka_unit_test(names_counters_and_settings),
		cmocka_unit_test(the_views_show_captures_and_metrics),
		cmocka_unit_test(the_schema_keeps_its_conventions),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
