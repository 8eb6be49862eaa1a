/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef NRP_LOCK_JOBS_INTERNAL_H
#define NRP_LOCK_JOBS_INTERNAL_H

#include "replay/lock_jobs.h"
#include "replay/loss_spans.h"

/* Counts an event that cannot follow on what was before, and lists it if it is one of the first. */
void nrp_lock_impossible_add(struct nrp_lock_counts *counts,
			     const struct nrp_lock_impossible *event);
/* Jobs that hold the lock at once though one of them writes. -ENOMEM. */
int nrp_lock_overlaps(struct nrp_lock_counts *counts, const struct nrp_lock_mm *mm);
/* When all events are read, the last one at @last_time. -ENOMEM. */
int nrp_lock_jobs_finish(struct nrp_lock_jobs *jobs, const struct nrp_loss_spans *losses,
			 uint64_t last_time);

#endif
