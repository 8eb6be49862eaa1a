/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages that several address spaces map: forked copy-on-write pages and shared memory. Two names
 * (address space, virtual page) are one page once faults show the same page frame under both. A
 * move gives the page another frame, which the next fault under any of its names shows.
 */
#ifndef NRP_SHARED_PAGES_H
#define NRP_SHARED_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct nrp_shared_pages;

struct nrp_page_name {
	uint64_t space, vfn; /* number of the address space, virtual page */
};

/* NULL: out of memory. */
struct nrp_shared_pages *nrp_shared_pages_new(void);
struct nrp_shared_pages *nrp_shared_pages_free(struct nrp_shared_pages *pages);

/*
 * A fault under *name, in a mapping that begins at @vm_start (0: unknown), saw page frame @frame
 * (struct page pointer, not 0); @shared: the frame was mapped more than once, or the mapping is a
 * shared one. *name becomes the name under which the
 * page is known; *ret_joined: from this fault on; *ret_parted: it is another page than before
 * (copied on write, or replaced). -ENOMEM.
 */
int nrp_shared_pages_see(struct nrp_shared_pages *pages, struct nrp_page_name *name, uint64_t frame,
			 uint64_t vm_start, bool shared, bool *ret_joined, bool *ret_parted);
/* The page known as @name, as _see() gave it, was moved: its frame is not known any more. */
int nrp_shared_pages_moved(struct nrp_shared_pages *pages, const struct nrp_page_name *name,
			   uint64_t vm_start);

#endif
