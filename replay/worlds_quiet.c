/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A quiet fault: on record the page was local, and nothing came of it. Worlds that have the page at
 * one place, with one memory of its user, make the same of it up to the limiter; most faults on
 * pages that some world did not move are of this kind. Says the same as nrp_world_step() in each
 * world.
 */
#include "replay/worlds_internal.h"

#include <stdalign.h>
#include <string.h>

bool nrp_worlds_is_quiet(const struct nrp_worlds *w, const struct nrp_step *s)
{
	return s->src == s->this && s->page->nid == s->src && !s->attempted && !s->moved &&
	       !s->overtaken && !s->is_private && !w->filter_passes;
}

/* Worlds of a lane in which the fault happens; counts in the others that it does not. */
static uint32_t find_present(struct nrp_worlds *w, const struct nrp_step *s, int lane)
{
	enum nrp_armed armed = s->context->armed[lane];
	uint32_t present = w->lane[lane] & s->kept;

	for (uint32_t left = armed == NRP_ARMED_YES ? 0 : present; left;) {
		struct nrp_world_result *r = &w->world[nrp_next_world(&left)].result;

		r->unarmed_faults += armed == NRP_ARMED_NO;
		r->unarmed_unknown += armed == NRP_ARMED_UNKNOWN;
	}
	if (armed == NRP_ARMED_NO)
		present = 0;
	else if (armed == NRP_ARMED_UNKNOWN)
		present &= ~w->fails;
	return present;
}

/* Of worlds with a remote page: those that pull it. */
static uint32_t pull(struct nrp_worlds *w, const struct nrp_step *s, enum nrp_filter_variant filter,
		     const struct nrp_place *place, uint32_t worlds)
{
	enum nrp_filter_answer answer = nrp_world_filter(w, filter, s, place);
	uint32_t passed = answer == NRP_FILTER_MOVE ? worlds : 0, pulled = 0, refused = 0;

	for (uint32_t left = worlds; left;) {
		int i = nrp_next_world(&left);

		w->world[i].result.remote_faults++;
		if (answer == NRP_FILTER_UNDECIDED && nrp_world_guess(w, i, s, place))
			passed |= UINT32_C(1) << i;
	}
	if (passed)
		pulled = nrp_worlds_try(w, passed, s, &refused);
	for (uint32_t left = pulled; left;) {
		struct nrp_world_result *r = &w->world[nrp_next_world(&left)].result;

		r->moves++;
		r->moved_pages += s->pages;
		r->added++;
	}
	s->mm->diverged |= refused;
	/* Where filters differ, so may the pace of scans from the first page elsewhere on. */
	if (!w->same_filter)
		s->mm->diverged |= worlds & ~pulled;
	return pulled;
}

/* The page's memory of its user, where the fault happens. */
static void remember(const struct nrp_worlds *w, const struct nrp_step *s,
		     enum nrp_filter_variant filter, int nid, struct nrp_place *place)
{
	if (nrp_filter_is_called(filter, nid, s->this)) {
		place->last_cpupid = nrp_filter_cpupid(&w->filter_host, (int)s->f->cpu, s->f->tid);
		place->cpupid_apart = !s->filtered;
	} else if (s->filtered) {
		place->cpupid_apart = true;
	}
}

/* The worlds of a group in which the fault happens, all of one lane. */
static int step_group(struct nrp_worlds *w, const struct nrp_step *s, int lane, uint32_t worlds,
		      struct nrp_place place, struct nrp_places *after)
{
	enum nrp_filter_variant filter = w->world[w->first_of_lane[lane]].config.filter;
	double now = nrp_worlds_seconds(w, s->f->time), pages = (double)s->page->pages;
	int nid = place.nid, r = 0;
	uint32_t pulled = nid == s->this ? 0 : pull(w, s, filter, &place, worlds);

	remember(w, s, filter, nid, &place);
	if (worlds & ~pulled)
		nrp_places_add(after, worlds & ~pulled, &place);
	if (!pulled)
		return 0;
	place.nid = (int16_t)s->this;
	nrp_places_add(after, pulled, &place);
	if (s->page->split)
		r = nrp_worlds_book_time(w, s->page);
	while (r == 0 && pulled)
		r = nrp_locality_lie_differs(w->locality, s->page->vma, nrp_next_world(&pulled),
					     nid, s->this, pages, now);
	return r;
}

static void count_faults(struct nrp_worlds *w, const struct nrp_step *s, uint32_t absent)
{
	w->common.hint_faults++;
	w->common.hint_fault_pages += s->pages;
	/* Counted with what all worlds have in common: taken back. */
	while (absent) {
		struct nrp_world_result *r = &w->world[nrp_next_world(&absent)].result;

		r->hint_faults--;
		r->hint_fault_pages -= s->pages;
	}
}

int nrp_worlds_step_quiet(struct nrp_worlds *w, const struct nrp_step *s, struct nrp_places *places)
{
	alignas(struct nrp_places) unsigned char room[NRP_PLACES_MAX];
	struct nrp_places *after = (struct nrp_places *)room;
	uint32_t present[2] = { find_present(w, s, 0), find_present(w, s, 1) };
	uint32_t absent = (w->lane[0] | w->lane[1]) & ~(present[0] | present[1]);
	int r = 0;

	count_faults(w, s, absent);
	after->count = 0;
	for (int k = 0; k < places->count; k++) {
		uint32_t worlds = places->group[k].worlds;
		struct nrp_place place = places->group[k].place;

		if (!place.cpupid_apart && !NRP_NULL(s->f, hint_fault, last_cpupid))
			place.last_cpupid = s->f->last_cpupid;
		for (int lane = 0; r == 0 && lane < 2; lane++)
			if (worlds & present[lane])
				r = step_group(w, s, lane, worlds & present[lane], place, after);
		place.cpupid_apart |= s->filtered;
		if (worlds & absent)
			nrp_places_add(after, worlds & absent, &place);
	}
	places->count = after->count;
	memcpy(places->group, after->group, (size_t)after->count * sizeof(*after->group));
	return r;
}
