/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page migration, mmap_lock, munmap, memory system calls, page-fault exceptions and hugetlb. */
#include "capture/join_internal.h"

static int migrate_pages(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_migration m;

	NRP_ROW_START(step, &m, migration);
	if (step->thread->migrate_start) {
		NRP_SET(&m, migration, start_time, step->thread->migrate_start);
		step->thread->migrate_start = 0;
	}
	NRP_TAKE(step, &m, migration, succeeded, MIGRATE_PAGES, succeeded);
	NRP_TAKE(step, &m, migration, failed, MIGRATE_PAGES, failed);
	NRP_TAKE(step, &m, migration, thp_succeeded, MIGRATE_PAGES, thp_succeeded);
	NRP_TAKE(step, &m, migration, thp_failed, MIGRATE_PAGES, thp_failed);
	NRP_TAKE(step, &m, migration, thp_split, MIGRATE_PAGES, thp_split);
	NRP_TAKE(step, &m, migration, folio_split, MIGRATE_PAGES, large_folio_split);
	NRP_TAKE(step, &m, migration, mode, MIGRATE_PAGES, mode);
	NRP_TAKE(step, &m, migration, reason, MIGRATE_PAGES, reason);
	if (!NRP_NULL(&m, migration, reason) && m.reason == NRP_REASON_NUMA_MISPLACED)
		nrp_join_fault_migrated(step->thread, m.succeeded, m.failed);
	return nrp_writer_append(j->writer, NRP_MIGRATION, &m, err);
}

static int migration_entry(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	enum nrp_event event = step->desc->event;
	struct nrp_migration_entry e;

	NRP_ROW_START(step, &e, migration_entry);
	NRP_SET(&e, migration_entry, op, event == NRP_EV_REMOVE_PTE || event == NRP_EV_REMOVE_PMD);
	NRP_SET(&e, migration_entry, pmd, event == NRP_EV_SET_PMD || event == NRP_EV_REMOVE_PMD);
	/* The four formats have addr and the entry in the same places of their lists. */
	NRP_TAKE(step, &e, migration_entry, addr, SET_PTE, addr);
	NRP_TAKE(step, &e, migration_entry, entry, SET_PTE, pte);
	if (!e.pmd)
		NRP_TAKE(step, &e, migration_entry, order, SET_PTE, order);
	return nrp_writer_append(j->writer, NRP_MIGRATION_ENTRY, &e, err);
}

static int ratelimit(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_ratelimit r;

	NRP_ROW_START(step, &r, ratelimit);
	NRP_TAKE(step, &r, ratelimit, dst_nid, RATELIMIT, dst_nid);
	NRP_TAKE(step, &r, ratelimit, pages, RATELIMIT, nr_pages);
	nrp_join_fault_limited(step->thread);
	return nrp_writer_append(j->writer, NRP_RATELIMIT, &r, err);
}

static int close_wait(struct nrp_joiner *j, struct nrp_thread *t, struct nrp_error *err)
{
	if (!t->wait_open)
		return 0;
	t->wait_open = false;
	return nrp_writer_append(j->writer, NRP_MIGRATION_WAIT, &t->wait, err);
}

static int migration_wait(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	int r;

	if (step->desc->event == NRP_EV_MIGRATION_WAIT_END) {
		if (!t->wait_open)
			return nrp_join_unjoined(j, step);
		NRP_SET(&t->wait, migration_wait, end_time, step->raw->time);
		return close_wait(j, t, err);
	}
	r = close_wait(j, t, err);
	if (r < 0)
		return r;
	NRP_ROW_START(step, &t->wait, migration_wait);
	NRP_TAKE(step, &t->wait, migration_wait, mm, MIGRATION_WAIT, mm);
	NRP_TAKE(step, &t->wait, migration_wait, addr, MIGRATION_WAIT, addr);
	t->wait_open = true;
	return 0;
}

