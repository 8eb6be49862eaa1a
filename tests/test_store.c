/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are opened, refused, created and recovered; captures and what belongs to them. */
#include "store_util.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct nrp_store *open_store(const char *path, enum nrp_store_mode mode)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	assert_ok(nrp_store_open(&store, path, mode, &err), &err);
	return store;
}

static int64_t add_capture(struct nrp_store *store, const char *name, uint8_t number)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;

	util_capture(&capture, name, number);
	assert_ok(nrp_store_add_capture(store, &capture, &err), &err);
	return capture.id;
}

/* A committed file with captures of the given names, NULL at the end. */
static void make_file(const char *path, const char *const *names)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	uint8_t number = 0;

	unlink(path);
	store = open_store(path, NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	for (; *names; names++)
		add_capture(store, *names, ++number);
	assert_ok(nrp_store_commit(store, &err), &err);
	nrp_store_close(store);
}

static const char *const one[] = { "one", NULL };

/* Opening fails with this code, status input, the path, a remedy, and @what in the text. */
static void check_refused(const char *path, enum nrp_store_mode mode, int code, int64_t offset,
			  const char *what)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store = (void *)&err;
	int r = nrp_store_open(&store, path, mode, &err);

	if (r != code || err.code != code || !strstr(err.what, what))
		fail_msg("%s, mode %d: %d %s", path, mode, r, err.what);
	assert_ptr_equal(store, &err); /* untouched */
	assert_int_equal(err.status, NRP_INPUT);
	assert_string_equal(err.file, path);
	assert_int_equal(err.offset, offset);
	assert_true(err.remedy[0]);
	/* Without an error object the same code comes back. */
	assert_int_equal(nrp_store_open(&store, path, mode, NULL), code);
}

/* ---- descriptions ------------------------------------------------------------------- */

static void the_first_error_wins(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;

	(void)state;
	assert_int_equal(nrp_fail(NULL, NRP_INPUT, -EIO, "f", 0, NULL, "text"), -EIO);
	assert_int_equal(nrp_fail(&err, NRP_INPUT, -EIO, "f", 7, "do", "text %d", 1), -EIO);
	assert_int_equal(nrp_fail_nomem(&err), -ENOMEM);
	assert_int_equal(err.code, -EIO);
	assert_int_equal(err.status, NRP_INPUT);
	assert_int_equal(err.offset, 7);
	assert_string_equal(err.file, "f");
	assert_string_equal(err.what, "text 1");
	assert_string_equal(err.remedy, "do");
}

static void kinds_are_described_as_declared(void **state)
{
	const struct nrp_kind *fault = nrp_kind(NRP_HINT_FAULT);

	(void)state;
	assert_null(nrp_kind(NRP_NR_KINDS));
	assert_null(nrp_kind((enum nrp_record_kind) - 1));
	assert_string_equal(fault->name, "hint_fault");
	assert_int_equal(fault->row_size, sizeof(struct nrp_hint_fault));
	assert_string_equal(fault->columns[NRP_COL(hint_fault, mapcount)].name, "mapcount");
	assert_int_equal(fault->columns[NRP_COL(hint_fault, mapcount)].type, NRP_T_i32);
	assert_int_equal(fault->columns[NRP_COL(hint_fault, mapcount)].offset,
			 offsetof(struct nrp_hint_fault, mapcount));
	assert_string_equal(fault->columns[NRP_COL(hint_fault, time)].null, "-");

	for (int k = 0; k < NRP_NR_KINDS; k++) {
		const struct nrp_kind *kind = nrp_kind((enum nrp_record_kind)k);
		int tgid = -1;

		for (uint32_t c = 0; c < kind->nr_columns; c++) {
			if (strcmp(kind->columns[c].name, "tgid") == 0)
				tgid = (int)c;
			assert_true(kind->columns[c].offset < kind->row_size);
		}
		assert_int_equal(kind->tgid_column, tgid);
		for (int i = 0; i < 3; i++) {
			int c = kind->nid_columns[i];

			assert_true(c >= -1 && c < (int)kind->nr_columns);
			if (c >= 0)
				assert_non_null(strstr(kind->columns[c].name, "nid"));
		}
	}
}

