/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages are neither made nor lost: what a replay tracks must add up to what the records say, read
 * one by one, and to what the kernel counted.
 */
#include "nulls.h"
#include "replay/attempts.h"
#include "replay/pages.h"
#include "replay/stream.h"

#include <errno.h>
#include <string.h>

#include "store_util.h"

/* ---- the record, by cursor ---------------------------------------------------------- */

#define NODES 64

struct base_page {
	bool seen;
	int16_t first, last; /* nodes: at first sight, and after the last record */
	uint64_t known_at;   /* when last was so */
};

struct record {
	struct nrp_pages *pages; /* of struct base_page */
	uint64_t moved[NODES][NODES];
	uint64_t moves, moved_pages, untracked, elsewhere;
};

static bool is_tracked(const struct nrp_hint_fault *f)
{
	return !NRP_NULL(f, hint_fault, mm) && !NRP_NULL(f, hint_fault, addr) &&
	       !NRP_NULL(f, hint_fault, src_nid) && !NRP_NULL(f, hint_fault, this_nid);
}

/*
 * A fault saw its page where it was when the fault began; a move has it at the target from the
 * attempt's end. Whichever is later stands; of both at once (the clock may stand still) the move,
 * or the fault would have seen it.
 */
static void see_base_page(struct record *r, const struct nrp_hint_fault *f, uint64_t vfn, int nid,
			  uint64_t known_at)
{
	struct base_page *p = nrp_pages_get(r->pages, f->mm, vfn);

	assert_non_null(p);
	if (!p->seen) {
		p->seen = true;
		p->first = p->last = f->src_nid;
	}
	if (p->last != f->src_nid && f->time > p->known_at)
		r->elsewhere++; /* somebody else moved it */
	if (known_at < p->known_at || (known_at == p->known_at && !nrp_fault_moved(f)))
		return;
	p->last = (int16_t)nid;
	p->known_at = known_at;
}

static void see_fault(struct record *r, const struct nrp_hint_fault *f)
{
	uint64_t pages = nrp_fault_pages(f), head, known_at = f->time;
	bool moved = nrp_fault_moved(f);
	int nid = f->src_nid;

	r->moves += moved;
	r->moved_pages += moved ? pages : 0;
	if (!is_tracked(f)) {
		r->untracked++;
		return;
	}
	if (moved) {
		assert_int_equal(NRP_NULL(f, hint_fault, attempt_nid), false);
		nid = f->attempt_nid;
		assert_in_range(nid, 0, NODES - 1);
		r->moved[f->src_nid][nid] += pages;
		known_at += f->attempt_delay + f->attempt_ns;
	}
	head = nrp_page_of(f->addr, 4096, (uint32_t)pages);
	for (uint64_t vfn = head; vfn < head + pages; vfn++)
		see_base_page(r, f, vfn, nid, known_at);
}

static void read_record(struct record *r, const struct loaded *c)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_cursor *cursor;
	const void *row;
	int more;

	memset(r, 0, sizeof(*r));
	r->pages = nrp_pages_new(sizeof(struct base_page));
	assert_non_null(r->pages);
	assert_ok(nrp_cursor_open(&cursor, c->store, c->capture.id, NRP_HINT_FAULT, ~UINT64_C(0),
				  &err),
		  &err);
	while ((more = nrp_cursor_next(cursor, &row, &err)) > 0)
		see_fault(r, row);
	assert_ok(more, &err);
	nrp_cursor_close(cursor);
}

static uint64_t sum_moved(const struct record *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < NODES; i++)
		for (int k = 0; k < NODES; k++)
			sum += r->moved[i][k];
	return sum;
}

/* ---- a world that decides as the host ----------------------------------------------- */

static bool admit_as_host(void *context, uint64_t time, int nid, uint64_t pages)
{
	const bool *refused = context;

	(void)time;
	(void)nid;
	(void)pages;
	return !*refused;
}

