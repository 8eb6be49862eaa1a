/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.pte: change_pte_range(), change_huge_pmd(); folio_can_map_prot_numa() from F5 on; spec
 * scan.md 1.2.
 *
 * The idea: a trap on a page that others share copy-on-write costs every sharer a fault, and the
 * page cannot follow all of them. The variants differ in how they tell that a page is shared.
 */
#include "replay/policies/scan_pte.h"

#include <stddef.h>

#define ALL_F0 NRP_SCAN_PTE_RULE_LOCAL
#define ALL_F1 (ALL_F0 | NRP_SCAN_PTE_RULE_COW | NRP_SCAN_PTE_RULE_DIRTY)
#define ALL_F2 (ALL_F1 | NRP_SCAN_PTE_RULE_DEVICE | NRP_SCAN_PTE_RULE_TIER)
#define ALL_F3 (ALL_F2 | NRP_SCAN_PTE_RULE_PINNED)

#define VM_SHARED UINT64_C(0x8)
#define VM_MAYWRITE UINT64_C(0x20)
/* References that one pin of a base page adds. */
#define PIN_BIAS 1024

const char *nrp_scan_pte_variant_name(enum nrp_scan_pte_variant variant)
{
	static const char *const names[] = { "F0", "F1", "F2", "F3", "F4", "F5" };

	return (unsigned int)variant < NRP_NR_SCAN_PTE_VARIANTS ? names[variant] : NULL;
}

const char *nrp_scan_pte_rule_name(unsigned int i)
{
	static const char *const names[NRP_NR_SCAN_PTE_RULES] = { "cow",    "dirty", "local",
								  "device", "tier",  "pinned" };

	return i < NRP_NR_SCAN_PTE_RULES ? names[i] : NULL;
}

uint32_t nrp_scan_pte_rules(enum nrp_scan_pte_variant variant)
{
	static const uint32_t rules[] = { ALL_F0, ALL_F1, ALL_F2, ALL_F3, ALL_F3, ALL_F3 };

	return (unsigned int)variant < NRP_NR_SCAN_PTE_VARIANTS ? rules[variant] : 0;
}

struct nrp_scan_pte_policy nrp_scan_pte_policy(enum nrp_scan_pte_variant variant)
{
	return (struct nrp_scan_pte_policy){ .variant = variant,
					     .rules = nrp_scan_pte_rules(variant) };
}

struct nrp_scan_pte nrp_scan_pte_base(void)
{
	return (struct nrp_scan_pte){
		.mapcount = NRP_PTE_COUNT_UNKNOWN,
		.refcount = NRP_PTE_COUNT_UNKNOWN,
		.folio_mapcount = NRP_PTE_COUNT_UNKNOWN,
		.entire_mapcount = NRP_PTE_COUNT_UNKNOWN,
		.first_mapcount = NRP_PTE_COUNT_UNKNOWN,
		.folio_pages = NRP_PTE_COUNT_UNKNOWN,
	};
}

struct nrp_scan_pte nrp_scan_pte_unknown(void)
{
	struct nrp_scan_pte p = nrp_scan_pte_base();

	p.armed = p.no_page = p.device = p.ksm = NRP_KNOWN_NOT;
	p.cow = p.vm_shared = p.file = p.dirty = p.large = NRP_KNOWN_NOT;
	p.pinned = p.many_mms = p.single_threaded = p.local = NRP_KNOWN_NOT;
	p.top_tier_only = NRP_KNOWN_NOT;
	return p;
}