static void host_facts_start_unknown(void **state)
{
	struct nrp_host_facts facts;

	(void)state;
	nrp_host_facts_init(&facts);
	assert_int_equal(facts.hz, -1);
	assert_int_equal(facts.scan_size_mb, -1);
	assert_int_equal(facts.moved_result, -1);
	assert_int_equal(nrp_host_cpu_nid(&facts, 0), -1);
	facts.nr_cpus = 2;
	facts.cpu_nid = calloc(2, sizeof(*facts.cpu_nid));
	assert_non_null(facts.cpu_nid);
	facts.cpu_nid[1] = 3;
	assert_int_equal(nrp_host_cpu_nid(&facts, 1), 3);
	assert_int_equal(nrp_host_cpu_nid(&facts, 2), -1);
	assert_int_equal(nrp_host_cpu_nid(&facts, -1), -1);
	nrp_host_facts_clear(&facts);
	assert_null(facts.cpu_nid);
	nrp_host_facts_clear(&facts);
	memset(&facts, 0, sizeof(facts));
	nrp_host_facts_clear(&facts);
}

/* ---- files -------------------------------------------------------------------------- */

static void create_leaves_no_file_without_a_commit(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	int64_t id;

	(void)state;
	unlink("new.db");
	nrp_store_close(open_store("new.db", NRP_STORE_CREATE));
	assert_int_equal(util_file_size("new.db"), -1);

	store = open_store("new.db", NRP_STORE_CREATE);
	/* Asking before the first transaction finds nothing, and is no error. */
	assert_ok(nrp_store_capture_by_name(store, "one", &id, &err), &err);
	assert_int_equal(id, 0);
	assert_int_equal(nrp_store_load_capture(store, NULL, NULL, &err), -ENODATA);
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_begin(store, &err), &err);
	add_capture(store, "one", 1);
	nrp_store_rollback(store);
	nrp_store_rollback(store);
	assert_ok(nrp_store_begin(store, &err), &err);
	add_capture(store, "one", 1);
	nrp_store_close(store); /* in the middle of a transaction */
	assert_int_equal(util_file_size("new.db"), -1);
	assert_int_equal(util_file_size("new.db-journal"), -1);

	/* A file that was there before stays, even an empty one. */
	util_write_file("new.db", "", 0);
	store = open_store("new.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	add_capture(store, "one", 1);
	nrp_store_close(store);
	assert_int_equal(util_file_size("new.db"), 0);
}

