/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The least that a program can do with a capture through libtracecmd: one field (common_pid) of
 * every event of the top instance, read as a number. CPU after CPU: in the order of time, as
 * trace-cmd report and import have them, the library takes several times as long. Prints the number
 * of events and a sum, so that nothing can be left out. Usage: bench_libtracecmd_loop CAPTURE.dat
 */
#include <event-parse.h>
#include <trace-cmd.h>

#include <inttypes.h>
#include <stdio.h>

struct totals {
	uint64_t events, sum;
};

static void read_cpu(struct tracecmd_input *handle, int cpu, struct tep_format_field *field,
		     struct totals *totals)
{
	struct tep_record *record;
	unsigned long long value;

	while ((record = tracecmd_read_data(handle, cpu)) != NULL) {
		if (!tep_read_number_field(field, record->data, &value))
			totals->sum += value;
		totals->events++;
		tracecmd_free_record(record);
	}
}

int main(int argc, char **argv)
{
	struct tep_format_field *field;
	struct tracecmd_input *handle;
	struct totals totals = { 0 };
	struct tep_handle *tep;
	struct tep_event *event;

	if (argc != 2) {
		fputs("usage: bench_libtracecmd_loop CAPTURE.dat\n", stderr);
		return 2;
	}
	handle = tracecmd_open(argv[1], TRACECMD_FL_LOAD_NO_PLUGINS);
	tep = handle ? tracecmd_get_tep(handle) : NULL;
	event = tep ? tep_get_event(tep, 0) : NULL;
	field = event ? tep_find_common_field(event, "common_pid") : NULL;
	if (!field) {
		fprintf(stderr, "bench_libtracecmd_loop: %s: cannot be read\n", argv[1]);
		tracecmd_close(handle);
		return 3;
	}
	for (int cpu = 0; cpu < tep_get_cpus(tep); cpu++)
		read_cpu(handle, cpu, field, &totals);
	printf("events %" PRIu64 " sum %" PRIu64 "\n", totals.events, totals.sum);
	tracecmd_close(handle);
	return 0;
}
