/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reader of trace-cmd files (trace.dat versions 6 and 7; data uncompressed or zstd): headers,
 * options, event formats, and the events of all CPUs merged in time order. Ring-buffer
 * sub-buffers are walked with libtraceevent's kbuffer_*. Nothing is trusted: every size and
 * offset read from the file has a limit, and damage is an error that names the offset, behind which
 * reading can go on.
 */
#ifndef NRP_TRACEFILE_H
#define NRP_TRACEFILE_H

#include "numareplay/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nrp_tracefile;

/* One event as it lies in the ring buffer. */
struct nrp_raw_event {
	uint64_t time; /* ns (or ticks) of the trace clock */
	uint32_t cpu;
	int id;               /* common_type */
	int32_t tgid;         /* process of the thread, where text says it; 0: not known */
	const uint8_t *data;  /* payload from the common fields on; valid until the next call */
	uint32_t size;        /* bytes of payload */
	bool lost_before;     /* events of the CPU are missing just before this one */
	uint8_t lost_cause;   /* with lost_before: NRP_LOSS_OVERRUN, _DAMAGED or _BACKWARDS */
	int64_t lost;         /* their number, -1: unknown; 0 without lost_before */
	uint64_t lost_since;  /* time of the CPU's previous event, 0: none */
	uint64_t lost_offset; /* place of the damage in the file; only if lost_cause is not overrun
			       */
	uint64_t read_before; /* events of the CPU (of its instance) read before this one */
	/* Of a text: lines before this one could not be read; of which CPUs is not known. */
	bool unread_before;
	uint64_t unread_since;  /* time of the event in front of them, 0: none */
	uint64_t unread_offset; /* place of the first of them in the text */
};

/* What was read so far of one CPU of one instance, and what is missing. */
struct nrp_cpu_reading {
	uint32_t cpu;
	uint64_t events;    /* read */
	uint64_t lost;      /* missing, where their number is known */
	uint64_t gaps;      /* places where an unknown number is missing, or time went backwards */
	uint64_t damages;   /* places of damage in its data */
	uint64_t offset;    /* of the first damage in the file; 0 without */
	uint64_t last_time; /* of the last event, 0: none */
	/* Events are missing behind the last one: in nothing above but damages. */
	bool lost_at_end;
	uint8_t end_cause;   /* as nrp_raw_event.lost_cause */
	int64_t end_lost;    /* their number, -1: unknown */
	uint64_t end_offset; /* as nrp_raw_event.lost_offset */
};

/* One event format found in the file. */
struct nrp_event_format {
	const char *system;
	const char *name;
	const char *text; /* the kernel's format file, NUL-terminated */
	size_t size;      /* bytes of text */
	int id;
};

/* Per-CPU ring-buffer statistics written by trace-cmd at the end of recording. */
struct nrp_cpu_stat {
	uint32_t cpu;
	uint32_t group;                           /* of which instance: 0 for the top one */
	int64_t overrun, commit_overrun, dropped; /* events; -1: line absent */
	int64_t entries, read; /* events still in the ring buffer, and read from it; -1: absent */
};

/*
 * Opens and checks everything but the page data. NRP_INPUT with file and offset if the file is
 * not a trace-cmd file, of another version, cut short, or its headers are damaged; also if
 * instances with data use different clocks, or there is the text of a latency trace only.
 */
int nrp_tracefile_open(struct nrp_tracefile **ret, const char *path, struct nrp_error *err);
/*
 * Opens damaged files too, if an event format and the place of at least one CPU's data can be read.
 * nrp_tracefile_damage() tells what was wrong so far; CPUs whose data are missing, whole or in
 * part, have a nrp_cpu_reading that says so when all events were read.
 */
int nrp_tracefile_salvage(struct nrp_tracefile **ret, const char *path, struct nrp_error *err);
/* Number of damaged places in the headers; *@ret is the first one, if there is any. */
uint64_t nrp_tracefile_damage(const struct nrp_tracefile *file, struct nrp_error *ret);
/* Were event formats lost, so that events of unknown kinds may be missing everywhere? */
bool nrp_tracefile_lost_formats(const struct nrp_tracefile *file, uint64_t *ret_offset);
struct nrp_tracefile *nrp_tracefile_close(struct nrp_tracefile *file);

const char *nrp_tracefile_path(const struct nrp_tracefile *file);
int nrp_tracefile_version(const struct nrp_tracefile *file); /* 6 or 7 */
/* Has the file another endianness than this machine? */
bool nrp_tracefile_swapped(const struct nrp_tracefile *file);
/* 4 or 8: bytes of the kernel's long. */
int nrp_tracefile_long_size(const struct nrp_tracefile *file);
uint32_t nrp_tracefile_page_size(const struct nrp_tracefile *file); /* bytes */
const char *nrp_tracefile_uname(const struct nrp_tracefile *file);  /* "" if absent */
const char *nrp_tracefile_clock(const struct nrp_tracefile *file);  /* "" if absent */
/* The larger of the highest CPU id with data + 1 and the file's own count of CPUs. */
uint32_t nrp_tracefile_cpus(const struct nrp_tracefile *file);

size_t nrp_tracefile_nr_formats(const struct nrp_tracefile *file);
const struct nrp_event_format *nrp_tracefile_format(const struct nrp_tracefile *file, size_t i);
/*
 * The caller does not understand a format (@rc < 0, @damage): in a file that is salvaged that is
 * one more damage, and 0 is returned; otherwise @rc, with @err filled.
 */
int nrp_tracefile_lose_format(struct nrp_tracefile *file, int rc, const struct nrp_error *damage,
			      struct nrp_error *err);
/* In the order of the file; a CPU has one entry per instance. */
size_t nrp_tracefile_nr_cpu_stats(const struct nrp_tracefile *file);
const struct nrp_cpu_stat *nrp_tracefile_cpu_stat(const struct nrp_tracefile *file, size_t i);

/*
 * From now on libtracecmd reads the events: a second opinion. It does not see damage, so all is
 * read once by the own reader first: NRP_INPUT if that meets any.
 */
int nrp_tracefile_use_libtracecmd(struct nrp_tracefile *file, struct nrp_error *err);
/* (Re)starts reading at the first event of every CPU. Damage shows when events are read. */
void nrp_tracefile_rewind(struct nrp_tracefile *file);
/*
 * Next event in time order over all CPUs (ties: lower CPU first, then the top instance first): 1,
 * 0 at the end, < 0 on damage: NRP_INPUT with the file offset of the bad page or chunk. The
 * caller may go on after damage: the next call continues behind the bad page or chunk, and that
 * CPU's next event has lost_before and lost = -1. An event that is older than the CPU's event
 * before it is damage too, and the next call hands it out.
 */
int nrp_tracefile_next(struct nrp_tracefile *file, struct nrp_raw_event *ret,
		       struct nrp_error *err);
/* The same without copying: *@ret is valid until the next call. */
int nrp_tracefile_take(struct nrp_tracefile *file, const struct nrp_raw_event **ret,
		       struct nrp_error *err);

/* One entry per CPU and instance that has data, or should have; NULL behind the last. */
const struct nrp_cpu_reading *nrp_tracefile_reading(struct nrp_tracefile *file, size_t i);

/*
 * Content hash of the whole file: XXH3-128 of the bytes (canonical, 16 bytes), the length (8
 * bytes, little-endian), 8 zeros.
 */
int nrp_tracefile_hash(const struct nrp_tracefile *file, uint8_t ret[32], struct nrp_error *err);

#endif
