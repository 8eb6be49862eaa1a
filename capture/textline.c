/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/textline_internal.h"

#include <stdlib.h>

const char *nrp_text_unit_name(enum nrp_text_unit unit)
{
	switch (unit) {
	case NRP_TEXT_US:
		return "us";
	case NRP_TEXT_NS:
		return "ns";
	case NRP_TEXT_TICKS:
		return "ticks";
	default:
		return "unknown";
	}
}

int nrp_textline_new(struct nrp_textline **ret, struct nrp_error *err)
{
	struct nrp_textline *t = calloc(1, sizeof(*t));

	if (!t)
		return nrp_fail_nomem(err);
	nrp_text_names_init(t);
	for (int i = NRP_EV_OTHER + 1; i < NRP_NR_EVENTS; i++) {
		t->cat.desc[i].event = (enum nrp_event)i;
		t->cat.by_id[i] = &t->cat.desc[i];
	}
	t->cat.common_pid = (struct nrp_field){
		.offset = offsetof(struct nrp_text_payload, tid),
		.size = sizeof(t->payload.tid),
		.is_signed = true,
	};
	memset(t->cat.skip_reason, NRP_SKIP_UNKNOWN, sizeof(t->cat.skip_reason));
	*ret = t;
	return 0;
}

struct nrp_textline *nrp_textline_free(struct nrp_textline *t)
{
	free(t);
	return NULL;
}

void nrp_textline_restart(struct nrp_textline *t)
{
	memset(&t->stats, 0, sizeof(t->stats));
}

const struct nrp_catalogue *nrp_textline_catalogue(const struct nrp_textline *t)
{
	return &t->cat;
}

const struct nrp_textline_stats *nrp_textline_stats(const struct nrp_textline *t)
{
	return &t->stats;
}

static bool starts_with(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(end - p) >= n && !memcmp(p, word, n);
}

/* "[LOST 113 EVENTS]", "[113 EVENTS DROPPED]", "[EVENTS DROPPED]" behind "CPU:7 ". */
static bool loss_words(const char *p, const char *end, int64_t *ret)
{
	const char *close = memchr(p, ']', (size_t)(end - p));
	bool lost = starts_with(p, end, "[LOST ");
	uint64_t count;

	if (!close || p == end || *p != '[')
		return false;
	if (starts_with(p, end, "[EVENTS DROPPED]") || starts_with(p, end, "[LOST EVENTS]")) {
		*ret = -1;
		return true;
	}
	p += lost ? 6 : 1;
	close = nrp_text_word(p, close);
	if (!nrp_text_number(p, close, 10, &count) || count > INT64_MAX ||
	    !starts_with(close, end, lost ? " EVENTS]" : " EVENTS DROPPED]"))
		return false;
	*ret = count ? (int64_t)count : -1; /* something was lost, or nobody would say so */
	return true;
}

/* "CPU:7 [..]", perhaps behind the name of an instance. */
static bool loss_line(const char *p, const char *end, struct nrp_raw_event *ret)
{
	const char *cpu = memmem(p, (size_t)(end - p), "CPU:", 4), *digits;
	uint64_t number;

	if (!cpu || (cpu > p && !nrp_text_blank(cpu[-1])))
		return false;
	digits = cpu + 4;
	p = nrp_text_word(digits, end);
	if (!nrp_text_number(digits, p, 10, &number) || number >= NRP_MAX_CPUS ||
	    !loss_words(nrp_text_skip(p, end), end, &ret->lost))
		return false;
	ret->cpu = (uint32_t)number;
	return true;
}

/* "39)   0.677 us  |  f();", " => f", "ffffffff810d47be f (..)": function graph, stacks, call
 * chains. */
static bool is_noise(const char *p, const char *end)
{
	const char *word = nrp_text_word(p, end), *digits = p;
	uint64_t number;

	while (digits < end && *digits >= '0' && *digits <= '9')
		digits++;
	if (digits > p && digits < end && *digits == ')')
		return true;
	if (starts_with(p, end, "=> ") || starts_with(p, end, "------") ||
	    memmem(p, (size_t)(end - p), " | ", 3))
		return true;
	return word - p >= 5 && word < end && nrp_text_number(p, word, 16, &number);
}

/* Lines that trace-cmd and perf write around the events. */
static bool is_head(const char *p, const char *end)
{
	static const char *const words[] = { "#",
					     "cpus=",
					     "version = ",
					     "trace-cmd ",
					     "TIME EXTEND:",
					     "[ perf ",
					     "Dumping ftrace buffer" };

	if (p == end)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (starts_with(p, end, words[i]))
			return true;
	/* "CPU 3 is empty", "CPU:3 [SUBBUFFER START] [..]", "##### CPU 2 buffer started ####" */
	return (starts_with(p, end, "CPU ") || starts_with(p, end, "CPU:")) &&
	       (memmem(p, (size_t)(end - p), " is empty", 9) ||
		memmem(p, (size_t)(end - p), "SUBBUFFER", 9));
}

static enum nrp_text_kind other_line(const char *p, const char *end, struct nrp_raw_event *ret)
{
	p = nrp_text_skip(p, end);
	if (is_head(p, end))
		return NRP_TEXT_HEAD;
	if (loss_line(p, end, ret))
		return NRP_TEXT_LOSS;
	return is_noise(p, end) ? NRP_TEXT_NOISE : NRP_TEXT_BAD;
}

