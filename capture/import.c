/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/import.h"
#include "capture/calibrate.h"
#include "capture/facts.h"
#include "capture/join_internal.h"
#include "numareplay/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROGRESS_EVENTS 262144

struct import {
	const struct nrp_import_options *opt;
	struct nrp_store *store;
	struct nrp_tracefile *file;
	struct nrp_catalogue *cat;
	struct nrp_capture *cap;
	char *facts_path; /* NULL: none */
	struct nrp_import_damage *damage; /* NULL: strict */
	struct nrp_error *err;
};

static int name_capture(struct import *im)
{
	const char *slash = strrchr(im->opt->path, '/');
	const char *base = slash ? slash + 1 : im->opt->path;
	const char *dot = strrchr(base, '.');
	const char *name = im->opt->name ? im->opt->name : base;
	size_t length = !im->opt->name && dot && dot > base ? (size_t)(dot - base) : strlen(name);

	if (length >= sizeof(im->cap->name))
		return nrp_fail(im->err, NRP_USAGE, -ENAMETOOLONG, im->opt->path, -1,
				"give a shorter one with --name",
				"a capture's name has at most %zu bytes",
				sizeof(im->cap->name) - 1);
	snprintf(im->cap->name, sizeof(im->cap->name), "%.*s", (int)length, name);
	snprintf(im->cap->source, sizeof(im->cap->source), "trace.dat");
	return 0;
}

static int refuse_or_replace(struct import *im, int64_t id, const char *why)
{
	if (!id)
		return 0;
	if (!im->opt->force)
		return nrp_fail(im->err, NRP_USAGE, -EEXIST, im->opt->path, -1,
				"--force replaces it; --name gives it another name", "%s", why);
	return nrp_store_delete_capture(im->store, id, im->err);
}

static int check_duplicates(struct import *im)
{
	int64_t id = 0;
	int r = nrp_tracefile_hash(im->file, im->cap->hash, im->err);

	if (r == 0)
		r = nrp_store_capture_by_hash(im->store, im->cap->hash, &id, im->err);
	if (r == 0)
		r = refuse_or_replace(im, id, "this capture is in the database already");
	id = 0;
	if (r == 0)
		r = nrp_store_capture_by_name(im->store, im->cap->name, &id, im->err);
	if (r == 0)
		r = refuse_or_replace(im, id, "the database has another capture of this name");
	return r;
}

/* What the event formats and headers say. */
static void header_facts(struct import *im)
{
	struct nrp_host_facts *f = &im->cap->facts;
	const bool *present = im->cat->present;

	snprintf(f->kernel, sizeof(f->kernel), "%s", nrp_tracefile_uname(im->file));
	snprintf(f->clock, sizeof(f->clock), "%s", nrp_tracefile_clock(im->file));
	nrp_text_clean(f->kernel);
	nrp_text_clean(f->clock);
	f->page_size = nrp_tracefile_page_size(im->file);
	f->has_ratelimit_event = present[NRP_EV_RATELIMIT];
	f->has_prepare_step = present[NRP_EV_PREPARE_BEGIN];
	f->has_thp_function = present[NRP_EV_THP_BEGIN];
	f->has_task_fault = present[NRP_EV_TASK_FAULT];
	f->has_fault_probe = present[NRP_EV_FAULT_BEGIN];
}

/* Side file @given, or X@ending if that exists; *ret NULL if there is none. malloc'd. */
static int side_path(struct import *im, const char *given, const char *ending, char **ret)
{
	char *path = given ? strdup(given) : nrp_side_file(im->opt->path, ending);

	if (!path)
		return nrp_fail_nomem(im->err);
	if (!given && access(path, F_OK) != 0) {
		free(path);
		path = NULL;
	}
	*ret = path;
	return 0;
}

static int store_probes(struct import *im)
{
	const char *names[NRP_NR_EVENTS];
	size_t n = 0;

	for (int i = NRP_EV_OTHER + 1; i < NRP_NR_EVENTS; i++)
		if (im->cat->present[i])
			names[n++] = nrp_event_name((enum nrp_event)i);
	return nrp_store_put_probes(im->store, im->cap->id, names, n, im->err);
}

static int read_facts(struct import *im)
{
	int r = side_path(im, im->opt->facts, ".facts", &im->facts_path);

	return r == 0 && im->facts_path ? nrp_facts_read(im->facts_path, &im->cap->facts, im->store,
							 im->cap->id, im->err)
					: r;
}

