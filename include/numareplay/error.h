/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors. Libraries return a negative errno and, where the caller passed one,
 * fill an error object; only cli/ prints it. The printed form is
 * "numareplay: FILE: offset N: what is wrong: what to do".
 */
#ifndef NUMAREPLAY_ERROR_H
#define NUMAREPLAY_ERROR_H

#include <stdint.h>

/* What a failed call means for the user; the values are the exit statuses. */
enum nrp_status {
	NRP_DONE = 0,     /* done */
	NRP_NO = 1,       /* the answer is "no" */
	NRP_USAGE = 2,    /* wrong options or names */
	NRP_INPUT = 3,    /* input unreadable or damaged */
	NRP_HOST = 4,     /* the host refuses: permission, lockdown, no tracefs */
	NRP_INTERNAL = 5, /* out of memory, full disk, a bug */
};

struct nrp_error {
	enum nrp_status status; /* NRP_DONE while unset */
	int code;               /* negative errno */
	int64_t offset;         /* bytes from the start of the file; -1: not applicable */
	char file[512];         /* "" where no file is concerned */
	char what[512];         /* what is wrong */
	char remedy[256];       /* what to do; "" if there is nothing to say */
};

/* Start value of an error object. */
#define NRP_ERROR_INIT                                                                             \
	{                                                                                          \
		.status = NRP_DONE, .code = 0, .offset = -1                                        \
	}

/*
 * Fills @err (which may be NULL; the first error wins) and returns @code, a negative
 * errno, so that a function can end with "return nrp_fail(...)".
 */
int nrp_fail(struct nrp_error *err, enum nrp_status status, int code, const char *file,
	     int64_t offset, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 7, 8)));

/* Out of memory: NRP_INTERNAL, -ENOMEM. */
int nrp_fail_nomem(struct nrp_error *err);

#endif
