/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Own-policy replay of scan passes: every variant against the record. */
#include "replay/scan_accounts.h"
#include "replay/scan_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where a pass's begin does not explain it: ticks tried one by one, and runs for them. */
#define MAX_RACE_TICKS 32
#define MAX_TICK_RUNS 256

/* A fault sets its bit before its event is written: by so much it may seem too late. */
#define MAX_EVENT_DELAY UINT64_C(1000000) /* ns */

struct candidate {
	struct nrp_scan_vma_policy policy;
	struct nrp_scan_check *check;
	uint64_t decided; /* hash of the decisions of this pass */
};

/*
 * What a pass that still runs will do to its address space when it ends: passes of several threads
 * may overlap.
 */
struct ending {
	uint64_t time;
	struct {
		uint64_t offset;
		int32_t sequences;
	} lane[NRP_MAX_SCAN_CHECKS];
};

/* What a candidate has to bring over from pass to pass, per address space. */
struct follow {
	bool started;
	bool from_record[NRP_MAX_SCAN_CHECKS]; /* the last pass was not as recorded */
	struct ending *ending;
	size_t nr_endings, room;
};

struct verifier {
	const struct nrp_scan_trace *trace;
	struct nrp_scan_verify *v;
	struct candidate candidate[NRP_MAX_SCAN_CHECKS];
	struct follow *follow; /* [nr_spaces] */
	struct nrp_scan_accounts accounts;
	struct nrp_scan_vma *before; /* scratch: a lane's VMAs before the pass */
	uint64_t most_states;        /* compared in this pass */
	size_t *pending;             /* scratch: next fault of the pass to apply, per VMA */
	size_t room;
};

/* ---- one run against the record ----------------------------------------------------- */

/* The clock comes to @jiffies before the pass looks at a VMA, on its first walk or on its second.
 */
struct tick {
	uint64_t vm_start, jiffies;
	int walk; /* 0: it never does */
};

struct comparison {
	const struct nrp_scan_trace *trace;
	const struct nrp_scan_visit *visit;
	const struct nrp_scan_meanwhile *meanwhile;
	struct nrp_scan_mm *mm;
	struct nrp_scan_call call;
	struct tick tick;
	size_t *pending;
	uint64_t since; /* ns: the last decision; the next VMA is looked at after it */
	uint64_t loose; /* PID bits of this VMA that came before or after it was looked at */
	size_t next;    /* decision of the record */
	uint64_t hash, states;
	bool has_state; /* the variant keeps state per VMA */
	bool differs, late_bit;
	uint64_t decisions_by[NRP_NR_SCAN_REASONS], agree_by[NRP_NR_SCAN_REASONS];
};

static void mix(struct comparison *c, uint64_t value)
{
	c->hash = (c->hash ^ value) * UINT64_C(0x100000001b3);
}

static const struct nrp_scan_decision *recorded(const struct comparison *c)
{
	if (c->next >= c->visit->count)
		return NULL;
	return &c->trace->decision[c->visit->first + c->next];
}

static bool same_state(const struct nrp_scan_vma_state *a, const struct nrp_scan_vma_state *b,
		       uint64_t loose)
{
	return a->next_scan == b->next_scan && a->pids_reset == b->pids_reset &&
	       !((a->pids[0] ^ b->pids[0]) & ~loose) && !((a->pids[1] ^ b->pids[1]) & ~loose) &&
	       a->start_seq == b->start_seq && a->prev_seq == b->prev_seq;
}

/* Bits of faults whose events come right after the VMA's. */
static uint64_t bits_of_late_events(const struct comparison *c, const struct nrp_scan_decision *d,
				    const struct nrp_scan_vma *vma)
{
	uint64_t bits = 0;

	for (size_t i = c->pending[vma - c->mm->vma]; i != NRP_NO_AREA;
	     i = c->meanwhile->at[i].next) {
		const struct nrp_hint_fault *f = &c->meanwhile->at[i].fault;

		if (f->time > d->time + MAX_EVENT_DELAY)
			break;
		bits |= nrp_scan_pid_bit(f->tid);
	}
	return bits;
}

