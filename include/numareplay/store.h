/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The store: one SQLite file holding captures (samples as compressed column blocks, everything
 * else as plain tables) and results. schema/schema.sql is the reference for the tables.
 *
 * All functions return 0 or a negative errno and fill @err (may be NULL). ret_ arguments are
 * untouched on failure. Destructors accept NULL and return NULL.
 */
#ifndef NUMAREPLAY_STORE_H
#define NUMAREPLAY_STORE_H

#include "numareplay/error.h"
#include "numareplay/record.h"

#include <sqlite3.h>

/* "nrpl": application_id of our databases. */
#define NRP_APPLICATION_ID 0x6e72706c
/* user_version written and the newest one understood. */
#define NRP_SCHEMA_VERSION 5
/* Rows per column block. */
#define NRP_BLOCK_ROWS 65536

struct nrp_store;

enum nrp_store_mode {
	NRP_STORE_READ,  /* must exist, opened read-only */
	NRP_STORE_WRITE, /* must exist (results are added) */
	NRP_STORE_CREATE /* created if it does not exist; an empty file counts as absent */
};

/*
 * Opens @path. Fails with NRP_INPUT if it is missing, not a database, not ours, damaged, or of a
 * newer schema (the remedy says so). A file that CREATE made is removed again by
 * nrp_store_close() unless a transaction was committed.
 */
int nrp_store_open(struct nrp_store **ret, const char *path, enum nrp_store_mode mode,
		   struct nrp_error *err);
struct nrp_store *nrp_store_close(struct nrp_store *store);

/* The connection, for queries; owned by the store. */
sqlite3 *nrp_store_db(struct nrp_store *store);
const char *nrp_store_path(const struct nrp_store *store);

/* One transaction at a time. Rolling back without one is fine. */
int nrp_store_begin(struct nrp_store *store, struct nrp_error *err);
int nrp_store_commit(struct nrp_store *store, struct nrp_error *err);
void nrp_store_rollback(struct nrp_store *store);

/*
 * Fails @err with the connection's own message, "cannot DOING: MESSAGE": damaged, busy, read-only
 * or SQL that does not fit the file's tables -> NRP_INPUT; full disk, I/O, memory -> NRP_INTERNAL.
 */
int nrp_store_fail(struct nrp_store *store, struct nrp_error *err, const char *doing);

/* Prepares a statement; NULL and @err on failure. The caller finalizes. */
sqlite3_stmt *nrp_store_prepare(struct nrp_store *store, const char *sql, struct nrp_error *err);
/* Runs statements without results. */
int nrp_store_exec(struct nrp_store *store, const char *sql, struct nrp_error *err);

/* ---- captures ----------------------------------------------------------------------- */

struct nrp_capture {
	int64_t id;
	char name[256];   /* file name without directory and ending, or --name */
	char source[16];  /* "trace.dat" */
	uint8_t hash[32]; /* of the capture's bytes: refuses a second import; all zero: unknown */
	uint64_t first_time, last_time; /* ns of the first and last event; 0 0: no event */
	uint64_t events;                /* events read, of every kind */
	uint64_t lost_events;           /* known number of lost events */
	int64_t loss_gaps;              /* gaps of unknown size */
	int64_t probe_misses;           /* -1 unknown */
	uint64_t unjoined_events;       /* events that belong to no record */
	uint64_t other_events;          /* events of kinds that no record holds */
	struct nrp_host_facts facts;    /* owned: nrp_capture_clear() */
};

void nrp_capture_clear(struct nrp_capture *capture);

/* Which events a capture could hold: names of its event formats. */
int nrp_store_put_probes(struct nrp_store *store, int64_t capture_id, const char *const *names,
			 size_t count, struct nrp_error *err);
/* Was this event recorded (though perhaps never hit)? */
int nrp_store_capture_has_probe(struct nrp_store *store, int64_t capture_id, const char *name,
				bool *ret, struct nrp_error *err);

/* Inserts a capture row with host facts (call inside a transaction); sets capture->id. */
int nrp_store_add_capture(struct nrp_store *store, struct nrp_capture *capture,
			  struct nrp_error *err);
/* Rewrites the row and facts of capture->id. */
int nrp_store_update_capture(struct nrp_store *store, const struct nrp_capture *capture,
			     struct nrp_error *err);
/* Deletes a capture with everything that belongs to it. */
int nrp_store_delete_capture(struct nrp_store *store, int64_t id, struct nrp_error *err);
/* Is there a capture with these bytes / this name? Sets *ret_id (0: none). */
int nrp_store_capture_by_hash(struct nrp_store *store, const uint8_t hash[32], int64_t *ret_id,
			      struct nrp_error *err);
int nrp_store_capture_by_name(struct nrp_store *store, const char *name, int64_t *ret_id,
			      struct nrp_error *err);
/*
 * Loads the capture named (or numbered) @which. NULL: the only one; several there: NRP_USAGE,
 * with the list in the error text.
 */
int nrp_store_load_capture(struct nrp_store *store, const char *which, struct nrp_capture *ret,
			   struct nrp_error *err);

/* Interns a string (comm, file name) of a capture; ids from 1. */
int nrp_store_intern(struct nrp_store *store, int64_t capture_id, const char *text,
		     uint32_t *ret_id, struct nrp_error *err);

