/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/scan_accounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int nrp_scan_accounts_init(struct nrp_scan_accounts *a, uint32_t nr_spaces, unsigned int nr_runs)
{
	size_t spaces = nr_spaces ? nr_spaces : 1;

	*a = (struct nrp_scan_accounts){ .nr_runs = nr_runs, .record = nr_runs - 1 };
	a->space = calloc(spaces, sizeof(*a->space));
	a->sequences = calloc(spaces * nr_runs, sizeof(*a->sequences));
	return a->space && a->sequences ? 0 : -ENOMEM;
}

void nrp_scan_accounts_clear(struct nrp_scan_accounts *a)
{
	free(a->space);
	free(a->sequences);
	free(a->vma);
	free(a->account);
	memset(a, 0, sizeof(*a));
}

uint64_t *nrp_scan_accounts_sequences(const struct nrp_scan_accounts *a, uint32_t space,
				      unsigned int run)
{
	return &a->sequences[(size_t)space * a->nr_runs + run];
}

static struct nrp_scan_account *account_at(const struct nrp_scan_accounts *a, size_t vma,
					   unsigned int run)
{
	return &a->account[vma * a->nr_runs + run];
}

struct nrp_scan_account *nrp_scan_account(struct nrp_scan_accounts *a,
					  const struct nrp_scan_area *area, unsigned int run)
{
	return area->report == NRP_NO_AREA ? NULL : account_at(a, area->report, run);
}

/* ---- passes -------------------------------------------------------------------------- */

static int make_room(struct nrp_scan_accounts *a)
{
	size_t room = a->room ? a->room * 2 : 64;
	void *grown;

	if (a->nr_vmas < a->room)
		return 0;
	grown = reallocarray(a->vma, room, sizeof(*a->vma));
	if (!grown)
		return -ENOMEM;
	a->vma = grown;
	grown = reallocarray(a->account, room * a->nr_runs, sizeof(*a->account));
	if (!grown)
		return -ENOMEM;
	a->account = grown;
	a->room = room;
	return 0;
}

static int open_account(struct nrp_scan_accounts *a, const struct nrp_scan_visit *visit,
			struct nrp_scan_area *area)
{
	if (make_room(a) < 0)
		return -ENOMEM;
	area->report = a->nr_vmas++;
	a->vma[area->report] = (struct nrp_scan_account_vma){
		.space = visit->space,
		.vma = { .mm = visit->rec.mm, .first_seen = visit->rec.time },
	};
	for (unsigned int r = 0; r < a->nr_runs; r++)
		*account_at(a, area->report, r) = (struct nrp_scan_account){
			.sequence = *nrp_scan_accounts_sequences(a, visit->space, r)
		};
	return 0;
}

static void count_sequences(struct nrp_scan_accounts *a, const struct nrp_scan_visit *visit)
{
	struct nrp_scan_account_space *s = &a->space[visit->space];
	int32_t seq = visit->rec.mm_scan_seq;

	/* A fork sets it back. */
	if (s->started && seq > s->last_seq)
		*nrp_scan_accounts_sequences(a, visit->space, a->record) +=
			(uint32_t)nrp_scan_seq_since(seq, s->last_seq);
	s->started = true;
	s->last_seq = seq;
}

int nrp_scan_accounts_begin(struct nrp_scan_accounts *a, const struct nrp_scan_visit *visit,
			    struct nrp_scan_space *space)
{
	struct nrp_scan_account_space *s = &a->space[visit->space];

	count_sequences(a, visit);
	s->last_pass = visit->rec.time;
	if (!NRP_NULL(&visit->rec, scan_pass, nr_threads))
		s->nr_threads = visit->rec.nr_threads;
	for (size_t i = 0; i < space->nr_areas; i++) {
		struct nrp_scan_area *area = &space->area[i];
		struct nrp_scan_lane_vma *v;

		if (area->report == NRP_NO_AREA) {
			if (area->class != NRP_SCAN_VMA_ELIGIBLE)
				continue;
			if (open_account(a, visit, area) < 0)
				return -ENOMEM;
		}
		for (unsigned int r = 0; r < a->nr_runs; r++)
			account_at(a, area->report, r)->s.passes_since++;
		if (area->class != NRP_SCAN_VMA_ELIGIBLE)
			continue;
		v = &a->vma[area->report].vma;
		v->passes++;
		v->vm_start = area->start;
		v->vm_end = area->end;
		v->last_seen = visit->rec.time;
	}
	return 0;
}

void nrp_scan_accounts_end(struct nrp_scan_accounts *a, const struct nrp_scan_visit *visit,
			   const struct nrp_scan_space *space)
{
	for (size_t i = 0; i < space->nr_areas; i++) {
		for (unsigned int r = 0; r < a->nr_runs; r++) {
			struct nrp_scan_account *k = nrp_scan_account(a, &space->area[i], r);

			if (k)
				k->s.sequences_since =
					*nrp_scan_accounts_sequences(a, visit->space, r) -
					k->sequence;
		}
	}
}

/* ---- one VMA ------------------------------------------------------------------------- */

static void visited(struct nrp_scan_account *k, uint64_t pass)
{
	k->s.visits += k->visited_at != pass;
	k->visited_at = pass;
}

