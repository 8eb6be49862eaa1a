/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.vma: vectors B1..B13 of the specification (scan.md 9), switched-off rules by hand. Addresses
 * in MB, 1000 ticks a second, scan delay 1000 ms, scan size 256 MB, 4 KiB pages. A log reads
 * "NAME[start,end)uENTRIES" for a range and "NAME REASON" for a skip.
 */
#include "replay/policies/scan_vma.h"
#include "replay/policies/ticks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MB (UINT64_C(1) << 20)
#define PAGE UINT64_C(4096)
#define MB_PAGES (MB / PAGE)
#define ROOM 8
#define FAR_RESET UINT64_C(1000000000)

#define P0 (1u << NRP_SCAN_VMA_P0)
#define P1 (1u << NRP_SCAN_VMA_P1)
#define P2 (1u << NRP_SCAN_VMA_P2)
#define P3 (1u << NRP_SCAN_VMA_P3)
#define P4 (1u << NRP_SCAN_VMA_P4)

/* An address space with every page present, unless told otherwise. */
struct world {
	struct nrp_scan_vma_policy policy;
	struct nrp_scan_mm mm;
	struct nrp_scan_vma vma[ROOM];
	char name[ROOM];
	bool *armed[ROOM]; /* per page */
	bool absent[ROOM];
	int32_t nr_threads;
	char log[1024];
};

static struct world *new_world(enum nrp_scan_vma_variant variant, int32_t seq, int32_t nr_threads)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->policy = (struct nrp_scan_vma_policy){
		.variant = variant,
		.rules = nrp_scan_vma_rules(variant),
		.page_size = PAGE,
		.huge_size = 2 * MB,
		.scan_pages = 65536,
		.delay_jiffies = nrp_ms_to_ticks(1000, 1000),
		.window_jiffies = nrp_ms_to_ticks(4000, 1000),
	};
	w->mm.seq = seq;
	w->mm.vma = w->vma;
	w->nr_threads = nr_threads;
	return w;
}

static void free_world(struct world *w)
{
	for (size_t i = 0; i < w->mm.nr_vmas; i++)
		free(w->armed[i]);
	free(w);
}

/* A VMA with the vectors' default state; the caller changes what differs. */
static struct nrp_scan_vma *add_bytes(struct world *w, char name, uint64_t start, uint64_t end)
{
	size_t i = w->mm.nr_vmas++;

	assert_in_range(i, 0, ROOM - 1);
	w->name[i] = name;
	w->armed[i] = calloc((end - start) / PAGE, sizeof(bool));
	assert_non_null(w->armed[i]);
	w->vma[i] = (struct nrp_scan_vma){
		.start = start,
		.end = end,
		.has_state = true,
		.state = { .pids_reset = FAR_RESET, .prev_seq = 4 },
	};
	return &w->vma[i];
}

static struct nrp_scan_vma *add(struct world *w, char name, uint64_t start, uint64_t end)
{
	return add_bytes(w, name, start * MB, end * MB);
}

static void touch(struct world *w, size_t i, int32_t tid)
{
	memset(w->armed[i], 0, (w->vma[i].end - w->vma[i].start) / PAGE);
	nrp_scan_vma_touch(&w->vma[i], tid);
}

__attribute__((format(printf, 2, 3))) static void note(struct world *w, const char *fmt, ...)
{
	size_t used = strlen(w->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->log + used, sizeof(w->log) - used, fmt, ap);
	va_end(ap);
}

static bool on_arm(void *context, const struct nrp_scan_vma *vma, uint64_t start, uint64_t end,
		   enum nrp_scan_vma_pass by)
{
	struct world *w = context;
	size_t i = (size_t)(vma - w->vma), entries = 0;

	(void)by;
	for (uint64_t p = start; p < end && !w->absent[i]; p += PAGE) {
		bool *armed = &w->armed[i][(p - vma->start) / PAGE];

		entries += !*armed;
		*armed = true;
	}
	note(w, "%s%c[%llu,%llu)u%zu", *w->log ? " " : "", w->name[i],
	     (unsigned long long)(start / MB), (unsigned long long)(end / MB), entries);
	return entries != 0;
}

