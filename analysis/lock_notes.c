/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes on lanes that hold the mmap_lock differently: who waits how long for whom, and what not. */
#include "analysis/compare_internal.h"

#include <stdio.h>

#define ULL(x) ((unsigned long long)(x))
#define MS(ns) ((double)(ns)*1e-6)

static const struct nrp_lock_result *result(const struct nrp_replay *r, int i)
{
	return r->lane[i].own_lock ? &r->lane[i].lock : &r->lock_record;
}

/* ---- nothing changes ------------------------------------------------------------------ */

static void nothing_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_lock_blame *b = &r->locks.blame;
	char why[200];

	if (!b->unmaps)
		snprintf(why, sizeof(why), "no unmap is on record with its lock");
	else if (!b->contended_unmaps)
		snprintf(why, sizeof(why),
			 "in none of %llu unmaps did another task ask for the lock that it held",
			 ULL(b->unmaps));
	else
		snprintf(why, sizeof(why),
			 "in %llu of %llu unmaps, the longest of %.1f MiB, another task asked for "
			 "the lock that it held%s",
			 ULL(b->contended_unmaps), ULL(b->unmaps),
			 (double)b->longest_unmap / 1048576,
			 r->locks.grows ? ", but a neighbour that grows keeps it under the write "
					  "lock"
					: "");
	nrp_comparison_note(
		c, "munmap_nothing_to_gain",
		json_pack("{s:I,s:I,s:I}", "unmaps", (json_int_t)b->unmaps, "contended_unmaps",
			  (json_int_t)b->contended_unmaps, "longest_unmap",
			  (json_int_t)b->longest_unmap),
		"munmap.lock: nothing to gain: no request for an mmap_lock waits longer "
		"or shorter than on record; %s",
		why);
}

/* ---- waits ---------------------------------------------------------------------------- */

/* Lower bound, value, upper bound. */
static json_t *three(uint64_t lower, uint64_t value, uint64_t upper)
{
	return json_pack("[I,I,I]", (json_int_t)lower, (json_int_t)value, (json_int_t)upper);
}

static json_t *waits_of(const struct nrp_lock_result *l, int class)
{
	const struct nrp_lock_waits *a = &l->lower[class], *w = &l->value[class],
				    *b = &l->upper[class];

	return json_pack("{s:I,s:o,s:o,s:o,s:o,s:o}", "queued", (json_int_t)w->queued, "sum_ns",
			 three(a->ns, w->ns, b->ns), "longest_ns",
			 three(a->longest, w->longest, b->longest), "p99_ns",
			 three(a->p99, w->p99, b->p99), "over_2ms",
			 three(a->over, w->over, b->over), "over_2ms_ns",
			 three(a->over_ns, w->over_ns, b->over_ns));
}

/* Appends a sentence's part about one class; @n: length so far. */
static size_t class_text(char *text, size_t size, size_t n, const struct nrp_replay *r, int k)
{
	const struct nrp_lock_result *a = result(r, 0), *b = result(r, 1);
	const struct nrp_lock_waits *v = &a->value[k], *w = &b->value[k];
	int length =
		snprintf(text + n, size - n,
			 "%s%s %.3f to %.3f ms (%+.3f; longest %.3f to %.3f; 99 %% of %llu "
			 "within %.3f to %.3f; over 2 ms %llu of %.3f to %llu of %.3f [%llu of "
			 "%.3f, %llu of %.3f])",
			 k ? "; " : "", nrp_lock_class_name((enum nrp_lock_class)k), MS(v->ns),
			 MS(w->ns), MS(w->ns) - MS(v->ns), MS(v->longest), MS(w->longest),
			 ULL(v->requests), MS(v->p99), MS(w->p99), ULL(v->over), MS(v->over_ns),
			 ULL(w->over), MS(w->over_ns), ULL(b->lower[k].over),
			 MS(b->lower[k].over_ns), ULL(b->upper[k].over), MS(b->upper[k].over_ns));

	return length < 0 || (size_t)length >= size - n ? size - 1 : n + (size_t)length;
}

