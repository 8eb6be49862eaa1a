/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring-buffer pages (sub-buffers) of one CPU: read from the file, or decompressed chunk by
 * chunk, and walked event by event.
 */
#ifndef NRP_PAGES_H
#define NRP_PAGES_H

#include "capture/tracefile.h"

struct kbuffer;
struct ZSTD_DCtx_s;
struct nrp_tracefile;

#define NRP_PAGE_PADDING 64           /* bytes behind a page that kbuffer may look at */
#define NRP_MAX_CHUNK (16u << 20)     /* bytes of a decompressed chunk; trace-cmd: 10 pages */
#define NRP_MAX_RESIDENT (2ull << 30) /* bytes of pages and chunks of all CPUs together */

/* What all streams of a file share. */
struct nrp_page_reader {
	struct kbuffer *kbuf;
	struct ZSTD_DCtx_s *zstd;
	uint64_t resident; /* bytes allocated for pages and chunks */
	uint8_t *packed;   /* the chunk read last, as stored */
	uint32_t packed_room;
};

struct nrp_stream {
	uint32_t cpu;
	uint32_t page_size; /* bytes */
	uint32_t rank;      /* order of the instance, for equal times of one CPU */
	bool compressed;
	uint64_t start, end; /* the data in the file; end without the chunk count's 4 bytes */
	uint64_t limit;      /* nothing lies behind this file offset */
	uint64_t want_end;   /* what the header says; > end: the rest is not in the file */
	bool cut;            /* data are missing behind the end */
	uint64_t events;     /* that there must be, if this was found by its looks; else 0 */

	uint64_t pos;     /* next byte in the file, behind those in buf */
	uint64_t logical; /* bytes of uncompressed data consumed */
	uint32_t chunks_left;
	bool count_unknown; /* of chunks: they are read while there are any */
	uint8_t *buf;       /* the decompressed chunk, or a part of the file, padded */
	uint32_t buf_room, buf_size, buf_pos;
	uint64_t chunk_offset; /* of the chunk's header in the file */

	uint8_t *split;       /* a page that does not lie in one chunk, padded */
	const uint8_t *page;  /* the current page, in one of the two */
	uint64_t page_offset; /* in the file, or of the first chunk it lies in; place of damage */
	uint32_t next, stop;  /* offsets in page of the next event header and of the end */
	bool partial;         /* the file ends in the page */
	uint64_t time;        /* of the last event header */
	bool lost_pending;    /* events are missing before the next one */
	uint8_t lost_cause;   /* NRP_LOSS_.. */
	int64_t lost;         /* their number, -1: unknown */
	uint64_t lost_offset; /* of the damage in the file */
	uint64_t last_time;   /* of the last event handed out, 0: none */
	bool cut_told;        /* the missing end was reported */
	struct nrp_cpu_reading sum;

	struct nrp_raw_event event; /* the current event */
};

int nrp_page_reader_init(struct nrp_page_reader *reader, const struct nrp_tracefile *file,
			 struct nrp_error *err);
void nrp_page_reader_done(struct nrp_page_reader *reader);

/* Back to the first event. */
void nrp_stream_rewind(struct nrp_stream *stream);
/*
 * Fills stream->event: 1, 0 at the end, < 0 on damage. The call after one that met damage goes
 * on behind the bad page or chunk, and the event it finds says that events were lost.
 */
int nrp_stream_next(struct nrp_tracefile *file, struct nrp_stream *stream, struct nrp_error *err);
void nrp_stream_done(struct nrp_stream *stream);
const struct nrp_cpu_reading *nrp_stream_reading(struct nrp_stream *stream);

/* chunks.c: the bytes that the pages are made of. */

/*
 * Sets stream->page to the next page and stream->page_offset to its place; *@ret is the number of
 * its bytes, less than a page only at the end of the data. < 0 on damage; the call after it goes on
 * behind the bad chunk.
 */
int nrp_stream_page(struct nrp_tracefile *file, struct nrp_stream *stream, uint32_t *ret,
		    struct nrp_error *err);
/* The number @ahead bytes behind the next one, if that can be seen without decompressing more. */
bool nrp_stream_peek64(const struct nrp_tracefile *file, const struct nrp_stream *stream,
		       uint32_t ahead, uint64_t *ret);
/* Replaces *@ret of @old bytes by @size zeros; what all CPUs together may use is limited. */
int nrp_stream_allocate(struct nrp_tracefile *file, uint8_t **ret, uint64_t old, uint64_t size,
			uint64_t at, struct nrp_error *err);
/* Is there the header of a chunk at @at, and the whole of a zstd frame before @end? */
bool nrp_is_chunk(const struct nrp_tracefile *file, uint64_t at, uint64_t end, uint32_t *ret_packed,
		  uint32_t *ret_size);

#endif
