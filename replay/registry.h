/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every policy family, variant, parameter and kernel profile by name, and the lanes that a
 * command line describes with them.
 */
#ifndef NRP_REGISTRY_H
#define NRP_REGISTRY_H

#include "numareplay/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nrp_family_id {
	NRP_FAMILY_SCAN_VMA,
	NRP_FAMILY_SCAN_PTE,
	NRP_FAMILY_SCAN_SHMEM,
	NRP_FAMILY_SCAN_RESET,
	NRP_FAMILY_MIGRATE_FILTER,
	NRP_FAMILY_MIGRATE_RATELIMIT,
	NRP_FAMILY_MUNMAP_LOCK,
	NRP_FAMILY_HUGETLB_COUNT,
	NRP_FAMILY_TIERING_PROMOTE,
	NRP_FAMILY_TASK_CLAIM,
	NRP_FAMILY_MIGRATE_OUTCOME,
	NRP_FAMILY_SCAN_PERIOD,
	NRP_NR_FAMILIES
};

#define NRP_MAX_VARIANTS 8
#define NRP_MAX_PARAMS 8

struct nrp_variant {
	const char *name;    /* NULL ends the list */
	const char *kernels; /* upstream kernel range */
	const char *origin;  /* commit or patch it comes from */
	const char *doc;     /* the rule in words */
};

struct nrp_param {
	const char *name; /* NULL ends the list */
	const char *unit;
	const char *value; /* default, in words */
	const char *doc;
	uint64_t min, max;
};

struct nrp_family {
	const char *name;
	const char *doc;
	const char *source; /* kernel functions */
	bool verified;      /* verify checks it against the host's own decisions */
	bool replayed; /* replay compares its variants (else: known by name, part of profiles) */
	struct nrp_variant variant[NRP_MAX_VARIANTS + 1];
	struct nrp_param param[NRP_MAX_PARAMS + 1];
};

struct nrp_profile {
	const char *name;
	int8_t variant[NRP_NR_FAMILIES];
};

const struct nrp_family *nrp_family(enum nrp_family_id id);
size_t nrp_nr_profiles(void);
const struct nrp_profile *nrp_profile(size_t i);
/* Parameters that belong to no family, by their whole names: hz, scan.size_mb, .. */
extern const struct nrp_param nrp_global_param[];

#define NRP_HOST_VARIANT (-1) /* the host's own, as verify finds it */
#define NRP_MAX_SETTINGS 16
#define NRP_LANE_NAME 1024 /* bytes; more than a profile and every family with a variant */

struct nrp_setting {
	int8_t family; /* enum nrp_family_id, -1: global */
	char name[32];
	uint64_t value;
};

/* One side of a comparison, as asked for. */
struct nrp_lane_spec {
	char name[NRP_LANE_NAME];        /* the text it was made from: "host", "linux-6.12", .. */
	bool off;                        /* NUMA balancing off */
	bool profile;                    /* made from a kernel profile */
	bool modelled_cadence;           /* scan passes come by the modelled periods */
	int8_t variant[NRP_NR_FAMILIES]; /* index, or NRP_HOST_VARIANT */
	struct nrp_setting set[NRP_MAX_SETTINGS];
	size_t nr_set;
};

/*
 * Parses P = host | off | PROFILE | [PROFILE,]FAMILY=VARIANT[,..], shorter than NRP_LANE_NAME.
 * NRP_USAGE with the names that exist if one is unknown.
 */
int nrp_lane_parse(struct nrp_lane_spec *ret, const char *text, struct nrp_error *err);
/* Applies one --set [old:|new:]FAMILY.PARAM=VALUE or PARAM=VALUE to the lanes it names. */
int nrp_lane_set(struct nrp_lane_spec *old_lane, struct nrp_lane_spec *new_lane, const char *text,
		 struct nrp_error *err);
/* Does it name parameters of scan.period, which only a modelled cadence heeds? */
bool nrp_lane_sets_periods(const struct nrp_lane_spec *lane);
/* Value of a parameter of a lane, or @missing. @family -1: global. */
uint64_t nrp_lane_get(const struct nrp_lane_spec *lane, int family, const char *name,
		      uint64_t missing);

#endif
