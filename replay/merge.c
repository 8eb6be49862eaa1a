/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/merge.h"

#include <errno.h>
#include <stdlib.h>

struct nrp_merge {
	struct {
		enum nrp_record_kind kind;
		struct nrp_cursor *cursor;
		const void *row; /* not handed out yet; NULL: end */
	} input[NRP_MAX_MERGED];
	size_t nr_inputs;
	size_t taken; /* whose row the caller has; nr_inputs: none */
};

static int advance(struct nrp_merge *m, size_t i, struct nrp_error *err)
{
	int r = nrp_cursor_next(m->input[i].cursor, &m->input[i].row, err);

	if (r <= 0)
		m->input[i].row = NULL;
	return r < 0 ? r : 0;
}

int nrp_merge_open(struct nrp_merge **ret, struct nrp_store *store, int64_t capture_id,
		   const struct nrp_merge_input *inputs, size_t nr_inputs, struct nrp_error *err)
{
	struct nrp_merge *m = calloc(1, sizeof(*m));
	int r = 0;

	if (!m || nr_inputs > NRP_MAX_MERGED) {
		free(m);
		return nrp_fail_nomem(err);
	}
	m->nr_inputs = m->taken = nr_inputs;
	for (size_t i = 0; r == 0 && i < nr_inputs; i++) {
		m->input[i].kind = inputs[i].kind;
		r = nrp_cursor_open(&m->input[i].cursor, store, capture_id, inputs[i].kind,
				    inputs[i].columns, err);
		if (r == 0)
			r = advance(m, i, err);
	}
	if (r < 0) {
		nrp_merge_close(m);
		return r;
	}
	*ret = m;
	return 0;
}

int nrp_merge_next(struct nrp_merge *m, enum nrp_record_kind *ret_kind, const void **ret_row,
		   struct nrp_error *err)
{
	size_t first = m->nr_inputs;
	int r = m->taken < m->nr_inputs ? advance(m, m->taken, err) : 0;

	m->taken = m->nr_inputs;
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->nr_inputs; i++)
		if (m->input[i].row &&
		    (first == m->nr_inputs ||
		     nrp_row_time(m->input[i].row) < nrp_row_time(m->input[first].row)))
			first = i;
	if (first == m->nr_inputs)
		return 0;
	m->taken = first;
	*ret_kind = m->input[first].kind;
	*ret_row = m->input[first].row;
	return 1;
}

struct nrp_merge *nrp_merge_close(struct nrp_merge *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->nr_inputs; i++)
		nrp_cursor_close(m->input[i].cursor);
	free(m);
	return NULL;
}
