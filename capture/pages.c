/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks the ring-buffer pages of one CPU. A page starts with its time (64 bits) and a long
 * that holds the number of committed bytes and two flags about lost events; the events follow.
 * kbuffer_raw_get() decodes one event header at a time without looking further, which lets
 * every step be checked: kbuffer_load_subbuffer() and kbuffer_next_event() skip paddings on
 * their own and can run in a circle on a damaged page.
 */
#include "capture/pages.h"

#include "capture/tracefile_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <traceevent/kbuffer.h>
#include <unistd.h>
#include <zstd.h>

#define PAGE_PADDING 64          /* zeros behind the page buffer: kbuffer may read 8 bytes on */
#define COMMIT_MASK 0x07ffffffu  /* of the page's long: committed bytes */
#define FLAG_MISSED (1ull << 31) /* events were lost before this page */
#define FLAG_STORED (1ull << 30) /* their number is stored behind the committed bytes */
#define TIME_TOP 0xf800000000000000ull /* bits that an absolute time stamp does not carry */
#define RELEASE_STEP (1u << 20)        /* bytes read before their mapping is given back */

int nrp_page_reader_init(struct nrp_page_reader *reader, const struct nrp_tracefile *file,
			 struct nrp_error *err)
{
	reader->kbuf = kbuffer_alloc(file->long_size == 8 ? KBUFFER_LSIZE_8 : KBUFFER_LSIZE_4,
				     file->big ? KBUFFER_ENDIAN_BIG : KBUFFER_ENDIAN_LITTLE);
	if (file->zstd)
		reader->zstd = ZSTD_createDCtx();
	if (!reader->kbuf || (file->zstd && !reader->zstd))
		return nrp_fail_nomem(err);
	return 0;
}

void nrp_page_reader_done(struct nrp_page_reader *reader)
{
	if (reader->kbuf)
		kbuffer_free(reader->kbuf);
	ZSTD_freeDCtx(reader->zstd);
}

void nrp_stream_rewind(struct nrp_stream *s)
{
	s->pos = s->start;
	s->released = s->start;
	s->logical = 0;
	s->chunks_left = 0;
	s->chunk_size = s->chunk_pos = 0;
	s->next = s->stop = 0;
	s->time = 0;
	s->lost_pending = false;
	s->lost = 0;
	s->last_time = 0;
}

void nrp_stream_done(struct nrp_stream *s)
{
	free(s->chunk);
	free(s->page);
}

/* Gives back the part of the mapping that was read. */
static void release_mapping(const struct nrp_tracefile *file, struct nrp_stream *s)
{
	uint64_t system_page, from, to;

	if (s->pos - s->released < RELEASE_STEP)
		return;
	system_page = (uint64_t)sysconf(_SC_PAGESIZE);
	from = s->released / system_page * system_page;
	to = s->pos / system_page * system_page;
	/* only advice: the resident set stays small; pages that are needed again are read again */
	madvise((void *)(file->map + from), (size_t)(to - from), MADV_DONTNEED);
	s->released = to;
}

/* Replaces *@ret of @old bytes; what all CPUs together may use is limited. */
static int allocate(struct nrp_tracefile *file, uint8_t **ret, uint64_t old, uint64_t size,
		    uint64_t at, struct nrp_error *err)
{
	uint8_t *p;

	if (size > NRP_MAX_RESIDENT - file->reader.resident)
		return nrp_damaged(file, err, at,
				   "pages and chunks of all CPUs need over %llu bytes",
				   NRP_MAX_RESIDENT);
	p = calloc(1, (size_t)size);
	if (!p)
		return nrp_fail_nomem(err);
	file->reader.resident += size - old;
	free(*ret);
	*ret = p;
	return 0;
}

/* The number of chunks in front of the first one. */
static int read_chunk_count(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	if (s->end - s->start < 4) {
		s->pos = s->end;
		return nrp_damaged(file, err, s->start, "no room for the count of chunks");
	}
	s->chunks_left = nrp_load32(file->map + s->start, file->big);
	s->pos = s->start + 4;
	return 0;
}

/*
 * File offset where the chunks end. trace-cmd writes a size that leaves out the chunk count;
 * a size that includes it is accepted too.
 */
