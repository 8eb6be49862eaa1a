/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/stream.h"
#include "replay/attempts.h"
#include "replay/worlds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Faults are stored by their beginning; an attempt begins a little later. A heap holds those that
 * have begun until no later one can be decided before them.
 */
struct waiting {
	uint64_t time;    /* of the decision */
	uint64_t ordinal; /* of the fault in the capture */
	struct nrp_hint_fault fault;
};

struct nrp_replay_stream {
	struct nrp_cursor *pass, *range, *fault;
	struct nrp_scan_pass next_pass, out_pass;
	struct nrp_scan_range next_range, out_range;
	bool have_pass, have_range, have_fault; /* next_* and ahead are filled */
	struct nrp_hint_fault ahead;            /* first fault that is not in the heap */
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
	       NRP_BIT(hint_fault, filter_delay) | NRP_BIT(hint_fault, preferred_nid) |
	       NRP_BIT(hint_fault, scan_seq) | NRP_BIT(hint_fault, numa_group) |
	       NRP_BIT(hint_fault, group_cpu_src) | NRP_BIT(hint_fault, group_cpu_dst) |
	       NRP_BIT(hint_fault, group_mem_src) | NRP_BIT(hint_fault, group_mem_dst);
}

static int read_pass(struct nrp_replay_stream *s, struct nrp_error *err)
{
	const void *row;
	int r = nrp_cursor_next(s->pass, &row, err);

	s->have_pass = r > 0;
	if (r > 0)
		s->next_pass = *(const struct nrp_scan_pass *)row;
	return r < 0 ? r : 0;
}

static int read_range(struct nrp_replay_stream *s, struct nrp_error *err)
{
	const void *row;
	int r = nrp_cursor_next(s->range, &row, err);

	s->have_range = r > 0;
	if (r > 0)
		s->next_range = *(const struct nrp_scan_range *)row;
	return r < 0 ? r : 0;
}

static int read_fault(struct nrp_replay_stream *s, struct nrp_error *err)
{
	const void *row;
	int r = nrp_cursor_next(s->fault, &row, err);

	s->have_fault = r > 0;
	if (r > 0)
		s->ahead = *(const struct nrp_hint_fault *)row;
	return r < 0 ? r : 0;
}

int nrp_replay_stream_open(struct nrp_replay_stream **ret, struct nrp_store *store,
			   int64_t capture_id, struct nrp_error *err)
{
	struct nrp_replay_stream *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return nrp_fail_nomem(err);
	r = nrp_cursor_open(&s->pass, store, capture_id, NRP_SCAN_PASS, ~UINT64_C(0), err);
	if (r == 0)
		r = nrp_cursor_open(&s->range, store, capture_id, NRP_SCAN_RANGE,
				    NRP_BIT(scan_range, time) | NRP_BIT(scan_range, mm) |
					    NRP_BIT(scan_range, start) | NRP_BIT(scan_range, end),
				    err);
	if (r == 0)
		r = nrp_cursor_open(&s->fault, store, capture_id, NRP_HINT_FAULT, fault_columns(),
				    err);
	if (r == 0)
		r = read_pass(s, err);
	if (r == 0)
		r = read_range(s, err);
	if (r == 0)
		r = read_fault(s, err);
	if (r < 0) {
		nrp_replay_stream_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct nrp_replay_stream *nrp_replay_stream_close(struct nrp_replay_stream *s)
{
	if (!s)
		return NULL;
	nrp_cursor_close(s->pass);
	nrp_cursor_close(s->range);
	nrp_cursor_close(s->fault);
	for (size_t i = 0; i < s->count; i++)
		free(s->heap[i]);
	for (size_t i = 0; i < s->spares; i++)
		free(s->spare[i]);
	free(s->heap);
	free(s->out);
	free(s);
	return NULL;
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

/* Fills the heap until its top cannot be overtaken. */
static int settle(struct nrp_replay_stream *s, struct nrp_error *err)
{
	while (s->have_fault && (!s->count || s->ahead.time <= s->heap[0]->time)) {
		int r;

		if (push(s, &s->ahead) < 0)
			return nrp_fail_nomem(err);
		r = read_fault(s, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int nrp_replay_stream_next(struct nrp_replay_stream *s, enum nrp_replay_stream_kind *ret_kind,
			   const void **ret_row, struct nrp_error *err)
{
	static const uint64_t never = UINT64_MAX;
	uint64_t pass, range, fault;
	int r;

	if (s->out) {
		if (s->spares < sizeof(s->spare) / sizeof(s->spare[0]))
			s->spare[s->spares++] = s->out;
		else
			free(s->out);
		s->out = NULL;
	}
	r = settle(s, err);
	if (r < 0)
		return r;
	pass = s->have_pass ? s->next_pass.time : never;
	range = s->have_range ? s->next_range.time : never;
	fault = s->count ? s->heap[0]->time : never;
	if (s->have_pass && pass <= range && pass <= fault) {
		s->out_pass = s->next_pass;
		*ret_kind = NRP_STREAM_PASS;
		*ret_row = &s->out_pass;
		r = read_pass(s, err);
		return r < 0 ? r : 1;
	}
	if (s->have_range && range <= fault) {
		s->out_range = s->next_range;
		*ret_kind = NRP_STREAM_RANGE;
		*ret_row = &s->out_range;
		r = read_range(s, err);
		return r < 0 ? r : 1;
	}
	if (!s->count)
		return 0;
	s->out = pop(s);
	*ret_kind = NRP_STREAM_FAULT;
	*ret_row = &s->out->fault;
	return 1;
}
