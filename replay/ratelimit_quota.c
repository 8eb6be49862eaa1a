/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The quota that the kernel's own answers imply. */
#include "replay/ratelimit_internal.h"

#include <errno.h>
#include <stdlib.h>

struct constraint {
	uint64_t pages; /* charged when the kernel answered */
	bool admitted;
};

static int by_pages(const void *x, const void *y)
{
	const struct constraint *a = x, *b = y;

	return (a->pages > b->pages) - (a->pages < b->pages);
}

/*
 * The windows do not depend on R, so the kernel's own admissions give the pages charged at every
 * attempt. Collects what each answer says; returns the number of constraints.
 */
static size_t collect(struct constraint *c, struct nrp_limiter_simulation *sim,
		      const struct nrp_attempts *attempts, const struct nrp_ratelimit_start *start,
		      bool with_first_window, bool *ret_refused)
{
	size_t n = 0;

	*ret_refused = false;
	for (size_t i = 0; i < attempts->count; i++) {
		const struct nrp_attempt *a = &attempts->at[i];
		struct nrp_limiter_node *node = &sim->node[a->nid];

		nrp_limiter_step(sim, a, start);
		node->central.pages -= a->pages; /* as it was when the kernel compared */
		if (a->evidence != NRP_LIMITER_UNKNOWN &&
		    (with_first_window || node->windows > 1)) {
			c[n].pages = node->central.pages;
			c[n].admitted = a->evidence == NRP_LIMITER_ADMITTED;
			*ret_refused |= !c[n].admitted;
			n++;
		}
		if (a->evidence == NRP_LIMITER_ADMITTED)
			node->central.pages += a->pages;
	}
	return n;
}

/* Admitted: charged <= R. Denied: charged > R. The R with the least violations. */
static void least_violations(struct constraint *c, size_t n, uint64_t *ret_min, uint64_t *ret_max)
{
	size_t admitted_above = 0, denied_below = 0, least = SIZE_MAX;

	qsort(c, n, sizeof(*c), by_pages);
	for (size_t i = 0; i < n; i++)
		admitted_above += c[i].admitted;
	/* R from c[i].pages to just below the next: everything up to i passes, the rest fails. */
	for (size_t i = 0; i < n; i++) {
		if (c[i].admitted)
			admitted_above--;
		else
			denied_below++;
		if (i + 1 < n && c[i + 1].pages == c[i].pages)
			continue;
		if (admitted_above + denied_below < least) {
			least = admitted_above + denied_below;
			*ret_min = c[i].pages;
			*ret_max = i + 1 < n ? c[i + 1].pages - 1 : UINT64_MAX;
		}
	}
}

int nrp_ratelimit_fit_quota(const struct nrp_attempts *attempts,
			    const struct nrp_ratelimit_params *params,
			    const struct nrp_ratelimit_start *start, uint64_t *ret_min,
			    uint64_t *ret_max, bool *ret_refused, struct nrp_error *err)
{
	struct nrp_ratelimit_params open = *params;
	struct constraint *c = calloc(attempts->count + 1, sizeof(*c));
	bool refused = false;

	open.quota = UINT64_MAX - UINT32_MAX;
	if (!c)
		return nrp_fail_nomem(err);
	for (int with_first = 0; with_first < 2 && !refused; with_first++) {
		struct nrp_limiter_simulation sim;
		size_t n;

		if (nrp_limiter_start(&sim, attempts, &open) < 0) {
			free(c);
			return nrp_fail_nomem(err);
		}
		n = collect(c, &sim, attempts, start, with_first, &refused);
		free(sim.node);
		if (refused)
			least_violations(c, n, ret_min, ret_max);
	}
	free(c);
	*ret_refused = refused;
	return 0;
}
