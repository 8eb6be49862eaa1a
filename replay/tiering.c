/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/tiering.h"
#include "replay/attempts.h"
#include "replay/host.h"
#include "replay/merge.h"
#include "replay/tiering_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MODE_TIERING 2 /* bit of kernel.numa_balancing */
#define DEFAULT_HOT_MS 1000
#define DEFAULT_LIMIT_MB 65536

#define HOT_SETTING "/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms"
#define LIMIT_SETTING "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps"

/* ---- parameters --------------------------------------------------------------------- */

/* A number among the host's settings, else @fallback. */
static int setting(struct nrp_store *store, int64_t capture_id, const char *name, uint32_t fallback,
		   uint32_t *ret, struct nrp_error *err)
{
	char *text = NULL, *end;
	unsigned long long value;
	int r = nrp_store_get_setting(store, capture_id, name, &text, err);

	*ret = fallback;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (end != text && !*end && !errno && value <= NRP_MAX_SYSCTL && *text != '-')
		*ret = (uint32_t)value;
	free(text);
	return 0;
}

int nrp_tiering_host_params(struct nrp_tiering_lane_params *ret, enum nrp_tiering_variant variant,
			    struct nrp_store *store, const struct nrp_capture *capture,
			    struct nrp_error *err)
{
	const struct nrp_host_facts *facts = &capture->facts;
	uint32_t hot, limit;
	int r = setting(store, capture->id, HOT_SETTING, DEFAULT_HOT_MS, &hot, err);

	if (r == 0)
		r = setting(store, capture->id, LIMIT_SETTING, DEFAULT_LIMIT_MB, &limit, err);
	if (r < 0)
		return r;
	*ret = (struct nrp_tiering_lane_params){
		.policy = {
			.variant = variant,
			.hot_threshold_ms = hot,
			.limit = nrp_tiering_limit(limit, nrp_host_page_size(facts)),
			.scan_period_max_ms = nrp_host_tunables(facts).period_max_ms,
			.cpupid_bits = nrp_host_number(facts->cpupid_bits, 0),
		},
		.free = NRP_TIERING_FREE_UNKNOWN,
	};
	return 0;
}

/* ---- faults on slow nodes ----------------------------------------------------------- */

struct run {
	struct nrp_tiering result;
	const struct nrp_capture *capture;
	bool *slow;         /* [nr_nodes] */
	uint64_t loss_from; /* ns; UINT64_MAX: nothing was lost */
	struct nrp_arming *arming;
	struct nrp_tiering_state **state; /* [nr_lanes] */
};

/* A node without CPUs is taken for slow memory; the tier map itself is in no capture. */
static int find_slow_nodes(struct run *run, struct nrp_error *err)
{
	const struct nrp_host_facts *facts = &run->capture->facts;
	int n = facts->nr_nodes > 0 ? facts->nr_nodes : 1;
	bool has_cpus[NRP_MAX_NODES];

	run->slow = calloc((size_t)n, sizeof(*run->slow));
	if (!run->slow)
		return nrp_fail_nomem(err);
	run->result.tiers_known = !facts->topology_inferred && facts->nr_cpus > 0;
	if (!run->result.tiers_known)
		return 0;
	nrp_host_cpu_nodes(facts, has_cpus);
	for (int nid = 0; nid < n; nid++)
		run->slow[nid] = !has_cpus[nid];
	return 0;
}

static int find_first_loss(struct run *run, struct nrp_store *store, struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, run->capture->id, NRP_LOSS, ~UINT64_C(0), err);

	run->loss_from = UINT64_MAX;
	if (r == 0)
		r = nrp_cursor_next(cursor, &row, err);
	if (r > 0) {
		run->loss_from = ((const struct nrp_loss *)row)->time;
		r = 0;
	}
	nrp_cursor_close(cursor);
	return r;
}

static bool is_slow_fault(const struct run *run, const struct nrp_hint_fault *f)
{
	return !NRP_NULL(f, hint_fault, filter_delay) && !NRP_NULL(f, hint_fault, src_nid) &&
	       !NRP_NULL(f, hint_fault, dst_cpu) && f->src_nid >= 0 &&
	       f->src_nid < run->capture->facts.nr_nodes && run->slow[f->src_nid];
}

