/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RUNS 2
/* A counter that came with 6.12, whose kernels move folios of any size on a hinting fault. */
#define LARGE_FOLIOS_SIGN "thp_underused_split_page"

/* ---- putting the files together ----------------------------------------------------- */

struct assembly {
	struct nrp_counters_report *report;
	const struct nrp_counters_file *snapshot[2 * MAX_RUNS], *perf[MAX_RUNS];
	size_t snapshots, perfs, tables;
	struct nrp_error *err;
};

static struct nrp_count missing(void)
{
	return (struct nrp_count){ 0, NRP_COUNT_MISSING };
}

static struct nrp_count known(int64_t value)
{
	return (struct nrp_count){ value, NRP_COUNT_KNOWN };
}

/* @after - @before; if it cannot be known, the state of the side that is to blame. */
static struct nrp_count difference(struct nrp_count after, struct nrp_count before)
{
	int64_t value;

	if (!nrp_count_known(before))
		return before;
	if (!nrp_count_known(after))
		return after;
	if (__builtin_sub_overflow(after.value, before.value, &value))
		return (struct nrp_count){ 0, NRP_COUNT_OUT_OF_RANGE };
	return known(value);
}

enum nrp_class nrp_counters_class(const struct nrp_counters_row *row)
{
	return nrp_count_known(row->delta) ? NRP_CLASS_EXACT : NRP_CLASS_NOT_OBSERVABLE;
}

static int usage(struct assembly *a, const char *what)
{
	return nrp_fail(a->err, NRP_USAGE, -EINVAL, NULL, -1,
			"name BEFORE and AFTER of one run, or of two", "%s", what);
}

static const struct nrp_counters_line *find_line(const struct nrp_counters_file *f,
						 const char *name)
{
	for (size_t i = 0; i < f->nr_lines; i++)
		if (!strcmp(f->line[i].name, name))
			return &f->line[i];
	return NULL;
}

static struct nrp_counters_row *find_row(const struct nrp_counters_report *r, const char *name)
{
	for (size_t i = 0; i < r->nr_rows; i++)
		if (!strcmp(r->row[i].name, name))
			return &r->row[i];
	return NULL;
}

/* A new row for @line of @file, with nothing in it. */
static int new_row(struct assembly *a, const struct nrp_counters_file *file,
		   const struct nrp_counters_line *line, struct nrp_counters_row **ret)
{
	struct nrp_counters_report *r = a->report;
	struct nrp_counters_row *row;

	if (r->nr_rows == NRP_COUNTERS_MAX)
		return nrp_fail(a->err, NRP_INPUT, -EFBIG, file->path, line->offset,
				"give the counters only", "more than %d counters in all",
				NRP_COUNTERS_MAX);
	row = reallocarray(r->row, r->nr_rows + 1, sizeof(*row));
	if (!row)
		return nrp_fail_nomem(a->err);
	r->row = row;
	row = &r->row[r->nr_rows++];
	memset(row, 0, sizeof(*row));
	memcpy(row->name, line->name, sizeof(row->name));
	*ret = row;
	return 0;
}

/* Where run @run keeps its count; tables and pairs of runs have one on each side. */
static struct nrp_count *slot(struct assembly *a, struct nrp_counters_row *row, int run)
{
	if (a->report->nr_runs == 1)
		return &row->delta;
	return run ? &row->after : &row->before;
}

