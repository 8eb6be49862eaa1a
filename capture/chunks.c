/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of one CPU's ring-buffer pages: read from the file, or decompressed chunk by chunk.
 * Behind a damaged chunk header the next chunk is found by its looks.
 */
#include "capture/tracefile_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define CHUNK_HEADER 8     /* bytes: u32 compressed size, u32 size */
#define WINDOW (64u << 10) /* bytes of uncompressed data read at once */

int nrp_stream_allocate(struct nrp_tracefile *file, uint8_t **ret, uint64_t old, uint64_t size,
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

/*
 * Reads @n bytes at @at, where the file had them when it was opened. The mapping would kill a
 * program whose file becomes shorter. If they are missing, the data end here.
 */
static int read_bytes(const struct nrp_tracefile *file, struct nrp_stream *s, uint8_t *to, size_t n,
		      uint64_t at, struct nrp_error *err)
{
	ssize_t got = pread(file->fd, to, n, (off_t)at);

	if (got == (ssize_t)n)
		return 0;
	s->pos = s->end;
	s->chunks_left = 0;
	s->buf_size = s->buf_pos = 0;
	if (got < 0)
		return nrp_fail(err, NRP_INPUT, -EIO, file->path, (int64_t)at, NRP_REMEDY_COPY,
				"cannot read: %s", strerror(errno));
	return nrp_damaged(file, err, at, NRP_SHRANK);
}

/* The number of chunks in front of the first one. */
static int read_chunk_count(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	uint8_t count[4];
	int rc;

	if (s->end - s->start < 4) {
		s->pos = s->end;
		return nrp_damaged(file, err, s->start, "no room for the count of chunks");
	}
	rc = read_bytes(file, s, count, sizeof(count), s->start, err);
	if (rc)
		return rc;
	s->chunks_left = nrp_load32(count, file->big);
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

bool nrp_is_chunk(const struct nrp_tracefile *file, uint64_t at, uint64_t end, uint32_t *ret_packed,
		  uint32_t *ret_size)
{
	const uint8_t *p = file->map + at;

	if (at > end || end - at < CHUNK_HEADER + 4)
		return false;
	*ret_packed = nrp_load32(p, file->big);
	*ret_size = nrp_load32(p + 4, file->big);
	return *ret_packed <= end - at - CHUNK_HEADER && *ret_size && *ret_size <= NRP_MAX_CHUNK &&
	       nrp_load32(p + CHUNK_HEADER, false) == ZSTD_MAGICNUMBER &&
	       ZSTD_findFrameCompressedSize(p + CHUNK_HEADER, *ret_packed) == *ret_packed;
}

/* The first chunk of whole pages from @at on; @end if there is none. */
static uint64_t find_chunk(const struct nrp_tracefile *file, const struct nrp_stream *s,
			   uint64_t at, uint64_t end)
{
	const uint8_t magic[4] = { 0x28, 0xb5, 0x2f, 0xfd };
	uint32_t packed, size;

	while (at < end && end - at > CHUNK_HEADER) {
		const uint8_t *from = file->map + at + CHUNK_HEADER;
		const uint8_t *p =
			memmem(from, (size_t)(end - at - CHUNK_HEADER), magic, sizeof(magic));

		if (!p)
			break;
		at = (uint64_t)(p - file->map) - CHUNK_HEADER;
		if (nrp_is_chunk(file, at, end, &packed, &size) && size % s->page_size == 0)
			return at;
		at++;
	}
	return end;
}

/* Then the mapping must not be looked at. */
static bool became_shorter(const struct nrp_tracefile *file)
{
	struct stat st;

	return fstat(file->fd, &st) < 0 || (uint64_t)st.st_size < file->size;
}

/*
 * Moves s->pos behind the damaged chunk at @at, whose header says that it ends at @next (0: the
 * header makes no sense). If no chunk is there, the header was wrong: the next one is looked for,
 * and how many there are is no longer known.
 */
static void skip_chunk(const struct nrp_tracefile *file, struct nrp_stream *s, uint64_t at,
		       uint64_t next, uint32_t size)
{
	uint64_t end = chunks_end(s);
	uint32_t next_packed, next_size;

	if (became_shorter(file)) {
		s->pos = s->end;
		s->chunks_left = 0;
		return;
	}
	if (next && ((next >= s->end && !s->chunks_left) ||
		     (s->chunks_left && nrp_is_chunk(file, next, end, &next_packed, &next_size)))) {
		s->pos = next;
		s->logical += size;
		return;
	}
	s->pos = find_chunk(file, s, at + 1, end);
	s->count_unknown = true;
	s->chunks_left = s->pos < end;
	s->logical = 0; /* chunks that are found again begin with a page */
}

/* The chunk at @at reaches beyond the data. */
static int beyond_data(struct nrp_tracefile *file, struct nrp_stream *s, uint64_t at,
		       struct nrp_error *err)
{
	skip_chunk(file, s, at, 0, 0);
	if (s->cut && s->pos >= s->end) {
		s->cut_told = true;
		return nrp_cut_short(file, at, "data of a CPU", s->want_end, err);
	}
	return nrp_damaged(file, err, at, "chunk reaches beyond the data of CPU %u", s->cpu);
}

/* Room for a chunk, and for what it is packed into. */
static int make_room(struct nrp_tracefile *file, struct nrp_stream *s, uint64_t at, uint32_t packed,
		     uint32_t size, struct nrp_error *err)
{
	struct nrp_page_reader *reader = &file->reader;
	int rc = 0;

	if (size > s->buf_room) {
		rc = nrp_stream_allocate(file, &s->buf,
					 s->buf_room ? s->buf_room + NRP_PAGE_PADDING : 0,
					 (uint64_t)size + NRP_PAGE_PADDING, at, err);
		if (!rc)
			s->buf_room = size;
	}
	if (!rc && packed > reader->packed_room) {
		rc = nrp_stream_allocate(file, &reader->packed, reader->packed_room, packed, at,
					 err);
		if (!rc)
			reader->packed_room = packed;
	}
	return rc;
}

/* The chunk at @at, whose header the caller checked. */
static int decompress(struct nrp_tracefile *file, struct nrp_stream *s, uint64_t at,
		      uint32_t packed, uint32_t size, struct nrp_error *err)
{
	size_t n;
	int rc = make_room(file, s, at, packed, size, err);

	if (rc) {
		s->pos = at + CHUNK_HEADER + packed;
		s->logical += size;
		return rc;
	}
	rc = read_bytes(file, s, file->reader.packed, packed, at + CHUNK_HEADER, err);
	if (rc)
		return rc;
	n = ZSTD_decompressDCtx(file->reader.zstd, s->buf, size, file->reader.packed, packed);
	if (ZSTD_isError(n) || n != size) {
		skip_chunk(file, s, at, at + CHUNK_HEADER + packed, size);
		return nrp_damaged(file, err, at, "chunk does not decompress");
	}
	s->pos = at + CHUNK_HEADER + packed;
	s->buf_size = size;
	return 1;
}

/* The chunk at @at, if it fits in front of @end. */
static int read_chunk(struct nrp_tracefile *file, struct nrp_stream *s, uint64_t at, uint64_t end,
		      struct nrp_error *err)
{
	uint8_t header[CHUNK_HEADER];
	uint32_t packed, size;
	int rc;

	if (end - at < CHUNK_HEADER)
		return beyond_data(file, s, at, err);
	rc = read_bytes(file, s, header, sizeof(header), at, err);
	if (rc)
		return rc;
	packed = nrp_load32(header, file->big);
	size = nrp_load32(header + 4, file->big);
	if (packed > end - at - CHUNK_HEADER)
		return beyond_data(file, s, at, err);
	if (!size || size > NRP_MAX_CHUNK || packed > ZSTD_COMPRESSBOUND(size)) {
		skip_chunk(file, s, at, 0, 0);
		return nrp_damaged(file, err, at, "chunk of %u bytes, %u as stored", size, packed);
	}
	return decompress(file, s, at, packed, size, err);
}

/* The chunk at s->pos: 1, 0 behind the last one. Damage moves s->pos on. */
static int next_chunk(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	uint64_t at, end = chunks_end(s);
	int rc;

	s->buf_size = s->buf_pos = 0;
	s->chunk_offset = s->pos;
	if (s->pos == s->start) {
		rc = read_chunk_count(file, s, err);
		if (rc)
			return rc;
	}
	s->chunk_offset = at = s->pos;
	if (s->count_unknown)
		s->chunks_left = at < s->end;
	if (!s->chunks_left) {
		if (at >= s->end) {
			s->pos = end;
			return 0;
		}
		s->count_unknown = true; /* the next call goes on here */
		return nrp_damaged(file, err, at, "chunks of CPU %u end before its data", s->cpu);
	}
	s->chunks_left--;
	return read_chunk(file, s, at, end, err);
}

/* The next bytes of the file behind those in the buffer; at least @need, where the data go on. */
static int fill_window(struct nrp_tracefile *file, struct nrp_stream *s, uint32_t need,
		       struct nrp_error *err)
{
	uint32_t room = need > WINDOW ? need : WINDOW, rest = s->buf_size - s->buf_pos;
	uint64_t left = s->end - s->pos;
	int rc;

	if (rest >= need || !left)
		return 0;
	if (room > s->buf_room) {
		rc = nrp_stream_allocate(file, &s->buf, 0, (uint64_t)room + NRP_PAGE_PADDING,
					 s->start, err);
		if (rc)
			return rc;
		s->buf_room = room;
	}
	memmove(s->buf, s->buf + s->buf_pos, rest);
	s->buf_pos = 0;
	s->buf_size = rest;
	left = left < room - rest ? left : room - rest;
	rc = read_bytes(file, s, s->buf + rest, (size_t)left, s->pos, err);
	if (rc)
		return rc;
	s->pos += left;
	s->buf_size += (uint32_t)left;
	return 0;
}

/* Copies bytes of as many chunks as it takes: a page that does not lie in one of them. */
static int collect(struct nrp_tracefile *file, struct nrp_stream *s, uint8_t *to, uint32_t n,
		   uint32_t *ret, struct nrp_error *err)
{
	uint32_t done = 0;

	while (done < n) {
		uint32_t part = s->buf_size - s->buf_pos;
		int rc;

		if (!part) {
			rc = next_chunk(file, s, err);
			if (rc < 0) {
				s->page_offset = s->chunk_offset; /* the place of the damage */
				return rc;
			}
			if (!rc)
				break;
			continue;
		}
		if (part > n - done)
			part = n - done;
		if (to)
			memcpy(to + done, s->buf + s->buf_pos, part);
		s->buf_pos += part;
		s->logical += part;
		done += part;
	}
	*ret = done;
	return 0;
}

/* Moves on to the start of a page, if a damaged chunk ended inside one. */
static int skip_rest_of_page(struct nrp_tracefile *file, struct nrp_stream *s,
			     struct nrp_error *err)
{
	uint32_t behind = (uint32_t)(s->logical % s->page_size), n;

	return behind ? collect(file, s, NULL, s->page_size - behind, &n, err) : 0;
}

static int compressed_page(struct nrp_tracefile *file, struct nrp_stream *s, uint32_t *ret,
			   struct nrp_error *err)
{
	int rc = skip_rest_of_page(file, s, err);

	if (rc)
		return rc;
	s->page_offset = s->buf_pos < s->buf_size ? s->chunk_offset : s->pos;
	if (s->buf_size - s->buf_pos >= s->page_size) {
		s->page = s->buf + s->buf_pos;
		s->buf_pos += s->page_size;
		s->logical += s->page_size;
		*ret = s->page_size;
		return 0;
	}
	if (!s->split) {
		rc = nrp_stream_allocate(file, &s->split, 0,
					 (uint64_t)s->page_size + NRP_PAGE_PADDING, s->start, err);
		if (rc)
			return rc;
	}
	s->page = s->split;
	return collect(file, s, s->split, s->page_size, ret, err);
}

int nrp_stream_page(struct nrp_tracefile *file, struct nrp_stream *s, uint32_t *ret,
		    struct nrp_error *err)
{
	uint32_t rest;
	int rc;

	if (s->compressed)
		return compressed_page(file, s, ret, err);
	/* with the times of the two pages behind it in sight */
	rc = fill_window(file, s, 2 * s->page_size + 8, err);
	rest = s->buf_size - s->buf_pos;
	s->page_offset = s->pos - rest;
	if (rc)
		return rc;
	*ret = rest < s->page_size ? rest : s->page_size;
	s->page = s->buf + s->buf_pos;
	s->buf_pos += *ret;
	return 0;
}

bool nrp_stream_peek64(const struct nrp_tracefile *file, const struct nrp_stream *s, uint32_t ahead,
		       uint64_t *ret)
{
	uint32_t room = s->buf_size - s->buf_pos;

	if (room < 8 || room - 8 < ahead)
		return false;
	*ret = nrp_load64(s->buf + s->buf_pos + ahead, file->big);
	return true;
}
