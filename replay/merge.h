/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of several kinds, merged in order of time. */
#ifndef NRP_MERGE_H
#define NRP_MERGE_H

#include "numareplay/store.h"

struct nrp_merge;

struct nrp_merge_input {
	enum nrp_record_kind kind;
	uint64_t columns; /* bits, as for nrp_cursor_open() */
};

/* @inputs: each kind once, up to NRP_MAX_MERGED; the list stays the caller's until the end. */
#define NRP_MAX_MERGED 8
int nrp_merge_open(struct nrp_merge **ret, struct nrp_store *store, int64_t capture_id,
		   const struct nrp_merge_input *inputs, size_t nr_inputs, struct nrp_error *err);
/*
 * 1: *ret_row is the next record, of *ret_kind, valid until the next call; 0: end; < 0: error. Of
 * equal times the input that is listed first comes first.
 */
int nrp_merge_next(struct nrp_merge *merge, enum nrp_record_kind *ret_kind, const void **ret_row,
		   struct nrp_error *err);
struct nrp_merge *nrp_merge_close(struct nrp_merge *merge);

/* Time of a record of any kind: it stands behind the NULL bits. */
static inline uint64_t nrp_row_time(const void *row)
{
	return ((const uint64_t *)row)[1];
}

#endif
