/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/worlds.h"
#include "replay/attempts.h"
#include "replay/pages.h"
#include "replay/scan_history.h"
#include "replay/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VM_SHARED 0x8
#define NOWHERE (-1)

/* A page in one world. */
struct place {
	int16_t nid;
	bool cpupid_apart; /* last_cpupid differs from the recorded one */
	uint32_t last_cpupid;
	uint64_t
		apart_since; /* single-threaded: remote here, local on record, since then; 0: not */
};

/* Page payload. */
struct page {
	uint64_t first_time, last_time; /* of its faults; 0: never seen */
	int16_t nid;                    /* as recorded, after the last fault */
	int16_t moved_from;             /* by its last recorded move */
	uint64_t moved_at;              /* end of that move, 0: none */
	int16_t accessor;               /* node of the last fault's CPU */
	uint32_t pages;
	struct place place[]; /* [nr_worlds] */
};

/* What the filter last saw of a task; stands in for faults that the kernel did not filter. */
struct task {
	bool known;
	int16_t preferred_nid;
	int32_t scan_seq;
	bool grouped;
	/* The group's weights at the last filter call: of two nodes, a source and a target. */
	bool weights_known;
	int16_t nid[2];
	uint64_t cpu[2], mem[2];
};

struct world {
	struct nrp_world_config config;
	struct nrp_world_result result;
	struct nrp_ratelimit_window *window; /* [nr_nodes] */
	bool *window_open;                   /* [nr_nodes] */
	double expected;                     /* accumulates the success rate */
};

struct nrp_worlds {
	const struct nrp_host_facts *facts;
	struct nrp_filter_host filter_host;
	enum nrp_filter_variant filter;
	uint64_t page_size, period_max_ns;
	int nr_worlds;
	struct world world[NRP_MAX_WORLDS];
	struct nrp_pages *pages;
	struct nrp_pages *tasks; /* keyed by tid */
	struct nrp_scan_history *scans;
	struct nrp_worlds_totals totals;
	uint64_t tried, succeeded; /* recorded attempts that ran, and those that moved the page */
	uint64_t huge_local, huge_remote; /* recorded faults on private huge pages of one thread */
	uint64_t tick_time, tick;         /* last pair of time and jiffies */
	bool have_tick;
};

uint64_t nrp_worlds_decision_time(const struct nrp_hint_fault *f)
{
	return f->attempt == NRP_ATTEMPT_NONE ? f->time : f->time + f->attempt_delay;
}

int nrp_worlds_new(struct nrp_worlds **ret, const struct nrp_host_facts *facts,
		   enum nrp_filter_variant filter, uint64_t period_max_ms,
		   const struct nrp_world_config *configs, int nr_worlds, struct nrp_error *err)
{
	struct nrp_worlds *w = calloc(1, sizeof(*w));

	if (!w || nr_worlds > NRP_MAX_WORLDS)
		goto nomem;
	w->facts = facts;
	w->filter_host = nrp_filter_host_of(facts);
	w->filter = filter;
	w->page_size = facts->page_size > 0 ? (uint64_t)facts->page_size : 4096;
	w->period_max_ns = period_max_ms * 1000000;
	w->nr_worlds = nr_worlds;
	w->pages = nrp_pages_new(sizeof(struct page) + (size_t)nr_worlds * sizeof(struct place));
	w->tasks = nrp_pages_new(sizeof(struct task));
	w->scans = nrp_scan_history_new();
	if (!w->pages || !w->tasks || !w->scans)
		goto nomem;
	for (int i = 0; i < nr_worlds; i++) {
		struct world *world = &w->world[i];
		size_t nodes = (size_t)configs[i].nr_nodes + 1;

		world->config = configs[i];
		world->window = calloc(nodes, sizeof(*world->window));
		world->window_open = calloc(nodes, sizeof(*world->window_open));
		if (!world->window || !world->window_open)
			goto nomem;
	}
	*ret = w;
	return 0;
nomem:
	nrp_worlds_free(w);
	return nrp_fail_nomem(err);
}

