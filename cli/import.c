/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/import.h"
#include "cli/common.h"
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Options from NAME to START are about one file. */
enum {
	OPT_OUTPUT,
	OPT_NAME,
	OPT_FACTS,
	OPT_TOPOLOGY,
	OPT_VMSTAT,
	OPT_SAMPLES,
	OPT_EVENT,
	OPT_START,
	OPT_FORCE,
	OPT_READER,
	OPT_STRICT,
	OPT_ACCEPT,
	OPT_JSON,
	OPT_QUIET
};

static const struct cli_option options[] = {
	[OPT_OUTPUT] = { "output", 'o', "DB", "database to write; made if it does not exist" },
	[OPT_NAME] = { "name", 0, "NAME", "capture name (default: file name without ending)" },
	[OPT_FACTS] = { "facts", 0, "FILE", "host facts (default: X.facts beside X.dat)" },
	[OPT_TOPOLOGY] = { "topology", 0, "FILE",
			   "numactl -H, lscpu -p, numa_maps or a copy of /sys; may be given "
			   "again" },
	[OPT_VMSTAT] = { "vmstat", 0, "BEFORE AFTER",
			 "/proc/vmstat around the capture (default: X.vmstat0, X.vmstat1)" },
	[OPT_SAMPLES] = { "samples", 0, "FILE",
			  "perf script or perf stat -I -x, of memory accesses (default: "
			  "X.samples)" },
	[OPT_EVENT] = { "samples-event", 0, "NAME",
			"event of perf stat that counts accesses; may be given again" },
	[OPT_START] = { "samples-start", 0, "SECONDS",
			"start of perf stat on the capture's clock" },
	[OPT_FORCE] = { "force", 0, NULL, "replace a capture that is in the database already" },
	[OPT_READER] = { "reader", 0, "own|libtracecmd",
			 "what reads the events (default: own); libtracecmd reads whole files "
			 "only" },
	[OPT_STRICT] = { "strict", 0, NULL, "refuse damaged files instead of salvaging them" },
	[OPT_ACCEPT] = { "accept-damage", 0, NULL, "exit with 0 though a file was damaged" },
	[OPT_JSON] = { "json", 0, NULL, "print what was read as JSON" },
	[OPT_QUIET] = { "quiet", 'q', NULL, "print nothing" },
	{ NULL, 0, NULL, NULL },
};

static void progress(void *context, uint64_t events)
{
	fprintf(stderr, "\r%s: %.1f M events", (const char *)context, (double)events / 1e6);
}

/* null: no side file. */
static json_t *samples_json(const struct nrp_samples_stats *s)
{
	if (!s->read)
		return json_null();
	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "format",
			 s->counts ? "perf stat" : "perf script", "lines", (json_int_t)s->lines,
			 "kept", (json_int_t)s->kept, "outside", (json_int_t)s->outside, "repeated",
			 (json_int_t)s->repeated, "without_source", (json_int_t)s->without_source,
			 "not_counted", (json_int_t)s->not_counted, "not_understood",
			 (json_int_t)s->not_understood);
}

/* null: the file was whole. */
static json_t *damage_json(const struct nrp_import_damage *d)
{
	json_t *cpus;

	if (!d->places)
		return json_null();
	cpus = json_array();
	for (size_t i = 0; i < d->nr_cpus; i++) {
		const struct nrp_cpu_reading *c = &d->cpu[i];

		json_array_append_new(
			cpus,
			json_pack("{s:I,s:I,s:I,s:I,s:I,s:o,s:b}", "cpu", (json_int_t)c->cpu,
				  "events", (json_int_t)c->events, "lost", (json_int_t)c->lost,
				  "gaps", (json_int_t)(c->gaps + c->lost_at_end), "damages",
				  (json_int_t)c->damages, "offset",
				  c->damages ? json_integer((json_int_t)c->offset) : json_null(),
				  "lost_at_end", c->lost_at_end));
	}
	return json_pack("{s:I,s:I,s:s,s:o}", "places", (json_int_t)d->places, "offset",
			 (json_int_t)d->first.offset, "what", d->first.what, "cpus", cpus);
}

