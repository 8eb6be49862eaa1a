/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/waits_match.h"
#include "replay/attempts.h"
#include "replay/host.h"
#include "replay/pages.h"

#include <stdlib.h>
#include <string.h>

/* A migration that is under way or has just ended. */
struct flight {
	uint64_t start, end; /* ns; end UINT64_MAX: not known yet */
	uint64_t time;       /* of its record */
	uint64_t mm, first_page, pages, page;
	int32_t tid;
	bool mm_known, page_known;
	bool reached; /* on record as having come to migrate_pages() */
	uint8_t reason;
};

/* A page that somebody waits for, with the struct page that its mm last faulted on there. */
struct watched {
	uint64_t mm, number, page;
	bool known;
};

/* The last migration entry set at an address. */
struct entry {
	uint64_t set_time; /* 0: none yet */
	int32_t tid;
};

struct match {
	struct nrp_waits *waits;
	struct nrp_mm_kin *kin;
	uint64_t page_size;
	struct flight *flight;
	size_t nr_flights, room, compact_at;
	size_t nr_open; /* flights whose end is not known yet */
	struct watched *watched;
	size_t nr_watched;
	struct flight *other; /* migrations for other reasons, by start */
	size_t nr_others, next_other;
	struct nrp_pages *entries; /* (0, virtual page) -> struct entry */
	size_t link_room;
	struct nrp_cursor *faults, *sets;
	const struct nrp_hint_fault *fault;
	const struct nrp_migration_entry *set;
	struct nrp_error *err;
};

/* ---- pages waited for --------------------------------------------------------------- */