struct nrp_worlds *nrp_worlds_free(struct nrp_worlds *w)
{
	if (!w)
		return NULL;
	for (int i = 0; i < w->nr_worlds; i++) {
		free(w->world[i].window);
		free(w->world[i].window_open);
	}
	nrp_pages_free(w->pages);
	nrp_pages_free(w->tasks);
	nrp_scan_history_free(w->scans);
	free(w);
	return NULL;
}

const struct nrp_world_result *nrp_worlds_result(const struct nrp_worlds *w, int world)
{
	return &w->world[world].result;
}

const struct nrp_worlds_totals *nrp_worlds_totals(const struct nrp_worlds *w)
{
	return &w->totals;
}

int nrp_worlds_location(struct nrp_worlds *w, int world, uint64_t mm, uint64_t page,
			bool *ret_tainted)
{
	const struct page *p = nrp_pages_get(w->pages, mm, page);

	*ret_tainted = false;
	if (!p || !p->first_time)
		return NOWHERE;
	*ret_tainted = p->place[world].nid != p->nid;
	return p->place[world].nid;
}

/* ---- scans -------------------------------------------------------------------------- */

int nrp_worlds_scan_pass(struct nrp_worlds *w, const struct nrp_scan_pass *pass)
{
	struct nrp_mm_history *mm = nrp_scan_history_mm(w->scans, pass->mm);
	struct task *task;

	if (!mm)
		return -ENOMEM;
	mm->single_threaded = !NRP_NULL(pass, scan_pass, mm_users) && pass->mm_users == 1;
	mm->kept = 0;
	for (int i = 0; i < w->nr_worlds; i++) {
		bool keep = !w->world[i].config.thin_after_divergence || !mm->differs_since[i] ||
			    pass->time >= mm->last_kept[i] + w->period_max_ns;

		if (keep) {
			mm->kept |= UINT32_C(1) << i;
			mm->last_kept[i] = pass->time;
		}
	}
	if (NRP_NULL(pass, scan_pass, task_scan_seq) || NRP_NULL(pass, scan_pass, preferred_nid))
		return 0;
	task = nrp_pages_get(w->tasks, (uint64_t)(uint32_t)pass->tid, 0);
	if (!task)
		return -ENOMEM;
	task->scan_seq = pass->task_scan_seq;
	task->preferred_nid = pass->preferred_nid;
	return 0;
}

int nrp_worlds_scan_range(struct nrp_worlds *w, const struct nrp_scan_range *range)
{
	struct nrp_mm_history *mm;

	if (NRP_NULL(range, scan_range, mm))
		return 0;
	mm = nrp_scan_history_mm(w->scans, range->mm);
	return mm ? nrp_mm_history_add(mm, range->start, range->end, range->time) : -ENOMEM;
}

/* ---- one fault ---------------------------------------------------------------------- */

/* A fault with what all worlds need of it. */
struct step {
	const struct nrp_hint_fault *f;
	uint64_t time;    /* of the decision */
	uint64_t pages;   /* base pages */
	int src, this;    /* nodes */
	int observed_nid; /* of the page after the fault, as recorded */
	bool attempted;   /* the kernel's attempt came to the limiter's place */
	bool refused, moved;
	/*
	 * The fault began while another one was moving the page, and saw the node it came from. On
	 * record nothing comes of it any more.
	 */
	bool overtaken;
	bool is_private; /* single-threaded, private VMA: local pages are not armed */
	uint32_t kept;   /* worlds that had the pass that armed this page */
	struct task *task;
	struct nrp_mm_history *mm;
	struct page *page;
};

static uint64_t ticks_now(const struct nrp_worlds *w, uint64_t time)
{
	uint64_t hz = w->facts->hz > 0 ? (uint64_t)w->facts->hz : 250;

	if (!w->have_tick)
		return nrp_ticks(time, (int64_t)hz);
	return w->tick + nrp_ticks(time > w->tick_time ? time - w->tick_time : 0, (int64_t)hz);
}

