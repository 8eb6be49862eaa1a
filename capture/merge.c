/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of all CPUs in time order: a binary heap of the streams' current events. */
#include "capture/tracefile_internal.h"

/* Earlier time first; equal times by CPU, then the top instance before the others. */
static bool before(const struct nrp_merge_entry *a, const struct nrp_merge_entry *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	if (a->stream->cpu != b->stream->cpu)
		return a->stream->cpu < b->stream->cpu;
	return a->stream->rank < b->stream->rank;
}

/* Puts @entry, whose place is at @i or below, where it belongs. */
static void sift_down(struct nrp_tracefile *file, size_t i, struct nrp_merge_entry entry)
{
	struct nrp_merge_entry *heap = file->heap;
	size_t child;

	while ((child = 2 * i + 1) < file->nr_heap) {
		if (child + 1 < file->nr_heap && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &entry))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = entry;
}

static void push(struct nrp_tracefile *file, struct nrp_merge_entry entry)
{
	struct nrp_merge_entry *heap = file->heap;
	size_t i = file->nr_heap++;

	while (i && before(&entry, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = entry;
}

/* Notes the time of the first event of the other streams. */
static void set_next_time(struct nrp_tracefile *file)
{
	const struct nrp_merge_entry *heap = file->heap;

	file->next_time = file->nr_heap > 1 ? heap[1].time : UINT64_MAX;
	if (file->nr_heap > 2 && heap[2].time < file->next_time)
		file->next_time = heap[2].time;
}

/* The first event of every stream. After damage the same stream is asked again. */
static int prime(struct nrp_tracefile *file, struct nrp_error *err)
{
	while (file->nr_primed < file->nr_streams) {
		struct nrp_stream *stream = &file->streams[file->nr_primed];
		int rc = nrp_stream_next(file, stream, err);

		if (rc < 0)
			return rc;
		file->nr_primed++;
		if (rc)
			push(file, (struct nrp_merge_entry){ stream->event.time, stream });
	}
	set_next_time(file);
	return 0;
}

/* Replaces the event that was handed out by its stream's next one. */
static int advance(struct nrp_tracefile *file, struct nrp_error *err)
{
	struct nrp_stream *stream = file->heap[0].stream;
	int rc = nrp_stream_next(file, stream, err);

	if (rc < 0)
		return rc;
	file->top_consumed = false;
	if (rc && stream->event.time < file->next_time)
		return 0; /* events of a CPU come in bursts: still the first of all */
	if (rc)
		sift_down(file, 0, (struct nrp_merge_entry){ stream->event.time, stream });
	else if (--file->nr_heap)
		sift_down(file, 0, file->heap[file->nr_heap]);
	set_next_time(file);
	return 0;
}

void nrp_tracefile_rewind(struct nrp_tracefile *file)
{
	size_t i;

	if (file->libtracecmd)
		nrp_libtracecmd_rewind(file->libtracecmd);
	for (i = 0; i < file->nr_streams; i++)
		nrp_stream_rewind(&file->streams[i]);
	file->nr_heap = 0;
	file->nr_primed = 0;
	file->top_consumed = false;
}

int nrp_tracefile_take(struct nrp_tracefile *file, const struct nrp_raw_event **ret,
		       struct nrp_error *err)
{
	int rc = 0;

	if (file->libtracecmd) {
		*ret = &file->other;
		return nrp_libtracecmd_next(file, &file->other, err);
	}
	if (file->nr_primed < file->nr_streams)
		rc = prime(file, err);
	else if (file->top_consumed)
		rc = advance(file, err);
	if (rc)
		return rc;
	if (!file->nr_heap)
		return 0;
	*ret = &file->heap[0].stream->event;
	file->top_consumed = true;
	return 1;
}

int nrp_tracefile_next(struct nrp_tracefile *file, struct nrp_raw_event *ret, struct nrp_error *err)
{
	const struct nrp_raw_event *event;
	int rc = nrp_tracefile_take(file, &event, err);

	if (rc > 0)
		*ret = *event;
	return rc;
}
