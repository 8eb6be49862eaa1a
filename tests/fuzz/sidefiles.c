/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files beside a capture: a digit that says which, a newline, then the file. */
#include "tests/fuzz/fuzz.h"

#include "capture/facts.h"
#include "capture/samples.h"

enum side_file { FACTS, VMSTAT, TOPOLOGY, PERF_SCRIPT, PERF_STAT, NR_SIDE_FILES };

static void read_vmstat(struct nrp_store *store, int64_t capture_id, const uint8_t *data,
			size_t size)
{
	size_t half = size / 2;

	if (nrp_vmstat_read(sample_file(data, half), 0, store, capture_id, NULL) == 0)
		nrp_vmstat_read(sample_file(data + half, size - half), 1, store, capture_id, NULL);
}

static void read_samples(struct nrp_store *store, const struct nrp_capture *capture,
			 const char *path, bool counts)
{
	const struct nrp_samples_options options = { .path = path, .has_start = counts };
	struct nrp_samples_stats stats;

	nrp_samples_read(&options, store, capture, &stats, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nrp_capture capture = { .name = "sides", .source = "text", .last_time = UINT64_MAX };
	bool recorded[NRP_NR_EVENTS] = { false };
	struct nrp_store *store;
	enum side_file which;
	const char *path;

	if (size < 2)
		return 0;
	which = (enum side_file)((uint8_t)(data[0] - '0') % NR_SIDE_FILES);
	path = sample_file(data + 2, size - 2);
	store = fuzz_store_begin();
	nrp_host_facts_init(&capture.facts);
	capture.facts.page_size = 4096;
	must(nrp_store_add_capture(store, &capture, NULL) == 0);
	if (which == FACTS)
		nrp_facts_read(path, &capture.facts, recorded, store, capture.id, NULL);
	else if (which == VMSTAT)
		read_vmstat(store, capture.id, data + 2, size - 2);
	else if (which == TOPOLOGY)
		nrp_topology_read(path, &capture.facts, NULL);
	else
		read_samples(store, &capture, path, which == PERF_STAT);
	nrp_store_rollback(store);
	nrp_capture_clear(&capture);
	return 0;
}
