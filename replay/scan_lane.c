/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another variant over the recorded passes. */
#include "replay/scan_lane.h"
#include "replay/policies/ticks.h"
#include "replay/scan_accounts.h"
#include "replay/scan_evidence.h"
#include "replay/scan_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANGES (SIZE_MAX / sizeof(struct nrp_scan_lane_range) / 4)

#define MAX_RUNS (NRP_MAX_SCAN_LANES * NRP_SCAN_RUNS)

_Static_assert(MAX_RUNS <= NRP_MAX_EVIDENCE_RUNS, "all lanes share the evidence");

struct space_account {
	struct nrp_scan_lane_mm mm;
	bool started;
};

/* One lane: its runs have the numbers from first_run on among those of all lanes. */
struct lane {
	struct nrp_scan_vma_policy policy;
	bool gains_shmem;
	unsigned int first_run;
	struct space_account *space;               /* [trace->nr_spaces] */
	struct nrp_scan_ranges run[NRP_SCAN_RUNS]; /* what each arms in the pass */
	struct nrp_scan_ranges all, possible;      /* of the capture */
	uint64_t decided[NRP_SCAN_RUNS];           /* hash of what each armed so far */
};

/* Lanes over one walk, and what they share: the record, and evidence for runs of all lanes. */
struct lanes {
	const struct nrp_scan_trace *trace;
	const struct nrp_host_facts *facts;
	struct lane lane[NRP_MAX_SCAN_LANES];
	size_t nr_lanes;
	unsigned int nr_runs; /* of all lanes */
	struct nrp_scan_evidence *evidence;
	struct nrp_scan_accounts accounts; /* of all runs, and the record */
	size_t *pending;                   /* scratch: next fault of the pass to apply, per VMA */
	size_t pending_room;
	uint64_t passes, recorded;
	const struct nrp_scan_meanwhile *meanwhile;
	struct during {
		enum nrp_known had[MAX_RUNS]; /* which run has the fault */
		bool late;                    /* it came after its address was scanned */
	} * during;                           /* scratch: per fault of meanwhile */
	size_t during_room;
};

int nrp_scan_ranges_add(struct nrp_scan_ranges *list, const struct nrp_scan_lane_range *g)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct nrp_scan_lane_range *grown;

		if (room > MAX_RANGES)
			return -ENOMEM;
		grown = reallocarray(list->at, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->at = grown;
		list->room = room;
	}
	list->at[list->count++] = *g;
	return 0;
}

/* ---- one run over one pass ----------------------------------------------------------- */

struct run {
	struct lanes *lanes;
	struct lane *lane;
	const struct nrp_scan_visit *visit;
	struct nrp_scan_space *space;
	unsigned int number; /* among those of all lanes */
	unsigned int kind;   /* NRP_RUN_* */
	struct nrp_scan_evidence_pass conditions;
	int error;
};

static size_t area_of(const struct run *r, const struct nrp_scan_vma *vma)
{
	return (size_t)(vma - r->space->lane[r->number].vma);
}

static struct nrp_scan_account *account_of(const struct run *r, const struct nrp_scan_vma *vma)
{
	return nrp_scan_account(&r->lanes->accounts, &r->space->area[area_of(r, vma)], r->number);
}

/* Runs of every lane begin at a multiple of their number: the low bits are their kind. */
static unsigned int kind_of(unsigned int run)
{
	return run % NRP_SCAN_RUNS;
}

static bool takes(unsigned int run, enum nrp_known had)
{
	return had == NRP_KNOWN_YES || (had == NRP_KNOWN_NOT && kind_of(run) & NRP_RUN_POSSIBLE);
}

static void touch_until(const struct run *r, size_t area, uint64_t time)
{
	struct lanes *l = r->lanes;
	size_t *i = &l->pending[area];

	for (; *i != NRP_NO_AREA && l->meanwhile->at[*i].fault.time < time;
	     *i = l->meanwhile->at[*i].next)
		if (!l->during[*i].late && takes(r->number, l->during[*i].had[r->number]))
			nrp_scan_vma_touch(&r->space->lane[r->number].vma[area],
					   l->meanwhile->at[*i].fault.tid);
}

static const struct nrp_scan_decision *recorded_visit(const struct run *r, uint64_t vm_start)
{
	for (size_t i = 0; i < r->visit->count; i++) {
		const struct nrp_scan_decision *d = &r->lanes->trace->decision[r->visit->first + i];

		if (d->vm_start == vm_start)
			return d;
	}
	return NULL;
}