/* A facts file of another host, or a wrong one, would make local pages remote. */
static int check_facts(struct import *im, const struct nrp_contradiction *c)
{
	char what[128];

	if (!c->count)
		return 0;
	if (c->cpu < 0)
		snprintf(what, sizeof(what), "lists %d nodes, and the capture has pages on node %d",
			 im->cap->facts.nr_nodes, c->nid);
	else if (c->nid < 0)
		snprintf(what, sizeof(what), "lists no node with CPU %d, which has faults", c->cpu);
	else
		snprintf(what, sizeof(what), "CPU %d is on node %d in the capture", c->cpu, c->nid);
	return nrp_fail(im->err, NRP_INPUT, -EBADMSG, im->facts_path, -1,
			"give the facts of the recorded host, or none: move the file away",
			"contradicts the capture in %llu records: %s", (unsigned long long)c->count,
			what);
}

static int read_counters(struct import *im)
{
	char *path[2] = { NULL, NULL };
	int r = side_path(im, im->opt->vmstat[0], ".vmstat0", &path[0]);

	if (r == 0)
		r = side_path(im, im->opt->vmstat[1], ".vmstat1", &path[1]);
	for (int i = 0; r == 0 && path[0] && path[1] && i < 2; i++)
		r = nrp_vmstat_read(path[i], i, im->store, im->cap->id, im->err);
	free(path[0]);
	free(path[1]);
	return r;
}

static int read_samples(struct import *im, struct nrp_samples_stats *ret)
{
	struct nrp_samples_options options = im->opt->samples;
	struct nrp_samples_stats stats = { 0 };
	char *path = NULL;
	int r = side_path(im, options.path, ".samples", &path);

	options.path = path;
	if (r == 0 && !path && (options.events || options.has_start))
		r = nrp_fail(im->err, NRP_USAGE, -ENOENT, im->opt->path, -1,
			     "name the text of perf stat with --samples FILE",
			     "has no memory samples beside it");
	if (r == 0 && path)
		r = nrp_samples_read(&options, im->store, im->cap, &stats, im->err);
	free(path);
	if (r == 0 && ret)
		*ret = stats;
	return r;
}

/*
 * Where neither events nor host facts say it: a PMD maps as many base pages as an entry of 8 bytes
 * fits into one. Other machines have page tables of their own.
 */
static void derive_huge_pages(struct nrp_host_facts *facts)
{
	if (facts->huge_pages < 0 && facts->page_size >= 4096 &&
	    (strstr(facts->kernel, "x86_64") || strstr(facts->kernel, "aarch64")))
		facts->huge_pages = facts->page_size / 8;
}

/*
 * The next event: 1, 0 at the end, < 0. If the file is salvaged, damage is counted by the reader,
 * and after it *@ret_broken is set: events of some CPU are missing from here on.
 */
static int next_event(struct import *im, struct nrp_raw_event *raw, bool *ret_broken)
{
	int r;

	if (!im->damage)
		return nrp_tracefile_next(im->file, raw, im->err);
	/* of many errors in one object the first stays */
	while ((r = nrp_tracefile_next(im->file, raw, &im->damage->first)) < 0) {
		if (r == -ENOMEM)
			return nrp_fail_nomem(im->err);
		*ret_broken = true;
	}
	return r;
}

static int calibrate(struct import *im)
{
	struct nrp_calibration *cal;
	struct nrp_raw_event raw;
	bool broken = false;
	int r = nrp_calibration_new(&cal, im->cat, im->cap->facts.nr_nodes == 0, im->err);

	if (r < 0)
		return r;
	nrp_tracefile_rewind(im->file);
	while (r == 0 && !nrp_calibration_settled(cal)) {
		r = next_event(im, &raw, &broken);
		if (r <= 0)
			break;
		r = nrp_calibration_event(cal, &raw);
		if (r < 0)
			nrp_fail_nomem(im->err);
	}
	if (r == 0)
		r = nrp_calibration_finish(cal, &im->cap->facts, im->err);
	if (r == 0)
		derive_huge_pages(&im->cap->facts);
	nrp_calibration_free(cal);
	return r;
}

