/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The joiner: raw events in time order -> records. Events of one thread never overlap, so one state
 * machine per thread puts a fault (or a scan pass, an unmap, ..) together from its events (spec
 * migrate.md 5.3, scan.md 5.3). Events that fit nowhere are counted.
 */
#ifndef NRP_JOIN_H
#define NRP_JOIN_H

#include "capture/events.h"
#include "numareplay/store.h"

struct nrp_joiner;

/* Records that contradict the nodes of a facts file, and the first of them. */
struct nrp_contradiction {
	uint64_t count;
	int32_t cpu; /* -1: none; the facts list fewer nodes */
	int32_t nid; /* where the kernel has CPU or page; -1: the facts do not list the CPU */
};

/* What the joiner cannot put into a record. */
struct nrp_join_stats {
	uint64_t events;   /* all events seen */
	uint64_t other;    /* events that no record holds */
	uint64_t unjoined; /* events without the record they belong to */
	uint64_t unjoined_by_event[NRP_NR_EVENTS];
	uint64_t first_time, last_time; /* ns */
	uint64_t lost_events;           /* known number */
	int64_t loss_gaps;              /* gaps of unknown size */
	struct nrp_contradiction contradiction;
};

/* @facts must outlive the joiner: calibration and topology resolve node and cpupid of faults. */
int nrp_joiner_new(struct nrp_joiner **ret, const struct nrp_catalogue *catalogue,
		   const struct nrp_host_facts *facts, struct nrp_store *store,
		   struct nrp_writer *writer, int64_t capture_id, struct nrp_error *err);
int nrp_joiner_event(struct nrp_joiner *joiner, const struct nrp_raw_event *raw,
		     struct nrp_error *err);
/* Writes everything that is open, marked as such: events of some CPU are missing from here on. */
int nrp_joiner_break(struct nrp_joiner *joiner, struct nrp_error *err);
/* Counts and writes a gap that no event follows. */
int nrp_joiner_loss(struct nrp_joiner *joiner, const struct nrp_loss *loss, struct nrp_error *err);
/* Writes what is still open, marked as such. */
int nrp_joiner_finish(struct nrp_joiner *joiner, struct nrp_error *err);
const struct nrp_join_stats *nrp_joiner_stats(const struct nrp_joiner *joiner);
struct nrp_joiner *nrp_joiner_free(struct nrp_joiner *joiner);

#endif
