/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace-cmd file taken apart into what versions 6 and 7 have in common, and put together
 * again. For cut_trace, bench_generate and tests that make files of their own. Files are in memory
 * as a whole, unless their pages come from a source.
 */
#ifndef NRP_TRACE_PARTS_H
#define NRP_TRACE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct nrp_blob {
	uint8_t *data; /* owned */
	size_t size;   /* bytes */
};

struct nrp_part_option {
	uint16_t id;
	struct nrp_blob data;
};

struct nrp_part_cpu {
	uint32_t cpu;
	struct nrp_blob pages; /* ring-buffer pages, uncompressed */
};

struct nrp_part_buffer {
	char *name;  /* of the instance, "" for the top one */
	char *clock; /* "" if not known */
	uint32_t page_size;
	struct nrp_part_cpu *cpus;
	size_t nr_cpus;
};

struct nrp_trace_parts {
	bool big; /* big-endian numbers */
	uint8_t long_size;
	uint32_t page_size;
	uint32_t cpu_count;
	struct nrp_blob header_info;     /* contents of section 16 */
	struct nrp_blob ftrace_formats;  /* of section 17 */
	struct nrp_blob event_formats;   /* of section 18 */
	struct nrp_blob cmdlines;        /* of section 21 */
	struct nrp_part_option *options; /* all but DONE, BUFFER and references to sections */
	size_t nr_options;
	struct nrp_part_buffer *buffers; /* the top instance first */
	size_t nr_buffers;
	size_t chunk_size; /* bytes of a compressed chunk; 0: ten pages, as trace-cmd has it */
	int zstd_level;    /* 0: 19, for small files */
};

enum nrp_packing { NRP_PACK_NONE, NRP_PACK_ZSTD };

/*
 * Reads a file that nrp_tracefile_open() accepts. NULL if it cannot; *@ret_why is the reason.
 */
struct nrp_trace_parts *nrp_parts_read(const char *path, const char **ret_why);
/* The same without the pages; its CPUs are there, each with no data. */
struct nrp_trace_parts *nrp_parts_read_headers(const char *path, const char **ret_why);
struct nrp_trace_parts *nrp_parts_free(struct nrp_trace_parts *parts);

/* The low @bytes (up to 8) of a number. */
void nrp_store_number(uint8_t *out, uint64_t value, unsigned int bytes, bool big);
/* Appends copies; these functions and the ones below return false when memory is short. */
bool nrp_blob_append(struct nrp_blob *blob, const void *data, size_t size);
bool nrp_blob_number(struct nrp_blob *blob, uint64_t value, unsigned int bytes, bool big);
bool nrp_parts_add_option(struct nrp_trace_parts *parts, uint16_t id, const void *data,
			  size_t size);
struct nrp_part_buffer *nrp_parts_add_buffer(struct nrp_trace_parts *parts, const char *name,
					     const char *clock, uint32_t page_size);
/* Removes the last instance; there must be one. */
void nrp_parts_drop_buffer(struct nrp_trace_parts *parts);
struct nrp_part_cpu *nrp_parts_add_cpu(struct nrp_part_buffer *buffer, uint32_t cpu);

/* The bytes of a file of version 6, or of version 7 packed as asked; empty blob: no memory. */
struct nrp_blob nrp_parts_write_v6(const struct nrp_trace_parts *parts);
struct nrp_blob nrp_parts_write_v7(const struct nrp_trace_parts *parts, enum nrp_packing packing);

/* Where the pages of a file come from that is too large for memory. */
struct nrp_page_source {
	/*
	 * The next pages of CPU @cpu (index) of instance @buffer, at most a chunk, valid until the
	 * next call; size 0 at the end of this CPU, after which the next CPU is asked for. False
	 * if there was an error.
	 */
	bool (*next)(struct nrp_page_source *source, size_t buffer, size_t cpu,
		     struct nrp_blob *ret);
};

/* Writes a file of version 6 or 7 to @file, which can seek and is empty. False on errors. */
bool nrp_parts_write(const struct nrp_trace_parts *parts, int version, enum nrp_packing packing,
		     struct nrp_page_source *pages, FILE *file);

#endif
