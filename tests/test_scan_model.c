/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.vma against the page by page model of scan_model.c: random address spaces and passes, in
 * which clocks tick, threads fault, VMAs come and go and forks reset the sequence. Traps 7, 8 and
 * 10 of the specification (scan.md 2.4) are looked for in them, and stand as small cases below.
 */
#include "replay/policies/scan_vma.h"
#include "scan_model.h"
#include "test_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define WORLDS 400
#define PASSES 50 /* in each world */
#define PAGE UINT64_C(4096)

/* ---- the policy under test beside the model ------------------------------------------- */

struct pair {
	struct model model;
	struct nrp_scan_vma_policy policy;
	struct nrp_scan_mm mm;
	struct nrp_scan_vma vma[MODEL_VMAS]; /* ascending */
	int id[MODEL_VMAS];                  /* the model's number of each */
	bool present[MODEL_PAGES], armed[MODEL_PAGES];
	struct nrp_scan_call call;
	const struct model_pass *pass;
	struct model_event event[MODEL_EVENTS];
	int nr_events, visits;
};

static int id_of(const struct pair *p, const struct nrp_scan_vma *vma)
{
	return vma ? p->id[vma - p->vma] : NO_VMA;
}

/* The clock may tick, and a fault may come, before any visit. */
static void on_look(void *context, struct nrp_scan_vma *vma)
{
	struct pair *p = context;

	if (p->visits == p->pass->tick_at)
		p->call.jiffies_now++;
	if (p->visits < MODEL_VISITS && p->pass->fault[p->visits])
		nrp_scan_vma_touch(vma, p->pass->fault[p->visits]);
	p->visits++;
}

static bool on_arm(void *context, const struct nrp_scan_vma *vma, uint64_t start, uint64_t end,
		   enum nrp_scan_vma_pass by)
{
	static const enum model_what why[] = {
		[NRP_SCAN_BY_NO_FILTER] = ARMED_UNFILTERED,
		[NRP_SCAN_BY_FIRST_TWO] = ARMED_FIRST_TWO,
		[NRP_SCAN_BY_PID] = ARMED_PID,
		[NRP_SCAN_BY_PARTIAL] = ARMED_PARTIAL,
		[NRP_SCAN_BY_STALE] = ARMED_STALE,
		[NRP_SCAN_BY_FORCE] = ARMED_FORCED,
	};
	struct pair *p = context;
	int first = (int)(start / PAGE), last = (int)(end / PAGE);
	bool any = false;

	assert_in_range(p->nr_events, 0, MODEL_EVENTS - 1);
	assert_in_range(last, first, MODEL_PAGES);
	p->event[p->nr_events++] = (struct model_event){ why[by], id_of(p, vma), first, last };
	for (int i = first; i < last; i++) {
		any |= p->present[i] && !p->armed[i];
		p->armed[i] |= p->present[i];
	}
	return any;
}

static void on_skip(void *context, const struct nrp_scan_vma *vma, enum nrp_scan_vma_skip why)
{
	struct pair *p = context;

	assert_in_range(p->nr_events, 0, MODEL_EVENTS - 1);
	/* Both number the reasons as the tracepoint does. */
	p->event[p->nr_events++] =
		(struct model_event){ (enum model_what)why, id_of(p, vma), 0, 0 };
}

static void run_policy(struct pair *p, const struct model_pass *pass)
{
	struct nrp_scan_ops ops = { .look = on_look, .arm = on_arm, .skip = on_skip, .context = p };

	p->pass = pass;
	p->nr_events = p->visits = 0;
	p->call = (struct nrp_scan_call){ .tid = pass->tid,
					  .nr_threads = pass->nr_threads,
					  .jiffies = pass->jiffies,
					  .jiffies_now = pass->jiffies,
					  .cpuset_one_node = pass->cpuset_one_node };
	nrp_scan_vma_run(&p->policy, &p->mm, &p->call, &ops);
}

static bool same_events(const struct model_event *a, int nr_a, const struct model_event *b,
			int nr_b)
{
	if (nr_a != nr_b)
		return false;
	for (int i = 0; i < nr_a; i++)
		if (a[i].what != b[i].what || a[i].vma != b[i].vma || a[i].first != b[i].first ||
		    a[i].last != b[i].last)
			return false;
	return true;
}

