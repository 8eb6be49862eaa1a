/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_bounds.h"
#include "replay/host.h"
#include "replay/pages.h"
#include "replay/scan_trace.h"

#include <errno.h>
#include <string.h>

/*
 * No task scans more often than this: the kernel divides the configured minimum by the size of the
 * address space, but bounds what it scans to 2560 MB a second.
 */
static uint64_t shortest_period_ms(const struct nrp_host_facts *facts)
{
	uint64_t size = nrp_host_tunables(facts).size_mb;
	uint64_t floor_ms = 1000 / (size < 2560 ? 2560 / size : 1);

	return floor_ms ? floor_ms : 1;
}

/* Passes of one address space. */
struct mm_passes {
	uint64_t recorded;
	uint64_t last_kept; /* ns, 0: none yet */
};

static void add(struct nrp_scan_count *c, const struct nrp_scan_pass *p)
{
	c->passes++;
	c->ranges += p->ranges;
	c->armed_pages += p->armed_pages;
}

static void add_time(struct nrp_scan_bounds *b, const struct nrp_scan_pass *p, uint64_t last_time)
{
	if (NRP_NULL(p, scan_pass, end_time)) {
		b->open_ns += last_time > p->time ? last_time - p->time : 0;
		return;
	}
	b->timed_passes++;
	b->pass_ns += p->end_time > p->time ? p->end_time - p->time : 0;
}

static int each_pass(struct nrp_scan_bounds *b, struct nrp_pages *mms, struct nrp_store *store,
		     const struct nrp_capture *capture, bool thin, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_SCAN_PASS, ~UINT64_C(0), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_scan_pass *p = row;
		struct mm_passes *mm = nrp_pages_get(mms, p->mm, 0);

		r = 0;
		if (!mm) {
			r = nrp_fail_nomem(err);
		} else if (!thin) {
			mm->recorded++;
			add(&b->recorded, p);
			add_time(b, p, capture->last_time);
			if (!NRP_NULL(p, scan_pass, scan_period_max) &&
			    p->scan_period_max > b->period_max_ms)
				b->period_max_ms = p->scan_period_max;
		} else if (!mm->last_kept ||
			   p->time >= mm->last_kept + b->period_max_ms * 1000000) {
			mm->last_kept = p->time;
			add(&b->least, p);
		}
	}
	nrp_cursor_close(cursor);
	return r;
}

/* Entries of the range that it did not arm; false: not known. */
static bool add_unarmed(struct nrp_scan_bounds *b, const struct nrp_scan_range *g,
			uint64_t page_size)
{
	const uint64_t needed =
		NRP_BIT(scan_range, start) | NRP_BIT(scan_range, end) | NRP_BIT(scan_range, pages);
	uint64_t pages;

	if (g->null & needed || g->start > g->end || g->end - g->start > NRP_MAX_SCAN_RANGE)
		return false;
	pages = (g->end - g->start) / page_size;
	b->unarmed += pages > g->pages ? pages - g->pages : 0;
	return true;
}

static int each_range(struct nrp_scan_bounds *b, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err)
{
	uint64_t page_size = nrp_host_page_size(&capture->facts), known = 0;
	struct nrp_scan_cost cost = { 0 };
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_SCAN_RANGE,
				NRP_BIT(scan_range, time) | NRP_BIT(scan_range, end_time) |
					NRP_BIT(scan_range, pass_time) |
					NRP_BIT(scan_range, start) | NRP_BIT(scan_range, end) |
					NRP_BIT(scan_range, pages),
				err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_scan_range *g = row;

		r = 0;
		known += add_unarmed(b, g, page_size);
		if (!NRP_NULL(g, scan_range, pass_time) && !NRP_NULL(g, scan_range, pages) &&
		    !NRP_NULL(g, scan_range, end_time) && g->end_time >= g->time)
			nrp_scan_cost_add(&cost, g->pages, g->end_time - g->time);
	}
	nrp_cursor_close(cursor);
	b->has_cost = nrp_scan_cost_fit(&cost, &b->cost);
	b->unarmed_known = known > 0 && known == b->recorded.ranges;
	return r;
}

int nrp_scan_bounds_load(struct nrp_scan_bounds *ret, struct nrp_store *store,
			 const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_scan_bounds b = { .period_min_ms = shortest_period_ms(&capture->facts) };
	struct nrp_pages *mms = nrp_pages_new(sizeof(struct mm_passes));
	uint64_t ms = (capture->last_time - capture->first_time) / 1000000, mm, page, most;
	const struct mm_passes *passes;
	size_t position = 0;
	int r = mms ? each_pass(&b, mms, store, capture, false, err) : nrp_fail_nomem(err);

	if (!b.period_max_ms)
		b.period_max_ms = nrp_host_tunables(&capture->facts).period_max_ms;
	if (r == 0)
		r = each_pass(&b, mms, store, capture, true, err);
	if (r == 0)
		r = each_range(&b, store, capture, err);
	most = ms / b.period_min_ms + 1;
	while (r == 0 && (passes = nrp_pages_next(mms, &position, &mm, &page)))
		b.passes_most += passes->recorded > most ? passes->recorded : most;
	nrp_pages_free(mms);
	if (r == 0)
		*ret = b;
	return r;
}
