/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A whole trace-cmd file of any version: header, sections, formats, tables of CPUs, data. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_trace(data, size);
	return 0;
}
