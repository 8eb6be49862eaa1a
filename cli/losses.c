/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/losses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINES 32

/* The gaps of one CPU that have one cause. */
struct loss_sum {
	int64_t cpu; /* -1: all together, or unknown */
	uint8_t cause;
	uint64_t gaps, unknown; /* all; of unknown size */
	uint64_t lost;          /* events, where known */
	uint64_t from, to;      /* ns; 0: from the start */
	bool to_end;            /* the last gap lasts to the end */
	uint64_t offset;        /* of the first damage */
	bool has_offset;
	uint64_t read_before; /* events read before the first gap */
	bool has_read_before;
};

struct loss_table {
	struct loss_sum *at;
	size_t count, room;
};

static const char *const causes[NRP_NR_LOSSES] = {
	[NRP_LOSS_OVERRUN] = "ring buffer overrun",
	[NRP_LOSS_DAMAGED] = "damaged data",
	[NRP_LOSS_STATS] = "counted by the kernel only",
	[NRP_LOSS_BACKWARDS] = "time went backwards",
};

static const char *cause_name(uint8_t cause)
{
	return cause < NRP_NR_LOSSES ? causes[cause] : "unknown";
}

/* The sum that @loss belongs to, by CPU and cause; NULL: no memory. */
static struct loss_sum *sum_of(struct loss_table *t, const struct nrp_loss *loss)
{
	int64_t cpu = NRP_NULL(loss, loss, cpu) ? -1 : (int64_t)loss->cpu;
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct loss_sum *s = &t->at[middle];

		if (s->cpu == cpu && s->cause == loss->cause)
			return &t->at[middle];
		if (s->cpu < cpu || (s->cpu == cpu && s->cause < loss->cause))
			low = middle + 1;
		else
			high = middle;
	}
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 16;
		struct loss_sum *grown = reallocarray(t->at, room, sizeof(*grown));

		if (!grown)
			return NULL;
		t->at = grown;
		t->room = room;
	}
	memmove(&t->at[low + 1], &t->at[low], (t->count - low) * sizeof(*t->at));
	t->count++;
	t->at[low] = (struct loss_sum){ .cpu = cpu, .cause = loss->cause };
	return &t->at[low];
}

static int add_loss(struct loss_table *t, const struct nrp_loss *loss, struct nrp_error *err)
{
	struct loss_sum *s = sum_of(t, loss);

	if (!s)
		return nrp_fail_nomem(err);
	if (!s->gaps++) { /* rows come in order of time */
		s->from = loss->time;
		s->read_before = loss->read_before;
		s->has_read_before = !NRP_NULL(loss, loss, read_before);
	}
	if (NRP_NULL(loss, loss, count))
		s->unknown++;
	else
		s->lost += loss->count;
	if (NRP_NULL(loss, loss, end_time))
		s->to_end = true;
	else if (loss->end_time > s->to)
		s->to = loss->end_time;
	if (!NRP_NULL(loss, loss, offset) && (!s->has_offset || loss->offset < s->offset)) {
		s->offset = loss->offset;
		s->has_offset = true;
	}
	return 0;
}

static int load(struct loss_table *t, struct nrp_store *store, const struct nrp_capture *capture,
		struct nrp_error *err)
{
	struct nrp_cursor *cursor = NULL;
	const void *row;
	int r = nrp_cursor_open(&cursor, store, capture->id, NRP_LOSS, ~UINT64_C(0), err);

	while (r == 0 && (r = nrp_cursor_next(cursor, &row, err)) > 0)
		r = add_loss(t, row, err);
	nrp_cursor_close(cursor);
	return r;
}

int cli_losses_json(json_t **ret, struct nrp_store *store, const struct nrp_capture *capture,
		    struct nrp_error *err)
{
	struct loss_table t = { 0 };
	json_t *list;
	int r = load(&t, store, capture, err);

	if (r < 0) {
		free(t.at);
		return r;
	}
	list = json_array();
	for (size_t i = 0; i < t.count; i++) {
		const struct loss_sum *s = &t.at[i];

		json_array_append_new(
			list,
			json_pack("{s:o,s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:o}", "cpu",
				  s->cpu < 0 ? json_null() : json_integer(s->cpu), "cause",
				  cause_name(s->cause), "gaps", (json_int_t)s->gaps, "unknown",
				  (json_int_t)s->unknown, "lost", (json_int_t)s->lost, "from",
				  (json_int_t)s->from, "to",
				  s->to_end ? json_null() : json_integer((json_int_t)s->to),
				  "offset",
				  s->has_offset ? json_integer((json_int_t)s->offset) : json_null(),
				  "read_before",
				  s->has_read_before ? json_integer((json_int_t)s->read_before)
						     : json_null()));
	}
	free(t.at);
	*ret = list;
	return 0;
}

/* Seconds after the capture's first event. */
static double seconds(const struct nrp_capture *capture, uint64_t time)
{
	return time > capture->first_time ? (double)(time - capture->first_time) * 1e-9 : 0;
}

static void print_sum(const struct loss_sum *s, const struct nrp_capture *capture)
{
	if (s->cpu < 0)
		printf("    some CPU  ");
	else
		printf("    CPU %-5lld ", (long long)s->cpu);
	printf("%llu gap%s: %s, ", (unsigned long long)s->gaps, s->gaps == 1 ? "" : "s",
	       cause_name(s->cause));
	if (s->unknown < s->gaps)
		printf("%llu events%s", (unsigned long long)s->lost, s->unknown ? " and " : "");
	if (s->unknown)
		printf("%llu of unknown size", (unsigned long long)s->unknown);
	printf(", from %.6f s ", seconds(capture, s->from));
	if (s->to_end)
		printf("to the end");
	else
		printf("to %.6f s", seconds(capture, s->to));
	if (s->has_offset)
		printf(", offset %llu", (unsigned long long)s->offset);
	if (s->has_read_before)
		printf(", %llu events read before", (unsigned long long)s->read_before);
	putchar('\n');
}

int cli_print_losses(struct nrp_store *store, const struct nrp_capture *capture,
		     struct nrp_error *err)
{
	struct loss_table t = { 0 };
	int r = load(&t, store, capture, err);

	for (size_t i = 0; r == 0 && i < t.count && i < MAX_LINES; i++)
		print_sum(&t.at[i], capture);
	if (r == 0 && t.count > MAX_LINES)
		printf("    and %zu more lines: query them in table loss\n", t.count - MAX_LINES);
	free(t.at);
	return r;
}
