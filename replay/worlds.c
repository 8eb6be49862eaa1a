/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/attempts.h"
#include "replay/host.h"
#include "replay/pages.h"
#include "replay/verify.h"
#include "replay/worlds_internal.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* ---- making and freeing ------------------------------------------------------------- */

/* Node numbers of the host, and of all records, are below. */
static int count_nodes(const struct nrp_host_facts *facts)
{
	int nodes = facts->nr_nodes;

	for (int cpu = 0; cpu < facts->nr_cpus; cpu++)
		if (facts->cpu_nid[cpu] >= nodes)
			nodes = facts->cpu_nid[cpu] + 1;
	return nodes > 0 ? nodes : 1;
}

static bool new_world(struct nrp_world *world, const struct nrp_world_config *config)
{
	size_t nodes = (size_t)config->nr_nodes + 1;

	world->config = *config;
	world->window = calloc(nodes, sizeof(*world->window));
	world->window_open = calloc(nodes, sizeof(*world->window_open));
	return world->window && world->window_open;
}

static bool make_books(struct nrp_worlds *w, bool shared)
{
	w->pages = nrp_worlds_new_pages(w);
	w->spaces = nrp_address_spaces_new(w->nr_nodes);
	w->locality = nrp_locality_new(w->nr_nodes, w->nr_worlds);
	w->task_numbers = nrp_pages_new(sizeof(uint64_t));
	w->preference_numbers = nrp_pages_new(sizeof(uint64_t));
	if (shared) {
		w->shared = nrp_shared_pages_new();
		w->faulters = nrp_worlds_new_faulters();
	}
	return w->pages && w->spaces && w->locality && w->task_numbers && w->preference_numbers &&
	       ((w->shared && w->faulters) || !shared);
}

int nrp_worlds_new(struct nrp_worlds **ret, const struct nrp_host_facts *facts,
		   enum nrp_filter_variant host_filter, uint64_t period_max_ms, uint64_t origin,
		   bool shared, const struct nrp_world_config *configs, int nr_worlds,
		   struct nrp_error *err)
{
	struct nrp_worlds *w = calloc(1, sizeof(*w));

