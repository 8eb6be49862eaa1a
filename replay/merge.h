/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of several kinds, merged in order of time. */
#ifndef NRP_MERGE_H
#define NRP_MERGE_H

#include "numareplay/store.h"

struct nrp_merge_input {
	enum nrp_record_kind kind;
	uint64_t columns; /* bits, as for nrp_cursor_open() */
};

/* Takes a record, valid until it returns; -ENOMEM ends the reading. */
typedef int (*nrp_merge_fn)(void *context, enum nrp_record_kind kind, const void *row);

/*
 * Calls @see with each record of @inputs (each kind once, up to NRP_MAX_MERGED). Of equal times the
 * input that is listed first comes first. 0, or < 0: error.
 */
#define NRP_MAX_MERGED 8
int nrp_merge_each(struct nrp_store *store, int64_t capture_id,
		   const struct nrp_merge_input *inputs, size_t nr_inputs, nrp_merge_fn see,
		   void *context, struct nrp_error *err);

/*
 * The same of all that says what tasks do, in the order in which it happens at one time: life,
 * preferred node, moves, scan passes, and hinting faults with @fault_columns.
 */
int nrp_merge_task_records(struct nrp_store *store, int64_t capture_id, uint64_t fault_columns,
			   nrp_merge_fn see, void *context, struct nrp_error *err);

/* Time of a record of any kind: it stands behind the NULL bits. */
static inline uint64_t nrp_row_time(const void *row)
{
	return ((const uint64_t *)row)[1];
}

#endif
