/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/common.h"
#include "cli/options.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct cli_command *const cli_commands[] = {
	&cli_import, &cli_info,   &cli_verify,   &cli_replay,   &cli_report,
	&cli_query,  &cli_export, &cli_policies, &cli_counters, NULL,
};

static void print_usage(FILE *out)
{
	fprintf(out,
		"usage: numareplay COMMAND [arguments]\n\n"
		"What would another NUMA kernel policy have done on this host?\n\ncommands:\n");
	for (int i = 0; cli_commands[i]; i++)
		fprintf(out, "  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
	fprintf(out,
		"\nnumareplay COMMAND --help tells more; numareplay --version names this one.\n"
		"exit status: 0 done, 1 the answer is no, 2 usage, 3 input unreadable or "
		"damaged, 4 host refuses, 5 internal\n");
}

static const struct cli_command *find_command(const char *name)
{
	for (int i = 0; cli_commands[i]; i++)
		if (!strcmp(cli_commands[i]->name, name))
			return cli_commands[i];
	return NULL;
}

static enum nrp_status dispatch(int argc, char **argv)
{
	const struct cli_command *command;

	if (argc < 2) {
		print_usage(stderr);
		return NRP_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("numareplay %s\n", NRP_VERSION);
		return NRP_DONE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		command = argc > 2 ? find_command(argv[2]) : NULL;
		if (command)
			cli_print_help(command);
		else
			print_usage(stdout);
		return NRP_DONE;
	}
	command = find_command(argv[1]);
	if (!command) {
		cli_error_text("no command '%s': numareplay --help lists them", argv[1]);
		return NRP_USAGE;
	}
	return cli_run(command, argc - 1, argv + 1);
}

/* What could not be written is an error, whatever the command thinks of itself. */
static enum nrp_status end_output(enum nrp_status status)
{
	struct nrp_error err = NRP_ERROR_INIT;
	bool failed = ferror(stdout);

	errno = 0;
	if (fflush(stdout) == 0 && !failed)
		return status;
	/* Of a write that failed earlier nobody knows why: most often the disk is full. */
	cli_fail_output(&err, "standard output", errno ? errno : ENOSPC);
	return cli_error(&err);
}

int main(int argc, char **argv)
{
	enum nrp_status status;

	setlocale(LC_CTYPE, "");  /* widths of what is printed; numbers stay in the C locale */
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like a full disk */
	status = dispatch(argc, argv);
	return (int)end_output(status);
}
