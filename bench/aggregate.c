/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts the hinting faults of one capture by source and accessing node, natively and (with sql) as
 * SQL over the virtual table, N times each (default 5), and prints medians in rows a second, by the
 * clock and by the CPU time used; the database is opened anew each time. Usage: bench_aggregate
 * HOST.db [N] [sql]
 */
#include "numareplay/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int native(struct nrp_store *store, int64_t capture, uint64_t *ret_rows,
		  struct nrp_error *err)
{
	struct nrp_node_count *counts;
	size_t n;
	int r = nrp_store_count_by_nodes(store, capture, NRP_HINT_FAULT,
					 NRP_COL(hint_fault, src_nid),
					 NRP_COL(hint_fault, this_nid), &counts, &n, err);

	if (r < 0)
		return r;
	*ret_rows = 0;
	for (size_t i = 0; i < n; i++)
		*ret_rows += counts[i].rows;
	free(counts);
	return 0;
}

static int sql(struct nrp_store *store, int64_t capture, uint64_t *ret_rows, struct nrp_error *err)
{
	sqlite3_stmt *s;
	int r = nrp_store_register_tables(store, err);

	if (r < 0)
		return r;
	s = nrp_store_prepare(store,
			      "SELECT sum(n) FROM (SELECT count(*) AS n FROM hint_fault "
			      "WHERE capture_id = ? GROUP BY src_nid, this_nid)",
			      err);
	if (!s)
		return -1;
	sqlite3_bind_int64(s, 1, capture);
	r = sqlite3_step(s) == SQLITE_ROW ? 0 : nrp_store_fail(store, err, "count");
	*ret_rows = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return r;
}

static int run(const char *path, const char *name, int repeat,
	       int (*count)(struct nrp_store *, int64_t, uint64_t *, struct nrp_error *))
{
	struct nrp_error err = NRP_ERROR_INIT;
	double *times = calloc(2 * (size_t)repeat, sizeof(*times)), *cpu = times + repeat;
	uint64_t rows = 0;
	int r = times ? 0 : nrp_fail_nomem(&err);

	for (int i = 0; r == 0 && i < repeat; i++) {
		struct nrp_capture capture;
		struct nrp_store *store;
		double start = now(CLOCK_MONOTONIC), used = now(CLOCK_PROCESS_CPUTIME_ID);

		r = nrp_store_open(&store, path, NRP_STORE_READ, &err);
		if (r < 0)
			break;
		r = nrp_store_load_capture(store, NULL, &capture, &err);
		if (r == 0) {
			r = count(store, capture.id, &rows, &err);
			nrp_capture_clear(&capture);
		}
		nrp_store_close(store);
		times[i] = now(CLOCK_MONOTONIC) - start;
		cpu[i] = now(CLOCK_PROCESS_CPUTIME_ID) - used;
	}
	if (r < 0) {
		fprintf(stderr, "bench_aggregate: %s: %s\n", err.file, err.what);
	} else {
		qsort(times, (size_t)repeat, sizeof(*times), compare);
		qsort(cpu, (size_t)repeat, sizeof(*cpu), compare);
		printf("%-8s %llu rows, %.1f ms, %.1f M rows/s; CPU %.1f ms, %.1f M rows/s\n", name,
		       (unsigned long long)rows, times[repeat / 2] * 1e3,
		       (double)rows / times[repeat / 2] / 1e6, cpu[repeat / 2] * 1e3,
		       (double)rows / cpu[repeat / 2] / 1e6);
	}
	free(times);
	return r;
}

int main(int argc, char **argv)
{
	int repeat = argc > 2 ? atoi(argv[2]) : 5;

	if (argc < 2 || repeat < 1) {
		fprintf(stderr, "usage: bench_aggregate HOST.db [N] [sql]\n");
		return 2;
	}
	if (run(argv[1], "native", repeat, native) < 0)
		return 1;
	return argc > 3 && run(argv[1], "sql", repeat, sql) < 0 ? 1 : 0;
}
