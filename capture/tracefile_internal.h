/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the trace-file reader share: tracefile.c opens and closes, tracefile_v6.c
 * and tracefile_v7.c find the parts of a file, tracefile_meta.c understands them (header,
 * formats, options), tracefile_salvage.c finds CPU data whose table is missing, chunks.c gives
 * the bytes of one CPU's ring-buffer pages, pages.c walks them, merge.c merges the CPUs.
 */
#ifndef NRP_TRACEFILE_INTERNAL_H
#define NRP_TRACEFILE_INTERNAL_H

#include "capture/bytes.h"
#include "capture/pages.h"
#include "capture/tracefile.h"
#include "numareplay/record.h"

/*
 * Limits on what a file may claim. Each is far above what trace-cmd writes, and keeps a
 * damaged number from becoming an allocation or a loop.
 */
#define NRP_MAX_FILE_SECTIONS 65536         /* sections of a v7 file; ten are usual */
#define NRP_MAX_SECTION (256u << 20)        /* bytes of a decompressed section; kallsyms: 8 MiB */
#define NRP_MAX_OPTIONS (1u << 20)          /* options of a file; one per CPU and a dozen */
#define NRP_MAX_OPTION_TEXT 65536           /* bytes of an option's text that is kept */
#define NRP_MAX_FORMATS 65536               /* event formats; an event id has 16 bits */
#define NRP_MAX_FORMAT_TEXT (1u << 20)      /* bytes of one event format */
#define NRP_MAX_NAME 255                    /* bytes of a system, event, instance or clock name */
#define NRP_MIN_PAGE 512                    /* bytes of a ring-buffer page */
#define NRP_MAX_PAGE (4u << 20)             /* the kernel's own limit is 1 MiB */
#define NRP_MAX_STREAMS (4u * NRP_MAX_CPUS) /* CPUs of all instances together */

#define NRP_SHRANK "the file became shorter while it was read"
#define NRP_REMEDY_COPY "copy the file again, or record it again"

/* Option ids (trace-cmd.dat.v7(5)); ids from 16 on are also the ids of the sections. */
enum nrp_option {
	NRP_OPTION_DONE = 0,
	NRP_OPTION_CPUSTAT = 2,
	NRP_OPTION_BUFFER = 3,
	NRP_OPTION_TRACECLOCK = 4,
	NRP_OPTION_UNAME = 5,
	NRP_OPTION_CPUCOUNT = 8,
	NRP_OPTION_STRINGS = 15,
	NRP_OPTION_HEADER_INFO = 16,
	NRP_OPTION_FTRACE_EVENTS = 17,
	NRP_OPTION_EVENT_FORMATS = 18,
	NRP_OPTION_KALLSYMS = 19,
	NRP_OPTION_PRINTK = 20,
	NRP_OPTION_CMDLINES = 21,
	NRP_OPTION_BUFFER_TEXT = 22,
};

/* A section of a v7 file. */
struct nrp_section {
	uint16_t id, flags;
	uint32_t string;     /* offset of the name in the strings sections */
	uint64_t at;         /* of the header in the file */
	uint64_t start, end; /* of the data in the file */
	uint64_t want_end;   /* > end: the file ends in it (sections of CPU data, salvage only) */
	bool has_table;      /* a table says where in it the CPUs' data are */
};
#define NRP_SECTION_COMPRESSED 1 /* flag */

struct nrp_libtracecmd;

struct nrp_merge_entry {
	uint64_t time;
	struct nrp_stream *stream;
};

struct nrp_tracefile {
	char *path;
	int fd;
	const uint8_t
		*map;  /* the whole file, read-only: for headers and the search behind damage */
	uint64_t size; /* bytes of map */
	int version;
	bool big;      /* big-endian */
	bool zstd;     /* sections may be compressed */
	int long_size; /* of the kernel, once its header_page text is known */
	uint32_t page_size;
	uint32_t cpu_count; /* what the file says; 0: nothing */
	uint32_t cpus;      /* highest CPU with data + 1 */
	char *uname;
	char clock[NRP_MAX_NAME + 1];
	bool has_clock_option; /* v6: a clock text follows every table of CPU data */
	bool has_header_info, has_text_buffer;

	/* Damage in the headers; with salvage it is noted, otherwise opening fails. */
	bool salvage;
	uint64_t damages;
	struct nrp_error damage; /* the first */
	bool lost_formats;
	uint64_t lost_formats_offset;

	struct nrp_event_format *formats; /* system, name and text are one allocation each */
	size_t nr_formats;
	struct nrp_cpu_stat *stats;
	size_t nr_stats;
	uint32_t stat_group;          /* instance of the statistics read last */
	struct nrp_section *sections; /* v7, salvage: sections of CPU data in the file's order */
	uint32_t nr_sections;

	/* Every CPU with data of every instance. */
	struct nrp_stream *streams;
	size_t nr_streams;
	uint64_t stream_bytes; /* sum of their sizes in the file */
	uint32_t nr_buffers;
	char data_clock[NRP_MAX_NAME + 1]; /* clock of the instances with data */
	bool has_data_clock;

