/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records against /proc/vmstat (spec migrate.md 2.9). */
#include "replay/attempts.h"
#include "replay/verify_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *nrp_explained_name(enum nrp_explained explained)
{
	static const char *const names[] = { NULL, "window_edges", "lost_events", "unjoined" };

	return names[explained];
}

void nrp_count_fault(struct nrp_trace_counts *c, const struct nrp_hint_fault *f,
		     const struct nrp_host_facts *facts)
{
	bool moved = nrp_fault_moved(f);
	uint64_t pages = nrp_fault_pages(f);

	c->hint_faults++;
	if (!NRP_NULL(f, hint_fault, tnf_flags))
		c->local_faults += (f->tnf_flags & NRP_TNF_FAULT_LOCAL) != 0;
	else
		c->local_faults += !NRP_NULL(f, hint_fault, src_nid) &&
				   !NRP_NULL(f, hint_fault, this_nid) && f->src_nid == f->this_nid;
	if (moved)
		c->moved_pages += pages;
	if (f->attempt == NRP_ATTEMPT_THP) {
		uint64_t huge = facts->huge_pages > 0 ? (uint64_t)facts->huge_pages : pages;

		if (moved)
			c->thp_moved_pages += huge;
		else if (NRP_NULL(f, hint_fault, ratelimited) || !f->ratelimited)
			c->thp_failed_pages += huge;
	}
}

static int count_migrations(struct nrp_trace_counts *c, struct nrp_store *store,
			    const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_MIGRATION,
				NRP_BIT(migration, time) | NRP_BIT(migration, succeeded) |
					NRP_BIT(migration, failed) | NRP_BIT(migration, reason),
				err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_migration *m = row;

		r = 0;
		c->has_migrations = true;
		c->all_succeeded += m->succeeded;
		c->all_failed += m->failed;
		if (m->reason == NRP_REASON_NUMA_MISPLACED)
			c->numa_succeeded += m->succeeded;
	}
	nrp_cursor_close(cursor);
	return r;
}

static int count_ranges(struct nrp_trace_counts *c, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_SCAN_RANGE,
				NRP_BIT(scan_range, time) | NRP_BIT(scan_range, pages), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_scan_range *g = row;

		r = 0;
		if (!NRP_NULL(g, scan_range, pages) && (int64_t)g->pages > 0)
			c->armed_pages += g->pages;
	}
	nrp_cursor_close(cursor);
	return r;
}

/*
 * vmstat is read before the tracer starts and after it ends: it may exceed the trace by 1 % and 64
 * counts. One armed huge PMD is one count, but adds @unit pages (and 1 to numa_huge_pte_updates).
 */
static bool at_window_edges(int64_t difference, int64_t trace, int64_t unit, int64_t max_units)
{
	int64_t units = 0;

	if (difference <= 0)
		return false;
	if (unit > 1 && max_units > 0)
		units = difference / unit < max_units ? difference / unit : max_units;
	return difference - units * (unit - 1) <= trace / 100 + 64;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static void put_counter(struct nrp_verify *v, struct nrp_store *store,
			const struct nrp_capture *capture, const char *name, uint64_t trace)
{
	struct nrp_verify_counter *c = &v->counter[v->nr_counters];
	bool lost = capture->lost_events || capture->loss_gaps;
	int64_t difference, huge = 0;

	if (v->nr_counters == NRP_MAX_COUNTERS ||
	    nrp_store_counter_delta(store, capture->id, name, &c->vmstat) < 0)
		return;
	c->name = name;
	c->trace = (int64_t)trace;
	difference = c->difference = (int64_t)((uint64_t)c->vmstat - trace);
	c->explained = NRP_EXPLAINED_NOT;
	if (!strcmp(name, "numa_pte_updates"))
		nrp_store_counter_delta(store, capture->id, "numa_huge_pte_updates", &huge);
	if (difference && lost)
		c->explained = NRP_LOST_EVENTS;
	else if (at_window_edges(difference, c->trace, huge ? capture->facts.huge_pages : 1, huge))
		c->explained = NRP_WINDOW_EDGES;
	else if (difference && magnitude(difference) <= capture->unjoined_events)
		c->explained = NRP_UNJOINED;
	c->ok = !difference || c->explained == NRP_WINDOW_EDGES;
	v->nr_counters++;
}

int nrp_verify_counters(struct nrp_verify *v, struct nrp_store *store,
			const struct nrp_capture *capture, struct nrp_trace_counts *c,
			struct nrp_error *err)
{
	int r = count_migrations(c, store, capture, err);

	if (r == 0)
		r = count_ranges(c, store, capture, err);
	if (r < 0)
		return r;
	if (capture->facts.has_fault_probe) {
		put_counter(v, store, capture, "numa_hint_faults", c->hint_faults);
		put_counter(v, store, capture, "numa_hint_faults_local", c->local_faults);
	}
	/* Up to 5.13 huge pages move outside migrate_pages(), and each counts H. */
	if (c->has_migrations) {
		put_counter(v, store, capture, "numa_pages_migrated",
			    c->numa_succeeded + c->thp_moved_pages);
		put_counter(v, store, capture, "pgmigrate_success",
			    c->all_succeeded + c->thp_moved_pages);
		put_counter(v, store, capture, "pgmigrate_fail",
			    c->all_failed + c->thp_failed_pages);
	} else {
		put_counter(v, store, capture, "numa_pages_migrated", c->moved_pages);
	}
	put_counter(v, store, capture, "numa_pte_updates", c->armed_pages);
	if (!v->nr_counters)
		nrp_verify_note(v, "no_vmstat",
				"no /proc/vmstat before and after: nothing to reconcile with");
	return 0;
}
