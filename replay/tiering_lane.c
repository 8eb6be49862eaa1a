/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One variant and set of parameters over faults on slow nodes.
 *
 * Lower: admitted even if the page is as old as its ranges allow, the threshold is as low as the
 * adjustment can make it, and every page that may have been a candidate in the last second was one.
 * Upper: the other way round; and if the target may have had free memory, everything.
 */
#include "replay/tiering_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000u
#define WINDOW_MS 1000u
#define SLOWEST_HZ 100
#define STAT_THRESHOLD 125 /* pages that a CPU may keep back from a node's counter */
#define ADJUST_STEPS 16u

/* A possible candidate of the last second. */
struct candidate {
	uint64_t time;
	uint32_t pages;
	int nid;
};

struct target {
	struct nrp_tiering_node central;
	uint64_t recent;                /* pages of possible candidates in the last second */
	uint64_t first, last;           /* ns: first and last fault that may be admitted */
	struct nrp_tiering_count maybe; /* those faults */
	uint32_t max_pages;             /* of one of them */
	bool seen;
};

struct nrp_tiering_state {
	struct nrp_tiering_lane_params params;
	uint32_t tick_ms;
	uint64_t margin; /* pages */
	uint64_t first_time;
	bool uncertain;        /* about some fault */
	struct target *target; /* [nr_targets] */
	int nr_targets;
	struct candidate *queue; /* of all targets, by time; [head, count) is the last second */
	size_t head, count, room;
};

struct nrp_tiering_state *nrp_tiering_state_new(const struct nrp_tiering_lane_params *params,
						const struct nrp_host_facts *facts,
						uint64_t first_time)
{
	uint32_t hz = facts->hz > 0 && facts->hz <= WINDOW_MS ? (uint32_t)facts->hz : SLOWEST_HZ;
	struct nrp_tiering_state *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->params = *params;
	s->tick_ms = (WINDOW_MS + hz - 1) / hz;
	s->margin = (uint64_t)(facts->nr_cpus > 0 ? facts->nr_cpus : 1) * STAT_THRESHOLD;
	s->first_time = first_time;
	s->nr_targets = facts->nr_nodes > 0 ? facts->nr_nodes : 1;
	s->target = calloc((size_t)s->nr_targets, sizeof(*s->target));
	return s->target ? s : nrp_tiering_state_free(s);
}

struct nrp_tiering_state *nrp_tiering_state_free(struct nrp_tiering_state *s)
{
	if (s) {
		free(s->target);
		free(s->queue);
		free(s);
	}
	return NULL;
}

/* ---- age and threshold -------------------------------------------------------------- */

struct span {
	uint64_t low, high;
};

/* Ages as the kernel sees them, in ticks and modulo the field's width. */
static struct span age_of(const struct nrp_tiering_state *s, const struct nrp_slow_fault *f)
{
	struct span a = { 0, UINT64_MAX };
	uint64_t modulus, unit;

	if (!f->armed.known || !s->params.policy.cpupid_bits)
		return a;
	modulus = (uint64_t)nrp_tiering_mask(&s->params.policy);
	unit = modulus & -modulus; /* ms of one count of a narrow field */
	modulus += unit;
	a.low = (f->time - f->armed.to) / NS_PER_MS;
	a.low -= a.low < s->tick_ms ? a.low : s->tick_ms;
	a.high = (f->time - f->armed.from) / NS_PER_MS + 1 + s->tick_ms + unit - 1;
	if (a.high - a.low >= modulus)
		return (struct span){ 0, UINT64_MAX };
	a.low %= modulus;
	a.high %= modulus;
	return a.low <= a.high ? a : (struct span){ 0, UINT64_MAX };
}

static struct span threshold_of(const struct nrp_tiering_params *p)
{
	uint64_t hot = p->hot_threshold_ms;

	if (p->variant == NRP_TIERING_STATIC)
		return (struct span){ hot, hot };
	return (struct span){ hot * 2 / ADJUST_STEPS, hot * 2 };
}

/* ---- the rate limit ----------------------------------------------------------------- */