static void on_skip(void *context, const struct nrp_scan_vma *vma, enum nrp_scan_vma_skip why)
{
	static const char *const names[] = { "UNSUITABLE", "SHARED_RO", "INACCESSIBLE",  "DELAY",
					     "INACT",      "IGNORE",    "SEQ_COMPLETED", "CPUSET" };
	struct world *w = context;

	if (vma)
		note(w, "%s%c %s", *w->log ? " " : "", w->name[vma - w->vma], names[why]);
	else
		note(w, "%s", names[why]);
}

static void check_call(struct world *w, const struct nrp_scan_call *call, const char *log,
		       int32_t seq, uint64_t offset_mb)
{
	struct nrp_scan_ops ops = { .arm = on_arm, .skip = on_skip, .context = w };

	w->log[0] = 0;
	nrp_scan_vma_run(&w->policy, &w->mm, call, &ops);
	if (strcmp(w->log, log) || w->mm.seq != seq || w->mm.offset != offset_mb * MB)
		fail_msg("%s at %llu:\n got  %s -> (%d,%llu)\n want %s -> (%d,%llu)",
			 nrp_scan_vma_variant_name(w->policy.variant),
			 (unsigned long long)call->jiffies, w->log, w->mm.seq,
			 (unsigned long long)(w->mm.offset / MB), log, seq,
			 (unsigned long long)offset_mb);
}

static void check(struct world *w, int32_t tid, uint64_t t, const char *log, int32_t seq,
		  uint64_t offset_mb)
{
	struct nrp_scan_call call = {
		.tid = tid, .nr_threads = w->nr_threads, .jiffies = t, .jiffies_now = t
	};

	check_call(w, &call, log, seq, offset_mb);
}

/* One row of a vector's table, for the variants of the mask. */
struct step {
	unsigned int variants;
	int32_t tid;
	uint64_t t;
	const char *log;
	int32_t seq;
	uint64_t offset;
};

#define for_each_variant(v, mask)                                                                  \
	for (int v = NRP_SCAN_VMA_P0; v < NRP_NR_SCAN_VMA_VARIANTS; v++)                           \
		if ((mask) >> v & 1)

static void check_steps(struct world *w, const struct step *steps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (steps[i].variants >> w->policy.variant & 1)
			check(w, steps[i].tid, steps[i].t, steps[i].log, steps[i].seq,
			      steps[i].offset);
}

#define NR(array) (sizeof(array) / sizeof((array)[0]))
#define LATER (P2 | P3 | P4)
#define WITH_STATE (P1 | LATER)

static void b1_first_two_sequences_pass_while_new_vmas_wait(void **state)
{
	static const struct step steps[] = {
		{ ~0u, 100, 1000, "A[0,100)u25600 B[200,300)u25600", 1, 0 },
		{ P0, 100, 1500, "A[0,100)u0 B[200,300)u0", 2, 0 },
		{ P0, 100, 2000, "A[0,100)u0 B[200,300)u0", 3, 0 },
		{ P0, 100, 3000, "A[0,100)u0 B[200,300)u0", 4, 0 },
		{ WITH_STATE, 100, 1500, "A DELAY B DELAY", 2, 0 },
		{ P1, 100, 2000, "A INACT B INACT", 3, 0 },
		{ P1, 100, 3000, "A INACT B INACT", 4, 0 },
		{ LATER, 100, 2000, "A INACT B INACT A[0,100)u0", 2, 100 },
		{ LATER, 100, 3000, "B INACT B[200,300)u0", 2, 300 },
	};

	(void)state;
	for_each_variant(v, ~0u)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 0, 8);

		add(w, 'A', 0, 100)->has_state = false;
		add(w, 'B', 200, 300)->has_state = false;
		check_steps(w, steps, NR(steps));
		free_world(w);
	}
}

/* B idle below A, which thread 100 uses; A is touched after every third run. */
static struct world *b2_world(enum nrp_scan_vma_variant variant, int32_t nr_threads)
{
	struct world *w = new_world(variant, 5, nr_threads);

