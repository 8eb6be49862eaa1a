/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.shmem: may the NUMA scanner arm anything in this VMA? A re-telling of the filter at the top
 * of task_numa_work()'s loop with vma_migratable() and vma_policy_mof() (mm/mempolicy.c); spec
 * scan.md 1.1. All generations ask the same three questions in the same order; they differ in
 * shared memory that nobody gave a policy.
 */
#ifndef NRP_POLICY_SCAN_SHMEM_H
#define NRP_POLICY_SCAN_SHMEM_H

#include "replay/policies/known.h"
#include "replay/policies/scan_vma.h"

enum nrp_scan_shmem_variant {
	NRP_SCAN_SHMEM_SH0, /* up to 7.1: shared memory without a policy is never scanned */
	NRP_SCAN_SHMEM_SH1, /* 7.2..: it has the task's policy, as other memory */
	NRP_NR_SCAN_SHMEM_VARIANTS
};

/* What the filter asks of a VMA and of the task that scans it. */
struct nrp_scan_shmem_vma {
	enum nrp_known unmovable; /* VM_IO, VM_PFNMAP, DAX, huge pages that stay, a low zone */
	enum nrp_known hugetlb, mixedmap;
	/* Its vm_ops answer for its policy: shmem, tmpfs, memfd, System V, shared anonymous. */
	enum nrp_known shmem;
	enum nrp_known has_policy; /* somebody gave it one: mbind() */
	enum nrp_known policy_mof; /* which lets faults migrate: MPOL_F_NUMA_BALANCING */
	enum nrp_known task_mof;   /* so does the scanning task's: the default one does */
	enum nrp_known file;       /* it has a vm_file */
	enum nrp_known readable, writable, executable; /* now, by vm_flags */
};

struct nrp_scan_shmem_result {
	enum nrp_known eligible;
	/* Of what is not: which of V1..V3 comes first, if that is known. */
	bool class_known;
	enum nrp_scan_vma_class class;
};

/* "SH0", "SH1"; NULL outside the range. */
const char *nrp_scan_shmem_variant_name(enum nrp_scan_shmem_variant variant);
/* Private anonymous memory, readable and writable, without policies. */
struct nrp_scan_shmem_vma nrp_scan_shmem_private(void);
/* Unknown facts leave the answer open where it hangs on them. */
struct nrp_scan_shmem_result nrp_scan_shmem_decide(enum nrp_scan_shmem_variant variant,
						   const struct nrp_scan_shmem_vma *vma);
/*
 * Of a VMA that a host with @host scanned (so that it passed there) at most VM_SHARED is known: is
 * it scanned with @lane, too? A shared mapping may be shared memory or a file's. What is taken for
 * granted: nobody asked for balancing in a policy, and no private mapping is of a file on tmpfs.
 */
enum nrp_known nrp_scan_shmem_stays(enum nrp_scan_shmem_variant host,
				    enum nrp_scan_shmem_variant lane, enum nrp_known vm_shared);

#endif
