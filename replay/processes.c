/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- waits ---------------------------------------------------------------------------- */

struct nrp_kept_waits {
	const struct nrp_waits *waits;
	struct {
		uint32_t certain, perhaps; /* bit w: world w has this wait */
	} at[];
};

int nrp_kept_waits_new(struct nrp_kept_waits **ret, const struct nrp_waits *waits)
{
	struct nrp_kept_waits *k = NULL;

	if (waits->count) {
		k = calloc(1, sizeof(*k) + waits->count * sizeof(k->at[0]));
		if (!k)
			return -ENOMEM;
		k->waits = waits;
	}
	*ret = k;
	return 0;
}

struct nrp_kept_waits *nrp_kept_waits_free(struct nrp_kept_waits *k)
{
	free(k);
	return NULL;
}

void nrp_kept_waits_fault(struct nrp_kept_waits *k, uint64_t time, int32_t tid, uint32_t worlds)
{
	for (size_t i = nrp_waits_first_of_fault(k->waits, time, tid);
	     i < k->waits->nr_links && k->waits->link[i].time == time &&
	     k->waits->link[i].tid == tid;
	     i++) {
		size_t wait = k->waits->link[i].wait;

		if (k->waits->at[wait].certainty == NRP_WAIT_AMBIGUOUS)
			k->at[wait].perhaps |= worlds;
		else
			k->at[wait].certain |= worlds;
	}
}

/* ---- address spaces ------------------------------------------------------------------- */

static int by_mm(const void *a, const void *b)
{
	const struct nrp_process *x = a, *y = b;

	return (x->mm > y->mm) - (x->mm < y->mm);
}

static struct nrp_process *find(const struct nrp_processes *p, uint64_t mm)
{
	const struct nrp_process key = { .mm = mm };

	return p->count ? bsearch(&key, p->at, p->count, sizeof(*p->at), by_mm) : NULL;
}

/* In one world: at least, and at most so many. */
struct in_world {
	uint64_t least[NRP_NR_PROCESS_MEASURES], most[NRP_NR_PROCESS_MEASURES];
};

static void add_wait(struct in_world *n, const struct nrp_wait *w, uint32_t certain,
		     uint32_t perhaps, int world)
{
	bool other = w->cause == NRP_WAIT_OTHER_MIGRATION;
	bool has = other || certain >> world & 1;

	if (has) {
		n->least[NRP_PROCESS_WAITS]++;
		n->least[NRP_PROCESS_WAIT_NS] += nrp_wait_ns(w);
	}
	if (has || perhaps >> world & 1 || w->cause == NRP_WAIT_UNATTRIBUTED) {
		n->most[NRP_PROCESS_WAITS]++;
		n->most[NRP_PROCESS_WAIT_NS] += nrp_wait_ns(w);
	}
}

static void put(struct nrp_process *to, int lane, bool central, const struct in_world *n)
{
	for (int m = 0; m < NRP_NR_PROCESS_MEASURES; m++) {
		if (central)
			to->lane[lane].value[m] = n->least[m];
		if (central || n->least[m] < to->lane[lane].least[m])
			to->lane[lane].least[m] = n->least[m];
		if (central || n->most[m] > to->lane[lane].most[m])
			to->lane[lane].most[m] = n->most[m];
	}
}

/* One world of a lane: @n has the counts of each address space. */
static void put_world(struct nrp_processes *p, int lane, bool central, const struct in_world *n)
{
	struct in_world sum = { { 0 }, { 0 } };

	for (size_t i = 0; i < p->count; i++) {
		put(&p->at[i], lane, central, &n[i]);
		for (int m = 0; m < NRP_NR_PROCESS_MEASURES; m++) {
			sum.least[m] += n[i].least[m];
			sum.most[m] += n[i].most[m];
		}
	}
	for (int m = 0; m < NRP_NR_PROCESS_MEASURES; m++) {
		if (central || sum.least[m] < p->least[lane][m])
			p->least[lane][m] = sum.least[m];
		if (central || sum.most[m] > p->most[lane][m])
			p->most[lane][m] = sum.most[m];
	}
}

