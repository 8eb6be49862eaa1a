/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page-location tracking: vectors L1..L6 of the specification (migrate.md 6.3), hand-made cases
 * around them, and null tests. Nodes 0 and 1; CPU 0 on node 0, CPU 4 on node 1; thread 1 runs on
 * node 1, thread 2 on node 0. The filter always passes for the remote faulter.
 */
#include "replay/worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MM UINT64_C(0xff00)
#define ADDR UINT64_C(0x7000)
#define PAGE (ADDR / 4096)
#define PRIVATE_RW UINT64_C(0x100073)

static int16_t cpu_nid[8] = { 0, 0, 0, 0, 1, 1, 1, 1 };
static int64_t node_memkb[2] = { 1000000, 1000000 };

static struct nrp_host_facts host(void)
{
	struct nrp_host_facts f;

	nrp_host_facts_init(&f);
	f.cpu_nid = cpu_nid;
	f.nr_cpus = 8;
	f.node_memkb = node_memkb;
	f.nr_nodes = 2;
	f.page_size = 4096;
	f.huge_pages = 512;
	f.hz = 250;
	f.cpupid_bits = 14;
	return f;
}

/* Admission rules of the vectors. */
static bool admit_after(void *context, uint64_t time, int nid, uint64_t pages)
{
	(void)nid;
	(void)pages;
	return time > *(uint64_t *)context;
}

enum outcome { NO_ATTEMPT, MOVED, DENIED };

static struct nrp_hint_fault fault(uint64_t time, int tid, int src, enum outcome outcome)
{
	int this = tid == 1 ? 1 : 0;
	struct nrp_hint_fault f;

	memset(&f, 0, sizeof(f));
	f.null = ~UINT64_C(0);
	NRP_SET(&f, hint_fault, time, time);
	NRP_SET(&f, hint_fault, cpu, this ? 4 : 0);
	NRP_SET(&f, hint_fault, tid, tid);
	NRP_SET(&f, hint_fault, mm, MM);
	NRP_SET(&f, hint_fault, addr, ADDR);
	NRP_SET(&f, hint_fault, vm_flags, PRIVATE_RW);
	NRP_SET(&f, hint_fault, src_nid, (int16_t)src);
	NRP_SET(&f, hint_fault, this_nid, (int16_t)this);
	NRP_SET(&f, hint_fault, last_cpupid, 0x3fff);
	NRP_SET(&f, hint_fault, pages, 1);
	NRP_SET(&f, hint_fault, attempt, outcome != NO_ATTEMPT);
	if (outcome != NO_ATTEMPT) {
		NRP_SET(&f, hint_fault, attempt_delay, 0);
		NRP_SET(&f, hint_fault, attempt_nid, (int16_t)this);
		NRP_SET(&f, hint_fault, moved, outcome == MOVED);
	}
	return f;
}

static int feed(struct nrp_worlds *w, const struct nrp_hint_fault *f, bool refused)
{
	struct nrp_fault_context context = { .refused = refused };

	return nrp_worlds_fault(w, f, &context);
}

struct expected {
	uint64_t remote_observed, remote, moves_observed, moves, suppressed, added;
	int nid;
	bool tainted;
};

static struct nrp_worlds *new_world(const struct nrp_host_facts *facts, uint64_t *after,
				    enum nrp_unknown unknown)
{
	struct nrp_world_config config = {
		.limiter = { .variant = NRP_RATELIMIT_NONE },
		.nr_nodes = 2,
		.admit = admit_after,
		.filter = NRP_FILTER_61,
		.filter_passes = true,
		.context = after,
		.unknown = unknown,
	};
	struct nrp_worlds *w;

	assert_int_equal(
		nrp_worlds_new(&w, facts, NRP_FILTER_61, 60000, 0, false, &config, 1, NULL), 0);
	return w;
}

