/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asked by the leak sanitizer in tests that read with libtracecmd: libtraceevent 1.7 loses a few
 * bytes of some event formats, libtracecmd a string that it scans out of an option.
 */
#ifndef NRP_TEST_SECOND_READER_LEAKS_H
#define NRP_TEST_SECOND_READER_LEAKS_H

const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:tep_parse_event\nleak:vsscanf\n";
}

#endif