static bool same_vma(const struct model_vma *m, const struct nrp_scan_vma *v)
{
	const struct nrp_scan_vma_state *s = &v->state;

	if (m->has_state != v->has_state)
		return false;
	return !m->has_state || (m->next_scan == s->next_scan && m->reset == s->pids_reset &&
				 m->previous == s->pids[0] && m->current == s->pids[1] &&
				 m->start_seq == s->start_seq && m->prev_seq == s->prev_seq);
}

static const char *difference(const struct pair *p)
{
	const struct model *m = &p->model;

	if (!same_events(m->event, m->nr_events, p->event, p->nr_events))
		return "decisions";
	if (m->seq != p->mm.seq)
		return "sequence";
	if ((uint64_t)m->offset * PAGE != p->mm.offset)
		return "offset";
	for (size_t i = 0; i < p->mm.nr_vmas; i++)
		if (!same_vma(&m->vma[p->id[i]], &p->vma[i]))
			return "VMA state";
	for (int i = 0; i < MODEL_PAGES; i++)
		if (m->page[i].armed != p->armed[i])
			return "armed pages";
	return NULL;
}

static void print_events(const char *who, const struct model_event *e, int n)
{
	printf("%s:", who);
	for (int i = 0; i < n; i++)
		printf(" %d:%d[%d,%d)", e[i].vma, e[i].what, e[i].first, e[i].last);
	printf("\n");
}

static void compare(const struct pair *p, int world, int pass)
{
	const char *what = difference(p);

	if (!what)
		return;
	print_events("model ", p->model.event, p->model.nr_events);
	print_events("policy", p->event, p->nr_events);
	fail_msg("P%d, world %d, pass %d: %s differ; sequence %d and %d, offset %d and %llu",
		 p->model.generation, world, pass, what, p->model.seq, p->mm.seq, p->model.offset,
		 (unsigned long long)(p->mm.offset / PAGE));
}

/* ---- random worlds -------------------------------------------------------------------- */

static bool chance(uint64_t *r, uint64_t percent)
{
	return random_range(r, 1, 100) <= percent;
}

static int pick(uint64_t *r, int lo, int hi)
{
	return (int)random_range(r, (uint64_t)lo, (uint64_t)hi);
}

static void settle_page(struct pair *p, int page, int vma, bool present)
{
	p->model.page[page] = (struct model_page){ .vma = vma, .present = present };
	p->present[page] = present;
	p->armed[page] = false;
}

/* After pages changed hands: the list of VMAs in order of address, each with its state. */
static void list_vmas(struct pair *p)
{
	struct nrp_scan_vma old[MODEL_VMAS];
	int old_id[MODEL_VMAS];
	size_t nr_old = p->mm.nr_vmas;

	memcpy(old, p->vma, sizeof(old));
	memcpy(old_id, p->id, sizeof(old_id));
	p->mm.nr_vmas = 0;
	for (int i = 0; i < MODEL_PAGES; i++) {
		int id = p->model.page[i].vma;
		struct nrp_scan_vma *v = &p->vma[p->mm.nr_vmas];

		if (id == NO_VMA)
			continue;
		if (i && p->model.page[i - 1].vma == id) {
			v[-1].end += PAGE;
			continue;
		}
		*v = (struct nrp_scan_vma){ 0 };
		for (size_t k = 0; k < nr_old; k++)
			if (old_id[k] == id)
				*v = old[k];
		v->start = (uint64_t)i * PAGE;
		v->end = v->start + PAGE;
		v->class = (enum nrp_scan_vma_class)(p->model.vma[id].class + 1);
		p->id[p->mm.nr_vmas++] = id;
	}
}

static bool in_use(const struct model *m, int vma)
{
	for (int i = 0; i < MODEL_PAGES; i++)
		if (m->page[i].vma == vma)
			return true;
	return false;
}

