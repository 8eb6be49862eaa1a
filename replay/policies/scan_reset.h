/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.reset: does this step of a task set its scan period back to the start?
 * A re-telling of task_numa_migrate() (up to 4.18) and of update_scan_period(), called by
 * migrate_task_rq_fair() (4.19 on), kernel/sched/fair.c.
 */
#ifndef NRP_POLICY_SCAN_RESET_H
#define NRP_POLICY_SCAN_RESET_H

#include <stdint.h>

enum nrp_scan_reset_variant {
	NRP_SCAN_RESET_418, /* S418: when placement has chosen a CPU, whatever comes of it */
	NRP_SCAN_RESET_ALL, /* S_ALL: on any move across nodes; between two commits for 4.19 */
	NRP_SCAN_RESET_LIM, /* S_LIM: 4.19 on; not on moves that placement wants or need not mind */
	NRP_NR_SCAN_RESET_VARIANTS
};

/* Answers and facts: a record may not say. */
enum nrp_scan_reset_answer { NRP_RESET_NO, NRP_RESET_YES, NRP_RESET_UNKNOWN };

enum nrp_scan_reset_step {
	NRP_RESET_CHOSEN, /* NUMA placement has chosen a CPU and is about to ask for the move */
	NRP_RESET_MOVED   /* the task's CPU changes, for any cause */
};

/* A number that may be unknown. */
struct nrp_scan_reset_number {
	int32_t value;
	uint8_t known;
};
#define NRP_RESET_KNOWN(v) ((struct nrp_scan_reset_number){ .value = (v), .known = 1 })

struct nrp_scan_reset_event {
	enum nrp_scan_reset_step step;
	struct nrp_scan_reset_number src_nid, dst_nid;
	struct nrp_scan_reset_number preferred_nid; /* -1: none */
	struct nrp_scan_reset_number scan_seq;      /* the task's copy */
	enum nrp_scan_reset_answer faults;          /* has the task fault arrays? */
};

/* "S418", "S_ALL", "S_LIM"; NULL outside the range. */
const char *nrp_scan_reset_variant_name(enum nrp_scan_reset_variant variant);

/* Is the period reset here? (spec migrate.md 3.3). UNKNOWN only if the unknown facts decide. */
enum nrp_scan_reset_answer nrp_scan_reset_decide(enum nrp_scan_reset_variant variant,
						 const struct nrp_scan_reset_event *event);

#endif
