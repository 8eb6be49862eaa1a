/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/calibrate.h"
#include "capture/thread.h"

#include <errno.h>
#include <stdlib.h>

/* A prefix of the capture with this many usable faults settles what it can settle. */
#define ENOUGH_FAULTS 50000
/* Candidate places of last_cpupid in page_flags: bit s, width w. */
#define MIN_BITS 9  /* 8 pid bits and one CPU bit */
#define MAX_BITS 32 /* NR_CPUS of 2^24 */

struct sample {
	uint64_t flags;
	bool open;
	bool has_flags;
	int32_t dst_cpu;
	bool allowed;
	bool thp;
	int64_t result; /* INT64_MIN: migrate not reached */
	uint32_t cpu;
};

struct vote {
	uint32_t *count; /* [cpus * NRP_VOTE_NODES] */
	uint32_t cpus;
};
#define NRP_VOTE_NODES 64

struct nrp_calibration {
	const struct nrp_catalogue *cat;
	bool need_topology;
	struct nrp_thread_table *threads; /* only tid -> index of a sample */
	struct sample *samples;
	size_t nr_samples;

	uint64_t faults;
	/* last_cpupid: bit s of place[w] = "width w at bit s fits all samples so far" */
	uint64_t place[MAX_BITS + 1];
	uint64_t cpupid_samples, max_cpupid;
	/* node: bit s = "page_flags >> s is the node" fits all samples so far */
	uint64_t nid_place;
	uint64_t nid_samples;
	int64_t max_nid;
	uint64_t moved_if[2], not_moved_if[2]; /* by migrate result 0 and 1 */
	int64_t huge_pages;                    /* of faults that thp_begin marks; 0: none seen */
	uint64_t first_time, first_jiffies, last_time, last_jiffies;
	bool have_jiffies;
	uint64_t vma_bounds; /* all of them, or-ed */
	struct vote vote;
};

int nrp_calibration_new(struct nrp_calibration **ret, const struct nrp_catalogue *catalogue,
			bool need_topology, struct nrp_error *err)
{
	struct nrp_calibration *cal = calloc(1, sizeof(*cal));

	if (!cal)
		return nrp_fail_nomem(err);
	cal->threads = nrp_thread_table_new();
	if (!cal->threads) {
		free(cal);
		return nrp_fail_nomem(err);
	}
	cal->cat = catalogue;
	cal->need_topology = need_topology;
	for (int w = MIN_BITS; w <= MAX_BITS; w++)
		cal->place[w] = ~UINT64_C(0) >> (w - 1); /* s + w <= 64 */
	cal->nid_place = ~UINT64_C(0) << 32;             /* above the flag bits */
	cal->max_nid = -1;
	*ret = cal;
	return 0;
}

struct nrp_calibration *nrp_calibration_free(struct nrp_calibration *cal)
{
	if (!cal)
		return NULL;
	nrp_thread_table_free(cal->threads);
	free(cal->samples);
	free(cal->vote.count);
	free(cal);
	return NULL;
}

/* The open fault of a thread. thread->ordinal holds its index + 1 here. */
static struct sample *sample_of(struct nrp_calibration *cal, int32_t tid, uint32_t cpu)
{
	struct nrp_thread *t = nrp_thread_get(cal->threads, tid, cpu);

	if (!t)
		return NULL;
	if (!t->ordinal) {
		if (!(cal->nr_samples & (cal->nr_samples + 1))) {
			size_t n = cal->nr_samples * 2 + 2;
			struct sample *s = reallocarray(cal->samples, n, sizeof(*s));

			if (!s)
				return NULL;
			cal->samples = s;
		}
		memset(&cal->samples[cal->nr_samples], 0, sizeof(struct sample));
		t->ordinal = (uint32_t)++cal->nr_samples;
	}
	return &cal->samples[t->ordinal - 1];
}

