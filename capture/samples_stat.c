/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf stat -I MS -x SEPARATOR, one line an event and interval:
 *
 *	time,[CPUn or another place,[number of CPUs,]]value,unit,event,run time,percent running,..
 *
 * The event is looked for; value and unit stand before it. An event's name may hold the separator.
 */
#include "capture/samples_internal.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define MAX_FIELDS 64

/* Parts of the names that processors give to loads and fills from memory. */
static const struct {
	const char *part;
	uint8_t level;
} known[] = {
	{ "node-load-misses", NRP_LEVEL_REMOTE }, /* the kernel's generic events */
	{ "node-loads", NRP_LEVEL_MEMORY },
	{ "remote_dram", NRP_LEVEL_REMOTE }, /* Intel: mem_load_l3_miss_retired, offcore, ocr */
	{ "local_dram", NRP_LEVEL_LOCAL },
	{ "dram_io_far", NRP_LEVEL_REMOTE }, /* AMD Zen 4: ls_any_fills_from_sys, ls_dmnd_.. */
	{ "dram_io_near", NRP_LEVEL_LOCAL },
	{ "dram_io_all", NRP_LEVEL_MEMORY },
	{ "mem_io_remote", NRP_LEVEL_REMOTE }, /* Zen 3 */
	{ "mem_io_local", NRP_LEVEL_LOCAL },
	{ "rmt_dram", NRP_LEVEL_REMOTE }, /* Zen 2 */
	{ "lcl_dram", NRP_LEVEL_LOCAL },
	{ "remote_access", NRP_LEVEL_REMOTE }, /* Arm */
	{ "remote-access", NRP_LEVEL_REMOTE },
};

static bool has_part(struct nrp_piece name, const char *part)
{
	size_t size = strlen(part);

	for (size_t i = 0; i + size <= name.size; i++)
		if (!strncasecmp(name.at + i, part, size))
			return true;
	return false;
}

uint8_t nrp_event_level(struct nrp_piece event, uint8_t *ret_op)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!has_part(event, known[i].part))
			continue;
		*ret_op = has_part(event, "load") || has_part(event, "data_rd") ? NRP_OP_LOAD
										: NRP_OP_UNKNOWN;
		return known[i].level;
	}
	*ret_op = NRP_OP_UNKNOWN;
	return NRP_LEVEL_UNKNOWN;
}

/* Digits and dots, then a separator that no number holds. */
bool nrp_stat_separator(const char *line, char *ret_separator)
{
	const char *from = line + strspn(line, " ");
	size_t size = strspn(from, NRP_DIGITS ".");
	uint64_t ns;

	if (!nrp_parse_seconds((struct nrp_piece){ from, size }, &ns) || !from[size] ||
	    !strchr(",;|\t", from[size]))
		return false;
	*ret_separator = from[size];
	return true;
}

static struct nrp_piece strip(struct nrp_piece field)
{
	while (field.size && field.at[0] == ' ') {
		field.at++;
		field.size--;
	}
	while (field.size && field.at[field.size - 1] == ' ')
		field.size--;
	return field;
}

static size_t split(const char *line, char separator, struct nrp_piece *field)
{
	size_t n = 0;

	for (;;) {
		const char *end = strchr(line, separator);
		size_t size = end ? (size_t)(end - line) : strlen(line);

		if (n == MAX_FIELDS)
			return n;
		field[n++] = strip((struct nrp_piece){ line, size });
		if (!end)
			return n;
		line = end + 1;
	}
}

/* Size of @name with modifiers (":u") at the start of @text up to a separator; 0: not there. */
static size_t named_at(const char *text, const char *name, char separator)
{
	size_t size = strlen(name);

	if (!size || strncmp(text, name, size) != 0)
		return 0;
	if (text[size] == ':')
		size += 1 + strspn(text + size + 1, "ukhGHpPSDWe");
	return !text[size] || text[size] == separator || text[size] == ' ' ? size : 0;
}

/* "cpu/node-loads/:u" -> without ":u"; a colon inside of slashes belongs to the name. */
static struct nrp_piece without_modifiers(struct nrp_piece event)
{
	size_t size = event.size;

	while (size && isalpha((unsigned char)event.at[size - 1]))
		size--;
	if (size > 1 && event.at[size - 1] == ':')
		event.size = size - 1;
	return event;
}

