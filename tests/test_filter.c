/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.filter against the vectors F1..F12 of spec migrate.md 2.10, typed in from the table, and
 * against hand-made calls for the rules that no capture shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/policies/migrate_filter.h"

#define UNSET 0x3fffu
#define NR_CPUS 8

/* CPUs 0-3 are node 0, 4-7 node 1; NR_CPUS_BITS 6. */
static const int16_t cpu_nid[NR_CPUS] = { 0, 0, 0, 0, 1, 1, 1, 1 };

static const struct nrp_filter_host plain = {
	.cpupid_bits = 14, .cpu_nid = cpu_nid, .nr_cpus = NR_CPUS, .tiering = false
};
static const struct nrp_filter_host tiered = {
	.cpupid_bits = 14, .cpu_nid = cpu_nid, .nr_cpus = NR_CPUS, .tiering = true
};

/* ---- a page and the tasks that touch it --------------------------------------------- */

struct task {
	int32_t tid;
	int preferred_nid;
	int32_t scan_seq;
	bool grouped;
	uint64_t cpu[2], mem[2]; /* C[], M[] */
};

struct page {
	enum nrp_filter_variant variant;
	uint32_t last_cpupid;
	int nid;
	int moves;
	int remote_faults;
};

/* What a hinting fault did. ANY: the table names no rule. */
#define ANY NRP_NR_FILTER_RULES
struct effect {
	bool moved;
	enum nrp_filter_rule rule;
};
#define STAYED(r)                                                                                  \
	{                                                                                          \
		.moved = false, .rule = (r)                                                        \
	}
#define MOVED(r)                                                                                   \
	{                                                                                          \
		.moved = true, .rule = (r)                                                         \
	}

static struct nrp_filter_call call_of(const struct page *page, const struct task *task, int cpu)
{
	int dst = cpu_nid[cpu];

	return (struct nrp_filter_call){
		.tid = task->tid,
		.src_nid = page->nid,
		.dst_nid = dst,
		.last_cpupid = page->last_cpupid,
		.preferred_nid = task->preferred_nid,
		.scan_seq = task->scan_seq,
		.grouped = task->grouped,
		.weights_known = task->grouped,
		.cpu_src = task->cpu[page->nid],
		.cpu_dst = task->cpu[dst],
		.mem_src = task->mem[page->nid],
		.mem_dst = task->mem[dst],
	};
}

/* One hinting fault under the default memory policy: spec 2.3, 2.4; every move succeeds. */
static struct effect touch(struct page *page, const struct task *task, int cpu)
{
	struct nrp_filter_call call = call_of(page, task, cpu);
	struct nrp_filter_result result;

	if (call.dst_nid != page->nid)
		page->remote_faults++;
	if (!nrp_filter_is_called(page->variant, page->nid, call.dst_nid))
		return (struct effect)STAYED(ANY);

	result = nrp_filter_decide(page->variant, &plain, &call);
	assert_int_not_equal(result.answer, NRP_FILTER_UNDECIDED);
	if (nrp_filter_exchanges(result.rule))
		page->last_cpupid = nrp_filter_cpupid(&plain, cpu, task->tid);
	if (result.answer == NRP_FILTER_STAY || call.dst_nid == page->nid)
		return (struct effect)STAYED(result.rule);

	page->nid = call.dst_nid;
	page->moves++;
	return (struct effect)MOVED(result.rule);
}

struct event {
	const struct task *task;
	int cpu;
};

struct expected {
	struct effect effects[8];
	int moves, remote_faults, nid;
	uint32_t last_cpupid; /* 0: the table does not say */
};

struct vector {
	uint32_t last_cpupid;
	int nr_events;
	struct event events[8];
	struct expected f418, f510, f61;
};

