/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/import.h"
#include "capture/calibrate.h"
#include "capture/facts.h"
#include "capture/join_internal.h"
#include "capture/source.h"
#include "numareplay/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROGRESS_EVENTS 262144

struct import {
	const struct nrp_import_options *opt;
	struct nrp_store *store;
	struct nrp_source *source;
	const struct nrp_catalogue *cat;
	struct nrp_calibration *cal; /* of a text: made by its first reading */
	struct nrp_capture *cap;
	char *facts_path;                 /* NULL: none */
	const char *nodes_path;           /* the first side file that has nodes */
	struct nrp_import_damage *damage; /* NULL: strict */
	struct nrp_error *err;
};

/* The path without the endings of text and compression: trace.txt.gz is trace. */
static int stem_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t n = strlen(path);
	const char *dot;

	if (n > 3 && !strcmp(path + n - 3, ".gz") && path + n - 3 > base)
		n -= 3;
	dot = memrchr(base, '.', n - (size_t)(base - path));
	return dot && dot > base ? (int)(dot - path) : (int)n;
}

static int name_capture(struct import *im)
{
	const char *path = im->opt->path, *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path, *name = im->opt->name;
	size_t length;

	if (!name && !strcmp(path, "-"))
		name = "stdin";
	length = name ? strlen(name) : (size_t)(path + stem_of(path) - base);
	if (length >= sizeof(im->cap->name))
		return nrp_fail(im->err, NRP_USAGE, -ENAMETOOLONG, path, -1,
				"give a shorter one with --name",
				"a capture's name has at most %zu bytes",
				sizeof(im->cap->name) - 1);
	snprintf(im->cap->name, sizeof(im->cap->name), "%.*s", (int)length, name ? name : base);
	snprintf(im->cap->source, sizeof(im->cap->source), "%s", nrp_source_name(im->source));
	return 0;
}

static int refuse_or_replace(struct import *im, int64_t id, const char *why, const char *remedy)
{
	if (!id)
		return 0;
	if (!im->opt->force)
		return nrp_fail(im->err, NRP_USAGE, -EEXIST, im->opt->path, -1, remedy, "%s", why);
	return nrp_store_delete_capture(im->store, id, im->err);
}

static int check_duplicates(struct import *im)
{
	int64_t id = 0;
	int r = nrp_source_hash(im->source, im->cap->hash, im->err);

	if (r == 0)
		r = nrp_store_capture_by_hash(im->store, im->cap->hash, &id, im->err);
	if (r == 0)
		r = refuse_or_replace(im, id, "this capture is in the database already",
				      "--force replaces it");
	id = 0;
	if (r == 0)
		r = nrp_store_capture_by_name(im->store, im->cap->name, &id, im->err);
	if (r == 0)
		r = refuse_or_replace(im, id, "the database has another capture of this name",
				      "--force replaces it; --name gives it another name");
	return r;
}

/* What the event formats and headers say. */
static void header_facts(struct import *im)
{
	struct nrp_host_facts *f = &im->cap->facts;

	nrp_source_facts(im->source, f);
	if (im->cal && f->page_size < 0)
		f->page_size = nrp_calibration_page_size(im->cal);
	nrp_text_clean(f->kernel);
	nrp_text_clean(f->clock);
}

/* Side file @given, or X@ending if that exists; *ret NULL if there is none. malloc'd. */
static int side_path(struct import *im, const char *given, const char *ending, char **ret)
{
	char *path = NULL;

	*ret = NULL;
	if (!given && !strcmp(im->opt->path, "-"))
		return 0;
	if (given)
		path = strdup(given);
	else if (asprintf(&path, "%.*s%s", stem_of(im->opt->path), im->opt->path, ending) < 0)
		path = NULL;
	if (!path)
		return nrp_fail_nomem(im->err);
	if (!given && access(path, F_OK) != 0) {
		free(path);
		path = NULL;
	}
	*ret = path;
	return 0;
}