/* The lane comes by when the host did; by a VMA that the host did not visit, at the begin. */
static void look(void *context, struct nrp_scan_vma *vma)
{
	const struct run *r = context;
	const struct nrp_scan_decision *d = recorded_visit(r, vma->start);
	struct nrp_scan_account *a = account_of(r, vma);

	if (d && r->lanes->meanwhile->count)
		touch_until(r, area_of(r, vma), d->time);
	/* Before the window may be shifted; without state there is nothing yet. */
	if (a)
		a->ever = vma->has_state ? a->ever | vma->state.pids[0] | vma->state.pids[1] : 0;
}

static int64_t recorded_pages(const struct lanes *l, const struct nrp_scan_visit *visit,
			      uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < visit->count; i++) {
		const struct nrp_scan_decision *d = &l->trace->decision[visit->first + i];

		if (d->range && d->start == start && d->end == end)
			return d->pages_known ? (int64_t)d->pages : -1;
	}
	return -1;
}

static void mix(uint64_t *hash, uint64_t value)
{
	*hash = (*hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	*hash ^= *hash >> 29;
}

static void decide(uint64_t *hash, const struct nrp_scan_lane_range *g)
{
	mix(hash, g->time);
	mix(hash, g->mm);
	mix(hash, g->start);
	mix(hash, g->end);
}

static bool arm(void *context, const struct nrp_scan_vma *vma, uint64_t start, uint64_t end,
		enum nrp_scan_vma_pass by)
{
	struct run *r = context;
	struct lanes *l = r->lanes;
	struct nrp_scan_lane_range g = {
		.time = r->visit->rec.time,
		.mm = r->visit->rec.mm,
		.start = start,
		.end = end,
		.vm_start = vma->start,
		.vm_end = vma->end,
		.recorded_pages = recorded_pages(l, r->visit, start, end),
		.by = by,
	};
	struct nrp_scan_evidence_range e = { .space = r->visit->space,
					     .time = g.time,
					     .start = start,
					     .end = end,
					     .vm_start = vma->start };
	struct nrp_scan_account *a = account_of(r, vma);
	enum nrp_known arms = NRP_KNOWN_NOT;

	if (r->error == 0)
		r->error = nrp_scan_ranges_add(&r->lane->run[r->kind], &g);
	decide(&r->lane->decided[r->kind], &g);
	if (r->error == 0)
		r->error = nrp_scan_evidence_arms(l->evidence, r->number, &e, &r->conditions,
						  g.recorded_pages, &arms);
	if (r->error == 0)
		r->error = nrp_scan_evidence_lane_range(l->evidence, r->number, &e, &r->conditions,
							g.recorded_pages >= 0);
	if (a)
		nrp_scan_account_armed(
			a, g.time, end, vma->end, g.recorded_pages,
			*nrp_scan_accounts_sequences(&l->accounts, r->visit->space, r->number));
	return arms == NRP_KNOWN_YES || (arms == NRP_KNOWN_NOT && r->kind & NRP_RUN_ARMS);
}

static void skip(void *context, const struct nrp_scan_vma *vma, enum nrp_scan_vma_skip why)
{
	const struct run *r = context;
	struct nrp_scan_account *a = vma ? account_of(r, vma) : NULL;

	if (a)
		nrp_scan_account_skipped(a, r->visit->rec.time, why, r->visit->rec.tid);
}

static int run_pass(struct lanes *l, struct lane *lane, const struct nrp_scan_visit *visit,
		    struct nrp_scan_space *space, unsigned int kind)
{
	unsigned int number = lane->first_run + kind;
	const struct nrp_scan_pass *p = &visit->rec;
	struct nrp_scan_mm *mm = &space->lane[number];
	struct space_account *sa = &lane->space[visit->space];
	struct run r = {
		.lanes = l,
		.lane = lane,
		.kind = kind,
		.visit = visit,
		.space = space,
		.number = number,
		.conditions = { .single_threaded =
					NRP_NULL(p, scan_pass, mm_users) || p->mm_users == 1,
				.nid = nrp_host_cpu_nid(l->facts, (int)p->cpu) },
	};
	struct nrp_scan_ops ops = { .look = look, .arm = arm, .skip = skip, .context = &r };
	struct nrp_scan_threads threads = nrp_scan_visit_threads(l->trace, visit);
	struct nrp_scan_call call = {
		.tid = p->tid,
		/* Not known: the runs that take all that is possible have the fewest. */
		.nr_threads = kind & NRP_RUN_POSSIBLE ? threads.least : threads.most,
		.jiffies = p->jiffies,
		.jiffies_now = p->jiffies,
	};
	int32_t seq;

	if (!sa->started) {
		mm->seq = p->mm_scan_seq;
		mm->offset = p->scan_offset;
	} else if (visit->reset_before) {
		mm->seq = 0;
	}
	seq = mm->seq;
	lane->run[kind].count = 0;
	memcpy(l->pending, l->meanwhile->first, space->nr_areas * sizeof(*l->pending));
	nrp_scan_vma_run(&lane->policy, mm, &call, &ops);
	for (size_t i = 0; l->meanwhile->count && i < space->nr_areas; i++)
		touch_until(&r, i, UINT64_MAX);
	*nrp_scan_accounts_sequences(&l->accounts, visit->space, number) +=
		(uint32_t)nrp_scan_seq_since(mm->seq, seq);
	return r.error;
}

/* ---- one pass ------------------------------------------------------------------------ */

static bool has_range(const struct nrp_scan_ranges *list, const struct nrp_scan_lane_range *g)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->at[i].start == g->start && list->at[i].end == g->end)
			return true;
	return false;
}

