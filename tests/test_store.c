/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are opened, refused, created and recovered. */
#include "store_util.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
	nrp_store_close(util_open("new.db", NRP_STORE_CREATE));
	assert_int_equal(util_file_size("new.db"), -1);

	store = util_open("new.db", NRP_STORE_CREATE);
	/* Asking before the first transaction finds nothing, and is no error. */
	assert_ok(nrp_store_capture_by_name(store, "one", &id, &err), &err);
	assert_int_equal(id, 0);
	assert_int_equal(nrp_store_load_capture(store, NULL, NULL, &err), -ENODATA);
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_begin(store, &err), &err);
	util_add_capture(store, "one", 1);
	nrp_store_rollback(store);
	nrp_store_rollback(store);
	assert_ok(nrp_store_begin(store, &err), &err);
	util_add_capture(store, "one", 1);
	nrp_store_close(store); /* in the middle of a transaction */
	assert_int_equal(util_file_size("new.db"), -1);
	assert_int_equal(util_file_size("new.db-journal"), -1);

	/* A file that was there before stays, even an empty one. */
	util_write_file("new.db", "", 0);
	store = util_open("new.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	util_add_capture(store, "one", 1);
	nrp_store_close(store);
	assert_int_equal(util_file_size("new.db"), 0);
}

static void create_writes_a_file_that_can_be_read(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store;

	(void)state;
	util_make_store("a.db", one);
	assert_int_equal(util_file_size("a.db-journal"), -1);
	store = util_open("a.db", NRP_STORE_READ);
	assert_string_equal(nrp_store_path(store), "a.db");
	assert_int_equal(util_integer(store, "PRAGMA application_id"), NRP_APPLICATION_ID);
	assert_int_equal(util_integer(store, "PRAGMA user_version"), NRP_SCHEMA_VERSION);
	assert_ok(nrp_store_load_capture(store, NULL, &capture, &err), &err);
	assert_string_equal(capture.name, "one");
	assert_int_equal(capture.id, 1);
	nrp_capture_clear(&capture);
	nrp_store_close(store);

	/* CREATE on it adds to it; an empty file counts as absent. */
	store = util_open("a.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_int_equal(util_add_capture(store, "two", 2), 2);
	assert_ok(nrp_store_commit(store, &err), &err);
	nrp_store_close(store);
	util_write_file("empty.db", "", 0);
	store = util_open("empty.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_int_equal(util_add_capture(store, "two", 2), 1);
	assert_ok(nrp_store_commit(store, &err), &err);
	nrp_store_close(store);
	nrp_store_close(util_open("empty.db", NRP_STORE_WRITE));
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
	util_make_store("locked.db", one);
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

	util_make_store("newer.db", one);
	change_file("newer.db", "PRAGMA user_version = 7");
	check_refused("newer.db", NRP_STORE_READ, -ENOTSUP, 60, "has schema version 7");
	assert_int_equal(nrp_store_open(&store, "newer.db", NRP_STORE_WRITE, &err), -ENOTSUP);
	assert_string_equal(err.remedy, "use a newer numareplay");
	change_file("newer.db", "PRAGMA user_version = 0");
	check_refused("newer.db", NRP_STORE_READ, -EBADMSG, 60, "is damaged");
	change_file("newer.db", "PRAGMA user_version = -3");
	check_refused("newer.db", NRP_STORE_READ, -EBADMSG, 60, "is damaged");

	util_make_store("less.db", one);
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
	int64_t page;

	(void)state;
	util_make_store("check.db", one);
	store = util_open("check.db", NRP_STORE_WRITE);
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
	page = (text - data) / 4096 * 4096;
	memset(data + page, 0xff, 8);
	util_write_file("check.db", data, size);
	free(data);
	nrp_store_close(util_open("check.db", NRP_STORE_READ)); /* readers need not mind */
	check_refused("check.db", NRP_STORE_WRITE, -EBADMSG, page, "is damaged: ");
	check_refused("check.db", NRP_STORE_CREATE, -EBADMSG, page, "is damaged: ");
	/* Readers that meet it are told where it is, too. */
	store = util_open("check.db", NRP_STORE_READ);
	assert_int_equal(sqlite3_exec(nrp_store_db(store),
				      "SELECT sum(length(text)) FROM name NOT INDEXED;"
				      "SELECT sum(length(text)) FROM name "
				      "INDEXED BY sqlite_autoindex_name_1",
				      NULL, NULL, NULL),
			 SQLITE_CORRUPT);
	assert_int_equal(nrp_store_fail(store, &err, "read the names"), -EBADMSG);
	assert_int_equal(err.offset, page);
	nrp_store_close(store);
}

static void names_with_a_meaning_to_sqlite_are_file_names(void **state)
{
	static const char *const names[] = { ":memory:", "file:x?mode=memory", "file:y" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		util_make_store(names[i], one);
		assert_true(util_file_size(names[i]) > 0);
		nrp_store_close(util_open(names[i], NRP_STORE_READ));
	}
}

/* ---- transactions ------------------------------------------------------------------- */

static void transactions_do_not_nest(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	(void)state;
	util_make_store("t.db", one);
	store = util_open("t.db", NRP_STORE_WRITE);
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
	util_make_store("r.db", one);
	store = util_open("r.db", NRP_STORE_READ);
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
	util_make_store("busy.db", one);
	first = util_open("busy.db", NRP_STORE_WRITE);
	second = util_open("busy.db", NRP_STORE_WRITE);
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
	first = util_open("both.db", NRP_STORE_CREATE);
	second = util_open("both.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(second, &err), &err);
	util_add_capture(second, "two", 2);
	assert_ok(nrp_store_commit(second, &err), &err);
	assert_ok(nrp_store_begin(first, &err), &err);
	util_add_capture(first, "one", 1);
	assert_ok(nrp_store_commit(first, &err), &err);
	nrp_store_close(first);
	assert_int_equal(util_integer(second, "SELECT count(*) FROM capture"), 2);
	nrp_store_close(second);

	/* The creator does not remove what the other one wrote. */
	unlink("both.db");
	first = util_open("both.db", NRP_STORE_CREATE);
	second = util_open("both.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(second, &err), &err);
	assert_ok(nrp_store_commit(second, &err), &err);
	nrp_store_close(first);
	nrp_store_close(second);
	nrp_store_close(util_open("both.db", NRP_STORE_READ));
}

static void a_full_disk_is_an_internal_error_and_keeps_the_old_state(void **state)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;
	int r;

	(void)state;
	util_make_store("full.db", one);
	store = util_open("full.db", NRP_STORE_WRITE);
	assert_ok(nrp_store_exec(store, "PRAGMA max_page_count = 60", &err), &err);
	assert_ok(nrp_store_begin(store, &err), &err);
	r = nrp_store_exec(store,
			   "INSERT INTO host_setting VALUES (1, 'x', "
			   "printf('%.*c', 1000000, 'x'))",
			   &err);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(err.status, NRP_INTERNAL);
	nrp_store_close(store);
	store = util_open("full.db", NRP_STORE_WRITE);
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
	util_make_store("kill.db", one);
	kill_a_writer("kill.db", NRP_STORE_WRITE);
	assert_true(util_file_size("kill.db-journal") > 0);
	assert_true(util_file_size("kill.db") > 1000000);
	store = util_open("kill.db", NRP_STORE_READ);
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
	store = util_open("kill.db", NRP_STORE_CREATE);
	err = (struct nrp_error)NRP_ERROR_INIT;
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_int_equal(util_add_capture(store, "one", 1), 1);
	assert_ok(nrp_store_commit(store, &err), &err);
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
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