/* A new VMA takes a part of one hole. */
static void map(struct pair *p, uint64_t *r)
{
	int start = pick(r, 0, MODEL_PAGES - 1), length = pick(r, 1, MODEL_PAGES / 4), id = 0;
	uint64_t present = chance(r, 20) ? 0 : (uint64_t)pick(r, 30, 100);

	while (id < MODEL_VMAS && in_use(&p->model, id))
		id++;
	if (id == MODEL_VMAS)
		return;
	p->model.vma[id] = (struct model_vma){ .class = chance(r, 20) ? pick(r, 0, 2) : -1 };
	for (int i = start; i < start + length && i < MODEL_PAGES; i++) {
		if (p->model.page[i].vma != NO_VMA)
			break;
		settle_page(p, i, id, chance(r, present));
	}
	list_vmas(p);
}

static void unmap(struct pair *p, uint64_t *r)
{
	int gone = pick(r, 0, MODEL_VMAS - 1);

	for (int i = 0; i < MODEL_PAGES; i++)
		if (p->model.page[i].vma == gone)
			settle_page(p, i, NO_VMA, false);
	list_vmas(p);
}

/* The end of a VMA moves: its object stays. */
static void resize(struct pair *p, uint64_t *r)
{
	size_t i = p->mm.nr_vmas ? (size_t)pick(r, 0, (int)p->mm.nr_vmas - 1) : 0;
	int end = (int)(p->vma[i].end / PAGE);

	if (!p->mm.nr_vmas)
		return;
	if (end < MODEL_PAGES && p->model.page[end].vma == NO_VMA)
		settle_page(p, end, p->id[i], true);
	list_vmas(p);
}

/* A thread faults on some armed pages of a VMA. */
static void fault(struct pair *p, uint64_t *r, int32_t tid)
{
	int at = pick(r, 0, MODEL_PAGES - 1), vma = p->model.page[at].vma;

	if (vma == NO_VMA)
		return;
	for (int i = at; i < MODEL_PAGES && p->model.page[i].vma == vma; i++)
		p->model.page[i].armed = p->armed[i] = false;
	model_fault(&p->model, vma, tid);
	for (size_t i = 0; i < p->mm.nr_vmas; i++)
		if (p->id[i] == vma)
			nrp_scan_vma_touch(&p->vma[i], tid);
}

static void set_seq(struct pair *p, int32_t seq)
{
	p->model.seq = p->mm.seq = seq;
}

static void empty_pair(struct pair *p, int generation, int scan_pages, int huge_pages,
		       uint64_t delay)
{
	*p = (struct pair){ .mm.vma = p->vma };
	p->model.generation = generation;
	p->model.scan_pages = scan_pages;
	p->model.huge_pages = huge_pages;
	p->model.delay = delay;
	p->policy = (struct nrp_scan_vma_policy){
		.variant = (enum nrp_scan_vma_variant)generation,
		.rules = nrp_scan_vma_rules((enum nrp_scan_vma_variant)generation),
		.page_size = PAGE,
		.huge_size = (uint64_t)huge_pages * PAGE,
		.scan_pages = (uint64_t)scan_pages,
		.delay_jiffies = delay,
		.window_jiffies = 4 * delay,
	};
	for (int i = 0; i < MODEL_PAGES; i++)
		p->model.page[i].vma = NO_VMA;
}

static void new_pair(struct pair *p, uint64_t *r, int generation)
{
	static const int32_t starts[] = { 0, 0, 1, 5, INT32_MAX - 2, -2 };
	int scan_pages = pick(r, 1, chance(r, 50) ? 20 : MODEL_PAGES);
	int huge_pages = 1 << pick(r, 0, 4);

	empty_pair(p, generation, scan_pages, huge_pages, random_range(r, 1, 6));
	set_seq(p, starts[pick(r, 0, 5)]);
	for (int i = pick(r, 0, MODEL_VMAS); i > 0; i--)
		map(p, r);
}

/* Threads 100 and 189 share a bit, the others do not (2.2). */
static int32_t any_tid(uint64_t *r)
{
	static const int32_t tids[] = { 100, 101, 189, 1000 };

	return tids[pick(r, 0, 3)];
}

static void between_passes(struct pair *p, uint64_t *r)
{
	if (chance(r, 10))
		map(p, r);
	if (chance(r, 6))
		unmap(p, r);
	if (chance(r, 10))
		resize(p, r);
	if (chance(r, 3))
		set_seq(p, 0); /* a fork: trap 4 */
	for (int n = chance(r, 50) ? pick(r, 1, 4) : 0; n > 0; n--)
		fault(p, r, any_tid(r));
}

