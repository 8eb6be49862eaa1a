/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One recorded fault in one world: is it there at all, and does its page move? */
#include "replay/attempts.h"
#include "replay/verify.h"
#include "replay/worlds_internal.h"

/* ---- the limiter -------------------------------------------------------------------- */

static uint64_t ticks_now(struct nrp_worlds *w, uint64_t time)
{
	int64_t hz = w->facts->hz > 0 ? w->facts->hz : 250;

	/* Many worlds ask at one time. */
	if (w->ticks_at == time && time)
		return w->ticks;
	w->ticks_at = time;
	if (w->have_tick)
		w->ticks = w->tick + nrp_ticks(time > w->tick_time ? time - w->tick_time : 0, hz);
	else
		w->ticks = nrp_ticks(time, hz);
	return w->ticks;
}

/* After the limiter refused an attempt: it will, until the window ends. */
static void note_full(struct nrp_worlds *w, const struct nrp_world *world, int nid)
{
	struct nrp_full_windows *full = &w->full[nid];
	uint64_t end = world->window[nid].end;

	if (!full->worlds || (int64_t)(end - full->until) < 0)
		full->until = end;
	full->worlds |= UINT32_C(1) << (world - w->world);
}

void nrp_worlds_enter_refused(struct nrp_worlds *w)
{
	struct nrp_common_count *c = &w->refused;

	while (c->worlds) {
		struct nrp_world_result *r = &w->world[nrp_next_world(&c->worlds)].result;

		r->model_attempts += c->faults;
		r->attempt_pages += c->pages;
		r->denied += c->faults;
	}
	c->faults = c->pages = 0;
}

/* Of @worlds, those of which this is known without a look at them. */
static uint32_t refuse_at_once(struct nrp_worlds *w, uint32_t worlds, const struct nrp_step *s)
{
	struct nrp_full_windows *full = &w->full[s->this];

	if (full->worlds && (int64_t)(full->until - ticks_now(w, s->time)) < 0)
		full->worlds = 0;
	worlds &= full->worlds;
	if (w->refused.worlds != worlds)
		nrp_worlds_enter_refused(w);
	w->refused.worlds = worlds;
	w->refused.faults++;
	w->refused.pages += s->pages;
	return worlds;
}

static bool limiter_admits(struct nrp_worlds *w, struct nrp_world *world, const struct nrp_step *s,
			   int nid)
{
	static const struct nrp_ratelimit_start fresh = { .first_end = -1 };
	const struct nrp_world_config *c = &world->config;
	struct nrp_ratelimit_start start = fresh;
	uint64_t jiffies;

	if (c->limiter.variant == NRP_RATELIMIT_NONE || nid < 0 || nid >= c->nr_nodes)
		return true;
	jiffies = s->attempted && !NRP_NULL(s->f, hint_fault, attempt_jiffies)
			  ? s->f->attempt_jiffies
			  : ticks_now(w, s->time);
	if (!world->window_open[nid]) {
		if (nid < c->nr_starts)
			start = c->start[nid];
		else if (nrp_ratelimit_on_grid(c->limiter.variant))
			start = nrp_ratelimit_start_at(&c->limiter, 0);
		world->window_open[nid] = true;
		world->window[nid] =
			nrp_ratelimit_first_window(&c->limiter, &start, jiffies, c->grid_origin);
	}
	if (nrp_ratelimit_admit(&c->limiter, &world->window[nid], jiffies, s->pages))
		return true;
	note_full(w, world, nid);
	return false;
}

static bool admit(struct nrp_worlds *w, struct nrp_world *world, const struct nrp_step *s, int nid)
{
	const struct nrp_world_config *c = &world->config;
	bool ok = c->admit ? c->admit(c->context, s->time, nid, s->pages)
			   : limiter_admits(w, world, s, nid);

	world->result.attempt_pages += s->pages;
	world->tries |= ok;
	if (ok)
		world->result.admitted++;
	else
		world->result.denied++;
	return ok;
}

/* Would an attempt whose outcome the record does not have move the page? */
static bool unknown_outcome(const struct nrp_worlds *w, struct nrp_world *world)
{
	switch (world->config.unknown) {
	case NRP_UNKNOWN_FAILS:
		return false;
	case NRP_UNKNOWN_SUCCEEDS:
		return true;
	default:
		/* The recorded success rate, spread evenly. */
		world->expected += w->tried ? (double)w->succeeded / (double)w->tried : 1.0;
		if (world->expected < 0.999999)
			return false;
		world->expected -= 1.0;
		return true;
	}
}

/* ---- the filter --------------------------------------------------------------------- */

