/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scanner: scan_begin { range_begin range_end | skip } scan_end, strictly nested in one thread.
 */
#include "capture/join_internal.h"

#include <errno.h>

static int close_range(struct nrp_joiner *j, struct nrp_thread *t, struct nrp_error *err)
{
	if (!t->range_open)
		return 0;
	t->range_open = false;
	return nrp_writer_append(j->writer, NRP_SCAN_RANGE, &t->range, err);
}

static int close_pass(struct nrp_joiner *j, struct nrp_thread *t, struct nrp_error *err)
{
	int r = close_range(j, t, err);

	if (r < 0 || !t->pass_open)
		return r;
	t->pass_open = false;
	return nrp_writer_append(j->writer, NRP_SCAN_PASS, &t->pass, err);
}

int nrp_join_scan_finish(struct nrp_joiner *j, struct nrp_thread *t, struct nrp_error *err)
{
	return close_pass(j, t, err);
}

static void pass_begin(const struct nrp_step *step)
{
	struct nrp_thread *t = step->thread;
	struct nrp_scan_pass *p = &t->pass;

	NRP_ROW_START(step, p, scan_pass);
	if (t->tgid)
		NRP_SET(p, scan_pass, tgid, t->tgid);
	NRP_TAKE(step, p, scan_pass, mm, SCAN_BEGIN, mm);
	NRP_TAKE(step, p, scan_pass, jiffies, SCAN_BEGIN, jiffies);
	NRP_TAKE(step, p, scan_pass, mm_scan_seq, SCAN_BEGIN, mm_scan_seq);
	NRP_TAKE(step, p, scan_pass, scan_offset, SCAN_BEGIN, scan_offset);
	NRP_TAKE(step, p, scan_pass, next_scan, SCAN_BEGIN, next_scan);
	NRP_TAKE(step, p, scan_pass, mm_users, SCAN_BEGIN, mm_users);
	NRP_TAKE(step, p, scan_pass, nr_threads, SCAN_BEGIN, nr_threads);
	NRP_TAKE(step, p, scan_pass, scan_period, SCAN_BEGIN, scan_period);
	NRP_TAKE(step, p, scan_pass, scan_period_max, SCAN_BEGIN, scan_period_max);
	NRP_TAKE(step, p, scan_pass, task_scan_seq, SCAN_BEGIN, task_scan_seq);
	NRP_TAKE(step, p, scan_pass, preferred_nid, SCAN_BEGIN, preferred_nid);
	NRP_SET(p, scan_pass, ranges, 0);
	NRP_SET(p, scan_pass, skips, 0);
	NRP_SET(p, scan_pass, armed_pages, 0);
	t->pass_open = true;
	t->ordinal = 0;
}

static void range_begin(const struct nrp_step *step)
{
	struct nrp_thread *t = step->thread;
	struct nrp_scan_range *g = &t->range;

	NRP_ROW_START(step, g, scan_range);
	NRP_SET(g, scan_range, ordinal, t->pass_open ? t->ordinal++ : 0);
	NRP_TAKE(step, g, scan_range, mm, RANGE_BEGIN, mm);
	NRP_TAKE(step, g, scan_range, vma, RANGE_BEGIN, vma);
	NRP_TAKE(step, g, scan_range, start, RANGE_BEGIN, start);
	NRP_TAKE(step, g, scan_range, end, RANGE_BEGIN, end);
	NRP_TAKE(step, g, scan_range, vm_start, RANGE_BEGIN, vm_start);
	NRP_TAKE(step, g, scan_range, vm_end, RANGE_BEGIN, vm_end);
	NRP_TAKE(step, g, scan_range, vm_flags, RANGE_BEGIN, vm_flags);
	NRP_TAKE(step, g, scan_range, mm_scan_seq, RANGE_BEGIN, mm_scan_seq);
	NRP_TAKE(step, g, scan_range, scan_offset, RANGE_BEGIN, scan_offset);
	t->range_open = true;
	if (!t->pass_open)
		return; /* mbind's lazy mode: the VMA may have no scan state, so its fields are no
			   facts */
	NRP_SET(g, scan_range, pass_time, t->pass.time);
	t->pass.ranges++;
	NRP_TAKE(step, g, scan_range, vma_next_scan, RANGE_BEGIN, next_scan);
	NRP_TAKE(step, g, scan_range, pids_reset, RANGE_BEGIN, pids_reset);
	NRP_TAKE(step, g, scan_range, pids0, RANGE_BEGIN, pids0);
	NRP_TAKE(step, g, scan_range, pids1, RANGE_BEGIN, pids1);
	NRP_TAKE(step, g, scan_range, start_seq, RANGE_BEGIN, start_seq);
	NRP_TAKE(step, g, scan_range, prev_seq, RANGE_BEGIN, prev_seq);
}

