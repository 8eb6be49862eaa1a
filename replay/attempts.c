/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/attempts.h"
#include "replay/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t nrp_attempt_columns(void)
{
	return NRP_BIT(hint_fault, time) | NRP_BIT(hint_fault, cpu) | NRP_BIT(hint_fault, tid) |
	       NRP_BIT(hint_fault, mm) | NRP_BIT(hint_fault, addr) | NRP_BIT(hint_fault, vm_flags) |
	       NRP_BIT(hint_fault, attempt) | NRP_BIT(hint_fault, attempt_delay) |
	       NRP_BIT(hint_fault, attempt_ns) | NRP_BIT(hint_fault, attempt_jiffies) |
	       NRP_BIT(hint_fault, attempt_nid) | NRP_BIT(hint_fault, prepare_result) |
	       NRP_BIT(hint_fault, moved) | NRP_BIT(hint_fault, ratelimited) |
	       NRP_BIT(hint_fault, migrated_pages) | NRP_BIT(hint_fault, pages);
}

uint64_t nrp_ticks(uint64_t time, int64_t hz)
{
	return (uint64_t)((unsigned __int128)time * (uint64_t)hz / 1000000000);
}

/* Evidence and charge class of spec 1.7. */
static void classify(struct nrp_attempt *a, const struct nrp_hint_fault *f)
{
	bool reached_migrate = !NRP_NULL(f, hint_fault, migrated_pages) ||
			       (!NRP_NULL(f, hint_fault, prepare_result) && !f->prepare_result);

	a->moved = nrp_fault_moved(f);
	a->charge_known = true;
	if (a->moved || reached_migrate) {
		a->evidence = NRP_LIMITER_ADMITTED;
	} else if (!NRP_NULL(f, hint_fault, ratelimited) && f->ratelimited) {
		a->evidence = NRP_LIMITER_DENIED;
	} else if (!NRP_NULL(f, hint_fault, ratelimited) &&
		   (f->attempt == NRP_ATTEMPT_THP ||
		    (!NRP_NULL(f, hint_fault, vm_flags) && !(f->vm_flags & NRP_VM_EXEC)))) {
		/*
		 * Not refused and never seen in migrate_pages: too little memory, or not isolated;
		 * both come behind the limiter. Only shared executable pages turn back before it,
		 * and dirty file pages, which the scanner leaves out since 4.17.
		 */
		a->evidence = NRP_LIMITER_ADMITTED;
	} else {
		a->evidence = NRP_LIMITER_UNKNOWN;
		a->charge_known = false;
	}
}

bool nrp_attempt_of_fault(struct nrp_attempt *ret, const struct nrp_hint_fault *f,
			  bool *ret_has_jiffies)
{
	if (f->attempt == NRP_ATTEMPT_NONE || NRP_NULL(f, hint_fault, attempt_nid) ||
	    f->attempt_nid < 0 || f->attempt_nid >= NRP_MAX_NODES)
		return false;
	if (!NRP_NULL(f, hint_fault, prepare_result) && f->prepare_result == -EACCES)
		return false;
	*ret = (struct nrp_attempt){
		.time = f->time + f->attempt_delay,
		.end_time = f->time + f->attempt_delay +
			    (NRP_NULL(f, hint_fault, attempt_ns) ? 0 : f->attempt_ns),
		.jiffies = f->attempt_jiffies,
		.mm = f->mm,
		.addr = f->addr,
		.pages = nrp_fault_pages(f),
		.tid = f->tid,
		.cpu = f->cpu,
		.nid = f->attempt_nid,
	};
	*ret_has_jiffies = !NRP_NULL(f, hint_fault, attempt_jiffies);
	classify(ret, f);
	return true;
}

void nrp_attempts_clear(struct nrp_attempts *attempts)
{
	free(attempts->at);
	free(attempts->loss);
	memset(attempts, 0, sizeof(*attempts));
}

static void *copy_of(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	if (copy && size)
		memcpy(copy, data, size);
	return copy;
}

