/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine that migrates much: 4 CPUs a node, one thread on each; 4 threads a process, on 4 nodes
 * in a row. Every process has 512 base pages and 256 huge ones (of 512 base pages), and works in
 * passes of 200 ms: one thread scans the whole address space, then every page faults once.
 *
 * A page goes through four passes: its owner, a thread on its node, faults twice (local, the filter
 * is not asked). Then the next thread faults: the filter sees that another thread had the page
 * last, and denies. It faults again, and the page moves to its node: it is the owner now. Pages
 * begin at different steps, so in every pass half of the faults are remote, and half of these
 * move; 256 of 768 are on huge pages. All of it is a function of page and pass: the CPUs are
 * written one after the other, and nothing is kept.
 */
#include "bench/generate.h"

#include "bench/ring_page.h"
#include "capture/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_PER_NODE 4u
#define THREADS 4u /* of a process */
#define BASE_PAGES 512u
#define HUGE_PAGES 256u
#define PAGES (BASE_PAGES + HUGE_PAGES)
#define HUGE_SIZE 512u    /* base pages */
#define PASS_EVENTS 4614u /* scan: 6; 384 local faults: 3 each; 192 denied: 5; 192 moved: 13 */
#define PASS_FAULTS PAGES
#define CHUNK_PAGES 10 /* in a compressed chunk, as trace-cmd has it */

#define START UINT64_C(10000000000) /* ns: the first pass */
#define PASS_TIME UINT64_C(200000000)
#define FIRST_FAULT UINT64_C(2000000) /* ns after the begin of a pass */
#define FAULT_TIME UINT64_C(500000)   /* from one fault of a thread to the next */
#define FIRST_TID 1104u /* of a process: 8 from the one before; no tid ends in 0xff, "unset" */
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

#define BASE_START UINT64_C(0x7f0000000000)
#define HUGE_START UINT64_C(0x7f8000000000)
#define VMEMMAP UINT64_C(0xffd4000000000000)
#define NODE_FRAMES (UINT64_C(1) << 24) /* 64 GiB */
#define NUMA_MISPLACED 5                /* reason of a migration */

enum step { LOCAL, LOCAL_AGAIN, DENIED, MOVED, NR_STEPS };

struct numa {
	struct nrp_page_source source;
	const struct nrp_catalogue *cat;
	uint32_t id[NRP_NR_EVENTS];   /* of the event */
	uint32_t size[NRP_NR_EVENTS]; /* bytes of payload */
	unsigned int nodes;
	uint64_t seed, passes; /* of every process */
	bool big;
	struct nrp_ring_pages pages;
	size_t taken;  /* bytes of the whole pages handed out */
	uint64_t pass; /* that the CPU is in */
	bool failed;
};

/* A thread; the only one on its CPU. */
struct thread {
	unsigned int process, index; /* index: among the threads of the process */
	unsigned int node, cpu;
	int32_t tid;
};

/* A fault of a thread in a pass. */
struct fault {
	enum step step;
	unsigned int page; /* 0.. of the process; huge ones behind the base ones */
	bool huge;
	struct thread owner; /* the page is on its node */
	uint64_t addr, page_from, page_to;
};

