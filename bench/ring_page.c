/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bench/ring_page.h"

#include "tests/tools/trace_parts.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SHORT 112 /* payload bytes that the event header's length field can say */
#define DELTA_BITS 27
#define TYPE_TIME_EXTEND 30
#define GROW_PAGES 64

static uint8_t *here(struct nrp_ring_pages *pages)
{
	return pages->data + pages->full + pages->used;
}

static void put_u32(struct nrp_ring_pages *pages, uint32_t value)
{
	nrp_store_number(here(pages), value, 4, pages->big);
	pages->used += 4;
}

static void put_word(struct nrp_ring_pages *pages, uint32_t type, uint32_t delta)
{
	put_u32(pages, pages->big ? type << DELTA_BITS | delta : delta << 5 | type);
}

static bool begin_page(struct nrp_ring_pages *pages, uint64_t time)
{
	if (pages->full + pages->page_size > pages->room) {
		size_t n = pages->room + GROW_PAGES * (size_t)pages->page_size;
		uint8_t *grown = realloc(pages->data, n);

		if (!grown)
			return false;
		pages->data = grown;
		pages->room = n;
	}
	memset(pages->data + pages->full, 0, pages->page_size);
	nrp_store_number(pages->data + pages->full, time, 8, pages->big);
	pages->used = pages->header;
	pages->time = time;
	return true;
}

void nrp_ring_flush(struct nrp_ring_pages *pages)
{
	if (!pages->used)
		return;
	nrp_store_number(pages->data + pages->full + 8, pages->used - pages->header,
			 pages->header - 8, pages->big);
	pages->full += pages->page_size;
	pages->used = 0;
}

void nrp_ring_drop(struct nrp_ring_pages *pages)
{
	if (pages->used)
		memmove(pages->data, pages->data + pages->full, pages->page_size);
	pages->full = 0;
}

uint8_t *nrp_ring_event(struct nrp_ring_pages *pages, uint64_t time, uint32_t size)
{
	uint32_t need = 16 + size; /* a time extend and two words of header */
	uint64_t delta;

	if (pages->used && pages->used + need > pages->page_size)
		nrp_ring_flush(pages);
	if (!pages->used && !begin_page(pages, time))
		return NULL;
	delta = time - pages->time;
	if (delta >> DELTA_BITS) {
		put_word(pages, TYPE_TIME_EXTEND,
			 (uint32_t)(delta & ((UINT64_C(1) << DELTA_BITS) - 1)));
		put_u32(pages, (uint32_t)(delta >> DELTA_BITS));
		delta = 0;
	}
	put_word(pages, size <= MAX_SHORT ? size / 4 : 0, (uint32_t)delta);
	if (size > MAX_SHORT)
		put_u32(pages, size + 4);
	pages->time = time;
	pages->used += size;
	return here(pages) - size;
}