static int vote(struct nrp_calibration *cal, int64_t cpu, int64_t nid)
{
	struct vote *v = &cal->vote;

	if (!cal->need_topology || cpu < 0 || cpu >= NRP_MAX_CPUS || nid < 0 ||
	    nid >= NRP_VOTE_NODES)
		return 0;
	if (cpu >= v->cpus) {
		uint32_t cpus = (uint32_t)cpu + 64;
		uint32_t *count = calloc((size_t)cpus * NRP_VOTE_NODES, sizeof(*count));

		if (!count)
			return -ENOMEM;
		if (v->count)
			memcpy(count, v->count, (size_t)v->cpus * NRP_VOTE_NODES * sizeof(*count));
		free(v->count);
		v->count = count;
		v->cpus = cpus;
	}
	v->count[(size_t)cpu * NRP_VOTE_NODES + (size_t)nid]++;
	return 0;
}

static void see_cpupid(struct nrp_calibration *cal, uint64_t flags, uint64_t cpupid)
{
	for (int w = MIN_BITS; w <= MAX_BITS; w++) {
		uint64_t mask = (UINT64_C(1) << w) - 1;

		for (uint64_t left = cal->place[w]; left; left &= left - 1) {
			int s = __builtin_ctzll(left);

			if (((flags >> s) & mask) != cpupid)
				cal->place[w] &= ~(UINT64_C(1) << s);
		}
	}
	cal->cpupid_samples++;
	if (cpupid > cal->max_cpupid)
		cal->max_cpupid = cpupid;
}

static void see_nid(struct nrp_calibration *cal, uint64_t flags, int64_t nid)
{
	if (nid < 0 || nid >= NRP_MAX_NODES) /* damage: no kernel has such a node */
		return;
	for (uint64_t left = cal->nid_place; left; left &= left - 1) {
		int s = __builtin_ctzll(left);

		if (flags >> s != (uint64_t)nid)
			cal->nid_place &= ~(UINT64_C(1) << s);
	}
	cal->nid_samples++;
	if (nid > cal->max_nid)
		cal->max_nid = nid;
}

static void see_jiffies(struct nrp_calibration *cal, uint64_t time, uint64_t jiffies)
{
	if (!cal->have_jiffies) {
		cal->have_jiffies = true;
		cal->first_time = time;
		cal->first_jiffies = jiffies;
	}
	cal->last_time = time;
	cal->last_jiffies = jiffies;
}

static void see_huge_pages(struct nrp_calibration *cal, uint64_t pages)
{
	if (pages > 1 && pages <= NRP_MAX_HUGE_PAGES)
		cal->huge_pages = (int64_t)pages;
}

static int see_task_fault(struct nrp_calibration *cal, struct sample *s, uint64_t last_cpupid,
			  int64_t mem_nid, uint64_t flags)
{
	bool moved = flags & NRP_TNF_MIGRATED;

	if (s->has_flags) {
		see_cpupid(cal, s->flags, last_cpupid & UINT32_MAX);
		if (!moved)
			see_nid(cal, s->flags, mem_nid);
	}
	if (s->result == 0 || s->result == 1) {
		if (moved)
			cal->moved_if[s->result]++;
		else
			cal->not_moved_if[s->result]++;
	}
	cal->faults++;
	/* FAULT_LOCAL compares the page's node before migration with the CPU's. */
	if ((flags & NRP_TNF_FAULT_LOCAL) && !moved)
		return vote(cal, s->cpu, mem_nid);
	return 0;
}

static uint64_t get(const struct nrp_calibration *cal, const struct nrp_raw_event *raw,
		    const struct nrp_event_desc *desc, unsigned int index, uint64_t missing)
{
	const struct nrp_field *f = &desc->field[index];

	return nrp_has_integer(f, raw)
		       ? nrp_load(raw->data + f->offset, f->size, f->is_signed, cal->cat->swap)
		       : missing;
}