static void waits_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	json_t *classes = json_object();
	char text[1024] = "";
	size_t n = 0;

	for (int k = 0; k < NRP_NR_LOCK_CLASSES; k++) {
		json_object_set_new(classes, nrp_lock_class_name((enum nrp_lock_class)k),
				    json_pack("{s:o,s:o,s:I}", "old", waits_of(result(r, 0), k),
					      "new", waits_of(result(r, 1), k), "change_ns",
					      (json_int_t)result(r, 1)->value[k].ns -
						      (json_int_t)result(r, 0)->value[k].ns));
		n = class_text(text, sizeof(text), n, r, k);
	}
	nrp_comparison_note(c, "lock_waits",
			    json_pack("{s:o,s:{s:I,s:I}}", "classes", classes, "write_held_ns",
				      "old", (json_int_t)result(r, 0)->write_held, "new",
				      (json_int_t)result(r, 1)->write_held),
			    "waits for mmap_locks in ms, old to new: %s; held for writing %.3f to "
			    "%.3f ms",
			    text, MS(result(r, 0)->write_held), MS(result(r, 1)->write_held));
}

static const char *kind_name(enum nrp_lock_kind kind)
{
	static const char *const names[NRP_NR_LOCK_KINDS] = {
		[NRP_LOCK_FAULT] = "fault",   [NRP_LOCK_READER] = "reader",
		[NRP_LOCK_WRITER] = "writer", [NRP_LOCK_SCAN] = "scan",
		[NRP_LOCK_MUNMAP] = "munmap",
	};

	return names[kind];
}

static json_t *describe(const struct nrp_lock_blocker *b)
{
	const char *call = nrp_lock_call_name(b->call);
	json_t *worst = b->victims ? json_pack("{s:i,s:s,s:I}", "tid", b->worst.tid, "kind",
					       kind_name(b->worst.kind), "wait_ns",
					       (json_int_t)b->worst.wait_ns)
				   : json_null();

	return json_pack("{s:I,s:I,s:i,s:b,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:I}", "mm",
			 (json_int_t)b->mm, "time", (json_int_t)b->granted, "tid", b->tid, "munmap",
			 b->munmap, "call", call ? json_string(call) : json_null(), "length",
			 (json_int_t)b->length, "held_ns", (json_int_t)b->held, "victims",
			 (json_int_t)b->victims, "fault_victims", (json_int_t)b->faults,
			 "reader_victims", (json_int_t)b->readers, "writer_victims",
			 (json_int_t)b->writers, "lost_scans", (json_int_t)b->lost_scans,
			 "worst_victim", worst, "wait_ns", (json_int_t)b->wait_ns);
}

/* "an unmap", "mbind()", "a writer". */
static const char *blocker_name(const struct nrp_lock_blocker *b, char *text, size_t size)
{
	const char *call = nrp_lock_call_name(b->call);

	if (b->munmap || !call)
		return b->munmap ? "an unmap" : "a writer";
	snprintf(text, size, "%s()", call);
	return text;
}

static void blockers_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_lock_blame *b = &r->locks.blame;
	const struct nrp_lock_blocker *top = &b->top[0];
	json_t *list = json_array();
	char name[24], worst[64] = "";

	for (size_t i = 0; i < b->nr_top; i++)
		json_array_append_new(list, describe(&b->top[i]));
	if (top->victims)
		snprintf(worst, sizeof(worst), " (longest: a %s of task %d, %.3f ms)",
			 kind_name(top->worst.kind), top->worst.tid, MS(top->worst.wait_ns));
	nrp_comparison_note(
		c, "lock_blockers",
		json_pack("{s:I,s:I,s:I,s:I,s:o}", "behind_munmap_ns", (json_int_t)b->behind_munmap,
			  "behind_writers_ns", (json_int_t)b->behind_writers, "behind_none_ns",
			  (json_int_t)b->behind_none, "scans_behind_line",
			  (json_int_t)b->scans_behind_line, "blockers", list),
		"on record requests waited %.3f ms while an unmap held the lock for writing, %.3f "
		"ms while another writer did, and %.3f ms behind readers or until they woke up; "
		"the worst was %s of task %d at %.6f s: %llu faults, %llu other readers and %llu "
		"writers waited %.3f ms in all while it held the lock for %.3f ms%s, and %llu "
		"scans gave up",
		MS(b->behind_munmap), MS(b->behind_writers), MS(b->behind_none),
		blocker_name(top, name, sizeof(name)), top->tid, (double)top->granted * 1e-9,
		ULL(top->faults), ULL(top->readers), ULL(top->writers), MS(top->wait_ns),
		MS(top->held), worst, ULL(top->lost_scans));
}

