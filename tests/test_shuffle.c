/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures without locality: who touches a page is drawn at random, so wherever a policy puts it,
 * half of the touches (on two nodes) are remote. No policy has anything to gain or to lose, and the
 * estimates must say so, within the error of the draws.
 *
 * Without arguments two captures of tests/data run; with --wide those of the folder that NRP_TRACES
 * names (exit status 77, skipped, where it is not set).
 */
#include "relabel.h"
#include "shuffle.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_util.h"
#include "wide.h"

#define RL "migrate.ratelimit="
#define FILTER "migrate.filter="

#define SEEDS 8
/*
 * A 95 % interval leaves 0 out once in 20 draws. Three times or more in eight draws happens with
 * probability 0.6 %.
 */
#define MOST_EXCLUDED 2
/* Four standard deviations: once in 16,000. */
#define SIGMAS 4

static char scratch[] = "shuffle-XXXXXX";
static const char *traces; /* NRP_TRACES, with --wide */
static struct loaded *captures;
static size_t nr_captures;
static int failures;

static const struct {
	const char *old_lane, *new_lane, *set;
	bool wide; /* in the wider set only, for the sake of time */
} lanes[] = {
	{ RL "none", "off", NULL, false },      { RL "none", RL "spin", "quota=64", false },
	{ "host", FILTER "4.18", NULL, false }, { "host", FILTER "4.19", NULL, true },
	{ "host", FILTER "6.1", NULL, true },
};
#define NR_LANES (sizeof(lanes) / sizeof(lanes[0]))

static void wrong(const struct loaded *c, size_t lane, const char *metric, const char *what)
{
	print_error("%s, %s -> %s: %s: %s\n", c->name, lanes[lane].old_lane, lanes[lane].new_lane,
		    metric, what);
	failures++;
}

/* ---- one metric of one draw --------------------------------------------------------- */

static bool excludes_zero(const struct nrp_quantity *q)
{
	return (q->has_lower && q->lower > 0) || (q->has_upper && q->upper < 0);
}

/*
 * Standard deviation of what a policy gains by chance, as a share of the remote total. Between two
 * faults a page is remote for all of the time or for none of it, by the draw of a coin: on a page
 * that two policies place differently that is plus or minus the time, so that the squares of the
 * times add up; of all of it, one half is remote.
 */
static double chance(const struct shuffled *known)
{
	return sqrt(known->squares) / (known->seconds / 2);
}

/*
 * The same in touches: the squares of a VMA weigh as its touch rate. The rates are the product's:
 * they only say how far chance may go.
 */
static double chance_touches(const struct shuffled *known, const struct nrp_replay *r)
{
	double sum = 0;

	for (size_t v = 0; v < known->nr_vmas; v++) {
		double rate = 0;

		for (size_t i = 0; i < r->nr_rates; i++)
			if (r->rates[i].vm_start == known->vma[v].vm_start)
				rate = fmax(rate, r->rates[i].rate);
		sum += known->vma[v].squares * rate * rate;
	}
	return sqrt(sum);
}

/* One standard deviation of what comes by chance. */
static double deviation(const struct compared *x, const struct nrp_metric *m,
			const struct shuffled *known)
{
	double total = (m->old_lane.value + m->new_lane.value) / 2, all = chance(known) * total;

	if (strcmp(m->name, "remote_accesses") != 0)
		return all;
	return fmax(all, chance_touches(known, &x->replay));
}

static bool is_small(const struct compared *x, const struct nrp_metric *m,
		     const struct shuffled *known)
{
	return fabs(m->avoided.value) <= SIGMAS * deviation(x, m, known);
}

/* Nor may the interval miss 0 by much. */
static bool is_near(const struct compared *x, const struct nrp_metric *m,
		    const struct shuffled *known)
{
	double far = 0;

	if (m->avoided.has_lower)
		far = fmax(far, m->avoided.lower);
	if (m->avoided.has_upper)
		far = fmax(far, -m->avoided.upper);
	return far <= SIGMAS * deviation(x, m, known);
}

static bool verdict_says_unchanged(const struct nrp_comparison *c, const char *metric)
{
	const struct nrp_note *note = null_note(c, "verdict");
	const char *says;

	assert_non_null(note);
	says = json_string_value(
		json_object_get(json_object_get(note->detail, "locality"), metric));
	assert_non_null(says);
	/* Filters that answer alike on this capture avoid nothing, exactly. */
	return !strcmp(says, "unchanged within error") || !strcmp(says, "the same");
}

/* ---- all draws of a capture --------------------------------------------------------- */

static const char *const locality[] = { "remote_accesses", "remote_residency" };

struct tally {
	int draws, excluded, large, far, said;
};

static void judge(struct tally *t, const struct compared *x, const struct shuffled *known,
		  const char *name)
{
	const struct nrp_metric *m = nrp_comparison_metric(&x->comparison, name);

	if (m->avoided.class == NRP_CLASS_NOT_OBSERVABLE)
		return;
	t->draws++;
	t->excluded += excludes_zero(&m->avoided);
	t->large += !is_small(x, m, known);
	t->far += !is_near(x, m, known);
	t->said += !verdict_says_unchanged(&x->comparison, name);
	if (excludes_zero(&m->avoided) || !is_small(x, m, known))
		print_message("    %s of %.6g: %+.6g [%+.6g, %+.6g]; by chance %.3g\n", name,
			      (m->old_lane.value + m->new_lane.value) / 2, m->avoided.value,
			      m->avoided.lower, m->avoided.upper, deviation(x, m, known));
}

