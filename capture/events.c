/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/events.h"
#include "capture/event_format.h"
#include "numareplay/text.h"

#include <event-parse.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct event_spec {
	const char *system;
	const char *name;
	const char *fields; /* "page, page_flags, .." */
};

static const struct event_spec specs[NRP_NR_EVENTS] = {
#define EVENT_SPEC(NAME, system, name, ...) [NRP_EV_##NAME] = { #system, name, #__VA_ARGS__ },
	NRP_EVENTS(EVENT_SPEC)
#undef EVENT_SPEC
};

const char *nrp_event_name(enum nrp_event event)
{
	return event > NRP_EV_OTHER && event < NRP_NR_EVENTS ? specs[event].name : "other";
}

enum nrp_event nrp_event_by_name(const char *system, const char *name)
{
	for (int i = NRP_EV_OTHER + 1; i < NRP_NR_EVENTS; i++)
		if (!strcmp(specs[i].system, system) && !strcmp(specs[i].name, name))
			return (enum nrp_event)i;
	return NRP_EV_OTHER;
}

static void resolve(struct nrp_field *ret, const struct tep_format_field *field, bool swap)
{
	if (!field || field->offset < 0 || field->size <= 0 || field->offset > UINT16_MAX ||
	    field->size > UINT16_MAX)
		return;
	ret->offset = (uint16_t)field->offset;
	ret->size = (uint16_t)field->size;
	ret->is_signed = field->flags & TEP_FIELD_IS_SIGNED;
	ret->is_dynamic = field->flags & TEP_FIELD_IS_DYNAMIC;
	if (swap || ret->is_dynamic || ret->size > 8 || (ret->size & (ret->size - 1)))
		return;
	ret->plain = (uint8_t)ret->size;
	ret->end = (uint32_t)ret->offset + ret->size;
}

/* Walks a "a, b, c" list; each call copies the next name. */
static bool next_name(const char **list, char *name, size_t size)
{
	size_t n;

	*list += strspn(*list, ", \t\n\\");
	n = strcspn(*list, ", \t\n\\");
	if (!n || n >= size)
		return false;
	memcpy(name, *list, n);
	name[n] = '\0';
	*list += n;
	return true;
}

static void resolve_fields(struct nrp_event_desc *desc, struct tep_event *event, bool swap)
{
	const char *list = specs[desc->event].fields;
	char name[64];

	for (int i = 0; i < NRP_MAX_EVENT_FIELDS && next_name(&list, name, sizeof(name)); i++)
		resolve(&desc->field[i], tep_find_field(event, name), swap);
}

/* filter_begin of kernels without array arguments: f0, f1, .. of 8 bytes each, side by side. */
static uint16_t count_weight_fields(struct tep_event *event)
{
	const struct tep_format_field *first = tep_find_field(event, "f0");
	uint16_t n = 0;

	for (; n < 4 * NRP_MAX_NODES; n++) {
		char name[16];
		const struct tep_format_field *field;

		snprintf(name, sizeof(name), "f%u", n);
		field = tep_find_field(event, name);
		if (!field || field->size != 8 || field->offset != first->offset + 8 * n)
			break;
	}
	return n;
}

uint8_t nrp_skip_reason_by_name(const char *name, size_t length)
{
	static const struct {
		const char *name;
		uint8_t reason;
	} known[] = {
		{ "unsuitable", NRP_SKIP_UNSUITABLE },
		{ "shared_ro", NRP_SKIP_SHARED_RO },
		{ "inaccessible", NRP_SKIP_INACCESSIBLE },
		{ "scan_delay", NRP_SKIP_SCAN_DELAY },
		{ "pid_inactive", NRP_SKIP_PID_INACTIVE },
		{ "ignore_pid_inactive", NRP_SKIP_IGNORE_PID },
		{ "seq_completed", NRP_SKIP_SEQ_COMPLETED },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].name) == length && !memcmp(known[i].name, name, length))
			return known[i].reason;
	return NRP_SKIP_UNKNOWN;
}

static void set_skip_reason(struct nrp_catalogue *cat, unsigned long number, const char *name,
			    size_t size)
{
	char *kept = cat->skip_name[number];

	cat->skip_reason[number] = nrp_skip_reason_by_name(name, size);
	if (cat->skip_reason[number] != NRP_SKIP_UNKNOWN)
		return;
	if (size >= sizeof(cat->skip_name[number]))
		size = sizeof(cat->skip_name[number]) - 1;
	memcpy(kept, name, size);
	kept[size] = '\0';
	nrp_text_clean(kept);
}

