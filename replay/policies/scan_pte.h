/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.pte: does the NUMA scanner arm this entry? A re-telling of change_pte_range() and
 * change_huge_pmd() under prot_numa (mm/mprotect.c, mm/huge_memory.c) in six generations; spec
 * scan.md 1.2.
 */
#ifndef NRP_POLICY_SCAN_PTE_H
#define NRP_POLICY_SCAN_PTE_H

#include "replay/policies/known.h"

#include <stdint.h>

enum nrp_scan_pte_variant {
	NRP_SCAN_PTE_F0, /* up to 4.15: shared copy-on-write pages too */
	NRP_SCAN_PTE_F1, /* 4.16..5.16: not COW pages mapped more than once (859d4adc3415) */
	NRP_SCAN_PTE_F2, /* 5.17..6.9: not COW pages with a second reference (80d47f5de5e3) */
	NRP_SCAN_PTE_F3, /* 6.10..6.14: not COW pages pinned or likely shared */
	NRP_SCAN_PTE_F4, /* 6.15..6.18: not COW pages pinned or maybe shared (003fde4492c8) */
	NRP_SCAN_PTE_F5, /* 6.19..: no pinned pages; the same test for PMDs */
	NRP_NR_SCAN_PTE_VARIANTS
};

/* A count that lies from min to max. */
struct nrp_pte_count {
	int32_t min, max;
};

#define NRP_PTE_COUNT_UNKNOWN ((struct nrp_pte_count){ INT32_MIN, INT32_MAX })

static inline struct nrp_pte_count nrp_pte_count(int32_t exactly)
{
	return (struct nrp_pte_count){ exactly, exactly };
}

/* Rules of the variants; each may be switched off alone. */
#define NRP_SCAN_PTE_RULE_COW 0x01    /* F1+: the variant's test of shared copy-on-write pages */
#define NRP_SCAN_PTE_RULE_DIRTY 0x02  /* F1 (4.17)+: dirty file pages stay */
#define NRP_SCAN_PTE_RULE_LOCAL 0x04  /* 4.10+: pages that a lone thread has on its node stay */
#define NRP_SCAN_PTE_RULE_DEVICE 0x08 /* F2 (6.1)+: ZONE_DEVICE pages stay */
#define NRP_SCAN_PTE_RULE_TIER 0x10   /* F2 (5.18)+: top tier, unless balancing is normal, stays */
#define NRP_SCAN_PTE_RULE_PINNED 0x20 /* F3+: pinned pages stay: copy-on-write; F5+: any */
#define NRP_NR_SCAN_PTE_RULES 6

struct nrp_scan_pte_policy {
	enum nrp_scan_pte_variant variant;
	uint32_t rules; /* NRP_SCAN_PTE_RULE_*; rules the variant does not have are ignored */
};

/* One present entry at the time of the scan. */
struct nrp_scan_pte {
	bool pmd;                 /* a whole huge page */
	enum nrp_known armed;     /* PROT_NONE already */
	enum nrp_known no_page;   /* zero page, special, no normal page */
	enum nrp_known device;    /* ZONE_DEVICE */
	enum nrp_known ksm;       /* merged by KSM */
	enum nrp_known cow;       /* private and writable or may become so: nrp_vma_is_cow() */
	enum nrp_known vm_shared; /* VM_SHARED */
	enum nrp_known file;      /* on the file LRU: not swap-backed */
	enum nrp_known dirty;     /* PG_dirty */
	enum nrp_known large;     /* part of a large folio */
	enum nrp_known pinned;    /* large: pin count > 0; base page: see refcount */
	enum nrp_known many_mms;  /* large: the "mapped by more than one mm" mark */
	enum nrp_known single_threaded; /* mm_users == 1 */
	enum nrp_known local;           /* on the node of the scanning CPU */
	enum nrp_known top_tier_only;   /* no normal balancing, and the page's node is top tier */
	/* Counts as the kernel stores them: map counts are one less, -1 is unmapped. */
	struct nrp_pte_count mapcount;        /* of this page (base page: all there is) */
	struct nrp_pte_count refcount;        /* of the folio (head page) */
	struct nrp_pte_count folio_mapcount;  /* large: mappings of all its pages, raw */
	struct nrp_pte_count entire_mapcount; /* large: mappings as a whole, raw */
	struct nrp_pte_count first_mapcount;  /* large: of its first page, raw */
	struct nrp_pte_count folio_pages;     /* large: base pages */
};

enum nrp_scan_pte_test {
	NRP_PTE_ARMED_ALREADY,
	NRP_PTE_NO_PAGE,
	NRP_PTE_DEVICE,
	NRP_PTE_KSM,
	NRP_PTE_SHARED_COW,
	NRP_PTE_PINNED,
	NRP_PTE_DIRTY_FILE,
	NRP_PTE_LOCAL,
	NRP_PTE_TOP_TIER,
	NRP_PTE_PASSED, /* no test refused it */
};

struct nrp_scan_pte_result {
	enum nrp_known arms;
	enum nrp_scan_pte_test test; /* that refused, or the first that is not known */
};

/* "F0" .. "F5"; NULL outside the range. */
const char *nrp_scan_pte_variant_name(enum nrp_scan_pte_variant variant);
/* "cow", "dirty", "local", "device", "tier", "pinned": of bit @i; NULL outside the range. */
const char *nrp_scan_pte_rule_name(unsigned int i);
/* The rules that a variant's newest kernel has. */
uint32_t nrp_scan_pte_rules(enum nrp_scan_pte_variant variant);
/* A variant with all of them. */
struct nrp_scan_pte_policy nrp_scan_pte_policy(enum nrp_scan_pte_variant variant);
/* A base page with every flag "no" and every count unknown: a start for filling in. */
struct nrp_scan_pte nrp_scan_pte_base(void);
/* The same with nothing known at all. */
struct nrp_scan_pte nrp_scan_pte_unknown(void);
/* Copy-on-write mapping: may write, not shared. */
bool nrp_vma_is_cow(uint64_t vm_flags);
bool nrp_vma_is_shared(uint64_t vm_flags);
/* Does the scanner arm the entry? Unknown facts leave the answer open where it hangs on them. */
struct nrp_scan_pte_result nrp_scan_pte_decide(const struct nrp_scan_pte_policy *policy,
					       const struct nrp_scan_pte *pte);

#endif
