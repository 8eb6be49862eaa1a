/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The locality book against sums made by hand. Two nodes, times in seconds. */
#include "replay/locality.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void close_to(double a, double b)
{
	if (fabs(a - b) >= 1e-9 * (1 + fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

struct fixture {
	struct nrp_address_spaces *spaces;
	struct nrp_locality *book;
};

static void set_up(struct fixture *f, int spaces)
{
	f->spaces = nrp_address_spaces_new(2);
	f->book = nrp_locality_new(2, 1);
	for (int i = 0; i < spaces; i++)
		assert_int_equal(nrp_address_space_of(f->spaces, 0x1000 + (uint64_t)i), i);
}

static void tear_down(struct fixture *f)
{
	nrp_locality_free(f->book);
	nrp_address_spaces_free(f->spaces);
}

static struct nrp_presence *presence(struct fixture *f, uint32_t space)
{
	return nrp_address_space(f->spaces, space)->presence;
}

static uint32_t vma(struct fixture *f, uint32_t space)
{
	return (uint32_t)nrp_locality_vma(f->book, space, 0x10000, 0x20000, 0);
}

static void arm(struct fixture *f, uint32_t space, double now, double pages)
{
	nrp_locality_arm(f->book, vma(f, space), presence(f, space), now, pages);
}

static struct nrp_touch_rate rate(struct fixture *f, int nid)
{
	struct nrp_touch_rate r;
	size_t position = 0;

	while (nrp_locality_rate(f->book, &position, &r))
		if (r.nid == nid)
			return r;
	fail_msg("no rate for node %d", nid);
	return r;
}

/*
 * Ten pages armed at 1. One touched at 2, one at 4, both from node 1; eight never, until 11:
 * 1 + 3 + 8 * 10 = 84 page-seconds for 2 touches.
 */
static void untouched_pages_count_until_the_end(void **state)
{
	struct fixture f;
	struct nrp_touch_rate r;

	(void)state;
	set_up(&f, 1);
	arm(&f, 0, 1, 10);
	nrp_locality_touch(f.book, vma(&f, 0), 2, 1, 1, 1);
	nrp_locality_touch(f.book, vma(&f, 0), 4, 1, 1, 3);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 11), 0);
	r = rate(&f, 1);
	assert_int_equal(r.touches, 2);
	close_to(r.armed_page_seconds, 84);
	close_to(r.rate, 2.0 / 84);
	assert_true(r.lower > 0 && r.lower < r.rate && r.upper > r.rate);
	assert_false(r.borrowed);
	tear_down(&f);
}

/*
 * Four pages armed at 0. From node 0 two touches after 1 s each, from node 1 one after 4 s, one
 * never until 6: 1 + 1 + 4 + 6 = 12 page-seconds. Ended ones are 2 and 4 of 6: node 0 gets 4, node
 * 1 gets 8.
 */
static void page_seconds_go_to_the_node_that_ended_them(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 1);
	arm(&f, 0, 0, 4);
	nrp_locality_touch(f.book, vma(&f, 0), 1, 1, 0, 1);
	nrp_locality_touch(f.book, vma(&f, 0), 1, 1, 0, 1);
	nrp_locality_touch(f.book, vma(&f, 0), 4, 1, 1, 4);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 6), 0);
	close_to(rate(&f, 0).armed_page_seconds, 4);
	close_to(rate(&f, 0).rate, 0.5);
	close_to(rate(&f, 1).armed_page_seconds, 8);
	close_to(rate(&f, 1).rate, 0.125);
	tear_down(&f);
}

/* A huge page is 512 entries and one touch. */
static void huge_page_is_one_touch_of_many_pages(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 1);
	arm(&f, 0, 0, 512);
	nrp_locality_touch(f.book, vma(&f, 0), 2, 512, 1, 2);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 9), 0);
	assert_int_equal(rate(&f, 1).touches, 1);
	close_to(rate(&f, 1).rate, 1.0 / 1024);
	tear_down(&f);
}

/*
 * Rate from node 1: one touch in 2 page-seconds. On record pages were remote to node 1 for 3 (held-
 * previous) or 5 (held-next) page-seconds; the world has 7 and 6 more.
 */