void nrp_scan_account_armed(struct nrp_scan_account *k, uint64_t pass, uint64_t end,
			    uint64_t vm_end, int64_t pages, uint64_t sequences)
{
	visited(k, pass);
	k->s.armed_passes += k->armed_at != pass;
	k->armed_at = pass;
	k->s.armed_ranges++;
	k->s.armed_entries += pages > 0 ? (uint64_t)pages : 0;
	k->s.unknown_ranges += pages < 0;
	memset(k->s.unarmed, 0, sizeof(k->s.unarmed));
	memset(k->s.inactive_by, 0, sizeof(k->s.inactive_by));
	if (end != vm_end)
		return;
	k->s.completed++;
	k->s.last_complete = pass;
	k->s.passes_since = 0;
	k->sequence = sequences;
}

/* The thread's bit may have been set and shifted out of both windows, or never have been set. */
static enum nrp_scan_inactive why_inactive(const struct nrp_scan_account *k, int32_t tid)
{
	if (k->ever & nrp_scan_pid_bit(tid))
		return NRP_INACTIVE_CLEARED;
	return k->ever ? NRP_INACTIVE_OTHERS : NRP_INACTIVE_NEVER_SET;
}

void nrp_scan_account_skipped(struct nrp_scan_account *k, uint64_t pass, enum nrp_scan_vma_skip why,
			      int32_t tid)
{
	visited(k, pass);
	k->s.skips[why]++;
	k->s.unarmed[why]++;
	if (why == NRP_SCAN_SKIP_PID_INACTIVE)
		k->s.inactive_by[why_inactive(k, tid)]++;
}

void nrp_scan_account_touched(struct nrp_scan_account *k, int32_t tid)
{
	if (k->visited_at)
		k->ever |= nrp_scan_pid_bit(tid);
}

/* ---- the record ---------------------------------------------------------------------- */

/* Faults of a VMA while the pass ran, before @time. Bits that are set again stay set. */
static void touch_until(struct nrp_scan_account *k, const struct nrp_scan_meanwhile *m, size_t area,
			uint64_t time)
{
	if (!m->count)
		return;
	for (size_t i = m->first[area]; i != NRP_NO_AREA && m->at[i].fault.time < time;
	     i = m->at[i].next)
		nrp_scan_account_touched(k, m->at[i].fault.tid);
}

static void record_range(struct nrp_scan_accounts *a, const struct nrp_scan_visit *visit,
			 struct nrp_scan_account *k, const struct nrp_scan_decision *d)
{
	if (d->state_known)
		k->ever |= d->state.pids[0] | d->state.pids[1];
	nrp_scan_account_armed(k, visit->rec.time, d->end, d->vm_end,
			       d->pages_known ? (int64_t)d->pages : -1,
			       *nrp_scan_accounts_sequences(a, visit->space, a->record));
}

void nrp_scan_accounts_faults(struct nrp_scan_accounts *a, const struct nrp_scan_space *space,
			      const struct nrp_scan_meanwhile *m)
{
	for (size_t i = 0; i < m->count; i++) {
		struct nrp_scan_account *k =
			nrp_scan_account(a, &space->area[m->at[i].area], a->record);

		if (k)
			nrp_scan_account_touched(k, m->at[i].fault.tid);
	}
}

void nrp_scan_accounts_record(struct nrp_scan_accounts *a, const struct nrp_scan_trace *trace,
			      const struct nrp_scan_visit *visit,
			      const struct nrp_scan_space *space,
			      const struct nrp_scan_meanwhile *meanwhile)
{
	for (size_t i = 0; i < visit->count; i++) {
		const struct nrp_scan_decision *d = &trace->decision[visit->first + i];
		size_t at = nrp_scan_space_find(space, d->vm_start);
		struct nrp_scan_account *k =
			at == NRP_NO_AREA ? NULL : nrp_scan_account(a, &space->area[at], a->record);

		if (!k)
			continue;
		touch_until(k, meanwhile, at, d->time);
		if (d->range)
			record_range(a, visit, k, d);
		else if (d->reason < NRP_NR_SCAN_SKIPS)
			nrp_scan_account_skipped(k, visit->rec.time,
						 (enum nrp_scan_vma_skip)d->reason, visit->rec.tid);
		if (d->flags_known) {
			a->vma[space->area[at].report].vma.vm_flags = d->vm_flags;
			a->vma[space->area[at].report].vma.vm_flags_known = true;
		}
	}
	nrp_scan_accounts_faults(a, space, meanwhile);
}

/* ---- at the end ---------------------------------------------------------------------- */

static bool starved(const struct nrp_scan_accounts *a, size_t vma, unsigned int run)
{
	const struct nrp_scan_account_vma *v = &a->vma[vma];
	const struct nrp_scan_account_space *s = &a->space[v->space];
	const struct nrp_scan_account *k = account_at(a, vma, run);

	return v->vma.last_seen == s->last_pass && k->s.unarmed[NRP_SCAN_SKIP_PID_INACTIVE] &&
	       k->s.sequences_since > (uint64_t)(s->nr_threads > 0 ? s->nr_threads : 1) + 1;
}

struct nrp_scan_starvation nrp_scan_accounts_of(const struct nrp_scan_accounts *a, size_t vma,
						unsigned int run)
{
	struct nrp_scan_starvation s = account_at(a, vma, run)->s;

	s.starved = starved(a, vma, run);
	return s;
}

struct nrp_scan_lane_vma *nrp_scan_accounts_close(const struct nrp_scan_accounts *a)
{
	struct nrp_scan_lane_vma *ret = calloc(a->nr_vmas ? a->nr_vmas : 1, sizeof(*ret));

	for (size_t i = 0; ret && i < a->nr_vmas; i++) {
		ret[i] = a->vma[i].vma;
		ret[i].record = nrp_scan_accounts_of(a, i, a->record);
	}
	return ret;
}