static uint64_t chunks_end(const struct nrp_stream *s)
{
	return s->limit - s->end < 4 ? s->limit : s->end + 4;
}

/* The chunk at s->pos: 1, 0 behind the last one. Damage moves s->pos on. */
static int next_chunk(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	uint64_t at, end = chunks_end(s);
	uint32_t packed, size;
	size_t n;
	int rc;

	s->chunk_size = s->chunk_pos = 0;
	if (s->pos == s->start) {
		rc = read_chunk_count(file, s, err);
		if (rc)
			return rc;
	}
	at = s->pos;
	if (!s->chunks_left) {
		s->pos = end;
		if (at < s->end)
			return nrp_damaged(file, err, at, "chunks of CPU %u end before its data",
					   s->cpu);
		return 0;
	}
	s->pos = end; /* unless the chunk's header makes sense */
	s->chunk_offset = at;
	s->chunks_left--;
	if (end - at < 8)
		goto beyond;
	packed = nrp_load32(file->map + at, file->big);
	size = nrp_load32(file->map + at + 4, file->big);
	if (packed > end - at - 8)
		goto beyond;
	if (!size || size > NRP_MAX_CHUNK) {
		s->chunks_left = 0;
		return nrp_damaged(file, err, at, "chunk of %u bytes", size);
	}
	s->pos = at + 8 + packed;
	if (size > s->chunk_room) {
		rc = allocate(file, &s->chunk, s->chunk_room, size, at, err);
		if (rc)
			return rc;
		s->chunk_room = size;
	}
	n = ZSTD_decompressDCtx(file->reader.zstd, s->chunk, size, file->map + at + 8, packed);
	release_mapping(file, s);
	if (ZSTD_isError(n) || n != size) {
		s->logical += size;
		return nrp_damaged(file, err, at, "chunk does not decompress");
	}
	s->chunk_size = size;
	return 1;
beyond:
	s->chunks_left = 0;
	return nrp_damaged(file, err, at, "chunk reaches beyond the data of CPU %u", s->cpu);
}

/* Copies up to @n bytes of uncompressed data to @to (NULL: skips them); *@ret is their number. */
static int read_stream(struct nrp_tracefile *file, struct nrp_stream *s, uint8_t *to, uint32_t n,
		       uint32_t *ret, struct nrp_error *err)
{
	uint32_t done = 0, part;
	int rc;

	while (done < n) {
		const uint8_t *from;
		uint64_t room;

		if (s->compressed && s->chunk_pos == s->chunk_size) {
			rc = next_chunk(file, s, err);
			if (rc < 0)
				return rc;
			if (!rc)
				break;
		}
		room = s->compressed ? s->chunk_size - s->chunk_pos : s->end - s->pos;
		if (!room)
			break;
		part = room < n - done ? (uint32_t)room : n - done;
		from = s->compressed ? s->chunk + s->chunk_pos : file->map + s->pos;
		if (to)
			memcpy(to + done, from, part);
		if (s->compressed)
			s->chunk_pos += part;
		else
			s->pos += part;
		s->logical += part;
		done += part;
	}
	*ret = done;
	return 0;
}

static uint64_t load_long(const struct nrp_tracefile *file, const uint8_t *p)
{
	return file->long_size == 8 ? nrp_load64(p, file->big) : nrp_load32(p, file->big);
}

/* Notes that @n events (-1: unknown) are missing before the next one. */
static void add_lost(struct nrp_stream *s, int64_t n)
{
	bool unknown = n < 0 || (s->lost_pending && s->lost < 0) || n > INT64_MAX - s->lost;

	s->lost = unknown ? -1 : s->lost + n;
	s->lost_pending = true;
}

/* Understands the header of the page just read, of which @size bytes are there. */
static int start_page(struct nrp_tracefile *file, struct nrp_stream *s, uint32_t size,
		      struct nrp_error *err)
{
	uint32_t header = 8 + (uint32_t)file->long_size;
	uint64_t flags;
	uint32_t commit;