static int see_fault(struct run *run, const struct nrp_hint_fault *f)
{
	const struct nrp_host_facts *facts = &run->capture->facts;
	struct nrp_slow_fault s;
	int nid;

	if (!is_slow_fault(run, f))
		return 0;
	nid = nrp_host_cpu_nid(facts, f->dst_cpu);
	if (nid < 0 || nid >= facts->nr_nodes)
		return 0;
	s = (struct nrp_slow_fault){
		.time = f->time + f->filter_delay,
		.pages = nrp_fault_pages(f),
		.dst_nid = nid,
		.answer = NRP_NULL(f, hint_fault, filter_answer) ? -1 : f->filter_answer,
		.certain = facts->balancing > 0 && f->time < run->loss_from,
	};
	if (nrp_arming_fault(run->arming, f, nrp_host_page_size(facts), s.pages, &s.armed) < 0)
		return -ENOMEM;
	run->result.slow.faults++;
	run->result.slow.pages += s.pages;
	run->result.never_armed += !s.armed.known;
	for (size_t i = 0; i < run->result.nr_lanes; i++)
		if (nrp_tiering_state_fault(run->state[i], &s, &run->result.lane[i]) < 0)
			return -ENOMEM;
	return 0;
}

/* ---- ranges and faults side by side ------------------------------------------------- */

static int see(void *context, enum nrp_record_kind kind, const void *row)
{
	struct run *run = context;

	return kind == NRP_SCAN_RANGE ? nrp_arming_add(run->arming, row) : see_fault(run, row);
}

/* Ranges that began before a fault come first. */
static int read_all(struct run *run, struct nrp_store *store, struct nrp_error *err)
{
	static const struct nrp_merge_input inputs[] = {
		{ NRP_SCAN_RANGE, ~UINT64_C(0) },
		{ NRP_HINT_FAULT,
		  NRP_BIT(hint_fault, time) | NRP_BIT(hint_fault, mm) | NRP_BIT(hint_fault, addr) |
			  NRP_BIT(hint_fault, src_nid) | NRP_BIT(hint_fault, filter_delay) |
			  NRP_BIT(hint_fault, dst_cpu) | NRP_BIT(hint_fault, filter_answer) |
			  NRP_BIT(hint_fault, pages) },
	};

	return nrp_merge_each(store, run->capture->id, inputs, sizeof(inputs) / sizeof(inputs[0]),
			      see, run, err);
}

/* ---- the whole ---------------------------------------------------------------------- */

static int make_lanes(struct run *run, const struct nrp_tiering_lane_params *params, size_t n,
		      struct nrp_error *err)
{
	run->arming = nrp_arming_new();
	run->result.lane = calloc(n ? n : 1, sizeof(*run->result.lane));
	run->state = calloc(n ? n : 1, sizeof(struct nrp_tiering_state *));
	if (!run->arming || !run->result.lane || !run->state)
		return nrp_fail_nomem(err);
	for (; run->result.nr_lanes < n; run->result.nr_lanes++) {
		size_t i = run->result.nr_lanes;

		run->state[i] = nrp_tiering_state_new(&params[i], &run->capture->facts,
						      run->capture->first_time);
		if (!run->state[i])
			return nrp_fail_nomem(err);
	}
	return 0;
}

static void clear_run(struct run *run)
{
	if (run->state)
		for (size_t i = 0; i < run->result.nr_lanes; i++)
			nrp_tiering_state_free(run->state[i]);
	free(run->state);
	free(run->slow);
	nrp_arming_free(run->arming);
}

int nrp_tiering_run(struct nrp_tiering *ret, struct nrp_store *store,
		    const struct nrp_capture *capture, const struct nrp_tiering_lane_params *params,
		    size_t n, struct nrp_error *err)
{
	bool mode_off = capture->facts.balancing >= 0 && !(capture->facts.balancing & MODE_TIERING);
	struct run run = { .capture = capture };
	int r = find_slow_nodes(&run, err);

	if (r == 0)
		r = find_first_loss(&run, store, err);
	if (r == 0)
		r = make_lanes(&run, params, n, err);
	if (r == 0 && !mode_off)
		r = read_all(&run, store, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		nrp_tiering_state_finish(run.state[i], &run.result.lane[i]);
	run.result.identical = mode_off || (run.result.tiers_known && !run.result.slow.faults &&
					    run.loss_from == UINT64_MAX);
	clear_run(&run);
	if (r < 0) {
		nrp_tiering_clear(&run.result);
		return r;
	}
	*ret = run.result;
	return 0;
}

void nrp_tiering_clear(struct nrp_tiering *tiering)
{
	free(tiering->lane);
	memset(tiering, 0, sizeof(*tiering));
}
