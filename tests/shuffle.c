/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shuffle.h"
#include "replay/attempts.h"
#include "replay/pages.h"
#include "test_random.h"

#include <string.h>

#include "store_util.h"

struct place {
	uint64_t vm_start;
	bool seen;
	int16_t nid, first;
	uint32_t cpupid;
	uint64_t time; /* of the last fault */
	uint32_t pages;
};

struct task {
	bool known;
	int16_t preferred_nid;
	int32_t scan_seq;
};

struct shuffling {
	uint64_t random;
	const struct nrp_host_facts *facts;
	struct nrp_filter_host host;
	enum nrp_filter_variant filter;
	int closed;
	struct nrp_pages *places, *tasks;
	struct shuffled known;
};

/* Seeds that are alike give states that are not (splitmix64). */
static uint64_t mix(uint64_t seed)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
	return seed ^ seed >> 31;
}

/* A node with CPUs. */
static int16_t draw_nid(struct shuffling *s)
{
	return s->facts->cpu_nid[random_range(&s->random, 0, (uint64_t)s->facts->nr_cpus - 1)];
}

static uint32_t draw_cpu(struct shuffling *s, int16_t nid)
{
	uint32_t cpu;

	do
		cpu = (uint32_t)random_range(&s->random, 0, (uint64_t)s->facts->nr_cpus - 1);
	while (s->facts->cpu_nid[cpu] != nid);
	return cpu;
}

static struct place *place_of(struct shuffling *s, const struct nrp_hint_fault *f)
{
	uint64_t pages = nrp_fault_pages(f);
	struct place *p = nrp_pages_get(s->places, f->mm, f->addr / 4096 / pages);

	assert_non_null(p);
	if (p->seen)
		return p;
	p->seen = true;
	p->nid = p->first = draw_nid(s);
	p->cpupid = nrp_filter_cpupid_unset(&s->host);
	p->time = f->time;
	p->pages = nrp_fault_pages(f);
	p->vm_start = f->vm_start;
	return p;
}

/* The time since the page's last fault. */
static void count_time(struct shuffling *s, const struct place *p, uint64_t now)
{
	double seconds = (double)(now - p->time) * 1e-9 * p->pages;

	size_t i = 0;

	s->known.seconds += seconds;
	s->known.squares += seconds * seconds;
	while (i < s->known.nr_vmas && s->known.vma[i].vm_start != p->vm_start)
		i++;
	if (i == sizeof(s->known.vma) / sizeof(s->known.vma[0]))
		return;
	if (i == s->known.nr_vmas)
		s->known.vma[s->known.nr_vmas++].vm_start = p->vm_start;
	s->known.vma[i].squares += seconds * seconds;
}

static void count_fault(struct shuffling *s, const struct place *p, const struct nrp_hint_fault *f,
			int16_t nid)
{
	s->known.faults++;
	s->known.remote += p->nid != nid;
	s->known.remote_still += p->first != nid;
	s->known.apart += p->first != p->nid;
	count_time(s, p, f->time);
}

/* After its last fault a page stays where it is until the end. */
static void count_ends(struct shuffling *s, uint64_t end)
{
	const struct place *p;
	size_t position = 0;
	uint64_t mm, page;

	while ((p = nrp_pages_next(s->places, &position, &mm, &page)))
		count_time(s, p, end);
}

/* What the task's last filter call on record showed of it. */
static struct task *learn_task(struct shuffling *s, const struct nrp_hint_fault *f)
{
	struct task *t = nrp_pages_get(s->tasks, (uint32_t)f->tid, 0);

	assert_non_null(t);
	if (!NRP_NULL(f, hint_fault, filter_delay) && !NRP_NULL(f, hint_fault, scan_seq) &&
	    !NRP_NULL(f, hint_fault, preferred_nid)) {
		t->known = true;
		t->preferred_nid = f->preferred_nid;
		t->scan_seq = f->scan_seq;
	}
	return t;
}

#define CLEAR(f, field) ((f)->field = 0, (f)->null |= NRP_BIT(hint_fault, field))

static void clear_decisions(struct nrp_hint_fault *f)
{
	CLEAR(f, page);
	CLEAR(f, page_flags);
	CLEAR(f, filter_delay);
	CLEAR(f, dst_cpu);
	CLEAR(f, preferred_nid);
	CLEAR(f, scan_seq);
	CLEAR(f, scan_period);
	CLEAR(f, numa_group);
	CLEAR(f, group_id);
	CLEAR(f, group_cpu_src);
	CLEAR(f, group_cpu_dst);
	CLEAR(f, group_mem_src);
	CLEAR(f, group_mem_dst);
	CLEAR(f, filter_answer);
	CLEAR(f, attempt_delay);
	CLEAR(f, attempt_ns);
	CLEAR(f, attempt_jiffies);
	CLEAR(f, attempt_nid);
	CLEAR(f, prepare_result);
	CLEAR(f, migrate_result);
	CLEAR(f, moved);
	CLEAR(f, ratelimited);
	CLEAR(f, migrated_pages);
	CLEAR(f, failed_pages);
	NRP_SET(f, hint_fault, attempt, NRP_ATTEMPT_NONE);
	NRP_SET(f, hint_fault, target_nid, -1);
	NRP_SET(f, hint_fault, inferred, 0);
}

