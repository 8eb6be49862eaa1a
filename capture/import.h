/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace-cmd file with its side files -> one capture in the store. */
#ifndef NRP_IMPORT_H
#define NRP_IMPORT_H

#include "capture/join.h"
#include "capture/samples.h"
#include "capture/textfile.h"
#include "numareplay/store.h"

struct nrp_import_options {
	const char *path;  /* a trace-cmd file, or a trace as text (docs/text.md); "-": stdin */
	const char *name;  /* capture name; NULL: file name without directory and ending */
	const char *facts; /* NULL: X.facts beside X.dat, if it exists */
	/* numactl -H, lscpu -p, numa_maps or copies of /sys, NULL at the end; NULL: none */
	const char *const *topology;
	const char *vmstat[2];              /* before, after; NULL: X.vmstat0/1, if both exist */
	struct nrp_samples_options samples; /* path NULL: X.samples, if it exists */
	struct nrp_text_stats *ret_text;    /* filled at the end; NULL: not asked for */
	bool force;                         /* replace a capture with the same bytes or name */
	bool strict;                        /* damage is an error: nothing is salvaged */
	bool libtracecmd;                   /* it reads the events; strict */
	/* Called now and then with the number of events read; NULL: silent. */
	void (*progress)(void *context, uint64_t events);
	void *context;
};

/* What was damaged in a capture, and what could be read of each CPU in spite of it. */
struct nrp_import_damage {
	uint64_t places;        /* damaged places of the file; 0: all is well */
	struct nrp_error first; /* the first one that was met */
	/* Each CPU of each instance that has data, or should have; only with @places. */
	struct nrp_cpu_reading *cpu;
	size_t nr_cpus;
};

void nrp_import_damage_clear(struct nrp_import_damage *damage);

/*
 * Imports inside the caller's transaction; on failure the caller rolls back. Fills @ret (owned by
 * the caller: nrp_capture_clear()), @ret_stats and, unless NULL, @ret_samples and @ret_damage
 * (owned by the caller, too). NRP_INPUT: unreadable, or damaged so that nothing can be salvaged;
 * NRP_USAGE: imported already (without force).
 *
 * A damaged file is salvaged (docs/damage.md): each gap is a loss record, and @ret_damage tells.
 * Of a text it has no CPUs: lines that could not be read name none.
 * With @ret_damage NULL, options->strict or ->libtracecmd, any damage is NRP_INPUT.
 */
int nrp_import_trace(struct nrp_store *store, const struct nrp_import_options *options,
		     struct nrp_capture *ret, struct nrp_join_stats *ret_stats,
		     struct nrp_samples_stats *ret_samples, struct nrp_import_damage *ret_damage,
		     struct nrp_error *err);

#endif
