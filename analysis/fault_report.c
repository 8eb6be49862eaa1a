/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How faults ended, which nodes they came from, and what single address spaces have of them. */
#include "analysis/compare_internal.h"

#include <math.h>
#include <stdlib.h>

static const struct nrp_quantity *in_lane(const struct nrp_comparison *c, int i, const char *metric)
{
	const struct nrp_metric *m = nrp_comparison_metric(c, metric);

	return !m ? NULL : i ? &m->new_lane : &m->old_lane;
}

bool nrp_lane_has_details(const struct nrp_comparison *c, const struct nrp_replay *r, int i,
			  const char *metric)
{
	const struct nrp_quantity *q = in_lane(c, i, metric);

	return !r->lane[i].observed && !r->lane[i].off && q && q->class != NRP_CLASS_NOT_OBSERVABLE;
}

static json_t *range(const struct nrp_quantity *q)
{
	return json_pack("{s:o,s:o,s:o}", "value",
			 q->has_value ? json_integer((json_int_t)q->value) : json_null(), "lower",
			 q->has_lower ? json_integer((json_int_t)q->lower) : json_null(), "upper",
			 q->has_upper ? json_integer((json_int_t)q->upper) : json_null());
}

/* ---- how faults ended ---------------------------------------------------------------- */

const char *nrp_fault_outcome_name(enum nrp_fault_outcome outcome)
{
	static const char *const names[NRP_NR_FAULT_OUTCOMES] = {
		"local", "refused", "limited", "failed", "moved", "moved_back", "open", "unplaced",
	};

	return names[outcome];
}

/* In one world; its moves that are undone later are not counted, nor is anything open there. */
static double outcome_in_world(const struct nrp_world_result *w, enum nrp_fault_outcome outcome)
{
	double remote = (double)w->remote_faults, attempts = (double)w->attempts;

	switch (outcome) {
	case NRP_FAULT_LOCAL:
		return (double)w->hint_faults - remote;
	case NRP_FAULT_REFUSED:
		return fmax(remote - attempts, 0);
	case NRP_FAULT_LIMITED:
		return (double)w->denied;
	case NRP_FAULT_FAILED:
		return fmax((double)w->admitted - (double)w->moves, 0);
	case NRP_FAULT_MOVED:
		return (double)w->moves;
	default:
		return 0;
	}
}

/* What the lane's metrics say beyond its worlds. */
static void apply_metrics(const struct nrp_comparison *c, const struct nrp_replay *r, int i,
			  enum nrp_fault_outcome outcome, struct nrp_quantity *q)
{
	const struct nrp_quantity *faults = in_lane(c, i, "hint_faults");
	const struct nrp_quantity *remote = in_lane(c, i, "hint_faults_remote");
	const struct nrp_quantity *moved = in_lane(c, i, "migrated_pages");
	bool limits = r->lane[i].e0.params.variant != NRP_RATELIMIT_NONE;

	switch (outcome) {
	case NRP_FAULT_LOCAL:
		q->lower = remote->has_upper ? fmax(faults->lower - remote->upper, 0) : 0;
		q->upper = faults->upper - remote->lower;
		break;
	case NRP_FAULT_REFUSED:
		q->lower = fmin(q->lower, remote->lower);
		break;
	case NRP_FAULT_LIMITED:
		/* A page may be refused at each of its faults. */
		q->upper = limits ? faults->upper : 0;
		break;
	case NRP_FAULT_FAILED:
		/* Whether an attempt fails at another moment is chance. */
		if (r->lane[i].has_scan || r->lane[i].pte >= 0)
			q->lower = 0;
		break;
	case NRP_FAULT_MOVED:
	case NRP_FAULT_MOVED_BACK:
		/* Each move moves a page. */
		if (moved->has_upper)
			q->upper = fmin(q->upper, moved->upper);
		break;
	default:
		break;
	}
}

struct nrp_quantity nrp_outcome_in_lane(const struct nrp_comparison *c, const struct nrp_replay *r,
					int i, enum nrp_fault_outcome outcome)
{
	const struct nrp_replay_lane *lane = &r->lane[i];
	const struct nrp_quantity *faults = in_lane(c, i, "hint_faults");
	double value = outcome_in_world(&lane->world[NRP_WORLD_CENTRAL], outcome), most = 0;
	struct nrp_quantity q = { .value = value,
				  .lower = value,
				  .upper = value,
				  .has_value = outcome != NRP_FAULT_MOVED_BACK,
				  .has_lower = true,
				  .has_upper = faults->has_upper,
				  .class = NRP_CLASS_BOUNDED };

	for (int k = 0; k < lane->nr_worlds; k++) {
		double n = outcome_in_world(&lane->world[k], outcome);

		q.lower = fmin(q.lower, n);
		q.upper = fmax(q.upper, n);
		most = fmax(most, (double)lane->world[k].hint_faults);
		/* Any move may be undone later. */
		if (outcome == NRP_FAULT_MOVED_BACK)
			q.upper = fmax(q.upper, outcome_in_world(&lane->world[k], NRP_FAULT_MOVED));
	}
	/* Faults that the metric's bound allows beyond those of the worlds may end in any way. */
	if (faults->has_upper)
		q.upper += fmax(faults->upper - most, 0);
	apply_metrics(c, r, i, outcome, &q);
	q.upper = fmax(q.upper, q.value);
	return q;
}

