/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts per address space, moves that are undone, and who faults on shared pages: small cases
 * counted by hand. Nodes 0 and 1; thread 1 runs on node 1, thread 2 on node 0.
 */
#include "replay/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define A UINT64_C(0xaa00)
#define B UINT64_C(0xbb00)
#define FRAME UINT64_C(0xfeed00)
#define PRIVATE_RW UINT64_C(0x100073)
#define SHARED_RW UINT64_C(0x1000fb)

static int16_t cpu_nid[2] = { 0, 1 };
static int64_t node_memkb[2] = { 1000000, 1000000 };

static struct nrp_host_facts host(void)
{
	struct nrp_host_facts f;

	nrp_host_facts_init(&f);
	f.cpu_nid = cpu_nid;
	f.nr_cpus = 2;
	f.node_memkb = node_memkb;
	f.nr_nodes = 2;
	f.page_size = 4096;
	f.huge_pages = 512;
	f.hz = 250;
	f.cpupid_bits = 14;
	return f;
}

static bool admit(void *context, uint64_t time, int nid, uint64_t pages)
{
	(void)time;
	(void)nid;
	(void)pages;
	return *(const bool *)context;
}

static const bool yes = true, no = false;

/* World 0 of lane 1 admits what the host did, world 1 nothing. */
static struct nrp_worlds *two_worlds(const struct nrp_host_facts *facts, bool shared)
{
	struct nrp_world_config config = {
		.lane = 1,
		.limiter = { .variant = NRP_RATELIMIT_NONE },
		.nr_nodes = 2,
		.admit = admit,
		.filter = NRP_FILTER_61,
		.filter_passes = true,
		.context = (void *)(uintptr_t)&yes,
		.unknown = NRP_UNKNOWN_EXPECTED,
	};
	struct nrp_world_config both[2] = { config, config };
	struct nrp_worlds *w;

	both[1].context = (void *)(uintptr_t)&no;
	assert_int_equal(nrp_worlds_new(&w, facts, NRP_FILTER_61, 60000, 0, shared, both, 2, NULL),
			 0);
	return w;
}

static struct nrp_hint_fault fault(uint64_t time, uint64_t mm, uint64_t page, int tid, int src,
				   bool moved)
{
	int this = tid == 1 ? 1 : 0;
	struct nrp_hint_fault f;

	memset(&f, 0, sizeof(f));
	f.null = ~UINT64_C(0);
	NRP_SET(&f, hint_fault, time, time);
	NRP_SET(&f, hint_fault, cpu, (uint32_t)this);
	NRP_SET(&f, hint_fault, tid, tid);
	NRP_SET(&f, hint_fault, mm, mm);
	NRP_SET(&f, hint_fault, addr, page * 4096);
	NRP_SET(&f, hint_fault, vm_flags, PRIVATE_RW);
	NRP_SET(&f, hint_fault, src_nid, (int16_t)src);
	NRP_SET(&f, hint_fault, this_nid, (int16_t)this);
	NRP_SET(&f, hint_fault, last_cpupid, 0x3fff);
	NRP_SET(&f, hint_fault, pages, 1);
	NRP_SET(&f, hint_fault, attempt, moved);
	if (moved) {
		NRP_SET(&f, hint_fault, attempt_delay, 0);
		NRP_SET(&f, hint_fault, attempt_nid, (int16_t)this);
		NRP_SET(&f, hint_fault, moved, 1);
	}
	return f;
}

static void feed(struct nrp_worlds *w, const struct nrp_hint_fault *f)
{
	struct nrp_fault_context context = { .refused = false };

	assert_int_equal(nrp_worlds_fault(w, f, &context), 0);
}

static void check_space(struct nrp_worlds *w, uint32_t space, int world, uint64_t mm,
			uint64_t faults, uint64_t moved)
{
	uint64_t got;
	struct nrp_space_count n = nrp_worlds_space_count(w, space, world, &got);

	assert_int_equal(got, mm);
	assert_int_equal(n.faults, faults);
	assert_int_equal(n.moved_pages, moved);
}

/* A: page 7 moves, is used locally, and page 8 moves; B between them: one page moves. */
static void feed_two_spaces(struct nrp_worlds *w)
{
	const struct nrp_hint_fault faults[] = {
		fault(1000, A, 7, 1, 0, true),
		fault(2000, B, 7, 1, 0, true),
		fault(3000, A, 7, 1, 1, false),
		fault(4000, A, 8, 1, 0, true),
	};

	for (size_t i = 0; i < 4; i++)
		feed(w, &faults[i]);
	assert_int_equal(nrp_worlds_finish(w, 5000), 0);
}

