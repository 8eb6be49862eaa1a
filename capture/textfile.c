/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/textfile.h"
#include "capture/facts.h"
#include "capture/textlines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define NO_EVENT_AFTER (16 << 20) /* bytes of text without an event are no trace */
#define REMEDY_TEXT "name a trace.dat, or the text of trace-cmd report, tracefs or perf script"
#define REMEDY_PERF                                                                                \
	"print it with perf script -F comm,pid,tid,cpu,time,event,trace, and import that"

/* What a CPU's next event must tell. */
struct cpu {
	uint64_t events;
	uint64_t last_time; /* of its last event, 0: none */
	bool lost_pending;
	int64_t lost; /* events since, -1: unknown */
};

struct nrp_textfile {
	char *path;
	struct nrp_textlines *lines;
	struct nrp_textline *parser;
	struct nrp_text_stats stats;
	bool trace_cmd_header;
	uint64_t events, last_time;
	uint64_t places;         /* of damage */
	struct nrp_error damage; /* the first of them */
	bool gap;                /* lines could not be read since the last event */
	uint64_t gap_offset;     /* of the first of these */
	struct cpu *cpus;
	size_t nr_cpus;
};

/* NUL and other control characters are in no text. */
static bool is_text(const char *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)p[i] < ' ' && !strchr("\t\n\r\f\x1b", p[i] ? p[i] : 1))
			return false;
	return true;
}

static bool is_trace_dat(const char *p, size_t size)
{
	return size >= 10 && !memcmp(p, "\x17\x08\x44tracing", 10);
}

bool nrp_textfile_detect(const char *path)
{
	char head[256];
	ssize_t n;
	int fd;

	if (!strcmp(path, "-"))
		return true;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false; /* who opens it next says why */
	n = read(fd, head, sizeof(head));
	close(fd);
	if (n <= 0)
		return false;
	return (n >= 2 && !memcmp(head, "\x1f\x8b", 2)) || nrp_is_perf_data(head, (size_t)n) ||
	       is_text(head, (size_t)n);
}

static int check_head(struct nrp_textfile *f, struct nrp_error *err)
{
	char head[256];
	int64_t n = nrp_textlines_peek(f->lines, head, sizeof(head), err);

	if (n < 0)
		return (int)n;
	if (n == 0)
		return nrp_fail(err, NRP_INPUT, -ENODATA, f->path, -1, REMEDY_TEXT, "is empty");
	if (nrp_is_perf_data(head, (size_t)n))
		return nrp_fail(err, NRP_INPUT, -EBADMSG, f->path, -1, REMEDY_PERF,
				"is perf's binary file, not text");
	if (is_trace_dat(head, (size_t)n))
		return nrp_fail(err, NRP_INPUT, -EBADMSG, f->path, -1,
				"decompress it, or write it to a file, and name that",
				"is a trace-cmd file, which is read from a plain file only");
	if (!is_text(head, (size_t)n))
		return nrp_fail(err, NRP_INPUT, -EBADMSG, f->path, 0, REMEDY_TEXT,
				"neither a trace-cmd file nor text");
	return 0;
}