/* Events that a CPU's statistics count as lost; a line that is absent (-1) counts none. */
static uint64_t lost_of(const struct nrp_cpu_stat *s)
{
	return (uint64_t)(s->overrun > 0 ? s->overrun : 0) +
	       (uint64_t)(s->dropped > 0 ? s->dropped : 0) +
	       (uint64_t)(s->commit_overrun > 0 ? s->commit_overrun : 0);
}

/* Overruns that the ring buffer counted but no sub-buffer marks (lost at the very start or end). */
static int stats_losses(struct import *im, struct nrp_writer *writer, struct nrp_join_stats *stats)
{
	uint64_t counted = 0;

	for (size_t i = 0; i < nrp_tracefile_nr_cpu_stats(im->file); i++)
		counted += lost_of(nrp_tracefile_cpu_stat(im->file, i));
	if (counted <= stats->lost_events || stats->loss_gaps)
		return 0;
	for (size_t i = 0; i < nrp_tracefile_nr_cpu_stats(im->file); i++) {
		const struct nrp_cpu_stat *s = nrp_tracefile_cpu_stat(im->file, i);
		uint64_t lost = lost_of(s);
		struct nrp_loss l;
		int r;

		if (!lost)
			continue;
		NRP_ROW_INIT(&l);
		NRP_SET(&l, loss, time, 0);
		NRP_SET(&l, loss, cpu, s->cpu);
		NRP_SET(&l, loss, count, lost);
		NRP_SET(&l, loss, cause, NRP_LOSS_STATS);
		r = nrp_writer_append(writer, NRP_LOSS, &l, im->err);
		if (r < 0)
			return r;
	}
	stats->lost_events = counted;
	return 0;
}

static int read_events(struct import *im, struct nrp_joiner *joiner)
{
	struct nrp_raw_event raw;
	uint64_t n = 0;
	int r = 0;

	nrp_tracefile_rewind(im->file);
	while (r == 0) {
		bool broken = false;

		int next = next_event(im, &raw, &broken);

		if (next < 0)
			return next;
		if (broken)
			r = nrp_joiner_break(joiner, im->err);
		if (r < 0 || !next)
			return r;
		r = nrp_joiner_event(joiner, &raw, im->err);
		if (++n % PROGRESS_EVENTS == 0 && im->opt->progress)
			im->opt->progress(im->opt->context, n);
	}
	return r;
}

/* Events missing behind the last one of a CPU. */
static int loss_at_end(struct import *im, struct nrp_joiner *joiner,
		       const struct nrp_cpu_reading *cpu)
{
	struct nrp_loss l;

	if (!cpu->lost_at_end)
		return 0;
	NRP_ROW_INIT(&l);
	NRP_SET(&l, loss, time, cpu->last_time);
	NRP_SET(&l, loss, cpu, cpu->cpu);
	NRP_SET(&l, loss, cause, cpu->end_cause);
	NRP_SET(&l, loss, read_before, cpu->events);
	if (cpu->end_lost >= 0)
		NRP_SET(&l, loss, count, (uint64_t)cpu->end_lost);
	if (cpu->end_cause != NRP_LOSS_OVERRUN)
		NRP_SET(&l, loss, offset, cpu->end_offset);
	return nrp_joiner_loss(joiner, &l, im->err);
}

/* Events of every kind may be missing on a CPU, all the time: their formats are damaged. */
static int loss_of_formats(struct import *im, struct nrp_joiner *joiner, uint32_t cpu)
{
	uint64_t offset;
	struct nrp_loss l;

	if (!nrp_tracefile_lost_formats(im->file, &offset))
		return 0;
	NRP_ROW_INIT(&l);
	NRP_SET(&l, loss, time, 0);
	NRP_SET(&l, loss, cpu, cpu);
	NRP_SET(&l, loss, cause, NRP_LOSS_DAMAGED);
	NRP_SET(&l, loss, offset, offset);
	NRP_SET(&l, loss, read_before, 0);
	return nrp_joiner_loss(joiner, &l, im->err);
}

static int losses_behind_events(struct import *im, struct nrp_joiner *joiner)
{
	const struct nrp_cpu_reading *cpu;
	int r = 0;

	for (size_t i = 0; r == 0 && (cpu = nrp_tracefile_reading(im->file, i)); i++) {
		r = loss_at_end(im, joiner, cpu);
		if (r == 0)
			r = loss_of_formats(im, joiner, cpu->cpu);
	}
	return r;
}

