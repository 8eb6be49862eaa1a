/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines of a text file, of a gzip-compressed one, or of standard input, which is copied to a
 * temporary file unless it is a file itself: a text is read twice. One buffer, whatever the length
 * of lines and file.
 */
#ifndef NRP_TEXTLINES_H
#define NRP_TEXTLINES_H

#include "numareplay/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRP_MAX_TEXT (INT64_C(1) << 40) /* bytes of text, decompressed */
#define NRP_MAX_INFLATION 200           /* times: traces compress ten- to thirtyfold */

struct nrp_textlines;

/* One line without its end; not terminated, valid until the next call. */
struct nrp_line_piece {
	const char *at;
	size_t size;
	uint64_t offset; /* of its first byte in the text */
	bool too_long;   /* longer than NRP_MAX_TEXT_LINE: @at holds its beginning */
	bool cut;        /* the last line, and no newline ends it */
};

/*
 * Opens @path, "-" for standard input. NRP_INPUT: not readable, not a plain file, empty;
 * NRP_INTERNAL: no room for the copy of standard input.
 */
int nrp_textlines_open(struct nrp_textlines **ret, const char *path, struct nrp_error *err);
struct nrp_textlines *nrp_textlines_close(struct nrp_textlines *lines);

/* The first bytes of the (decompressed) text, at most @size; how many there are, or < 0. */
int64_t nrp_textlines_peek(struct nrp_textlines *lines, char *buf, size_t size,
			   struct nrp_error *err);
/* (Re)starts at the first line. */
int nrp_textlines_rewind(struct nrp_textlines *lines, struct nrp_error *err);
/* 1: the next line; 0: end; < 0: NRP_INPUT, unreadable, or compressed data damaged or too much. */
int nrp_textlines_next(struct nrp_textlines *lines, struct nrp_line_piece *ret,
		       struct nrp_error *err);
/* Bytes of text read since the start. */
uint64_t nrp_textlines_offset(const struct nrp_textlines *lines);
/* As nrp_tracefile_hash(), of the text's bytes; after nrp_textlines_next() returned 0. */
void nrp_textlines_hash(const struct nrp_textlines *lines, uint8_t ret[32]);

#endif
