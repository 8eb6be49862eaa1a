/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/address_space.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_LIMIT 4096 /* ranges looked back at: some tens of passes */

struct nrp_address_spaces {
	struct nrp_pages *numbers; /* payload: uint64_t, number + 1 */
	struct nrp_mm **at;
	uint32_t count, room;
	int nr_nodes;
	uint32_t last; /* found last: most lookups are for the same one */
};

struct nrp_address_spaces *nrp_address_spaces_new(int nr_nodes)
{
	struct nrp_address_spaces *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->nr_nodes = nr_nodes;
	s->numbers = nrp_pages_new(sizeof(uint64_t));
	return s->numbers ? s : nrp_address_spaces_free(s);
}

void nrp_mm_clear(struct nrp_mm *mm)
{
	free(mm->ranges);
	free(mm->segments);
	free(mm->presence);
}

struct nrp_address_spaces *nrp_address_spaces_free(struct nrp_address_spaces *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->count; i++) {
		nrp_mm_clear(s->at[i]);
		free(s->at[i]);
	}
	free(s->at);
	nrp_pages_free(s->numbers);
	free(s);
	return NULL;
}

static struct nrp_mm *new_space(struct nrp_address_spaces *s, uint64_t mm)
{
	struct nrp_mm *m;

	if (s->count == s->room) {
		uint32_t room = s->room ? s->room * 2 : 16;
		struct nrp_mm **grown = reallocarray(s->at, room, sizeof(struct nrp_mm *));

		if (!grown)
			return NULL;
		s->at = grown;
		s->room = room;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->mm = mm;
	m->presence = calloc((size_t)s->nr_nodes + 1, sizeof(*m->presence));
	if (!m->presence) {
		free(m);
		return NULL;
	}
	s->at[s->count++] = m;
	return m;
}

int64_t nrp_address_space_of(struct nrp_address_spaces *s, uint64_t mm)
{
	uint64_t *number;

	if (s->last < s->count && s->at[s->last]->mm == mm)
		return s->last;
	number = nrp_pages_get(s->numbers, mm, 0);
	if (!number)
		return -ENOMEM;
	if (!*number) {
		if (!new_space(s, mm))
			return -ENOMEM;
		*number = s->count;
	}
	s->last = (uint32_t)*number - 1;
	return s->last;
}

int64_t nrp_address_space_again(const struct nrp_address_spaces *s, uint64_t mm)
{
	return s->last < s->count && s->at[s->last]->mm == mm ? (int64_t)s->last : -1;
}

struct nrp_mm *nrp_address_space(struct nrp_address_spaces *s, uint32_t number)
{
	return s->at[number];
}

uint32_t nrp_nr_address_spaces(const struct nrp_address_spaces *s)
{
	return s->count;
}

/* ---- armed ranges ------------------------------------------------------------------- */

/* First segment that ends behind @addr. */
static size_t first_behind(const struct nrp_mm *mm, uint64_t addr)
{
	size_t low = 0, high = mm->nr_segments;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mm->segments[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Room for two more segments. */
static bool reserve_segments(struct nrp_mm *mm)
{
	size_t room = mm->segment_room ? mm->segment_room * 2 : 16;
	struct nrp_armed_segment *grown;

	if (mm->nr_segments + 2 <= mm->segment_room)
		return true;
	grown = reallocarray(mm->segments, room, sizeof(*grown));
	if (!grown)
		return false;
	mm->segments = grown;
	mm->segment_room = room;
	return true;
}

/* The new segment takes the place of all that it covers; those at its ends are cut. */
static void put_segment(struct nrp_mm *mm, struct nrp_armed_segment new)
{
	size_t i = first_behind(mm, new.start), j = i;
	struct nrp_armed_segment put[3];
	size_t n = 0;

	while (j < mm->nr_segments && mm->segments[j].start < new.end)
		j++;
	if (j > i && mm->segments[i].start < new.start) {
		put[n] = mm->segments[i];
		put[n++].end = new.start;
	}
	put[n++] = new;
	if (j > i && mm->segments[j - 1].end > new.end) {
		put[n] = mm->segments[j - 1];
		put[n++].start = new.end;
	}
	memmove(&mm->segments[i + n], &mm->segments[j],
		(mm->nr_segments - j) * sizeof(*mm->segments));
	memcpy(&mm->segments[i], put, n * sizeof(put[0]));
	mm->nr_segments = mm->nr_segments - (j - i) + n;
}

int nrp_mm_arm(struct nrp_mm *mm, uint64_t start, uint64_t end, uint64_t time, uint32_t vma)
{
	if (end <= start || mm->count == NRP_NO_RANGE)
		return 0;
	if (mm->count == mm->room) {
		size_t room = mm->room ? mm->room * 2 : 64;
		struct nrp_armed_range *grown = reallocarray(mm->ranges, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		mm->ranges = grown;
		mm->room = room;
	}
	if (!reserve_segments(mm))
		return -ENOMEM;
	put_segment(mm, (struct nrp_armed_segment){
				.start = start, .end = end, .range = (uint32_t)mm->count });
	mm->ranges[mm->count++] = (struct nrp_armed_range){
		.start = start, .end = end, .time = time, .kept = mm->kept, .vma = vma
	};
	return 0;
}

/* For the few faults that began before the newest range over their page. */
static uint32_t search_back(const struct nrp_mm *mm, uint64_t addr, uint64_t time, bool *ret_unsure)
{
	size_t searched = 0;

	for (size_t i = mm->count; i-- > 0;) {
		const struct nrp_armed_range *g = &mm->ranges[i];

		if (g->time < time && addr >= g->start && addr < g->end)
			return (uint32_t)i;
		if (++searched == SEARCH_LIMIT) {
			*ret_unsure = true;
			break;
		}
	}
	return NRP_NO_RANGE;
}

uint32_t nrp_mm_armed(struct nrp_mm *mm, uint64_t addr, uint64_t time, bool *ret_unsure)
{
	const struct nrp_armed_segment *s;

	*ret_unsure = false;
	if (mm->hit >= mm->nr_segments || addr < mm->segments[mm->hit].start ||
	    addr >= mm->segments[mm->hit].end) {
		size_t i = first_behind(mm, addr);

		if (i == mm->nr_segments || addr < mm->segments[i].start)
			return NRP_NO_RANGE;
		mm->hit = i;
	}
	s = &mm->segments[mm->hit];
	return mm->ranges[s->range].time < time ? s->range
						: search_back(mm, addr, time, ret_unsure);
}

const struct nrp_armed_range *nrp_mm_newest(struct nrp_mm *mm, uint64_t addr, uint64_t time)
{
	bool unsure;
	uint32_t i = nrp_mm_armed(mm, addr, time, &unsure);

	return i == NRP_NO_RANGE ? NULL : &mm->ranges[i];
}

uint64_t nrp_mm_count(const struct nrp_mm *mm, uint64_t addr, uint64_t from, uint64_t to)
{
	size_t low = 0, high = mm->count;
	uint64_t n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mm->ranges[middle].time <= from)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < mm->count && mm->ranges[low].time <= to; low++)
		n += addr >= mm->ranges[low].start && addr < mm->ranges[low].end;
	return n;
}
