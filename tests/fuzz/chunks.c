/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reader of compressed chunks: a byte of flags, then the data of one CPU in a file of version
 * 7: the number of chunks, and per chunk its two sizes and a zstd frame.
 */
#include "tests/fuzz/fuzz.h"

#define OPTION_BUFFER 3

/* The option that describes the data at @at of the file. */
static struct nrp_blob buffer_option(bool big, size_t at, size_t size)
{
	struct nrp_blob o = { 0 };

	must(nrp_blob_number(&o, OPTION_BUFFER, 2, big));
	must(nrp_blob_number(&o, 8 + 1 + 7 + 4 + 4 + 20, 4, big));
	must(nrp_blob_number(&o, at, 8, big));
	must(nrp_blob_append(&o, "\0global", 8));
	must(nrp_blob_number(&o, FUZZ_PAGE, 4, big));
	must(nrp_blob_number(&o, 1, 4, big));
	must(nrp_blob_number(&o, 0, 4, big));
	must(nrp_blob_number(&o, at + 16, 8, big));
	must(nrp_blob_number(&o, size < 4 ? size : size - 4, 8, big));
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nrp_blob option, section = { 0 }, file;
	size_t at;
	bool big;

	if (!size)
		return 0;
	big = data[0] & FUZZ_BIG;
	option = buffer_option(big, 0, 0);
	at = fuzz_data_offset(data[0], SAMPLE_V7_ZSTD, option.size);
	free(option.data);
	option = buffer_option(big, at, size - 1);
	must(nrp_blob_number(&section, OPTION_BUFFER, 2, big) &&
	     nrp_blob_number(&section, 1, 2, big) && nrp_blob_number(&section, 0, 4, big) &&
	     nrp_blob_number(&section, size - 1, 8, big) &&
	     nrp_blob_append(&section, data + 1, size - 1));
	file = fuzz_trace_v7(data[0], SAMPLE_V7_ZSTD, option.data, option.size, section.data,
			     section.size);
	fuzz_read_trace(file.data, file.size);
	free(option.data);
	free(section.data);
	free(file.data);
	return 0;
}
