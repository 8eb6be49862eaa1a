/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which names are one page: by page frame, and along moves. Frames are numbers. */
#include "replay/shared_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define VMA 0x7000000

struct seen {
	uint64_t leader_space;
	bool joined, parted;
};

static struct seen see(struct nrp_shared_pages *s, uint64_t space, uint64_t vfn, uint64_t frame,
		       bool shared)
{
	struct nrp_page_name name = { space, vfn };
	struct seen r;

	assert_int_equal(nrp_shared_pages_see(s, &name, frame, VMA, shared, &r.joined, &r.parted),
			 0);
	r.leader_space = name.space;
	return r;
}

static void moved(struct nrp_shared_pages *s, uint64_t space, uint64_t vfn)
{
	struct nrp_page_name name = { space, vfn };

	assert_int_equal(nrp_shared_pages_moved(s, &name, VMA), 0);
}

#define expect(got, space, is_joined, is_parted)                                                   \
	do {                                                                                       \
		struct seen r_ = got;                                                              \
		assert_int_equal(r_.leader_space, space);                                          \
		assert_int_equal(r_.joined, is_joined);                                            \
		assert_int_equal(r_.parted, is_parted);                                            \
	} while (0)

static void one_frame_in_two_address_spaces_is_one_page(void **state)
{
	struct nrp_shared_pages *s = nrp_shared_pages_new();

	(void)state;
	expect(see(s, 1, 10, 100, true), 1, false, false);
	expect(see(s, 2, 99, 100, true), 1, true, false);
	expect(see(s, 2, 99, 100, true), 1, false, false);
	/* Mapped once: the frame was freed and is somebody else's now. */
	expect(see(s, 3, 10, 100, false), 3, false, false);
	nrp_shared_pages_free(s);
}

static void a_move_is_followed_by_all_names(void **state)
{
	struct nrp_shared_pages *s = nrp_shared_pages_new();

	(void)state;
	see(s, 1, 10, 100, true);
	see(s, 2, 10, 100, true);
	moved(s, 1, 10);
	expect(see(s, 2, 10, 200, true), 1, false, false);
	expect(see(s, 1, 10, 200, true), 1, false, false);
	nrp_shared_pages_free(s);
}

/* Two processes pull the page to and fro: no frame is ever seen by both. */
static void a_page_on_the_move_is_known_by_its_mapping(void **state)
{
	struct nrp_shared_pages *s = nrp_shared_pages_new();

	(void)state;
	see(s, 1, 10, 100, true);
	moved(s, 1, 10);
	expect(see(s, 2, 10, 200, true), 1, true, false);
	moved(s, 1, 10);
	expect(see(s, 1, 10, 300, true), 1, false, false);
	/* Another page of the mapping is another page. */
	expect(see(s, 2, 11, 400, true), 2, false, false);
	nrp_shared_pages_free(s);
}

static void a_copy_on_write_parts_the_names(void **state)
{
	struct nrp_shared_pages *s = nrp_shared_pages_new();

	(void)state;
	see(s, 1, 10, 100, true);
	see(s, 2, 10, 100, true);
	see(s, 3, 10, 100, true);
	expect(see(s, 2, 10, 500, false), 2, false, true);
	expect(see(s, 3, 10, 100, true), 1, false, false);
	expect(see(s, 2, 10, 500, false), 2, false, false);
	nrp_shared_pages_free(s);
}

static void a_page_of_one_process_may_change_its_frame(void **state)
{
	struct nrp_shared_pages *s = nrp_shared_pages_new();

	(void)state;
	expect(see(s, 1, 10, 100, false), 1, false, false);
	expect(see(s, 1, 10, 200, false), 1, false, false);
	moved(s, 1, 10);
	expect(see(s, 1, 10, 300, false), 1, false, false);
	nrp_shared_pages_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_frame_in_two_address_spaces_is_one_page),
		cmocka_unit_test(a_move_is_followed_by_all_names),
		cmocka_unit_test(a_page_on_the_move_is_known_by_its_mapping),
		cmocka_unit_test(a_copy_on_write_parts_the_names),
		cmocka_unit_test(a_page_of_one_process_may_change_its_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