static void report(const struct loaded *c, size_t lane, const char *metric, const struct tally *t)
{
	char text[160];

	if (t->large) {
		snprintf(text, sizeof(text), "in %d of %d draws the value is not small", t->large,
			 t->draws);
		wrong(c, lane, metric, text);
	}
	if (t->excluded > MOST_EXCLUDED || t->said > MOST_EXCLUDED || t->far) {
		snprintf(text, sizeof(text),
			 "in %d of %d draws the interval leaves 0 out, in %d by far; in %d the "
			 "verdict is not \"unchanged within error\"",
			 t->excluded, t->draws, t->far, t->said);
		wrong(c, lane, metric, text);
	}
}

/* The draws themselves have nothing to gain from moves. */
static void assert_no_locality(const struct shuffled *known)
{
	double gained = (double)known->remote_still - (double)known->remote;

	assert_true(known->moves > 0);
	assert_true(fabs(gained) <= SIGMAS * sqrt((double)known->apart));
}

static void shuffle_capture(const struct loaded *c)
{
	struct tally tally[NR_LANES][2] = { 0 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct shuffled known;
		struct loaded copy;

		shuffle(&copy, &known, c, seed, -1, scratch);
		print_message("  %s, seed %d: %llu faults, %llu remote, %llu if no page moved\n",
			      c->name, (int)seed, (unsigned long long)known.faults,
			      (unsigned long long)known.remote,
			      (unsigned long long)known.remote_still);
		assert_no_locality(&known);
		for (size_t i = 0; i < NR_LANES; i++) {
			struct compared x;

			if (lanes[i].wide && !traces)
				continue;
			null_compare(&x, &copy, lanes[i].old_lane, lanes[i].new_lane, lanes[i].set);
			for (int k = 0; k < 2; k++)
				judge(&tally[i][k], &x, &known, locality[k]);
			null_compared_clear(&x);
		}
		null_drop(&copy);
	}
	for (size_t i = 0; i < NR_LANES; i++)
		for (int k = 0; k < 2; k++)
			report(c, i, locality[k], &tally[i][k]);
}

static void test_nothing_is_gained_where_there_is_no_locality(void **state)
{
	(void)state;
	failures = 0;
	for (size_t i = 0; i < nr_captures; i++)
		shuffle_capture(&captures[i]);
	assert_int_equal(failures, 0);
}

/* ---- a node that no attempt names --------------------------------------------------- */

/*
 * On record nothing moves to one of the nodes; under another filter pages do. What its limiter may
 * have charged before is as unknown as of any node, whether its number is the highest or not.
 */
static void test_node_without_attempts_may_have_any_number(void **state)
{
	static const char *const metrics[] = { "migrations_admitted", "migrated_pages" };
	int swap[2] = { 1, 0 };
	struct relabelling map = { .nid = swap, .nr_nodes = 2 };
	struct loaded *capture = null_find(captures, nr_captures, "limiter-6.12");
	struct loaded last, first;
	struct compared a, b;
	struct shuffled known;

	(void)state;
	if (!capture)
		skip();
	shuffle(&last, &known, capture, 5, 1, scratch);
	relabel(&first, &last, &map, scratch);
	null_compare(&a, &last, "host", FILTER "4.18," RL "spin", "new:quota=16");
	null_compare(&b, &first, "host", FILTER "4.18," RL "spin", "new:quota=16");
	null_drop(&last);
	null_drop(&first);
	for (int k = 0; k < 2; k++) {
		const struct nrp_quantity *p, *q;

		p = &nrp_comparison_metric(&a.comparison, metrics[k])->new_lane;
		q = &nrp_comparison_metric(&b.comparison, metrics[k])->new_lane;
		if (p->value != q->value || p->lower != q->lower || p->upper != q->upper)
			fail_msg("%s: %g [%g, %g], renumbered %g [%g, %g]", metrics[k], p->value,
				 p->lower, p->upper, q->value, q->lower, q->upper);
	}
	null_compared_clear(&a);
	null_compared_clear(&b);
}

/* ---- the captures ------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(scratch))
		return -1;
	if (traces) {
		null_load(&captures, &nr_captures, traces, "policy-pairs/ratelimit0.dat", scratch);
		null_load(&captures, &nr_captures, traces, "kernels/*/shared.dat", scratch);
	} else {
		null_load(&captures, &nr_captures, NRP_TEST_DATA, "limiter-6.12.dat", scratch);
		null_load(&captures, &nr_captures, NRP_TEST_DATA, "shared-6.1.dat", scratch);
	}
	return nr_captures ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	null_drop_all(captures, nr_captures);
	return rmdir(scratch);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_gained_where_there_is_no_locality),
		cmocka_unit_test(test_node_without_attempts_may_have_any_number),
	};

	traces = wide_folder(argc, argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
