/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SLOTS ((size_t)4096)
#define BLOCK_SHIFT 4

_Static_assert(1 << BLOCK_SHIFT == NRP_PAGES_BLOCK, "pages of a block");

/*
 * Slots lie in one array: key, then the payloads of one page or of a block of neighbours. mm 0 with
 * page 0 is a legal key: used tells.
 */
struct slot {
	uint64_t mm, block; /* page >> shift */
	uint64_t used;      /* bit i: page i of the block is there */
};

struct nrp_pages {
	unsigned char *slots;
	struct slot *last; /* found last, NULL: none: faults of one page and one block follow */
	size_t payload, stride, mask, count;
	unsigned int shift;
};

static struct slot *slot_at(const struct nrp_pages *p, size_t i)
{
	return (struct slot *)(void *)(p->slots + i * p->stride);
}

static size_t home(uint64_t mm, uint64_t block)
{
	uint64_t x = mm * UINT64_C(0x9e3779b97f4a7c15) ^ block * UINT64_C(0xc2b2ae3d27d4eb4f);

	return (size_t)(x ^ x >> 29 ^ x >> 47);
}

static struct nrp_pages *new_pages(size_t payload, unsigned int shift)
{
	struct nrp_pages *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->shift = shift;
	p->payload = (payload + 7) & ~(size_t)7;
	p->stride = sizeof(struct slot) + (p->payload << shift);
	p->mask = (MIN_SLOTS >> shift) - 1;
	p->slots = calloc(p->mask + 1, p->stride);
	if (!p->slots) {
		free(p);
		return NULL;
	}
	return p;
}

struct nrp_pages *nrp_pages_new(size_t payload)
{
	return new_pages(payload, 0);
}

struct nrp_pages *nrp_pages_new_dense(size_t payload)
{
	return new_pages(payload, BLOCK_SHIFT);
}

struct nrp_pages *nrp_pages_free(struct nrp_pages *p)
{
	if (p) {
		free(p->slots);
		free(p);
	}
	return NULL;
}

static struct slot *find(const struct nrp_pages *p, uint64_t mm, uint64_t block)
{
	size_t i = home(mm, block) & p->mask;

	for (;; i = (i + 1) & p->mask) {
		struct slot *s = slot_at(p, i);

		if (!s->used || (s->mm == mm && s->block == block))
			return s;
	}
}

static bool grow(struct nrp_pages *p)
{
	struct nrp_pages bigger = *p;

	bigger.last = NULL;
	bigger.mask = p->mask * 2 + 1;
	bigger.slots = calloc(bigger.mask + 1, p->stride);
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i <= p->mask; i++) {
		struct slot *s = slot_at(p, i);

		if (s->used)
			memcpy(find(&bigger, s->mm, s->block), s, p->stride);
	}
	free(p->slots);
	*p = bigger;
	return true;
}

/* A slot for the block, the only one in which @used may be 0. */
static struct slot *get_slot(struct nrp_pages *p, uint64_t mm, uint64_t block)
{
	struct slot *s = find(p, mm, block);

	if (s->used)
		return s;
	if (4 * (p->count + 1) > 3 * p->mask) {
		if (!grow(p))
			return NULL;
		s = find(p, mm, block);
	}
	s->mm = mm;
	s->block = block;
	p->count++;
	return s;
}

void *nrp_pages_get(struct nrp_pages *p, uint64_t mm, uint64_t page)
{
	uint64_t block = page >> p->shift, i = page & ((UINT64_C(1) << p->shift) - 1);
	struct slot *s = p->last;

	if (!s || s->mm != mm || s->block != block) {
		s = get_slot(p, mm, block);
		if (!s)
			return NULL;
		p->last = s;
	}
	s->used |= UINT64_C(1) << i;
	return (unsigned char *)(s + 1) + i * p->payload;
}

void nrp_pages_prefetch(const struct nrp_pages *p, uint64_t mm, uint64_t page)
{
	uint64_t block = page >> p->shift, i = page & ((UINT64_C(1) << p->shift) - 1);
	const struct slot *s = slot_at(p, home(mm, block) & p->mask);

	__builtin_prefetch(s);
	__builtin_prefetch((const unsigned char *)(s + 1) + i * p->payload, 1);
}

/* @position counts pages: block after block, each in the order of addresses. */
void *nrp_pages_next(const struct nrp_pages *p, size_t *position, uint64_t *ret_mm,
		     uint64_t *ret_page)
{
	size_t in_block = ((size_t)1 << p->shift) - 1;

	while (*position >> p->shift <= p->mask) {
		size_t i = *position & in_block;
		struct slot *s = slot_at(p, *position >> p->shift);

		++*position;
		if (!(s->used >> i & 1))
			continue;
		*ret_mm = s->mm;
		*ret_page = s->block << p->shift | i;
		return (unsigned char *)(s + 1) + i * p->payload;
	}
	return NULL;
}
