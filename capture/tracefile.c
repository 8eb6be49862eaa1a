/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening and closing of trace-cmd files, and what was learned from their headers. */
#include "capture/tracefile_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "\x17\x08\x44tracing"
#define MAGIC_SIZE 10
#define MAX_VERSION 8          /* bytes of the version text */
#define HASH_STEP (128u << 10) /* bytes read and hashed at once: they stay in the cache */
#define REMEDY_NAME "name a trace-cmd file"
#define REMEDY_OTHER "record with trace-cmd, or name another file"

static int map_file(struct nrp_tracefile *file, int fd, struct nrp_error *err)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st) < 0)
		return nrp_fail(err, NRP_INPUT, -errno, file->path, -1, "", "%s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return nrp_fail(err, NRP_INPUT, -EISDIR, file->path, -1, REMEDY_NAME,
				"is a directory");
	if (!S_ISREG(st.st_mode))
		return nrp_fail(err, NRP_INPUT, -EINVAL, file->path, -1, REMEDY_NAME,
				"is not a regular file");
	if (!st.st_size)
		return nrp_fail(err, NRP_INPUT, -ENODATA, file->path, 0, NRP_REMEDY_COPY,
				"the file is empty");
	if ((uintmax_t)st.st_size > SIZE_MAX)
		return nrp_fail(err, NRP_INPUT, -EFBIG, file->path, -1, "", "too large to map");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return nrp_fail(err, errno == ENOMEM ? NRP_INTERNAL : NRP_INPUT, -errno, file->path,
				-1, "", "cannot map: %s", strerror(errno));
	file->map = map;
	file->size = (uint64_t)st.st_size;
	return 0;
}

static int open_and_map(struct nrp_tracefile *file, struct nrp_error *err)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return nrp_fail(err, NRP_INPUT, -errno, file->path, -1,
				errno == EACCES ? "make it readable" : REMEDY_NAME,
				"cannot open: %s", strerror(errno));
	file->fd = fd;
	return map_file(file, fd, err);
}

static int read_version(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	uint64_t at = nrp_cursor_offset(c);
	const char *text = nrp_cursor_text(c, MAX_VERSION);
	char *end;
	long version;

	if (c->state == NRP_CURSOR_SHORT)
		return nrp_cursor_check(file, c, "file header", err);
	version = text && *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
	if (version < 0 || *end)
		return nrp_damaged(file, err, at, "version of the file is not a number");
	if (version != 6 && version != 7)
		return nrp_fail(
			err, NRP_INPUT, -ENOTSUP, file->path, (int64_t)at,
			"convert it with trace-cmd convert --file-version 7",
			"trace-cmd file version %ld is %s than this numareplay reads (6, 7)",
			version, version > 7 ? "newer" : "older");
	file->version = (int)version;
	return 0;
}

/* Everything in front of the parts that differ between versions. */
static int read_file_header(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err)
{
	uint64_t known = file->size < MAGIC_SIZE ? file->size : MAGIC_SIZE;
	uint8_t endian, long_size;
	uint64_t at;
	int rc;

	if (memcmp(file->map, MAGIC, known))
		return nrp_fail(err, NRP_INPUT, -EBADMSG, file->path, 0, REMEDY_OTHER,
				"not a trace-cmd file");
	nrp_cursor_take(c, MAGIC_SIZE);
	rc = read_version(file, c, err);
	if (rc)
		return rc;
	at = c->pos;
	endian = nrp_cursor_u8(c);
	long_size = nrp_cursor_u8(c);
	c->big = endian == 1;
	file->page_size = nrp_cursor_u32(c);
	rc = nrp_cursor_check(file, c, "file header", err);
	if (rc)
		return rc;
	if (endian > 1)
		return nrp_damaged(file, err, at, "byte order %u is unknown", endian);
	if (long_size != 4 && long_size != 8)
		return nrp_damaged(file, err, at + 1, "words of %u bytes", long_size);
	file->big = c->big;
	file->long_size = long_size;
	return nrp_tracefile_check_page_size(file, file->page_size, at + 2, err);
}

/* Is there a format of an event, not only of what the kernel's tracers print? */
static bool has_event_format(const struct nrp_tracefile *file)
{
	size_t i;

	for (i = 0; i < file->nr_formats; i++) {
		if (strcmp(file->formats[i].system, "ftrace"))
			return true;
	}
	return false;
}

