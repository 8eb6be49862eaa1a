/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What verify's document says of the recorded mmap_lock events. */
#include "analysis/compare_internal.h"

#include <stdio.h>

static json_t *kinds(const struct nrp_lock_counts *n)
{
	json_t *list = json_array();

	for (int k = 0; k < NRP_NR_LOCK_ODDITIES; k++)
		if (n->impossible_by[k] || n->undecided_by[k])
			json_array_append_new(
				list,
				json_pack("{s:s,s:s,s:I,s:I}", "kind",
					  nrp_lock_oddity_name((enum nrp_lock_oddity)k), "what",
					  nrp_lock_oddity_text((enum nrp_lock_oddity)k),
					  "impossible", (json_int_t)n->impossible_by[k],
					  "undecided", (json_int_t)n->undecided_by[k]));
	return list;
}

json_t *nrp_lock_sequences(const struct nrp_lock_host *h)
{
	const struct nrp_lock_counts *n = &h->counts;
	json_t *listed;

	if (!h->known)
		return json_null();
	listed = json_array();
	for (size_t i = 0; i < n->nr_listed; i++) {
		const struct nrp_lock_impossible *e = &n->listed[i];
		char mm[24];

		snprintf(mm, sizeof(mm), "%016llx", (unsigned long long)e->mm);
		json_array_append_new(listed, json_pack("{s:I,s:i,s:s,s:s,s:s,s:b}", "time",
							(json_int_t)e->time, "tid", e->tid, "mm",
							mm, "kind", nrp_lock_oddity_name(e->what),
							"what", nrp_lock_oddity_text(e->what),
							"undecided", e->undecided));
	}
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:I}", "requests",
			 (json_int_t)n->requests, "failed_tries", (json_int_t)n->failed_tries,
			 "killed_waits", (json_int_t)n->killed_waits, "unanswered",
			 (json_int_t)n->unanswered, "began_before", (json_int_t)n->began_before,
			 "never_ended", (json_int_t)n->never_ended, "released_by_others",
			 (json_int_t)n->by_others, "touched_by_lost_events", (json_int_t)n->lossy,
			 "impossible", (json_int_t)n->impossible, "undecided",
			 (json_int_t)n->undecided, "kinds", kinds(n), "listed", listed, "more",
			 (json_int_t)(n->impossible + n->undecided - n->nr_listed));
}

static json_t *waits_json(const struct nrp_contention_waits *w)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "waits", (json_int_t)w->waits, "ns",
			 (json_int_t)w->ns, "longest_ns", (json_int_t)w->longest, "p99_ns",
			 (json_int_t)w->p99, "open", (json_int_t)w->open, "left",
			 (json_int_t)w->left);
}

json_t *nrp_lock_contention_json(const struct nrp_lock_contention *c)
{
	json_t *locks;

	if (!c->known)
		return json_null();
	locks = json_array();
	for (size_t i = 0; i < c->nr_listed; i++) {
		const struct nrp_contended_lock *l = &c->listed[i];
		char sem[24], mm[24];

		snprintf(sem, sizeof(sem), "%016llx", (unsigned long long)l->sem);
		snprintf(mm, sizeof(mm), "%016llx", (unsigned long long)l->mm);
		json_array_append_new(locks, json_pack("{s:s,s:o,s:o,s:o}", "lock", sem, "mm",
						       l->mm ? json_string(mm) : json_null(),
						       "reads", waits_json(&l->by[0]), "writes",
						       waits_json(&l->by[1])));
	}
	return json_pack("{s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:I}", "mmap_lock_offset",
			 c->has_offset ? json_integer((json_int_t)c->offset) : json_null(),
			 "offset_samples", (json_int_t)c->samples, "reads",
			 waits_json(&c->of_mms[0]), "writes", waits_json(&c->of_mms[1]),
			 "nameless_reads", waits_json(&c->nameless[0]), "nameless_writes",
			 waits_json(&c->nameless[1]), "locks", locks, "more",
			 (json_int_t)(c->locks - c->nr_listed));
}