/* A system call as the kernel itself prints it: "sys_mmap(addr: 0, ..)", "sys_mmap -> 0x7f00". */
static bool system_call(struct nrp_textline *t, const char *p, const char *end,
			enum nrp_event *ret_event)
{
	*ret_event = NRP_EV_OTHER;
	for (int event = NRP_EV_ENTER_MMAP; event < NRP_EV_EXIT_SHMDT; event += 2) {
		/* "sys_enter_mmap" without "enter_" */
		const char *name = nrp_event_name((enum nrp_event)event) + strlen("sys_enter_");
		const char *behind = p + strlen("sys_") + strlen(name);

		if (!starts_with(p, end, "sys_") || !starts_with(p + strlen("sys_"), end, name))
			continue;
		if (starts_with(behind, end, "(")) {
			*ret_event = (enum nrp_event)event;
			memset(t->cat.desc[*ret_event].field, 0,
			       sizeof(t->cat.desc[*ret_event].field));
			nrp_text_arguments(t, *ret_event, behind + 1, end);
			return true;
		}
		if (starts_with(behind, end, " -> ")) {
			*ret_event = (enum nrp_event)(event + 1);
			nrp_text_result(t, *ret_event, behind + 4, end);
			return true;
		}
	}
	return starts_with(p, end, "sys_") &&
	       (memchr(p, '(', (size_t)(end - p)) || memmem(p, (size_t)(end - p), " -> ", 4));
}

/* The fields behind the event's name. false: not the event that the name promises. */
static bool take_fields(struct nrp_textline *t, enum nrp_event event, const char *p,
			const char *end)
{
	p = nrp_text_skip(p, end);
	memset(t->cat.desc[event].field, 0, sizeof(t->cat.desc[event].field));
	if (event == NRP_EV_FILTER_BEGIN)
		t->cat.weight_fields = 0;
	if (event <=
	    NRP_EV_HUGETLB_MOVED) { /* a probe: "(function+0x0/0x10 <- caller) key=value" */
		const char *close = p < end && *p == '(' ? memchr(p, ')', (size_t)(end - p)) : NULL;

		if (!close)
			return false;
		nrp_text_fields(t, event, close + 1, end);
		return true;
	}
	if (nrp_event_is_call(event)) {
		if (nrp_event_is_exit(event))
			nrp_text_result(t, event, p, end);
		else
			nrp_text_arguments(t, event, p, end);
	} else if (event == NRP_EV_CONTENTION_BEGIN || event == NRP_EV_CONTENTION_END) {
		nrp_text_contention(t, event, p, end);
	} else {
		nrp_text_fields(t, event, p, end);
	}
	return true;
}

/*
 * The name behind the time: "name:", perf's "system:name:", perhaps behind its "period". A word
 * without colon is a function that was traced. false: no event.
 */
static bool take_event(struct nrp_textline *t, const char *p, const char *end,
		       enum nrp_event *ret_event)
{
	const char *word = nrp_text_word(p, end), *name = p, *colon;
	uint64_t period;

	if (nrp_text_number(p, word, 10, &period)) {
		p = nrp_text_skip(word, end);
		word = nrp_text_word(p, end);
	}
	if (word == p || word[-1] != ':' || memchr(p, '(', (size_t)(word - p)))
		return system_call(t, p, end, ret_event);
	name = p;
	word--;
	colon = memrchr(p, ':', (size_t)(word - p));
	if (colon)
		name = colon + 1;
	t->stats.with_systems |= colon != NULL;
	*ret_event = nrp_text_event_by_name(t, p, colon ? (size_t)(colon - p) : 0, name,
					    (size_t)(word - name));
	if (*ret_event != NRP_EV_OTHER && !take_fields(t, *ret_event, word + 1, end))
		*ret_event = NRP_EV_OTHER;
	return true;
}

/* "PERF_RECORD_LOST lost 5", "PERF_RECORD_LOST_SAMPLES lost 5" */
static bool perf_loss(const char *p, const char *end, int64_t *ret)
{
	uint64_t count;

	if (!starts_with(p, end, "PERF_RECORD_LOST"))
		return false;
	p = nrp_text_skip(nrp_text_word(p, end), end);
	*ret = -1;
	if (starts_with(p, end, "lost ") &&
	    nrp_text_number(p + 5, nrp_text_word(p + 5, end), 10, &count) && count &&
	    count <= INT64_MAX)
		*ret = (int64_t)count;
	return true;
}

enum nrp_text_kind nrp_textline_parse(struct nrp_textline *t, const char *line, size_t size,
				      struct nrp_raw_event *ret)
{
	struct nrp_text_prefix prefix;
	const char *end = line + size, *rest;
	enum nrp_event event;

	memset(ret, 0, sizeof(*ret));
	if (memchr(line, '\0', size))
		return NRP_TEXT_BAD;
	if (!nrp_text_prefix(line, end, &prefix))
		return other_line(line, end, ret);
	if (t->stats.unit != NRP_TEXT_NO_UNIT && prefix.unit != t->stats.unit)
		return NRP_TEXT_BAD;
	rest = nrp_text_skip(prefix.rest, end);
	if (rest == end)
		return NRP_TEXT_BAD;
	ret->time = prefix.time;
	ret->cpu = prefix.cpu;
	if (perf_loss(rest, end, &ret->lost))
		return NRP_TEXT_LOSS;
	if (!take_event(t, rest, end, &event))
		return NRP_TEXT_NOISE;
	t->stats.unit = prefix.unit;
	t->cat.present[event] = true;
	t->payload.tid = prefix.tid;
	ret->id = event == NRP_EV_OTHER ? -1 : (int)event;
	ret->tgid = prefix.tgid;
	ret->data = (const uint8_t *)&t->payload;
	ret->size = sizeof(t->payload);
	return NRP_TEXT_EVENT;
}