static int read_headers(struct nrp_tracefile *file, struct nrp_error *err)
{
	struct nrp_cursor c = { .data = file->map, .size = file->size, .in_file = true };
	int rc = read_file_header(file, &c, err);

	if (rc)
		return rc;
	rc = file->version == 6 ? nrp_tracefile_read_v6(file, &c, err)
				: nrp_tracefile_read_v7(file, &c, err);
	if (rc)
		return rc;
	if (file->damages && (!file->nr_streams || !has_event_format(file))) {
		if (err)
			*err = file->damage;
		return file->damage.code;
	}
	if (!file->nr_streams && file->has_text_buffer)
		return nrp_fail(err, NRP_INPUT, -ENOTSUP, file->path, -1,
				"record events with trace-cmd record",
				"holds the text of a latency trace and no events");
	if (file->has_data_clock && file->data_clock[0])
		memcpy(file->clock, file->data_clock, sizeof(file->clock));
	return 0;
}

static int open_file(struct nrp_tracefile **ret, const char *path, bool salvage,
		     struct nrp_error *err)
{
	struct nrp_tracefile *file = calloc(1, sizeof(*file));
	int rc;

	if (!file)
		return nrp_fail_nomem(err);
	file->salvage = salvage;
	file->fd = -1;
	file->path = strdup(path);
	rc = file->path ? open_and_map(file, err) : nrp_fail_nomem(err);
	if (!rc)
		rc = read_headers(file, err);
	if (!rc)
		rc = nrp_page_reader_init(&file->reader, file, err);
	if (!rc) {
		file->heap = calloc(file->nr_streams ? file->nr_streams : 1, sizeof(*file->heap));
		if (!file->heap)
			rc = nrp_fail_nomem(err);
	}
	if (rc) {
		nrp_tracefile_close(file);
		return rc;
	}
	nrp_tracefile_rewind(file);
	*ret = file;
	return 0;
}

int nrp_tracefile_open(struct nrp_tracefile **ret, const char *path, struct nrp_error *err)
{
	return open_file(ret, path, false, err);
}

int nrp_tracefile_salvage(struct nrp_tracefile **ret, const char *path, struct nrp_error *err)
{
	return open_file(ret, path, true, err);
}

struct nrp_tracefile *nrp_tracefile_close(struct nrp_tracefile *file)
{
	size_t i;

	if (!file)
		return NULL;
	for (i = 0; i < file->nr_streams; i++)
		nrp_stream_done(&file->streams[i]);
	for (i = 0; i < file->nr_formats; i++)
		free((void *)file->formats[i].system);
	nrp_page_reader_done(&file->reader);
	nrp_libtracecmd_free(file->libtracecmd);
	if (file->map)
		munmap((void *)file->map, (size_t)file->size);
	if (file->fd >= 0)
		close(file->fd);
	free(file->streams);
	free(file->formats);
	free(file->stats);
	free(file->sections);
	free(file->heap);
	free(file->uname);
	free(file->path);
	free(file);
	return NULL;
}

int nrp_tracefile_check_page_size(const struct nrp_tracefile *file, uint32_t page_size, uint64_t at,
				  struct nrp_error *err)
{
	if (page_size < NRP_MIN_PAGE || page_size > NRP_MAX_PAGE || page_size % 8)
		return nrp_damaged(file, err, at, "pages of %u bytes", page_size);
	return 0;
}

static int reserve_stream(struct nrp_tracefile *file, uint64_t at, struct nrp_error *err)
{
	struct nrp_stream *grown;
	size_t n = file->nr_streams;

	if (n >= NRP_MAX_STREAMS)
		return nrp_damaged(file, err, at, "data of more than %u CPUs", NRP_MAX_STREAMS);
	if (n && (n < 16 || (n & (n - 1)) != 0))
		return 0; /* room is doubled at powers of two, from 16 on */
	grown = reallocarray(file->streams, n ? 2 * n : 16, sizeof(*grown));
	if (!grown)
		return nrp_fail_nomem(err);
	file->streams = grown;
	return 0;
}

static int add_stream(struct nrp_tracefile *file, const struct nrp_stream *stream, uint64_t at,
		      struct nrp_error *err)
{
	int rc = reserve_stream(file, at, err);

