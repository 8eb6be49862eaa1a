/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures beyond those of tests/data: for tests that are run with --wide. */
#ifndef NRP_TESTS_WIDE_H
#define NRP_TESTS_WIDE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With --wide the folder that NRP_TRACES names; where it names none, ends as skipped (77). */
static inline const char *wide_folder(int argc, char **argv)
{
	const char *folder = getenv("NRP_TRACES");

	if (argc < 2 || strcmp(argv[1], "--wide") != 0)
		return NULL;
	if (folder && *folder)
		return folder;
	printf("skipped: NRP_TRACES does not name a folder of captures\n");
	exit(77);
}

#endif