bool nrp_vma_is_cow(uint64_t vm_flags)
{
	return (vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE;
}

bool nrp_vma_is_shared(uint64_t vm_flags)
{
	return vm_flags & VM_SHARED;
}

/* ---- three-valued logic ------------------------------------------------------------- */

/* Is a count greater than @limit? */
static enum nrp_known above(struct nrp_pte_count count, int32_t limit)
{
	if (count.min > limit)
		return NRP_KNOWN_YES;
	return count.max <= limit ? NRP_KNOWN_NO : NRP_KNOWN_NOT;
}

/* The answer where @large is known, or where both answers agree. */
static enum nrp_known choose(enum nrp_known large, enum nrp_known if_large, enum nrp_known if_base)
{
	if (large == NRP_KNOWN_NOT)
		return if_large == if_base ? if_large : NRP_KNOWN_NOT;
	return large == NRP_KNOWN_YES ? if_large : if_base;
}

/* ---- when is a page shared? --------------------------------------------------------- */

static enum nrp_known likely_shared_large(const struct nrp_scan_pte *p)
{
	enum nrp_known twice = above(p->folio_mapcount, 0), more = NRP_KNOWN_NOT;

	if (p->folio_mapcount.min >= p->folio_pages.max)
		more = NRP_KNOWN_YES;
	else if (p->folio_mapcount.max < p->folio_pages.min)
		more = NRP_KNOWN_NO;
	return nrp_known_and(twice, nrp_known_or(nrp_known_or(above(p->entire_mapcount, -1), more),
						 above(p->first_mapcount, 0)));
}

static enum nrp_known pinned(const struct nrp_scan_pte *p)
{
	return choose(p->large, p->pinned, above(p->refcount, PIN_BIAS - 1));
}

static enum nrp_known likely_shared(const struct nrp_scan_pte *p)
{
	return choose(p->large, likely_shared_large(p), above(p->mapcount, 0));
}

static enum nrp_known maybe_shared(const struct nrp_scan_pte *p)
{
	return choose(p->large, nrp_known_and(above(p->folio_mapcount, 0), p->many_mms),
		      above(p->mapcount, 0));
}

static enum nrp_known differs(struct nrp_pte_count count, int32_t from)
{
	if (count.min > from || count.max < from)
		return NRP_KNOWN_YES;
	return count.min == count.max ? NRP_KNOWN_NO : NRP_KNOWN_NOT;
}

/* How the variants tell that a page is shared. */
static enum nrp_known shared(enum nrp_scan_pte_variant variant, const struct nrp_scan_pte *p)
{
	switch (variant) {
	case NRP_SCAN_PTE_F0:
		return NRP_KNOWN_NO;
	case NRP_SCAN_PTE_F1:
		return differs(p->mapcount, 0);
	case NRP_SCAN_PTE_F2:
		return differs(p->refcount, 1);
	case NRP_SCAN_PTE_F3:
		return likely_shared(p);
	default:
		return maybe_shared(p);
	}
}

/* ---- one entry ---------------------------------------------------------------------- */

static void refuse(struct nrp_scan_pte_result *r, enum nrp_known refused,
		   enum nrp_scan_pte_test test)
{
	if (r->arms == NRP_KNOWN_NO || refused == NRP_KNOWN_NO)
		return;
	if (refused == NRP_KNOWN_YES || r->arms == NRP_KNOWN_YES)
		r->test = test;
	r->arms = refused == NRP_KNOWN_YES ? NRP_KNOWN_NO : NRP_KNOWN_NOT;
}

/* The tests of a page: the order is the kernel's. */
static void test_page(struct nrp_scan_pte_result *r, const struct nrp_scan_pte_policy *policy,
		      uint32_t rules, const struct nrp_scan_pte *p)
{
	bool pins_of_any = policy->variant >= NRP_SCAN_PTE_F5;
	enum nrp_known cow = NRP_KNOWN_NO;

	if (rules & NRP_SCAN_PTE_RULE_DEVICE)
		refuse(r, p->device, NRP_PTE_DEVICE);
	refuse(r, p->ksm, NRP_PTE_KSM);
	if (rules & NRP_SCAN_PTE_RULE_COW)
		cow = shared(policy->variant, p);
	if (rules & NRP_SCAN_PTE_RULE_PINNED && !pins_of_any)
		cow = nrp_known_or(cow, pinned(p));
	refuse(r, nrp_known_and(p->cow, cow), NRP_PTE_SHARED_COW);
	if (rules & NRP_SCAN_PTE_RULE_PINNED && pins_of_any)
		refuse(r, pinned(p), NRP_PTE_PINNED);
	if (rules & NRP_SCAN_PTE_RULE_DIRTY)
		refuse(r, nrp_known_and(p->file, p->dirty), NRP_PTE_DIRTY_FILE);
	if (rules & NRP_SCAN_PTE_RULE_LOCAL)
		refuse(r,
		       nrp_known_and(nrp_known_and(p->single_threaded, nrp_known_not(p->vm_shared)),
				     p->local),
		       NRP_PTE_LOCAL);
}

struct nrp_scan_pte_result nrp_scan_pte_decide(const struct nrp_scan_pte_policy *policy,
					       const struct nrp_scan_pte *p)
{
	struct nrp_scan_pte_result r = { NRP_KNOWN_YES, NRP_PTE_PASSED };
	uint32_t rules = policy->rules & nrp_scan_pte_rules(policy->variant);

	refuse(&r, p->armed, NRP_PTE_ARMED_ALREADY);
	refuse(&r, p->no_page, NRP_PTE_NO_PAGE);
	/* Up to F4 a huge page's PMD meets only the tests of change_huge_pmd(). */
	if (!p->pmd || policy->variant >= NRP_SCAN_PTE_F5)
		test_page(&r, policy, rules, p);
	if (rules & NRP_SCAN_PTE_RULE_TIER)
		refuse(&r, p->top_tier_only, NRP_PTE_TOP_TIER);
	return r;
}
