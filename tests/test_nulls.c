/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparisons whose answer is known without knowing the capture: a lane against itself differs in
 * nothing, a host whose nodes have other numbers is the same host, and pages are neither made nor
 * lost.
 *
 * Without arguments the captures of tests/data run; with --wide those of the folder that NRP_TRACES
 * names (exit status 77, skipped, where it is not set).
 */
#include "nulls.h"
#include "relabel.h"
#include "store_util.h"
#include "wide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RL "migrate.ratelimit="
#define FILTER "migrate.filter="

static char scratch[] = "nulls-XXXXXX";
static const char *traces; /* NRP_TRACES, with --wide */
struct loaded *null_captures;
size_t null_count;

/* ---- a lane against itself ---------------------------------------------------------- */

static void assert_zero(const char *capture, const char *lane, const struct nrp_metric *m)
{
	const struct nrp_quantity *q = &m->avoided;

	if (m->old_lane.class == NRP_CLASS_NOT_OBSERVABLE &&
	    m->new_lane.class == NRP_CLASS_NOT_OBSERVABLE)
		return;
	if (q->class == NRP_CLASS_EXACT && q->has_value && q->has_lower && q->has_upper &&
	    q->value == 0 && q->lower == 0 && q->upper == 0)
		return;
	fail_msg("%s: %s against itself: %s: %s %g [%g, %g]", capture, lane, m->name,
		 nrp_class_name(q->class), q->value, q->lower, q->upper);
}

/* The worlds of both lanes are followed one by one, and so must agree in every count. */
static void assert_same_worlds(const char *capture, const struct nrp_replay *r)
{
	const struct nrp_replay_lane *a = &r->lane[0], *b = &r->lane[1];

	if (a->observed || b->observed)
		return;
	assert_int_equal(a->nr_worlds, b->nr_worlds);
	for (int k = 0; k < a->nr_worlds; k++)
		if (memcmp(&a->remote[k], &b->remote[k], sizeof(a->remote[k])) ||
		    memcmp(&a->avoided[k], &b->avoided[k], sizeof(a->avoided[k])) ||
		    a->world[k].hint_faults != b->world[k].hint_faults ||
		    a->world[k].remote_faults != b->world[k].remote_faults ||
		    a->world[k].extra_faults_max != b->world[k].extra_faults_max ||
		    a->world[k].attempts != b->world[k].attempts ||
		    a->world[k].admitted != b->world[k].admitted ||
		    a->world[k].moved_pages != b->world[k].moved_pages ||
		    a->world[k].tainted_seconds != b->world[k].tainted_seconds)
			fail_msg("%s: world %d of %s differs between the lanes", capture, k,
				 a->spec.name);
}

static void assert_nothing_avoided(const struct loaded *capture, const char *old_lane,
				   const char *new_lane, const char *set)
{
	struct compared c;

	null_compare(&c, capture, old_lane, new_lane, set);
	for (size_t m = 0; m < c.comparison.nr_metrics; m++)
		assert_zero(capture->name, new_lane, &c.comparison.metric[m]);
	assert_same_worlds(capture->name, &c.replay);
	null_compared_clear(&c);
}

/* The variants that verify found, by name. */
static void host_by_name(const struct loaded *c, char *lane, size_t size)
{
	size_t used = 0;

	*lane = '\0';
	for (size_t i = 0; i < c->verify.nr_checks; i++) {
		const struct nrp_verify_check *k = &c->verify.check[i];
		const struct nrp_verify_variant *v = &k->variant[k->chosen];

		/* A host with a rule switched off has no variant's name. */
		if (v->disagree > v->agree || k->switched_off)
			continue;
		used += (size_t)snprintf(lane + used, size - used, "%s%s=%s", used ? "," : "",
					 k->family, k->variant[k->chosen].variant);
		assert_true(used < size);
	}
}

