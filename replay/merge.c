/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/merge.h"

struct input {
	enum nrp_record_kind kind;
	struct nrp_cursor *cursor;
	const void *row; /* not handed out yet; NULL: end */
};

static int advance(struct input *in, struct nrp_error *err)
{
	int r = nrp_cursor_next(in->cursor, &in->row, err);

	if (r <= 0)
		in->row = NULL;
	return r < 0 ? r : 0;
}

/* The input with the earliest row; NULL: all are at their end. */
static struct input *first_of(struct input *in, size_t n)
{
	struct input *first = NULL;

	for (size_t i = 0; i < n; i++)
		if (in[i].row && (!first || nrp_row_time(in[i].row) < nrp_row_time(first->row)))
			first = &in[i];
	return first;
}

int nrp_merge_each(struct nrp_store *store, int64_t capture_id,
		   const struct nrp_merge_input *inputs, size_t nr_inputs, nrp_merge_fn see,
		   void *context, struct nrp_error *err)
{
	struct input in[NRP_MAX_MERGED] = { { 0 } }, *first;
	int r = 0;

	if (nr_inputs > NRP_MAX_MERGED)
		return nrp_fail_nomem(err);
	for (size_t i = 0; r == 0 && i < nr_inputs; i++) {
		in[i].kind = inputs[i].kind;
		r = nrp_cursor_open(&in[i].cursor, store, capture_id, inputs[i].kind,
				    inputs[i].columns, err);
		if (r == 0)
			r = advance(&in[i], err);
	}
	while (r == 0 && (first = first_of(in, nr_inputs))) {
		r = see(context, first->kind, first->row);
		r = r < 0 ? nrp_fail_nomem(err) : advance(first, err);
	}
	for (size_t i = 0; i < nr_inputs; i++)
		nrp_cursor_close(in[i].cursor);
	return r;
}

int nrp_merge_task_records(struct nrp_store *store, int64_t capture_id, uint64_t fault_columns,
			   nrp_merge_fn see, void *context, struct nrp_error *err)
{
	const struct nrp_merge_input inputs[] = {
		{ NRP_TASK_LIFE, ~UINT64_C(0) },   { NRP_PREFERRED, ~UINT64_C(0) },
		{ NRP_TASK_MOVE, ~UINT64_C(0) },   { NRP_SCAN_PASS, ~UINT64_C(0) },
		{ NRP_HINT_FAULT, fault_columns },
	};

	return nrp_merge_each(store, capture_id, inputs, sizeof(inputs) / sizeof(inputs[0]), see,
			      context, err);
}