	add(w, 'B', 0, 100);
	nrp_scan_vma_touch(add(w, 'A', 1000, 1600), 100);
	return w;
}

static void b2_steps(struct world *w, const struct step *steps, size_t n)
{
	size_t run = 0;

	for (size_t i = 0; i < n; i++) {
		if (!(steps[i].variants >> w->policy.variant & 1))
			continue;
		check_steps(w, &steps[i], 1);
		if (++run % 3 == 0)
			touch(w, 1, 100);
	}
}

static void b2_idle_vma_below_a_hot_one_starves_until_p3(void **state)
{
	static const struct step steps[] = {
		{ ~0u, 100, 50000, "B INACT A[1000,1256)u65536", 5, 1256 },
		{ ~0u, 100, 51000, "A[1256,1512)u65536", 5, 1512 },
		{ ~0u, 100, 52000, "A[1512,1600)u22528", 6, 0 },
		{ P1 | P2, 100, 53000, "B INACT A[1000,1256)u65536", 6, 1256 },
		{ P1 | P2, 100, 54000, "A[1256,1512)u65536", 6, 1512 },
		{ P1 | P2, 100, 55000, "A[1512,1600)u22528", 7, 0 },
		{ P1 | P2, 100, 56000, "B INACT A[1000,1256)u65536", 7, 1256 },
		{ P3, 100, 53000, "B[0,100)u25600 A[1000,1156)u39936", 6, 1156 },
		{ P3, 100, 54000, "A[1156,1412)u65536", 6, 1412 },
		{ P3, 100, 55000, "A[1412,1600)u48128", 7, 0 },
		{ P3, 100, 56000, "B INACT A[1000,1256)u65536", 7, 1256 },
		{ P3, 100, 57000, "A[1256,1512)u65536", 7, 1512 },
		{ P3, 100, 58000, "A[1512,1600)u22528", 8, 0 },
		{ P3, 100, 59000, "B[0,100)u0 A[1000,1256)u65536", 8, 1256 },
	};

	(void)state;
	for_each_variant(v, P1 | P2 | P3)
	{
		struct world *w = b2_world((enum nrp_scan_vma_variant)v, 1);

		b2_steps(w, steps, NR(steps));
		free_world(w);
	}
}

static void b2_more_threads_mean_a_longer_starvation(void **state)
{
	static const struct step steps[] = {
		{ P3, 100, 50000, "B INACT A[1000,1256)u65536", 5, 1256 },
		{ P3, 100, 51000, "A[1256,1512)u65536", 5, 1512 },
		{ P3, 100, 52000, "A[1512,1600)u22528", 6, 0 },
		{ P3, 100, 53000, "B INACT A[1000,1256)u65536", 6, 1256 },
		{ P3, 100, 54000, "A[1256,1512)u65536", 6, 1512 },
		{ P3, 100, 55000, "A[1512,1600)u22528", 7, 0 },
		{ P3, 100, 56000, "B INACT A[1000,1256)u65536", 7, 1256 },
		{ P3, 100, 57000, "A[1256,1512)u65536", 7, 1512 },
		{ P3, 100, 58000, "A[1512,1600)u22528", 8, 0 },
		{ P3, 100, 59000, "B[0,100)u25600 A[1000,1156)u39936", 8, 1156 },
	};
	struct world *w = b2_world(NRP_SCAN_VMA_P3, 3);

	(void)state;
	b2_steps(w, steps, NR(steps));
	free_world(w);
}

static void b2_untouched_hot_vma_lets_p2_reach_the_idle_one(void **state)
{
	struct world *w = b2_world(NRP_SCAN_VMA_P2, 1);

	(void)state;
	check(w, 100, 50000, "B INACT A[1000,1256)u65536", 5, 1256);
	check(w, 100, 51000, "A[1256,1512)u65536", 5, 1512);
	check(w, 100, 52000, "A[1512,1600)u22528", 6, 0);
	check(w, 100, 53000, "B INACT A[1000,1256)u0 A[1256,1512)u0 A[1512,1600)u0 B[0,100)u25600",
	      6, 100);
	free_world(w);
}

