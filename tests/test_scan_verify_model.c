/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures of kernels that the model of scan_model.c plays: random address spaces whose VMAs come,
 * grow, are cut and unmapped, with faults and forks between the passes. The verification must
 * explain each pass with the generation that made it (spec scan.md 6: own-policy replay is exact).
 */
#include "replay/scan_lane.h"
#include "scan_model.h"
#include "scan_records.h"
#include "test_random.h"

#define WORLDS 12 /* of each generation */
#define PASSES 60
/* A page of the model stands for a huge page, so a pass arms 128 of them. */
#define UNIT_MB UINT64_C(2)
#define SCAN_UNITS 128

struct player {
	struct model m;
	struct scan_records r;
	uint64_t random, ms;
	bool with_state; /* the record has the VMAs' state */
	bool forks;
	int shown_end[MODEL_VMAS]; /* where the record has seen it end */
};

static bool chance(struct player *p, uint64_t percent)
{
	return random_range(&p->random, 1, 100) <= percent;
}

static int pick(struct player *p, int lo, int hi)
{
	return (int)random_range(&p->random, (uint64_t)lo, (uint64_t)hi);
}

static int32_t any_tid(struct player *p)
{
	static const int32_t tids[] = { 100, 101, 189 };

	return tids[pick(p, 0, p->r.nr_threads - 1)];
}

/* Pages [*ret_first, *ret_end) of a VMA; false: it has none. */
static bool extent(const struct model *m, int vma, int *ret_first, int *ret_end)
{
	int first = 0, end;

	while (first < MODEL_PAGES && m->page[first].vma != vma)
		first++;
	for (end = first; end < MODEL_PAGES && m->page[end].vma == vma; end++)
		;
	*ret_first = first;
	*ret_end = end;
	return first < end;
}

static int free_id(const struct model *m)
{
	int id = 0, first, end;

	while (id < MODEL_VMAS && extent(m, id, &first, &end))
		id++;
	return id;
}

static void map(struct player *p)
{
	int start = pick(p, 0, MODEL_PAGES - 1), length = pick(p, 1, 60);
	bool present = chance(p, 85), ineligible = p->m.generation && chance(p, 15);
	int id = free_id(&p->m);

	if (id == MODEL_VMAS)
		return;
	p->shown_end[id] = 0;
	p->m.vma[id] = (struct model_vma){ .class = ineligible ? pick(p, 0, 2) : -1 };
	for (int i = start; i < start + length && i < MODEL_PAGES; i++) {
		if (p->m.page[i].vma != NO_VMA)
			break;
		p->m.page[i] = (struct model_page){ .vma = id, .present = present };
	}
}

/*
 * What munmap() of [@start, @stop) leaves of the VMA [@first, @end): a part below is a new object,
 * and so is one above if both are left; alone that keeps the state (2.1).
 */
static bool split(struct player *p, int vma, int first, int start, int stop, int end)
{
	struct model_vma fresh = { .class = p->m.vma[vma].class };
	int upper = free_id(&p->m);

	if (start == first)
		return true;
	if (stop < end) {
		if (upper == MODEL_VMAS)
			return false;
		p->m.vma[upper] = fresh;
		p->shown_end[upper] = end;
		for (int i = stop; i < end; i++)
			p->m.page[i].vma = upper;
	}
	p->m.vma[vma] = fresh;
	p->shown_end[vma] = start;
	return true;
}

/* VMA 0 stays, so that a pass always meets one. */
static void unmap(struct player *p)
{
	int vma = pick(p, 1, MODEL_VMAS - 1), from, to, first, end;

	if (!extent(&p->m, vma, &from, &to))
		return;
	first = from;
	end = to;
	/* One that grew unseen and is cut there looks as if nothing had happened. */
	if (p->shown_end[vma] == to && chance(p, 75)) {
		first = chance(p, 50) ? from : pick(p, from, to - 1);
		end = chance(p, 50) ? to : pick(p, first + 1, to);
	}
	if (!split(p, vma, from, first, end, to))
		return;
	add_unmap(&p->r, p->ms, (uint64_t)first * UNIT_MB, (uint64_t)end * UNIT_MB);
	for (int i = first; i < end; i++)
		p->m.page[i] = (struct model_page){ .vma = NO_VMA };
}

