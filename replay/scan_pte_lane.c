/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_pte_lane.h"
#include "replay/attempts.h"
#include "replay/cells.h"
#include "replay/host.h"
#include "replay/merge.h"
#include "replay/pages.h"
#include "replay/scan_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIN_REFERENCES 1024
/* Forks between a process and the ancestor whose scanned entries it may have inherited. */
#define MAX_ANCESTORS 8
#define NR_HOLDERS 64 /* faults that came last: far more than there are at once on one page */
/* Address spaces of a family whose writes are followed. */
#define MAX_MEMBERS 4
/* Bit of a page fault's error code. */
#define ERROR_WRITE 2

/* Processes that may share anonymous pages: related by forks without an exec in between. */
struct family {
	uint64_t last_fork; /* ns, 0: none seen */
	uint32_t live;      /* its tasks that have not exited */
	bool complete;      /* it began with an exec in the capture: all members are known */
	uint64_t alone_mm;  /* all live members are threads of this one, 0: not known */
	struct {
		uint64_t mm, time; /* last tasks to leave, of two address spaces; 0 time: none */
	} left[2];
	uint64_t member[MAX_MEMBERS]; /* its address spaces */
	uint32_t nr_members;          /* more than MAX_MEMBERS: not all are listed */
	/* ns: last time that a task did this whose address space is not known, 0: never */
	uint64_t stranger_wrote, stranger_left;
};

struct task {
	uint32_t family; /* 0: not known */
	bool gone;
	uint64_t mm;        /* 0: not known yet */
	uint64_t parent_mm; /* 0: born by exec, or not known */
	uint64_t born;      /* ns, 0: before the capture */
};

struct mm {
	uint32_t family; /* 0: not known */
	uint32_t live;   /* tasks known to live in it */
	uint64_t parent_mm, born;
	uint64_t left; /* ns: when its last task did */
	int32_t users; /* at its last scan pass, -1 unknown */
};

/* A huge-page-aligned stretch of one VMA: the scanner arms it as a whole. */
struct cell {
	uint64_t armed;                 /* ns: the last covering scan, 0: none */
	uint64_t before_fork;           /* the last one before the family's last fork */
	uint64_t fork;                  /* the fork that before_fork is about */
	enum nrp_known single_threaded; /* at the last covering scan */
	int16_t nid;                    /* of the scanning CPU, -1 unknown */
};

struct page {
	uint64_t fault; /* ns of the last one, 0: none */
	bool anonymous; /* its references were all mappings once: not in the page cache */
};

/* A page that all living members of a family map. */
struct everyones {
	uint64_t time, fork; /* ns: the last fault that shows it, and the last fork before */
};

/* A fault that took its page before it began, and gives it to an attempt. */
struct holder {
	uint64_t frame, time, until; /* ns: until the attempt began */
};

/* Most faults of a capture show the same few things of their entry: answers that were given. */
struct given {
	struct nrp_scan_pte pte;
	enum nrp_known pmd;
	bool used;
	enum nrp_scan_pte_answer answer[NRP_NR_SCAN_PTE_VARIANTS];
};
#define NR_GIVEN 64

struct nrp_scan_pte_lane {
	const struct nrp_host_facts *facts;
	struct given given[NR_GIVEN];
	struct nrp_scan_pte_policy asked[NRP_NR_SCAN_PTE_VARIANTS]; /* that given answers */
	size_t nr_asked;
	int host;
	uint64_t page_size, huge_size, huge_pages;
	struct holder holders[NR_HOLDERS];
	size_t next_holder;
	int32_t own_references; /* that the fault itself holds where its counts are read */
	uint64_t stranger_fork; /* last fork in a family that is not complete */
	struct family *family;  /* [0] is not used */
	uint32_t nr_families, family_room;
	uint64_t writes_since; /* ns: first page fault on record, 0: none */
	struct nrp_pages *tasks, *mms, *cells, *pages;
	struct nrp_pages *everyones;                 /* by (family, page): struct everyones */
	struct nrp_scan_pte_proofs *known, *learned; /* of the whole capture; NULL: none */
	struct nrp_pages *written;  /* keyed by (mm, page): ns of the first write since a fork */
	struct nrp_pages *together; /* keyed by (family, page): ns when all its spaces shared it */
	struct nrp_pages *proved;   /* by (family, page pointer): address of an anonymous page */
};

