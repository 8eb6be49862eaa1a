/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ring-buffer pages of one CPU written event by event, in the order of their times. */
#ifndef NRP_BENCH_RING_PAGE_H
#define NRP_BENCH_RING_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nrp_ring_pages {
	uint32_t page_size; /* bytes */
	uint32_t header;    /* bytes in front of the events: time and commit word */
	bool big;

	uint8_t *data; /* owned; whole pages, and behind them the one being written */
	size_t room;   /* bytes of data, whole pages */
	size_t full;   /* bytes of the whole pages */
	uint32_t used; /* bytes of the page being written, header included; 0: none */
	uint64_t time; /* ns, of the last event */
};

/*
 * Room for an event of @size payload bytes (a multiple of 4, up to 400) at @time, filled with
 * zeros; NULL when memory is short. Valid until the next call.
 */
uint8_t *nrp_ring_event(struct nrp_ring_pages *pages, uint64_t time, uint32_t size);
/* Ends the page being written, so that it counts as a whole one. */
void nrp_ring_flush(struct nrp_ring_pages *pages);
/* Forgets the whole pages. */
void nrp_ring_drop(struct nrp_ring_pages *pages);

#endif