static void grow(struct player *p)
{
	int vma = pick(p, 0, MODEL_VMAS - 1), first, end;

	if (extent(&p->m, vma, &first, &end) && end < MODEL_PAGES && p->m.page[end].vma == NO_VMA)
		p->m.page[end] = (struct model_page){ .vma = vma, .present = true };
}

static void fault(struct player *p)
{
	int at = pick(p, 0, MODEL_PAGES - 1), vma = p->m.page[at].vma, first, end;
	int32_t tid = any_tid(p);

	if (vma == NO_VMA || !p->m.page[at].armed)
		return;
	extent(&p->m, vma, &first, &end);
	p->shown_end[vma] = end;
	p->m.page[at].armed = false;
	model_fault(&p->m, vma, tid);
	add_fault(&p->r, p->ms * 1000, tid, (uint64_t)first * UNIT_MB, (uint64_t)end * UNIT_MB,
		  (uint64_t)(at - first) * UNIT_MB * (MB / PAGE));
}

static void between_passes(struct player *p)
{
	p->ms += 10;
	if (chance(p, 10))
		unmap(p);
	if (chance(p, 20))
		map(p);
	if (chance(p, 20))
		grow(p);
	p->ms += 10;
	for (int n = pick(p, 0, 4); n > 0; n--, p->ms++)
		fault(p);
	if (p->forks && p->r.nr_threads == 1 && chance(p, 4)) {
		add_life(&p->r, p->ms, NRP_LIFE_FORK, 100, 5000);
		p->m.seq = 0;
	}
	p->ms += random_range(&p->random, 10, 1500);
}

/* What @before did not have armed yet in the range, in entries. */
static uint64_t entries(struct model *before, const struct model_event *e)
{
	uint64_t n = 0;

	for (int i = e->first; i < e->last; i++) {
		n += before->page[i].present && !before->page[i].armed;
		before->page[i].armed |= before->page[i].present;
	}
	return n * UNIT_MB * (MB / PAGE);
}

static const struct nrp_scan_vma_state *state_of(const struct model_vma *v)
{
	static struct nrp_scan_vma_state s;

	s = (struct nrp_scan_vma_state){ .next_scan = v->next_scan,
					 .pids_reset = v->reset,
					 .pids = { v->previous, v->current },
					 .start_seq = v->start_seq,
					 .prev_seq = v->prev_seq };
	return &s;
}

static void pass(struct player *p)
{
	struct model_pass call = { .tid = any_tid(p),
				   .nr_threads = p->r.nr_threads,
				   .jiffies = p->ms,
				   .tick_at = MODEL_EVENTS };
	struct model before = p->m;

	add_pass(&p->r, p->ms, call.tid, p->m.seq, (uint64_t)p->m.offset * UNIT_MB);
	model_run(&p->m, &call);
	for (int i = 0; i < p->m.nr_events; i++) {
		const struct model_event *e = &p->m.event[i];
		int first, end;

		extent(&p->m, e->vma, &first, &end);
		if (e->what >= ARMED_UNFILTERED || p->m.generation >= NRP_SCAN_VMA_P2)
			p->shown_end[e->vma] = end;
		if (e->what >= ARMED_UNFILTERED)
			add_range(&p->r, (uint64_t)e->first * UNIT_MB, (uint64_t)e->last * UNIT_MB,
				  (uint64_t)first * UNIT_MB, (uint64_t)end * UNIT_MB,
				  entries(&before, e),
				  p->with_state ? state_of(&p->m.state[i]) : NULL);
		else if (p->m.generation >= NRP_SCAN_VMA_P2)
			/* Both number the reasons as the tracepoint does. */
			add_skip(&p->r, (uint64_t)first * UNIT_MB, (uint64_t)end * UNIT_MB,
				 (enum nrp_skip_reason)e->what);
	}
}

