/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Before an event's name: task, thread, process, CPU, flags and time, read backwards from the
 * colon behind the time. Forms:
 *
 *	comm-tid [cpu] time:			trace-cmd report, old kernels
 *	comm-tid (tgid) [cpu] flags time:	trace, trace_pipe
 *	comm-tid cpuflags time:			trace-cmd report -l; with "us :" latency-format
 *	comm tid [cpu] time:			perf script; or pid/tid
 */
#include "capture/textline.h"

#define MAX_PREFIX 96 /* bytes from the dash before tid to the colon: 64 at most, and room */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_back(const char *line, const char *p)
{
	while (p > line && is_blank(p[-1]))
		p--;
	return p;
}

/* First of the digits that end before @p; @p itself: none. */
static const char *digits_back(const char *line, const char *p)
{
	while (p > line && is_digit(p[-1]))
		p--;
	return p;
}

bool nrp_text_number(const char *p, const char *end, unsigned int base, uint64_t *ret)
{
	uint64_t value = 0;

	if (p >= end)
		return false;
	for (; p < end; p++) {
		unsigned int digit;

		if (is_digit(*p))
			digit = (unsigned int)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			digit = (unsigned int)(*p - 'a') + 10;
		else if (base == 16 && *p >= 'A' && *p <= 'F')
			digit = (unsigned int)(*p - 'A') + 10;
		else
			return false;
		if (value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	*ret = value;
	return true;
}

static bool to_ns(const char *start, const char *dot, const char *end, struct nrp_text_prefix *ret)
{
	uint64_t seconds, part;
	ptrdiff_t places = end - dot - 1;

	if ((places != 6 && places != 9) || !nrp_text_number(start, dot, 10, &seconds) ||
	    !nrp_text_number(dot + 1, end, 10, &part) || seconds > INT64_MAX / 1000000000 - 1)
		return false;
	ret->unit = places == 6 ? NRP_TEXT_US : NRP_TEXT_NS;
	ret->time = seconds * 1000000000 + (places == 6 ? part * 1000 : part);
	return true;
}

/* The time before a colon; its first digit, or NULL. */
static const char *take_time(const char *line, const char *colon, struct nrp_text_prefix *ret)
{
	const char *p = colon, *end, *dot = NULL;
	bool us = false;

	if (p > line && !is_digit(p[-1])) {
		p = skip_back(line, p);
		if (p > line && p[-1] && strchr("+!#*@$?", p[-1])) /* the latency format's marks */
			p--;
		us = p - line > 2 && p[-1] == 's' && p[-2] == 'u';
		if (!us)
			return NULL;
		p -= 2;
	}
	for (end = p; p > line && (is_digit(p[-1]) || (p[-1] == '.' && !dot)); p--)
		if (p[-1] == '.')
			dot = p - 1;
	if (p == end || p == line || !is_blank(p[-1]))
		return NULL;
	if (dot)
		return !us && to_ns(p, dot, end, ret) ? p : NULL;
	if (!nrp_text_number(p, end, 10, &ret->time))
		return NULL;
	ret->unit = us ? NRP_TEXT_US : NRP_TEXT_TICKS;
	if (ret->time > (us ? INT64_MAX / 1000 : INT64_MAX))
		return NULL;
	if (us)
		ret->time *= 1000;
	return p;
}

/* "[003]" that ends before @p; NULL: another form. */
static const char *bracketed_cpu(const char *line, const char *p, uint64_t *ret)
{
	const char *first;

	if (p - line < 3 || p[-1] != ']')
		return NULL;
	first = digits_back(line, p - 1);
	if (first == line || first[-1] != '[' || !nrp_text_number(first, p - 1, 10, ret))
		return NULL;
	return first - 1;
}

/* CPU, and flags if there are any, before @p. */
static const char *take_cpu(const char *line, const char *p, struct nrp_text_prefix *ret)
{
	const char *end = skip_back(line, p), *start = end, *at;
	uint64_t cpu;

	at = bracketed_cpu(line, end, &cpu);
	if (!at) {
		while (start > line && !is_blank(start[-1]))
			start--;
		at = bracketed_cpu(line, skip_back(line, start), &cpu);
	}
	if (!at) { /* the latency format: flags behind the CPU's digits */
		const char *flags = start;

		while (flags < end && is_digit(*flags))
			flags++;
		if (end - flags < 3 || !nrp_text_number(start, flags, 10, &cpu))
			return NULL;
		at = start;
	}
	if (cpu >= NRP_MAX_CPUS)
		return NULL;
	ret->cpu = (uint32_t)cpu;
	return at;
}

static bool task_number(const char *p, const char *end, int32_t *ret)
{
	uint64_t value;

	if (!nrp_text_number(p, end, 10, &value) || value > INT32_MAX)
		return false;
	*ret = (int32_t)value;
	return true;
}

/* "(  1234)", "(-----)": the column of record-tgid. Its first byte, or @p if it is not there. */
static const char *take_tgid(const char *line, const char *p, struct nrp_text_prefix *ret)
{
	const char *open, *digits;

	if (p == line || p[-1] != ')')
		return p;
	for (open = p - 1; open > line && *open != '('; open--)
		if (p - open > 16)
			return p;
	for (digits = open + 1; digits < p && is_blank(*digits); digits++)
		;
	if (!task_number(digits, p - 1, &ret->tgid))
		ret->tgid = 0;
	return open;
}

/* Thread and process before @p; NULL, or where the name of the task ends. */
static const char *take_task(const char *line, const char *p, struct nrp_text_prefix *ret)
{
	const char *end, *first;

	p = skip_back(line, take_tgid(line, skip_back(line, p), ret));
	first = digits_back(line, p);
	if (!task_number(first, p, &ret->tid))
		return NULL;
	if (first == line || is_blank(first[-1]))
		return first;
	if (first[-1] == '-')
		return first - 1;
	end = first - 1;
	first = digits_back(line, end);
	if (*end != '/' || (first > line && !is_blank(first[-1])) ||
	    !task_number(first, end, &ret->tgid))
		return NULL;
	return first;
}

/* Is this the colon behind a time? Gives the length of the task's name. */
static bool prefix_at(const char *line, const char *colon, struct nrp_text_prefix *ret,
		      ptrdiff_t *ret_comm)
{
	const char *p = take_time(line, colon, ret);

	ret->tgid = 0;
	p = p ? take_cpu(line, p, ret) : NULL;
	p = p ? take_task(line, p, ret) : NULL;
	if (!p)
		return false;
	ret->rest = colon + 1;
	*ret_comm = skip_back(line, p) - line;
	return true;
}

bool nrp_text_prefix(const char *line, const char *end, struct nrp_text_prefix *ret)
{
	const char *stop = end, *colon;
	bool found = false;

	while (line < end && is_blank(*line))
		line++;
	for (const char *p = line; p < stop; p = colon + 1) {
		struct nrp_text_prefix here;
		ptrdiff_t comm;

		colon = memchr(p, ':', (size_t)(stop - p));
		if (!colon)
			break;
		if (!prefix_at(line, colon, &here, &comm))
			continue;
		/* Up to here a name could reach: the last one is the line's, the others its name's.
		 */
		if (!found || comm <= NRP_MAX_COMM)
			*ret = here;
		if (comm > NRP_MAX_COMM)
			return true;
		found = true;
		if (end - line > NRP_MAX_COMM + MAX_PREFIX)
			stop = line + NRP_MAX_COMM + MAX_PREFIX;
	}
	return found;
}