static int by_page(const void *x, const void *y)
{
	const struct watched *a = x, *b = y;

	if (a->mm != b->mm)
		return a->mm < b->mm ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static int watch_all(struct match *m)
{
	m->watched = calloc(m->waits->count, sizeof(*m->watched));
	if (!m->watched)
		return nrp_fail_nomem(m->err);
	for (size_t i = 0; i < m->waits->count; i++)
		m->watched[i] = (struct watched){
			.mm = m->waits->at[i].mm,
			.number = nrp_page_of(m->waits->at[i].addr, m->page_size, 1),
		};
	qsort(m->watched, m->waits->count, sizeof(*m->watched), by_page);
	for (size_t i = 0; i < m->waits->count; i++)
		if (!i || by_page(&m->watched[i], &m->watched[m->nr_watched - 1]))
			m->watched[m->nr_watched++] = m->watched[i];
	return 0;
}

/* The first watched page of @mm that is not below @number. */
static struct watched *watched_from(const struct match *m, uint64_t mm, uint64_t number)
{
	const struct watched key = { .mm = mm, .number = number };
	size_t low = 0, high = m->nr_watched;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_page(&m->watched[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return m->watched + low;
}

static void note_page(struct match *m, const struct nrp_hint_fault *f)
{
	uint32_t pages = nrp_fault_pages(f);
	uint64_t first = nrp_page_of(f->addr, m->page_size, pages);

	if (NRP_NULL(f, hint_fault, mm))
		return;
	for (struct watched *w = watched_from(m, f->mm, first);
	     w < m->watched + m->nr_watched && w->mm == f->mm && w->number - first < pages; w++) {
		w->page = f->page;
		w->known = !NRP_NULL(f, hint_fault, page) && !nrp_fault_moved(f);
	}
}

/* ---- migrations in flight ----------------------------------------------------------- */

static int add_flight(struct match *m, const struct flight *f)
{
	if (m->nr_flights == m->room) {
		size_t room = m->room ? 2 * m->room : 64;
		struct flight *grown = reallocarray(m->flight, room, sizeof(*grown));

		if (!grown)
			return nrp_fail_nomem(m->err);
		m->flight = grown;
		m->room = room;
	}
	m->flight[m->nr_flights++] = *f;
	m->nr_open += f->end == UINT64_MAX;
	return 0;
}

/* Drops what ended too long before @now to matter, once enough has come together. */
static void drop_old(struct match *m, uint64_t now)
{
	size_t kept = 0;

	if (m->nr_flights < m->compact_at)
		return;
	for (size_t i = 0; i < m->nr_flights; i++)
		if (m->flight[i].end >= now || now - m->flight[i].end <= NRP_WAIT_LATE_NS)
			m->flight[kept++] = m->flight[i];
	m->nr_flights = kept;
	m->compact_at = 2 * kept + 64;
}

/* A thread has one fault at a time: a new one ends an attempt whose end was lost. */
static void end_open(struct match *m, int32_t tid, uint64_t now)
{
	for (size_t i = 0; m->nr_open && i < m->nr_flights; i++) {
		struct flight *f = &m->flight[i];

		if (f->tid == tid && f->end == UINT64_MAX) {
			f->end = now;
			m->nr_open--;
		}
	}
}

static uint64_t attempt_end(const struct nrp_hint_fault *f)
{
	if (!NRP_NULL(f, hint_fault, attempt_ns))
		return f->time + f->attempt_delay + f->attempt_ns;
	return NRP_NULL(f, hint_fault, end_delay) ? UINT64_MAX : f->time + f->end_delay;
}

/* Can this fault have replaced a PTE by a migration entry? */
static bool sets_entries(const struct nrp_hint_fault *f)
{
	return f->attempt == NRP_ATTEMPT_FOLIO &&
	       (NRP_NULL(f, hint_fault, ratelimited) || !f->ratelimited) &&
	       (NRP_NULL(f, hint_fault, prepare_result) || !f->prepare_result);
}

static int add_fault(struct match *m, const struct nrp_hint_fault *f)
{
	uint32_t pages = nrp_fault_pages(f);
	struct flight flight = {
		.start = f->time + f->attempt_delay,
		.end = attempt_end(f),
		.time = f->time,
		.mm = f->mm,
		.first_page = nrp_page_of(f->addr, m->page_size, pages),
		.pages = pages,
		.page = f->page,
		.tid = f->tid,
		.mm_known = !NRP_NULL(f, hint_fault, mm),
		.page_known = !NRP_NULL(f, hint_fault, page),
		.reached = nrp_fault_moved(f) || !NRP_NULL(f, hint_fault, migrated_pages),
		.reason = NRP_REASON_NUMA_MISPLACED,
	};

	end_open(m, f->tid, f->time);
	note_page(m, f);
	if (!sets_entries(f))
		return 0;
	drop_old(m, f->time);
	return add_flight(m, &flight);
}

static int by_start(const void *x, const void *y)
{
	const struct flight *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

/*
 * Migrations for other reasons name no address. Without a start on record (before 6.1) a call is
 * taken to have lasted no longer than a wait may be late.
 */
static int load_others(struct match *m, struct nrp_store *store, const struct nrp_capture *capture)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	size_t room = 0;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_MIGRATION, ~UINT64_C(0), m->err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, m->err)) > 0) {
		const struct nrp_migration *g = row;
		uint64_t least = g->time > NRP_WAIT_LATE_NS ? g->time - NRP_WAIT_LATE_NS : 0;

		r = 0;
		if (g->reason == NRP_REASON_NUMA_MISPLACED)
			continue;
		if (m->nr_others == room) {
			struct flight *grown;

			room = room ? 2 * room : 64;
			grown = reallocarray(m->other, room, sizeof(*grown));
			if (!grown) {
				r = nrp_fail_nomem(m->err);
				break;
			}
			m->other = grown;
		}
		m->other[m->nr_others++] = (struct flight){
			.start = NRP_NULL(g, migration, start_time) ? least : g->start_time,
			.end = g->time,
			.time = g->time,
			.tid = g->tid,
			.reached = true,
			.reason = g->reason,
		};
	}
	nrp_cursor_close(cursor);
	if (r == 0 && m->nr_others)
		qsort(m->other, m->nr_others, sizeof(*m->other), by_start);
	return r;
}

static int add_entry(struct match *m, const struct nrp_migration_entry *e)
{
	struct entry *entry;

	if (e->op != 0 || e->pmd)
		return 0; /* a restored PTE; a huge page, for which migration_entry_wait is not
			     called */
	entry = nrp_pages_get(m->entries, 0, nrp_page_of(e->addr, m->page_size, 1));
	if (!entry)
		return nrp_fail_nomem(m->err);
	*entry = (struct entry){ .set_time = e->time, .tid = e->tid };
	return 0;
}

/* ---- one wait ----------------------------------------------------------------------- */

/* What a wait is compared with. */
struct subject {
	const struct nrp_wait *wait;
	uint64_t number; /* of its virtual page */
	const struct watched *watched;
	const struct entry *entry;
};

/* Is the virtual page one of those that the fault asked to move? */
static bool holds(const struct flight *f, uint64_t number)
{
	return number - f->first_page < f->pages;
}