static void new_player(struct player *p, int generation)
{
	scan_records_begin(&p->r, generation >= NRP_SCAN_VMA_P2);
	p->r.nr_threads = pick(p, 1, 3);
	p->m = (struct model){
		.generation = generation, .scan_pages = SCAN_UNITS, .huge_pages = 1, .delay = 1000
	};
	for (int i = 0; i < MODEL_PAGES; i++)
		p->m.page[i].vma = NO_VMA;
	for (int i = 5; i < 9; i++)
		p->m.page[i] = (struct model_page){ .vma = 0, .present = true };
	p->m.vma[0].class = -1;
	for (int i = pick(p, 1, 5); i > 0; i--)
		map(p);
	p->ms = 100000;
	/* A VMA that P1 first arms in a sequence set back to 0 may have been visited unseen. */
	p->forks = generation != NRP_SCAN_VMA_P1;
	p->with_state = generation == NRP_SCAN_VMA_P1 || (generation && chance(p, 50));
}

/* The host's own lane is the record, and hangs on nothing unknown. */
static void check_own_lane(struct player *p, int generation, int world)
{
	struct nrp_scan_lane_config own = { .variant = (enum nrp_scan_vma_variant)generation,
					    .scan_delay_ms = UINT64_MAX };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_scan_lane lane;

	assert_ok(nrp_scan_lane_run(&lane, p->r.store, &p->r.capture, &own, &err), &err);
	assert_int_equal(lane.nr_mms, 1);
	if (lane.mm[0].diverged || lane.mm[0].uncertain || lane.possible_ranges ||
	    lane.nr_ranges != lane.armed_ranges_recorded)
		fail_msg("P%d, world %d: diverged at %llu, uncertain at %llu; ranges %zu, possible "
			 "%llu, recorded %llu",
			 generation, world, (unsigned long long)lane.mm[0].diverged,
			 (unsigned long long)lane.mm[0].uncertain, lane.nr_ranges,
			 (unsigned long long)lane.possible_ranges,
			 (unsigned long long)lane.armed_ranges_recorded);
	nrp_scan_lane_clear(&lane);
}

static void play(int generation, int world, uint64_t *random)
{
	struct nrp_error err = NRP_ERROR_INIT;
	static struct player p;
	struct nrp_scan_verify v;
	const struct nrp_scan_check *c;

	p.random = random_next(random) | 1;
	new_player(&p, generation);
	for (int i = 0; i < PASSES; i++) {
		between_passes(&p);
		pass(&p);
	}
	scan_records_commit(&p.r);
	assert_ok(nrp_scan_lane_verify(&v, p.r.store, &p.r.capture, &err), &err);
	c = &v.check[generation];
	/* P1's kernels do not report skipped VMAs: a pass that armed none may not show. */
	if (c->disagree || v.unjudged || c->races ||
	    v.passes < (generation == NRP_SCAN_VMA_P1 ? 1 : PASSES))
		fail_msg("P%d, world %d: %llu of %llu passes agree, %llu with a tick, first not at "
			 "%llu",
			 generation, world, (unsigned long long)c->agree,
			 (unsigned long long)v.passes, (unsigned long long)c->races,
			 (unsigned long long)c->first_disagreement);
	check_own_lane(&p, generation, world);
	scan_records_end(&p.r);
}

static void play_all(int generation)
{
	uint64_t random = random_seed("scan_verify_model");

	for (int world = 0; world < WORLDS; world++)
		play(generation, world, &random);
}

static void test_p0_host_is_explained(void **state)
{
	(void)state;
	play_all(NRP_SCAN_VMA_P0);
}

static void test_p1_host_is_explained(void **state)
{
	(void)state;
	play_all(NRP_SCAN_VMA_P1);
}

static void test_p2_host_is_explained(void **state)
{
	(void)state;
	play_all(NRP_SCAN_VMA_P2);
}

static void test_p3_host_is_explained(void **state)
{
	(void)state;
	play_all(NRP_SCAN_VMA_P3);
}

static void test_p4_host_is_explained(void **state)
{
	(void)state;
	play_all(NRP_SCAN_VMA_P4);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_p0_host_is_explained),
		cmocka_unit_test(test_p1_host_is_explained),
		cmocka_unit_test(test_p2_host_is_explained),
		cmocka_unit_test(test_p3_host_is_explained),
		cmocka_unit_test(test_p4_host_is_explained),
	};

	return cmocka_run_group_tests_name("scan_verify_model", tests, util_enter_dir,
					   util_leave_dir);
}