static bool admit(struct nrp_worlds *w, struct world *world, const struct step *s, int nid)
{
	const struct nrp_world_config *c = &world->config;
	uint64_t jiffies;
	bool ok;

	if (c->admit) {
		ok = c->admit(c->context, s->time, nid, s->pages);
	} else if (c->limiter.variant == NRP_RATELIMIT_NONE || nid < 0 || nid >= c->nr_nodes) {
		ok = true;
	} else {
		jiffies = s->attempted && !NRP_NULL(s->f, hint_fault, attempt_jiffies)
				  ? s->f->attempt_jiffies
				  : ticks_now(w, s->time);
		if (!world->window_open[nid]) {
			static const struct nrp_ratelimit_start fresh = { .first_end = -1 };
			struct nrp_ratelimit_start start = fresh;

			if (nid < c->nr_starts)
				start = c->start[nid];
			else if (nrp_ratelimit_on_grid(c->limiter.variant))
				start = nrp_ratelimit_start_at(&c->limiter, 0);
			world->window_open[nid] = true;
			world->window[nid] = nrp_ratelimit_first_window(&c->limiter, &start,
									jiffies, c->grid_origin);
		}
		ok = nrp_ratelimit_admit(&c->limiter, &world->window[nid], jiffies, s->pages);
	}
	world->result.attempts++;
	world->result.attempt_pages += s->pages;
	if (ok)
		world->result.admitted++;
	else
		world->result.denied++;
	return ok;
}

/* Would an attempt whose outcome the record does not have move the page? */
static bool unknown_outcome(const struct nrp_worlds *w, struct world *world)
{
	switch (world->config.unknown) {
	case NRP_UNKNOWN_FAILS:
		return false;
	case NRP_UNKNOWN_SUCCEEDS:
		return true;
	default:
		/* The recorded success rate, spread evenly. */
		world->expected += w->tried ? (double)w->succeeded / (double)w->tried : 1.0;
		if (world->expected < 0.999999)
			return false;
		world->expected -= 1.0;
		return true;
	}
}

/* Weights of the task's last filter call, if it was about the same two nodes. */
static bool recall_weights(const struct task *task, struct nrp_filter_call *call)
{
	int src = call->src_nid == task->nid[0] ? 0 : 1;

	if (!task->weights_known || call->src_nid != task->nid[src] ||
	    call->dst_nid != task->nid[!src])
		return false;
	call->weights_known = true;
	call->cpu_src = task->cpu[src];
	call->mem_src = task->mem[src];
	call->cpu_dst = task->cpu[!src];
	call->mem_dst = task->mem[!src];
	return true;
}

/* The host's filter on a fault that the kernel did not filter, or from another node. */
static bool filter_passes(const struct nrp_worlds *w, struct world *world, const struct step *s,
			  const struct place *place)
{
	struct nrp_filter_call call = {
		.tid = s->f->tid,
		.src_nid = place->nid,
		.dst_nid = s->this,
		.last_cpupid = place->last_cpupid,
		.preferred_nid = s->task->preferred_nid,
		.scan_seq = s->task->scan_seq,
		.grouped = s->task->grouped,
	};
	struct nrp_filter_result r = { .answer = NRP_FILTER_UNDECIDED };

	if (world->config.filter_passes)
		return true;
	if (s->task->known)
		r = nrp_filter_decide(w->filter, &w->filter_host, &call);
	if (r.answer != NRP_FILTER_UNDECIDED)
		return r.answer == NRP_FILTER_MOVE;
	world->result.undecided_filters++;
	if (world->config.unknown != NRP_UNKNOWN_EXPECTED)
		return world->config.unknown == NRP_UNKNOWN_SUCCEEDS;
	/* The best guess is that the group's weights are what they were. */
	if (!s->task->known || !recall_weights(s->task, &call))
		return true;
	r = nrp_filter_decide(w->filter, &w->filter_host, &call);
	return r.answer != NRP_FILTER_STAY;
}

/* Does the kernel's own attempt from the same node say what happens here too? */
static bool try_recorded(struct nrp_worlds *w, struct world *world, const struct step *s)
{
	if (!s->attempted)
		return s->moved; /* moved without an attempt on record: as recorded */
	if (!admit(w, world, s, s->f->attempt_nid))
		return false;
	return s->refused || s->overtaken ? unknown_outcome(w, world) : s->moved;
}

