/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/facts.h"
#include "capture/samples.h"
#include "capture/samples_internal.h"
#include "numareplay/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_FILE (INT64_C(4) << 30)
#define MAX_NAMED 8 /* events of a level that an error names */

#define SCRIPT_REMEDY                                                                              \
	"print it with perf script -F comm,pid,tid,cpu,time,period,event,addr,data_src,weight"

struct reader {
	const struct nrp_samples_options *opt;
	struct nrp_store *store;
	const struct nrp_capture *capture;
	struct nrp_writer *writer;
	FILE *file;
	char *line;      /* NRP_SAMPLES_MAX_LINE + 1 bytes */
	char separator;  /* of perf stat; 0: perf script */
	uint64_t number; /* of the line */
	struct nrp_samples_stats stats;
	uint64_t first, last;         /* times of what was understood */
	uint64_t interval, last_line; /* perf stat: beginning and end of the interval */
	struct nrp_memory_sample before;
	char event[NRP_SAMPLES_MAX_EVENT + 1]; /* name of the last event */
	uint32_t event_id;
	struct nrp_error *err;
};

bool nrp_parse_number(struct nrp_piece text, int base, uint64_t *ret)
{
	char digits[24];
	char *end;
	uint64_t value;

	if (!nrp_piece_is(text, base == 16 ? NRP_HEX_DIGITS : NRP_DIGITS) ||
	    text.size >= sizeof(digits))
		return false;
	memcpy(digits, text.at, text.size);
	digits[text.size] = '\0';
	errno = 0;
	value = strtoull(digits, &end, base);
	if (errno)
		return false;
	*ret = value;
	return true;
}

bool nrp_parse_seconds(struct nrp_piece text, uint64_t *ret_ns)
{
	const char *dot = memchr(text.at, '.', text.size);
	struct nrp_piece whole, part;
	uint64_t seconds, ns;

	if (!dot)
		return false;
	whole = (struct nrp_piece){ text.at, (size_t)(dot - text.at) };
	part = (struct nrp_piece){ dot + 1, text.size - whole.size - 1 };
	if ((part.size != 6 && part.size != 9) || !nrp_parse_number(whole, 10, &seconds) ||
	    !nrp_parse_number(part, 10, &ns) || seconds > INT64_MAX / 1000000000 - 1)
		return false;
	*ret_ns = seconds * 1000000000 + (part.size == 6 ? ns * 1000 : ns);
	return true;
}

static int fail_at_line(struct reader *r, const char *what, const char *remedy)
{
	return nrp_fail(r->err, NRP_INPUT, -EBADMSG, r->opt->path, -1, remedy, "line %llu: %s",
			(unsigned long long)r->number, what);
}

/* 1: r->line holds the next line; 0: end. */
static int next_line(struct reader *r)
{
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(r->file)) != EOF && c != '\n') {
		if (n == NRP_SAMPLES_MAX_LINE || !c) {
			r->number++;
			return fail_at_line(r, c ? "is longer than 64 KiB" : "is not text",
					    SCRIPT_REMEDY);
		}
		r->line[n++] = (char)c;
	}
	if (ferror(r->file))
		return nrp_fail(r->err, NRP_INPUT, -EIO, r->opt->path, -1, "check the disk",
				"cannot be read");
	if (c == EOF && !n)
		return 0;
	if (n && r->line[n - 1] == '\r')
		n--;
	r->line[n] = '\0';
	r->number++;
	return 1;
}

static int start_again(struct reader *r)
{
	if (fseek(r->file, 0, SEEK_SET) != 0)
		return nrp_fail(r->err, NRP_INPUT, -errno, r->opt->path, -1, "name a plain file",
				"cannot be read twice");
	r->number = 0;
	return 0;
}

static int open_file(struct reader *r)
{
	char head[8];
	size_t n;
	int code = nrp_open_text(&r->file, r->opt->path, MAX_FILE, r->err);

	if (code < 0)
		return code;
	n = fread(head, 1, sizeof(head), r->file);
	if (nrp_is_perf_data(head, n))
		return nrp_fail(r->err, NRP_INPUT, -EBADMSG, r->opt->path, -1, SCRIPT_REMEDY,
				"is perf's binary file, not text");
	r->line = malloc(NRP_SAMPLES_MAX_LINE + 1);
	return r->line ? start_again(r) : nrp_fail_nomem(r->err);
}

