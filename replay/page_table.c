/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/page_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIN_SLOTS 4096
/*
 * Behind a full slot: odd, so that all are met in the end, and beyond the neighbours, which would
 * push one another on.
 */
#define STEP 9
#define LINE 64
#define HUGE_PAGE ((size_t)2 << 20) /* of most machines; only the speed depends on it */

_Static_assert(sizeof(struct nrp_page) == LINE, "a page is a cache line");

struct nrp_page_table {
	struct nrp_page *slots;
	size_t mask, count;
	const struct nrp_page_table_ops *ops;
};

/* Slots are met in random order: huge pages save most of the TLB misses. */
static struct nrp_page *new_slots(size_t n)
{
	bool huge = n * LINE >= HUGE_PAGE;
	struct nrp_page *slots = aligned_alloc(huge ? HUGE_PAGE : LINE, n * LINE);

	if (!slots)
		return NULL;
	if (huge)
		madvise(slots, n * LINE, MADV_HUGEPAGE); /* where it is not to be had: none */
	memset(slots, 0, n * LINE);
	return slots;
}

struct nrp_page_table *nrp_page_table_new(const struct nrp_page_table_ops *ops)
{
	struct nrp_page_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ops = ops;
	t->mask = MIN_SLOTS - 1;
	t->slots = new_slots(MIN_SLOTS);
	return t->slots ? t : nrp_page_table_free(t);
}

struct nrp_page_table *nrp_page_table_free(struct nrp_page_table *t)
{
	if (t) {
		free(t->slots);
		free(t);
	}
	return NULL;
}

/* A few neighbours lie in neighbouring slots: faults come in runs of addresses. */
static size_t home(uint32_t mm, uint64_t vfn)
{
	uint64_t block =
		(vfn >> 3) * UINT64_C(0x9e3779b97f4a7c15) ^ mm * UINT64_C(0xc2b2ae3d27d4eb4f);

	block ^= block >> 32;
	block *= UINT64_C(0x9fb21c651e98df25);
	block ^= block >> 28;
	return (size_t)((block << 3) | (vfn & 7));
}

/* The page that begins at @vfn, or the free slot for it. */
static struct nrp_page *slot_of(const struct nrp_page_table *t, uint32_t mm, uint64_t vfn)
{
	for (size_t i = home(mm, vfn) & t->mask;; i = (i + STEP) & t->mask) {
		struct nrp_page *p = &t->slots[i];

		if (!p->mm || (p->vfn == vfn && p->mm == mm))
			return p;
	}
}

static bool grow(struct nrp_page_table *t)
{
	struct nrp_page_table bigger = *t;

	bigger.mask = t->mask * 2 + 1;
	bigger.slots = new_slots(bigger.mask + 1);
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i <= t->mask; i++)
		if (t->slots[i].mm)
			*slot_of(&bigger, t->slots[i].mm, t->slots[i].vfn) = t->slots[i];
	free(t->slots);
	*t = bigger;
	return true;
}

static struct nrp_page *make(struct nrp_page_table *t, uint32_t mm, uint64_t vfn, uint32_t pages)
{
	struct nrp_page *p = slot_of(t, mm, vfn);

	if (!p->mm) {
		if (2 * (t->count + 1) > t->mask) {
			if (!grow(t))
				return NULL;
			p = slot_of(t, mm, vfn);
		}
		t->count++;
	}
	*p = (struct nrp_page){ .vfn = vfn, .mm = mm, .pages = pages };
	return p;
}

/* ---- sizes -------------------------------------------------------------------------- */

static uint32_t order_of(uint32_t pages)
{
	return pages > 1 ? 32 - (uint32_t)__builtin_clz(pages - 1) : 0;
}

/* Pages of one size lie at multiples of it. */
static uint64_t head(uint64_t vfn, uint32_t pages)
{
	return pages > 1 ? vfn - vfn % pages : vfn;
}

static struct nrp_page *live(const struct nrp_page_table *t, uint32_t mm, uint64_t vfn)
{
	struct nrp_page *p = slot_of(t, mm, vfn);

	return p->mm && p->pages ? p : NULL;
}

/* The page of any size in use that holds @vfn. */
static struct nrp_page *holding(const struct nrp_page_table *t, const struct nrp_mm *mm,
				uint32_t number, uint64_t vfn)
{
	for (uint32_t orders = mm->orders; orders; orders &= orders - 1) {
		uint32_t order = (uint32_t)__builtin_ctz(orders);
		struct nrp_page *p = live(t, number, head(vfn, 1u << order));

		if (p && vfn - p->vfn < p->pages)
			return p;
	}
	return NULL;
}

