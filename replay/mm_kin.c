/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/mm_kin.h"
#include "replay/host.h"
#include "replay/merge.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Union-find. A node is a stretch of a task's life between two execs, or an address space; nodes
 * are numbered from 1, 0 means none yet.
 */
struct nrp_mm_kin {
	size_t *parent;
	size_t nr_nodes, room;
	struct nrp_pages *mm;   /* (mm, 0) -> struct space */
	struct nrp_pages *task; /* (tid, 0) -> struct task */
	struct nrp_pages *page; /* (struct page, virtual page) -> size_t: node of a user of it */
};

struct task {
	size_t node; /* of what it runs now */
	uint64_t mm; /* that it was last seen on; 0: none since its birth or exec */
};

struct space {
	size_t node;
	int32_t tgid; /* 0: not known */
};

static size_t new_node(struct nrp_mm_kin *k)
{
	if (k->nr_nodes + 1 >= k->room) {
		size_t room = k->room ? 2 * k->room : 256;
		size_t *grown = reallocarray(k->parent, room, sizeof(*grown));

		if (!grown)
			return 0;
		k->parent = grown;
		k->room = room;
	}
	k->nr_nodes++;
	k->parent[k->nr_nodes] = k->nr_nodes;
	return k->nr_nodes;
}

static size_t root(struct nrp_mm_kin *k, size_t node)
{
	while (k->parent[node] != node)
		node = k->parent[node] = k->parent[k->parent[node]];
	return node;
}

static void join(struct nrp_mm_kin *k, size_t a, size_t b)
{
	k->parent[root(k, a)] = root(k, b);
}

/* The node that @slot holds, made on first use; 0: out of memory. */
static size_t node_of(struct nrp_mm_kin *k, size_t *slot)
{
	if (!*slot)
		*slot = new_node(k);
	return *slot;
}

static struct task *task_of(struct nrp_mm_kin *k, int32_t tid)
{
	struct task *task = nrp_pages_get(k->task, (uint32_t)tid, 0);

	return task && node_of(k, &task->node) ? task : NULL;
}

/* A task was seen running on @mm. */
static int seen(struct nrp_mm_kin *k, int32_t tid, uint64_t mm, int32_t tgid)
{
	struct task *task = task_of(k, tid);
	struct space *space = nrp_pages_get(k->mm, mm, 0);

	if (!task || !space || !node_of(k, &space->node))
		return -ENOMEM;
	if (tgid > 0)
		space->tgid = tgid;
	if (!task->mm)
		join(k, task->node, space->node);
	else if (task->mm != mm)
		task->node = space->node; /* an exec that is not on record, or a borrowed mm */
	task->mm = mm;
	return 0;
}

static int life(struct nrp_mm_kin *k, const struct nrp_task_life *l)
{
	bool fork = l->kind == NRP_LIFE_FORK && !NRP_NULL(l, task_life, child_tid);
	struct task *task;
	size_t node = 0;

	if (!fork && l->kind != NRP_LIFE_EXEC)
		return 0;
	if (fork) {
		task = task_of(k, l->tid);
		if (!task)
			return -ENOMEM;
		node = task->node;
	}
	task = nrp_pages_get(k->task, (uint32_t)(fork ? l->child_tid : l->tid), 0);
	if (!task)
		return -ENOMEM;
	*task = (struct task){ .node = node };
	return 0;
}

/* mapcount is raw: 0 is mapped once. */
static bool perhaps_shared(const struct nrp_hint_fault *f)
{
	return !NRP_NULL(f, hint_fault, page) &&
	       (NRP_NULL(f, hint_fault, mapcount) || f->mapcount > 0);
}