static void test_each_address_space_has_its_share(void **state)
{
	struct nrp_host_facts facts = host();
	struct nrp_worlds *w = two_worlds(&facts, false);

	(void)state;
	feed_two_spaces(w);
	assert_int_equal(nrp_worlds_nr_spaces(w), 2);
	check_space(w, 0, -1, A, 3, 2);
	check_space(w, 1, -1, B, 1, 1);
	check_space(w, 0, 0, A, 3, 2);
	check_space(w, 1, 0, B, 1, 1);
	/* Where nothing moves, the same faults are there: their pages are remote. */
	check_space(w, 0, 1, A, 3, 0);
	check_space(w, 1, 1, B, 1, 0);
	assert_int_equal(nrp_worlds_result(w, 0)->moved_pages, 3);
	assert_int_equal(nrp_worlds_result(w, 1)->moved_pages, 0);
	nrp_worlds_free(w);
}

/* A fault whose page is not known belongs to its address space, if that is known. */
static void test_untracked_faults_belong_to_their_address_space(void **state)
{
	struct nrp_host_facts facts = host();
	struct nrp_worlds *w = two_worlds(&facts, false);
	struct nrp_hint_fault f = fault(1000, A, 7, 1, 0, true);
	struct nrp_hint_fault lost = fault(2000, B, 7, 1, 0, true);

	(void)state;
	lost.null |= NRP_BIT(hint_fault, src_nid);
	feed(w, &f);
	feed(w, &lost);
	lost.null |= NRP_BIT(hint_fault, mm);
	feed(w, &lost);
	assert_int_equal(nrp_worlds_finish(w, 5000), 0);
	check_space(w, 0, -1, A, 1, 1);
	check_space(w, 1, -1, B, 1, 1);
	check_space(w, 0, 1, A, 1, 0);
	check_space(w, 1, 1, B, 1, 1);
	assert_int_equal(nrp_worlds_result(w, 1)->hint_faults, 3);
	nrp_worlds_free(w);
}

static void test_move_back_is_one_to_where_the_last_came_from(void **state)
{
	struct nrp_host_facts facts = host();
	struct nrp_worlds *w = two_worlds(&facts, false);
	const struct nrp_hint_fault faults[] = {
		fault(1000, A, 7, 1, 0, true),  /* 0 to 1 */
		fault(2000, A, 7, 1, 1, false), /* local */
		fault(3000, A, 7, 2, 1, true),  /* back to 0 */
		fault(4000, A, 7, 1, 0, true),  /* and to 1 again */
		fault(4500, A, 8, 2, 1, true),  /* another page's first */
	};

	(void)state;
	for (size_t i = 0; i < 5; i++)
		feed(w, &faults[i]);
	assert_int_equal(nrp_worlds_finish(w, 5000), 0);
	assert_int_equal(nrp_worlds_totals(w)->observed_moves, 4);
	assert_int_equal(nrp_worlds_totals(w)->moves_back, 2);
	assert_int_equal(nrp_worlds_totals(w)->moved_back_pages, 2);
	nrp_worlds_free(w);
}

/* ---- shared pages -------------------------------------------------------------------- */

static struct nrp_hint_fault shared_fault(uint64_t time, uint64_t mm, uint64_t page, int tid,
					  uint64_t frame, int mapcount)
{
	struct nrp_hint_fault f = fault(time, mm, page, tid, tid == 1, false);

	NRP_SET(&f, hint_fault, page, frame);
	NRP_SET(&f, hint_fault, mapcount, mapcount);
	return f;
}

/*
 * Frame 1 is mapped twice, by A and B, and used from both nodes. Frame 2 is mapped twice, but only
 * A, on node 1, was seen. Frame 3 is mapped once. Frame 4 is in a shared mapping.
 */
static void test_faulters_of_shared_pages_are_counted_under_all_names(void **state)
{
	struct nrp_host_facts facts = host();
	struct nrp_worlds *w = two_worlds(&facts, true);
	struct nrp_hint_fault faults[] = {
		shared_fault(1000, A, 7, 1, FRAME + 1, 1),
		shared_fault(1500, A, 7, 1, FRAME + 1, 1),
		shared_fault(2000, B, 7, 2, FRAME + 1, 1),
		shared_fault(3000, A, 8, 1, FRAME + 2, 1),
		shared_fault(3500, A, 9, 1, FRAME + 3, 0),
		shared_fault(4000, A, 10, 2, FRAME + 4, 0),
	};
	struct nrp_faulters n;

	(void)state;
	NRP_SET(&faults[5], hint_fault, vm_flags, SHARED_RW);
	for (size_t i = 0; i < 6; i++)
		feed(w, &faults[i]);
	assert_int_equal(nrp_worlds_finish(w, 5000), 0);
	n = nrp_worlds_faulters(w);
	assert_int_equal(n.of[0].pages, 0);
	assert_int_equal(n.of[1].pages, 2);
	assert_int_equal(n.of[1].faults, 2);
	assert_int_equal(n.of[2].pages, 1);
	assert_int_equal(n.of[2].faults, 3);
	nrp_worlds_free(w);
}

