/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/policies/hugetlb_count.h"

const char *nrp_hugetlb_variant_name(enum nrp_hugetlb_variant variant)
{
	static const char *const names[NRP_NR_HUGETLB_VARIANTS] = { "mapcount", "pmd-check",
								    "adjusted", "pt-share-count",
								    "actual" };

	return names[variant];
}

uint32_t nrp_hugetlb_mapcount(enum nrp_hugetlb_variant variant, const struct nrp_hugetlb_view *view)
{
	switch (variant) {
	case NRP_HUGETLB_ADJUSTED:
		return view->adjusted;
	case NRP_HUGETLB_ACTUAL:
		return view->processes;
	default:
		return view->map;
	}
}

static bool looks_at_table(enum nrp_hugetlb_variant variant)
{
	return variant == NRP_HUGETLB_PMD_CHECK || variant == NRP_HUGETLB_PT_SHARE;
}

bool nrp_hugetlb_is_shared(enum nrp_hugetlb_variant variant, const struct nrp_hugetlb_view *view)
{
	return nrp_hugetlb_mapcount(variant, view) > 1 ||
	       (looks_at_table(variant) && view->sharers > 1);
}

bool nrp_hugetlb_is_isolated(enum nrp_hugetlb_variant variant, const struct nrp_hugetlb_view *view,
			     bool move_all)
{
	return move_all || !nrp_hugetlb_is_shared(variant, view);
}

bool nrp_hugetlb_is_refused(enum nrp_hugetlb_variant variant, const struct nrp_hugetlb_view *view)
{
	return nrp_hugetlb_mapcount(variant, view) > 1;
}

bool nrp_hugetlb_is_exclusive(enum nrp_hugetlb_variant variant, const struct nrp_hugetlb_view *view)
{
	if (variant == NRP_HUGETLB_PT_SHARE) /* the same kernels look at the table there, too */
		return !nrp_hugetlb_is_shared(variant, view);
	return nrp_hugetlb_mapcount(variant, view) == 1;
}

uint64_t nrp_hugetlb_remote(const struct nrp_hugetlb_user *users, uint32_t nr_users, int nid)
{
	uint64_t remote = 0;

	for (uint32_t i = 0; i < nr_users; i++)
		remote += users[i].nid != nid ? users[i].weight : 0;
	return remote;
}
