/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages that a capture shows to be anonymous, for what is asked before the fault that shows it.
 *
 * An anonymous page that several processes map has been theirs since a fork: they can not come to
 * share it later. So if a fault shows such a page, and nobody has forked since an earlier fault of
 * the same address in the same address space (or of the same page frame at the same address), the
 * earlier fault was on that page too.
 */
#ifndef NRP_SCAN_PTE_PROOFS_H
#define NRP_SCAN_PTE_PROOFS_H

#include <stdbool.h>
#include <stdint.h>

struct nrp_scan_pte_proofs;

/* NULL: out of memory. */
struct nrp_scan_pte_proofs *nrp_scan_pte_proofs_new(void);
struct nrp_scan_pte_proofs *nrp_scan_pte_proofs_free(struct nrp_scan_pte_proofs *proofs);

/* A page of an address space; @frame: the kernel's pointer to it, 0: not known. */
struct nrp_proved_page {
	uint64_t mm, vfn, frame;
};

/* A fault at @time shows it, the last fork before was at @fork (ns). The first one counts. */
int nrp_scan_pte_proofs_add(struct nrp_scan_pte_proofs *proofs, const struct nrp_proved_page *page,
			    uint64_t time, uint64_t fork);
/* All of them were wrong. */
void nrp_scan_pte_proofs_revoke(struct nrp_scan_pte_proofs *proofs);
/*
 * Was the page of a fault at @time this page? 1, 0, or -ENOMEM. *ret_mm: where it was shown; unless
 * that is a relative, the frame was another page's then.
 */
int nrp_scan_pte_proofs_hold(struct nrp_scan_pte_proofs *proofs, const struct nrp_proved_page *page,
			     uint64_t time, uint64_t *ret_mm);

#endif