static void test_many_nodes_share_the_last_class(void **state)
{
	struct nrp_faulters n = { 0 };

	(void)state;
	nrp_faulters_add(&n, 0, 3);
	nrp_faulters_add(&n, 0x5, 2);
	nrp_faulters_add(&n, 0xffff, 4);
	nrp_faulters_add(&n, 0xfffff, 5);
	nrp_faulters_add(&n, 0x1, 0);
	assert_int_equal(n.of[0].faults, 3);
	assert_int_equal(n.of[1].pages, 0);
	assert_int_equal(n.of[2].pages, 1);
	assert_int_equal(n.of[16].pages, 2);
	assert_int_equal(n.of[16].faults, 9);
}

/* ---- processes ------------------------------------------------------------------------ */

/*
 * B waits for 30 ns for A's fault at 1000, perhaps for that at 4000 for 5 ns, for 7 ns for
 * compaction, and for 2 ns for nobody knows what.
 */
static void test_waits_are_those_of_attempts_that_a_world_makes(void **state)
{
	struct nrp_wait at[] = {
		{ .time = 1010,
		  .end_time = 1040,
		  .mm = B,
		  .cause = NRP_WAIT_HINT_FAULT,
		  .certainty = NRP_WAIT_EXACT },
		{ .time = 2500,
		  .end_time = 2507,
		  .mm = B,
		  .cause = NRP_WAIT_OTHER_MIGRATION,
		  .certainty = NRP_WAIT_EXACT },
		{ .time = 4010,
		  .end_time = 4015,
		  .mm = B,
		  .cause = NRP_WAIT_HINT_FAULT,
		  .certainty = NRP_WAIT_AMBIGUOUS },
		{ .time = 4500, .end_time = 4502, .mm = B, .cause = NRP_WAIT_UNATTRIBUTED },
	};
	struct nrp_wait_link link[] = { { 1000, 0, 1 }, { 4000, 2, 1 } };
	struct nrp_wait_process process[] = { { .mm = B, .waited = 4, .waited_ns = 44 } };
	struct nrp_waits waits = { .at = at,
				   .count = 4,
				   .link = link,
				   .nr_links = 2,
				   .process = process,
				   .nr_processes = 1 };
	struct nrp_host_facts facts = host();
	struct nrp_worlds *w = two_worlds(&facts, false);
	const int first[2] = { -1, 0 }, nr[2] = { 0, 2 };
	struct nrp_kept_waits *kept;
	struct nrp_processes p;

	(void)state;
	feed_two_spaces(w);
	assert_int_equal(nrp_kept_waits_new(&kept, &waits), 0);
	nrp_kept_waits_fault(kept, 1000, 1, 0x1);
	nrp_kept_waits_fault(kept, 4000, 1, 0x3);
	nrp_kept_waits_fault(kept, 4000, 2, 0x3); /* made nobody wait */
	assert_int_equal(nrp_processes_collect(&p, w, &waits, kept, first, nr), 0);
	assert_int_equal(p.count, 2);
	assert_int_equal(p.at[0].mm, A);
	assert_int_equal(p.at[1].mm, B);
	assert_int_equal(p.at[0].record[NRP_PROCESS_FAULTS], 3);
	assert_int_equal(p.at[0].record[NRP_PROCESS_WAITS], 0);
	assert_int_equal(p.at[1].record[NRP_PROCESS_MOVED], 1);
	assert_int_equal(p.at[1].record[NRP_PROCESS_WAITS], 4);
	assert_int_equal(p.at[1].record[NRP_PROCESS_WAIT_NS], 44);
	/* World 0: the first and the other migration; world 1: only that. */
	assert_int_equal(p.at[1].lane[1].value[NRP_PROCESS_WAITS], 2);
	assert_int_equal(p.at[1].lane[1].value[NRP_PROCESS_WAIT_NS], 37);
	assert_int_equal(p.at[1].lane[1].least[NRP_PROCESS_WAITS], 1);
	assert_int_equal(p.at[1].lane[1].least[NRP_PROCESS_WAIT_NS], 7);
	assert_int_equal(p.at[1].lane[1].most[NRP_PROCESS_WAITS], 4);
	assert_int_equal(p.at[1].lane[1].most[NRP_PROCESS_WAIT_NS], 44);
	assert_int_equal(p.at[0].lane[1].least[NRP_PROCESS_MOVED], 0);
	assert_int_equal(p.at[0].lane[1].most[NRP_PROCESS_MOVED], 2);
	assert_int_equal(p.least[1][NRP_PROCESS_MOVED], 0);
	assert_int_equal(p.most[1][NRP_PROCESS_MOVED], 3);
	assert_int_equal(p.most[1][NRP_PROCESS_FAULTS], 4);
	nrp_processes_clear(&p);
	nrp_kept_waits_free(kept);
	nrp_worlds_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_address_space_has_its_share),
		cmocka_unit_test(test_untracked_faults_belong_to_their_address_space),
		cmocka_unit_test(test_move_back_is_one_to_where_the_last_came_from),
		cmocka_unit_test(test_faulters_of_shared_pages_are_counted_under_all_names),
		cmocka_unit_test(test_many_nodes_share_the_last_class),
		cmocka_unit_test(test_waits_are_those_of_attempts_that_a_world_makes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
