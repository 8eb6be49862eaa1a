/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes CSV (RFC 4180, lines end with \n) to a stream: fields one by one, then the end of the row.
 * A NULL is an empty field; a text is quoted where it must be, the empty one too.
 */
#ifndef NRP_CLI_CSV_H
#define NRP_CLI_CSV_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct csv {
	FILE *out;
	size_t used;
	bool started; /* the row has a field */
	char buffer[65536];
};

void csv_start(struct csv *csv, FILE *out);
void csv_null(struct csv *csv);
void csv_number(struct csv *csv, uint64_t value, bool is_signed);
void csv_text(struct csv *csv, const char *text);
/* Column @i of a statement's row; a BLOB in hexadecimal digits. */
void csv_value(struct csv *csv, sqlite3_stmt *row, int i);
void csv_end_row(struct csv *csv);
/* Hands everything to the stream; false: it could not be written. */
bool csv_finish(struct csv *csv);

#endif