static int fault(struct nrp_mm_kin *k, const struct nrp_hint_fault *f, uint64_t page_size)
{
	struct space *space;
	size_t *user;
	int r;

	if (NRP_NULL(f, hint_fault, mm))
		return 0;
	r = seen(k, f->tid, f->mm, NRP_NULL(f, hint_fault, tgid) ? 0 : f->tgid);
	if (r < 0 || !perhaps_shared(f))
		return r;
	space = nrp_pages_get(k->mm, f->mm, 0);
	user = nrp_pages_get(k->page, f->page, nrp_page_of(f->addr, page_size, 1));
	if (!space || !user)
		return -ENOMEM;
	if (*user)
		join(k, *user, space->node);
	*user = space->node;
	return 0;
}

/* ---- three record kinds, in order of time ------------------------------------------- */

struct loading {
	struct nrp_mm_kin *k;
	uint64_t page_size;
};

static int apply(void *context, enum nrp_record_kind kind, const void *row)
{
	const struct loading *loading = context;
	struct nrp_mm_kin *k = loading->k;
	const struct nrp_migration_wait *w = row;

	if (kind == NRP_TASK_LIFE)
		return life(k, row);
	if (kind == NRP_HINT_FAULT)
		return fault(k, row, loading->page_size);
	return NRP_NULL(w, migration_wait, mm) ? 0 : seen(k, w->tid, w->mm, 0);
}

static int read_all(struct nrp_mm_kin *k, struct nrp_store *store,
		    const struct nrp_capture *capture, struct nrp_error *err)
{
	static const struct nrp_merge_input inputs[] = {
		{ NRP_TASK_LIFE, ~UINT64_C(0) },
		{ NRP_HINT_FAULT, NRP_BIT(hint_fault, tid) | NRP_BIT(hint_fault, tgid) |
					  NRP_BIT(hint_fault, mm) | NRP_BIT(hint_fault, addr) |
					  NRP_BIT(hint_fault, page) |
					  NRP_BIT(hint_fault, mapcount) },
		{ NRP_MIGRATION_WAIT, ~UINT64_C(0) },
	};
	struct loading loading = { k, nrp_host_page_size(&capture->facts) };

	return nrp_merge_each(store, capture->id, inputs, sizeof(inputs) / sizeof(inputs[0]), apply,
			      &loading, err);
}

int nrp_mm_kin_load(struct nrp_mm_kin **ret, struct nrp_store *store,
		    const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_mm_kin *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return nrp_fail_nomem(err);
	k->mm = nrp_pages_new(sizeof(struct space));
	k->task = nrp_pages_new(sizeof(struct task));
	k->page = nrp_pages_new(sizeof(size_t));
	r = k->mm && k->task && k->page ? read_all(k, store, capture, err) : nrp_fail_nomem(err);
	k->page = nrp_pages_free(k->page);
	if (r < 0) {
		nrp_mm_kin_free(k);
		return r;
	}
	*ret = k;
	return 0;
}

struct nrp_mm_kin *nrp_mm_kin_free(struct nrp_mm_kin *k)
{
	if (k) {
		free(k->parent);
		nrp_pages_free(k->mm);
		nrp_pages_free(k->task);
		nrp_pages_free(k->page);
		free(k);
	}
	return NULL;
}

bool nrp_mm_kin_related(struct nrp_mm_kin *k, uint64_t mm, uint64_t other)
{
	const struct space *a = nrp_pages_get(k->mm, mm, 0);
	size_t node = a ? a->node : 0;
	const struct space *b = nrp_pages_get(k->mm, other, 0);

	return node && b && b->node && root(k, node) == root(k, b->node);
}

int32_t nrp_mm_kin_tgid(struct nrp_mm_kin *k, uint64_t mm)
{
	const struct space *s = nrp_pages_get(k->mm, mm, 0);

	return s && s->tgid ? s->tgid : -1;
}

bool nrp_mm_kin_has_any(struct nrp_mm_kin *k, uint64_t mm)
{
	const struct space *a = nrp_pages_get(k->mm, mm, 0);
	size_t node = a && a->node ? root(k, a->node) : 0, position = 0;
	const struct task *t;
	uint64_t key, unused;

	while (node && (t = nrp_pages_next(k->task, &position, &key, &unused)))
		if (t->node && t->mm != mm && root(k, t->node) == node)
			return true;
	return false;
}