/*
 * Whether a fault close to this decision came before it, or before the window's rotation, only the
 * record knows.
 */
static void compare_state(struct comparison *c, const struct nrp_scan_decision *d,
			  struct nrp_scan_vma *vma)
{
	c->states++;
	if (same_state(&d->state, &vma->state, 0))
		return;
	if (same_state(&d->state, &vma->state, c->loose | bits_of_late_events(c, d, vma))) {
		vma->state = d->state;
		c->late_bit = true;
	} else {
		c->differs = true;
	}
}

/* Where the record does not know how many entries were armed, most often some were. */
static bool armed_some(const struct nrp_scan_decision *d)
{
	return !d || !d->pages_known || d->pages;
}

/* Applies the faults in a VMA that came before @time while the pass ran. */
static void touch_until(struct comparison *c, struct nrp_scan_vma *vma, uint64_t time)
{
	size_t *i = &c->pending[vma - c->mm->vma];

	for (; *i != NRP_NO_AREA && c->meanwhile->at[*i].fault.time < time;
	     *i = c->meanwhile->at[*i].next) {
		const struct nrp_hint_fault *f = &c->meanwhile->at[*i].fault;

		nrp_scan_vma_touch(vma, f->tid);
		if (f->time >= c->since)
			c->loose |= nrp_scan_pid_bit(f->tid);
	}
}

static void look(void *context, struct nrp_scan_vma *vma)
{
	struct comparison *c = context;
	const struct nrp_scan_decision *d = recorded(c);

	if (c->tick.walk && c->tick.vm_start == vma->start && !--c->tick.walk)
		c->call.jiffies_now = c->tick.jiffies;
	c->loose = 0;
	if (d && d->vm_start == vma->start)
		touch_until(c, vma, d->time);
}

static bool compare_range(void *context, const struct nrp_scan_vma *vma, uint64_t start,
			  uint64_t end, enum nrp_scan_vma_pass by)
{
	struct comparison *c = context;
	const struct nrp_scan_decision *d = recorded(c);

	c->decisions_by[by]++;
	mix(c, start);
	mix(c, end);
	if (!d || !d->range || d->start != start || d->end != end) {
		c->differs = true;
		return true;
	}
	if (d->state_known && c->has_state)
		compare_state(c, d, &c->mm->vma[vma - c->mm->vma]);
	c->agree_by[by] += !c->differs;
	c->since = d->time;
	c->next++;
	return armed_some(d);
}

static void compare_skip(void *context, const struct nrp_scan_vma *vma, enum nrp_scan_vma_skip why)
{
	struct comparison *c = context;
	const struct nrp_scan_decision *d = recorded(c);

	if (!c->trace->has_skips)
		return;
	c->decisions_by[NRP_NR_SCAN_PASSES + why]++;
	mix(c, (uint64_t)why + 1);
	mix(c, vma ? vma->start : 0);
	if (!d || d->range || !vma || d->vm_start != vma->start || d->reason != (uint8_t)why) {
		c->differs = true;
		return;
	}
	c->agree_by[NRP_NR_SCAN_PASSES + why] += !c->differs;
	c->since = d->time;
	c->next++;
}

/* Runs the pass on @mm; true: decisions and states are those of the record. */
static bool run_as_recorded(const struct verifier *f, const struct nrp_scan_visit *visit,
			    const struct nrp_scan_meanwhile *meanwhile,
			    const struct nrp_scan_vma_policy *policy, struct nrp_scan_mm *mm,
			    struct tick tick, int32_t nr_threads, struct comparison *ret)
{
	const struct nrp_scan_pass *p = &visit->rec;
	struct nrp_scan_ops ops = {
		.look = look, .arm = compare_range, .skip = compare_skip, .context = ret
	};

