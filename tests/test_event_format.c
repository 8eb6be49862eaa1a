/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event formats as kernels print them are whole; damaged ones are refused, and named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/event_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char whole[] = "name: probe\nID: 300\nformat:\n"
			    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			    "\n"
			    "\tfield:u64 addr;\toffset:8;\tsize:8;\tsigned:0;\n"
			    "\tfield:const char * name;\toffset:16;\tsize:8;\tsigned:0;\n"
			    "\tfield:__data_loc char[] comm;\toffset:24;\tsize:4;\tsigned:0;\n"
			    "\tfield:enum mode mode;\toffset:28;\tsize:4;\tsigned:0;\n"
			    "\tfield:u64 faults[];\toffset:32;\tsize:64;\tsigned:0;\n"
			    "\tfield:unsigned long last;\toffset:96;\tsize:8;\tsigned:0;\n"
			    "\nprint fmt: \"\tfield: {\", REC->addr\n";

static int check(const char *text, const char *system, int long_size, const char **ret_what)
{
	struct nrp_event_format format = {
		.system = system, .name = "probe", .text = text, .size = strlen(text), .id = 300
	};

	*ret_what = NULL;
	return nrp_event_format_check(&format, long_size, ret_what);
}

/* The format with @from replaced by @to. */
static char *edited(const char *from, const char *to)
{
	const char *at = strstr(whole, from);
	char *text = calloc(1, sizeof(whole) + strlen(to));

	assert_non_null(at);
	assert_non_null(text);
	memcpy(text, whole, (size_t)(at - whole));
	strcat(strcat(text, to), at + strlen(from));
	return text;
}

static void refused(const char *from, const char *to, const char *want)
{
	char *text = edited(from, to);
	const char *what;

	assert_int_equal(check(text, "numareplay", 8, &what), -EBADMSG);
	assert_string_equal(what, want);
	free(text);
}

static void accepted(const char *from, const char *to, const char *system, int long_size)
{
	char *text = edited(from, to);
	const char *what;

	if (check(text, system, long_size, &what) != 0)
		fail_msg("%s -> %s: %s", from, to, what);
	free(text);
}

static void test_formats_of_kernels_are_whole(void **state)
{
	(void)state;
	accepted("probe", "probe", "numareplay", 8);
	accepted("size:8;\tsigned:0;\n\nprint", "size:8;\n\nprint", "numareplay", 8);
	accepted("u64 faults[]", "u64 faults[8]", "numareplay", 8);
	/* A tag of a kernel that clang built. */
	accepted("const char * name", "const char __attribute__((user)) * name", "numareplay", 8);
	/* System calls keep an int in a long. */
	accepted("u64 addr", "int addr", "syscalls", 8);
}

static void test_sizes_against_types_are_refused(void **state)
{
	static const char want[] = "a field that has not the size of its type";
	static const char *const sizes[] = { "size:4;", "size:3;", "size:0;", "size:16;" };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char addr[64] = "u64 addr;\toffset:8;\t";

		refused("u64 addr;\toffset:8;\tsize:8;", strcat(addr, sizes[i]), want);
	}
	refused("u64 addr", "s32 addr", want);
	refused("size:64;", "size:63;", want);
	refused("comm;\toffset:24;\tsize:4;", "comm;\toffset:24;\tsize:2;", want);
	refused("mode;\toffset:28;\tsize:4;", "mode;\toffset:28;\tsize:0;", want);
}

static void test_a_long_has_the_size_that_the_file_says(void **state)
{
	const char *what;

	(void)state;
	assert_int_equal(check(whole, "numareplay", 4, &what), -EBADMSG);
	assert_string_equal(what, "a field that has not the size of its type");
}

static void test_fields_that_overlap_are_refused(void **state)
{
	(void)state;
	refused("addr;\toffset:8;", "addr;\toffset:4;", "a field that lies in another");
	refused("common_pid;\toffset:4;", "common_pid;\toffset:0;", "a field that lies in another");
	refused("last;\toffset:96;", "last;\toffset:8;", "a field that lies in another");
	refused("last;\toffset:96;", "last;\toffset:65532;", "a field outside of the event");
	refused("unsigned long last", "unsigned long addr", "two fields of one name");
}

static void test_damaged_text_is_refused(void **state)
{
	static const char head[] = "no name and ID at its head", line[] = "a line that is no field";

	(void)state;
	refused("name: probe", "name: prose", head);
	refused("ID: 300", "ID: 301", head);
	refused("ID: 300", "ID: 300x", head);
	refused("format:\n", "", head);
	refused("u64 addr;", "u64 addr", line);
	refused("u64 addr;", "u64;", line);
	refused("u64 addr;", "u64!addr;", line);
	refused("u64 addr;", "u64 `addr;", line);
	refused("int common", "int\"common", line);
	refused("unsigned long", "uns:gned long", line);
	refused("unsigned long", "unsigned \\ong", line);
	refused("u64 addr;", "u64 9addr;", line);
	refused("u64 faults[];", "u64 faults[;", line);
	refused("const char * name", "const char (* name", line);
	refused("const char * name", "const \x01char * name", line);
	refused("\toffset:8;", "\toffset:;", line);
	refused("\toffset:8;", "\toffset:8 ;", line);
	refused("\toffset:8;", "\toffset:99999999999;", line);
	refused("signed:0;\n\nprint", "signed:0;x\n\nprint", line);
	refused("\nprint fmt", "\nprinx fmt", line);
	refused("\nprint fmt: \"\tfield: {\", REC->addr\n", "", "no print format");
	refused("\tfield:u64 addr", "print fmt: \"\"\n\tfield:u64 addr",
		"fields behind the print format");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats_of_kernels_are_whole),
		cmocka_unit_test(test_sizes_against_types_are_refused),
		cmocka_unit_test(test_a_long_has_the_size_that_the_file_says),
		cmocka_unit_test(test_fields_that_overlap_are_refused),
		cmocka_unit_test(test_damaged_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