static void draw_pass(struct model_pass *pass, uint64_t *r, uint64_t jiffies)
{
	*pass = (struct model_pass){ .tid = any_tid(r),
				     .nr_threads = pick(r, 1, 3),
				     .jiffies = jiffies,
				     .tick_at = chance(r, 50) ? pick(r, 0, 8) : MODEL_EVENTS,
				     .cpuset_one_node = chance(r, 5) };
	for (int i = 0; i < MODEL_VISITS; i++)
		if (chance(r, 10))
			pass->fault[i] = any_tid(r);
}

/* ---- what the passes have shown ------------------------------------------------------- */

struct shown {
	uint64_t what[ARMED_FORCED + 1];
	uint64_t by_two;  /* trap 10 */
	uint64_t by_tick; /* trap 7: a tick on the way made other decisions or states */
};

static bool same_outcome(const struct model *a, const struct model *b)
{
	return same_events(a->event, a->nr_events, b->event, b->nr_events) && a->seq == b->seq &&
	       a->offset == b->offset && !memcmp(a->vma, b->vma, sizeof(a->vma));
}

/* Would the pass have done the same, had the clock stood still? */
static bool tick_matters(const struct model *before, const struct model *after,
			 const struct model_pass *pass)
{
	struct model_pass still = *pass;
	struct model m = *before;

	still.tick_at = MODEL_EVENTS;
	model_run(&m, &still);
	return !same_outcome(&m, after);
}

/* Trap 8: only the VMA that holds the offset is scanned in part, and the pass begins with it. */
static void check_ignored(const struct pair *p)
{
	for (int i = 0; i < p->nr_events; i++)
		if (p->event[i].what == IGNORE_PID)
			assert_int_equal(i, 0);
}

static void look_at(struct shown *s, const struct pair *p, const struct model *before,
		    const struct model_pass *pass)
{
	int32_t rise = nrp_scan_seq_since(p->mm.seq, before->seq);

	for (int i = 0; i < p->nr_events; i++)
		s->what[p->event[i].what]++;
	assert_int_equal(rise, p->model.begin_wraps + p->model.end_wraps);
	s->by_two += p->model.begin_wraps == 1 && p->model.end_wraps == 1;
	s->by_tick += tick_matters(before, &p->model, pass);
	check_ignored(p);
}

static void run_world(struct pair *p, uint64_t *r, int generation, int world, struct shown *shown)
{
	uint64_t jiffies = random_range(r, 0, 20);

	new_pair(p, r, generation);
	for (int i = 0; i < PASSES; i++) {
		struct model before;
		struct model_pass pass;

		between_passes(p, r);
		draw_pass(&pass, r, jiffies);
		before = p->model;
		model_run(&p->model, &pass);
		run_policy(p, &pass);
		compare(p, world, i);
		look_at(shown, p, &before, &pass);
		jiffies += random_range(r, 1, 2 * p->model.delay);
	}
}

static void run_worlds(int generation, struct shown *shown)
{
	uint64_t r = random_seed("scan_model");
	static struct pair p;

	memset(shown, 0, sizeof(*shown));
	for (int world = 0; world < WORLDS; world++)
		run_world(&p, &r, generation, world, shown);
}

/* The worlds must have come by everything that a generation can do, and by nothing else. */
static void check_shown(const struct shown *s, const char *kinds)
{
	static const char letters[] = "usidpgcxUFPAST"; /* of enum model_what */

	for (int i = 0; letters[i]; i++)
		if (!s->what[i] != !strchr(kinds, letters[i]))
			fail_msg("'%c' was seen %llu times", letters[i],
				 (unsigned long long)s->what[i]);
	assert_true(s->by_two > 0);
}

static void p0_is_the_model(void **state)
{
	struct shown s;

	(void)state;
	run_worlds(0, &s);
	check_shown(&s, "usiU");
	assert_int_equal(s.by_tick, 0); /* P0 looks at no clock */
}

