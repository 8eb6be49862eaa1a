/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int nrp_scan_space_init(struct nrp_scan_space *space, size_t nr_lanes)
{
	memset(space, 0, sizeof(*space));
	space->lane = calloc(nr_lanes, sizeof(*space->lane));
	if (!space->lane)
		return -ENOMEM;
	space->nr_lanes = nr_lanes;
	return 0;
}

void nrp_scan_space_clear(struct nrp_scan_space *space)
{
	for (size_t i = 0; i < space->nr_lanes; i++)
		free(space->lane[i].vma);
	free(space->lane);
	free(space->area);
	memset(space, 0, sizeof(*space));
}

/* First VMA that ends above @addr. */
static size_t first_above(const struct nrp_scan_space *s, uint64_t addr)
{
	size_t low = 0, high = s->nr_areas;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->area[middle].end > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

size_t nrp_scan_space_find(const struct nrp_scan_space *space, uint64_t addr)
{
	size_t i = first_above(space, addr);

	return i < space->nr_areas && space->area[i].start <= addr ? i : NRP_NO_AREA;
}

/* ---- a new list --------------------------------------------------------------------- */

/* An entry of the new list, and the old VMA that it continues. */
struct entry {
	struct nrp_scan_area area;
	size_t from;     /* index in the old list, or NRP_NO_AREA */
	bool keep_state; /* it is the same object of the kernel */
};

struct list {
	struct entry *entry;
	size_t count;
};

static int replace_lane(struct nrp_scan_mm *lane, const struct list *list)
{
	struct nrp_scan_vma *vma = calloc(list->count ? list->count : 1, sizeof(*vma));

	if (!vma)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++) {
		const struct entry *e = &list->entry[i];

		if (e->keep_state)
			vma[i] = lane->vma[e->from];
		vma[i].start = e->area.start;
		vma[i].end = e->area.end;
		vma[i].class = e->area.class;
	}
	free(lane->vma);
	lane->vma = vma;
	lane->nr_vmas = list->count;
	return 0;
}

static int replace(struct nrp_scan_space *s, const struct list *list)
{
	struct nrp_scan_area *area;

	if (list->count > NRP_MAX_SPACE_VMAS)
		return -E2BIG;
	area = calloc(list->count ? list->count : 1, sizeof(*area));
	if (!area)
		return -ENOMEM;
	for (size_t l = 0; l < s->nr_lanes; l++) {
		/* A list half replaced is of no use: the caller gives up on -ENOMEM. */
		if (replace_lane(&s->lane[l], list) < 0) {
			free(area);
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < list->count; i++)
		area[i] = list->entry[i].area;
	free(s->area);
	s->area = area;
	s->nr_areas = list->count;
	return 0;
}

static bool overlaps(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
	return a < b_end && b < a_end;
}

/*
 * Does the only part that is left of a VMA continue it? Of a cut one the lower part is the new
 * object; a VMA that grew keeps its own, and so does what is left in the middle.
 */
static bool same_object(const struct nrp_scan_area *old, const struct nrp_scan_area *seen)
{
	return seen->end >= old->end || seen->start > old->start;
}

static bool same_state(const struct nrp_scan_vma *a, const struct nrp_scan_vma *b)
{
	if (!a->has_state || !b->has_state)
		return a->has_state == b->has_state;
	return a->state.next_scan == b->state.next_scan &&
	       a->state.pids_reset == b->state.pids_reset && a->state.pids[0] == b->state.pids[0] &&
	       a->state.pids[1] == b->state.pids[1] && a->state.start_seq == b->state.start_seq &&
	       a->state.prev_seq == b->state.prev_seq;
}

/*
 * Which of the VMAs from @first on that @seen covers is the object that it is now? Those whose kind
 * changed were made like the others, and freed; of equals the lower takes in the upper, as far as
 * anyone knows (the specification names none).
 */
static size_t survivor(struct nrp_scan_space *s, const struct nrp_scan_area *seen, size_t first)
{
	size_t found = NRP_NO_AREA;
	bool open = false;

	for (size_t i = first; i < s->nr_areas && s->area[i].start < seen->end; i++) {
		if (s->area[i].class != seen->class)
			continue;
		if (found == NRP_NO_AREA)
			found = i;
		for (size_t l = 0; l < s->nr_lanes; l++)
			open |= !same_state(&s->lane[l].vma[found], &s->lane[l].vma[i]);
	}
	s->open_merges += open;
	return found == NRP_NO_AREA ? first : found;
}

static struct entry enter(struct nrp_scan_space *s, const struct nrp_scan_area *seen)
{
	struct entry e = { .area = *seen, .from = NRP_NO_AREA };
	size_t i = first_above(s, seen->start);

	e.area.report = NRP_NO_AREA;
	if (i == s->nr_areas || !overlaps(s->area[i].start, s->area[i].end, seen->start, seen->end))
		return e;
	e.from = survivor(s, seen, i);
	e.keep_state = same_object(&s->area[e.from], seen);
	e.area.report = s->area[e.from].report;
	return e;
}

/*
 * A VMA was split into @n parts. The one that was changed is the old object: the part of another
 * kind, else the inner one of three; of two, nobody can tell, the upper. If a hole is between them,
 * the object went with it.
 */
static size_t heir_of(const struct nrp_scan_area *old, const struct entry *part, size_t n)
{
	size_t changed = 0, which = 0;

	for (size_t i = 0; i < n; i++) {
		if (part[i].area.class != old->class) {
			changed++;
			which = i;
		}
		if (i && part[i].area.start > part[i - 1].area.end)
			return n;
	}
	if (changed == 1)
		return which;
	return n == 2 ? 1 : n - 2;
}

/* One old VMA has one heir of its state; the account goes on with the lowest part. */
static void settle_splits(const struct nrp_scan_space *s, struct list *list)
{
	for (size_t i = 0, n; i < list->count; i += n) {
		struct entry *part = &list->entry[i];
		size_t heir;

		for (n = 1; i + n < list->count && part[n].from == part[0].from; n++)
			;
		if (n == 1 || part[0].from == NRP_NO_AREA)
			continue;
		heir = heir_of(&s->area[part[0].from], part, n);
		for (size_t k = 0; k < n; k++) {
			part[k].keep_state = k == heir;
			if (k)
				part[k].area.report = NRP_NO_AREA;
		}
	}
}

static bool in_the_way(const struct nrp_scan_area *old, const struct nrp_scan_area *seen,
		       size_t nr_seen, const struct nrp_scan_stretch *walked, size_t nr_walked)
{
	size_t low = 0, high = nr_seen;

	for (size_t i = 0; i < nr_walked; i++)
		if (overlaps(old->start, old->end, walked[i].start, walked[i].end))
			return true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (seen[middle].end > old->start)
			high = middle;
		else
			low = middle + 1;
	}
	return low < nr_seen && seen[low].start < old->end;
}

