/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Times the lanes of a replay over one capture in a database, N times each (default 5), and prints
 * medians of elapsed and processor time: decoding alone, the limiter lane (every attempt judged
 * where its page was), scan.vma lanes alone and several over one walk, and whole replays (filter,
 * limiter, places of pages, locality). Usage: bench_lanes HOST.db [N [LANE]]
 */
#include "replay/replay.h"
#include "replay/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of the process, with the thread that decodes ahead. */
static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct bench {
	struct nrp_store *store;
	struct nrp_capture capture;
	struct nrp_verify verify;
	struct nrp_lane_spec old_lane, new_lane;
};

static int decode(struct bench *b, struct nrp_error *err)
{
	enum nrp_replay_stream_kind kind;
	struct nrp_replay_stream *s;
	const void *row;
	int r = nrp_replay_stream_open(&s, b->store, b->capture.id, 0, false, err);

	if (r < 0)
		return r;
	while ((r = nrp_replay_stream_next(s, &kind, &row, err)) > 0)
		;
	nrp_replay_stream_close(s);
	return r;
}

static int limiter(struct bench *b, struct nrp_error *err)
{
	struct nrp_ratelimit_params params = { .variant = NRP_RATELIMIT_SPIN,
					       .quota = 256,
					       .interval = 25 };
	struct nrp_attempts attempts = { 0 };
	struct nrp_ratelimit_lane lane = { 0 };
	int r = nrp_attempts_load(&attempts, b->store, &b->capture, err);

	if (r == 0)
		r = nrp_ratelimit_lane_run(&lane, &attempts, &params, false, err);
	nrp_ratelimit_lane_clear(&lane);
	nrp_attempts_clear(&attempts);
	return r;
}

static int whole(struct bench *b, struct nrp_error *err)
{
	struct nrp_replay replay = { 0 };
	int r = nrp_replay_run(&replay, b->store, &b->capture, &b->verify, &b->old_lane,
			       &b->new_lane, err);

	if (r == 0)
		nrp_replay_clear(&replay);
	return r;
}

/* The steps from P0 to P3, as lanes of one walk. */
#define WALK(k)                                                                                    \
	static int walk_##k(struct bench *b, struct nrp_error *err)                                \
	{                                                                                          \
		return walk(b, k, err);                                                            \
	}

static int walk(struct bench *b, size_t nr_lanes, struct nrp_error *err)
{
	static const char *const lanes[NRP_MAX_SCAN_LANES] = {
		"scan.vma=P0", "scan.vma=P1", "scan.vma=P2", "scan.vma=P3",
		"scan.vma=P4", "scan.vma=P0", "scan.vma=P1", "scan.vma=P2",
	};
	struct nrp_lane_spec spec[NRP_MAX_SCAN_LANES] = { { .off = false } };
	struct nrp_scan_lane scan[NRP_MAX_SCAN_LANES];
	int r = 0;

	for (size_t i = 0; r == 0 && i < nr_lanes; i++)
		r = nrp_lane_parse(&spec[i], lanes[i], err);
	if (r == 0)
		r = nrp_replay_scan(scan, b->store, &b->capture, spec, nr_lanes, err);
	for (size_t i = 0; r == 0 && i < nr_lanes; i++)
		nrp_scan_lane_clear(&scan[i]);
	return r;
}

WALK(1)
WALK(2)
WALK(4)
WALK(8)

static int measure(const char *name, int (*run)(struct bench *, struct nrp_error *),
		   struct bench *b, int times, struct nrp_error *err)
{
	double *seconds = calloc((size_t)times, sizeof(*seconds));
	double *cpu = calloc((size_t)times, sizeof(*cpu));
	int r = seconds && cpu ? 0 : nrp_fail_nomem(err);

	for (int i = 0; r == 0 && i < times; i++) {
		double start = now(), cpu_start = cpu_now();

		r = run(b, err);
		seconds[i] = now() - start;
		cpu[i] = cpu_now() - cpu_start;
	}
	if (r == 0) {
		qsort(seconds, (size_t)times, sizeof(*seconds), compare);
		qsort(cpu, (size_t)times, sizeof(*cpu), compare);
		printf("%-28s %8.3f s %8.2f M hint faults/s (fastest %.2f); CPU %.3f s %.2f\n",
		       name, seconds[times / 2],
		       (double)b->verify.hint_faults / seconds[times / 2] * 1e-6,
		       (double)b->verify.hint_faults / seconds[0] * 1e-6, cpu[times / 2],
		       (double)b->verify.hint_faults / cpu[times / 2] * 1e-6);
	}
	free(seconds);
	free(cpu);
	return r;
}

int main(int argc, char **argv)
{
	const char *lanes[] = { "migrate.ratelimit=spin", "migrate.filter=4.19", "off" };
	size_t nr_lanes = sizeof(lanes) / sizeof(lanes[0]);
	struct nrp_error err = NRP_ERROR_INIT;
	struct bench b = { 0 };
	int times = argc > 2 ? atoi(argv[2]) : 5, r;

	if (argc < 2 || times < 1) {
		fprintf(stderr, "usage: bench_lanes HOST.db [N [LANE]]\n");
		return 2;
	}
	if (argc > 3) {
		lanes[0] = argv[3];
		nr_lanes = 1;
	}
	r = nrp_store_open(&b.store, argv[1], NRP_STORE_READ, &err);
	if (r == 0)
		r = nrp_store_load_capture(b.store, NULL, &b.capture, &err);
	if (r == 0)
		r = nrp_verify_run(&b.verify, b.store, &b.capture, &err);
	if (r == 0)
		r = nrp_lane_parse(&b.old_lane, "host", &err);
	if (r == 0)
		r = measure("decode and merge", decode, &b, times, &err);
	if (r == 0)
		r = measure("limiter lane", limiter, &b, times, &err);
	if (r == 0 && b.verify.has_scan) {
		r = measure("1 scan lane", walk_1, &b, times, &err);
		if (r == 0)
			r = measure("2 scan lanes, one walk", walk_2, &b, times, &err);
		if (r == 0)
			r = measure("4 scan lanes, one walk", walk_4, &b, times, &err);
		if (r == 0)
			r = measure("8 scan lanes, one walk", walk_8, &b, times, &err);
	}
	for (size_t i = 0; r == 0 && i < nr_lanes; i++) {
		r = nrp_lane_parse(&b.new_lane, lanes[i], &err);
		if (r == 0 && !strcmp(lanes[i], "migrate.ratelimit=spin"))
			r = nrp_lane_set(&b.old_lane, &b.new_lane, "new:quota=256", &err);
		if (r == 0)
			r = measure(lanes[i], whole, &b, times, &err);
	}
	if (r < 0)
		fprintf(stderr, "bench_lanes: %s: %s\n", argv[1], err.what);
	nrp_verify_clear(&b.verify);
	nrp_capture_clear(&b.capture);
	nrp_store_close(b.store);
	return r < 0;
}