static int lock(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_lock l;

	NRP_ROW_START(step, &l, lock);
	switch (step->desc->event) {
	case NRP_EV_LOCK_RETURNED:
		NRP_SET(&l, lock, op,
			nrp_step_get_or(step, NRP_EF_LOCK_RETURNED_success, 1) ? NRP_LOCK_GRANT
									       : NRP_LOCK_FAILED);
		break;
	case NRP_EV_LOCK_RELEASED:
		NRP_SET(&l, lock, op, NRP_LOCK_RELEASE);
		break;
	case NRP_EV_MMAP_DOWNGRADE:
		NRP_SET(&l, lock, op, NRP_LOCK_DOWNGRADE);
		NRP_TAKE(step, &l, lock, sem, MMAP_DOWNGRADE, sem);
		return nrp_writer_append(j->writer, NRP_LOCK, &l, err);
	default:
		NRP_SET(&l, lock, op, NRP_LOCK_REQUEST);
		break;
	}
	NRP_TAKE(step, &l, lock, mm, LOCK_START, mm);
	NRP_TAKE(step, &l, lock, write, LOCK_START, write);
	return nrp_writer_append(j->writer, NRP_LOCK, &l, err);
}

static int close_munmap(struct nrp_joiner *j, struct nrp_thread *t, struct nrp_error *err)
{
	if (!t->munmap_open)
		return 0;
	t->munmap_open = false;
	return nrp_writer_append(j->writer, NRP_MUNMAP, &t->munmap, err);
}

static int munmap(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_munmap *m = &t->munmap;
	enum nrp_event event = step->desc->event;
	int r;

	if (event == NRP_EV_MUNMAP_BEGIN) {
		r = close_munmap(j, t, err);
		if (r < 0)
			return r;
		NRP_ROW_START(step, m, munmap);
		NRP_TAKE(step, m, munmap, mm, MUNMAP_BEGIN, mm);
		NRP_TAKE(step, m, munmap, start, MUNMAP_BEGIN, start);
		NRP_TAKE(step, m, munmap, len, MUNMAP_BEGIN, len);
		NRP_TAKE(step, m, munmap, downgrade, MUNMAP_BEGIN, downgrade);
		t->munmap_open = true;
		return 0;
	}
	if (!t->munmap_open) {
		if (event == NRP_EV_MUNMAP_END)
			return nrp_join_unjoined(j, step);
		j->stats.other++; /* another caller of the phase: exit, mmap over a mapping, .. */
		return 0;
	}
	switch (event) {
	case NRP_EV_MUNMAP_ZAP:
		NRP_SET(m, munmap, zap_time, step->raw->time);
		return 0;
	case NRP_EV_MUNMAP_PGTABLES:
		NRP_SET(m, munmap, pgtables_time, step->raw->time);
		return 0;
	case NRP_EV_MUNMAP_FLUSHED:
		NRP_SET(m, munmap, flushed_time, step->raw->time);
		return 0;
	default:
		NRP_SET(m, munmap, end_time, step->raw->time);
		NRP_TAKE(step, m, munmap, result, MUNMAP_END, ret);
		return close_munmap(j, t, err);
	}
}

static int close_call(struct nrp_joiner *j, struct nrp_thread *t, struct nrp_error *err)
{
	if (!t->call_open)
		return 0;
	t->call_open = false;
	return nrp_writer_append(j->writer, NRP_MM_CALL, &t->call, err);
}