/* The event being written. */
struct event {
	struct numa *numa;
	const struct nrp_event_desc *desc;
	uint8_t *data;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static struct thread thread_of(const struct numa *numa, unsigned int process, unsigned int index)
{
	unsigned int node = (process + index) % numa->nodes;

	return (struct thread){
		.process = process,
		.index = index,
		.node = node,
		.cpu = node * CPUS_PER_NODE + index,
		.tid = (int32_t)(FIRST_TID + process * 8 + index),
	};
}

static uint64_t mm_of(const struct thread *t)
{
	return UINT64_C(0xff11000000140000) + t->process * UINT64_C(0x580);
}

static uint64_t vma_of(const struct thread *t, bool huge)
{
	return UINT64_C(0xff11000005700000) + t->process * UINT64_C(0x1000) + huge * UINT64_C(0xb0);
}

/* The struct page of a page on a node. */
static uint64_t page_on(const struct thread *owner, unsigned int page)
{
	uint64_t frame = owner->process * UINT64_C(0x40000);

	frame += page < BASE_PAGES ? page : HUGE_SIZE * (uint64_t)(page - BASE_PAGES + 1);
	return VMEMMAP + 64 * (frame + owner->node * NODE_FRAMES);
}

static uint64_t jiffies_at(uint64_t time)
{
	return FIRST_JIFFIES + time / (UINT64_C(1000000000) / HZ);
}

/* ---- events -------------------------------------------------------------------------------- */

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

static void scan(struct numa *numa, const struct thread *t, uint64_t time)
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

static void fault(struct numa *numa, const struct thread *t, const struct fault *f, uint64_t time)
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

/* ---- passes -------------------------------------------------------------------------------- */

/* What happens to a page in the pass; false if another thread than @t touches it. */
static bool fault_of(const struct numa *numa, const struct thread *t, unsigned int page,
		     struct fault *ret)
{
	uint64_t steps = page % NR_STEPS + numa->pass;
	uint64_t owner = (page / NR_STEPS + steps / NR_STEPS) % THREADS;
	enum step step = (enum step)(steps % NR_STEPS);

	if (t->index != (step < DENIED ? owner : (owner + 1) % THREADS))
		return false;
	*ret = (struct fault){
		.step = step,
		.page = page,
		.huge = page >= BASE_PAGES,
		.owner = thread_of(numa, t->process, (unsigned int)owner),
		.page_to = page_on(t, page),
	};
	ret->page_from = page_on(&ret->owner, page);
	ret->addr = ret->huge ? HUGE_START + (page - BASE_PAGES) * UINT64_C(4096) * HUGE_SIZE
			      : BASE_START + page * UINT64_C(4096);
	return true;
}

/* The events of a thread in a pass; pages come in an order that differs from pass to pass. */
static void pass(struct numa *numa, const struct thread *t)
{
	uint64_t random = mix(numa->seed + mix(numa->pass * 1024 + t->process));
	uint64_t stride = 6 * (random % 128) + 1, first = random >> 32; /* no factor 2 or 3: all */
	uint64_t time = START + numa->pass * PASS_TIME + t->process * UINT64_C(3000000);
	struct fault f;

	if (numa->pass % THREADS == t->index)
		scan(numa, t, time);
	time += FIRST_FAULT + t->index * UINT64_C(100000);
	for (uint64_t i = 0; i < PAGES; i++) {
		if (!fault_of(numa, t, (unsigned int)((first + i * stride) % PAGES), &f))
			continue;
		fault(numa, t, &f, time + mix(random + i) % (FAULT_TIME / 4));
		time += FAULT_TIME;
	}
}

/* At least one page, if the thread has events left. */
static void make_pages(struct numa *numa, const struct thread *t)
{
	nrp_ring_drop(&numa->pages);
	while (numa->pass < numa->passes && !numa->pages.full && !numa->failed) {
		pass(numa, t);
		numa->pass++;
	}
	if (!numa->pages.full)
		nrp_ring_flush(&numa->pages);
}

static bool next_pages(struct nrp_page_source *source, size_t buffer, size_t cpu,
		       struct nrp_blob *ret)
{
	struct numa *numa = (struct numa *)source;
	unsigned int index = (unsigned int)cpu % CPUS_PER_NODE;
	unsigned int node = (unsigned int)cpu / CPUS_PER_NODE;
	struct thread t = thread_of(numa, (node + numa->nodes - index) % numa->nodes, index);
	size_t chunk = CHUNK_PAGES * (size_t)numa->pages.page_size, size;

