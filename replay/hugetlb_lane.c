/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/hugetlb_lane.h"

#include "replay/host.h"
#include "replay/merge.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PTE_SIZE 8 /* bytes of an entry: 64-bit kernels */
#define TABLE_SIZE UINT64_C(4096)
#define PTE_PRESENT 1 /* bit of an entry, x86 */
#define PTE_FRAME UINT64_C(0x000ffffffffff000)
#define FRAME UINT64_C(1) /* marks numbers of pages that are frames; entries are aligned */
#define FAULT_ERROR 0x873 /* VM_FAULT_* bits of faults that failed */
#define MF_MOVE 2         /* MPOL_MF_* flags of mbind() */
#define MF_MOVE_ALL 4

struct task {
	uint64_t mm;                 /* 0: not known */
	bool in_fault, fault_failed; /* a fault of @fault_addr is on record, from here on */
	uint64_t fault_addr;
	bool in_call; /* mbind() from @call_flags on, until @call_end */
	uint64_t call_flags, call_end;
	bool walked; /* the call came to an entry */
	/* The entry that the walk came to last, until it is known what became of it. */
	bool pending, pending_known, pending_taken;
	uint64_t pending_addr;
	struct nrp_hugetlb_view pending_view;
};

/* A page on the way: where it is mapped. */
struct mover {
	uint64_t mm, addr;
	bool mapped; /* mm and addr are known */
	bool taken;  /* the lane takes it, too */
};

/* A page that a lane takes and the kernel left: it moves when the walk is over. */
struct planned {
	int32_t tid;
	uint64_t mm, addr;
};

struct space {
	uint32_t tasks; /* that are known and live */
	int nid;        /* of its last fault + 1; 0: not known */
};

struct run {
	struct nrp_hugetlb_result *ret;
	enum nrp_hugetlb_variant variant;
	bool observed;
	const struct nrp_host_facts *facts;
	struct nrp_hugetlb_tables *tables;
	struct nrp_pages *tasks, *movers, *spaces, *vmas; /* by tid; page; mm; mm and start */
	size_t vma_room;
	struct planned *planned;
	size_t nr_planned, planned_room;
	int32_t walker; /* who planned last */
	uint64_t first, last;
};

static struct task *task_of(struct run *r, int32_t tid)
{
	return nrp_pages_get(r->tasks, (uint32_t)tid, 0);
}

/* ---- smaps ---------------------------------------------------------------------------- */

/* What smaps says of a mapping, if it is more than ever before. */
static void note_vma(struct run *r, struct nrp_hugetlb_vma *v)
{
	uint64_t private, shared;

	nrp_hugetlb_smaps(r->tables, r->variant, v->mm, v->start, v->end, &private, &shared);
	if (private + shared <= v->private + v->shared)
		return;
	v->private = private;
	v->shared = shared;
	nrp_hugetlb_smaps(r->tables, NRP_HUGETLB_ACTUAL, v->mm, v->start, v->end,
			  &v->actual_private, &v->actual_shared);
}

static void note_smaps(struct run *r, uint64_t mm)
{
	for (size_t i = 0; i < r->ret->nr_vmas; i++)
		if (r->ret->vma[i].mm == mm)
			note_vma(r, &r->ret->vma[i]);
}

static void note_all_smaps(struct run *r)
{
	for (size_t i = 0; i < r->ret->nr_vmas; i++)
		note_vma(r, &r->ret->vma[i]);
}