struct collector {
	struct nrp_processes *p;
	struct nrp_worlds *worlds;
	const struct nrp_waits *waits;
	const struct nrp_kept_waits *kept;
	struct in_world *scratch; /* [p->count] */
};

static void count_world(struct collector *c, int world)
{
	memset(c->scratch, 0, c->p->count * sizeof(*c->scratch));
	for (uint32_t s = 0; s < nrp_worlds_nr_spaces(c->worlds); s++) {
		uint64_t mm;
		struct nrp_space_count n = nrp_worlds_space_count(c->worlds, s, world, &mm);
		struct in_world *to = &c->scratch[find(c->p, mm) - c->p->at];

		to->least[NRP_PROCESS_FAULTS] += n.faults;
		to->most[NRP_PROCESS_FAULTS] += n.faults;
		to->least[NRP_PROCESS_MOVED] += n.moved_pages;
		to->most[NRP_PROCESS_MOVED] += n.moved_pages;
	}
	for (size_t i = 0; c->kept && i < c->waits->count; i++) {
		const struct nrp_process *p = find(c->p, c->waits->at[i].mm);

		if (p)
			add_wait(&c->scratch[p - c->p->at], &c->waits->at[i],
				 c->kept->at[i].certain, c->kept->at[i].perhaps, world);
	}
}

static void count_record(struct collector *c)
{
	for (uint32_t s = 0; s < nrp_worlds_nr_spaces(c->worlds); s++) {
		uint64_t mm;
		struct nrp_space_count n = nrp_worlds_space_count(c->worlds, s, -1, &mm);
		struct nrp_process *p = find(c->p, mm);

		p->record[NRP_PROCESS_FAULTS] += n.faults;
		p->record[NRP_PROCESS_MOVED] += n.moved_pages;
	}
	for (size_t i = 0; i < c->waits->nr_processes; i++) {
		const struct nrp_wait_process *w = &c->waits->process[i];
		struct nrp_process *p = find(c->p, w->mm);

		if (!p)
			continue;
		p->record[NRP_PROCESS_WAITS] += w->waited;
		p->record[NRP_PROCESS_WAIT_NS] += w->waited_ns;
	}
}

/* Those that were scanned or faulted, and those that waited. */
static void list(struct nrp_processes *p, struct nrp_worlds *worlds, const struct nrp_waits *waits)
{
	size_t n = 0;

	for (uint32_t s = 0; s < nrp_worlds_nr_spaces(worlds); s++)
		nrp_worlds_space_count(worlds, s, -1, &p->at[n++].mm);
	for (size_t i = 0; i < waits->nr_processes; i++)
		if (waits->process[i].mm)
			p->at[n++].mm = waits->process[i].mm;
	qsort(p->at, n, sizeof(*p->at), by_mm);
	for (size_t i = 0; i < n; i++)
		if (!p->count || p->at[p->count - 1].mm != p->at[i].mm)
			p->at[p->count++].mm = p->at[i].mm;
}

int nrp_processes_collect(struct nrp_processes *ret, struct nrp_worlds *worlds,
			  const struct nrp_waits *waits, const struct nrp_kept_waits *kept,
			  const int first[2], const int nr[2])
{
	size_t most = nrp_worlds_nr_spaces(worlds) + waits->nr_processes + 1;
	struct nrp_processes p = { .at = calloc(most, sizeof(*p.at)) };
	struct collector c = { .p = &p, .worlds = worlds, .waits = waits, .kept = kept };

	if (!p.at)
		return -ENOMEM;
	list(&p, worlds, waits);
	c.scratch = calloc(p.count + 1, sizeof(*c.scratch));
	if (!c.scratch) {
		free(p.at);
		return -ENOMEM;
	}
	count_record(&c);
	for (int lane = 0; lane < 2; lane++) {
		for (int k = 0; first[lane] >= 0 && k < nr[lane]; k++) {
			count_world(&c, first[lane] + k);
			put_world(&p, lane, k == 0, c.scratch);
		}
	}
	free(c.scratch);
	*ret = p;
	return 0;
}

void nrp_processes_clear(struct nrp_processes *processes)
{
	free(processes->at);
	memset(processes, 0, sizeof(*processes));
}
