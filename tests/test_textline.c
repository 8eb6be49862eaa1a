/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line of text: where its prefix ends, which event it is, what its fields hold. By hand. */
#include "capture/events.h"
#include "capture/textline.h"
#include "test_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct nrp_textline *parser;
static struct nrp_raw_event raw;

static int setup(void **state)
{
	(void)state;
	return nrp_textline_new(&parser, NULL);
}

static int teardown(void **state)
{
	(void)state;
	parser = nrp_textline_free(parser);
	return 0;
}

static enum nrp_text_kind parse(const char *line)
{
	/* A copy without NUL: a read beyond the line shows under asan. */
	size_t size = strlen(line);
	char *copy = malloc(size ? size : 1);
	enum nrp_text_kind kind;

	assert_non_null(copy);
	memcpy(copy, line, size);
	kind = nrp_textline_parse(parser, copy, size, &raw);
	free(copy);
	return kind;
}

static const struct nrp_field *field(unsigned int index)
{
	return &nrp_textline_catalogue(parser)->by_id[raw.id]->field[index];
}

static bool has(unsigned int index)
{
	return nrp_has_integer(field(index), &raw);
}

static int64_t value(unsigned int index)
{
	assert_true(has(index));
	return (int64_t)nrp_load(raw.data + field(index)->offset, field(index)->size, true, false);
}

static const char *string(unsigned int index)
{
	assert_true(field(index)->is_string && nrp_has(field(index), &raw));
	return (const char *)raw.data + field(index)->offset;
}

static int32_t tid(void)
{
	int32_t id;

	memcpy(&id, raw.data, sizeof(id));
	return id;
}

/* The line is event @event of thread 77 on CPU 3 at 12.000345 s. */
static void is_event(const char *line, enum nrp_event event)
{
	if (parse(line) != NRP_TEXT_EVENT)
		fail_msg("no event: %s", line);
	if (raw.id != (event == NRP_EV_OTHER ? -1 : (int)event) || raw.cpu != 3 || tid() != 77 ||
	    raw.time != 12000345000)
		fail_msg("event %d, CPU %u, thread %d, time %llu: %s", raw.id, raw.cpu, tid(),
			 (unsigned long long)raw.time, line);
}

static void test_prefix_forms(void **state)
{
	(void)state;
#define EXIT "sched_process_exit: comm=a pid=77 prio=120"
	is_event("a-77 [003] 12.000345: " EXIT, NRP_EV_EXIT);
	is_event("               a-77    [003]    12.000345: sched_process_exit:   comm=a pid=77 "
		 "prio=1",
		 NRP_EV_EXIT);
	is_event("    a-77      [003] d... 12.000345: " EXIT, NRP_EV_EXIT);
	is_event("    a-77      [003] d..1. 12.000345: " EXIT, NRP_EV_EXIT);
	is_event("    a-77      [003] dNh3.... 12.000345: " EXIT, NRP_EV_EXIT);
	is_event("    a-77      (   76) [003] d..1. 12.000345: " EXIT, NRP_EV_EXIT);
	assert_int_equal(raw.tgid, 76);
	is_event("    a-77      (-----) [003] d..1. 12.000345: " EXIT, NRP_EV_EXIT);
	assert_int_equal(raw.tgid, 0);
	is_event("       a-77      3d..1.    12.000345: " EXIT, NRP_EV_EXIT);
	is_event("       a-77      3d..1.0   12.000345: " EXIT, NRP_EV_EXIT);
	is_event("       a-77      3.....    12.000345: " EXIT, NRP_EV_EXIT);
	is_event("       a-77      3d..1. 12000345us : " EXIT, NRP_EV_EXIT);
	is_event("       a-77      3d..1. 12000345us+: " EXIT, NRP_EV_EXIT);
	is_event("       a-77      3d..1. 12000345us!: " EXIT, NRP_EV_EXIT);
	is_event("a    77 [003]    12.000345: sched:" EXIT, NRP_EV_EXIT);
	is_event("a    76/77 [003]    12.000345:     1 sched:" EXIT, NRP_EV_EXIT);
	assert_int_equal(raw.tgid, 76);
	is_event("   77 [003]    12.000345: sched:" EXIT, NRP_EV_EXIT);
	is_event(">a-77   [003] d... 12.000345: " EXIT, NRP_EV_EXIT);
	is_event("nmx:             a-77 [003]   12.000345: " EXIT, NRP_EV_EXIT);
	is_event("\t  a-77 [003]   12.000345: " EXIT, NRP_EV_EXIT);
	is_event("a-77 [003] 12.000345: unheard_of: x=1", NRP_EV_OTHER);
}