static int range_end(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_scan_range *g = &t->range;

	if (!t->range_open)
		return nrp_join_unjoined(j, step);
	NRP_SET(g, scan_range, end_time, step->raw->time);
	NRP_TAKE(step, g, scan_range, pages, RANGE_END, pages);
	if (t->pass_open && !NRP_NULL(g, scan_range, pages) && (int64_t)g->pages > 0)
		t->pass.armed_pages += g->pages;
	return close_range(j, t, err);
}

/* Reason by number and the format's names, or (from text) by name. A name unknown here is kept. */
static int skip_reason(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_scan_skip *s,
		       struct nrp_error *err)
{
	const char *unknown = NULL;
	char name[64];
	uint32_t id;

	NRP_SET(s, scan_skip, reason, NRP_SKIP_UNKNOWN);
	if (nrp_step_has(step, NRP_EF_SKIP_VMA_reason)) {
		uint64_t raw = nrp_step_get(step, NRP_EF_SKIP_VMA_reason);

		NRP_TAKE(step, s, scan_skip, reason_raw, SKIP_VMA, reason);
		if (raw < sizeof(j->cat->skip_reason)) {
			NRP_SET(s, scan_skip, reason, j->cat->skip_reason[raw]);
			unknown = j->cat->skip_name[raw];
		}
	} else if (nrp_step_string(step, NRP_EF_SKIP_VMA_reason, name, sizeof(name))) {
		NRP_SET(s, scan_skip, reason, nrp_skip_reason_by_name(name, strlen(name)));
		unknown = name;
	}
	if (s->reason != NRP_SKIP_UNKNOWN || !unknown || !*unknown)
		return 0;
	id = nrp_join_intern(j, unknown, err);
	if (!id)
		return -EIO;
	NRP_SET(s, scan_skip, reason_name, id);
	return 0;
}

static int skip(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_scan_skip s;

	NRP_ROW_START(step, &s, scan_skip);
	NRP_SET(&s, scan_skip, ordinal, t->pass_open ? t->ordinal++ : 0);
	if (t->pass_open) {
		NRP_SET(&s, scan_skip, pass_time, t->pass.time);
		if (!NRP_NULL(&t->pass, scan_pass, mm))
			NRP_SET(&s, scan_skip, mm, t->pass.mm);
		t->pass.skips++;
	}
	if (step->desc->event == NRP_EV_SKIP_CPUSET) {
		NRP_SET(&s, scan_skip, reason, NRP_SKIP_CPUSET);
	} else {
		int r = skip_reason(j, step, &s, err);

		if (r < 0)
			return r;
		NRP_TAKE(step, &s, scan_skip, scan_offset, SKIP_VMA, numa_scan_offset);
		NRP_TAKE(step, &s, scan_skip, vm_start, SKIP_VMA, vm_start);
		NRP_TAKE(step, &s, scan_skip, vm_end, SKIP_VMA, vm_end);
	}
	return nrp_writer_append(j->writer, NRP_SCAN_SKIP, &s, err);
}

int nrp_join_scan(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	int r;

	switch (step->desc->event) {
	case NRP_EV_SCAN_BEGIN:
		r = close_pass(j, t, err);
		if (r < 0)
			return r;
		pass_begin(step);
		return 0;
	case NRP_EV_SCAN_END:
		if (!t->pass_open)
			return nrp_join_unjoined(j, step);
		NRP_SET(&t->pass, scan_pass, end_time, step->raw->time);
		NRP_TAKE(step, &t->pass, scan_pass, jiffies_end, SCAN_END, jiffies);
		return close_pass(j, t, err);
	case NRP_EV_RANGE_BEGIN:
		r = close_range(j, t, err);
		if (r < 0)
			return r;
		range_begin(step);
		return 0;
	case NRP_EV_RANGE_END:
		return range_end(j, step, err);
	default:
		return skip(j, step, err);
	}
}
