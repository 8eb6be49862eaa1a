/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the parts of the joiner: join.c (dispatch), join_fault.c, join_scan.c, join_memory.c.
 */
#ifndef NRP_JOIN_INTERNAL_H
#define NRP_JOIN_INTERNAL_H

#include "capture/join.h"
#include "capture/thread.h"

struct nrp_joiner {
	const struct nrp_catalogue *cat;
	const struct nrp_host_facts *facts;
	struct nrp_store *store;
	struct nrp_writer *writer;
	int64_t capture_id;
	struct nrp_thread_table *threads;
	struct nrp_join_stats stats;
	uint64_t cpuid_mask; /* last_cpupid within page_flags, 0: not calibrated */
	struct {
		char text[64];
		uint32_t id;
	} names[256]; /* interned strings, by hash; avoids a statement per event */
};

/* One event on its way through the joiner. */
struct nrp_step {
	const struct nrp_raw_event *raw;
	const struct nrp_event_desc *desc;
	struct nrp_thread *thread;
	bool swap;
};

/* Value of a field that is known to be there. */
static inline uint64_t nrp_step_get(const struct nrp_step *step, unsigned int index)
{
	const struct nrp_field *field = &step->desc->field[index];

	return nrp_load(step->raw->data + field->offset, field->size, field->is_signed, step->swap);
}

static inline bool nrp_step_has(const struct nrp_step *step, unsigned int index)
{
	return nrp_has_integer(&step->desc->field[index], step->raw);
}

/* Value of a field, or @missing. */
static inline uint64_t nrp_step_get_or(const struct nrp_step *step, unsigned int index,
				       uint64_t missing)
{
	return nrp_step_has(step, index) ? nrp_step_get(step, index) : missing;
}

/* The slow way of nrp_take(): any size, byte order and sign. */
bool nrp_take_any(const struct nrp_field *field, const struct nrp_step *step, void *to,
		  size_t size);

/*
 * Copies a field of the event to @to, a member of @size bytes. Returns @bit, or 0 with *@to as it
 * was if the event lacks the field or its value does not fit: cut off, a damaged one would look
 * like a good one.
 */
static inline uint64_t nrp_take(const struct nrp_step *step, unsigned int index, void *to,
				size_t size, uint64_t bit)
{
	const struct nrp_field *field = &step->desc->field[index];

	if (field->plain == size && field->end <= step->raw->size) {
		memcpy(to, step->raw->data + field->offset, size);
		return bit;
	}
	return nrp_take_any(field, step, to, size) ? bit : 0;
}

/* Copies event field EVENT.src into row field dst; the NULL bit to clear. */
#define NRP_TAKEN(step, row, kind, dst, EVENT, src)                                                \
	nrp_take(step, NRP_EF_##EVENT##_##src, &(row)->dst, sizeof((row)->dst), NRP_BIT(kind, dst))

/* The same with the bit cleared. */
#define NRP_TAKE(step, row, kind, dst, EVENT, src)                                                 \
	((row)->null &= ~NRP_TAKEN(step, row, kind, dst, EVENT, src))

/* ns from @from to @to; 0 where the clock went backwards. */
static inline uint64_t nrp_delay(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

/* A row with every field NULL and zero. */
#define NRP_ROW_INIT(row) (memset(row, 0, sizeof(*(row))), (row)->null = ~UINT64_C(0))

/* The same for a row that begins with an event of its thread. */
#define NRP_ROW_START(step, row, kind)                                                             \
	do {                                                                                       \
		NRP_ROW_INIT(row);                                                                 \
		NRP_SET(row, kind, time, (step)->raw->time);                                       \
		NRP_SET(row, kind, cpu, (step)->raw->cpu);                                         \
		NRP_SET(row, kind, tid, (step)->thread->tid);                                      \
	} while (0)

/* An event that belongs to no record: counted, never dropped silently. */
static inline int nrp_join_unjoined(struct nrp_joiner *j, const struct nrp_step *step)
{
	j->stats.unjoined++;
	j->stats.unjoined_by_event[step->desc->event]++;
	return 0;
}

/* Id of a string in table name; 0 on failure with @err filled. */
uint32_t nrp_join_intern(struct nrp_joiner *j, const char *text, struct nrp_error *err);
/* Copies a fixed or dynamic string field, NUL-terminated; false if the event lacks it. */
bool nrp_step_string(const struct nrp_step *step, unsigned int index, char *buf, size_t size);

/* The parts; each returns 0 or < 0. */
int nrp_join_fault(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err);
int nrp_join_scan(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err);
int nrp_join_memory(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err);
int nrp_join_task(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err);
/* Writes a fault that gets no more events; @flags is NRP_INFER_OPEN at the end of the capture. */
int nrp_join_close_fault(struct nrp_joiner *j, struct nrp_thread *thread, uint8_t flags,
			 struct nrp_error *err);
/* Notes what the rate limiter or migrate_pages said inside an attempt of this thread. */
void nrp_join_fault_limited(struct nrp_thread *thread);
void nrp_join_fault_migrated(struct nrp_thread *thread, uint64_t succeeded, uint64_t failed);
/* Compare a record with the nodes of the facts file, if it gave them (capture/join_check.c). */
void nrp_join_check_fault(struct nrp_joiner *j, const struct nrp_hint_fault *fault);
void nrp_join_check_cpu(struct nrp_joiner *j, int32_t cpu, int32_t nid);
/* Write what a thread has open at the end of the capture. */
int nrp_join_scan_finish(struct nrp_joiner *j, struct nrp_thread *thread, struct nrp_error *err);
int nrp_join_memory_finish(struct nrp_joiner *j, struct nrp_thread *thread, struct nrp_error *err);

#endif
