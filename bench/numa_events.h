/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine of generate_numa.c: its size, and its events. generate_numa.c decides what happens,
 * numa_events.c writes it as a kernel's probes would.
 */
#ifndef NRP_BENCH_NUMA_EVENTS_H
#define NRP_BENCH_NUMA_EVENTS_H

#include "bench/ring_page.h"
#include "capture/events.h"
#include "tests/tools/trace_parts.h"

#define CPUS_PER_NODE 4u
#define THREADS 4u /* of a process */
#define BASE_PAGES 512u
#define HUGE_PAGES 256u
#define PAGES (BASE_PAGES + HUGE_PAGES)
#define HUGE_SIZE 512u                  /* base pages */
#define NODE_FRAMES (UINT64_C(1) << 24) /* base pages of a node: 64 GiB */

#define BASE_START UINT64_C(0x7f0000000000)
#define HUGE_START UINT64_C(0x7f8000000000)
#define VMEMMAP UINT64_C(0xffd4000000000000)

#define START UINT64_C(10000000000)   /* ns: the first pass */
#define PASS_TIME UINT64_C(200000000) /* ns from one pass to the next */

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

/* Resolves the events in the formats of @in; false if one is missing: its name is printed. */
bool nrp_numa_find_events(struct numa *numa, const struct nrp_tracefile *in);
/* A scan of both VMAs of the thread's process, at @time (ns); takes less than 1 ms. */
void nrp_numa_scan(struct numa *numa, const struct thread *t, uint64_t time);
/* A hinting fault and what follows; takes less than 200 us. Sets numa->failed without memory. */
void nrp_numa_fault(struct numa *numa, const struct thread *t, const struct fault *f,
		    uint64_t time);

#endif