/* Only classes may differ? Then nothing has to move. */
static bool only_classes(struct nrp_scan_space *s, const struct nrp_scan_area *seen, size_t nr_seen,
			 const struct nrp_scan_stretch *walked, size_t nr_walked)
{
	size_t matched = 0, inside = 0;

	for (size_t i = 0; i < nr_seen; i++) {
		size_t at = first_above(s, seen[i].start);

		if (at == s->nr_areas || s->area[at].start != seen[i].start ||
		    s->area[at].end != seen[i].end)
			return false;
		matched++;
	}
	for (size_t i = 0; i < s->nr_areas; i++)
		inside += in_the_way(&s->area[i], seen, nr_seen, walked, nr_walked);
	return matched == inside;
}

static void set_classes(struct nrp_scan_space *s, const struct nrp_scan_area *seen, size_t nr_seen)
{
	for (size_t i = 0; i < nr_seen; i++) {
		size_t at = first_above(s, seen[i].start);

		if (s->area[at].class == seen[i].class)
			continue;
		s->area[at].class = seen[i].class;
		for (size_t l = 0; l < s->nr_lanes; l++)
			s->lane[l].vma[at].class = seen[i].class;
	}
}

int nrp_scan_space_see(struct nrp_scan_space *s, const struct nrp_scan_area *seen, size_t nr_seen,
		       const struct nrp_scan_stretch *walked, size_t nr_walked)
{
	struct list list = { 0 };
	size_t next = 0;
	int r;

	if (only_classes(s, seen, nr_seen, walked, nr_walked)) {
		set_classes(s, seen, nr_seen);
		return 0;
	}
	list.entry = calloc(s->nr_areas + nr_seen + 1, sizeof(*list.entry));
	if (!list.entry)
		return -ENOMEM;
	for (size_t i = 0; i <= s->nr_areas; i++) {
		const struct nrp_scan_area *old = i < s->nr_areas ? &s->area[i] : NULL;

		while (next < nr_seen && (!old || seen[next].start < old->start)) {
			list.entry[list.count++] = enter(s, &seen[next++]);
		}
		if (old && !in_the_way(old, seen, nr_seen, walked, nr_walked))
			list.entry[list.count++] =
				(struct entry){ .area = *old, .from = i, .keep_state = true };
	}
	settle_splits(s, &list);
	r = replace(s, &list);
	free(list.entry);
	return r;
}

int nrp_scan_space_unmap(struct nrp_scan_space *s, uint64_t start, uint64_t end)
{
	struct list list = { 0 };
	size_t first = first_above(s, start);
	int r;

	if (start >= end || first == s->nr_areas || s->area[first].start >= end)
		return 0;
	list.entry = calloc(s->nr_areas + 1, sizeof(*list.entry));
	if (!list.entry)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_areas; i++) {
		const struct nrp_scan_area *old = &s->area[i];
		struct entry e = { .area = *old, .from = i, .keep_state = true };
		bool cut = overlaps(old->start, old->end, start, end);
		bool upper = cut && old->end > end;

		if (cut && old->start < start) {
			e.keep_state = false;
			e.area.end = start;
			list.entry[list.count++] = e;
		}
		if (upper) {
			/* Alone it is the old object; beside a lower part it is new too. */
			e.keep_state = old->start >= start;
			e.area.start = end;
			e.area.end = old->end;
			if (!e.keep_state)
				e.area.report = NRP_NO_AREA;
		}
		if (!cut || upper)
			list.entry[list.count++] = e;
	}
	r = replace(s, &list);
	free(list.entry);
	return r;
}
