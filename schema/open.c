/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening and closing the file, with a clear answer for everything that is not one of ours. */
#include "schema/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The SQLite header: https://www.sqlite.org/fileformat2.html#the_database_header */
#define HEADER_SIZE 100
#define HEADER_OFFSET_PAGE_SIZE 16
#define HEADER_OFFSET_CHANGES 24
#define HEADER_OFFSET_PAGES 28
#define HEADER_OFFSET_VALID_FOR 92

#define BUSY_TIMEOUT_MS 1000

static const char not_ours_remedy[] = NRP_REMEDY_NOT_OURS;
static const char damaged_remedy[] = NRP_REMEDY_DAMAGED;

/* Fails with what sqlite3_open_v2() or the system said. */
static int fail_open(struct nrp_store *store, struct nrp_error *err)
{
	int error = store->db ? sqlite3_system_errno(store->db) : 0;

	if (!store->db)
		return nrp_fail_nomem(err);
	if (error == EACCES || error == EPERM)
		return nrp_fail(err, NRP_INPUT, -error, store->path, -1,
				"check the permissions of the file and its directory",
				"cannot be opened: %s", strerror(error));
	if (error)
		return nrp_fail(err, NRP_INPUT, -error, store->path, -1, "check the path",
				"cannot be opened: %s", strerror(error));
	return nrp_store_fail(store, err, "open it");
}

/*
 * SQLite would take "file:..." for a URI, ":memory:" for no file at all and "" for a temporary
 * one; a path that starts with "/" or "./" is always a path.
 */
static int connect_db(struct nrp_store *store, int flags, struct nrp_error *err)
{
	char *path;
	int r;

	if (asprintf(&path, "%s%s", store->path[0] == '/' ? "" : "./", store->path) < 0)
		return nrp_fail_nomem(err);
	r = sqlite3_open_v2(path, &store->db, flags, NULL);
	free(path);
	if (r != SQLITE_OK)
		return fail_open(store, err);

	sqlite3_extended_result_codes(store->db, 1);
	sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
	/* The file may come from anybody: its schema must not be able to do harm. */
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL); /* we have none */
	if (sqlite3_exec(store->db, "PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON", NULL,
			 NULL, NULL) != SQLITE_OK)
		return nrp_store_fail(store, err, "open it");
	return 0;
}

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Is there a rollback journal? Then the file's bytes mean nothing before SQLite has seen it. */
static bool has_journal(const struct nrp_store *store)
{
	struct stat st;
	char *path;
	bool found;

	if (asprintf(&path, "%s-journal", store->path) < 0)
		return false;
	found = stat(path, &st) == 0 && st.st_size > 0;
	free(path);
	return found;
}

/*
 * SQLite's own handle on the file, for looking at bytes: closing a descriptor of ours would drop
 * the locks that other connections of this process hold on the file (POSIX locks are like that).
 */
static int raw_file(struct nrp_store *store, sqlite3_file **ret, int64_t *ret_size,
		    struct nrp_error *err)
{
	sqlite3_file *file = NULL;
	sqlite3_int64 size = 0;

	sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (!file || !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK)
		return nrp_fail(err, NRP_INPUT, -EIO, store->path, -1, "check the disk",
				"cannot be read");
	*ret = file;
	*ret_size = size;
	return 0;
}

/* Looks at the first bytes, where SQLite's own messages would be vague. */
static int check_header(const struct nrp_store *store, sqlite3_file *file, int64_t size,
			struct nrp_error *err)
{
	static const char magic[16] = "SQLite format 3";
	unsigned char header[HEADER_SIZE] = { 0 };
	uint64_t page_size, expected;
	int r = file->pMethods->xRead(file, header, HEADER_SIZE, 0);

	/* A short read leaves zeros behind it; what is there is looked at first. */
	if (r != SQLITE_OK && r != SQLITE_IOERR_SHORT_READ)
		return nrp_fail(err, NRP_INPUT, -EIO, store->path, 0, "check the disk",
				"cannot be read");
	for (int64_t i = 0; i < (int64_t)sizeof(magic) && i < size; i++) {
		if (header[i] != (unsigned char)magic[i])
			return nrp_fail(err, NRP_INPUT, -EINVAL, store->path, i, not_ours_remedy,
					"is not a SQLite database");
	}
	if (size < HEADER_SIZE)
		return nrp_fail(err, NRP_INPUT, -EBADMSG, store->path, size, damaged_remedy,
				"is truncated inside its header of %d bytes", HEADER_SIZE);

