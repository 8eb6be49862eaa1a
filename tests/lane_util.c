/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lane_util.h"

#include <stdlib.h>
#include <unistd.h>

#define FILE_NAME "lane.db"
#define NR_CPUS 8
#define NR_NODES 2

static void set_facts(struct nrp_host_facts *facts)
{
	facts->cpu_nid = calloc(NR_CPUS, sizeof(*facts->cpu_nid));
	facts->node_memkb = calloc(NR_NODES, sizeof(*facts->node_memkb));
	assert_non_null(facts->cpu_nid);
	assert_non_null(facts->node_memkb);
	facts->nr_cpus = NR_CPUS;
	facts->nr_nodes = NR_NODES;
	for (int cpu = 0; cpu < NR_CPUS; cpu++)
		facts->cpu_nid[cpu] = (int16_t)(cpu / (NR_CPUS / NR_NODES));
	for (int nid = 0; nid < NR_NODES; nid++)
		facts->node_memkb[nid] = 1 << 20;
	facts->page_size = 4096;
	facts->huge_pages = 512;
	facts->hz = 250;
	facts->cpupid_bits = 14;
	facts->balancing = 1;
	facts->moved_result = 1;
}

void lane_begin(struct lane_file *file, const char *const *probes)
{
	struct nrp_error err = NRP_ERROR_INIT;
	size_t n = 0;

	while (probes[n])
		n++;
	unlink(FILE_NAME);
	file->store = util_open(FILE_NAME, NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(file->store, &err), &err);
	util_capture(&file->capture, "lane", 1);
	set_facts(&file->capture.facts);
	assert_ok(nrp_store_add_capture(file->store, &file->capture, &err), &err);
	assert_ok(nrp_store_put_probes(file->store, file->capture.id, probes, n, &err), &err);
	assert_ok(nrp_writer_new(&file->writer, file->store, file->capture.id, &err), &err);
}

void lane_put(struct lane_file *file, enum nrp_record_kind kind, const void *row)
{
	struct nrp_error err = NRP_ERROR_INIT;

	assert_ok(nrp_writer_append(file->writer, kind, row, &err), &err);
}

void lane_ready(struct lane_file *file)
{
	struct nrp_error err = NRP_ERROR_INIT;

	assert_ok(nrp_writer_flush(file->writer, &err), &err);
	file->writer = nrp_writer_free(file->writer);
	assert_ok(nrp_store_update_capture(file->store, &file->capture, &err), &err);
	assert_ok(nrp_store_commit(file->store, &err), &err);
	nrp_capture_clear(&file->capture);
	assert_ok(nrp_store_load_capture(file->store, NULL, &file->capture, &err), &err);
}

void lane_end(struct lane_file *file)
{
	nrp_capture_clear(&file->capture);
	file->store = nrp_store_close(file->store);
}
