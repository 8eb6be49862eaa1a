/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/hugetlb_tables.h"

#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define MAX_TABLES (1u << 17) /* in use at once: 128 TiB of mappings, 256 MiB of our memory */

struct slot {
	uint64_t mm, addr;
	uint32_t table;        /* index; NONE */
	uint32_t before, next; /* users of the same table */
};

struct table {
	uint64_t id;
	uint32_t sharers, first_slot;
	uint32_t present; /* entries with a page */
	uint32_t *entry;  /* index of the page + 1; 0: empty. NULL: the table is not in use */
};

struct page {
	uint64_t id;
	uint32_t map, adjusted;
	uint32_t *in; /* tables, one of each entry: map of them */
	uint32_t room;
};

/* Things by number: the hash tables hold an index + 1. */
struct nrp_hugetlb_tables {
	struct nrp_pages *slot_of, *table_of, *page_of;
	struct slot *slot;
	struct table *table;
	struct page *page;
	uint32_t nr_slots, slot_room, nr_tables, table_room, nr_pages, page_room;
	uint32_t in_use; /* tables */
	struct nrp_hugetlb_work work;
};

struct nrp_hugetlb_tables *nrp_hugetlb_tables_new(void)
{
	struct nrp_hugetlb_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->slot_of = nrp_pages_new(sizeof(uint32_t));
	t->table_of = nrp_pages_new(sizeof(uint32_t));
	t->page_of = nrp_pages_new(sizeof(uint32_t));
	return t->slot_of && t->table_of && t->page_of ? t : nrp_hugetlb_tables_free(t);
}

struct nrp_hugetlb_tables *nrp_hugetlb_tables_free(struct nrp_hugetlb_tables *t)
{
	if (!t)
		return NULL;
	for (uint32_t i = 0; i < t->nr_tables; i++)
		free(t->table[i].entry);
	for (uint32_t i = 0; i < t->nr_pages; i++)
		free(t->page[i].in);
	free(t->slot);
	free(t->table);
	free(t->page);
	nrp_pages_free(t->slot_of);
	nrp_pages_free(t->table_of);
	nrp_pages_free(t->page_of);
	free(t);
	return NULL;
}

/* Room for one more of @size bytes. */
static void *room_for_one(void *list, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t more = *room ? 2 * *room : 16;
	void *grown = list;

	if (count < *room)
		return list;
	if (more > count)
		grown = reallocarray(list, more, size);
	if (grown && more > count)
		*room = more;
	return more > count ? grown : NULL;
}

/* ---- finding -------------------------------------------------------------------------- */

static uint64_t slot_start(uint64_t addr)
{
	return addr & ~(NRP_HUGETLB_SLOT - 1);
}

static unsigned int entry_of(uint64_t addr)
{
	return (unsigned int)(addr / NRP_HUGETLB_SIZE % NRP_HUGETLB_ENTRIES);
}

/* The slot at @addr, if it has a table. */
static struct slot *slot_at(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr)
{
	const uint32_t *i = nrp_pages_get(t->slot_of, mm, addr / NRP_HUGETLB_SLOT);

	return i && *i && t->slot[*i - 1].table != NONE ? &t->slot[*i - 1] : NULL;
}

static struct table *table_at(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr)
{
	const struct slot *s = slot_at(t, mm, addr);

	return s ? &t->table[s->table] : NULL;
}

static struct table *table_by_id(const struct nrp_hugetlb_tables *t, uint64_t id)
{
	const uint32_t *i = nrp_pages_get(t->table_of, id, 0);

	return i && *i ? &t->table[*i - 1] : NULL;
}

uint64_t nrp_hugetlb_table(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr)
{
	const struct table *table = table_at(t, mm, addr);

	return table ? table->id : 0;
}

uint64_t nrp_hugetlb_page(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr)
{
	const struct table *table = table_at(t, mm, addr);
	uint32_t i = table ? table->entry[entry_of(addr)] : 0;

	return i ? t->page[i - 1].id : NRP_HUGETLB_NO_PAGE;
}

uint64_t nrp_hugetlb_user_of(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr,
			     uint32_t i)
{
	const struct table *table = table_at(t, mm, addr);
	uint32_t s = table ? table->first_slot : NONE;

	for (; i && s != NONE; i--)
		s = t->slot[s].next;
	return s == NONE ? 0 : t->slot[s].mm;
}

uint32_t nrp_hugetlb_sharers(const struct nrp_hugetlb_tables *t, uint64_t id)
{
	const struct table *table = table_by_id(t, id);

	return table ? table->sharers : 0;
}

