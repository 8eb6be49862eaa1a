/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What NUMA balancing itself is worth, beside two lanes that have it. */
#include "analysis/compare_internal.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = { "hint_faults",     "pte_updates",     "migrated_pages",
				     "scan_time",       "cpu_cost",        "page_migration_wait_ns",
				     "remote_accesses", "remote_residency" };

static json_t *number(bool has, double value)
{
	return has ? json_real(value) : json_null();
}

static json_t *describe(const struct nrp_metric *m)
{
	const struct nrp_quantity *q = &m->new_lane;

	return json_pack("{s:s,s:s,s:o,s:o,s:o,s:s}", "name", m->name, "unit", m->unit, "value",
			 number(q->has_value, q->value), "lower", number(q->has_lower, q->lower),
			 "upper", number(q->has_upper, q->upper), "class",
			 nrp_class_name(q->class));
}

/* "1.5 [1.0, 2.0] touches", with an open end as "..". */
static void print(char *text, size_t size, const struct nrp_comparison *c, const char *name)
{
	const struct nrp_metric *m = nrp_comparison_metric(c, name);
	const struct nrp_quantity *q = m ? &m->new_lane : NULL;
	char value[32] = "", upper[32] = "..";

	if (!q || q->class == NRP_CLASS_NOT_OBSERVABLE) {
		snprintf(text, size, "not known");
		return;
	}
	if (q->has_value)
		snprintf(value, sizeof(value), "%.1f ", q->value);
	if (q->has_upper)
		snprintf(upper, sizeof(upper), "%.1f", q->upper);
	if (q->has_lower)
		snprintf(text, size, "%s[%.1f, %s] %s", value, q->lower, upper, m->unit);
	else
		snprintf(text, size, "%s[.., %s] %s", value, upper, m->unit);
}

void nrp_comparison_add_off(struct nrp_comparison *c, const struct nrp_comparison *off)
{
	char accesses[128], residency[128];
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct nrp_metric *m = nrp_comparison_metric(off, names[i]);

		if (m && m->new_lane.class != NRP_CLASS_NOT_OBSERVABLE)
			json_array_append_new(list, describe(m));
	}
	print(accesses, sizeof(accesses), off, "remote_accesses");
	print(residency, sizeof(residency), off, "remote_residency");
	nrp_comparison_note(c, "balancing_off", json_pack("{s:o}", "metrics", list),
			    "with NUMA balancing off there would be no hinting faults, scans and "
			    "migrations; remote accesses would be %s, remote page-time %s",
			    accesses, residency);
}
