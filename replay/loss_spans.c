/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/loss_spans.h"

#include <stdlib.h>
#include <string.h>

static int by_start(const void *a, const void *b)
{
	const struct nrp_loss_span *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Spans that overlap or meet become one. */
static void join(struct nrp_loss_spans *s)
{
	size_t n = 0;

	qsort(s->at, s->count, sizeof(*s->at), by_start);
	for (size_t i = 0; i < s->count; i++) {
		if (n && s->at[i].start <= s->at[n - 1].end) {
			if (s->at[i].end > s->at[n - 1].end)
				s->at[n - 1].end = s->at[i].end;
			continue;
		}
		s->at[n++] = s->at[i];
	}
	s->count = n;
}

int nrp_loss_spans_load(struct nrp_loss_spans *ret, struct nrp_store *store, int64_t capture_id,
			struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	uint64_t rows;
	const void *row;
	int r = nrp_store_count(store, capture_id, NRP_LOSS, &rows, err);

	memset(ret, 0, sizeof(*ret));
	if (r < 0 || !rows)
		return r;
	ret->at = calloc(rows, sizeof(*ret->at));
	if (!ret->at)
		return nrp_fail_nomem(err);
	r = nrp_cursor_open(&cursor, store, capture_id, NRP_LOSS, ~UINT64_C(0), err);
	while (r == 0 && ret->count < rows && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_loss *l = row;

		ret->at[ret->count].start = l->time;
		ret->at[ret->count++].end = NRP_NULL(l, loss, end_time) ? UINT64_MAX : l->end_time;
		r = 0;
	}
	nrp_cursor_close(cursor);
	if (r == 0)
		join(ret);
	return r;
}

void nrp_loss_spans_clear(struct nrp_loss_spans *spans)
{
	free(spans->at);
	memset(spans, 0, sizeof(*spans));
}

bool nrp_loss_spans_touch(const struct nrp_loss_spans *spans, uint64_t from, uint64_t to)
{
	size_t low = 0, high = spans->count; /* the first that ends behind @from */

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (spans->at[mid].end > from)
			high = mid;
		else
			low = mid + 1;
	}
	return low < spans->count && spans->at[low].start < to;
}
