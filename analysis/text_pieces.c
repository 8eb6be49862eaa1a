/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/text_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WIDTH 100

struct libscols_table *nrp_text_table(size_t width, const char *const *headers, unsigned int right)
{
	struct libscols_table *t = scols_new_table();

	if (!t)
		return NULL;
	for (int i = 0; headers[i]; i++) {
		struct libscols_column *c = scols_table_new_column(
			t, headers[i], 1, right >> i & 1 ? SCOLS_FL_RIGHT : 0);

		if (!c) {
			scols_unref_table(t);
			return NULL;
		}
	}
	scols_table_set_termforce(t, SCOLS_TERMFORCE_ALWAYS);
	scols_table_set_termwidth(t, width ? width : 400);
	scols_table_enable_maxout(t, 0);
	return t;
}

void nrp_text_cell(struct libscols_line *line, size_t i, const char *text)
{
	if (line)
		scols_line_set_data(line, i, text);
}

void nrp_text_print(FILE *out, struct libscols_table *t)
{
	char *text = NULL, *p;

	if (scols_print_table_to_string(t, &text) == 0 && text) {
		/* The padding behind the last column is of no use in a pipe or a mail. */
		for (p = text; *p;) {
			size_t n = strcspn(p, "\n"), end = n;

			while (end && p[end - 1] == ' ')
				end--;
			fprintf(out, "%.*s\n", (int)end, p);
			p += n + (p[n] == '\n');
		}
	}
	free(text);
	scols_unref_table(t);
}

/* Words of @text, wrapped, with @indent blanks before each line but the first. */
void nrp_text_wrapped(FILE *out, const char *text, size_t width, size_t indent, size_t column)
{
	size_t limit = width ? width : DEFAULT_WIDTH;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > indent && column + 1 + n > limit) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", (int)n, text);
		column += n;
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

void nrp_text_note(FILE *out, const char *code, const char *text, size_t width)
{
	fprintf(out, "  %s\n    ", code);
	nrp_text_wrapped(out, text, width, 4, 4);
}

void nrp_text_value(char *buf, size_t size, bool has, double value, const char *missing)
{
	if (!has)
		snprintf(buf, size, "%s", missing);
	else if (value == floor(value) && fabs(value) < 1e15)
		snprintf(buf, size, "%.0f", value);
	else
		snprintf(buf, size, "%.1f", fabs(value) < 0.05 ? 0 : value);
}

/* "1279 [514, 6121]", "6121", "-" */
void nrp_text_quantity(char *buf, size_t size, const struct nrp_quantity *q)
{
	char value[48], lower[48], upper[48];

	if (q->class == NRP_CLASS_NOT_OBSERVABLE) {
		snprintf(buf, size, "-");
		return;
	}
	nrp_text_value(value, sizeof(value), q->has_value, q->value, "?");
	if (q->class == NRP_CLASS_EXACT) {
		snprintf(buf, size, "%s", value);
		return;
	}
	nrp_text_value(lower, sizeof(lower), q->has_lower, q->lower, "..");
	nrp_text_value(upper, sizeof(upper), q->has_upper, q->upper, "..");
	snprintf(buf, size, "%s [%s, %s]", value, lower, upper);
}
