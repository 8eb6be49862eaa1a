/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bench/numa_events.h"

#include <stdio.h>
#include <string.h>

#define HZ 250
#define FIRST_JIFFIES UINT64_C(4294892296)

/* page_flags as a kernel of 8192 CPUs and 1024 nodes has them. */
#define FLAGS_BASE UINT64_C(0x20828)
#define FLAGS_HUGE UINT64_C(0x20868)
#define CPUPID_SHIFT 30
#define ZONE_DMA32 (UINT64_C(1) << 51)
#define NID_SHIFT 54

/* vma flags: read, write, may.., accounted; hugepage. */
#define VM_BASE UINT64_C(0x8100073)
#define VM_HUGE UINT64_C(0x28100073)

#define NUMA_MISPLACED 5 /* reason of a migration */

/* The event being written. */
struct event {
	struct numa *numa;
	const struct nrp_event_desc *desc;
	uint8_t *data;
};

static uint64_t mm_of(const struct thread *t)
{
	return UINT64_C(0xff11000000140000) + t->process * UINT64_C(0x580);
}

static uint64_t vma_of(const struct thread *t, bool huge)
{
	return UINT64_C(0xff11000005700000) + t->process * UINT64_C(0x1000) + huge * UINT64_C(0xb0);
}

static uint64_t jiffies_at(uint64_t time)
{
	return FIRST_JIFFIES + time / (UINT64_C(1000000000) / HZ);
}

static void put(struct event *e, unsigned int field, uint64_t value)
{
	const struct nrp_field *f = &e->desc->field[field];

	if (e->data && f->size)
		nrp_store_number(e->data + f->offset, value, f->size, e->numa->big);
}

static struct event begin(struct numa *numa, enum nrp_event event, const struct thread *t,
			  uint64_t time)
{
	const struct nrp_field *pid = &numa->cat->common_pid;
	struct event e = { .numa = numa, .desc = &numa->cat->desc[event] };

	e.data = nrp_ring_event(&numa->pages, time, numa->size[event]);
	if (!e.data) {
		numa->failed = true;
		return e;
	}
	nrp_store_number(e.data, numa->id[event], 2, numa->big);
	nrp_store_number(e.data + pid->offset, (uint64_t)t->tid, pid->size, numa->big);
	return e;
}

/* begin() and put() of this event's fields, by name. */
#define EVENT(NAME, t, time) struct event e = begin(numa, NRP_EV_##NAME, t, time)
#define PUT(NAME, field, value) put(&e, NRP_EF_##NAME##_##field, (uint64_t)(value))

static void one_number(struct numa *numa, enum nrp_event event, const struct thread *t,
		       uint64_t time, int64_t value)
{
	struct event e = begin(numa, event, t, time);

	put(&e, 0, (uint64_t)value);
}

static void range(struct numa *numa, const struct thread *t, uint64_t time, bool huge)
{
	uint64_t start = huge ? HUGE_START : BASE_START;
	uint64_t pages = huge ? HUGE_PAGES * HUGE_SIZE : BASE_PAGES;
	EVENT(RANGE_BEGIN, t, time);

	PUT(RANGE_BEGIN, vma, vma_of(t, huge));
	PUT(RANGE_BEGIN, start, start);
	PUT(RANGE_BEGIN, end, start + pages * 4096);
	PUT(RANGE_BEGIN, vm_start, start);
	PUT(RANGE_BEGIN, vm_end, start + pages * 4096);
	PUT(RANGE_BEGIN, vm_flags, huge ? VM_HUGE : VM_BASE);
	PUT(RANGE_BEGIN, mm, mm_of(t));
	PUT(RANGE_BEGIN, mm_scan_seq, numa->pass);
	PUT(RANGE_BEGIN, next_scan, jiffies_at(time + PASS_TIME));
	PUT(RANGE_BEGIN, pids_reset, jiffies_at(START + 10 * PASS_TIME));
	PUT(RANGE_BEGIN, pids0, -1); /* all threads were there lately */
	PUT(RANGE_BEGIN, pids1, -1);
	PUT(RANGE_BEGIN, start_seq, 0);
	PUT(RANGE_BEGIN, prev_seq, (int64_t)numa->pass - 1);
	one_number(numa, NRP_EV_RANGE_END, t, time + 100000, (int64_t)pages);
}

