/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A comparison: the metrics of two lanes with bounds and classes, and the notes that go with
 * them; made from a replay, kept in the database, printed as text or JSON.
 */
#ifndef NRP_COMPARE_H
#define NRP_COMPARE_H

#include "replay/replay.h"

#include <jansson.h>

enum nrp_class { NRP_CLASS_EXACT, NRP_CLASS_BOUNDED, NRP_CLASS_MODELLED, NRP_CLASS_NOT_OBSERVABLE };

/* A number with its error. Missing value: not observable, or only bounds are known. */
struct nrp_quantity {
	double value, lower, upper;
	bool has_value, has_lower, has_upper; /* no lower or upper: unbounded */
	enum nrp_class class;
	int tier; /* evidence: 0 counters, 1 tracepoints, 2 page faults, 3 probes */
};

struct nrp_metric {
	char name[48];
	char unit[24];
	struct nrp_quantity old_lane, new_lane, avoided; /* avoided = old - new */
};

#define NRP_MAX_METRICS 48
#define NRP_MAX_NOTES 40

struct nrp_note {
	char code[48];
	char text[768];
	json_t *detail; /* object with further members, NULL: none; owned */
};

struct nrp_comparison {
	int64_t replay_id; /* 0: not stored */
	int64_t capture_id;
	char capture[256];
	char name[2][NRP_LANE_NAME]; /* lanes, old and new, as asked for */
	json_t *variants[2];         /* {"migrate.ratelimit": "spin", ..}; owned */
	json_t *set[2];              /* {"migrate.ratelimit.quota": 256, ..}; owned */
	struct nrp_metric metric[NRP_MAX_METRICS];
	size_t nr_metrics;
	struct nrp_note note[NRP_MAX_NOTES];
	size_t nr_notes;
};

/* "exact", "bounded", "modelled", "not_observable". */
const char *nrp_class_name(enum nrp_class class);

/* Builds the comparison of a finished replay; nrp_comparison_clear() frees. */
int nrp_comparison_build(struct nrp_comparison *ret, const struct nrp_replay *replay,
			 const struct nrp_capture *capture, const struct nrp_verify *verify,
			 struct nrp_error *err);
/* Adds the note balancing_off from the new lane of @off, a comparison of the same capture. */
void nrp_comparison_add_off(struct nrp_comparison *comparison, const struct nrp_comparison *off);
void nrp_comparison_clear(struct nrp_comparison *comparison);
/* A metric by name; NULL: none. */
const struct nrp_metric *nrp_comparison_metric(const struct nrp_comparison *comparison,
					       const char *name);
/* Adds a note; @detail may be NULL and is taken over. */
void nrp_comparison_note(struct nrp_comparison *c, const char *code, json_t *detail,
			 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Does the old lane run without a limiter on a host whose attempts failed so often, for no reason
 * on record, that it may have one? (analysis/notes.c)
 */
bool nrp_comparison_unexplained(const struct nrp_replay *replay);
/*
 * Share of what a lane's feedback could not follow: page-time elsewhere than recorded, or faults of
 * tasks whose preferred node could differ, whichever is more. 0 for a lane that ran.
 */
double nrp_comparison_divergence(const struct nrp_replay *replay, int lane);
#define NRP_DIVERGENCE_LIMIT 0.1
/* Is the lane a kernel profile whose feedback diverges so far that only decisions are shown? */
bool nrp_comparison_withheld(const struct nrp_replay *replay, int lane);
/* Do the lanes' filters differ while pages are seen too seldom for page histories? */
bool nrp_comparison_short_histories(const struct nrp_replay *replay);
/*
 * Share of the faults, 0 .. 1, whose page or nodes are not known: where their pages are, nobody
 * saw. Above NRP_UNTRACKED_LIMIT remote numbers have bounds for them, above half there are none.
 */
double nrp_comparison_untracked(const struct nrp_replay *replay);
#define NRP_UNTRACKED_LIMIT 0.01
#define NRP_UNTRACKED_MOST 0.5
/* Notes that follow from a replay (analysis/notes.c). */
void nrp_comparison_add_notes(struct nrp_comparison *c, const struct nrp_replay *replay,
			      const struct nrp_capture *capture, const struct nrp_verify *verify);

/* ---- in the database (analysis/results.c) ------------------------------------------- */

/*
 * Stores the comparison and the decisions that differ (inside a transaction); a replay of the
 * same capture, lanes and parameters is replaced.
 */
int nrp_comparison_save(struct nrp_comparison *comparison, struct nrp_store *store,
			const struct nrp_replay *replay, struct nrp_error *err);
/* Loads replay @id; 0: the newest of capture @capture_id. -ENOENT without @err if there is none. */
int nrp_comparison_load(struct nrp_comparison *ret, struct nrp_store *store, int64_t capture_id,
			int64_t id, struct nrp_error *err);
/* Stores what verify found in tables fidelity and fidelity_rule (inside a transaction). */
int nrp_fidelity_save(const struct nrp_verify *verify, struct nrp_store *store, int64_t capture_id,
		      struct nrp_error *err);

/* ---- output ------------------------------------------------------------------------- */

/* The documents numareplay.comparison/1 and numareplay.verify/1; NULL: out of memory. */
json_t *nrp_comparison_json(const struct nrp_comparison *comparison);
json_t *nrp_verify_json(const struct nrp_verify *verify, const struct nrp_capture *capture);
/* Release part of a uname line ("6.12.95" of "Linux host 6.12.95 ..."); false: unknown. */
bool nrp_kernel_release(const char *uname, char *buf, size_t size);

/* The same for people; @width columns, 0: as wide as needed. Returns malloc'd text or NULL. */
char *nrp_comparison_text(const struct nrp_comparison *comparison, size_t width);
char *nrp_verify_text(const struct nrp_verify *verify, const struct nrp_capture *capture,
		      size_t width);

#endif
