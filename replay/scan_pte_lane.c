/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_pte_internal.h"
#include "replay/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int nrp_scan_pte_lane_new(struct nrp_scan_pte_lane **ret, const struct nrp_host_facts *facts,
			  int host_variant)
{
	struct nrp_scan_pte_lane *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->facts = facts;
	l->host = host_variant;
	l->page_size = nrp_host_page_size(facts);
	l->huge_pages = nrp_host_huge_pages(facts);
	l->huge_size = l->page_size * l->huge_pages;
	/* With a prepare step the page is taken after the policy was asked, before that ahead. */
	l->own_references = facts->has_prepare_step ? 0 : 1;
	l->nr_families = 1;
	l->tasks = nrp_pages_new(sizeof(struct nrp_pte_task));
	l->mms = nrp_pages_new(sizeof(struct nrp_pte_mm));
	l->cells = nrp_pages_new(sizeof(struct nrp_pte_cell));
	l->pages = nrp_pages_new_dense(sizeof(struct nrp_pte_page));
	l->proved = nrp_pages_new_dense(sizeof(uint64_t));
	l->everyones = nrp_pages_new_dense(sizeof(struct nrp_pte_everyones));
	l->written = nrp_pages_new_dense(sizeof(uint64_t));
	l->together = nrp_pages_new_dense(sizeof(uint64_t));
	if (!l->written || !l->together || !l->tasks || !l->mms || !l->cells || !l->pages ||
	    !l->proved || !l->everyones) {
		nrp_scan_pte_lane_free(l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

void nrp_scan_pte_lane_know(struct nrp_scan_pte_lane *l, struct nrp_scan_pte_proofs *proofs)
{
	l->known = proofs;
}

struct nrp_scan_pte_lane *nrp_scan_pte_lane_free(struct nrp_scan_pte_lane *l)
{
	if (l) {
		nrp_pages_free(l->tasks);
		nrp_pages_free(l->mms);
		nrp_pages_free(l->cells);
		nrp_pages_free(l->pages);
		nrp_pages_free(l->proved);
		nrp_pages_free(l->everyones);
		nrp_pages_free(l->written);
		nrp_pages_free(l->together);
		free(l->family);
		free(l);
	}
	return NULL;
}

void nrp_scan_pte_lane_prefetch(const struct nrp_scan_pte_lane *l, uint64_t mm, uint64_t page)
{
	nrp_pages_prefetch(l->pages, mm, page);
}

/* ---- answers ------------------------------------------------------------------------ */

/* The shared copy-on-write test of the host let the page through. */
static void passed_cow_test(enum nrp_scan_pte_variant host, struct nrp_scan_pte *pte)
{
	bool base = pte->large == NRP_KNOWN_NO;

	if (host == NRP_SCAN_PTE_F2) { /* one reference: one mapping, and no pin */
		pte->refcount = nrp_pte_count(1);
		pte->folio_mapcount = nrp_pte_count(0);
		pte->pinned = NRP_KNOWN_NO;
	} else if (host >= NRP_SCAN_PTE_F3) {
		pte->pinned = NRP_KNOWN_NO;
		if (base)
			pte->refcount = (struct nrp_pte_count){ 1, NRP_PTE_PIN_REFERENCES - 1 };
	}
	if (host >= NRP_SCAN_PTE_F4)
		pte->many_mms = NRP_KNOWN_NO;
	if (base || host <= NRP_SCAN_PTE_F2)
		pte->mapcount = nrp_pte_count(0);
}

/*
 * The entry was armed, so it had passed the host's own tests: what that says about the page then.
 * Whole huge pages meet them from F5 on.
 */
static struct nrp_scan_pte as_armed(const struct nrp_scan_pte_lane *l, struct nrp_scan_pte pte)
{
	/* Zero pages, devices and KSM: not armed, or no counted fault, with any kernel. Kernels
	 * that balance tiers only have the test of tiers. */
	pte.armed = pte.no_page = pte.device = pte.ksm = pte.top_tier_only = NRP_KNOWN_NO;
	if (pte.pmd && l->host < NRP_SCAN_PTE_F5)
		return pte;
	pte.local = NRP_KNOWN_NO; /* where it matters: in all kernels since 4.10 */
	if (l->host >= NRP_SCAN_PTE_F1)
		pte.dirty = NRP_KNOWN_NO;
	if (l->host >= NRP_SCAN_PTE_F1 && pte.cow == NRP_KNOWN_YES)
		passed_cow_test((enum nrp_scan_pte_variant)l->host, &pte);
	if (l->host == NRP_SCAN_PTE_F5)
		pte.pinned = NRP_KNOWN_NO;
	return pte;
}

static enum nrp_scan_pte_answer ask(const struct nrp_scan_pte_lane *l, struct nrp_scan_pte pte,
				    bool pmd, const struct nrp_scan_pte_policy *policy)
{
	static const enum nrp_scan_pte_answer answers[] = { [NRP_KNOWN_NO] = NRP_FAULT_AVOIDED,
							    [NRP_KNOWN_YES] = NRP_FAULT_KEPT,
							    [NRP_KNOWN_NOT] = NRP_FAULT_UNKNOWN };

	pte.pmd = pmd;
	pte = as_armed(l, pte);
	return answers[nrp_scan_pte_decide(policy, &pte).arms];
}

static enum nrp_scan_pte_answer answer(const struct nrp_scan_pte_lane *l,
				       const struct nrp_scan_pte *pte,
				       const struct nrp_pte_evidence *e,
				       const struct nrp_scan_pte_policy *policy)
{
	enum nrp_scan_pte_answer as_pte, as_pmd;

	/* The host's own variant: it passed. With rules off it passes even more. */
	if ((int)policy->variant == l->host)
		return NRP_FAULT_KEPT;
	if (e->pmd != NRP_KNOWN_NOT)
		return ask(l, *pte, e->pmd == NRP_KNOWN_YES, policy);
	as_pte = ask(l, *pte, false, policy);
	as_pmd = ask(l, *pte, true, policy);
	return as_pte == as_pmd ? as_pte : NRP_FAULT_UNKNOWN;
}

static bool asks_the_same(const struct nrp_scan_pte_lane *l,
			  const struct nrp_scan_pte_policy *policy, size_t nr_policies)
{
	if (nr_policies != l->nr_asked)
		return false;
	for (size_t i = 0; i < nr_policies; i++)
		if (policy[i].variant != l->asked[i].variant ||
		    policy[i].rules != l->asked[i].rules)
			return false;
	return true;
}

static struct nrp_pte_given *given_of(struct nrp_scan_pte_lane *l, const struct nrp_scan_pte *pte,
				      const struct nrp_pte_evidence *e)
{
	uint32_t key = (uint32_t)pte->mapcount.min ^ (uint32_t)pte->refcount.min << 2;

	key = key * 3 + (uint32_t)pte->local;
	key = key * 3 + (uint32_t)pte->cow;
	key = key * 3 + (uint32_t)pte->single_threaded;
	key = key * 3 + (uint32_t)pte->file;
	key = key * 3 + (uint32_t)pte->pinned;
	key = key * 3 + (uint32_t)e->pmd;
	return &l->given[key % NRP_PTE_GIVEN];
}

static void answer_all(struct nrp_scan_pte_lane *l, const struct nrp_scan_pte *pte,
		       const struct nrp_pte_evidence *e, const struct nrp_scan_pte_policy *policy,
		       size_t nr_policies, enum nrp_scan_pte_answer *ret)
{
	struct nrp_pte_given *g = given_of(l, pte, e);

	if (nr_policies > NRP_NR_SCAN_PTE_VARIANTS) {
		for (size_t i = 0; i < nr_policies; i++)
			ret[i] = answer(l, pte, e, &policy[i]);
		return;
	}
	if (!asks_the_same(l, policy, nr_policies)) {
		memset(l->given, 0, sizeof(l->given));
		memcpy(l->asked, policy, nr_policies * sizeof(*policy));
		l->nr_asked = nr_policies;
	}
	/* What differs in padding alone is asked once more. */
	if (!g->used || g->pmd != e->pmd || memcmp(&g->pte, pte, sizeof(*pte)) != 0) {
		*g = (struct nrp_pte_given){ .pmd = e->pmd, .used = true };
		memcpy(&g->pte, pte, sizeof(*pte));
		for (size_t i = 0; i < nr_policies; i++)
			g->answer[i] = answer(l, pte, e, &policy[i]);
	}
	memcpy(ret, g->answer, nr_policies * sizeof(*ret));
}

int nrp_scan_pte_lane_fault(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			    const struct nrp_scan_pte_policy *policy, size_t nr_policies,
			    enum nrp_scan_pte_answer *ret)
{
	struct nrp_scan_pte pte = nrp_scan_pte_unknown();
	struct nrp_pte_evidence e = nrp_scan_pte_look_at(l, f, &pte);
	int r = nrp_scan_pte_gather(l, f, &pte, &e);

	if (r == 0)
		answer_all(l, &pte, &e, policy, nr_policies, ret);
	return r;
}
