/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands and their options. One declarative table per command drives parsing, --help and the
 * usage line.
 */
#ifndef NRP_CLI_OPTIONS_H
#define NRP_CLI_OPTIONS_H

#include "numareplay/error.h"

#include <stdbool.h>
#include <stddef.h>

#define CLI_MAX_OPTIONS 24
#define CLI_MAX_VALUES 64

struct cli_option {
	const char *name;     /* long name; NULL ends the table */
	char letter;          /* short name, 0: none */
	const char *argument; /* "DB"; "BEFORE AFTER" takes two; NULL: a flag */
	const char *help;
};

/* What was given: option i of the command's table, and the rest. */
struct cli_args {
	struct {
		const char *value[CLI_MAX_VALUES]; /* in order; a flag has no values */
		size_t count;                      /* times given (values: times arguments) */
	} option[CLI_MAX_OPTIONS];
	const char *file[CLI_MAX_VALUES]; /* positional */
	size_t files;
};

struct cli_command {
	const char *name;
	const char *synopsis; /* positional part: "FILE.. -o DB" */
	const char *summary;  /* one line */
	const char *details;  /* further paragraphs of --help; NULL: none */
	size_t min_files, max_files;
	const struct cli_option *options;
	enum nrp_status (*run)(const struct cli_args *args);
};

extern const struct cli_command cli_import, cli_info, cli_verify, cli_replay, cli_report, cli_query,
	cli_export, cli_policies, cli_counters;

/* Parses and runs a command; prints usage errors. */
enum nrp_status cli_run(const struct cli_command *command, int argc, char **argv);
/* Last value of an option, NULL: not given. */
const char *cli_value(const struct cli_args *args, size_t option);
bool cli_given(const struct cli_args *args, size_t option);
void cli_print_help(const struct cli_command *command);

#endif
