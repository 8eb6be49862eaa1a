/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/counters.h"
#include "cli/common.h"
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_PAGE_SIZE, OPT_HUGE_PAGES, OPT_QUOTA, OPT_INTERVAL, OPT_HZ, OPT_NODES, OPT_JSON };

static const struct cli_option options[] = {
	[OPT_PAGE_SIZE] = { "page-size", 0, "BYTES", "size of a base page (default: 4096)" },
	[OPT_HUGE_PAGES] = { "huge-pages", 0, "N",
			     "base pages of a huge page (default: page size / 8)" },
	[OPT_QUOTA] = { "quota", 0, "PAGES", "the limiter's quota (default: 128 MiB)" },
	[OPT_INTERVAL] = { "interval", 0, "MS", "the limiter's window (default: 100)" },
	[OPT_HZ] = { "hz", 0, "N", "ticks per second, to tell the window in ticks" },
	[OPT_NODES] = { "nodes", 0, "N", "number of nodes, to compare with equal parts" },
	[OPT_JSON] = { "json", 0, NULL, "print the document numareplay.counters/1" },
	{ NULL, 0, NULL, NULL },
};

/* A whole number from @min to @max; the option's 0 is kept if it is not given. */
static bool number(const struct cli_args *args, size_t option, int64_t min, int64_t max,
		   int64_t *ret)
{
	const char *text = cli_value(args, option);
	char *end;
	long long value;

	if (!text)
		return true;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || value < min || value > max) {
		cli_error_text("--%s takes a number from %" PRId64 " to %" PRId64 ", not '%s'",
			       options[option].name, min, max, text);
		return false;
	}
	*ret = value;
	return true;
}

static bool read_options(const struct cli_args *args, struct nrp_counters_options *o)
{
	memset(o, 0, sizeof(*o));
	if (!number(args, OPT_PAGE_SIZE, 1024, 1 << 24, &o->page_size) ||
	    !number(args, OPT_HUGE_PAGES, 1, 1 << 20, &o->huge_pages) ||
	    !number(args, OPT_QUOTA, 1, INT64_C(1) << 40, &o->quota) ||
	    !number(args, OPT_INTERVAL, 1, 1000000, &o->interval_ms) ||
	    !number(args, OPT_HZ, 10, 100000, &o->hz) ||
	    !number(args, OPT_NODES, 2, 1024, &o->nodes))
		return false;
	if (o->page_size & (o->page_size - 1)) {
		cli_error_text("--page-size takes a power of two, not %" PRId64, o->page_size);
		return false;
	}
	return true;
}

static int analyse(struct nrp_counters_report *ret, const struct cli_args *args,
		   const struct nrp_counters_options *o, struct nrp_error *err)
{
	struct nrp_counters_file file[NRP_COUNTERS_FILES];
	size_t files = 0;
	int r = 0;

	while (r == 0 && files < args->files) {
		r = nrp_counters_read(&file[files], args->file[files], err);
		if (r == 0)
			files++;
	}
	if (r == 0)
		r = nrp_counters_analyse(ret, file, files, o, err);
	while (files)
		nrp_counters_file_clear(&file[--files]);
	return r;
}

static enum nrp_status run(const struct cli_args *args)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_counters_options o;
	struct nrp_counters_report report;
	size_t standard = 0;
	enum nrp_status s;

	for (size_t i = 0; i < args->files; i++)
		standard += !strcmp(args->file[i], "-");
	if (standard > 1) {
		cli_error_text("standard input can be read once: name one '-'");
		return NRP_USAGE;
	}
	if (!read_options(args, &o))
		return NRP_USAGE;
	if (analyse(&report, args, &o, &err) < 0)
		return cli_error(&err);
	s = cli_given(args, OPT_JSON) ? cli_print_json(nrp_counters_json(&report))
				      : cli_print_text(nrp_counters_text(&report, cli_width()));
	if (s == NRP_DONE && report.violated)
		s = NRP_NO;
	nrp_counters_report_clear(&report);
	return s;
}

const struct cli_command cli_counters = {
	.name = "counters",
	.synopsis = "BEFORE AFTER [BEFORE AFTER ..]",
	.summary = "what tables of counters before and after can and cannot show",
	.details =
		"BEFORE and AFTER are /proc/vmstat around one run (two pairs: two runs), or perf "
		"stat of\n"
		"two runs, or one file with a table: name before after. One perf stat per pair of\n"
		"snapshots may be added. '-' is standard input. Exit status 1: the counters "
		"contradict\n"
		"each other, and nothing explains it.",
	.min_files = 1,
	.max_files = NRP_COUNTERS_FILES,
	.options = options,
	.run = run,
};