static void print_damage(FILE *out, const struct nrp_import_damage *d)
{
	for (size_t i = 0; d->places && i < d->nr_cpus; i++) {
		const struct nrp_cpu_reading *c = &d->cpu[i];

		fprintf(out, "  CPU %u: %llu events salvaged", c->cpu,
			(unsigned long long)c->events);
		if (c->damages)
			fprintf(out, ", %llu damaged place%s from offset %llu on",
				(unsigned long long)c->damages, c->damages == 1 ? "" : "s",
				(unsigned long long)c->offset);
		else
			fprintf(out, ", undamaged");
		fprintf(out, "%s\n", c->lost_at_end ? ", its end is missing" : "");
	}
}

static json_t *capture_json(const struct nrp_capture *c, json_t *text,
			    const struct nrp_samples_stats *samples,
			    const struct nrp_import_damage *damage)
{
	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o}", "capture", c->name, "events",
			 (json_int_t)c->events, "other_events", (json_int_t)c->other_events,
			 "unjoined_events", (json_int_t)c->unjoined_events, "lost_events",
			 (json_int_t)c->lost_events, "loss_gaps", (json_int_t)c->loss_gaps,
			 "duration_ns", (json_int_t)(c->last_time - c->first_time), "text", text,
			 "samples", samples_json(samples), "damage", damage_json(damage));
}

static void print_samples(FILE *out, const struct nrp_samples_stats *s)
{
	const struct {
		uint64_t count;
		const char *what;
	} left_out[] = {
		{ s->outside, "outside of the capture" },
		{ s->repeated, "repeated under another event" },
		{ s->without_source, "without a data source" },
		{ s->not_counted, "intervals not counted" },
		{ s->not_understood, "lines not understood" },
	};

	if (!s->read)
		return;
	fprintf(out, "  memory samples: %llu %s", (unsigned long long)s->kept,
		s->counts ? "counted intervals" : "sampled accesses");
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (left_out[i].count)
			fprintf(out, ", %llu %s", (unsigned long long)left_out[i].count,
				left_out[i].what);
	if (s->not_understood)
		fprintf(out, " (first: line %llu)", (unsigned long long)s->first_bad_line);
	fputc('\n', out);
}

static json_t *text_json(const struct nrp_text_stats *t)
{
	if (!t->read)
		return json_null();
	return json_pack("{s:s,s:s,s:I,s:I,s:I,s:b,s:I,s:I,s:I,s:I,s:I}", "format", t->format,
			 "time_unit", nrp_text_unit_name(t->unit), "lines", (json_int_t)t->lines,
			 "skipped", (json_int_t)t->noise, "not_understood", (json_int_t)t->bad,
			 "cut", t->cut, "first_not_understood", (json_int_t)t->first_bad,
			 "backwards", (json_int_t)t->backwards, "hashed_pointers",
			 (json_int_t)t->hashed, "unresolved_values", (json_int_t)t->unresolved,
			 "arrays_as_zeros", (json_int_t)t->zero_arrays);
}

/* What a text cannot tell, and what was left out of it: nothing of that is silent. */
static void print_text(FILE *out, const struct nrp_text_stats *t)
{
	const struct {
		uint64_t count;
		const char *what;
	} remarks[] = {
		{ t->noise, "lines of other tracers skipped" },
		{ t->backwards, "events before the one above" },
		{ t->hashed, "pointers printed hashed: they match no raw pointer" },
		{ t->unresolved, "values that are no numbers, or out of range: NULL" },
		{ t->zero_arrays, "arrays printed as zeros: NULL" },
	};

	if (!t->read)
		return;
	fprintf(out, "  text of %s: %llu lines", t->format, (unsigned long long)t->lines);
	if (t->bad)
		fprintf(out, ", %llu NOT UNDERSTOOD (first: line %llu)", (unsigned long long)t->bad,
			(unsigned long long)t->first_bad);
	fprintf(out, "%s\n", t->cut ? ", the last one CUT" : "");
	for (size_t i = 0; i < sizeof(remarks) / sizeof(remarks[0]); i++)
		if (remarks[i].count)
			fprintf(out, "  %llu %s\n", (unsigned long long)remarks[i].count,
				remarks[i].what);
	if (t->unit == NRP_TEXT_TICKS)
		fprintf(out, "  times are ticks of an unknown length, not ns\n");
}

