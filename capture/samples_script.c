/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf script, one line a sample:
 *
 *	comm pid/tid [cpu] time: period event: addr data_src |OP LOAD|LVL Local RAM hit|SNP None|..
 *	    weight ip symbol (object)
 *
 * Every field but the time can be missing. The text of the levels has changed: "Remote RAM (1 hop)
 * hit" became "Remote node, same socket RAM hit", and "L3 hit" was "L3 or L3 hit" in between.
 */
#include "capture/samples_internal.h"

#include <string.h>

#define MAX_TOKENS 64    /* looked at on either side of the time */
#define MAX_WEIGHT 65535 /* more is an instruction's address */

static bool contains(struct nrp_piece piece, const char *text)
{
	return memmem(piece.at, piece.size, text, strlen(text)) != NULL;
}

static bool starts_with(struct nrp_piece piece, const char *text)
{
	return piece.size >= strlen(text) && !memcmp(piece.at, text, strlen(text));
}

/* Splits at blanks up to @end; what is beyond @max tokens is left. */
static size_t split(const char *from, const char *end, struct nrp_piece *tokens, size_t max)
{
	size_t n = 0;

	while (n < max) {
		const char *at;

		while (from < end && (*from == ' ' || *from == '\t'))
			from++;
		if (from == end)
			break;
		for (at = from; from < end && *from != ' ' && *from != '\t';)
			from++;
		tokens[n++] = (struct nrp_piece){ at, (size_t)(from - at) };
	}
	return n;
}

/* ---- data source -------------------------------------------------------------------- */

/* L0 .. L4 */
static bool has_cache_level(struct nrp_piece part)
{
	for (size_t i = 0; i + 1 < part.size; i++)
		if (part.at[i] == 'L' && part.at[i + 1] >= '0' && part.at[i + 1] <= '4')
			return true;
	return false;
}

/* One of the levels that " or " joins; @remote: the whole text begins with "Remote". */
static uint8_t level_part(struct nrp_piece part, bool remote, bool same_node)
{
	bool far = (remote || contains(part, "Remote")) && !same_node;

	if (contains(part, "LFB"))
		return NRP_LEVEL_UNKNOWN; /* on its way, from wherever */
	if (contains(part, "PMEM") || contains(part, "CXL"))
		return far ? NRP_LEVEL_REMOTE : NRP_LEVEL_UNKNOWN;
	if (contains(part, "RAM"))
		return far ? NRP_LEVEL_REMOTE : NRP_LEVEL_LOCAL;
	if (contains(part, "Cache") || contains(part, " cache") || has_cache_level(part))
		return far ? NRP_LEVEL_REMOTE_CACHE : NRP_LEVEL_CACHE;
	return NRP_LEVEL_UNKNOWN;
}

static uint8_t parse_level(struct nrp_piece text)
{
	bool remote = starts_with(text, "Remote "), same_node = contains(text, "same node");
	uint8_t level = NRP_NR_LEVELS;

	if (contains(text, "miss"))
		return NRP_LEVEL_UNKNOWN; /* says only where it was not */
	while (text.size) {
		const char * or = memmem(text.at, text.size, " or ", 4);
		size_t size = or ? (size_t)(or -text.at) : text.size;
		uint8_t part = level_part((struct nrp_piece){ text.at, size }, remote, same_node);

		if (level != NRP_NR_LEVELS && level != part)
			return NRP_LEVEL_UNKNOWN;
		level = part;
		size += or ? 4 : 0;
		text = (struct nrp_piece){ text.at + size, text.size - size };
	}
	return level == NRP_NR_LEVELS ? NRP_LEVEL_UNKNOWN : level;
}

static uint8_t parse_op(struct nrp_piece text)
{
	if (contains(text, "LOAD"))
		return NRP_OP_LOAD;
	if (contains(text, "STORE"))
		return NRP_OP_STORE;
	if (contains(text, "PFETCH") || contains(text, "EXEC"))
		return NRP_OP_OTHER;
	return NRP_OP_UNKNOWN; /* "N/A", "No" */
}