int nrp_textfile_open(struct nrp_textfile **ret, const char *path, struct nrp_error *err)
{
	struct nrp_textfile *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return nrp_fail_nomem(err);
	f->path = strdup(path);
	r = f->path ? nrp_textlines_open(&f->lines, path, err) : nrp_fail_nomem(err);
	if (r == 0)
		r = check_head(f, err);
	if (r == 0)
		r = nrp_textfile_rewind(f, err);
	if (r < 0) {
		nrp_textfile_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

struct nrp_textfile *nrp_textfile_close(struct nrp_textfile *f)
{
	if (!f)
		return NULL;
	nrp_textlines_close(f->lines);
	nrp_textline_free(f->parser);
	free(f->cpus);
	free(f->path);
	free(f);
	return NULL;
}

const struct nrp_catalogue *nrp_textfile_catalogue(const struct nrp_textfile *f)
{
	return nrp_textline_catalogue(f->parser);
}

int nrp_textfile_rewind(struct nrp_textfile *f, struct nrp_error *err)
{
	int r = nrp_textlines_rewind(f->lines, err);

	if (r < 0)
		return r;
	if (!f->parser) {
		r = nrp_textline_new(&f->parser, err);
		if (r < 0)
			return r;
	}
	nrp_textline_restart(f->parser);
	memset(&f->stats, 0, sizeof(f->stats));
	if (f->nr_cpus)
		memset(f->cpus, 0, f->nr_cpus * sizeof(*f->cpus));
	f->events = 0;
	f->last_time = 0;
	f->places = 0;
	f->damage = (struct nrp_error)NRP_ERROR_INIT;
	f->gap = false;
	return 0;
}

static struct cpu *cpu_of(struct nrp_textfile *f, uint32_t cpu)
{
	if (cpu >= f->nr_cpus) {
		size_t n = (size_t)cpu + 16;
		struct cpu *grown = reallocarray(f->cpus, n, sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + f->nr_cpus, 0, (n - f->nr_cpus) * sizeof(*grown));
		f->cpus = grown;
		f->nr_cpus = n;
	}
	return &f->cpus[cpu];
}

static void add_loss(struct cpu *cpu, int64_t lost)
{
	if (!cpu->lost_pending)
		cpu->lost = lost;
	else if (cpu->lost < 0 || lost < 0 || cpu->lost > INT64_MAX - lost)
		cpu->lost = -1;
	else
		cpu->lost += lost;
	cpu->lost_pending = true;
}

static void add_damage(struct nrp_textfile *f, const struct nrp_line_piece *line, const char *what)
{
	if (f->places++)
		return;
	nrp_fail(&f->damage, NRP_INPUT, -EBADMSG, f->path, (int64_t)line->offset,
		 "print or copy it again", "line %llu %s", (unsigned long long)f->stats.lines,
		 what);
}

/* The line may have been an event of any CPU. */
static void take_unread(struct nrp_textfile *f, const struct nrp_line_piece *line, const char *what)
{
	add_damage(f, line, what);
	if (!f->gap)
		f->gap_offset = line->offset;
	f->gap = true;
}

static void take_bad(struct nrp_textfile *f, const struct nrp_line_piece *line, const char *what)
{
	if (!f->stats.bad++)
		f->stats.first_bad = f->stats.lines;
	take_unread(f, line, what);
}

/* Digits at *p, which is moved behind them. */
static bool take_digits(const char **p, const char *end, uint64_t *ret)
{
	const char *from = *p;

	while (*p < end && **p >= '0' && **p <= '9')
		++*p;
	return nrp_text_number(from, *p, 10, ret);
}

/*
 * "# entries-in-buffer/entries-written: 1225/349378", "# .. us, #1225/349378" of the latency
 * format: adds to what was overwritten. false: these cannot be such numbers.
 */
static bool take_entries(struct nrp_textfile *f, const char *p, const char *end)
{
	uint64_t in_buffer, written;

	if (!take_digits(&p, end, &in_buffer) || p == end || *p++ != '/' ||
	    !take_digits(&p, end, &written) || in_buffer > written)
		return false;
	if (__builtin_add_overflow(f->stats.overwritten, written - in_buffer,
				   &f->stats.overwritten))
		f->stats.overwritten = UINT64_MAX;
	return true;
}

static void take_head(struct nrp_textfile *f, const struct nrp_line_piece *line)
{
	static const char *const marks[] = { "entries-in-buffer/entries-written: ", " us, #" };
	const char *end = line->at + line->size;

	f->stats.heads++;
	if (line->size > 5 && !memcmp(line->at, "cpus=", 5))
		f->trace_cmd_header = true;
	for (size_t i = 0; line->size && *line->at == '#' && i < sizeof(marks) / sizeof(marks[0]);
	     i++) {
		size_t size = strlen(marks[i]);
		const char *p = memmem(line->at, line->size, marks[i], size);

		if (p && !take_entries(f, p + size, end))
			take_bad(f, line, "has numbers of entries that cannot be");
	}
}

/* A CPU writes its events in the order of time. */
static void check_order(struct nrp_textfile *f, const struct nrp_line_piece *line,
			struct nrp_raw_event *raw)
{
	if (raw->time >= raw->lost_since)
		return;
	add_damage(f, line, "is older than the CPU's event before it");
	raw->lost_before = true;
	raw->lost = -1;
	raw->lost_cause = NRP_LOSS_BACKWARDS;
	raw->lost_offset = line->offset;
}

static int take_event(struct nrp_textfile *f, const struct nrp_line_piece *line,
		      struct nrp_raw_event *raw, struct nrp_error *err)
{
	struct cpu *cpu = cpu_of(f, raw->cpu);

	if (!cpu)
		return nrp_fail_nomem(err);
	raw->lost_since = cpu->last_time;
	raw->read_before = cpu->events++;
	if (cpu->lost_pending) {
		raw->lost_before = true;
		raw->lost = cpu->lost;
		cpu->lost_pending = false;
	}
	check_order(f, line, raw);
	raw->unread_before = f->gap;
	raw->unread_since = f->last_time;
	raw->unread_offset = f->gap_offset;
	f->gap = false;
	cpu->last_time = raw->time;
	f->stats.backwards += f->events && raw->time < f->last_time;
	f->last_time = raw->time;
	f->events++;
	return 1;
}

/* A line's end of another system, and of pages that keep traces in strings of a program. */
static size_t without_end(const char *p, size_t size)
{
	if (size && p[size - 1] == '\r')
		size--;
	if (size >= 3 && !memcmp(p + size - 3, "\\n\\", 3))
		size -= 3;
	return size;
}

/* 1: an event, 0: another line, < 0. */
static int take_line(struct nrp_textfile *f, const struct nrp_line_piece *line,
		     struct nrp_raw_event *raw, struct nrp_error *err)
{
	struct cpu *cpu;

	f->stats.lines++;
	f->stats.cut = line->cut;
	f->stats.too_long += line->too_long;
	if (line->too_long)
		take_bad(f, line, "is too long");
	if (line->cut)
		take_unread(f, line, "has no end");
	if (line->too_long || line->cut)
		return 0;
	switch (nrp_textline_parse(f->parser, line->at, without_end(line->at, line->size), raw)) {
	case NRP_TEXT_EVENT:
		return take_event(f, line, raw, err);
	case NRP_TEXT_LOSS:
		f->stats.losses++;
		cpu = cpu_of(f, raw->cpu);
		if (!cpu)
			return nrp_fail_nomem(err);
		add_loss(cpu, raw->lost);
		return 0;
	case NRP_TEXT_HEAD:
		take_head(f, line);
		return 0;
	case NRP_TEXT_NOISE:
		f->stats.noise++;
		return 0;
	default:
		take_bad(f, line, "is not understood");
		return 0;
	}
}

static int no_trace(const struct nrp_textfile *f, struct nrp_error *err)
{
	if (!f->events)
		return nrp_fail(err, NRP_INPUT, -EBADMSG, f->path, -1, REMEDY_TEXT,
				"neither a trace-cmd file nor a trace as text: no line of %llu is "
				"an event",
				(unsigned long long)f->stats.lines);
	return nrp_fail(err, NRP_INPUT, -EBADMSG, f->path, -1, REMEDY_TEXT,
			"%llu lines are not understood, from line %llu on, but %llu are events",
			(unsigned long long)f->stats.bad, (unsigned long long)f->stats.first_bad,
			(unsigned long long)f->events);
}

int nrp_textfile_next(struct nrp_textfile *f, struct nrp_raw_event *ret, struct nrp_error *err)
{
	struct nrp_line_piece line;
	int r;

	do {
		r = nrp_textlines_next(f->lines, &line, err);
		if (r < 0)
			return r;
		if (r == 0)
			return f->events && f->stats.bad <= f->events ? 0 : no_trace(f, err);
		if (!f->events && nrp_textlines_offset(f->lines) > NO_EVENT_AFTER)
			return no_trace(f, err);
		r = take_line(f, &line, ret, err);
	} while (r == 0);
	return r;
}

void nrp_textfile_hash(const struct nrp_textfile *f, uint8_t ret[32])
{
	nrp_textlines_hash(f->lines, ret);
}

void nrp_textfile_stats(const struct nrp_textfile *f, struct nrp_text_stats *ret)
{
	const struct nrp_textline_stats *s = nrp_textline_stats(f->parser);

	*ret = f->stats;
	ret->read = true;
	ret->format = s->with_systems       ? "perf script"
		      : f->trace_cmd_header ? "trace-cmd report"
					    : "trace";
	ret->unit = s->unit;
	ret->hashed = s->hashed;
	ret->unresolved = s->unresolved;
	ret->zero_arrays = s->zero_arrays;
}

uint64_t nrp_textfile_damage(const struct nrp_textfile *f, struct nrp_error *ret)
{
	if (f->places)
		*ret = f->damage;
	return f->places;
}

bool nrp_textfile_open_gap(const struct nrp_textfile *f, struct nrp_raw_event *ret)
{
	ret->unread_since = f->last_time;
	ret->unread_offset = f->gap_offset;
	return f->gap;
}

int nrp_textfile_open_loss(const struct nrp_textfile *f, size_t *at, struct nrp_raw_event *ret)
{
	for (; *at < f->nr_cpus; ++*at) {
		const struct cpu *cpu = &f->cpus[*at];

		if (!cpu->lost_pending)
			continue;
		memset(ret, 0, sizeof(*ret));
		ret->cpu = (uint32_t)*at;
		ret->lost = cpu->lost;
		ret->lost_since = cpu->last_time;
		ret->read_before = cpu->events;
		++*at;
		return 1;
	}
	return 0;
}
