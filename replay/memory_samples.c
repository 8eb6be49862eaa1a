/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/memory_samples.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* From @time on the thread runs on @mm. */
struct sighting {
	uint64_t time, mm;
	int32_t tid;
};

struct summary {
	struct nrp_samples_summary sum;
	struct sighting *seen; /* by tid and time */
	size_t nr_seen, seen_room;
	struct nrp_pages *last_mm; /* (tid, 0) -> struct last */
	struct nrp_pages *vma;     /* (mm, start) -> uint64_t: end */
	uint64_t memory, interval; /* counted: loads of any node; time of the last interval */
	bool memory_known;
	struct nrp_error *err;
};

struct last {
	uint64_t mm;
	bool known;
};

/* ---- where threads and mappings are -------------------------------------------------- */

static int see_thread(struct summary *s, int32_t tid, uint64_t time, uint64_t mm)
{
	struct last *last = nrp_pages_get(s->last_mm, (uint32_t)tid, 0);

	if (!last)
		return nrp_fail_nomem(s->err);
	if (last->known && last->mm == mm)
		return 0;
	*last = (struct last){ mm, true };
	if (s->nr_seen == s->seen_room) {
		size_t room = s->seen_room ? 2 * s->seen_room : 64;
		struct sighting *grown = reallocarray(s->seen, room, sizeof(*grown));

		if (!grown)
			return nrp_fail_nomem(s->err);
		s->seen = grown;
		s->seen_room = room;
	}
	s->seen[s->nr_seen++] = (struct sighting){ time, mm, tid };
	return 0;
}

static int see_vma(struct summary *s, uint64_t mm, uint64_t start, uint64_t end)
{
	uint64_t *to = start < end ? nrp_pages_get(s->vma, mm, start) : NULL;

	if (start >= end)
		return 0;
	if (!to)
		return nrp_fail_nomem(s->err);
	if (*to < end)
		*to = end;
	return 0;
}

static int see_fault(struct summary *s, const void *row)
{
	const struct nrp_hint_fault *f = row;
	int r;

	if (NRP_NULL(f, hint_fault, mm))
		return 0;
	r = see_thread(s, f->tid, f->time, f->mm);
	if (r < 0 || NRP_NULL(f, hint_fault, vm_start) || NRP_NULL(f, hint_fault, vm_end))
		return r;
	return see_vma(s, f->mm, f->vm_start, f->vm_end);
}

static int see_range(struct summary *s, const void *row)
{
	const struct nrp_scan_range *g = row;
	int r;

	if (NRP_NULL(g, scan_range, mm))
		return 0;
	r = see_thread(s, g->tid, g->time, g->mm);
	if (r < 0 || NRP_NULL(g, scan_range, vm_start) || NRP_NULL(g, scan_range, vm_end))
		return r;
	return see_vma(s, g->mm, g->vm_start, g->vm_end);
}

/* Reads one kind, row by row. */
static int each(struct summary *s, struct nrp_store *store, const struct nrp_capture *capture,
		enum nrp_record_kind kind, uint64_t columns,
		int (*take)(struct summary *s, const void *row))
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, kind, columns, s->err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, s->err)) > 0)
		r = take(s, row);
	nrp_cursor_close(cursor);
	return r;
}

static int by_thread(const void *x, const void *y)
{
	const struct sighting *a = x, *b = y;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->time > b->time) - (a->time < b->time);
}

