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

#include "bench/numa_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PASS_EVENTS 4614u /* scan: 6; 384 local faults: 3 each; 192 denied: 5; 192 moved: 13 */
#define PASS_FAULTS PAGES
#define CHUNK_PAGES 10 /* in a compressed chunk, as trace-cmd has it */

#define FIRST_FAULT UINT64_C(2000000) /* ns after the begin of a pass */
#define FAULT_TIME UINT64_C(500000)   /* from one fault of a thread to the next */
#define FIRST_TID 1104u /* of a process: 8 from the one before; no tid ends in 0xff, "unset" */

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

/* The struct page of a page on a node. */
static uint64_t page_on(const struct thread *owner, unsigned int page)
{
	uint64_t frame = owner->process * UINT64_C(0x40000);

	frame += page < BASE_PAGES ? page : HUGE_SIZE * (uint64_t)(page - BASE_PAGES + 1);
	return VMEMMAP + 64 * (frame + owner->node * NODE_FRAMES);
}

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
		nrp_numa_scan(numa, t, time);
	time += FIRST_FAULT + t->index * UINT64_C(100000);
	for (uint64_t i = 0; i < PAGES; i++) {
		if (!fault_of(numa, t, (unsigned int)((first + i * stride) % PAGES), &f))
			continue;
		nrp_numa_fault(numa, t, &f, time + mix(random + i) % (FAULT_TIME / 4));
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
	if (!nrp_numa_find_events(&numa, files->in))
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
