/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace-cmd file with its side files -> one capture in the store. */
#ifndef NRP_IMPORT_H
#define NRP_IMPORT_H

#include "capture/join.h"
#include "capture/samples.h"
#include "numareplay/store.h"

struct nrp_import_options {
	const char *path;      /* the trace-cmd file */
	const char *name;      /* capture name; NULL: file name without directory and ending */
	const char *facts;     /* NULL: X.facts beside X.dat, if it exists */
	const char *vmstat[2]; /* before, after; NULL: X.vmstat0/1, if both exist */
	struct nrp_samples_options samples; /* path NULL: X.samples, if it exists */
	bool force;                         /* replace a capture with the same bytes or name */
	/* Called now and then with the number of events read; NULL: silent. */
	void (*progress)(void *context, uint64_t events);
	void *context;
};

/*
 * Imports inside the caller's transaction; on failure the caller rolls back. Fills @ret (owned by
 * the caller: nrp_capture_clear()), @ret_stats and, unless NULL, @ret_samples. NRP_INPUT:
 * unreadable or damaged; NRP_USAGE: imported already (without force).
 */
int nrp_import_trace(struct nrp_store *store, const struct nrp_import_options *options,
		     struct nrp_capture *ret, struct nrp_join_stats *ret_stats,
		     struct nrp_samples_stats *ret_samples, struct nrp_error *err);

#endif