static void b3_second_walk_begins_behind_the_completed_vma_and_wraps(void **state)
{
	(void)state;
	for_each_variant(v, LATER)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 9);
		struct nrp_scan_vma *c;

		add(w, 'A', 0, 10);
		c = add(w, 'C', 20, 30);
		c->state.prev_seq = 5;
		nrp_scan_vma_touch(c, 100);
		check(w, 100, 50000, "A INACT C SEQ_COMPLETED A[0,10)u2560", 6, 10);
		free_world(w);
	}
}

static struct world *b4_world(enum nrp_scan_vma_variant variant)
{
	struct world *w = new_world(variant, 5, 2);

	nrp_scan_vma_touch(add(w, 'A', 0, 600), 100);
	nrp_scan_vma_touch(add(w, 'D', 700, 710), 200);
	return w;
}

static void b4_partial_vma_goes_on_with_another_thread_since_p2(void **state)
{
	static const struct step steps[] = {
		{ ~0u, 100, 50000, "A[0,256)u65536", 5, 256 },
		{ P1, 200, 51000, "A INACT D[700,710)u2560", 6, 0 },
		{ LATER, 200, 51000, "A IGNORE A[256,512)u65536", 5, 512 },
		{ LATER, 200, 52000, "A IGNORE A[512,600)u22528 D[700,710)u2560", 6, 0 },
	};

	(void)state;
	for_each_variant(v, WITH_STATE)
	{
		struct world *w = b4_world((enum nrp_scan_vma_variant)v);

		check_steps(w, steps, NR(steps));
		free_world(w);
	}
}

static void b5_p1_rotates_the_window_only_behind_the_check(void **state)
{
	static const struct step steps[] = {
		{ P1, 200, 50001, "A INACT", 6, 0 },
		{ P1, 100, 54001, "A[0,10)u2560", 7, 0 },
		{ P1, 100, 58001, "A[0,10)u0", 8, 0 },
		{ P1, 100, 62001, "A INACT", 9, 0 },
		{ LATER, 200, 50001, "A INACT A[0,10)u2560", 5, 10 },
		{ LATER, 100, 54001, "A INACT A[0,10)u0", 6, 10 },
		{ LATER, 100, 58001, "A INACT A[0,10)u0", 7, 10 },
		{ LATER, 100, 62001, "A INACT A[0,10)u0", 8, 10 },
	};

	(void)state;
	for_each_variant(v, WITH_STATE)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 9);
		struct nrp_scan_vma *a = add(w, 'A', 0, 10);

		nrp_scan_vma_touch(a, 100);
		a->state.pids_reset = 50000;
		check_steps(w, steps, 1);
		if (v == NRP_SCAN_VMA_P1) {
			assert_int_equal(a->state.pids_reset, 50000);
			assert_int_equal(a->state.pids[1], nrp_scan_pid_bit(100));
		}
		check_steps(w, steps + 1, NR(steps) - 1);
		free_world(w);
	}
}

static void b6_budget_that_ends_with_the_vma_leaves_it_unscanned(void **state)
{
	(void)state;
	for_each_variant(v, LATER)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 1);
		struct nrp_scan_vma *a = add(w, 'A', 0, 256);

		a->state.prev_seq = 3;
		nrp_scan_vma_touch(a, 100);
		nrp_scan_vma_touch(add(w, 'B', 300, 310), 100);
		check(w, 100, 50000, "A[0,256)u65536", 5, 256);
		assert_int_equal(a->state.prev_seq, 3);
		check(w, 100, 51000, "B[300,310)u2560", 6, 0);
		free_world(w);
	}
}

static void b6_one_page_less_goes_on_with_the_next_vma(void **state)
{
	(void)state;
	for_each_variant(v, LATER)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 1);
		struct nrp_scan_vma *a = add_bytes(w, 'A', 0, 256 * MB - PAGE);

		a->state.prev_seq = 3;
		nrp_scan_vma_touch(a, 100);
		nrp_scan_vma_touch(add(w, 'B', 300, 310), 100);
		check(w, 100, 50000, "A[0,255)u65535 B[300,302)u512", 5, 302);
		assert_int_equal(a->state.prev_seq, 5);
		free_world(w);
	}
}

