/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_history.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_LIMIT 4096 /* ranges looked back at: some tens of passes */

struct nrp_scan_history {
	struct nrp_pages *mms; /* payload: struct nrp_mm_history */
};

struct nrp_scan_history *nrp_scan_history_new(void)
{
	struct nrp_scan_history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->mms = nrp_pages_new(sizeof(struct nrp_mm_history));
	if (!h->mms) {
		free(h);
		return NULL;
	}
	return h;
}

struct nrp_scan_history *nrp_scan_history_free(struct nrp_scan_history *h)
{
	struct nrp_mm_history *mm;
	size_t position = 0;
	uint64_t key, page;

	if (!h)
		return NULL;
	while ((mm = nrp_pages_next(h->mms, &position, &key, &page)))
		free(mm->ranges);
	nrp_pages_free(h->mms);
	free(h);
	return NULL;
}

struct nrp_mm_history *nrp_scan_history_mm(struct nrp_scan_history *h, uint64_t mm)
{
	return nrp_pages_get(h->mms, mm, 0);
}

int nrp_mm_history_add(struct nrp_mm_history *mm, uint64_t start, uint64_t end, uint64_t time)
{
	if (mm->count == mm->room) {
		size_t room = mm->room ? mm->room * 2 : 64;
		struct nrp_armed_range *grown = reallocarray(mm->ranges, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		mm->ranges = grown;
		mm->room = room;
	}
	mm->ranges[mm->count++] = (struct nrp_armed_range){
		.start = start, .end = end, .time = time, .kept = mm->kept
	};
	return 0;
}

const struct nrp_armed_range *nrp_mm_history_armed(const struct nrp_mm_history *mm, uint64_t addr,
						   uint64_t time, bool *ret_unsure)
{
	size_t searched = 0;

	*ret_unsure = false;
	for (size_t i = mm->count; i-- > 0;) {
		const struct nrp_armed_range *g = &mm->ranges[i];

		if (g->time < time && addr >= g->start && addr < g->end)
			return g;
		if (++searched == SEARCH_LIMIT) {
			*ret_unsure = true;
			break;
		}
	}
	return NULL;
}

uint64_t nrp_mm_history_count(const struct nrp_mm_history *mm, uint64_t addr, uint64_t from,
			      uint64_t to)
{
	size_t low = 0, high = mm->count;
	uint64_t n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mm->ranges[middle].time <= from)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < mm->count && mm->ranges[low].time <= to; low++)
		n += addr >= mm->ranges[low].start && addr < mm->ranges[low].end;
	return n;
}
