/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accounting of hinting faults against the table of spec scan.md 11. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/policies/task_fault.h"

/* Two nodes, cpupids of 21 bits; the task is 1000, whose byte is 232. */
#define NODES 2
#define UNSET ((1u << 21) - 1)
#define TID 1000
#define OTHERS_CPUPID(byte) (3u << 8 | (byte))

/* Flags of task_numa_fault(). */
#define MIGRATED 0x01
#define FAULT_LOCAL 0x08
#define MIGRATE_FAIL 0x10

struct row {
	uint32_t last_cpupid, mem_nid, pages, flags;
	bool private;
	uint64_t membuf[4], cpubuf[4], locality[3]; /* remote, local, failed */
};

static const struct row rows[] = {
	{ UNSET, 0, 1, 0x0a, true, { 0, 1, 0, 0 }, { 0, 1, 0, 0 }, { 0, 1, 0 } },
	{ OTHERS_CPUPID(232), 1, 1, 0x02, true, { 0, 1, 0, 1 }, { 0, 2, 0, 0 }, { 1, 1, 0 } },
	{ OTHERS_CPUPID(17), 1, 1, 0x02, false, { 0, 1, 1, 1 }, { 1, 2, 0, 0 }, { 2, 1, 0 } },
	/* Moved here, and still a remote fault. */
	{ OTHERS_CPUPID(232), 0, 1, 0x01, true, { 0, 2, 1, 1 }, { 1, 3, 0, 0 }, { 3, 1, 0 } },
	{ OTHERS_CPUPID(232), 1, 1, 0x10, true, { 0, 2, 1, 2 }, { 1, 4, 0, 0 }, { 4, 1, 1 } },
	{ OTHERS_CPUPID(232),
	  0,
	  512,
	  0x08,
	  true,
	  { 0, 514, 1, 2 },
	  { 1, 516, 0, 0 },
	  { 4, 513, 1 } },
};

static void assert_counters(const uint64_t *at, enum nrp_fault_stat stat, const uint64_t *expected)
{
	for (uint32_t nid = 0; nid < NODES; nid++)
		for (int private = 0; private < 2; private ++)
			assert_int_equal(at[nrp_fault_index(NODES, stat, nid, private)],
					 expected[2 * nid + (uint32_t) private]);
}

static void add(struct nrp_task_faults *task, const struct row *r)
{
	struct nrp_fault_report report = {
		.mem_nid = r->mem_nid,
		.pages = r->pages,
		.private = nrp_fault_is_private(r->last_cpupid, UNSET, TID),
		.local = r->flags & FAULT_LOCAL,
		.migrated = r->flags & MIGRATED,
		.failed = r->flags & MIGRATE_FAIL,
	};

	assert_int_equal(report.private, r->private);
	nrp_task_fault_add(task, &report);
	assert_counters(task->at, NRP_STAT_MEMBUF, r->membuf);
	assert_counters(task->at, NRP_STAT_CPUBUF, r->cpubuf);
	assert_int_equal(task->scan.remote, r->locality[0]);
	assert_int_equal(task->scan.local, r->locality[1]);
	assert_int_equal(task->scan.failed, r->locality[2]);
}

static void add_all(struct nrp_task_faults *task)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add(task, &rows[i]);
}

static void test_faults_are_counted_by_node_and_owner(void **state)
{
	uint64_t at[NRP_TASK_FAULT_COUNTERS(NODES)] = { 0 };
	struct nrp_task_faults task = { .at = at, .nr_nodes = NODES };

	(void)state;
	/* The order of the kernel's array: MEMBUF at 8, CPUBUF at 12. */
	assert_int_equal(nrp_fault_index(NODES, NRP_STAT_MEMBUF, 0, false), 8);
	assert_int_equal(nrp_fault_index(NODES, NRP_STAT_CPUBUF, 0, false), 12);
	add_all(&task);
	assert_int_equal(task.migrated, 1);
	assert_int_equal(task.total, 0);
}

