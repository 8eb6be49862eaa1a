/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that the trace-file reader refuses, and the words it has for that: other kinds of file,
 * versions and compressions it does not know, and headers that contradict themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/bytes.h"
#include "capture/tracefile.h"
#include "numareplay/record.h"
#include "tests/trace_sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_refused(const char *path, int rc, int64_t offset, const char *what,
			   const char *remedy)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_tracefile *file = NULL;

	assert_int_equal(nrp_tracefile_open(&file, path, &err), rc);
	assert_null(file);
	assert_int_equal(err.status, NRP_INPUT);
	assert_int_equal(err.offset, offset);
	assert_string_equal(err.file, path);
	assert_string_equal(err.what, what);
	assert_string_equal(err.remedy, remedy);
	assert_int_equal(nrp_tracefile_open(&file, path, NULL), rc);
}

static void what_is_no_trace_file_is_refused_in_plain_words(void **state)
{
	static const char text[] = "# tracer: nop\n#\n";

	(void)state;
	expect_refused(sample_file("", 0), -ENODATA, 0, "the file is empty",
		       "copy the file again, or record it again");
	expect_refused(sample_file(text, sizeof(text)), -EBADMSG, 0, "not a trace-cmd file",
		       "record with trace-cmd, or name another file");
	expect_refused(sample_file("\x17", 1), -ENODATA, 0,
		       "cut short: file header needs 10 bytes, file has 1",
		       "copy the file again, or record it again");
	expect_refused("/", -EISDIR, -1, "is a directory", "name a trace-cmd file");
	expect_refused("/dev/null", -EINVAL, -1, "is not a regular file", "name a trace-cmd file");
	expect_refused("/nonexistent/trace.dat", -ENOENT, -1,
		       "cannot open: No such file or directory", "name a trace-cmd file");
}

static void a_file_without_permission_is_refused_in_plain_words(void **state)
{
	const char *path = sample_file("x", 1);

	(void)state;
	if (!geteuid())
		skip(); /* root reads everything */
	must(!chmod(path, 0));
	expect_refused(path, -EACCES, -1, "cannot open: Permission denied", "make it readable");
	must(!chmod(path, S_IRUSR | S_IWUSR)); /* the other tests use it again */
}

static void other_versions_are_named(void **state)
{
	static const char newer[] = "\x17\x08\x44tracing9\0\0\x08\0\x10\0\0";
	static const char older[] = "\x17\x08\x44tracing5\0\0\x08\0\x10\0\0";
	static const char none[] = "\x17\x08\x44tracingx\0\0\x08\0\x10\0\0";

	(void)state;
	expect_refused(sample_file(newer, sizeof(newer)), -ENOTSUP, 10,
		       "trace-cmd file version 9 is newer than this numareplay reads (6, 7)",
		       "convert it with trace-cmd convert --file-version 7");
	expect_refused(sample_file(older, sizeof(older)), -ENOTSUP, 10,
		       "trace-cmd file version 5 is older than this numareplay reads (6, 7)",
		       "convert it with trace-cmd convert --file-version 7");
	expect_refused(sample_file(none, sizeof(none)), -EBADMSG, 10,
		       "version of the file is not a number",
		       "copy the file again, or record it again");
}

static void zlib_is_refused_with_the_way_out(void **state)
{
	static const char zlib[] =
		"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zlib\0001.2.13\0\0\0\0\0\0\0\0";

	(void)state;
	expect_refused(sample_file(zlib, sizeof(zlib)), -ENOTSUP, 18,
		       "compressed with zlib, which this build does not read",
		       "convert it with trace-cmd convert --compression zstd");
}

static void a_latency_trace_is_refused_as_text(void **state)
{
	struct nrp_trace_parts *parts = sample_parts(false, 8);
	struct nrp_blob bytes = sample_bytes(parts, SAMPLE_V6);
	uint8_t *tag = memmem(bytes.data, bytes.size, "flyrecord", 10);

	(void)state;
	must(tag != NULL);
	memcpy(tag, "latency  ", 10);
	expect_refused(sample_file(bytes.data, bytes.size), -ENOTSUP, -1,
		       "holds the text of a latency trace and no events",
		       "record events with trace-cmd record");
	free(bytes.data);
	nrp_parts_free(parts);
}

/* Opening must fail with -EBADMSG and these words. */
static void expect_damaged(const struct nrp_blob *bytes, uint64_t offset, const char *what)
{
	expect_refused(sample_file(bytes->data, bytes->size), -EBADMSG, (int64_t)offset, what,
		       "copy the file again, or record it again");
}

/* What opening returns. */
static int refusal(const struct nrp_blob *bytes)
{
	struct nrp_tracefile *file = NULL;
	int rc = nrp_tracefile_open(&file, sample_file(bytes->data, bytes->size), NULL);

	nrp_tracefile_close(file);
	return rc;
}

static void expect_two_events(const struct nrp_blob *bytes)
{
	struct nrp_tracefile *file = sample_open(sample_file(bytes->data, bytes->size));
	struct nrp_raw_event event;
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(nrp_tracefile_next(file, &event, NULL), i < 2);
	nrp_tracefile_close(file);
}

static void put64(uint8_t *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
}

/* A file of version 7 and the places that the tests below damage. */
struct v7_file {
	struct nrp_trace_parts *parts;
	struct nrp_blob bytes;
	uint64_t options;     /* offset of the first options section */
	uint64_t more_option; /* offset in it of the number of the next one */
	uint64_t instances;   /* offset of that section: one option per instance */
};