static int feed(struct nrp_worlds *w, enum nrp_replay_stream_kind kind, const void *row,
		bool *refused)
{
	struct nrp_fault_context context = { 0 };
	struct nrp_attempt attempt;
	bool has_jiffies;

	switch (kind) {
	case NRP_STREAM_LIFE:
		return nrp_worlds_task_life(w, row);
	case NRP_STREAM_MOVE:
		return nrp_worlds_task_move(w, row);
	case NRP_STREAM_PASS:
		return nrp_worlds_scan_pass(w, row);
	case NRP_STREAM_RANGE:
		return nrp_worlds_scan_range(w, row);
	case NRP_STREAM_PAGE_FAULT:
		return 0;
	case NRP_STREAM_FAULT:
		break;
	}
	*refused = nrp_attempt_of_fault(&attempt, row, &has_jiffies) &&
		   attempt.evidence == NRP_LIMITER_DENIED;
	context.refused = *refused;
	return nrp_worlds_fault(w, row, &context);
}

static int host_filter(const struct loaded *c)
{
	for (size_t i = 0; i < c->verify.nr_checks; i++)
		if (!strcmp(c->verify.check[i].family, "migrate.filter"))
			return c->verify.check[i].chosen;
	fail_msg("%s: no filter", c->name);
	return -1;
}

/* Every mapping of a page is followed by itself, as it is in the records. */
static struct nrp_worlds *follow_host(const struct loaded *c)
{
	struct nrp_error err = NRP_ERROR_INIT;
	enum nrp_filter_variant filter = (enum nrp_filter_variant)host_filter(c);
	bool refused = false;
	struct nrp_world_config config = { .filter = filter,
					   .nr_nodes = c->capture.facts.nr_nodes,
					   .admit = admit_as_host,
					   .context = &refused,
					   .unknown = NRP_UNKNOWN_EXPECTED };
	enum nrp_replay_stream_kind kind;
	struct nrp_replay_stream *stream;
	struct nrp_worlds *w;
	const void *row;
	int more;

	assert_ok(nrp_worlds_new(&w, &c->capture.facts, filter, 60000, c->capture.first_time, false,
				 &config, 1, &err),
		  &err);
	assert_ok(nrp_replay_stream_open(&stream, c->store, c->capture.id, 0, false, &err), &err);
	while ((more = nrp_replay_stream_next(stream, &kind, &row, &err)) > 0)
		assert_int_equal(feed(w, kind, row, &refused), 0);
	assert_ok(more, &err);
	assert_int_equal(nrp_worlds_finish(w, c->capture.last_time), 0);
	nrp_replay_stream_close(stream);
	return w;
}

static void assert_places(const struct loaded *c, const struct record *r, struct nrp_worlds *w,
			  int64_t *gained)
{
	size_t position = 0;
	uint64_t mm, vfn;
	const struct base_page *p;

	while ((p = nrp_pages_next(r->pages, &position, &mm, &vfn))) {
		bool tainted;
		int nid = nrp_worlds_location(w, 0, mm, vfn, &tainted);

		if (nid != p->last || tainted)
			fail_msg("%s: page %#llx of mm %#llx is on %d%s, on record %d", c->name,
				 (unsigned long long)vfn, (unsigned long long)mm, nid,
				 tainted ? ", unlike the record," : "", p->last);
		gained[nid]++;
		gained[p->first]--;
	}
}

void test_pages_end_where_the_last_record_left_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < null_count; i++) {
		const struct loaded *c = &null_captures[i];
		struct nrp_worlds *w = follow_host(c);
		const struct nrp_worlds_totals *totals = nrp_worlds_totals(w);
		const struct nrp_world_result *world = nrp_worlds_result(w, 0);
		int64_t gained[NODES] = { 0 };
		struct record r;

		read_record(&r, c);
		assert_int_equal(totals->untracked_faults, r.untracked);
		assert_int_equal(totals->observed_moves, r.moves);
		assert_int_equal(totals->observed_moved_pages, r.moved_pages);
		assert_int_equal(world->moved_pages, r.moved_pages);
		assert_int_equal(world->suppressed, 0);
		assert_int_equal(world->added, 0);
		assert_places(c, &r, w, gained);
		/* A page that somebody else moved is in no pair of nodes. */
		if ((totals->external_moves != 0) != (r.elsewhere != 0))
			fail_msg("%s: %llu pages were moved by others, on record %llu", c->name,
				 (unsigned long long)totals->external_moves,
				 (unsigned long long)r.elsewhere);
		for (int n = 0; n < NODES && !r.elsewhere && !r.untracked; n++) {
			int64_t flow = 0;

			for (int k = 0; k < NODES; k++)
				flow += (int64_t)r.moved[k][n] - (int64_t)r.moved[n][k];
			assert_int_equal(gained[n], flow);
		}
		nrp_pages_free(r.pages);
		nrp_worlds_free(w);
	}
}