static int see_vma(struct run *r, const struct nrp_hugetlb *h)
{
	uint32_t *known;
	struct nrp_hugetlb_vma *grown;

	if (NRP_NULL(h, hugetlb, vm_start) || NRP_NULL(h, hugetlb, vm_end) ||
	    h->vm_start >= h->vm_end)
		return 0;
	known = nrp_pages_get(r->vmas, h->mm, h->vm_start);
	if (!known)
		return -ENOMEM;
	if (*known) { /* a new one at the same place, or one that was cut */
		r->ret->vma[*known - 1].end = h->vm_end;
		return 0;
	}
	if (r->ret->nr_vmas == r->vma_room) {
		r->vma_room = r->vma_room ? 2 * r->vma_room : 16;
		grown = reallocarray(r->ret->vma, r->vma_room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->ret->vma = grown;
	}
	r->ret->vma[r->ret->nr_vmas++] = (struct nrp_hugetlb_vma){
		.mm = h->mm, .start = h->vm_start, .end = h->vm_end, .tid = h->tid
	};
	*known = (uint32_t)r->ret->nr_vmas;
	return 0;
}

/* ---- tasks ---------------------------------------------------------------------------- */

static int enter_space(struct run *r, struct task *t, uint64_t mm, uint32_t cpu)
{
	struct space *s = nrp_pages_get(r->spaces, mm, 0);

	if (!s)
		return -ENOMEM;
	s->nid = nrp_host_cpu_nid(r->facts, (int)cpu) + 1;
	if (t->mm == mm)
		return 0;
	s->tasks++;
	t->mm = mm;
	return 0;
}

/* Its address space goes with the last task that is known to be in it. */
static int leave_space(struct run *r, struct task *t)
{
	struct space *s = t->mm ? nrp_pages_get(r->spaces, t->mm, 0) : NULL;

	if (!t->mm)
		return 0;
	if (!s)
		return -ENOMEM;
	if (s->tasks && !--s->tasks) {
		note_smaps(r, t->mm);
		nrp_hugetlb_detach_all(r->tables, t->mm);
	}
	t->mm = 0;
	return 0;
}

static int see_life(struct run *r, const struct nrp_task_life *l)
{
	struct task *t = l->kind == NRP_LIFE_FORK ? NULL : task_of(r, l->tid);
	int ret = t ? leave_space(r, t) : 0;

	if (l->kind != NRP_LIFE_FORK && !t)
		return -ENOMEM;
	if (t && l->kind == NRP_LIFE_EXIT)
		memset(t, 0, sizeof(*t)); /* its number may be used again */
	return ret;
}

/* ---- walks ---------------------------------------------------------------------------- */

static void count(struct nrp_hugetlb_count *c, uint64_t lower, uint64_t value, uint64_t upper)
{
	c->lower += lower;
	c->value += value;
	c->upper += upper;
}

/* Whose accesses the move of a page makes local or remote. */
static int add_users(struct run *r, uint64_t mm, uint64_t addr)
{
	uint64_t user;

	for (uint32_t i = 0; (user = nrp_hugetlb_user_of(r->tables, mm, addr, i)); i++) {
		const struct space *s = nrp_pages_get(r->spaces, user, 0);

		if (!s)
			return -ENOMEM;
		r->ret->users[s->nid > 0 && s->nid <= NRP_HUGETLB_NODES ? s->nid - 1
									: NRP_HUGETLB_NODES]++;
	}
	return 0;
}

/* What the lane does with a page that the kernel took, or left. */
static bool lane_takes(struct run *r, const struct task *t, bool taken)
{
	bool all = t->call_flags & MF_MOVE_ALL;
	bool takes = nrp_hugetlb_is_isolated(r->variant, &t->pending_view, all);

	if (r->observed || !t->pending_known) {
		count(&r->ret->isolated, r->observed ? taken : 0, taken, r->observed ? taken : 1);
		return taken;
	}
	/* A page that the kernel left may be where the call wants it. */
	count(&r->ret->isolated, takes && taken, takes, takes);
	if (takes && !taken)
		count(&r->ret->migrated, 0, 1, 1);
	return takes;
}

static int plan(struct run *r, int32_t tid, uint64_t mm, uint64_t addr)
{
	if (r->nr_planned == r->planned_room) {
		size_t room = r->planned_room ? 2 * r->planned_room : 64;
		struct planned *grown = reallocarray(r->planned, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->planned = grown;
		r->planned_room = room;
	}
	r->planned[r->nr_planned++] = (struct planned){ tid, mm, addr };
	r->walker = tid;
	return 0;
}

/* The walk of @tid is over. */
static void move_planned(struct run *r, int32_t tid)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->nr_planned; i++) {
		const struct planned *p = &r->planned[i];

		if (p->tid == tid)
			r->ret->left_by_moves +=
				nrp_hugetlb_unshare_page(r->tables, p->mm, p->addr);
		else
			r->planned[kept++] = *p;
	}
	r->nr_planned = kept;
}