static void test_names_of_tasks_may_be_anything(void **state)
{
	static const char *const names[] = {
		"<idle>",
		"<...>",
		"rs:main Q:Reg",
		"kworker/u8:1-ev",
		"Binder-Thread #",
		"sglang::schedul",
		"a b",
		"[x]",
		"x [001] 1:",
		"a-1",
		"-",
		"a-1 [0] 1: b: ",
		"12.5: x",
		"1",
		"",
		"pid=1 x: y",
		"(12)",
		"a-1 [0] 1.234:",
	};
	char line[256];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(line, sizeof(line), "%16s-77    [003] d..1. 12.000345: " EXIT, names[i]);
		is_event(line, NRP_EV_EXIT);
		snprintf(line, sizeof(line), "%16s-77    [003]    12.000345: " EXIT, names[i]);
		is_event(line, NRP_EV_EXIT);
		snprintf(line, sizeof(line), "%s    77 [003]    12.000345: sched:" EXIT, names[i]);
		is_event(line, NRP_EV_EXIT);
	}
}

static void test_text_behind_the_name_is_no_prefix(void **state)
{
	(void)state;
	is_event("a-77 [003] 12.000345: tracing_mark_write: b-1 [000] 13.000000: " EXIT,
		 NRP_EV_OTHER);
	is_event("a-77 [003] d..1. 12.000345: print: 0x1: b-1 [000] 13.000000: " EXIT,
		 NRP_EV_OTHER);
}

static void test_clocks(void **state)
{
	(void)state;
	assert_int_equal(parse("a-77 [001] 850000.000000001: " EXIT), NRP_TEXT_EVENT);
	assert_int_equal(raw.time, 850000000000001);
	assert_int_equal(nrp_textline_stats(parser)->unit, NRP_TEXT_NS);
	/* One text has one clock. */
	assert_int_equal(parse("a-77 [001] 12.000345: " EXIT), NRP_TEXT_BAD);
	assert_int_equal(parse("a-77 [001] 12345: " EXIT), NRP_TEXT_BAD);
	nrp_textline_restart(parser);
	assert_int_equal(parse("a-77 ( 1) [1151] d.... 2082185890542: " EXIT), NRP_TEXT_EVENT);
	assert_int_equal(raw.time, 2082185890542);
	assert_int_equal(raw.cpu, 1151);
	assert_int_equal(nrp_textline_stats(parser)->unit, NRP_TEXT_TICKS);
}

