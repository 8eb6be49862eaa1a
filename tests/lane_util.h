/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small hand-made captures for tests of lanes. */
#ifndef NRP_TESTS_LANE_UTIL_H
#define NRP_TESTS_LANE_UTIL_H

#include "store_util.h"

/*
 * Two nodes of four CPUs each (0-3, 4-7), 4 KiB pages, 512 of them in a huge page, HZ 250. A test
 * changes capture.facts between begin and ready.
 */
struct lane_file {
	struct nrp_store *store;
	struct nrp_writer *writer;
	struct nrp_capture capture;
};

/* A new database with one capture that recorded the events @probes, NULL at the end. */
void lane_begin(struct lane_file *file, const char *const *probes);
/* Adds a row; in any order. */
void lane_put(struct lane_file *file, enum nrp_record_kind kind, const void *row);
/* Writes everything and loads the capture as a command would. */
void lane_ready(struct lane_file *file);
void lane_end(struct lane_file *file);

/* A row with all fields NULL but the time. */
#define LANE_ROW(kind, variable, when)                                                             \
	struct nrp_##kind variable = { .null = ~UINT64_C(0) };                                     \
	NRP_SET(&variable, kind, time, (when))

#endif