static void print_capture(FILE *out, const struct nrp_capture *c,
			  const struct nrp_join_stats *stats)
{
	fprintf(out, "%s: %llu events in %.3f s, %llu unjoined, %llu of kinds without a record, ",
		c->name, (unsigned long long)c->events,
		(double)(c->last_time - c->first_time) * 1e-9,
		(unsigned long long)c->unjoined_events, (unsigned long long)c->other_events);
	if (c->lost_events || c->loss_gaps)
		fprintf(out, "LOST %llu events and %lld gaps of unknown size\n",
			(unsigned long long)c->lost_events, (long long)c->loss_gaps);
	else
		fprintf(out, "none lost\n");
	for (int i = 0; i < NRP_NR_EVENTS; i++)
		if (stats->unjoined_by_event[i])
			fprintf(out, "  unjoined: %llu %s\n",
				(unsigned long long)stats->unjoined_by_event[i],
				nrp_event_name((enum nrp_event)i));
}

/* "12", "12.5", "12.000000001": ns. */
static bool parse_start(const char *text, uint64_t *ret_ns)
{
	uint64_t ns = 0, unit = 1000000000;
	bool fraction = false;

	if (!isdigit((unsigned char)*text))
		return false;
	for (; *text; text++) {
		if (*text == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (!isdigit((unsigned char)*text) || unit < 10 || ns > UINT64_C(1) << 58)
			return false;
		if (fraction)
			unit /= 10;
		ns = fraction ? ns + (uint64_t)(*text - '0') * unit
			      : ns * 10 + (uint64_t)(*text - '0') * unit;
	}
	*ret_ns = ns;
	return true;
}

static int samples_options(const struct cli_args *args, struct nrp_samples_options *ret,
			   const char *events[CLI_MAX_VALUES + 1], struct nrp_error *err)
{
	const char *start = cli_value(args, OPT_START);

	ret->path = cli_value(args, OPT_SAMPLES);
	for (size_t i = 0; i < args->option[OPT_EVENT].count; i++)
		events[i] = args->option[OPT_EVENT].value[i];
	if (cli_given(args, OPT_EVENT))
		ret->events = events;
	ret->has_start = start != NULL;
	if (start && !parse_start(start, &ret->start))
		return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "give seconds, as 17.25",
				"--samples-start %s is no time", start);
	return 0;
}

static int import_one(const struct cli_args *args, struct nrp_store *store, const char *path,
		      json_t *list, FILE *out, struct nrp_error *ret_damage, struct nrp_error *err)
{
	bool show = isatty(STDERR_FILENO) && !cli_given(args, OPT_QUIET);
	const char *reader = cli_value(args, OPT_READER);
	struct nrp_text_stats text;
	struct nrp_import_options o = {
		.path = path,
		.name = cli_value(args, OPT_NAME),
		.facts = cli_value(args, OPT_FACTS),
		.ret_text = &text,
		.force = cli_given(args, OPT_FORCE),
		.strict = cli_given(args, OPT_STRICT),
		.libtracecmd = reader && !strcmp(reader, "libtracecmd"),
		.progress = show ? progress : NULL,
		.context = (void *)(uintptr_t)path,
	};
	struct nrp_capture capture;
	struct nrp_join_stats stats;
	struct nrp_samples_stats samples;
	struct nrp_import_damage damage;
	const char *events[CLI_MAX_VALUES + 1] = { NULL }, *topology[CLI_MAX_VALUES + 1] = { NULL };
	int r = samples_options(args, &o.samples, events, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < args->option[OPT_TOPOLOGY].count; i++)
		topology[i] = args->option[OPT_TOPOLOGY].value[i];
	o.topology = topology;
	if (cli_given(args, OPT_VMSTAT)) {
		o.vmstat[0] = args->option[OPT_VMSTAT].value[0];
		o.vmstat[1] = args->option[OPT_VMSTAT].value[1];
	}
	r = nrp_import_trace(store, &o, &capture, &stats, &samples, &damage, err);
	if (show)
		fprintf(stderr, "\r\033[K");
	if (r < 0)
		return r;
	if (list) {
		json_array_append_new(list,
				      capture_json(&capture, text_json(&text), &samples, &damage));
	} else if (!cli_given(args, OPT_QUIET)) {
		print_capture(out, &capture, &stats);
		print_damage(out, &damage);
		print_text(out, &text);
		print_samples(out, &samples);
	}
	*ret_damage = damage.first;
	nrp_import_damage_clear(&damage);
	nrp_capture_clear(&capture);
	return 0;
}

/* One line for each file that was salvaged; what import answers for them. */
static enum nrp_status tell_damage(const struct cli_args *args, struct nrp_error *damage)
{
	enum nrp_status s = NRP_DONE;