static void p1_is_the_model(void **state)
{
	struct shown s;

	(void)state;
	run_worlds(1, &s);
	check_shown(&s, "usidpFP");
	assert_true(s.by_tick > 0);
}

static void p2_is_the_model(void **state)
{
	struct shown s;

	(void)state;
	run_worlds(2, &s);
	check_shown(&s, "usidpgcFPAT");
	assert_true(s.by_tick > 0);
}

static void p3_is_the_model(void **state)
{
	struct shown s;

	(void)state;
	run_worlds(3, &s);
	check_shown(&s, "usidpgcFPAST");
	assert_true(s.by_tick > 0);
}

static void p4_is_the_model(void **state)
{
	struct shown s;

	(void)state;
	run_worlds(4, &s);
	check_shown(&s, "usidpgcxFPAST");
	assert_true(s.by_tick > 0);
}

/* ---- the traps by hand ---------------------------------------------------------------- */

/* An address space in sequence 5 with a delay of 10 ticks; VMAs have been scanned in 4. */
static void hand_space(struct pair *p, int generation)
{
	empty_pair(p, generation, MODEL_PAGES, 1, 10);
	set_seq(p, 5);
}

static void hand_vma(struct pair *p, int id, int first, int last, const struct model_vma *v)
{
	p->model.vma[id] = *v;
	p->model.vma[id].class = -1;
	for (int i = first; i < last; i++)
		settle_page(p, i, id, true);
	list_vmas(p);
	p->vma[id].has_state = v->has_state;
	p->vma[id].state = (struct nrp_scan_vma_state){ .next_scan = v->next_scan,
							.pids_reset = v->reset,
							.pids = { v->previous, v->current },
							.start_seq = v->start_seq,
							.prev_seq = v->prev_seq };
}

static void hand_offset(struct pair *p, int page)
{
	p->model.offset = page;
	p->mm.offset = (uint64_t)page * PAGE;
}

/* Both must do what was worked out by hand. */
static void hand_run(struct pair *p, const struct model_pass *pass, const struct model_event *event,
		     int nr_events)
{
	model_run(&p->model, pass);
	run_policy(p, pass);
	compare(p, 0, 0);
	if (!same_events(event, nr_events, p->event, p->nr_events)) {
		print_events("want", event, nr_events);
		print_events("got ", p->event, p->nr_events);
		fail_msg("decisions are not those worked out by hand");
	}
}

/* Bit 12 is thread 100's (2.2). */
static const struct model_vma used_by_100 = {
	.has_state = true, .reset = 100000, .current = UINT64_C(1) << 12, .prev_seq = 4
};
static const struct model_vma unused = { .has_state = true, .reset = 100000, .prev_seq = 4 };

/* Two VMAs may be scanned from tick 1001 on. The pass began at 1000, the tick came on its way. */
static void trap_7_tick_between_two_vmas(void **state)
{
	static const struct model_event before[] = { { SCAN_DELAY, 0, 0, 0 },
						     { SCAN_DELAY, 1, 0, 0 } };
	static const struct model_event between[] = { { SCAN_DELAY, 0, 0, 0 },
						      { ARMED_PID, 1, 10, 20 } };
	static const struct model_event after[] = { { ARMED_PID, 0, 0, 10 },
						    { ARMED_PID, 1, 10, 20 } };
	static const struct {
		int tick_at;
		const struct model_event *event;
	} cases[] = { { MODEL_EVENTS, before }, { 1, between }, { 0, after } };
	struct model_vma v = used_by_100;

	(void)state;
	v.next_scan = 1001;
	for (int generation = 1; generation <= 4; generation++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct model_pass pass = { .tid = 100,
						   .nr_threads = 9,
						   .jiffies = 1000,
						   .tick_at = cases[i].tick_at };
			struct pair p;

			hand_space(&p, generation);
			hand_vma(&p, 0, 0, 10, &v);
			hand_vma(&p, 1, 10, 20, &v);
			hand_run(&p, &pass, cases[i].event, 2);
		}
	}
}