static void create_writes_a_file_that_can_be_read(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store;

	(void)state;
	make_file("a.db", one);
	assert_int_equal(util_file_size("a.db-journal"), -1);
	store = open_store("a.db", NRP_STORE_READ);
	assert_string_equal(nrp_store_path(store), "a.db");
	assert_int_equal(util_integer(store, "PRAGMA application_id"), NRP_APPLICATION_ID);
	assert_int_equal(util_integer(store, "PRAGMA user_version"), NRP_SCHEMA_VERSION);
	assert_ok(nrp_store_load_capture(store, NULL, &capture, &err), &err);
	assert_string_equal(capture.name, "one");
	assert_int_equal(capture.id, 1);
	nrp_capture_clear(&capture);
	nrp_store_close(store);

	/* CREATE on it adds to it; an empty file counts as absent. */
	store = open_store("a.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_int_equal(add_capture(store, "two", 2), 2);
	assert_ok(nrp_store_commit(store, &err), &err);
	nrp_store_close(store);
	util_write_file("empty.db", "", 0);
	store = open_store("empty.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_int_equal(add_capture(store, "two", 2), 1);
	assert_ok(nrp_store_commit(store, &err), &err);
	nrp_store_close(store);
	nrp_store_close(open_store("empty.db", NRP_STORE_WRITE));
}

static void files_that_are_no_database_are_refused(void **state)
{
	static const enum nrp_store_mode modes[] = { NRP_STORE_READ, NRP_STORE_WRITE,
						     NRP_STORE_CREATE };

	(void)state;
	mkdir("dir", 0700);
	mkfifo("fifo", 0600);
	util_write_file("text", "SQLite is what this is not, by far.\n", 36);
	util_write_file("short", "SQLite format 3\0and no more", 26);
	util_write_file("empty", "", 0);
	for (int i = 0; i < 3; i++) {
		check_refused("dir", modes[i], -EISDIR, -1, "is a directory");
		check_refused("fifo", modes[i], -EINVAL, -1, "is not a regular file");
		check_refused("text", modes[i], -EINVAL, 7, "is not a SQLite database");
		check_refused("short", modes[i], -EBADMSG, 26, "is truncated");
		check_refused("text/x", modes[i], -ENOTDIR, -1, "cannot be opened");
	}
	check_refused("empty", NRP_STORE_READ, -ENODATA, 0, "is empty");
	check_refused("empty", NRP_STORE_WRITE, -ENODATA, 0, "is empty");
	check_refused("absent", NRP_STORE_READ, -ENOENT, -1, "does not exist");
	check_refused("absent", NRP_STORE_WRITE, -ENOENT, -1, "does not exist");
	check_refused("absent/x", NRP_STORE_CREATE, -ENOENT, -1, "cannot be created");
	check_refused("", NRP_STORE_CREATE, -ENOENT, -1, "the file name is empty");
	assert_int_equal(util_file_size("absent"), -1);
	assert_int_equal(util_file_size("text"), 36);
	if (geteuid() == 0)
		return; /* root may read and write anything */
	make_file("locked.db", one);
	chmod("locked.db", 0400);
	check_refused("locked.db", NRP_STORE_WRITE, -EROFS, -1, "is not writable");
	chmod("locked.db", 0);
	check_refused("locked.db", NRP_STORE_READ, -EACCES, -1, "Permission denied");
}

/* Changes the file with plain SQLite. */
static void change_file(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void databases_of_others_and_of_other_versions_are_refused(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	(void)state;
	unlink("foreign.db");
	change_file("foreign.db", "CREATE TABLE capture (id INTEGER PRIMARY KEY)");
	check_refused("foreign.db", NRP_STORE_READ, -EINVAL, 68,
		      "is a SQLite database but not numareplay's");
	check_refused("foreign.db", NRP_STORE_CREATE, -EINVAL, 68, "but not numareplay's");

	make_file("newer.db", one);
	change_file("newer.db", "PRAGMA user_version = 7");
	check_refused("newer.db", NRP_STORE_READ, -ENOTSUP, 60, "has schema version 7");
	assert_int_equal(nrp_store_open(&store, "newer.db", NRP_STORE_WRITE, &err), -ENOTSUP);
	assert_string_equal(err.remedy, "use a newer numareplay");
	change_file("newer.db", "PRAGMA user_version = 0");
	check_refused("newer.db", NRP_STORE_READ, -EBADMSG, 60, "is damaged");
	change_file("newer.db", "PRAGMA user_version = -3");
	check_refused("newer.db", NRP_STORE_READ, -EBADMSG, 60, "is damaged");

	make_file("less.db", one);
	change_file("less.db", "DROP TABLE fidelity_rule");
	check_refused("less.db", NRP_STORE_READ, -EBADMSG, -1,
		      "its table fidelity_rule is missing");
}

static void writers_check_the_file_first(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	size_t size;
	char *data, *text;

	(void)state;
	make_file("check.db", one);
	store = open_store("check.db", NRP_STORE_WRITE);
	for (int i = 0; i < 300; i++) {
		char name[32];
		uint32_t id;

		snprintf(name, sizeof(name), "interned-name-%04d", i);
		assert_ok(nrp_store_intern(store, 1, name, &id, &err), &err);
	}
	nrp_store_close(store);
	/* The header of the page that the name is in: nobody reads it on opening. */
	data = util_read_file("check.db", &size);
	text = memmem(data, size, "interned-name-0150", 18);
	assert_non_null(text);
	memset(data + (text - data) / 4096 * 4096, 0xff, 8);
	util_write_file("check.db", data, size);
	free(data);
	nrp_store_close(open_store("check.db", NRP_STORE_READ)); /* readers need not mind */
	check_refused("check.db", NRP_STORE_WRITE, -EBADMSG, -1, "is damaged: ");
	check_refused("check.db", NRP_STORE_CREATE, -EBADMSG, -1, "is damaged: ");
}

static void names_with_a_meaning_to_sqlite_are_file_names(void **state)
{
	static const char *const names[] = { ":memory:", "file:x?mode=memory", "file:y" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		make_file(names[i], one);
		assert_true(util_file_size(names[i]) > 0);
		nrp_store_close(open_store(names[i], NRP_STORE_READ));
	}
}

/* ---- transactions ------------------------------------------------------------------- */

static void transactions_do_not_nest(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	(void)state;
	make_file("t.db", one);
	store = open_store("t.db", NRP_STORE_WRITE);
	assert_int_equal(nrp_store_commit(store, &err), -EINVAL);
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_int_equal(nrp_store_begin(store, &err), -EBUSY);
	assert_int_equal(err.status, NRP_INTERNAL);
	nrp_store_close(store);
}

static void a_reader_cannot_write(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	(void)state;
	make_file("r.db", one);
	store = open_store("r.db", NRP_STORE_READ);
	assert_int_equal(nrp_store_exec(store, "DELETE FROM capture", &err), -EROFS);
	assert_int_equal(err.status, NRP_INPUT);
	assert_string_equal(err.file, "r.db");
	assert_int_equal(util_integer(store, "SELECT count(*) FROM capture"), 1);
	nrp_store_close(store);
}

static void a_second_writer_is_told_to_close_the_first(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *first, *second;

	(void)state;
	make_file("busy.db", one);
	first = open_store("busy.db", NRP_STORE_WRITE);
	second = open_store("busy.db", NRP_STORE_WRITE);
	assert_ok(nrp_store_begin(first, &err), &err);
	assert_int_equal(nrp_store_begin(second, &err), -EBUSY);
	assert_int_equal(err.status, NRP_INPUT);
	assert_non_null(strstr(err.remedy, "close the other program"));
	nrp_store_close(first);
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_begin(second, &err), &err);
	nrp_store_close(second);
}

static void two_creators_of_one_file_share_it(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *first, *second;

	(void)state;
	unlink("both.db");
	first = open_store("both.db", NRP_STORE_CREATE);
	second = open_store("both.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(second, &err), &err);
	add_capture(second, "two", 2);
	assert_ok(nrp_store_commit(second, &err), &err);
	assert_ok(nrp_store_begin(first, &err), &err);
	add_capture(first, "one", 1);
	assert_ok(nrp_store_commit(first, &err), &err);
	nrp_store_close(first);
	assert_int_equal(util_integer(second, "SELECT count(*) FROM capture"), 2);
	nrp_store_close(second);

	/* The creator does not remove what the other one wrote. */
	unlink("both.db");
	first = open_store("both.db", NRP_STORE_CREATE);
	second = open_store("both.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(second, &err), &err);
	assert_ok(nrp_store_commit(second, &err), &err);
	nrp_store_close(first);
	nrp_store_close(second);
	nrp_store_close(open_store("both.db", NRP_STORE_READ));
}

static void a_full_disk_is_an_internal_error_and_keeps_the_old_state(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	int r;

	(void)state;
	make_file("full.db", one);
	store = open_store("full.db", NRP_STORE_WRITE);
	assert_ok(nrp_store_exec(store, "PRAGMA max_page_count = 60", &err), &err);
	assert_ok(nrp_store_begin(store, &err), &err);
	r = nrp_store_exec(store,
			   "INSERT INTO host_setting VALUES (1, 'x', "
			   "printf('%.*c', 1000000, 'x'))",
			   &err);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(err.status, NRP_INTERNAL);
	nrp_store_close(store);
	store = open_store("full.db", NRP_STORE_WRITE);
	assert_int_equal(util_integer(store, "SELECT count(*) FROM host_setting"), 0);
	nrp_store_close(store);
}

/* A child that is killed in a transaction of which parts have reached the file. */
static void kill_a_writer(const char *path, enum nrp_store_mode mode)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct nrp_store *store;
		struct nrp_capture capture;

		if (nrp_store_open(&store, path, mode, NULL) < 0 ||
		    nrp_store_exec(store, "PRAGMA cache_size = 10", NULL) < 0 ||
		    nrp_store_begin(store, NULL) < 0)
			_exit(1);
		util_capture(&capture, "killed", 9);
		if (nrp_store_add_capture(store, &capture, NULL) < 0 ||
		    nrp_store_exec(store, "UPDATE capture SET kernel = printf('%.*c', 3000, 'x')",
				   NULL) < 0 ||
		    nrp_store_exec(store,
				   "INSERT INTO host_setting VALUES (1, 'x', "
				   "printf('%.*c', 3000000, 'x'))",
				   NULL) < 0)
			_exit(2);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void a_killed_writer_leaves_the_old_state(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store;

	(void)state;
	make_file("kill.db", one);
	kill_a_writer("kill.db", NRP_STORE_WRITE);
	assert_true(util_file_size("kill.db-journal") > 0);
	assert_true(util_file_size("kill.db") > 1000000);
	store = open_store("kill.db", NRP_STORE_READ);
	assert_ok(nrp_store_load_capture(store, NULL, &capture, &err), &err);
	assert_string_equal(capture.name, "one");
	assert_string_equal(capture.facts.kernel, "");
	nrp_capture_clear(&capture);
	/* Although this reader had to restore the file, it is one. */
	assert_int_equal(nrp_store_exec(store, "DELETE FROM capture", &err), -EROFS);
	nrp_store_close(store);
	assert_int_equal(util_file_size("kill.db-journal"), -1);

	/* The same on a file that was being created: nothing is left, it can be created. */
	unlink("kill.db");
	kill_a_writer("kill.db", NRP_STORE_CREATE);
	assert_true(util_file_size("kill.db") > 1000000);
	check_refused("kill.db", NRP_STORE_READ, -ENODATA, 0, "is empty");
	kill_a_writer("kill.db", NRP_STORE_CREATE);
	store = open_store("kill.db", NRP_STORE_CREATE);
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_int_equal(add_capture(store, "one", 1), 1);
	assert_ok(nrp_store_commit(store, &err), &err);
	nrp_store_close(store);
}

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
	make_file("c.db", one);
	store = open_store("c.db", NRP_STORE_WRITE);
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
	make_file("dup.db", one);
	store = open_store("dup.db", NRP_STORE_WRITE);
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
	struct nrp_store *store = open_store(path, NRP_STORE_READ);
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
	make_file("none.db", none);
	check_not_loaded("none.db", NULL, NRP_INPUT, "holds no capture",
			 "import a trace into it first");
	make_file("several.db", several);
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

	store = open_store("several.db", NRP_STORE_READ);
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
	store = open_store("many.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	for (int i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "capture-%03d", i);
		add_capture(store, name, (uint8_t)(i + 1));
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
	make_file("del.db", two);
	store = open_store("del.db", NRP_STORE_WRITE);
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
	make_file("n.db", two);
	store = open_store("n.db", NRP_STORE_WRITE);
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
	make_file("v.db", one);
	store = open_store("v.db", NRP_STORE_WRITE);
	fill_tables(store, 1);
	add_capture(store, "two", 2);
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
	make_file("s.db", one);
	store = open_store("s.db", NRP_STORE_READ);
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
		cmocka_unit_test(the_first_error_wins),
		cmocka_unit_test(kinds_are_described_as_declared),
		cmocka_unit_test(host_facts_start_unknown),
		cmocka_unit_test(create_leaves_no_file_without_a_commit),
		cmocka_unit_test(create_writes_a_file_that_can_be_read),
		cmocka_unit_test(files_that_are_no_database_are_refused),
		cmocka_unit_test(databases_of_others_and_of_other_versions_are_refused),
		cmocka_unit_test(writers_check_the_file_first),
		cmocka_unit_test(names_with_a_meaning_to_sqlite_are_file_names),
		cmocka_unit_test(transactions_do_not_nest),
		cmocka_unit_test(a_reader_cannot_write),
		cmocka_unit_test(a_second_writer_is_told_to_close_the_first),
		cmocka_unit_test(two_creators_of_one_file_share_it),
		cmocka_unit_test(a_full_disk_is_an_internal_error_and_keeps_the_old_state),
		cmocka_unit_test(a_killed_writer_leaves_the_old_state),
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