/* Sums up what the reader met. */
static int sum_damage(struct import *im)
{
	struct nrp_import_damage *d = im->damage;
	struct nrp_error header;
	size_t n = 0;

	if (!d)
		return 0;
	d->places = nrp_tracefile_damage(im->file, &header);
	if (d->places)
		d->first = header;
	for (; nrp_tracefile_reading(im->file, n); n++)
		d->places += nrp_tracefile_reading(im->file, n)->damages;
	if (!d->places)
		return 0;
	d->cpu = calloc(n ? n : 1, sizeof(*d->cpu));
	if (!d->cpu)
		return nrp_fail_nomem(im->err);
	for (size_t i = 0; i < n; i++)
		d->cpu[i] = *nrp_tracefile_reading(im->file, i);
	d->nr_cpus = n;
	return 0;
}

static int join(struct import *im, struct nrp_join_stats *ret_stats)
{
	struct nrp_writer *writer = NULL;
	struct nrp_joiner *joiner = NULL;
	struct nrp_join_stats stats;
	int r = nrp_writer_new(&writer, im->store, im->cap->id, im->err);

	if (r == 0)
		r = nrp_joiner_new(&joiner, im->cat, &im->cap->facts, im->store, writer,
				   im->cap->id, im->err);
	if (r == 0)
		r = read_events(im, joiner);
	if (r == 0)
		r = losses_behind_events(im, joiner);
	if (r == 0)
		r = nrp_joiner_finish(joiner, im->err);
	if (r == 0)
		r = sum_damage(im);
	if (r == 0) {
		stats = *nrp_joiner_stats(joiner);
		r = stats_losses(im, writer, &stats);
	}
	if (r == 0)
		r = nrp_writer_flush(writer, im->err);
	if (r == 0) {
		im->cap->events = stats.events;
		im->cap->other_events = stats.other;
		im->cap->unjoined_events = stats.unjoined;
		im->cap->first_time = stats.first_time;
		im->cap->last_time = stats.last_time;
		im->cap->lost_events = stats.lost_events;
		im->cap->loss_gaps = stats.loss_gaps;
		*ret_stats = stats;
	}
	nrp_joiner_free(joiner);
	nrp_writer_free(writer);
	return r;
}

int nrp_import_trace(struct nrp_store *store, const struct nrp_import_options *options,
		     struct nrp_capture *ret, struct nrp_join_stats *ret_stats,
		     struct nrp_samples_stats *ret_samples, struct nrp_import_damage *ret_damage,
		     struct nrp_error *err)
{
	struct nrp_import_damage damage = { .first = NRP_ERROR_INIT };
	struct import im = { .opt = options, .store = store, .cap = ret, .err = err };
	int r;

	if (ret_damage && !options->strict && !options->libtracecmd)
		im.damage = &damage;
	memset(ret, 0, sizeof(*ret));
	nrp_host_facts_init(&ret->facts);
	ret->probe_misses = -1; /* trace-cmd files do not carry kprobe_profile */
	r = im.damage ? nrp_tracefile_salvage(&im.file, options->path, err)
		      : nrp_tracefile_open(&im.file, options->path, err);
	if (r == 0 && options->libtracecmd)
		r = nrp_tracefile_use_libtracecmd(im.file, err);
	if (r == 0)
		r = nrp_catalogue_new(&im.cat, im.file, err);
	if (r == 0)
		r = name_capture(&im);
	if (r == 0) {
		header_facts(&im);
		r = check_duplicates(&im);
	}
	if (r == 0)
		r = nrp_store_add_capture(store, ret, err);
	if (r == 0)
		r = store_probes(&im);
	if (r == 0)
		r = read_facts(&im);
	if (r == 0)
		r = read_counters(&im);
	if (r == 0)
		r = calibrate(&im);
	if (r == 0)
		r = join(&im, ret_stats);
	if (r == 0)
		r = check_facts(&im, &ret_stats->contradiction);
	if (r == 0)
		r = read_samples(&im, ret_samples);
	if (r == 0)
		r = nrp_store_update_capture(store, ret, err);
	free(im.facts_path);
	free(im.cat);
	nrp_tracefile_close(im.file);
	if (r < 0) {
		nrp_import_damage_clear(&damage);
		nrp_capture_clear(ret);
		return r;
	}
	if (ret_damage)
		*ret_damage = damage;
	return 0;
}

void nrp_import_damage_clear(struct nrp_import_damage *damage)
{
	free(damage->cpu);
	memset(damage, 0, sizeof(*damage));
}