/* The enum grew commit by commit: the numbers mean what the format's own text says. */
static void parse_skip_reasons(struct nrp_catalogue *cat, const char *format)
{
	const char *p = strstr(format, "__print_symbolic(");

	memset(cat->skip_reason, NRP_SKIP_UNKNOWN, sizeof(cat->skip_reason));
	while (p && (p = strchr(p, '{'))) {
		unsigned long number;
		const char *open, *close;
		char *end;

		number = strtoul(p + 1, &end, 0);
		open = strchr(end, '"');
		close = open ? strchr(open + 1, '"') : NULL;
		if (!close)
			break;
		if (number < sizeof(cat->skip_reason))
			set_skip_reason(cat, number, open + 1, (size_t)(close - open - 1));
		p = close;
	}
}

/*
 * Only the fields count: the parser is not shown the print format, which in a damaged file may be
 * more than it can take.
 */
static void parse_fields(struct tep_handle *tep, const struct nrp_event_format *format)
{
	const char *print = strstr(format->text, "\nprint fmt:");
	size_t fields = print ? (size_t)(print + 1 - format->text) : format->size;
	char *text;
	int size = asprintf(&text, "%.*sprint fmt: \"\"\n", (int)fields, format->text);

	if (size < 0)
		return;
	tep_parse_event(tep, text, (unsigned long)size, format->system);
	free(text);
}

/* The parser gets a format only if it is whole. */
static int add_format(struct nrp_catalogue *cat, struct tep_handle *tep,
		      const struct nrp_event_format *format, enum nrp_event event,
		      const char **ret_what)
{
	struct nrp_event_desc *desc = &cat->desc[event];
	struct tep_event *parsed;
	int r = nrp_event_format_check(format, tep_get_long_size(tep), ret_what);

	if (r < 0)
		return r;
	parse_fields(tep, format);
	parsed = tep_find_event_by_name(tep, format->system, format->name);
	if (!parsed) {
		*ret_what = "a field that cannot be parsed";
		return -EBADMSG;
	}
	desc->event = event;
	resolve_fields(desc, parsed, cat->swap);
	cat->present[event] = true;
	cat->by_id[format->id] = desc;
	if (!cat->common_pid.size)
		resolve(&cat->common_pid, tep_find_common_field(parsed, "common_pid"), cat->swap);
	if (event == NRP_EV_FILTER_BEGIN && tep_find_field(parsed, "f0"))
		cat->weight_fields = count_weight_fields(parsed);
	if (event == NRP_EV_SKIP_VMA)
		parse_skip_reasons(cat, format->text);
	return 0;
}

/* Adds one format of the file; NRP_INPUT if it is not what a kernel writes. */
static int take_format(struct nrp_catalogue *cat, struct tep_handle *tep,
		       const struct nrp_tracefile *file, const struct nrp_event_format *format,
		       struct nrp_error *err)
{
	enum nrp_event event = nrp_event_by_name(format->system, format->name);
	const char *what = "the ID of another event";
	int r = -EBADMSG;

	if (event == NRP_EV_OTHER)
		return 0;
	if (format->id >= 0 && format->id < NRP_MAX_EVENT_IDS &&
	    (!cat->by_id[format->id] || cat->by_id[format->id] == &cat->desc[event]))
		r = add_format(cat, tep, format, event, &what);
	if (r == -ENOMEM)
		return nrp_fail_nomem(err);
	if (r < 0)
		return nrp_fail(err, NRP_INPUT, r, nrp_tracefile_path(file), -1,
				"the file's headers are damaged; copy or record it again",
				"event format %s:%s has %s", format->system, format->name, what);
	return 0;
}

int nrp_catalogue_new(struct nrp_catalogue **ret, struct nrp_tracefile *file, struct nrp_error *err)
{
	struct nrp_catalogue *cat = calloc(1, sizeof(*cat));
	struct tep_handle *tep = tep_alloc();
	int r = 0;

	if (!cat || !tep) {
		r = nrp_fail_nomem(err);
		goto out;
	}
	/* Its complaints about a bad format go nowhere: we report the format ourselves. */
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_file_bigendian(tep, nrp_tracefile_swapped(file) !=
						    (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
					    ? TEP_BIG_ENDIAN
					    : TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, nrp_tracefile_long_size(file));
	cat->swap = nrp_tracefile_swapped(file);
	for (size_t i = 0; r == 0 && i < nrp_tracefile_nr_formats(file); i++) {
		struct nrp_error damage = NRP_ERROR_INIT;

		r = take_format(cat, tep, file, nrp_tracefile_format(file, i), &damage);
		r = nrp_tracefile_lose_format(file, r, &damage, err);
	}
out:
	tep_free(tep);
	if (r < 0) {
		free(cat);
		return r;
	}
	*ret = cat;
	return 0;
}