static struct v7_file v7_file(uint32_t cpu, const char *clock)
{
	struct v7_file file = { .parts = sample_parts(false, 8) };
	struct nrp_part_buffer *buffer;
	struct sample_page page;
	uint64_t size;
	int i;

	for (i = 0; i < 2; i++) {
		struct nrp_part_cpu *part;

		buffer = nrp_parts_add_buffer(file.parts, i ? "inst" : "", i ? clock : "global",
					      SAMPLE_PAGE);
		part = nrp_parts_add_cpu(buffer, cpu);
		page_begin(&page, &part->pages, SAMPLE_PAGE, 8, false, 1000);
		page_event(&page, 0, SAMPLE_ID, 8, 0);
		page_end(&page, 0);
	}
	file.bytes = sample_bytes(file.parts, SAMPLE_V7);
	file.options = nrp_load64(file.bytes.data + strlen("...tracing7.") + 6 + 5 +
					  strlen((char *)file.bytes.data + 23) + 1,
				  false);
	size = nrp_load64(file.bytes.data + file.options + 8, false);
	file.more_option = file.options + 16 + size - 8;
	file.instances = nrp_load64(file.bytes.data + file.more_option, false);
	return file;
}

static void v7_done(struct v7_file *file)
{
	free(file->bytes.data);
	nrp_parts_free(file->parts);
}

static void options_that_form_a_loop_are_damage(void **state)
{
	struct v7_file file = v7_file(0, "global");

	(void)state;
	expect_two_events(&file.bytes);
	put64(file.bytes.data + file.more_option, file.options);
	expect_damaged(&file.bytes, file.options, "options sections form a loop");
	put64(file.bytes.data + file.more_option, file.bytes.size + 1);
	assert_int_equal(refusal(&file.bytes), -ENODATA);
	v7_done(&file);
}

static void cpu_ids_have_a_limit(void **state)
{
	struct v7_file file = v7_file(NRP_MAX_CPUS - 1, "global");

	(void)state;
	expect_two_events(&file.bytes);
	v7_done(&file);
	file = v7_file(NRP_MAX_CPUS, "global");
	/* section header, option header, offset, "", "global", page size, count */
	expect_damaged(&file.bytes, file.instances + 16 + 6 + 8 + 1 + 7 + 4 + 4,
		       "CPU id 65536, the limit is 65535");
	v7_done(&file);
}

static void instances_with_different_clocks_are_refused(void **state)
{
	struct v7_file file = v7_file(0, "mono");

	(void)state;
	/* behind the option of the top instance: 8 + 1 + 7 + 4 + 4 + 20 bytes */
	expect_refused(sample_file(file.bytes.data, file.bytes.size), -ENOTSUP,
		       (int64_t)file.instances + 16 + 6 + 44 + 6,
		       "instances use different clocks, their events have no common order",
		       "record all instances with the same clock");
	v7_done(&file);
}

static void data_of_cpus_must_not_overlap(void **state)
{
	struct v7_file file = v7_file(0, "global");
	uint64_t cpu = file.instances + 16 + 6 + 8 + 1 + 7 + 4 + 4;
	uint64_t second = file.instances + 16 + 6 + 44 + 6 + 8 + 5 + 7 + 4 + 4;

	(void)state;
	/* each claims nearly the whole file: not more than one of them can be right */
	put64(file.bytes.data + cpu + 12, file.bytes.size);
	assert_int_equal(refusal(&file.bytes), -ENODATA);
	put64(file.bytes.data + cpu + 12, SAMPLE_PAGE + 1);
	expect_damaged(&file.bytes, cpu, "data of CPU 0 outside its section");
	put64(file.bytes.data + cpu + 12, SAMPLE_PAGE);
	put64(file.bytes.data + second + 4, 16);
	expect_damaged(&file.bytes, second, "data of CPU 0 outside its section");
	v7_done(&file);
}

static void a_v6_table_whose_cpus_share_their_data_is_damage(void **state)
{
	struct sample_kind kind = {
		.long_size = 8,
		.page_size = SAMPLE_PAGE,
		.pages = 20,
		.name = { "" },
	};
	struct sample *sample;
	struct nrp_blob bytes;
	uint64_t table, offset, size, i;
	uint8_t *tag;

	(void)state;
	sample = sample_new(&kind, 3);
	bytes = sample_bytes(sample->parts, SAMPLE_V6);
	tag = memmem(bytes.data, bytes.size, "flyrecord", 10);
	must(tag != NULL);
	table = (uint64_t)(tag - bytes.data) + 10;
	offset = nrp_load64(bytes.data + table, false);
	size = nrp_load64(bytes.data + table + 8, false);
	for (i = 0; i < 6; i++) {
		put64(bytes.data + table + 16 * i, offset);
		put64(bytes.data + table + 16 * i + 8, size);
	}
	assert_true(4 * size > bytes.size && 3 * size < bytes.size);
	expect_damaged(&bytes, table + 16 * 3, "data of CPU 3 overlaps that of others");
	free(bytes.data);
	sample_free(sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_trace_file_is_refused_in_plain_words),
		cmocka_unit_test(a_file_without_permission_is_refused_in_plain_words),
		cmocka_unit_test(other_versions_are_named),
		cmocka_unit_test(zlib_is_refused_with_the_way_out),
		cmocka_unit_test(a_latency_trace_is_refused_as_text),
		cmocka_unit_test(options_that_form_a_loop_are_damage),
		cmocka_unit_test(cpu_ids_have_a_limit),
		cmocka_unit_test(instances_with_different_clocks_are_refused),
		cmocka_unit_test(data_of_cpus_must_not_overlap),
		cmocka_unit_test(a_v6_table_whose_cpus_share_their_data_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
