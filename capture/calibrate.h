/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Facts that the events themselves prove: HZ, where last_cpupid and the node lie in
 * page_flags, which return value means "moved", pages of a huge page, and (without a facts file)
 * the node of each CPU.
 */
#ifndef NRP_CALIBRATE_H
#define NRP_CALIBRATE_H

#include "capture/events.h"

struct nrp_calibration;

int nrp_calibration_new(struct nrp_calibration **ret, const struct nrp_catalogue *catalogue,
			bool need_topology, struct nrp_error *err);
/* Takes one event; -ENOMEM or 0. */
int nrp_calibration_event(struct nrp_calibration *cal, const struct nrp_raw_event *raw);
/* Enough seen: the rest of the file cannot change the result except to contradict it. */
bool nrp_calibration_settled(const struct nrp_calibration *cal);
/* Bytes of a base page, as the bounds of VMAs prove it; -1: they leave it open. */
int64_t nrp_calibration_page_size(const struct nrp_calibration *cal);
/*
 * Writes what was proven into @facts; leaves the rest as it is. @infer_topology: the events tell
 * the node of each CPU, too; only if they were asked for it in nrp_calibration_new().
 */
int nrp_calibration_finish(const struct nrp_calibration *cal, bool infer_topology,
			   struct nrp_host_facts *facts, struct nrp_error *err);
struct nrp_calibration *nrp_calibration_free(struct nrp_calibration *cal);

#endif