	*ret = (struct comparison){
		.trace = f->trace,
		.visit = visit,
		.meanwhile = meanwhile,
		.mm = mm,
		.call = { .tid = p->tid,
			  .nr_threads = nr_threads,
			  .jiffies = p->jiffies,
			  .jiffies_now = p->jiffies },
		.tick = tick,
		.has_state = policy->variant != NRP_SCAN_VMA_P0,
		.pending = f->pending,
		.since = p->time,
	};
	memcpy(f->pending, meanwhile->first, mm->nr_vmas * sizeof(*f->pending));
	nrp_scan_vma_run(policy, mm, &ret->call, &ops);
	for (size_t i = 0; i < mm->nr_vmas; i++)
		touch_until(ret, &mm->vma[i], UINT64_MAX);
	return !ret->differs && ret->next == visit->count;
}

/* ---- following the record ----------------------------------------------------------- */

static void make_state(struct nrp_scan_vma *v, const struct nrp_scan_vma_policy *policy,
		       uint64_t jiffies, int32_t seq)
{
	v->has_state = true;
	v->state = (struct nrp_scan_vma_state){
		.next_scan = jiffies + policy->delay_jiffies,
		.pids_reset = jiffies + policy->delay_jiffies + policy->window_jiffies,
		.start_seq = seq,
		.prev_seq = nrp_scan_seq_add(seq, -1),
	};
}

/* What a recorded decision left in its VMA. */
static void apply(struct nrp_scan_vma *v, const struct nrp_scan_decision *d,
		  const struct nrp_scan_vma_policy *policy, const struct nrp_scan_pass *p,
		  int32_t seq, bool last)
{
	if (!d->range && d->reason <= NRP_SKIP_INACCESSIBLE)
		return;
	if (!v->has_state)
		make_state(v, policy, p->jiffies, seq);
	if (d->state_known)
		v->state = d->state;
	else if ((d->range || d->reason != NRP_SKIP_SCAN_DELAY) && seq != 0 &&
		 p->jiffies > v->state.pids_reset) {
		v->state.pids_reset += policy->window_jiffies;
		v->state.pids[0] = v->state.pids[1];
		v->state.pids[1] = 0;
	}
	if (!d->range && d->reason == NRP_SKIP_SEQ_COMPLETED)
		v->state.prev_seq = seq;
	if (d->range && d->end == d->vm_end && !last)
		v->state.prev_seq = seq;
}

/* Is the budget of the pass used up after all its ranges? */
static bool budget_spent(const struct nrp_scan_trace *t, const struct nrp_scan_visit *visit,
			 const struct nrp_scan_vma_policy *policy)
{
	uint64_t armed = 0, looked = 0;

	for (size_t i = 0; i < visit->count; i++) {
		const struct nrp_scan_decision *d = &t->decision[visit->first + i];
		uint64_t pages = d->range ? (d->end - d->start) / policy->page_size : 0;

		looked += pages;
		armed += armed_some(d) ? pages : 0;
	}
	return armed >= policy->scan_pages || looked >= policy->scan_pages * 8;
}

static void follow_record(const struct verifier *f, const struct nrp_scan_visit *visit,
			  const struct nrp_scan_vma_policy *policy, struct nrp_scan_space *space,
			  struct nrp_scan_mm *mm)
{
	const struct nrp_scan_pass *p = &visit->rec;
	bool spent = budget_spent(f->trace, visit, policy);
	int32_t seq = p->mm_scan_seq;
	uint64_t last = p->scan_offset;

	if (policy->variant == NRP_SCAN_VMA_P0)
		return;
	for (size_t i = 0; i < visit->count; i++) {
		const struct nrp_scan_decision *d = &f->trace->decision[visit->first + i];
		size_t at = nrp_scan_space_find(space, d->vm_start);

		if (d->vm_end <= last && !i)
			seq = nrp_scan_seq_add(seq, 1); /* nothing was left above the offset */
		last = d->vm_end;
		if (at != NRP_NO_AREA)
			apply(&mm->vma[at], d, policy, p, seq, spent && i + 1 == visit->count);
	}
}

