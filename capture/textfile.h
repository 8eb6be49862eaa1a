/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace as text (docs/text.md): its lines in the order of the file as raw events, with what was
 * lost, what was skipped, and what was not understood.
 */
#ifndef NRP_TEXTFILE_H
#define NRP_TEXTFILE_H

#include "capture/textline.h"

/* Which text an import read, and what it left out of it. */
struct nrp_text_stats {
	bool read;          /* the capture is text */
	const char *format; /* "trace-cmd report", "perf script", "trace" */
	enum nrp_text_unit unit;
	uint64_t lines;
	uint64_t heads;       /* blank lines, comments, what trace-cmd prints around events */
	uint64_t noise;       /* function tracer, function graph, stacks */
	uint64_t losses;      /* lines that say that events were lost */
	uint64_t bad;         /* lines that are not understood */
	uint64_t too_long;    /* of these, longer than NRP_MAX_TEXT_LINE */
	uint64_t first_bad;   /* number of the first of these, from 1 */
	bool cut;             /* the last line has no end, and was left out */
	uint64_t backwards;   /* events before the one on the line above, of whichever CPU */
	uint64_t overwritten; /* entries that the header counts as written but not in the buffer */
	uint64_t hashed, unresolved, zero_arrays; /* as in struct nrp_textline_stats */
};

struct nrp_textfile;

/* Does the file begin like text, gzip or perf.data, or is it standard input? */
bool nrp_textfile_detect(const char *path);

/*
 * NRP_INPUT: not readable, empty, not text, perf's binary file, or a trace-cmd file that is
 * compressed or standard input. Whether the lines are a trace shows when they are read.
 */
int nrp_textfile_open(struct nrp_textfile **ret, const char *path, struct nrp_error *err);
struct nrp_textfile *nrp_textfile_close(struct nrp_textfile *file);

/* Describes the event that was read last. */
const struct nrp_catalogue *nrp_textfile_catalogue(const struct nrp_textfile *file);

int nrp_textfile_rewind(struct nrp_textfile *file, struct nrp_error *err);
/*
 * As nrp_tracefile_next(), in the order of the lines. NRP_INPUT at the end (or early) if no line
 * is an event, or if more lines are not understood than are events.
 */
int nrp_textfile_next(struct nrp_textfile *file, struct nrp_raw_event *ret, struct nrp_error *err);

/* After nrp_textfile_next() returned 0. */
void nrp_textfile_hash(const struct nrp_textfile *file, uint8_t ret[32]);
void nrp_textfile_stats(const struct nrp_textfile *file, struct nrp_text_stats *ret);
/*
 * Damaged places so far: lines that are not understood, a last line without its end, and events
 * that are older than their CPU's event before them. *@ret is the first one, if there is any.
 */
uint64_t nrp_textfile_damage(const struct nrp_textfile *file, struct nrp_error *ret);
/* Lines that could not be read behind the last event: @ret->unread_since and ->unread_offset. */
bool nrp_textfile_open_gap(const struct nrp_textfile *file, struct nrp_raw_event *ret);
/* The i-th loss behind a CPU's last event: 1 and @ret filled, 0: no more. lost -1: unknown. */
int nrp_textfile_open_loss(const struct nrp_textfile *file, size_t *at, struct nrp_raw_event *ret);

#endif
