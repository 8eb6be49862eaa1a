/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A task's scan period, followed from fault to fault by the rule (policies/scan_period.h). What the
 * records leave open (did this fault already see the new sequence? how many windows does the
 * address space fill?) is taken all ways: guesses live side by side until a sight of the task's
 * period and sequence tells them apart.
 */
#ifndef NRP_PERIOD_GUESSES_H
#define NRP_PERIOD_GUESSES_H

#include "replay/policies/scan_period.h"

#include <stddef.h>

#define NRP_MAX_PERIOD_GUESSES 32

/* No padding: guesses are compared byte by byte. */
struct nrp_period_guess {
	uint64_t retry_low, retry_high;   /* numa_migrate_retry lies between, jiffies */
	uint64_t shared, private, either; /* pages in the buffers; either: not known which */
	uint64_t nearby;                  /* pages of faults that are remote or local */
	struct nrp_scan_task task;        /* of the others: its locality counters */
	int64_t seq;                      /* the task's copy of the scan sequence */
	uint32_t least_cap, most_cap;     /* bounds with a window more and less, ms */
	uint16_t passes;                  /* placement passes since the last sight: 0, 1, 2: more */
	uint8_t by;                       /* enum nrp_period_by of the last placement pass */
	bool seq_known, period_known;
	bool counters_known; /* the locality counters, and what was in the buffers before */
	bool uncapped;       /* no upper bound was applied: the group's is not known */
	bool met_faults;     /* a placement pass had faults: there is a preferred node */
};
_Static_assert(sizeof(struct nrp_period_guess) ==
		       6 * sizeof(uint64_t) + sizeof(struct nrp_scan_task) + 24,
	       "a guess has no padding");

struct nrp_period_guesses {
	size_t count; /* 0: nothing is known */
	struct nrp_period_guess at[NRP_MAX_PERIOD_GUESSES];
};

/* What holds for the host. */
struct nrp_period_rule {
	enum nrp_scan_period_variant variant;
	uint32_t rules; /* NRP_PERIOD_* */
	uint32_t hz;
	struct nrp_scan_tunables tunables;
};

#define NRP_MAX_SEQ_CANDIDATES 3

enum nrp_maybe { NRP_MAYBE_NO, NRP_MAYBE_YES, NRP_MAYBE_UNKNOWN };

/* One reported fault, and what is known of its moment. */
struct nrp_period_fault {
	uint64_t pages;
	bool failed;
	enum nrp_maybe private, local;
	uint64_t ticks_low, ticks_high;      /* jiffies at the report */
	int32_t seq[NRP_MAX_SEQ_CANDIDATES]; /* the address space's sequence is one of these */
	size_t nr_seqs;                      /* 0: not known */
	uint64_t windows_low, windows_high;  /* scan windows it fills */
	bool grouped;                        /* a group may stretch the longest period */
	enum nrp_maybe preferred;            /* is there a preferred node? */
};

/* A placement pass that doubled the period put the address space's next scan there, jiffies. */
struct nrp_period_early {
	bool possible, certain;
	uint64_t low, high;
};

/* A new task: no faults yet. Its retry time is not after @retry_high. */
void nrp_period_guesses_fresh(struct nrp_period_guesses *g, uint32_t period_ms,
			      uint64_t retry_high);
/* Too much is unknown: until the next sight. */
void nrp_period_guesses_lose(struct nrp_period_guesses *g);
struct nrp_period_early nrp_period_guesses_fault(struct nrp_period_guesses *g,
						 const struct nrp_period_rule *rule,
						 const struct nrp_period_fault *fault);

enum nrp_period_verdict {
	NRP_PERIOD_NO_DECISION, /* no placement pass, or nothing is known before it */
	NRP_PERIOD_AGREES,      /* whatever is not known */
	NRP_PERIOD_OPEN,        /* some of the guesses agree, or the rule's inputs are not known */
	NRP_PERIOD_DISAGREES
};
/*
 * The task's sequence and period are seen, its longest period if @period_max is not 0. What does
 * not fit is dropped. A sequence that no guess has contradicts the rule, too. @retry_high: the
 * retry time is not after it, if nothing else says so.
 * @ret_by: of NRP_PERIOD_AGREES and _DISAGREES.
 */
enum nrp_period_verdict nrp_period_guesses_sight(struct nrp_period_guesses *g, int32_t seq,
						 uint32_t period, uint32_t period_max,
						 uint64_t retry_high, enum nrp_period_by *ret_by);

#endif
