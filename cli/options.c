/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/options.h"
#include "cli/common.h"

#include <stdio.h>
#include <string.h>

const char *cli_value(const struct cli_args *args, size_t option)
{
	size_t n = args->option[option].count;

	return n ? args->option[option].value[n - 1] : NULL;
}

bool cli_given(const struct cli_args *args, size_t option)
{
	return args->option[option].count > 0;
}

static size_t words(const char *argument)
{
	return !argument ? 0 : strchr(argument, ' ') ? 2 : 1;
}

void cli_print_help(const struct cli_command *c)
{
	printf("usage: numareplay %s %s%s\n\n%s\n", c->name, c->synopsis,
	       c->options[0].name ? " [options]" : "", c->summary);
	if (c->details)
		printf("\n%s\n", c->details);
	printf("\noptions:\n");
	for (const struct cli_option *o = c->options; o->name; o++) {
		char left[64];

		snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
			 o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
			 o->argument ? " " : "", o->argument ? o->argument : "");
		printf("  %-34s %s\n", left, o->help);
	}
	printf("      %-30s %s\n", "--help", "print this help");
}

static enum nrp_status usage_error(const struct cli_command *c, const char *what, const char *which)
{
	cli_error_text("%s%s%s: see numareplay %s --help", what, which ? " " : "",
		       which ? which : "", c->name);
	return NRP_USAGE;
}

/* Index of the option that @text (without dashes) names; -1: none. */
static int find_option(const struct cli_command *c, const char *text, size_t length, char letter)
{
	for (int i = 0; c->options[i].name; i++) {
		const struct cli_option *o = &c->options[i];

		if (letter ? o->letter == letter
			   : strlen(o->name) == length && !memcmp(o->name, text, length))
			return i;
	}
	return -1;
}

/* Takes the option at argv[*at]; *at is left on its last word. */
static enum nrp_status take_option(const struct cli_command *c, struct cli_args *args, int argc,
				   char **argv, int *at)
{
	const char *text = argv[*at], *equals = strchr(text, '=');
	bool is_long = text[1] == '-';
	const char *name = is_long ? text + 2 : text + 1;
	size_t length = equals && is_long ? (size_t)(equals - name) : strlen(name), wanted;
	const char *attached = NULL;
	int i = find_option(c, name, length, is_long ? 0 : name[0]);

	if (i < 0)
		return usage_error(c, "no option", text);
	wanted = words(c->options[i].argument);
	if (is_long && equals)
		attached = equals + 1;
	else if (!is_long && name[1])
		attached = name + 1;
	if (attached && wanted != 1)
		return usage_error(c, wanted ? "write the two values apart after" : "no value for",
				   text);
	if (!wanted) {
		args->option[i].count++;
		return NRP_DONE;
	}
	for (size_t k = 0; k < wanted; k++) {
		if (!attached && *at + 1 >= argc)
			return usage_error(c, "missing value after", text);
		if (args->option[i].count == CLI_MAX_VALUES)
			return usage_error(c, "given too often:", text);
		args->option[i].value[args->option[i].count++] = attached ? attached : argv[++*at];
	}
	return NRP_DONE;
}

enum nrp_status cli_run(const struct cli_command *c, int argc, char **argv)
{
	struct cli_args args = { .files = 0 };
	bool only_files = false;

	for (int i = 1; i < argc; i++) {
		if (!only_files && !strcmp(argv[i], "--help")) {
			cli_print_help(c);
			return NRP_DONE;
		}
		if (!only_files && !strcmp(argv[i], "--")) {
			only_files = true;
		} else if (!only_files && argv[i][0] == '-' && argv[i][1]) {
			enum nrp_status s = take_option(c, &args, argc, argv, &i);

			if (s != NRP_DONE)
				return s;
		} else if (args.files == c->max_files || args.files == CLI_MAX_VALUES) {
			return usage_error(c, "one argument too many:", argv[i]);
		} else {
			args.file[args.files++] = argv[i];
		}
	}
	if (args.files < c->min_files)
		return usage_error(c, "missing argument", NULL);
	return c->run(&args);
}
