/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_generate repeat [--v6] IN OUT TIMES
 * bench_generate numa [--v6] [--nodes N] [--seed N] --events N IN OUT
 *
 * Makes large captures for measuring, the same bytes for the same arguments: a capture repeated,
 * so that its time goes on, or a profile with many migrations and huge pages on a machine with
 * many nodes, with headers and event formats of IN and a facts file beside OUT. Version 7 with
 * zstd, or version 6. Memory does not grow with the size. Prints what it wrote.
 */
#include "bench/generate.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ZSTD_LEVEL 3 /* as trace-cmd has it */
#define MAX_TIMES 10000

struct arguments {
	bool numa;
	int version;
	unsigned int times;
	struct nrp_bench_numa profile;
	const char *in, *out;
};

static bool number(const char *text, uint64_t low, uint64_t high, uint64_t *ret)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < low || value > high)
		return false;
	*ret = value;
	return true;
}

static int usage(void)
{
	fputs("usage: bench_generate repeat [--v6] IN OUT TIMES\n"
	      "       bench_generate numa [--v6] [--nodes 4..64] [--seed N] --events N IN OUT\n",
	      stderr);
	return 2;
}

static bool option(int c, const char *value, struct arguments *ret)
{
	uint64_t nodes = 0;

	switch (c) {
	case '6':
		ret->version = 6;
		return true;
	case 'e':
		return number(value, 1, UINT64_C(10000000000), &ret->profile.events);
	case 's':
		return number(value, 0, UINT64_MAX, &ret->profile.seed);
	case 'n':
		if (!number(value, 4, 64, &nodes))
			return false;
		ret->profile.nodes = (unsigned int)nodes;
		return true;
	default:
		return false;
	}
}

static bool parse(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
		{ "v6", no_argument, NULL, '6' },
		{ "events", required_argument, NULL, 'e' },
		{ "nodes", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ 0 },
	};
	uint64_t times = 1;
	int c;

	*ret = (struct arguments){ .version = 7, .profile = { .nodes = 8, .seed = 1 } };
	if (argc < 2 || (strcmp(argv[1], "numa") != 0 && strcmp(argv[1], "repeat") != 0))
		return false;
	ret->numa = !strcmp(argv[1], "numa");
	argc--;
	argv++;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (!option(c, optarg, ret))
			return false;
	}
	if (argc - optind != (ret->numa ? 2 : 3) || (ret->numa && !ret->profile.events) ||
	    (!ret->numa && !number(argv[optind + 2], 1, MAX_TIMES, &times)))
		return false;
	ret->times = (unsigned int)times;
	ret->in = argv[optind];
	ret->out = argv[optind + 1];
	return true;
}

static int generate(struct nrp_bench_files *files, const struct arguments *args)
{
	int r;

	files->out = fopen(args->out, "wb");
	if (!files->out) {
		fprintf(stderr, "bench_generate: %s: cannot be written\n", args->out);
		return 5;
	}
	r = args->numa ? nrp_bench_numa(files, &args->profile)
		       : nrp_bench_repeat(files, args->times);
	if (fclose(files->out) && !r) {
		fprintf(stderr, "bench_generate: %s: cannot be written\n", args->out);
		r = 5;
	}
	return r;
}

int main(int argc, char **argv)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_bench_files files = { 0 };
	struct arguments args;
	const char *why = "";
	int r = 3;

	if (!parse(argc, argv, &args))
		return usage();
	files.out_path = args.out;
	files.version = args.version;
	if (nrp_tracefile_open(&files.in, args.in, &err) < 0) {
		fprintf(stderr, "bench_generate: %s: %s\n", args.in, err.what);
		return r;
	}
	files.parts = nrp_parts_read_headers(args.in, &why);
	if (files.parts) {
		files.parts->zstd_level = ZSTD_LEVEL;
		r = generate(&files, &args);
	} else {
		fprintf(stderr, "bench_generate: %s: %s\n", args.in, why);
	}
	nrp_parts_free(files.parts);
	nrp_tracefile_close(files.in);
	return r;
}