	if (rc)
		return rc;
	file->stream_bytes += stream->end - stream->start;
	if (stream->cpu >= file->cpus)
		file->cpus = stream->cpu + 1;
	file->streams[file->nr_streams++] = *stream;
	return 0;
}

/* Can @data be where their description says? */
static int check_place(struct nrp_tracefile *file, const struct nrp_cpu_data *data, uint64_t at,
		       struct nrp_error *err)
{
	if (data->offset > data->limit || data->size > data->limit - data->offset)
		return nrp_damaged(file, err, at, "data of CPU %u outside its section", data->cpu);
	if (data->size > file->size - file->stream_bytes)
		return nrp_damaged(file, err, at, "data of CPU %u overlaps that of others",
				   data->cpu);
	return 0;
}

static struct nrp_stream stream_of(const struct nrp_tracefile *file,
				   const struct nrp_cpu_data *data)
{
	return (struct nrp_stream){
		.cpu = data->cpu,
		.page_size = data->page_size,
		.rank = data->rank,
		.compressed = data->compressed,
		.start = data->offset,
		.end = data->offset + data->size,
		.limit = data->limit < file->size ? data->limit : file->size,
		.want_end = data->want_end,
		.cut = data->want_end > data->offset + data->size,
		.events = data->events,
	};
}

/* What the file has of data that reach beyond its end. */
static int add_cut_cpu(struct nrp_tracefile *file, const struct nrp_cpu_data *data, uint64_t at,
		       struct nrp_error *err)
{
	struct nrp_cpu_data rest = *data;
	struct nrp_stream stream;

	rest.want_end =
		data->size > UINT64_MAX - data->offset ? UINT64_MAX : data->offset + data->size;
	if (!file->salvage)
		return nrp_cut_short(file, at, "data of a CPU", rest.want_end, err);
	if (data->offset < file->size) {
		rest.size = file->size - data->offset;
		return nrp_tracefile_add_cpu(file, &rest, at, err);
	}
	rest.offset = file->size;
	rest.size = 0;
	rest.compressed = false; /* nothing there, not even the number of chunks */
	stream = stream_of(file, &rest);
	return add_stream(file, &stream, at, err);
}

int nrp_tracefile_add_cpu(struct nrp_tracefile *file, const struct nrp_cpu_data *data, uint64_t at,
			  struct nrp_error *err)
{
	struct nrp_error damage = NRP_ERROR_INIT;
	struct nrp_stream stream;
	int rc;

	if (data->cpu >= NRP_MAX_CPUS)
		return nrp_damaged(file, err, at, "CPU id %u, the limit is %d", data->cpu,
				   NRP_MAX_CPUS - 1);
	if (!data->size)
		return 0;
	if (data->offset > file->size || data->size > file->size - data->offset)
		return add_cut_cpu(file, data, at, err);
	rc = check_place(file, data, at, &damage);
	if (rc) {
		rc = nrp_tracefile_tolerate(file, rc, &damage, err);
		return rc ? rc : nrp_tracefile_lose_cpu(file, data->cpu, data->rank, at, err);
	}
	stream = stream_of(file, data);
	return add_stream(file, &stream, at, err);
}

int nrp_tracefile_lose_cpu(struct nrp_tracefile *file, uint32_t cpu, uint32_t rank, uint64_t at,
			   struct nrp_error *err)
{
	return add_stream(file,
			  &(struct nrp_stream){
				  .cpu = cpu,
				  .page_size = file->page_size,
				  .rank = rank,
				  .start = at,
				  .end = at,
				  .limit = at,
				  .cut = true,
			  },
			  at, err);
}

int nrp_tracefile_lose_instance(struct nrp_tracefile *file, uint32_t rank, uint64_t at,
				struct nrp_error *err)
{
	uint32_t cpu = 0;
	int rc;

	do
		rc = nrp_tracefile_lose_cpu(file, cpu, rank, at, err);
	while (!rc && ++cpu < file->cpu_count);
	return rc;
}

int nrp_tracefile_tolerate(struct nrp_tracefile *file, int rc, const struct nrp_error *damage,
			   struct nrp_error *err)
{
	if (!rc)
		return 0;
	if (file->salvage && damage->status == NRP_INPUT && rc != -ENOTSUP) {
		if (!file->damages++)
			file->damage = *damage;
		return 0;
	}
	if (err && err->status == NRP_DONE)
		*err = *damage;
	return rc;
}