/* Text behind "|KEY " up to the next bar. */
static struct nrp_piece member(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	if (!at)
		return (struct nrp_piece){ NULL, 0 };
	at += strlen(key);
	return (struct nrp_piece){ at, strcspn(at, "|") };
}

/*
 * The weight stands behind the last member of the data source and its value. Alone at the end of
 * the line, or before other numbers, it is one; before a symbol it is an instruction's address.
 */
static void parse_weight(const char *bar, struct nrp_memory_sample *s)
{
	struct nrp_piece token[MAX_TOKENS];
	const char *next;
	uint64_t weight;
	size_t n;

	/* The last member; a symbol may hold a bar too. */
	while ((next = strchr(bar + 1, '|')) && next[1] >= 'A' && next[1] <= 'Z')
		bar = next;
	n = split(bar + 1, bar + strlen(bar), token, MAX_TOKENS);

	for (size_t i = 1; i < n; i++) {
		if (!nrp_parse_number(token[i], 10, &weight))
			continue;
		if (weight <= MAX_WEIGHT &&
		    (i + 1 == n || nrp_piece_is(token[i + 1], NRP_HEX_DIGITS)))
			NRP_SET(s, memory_sample, weight, (uint32_t)weight);
		return;
	}
}

/* @bar: the first bar of the line. Versions that lost "|OP ..|LVL " left the level before it. */
static void parse_source(const char *bar, struct nrp_piece level, struct nrp_memory_sample *s)
{
	struct nrp_piece named = member(bar, "|LVL ");

	NRP_SET(s, memory_sample, level, parse_level(named.at ? named : level));
	named = member(bar, "|OP ");
	NRP_SET(s, memory_sample, op, named.at ? parse_op(named) : NRP_OP_UNKNOWN);
	parse_weight(bar, s);
}

/* ---- before and behind the time ------------------------------------------------------ */

static bool parse_cpu(struct nrp_piece token, struct nrp_memory_sample *s)
{
	uint64_t cpu;

	if (token.size < 3 || token.at[0] != '[' || token.at[token.size - 1] != ']' ||
	    !nrp_parse_number((struct nrp_piece){ token.at + 1, token.size - 2 }, 10, &cpu) ||
	    cpu >= NRP_MAX_CPUS)
		return false;
	NRP_SET(s, memory_sample, cpu, (uint32_t)cpu);
	return true;
}

/* "tid" or "pid/tid" */
static bool parse_thread(struct nrp_piece token, struct nrp_memory_sample *s)
{
	const char *slash = memchr(token.at, '/', token.size);
	struct nrp_piece tid = token;
	uint64_t value;

	if (slash) {
		struct nrp_piece pid = { token.at, (size_t)(slash - token.at) };

		if (!nrp_parse_number(pid, 10, &value) || value > INT32_MAX)
			return false;
		tid = (struct nrp_piece){ slash + 1, token.size - pid.size - 1 };
		NRP_SET(s, memory_sample, tgid, (int32_t)value);
	}
	if (!nrp_parse_number(tid, 10, &value) || value > INT32_MAX)
		return false;
	NRP_SET(s, memory_sample, tid, (int32_t)value);
	return true;
}

/*
 * Finds the time, and the thread and CPU before it; a name of a program can look like any of them.
 * The text behind the time, NULL: no sample.
 */
static const char *parse_head(const char *line, struct nrp_memory_sample *s)
{
	struct nrp_piece token[MAX_TOKENS];
	size_t n = split(line, line + strlen(line), token, MAX_TOKENS);

	for (size_t i = 0; i < n; i++) {
		struct nrp_piece time = { token[i].at, token[i].size - 1 };
		size_t before = i;
		uint64_t ns;

		if (token[i].at[time.size] != ':' || !nrp_parse_seconds(time, &ns))
			continue;
		s->null = ~UINT64_C(0);
		if (before && parse_cpu(token[before - 1], s))
			before--;
		if (before && !parse_thread(token[before - 1], s))
			continue;
		NRP_SET(s, memory_sample, time, ns);
		return token[i].at + token[i].size;
	}
	return NULL;
}

