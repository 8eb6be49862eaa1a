/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.vma: task_numa_work(), kernel/sched/fair.c; spec scan.md 2.
 *
 *   P1  ef6a22b70f6d, fc137c0ddab2, 20f586486b87, d46031f40e0f (6.4)
 *   P2  2e2675db1906, b7a5b537c55c, f169c62ff7cd, 84db47ca7146 (6.7)
 *   P3  f22cde4371f3 (6.12)
 *   P4  1f6c6ac03db4 (6.16)
 *
 * The idea: scanning costs, so a thread should arm only VMAs it uses. Every later rule gives back
 * a case in which the filter starved a VMA.
 */
#include "replay/policies/scan_vma.h"

#define ALL_P1 (NRP_SCAN_RULE_DELAY | NRP_SCAN_RULE_PID)
#define ALL_P2                                                                                     \
	(ALL_P1 | NRP_SCAN_RULE_PARTIAL | NRP_SCAN_RULE_FORCED | NRP_SCAN_RULE_SEQ_COMPLETED |     \
	 NRP_SCAN_RULE_START_SEQ)
#define ALL_P3 (ALL_P2 | NRP_SCAN_RULE_STALE)
#define ALL_P4 (ALL_P3 | NRP_SCAN_RULE_CPUSET)

/* A run looks at this many times the pages it may arm. */
#define VIRTUAL_FACTOR 8
/* Sequences in which a VMA is open to every thread. */
#define FIRST_SEQUENCES 2
#define HASH_MULTIPLIER UINT32_C(0x61C88647)
#define HASH_SHIFT 26

const char *nrp_scan_vma_variant_name(enum nrp_scan_vma_variant variant)
{
	static const char *const names[] = { "P0", "P1", "P2", "P3", "P4" };

	return (unsigned int)variant < NRP_NR_SCAN_VMA_VARIANTS ? names[variant] : NULL;
}

const char *nrp_scan_vma_rule_name(unsigned int i)
{
	static const char *const names[NRP_NR_SCAN_RULES] = {
		"delay", "pid", "partial", "forced", "seq_completed", "start_seq", "stale", "cpuset"
	};

	return i < NRP_NR_SCAN_RULES ? names[i] : NULL;
}

#define WITHOUT(v)                                                                                 \
	{                                                                                          \
		v " without delay", v " without pid", v " without partial", v " without forced",   \
			v " without seq_completed", v " without start_seq", v " without stale",    \
			v " without cpuset"                                                        \
	}

const char *nrp_scan_vma_without_name(enum nrp_scan_vma_variant variant, uint32_t rule)
{
	static const char *const names[NRP_NR_SCAN_VMA_VARIANTS][NRP_NR_SCAN_RULES] = {
		WITHOUT("P0"), WITHOUT("P1"), WITHOUT("P2"), WITHOUT("P3"), WITHOUT("P4")
	};

	return (unsigned int)variant < NRP_NR_SCAN_VMA_VARIANTS && rule
		       ? names[variant][__builtin_ctz(rule) % NRP_NR_SCAN_RULES]
		       : NULL;
}

const char *nrp_scan_reason_name(unsigned int i)
{
	static const char *const names[NRP_NR_SCAN_REASONS] = {
		"no_filter",     "first_two",  "pid_active",   "partial",
		"stale",         "forced",     "unsuitable",   "shared_ro",
		"inaccessible",  "scan_delay", "pid_inactive", "ignore_pid_inactive",
		"seq_completed", "cpuset"
	};

	return i < NRP_NR_SCAN_REASONS ? names[i] : NULL;
}

uint32_t nrp_scan_vma_rules(enum nrp_scan_vma_variant variant)
{
	static const uint32_t rules[] = { 0, ALL_P1, ALL_P2, ALL_P3, ALL_P4 };

	return (unsigned int)variant < NRP_NR_SCAN_VMA_VARIANTS ? rules[variant] : 0;
}

uint64_t nrp_scan_pid_bit(int32_t tid)
{
	return UINT64_C(1) << ((uint32_t)tid * HASH_MULTIPLIER >> HASH_SHIFT);
}

void nrp_scan_vma_touch(struct nrp_scan_vma *vma, int32_t tid)
{
	if (vma->has_state)
		vma->state.pids[1] |= nrp_scan_pid_bit(tid);
}

