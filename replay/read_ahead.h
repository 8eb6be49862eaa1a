/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a cursor's rows some way ahead, in a thread of its own where the machine has a second CPU.
 * The rows and their order are the cursor's.
 */
#ifndef NRP_READ_AHEAD_H
#define NRP_READ_AHEAD_H

#include "numareplay/store.h"

struct nrp_read_ahead;

/* Takes @cursor over, even on failure; its rows have @row_size bytes. */
int nrp_read_ahead_open(struct nrp_read_ahead **ret, struct nrp_cursor *cursor, size_t row_size,
			struct nrp_error *err);
/* 1: *ret_row is the next row, valid until the next call; 0: end; < 0: the cursor's error. */
int nrp_read_ahead_next(struct nrp_read_ahead *ahead, const void **ret_row, struct nrp_error *err);
/* The row @rows after the one handed out last; NULL: not read yet, or behind the end. */
const void *nrp_read_ahead_peek(const struct nrp_read_ahead *ahead, uint32_t rows);
struct nrp_read_ahead *nrp_read_ahead_close(struct nrp_read_ahead *ahead);

#endif
