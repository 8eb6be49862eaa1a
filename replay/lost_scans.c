/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/lost_scans.h"

#include "replay/address_space.h"
#include "replay/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- attempts ------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct nrp_scan_attempt *x = a, *y = b;

	if (x->mm != y->mm)
		return x->mm < y->mm ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

int nrp_scan_attempts_collect(struct nrp_scan_attempts *ret, const struct nrp_lock_lanes *lanes)
{
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	for (size_t m = 0; m < lanes->jobs.nr_mms; m++)
		for (uint32_t i = 0; i < lanes->jobs.mm[m].nr_jobs; i++)
			n += lanes->jobs.mm[m].job[i].kind == NRP_LOCK_SCAN;
	if (!n)
		return 0;
	ret->at = calloc(n, sizeof(*ret->at));
	if (!ret->at)
		return -ENOMEM;
	for (size_t m = 0; m < lanes->jobs.nr_mms; m++) {
		const struct nrp_lock_mm *mm = &lanes->jobs.mm[m];

		for (uint32_t i = 0; i < mm->nr_jobs; i++)
			if (mm->job[i].kind == NRP_LOCK_SCAN)
				ret->at[ret->count++] = (struct nrp_scan_attempt){
					.mm = mm->mm,
					.time = mm->seen[i].requested,
					.tid = mm->seen[i].tid,
					.lost = (uint8_t)((mm->seen[i].granted == UINT64_MAX)
							  << NRP_LOST_ON_RECORD),
				};
	}
	qsort(ret->at, n, sizeof(*ret->at), by_place);
	return 0;
}

static struct nrp_scan_attempt *find(const struct nrp_scan_attempts *a,
				     const struct nrp_scan_attempt *key)
{
	return a->count ? bsearch(key, a->at, a->count, sizeof(*a->at), by_place) : NULL;
}

void nrp_scan_attempts_lane(struct nrp_scan_attempts *a, enum nrp_lost_in who,
			    const struct nrp_lock_lanes *lanes)
{
	for (size_t i = 0; i < a->count; i++) {
		unsigned int host = a->at[i].lost >> NRP_LOST_ON_RECORD & 1;

		a->at[i].lost = (uint8_t)((a->at[i].lost & ~(1u << who)) | host << who);
	}
	for (size_t m = 0; lanes && m < lanes->jobs.nr_mms; m++) {
		const struct nrp_lock_mm *mm = &lanes->jobs.mm[m];

		for (uint32_t i = 0; i < mm->nr_jobs; i++) {
			struct nrp_scan_attempt key = { .mm = mm->mm,
							.time = mm->seen[i].requested,
							.tid = mm->seen[i].tid };
			struct nrp_scan_attempt *at;

			if (mm->job[i].kind != NRP_LOCK_SCAN || !(at = find(a, &key)))
				continue;
			at->lost = (uint8_t)((at->lost & ~(1u << who)) |
					     (unsigned int)mm->seen[i].lane_skipped << who);
		}
	}
}

void nrp_scan_attempts_clear(struct nrp_scan_attempts *a)
{
	free(a->at);
	memset(a, 0, sizeof(*a));
}

/* ---- windows -------------------------------------------------------------------------- */

/* The attempt of @mm that is the last one up to @time; NULL: none. */
static struct nrp_scan_attempt *last_until(const struct nrp_scan_attempts *a, uint64_t mm,
					   uint64_t time)
{
	size_t low = 0, high = a->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a->at[mid].mm < mm || (a->at[mid].mm == mm && a->at[mid].time <= time))
			low = mid + 1;
		else
			high = mid;
	}
	return low && a->at[low - 1].mm == mm ? &a->at[low - 1] : NULL;
}

#define NS_PER_MS UINT64_C(1000000)

static int see_pass(void *context, enum nrp_record_kind kind, const void *row)
{
	struct nrp_scan_attempts *a = context;
	const struct nrp_scan_pass *p = row;
	uint64_t end = NRP_NULL(p, scan_pass, end_time) ? UINT64_MAX : p->end_time;
	struct nrp_scan_attempt *at = last_until(a, p->mm, end);

	(void)kind;
	/* The task's own; passes of other threads of the address space may run meanwhile. */
	while (at && at >= a->at && at->mm == p->mm && at->time >= p->time && at->tid != p->tid)
		at--;
	if (!at || at < a->at || at->mm != p->mm || at->time < p->time || at->tid != p->tid)
		return 0;
	at->on_record = true;
	if (!NRP_NULL(p, scan_pass, scan_period))
		at->period = p->scan_period * NS_PER_MS;
	at->window = p->time;
	/* One that got the lock has seen its window, even if nothing was left to arm in it. */
	at->has_window = !(at->lost >> NRP_LOST_ON_RECORD & 1);
	at->pages = p->armed_pages;
	return 0;
}