void nrp_numa_scan(struct numa *numa, const struct thread *t, uint64_t time)
{
	EVENT(SCAN_BEGIN, t, time);

	PUT(SCAN_BEGIN, jiffies, jiffies_at(time));
	PUT(SCAN_BEGIN, mm, mm_of(t));
	PUT(SCAN_BEGIN, mm_scan_seq, numa->pass);
	PUT(SCAN_BEGIN, next_scan, jiffies_at(time));
	PUT(SCAN_BEGIN, mm_users, THREADS);
	PUT(SCAN_BEGIN, nr_threads, THREADS);
	PUT(SCAN_BEGIN, scan_period, PASS_TIME / 1000000);
	PUT(SCAN_BEGIN, scan_period_max, 1000);
	PUT(SCAN_BEGIN, task_scan_seq, numa->pass);
	PUT(SCAN_BEGIN, preferred_nid, -1);
	range(numa, t, time + 10000, false);
	range(numa, t, time + 200000, true);
	one_number(numa, NRP_EV_SCAN_END, t, time + 400000, (int64_t)jiffies_at(time + 400000));
}

static void fault_begin(struct numa *numa, const struct thread *t, const struct fault *f,
			uint64_t time, uint64_t cpupid)
{
	uint64_t start = f->huge ? HUGE_START : BASE_START;
	uint64_t pages = f->huge ? HUGE_PAGES * HUGE_SIZE : BASE_PAGES;
	EVENT(FAULT_BEGIN, t, time);

	PUT(FAULT_BEGIN, page, f->page_from);
	PUT(FAULT_BEGIN, page_flags,
	    (f->huge ? FLAGS_HUGE : FLAGS_BASE) | cpupid << CPUPID_SHIFT | ZONE_DMA32 |
		    (uint64_t)f->owner.node << NID_SHIFT);
	PUT(FAULT_BEGIN, mapcount, f->huge ? -1 : 0);
	PUT(FAULT_BEGIN, refcount, 1);
	PUT(FAULT_BEGIN, addr, f->addr);
	PUT(FAULT_BEGIN, vma, vma_of(t, f->huge));
	PUT(FAULT_BEGIN, vm_start, start);
	PUT(FAULT_BEGIN, vm_end, start + pages * 4096);
	PUT(FAULT_BEGIN, vm_flags, f->huge ? VM_HUGE : VM_BASE);
	PUT(FAULT_BEGIN, mm, mm_of(t));
}

static void filter(struct numa *numa, const struct thread *t, const struct fault *f, uint64_t time)
{
	EVENT(FILTER_BEGIN, t, time);

	PUT(FILTER_BEGIN, page, f->page_from);
	PUT(FILTER_BEGIN, src_nid, f->owner.node);
	PUT(FILTER_BEGIN, dst_cpu, t->cpu);
	PUT(FILTER_BEGIN, pid, t->tid);
	PUT(FILTER_BEGIN, preferred_nid, -1);
	PUT(FILTER_BEGIN, scan_seq, numa->pass);
	PUT(FILTER_BEGIN, scan_period, PASS_TIME / 1000000);
	one_number(numa, NRP_EV_FILTER_END, t, time + 1500, f->step == MOVED);
}

/* The entries as x86 writes them: the frame inverted while it is a swap entry. */
static uint64_t entry_set(const struct fault *f)
{
	uint64_t frame = (f->page_from - VMEMMAP) / 64;

	return (f->huge ? UINT64_C(0xeffc000000000002) : UINT64_C(0xeff8000000000000)) |
	       (~(frame << 9) & UINT64_C(0x1fffffffffe00));
}

static uint64_t entry_removed(const struct fault *f)
{
	uint64_t frame = (f->page_to - VMEMMAP) / 64;

	return (f->huge ? UINT64_C(0x80000000000008a5) : UINT64_C(0x8400000000000025)) |
	       frame << 12;
}

/* set_migration_.. or remove_..: the same fields; the order of a base page is 0. */
static void migration_entry(struct numa *numa, const struct thread *t, enum nrp_event event,
			    const struct fault *f, uint64_t entry, uint64_t time)
{
	struct event e = begin(numa, event, t, time);

	put(&e, NRP_EF_SET_PTE_addr, f->addr);
	put(&e, NRP_EF_SET_PTE_pte, entry);
}

static void migrate_pages(struct numa *numa, const struct thread *t, const struct fault *f,
			  uint64_t time)
{
	EVENT(MIGRATE_PAGES, t, time);

	PUT(MIGRATE_PAGES, succeeded, f->huge ? HUGE_SIZE : 1);
	PUT(MIGRATE_PAGES, thp_succeeded, f->huge);
	PUT(MIGRATE_PAGES, reason, NUMA_MISPLACED);
}

/* prepare_begin or migrate_begin: the same fields. */
static void attempt(struct numa *numa, enum nrp_event event, const struct thread *t,
		    const struct fault *f, uint64_t time)
{
	struct event e = begin(numa, event, t, time);

	put(&e, NRP_EF_MIGRATE_BEGIN_page, f->page_from);
	put(&e, NRP_EF_MIGRATE_BEGIN_nid, t->node);
	put(&e, NRP_EF_MIGRATE_BEGIN_jiffies, jiffies_at(time));
}