static void check(const struct vector *vector, enum nrp_filter_variant variant,
		  const struct expected *expected)
{
	struct page page = { .variant = variant, .last_cpupid = vector->last_cpupid };

	for (int i = 0; i < vector->nr_events; i++) {
		const struct event *event = &vector->events[i];
		struct effect effect = touch(&page, event->task, event->cpu);

		assert_int_equal(effect.moved, expected->effects[i].moved);
		if (expected->effects[i].rule != ANY)
			assert_int_equal(effect.rule, expected->effects[i].rule);
	}
	assert_int_equal(page.moves, expected->moves);
	assert_int_equal(page.remote_faults, expected->remote_faults);
	assert_int_equal(page.nid, expected->nid);
	if (expected->last_cpupid)
		assert_int_equal(page.last_cpupid, expected->last_cpupid);
}

static void check_vector(const struct vector *vector)
{
	check(vector, NRP_FILTER_418, &vector->f418);
	check(vector, NRP_FILTER_419, &vector->f510);
	check(vector, NRP_FILTER_61, &vector->f61);
	check(vector, NRP_FILTER_612, &vector->f61);
}

/* ---- F1..F12 ------------------------------------------------------------------------ */

static void f1_first_touch_of_an_untouched_page_moves_it(void **state)
{
	static const struct task task = { .tid = 1000, .preferred_nid = -1, .scan_seq = 0 };
	static const struct vector f1 = {
		.last_cpupid = UNSET,
		.nr_events = 1,
		.events = { { &task, 4 } },
		.f418 = { { MOVED(NRP_FILTER_D7) }, 1, 1, 1, 0x4e8 },
		.f510 = { { MOVED(NRP_FILTER_D4) }, 1, 1, 1, 0x4e8 },
		.f61 = { { MOVED(NRP_FILTER_D4) }, 1, 1, 1, 0x4e8 },
	};

	(void)state;
	check_vector(&f1);
}

static void f2_young_task_pulls_its_own_page_at_once_since_419(void **state)
{
	static const struct task task = { .tid = 1000, .preferred_nid = 0, .scan_seq = 3 };
	static const struct vector f2 = {
		.last_cpupid = 0x0e8,
		.nr_events = 2,
		.events = { { &task, 4 }, { &task, 4 } },
		.f418 = { { STAYED(NRP_FILTER_D5), MOVED(NRP_FILTER_D6) }, 1, 2, 1, 0 },
		.f510 = { { MOVED(NRP_FILTER_D4), STAYED(ANY) }, 1, 1, 1, 0 },
		.f61 = { { MOVED(NRP_FILTER_D4), STAYED(ANY) }, 1, 1, 1, 0 },
	};

	(void)state;
	check_vector(&f2);
}

static void f3_older_task_must_come_twice(void **state)
{
	static const struct task task = { .tid = 1000, .preferred_nid = 0, .scan_seq = 5 };
	static const struct vector f3 = {
		.last_cpupid = 0x0e8,
		.nr_events = 2,
		.events = { { &task, 4 }, { &task, 4 } },
		.f418 = { { STAYED(NRP_FILTER_D5), MOVED(NRP_FILTER_D6) }, 1, 2, 1, 0 },
		.f510 = { { STAYED(NRP_FILTER_D5), MOVED(NRP_FILTER_D6) }, 1, 2, 1, 0 },
		.f61 = { { STAYED(NRP_FILTER_D5), MOVED(NRP_FILTER_D6) }, 1, 2, 1, 0 },
	};

	(void)state;
	check_vector(&f3);
}

static void f4_young_task_overrules_its_group_since_419(void **state)
{
	static const struct task task = {
		.tid = 1000,
		.preferred_nid = 1,
		.scan_seq = 4,
		.grouped = true,
		.cpu = { 100, 100 },
		.mem = { 100, 100 },
	};
	static const struct vector f4 = {
		.last_cpupid = UNSET,
		.nr_events = 1,
		.events = { { &task, 4 } },
		.f418 = { { STAYED(NRP_FILTER_D9) }, 0, 1, 0, 0 },
		.f510 = { { MOVED(NRP_FILTER_D4) }, 1, 1, 1, 0 },
		.f61 = { { MOVED(NRP_FILTER_D4) }, 1, 1, 1, 0 },
	};

	(void)state;
	check_vector(&f4);
}

