/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/join_internal.h"

#include <errno.h>
#include <stdlib.h>

int nrp_joiner_new(struct nrp_joiner **ret, const struct nrp_catalogue *catalogue,
		   const struct nrp_host_facts *facts, struct nrp_store *store,
		   struct nrp_writer *writer, int64_t capture_id, struct nrp_error *err)
{
	struct nrp_joiner *j = calloc(1, sizeof(*j));

	if (!j)
		return nrp_fail_nomem(err);
	j->threads = nrp_thread_table_new();
	if (!j->threads) {
		free(j);
		return nrp_fail_nomem(err);
	}
	j->cat = catalogue;
	j->facts = facts;
	j->store = store;
	j->writer = writer;
	j->capture_id = capture_id;
	if (facts->cpupid_shift >= 0 && facts->cpupid_bits > 0 && facts->cpupid_bits <= 32)
		j->cpuid_mask = (UINT64_C(1) << facts->cpupid_bits) - 1;
	*ret = j;
	return 0;
}

struct nrp_joiner *nrp_joiner_free(struct nrp_joiner *j)
{
	if (!j)
		return NULL;
	nrp_thread_table_free(j->threads);
	free(j);
	return NULL;
}

const struct nrp_join_stats *nrp_joiner_stats(const struct nrp_joiner *joiner)
{
	return &joiner->stats;
}

