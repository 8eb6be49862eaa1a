/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of schema/ share; nobody else includes it. */
#ifndef NRP_SCHEMA_INTERNAL_H
#define NRP_SCHEMA_INTERNAL_H

#include "numareplay/store.h"

#ifdef NRP_EXTENSION /* loaded into a program that has a SQLite of its own: its functions are      \
			called */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#endif

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

#define NRP_REMEDY_NOT_OURS "give a file written by numareplay import or capture"
#define NRP_REMEDY_DAMAGED "copy the file again, or import the trace again"

/* As nrp_store_fail() and nrp_store_prepare() for a bare connection. */
int nrp_db_fail(sqlite3 *db, const char *path, struct nrp_error *err, const char *doing);
int nrp_db_prepare(sqlite3 *db, const char *path, const char *sql, sqlite3_stmt **ret,
		   struct nrp_error *err);
/* Runs a statement whose first column is one integer. */
int nrp_db_integer(sqlite3 *db, const char *path, const char *sql, int64_t *ret,
		   struct nrp_error *err);

/* Looks for damaged pages: 0: none found, -EBADMSG: the first, with its offset where that is known.
 */
int nrp_db_check_pages(sqlite3 *db, const char *path, struct nrp_error *err);
/* Checks that the open database is ours and of a version that we read. */
int nrp_db_check_version(sqlite3 *db, const char *path, struct nrp_error *err);
/* The same, and that it has all its tables (open.c). */
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

/* Rows whose column lies in [lo, hi] as SQL compares them (signed); NULL does not. */
struct nrp_bound {
	int column; /* NRP_COL() */
	int64_t lo, hi;
};

/* Counted over all cursors of a connection. */
struct nrp_block_counts {
	uint64_t read;     /* blocks decompressed */
	uint64_t left_out; /* blocks that cannot hold a row within the bounds */
};

/*
 * As nrp_cursor_open(), but without the blocks that cannot hold a row within all @bounds, by what
 * the file says about their smallest and largest values; rows outside can still come out of the
 * others.
 * @counts may be NULL, else it must outlive the cursor.
 */
int nrp_cursor_open_bounded(struct nrp_cursor **ret, sqlite3 *db, const char *path,
			    int64_t capture_id, enum nrp_record_kind kind, uint64_t columns,
			    const struct nrp_bound *bounds, size_t nr_bounds,
			    struct nrp_block_counts *counts, struct nrp_error *err);

/*
 * A number of the row that nrp_cursor_next() gave last, the same in every reading of the database,
 * whatever the bounds. Not for cursors that choose rows.
 */
int64_t nrp_cursor_rowid(const struct nrp_cursor *cursor);

/*
 * Loads the next block instead of reading its rows: 1, 0 at the end, < 0: error. Blocks come in the
 * order of their first times, with the cursor's columns and no others. Not to be mixed with
 * nrp_cursor_next().
 */
struct nrp_block;
int nrp_cursor_next_block(struct nrp_cursor *cursor, struct nrp_block *block,
			  struct nrp_error *err);

/* Registers the virtual tables on any connection to one of our databases; a SQLite result code. */
int nrp_register_tables(sqlite3 *db);
/* The one that describes the columns of all others (column_doc.c). */
int nrp_register_column_doc(sqlite3 *db);

#endif
