/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/hugetlb_share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOCKED (UINT64_C(0x2000) | UINT64_C(0x80000)) /* VM_LOCKED, VM_LOCKONFAULT */
#define SLOT_MASK (NRP_HUGETLB_SLOT - 1)

struct nrp_hugetlb_share {
	struct nrp_hugetlb_rules rules;
	struct nrp_hugetlb_tables *tables;
	struct nrp_hugetlb_mapping *map; /* in the order of mapping; start == end: gone */
	size_t nr_maps, room;
	uint64_t next_table, ambiguous;
};

struct nrp_hugetlb_share *nrp_hugetlb_share_new(const struct nrp_hugetlb_rules *rules)
{
	struct nrp_hugetlb_share *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->rules = *rules;
	s->next_table = 1;
	s->tables = nrp_hugetlb_tables_new();
	return s->tables ? s : nrp_hugetlb_share_free(s);
}

struct nrp_hugetlb_share *nrp_hugetlb_share_free(struct nrp_hugetlb_share *s)
{
	if (!s)
		return NULL;
	nrp_hugetlb_tables_free(s->tables);
	free(s->map);
	free(s);
	return NULL;
}

const struct nrp_hugetlb_tables *nrp_hugetlb_share_tables(const struct nrp_hugetlb_share *s)
{
	return s->tables;
}

uint64_t nrp_hugetlb_ambiguous(const struct nrp_hugetlb_share *s)
{
	return s->ambiguous;
}

/* ---- mappings ------------------------------------------------------------------------- */

static struct nrp_hugetlb_mapping *mapping_at(struct nrp_hugetlb_share *s, uint64_t mm,
					      uint64_t addr)
{
	for (size_t i = 0; i < s->nr_maps; i++)
		if (s->map[i].mm == mm && s->map[i].start <= addr && addr < s->map[i].end)
			return &s->map[i];
	return NULL;
}

static int add(struct nrp_hugetlb_share *s, const struct nrp_hugetlb_mapping *mapping)
{
	if (s->nr_maps == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		struct nrp_hugetlb_mapping *map = reallocarray(s->map, room, sizeof(*map));

		if (!map)
			return -ENOMEM;
		s->map = map;
		s->room = room;
	}
	s->map[s->nr_maps++] = *mapping;
	return 0;
}

int nrp_hugetlb_map(struct nrp_hugetlb_share *s, const struct nrp_hugetlb_mapping *mapping)
{
	if (mapping->start >= mapping->end || mapping->start % NRP_HUGETLB_SIZE ||
	    mapping->end % NRP_HUGETLB_SIZE)
		return -EINVAL;
	for (size_t i = 0; i < s->nr_maps; i++)
		if (s->map[i].mm == mapping->mm && s->map[i].start < s->map[i].end &&
		    s->map[i].start < mapping->end && mapping->start < s->map[i].end)
			return -EINVAL;
	return add(s, mapping);
}

/* Page of the file at @addr, as a number that no other page has. */
static uint64_t page_of(const struct nrp_hugetlb_mapping *m, uint64_t addr)
{
	return (uint64_t)m->file << 40 | (m->index + (addr - m->start) / NRP_HUGETLB_SIZE);
}

/* Can the slot at @addr be shared at all? */
static bool is_shareable(const struct nrp_hugetlb_share *s, const struct nrp_hugetlb_mapping *m,
			 uint64_t addr)
{
	uint64_t base = addr & ~SLOT_MASK;

	return m->may_share && base >= m->start && base + NRP_HUGETLB_SLOT <= m->end &&
	       !(m->uffd && s->rules.looks_at_uffd);
}

/* ---- faults --------------------------------------------------------------------------- */

/* Table of @m for the same place of the file as @v has at @addr; 0: none that @v may use. */
static uint64_t table_for(const struct nrp_hugetlb_share *s, const struct nrp_hugetlb_mapping *v,
			  uint64_t addr, const struct nrp_hugetlb_mapping *m)
{
	uint64_t index = v->index + (addr - v->start) / NRP_HUGETLB_SIZE, there;

	if (m == v || m->file != v->file || index < m->index ||
	    (m->flags & ~LOCKED) != (v->flags & ~LOCKED))
		return 0;
	there = m->start + (index - m->index) * NRP_HUGETLB_SIZE;
	if (there >= m->end || (there & SLOT_MASK) != (addr & SLOT_MASK) ||
	    (there & ~SLOT_MASK) < m->start || (there & ~SLOT_MASK) + NRP_HUGETLB_SLOT > m->end)
		return 0;
	return nrp_hugetlb_table(s->tables, m->mm, there);
}

