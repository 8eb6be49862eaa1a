/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The least that a program can do with a capture through libtracecmd: all events in the order of
 * time, and one field of each (common_pid) read as a number. Prints the number of events and a sum,
 * so that nothing can be left out. Usage: bench_libtracecmd_loop CAPTURE.dat
 */
#include <event-parse.h>
#include <trace-cmd.h>

#include <inttypes.h>
#include <stdio.h>

struct totals {
	struct tep_format_field *field; /* at the same place in all events */
	uint64_t events, sum;
};

static int count(struct tracecmd_input *handle, struct tep_record *record, int cpu, void *context)
{
	struct totals *totals = context;
	unsigned long long value = 0;

	(void)handle;
	(void)cpu;
	if (!tep_read_number_field(totals->field, record->data, &value))
		totals->sum += value;
	totals->events++;
	return 0;
}

int main(int argc, char **argv)
{
	struct tracecmd_input *handle;
	struct totals totals = { 0 };
	struct tep_event *event;
	int r;

	if (argc != 2) {
		fputs("usage: bench_libtracecmd_loop CAPTURE.dat\n", stderr);
		return 2;
	}
	handle = tracecmd_open(argv[1], TRACECMD_FL_LOAD_NO_PLUGINS);
	event = handle ? tep_get_event(tracecmd_get_tep(handle), 0) : NULL;
	totals.field = event ? tep_find_common_field(event, "common_pid") : NULL;
	if (!totals.field) {
		fprintf(stderr, "bench_libtracecmd_loop: %s: cannot be read\n", argv[1]);
		tracecmd_close(handle);
		return 3;
	}
	r = tracecmd_iterate_events(handle, NULL, 0, count, &totals);
	printf("events %" PRIu64 " sum %" PRIu64 "\n", totals.events, totals.sum);
	tracecmd_close(handle);
	return r ? 3 : 0;
}