static void test_numbers_that_cannot_be(void **state)
{
	static const char *const lines[] = {
		"a-77 [65536] 12.000345: " EXIT,
		"a-77 [99999999999999999999999] 12.000345: " EXIT,
		"a-2147483648 [003] 12.000345: " EXIT,
		"a-77 [003] 12.0003456: " EXIT,
		"a-77 [003] 12.: " EXIT,
		"a-77 [003] .000345: " EXIT,
		"a-77 [003] 1.2.000345: " EXIT,
		"a-77 [003] 99999999999.000000: " EXIT,
		"a-77 [003] 99999999999999999999999: " EXIT,
		"a-77 [003] 9223372036854775us : " EXIT "999999999us : ",
		"a-77 [] 12.000345: " EXIT,
		"a-77 [003] 9223372036854775808: " EXIT,
		"a- [003] 12.000345: " EXIT,
		"a-77 12.000345: " EXIT,
		"a-77 [003] 12.000345:",
		"a-77 [003] 12.000345: ",
		"fault_begin: (x) page=1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (parse(lines[i]) != (i == 9 ? NRP_TEXT_EVENT : NRP_TEXT_BAD))
			fail_msg("taken: %s", lines[i]);
}

#define AT "a-77 [003] 12.000345: "

static void test_probe_fields(void **state)
{
	(void)state;
	is_event(AT "fault_begin: (mpol_misplaced+0x4/0x1b0) page=0xffffea0000000001 mapcount=-1 "
		    "refcount=2 addr=0x7f0000001000 vm_flags=0xffffffffffffffff mm=0xff",
		 NRP_EV_FAULT_BEGIN);
	assert_int_equal(value(NRP_EF_FAULT_BEGIN_page), (int64_t)0xffffea0000000001);
	assert_int_equal(value(NRP_EF_FAULT_BEGIN_mapcount), -1);
	assert_int_equal(value(NRP_EF_FAULT_BEGIN_refcount), 2);
	assert_int_equal(value(NRP_EF_FAULT_BEGIN_addr), 0x7f0000001000);
	assert_int_equal(value(NRP_EF_FAULT_BEGIN_vm_flags), -1);
	assert_int_equal(value(NRP_EF_FAULT_BEGIN_mm), 0xff);
	assert_false(has(NRP_EF_FAULT_BEGIN_page_flags));
	assert_false(has(NRP_EF_FAULT_BEGIN_vma));
	/* The next line says again which fields there are. */
	is_event(AT "fault_begin: (ffffffff8114c680) vma=0x1", NRP_EV_FAULT_BEGIN);
	assert_false(has(NRP_EF_FAULT_BEGIN_page));
	assert_int_equal(value(NRP_EF_FAULT_BEGIN_vma), 1);
	is_event(AT "fault_target: (mpol_misplaced+0x4/0x1b0 <- do_numa_page+0x1/0x2) nid=-1",
		 NRP_EV_FAULT_TARGET);
	assert_int_equal(value(NRP_EF_FAULT_TARGET_nid), -1);
	/* What no probe printed is another event of that name; another group's, too. */
	is_event(AT "fault_begin: page=0x1", NRP_EV_OTHER);
	is_event(AT "other:fault_begin: (f+0x0/0x1) page=0x1", NRP_EV_OTHER);
	is_event(AT "numareplay:fault_begin: (f+0x0/0x1) page=0x1", NRP_EV_FAULT_BEGIN);
	assert_int_equal(value(NRP_EF_FAULT_BEGIN_page), 1);
}

static void test_values_that_are_none(void **state)
{
	(void)state;
	is_event(
		AT
		"fault_begin: (f) page=(fault) page_flags= mapcount=x refcount=99999999999999999999"
		" addr=0x vma=- vm_start=0x10000000000000000 vm_end=1x "
		"vm_flags=-9223372036854775809",
		NRP_EV_FAULT_BEGIN);
	for (unsigned int i = 0; i <= NRP_EF_FAULT_BEGIN_mm; i++)
		assert_false(has(i));
	assert_int_equal(nrp_textline_stats(parser)->unresolved, 9);
}

static void test_tracepoint_fields(void **state)
{
	(void)state;
	is_event(AT "sched_skip_vma_numa: numa_scan_offset=7F00 vm_start=400000 vm_end=40A000 "
		    "reason=shared_ro",
		 NRP_EV_SKIP_VMA);
	assert_int_equal(value(NRP_EF_SKIP_VMA_numa_scan_offset), 0x7f00);
	assert_int_equal(value(NRP_EF_SKIP_VMA_vm_end), 0x40a000);
	assert_string_equal(string(NRP_EF_SKIP_VMA_reason), "shared_ro");
	assert_false(has(NRP_EF_SKIP_VMA_reason));
	is_event(AT "sched_skip_vma_numa: vm_start=1 reason=0x7", NRP_EV_SKIP_VMA);
	assert_int_equal(value(NRP_EF_SKIP_VMA_reason), 7);
	is_event(AT "set_migration_pte: addr=7f4a34430000, pte=d7f9fffffed29e02 order=10",
		 NRP_EV_SET_PTE);
	assert_int_equal(value(NRP_EF_SET_PTE_addr), 0x7f4a34430000);
	assert_int_equal(value(NRP_EF_SET_PTE_pte), (int64_t)0xd7f9fffffed29e02);
	assert_int_equal(value(NRP_EF_SET_PTE_order), 10);
	is_event(AT
		 "mm_migrate_pages: nr_succeeded=16 nr_failed=0 nr_thp_succeeded=1 nr_thp_failed=2 "
		 "nr_thp_split=3 nr_split=4 mode=MIGRATE_SYNC_LIGHT reason=demotion",
		 NRP_EV_MIGRATE_PAGES);
	assert_int_equal(value(NRP_EF_MIGRATE_PAGES_succeeded), 16);
	assert_int_equal(value(NRP_EF_MIGRATE_PAGES_thp_split), 3);
	assert_int_equal(value(NRP_EF_MIGRATE_PAGES_large_folio_split), 4);
	assert_int_equal(value(NRP_EF_MIGRATE_PAGES_mode), 1);
	assert_int_equal(value(NRP_EF_MIGRATE_PAGES_reason), 8);
	/* Enums that the program could not resolve: empty, a number, a name of a later kernel. */
	is_event(AT "mm_migrate_pages: nr_succeeded=1 nr_failed=0 mode=0 reason=",
		 NRP_EV_MIGRATE_PAGES);
	assert_int_equal(value(NRP_EF_MIGRATE_PAGES_mode), 0);
	assert_false(has(NRP_EF_MIGRATE_PAGES_reason));
	is_event(AT "mm_migrate_pages: nr_succeeded=1 nr_failed=0 mode=MIGRATE_MAGIC reason=0x5",
		 NRP_EV_MIGRATE_PAGES);
	assert_false(has(NRP_EF_MIGRATE_PAGES_mode));
	assert_int_equal(value(NRP_EF_MIGRATE_PAGES_reason), 5);
}

static void test_texts_inside_events(void **state)
{
	(void)state;
	is_event(
		AT
		"sched_migrate_task: comm=a pid=5 orig_cpu=9 pid=66 prio=120 orig_cpu=1 dest_cpu=2",
		NRP_EV_MIGRATE_TASK);
	assert_int_equal(value(NRP_EF_MIGRATE_TASK_pid), 66);
	assert_int_equal(value(NRP_EF_MIGRATE_TASK_orig_cpu), 1);
	assert_int_equal(value(NRP_EF_MIGRATE_TASK_dest_cpu), 2);
	is_event(AT "sched_process_fork: comm=x pid=1 y pid=66 child_comm=b pid=2 z child_pid=67",
		 NRP_EV_FORK);
	assert_int_equal(value(NRP_EF_FORK_parent_pid), 66);
	assert_int_equal(value(NRP_EF_FORK_child_pid), 67);
	assert_string_equal(string(NRP_EF_FORK_child_comm), "b pid=2 z");
	is_event(AT "sched_process_exec: filename=/a b/pid=3 pid=4 pid=77 old_pid=76", NRP_EV_EXEC);
	assert_int_equal(value(NRP_EF_EXEC_pid), 77);
	assert_string_equal(string(NRP_EF_EXEC_filename), "/a b/pid=3 pid=4");
	is_event(AT "sched_process_exit: comm=rs:main Q:Reg pid=77 prio=120 group_dead=true",
		 NRP_EV_EXIT);
	assert_string_equal(string(NRP_EF_EXIT_comm), "rs:main Q:Reg");
	assert_int_equal(value(NRP_EF_EXIT_pid), 77);
	is_event(AT "mmap_lock_acquire_returned: mm=000000006515cb1f memcg_path=/a write=false b "
		    "write=true success=false",
		 NRP_EV_LOCK_RETURNED);
	assert_int_equal(value(NRP_EF_LOCK_RETURNED_mm), 0x6515cb1f);
	assert_int_equal(value(NRP_EF_LOCK_RETURNED_write), 1);
	assert_int_equal(value(NRP_EF_LOCK_RETURNED_success), 0);
	assert_int_equal(nrp_textline_stats(parser)->hashed, 1);
	is_event(AT "mmap_lock_released: mm=0xffff8881b4882580 memcg_path= write=true",
		 NRP_EV_LOCK_RELEASED);
	assert_int_equal(value(NRP_EF_LOCK_RELEASED_write), 1);
	assert_int_equal(nrp_textline_stats(parser)->hashed, 1);
	is_event(AT "mmap_lock_released: mm=(____ptrval____) memcg_id=7 write=false",
		 NRP_EV_LOCK_RELEASED);
	assert_false(has(NRP_EF_LOCK_RELEASED_mm));
	assert_int_equal(value(NRP_EF_LOCK_RELEASED_write), 0);
}

/* The lock has no key; flags are names, as of 5.19, or a number. */
static void test_contention(void **state)
{
	static const struct {
		const char *text;
		uint64_t flags;
	} flags[] = { { "READ", 2 },      { "WRITE", 4 },        { "SPIN", 1 },
		      { "WRITE|RT", 12 }, { "READ|PERCPU", 18 }, { "MUTEX|SPIN", 33 },
		      { "0x2", 2 } };
	char line[256];

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		snprintf(line, sizeof(line), AT "contention_begin: 0xff11000000140f78 (flags=%s)",
			 flags[i].text);
		is_event(line, NRP_EV_CONTENTION_BEGIN);
		assert_int_equal(value(NRP_EF_CONTENTION_BEGIN_lock_addr),
				 UINT64_C(0xff11000000140f78));
		assert_int_equal(value(NRP_EF_CONTENTION_BEGIN_flags), flags[i].flags);
	}
	is_event(AT "lock:contention_end: 0xff11000000140f78 (ret=-4)", NRP_EV_CONTENTION_END);
	assert_int_equal(value(NRP_EF_CONTENTION_END_ret), -4);
	is_event(AT "contention_begin: 0xff11000000140f78 (flags=NEW)", NRP_EV_CONTENTION_BEGIN);
	assert_false(has(NRP_EF_CONTENTION_BEGIN_flags));
	is_event(AT "contention_begin: 0xff11000000140f78", NRP_EV_CONTENTION_BEGIN);
	assert_false(has(NRP_EF_CONTENTION_BEGIN_flags));
}