static void check(struct nrp_worlds *w, const struct expected *e)
{
	const struct nrp_world_result *r = nrp_worlds_result(w, 0);
	const struct nrp_worlds_totals *t = nrp_worlds_totals(w);
	bool tainted;

	assert_int_equal(t->observed_remote_faults, e->remote_observed);
	assert_int_equal(r->remote_faults, e->remote);
	assert_int_equal(t->observed_moves, e->moves_observed);
	assert_int_equal(r->moves, e->moves);
	assert_int_equal(r->suppressed, e->suppressed);
	assert_int_equal(r->added, e->added);
	assert_int_equal(nrp_worlds_location(w, 0, MM, PAGE, &tainted), e->nid);
	assert_int_equal(tainted, e->tainted);
}

/* The vectors hold for a base page, a folio and a huge page; only the number of pages differs. */
static void run(const struct nrp_hint_fault *faults, size_t n, uint64_t after,
		const struct expected *e)
{
	static const uint32_t sizes[] = { 1, 16, 512 };

	for (size_t k = 0; k < 3; k++) {
		struct nrp_host_facts facts = host();
		struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_EXPECTED);

		for (size_t i = 0; i < n; i++) {
			struct nrp_hint_fault f = faults[i];

			f.pages = sizes[k];
			assert_int_equal(feed(w, &f, f.attempt && !f.moved), 0);
		}
		assert_int_equal(nrp_worlds_finish(w, 3200), 0);
		check(w, e);
		assert_int_equal(nrp_worlds_result(w, 0)->moved_pages, e->moves * sizes[k]);
		assert_int_equal(nrp_worlds_totals(w)->observed_moved_pages,
				 e->moves_observed * sizes[k]);
		nrp_worlds_free(w);
	}
}

#define NEVER UINT64_MAX

static void test_l1(void **state)
{
	const struct nrp_hint_fault f[] = { fault(100, 1, 0, MOVED), fault(1100, 1, 1, NO_ATTEMPT),
					    fault(2100, 1, 1, NO_ATTEMPT) };

	(void)state;
	run(f, 3, 1000, &(struct expected){ 1, 2, 1, 1, 1, 1, 1, false });
}

static void test_l2(void **state)
{
	const struct nrp_hint_fault f[] = { fault(100, 1, 0, MOVED), fault(1100, 1, 1, NO_ATTEMPT),
					    fault(2100, 1, 1, NO_ATTEMPT) };

	(void)state;
	run(f, 3, NEVER, &(struct expected){ 1, 3, 1, 0, 1, 0, 0, true });
}

static void test_l3(void **state)
{
	const struct nrp_hint_fault f[] = { fault(100, 1, 0, DENIED), fault(1100, 1, 0, DENIED),
					    fault(2100, 1, 0, MOVED),
					    fault(3100, 1, 1, NO_ATTEMPT) };

	(void)state;
	run(f, 4, 0, &(struct expected){ 3, 1, 1, 1, 0, 1, 1, false });
}

static void test_l4(void **state)
{
	const struct nrp_hint_fault f[] = { fault(100, 1, 0, MOVED), fault(1100, 2, 1, NO_ATTEMPT),
					    fault(2100, 2, 1, MOVED) };

	(void)state;
	run(f, 3, NEVER, &(struct expected){ 3, 1, 2, 0, 1, 0, 0, false });
}

static void test_l5(void **state)
{
	const struct nrp_hint_fault f[] = { fault(100, 1, 0, MOVED), fault(1100, 2, 1, MOVED),
					    fault(2100, 2, 0, NO_ATTEMPT) };

	(void)state;
	run(f, 3, 100, &(struct expected){ 2, 1, 2, 0, 1, 0, 0, false });
}

static struct nrp_scan_pass pass(uint64_t time, int32_t mm_users)
{
	struct nrp_scan_pass p;

	memset(&p, 0, sizeof(p));
	p.null = ~UINT64_C(0);
	NRP_SET(&p, scan_pass, time, time);
	NRP_SET(&p, scan_pass, mm, MM);
	NRP_SET(&p, scan_pass, tid, 1);
	NRP_SET(&p, scan_pass, mm_users, mm_users);
	return p;
}

static struct nrp_scan_range range(uint64_t time, uint64_t start, uint64_t end)
{
	struct nrp_scan_range g;

