/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What tables of counters, taken before and after, can and cannot show (evidence tier 0). Reads
 * /proc/vmstat snapshots, perf stat output and pasted before/after tables; checks the invariants
 * of spec migrate.md 2.9 and bounds the pages that a run can have tried to migrate (1.10).
 */
#ifndef NRP_COUNTERS_H
#define NRP_COUNTERS_H

#include "analysis/compare.h"

#define NRP_COUNTER_NAME 128  /* bytes, with the final 0 */
#define NRP_COUNTERS_MAX 4096 /* per file and in all */
#define NRP_COUNTERS_FILES 8  /* two runs of two snapshots and one perf stat each are six */
#define NRP_COUNTERS_RULES 6  /* invariants per run */

enum nrp_count_state {
	NRP_COUNT_MISSING, /* not in the input */
	NRP_COUNT_KNOWN,
	NRP_COUNT_NOT_COUNTED,  /* the tool says that it did not count */
	NRP_COUNT_ESTIMATED,    /* perf stat scaled or averaged it: no count */
	NRP_COUNT_OUT_OF_RANGE, /* 2^63 or more, or less than -2^63 */
};

struct nrp_count {
	int64_t value; /* 0 unless known */
	enum nrp_count_state state;
};

static inline bool nrp_count_known(struct nrp_count c)
{
	return c.state == NRP_COUNT_KNOWN;
}

/* ---- input (analysis/counters_parse.c) ---------------------------------------------- */

enum nrp_counters_kind {
	NRP_COUNTERS_SNAPSHOT, /* /proc/vmstat: totals since boot; a run is the difference of two */
	NRP_COUNTERS_PERF,     /* perf stat: the counts of one run */
	NRP_COUNTERS_TABLE,    /* name, before, after: the counts of two runs */
};

struct nrp_counters_line {
	char name[NRP_COUNTER_NAME];
	int64_t offset;            /* of the line in its file */
	struct nrp_count count[2]; /* [1]: tables only */
};

struct nrp_counters_file {
	char path[512];
	enum nrp_counters_kind kind;
	struct nrp_counters_line *line;
	size_t nr_lines;
};

/* Reads a file, or standard input for "-". On failure *ret is untouched and @err tells where. */
int nrp_counters_read(struct nrp_counters_file *ret, const char *path, struct nrp_error *err);
/* The same from memory; @path is for errors only. */
int nrp_counters_parse(struct nrp_counters_file *ret, const char *path, const char *text,
		       size_t size, struct nrp_error *err);
void nrp_counters_file_clear(struct nrp_counters_file *file);
/* "vmstat", "perf", "table". */
const char *nrp_counters_kind_name(enum nrp_counters_kind kind);
/* Does this version know what the counter means: NUMA balancing, page migration, its events? */
bool nrp_counter_is_known(const char *name);

/* ---- analysis (analysis/counters.c) ------------------------------------------------- */

struct nrp_counters_options {
	int64_t page_size;   /* bytes; 0: 4096, with a note */
	int64_t huge_pages;  /* base pages of a huge page; 0: page_size / 8, the largest there is */
	int64_t quota;       /* pages per window and node; 0: 128 MiB */
	int64_t interval_ms; /* of the limiter; 0: 100 */
	int64_t hz;          /* ticks per second; 0: unknown */
	int64_t nodes;       /* 0: unknown */
};

/* One run: before and after are its snapshots (missing for perf stat), delta is its count. Two
 * runs: before and after are their counts. */
struct nrp_counters_row {
	char name[NRP_COUNTER_NAME];
	struct nrp_count before, after, delta;
};

/* Of what a row says: NRP_CLASS_EXACT, or NRP_CLASS_NOT_OBSERVABLE where it has no delta. */
enum nrp_class nrp_counters_class(const struct nrp_counters_row *row);

enum nrp_tristate { NRP_UNKNOWN = -1, NRP_FALSE, NRP_TRUE };