/* The place of each argument among the fields of its event; -1: it has none. */
static const struct {
	int8_t addr, len, mode, flags;
} arguments[NRP_NR_CALLS] = {
	[NRP_CALL_MMAP] = { NRP_EF_ENTER_MMAP_addr, NRP_EF_ENTER_MMAP_len, NRP_EF_ENTER_MMAP_prot,
			    NRP_EF_ENTER_MMAP_flags },
	[NRP_CALL_MUNMAP] = { NRP_EF_ENTER_MUNMAP_addr, NRP_EF_ENTER_MUNMAP_len, -1, -1 },
	[NRP_CALL_MBIND] = { NRP_EF_ENTER_MBIND_start, NRP_EF_ENTER_MBIND_len,
			     NRP_EF_ENTER_MBIND_mode, NRP_EF_ENTER_MBIND_flags },
	[NRP_CALL_MPROTECT] = { NRP_EF_ENTER_MPROTECT_start, NRP_EF_ENTER_MPROTECT_len,
				NRP_EF_ENTER_MPROTECT_prot, -1 },
	[NRP_CALL_MLOCK] = { NRP_EF_ENTER_MLOCK_start, NRP_EF_ENTER_MLOCK_len, -1, -1 },
	[NRP_CALL_MUNLOCK] = { NRP_EF_ENTER_MUNLOCK_start, NRP_EF_ENTER_MUNLOCK_len, -1, -1 },
	[NRP_CALL_MREMAP] = { NRP_EF_ENTER_MREMAP_addr, NRP_EF_ENTER_MREMAP_old_len, -1,
			      NRP_EF_ENTER_MREMAP_flags },
	[NRP_CALL_BRK] = { NRP_EF_ENTER_BRK_brk, -1, -1, -1 },
	[NRP_CALL_MADVISE] = { NRP_EF_ENTER_MADVISE_start, NRP_EF_ENTER_MADVISE_len_in,
			       NRP_EF_ENTER_MADVISE_behavior, -1 },
	[NRP_CALL_SHMDT] = { NRP_EF_ENTER_SHMDT_shmaddr, -1, -1, -1 },
};

static void take_argument(const struct nrp_step *step, struct nrp_mm_call *c, int field,
			  uint64_t *to, uint64_t bit)
{
	if (field >= 0)
		c->null &= ~nrp_take(step, (unsigned int)field, to, sizeof(*to), bit);
}

static int call_enter(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_mm_call *c = &t->call;
	unsigned int call = nrp_event_call(step->desc->event);
	int r = close_call(j, t, err);

	if (r < 0)
		return r;
	NRP_ROW_START(step, c, mm_call);
	NRP_SET(c, mm_call, call, (uint8_t)call);
	take_argument(step, c, arguments[call].addr, &c->addr, NRP_BIT(mm_call, addr));
	take_argument(step, c, arguments[call].len, &c->len, NRP_BIT(mm_call, len));
	take_argument(step, c, arguments[call].mode, &c->mode, NRP_BIT(mm_call, mode));
	take_argument(step, c, arguments[call].flags, &c->flags, NRP_BIT(mm_call, flags));
	t->call_open = true;
	return 0;
}

static int call_exit(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;

	if (!t->call_open || t->call.call != nrp_event_call(step->desc->event))
		return nrp_join_unjoined(j, step);
	NRP_SET(&t->call, mm_call, end_time, step->raw->time);
	NRP_TAKE(step, &t->call, mm_call, result, EXIT_MMAP, ret);
	return close_call(j, t, err);
}

/* Kinds of locks in contention_begin.flags. Those of rw_semaphores: one of the first two, or RT. */
#define LOCK_READ 0x02
#define LOCK_WRITE 0x04
#define LOCK_RT 0x08

/*
 * A wait in line, behind the spinning. Other locks have the same events, spinlocks within a wait as
 * well: only rw_semaphores are kept.
 */
static int contention(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	uint64_t sem = nrp_step_get_or(step, NRP_EF_CONTENTION_BEGIN_lock_addr, 0);
	bool begin = step->desc->event == NRP_EV_CONTENTION_BEGIN;
	uint64_t flags =
		begin ? nrp_step_get_or(step, NRP_EF_CONTENTION_BEGIN_flags, 0) & ~(uint64_t)LOCK_RT
		      : 0;
	struct nrp_lock l;

	if (!sem || (begin ? flags != LOCK_READ && flags != LOCK_WRITE : sem != t->contended)) {
		j->stats.other++;
		return 0;
	}
	NRP_ROW_START(step, &l, lock);
	NRP_SET(&l, lock, sem, sem);
	if (begin) {
		t->contended_write = flags == LOCK_WRITE;
		NRP_SET(&l, lock, op, NRP_LOCK_QUEUED);
	} else {
		NRP_SET(&l, lock, op,
			nrp_step_get_or(step, NRP_EF_CONTENTION_END_ret, 0) ? NRP_LOCK_LEFT
									    : NRP_LOCK_DEQUEUED);
	}
	t->contended = begin ? sem : 0;
	NRP_SET(&l, lock, write, t->contended_write);
	return nrp_writer_append(j->writer, NRP_LOCK, &l, err);
}

