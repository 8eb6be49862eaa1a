/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/compare.h"
#include "cli/ablation.h"
#include "cli/common.h"
#include "cli/info.h"
#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_FORMAT, OPT_REPLAY, OPT_CAPTURE, OPT_OUTPUT, OPT_JSON };

static const struct cli_option options[] = {
	[OPT_FORMAT] = { "format", 0, "FORMAT", "text (default) or json" },
	[OPT_REPLAY] = { "replay", 0, "ID|all", "which replay (default: the newest)" },
	[OPT_CAPTURE] = { "capture", 0, "NAME|ID", "which capture, where there are several" },
	[OPT_OUTPUT] = { "output", 'o', "FILE", "write there instead of standard output" },
	[OPT_JSON] = { "json", 0, NULL, "same as --format json" },
	{ NULL, 0, NULL, NULL },
};

struct request {
	struct nrp_store *store;
	struct nrp_capture capture;
	const char *path;
	bool json;
	struct nrp_error err;
};

/* Prints a comparison's document, with the capture's ablation if one is stored. */
static enum nrp_status print_with_ablation(struct request *q, json_t *doc)
{
	json_t *ablation = NULL;
	bool found;
	enum nrp_status s = nrp_cli_stored_ablation(q->store, &q->capture, &ablation, &found);

	if (s != NRP_DONE) {
		json_decref(doc);
		return s;
	}
	if (found)
		json_object_set_new(doc, "ablation", ablation);
	return cli_print_json(doc);
}

/* With @list the JSON document goes there instead of to the output. */
static enum nrp_status print_one(struct request *q, int64_t id, json_t *list)
{
	struct nrp_comparison c;
	enum nrp_status s = NRP_DONE;
	int r = nrp_comparison_load(&c, q->store, q->capture.id, id, &q->err);

	if (r == -ENOENT) {
		cli_error_text("%s: no replay %lld of capture %s: report --replay all lists them",
			       q->path, (long long)id, q->capture.name);
		return NRP_USAGE;
	}
	if (r < 0)
		return cli_error(&q->err);
	if (list)
		json_array_append_new(list, nrp_comparison_json(&c));
	else
		s = q->json ? print_with_ablation(q, nrp_comparison_json(&c))
			    : cli_print_text(nrp_comparison_text(&c, cli_width()));
	nrp_comparison_clear(&c);
	return s;
}

/* The capture's ablation, below the newest comparison or in its place; *ret_found: there is one. */
static enum nrp_status print_ablation(struct request *q, bool alone, bool *ret_found)
{
	json_t *doc = NULL;
	enum nrp_status s;

	if (!q->json)
		return nrp_cli_stored_ablation(q->store, &q->capture, NULL, ret_found);
	*ret_found = false;
	if (!alone)
		return NRP_DONE; /* it is in the document */
	s = nrp_cli_stored_ablation(q->store, &q->capture, &doc, ret_found);
	return s == NRP_DONE && *ret_found ? cli_print_json(doc) : s;
}

/* Ids of the capture's replays, oldest first; *ret is malloc'd. */
static int list_replays(struct request *q, int64_t **ret, size_t *ret_count)
{
	sqlite3_stmt *s = nrp_store_prepare(
		q->store, "SELECT id FROM replay WHERE capture_id = ? ORDER BY id", &q->err);
	int64_t *ids = NULL;
	size_t n = 0;
	int r;

	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, q->capture.id);
	while ((r = sqlite3_step(s)) == SQLITE_ROW) {
		int64_t *grown = reallocarray(ids, n + 1, sizeof(*ids));

		if (!grown) {
			r = SQLITE_NOMEM;
			break;
		}
		ids = grown;
		ids[n++] = sqlite3_column_int64(s, 0);
	}
	r = r == SQLITE_DONE ? 0 : nrp_store_fail(q->store, &q->err, "list replays");
	sqlite3_finalize(s);
	if (r < 0) {
		free(ids);
		return r;
	}
	*ret = ids;
	*ret_count = n;
	return 0;
}

