/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay/hugetlb_share.c beside a slow model of the same text (spec mmap-hugetlb.md 2.2, 2.3) that
 * is built otherwise: it keeps no count. Mappings are bytes of a small world, tables are columns of
 * a matrix, and what the counts are is looked up by going through all of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replay/hugetlb_share.h"
#include "test_random.h"

#include <string.h>

#define HUGE NRP_HUGETLB_SIZE
#define GIB NRP_HUGETLB_SLOT

enum { MMS = 5, SLOTS = 4, PLACES = 512 * SLOTS, TABLES = 400, MAPS = 80 };

struct mapping {
	int mm, from, to, file, index,
		flags; /* huge pages of the world, from 0 on; from == to: gone */
	bool uffd;
};

static struct {
	struct nrp_hugetlb_rules rules;
	struct mapping map[MAPS];
	int nr_maps, nr_tables;
	int table[MMS][SLOTS]; /* -1: none */
	int page[TABLES][512]; /* -1: none; file * 8192 + index */
	uint64_t entries, updates, installs;
} w;

static uint64_t seed;

static int below(int n)
{
	return (int)random_range(&seed, 0, (uint64_t)n - 1);
}

static int users(int table)
{
	int n = 0;

	for (int m = 0; m < MMS; m++)
		for (int s = 0; s < SLOTS; s++)
			n += w.table[m][s] == table;
	return n;
}

static int pages_in(int table)
{
	int n = 0;

	for (int k = 0; k < 512; k++)
		n += w.page[table][k] >= 0;
	return n;
}

static struct mapping *find(int mm, int place)
{
	for (int i = 0; i < w.nr_maps; i++)
		if (w.map[i].mm == mm && w.map[i].from <= place && place < w.map[i].to)
			return &w.map[i];
	return NULL;
}

static void slow_leave(int mm, int slot)
{
	int t = w.table[mm][slot];

	if (t < 0)
		return;
	if (users(t) > 1) {
		w.entries += 512;
		w.updates += (uint64_t)pages_in(t);
	}
	w.table[mm][slot] = -1;
}

static bool whole_slot(const struct mapping *m, int place)
{
	return m->from <= place / 512 * 512 && m->to >= place / 512 * 512 + 512;
}

static int slow_find_table(const struct mapping *v, int place)
{
	int index = v->index + place - v->from, best = -1, best_index = 0;

	if (!whole_slot(v, place) || (v->uffd && w.rules.looks_at_uffd))
		return -1;
	for (int i = 0; i < w.nr_maps; i++) {
		const struct mapping *m = &w.map[i];
		int there = m->from + index - m->index;

		if (m == v || m->from == m->to || m->file != v->file || m->flags != v->flags ||
		    there < m->from || there >= m->to || there % 512 != place % 512 ||
		    !whole_slot(m, there) || w.table[m->mm][there / 512] < 0)
			continue;
		if (best >= 0 && best_index <= m->index)
			continue;
		best = w.table[m->mm][there / 512];
		best_index = m->index;
	}
	return best;
}

static void slow_touch(int mm, int place)
{
	const struct mapping *v = find(mm, place);
	int t = w.table[mm][place / 512];

	if (t < 0) {
		t = slow_find_table(v, place);
		if (t < 0) {
			t = w.nr_tables++;
			memset(w.page[t], 0xff, sizeof(w.page[t]));
		} else {
			w.entries += 512;
			w.updates += (uint64_t)pages_in(t);
		}
		w.table[mm][place / 512] = t;
	}
	if (w.page[t][place % 512] < 0) {
		w.page[t][place % 512] = v->file * 8192 + v->index + place - v->from;
		w.installs += users(t) > 1;
	}
}

static void slow_split(int mm, int place)
{
	struct mapping *m = place < PLACES ? find(mm, place) : NULL;

	if (!m || m->from == place)
		return;
	if (w.rules.split_leaves && place % 512 && whole_slot(m, place) &&
	    w.table[mm][place / 512] >= 0 && users(w.table[mm][place / 512]) > 1)
		slow_leave(mm, place / 512);
	w.map[w.nr_maps] = *m;
	w.map[w.nr_maps].from = place;
	w.map[w.nr_maps++].index += place - m->from;
	m->to = place;
}

static void slow_range(int mm, int from, int to, bool clear)
{
	for (int s = 0; s < SLOTS; s++) {
		int t = w.table[mm][s];

		if (t < 0 || to <= 512 * s || from >= 512 * (s + 1))
			continue;
		if (users(t) > 1)
			slow_leave(mm, s);
		else
			for (int k = 0; clear && k < 512; k++)
				if (512 * s + k >= from && 512 * s + k < to)
					w.page[t][k] = -1;
	}
}

static void slow_drop_unmapped(int mm)
{
	for (int s = 0; s < SLOTS; s++) {
		bool mapped = false;

		for (int i = 0; i < w.nr_maps; i++)
			mapped |= w.map[i].mm == mm && w.map[i].from < w.map[i].to &&
				  w.map[i].from < 512 * (s + 1) && w.map[i].to > 512 * s;
		if (!mapped)
			slow_leave(mm, s);
	}
}

