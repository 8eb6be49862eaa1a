/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan.vma over a capture: which variant made the recorded scan decisions (own-policy replay), and
 * what another variant would have scanned with the recorded cadence; spec scan.md 2, 6, 7.2.
 *
 * Cadence is the recorded one: a pass happens when and where the host ran one. Address spaces are
 * what the record shows of them: a VMA is known from its first visit or hinting fault on.
 */
#ifndef NRP_SCAN_LANE_H
#define NRP_SCAN_LANE_H

#include "numareplay/store.h"
#include "replay/policies/scan_vma.h"
#include "replay/scan_evidence.h"

/* ---- own-policy replay -------------------------------------------------------------- */

/* A recorded pass that agrees only if the clock ticked, or a PID bit was set, on its way. */
struct nrp_scan_tie {
	uint64_t time, mm; /* of the pass, ns */
	bool tick, late_bit;
};

#define NRP_MAX_SCAN_TIES 6 /* listed per check; all are counted */

/* How one variant, or one with a rule switched off, explains the recorded passes. */
struct nrp_scan_check {
	enum nrp_scan_vma_variant variant;
	uint32_t rule_off; /* NRP_SCAN_RULE_*, 0: all rules on */
	uint64_t agree; /* passes whose decisions, sequence, offset and VMA state are as recorded */
	uint64_t disagree; /* others; the replay goes on from the record after each */
	uint64_t races;    /* of agree: only with a tick between two VMAs (spec 2.4, trap 7) */
	/* Of agree: only with PID bits of faults that came when the pass looked at their VMA. */
	uint64_t late_bits;
	struct nrp_scan_tie tie[NRP_MAX_SCAN_TIES]; /* the first of both kinds, in order */
	size_t nr_ties;
	uint64_t first_disagreement; /* ns, 0: none */
	/* Its decisions by what made them, and those that are as recorded (nrp_scan_reason_name()).
	 */
	uint64_t decisions_by[NRP_NR_SCAN_REASONS], agree_by[NRP_NR_SCAN_REASONS];
};

#define NRP_MAX_SCAN_CHECKS (NRP_NR_SCAN_VMA_VARIANTS + 4 * NRP_NR_SCAN_RULES)

struct nrp_scan_verify {
	uint64_t passes; /* that walked the address space and are judged */
	uint64_t idle;   /* that returned early: too soon, lost the race, or lock not free */
	uint64_t
		unjudged; /* cut off by the capture's end or by lost events, or without its facts */
	bool has_skips;   /* the capture records skipped VMAs (6.7+): else ranges only */
	bool has_state;   /* .. and the VMAs' state (6.4+), which the kernel of a P0 has not */
	uint64_t vma_states; /* recorded VMA states that were compared */
	/* The first NRP_NR_SCAN_VMA_VARIANTS are the variants with all rules on. */
	struct nrp_scan_check check[NRP_MAX_SCAN_CHECKS];
	size_t nr_checks;
	/*
	 * Most passes agree; of equals one with all rules on, and of these the one that came with
	 * the functions that the kernel has.
	 */
	size_t chosen;
	/* Bit v: variant v (all rules on) agrees with every judged pass. */
	uint32_t consistent;
	/* [a][b]: passes in which variants a and b decide differently from the recorded state. */
	uint64_t told_apart[NRP_NR_SCAN_VMA_VARIANTS][NRP_NR_SCAN_VMA_VARIANTS];
};

/*
 * Replays every recorded pass under every variant and under P1..P4 with each rule off. -ENODATA
 * (NRP_INPUT) if no pass holds what is needed (scan_begin with jiffies, sequence and offset, ranges
 * with their VMA).
 */
int nrp_scan_lane_verify(struct nrp_scan_verify *ret, struct nrp_store *store,
			 const struct nrp_capture *capture, struct nrp_error *err);

/* ---- another variant ---------------------------------------------------------------- */

struct nrp_scan_lane_config {
	enum nrp_scan_vma_variant variant;
	uint32_t rules_off;     /* NRP_SCAN_RULE_* */
	uint64_t scan_size_mb;  /* at most 65536; 0: the host's */
	uint64_t scan_delay_ms; /* UINT64_MAX: the host's */
	/* VMAs that the host left out as UNSUITABLE may be eligible (scan.shmem): possible ranges.
	 */
	bool gains_shmem;
};

/* One range that the lane arms. */
struct nrp_scan_lane_range {
	uint64_t time, mm; /* of the recorded pass, ns */
	uint64_t start, end, vm_start, vm_end;
	int64_t recorded_pages; /* entries armed where the record has this range, else -1 */
	enum nrp_scan_vma_pass by;
	bool certain; /* armed whatever the unknown facts are */
};

/* A list of them that grows; the caller frees @at. */
struct nrp_scan_ranges {
	struct nrp_scan_lane_range *at;
	size_t count, room;
};
/* 0 or -ENOMEM. */
int nrp_scan_ranges_add(struct nrp_scan_ranges *list, const struct nrp_scan_lane_range *range);

/* Why a VMA was PID_INACTIVE for the thread that scans, since the VMA has state. */
enum nrp_scan_inactive {
	NRP_INACTIVE_NEVER_SET, /* nobody faulted in it */
	NRP_INACTIVE_CLEARED,   /* the thread's bit was set; the window's reset cleared it */
	NRP_INACTIVE_OTHERS,    /* only other threads' bits were set */
	NRP_NR_SCAN_INACTIVE
};