static void test_host_against_itself(void **state)
{
	(void)state;
	for (size_t i = 0; i < null_count; i++)
		assert_nothing_avoided(&null_captures[i], "host", "host", NULL);
}

static void test_host_against_its_variants_by_name(void **state)
{
	char lane[128];

	(void)state;
	for (size_t i = 0; i < null_count; i++) {
		host_by_name(&null_captures[i], lane, sizeof(lane));
		assert_nothing_avoided(&null_captures[i], "host", lane, NULL);
	}
}

static void test_off_against_off(void **state)
{
	(void)state;
	for (size_t i = 0; i < null_count; i++)
		assert_nothing_avoided(&null_captures[i], "off", "off", NULL);
}

static void test_lane_against_itself(void **state)
{
	static const struct {
		const char *lane, *set;
	} lanes[] = {
		{ RL "spin", "quota=256" },
		{ FILTER "4.18", NULL },
		{ FILTER "6.1", NULL },
		{ "linux-5.10", NULL },
	};

	(void)state;
	for (size_t i = 0; i < null_count; i++)
		for (size_t k = 0; k < sizeof(lanes) / sizeof(lanes[0]); k++)
			assert_nothing_avoided(&null_captures[i], lanes[k].lane, lanes[k].lane,
					       lanes[k].set);
}

/* ---- nodes by other numbers --------------------------------------------------------- */

/* Sums over nodes are made in the order of their numbers; floating point shows it. */
static bool same_sum(double a, double b, double scale)
{
	return fabs(a - b) <= 1e-9 * fmax(fabs(scale), fmax(fabs(a), fabs(b)));
}

static bool same_quantity(const struct nrp_quantity *a, const struct nrp_quantity *b, bool counts,
			  double scale)
{
	if (a->class != b->class || a->tier != b->tier || a->has_value != b->has_value ||
	    a->has_lower != b->has_lower || a->has_upper != b->has_upper)
		return false;
	if (counts)
		return a->value == b->value && a->lower == b->lower && a->upper == b->upper;
	return same_sum(a->value, b->value, scale) && same_sum(a->lower, b->lower, scale) &&
	       same_sum(a->upper, b->upper, scale);
}

struct what {
	const char *capture, *copy, *old_lane, *new_lane;
};

static void assert_same_metrics(const struct what *w, const struct nrp_comparison *a,
				const struct nrp_comparison *b)
{
	assert_int_equal(a->nr_metrics, b->nr_metrics);
	for (size_t i = 0; i < a->nr_metrics; i++) {
		const struct nrp_metric *m = &a->metric[i], *n = &b->metric[i];
		const struct nrp_quantity *q[2][3] = { { &m->old_lane, &m->new_lane, &m->avoided },
						       { &n->old_lane, &n->new_lane,
							 &n->avoided } };
		bool counts = strcmp(m->unit, "page-seconds") && strcmp(m->unit, "touches");
		double scale = fmax(m->old_lane.upper, m->new_lane.upper);

		for (int k = 0; k < 3; k++)
			if (!same_quantity(q[0][k], q[1][k], counts, scale))
				fail_msg("%s, %s, %s -> %s: %s (%d): %s %.17g [%.17g, %.17g], "
					 "renumbered %s %.17g [%.17g, %.17g]",
					 w->capture, w->copy, w->old_lane, w->new_lane, m->name, k,
					 nrp_class_name(q[0][k]->class), q[0][k]->value,
					 q[0][k]->lower, q[0][k]->upper,
					 nrp_class_name(q[1][k]->class), q[1][k]->value,
					 q[1][k]->lower, q[1][k]->upper);
	}
	assert_int_equal(a->nr_notes, b->nr_notes);
	for (size_t i = 0; i < a->nr_notes; i++) {
		assert_string_equal(a->note[i].code, b->note[i].code);
		assert_string_equal(a->note[i].text, b->note[i].text);
	}
}