/* ---- making --------------------------------------------------------------------------- */

static struct slot *get_slot(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr)
{
	uint32_t *i = nrp_pages_get(t->slot_of, mm, addr / NRP_HUGETLB_SLOT);
	struct slot *grown;

	if (!i)
		return NULL;
	if (*i)
		return &t->slot[*i - 1];
	grown = room_for_one(t->slot, t->nr_slots, &t->slot_room, sizeof(*grown));
	if (!grown)
		return NULL;
	t->slot = grown;
	t->slot[t->nr_slots++] = (struct slot){ mm, slot_start(addr), NONE, NONE, NONE };
	*i = t->nr_slots;
	return &t->slot[t->nr_slots - 1];
}

static int get_table(struct nrp_hugetlb_tables *t, uint64_t id, uint32_t *ret)
{
	uint32_t *i = nrp_pages_get(t->table_of, id, 0);
	struct table *grown;

	if (!i)
		return -ENOMEM;
	if (!*i) {
		grown = room_for_one(t->table, t->nr_tables, &t->table_room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->table = grown;
		t->table[t->nr_tables++] = (struct table){ .id = id, .first_slot = NONE };
		*i = t->nr_tables;
	}
	*ret = *i - 1;
	if (t->table[*ret].entry)
		return 0;
	if (t->in_use >= MAX_TABLES)
		return -E2BIG;
	t->table[*ret].entry = calloc(NRP_HUGETLB_ENTRIES, sizeof(*t->table[*ret].entry));
	if (!t->table[*ret].entry)
		return -ENOMEM;
	t->in_use++;
	return 0;
}

static uint32_t get_page(struct nrp_hugetlb_tables *t, uint64_t id)
{
	uint32_t *i = nrp_pages_get(t->page_of, id, 0);
	struct page *grown;

	if (!i)
		return 0;
	if (*i)
		return *i;
	grown = room_for_one(t->page, t->nr_pages, &t->page_room, sizeof(*grown));
	if (!grown)
		return 0;
	t->page = grown;
	t->page[t->nr_pages++] = (struct page){ .id = id };
	*i = t->nr_pages;
	return *i;
}

/* ---- what happens --------------------------------------------------------------------- */

/* @by: 1 or -1 for all pages of a table whose use or disuse the variant `adjusted` counts. */
static void count_all(struct nrp_hugetlb_tables *t, const struct table *table, uint32_t by)
{
	t->work.entries += NRP_HUGETLB_ENTRIES;
	t->work.updates += table->present;
	for (unsigned int k = 0; k < NRP_HUGETLB_ENTRIES; k++)
		if (table->entry[k])
			t->page[table->entry[k] - 1].adjusted += by;
}

int nrp_hugetlb_attach(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr, uint64_t id)
{
	struct slot *s = get_slot(t, mm, addr);
	struct table *table;
	uint32_t i;
	int r = s ? get_table(t, id, &i) : -ENOMEM;

	if (r < 0)
		return r;
	table = &t->table[i];
	s->table = i;
	s->before = NONE;
	s->next = table->first_slot;
	if (s->next != NONE)
		t->slot[s->next].before = (uint32_t)(s - t->slot);
	table->first_slot = (uint32_t)(s - t->slot);
	if (table->sharers++) {
		t->work.shares++;
		count_all(t, table, 1);
	}
	return 0;
}

static void clear_entry(struct nrp_hugetlb_tables *t, struct table *table, unsigned int k)
{
	struct page *page = &t->page[table->entry[k] - 1];
	uint32_t i = 0, index = (uint32_t)(table - t->table);

	table->entry[k] = 0;
	table->present--;
	page->adjusted -= table->sharers;
	while (page->in[i] != index)
		i++;
	page->in[i] = page->in[--page->map];
}

static void leave_table(struct nrp_hugetlb_tables *t, struct slot *s)
{
	struct table *table = &t->table[s->table];

	if (table->sharers > 1) {
		t->work.unshares++;
		count_all(t, table, UINT32_MAX); /* one less */
	} else {
		for (unsigned int k = 0; k < NRP_HUGETLB_ENTRIES; k++)
			if (table->entry[k])
				clear_entry(t, table, k);
		free(table->entry);
		table->entry = NULL;
		t->in_use--;
	}
	table->sharers--;
	if (s->next != NONE)
		t->slot[s->next].before = s->before;
	if (s->before != NONE)
		t->slot[s->before].next = s->next;
	else
		table->first_slot = s->next;
	s->table = NONE;
}

void nrp_hugetlb_detach(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr)
{
	struct slot *s = slot_at(t, mm, addr);

	if (s)
		leave_table(t, s);
}

void nrp_hugetlb_detach_all(struct nrp_hugetlb_tables *t, uint64_t mm)
{
	for (uint32_t i = 0; i < t->nr_slots; i++)
		if (t->slot[i].mm == mm && t->slot[i].table != NONE)
			leave_table(t, &t->slot[i]);
}

void nrp_hugetlb_clear_range(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t start,
			     uint64_t end)
{
	for (uint32_t i = 0; i < t->nr_slots; i++) {
		struct slot *s = &t->slot[i];
		uint64_t addr = s->addr;

		if (s->mm != mm || s->table == NONE || addr >= end ||
		    (start > addr && start - addr >= NRP_HUGETLB_SLOT))
			continue;
		if (t->table[s->table].sharers > 1 ||
		    (start <= addr && end - addr >= NRP_HUGETLB_SLOT)) {
			leave_table(t, s);
			continue;
		}
		for (unsigned int k = 0; k < NRP_HUGETLB_ENTRIES; k++, addr += NRP_HUGETLB_SIZE)
			if (addr >= start && addr < end && t->table[s->table].entry[k])
				clear_entry(t, &t->table[s->table], k);
	}
}

int nrp_hugetlb_install(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr, uint64_t id)
{
	struct table *table = table_at(t, mm, addr);
	uint32_t i = get_page(t, id);
	struct page *page;
	uint32_t *in;

	if (!i)
		return -ENOMEM;
	page = &t->page[i - 1];
	in = room_for_one(page->in, page->map, &page->room, sizeof(*in));
	if (!in)
		return -ENOMEM;
	page->in = in;
	page->in[page->map++] = (uint32_t)(table - t->table);
	page->adjusted += table->sharers;
	table->entry[entry_of(addr)] = i;
	table->present++;
	t->work.installs += table->sharers > 1;
	return 0;
}

void nrp_hugetlb_take_out(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr)
{
	struct table *table = table_at(t, mm, addr);

	if (table && table->entry[entry_of(addr)])
		clear_entry(t, table, entry_of(addr));
}

int nrp_hugetlb_identify(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr, uint64_t page)
{
	uint64_t now = nrp_hugetlb_page(t, mm, addr), installs = t->work.installs;
	int r;

	if (now == page || now == NRP_HUGETLB_NO_PAGE)
		return 0;
	nrp_hugetlb_take_out(t, mm, addr);
	r = nrp_hugetlb_install(t, mm, addr, page);
	t->work.installs = installs;
	return r;
}

uint32_t nrp_hugetlb_unshare_page(struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr)
{
	const struct table *table = table_at(t, mm, addr);
	uint32_t i = table ? table->entry[entry_of(addr)] : 0, n = 0;

	for (uint32_t k = 0; i && k < t->page[i - 1].map; k++) {
		const struct table *in = &t->table[t->page[i - 1].in[k]];

		for (; in->sharers > 1; n++)
			leave_table(t, &t->slot[in->first_slot]);
	}
	return n;
}

/* ---- looking -------------------------------------------------------------------------- */

/* Is the address space of slot @i among those of the slots before it that reach the same page? */
static bool is_counted(const struct nrp_hugetlb_tables *t, const struct page *page, uint32_t in,
		       uint32_t slot)
{
	for (uint32_t k = 0; k <= in; k++)
		for (uint32_t s = t->table[page->in[k]].first_slot; s != NONE;
		     s = t->slot[s].next) {
			if (k == in && s == slot)
				return false;
			if (t->slot[s].mm == t->slot[slot].mm)
				return true;
		}
	return false;
}

static uint32_t processes_of(const struct nrp_hugetlb_tables *t, const struct page *page)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < page->map; k++)
		for (uint32_t s = t->table[page->in[k]].first_slot; s != NONE; s = t->slot[s].next)
			n += !is_counted(t, page, k, s);
	return n;
}