	if (size < header)
		return nrp_damaged(file, err, s->page_offset, "page of %u bytes", size);
	flags = load_long(file, s->page + 8);
	commit = (uint32_t)(flags & COMMIT_MASK);
	if (commit > size - header)
		return nrp_damaged(file, err, s->page_offset,
				   "page says it holds %u bytes, there is room for %u", commit,
				   size - header);
	s->time = nrp_load64(s->page, file->big);
	if (flags & FLAG_MISSED) {
		uint64_t stored = 0;

		if ((flags & FLAG_STORED) && commit + (uint32_t)file->long_size <= size - header)
			stored = load_long(file, s->page + header + commit);
		add_lost(s, stored && stored <= INT64_MAX ? (int64_t)stored : -1);
	}
	s->next = header;
	s->stop = header + commit;
	return 0;
}

/* The next page: 1, 0 at the end. */
static int next_page(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	uint32_t behind = (uint32_t)(s->logical % s->page_size);
	uint32_t size;
	int rc;

	if (!s->page) {
		rc = allocate(file, &s->page, 0, (uint64_t)s->page_size + PAGE_PADDING, s->start,
			      err);
		if (rc)
			return rc;
	}
	if (behind) { /* a damaged chunk ended inside a page: find the next page */
		rc = read_stream(file, s, NULL, s->page_size - behind, &size, err);
		if (rc)
			return rc;
	}
	s->page_offset = s->compressed && s->chunk_pos < s->chunk_size ? s->chunk_offset : s->pos;
	rc = read_stream(file, s, s->page, s->page_size, &size, err);
	if (rc || !size)
		return rc;
	if (!s->compressed)
		release_mapping(file, s);
	rc = start_page(file, s, size, err);
	return rc ? rc : 1;
}

/*
 * Decodes the event header at s->next: 1 with s->event filled, 0 if it was a time stamp or
 * padding, < 0 if it does not fit into the page.
 */
static int decode(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	struct kbuffer_raw_info info = { .next = s->page + s->next };
	const uint8_t *next = NULL;
	int64_t end = -1;

	if (s->stop - s->next >= 4 && kbuffer_raw_get(file->reader.kbuf, s->page, &info)) {
		next = info.next;
		end = next - s->page;
	}
	if (info.type == KBUFFER_TYPE_PADDING && !info.delta) {
		s->next = s->stop; /* the rest of the page is not used */
		return 0;
	}
	/* kbuffer's own sum may have gone backwards or beyond the page: nothing was read yet */
	if (end < (int64_t)s->next + 4 || end > s->stop || end % 4 || info.length < 0 ||
	    (!info.length && info.type < KBUFFER_TYPE_TIME_EXTEND))
		return nrp_damaged(file, err, s->page_offset,
				   "event at byte %u of the page of CPU %u does not fit", s->next,
				   s->cpu);
	s->next = (uint32_t)end;
	if (info.type == KBUFFER_TYPE_TIME_STAMP)
		s->time = info.delta | (s->time & TIME_TOP);
	else
		s->time += info.delta;
	if (info.type >= KBUFFER_TYPE_PADDING)
		return 0;
	s->event.data = next - info.length;
	s->event.size = (uint32_t)info.length;
	return 1;
}

/* What the event says besides its data. */
static void finish_event(const struct nrp_tracefile *file, struct nrp_stream *s)
{
	struct nrp_raw_event *event = &s->event;

	event->time = s->time;
	event->cpu = s->cpu;
	event->id = nrp_load16(event->data, file->big);
	event->lost_before = s->lost_pending;
	event->lost = s->lost_pending ? s->lost : 0;
	event->lost_since = s->lost_pending ? s->last_time : 0;
	s->lost_pending = false;
	s->lost = 0;
	s->last_time = s->time;
}

int nrp_stream_next(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	int rc;

	for (;;) {
		while (s->next < s->stop) {
			rc = decode(file, s, err);
			if (rc > 0)
				finish_event(file, s);
			if (rc < 0)
				goto damaged;
			if (rc)
				return 1;
		}
		rc = next_page(file, s, err);
		if (rc < 0)
			goto damaged;
		if (!rc)
			return 0;
	}
damaged:
	s->next = s->stop = 0;
	add_lost(s, -1);
	return rc;
}