static void b7_reasons_come_in_the_kernels_order(void **state)
{
#define V123 "X SHARED_RO Y INACCESSIBLE U UNSUITABLE "
	static const struct step steps[] = {
		{ P0, 100, 50000, V123 "A[30,40)u2560 B[40,50)u2560 C[50,60)u2560", 6, 0 },
		{ P1, 100, 50000, V123 "A DELAY B[40,50)u2560 C INACT", 6, 0 },
		{ LATER, 100, 50000, V123 "A DELAY B SEQ_COMPLETED C INACT C[50,60)u2560", 5, 60 },
	};
#undef V123

	(void)state;
	for_each_variant(v, ~0u)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 9);
		struct nrp_scan_vma *b;

		add(w, 'X', 0, 10)->class = NRP_SCAN_VMA_SHARED_RO;
		add(w, 'Y', 10, 20)->class = NRP_SCAN_VMA_INACCESSIBLE;
		add(w, 'U', 20, 30)->class = NRP_SCAN_VMA_UNSUITABLE;
		add(w, 'A', 30, 40)->state.next_scan = 60000;
		b = add(w, 'B', 40, 50);
		b->state.prev_seq = 5;
		nrp_scan_vma_touch(b, 100);
		add(w, 'C', 50, 60);
		check_steps(w, steps, NR(steps));
		free_world(w);
	}
}

static void b8_vma_born_late_never_passes_p1(void **state)
{
	static const struct step steps[] = {
		{ WITH_STATE, 100, 50000, "N DELAY", 8, 0 },
		{ WITH_STATE, 100, 50500, "N DELAY", 9, 0 },
		{ P1, 100, 51000, "N INACT", 10, 0 },
		{ P1, 100, 52000, "N INACT", 11, 0 },
		{ LATER, 100, 51000, "N INACT N[0,10)u2560", 9, 10 },
		{ LATER, 100, 52000, "N INACT N[0,10)u0", 10, 10 },
	};

	(void)state;
	for_each_variant(v, WITH_STATE)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 7, 9);

		add(w, 'N', 0, 10)->has_state = false;
		check_steps(w, steps, NR(steps));
		free_world(w);
	}
}

static void b9_threads_with_the_same_hash_open_the_vma_for_each_other(void **state)
{
	static const struct step steps[] = {
		{ WITH_STATE, 189, 50000, "A[0,10)u2560", 6, 0 },
		{ P1, 155, 51000, "A INACT", 7, 0 },
		{ LATER, 155, 51000, "A INACT A[0,10)u0", 6, 10 },
	};

	(void)state;
	for_each_variant(v, WITH_STATE)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 9);

		nrp_scan_vma_touch(add(w, 'A', 0, 10), 100);
		check_steps(w, steps, NR(steps));
		free_world(w);
	}
}

static void b10_stale_begins_above_nr_threads_sequences(void **state)
{
	static const struct step steps[] = {
		{ P2, 100, 50000, "A INACT Z INACT A[0,10)u2560", 6, 10 },
		{ P3 | P4, 100, 50000, "A INACT Z[20,30)u2560 A[0,10)u2560", 6, 10 },
	};

	(void)state;
	for_each_variant(v, LATER)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 6, 2);

		add(w, 'A', 0, 10);
		add(w, 'Z', 20, 30)->state.prev_seq = 3;
		check_steps(w, steps, NR(steps));
		free_world(w);
	}
}

static struct world *b11_world(enum nrp_scan_vma_variant variant)
{
	struct world *w = new_world(variant, 0, 1);

	add(w, 'A', 0, 10)->state.prev_seq = 6;
	add(w, 'B', 10, 20)->state = (struct nrp_scan_vma_state){ .pids_reset = FAR_RESET,
								  .start_seq = 5,
								  .prev_seq = 6 };
	return w;
}