static void test_placement_takes_the_buffers_into_the_averages(void **state)
{
	static const uint64_t empty[4] = { 0 }, mem[4] = { 0, 514, 1, 2 }, cpu[4] = { 63, 32640 };
	static const uint64_t next_mem[4] = { 0, 257, 1, 1 }, next_cpu[4] = { 32, 16320 };
	uint64_t at[NRP_TASK_FAULT_COUNTERS(NODES)] = { 0 };
	struct nrp_task_faults task = { .at = at,
					.nr_nodes = NODES,
					.scan = { .period_ms = 1000, .period_max_ms = 60000 } };
	struct nrp_placement p;

	(void)state;
	add_all(&task);
	p = nrp_task_fault_place(&task, 500000000, 1000000000);
	assert_int_equal(p.shared, 1);
	assert_int_equal(p.private, 516);
	assert_int_equal(p.preferred_nid, 0);
	assert_int_equal(task.total, 517);
	assert_counters(at, NRP_STAT_MEM, mem);
	assert_counters(at, NRP_STAT_CPU, cpu);
	assert_counters(at, NRP_STAT_MEMBUF, empty);
	assert_counters(at, NRP_STAT_CPUBUF, empty);
	/* The failed migration: early, and the counters stay. */
	assert_int_equal(
		nrp_scan_adapt(&task.scan, NRP_PERIOD_RULES, p.shared, p.private, 250, 15000),
		NRP_PERIOD_BY_FAILED);
	assert_int_equal(task.scan.period_ms, 2000);
	assert_int_equal(task.scan.failed, 1);

	/* Half of all, but a lone 1 stays. */
	p = nrp_task_fault_place(&task, 0, 1000000000);
	assert_int_equal(p.shared + p.private, 0);
	assert_counters(at, NRP_STAT_MEM, next_mem);
	assert_counters(at, NRP_STAT_CPU, next_cpu);
	assert_int_equal(task.total, 517 - 257 - 1);
	assert_int_equal(p.preferred_nid, 0);
}

static void test_first_node_of_equals_is_preferred_and_none_without_faults(void **state)
{
	uint64_t at[NRP_TASK_FAULT_COUNTERS(NODES)] = { 0 };
	struct nrp_task_faults task = { .at = at, .nr_nodes = NODES };
	struct nrp_fault_report report = { .mem_nid = 1, .pages = 4, .private = true };

	(void)state;
	assert_int_equal(nrp_task_fault_place(&task, 0, 0).preferred_nid, -1);
	nrp_task_fault_add(&task, &report);
	report.mem_nid = 0;
	nrp_task_fault_add(&task, &report);
	assert_int_equal(nrp_task_fault_place(&task, 0, 0).preferred_nid, 0);
	report.mem_nid = 1;
	nrp_task_fault_add(&task, &report);
	assert_int_equal(nrp_task_fault_place(&task, 0, 0).preferred_nid, 1);
}

/* Its byte is that of a cpupid without a task; the bytes are equal all the same. */
static void test_tid_1279_owns_pages_whose_byte_is_all_ones(void **state)
{
	(void)state;
	assert_true(nrp_fault_is_private(OTHERS_CPUPID(255), UNSET, 1279));
	assert_false(nrp_fault_is_private(OTHERS_CPUPID(254), UNSET, 1279));
	assert_false(nrp_fault_is_private(OTHERS_CPUPID(255), UNSET, TID));
	assert_true(nrp_fault_is_private(UNSET, UNSET, TID));
}

static void test_largest_counts_do_not_overflow_a_cpus_weight(void **state)
{
	uint64_t at[NRP_TASK_FAULT_COUNTERS(NODES)] = { 0 };
	struct nrp_task_faults task = { .at = at, .nr_nodes = NODES };
	struct nrp_fault_report report = { .pages = UINT32_MAX };

	(void)state;
	for (int i = 0; i < 1 << 16; i++)
		nrp_task_fault_add(&task, &report);
	/* It ran all the time: 65535 of 65536 parts, and all faults but the one that is added. */
	nrp_task_fault_place(&task, UINT64_MAX / 2, UINT64_MAX / 2);
	assert_int_equal(at[nrp_fault_index(NODES, NRP_STAT_CPU, 0, false)], 65534);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults_are_counted_by_node_and_owner),
		cmocka_unit_test(test_placement_takes_the_buffers_into_the_averages),
		cmocka_unit_test(test_first_node_of_equals_is_preferred_and_none_without_faults),
		cmocka_unit_test(test_tid_1279_owns_pages_whose_byte_is_all_ones),
		cmocka_unit_test(test_largest_counts_do_not_overflow_a_cpus_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
