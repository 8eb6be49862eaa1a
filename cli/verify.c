/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/compare.h"
#include "cli/common.h"
#include "cli/options.h"

enum { OPT_CAPTURE, OPT_JSON };

static const struct cli_option options[] = {
	[OPT_CAPTURE] = { "capture", 0, "NAME|ID", "which capture, where there are several" },
	[OPT_JSON] = { "json", 0, NULL, "print the document numareplay.verify/1" },
	{ NULL, 0, NULL, NULL },
};

/* Keeps what was found, where the file can be written; verify itself only reads. */
static void save(const char *path, int64_t capture_id, const struct nrp_verify *verify)
{
	struct nrp_store *store;

	if (nrp_store_open(&store, path, NRP_STORE_WRITE, NULL) < 0)
		return;
	if (nrp_store_begin(store, NULL) == 0) {
		if (nrp_fidelity_save(verify, store, capture_id, NULL) == 0)
			nrp_store_commit(store, NULL);
		else
			nrp_store_rollback(store);
	}
	nrp_store_close(store);
}

static enum nrp_status run(const struct cli_args *args)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_verify verify;
	struct nrp_store *store;
	enum nrp_status s = cli_open(&store, &capture, args->file[0], cli_value(args, OPT_CAPTURE),
				     NRP_STORE_READ);

	if (s != NRP_DONE)
		return s;
	if (nrp_verify_run(&verify, store, &capture, &err) < 0) {
		s = cli_error(&err);
	} else {
		s = cli_given(args, OPT_JSON)
			    ? cli_print_json(nrp_verify_json(&verify, &capture))
			    : cli_print_text(nrp_verify_text(&verify, &capture, cli_width()));
		if (s == NRP_DONE && verify.verdict == NRP_DISAGREES)
			s = NRP_NO;
	}
	nrp_store_close(store);
	if (s == NRP_DONE || s == NRP_NO)
		save(args->file[0], capture.id, &verify);
	nrp_verify_clear(&verify);
	nrp_capture_clear(&capture);
	return s;
}

const struct cli_command cli_verify = {
	.name = "verify",
	.synopsis = "DB",
	.summary = "replay the host's own policy and reconcile with /proc/vmstat",
	.details = "Each policy variant is run against every decision that the kernel recorded; "
		   "the one\n"
		   "that reproduces them is the host's. Exit status 1: something does not agree.",
	.min_files = 1,
	.max_files = 1,
	.options = options,
	.run = run,
};
