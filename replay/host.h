/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is taken for the host where its facts are silent, and the bits of its mappings' flags. */
#ifndef NRP_HOST_H
#define NRP_HOST_H

#include "numareplay/record.h"

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

#endif