/* The table that the kernel finds first; 0: none. */
static uint64_t find_table(struct nrp_hugetlb_share *s, const struct nrp_hugetlb_mapping *v,
			   uint64_t addr)
{
	const struct nrp_hugetlb_mapping *best = NULL;
	uint64_t found = 0;
	bool several = false;

	for (size_t i = 0; i < s->nr_maps; i++) {
		const struct nrp_hugetlb_mapping *m = &s->map[i];
		uint64_t table = m->start < m->end ? table_for(s, v, addr, m) : 0;

		if (!table)
			continue;
		several |= found && table != found;
		if (best && best->index <= m->index)
			continue;
		best = m;
		found = table;
	}
	s->ambiguous += several;
	return found;
}

static int fill_slot(struct nrp_hugetlb_share *s, const struct nrp_hugetlb_mapping *v,
		     uint64_t addr)
{
	uint64_t table = is_shareable(s, v, addr) ? find_table(s, v, addr) : 0;

	if (!table)
		table = s->next_table++;
	return nrp_hugetlb_attach(s->tables, v->mm, addr, table);
}

int nrp_hugetlb_touch(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t addr)
{
	const struct nrp_hugetlb_mapping *v = mapping_at(s, mm, addr);
	int r = v ? 0 : -EFAULT;

	if (r == 0 && !nrp_hugetlb_table(s->tables, mm, addr))
		r = fill_slot(s, v, addr);
	if (r == 0 && nrp_hugetlb_page(s->tables, mm, addr) == NRP_HUGETLB_NO_PAGE)
		r = nrp_hugetlb_install(s->tables, mm, addr, page_of(v, addr));
	return r;
}

/* ---- what ends sharing ---------------------------------------------------------------- */

static bool is_used_by_others(const struct nrp_hugetlb_share *s, uint64_t mm, uint64_t addr)
{
	return nrp_hugetlb_sharers(s->tables, nrp_hugetlb_table(s->tables, mm, addr)) > 1;
}

/* Leaves shared tables between @start and @end whole; takes pages out of others if @clear. */
static void leave_range(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start, uint64_t end,
			bool clear)
{
	for (uint64_t addr = start; addr < end;) {
		uint64_t next = (addr & ~SLOT_MASK) + NRP_HUGETLB_SLOT;

		if (is_used_by_others(s, mm, addr))
			nrp_hugetlb_detach(s->tables, mm, addr);
		else
			for (uint64_t a = addr; clear && a < end && a < next; a += NRP_HUGETLB_SIZE)
				nrp_hugetlb_take_out(s->tables, mm, a);
		addr = next;
	}
}

/* A table whose slot has no mapping any more goes. */
static void drop_empty(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start, uint64_t end)
{
	for (uint64_t base = start & ~SLOT_MASK; base < end; base += NRP_HUGETLB_SLOT) {
		bool mapped = false;

		for (size_t i = 0; i < s->nr_maps; i++)
			mapped |= s->map[i].mm == mm && s->map[i].start < s->map[i].end &&
				  s->map[i].start < base + NRP_HUGETLB_SLOT && base < s->map[i].end;
		if (!mapped)
			nrp_hugetlb_detach(s->tables, mm, base);
	}
}

/* Parts the mapping that @addr is inside of. */
static int split(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t addr)
{
	struct nrp_hugetlb_mapping *m = mapping_at(s, mm, addr), upper;

	if (!m || m->start == addr)
		return 0;
	if (s->rules.split_leaves && (addr & SLOT_MASK) && (addr & ~SLOT_MASK) >= m->start &&
	    (addr & ~SLOT_MASK) + NRP_HUGETLB_SLOT <= m->end && is_used_by_others(s, mm, addr))
		nrp_hugetlb_detach(s->tables, mm, addr);
	upper = *m;
	upper.start = addr;
	upper.index += (addr - m->start) / NRP_HUGETLB_SIZE;
	m->end = addr;
	return add(s, &upper);
}

static int split_at_ends(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start, uint64_t end)
{
	int r = split(s, mm, start);

	return r < 0 ? r : split(s, mm, end);
}

