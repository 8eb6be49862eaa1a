/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory samples: a side file that says which accesses went to which memory, so that remote
 * accesses need not be estimated alone. Two texts of perf are read:
 *
 * perf script of perf mem, IBS or SPE samples, best with
 *	-F comm,pid,tid,cpu,time,period,event,addr,data_src,weight
 *	Fields are found by their form, not by their place: the time by its colon, thread and CPU
 *before it, event, address and data source behind it. What is not there is NULL. perf stat -I MS
 *-x, of counters of local and remote memory Events are known by name, or named by the user. The
 *times count from perf's start.
 */
#ifndef NRP_CAPTURE_SAMPLES_H
#define NRP_CAPTURE_SAMPLES_H

#include "numareplay/store.h"

struct nrp_samples_options {
	const char *path;
	/*
	 * perf stat: the events that count, NULL at the end; NULL: those whose names are known, if
	 * there is one of each level. One that is not known counts remote accesses.
	 */
	const char *const *events;
	bool has_start;
	uint64_t start; /* perf stat: ns of the capture's clock at which perf started */
};

struct nrp_samples_stats {
	bool read;   /* there was a side file */
	bool counts; /* perf stat, not perf script */
	uint64_t lines;
	uint64_t kept;     /* records stored */
	uint64_t outside;  /* before the capture or after it */
	uint64_t repeated; /* one hardware sample that perf shows under several events (SPE) */
	uint64_t without_source; /* samples that do not say where the data came from */
	uint64_t not_counted;    /* intervals in which the counter did not run */
	uint64_t not_understood; /* lines */
	uint64_t first_bad_line; /* number of the first of these, from 1 */
};

/*
 * Reads a side file into memory_sample records of @capture, whose first and last time must be
 * known, inside the caller's transaction. @ret is filled on success. NRP_INPUT: not readable, not
 * perf's text, no sample in it, lines of more than 64 KiB, a file of more than 4 GiB, or times that
 * the capture's clock never showed. NRP_USAGE: perf stat without @start, or without an event that
 * is known by name, or with several of one level.
 */
int nrp_samples_read(const struct nrp_samples_options *options, struct nrp_store *store,
		     const struct nrp_capture *capture, struct nrp_samples_stats *ret,
		     struct nrp_error *err);

#endif
