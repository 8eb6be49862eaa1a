/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of reports for people: tables, wrapped words, numbers. Widths in columns, 0: none given.
 */
#ifndef NRP_TEXT_INTERNAL_H
#define NRP_TEXT_INTERNAL_H

#include "analysis/compare.h"

#include <libsmartcols.h>
#include <stdio.h>

/* A table with these columns (NULL ends them; bit i of @right: to the right); NULL: no memory. */
struct libscols_table *nrp_text_table(size_t width, const char *const *headers, unsigned int right);
/* Sets a cell; @line may be NULL. */
void nrp_text_cell(struct libscols_line *line, size_t i, const char *text);
/* Prints and frees it. */
void nrp_text_print(FILE *out, struct libscols_table *t);
/* Words of @text, wrapped, with @indent blanks before each line but the first. */
void nrp_text_wrapped(FILE *out, const char *text, size_t width, size_t indent, size_t column);
/* Code and text of a note. */
void nrp_text_note(FILE *out, const char *code, const char *text, size_t width);
/* @missing where there is none. */
void nrp_text_value(char *buf, size_t size, bool has, double value, const char *missing);
/* "1279 [514, 6121]", "6121", "-" */
void nrp_text_quantity(char *buf, size_t size, const struct nrp_quantity *q);

#endif
