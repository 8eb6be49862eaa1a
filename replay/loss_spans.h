/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The times of a capture in which events are missing, on any CPU. */
#ifndef NRP_LOSS_SPANS_H
#define NRP_LOSS_SPANS_H

#include "numareplay/store.h"

struct nrp_loss_spans {
	struct nrp_loss_span {
		uint64_t start, end; /* ns; UINT64_MAX: to the end */
	} * at;                      /* by time, apart from each other */
	size_t count;
};

/* Reads the records of losses; nrp_loss_spans_clear() frees, after a failure too. */
int nrp_loss_spans_load(struct nrp_loss_spans *ret, struct nrp_store *store, int64_t capture_id,
			struct nrp_error *err);
void nrp_loss_spans_clear(struct nrp_loss_spans *spans);
/*
 * Can an event between @from and @to (ns) be missing? A task may have been on any CPU then, so that
 * a loss on any of them counts.
 */
bool nrp_loss_spans_touch(const struct nrp_loss_spans *spans, uint64_t from, uint64_t to);

#endif