/* perf stat begins with a time; perf script does not, or has a colon behind it. */
static int detect_format(struct reader *r)
{
	int c;

	while ((c = next_line(r)) > 0) {
		if (*r->line == '#' || !r->line[strspn(r->line, " \t")])
			continue;
		if (nrp_stat_separator(r->line, &r->separator))
			r->stats.counts = true;
		break;
	}
	return c < 0 ? c : start_again(r);
}

/* ---- perf stat: which events count --------------------------------------------------- */

static const char *const level_words[NRP_NR_LEVELS] = {
	[NRP_LEVEL_LOCAL] = "local accesses",
	[NRP_LEVEL_REMOTE] = "remote accesses",
	[NRP_LEVEL_MEMORY] = "accesses to memory of any node",
};

/* Distinct event names of one level. */
struct names {
	char at[MAX_NAMED][NRP_SAMPLES_MAX_EVENT + 1];
	size_t count;
};

static void add_name(struct names *names, struct nrp_piece event)
{
	for (size_t i = 0; i < names->count; i++)
		if (strlen(names->at[i]) == event.size &&
		    !memcmp(names->at[i], event.at, event.size))
			return;
	if (names->count == MAX_NAMED)
		return;
	memcpy(names->at[names->count], event.at, event.size);
	names->at[names->count++][event.size] = '\0';
}

static int check_names(struct reader *r, const struct names *names)
{
	size_t found = 0;

	for (int level = 0; level < NRP_NR_LEVELS; level++) {
		found += names[level].count;
		if (names[level].count > 1 && (!r->opt->events || !r->opt->events[1]))
			return nrp_fail(r->err, NRP_USAGE, -EINVAL, r->opt->path, -1,
					"choose one with --samples-event NAME",
					"%s and %s both count %s", names[level].at[0],
					names[level].at[1], level_words[level]);
	}
	if (found)
		return 0;
	if (r->opt->events)
		return nrp_fail(r->err, NRP_USAGE, -EINVAL, r->opt->path, -1,
				"name an event as the file does", "has no event %s",
				r->opt->events[0]);
	return nrp_fail(r->err, NRP_USAGE, -EINVAL, r->opt->path, -1,
			"name one with --samples-event NAME",
			"no event is known to count local or remote accesses");
}

/* Accesses must be counted by one event each, or they would be counted twice. */
static int check_events(struct reader *r)
{
	struct names *names = calloc(NRP_NR_LEVELS, sizeof(*names));
	struct nrp_stat_line l;
	int c = names ? 0 : nrp_fail_nomem(r->err);

	while (c == 0 && (c = next_line(r)) > 0) {
		c = 0;
		if (nrp_stat_line(r->line, r->separator, r->opt->events, &l) == NRP_LINE_SAMPLE)
			add_name(&names[l.level], l.whole);
	}
	if (c == 0)
		c = check_names(r, names);
	free(names);
	return c < 0 ? c : start_again(r);
}

/* ---- records ------------------------------------------------------------------------- */

static int set_event(struct reader *r, struct nrp_memory_sample *s, struct nrp_piece event)
{
	int c = 0;

	if (!event.size)
		return 0;
	if (strlen(r->event) != event.size || memcmp(r->event, event.at, event.size) != 0) {
		char name[sizeof(r->event)];

		memcpy(r->event, event.at, event.size);
		r->event[event.size] = '\0';
		strcpy(name, r->event);
		nrp_text_clean(name);
		c = nrp_store_intern(r->store, r->capture->id, name, &r->event_id, r->err);
	}
	NRP_SET(s, memory_sample, event, r->event_id);
	return c;
}

/* perf shows one SPE record as several events, one after the other. */
static bool is_repeated(const struct nrp_memory_sample *a, const struct nrp_memory_sample *b)
{
	const uint64_t event = NRP_BIT(memory_sample, event);

	return (a->null | event) == (b->null | event) && a->event != b->event &&
	       a->time == b->time && a->cpu == b->cpu && a->tid == b->tid && a->addr == b->addr &&
	       a->level == b->level && a->op == b->op && a->weight == b->weight;
}

