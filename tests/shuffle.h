/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of a capture without locality: every fault is taken on a node that is drawn at random,
 * whatever its page. What the kernel does with the fault follows from the draws: the page is where
 * its last move left it (or, at first sight, on a node drawn at random), the host's filter is asked
 * with who touched the page last, and nine of ten moves that it allows succeed. Groups, task moves
 * and preferences go; scans, addresses, threads and times stay.
 */
#ifndef NRP_TESTS_SHUFFLE_H
#define NRP_TESTS_SHUFFLE_H

#include "null_util.h"

/* What is known of the copy by construction. */
struct shuffled {
	uint64_t faults, moves;
	uint64_t remote;       /* faults on remote pages, as the host places pages */
	uint64_t remote_still; /* the same, if no page ever moved */
	uint64_t apart;        /* faults on pages that are not where they were found first */
	/*
	 * Page-seconds from each fault to the page's next one or to the end, and the sum of their
	 * squares. As the next fault is from any node, each of them is remote to its user or not by
	 * the draw of a coin.
	 */
	double seconds, squares;
	/* The squares by VMA: those of small, busy VMAs weigh more in accesses. */
	struct {
		uint64_t vm_start;
		double squares;
	} vma[64];
	size_t nr_vmas;
};

/* @closed: a node that no page may move to, as if the filter always said no; -1: none. */
void shuffle(struct loaded *ret, struct shuffled *ret_known, const struct loaded *from,
	     uint64_t seed, int closed, const char *scratch);

#endif
