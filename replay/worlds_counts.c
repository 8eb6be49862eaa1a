/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What single address spaces have of the worlds' counts, and who faults on shared pages. */
#include "replay/pages.h"
#include "replay/worlds_internal.h"

#include <errno.h>
#include <stdlib.h>

/* ---- address spaces ------------------------------------------------------------------ */

/* Behind the counts of the worlds: what all worlds have in common, and the record. */
#define ALL(w) ((w)->nr_worlds)
#define RECORD(w) ((w)->nr_worlds + 1)
#define NR_COUNTS(w) ((size_t)(w)->nr_worlds + 2)

static struct nrp_space_count *count_of(const struct nrp_worlds *w, uint32_t space, int which)
{
	return &w->counts.of[space * NR_COUNTS(w) + (size_t)which];
}

static int make_room(struct nrp_worlds *w)
{
	uint32_t have = w->counts.nr_spaces, need = nrp_nr_address_spaces(w->spaces);
	uint32_t room = need > 2 * have ? need : 2 * have;
	struct nrp_space_count *grown;

	if (need <= have)
		return 0;
	grown = reallocarray(w->counts.of, room * NR_COUNTS(w), sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (size_t i = have * NR_COUNTS(w); i < room * NR_COUNTS(w); i++)
		grown[i] = (struct nrp_space_count){ 0 };
	w->counts.of = grown;
	w->counts.nr_spaces = room;
	return 0;
}

/* Adds what @total has grown by since @before, also where it became smaller. */
static void add_growth(struct nrp_space_count *to, const struct nrp_world_result *total,
		       struct nrp_space_count *before)
{
	if (to) {
		to->faults += total->hint_faults - before->faults;
		to->moved_pages += total->moved_pages - before->moved_pages;
	}
	*before = (struct nrp_space_count){ total->hint_faults, total->moved_pages };
}

int nrp_worlds_enter_space(struct nrp_worlds *w, int64_t number)
{
	int64_t last = w->counts.now;

	if (make_room(w) < 0)
		return -ENOMEM;
	add_growth(last < 0 ? NULL : count_of(w, (uint32_t)last, ALL(w)), &w->common,
		   &w->counts.all);
	for (int i = 0; w->counts.stepped && i < w->nr_worlds; i++)
		add_growth(last < 0 ? NULL : count_of(w, (uint32_t)last, i), &w->world[i].result,
			   &w->counts.before[i]);
	w->counts.stepped = false;
	w->counts.now = number;
	return 0;
}

void nrp_worlds_count_record(struct nrp_worlds *w, int64_t number, const struct nrp_step *s)
{
	struct nrp_space_count *c;

	if (number < 0)
		return;
	c = count_of(w, (uint32_t)number, RECORD(w));
	c->faults++;
	c->moved_pages += s->moved ? s->pages : 0;
}

uint32_t nrp_worlds_nr_spaces(const struct nrp_worlds *w)
{
	return nrp_nr_address_spaces(w->spaces);
}

struct nrp_space_count nrp_worlds_space_count(struct nrp_worlds *w, uint32_t space, int world,
					      uint64_t *ret_mm)
{
	struct nrp_space_count n = { 0 };
	const struct nrp_space_count *all;

	*ret_mm = nrp_address_space(w->spaces, space)->mm;
	if (space >= w->counts.nr_spaces)
		return n;
	n = *count_of(w, space, world < 0 ? RECORD(w) : world);
	if (world < 0)
		return n;
	all = count_of(w, space, ALL(w));
	n.faults += all->faults;
	n.moved_pages += all->moved_pages;
	return n;
}

uint32_t nrp_worlds_tried(const struct nrp_worlds *w)
{
	return w->attempted_in;
}

/* ---- shared pages -------------------------------------------------------------------- */

/* Faults on a page, by all its names. */
struct faulter {
	uint32_t faults;
	uint32_t nodes; /* bit n: one from node n, or from one above 31 */
};

struct nrp_pages *nrp_worlds_new_faulters(void)
{
	return nrp_pages_new(sizeof(struct faulter));
}

int nrp_worlds_count_faulter(struct nrp_worlds *w, const struct nrp_page *page, int nid)
{
	struct faulter *f = nrp_pages_get(w->faulters, page->mm, page->vfn);

	if (!f)
		return -ENOMEM;
	f->faults += f->faults < UINT32_MAX;
	f->nodes |= UINT32_C(1) << (nid < 31 ? nid : 31);
	return 0;
}

int nrp_worlds_join_faulters(struct nrp_worlds *w, uint32_t space, uint64_t vfn,
			     const struct nrp_page *leader)
{
	const struct faulter *found;
	struct faulter own, *f;

	found = nrp_pages_get(w->faulters, space + 1, vfn);
	if (!found)
		return -ENOMEM;
	own = *found;
	f = nrp_pages_get(w->faulters, leader->mm, leader->vfn);
	if (!f)
		return -ENOMEM;
	if (space + 1 == leader->mm && vfn == leader->vfn)
		return 0;
	f->faults += own.faults;
	f->nodes |= own.nodes;
	f = nrp_pages_get(w->faulters, space + 1, vfn);
	*f = (struct faulter){ 0 };
	return 0;
}

struct nrp_faulters nrp_worlds_faulters(struct nrp_worlds *w)
{
	struct nrp_faulters n = { 0 };
	const struct faulter *f;
	size_t position = 0;
	uint64_t mm, page;

	while (w->faulters && (f = nrp_pages_next(w->faulters, &position, &mm, &page)))
		nrp_faulters_add(&n, f->nodes, f->faults);
	return n;
}