/* Ranges of run 0 that all others have are certain; what only others have is possible. */
static int settle(struct lane *l, struct space_account *sa, uint64_t time)
{
	for (size_t i = 0; i < l->run[0].count; i++) {
		struct nrp_scan_lane_range *g = &l->run[0].at[i];
		int r;

		g->certain = true;
		for (int k = 1; k < NRP_SCAN_RUNS; k++)
			g->certain &= has_range(&l->run[k], g);
		if (!g->certain && !sa->mm.uncertain)
			sa->mm.uncertain = time;
		r = nrp_scan_ranges_add(&l->all, g);
		if (r < 0)
			return r;
	}
	for (int k = 1; k < NRP_SCAN_RUNS; k++) {
		for (size_t i = 0; i < l->run[k].count; i++) {
			bool is_new = true;

			for (int before = 0; before < k; before++)
				is_new &= !has_range(&l->run[before], &l->run[k].at[i]);
			if (is_new && nrp_scan_ranges_add(&l->possible, &l->run[k].at[i]) < 0)
				return -ENOMEM;
			if (is_new && !sa->mm.uncertain)
				sa->mm.uncertain = time;
		}
	}
	return 0;
}

static int add_gain(struct lane *l, const struct nrp_scan_visit *visit, uint64_t start,
		    uint64_t end)
{
	struct nrp_scan_lane_range g = { .time = visit->rec.time,
					 .mm = visit->rec.mm,
					 .start = start,
					 .end = end,
					 .vm_start = start,
					 .vm_end = end,
					 .recorded_pages = -1 };

	return nrp_scan_ranges_add(&l->possible, &g);
}

/*
 * In each pass all of every VMA that may be shared memory: who arms it when is not known. The VMAs
 * of a pass that is not judged are not in the space.
 */
static int gain_shmem(const struct lanes *lanes, struct lane *l, const struct nrp_scan_visit *visit,
		      const struct nrp_scan_space *space)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < space->nr_areas; i++)
		if (space->area[i].class == NRP_SCAN_VMA_UNSUITABLE)
			r = add_gain(l, visit, space->area[i].start, space->area[i].end);
	for (size_t i = 0; r == 0 && !visit->judged && i < visit->count; i++) {
		const struct nrp_scan_decision *d = &lanes->trace->decision[visit->first + i];

		if (!d->range && d->vma_known && d->reason == NRP_SKIP_UNSUITABLE &&
		    nrp_scan_space_find(space, d->vm_start) == NRP_NO_AREA)
			r = add_gain(l, visit, d->vm_start, d->vm_end);
	}
	return r;
}

static bool as_recorded(const struct lanes *lanes, const struct lane *l,
			const struct nrp_scan_visit *visit)
{
	size_t n = 0;

	for (size_t i = 0; i < visit->count; i++) {
		const struct nrp_scan_decision *d = &lanes->trace->decision[visit->first + i];

		if (!d->range)
			continue;
		if (n == l->run[0].count || l->run[0].at[n].start != d->start ||
		    l->run[0].at[n].end != d->end)
			return false;
		n++;
	}
	return n == l->run[0].count;
}

