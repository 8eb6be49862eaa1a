/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where raw events come from: a trace-cmd file, or a trace as text. */
#ifndef NRP_SOURCE_H
#define NRP_SOURCE_H

#include "capture/join.h"
#include "capture/textfile.h"

struct nrp_source;

/*
 * Opens what the file's content says it is; errors of nrp_tracefile_open(), nrp_textfile_open().
 * With @salvage a damaged trace-cmd file is opened, too. With @libtracecmd that library reads the
 * events: NRP_USAGE with a text, NRP_INPUT if the file is damaged.
 */
int nrp_source_open(struct nrp_source **ret, const char *path, bool salvage, bool libtracecmd,
		    struct nrp_error *err);
struct nrp_source *nrp_source_close(struct nrp_source *source);

const char *nrp_source_name(const struct nrp_source *source); /* "trace.dat", "text" */
/* Valid as long as the source; of a text: see nrp_textfile_catalogue(). */
const struct nrp_catalogue *nrp_source_catalogue(const struct nrp_source *source);
/* Must it be read to its end before catalogue, facts and hash are complete? */
bool nrp_source_needs_survey(const struct nrp_source *source);
/* kernel, clock, page_size and whatever else headers say. */
void nrp_source_facts(const struct nrp_source *source, struct nrp_host_facts *facts);
int nrp_source_hash(const struct nrp_source *source, uint8_t ret[32], struct nrp_error *err);

int nrp_source_rewind(struct nrp_source *source, struct nrp_error *err);
/*
 * 1: the next event, valid until the next call; 0: end; < 0. Damage is such an error, too; but not
 * with @damage. It keeps the first one of a trace-cmd file, and *@ret_broken is set: events of some
 * CPU are missing from here on. The events of a text themselves say what is missing before them.
 */
int nrp_source_next(struct nrp_source *source, const struct nrp_raw_event **ret,
		    struct nrp_error *damage, bool *ret_broken, struct nrp_error *err);

/* After the last event: gives the joiner the losses that no event followed. */
int nrp_source_losses(const struct nrp_source *source, struct nrp_joiner *joiner,
		      struct nrp_error *err);
/*
 * After the joiner's end: overruns that the ring buffer counted but no sub-buffer marks (lost at
 * the very start or end) are written and added to @stats.
 */
int nrp_source_stats_losses(const struct nrp_source *source, struct nrp_writer *writer,
			    struct nrp_join_stats *stats, struct nrp_error *err);
/*
 * Damaged places outside of the CPUs' data, which a text does not tell apart; *@ret is the first
 * one, if there is any.
 */
uint64_t nrp_source_damage(const struct nrp_source *source, struct nrp_error *ret);
/* As nrp_tracefile_reading(); a text has none. */
const struct nrp_cpu_reading *nrp_source_reading(const struct nrp_source *source, size_t i);
/* ret->read is false for a trace-cmd file. */
void nrp_source_text_stats(const struct nrp_source *source, struct nrp_text_stats *ret);

#endif
