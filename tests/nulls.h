/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The captures of test_nulls and those of its tests that are in files of their own. */
#ifndef NRP_TESTS_NULLS_H
#define NRP_TESTS_NULLS_H

#include "null_util.h"

extern struct loaded *null_captures; /* [null_count] */
extern size_t null_count;

/* nulls_conservation.c */
void test_pages_end_where_the_last_record_left_them(void **state);
void test_moved_pages_are_the_sum_over_pairs_of_nodes(void **state);
void test_huge_pages_add_up_to_vmstat(void **state);
void test_thp_function_moves_512_pages(void **state);

#endif
