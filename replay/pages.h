/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page state: an open-addressing table keyed by (mm, page), with a payload of the caller's size. */
#ifndef NRP_PAGES_H
#define NRP_PAGES_H

#include <stddef.h>
#include <stdint.h>

struct nrp_pages;

/* @payload bytes per page, zeroed on first use. NULL: out of memory. */
struct nrp_pages *nrp_pages_new(size_t payload);
/*
 * The same for pages that come in runs of addresses: NRP_PAGES_BLOCK aligned neighbours lie side by
 * side and take the memory of all as soon as one is there.
 */
struct nrp_pages *nrp_pages_new_dense(size_t payload);
#define NRP_PAGES_BLOCK 16
struct nrp_pages *nrp_pages_free(struct nrp_pages *pages);
/* Payload of a page, made on first use; valid until the next call. NULL: out of memory. */
void *nrp_pages_get(struct nrp_pages *pages, uint64_t mm, uint64_t page);
/* Begins to fetch what nrp_pages_get() will look at. */
void nrp_pages_prefetch(const struct nrp_pages *pages, uint64_t mm, uint64_t page);
/*
 * Walks all pages in no particular but reproducible order: start with *position = 0; NULL at the
 * end.
 */
void *nrp_pages_next(const struct nrp_pages *pages, size_t *position, uint64_t *ret_mm,
		     uint64_t *ret_page);

/* First base page of the page of @size base pages (0 counts as 1) that holds @addr. */
static inline uint64_t nrp_page_of(uint64_t addr, uint64_t page_size, uint32_t size)
{
	uint64_t page = addr / page_size;

	return size > 1 ? page - page % size : page;
}

#endif
