/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.vma: which VMAs does one run of the NUMA scanner arm, and how far does it get?
 * A re-telling of task_numa_work() and vma_is_accessed() (kernel/sched/fair.c) in five generations;
 * spec scan.md 2.
 */
#ifndef NRP_POLICY_SCAN_VMA_H
#define NRP_POLICY_SCAN_VMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nrp_scan_vma_variant {
	NRP_SCAN_VMA_P0, /* up to 6.3: every eligible VMA */
	NRP_SCAN_VMA_P1, /* 6.4..6.6: state per VMA, scan delay, PID filter */
	NRP_SCAN_VMA_P2, /* 6.7..6.11: + partial VMAs, forced scans, passes counted per VMA */
	NRP_SCAN_VMA_P3, /* 6.12..6.15: + VMAs left out for too long */
	NRP_SCAN_VMA_P4, /* 6.16..: + nothing for tasks bound to one node by their cpuset */
	NRP_NR_SCAN_VMA_VARIANTS
};

/* Rules of the variants; each may be switched off alone. */
#define NRP_SCAN_RULE_DELAY 0x01   /* P1+: new VMAs wait for the scan delay */
#define NRP_SCAN_RULE_PID 0x02     /* P1+: VMAs that the thread did not fault in are left out */
#define NRP_SCAN_RULE_PARTIAL 0x04 /* P2+: go on with a VMA scanned in part */
#define NRP_SCAN_RULE_FORCED 0x08  /* P2+: a second walk takes one inactive VMA */
#define NRP_SCAN_RULE_SEQ_COMPLETED 0x10 /* P2+: no VMA twice in one sequence */
#define NRP_SCAN_RULE_START_SEQ 0x20     /* P2+: "first two" counts from the VMA's birth */
#define NRP_SCAN_RULE_STALE 0x40         /* P3+: VMAs left out for nr_threads sequences */
#define NRP_SCAN_RULE_CPUSET 0x80        /* P4 */
#define NRP_NR_SCAN_RULES 8

struct nrp_scan_vma_policy {
	enum nrp_scan_vma_variant variant;
	uint32_t rules;          /* NRP_SCAN_RULE_*; rules the variant does not have are ignored */
	uint64_t page_size;      /* bytes */
	uint64_t huge_size;      /* bytes: ends of ranges are rounded up to it */
	uint64_t scan_pages;     /* scan_size_mb in pages */
	uint64_t delay_jiffies;  /* J(scan_delay_ms) */
	uint64_t window_jiffies; /* of PID bits: J(4 * scan_delay_ms) */
};

/* Classes of the VMA filter that comes before all policy (spec 1.1). */
enum nrp_scan_vma_class {
	NRP_SCAN_VMA_ELIGIBLE,
	NRP_SCAN_VMA_UNSUITABLE,   /* V1 */
	NRP_SCAN_VMA_SHARED_RO,    /* V2 */
	NRP_SCAN_VMA_INACCESSIBLE, /* V3 */
};

/* Why a VMA was left out: numbers of the kernel's tracepoint sched_skip_vma_numa. */
enum nrp_scan_vma_skip {
	NRP_SCAN_SKIP_UNSUITABLE,
	NRP_SCAN_SKIP_SHARED_RO,
	NRP_SCAN_SKIP_INACCESSIBLE,
	NRP_SCAN_SKIP_DELAY,
	NRP_SCAN_SKIP_PID_INACTIVE,
	NRP_SCAN_SKIP_IGNORE_PID, /* reported, yet the VMA is scanned: it was scanned in part */
	NRP_SCAN_SKIP_SEQ_COMPLETED,
	NRP_SCAN_SKIP_CPUSET, /* the whole pass; no VMA */
	NRP_NR_SCAN_SKIPS
};

/* What let a VMA through the PID filter. */
enum nrp_scan_vma_pass {
	NRP_SCAN_BY_NO_FILTER, /* P0, or the PID rule is off */
	NRP_SCAN_BY_FIRST_TWO, /* rule a */
	NRP_SCAN_BY_PID,       /* rule b */
	NRP_SCAN_BY_PARTIAL,   /* rule c */
	NRP_SCAN_BY_STALE,     /* rule d */
	NRP_SCAN_BY_FORCE,     /* second walk */
	NRP_NR_SCAN_PASSES
};