	/* The page count holds only if the last writer kept it (every SQLite since 2010). */
	if (be32(header + HEADER_OFFSET_CHANGES) != be32(header + HEADER_OFFSET_VALID_FOR))
		return 0;
	page_size = (uint64_t)header[HEADER_OFFSET_PAGE_SIZE] << 8 |
		    header[HEADER_OFFSET_PAGE_SIZE + 1];
	expected = be32(header + HEADER_OFFSET_PAGES) * (page_size == 1 ? 65536 : page_size);
	if (expected > (uint64_t)size)
		return nrp_fail(err, NRP_INPUT, -EBADMSG, store->path, size, damaged_remedy,
				"is truncated: it has %lld of %llu bytes", (long long)size,
				(unsigned long long)expected);
	return 0;
}

static int check_tables(sqlite3 *db, const char *path, struct nrp_error *err)
{
	static const char *const tables[] = {
		"capture", "host_node", "host_cpu",      "host_setting", "name",
		"counter", "block",     "replay",        "lane_metric",  "decision",
		"note",    "fidelity",  "fidelity_rule",
	};
	sqlite3_stmt *stmt = NULL;
	int r = nrp_db_prepare(db, path,
			       "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
			       &stmt, err);

	for (size_t i = 0; r == 0 && i < sizeof(tables) / sizeof(tables[0]); i++) {
		int step;

		sqlite3_bind_text(stmt, 1, tables[i], -1, SQLITE_STATIC);
		step = sqlite3_step(stmt);
		if (step == SQLITE_DONE)
			r = nrp_fail(err, NRP_INPUT, -EBADMSG, path, -1, damaged_remedy,
				     "its table %s is missing", tables[i]);
		else if (step != SQLITE_ROW)
			r = nrp_db_fail(db, path, err, "read its tables");
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	return r;
}

/*
 * Tables and views with the names of ours would be read instead of them: the record kinds, which
 * are no tables of the file, and the ranges, which files of earlier versions lack.
 */
static int check_names(sqlite3 *db, const char *path, struct nrp_error *err)
{
	static const char sql[] = "SELECT name FROM sqlite_schema WHERE "
				  "lower(name) = ?1 AND (?1 <> 'block_range' OR type <> 'table')";
	sqlite3_stmt *stmt = NULL;
	int r = nrp_db_prepare(db, path, sql, &stmt, err);

	for (int i = 0; r == 0 && i < NRP_NR_KINDS + 2; i++) {
		const struct nrp_kind *kind = nrp_kind((enum nrp_record_kind)i);
		const char *name = kind                ? kind->name
				   : i == NRP_NR_KINDS ? "column_doc"
						       : "block_range";
		int step;

		sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
		step = sqlite3_step(stmt);
		if (step == SQLITE_ROW)
			r = nrp_fail(err, NRP_INPUT, -EBADMSG, path, -1,
				     "drop it, or copy the file again",
				     "has a table or view %s that numareplay did not make", name);
		else if (step != SQLITE_DONE)
			r = nrp_db_fail(db, path, err, "read its tables");
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	return r;
}

int nrp_db_check_identity(sqlite3 *db, const char *path, struct nrp_error *err)
{
	int r = nrp_db_check_version(db, path, err);

	if (r == 0)
		r = check_tables(db, path, err);
	return r < 0 ? r : check_names(db, path, err);
}

/* First access: takes the shared lock, rolls back what a killed writer left, parses the schema. */
static int first_read(struct nrp_store *store, struct nrp_error *err)
{
	int64_t objects;

	return nrp_db_integer(store->db, store->path, "SELECT count(*) FROM sqlite_schema",
			      &objects, err);
}

/*
 * A reader meets the journal of a writer that was killed: only a connection that may write can
 * restore the old state, so this one may, once; afterwards it reads only.
 */
static int recover(struct nrp_store *store, struct nrp_error *err)
{
	int r;

	sqlite3_close(store->db);
	store->db = NULL;
	r = connect_db(store, SQLITE_OPEN_READWRITE, err);
	if (r < 0)
		return r;
	if (sqlite3_db_readonly(store->db, "main") == 1)
		return nrp_fail(err, NRP_INPUT, -EROFS, store->path, -1,
				"make the file and its directory writable once",
				"an interrupted import has to be rolled back first");
	r = first_read(store, err);
	if (r == 0)
		r = nrp_store_exec(store, "PRAGMA query_only = ON", err);
	return r;
}

/* The file is there, perhaps empty; for CREATE that counts as absent. */
static int open_file(struct nrp_store *store, struct nrp_error *err)
{
	bool reader = store->mode == NRP_STORE_READ;
	sqlite3_file *file = NULL;
	int64_t size = 0;
	int r;

	r = connect_db(store, reader ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, err);
	if (r < 0)
		return r;
	if (!reader && sqlite3_db_readonly(store->db, "main") == 1)
		return nrp_fail(err, NRP_INPUT, -EROFS, store->path, -1,
				"make the file writable, or work on a copy", "is not writable");
	if (has_journal(store) && first_read(store, NULL) < 0) {
		if (sqlite3_extended_errcode(store->db) != SQLITE_READONLY_ROLLBACK)
			return nrp_store_fail(store, err, "read the file");
		r = recover(store, err);
		if (r < 0)
			return r;
	}

	r = raw_file(store, &file, &size, err);
	if (r < 0)
		return r;
	if (size == 0 && store->mode == NRP_STORE_CREATE) {
		store->needs_schema = true;
		return 0;
	}
	if (size == 0)
		return nrp_fail(err, NRP_INPUT, -ENODATA, store->path, 0,
				"import a trace into it first", "is empty");
	r = check_header(store, file, size, err);
	if (r == 0)
		r = first_read(store, err);
	if (r == 0)
		r = nrp_db_check_identity(store->db, store->path, err);
	/* Writing into a damaged database makes it worse, so that writers look first. */
	if (r == 0 && !reader)
		r = nrp_db_check_pages(store->db, store->path, err);
	return r;
}

/* Makes the file if it is absent; remembers that it did. */
static int create_file(struct nrp_store *store, struct nrp_error *err)
{
	struct stat st;
	int fd = open(store->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return nrp_fail(err, NRP_INPUT, -errno, store->path, -1,
				"check that the directory exists and is writable",
				"cannot be created: %s", strerror(errno));
	if (fstat(fd, &st) == 0) {
		store->created = true;
		store->dev = st.st_dev;
		store->ino = st.st_ino;
	}
	close(fd);
	return 0;
}

/* Finds the file, or makes it; says what is there if that is not a file. */
static int find_file(struct nrp_store *store, struct nrp_error *err)
{
	struct stat st;

	if (!store->path[0])
		return nrp_fail(err, NRP_INPUT, -ENOENT, NULL, -1, "name a database file",
				"the file name is empty");
	if (stat(store->path, &st) < 0) {
		if (errno == ENOENT && store->mode == NRP_STORE_CREATE)
			return create_file(store, err);
		if (errno == ENOENT)
			return nrp_fail(err, NRP_INPUT, -ENOENT, store->path, -1, "check the path",
					"does not exist");
		return nrp_fail(err, NRP_INPUT, -errno, store->path, -1, "check the path",
				"cannot be opened: %s", strerror(errno));
	}
	if (S_ISDIR(st.st_mode))
		return nrp_fail(err, NRP_INPUT, -EISDIR, store->path, -1,
				"name a database file inside it", "is a directory");
	if (!S_ISREG(st.st_mode))
		return nrp_fail(err, NRP_INPUT, -EINVAL, store->path, -1, "name a database file",
				"is not a regular file");
	return 0;
}

int nrp_store_open(struct nrp_store **ret, const char *path, enum nrp_store_mode mode,
		   struct nrp_error *err)
{
	struct nrp_store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return nrp_fail_nomem(err);
	store->mode = mode;
	store->path = strdup(path);
	r = store->path ? find_file(store, err) : nrp_fail_nomem(err);
	if (r == 0)
		r = open_file(store, err);
	/* A rollback journal is the mode that leaves nothing but the one file behind. */
	if (r == 0 && mode != NRP_STORE_READ)
		r = nrp_store_exec(store, "PRAGMA journal_mode = DELETE", err);
	if (r < 0) {
		nrp_store_close(store);
		return r;
	}
	*ret = store;
	return 0;
}

/* Only the file that this store made, and only while it is still empty. */
static void remove_created(const struct nrp_store *store)
{
	struct stat st;

	if (stat(store->path, &st) == 0 && st.st_dev == store->dev && st.st_ino == store->ino &&
	    st.st_size == 0)
		unlink(store->path);
}

struct nrp_store *nrp_store_close(struct nrp_store *store)
{
	if (!store)
		return NULL;
	if (store->db) {
		nrp_store_rollback(store);
		sqlite3_finalize(store->name_find);
		sqlite3_finalize(store->name_add);
		sqlite3_close_v2(store->db);
	}
	if (store->created && !store->committed)
		remove_created(store);
	free(store->path);
	free(store);
	return NULL;
}