	if (!w || nr_worlds > NRP_MAX_WORLDS)
		goto nomem;
	w->facts = facts;
	w->filter_host = nrp_filter_host_of(facts);
	w->host_filter = host_filter;
	w->page_shift = (unsigned int)__builtin_ctzll(nrp_host_page_size(facts));
	w->period_max_ns = period_max_ms * 1000000;
	w->counts.now = -1;
	w->origin = origin;
	w->nr_nodes = count_nodes(facts);
	w->nr_worlds = nr_worlds;
	w->places_size =
		(sizeof(struct nrp_places) + (size_t)nr_worlds * sizeof(struct nrp_group) + 63) &
		~(size_t)63;
	w->first_of_lane[0] = w->first_of_lane[1] = -1;
	w->same_filter = w->one_filter = true;
	w->full = calloc((size_t)w->nr_nodes, sizeof(*w->full));
	if (!w->full || !make_books(w, shared))
		goto nomem;
	for (int i = 0; i < nr_worlds; i++) {
		if (!new_world(&w->world[i], &configs[i]))
			goto nomem;
		w->lane[configs[i].lane] |= UINT32_C(1) << i;
		w->fails |= (uint32_t)(configs[i].unknown == NRP_UNKNOWN_FAILS) << i;
		w->filter_passes |= configs[i].filter_passes;
		w->thinned |= (uint32_t)configs[i].thin_after_divergence << i;
		w->diverged |= (uint32_t)configs[i].diverged << i;
		w->same_filter &= configs[i].filter == host_filter;
		w->one_filter &= configs[i].filter == configs[0].filter;
		if (w->first_of_lane[configs[i].lane] < 0)
			w->first_of_lane[configs[i].lane] = i;
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
	for (uint32_t i = 0; i < w->nr_preferences; i++) {
		free(w->preferences[i].pages);
		free(w->preferences[i].differs);
	}
	nrp_page_table_free(w->pages);
	nrp_address_spaces_free(w->spaces);
	nrp_locality_free(w->locality);
	nrp_shared_pages_free(w->shared);
	nrp_pages_free(w->faulters);
	free(w->counts.of);
	nrp_pages_free(w->task_numbers);
	nrp_pages_free(w->preference_numbers);
	free(w->preferences);
	free(w->places);
	free(w->full);
	free(w->tasks);
	free(w);
	return NULL;
}

/* ---- scans -------------------------------------------------------------------------- */

static int see_task(struct nrp_worlds *w, int32_t tid, uint32_t mm, int nid, uint64_t time,
		    struct nrp_task **ret)
{
	*ret = nrp_worlds_task(w, tid);
	if (!*ret)
		return -ENOMEM;
	if (nid < 0 || nid >= w->nr_nodes)
		return 0;
	return nrp_worlds_task_seen(w, *ret, mm, nid, time);
}

int nrp_worlds_scan_pass(struct nrp_worlds *w, const struct nrp_scan_pass *pass)
{
	int64_t number = nrp_address_space_of(w->spaces, pass->mm);
	struct nrp_task *task;
	struct nrp_mm *mm;

	w->now = pass->time;
	if (number < 0 || see_task(w, pass->tid, (uint32_t)number,
				   nrp_host_cpu_nid(w->facts, (int)pass->cpu), pass->time, &task))
		return -ENOMEM;
	mm = nrp_address_space(w->spaces, (uint32_t)number);
	mm->passes++;
	mm->single_threaded = !NRP_NULL(pass, scan_pass, mm_users) && pass->mm_users == 1;
	w->has_threads |= !mm->single_threaded;
	mm->kept = 0;
	for (int i = 0; i < w->nr_worlds; i++) {
		bool keep = !(w->thinned & (mm->diverged | w->diverged) & UINT32_C(1) << i) ||
			    !mm->last_kept[i] || pass->time >= mm->last_kept[i] + w->period_max_ns;

		if (keep) {
			mm->kept |= UINT32_C(1) << i;
			mm->last_kept[i] = pass->time;
		}
	}
	if (!NRP_NULL(pass, scan_pass, task_scan_seq) &&
	    !NRP_NULL(pass, scan_pass, preferred_nid)) {
		task->scan_seq = pass->task_scan_seq;
		task->preferred_nid = pass->preferred_nid;
	}
	return 0;
}

int nrp_worlds_scan_range(struct nrp_worlds *w, const struct nrp_scan_range *range)
{
	int64_t number, vma;
	struct nrp_mm *mm;

	w->now = range->time;
	if (NRP_NULL(range, scan_range, mm))
		return 0;
	number = nrp_address_space_of(w->spaces, range->mm);
	if (number < 0)
		return -ENOMEM;
	mm = nrp_address_space(w->spaces, (uint32_t)number);
	vma = nrp_locality_vma(w->locality, (uint32_t)number,
			       NRP_NULL(range, scan_range, vm_start) ? range->start
								     : range->vm_start,
			       NRP_NULL(range, scan_range, vm_end) ? range->end : range->vm_end,
			       NRP_NULL(range, scan_range, vm_flags) ? 0 : range->vm_flags);
	if (vma < 0)
		return -ENOMEM;
	if (!NRP_NULL(range, scan_range, pages) && range->pages)
		nrp_locality_arm(w->locality, (uint32_t)vma, mm->presence,
				 nrp_worlds_seconds(w, range->time), (double)range->pages);
	return nrp_mm_arm(mm, range->start, range->end, range->time, (uint32_t)vma);
}

/* ---- one fault: what is known of it ------------------------------------------------- */

/* A fault of an unknown page or node is the same in every world. */
static void count_untracked(struct nrp_worlds *w, const struct nrp_step *s)
{
	struct nrp_world_result *r = &w->common;

	w->totals.untracked_faults++;
	w->totals.observed_moves += s->moved;
	w->totals.observed_moved_pages += s->moved ? s->pages : 0;
	r->hint_faults++;
	r->hint_fault_pages += s->pages;
	r->attempt_pages += s->attempted ? s->pages : 0;
	r->admitted += s->attempted && !s->refused;
	r->denied += s->attempted && s->refused;
	r->moves += s->moved;
	r->moved_pages += s->moved ? s->pages : 0;
}

/*
 * Does the scanner leave this mapping's local pages alone? The only thread of an address space has
 * local base pages of private VMAs never armed. Huge pages were armed wherever they are, until some
 * kernel after 6.12: the record shows it, if some of their faults are local.
 */
static bool spares_local(struct nrp_worlds *w, const struct nrp_step *s)
{

	if (!s->mm->single_threaded || NRP_NULL(s->f, hint_fault, vm_flags) ||
	    s->f->vm_flags & NRP_VM_SHARED)
		return false;
	if (s->pages < nrp_host_huge_pages(w->facts))
		return true;
	*(s->src == s->this ? &w->huge_local : &w->huge_remote) += 1;
	/* A few local ones are threads that moved after the scan. */
	return !w->facts->has_thp_function && w->huge_local * 8 <= w->huge_remote;
}

static void find_scan(struct nrp_worlds *w, struct nrp_step *s)
{
	uint32_t thinned = w->thinned & (s->mm->diverged | w->diverged);
	bool unsure;

	s->is_private = spares_local(w, s);
	s->range = nrp_mm_armed(s->mm, s->f->addr, s->f->time, &unsure);
	s->kept = ~UINT32_C(0);
	if (thinned && s->range != NRP_NO_RANGE)
		s->kept = ~(thinned & ~s->mm->ranges[s->range].kept);
	else if (thinned && unsure)
		s->kept = ~thinned;
}

/* Known under another name from now on: what the old one stood for, ends. */
static int join_names(struct nrp_worlds *w, struct nrp_step *s, uint32_t own, uint64_t vfn,
		      struct nrp_page *leader)
{
	struct nrp_page *p = nrp_page_table_find(w->pages, s->mm, own, vfn);
	uint32_t vma = s->range == NRP_NO_RANGE ? leader->vma : s->mm->ranges[s->range].vma;