static void f5_toucher_with_tid_511_counts_as_nobody(void **state)
{
	static const struct task task = { .tid = 1000, .preferred_nid = 1, .scan_seq = 9 };
	static const struct vector f5 = {
		.last_cpupid = 0x0ff,
		.nr_events = 1,
		.events = { { &task, 4 } },
		.f418 = { { MOVED(NRP_FILTER_D7) }, 1, 1, 1, 0 },
		.f510 = { { MOVED(NRP_FILTER_D7) }, 1, 1, 1, 0 },
		.f61 = { { MOVED(NRP_FILTER_D7) }, 1, 1, 1, 0 },
	};

	(void)state;
	check_vector(&f5);
}

static const struct task task_a = { .tid = 1001, .preferred_nid = 0, .scan_seq = 10 };
static const struct task task_b = { .tid = 1002, .preferred_nid = 1, .scan_seq = 10 };

static void f6_local_faults_leave_no_mark_since_61(void **state)
{
	static const struct vector f6 = {
		.last_cpupid = UNSET,
		.nr_events = 6,
		.events = { { &task_a, 0 },
			    { &task_a, 0 },
			    { &task_b, 4 },
			    { &task_b, 4 },
			    { &task_a, 0 },
			    { &task_a, 0 } },
		.f418 = { { STAYED(ANY), STAYED(ANY), STAYED(NRP_FILTER_D5), MOVED(ANY),
			    STAYED(NRP_FILTER_D5), MOVED(ANY) },
			  2,
			  4,
			  0,
			  0 },
		.f510 = { { STAYED(ANY), STAYED(ANY), STAYED(NRP_FILTER_D5), MOVED(ANY),
			    STAYED(NRP_FILTER_D5), MOVED(ANY) },
			  2,
			  4,
			  0,
			  0 },
		.f61 = { { STAYED(ANY), STAYED(ANY), MOVED(NRP_FILTER_D7), STAYED(ANY),
			   STAYED(NRP_FILTER_D5), MOVED(ANY) },
			 2,
			 3,
			 0,
			 0 },
	};

	(void)state;
	check_vector(&f6);
}

static void f7_alternating_users_play_ping_pong_only_since_61(void **state)
{
	/* The table gives the totals; the moves of 6.1 follow from the rules: B2, A5, B8. */
	static const struct vector f7 = {
		.last_cpupid = UNSET,
		.nr_events = 8,
		.events = { { &task_a, 0 },
			    { &task_b, 4 },
			    { &task_a, 0 },
			    { &task_b, 4 },
			    { &task_a, 0 },
			    { &task_b, 4 },
			    { &task_a, 0 },
			    { &task_b, 4 } },
		.f418 = { { STAYED(ANY), STAYED(ANY), STAYED(ANY), STAYED(ANY), STAYED(ANY),
			    STAYED(ANY), STAYED(ANY), STAYED(ANY) },
			  0,
			  4,
			  0,
			  0x4ea },
		.f510 = { { STAYED(ANY), STAYED(ANY), STAYED(ANY), STAYED(ANY), STAYED(ANY),
			    STAYED(ANY), STAYED(ANY), STAYED(ANY) },
			  0,
			  4,
			  0,
			  0x4ea },
		.f61 = { { STAYED(ANY), MOVED(NRP_FILTER_D7), STAYED(NRP_FILTER_D5), STAYED(ANY),
			   MOVED(NRP_FILTER_D6), STAYED(NRP_FILTER_D5), STAYED(ANY),
			   MOVED(NRP_FILTER_D6) },
			 3,
			 5,
			 1,
			 0x4ea },
	};

	(void)state;
	check_vector(&f7);
}

/* F8..F11: tid 1003 on CPU 4 after tid 1002 on CPU 5; all columns agree. */
static void check_group(uint64_t c0, uint64_t c1, uint64_t m0, uint64_t m1, bool moved,
			enum nrp_filter_rule rule)
{
	const struct task task = {
		.tid = 1003,
		.preferred_nid = 1,
		.scan_seq = 10,
		.grouped = true,
		.cpu = { c0, c1 },
		.mem = { m0, m1 },
	};
	const struct expected expected = {
		.effects = { { .moved = moved, .rule = rule } },
		.moves = moved,
		.remote_faults = 1,
		.nid = moved,
	};
	const struct vector vector = {
		.last_cpupid = 0x5ea,
		.nr_events = 1,
		.events = { { &task, 4 } },
		.f418 = expected,
		.f510 = expected,
		.f61 = expected,
	};

