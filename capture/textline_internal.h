/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between textline.c (which event?), textline_fields.c (which values?) and textline_names.c. */
#ifndef NRP_TEXTLINE_INTERNAL_H
#define NRP_TEXTLINE_INTERNAL_H

#include "capture/textline.h"

#define NRP_TEXT_SLOTS 512 /* of the table of names; a power of two, four times the events */

/* Which numbers a field can have, in any kernel; others are damage. */
enum nrp_text_limit {
	NRP_TEXT_ANY,
	NRP_TEXT_8_BITS, /* signed or unsigned */
	NRP_TEXT_32_BITS,
	NRP_TEXT_NODE /* -1: none */
};

/* How an event prints a field. */
struct nrp_text_key {
	char name[31];
	uint8_t size;  /* bytes of name; 0: behind the last field */
	uint8_t limit; /* enum nrp_text_limit */
	bool hex;      /* digits are hexadecimal with or without "0x" */
};

struct nrp_text_event {
	const char *system, *name;
	uint8_t name_size;
	struct nrp_text_key key[NRP_MAX_EVENT_FIELDS]; /* in the order of the NRP_EVENTS line */
	/*
	 * A field of any text, like a task's name, ends only at the last place where the next
	 * field can begin: "pid" of "comm=a pid=7 b pid=1" is 1.
	 */
	const char *text_key; /* "comm=", NULL: the event has none */
	const char *resume;   /* " pid=" */
	int text_field;       /* where to keep the text, -1: nowhere */
};

/* What an event of text looks like to the joiner: fields at fixed places. */
struct nrp_text_payload {
	int32_t tid;
	uint32_t pad;
	uint64_t slot[NRP_MAX_EVENT_FIELDS];
	char string[512]; /* cut off if it is longer */
	uint64_t weight[4 * NRP_MAX_NODES];
};

struct nrp_textline {
	struct nrp_catalogue cat;
	struct nrp_textline_stats stats;
	struct nrp_text_event event[NRP_NR_EVENTS];
	uint8_t slot[NRP_TEXT_SLOTS]; /* hash of an event's name -> event, 0: free */
	struct nrp_text_payload payload;
	bool arrays_printed; /* an array was not all zeros: this text prints what arrays hold */
};

/* textline_names.c */
void nrp_text_names_init(struct nrp_textline *t);
/* Event by name, and by system unless that is empty. */
enum nrp_event nrp_text_event_by_name(const struct nrp_textline *t, const char *system,
				      size_t system_size, const char *name, size_t name_size);
/* Kernel's number of "numa_misplaced" or "MIGRATE_ASYNC"; false: not a name known here. */
bool nrp_text_enum(const char *p, size_t size, uint64_t *ret);

/* textline_fields.c: the fields between @p and @end, which is the line's. */
void nrp_text_fields(struct nrp_textline *t, enum nrp_event event, const char *p, const char *end);
/* A system call's "addr: 7f00, len: 4096, .." up to a closing parenthesis or the line's end. */
void nrp_text_arguments(struct nrp_textline *t, enum nrp_event event, const char *p,
			const char *end);
/* The value of a system call's return: the only field. */
void nrp_text_result(struct nrp_textline *t, enum nrp_event event, const char *p, const char *end);

/* "0xff11000000140fa8 (flags=READ|RT)", ".. (ret=0)": the lock, and what is in parentheses. */
void nrp_text_contention(struct nrp_textline *t, enum nrp_event event, const char *p,
			 const char *end);

static inline bool nrp_text_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline const char *nrp_text_skip(const char *p, const char *end)
{
	while (p < end && nrp_text_blank(*p))
		p++;
	return p;
}

/* Where the word that begins at @p ends. */
static inline const char *nrp_text_word(const char *p, const char *end)
{
	while (p < end && !nrp_text_blank(*p))
		p++;
	return p;
}

#endif