	memset(&g, 0, sizeof(g));
	g.null = ~UINT64_C(0);
	NRP_SET(&g, scan_range, time, time);
	NRP_SET(&g, scan_range, mm, MM);
	NRP_SET(&g, scan_range, start, start);
	NRP_SET(&g, scan_range, end, end);
	return g;
}

static void scan(struct nrp_worlds *w, uint64_t time, int32_t mm_users, uint64_t start,
		 uint64_t end)
{
	struct nrp_scan_pass p = pass(time, mm_users);
	struct nrp_scan_range g = range(time + 1, start, end);

	assert_int_equal(nrp_worlds_scan_pass(w, &p), 0);
	assert_int_equal(nrp_worlds_scan_range(w, &g), 0);
}

/* Remote hint faults in [1, 5]: the one that was recorded, and at most one per later pass. */
static void test_l6(void **state)
{
	struct nrp_host_facts facts = host();
	uint64_t after = NEVER;
	struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_EXPECTED);
	struct nrp_hint_fault f = fault(100, 1, 0, MOVED);

	(void)state;
	scan(w, 50, 1, ADDR, ADDR + 4096);
	assert_int_equal(feed(w, &f, false), 0);
	for (uint64_t i = 0; i < 4; i++)
		scan(w, 600 + 500 * i, 1, ADDR, ADDR + 4096);
	nrp_worlds_finish(w, 3200);
	check(w, &(struct expected){ 1, 1, 1, 0, 1, 0, 0, true });
	assert_int_equal(nrp_worlds_result(w, 0)->extra_faults_max, 4);
	nrp_worlds_free(w);
}

/* With a second user of the mm local pages are armed too: nothing is missing. */
static void test_no_missing_faults_in_threads(void **state)
{
	struct nrp_host_facts facts = host();
	uint64_t after = NEVER;
	struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_EXPECTED);
	struct nrp_hint_fault f = fault(100, 1, 0, MOVED);

	(void)state;
	scan(w, 50, 2, ADDR, ADDR + 4096);
	assert_int_equal(feed(w, &f, false), 0);
	for (uint64_t i = 0; i < 4; i++)
		scan(w, 600 + 500 * i, 2, ADDR, ADDR + 4096);
	nrp_worlds_finish(w, 3200);
	assert_int_equal(nrp_worlds_result(w, 0)->extra_faults_max, 0);
	nrp_worlds_free(w);
}

/* Only passes that cover the page count, and only those after it became remote. */
static void test_missing_faults_by_address(void **state)
{
	struct nrp_host_facts facts = host();
	uint64_t after = NEVER;
	struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_EXPECTED);
	struct nrp_hint_fault f = fault(100, 1, 0, MOVED);

	(void)state;
	scan(w, 20, 1, ADDR, ADDR + 4096);
	scan(w, 50, 1, ADDR, ADDR + 4096);
	assert_int_equal(feed(w, &f, false), 0);
	scan(w, 600, 1, ADDR + 4096, ADDR + 8192); /* next page */
	scan(w, 700, 1, ADDR - 4096, ADDR);        /* page before */
	scan(w, 800, 1, ADDR - 4096, ADDR + 8192); /* covers it */
	nrp_worlds_finish(w, 3200);
	assert_int_equal(nrp_worlds_result(w, 0)->extra_faults_max, 1);
	nrp_worlds_free(w);
}

/*
 * A huge page is one page of 512: at any address of it the same key, and it counts 512.
 * By hand: first fault moves it on record; the world never moves: 1 suppressed, both remote.
 */
