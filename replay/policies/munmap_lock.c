/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * munmap.lock: do_munmap(), __do_munmap(), do_vmi_munmap(), mm/mmap.c and mm/vma.c; "mm: mmap: zap
 * pages with read mmap_sem in munmap" (4.20); spec mmap-hugetlb.md 1.2.
 */
#include "replay/policies/munmap_lock.h"

#include <stddef.h>

const char *nrp_munmap_variant_name(enum nrp_munmap_variant variant)
{
	static const char *const names[NRP_NR_MUNMAP_VARIANTS] = {
		"write",          "sections",  "two-phase", "two-phase-as-posted",
		"two-phase-dead", "downgrade",
	};

	return (unsigned int)variant < NRP_NR_MUNMAP_VARIANTS ? names[variant] : NULL;
}

static uint64_t all(const struct nrp_munmap_work *w)
{
	return w->find + w->detach + w->zap + w->pgtables + w->free;
}

/* What one of equal sections has of @ns, rounded down. */
static uint64_t share(uint64_t ns, uint64_t section, uint64_t length)
{
	return (uint64_t)((unsigned __int128)ns * section / length);
}

/* Each section repeats the search; what rounding leaves over goes to the last. */
static bool section_hold(const struct nrp_munmap_work *w, uint64_t section, uint64_t i,
			 struct nrp_munmap_hold *ret)
{
	uint64_t last = (w->length - 1) / section;
	uint64_t zap = share(w->zap, section, w->length);
	uint64_t pgtables = share(w->pgtables, section, w->length);

	if (i > last + 1)
		return false;
	ret->write = true;
	ret->step = i ? NRP_MUNMAP_IF_WANTED : NRP_MUNMAP_REQUEST;
	ret->ns = 0;
	if (i > last) /* only the lock, taken again behind the last section */
		return true;
	if (i == last) {
		zap = w->zap - last * zap;
		pgtables = w->pgtables - last * pgtables;
	}
	ret->ns = w->find + w->detach + zap + pgtables + w->free;
	return true;
}

/* One of a few holds, each requested anew. */
static bool hold(struct nrp_munmap_hold *ret, bool write, uint64_t ns)
{
	*ret = (struct nrp_munmap_hold){ write, NRP_MUNMAP_REQUEST, ns };
	return true;
}

static bool two_phase_hold(const struct nrp_munmap_work *w, uint64_t i, struct nrp_munmap_hold *ret)
{
	uint64_t early = w->special ? w->find : w->find + w->zap + w->pgtables;

	return i < 2 && hold(ret, i == 1, i ? all(w) - early : early);
}

static bool two_phase_dead_hold(const struct nrp_munmap_work *w, uint64_t i,
				struct nrp_munmap_hold *ret)
{
	if (!i)
		return hold(ret, true, w->find);
	if (w->special)
		return i == 1 && hold(ret, true, all(w) - w->find);
	if (i == 1)
		return hold(ret, false, w->zap);
	return i == 2 && hold(ret, true, w->pgtables + w->detach + w->free);
}

static bool downgrade_hold(const struct nrp_munmap_work *w, uint64_t i, struct nrp_munmap_hold *ret)
{
	uint64_t exclusive = w->find + w->detach;

	if (!i)
		return hold(ret, true, exclusive);
	*ret = (struct nrp_munmap_hold){ false, NRP_MUNMAP_DOWNGRADE_STEP, all(w) - exclusive };
	return i == 1;
}

bool nrp_munmap_hold(const struct nrp_munmap_params *params, const struct nrp_munmap_work *work,
		     uint64_t i, struct nrp_munmap_hold *ret)
{
	switch (params->variant) {
	case NRP_MUNMAP_SECTIONS:
		if (work->length > params->threshold)
			return section_hold(work, params->threshold, i, ret);
		break;
	case NRP_MUNMAP_TWO_PHASE:
		if (work->length >= params->threshold)
			return two_phase_hold(work, i, ret);
		break;
	case NRP_MUNMAP_TWO_PHASE_DEAD:
		if (work->length >= params->threshold)
			return two_phase_dead_hold(work, i, ret);
		break;
	case NRP_MUNMAP_DOWNGRADE:
		if (!work->keeps_write)
			return downgrade_hold(work, i, ret);
		break;
	default:
		break;
	}
	return !i && hold(ret, true, all(work));
}

static bool is_zapped(const struct nrp_munmap_work *w, uint64_t ns, uint64_t offset)
{
	return ns > w->find &&
	       (unsigned __int128)offset * w->zap < (unsigned __int128)(ns - w->find) * w->length;
}

enum nrp_munmap_sight nrp_munmap_fault_sees(const struct nrp_munmap_params *params,
					    const struct nrp_munmap_work *work,
					    const struct nrp_munmap_progress *progress,
					    uint64_t offset)
{
	uint64_t ended = progress->ended;
	bool early = work->length >= params->threshold;

	if (!progress->started)
		return NRP_MUNMAP_NORMAL;
	if (params->variant == NRP_MUNMAP_SECTIONS && work->length > params->threshold)
		return offset / params->threshold < ended ? NRP_MUNMAP_SEGV : NRP_MUNMAP_NORMAL;
	if (params->variant == NRP_MUNMAP_TWO_PHASE && early) {
		if (ended > 1)
			return NRP_MUNMAP_SEGV;
		return !work->special && is_zapped(work, progress->ns, offset)
			       ? NRP_MUNMAP_REPOPULATED
			       : NRP_MUNMAP_NORMAL;
	}
	/* Of the others the first hold takes the VMAs out, or marks them dead. */
	if (params->variant == NRP_MUNMAP_TWO_PHASE_DEAD && early && work->special)
		return ended > 1 ? NRP_MUNMAP_SEGV : NRP_MUNMAP_NORMAL;
	return ended ? NRP_MUNMAP_SEGV : NRP_MUNMAP_NORMAL;
}
