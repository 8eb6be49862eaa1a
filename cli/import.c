/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/import.h"
#include "cli/common.h"
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPT_OUTPUT, OPT_NAME, OPT_FACTS, OPT_VMSTAT, OPT_FORCE, OPT_JSON, OPT_QUIET };

static const struct cli_option options[] = {
	[OPT_OUTPUT] = { "output", 'o', "DB", "database to write; made if it does not exist" },
	[OPT_NAME] = { "name", 0, "NAME", "capture name (default: file name without ending)" },
	[OPT_FACTS] = { "facts", 0, "FILE", "host facts (default: X.facts beside X.dat)" },
	[OPT_VMSTAT] = { "vmstat", 0, "BEFORE AFTER",
			 "/proc/vmstat around the capture (default: X.vmstat0, X.vmstat1)" },
	[OPT_FORCE] = { "force", 0, NULL, "replace a capture that is in the database already" },
	[OPT_JSON] = { "json", 0, NULL, "print what was read as JSON" },
	[OPT_QUIET] = { "quiet", 'q', NULL, "print nothing" },
	{ NULL, 0, NULL, NULL },
};

static void progress(void *context, uint64_t events)
{
	fprintf(stderr, "\r%s: %.1f M events", (const char *)context, (double)events / 1e6);
}

static json_t *capture_json(const struct nrp_capture *c)
{
	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "capture", c->name, "events",
			 (json_int_t)c->events, "other_events", (json_int_t)c->other_events,
			 "unjoined_events", (json_int_t)c->unjoined_events, "lost_events",
			 (json_int_t)c->lost_events, "loss_gaps", (json_int_t)c->loss_gaps,
			 "duration_ns", (json_int_t)(c->last_time - c->first_time));
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

static int import_one(const struct cli_args *args, struct nrp_store *store, const char *path,
		      json_t *list, FILE *out, struct nrp_error *err)
{
	bool show = isatty(STDERR_FILENO) && !cli_given(args, OPT_QUIET);
	struct nrp_import_options o = {
		.path = path,
		.name = cli_value(args, OPT_NAME),
		.facts = cli_value(args, OPT_FACTS),
		.force = cli_given(args, OPT_FORCE),
		.progress = show ? progress : NULL,
		.context = (void *)(uintptr_t)path,
	};
	struct nrp_capture capture;
	struct nrp_join_stats stats;
	int r;

	if (cli_given(args, OPT_VMSTAT)) {
		o.vmstat[0] = args->option[OPT_VMSTAT].value[0];
		o.vmstat[1] = args->option[OPT_VMSTAT].value[1];
	}
	r = nrp_import_trace(store, &o, &capture, &stats, err);
	if (show)
		fprintf(stderr, "\r\033[K");
	if (r < 0)
		return r;
	if (list)
		json_array_append_new(list, capture_json(&capture));
	else if (!cli_given(args, OPT_QUIET))
		print_capture(out, &capture, &stats);
	nrp_capture_clear(&capture);
	return 0;
}

static enum nrp_status run(const struct cli_args *args)
{
	struct nrp_error err = NRP_ERROR_INIT;
	json_t *list = cli_given(args, OPT_JSON) ? json_array() : NULL;
	struct nrp_store *store;
	char *text = NULL;
	size_t size;
	FILE *out;
	int r;

	if (!cli_given(args, OPT_OUTPUT)) {
		cli_error_text("name the database: numareplay import FILE.. -o DB");
		return NRP_USAGE;
	}
	if (args->files > 1 && (cli_given(args, OPT_NAME) || cli_given(args, OPT_FACTS) ||
				cli_given(args, OPT_VMSTAT))) {
		cli_error_text(
			"--name, --facts and --vmstat go with one file: import one at a time");
		return NRP_USAGE;
	}
	if (nrp_store_open(&store, cli_value(args, OPT_OUTPUT), NRP_STORE_CREATE, &err) < 0)
		return cli_error(&err);
	/* All files or none; what was read is told when it is in the database. */
	out = open_memstream(&text, &size);
	r = out ? nrp_store_begin(store, &err) : nrp_fail_nomem(&err);
	for (size_t i = 0; r == 0 && i < args->files; i++)
		r = import_one(args, store, args->file[i], list, out, &err);
	if (r == 0)
		r = nrp_store_commit(store, &err);
	else
		nrp_store_rollback(store);
	nrp_store_close(store);
	if (out && fclose(out) != 0 && r == 0)
		r = nrp_fail_nomem(&err);
	if (r < 0) {
		free(text);
		json_decref(list);
		return cli_error(&err);
	}
	if (!list)
		return cli_print_text(text);
	free(text);
	return cli_print_json(
		json_pack("{s:s,s:o}", "schema", "numareplay.import/1", "captures", list));
}

const struct cli_command cli_import = {
	.name = "import",
	.synopsis = "FILE.. -o DB",
	.summary = "read trace-cmd files (trace.dat v6, v7) into a database",
	.details =
		"Side files X.facts, X.vmstat0 and X.vmstat1 beside X.dat are read too. All files\n"
		"of one command are imported, or none.",
	.min_files = 1,
	.max_files = CLI_MAX_VALUES,
	.options = options,
	.run = run,
};