static json_t *outcome_row(const struct nrp_comparison *c, const struct nrp_replay *r,
			   enum nrp_fault_outcome outcome)
{
	json_t *row = json_pack("{s:s,s:I,s:I}", "outcome", nrp_fault_outcome_name(outcome),
				"faults", (json_int_t)r->observed.outcome[outcome].faults, "pages",
				(json_int_t)r->observed.outcome[outcome].pages);
	static const char *const lanes[2] = { "old", "new" };

	for (int i = 0; i < 2; i++) {
		struct nrp_quantity q;

		if (!nrp_lane_has_details(c, r, i, "hint_faults") || outcome >= NRP_FAULT_OPEN) {
			json_object_set_new(row, lanes[i], json_null());
			continue;
		}
		q = nrp_outcome_in_lane(c, r, i, outcome);
		json_object_set_new(row, lanes[i], range(&q));
	}
	return row;
}

static void outcomes_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_replay_observed *o = &r->observed;
	uint64_t stay = o->outcome[NRP_FAULT_MOVED].faults;
	uint64_t back = o->outcome[NRP_FAULT_MOVED_BACK].faults;
	uint64_t known = o->hint_faults - o->outcome[NRP_FAULT_OPEN].faults -
			 o->outcome[NRP_FAULT_UNPLACED].faults;
	json_t *rows = json_array();

	stay -= back < stay ? back : stay;
	for (int k = 0; rows && k < NRP_NR_FAULT_OUTCOMES; k++)
		json_array_append_new(rows, outcome_row(c, r, (enum nrp_fault_outcome)k));
	nrp_comparison_note(
		c, "fault_outcomes",
		json_pack("{s:I,s:I,s:o}", "known", (json_int_t)known, "leads_nowhere",
			  (json_int_t)(known - stay), "rows", rows),
		"%llu of %llu hinting faults on record led nowhere: %llu pages were local, %llu "
		"were "
		"left by policy or filter, %llu refused by the limiter, %llu attempts failed, and "
		"%llu moves were undone later",
		(unsigned long long)(known - stay), (unsigned long long)known,
		(unsigned long long)o->outcome[NRP_FAULT_LOCAL].faults,
		(unsigned long long)o->outcome[NRP_FAULT_REFUSED].faults,
		(unsigned long long)o->outcome[NRP_FAULT_LIMITED].faults,
		(unsigned long long)o->outcome[NRP_FAULT_FAILED].faults, (unsigned long long)back);
}

/* ---- nodes that fault on a page ------------------------------------------------------- */

static uint64_t faulter_rows(json_t *rows, const char *pages_of, const struct nrp_faulters *f,
			     uint64_t *ret_several)
{
	uint64_t pages = 0;

	*ret_several = 0;
	for (int n = 0; rows && n <= NRP_MAX_FAULTER_NODES; n++) {
		if (!f->of[n].pages)
			continue;
		json_array_append_new(rows,
				      json_pack("{s:s,s:i,s:I,s:I}", "pages_of", pages_of, "nodes",
						n, "pages", (json_int_t)f->of[n].pages, "faults",
						(json_int_t)f->of[n].faults));
		pages += f->of[n].pages;
		*ret_several += n > 1 ? f->of[n].pages : 0;
	}
	return pages;
}

static void faulters_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	json_t *rows = json_array();
	uint64_t several[2];
	uint64_t all = faulter_rows(rows, "all", &r->page_faulters, &several[0]);
	uint64_t shared = faulter_rows(rows, "shared", &r->faulters, &several[1]);

	if (!all) {
		json_decref(rows);
		return;
	}
	nrp_comparison_note(c, "faulter_nodes", json_pack("{s:o}", "rows", rows),
			    "threads of more than one node faulted on %llu of %llu pages, and on "
			    "%llu of %llu base pages that were mapped more than once",
			    (unsigned long long)several[0], (unsigned long long)all,
			    (unsigned long long)several[1], (unsigned long long)shared);
}

/* ---- address spaces ------------------------------------------------------------------- */

const char *nrp_process_measure_name(enum nrp_process_measure measure)
{
	static const char *const names[NRP_NR_PROCESS_MEASURES] = {
		"hint_faults",
		"migrated_pages",
		"page_migration_waits",
		"page_migration_wait_ns",
	};

	return names[measure];
}

bool nrp_process_measured(const struct nrp_replay *r, enum nrp_process_measure measure)
{
	return measure < NRP_PROCESS_WAITS || r->observed.has_migration_waits;
}