	if (p && p != leader && p->seen) {
		nrp_worlds_end_page(w, p);
		p->pages = 0;
	}
	if (!leader->seen)
		return 0;
	if (!leader->mappings) {
		leader->mappings = 1;
		w->totals.shared_pages++;
	}
	if (leader->mappings < UINT8_MAX)
		leader->mappings++;
	nrp_locality_join(w->locality, leader->vma, vma);
	return nrp_worlds_join_faulters(w, own, vfn, leader);
}

static uint64_t vm_start_of(const struct nrp_hint_fault *f)
{
	return NRP_NULL(f, hint_fault, vm_start) ? 0 : f->vm_start;
}

/* The page of the fault, made on first sight. */
static int find_page(struct nrp_worlds *w, struct nrp_step *s, uint32_t number)
{
	uint64_t vfn = s->f->addr >> w->page_shift;
	uint32_t pages = NRP_NULL(s->f, hint_fault, pages) ? 0 : s->f->pages;
	struct nrp_page_name name = { .space = number, .vfn = vfn };
	bool joined = false, parted = false, shared = false;
	struct nrp_mm *mm = s->mm;

	if (w->shared && !NRP_NULL(s->f, hint_fault, page) && s->f->page && pages <= 1) {
		bool mapped_often = !NRP_NULL(s->f, hint_fault, mapcount) && s->f->mapcount > 0;
		bool is_shared =
			!NRP_NULL(s->f, hint_fault, vm_flags) && s->f->vm_flags & NRP_VM_SHARED;

		if (nrp_shared_pages_see(w->shared, &name, s->f->page, vm_start_of(s->f),
					 mapped_often || is_shared, &joined, &parted) < 0)
			return -ENOMEM;
		shared = mapped_often || is_shared;
		mm = nrp_address_space(w->spaces, (uint32_t)name.space);
	}
	s->page = nrp_page_table_get(w->pages, mm, (uint32_t)name.space, name.vfn, pages);
	if (!s->page)
		return -ENOMEM;
	if (parted && s->page->seen) {
		nrp_worlds_end_page(w, s->page);
		*s->page = (struct nrp_page){ .vfn = s->page->vfn,
					      .mm = s->page->mm,
					      .pages = s->page->pages };
	}
	if (joined && join_names(w, s, number, vfn, s->page) < 0)
		return -ENOMEM;
	if (!shared && (!w->shared || s->page->mappings < 2))
		return 0;
	return nrp_worlds_count_faulter(w, s->page, s->this);
}

/* ---- one fault: in the worlds ------------------------------------------------------- */

/* Do all worlds have the page where the record has it, and remember the same user? */
static bool same_everywhere(const struct nrp_places *places, int nid)
{
	const struct nrp_group *first = places->group;

	for (const struct nrp_group *g = first; g < first + places->count; g++)
		if (g->place.nid != nid || g->place.apart_since ||
		    g->place.cpupid_apart != first->place.cpupid_apart ||
		    (g->place.cpupid_apart && g->place.last_cpupid != first->place.last_cpupid))
			return false;
	return true;
}

/*
 * Does nothing come of this fault, in no world? The page is in all of them where it is on record,
 * and either local, or judged by the same filter with the same inputs.
 */
static bool is_plain(const struct nrp_worlds *w, const struct nrp_step *s)
{
	const struct nrp_page *p = s->page;

	return !p->split && s->src == p->nid && !s->attempted && !s->moved &&
	       (s->src == s->this || (w->same_filter && !p->apart)) && w->one_filter &&
	       s->kept == ~UINT32_C(0) && s->context->armed[0] == NRP_ARMED_YES &&
	       s->context->armed[1] == NRP_ARMED_YES;
}

static void count_plain(struct nrp_worlds *w, const struct nrp_step *s)
{
	struct nrp_page *p = s->page;

	w->common.hint_faults++;
	w->common.hint_fault_pages += s->pages;
	w->common.remote_faults += s->src != s->this;
	if (s->src != s->this || !w->nr_worlds)
		return;
	/* A local fault leaves its mark, or not. */
	if (nrp_filter_is_called(w->world[0].config.filter, s->src, s->this)) {
		p->cpupid = nrp_filter_cpupid(&w->filter_host, (int)s->f->cpu, s->f->tid);
		p->apart = !s->filtered;
	} else if (s->filtered && !p->apart) {
		p->cpupid = s->f->last_cpupid;
		p->apart = !NRP_NULL(s->f, hint_fault, last_cpupid);
	}
}

/* Every world by itself. */
static int step_each(struct nrp_worlds *w, const struct nrp_step *s, struct nrp_places *places)
{
	struct nrp_place before[NRP_MAX_WORLDS], place[NRP_MAX_WORLDS];

	if (s->page->split && nrp_worlds_book_time(w, s->page) < 0)
		return -ENOMEM;
	for (int k = 0; k < places->count; k++)
		for (uint32_t left = places->group[k].worlds; left;)
			before[nrp_next_world(&left)] = places->group[k].place;
	places->count = 0;
	for (int i = 0; i < w->nr_worlds; i++) {
		place[i] = before[i];
		nrp_world_step(w, i, s, &place[i]);
		nrp_places_add(places, UINT32_C(1) << i, &place[i]);
		w->attempted_in |= (uint32_t)(s->attempted && w->world[i].tries) << i;
	}
	return nrp_worlds_book_changes(w, s, before, place);
}

/* @ret_nid: where the first world of each lane has the page afterwards. */
static int step_worlds(struct nrp_worlds *w, const struct nrp_step *s, int ret_nid[2])
{
	alignas(struct nrp_places) unsigned char own[NRP_PLACES_MAX];
	struct nrp_page *p = s->page;
	struct nrp_places *places;
	int r;

	if (p->split) {
		places = nrp_worlds_places(w, p->split);
	} else {
		places = (struct nrp_places *)own;
		*places = (struct nrp_places){ .count = 0 };
	}
	if (!p->split && w->nr_worlds)
		nrp_places_add(places, w->lane[0] | w->lane[1],
			       &(struct nrp_place){ .nid = p->nid,
						    .cpupid_apart = p->apart,
						    .last_cpupid = p->cpupid });
	r = nrp_worlds_is_quiet(w, s) ? nrp_worlds_step_quiet(w, s, places)
				      : step_each(w, s, places);
	if (r < 0)
		return -ENOMEM;
	for (int lane = 0; lane < 2; lane++)
		if (w->first_of_lane[lane] >= 0)
			ret_nid[lane] = nrp_places_nid(places, w->first_of_lane[lane], p->nid);
	if (same_everywhere(places, s->observed_nid)) {
		p->apart = w->nr_worlds && places->group[0].place.cpupid_apart;
		p->cpupid = w->nr_worlds ? places->group[0].place.last_cpupid : 0;
		nrp_worlds_give_back(w, p);
		return 0;
	}
	if (p->split)
		return 0;
	p->split = nrp_worlds_take_places(w);
	if (!p->split)
		return -ENOMEM;
	memcpy(nrp_worlds_places(w, p->split), places,
	       sizeof(*places) + (size_t)places->count * sizeof(*places->group));
	return 0;
}

/* First sight, or what happened since the last one. */
static int arrive(struct nrp_worlds *w, struct nrp_step *s)
{
	struct nrp_page *p = s->page;

	if (!p->seen) {
		p->seen = true;
		w->totals.page_seconds -= nrp_worlds_seconds(w, s->f->time) * p->pages;
		p->nid = (int16_t)s->src;
		if (s->range != NRP_NO_RANGE) {
			p->vma = s->mm->ranges[s->range].vma;
		} else {
			int64_t vma = nrp_locality_vma(w->locality, p->mm - 1, 0, 0, 0);

			if (vma < 0)
				return -ENOMEM;
			p->vma = (uint32_t)vma;
		}
		nrp_locality_lie(w->locality, p->vma, p->nid, (double)p->pages,
				 -nrp_worlds_seconds(w, s->f->time));
		nrp_locality_fault(w->locality, p->vma, s->this, NRP_NOWHERE);
		return 0;
	}
	nrp_locality_fault(w->locality, p->vma, s->this, p->accessor);
	s->overtaken = !s->moved && p->nid != s->src && p->moved_from == s->src &&
		       s->f->time <= p->moved_at;
	if (s->overtaken)
		s->observed_nid = p->nid;
	if ((p->split || p->nid != p->accessor || p->nid != s->this) &&
	    nrp_worlds_account(w, p, s->f->time, s->this) < 0)
		return -ENOMEM;
	if (p->nid == s->src || s->overtaken)
		return 0;
	w->totals.external_moves++;
	return nrp_worlds_move_externally(w, p, s->src);
}

static void leave(struct nrp_worlds *w, const struct nrp_step *s, uint64_t attempt_end)
{
	struct nrp_page *p = s->page;

	w->totals.observed_moves += s->moved;
	w->totals.observed_moved_pages += s->moved ? s->pages : 0;
	w->totals.observed_remote_faults += s->src != s->this;
	if (s->moved) {
		bool back = p->moved_at && p->moved_from == s->observed_nid;

		w->totals.moves_back += back;
		w->totals.moved_back_pages += back ? s->pages : 0;
		p->moved_from = (int16_t)s->src;
		p->moved_at = s->attempted ? attempt_end : s->time;
	}
	p->nid = (int16_t)s->observed_nid;
	p->accessor = (int16_t)s->this;
	p->last_time = s->f->time;
}

static void touch(struct nrp_worlds *w, const struct nrp_step *s)
{
	const struct nrp_armed_range *range = &s->mm->ranges[s->range];

	nrp_locality_touch(w->locality, range->vma, nrp_worlds_seconds(w, s->f->time),
			   (double)s->pages, s->this, (double)(s->f->time - range->time) * 1e-9);
}

static int follow(struct nrp_worlds *w, struct nrp_step *s, uint64_t attempt_end)
{
	int nid[2] = { s->observed_nid, s->observed_nid };

	if (arrive(w, s) < 0)
		return -ENOMEM;
	if (is_plain(w, s))
		count_plain(w, s);
	else if (step_worlds(w, s, nid) < 0)
		return -ENOMEM;
	else
		w->counts.stepped = true;
	if (nrp_worlds_prefer(w, s, nid) < 0)
		return -ENOMEM;
	if (s->range != NRP_NO_RANGE)
		touch(w, s);
	if (w->shared && s->moved) {
		struct nrp_page_name name = { .space = s->page->mm - 1, .vfn = s->page->vfn };

		if (nrp_shared_pages_moved(w->shared, &name, vm_start_of(s->f)) < 0)
			return -ENOMEM;
	}
	leave(w, s, attempt_end);
	return 0;
}

int nrp_worlds_fault(struct nrp_worlds *w, const struct nrp_hint_fault *f,
		     const struct nrp_fault_context *context)
{
	struct nrp_step s = { .f = f,
			      .context = context,
			      .time = nrp_worlds_decision_time(f),
			      .refused = context->refused,
			      .filtered = !NRP_NULL(f, hint_fault, filter_delay) };
	struct nrp_attempt attempt = { 0 };
	bool has_jiffies;
	int64_t number;

	w->now = f->time;
	w->attempted_in = 0;
	s.pages = nrp_fault_pages(f);
	s.moved = nrp_fault_moved(f);
	s.attempted =
		f->attempt != NRP_ATTEMPT_NONE && nrp_attempt_of_fault(&attempt, f, &has_jiffies);
	number = NRP_NULL(f, hint_fault, mm) ? -1 : nrp_address_space_of(w->spaces, f->mm);
	if (number < 0 && !NRP_NULL(f, hint_fault, mm))
		return -ENOMEM;
	if (number != w->counts.now && nrp_worlds_enter_space(w, number) < 0)
		return -ENOMEM;
	nrp_worlds_count_record(w, number, &s);
	if (NRP_NULL(f, hint_fault, mm) || NRP_NULL(f, hint_fault, addr) ||
	    NRP_NULL(f, hint_fault, src_nid) || NRP_NULL(f, hint_fault, this_nid) ||
	    f->src_nid < 0 || f->src_nid >= w->nr_nodes || f->this_nid < 0 ||
	    f->this_nid >= w->nr_nodes || (s.attempted && f->attempt_nid >= w->nr_nodes)) {
		count_untracked(w, &s);
		return 0;
	}
	if (s.attempted && has_jiffies) {
		w->have_tick = true;
		w->tick_time = s.time;
		w->tick = f->attempt_jiffies;
		w->ticks_at = 0;
	}
	s.src = f->src_nid;
	s.this = f->this_nid;
	s.observed_nid = !s.moved ? s.src : s.attempted ? f->attempt_nid : s.this;
	if (s.attempted && !s.refused) {
		w->tried++;
		w->succeeded += s.moved;
	}
	s.mm = nrp_address_space(w->spaces, (uint32_t)number);
	s.task = nrp_worlds_task(w, f->tid);
	if (!s.task)
		return -ENOMEM;
	if (s.task->alive && s.task->mm == number + 1) {
		s.mm->task_pairs++;
		s.mm->task_repeats += s.task->node == s.this;
	}
	if (nrp_worlds_task_seen(w, s.task, (uint32_t)number, s.this, f->time) < 0)
		return -ENOMEM;
	nrp_worlds_learn_task(s.task, f);
	find_scan(w, &s);
	if (find_page(w, &s, (uint32_t)number) < 0)
		return -ENOMEM;
	return follow(w, &s, attempt.end_time);
}

void nrp_worlds_prefetch(const struct nrp_worlds *w, const struct nrp_hint_fault *soon,
			 const struct nrp_hint_fault *later)
{
	int64_t number = nrp_address_space_again(w->spaces, soon->mm);
	const struct nrp_page *p;

	if (number < 0)
		return;
	if (later->mm == soon->mm)
		nrp_page_table_prefetch(w->pages, (uint32_t)number, later->addr >> w->page_shift);
	p = nrp_page_table_peek(w->pages, (uint32_t)number, soon->addr >> w->page_shift);
	if (!p || !p->split)
		return;
	/* Few groups as a rule. */
	__builtin_prefetch(nrp_worlds_places(w, p->split), 1);
	__builtin_prefetch((const char *)nrp_worlds_places(w, p->split) + 64, 1);
}

/* ---- the end ------------------------------------------------------------------------ */

static void add_common(const struct nrp_worlds *w, struct nrp_world_result *r)
{
	const struct nrp_world_result *c = &w->common;

	r->hint_faults += c->hint_faults;
	r->hint_fault_pages += c->hint_fault_pages;
	r->remote_faults += c->remote_faults;
	r->attempt_pages += c->attempt_pages;
	r->admitted += c->admitted;
	r->denied += c->denied;
	r->attempts = r->admitted + r->denied;
	r->moves += c->moves;
	r->moved_pages += c->moved_pages;
}

int nrp_worlds_finish(struct nrp_worlds *w, uint64_t end_time)
{
	size_t position = 0;
	struct nrp_page *p;

	w->now = end_time;
	while ((p = nrp_page_table_next(w->pages, &position)))
		if (p->seen)
			nrp_worlds_close_page(w, p);
	nrp_worlds_enter_remote(w);
	nrp_worlds_enter_refused(w);
	if (nrp_worlds_enter_space(w, -1) < 0)
		return -ENOMEM;
	for (int i = 0; i < w->nr_worlds; i++)
		add_common(w, &w->world[i].result);
	if (w->failed ||
	    nrp_locality_finish(w->locality, w->spaces, nrp_worlds_seconds(w, end_time)) < 0)
		return -ENOMEM;
	return nrp_worlds_concentrate(w);
}

const struct nrp_world_result *nrp_worlds_result(const struct nrp_worlds *w, int world)
{
	return &w->world[world].result;
}

const struct nrp_worlds_totals *nrp_worlds_totals(const struct nrp_worlds *w)
{
	return &w->totals;
}

const struct nrp_locality *nrp_worlds_locality(const struct nrp_worlds *w)
{
	return w->locality;
}

static const struct nrp_page *seen_page(struct nrp_worlds *w, uint64_t mm, uint64_t page)
{
	int64_t number = nrp_address_space_of(w->spaces, mm);
	const struct nrp_page *p = NULL;

	if (number >= 0)
		p = nrp_page_table_find(w->pages, nrp_address_space(w->spaces, (uint32_t)number),
					(uint32_t)number, page);
	return p && p->seen ? p : NULL;
}

int nrp_worlds_location(struct nrp_worlds *w, int world, uint64_t mm, uint64_t page,
			bool *ret_tainted)
{
	const struct nrp_page *p = seen_page(w, mm, page);
	int nid;

	*ret_tainted = false;
	if (!p)
		return NRP_NOWHERE;
	nid = nrp_places_nid(p->split ? nrp_worlds_places(w, p->split) : NULL, world, p->nid);
	*ret_tainted = nid != p->nid;
	return nid;
}

int64_t nrp_worlds_space(struct nrp_worlds *w, uint64_t mm)
{
	return nrp_address_space_of(w->spaces, mm);
}

bool nrp_worlds_knows(struct nrp_worlds *w, uint64_t mm, uint64_t page)
{
	return seen_page(w, mm, page) != NULL;
}

bool nrp_worlds_is_apart(struct nrp_worlds *w, uint64_t mm, uint64_t page)
{
	const struct nrp_page *p = seen_page(w, mm, page);

	return p && p->split;
}

uint64_t nrp_worlds_arrivals(struct nrp_worlds *w, uint64_t mm)
{
	int64_t number = nrp_address_space_of(w->spaces, mm);

	return number < 0 ? 0 : nrp_address_space(w->spaces, (uint32_t)number)->arrivals;
}

uint32_t nrp_worlds_tasks(const struct nrp_worlds *w)
{
	return w->nr_tasks;
}

unsigned int nrp_worlds_nodes(struct nrp_worlds *w, uint64_t mm)
{
	int64_t number = nrp_address_space_of(w->spaces, mm);
	unsigned int nodes = 0;

	for (int n = 0; number >= 0 && n < w->nr_nodes; n++)
		nodes += nrp_address_space(w->spaces, (uint32_t)number)->presence[n].threads > 0;
	return nodes;
}

double nrp_worlds_away(struct nrp_worlds *w, uint64_t mm, int nid, uint64_t time)
{
	int64_t number = nrp_address_space_of(w->spaces, mm);
	double seconds = 0;

	for (int n = 0; number >= 0 && n < w->nr_nodes; n++)
		if (n != nid)
			seconds += nrp_presence_at(
				&nrp_address_space(w->spaces, (uint32_t)number)->presence[n],
				nrp_worlds_seconds(w, time));
	return seconds;
}
