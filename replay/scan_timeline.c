/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_timeline.h"

#include <errno.h>
#include <stdlib.h>

/* A pass, and the windows that passes up to it and from it on show. */
struct point {
	uint64_t mm, time;
	uint64_t end; /* of this and all earlier passes, ns; UINT64_MAX: not on record */
	int32_t seq;
	bool seq_known;
	uint32_t period_max;
	uint64_t before[2], after[2]; /* windows: least, most; most 0: not shown */
};

struct nrp_scan_timeline {
	struct point *at; /* by address space, then time */
	size_t count, room;
};

#define MAX_POINTS (SIZE_MAX / sizeof(struct point) / 4)

static int by_space_and_time(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	if (p->mm != q->mm)
		return p->mm < q->mm ? -1 : 1;
	if (p->time != q->time)
		return p->time < q->time ? -1 : 1;
	return p->seq < q->seq ? -1 : p->seq > q->seq;
}

static int add(struct nrp_scan_timeline *t, const struct nrp_scan_pass *p)
{
	if (t->count == t->room) {
		size_t room = t->room ? t->room * 2 : 256;
		struct point *grown =
			room > MAX_POINTS ? NULL : reallocarray(t->at, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->at = grown;
		t->room = room;
	}
	t->at[t->count++] = (struct point){
		.mm = p->mm,
		.time = p->time,
		.end = NRP_NULL(p, scan_pass, end_time) ? UINT64_MAX : p->end_time,
		.seq = p->mm_scan_seq,
		.seq_known = !NRP_NULL(p, scan_pass, mm_scan_seq),
		.period_max = NRP_NULL(p, scan_pass, scan_period_max) ? 0 : p->scan_period_max,
	};
	return 0;
}

/* Windows for which the configured longest period is divided down to this one. */
static void windows_of(const struct nrp_scan_tunables *t, uint32_t period_max, uint64_t ret[2])
{
	if (!period_max || period_max > t->period_max_ms)
		return;
	ret[0] = t->period_max_ms / (period_max + 1) + 1;
	ret[1] = t->period_max_ms / period_max;
	/* Longer than a division gives: a group's. */
	if (ret[0] > ret[1])
		ret[0] = ret[1];
}

static void take_over(uint64_t to[2], const uint64_t from[2])
{
	if (to[1])
		return;
	to[0] = from[0];
	to[1] = from[1];
}

static void look_around(struct nrp_scan_timeline *t, const struct nrp_scan_tunables *tunables)
{
	for (size_t i = 0; i < t->count; i++) {
		windows_of(tunables, t->at[i].period_max, t->at[i].before);
		windows_of(tunables, t->at[i].period_max, t->at[i].after);
		if (!i || t->at[i - 1].mm != t->at[i].mm)
			continue;
		take_over(t->at[i].before, t->at[i - 1].before);
		if (t->at[i - 1].end > t->at[i].end)
			t->at[i].end = t->at[i - 1].end;
	}
	for (size_t i = t->count; i-- > 1;)
		if (t->at[i - 1].mm == t->at[i].mm)
			take_over(t->at[i - 1].after, t->at[i].after);
}

int nrp_scan_timeline_load(struct nrp_scan_timeline **ret, struct nrp_store *store,
			   const struct nrp_capture *capture,
			   const struct nrp_scan_tunables *tunables, struct nrp_error *err)
{
	struct nrp_scan_timeline *t = calloc(1, sizeof(*t));
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = t ? nrp_cursor_open(&cursor, store, capture->id, NRP_SCAN_PASS, ~UINT64_C(0), err)
		  : nrp_fail_nomem(err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0)
		r = add(t, row) < 0 ? nrp_fail_nomem(err) : 0;
	nrp_cursor_close(cursor);
	if (r < 0) {
		nrp_scan_timeline_free(t);
		return r;
	}
	if (t->count)
		qsort(t->at, t->count, sizeof(*t->at), by_space_and_time);
	look_around(t, tunables);
	*ret = t;
	return 0;
}

struct nrp_scan_timeline *nrp_scan_timeline_free(struct nrp_scan_timeline *timeline)
{
	if (timeline)
		free(timeline->at);
	free(timeline);
	return NULL;
}

/* ---- a moment ------------------------------------------------------------------------- */

/* First point of the address space after @time, or the first of a later one. */
static size_t first_after(const struct nrp_scan_timeline *t, uint64_t mm, uint64_t time)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct point *p = &t->at[middle];

		if (p->mm < mm || (p->mm == mm && p->time <= time))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_seq(struct nrp_scan_state *s, int32_t seq)
{
	for (size_t i = 0; i < s->nr_seqs; i++)
		if (s->seq[i] == seq)
			return;
	s->seq[s->nr_seqs++] = seq;
}

/* A pass goes to the next sequence at most twice: at its begin and at its end. */
static int32_t next_seq(int32_t seq)
{
	return (int32_t)((uint32_t)seq + 1);
}

static void add_seqs(struct nrp_scan_state *s, const struct point *before,
		     const struct point *after, uint64_t time)
{
	if (before && !before->seq_known)
		before = NULL;
	if (after && !after->seq_known)
		after = NULL;
	if (before && (!after || after->seq < before->seq || time < before->end))
		add_seq(s, before->seq);
	if (before && (!after || after->seq < before->seq))
		add_seq(s, next_seq(before->seq));
	if (after)
		add_seq(s, after->seq);
}

static void add_windows(struct nrp_scan_state *s, const uint64_t windows[2])
{
	if (!windows[1])
		return;
	if (!s->windows_high || windows[0] < s->windows_low)
		s->windows_low = windows[0];
	if (windows[1] > s->windows_high)
		s->windows_high = windows[1];
}

struct nrp_scan_state nrp_scan_timeline_at(const struct nrp_scan_timeline *timeline, uint64_t mm,
					   uint64_t time)
{
	struct nrp_scan_state s = { 0 };
	size_t i = first_after(timeline, mm, time);
	const struct point *before =
		i && timeline->at[i - 1].mm == mm ? &timeline->at[i - 1] : NULL;
	const struct point *after =
		i < timeline->count && timeline->at[i].mm == mm ? &timeline->at[i] : NULL;

	add_seqs(&s, before, after, time);
	if (before)
		add_windows(&s, before->before);
	if (after)
		add_windows(&s, after->after);
	if (s.windows_high && (!before || !before->before[1] || !after || !after->after[1])) {
		s.windows_low -= s.windows_low > 1;
		s.windows_high++;
	}
	return s;
}
