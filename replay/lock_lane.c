/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/lock_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *nrp_lock_class_name(enum nrp_lock_class class)
{
	static const char *const names[NRP_NR_LOCK_CLASSES] = { "faults", "readers", "writers",
								"munmap" };

	return names[class];
}

struct nrp_lock_params nrp_lock_host_params(enum nrp_munmap_variant variant)
{
	return (struct nrp_lock_params){ .munmap = { variant, NRP_MUNMAP_THRESHOLD },
					 .resched = true,
					 .batch = NRP_LOCK_BATCH };
}

/* ---- sorted numbers ------------------------------------------------------------------- */

struct numbers {
	uint64_t *at;
	size_t count, room;
};

static int add(struct numbers *n, uint64_t value)
{
	if (n->count == n->room) {
		size_t room = n->room ? 2 * n->room : 256;
		uint64_t *at = reallocarray(n->at, room, sizeof(*at));

		if (!at)
			return -ENOMEM;
		n->at = at;
		n->room = room;
	}
	n->at[n->count++] = value;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The smallest value that at least @percent of all do not exceed; 0 of none. Sorts them. */
static uint64_t percentile(struct numbers *n, uint64_t percent)
{
	if (!n->count)
		return 0;
	qsort(n->at, n->count, sizeof(*n->at), by_value);
	return n->at[(n->count * percent + 99) / 100 - 1];
}

/* ---- waits by class ------------------------------------------------------------------- */

/* Bits of the classes that a job belongs to. */
static unsigned int classes_of(const struct nrp_lock_job *j)
{
	switch (j->kind) {
	case NRP_LOCK_FAULT:
		return 1u << NRP_LOCK_OF_FAULTS | 1u << NRP_LOCK_OF_READERS;
	case NRP_LOCK_READER:
	case NRP_LOCK_SCAN:
		return 1u << NRP_LOCK_OF_READERS;
	case NRP_LOCK_WRITER:
		return 1u << NRP_LOCK_OF_WRITERS;
	default:
		return 1u << NRP_LOCK_OF_MUNMAP;
	}
}

struct tally {
	struct nrp_lock_waits *waits; /* of all classes */
	struct numbers ns[NRP_NR_LOCK_CLASSES];
};

static int count(struct tally *t, const struct nrp_lock_job *j, uint64_t ns, bool queued)
{
	unsigned int classes = classes_of(j);

	for (int c = 0; c < NRP_NR_LOCK_CLASSES; c++) {
		struct nrp_lock_waits *w = &t->waits[c];

		if (!(classes >> c & 1))
			continue;
		w->requests++;
		w->queued += queued;
		w->ns += ns;
		w->longest = ns > w->longest ? ns : w->longest;
		if (ns > NRP_LOCK_LONG) {
			w->over++;
			w->over_ns += ns;
		}
		if (add(&t->ns[c], ns) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void finish(struct tally *t)
{
	for (int c = 0; c < NRP_NR_LOCK_CLASSES; c++) {
		t->waits[c].p99 = percentile(&t->ns[c], 99);
		free(t->ns[c].at);
	}
}

/* ---- the record ----------------------------------------------------------------------- */

/* Until it was granted, or killed. */
static uint64_t recorded_wait(const struct nrp_lock_seen *s)
{
	uint64_t end = s->granted != UINT64_MAX ? s->granted : s->killed;

	return end > s->requested && end != UINT64_MAX ? end - s->requested : 0;
}

static bool found_it_taken(const struct nrp_lock_job *j, const struct nrp_lock_seen *s)
{
	return j->kind == NRP_LOCK_SCAN && s->granted == UINT64_MAX;
}

/* ns; all that the host, and the engine, let hold it. */
static uint64_t write_held(const struct nrp_lock_seen *s)
{
	uint64_t end = s->downgraded != UINT64_MAX ? s->downgraded : s->released;

	return s->write && s->granted != UINT64_MAX && end != UINT64_MAX && end > s->granted
		       ? end - s->granted
		       : 0;
}

static int count_record(struct nrp_lock_lanes *l)
{
	struct tally t = { .waits = l->record.lower };
	int r = 0;

	for (size_t m = 0; m < l->jobs.nr_mms; m++) {
		const struct nrp_lock_mm *mm = &l->jobs.mm[m];

		l->record.unmap_faults += mm->unmap_faults;
		for (uint32_t i = 0; r == 0 && i < mm->nr_jobs; i++) {
			l->record.scans += mm->job[i].kind == NRP_LOCK_SCAN;
			l->record.segv += mm->job[i].sight == NRP_MUNMAP_SEGV;
			l->record.write_held += write_held(&mm->seen[i]);
			if (found_it_taken(&mm->job[i], &mm->seen[i]))
				l->record.skipped++;
			else
				r = count(&t, &mm->job[i], recorded_wait(&mm->seen[i]),
					  mm->job[i].queued);
		}
	}
	finish(&t);
	memcpy(l->record.upper, l->record.lower, sizeof(l->record.upper));
	memcpy(l->record.value, l->record.lower, sizeof(l->record.value));
	l->record.skipped_upper = l->record.skipped;
	return r;
}

/* ---- the host ------------------------------------------------------------------------- */

/*
 * From 5.8 to 6.4 an unmap below a stack keeps the write lock. Later kernels have no such rule, and
 * there an unmap that does not downgrade shows that this kernel's do not.
 */
static int find_host(struct nrp_lock_lanes *l, struct nrp_store *store,
		     const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_lock_host *h = &l->host;
	bool has_skips = false;
	int r = nrp_store_capture_has_probe(store, capture->id, "sched_skip_vma_numa", &has_skips,
					    err);

	for (size_t m = 0; m < l->jobs.nr_mms; m++) {
		const struct nrp_lock_mm *mm = &l->jobs.mm[m];

		for (uint32_t i = 0; i < mm->nr_jobs; i++) {
			const struct nrp_lock_seen *s = &mm->seen[i];

			if (mm->job[i].kind != NRP_LOCK_MUNMAP)
				continue;
			h->downgraded += s->downgraded != UINT64_MAX;
			h->kept_write += s->may_downgrade && s->downgraded == UINT64_MAX;
		}
	}
	h->counts = l->jobs.counts;
	h->known = h->counts.requests;
	h->grows = h->kept_write && (h->downgraded || !has_skips);
	h->variant = h->kept_write && !h->grows ? NRP_MUNMAP_WRITE : NRP_MUNMAP_DOWNGRADE;
	for (size_t m = 0; h->grows && m < l->jobs.nr_mms; m++) {
		struct nrp_lock_mm *mm = &l->jobs.mm[m];

		for (uint32_t i = 0; i < mm->nr_jobs; i++)
			if (mm->job[i].kind == NRP_LOCK_MUNMAP &&
			    mm->seen[i].downgraded == UINT64_MAX)
				mm->work[mm->seen[i].work].keeps_write = true;
	}
	return r;
}

/* ---- the host's own run --------------------------------------------------------------- */

static int run(struct nrp_lock_mm *mm, const struct nrp_lock_params *params)
{
	return nrp_mmap_lock_run(params, mm->job, mm->nr_jobs, UINT64_MAX, NULL, NULL);
}

static int measure(struct nrp_lock_lanes *l, struct numbers *late, struct numbers *overhead)
{
	int r = 0;

	for (size_t m = 0; r == 0 && m < l->jobs.nr_mms; m++) {
		const struct nrp_lock_mm *mm = &l->jobs.mm[m];

		for (uint32_t i = 0; r == 0 && i < mm->nr_jobs; i++) {
			uint64_t wait = recorded_wait(&mm->seen[i]);

			if (mm->seen[i].granted == UINT64_MAX || mm->seen[i].lossy ||
			    wait < mm->job[i].wait)
				continue;
			r = add(mm->job[i].queued ? late : overhead, wait - mm->job[i].wait);
		}
	}
	return r;
}

struct by_grant {
	uint64_t time;
	uint32_t job;
	bool write;
};

static int by_time(const void *a, const void *b)
{
	const struct by_grant *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->job > y->job) - (x->job < y->job);
}

/* The granted jobs in the order of the record, or of the engine. */
static uint32_t sort_grants(struct by_grant *list, const struct nrp_lock_mm *mm, bool engine)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < mm->nr_jobs; i++)
		if (mm->seen[i].granted != UINT64_MAX && mm->job[i].grants)
			list[n++] = (struct by_grant){ engine ? mm->job[i].first_grant
							      : mm->seen[i].granted,
						       i, mm->seen[i].write };
	qsort(list, n, sizeof(*list), by_time);
	return n;
}

/* How many writers are before each job. */
static void writers_before(const struct by_grant *list, uint32_t n, int64_t *ret)
{
	int64_t writers = 0;

	for (uint32_t i = 0; i < n; i++) {
		ret[list[i].job] = writers;
		writers += list[i].write;
	}
}

/*
 * A woken writer is not handed the lock: until it runs, others may take it, for 4 ms at most before
 * it is kept for the writer. Such jobs are before it on record and behind it in the engine: @record
 * gets what it would be without.
 */
static void undo_overtaking(struct nrp_lock_verify *v, const struct nrp_lock_mm *mm,
			    const struct by_grant *list, uint32_t n, int64_t *record,
			    bool *overtook)
{
	for (uint32_t w = 0; w < n; w++) {
		const struct nrp_lock_job *late = &mm->job[list[w].job];

		if (!list[w].write || !late->queued ||
		    list[w].time > late->first_grant + NRP_LOCK_HANDOFF + v->lateness_p95)
			continue;
		for (uint32_t i = w; i-- && list[i].time > late->first_grant;) {
			const struct nrp_lock_job *j = &mm->job[list[i].job];

			if (j->first_grant < late->first_grant)
				continue;
			record[list[i].job]++;
			record[list[w].job] -= list[i].write;
			overtook[list[i].job] = true;
		}
	}
}

/*
 * Readers hold the lock together, so that their order among themselves means nothing: a job is in
 * order if as many writers were before it.
 */
static int check_order(struct nrp_lock_verify *v, const struct nrp_lock_mm *mm)
{
	size_t room = (size_t)mm->nr_jobs + 1;
	struct by_grant *list = calloc(room, sizeof(*list));
	int64_t *record = calloc(2 * room, sizeof(*record)), *engine = record + room;
	bool *overtook = calloc(room, sizeof(*overtook));
	int r = list && record && overtook ? 0 : -ENOMEM;

	if (r == 0) {
		uint32_t n = sort_grants(list, mm, true);

		writers_before(list, n, engine);
		sort_grants(list, mm, false);
		writers_before(list, n, record);
		undo_overtaking(v, mm, list, n, record, overtook);
		for (uint32_t i = 0; i < n; i++) {
			if (mm->seen[list[i].job].lossy)
				continue;
			v->in_order += record[list[i].job] == engine[list[i].job];
			v->overtook += overtook[list[i].job];
		}
	}
	free(list);
	free(record);
	free(overtook);
	return r;
}

/* Is a recorded wait the engine's, and no later than waiters of this host are? */
static bool is_within(const struct nrp_lock_verify *v, uint64_t recorded, uint64_t engine,
		      uint32_t queued)
{
	uint64_t late = v->overhead_p95;

	if (late < v->lateness_p95)
		late = v->lateness_p95;
	/* It is nobody's lateness that a lock took which nobody had. */
	late = queued ? late * queued : late < v->overhead_p99 ? v->overhead_p99 : late;
	return recorded >= engine && recorded - engine <= late;
}

static void check_wait(struct nrp_lock_verify *v, const struct nrp_lock_mm *mm, uint32_t i)
{
	const struct nrp_lock_job *j = &mm->job[i];
	const struct nrp_lock_seen *s = &mm->seen[i];
	uint64_t wait = recorded_wait(s);

	if (s->lossy) {
		v->undecided++;
		return;
	}
	v->requests++;
	if (is_within(v, wait, j->wait, j->queued)) {
		v->within++;
		return;
	}
	if (wait < j->wait)
		v->below++;
	else
		v->above++;
	if (v->nr_listed == NRP_LOCK_LISTED)
		return;
	v->listed[v->nr_listed].mm = mm->mm;
	v->listed[v->nr_listed].tid = s->tid;
	v->listed[v->nr_listed].write = s->write;
	v->listed[v->nr_listed].queued = j->queued > 0;
	v->listed[v->nr_listed].requested = s->requested;
	v->listed[v->nr_listed].recorded = wait;
	v->listed[v->nr_listed++].model = j->wait;
}

static int verify(struct nrp_lock_lanes *l, enum nrp_munmap_variant variant)
{
	struct nrp_lock_params params = nrp_lock_host_params(variant);
	struct nrp_lock_verify *v = &l->host.check[variant];
	struct numbers late = { 0 }, overhead = { 0 };
	int r = 0;

	for (size_t m = 0; r == 0 && m < l->jobs.nr_mms; m++)
		r = run(&l->jobs.mm[m], &params);
	if (r == 0)
		r = measure(l, &late, &overhead);
	v->lateness_p50 = percentile(&late, 50);
	v->lateness_p95 = percentile(&late, 95);
	v->overhead_p50 = percentile(&overhead, 50);
	v->overhead_p95 = percentile(&overhead, 95);
	v->overhead_p99 = percentile(&overhead, 99);
	free(late.at);
	free(overhead.at);
	for (size_t m = 0; r == 0 && m < l->jobs.nr_mms; m++) {
		const struct nrp_lock_mm *mm = &l->jobs.mm[m];

		r = check_order(v, mm);
		for (uint32_t i = 0; r == 0 && i < mm->nr_jobs; i++) {
			bool granted = mm->seen[i].granted != UINT64_MAX;

			if (mm->job[i].kind == NRP_LOCK_SCAN && !mm->seen[i].lossy) {
				v->scans++;
				v->scans_agree += mm->job[i].skipped != granted;
			}
			if (granted)
				check_wait(v, mm, i);
		}
	}
	return r;
}

/* ---- a lane --------------------------------------------------------------------------- */

/*
 * A request that is in line neither on record nor in the lane takes as long as it did: the lock,
 * and the two events around it.
 */
static uint64_t overhead_of(const struct nrp_lock_lanes *l, const struct nrp_lock_seen *s)
{
	uint64_t wait = s->granted == UINT64_MAX ? 0 : recorded_wait(s);

	return wait < l->host.check[l->host.variant].overhead_p95
		       ? wait
		       : l->host.check[l->host.variant].overhead_p95;
}

static bool is_modelled(const struct nrp_lock_params *p, uint64_t writers_queued)
{
	enum nrp_munmap_variant v = p->munmap.variant;

	return writers_queued || p->vma_locks || p->closed || p->spin || p->moves_unlocked ||
	       v == NRP_MUNMAP_SECTIONS || v == NRP_MUNMAP_TWO_PHASE ||
	       v == NRP_MUNMAP_TWO_PHASE_DEAD;
}

/* ns of one job in a lane: a writer holds as on record, an unmap as the variant says. */
static uint64_t lane_write_held(const struct nrp_lock_params *p, const struct nrp_lock_job *j,
				const struct nrp_lock_seen *s)
{
	struct nrp_munmap_hold hold;
	uint64_t held = 0;

	if (j->kind == NRP_LOCK_WRITER) {
		held = write_held(s);
		return p->moves_unlocked ? held - (j->moving < held ? j->moving : held) : held;
	}
	if (j->kind != NRP_LOCK_MUNMAP)
		return 0;
	for (uint64_t i = 0; nrp_munmap_hold(&p->munmap, j->work, i, &hold); i++)
		held += hold.write ? hold.ns : 0;
	return held;
}

struct tallies {
	struct tally low, mid, high;
};

static bool is_changed(const struct nrp_lock_job *j, const struct nrp_lock_seen *s)
{
	return j->by_vma || j->wait != s->own_wait || j->queued != s->own_queued ||
	       j->skipped != s->own_skipped;
}

static int count_job(struct nrp_lock_result *ret, struct tallies *t, const struct nrp_lock_lanes *l,
		     const struct nrp_lock_job *j, struct nrp_lock_seen *s)
{
	const struct nrp_lock_verify *v = &l->host.check[l->host.variant];
	bool same = !is_changed(j, s), skipped = same ? found_it_taken(j, s) : j->skipped;
	uint64_t least = j->wait, mid, high;
	int r;

	ret->changed += !same;
	ret->scans += j->kind == NRP_LOCK_SCAN;
	ret->skipped += skipped;
	s->lane_skipped = skipped;
	ret->segv += j->sight == NRP_MUNMAP_SEGV;
	ret->repopulated += j->sight == NRP_MUNMAP_REPOPULATED;
	if (skipped)
		return 0;
	if (!j->queued && !j->by_vma)
		least += overhead_of(l, s);
	mid = least + j->queued * v->lateness_p50;
	high = least + j->queued * v->lateness_p95;
	/*
	 * What the engine treats as in its run of the host's own rule took what it took, if the
	 * engine explains that: so what the two lanes have in common cancels out. What overtook
	 * others on record waits no longer than the engine says.
	 */
	if (same && is_within(v, recorded_wait(s), j->wait, j->queued)) {
		least = mid = high = recorded_wait(s);
	} else if (same && recorded_wait(s) < j->wait) {
		least = recorded_wait(s);
		mid = high = j->wait;
	}
	r = count(&t->low, j, least, j->queued);
	if (r == 0)
		r = count(&t->mid, j, mid, j->queued);
	return r == 0 ? count(&t->high, j, high, j->queued) : r;
}

static uint64_t late_skips(const struct nrp_lock_mm *mm)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		const struct nrp_lock_seen *s = &mm->seen[i];

		if (mm->job[i].kind == NRP_LOCK_SCAN)
			n += mm->job[i].skipped == s->own_late_skipped ? s->granted == UINT64_MAX
								       : mm->job[i].skipped;
	}
	return n;
}

