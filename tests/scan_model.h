/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A slow model of the NUMA scanner for the tests, written from the specification (scan.md 2) alone:
 * the address space is a row of pages, each of which knows its VMA, and the walk steps from page to
 * page. It shares no code with replay/.
 */
#ifndef NRP_TESTS_SCAN_MODEL_H
#define NRP_TESTS_SCAN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_PAGES 160
#define MODEL_VMAS 10
#define MODEL_VISITS 64 /* more than one pass can make */
#define MODEL_EVENTS 512
#define NO_VMA (-1)

/* The reasons of the tracepoint (2.3), and what was let through and why. */
enum model_what {
	UNSUITABLE,
	SHARED_RO,
	INACCESSIBLE,
	SCAN_DELAY,
	PID_INACTIVE,
	IGNORE_PID,
	SEQ_COMPLETED,
	CPUSET,
	ARMED_UNFILTERED,
	ARMED_FIRST_TWO,
	ARMED_PID,
	ARMED_PARTIAL,
	ARMED_STALE,
	ARMED_FORCED,
};

struct model_event {
	enum model_what what;
	int vma, first, last; /* pages [first, last) of an armed range, else 0 */
};

struct model_vma {
	int class; /* UNSUITABLE, SHARED_RO, INACCESSIBLE, or -1: eligible */
	bool has_state;
	uint64_t next_scan, reset, previous, current;
	int32_t start_seq, prev_seq;
};

struct model_page {
	int vma; /* NO_VMA: a hole */
	bool present, armed;
};

struct model {
	/* Fixed. */
	int generation; /* 0..4: P0..P4 */
	int scan_pages, huge_pages;
	uint64_t delay; /* ticks */
	/* The address space. */
	struct model_page page[MODEL_PAGES];
	struct model_vma vma[MODEL_VMAS];
	int32_t seq;
	int offset; /* page */
	/* What the last pass did. */
	struct model_event event[MODEL_EVENTS];
	struct model_vma state[MODEL_EVENTS]; /* of the event's VMA then */
	int nr_events;
	int begin_wraps, end_wraps; /* sequences that ended at its beginnings and at its end */
	int visits;
};

struct model_pass {
	int32_t tid, nr_threads;
	uint64_t jiffies; /* at entry */
	int tick_at;      /* the clock ticks before this visit; 0: before the first */
	bool cpuset_one_node;
	int32_t fault[MODEL_VISITS]; /* thread that faults in the VMA just before a visit; 0: none
				      */
};

/* 2.2: bit of the thread in the current window. */
void model_fault(struct model *m, int vma, int32_t tid);
void model_run(struct model *m, const struct model_pass *pass);

#endif
