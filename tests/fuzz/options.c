/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of a file of version 7: a byte of flags, then options as they lie in a section. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nrp_blob file;

	if (!size)
		return 0;
	file = fuzz_trace_v7(data[0], SAMPLE_V7, data + 1, size - 1, NULL, 0);
	fuzz_read_trace(file.data, file.size);
	free(file.data);
	return 0;
}
