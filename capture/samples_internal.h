/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between samples.c and the two parsers. */
#ifndef NRP_CAPTURE_SAMPLES_INTERNAL_H
#define NRP_CAPTURE_SAMPLES_INTERNAL_H

#include "capture/samples.h"

#include <string.h>

#define NRP_SAMPLES_MAX_LINE 65536
#define NRP_SAMPLES_MAX_EVENT 256 /* bytes of an event's name */

/* A part of a line; not terminated. */
struct nrp_piece {
	const char *at;
	size_t size;
};

/* Of one line: no counter gets so far, and sums of it stay below 2^64. */
#define NRP_SAMPLES_MAX_COUNT (UINT64_C(1) << 40)

enum nrp_line {
	NRP_LINE_SAMPLE,         /* understood */
	NRP_LINE_NOTHING,        /* blank, comment, call chain, other record */
	NRP_LINE_NOT_COUNTED,    /* an interval in which the counter did not run */
	NRP_LINE_WITHOUT_SOURCE, /* a sample that does not say where the data came from */
	NRP_LINE_BAD
};

/* All of @text, at least one character, are of the set. */
static inline bool nrp_piece_is(struct nrp_piece piece, const char *set)
{
	size_t i = 0;

	while (i < piece.size && strchr(set, piece.at[i]))
		i++;
	return piece.size && i == piece.size;
}
#define NRP_DIGITS "0123456789"
#define NRP_HEX_DIGITS "0123456789abcdef"

/* "123.456789" or "123.456789012": ns. false: another form, or more than 64 bits. */
bool nrp_parse_seconds(struct nrp_piece text, uint64_t *ret_ns);
/* Digits of @base 10 or 16 that fit; false: another form. */
bool nrp_parse_number(struct nrp_piece text, int base, uint64_t *ret);

/* NRP_LEVEL_* and NRP_OP_* of an event by its name; NRP_LEVEL_UNKNOWN: not one of memory's. */
uint8_t nrp_event_level(struct nrp_piece event, uint8_t *ret_op);

/*
 * One line of perf script. Fills @ret but for the event, which is a piece of the line (size 0: not
 * named). Samples of an unknown source: NRP_LINE_WITHOUT_SOURCE.
 */
enum nrp_line nrp_script_line(const char *line, struct nrp_memory_sample *ret,
			      struct nrp_piece *ret_event);

/* One line of perf stat -I -x; times count from perf's start. */
struct nrp_stat_line {
	uint64_t time; /* ns: end of the interval */
	uint64_t count;
	uint32_t running; /* 1/100 % */
	uint32_t cpu;
	bool running_known, cpu_known;
	uint8_t level, op;
	struct nrp_piece event; /* without modifiers */
	struct nrp_piece whole; /* with them */
};

/* Does the line begin as perf stat -I -x SEPARATOR prints it? */
bool nrp_stat_separator(const char *line, char *ret_separator);
/* @events: as in nrp_samples_options. NRP_LINE_NOTHING: an event that does not count. */
enum nrp_line nrp_stat_line(const char *line, char separator, const char *const *events,
			    struct nrp_stat_line *ret);

#endif