static int page_fault(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_page_fault p;

	NRP_ROW_START(step, &p, page_fault);
	NRP_SET(&p, page_fault, user, step->desc->event == NRP_EV_PAGE_FAULT_USER);
	NRP_TAKE(step, &p, page_fault, addr, PAGE_FAULT_USER, address);
	NRP_TAKE(step, &p, page_fault, ip, PAGE_FAULT_USER, ip);
	NRP_TAKE(step, &p, page_fault, error_code, PAGE_FAULT_USER, error_code);
	return nrp_writer_append(j->writer, NRP_PAGE_FAULT, &p, err);
}

static int close_hugetlb(struct nrp_joiner *j, struct nrp_thread *t, int op, struct nrp_error *err)
{
	if (!t->hugetlb_open[op])
		return 0;
	t->hugetlb_open[op] = false;
	return nrp_writer_append(j->writer, NRP_HUGETLB, &t->hugetlb[op], err);
}

static int hugetlb_begin(struct nrp_joiner *j, const struct nrp_step *step, int op,
			 struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_hugetlb *h = &t->hugetlb[op];
	int r = close_hugetlb(j, t, op, err);

	if (r < 0)
		return r;
	NRP_ROW_START(step, h, hugetlb);
	NRP_SET(h, hugetlb, op, (uint8_t)op);
	t->hugetlb_open[op] = true;
	switch (op) {
	case NRP_HUGETLB_FAULT:
		NRP_TAKE(step, h, hugetlb, mm, HUGETLB_FAULT, mm);
		NRP_TAKE(step, h, hugetlb, vma, HUGETLB_FAULT, vma);
		NRP_TAKE(step, h, hugetlb, addr, HUGETLB_FAULT, addr);
		NRP_TAKE(step, h, hugetlb, vm_start, HUGETLB_FAULT, vm_start);
		NRP_TAKE(step, h, hugetlb, vm_end, HUGETLB_FAULT, vm_end);
		NRP_TAKE(step, h, hugetlb, vm_flags, HUGETLB_FAULT, vm_flags);
		return 0;
	case NRP_HUGETLB_PTE_ALLOC:
		NRP_TAKE(step, h, hugetlb, mm, HUGETLB_PTE_ALLOC, mm);
		NRP_TAKE(step, h, hugetlb, addr, HUGETLB_PTE_ALLOC, addr);
		NRP_TAKE(step, h, hugetlb, size, HUGETLB_PTE_ALLOC, size);
		return 0;
	case NRP_HUGETLB_ISOLATE:
		NRP_TAKE(step, h, hugetlb, page, HUGETLB_ISOLATE, page);
		NRP_TAKE(step, h, hugetlb, mapcount, HUGETLB_ISOLATE, mapcount);
		return 0;
	case NRP_HUGETLB_QUEUE:
		NRP_TAKE(step, h, hugetlb, pte, HUGETLB_QUEUE, pte);
		NRP_TAKE(step, h, hugetlb, entry, HUGETLB_QUEUE, entry);
		NRP_TAKE(step, h, hugetlb, addr, HUGETLB_QUEUE, addr);
		break;
	case NRP_HUGETLB_MOVED:
		NRP_TAKE(step, h, hugetlb, page, HUGETLB_MOVED, old);
		NRP_TAKE(step, h, hugetlb, new_page, HUGETLB_MOVED, new);
		NRP_TAKE(step, h, hugetlb, reason, HUGETLB_MOVED, reason);
		break;
	case NRP_HUGETLB_UNSHARE: /* probed on return only */
		NRP_TAKE(step, h, hugetlb, result, HUGETLB_UNSHARE, dropped);
		break;
	default:
		break;
	}
	return close_hugetlb(j, t, op, err); /* no return probe */
}

static int hugetlb_end(struct nrp_joiner *j, const struct nrp_step *step, int op,
		       struct nrp_error *err)
{
	struct nrp_thread *t = step->thread;
	struct nrp_hugetlb *h = &t->hugetlb[op];

