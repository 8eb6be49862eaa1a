/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/textlines.h"
#include "capture/textline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#define BUFFER (512u << 10)       /* bytes; more than two of the longest line */
#define PACKED (64u << 10)        /* bytes of compressed data at a time */
#define FREE_INFLATION (64 << 20) /* bytes: below that the ratio does not matter */

struct nrp_textlines {
	const char *path; /* for errors */
	char *path_copy;
	int fd;
	off_t start; /* of the text in fd */
	bool gzip;
	z_stream z;
	bool z_open, z_end; /* z_end: a gzip member is complete */
	uint8_t *packed;
	uint64_t packed_bytes; /* read so far */

	char *buffer;
	size_t pos, fill; /* the part of the buffer that is not consumed */
	bool eof;
	bool skipping;  /* inside a line that was too long */
	uint64_t bytes; /* of text read into the buffer so far */
	XXH3_state_t *hash;
};

static int read_failed(const struct nrp_textlines *l, struct nrp_error *err)
{
	return nrp_fail(err, NRP_INPUT, -errno, l->path, -1, "check the disk", "cannot be read: %s",
			strerror(errno));
}

/* Up to @size bytes of the file, 0 at its end, < 0. */
static ssize_t read_file(struct nrp_textlines *l, void *buf, size_t size, struct nrp_error *err)
{
	ssize_t n;

	do
		n = read(l->fd, buf, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? read_failed(l, err) : n;
}

static int damaged(const struct nrp_textlines *l, const char *what, struct nrp_error *err)
{
	return nrp_fail(err, NRP_INPUT, -EBADMSG, l->path, (int64_t)l->packed_bytes,
			"copy the file again, or compress it again", "%s", what);
}

/* More compressed data; 0 at the end of the file. */
static int refill(struct nrp_textlines *l, struct nrp_error *err)
{
	ssize_t n = read_file(l, l->packed, PACKED, err);

	if (n <= 0)
		return (int)n;
	l->z.next_in = l->packed;
	l->z.avail_in = (unsigned int)n;
	l->packed_bytes += (uint64_t)n;
	return 1;
}

/* Decompresses up to @size bytes; a file may hold several gzip members. */
static ssize_t read_gzip(struct nrp_textlines *l, char *buf, size_t size, struct nrp_error *err)
{
	l->z.next_out = (unsigned char *)buf;
	l->z.avail_out = (unsigned int)size;
	while (l->z.avail_out == size) {
		int r;

		if (!l->z.avail_in) {
			r = refill(l, err);
			if (r < 0)
				return r;
			if (r == 0)
				return l->z_end ? 0
						: damaged(l, "compressed data is cut short", err);
		}
		if (l->z_end && inflateReset(&l->z) != Z_OK)
			return nrp_fail_nomem(err);
		l->z_end = false;
		r = inflate(&l->z, Z_NO_FLUSH);
		if (r == Z_MEM_ERROR)
			return nrp_fail_nomem(err);
		if (r == Z_STREAM_END)
			l->z_end = true;
		else if (r != Z_OK && r != Z_BUF_ERROR)
			return damaged(l, "compressed data is damaged", err);
	}
	return (ssize_t)(size - l->z.avail_out);
}

/* Fills the buffer behind what is not consumed: bytes read, 0 at the end, < 0. */
static ssize_t fill(struct nrp_textlines *l, struct nrp_error *err)
{
	ssize_t n;

	if (l->pos) {
		memmove(l->buffer, l->buffer + l->pos, l->fill - l->pos);
		l->fill -= l->pos;
		l->pos = 0;
	}
	n = l->gzip ? read_gzip(l, l->buffer + l->fill, BUFFER - l->fill, err)
		    : read_file(l, l->buffer + l->fill, BUFFER - l->fill, err);
	if (n <= 0) {
		l->eof = n == 0;
		return n;
	}
	XXH3_128bits_update(l->hash, l->buffer + l->fill, (size_t)n);
	l->fill += (size_t)n;
	l->bytes += (uint64_t)n;
	if (l->bytes > (uint64_t)NRP_MAX_TEXT)
		return nrp_fail(err, NRP_INPUT, -EFBIG, l->path, -1, "record less at a time",
				"has more than 1 TiB of text");
	if (l->gzip && l->bytes > FREE_INFLATION && l->bytes / NRP_MAX_INFLATION > l->packed_bytes)
		return nrp_fail(err, NRP_INPUT, -EFBIG, l->path, -1,
				"decompress it first, if it is what you think",
				"decompresses to more than %d times its size: no trace does",
				NRP_MAX_INFLATION);
	return n;
}

/* Copies standard input to a file without a name. */
static int spool(int *ret, const char *path, struct nrp_error *err)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *buf = malloc(PACKED);
	ssize_t n = 0;
	int64_t size = 0;

	while (fd >= 0 && buf && size <= NRP_MAX_TEXT) {
		n = read(STDIN_FILENO, buf, PACKED);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || write(fd, buf, (size_t)n) != n)
			break;
		size += n;
	}
	free(buf);
	if (fd >= 0 && buf && n == 0) {
		*ret = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	if (!buf)
		return nrp_fail_nomem(err);
	return nrp_fail(err, NRP_INTERNAL, errno ? -errno : -ENOSPC, path, -1,
			"name a folder with room in TMPDIR, or a file instead of -",
			"standard input cannot be kept in a temporary file: %s",
			strerror(errno ? errno : ENOSPC));
}

