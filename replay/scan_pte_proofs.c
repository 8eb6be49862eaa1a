/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_pte_proofs.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>

struct proof {
	uint64_t time, fork; /* ns; time 0: none */
	uint64_t mm;
};

struct nrp_scan_pte_proofs {
	struct nrp_pages *by_mm, *by_frame;
	bool revoked;
};

struct nrp_scan_pte_proofs *nrp_scan_pte_proofs_new(void)
{
	struct nrp_scan_pte_proofs *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->by_mm = nrp_pages_new(sizeof(struct proof));
	p->by_frame = nrp_pages_new(sizeof(struct proof));
	return p->by_mm && p->by_frame ? p : nrp_scan_pte_proofs_free(p);
}

struct nrp_scan_pte_proofs *nrp_scan_pte_proofs_free(struct nrp_scan_pte_proofs *p)
{
	if (p) {
		nrp_pages_free(p->by_mm);
		nrp_pages_free(p->by_frame);
		free(p);
	}
	return NULL;
}

static int add(struct nrp_pages *table, uint64_t key, uint64_t vfn, const struct proof *proof)
{
	struct proof *first = nrp_pages_get(table, key, vfn);

	if (!first)
		return -ENOMEM;
	if (!first->time)
		*first = *proof;
	return 0;
}

int nrp_scan_pte_proofs_add(struct nrp_scan_pte_proofs *p, const struct nrp_proved_page *page,
			    uint64_t time, uint64_t fork)
{
	struct proof proof = { time, fork, page->mm };

	if (add(p->by_mm, page->mm, page->vfn, &proof) < 0)
		return -ENOMEM;
	return page->frame ? add(p->by_frame, page->frame, page->vfn, &proof) : 0;
}

void nrp_scan_pte_proofs_revoke(struct nrp_scan_pte_proofs *p)
{
	p->revoked = true;
}

static int holds(struct nrp_pages *table, uint64_t key, uint64_t vfn, uint64_t time,
		 uint64_t *ret_mm)
{
	const struct proof *first = nrp_pages_get(table, key, vfn);

	if (!first)
		return -ENOMEM;
	*ret_mm = first->mm;
	return first->time && first->time >= time && first->fork <= time;
}

int nrp_scan_pte_proofs_hold(struct nrp_scan_pte_proofs *p, const struct nrp_proved_page *page,
			     uint64_t time, uint64_t *ret_mm)
{
	int r;

	if (p->revoked)
		return 0;
	r = holds(p->by_mm, page->mm, page->vfn, time, ret_mm);
	return r || !page->frame ? r : holds(p->by_frame, page->frame, page->vfn, time, ret_mm);
}