/* What a pass makes counts from its entry, whatever the clock says by then. */
static void trap_7_new_state_counts_from_the_entry(void **state)
{
	static const struct model_event delayed[] = { { SCAN_DELAY, 0, 0, 0 } };
	struct model_pass pass = { .tid = 100, .nr_threads = 9, .jiffies = 1000, .tick_at = 0 };
	struct pair p;

	(void)state;
	hand_space(&p, 3);
	hand_vma(&p, 0, 0, 10, &(const struct model_vma){ 0 });
	hand_run(&p, &pass, delayed, 1);
	assert_int_equal(p.vma[0].state.next_scan, 1010);
	assert_int_equal(p.vma[0].state.pids_reset, 1050);
	assert_int_equal(p.vma[0].state.start_seq, 5);
	assert_int_equal(p.vma[0].state.prev_seq, 4);
}

/* A was begun; B, right above it, was not. */
static void trap_8_only_the_first_vma_is_scanned_in_part(void **state)
{
	/* The second walk begins at 5 again: A has been completed by then. */
	static const struct model_event events[] = { { IGNORE_PID, 0, 0, 0 },
						     { ARMED_PARTIAL, 0, 5, 10 },
						     { PID_INACTIVE, 1, 0, 0 },
						     { SEQ_COMPLETED, 0, 0, 0 },
						     { ARMED_FORCED, 1, 10, 20 } };
	struct model_pass pass = { .tid = 100, .nr_threads = 9, .jiffies = 1000 };

	(void)state;
	for (int generation = 2; generation <= 4; generation++) {
		struct pair p;

		hand_space(&p, generation);
		hand_vma(&p, 0, 0, 10, &unused);
		hand_vma(&p, 1, 10, 20, &unused);
		hand_offset(&p, 5);
		hand_run(&p, &pass, events, 5);
		assert_int_equal(p.mm.seq, 5);
		assert_int_equal(p.mm.offset, 20 * PAGE);
	}
}

/* A completed VMA moves the offset to the beginning of its neighbour: not into it. */
static void trap_8_a_completed_vma_does_not_begin_its_neighbour(void **state)
{
	static const struct model_event events[] = { { SEQ_COMPLETED, 0, 0, 0 },
						     { PID_INACTIVE, 1, 0, 0 },
						     { ARMED_FORCED, 1, 10, 20 } };
	struct model_pass pass = { .tid = 100, .nr_threads = 9, .jiffies = 1000 };
	struct model_vma done = unused;
	struct pair p;

	(void)state;
	done.prev_seq = 5;
	hand_space(&p, 2);
	hand_vma(&p, 0, 0, 10, &done);
	hand_vma(&p, 1, 10, 20, &unused);
	hand_run(&p, &pass, events, 3);
}

/* Nothing is above the offset, and the budget lasts to the end. */
static void trap_10_sequence_rises_by_two(void **state)
{
	static const struct model_event armed[] = { { ARMED_PID, 0, 0, 10 } };
	static const struct model_event all[] = { { ARMED_UNFILTERED, 0, 0, 10 } };
	struct model_pass pass = { .tid = 100, .nr_threads = 9, .jiffies = 1000 };

	(void)state;
	for (int generation = 0; generation <= 4; generation++) {
		struct pair p;

		hand_space(&p, generation);
		hand_vma(&p, 0, 0, 10, &used_by_100);
		hand_offset(&p, 20);
		hand_run(&p, &pass, generation ? armed : all, 1);
		assert_int_equal(p.mm.seq, 7);
		assert_int_equal(p.mm.offset, 0);
		/* It was scanned in the sequence between. */
		assert_int_equal(p.vma[0].state.prev_seq, generation ? 6 : 4);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(p0_is_the_model),
		cmocka_unit_test(p1_is_the_model),
		cmocka_unit_test(p2_is_the_model),
		cmocka_unit_test(p3_is_the_model),
		cmocka_unit_test(p4_is_the_model),
		cmocka_unit_test(trap_7_tick_between_two_vmas),
		cmocka_unit_test(trap_7_new_state_counts_from_the_entry),
		cmocka_unit_test(trap_8_only_the_first_vma_is_scanned_in_part),
		cmocka_unit_test(trap_8_a_completed_vma_does_not_begin_its_neighbour),
		cmocka_unit_test(trap_10_sequence_rises_by_two),
	};

	return cmocka_run_group_tests_name("scan_model", tests, NULL, NULL);
}