static void sights_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_lock_result *a = result(r, 0), *b = result(r, 1);

	nrp_comparison_note(
		c, "faults_in_unmapped_ranges",
		json_pack("{s:I,s:I,s:I,s:I,s:I}", "faults", (json_int_t)b->unmap_faults,
			  "segv_old", (json_int_t)a->segv, "segv_new", (json_int_t)b->segv,
			  "repopulated_old", (json_int_t)a->repopulated, "repopulated_new",
			  (json_int_t)b->repopulated),
		"%llu faults asked for a lock in a range that is unmapped later or meanwhile: no "
		"mapping is left for %llu (old) and %llu (new), and %llu and %llu get a new page "
		"for one that is gone already (by the model)",
		ULL(b->unmap_faults), ULL(a->segv), ULL(b->segv), ULL(a->repopulated),
		ULL(b->repopulated));
}

static void rate_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	double a = result(r, 0)->fault_rate, b = result(r, 1)->fault_rate;

	nrp_comparison_note(c, "closed_fault_rate", json_pack("{s:f,s:f}", "old", a, "new", b),
			    "if each task went on as soon as it could, with the time between its "
			    "requests as recorded, it would get %.0f (old) and %.0f (new) faults "
			    "through an mmap_lock in a second (%+.1f %%; by the model)",
			    a, b, a > 0 ? (b - a) * 100 / a : 0.0);
}

/* ---- scans ---------------------------------------------------------------------------- */

static json_t *windows_json(const struct nrp_lost_windows *w)
{
	return json_pack("{s:I,s:I,s:I,s:[f,f],s:[f,f],s:[f,f,f]}", "windows",
			 (json_int_t)w->windows, "unknown", (json_int_t)w->unknown, "pages",
			 (json_int_t)w->pages, "late_seconds", 0.0, w->seconds, "page_seconds", 0.0,
			 w->page_seconds, "remote_accesses", 0.0, w->accesses, w->accesses_upper);
}

#define SPACES_LISTED 16

/* Address spaces that lose windows, in the order of their pointers; the first of them. */
static json_t *spaces_json(const struct nrp_scan_attempts *a, uint64_t *ret_more)
{
	json_t *list = json_array();

	*ret_more = 0;
	for (size_t i = 0, end; i < a->count; i = end) {
		uint64_t longest = 0, attempts;
		char mm[24];

		for (end = i; end < a->count && a->at[end].mm == a->at[i].mm; end++)
			if (a->at[end].lost && a->at[end].period > longest)
				longest = a->at[end].period;
		attempts = end - i;
		if (!longest)
			continue;
		if (json_array_size(list) == SPACES_LISTED) {
			++*ret_more;
			continue;
		}
		snprintf(mm, sizeof(mm), "%016llx", ULL(a->at[i].mm));
		json_t *row = json_pack("{s:s,s:I,s:I}", "mm", mm, "attempts", (json_int_t)attempts,
					"longest_period_ns", (json_int_t)longest);
		static const char *const names[NRP_NR_LOST_IN] = { "record", "old", "new" };

		for (int who = 0; who < NRP_NR_LOST_IN; who++) {
			struct nrp_lost_windows w = nrp_lost_windows(a, (enum nrp_lost_in)who,
								     NRP_NR_LOST_IN, a->at[i].mm);

			json_object_set_new(row, names[who], windows_json(&w));
		}
		json_array_append_new(list, row);
	}
	return list;
}

