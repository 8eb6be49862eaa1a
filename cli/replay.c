/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/compare.h"
#include "cli/ablation.h"
#include "cli/common.h"
#include "cli/options.h"

#include <errno.h>
#include <string.h>

enum { OPT_OLD, OPT_NEW, OPT_SET, OPT_ABLATION, OPT_CADENCE, OPT_CAPTURE, OPT_JSON };

static const struct cli_option options[] = {
	[OPT_OLD] = { "old", 0, "P", "old policy (default: host)" },
	[OPT_NEW] = { "new", 0, "P", "new policy" },
	[OPT_SET] = { "set", 0, "K=V", "parameter: [old:|new:]FAMILY.PARAM=VALUE or PARAM=VALUE" },
	[OPT_ABLATION] = { "ablation", 0, NULL,
			   "instead of --new: scan.vma from P0 to P3, one rule after the other" },
	[OPT_CADENCE] = { "cadence", 0, "C",
			  "when scan passes come: observed (default), or modelled by scan.period" },
	[OPT_CAPTURE] = { "capture", 0, "NAME|ID", "which capture, where there are several" },
	[OPT_JSON] = { "json", 0, NULL,
		       "print the document numareplay.comparison/1, numareplay.ablation/1" },
	{ NULL, 0, NULL, NULL },
};

static int parse_cadence(const char *text, struct nrp_lane_spec lane[2], struct nrp_error *err)
{
	bool modelled = text && !strcmp(text, "modelled");

	if (text && !modelled && strcmp(text, "observed") != 0)
		return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "choose observed or modelled",
				"no cadence '%s'", text);
	lane[0].modelled_cadence = lane[1].modelled_cadence = modelled;
	return 0;
}

static int parse_lanes(const struct cli_args *args, struct nrp_lane_spec lane[2],
		       struct nrp_error *err)
{
	const char *old_text = cli_value(args, OPT_OLD);
	int r = nrp_lane_parse(&lane[0], old_text ? old_text : "host", err);

	if (r == 0)
		r = nrp_lane_parse(
			&lane[1], cli_given(args, OPT_ABLATION) ? "host" : cli_value(args, OPT_NEW),
			err);
	if (r == 0)
		r = parse_cadence(cli_value(args, OPT_CADENCE), lane, err);
	for (size_t i = 0; r == 0 && i < args->option[OPT_SET].count; i++)
		r = nrp_lane_set(&lane[0], &lane[1], args->option[OPT_SET].value[i], err);
	for (int i = 0; r == 0 && i < 2; i++)
		if (!lane[i].modelled_cadence && nrp_lane_sets_periods(&lane[i]))
			r = nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "add --cadence modelled",
				     "periods change nothing where passes come as observed");
	return r;
}

/* Lanes that balance are shown beside one that does not. */
static int add_off(struct nrp_comparison *c, struct nrp_store *store,
		   const struct nrp_capture *capture, const struct nrp_verify *verify,
		   const struct nrp_lane_spec lane[2], struct nrp_error *err)
{
	struct nrp_lane_spec spec[2];
	struct nrp_comparison off;
	struct nrp_replay replay;
	int r;

	if (lane[0].off || lane[1].off || !verify->hint_faults || capture->facts.hz <= 0)
		return 0;
	r = nrp_lane_parse(&spec[0], "host", err);
	if (r == 0)
		r = nrp_lane_parse(&spec[1], "off", err);
	if (r == 0)
		r = nrp_replay_run(&replay, store, capture, verify, &spec[0], &spec[1], err);
	if (r < 0)
		return r;
	r = nrp_comparison_build(&off, &replay, capture, verify, err);
	nrp_replay_clear(&replay);
	if (r < 0)
		return r;
	nrp_comparison_add_off(c, &off);
	nrp_comparison_clear(&off);
	return 0;
}

static int compare(struct nrp_comparison *ret, struct nrp_store *store,
		   const struct nrp_capture *capture, const struct nrp_lane_spec lane[2], bool save,
		   struct nrp_error *err)
{
	struct nrp_verify verify;
	struct nrp_replay replay;
	int r = nrp_verify_run(&verify, store, capture, err);