static int keep(struct reader *r, const struct nrp_memory_sample *s)
{
	uint64_t end = s->time + (NRP_NULL(s, memory_sample, span) ? 0 : s->span);

	if (!r->last || s->time < r->first)
		r->first = s->time;
	if (end > r->last)
		r->last = end;
	if (end < r->capture->first_time || s->time > r->capture->last_time ||
	    (r->stats.counts &&
	     (end == r->capture->first_time || s->time == r->capture->last_time))) {
		r->stats.outside++;
		return 0;
	}
	if (!r->stats.counts && is_repeated(s, &r->before)) {
		r->stats.repeated++;
		return 0;
	}
	r->before = *s;
	r->stats.kept++;
	return nrp_writer_append(r->writer, NRP_MEMORY_SAMPLE, s, r->err);
}

/* Of a CPU that the host's facts do not list: no line of this host, or a torn one. */
static bool is_foreign(const struct reader *r, const struct nrp_memory_sample *s)
{
	const struct nrp_host_facts *facts = &r->capture->facts;

	return facts->nr_cpus > 0 && !facts->topology_inferred &&
	       !NRP_NULL(s, memory_sample, cpu) && nrp_host_cpu_nid(facts, (int)s->cpu) < 0;
}

static int script_line(struct reader *r, enum nrp_line *ret)
{
	struct nrp_memory_sample s;
	struct nrp_piece event;
	int c;

	*ret = nrp_script_line(r->line, &s, &event);
	if (*ret == NRP_LINE_SAMPLE && is_foreign(r, &s))
		*ret = NRP_LINE_BAD;
	if (*ret != NRP_LINE_SAMPLE)
		return 0;
	c = set_event(r, &s, event);
	return c < 0 ? c : keep(r, &s);
}

static int stat_line(struct reader *r, enum nrp_line *ret)
{
	struct nrp_memory_sample s = { .null = ~UINT64_C(0) };
	struct nrp_stat_line l;
	int c;

	*ret = nrp_stat_line(r->line, r->separator, r->opt->events, &l);
	if (*ret != NRP_LINE_SAMPLE)
		return 0;
	if (l.cpu_known)
		NRP_SET(&s, memory_sample, cpu, l.cpu);
	/* Intervals follow each other. */
	if (l.time < r->last_line || l.time > INT64_MAX - r->opt->start || is_foreign(r, &s)) {
		*ret = NRP_LINE_BAD;
		return 0;
	}
	if (l.time > r->last_line) {
		r->interval = r->last_line;
		r->last_line = l.time;
	}
	NRP_SET(&s, memory_sample, time, r->opt->start + r->interval);
	NRP_SET(&s, memory_sample, span, l.time - r->interval);
	NRP_SET(&s, memory_sample, count, l.count);
	NRP_SET(&s, memory_sample, level, l.level);
	NRP_SET(&s, memory_sample, op, l.op);
	if (l.running_known)
		NRP_SET(&s, memory_sample, running, l.running);
	c = set_event(r, &s, l.event);
	return c < 0 ? c : keep(r, &s);
}

static int read_lines(struct reader *r)
{
	int c;

	while ((c = next_line(r)) > 0) {
		enum nrp_line kind;

		c = r->stats.counts ? stat_line(r, &kind) : script_line(r, &kind);
		if (c < 0)
			return c;
		r->stats.not_counted += kind == NRP_LINE_NOT_COUNTED;
		r->stats.without_source += kind == NRP_LINE_WITHOUT_SOURCE;
		if (kind == NRP_LINE_BAD && !r->stats.not_understood++)
			r->stats.first_bad_line = r->number;
	}
	r->stats.lines = r->number;
	return c;
}

/* ---- does it belong to the capture? -------------------------------------------------- */