/* ---- one pass ----------------------------------------------------------------------- */

static void keep(struct verifier *f, const struct nrp_scan_mm *mm)
{
	memcpy(f->before, mm->vma, mm->nr_vmas * sizeof(*mm->vma));
}

static void restore(const struct verifier *f, struct nrp_scan_mm *mm, int32_t seq, uint64_t offset)
{
	memcpy(mm->vma, f->before, mm->nr_vmas * sizeof(*mm->vma));
	mm->seq = seq;
	mm->offset = offset;
}

/* Is a comparison with the clock another one after a tick from @from up to @to? */
static bool tick_matters(const struct nrp_scan_vma *v, uint64_t from, uint64_t to)
{
	if (!v->has_state)
		return false;
	return (v->state.next_scan > from && v->state.next_scan <= to) ||
	       (v->state.pids_reset >= from && v->state.pids_reset < to);
}

static uint64_t last_tick(const struct nrp_scan_pass *p)
{
	uint64_t end = NRP_NULL(p, scan_pass, jiffies_end) ? p->jiffies + 1 : p->jiffies_end;

	return end < p->jiffies + MAX_RACE_TICKS ? end : p->jiffies + MAX_RACE_TICKS;
}

/* The clock may tick before any VMA for which it matters. The record's @mm is restored each time.
 */
static bool agrees_with_tick(struct verifier *f, const struct nrp_scan_visit *visit,
			     const struct nrp_scan_meanwhile *meanwhile,
			     const struct nrp_scan_vma_policy *policy, struct nrp_scan_mm *mm,
			     int32_t nr_threads, struct comparison *ret)
{
	const struct nrp_scan_pass *p = &visit->rec;
	uint64_t last = last_tick(p);
	int runs = 0;

	for (size_t i = 0; last > p->jiffies && i < mm->nr_vmas; i++) {
		struct tick tick = { .vm_start = f->before[i].start };

		if (!tick_matters(&f->before[i], p->jiffies, last))
			continue;
		for (tick.jiffies = p->jiffies + 1; tick.jiffies <= last; tick.jiffies++) {
			for (int walk = 1; walk <= 2; walk++) {
				struct comparison later;

				if (runs++ == MAX_TICK_RUNS)
					return false;
				tick.walk = walk;
				restore(f, mm, p->mm_scan_seq, p->scan_offset);
				if (run_as_recorded(f, visit, meanwhile, policy, mm, tick,
						    nr_threads, &later)) {
					*ret = later;
					return true;
				}
			}
		}
	}
	return false;
}

static bool agrees(struct verifier *f, const struct nrp_scan_visit *visit,
		   const struct nrp_scan_meanwhile *meanwhile, struct candidate *c,
		   struct nrp_scan_mm *mm, struct comparison *ret, bool *ret_tick)
{
	static const struct tick never;
	const struct nrp_scan_pass *p = &visit->rec;
	bool in_step = mm->seq == p->mm_scan_seq && mm->offset == p->scan_offset;
	struct nrp_scan_threads threads = nrp_scan_visit_threads(f->trace, visit);
	bool ok = run_as_recorded(f, visit, meanwhile, &c->policy, mm, never, threads.most, ret);

	*ret_tick = false;
	if (!ok && in_step && threads.least != threads.most) {
		restore(f, mm, p->mm_scan_seq, p->scan_offset);
		ok = run_as_recorded(f, visit, meanwhile, &c->policy, mm, never, threads.least,
				     ret);
	}
	if (!ok && in_step)
		ok = *ret_tick =
			agrees_with_tick(f, visit, meanwhile, &c->policy, mm, threads.most, ret);
	c->decided = ret->hash;
	return ok && in_step;
}

