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
#include <traceevent/kbuffer.h>
#include <zstd.h>

#define COMMIT_MASK 0x07ffffffu        /* of the page's long: committed bytes */
#define FLAG_MISSED (1ull << 31)       /* events were lost before this page */
#define FLAG_STORED (1ull << 30)       /* their number is stored behind the committed bytes */
#define TIME_TOP 0xf800000000000000ull /* bits that an absolute time stamp does not carry */

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
	free(reader->packed);
}

void nrp_stream_rewind(struct nrp_stream *s)
{
	s->pos = s->start;
	s->logical = 0;
	s->chunks_left = 0;
	s->count_unknown = false;
	s->buf_size = s->buf_pos = 0;
	s->next = s->stop = 0;
	s->time = 0;
	s->lost_pending = false;
	s->lost = 0;
	s->last_time = 0;
	s->partial = s->cut_told = false;
	s->event = (struct nrp_raw_event){ .cpu = s->cpu };
	s->sum = (struct nrp_cpu_reading){ .cpu = s->cpu };
}

void nrp_stream_done(struct nrp_stream *s)
{
	free(s->buf);
	free(s->split);
}

static uint64_t load_long(const struct nrp_tracefile *file, const uint8_t *p)
{
	return file->long_size == 8 ? nrp_load64(p, file->big) : nrp_load32(p, file->big);
}

/* Notes that @n events (-1: unknown) are missing before the next one. */
static void add_lost(struct nrp_stream *s, int64_t n)
{
	bool unknown = n < 0 || (s->lost_pending && s->lost < 0) || n > INT64_MAX - s->lost;

	if (!s->lost_pending)
		s->lost_cause = NRP_LOSS_OVERRUN;
	s->lost = unknown ? -1 : s->lost + n;
	s->lost_pending = true;
}

/* The same for damage at a file offset; the first place of a gap is kept. */
static void add_damage(struct nrp_stream *s, uint8_t cause, uint64_t offset)
{
	bool first = !s->lost_pending || s->lost_cause == NRP_LOSS_OVERRUN;

	add_lost(s, -1);
	if (first) {
		s->lost_cause = cause;
		s->lost_offset = offset;
	}
	if (!s->sum.damages++)
		s->sum.offset = offset;
}

static bool all_zero(const uint8_t *p, uint32_t size)
{
	return !size || (!*p && !memcmp(p, p + 1, size - 1));
}

/*
 * A page begins neither before the page in front of it nor after the one behind it: which of three
 * times is wrong shows if the other two are in order. The first page has two behind it.
 */
static bool bad_time(const struct nrp_tracefile *file, const struct nrp_stream *s)
{
	uint64_t next, second;

	if (!nrp_stream_peek64(file, s, 0, &next))
		return false;
	if (s->last_time)
		return next >= s->last_time && (s->time < s->last_time || s->time > next);
	return s->time > next && nrp_stream_peek64(file, s, s->page_size, &second) &&
	       second >= next && second < s->time;
}

/* What can be wrong with a page of which @commit bytes are used: none are is never written. */
static int check_page(const struct nrp_tracefile *file, const struct nrp_stream *s, uint32_t commit,
		      uint32_t size, struct nrp_error *err)
{
	if (!commit && (!s->time || !all_zero(s->page + s->next, size - s->next)))
		return nrp_damaged(file, err, s->page_offset, "page header is empty");
	if (bad_time(file, s))
		return nrp_damaged(file, err, s->page_offset,
				   "time of the page does not lie between those of its neighbours");
	return 0;
}

/* Understands the header of the page just read, of which @size bytes are there. */
static int start_page(struct nrp_tracefile *file, struct nrp_stream *s, uint32_t size,
		      struct nrp_error *err)
{
	uint32_t header = 8 + (uint32_t)file->long_size;
	uint64_t flags, stored = 0;
	uint32_t commit;
	int rc;

	if (size < header)
		return nrp_damaged(file, err, s->page_offset, "page of %u bytes", size);
	flags = load_long(file, s->page + 8);
	commit = (uint32_t)(flags & COMMIT_MASK);
	s->partial = s->cut && size < s->page_size && commit > size - header;
	if (commit > (s->partial ? s->page_size : size) - header)
		return nrp_damaged(file, err, s->page_offset,
				   "page says it holds %u bytes, there is room for %u", commit,
				   size - header);
	s->time = nrp_load64(s->page, file->big);
	s->next = header;
	rc = check_page(file, s, commit, size, err);
	if (rc)
		return rc;
	if ((flags & FLAG_MISSED) && (flags & FLAG_STORED) &&
	    commit + (uint32_t)file->long_size <= size - header)
		stored = load_long(file, s->page + header + commit);
	if (flags & FLAG_MISSED)
		add_lost(s, stored && stored <= INT64_MAX ? (int64_t)stored : -1);
	s->stop = s->partial ? header + (size - header) / 4 * 4 : header + commit;
	return 0;
}

/* The end of the data: 0, or damage if there should be more. */
static int end_of_data(const struct nrp_tracefile *file, struct nrp_stream *s,
		       struct nrp_error *err)
{
	bool other = s->events && !s->sum.damages && s->sum.events != s->events;

	if ((!s->cut && !other) || s->cut_told)
		return 0;
	s->cut_told = true;
	s->page_offset = s->end;
	if (!s->cut)
		return nrp_damaged(
			file, err, s->end,
			"data taken for those of CPU %u have %llu events instead of %llu", s->cpu,
			(unsigned long long)s->sum.events, (unsigned long long)s->events);
	if (s->want_end > s->end)
		return nrp_cut_short(file, s->end, "data of a CPU", s->want_end, err);
	return nrp_damaged(file, err, s->end, "data of CPU %u are missing", s->cpu);
}