/* The page in entry @k; *@io_processes: of pages that only this table maps, 0: not known yet. */
static void look_in(const struct nrp_hugetlb_tables *t, const struct table *table, unsigned int k,
		    uint32_t *io_processes, struct nrp_hugetlb_view *ret)
{
	const struct page *page = &t->page[table->entry[k] - 1];

	if (page->map == 1 && !*io_processes)
		*io_processes = processes_of(t, page);
	*ret = (struct nrp_hugetlb_view){
		.map = page->map,
		.adjusted = page->adjusted,
		.sharers = table->sharers,
		.processes = page->map == 1 ? *io_processes : processes_of(t, page),
	};
}

bool nrp_hugetlb_look(const struct nrp_hugetlb_tables *t, uint64_t mm, uint64_t addr,
		      struct nrp_hugetlb_view *ret)
{
	const struct table *table = table_at(t, mm, addr);
	uint32_t processes = 0;

	if (!table || !table->entry[entry_of(addr)])
		return false;
	look_in(t, table, entry_of(addr), &processes, ret);
	return true;
}

static void add_smaps(const struct nrp_hugetlb_tables *t, enum nrp_hugetlb_variant variant,
		      const struct slot *s, uint64_t start, uint64_t end, uint64_t *io_private,
		      uint64_t *io_shared)
{
	const struct table *table = &t->table[s->table];
	uint64_t addr = s->addr;
	uint32_t processes = 0;

	for (unsigned int k = 0; k < NRP_HUGETLB_ENTRIES; k++, addr += NRP_HUGETLB_SIZE) {
		struct nrp_hugetlb_view view;

		if (addr < start || addr >= end || !table->entry[k])
			continue;
		look_in(t, table, k, &processes, &view);
		*(nrp_hugetlb_is_shared(variant, &view) ? io_shared : io_private) +=
			NRP_HUGETLB_SIZE;
	}
}