int nrp_hugetlb_unmap(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start, uint64_t end)
{
	int r = split_at_ends(s, mm, start, end);

	if (r < 0)
		return r;
	leave_range(s, mm, start, end, true);
	for (size_t i = 0; i < s->nr_maps; i++)
		if (s->map[i].mm == mm && s->map[i].start >= start && s->map[i].end <= end)
			s->map[i].end = s->map[i].start;
	drop_empty(s, mm, start, end);
	return 0;
}

int nrp_hugetlb_protect(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start, uint64_t end,
			uint64_t flags)
{
	int r = split_at_ends(s, mm, start, end);

	if (r < 0)
		return r;
	leave_range(s, mm, start, end, false);
	for (size_t i = 0; i < s->nr_maps; i++)
		if (s->map[i].mm == mm && s->map[i].start >= start && s->map[i].end <= end)
			s->map[i].flags = flags;
	return 0;
}

int nrp_hugetlb_register_uffd(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t start,
			      uint64_t end)
{
	int r = split_at_ends(s, mm, start, end);

	for (size_t i = 0; r == 0 && i < s->nr_maps; i++) {
		struct nrp_hugetlb_mapping *m = &s->map[i];
		uint64_t base = (m->start + SLOT_MASK) & ~SLOT_MASK;

		if (m->mm != mm || m->start < start || m->end > end)
			continue;
		m->uffd = true;
		for (; s->rules.looks_at_uffd && base + NRP_HUGETLB_SLOT <= m->end;
		     base += NRP_HUGETLB_SLOT)
			if (is_used_by_others(s, mm, base))
				nrp_hugetlb_detach(s->tables, mm, base);
	}
	return r;
}

void nrp_hugetlb_exit(struct nrp_hugetlb_share *s, uint64_t mm)
{
	nrp_hugetlb_detach_all(s->tables, mm);
	for (size_t i = 0; i < s->nr_maps; i++)
		if (s->map[i].mm == mm)
			s->map[i].end = s->map[i].start;
}

/* ---- fork ----------------------------------------------------------------------------- */

/* The child's slot at @base gets what the parent's has. */
static int copy_slot(struct nrp_hugetlb_share *s, const struct nrp_hugetlb_mapping *m,
		     uint64_t child, uint64_t base)
{
	uint64_t end = base + NRP_HUGETLB_SLOT < m->end ? base + NRP_HUGETLB_SLOT : m->end;
	uint64_t table = nrp_hugetlb_table(s->tables, m->mm, base);
	bool shareable = is_shareable(s, m, base);
	int r = 0;

	if (!table)
		return 0;
	if (!nrp_hugetlb_table(s->tables, child, base))
		r = nrp_hugetlb_attach(s->tables, child, base, shareable ? table : s->next_table++);
	for (uint64_t a = base < m->start ? m->start : base; !shareable && r == 0 && a < end;
	     a += NRP_HUGETLB_SIZE) {
		uint64_t page = nrp_hugetlb_page(s->tables, m->mm, a);

		if (page != NRP_HUGETLB_NO_PAGE)
			r = nrp_hugetlb_install(s->tables, child, a, page);
	}
	return r;
}

int nrp_hugetlb_fork(struct nrp_hugetlb_share *s, uint64_t parent, uint64_t child)
{
	size_t n = s->nr_maps;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct nrp_hugetlb_mapping m = s->map[i], copy = m;

		if (m.mm != parent || m.start == m.end)
			continue;
		copy.mm = child;
		r = add(s, &copy);
		for (uint64_t base = m.start & ~SLOT_MASK;
		     r == 0 && !s->rules.lazy_fork && base < m.end; base += NRP_HUGETLB_SLOT)
			r = copy_slot(s, &m, child, base);
	}
	return r;
}

/* ---- migration ------------------------------------------------------------------------ */

int nrp_hugetlb_move(struct nrp_hugetlb_share *s, uint64_t mm, uint64_t addr)
{
	uint64_t page = nrp_hugetlb_page(s->tables, mm, addr), at;

	if (page == NRP_HUGETLB_NO_PAGE)
		return -EFAULT;
	for (size_t i = 0; i < s->nr_maps; i++) {
		const struct nrp_hugetlb_mapping *m = &s->map[i];
		uint64_t index = page & ((UINT64_C(1) << 40) - 1);

		if (m->start == m->end || m->file != page >> 40 || index < m->index)
			continue;
		at = m->start + (index - m->index) * NRP_HUGETLB_SIZE;
		if (at < m->end && is_used_by_others(s, m->mm, at))
			nrp_hugetlb_detach(s->tables, m->mm, at);
	}
	return 0;
}
