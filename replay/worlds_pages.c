/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where pages lie in each world, and what the locality book is told of it. */
#include "replay/worlds_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- places ------------------------------------------------------------------------- */

uint32_t nrp_worlds_take_places(struct nrp_worlds *w)
{
	uint32_t number = w->free_place;

	if (number) {
		w->free_place = nrp_worlds_places(w, number)->last_cpupid;
		return number;
	}
	if (w->nr_places + 1 >= w->room_places) {
		uint32_t room = w->room_places ? w->room_places * 2 : 1024;
		struct nrp_place *grown =
			reallocarray(w->places, room, (size_t)w->nr_worlds * sizeof(*w->places));

		if (!grown)
			return 0;
		w->places = grown;
		w->room_places = room;
	}
	return ++w->nr_places;
}

void nrp_worlds_give_back(struct nrp_worlds *w, struct nrp_page *p)
{
	if (!p->split)
		return;
	nrp_worlds_places(w, p->split)->last_cpupid = w->free_place;
	w->free_place = p->split;
	p->split = 0;
}

static int copy_page(void *context, const struct nrp_page *page, struct nrp_page *piece)
{
	struct nrp_worlds *w = context;
	float share = (float)piece->pages / (float)page->pages;

	piece->remote_seconds *= share;
	piece->differs *= share;
	w->totals.splits++;
	if (!page->split)
		return 0;
	piece->split = nrp_worlds_take_places(w);
	if (!piece->split)
		return -ENOMEM;
	memcpy(nrp_worlds_places(w, piece->split), nrp_worlds_places(w, page->split),
	       (size_t)w->nr_worlds * sizeof(*w->places));
	return 0;
}

/* ---- page-time ---------------------------------------------------------------------- */

int nrp_worlds_account(struct nrp_worlds *w, struct nrp_page *p, uint64_t now, int next_accessor)
{
	double seconds =
		now > p->last_time ? (double)(now - p->last_time) * 1e-9 * (double)p->pages : 0;
	const struct nrp_place *place = p->split ? nrp_worlds_places(w, p->split) : NULL;
	double previous = p->nid != p->accessor ? seconds : 0;
	double next = next_accessor != NRP_NOWHERE && p->nid != next_accessor ? seconds : 0;
	bool last = next_accessor == NRP_NOWHERE;
	int r = 0;

	nrp_locality_held(w->locality, p->vma, p->accessor, previous, 0, last);
	if (next > 0)
		nrp_locality_held(w->locality, p->vma, next_accessor, 0, next, false);
	p->remote_seconds += (float)previous;
	for (int i = 0; r == 0 && place && i < w->nr_worlds; i++) {
		int nid = place[i].nid;
		double more = (nid != p->accessor ? seconds : 0) - previous;

		if (nid == p->nid)
			continue;
		w->world[i].result.tainted_seconds += seconds;
		if (i == 0)
			p->differs += (float)more;
		r = nrp_locality_held_differs(w->locality, p->vma, i, p->accessor, more, 0, last);
		if (r == 0)
			r = nrp_locality_uncertain(w->locality, p->vma, i, seconds);
		if (r == 0 && !last)
			r = nrp_locality_held_differs(w->locality, p->vma, i, next_accessor, 0,
						      (nid != next_accessor ? seconds : 0) - next,
						      false);
	}
	return r;
}

/* Enters what the locality book holds of a page as it lies now (@now negative), or takes it out. */
static int book_page(struct nrp_worlds *w, const struct nrp_page *p, double now)
{
	const struct nrp_place *place = p->split ? nrp_worlds_places(w, p->split) : NULL;
	double pages = (double)p->pages;
	int r = 0;

	nrp_locality_lie(w->locality, p->vma, p->nid, pages, now);
	for (int i = 0; r == 0 && place && i < w->nr_worlds; i++)
		if (place[i].nid != p->nid)
			r = nrp_locality_lie_differs(w->locality, p->vma, i, place[i].nid, p->nid,
						     pages, now);
	return r;
}

/* Its last user stays until now; what the VMA needs for that it has since the page's first fault.
 */
