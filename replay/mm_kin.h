/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which address spaces are kin: made from each other by fork, so that they share pages at the same
 * addresses (copy-on-write) as long as neither calls exec. Two proofs are taken: a recorded fork,
 * and a struct page that both faulted on at the same address while it was mapped more than once
 * (for forks before the capture).
 */
#ifndef NRP_MM_KIN_H
#define NRP_MM_KIN_H

#include "numareplay/store.h"

#include <stdbool.h>

struct nrp_mm_kin;

/* Reads task_life, hint_fault and migration_wait of a capture, each once. */
int nrp_mm_kin_load(struct nrp_mm_kin **ret, struct nrp_store *store,
		    const struct nrp_capture *capture, struct nrp_error *err);
struct nrp_mm_kin *nrp_mm_kin_free(struct nrp_mm_kin *kin);

/* Are both of one family? An address space that the capture does not name has no kin. */
bool nrp_mm_kin_related(struct nrp_mm_kin *kin, uint64_t mm, uint64_t other);
/* Is there a task of its family that is not known to run in it? */
bool nrp_mm_kin_has_any(struct nrp_mm_kin *kin, uint64_t mm);
/* Process id of an address space, -1: no record names it. */
int32_t nrp_mm_kin_tgid(struct nrp_mm_kin *kin, uint64_t mm);

#endif