/* Weights of the task's last filter call, if it was about the same two nodes. */
static bool recall_weights(const struct nrp_task *task, struct nrp_filter_call *call)
{
	int src = call->src_nid == task->nid[0] ? 0 : 1;

	if (!task->weights_known || call->src_nid != task->nid[src] ||
	    call->dst_nid != task->nid[!src])
		return false;
	call->weights_known = true;
	call->cpu_src = task->cpu[src];
	call->mem_src = task->mem[src];
	call->cpu_dst = task->cpu[!src];
	call->mem_dst = task->mem[!src];
	return true;
}

/* The call that this fault would make in this world; false: the task's state is not known. */
static bool make_call(const struct nrp_worlds *w, const struct nrp_step *s,
		      const struct nrp_place *place, struct nrp_filter_call *call)
{
	/* The record's own call tells all but who touched the page last, here. */
	if (s->filtered && place->nid == s->src && nrp_filter_call_of(call, w->facts, s->f)) {
		call->last_cpupid = place->last_cpupid;
		return true;
	}
	*call = (struct nrp_filter_call){
		.tid = s->f->tid,
		.src_nid = place->nid,
		.dst_nid = s->this,
		.last_cpupid = place->last_cpupid,
		.preferred_nid = s->task->preferred_nid,
		.scan_seq = s->task->scan_seq,
		.grouped = s->task->grouped,
		.dst_without_memory =
			s->this < w->facts->nr_nodes && w->facts->node_memkb[s->this] == 0,
	};
	return s->task->known;
}

enum nrp_filter_answer nrp_world_filter(const struct nrp_worlds *w, enum nrp_filter_variant filter,
					const struct nrp_step *s, const struct nrp_place *place)
{
	struct nrp_filter_call call;

	if (!make_call(w, s, place, &call))
		return NRP_FILTER_UNDECIDED;
	return nrp_filter_decide(filter, &w->filter_host, &call).answer;
}

bool nrp_world_guess(struct nrp_worlds *w, int i, const struct nrp_step *s,
		     const struct nrp_place *place)
{
	struct nrp_world *world = &w->world[i];
	struct nrp_filter_call call;

	world->result.undecided_filters++;
	if (world->config.unknown != NRP_UNKNOWN_EXPECTED)
		return world->config.unknown == NRP_UNKNOWN_SUCCEEDS;
	/* The best guess is that the group's weights are what they were. */
	if (!make_call(w, s, place, &call) || !recall_weights(s->task, &call))
		return true;
	return nrp_filter_decide(world->config.filter, &w->filter_host, &call).answer !=
	       NRP_FILTER_STAY;
}

static bool filter_passes(struct nrp_worlds *w, int i, const struct nrp_step *s,
			  const struct nrp_place *place)
{
	const struct nrp_world_config *c = &w->world[i].config;
	enum nrp_filter_answer answer;

	if (c->filter_passes)
		return true;
	answer = nrp_world_filter(w, c->filter, s, place);
	return answer == NRP_FILTER_UNDECIDED ? nrp_world_guess(w, i, s, place)
					      : answer == NRP_FILTER_MOVE;
}

/* ---- the decision ------------------------------------------------------------------- */

/*
 * An attempt that the record does not have may block whoever maps the page: as many others as map
 * it at the fault, if no address space has more threads than one; else all tasks that are seen.
 */
static void note_new_attempt(const struct nrp_worlds *w, struct nrp_world *world,
			     const struct nrp_step *s)
{
	bool known = !NRP_NULL(s->f, hint_fault, mapcount) && s->f->mapcount >= 0;
	uint64_t others = w->nr_tasks - 1;

	if (known && (!w->has_threads || (uint64_t)s->f->mapcount > others))
		others = (uint64_t)s->f->mapcount;
	world->result.new_attempts++;
	world->result.new_waiters += others;
}

/*
 * The recorded fault came to nothing, perhaps because another one, under another name of its page,
 * was just moving it. Where the lane leaves out that other one, this one may succeed. If the page
 * is still shared, both were armed by one scan, before a fork, and the lane has both or none: then
 * only if it had been moved, and has not here.
 */
static bool may_succeed(const struct nrp_world *world, const struct nrp_step *s)
{
	bool shared = !NRP_NULL(s->f, hint_fault, mapcount) && s->f->mapcount > 0;

	if (!world->config.leaves_out || world->config.unknown != NRP_UNKNOWN_SUCCEEDS ||
	    s->moved || s->refused)
		return false;
	return (s->overtaken && world->apart) ||
	       (!shared && !s->overtaken &&
		(s->page->mappings || s->context->armed[world->config.lane] == NRP_ARMED_UNKNOWN));
}