static void add_tie(struct nrp_scan_check *c, const struct nrp_scan_pass *p, bool tick,
		    bool late_bit)
{
	c->races += tick;
	c->late_bits += late_bit;
	if ((tick || late_bit) && c->nr_ties < NRP_MAX_SCAN_TIES)
		c->tie[c->nr_ties++] = (struct nrp_scan_tie){ p->time, p->mm, tick, late_bit };
}

/* The passes that have ended by @time leave their sequence and offset. */
static void end_passes(struct follow *follow, struct nrp_scan_space *space, uint64_t time)
{
	size_t left = 0;

	for (size_t i = 0; i < follow->nr_endings; i++) {
		const struct ending *e = &follow->ending[i];

		if (e->time > time) {
			follow->ending[left++] = *e;
			continue;
		}
		for (size_t l = 0; l < space->nr_lanes; l++) {
			space->lane[l].seq =
				nrp_scan_seq_add(space->lane[l].seq, e->lane[l].sequences);
			space->lane[l].offset = e->lane[l].offset;
		}
	}
	follow->nr_endings = left;
}

static struct ending *new_ending(struct follow *follow, uint64_t time)
{
	struct ending *e;
	size_t at = follow->nr_endings;

	if (at == follow->room) {
		size_t room = follow->room ? follow->room * 2 : 1;

		e = reallocarray(follow->ending, room, sizeof(*e));
		if (!e)
			return NULL;
		follow->ending = e;
		follow->room = room;
	}
	/* In the order of their ends. */
	for (; at && follow->ending[at - 1].time > time; at--)
		follow->ending[at] = follow->ending[at - 1];
	follow->nr_endings++;
	e = &follow->ending[at];
	e->time = time;
	return e;
}

static void judge(struct verifier *f, const struct nrp_scan_visit *visit,
		  const struct nrp_scan_meanwhile *meanwhile, struct nrp_scan_space *space,
		  size_t which, struct ending *ending)
{
	struct candidate *c = &f->candidate[which];
	struct nrp_scan_mm *mm = &space->lane[which];
	struct follow *follow = &f->follow[visit->space];
	struct comparison result;
	bool ok, tick;

	if (!follow->started || follow->from_record[which] || visit->lost_before) {
		mm->seq = visit->rec.mm_scan_seq;
		mm->offset = visit->rec.scan_offset;
	} else if (visit->reset_before) {
		mm->seq = 0;
	}
	keep(f, mm);
	ok = agrees(f, visit, meanwhile, c, mm, &result, &tick);
	for (int i = 0; i < NRP_NR_SCAN_REASONS; i++) {
		c->check->decisions_by[i] += result.decisions_by[i];
		c->check->agree_by[i] += result.agree_by[i];
	}
	if (ok) {
		c->check->agree++;
		add_tie(c->check, &visit->rec, tick, result.late_bit);
		if (result.states > f->most_states)
			f->most_states = result.states;
	} else {
		if (!c->check->disagree++)
			c->check->first_disagreement = visit->rec.time;
		restore(f, mm, visit->rec.mm_scan_seq, visit->rec.scan_offset);
		follow_record(f, visit, &c->policy, space, mm);
		for (size_t i = 0; i < meanwhile->count; i++)
			nrp_scan_vma_touch(&mm->vma[meanwhile->at[i].area],
					   meanwhile->at[i].fault.tid);
	}
	follow->from_record[which] = !ok;
	ending->lane[which].offset = mm->offset;
	ending->lane[which].sequences = nrp_scan_seq_since(mm->seq, visit->rec.mm_scan_seq);
	mm->seq = visit->rec.mm_scan_seq;
	mm->offset = visit->rec.scan_offset;
}