/* ---- both ----------------------------------------------------------------------------- */

static struct nrp_hugetlb_share *fast;

/* The world begins at 16 GiB. */
static uint64_t address(int place)
{
	return 16 * GIB + (uint64_t)place * HUGE;
}

static void compare(void)
{
	const struct nrp_hugetlb_tables *t = nrp_hugetlb_share_tables(fast);
	const struct nrp_hugetlb_work *work = nrp_hugetlb_work(t);

	assert_true(nrp_hugetlb_counts_hold(t));
	assert_int_equal(work->entries, w.entries);
	assert_int_equal(work->updates, w.updates);
	assert_int_equal(work->installs, w.installs);
}

static void compare_all(void)
{
	const struct nrp_hugetlb_tables *t = nrp_hugetlb_share_tables(fast);

	for (int m = 0; m < MMS; m++) {
		for (int place = 0; place < PLACES; place++) {
			int own = w.table[m][place / 512];
			int page = own < 0 ? -1 : w.page[own][place % 512];
			uint32_t map = 0, adjusted = 0, processes = 0;
			struct nrp_hugetlb_view v;

			assert_int_equal(nrp_hugetlb_look(t, (uint64_t)m + 1, address(place), &v),
					 page >= 0);
			if (page < 0)
				continue;
			for (int other = 0; other < w.nr_tables; other++)
				for (int k = 0; users(other) && k < 512; k++)
					if (w.page[other][k] == page) {
						map++;
						adjusted += (uint32_t)users(other);
					}
			for (int p = 0; p < MMS; p++) {
				bool reaches = false;

				for (int s = 0; s < SLOTS; s++)
					for (int k = 0; w.table[p][s] >= 0 && k < 512; k++)
						reaches |= w.page[w.table[p][s]][k] == page;
				processes += reaches;
			}
			assert_int_equal(v.map, map);
			assert_int_equal(v.adjusted, adjusted);
			assert_int_equal(v.sharers, users(own));
			assert_int_equal(v.processes, processes);
			/* the theorem of 2.4 */
			assert_int_equal(nrp_hugetlb_is_shared(NRP_HUGETLB_PMD_CHECK, &v),
					 nrp_hugetlb_is_shared(NRP_HUGETLB_ADJUSTED, &v));
		}
	}
}

static void do_map(void)
{
	static const int sizes[] = { 256, 512, 512, 513, 1024, 1024, 1536, 2048 };
	int mm = below(MMS), n = sizes[below(8)];
	int from = below(8) ? 512 * below(SLOTS) : below(PLACES);
	/* mostly one file, each at its place */
	int file = !below(6), index = below(4) ? from : 512 * below(2);
	struct mapping m = { mm, from, from + n, file, index, below(6) ? 0xfb : 0xf9, !below(12) };
	const struct nrp_hugetlb_mapping f = { .mm = (uint64_t)mm + 1,
					       .start = address(from),
					       .end = address(from + n),
					       .file = (uint32_t)m.file,
					       .index = (uint64_t)m.index,
					       .flags = (uint64_t)m.flags,
					       .may_share = true,
					       .uffd = m.uffd };

	if (from + n > PLACES)
		return;
	for (int place = from; place < from + n; place++)
		if (find(mm, place))
			return;
	w.map[w.nr_maps++] = m;
	assert_int_equal(nrp_hugetlb_map(fast, &f), 0);
}

static void do_touch(void)
{
	static const int usual[] = { 0, 1, 2, 511 };
	int mm = below(MMS), place = 512 * below(SLOTS) + usual[below(4)];

	if (!find(mm, place))
		return;
	slow_touch(mm, place);
	assert_int_equal(nrp_hugetlb_touch(fast, (uint64_t)mm + 1, address(place)), 0);
}

static void do_range(void)
{
	int mm = below(MMS), from = below(2) ? 512 * below(SLOTS) : below(PLACES);
	int to = from + (below(2) ? 512 : 1 + below(600)), what = below(3);
	uint64_t start = address(from), end;

	to = to > PLACES ? PLACES : to;
	end = address(to);
	slow_split(mm, from);
	slow_split(mm, to);
	if (what == 0) {
		slow_range(mm, from, to, true);
		for (int i = 0; i < w.nr_maps; i++)
			if (w.map[i].mm == mm && w.map[i].from >= from && w.map[i].to <= to)
				w.map[i].to = w.map[i].from;
		slow_drop_unmapped(mm);
		assert_int_equal(nrp_hugetlb_unmap(fast, (uint64_t)mm + 1, start, end), 0);
	} else if (what == 1) {
		int flags = below(2) ? 0xfb : 0xf9;

		slow_range(mm, from, to, false);
		for (int i = 0; i < w.nr_maps; i++)
			if (w.map[i].mm == mm && w.map[i].from >= from && w.map[i].to <= to)
				w.map[i].flags = flags;
		assert_int_equal(
			nrp_hugetlb_protect(fast, (uint64_t)mm + 1, start, end, (uint64_t)flags),
			0);
	} else {
		for (int i = 0; i < w.nr_maps; i++) {
			struct mapping *m = &w.map[i];

			if (m->mm != mm || m->from < from || m->to > to || m->from == m->to)
				continue;
			m->uffd = true;
			for (int s = 0; w.rules.looks_at_uffd && s < SLOTS; s++)
				if (m->from <= 512 * s && m->to >= 512 * (s + 1) &&
				    w.table[mm][s] >= 0 && users(w.table[mm][s]) > 1)
					slow_leave(mm, s);
		}
		assert_int_equal(nrp_hugetlb_register_uffd(fast, (uint64_t)mm + 1, start, end), 0);
	}
}