	for (size_t i = 0; i < args->files; i++) {
		if (damage[i].status == NRP_DONE)
			continue;
		snprintf(damage[i].remedy, sizeof(damage[i].remedy),
			 "the rest was imported, with its losses; --strict refuses such a file");
		cli_error(&damage[i]);
		s = cli_given(args, OPT_ACCEPT) ? NRP_DONE : NRP_INPUT;
	}
	return s;
}

/* All files or none; what was read is told when it is in the database. */
static int import_all(const struct cli_args *args, struct nrp_store *store, json_t *list, FILE *out,
		      struct nrp_error *ret_damage, struct nrp_error *err)
{
	int r = nrp_store_begin(store, err);

	for (size_t i = 0; r == 0 && i < args->files; i++)
		r = import_one(args, store, args->file[i], list, out, &ret_damage[i], err);
	if (r == 0)
		return nrp_store_commit(store, err);
	nrp_store_rollback(store);
	return r;
}

/* Prints the text, or the list as JSON; both are dropped. */
static enum nrp_status print_result(json_t *list, char *text)
{
	if (!list)
		return cli_print_text(text);
	free(text);
	return cli_print_json(
		json_pack("{s:s,s:o}", "schema", "numareplay.import/1", "captures", list));
}

static enum nrp_status check_usage(const struct cli_args *args)
{
	const char *reader = cli_value(args, OPT_READER);

	if (!cli_given(args, OPT_OUTPUT)) {
		cli_error_text("name the database: numareplay import FILE.. -o DB");
		return NRP_USAGE;
	}
	for (int i = OPT_NAME; args->files > 1 && i < OPT_FORCE; i++) {
		if (cli_given(args, (size_t)i)) {
			cli_error_text("--%s goes with one file: import one at a time",
				       options[i].name);
			return NRP_USAGE;
		}
	}
	if (cli_given(args, OPT_STRICT) && cli_given(args, OPT_ACCEPT)) {
		cli_error_text("--strict refuses what --accept-damage accepts: give one of them");
		return NRP_USAGE;
	}
	if (reader && strcmp(reader, "own") && strcmp(reader, "libtracecmd")) {
		cli_error_text("--reader %s: there are own and libtracecmd", reader);
		return NRP_USAGE;
	}
	return NRP_DONE;
}

static enum nrp_status run(const struct cli_args *args)
{
	struct nrp_error err = NRP_ERROR_INIT;
	json_t *list = cli_given(args, OPT_JSON) ? json_array() : NULL;
	struct nrp_store *store;
	struct nrp_error *damage;
	enum nrp_status s;
	char *text = NULL;
	size_t size;
	FILE *out;
	int r;

	s = check_usage(args);
	if (s != NRP_DONE)
		return s;
	damage = calloc(args->files, sizeof(*damage));
	if (!damage ||
	    nrp_store_open(&store, cli_value(args, OPT_OUTPUT), NRP_STORE_CREATE, &err) < 0) {
		free(damage);
		return cli_error(&err);
	}
	out = open_memstream(&text, &size);
	r = out ? import_all(args, store, list, out, damage, &err) : nrp_fail_nomem(&err);
	nrp_store_close(store);
	if (out && fclose(out) != 0 && r == 0)
		r = nrp_fail_nomem(&err);
	if (r < 0) {
		s = cli_error(&err);
		json_decref(list);
	} else {
		s = print_result(list, text);
		text = NULL;
		if (s == NRP_DONE)
			s = tell_damage(args, damage);
	}
	free(text);
	free(damage);
	return s;
}

const struct cli_command cli_import = {
	.name = "import",
	.synopsis = "FILE.. -o DB",
	.summary = "read traces (trace.dat v6, v7, or text) into a database",
	.details =
		"Text is what trace-cmd report, tracefs' trace and trace_pipe, or perf script "
		"print;\n"
		"it may be compressed by gzip, and - is standard input.\n"
		"Side files X.facts, X.vmstat0, X.vmstat1 and X.samples beside X.dat are read "
		"too.\n"
		"All files of one command are imported, or none. A damaged file is salvaged: what "
		"can be\nread is imported with a record of each loss, and the exit status is 3.",
	.min_files = 1,
	.max_files = CLI_MAX_VALUES,
	.options = options,
	.run = run,
};