static void test_huge_page(void **state)
{
	struct nrp_hint_fault f[2] = { fault(100, 1, 0, MOVED), fault(1100, 1, 1, NO_ATTEMPT) };
	struct nrp_host_facts facts = host();
	uint64_t after = NEVER, base = UINT64_C(0x200000);
	struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_EXPECTED);
	bool tainted;

	(void)state;
	f[0].pages = f[1].pages = 512;
	f[0].addr = base + 0x3000;
	f[1].addr = base + 0x1ff000;
	for (int i = 0; i < 2; i++)
		assert_int_equal(feed(w, &f[i], false), 0);
	nrp_worlds_finish(w, 3200);
	assert_int_equal(nrp_worlds_totals(w)->observed_moved_pages, 512);
	assert_int_equal(nrp_worlds_result(w, 0)->hint_fault_pages, 1024);
	assert_int_equal(nrp_worlds_result(w, 0)->remote_faults, 2);
	assert_int_equal(nrp_worlds_result(w, 0)->suppressed, 1);
	assert_int_equal(nrp_worlds_location(w, 0, MM, base / 4096, &tainted), 0);
	assert_true(tainted);
	nrp_worlds_free(w);
}

/*
 * Local huge pages of a single thread: armed by kernels with a THP function of their own, and by
 * those whose record shows local ones; else left alone like base pages. The page is refused at 100
 * on record and moved by the world; the recorded fault at 1100 is local there, and happens or not.
 */
static void test_local_huge_page(void **state)
{
	static const struct {
		bool thp_function, local_ones;
		uint32_t pages;
		uint64_t faults;
	} cases[] = { { false, false, 1, 1 },   { true, false, 1, 1 },   { false, true, 1, 2 },
		      { false, false, 512, 1 }, { true, false, 512, 2 }, { false, true, 512, 3 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nrp_hint_fault f[] = { fault(60, 1, 1, NO_ATTEMPT), fault(100, 1, 0, DENIED),
					      fault(1100, 1, 0, DENIED) };
		struct nrp_host_facts facts = host();
		uint64_t after = 0;
		struct nrp_worlds *w;

		facts.has_thp_function = cases[i].thp_function;
		w = new_world(&facts, &after, NRP_UNKNOWN_SUCCEEDS);
		scan(w, 50, 1, 0, ADDR + 0x800000);
		f[0].addr = ADDR + 0x400000; /* a local fault of another page */
		for (int k = cases[i].local_ones ? 0 : 1; k < 3; k++) {
			f[k].pages = cases[i].pages;
			assert_int_equal(feed(w, &f[k], k > 0), 0);
		}
		nrp_worlds_finish(w, 3200);
		assert_int_equal(nrp_worlds_result(w, 0)->hint_faults, cases[i].faults);
		assert_int_equal(nrp_worlds_result(w, 0)->moves, 1);
		nrp_worlds_free(w);
	}
}

/* A page found elsewhere than left moved without us: every world follows, taint is gone. */
static void test_external_move(void **state)
{
	const struct nrp_hint_fault f[] = { fault(100, 1, 0, MOVED),
					    fault(1100, 1, 0, NO_ATTEMPT) };

	(void)state;
	run(f, 2, NEVER, &(struct expected){ 2, 2, 1, 0, 1, 0, 0, false });
}

/*
 * Two threads fault on one page at once: thread 1 moves it from node 0 to 1 between 100 and 900,
 * thread 3, also on node 1, began at 500 when it was still on node 0, and its attempt at 600 finds
 * nothing left to do. That is no move by somebody else: taint survives it. The world refuses both,
 * so the page is on node 0 and remote at 2100 as well. A fault on node 0 that began after the move
 * is a move by somebody else.
 */
static void test_overtaken_fault(void **state)
{
	struct nrp_host_facts facts = host();
	uint64_t after = NEVER;
	bool tainted;

	(void)state;
	for (int late = 0; late < 2; late++) {
		struct nrp_hint_fault f[] = { fault(100, 1, 0, MOVED), fault(500, 1, 0, DENIED),
					      fault(2100, 1, 1, NO_ATTEMPT) };
		struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_EXPECTED);

		NRP_SET(&f[0], hint_fault, attempt_ns, late ? 300 : 800);
		f[1].tid = 3;
		f[1].attempt_delay = 100;
		for (int i = 0; i < 3; i++)
			assert_int_equal(feed(w, &f[i], false), 0);
		assert_int_equal(nrp_worlds_totals(w)->external_moves, late ? 2 : 0);
		assert_int_equal(nrp_worlds_totals(w)->observed_remote_faults, 2);
		assert_int_equal(nrp_worlds_result(w, 0)->remote_faults, late ? 2 : 3);
		assert_int_equal(nrp_worlds_location(w, 0, MM, PAGE, &tainted), late ? 1 : 0);
		assert_int_equal(tainted, !late);
		nrp_worlds_finish(w, 3200);
		nrp_worlds_free(w);
	}
}