static void do_exit(void)
{
	int mm = below(MMS);

	for (int s = 0; s < SLOTS; s++)
		slow_leave(mm, s);
	for (int i = 0; i < w.nr_maps; i++)
		if (w.map[i].mm == mm)
			w.map[i].to = w.map[i].from;
	nrp_hugetlb_exit(fast, (uint64_t)mm + 1);
}

/* Into an address space that has nothing. From 6.0 on a child shares at its first touch. */
static void do_fork(void)
{
	int parent = below(MMS), child = below(MMS), n = w.nr_maps;

	for (int i = 0; i < n; i++)
		if (parent == child || (w.map[i].mm == child && w.map[i].from < w.map[i].to))
			return;
	for (int i = 0; i < n; i++) {
		struct mapping m = w.map[i];

		if (m.mm != parent || m.from == m.to)
			continue;
		w.map[w.nr_maps] = m;
		w.map[w.nr_maps++].mm = child;
		for (int place = m.from; !w.rules.lazy_fork && place < m.to; place++) {
			int t = w.table[parent][place / 512];
			bool may = whole_slot(&m, place) && !(m.uffd && w.rules.looks_at_uffd);

			if (t < 0)
				continue;
			if (w.table[child][place / 512] < 0) {
				if (may) {
					w.entries += 512;
					w.updates += (uint64_t)pages_in(t);
					w.table[child][place / 512] = t;
				} else {
					memset(w.page[w.nr_tables], 0xff, sizeof(w.page[0]));
					w.table[child][place / 512] = w.nr_tables++;
				}
			}
			if (!may)
				w.page[w.table[child][place / 512]][place % 512] =
					w.page[t][place % 512];
		}
	}
	assert_int_equal(nrp_hugetlb_fork(fast, (uint64_t)parent + 1, (uint64_t)child + 1), 0);
}

/* The page that a process touches moves: one user is left of each table that has it. */
static void do_move(void)
{
	int mm = below(MMS), place = 512 * below(SLOTS), t = w.table[mm][place / 512];
	int page = t < 0 ? -1 : w.page[t][0];

	if (page < 0)
		return;
	for (int i = 0; i < w.nr_maps; i++) {
		const struct mapping *m = &w.map[i];
		int there = m->from + page % 8192 - m->index;

		if (m->from == m->to || m->file != page / 8192 || there < m->from ||
		    there >= m->to || w.table[m->mm][there / 512] < 0)
			continue;
		if (users(w.table[m->mm][there / 512]) > 1)
			slow_leave(m->mm, there / 512);
	}
	assert_int_equal(nrp_hugetlb_move(fast, (uint64_t)mm + 1, address(place)), 0);
}

static void random_scenarios_agree(void **state)
{
	uint64_t shares = 0, unshares = 0;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		memset(&w, 0, sizeof(w));
		memset(w.table, 0xff, sizeof(w.table));
		w.rules.lazy_fork = below(2);
		w.rules.looks_at_uffd = below(2);
		w.rules.split_leaves = below(2);
		fast = nrp_hugetlb_share_new(&w.rules);
		assert_non_null(fast);
		for (int step = 0; step < 120 && w.nr_maps < MAPS - 12; step++) {
			switch (below(10)) {
			case 0:
			case 1:
			case 2:
				do_map();
				break;
			case 3:
				do_range();
				break;
			case 4:
				if (below(3))
					do_fork();
				else
					do_exit();
				break;
			case 5:
				do_move();
				break;
			default:
				do_touch();
				break;
			}
			compare();
		}
		if (round % 8 == 0)
			compare_all();
		shares += nrp_hugetlb_work(nrp_hugetlb_share_tables(fast))->shares;
		unshares += nrp_hugetlb_work(nrp_hugetlb_share_tables(fast))->unshares;
		fast = nrp_hugetlb_share_free(fast);
	}
	/* 3000 scenarios that share nothing would compare nothing */
	assert_true(shares > 3000 && unshares > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_scenarios_agree),
	};

	seed = random_seed("hugetlb_model");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