int nrp_attempts_copy(struct nrp_attempts *ret, const struct nrp_attempts *attempts)
{
	struct nrp_attempts s = *attempts;

	s.at = copy_of(attempts->at, attempts->count * sizeof(*s.at));
	s.loss = copy_of(attempts->loss, attempts->nr_losses * sizeof(*s.loss));
	if (!s.at || !s.loss) {
		nrp_attempts_clear(&s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

static int append(struct nrp_attempts *s, size_t *room, const struct nrp_attempt *a)
{
	if (s->count == *room) {
		size_t n = *room ? *room * 2 : 4096;
		struct nrp_attempt *grown = reallocarray(s->at, n, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->at = grown;
		*room = n;
	}
	s->at[s->count] = *a;
	s->at[s->count].ordinal = s->count;
	s->count++;
	s->unknown += a->evidence == NRP_LIMITER_UNKNOWN;
	s->denied += a->evidence == NRP_LIMITER_DENIED;
	s->moved += a->moved;
	s->moved_pages += a->moved ? a->pages : 0;
	s->admitted_failed += a->evidence == NRP_LIMITER_ADMITTED && !a->moved;
	if (a->nid >= s->nr_nodes)
		s->nr_nodes = a->nid + 1;
	if (a->pages > s->max_pages)
		s->max_pages = a->pages;
	return 0;
}

static int by_time(const void *x, const void *y)
{
	const struct nrp_attempt *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

static int load_losses(struct nrp_attempts *s, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_LOSS, ~UINT64_C(0), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_loss *l = row;
		struct nrp_loss_span *grown =
			reallocarray(s->loss, s->nr_losses + 1, sizeof(*grown));

		r = 0;
		if (!grown) {
			r = nrp_fail_nomem(err);
			break;
		}
		s->loss = grown;
		s->loss[s->nr_losses++] = (struct nrp_loss_span){
			.from = l->time,
			.to = NRP_NULL(l, loss, end_time) ? UINT64_MAX : l->end_time,
		};
	}
	nrp_cursor_close(cursor);
	return r;
}

int nrp_attempts_load(struct nrp_attempts *ret, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err)
{
	struct nrp_attempts s = { 0 };
	struct nrp_cursor *cursor = NULL;
	const void *row;
	size_t room = 0;
	int r = nrp_cursor_open_where(&cursor, store, capture->id, NRP_HINT_FAULT,
				      nrp_attempt_columns(), NRP_COL(hint_fault, attempt), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0) {
		const struct nrp_hint_fault *f = row;
		struct nrp_attempt a;
		bool has_jiffies;

		r = 0;
		if (!nrp_attempt_of_fault(&a, f, &has_jiffies)) {
			s.refused_before += f->attempt != NRP_ATTEMPT_NONE;
			continue;
		}
		if (!has_jiffies) {
			if (capture->facts.hz <= 0) {
				r = nrp_fail(err, NRP_INPUT, -ENODATA, nrp_store_path(store), -1,
					     "give it with --set hz=N",
					     "capture %s has neither jiffies nor a known HZ",
					     capture->name);
				break;
			}
			a.jiffies = nrp_ticks(a.time, capture->facts.hz);
			s.ticks_from_clock = true;
		}
		if (append(&s, &room, &a) < 0)
			r = nrp_fail_nomem(err);
	}
	nrp_cursor_close(cursor);
	if (r == 0)
		r = load_losses(&s, store, capture, err);
	if (r < 0) {
		nrp_attempts_clear(&s);
		return r;
	}
	if (s.count)
		qsort(s.at, s.count, sizeof(*s.at), by_time);
	*ret = s;
	return 0;
}

int nrp_attempts_max_in_window(const struct nrp_attempts *attempts, uint64_t ticks,
			       uint64_t *ret_pages, struct nrp_error *err)
{
	uint64_t best = 0;
	uint64_t *sum = calloc((size_t)attempts->nr_nodes + 1, sizeof(*sum));
	size_t *tail = calloc((size_t)attempts->nr_nodes + 1, sizeof(*tail));

	if (!sum || !tail) {
		free(sum);
		free(tail);
		return nrp_fail_nomem(err);
	}
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		size_t *t = &tail[a->nid];

		sum[a->nid] += a->pages;
		/* Attempts of other nodes between tail and here are passed over. */
		while (attempts->at[*t].nid != a->nid ||
		       (int64_t)(a->jiffies - attempts->at[*t].jiffies) >= (int64_t)ticks) {
			if (attempts->at[*t].nid == a->nid)
				sum[a->nid] -= attempts->at[*t].pages;
			(*t)++;
		}
		if (sum[a->nid] > best)
			best = sum[a->nid];
	}
	free(sum);
	free(tail);
	*ret_pages = best;
	return 0;
}
