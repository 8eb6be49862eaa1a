/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the commands share: the only place that prints errors. */
#ifndef NRP_CLI_COMMON_H
#define NRP_CLI_COMMON_H

#include "numareplay/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Prints "numareplay: FILE: offset N: what: what to do" and returns the exit status. */
enum nrp_status cli_error(const struct nrp_error *err);
/* Prints "numareplay: TEXT". */
void cli_error_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Columns of the terminal on stdout; 0: stdout is no terminal. */
size_t cli_width(void);
/* Prints a JSON document and drops it; NRP_INTERNAL if @doc is NULL. */
enum nrp_status cli_print_json(json_t *doc);
/* Prints text made with malloc and frees it; NRP_INTERNAL if it is NULL. */
enum nrp_status cli_print_text(char *text);

/*
 * Fails with what a file could not be made or written for, a positive errno: NRP_HOST where the
 * host forbids it, NRP_INTERNAL where there is no room, NRP_USAGE where the name is wrong. Returns
 * its negative.
 */
int cli_fail_output(struct nrp_error *err, const char *path, int error);

/* Do both names mean one file, which exists? */
bool cli_same_file(const char *a, const char *b);

/* Opens a database and one of its captures (NULL: the only one). Prints the error. */
enum nrp_status cli_open(struct nrp_store **ret_store, struct nrp_capture *ret_capture,
			 const char *path, const char *which, enum nrp_store_mode mode);

#endif