/* Counts that only grow while a host is up; gauges (nr_..) go up and down. */
static bool only_grows(const char *name)
{
	static const char *const prefixes[] = { "pgfault", "pgalloc", "pgfree", "pgpg" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return nrp_counter_is_known(name);
}

/* One counter of a run between two snapshots; either side may lack it. */
static int add_difference(struct assembly *a, int run, const struct nrp_counters_file *file,
			  const struct nrp_counters_line *line, struct nrp_count before,
			  struct nrp_count after)
{
	struct nrp_counters_row *row = find_row(a->report, line->name);
	struct nrp_count delta = difference(after, before);
	int r = row ? 0 : new_row(a, file, line, &row);

	if (r < 0)
		return r;
	if (nrp_count_known(delta) && delta.value < 0 && only_grows(line->name))
		return nrp_fail(
			a->err, NRP_INPUT, -EBADMSG, file->path, line->offset,
			"give snapshots of one boot, the earlier first; counts of two runs go "
			"into one table: name before after",
			"%s went down, from %" PRId64 " to %" PRId64, line->name, before.value,
			after.value);
	if (a->report->nr_runs == 1) {
		row->before = before;
		row->after = after;
	}
	*slot(a, row, run) = delta;
	return 0;
}

static int add_snapshots(struct assembly *a, int run)
{
	const struct nrp_counters_file *before = a->snapshot[2 * run];
	const struct nrp_counters_file *after = a->snapshot[2 * run + 1];
	int r = 0;

	for (size_t i = 0; r == 0 && i < before->nr_lines; i++) {
		const struct nrp_counters_line *b = &before->line[i];
		const struct nrp_counters_line *n = find_line(after, b->name);

		r = add_difference(a, run, n ? after : before, n ? n : b, b->count[0],
				   n ? n->count[0] : missing());
	}
	for (size_t i = 0; r == 0 && i < after->nr_lines; i++)
		if (!find_line(before, after->line[i].name))
			r = add_difference(a, run, after, &after->line[i], missing(),
					   after->line[i].count[0]);
	return r;
}

/* Counts that belong to whole runs: one column of perf stat, two of a table. */
static int add_counts(struct assembly *a, const struct nrp_counters_file *file, int run,
		      int columns)
{
	for (size_t i = 0; i < file->nr_lines; i++) {
		const struct nrp_counters_line *line = &file->line[i];
		struct nrp_counters_row *row = find_row(a->report, line->name);
		int r = row ? 0 : new_row(a, file, line, &row);

		if (r < 0)
			return r;
		for (int c = 0; c < columns; c++) {
			struct nrp_count *to = slot(a, row, run + c);

			if (to->state != NRP_COUNT_MISSING)
				return nrp_fail(a->err, NRP_INPUT, -EBADMSG, file->path,
						line->offset, "give each counter of a run once",
						"%s is in another file too", line->name);
			*to = line->count[c];
		}
	}
	return 0;
}

static int sort_files(struct assembly *a, const struct nrp_counters_file *file, size_t files)
{
	if (!files || files > NRP_COUNTERS_FILES)
		return usage(a, files ? "too many files" : "no files");
	for (size_t i = 0; i < files; i++) {
		const struct nrp_counters_file *f = &file[i];

		if (f->kind == NRP_COUNTERS_SNAPSHOT) {
			if (a->snapshots == 2 * MAX_RUNS)
				return usage(a, "more than four snapshots");
			a->snapshot[a->snapshots++] = f;
		} else if (f->kind == NRP_COUNTERS_PERF) {
			if (a->perfs == MAX_RUNS)
				return usage(a, "more than two outputs of perf stat");
			a->perf[a->perfs++] = f;
		} else {
			a->tables++;
		}
	}
	if (a->tables && (a->snapshots || a->perfs))
		return usage(a, "a table holds both runs already and goes with tables only");
	if (a->snapshots % 2)
		return usage(a, "snapshots of /proc/vmstat come in pairs, before and after");
	if (a->snapshots && a->perfs && a->snapshots != 2 * a->perfs)
		return usage(a, "one output of perf stat per pair of snapshots, or none");
	a->report->nr_runs = a->tables || a->snapshots == 4 || a->perfs == 2 ? 2 : 1;
	return 0;
}

static int assemble(struct assembly *a, const struct nrp_counters_file *file, size_t files)
{
	struct nrp_counters_report *report = a->report;
	int r = sort_files(a, file, files);

	for (size_t i = 0; r == 0 && i < files; i++) {
		memcpy(report->input[i].path, file[i].path, sizeof(file[i].path));
		report->input[i].kind = file[i].kind;
		report->input[i].counters = file[i].nr_lines;
		report->nr_inputs = i + 1;
		if (file[i].kind == NRP_COUNTERS_TABLE)
			r = add_counts(a, &file[i], 0, 2);
	}
	for (int run = 0; r == 0 && (size_t)run < a->snapshots / 2; run++)
		r = add_snapshots(a, run);
	for (int run = 0; r == 0 && (size_t)run < a->perfs; run++)
		r = add_counts(a, a->perf[run], run, 1);
	for (size_t i = 0; r == 0 && report->nr_runs == 2 && i < report->nr_rows; i++)
		report->row[i].delta = difference(report->row[i].after, report->row[i].before);
	return r;
}

struct nrp_count nrp_counters_count(const struct nrp_counters_report *report, int run,
				    const char *name)
{
	const struct nrp_counters_row *row = find_row(report, name);

	if (!row)
		return missing();
	return report->nr_runs == 1 ? row->delta : run ? row->after : row->before;
}

struct nrp_count nrp_counters_migrate_events(const struct nrp_counters_report *report, int run)
{
	struct nrp_count c = nrp_counters_count(report, run, "migrate:mm_migrate_pages");

	return c.state != NRP_COUNT_MISSING ? c
					    : nrp_counters_count(report, run, "mm_migrate_pages");
}

const char *nrp_counters_run_name(const struct nrp_counters_report *report, int run)
{
	return report->nr_runs == 1 ? "run" : run ? "after" : "before";
}

/* ---- the limiter -------------------------------------------------------------------- */

static void fill_options(struct nrp_counters_report *r, const struct nrp_counters_options *given)
{
	struct nrp_counters_options *o = &r->options;

	*o = *given;
	r->quota_assumed = !o->quota;
	r->page_size_assumed = !o->page_size;
	if (!o->page_size)
		o->page_size = 4096;
	r->huge_pages_assumed = !o->huge_pages;
	if (!o->huge_pages)
		o->huge_pages = o->page_size / 8;
	if (!o->quota)
		o->quota = (int64_t)nrp_ratelimit_quota((uint64_t)o->page_size);
	if (!o->interval_ms)
		o->interval_ms = 100;
	if (o->hz)
		r->window_ticks =
			(int64_t)nrp_ratelimit_interval((uint64_t)o->interval_ms, (uint64_t)o->hz) +
			1;
}

/* @base + @a * @b, all of them not negative. */
static struct nrp_count multiply_add(struct nrp_count base, int64_t a, struct nrp_count b)
{
	int64_t value;

	if (!nrp_count_known(base) || !nrp_count_known(b))
		return nrp_count_known(base) ? b : base;
	if (__builtin_mul_overflow(a, b.value, &value) ||
	    __builtin_add_overflow(base.value, value, &value))
		return (struct nrp_count){ 0, NRP_COUNT_OUT_OF_RANGE };
	return known(value);
}

/* Huge pages armed before the run, at H - 1 pages each beyond B, that take it above the quota. */
static struct nrp_count edge_huge_pages(const struct nrp_counters_limiter *l, int64_t quota,
					int64_t h)
{
	int64_t needed;

	if (h < 2 || l->can_refuse != NRP_FALSE || l->fault_bound.value <= quota)
		return missing();
	needed = (quota + 1 - l->upper_bound.value + h - 2) / (h - 1);
	return needed <= l->remote_faults.value ? known(needed) : missing();
}

static void say_refuse(struct nrp_counters_limiter *l, int64_t quota, int64_t h)
{
	bool by_faults = l->can_refuse == NRP_FALSE && l->fault_bound.value <= quota &&
			 (!nrp_count_known(l->upper_bound) || l->upper_bound.value > quota);
	int64_t pages = by_faults ? l->fault_bound.value : l->upper_bound.value;
	char each[64] = "", share[64];

	if (pages == l->fault_bound.value && pages != l->update_bound.value)
		snprintf(each, sizeof(each), " (%" PRId64 " remote faults of at most %" PRId64 ")",
			 l->remote_faults.value, h);
	if (l->share_of_run < 0.001)
		snprintf(share, sizeof(share), "less than 0.1 %% of the run is enough");
	else
		snprintf(share, sizeof(share), "that takes %.1f %% of the run",
			 l->share_of_run * 100);
	if (l->can_refuse == NRP_FALSE)
		snprintf(l->text, sizeof(l->text),
			 "cannot have refused anything: the whole run attempts at most %" PRId64
			 " pages%s, %s the quota of %" PRId64,
			 pages, each, pages < quota ? "fewer than" : "no more than", quota);
	else if (l->can_refuse == NRP_TRUE)
		snprintf(l->text, sizeof(l->text),
			 "could have, if more than %" PRId64 " of at most %" PRId64
			 " pages%s fell into one window to one node: %s",
			 quota, pages, each, share);
	else if (l->remote_faults.state == NRP_COUNT_OUT_OF_RANGE ||
		 l->upper_bound.state == NRP_COUNT_OUT_OF_RANGE)
		snprintf(l->text, sizeof(l->text),
			 "unknown: the counters do not fit together, or are too large");
	else
		snprintf(l->text, sizeof(l->text),
			 "unknown: numa_hint_faults, numa_hint_faults_local and "
			 "numa_huge_pte_updates are needed");
}

static void bound_attempts(const struct nrp_counters_report *r, int run,
			   struct nrp_counters_limiter *l)
{
	int64_t h = r->options.huge_pages;

	l->remote_faults = difference(nrp_counters_count(r, run, "numa_hint_faults"),
				      nrp_counters_count(r, run, "numa_hint_faults_local"));
	if (nrp_count_known(l->remote_faults) && l->remote_faults.value < 0)
		l->remote_faults = (struct nrp_count){ 0, NRP_COUNT_OUT_OF_RANGE };
	l->huge_pte_updates = nrp_counters_count(r, run, "numa_huge_pte_updates");
	l->migrated = nrp_counters_count(r, run, "numa_pages_migrated");
	l->update_bound = multiply_add(l->remote_faults, h - 1, l->huge_pte_updates);
	l->fault_bound = multiply_add(known(0), h, l->remote_faults);
	l->refuted = nrp_count_known(l->update_bound) && nrp_count_known(l->migrated) &&
		     l->migrated.value > l->update_bound.value;
	l->upper_bound = l->refuted || r->large_folios ? l->fault_bound : l->update_bound;
	if (nrp_count_known(l->fault_bound) && nrp_count_known(l->migrated) &&
	    l->migrated.value > l->fault_bound.value)
		l->upper_bound = l->fault_bound =
			(struct nrp_count){ 0, NRP_COUNT_OUT_OF_RANGE }; /* no bound is left */
}

static void judge_limiter(struct nrp_counters_report *r, int run)
{
	struct nrp_counters_limiter *l = &r->limiter[run];
	int64_t quota = r->options.quota;

	bound_attempts(r, run, l);
	l->can_refuse = NRP_UNKNOWN;
	if (nrp_count_known(l->upper_bound))
		l->can_refuse = l->upper_bound.value > quota ? NRP_TRUE : NRP_FALSE;
	if (nrp_count_known(l->fault_bound) && l->fault_bound.value <= quota)
		l->can_refuse = NRP_FALSE;
	if (l->can_refuse == NRP_TRUE) {
		l->share_of_run = (double)(quota + 1) / (double)l->upper_bound.value;
		l->has_share = true;
		l->even_share = l->share_of_run * (double)r->options.nodes;
		l->has_even_share = r->options.nodes > 0;
	}
	l->edge_huge_pages = edge_huge_pages(l, quota, r->options.huge_pages);
	say_refuse(l, quota, r->options.huge_pages);
}

/* ---- invariants --------------------------------------------------------------------- */

/* How one side of an invariant is named, and its value. */
struct side {
	char name[64];
	struct nrp_count count;
};

static struct side counter_side(const struct nrp_counters_report *r, int run, const char *name)
{
	struct side s = { .count = nrp_counters_count(r, run, name) };

	snprintf(s.name, sizeof(s.name), "%s", name);
	return s;
}

/* Counts that the kernel makes at different moments may differ so much at the ends of the run. */
static bool within_edges(int64_t left, int64_t right)
{
	return left - right <= right / 100 + 64;
}

static void invariant(struct nrp_counters_report *r, int run, const char *name,
		      const struct side *left, const struct side *right, const char *explained,
		      const char *why)
{
	struct nrp_invariant *i = &r->invariant[r->nr_invariants++];

	i->name = name;
	i->run = run;
	i->holds = NRP_UNKNOWN;
	if (!nrp_count_known(left->count) || !nrp_count_known(right->count)) {
		snprintf(i->text, sizeof(i->text), "no count of %s",
			 nrp_count_known(left->count) ? right->name : left->name);
		return;
	}
	i->has_sides = true;
	i->left = left->count.value;
	i->right = right->count.value;
	i->holds = i->left <= i->right ? NRP_TRUE : NRP_FALSE;
	if (i->holds == NRP_FALSE) {
		i->explained = explained;
		r->violated |= !explained;
	}
	snprintf(i->text, sizeof(i->text), "%s %" PRId64 " %s %s %" PRId64 "%s%s", left->name,
		 i->left, i->holds == NRP_TRUE ? "<=" : ">", right->name, i->right,
		 i->holds == NRP_TRUE ? "" : ": ", i->holds == NRP_TRUE ? "" : why);
}

/* Spec migrate.md 2.9 and 1.10; what may break each of them without a fault in the numbers. */
static void check_invariants(struct nrp_counters_report *r, int run)
{
	const struct nrp_counters_limiter *l = &r->limiter[run];
	struct side faults = counter_side(r, run, "numa_hint_faults");
	struct side local = counter_side(r, run, "numa_hint_faults_local");
	struct side migrated = counter_side(r, run, "numa_pages_migrated");
	struct side success = counter_side(r, run, "pgmigrate_success");
	struct side updates = counter_side(r, run, "numa_pte_updates");
	struct side bound = { .name = "the bound from numa_huge_pte_updates",
			      .count = l->update_bound };
	struct side huge = { .name = "pages of numa_huge_pte_updates" };
	struct side events = { .name = "migrate:mm_migrate_pages",
			       .count = nrp_counters_migrate_events(r, run) };
	struct nrp_count most;
	bool edge, earlier, units;

	huge.count = multiply_add(known(0), r->options.huge_pages, l->huge_pte_updates);
	invariant(r, run, "local_faults_within_faults", &local, &faults, NULL,
		  "every local fault is a fault; the two were not counted together");

	edge = within_edges(migrated.count.value, success.count.value);
	invariant(r, run, "migrated_within_success", &migrated, &success,
		  edge ? "window_edges" : NULL,
		  edge ? "so few may be under way at the ends of the run"
		       : "a page moved by balancing is a page moved; the two were not counted "
			 "together");

	invariant(r, run, "faults_within_pte_updates", &faults, &updates, "armed_before_window",
		  "PTEs armed before the run fault inside it");

	invariant(r, run, "huge_updates_within_pte_updates", &huge, &updates,
		  r->huge_pages_assumed && r->options.page_size != 4096 ? "huge_pages_assumed"
									: "mprotect",
		  r->huge_pages_assumed && r->options.page_size != 4096
			  ? "the size of a huge page is assumed; see --huge-pages"
			  : "mprotect() of huge pages is counted as numa_huge_pte_updates too");

	most = multiply_add(known(0), r->options.huge_pages, l->remote_faults);
	earlier = nrp_count_known(most) && within_edges(migrated.count.value, most.value);
	invariant(r, run, "migrated_within_bound", &migrated, &bound,
		  earlier ? "armed_before_window" : NULL,
		  earlier ? "huge pages armed before the run, or larger folios, can move so many"
			  : "more than the remote faults can move, at one huge page each");

	/* Up to 5.13 a huge page moves without the event; later one event moves all its pages. */
	units = nrp_count_known(l->huge_pte_updates) && l->huge_pte_updates.value > 0;
	invariant(
		r, run, "migrated_within_events", &migrated, &events,
		units ? "thp_units" : "different_windows",
		units ? "a huge page is many pages and at most one event; or the two tools did not "
			"count over the same time"
		      : "the two tools did not count over the same time, or an event moved several "
			"pages");
}

int nrp_counters_analyse(struct nrp_counters_report *ret, const struct nrp_counters_file *file,
			 size_t files, const struct nrp_counters_options *options,
			 struct nrp_error *err)
{
	struct nrp_counters_report *report = calloc(1, sizeof(*report));
	struct assembly a = { .report = report, .err = err };
	int r;

	if (!report)
		return nrp_fail_nomem(err);
	fill_options(report, options);
	r = assemble(&a, file, files);
	if (r == 0) {
		report->large_folios = find_row(report, LARGE_FOLIOS_SIGN) != NULL;
		for (int run = 0; run < report->nr_runs; run++) {
			judge_limiter(report, run);
			check_invariants(report, run);
		}
		nrp_counters_add_notes(report);
		*ret = *report;
	} else {
		free(report->row);
	}
	free(report);
	return r;
}

void nrp_counters_report_clear(struct nrp_counters_report *report)
{
	for (size_t i = 0; i < report->nr_notes; i++)
		json_decref(report->note[i].detail);
	report->nr_notes = 0;
	free(report->row);
	report->row = NULL;
	report->nr_rows = 0;
}