/* The next page: 1, 0 at the end. */
static int next_page(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	uint32_t size;
	int rc = nrp_stream_page(file, s, &size, err);

	if (rc)
		return rc;
	if (!size)
		return end_of_data(file, s, err);
	rc = start_page(file, s, size, err);
	return rc ? rc : 1;
}

/*
 * The header of nearly every event is one word: type and length in 5 bits, and the time since the
 * one before it in 27, as the file's header_page describes it. False: of another type, or it does
 * not fit into the page; nothing has changed then.
 */
static bool decode_short(const struct nrp_tracefile *file, struct nrp_stream *s)
{
	uint32_t word, type, end;

	if (s->stop - s->next < 8)
		return false;
	word = nrp_load32(s->page + s->next, file->big);
	type = file->big ? word >> 27 : word & 31;
	end = s->next + 4 + 4 * type; /* length in words */
	if (!type || type > KBUFFER_TYPE_PADDING - 1 || end > s->stop)
		return false;
	s->time += file->big ? word & 0x7ffffff : word >> 5;
	s->event.data = s->page + s->next + 4;
	s->event.size = 4 * type;
	s->next = end;
	return true;
}

/*
 * Decodes the event header at s->next: 1 with s->event filled, 0 if it was a time stamp or
 * padding, < 0 if it does not fit into the page.
 */
static int decode(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	struct kbuffer_raw_info info = { .next = (void *)(s->page + s->next) };
	const uint8_t *next = NULL;
	int64_t end = -1;

	if (decode_short(file, s))
		return 1;
	if (s->stop - s->next >= 4 && kbuffer_raw_get(file->reader.kbuf, (void *)s->page, &info)) {
		next = info.next;
		end = next - s->page;
	}
	if (info.type == KBUFFER_TYPE_PADDING && !info.delta) {
		s->next = s->stop; /* the rest of the page is not used */
		return 0;
	}
	/* kbuffer's own sum may have gone backwards or beyond the page: nothing was read yet */
	if (end < (int64_t)s->next + 4 || end > s->stop || end % 4 || info.length < 0 ||
	    (!info.length && info.type < KBUFFER_TYPE_TIME_EXTEND)) {
		if (s->partial) { /* the event that the file ends in */
			s->next = s->stop;
			return 0;
		}
		return nrp_damaged(file, err, s->page_offset,
				   "event at byte %u of the page of CPU %u does not fit", s->next,
				   s->cpu);
	}
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

/* What the event says about those that are missing before it. */
static void say_lost(struct nrp_stream *s)
{
	struct nrp_raw_event *event = &s->event;

	event->lost_before = s->lost_pending;
	event->lost = s->lost;
	event->lost_since = s->lost_pending ? s->last_time : 0;
	if (!s->lost_pending)
		return;
	event->lost_cause = s->lost_cause;
	event->lost_offset = s->lost_cause == NRP_LOSS_OVERRUN ? 0 : s->lost_offset;
	s->sum.lost += s->lost > 0 ? (uint64_t)s->lost : 0;
	s->sum.gaps += s->lost < 0;
	s->lost_pending = false;
	s->lost = 0;
}

/* What the event says besides its data. */
static void finish_event(const struct nrp_tracefile *file, struct nrp_stream *s)
{
	struct nrp_raw_event *event = &s->event;

	event->time = s->time;
	event->id = nrp_load16(event->data, file->big);
	event->read_before = s->sum.events++;
	if (event->lost_before || s->lost_pending)
		say_lost(s);
	s->last_time = s->time;
}
/*
 * Decodes up to the next event in the page: 1, 0 if there is none, < 0 on damage. An event that
 * is older than the one before it is not taken, so that it comes again: what is pending then says
 * that it was reported.
 */
static int next_in_page(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	while (s->next < s->stop) {
		uint64_t time = s->time;
		uint32_t at = s->next;
		int rc = decode(file, s, err);

		if (rc < 0) {
			add_damage(s, NRP_LOSS_DAMAGED, s->page_offset);
			s->next = s->stop = 0;
			return rc;
		}
		if (!rc)
			continue;
		if (s->time >= s->last_time ||
		    (s->lost_pending && s->lost_cause != NRP_LOSS_OVERRUN)) {
			finish_event(file, s);
			return 1;
		}
		rc = nrp_damaged(file, err, s->page_offset, "time of CPU %u goes back by %llu",
				 s->cpu, (unsigned long long)(s->last_time - s->time));
		add_damage(s, NRP_LOSS_BACKWARDS, s->page_offset);
		s->next = at;
		s->time = time;
		return rc;
	}
	return 0;
}

int nrp_stream_next(struct nrp_tracefile *file, struct nrp_stream *s, struct nrp_error *err)
{
	int rc;

	for (;;) {
		rc = next_in_page(file, s, err);
		if (rc)
			return rc;
		rc = next_page(file, s, err);
		if (!rc)
			return 0;
		if (rc < 0) {
			s->next = s->stop = 0;
			add_damage(s, NRP_LOSS_DAMAGED, s->page_offset);
			return rc;
		}
	}
}

const struct nrp_cpu_reading *nrp_stream_reading(struct nrp_stream *s)
{
	s->sum.last_time = s->last_time;
	s->sum.lost_at_end = s->lost_pending;
	s->sum.end_cause = s->lost_cause;
	s->sum.end_lost = s->lost_pending ? s->lost : 0;
	s->sum.end_offset = s->lost_cause == NRP_LOSS_OVERRUN ? 0 : s->lost_offset;
	return &s->sum;
}
