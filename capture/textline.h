/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line of a trace as text -> one raw event, as if it had been read from a ring buffer, so that
 * calibration and joiner see no difference. Text has no event formats: each line says which fields
 * it has, so the catalogue describes the event that was parsed last, and is written anew by the
 * next one.
 *
 * Understood are trace-cmd report, tracefs' trace and trace_pipe, and perf script of tracepoints.
 * Places on the line mean nothing: a line is taken apart from the colon behind its time stamp.
 */
#ifndef NRP_TEXTLINE_H
#define NRP_TEXTLINE_H

#include "capture/events.h"

#define NRP_MAX_TEXT_LINE 65536 /* bytes */
#define NRP_MAX_COMM 15         /* bytes of a task's name in a trace: TASK_COMM_LEN - 1 */

enum nrp_text_kind {
	NRP_TEXT_EVENT, /* @ret is filled */
	NRP_TEXT_LOSS,  /* events of ret->cpu are missing here: ret->lost, -1: unknown number */
	NRP_TEXT_HEAD,  /* a blank line, a comment, what trace-cmd writes around events */
	NRP_TEXT_NOISE, /* function tracer, function graph, stack trace, call chain */
	NRP_TEXT_BAD    /* nothing of these, or a number that cannot be */
};

/* What the digits of a time stamp count. */
enum nrp_text_unit {
	NRP_TEXT_NO_UNIT, /* no event yet */
	NRP_TEXT_US,      /* "1.000002", or "3us" of the latency format */
	NRP_TEXT_NS,      /* "1.000000002" */
	NRP_TEXT_TICKS    /* "12345": clocks counter, x86-tsc and their like */
};

/* "us", "ns", "ticks", "unknown". */
const char *nrp_text_unit_name(enum nrp_text_unit unit);

/* What stands before an event's name. */
struct nrp_text_prefix {
	uint64_t time; /* ns or ticks */
	enum nrp_text_unit unit;
	uint32_t cpu;
	int32_t tid;
	int32_t tgid;     /* 0: not on the line */
	const char *rest; /* behind the colon of the time stamp */
};

/*
 * Finds the prefix of a line. A task's name may look like one itself, and so may the text behind
 * an event's name: names have at most NRP_MAX_COMM bytes. false: there is none.
 */
bool nrp_text_prefix(const char *line, const char *end, struct nrp_text_prefix *ret);

/* Value of the digits of base 10 or 16 between @p and @end; false: none, others, or too many. */
bool nrp_text_number(const char *p, const char *end, unsigned int base, uint64_t *ret);

/* What the lines had that records cannot show. */
struct nrp_textline_stats {
	enum nrp_text_unit unit;
	uint64_t hashed; /* pointers that the kernel printed hashed */
	/* values that are no numbers, or that no kernel has: symbols, (fault), node -2, .. */
	uint64_t unresolved;
	uint64_t zero_arrays; /* arrays printed as zeros where so far all are: no values */
	bool with_systems;    /* "system:event", as perf prints */
};

struct nrp_textline;

int nrp_textline_new(struct nrp_textline **ret, struct nrp_error *err);
struct nrp_textline *nrp_textline_free(struct nrp_textline *parser);

/*
 * Parses @size bytes without the line's end, which need not be text. No allocation. ret->data is
 * valid until the next call; lost_before, lost and lost_since are left to the caller but for
 * NRP_TEXT_LOSS.
 */
enum nrp_text_kind nrp_textline_parse(struct nrp_textline *parser, const char *line, size_t size,
				      struct nrp_raw_event *ret);

/* Before the same text is read again: counts from 0; events and arrays that were seen stay known.
 */
void nrp_textline_restart(struct nrp_textline *parser);

/* Describes the last event; present[] says what was seen so far. */
const struct nrp_catalogue *nrp_textline_catalogue(const struct nrp_textline *parser);
const struct nrp_textline_stats *nrp_textline_stats(const struct nrp_textline *parser);

#endif