static void test_system_calls(void **state)
{
	static const char *const enter[] = {
		"sys_enter_mbind: start: 0x7f00, len: 0x00001000, mode: 0x00000002, nmask: 0x1, "
		"maxnode: 0x40, flags: 0x00000003",
		"syscalls:sys_enter_mbind: start: 0x7f00, len: 0x00001000, mode: 0x00000002, "
		"nmask: 0x1, maxnode: 0x40, flags: 0x00000003",
		"sys_mbind(start: 7f00, len: 1000, mode: 2, nmask: 1, maxnode: 40, flags: 3)",
	};
	static const char *const leave[] = {
		"sys_exit_mbind: 0xfffffffffffffff2",
		"syscalls:sys_exit_mbind: 0xfffffffffffffff2",
		"sys_mbind -> 0xfffffffffffffff2",
	};
	char line[512];

	(void)state;
	for (int i = 0; i < 3; i++) {
		snprintf(line, sizeof(line), AT "%s", enter[i]);
		is_event(line, NRP_EV_ENTER_MBIND);
		assert_int_equal(value(NRP_EF_ENTER_MBIND_start), 0x7f00);
		assert_int_equal(value(NRP_EF_ENTER_MBIND_len), 0x1000);
		assert_int_equal(value(NRP_EF_ENTER_MBIND_mode), 2);
		assert_int_equal(value(NRP_EF_ENTER_MBIND_flags), 3);
		snprintf(line, sizeof(line), AT "%s", leave[i]);
		is_event(line, NRP_EV_EXIT_MBIND);
		assert_int_equal(value(NRP_EF_EXIT_MBIND_ret), -14);
	}
	/* Enter and exit of each have numbers in a row; brk and shmdt have an address only. */
	is_event(AT "sys_enter_mprotect: start: 0x7f00, len: 0x2000, prot: 0x00000001",
		 NRP_EV_ENTER_MPROTECT);
	assert_int_equal(value(NRP_EF_ENTER_MPROTECT_len), 0x2000);
	assert_int_equal(value(NRP_EF_ENTER_MPROTECT_prot), 1);
	is_event(AT "sys_mprotect -> 0x0", NRP_EV_EXIT_MPROTECT);
	is_event(AT "sys_mremap(addr: 7f00, old_len: 1000, new_len: 2000, flags: 1, new_addr: 0)",
		 NRP_EV_ENTER_MREMAP);
	assert_int_equal(value(NRP_EF_ENTER_MREMAP_old_len), 0x1000);
	is_event(AT "sys_madvise(start: 7f00, len_in: 1000, behavior: e)", NRP_EV_ENTER_MADVISE);
	assert_int_equal(value(NRP_EF_ENTER_MADVISE_behavior), 14);
	is_event(AT "sys_brk(brk: 55d000)", NRP_EV_ENTER_BRK);
	assert_int_equal(value(NRP_EF_ENTER_BRK_brk), 0x55d000);
	is_event(AT "sys_exit_shmdt: 0x0", NRP_EV_EXIT_SHMDT);
	is_event(AT "sys_mlock2(start: 7f00, len: 1000, flags: 1)", NRP_EV_OTHER);
	is_event(AT "sys_mlock(start: 7f00, len: 1000)", NRP_EV_ENTER_MLOCK);
	is_event(AT "sys_munlock(start: 7f00, len: 1000)", NRP_EV_ENTER_MUNLOCK);
	is_event(AT "sys_read(fd: 3, buf: 7f00, count: 10)", NRP_EV_OTHER);
}

