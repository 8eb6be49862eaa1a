/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a file as libtracecmd reads them, merged by the plainest means: a second opinion
 * on the own reader. It is slower, keeps every decompressed chunk in memory, and takes a damaged
 * file for a shorter one; so only files that the own reader found whole come here.
 */
#include "capture/tracefile_internal.h"

#include <errno.h>
#include <event-parse.h>
#include <stdlib.h>
#include <trace-cmd.h>

/* One CPU of one instance. */
struct head {
	struct tracecmd_input *input;
	struct tep_record *record; /* next event, NULL: none */
	uint32_t cpu;
	uint64_t read;      /* events handed out */
	uint64_t last_time; /* of the last one, 0: none */
};

struct nrp_libtracecmd {
	struct tracecmd_input *input; /* of the file; NULL: not opened since the last rewind */
	struct tracecmd_input **instance;
	int nr_instances; /* without the top one */
	struct head *heads;
	size_t nr_heads;
	struct tep_record *current; /* handed out by the last call */
};

static void close_all(struct nrp_libtracecmd *l)
{
	if (l->current)
		tracecmd_free_record(l->current);
	for (size_t i = 0; i < l->nr_heads; i++)
		if (l->heads[i].record)
			tracecmd_free_record(l->heads[i].record);
	for (int i = 0; i < l->nr_instances; i++)
		if (l->instance[i])
			tracecmd_close(l->instance[i]);
	if (l->input)
		tracecmd_close(l->input);
	free(l->heads);
	free(l->instance);
	*l = (struct nrp_libtracecmd){ 0 };
}

static void add_heads(struct nrp_libtracecmd *l, struct tracecmd_input *input, uint32_t cpus)
{
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		l->heads[l->nr_heads++] = (struct head){
			.input = input,
			.cpu = cpu,
			.record = tracecmd_read_data(input, (int)cpu),
		};
}

static int open_all(struct nrp_tracefile *file, struct nrp_error *err)
{
	struct nrp_libtracecmd *l = file->libtracecmd;
	uint32_t cpus = nrp_tracefile_cpus(file);
	int n;

	l->input = tracecmd_open(file->path, TRACECMD_FL_LOAD_NO_PLUGINS);
	if (!l->input)
		return nrp_fail(err, NRP_INPUT, -EBADMSG, file->path, -1,
				"leave out --reader libtracecmd", "libtracecmd does not read it");
	n = tracecmd_buffer_instances(l->input);
	l->instance = calloc((size_t)n + 1, sizeof(*l->instance));
	l->heads = calloc(((size_t)n + 1) * cpus + 1, sizeof(*l->heads));
	if (!l->instance || !l->heads) {
		close_all(l);
		return nrp_fail_nomem(err);
	}
	add_heads(l, l->input, cpus);
	for (l->nr_instances = 0; l->nr_instances < n; l->nr_instances++) {
		l->instance[l->nr_instances] =
			tracecmd_buffer_instance_handle(l->input, l->nr_instances);
		if (l->instance[l->nr_instances])
			add_heads(l, l->instance[l->nr_instances], cpus);
	}
	return 0;
}

/* Is @a's event before @b's? By time, CPU, instance: the heads are in the order of instances. */
static bool before(const struct head *a, const struct head *b)
{
	if (a->record->ts != b->record->ts)
		return a->record->ts < b->record->ts;
	return a->cpu < b->cpu;
}

static void hand_out(const struct nrp_tracefile *file, struct head *head, struct nrp_raw_event *ret)
{
	const struct tep_record *record = head->record;
	bool lost = record->missed_events != 0;

	*ret = (struct nrp_raw_event){
		.time = record->ts,
		.cpu = head->cpu,
		.id = record->size >= 2 ? nrp_load16(record->data, file->big) : -1,
		.data = record->data,
		.size = record->size > 0 ? (uint32_t)record->size : 0,
		.lost_before = lost,
		.lost_cause = NRP_LOSS_OVERRUN,
		.lost = lost && record->missed_events < 0 ? -1 : record->missed_events,
		.lost_since = lost ? head->last_time : 0,
		.read_before = head->read++,
	};
	head->last_time = record->ts;
}

int nrp_libtracecmd_next(struct nrp_tracefile *file, struct nrp_raw_event *ret,
			 struct nrp_error *err)
{
	struct nrp_libtracecmd *l = file->libtracecmd;
	struct head *best = NULL;
	int rc = l->input ? 0 : open_all(file, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < l->nr_heads; i++) {
		struct head *head = &l->heads[i];

		if (head->record && (!best || before(head, best)))
			best = head;
	}
	if (l->current)
		tracecmd_free_record(l->current);
	l->current = NULL;
	if (!best)
		return 0;
	hand_out(file, best, ret);
	l->current = best->record;
	best->record = tracecmd_read_data(best->input, (int)best->cpu);
	return 1;
}

void nrp_libtracecmd_rewind(struct nrp_libtracecmd *l)
{
	close_all(l);
}

struct nrp_libtracecmd *nrp_libtracecmd_free(struct nrp_libtracecmd *l)
{
	if (l)
		close_all(l);
	free(l);
	return NULL;
}

int nrp_tracefile_use_libtracecmd(struct nrp_tracefile *file, struct nrp_error *err)
{
	struct nrp_raw_event event;
	int rc;

	nrp_tracefile_rewind(file);
	while ((rc = nrp_tracefile_next(file, &event, err)) > 0)
		;
	if (rc)
		return rc;
	tracecmd_set_loglevel(TEP_LOG_NONE);
	file->libtracecmd = calloc(1, sizeof(*file->libtracecmd));
	return file->libtracecmd ? 0 : nrp_fail_nomem(err);
}