/* It is known what became of the entry that the walk came to last. */
static int settle(struct run *r, struct task *t, int32_t tid)
{
	bool all = t->call_flags & MF_MOVE_ALL, takes;
	int ret;

	if (!t->pending)
		return 0;
	t->pending = false;
	r->ret->decisions++;
	r->ret->unknown += !t->pending_known;
	r->ret->isolated_record += t->pending_taken;
	for (int v = 0; v < NRP_NR_HUGETLB_VARIANTS; v++) {
		struct nrp_hugetlb_tally *tally = &r->ret->tally[v];
		bool yes = t->pending_known && nrp_hugetlb_is_isolated((enum nrp_hugetlb_variant)v,
								       &t->pending_view, all);

		if (!t->pending_known || (yes && !t->pending_taken))
			tally->undecided++;
		else if (yes == t->pending_taken)
			tally->agree++;
		else
			tally->disagree++;
	}
	takes = lane_takes(r, t, t->pending_taken);
	ret = takes && t->pending_known ? add_users(r, t->mm, t->pending_addr) : 0;
	if (ret == 0 && takes && !t->pending_taken)
		ret = plan(r, tid, t->mm, t->pending_addr);
	return ret;
}

/* Nothing of a call of @tid comes after @time. */
static int end_call(struct run *r, struct task *t, int32_t tid, uint64_t time)
{
	if (!t->in_call || time <= t->call_end)
		return 0;
	t->in_call = false;
	if (settle(r, t, tid) < 0)
		return -ENOMEM;
	move_planned(r, tid);
	return 0;
}

static int see_call(struct run *r, const struct nrp_mm_call *c)
{
	struct task *t = task_of(r, c->tid);

	if (!t || end_call(r, t, c->tid, UINT64_MAX) < 0)
		return -ENOMEM;
	if (NRP_NULL(c, mm_call, addr) || NRP_NULL(c, mm_call, len))
		return 0;
	if (c->call == NRP_CALL_MBIND) {
		t->in_call = true;
		t->walked = false;
		t->call_flags = NRP_NULL(c, mm_call, flags) ? 0 : c->flags;
		t->call_end = NRP_NULL(c, mm_call, end_time) ? UINT64_MAX - 1 : c->end_time;
	} else if (c->call == NRP_CALL_MUNMAP && t->mm && !NRP_NULL(c, mm_call, result) &&
		   c->result == 0 && c->len <= UINT64_MAX - c->addr) {
		note_smaps(r, t->mm);
		nrp_hugetlb_clear_range(r->tables, t->mm, c->addr, c->addr + c->len);
	}
	return 0;
}

static int see_queue(struct run *r, const struct nrp_hugetlb *h)
{
	struct task *t = task_of(r, h->tid);
	uint64_t frame;

	if (!t || end_call(r, t, h->tid, h->time) < 0 || settle(r, t, h->tid) < 0)
		return -ENOMEM;
	if (!t->in_call)
		return 0;
	if (!t->walked) {
		t->walked = true;
		r->ret->walks++;
		note_all_smaps(r);
	}
	if (NRP_NULL(h, hugetlb, addr) || NRP_NULL(h, hugetlb, entry) ||
	    !(h->entry & PTE_PRESENT) || !(t->call_flags & (MF_MOVE | MF_MOVE_ALL)))
		return 0;
	frame = (h->entry & PTE_FRAME) | FRAME;
	if (t->mm && nrp_hugetlb_identify(r->tables, t->mm, h->addr, frame) < 0)
		return -ENOMEM;
	t->pending = true;
	t->pending_taken = false;
	t->pending_addr = h->addr;
	t->pending_known = t->mm && nrp_hugetlb_look(r->tables, t->mm, h->addr, &t->pending_view);
	return 0;
}