int nrp_scan_pte_lane_new(struct nrp_scan_pte_lane **ret, const struct nrp_host_facts *facts,
			  int host_variant)
{
	struct nrp_scan_pte_lane *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->facts = facts;
	l->host = host_variant;
	l->page_size = nrp_host_page_size(facts);
	l->huge_pages = nrp_host_huge_pages(facts);
	l->huge_size = l->page_size * l->huge_pages;
	/* With a prepare step the page is taken after the policy was asked, before that ahead. */
	l->own_references = facts->has_prepare_step ? 0 : 1;
	l->nr_families = 1;
	l->tasks = nrp_pages_new(sizeof(struct task));
	l->mms = nrp_pages_new(sizeof(struct mm));
	l->cells = nrp_pages_new(sizeof(struct cell));
	l->pages = nrp_pages_new_dense(sizeof(struct page));
	l->proved = nrp_pages_new_dense(sizeof(uint64_t));
	l->everyones = nrp_pages_new_dense(sizeof(struct everyones));
	l->written = nrp_pages_new_dense(sizeof(uint64_t));
	l->together = nrp_pages_new_dense(sizeof(uint64_t));
	if (!l->written || !l->together || !l->tasks || !l->mms || !l->cells || !l->pages ||
	    !l->proved || !l->everyones) {
		nrp_scan_pte_lane_free(l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

void nrp_scan_pte_lane_know(struct nrp_scan_pte_lane *l, struct nrp_scan_pte_proofs *proofs)
{
	l->known = proofs;
}

struct nrp_scan_pte_lane *nrp_scan_pte_lane_free(struct nrp_scan_pte_lane *l)
{
	if (l) {
		nrp_pages_free(l->tasks);
		nrp_pages_free(l->mms);
		nrp_pages_free(l->cells);
		nrp_pages_free(l->pages);
		nrp_pages_free(l->proved);
		nrp_pages_free(l->everyones);
		nrp_pages_free(l->written);
		nrp_pages_free(l->together);
		free(l->family);
		free(l);
	}
	return NULL;
}

/* ---- families ----------------------------------------------------------------------- */

/* 0: out of memory. */
static uint32_t new_family(struct nrp_scan_pte_lane *l, bool complete)
{
	if (l->nr_families >= l->family_room) {
		uint32_t room = l->family_room ? l->family_room * 2 : 64;
		struct family *grown;

		if (room <= l->family_room)
			return 0;
		grown = reallocarray(l->family, room, sizeof(*grown));
		if (!grown)
			return 0;
		l->family = grown;
		l->family_room = room;
	}
	l->family[l->nr_families] = (struct family){ .complete = complete };
	return l->nr_families++;
}

static int join(struct nrp_scan_pte_lane *l, struct task *t, uint32_t family, bool complete)
{
	if (!family)
		family = new_family(l, complete);
	if (!family)
		return -ENOMEM;
	t->family = family;
	t->gone = false;
	l->family[family].live++;
	return 0;
}

/* A task exits, or leaves its address space by an exec. */
static int leave(struct nrp_scan_pte_lane *l, struct task *t, uint64_t time)
{
	struct family *f;
	struct mm *m;

	if (!t->family || t->gone)
		return 0;
	f = &l->family[t->family];
	f->live--;
	if (!t->mm)
		t->mm = f->alone_mm;
	else if (t->mm != f->alone_mm)
		f->alone_mm = 0;
	if (f->left[0].mm != t->mm || !f->left[0].time)
		f->left[1] = f->left[0];
	f->left[0].mm = t->mm;
	f->left[0].time = time;
	if (t->mm) {
		m = nrp_pages_get(l->mms, t->mm, 0);
		if (!m)
			return -ENOMEM;
		if (m->family == t->family && m->live && !--m->live)
			m->left = time;
	} else {
		f->stranger_left = time;
	}
	t->gone = true;
	return 0;
}

static struct task *get_task(struct nrp_scan_pte_lane *l, int32_t tid)
{
	return nrp_pages_get(l->tasks, (uint32_t)tid, 0);
}

static int see_fork(struct nrp_scan_pte_lane *l, const struct nrp_task_life *life)
{
	struct task *t = get_task(l, life->tid);
	uint64_t parent_mm;
	uint32_t family;
	int r = 0;

	if (!t)
		return -ENOMEM;
	if (!t->family || t->gone) {
		*t = (struct task){ 0 };
		r = join(l, t, 0, false);
		if (r < 0)
			return r;
	}
	family = t->family;
	parent_mm = t->mm;
	l->family[family].last_fork = life->time;
	l->family[family].alone_mm = 0;
	if (!l->family[family].complete)
		l->stranger_fork = life->time;
	t = get_task(l, life->child_tid);
	if (!t)
		return -ENOMEM;
	r = leave(l, t, life->time); /* the number is used again */
	if (r < 0)
		return r;
	*t = (struct task){ .parent_mm = parent_mm, .born = life->time };
	return join(l, t, family, false);
}

static int see_exec(struct nrp_scan_pte_lane *l, const struct nrp_task_life *life)
{
	struct task *t = get_task(l, life->tid);
	int r = t ? leave(l, t, life->time) : -ENOMEM;

	if (r < 0)
		return r;
	*t = (struct task){ .born = life->time };
	return join(l, t, 0, true);
}

int nrp_scan_pte_lane_life(struct nrp_scan_pte_lane *l, const struct nrp_task_life *life)
{
	struct task *t;

	if (life->kind == NRP_LIFE_FORK)
		return NRP_NULL(life, task_life, child_tid) ? 0 : see_fork(l, life);
	if (life->kind == NRP_LIFE_EXEC)
		return see_exec(l, life);
	t = get_task(l, life->tid);
	return t ? leave(l, t, life->time) : -ENOMEM;
}

static void add_member(struct family *f, uint64_t mm)
{
	for (uint32_t i = 0; i < f->nr_members && i < MAX_MEMBERS; i++)
		if (f->member[i] == mm)
			return;
	if (f->nr_members < MAX_MEMBERS)
		f->member[f->nr_members] = mm;
	if (f->nr_members <= MAX_MEMBERS)
		f->nr_members++;
}

/* A task was seen in an address space. */
static int live_in(struct nrp_scan_pte_lane *l, int32_t tid, uint64_t mm)
{
	struct mm *m = nrp_pages_get(l->mms, mm, 0);
	struct task *t = get_task(l, tid);
	int r;

	if (!m || !t)
		return -ENOMEM;
	if (!t->family || t->gone) {
		*t = (struct task){ 0 };
		r = join(l, t, m->live ? m->family : 0, false);
		if (r < 0)
			return r;
	}
	if (t->mm == mm)
		return 0;
	t->mm = mm;
	if (!m->family || m->family != t->family || !m->live)
		*m = (struct mm){
			.family = t->family, .parent_mm = t->parent_mm, .born = t->born, .users = -1
		};
	m->live++;
	add_member(&l->family[t->family], mm);
	return 0;
}

/* ---- scans -------------------------------------------------------------------------- */

static struct cell *get_cell(struct nrp_scan_pte_lane *l, uint64_t mm, uint64_t vm_start,
			     uint64_t addr)
{
	return nrp_pages_get(l->cells, mm, nrp_cell_of(l->huge_size, vm_start, addr));
}

int nrp_scan_pte_lane_pass(struct nrp_scan_pte_lane *l, const struct nrp_scan_pass *p)
{
	int r = live_in(l, p->tid, p->mm);
	struct family *f;
	struct mm *m;

	if (r < 0)
		return r;
	m = nrp_pages_get(l->mms, p->mm, 0);
	if (!m)
		return -ENOMEM;
	m->users = NRP_NULL(p, scan_pass, mm_users) ? -1 : p->mm_users;
	f = &l->family[m->family];
	if (!NRP_NULL(p, scan_pass, nr_threads) && p->nr_threads > 0 &&
	    (uint32_t)p->nr_threads == f->live)
		f->alone_mm = p->mm;
	return 0;
}

/* Scans from before the address space was born belong to another one at the same pointer. */
static void forget_old(struct cell *c, const struct mm *m)
{
	if (c->armed && c->armed < m->born)
		*c = (struct cell){ 0 };
}

/* When the last fork that may concern this address space was. */
static uint64_t last_fork(const struct nrp_scan_pte_lane *l, const struct mm *m)
{
	const struct family *f = &l->family[m->family];

	if (!f->complete && l->stranger_fork > f->last_fork)
		return l->stranger_fork;
	return f->last_fork;
}

int nrp_scan_pte_lane_range(struct nrp_scan_pte_lane *l, const struct nrp_scan_range *g)
{
	uint64_t vm_start = NRP_NULL(g, scan_range, vm_start) ? 0 : g->vm_start, fork;
	const struct mm *m;

	if (NRP_NULL(g, scan_range, mm) || g->start >= g->end ||
	    g->end - g->start > NRP_MAX_SCAN_RANGE)
		return 0;
	m = nrp_pages_get(l->mms, g->mm, 0);
	if (!m)
		return -ENOMEM;
	fork = m->family ? last_fork(l, m) : 0;
	for (uint64_t at = g->start; at < g->end; at = nrp_cell_next(l->huge_size, at)) {
		struct cell *c = get_cell(l, g->mm, vm_start, at);

		if (!c)
			return -ENOMEM;
		forget_old(c, m);
		if (c->fork != fork) {
			c->fork = fork;
			c->before_fork = c->armed;
		}
		c->armed = g->time;
		c->single_threaded = m->users < 0 ? NRP_KNOWN_NOT : nrp_known_of(m->users == 1);
		c->nid = (int16_t)nrp_host_cpu_nid(l->facts, (int)g->cpu);
	}
	return 0;
}

/* ---- one fault ---------------------------------------------------------------------- */

/* The page of a fault, for what bridges the time since its entry was armed. */
struct evidence {
	bool counts; /* map count and references are known */
	enum nrp_known base, pmd;
	enum nrp_known shared; /* mapped more than once, at every scan that may have armed it */
};

/* ---- writes of those that share a page ---------------------------------------------------- */

int nrp_scan_pte_lane_page_fault(struct nrp_scan_pte_lane *l, const struct nrp_page_fault *f)
{
	struct task *t = get_task(l, f->tid);
	struct family *family;
	uint64_t *written;

	if (!t)
		return -ENOMEM;
	if (!l->writes_since)
		l->writes_since = f->time;
	if (NRP_NULL(f, page_fault, error_code) || !(f->error_code & ERROR_WRITE) || !t->family ||
	    t->gone)
		return 0;
	family = &l->family[t->family];
	if (!t->mm) {
		family->stranger_wrote = f->time;
		return 0;
	}
	written = nrp_pages_get(l->written, t->mm, f->addr / l->page_size);
	if (!written)
		return -ENOMEM;
	if (*written <= family->last_fork)
		*written = f->time;
	return 0;
}

/* The family's address spaces that live, if every live task is in one of them; 0: not known. */
static uint32_t live_members(struct nrp_scan_pte_lane *l, uint32_t family)
{
	const struct family *f = &l->family[family];
	uint32_t spaces = 0, tasks = 0;

	if (!f->complete || f->nr_members > MAX_MEMBERS)
		return 0;
	for (uint32_t i = 0; i < f->nr_members; i++) {
		const struct mm *m = nrp_pages_get(l->mms, f->member[i], 0);

		if (!m || m->family != family)
			return 0; /* the pointer is another's by now */
		spaces += m->live > 0;
		tasks += m->live;
	}
	return tasks == f->live ? spaces : 0;
}

/* A page mapped as often as there are address spaces is in each of them. */
static int see_together(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			const struct mm *m, uint64_t virtual_page)
{
	uint64_t *together;

	if (!l->writes_since || (uint32_t)f->mapcount + 1 != live_members(l, m->family))
		return 0;
	together = nrp_pages_get(l->together, m->family, virtual_page);
	if (!together)
		return -ENOMEM;
	*together = f->time;
	return 0;
}

/* Did it write to the page between the last fork and @time? */
static bool has_own(struct nrp_scan_pte_lane *l, uint64_t mm, uint64_t virtual_page, uint64_t fork,
		    uint64_t time)
{
	const uint64_t *written = nrp_pages_get(l->written, mm, virtual_page);

	return written && *written > fork && *written <= time;
}

/*
 * Was the anonymous page that @mm alone has now shared when it was armed? Yes, if another had it
 * with @mm since the last fork, and neither wrote to it or left until then; no, if all others did.
 */
static enum nrp_known shared_when_armed(struct nrp_scan_pte_lane *l, uint64_t mm,
					const struct mm *m, uint64_t virtual_page, uint64_t armed)
{
	const struct family *f = &l->family[m->family];
	const uint64_t *together = nrp_pages_get(l->together, m->family, virtual_page);
	uint64_t fork = f->last_fork;
	bool proved, others = false;

	if (!together || !l->writes_since || l->writes_since > fork || armed <= fork ||
	    f->stranger_wrote > fork || f->stranger_left > fork || !live_members(l, m->family))
		return NRP_KNOWN_NOT;
	if (has_own(l, mm, virtual_page, fork, armed))
		return NRP_KNOWN_NO;
	proved = *together > fork && *together <= armed;
	for (uint32_t i = 0; i < f->nr_members; i++) {
		const struct mm *other = nrp_pages_get(l->mms, f->member[i], 0);

		if (f->member[i] != mm && other && (other->live || other->left > armed))
			others |= !has_own(l, f->member[i], virtual_page, fork, armed);
	}
	return !others ? NRP_KNOWN_NO : proved ? NRP_KNOWN_YES : NRP_KNOWN_NOT;
}

/* The last scan of the page before the last fork, here or in an ancestor; 0: none. */
static int armed_before_fork(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			     const struct mm *m, uint64_t vm_start, uint64_t *ret)
{
	uint64_t fork = last_fork(l, m), latest = 0, mm = f->mm, until = fork;

	for (int i = 0; i < MAX_ANCESTORS && mm; i++) {
		const struct mm *ancestor = nrp_pages_get(l->mms, mm, 0);
		struct cell *c = ancestor ? get_cell(l, mm, vm_start, f->addr) : NULL;
		uint64_t armed;

		if (!c)
			return -ENOMEM;
		forget_old(c, ancestor);
		armed = c->armed <= until ? c->armed : c->before_fork;
		if (armed > until)
			armed = until; /* scanned between this fork and a later one */
		if (armed > latest)
			latest = armed;
		until = ancestor->born < until ? ancestor->born : until;
		mm = ancestor->parent_mm;
	}
	*ret = latest;
	return 0;
}

/* Could another address space of the family be alive after @time? */
static bool relatives_since(const struct nrp_scan_pte_lane *l, uint64_t mm, const struct mm *m,
			    uint64_t time)
{
	const struct family *f = &l->family[m->family];

	if (!f->complete || (f->live > m->live && f->alone_mm != mm))
		return true;
	for (int i = 0; i < 2; i++)
		if (f->left[i].time >= time && f->left[i].time && f->left[i].mm != mm)
			return true;
	return false;
}

/* Who scanned it, and from where. */
static void find_scan(const struct cell *c, const struct nrp_hint_fault *f,
		      struct nrp_scan_pte *pte)
{
	pte->single_threaded = c->armed ? c->single_threaded : NRP_KNOWN_NOT;
	if (c->armed && c->nid >= 0 && !NRP_NULL(f, hint_fault, src_nid))
		pte->local = nrp_known_of(c->nid == f->src_nid);
}

/* As many map the shared page as the family has tasks: each of its address spaces does. */
static int note_everyones(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			  const struct mm *m)
{
	const struct family *family = &l->family[m->family];
	struct everyones *e;

	if (!family->complete || (uint32_t)f->mapcount + 1 < family->live)
		return 0;
	e = nrp_pages_get(l->everyones, m->family, f->addr / l->page_size);
	if (!e)
		return -ENOMEM;
	*e = (struct everyones){ .time = f->time, .fork = last_fork(l, m) };
	return 0;
}

uint64_t nrp_scan_pte_lane_shared_until(struct nrp_scan_pte_lane *l, uint64_t mm, uint64_t addr,
					uint64_t from)
{
	const struct mm *m = nrp_pages_get(l->mms, mm, 0);
	const struct everyones *e;

	if (!m || !m->family || m->born > from)
		return 0;
	e = nrp_pages_get(l->everyones, m->family, addr / l->page_size);
	return e && e->time && e->fork <= from ? e->time : 0;
}

static int find_sharing(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			const struct page *p, struct nrp_scan_pte *pte, struct evidence *e)
{
	uint64_t vm_start = NRP_NULL(f, hint_fault, vm_start) ? 0 : f->vm_start, before;
	const struct mm *found = nrp_pages_get(l->mms, f->mm, 0), *m;
	const struct cell *c = get_cell(l, f->mm, vm_start, f->addr);
	struct mm copy;
	int r;

	if (!found || !c)
		return -ENOMEM;
	copy = *found; /* others are looked up meanwhile */
	m = &copy;
	find_scan(c, f, pte);
	if (c->armed && !relatives_since(l, f->mm, m, c->armed)) {
		/* Nobody to share an anonymous page with. */
		if (p->anonymous || e->pmd == NRP_KNOWN_YES)
			e->shared = NRP_KNOWN_NO;
		return 0;
	}
	if (!e->counts || e->base != NRP_KNOWN_YES || !p->anonymous || f->mapcount < 0)
		return 0;
	if (f->mapcount == 0) {
		e->shared = shared_when_armed(l, f->mm, m, f->addr / l->page_size, c->armed);
		return 0;
	}
	if (see_together(l, f, m, f->addr / l->page_size) < 0)
		return -ENOMEM;
	/* Shared now, so it was since the last fork; all scans that may have armed it are later. */
	r = armed_before_fork(l, f, m, vm_start, &before);
	if (r < 0)
		return r;
	if (c->armed && (p->fault ? p->fault >= before : !before && l->family[m->family].complete))
		e->shared = NRP_KNOWN_YES;
	return e->shared == NRP_KNOWN_YES ? note_everyones(l, f, m) : 0;
}

/* References of other faults on the same page frame, that certainly had one at this time. */
static int32_t references_of_others(const struct nrp_scan_pte_lane *l,
				    const struct nrp_hint_fault *f)
{
	int32_t n = 0;

	if (!l->own_references || NRP_NULL(f, hint_fault, page))
		return 0;
	for (size_t i = 0; i < NR_HOLDERS; i++) {
		const struct holder *h = &l->holders[i];

		n += h->frame == f->page && h->time < f->time && f->time < h->until;
	}
	return n;
}

static void note_holder(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f)
{
	if (f->attempt == NRP_ATTEMPT_NONE || NRP_NULL(f, hint_fault, page))
		return;
	l->holders[l->next_holder++ % NR_HOLDERS] = (struct holder){
		.frame = f->page, .time = f->time, .until = f->time + f->attempt_delay
	};
}

/* Of a page that is shared at this fault: what the whole capture shows of it, or learns. */
static int ask_capture(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f, uint32_t family,
		       uint64_t fork, struct page *p)
{
	struct nrp_proved_page page = { .mm = f->mm,
					.vfn = f->addr / l->page_size,
					.frame = NRP_NULL(f, hint_fault, page) ? 0 : f->page };
	const struct mm *shown;
	uint64_t mm;
	int r;

	if (p->anonymous && l->learned)
		return nrp_scan_pte_proofs_add(l->learned, &page, f->time, fork);
	if (p->anonymous || !l->known)
		return 0;
	r = nrp_scan_pte_proofs_hold(l->known, &page, f->time, &mm);
	if (r <= 0)
		return r;
	shown = nrp_pages_get(l->mms, mm, 0);
	if (!shown)
		return -ENOMEM;
	p->anonymous = family && shown->family == family;
	return 0;
}

/* Neighbouring frames as neighbouring keys: the kernel's page structures have a cache line each. */
static uint64_t frame_key(uint64_t frame)
{
	return frame >> 6 | frame << 58;
}

/*
 * Is the page anonymous? Proved where its references are its mappings, once for every relative that
 * has the same page at the same address.
 */
static int prove_anonymous(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			   const struct evidence *e, struct page *p)
{
	const struct mm *m = nrp_pages_get(l->mms, f->mm, 0);
	uint64_t *address = NULL;

	if (!m)
		return -ENOMEM;
	if (!NRP_NULL(f, hint_fault, page)) {
		address = nrp_pages_get(l->proved, m->family, frame_key(f->page));
		if (!address)
			return -ENOMEM;
	}
	if (e->counts && e->base == NRP_KNOWN_YES && f->mapcount >= 0 &&
	    f->refcount == f->mapcount + 1 + l->own_references + references_of_others(l, f))
		p->anonymous = true;
	else if (address && e->base == NRP_KNOWN_YES && *address == f->addr / l->page_size)
		p->anonymous = true;
	if (e->counts && e->base == NRP_KNOWN_YES && f->mapcount >= 1 &&
	    ask_capture(l, f, m->family, last_fork(l, m), p) < 0)
		return -ENOMEM;
	if (address && p->anonymous)
		*address = f->addr / l->page_size;
	return 0;
}

/* What the fault shows of its mapping and of its page's size. */
static struct evidence look_at(const struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			       struct nrp_scan_pte *pte)
{
	struct evidence e = { NRP_NULL(f, hint_fault, mapcount) == 0 &&
				      NRP_NULL(f, hint_fault, refcount) == 0,
			      NRP_KNOWN_NOT, NRP_KNOWN_NOT, NRP_KNOWN_NOT };

	if (!NRP_NULL(f, hint_fault, vm_flags)) {
		pte->cow = nrp_known_of(nrp_vma_is_cow(f->vm_flags));
		pte->vm_shared = nrp_known_of(nrp_vma_is_shared(f->vm_flags));
	}
	if (!NRP_NULL(f, hint_fault, pages)) {
		e.base = nrp_known_of(f->pages == 1);
		e.pmd = nrp_known_of(f->pages == l->huge_pages);
		pte->large = nrp_known_of(f->pages != 1);
	}
	return e;
}

/* Pins last: what is not pinned at the fault was not pinned at the scan. */
static void find_pins(const struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
		      struct nrp_scan_pte *pte)
{
	if (NRP_NULL(f, hint_fault, refcount))
		return;
	if (f->refcount < PIN_REFERENCES)
		pte->refcount = (struct nrp_pte_count){ 1, PIN_REFERENCES - 1 };
	/* One reference: the mapping that faults. */
	if (f->refcount - l->own_references <= 1)
		pte->pinned = NRP_KNOWN_NO;
}

/* Counts at the scan. Others may hold references that come and go: those stay open. */
static void find_counts(const struct page *p, const struct evidence *e, struct nrp_scan_pte *pte)
{
	if (p->anonymous || (e->pmd == NRP_KNOWN_YES && pte->cow == NRP_KNOWN_YES))
		pte->file = NRP_KNOWN_NO;
	if (e->shared == NRP_KNOWN_NO) {
		pte->mapcount = pte->folio_mapcount = nrp_pte_count(0);
		pte->many_mms = NRP_KNOWN_NO;
	} else if (e->shared == NRP_KNOWN_YES) {
		pte->mapcount.min = 1;
		pte->refcount.min = 2;
	}
}

static int gather(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
		  struct nrp_scan_pte *pte, struct evidence *e)
{
	struct page *p;
	int r;

	if (NRP_NULL(f, hint_fault, mm))
		return 0;
	r = live_in(l, f->tid, f->mm);
	if (r < 0)
		return r;
	p = nrp_pages_get(l->pages, f->mm, nrp_page_of(f->addr, l->page_size, nrp_fault_pages(f)));
	if (!p)
		return -ENOMEM;
	/* No page has fewer references than mappings: whoever counts on more is wrong. */
	if (e->counts && e->base == NRP_KNOWN_YES && f->mapcount >= 0 &&
	    f->refcount == f->mapcount + 1)
		l->own_references = 0;
	find_pins(l, f, pte);
	r = prove_anonymous(l, f, e, p);
	if (r == 0)
		r = find_sharing(l, f, p, pte, e);
	if (r == 0)
		find_counts(p, e, pte);
	p->fault = f->time;
	if (r == 0)
		note_holder(l, f);
	return r;
}

/* The shared copy-on-write test of the host let the page through. */
static void passed_cow_test(enum nrp_scan_pte_variant host, struct nrp_scan_pte *pte)
{
	bool base = pte->large == NRP_KNOWN_NO;

	if (host == NRP_SCAN_PTE_F2) { /* one reference: one mapping, and no pin */
		pte->refcount = nrp_pte_count(1);
		pte->folio_mapcount = nrp_pte_count(0);
		pte->pinned = NRP_KNOWN_NO;
	} else if (host >= NRP_SCAN_PTE_F3) {
		pte->pinned = NRP_KNOWN_NO;
		if (base)
			pte->refcount = (struct nrp_pte_count){ 1, PIN_REFERENCES - 1 };
	}
	if (host >= NRP_SCAN_PTE_F4)
		pte->many_mms = NRP_KNOWN_NO;
	if (base || host <= NRP_SCAN_PTE_F2)
		pte->mapcount = nrp_pte_count(0);
}

/*
 * The entry was armed, so it had passed the host's own tests: what that says about the page then.
 * Whole huge pages meet them from F5 on.
 */
static struct nrp_scan_pte as_armed(const struct nrp_scan_pte_lane *l, struct nrp_scan_pte pte)
{
	/* Zero pages, devices and KSM: not armed, or no counted fault, with any kernel. Kernels
	 * that balance tiers only have the test of tiers. */
	pte.armed = pte.no_page = pte.device = pte.ksm = pte.top_tier_only = NRP_KNOWN_NO;
	if (pte.pmd && l->host < NRP_SCAN_PTE_F5)
		return pte;
	pte.local = NRP_KNOWN_NO; /* where it matters: in all kernels since 4.10 */
	if (l->host >= NRP_SCAN_PTE_F1)
		pte.dirty = NRP_KNOWN_NO;
	if (l->host >= NRP_SCAN_PTE_F1 && pte.cow == NRP_KNOWN_YES)
		passed_cow_test((enum nrp_scan_pte_variant)l->host, &pte);
	if (l->host == NRP_SCAN_PTE_F5)
		pte.pinned = NRP_KNOWN_NO;
	return pte;
}

static enum nrp_scan_pte_answer ask(const struct nrp_scan_pte_lane *l, struct nrp_scan_pte pte,
				    bool pmd, const struct nrp_scan_pte_policy *policy)
{
	static const enum nrp_scan_pte_answer answers[] = { [NRP_KNOWN_NO] = NRP_FAULT_AVOIDED,
							    [NRP_KNOWN_YES] = NRP_FAULT_KEPT,
							    [NRP_KNOWN_NOT] = NRP_FAULT_UNKNOWN };

	pte.pmd = pmd;
	pte = as_armed(l, pte);
	return answers[nrp_scan_pte_decide(policy, &pte).arms];
}

static enum nrp_scan_pte_answer answer(const struct nrp_scan_pte_lane *l,
				       const struct nrp_scan_pte *pte, const struct evidence *e,
				       const struct nrp_scan_pte_policy *policy)
{
	enum nrp_scan_pte_answer as_pte, as_pmd;

	/* The host's own variant: it passed. With rules off it passes even more. */
	if ((int)policy->variant == l->host)
		return NRP_FAULT_KEPT;
	if (e->pmd != NRP_KNOWN_NOT)
		return ask(l, *pte, e->pmd == NRP_KNOWN_YES, policy);
	as_pte = ask(l, *pte, false, policy);
	as_pmd = ask(l, *pte, true, policy);
	return as_pte == as_pmd ? as_pte : NRP_FAULT_UNKNOWN;
}

static bool asks_the_same(const struct nrp_scan_pte_lane *l,
			  const struct nrp_scan_pte_policy *policy, size_t nr_policies)
{
	if (nr_policies != l->nr_asked)
		return false;
	for (size_t i = 0; i < nr_policies; i++)
		if (policy[i].variant != l->asked[i].variant ||
		    policy[i].rules != l->asked[i].rules)
			return false;
	return true;
}

static struct given *given_of(struct nrp_scan_pte_lane *l, const struct nrp_scan_pte *pte,
			      const struct evidence *e)
{
	uint32_t key = (uint32_t)pte->mapcount.min ^ (uint32_t)pte->refcount.min << 2;

	key = key * 3 + (uint32_t)pte->local;
	key = key * 3 + (uint32_t)pte->cow;
	key = key * 3 + (uint32_t)pte->single_threaded;
	key = key * 3 + (uint32_t)pte->file;
	key = key * 3 + (uint32_t)pte->pinned;
	key = key * 3 + (uint32_t)e->pmd;
	return &l->given[key % NR_GIVEN];
}

static void answer_all(struct nrp_scan_pte_lane *l, const struct nrp_scan_pte *pte,
		       const struct evidence *e, const struct nrp_scan_pte_policy *policy,
		       size_t nr_policies, enum nrp_scan_pte_answer *ret)
{
	struct given *g = given_of(l, pte, e);

	if (nr_policies > NRP_NR_SCAN_PTE_VARIANTS) {
		for (size_t i = 0; i < nr_policies; i++)
			ret[i] = answer(l, pte, e, &policy[i]);
		return;
	}
	if (!asks_the_same(l, policy, nr_policies)) {
		memset(l->given, 0, sizeof(l->given));
		memcpy(l->asked, policy, nr_policies * sizeof(*policy));
		l->nr_asked = nr_policies;
	}
	/* What differs in padding alone is asked once more. */
	if (!g->used || g->pmd != e->pmd || memcmp(&g->pte, pte, sizeof(*pte)) != 0) {
		*g = (struct given){ .pmd = e->pmd, .used = true };
		memcpy(&g->pte, pte, sizeof(*pte));
		for (size_t i = 0; i < nr_policies; i++)
			g->answer[i] = answer(l, pte, e, &policy[i]);
	}
	memcpy(ret, g->answer, nr_policies * sizeof(*ret));
}

int nrp_scan_pte_lane_fault(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			    const struct nrp_scan_pte_policy *policy, size_t nr_policies,
			    enum nrp_scan_pte_answer *ret)
{
	struct nrp_scan_pte pte = nrp_scan_pte_unknown();
	struct evidence e = look_at(l, f, &pte);
	int r = gather(l, f, &pte, &e);

	if (r == 0)
		answer_all(l, &pte, &e, policy, nr_policies, ret);
	return r;
}

/* ---- a whole capture ---------------------------------------------------------------- */

struct counting {
	struct nrp_scan_pte_lane *lane;
	struct nrp_scan_pte_counts *counts;
	struct nrp_scan_pte_policy policy[NRP_NR_SCAN_PTE_VARIANTS];
};

static int feed(void *context, enum nrp_record_kind kind, const void *row)
{
	const struct counting *counting = context;
	struct nrp_scan_pte_counts *counts = counting->counts;
	struct nrp_scan_pte_lane *l = counting->lane;
	enum nrp_scan_pte_answer answers[NRP_NR_SCAN_PTE_VARIANTS];
	int r;

	if (kind == NRP_TASK_LIFE)
		return nrp_scan_pte_lane_life(l, row);
	if (kind == NRP_SCAN_PASS)
		return nrp_scan_pte_lane_pass(l, row);
	if (kind == NRP_SCAN_RANGE)
		return nrp_scan_pte_lane_range(l, row);
	if (kind == NRP_PAGE_FAULT)
		return nrp_scan_pte_lane_page_fault(l, row);
	r = nrp_scan_pte_lane_fault(l, row, counting->policy, NRP_NR_SCAN_PTE_VARIANTS, answers);
	if (r < 0)
		return r;
	counts->faults++;
	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		counts->answers[v][answers[v]]++;
	return 0;
}

static int feed_all(struct nrp_scan_pte_lane *l, struct nrp_scan_pte_counts *counts,
		    struct nrp_store *store, int64_t capture_id, bool writes, struct nrp_error *err)
{
	static const struct nrp_merge_input inputs[] = {
		{ NRP_TASK_LIFE, ~UINT64_C(0) },
		{ NRP_SCAN_PASS, ~UINT64_C(0) },
		{ NRP_SCAN_RANGE, ~UINT64_C(0) },
		{ NRP_HINT_FAULT,
		  NRP_BIT(hint_fault, time) | NRP_BIT(hint_fault, tid) | NRP_BIT(hint_fault, mm) |
			  NRP_BIT(hint_fault, addr) | NRP_BIT(hint_fault, vm_start) |
			  NRP_BIT(hint_fault, vm_flags) | NRP_BIT(hint_fault, page) |
			  NRP_BIT(hint_fault, pages) | NRP_BIT(hint_fault, mapcount) |
			  NRP_BIT(hint_fault, refcount) | NRP_BIT(hint_fault, src_nid) |
			  NRP_BIT(hint_fault, attempt) | NRP_BIT(hint_fault, attempt_delay) },
		{ NRP_PAGE_FAULT, ~UINT64_C(0) }
	};
	struct counting counting = { .lane = l, .counts = counts };
	size_t n = sizeof(inputs) / sizeof(inputs[0]) - !writes;

	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		counting.policy[v] = nrp_scan_pte_policy((enum nrp_scan_pte_variant)v);
	return nrp_merge_each(store, capture_id, inputs, n, feed, &counting, err);
}

int nrp_scan_pte_lane_count(struct nrp_scan_pte_counts *ret, struct nrp_store *store,
			    const struct nrp_capture *capture, int host_variant,
			    struct nrp_scan_pte_proofs *learned, struct nrp_error *err)
{
	struct nrp_scan_pte_counts counts = { 0 };
	struct nrp_scan_pte_lane *l;
	int32_t own_references;
	int r;

	if (nrp_scan_pte_lane_new(&l, &capture->facts, host_variant) < 0)
		return nrp_fail_nomem(err);
	l->learned = learned;
	own_references = l->own_references;
	r = feed_all(l, &counts, store, capture->id, !capture->lost_events && !capture->loss_gaps,
		     err);
	if (learned && l->own_references != own_references)
		nrp_scan_pte_proofs_revoke(learned);
	nrp_scan_pte_lane_free(l);
	if (r == 0)
		*ret = counts;
	return r;
}

uint32_t nrp_scan_pte_possible_hosts(const struct nrp_scan_pte_counts *counts)
{
	uint32_t possible = 0;

	for (int v = 0; v < NRP_NR_SCAN_PTE_VARIANTS; v++)
		if (!counts->answers[v][NRP_FAULT_AVOIDED])
			possible |= 1u << v;
	return possible;
}
