/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lock:contention_begin and _end in trace-cmd files, by the format that kernels from 5.19 on have.
 */
#include "capture/import.h"
#include "replay/lock_contention.h"
#include "tests/store_util.h"
#include "tests/trace_sample.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BEGIN_ID 701
#define END_ID 700
#define MMAP_LOCK UINT64_C(0xff11000000140f78)
#define SPINLOCK UINT64_C(0xffffffff82a00000)
#define US 1000
#define READ 2
#define WRITE 4

#define COMMON                                                                                     \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"            \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"                               \
	"\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n"

static const char begin_format[] = "name: contention_begin\nID: 701\n" COMMON
				   "\tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n"
				   "\nprint fmt: \"%p %x\", REC->lock_addr, REC->flags\n";
static const char end_format[] = "name: contention_end\nID: 700\n" COMMON
				 "\tfield:int ret;\toffset:16;\tsize:4;\tsigned:1;\n"
				 "\nprint fmt: \"%p %d\", REC->lock_addr, REC->ret\n";

static void add_format(struct nrp_blob *out, const char *text)
{
	must(nrp_blob_number(out, strlen(text), 8, false));
	must(nrp_blob_append(out, text, strlen(text)));
}

static void event(struct sample_page *page, uint32_t us, uint16_t id, int32_t tid, uint64_t lock,
		  uint32_t last)
{
	page_word(page, 5, us * US); /* words of the payload */
	page_u32(page, id);
	page_u32(page, (uint32_t)tid);
	page_u32(page, (uint32_t)lock);
	page_u32(page, (uint32_t)(lock >> 32));
	page_u32(page, last);
}

/* Task 31 waits to read for 40 us, spinning for its inner lock; 32 to write, and leaves after 9. */
static struct nrp_trace_parts *contended(void)
{
	struct nrp_trace_parts *parts = sample_parts(false, 8);
	struct nrp_blob pages = { 0 };
	struct sample_page page;

	parts->event_formats.data[0] = 3; /* systems */
	must(nrp_blob_append(&parts->event_formats, "lock", 5));
	must(nrp_blob_number(&parts->event_formats, 2, 4, false));
	add_format(&parts->event_formats, end_format);
	add_format(&parts->event_formats, begin_format);
	page_begin(&page, &pages, SAMPLE_PAGE, 8, false, UINT64_C(5000000000));
	event(&page, 10, BEGIN_ID, 31, MMAP_LOCK, READ);
	event(&page, 1, BEGIN_ID, 31, SPINLOCK, 1);
	event(&page, 1, END_ID, 31, SPINLOCK, 0);
	event(&page, 20, BEGIN_ID, 32, MMAP_LOCK, WRITE);
	event(&page, 9, END_ID, 32, MMAP_LOCK, (uint32_t)-4);
	event(&page, 9, END_ID, 31, MMAP_LOCK, 0);
	page_end(&page, 0);
	nrp_parts_add_cpu(nrp_parts_add_buffer(parts, "", "global", SAMPLE_PAGE), 0)->pages = pages;
	return parts;
}

static void are_read(enum sample_format format)
{
	struct nrp_trace_parts *parts = contended();
	struct nrp_import_options options = { .path = sample_write(parts, format), .name = "line" };
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lock_contention c;
	struct nrp_capture capture;
	struct nrp_join_stats stats;
	struct nrp_store *store;

	unlink("line.db");
	store = util_open("line.db", NRP_STORE_CREATE);
	assert_ok(nrp_store_begin(store, &err), &err);
	assert_ok(nrp_import_trace(store, &options, &capture, &stats, NULL, NULL, &err), &err);
	assert_ok(nrp_store_commit(store, &err), &err);
	assert_ok(nrp_lock_contention_load(&c, store, &capture, &err), &err);
	assert_true(c.known);
	assert_false(c.has_offset);
	assert_int_equal(c.locks, 1);
	assert_int_equal(c.listed[0].sem, MMAP_LOCK);
	assert_int_equal(c.listed[0].mm, 0);
	assert_int_equal(c.nameless[0].waits, 1);
	assert_int_equal(c.nameless[0].ns, 40 * US);
	assert_int_equal(c.nameless[0].left, 0);
	assert_int_equal(c.nameless[1].waits, 1);
	assert_int_equal(c.nameless[1].ns, 9 * US);
	assert_int_equal(c.nameless[1].left, 1);
	assert_int_equal(c.of_mms[0].waits + c.of_mms[1].waits, 0);
	nrp_capture_clear(&capture);
	nrp_store_close(store);
	nrp_parts_free(parts);
}

static void waits_in_line_are_read_from_files(void **state)
{
	(void)state;
	for (int format = 0; format < SAMPLE_NR_FORMATS; format++)
		are_read((enum sample_format)format);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_in_line_are_read_from_files),
	};

	return cmocka_run_group_tests(tests, util_enter_dir, util_leave_dir);
}