	struct nrp_libtracecmd *libtracecmd; /* reads the events instead; NULL: we do */
	struct nrp_raw_event other;          /* its current event */

	/* Merge: a heap of the streams that have an event. */
	struct nrp_page_reader reader;
	struct nrp_merge_entry *heap;
	size_t nr_heap;
	size_t nr_primed;   /* streams that were asked for their first event */
	uint64_t next_time; /* no event of the streams but the top one is older */
	bool top_consumed;  /* the top of the heap was handed out by the last call */
};

/* Damage at a file offset: NRP_INPUT, -EBADMSG. */
#define nrp_damaged(file, err, offset, ...)                                                        \
	nrp_fail(err, NRP_INPUT, -EBADMSG, (file)->path, (int64_t)(offset), NRP_REMEDY_COPY,       \
		 __VA_ARGS__)

/* Missing bytes: NRP_INPUT, -ENODATA; @need counts from the start of the file. */
int nrp_cut_short(const struct nrp_tracefile *file, uint64_t offset, const char *what,
		  uint64_t need, struct nrp_error *err);
/* 0, or the error of a failed cursor; @what names the part being read. */
int nrp_cursor_check(const struct nrp_tracefile *file, const struct nrp_cursor *c, const char *what,
		     struct nrp_error *err);

/* tracefile_v6.c, tracefile_v7.c: read all behind the page size of the file header. */
int nrp_tracefile_read_v6(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err);
int nrp_tracefile_read_v7(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err);

/*
 * tracefile_salvage.c: the data of an instance whose table is missing. @rank: its order in the
 * file. Which CPUs have data is known from their statistics.
 */
int nrp_salvage_buffer(struct nrp_tracefile *file, const struct nrp_section *section, uint32_t rank,
		       struct nrp_error *err);

/* tracefile_meta.c: the parts that both versions have. */
int nrp_meta_header_info(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err);
int nrp_meta_ftrace_formats(struct nrp_tracefile *file, struct nrp_cursor *c,
			    struct nrp_error *err);
int nrp_meta_event_formats(struct nrp_tracefile *file, struct nrp_cursor *c, struct nrp_error *err);
/* Formats that begin at @at are damaged: events of unknown kinds are lost everywhere. */
void nrp_meta_formats_lost(struct nrp_tracefile *file, uint64_t at);
/* An option other than DONE, BUFFER and the references to sections; unknown ones are skipped. */
int nrp_meta_option(struct nrp_tracefile *file, uint16_t id, struct nrp_cursor *c,
		    struct nrp_error *err);
/* Name of the clock in use from "local [global] counter"; unchanged @ret if there is none. */
void nrp_meta_clock(char ret[NRP_MAX_NAME + 1], const char *text, size_t size);

/* Data of one CPU as a header describes it. */
struct nrp_cpu_data {
	uint32_t cpu;
	uint32_t page_size; /* bytes */
	uint32_t rank;      /* order of its instance: 0 for the top one */
	uint64_t offset;    /* in the file */
	uint64_t size;      /* bytes in the file, without the chunk count; 0: no data */
	uint64_t limit;     /* the data ends before this file offset */
	uint64_t want_end;  /* end of the data if the file is cut there; 0: not known to be */
	bool compressed;
	uint64_t events; /* that the data must have, if whole; 0: not known */
};
/* Checks and adds a stream, if the CPU has data. @at: file offset of the description. */
int nrp_tracefile_add_cpu(struct nrp_tracefile *file, const struct nrp_cpu_data *data, uint64_t at,
			  struct nrp_error *err);
/* An instance with data has this clock ("": not known); all must have the same. */
int nrp_tracefile_data_clock(struct nrp_tracefile *file, const char *clock, uint64_t at,
			     struct nrp_error *err);
/* libtracecmd.c: events as libtracecmd reads them; as nrp_tracefile_next() and _rewind(). */
int nrp_libtracecmd_next(struct nrp_tracefile *file, struct nrp_raw_event *ret,
			 struct nrp_error *err);
void nrp_libtracecmd_rewind(struct nrp_libtracecmd *l);
struct nrp_libtracecmd *nrp_libtracecmd_free(struct nrp_libtracecmd *l);

/* In a file that is salvaged, notes the damage @rc, @damage and returns 0; else @rc, @err filled.
 */
int nrp_tracefile_tolerate(struct nrp_tracefile *file, int rc, const struct nrp_error *damage,
			   struct nrp_error *err);
/* A CPU whose data should be there, but cannot be found: a stream that is cut off at its start. */
int nrp_tracefile_lose_cpu(struct nrp_tracefile *file, uint32_t cpu, uint32_t rank, uint64_t at,
			   struct nrp_error *err);
/* The same for each CPU of an instance as far as they are known. */
int nrp_tracefile_lose_instance(struct nrp_tracefile *file, uint32_t rank, uint64_t at,
				struct nrp_error *err);
int nrp_tracefile_check_page_size(const struct nrp_tracefile *file, uint32_t page_size, uint64_t at,
				  struct nrp_error *err);

#endif
