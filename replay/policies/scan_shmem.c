/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.shmem: task_numa_work(), vma_migratable(), vma_policy_mof(); spec scan.md 1.1.
 *
 * The idea: memory bound to nodes by a policy stays where it is. Shared memory is asked for its
 * own policy, and up to 7.1 "none" counted as one that binds; "mm: mempolicy: fix automatic numa
 * balancing for shmem" (7.2) takes the task's instead.
 */
#include "replay/policies/scan_shmem.h"

#include <stddef.h>

const char *nrp_scan_shmem_variant_name(enum nrp_scan_shmem_variant variant)
{
	static const char *const names[] = { "SH0", "SH1" };

	return (unsigned int)variant < NRP_NR_SCAN_SHMEM_VARIANTS ? names[variant] : NULL;
}

struct nrp_scan_shmem_vma nrp_scan_shmem_private(void)
{
	return (struct nrp_scan_shmem_vma){ .task_mof = NRP_KNOWN_YES,
					    .readable = NRP_KNOWN_YES,
					    .writable = NRP_KNOWN_YES };
}

/* Does the policy that holds for the VMA lack migrate-on-fault? */
static enum nrp_known bound(enum nrp_scan_shmem_variant variant, const struct nrp_scan_shmem_vma *v)
{
	enum nrp_known own = nrp_known_and(v->has_policy, nrp_known_not(v->policy_mof));
	enum nrp_known none = nrp_known_not(v->task_mof);

	if (variant == NRP_SCAN_SHMEM_SH0)
		none = nrp_known_or(v->shmem, none);
	return nrp_known_or(own, nrp_known_and(nrp_known_not(v->has_policy), none));
}

struct nrp_scan_shmem_result nrp_scan_shmem_decide(enum nrp_scan_shmem_variant variant,
						   const struct nrp_scan_shmem_vma *v)
{
	struct nrp_scan_shmem_result r = { .class = NRP_SCAN_VMA_ELIGIBLE };
	enum nrp_known v1 = nrp_known_or(nrp_known_or(v->unmovable, v->hugetlb),
					 nrp_known_or(v->mixedmap, bound(variant, v)));
	enum nrp_known v2 =
		nrp_known_and(nrp_known_and(v->file, v->readable), nrp_known_not(v->writable));
	enum nrp_known v3 =
		nrp_known_not(nrp_known_or(v->readable, nrp_known_or(v->writable, v->executable)));
	const struct {
		enum nrp_known hit;
		enum nrp_scan_vma_class class;
	} rules[] = { { v1, NRP_SCAN_VMA_UNSUITABLE },
		      { v2, NRP_SCAN_VMA_SHARED_RO },
		      { v3, NRP_SCAN_VMA_INACCESSIBLE } };

	r.eligible = nrp_known_not(nrp_known_or(v1, nrp_known_or(v2, v3)));
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].hit == NRP_KNOWN_NO)
			continue;
		/* The first that hits, if all before it are known not to. */
		r.class_known = rules[i].hit == NRP_KNOWN_YES;
		r.class = rules[i].class;
		return r;
	}
	r.class_known = true;
	return r;
}

enum nrp_known nrp_scan_shmem_stays(enum nrp_scan_shmem_variant host,
				    enum nrp_scan_shmem_variant lane, enum nrp_known vm_shared)
{
	struct nrp_scan_shmem_vma v = nrp_scan_shmem_private();

	/* A host that leaves shared memory out showed that this is none. */
	if (host == NRP_SCAN_SHMEM_SH1 && vm_shared != NRP_KNOWN_NO)
		v.shmem = NRP_KNOWN_NOT;
	return nrp_scan_shmem_decide(lane, &v).eligible;
}
