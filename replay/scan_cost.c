/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_cost.h"

#include <math.h>

void nrp_scan_cost_add(struct nrp_scan_cost *c, uint64_t entries, uint64_t ns)
{
	double x = (double)entries, y = (double)ns;

	c->ranges++;
	c->entries += x;
	c->ns += y;
	c->entries_squared += x * x;
	c->entries_ns += x * y;
	c->ns_squared += y * y;
}

bool nrp_scan_cost_fit(const struct nrp_scan_cost *c, struct nrp_scan_cost_fit *ret)
{
	double n = (double)c->ranges, a, b, left, all;
	double spread = n * c->entries_squared - c->entries * c->entries;

	if (!c->ranges)
		return false;
	b = spread > 0 ? (n * c->entries_ns - c->entries * c->ns) / spread : 0;
	b = fmax(b, 0);
	a = (c->ns - b * c->entries) / n;
	if (a < 0) {
		/* Through the origin; there are entries, or the slope were 0. */
		a = 0;
		b = c->entries_ns / c->entries_squared;
	}
	all = c->ns_squared - c->ns * c->ns / n;
	left = c->ns_squared - 2 * (a * c->ns + b * c->entries_ns) + n * a * a +
	       2 * a * b * c->entries + b * b * c->entries_squared;
	*ret = (struct nrp_scan_cost_fit){
		.per_range = a,
		.per_entry = b,
		.explained = all > 0 ? fmin(fmax(1 - left / all, 0), 1) : 0,
		.ranges = c->ranges,
	};
	return true;
}