/* The same where the world moves the page as well: all is as recorded. */
static void test_overtaken_fault_of_a_moved_page(void **state)
{
	struct nrp_host_facts facts = host();
	uint64_t after = 0;
	struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_EXPECTED);
	struct nrp_hint_fault f[] = { fault(100, 1, 0, MOVED), fault(500, 1, 0, DENIED),
				      fault(2100, 1, 1, NO_ATTEMPT) };

	(void)state;
	NRP_SET(&f[0], hint_fault, attempt_ns, 800);
	f[1].tid = 3;
	for (int i = 0; i < 3; i++)
		assert_int_equal(feed(w, &f[i], false), 0);
	nrp_worlds_finish(w, 3200);
	check(w, &(struct expected){ 2, 2, 1, 1, 0, 0, 1, false });
	assert_int_equal(nrp_worlds_totals(w)->external_moves, 0);
	nrp_worlds_free(w);
}

/*
 * Residency by hand: page on node 0, thread 1 (node 1) faults at 1 s and 3 s, capture ends at 4 s,
 * the record moves it at 1 s, the world never. Record: 0 s remote. World: 2 s until the second
 * fault with either accessor, and 1 s to the end with the previous one.
 */
static void test_residency(void **state)
{
	struct nrp_remote record, world;
	const uint64_t s = UINT64_C(1000000000);
	const struct nrp_hint_fault f[] = { fault(1 * s, 1, 0, MOVED),
					    fault(3 * s, 1, 1, NO_ATTEMPT) };
	struct nrp_host_facts facts = host();
	uint64_t after = NEVER;
	struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_EXPECTED);

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(feed(w, &f[i], false), 0);
	nrp_worlds_finish(w, 4 * s);
	assert_int_equal(nrp_locality_remote(nrp_worlds_locality(w), -1, &record), 0);
	assert_int_equal(nrp_locality_remote(nrp_worlds_locality(w), 0, &world), 0);
	assert_true(record.residency.value == 0);
	assert_float_equal(world.residency.value, 3, 0.001);
	assert_true(world.residency.lower <= 2 && world.residency.upper >= 3);
	assert_true(nrp_worlds_result(w, 0)->tainted_seconds > 2.999);
	assert_true(nrp_worlds_totals(w)->page_seconds > 2.999);
	nrp_worlds_free(w);
}

/* An outcome the record does not have: fails, succeeds, as asked. */
static void test_unknown_outcome(void **state)
{
	const struct nrp_hint_fault f = fault(100, 1, 0, DENIED);
	struct nrp_host_facts facts = host();
	uint64_t after = 0;

	(void)state;
	for (int succeeds = 0; succeeds < 2; succeeds++) {
		struct nrp_worlds *w = new_world(
			&facts, &after, succeeds ? NRP_UNKNOWN_SUCCEEDS : NRP_UNKNOWN_FAILS);

		assert_int_equal(feed(w, &f, true), 0);
		assert_int_equal(nrp_worlds_result(w, 0)->moves, succeeds);
		assert_int_equal(nrp_worlds_result(w, 0)->admitted, 1);
		nrp_worlds_free(w);
	}
}

/*
 * A fault that a world does not have leaves no mark there. By hand, filter 6.1, page on node 1:
 * thread 2 is refused at 100 on record, the world moves the page to node 0, thread 2 is its last
 * user. The pass at 600 is left out, so thread 3's access at 1100 marks the page on record only. At
 * 70 s thread 258 comes from node 1, young, with thread 2's pid byte: the page is its own (D4) and
 * moves back. Thread 3's mark would have kept it (D5).
 */
