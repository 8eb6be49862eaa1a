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
		w->free_place = nrp_worlds_places(w, number)->next_free;
		return number;
	}
	if (w->nr_places + 1 >= w->room_places) {
		uint32_t room = w->room_places ? w->room_places * 2 : 1024;
		unsigned char *grown = reallocarray(w->places, room, w->places_size);

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
	nrp_worlds_places(w, p->split)->next_free = w->free_place;
	w->free_place = p->split;
	p->split = 0;
}

void nrp_places_add(struct nrp_places *places, uint32_t worlds, const struct nrp_place *place)
{
	struct nrp_group *g = places->group, *end = g + places->count;

	for (; g < end; g++)
		if (nrp_place_equal(&g->place, place))
			break;
	if (g == end) {
		g->worlds = 0;
		g->place = *place;
		places->count++;
	}
	g->worlds |= worlds;
}

static int copy_page(void *context, struct nrp_page *page, struct nrp_page *piece)
{
	struct nrp_worlds *w = context;
	float share = (float)piece->pages / (float)page->pages;

	if (page->split && nrp_worlds_book_time(w, page) < 0)
		return -ENOMEM;
	piece->remote_seconds = page->remote_seconds * share;
	piece->differs = page->differs * share;
	w->totals.splits++;
	if (!page->split)
		return 0;
	piece->split = nrp_worlds_take_places(w);
	if (!piece->split)
		return -ENOMEM;
	memcpy(nrp_worlds_places(w, piece->split), nrp_worlds_places(w, page->split),
	       w->places_size);
	return 0;
}

/* ---- page-time ---------------------------------------------------------------------- */

/* Page-seconds between two faults of a page, or of many such spans: their sum, and their squares'.
 */
struct span {
	double seconds, squares;
	int accessor, next; /* nodes of the faults, NRP_NOWHERE: none */
};

/* What the worlds have more or less of remote page-time than the record. */
static int book_differences(struct nrp_worlds *w, struct nrp_page *p, const struct span *span)
{
	const struct nrp_places *places = nrp_worlds_places(w, p->split);
	bool last = span->next == NRP_NOWHERE;
	int r = 0;

	for (int k = 0; k < places->count; k++) {
		int nid = places->group[k].place.nid;
		double more =
			span->seconds * ((nid != span->accessor) - (p->nid != span->accessor));
		double more_next = span->seconds * ((nid != span->next) - (p->nid != span->next));

		if (nid == p->nid)
			continue;
		for (uint32_t left = places->group[k].worlds; r == 0 && left;) {
			int i = nrp_next_world(&left);

			w->world[i].result.tainted_seconds += span->seconds;
			if (i == 0)
				p->differs += (float)more;
			r = nrp_locality_held_differs(w->locality, p->vma, i, span->accessor, more,
						      0, last);
			if (r == 0)
				r = nrp_locality_uncertain(w->locality, p->vma, i, span->squares);
			if (r == 0 && !last)
				r = nrp_locality_held_differs(w->locality, p->vma, i, span->next, 0,
							      more_next, false);
		}
	}
	return r;
}

int nrp_worlds_book_time(struct nrp_worlds *w, struct nrp_page *p)
{
	struct nrp_places *places = nrp_worlds_places(w, p->split);
	struct span span = { places->seconds, places->squares, p->nid, p->nid };

	places->seconds = places->squares = 0;
	return span.seconds > 0 ? book_differences(w, p, &span) : 0;
}

int nrp_worlds_account(struct nrp_worlds *w, struct nrp_page *p, uint64_t now, int next_accessor)
{
	double seconds =
		now > p->last_time ? (double)(now - p->last_time) * 1e-9 * (double)p->pages : 0;
	struct span span = { seconds, seconds * seconds, p->accessor, next_accessor };
	double previous = p->nid != p->accessor ? seconds : 0;

	if (p->split && p->nid == p->accessor && p->nid == next_accessor) {
		struct nrp_places *places = nrp_worlds_places(w, p->split);

		places->seconds += span.seconds;
		places->squares += span.squares;
		return 0;
	}
	nrp_locality_held(w->locality, p->vma, p->accessor, previous, 0,
			  next_accessor == NRP_NOWHERE);
	if (next_accessor != NRP_NOWHERE && p->nid != next_accessor && seconds > 0)
		nrp_locality_held(w->locality, p->vma, next_accessor, 0, seconds, false);
	p->remote_seconds += (float)previous;
	if (!p->split)
		return 0;
	if (nrp_worlds_book_time(w, p) < 0)
		return -ENOMEM;
	return book_differences(w, p, &span);
}

/* Enters what the locality book holds of a page as it lies now (@now negative), or takes it out. */
static int book_page(struct nrp_worlds *w, const struct nrp_page *p, double now)
{
	const struct nrp_places *places = p->split ? nrp_worlds_places(w, p->split) : NULL;
	double pages = (double)p->pages;
	int r = 0;

	nrp_locality_lie(w->locality, p->vma, p->nid, pages, now);
	for (int k = 0; places && k < places->count; k++) {
		int nid = places->group[k].place.nid;
		uint32_t left = nid == p->nid ? 0 : places->group[k].worlds;

		while (r == 0 && left)
			r = nrp_locality_lie_differs(w->locality, p->vma, nrp_next_world(&left),
						     nid, p->nid, pages, now);
	}
	return r;
}

/* Its last user stays until now; what the VMA needs for that it has since the page's first fault.
 */
void nrp_worlds_close_page(struct nrp_worlds *w, struct nrp_page *p)
{
	const struct nrp_mm *mm = nrp_address_space(w->spaces, p->mm - 1);
	struct nrp_places *places = p->split ? nrp_worlds_places(w, p->split) : NULL;

	w->failed |= nrp_worlds_account(w, p, w->now, NRP_NOWHERE) < 0;
	w->totals.page_seconds += nrp_worlds_seconds(w, w->now) * p->pages;
	for (int k = 0; places && k < places->count; k++)
		for (uint32_t left = places->group[k].worlds; left;) {
			struct nrp_place place = places->group[k].place;

			nrp_world_missing(w, nrp_next_world(&left), &place, p->vfn << w->page_shift,
					  mm, w->now, place.nid != p->nid ? p->pages : 0);
		}
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
	struct nrp_places *places = p->split ? nrp_worlds_places(w, p->split) : NULL;

	if (places && nrp_worlds_book_time(w, p) < 0)
		return -ENOMEM;
	if (book_page(w, p, now) < 0)
		return -ENOMEM;
	p->nid = (int16_t)nid;
	for (int k = 0; places && k < places->count; k++)
		places->group[k].place.nid = p->nid;
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