/*
 * Finds the event among the fields from the third on; *ret_next is the first field behind it. The
 * number of its field, 0: none that counts.
 */
static size_t find_event(const struct nrp_piece *field, size_t n, char separator,
			 const char *const *events, struct nrp_stat_line *l, size_t *ret_next)
{
	for (size_t i = 2; i < n; i++) {
		for (size_t k = 0; events && events[k]; k++) {
			size_t size = named_at(field[i].at, events[k], separator);

			if (!size)
				continue;
			l->event = (struct nrp_piece){ field[i].at, strlen(events[k]) };
			l->whole = (struct nrp_piece){ field[i].at, size };
			l->level = nrp_event_level(l->event, &l->op);
			if (l->level == NRP_LEVEL_UNKNOWN)
				l->level = NRP_LEVEL_REMOTE;
			*ret_next = i + 1;
			while (*ret_next < n && field[*ret_next].at < field[i].at + size)
				++*ret_next;
			return i;
		}
		if (events)
			continue;
		l->whole = field[i];
		l->event = without_modifiers(field[i]);
		l->level = nrp_event_level(l->event, &l->op);
		*ret_next = i + 1;
		if (l->level != NRP_LEVEL_UNKNOWN)
			return i;
	}
	return 0;
}

/* "12345", or "12345.00" of some versions. */
static bool parse_count(struct nrp_piece text, uint64_t *ret)
{
	const char *dot = memchr(text.at, '.', text.size);

	if (dot &&
	    !nrp_piece_is((struct nrp_piece){ dot + 1, (size_t)(text.at + text.size - dot - 1) },
			  "0"))
		return false;
	if (dot)
		text.size = (size_t)(dot - text.at);
	return nrp_parse_number(text, 10, ret);
}

/* "99.87": 1/100 %. */
static bool parse_percent(struct nrp_piece text, uint32_t *ret)
{
	const char *dot = memchr(text.at, '.', text.size);
	struct nrp_piece whole = text, part;
	uint64_t percent, hundredths;

	if (!dot)
		return false;
	whole.size = (size_t)(dot - text.at);
	part = (struct nrp_piece){ dot + 1, text.size - whole.size - 1 };
	if (part.size != 2 || !nrp_parse_number(whole, 10, &percent) || percent > 100 ||
	    !nrp_parse_number(part, 10, &hundredths))
		return false;
	*ret = (uint32_t)(percent * 100 + hundredths);
	return *ret <= 10000;
}

static void parse_place(struct nrp_piece field, struct nrp_stat_line *l)
{
	uint64_t cpu;

	if (field.size <= 3 || memcmp(field.at, "CPU", 3) != 0 ||
	    !nrp_parse_number((struct nrp_piece){ field.at + 3, field.size - 3 }, 10, &cpu) ||
	    cpu >= NRP_MAX_CPUS)
		return;
	l->cpu = (uint32_t)cpu;
	l->cpu_known = true;
}

enum nrp_line nrp_stat_line(const char *line, char separator, const char *const *events,
			    struct nrp_stat_line *ret)
{
	struct nrp_stat_line l = { 0 };
	struct nrp_piece field[MAX_FIELDS];
	size_t n, at, next, value;

	if (*line == '#' || !line[strspn(line, " \t")])
		return NRP_LINE_NOTHING;
	n = split(line, separator, field);
	if (n < 3 || !nrp_parse_seconds(field[0], &l.time))
		return NRP_LINE_BAD;
	at = find_event(field, n, separator, events, &l, &next);
	if (!at)
		return NRP_LINE_NOTHING;
	if (l.whole.size > NRP_SAMPLES_MAX_EVENT)
		return NRP_LINE_BAD;
	/* Versions before 3.14 had no unit. */
	value = at > 2 && !nrp_piece_is(field[at - 1], NRP_DIGITS) ? at - 2 : at - 1;
	if (value == 0)
		return NRP_LINE_BAD;
	if (field[value].size && field[value].at[0] == '<')
		return NRP_LINE_NOT_COUNTED; /* <not counted>, <not supported> */
	if (!parse_count(field[value], &l.count) || l.count > NRP_SAMPLES_MAX_COUNT)
		return NRP_LINE_BAD;
	if (value > 1)
		parse_place(field[1], &l);
	l.running_known = next + 1 < n && parse_percent(field[next + 1], &l.running);
	*ret = l;
	return NRP_LINE_SAMPLE;
}