/* All that makes a decision: what let a VMA through, then why one was left out. */
#define NRP_NR_SCAN_REASONS (NRP_NR_SCAN_PASSES + NRP_NR_SCAN_SKIPS)

/* vma_numab_state; times in jiffies. */
struct nrp_scan_vma_state {
	uint64_t next_scan, pids_reset;
	uint64_t pids[2]; /* previous and current window */
	int32_t start_seq, prev_seq;
};

struct nrp_scan_vma {
	uint64_t start, end; /* bytes */
	enum nrp_scan_vma_class class;
	bool has_state; /* made at the first visit that passes V1..V3 */
	struct nrp_scan_vma_state state;
};

struct nrp_scan_mm {
	int32_t seq;              /* numa_scan_seq */
	uint64_t offset;          /* numa_scan_offset, bytes */
	struct nrp_scan_vma *vma; /* ascending, the caller's */
	size_t nr_vmas;
};

/* One run of task_numa_work that got the lock. */
struct nrp_scan_call {
	int32_t tid;          /* in the initial pid namespace */
	int32_t nr_threads;   /* of the thread group */
	uint64_t jiffies;     /* at entry: states made in this run count from it */
	uint64_t jiffies_now; /* of the comparisons: at entry, or a little later */
	bool cpuset_one_node; /* cpusets in use, and the task's has exactly one node */
};

struct nrp_scan_ops {
	/* The run comes to this VMA: its PID bits must be those of now. May be NULL. */
	void (*look)(void *context, struct nrp_scan_vma *vma);
	/* A range is armed; returns whether any entry was. */
	bool (*arm)(void *context, const struct nrp_scan_vma *vma, uint64_t start, uint64_t end,
		    enum nrp_scan_vma_pass by);
	/* @vma is NULL for NRP_SCAN_SKIP_CPUSET. P0 and P1 report too, though their kernels have
	 * no tracepoint. */
	void (*skip)(void *context, const struct nrp_scan_vma *vma, enum nrp_scan_vma_skip why);
	void *context;
};

/* Sequences are the kernel's ints, which may wrap. */
static inline int32_t nrp_scan_seq_add(int32_t seq, int32_t more)
{
	return (int32_t)((uint32_t)seq + (uint32_t)more);
}

static inline int32_t nrp_scan_seq_since(int32_t seq, int32_t before)
{
	return (int32_t)((uint32_t)seq - (uint32_t)before);
}

/* "P0" .. "P4"; NULL outside the range. */
const char *nrp_scan_vma_variant_name(enum nrp_scan_vma_variant variant);
/* "delay", "pid", "partial", "forced", "seq_completed", "start_seq", "stale", "cpuset": of bit @i;
 * NULL outside the range. */
const char *nrp_scan_vma_rule_name(unsigned int i);
/* "P2 without pid", .. for a bit NRP_SCAN_RULE_*; NULL: none of P0..P4. */
const char *nrp_scan_vma_without_name(enum nrp_scan_vma_variant variant, uint32_t rule);
/* "first_two", .., then those of NRP_NR_SCAN_SKIPS as the kernel's tracepoint names them. */
const char *nrp_scan_reason_name(unsigned int i);
/* The rules that a variant has. */
uint32_t nrp_scan_vma_rules(enum nrp_scan_vma_variant variant);
/* Bit of a thread in the windows: hash of the tid, 64-bit kernels. */
uint64_t nrp_scan_pid_bit(int32_t tid);
/* A counted hinting fault in the VMA; without state it leaves no trace (spec 2.2). */
void nrp_scan_vma_touch(struct nrp_scan_vma *vma, int32_t tid);
/* One run (spec 2.3); reports decisions in order and updates @mm and its VMAs. */
void nrp_scan_vma_run(const struct nrp_scan_vma_policy *policy, struct nrp_scan_mm *mm,
		      const struct nrp_scan_call *call, const struct nrp_scan_ops *ops);

#endif