/* ---- one run ------------------------------------------------------------------------ */

struct walk {
	const struct nrp_scan_vma_policy *policy;
	struct nrp_scan_mm *mm;
	const struct nrp_scan_call *call;
	const struct nrp_scan_ops *ops;
	uint32_t rules;
	int64_t pages, virtual_pages; /* left of the budget */
	uint64_t start;
	bool skipped, forced; /* a VMA was left out as inactive; this is the second walk */
};

static void skip(const struct walk *w, const struct nrp_scan_vma *v, enum nrp_scan_vma_skip why)
{
	w->ops->skip(w->ops->context, v, why);
}

static bool unsuitable(const struct walk *w, const struct nrp_scan_vma *v)
{
	switch (v->class) {
	case NRP_SCAN_VMA_UNSUITABLE:
		skip(w, v, NRP_SCAN_SKIP_UNSUITABLE);
		return true;
	case NRP_SCAN_VMA_SHARED_RO:
		skip(w, v, NRP_SCAN_SKIP_SHARED_RO);
		return true;
	case NRP_SCAN_VMA_INACCESSIBLE:
		skip(w, v, NRP_SCAN_SKIP_INACCESSIBLE);
		return true;
	default:
		return false;
	}
}

static void make_state(const struct walk *w, struct nrp_scan_vma *v)
{
	struct nrp_scan_vma_state *s = &v->state;

	s->next_scan = w->call->jiffies + w->policy->delay_jiffies;
	s->pids_reset = s->next_scan + w->policy->window_jiffies;
	s->pids[0] = s->pids[1] = 0;
	s->start_seq = w->mm->seq;
	s->prev_seq = nrp_scan_seq_add(w->mm->seq, -1);
	v->has_state = true;
}

/* vma_is_accessed(): rules a to d in their order. */
static bool accessed(const struct walk *w, const struct nrp_scan_vma *v,
		     enum nrp_scan_vma_pass *ret_by)
{
	const struct nrp_scan_vma_state *s = &v->state;
	int32_t base = w->rules & NRP_SCAN_RULE_START_SEQ ? s->start_seq : 0;

	*ret_by = NRP_SCAN_BY_NO_FILTER;
	if (!(w->rules & NRP_SCAN_RULE_PID))
		return true;
	*ret_by = NRP_SCAN_BY_FIRST_TWO;
	if (nrp_scan_seq_since(w->mm->seq, base) < FIRST_SEQUENCES)
		return true;
	*ret_by = NRP_SCAN_BY_PID;
	if ((s->pids[0] | s->pids[1]) & nrp_scan_pid_bit(w->call->tid))
		return true;
	*ret_by = NRP_SCAN_BY_PARTIAL;
	if (w->rules & NRP_SCAN_RULE_PARTIAL && w->mm->offset > v->start) {
		skip(w, v, NRP_SCAN_SKIP_IGNORE_PID);
		return true;
	}
	*ret_by = NRP_SCAN_BY_STALE;
	return w->rules & NRP_SCAN_RULE_STALE &&
	       w->mm->seq > nrp_scan_seq_add(s->prev_seq, w->call->nr_threads);
}

static void rotate_window(const struct walk *w, struct nrp_scan_vma_state *s)
{
	if (w->mm->seq == 0 || w->call->jiffies_now <= s->pids_reset)
		return;
	s->pids_reset += w->policy->window_jiffies;
	s->pids[0] = s->pids[1];
	s->pids[1] = 0;
}

