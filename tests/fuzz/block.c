/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decoder of column blocks: the kind, the column that rows are chosen by (255: all rows), the
 * columns wanted (8 bytes), then the block.
 */
#include "tests/fuzz/fuzz.h"

#include "schema/block.h"

#include <string.h>

#define HEADER 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct nrp_kind *desc;
	struct nrp_block *block;
	const char *why;
	uint64_t columns;
	uint8_t *rows;

	if (size < HEADER || !(desc = nrp_kind((enum nrp_record_kind)data[0])))
		return 0;
	memcpy(&columns, data + 2, sizeof(columns));
	block = nrp_block_new();
	rows = calloc(NRP_BLOCK_BATCH, desc->row_size);
	must(block && rows);
	nrp_block_choose(block, data[1] < desc->nr_columns ? data[1] : -1);
	if (nrp_block_load(block, (enum nrp_record_kind)data[0], data + HEADER, size - HEADER,
			   columns, &why) == 0)
		while (nrp_block_read(block, rows))
			;
	free(rows);
	nrp_block_free(block);
	return 0;
}
