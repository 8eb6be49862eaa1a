/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lanes and settings as a command line writes them. */
#include "replay/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The variant with the longest name. */
static int longest(const struct nrp_family *f)
{
	int best = 0;

	for (int v = 1; f->variant[v].name; v++)
		if (strlen(f->variant[v].name) > strlen(f->variant[best].name))
			best = v;
	return best;
}

static const char *longest_profile(void)
{
	const char *name = nrp_profile(0)->name;

	for (size_t i = 1; i < nrp_nr_profiles(); i++)
		if (strlen(nrp_profile(i)->name) > strlen(name))
			name = nrp_profile(i)->name;
	return name;
}

/* A profile, and every family with the variant whose name takes most room. */
static void one_lane_names_every_family(void **state)
{
	char text[4096];
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lane_spec lane;
	int n = snprintf(text, sizeof(text), "%s", longest_profile());

	(void)state;
	for (int f = 0; f < NRP_NR_FAMILIES; f++) {
		const struct nrp_family *family = nrp_family((enum nrp_family_id)f);

		n += snprintf(text + n, sizeof(text) - (size_t)n, ",%s=%s", family->name,
			      family->variant[longest(family)].name);
	}
	assert_true(n < (int)sizeof(text));
	assert_int_equal(nrp_lane_parse(&lane, text, &err), 0);
	assert_string_equal(lane.name, text);
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		assert_int_equal(lane.variant[f], longest(nrp_family((enum nrp_family_id)f)));
}

static void a_text_without_end_is_refused(void **state)
{
	char text[NRP_LANE_NAME + 1];
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_lane_spec lane;

	(void)state;
	memset(text, 'x', NRP_LANE_NAME);
	text[NRP_LANE_NAME] = '\0';
	assert_true(nrp_lane_parse(&lane, text, &err) < 0);
	assert_int_equal(err.status, NRP_USAGE);
	assert_non_null(strstr(err.what, "too long"));
	assert_true(nrp_lane_parse(&lane, "", &err) < 0);
	assert_int_equal(err.status, NRP_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_lane_names_every_family),
		cmocka_unit_test(a_text_without_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