/* Which events were recorded, whether they happened or not: a fingerprint of the kernel. */
static int store_probes(struct import *im, const bool recorded[NRP_NR_EVENTS])
{
	struct nrp_host_facts *f = &im->cap->facts;
	const char *names[NRP_NR_EVENTS];
	size_t n = 0;

	f->has_ratelimit_event = recorded[NRP_EV_RATELIMIT];
	f->has_prepare_step = recorded[NRP_EV_PREPARE_BEGIN];
	f->has_thp_function = recorded[NRP_EV_THP_BEGIN];
	f->has_task_fault = recorded[NRP_EV_TASK_FAULT];
	f->has_fault_probe = recorded[NRP_EV_FAULT_BEGIN];
	for (int i = NRP_EV_OTHER + 1; i < NRP_NR_EVENTS; i++)
		if (recorded[i])
			names[n++] = nrp_event_name((enum nrp_event)i);
	return nrp_store_put_probes(im->store, im->cap->id, names, n, im->err);
}

static int read_facts(struct import *im)
{
	struct nrp_host_facts *f = &im->cap->facts;
	bool recorded[NRP_NR_EVENTS];
	int r = side_path(im, im->opt->facts, ".facts", &im->facts_path);

	memcpy(recorded, im->cat->present, sizeof(recorded));
	if (r == 0 && im->facts_path)
		r = nrp_facts_read(im->facts_path, f, recorded, im->store, im->cap->id, im->err);
	if (r == 0)
		r = store_probes(im, recorded);
	if (r == 0 && f->nr_nodes)
		im->nodes_path = im->facts_path;
	for (const char *const *p = im->opt->topology; r == 0 && p && *p; p++) {
		r = nrp_topology_read(*p, f, im->err);
		if (!im->nodes_path)
			im->nodes_path = *p;
	}
	return r;
}

