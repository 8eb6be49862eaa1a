/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU data of v7 files whose table is missing: trace-cmd writes the table behind the data, so that
 * a file cut in the data has none. The data of the CPUs follow each other, each from the start of a
 * page on, in the order of CPU ids; CPUs that recorded nothing are left out, and the statistics in
 * front of the data say which, and how many events each has: if data have another number, they are
 * reported as damage. Compressed data show where they end; others do not, and are lost.
 */
#include "capture/tracefile_internal.h"

/* Events that the CPU recorded and nobody overwrote: those in its data. */
static uint64_t events_of(const struct nrp_cpu_stat *stat)
{
	return (uint64_t)(stat->entries > 0 ? stat->entries : 0) +
	       (uint64_t)(stat->read > 0 ? stat->read : 0);
}

/* Did this CPU of the instance record events? */
static bool recorded(const struct nrp_cpu_stat *stat, uint32_t rank)
{
	return stat->group == rank && events_of(stat);
}

/*
 * Behind the chunks at @at, whose number stands in front of them; *@ret_cut: they do not end in the
 * section as far as it is there.
 */
static uint64_t behind_chunks(const struct nrp_tracefile *file, uint64_t at, uint64_t end,
			      bool *ret_cut)
{
	uint32_t left, packed, size;

	*ret_cut = true;
	if (at > end || end - at < 4)
		return end;
	left = nrp_load32(file->map + at, file->big);
	for (at += 4; left; left--) {
		if (!nrp_is_chunk(file, at, end, &packed, &size))
			return end;
		at += 8 + (uint64_t)packed;
	}
	*ret_cut = false;
	return at;
}

/* The CPU's chunks at @at: a stream, or a lost one. *@ret_next: behind them, or the end. */
static int add_cpu(struct nrp_tracefile *file, const struct nrp_section *section,
		   const struct nrp_cpu_stat *stat, uint64_t at, uint64_t *ret_next,
		   struct nrp_error *err)
{
	bool cut;
	struct nrp_cpu_data data = {
		.cpu = stat->cpu,
		.page_size = file->page_size,
		.rank = stat->group,
		.offset = at,
		.limit = section->end,
		.compressed = true,
	};

	*ret_next = behind_chunks(file, at, section->end, &cut);
	if (*ret_next <= at || *ret_next - at <= 4)
		return nrp_tracefile_lose_cpu(file, stat->cpu, stat->group, section->end, err);
	data.size = *ret_next - at - 4;
	if (cut)
		data.want_end = section->want_end; /* or earlier */
	else
		data.events = events_of(stat);
	return nrp_tracefile_add_cpu(file, &data, section->at, err);
}

/* Start of the data of the next CPU behind @at. */
static uint64_t next_start(const struct nrp_tracefile *file, uint64_t at)
{
	return (at + file->page_size - 1) / file->page_size * file->page_size;
}

/*
 * Can the CPUs' data be told apart? They must be compressed, and in a section that is whole they
 * must fill it: otherwise the statistics name other CPUs than those that have data.
 */
static bool can_split(const struct nrp_tracefile *file, const struct nrp_section *section,
		      uint32_t rank)
{
	uint64_t at = section->start;
	bool cut = false;
	size_t i;

	if (!(section->flags & NRP_SECTION_COMPRESSED))
		return false;
	if (section->end < section->want_end)
		return true;
	for (i = 0; i < file->nr_stats && !cut; i++) {
		if (recorded(&file->stats[i], rank))
			at = behind_chunks(file, next_start(file, at), section->end, &cut);
	}
	return !cut && at == section->end;
}

int nrp_salvage_buffer(struct nrp_tracefile *file, const struct nrp_section *section, uint32_t rank,
		       struct nrp_error *err)
{
	bool split = can_split(file, section, rank);
	uint64_t at = section->start;
	size_t i, found = 0;
	int rc = 0;

	for (i = 0; i < file->nr_stats && !rc; i++) {
		const struct nrp_cpu_stat *stat = &file->stats[i];

		if (!recorded(stat, rank))
			continue;
		found++;
		at = next_start(file, at);
		if (split && at < section->end)
			rc = add_cpu(file, section, stat, at, &at, err);
		else
			rc = nrp_tracefile_lose_cpu(file, stat->cpu, rank, section->end, err);
	}
	if (rc || found)
		return rc;
	return nrp_tracefile_lose_instance(file, rank, section->at, err);
}
