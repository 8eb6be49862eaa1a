/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When a page was armed. The scanner passes over pages that are armed already: so it was the first
 * range after the page's last fault, unless the page came to be there later; then it was one of
 * those that followed. Within a range any ms is possible.
 */
#include "replay/pages.h"
#include "replay/tiering_internal.h"

#include <errno.h>
#include <stdlib.h>

#define SEARCH_LIMIT 4096 /* ranges looked back at: some tens of passes */

struct range {
	uint64_t mm, start, end; /* addresses */
	uint64_t from, to;       /* ns */
};

struct nrp_arming {
	struct range *range; /* by time */
	size_t count, room;
	struct nrp_pages *faults; /* payload: time of the page's last fault, uint64_t */
};

struct nrp_arming *nrp_arming_new(void)
{
	struct nrp_arming *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->faults = nrp_pages_new(sizeof(uint64_t));
	return a->faults ? a : nrp_arming_free(a);
}

struct nrp_arming *nrp_arming_free(struct nrp_arming *a)
{
	if (a) {
		nrp_pages_free(a->faults);
		free(a->range);
		free(a);
	}
	return NULL;
}

int nrp_arming_add(struct nrp_arming *a, const struct nrp_scan_range *r)
{
	if (NRP_NULL(r, scan_range, mm))
		return 0;
	if (a->count == a->room) {
		size_t room = a->room ? a->room * 2 : 256;
		struct range *grown = reallocarray(a->range, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		a->range = grown;
		a->room = room;
	}
	a->range[a->count++] = (struct range){
		.mm = r->mm,
		.start = r->start,
		.end = r->end,
		.from = r->time,
		.to = NRP_NULL(r, scan_range, end_time) ? UINT64_MAX : r->end_time,
	};
	return 0;
}

/* All ranges that may have armed the page between its last fault and this one. */
static struct nrp_armed search(const struct nrp_arming *a, const struct nrp_hint_fault *f,
			       uint64_t last_fault)
{
	const struct range *oldest = NULL, *newest = NULL, *likely;
	size_t searched = 0;

	for (size_t i = a->count; i-- > 0;) {
		const struct range *r = &a->range[i];

		if (r->from >= f->time)
			continue;
		if (r->to < last_fault)
			break;
		if (r->mm == f->mm && f->addr >= r->start && f->addr < r->end) {
			oldest = r;
			newest = newest ? newest : r;
		}
		if (++searched == SEARCH_LIMIT)
			return (struct nrp_armed){ .known = false };
	}
	if (!newest)
		return (struct nrp_armed){ .known = false };
	likely = last_fault ? oldest : newest;
	return (struct nrp_armed){
		.known = true,
		.from = oldest->from > last_fault ? oldest->from : last_fault,
		.to = newest->to < f->time ? newest->to : f->time,
		.middle = likely->from +
			  ((likely->to < f->time ? likely->to : f->time) - likely->from) / 2,
	};
}

int nrp_arming_fault(struct nrp_arming *a, const struct nrp_hint_fault *f, uint64_t page_size,
		     uint32_t pages, struct nrp_armed *ret)
{
	uint64_t *last;

	*ret = (struct nrp_armed){ .known = false };
	if (NRP_NULL(f, hint_fault, mm))
		return 0;
	last = nrp_pages_get(a->faults, f->mm, nrp_page_of(f->addr, page_size, pages));
	if (!last)
		return -ENOMEM;
	*ret = search(a, f, *last);
	*last = f->time;
	return 0;
}