/* Each rate is found again at the node's new number. */
static void assert_mirrored_rates(const struct what *w, const struct nrp_replay *a,
				  const struct nrp_replay *b, const struct relabelling *map)
{
	assert_int_equal(a->nr_rates, b->nr_rates);
	for (size_t i = 0; i < a->nr_rates; i++) {
		const struct nrp_touch_rate *r = &a->rates[i], *s = NULL;

		for (size_t k = 0; k < b->nr_rates && !s; k++)
			if (b->rates[k].mm == r->mm && b->rates[k].vm_start == r->vm_start &&
			    b->rates[k].nid == map->nid[r->nid])
				s = &b->rates[k];
		if (!s)
			fail_msg("%s, %s: no rate of node %d", w->capture, w->copy, r->nid);
		if (s->touches != r->touches || s->address_spaces != r->address_spaces ||
		    s->borrowed != r->borrowed ||
		    !same_sum(s->armed_page_seconds, r->armed_page_seconds, 1) ||
		    !same_sum(s->remote_page_seconds, r->remote_page_seconds, 1) ||
		    !same_sum(s->rate, r->rate, 0) || !same_sum(s->lower, r->lower, 0) ||
		    !same_sum(s->upper, r->upper, 0))
			fail_msg("%s, %s, %s -> %s: rate of node %d, renumbered %d: %.17g, %.17g",
				 w->capture, w->copy, w->old_lane, w->new_lane, r->nid, s->nid,
				 r->rate, s->rate);
	}
}

static void assert_same_answers(const struct nrp_verify *a, const struct nrp_verify *b)
{
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->nr_checks, b->nr_checks);
	for (size_t i = 0; i < a->nr_checks; i++) {
		const struct nrp_verify_check *k = &a->check[i], *l = &b->check[i];

		assert_int_equal(k->chosen, l->chosen);
		assert_memory_equal(k->differ, l->differ, sizeof(k->differ));
		assert_memory_equal(k->moves, l->moves, sizeof(k->moves));
		assert_memory_equal(k->indistinguishable, l->indistinguishable,
				    sizeof(k->indistinguishable));
		assert_int_equal(k->quota, l->quota);
		assert_int_equal(k->quota_max, l->quota_max);
		for (size_t v = 0; v < k->nr_variants; v++) {
			assert_int_equal(k->variant[v].decisions, l->variant[v].decisions);
			assert_int_equal(k->variant[v].agree, l->variant[v].agree);
			assert_int_equal(k->variant[v].disagree, l->variant[v].disagree);
		}
	}
	for (size_t i = 0; i < a->nr_counters; i++)
		assert_int_equal(a->counter[i].trace, b->counter[i].trace);
}

#define NR_COPIES 2

static const struct {
	const char *old_lane, *new_lane, *set;
	bool wide; /* in the wider set only, for the sake of time */
} renumbered_lanes[] = {
	{ RL "none", RL "spin", "quota=256", false },  { "host", FILTER "4.18", NULL, true },
	{ "host", FILTER "4.19", NULL, true },         { "host", FILTER "6.1", NULL, false },
	{ RL "none", RL "trylock", "quota=16", true }, { "host", "off", NULL, false },
	{ "linux-4.18", "linux-6.12", NULL, true },    { "host", "linux-5.10", NULL, true },
};

/* One comparison on the capture and on its copies. */
static void assert_lanes_renumbered(const struct loaded *capture, size_t lanes,
				    const struct loaded *copies, int nr_copies,
				    const struct relabelling *maps)
{
	static const char *const names[NR_COPIES] = { "permuted", "spread" };
	const char *set = renumbered_lanes[lanes].set;
	struct compared a, b;

	null_compare(&a, capture, renumbered_lanes[lanes].old_lane,
		     renumbered_lanes[lanes].new_lane, set);
	for (int k = 0; k < nr_copies; k++) {
		struct what w = { capture->name, names[k], renumbered_lanes[lanes].old_lane,
				  renumbered_lanes[lanes].new_lane };

		null_compare(&b, &copies[k], w.old_lane, w.new_lane, set);
		assert_same_metrics(&w, &a.comparison, &b.comparison);
		assert_mirrored_rates(&w, &a.replay, &b.replay, &maps[k]);
		null_compared_clear(&b);
	}
	null_compared_clear(&a);
}

