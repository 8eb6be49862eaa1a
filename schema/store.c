/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection: errors, statements, transactions. Opening is in open.c. */
#include "schema/internal.h"

#include <errno.h>
#include <stdio.h>

#define BUSY_REMEDY "close the other program that uses the file, then try again"
#define DAMAGED_REMEDY "copy the file again, or import the trace again"

/* What a SQLite result code means for the user. */
static const struct {
	int result; /* primary result code */
	enum nrp_status status;
	int code;
	const char *remedy;
} meanings[] = {
	{ SQLITE_NOMEM, NRP_INTERNAL, -ENOMEM, NULL },
	{ SQLITE_FULL, NRP_INTERNAL, -ENOSPC, "free some space, then try again" },
	{ SQLITE_IOERR, NRP_INTERNAL, -EIO, "check the disk and its free space" },
	{ SQLITE_INTERRUPT, NRP_INTERNAL, -EINTR, NULL },
	{ SQLITE_CONSTRAINT, NRP_INTERNAL, -EEXIST, NULL },
	{ SQLITE_MISUSE, NRP_INTERNAL, -EINVAL, NULL },
	{ SQLITE_RANGE, NRP_INTERNAL, -EINVAL, NULL },
	{ SQLITE_CORRUPT, NRP_INPUT, -EBADMSG, DAMAGED_REMEDY },
	{ SQLITE_NOTADB, NRP_INPUT, -EBADMSG, DAMAGED_REMEDY },
	{ SQLITE_TOOBIG, NRP_INPUT, -EBADMSG, DAMAGED_REMEDY }, /* nothing that we write is */
	{ SQLITE_DONE, NRP_INPUT, -EBADMSG, DAMAGED_REMEDY }, /* a row that must be there is not */
	{ SQLITE_BUSY, NRP_INPUT, -EBUSY, BUSY_REMEDY },
	{ SQLITE_LOCKED, NRP_INPUT, -EBUSY, BUSY_REMEDY },
	{ SQLITE_READONLY, NRP_INPUT, -EROFS, "make the file and its directory writable" },
	{ SQLITE_CANTOPEN, NRP_INPUT, -EACCES, "check the permissions of file and directory" },
	{ SQLITE_PERM, NRP_INPUT, -EACCES, "check the permissions of file and directory" },
	{ SQLITE_AUTH, NRP_INPUT, -EACCES, NULL },
	/* Our own statements fit our schema: where one does not, the file's schema is another. */
	{ SQLITE_ERROR, NRP_INPUT, -EBADMSG, NULL },
};

int nrp_db_fail(sqlite3 *db, const char *path, struct nrp_error *err, const char *doing)
{
	int result = sqlite3_errcode(db) & 0xff;
	const char *text = sqlite3_errmsg(db);

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].result != result)
			continue;
		return nrp_fail(err, meanings[i].status, meanings[i].code, path, -1,
				meanings[i].remedy, "cannot %s: %s", doing, text);
	}
	return nrp_fail(err, NRP_INTERNAL, -EIO, path, -1, NULL, "cannot %s: %s", doing, text);
}

int nrp_store_fail(struct nrp_store *store, struct nrp_error *err, const char *doing)
{
	return nrp_db_fail(store->db, store->path, err, doing);
}

int nrp_db_prepare(sqlite3 *db, const char *path, const char *sql, sqlite3_stmt **ret,
		   struct nrp_error *err)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return nrp_db_fail(db, path, err, "read the tables");
	*ret = stmt;
	return 0;
}

sqlite3_stmt *nrp_store_prepare(struct nrp_store *store, const char *sql, struct nrp_error *err)
{
	sqlite3_stmt *stmt = NULL;

	nrp_db_prepare(store->db, store->path, sql, &stmt, err);
	return stmt;
}

int nrp_db_integer(sqlite3 *db, const char *path, const char *sql, int64_t *ret,
		   struct nrp_error *err)
{
	sqlite3_stmt *stmt;
	int r = nrp_db_prepare(db, path, sql, &stmt, err);

	if (r < 0)
		return r;
	if (sqlite3_step(stmt) == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	else
		r = nrp_db_fail(db, path, err, "read the file");
	sqlite3_finalize(stmt);
	return r;
}

int nrp_store_exec(struct nrp_store *store, const char *sql, struct nrp_error *err)
{
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return nrp_store_fail(store, err, "change the file");
	return 0;
}

sqlite3 *nrp_store_db(struct nrp_store *store)
{
	return store->db;
}

const char *nrp_store_path(const struct nrp_store *store)
{
	return store->path;
}

/* Inside a transaction on a file that was empty when it was opened. */
static int write_schema(struct nrp_store *store, struct nrp_error *err)
{
	char pragmas[128];
	int64_t objects;
	int r;

	r = nrp_db_integer(store->db, store->path, "SELECT count(*) FROM sqlite_schema", &objects,
			   err);
	if (r < 0)
		return r;
	if (objects > 0) {
		/* Another program was faster; use what it wrote if it is ours. */
		r = nrp_db_check_identity(store->db, store->path, err);
		if (r == 0)
			store->needs_schema = false;
		return r;
	}

	snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 NRP_APPLICATION_ID, NRP_SCHEMA_VERSION);
	if (sqlite3_exec(store->db, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(store->db, nrp_schema_sql, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(store->db, nrp_results_sql, NULL, NULL, NULL) != SQLITE_OK)
		return nrp_store_fail(store, err, "create the tables");
	return 0;
}

/* Inside a transaction: gives a file of version 1 the tables that came later. */
static int upgrade(struct nrp_store *store, struct nrp_error *err)
{
	char pragma[64];
	int64_t version;
	int r = nrp_db_integer(store->db, store->path, "PRAGMA user_version", &version, err);

	if (r < 0 || version >= NRP_SCHEMA_VERSION)
		return r;
	snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", NRP_SCHEMA_VERSION);
	if (sqlite3_exec(store->db, nrp_results_sql, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(store->db, pragma, NULL, NULL, NULL) != SQLITE_OK)
		return nrp_store_fail(store, err, "add the tables of this version");
	return 0;
}

int nrp_store_begin(struct nrp_store *store, struct nrp_error *err)
{
	int r;

	if (!sqlite3_get_autocommit(store->db))
		return nrp_fail(err, NRP_INTERNAL, -EBUSY, store->path, -1, NULL,
				"a transaction is already open");
	if (sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return nrp_store_fail(store, err, "start to change the file");
	r = store->needs_schema ? write_schema(store, err) : upgrade(store, err);
	if (r < 0)
		nrp_store_rollback(store);
	return r;
}

int nrp_store_commit(struct nrp_store *store, struct nrp_error *err)
{
	/* SQLite rolls back by itself when the disk is full. */
	if (sqlite3_get_autocommit(store->db))
		return nrp_fail(err, NRP_INTERNAL, -EINVAL, store->path, -1, NULL,
				"there is no transaction to commit");
	if (sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return nrp_store_fail(store, err, "commit the changes");
	store->committed = true;
	store->needs_schema = false;
	return 0;
}

void nrp_store_rollback(struct nrp_store *store)
{
	if (!sqlite3_get_autocommit(store->db))
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}