uint64_t nrp_tracefile_damage(const struct nrp_tracefile *file, struct nrp_error *ret)
{
	if (file->damages)
		*ret = file->damage;
	return file->damages;
}

bool nrp_tracefile_lost_formats(const struct nrp_tracefile *file, uint64_t *ret_offset)
{
	if (file->lost_formats)
		*ret_offset = file->lost_formats_offset;
	return file->lost_formats;
}

const struct nrp_cpu_reading *nrp_tracefile_reading(struct nrp_tracefile *file, size_t i)
{
	return i < file->nr_streams ? nrp_stream_reading(&file->streams[i]) : NULL;
}

int nrp_tracefile_data_clock(struct nrp_tracefile *file, const char *clock, uint64_t at,
			     struct nrp_error *err)
{
	size_t size = strlen(clock);

	if (file->has_data_clock && strcmp(file->data_clock, clock))
		return nrp_fail(
			err, NRP_INPUT, -ENOTSUP, file->path, (int64_t)at,
			"record all instances with the same clock",
			"instances use different clocks, their events have no common order");
	if (size > NRP_MAX_NAME)
		return nrp_damaged(file, err, at, "name of a clock has %zu bytes", size);
	memcpy(file->data_clock, clock, size + 1);
	file->has_data_clock = true;
	return 0;
}

const char *nrp_tracefile_path(const struct nrp_tracefile *file)
{
	return file->path;
}

int nrp_tracefile_version(const struct nrp_tracefile *file)
{
	return file->version;
}

bool nrp_tracefile_swapped(const struct nrp_tracefile *file)
{
	return file->big != (__BYTE_ORDER == __BIG_ENDIAN);
}

int nrp_tracefile_long_size(const struct nrp_tracefile *file)
{
	return file->long_size;
}

uint32_t nrp_tracefile_page_size(const struct nrp_tracefile *file)
{
	return file->page_size;
}

const char *nrp_tracefile_uname(const struct nrp_tracefile *file)
{
	return file->uname ? file->uname : "";
}

const char *nrp_tracefile_clock(const struct nrp_tracefile *file)
{
	return file->clock;
}

uint32_t nrp_tracefile_cpus(const struct nrp_tracefile *file)
{
	return file->cpus > file->cpu_count ? file->cpus : file->cpu_count;
}

size_t nrp_tracefile_nr_formats(const struct nrp_tracefile *file)
{
	return file->nr_formats;
}

const struct nrp_event_format *nrp_tracefile_format(const struct nrp_tracefile *file, size_t i)
{
	return i < file->nr_formats ? &file->formats[i] : NULL;
}

size_t nrp_tracefile_nr_cpu_stats(const struct nrp_tracefile *file)
{
	return file->nr_stats;
}

const struct nrp_cpu_stat *nrp_tracefile_cpu_stat(const struct nrp_tracefile *file, size_t i)
{
	return i < file->nr_stats ? &file->stats[i] : NULL;
}

int nrp_tracefile_hash(const struct nrp_tracefile *file, uint8_t ret[32], struct nrp_error *err)
{
	XXH3_state_t *state = XXH3_createState();
	uint8_t *buf = malloc(HASH_STEP);
	XXH128_canonical_t canonical;
	uint64_t length = htole64(file->size), pos = 0;
	ssize_t n = 1;

	if (state && buf) {
		XXH3_128bits_reset(state);
		while (pos < file->size && (n = pread(file->fd, buf, HASH_STEP, (off_t)pos)) > 0) {
			XXH3_128bits_update(state, buf, (size_t)n);
			pos += (uint64_t)n;
		}
		XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
		memset(ret, 0, 32);
		memcpy(ret, canonical.digest, sizeof(canonical.digest));
		memcpy(ret + 16, &length, sizeof(length));
	} else {
		n = -1;
		errno = ENOMEM;
	}
	XXH3_freeState(state);
	free(buf);
	if (n < 0 && errno == ENOMEM)
		return nrp_fail_nomem(err);
	if (n < 0)
		return nrp_fail(err, NRP_INPUT, -EIO, file->path, (int64_t)pos, NRP_REMEDY_COPY,
				"cannot read: %s", strerror(errno));
	return pos == file->size ? 0 : nrp_damaged(file, err, pos, NRP_SHRANK);
}
