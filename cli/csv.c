/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/csv.h"

#include <string.h>

#define LONGEST_NUMBER 24 /* characters, with a comma */

void csv_start(struct csv *csv, FILE *out)
{
	csv->out = out;
	csv->used = 0;
	csv->started = false;
}

static void flush(struct csv *csv)
{
	fwrite(csv->buffer, 1, csv->used, csv->out);
	csv->used = 0;
}

static void put(struct csv *csv, char c)
{
	if (csv->used == sizeof(csv->buffer))
		flush(csv);
	csv->buffer[csv->used++] = c;
}

static void begin_field(struct csv *csv)
{
	if (csv->started)
		put(csv, ',');
	csv->started = true;
}

void csv_null(struct csv *csv)
{
	begin_field(csv);
}

void csv_number(struct csv *csv, uint64_t value, bool is_signed)
{
	bool negative = is_signed && (int64_t)value < 0;
	char digits[LONGEST_NUMBER];
	size_t n = sizeof(digits);

	begin_field(csv);
	if (negative)
		value = 0 - value;
	do
		digits[--n] = (char)('0' + value % 10);
	while (value /= 10);
	if (negative)
		digits[--n] = '-';
	if (csv->used + LONGEST_NUMBER > sizeof(csv->buffer))
		flush(csv);
	memcpy(csv->buffer + csv->used, digits + n, sizeof(digits) - n);
	csv->used += sizeof(digits) - n;
}

static void put_text(struct csv *csv, const char *text, size_t size)
{
	bool quoted = !size;

	for (size_t i = 0; i < size && !quoted; i++)
		quoted = text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r';
	begin_field(csv);
	if (quoted)
		put(csv, '"');
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '"')
			put(csv, '"');
		put(csv, text[i]);
	}
	if (quoted)
		put(csv, '"');
}

void csv_text(struct csv *csv, const char *text)
{
	put_text(csv, text, strlen(text));
}

static void put_blob(struct csv *csv, const uint8_t *blob, size_t size)
{
	begin_field(csv);
	for (size_t i = 0; i < size; i++) {
		put(csv, "0123456789abcdef"[blob[i] >> 4]);
		put(csv, "0123456789abcdef"[blob[i] & 15]);
	}
}

void csv_value(struct csv *csv, sqlite3_stmt *row, int i)
{
	const char *text;

	switch (sqlite3_column_type(row, i)) {
	case SQLITE_NULL:
		csv_null(csv);
		return;
	case SQLITE_INTEGER:
		csv_number(csv, (uint64_t)sqlite3_column_int64(row, i), true);
		return;
	case SQLITE_BLOB:
		put_blob(csv, sqlite3_column_blob(row, i), (size_t)sqlite3_column_bytes(row, i));
		return;
	default: /* text, and numbers as SQLite writes them */
		text = (const char *)sqlite3_column_text(row, i);
		put_text(csv, text ? text : "", text ? (size_t)sqlite3_column_bytes(row, i) : 0);
	}
}

void csv_end_row(struct csv *csv)
{
	put(csv, '\n');
	csv->started = false;
}

bool csv_finish(struct csv *csv)
{
	flush(csv);
	return fflush(csv->out) == 0 && !ferror(csv->out);
}