	if (r == 0)
		r = nrp_replay_run(&replay, store, capture, &verify, &lane[0], &lane[1], err);
	if (r < 0) {
		nrp_verify_clear(&verify);
		return r;
	}
	r = nrp_comparison_build(ret, &replay, capture, &verify, err);
	if (r == 0) {
		r = add_off(ret, store, capture, &verify, lane, err);
		if (r < 0)
			nrp_comparison_clear(ret);
	}
	if (r == 0 && save) {
		r = nrp_store_begin(store, err);
		if (r == 0)
			r = nrp_fidelity_save(&verify, store, capture->id, err);
		if (r == 0)
			r = nrp_comparison_save(ret, store, &replay, err);
		if (r == 0)
			r = nrp_store_commit(store, err);
		if (r < 0) {
			nrp_store_rollback(store);
			nrp_comparison_clear(ret);
		}
	}
	nrp_replay_clear(&replay);
	nrp_verify_clear(&verify);
	return r;
}

/* Opens for writing, or just for reading where file or folder cannot be written. */
static int open_store(struct nrp_store **ret, bool *ret_save, const char *path,
		      struct nrp_error *err)
{
	int r = nrp_store_open(ret, path, NRP_STORE_WRITE, err);

	if (r == 0) {
		r = nrp_store_begin(*ret, err);
		/* Any write shows whether the journal can be made beside the file. */
		if (r == 0)
			r = nrp_store_exec(*ret, "CREATE TABLE trial(x)", err);
		nrp_store_rollback(*ret);
		if (r < 0)
			nrp_store_close(*ret);
	}
	*ret_save = r == 0;
	if (r != -EROFS && r != -EACCES)
		return r;
	*err = (struct nrp_error)NRP_ERROR_INIT;
	return nrp_store_open(ret, path, NRP_STORE_READ, err);
}

static enum nrp_status run(const struct cli_args *args)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lane_spec lane[2];
	struct nrp_comparison comparison;
	struct nrp_capture capture;
	struct nrp_store *store;
	enum nrp_status s;
	bool save;

	if (cli_given(args, OPT_ABLATION) &&
	    (cli_given(args, OPT_OLD) || cli_given(args, OPT_NEW))) {
		cli_error_text("--ablation chooses its lanes itself: leave out --old and --new");
		return NRP_USAGE;
	}
	if (!cli_given(args, OPT_NEW) && !cli_given(args, OPT_ABLATION)) {
		cli_error_text("name the new policy: --new P (numareplay policies lists them)");
		return NRP_USAGE;
	}
	if (parse_lanes(args, lane, &err) < 0)
		return cli_error(&err);
	if (open_store(&store, &save, args->file[0], &err) < 0)
		return cli_error(&err);
	if (nrp_store_load_capture(store, cli_value(args, OPT_CAPTURE), &capture, &err) < 0) {
		nrp_store_close(store);
		return cli_error(&err);
	}
	if (cli_given(args, OPT_ABLATION)) {
		s = nrp_cli_ablation(store, &capture, &lane[1], save, cli_given(args, OPT_JSON));
		if (s == NRP_DONE && !save)
			cli_error_text("%s: is not writable: the ablation is not stored",
				       args->file[0]);
	} else if (compare(&comparison, store, &capture, lane, save, &err) < 0) {
		s = cli_error(&err);
	} else {
		s = cli_given(args, OPT_JSON)
			    ? cli_print_json(nrp_comparison_json(&comparison))
			    : cli_print_text(nrp_comparison_text(&comparison, cli_width()));
		nrp_comparison_clear(&comparison);
		if (!save)
			cli_error_text("%s: is not writable: the comparison is not stored",
				       args->file[0]);
	}
	nrp_capture_clear(&capture);
	nrp_store_close(store);
	return s;
}

const struct cli_command cli_replay = {
	.name = "replay",
	.synopsis = "DB [--old P] --new P | --ablation [--set K=V ..] [--cadence C]",
	.summary = "replay an old and a new policy and say what differs",
	.details =
		"P is host, off, a kernel profile (linux-6.12) or [PROFILE,]FAMILY=VARIANT[,..].\n"
		"Families not named are the host's own, as verify finds them. The result is "
		"stored;\n"
		"the same comparison again replaces it.\n"
		"--ablation adds the rules of scan.vma one after the other, from P0 to P3, and "
		"says what\n"
		"each changes; settings are those of all steps.",
	.min_files = 1,
	.max_files = 1,
	.options = options,
	.run = run,
};
