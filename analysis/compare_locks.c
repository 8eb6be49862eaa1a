/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of mmap_locks: waits for them, and the windows that scans lose to them. */
#include "analysis/compare_internal.h"

static struct nrp_quantity measured(double lower, double value, double upper, bool modelled)
{
	struct nrp_quantity q = nrp_bounded(value, lower, upper, 2);

	if (modelled)
		q.class = NRP_CLASS_MODELLED;
	return q;
}

/*
 * Of a window that is lost, marking may come from 0 ns up to the gap to the next attempt later; how
 * often its pages are touched meanwhile is a model (spec mmap-hugetlb.md 1.7, part 3).
 */
static void delays(struct nrp_quantity *delay, struct nrp_quantity *accesses,
		   const struct nrp_lost_windows *more, const struct nrp_lost_windows *less)
{
	*delay = measured(-less->page_seconds, more->page_seconds - less->page_seconds,
			  more->page_seconds, false);
	*accesses = measured(-less->accesses_upper, more->accesses - less->accesses,
			     more->accesses_upper, true);
	/* Windows that no later pass armed are of unknown size. */
	delay->has_upper = accesses->has_upper = !more->unknown;
	delay->has_lower = accesses->has_lower = !less->unknown;
}

static void scans(struct nrp_builder *b, int i, const struct nrp_lock_result *l)
{
	const struct nrp_lost_windows none = { 0 };
	struct nrp_quantity *q = b->q[i];
	struct nrp_lost_windows lost = nrp_lost_windows(
		&b->r->scan_attempts, i ? NRP_LOST_NEW : NRP_LOST_OLD, NRP_NR_LOST_IN, 0);

	if (b->r->lane[i].off) {
		q[SCANS_LOCK_SKIPPED] = q[SCAN_LOCK_DELAY] = q[SCAN_LOCK_ACCESSES] =
			nrp_exact(0, 3);
		return;
	}
	q[SCANS_LOCK_SKIPPED] = measured((double)l->skipped, (double)l->skipped,
					 (double)l->skipped_upper, l->modelled);
	delays(&q[SCAN_LOCK_DELAY], &q[SCAN_LOCK_ACCESSES], &lost, &none);
	if (l->modelled)
		q[SCAN_LOCK_DELAY].class = NRP_CLASS_MODELLED;
	/* As late as real waiters are, more scans may find the lock taken. */
	if (l->skipped_upper > l->skipped)
		q[SCAN_LOCK_DELAY].has_upper = q[SCAN_LOCK_ACCESSES].has_upper = false;
}

static const struct nrp_lock_result *result(const struct nrp_replay *r, int i)
{
	return r->lane[i].own_lock ? &r->lane[i].lock : &r->lock_record;
}

/* What waited in line on the host, where that is all there is: at least so much. */
static void in_line(struct nrp_builder *b, int i)
{
	const struct nrp_lock_contention *c = &b->r->contention;

	if (!b->r->lane[i].observed || !c->known || !c->has_offset)
		return;
	b->q[i][LOCK_WAIT_READERS_NS] = nrp_at_least((double)c->of_mms[0].ns, 2);
	b->q[i][LOCK_WAIT_WRITERS_NS] = nrp_at_least((double)c->of_mms[1].ns, 2);
}

/*
 * Waits for mmap_locks. Those on record are measured with the host's own lateness, and never exact;
 * a lane's are the engine's, as late as waiters were on the host (replay/lock_lane.h).
 */
void nrp_build_locks(struct nrp_builder *b, int i)
{
	static const enum nrp_metric_id ids[NRP_NR_LOCK_CLASSES][2] = {
		{ LOCK_WAIT_FAULTS_NS, LOCK_WAIT_FAULTS_OVER },
		{ LOCK_WAIT_READERS_NS, LOCK_WAIT_READERS_OVER },
		{ LOCK_WAIT_WRITERS_NS, LOCK_WAIT_WRITERS_OVER },
		{ LOCK_WAIT_MUNMAP_NS, LOCK_WAIT_MUNMAP_OVER },
	};
	const struct nrp_lock_result *l = result(b->r, i);

	if (!b->r->locks.known) {
		in_line(b, i);
		return;
	}
	for (int c = 0; c < NRP_NR_LOCK_CLASSES; c++) {
		const struct nrp_lock_waits *low = &l->lower[c], *mid = &l->value[c],
					    *high = &l->upper[c];

		b->q[i][ids[c][0]] =
			measured((double)low->ns, (double)mid->ns, (double)high->ns, l->modelled);
		b->q[i][ids[c][1]] = measured((double)low->over, (double)mid->over,
					      (double)high->over, l->modelled);
	}
	if (l->scans)
		scans(b, i, l);
}

void nrp_pair_locks(struct nrp_builder *b)
{
	const struct nrp_replay *r = b->r;
	const struct nrp_lock_result *l[2] = { result(r, 0), result(r, 1) };
	struct nrp_lost_windows less, more;

	if (!r->locks.known || !l[0]->scans || r->lossy || r->off_differs)
		return;
	/* Lanes that arm other entries have other windows. */
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		if (r->differs[f] && f != NRP_FAMILY_MUNMAP_LOCK && f != NRP_FAMILY_HUGETLB_COUNT)
			return;
	more = nrp_lost_windows(&r->scan_attempts, NRP_LOST_OLD, NRP_LOST_NEW, 0);
	less = nrp_lost_windows(&r->scan_attempts, NRP_LOST_NEW, NRP_LOST_OLD, 0);
	delays(&b->avoided[SCAN_LOCK_DELAY], &b->avoided[SCAN_LOCK_ACCESSES], &more, &less);
	if (l[0]->modelled || l[1]->modelled)
		b->avoided[SCAN_LOCK_DELAY].class = NRP_CLASS_MODELLED;
	for (int i = 0; i < 2; i++) {
		bool late = l[i]->skipped_upper > l[i]->skipped;

		/* Of the old lane more may be lost and avoided, of the new one lost and added. */
		b->avoided[SCAN_LOCK_DELAY].has_upper &= i || !late;
		b->avoided[SCAN_LOCK_DELAY].has_lower &= !i || !late;
		b->avoided[SCAN_LOCK_ACCESSES].has_upper &= i || !late;
		b->avoided[SCAN_LOCK_ACCESSES].has_lower &= !i || !late;
	}
	b->paired[SCAN_LOCK_DELAY] = b->paired[SCAN_LOCK_ACCESSES] = true;
}