int nrp_scan_attempts_windows(struct nrp_scan_attempts *a, struct nrp_store *store,
			      const struct nrp_capture *capture, struct nrp_error *err)
{
	static const struct nrp_merge_input passes = { NRP_SCAN_PASS, ~UINT64_C(0) };
	int r = a->count ? nrp_merge_each(store, capture->id, &passes, 1, see_pass, a, err) : 0;

	/* The scan offset stays where it is: the next window that is armed is the one that was
	 * lost. */
	for (size_t i = a->count; r == 0 && i--;) {
		struct nrp_scan_attempt *at = &a->at[i];
		const struct nrp_scan_attempt *next =
			i + 1 < a->count && a->at[i + 1].mm == at->mm ? &a->at[i + 1] : NULL;
		uint64_t until = next ? next->time : capture->last_time;

		at->followed = next;
		at->gap = until > at->time ? until - at->time : 0;
		if (!at->period && next)
			at->period = at->gap;
		if (at->has_window || !next || !next->has_window)
			continue;
		at->has_window = true;
		at->window = next->window;
		at->pages = next->pages;
	}
	return r;
}

/* ---- what is touched meanwhile -------------------------------------------------------- */

struct reader {
	struct nrp_address_spaces *spaces;
	const struct nrp_scan_attempts *attempts;
	struct nrp_touch_rate *rates; /* by address space and VMA */
	size_t nr_rates;
	struct {
		uint64_t mm;
		double touches, seconds;
	} pool; /* of all rates of the address space asked for last */
	struct window {
		uint64_t mm, time;
		struct nrp_scan_attempt sum; /* what its attempts get */
	} * windows;                         /* by address space and time */
	size_t nr_windows;
};