/* The host's filter: it is asked only, and its answer kept, where this kernel asks it. */
static bool ask_filter(struct shuffling *s, struct nrp_hint_fault *f, const struct task *t,
		       struct place *p)
{
	struct nrp_filter_call call;
	struct nrp_filter_result answer;

	if (!nrp_filter_is_called(s->filter, f->src_nid, f->this_nid))
		return false;
	NRP_SET(f, hint_fault, filter_delay, 1);
	NRP_SET(f, hint_fault, dst_cpu, (int32_t)f->cpu);
	NRP_SET(f, hint_fault, preferred_nid, t->known ? t->preferred_nid : 0);
	NRP_SET(f, hint_fault, scan_seq, t->known ? t->scan_seq : 100);
	assert_true(nrp_filter_call_of(&call, s->facts, f));
	answer = nrp_filter_decide(s->filter, &s->host, &call);
	NRP_SET(f, hint_fault, filter_answer,
		answer.answer == NRP_FILTER_MOVE && f->this_nid != s->closed);
	p->cpupid = nrp_filter_cpupid(&s->host, (int)f->cpu, f->tid);
	return f->filter_answer;
}

static void try_to_move(struct shuffling *s, struct nrp_hint_fault *f)
{
	bool moved = random_range(&s->random, 1, 10) > 1;
	uint32_t pages = nrp_fault_pages(f);

	NRP_SET(f, hint_fault, target_nid, f->this_nid);
	NRP_SET(f, hint_fault, attempt, NRP_ATTEMPT_FOLIO);
	NRP_SET(f, hint_fault, attempt_delay, 0);
	NRP_SET(f, hint_fault, attempt_ns, 1000);
	NRP_SET(f, hint_fault, attempt_jiffies, nrp_ticks(f->time, s->facts->hz));
	NRP_SET(f, hint_fault, attempt_nid, f->this_nid);
	NRP_SET(f, hint_fault, moved, moved);
	NRP_SET(f, hint_fault, migrated_pages, moved ? pages : 0);
	NRP_SET(f, hint_fault, failed_pages, moved ? 0 : pages);
	if (s->facts->has_prepare_step)
		NRP_SET(f, hint_fault, prepare_result, 0);
	if (s->facts->has_ratelimit_event)
		NRP_SET(f, hint_fault, ratelimited, 0);
	s->known.moves += moved;
}

static bool shuffle_fault(struct shuffling *s, struct nrp_hint_fault *f)
{
	const struct task *task = learn_task(s, f);
	struct place *p;

	if (NRP_NULL(f, hint_fault, mm))
		return false;
	p = place_of(s, f);
	f->this_nid = draw_nid(s);
	f->cpu = draw_cpu(s, f->this_nid);
	count_fault(s, p, f, f->this_nid);
	clear_decisions(f);
	NRP_SET(f, hint_fault, this_nid, f->this_nid);
	NRP_SET(f, hint_fault, src_nid, p->nid);
	NRP_SET(f, hint_fault, last_cpupid, p->cpupid);
	if (ask_filter(s, f, task, p) && f->src_nid != f->this_nid)
		try_to_move(s, f);
	if (f->moved)
		p->nid = f->this_nid;
	p->time = f->time;
	if (!NRP_NULL(f, hint_fault, mem_nid))
		f->mem_nid = p->nid;
	if (!NRP_NULL(f, hint_fault, tnf_flags)) {
		f->tnf_flags &=
			(uint8_t) ~(NRP_TNF_MIGRATED | NRP_TNF_FAULT_LOCAL | NRP_TNF_MIGRATE_FAIL);
		f->tnf_flags |= f->moved ? NRP_TNF_MIGRATED : 0;
		f->tnf_flags |= p->nid == f->this_nid ? NRP_TNF_FAULT_LOCAL : 0;
	}
	return true;
}

static bool shuffle_row(void *context, enum nrp_record_kind kind, void *row)
{
	switch (kind) {
	case NRP_HINT_FAULT:
		return shuffle_fault(context, row);
	case NRP_SCAN_PASS:
	case NRP_SCAN_RANGE:
	case NRP_SCAN_SKIP:
	case NRP_TASK_LIFE:
	case NRP_LOSS:
		return true;
	default:
		return false; /* it tells of the nodes that were */
	}
}

void shuffle(struct loaded *ret, struct shuffled *ret_known, const struct loaded *from,
	     uint64_t seed, int closed, const char *scratch)
{
	struct shuffling s = { .random = mix(seed),
			       .closed = closed,
			       .facts = &from->capture.facts,
			       .host = nrp_filter_host_of(&from->capture.facts),
			       .places = nrp_pages_new(sizeof(struct place)),
			       .tasks = nrp_pages_new(sizeof(struct task)) };
	struct copy_plan plan = { NULL, shuffle_row, &s };

	assert_true(s.places && s.tasks);
	for (size_t i = 0; i < from->verify.nr_checks; i++)
		if (!strcmp(from->verify.check[i].family, "migrate.filter"))
			s.filter = (enum nrp_filter_variant)from->verify.check[i].chosen;
	null_copy(ret, from, &plan, scratch);
	count_ends(&s, from->capture.last_time);
	*ret_known = s.known;
	nrp_pages_free(s.places);
	nrp_pages_free(s.tasks);
}