static int see_isolate(struct run *r, const struct nrp_hugetlb *h)
{
	struct task *t = task_of(r, h->tid);
	struct mover *m;

	if (!t)
		return -ENOMEM;
	if (!t->pending || NRP_NULL(h, hugetlb, page))
		return 0;
	m = nrp_pages_get(r->movers, h->page, 0);
	if (!m)
		return -ENOMEM;
	t->pending_taken = true;
	*m = (struct mover){ .mm = t->mm,
			     .addr = t->pending_addr,
			     .mapped = t->pending_known,
			     .taken = r->observed || !t->pending_known ||
				      nrp_hugetlb_is_isolated(r->variant, &t->pending_view,
							      t->call_flags & MF_MOVE_ALL) };
	return 0;
}

static int see_moved(struct run *r, const struct nrp_hugetlb *h)
{
	struct mover *m = NRP_NULL(h, hugetlb, page) ? NULL : nrp_pages_get(r->movers, h->page, 0);

	r->ret->moved_record++;
	if (!m)
		return NRP_NULL(h, hugetlb, page) ? 0 : -ENOMEM;
	if (!m->mm) { /* by something else than a walk on record: alike in all lanes */
		count(&r->ret->migrated, 1, 1, 1);
		return 0;
	}
	if (m->taken)
		count(&r->ret->migrated, 1, 1, 1);
	if (m->taken && m->mapped)
		r->ret->left_by_moves += nrp_hugetlb_unshare_page(r->tables, m->mm, m->addr);
	memset(m, 0, sizeof(*m));
	return 0;
}

/* ---- faults --------------------------------------------------------------------------- */

static int see_fault(struct run *r, const struct nrp_hugetlb *h)
{
	struct task *t = task_of(r, h->tid);
	int ret = t ? end_call(r, t, h->tid, h->time) : -ENOMEM;

	r->ret->faults++;
	if (ret < 0 || NRP_NULL(h, hugetlb, mm) || NRP_NULL(h, hugetlb, addr) || !h->mm)
		return ret;
	ret = enter_space(r, t, h->mm, h->cpu);
	if (ret == 0)
		ret = see_vma(r, h);
	t->in_fault = true;
	t->fault_addr = h->addr;
	t->fault_failed = NRP_NULL(h, hugetlb, result) || (h->result & FAULT_ERROR);
	return ret;
}

static int see_alloc(struct run *r, const struct nrp_hugetlb *h)
{
	struct task *t = task_of(r, h->tid);
	uint64_t table, now;
	int ret = t ? 0 : -ENOMEM;

	r->ret->allocs++;
	if (ret < 0 || NRP_NULL(h, hugetlb, mm) || NRP_NULL(h, hugetlb, addr) ||
	    NRP_NULL(h, hugetlb, pte) || h->pte < TABLE_SIZE ||
	    (!NRP_NULL(h, hugetlb, size) && h->size != NRP_HUGETLB_SIZE))
		return ret;
	table = h->pte & ~(TABLE_SIZE - 1);
	now = nrp_hugetlb_table(r->tables, h->mm, h->addr);
	if (now && now != table) {
		r->ret->surprises++;
		nrp_hugetlb_detach(r->tables, h->mm, h->addr);
	}
	if (now != table)
		ret = nrp_hugetlb_attach(r->tables, h->mm, h->addr, table);
	if (ret == 0 && t->in_fault && t->mm == h->mm && !t->fault_failed &&
	    t->fault_addr / NRP_HUGETLB_SIZE == h->addr / NRP_HUGETLB_SIZE &&
	    nrp_hugetlb_page(r->tables, h->mm, h->addr) == NRP_HUGETLB_NO_PAGE)
		ret = nrp_hugetlb_install(r->tables, h->mm, h->addr, h->pte);
	t->in_fault = false;
	return ret;
}