#define FILTER AT "filter_begin: (f) pid=77 group=0x1 gid=7 "

static void test_arrays(void **state)
{
	const struct nrp_catalogue *cat = nrp_textline_catalogue(parser);
	const struct nrp_field *faults =
		&cat->desc[NRP_EV_FILTER_BEGIN].field[NRP_EF_FILTER_BEGIN_faults];
	const struct nrp_field *f0 = &cat->desc[NRP_EV_FILTER_BEGIN].field[NRP_EF_FILTER_BEGIN_f0];
	uint64_t weights[8];

	(void)state;
	is_event(FILTER "faults={0,0,0,0,0,0,0,0}", NRP_EV_FILTER_BEGIN);
	assert_int_equal(faults->size, 0); /* trace-cmd's zeros are no values */
	assert_int_equal(nrp_textline_stats(parser)->zero_arrays, 1);
	is_event(FILTER "faults={1,0x2,3,4,5,6,7,18446744073709551615}", NRP_EV_FILTER_BEGIN);
	assert_int_equal(faults->size, 64);
	memcpy(weights, raw.data + faults->offset, sizeof(weights));
	assert_int_equal(weights[0], 1);
	assert_int_equal(weights[1], 2);
	assert_int_equal(weights[7], UINT64_MAX);
	is_event(FILTER "faults={0,0,0,0}", NRP_EV_FILTER_BEGIN);
	assert_int_equal(faults->size, 32); /* but a text that prints others means its zeros */
	is_event(FILTER "faults={1,2", NRP_EV_FILTER_BEGIN);
	assert_int_equal(faults->size, 0);
	is_event(FILTER "faults=ARRAY[01, 02]", NRP_EV_FILTER_BEGIN);
	assert_int_equal(faults->size, 0);
	/* f0.. of kernels without arrays, as far as they come in a row. */
	is_event(FILTER "f0=0 f1=1 f2=2 f3=3 f5=5", NRP_EV_FILTER_BEGIN);
	assert_int_equal(f0->size, 8);
	assert_int_equal(cat->weight_fields, 4);
	memcpy(weights, raw.data + f0->offset, 32);
	assert_int_equal(weights[3], 3);
	is_event(FILTER, NRP_EV_FILTER_BEGIN);
	assert_int_equal(f0->size, 0);
}

