/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection: errors, statements, transactions. Opening is in open.c. */
#include "schema/internal.h"

#include <errno.h>
#include <stdio.h>

int nrp_store_fail(struct nrp_store *store, struct nrp_error *err, const char *doing)
{
	return nrp_db_fail(store->db, store->path, err, doing);
}

sqlite3_stmt *nrp_store_prepare(struct nrp_store *store, const char *sql, struct nrp_error *err)
{
	sqlite3_stmt *stmt = NULL;

	nrp_db_prepare(store->db, store->path, sql, &stmt, err);
	return stmt;
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

/* Inside a transaction: gives a file of an earlier version the tables that came later. */
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

int nrp_store_register_tables(struct nrp_store *store, struct nrp_error *err)
{
	if (nrp_register_tables(store->db) != SQLITE_OK)
		return nrp_store_fail(store, err, "offer the records as tables");
	return 0;
}
