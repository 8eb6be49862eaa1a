/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/waits.h"
#include "replay/waits_match.h"

#include <stdlib.h>
#include <string.h>

static int load_waits(struct nrp_waits *s, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	size_t room = 0;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_MIGRATION_WAIT, ~UINT64_C(0), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_migration_wait *w = row;
		/* An end before the beginning is none. */
		bool open = NRP_NULL(w, migration_wait, end_time) || w->end_time < w->time;

		if (s->count == room) {
			struct nrp_wait *grown;

			room = room ? 2 * room : 256;
			grown = reallocarray(s->at, room, sizeof(*grown));
			if (!grown) {
				r = nrp_fail_nomem(err);
				break;
			}
			s->at = grown;
		}
		s->at[s->count++] = (struct nrp_wait){
			.time = w->time,
			.end_time = open ? 0 : w->end_time,
			.mm = w->mm,
			.addr = w->addr,
			.tid = w->tid,
			.open = open,
		};
		r = 0;
	}
	nrp_cursor_close(cursor);
	return r;
}

static int by_fault(const void *x, const void *y)
{
	const struct nrp_wait_link *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->wait > b->wait) - (a->wait < b->wait);
}

static int by_mm(const void *x, const void *y)
{
	const struct nrp_wait_process *a = x, *b = y;

	return (a->mm > b->mm) - (a->mm < b->mm);
}

static int by_value(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* One entry per wait and role, sorted and added up per address space. */
static int collect_processes(struct nrp_waits *s, struct nrp_mm_kin *kin, struct nrp_error *err)
{
	struct nrp_wait_process *p = calloc(2 * s->count, sizeof(*p));
	size_t n = 0, last = 0;

	if (!p)
		return nrp_fail_nomem(err);
	s->process = p;
	for (size_t i = 0; i < s->count; i++) {
		const struct nrp_wait *w = &s->at[i];

		p[n++] = (struct nrp_wait_process){ .mm = w->mm,
						    .waited = 1,
						    .waited_ns = nrp_wait_ns(w) };
		if (w->cause == NRP_WAIT_HINT_FAULT)
			p[n++] = (struct nrp_wait_process){ .mm = w->cause_mm,
							    .caused = 1,
							    .caused_ns = nrp_wait_ns(w) };
	}
	qsort(p, n, sizeof(*p), by_mm);
	for (size_t i = 1; i < n; i++) {
		if (p[i].mm != p[last].mm) {
			p[++last] = p[i];
			continue;
		}
		p[last].waited += p[i].waited;
		p[last].waited_ns += p[i].waited_ns;
		p[last].caused += p[i].caused;
		p[last].caused_ns += p[i].caused_ns;
	}
	s->nr_processes = last + 1;
	for (size_t i = 0; i < s->nr_processes; i++)
		p[i].tgid = nrp_mm_kin_tgid(kin, p[i].mm);
	return 0;
}

static void count(struct nrp_wait_count *c, const struct nrp_wait *w)
{
	c->waits++;
	c->ns += nrp_wait_ns(w);
}

/* Nearest rank of @n sorted values. */
static uint64_t percentile(const uint64_t *ns, uint64_t n, unsigned int percent)
{
	return n ? ns[(n * percent + 99) / 100 - 1] : 0;
}

static int add_up(struct nrp_waits *s, struct nrp_error *err)
{
	struct nrp_wait_totals *t = &s->totals;
	uint64_t *ns = calloc(s->count, sizeof(*ns));
	size_t n = 0;

	if (!ns)
		return nrp_fail_nomem(err);
	for (size_t i = 0; i < s->count; i++) {
		const struct nrp_wait *w = &s->at[i];

		count(&t->all, w);
		count(&t->by_cause[w->cause], w);
		count(&t->by_certainty[w->certainty], w);
		if (w->open)
			t->open++;
		else
			ns[n++] = nrp_wait_ns(w);
	}
	qsort(ns, n, sizeof(*ns), by_value);
	t->p50_ns = percentile(ns, n, 50);
	t->p99_ns = percentile(ns, n, 99);
	t->max_ns = percentile(ns, n, 100);
	free(ns);
	return 0;
}

int nrp_waits_load(struct nrp_waits *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_waits s = { 0 };
	struct nrp_mm_kin *kin = NULL;
	int r = load_waits(&s, store, capture, err);

	if (r == 0 && s.count) {
		r = nrp_mm_kin_load(&kin, store, capture, err);
		if (r == 0)
			r = nrp_waits_match(&s, kin, store, capture, err);
		if (r == 0)
			r = collect_processes(&s, kin, err);
		if (r == 0)
			r = add_up(&s, err);
		nrp_mm_kin_free(kin);
	}
	if (r < 0) {
		nrp_waits_clear(&s);
		return r;
	}
	if (s.nr_links)
		qsort(s.link, s.nr_links, sizeof(*s.link), by_fault);
	*ret = s;
	return 0;
}

void nrp_waits_clear(struct nrp_waits *waits)
{
	free(waits->at);
	free(waits->link);
	free(waits->process);
	memset(waits, 0, sizeof(*waits));
}

size_t nrp_waits_first_of_fault(const struct nrp_waits *waits, uint64_t time, int32_t tid)
{
	const struct nrp_wait_link key = { .time = time, .tid = tid };
	size_t low = 0, high = waits->nr_links;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_fault(&waits->link[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct nrp_fault_waits nrp_waits_of_fault(const struct nrp_waits *waits, uint64_t time, int32_t tid)
{
	struct nrp_fault_waits sum = { 0 };

	for (size_t i = nrp_waits_first_of_fault(waits, time, tid);
	     i < waits->nr_links && waits->link[i].time == time && waits->link[i].tid == tid; i++) {
		const struct nrp_wait *w = &waits->at[waits->link[i].wait];

		count(w->certainty == NRP_WAIT_AMBIGUOUS ? &sum.possible : &sum.certain, w);
	}
	return sum;
}
