/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bounded reading of numbers and texts from memory that nobody has checked. A cursor that
 * meets the end, or a text without its NUL, stays failed: later reads give 0 or NULL, so that
 * a parser may read several fields and look at @state once.
 */
#ifndef NRP_BYTES_H
#define NRP_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum nrp_cursor_state {
	NRP_CURSOR_OK,
	NRP_CURSOR_SHORT, /* a read went beyond the end: @need bytes were wanted */
	NRP_CURSOR_BAD,   /* a text is longer than its limit */
};

struct nrp_cursor {
	const uint8_t *data;
	uint64_t size; /* bytes of data */
	uint64_t pos;  /* bytes consumed */
	uint64_t base; /* offset of data in the file */
	bool in_file;  /* data is a part of the file; false: decompressed, offsets are @base */
	bool big;      /* numbers are big-endian */
	enum nrp_cursor_state state;
	uint64_t need; /* with NRP_CURSOR_SHORT: bytes of data the failed read wanted */
};

static inline uint16_t nrp_load16(const uint8_t *p, bool big)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return big ? be16toh(v) : le16toh(v);
}

static inline uint32_t nrp_load32(const uint8_t *p, bool big)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return big ? be32toh(v) : le32toh(v);
}

static inline uint64_t nrp_load64(const uint8_t *p, bool big)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return big ? be64toh(v) : le64toh(v);
}

/* The next @n bytes, or NULL. */
static inline const uint8_t *nrp_cursor_take(struct nrp_cursor *c, uint64_t n)
{
	const uint8_t *p = c->data + c->pos;

	if (c->state != NRP_CURSOR_OK)
		return NULL;
	if (n > c->size - c->pos) {
		c->state = NRP_CURSOR_SHORT;
		c->need = n > UINT64_MAX - c->pos ? UINT64_MAX : c->pos + n;
		return NULL;
	}
	c->pos += n;
	return p;
}

static inline uint8_t nrp_cursor_u8(struct nrp_cursor *c)
{
	const uint8_t *p = nrp_cursor_take(c, 1);

	return p ? *p : 0;
}

static inline uint16_t nrp_cursor_u16(struct nrp_cursor *c)
{
	const uint8_t *p = nrp_cursor_take(c, 2);

	return p ? nrp_load16(p, c->big) : 0;
}

static inline uint32_t nrp_cursor_u32(struct nrp_cursor *c)
{
	const uint8_t *p = nrp_cursor_take(c, 4);

	return p ? nrp_load32(p, c->big) : 0;
}

static inline uint64_t nrp_cursor_u64(struct nrp_cursor *c)
{
	const uint8_t *p = nrp_cursor_take(c, 8);

	return p ? nrp_load64(p, c->big) : 0;
}

/* The NUL-terminated text that starts here, at most @max bytes without the NUL, or NULL. */
static inline const char *nrp_cursor_text(struct nrp_cursor *c, uint64_t max)
{
	uint64_t left = c->size - c->pos;
	uint64_t window = left <= max ? left : max + 1;
	const uint8_t *start = c->data + c->pos;
	const uint8_t *nul;

	if (c->state != NRP_CURSOR_OK)
		return NULL;
	nul = window ? memchr(start, 0, window) : NULL;
	if (nul) {
		c->pos += (uint64_t)(nul - start) + 1;
		return (const char *)start;
	}
	if (window > max) {
		c->state = NRP_CURSOR_BAD;
		return NULL;
	}
	c->state = NRP_CURSOR_SHORT;
	c->need = c->size + 1;
	return NULL;
}

/* File offset of the next byte; of the whole section if it was decompressed. */
static inline uint64_t nrp_cursor_offset(const struct nrp_cursor *c)
{
	return c->in_file ? c->base + c->pos : c->base;
}

#endif