/* Host, counts, losses, and what verify says: coverage and fidelity. */
static enum nrp_status print_verified(struct request *q, const struct nrp_verify *verify)
{
	enum nrp_status s;
	json_t *doc;

	if (q->json) {
		if (nrp_cli_capture_json(&doc, q->store, &q->capture, &q->err) < 0)
			return cli_error(&q->err);
		return cli_print_json(json_pack("{s:s,s:o,s:o,s:[]}", "schema",
						"numareplay.summary/1", "info", doc, "verify",
						nrp_verify_json(verify, &q->capture), "replays"));
	}
	if (nrp_cli_print_capture(q->store, &q->capture, &q->err) < 0)
		return cli_error(&q->err);
	putchar('\n');
	s = cli_print_text(nrp_verify_text(verify, &q->capture, cli_width()));
	printf("\nnothing replayed yet: numareplay replay %s --new migrate.ratelimit=spin\n",
	       q->path);
	return s;
}

static enum nrp_status print_summary(struct request *q)
{
	struct nrp_verify verify;
	enum nrp_status s;

	if (nrp_verify_run(&verify, q->store, &q->capture, &q->err) < 0)
		s = cli_error(&q->err);
	else
		s = print_verified(q, &verify);
	nrp_verify_clear(&verify);
	return s;
}

static enum nrp_status print_replays(struct request *q, const char *which)
{
	int64_t *ids = NULL;
	size_t n = 0;
	bool found;
	enum nrp_status s = NRP_DONE;

	if (list_replays(q, &ids, &n) < 0)
		return cli_error(&q->err);
	if (!n) {
		s = print_ablation(q, true, &found);
		if (s == NRP_DONE && !found)
			s = print_summary(q);
	} else if (!which) {
		s = print_one(q, 0, NULL);
		if (s == NRP_DONE)
			s = print_ablation(q, false, &found);
	} else if (!strcmp(which, "all")) {
		json_t *list = q->json ? json_array() : NULL;

		for (size_t i = 0; i < n && s == NRP_DONE; i++) {
			if (!q->json)
				printf("%s[%lld] ", i ? "\n" : "", (long long)ids[i]);
			s = print_one(q, ids[i], list);
		}
		if (s == NRP_DONE && list)
			s = cli_print_json(list);
		else
			json_decref(list);
	} else {
		char *end;
		long long id = strtoll(which, &end, 10);

		if (*end || id <= 0) {
			cli_error_text("--replay takes a number or all, not '%s'", which);
			s = NRP_USAGE;
		} else {
			s = print_one(q, id, NULL);
		}
	}
	free(ids);
	return s;
}

static enum nrp_status run(const struct cli_args *args)
{
	const char *format = cli_value(args, OPT_FORMAT), *output = cli_value(args, OPT_OUTPUT);
	struct request q = { .path = args->file[0], .err = NRP_ERROR_INIT };
	enum nrp_status s;

	q.json = cli_given(args, OPT_JSON) || (format && !strcmp(format, "json"));
	if (format && !q.json && strcmp(format, "text") != 0) {
		cli_error_text("no format '%s': text or json", format);
		return NRP_USAGE;
	}
	s = cli_open(&q.store, &q.capture, q.path, cli_value(args, OPT_CAPTURE), NRP_STORE_READ);
	if (s != NRP_DONE)
		return s;
	if (output && cli_same_file(output, q.path)) {
		cli_error_text("%s: is the database itself: name another file", output);
		s = NRP_USAGE;
	} else if (output && !freopen(output, "w", stdout)) {
		cli_fail_output(&q.err, output, errno);
		s = cli_error(&q.err);
	} else {
		s = print_replays(&q, cli_value(args, OPT_REPLAY));
	}
	nrp_capture_clear(&q.capture);
	nrp_store_close(q.store);
	return s;
}

const struct cli_command cli_report = {
	.name = "report",
	.synopsis = "DB",
	.summary = "print a stored comparison, or the capture where nothing was replayed",
	.min_files = 1,
	.max_files = 1,
	.options = options,
	.run = run,
};