/* /proc/vmstat before (0) or after (1) the capture. */
int nrp_store_put_counter(struct nrp_store *store, int64_t capture_id, const char *name,
			  int snapshot, int64_t value, struct nrp_error *err);
/* Difference after - before; -ENOENT (without filling @err) if either is missing. */
int nrp_store_counter_delta(struct nrp_store *store, int64_t capture_id, const char *name,
			    int64_t *ret_delta);

/* A setting of the host (sysctl or other fact) as text; putting it again replaces it. */
int nrp_store_put_setting(struct nrp_store *store, int64_t capture_id, const char *name,
			  const char *value, struct nrp_error *err);
/* *ret_value is the caller's to free(); -ENOENT (without filling @err) if it is not there. */
int nrp_store_get_setting(struct nrp_store *store, int64_t capture_id, const char *name,
			  char **ret_value, struct nrp_error *err);

/* ---- samples: writing --------------------------------------------------------------- */

struct nrp_writer;

/*
 * Collects rows per kind and writes them as blocks (call inside a transaction). Rows may come
 * slightly out of order: each block is sorted by time, and cursors restore the order across
 * blocks.
 */
int nrp_writer_new(struct nrp_writer **ret, struct nrp_store *store, int64_t capture_id,
		   struct nrp_error *err);
/* A row (struct nrp_KIND) to be filled in, of undefined content, the writer's; NULL: out of memory. */
void *nrp_writer_row(struct nrp_writer *writer, enum nrp_record_kind kind);
/* Takes such a row back, filled: no copy is made. */
int nrp_writer_append_row(struct nrp_writer *writer, enum nrp_record_kind kind, void *row,
			  struct nrp_error *err);
/* Copies one row (struct nrp_KIND) in. */
int nrp_writer_append(struct nrp_writer *writer, enum nrp_record_kind kind, const void *row,
		      struct nrp_error *err);
/* Writes the blocks that are not full. */
int nrp_writer_flush(struct nrp_writer *writer, struct nrp_error *err);
struct nrp_writer *nrp_writer_free(struct nrp_writer *writer);

/*
 * Seals the blocks of a capture, once all are written: from now on its readers notice blocks that
 * are missing, and times and ranges of blocks that were changed. Done again, it replaces the seals.
 */
int nrp_store_seal(struct nrp_store *store, int64_t capture_id, struct nrp_error *err);

/* ---- samples: reading --------------------------------------------------------------- */

struct nrp_cursor;

/*
 * Reads the rows of one kind in time order (ties: order of writing). @columns has one bit per
 * column to decode (NRP_BIT()); the others are NULL in the rows; ~0 reads all. time is always read.
 * The value of a NULL field is 0.
 */
int nrp_cursor_open(struct nrp_cursor **ret, struct nrp_store *store, int64_t capture_id,
		    enum nrp_record_kind kind, uint64_t columns, struct nrp_error *err);
/*
 * The same, but blocks that hold no time in [@from, @to] (ns) are left out. Rows outside can still
 * come out of the others.
 */
int nrp_cursor_open_between(struct nrp_cursor **ret, struct nrp_store *store, int64_t capture_id,
			    enum nrp_record_kind kind, uint64_t columns, uint64_t from, uint64_t to,
			    struct nrp_error *err);
/* The same, but only rows whose column @where (NRP_COL()) is neither 0 nor NULL. */
int nrp_cursor_open_where(struct nrp_cursor **ret, struct nrp_store *store, int64_t capture_id,
			  enum nrp_record_kind kind, uint64_t columns, int where,
			  struct nrp_error *err);
/* 1: *ret_row is the next row, valid until the next call; 0: end; < 0: error. */
int nrp_cursor_next(struct nrp_cursor *cursor, const void **ret_row, struct nrp_error *err);
/*
 * The same for rows that lie one behind the other in memory: *count, at least 1, are wanted, and so
 * many or fewer are at *ret_rows.
 */
int nrp_cursor_next_run(struct nrp_cursor *cursor, const void **ret_rows, uint32_t *count,
			struct nrp_error *err);
struct nrp_cursor *nrp_cursor_close(struct nrp_cursor *cursor);

/* Number of rows of a kind. */
int nrp_store_count(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
		    uint64_t *ret_rows, struct nrp_error *err);

#define NRP_NO_NODE INT16_MIN /* in a count by nodes: the column was NULL */

struct nrp_node_count {
	int16_t first, second; /* node ids; -1 where the kernel says "none" */
	uint64_t rows;
};

/*
 * Counts the rows of a kind by the values of two of its node columns (NRP_COL(), unit nid), reading
 * these only. *ret is the caller's to free(), in the order of the nodes, NRP_NO_NODE first. A node id
 * that no host has is damage.
 */
int nrp_store_count_by_nodes(struct nrp_store *store, int64_t capture_id, enum nrp_record_kind kind,
			     int first, int second, struct nrp_node_count **ret, size_t *ret_count,
			     struct nrp_error *err);

/* ---- SQL over samples --------------------------------------------------------------- */

/*
 * Registers one eponymous virtual table per record kind on the store's connection. Each has
 * capture_id and the kind's columns, and leaves out the blocks that comparisons of columns with
 * values (=, <, <=, >, >=, BETWEEN, IN) rule out. Table column_doc describes the columns. The
 * functions nrp_blocks_read() and nrp_blocks_left_out() count blocks since then.
 */
int nrp_store_register_tables(struct nrp_store *store, struct nrp_error *err);

#endif