static int run_late(struct nrp_lock_mm *mm, const struct nrp_lock_lanes *l,
		    const struct nrp_lock_params *params)
{
	struct nrp_lock_params late = *params;

	late.handoff += l->host.check[l->host.variant].lateness_p95;
	return run(mm, &late);
}

/* Faults of all tasks, and the time from a task's first one to the end of its last. */
struct fault_time {
	uint64_t faults, ns;
};

/* The same of each task, at its first job; the jobs of a task are a chain. */
struct task_faults {
	uint32_t root;
	uint64_t faults, first, last;
};

static void add_fault_time(struct fault_time *time, const struct nrp_lock_mm *mm,
			   struct task_faults *tasks)
{
	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		const struct nrp_lock_job *j = &mm->job[i];
		struct task_faults *t;

		tasks[i].root = j->after == NRP_LOCK_NO_JOB ? i : tasks[j->after].root;
		t = &tasks[tasks[i].root];
		if (j->kind != NRP_LOCK_FAULT || j->done == UINT64_MAX || j->gave_up)
			continue;
		t->first = t->faults++ ? t->first : j->arrived;
		t->last = j->done;
	}
	for (uint32_t i = 0; i < mm->nr_jobs; i++) {
		if (tasks[i].faults < 2)
			continue;
		time->faults += tasks[i].faults;
		time->ns += tasks[i].last - tasks[i].first;
	}
}