static int enqueue(struct nrp_tiering_state *s, const struct nrp_slow_fault *f)
{
	if (s->count == s->room && s->head > s->room / 2) {
		s->count -= s->head;
		memmove(s->queue, s->queue + s->head, s->count * sizeof(*s->queue));
		s->head = 0;
	} else if (s->count == s->room) {
		size_t room = s->room ? s->room * 2 : 1024;
		struct candidate *grown = reallocarray(s->queue, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->queue = grown;
		s->room = room;
	}
	s->queue[s->count++] =
		(struct candidate){ .time = f->time, .pages = f->pages, .nid = f->dst_nid };
	s->target[f->dst_nid].recent += f->pages;
	return 0;
}

static void forget_old(struct nrp_tiering_state *s, uint64_t now)
{
	uint64_t window = (uint64_t)(WINDOW_MS + s->tick_ms) * NS_PER_MS;

	for (; s->head < s->count && s->queue[s->head].time + window < now; s->head++)
		s->target[s->queue[s->head].nid].recent -= s->queue[s->head].pages;
}

/*
 * Before the first window of the capture is over, candidates of before may have filled it. Later a
 * window holds at most what came in the last second.
 */
static bool may_be_limited(const struct nrp_tiering_state *s, const struct nrp_slow_fault *f)
{
	uint64_t first_window = (uint64_t)(WINDOW_MS + s->tick_ms) * NS_PER_MS;

	return f->time - s->first_time <= first_window ||
	       s->target[f->dst_nid].recent + s->margin >= s->params.policy.limit;
}

/* ---- one fault ---------------------------------------------------------------------- */

static bool central(struct nrp_tiering_state *s, const struct nrp_slow_fault *f)
{
	struct nrp_tiering_params p = s->params.policy;
	struct target *t = &s->target[f->dst_nid];
	uint32_t now = (uint32_t)(f->time / NS_PER_MS);
	struct nrp_tiering_call call = { .now_ms = now, .pages = f->pages };

	if (!p.cpupid_bits)
		p.cpupid_bits = 32;
	if (!t->seen) {
		nrp_tiering_enable(&t->central, (uint32_t)(s->first_time / NS_PER_MS));
		t->central.window_start_ms = (uint32_t)(s->first_time / NS_PER_MS);
		t->seen = true;
	}
	/* Armed before the capture: at its start at the latest. */
	call.accessed = nrp_tiering_stamp(
		&p, (uint32_t)((f->armed.known ? f->armed.middle : s->first_time) / NS_PER_MS));
	return nrp_tiering_decide(&p, &t->central, &call).admitted;
}

static void add(struct nrp_tiering_count *c, bool yes, uint32_t pages)
{
	c->faults += yes;
	c->pages += yes ? pages : 0;
}

static void compare(struct nrp_tiering_lane *lane, const struct nrp_slow_fault *f, bool surely,
		    bool perhaps)
{
	if (f->answer < 0)
		return;
	lane->decisions++;
	if (surely != perhaps || !f->certain)
		lane->undecided++;
	else if (surely == (f->answer != 0))
		lane->agree++;
	else
		lane->disagree++;
}

int nrp_tiering_state_fault(struct nrp_tiering_state *s, const struct nrp_slow_fault *f,
			    struct nrp_tiering_lane *lane)
{
	struct span age = age_of(s, f), threshold = threshold_of(&s->params.policy);
	struct target *t = &s->target[f->dst_nid];
	bool may_be_hot = age.low < threshold.high, surely, perhaps;

	forget_old(s, f->time);
	if (may_be_hot && enqueue(s, f) < 0)
		return -ENOMEM;
	surely = f->certain && age.high < threshold.low && !may_be_limited(s, f);
	/* With a limit of 0 not even the call that opens a window passes. */
	perhaps = s->params.free == NRP_TIERING_FREE_UNKNOWN || !f->certain ||
		  (may_be_hot && s->params.policy.limit > 0);
	if (perhaps) {
		t->first = t->maybe.faults ? t->first : f->time;
		t->last = f->time;
		t->max_pages = f->pages > t->max_pages ? f->pages : t->max_pages;
	}
	s->uncertain |= !f->certain;
	add(&t->maybe, perhaps, f->pages);
	add(&lane->lower, surely, f->pages);
	add(&lane->value, central(s, f), f->pages);
	add(&lane->upper, perhaps, f->pages);
	compare(lane, f, surely, perhaps);
	return 0;
}

static void take_excess(uint64_t *upper, uint64_t counted, uint64_t most)
{
	*upper -= counted > most ? counted - most : 0;
}

/*
 * At most one window opens in a second, and each lets the limit through, the last fault of it as a
 * whole; a fault is one page at least. What bypasses the limiter is not bounded by it.
 */
void nrp_tiering_state_finish(const struct nrp_tiering_state *s, struct nrp_tiering_lane *lane)
{
	if (s->params.free == NRP_TIERING_FREE_UNKNOWN || s->uncertain)
		return;
	for (int i = 0; i < s->nr_targets; i++) {
		const struct target *t = &s->target[i];
		uint64_t windows = (t->last - t->first) / NS_PER_MS / WINDOW_MS + 2, most;

		if (__builtin_mul_overflow(
			    windows, s->params.policy.limit + s->margin + t->max_pages, &most))
			continue;
		take_excess(&lane->upper.faults, t->maybe.faults, most - windows * t->max_pages);
		take_excess(&lane->upper.pages, t->maybe.pages, most);
	}
}