static void remote_accesses_are_rate_times_remote_time(void **state)
{
	struct fixture f;
	struct nrp_remote record, world, avoided;

	(void)state;
	set_up(&f, 1);
	arm(&f, 0, 0, 1);
	nrp_locality_touch(f.book, vma(&f, 0), 2, 1, 1, 2);
	nrp_locality_held(f.book, vma(&f, 0), 1, 3, 5, false);
	assert_int_equal(nrp_locality_held_differs(f.book, vma(&f, 0), 0, 1, 7, 6, false), 0);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 10), 0);
	assert_int_equal(nrp_locality_remote(f.book, -1, &record), 0);
	assert_int_equal(nrp_locality_remote(f.book, 0, &world), 0);
	assert_int_equal(nrp_locality_avoided(f.book, 0, &avoided), 0);
	close_to(record.residency.value, 3);
	close_to(record.residency.lower, 3);
	close_to(record.residency.upper, 5);
	close_to(record.accesses.value, 1.5);
	close_to(world.residency.value, 10);
	close_to(world.residency.upper, 11);
	close_to(world.accesses.value, 5);
	close_to(avoided.residency.value, -7);
	close_to(avoided.residency.lower, -7);
	close_to(avoided.residency.upper, -6);
	close_to(avoided.accesses.value, -3.5);
	assert_true(avoided.accesses.lower < -3.5 && avoided.accesses.upper < 0);
	close_to(record.covered, 5);
	assert_true(record.uncovered == 0 && record.borrowed == 0 && record.shared == 0);
	tear_down(&f);
}

/*
 * 100 faults on pages seen before, 80 from the node of the last one; touches come half from each
 * node: chance is 0.5, persistence (0.8 - 0.5) / 0.5 = 0.6. Pages lie on node 0 for 10 page-seconds
 * and on node 1 for 30. Held-previous is 2 for users on node 1, of which 1 after the last fault:
 * held-next is 5 + 0.6 * 1. By the mix, pages are remote for 0.5 * 30 = 15 to node 0 and 0.5 * 10 =
 * 5 to node 1. Value: 0.4 * 15 + (0.6 * 2 + 0.4 * 5) = 9.2. Least: 0 + 2; most: 6 + 5.6.
 */
static void the_last_user_counts_as_far_as_users_persist(void **state)
{
	struct nrp_remote record;
	struct fixture f;

	(void)state;
	set_up(&f, 1);
	arm(&f, 0, 0, 100);
	for (int i = 0; i < 100; i++) {
		nrp_locality_fault(f.book, vma(&f, 0), i % 2, i < 80 ? i % 2 : !(i % 2));
		nrp_locality_touch(f.book, vma(&f, 0), 1, 1, i % 2, 1);
	}
	nrp_locality_lie(f.book, vma(&f, 0), 0, 1, 10);
	nrp_locality_lie(f.book, vma(&f, 0), 1, 1, 30);
	nrp_locality_held(f.book, vma(&f, 0), 1, 1, 5, false);
	nrp_locality_held(f.book, vma(&f, 0), 1, 1, 0, true);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 50), 0);
	assert_int_equal(nrp_locality_remote(f.book, -1, &record), 0);
	close_to(record.residency.value, 9.2);
	close_to(record.residency.lower, 2);
	close_to(record.residency.upper, 11.6);
	tear_down(&f);
}

/* Intervals of 3 and 4 page-seconds: 1.96 * sqrt(9 + 16) = 9.8 on both sides of a difference. */
static void differences_have_the_error_of_single_pages(void **state)
{
	struct nrp_remote avoided;
	struct fixture f;

	(void)state;
	set_up(&f, 1);
	assert_int_equal(nrp_locality_held_differs(f.book, vma(&f, 0), 0, 1, 7, 7, false), 0);
	assert_int_equal(nrp_locality_uncertain(f.book, vma(&f, 0), 0, 3 * 3), 0);
	assert_int_equal(nrp_locality_uncertain(f.book, vma(&f, 0), 0, 4 * 4), 0);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 10), 0);
	assert_int_equal(nrp_locality_avoided(f.book, 0, &avoided), 0);
	close_to(avoided.residency.value, -7);
	close_to(avoided.residency.lower, -7 - 9.8);
	close_to(avoided.residency.upper, -7 + 9.8);
	tear_down(&f);
}

/* Node 0 never faulted: it borrows the VMA's rate from all nodes, with nothing as lower bound. */
static void a_node_without_faults_borrows_a_rate(void **state)
{
	struct fixture f;
	struct nrp_remote record;

	(void)state;
	set_up(&f, 1);
	arm(&f, 0, 0, 1);
	nrp_locality_touch(f.book, vma(&f, 0), 2, 1, 1, 2);
	nrp_locality_held(f.book, vma(&f, 0), 0, 4, 4, false);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 10), 0);
	assert_int_equal(nrp_locality_remote(f.book, -1, &record), 0);
	close_to(record.accesses.value, 2);
	assert_true(record.accesses.lower == 0);
	close_to(record.borrowed, 4);
	tear_down(&f);
}