/* Every task goes on after the time that it took on record (spec 1.8, closed). */
static int run_closed(struct nrp_lock_mm *mm, const struct nrp_lock_params *params,
		      struct fault_time *time)
{
	struct nrp_lock_params closed = *params;
	struct task_faults *tasks = calloc((size_t)mm->nr_jobs + 1, sizeof(*tasks));
	int r = tasks ? 0 : -ENOMEM;

	closed.closed = true;
	if (r == 0)
		r = run(mm, &closed);
	if (r == 0)
		add_fault_time(time, mm, tasks);
	free(tasks);
	return r;
}

static double rate_of(const struct fault_time *time)
{
	return time->ns ? (double)time->faults * 1e9 / (double)time->ns : 0;
}

int nrp_lock_lanes_run(struct nrp_lock_result *ret, struct nrp_lock_lanes *l,
		       const struct nrp_lock_params *params)
{
	struct tallies t = { { .waits = ret->lower },
			     { .waits = ret->value },
			     { .waits = ret->upper } };
	struct fault_time time = { 0 };
	uint64_t writers = 0;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	for (size_t m = 0; r == 0 && m < l->jobs.nr_mms; m++) {
		struct nrp_lock_mm *mm = &l->jobs.mm[m];

		r = run(mm, params);
		ret->unmap_faults += mm->unmap_faults;
		for (uint32_t i = 0; r == 0 && i < mm->nr_jobs; i++) {
			writers += mm->job[i].kind == NRP_LOCK_WRITER && mm->job[i].queued;
			ret->write_held += lane_write_held(params, &mm->job[i], &mm->seen[i]);
			r = count_job(ret, &t, l, &mm->job[i], &mm->seen[i]);
		}
		if (r == 0)
			r = run_late(mm, l, params);
		ret->skipped_upper += r == 0 ? late_skips(mm) : 0;
		if (r == 0)
			r = run_closed(mm, params, &time);
	}
	if (ret->skipped_upper < ret->skipped)
		ret->skipped_upper = ret->skipped;
	finish(&t.low);
	finish(&t.mid);
	finish(&t.high);
	ret->fault_rate = rate_of(&time);
	ret->modelled = is_modelled(params, writers);
	return r;
}