static enum nrp_wait_evidence evidence(struct match *m, const struct subject *s,
				       const struct flight *f)
{
	enum nrp_wait_evidence by_address = NRP_WAIT_NO_EVIDENCE;
	bool inside = holds(f, s->number);

	if (f->tid == s->wait->tid || !s->wait->addr)
		return NRP_WAIT_NO_EVIDENCE;
	if (inside && f->mm_known && f->mm == s->wait->mm)
		by_address = NRP_WAIT_SAME_MM;
	else if (s->watched->known && f->page_known && f->page == s->watched->page)
		by_address = NRP_WAIT_SHARED_PAGE;
	else if (inside && f->mm_known && nrp_mm_kin_related(m->kin, f->mm, s->wait->mm))
		by_address = NRP_WAIT_RELATED_MM;
	/*
	 * An entry does not say whose it is: at the fault's own address it may be the fault's own,
	 * and proves nothing about an address space that is not kin.
	 */
	if ((by_address || !inside) && s->entry->set_time && s->entry->tid == f->tid &&
	    s->entry->set_time >= f->start && s->entry->set_time <= f->end)
		return NRP_WAIT_ENTRY;
	return by_address;
}

/* Candidates of the highest rank count; 0: none. */
static unsigned int rank(const struct flight *f, enum nrp_wait_evidence e, const struct subject *s)
{
	uint64_t time = s->wait->time;
	bool under_way = f->start <= time && time <= f->end;

	/* The clock may stand still while a thread ends one attempt and begins the next. */
	if (under_way && e == NRP_WAIT_ENTRY)
		return holds(f, s->number) ? 6 : 5;
	if (under_way && e)
		return f->reached ? 4 : 3;
	if (f->end < time && time - f->end <= NRP_WAIT_LATE_NS && e && f->reached)
		return 2;
	if (under_way && f->reason != NRP_REASON_NUMA_MISPLACED)
		return 1;
	return 0;
}
/* Of one wait: so many CPUs never migrate at its moment. More say that the record is damaged. */
#define MAX_CANDIDATES 1024

#define RANK_LATE 2
#define RANK_UNDER_WAY 1

static int add_link(struct match *m, size_t wait, const struct flight *f)
{
	struct nrp_waits *s = m->waits;

	if (s->nr_links == m->link_room) {
		size_t room = m->link_room ? 2 * m->link_room : 256;
		struct nrp_wait_link *grown = reallocarray(s->link, room, sizeof(*grown));

		if (!grown)
			return nrp_fail_nomem(m->err);
		s->link = grown;
		m->link_room = room;
	}
	s->link[s->nr_links++] =
		(struct nrp_wait_link){ .time = f->time, .wait = wait, .tid = f->tid };
	return 0;
}

static void name_cause(struct nrp_wait *w, const struct flight *f, enum nrp_wait_evidence e)
{
	bool fault = f->reason == NRP_REASON_NUMA_MISPLACED;

	w->cause = fault ? NRP_WAIT_HINT_FAULT : NRP_WAIT_OTHER_MIGRATION;
	w->evidence = (uint8_t)(e ? e : NRP_WAIT_IN_FLIGHT);
	w->reason = f->reason;
	w->cause_time = f->time;
	w->cause_tid = f->tid;
	w->cause_mm = f->mm;
}

/* Is @a, a candidate of the same rank, the better one to name? */
static bool is_better(const struct flight *a, const struct flight *b, unsigned int best)
{
	if (best == RANK_LATE && a->end != b->end)
		return a->end > b->end;
	return by_start(a, b) > 0;
}

static int attribute(struct match *m, size_t index)
{
	struct nrp_wait *w = &m->waits->at[index];
	const uint64_t number = nrp_page_of(w->addr, m->page_size, 1);
	const struct entry *entry = nrp_pages_get(m->entries, 0, number);
	const struct subject s = { w, number, watched_from(m, w->mm, number), entry };
	const struct flight *named = NULL;
	unsigned int best = 0;
	size_t first_link = m->waits->nr_links;
	int r = entry ? 0 : nrp_fail_nomem(m->err);

	for (size_t i = 0; r == 0 && i < m->nr_flights; i++) {
		const struct flight *f = &m->flight[i];
		enum nrp_wait_evidence e = evidence(m, &s, f);
		unsigned int of = rank(f, e, &s);

		if (!of || of < best)
			continue;
		if (of > best) {
			best = of;
			named = NULL;
			w->candidates = 0;
			m->waits->nr_links = first_link;
		}
		/* The last one that ended is the only one that can be late. */
		if (named && best == RANK_LATE) {
			if (!is_better(f, named, best))
				continue;
			m->waits->nr_links = first_link;
			w->candidates = 0;
		}
		w->candidates++;
		if (!named || is_better(f, named, best)) {
			named = f;
			name_cause(w, f, e);
		}
		if (f->reason == NRP_REASON_NUMA_MISPLACED && w->candidates <= MAX_CANDIDATES)
			r = add_link(m, index, f);
	}
	if (named && w->candidates > MAX_CANDIDATES) {
		m->waits->nr_links = first_link;
		w->cause = NRP_WAIT_UNATTRIBUTED;
		w->evidence = NRP_WAIT_NO_EVIDENCE;
		w->cause_time = w->cause_mm = 0;
		w->cause_tid = 0;
		w->reason = 0;
		named = NULL;
	}
	if (!named)
		w->certainty = NRP_WAIT_UNKNOWN;
	else if (best == RANK_LATE)
		w->certainty = NRP_WAIT_LATE;
	else
		w->certainty = w->candidates == 1 && best != RANK_UNDER_WAY ? NRP_WAIT_EXACT
									    : NRP_WAIT_AMBIGUOUS;
	return r;
}

