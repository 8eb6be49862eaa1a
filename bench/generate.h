/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What bench_generate makes. Pages are made one chunk at a time, CPU by CPU, so memory does not
 * grow with the file.
 */
#ifndef NRP_BENCH_GENERATE_H
#define NRP_BENCH_GENERATE_H

#include "capture/tracefile.h"
#include "tests/tools/trace_parts.h"

/* The file that gives headers and event formats, and the one to be written. */
struct nrp_bench_files {
	struct nrp_tracefile *in;
	struct nrp_trace_parts *parts; /* of @in, without pages */
	const char *out_path;
	FILE *out;
	int version; /* of the output: 6, or 7 with zstd */
};

/* Writes the pages of the input @times times, each time later. Returns an exit status. */
int nrp_bench_repeat(struct nrp_bench_files *files, unsigned int times);

struct nrp_bench_numa {
	uint64_t events; /* at least */
	unsigned int nodes;
	uint64_t seed;
};

/* Writes the profile of generate_numa.c, and its facts file beside it. Returns an exit status. */
int nrp_bench_numa(struct nrp_bench_files *files, const struct nrp_bench_numa *options);

#endif
