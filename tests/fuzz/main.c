/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where there is no libFuzzer: feeds the files named, and those of the folders named, to a target.
 * Fails if there are none.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

static bool feed_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *data;
	size_t size;

	if (!f || fstat(fileno(f), &st) < 0) {
		perror(path);
		exit(1);
	}
	/* No byte more than there are, so that a sanitizer sees what reads on. */
	data = malloc((size_t)st.st_size);
	must(data || !st.st_size);
	size = st.st_size ? fread(data, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return true;
}

static int feed(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return feed_file(path);
	while ((entry = readdir(dir))) {
		char *file;

		if (entry->d_name[0] == '.')
			continue;
		must(asprintf(&file, "%s/%s", path, entry->d_name) >= 0);
		n += feed_file(file);
		free(file);
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	int n = 0;

	for (int i = 1; i < argc; i++)
		n += feed(argv[i]);
	printf("%d inputs\n", n);
	return n ? 0 : 1;
}