/* Does the kernel's own attempt from the same node say what happens here too? */
static bool try_recorded(struct nrp_worlds *w, struct nrp_world *world, const struct nrp_step *s)
{
	if (!s->attempted)
		return s->moved; /* moved without an attempt on record: as recorded */
	if (!admit(w, world, s, s->f->attempt_nid))
		return false;
	if (may_succeed(world, s)) {
		note_new_attempt(w, world, s);
		return true;
	}
	if (s->refused)
		note_new_attempt(w, world, s);
	return s->refused || s->overtaken ? unknown_outcome(w, world) : s->moved;
}

static bool try_unrecorded(struct nrp_worlds *w, struct nrp_world *world, const struct nrp_step *s)
{
	world->result.model_attempts++;
	if (!admit(w, world, s, s->this))
		return false;
	note_new_attempt(w, world, s);
	return unknown_outcome(w, world);
}

uint32_t nrp_worlds_try(struct nrp_worlds *w, uint32_t worlds, const struct nrp_step *s,
			uint32_t *ret_refused)
{
	uint32_t refused = refuse_at_once(w, worlds, s), pulled = 0;

	for (uint32_t left = worlds & ~refused; left;) {
		int i = nrp_next_world(&left);
		struct nrp_world *world = &w->world[i];
		uint64_t denied = world->result.denied;

		if (try_unrecorded(w, world, s))
			pulled |= UINT32_C(1) << i;
		else if (world->result.denied > denied)
			refused |= UINT32_C(1) << i;
	}
	*ret_refused = refused;
	return pulled;
}

/* From here on the address space's scan periods, and so its faults, may be others. */
static void note_difference(struct nrp_worlds *w, int i, const struct nrp_step *s,
			    uint64_t denied_before, int nid)
{
	bool refuses = w->world[i].result.denied > denied_before;
	bool host_refuses = s->attempted && s->refused;

	if (refuses != host_refuses || (!w->same_filter && !s->overtaken && nid != s->observed_nid))
		s->mm->diverged |= UINT32_C(1) << i;
}

/* The fault as this world sees it; returns the page's node afterwards. */
static int decide(struct nrp_worlds *w, int i, const struct nrp_step *s,
		  const struct nrp_place *place)
{
	struct nrp_world *world = &w->world[i];
	bool remote = place->nid != s->this, at_record = place->nid == s->src;
	bool as_host = world->config.filter == w->host_filter && !place->cpupid_apart;
	bool tried = s->attempted || s->moved;
	int nid = place->nid;

	world->result.hint_faults++;
	world->result.hint_fault_pages += s->pages;
	world->result.remote_faults += remote;
	if (at_record && (as_host || !s->filtered)) {
		/*
		 * The host's own decision; or none was asked for: a local page, or a memory policy
		 * of the process.
		 */
		if (tried && try_recorded(w, world, s))
			nid = s->attempted ? s->f->attempt_nid : s->this;
		else if (!tried && remote && !s->filtered && may_succeed(world, s) &&
			 try_unrecorded(w, world, s))
			nid = s->this;
	} else if (remote && filter_passes(w, i, s, place)) {
		bool moves = at_record && tried ? try_recorded(w, world, s)
						: try_unrecorded(w, world, s);

		if (moves)
			nid = s->this;
	}
	return nid;
}

static void exchange_cpupid(const struct nrp_worlds *w, int i, const struct nrp_step *s,
			    struct nrp_place *place, int nid_before)
{
	/* A memory policy of the process: no filter is asked, here either. */
	if (nid_before == s->src && s->src != s->this && !s->filtered)
		return;
	if (nrp_filter_is_called(w->world[i].config.filter, nid_before, s->this)) {
		place->last_cpupid = nrp_filter_cpupid(&w->filter_host, (int)s->f->cpu, s->f->tid);
		place->cpupid_apart = !s->filtered;
	} else if (s->filtered) {
		place->cpupid_apart = true;
	}
}

void nrp_world_missing(struct nrp_worlds *w, int i, struct nrp_place *place, uint64_t addr,
		       const struct nrp_mm *mm, uint64_t until, uint64_t apart_pages)
{
	struct nrp_world_result *r = &w->world[i].result;
	const struct nrp_world_config *c = &w->world[i].config;
	uint64_t from = place->apart_since, refused = 0, n;

	if (from && c->refused_until)
		refused = c->refused_until(c->scanner, mm->mm, addr, from);
	n = from ? nrp_mm_count(mm, addr, refused > from ? refused : from, until) : 0;
	r->extra_faults_max += n;
	r->extra_moves_max += n ? apart_pages : 0;
	place->apart_since = 0;
}