struct nrp_quantity nrp_process_in_lane(const struct nrp_comparison *c, const struct nrp_replay *r,
					int i, enum nrp_process_measure measure,
					const struct nrp_process *p)
{
	const struct nrp_quantity *q = in_lane(c, i, nrp_process_measure_name(measure));
	double value = (double)p->lane[i].value[measure];
	double low = (double)p->lane[i].least[measure], high = (double)p->lane[i].most[measure];

	/* What the metric's bounds allow beyond the worlds may all be of one address space. */
	low -= q->has_lower ? fmax((double)r->processes.least[i][measure] - q->lower, 0) : low;
	high += q->has_upper ? fmax(q->upper - (double)r->processes.most[i][measure], 0) : 0;
	return (struct nrp_quantity){ .value = value,
				      .lower = floor(fmin(fmax(low, 0), value)),
				      .upper = ceil(fmax(high, value)),
				      .has_value = true,
				      .has_lower = true,
				      .has_upper = q->has_upper,
				      .class = NRP_CLASS_BOUNDED };
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Nearest rank of @n sorted values. */
static double percentile(const double *sorted, size_t n, unsigned int percent)
{
	return sorted[(n * percent + 99) / 100 - 1];
}

#define NR_PERCENTILES 3

static const unsigned int percents[NR_PERCENTILES] = { 5, 50, 95 };

/* Of all address spaces: value, lower and upper ends sorted each for itself. */
struct spread {
	double *sorted[3];
	size_t count;
	bool has_upper;
};

static struct nrp_quantity spread_at(const struct spread *s, unsigned int percent)
{
	return (struct nrp_quantity){ .value = percentile(s->sorted[0], s->count, percent),
				      .lower = percentile(s->sorted[1], s->count, percent),
				      .upper = percentile(s->sorted[2], s->count, percent),
				      .has_value = true,
				      .has_lower = true,
				      .has_upper = s->has_upper };
}

static void sort_lane(struct spread *s, const struct nrp_comparison *c, const struct nrp_replay *r,
		      int i, enum nrp_process_measure measure)
{
	for (size_t k = 0; k < s->count; k++) {
		struct nrp_quantity q = nrp_process_in_lane(c, r, i, measure, &r->processes.at[k]);

		s->sorted[0][k] = q.value;
		s->sorted[1][k] = q.lower;
		s->sorted[2][k] = q.upper;
		s->has_upper = q.has_upper;
	}
	for (int k = 0; k < 3; k++)
		qsort(s->sorted[k], s->count, sizeof(double), by_value);
}

static void sort_record(struct spread *s, const struct nrp_replay *r,
			enum nrp_process_measure measure)
{
	for (size_t k = 0; k < s->count; k++)
		s->sorted[0][k] = (double)r->processes.at[k].record[measure];
	qsort(s->sorted[0], s->count, sizeof(double), by_value);
}

/* Rows of one measure; *ret_record: its percentiles. */
static void measure_rows(json_t *rows, struct spread *s, const struct nrp_comparison *c,
			 const struct nrp_replay *r, enum nrp_process_measure measure,
			 double ret_record[NR_PERCENTILES])
{
	static const char *const lanes[2] = { "old", "new" };
	const char *name = nrp_process_measure_name(measure);
	json_t *row[NR_PERCENTILES];

	sort_record(s, r, measure);
	for (int k = 0; k < NR_PERCENTILES; k++) {
		ret_record[k] = percentile(s->sorted[0], s->count, percents[k]);
		row[k] = json_pack("{s:s,s:i,s:I,s:n,s:n}", "measure", name, "percentile",
				   (int)percents[k], "record", (json_int_t)ret_record[k], "old",
				   "new");
		json_array_append_new(rows, row[k]);
	}
	for (int i = 0; i < 2; i++) {
		if (!nrp_lane_has_details(c, r, i, name))
			continue;
		sort_lane(s, c, r, i, measure);
		for (int k = 0; k < NR_PERCENTILES; k++) {
			struct nrp_quantity q = spread_at(s, percents[k]);

			json_object_set_new(row[k], lanes[i], range(&q));
		}
	}
}

static void processes_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	size_t n = r->processes.count;
	double *room = n > 1 ? calloc(3 * n, sizeof(*room)) : NULL;
	struct spread s = { .sorted = { room, room + n, room + 2 * n }, .count = n };
	double record[NRP_NR_PROCESS_MEASURES][NR_PERCENTILES] = { { 0 } };
	json_t *rows;

	/* One alone has no spread. */
	if (!room)
		return;
	rows = json_array();
	for (int m = 0; rows && m < NRP_NR_PROCESS_MEASURES; m++)
		if (nrp_process_measured(r, (enum nrp_process_measure)m))
			measure_rows(rows, &s, c, r, (enum nrp_process_measure)m, record[m]);
	nrp_comparison_note(c, "process_spread",
			    json_pack("{s:I,s:o}", "processes", (json_int_t)n, "rows", rows),
			    "over %zu address spaces, half have at most %.0f hinting faults on "
			    "record and %.0f migrated pages, 95 %% at most %.0f and %.0f",
			    n, record[NRP_PROCESS_FAULTS][1], record[NRP_PROCESS_MOVED][1],
			    record[NRP_PROCESS_FAULTS][2], record[NRP_PROCESS_MOVED][2]);
	free(room);
}

void nrp_add_fault_reports(struct nrp_comparison *c, const struct nrp_replay *r)
{
	outcomes_note(c, r);
	faulters_note(c, r);
	processes_note(c, r);
}