/* What the lanes are compared with, request by request; ends with the host's run in the jobs. */
static int keep_own(struct nrp_lock_lanes *l)
{
	struct nrp_lock_params params = nrp_lock_host_params(l->host.variant);
	struct fault_time time = { 0 };
	int r = 0;

	for (size_t m = 0; r == 0 && m < l->jobs.nr_mms; m++) {
		struct nrp_lock_mm *mm = &l->jobs.mm[m];

		r = run_closed(mm, &params, &time);
		if (r == 0)
			r = run_late(mm, l, &params);
		for (uint32_t i = 0; r == 0 && i < mm->nr_jobs; i++)
			mm->seen[i].own_late_skipped = mm->job[i].skipped;
		if (r == 0)
			r = run(mm, &params);
		for (uint32_t i = 0; r == 0 && i < mm->nr_jobs; i++) {
			mm->seen[i].own_wait = mm->job[i].wait;
			mm->seen[i].own_queued = mm->job[i].queued;
			mm->seen[i].own_skipped = mm->job[i].skipped;
		}
	}
	l->record.fault_rate = rate_of(&time);
	return r;
}

int nrp_lock_lanes_load(struct nrp_lock_lanes *ret, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	r = nrp_lock_jobs_load(&ret->jobs, store, capture, err);
	return r < 0 ? r : find_host(ret, store, capture, err);
}