/* One world that takes unknown facts as @unknown; a fault at 1500 that the lane does not have. */
static struct nrp_worlds *without_move(const struct nrp_host_facts *facts, uint64_t *after,
				       enum nrp_unknown unknown, enum nrp_armed armed)
{
	struct nrp_worlds *w = new_world(facts, after, unknown);
	struct nrp_fault_context context = { .armed = { armed } };
	struct nrp_hint_fault f = fault(1500, 1, 0, MOVED);

	*after = 0;
	scan(w, 1000, 1, 0, 1 << 20);
	assert_int_equal(nrp_worlds_fault(w, &f, &context), 0);
	for (uint64_t time = 2000; time <= 4000; time += 1000)
		scan(w, time, 1, 0, 1 << 20);
	assert_int_equal(nrp_worlds_finish(w, 5000), 0);
	return w;
}

/*
 * The lane's scanner comes by after the fault that it lacks: there the page stays, or a fault that
 * is not on record moves it.
 */
static void test_page_armed_later_moves_later(void **state)
{
	static const struct {
		enum nrp_armed armed;
		enum nrp_unknown unknown;
		uint64_t faults, moves, missing;
		int nid;
	} cases[] = {
		/* If it does not move, it faults in each of the three passes. */
		{ NRP_ARMED_LATER, NRP_UNKNOWN_SUCCEEDS, 1, 1, 3, 1 },
		{ NRP_ARMED_LATER, NRP_UNKNOWN_FAILS, 0, 0, 3, 0 },
		/* They are none of the lane's. */
		{ NRP_ARMED_NO, NRP_UNKNOWN_SUCCEEDS, 0, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct nrp_host_facts facts = host();
		uint64_t after;
		struct nrp_worlds *w =
			without_move(&facts, &after, cases[i].unknown, cases[i].armed);
		const struct nrp_world_result *r = nrp_worlds_result(w, 0);
		bool tainted;

		assert_int_equal(r->hint_faults, cases[i].faults);
		assert_int_equal(r->moves, cases[i].moves);
		assert_int_equal(nrp_worlds_location(w, 0, MM, PAGE, &tainted), cases[i].nid);
		assert_int_equal(r->extra_faults_max, cases[i].missing);
		nrp_worlds_free(w);
	}
}

/*
 * A page that the lane's filter refuses stays remote. Refused again at 4500, it was so in the three
 * passes before; with nothing more to see, they may have armed it and each fault.
 */
static void test_refused_page_misses_no_faults_until_it_is_refused_again(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		struct nrp_host_facts facts = host();
		struct nrp_fault_context context = { .armed = { NRP_ARMED_REFUSED } };
		const struct nrp_hint_fault f[] = { fault(1500, 1, 0, MOVED),
						    fault(4500, 2, 1, MOVED) };
		uint64_t after = 0;
		struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_SUCCEEDS);

		scan(w, 1000, 1, 0, 1 << 20);
		assert_int_equal(nrp_worlds_fault(w, &f[0], &context), 0);
		for (uint64_t time = 2000; time <= 4000; time += 1000)
			scan(w, time, 1, 0, 1 << 20);
		if (again)
			assert_int_equal(nrp_worlds_fault(w, &f[1], &context), 0);
		assert_int_equal(nrp_worlds_finish(w, 5000), 0);
		assert_int_equal(nrp_worlds_result(w, 0)->hint_faults, 0);
		assert_int_equal(nrp_worlds_result(w, 0)->moves, 0);
		assert_int_equal(nrp_worlds_result(w, 0)->extra_faults_max, again ? 0 : 3);
		/* The first of them moves it. */
		assert_int_equal(nrp_worlds_result(w, 0)->extra_moves_max, again ? 0 : 1);
		nrp_worlds_free(w);
	}
}

/*
 * An attempt that came to nothing on record, in a lane that leaves out faults: what was in its way
 * may be gone. While the page is shared, whatever was is there, too.
 */