static int by_start(const void *x, const void *y)
{
	const struct nrp_samples_area *a = x, *b = y;

	if (a->mm != b->mm)
		return a->mm < b->mm ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* Makes the list of mappings: disjoint, and one of 0 0 for each address space. */
static int list_areas(struct summary *s)
{
	struct nrp_samples_area *area = NULL;
	size_t position = 0, room = 0, n = 0, last = 0;
	uint64_t mm, start;
	const uint64_t *end;

	while ((end = nrp_pages_next(s->vma, &position, &mm, &start))) {
		if (n + 2 > room) {
			struct nrp_samples_area *grown;

			room = room ? 2 * room : 64;
			grown = reallocarray(area, room, sizeof(*grown));
			if (!grown) {
				free(area);
				return nrp_fail_nomem(s->err);
			}
			area = grown;
		}
		area[n++] = (struct nrp_samples_area){ .mm = mm, .start = start, .end = *end };
		area[n++] = (struct nrp_samples_area){ .mm = mm };
	}
	if (n)
		qsort(area, n, sizeof(*area), by_start);
	for (size_t i = 1; i < n; i++) {
		struct nrp_samples_area *a = &area[last];

		if (area[i].mm != a->mm || (area[i].start && area[i].start >= a->end))
			area[++last] = area[i];
		else if (area[i].end > a->end)
			a->end = area[i].end;
	}
	s->sum.area = area;
	s->sum.nr_areas = n ? last + 1 : 0;
	return 0;
}

static int look_round(struct summary *s, struct nrp_store *store, const struct nrp_capture *capture)
{
	int r = each(s, store, capture, NRP_HINT_FAULT,
		     NRP_BIT(hint_fault, tid) | NRP_BIT(hint_fault, mm) |
			     NRP_BIT(hint_fault, vm_start) | NRP_BIT(hint_fault, vm_end),
		     see_fault);

	if (r == 0)
		r = each(s, store, capture, NRP_SCAN_RANGE,
			 NRP_BIT(scan_range, tid) | NRP_BIT(scan_range, mm) |
				 NRP_BIT(scan_range, vm_start) | NRP_BIT(scan_range, vm_end),
			 see_range);
	if (r == 0 && s->nr_seen)
		qsort(s->seen, s->nr_seen, sizeof(*s->seen), by_thread);
	return r < 0 ? r : list_areas(s);
}

/* The address space of a thread at a time, NULL: not on record. */
static const struct sighting *sighting_at(const struct summary *s, int32_t tid, uint64_t time)
{
	const struct sighting key = { .time = time, .tid = tid };
	size_t low = 0, high = s->nr_seen;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_thread(&s->seen[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && s->seen[low - 1].tid == tid)
		return &s->seen[low - 1];
	return low < s->nr_seen && s->seen[low].tid == tid ? &s->seen[low] : NULL;
}

/* The mapping of an address, or the one of 0 0; NULL: the address space has no mapping at all. */
static struct nrp_samples_area *area_of(const struct summary *s, uint64_t mm, uint64_t addr)
{
	const struct nrp_samples_area key = { .mm = mm, .start = addr };
	struct nrp_samples_area *area = s->sum.area, *found;
	size_t low = 0, high = s->sum.nr_areas;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_start(&area[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || area[low - 1].mm != mm)
		return NULL;
	found = &area[low - 1];
	return addr < found->end || !found->start ? found : area_of(s, mm, 0);
}

/* ---- adding up ----------------------------------------------------------------------- */

static void place(struct summary *s, const struct nrp_memory_sample *m)
{
	const struct sighting *seen =
		NRP_NULL(m, memory_sample, tid) ? NULL : sighting_at(s, m->tid, m->time);
	struct nrp_samples_area *area =
		seen && !NRP_NULL(m, memory_sample, addr) ? area_of(s, seen->mm, m->addr) : NULL;

	if (!area)
		s->sum.unplaced++;
	else if (m->level == NRP_LEVEL_LOCAL)
		area->local_loads++;
	else
		area->remote_loads++;
}

static void add_sample(struct summary *s, const struct nrp_memory_sample *m)
{
	struct nrp_samples_summary *sum = &s->sum;

	sum->local_known = sum->remote_known = true;
	if (m->op == NRP_OP_STORE || m->op == NRP_OP_OTHER) {
		sum->other_accesses++;
		return;
	}
	switch (m->level) {
	case NRP_LEVEL_LOCAL:
		sum->local_loads++;
		sum->local_period += m->period;
		place(s, m);
		break;
	case NRP_LEVEL_REMOTE:
		sum->remote_loads++;
		sum->remote_period += m->period;
		sum->remote_with_period += !NRP_NULL(m, memory_sample, period);
		place(s, m);
		break;
	case NRP_LEVEL_CACHE:
	case NRP_LEVEL_REMOTE_CACHE:
		sum->cache_loads++;
		break;
	default:
		sum->unknown_loads++;
	}
}

static void add_count(struct summary *s, const struct nrp_memory_sample *m)
{
	struct nrp_samples_summary *sum = &s->sum;

	sum->counted = true;
	if (!NRP_NULL(m, memory_sample, running) && m->running < 10000)
		sum->scaled = true;
	/* Several CPUs and events share an interval. */
	if (sum->records == 1 || m->time != s->interval)
		sum->span += m->span;
	s->interval = m->time;
	if (m->level == NRP_LEVEL_LOCAL) {
		sum->local_loads += m->count;
		sum->local_known = true;
	} else if (m->level == NRP_LEVEL_REMOTE) {
		sum->remote_loads += m->count;
		sum->remote_known = true;
	} else if (m->level == NRP_LEVEL_MEMORY) {
		s->memory += m->count;
		s->memory_known = true;
	}
}

static int add(struct summary *s, const void *row)
{
	const struct nrp_memory_sample *m = row;
	uint64_t end = m->time + m->span;

	if (!s->sum.records++)
		s->sum.first = m->time;
	if (end > s->sum.last)
		s->sum.last = end;
	if (NRP_NULL(m, memory_sample, count))
		add_sample(s, m);
	else
		add_count(s, m);
	return 0;
}

/* What one counter of all memory says together with one of one side. */
static void finish(struct summary *s)
{
	struct nrp_samples_summary *sum = &s->sum;
	size_t kept = 0;

	if (!sum->counted)
		sum->span = sum->last - sum->first;
	if (s->memory_known && sum->remote_known && !sum->local_known &&
	    s->memory >= sum->remote_loads) {
		sum->local_loads = s->memory - sum->remote_loads;
		sum->local_known = true;
	} else if (s->memory_known && sum->local_known && !sum->remote_known &&
		   s->memory >= sum->local_loads) {
		sum->remote_loads = s->memory - sum->local_loads;
		sum->remote_known = true;
	}
	for (size_t i = 0; i < sum->nr_areas; i++)
		if (sum->area[i].local_loads || sum->area[i].remote_loads)
			sum->area[kept++] = sum->area[i];
	sum->nr_areas = kept;
}

/* What the import left out, it kept count of. */
static int see_left_out(struct summary *s, struct nrp_store *store,
			const struct nrp_capture *capture)
{
	static const char *const settings[] = { "samples.outside", "samples.not_counted",
						"samples.not_understood" };

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		char *text = NULL;
		int r = nrp_store_get_setting(store, capture->id, settings[i], &text, s->err);

		if (r < 0 && r != -ENOENT)
			return r;
		s->sum.incomplete |= r == 0 && strcmp(text, "0") != 0;
		free(text);
	}
	s->sum.incomplete |= s->sum.first < capture->first_time || s->sum.last > capture->last_time;
	return 0;
}

int nrp_samples_summary(struct nrp_samples_summary *ret, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err)
{
	struct summary s = { .last_mm = nrp_pages_new(sizeof(struct last)),
			     .vma = nrp_pages_new(sizeof(uint64_t)),
			     .err = err };
	uint64_t rows = 0;
	int r = s.last_mm && s.vma ? 0 : nrp_fail_nomem(err);

	if (r == 0)
		r = nrp_store_count(store, capture->id, NRP_MEMORY_SAMPLE, &rows, err);
	if (r == 0 && rows)
		r = look_round(&s, store, capture);
	if (r == 0 && rows)
		r = each(&s, store, capture, NRP_MEMORY_SAMPLE, ~UINT64_C(0), add);
	if (r == 0 && rows)
		r = see_left_out(&s, store, capture);
	nrp_pages_free(s.last_mm);
	nrp_pages_free(s.vma);
	free(s.seen);
	if (r < 0) {
		nrp_samples_summary_clear(&s.sum);
		return r;
	}
	finish(&s);
	*ret = s.sum;
	return 0;
}

void nrp_samples_summary_clear(struct nrp_samples_summary *summary)
{
	free(summary->area);
	memset(summary, 0, sizeof(*summary));
}