static void b11_sequence_that_a_fork_reset_opens_old_vmas_again(void **state)
{
	static const struct step steps[] = {
		{ WITH_STATE, 100, 50000, "A[0,10)u2560 B[10,20)u2560", 1, 0 },
		{ WITH_STATE, 100, 51000, "A[0,10)u0 B[10,20)u0", 2, 0 },
		{ P1, 100, 52000, "A INACT B INACT", 3, 0 },
		{ P1, 100, 53000, "A INACT B INACT", 4, 0 },
		{ LATER, 100, 52000, "A INACT B[10,20)u0 A[0,10)u0", 2, 10 },
		{ LATER, 100, 53000, "B SEQ_COMPLETED", 3, 0 },
		{ LATER, 100, 54000, "A INACT B[10,20)u0 A[0,10)u0", 3, 10 },
	};

	(void)state;
	for_each_variant(v, WITH_STATE)
	{
		struct world *w = b11_world((enum nrp_scan_vma_variant)v);

		check_steps(w, steps, NR(steps));
		free_world(w);
	}
}

static void b12_run_looks_at_eight_times_its_budget_at_most(void **state)
{
	static const char low[] = "A[0,256)u0 A[256,512)u0 A[512,768)u0 A[768,1024)u0 "
				  "A[1024,1280)u0 A[1280,1536)u0 A[1536,1792)u0 A[1792,2048)u0";
	static const char high[] = "A[2048,2304)u0 A[2304,2560)u0 A[2560,2816)u0 A[2816,3072)u0 "
				   "A[3072,3328)u0 A[3328,3584)u0 A[3584,3840)u0 A[3840,4096)u0";

	(void)state;
	for_each_variant(v, P0 | WITH_STATE)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 9);

		nrp_scan_vma_touch(add(w, 'A', 0, 4096), 100);
		w->absent[0] = true;
		check(w, 100, 50000, low, 5, 2048);
		check(w, 100, 51000, high, 5, 4096);
		check(w, 100, 52000, low, 6, 2048);
		free_world(w);
	}
}

static void b12_ends_of_ranges_are_rounded_up_to_a_huge_page(void **state)
{
	(void)state;
	for_each_variant(v, P0 | WITH_STATE)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 9);

		nrp_scan_vma_touch(add(w, 'A', 1, 400), 100);
		check(w, 100, 50000, "A[1,258)u65792", 5, 258);
		free_world(w);
	}
}

static void b13_task_bound_to_one_node_does_not_scan_under_p4(void **state)
{
	struct nrp_scan_call call = { .tid = 100,
				      .nr_threads = 9,
				      .jiffies = 50000,
				      .jiffies_now = 50000,
				      .cpuset_one_node = true };

	(void)state;
	for_each_variant(v, P3 | P4)
	{
		struct world *w = new_world((enum nrp_scan_vma_variant)v, 5, 9);
		struct nrp_scan_vma *a = add(w, 'A', 0, 10);

		a->has_state = false;
		if (v == NRP_SCAN_VMA_P4) {
			check_call(w, &call, "CPUSET", 5, 0);
			assert_false(a->has_state);
			call.cpuset_one_node = false;
		}
		check_call(w, &call, "A DELAY", 6, 0);
		free_world(w);
	}
}

/* ---- single rules off; by hand from the algorithm ------------------------------------ */

static struct world *without(struct world *w, uint32_t rule)
{
	w->policy.rules &= ~rule;
	return w;
}

static void without_pid_every_vma_passes(void **state)
{
	struct world *w = without(b2_world(NRP_SCAN_VMA_P2, 1), NRP_SCAN_RULE_PID);

	(void)state;
	check(w, 100, 50000, "B[0,100)u25600 A[1000,1156)u39936", 5, 1156);
	free_world(w);
}

static void without_partial_a_started_vma_waits_for_the_second_walk(void **state)
{
	struct world *w = without(b4_world(NRP_SCAN_VMA_P2), NRP_SCAN_RULE_PARTIAL);

	(void)state;
	check(w, 100, 50000, "A[0,256)u65536", 5, 256);
	/* 65536 - 2560 pages are left: 246 MB. */
	check(w, 200, 51000, "A INACT D[700,710)u2560 A[256,502)u62976", 5, 502);
	free_world(w);
}

