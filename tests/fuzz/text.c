/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace as text: each of its lines alone, then the import of the whole. */
#include "tests/fuzz/fuzz.h"

#include "capture/calibrate.h"
#include "capture/join.h"
#include "capture/source.h"

#include <string.h>

/* A copy of the line without a byte behind it, so that a sanitizer sees what reads on. */
static void parse_line(struct nrp_textline *parser, const uint8_t *line, size_t size)
{
	struct nrp_raw_event raw;
	char *copy = malloc(size);

	must(copy || !size);
	if (size)
		memcpy(copy, line, size);
	nrp_textline_parse(parser, copy, size, &raw);
	free(copy);
}

static void parse_lines(const uint8_t *data, size_t size)
{
	struct nrp_textline *parser;

	must(nrp_textline_new(&parser, NULL) == 0);
	while (size) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t length = end ? (size_t)(end - data) : size;

		parse_line(parser, data, length);
		length += end != NULL;
		data += length;
		size -= length;
	}
	nrp_textline_free(parser);
}

/* One reading, up to the end: 0, < 0. The events go to what is not NULL. */
static int read_events(struct nrp_source *source, struct nrp_calibration *cal,
		       struct nrp_joiner *joiner)
{
	struct nrp_error damage = NRP_ERROR_INIT;
	const struct nrp_raw_event *event;
	bool broken;
	int r;

	while ((r = nrp_source_next(source, &event, &damage, &broken, NULL)) > 0) {
		if (cal)
			must(nrp_calibration_event(cal, event) == 0);
		if (joiner)
			must(nrp_joiner_event(joiner, event, NULL) == 0);
	}
	return r;
}

/* As import does it, but for the blocks of records: they cost more than all the rest. */
static void join(struct nrp_source *source, const struct nrp_host_facts *facts,
		 struct nrp_store *store, int64_t capture_id)
{
	struct nrp_writer *writer = NULL;
	struct nrp_joiner *joiner = NULL;

	must(nrp_writer_new(&writer, store, capture_id, NULL) == 0 &&
	     nrp_joiner_new(&joiner, nrp_source_catalogue(source), facts, store, writer, capture_id,
			    NULL) == 0 &&
	     nrp_source_rewind(source, NULL) == 0 && read_events(source, NULL, joiner) == 0 &&
	     nrp_source_losses(source, joiner, NULL) == 0 && nrp_joiner_finish(joiner, NULL) == 0);
	nrp_joiner_free(joiner);
	nrp_writer_free(writer);
}

static void import(struct nrp_source *source)
{
	struct nrp_capture capture = { .name = "text", .source = "text" };
	struct nrp_store *store = fuzz_store_begin();
	struct nrp_calibration *cal = NULL;

	nrp_host_facts_init(&capture.facts);
	must(nrp_calibration_new(&cal, nrp_source_catalogue(source), true, NULL) == 0 &&
	     nrp_store_add_capture(store, &capture, NULL) == 0);
	if (read_events(source, cal, NULL) == 0 &&
	    nrp_calibration_finish(cal, true, &capture.facts, NULL) == 0)
		join(source, &capture.facts, store, capture.id);
	nrp_calibration_free(cal);
	nrp_store_rollback(store);
	nrp_capture_clear(&capture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nrp_source *source;

	parse_lines(data, size);
	if (nrp_source_open(&source, sample_file(data, size), true, false, NULL) < 0)
		return 0;
	if (nrp_source_needs_survey(source)) /* it is text */
		import(source);
	nrp_source_close(source);
	return 0;
}