/* Is this VMA's turn now? All rules that come before arming. */
static bool admitted(struct walk *w, struct nrp_scan_vma *v, enum nrp_scan_vma_pass *ret_by)
{
	bool late_rotation = w->policy->variant == NRP_SCAN_VMA_P1;

	*ret_by = NRP_SCAN_BY_NO_FILTER;
	if (unsuitable(w, v))
		return false;
	if (w->policy->variant == NRP_SCAN_VMA_P0)
		return true;
	if (!v->has_state)
		make_state(w, v);
	if (w->rules & NRP_SCAN_RULE_DELAY && w->mm->seq != 0 &&
	    w->call->jiffies_now < v->state.next_scan) {
		skip(w, v, NRP_SCAN_SKIP_DELAY);
		return false;
	}
	if (!late_rotation)
		rotate_window(w, &v->state);
	if (w->rules & NRP_SCAN_RULE_SEQ_COMPLETED && v->state.prev_seq == w->mm->seq) {
		/* Where a second walk would begin; the walk that runs goes on. */
		w->mm->offset = v->end;
		skip(w, v, NRP_SCAN_SKIP_SEQ_COMPLETED);
		return false;
	}
	if (w->forced) {
		*ret_by = NRP_SCAN_BY_FORCE;
	} else if (!accessed(w, v, ret_by)) {
		w->skipped = true;
		skip(w, v, NRP_SCAN_SKIP_PID_INACTIVE);
		return false;
	}
	if (late_rotation)
		rotate_window(w, &v->state);
	return true;
}

static uint64_t range_end(const struct walk *w, const struct nrp_scan_vma *v)
{
	uint64_t huge = w->policy->huge_size;
	uint64_t end = w->start + (uint64_t)w->pages * w->policy->page_size;

	/* An address space ends far below 2^64, but a damaged record may not. */
	if (end < w->start || end > UINT64_MAX - huge)
		return v->end;
	end = (end + huge - 1) / huge * huge;
	return end < v->end ? end : v->end;
}

/* false: the budget is used up. */
static bool arm_vma(struct walk *w, const struct nrp_scan_vma *v, enum nrp_scan_vma_pass by)
{
	uint64_t end;

	do {
		int64_t pages;

		if (w->start < v->start)
			w->start = v->start;
		end = range_end(w, v);
		pages = (int64_t)((end - w->start) / w->policy->page_size);
		if (w->ops->arm(w->ops->context, v, w->start, end, by))
			w->pages -= pages;
		w->virtual_pages -= pages;
		w->start = end;
		if (w->pages <= 0 || w->virtual_pages <= 0)
			return false;
	} while (end != v->end);
	return true;
}

static size_t first_vma(const struct nrp_scan_mm *mm, uint64_t start)
{
	size_t low = 0, high = mm->nr_vmas;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mm->vma[middle].end > start)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void next_sequence(struct nrp_scan_mm *mm)
{
	mm->seq = nrp_scan_seq_add(mm->seq, 1);
	mm->offset = 0;
}

/* One walk up the address space; true: it ended before the last VMA was behind it. */
static bool walk_once(struct walk *w)
{
	struct nrp_scan_mm *mm = w->mm;
	size_t i;

	w->start = mm->offset;
	i = first_vma(mm, w->start);
	if (i == mm->nr_vmas) {
		next_sequence(mm);
		w->start = 0;
		i = 0;
	}
	for (; i < mm->nr_vmas; i++) {
		struct nrp_scan_vma *v = &mm->vma[i];
		enum nrp_scan_vma_pass by;

		if (w->ops->look)
			w->ops->look(w->ops->context, v);
		if (!admitted(w, v, &by))
			continue;
		if (!arm_vma(w, v, by))
			return true; /* before prev_seq is written: it looks unscanned */
		if (w->policy->variant != NRP_SCAN_VMA_P0)
			v->state.prev_seq = mm->seq;
		if (w->forced)
			return true;
	}
	return false;
}

void nrp_scan_vma_run(const struct nrp_scan_vma_policy *policy, struct nrp_scan_mm *mm,
		      const struct nrp_scan_call *call, const struct nrp_scan_ops *ops)
{
	struct walk w = { .policy = policy, .mm = mm, .call = call, .ops = ops };
	bool stopped;

	w.rules = policy->rules & nrp_scan_vma_rules(policy->variant);
	w.pages = (int64_t)policy->scan_pages;
	w.virtual_pages = w.pages * VIRTUAL_FACTOR;
	if (w.rules & NRP_SCAN_RULE_CPUSET && call->cpuset_one_node) {
		skip(&w, NULL, NRP_SCAN_SKIP_CPUSET);
		return;
	}
	stopped = walk_once(&w);
	if (!stopped && w.rules & NRP_SCAN_RULE_FORCED && w.skipped) {
		w.forced = true; /* what is left of the budget stays as it is */
		stopped = walk_once(&w);
	}
	if (stopped)
		mm->offset = w.start;
	else
		next_sequence(mm);
}