/* How to sample with the clock of the trace. */
static const char *clock_remedy(const struct nrp_capture *capture)
{
	static const struct {
		const char *trace, *remedy;
	} clocks[] = {
		{ "mono", "sample during the capture with perf record -k CLOCK_MONOTONIC" },
		{ "mono_raw", "sample during the capture with perf record -k CLOCK_MONOTONIC_RAW" },
		{ "boot", "sample during the capture with perf record -k CLOCK_BOOTTIME" },
		{ "tai", "sample during the capture with perf record -k CLOCK_TAI" },
	};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		if (!strcmp(capture->facts.clock, clocks[i].trace))
			return clocks[i].remedy;
	return "sample during the capture, and leave perf record -k out: perf's own clock is that "
	       "of the trace clocks local, global and perf";
}

static int check_result(struct reader *r)
{
	const struct nrp_samples_stats *s = &r->stats;
	uint64_t understood = s->kept + s->outside + s->repeated;

	r->number = s->first_bad_line;
	if (s->not_understood > understood + s->without_source + s->not_counted)
		return fail_at_line(r, "is no sample of perf script and no interval of perf stat",
				    SCRIPT_REMEDY);
	if (!understood)
		return nrp_fail(r->err, NRP_INPUT, -ENODATA, r->opt->path, -1, SCRIPT_REMEDY,
				s->without_source
					? "no sample says where its data came from (data_src)"
					: "has no memory sample");
	if (!s->kept && !s->repeated)
		return nrp_fail(
			r->err, NRP_INPUT, -ERANGE, r->opt->path, -1,
			s->counts ? "give perf's start on the capture's clock with "
				    "--samples-start"
				  : clock_remedy(r->capture),
			"its times, %.6f to %.6f s, do not meet the capture's, %.6f to %.6f",
			(double)r->first * 1e-9, (double)r->last * 1e-9,
			(double)r->capture->first_time * 1e-9,
			(double)r->capture->last_time * 1e-9);
	return 0;
}

static int check_start(struct reader *r)
{
	if (r->stats.counts && !r->opt->has_start)
		return nrp_fail(
			r->err, NRP_USAGE, -EINVAL, r->opt->path, -1,
			"give its start on the capture's clock with --samples-start SECONDS",
			"perf stat counts time from its own start");
	if (!r->stats.counts && (r->opt->has_start || r->opt->events))
		return nrp_fail(r->err, NRP_USAGE, -EINVAL, r->opt->path, -1,
				"leave --samples-start and --samples-event out",
				"is no text of perf stat -I -x");
	return r->stats.counts ? check_events(r) : 0;
}

/* What was left out is kept with the host's settings. */
static int store_stats(struct reader *r)
{
	const struct nrp_samples_stats *s = &r->stats;
	const struct {
		const char *name;
		uint64_t value;
	} settings[] = {
		{ "samples.kept", s->kept },
		{ "samples.outside", s->outside },
		{ "samples.repeated", s->repeated },
		{ "samples.without_source", s->without_source },
		{ "samples.not_counted", s->not_counted },
		{ "samples.not_understood", s->not_understood },
	};
	int c = 0;

	for (size_t i = 0; c == 0 && i < sizeof(settings) / sizeof(settings[0]); i++) {
		char value[24];

		snprintf(value, sizeof(value), "%llu", (unsigned long long)settings[i].value);
		c = nrp_store_put_setting(r->store, r->capture->id, settings[i].name, value,
					  r->err);
	}
	return c;
}

int nrp_samples_read(const struct nrp_samples_options *options, struct nrp_store *store,
		     const struct nrp_capture *capture, struct nrp_samples_stats *ret,
		     struct nrp_error *err)
{
	struct reader r = { .opt = options, .store = store, .capture = capture, .err = err };
	int c = open_file(&r);

	r.stats.read = true;
	if (c == 0)
		c = detect_format(&r);
	if (c == 0)
		c = check_start(&r);
	if (c == 0)
		c = nrp_writer_new(&r.writer, store, capture->id, err);
	if (c == 0)
		c = read_lines(&r);
	if (c == 0)
		c = check_result(&r);
	if (c == 0)
		c = nrp_writer_flush(r.writer, err);
	if (c == 0)
		c = store_stats(&r);
	nrp_writer_free(r.writer);
	free(r.line);
	if (r.file)
		fclose(r.file);
	if (c == 0)
		*ret = r.stats;
	return c;
}