uint32_t nrp_join_intern(struct nrp_joiner *j, const char *text, struct nrp_error *err)
{
	uint32_t hash = 5381, id;
	size_t i;

	for (const char *p = text; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	i = hash % (sizeof(j->names) / sizeof(j->names[0]));
	if (j->names[i].id && !strcmp(j->names[i].text, text))
		return j->names[i].id;
	if (nrp_store_intern(j->store, j->capture_id, text, &id, err) < 0)
		return 0;
	if (strlen(text) < sizeof(j->names[i].text)) {
		strcpy(j->names[i].text, text);
		j->names[i].id = id;
	}
	return id;
}

bool nrp_take_any(const struct nrp_field *field, const struct nrp_step *step, void *to, size_t size)
{
	uint64_t value;
	uint32_t b4;
	uint16_t b2;
	uint8_t b1;

	if (!nrp_has_integer(field, step->raw))
		return false;
	value = nrp_load(step->raw->data + field->offset, field->size, field->is_signed,
			 step->swap);
	if (!nrp_fits(value, size))
		return false;
	switch (size) {
	case 1:
		b1 = (uint8_t)value;
		memcpy(to, &b1, 1);
		break;
	case 2:
		b2 = (uint16_t)value;
		memcpy(to, &b2, 2);
		break;
	case 4:
		b4 = (uint32_t)value;
		memcpy(to, &b4, 4);
		break;
	default:
		memcpy(to, &value, 8);
		break;
	}
	return true;
}

bool nrp_step_string(const struct nrp_step *step, unsigned int index, char *buf, size_t size)
{
	const struct nrp_field *field = &step->desc->field[index];
	uint32_t offset = field->offset, length = field->size;

	if (!nrp_has(field, step->raw))
		return false;
	if (field->is_dynamic) {
		if (length < 4)
			return false;
		/* __data_loc: length in the upper, offset in the lower half word. */
		uint32_t loc = (uint32_t)nrp_load(step->raw->data + offset, 4, false, step->swap);

		offset = loc & 0xffff;
		length = loc >> 16;
		if (offset + length > step->raw->size)
			return false;
	}
	if (length >= size)
		length = (uint32_t)size - 1;
	memcpy(buf, step->raw->data + offset, length);
	buf[length] = '\0';
	return true;
}

int nrp_joiner_break(struct nrp_joiner *j, struct nrp_error *err)
{
	struct nrp_thread *t;
	int r = 0;

	for (size_t i = 0; r == 0 && (t = nrp_thread_at(j->threads, i)); i++) {
		r = nrp_join_close_fault(j, t, NRP_INFER_OPEN, err);
		if (r == 0)
			r = nrp_join_scan_finish(j, t, err);
		if (r == 0)
			r = nrp_join_memory_finish(j, t, err);
		t->migrate_start = 0;
	}
	return r;
}

int nrp_joiner_loss(struct nrp_joiner *j, const struct nrp_loss *loss, struct nrp_error *err)
{
	int r;

	/* A number beyond what SQL counts is none. */
	if (NRP_NULL(loss, loss, count) || loss->count > INT64_MAX - j->stats.lost_events)
		j->stats.loss_gaps++;
	else
		j->stats.lost_events += loss->count;
	/* An end after the gap must not be joined to a begin before it, on whichever CPU. */
	r = nrp_joiner_break(j, err);
	return r < 0 ? r : nrp_writer_append(j->writer, NRP_LOSS, loss, err);
}

/* The gap in front of an event. Where time went backwards, it spans the times that come twice. */
static int gap_before(struct nrp_joiner *j, const struct nrp_raw_event *raw, struct nrp_error *err)
{
	bool back = raw->time < raw->lost_since;
	struct nrp_loss l;

	NRP_ROW_INIT(&l);
	NRP_SET(&l, loss, time, back ? raw->time : raw->lost_since);
	NRP_SET(&l, loss, end_time, back ? raw->lost_since : raw->time);
	NRP_SET(&l, loss, cpu, raw->cpu);
	NRP_SET(&l, loss, cause, raw->lost_cause);
	NRP_SET(&l, loss, read_before, raw->read_before);
	if (raw->lost >= 0)
		NRP_SET(&l, loss, count, (uint64_t)raw->lost);
	if (raw->lost_cause != NRP_LOSS_OVERRUN)
		NRP_SET(&l, loss, offset, raw->lost_offset);
	return nrp_joiner_loss(j, &l, err);
}

/* Lines of a text that could not be read: any CPU's events may be among them. */
static int unread_before(struct nrp_joiner *j, const struct nrp_raw_event *raw,
			 struct nrp_error *err)
{
	bool back = raw->time < raw->unread_since;
	struct nrp_loss l;

	NRP_ROW_INIT(&l);
	NRP_SET(&l, loss, time, back ? raw->time : raw->unread_since);
	NRP_SET(&l, loss, end_time, back ? raw->unread_since : raw->time);
	NRP_SET(&l, loss, cause, NRP_LOSS_DAMAGED);
	NRP_SET(&l, loss, offset, raw->unread_offset);
	return nrp_joiner_loss(j, &l, err);
}

static int dispatch(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	enum nrp_event event = step->desc->event;

	if (event >= NRP_EV_FAULT_BEGIN && event <= NRP_EV_TASK_FAULT)
		return nrp_join_fault(j, step, err);
	switch (event) {
	case NRP_EV_SCAN_BEGIN:
	case NRP_EV_SCAN_END:
	case NRP_EV_RANGE_BEGIN:
	case NRP_EV_RANGE_END:
	case NRP_EV_SKIP_VMA:
	case NRP_EV_SKIP_CPUSET:
		return nrp_join_scan(j, step, err);
	case NRP_EV_PREFERRED:
	case NRP_EV_MOVE_NUMA:
	case NRP_EV_STICK_NUMA:
	case NRP_EV_SWAP_NUMA:
	case NRP_EV_MIGRATE_TASK:
	case NRP_EV_FORK:
	case NRP_EV_EXEC:
	case NRP_EV_EXIT:
		return nrp_join_task(j, step, err);
	default:
		return nrp_join_memory(j, step, err);
	}
}

/* common_pid; false if the event is too short for it. */
static bool thread_of(const struct nrp_catalogue *cat, const struct nrp_raw_event *raw,
		      int32_t *ret_tid)
{
	const struct nrp_field *pid = &cat->common_pid;

	if (pid->plain == sizeof(*ret_tid) && pid->end <= raw->size) {
		memcpy(ret_tid, raw->data + pid->offset, sizeof(*ret_tid));
		return true;
	}
	if (!nrp_has_integer(pid, raw))
		return false;
	*ret_tid = (int32_t)nrp_load(raw->data + pid->offset, pid->size, true, cat->swap);
	return true;
}

int nrp_joiner_event(struct nrp_joiner *j, const struct nrp_raw_event *raw, struct nrp_error *err)
{
	struct nrp_step step = { .raw = raw, .swap = j->cat->swap };
	int32_t tid;

	if (!j->stats.events || raw->time < j->stats.first_time)
		j->stats.first_time = raw->time;
	j->stats.events++;
	if (raw->time > j->stats.last_time)
		j->stats.last_time = raw->time;
	if (raw->lost_before) {
		int r = gap_before(j, raw, err);

		if (r < 0)
			return r;
	}
	if (raw->unread_before) {
		int r = unread_before(j, raw, err);

		if (r < 0)
			return r;
	}
	step.desc = raw->id >= 0 && raw->id < NRP_MAX_EVENT_IDS ? j->cat->by_id[raw->id] : NULL;
	if (!step.desc || !thread_of(j->cat, raw, &tid)) {
		j->stats.other++;
		return 0;
	}
	step.thread = nrp_thread_get(j->threads, tid, raw->cpu);
	if (!step.thread)
		return nrp_fail_nomem(err);
	if (raw->tgid)
		step.thread->tgid = raw->tgid;
	return dispatch(j, &step, err);
}

int nrp_joiner_finish(struct nrp_joiner *j, struct nrp_error *err)
{
	return nrp_joiner_break(j, err);
}
