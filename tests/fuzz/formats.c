/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What we and libtraceevent make of event formats: a byte of flags, then formats, each the number
 * of an event (one byte) and its text up to a NUL.
 */
#include "tests/fuzz/fuzz.h"

#include "capture/events.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *system, *name;
} events[] = { [NRP_EV_OTHER] = { "sched", "sample" },
#define EVENT(NAME, system_, name_, ...) [NRP_EV_##NAME] = { #system_, name_ },
	       NRP_EVENTS(EVENT)
#undef EVENT
};

static void put_system(struct nrp_blob *out, const char *system, const void *text, size_t size,
		       bool big)
{
	must(nrp_blob_append(out, system, strlen(system) + 1) && nrp_blob_number(out, 1, 4, big) &&
	     nrp_blob_number(out, size, 8, big) && nrp_blob_append(out, text, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nrp_blob formats = { 0 }, count = { 0 }, file;
	struct nrp_trace_parts *parts;
	uint32_t n = 0;
	bool big;

	if (!size)
		return 0;
	big = data[0] & FUZZ_BIG;
	for (size_t at = 1; at < size; n++) {
		size_t event = data[at++] % (sizeof(events) / sizeof(events[0]));
		const uint8_t *nul = memchr(data + at, 0, size - at);
		size_t length = nul ? (size_t)(nul - data) - at : size - at;
		char name[300];
		int line = snprintf(name, sizeof(name), "name: %s\n", events[event].name);
		struct nrp_blob text = { 0 };

		must(nrp_blob_append(&text, name, (size_t)line) &&
		     nrp_blob_append(&text, data + at, length));
		put_system(&formats, events[event].system, text.data, text.size, big);
		free(text.data);
		at += length + 1;
	}
	parts = fuzz_parts(data[0]);
	free(parts->event_formats.data);
	must(nrp_blob_number(&count, n, 4, big) &&
	     (!formats.size || nrp_blob_append(&count, formats.data, formats.size)));
	parts->event_formats = count;
	free(formats.data);
	file = sample_bytes(parts, FUZZ_FORMAT(data[0]));
	fuzz_read_trace(file.data, file.size);
	free(file.data);
	nrp_parts_free(parts);
	return 0;
}
