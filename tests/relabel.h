/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A copy of a capture whose nodes have other numbers. */
#ifndef NRP_TESTS_RELABEL_H
#define NRP_TESTS_RELABEL_H

#include "null_util.h"

struct relabelling {
	const int *nid; /* [nodes of the original]: number in the copy, no number twice */
	int nr_nodes;   /* of the copy; numbers that no node gets are nodes without anything */
	/* Filled in: of the original. */
	int nr_original;
	int64_t nid_shift;
};

/* CPU ids, and with them last_cpupid, stay: only the node of each CPU changes. */
void relabel(struct loaded *ret, const struct loaded *from, struct relabelling *map,
	     const char *scratch);

#endif