/* Cuts a copy of @whole's state into the aligned piece of @pages that begins at @vfn. */
static int cut(struct nrp_page_table *t, struct nrp_page *whole, uint64_t vfn, uint32_t pages)
{
	struct nrp_page *piece = make(t, whole->mm, vfn, pages);

	if (!piece)
		return -1;
	*piece = *whole;
	piece->vfn = vfn;
	piece->pages = pages;
	return t->ops->copy(t->ops->context, whole, piece);
}

/* Splits a larger page so that one of @pages begins at @vfn: halves, as the buddy system does. */
static struct nrp_page *split(struct nrp_page_table *t, struct nrp_mm *mm, struct nrp_page *larger,
			      uint64_t vfn, uint32_t pages)
{
	struct nrp_page whole = *larger;
	uint64_t first = whole.vfn;
	uint32_t size = whole.pages;

	while (size > pages && size % 2 == 0) {
		uint64_t other = first;

		size /= 2;
		mm->orders |= 1u << order_of(size);
		if (vfn >= first + size)
			first += size;
		else
			other = first + size;
		if (cut(t, &whole, other, size) < 0)
			return NULL;
	}
	if (cut(t, &whole, first, size) < 0)
		return NULL;
	t->ops->end(t->ops->context, &whole, true);
	return live(t, whole.mm, first);
}

static void end_page(struct nrp_page_table *t, struct nrp_page *p)
{
	t->ops->end(t->ops->context, p, false);
	p->pages = 0;
}

/* Base pages and smaller folios that a new folio takes the place of. */
static void end_smaller(struct nrp_page_table *t, const struct nrp_mm *mm, uint32_t number,
			uint64_t vfn, uint32_t pages)
{
	if (!(mm->orders & ((1u << order_of(pages)) - 1)))
		return;
	if (pages > t->mask) {
		for (size_t i = 0; i <= t->mask; i++) {
			struct nrp_page *p = &t->slots[i];

			if (p->mm == number && p->pages && p->vfn - vfn < pages)
				end_page(t, p);
		}
		return;
	}
	for (uint64_t v = vfn; v - vfn < pages; v++) {
		struct nrp_page *p = live(t, number, v);

		if (p)
			end_page(t, p);
	}
}

struct nrp_page *nrp_page_table_get(struct nrp_page_table *t, struct nrp_mm *mm, uint32_t number,
				    uint64_t vfn, uint32_t pages)
{
	struct nrp_page *p;
	uint64_t first;

	/* Folios have powers of two; what is not one is no size. */
	if (pages & (pages - 1) || pages > NRP_MAX_HUGE_PAGES)
		pages = 0;
	first = head(vfn, pages);
	p = slot_of(t, ++number, first);
	if (p->mm && p->pages && p->pages == pages)
		return p;
	p = holding(t, mm, number, vfn);
	if (p && (!pages || p->pages == pages))
		return p;
	if (!pages)
		pages = 1;
	if (p && p->pages > pages)
		return split(t, mm, p, first, pages);
	end_smaller(t, mm, number, first, pages);
	mm->orders |= 1u << order_of(pages);
	return make(t, number, first, pages);
}

void nrp_page_table_prefetch(const struct nrp_page_table *t, uint32_t number, uint64_t vfn)
{
	__builtin_prefetch(&t->slots[home(number + 1, vfn) & t->mask], 1);
}

const struct nrp_page *nrp_page_table_peek(const struct nrp_page_table *t, uint32_t number,
					   uint64_t vfn)
{
	const struct nrp_page *p = &t->slots[home(number + 1, vfn) & t->mask];

	return p->vfn == vfn && p->mm == number + 1 ? p : NULL;
}

struct nrp_page *nrp_page_table_find(struct nrp_page_table *t, const struct nrp_mm *mm,
				     uint32_t number, uint64_t vfn)
{
	return holding(t, mm, number + 1, vfn);
}

struct nrp_page *nrp_page_table_next(struct nrp_page_table *t, size_t *position)
{
	while (*position <= t->mask) {
		struct nrp_page *p = &t->slots[(*position)++];

		if (p->mm && p->pages)
			return p;
	}
	return NULL;
}
