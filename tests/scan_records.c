/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan_records.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void append(struct scan_records *r, enum nrp_record_kind kind, const void *row)
{
	struct nrp_error err = NRP_ERROR_INIT;

	assert_ok(nrp_writer_append(r->writer, kind, row, &err), &err);
}

void scan_records_begin(struct scan_records *r, bool with_skips)
{
	static const char *const probes[] = { "scan_begin", "range_begin", "sched_skip_vma_numa" };
	static int16_t cpu_nid[2] = { 0, 1 };
	static int number;
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture c;

	memset(r, 0, sizeof(*r));
	r->nr_threads = 1;
	r->mm = MM;
	snprintf(r->path, sizeof(r->path), "scan-%d.db", number++);
	r->store = util_open(r->path, NRP_STORE_CREATE);
	util_capture(&c, "scan", 1);
	c.facts.hz = 1000;
	c.facts.page_size = (int64_t)PAGE;
	c.facts.huge_pages = 512;
	c.facts.scan_size_mb = 256;
	c.facts.scan_delay_ms = 1000;
	c.facts.has_prepare_step = true;
	c.facts.nr_cpus = 2;
	c.facts.cpu_nid = cpu_nid;
	assert_ok(nrp_store_begin(r->store, &err), &err);
	assert_ok(nrp_store_add_capture(r->store, &c, &err), &err);
	assert_ok(nrp_store_put_probes(r->store, c.id, probes, with_skips ? 3 : 2, &err), &err);
	assert_ok(nrp_writer_new(&r->writer, r->store, c.id, &err), &err);
}

void scan_records_commit(struct scan_records *r)
{
	struct nrp_error err = NRP_ERROR_INIT;

	assert_ok(nrp_writer_flush(r->writer, &err), &err);
	assert_ok(nrp_store_commit(r->store, &err), &err);
	assert_ok(nrp_store_load_capture(r->store, NULL, &r->capture, &err), &err);
}

void scan_records_end(struct scan_records *r)
{
	nrp_writer_free(r->writer);
	nrp_capture_clear(&r->capture);
	nrp_store_close(r->store);
	unlink(r->path);
}

void add_pass_until(struct scan_records *r, uint64_t ms, uint64_t end_ms, int32_t tid, int32_t seq,
		    uint64_t offset_mb)
{
	struct nrp_scan_pass p;

	memset(&p, 0, sizeof(p));
	p.null = ~UINT64_C(0);
	NRP_SET(&p, scan_pass, time, ms * MS);
	NRP_SET(&p, scan_pass, end_time, end_ms * MS);
	NRP_SET(&p, scan_pass, cpu, 0);
	NRP_SET(&p, scan_pass, tid, tid);
	NRP_SET(&p, scan_pass, mm, r->mm);
	NRP_SET(&p, scan_pass, jiffies, ms);
	NRP_SET(&p, scan_pass, jiffies_end, ms + r->ticks);
	NRP_SET(&p, scan_pass, mm_scan_seq, seq);
	NRP_SET(&p, scan_pass, scan_offset, offset_mb * MB);
	NRP_SET(&p, scan_pass, next_scan, ms);
	NRP_SET(&p, scan_pass, mm_users, r->nr_threads);
	if (r->armed_pages) {
		NRP_SET(&p, scan_pass, ranges, 1);
		NRP_SET(&p, scan_pass, armed_pages, r->armed_pages);
	}
	if (!r->no_threads)
		NRP_SET(&p, scan_pass, nr_threads, r->nr_threads);
	append(r, NRP_SCAN_PASS, &p);
	r->pass_ms = ms;
	r->tid = tid;
	r->seq = seq;
	r->offset = offset_mb * MB;
	r->ordinal = 0;
}

void add_pass(struct scan_records *r, uint64_t ms, int32_t tid, int32_t seq, uint64_t offset_mb)
{
	add_pass_until(r, ms, ms + 1, tid, seq, offset_mb);
}

/* Decisions follow each other by a microsecond. */
static uint64_t decision_time(struct scan_records *r)
{
	return r->pass_ms * MS + (uint64_t)(++r->ordinal) * 1000;
}

void add_range(struct scan_records *r, uint64_t start_mb, uint64_t end_mb, uint64_t vm_start_mb,
	       uint64_t vm_end_mb, uint64_t pages, const struct nrp_scan_vma_state *state)
{
	struct nrp_scan_range g;

	memset(&g, 0, sizeof(g));
	g.null = ~UINT64_C(0);
	NRP_SET(&g, scan_range, time, decision_time(r));
	NRP_SET(&g, scan_range, ordinal, r->ordinal - 1);
	NRP_SET(&g, scan_range, cpu, 0);
	NRP_SET(&g, scan_range, tid, r->tid);
	NRP_SET(&g, scan_range, mm, r->mm);
	NRP_SET(&g, scan_range, pass_time, r->pass_ms * MS);
	NRP_SET(&g, scan_range, start, start_mb * MB);
	NRP_SET(&g, scan_range, end, end_mb * MB);
	NRP_SET(&g, scan_range, vm_start, vm_start_mb * MB);
	NRP_SET(&g, scan_range, vm_end, vm_end_mb * MB);
	NRP_SET(&g, scan_range, vm_flags, PRIVATE_RW);
	NRP_SET(&g, scan_range, pages, pages);
	if (state) {
		NRP_SET(&g, scan_range, vma_next_scan, state->next_scan);
		NRP_SET(&g, scan_range, pids_reset, state->pids_reset);
		NRP_SET(&g, scan_range, pids0, state->pids[0]);
		NRP_SET(&g, scan_range, pids1, state->pids[1]);
		NRP_SET(&g, scan_range, start_seq, state->start_seq);
		NRP_SET(&g, scan_range, prev_seq, state->prev_seq);
	}
	append(r, NRP_SCAN_RANGE, &g);
}