void nrp_hugetlb_smaps(const struct nrp_hugetlb_tables *t, enum nrp_hugetlb_variant variant,
		       uint64_t mm, uint64_t start, uint64_t end, uint64_t *ret_private,
		       uint64_t *ret_shared)
{
	uint64_t base = slot_start(start);
	const struct slot *s;

	*ret_private = *ret_shared = 0;
	if (start >= end)
		return;
	/* whichever are fewer: slots of the range, or all */
	if ((end - base) / NRP_HUGETLB_SLOT < t->nr_slots) {
		for (uint64_t n = (end - base - 1) / NRP_HUGETLB_SLOT + 1; n--;) {
			s = slot_at(t, mm, base + n * NRP_HUGETLB_SLOT);
			if (s)
				add_smaps(t, variant, s, start, end, ret_private, ret_shared);
		}
		return;
	}
	for (uint32_t i = 0; i < t->nr_slots; i++) {
		s = &t->slot[i];
		if (s->mm == mm && s->table != NONE)
			add_smaps(t, variant, s, start, end, ret_private, ret_shared);
	}
}

bool nrp_hugetlb_slot_at(const struct nrp_hugetlb_tables *t, size_t i, uint64_t *ret_mm,
			 uint64_t *ret_addr, uint64_t *ret_table)
{
	if (i >= t->nr_slots)
		return false;
	*ret_mm = t->slot[i].mm;
	*ret_addr = t->slot[i].addr;
	*ret_table = t->slot[i].table == NONE ? 0 : t->table[t->slot[i].table].id;
	return true;
}

const struct nrp_hugetlb_work *nrp_hugetlb_work(const struct nrp_hugetlb_tables *t)
{
	return &t->work;
}

bool nrp_hugetlb_counts_hold(const struct nrp_hugetlb_tables *t)
{
	uint32_t *counts = calloc(2 * (size_t)t->nr_pages + t->nr_tables + 1, sizeof(*counts));
	uint32_t *map = counts, *adjusted = map + t->nr_pages, *sharers = adjusted + t->nr_pages;
	bool hold = counts != NULL;

	for (uint32_t i = 0; hold && i < t->nr_slots; i++)
		if (t->slot[i].table != NONE)
			sharers[t->slot[i].table]++;
	for (uint32_t i = 0; hold && i < t->nr_tables; i++) {
		const struct table *table = &t->table[i];
		uint32_t present = 0;

		hold = table->sharers == sharers[i] && !table->entry == !sharers[i];
		for (unsigned int k = 0; hold && sharers[i] && k < NRP_HUGETLB_ENTRIES; k++) {
			if (!table->entry[k])
				continue;
			present++;
			map[table->entry[k] - 1]++;
			adjusted[table->entry[k] - 1] += sharers[i];
		}
		hold = hold && table->present == present;
	}
	for (uint32_t i = 0; hold && i < t->nr_pages; i++)
		hold = t->page[i].map == map[i] && t->page[i].adjusted == adjusted[i];
	free(counts);
	return hold;
}
