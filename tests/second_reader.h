/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a capture holds, read with libtracecmd and libtraceevent alone: the expected values of the
 * capture tests. This is the only place that reads the group "truth".
 */
#ifndef NRP_TEST_SECOND_READER_H
#define NRP_TEST_SECOND_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One call of the migration limiter as the kernel answered it. */
struct kernel_answer {
	uint64_t time; /* of prepare_begin (truth) or migrate_begin / thp_begin (ratelimit event) */
	int tid, cpu;
	bool admitted;
};

struct second_reading {
	uint64_t fault_begins, filter_answers, filter_allows, task_faults;
	uint64_t moved_flags;          /* task_fault with MIGRATED */
	uint64_t local_flags;          /* task_fault with FAULT_LOCAL */
	uint64_t armed_pages;          /* sum of range_end.pages */
	uint64_t numa_succeeded;       /* mm_migrate_pages, reason 5 */
	uint64_t null_groups, groups;  /* filter_begin by group pointer */
	struct kernel_answer *answers; /* by time */
	size_t nr_answers;
};

/* 0, or -1 if the file does not open. Free with second_reading_free(). */
int second_reading(struct second_reading *ret, const char *path);
void second_reading_free(struct second_reading *reading);

#endif
