/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/stream.h"
#include "replay/attempts.h"
#include "replay/merge.h"
#include "replay/read_ahead.h"
#include "replay/worlds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Faults are stored by their beginning; an attempt begins a little later. A heap holds attempts
 * that have begun until no later one can be decided before them; all other faults pass by it.
 */
struct waiting {
	uint64_t time;    /* of the decision */
	uint64_t ordinal; /* of the fault in the capture */
	struct nrp_hint_fault fault;
};

/* One kind: its cursor, and the row that has not been handed out. */
struct source {
	struct nrp_cursor *cursor;
	const void *row; /* NULL: end */
	uint64_t time;
};

struct nrp_replay_stream {
	struct source source[NRP_STREAM_FAULT + 1];
	struct nrp_read_ahead *faults; /* instead of the faults' cursor */
	int taken;                     /* source whose row the caller has, -1: none */
	int next;           /* of the other kinds, the one with the earliest row; -1: none */
	uint64_t next_time; /* its time; the latest there is, if there is none */
	struct waiting **heap;
	size_t count, room;
	uint64_t pushed;
	struct waiting *out; /* handed to the caller, reused next */
	struct waiting *spare[64];
	size_t spares;
};

static uint64_t fault_columns(void)
{
	return nrp_attempt_columns() | NRP_BIT(hint_fault, src_nid) |
	       NRP_BIT(hint_fault, this_nid) | NRP_BIT(hint_fault, last_cpupid) |
	       NRP_BIT(hint_fault, filter_delay) | NRP_BIT(hint_fault, dst_cpu) |
	       NRP_BIT(hint_fault, preferred_nid) | NRP_BIT(hint_fault, scan_seq) |
	       NRP_BIT(hint_fault, numa_group) | NRP_BIT(hint_fault, group_id) |
	       NRP_BIT(hint_fault, group_cpu_src) | NRP_BIT(hint_fault, group_cpu_dst) |
	       NRP_BIT(hint_fault, group_mem_src) | NRP_BIT(hint_fault, group_mem_dst);
}

/* Rows for which what they hold has time to come from the reader's CPU. */
#define LATER 32

static void fetch_later(const struct nrp_replay_stream *s)
{
	const struct nrp_hint_fault *f = nrp_read_ahead_peek(s->faults, LATER);

	if (!f)
		return;
	/* One member of each cache line that is looked at in every fault. */
	__builtin_prefetch(&f->time);
	__builtin_prefetch(&f->src_nid);
	__builtin_prefetch(&f->attempt);
}

/* The next row of one kind. */
static int advance(struct nrp_replay_stream *s, int kind, struct nrp_error *err)
{
	struct source *from = &s->source[kind];
	const void *row;
	int r = kind == NRP_STREAM_FAULT ? nrp_read_ahead_next(s->faults, &row, err)
					 : nrp_cursor_next(from->cursor, &row, err);

	if (kind == NRP_STREAM_FAULT)
		fetch_later(s);
	from->row = r > 0 ? row : NULL;
	if (r > 0)
		from->time = nrp_row_time(row);
	return r < 0 ? r : 0;
}

/* Which of the other kinds is next? */
static void choose_other(struct nrp_replay_stream *s)
{
	s->next = -1;
	s->next_time = UINT64_MAX;
	for (int k = 0; k < NRP_STREAM_FAULT; k++)
		if (s->source[k].row && (s->next < 0 || s->source[k].time < s->next_time)) {
			s->next = k;
			s->next_time = s->source[k].time;
		}
}

/* There are many of them: the next are read while the caller is busy with these. */
static int open_faults(struct nrp_replay_stream *s, struct nrp_error *err)
{
	struct nrp_cursor *cursor = s->source[NRP_STREAM_FAULT].cursor;

	s->source[NRP_STREAM_FAULT].cursor = NULL;
	return nrp_read_ahead_open(&s->faults, cursor, sizeof(struct nrp_hint_fault), err);
}

int nrp_replay_stream_open(struct nrp_replay_stream **ret, struct nrp_store *store,
			   int64_t capture_id, uint64_t columns, bool page_faults,
			   struct nrp_error *err)
{
	static const enum nrp_record_kind kinds[NRP_STREAM_FAULT + 1] = {
		NRP_TASK_LIFE,  NRP_TASK_MOVE,  NRP_SCAN_PASS,
		NRP_SCAN_RANGE, NRP_PAGE_FAULT, NRP_HINT_FAULT
	};
	struct nrp_replay_stream *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return nrp_fail_nomem(err);
	s->taken = -1;
	for (int k = 0; r == 0 && k <= NRP_STREAM_FAULT; k++) {
		if (k == NRP_STREAM_PAGE_FAULT && !page_faults)
			continue;
		r = nrp_cursor_open(
			&s->source[k].cursor, store, capture_id, kinds[k],
			k == NRP_STREAM_FAULT ? fault_columns() | columns : ~UINT64_C(0), err);
		if (r == 0 && k == NRP_STREAM_FAULT)
			r = open_faults(s, err);
		if (r == 0)
			r = advance(s, k, err);
	}
	if (r < 0) {
		nrp_replay_stream_close(s);
		return r;
	}
	choose_other(s);
	*ret = s;
	return 0;
}