/* What windows cost that scans lost to the lock (spec mmap-hugetlb.md 1.7, part 3). */
static void scans_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_scan_attempts *s = &r->scan_attempts;
	struct nrp_lost_windows a = nrp_lost_windows(s, NRP_LOST_OLD, NRP_NR_LOST_IN, 0);
	struct nrp_lost_windows b = nrp_lost_windows(s, NRP_LOST_NEW, NRP_NR_LOST_IN, 0);
	uint64_t more;
	json_t *spaces = spaces_json(s, &more);

	nrp_comparison_note(
		c, "scans_lost_to_the_lock",
		json_pack("{s:I,s:I,s:I,s:o,s:o,s:o,s:I}", "attempts",
			  (json_int_t)result(r, 1)->scans, "old", (json_int_t)a.windows, "new",
			  (json_int_t)b.windows, "lost_old", windows_json(&a), "lost_new",
			  windows_json(&b), "address_spaces", spaces, "more_address_spaces",
			  (json_int_t)more),
		"of %llu scans %llu (old) and %llu (new) find the lock taken or asked for; each "
		"leaves its window unarmed until the next attempt, 0 to one scan period later: up "
		"to %.3f and %.3f s in all, for windows of %llu and %llu entries. Other nodes' "
		"threads touch the windows' pages %.1f (up to %.1f) and %.1f (up to %.1f) times "
		"meanwhile: touch rate times time, a model; a lower estimate, as only the first "
		"touch of an armed page is seen, and at least 0, as marking in time need not have "
		"moved the pages%s",
		ULL(result(r, 1)->scans), ULL(a.windows), ULL(b.windows), a.seconds, b.seconds,
		ULL(a.pages), ULL(b.pages), a.accesses, a.accesses_upper, b.accesses,
		b.accesses_upper,
		a.unknown || b.unknown ? "; of some windows no later scan shows the size" : "");
}

#define RECORD                                                                                     \
	"record the events of mmap_lock:* (5.11 on), or probe down_read(), down_write(), "         \
	"downgrade_write(), up_read() and up_write()"

/* No holds and no requests: no other munmap can be replayed. */
static void not_recorded_note(struct nrp_comparison *c, const struct nrp_lock_contention *w)
{
	const struct nrp_contention_waits *read = w->has_offset ? w->of_mms : w->nameless;
	const struct nrp_contention_waits *write = read + 1;

	if (!w->known) {
		nrp_comparison_note(
			c, "locks_not_recorded", NULL,
			"munmap.lock: requests for mmap_locks are not on record: who would "
			"wait for whom is not observable; " RECORD);
		return;
	}
	nrp_comparison_note(
		c, "locks_not_recorded",
		json_pack("{s:o}", "contention", nrp_lock_contention_json(w)),
		"munmap.lock: waits in line for %s are on record, %llu to read of %.3f ms and %llu "
		"to write of %.3f ms: lower bounds of all waits, as tasks spin before. Who held "
		"the "
		"locks, and for how long, is not: what another munmap would change is not "
		"observable; " RECORD,
		w->has_offset ? "mmap_locks" : "rw_semaphores, mmap_locks or others,",
		ULL(read->waits), MS(read->ns), ULL(write->waits), MS(write->ns));
}

void nrp_add_lock_notes(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_lock_host *h = &r->locks;
	uint64_t faults = h->counts.page_faults, with_lock = h->counts.faults;

	if (r->lane[0].off || r->lane[1].off)
		return;
	/* What the host's scans lose is worth a note whatever the lanes are. */
	if (h->known && (r->lock_record.skipped || result(r, 0)->skipped || result(r, 1)->skipped))
		scans_note(c, r);
	if (!r->locks_differ)
		return;
	if (!h->known) {
		not_recorded_note(c, &r->contention);
		return;
	}
	if (r->moot[NRP_FAMILY_MUNMAP_LOCK])
		nothing_note(c, r);
	else
		waits_note(c, r);
	if (!r->moot[NRP_FAMILY_MUNMAP_LOCK] && result(r, 0)->fault_rate > 0)
		rate_note(c, r);
	if (h->blame.nr_top)
		blockers_note(c, r);
	if (result(r, 1)->unmap_faults)
		sights_note(c, r);
	if (faults > with_lock)
		nrp_comparison_note(
			c, "faults_without_lock",
			json_pack("{s:I,s:I}", "page_faults", (json_int_t)faults, "without",
				  (json_int_t)(faults - with_lock)),
			"%llu of %llu page faults never asked for an mmap_lock: what an unmap "
			"would "
			"cost them on a kernel without locks of VMAs cannot be told from this "
			"capture",
			ULL(faults - with_lock), ULL(faults));
}
