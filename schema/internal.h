/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of schema/ share; nobody else includes it. */
#ifndef NRP_SCHEMA_INTERNAL_H
#define NRP_SCHEMA_INTERNAL_H

#include "numareplay/store.h"

#include <sys/types.h>

/* The text of schema.sql. */
extern const char nrp_schema_sql[];
extern const char nrp_results_sql[];

struct nrp_store {
	sqlite3 *db;
	char *path; /* as the user gave it */
	enum nrp_store_mode mode;
	bool needs_schema; /* the file is empty: the first transaction writes the schema */
	bool created;      /* by this store; removed on close unless something was committed */
	bool committed;
	dev_t dev; /* identity of the created file */
	ino_t ino;
	sqlite3_stmt *name_find; /* kept prepared: used once per event by importers */
	sqlite3_stmt *name_add;
};

/* As nrp_store_fail() and nrp_store_prepare() for a bare connection. */
int nrp_db_fail(sqlite3 *db, const char *path, struct nrp_error *err, const char *doing);
int nrp_db_prepare(sqlite3 *db, const char *path, const char *sql, sqlite3_stmt **ret,
		   struct nrp_error *err);
/* Runs a statement whose first column is one integer. */
int nrp_db_integer(sqlite3 *db, const char *path, const char *sql, int64_t *ret,
		   struct nrp_error *err);

/*
 * Checks that the open database is ours, of a version that we read, and has all its tables
 * (open.c).
 */
int nrp_db_check_identity(sqlite3 *db, const char *path, struct nrp_error *err);

/* The file is still empty: no table exists, so nothing can be asked of it. */
static inline bool nrp_store_is_empty(const struct nrp_store *store)
{
	return store->needs_schema && sqlite3_get_autocommit(store->db);
}

/* Bytes of struct nrp_capture.hash. */
#define NRP_HASH_SIZE 32

/* Turns a name or number, or NULL for the only one, into an id (nrp_store_load_capture()). */
int nrp_store_find_capture(struct nrp_store *store, const char *which, int64_t *ret_id,
			   struct nrp_error *err);

/* u64 values live in SQLite's signed integers with the same bits. */
static inline int64_t nrp_to_sql(uint64_t value)
{
	return (int64_t)value;
}

static inline uint64_t nrp_from_sql(int64_t value)
{
	return (uint64_t)value;
}

/* ---- cursors on a bare connection (vtab.c, the loadable extension) ------------------ */

/*
 * As nrp_cursor_open(), for blocks that hold times in [@lo, @hi] as SQL compares them (signed);
 * rows outside can still come out of these blocks.
 */
int nrp_cursor_open_range(struct nrp_cursor **ret, sqlite3 *db, const char *path,
			  int64_t capture_id, enum nrp_record_kind kind, uint64_t columns,
			  int64_t lo, int64_t hi, struct nrp_error *err);

/* Registers the virtual tables on any connection to one of our databases; a SQLite result code. */
int nrp_register_tables(sqlite3 *db);

#endif
