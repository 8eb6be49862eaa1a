/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring of rows. The reader fills it, the caller empties it; both count rows from the first one
 * on. The caller gives rows back in portions, and the reader sleeps until half of the ring is free,
 * so that neither wakes the other often. On one CPU there is no thread: the caller fills the ring
 * itself whenever it is empty.
 */
#include "replay/read_ahead.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define RING 16384   /* rows, a power of two: a sleep must not come often */
#define PORTION 1024 /* rows that are given back together */

struct nrp_read_ahead {
	struct nrp_cursor *cursor;
	size_t row_size;
	uint8_t *ring;
	/* The caller's: rows handed out, and what it knows of the reader. */
	uint64_t taken, known;
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	/* Under the lock: */
	uint64_t read, given_back; /* rows */
	bool reader_waits, caller_waits, stop;
	bool ended;
	int result; /* of the cursor at its end: 0 or an error */
	struct nrp_error err;
};

static uint8_t *row_at(const struct nrp_read_ahead *a, uint64_t number)
{
	return a->ring + (number & (RING - 1)) * a->row_size;
}

/* Reads up to @room rows to @at; 0: end, or < 0: error, with fewer rows. */
static int fill(struct nrp_read_ahead *a, uint64_t at, uint64_t room, uint64_t *ret_rows)
{
	uint64_t n = 0;
	int r = 1;

	while (n < room && r > 0) {
		uint64_t left = RING - ((at + n) & (RING - 1));
		uint32_t count = (uint32_t)(left < room - n ? left : room - n);
		const void *rows;

		r = nrp_cursor_next_run(a->cursor, &rows, &count, &a->err);
		if (r <= 0)
			break;
		memcpy(row_at(a, at + n), rows, count * a->row_size);
		n += count;
	}
	*ret_rows = n;
	return r;
}

static void *run_reader(void *context)
{
	struct nrp_read_ahead *a = context;
	uint64_t at = 0, room = RING, n;
	int r = 1;

	while (r > 0) {
		r = fill(a, at, room < PORTION ? room : PORTION, &n);
		at += n;
		pthread_mutex_lock(&a->lock);
		a->read = at;
		a->ended = r <= 0;
		a->result = r;
		if (a->caller_waits)
			pthread_cond_signal(&a->filled);
		while (r > 0 && !a->stop && at - a->given_back > RING - PORTION) {
			a->reader_waits = true;
			pthread_cond_wait(&a->emptied, &a->lock);
			a->reader_waits = false;
		}
		room = RING - (at - a->given_back);
		if (a->stop)
			r = 0;
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

static bool has_second_cpu(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 1;
}

int nrp_read_ahead_open(struct nrp_read_ahead **ret, struct nrp_cursor *cursor, size_t row_size,
			struct nrp_error *err)
{
	struct nrp_read_ahead *a = calloc(1, sizeof(*a));

	if (!a) {
		nrp_cursor_close(cursor);
		return nrp_fail_nomem(err);
	}
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->filled, NULL);
	pthread_cond_init(&a->emptied, NULL);
	a->cursor = cursor;
	a->err = (struct nrp_error)NRP_ERROR_INIT;
	a->row_size = row_size;
	a->ring = calloc(RING, row_size);
	if (!a->ring) {
		nrp_read_ahead_close(a);
		return nrp_fail_nomem(err);
	}
	a->threaded = has_second_cpu() && pthread_create(&a->thread, NULL, run_reader, a) == 0;
	*ret = a;
	return 0;
}

struct nrp_read_ahead *nrp_read_ahead_close(struct nrp_read_ahead *a)
{
	if (!a)
		return NULL;
	if (a->threaded) {
		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->emptied);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
	}
	pthread_cond_destroy(&a->filled);
	pthread_cond_destroy(&a->emptied);
	pthread_mutex_destroy(&a->lock);
	nrp_cursor_close(a->cursor);
	free(a->ring);
	free(a);
	return NULL;
}

/* Gives back the rows before the caller's, without the last: it may still be looked at. */
static void give_back(struct nrp_read_ahead *a)
{
	pthread_mutex_lock(&a->lock);
	a->given_back = a->taken ? a->taken - 1 : 0;
	if (a->reader_waits && a->read - a->given_back <= RING / 2)
		pthread_cond_signal(&a->emptied);
	a->known = a->read;
	pthread_mutex_unlock(&a->lock);
}

/* All known rows are taken: waits for more, or for the end. */
static void wait_for_rows(struct nrp_read_ahead *a)
{
	if (!a->threaded) {
		uint64_t n;

		if (a->ended)
			return;
		a->result = fill(a, a->read, PORTION, &n);
		a->ended = a->result <= 0;
		a->known = a->read += n;
		return;
	}
	pthread_mutex_lock(&a->lock);
	a->given_back = a->taken ? a->taken - 1 : 0;
	while (a->read == a->taken && !a->ended) {
		if (a->reader_waits)
			pthread_cond_signal(&a->emptied);
		a->caller_waits = true;
		pthread_cond_wait(&a->filled, &a->lock);
		a->caller_waits = false;
	}
	a->known = a->read;
	pthread_mutex_unlock(&a->lock);
}

int nrp_read_ahead_next(struct nrp_read_ahead *a, const void **ret_row, struct nrp_error *err)
{
	if (a->taken == a->known)
		wait_for_rows(a);
	else if (a->threaded && a->taken % PORTION == 0)
		give_back(a);
	if (a->taken == a->known) {
		if (a->result < 0 && err && err->status == NRP_DONE)
			*err = a->err;
		return a->result;
	}
	*ret_row = row_at(a, a->taken++);
	return 1;
}

const void *nrp_read_ahead_peek(const struct nrp_read_ahead *a, uint32_t rows)
{
	return a->taken + rows <= a->known ? row_at(a, a->taken + rows - 1) : NULL;
}