struct nrp_invariant {
	const char *name;
	int run;
	enum nrp_tristate holds;
	const char *
		explained; /* why it may be broken all the same; NULL: holds, unknown, or nothing */
	bool has_sides;
	int64_t left, right; /* holds: left <= right */
	char text[320];
};

/*
 * Can the limiter have refused anything in this run? Pages are base pages. B holds where a fault
 * tries one page, or a huge page that was armed in the run. It does not where folios of other sizes
 * are moved (6.12 and later), nor where more pages were moved; H pages per remote fault always do.
 */
struct nrp_counters_limiter {
	struct nrp_count remote_faults;    /* numa_hint_faults - numa_hint_faults_local */
	struct nrp_count huge_pte_updates; /* huge pages */
	struct nrp_count migrated;         /* numa_pages_migrated */
	struct nrp_count update_bound;     /* B = remote_faults + (H-1) * huge_pte_updates */
	struct nrp_count fault_bound;      /* H * remote_faults */
	bool refuted;                      /* more pages were moved than B */
	struct nrp_count upper_bound;     /* pages attempted in the whole run: the one that holds */
	struct nrp_count edge_huge_pages; /* armed before the run, that would reach the quota */
	enum nrp_tristate can_refuse;
	bool has_share;
	double share_of_run; /* of the bound, to fall into one window to one node: at least */
	bool has_even_share;
	double even_share; /* the same of one node's part, if all nodes get the same */
	char text[512];
};

struct nrp_counters_report {
	struct {
		char path[512];
		enum nrp_counters_kind kind;
		size_t counters;
	} input[NRP_COUNTERS_FILES];
	size_t nr_inputs;
	int nr_runs;                         /* 1 or 2 */
	struct nrp_counters_options options; /* with the defaults filled in; hz, nodes may be 0 */
	bool quota_assumed, page_size_assumed, huge_pages_assumed;
	bool large_folios;    /* the kernel moves folios of any size on a fault */
	int64_t window_ticks; /* I+1; 0 without hz */
	struct nrp_counters_row *row;
	size_t nr_rows;
	struct nrp_invariant invariant[2 * NRP_COUNTERS_RULES];
	size_t nr_invariants;
	bool violated;                          /* an invariant is broken and nothing explains it */
	struct nrp_counters_limiter limiter[2]; /* per run */
	struct nrp_note note[NRP_MAX_NOTES];
	size_t nr_notes;
};

/*
 * Puts the files together: snapshots in pairs, before and after; one perf stat per run; or tables
 * only. -EINVAL with NRP_USAGE if they do not make one or two runs, NRP_INPUT if a name comes twice
 * or a counter went down. nrp_counters_report_clear() frees.
 */
int nrp_counters_analyse(struct nrp_counters_report *ret, const struct nrp_counters_file *file,
			 size_t files, const struct nrp_counters_options *options,
			 struct nrp_error *err);
void nrp_counters_report_clear(struct nrp_counters_report *report);
/* Count of a counter in a run; its state is NRP_COUNT_MISSING if there is none. */
struct nrp_count nrp_counters_count(const struct nrp_counters_report *report, int run,
				    const char *name);
/* Count of migrate:mm_migrate_pages, also under its bare name. */
struct nrp_count nrp_counters_migrate_events(const struct nrp_counters_report *report, int run);
/* "run" where there is one; else "before", "after". */
const char *nrp_counters_run_name(const struct nrp_counters_report *report, int run);
/* What must be read beside the numbers (analysis/counters_notes.c). */
void nrp_counters_add_notes(struct nrp_counters_report *report);

/* The document numareplay.counters/1; NULL: out of memory. */
json_t *nrp_counters_json(const struct nrp_counters_report *report);
/* The same for people; @width columns, 0: as wide as needed. Returns malloc'd text or NULL. */
char *nrp_counters_text(const struct nrp_counters_report *report, size_t width);

#endif
