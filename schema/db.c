/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is asked of a bare connection: errors, statements, whose file it is. */
#include "schema/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets in the SQLite header: https://www.sqlite.org/fileformat2.html#the_database_header */
#define HEADER_OFFSET_VERSION 60
#define HEADER_OFFSET_APPLICATION 68

#define BUSY_REMEDY "close the other program that uses the file, then try again"

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
	{ SQLITE_CORRUPT, NRP_INPUT, -EBADMSG, NRP_REMEDY_DAMAGED },
	{ SQLITE_NOTADB, NRP_INPUT, -EBADMSG, NRP_REMEDY_DAMAGED },
	{ SQLITE_TOOBIG, NRP_INPUT, -EBADMSG, NRP_REMEDY_DAMAGED }, /* nothing that we write is */
	{ SQLITE_DONE, NRP_INPUT, -EBADMSG,
	  NRP_REMEDY_DAMAGED }, /* a row that must be there is not */
	{ SQLITE_BUSY, NRP_INPUT, -EBUSY, BUSY_REMEDY },
	{ SQLITE_LOCKED, NRP_INPUT, -EBUSY, BUSY_REMEDY },
	{ SQLITE_READONLY, NRP_INPUT, -EROFS, "make the file and its directory writable" },
	{ SQLITE_CANTOPEN, NRP_INPUT, -EACCES, "check the permissions of file and directory" },
	{ SQLITE_PERM, NRP_INPUT, -EACCES, "check the permissions of file and directory" },
	{ SQLITE_AUTH, NRP_INPUT, -EACCES, NULL },
	/* Our own statements fit our schema: where one does not, the file's schema is another. */
	{ SQLITE_ERROR, NRP_INPUT, -EBADMSG, NRP_REMEDY_DAMAGED },
};

/* The page that a line of quick_check names, 0: none. "Page 2: ..", "Tree 5 page 12 cell 0: .." */
static int64_t page_of(const char *line)
{
	const char *p = strcasestr(line, "page ");

	return p ? strtoll(p + 5, NULL, 10) : 0;
}

/* What is wrong with a file whose check ended with this line. */
static int fail_page(const char *line, int64_t page_size, const char *path, struct nrp_error *err)
{
	static const char heading[] = "*** in database main ***\n";
	int64_t page = page_of(line), offset = -1;

	if (!strncmp(line, heading, strlen(heading)))
		line += strlen(heading);
	if (page > 0 && page <= INT32_MAX)
		offset = (page - 1) * page_size;
	return nrp_fail(err, NRP_INPUT, -EBADMSG, path, offset, NRP_REMEDY_DAMAGED,
			"is damaged: %s", line);
}

/* Runs SQLite's check: its result code, and *ret from what it says. */
static int check_pages(sqlite3 *db, const char *path, int *ret, struct nrp_error *err)
{
	int64_t page_size = 0;
	sqlite3_stmt *stmt;
	const char *line;
	int r;

	r = sqlite3_prepare_v2(db, "PRAGMA main.page_size", -1, &stmt, NULL);
	if (r == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
		page_size = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	r = sqlite3_prepare_v2(db, "PRAGMA main.quick_check", -1, &stmt, NULL);
	if (r != SQLITE_OK)
		return r;
	r = sqlite3_step(stmt);
	if (r == SQLITE_ROW) {
		line = (const char *)sqlite3_column_text(stmt, 0);
		*ret = line && !strcmp(line, "ok")
			       ? 0
			       : fail_page(line ? line : "no answer from quick_check", page_size,
					   path, err);
	}
	sqlite3_finalize(stmt);
	return r;
}

int nrp_db_check_pages(sqlite3 *db, const char *path, struct nrp_error *err)
{
	int r = 0;

	if (check_pages(db, path, &r, err) != SQLITE_ROW)
		return nrp_db_fail(db, path, err, "check it");
	return r;
}

int nrp_db_fail(sqlite3 *db, const char *path, struct nrp_error *err, const char *doing)
{
	int result = sqlite3_errcode(db) & 0xff, damage = 0;
	char text[256];

	snprintf(text, sizeof(text), "%s", sqlite3_errmsg(db));
	/* SQLite says that pages are damaged, but not which: look for them. */
	if (result == SQLITE_CORRUPT && sqlite3_extended_errcode(db) != SQLITE_CORRUPT_VTAB &&
	    err && check_pages(db, path, &damage, err) == SQLITE_ROW && damage < 0)
		return damage;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].result != result)
			continue;
		return nrp_fail(err, meanings[i].status, meanings[i].code, path, -1,
				meanings[i].remedy, "cannot %s: %s", doing, text);
	}
	return nrp_fail(err, NRP_INTERNAL, -EIO, path, -1, NULL, "cannot %s: %s", doing, text);
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

int nrp_db_check_version(sqlite3 *db, const char *path, struct nrp_error *err)
{
	int64_t application = 0, version = 0;
	int r;

	r = nrp_db_integer(db, path, "PRAGMA main.application_id", &application, err);
	if (r == 0)
		r = nrp_db_integer(db, path, "PRAGMA main.user_version", &version, err);
	if (r < 0)
		return r;
	if (application != NRP_APPLICATION_ID)
		return nrp_fail(err, NRP_INPUT, -EINVAL, path, HEADER_OFFSET_APPLICATION,
				NRP_REMEDY_NOT_OURS, "is a SQLite database but not numareplay's");
	if (version > NRP_SCHEMA_VERSION)
		return nrp_fail(err, NRP_INPUT, -ENOTSUP, path, HEADER_OFFSET_VERSION,
				"use a newer numareplay",
				"has schema version %lld; this program knows version %d and older",
				(long long)version, NRP_SCHEMA_VERSION);
	if (version < 1)
		return nrp_fail(
			err, NRP_INPUT, -EBADMSG, path, HEADER_OFFSET_VERSION, NRP_REMEDY_DAMAGED,
			"is damaged: schema version %lld does not exist", (long long)version);
	return 0;
}
