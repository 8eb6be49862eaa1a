/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput() and a line in
 * CMakeLists.txt; its corpus is the folder of its name. Whatever the input is, the code under test
 * may say no, but must not crash, leak, or run for long.
 */
#ifndef NRP_TESTS_FUZZ_H
#define NRP_TESTS_FUZZ_H

#include "numareplay/store.h"
#include "tests/trace_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* First byte of the targets that put their input into a trace-cmd file. */
#define FUZZ_BIG 1    /* big-endian */
#define FUZZ_LONG32 2 /* 32-bit longs */
#define FUZZ_FORMAT(flags) ((enum sample_format)((flags) >> 2 & 3) % SAMPLE_NR_FORMATS)

#define FUZZ_PAGE 512 /* bytes of a ring-buffer page: the smallest, so that inputs are small */

/* Opens the file, resolves its formats, and reads its events; what fails, fails. */
void fuzz_read_trace(const void *data, size_t size);

/*
 * A file of version 7, packed as @format says, whose only options are its references to sections
 * and
 * @options (@size bytes as they lie in a file), behind which @data (@data_size bytes) follows. The
 * caller frees its data.
 */
struct nrp_blob fuzz_trace_v7(uint8_t flags, enum sample_format format, const void *options,
			      size_t size, const void *data, size_t data_size);
/* Where @data would lie in such a file. */
size_t fuzz_data_offset(uint8_t flags, enum sample_format format, size_t options_size);

/*
 * An empty store with an open transaction, the same one each time: the target rolls it back. It has
 * no name in any folder.
 */
struct nrp_store *fuzz_store_begin(void);

/* The sample's headers and formats, without options or data. */
struct nrp_trace_parts *fuzz_parts(uint8_t flags);

#endif