/* From here on the address space's scan periods, and so its faults, may be others. */
static void note_difference(struct nrp_worlds *w, int i, const struct step *s,
			    uint64_t denied_before)
{
	bool refuses = w->world[i].result.denied > denied_before;
	bool host_refuses = s->attempted && s->refused;

	if (s->mm && !s->mm->differs_since[i] && refuses != host_refuses)
		s->mm->differs_since[i] = s->time;
}

/* The fault as this world sees it; returns the page's node afterwards. */
static int decide(struct nrp_worlds *w, int i, const struct step *s, const struct place *place)
{
	struct world *world = &w->world[i];
	bool remote = place->nid != s->this;
	uint64_t denied = world->result.denied;
	int nid = place->nid;

	world->result.hint_faults++;
	world->result.hint_fault_pages += s->pages;
	world->result.remote_faults += remote;
	if (place->nid == s->src && (s->attempted || s->moved || s->src != s->this)) {
		if (try_recorded(w, world, s))
			nid = s->attempted ? s->f->attempt_nid : s->this;
	} else if (remote && filter_passes(w, world, s, place)) {
		world->result.model_attempts++;
		if (admit(w, world, s, s->this) && unknown_outcome(w, world))
			nid = s->this;
	}
	note_difference(w, i, s, denied);
	return nid;
}

static void exchange_cpupid(const struct nrp_worlds *w, const struct step *s, struct place *place,
			    int nid_before)
{
	bool recorded_call = !NRP_NULL(s->f, hint_fault, filter_delay);
	bool called = nrp_filter_is_called(w->filter, nid_before, s->this);

	if (called) {
		place->last_cpupid = nrp_filter_cpupid(&w->filter_host, (int)s->f->cpu, s->f->tid);
		place->cpupid_apart = !recorded_call;
	} else if (recorded_call) {
		place->cpupid_apart = true;
	}
}

/* Missing faults of a page that is remote here but was local on record (E2). */
static void count_missing(struct nrp_worlds *w, int i, struct place *place, uint64_t addr,
			  const struct nrp_mm_history *mm, uint64_t until)
{
	if (place->apart_since && mm)
		w->world[i].result.extra_faults_max +=
			nrp_mm_history_count(mm, addr, place->apart_since, until);
	place->apart_since = 0;
}

static void step_world(struct nrp_worlds *w, int i, const struct step *s)
{
	struct world *world = &w->world[i];
	struct place *place = &s->page->place[i];
	bool tainted = place->nid != s->page->nid;
	int nid_before;

	if (!tainted)
		place->nid = (int16_t)s->src;
	tainted = s->overtaken ? tainted : place->nid != s->src;
	if (!place->cpupid_apart && !NRP_NULL(s->f, hint_fault, last_cpupid))
		place->last_cpupid = s->f->last_cpupid;
	nid_before = place->nid;
	if (s->is_private)
		count_missing(w, i, place, s->f->addr, s->mm, s->f->time);
	/* Not armed in this world: local page of a single-threaded process, or a pass left out. */
	if ((s->is_private && tainted && nid_before == s->this) || !(s->kept >> i & 1)) {
		/* The record's page remembers this access, this world's does not. */
		place->cpupid_apart |= !NRP_NULL(s->f, hint_fault, filter_delay);
		if (s->moved && !tainted)
			world->result.suppressed++;
	} else {
		int nid = decide(w, i, s, place);

		exchange_cpupid(w, s, place, nid_before);
		if (s->overtaken && !tainted)
			nid = nid_before; /* here, too, the page is on its way */
		place->nid = (int16_t)nid;
		if (nid != nid_before) {
			world->result.moves++;
			world->result.moved_pages += s->pages;
			world->result.added += !s->moved || tainted;
		} else if (s->moved && !tainted) {
			world->result.suppressed++;
		}
	}
	if (s->overtaken && !tainted)
		place->nid = s->page->nid;
	if (s->is_private && place->nid != s->this && s->observed_nid == s->this)
		place->apart_since = s->f->time;
}