/* ---- sums of a replay --------------------------------------------------------------- */

void test_moved_pages_are_the_sum_over_pairs_of_nodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < null_count; i++) {
		struct compared x;
		struct record r;

		read_record(&r, &null_captures[i]);
		null_compare(&x, &null_captures[i], "host", "off", NULL);
		if (!r.untracked)
			assert_int_equal(sum_moved(&r), r.moved_pages);
		assert_int_equal(x.replay.totals.observed_moved_pages, r.moved_pages);
		assert_int_equal(x.replay.totals.observed_moves, r.moves);
		assert_int_equal(x.replay.observed.moved_pages, r.moved_pages);
		nrp_pages_free(r.pages);
		null_compared_clear(&x);
	}
}

static const struct nrp_verify_counter *counter_of(const struct nrp_verify *v, const char *name)
{
	for (size_t i = 0; i < v->nr_counters; i++)
		if (!strcmp(v->counter[i].name, name))
			return &v->counter[i];
	return NULL;
}

static bool is_huge(const struct loaded *c)
{
	return strstr(c->name, "thp") != NULL;
}

/* The metric counts base pages, as the kernel does. */
void test_huge_pages_add_up_to_vmstat(void **state)
{
	int compared = 0;

	(void)state;
	for (size_t i = 0; i < null_count; i++) {
		const struct loaded *c = &null_captures[i];
		const struct nrp_verify_counter *k = counter_of(&c->verify, "numa_pages_migrated");
		const struct nrp_metric *m;
		struct compared x;
		int64_t delta;

		if (!is_huge(c))
			continue;
		null_compare(&x, c, "host", "off", NULL);
		assert_int_equal(x.replay.totals.external_moves, 0);
		m = nrp_comparison_metric(&x.comparison, "migrated_pages");
		assert_int_equal(nrp_store_counter_delta(c->store, c->capture.id,
							 "numa_pages_migrated", &delta),
				 k ? 0 : -ENOENT);
		if (k && k->difference == 0) {
			assert_int_equal(m->old_lane.class, NRP_CLASS_EXACT);
			assert_int_equal((int64_t)m->old_lane.value, delta);
			compared++;
		}
		null_compared_clear(&x);
	}
	assert_true(compared > 0);
}

/* ---- huge pages up to 5.13 ---------------------------------------------------------- */

/* Is there a migrate_pages() of this thread in the attempt? */
static bool migrates_within(const struct loaded *c, const struct nrp_hint_fault *f)
{
	struct nrp_error err = NRP_ERROR_INIT;
	uint64_t begin = f->time + f->attempt_delay, end = begin + f->attempt_ns;
	struct nrp_cursor *cursor;
	bool found = false;
	const void *row;

	assert_ok(nrp_cursor_open(&cursor, c->store, c->capture.id, NRP_MIGRATION, ~UINT64_C(0),
				  &err),
		  &err);
	while (nrp_cursor_next(cursor, &row, &err) > 0) {
		const struct nrp_migration *m = row;

		found |= m->tid == f->tid && m->time >= begin && m->time <= end;
	}
	nrp_cursor_close(cursor);
	return found;
}

static uint64_t check_huge_moves(const struct loaded *c)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_cursor *cursor;
	uint64_t moves = 0;
	const void *row;

	assert_ok(nrp_cursor_open(&cursor, c->store, c->capture.id, NRP_HINT_FAULT, ~UINT64_C(0),
				  &err),
		  &err);
	while (nrp_cursor_next(cursor, &row, &err) > 0) {
		const struct nrp_hint_fault *f = row;

		if (f->attempt != NRP_ATTEMPT_THP || !nrp_fault_moved(f))
			continue;
		assert_int_equal(f->pages, 512);
		assert_true(NRP_NULL(f, hint_fault, migrated_pages));
		assert_false(migrates_within(c, f));
		moves++;
	}
	nrp_cursor_close(cursor);
	return moves;
}

/* migrate_misplaced_transhuge_page() moves 512 base pages, without migrate_pages(). */
void test_thp_function_moves_512_pages(void **state)
{
	uint64_t moves = 0;

	(void)state;
	for (size_t i = 0; i < null_count; i++)
		if (null_captures[i].capture.facts.has_thp_function)
			moves += check_huge_moves(&null_captures[i]);
	assert_true(moves > 0);
}
