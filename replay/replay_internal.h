/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of a replay share. */
#ifndef NRP_REPLAY_INTERNAL_H
#define NRP_REPLAY_INTERNAL_H

#include "replay/replay.h"

/* ---- families.c: which policies the lanes have, and where that matters ---------------- */

/* Takes over what verify found, and names the lanes' variants. */
void nrp_replay_resolve(struct nrp_replay *r, const struct nrp_verify *verify,
			const struct nrp_host_facts *facts);
/* Which families decide nothing on this capture, and what scan lanes the others need. */
int nrp_replay_prepare(struct nrp_replay *r, struct nrp_store *store,
		       const struct nrp_capture *capture, struct nrp_error *err);
/* What a lane whose scan.vma is named scans with; settings that it does not name are the host's. */
struct nrp_scan_lane_config nrp_replay_scan_config(const struct nrp_lane_spec *spec,
						   const struct nrp_host_facts *facts);
/* Families in which the lanes are not known to be the same. */
void nrp_replay_compare_families(struct nrp_replay *r);
/* Does the lane do what the host did, limiter and filter apart? */
bool nrp_replay_as_host(const struct nrp_replay *r, int lane);
/* The same for one family that verify checked: the host's variant, or not to be told from it. */
bool nrp_replay_same_as_host(const struct nrp_verify_check *check, int variant);
bool nrp_replay_same_limiter(const struct nrp_ratelimit_params *a,
			     const struct nrp_ratelimit_params *b);

/* NRP_PERIOD_*: rules of scan.period that the lane has. */
uint32_t nrp_replay_period_rules(const struct nrp_lane_spec *spec);

/* The lane's scan.period: with no lane, the host's. */
struct nrp_cadence_lane nrp_replay_cadence_lane(const struct nrp_replay *r,
						const struct nrp_replay_lane *lane,
						const struct nrp_host_facts *facts);

/* ---- replay_worlds.c: the records through the worlds ---------------------------------- */

int nrp_replay_load_waits(struct nrp_replay *r, struct nrp_store *store,
			  const struct nrp_capture *capture, struct nrp_error *err);
int nrp_replay_load_samples(struct nrp_replay *r, struct nrp_store *store,
			    const struct nrp_capture *capture, struct nrp_error *err);
/* @shared: some pages have several mappings. */
int nrp_replay_run_worlds(struct nrp_replay *r, struct nrp_store *store,
			  const struct nrp_capture *capture, bool shared, struct nrp_error *err);

#endif