	check_vector(&vector);
}

static void f8_group_that_left_the_source_node_moves(void **state)
{
	(void)state;
	check_group(100, 301, 500, 1, true, NRP_FILTER_D8);
}

static void f9_group_use_must_exceed_four_thirds(void **state)
{
	(void)state;
	check_group(100, 100, 500, 374, true, NRP_FILTER_D9);
	check_group(100, 100, 500, 375, false, NRP_FILTER_D9);
}

static void f10_group_without_weights_stays(void **state)
{
	(void)state;
	check_group(0, 0, 0, 0, false, NRP_FILTER_D9);
}

static void f11_exactly_three_times_is_not_enough(void **state)
{
	(void)state;
	check_group(100, 300, 10, 1000, false, NRP_FILTER_D9);
}

static void f12_old_task_without_preferred_node_counts_as_young_since_419(void **state)
{
	static const struct task task = { .tid = 1000, .preferred_nid = -1, .scan_seq = 50 };
	static const struct vector f12 = {
		.last_cpupid = 0x0e8,
		.nr_events = 1,
		.events = { { &task, 4 } },
		.f418 = { { STAYED(NRP_FILTER_D5) }, 0, 1, 0, 0 },
		.f510 = { { MOVED(NRP_FILTER_D4) }, 1, 1, 1, 0 },
		.f61 = { { MOVED(NRP_FILTER_D4) }, 1, 1, 1, 0 },
	};

	(void)state;
	check_vector(&f12);
}

/* ---- single calls ------------------------------------------------------------------- */

/* A settled task (no D4) on node 1 that faults on a page of node 0 which B left from node 1. */
static struct nrp_filter_call settled_call(void)
{
	return (struct nrp_filter_call){
		.tid = 1000,
		.src_nid = 0,
		.dst_nid = 1,
		.last_cpupid = 0x4ea,
		.preferred_nid = 1,
		.scan_seq = 9,
	};
}

#define assert_decides(variant, host, call, want_answer, want_rule)                                \
	do {                                                                                       \
		struct nrp_filter_result got_ = nrp_filter_decide((variant), (host), (call));      \
                                                                                                   \
		assert_int_equal(got_.answer, (want_answer));                                      \
		assert_int_equal(got_.rule, (want_rule));                                          \
	} while (0)

#define assert_all_decide(host, call, want_answer, want_rule)                                      \
	for (int v_ = NRP_FILTER_418; v_ <= NRP_FILTER_612; v_++)                                  \
	assert_decides((enum nrp_filter_variant)v_, (host), (call), (want_answer), (want_rule))