static void test_failed_attempt_may_succeed_where_others_are_left_out(void **state)
{
	static const struct {
		enum nrp_unknown unknown;
		bool leaves_out;
		int32_t mapcount;
		uint64_t moves;
	} cases[] = {
		{ NRP_UNKNOWN_SUCCEEDS, true, 0, 1 },
		{ NRP_UNKNOWN_EXPECTED, true, 0, 0 },
		{ NRP_UNKNOWN_SUCCEEDS, false, 0, 0 },
		{ NRP_UNKNOWN_SUCCEEDS, true, 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nrp_host_facts facts = host();
		struct nrp_fault_context context = { .armed = { NRP_ARMED_UNKNOWN } };
		struct nrp_world_config config = { .limiter = { .variant = NRP_RATELIMIT_NONE },
						   .nr_nodes = 2,
						   .filter = NRP_FILTER_61,
						   .filter_passes = true,
						   .leaves_out = cases[i].leaves_out,
						   .unknown = cases[i].unknown };
		struct nrp_hint_fault f = fault(1500, 1, 0, DENIED);
		struct nrp_worlds *w;

		NRP_SET(&f, hint_fault, mapcount, cases[i].mapcount);
		assert_int_equal(nrp_worlds_new(&w, &facts, NRP_FILTER_61, 60000, 0, false, &config,
						1, NULL),
				 0);
		scan(w, 1000, 1, 0, 1 << 20);
		assert_int_equal(nrp_worlds_fault(w, &f, &context), 0);
		assert_int_equal(nrp_worlds_finish(w, 2000), 0);
		assert_int_equal(nrp_worlds_result(w, 0)->moves, cases[i].moves);
		assert_int_equal(nrp_worlds_result(w, 0)->new_attempts, cases[i].moves);
		/* Nobody else maps the page. */
		assert_int_equal(nrp_worlds_result(w, 0)->new_waiters, 0);
		nrp_worlds_free(w);
	}
}

/* As many as map the page, if each is one thread. */
static void test_new_attempt_blocks_at_most_the_others_that_map_the_page(void **state)
{
	struct nrp_host_facts facts = host();
	struct nrp_fault_context context = { .refused = true };
	uint64_t after = 0;
	struct nrp_hint_fault f = fault(1500, 1, 0, DENIED);
	struct nrp_worlds *w = new_world(&facts, &after, NRP_UNKNOWN_SUCCEEDS);

	(void)state;
	NRP_SET(&f, hint_fault, mapcount, 7);
	scan(w, 1000, 1, 0, 1 << 20);
	assert_int_equal(nrp_worlds_fault(w, &f, &context), 0);
	assert_int_equal(nrp_worlds_finish(w, 2000), 0);
	assert_int_equal(nrp_worlds_result(w, 0)->new_attempts, 1);
	assert_int_equal(nrp_worlds_result(w, 0)->new_waiters, 7);
	nrp_worlds_free(w);
}

static void test_left_out_fault_leaves_no_mark(void **state)
{
	const uint64_t ms = 1000000;
	struct nrp_host_facts facts = host();
	struct nrp_world_config config = { .filter = NRP_FILTER_61,
					   .limiter = { .variant = NRP_RATELIMIT_NONE },
					   .nr_nodes = 2,
					   .unknown = NRP_UNKNOWN_SUCCEEDS,
					   .thin_after_divergence = true };
	struct nrp_hint_fault f[] = { fault(60 * ms, 1, 0, NO_ATTEMPT),
				      fault(100 * ms, 2, 1, DENIED), fault(1100 * ms, 2, 1, DENIED),
				      fault(70000 * ms, 1, 1, NO_ATTEMPT) };
	struct nrp_worlds *w;

	(void)state;
	f[0].tid = f[3].tid = 258;
	f[0].addr = ADDR + 0x10000; /* only to show thread 258 to the world */
	f[2].tid = 3;
	f[2].cpu = 1;
	f[3].last_cpupid = 1 << 8 | 3;
	for (int i = 0; i < 3; i++) {
		NRP_SET(&f[i], hint_fault, filter_delay, 0);
		NRP_SET(&f[i], hint_fault, preferred_nid, -1);
		NRP_SET(&f[i], hint_fault, scan_seq, 0);
	}
	assert_int_equal(
		nrp_worlds_new(&w, &facts, NRP_FILTER_61, 60000, 0, false, &config, 1, NULL), 0);
	scan(w, 50 * ms, 2, 0, ADDR + 0x20000);
	assert_int_equal(feed(w, &f[0], false), 0);
	assert_int_equal(feed(w, &f[1], true), 0);
	scan(w, 600 * ms, 2, 0, ADDR + 0x20000);
	assert_int_equal(feed(w, &f[2], true), 0);
	scan(w, 69000 * ms, 2, 0, ADDR + 0x20000);
	assert_int_equal(feed(w, &f[3], false), 0);
	nrp_worlds_finish(w, 71000 * ms);
	assert_int_equal(nrp_worlds_result(w, 0)->hint_faults, 3);
	assert_int_equal(nrp_worlds_result(w, 0)->moves, 2);
	nrp_worlds_free(w);
}

/* Null test: a world that decides as the record did is the record. */
static void test_null(void **state)
{
	struct nrp_host_facts facts = host();
	struct nrp_world_config config = { .filter = NRP_FILTER_61,
					   .limiter = { .variant = NRP_RATELIMIT_NONE },
					   .nr_nodes = 2,
					   .unknown = NRP_UNKNOWN_EXPECTED };
	struct nrp_worlds *w;
	uint32_t seed = 12345;
	int nid[64] = { 0 };
	uint64_t moves = 0;

	(void)state;
	assert_int_equal(
		nrp_worlds_new(&w, &facts, NRP_FILTER_61, 60000, 0, false, &config, 1, NULL), 0);
	for (uint64_t i = 1; i <= 5000; i++) {
		struct nrp_hint_fault f;
		int page, tid, this;

		seed = seed * 1664525 + 1013904223;
		page = (int)(seed >> 26);
		tid = 1 + (int)(seed >> 25 & 1);
		this = tid == 1;
		f = fault(i * 1000, tid, nid[page],
			  nid[page] == this ? NO_ATTEMPT
			  : seed >> 24 & 1  ? MOVED
					    : NO_ATTEMPT);
		f.addr = ADDR + 4096 * (uint64_t)page;
		if (f.attempt) {
			nid[page] = this;
			moves++;
		}
		assert_int_equal(feed(w, &f, false), 0);
	}
	nrp_worlds_finish(w, 6000000);
	assert_int_equal(nrp_worlds_result(w, 0)->moves, moves);
	assert_int_equal(nrp_worlds_totals(w)->observed_moves, moves);
	assert_int_equal(nrp_worlds_result(w, 0)->suppressed, 0);
	assert_int_equal(nrp_worlds_result(w, 0)->added, 0);
	assert_int_equal(nrp_worlds_result(w, 0)->remote_faults,
			 nrp_worlds_totals(w)->observed_remote_faults);
	assert_true(nrp_worlds_result(w, 0)->tainted_seconds == 0);
	assert_int_equal(nrp_worlds_totals(w)->external_moves, 0);
	nrp_worlds_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_l1),
		cmocka_unit_test(test_l2),
		cmocka_unit_test(test_l3),
		cmocka_unit_test(test_l4),
		cmocka_unit_test(test_l5),
		cmocka_unit_test(test_l6),
		cmocka_unit_test(test_no_missing_faults_in_threads),
		cmocka_unit_test(test_missing_faults_by_address),
		cmocka_unit_test(test_huge_page),
		cmocka_unit_test(test_local_huge_page),
		cmocka_unit_test(test_external_move),
		cmocka_unit_test(test_overtaken_fault),
		cmocka_unit_test(test_overtaken_fault_of_a_moved_page),
		cmocka_unit_test(test_residency),
		cmocka_unit_test(test_unknown_outcome),
		cmocka_unit_test(test_page_armed_later_moves_later),
		cmocka_unit_test(test_refused_page_misses_no_faults_until_it_is_refused_again),
		cmocka_unit_test(test_failed_attempt_may_succeed_where_others_are_left_out),
		cmocka_unit_test(test_new_attempt_blocks_at_most_the_others_that_map_the_page),
		cmocka_unit_test(test_left_out_fault_leaves_no_mark),
		cmocka_unit_test(test_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
