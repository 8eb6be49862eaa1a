/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages, folios and huge pages by address: splitting, growing together, many of them. */
#include "replay/page_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct events {
	uint32_t copies, continued, ended;
	uint64_t ended_pages;
};

static int copy(void *context, struct nrp_page *page, struct nrp_page *piece)
{
	(void)page;
	(void)piece;
	((struct events *)context)->copies++;
	return 0;
}

static void end(void *context, struct nrp_page *page, bool continued)
{
	struct events *e = context;

	if (continued) {
		e->continued++;
		return;
	}
	e->ended++;
	e->ended_pages += page->pages;
}

struct fixture {
	struct events events;
	struct nrp_page_table_ops ops;
	struct nrp_page_table *table;
	struct nrp_mm mm;
};

static void set_up(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->ops = (struct nrp_page_table_ops){ copy, end, &f->events };
	f->table = nrp_page_table_new(&f->ops);
	assert_non_null(f->table);
}

static struct nrp_page *get(struct fixture *f, uint64_t vfn, uint32_t pages)
{
	struct nrp_page *p = nrp_page_table_get(f->table, &f->mm, 0, vfn, pages);

	assert_non_null(p);
	return p;
}

static uint64_t total(struct fixture *f)
{
	uint64_t pages = 0;
	size_t position = 0;
	const struct nrp_page *p;

	while ((p = nrp_page_table_next(f->table, &position)))
		pages += p->pages;
	return pages;
}

/* 1024 + 5 is in the lower half of the lower half ..: 512 = 256 + 128 + 64 + 32 + 16 + 8 + 2 + 1
 * + 1. */
static void base_page_of_a_huge_page_splits_it_into_aligned_pieces(void **state)
{
	struct fixture f;
	struct nrp_page *p;

	(void)state;
	set_up(&f);
	p = get(&f, 1024 + 77, 512);
	assert_int_equal(p->vfn, 1024);
	p->nid = 3;
	p->seen = true;
	p = get(&f, 1024 + 5, 1);
	assert_int_equal(p->vfn, 1024 + 5);
	assert_int_equal(p->pages, 1);
	assert_int_equal(p->nid, 3);
	assert_true(p->seen);
	assert_int_equal(f.events.continued, 1);
	assert_int_equal(f.events.copies, 10);
	assert_int_equal(total(&f), 512);
	/* Every other base page is in one piece, which has the history, too. */
	for (uint64_t v = 1024; v < 1536; v++) {
		const struct nrp_page *q = nrp_page_table_find(f.table, &f.mm, 0, v);

		assert_non_null(q);
		assert_int_equal(q->nid, 3);
		assert_int_equal(q->vfn % q->pages, 0);
		assert_true(v - q->vfn < q->pages);
	}
	nrp_page_table_free(f.table);
}

static void folio_of_a_huge_page_splits_off(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	get(&f, 512, 512)->nid = 1;
	assert_int_equal(get(&f, 512 + 40, 16)->vfn, 512 + 32);
	assert_int_equal(get(&f, 512 + 40, 16)->nid, 1);
	assert_int_equal(total(&f), 512);
	/* 512 = 256 + 128 + 64 + 32 + 16 + 16 */
	assert_int_equal(f.events.copies, 6);
	nrp_page_table_free(f.table);
}

static void huge_page_ends_the_base_pages_it_takes_in(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (uint64_t v = 510; v < 515; v++)
		get(&f, v, 1)->nid = 1;
	assert_int_equal(get(&f, 512, 512)->nid, 0);
	assert_int_equal(f.events.ended, 3);
	assert_int_equal(f.events.ended_pages, 3);
	assert_int_equal(total(&f), 512 + 2);
	/* And falls apart again. */
	assert_int_equal(get(&f, 513, 1)->pages, 1);
	assert_int_equal(total(&f), 512 + 2);
	nrp_page_table_free(f.table);
}

static void unknown_size_is_that_of_the_page_which_is_there(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	get(&f, 64, 16);
	assert_int_equal(get(&f, 70, 0)->vfn, 64);
	assert_int_equal(get(&f, 70, 0)->pages, 16);
	assert_int_equal(get(&f, 200, 0)->pages, 1);
	/* What is no power of two is no size. */
	assert_int_equal(get(&f, 70, 3)->pages, 16);
	assert_int_equal(get(&f, 300, UINT32_MAX)->pages, 1);
	nrp_page_table_free(f.table);
}

static void address_spaces_do_not_mix(void **state)
{
	struct fixture f;
	struct nrp_mm other = { .orders = 0 };

	(void)state;
	set_up(&f);
	get(&f, 7, 1)->nid = 1;
	assert_null(nrp_page_table_find(f.table, &other, 1, 7));
	assert_int_equal(nrp_page_table_get(f.table, &other, 1, 7, 1)->nid, 0);
	assert_int_equal(get(&f, 7, 1)->nid, 1);
	nrp_page_table_free(f.table);
}

/* Against a plain array: 4096 base pages, folios of random sizes laid over one another. */
static void random_sizes_never_overlap_and_keep_what_was_written(void **state)
{
	enum { SPAN = 4096, STEPS = 4000 };
	int16_t *nid = calloc(SPAN, sizeof(*nid));
	uint64_t seed = 20180917;
	struct fixture f;

	(void)state;
	set_up(&f);
	for (int step = 0; step < STEPS; step++) {
		uint32_t size, first;
		struct nrp_page *p;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		size = 1u << (seed >> 60) % 10;
		first = (uint32_t)(seed >> 33) % SPAN / size * size;
		p = get(&f, first, size);
		assert_int_equal(p->vfn, first);
		assert_int_equal(p->pages, size);
		p->nid = (int16_t)(step % 1000 + 1);
		for (uint32_t i = 0; i < size; i++)
			nid[first + i] = p->nid;
	}
	for (uint32_t v = 0; v < SPAN; v++) {
		const struct nrp_page *p = nrp_page_table_find(f.table, &f.mm, 0, v);

		assert_int_equal(p ? p->nid : 0, nid[v]);
	}
	free(nid);
	nrp_page_table_free(f.table);
}

static void many_pages_are_all_found_again(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (uint64_t v = 0; v < 100000; v++)
		get(&f, v * 977, 1)->vma = (uint32_t)v;
	for (uint64_t v = 0; v < 100000; v++)
		assert_int_equal(get(&f, v * 977, 1)->vma, v);
	assert_int_equal(total(&f), 100000);
	nrp_page_table_free(f.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base_page_of_a_huge_page_splits_it_into_aligned_pieces),
		cmocka_unit_test(folio_of_a_huge_page_splits_off),
		cmocka_unit_test(huge_page_ends_the_base_pages_it_takes_in),
		cmocka_unit_test(unknown_size_is_that_of_the_page_which_is_there),
		cmocka_unit_test(address_spaces_do_not_mix),
		cmocka_unit_test(random_sizes_never_overlap_and_keep_what_was_written),
		cmocka_unit_test(many_pages_are_all_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
