/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "relabel.h"

#include <stdlib.h>
#include <string.h>

#include "store_util.h"

static void relabel_facts(void *context, struct nrp_host_facts *facts)
{
	struct relabelling *map = context;
	int64_t *memkb = calloc((size_t)map->nr_nodes, sizeof(*memkb));

	assert_non_null(memkb);
	for (int n = 0; n < map->nr_nodes; n++)
		memkb[n] = -1;
	for (int n = 0; n < facts->nr_nodes; n++)
		memkb[map->nid[n]] = facts->node_memkb[n];
	for (int cpu = 0; cpu < facts->nr_cpus; cpu++)
		if (facts->cpu_nid[cpu] >= 0)
			facts->cpu_nid[cpu] = (int16_t)map->nid[facts->cpu_nid[cpu]];
	free(facts->node_memkb);
	facts->node_memkb = memkb;
	facts->nr_nodes = map->nr_nodes;
}

/* The node of a page is also in its flags. */
static void relabel_flags(const struct relabelling *map, struct nrp_hint_fault *f)
{
	uint64_t below, nid;

	if (map->nid_shift <= 0 || NRP_NULL(f, hint_fault, page_flags))
		return;
	below = (UINT64_C(1) << map->nid_shift) - 1;
	nid = f->page_flags >> map->nid_shift;
	assert_in_range(nid, 0, map->nr_original - 1);
	f->page_flags = (f->page_flags & below) | (uint64_t)map->nid[nid] << map->nid_shift;
}

/* The kinds' own descriptions say which fields are nodes; -1 is none. */
static bool relabel_row(void *context, enum nrp_record_kind kind, void *row)
{
	const struct relabelling *map = context;
	const struct nrp_kind *k = nrp_kind(kind);

	for (uint32_t c = 0; c < k->nr_columns; c++) {
		const struct nrp_column *column = &k->columns[c];
		int16_t nid;

		if (strncmp(column->unit, "nid", 3) != 0)
			continue;
		assert_int_equal(column->type, NRP_T_i16);
		memcpy(&nid, (char *)row + column->offset, sizeof(nid));
		if (nid < 0)
			continue;
		nid = (int16_t)map->nid[nid];
		if (!(*(uint64_t *)row >> c & 1))
			memcpy((char *)row + column->offset, &nid, sizeof(nid));
	}
	if (kind == NRP_HINT_FAULT)
		relabel_flags(map, row);
	return true;
}

void relabel(struct loaded *ret, const struct loaded *from, struct relabelling *map,
	     const char *scratch)
{
	struct copy_plan plan = { relabel_facts, relabel_row, map };

	map->nr_original = from->capture.facts.nr_nodes;
	map->nid_shift = from->capture.facts.nid_shift;
	null_copy(ret, from, &plan, scratch);
}