static int see_hugetlb(struct run *r, const struct nrp_hugetlb *h)
{
	switch (h->op) {
	case NRP_HUGETLB_FAULT:
		return see_fault(r, h);
	case NRP_HUGETLB_PTE_ALLOC:
		return see_alloc(r, h);
	case NRP_HUGETLB_QUEUE:
		return see_queue(r, h);
	case NRP_HUGETLB_ISOLATE:
		return see_isolate(r, h);
	case NRP_HUGETLB_MOVED:
		return see_moved(r, h);
	default: /* share and unshare follow from the rest */
		return 0;
	}
}

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	struct run *r = context;

	if (!r->first)
		r->first = nrp_row_time(row);
	r->last = nrp_row_time(row);
	if (r->nr_planned) {
		struct task *t = task_of(r, r->walker);

		if (!t || end_call(r, t, r->walker, r->last) < 0)
			return -ENOMEM;
	}
	switch (kind) {
	case NRP_TASK_LIFE:
		return see_life(r, row);
	case NRP_MM_CALL:
		return see_call(r, row);
	default:
		return see_hugetlb(r, row);
	}
}

/* ---- all of it ------------------------------------------------------------------------ */

static int finish(struct run *r)
{
	struct nrp_hugetlb_result *ret = r->ret;
	struct task *t;
	uint64_t tid, none;
	int result = 0;

	for (size_t at = 0; result == 0 && (t = nrp_pages_next(r->tasks, &at, &tid, &none));)
		result = end_call(r, t, (int32_t)tid, UINT64_MAX);
	note_all_smaps(r);
	for (size_t i = 0; i < ret->nr_vmas; i++) {
		ret->private += ret->vma[i].private;
		ret->shared += ret->vma[i].shared;
		ret->actual_private += ret->vma[i].actual_private;
		ret->actual_shared += ret->vma[i].actual_shared;
	}
	ret->ns = r->last - r->first;
	ret->work = *nrp_hugetlb_work(r->tables);
	return result;
}

int nrp_hugetlb_run(struct nrp_hugetlb_result *ret, struct nrp_store *store,
		    const struct nrp_capture *capture, enum nrp_hugetlb_variant variant,
		    bool observed, struct nrp_error *err)
{
	/* At equal times the earlier line comes first. */
	static const struct nrp_merge_input inputs[] = {
		{ NRP_TASK_LIFE, ~UINT64_C(0) },
		{ NRP_MM_CALL, ~UINT64_C(0) },
		{ NRP_HUGETLB, ~UINT64_C(0) },
	};
	struct run run = {
		.ret = ret,
		.variant = variant,
		.observed = observed,
		.facts = &capture->facts,
		.tables = nrp_hugetlb_tables_new(),
		.tasks = nrp_pages_new(sizeof(struct task)),
		.movers = nrp_pages_new(sizeof(struct mover)),
		.spaces = nrp_pages_new(sizeof(struct space)),
		.vmas = nrp_pages_new(sizeof(uint32_t)),
	};
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	if (!run.tables || !run.tasks || !run.movers || !run.spaces || !run.vmas)
		r = nrp_fail_nomem(err);
	if (r == 0)
		r = nrp_merge_each(store, capture->id, inputs, sizeof(inputs) / sizeof(inputs[0]),
				   see, &run, err);
	if (r == 0 && finish(&run) < 0)
		r = nrp_fail_nomem(err);
	nrp_hugetlb_tables_free(run.tables);
	nrp_pages_free(run.tasks);
	nrp_pages_free(run.movers);
	nrp_pages_free(run.spaces);
	nrp_pages_free(run.vmas);
	free(run.planned);
	return r;
}

void nrp_hugetlb_result_clear(struct nrp_hugetlb_result *result)
{
	free(result->vma);
	result->vma = NULL;
	result->nr_vmas = 0;
}
