/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SLOTS 4096

/* Slots lie in one array: key, then payload. mm 0 with page 0 is a legal key: used tells. */
struct slot {
	uint64_t mm, page;
	uint64_t used;
};

struct nrp_pages {
	unsigned char *slots;
	size_t stride, mask, count;
};

static struct slot *slot_at(const struct nrp_pages *p, size_t i)
{
	return (struct slot *)(void *)(p->slots + i * p->stride);
}

static size_t home(uint64_t mm, uint64_t page)
{
	uint64_t x = mm * UINT64_C(0x9e3779b97f4a7c15) ^ page * UINT64_C(0xc2b2ae3d27d4eb4f);

	return (size_t)(x ^ x >> 29 ^ x >> 47);
}

struct nrp_pages *nrp_pages_new(size_t payload)
{
	struct nrp_pages *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->stride = (sizeof(struct slot) + payload + 7) & ~(size_t)7;
	p->mask = MIN_SLOTS - 1;
	p->slots = calloc(MIN_SLOTS, p->stride);
	if (!p->slots) {
		free(p);
		return NULL;
	}
	return p;
}

struct nrp_pages *nrp_pages_free(struct nrp_pages *p)
{
	if (p) {
		free(p->slots);
		free(p);
	}
	return NULL;
}

static struct slot *find(const struct nrp_pages *p, uint64_t mm, uint64_t page)
{
	size_t i = home(mm, page) & p->mask;

	for (;; i = (i + 1) & p->mask) {
		struct slot *s = slot_at(p, i);

		if (!s->used || (s->mm == mm && s->page == page))
			return s;
	}
}

static bool grow(struct nrp_pages *p)
{
	struct nrp_pages bigger = *p;

	bigger.mask = p->mask * 2 + 1;
	bigger.slots = calloc(bigger.mask + 1, p->stride);
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i <= p->mask; i++) {
		struct slot *s = slot_at(p, i);

		if (s->used)
			memcpy(find(&bigger, s->mm, s->page), s, p->stride);
	}
	free(p->slots);
	*p = bigger;
	return true;
}

void *nrp_pages_get(struct nrp_pages *p, uint64_t mm, uint64_t page)
{
	struct slot *s = find(p, mm, page);

	if (!s->used) {
		if (4 * (p->count + 1) > 3 * p->mask) {
			if (!grow(p))
				return NULL;
			s = find(p, mm, page);
		}
		*s = (struct slot){ .mm = mm, .page = page, .used = 1 };
		p->count++;
	}
	return s + 1;
}

void *nrp_pages_next(const struct nrp_pages *p, size_t *position, uint64_t *ret_mm,
		     uint64_t *ret_page)
{
	while (*position <= p->mask) {
		struct slot *s = slot_at(p, (*position)++);

		if (s->used) {
			*ret_mm = s->mm;
			*ret_page = s->page;
			return s + 1;
		}
	}
	return NULL;
}
