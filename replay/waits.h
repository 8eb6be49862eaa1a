/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration waits (migration_entry_wait): tasks that met a page under migration, each with the
 * migration that it waited for. The record of a wait names address space and address, but not the
 * migration, so that it is found by what was in flight when the wait began: from the first to the
 * last event of a hinting fault's attempt (time + attempt_delay .. + attempt_ns).
 *
 * An attempt explains a wait if it can have set a migration entry (it is not the THP function,
 * which waiters meet as a page lock; neither the limiter nor the prepare step ended it; it is
 * another thread's) and concerns the same page: see enum nrp_wait_evidence. Attempts that are on
 * record as having reached migrate_pages() go before those that are not.
 *
 * mm pointers are the kernel's and may be reused in a long capture. What a loss took away cannot be
 * a candidate: with lost events no cause is certain.
 */
#ifndef NRP_WAITS_H
#define NRP_WAITS_H

#include "numareplay/store.h"

enum nrp_wait_cause {
	NRP_WAIT_UNATTRIBUTED,    /* nothing on record explains it */
	NRP_WAIT_HINT_FAULT,      /* the migration of a hinting fault */
	NRP_WAIT_OTHER_MIGRATION, /* migrate_pages() for another reason: compaction, mbind, .. */
	NRP_NR_WAIT_CAUSES
};

/* Why the cause is believed to concern the page waited for; the best of several. */
enum nrp_wait_evidence {
	NRP_WAIT_NO_EVIDENCE,
	NRP_WAIT_IN_FLIGHT,   /* only that it was under way: another reason, address unknown */
	NRP_WAIT_RELATED_MM,  /* same virtual page in an address space that is kin by fork */
	NRP_WAIT_SHARED_PAGE, /* the struct page that the waiter's mm last faulted on there */
	NRP_WAIT_SAME_MM,     /* same address space and page */
	NRP_WAIT_ENTRY        /* its thread set a migration entry at this address (6.1+) */
};

enum nrp_wait_certainty {
	NRP_WAIT_UNKNOWN,   /* unattributed */
	NRP_WAIT_AMBIGUOUS, /* several candidates, of which the last to begin is named; or only
			       NRP_WAIT_IN_FLIGHT */
	NRP_WAIT_LATE,      /* one candidate, which had just ended: the waiter saw the entry
			       before, but came to the probe after */
	NRP_WAIT_EXACT,     /* one candidate, in flight when the wait began */
	NRP_NR_WAIT_CERTAINTIES
};

/*
 * How long after the end of a migration a wait for it may begin. Nothing sleeps between reading the
 * entry and the wait, but the task may be preempted: 10 ms are a few ticks.
 */
#define NRP_WAIT_LATE_NS UINT64_C(10000000)

struct nrp_wait {
	uint64_t time, end_time; /* ns; end_time 0 if open */
	uint64_t mm, addr;       /* 0 if the probe lacks it */
	int32_t tid;
	bool open;           /* end not on record */
	uint8_t cause;       /* enum nrp_wait_cause */
	uint8_t evidence;    /* enum nrp_wait_evidence */
	uint8_t certainty;   /* enum nrp_wait_certainty */
	uint8_t reason;      /* migrate reason of the cause; 5 for a hinting fault */
	uint32_t candidates; /* of equal evidence */
	uint64_t cause_time; /* ns: of the hint_fault; of the migration record; 0: no cause */
	uint64_t cause_mm;   /* of the hint_fault; 0: not known */
	int32_t cause_tid;
};

/* A wait and one candidate of its cause, a hinting fault; by (time, tid) of the fault. */
struct nrp_wait_link {
	uint64_t time;
	size_t wait; /* index in nrp_waits.at */
	int32_t tid;
};

/* One address space, as waiter and as blocker (its hinting faults made others wait). */
struct nrp_wait_process {
	uint64_t mm;                /* 0: waits or faults without address space on record */
	int32_t tgid;               /* -1: not known */
	uint64_t waited, waited_ns; /* waits of its tasks, whatever the cause */
	uint64_t caused, caused_ns; /* waits that are attributed to its faults */
};

struct nrp_wait_count {
	uint64_t waits, ns; /* an open wait counts 0 ns */
};

struct nrp_wait_totals {
	struct nrp_wait_count all;
	struct nrp_wait_count by_cause[NRP_NR_WAIT_CAUSES];
	struct nrp_wait_count by_certainty[NRP_NR_WAIT_CERTAINTIES];
	uint64_t open;                   /* waits without end */
	uint64_t p50_ns, p99_ns, max_ns; /* of the others, nearest rank; 0: there are none */
};

struct nrp_waits {
	struct nrp_wait *at; /* by time */
	size_t count;
	struct nrp_wait_link *link; /* by time, tid, wait */
	size_t nr_links;
	struct nrp_wait_process *process; /* by mm */
	size_t nr_processes;
	struct nrp_wait_totals totals;
};

/*
 * Loads and attributes the waits of a capture; reads no faults if it has none. Fails with -ENOMEM
 * or as nrp_cursor_next() does.
 */
int nrp_waits_load(struct nrp_waits *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, struct nrp_error *err);
void nrp_waits_clear(struct nrp_waits *waits);

/* Waits of one hinting fault: at least @certain, at most @certain + @possible. */
struct nrp_fault_waits {
	struct nrp_wait_count certain;  /* exact or late */
	struct nrp_wait_count possible; /* ambiguous: it is one of several candidates */
};

/* Where its links begin, if it has any. */
size_t nrp_waits_first_of_fault(const struct nrp_waits *waits, uint64_t time, int32_t tid);
struct nrp_fault_waits nrp_waits_of_fault(const struct nrp_waits *waits, uint64_t time,
					  int32_t tid);

/* ns of a wait, 0 while its end is not known. */
static inline uint64_t nrp_wait_ns(const struct nrp_wait *wait)
{
	return wait->open ? 0 : wait->end_time - wait->time;
}

#endif
