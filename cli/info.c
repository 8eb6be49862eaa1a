/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/compare.h"
#include "cli/common.h"
#include "cli/info.h"
#include "cli/losses.h"
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPT_CAPTURE, OPT_JSON };

static const struct cli_option options[] = {
	[OPT_CAPTURE] = { "capture", 0, "NAME|ID", "which capture, where there are several" },
	[OPT_JSON] = { "json", 0, NULL, "print the document numareplay.info/1" },
	{ NULL, 0, NULL, NULL },
};

/* Best evidence that a capture holds. */
static int tier_of(const struct nrp_capture *c, const uint64_t *rows)
{
	if (c->facts.has_fault_probe)
		return 3;
	if (rows[NRP_PAGE_FAULT])
		return 2;
	return c->events ? 1 : 0;
}

static int count_rows(uint64_t rows[NRP_NR_KINDS], struct nrp_store *store,
		      const struct nrp_capture *c, struct nrp_error *err)
{
	int r = 0;

	for (int k = 0; r == 0 && k < NRP_NR_KINDS; k++)
		r = nrp_store_count(store, c->id, (enum nrp_record_kind)k, &rows[k], err);
	return r;
}

/* Hinting faults by the node of the page and of the CPU. */
static int count_nodes(struct nrp_node_count **ret, size_t *ret_count, struct nrp_store *store,
		       const struct nrp_capture *c, struct nrp_error *err)
{
	return nrp_store_count_by_nodes(store, c->id, NRP_HINT_FAULT, NRP_COL(hint_fault, src_nid),
					NRP_COL(hint_fault, this_nid), ret, ret_count, err);
}