static int open_fd(struct nrp_textlines *l, struct nrp_error *err)
{
	bool is_stdin = !strcmp(l->path, "-");
	struct stat st;
	int r;

	/* A FIFO would wait for somebody who writes. */
	l->fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
			 : open(l->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (l->fd < 0 || fstat(l->fd, &st) < 0)
		return nrp_fail(err, NRP_INPUT, -errno, l->path, -1, "name a readable file", "%s",
				strerror(errno));
	if (S_ISREG(st.st_mode)) {
		l->start = is_stdin ? lseek(l->fd, 0, SEEK_CUR) : 0;
		return 0;
	}
	if (!is_stdin)
		return nrp_fail(err, NRP_INPUT, -EINVAL, l->path, -1,
				"name a plain file, or give a pipe's data to -",
				S_ISDIR(st.st_mode) ? "is a directory" : "is not a plain file");
	close(l->fd);
	l->fd = -1;
	errno = 0;
	r = spool(&l->fd, l->path, err);
	return r;
}

int nrp_textlines_open(struct nrp_textlines **ret, const char *path, struct nrp_error *err)
{
	struct nrp_textlines *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return nrp_fail_nomem(err);
	l->fd = -1;
	l->path_copy = strdup(path);
	l->path = l->path_copy;
	l->buffer = malloc(BUFFER);
	l->packed = malloc(PACKED);
	l->hash = XXH3_createState();
	r = l->path && l->buffer && l->packed && l->hash ? open_fd(l, err) : nrp_fail_nomem(err);
	if (r == 0)
		r = nrp_textlines_rewind(l, err);
	if (r < 0) {
		nrp_textlines_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct nrp_textlines *nrp_textlines_close(struct nrp_textlines *l)
{
	if (!l)
		return NULL;
	if (l->z_open)
		inflateEnd(&l->z);
	if (l->fd >= 0)
		close(l->fd);
	XXH3_freeState(l->hash);
	free(l->packed);
	free(l->buffer);
	free(l->path_copy);
	free(l);
	return NULL;
}

int nrp_textlines_rewind(struct nrp_textlines *l, struct nrp_error *err)
{
	uint8_t magic[2] = { 0 };

	if (pread(l->fd, magic, 2, l->start) < 0 || lseek(l->fd, l->start, SEEK_SET) < 0)
		return read_failed(l, err);
	l->gzip = magic[0] == 0x1f && magic[1] == 0x8b;
	if (l->gzip && !l->z_open) {
		if (inflateInit2(&l->z, 15 + 16) != Z_OK) /* a window of 32 KiB, gzip's header */
			return nrp_fail_nomem(err);
		l->z_open = true;
	} else if (l->gzip && inflateReset(&l->z) != Z_OK) {
		return nrp_fail_nomem(err);
	}
	l->z.avail_in = 0;
	l->z_end = false;
	l->packed_bytes = 0;
	l->pos = 0;
	l->fill = 0;
	l->eof = false;
	l->skipping = false;
	l->bytes = 0;
	XXH3_128bits_reset(l->hash);
	return 0;
}

int64_t nrp_textlines_peek(struct nrp_textlines *l, char *buf, size_t size, struct nrp_error *err)
{
	while (l->fill - l->pos < size && !l->eof) {
		ssize_t n = fill(l, err);

		if (n < 0)
			return n;
	}
	if (size > l->fill - l->pos)
		size = l->fill - l->pos;
	memcpy(buf, l->buffer + l->pos, size);
	return (int64_t)size;
}

/* The rest of a line that was too long. */
static int skip_rest(struct nrp_textlines *l, struct nrp_error *err)
{
	while (l->skipping) {
		char *end = memchr(l->buffer + l->pos, '\n', l->fill - l->pos);
		ssize_t n;

		l->pos = end ? (size_t)(end + 1 - l->buffer) : l->fill;
		if (end)
			l->skipping = false;
		else if ((n = fill(l, err)) <= 0)
			return (int)n;
	}
	return 1;
}

uint64_t nrp_textlines_offset(const struct nrp_textlines *l)
{
	return l->bytes - (l->fill - l->pos);
}

int nrp_textlines_next(struct nrp_textlines *l, struct nrp_line_piece *ret, struct nrp_error *err)
{
	size_t seen = 0;
	char *end;
	int r = skip_rest(l, err);

	if (r <= 0)
		return r;
	while (!(end = memchr(l->buffer + l->pos + seen, '\n', l->fill - l->pos - seen))) {
		ssize_t n;

		seen = l->fill - l->pos;
		if (seen > NRP_MAX_TEXT_LINE || l->eof)
			break;
		n = fill(l, err);
		if (n < 0)
			return (int)n;
	}
	if (!end && l->eof && !seen)
		return 0;
	ret->at = l->buffer + l->pos;
	ret->offset = nrp_textlines_offset(l);
	ret->size = end ? (size_t)(end - ret->at) : seen;
	ret->cut = !end && l->eof && ret->size <= NRP_MAX_TEXT_LINE;
	ret->too_long = ret->size > NRP_MAX_TEXT_LINE;
	l->skipping = !end && ret->too_long;
	l->pos += end ? ret->size + 1 : ret->size;
	if (ret->too_long)
		ret->size = NRP_MAX_TEXT_LINE;
	return 1;
}

void nrp_textlines_hash(const struct nrp_textlines *l, uint8_t ret[32])
{
	XXH128_canonical_t canonical;

	memset(ret, 0, 32);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(l->hash));
	memcpy(ret, canonical.digest, sizeof(canonical.digest));
	for (size_t i = 0; i < 8; i++)
		ret[sizeof(canonical.digest) + i] = (uint8_t)(l->bytes >> (8 * i));
}