static void is_loss(const char *line, uint32_t cpu, int64_t lost)
{
	if (parse(line) != NRP_TEXT_LOSS || raw.cpu != cpu || raw.lost != lost)
		fail_msg("CPU %u, %lld: %s", raw.cpu, (long long)raw.lost, line);
}

static void test_losses(void **state)
{
	(void)state;
	is_loss("CPU:1 [LOST 113 EVENTS]", 1, 113);
	is_loss("CPU:7 [204600 EVENTS DROPPED]", 7, 204600);
	is_loss("CPU:7 [EVENTS DROPPED]", 7, -1);
	is_loss("   CPU:1151 [EVENTS DROPPED]", 1151, -1);
	is_loss("nmx:    CPU:2 [LOST 1 EVENTS]", 2, 1);
	is_loss("swapper     0 [005]    12.000345: PERF_RECORD_LOST lost 5", 5, 5);
	assert_int_equal(parse("CPU:65536 [LOST 1 EVENTS]"), NRP_TEXT_BAD);
	assert_int_equal(parse("CPU:1 [LOST x EVENTS]"), NRP_TEXT_BAD);
	assert_int_equal(parse("CPU:1 [LOST 99999999999999999999 EVENTS]"), NRP_TEXT_BAD);
	assert_int_equal(parse("CPU:1 [LOST 1 EVENTS"), NRP_TEXT_BAD);
}