struct nrp_replay_stream *nrp_replay_stream_close(struct nrp_replay_stream *s)
{
	if (!s)
		return NULL;
	nrp_read_ahead_close(s->faults);
	for (int k = 0; k <= NRP_STREAM_FAULT; k++)
		nrp_cursor_close(s->source[k].cursor);
	for (size_t i = 0; i < s->count; i++)
		free(s->heap[i]);
	for (size_t i = 0; i < s->spares; i++)
		free(s->spare[i]);
	free(s->heap);
	free(s->out);
	free(s);
	return NULL;
}

const struct nrp_hint_fault *nrp_replay_stream_ahead(const struct nrp_replay_stream *s,
						     uint32_t rows)
{
	return nrp_read_ahead_peek(s->faults, rows);
}

static bool before(const struct waiting *a, const struct waiting *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	if (a->fault.cpu != b->fault.cpu)
		return a->fault.cpu < b->fault.cpu;
	if (a->fault.tid != b->fault.tid)
		return a->fault.tid < b->fault.tid;
	/* A clock may stand still between two faults of a thread. */
	return a->ordinal < b->ordinal;
}

static int push(struct nrp_replay_stream *s, const struct nrp_hint_fault *f)
{
	struct waiting *w;
	size_t i;

	if (s->count == s->room) {
		size_t room = s->room ? s->room * 2 : 64;
		struct waiting **grown = reallocarray(s->heap, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->heap = grown;
		s->room = room;
	}
	w = s->spares ? s->spare[--s->spares] : malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->time = nrp_worlds_decision_time(f);
	w->ordinal = s->pushed++;
	w->fault = *f;
	for (i = s->count++; i > 0 && before(w, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = w;
	return 0;
}

static struct waiting *pop(struct nrp_replay_stream *s)
{
	struct waiting *top = s->heap[0], *last = s->heap[--s->count];
	size_t i = 0;

	while (2 * i + 1 < s->count) {
		size_t child = 2 * i + 1;

		if (child + 1 < s->count && before(s->heap[child + 1], s->heap[child]))
			child++;
		if (!before(s->heap[child], last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	if (s->count)
		s->heap[i] = last;
	return top;
}

static const struct nrp_hint_fault *ahead(const struct nrp_replay_stream *s)
{
	return s->source[NRP_STREAM_FAULT].row;
}

/* Nothing in the heap is decided before the next fault begins. */
static bool ahead_is_first(const struct nrp_replay_stream *s)
{
	return ahead(s) && (!s->count || ahead(s)->time <= s->heap[0]->time);
}

/* Takes attempts into the heap until one of them, or a fault without, is next. */
static int settle(struct nrp_replay_stream *s, struct nrp_error *err)
{
	while (ahead_is_first(s) && ahead(s)->attempt != NRP_ATTEMPT_NONE) {
		int r;

		if (push(s, ahead(s)) < 0)
			return nrp_fail_nomem(err);
		r = advance(s, NRP_STREAM_FAULT, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The caller is done with what it got last. */
static int take_back(struct nrp_replay_stream *s, struct nrp_error *err)
{
	int kind = s->taken, r;

	s->taken = -1;
	if (s->out) {
		if (s->spares < sizeof(s->spare) / sizeof(s->spare[0]))
			s->spare[s->spares++] = s->out;
		else
			free(s->out);
		s->out = NULL;
	}
	if (kind < 0)
		return 0;
	r = advance(s, kind, err);
	if (kind != NRP_STREAM_FAULT)
		choose_other(s);
	return r;
}

int nrp_replay_stream_next(struct nrp_replay_stream *s, enum nrp_replay_stream_kind *ret_kind,
			   const void **ret_row, struct nrp_error *err)
{
	bool direct;
	int r = take_back(s, err);

	if (r == 0)
		r = settle(s, err);
	if (r < 0)
		return r;
	direct = ahead_is_first(s);
	if ((direct || s->count) &&
	    (s->next < 0 || (direct ? ahead(s)->time : s->heap[0]->time) < s->next_time)) {
		*ret_kind = NRP_STREAM_FAULT;
		if (direct) {
			s->taken = NRP_STREAM_FAULT;
			*ret_row = ahead(s);
		} else {
			s->out = pop(s);
			*ret_row = &s->out->fault;
		}
		return 1;
	}
	if (s->next < 0)
		return 0;
	s->taken = s->next;
	*ret_kind = (enum nrp_replay_stream_kind)s->next;
	*ret_row = s->source[s->next].row;
	return 1;
}
