/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the migration that each wait waited for; part of waits.c. */
#ifndef NRP_WAITS_MATCH_H
#define NRP_WAITS_MATCH_H

#include "replay/mm_kin.h"
#include "replay/waits.h"

/*
 * Fills cause, evidence and certainty of @waits->at (which is sorted by time), and @waits->link
 * (not sorted), in one pass over faults, migrations and migration entries.
 */
int nrp_waits_match(struct nrp_waits *waits, struct nrp_mm_kin *kin, struct nrp_store *store,
		    const struct nrp_capture *capture, struct nrp_error *err);

#endif