/* A line of a call chain: an address, then a symbol. */
static bool is_call_chain(const char *line)
{
	struct nrp_piece token;

	return (*line == ' ' || *line == '\t') &&
	       split(line, line + strlen(line), &token, 1) == 1 && token.size >= 4 &&
	       nrp_piece_is(token, NRP_HEX_DIGITS);
}

/*
 * [period] event: [addr] [data_src] up to the first bar. Returns what is between the numbers and
 * the bar.
 */
static struct nrp_piece parse_middle(const char *from, const char *bar, const char *end,
				     struct nrp_memory_sample *s, struct nrp_piece *event)
{
	struct nrp_piece token[MAX_TOKENS];
	size_t n = split(from, bar ? bar : end, token, MAX_TOKENS), i = 0, first;
	uint64_t value;

	while (i < n && token[i].at[token[i].size - 1] != ':')
		i++;
	if (i < n) {
		*event = (struct nrp_piece){ token[i].at, token[i].size - 1 };
		if (i && nrp_parse_number(token[i - 1], 10, &value) &&
		    value <= NRP_SAMPLES_MAX_COUNT)
			NRP_SET(s, memory_sample, period, value);
		i++;
	} else {
		i = 0;
	}
	for (first = i; i < n && nrp_piece_is(token[i], NRP_HEX_DIGITS);)
		i++;
	/* A single number is the data source, or, without one, the instruction's address. */
	if (i - first >= 2 && nrp_parse_number(token[first], 16, &value) && value)
		NRP_SET(s, memory_sample, addr, value);
	if (!bar || i == n)
		return (struct nrp_piece){ from, 0 };
	return (struct nrp_piece){ token[i].at, (size_t)(bar - token[i].at) };
}

enum nrp_line nrp_script_line(const char *line, struct nrp_memory_sample *ret,
			      struct nrp_piece *ret_event)
{
	struct nrp_memory_sample s = { .null = ~UINT64_C(0) };
	struct nrp_piece event = { NULL, 0 }, level;
	const char *rest, *bar;
	uint8_t op = NRP_OP_UNKNOWN;

	if (*line == '#' || !line[strspn(line, " \t")])
		return NRP_LINE_NOTHING;
	rest = parse_head(line, &s);
	if (!rest)
		return is_call_chain(line) ? NRP_LINE_NOTHING : NRP_LINE_BAD;
	if (!strncmp(rest + strspn(rest, " \t"), "PERF_RECORD_", 12))
		return NRP_LINE_NOTHING;
	bar = strchr(rest, '|');
	if (bar && strncmp(bar, "|OP ", 4) != 0 && strncmp(bar, "|SNP ", 5) != 0)
		bar = NULL; /* of a symbol */
	level = parse_middle(rest, bar, rest + strlen(rest), &s, &event);
	if (bar)
		parse_source(bar, level, &s);
	if (NRP_NULL(&s, memory_sample, level) || s.level == NRP_LEVEL_UNKNOWN) {
		uint8_t by_name = event.size ? nrp_event_level(event, &op) : NRP_LEVEL_UNKNOWN;

		NRP_SET(&s, memory_sample, level, by_name);
		if (NRP_NULL(&s, memory_sample, op) || s.op == NRP_OP_UNKNOWN)
			NRP_SET(&s, memory_sample, op, op);
		/* IBS samples instructions that do not go to memory too. */
		if (by_name == NRP_LEVEL_UNKNOWN && (!bar || s.op == NRP_OP_UNKNOWN))
			return NRP_LINE_WITHOUT_SOURCE;
	}
	if (event.size > NRP_SAMPLES_MAX_EVENT)
		return NRP_LINE_BAD;
	*ret = s;
	*ret_event = event;
	return NRP_LINE_SAMPLE;
}
