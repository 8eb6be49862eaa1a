/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef NRP_LOCK_JOBS_INTERNAL_H
#define NRP_LOCK_JOBS_INTERNAL_H

#include "replay/lock_jobs.h"

/* When all events are read, the last one at @last_time. -ENOMEM. */
int nrp_lock_jobs_finish(struct nrp_lock_jobs *jobs, uint64_t last_time);

#endif
