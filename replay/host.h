/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is taken for the host where its facts are silent, and the bits of its mappings' flags. */
#ifndef NRP_HOST_H
#define NRP_HOST_H

#include "numareplay/record.h"
#include "replay/policies/scan_period.h"

#include <stdbool.h>
#include <string.h>

/* Bits of vm_flags, the same in all kernels. */
#define NRP_VM_EXEC 0x4
#define NRP_VM_SHARED 0x8

/* Bytes of a base page; 4096 where it is unknown. */
static inline uint64_t nrp_host_page_size(const struct nrp_host_facts *facts)
{
	return facts->page_size > 0 ? (uint64_t)facts->page_size : 4096;
}

/* Base pages of a huge page; 512 where it is unknown. */
static inline uint64_t nrp_host_huge_pages(const struct nrp_host_facts *facts)
{
	return facts->huge_pages > 0 ? (uint64_t)facts->huge_pages : 512;
}

/* A tunable or a size; @fallback where it is unknown. */
static inline uint32_t nrp_host_number(int64_t fact, uint32_t fallback)
{
	return fact > 0 && fact <= NRP_MAX_SYSCTL ? (uint32_t)fact : fallback;
}

/* The host's settings of the scanner; the kernel's defaults where the facts are silent. */
static inline struct nrp_scan_tunables nrp_host_tunables(const struct nrp_host_facts *facts)
{
	return (struct nrp_scan_tunables){
		.size_mb = nrp_host_number(facts->scan_size_mb, 256),
		.period_min_ms = nrp_host_number(facts->scan_period_min_ms, 1000),
		.period_max_ms = nrp_host_number(facts->scan_period_max_ms, 60000),
		.page_size = nrp_host_page_size(facts),
	};
}

/* The same of scan_delay_ms, which may be 0. */
static inline uint32_t nrp_host_scan_delay_ms(const struct nrp_host_facts *facts)
{
	return facts->scan_delay_ms ? nrp_host_number(facts->scan_delay_ms, 1000) : 0;
}

/* Which of the nodes below NRP_MAX_NODES have CPUs. */
static inline void nrp_host_cpu_nodes(const struct nrp_host_facts *facts, bool ret[NRP_MAX_NODES])
{
	memset(ret, 0, NRP_MAX_NODES * sizeof(*ret));
	for (int cpu = 0; cpu < facts->nr_cpus; cpu++)
		if (facts->cpu_nid[cpu] >= 0 && facts->cpu_nid[cpu] < NRP_MAX_NODES)
			ret[facts->cpu_nid[cpu]] = true;
}

#endif