/* Returns the time of the end. */
static uint64_t move(struct numa *numa, const struct thread *t, const struct fault *f,
		     uint64_t time)
{
	uint64_t copy = f->huge ? 150000 : 2000; /* ns */
	struct event e;

	attempt(numa, NRP_EV_PREPARE_BEGIN, t, f, time);
	one_number(numa, NRP_EV_PREPARE_END, t, time + 1000, 0);
	attempt(numa, NRP_EV_MIGRATE_BEGIN, t, f, time + 1500);
	e = begin(numa, NRP_EV_MIGRATE_START, t, time + 2000);
	put(&e, NRP_EF_MIGRATE_START_reason, NUMA_MISPLACED);
	migration_entry(numa, t, f->huge ? NRP_EV_SET_PMD : NRP_EV_SET_PTE, f, entry_set(f),
			time + 4000);
	time += 4000 + copy;
	migration_entry(numa, t, f->huge ? NRP_EV_REMOVE_PMD : NRP_EV_REMOVE_PTE, f,
			entry_removed(f), time);
	migrate_pages(numa, t, f, time + 1000);
	one_number(numa, NRP_EV_MIGRATE_END, t, time + 1500, 0);
	return time + 1500;
}

void nrp_numa_fault(struct numa *numa, const struct thread *t, const struct fault *f, uint64_t time)
{
	/* the last thread that found the page remote: local faults leave no trace */
	const struct thread *last = f->step == MOVED ? t : &f->owner;
	uint64_t cpupid = last->cpu << 8 | ((uint64_t)last->tid & 0xff);
	bool local = f->step == LOCAL || f->step == LOCAL_AGAIN, moved = f->step == MOVED;
	struct event e;

	fault_begin(numa, t, f, time, cpupid);
	time += 2000;
	if (!local) {
		filter(numa, t, f, time);
		time += 2500;
	}
	one_number(numa, NRP_EV_FAULT_TARGET, t, time, moved ? (int64_t)t->node : -1);
	if (moved)
		time = move(numa, t, f, time + 500);
	e = begin(numa, NRP_EV_TASK_FAULT, t, time + 1000);
	PUT(TASK_FAULT, last_cpupid, cpupid);
	PUT(TASK_FAULT, nid, moved ? t->node : f->owner.node);
	PUT(TASK_FAULT, pages, f->huge ? HUGE_SIZE : 1);
	PUT(TASK_FAULT, flags, moved ? NRP_TNF_MIGRATED : local ? NRP_TNF_FAULT_LOCAL : 0);
}

/* Bytes of payload by a format's text: the end of its last field, rounded up to words. */
static uint32_t payload_size(const struct nrp_event_format *format)
{
	unsigned int offset, size, end = 0;
	const char *p = format->text;

	while ((p = strstr(p, "offset:")) != NULL) {
		if (sscanf(p, "offset:%u; size:%u;", &offset, &size) == 2 && offset + size > end)
			end = offset + size;
		p++;
	}
	return (end + 3) & ~3u;
}

bool nrp_numa_find_events(struct numa *numa, const struct nrp_tracefile *in)
{
	static const enum nrp_event needed[] = {
		NRP_EV_SCAN_BEGIN,   NRP_EV_RANGE_BEGIN,   NRP_EV_RANGE_END,
		NRP_EV_SCAN_END,     NRP_EV_FAULT_BEGIN,   NRP_EV_FAULT_TARGET,
		NRP_EV_FILTER_BEGIN, NRP_EV_FILTER_END,    NRP_EV_PREPARE_BEGIN,
		NRP_EV_PREPARE_END,  NRP_EV_MIGRATE_BEGIN, NRP_EV_MIGRATE_END,
		NRP_EV_TASK_FAULT,   NRP_EV_MIGRATE_PAGES, NRP_EV_MIGRATE_START,
		NRP_EV_SET_PTE,      NRP_EV_REMOVE_PTE,    NRP_EV_SET_PMD,
		NRP_EV_REMOVE_PMD,
	};

	for (size_t i = 0; i < nrp_tracefile_nr_formats(in); i++) {
		const struct nrp_event_format *format = nrp_tracefile_format(in, i);
		const struct nrp_event_desc *desc =
			format->id >= 0 && format->id < NRP_MAX_EVENT_IDS
				? numa->cat->by_id[format->id]
				: NULL;

		if (!desc)
			continue;
		numa->id[desc->event] = (uint32_t)format->id;
		numa->size[desc->event] = payload_size(format);
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (numa->size[needed[i]])
			continue;
		fprintf(stderr, "bench_generate: the input has no event %s\n",
			nrp_event_name(needed[i]));
		return false;
	}
	return true;
}