static void without_forced_there_is_one_walk(void **state)
{
	struct world *w = without(b11_world(NRP_SCAN_VMA_P2), NRP_SCAN_RULE_FORCED);

	(void)state;
	w->mm.seq = 9;
	check(w, 100, 50000, "A INACT B INACT", 10, 0);
	free_world(w);
}

static void without_seq_completed_a_vma_is_scanned_twice(void **state)
{
	struct world *w = without(new_world(NRP_SCAN_VMA_P2, 5, 9), NRP_SCAN_RULE_SEQ_COMPLETED);
	struct nrp_scan_vma *c;

	(void)state;
	add(w, 'A', 0, 10);
	c = add(w, 'C', 20, 30);
	c->state.prev_seq = 5;
	nrp_scan_vma_touch(c, 100);
	check(w, 100, 50000, "A INACT C[20,30)u2560 A[0,10)u2560", 5, 10);
	free_world(w);
}

static void without_start_seq_the_first_two_are_those_of_the_address_space(void **state)
{
	struct world *w = without(b11_world(NRP_SCAN_VMA_P2), NRP_SCAN_RULE_START_SEQ);

	(void)state;
	check(w, 100, 50000, "A[0,10)u2560 B[10,20)u2560", 1, 0);
	check(w, 100, 51000, "A[0,10)u0 B[10,20)u0", 2, 0);
	check(w, 100, 52000, "A INACT B INACT A[0,10)u0", 2, 10);
	free_world(w);
}

static void without_delay_a_new_vma_passes_at_once(void **state)
{
	struct world *w = without(new_world(NRP_SCAN_VMA_P2, 7, 9), NRP_SCAN_RULE_DELAY);

	(void)state;
	add(w, 'N', 0, 10)->has_state = false;
	check(w, 100, 50000, "N[0,10)u2560", 8, 0);
	free_world(w);
}

static void without_stale_p3_decides_as_p2(void **state)
{
	struct world *w = without(new_world(NRP_SCAN_VMA_P3, 6, 2), NRP_SCAN_RULE_STALE);

	(void)state;
	add(w, 'A', 0, 10);
	add(w, 'Z', 20, 30)->state.prev_seq = 3;
	check(w, 100, 50000, "A INACT Z INACT A[0,10)u2560", 6, 10);
	free_world(w);
}

static void rules_of_later_variants_cannot_be_switched_on(void **state)
{
	struct world *w = b2_world(NRP_SCAN_VMA_P1, 1);

	(void)state;
	w->policy.rules = ~0u;
	check(w, 100, 50000, "B INACT A[1000,1256)u65536", 5, 1256);
	check(w, 200, 51000, "A INACT", 6, 0); /* neither partial nor forced */
	free_world(w);
}

/* ---- small things -------------------------------------------------------------------- */

static void pid_bits_are_the_kernels_hash(void **state)
{
	static const struct {
		int32_t tid;
		unsigned int bit;
	} bits[] = { { 1, 24 },    { 2, 48 },    { 3, 9 },     { 100, 12 },   { 101, 37 },
		     { 1000, 61 }, { 1001, 22 }, { 4242, 19 }, { 65536, 33 }, { 189, 12 },
		     { 244, 12 },  { 333, 12 },  { 388, 12 } };

	(void)state;
	for (size_t i = 0; i < NR(bits); i++)
		assert_int_equal(nrp_scan_pid_bit(bits[i].tid), UINT64_C(1) << bits[i].bit);
}

static void jiffies_are_rounded_up(void **state)
{
	(void)state;
	assert_int_equal(nrp_ms_to_ticks(20, 250), 5);
	assert_int_equal(nrp_ms_to_ticks(100, 250), 25);
	assert_int_equal(nrp_ms_to_ticks(750, 250), 188);
	assert_int_equal(nrp_ms_to_ticks(1000, 250), 250);
	assert_int_equal(nrp_ms_to_ticks(750, 100), 75);
}