/*
 * What scans did with a VMA. Starved at the end: an eligible VMA, there at the last pass, not armed
 * to its end for more than nr_threads + 1 full sequences of its address space, and left out as
 * PID_INACTIVE since it was last armed.
 */
struct nrp_scan_starvation {
	uint64_t last_complete; /* ns: last time armed up to its end, 0: never */
	uint64_t completed;     /* so often */
	uint64_t visits;        /* passes that came by it */
	uint64_t armed_passes, armed_ranges;
	uint64_t armed_entries;  /* pages */
	uint64_t unknown_ranges; /* of armed_ranges: how many entries they armed is not known */
	uint64_t passes_since;   /* passes over the address space since then, or since first seen */
	uint64_t sequences_since;            /* full sequences since then, or since first seen */
	uint64_t skips[NRP_NR_SCAN_SKIPS];   /* decisions that left it out, by reason */
	uint64_t unarmed[NRP_NR_SCAN_SKIPS]; /* .. since it was last armed */
	uint64_t inactive_by[NRP_NR_SCAN_INACTIVE]; /* of unarmed[PID_INACTIVE] */
	bool starved;
};

/* An eligible VMA. */
struct nrp_scan_lane_vma {
	uint64_t mm, vm_start, vm_end;  /* as last seen */
	uint64_t first_seen, last_seen; /* ns */
	uint64_t passes;                /* over its address space while it was there */
	uint64_t vm_flags;
	bool vm_flags_known;
	struct nrp_scan_starvation record, lane;
	bool lane_certain; /* lane.starved is the same whatever the unknown facts are */
};

struct nrp_scan_lane_mm {
	uint64_t mm;
	uint64_t passes;
	uint64_t diverged;  /* ns of the first pass that decides unlike the record, 0: never */
	uint64_t uncertain; /* ns of the first pass that hangs on unknown facts, 0: never */
	int32_t nr_threads; /* most seen; 0 not known */
};

/* What the capture's passes become under another variant; arrays are the lane's. */
struct nrp_scan_lane {
	struct nrp_scan_lane_range *range; /* in time order, those of a pass in their own */
	size_t nr_ranges;
	struct nrp_scan_lane_vma *vma;
	size_t nr_vmas;
	struct nrp_scan_lane_mm *mm;
	size_t nr_mms;
	uint64_t passes;                      /* that walked */
	struct nrp_scan_lane_range *possible; /* that only some of the unknown facts give; in time
						 order */
	size_t possible_ranges;
	uint64_t armed_ranges_recorded;
	/* For nrp_scan_lanes_alike(): hash of what each run armed in each pass. */
	uint64_t decided[NRP_SCAN_RUNS];
};

/*
 * Runs one lane. Unknown facts (did a range arm anything; did the lane have this fault; spec 6 and
 * 7.2) are taken all ways in several runs; what they agree on is certain. Ranges listed are those
 * of the run that takes every unknown fact as "no". -ENODATA as verify.
 */
int nrp_scan_lane_run(struct nrp_scan_lane *ret, struct nrp_store *store,
		      const struct nrp_capture *capture, const struct nrp_scan_lane_config *config,
		      struct nrp_error *err);
/*
 * Runs up to NRP_MAX_SCAN_LANES lanes in one walk over the records; each is as if it had run alone.
 * @ret and @config have @nr_lanes; clear each. As nrp_scan_lane_run(); -EINVAL if there are more.
 */
#define NRP_MAX_SCAN_LANES 8
int nrp_scan_lanes_run(struct nrp_scan_lane *ret, struct nrp_store *store,
		       const struct nrp_capture *capture, const struct nrp_scan_lane_config *config,
		       size_t nr_lanes, struct nrp_error *err);
/*
 * Do both arm the same ranges in every pass of the capture, whatever the unknown facts are? Then
 * nothing on record tells their policies apart.
 */
bool nrp_scan_lanes_alike(const struct nrp_scan_lane *a, const struct nrp_scan_lane *b);
/* The first range of an address space that the record does not have; NULL: none. */
const struct nrp_scan_lane_range *nrp_scan_lane_first_added(const struct nrp_scan_lane *lane,
							    uint64_t mm);
/* Frees what it holds; accepts a zeroed object. */
void nrp_scan_lane_clear(struct nrp_scan_lane *lane);

/* ---- the recorded scans --------------------------------------------------------------- */

/* What they did with each eligible VMA: its record is filled. */
struct nrp_scan_record {
	struct nrp_scan_lane_vma *vma;
	size_t nr_vmas;
	bool has_skips; /* skipped VMAs are on record: else nothing is known of visits and skips */
};

/* As nrp_scan_lane_verify(), in the same walk over the capture; record_clear() frees. */
int nrp_scan_lane_verify_record(struct nrp_scan_verify *ret, struct nrp_scan_record *ret_record,
				struct nrp_store *store, const struct nrp_capture *capture,
				struct nrp_error *err);
/* Frees what it holds; accepts a zeroed object. */
void nrp_scan_record_clear(struct nrp_scan_record *record);

#endif
