/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/source.h"
#include "capture/join_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct nrp_source {
	struct nrp_tracefile *file; /* one of the two */
	struct nrp_textfile *text;
	struct nrp_catalogue *own; /* of the trace-cmd file */
	struct nrp_raw_event line; /* the current event of the text */
};

static int open_file(struct nrp_source *s, const char *path, bool salvage, bool libtracecmd,
		     struct nrp_error *err)
{
	int r = salvage ? nrp_tracefile_salvage(&s->file, path, err)
			: nrp_tracefile_open(&s->file, path, err);

	if (r == 0 && libtracecmd)
		r = nrp_tracefile_use_libtracecmd(s->file, err);
	return r < 0 ? r : nrp_catalogue_new(&s->own, s->file, err);
}

static int open_text(struct nrp_source *s, const char *path, bool libtracecmd,
		     struct nrp_error *err)
{
	if (libtracecmd)
		return nrp_fail(err, NRP_USAGE, -EINVAL, path, -1, "leave out --reader libtracecmd",
				"is no trace-cmd file, and libtracecmd reads no other");
	return nrp_textfile_open(&s->text, path, err);
}

int nrp_source_open(struct nrp_source **ret, const char *path, bool salvage, bool libtracecmd,
		    struct nrp_error *err)
{
	struct nrp_source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return nrp_fail_nomem(err);
	r = nrp_textfile_detect(path) ? open_text(s, path, libtracecmd, err)
				      : open_file(s, path, salvage, libtracecmd, err);
	if (r < 0) {
		nrp_source_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct nrp_source *nrp_source_close(struct nrp_source *s)
{
	if (!s)
		return NULL;
	free(s->own);
	nrp_tracefile_close(s->file);
	nrp_textfile_close(s->text);
	free(s);
	return NULL;
}

const char *nrp_source_name(const struct nrp_source *s)
{
	return s->text ? "text" : "trace.dat";
}

const struct nrp_catalogue *nrp_source_catalogue(const struct nrp_source *s)
{
	return s->text ? nrp_textfile_catalogue(s->text) : s->own;
}

bool nrp_source_needs_survey(const struct nrp_source *s)
{
	return s->text != NULL;
}

void nrp_source_facts(const struct nrp_source *s, struct nrp_host_facts *f)
{
	if (!s->file)
		return; /* a text names neither kernel nor clock nor page size */
	snprintf(f->kernel, sizeof(f->kernel), "%s", nrp_tracefile_uname(s->file));
	snprintf(f->clock, sizeof(f->clock), "%s", nrp_tracefile_clock(s->file));
	f->page_size = nrp_tracefile_page_size(s->file);
}

int nrp_source_hash(const struct nrp_source *s, uint8_t ret[32], struct nrp_error *err)
{
	if (s->file)
		return nrp_tracefile_hash(s->file, ret, err);
	nrp_textfile_hash(s->text, ret);
	return 0;
}

int nrp_source_rewind(struct nrp_source *s, struct nrp_error *err)
{
	if (s->text)
		return nrp_textfile_rewind(s->text, err);
	nrp_tracefile_rewind(s->file);
	return 0;
}

static int next_of_file(struct nrp_tracefile *file, const struct nrp_raw_event **ret,
			struct nrp_error *damage, bool *ret_broken, struct nrp_error *err)
{
	int r;

	if (!damage)
		return nrp_tracefile_take(file, ret, err);
	/* of many errors in one object the first stays */
	while ((r = nrp_tracefile_take(file, ret, damage)) < 0) {
		if (r == -ENOMEM)
			return nrp_fail_nomem(err);
		*ret_broken = true;
	}
	return r;
}

/* Here the joiner learns of damage from the events, and from nrp_source_losses(). */
static int next_of_text(struct nrp_source *s, const struct nrp_raw_event **ret,
			const struct nrp_error *damage, struct nrp_error *err)
{
	struct nrp_textfile *text = s->text;
	int r = nrp_textfile_next(text, &s->line, err);

	*ret = &s->line;
	return r >= 0 && !damage && nrp_textfile_damage(text, err) ? -EBADMSG : r;
}

int nrp_source_next(struct nrp_source *s, const struct nrp_raw_event **ret,
		    struct nrp_error *damage, bool *ret_broken, struct nrp_error *err)
{
	return s->text ? next_of_text(s, ret, damage, err)
		       : next_of_file(s->file, ret, damage, ret_broken, err);
}

uint64_t nrp_source_damage(const struct nrp_source *s, struct nrp_error *ret)
{
	return s->file ? nrp_tracefile_damage(s->file, ret) : nrp_textfile_damage(s->text, ret);
}

const struct nrp_cpu_reading *nrp_source_reading(const struct nrp_source *s, size_t i)
{
	return s->file ? nrp_tracefile_reading(s->file, i) : NULL;
}

void nrp_source_text_stats(const struct nrp_source *s, struct nrp_text_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (s->text)
		nrp_textfile_stats(s->text, ret);
}

/* A sum that SQL can hold; a line of statistics that is absent (-1) counts none. */
static uint64_t add_lost(uint64_t sum, int64_t lost)
{
	if (lost < 0)
		return sum;
	return (uint64_t)lost > INT64_MAX - sum ? INT64_MAX : sum + (uint64_t)lost;
}

/* Events that a CPU's statistics count as lost. */
static uint64_t lost_of(const struct nrp_cpu_stat *s)
{
	return add_lost(add_lost(add_lost(0, s->overrun), s->dropped), s->commit_overrun);
}

int nrp_source_stats_losses(const struct nrp_source *s, struct nrp_writer *writer,
			    struct nrp_join_stats *stats, struct nrp_error *err)
{
	const struct nrp_tracefile *file = s->file;
	uint64_t counted = 0;

	if (!file)
		return 0;
	for (size_t i = 0; i < nrp_tracefile_nr_cpu_stats(file); i++)
		counted = add_lost(counted, (int64_t)lost_of(nrp_tracefile_cpu_stat(file, i)));
	if (counted <= stats->lost_events || stats->loss_gaps)
		return 0;
	for (size_t i = 0; i < nrp_tracefile_nr_cpu_stats(file); i++) {
		const struct nrp_cpu_stat *cpu = nrp_tracefile_cpu_stat(file, i);
		uint64_t lost = lost_of(cpu);
		struct nrp_loss l;
		int r;

		if (!lost)
			continue;
		NRP_ROW_INIT(&l);
		NRP_SET(&l, loss, time, 0);
		NRP_SET(&l, loss, cpu, cpu->cpu);
		NRP_SET(&l, loss, count, lost);
		NRP_SET(&l, loss, cause, NRP_LOSS_STATS);
		r = nrp_writer_append(writer, NRP_LOSS, &l, err);
		if (r < 0)
			return r;
	}
	stats->lost_events = counted;
	return 0;
}

/* Events missing behind the last one of a CPU. */
static int loss_at_end(struct nrp_joiner *joiner, const struct nrp_cpu_reading *cpu,
		       struct nrp_error *err)
{
	struct nrp_loss l;

	if (!cpu->lost_at_end)
		return 0;
	NRP_ROW_INIT(&l);
	NRP_SET(&l, loss, time, cpu->last_time);
	NRP_SET(&l, loss, cpu, cpu->cpu);
	NRP_SET(&l, loss, cause, cpu->end_cause);
	NRP_SET(&l, loss, read_before, cpu->events);
	if (cpu->end_lost >= 0)
		NRP_SET(&l, loss, count, (uint64_t)cpu->end_lost);
	if (cpu->end_cause != NRP_LOSS_OVERRUN)
		NRP_SET(&l, loss, offset, cpu->end_offset);
	return nrp_joiner_loss(joiner, &l, err);
}

/* Events of every kind may be missing on a CPU, all the time: their formats are damaged. */
static int loss_of_formats(const struct nrp_tracefile *file, struct nrp_joiner *joiner,
			   uint32_t cpu, struct nrp_error *err)
{
	uint64_t offset;
	struct nrp_loss l;

	if (!nrp_tracefile_lost_formats(file, &offset))
		return 0;
	NRP_ROW_INIT(&l);
	NRP_SET(&l, loss, time, 0);
	NRP_SET(&l, loss, cpu, cpu);
	NRP_SET(&l, loss, cause, NRP_LOSS_DAMAGED);
	NRP_SET(&l, loss, offset, offset);
	NRP_SET(&l, loss, read_before, 0);
	return nrp_joiner_loss(joiner, &l, err);
}

static int file_losses(struct nrp_tracefile *file, struct nrp_joiner *joiner, struct nrp_error *err)
{
	const struct nrp_cpu_reading *cpu;
	int r = 0;

	for (size_t i = 0; r == 0 && (cpu = nrp_tracefile_reading(file, i)); i++) {
		r = loss_at_end(joiner, cpu, err);
		if (r == 0)
			r = loss_of_formats(file, joiner, cpu->cpu, err);
	}
	return r;
}

/* What the head of a text says was overwritten before its first event. */
static int loss_at_start(const struct nrp_textfile *text, struct nrp_joiner *joiner,
			 struct nrp_error *err)
{
	struct nrp_text_stats s;
	struct nrp_loss l;

	nrp_textfile_stats(text, &s);
	if (!s.overwritten)
		return 0;
	NRP_ROW_INIT(&l);
	NRP_SET(&l, loss, time, 0);
	NRP_SET(&l, loss, end_time, nrp_joiner_stats(joiner)->first_time);
	if (s.overwritten <= INT64_MAX)
		NRP_SET(&l, loss, count, s.overwritten);
	NRP_SET(&l, loss, cause, NRP_LOSS_STATS);
	return nrp_joiner_loss(joiner, &l, err);
}

/* Lines behind the last event that could not be read, the cut one above all. */
static int gap_at_end(const struct nrp_textfile *text, struct nrp_joiner *joiner,
		      struct nrp_error *err)
{
	struct nrp_raw_event raw;
	struct nrp_loss l;

	if (!nrp_textfile_open_gap(text, &raw))
		return 0;
	NRP_ROW_INIT(&l);
	NRP_SET(&l, loss, time, raw.unread_since);
	NRP_SET(&l, loss, cause, NRP_LOSS_DAMAGED);
	NRP_SET(&l, loss, offset, raw.unread_offset);
	return nrp_joiner_loss(joiner, &l, err);
}

static int text_losses(const struct nrp_textfile *text, struct nrp_joiner *joiner,
		       struct nrp_error *err)
{
	struct nrp_raw_event raw;
	size_t at = 0;
	int r = loss_at_start(text, joiner, err);

	if (r == 0)
		r = gap_at_end(text, joiner, err);
	while (r == 0 && nrp_textfile_open_loss(text, &at, &raw)) {
		struct nrp_loss l;

		NRP_ROW_INIT(&l);
		NRP_SET(&l, loss, time, raw.lost_since);
		NRP_SET(&l, loss, cpu, raw.cpu);
		NRP_SET(&l, loss, cause, NRP_LOSS_OVERRUN);
		NRP_SET(&l, loss, read_before, raw.read_before);
		if (raw.lost >= 0)
			NRP_SET(&l, loss, count, (uint64_t)raw.lost);
		r = nrp_joiner_loss(joiner, &l, err);
	}
	return r;
}

int nrp_source_losses(const struct nrp_source *s, struct nrp_joiner *joiner, struct nrp_error *err)
{
	return s->text ? text_losses(s->text, joiner, err) : file_losses(s->file, joiner, err);
}