static int by_window(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	if (x->mm != y->mm)
		return x->mm < y->mm ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

static int make_windows(struct reader *d)
{
	const struct nrp_scan_attempts *a = d->attempts;
	size_t n = 0;

	d->windows = calloc(a->count, sizeof(*d->windows));
	if (!d->windows)
		return -ENOMEM;
	for (size_t i = 0; i < a->count; i++)
		if (a->at[i].lost && a->at[i].has_window)
			d->windows[n++] =
				(struct window){ .mm = a->at[i].mm, .time = a->at[i].window };
	qsort(d->windows, n, sizeof(*d->windows), by_window);
	for (size_t i = 0; i < n; i++)
		if (!d->nr_windows ||
		    by_window(&d->windows[i], &d->windows[d->nr_windows - 1]) != 0)
			d->windows[d->nr_windows++] = d->windows[i];
	return 0;
}

static struct window *window_of(const struct reader *d, uint64_t mm, uint64_t time)
{
	struct window key = { .mm = mm, .time = time };

	return d->nr_windows ? bsearch(&key, d->windows, d->nr_windows, sizeof(key), by_window)
			     : NULL;
}

static int by_vma(const void *a, const void *b)
{
	const struct nrp_touch_rate *x = a, *y = b;

	if (x->mm != y->mm)
		return x->mm < y->mm ? -1 : 1;
	return (x->vm_start > y->vm_start) - (x->vm_start < y->vm_start);
}

static int sort_rates(struct reader *d, const struct nrp_touch_rate *rates, size_t nr_rates)
{
	d->rates = calloc(nr_rates + 1, sizeof(*d->rates));
	if (!d->rates)
		return -ENOMEM;
	d->nr_rates = nr_rates;
	if (nr_rates)
		memcpy(d->rates, rates, nr_rates * sizeof(*rates));
	qsort(d->rates, nr_rates, sizeof(*d->rates), by_vma);
	return 0;
}

/* Number of rates up to (@mm, @addr). */
static size_t rates_until(const struct reader *d, uint64_t mm, uint64_t addr)
{
	struct nrp_touch_rate key = { .mm = mm, .vm_start = addr };
	size_t low = 0, high = d->nr_rates;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (by_vma(&d->rates[mid], &key) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static double pooled_rate(struct reader *d, uint64_t mm)
{
	if (d->pool.mm != mm) {
		d->pool.mm = mm;
		d->pool.touches = d->pool.seconds = 0;
		for (size_t i = rates_until(d, mm, UINT64_MAX); i-- && d->rates[i].mm == mm;) {
			d->pool.touches += (double)d->rates[i].touches;
			d->pool.seconds += d->rates[i].armed_page_seconds;
		}
	}
	return d->pool.seconds > 0 ? d->pool.touches / d->pool.seconds : 0;
}

/* Touches per s of one base page at @addr from @nid: of its VMA, else of its address space. */
static double rate_at(struct reader *d, uint64_t mm, uint64_t addr, int nid, double *ret_upper)
{
	size_t last = rates_until(d, mm, addr);
	uint64_t start = last ? d->rates[last - 1].vm_start : 0;

	for (size_t i = last; i-- && d->rates[i].mm == mm && d->rates[i].vm_start == start;) {
		if (d->rates[i].nid != nid || addr >= d->rates[i].vm_end)
			continue;
		*ret_upper = d->rates[i].upper;
		return d->rates[i].rate;
	}
	return *ret_upper = pooled_rate(d, mm);
}

static int see_range(struct reader *d, const struct nrp_scan_range *r)
{
	const struct window *w;
	int64_t number;

	if (NRP_NULL(r, scan_range, mm))
		return 0;
	number = nrp_address_space_of(d->spaces, r->mm);
	if (number < 0)
		return (int)number;
	w = NRP_NULL(r, scan_range, pass_time) ? NULL : window_of(d, r->mm, r->pass_time);
	/* Number of the window plus one in the place of the VMA's. */
	return nrp_mm_arm(nrp_address_space(d->spaces, (uint32_t)number), r->start, r->end, r->time,
			  w ? (uint32_t)(w - d->windows) + 1 : 0);
}

static int see_fault(struct reader *d, const struct nrp_hint_fault *f)
{
	const struct nrp_armed_range *range;
	struct nrp_scan_attempt *sum;
	double pages = NRP_NULL(f, hint_fault, pages) ? 1 : (double)f->pages, upper;
	int64_t number;

	if (NRP_NULL(f, hint_fault, mm) || NRP_NULL(f, hint_fault, src_nid) ||
	    NRP_NULL(f, hint_fault, this_nid) || f->src_nid == f->this_nid)
		return 0;
	number = nrp_address_space_of(d->spaces, f->mm);
	if (number < 0)
		return (int)number;
	range = nrp_mm_newest(nrp_address_space(d->spaces, (uint32_t)number), f->addr, f->time);
	if (!range || !range->vma)
		return 0;
	sum = &d->windows[range->vma - 1].sum;
	sum->remote_faults++;
	sum->remote_pages += (uint64_t)pages;
	if (!NRP_NULL(f, hint_fault, moved) && f->moved)
		sum->moved_pages += (uint64_t)pages;
	sum->touches += pages * rate_at(d, f->mm, f->addr, f->this_nid, &upper);
	sum->touches_upper += pages * upper;
	return 0;
}

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	return kind == NRP_SCAN_RANGE ? see_range(context, row) : see_fault(context, row);
}

int nrp_scan_attempts_touches(struct nrp_scan_attempts *a, struct nrp_store *store,
			      const struct nrp_capture *capture, const struct nrp_touch_rate *rates,
			      size_t nr_rates, struct nrp_error *err)
{
	static const struct nrp_merge_input inputs[] = {
		{ NRP_SCAN_RANGE, NRP_BIT(scan_range, time) | NRP_BIT(scan_range, mm) |
					  NRP_BIT(scan_range, pass_time) |
					  NRP_BIT(scan_range, start) | NRP_BIT(scan_range, end) },
		{ NRP_HINT_FAULT,
		  NRP_BIT(hint_fault, time) | NRP_BIT(hint_fault, mm) | NRP_BIT(hint_fault, addr) |
			  NRP_BIT(hint_fault, pages) | NRP_BIT(hint_fault, src_nid) |
			  NRP_BIT(hint_fault, this_nid) | NRP_BIT(hint_fault, moved) },
	};
	struct reader d = { .attempts = a };
	int r = 0;

	if (!a->count)
		return 0;
	d.spaces = nrp_address_spaces_new(1);
	if (!d.spaces || make_windows(&d) < 0 || sort_rates(&d, rates, nr_rates) < 0)
		r = nrp_fail_nomem(err);
	if (r == 0 && d.nr_windows)
		r = nrp_merge_each(store, capture->id, inputs, 2, see, &d, err);
	for (size_t i = 0; r == 0 && i < a->count; i++) {
		struct nrp_scan_attempt *at = &a->at[i];
		const struct window *w = at->has_window ? window_of(&d, at->mm, at->window) : NULL;

		if (!w)
			continue;
		at->remote_faults = w->sum.remote_faults;
		at->remote_pages = w->sum.remote_pages;
		at->moved_pages = w->sum.moved_pages;
		at->touches = w->sum.touches;
		at->touches_upper = w->sum.touches_upper;
	}
	free(d.windows);
	free(d.rates);
	nrp_address_spaces_free(d.spaces);
	return r;
}

/* ---- sums ----------------------------------------------------------------------------- */

struct nrp_lost_windows nrp_lost_windows(const struct nrp_scan_attempts *a, enum nrp_lost_in who,
					 enum nrp_lost_in but, uint64_t mm)
{
	struct nrp_lost_windows sum = { 0 };

	for (size_t i = 0; i < a->count; i++) {
		const struct nrp_scan_attempt *at = &a->at[i];
		double seconds = (double)at->gap * 1e-9;

		if ((mm && at->mm != mm) || !(at->lost >> who & 1) || (at->lost >> but & 1))
			continue;
		sum.windows++;
		sum.seconds += seconds;
		if (!at->has_window) {
			sum.unknown++;
			continue;
		}
		sum.pages += at->pages;
		sum.page_seconds += seconds * (double)at->pages;
		sum.accesses += seconds * at->touches;
		sum.accesses_upper += seconds * at->touches_upper;
	}
	return sum;
}
