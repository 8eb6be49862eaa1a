/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A quiet fault: on record the page was local, and nothing came of it. Worlds that have the page at
 * one place, with one memory of its user, make the same of it up to the limiter; most faults on
 * pages that some world did not move are of this kind. Says the same as nrp_world_step() in each
 * world.
 */
#include "replay/worlds_internal.h"

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

		r->unarmed_faults += armed != NRP_ARMED_UNKNOWN;
		r->unarmed_unknown += armed == NRP_ARMED_UNKNOWN;
	}
	if (armed == NRP_ARMED_UNKNOWN)
		present &= ~w->fails;
	else if (armed != NRP_ARMED_YES)
		present = 0;
	return present;
}

void nrp_worlds_enter_remote(struct nrp_worlds *w)
{
	while (w->remote.worlds)
		w->world[nrp_next_world(&w->remote.worlds)].result.remote_faults +=
			w->remote.faults;
	w->remote.faults = 0;
}

/* Of worlds with a remote page: those that pull it. */
static uint32_t pull(struct nrp_worlds *w, const struct nrp_step *s, enum nrp_filter_variant filter,
		     const struct nrp_place *place, uint32_t worlds)
{
	enum nrp_filter_answer answer = nrp_world_filter(w, filter, s, place);
	uint32_t passed = answer == NRP_FILTER_MOVE ? worlds : 0, pulled = 0, refused = 0;

	if (w->remote.worlds != worlds)
		nrp_worlds_enter_remote(w);
	w->remote.worlds = worlds;
	w->remote.faults++;
	for (uint32_t left = answer == NRP_FILTER_UNDECIDED ? worlds : 0; left;) {
		int i = nrp_next_world(&left);

		if (nrp_world_guess(w, i, s, place))
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

/* Gives some worlds of a group a group of their own, whose place is the same so far. */
static struct nrp_group *split_off(struct nrp_places *places, struct nrp_group *group,
				   uint32_t worlds)
{
	struct nrp_group *own = &places->group[places->count++];

	own->worlds = worlds;
	own->place = group->place;
	group->worlds &= ~worlds;
	return own;
}

/* A group's worlds have the fault, and one filter. */
static int step_group(struct nrp_worlds *w, const struct nrp_step *s, struct nrp_places *places,
		      struct nrp_group *group)
{
	int lane = (group->worlds & w->lane[0]) == 0, nid = group->place.nid;
	enum nrp_filter_variant filter = w->world[w->first_of_lane[lane]].config.filter;
	double now = nrp_worlds_seconds(w, s->f->time), pages = (double)s->page->pages;
	uint32_t pulled = 0;
	int r = 0;

	if (nid != s->this)
		pulled = pull(w, s, filter, &group->place, group->worlds);
	/* Before any of them is somewhere else: */
	if (pulled && s->page->split)
		r = nrp_worlds_book_time(w, s->page);
	remember(w, s, filter, nid, &group->place);
	if (!pulled)
		return 0;
	if (pulled != group->worlds)
		group = split_off(places, group, pulled);
	group->place.nid = (int16_t)s->this;
	while (r == 0 && pulled)
		r = nrp_locality_lie_differs(w->locality, s->page->vma, nrp_next_world(&pulled),
					     nid, s->this, pages, now);
	return r;
}

static bool some_equal(const struct nrp_places *places)
{
	for (int k = 1; k < places->count; k++)
		for (int i = 0; i < k; i++)
			if (nrp_place_equal(&places->group[i].place, &places->group[k].place))
				return true;
	return false;
}

/* Puts groups together that have the same place now. */
static void join_equal(struct nrp_places *places)
{
	int count = places->count;

	places->count = 0;
	for (int k = 0; k < count; k++) {
		struct nrp_group g = places->group[k];

		nrp_places_add(places, g.worlds, &g.place);
	}
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

/* Makes groups whose worlds have the fault all or none, and one filter. */
static void split_groups(const struct nrp_worlds *w, struct nrp_places *places, uint32_t absent)
{
	for (int k = 0, count = places->count; k < count; k++) {
		struct nrp_group *g = &places->group[k];

		if (g->worlds & absent && g->worlds & ~absent)
			split_off(places, g, g->worlds & absent);
		if (!w->one_filter && g->worlds & w->lane[0] && g->worlds & w->lane[1])
			split_off(places, g, g->worlds & w->lane[1]);
	}
}

int nrp_worlds_step_quiet(struct nrp_worlds *w, const struct nrp_step *s, struct nrp_places *places)
{
	uint32_t present = find_present(w, s, 0) | find_present(w, s, 1);
	uint32_t absent = (w->lane[0] | w->lane[1]) & ~present;
	bool known = !NRP_NULL(s->f, hint_fault, last_cpupid);
	int r = 0, count;

	count_faults(w, s, absent);
	if (absent || !w->one_filter)
		split_groups(w, places, absent);
	count = places->count;
	for (int k = 0; r == 0 && k < count; k++) {
		struct nrp_group *g = &places->group[k];

		if (!g->place.cpupid_apart && known)
			g->place.last_cpupid = s->f->last_cpupid;
		if (g->worlds & absent)
			g->place.cpupid_apart |= s->filtered;
		else
			r = step_group(w, s, places, g);
	}
	if (some_equal(places))
		join_equal(places);
	return r;
}