static int make_room(struct verifier *f, size_t nr_areas)
{
	struct nrp_scan_vma *before;
	size_t *pending;

	if (nr_areas <= f->room)
		return 0;
	before = reallocarray(f->before, nr_areas, sizeof(*before));
	if (!before)
		return -ENOMEM;
	f->before = before;
	pending = reallocarray(f->pending, nr_areas, sizeof(*pending));
	if (!pending)
		return -ENOMEM;
	f->pending = pending;
	f->room = nr_areas;
	return 0;
}

static int verify_pass(void *context, size_t index, struct nrp_scan_space *space,
		       const struct nrp_scan_meanwhile *meanwhile)
{
	struct verifier *f = context;
	const struct nrp_scan_visit *visit = &f->trace->pass[index];
	struct follow *follow = &f->follow[visit->space];
	struct ending *ending;

	end_passes(follow, space, visit->rec.time);
	if (!visit->judged) {
		f->v->unjudged++;
		nrp_scan_accounts_faults(&f->accounts, space, meanwhile);
		follow->started = false;
		return 0;
	}
	f->v->passes++;
	if (nrp_scan_accounts_begin(&f->accounts, visit, space) < 0)
		return -ENOMEM;
	nrp_scan_accounts_record(&f->accounts, f->trace, visit, space, meanwhile);
	nrp_scan_accounts_end(&f->accounts, visit, space);
	ending = new_ending(follow, visit->rec.end_time);
	if (!ending || make_room(f, space->nr_areas) < 0)
		return -ENOMEM;
	f->most_states = 0;
	for (size_t i = 0; i < f->v->nr_checks; i++)
		judge(f, visit, meanwhile, space, i, ending);
	f->v->vma_states += f->most_states;
	follow->started = true;
	for (size_t a = 0; a < NRP_NR_SCAN_VMA_VARIANTS; a++)
		for (size_t b = 0; b < NRP_NR_SCAN_VMA_VARIANTS; b++)
			f->v->told_apart[a][b] +=
				f->candidate[a].decided != f->candidate[b].decided;
	return 0;
}

static int verify_fault(void *context, uint32_t number, struct nrp_scan_space *space, size_t area,
			const struct nrp_hint_fault *fault)
{
	struct verifier *f = context;
	struct nrp_scan_account *a = nrp_scan_account(&f->accounts, &space->area[area], 0);

	(void)number;
	if (a)
		nrp_scan_account_touched(a, fault->tid);
	for (size_t l = 0; l < space->nr_lanes; l++)
		nrp_scan_vma_touch(&space->lane[l].vma[area], fault->tid);
	return 0;
}

/* ---- the whole ---------------------------------------------------------------------- */

static void add_candidate(struct verifier *f, const struct nrp_scan_vma_policy *host,
			  enum nrp_scan_vma_variant variant, uint32_t rule_off)
{
	struct candidate *c = &f->candidate[f->v->nr_checks];

	c->check = &f->v->check[f->v->nr_checks++];
	c->check->variant = variant;
	c->check->rule_off = rule_off;
	c->policy = *host;
	c->policy.variant = variant;
	c->policy.rules = nrp_scan_vma_rules(variant) & ~rule_off;
}

static void add_candidates(struct verifier *f, const struct nrp_scan_vma_policy *host)
{
	for (int v = 0; v < NRP_NR_SCAN_VMA_VARIANTS; v++)
		add_candidate(f, host, (enum nrp_scan_vma_variant)v, 0);
	for (int v = NRP_SCAN_VMA_P1; v < NRP_NR_SCAN_VMA_VARIANTS; v++)
		for (unsigned int i = 0; i < NRP_NR_SCAN_RULES; i++)
			if (nrp_scan_vma_rules((enum nrp_scan_vma_variant)v) >> i & 1)
				add_candidate(f, host, (enum nrp_scan_vma_variant)v, 1u << i);
}