static int record_ranges(struct lanes *l, const struct nrp_scan_visit *visit)
{
	for (size_t i = 0; i < visit->count; i++) {
		const struct nrp_scan_decision *d = &l->trace->decision[visit->first + i];
		struct nrp_scan_evidence_range e = { .space = visit->space,
						     .time = visit->rec.time,
						     .start = d->start,
						     .end = d->end,
						     .vm_start = d->vm_start };
		int r;

		if (!d->range)
			continue;
		l->recorded++;
		r = nrp_scan_evidence_range(l->evidence, &e,
					    d->pages_known ? (int64_t)d->pages : -1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_room(struct lanes *l, const struct nrp_scan_space *space)
{
	if (space->nr_areas > l->pending_room) {
		size_t *grown = reallocarray(l->pending, space->nr_areas, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->pending = grown;
		l->pending_room = space->nr_areas;
	}
	if (l->meanwhile->count > l->during_room) {
		void *grown = reallocarray(l->during, l->meanwhile->count, sizeof(*l->during));

		if (!grown)
			return -ENOMEM;
		l->during = grown;
		l->during_room = l->meanwhile->count;
	}
	return 0;
}

/* When the pass came by this address: its range, else what it decided about the VMA. */
static uint64_t scanned_at(const struct lanes *l, const struct nrp_scan_visit *visit,
			   const struct nrp_hint_fault *f)
{
	uint64_t time = visit->rec.time;

	for (size_t i = visit->count; i-- > 0;) {
		const struct nrp_scan_decision *d = &l->trace->decision[visit->first + i];

		if (d->range && f->addr >= d->start && f->addr < d->end)
			return d->time;
		if (f->addr >= d->vm_start && f->addr < d->vm_end)
			time = d->time;
	}
	return time;
}

/* The faults that came before (after) the pass reached them. */
static int see_meanwhile(struct lanes *l, const struct nrp_scan_visit *visit,
			 struct nrp_scan_space *space, bool late)
{
	int r = make_room(l, space);

	for (size_t i = 0; r == 0 && i < l->meanwhile->count; i++) {
		const struct nrp_hint_fault *f = &l->meanwhile->at[i].fault;
		size_t area = l->meanwhile->at[i].area;

		l->during[i].late = f->time >= scanned_at(l, visit, f);
		if (l->during[i].late != late)
			continue;
		r = nrp_scan_evidence_fault(l->evidence, visit->space, space->area[area].start, f,
					    l->during[i].had);
		for (unsigned int n = 0; r == 0 && late && n < l->nr_runs; n++)
			if (takes(n, l->during[i].had[n]))
				nrp_scan_vma_touch(&space->lane[n].vma[area], f->tid);
	}
	return r;
}

/* One lane's turn in a pass that is judged. */
static int run_lane(struct lanes *l, struct lane *lane, const struct nrp_scan_visit *visit,
		    struct nrp_scan_space *space)
{
	struct space_account *sa = &lane->space[visit->space];
	int r = 0;

	sa->mm.passes++;
	if (!NRP_NULL(&visit->rec, scan_pass, nr_threads) &&
	    visit->rec.nr_threads > sa->mm.nr_threads)
		sa->mm.nr_threads = visit->rec.nr_threads;
	for (unsigned int k = 0; r == 0 && k < NRP_SCAN_RUNS; k++)
		r = run_pass(l, lane, visit, space, k);
	if (r == 0)
		r = settle(lane, sa, visit->rec.time);
	if (r == 0 && !sa->mm.diverged && !as_recorded(l, lane, visit))
		sa->mm.diverged = visit->rec.time;
	sa->started = true;
	return r;
}

static int lanes_pass(void *context, size_t index, struct nrp_scan_space *space,
		      const struct nrp_scan_meanwhile *meanwhile)
{
	struct lanes *l = context;
	const struct nrp_scan_visit *visit = &l->trace->pass[index];
	bool unsure = !visit->judged || visit->lost_before || space->open_merges;
	int r;

	l->meanwhile = meanwhile;
	r = see_meanwhile(l, visit, space, false);
	for (size_t i = 0; r == 0 && i < l->nr_lanes; i++) {
		struct nrp_scan_lane_mm *mm = &l->lane[i].space[visit->space].mm;

		mm->mm = visit->rec.mm;
		if (unsure && !mm->uncertain)
			mm->uncertain = visit->rec.time;
		if (l->lane[i].gains_shmem)
			r = gain_shmem(l, &l->lane[i], visit, space);
	}
	if (r == 0 && !visit->judged)
		r = see_meanwhile(l, visit, space, true);
	if (r < 0)
		return r;
	if (!visit->judged) {
		nrp_scan_accounts_faults(&l->accounts, space, meanwhile);
		return 0;
	}
	l->passes++;
	r = nrp_scan_accounts_begin(&l->accounts, visit, space);
	for (size_t i = 0; r == 0 && i < l->nr_lanes; i++)
		r = run_lane(l, &l->lane[i], visit, space);
	if (r == 0)
		r = record_ranges(l, visit);
	nrp_scan_accounts_record(&l->accounts, l->trace, visit, space, meanwhile);
	if (r == 0)
		r = see_meanwhile(l, visit, space, true);
	nrp_scan_accounts_end(&l->accounts, visit, space);
	return r;
}

static int lanes_fault(void *context, uint32_t number, struct nrp_scan_space *space, size_t area,
		       const struct nrp_hint_fault *fault)
{
	struct lanes *l = context;
	enum nrp_known had[MAX_RUNS];
	int r = nrp_scan_evidence_fault(l->evidence, number, space->area[area].start, fault, had);
	struct nrp_scan_account *a =
		nrp_scan_account(&l->accounts, &space->area[area], l->accounts.record);

	if (a)
		nrp_scan_account_touched(a, fault->tid);
	for (unsigned int n = 0; r == 0 && n < l->nr_runs; n++)
		if (takes(n, had[n]))
			nrp_scan_vma_touch(&space->lane[n].vma[area], fault->tid);
	return r;
}

/* ---- the whole ----------------------------------------------------------------------- */

static int hand_over(struct nrp_scan_lane *ret, const struct lanes *l, struct lane *lane,
		     const struct nrp_scan_lane_vma *vmas)
{
	size_t nr_vmas = l->accounts.nr_vmas;
	struct nrp_scan_lane out = { .passes = l->passes,
				     .armed_ranges_recorded = l->recorded,
				     .nr_vmas = nr_vmas };

	out.vma = calloc(nr_vmas ? nr_vmas : 1, sizeof(*out.vma));
	out.mm = calloc(l->trace->nr_spaces ? l->trace->nr_spaces : 1, sizeof(*out.mm));
	if (!out.vma || !out.mm) {
		nrp_scan_lane_clear(&out);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr_vmas; i++) {
		struct nrp_scan_lane_vma *v = &out.vma[i];

		*v = vmas[i];
		v->lane = nrp_scan_accounts_of(&l->accounts, i, lane->first_run);
		v->lane_certain = true;
		for (unsigned int r = 1; r < NRP_SCAN_RUNS; r++)
			v->lane_certain &=
				nrp_scan_accounts_of(&l->accounts, i, lane->first_run + r)
					.starved == v->lane.starved;
	}
	for (uint32_t s = 0; s < l->trace->nr_spaces; s++)
		if (lane->space[s].mm.passes)
			out.mm[out.nr_mms++] = lane->space[s].mm;
	memcpy(out.decided, lane->decided, sizeof(out.decided));
	out.range = lane->all.at;
	out.nr_ranges = lane->all.count;
	lane->all = (struct nrp_scan_ranges){ 0 };
	out.possible = lane->possible.at;
	out.possible_ranges = lane->possible.count;
	lane->possible = (struct nrp_scan_ranges){ 0 };
	*ret = out;
	return 0;
}

static int hand_over_all(struct nrp_scan_lane *ret, struct lanes *l)
{
	struct nrp_scan_lane_vma *vmas = nrp_scan_accounts_close(&l->accounts);
	size_t done = 0;
	int r = vmas ? 0 : -ENOMEM;

	for (; r == 0 && done < l->nr_lanes; done += r == 0)
		r = hand_over(&ret[done], l, &l->lane[done], vmas);
	while (r < 0 && done)
		nrp_scan_lane_clear(&ret[--done]);
	free(vmas);
	return r;
}

static int configure(struct lane *l, const struct nrp_host_facts *facts,
		     const struct nrp_scan_lane_config *config, struct nrp_error *err)
{
	int r = nrp_scan_policy_of(&l->policy, facts, err);

	if (r < 0)
		return r;
	l->gains_shmem = config->gains_shmem;
	l->policy.variant = config->variant;
	l->policy.rules = nrp_scan_vma_rules(config->variant) & ~config->rules_off;
	if (config->scan_size_mb > NRP_MAX_SCAN_RANGE >> 20)
		return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "give at most 65536 MB",
				"a scan size of %llu MB is too large",
				(unsigned long long)config->scan_size_mb);
	if (config->scan_size_mb)
		l->policy.scan_pages = (config->scan_size_mb << 20) / l->policy.page_size;
	if (config->scan_delay_ms != UINT64_MAX)
		nrp_scan_policy_delay(&l->policy, config->scan_delay_ms, facts);
	return 0;
}

static void free_lanes(struct lanes *l)
{
	for (size_t i = 0; i < l->nr_lanes; i++) {
		for (int r = 0; r < NRP_SCAN_RUNS; r++)
			free(l->lane[i].run[r].at);
		free(l->lane[i].all.at);
		free(l->lane[i].possible.at);
		free(l->lane[i].space);
	}
	free(l->pending);
	free(l->during);
	nrp_scan_accounts_clear(&l->accounts);
	nrp_scan_evidence_free(l->evidence);
	free(l);
}

static int start(struct lanes *l)
{
	const struct nrp_scan_vma_policy *sizes = &l->lane[0].policy; /* the host's in all */
	size_t spaces = l->trace->nr_spaces ? l->trace->nr_spaces : 1;

	for (size_t i = 0; i < l->nr_lanes; i++) {
		l->lane[i].space = calloc(spaces, sizeof(*l->lane[i].space));
		if (!l->lane[i].space)
			return -ENOMEM;
	}
	l->evidence = nrp_scan_evidence_new(sizes->page_size, sizes->huge_size, l->nr_runs);
	if (!l->evidence)
		return -ENOMEM;
	return nrp_scan_accounts_init(&l->accounts, l->trace->nr_spaces, l->nr_runs + 1);
}

int nrp_scan_lanes_run(struct nrp_scan_lane *ret, struct nrp_store *store,
		       const struct nrp_capture *capture, const struct nrp_scan_lane_config *config,
		       size_t nr_lanes, struct nrp_error *err)
{
	struct nrp_scan_trace trace = { 0 };
	struct lanes *l;
	struct nrp_scan_walk_ops ops = { .pass = lanes_pass, .fault = lanes_fault };
	int r = 0;

	if (!nr_lanes)
		return 0;
	if (nr_lanes > NRP_MAX_SCAN_LANES)
		return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "replay fewer at once",
				"%zu lanes are more than the %d of one walk", nr_lanes,
				NRP_MAX_SCAN_LANES);
	l = calloc(1, sizeof(*l));
	if (!l)
		return nrp_fail_nomem(err);
	l->trace = &trace;
	l->facts = &capture->facts;
	l->nr_lanes = nr_lanes;
	l->nr_runs = (unsigned int)nr_lanes * NRP_SCAN_RUNS;
	for (size_t i = 0; r == 0 && i < nr_lanes; i++) {
		l->lane[i].first_run = (unsigned int)i * NRP_SCAN_RUNS;
		r = configure(&l->lane[i], &capture->facts, &config[i], err);
	}
	if (r == 0)
		r = nrp_scan_trace_load(&trace, store, capture, err);
	if (r == 0 && start(l) < 0)
		r = nrp_fail_nomem(err);
	ops.context = l;
	ops.nr_lanes = l->nr_runs;
	if (r == 0)
		r = nrp_scan_walk(&trace, store, capture, &ops, err);
	if (r == 0 && hand_over_all(ret, l) < 0)
		r = nrp_fail_nomem(err);
	free_lanes(l);
	nrp_scan_trace_clear(&trace);
	return r;
}

int nrp_scan_lane_run(struct nrp_scan_lane *ret, struct nrp_store *store,
		      const struct nrp_capture *capture, const struct nrp_scan_lane_config *config,
		      struct nrp_error *err)
{
	return nrp_scan_lanes_run(ret, store, capture, config, 1, err);
}

bool nrp_scan_lanes_alike(const struct nrp_scan_lane *a, const struct nrp_scan_lane *b)
{
	return a->passes == b->passes && a->possible_ranges == b->possible_ranges &&
	       !memcmp(a->decided, b->decided, sizeof(a->decided));
}

const struct nrp_scan_lane_range *nrp_scan_lane_first_added(const struct nrp_scan_lane *lane,
							    uint64_t mm)
{
	for (size_t i = 0; i < lane->nr_ranges; i++)
		if (lane->range[i].mm == mm && lane->range[i].recorded_pages < 0)
			return &lane->range[i];
	return NULL;
}

void nrp_scan_lane_clear(struct nrp_scan_lane *lane)
{
	free(lane->range);
	free(lane->possible);
	free(lane->vma);
	free(lane->mm);
	memset(lane, 0, sizeof(*lane));
}