void nrp_worlds_close_page(struct nrp_worlds *w, struct nrp_page *p)
{
	const struct nrp_mm *mm = nrp_address_space(w->spaces, p->mm - 1);
	struct nrp_place *place = p->split ? nrp_worlds_places(w, p->split) : NULL;

	w->failed |= nrp_worlds_account(w, p, w->now, NRP_NOWHERE) < 0;
	w->totals.page_seconds += nrp_worlds_seconds(w, w->now) * p->pages;
	for (int i = 0; place && i < w->nr_worlds; i++)
		nrp_world_missing(w, i, &place[i], p->vfn << w->page_shift, mm, w->now);
	w->failed |= book_page(w, p, nrp_worlds_seconds(w, w->now)) < 0;
}

static void end_page(void *context, struct nrp_page *page, bool continued)
{
	struct nrp_worlds *w = context;

	if (!page->seen)
		return;
	if (!continued)
		nrp_worlds_close_page(w, page);
	nrp_worlds_give_back(w, page);
}

void nrp_worlds_end_page(struct nrp_worlds *w, struct nrp_page *page)
{
	end_page(w, page, false);
}

struct nrp_page_table *nrp_worlds_new_pages(struct nrp_worlds *w)
{
	w->ops = (struct nrp_page_table_ops){ copy_page, end_page, w };
	return nrp_page_table_new(&w->ops);
}

int nrp_worlds_book_changes(struct nrp_worlds *w, const struct nrp_step *s,
			    const struct nrp_place *before, const struct nrp_place *after)
{
	const struct nrp_page *p = s->page;
	double now = nrp_worlds_seconds(w, s->f->time), pages = (double)p->pages;
	int r = 0;

	if (p->nid != s->observed_nid) {
		nrp_locality_lie(w->locality, p->vma, p->nid, pages, now);
		nrp_locality_lie(w->locality, p->vma, s->observed_nid, pages, -now);
	}
	for (int i = 0; r == 0 && i < w->nr_worlds; i++) {
		if (before[i].nid == after[i].nid && p->nid == s->observed_nid)
			continue;
		if (before[i].nid != p->nid)
			r = nrp_locality_lie_differs(w->locality, p->vma, i, before[i].nid, p->nid,
						     pages, now);
		if (r == 0 && after[i].nid != s->observed_nid)
			r = nrp_locality_lie_differs(w->locality, p->vma, i, after[i].nid,
						     s->observed_nid, pages, -now);
	}
	return r;
}

int nrp_worlds_move_externally(struct nrp_worlds *w, struct nrp_page *p, int nid)
{
	double now = nrp_worlds_seconds(w, w->now);

	if (book_page(w, p, now) < 0)
		return -ENOMEM;
	p->nid = (int16_t)nid;
	for (int i = 0; p->split && i < w->nr_worlds; i++)
		nrp_worlds_places(w, p->split)[i].nid = p->nid;
	return book_page(w, p, -now);
}

/* ---- the end ------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x < y) - (x > y);
}

/* Share of the first hundredth of @n values, largest first, in their sum. */
static double top_share(float *values, size_t n)
{
	double sum = 0, top = 0;
	size_t first = (n + 99) / 100;

	qsort(values, n, sizeof(*values), by_size);
	for (size_t i = 0; i < n; i++) {
		sum += (double)values[i];
		top += i < first ? (double)values[i] : 0;
	}
	return sum > 0 ? top / sum : 0;
}

int nrp_worlds_concentrate(struct nrp_worlds *w)
{
	float *record, *world;
	const struct nrp_page *p;
	size_t position = 0, n = 0;

	while (nrp_page_table_next(w->pages, &position))
		w->totals.pages++;
	record = calloc(w->totals.pages + 1, sizeof(*record));
	world = calloc(w->totals.pages + 1, sizeof(*world));
	position = 0;
	while (record && world && (p = nrp_page_table_next(w->pages, &position))) {
		record[n] = p->remote_seconds;
		world[n++] = p->remote_seconds + p->differs;
	}
	if (record && world) {
		w->totals.concentration = top_share(record, n);
		w->totals.world_concentration = top_share(world, n);
	}
	n = record && world;
	free(record);
	free(world);
	return n ? 0 : -ENOMEM;
}
