/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts of what scans did with each eligible VMA: on record, and in runs of other scanners over
 * the same passes. The VMAs' reports in the space are numbers of accounts.
 */
#ifndef NRP_SCAN_ACCOUNTS_H
#define NRP_SCAN_ACCOUNTS_H

#include "replay/scan_lane.h"
#include "replay/scan_walk.h"

/* An account of one run. */
struct nrp_scan_account {
	struct nrp_scan_starvation s;
	uint64_t sequence;             /* of the address space when it was last armed to its end */
	uint64_t ever;                 /* PID bits that were set since the VMA has state */
	uint64_t visited_at, armed_at; /* ns: last pass that came by, that armed something */
};

struct nrp_scan_account_vma {
	struct nrp_scan_lane_vma vma; /* its record and lane stay empty */
	uint32_t space;
};

struct nrp_scan_account_space {
	int32_t nr_threads; /* at the last pass */
	uint64_t last_pass; /* ns */
	int32_t last_seq;   /* on record */
	bool started;
};

struct nrp_scan_accounts {
	unsigned int nr_runs, record;         /* the last run is the record */
	struct nrp_scan_account_space *space; /* [nr_spaces] */
	uint64_t *sequences;                  /* [nr_spaces][nr_runs]: finished */
	struct nrp_scan_account_vma *vma;     /* [nr_vmas] */
	struct nrp_scan_account *account;     /* [nr_vmas][nr_runs] */
	size_t nr_vmas, room;
};

/* @nr_runs: with the record. -ENOMEM; clear() frees, after a failure too. */
int nrp_scan_accounts_init(struct nrp_scan_accounts *accounts, uint32_t nr_spaces,
			   unsigned int nr_runs);
void nrp_scan_accounts_clear(struct nrp_scan_accounts *accounts);

/* A pass over @space begins: VMAs that are new get accounts. -ENOMEM. */
int nrp_scan_accounts_begin(struct nrp_scan_accounts *accounts, const struct nrp_scan_visit *visit,
			    struct nrp_scan_space *space);
/* The account of a VMA; NULL: it has none. Valid until the next pass begins. */
struct nrp_scan_account *nrp_scan_account(struct nrp_scan_accounts *accounts,
					  const struct nrp_scan_area *area, unsigned int run);
/* A range up to @end, of @pages entries (-1: not known), armed by the pass that began at @pass. */
void nrp_scan_account_armed(struct nrp_scan_account *account, uint64_t pass, uint64_t end,
			    uint64_t vm_end, int64_t pages, uint64_t sequences);
/* Left out by the pass of thread @tid that began at @pass. */
void nrp_scan_account_skipped(struct nrp_scan_account *account, uint64_t pass,
			      enum nrp_scan_vma_skip why, int32_t tid);
/* A counted hinting fault on record. A VMA that no scan has met keeps no bits. */
void nrp_scan_account_touched(struct nrp_scan_account *account, int32_t tid);
/* Sequences of an address space that a run has finished; may be added to. */
uint64_t *nrp_scan_accounts_sequences(const struct nrp_scan_accounts *accounts, uint32_t space,
				      unsigned int run);
/* On record: what the pass did, and the faults while it ran. */
void nrp_scan_accounts_record(struct nrp_scan_accounts *accounts,
			      const struct nrp_scan_trace *trace,
			      const struct nrp_scan_visit *visit,
			      const struct nrp_scan_space *space,
			      const struct nrp_scan_meanwhile *meanwhile);
/* The faults alone, of a pass that is not judged. */
void nrp_scan_accounts_faults(struct nrp_scan_accounts *accounts,
			      const struct nrp_scan_space *space,
			      const struct nrp_scan_meanwhile *meanwhile);
/* The pass is over. */
void nrp_scan_accounts_end(struct nrp_scan_accounts *accounts, const struct nrp_scan_visit *visit,
			   const struct nrp_scan_space *space);

/* At the end, of one run. */
struct nrp_scan_starvation nrp_scan_accounts_of(const struct nrp_scan_accounts *accounts,
						size_t vma, unsigned int run);
/* All VMAs with their record; malloc'd, NULL: out of memory. */
struct nrp_scan_lane_vma *nrp_scan_accounts_close(const struct nrp_scan_accounts *accounts);

#endif
