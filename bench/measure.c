/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_measure COMMAND ARG..
 *
 * Runs a command with its output thrown away, and prints three numbers: elapsed time and
 * processor time (user and system), both in us, and peak resident memory in KiB. Exits with the
 * status of the command, 1 if it was killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static int64_t microseconds(struct timeval t)
{
	return t.tv_sec * INT64_C(1000000) + t.tv_usec;
}

static int fail(const char *what)
{
	fprintf(stderr, "bench_measure: %s: %s\n", what, strerror(errno));
	return 127;
}

static int run(char **command)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
		return fail("/dev/null");
	execvp(command[0], command);
	return fail(command[0]);
}

int main(int argc, char **argv)
{
	int64_t start = now();
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 2) {
		fputs("usage: bench_measure COMMAND ARG..\n", stderr);
		return 2;
	}
	pid = fork();
	if (!pid)
		_exit(run(argv + 1));
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0)
		return fail(argv[1]);
	printf("%" PRId64 " %" PRId64 " %ld\n", now() - start,
	       microseconds(usage.ru_utime) + microseconds(usage.ru_stime), usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