/* Page-seconds since the page's previous fault. */
static void account_time(struct nrp_worlds *w, const struct page *p, uint64_t now,
			 int next_accessor)
{
	double seconds =
		now > p->last_time ? (double)(now - p->last_time) * 1e-9 * (double)p->pages : 0;

	w->totals.page_seconds += seconds;
	w->totals.observed_remote_previous += p->nid != p->accessor ? seconds : 0;
	w->totals.observed_remote_next +=
		next_accessor != NOWHERE && p->nid != next_accessor ? seconds : 0;
	for (int i = 0; i < w->nr_worlds; i++) {
		struct nrp_world_result *r = &w->world[i].result;
		int nid = p->place[i].nid;

		r->tainted_seconds += nid != p->nid ? seconds : 0;
		r->remote_seconds_previous += nid != p->accessor ? seconds : 0;
		r->remote_seconds_next +=
			next_accessor != NOWHERE && nid != next_accessor ? seconds : 0;
	}
}

static void learn_task(struct task *task, const struct nrp_hint_fault *f)
{
	if (NRP_NULL(f, hint_fault, filter_delay) || NRP_NULL(f, hint_fault, scan_seq) ||
	    NRP_NULL(f, hint_fault, preferred_nid))
		return;
	task->known = true;
	task->scan_seq = f->scan_seq;
	task->preferred_nid = f->preferred_nid;
	task->grouped = !NRP_NULL(f, hint_fault, numa_group);
	if (NRP_NULL(f, hint_fault, group_cpu_src) || NRP_NULL(f, hint_fault, group_cpu_dst) ||
	    NRP_NULL(f, hint_fault, group_mem_src) || NRP_NULL(f, hint_fault, group_mem_dst) ||
	    f->src_nid == f->this_nid)
		return;
	task->weights_known = true;
	task->nid[0] = f->src_nid;
	task->nid[1] = f->this_nid;
	task->cpu[0] = f->group_cpu_src;
	task->cpu[1] = f->group_cpu_dst;
	task->mem[0] = f->group_mem_src;
	task->mem[1] = f->group_mem_dst;
}

/*
 * Does the scanner leave this mapping's local pages alone? The only thread of an address space has
 * local base pages of private VMAs never armed. Huge pages were armed wherever they are, until some
 * kernel after 6.12: the record shows it, if some of their faults are local.
 */
static bool spares_local(struct nrp_worlds *w, const struct step *s)
{
	uint64_t huge = w->facts->huge_pages > 0 ? (uint64_t)w->facts->huge_pages : 512;

	if (!s->mm->single_threaded || NRP_NULL(s->f, hint_fault, vm_flags) ||
	    s->f->vm_flags & VM_SHARED)
		return false;
	if (s->pages < huge)
		return true;
	*(s->src == s->this ? &w->huge_local : &w->huge_remote) += 1;
	/* A few local ones are threads that moved after the scan. */
	return !w->facts->has_thp_function && w->huge_local * 8 <= w->huge_remote;
}

static int find_scan(struct nrp_worlds *w, struct step *s)
{
	const struct nrp_armed_range *range = NULL;
	bool searched = false, unsure = false;

	s->mm = nrp_scan_history_mm(w->scans, s->f->mm);
	if (!s->mm)
		return -ENOMEM;
	s->is_private = spares_local(w, s);
	s->kept = ~UINT32_C(0);
	for (int i = 0; i < w->nr_worlds; i++) {
		if (!s->mm->differs_since[i] || !w->world[i].config.thin_after_divergence)
			continue;
		if (!searched)
			range = nrp_mm_history_armed(s->mm, s->f->addr, s->f->time, &unsure);
		searched = true;
		if (range ? !(range->kept >> i & 1) : unsure)
			s->kept &= ~(UINT32_C(1) << i);
	}
	return 0;
}