void add_skip(struct scan_records *r, uint64_t vm_start_mb, uint64_t vm_end_mb,
	      enum nrp_skip_reason reason)
{
	struct nrp_scan_skip s;

	memset(&s, 0, sizeof(s));
	s.null = ~UINT64_C(0);
	NRP_SET(&s, scan_skip, time, decision_time(r));
	NRP_SET(&s, scan_skip, ordinal, r->ordinal - 1);
	NRP_SET(&s, scan_skip, cpu, 0);
	NRP_SET(&s, scan_skip, tid, r->tid);
	NRP_SET(&s, scan_skip, mm, r->mm);
	NRP_SET(&s, scan_skip, pass_time, r->pass_ms * MS);
	NRP_SET(&s, scan_skip, scan_offset, r->offset);
	NRP_SET(&s, scan_skip, vm_start, vm_start_mb * MB);
	NRP_SET(&s, scan_skip, vm_end, vm_end_mb * MB);
	NRP_SET(&s, scan_skip, reason, (uint8_t)reason);
	append(r, NRP_SCAN_SKIP, &s);
}

void add_fault(struct scan_records *r, uint64_t us, int32_t tid, uint64_t vm_start_mb,
	       uint64_t vm_end_mb, uint64_t offset)
{
	struct nrp_hint_fault f;

	memset(&f, 0, sizeof(f));
	f.null = ~UINT64_C(0);
	NRP_SET(&f, hint_fault, time, us * 1000);
	NRP_SET(&f, hint_fault, cpu, 0);
	NRP_SET(&f, hint_fault, tid, tid);
	NRP_SET(&f, hint_fault, mm, r->mm);
	NRP_SET(&f, hint_fault, addr, vm_start_mb * MB + offset * PAGE);
	NRP_SET(&f, hint_fault, vm_start, vm_start_mb * MB);
	NRP_SET(&f, hint_fault, vm_end, vm_end_mb * MB);
	NRP_SET(&f, hint_fault, vm_flags, PRIVATE_RW);
	NRP_SET(&f, hint_fault, pages, 1);
	NRP_SET(&f, hint_fault, src_nid, 1);
	NRP_SET(&f, hint_fault, mem_nid, 0);
	append(r, NRP_HINT_FAULT, &f);
}

void add_life(struct scan_records *r, uint64_t ms, int kind, int32_t tid, int32_t child)
{
	struct nrp_task_life l;

	memset(&l, 0, sizeof(l));
	l.null = ~UINT64_C(0);
	NRP_SET(&l, task_life, time, ms * MS);
	NRP_SET(&l, task_life, cpu, 0);
	NRP_SET(&l, task_life, kind, (uint8_t)kind);
	NRP_SET(&l, task_life, tid, tid);
	if (kind == NRP_LIFE_FORK)
		NRP_SET(&l, task_life, child_tid, child);
	append(r, NRP_TASK_LIFE, &l);
}

void add_unmap(struct scan_records *r, uint64_t ms, uint64_t start_mb, uint64_t end_mb)
{
	struct nrp_munmap u;

	memset(&u, 0, sizeof(u));
	u.null = ~UINT64_C(0);
	NRP_SET(&u, munmap, time, ms * MS);
	NRP_SET(&u, munmap, zap_time, ms * MS + 1);
	NRP_SET(&u, munmap, end_time, ms * MS + 2);
	NRP_SET(&u, munmap, cpu, 0);
	NRP_SET(&u, munmap, tid, 100);
	NRP_SET(&u, munmap, mm, r->mm);
	NRP_SET(&u, munmap, start, start_mb * MB);
	NRP_SET(&u, munmap, len, (end_mb - start_mb) * MB);
	NRP_SET(&u, munmap, result, 0);
	append(r, NRP_MUNMAP, &u);
}

void add_loss(struct scan_records *r, uint64_t ms, uint64_t end_ms)
{
	struct nrp_loss l;

	memset(&l, 0, sizeof(l));
	l.null = ~UINT64_C(0);
	NRP_SET(&l, loss, time, ms * MS);
	NRP_SET(&l, loss, end_time, end_ms * MS);
	NRP_SET(&l, loss, cpu, 0);
	NRP_SET(&l, loss, cause, NRP_LOSS_OVERRUN);
	append(r, NRP_LOSS, &l);
}