static void without_any_touch_there_is_no_rate(void **state)
{
	struct fixture f;
	struct nrp_remote record;

	(void)state;
	set_up(&f, 1);
	nrp_locality_held(f.book, vma(&f, 0), 0, 4, 4, false);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 10), 0);
	assert_int_equal(nrp_locality_remote(f.book, -1, &record), 0);
	close_to(record.uncovered, 4);
	assert_true(record.accesses.value == 0);
	close_to(record.residency.value, 4);
	tear_down(&f);
}

/*
 * A page of two processes, one on each node all the time. It lies on node 0 for 6 s, on node 1 for
 * 4: remote to one of them all the time, 10 page-seconds. In the world it stays on node 0: the
 * same. Each armed it once, the process on node 1 for 2 s, that on node 0 for 4: rates 0.5 and
 * 0.25, so 6 * 0.5 + 4 * 0.25 = 4 remote touches on record, 10 * 0.5 = 5 in the world.
 */
static void shared_pages_are_used_from_everywhere(void **state)
{
	struct fixture f;
	struct nrp_remote record, world, avoided;

	(void)state;
	set_up(&f, 2);
	presence(&f, 0)[0].threads = 1;
	presence(&f, 1)[1].threads = 1;
	nrp_locality_join(f.book, vma(&f, 0), vma(&f, 1));
	arm(&f, 0, 0, 1);
	nrp_locality_touch(f.book, vma(&f, 0), 4, 1, 0, 4);
	arm(&f, 1, 0, 1);
	nrp_locality_touch(f.book, vma(&f, 1), 2, 1, 1, 2);
	nrp_locality_lie(f.book, vma(&f, 0), 0, 1, -0.0);
	nrp_locality_lie(f.book, vma(&f, 0), 0, 1, 6);
	nrp_locality_lie(f.book, vma(&f, 0), 1, 1, -6);
	nrp_locality_lie(f.book, vma(&f, 0), 1, 1, 10);
	assert_int_equal(nrp_locality_lie_differs(f.book, vma(&f, 0), 0, 0, 1, 1, -6), 0);
	assert_int_equal(nrp_locality_lie_differs(f.book, vma(&f, 0), 0, 0, 1, 1, 10), 0);
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 10), 0);
	assert_int_equal(nrp_locality_remote(f.book, -1, &record), 0);
	assert_int_equal(nrp_locality_remote(f.book, 0, &world), 0);
	assert_int_equal(nrp_locality_avoided(f.book, 0, &avoided), 0);
	close_to(record.residency.value, 10);
	close_to(world.residency.value, 10);
	close_to(avoided.residency.value, 0);
	close_to(record.accesses.value, 4);
	close_to(world.accesses.value, 5);
	close_to(avoided.accesses.value, -1);
	assert_true(avoided.accesses.upper > 0);
	close_to(record.shared, 10);
	tear_down(&f);
}

/* The thread leaves node 0 at 3 and is on node 1 from then on: armed time counts for both in turn.
 */
static void armed_time_counts_where_there_are_threads(void **state)
{
	struct fixture f;
	struct nrp_presence *p;

	(void)state;
	set_up(&f, 2);
	p = presence(&f, 0);
	p[0].threads = 1;
	arm(&f, 0, 1, 2);
	nrp_locality_touch(f.book, vma(&f, 0), 2, 1, 0, 1);
	nrp_locality_settle(f.book, 0, p);
	p[0] = (struct nrp_presence){ .threads = 0, .seconds = 3 };
	p[1] = (struct nrp_presence){ .threads = 1, .since = 3 };
	nrp_locality_touch(f.book, vma(&f, 0), 7, 1, 1, 6);
	nrp_locality_join(f.book, vma(&f, 0), vma(&f, 1));
	assert_int_equal(nrp_locality_finish(f.book, f.spaces, 9), 0);
	/* Node 0: page one from 1 to 2, page two from 1 to 3. Node 1: page two from 3 to 7. */
	close_to(rate(&f, 0).armed_page_seconds, 3);
	close_to(rate(&f, 1).armed_page_seconds, 4);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(untouched_pages_count_until_the_end),
		cmocka_unit_test(page_seconds_go_to_the_node_that_ended_them),
		cmocka_unit_test(huge_page_is_one_touch_of_many_pages),
		cmocka_unit_test(remote_accesses_are_rate_times_remote_time),
		cmocka_unit_test(the_last_user_counts_as_far_as_users_persist),
		cmocka_unit_test(differences_have_the_error_of_single_pages),
		cmocka_unit_test(a_node_without_faults_borrows_a_rate),
		cmocka_unit_test(without_any_touch_there_is_no_rate),
		cmocka_unit_test(shared_pages_are_used_from_everywhere),
		cmocka_unit_test(armed_time_counts_where_there_are_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