static void touch_before_the_first_visit_leaves_no_trace(void **state)
{
	struct world *w = new_world(NRP_SCAN_VMA_P2, 5, 9);
	struct nrp_scan_vma *a = add(w, 'A', 0, 10);

	(void)state;
	a->has_state = false;
	nrp_scan_vma_touch(a, 100);
	assert_int_equal(a->state.pids[1], 0);
	check(w, 100, 50000, "A DELAY", 6, 0);
	assert_int_equal(a->state.next_scan, 51000);
	assert_int_equal(a->state.pids_reset, 55000);
	assert_int_equal(a->state.start_seq, 5);
	assert_int_equal(a->state.prev_seq, 4);
	free_world(w);
}

static void address_space_without_vmas_only_counts(void **state)
{
	struct world *w = new_world(NRP_SCAN_VMA_P2, INT32_MAX, 9);

	(void)state;
	/* Twice in one run: at its begin and at its end. The sequence wraps like an int. */
	check(w, 100, 50000, "", INT32_MIN + 1, 0);
	free_world(w);
}

static void names_are_those_of_the_command_line(void **state)
{
	(void)state;
	assert_string_equal(nrp_scan_vma_variant_name(NRP_SCAN_VMA_P0), "P0");
	assert_string_equal(nrp_scan_vma_variant_name(NRP_SCAN_VMA_P4), "P4");
	assert_null(nrp_scan_vma_variant_name(NRP_NR_SCAN_VMA_VARIANTS));
	assert_string_equal(nrp_scan_vma_rule_name(0), "delay");
	assert_string_equal(nrp_scan_vma_rule_name(7), "cpuset");
	assert_null(nrp_scan_vma_rule_name(NRP_NR_SCAN_RULES));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(b1_first_two_sequences_pass_while_new_vmas_wait),
		cmocka_unit_test(b2_idle_vma_below_a_hot_one_starves_until_p3),
		cmocka_unit_test(b2_more_threads_mean_a_longer_starvation),
		cmocka_unit_test(b2_untouched_hot_vma_lets_p2_reach_the_idle_one),
		cmocka_unit_test(b3_second_walk_begins_behind_the_completed_vma_and_wraps),
		cmocka_unit_test(b4_partial_vma_goes_on_with_another_thread_since_p2),
		cmocka_unit_test(b5_p1_rotates_the_window_only_behind_the_check),
		cmocka_unit_test(b6_budget_that_ends_with_the_vma_leaves_it_unscanned),
		cmocka_unit_test(b6_one_page_less_goes_on_with_the_next_vma),
		cmocka_unit_test(b7_reasons_come_in_the_kernels_order),
		cmocka_unit_test(b8_vma_born_late_never_passes_p1),
		cmocka_unit_test(b9_threads_with_the_same_hash_open_the_vma_for_each_other),
		cmocka_unit_test(b10_stale_begins_above_nr_threads_sequences),
		cmocka_unit_test(b11_sequence_that_a_fork_reset_opens_old_vmas_again),
		cmocka_unit_test(b12_run_looks_at_eight_times_its_budget_at_most),
		cmocka_unit_test(b12_ends_of_ranges_are_rounded_up_to_a_huge_page),
		cmocka_unit_test(b13_task_bound_to_one_node_does_not_scan_under_p4),
		cmocka_unit_test(without_pid_every_vma_passes),
		cmocka_unit_test(without_partial_a_started_vma_waits_for_the_second_walk),
		cmocka_unit_test(without_forced_there_is_one_walk),
		cmocka_unit_test(without_seq_completed_a_vma_is_scanned_twice),
		cmocka_unit_test(without_start_seq_the_first_two_are_those_of_the_address_space),
		cmocka_unit_test(without_delay_a_new_vma_passes_at_once),
		cmocka_unit_test(without_stale_p3_decides_as_p2),
		cmocka_unit_test(rules_of_later_variants_cannot_be_switched_on),
		cmocka_unit_test(pid_bits_are_the_kernels_hash),
		cmocka_unit_test(jiffies_are_rounded_up),
		cmocka_unit_test(touch_before_the_first_visit_leaves_no_trace),
		cmocka_unit_test(address_space_without_vmas_only_counts),
		cmocka_unit_test(names_are_those_of_the_command_line),
	};

	return cmocka_run_group_tests_name("scan_vma", tests, NULL, NULL);
}
