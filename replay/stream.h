/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records that move worlds, of several kinds, merged in the order in which the kernel decided.
 */
#ifndef NRP_STREAM_H
#define NRP_STREAM_H

#include "numareplay/store.h"

struct nrp_replay_stream;

/* Ties go to the kind that comes first. */
enum nrp_replay_stream_kind {
	NRP_STREAM_LIFE,
	NRP_STREAM_MOVE,
	NRP_STREAM_PASS,
	NRP_STREAM_RANGE,
	NRP_STREAM_PAGE_FAULT,
	NRP_STREAM_FAULT
};

/* @columns: of hint_fault, beside those that worlds need. @page_faults: these are wanted, too. */
int nrp_replay_stream_open(struct nrp_replay_stream **ret, struct nrp_store *store,
			   int64_t capture_id, uint64_t columns, bool page_faults,
			   struct nrp_error *err);
/*
 * 1: *ret_row is the next record, of *ret_kind, valid until the next call; 0: end; < 0: error.
 * Faults come by decision time; those with an attempt in the order of nrp_attempts_load() (ties:
 * cpu, tid).
 */
int nrp_replay_stream_next(struct nrp_replay_stream *stream, enum nrp_replay_stream_kind *ret_kind,
			   const void **ret_row, struct nrp_error *err);
/* The fault @rows later, to fetch what it needs; NULL: not known. */
const struct nrp_hint_fault *nrp_replay_stream_ahead(const struct nrp_replay_stream *stream,
						     uint32_t rows);
struct nrp_replay_stream *nrp_replay_stream_close(struct nrp_replay_stream *stream);

#endif
