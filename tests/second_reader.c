/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "second_reader.h"

#include <event-parse.h>
#include <trace-cmd.h>

#include <stdlib.h>
#include <string.h>

#define MAX_TID 65536

/* An attempt of a thread that has not ended. */
struct open_attempt {
	bool open, answered;
	struct kernel_answer answer;
};

struct reading {
	struct second_reading *out;
	size_t room;
	struct open_attempt *open; /* [MAX_TID] */
};

static unsigned long long get(struct tep_event *event, struct tep_record *record, const char *name)
{
	unsigned long long value = 0;

	tep_get_field_val(NULL, event, name, record, &value, 0);
	return value;
}

static void finish(struct reading *r, struct open_attempt *a)
{
	struct second_reading *out = r->out;

	if (!a->open)
		return;
	a->open = false;
	if (!a->answered)
		return;
	if (out->nr_answers == r->room) {
		r->room = r->room ? 2 * r->room : 1024;
		out->answers = realloc(out->answers, r->room * sizeof(*out->answers));
		if (!out->answers)
			abort();
	}
	out->answers[out->nr_answers++] = a->answer;
}

static void attempt_begins(struct reading *r, struct open_attempt *a, struct tep_record *record,
			   int tid, bool answered)
{
	(void)r;
	a->open = true;
	a->answered = answered;
	a->answer = (struct kernel_answer){
		.time = record->ts, .tid = tid, .cpu = record->cpu, .admitted = true
	};
}

static int see(struct tracecmd_input *handle, struct tep_record *record, int cpu, void *data)
{
	struct tep_handle *tep = tracecmd_get_tep(handle);
	struct tep_event *event = tep_find_event_by_record(tep, record);
	struct reading *r = data;
	struct second_reading *out = r->out;
	struct open_attempt *a;
	const char *name;
	int tid;

	(void)cpu;
	if (!event)
		return 0;
	name = event->name;
	tid = tep_data_pid(tep, record);
	a = &r->open[tid & (MAX_TID - 1)];
	if (!strcmp(event->system, "truth")) {
		if (!strcmp(name, "limiter_result") && a->open) {
			a->answered = true;
			a->answer.admitted = get(event, record, "admit") != 0;
		}
	} else if (!strcmp(event->system, "numareplay")) {
		if (!strcmp(name, "fault_begin")) {
			out->fault_begins++;
		} else if (!strcmp(name, "filter_end")) {
			out->filter_answers++;
			out->filter_allows += get(event, record, "allow") != 0;
		} else if (!strcmp(name, "filter_begin")) {
			if (get(event, record, "group"))
				out->groups++;
			else
				out->null_groups++;
		} else if (!strcmp(name, "task_fault")) {
			out->task_faults++;
			out->moved_flags += get(event, record, "flags") & 1;
			out->local_flags += (get(event, record, "flags") & 8) != 0;
		} else if (!strcmp(name, "range_end")) {
			if ((long long)get(event, record, "pages") > 0)
				out->armed_pages += get(event, record, "pages");
		} else if (!strcmp(name, "prepare_begin")) {
			attempt_begins(r, a, record, tid, false);
		} else if (!strcmp(name, "migrate_begin") || !strcmp(name, "thp_begin")) {
			/* Old kernels answer by the ratelimit event or by its absence. */
			if (tep_find_event_by_name(tep, "migrate", "mm_numa_migrate_ratelimit"))
				attempt_begins(r, a, record, tid, true);
		} else if (!strcmp(name, "prepare_end") || !strcmp(name, "migrate_end") ||
			   !strcmp(name, "thp_end")) {
			finish(r, a);
		}
	} else if (!strcmp(name, "mm_numa_migrate_ratelimit")) {
		a->answer.admitted = false;
	} else if (!strcmp(name, "mm_migrate_pages")) {
		if (get(event, record, "reason") == 5)
			out->numa_succeeded += get(event, record, "succeeded");
	}
	return 0;
}

static int by_time(const void *x, const void *y)
{
	const struct kernel_answer *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

int second_reading(struct second_reading *ret, const char *path)
{
	struct reading r = { .out = ret };
	struct tracecmd_input *handle;

	memset(ret, 0, sizeof(*ret));
	handle = tracecmd_open(path, 0);
	if (!handle)
		return -1;
	r.open = calloc(MAX_TID, sizeof(*r.open));
	if (!r.open)
		abort();
	tracecmd_iterate_events(handle, NULL, 0, see, &r);
	tracecmd_close(handle);
	free(r.open);
	if (ret->nr_answers)
		qsort(ret->answers, ret->nr_answers, sizeof(*ret->answers), by_time);
	return 0;
}

void second_reading_free(struct second_reading *reading)
{
	free(reading->answers);
	memset(reading, 0, sizeof(*reading));
}
