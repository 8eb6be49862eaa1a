/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walker of ring-buffer pages, and the merge: a byte of flags, then the pages of CPU 0 and of
 * CPU 3, half of the input each.
 */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nrp_part_buffer *buffer;
	struct nrp_trace_parts *parts;
	struct nrp_part_cpu *cpu;
	struct nrp_blob file;
	size_t half;

	if (!size)
		return 0;
	parts = fuzz_parts(data[0]);
	buffer = nrp_parts_add_buffer(parts, "", "global", FUZZ_PAGE);
	half = (size - 1) / 2;
	cpu = nrp_parts_add_cpu(buffer, 0);
	must(nrp_blob_append(&cpu->pages, data + 1, half));
	cpu = nrp_parts_add_cpu(buffer, 3);
	must(nrp_blob_append(&cpu->pages, data + 1 + half, size - 1 - half));
	file = sample_bytes(parts, FUZZ_FORMAT(data[0]));
	fuzz_read_trace(file.data, file.size);
	free(file.data);
	nrp_parts_free(parts);
	return 0;
}