static int see_sched(struct nrp_calibration *cal, const struct nrp_raw_event *raw,
		     const struct nrp_event_desc *desc, unsigned int src_cpu, unsigned int dst_cpu)
{
	/* In all three events the node follows its CPU in the list. */
	int r = vote(cal, (int64_t)get(cal, raw, desc, src_cpu, UINT64_MAX),
		     (int64_t)get(cal, raw, desc, src_cpu + 1, UINT64_MAX));

	return r < 0 ? r
		     : vote(cal, (int64_t)get(cal, raw, desc, dst_cpu, UINT64_MAX),
			    (int64_t)get(cal, raw, desc, dst_cpu + 1, UINT64_MAX));
}

static int see_fault_event(struct nrp_calibration *cal, const struct nrp_raw_event *raw,
			   const struct nrp_event_desc *desc)
{
	const struct nrp_field *pid = &cal->cat->common_pid;
	struct sample *s;

	if (!nrp_has_integer(pid, raw))
		return 0;
	s = sample_of(cal,
		      (int32_t)nrp_load(raw->data + pid->offset, pid->size, true, cal->cat->swap),
		      raw->cpu);
	if (!s)
		return -ENOMEM;
	if (desc->event == NRP_EV_FAULT_BEGIN) {
		cal->vma_bounds |= get(cal, raw, desc, NRP_EF_FAULT_BEGIN_vm_start, 0) |
				   get(cal, raw, desc, NRP_EF_FAULT_BEGIN_vm_end, 0);
		*s = (struct sample){
			.open = true,
			.flags = get(cal, raw, desc, NRP_EF_FAULT_BEGIN_page_flags, 0),
			.has_flags =
				nrp_has_integer(&desc->field[NRP_EF_FAULT_BEGIN_page_flags], raw),
			.dst_cpu = -1,
			.result = INT64_MIN,
			.cpu = raw->cpu,
		};
		return 0;
	}
	if (!s->open)
		return 0;
	switch (desc->event) {
	case NRP_EV_FILTER_BEGIN:
		s->dst_cpu = (int32_t)get(cal, raw, desc, NRP_EF_FILTER_BEGIN_dst_cpu, UINT64_MAX);
		if (s->has_flags)
			see_nid(cal, s->flags,
				(int64_t)get(cal, raw, desc, NRP_EF_FILTER_BEGIN_src_nid,
					     UINT64_MAX));
		return 0;
	case NRP_EV_FILTER_END:
		s->allowed = get(cal, raw, desc, NRP_EF_FILTER_END_allow, 0) != 0;
		return 0;
	case NRP_EV_FAULT_TARGET:
		if (!s->allowed)
			return 0;
		return vote(cal, s->dst_cpu,
			    (int64_t)get(cal, raw, desc, NRP_EF_FAULT_TARGET_nid, UINT64_MAX));
	case NRP_EV_THP_BEGIN:
		s->thp = true;
		return 0;
	case NRP_EV_MIGRATE_END:
	case NRP_EV_THP_END:
		s->result = (int64_t)get(cal, raw, desc, NRP_EF_MIGRATE_END_ret, 0);
		return 0;
	default: /* task_fault */
		s->open = false;
		if (s->thp)
			see_huge_pages(cal, get(cal, raw, desc, NRP_EF_TASK_FAULT_pages, 0));
		return see_task_fault(
			cal, s, get(cal, raw, desc, NRP_EF_TASK_FAULT_last_cpupid, 0),
			(int64_t)get(cal, raw, desc, NRP_EF_TASK_FAULT_nid, UINT64_MAX),
			get(cal, raw, desc, NRP_EF_TASK_FAULT_flags, 0));
	}
}