static void test_other_lines(void **state)
{
	static const char *const heads[] = {
		"",
		"   ",
		"# tracer: nop",
		"cpus=8",
		"version = 6",
		"CPU 3 is empty",
		" TIME EXTEND: delta:306454770 length:0",
		"CPU:110 [SUBBUFFER START] [1:0x2]",
		"#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
	};
	static const char *const noise[] = {
		AT "schedule <-do_idle",
		AT "do_numa_page+0x1/0x20 <-handle_mm_fault",
		" 39)   0.677 us    |    mem_cgroup_from_task();",
		" 39)               |  handle_mm_fault() {",
		"  1) ! 120.033 us  |  }",
		" 3)               |  /* page_fault_user: address=0x1 ip=0x2 error_code=0x6 */",
		" => schedule",
		AT "<stack trace>",
		"\tffffffff810d47be smp_call_function_single ([kernel.kallsyms])",
		" ------------------------------------------",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (parse(heads[i]) != NRP_TEXT_HEAD)
			fail_msg("not a head: %s", heads[i]);
	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
		if (parse(noise[i]) != NRP_TEXT_NOISE)
			fail_msg("not noise: %s", noise[i]);
	assert_int_equal(parse("nothing of these"), NRP_TEXT_BAD);
	assert_int_equal(nrp_textline_parse(parser, "a\0b-77 [003] 12.000345: x: y", 27, &raw),
			 NRP_TEXT_BAD);
}

/* Whatever the bytes are: no crash, and what is taken lies inside the payload. */
static void test_damaged_lines(void **state)
{
	static const char *const lines[] = {
		"   a b-77    ( 12) [003] d..1. 12.000345: fault_begin: (f+0x0/0x1) page=0x1 "
		"mapcount=-1",
		FILTER "faults={1,2,3,4} f0=1 f1=2",
		"a    76/77 [003]    12.000345:     1 sched:sched_process_fork: comm=x pid=1 "
		"child_comm=b "
		"child_pid=67",
		"CPU:1 [LOST 113 EVENTS]",
		AT "sys_mbind(start: 7f00, len: 1000, mode: 2, nmask: 1, maxnode: 40, flags: 3)",
		AT "sched_process_exec: filename=/a pid=77 old_pid=76",
	};
	uint64_t seed = random_seed("damaged_lines");

	(void)state;
	for (int n = 0; n < 200000; n++) {
		const char *line = lines[random_next(&seed) % (sizeof(lines) / sizeof(lines[0]))];
		size_t size = strlen(line), cut = random_next(&seed) % (size + 1);
		char *copy = malloc(cut ? cut : 1);

		assert_non_null(copy);
		memcpy(copy, line, cut);
		for (uint64_t k = random_next(&seed) % 4; cut && k; k--)
			copy[random_next(&seed) % cut] = (char)random_next(&seed);
		if (nrp_textline_parse(parser, copy, cut, &raw) == NRP_TEXT_EVENT && raw.id > 0)
			for (unsigned int i = 0; i < NRP_MAX_EVENT_FIELDS; i++)
				if (field(i)->size)
					assert_true(nrp_has(field(i), &raw));
		free(copy);
		nrp_textline_restart(parser);
	}
}

/* The largest of the unsigned and the smallest of the signed numbers of so many bytes. */
static void test_numbers_fit_or_not(void **state)
{
	(void)state;
	assert_true(nrp_fits(UINT64_C(0xffffffff), 4));
	assert_false(nrp_fits(UINT64_C(0x100000000), 4));
	assert_true(nrp_fits((uint64_t)INT64_C(-2147483648), 4));
	assert_false(nrp_fits((uint64_t)INT64_C(-2147483649), 4));
	assert_false(nrp_fits((uint64_t)INT64_C(-4294966784), 4));
	assert_true(nrp_fits((uint64_t)INT64_C(-32768), 2));
	assert_false(nrp_fits((uint64_t)INT64_C(-32769), 2));
	assert_true(nrp_fits((uint64_t)INT64_MIN, 8));
	assert_true(nrp_fits(UINT64_MAX, 8));
}

/* Bits by the kernel's types; nodes by NRP_MAX_NODES, 1024. */
static void test_values_that_no_kernel_has(void **state)
{
#define PREFIX "a-77 [003] 12.000345: "
#define PROBE(name) PREFIX name ": (f+0x4/0x10 <- g+0x1/0x20) "
	static const struct {
		const char *line;
		unsigned int field;
		bool good;
		int64_t value;
	} cases[] = {
		{ PROBE("fault_target") "nid=-1", NRP_EF_FAULT_TARGET_nid, true, -1 },
		{ PROBE("fault_target") "nid=257", NRP_EF_FAULT_TARGET_nid, true, 257 },
		{ PROBE("fault_target") "nid=1023", NRP_EF_FAULT_TARGET_nid, true, 1023 },
		{ PROBE("fault_target") "nid=1024", NRP_EF_FAULT_TARGET_nid, false, 0 },
		{ PROBE("fault_target") "nid=-2", NRP_EF_FAULT_TARGET_nid, false, 0 },
		{ PROBE("fault_target") "nid=4294967297", NRP_EF_FAULT_TARGET_nid, false, 0 },
		{ PROBE("fault_target") "nid=18446744073709551615", NRP_EF_FAULT_TARGET_nid, true,
		  -1 },
		{ PROBE("filter_end") "allow=255", NRP_EF_FILTER_END_allow, true, 255 },
		{ PROBE("filter_end") "allow=256", NRP_EF_FILTER_END_allow, false, 0 },
		{ PROBE("filter_end") "allow=4294967297", NRP_EF_FILTER_END_allow, false, 0 },
		{ PROBE("migrate_end") "ret=-11", NRP_EF_MIGRATE_END_ret, true, -11 },
		{ PROBE("migrate_end") "ret=4294967296", NRP_EF_MIGRATE_END_ret, false, 0 },
		{ PROBE("task_fault") "flags=0x1ff", NRP_EF_TASK_FAULT_flags, false, 0 },
		{ PREFIX "sched_migrate_task: comm=a pid=9999999999 prio=1 orig_cpu=0 dest_cpu=1",
		  NRP_EF_MIGRATE_TASK_pid, false, 0 },
		/* A system call's flags have 64 bits. */
		{ PREFIX "sys_enter_mmap: addr: 1, len: 2, prot: 3, flags: 7fffffffffff",
		  NRP_EF_ENTER_MMAP_flags, true, 0x7fffffffffff },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = nrp_textline_stats(parser)->unresolved;

		assert_int_equal(parse(cases[i].line), NRP_TEXT_EVENT);
		if (has(cases[i].field) != cases[i].good ||
		    (cases[i].good && value(cases[i].field) != cases[i].value))
			fail_msg("%s", cases[i].line);
		assert_int_equal(nrp_textline_stats(parser)->unresolved - before, !cases[i].good);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(test_prefix_forms),
		TEST(test_names_of_tasks_may_be_anything),
		TEST(test_text_behind_the_name_is_no_prefix),
		TEST(test_clocks),
		TEST(test_numbers_that_cannot_be),
		TEST(test_probe_fields),
		TEST(test_values_that_are_none),
		TEST(test_tracepoint_fields),
		TEST(test_texts_inside_events),
		TEST(test_contention),
		TEST(test_system_calls),
		TEST(test_arrays),
		TEST(test_losses),
		TEST(test_other_lines),
		TEST(test_numbers_fit_or_not),
		TEST(test_values_that_no_kernel_has),
		TEST(test_damaged_lines),
	};

	return cmocka_run_group_tests_name("textline", tests, NULL, NULL);
}