/* ---- all of them -------------------------------------------------------------------- */

static int next_fault(struct match *m)
{
	const void *row = NULL;
	int r = nrp_cursor_next(m->faults, &row, m->err);

	m->fault = r > 0 ? row : NULL;
	return r < 0 ? r : 0;
}

static int next_set(struct match *m)
{
	const void *row = NULL;
	int r = nrp_cursor_next(m->sets, &row, m->err);

	m->set = r > 0 ? row : NULL;
	return r < 0 ? r : 0;
}

/* Takes in everything that began up to @time. */
static int advance(struct match *m, uint64_t time)
{
	int r = 0;

	while (r == 0 && m->fault && m->fault->time <= time) {
		r = add_fault(m, m->fault);
		if (r == 0)
			r = next_fault(m);
	}
	while (r == 0 && m->set && m->set->time <= time) {
		r = add_entry(m, m->set);
		if (r == 0)
			r = next_set(m);
	}
	while (r == 0 && m->next_other < m->nr_others && m->other[m->next_other].start <= time) {
		drop_old(m, m->other[m->next_other].start);
		r = add_flight(m, &m->other[m->next_other++]);
	}
	return r;
}

static uint64_t fault_columns(void)
{
	return NRP_BIT(hint_fault, tid) | NRP_BIT(hint_fault, mm) | NRP_BIT(hint_fault, addr) |
	       NRP_BIT(hint_fault, page) | NRP_BIT(hint_fault, pages) |
	       NRP_BIT(hint_fault, attempt) | NRP_BIT(hint_fault, attempt_delay) |
	       NRP_BIT(hint_fault, attempt_ns) | NRP_BIT(hint_fault, end_delay) |
	       NRP_BIT(hint_fault, ratelimited) | NRP_BIT(hint_fault, prepare_result) |
	       NRP_BIT(hint_fault, moved) | NRP_BIT(hint_fault, migrated_pages);
}

static int open_cursors(struct match *m, struct nrp_store *store, const struct nrp_capture *capture)
{
	int r = nrp_cursor_open(&m->faults, store, capture->id, NRP_HINT_FAULT, fault_columns(),
				m->err);

	if (r == 0)
		r = nrp_cursor_open(&m->sets, store, capture->id, NRP_MIGRATION_ENTRY, ~UINT64_C(0),
				    m->err);
	if (r == 0)
		r = next_fault(m);
	return r < 0 ? r : next_set(m);
}

int nrp_waits_match(struct nrp_waits *waits, struct nrp_mm_kin *kin, struct nrp_store *store,
		    const struct nrp_capture *capture, struct nrp_error *err)
{
	struct match m = { .waits = waits,
			   .kin = kin,
			   .page_size = nrp_host_page_size(&capture->facts),
			   .entries = nrp_pages_new(sizeof(struct entry)),
			   .err = err };
	int r = m.entries ? watch_all(&m) : nrp_fail_nomem(err);

	if (r == 0)
		r = load_others(&m, store, capture);
	if (r == 0)
		r = open_cursors(&m, store, capture);
	for (size_t i = 0; r == 0 && i < waits->count; i++) {
		r = advance(&m, waits->at[i].time);
		if (r == 0)
			r = attribute(&m, i);
	}
	nrp_cursor_close(m.faults);
	nrp_cursor_close(m.sets);
	nrp_pages_free(m.entries);
	free(m.flight);
	free(m.watched);
	free(m.other);
	return r;
}
