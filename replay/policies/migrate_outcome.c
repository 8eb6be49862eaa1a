/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate.outcome: migrate_misplaced_page(), migrate_misplaced_transhuge_page(),
 * numamigrate_isolate_page(), migrate_misplaced_folio() and migrate_misplaced_folio_prepare(),
 * mm/migrate.c; spec migrate.md 2.7 (order), 2.8 (what each outcome leaves behind).
 *
 *   4.18  limiter: behind the tests of file pages, but in front of everything of a huge page
 *   5.10  no limiter since efaffc5e40ae (4.19)
 *   6.1   huge pages go through migrate_pages (5.14); those of several processes are left alone
 *   6.12  the tests up to isolation are a step of their own, done under the page table lock (6.11);
 *	   huge pages of several processes move; 0 means moved
 *
 * The first test that fails ends the attempt. What failed before migrate_pages leaves no trace but
 * a flag of the fault, except that huge pages up to 5.13 count all but refusals as failed.
 */
#include "replay/policies/migrate_outcome.h"

#include <errno.h>
#include <stddef.h>

const char *nrp_outcome_variant_name(enum nrp_outcome_variant variant)
{
	static const char *const names[NRP_NR_OUTCOME_VARIANTS] = { "4.18", "5.10", "6.1", "6.12" };

	return (unsigned int)variant < NRP_NR_OUTCOME_VARIANTS ? names[variant] : NULL;
}

static bool has_thp_function(enum nrp_outcome_variant variant)
{
	return variant <= NRP_OUTCOME_510;
}

/* ---- where does it end? ------------------------------------------------------------- */

/*
 * Huge pages up to 5.13: memory for the copy is taken first. Each mapping holds a reference, so
 * that a huge page of two processes fails at the count of references. One that was freed has too
 * few.
 */
static enum nrp_outcome_stage thp_stage(enum nrp_outcome_variant variant,
					const struct nrp_outcome_attempt *a)
{
	if (variant == NRP_OUTCOME_418 && a->over_quota)
		return NRP_OUTCOME_RATELIMIT;
	if (a->no_target)
		return NRP_OUTCOME_NO_TARGET;
	if (a->low_memory)
		return NRP_OUTCOME_WATERMARK;
	if (a->not_isolated)
		return NRP_OUTCOME_ISOLATE;
	if (a->extra_refs || a->shared || a->freed)
		return NRP_OUTCOME_REFERENCES;
	return a->changed ? NRP_OUTCOME_COPY : NRP_OUTCOME_MOVED;
}

static enum nrp_outcome_stage page_stage(enum nrp_outcome_variant variant,
					 const struct nrp_outcome_attempt *a)
{
	/* Text of shared libraries: its users sit on all nodes. */
	if (a->file && a->executable && a->shared)
		return NRP_OUTCOME_EXEC_SHARED;
	/* An asynchronous move would not write it back anyway. */
	if (a->file && a->dirty)
		return NRP_OUTCOME_DIRTY;
	if (variant == NRP_OUTCOME_418 && a->over_quota)
		return NRP_OUTCOME_RATELIMIT;
	if (variant == NRP_OUTCOME_61 && a->pages > 1 && a->shared)
		return NRP_OUTCOME_THP_SHARED;
	if (a->low_memory)
		return NRP_OUTCOME_WATERMARK;
	if (a->not_isolated)
		return NRP_OUTCOME_ISOLATE;
	/* From here on it is migrate_pages: a page without users needs no target. */
	if (a->freed)
		return NRP_OUTCOME_MOVED;
	if (a->no_target)
		return NRP_OUTCOME_NO_TARGET;
	if (a->extra_refs)
		return NRP_OUTCOME_REFERENCES;
	return a->changed ? NRP_OUTCOME_COPY : NRP_OUTCOME_MOVED;
}

/* ---- what does it leave behind? ----------------------------------------------------- */

/* A refusal by the limiter is not counted as failed, nor is a race lost while copying. */
static void count_thp(struct nrp_outcome *o, uint32_t pages)
{
	if (o->stage == NRP_OUTCOME_MOVED) {
		o->numa_pages_migrated = pages;
		o->pgmigrate_success = pages;
	} else if (o->stage != NRP_OUTCOME_RATELIMIT && o->stage != NRP_OUTCOME_COPY) {
		o->pgmigrate_fail = pages;
	}
}

static bool reached_migrate_pages(enum nrp_outcome_stage stage)
{
	return stage == NRP_OUTCOME_MOVED || stage == NRP_OUTCOME_NO_TARGET ||
	       stage == NRP_OUTCOME_REFERENCES || stage == NRP_OUTCOME_COPY;
}

static void count_page(struct nrp_outcome *o, uint32_t pages)
{
	if (!reached_migrate_pages(o->stage))
		return;
	o->has_event = true;
	if (o->stage == NRP_OUTCOME_MOVED) {
		o->succeeded = pages;
		o->numa_pages_migrated = pages;
		o->pgmigrate_success = pages;
	} else {
		o->failed = pages;
		o->pgmigrate_fail = pages;
	}
}

/* Charged on passing the limiter; what fails later is not given back. */
static void charge(struct nrp_outcome *o, uint32_t pages)
{
	if (o->stage == NRP_OUTCOME_RATELIMIT) {
		o->has_ratelimit_event = true;
		o->ratelimit_pages = pages;
	} else if (o->stage != NRP_OUTCOME_EXEC_SHARED && o->stage != NRP_OUTCOME_DIRTY) {
		o->charged = pages;
	}
}

static void set_results(struct nrp_outcome *o, enum nrp_outcome_variant variant)
{
	bool moved = o->stage == NRP_OUTCOME_MOVED;

	o->tnf_flags = moved ? NRP_OUTCOME_TNF_MIGRATED : NRP_OUTCOME_TNF_MIGRATE_FAIL;
	if (variant < NRP_OUTCOME_612) {
		o->has_result = true;
		o->result = moved;
		return;
	}
	o->has_prepare = true;
	if (o->stage == NRP_OUTCOME_EXEC_SHARED) {
		o->prepare_result = -EACCES;
	} else if (!reached_migrate_pages(o->stage)) {
		o->prepare_result = -EAGAIN;
	} else {
		o->has_result = true;
		o->result = moved ? 0 : -EAGAIN;
	}
}

struct nrp_outcome nrp_outcome_decide(enum nrp_outcome_variant variant,
				      const struct nrp_outcome_attempt *attempt)
{
	bool thp = has_thp_function(variant) && attempt->pages > 1;
	struct nrp_outcome o = { .stage = thp ? thp_stage(variant, attempt)
					      : page_stage(variant, attempt) };

	if (thp)
		count_thp(&o, attempt->pages);
	else
		count_page(&o, attempt->pages);
	if (variant == NRP_OUTCOME_418)
		charge(&o, attempt->pages);
	set_results(&o, variant);
	o.kswapd =
		variant >= NRP_OUTCOME_61 && attempt->tiering && o.stage == NRP_OUTCOME_WATERMARK;
	return o;
}