static void see_ticks(struct nrp_calibration *cal, const struct nrp_raw_event *raw,
		      const struct nrp_event_desc *desc)
{
	static const uint8_t jiffies_field[NRP_NR_EVENTS] = {
		[NRP_EV_SCAN_BEGIN] = NRP_EF_SCAN_BEGIN_jiffies,
		[NRP_EV_SCAN_END] = NRP_EF_SCAN_END_jiffies,
		[NRP_EV_PREPARE_BEGIN] = NRP_EF_PREPARE_BEGIN_jiffies,
		[NRP_EV_MIGRATE_BEGIN] = NRP_EF_MIGRATE_BEGIN_jiffies,
		[NRP_EV_THP_BEGIN] = NRP_EF_THP_BEGIN_jiffies,
	};
	uint8_t i = jiffies_field[desc->event];

	if (nrp_has_integer(&desc->field[i], raw))
		see_jiffies(cal, raw->time, get(cal, raw, desc, i, 0));
}

int nrp_calibration_event(struct nrp_calibration *cal, const struct nrp_raw_event *raw)
{
	const struct nrp_event_desc *desc =
		raw->id >= 0 && raw->id < NRP_MAX_EVENT_IDS ? cal->cat->by_id[raw->id] : NULL;

	if (!desc)
		return 0;
	switch (desc->event) {
	case NRP_EV_SCAN_BEGIN:
	case NRP_EV_SCAN_END:
	case NRP_EV_PREPARE_BEGIN:
	case NRP_EV_MIGRATE_BEGIN:
		see_ticks(cal, raw, desc);
		return 0;
	case NRP_EV_THP_BEGIN:
		see_ticks(cal, raw, desc);
		return see_fault_event(cal, raw, desc);
	case NRP_EV_FAULT_BEGIN:
	case NRP_EV_FILTER_BEGIN:
	case NRP_EV_FILTER_END:
	case NRP_EV_FAULT_TARGET:
	case NRP_EV_MIGRATE_END:
	case NRP_EV_THP_END:
	case NRP_EV_TASK_FAULT:
		return see_fault_event(cal, raw, desc);
	case NRP_EV_MOVE_NUMA:
		return see_sched(cal, raw, desc, NRP_EF_MOVE_NUMA_src_cpu,
				 NRP_EF_MOVE_NUMA_dst_cpu);
	case NRP_EV_SWAP_NUMA:
		return see_sched(cal, raw, desc, NRP_EF_SWAP_NUMA_src_cpu,
				 NRP_EF_SWAP_NUMA_dst_cpu);
	case NRP_EV_STICK_NUMA:
		return see_sched(cal, raw, desc, NRP_EF_STICK_NUMA_src_cpu,
				 NRP_EF_STICK_NUMA_dst_cpu);
	default:
		return 0;
	}
}

/* Bit of the only candidate, -1 if there is none or a choice. */
static int only_bit(uint64_t set)
{
	return set && !(set & (set - 1)) ? __builtin_ctzll(set) : -1;
}

/*
 * Width and place of last_cpupid. All ones ("never touched") gives the width outright; without such
 * a sample the widest field that fits every sample is taken.
 */
static bool cpupid_place(const struct nrp_calibration *cal, int *ret_shift, int *ret_bits)
{
	uint64_t top = cal->max_cpupid + 1;

	if (!cal->cpupid_samples)
		return false;
	for (int w = MAX_BITS; w >= MIN_BITS; w--) {
		if (!(top & (top - 1)) && top != UINT64_C(1) << w)
			continue;
		if (only_bit(cal->place[w]) < 0)
			continue;
		*ret_shift = only_bit(cal->place[w]);
		*ret_bits = w;
		return true;
	}
	return false;
}

bool nrp_calibration_settled(const struct nrp_calibration *cal)
{
	int shift, bits;

	return !cal->need_topology && cal->faults >= ENOUGH_FAULTS && cal->max_nid > 0 &&
	       only_bit(cal->nid_place) >= 0 && cpupid_place(cal, &shift, &bits) &&
	       (cal->moved_if[0] || cal->moved_if[1]) &&
	       cal->last_time - cal->first_time >= UINT64_C(2000000000);
}

static const int common_hz[] = { 100, 250, 300, 1000 };