static int check_recorded_order(struct nrp_lock_lanes *l)
{
	struct nrp_lock_host *h = &l->host;
	const struct nrp_lock_verify *own = &h->check[h->variant];
	struct nrp_lock_order_params params = {
		.at_once = own->overhead_p99,
		.late = own->lateness_p95,
	};
	int r = 0;

	for (size_t m = 0; r == 0 && m < l->jobs.nr_mms; m++) {
		params.prefix = false;
		r = nrp_lock_order_add(&h->order, &l->jobs.mm[m], &params);
		params.prefix = true;
		if (r == 0)
			r = nrp_lock_order_add(&h->prefix_order, &l->jobs.mm[m], &params);
	}
	return r;
}

int nrp_lock_lanes_check(struct nrp_lock_lanes *l)
{
	struct nrp_lock_host *h = &l->host;
	int r = 0;

	for (int v = 0; r == 0 && v < NRP_NR_MUNMAP_VARIANTS; v++)
		if (v != (int)h->variant)
			r = verify(l, (enum nrp_munmap_variant)v);
	if (r == 0) /* the last one stays in the jobs */
		r = verify(l, h->variant);
	for (size_t m = 0; r == 0 && m < l->jobs.nr_mms; m++)
		r = nrp_lock_blame_add(&h->blame, &l->jobs.mm[m],
				       h->check[h->variant].overhead_p95);
	return r == 0 ? check_recorded_order(l) : r;
}

int nrp_lock_lanes_start(struct nrp_lock_lanes *lanes)
{
	int r = keep_own(lanes);

	return r < 0 ? r : count_record(lanes);
}

void nrp_lock_lanes_clear(struct nrp_lock_lanes *lanes)
{
	nrp_lock_jobs_clear(&lanes->jobs);
}