/* A fault of an unknown page or node is the same in every world. */
static void count_untracked(struct nrp_worlds *w, const struct step *s)
{
	w->totals.untracked_faults++;
	w->totals.observed_moves += s->moved;
	w->totals.observed_moved_pages += s->moved ? s->pages : 0;
	for (int i = 0; i < w->nr_worlds; i++) {
		struct nrp_world_result *r = &w->world[i].result;

		r->hint_faults++;
		r->hint_fault_pages += s->pages;
		r->attempts += s->attempted;
		r->attempt_pages += s->attempted ? s->pages : 0;
		r->admitted += s->attempted && !s->refused;
		r->denied += s->attempted && s->refused;
		r->moves += s->moved;
		r->moved_pages += s->moved ? s->pages : 0;
	}
}

int nrp_worlds_fault(struct nrp_worlds *w, const struct nrp_hint_fault *f, bool refused)
{
	struct step s = { .f = f, .time = nrp_worlds_decision_time(f), .refused = refused };
	struct nrp_attempt attempt;
	bool has_jiffies, external;
	uint64_t page;

	s.pages = nrp_fault_pages(f);
	s.moved = nrp_fault_moved(f);
	s.attempted = nrp_attempt_of_fault(&attempt, f, &has_jiffies);
	if (NRP_NULL(f, hint_fault, mm) || NRP_NULL(f, hint_fault, src_nid) ||
	    NRP_NULL(f, hint_fault, this_nid)) {
		count_untracked(w, &s);
		return 0;
	}
	if (s.attempted && has_jiffies) {
		w->have_tick = true;
		w->tick_time = s.time;
		w->tick = f->attempt_jiffies;
	}
	s.src = f->src_nid;
	s.this = f->this_nid;
	s.observed_nid = !s.moved ? s.src : s.attempted ? f->attempt_nid : s.this;
	if (s.attempted && !refused) {
		w->tried++;
		w->succeeded += s.moved;
	}
	if (find_scan(w, &s) < 0)
		return -ENOMEM;
	s.task = nrp_pages_get(w->tasks, (uint64_t)(uint32_t)f->tid, 0);
	if (!s.task)
		return -ENOMEM;
	learn_task(s.task, f);
	page = nrp_page_of(f->addr, w->page_size, (uint32_t)s.pages);
	s.page = nrp_pages_get(w->pages, f->mm, page);
	if (!s.page)
		return -ENOMEM;
	s.overtaken = s.page->first_time && !s.moved && s.page->nid != s.src &&
		      s.page->moved_from == s.src && f->time < s.page->moved_at;
	if (s.overtaken)
		s.observed_nid = s.page->nid;
	external = s.page->first_time && s.page->nid != s.src && !s.overtaken;
	if (s.page->first_time)
		account_time(w, s.page, f->time, s.this);
	else
		s.page->first_time = f->time ? f->time : 1;
	w->totals.external_moves += external;
	w->totals.observed_moves += s.moved;
	w->totals.observed_moved_pages += s.moved ? s.pages : 0;
	w->totals.observed_remote_faults += s.src != s.this;
	/* A page that somebody else moved is where it was found, in every world. */
	if (s.page->first_time == f->time || external)
		for (int i = 0; i < w->nr_worlds; i++)
			s.page->place[i].nid = s.page->nid = (int16_t)s.src;
	for (int i = 0; i < w->nr_worlds; i++)
		step_world(w, i, &s);
	if (s.moved) {
		s.page->moved_from = (int16_t)s.src;
		s.page->moved_at = s.attempted ? attempt.end_time : s.time;
	}
	s.page->nid = (int16_t)s.observed_nid;
	s.page->accessor = (int16_t)s.this;
	s.page->pages = (uint32_t)s.pages;
	s.page->last_time = f->time;
	return 0;
}

void nrp_worlds_finish(struct nrp_worlds *w, uint64_t end_time)
{
	size_t position = 0;
	uint64_t mm, page;
	struct page *p;

	while ((p = nrp_pages_next(w->pages, &position, &mm, &page))) {
		if (!p->first_time)
			continue;
		account_time(w, p, end_time, NOWHERE);
		for (int i = 0; i < w->nr_worlds; i++)
			if (p->place[i].apart_since)
				count_missing(w, i, &p->place[i], page * w->page_size,
					      nrp_scan_history_mm(w->scans, mm), end_time);
	}
}