/* Ticks per second from the longest pair; the usual values within 2 %, else the rounded slope. */
static int64_t fit_hz(const struct nrp_calibration *cal)
{
	double seconds = (double)(cal->last_time - cal->first_time) / 1e9;
	double ticks = (double)(int64_t)(cal->last_jiffies - cal->first_jiffies);
	double hz;

	if (!cal->have_jiffies || cal->last_time <= cal->first_time || ticks < 20)
		return -1;
	hz = ticks / seconds;
	for (size_t i = 0; i < sizeof(common_hz) / sizeof(common_hz[0]); i++)
		if (hz > common_hz[i] * 0.98 && hz < common_hz[i] * 1.02)
			return common_hz[i];
	return hz >= 24 && hz <= 20000 ? (int64_t)(hz + 0.5) : -1;
}

static int finish_topology(const struct nrp_calibration *cal, struct nrp_host_facts *facts,
			   struct nrp_error *err)
{
	int nodes = (int)cal->max_nid >= facts->nr_nodes ? (int)cal->max_nid + 1 : facts->nr_nodes;
	int16_t *cpu_nid = calloc(cal->vote.cpus + 1, sizeof(*cpu_nid));
	int64_t *memkb;

	if (!cpu_nid)
		return nrp_fail_nomem(err);
	for (uint32_t cpu = 0; cpu < cal->vote.cpus; cpu++) {
		const uint32_t *count = cal->vote.count + (size_t)cpu * NRP_VOTE_NODES;
		uint32_t best = 0, sum = 0;

		cpu_nid[cpu] = -1;
		for (int nid = 0; nid < NRP_VOTE_NODES; nid++) {
			sum += count[nid];
			if (count[nid] > count[best])
				best = (uint32_t)nid;
		}
		/* Anything but near unanimity is no topology. */
		if (sum && count[best] >= sum - sum / 20) {
			cpu_nid[cpu] = (int16_t)best;
			facts->nr_cpus = (int)cpu + 1;
			if ((int)best >= nodes)
				nodes = (int)best + 1;
		}
	}
	memkb = calloc((size_t)nodes + 1, sizeof(*memkb));
	if (!memkb) {
		free(cpu_nid);
		return nrp_fail_nomem(err);
	}
	for (int nid = 0; nid < nodes; nid++)
		memkb[nid] = nid < facts->nr_nodes ? facts->node_memkb[nid] : -1;
	free(facts->cpu_nid);
	free(facts->node_memkb);
	facts->cpu_nid = cpu_nid;
	facts->node_memkb = memkb;
	facts->nr_nodes = nodes;
	facts->topology_inferred = true;
	return 0;
}

int64_t nrp_calibration_page_size(const struct nrp_calibration *cal)
{
	/* No kernel has pages below 4 KiB, and each VMA begins and ends with a page. */
	return cal->vma_bounds & 4096 ? 4096 : -1;
}

int nrp_calibration_finish(const struct nrp_calibration *cal, bool infer_topology,
			   struct nrp_host_facts *facts, struct nrp_error *err)
{
	int shift, bits;
	int64_t hz = fit_hz(cal);

	if (hz > 0)
		facts->hz = hz;
	if (cpupid_place(cal, &shift, &bits)) {
		facts->cpupid_shift = shift;
		facts->cpupid_bits = bits;
	}
	if (cal->nid_samples && cal->nid_place) {
		/* With node 0 alone several places fit; the lowest leaves room for most nodes. */
		facts->nid_shift = __builtin_ctzll(cal->nid_place);
	}
	if (cal->moved_if[1] > cal->moved_if[0])
		facts->moved_result = 1;
	else if (cal->moved_if[0] > cal->moved_if[1])
		facts->moved_result = 0;
	else if (cal->cat->present[NRP_EV_PREPARE_BEGIN])
		facts->moved_result = 0;
	if (cal->huge_pages)
		facts->huge_pages = cal->huge_pages;
	return infer_topology ? finish_topology(cal, facts, err) : 0;
}