	(void)buffer; /* there is one */
	if (numa->taken == numa->pages.full) {
		make_pages(numa, &t);
		numa->taken = 0;
	}
	size = numa->pages.full - numa->taken;
	size = size < chunk ? size : chunk;
	*ret = (struct nrp_blob){ numa->pages.data + numa->taken, size };
	numa->taken += size;
	if (!ret->size)
		numa->pass = 0; /* the next CPU begins */
	return !numa->failed;
}

/* ---- the file ------------------------------------------------------------------------------- */

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

static bool find_events(struct numa *numa, const struct nrp_tracefile *in)
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

/* One instance with all CPUs; statistics of the input's own CPUs would be untrue. */
static bool set_up_parts(struct nrp_trace_parts *parts, unsigned int cpus)
{
	struct nrp_part_buffer *buffer;
	size_t kept = 0;

	for (size_t i = 0; i < parts->nr_options; i++) {
		struct nrp_part_option *option = &parts->options[i];

		if (option->id == 8 && option->data.size == 4)
			nrp_store_number(option->data.data, cpus, 4, parts->big);
		if (option->id == 2)
			free(option->data.data);
		else
			parts->options[kept++] = *option;
	}
	parts->nr_options = kept;
	while (parts->nr_buffers)
		nrp_parts_drop_buffer(parts);
	parts->cpu_count = cpus;
	buffer = nrp_parts_add_buffer(parts, "", "global", parts->page_size);
	for (uint32_t cpu = 0; buffer && cpu < cpus; cpu++) {
		if (!nrp_parts_add_cpu(buffer, cpu))
			return false;
	}
	return buffer != NULL;
}

/* X.facts beside X.dat. */
static bool write_facts(const struct nrp_bench_files *files, unsigned int nodes)
{
	size_t length = strlen(files->out_path);
	char *path = malloc(length + sizeof(".facts"));
	FILE *f;
	bool ok;

	if (!path)
		return false;
	if (length > 4 && !strcmp(files->out_path + length - 4, ".dat"))
		length -= 4;
	memcpy(path, files->out_path, length);
	strcpy(path + length, ".facts");
	f = fopen(path, "w");
	free(path);
	if (!f)
		return false;
	fprintf(f, "[uname]\n%s\n[nodes]\n", nrp_tracefile_uname(files->in));
	for (unsigned int n = 0; n < nodes; n++) {
		fprintf(f, "%u cpus=%u-%u distance=", n, n * CPUS_PER_NODE,
			n * CPUS_PER_NODE + CPUS_PER_NODE - 1);
		for (unsigned int to = 0; to < nodes; to++)
			fprintf(f, "%s%d", to ? "," : "", to == n ? 10 : 20);
		fprintf(f, " memkb=%" PRIu64 "\n", 4 * NODE_FRAMES);
	}
	fprintf(f,
		"[sysctl]\n"
		"/proc/sys/kernel/numa_balancing 1\n"
		"/sys/kernel/debug/sched/numa_balancing/scan_delay_ms 100\n"
		"/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms %d\n"
		"/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms 1000\n"
		"/sys/kernel/debug/sched/numa_balancing/scan_size_mb 1024\n",
		(int)(PASS_TIME / 1000000));
	ok = !ferror(f);
	return !fclose(f) && ok;
}

static int fail_to_write(const struct nrp_bench_files *files)
{
	fprintf(stderr, "bench_generate: %s: cannot be written\n", files->out_path);
	return 5;
}

int nrp_bench_numa(struct nrp_bench_files *files, const struct nrp_bench_numa *options)
{
	uint64_t per_pass = (uint64_t)PASS_EVENTS * options->nodes;
	struct numa numa = {
		.source.next = next_pages,
		.nodes = options->nodes,
		.seed = options->seed,
		.passes = (options->events + per_pass - 1) / per_pass,
		.big = files->parts->big,
		.pages = {
			.page_size = files->parts->page_size,
			.header = 8 + (uint32_t)nrp_tracefile_long_size(files->in),
			.big = files->parts->big,
		},
	};
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_catalogue *cat = NULL;
	uint64_t passes = numa.passes * options->nodes;
	int r = 0;

	if (nrp_catalogue_new(&cat, files->in, &err) < 0) {
		fprintf(stderr, "bench_generate: %s\n", err.what);
		return 3;
	}
	numa.cat = cat;
	if (!find_events(&numa, files->in))
		r = 3;
	else if (!set_up_parts(files->parts, options->nodes * CPUS_PER_NODE) ||
		 !write_facts(files, options->nodes) ||
		 !nrp_parts_write(files->parts, files->version, NRP_PACK_ZSTD, &numa.source,
				  files->out))
		r = fail_to_write(files);
	else
		printf("events %" PRIu64 "\nfaults %" PRIu64 "\n", passes * PASS_EVENTS,
		       passes * PASS_FAULTS);
	free(numa.pages.data);
	free(cat);
	return r;
}