static json_t *optional(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *topology(const struct nrp_host_facts *f)
{
	json_t *nodes = json_array();

	for (int nid = 0; nid < f->nr_nodes; nid++) {
		json_t *cpus = json_array();

		for (int cpu = 0; cpu < f->nr_cpus; cpu++)
			if (f->cpu_nid[cpu] == nid)
				json_array_append_new(cpus, json_integer(cpu));
		json_array_append_new(nodes, json_pack("{s:i,s:o,s:o}", "nid", nid, "mem_kb",
						       optional(f->node_memkb[nid]), "cpus", cpus));
	}
	return nodes;
}

static json_t *node_json(int16_t nid)
{
	return nid == NRP_NO_NODE ? json_null() : json_integer(nid);
}

static int nodes_json(json_t **ret, struct nrp_store *store, const struct nrp_capture *c,
		      struct nrp_error *err)
{
	struct nrp_node_count *counts;
	size_t n;
	int r = count_nodes(&counts, &n, store, c, err);

	if (r < 0)
		return r;
	*ret = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(*ret, json_pack("{s:o,s:o,s:I}", "src_nid",
						      node_json(counts[i].first), "this_nid",
						      node_json(counts[i].second), "rows",
						      (json_int_t)counts[i].rows));
	free(counts);
	return *ret ? 0 : nrp_fail_nomem(err);
}

int nrp_cli_capture_json(json_t **ret, struct nrp_store *store, const struct nrp_capture *c,
			 struct nrp_error *err)
{
	const struct nrp_host_facts *f = &c->facts;
	uint64_t rows[NRP_NR_KINDS];
	json_t *records, *losses, *by_node;
	char release[256];
	int r = count_rows(rows, store, c, err);

	if (r == 0)
		r = cli_losses_json(&losses, store, c, err);
	if (r < 0)
		return r;
	r = nodes_json(&by_node, store, c, err);
	if (r < 0)
		json_decref(losses);
	if (r < 0)
		return r;
	records = json_object();
	for (int k = 0; k < NRP_NR_KINDS; k++)
		if (rows[k])
			json_object_set_new(records, nrp_kind((enum nrp_record_kind)k)->name,
					    json_integer((json_int_t)rows[k]));
	*ret = json_pack(
		"{s:I,s:s,s:s,s:o,s:s,s:i,s:{s:I,s:I},s:{s:I,s:I,s:I,s:I,s:I,s:o},s:o,"
		"s:o,s:o,s:{s:o,s:o,s:o,s:o,s:o,s:o,s:o},s:o,s:b,s:{s:b,s:b,s:b,s:b,s:b,s:o}}",
		"id", (json_int_t)c->id, "capture", c->name, "source", c->source, "kernel",
		nrp_kernel_release(f->kernel, release, sizeof(release)) ? json_string(release)
									: json_null(),
		"clock", f->clock, "tier", tier_of(c, rows), "time_ns", "first",
		(json_int_t)c->first_time, "last", (json_int_t)c->last_time, "events", "read",
		(json_int_t)c->events, "unjoined", (json_int_t)c->unjoined_events, "other",
		(json_int_t)c->other_events, "lost", (json_int_t)c->lost_events, "gaps",
		(json_int_t)c->loss_gaps, "probe_misses", optional(c->probe_misses), "losses",
		losses, "records", records, "hint_faults_by_node", by_node, "facts", "hz",
		optional(f->hz), "page_size", optional(f->page_size), "huge_pages",
		optional(f->huge_pages), "cpupid_shift", optional(f->cpupid_shift), "cpupid_bits",
		optional(f->cpupid_bits), "nid_shift", optional(f->nid_shift), "numa_balancing",
		optional(f->balancing), "nodes", topology(f), "topology_inferred",
		f->topology_inferred, "fingerprint", "ratelimit_event", f->has_ratelimit_event,
		"prepare_step", f->has_prepare_step, "thp_function", f->has_thp_function,
		"task_fault_probe", f->has_task_fault, "fault_probe", f->has_fault_probe,
		"moved_result", optional(f->moved_result));
	return *ret ? 0 : nrp_fail_nomem(err);
}

static void print_optional(const char *name, int64_t value, const char *unit)
{
	if (value < 0)
		printf("  %-18s unknown\n", name);
	else
		printf("  %-18s %lld%s%s\n", name, (long long)value, *unit ? " " : "", unit);
}

static void print_node(int16_t nid)
{
	if (nid == NRP_NO_NODE)
		printf("%8s", "unknown");
	else
		printf("%8d", nid);
}

static int print_nodes(struct nrp_store *store, const struct nrp_capture *c, struct nrp_error *err)
{
	struct nrp_node_count *counts;
	size_t n;
	int r = count_nodes(&counts, &n, store, c, err);

	if (r < 0)
		return r;
	if (n)
		printf("hinting faults by node\n  %8s%8s%12s\n", "page on", "task on", "faults");
	for (size_t i = 0; i < n; i++) {
		printf("  ");
		print_node(counts[i].first);
		print_node(counts[i].second);
		printf("%12llu\n", (unsigned long long)counts[i].rows);
	}
	free(counts);
	return 0;
}

int nrp_cli_print_capture(struct nrp_store *store, const struct nrp_capture *c,
			  struct nrp_error *err)
{
	static const char *const tiers[] = { "0, counters", "1, tracepoints",
					     "2, page-fault tracepoints", "3, probes" };
	const struct nrp_host_facts *f = &c->facts;
	uint64_t rows[NRP_NR_KINDS];
	int r = count_rows(rows, store, c, err);

	if (r < 0)
		return r;
	printf("capture %s (id %lld, %s)\n", c->name, (long long)c->id, c->source);
	printf("  %-18s %s\n", "kernel", f->kernel[0] ? f->kernel : "unknown");
	printf("  %-18s %.3f s, clock %s\n", "time", (double)(c->last_time - c->first_time) * 1e-9,
	       f->clock[0] ? f->clock : "unknown");
	printf("  %-18s %s\n", "evidence tier", tiers[tier_of(c, rows)]);
	printf("  %-18s %llu read, %llu unjoined, %llu without a record\n", "events",
	       (unsigned long long)c->events, (unsigned long long)c->unjoined_events,
	       (unsigned long long)c->other_events);
	if (c->lost_events || c->loss_gaps)
		printf("  %-18s %llu events and %lld gaps of unknown size\n", "LOST",
		       (unsigned long long)c->lost_events, (long long)c->loss_gaps);
	else
		printf("  %-18s none\n", "lost");
	r = cli_print_losses(store, c, err);
	if (r < 0)
		return r;
	print_optional("ticks", f->hz, "per second");
	print_optional("page size", f->page_size, "bytes");
	print_optional("last_cpupid", f->cpupid_bits, "bits");
	print_optional("numa_balancing", f->balancing, "");
	printf("  %-18s %d nodes, %d CPUs%s\n", "topology", f->nr_nodes, f->nr_cpus,
	       f->topology_inferred ? " (inferred from the events)" : "");
	printf("  %-18s%s%s%s%s\n", "kernel has", f->has_ratelimit_event ? " ratelimit-event" : "",
	       f->has_prepare_step ? " prepare-step" : "",
	       f->has_thp_function ? " thp-function" : "",
	       f->has_ratelimit_event || f->has_prepare_step || f->has_thp_function
		       ? ""
		       : " none of the functions that tell generations apart");
	printf("records\n");
	for (int k = 0; k < NRP_NR_KINDS; k++)
		if (rows[k])
			printf("  %-18s %10llu  %s\n", nrp_kind((enum nrp_record_kind)k)->name,
			       (unsigned long long)rows[k], nrp_kind((enum nrp_record_kind)k)->doc);
	return print_nodes(store, c, err);
}

static enum nrp_status run(const struct cli_args *args)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_capture capture;
	struct nrp_store *store;
	json_t *doc;
	enum nrp_status s = cli_open(&store, &capture, args->file[0], cli_value(args, OPT_CAPTURE),
				     NRP_STORE_READ);

	if (s != NRP_DONE)
		return s;
	if (!cli_given(args, OPT_JSON))
		s = nrp_cli_print_capture(store, &capture, &err) < 0 ? cli_error(&err) : NRP_DONE;
	else if (nrp_cli_capture_json(&doc, store, &capture, &err) < 0)
		s = cli_error(&err);
	else
		s = cli_print_json(
			json_pack("{s:s,s:o}", "schema", "numareplay.info/1", "info", doc));
	nrp_capture_clear(&capture);
	nrp_store_close(store);
	return s;
}

const struct cli_command cli_info = {
	.name = "info",
	.synopsis = "DB",
	.summary = "what is in a database: host, kernel, time, records, losses",
	.min_files = 1,
	.max_files = 1,
	.options = options,
	.run = run,
};