/* The topology of another host, or a wrong one, would make local pages remote. */
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
	return nrp_fail(im->err, NRP_INPUT, -EBADMSG, im->nodes_path, -1,
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

/* The next event: 1, 0 at the end, < 0. Damage is counted, unless it is an error. */
static int next_event(struct import *im, const struct nrp_raw_event **ret, bool *ret_broken)
{
	return nrp_source_next(im->source, ret, im->damage ? &im->damage->first : NULL, ret_broken,
			       im->err);
}

/* One reading of the capture, up to its end where @whole, else until the facts are settled. */
static int observe(struct import *im, bool whole)
{
	const struct nrp_raw_event *raw;
	bool broken = false;
	int r = nrp_source_rewind(im->source, im->err);

	while (r == 0 && (whole || !nrp_calibration_settled(im->cal))) {
		r = next_event(im, &raw, &broken);
		if (r <= 0)
			break;
		r = nrp_calibration_event(im->cal, raw);
		if (r < 0)
			nrp_fail_nomem(im->err);
	}
	return r;
}

/* Only its last line tells which events a text holds, and the hash of its bytes. */
static int survey(struct import *im)
{
	int r;

	if (!nrp_source_needs_survey(im->source))
		return 0;
	r = nrp_calibration_new(&im->cal, im->cat, true, im->err);
	return r < 0 ? r : observe(im, true);
}

static int calibrate(struct import *im)
{
	struct nrp_host_facts *f = &im->cap->facts;
	/* numa_maps name nodes without their CPUs; a facts file that does so is wrong */
	bool infer = !f->nr_nodes || (!f->nr_cpus && im->nodes_path != im->facts_path);
	struct nrp_text_stats text;
	int r = 0;

	if (!im->cal) {
		r = nrp_calibration_new(&im->cal, im->cat, infer, im->err);
		if (r == 0)
			r = observe(im, false);
	}
	if (r == 0)
		r = nrp_calibration_finish(im->cal, infer, f, im->err);
	if (r == 0)
		derive_huge_pages(f);
	nrp_source_text_stats(im->source, &text);
	if (text.unit == NRP_TEXT_TICKS)
		f->hz = -1; /* of the clock, not of a second */
	return r;
}

static int read_events(struct import *im, struct nrp_joiner *joiner)
{
	const struct nrp_raw_event *raw;
	uint64_t n = 0;
	int r = nrp_source_rewind(im->source, im->err);

	while (r == 0) {
		bool broken = false;
		int next = next_event(im, &raw, &broken);

		if (next < 0)
			return next;
		if (broken)
			r = nrp_joiner_break(joiner, im->err);
		if (r < 0 || !next)
			return r;
		r = nrp_joiner_event(joiner, raw, im->err);
		if (++n % PROGRESS_EVENTS == 0 && im->opt->progress)
			im->opt->progress(im->opt->context, n);
	}
	return r;
}

/* Sums up what the reader met. */
static int sum_damage(struct import *im)
{
	struct nrp_import_damage *d = im->damage;
	const struct nrp_cpu_reading *cpu;
	struct nrp_error first;
	size_t n = 0;

	if (!d)
		return 0;
	d->places = nrp_source_damage(im->source, &first);
	if (d->places)
		d->first = first;
	for (; (cpu = nrp_source_reading(im->source, n)); n++)
		d->places += cpu->damages;
	if (!d->places)
		return 0;
	d->cpu = calloc(n ? n : 1, sizeof(*d->cpu));
	if (!d->cpu)
		return nrp_fail_nomem(im->err);
	for (size_t i = 0; i < n; i++)
		d->cpu[i] = *nrp_source_reading(im->source, i);
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
		r = nrp_source_losses(im->source, joiner, im->err);
	if (r == 0)
		r = nrp_joiner_finish(joiner, im->err);
	if (r == 0)
		r = sum_damage(im);
	if (r == 0) {
		stats = *nrp_joiner_stats(joiner);
		r = nrp_source_stats_losses(im->source, writer, &stats, im->err);
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

/* What was left out of a text stays with the capture, as settings text.*. */
static int store_text(struct import *im)
{
	struct nrp_text_stats s;
	int r;

	nrp_source_text_stats(im->source, &s);
	if (im->opt->ret_text)
		*im->opt->ret_text = s;
	if (!s.read)
		return 0;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{ "text.lines", s.lines },
		{ "text.skipped", s.noise },
		{ "text.not_understood", s.bad + s.cut },
		{ "text.backwards", s.backwards },
		{ "text.hashed_pointers", s.hashed },
		{ "text.unresolved_values", s.unresolved },
		{ "text.arrays_as_zeros", s.zero_arrays },
	};

	r = nrp_store_put_setting(im->store, im->cap->id, "text.format", s.format, im->err);
	if (r == 0)
		r = nrp_store_put_setting(im->store, im->cap->id, "text.time_unit",
					  nrp_text_unit_name(s.unit), im->err);
	for (size_t i = 0; r == 0 && i < sizeof(counts) / sizeof(counts[0]); i++) {
		char value[24];

		snprintf(value, sizeof(value), "%llu", (unsigned long long)counts[i].value);
		r = nrp_store_put_setting(im->store, im->cap->id, counts[i].name, value, im->err);
	}
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
	r = nrp_source_open(&im.source, options->path, im.damage != NULL, options->libtracecmd,
			    err);
	if (r == 0) {
		im.cat = nrp_source_catalogue(im.source);
		r = survey(&im);
	}
	if (r == 0)
		r = name_capture(&im);
	if (r == 0) {
		header_facts(&im);
		r = check_duplicates(&im);
	}
	if (r == 0)
		r = nrp_store_add_capture(store, ret, err);
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
		r = store_text(&im);
	if (r == 0)
		r = read_samples(&im, ret_samples);
	if (r == 0)
		r = nrp_store_seal(store, ret->id, err);
	if (r == 0)
		r = nrp_store_update_capture(store, ret, err);
	free(im.facts_path);
	nrp_calibration_free(im.cal);
	nrp_source_close(im.source);
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