	if (!t->hugetlb_open[op])
		return nrp_join_unjoined(j, step);
	NRP_SET(h, hugetlb, end_time, step->raw->time);
	if (op == NRP_HUGETLB_PTE_ALLOC)
		NRP_TAKE(step, h, hugetlb, pte, HUGETLB_PTE, pte);
	else
		NRP_TAKE(step, h, hugetlb, result, HUGETLB_FAULT_END, ret);
	return close_hugetlb(j, t, op, err);
}

int nrp_join_memory(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	if (nrp_event_is_call(step->desc->event))
		return nrp_event_is_exit(step->desc->event) ? call_exit(j, step, err)
							    : call_enter(j, step, err);
	switch (step->desc->event) {
	case NRP_EV_RATELIMIT:
		return ratelimit(j, step, err);
	case NRP_EV_MIGRATE_PAGES:
		return migrate_pages(j, step, err);
	case NRP_EV_MIGRATE_START:
		step->thread->migrate_start = step->raw->time;
		return 0;
	case NRP_EV_SET_PTE:
	case NRP_EV_REMOVE_PTE:
	case NRP_EV_SET_PMD:
	case NRP_EV_REMOVE_PMD:
		return migration_entry(j, step, err);
	case NRP_EV_MIGRATION_WAIT:
	case NRP_EV_MIGRATION_WAIT_END:
		return migration_wait(j, step, err);
	case NRP_EV_LOCK_START:
	case NRP_EV_LOCK_RETURNED:
	case NRP_EV_LOCK_RELEASED:
	case NRP_EV_MMAP_DOWNGRADE:
		return lock(j, step, err);
	case NRP_EV_MUNMAP_BEGIN:
	case NRP_EV_MUNMAP_ZAP:
	case NRP_EV_MUNMAP_PGTABLES:
	case NRP_EV_MUNMAP_FLUSHED:
	case NRP_EV_MUNMAP_END:
		return munmap(j, step, err);
	case NRP_EV_CONTENTION_BEGIN:
	case NRP_EV_CONTENTION_END:
		return contention(j, step, err);
	case NRP_EV_PAGE_FAULT_USER:
	case NRP_EV_PAGE_FAULT_KERNEL:
		return page_fault(j, step, err);
	case NRP_EV_HUGETLB_FAULT:
		return hugetlb_begin(j, step, NRP_HUGETLB_FAULT, err);
	case NRP_EV_HUGETLB_FAULT_END:
		return hugetlb_end(j, step, NRP_HUGETLB_FAULT, err);
	case NRP_EV_HUGETLB_PTE_ALLOC:
		return hugetlb_begin(j, step, NRP_HUGETLB_PTE_ALLOC, err);
	case NRP_EV_HUGETLB_PTE:
		return hugetlb_end(j, step, NRP_HUGETLB_PTE_ALLOC, err);
	case NRP_EV_HUGETLB_SHARE:
		return hugetlb_begin(j, step, NRP_HUGETLB_SHARE, err);
	case NRP_EV_HUGETLB_UNSHARE:
		return hugetlb_begin(j, step, NRP_HUGETLB_UNSHARE, err);
	case NRP_EV_HUGETLB_QUEUE:
		return hugetlb_begin(j, step, NRP_HUGETLB_QUEUE, err);
	case NRP_EV_HUGETLB_ISOLATE:
		return hugetlb_begin(j, step, NRP_HUGETLB_ISOLATE, err);
	case NRP_EV_HUGETLB_ISOLATE_END:
		return hugetlb_end(j, step, NRP_HUGETLB_ISOLATE, err);
	default:
		return hugetlb_begin(j, step, NRP_HUGETLB_MOVED, err);
	}
}

int nrp_join_memory_finish(struct nrp_joiner *j, struct nrp_thread *t, struct nrp_error *err)
{
	int r = close_wait(j, t, err);

	t->contended = 0;
	if (r == 0)
		r = close_munmap(j, t, err);
	if (r == 0)
		r = close_call(j, t, err);
	for (int op = 0; r == 0 && op < NRP_HUGETLB_OPS; op++)
		r = close_hugetlb(j, t, op, err);
	return r;
}