/* Does the fault happen in this world? */
static bool armed_here(struct nrp_worlds *w, int i, const struct nrp_step *s, bool tainted, int nid)
{
	struct nrp_world *world = &w->world[i];

	/* A local page of a single-threaded process, or of a pass that the world left out. */
	if ((s->is_private && tainted && nid == s->this) || !(s->kept >> i & 1))
		return false;
	switch (s->context->armed[world->config.lane]) {
	case NRP_ARMED_YES:
		return true;
	case NRP_ARMED_UNKNOWN:
		world->result.unarmed_unknown++;
		return world->config.unknown != NRP_UNKNOWN_FAILS;
	default:
		world->result.unarmed_faults++;
		return false;
	}
}

/*
 * Not armed at this fault, the page stays remote where the record has it local from now on. The
 * lane's scanner comes by later, arms it, and its next touch, which the record cannot show, is a
 * fault: there it goes the same way.
 */
static bool faults_later(struct nrp_worlds *w, int i, const struct nrp_step *s, int nid)
{
	const struct nrp_world_config *c = &w->world[i].config;

	return s->context->armed[c->lane] == NRP_ARMED_LATER && s->is_private && s->moved &&
	       s->kept >> i & 1 && nid != s->this && s->observed_nid == s->this &&
	       c->unknown != NRP_UNKNOWN_FAILS;
}

/* Local on record from now on, and so never armed; where it is remote, and a scanner comes, it is.
 */
static bool may_miss(const struct nrp_step *s, int lane)
{
	return s->is_private && s->observed_nid == s->this &&
	       s->context->armed[lane] != NRP_ARMED_NO;
}

static bool move_later(struct nrp_worlds *w, struct nrp_world *world, const struct nrp_step *s)
{
	world->result.hint_faults++;
	world->result.hint_fault_pages += s->pages;
	world->result.remote_faults++;
	if (!try_unrecorded(w, world, s))
		return false;
	world->result.moves++;
	world->result.moved_pages += s->pages;
	world->result.added++;
	return true;
}

static void keep_waits(struct nrp_world_result *r, const struct nrp_fault_waits *w)
{
	r->kept.waits += w->certain.waits;
	r->kept.ns += w->certain.ns;
	r->kept_perhaps.waits += w->possible.waits;
	r->kept_perhaps.ns += w->possible.ns;
}

void nrp_world_step(struct nrp_worlds *w, int i, const struct nrp_step *s, struct nrp_place *place)
{
	struct nrp_world *world = &w->world[i];
	uint64_t denied = world->result.denied;
	bool tainted = place->nid != s->page->nid, later;
	int nid_before, nid;

	world->tries = false;
	if (!tainted)
		place->nid = (int16_t)s->src;
	tainted = s->overtaken ? tainted : place->nid != s->src;
	if (!place->cpupid_apart && !NRP_NULL(s->f, hint_fault, last_cpupid))
		place->last_cpupid = s->f->last_cpupid;
	nid = nid_before = place->nid;
	/* Refused now, a page was so at all scans since it was last: they armed nothing. */
	if (s->context->armed[world->config.lane] == NRP_ARMED_REFUSED)
		place->apart_since = 0;
	if (s->is_private)
		nrp_world_missing(w, i, place, s->f->addr, s->mm, s->f->time,
				  tainted ? s->pages : 0);
	world->apart = tainted;
	later = faults_later(w, i, s, nid_before);
	if (!armed_here(w, i, s, tainted, nid_before)) {
		/* The record's page remembers this access, this world's does not. */
		place->cpupid_apart |= s->filtered;
		if (later && move_later(w, world, s))
			place->nid = (int16_t)s->this;
		else if (s->moved && !tainted)
			world->result.suppressed++;
	} else {
		nid = decide(w, i, s, place);
		exchange_cpupid(w, i, s, place, nid_before);
		note_difference(w, i, s, denied, nid);
		if (s->overtaken && !tainted)
			nid = nid_before; /* here, too, the page is on its way */
		place->nid = (int16_t)nid;
		if (nid != nid_before) {
			world->result.moves++;
			world->result.moved_pages += s->pages;
			world->result.added += !s->moved || tainted;
		} else if (s->moved && !tainted) {
			world->result.suppressed++;
		}
	}
	if (world->tries && s->attempted)
		keep_waits(&world->result, &s->context->waits);
	if (s->overtaken && !tainted)
		place->nid = s->page->nid;
	if (may_miss(s, world->config.lane) && (place->nid != s->this || later))
		place->apart_since = s->f->time;
}
