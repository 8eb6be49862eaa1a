/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The attempts to migrate that reach the rate limiter's place, in the order in which they begin,
 * with what the capture proves about each (spec migrate.md 1.7, 1.8).
 */
#ifndef NRP_ATTEMPTS_H
#define NRP_ATTEMPTS_H

#include "numareplay/store.h"

/* What the kernel's own limiter said. */
enum nrp_limiter_evidence {
	NRP_LIMITER_UNKNOWN,  /* failed, and nothing says why: refused, or another reason */
	NRP_LIMITER_ADMITTED, /* the page moved, or the code behind the limiter was reached */
	NRP_LIMITER_DENIED    /* the kernel's ratelimit event came inside the attempt */
};

struct nrp_attempt {
	uint64_t time, end_time; /* ns; first and last event of the attempt */
	uint64_t jiffies;        /* at the first event */
	uint64_t mm, addr;
	uint64_t ordinal; /* in the order in which the faults began */
	uint32_t pages;   /* n: 1, a folio, or a huge page */
	int32_t tid;
	uint32_t cpu;
	int16_t nid;       /* target */
	uint8_t evidence;  /* enum nrp_limiter_evidence */
	bool charge_known; /* an admitted attempt is certainly charged (else: perhaps not) */
	bool moved;
};

/* A gap in the capture: attempts may be missing in it. */
struct nrp_loss_span {
	uint64_t from, to; /* ns; to UINT64_MAX: the end of the capture */
};

struct nrp_attempts {
	struct nrp_attempt *at;
	size_t count;
	uint64_t refused_before;    /* attempts that end before the limiter's place (-EACCES) */
	uint64_t unknown;           /* attempts of unknown evidence */
	uint64_t denied;            /* attempts that the kernel's limiter refused, on record */
	uint64_t moved;             /* attempts that moved their page */
	uint64_t moved_pages;       /* base pages */
	uint64_t admitted_failed;   /* certainly admitted, yet not moved */
	int nr_nodes;               /* highest target + 1 */
	uint32_t max_pages;         /* largest n */
	bool ticks_from_clock;      /* no jiffies in the capture: computed from time and HZ */
	struct nrp_loss_span *loss; /* gaps in the capture, by time */
	size_t nr_losses;
};

/*
 * Collects the attempts of a capture. -ENODATA (NRP_INPUT) if neither jiffies nor HZ are known.
 */
int nrp_attempts_load(struct nrp_attempts *ret, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err);
/* A copy of its own; -ENOMEM. */
int nrp_attempts_copy(struct nrp_attempts *ret, const struct nrp_attempts *attempts);
void nrp_attempts_clear(struct nrp_attempts *attempts);

/* Did the fault move its page? Not if the capture does not say. */
static inline bool nrp_fault_moved(const struct nrp_hint_fault *fault)
{
	return !NRP_NULL(fault, hint_fault, moved) && fault->moved;
}

/* Base pages of a fault, at least 1: where the capture does not say, one. */
static inline uint32_t nrp_fault_pages(const struct nrp_hint_fault *fault)
{
	return NRP_NULL(fault, hint_fault, pages) || !fault->pages ? 1 : fault->pages;
}

/*
 * Can this hint fault's attempt be used, and as what? false: there is none, or it ends before the
 * limiter's place. Fills everything but jiffies when the row has none (then *ret_has_jiffies is
 * false).
 */
bool nrp_attempt_of_fault(struct nrp_attempt *ret, const struct nrp_hint_fault *fault,
			  bool *ret_has_jiffies);
/* Columns of hint_fault that nrp_attempt_of_fault() reads. */
uint64_t nrp_attempt_columns(void);

/* Ticks from ns, where the capture has none: floor(time * hz); the phase is unknown. */
uint64_t nrp_ticks(uint64_t time, int64_t hz);

/*
 * The largest number of pages attempted to one node in any span of @ticks consecutive ticks:
 * "no variant can refuse anything" follows if it is at most the quota.
 */
int nrp_attempts_max_in_window(const struct nrp_attempts *attempts, uint64_t ticks,
			       uint64_t *ret_pages, struct nrp_error *err);

#endif
