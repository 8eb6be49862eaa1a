/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What arming costs: time of a range by its entries, fitted to the ranges of a capture. */
#ifndef NRP_SCAN_COST_H
#define NRP_SCAN_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Sums over the ranges whose duration is on record; all 0 at first. */
struct nrp_scan_cost {
	uint64_t ranges;
	double entries, ns; /* pages; ns */
	double entries_squared, entries_ns, ns_squared;
};

/* ns = per_range + per_entry * entries; least squares, neither below 0. */
struct nrp_scan_cost_fit {
	double per_range, per_entry; /* ns */
	double explained;            /* share of the durations' variance, 0 .. 1 */
	uint64_t ranges;             /* that it rests on */
};

/* A range of @entries took @ns. */
void nrp_scan_cost_add(struct nrp_scan_cost *cost, uint64_t entries, uint64_t ns);
/* false: no range. */
bool nrp_scan_cost_fit(const struct nrp_scan_cost *cost, struct nrp_scan_cost_fit *ret);

#endif
