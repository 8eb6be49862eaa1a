/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ablation of scan.vma: what each rule between P0 and P3 adds, replayed in the order in which
 * they came: P0, the scan delay, the PID filter (P1), passes counted per VMA, partly scanned VMAs,
 * forced scans (P2), stale VMAs (P3); spec scan.md 2 and 7.2.
 *
 * Each step is a lane of its own; what it adds to the one before has the bounds of the pair. A
 * step whose scanner arms the same ranges as the one before, in every pass and whatever the unknown
 * facts are, changes nothing here: no decision of the capture tells the two apart.
 */
#ifndef NRP_ABLATION_H
#define NRP_ABLATION_H

#include "analysis/compare.h"

#define NRP_ABLATION_STEPS 7
#define NRP_ABLATION_METRICS 5

struct nrp_ablation_metric {
	char name[48], unit[24];    /* as in a comparison */
	struct nrp_quantity value;  /* of the step */
	struct nrp_quantity change; /* the step minus the one before; the first has none */
};

struct nrp_ablation_step {
	char name[32];         /* "P0", "+delay", .. */
	char policy[32];       /* "scan.vma=P2": what replay --new takes .. */
	char switched_off[96]; /* .. with these rules set to 0: "forced,seq_completed" */
	bool host;             /* it makes every recorded decision */
	bool discriminated;    /* it arms other ranges than the step before; the first: true */
	struct nrp_ablation_metric metric[NRP_ABLATION_METRICS];
};

struct nrp_ablation {
	int64_t capture_id;
	char capture[256];
	json_t *set; /* settings of all steps: {"scan.size_mb": 64, ..}; owned */
	struct nrp_ablation_step step[NRP_ABLATION_STEPS];
};

/*
 * Step @i (from 0) as a lane: @base with the step's variant and rules. @base names none of
 * scan.vma. NRP_USAGE if it has too many settings or some of scan.vma.
 */
int nrp_ablation_lane(struct nrp_lane_spec *ret, const struct nrp_lane_spec *base, size_t i,
		      struct nrp_error *err);
/*
 * Replays all steps; their scanners share one walk over the records. @base: what they have in
 * common (settings, cadence). clear() frees. -ENODATA (NRP_INPUT) if no pass can be judged.
 */
int nrp_ablation_run(struct nrp_ablation *ret, struct nrp_store *store,
		     const struct nrp_capture *capture, const struct nrp_verify *verify,
		     const struct nrp_lane_spec *base, struct nrp_error *err);
void nrp_ablation_clear(struct nrp_ablation *ablation);

/* Stores it, inside a transaction, in the place of the capture's last one. */
int nrp_ablation_save(const struct nrp_ablation *ablation, struct nrp_store *store,
		      struct nrp_error *err);
/* -ENOENT without @err if the capture has none. */
int nrp_ablation_load(struct nrp_ablation *ret, struct nrp_store *store,
		      const struct nrp_capture *capture, struct nrp_error *err);

/* The document numareplay.ablation/1; NULL: out of memory. */
json_t *nrp_ablation_json(const struct nrp_ablation *ablation);
/* One table for people, @width columns (0: as wide as needed); malloc'd, NULL: out of memory. */
char *nrp_ablation_text(const struct nrp_ablation *ablation, size_t width);

#endif