/*
 * Nodes in a circle (two change places); and, in the wider set, numbers with holes, in the other
 * order: the nodes between have neither CPUs nor memory.
 */
static void assert_renumbered(const struct loaded *capture)
{
	int nodes = capture->capture.facts.nr_nodes, nid[NR_COPIES][64];
	struct relabelling maps[NR_COPIES] = { { .nid = nid[0], .nr_nodes = nodes },
					       { .nid = nid[1], .nr_nodes = 2 * nodes } };
	int nr_copies = traces ? NR_COPIES : 1;
	struct loaded copies[NR_COPIES];

	assert_in_range(nodes, 1, 64);
	for (int n = 0; n < nodes; n++) {
		nid[0][n] = (n + 1) % nodes;
		nid[1][n] = 2 * (nodes - n) - 1;
	}
	for (int k = 0; k < nr_copies; k++) {
		relabel(&copies[k], capture, &maps[k], scratch);
		assert_same_answers(&capture->verify, &copies[k].verify);
	}
	for (size_t i = 0; i < sizeof(renumbered_lanes) / sizeof(renumbered_lanes[0]); i++)
		if (traces || !renumbered_lanes[i].wide)
			assert_lanes_renumbered(capture, i, copies, nr_copies, maps);
	for (int k = 0; k < nr_copies; k++)
		null_drop(&copies[k]);
}

static void test_numbers_of_nodes_do_not_matter(void **state)
{
	/* Of the shipped captures, for the sake of time, one of each sort. */
	static const char *const shipped[] = {
		"cowmix-4.18", "idle-5.10",   "limiter-spin-6.12",
		"mthp-6.12",   "munmap-6.12", "shared-5.10",
		"thp-4.18",    "thp-7.2",     "numa01-4.18-trylock",
	};

	(void)state;
	for (size_t i = 0; traces && i < null_count; i++)
		assert_renumbered(&null_captures[i]);
	for (size_t i = 0; !traces && i < sizeof(shipped) / sizeof(shipped[0]); i++) {
		struct loaded *capture = null_find(null_captures, null_count, shipped[i]);

		assert_non_null(capture);
		assert_renumbered(capture);
	}
}

/* ---- the captures ------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(scratch))
		return -1;
	if (traces) {
		null_load(&null_captures, &null_count, traces, "kernels/*/*.dat", scratch);
		null_load(&null_captures, &null_count, traces, "policy-pairs/*.dat", scratch);
		/* The only one with four nodes. */
		null_load(&null_captures, &null_count, traces, "big/*.dat", scratch);
	} else {
		null_load(&null_captures, &null_count, NRP_TEST_DATA, "*.dat", scratch);
	}
	print_message("%zu captures\n", null_count);
	return null_count ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	null_drop_all(null_captures, null_count);
	return rmdir(scratch);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host_against_itself),
		cmocka_unit_test(test_host_against_its_variants_by_name),
		cmocka_unit_test(test_off_against_off),
		cmocka_unit_test(test_lane_against_itself),
		cmocka_unit_test(test_numbers_of_nodes_do_not_matter),
		cmocka_unit_test(test_pages_end_where_the_last_record_left_them),
		cmocka_unit_test(test_moved_pages_are_the_sum_over_pairs_of_nodes),
		cmocka_unit_test(test_huge_pages_add_up_to_vmstat),
		cmocka_unit_test(test_thp_function_moves_512_pages),
	};

	traces = wide_folder(argc, argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