/* How well a variant goes with the functions that the kernel has: it was released with them. */
static int likeness(enum nrp_scan_vma_variant variant, const struct nrp_scan_trace *t,
		    bool has_cpuset)
{
	/* P0..P4 for kernels without state per VMA, with it, with skips, with that of cpusets */
	static const int8_t order[4][NRP_NR_SCAN_VMA_VARIANTS] = {
		{ 5, 4, 3, 2, 1 }, { 1, 5, 4, 3, 2 }, { 1, 2, 4, 5, 3 }, { 1, 2, 3, 4, 5 }
	};

	return order[has_cpuset ? 3 : t->has_skips ? 2 : t->has_state ? 1 : 0][variant];
}

static void conclude(struct nrp_scan_verify *v, const struct nrp_scan_trace *t, bool has_cpuset)
{
	for (size_t i = 0; i < v->nr_checks; i++) {
		const struct nrp_scan_check *c = &v->check[i], *best = &v->check[v->chosen];
		bool whole = i < NRP_NR_SCAN_VMA_VARIANTS;

		if (whole && !c->disagree)
			v->consistent |= 1u << c->variant;
		/* variants with all rules come first */
		if (c->agree > best->agree ||
		    (c->agree == best->agree && !best->rule_off == whole &&
		     likeness(c->variant, t, has_cpuset) > likeness(best->variant, t, has_cpuset)))
			v->chosen = i;
	}
}

void nrp_scan_record_clear(struct nrp_scan_record *record)
{
	free(record->vma);
	memset(record, 0, sizeof(*record));
}

int nrp_scan_lane_verify_record(struct nrp_scan_verify *ret, struct nrp_scan_record *ret_record,
				struct nrp_store *store, const struct nrp_capture *capture,
				struct nrp_error *err)
{
	struct nrp_scan_record record = { 0 };
	struct nrp_scan_verify v = { 0 };
	struct nrp_scan_trace trace = { 0 };
	struct verifier f = { .trace = &trace, .v = &v };
	struct nrp_scan_walk_ops ops = { .pass = verify_pass,
					 .fault = verify_fault,
					 .context = &f };
	struct nrp_scan_vma_policy host;
	bool has_cpuset = false;
	int r = nrp_scan_trace_load(&trace, store, capture, err);

	if (r == 0)
		r = nrp_store_capture_has_probe(store, capture->id, "sched_skip_cpuset_numa",
						&has_cpuset, err);

	if (r == 0)
		r = nrp_scan_policy_of(&host, &capture->facts, err);
	if (r == 0) {
		add_candidates(&f, &host);
		ops.nr_lanes = v.nr_checks;
		f.follow = calloc(trace.nr_spaces, sizeof(*f.follow));
		if (f.follow && nrp_scan_accounts_init(&f.accounts, trace.nr_spaces, 1) == 0)
			r = nrp_scan_walk(&trace, store, capture, &ops, err);
		else
			r = nrp_fail_nomem(err);
	}
	if (r == 0) {
		record.vma = nrp_scan_accounts_close(&f.accounts);
		record.nr_vmas = f.accounts.nr_vmas;
		record.has_skips = trace.has_skips;
		r = record.vma ? 0 : nrp_fail_nomem(err);
	}
	if (r == 0) {
		v.has_skips = trace.has_skips;
		v.has_state = trace.has_state;
		v.idle = trace.nr_passes - v.passes - v.unjudged;
		conclude(&v, &trace, has_cpuset);
		*ret = v;
		*ret_record = record;
	}
	nrp_scan_accounts_clear(&f.accounts);
	for (uint32_t s = 0; f.follow && s < trace.nr_spaces; s++)
		free(f.follow[s].ending);
	free(f.follow);
	free(f.before);
	free(f.pending);
	nrp_scan_trace_clear(&trace);
	return r;
}

int nrp_scan_lane_verify(struct nrp_scan_verify *ret, struct nrp_store *store,
			 const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_scan_record record;
	int r = nrp_scan_lane_verify_record(ret, &record, store, capture, err);

	if (r == 0)
		nrp_scan_record_clear(&record);
	return r;
}