static void node_without_memory_is_refused_only_by_612(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);

	call.dst_without_memory = true;
	assert_decides(NRP_FILTER_418, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	assert_decides(NRP_FILTER_419, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	assert_decides(NRP_FILTER_61, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	assert_decides(NRP_FILTER_612, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D0);

	/* D0 comes before D1. */
	call.src_slow_tier = true;
	assert_decides(NRP_FILTER_61, &tiered, &call, NRP_FILTER_UNDECIDED, NRP_FILTER_D1);
	assert_decides(NRP_FILTER_612, &tiered, &call, NRP_FILTER_STAY, NRP_FILTER_D0);
}

static void slow_page_with_tiering_is_the_promotion_policys_since_61(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	call.src_slow_tier = true;
	assert_decides(NRP_FILTER_418, &tiered, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	assert_decides(NRP_FILTER_419, &tiered, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	assert_decides(NRP_FILTER_61, &tiered, &call, NRP_FILTER_UNDECIDED, NRP_FILTER_D1);
	assert_decides(NRP_FILTER_612, &tiered, &call, NRP_FILTER_UNDECIDED, NRP_FILTER_D1);

	/* Tiering off and the last access valid: the slow node is a node like others. */
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);

	/* Tiering on, page on a fast node. */
	call.src_slow_tier = false;
	assert_all_decide(&tiered, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);

	/* An unset cpupid does not matter on a fast node, nor a young task on a slow one. */
	call.last_cpupid = UNSET;
	assert_all_decide(&tiered, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	call.src_slow_tier = true;
	call.preferred_nid = -1;
	assert_decides(NRP_FILTER_61, &tiered, &call, NRP_FILTER_UNDECIDED, NRP_FILTER_D1);
	assert_decides(NRP_FILTER_612, &tiered, &call, NRP_FILTER_UNDECIDED, NRP_FILTER_D1);
}

static void slow_page_without_valid_last_access_stays_since_61(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	call.src_slow_tier = true;
	call.last_cpupid = UNSET; /* cpu part 63 */
	assert_decides(NRP_FILTER_418, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	assert_decides(NRP_FILTER_419, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	assert_decides(NRP_FILTER_61, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D3);
	assert_decides(NRP_FILTER_612, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D3);

	/* D3 comes before D4. */
	call.preferred_nid = -1;
	assert_decides(NRP_FILTER_418, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	assert_decides(NRP_FILTER_419, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D4);
	assert_decides(NRP_FILTER_61, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D3);
	assert_decides(NRP_FILTER_612, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D3);

	/* On a fast node the same page moves. */
	call.src_slow_tier = false;
	call.preferred_nid = 1;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
}

static void last_access_is_valid_up_to_the_last_cpu(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	call.src_slow_tier = true;

	call.last_cpupid = 0x7ea; /* CPU 7 of 8 */
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	call.last_cpupid = 0x0ff; /* CPU 0; valid, though the pid byte looks unset */
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);

	call.last_cpupid = 0x8ea; /* CPU 8 of 8; before D3 existed, a node that is not the target */
	assert_decides(NRP_FILTER_418, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D5);
	assert_decides(NRP_FILTER_419, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D5);
	assert_decides(NRP_FILTER_61, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D3);
	assert_decides(NRP_FILTER_612, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D3);
}

static void cpu_of_unknown_node_is_not_the_target(void **state)
{
	static const int16_t holes[NR_CPUS] = { 0, 0, 0, 0, 1, 1, -1, 1 };
	static const struct nrp_filter_host host = { .cpupid_bits = 14,
						     .cpu_nid = holes,
						     .nr_cpus = NR_CPUS };
	static const struct nrp_filter_host no_cpus = { .cpupid_bits = 14 };
	struct nrp_filter_call call = settled_call();

	(void)state;
	call.last_cpupid = 0x6ea; /* CPU 6, node unknown */
	assert_all_decide(&host, &call, NRP_FILTER_STAY, NRP_FILTER_D5);
	call.last_cpupid = 0x5ea;
	assert_all_decide(&host, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
	call.last_cpupid = 0x9ea; /* CPU 9 of 8 */
	assert_all_decide(&host, &call, NRP_FILTER_STAY, NRP_FILTER_D5);

	call.last_cpupid = 0x4ea;
	assert_all_decide(&no_cpus, &call, NRP_FILTER_STAY, NRP_FILTER_D5);
	call.last_cpupid = UNSET;
	assert_all_decide(&no_cpus, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
}

static void task_is_young_up_to_the_fourth_scan(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	call.last_cpupid = 0x0e8; /* own page, node 0 */
	call.scan_seq = 4;
	assert_decides(NRP_FILTER_418, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D5);
	assert_decides(NRP_FILTER_419, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D4);
	assert_decides(NRP_FILTER_61, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D4);
	assert_decides(NRP_FILTER_612, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D4);
	call.scan_seq = 5;
	assert_all_decide(&plain, &call, NRP_FILTER_STAY, NRP_FILTER_D5);

	/* A young task does not pull what another one touched elsewhere. */
	call.scan_seq = 0;
	call.preferred_nid = -1;
	call.last_cpupid = 0x0ea;
	assert_all_decide(&plain, &call, NRP_FILTER_STAY, NRP_FILTER_D5);
}

static void own_page_of_tid_255_mod_256_counts_as_private(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	/* tid 767: "nobody" matches it, so D6 answers before the group is asked. */
	call.tid = 767;
	call.grouped = true;
	call.last_cpupid = UNSET;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D6);

	/* Its own mark from the other node never counts as another node's access. */
	call.last_cpupid = 0x0ff;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D6);

	/* Nor does anybody else's: tid 1000 pulls what tid 511 touched on node 0. */
	call.tid = 1000;
	call.grouped = false;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);

	/* One less is an ordinary tid: 1022 left 0xfe on CPU 0. */
	call.last_cpupid = 0x0fe;
	assert_all_decide(&plain, &call, NRP_FILTER_STAY, NRP_FILTER_D5);
}

static void tids_256_apart_are_taken_for_one_task(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	call.grouped = true;
	call.weights_known = true; /* all zero: the group would say "stay" */

	call.last_cpupid = 0x4e8; /* tid 1000 on CPU 4 */
	call.tid = 744;           /* 1000 - 256 */
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D6);
	call.tid = 745;
	assert_all_decide(&plain, &call, NRP_FILTER_STAY, NRP_FILTER_D9);

	/* The node is asked first, so a collision from the other node changes nothing ... */
	call.last_cpupid = 0x0e8;
	call.tid = 744;
	assert_all_decide(&plain, &call, NRP_FILTER_STAY, NRP_FILTER_D5);

	/* ... except for a young task. */
	call.preferred_nid = -1;
	assert_decides(NRP_FILTER_418, &plain, &call, NRP_FILTER_STAY, NRP_FILTER_D5);
	assert_decides(NRP_FILTER_419, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D4);
	assert_decides(NRP_FILTER_61, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D4);
	assert_decides(NRP_FILTER_612, &plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D4);
}

static void group_decision_without_weights_is_undecided(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	call.grouped = true;
	call.cpu_dst = 1000; /* not valid, must not be looked at */
	assert_all_decide(&plain, &call, NRP_FILTER_UNDECIDED, NRP_FILTER_D9);
	call.weights_known = true;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D8);

	/* No group, no weights needed. */
	call.grouped = false;
	call.weights_known = false;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D7);
}

static void group_products_wrap_like_unsigned_long(void **state)
{
	struct nrp_filter_call call = settled_call();

	(void)state;
	call.grouped = true;
	call.weights_known = true;

	/* 3 * 0x5555555555555556 = 2^64 + 2 */
	call.cpu_src = UINT64_C(0x5555555555555556);
	call.cpu_dst = 3;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D8);

	/* 2 > 2 is false; then 2 * 1 * 3 = 6 > 0x5555555555555556 * 2^62 * 4 = 0 mod 2^64 */
	call.cpu_dst = 2;
	call.mem_src = 1;
	call.mem_dst = UINT64_C(1) << 62;
	assert_all_decide(&plain, &call, NRP_FILTER_MOVE, NRP_FILTER_D9);
}

static void local_faults_reach_the_filter_up_to_510(void **state)
{
	(void)state;
	assert_true(nrp_filter_is_called(NRP_FILTER_418, 1, 1));
	assert_true(nrp_filter_is_called(NRP_FILTER_419, 1, 1));
	assert_false(nrp_filter_is_called(NRP_FILTER_61, 1, 1));
	assert_false(nrp_filter_is_called(NRP_FILTER_612, 1, 1));
	for (int v = NRP_FILTER_418; v <= NRP_FILTER_612; v++)
		assert_true(nrp_filter_is_called((enum nrp_filter_variant)v, 0, 1));
}

static void only_d0_and_d1_leave_the_cpupid_alone(void **state)
{
	(void)state;
	for (int r = NRP_FILTER_D0; r <= NRP_FILTER_D9; r++)
		assert_int_equal(nrp_filter_exchanges((enum nrp_filter_rule)r),
				 r != NRP_FILTER_D0 && r != NRP_FILTER_D1);
}

static void cpupid_is_cpu_and_pid_byte(void **state)
{
	static const struct nrp_filter_host bits16 = { .cpupid_bits = 16 };
	static const struct nrp_filter_host bits21 = { .cpupid_bits = 21 };
	static const struct nrp_filter_host bits32 = { .cpupid_bits = 32 };

	(void)state;
	assert_int_equal(nrp_filter_cpupid(&plain, 0, 1000), 0x0e8);
	assert_int_equal(nrp_filter_cpupid(&plain, 4, 1002), 0x4ea);
	assert_int_equal(nrp_filter_cpupid(&plain, 63, 255), UNSET);
	assert_int_equal(nrp_filter_cpupid(&plain, 64, 1), 0x001); /* 6 CPU bits */
	assert_int_equal(nrp_filter_cpupid(&bits21, 4096, 4194303), 0x1000ff);

	assert_int_equal(nrp_filter_cpupid_unset(&plain), 0x3fff);
	assert_int_equal(nrp_filter_cpupid_unset(&bits16), 0xffff);
	assert_int_equal(nrp_filter_cpupid_unset(&bits21), 0x1fffff);
	assert_int_equal(nrp_filter_cpupid_unset(&bits32), UINT32_MAX);
}

static void names_are_those_of_the_command_line(void **state)
{
	(void)state;
	assert_string_equal(nrp_filter_variant_name(NRP_FILTER_418), "4.18");
	assert_string_equal(nrp_filter_variant_name(NRP_FILTER_419), "4.19");
	assert_string_equal(nrp_filter_variant_name(NRP_FILTER_61), "6.1");
	assert_string_equal(nrp_filter_variant_name(NRP_FILTER_612), "6.12");
	assert_null(nrp_filter_variant_name(NRP_NR_FILTER_VARIANTS));
	assert_string_equal(nrp_filter_rule_name(NRP_FILTER_D0), "D0");
	assert_string_equal(nrp_filter_rule_name(NRP_FILTER_D9), "D9");
	assert_null(nrp_filter_rule_name(NRP_NR_FILTER_RULES));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(f1_first_touch_of_an_untouched_page_moves_it),
		cmocka_unit_test(f2_young_task_pulls_its_own_page_at_once_since_419),
		cmocka_unit_test(f3_older_task_must_come_twice),
		cmocka_unit_test(f4_young_task_overrules_its_group_since_419),
		cmocka_unit_test(f5_toucher_with_tid_511_counts_as_nobody),
		cmocka_unit_test(f6_local_faults_leave_no_mark_since_61),
		cmocka_unit_test(f7_alternating_users_play_ping_pong_only_since_61),
		cmocka_unit_test(f8_group_that_left_the_source_node_moves),
		cmocka_unit_test(f9_group_use_must_exceed_four_thirds),
		cmocka_unit_test(f10_group_without_weights_stays),
		cmocka_unit_test(f11_exactly_three_times_is_not_enough),
		cmocka_unit_test(f12_old_task_without_preferred_node_counts_as_young_since_419),
		cmocka_unit_test(node_without_memory_is_refused_only_by_612),
		cmocka_unit_test(slow_page_with_tiering_is_the_promotion_policys_since_61),
		cmocka_unit_test(slow_page_without_valid_last_access_stays_since_61),
		cmocka_unit_test(last_access_is_valid_up_to_the_last_cpu),
		cmocka_unit_test(cpu_of_unknown_node_is_not_the_target),
		cmocka_unit_test(task_is_young_up_to_the_fourth_scan),
		cmocka_unit_test(own_page_of_tid_255_mod_256_counts_as_private),
		cmocka_unit_test(tids_256_apart_are_taken_for_one_task),
		cmocka_unit_test(group_decision_without_weights_is_undecided),
		cmocka_unit_test(group_products_wrap_like_unsigned_long),
		cmocka_unit_test(local_faults_reach_the_filter_up_to_510),
		cmocka_unit_test(only_d0_and_d1_leave_the_cpupid_alone),
		cmocka_unit_test(cpupid_is_cpu_and_pid_byte),
		cmocka_unit_test(names_are_those_of_the_command_line),
	};

	return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
