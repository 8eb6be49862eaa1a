/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes on lanes that count hugetlb pages differently. */
#include "analysis/compare_internal.h"

#define ULL(x) ((unsigned long long)(x))
#define INT(x) ((json_int_t)(x))
#define MIB(x) ((double)(x) / 1048576)
#define LISTED 16 /* mappings in a note */

static const struct nrp_hugetlb_result *result(const struct nrp_replay *r, int i)
{
	return r->lane[i].own_hugetlb ? &r->lane[i].hugetlb : &r->hugetlb_record;
}

static json_t *of_vma(const struct nrp_hugetlb_vma *old, const struct nrp_hugetlb_vma *new)
{
	return json_pack("{s:I,s:I,s:I,s:i,s:I,s:I,s:I,s:I,s:I,s:I}", "mm", INT(old->mm), "start",
			 INT(old->start), "end", INT(old->end), "tid", old->tid, "private_old",
			 INT(old->private), "shared_old", INT(old->shared), "private_new",
			 INT(new->private), "shared_new", INT(new->shared), "private_actual",
			 INT(new->actual_private), "shared_actual", INT(new->actual_shared));
}

/* What smaps says of each mapping when it says most, and what it should say. */
static void smaps_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_hugetlb_result *a = result(r, 0), *b = result(r, 1);
	json_t *list = json_array();

	for (size_t i = 0; i < a->nr_vmas && i < b->nr_vmas && i < LISTED; i++)
		json_array_append_new(list, of_vma(&a->vma[i], &b->vma[i]));
	nrp_comparison_note(c, "hugetlb_smaps",
			    json_pack("{s:I,s:o}", "mappings", INT(a->nr_vmas), "smaps", list),
			    "smaps of %llu hugetlb mappings, when it says most of each: private "
			    "%.0f MiB, shared "
			    "%.0f MiB (old); private %.0f MiB, shared %.0f MiB (new); by the "
			    "processes that can "
			    "reach the pages private %.0f MiB, shared %.0f MiB",
			    ULL(a->nr_vmas), MIB(a->private), MIB(a->shared), MIB(b->private),
			    MIB(b->shared), MIB(b->actual_private), MIB(b->actual_shared));
}

/* The work that counting every sharer would have been, and how often tables come to be shared. */
static void work_note(struct nrp_comparison *c, const struct nrp_replay *r)
{
	const struct nrp_hugetlb_result *b = result(r, 1);
	double s = (double)b->ns * 1e-9;

	nrp_comparison_note(
		c, "hugetlb_count_work",
		json_pack("{s:I,s:I,s:I,s:I,s:I,s:f,s:f}", "shares", INT(b->work.shares),
			  "unshares", INT(b->work.unshares), "entries", INT(b->work.entries),
			  "page_updates", INT(b->work.updates), "installs", INT(b->work.installs),
			  "shares_per_second", s > 0 ? (double)b->work.shares / s : 0.0,
			  "unshares_per_second", s > 0 ? (double)b->work.unshares / s : 0.0),
		"new lane: tables come into use by one address space more %llu times, and out of "
		"it "
		"%llu times while others use them, in %.3f s: to count each user (adjusted) looks "
		"at "
		"%llu entries then and changes two counts of %llu pages, and of %llu pages more "
		"that "
		"come into shared tables; what that costs in time is not known here",
		ULL(b->work.shares), ULL(b->work.unshares), s, ULL(b->work.entries),
		ULL(b->work.updates), ULL(b->work.installs));
}

/* Uses of the pages taken that are remote wherever they are, if all users use them alike. */
static json_t *remote_by_node(const struct nrp_hugetlb_result *h, int nr_nodes)
{
	struct nrp_hugetlb_user users[NRP_HUGETLB_NODES];
	json_t *list = json_array();

	for (int nid = 0; nid < NRP_HUGETLB_NODES; nid++)
		users[nid] = (struct nrp_hugetlb_user){ nid, h->users[nid] };
	for (int nid = 0; nid < nr_nodes && nid < NRP_HUGETLB_NODES; nid++)
		json_array_append_new(
			list, json_integer(INT(nrp_hugetlb_remote(users, NRP_HUGETLB_NODES, nid))));
	return list;
}

static void moves_note(struct nrp_comparison *c, const struct nrp_replay *r, int nr_nodes)
{
	const struct nrp_hugetlb_result *a = result(r, 0), *b = result(r, 1);
	uint64_t users = 0;

	for (int nid = 0; nid <= NRP_HUGETLB_NODES; nid++)
		users += a->users[nid] + b->users[nid];
	nrp_comparison_note(c, "hugetlb_moves",
			    json_pack("{s:I,s:I,s:I,s:I,s:o,s:o}", "isolated_old",
				      INT(a->isolated.value), "isolated_new",
				      INT(b->isolated.value), "left_old", INT(a->left_by_moves),
				      "left_new", INT(b->left_by_moves), "remote_if_on_node_old",
				      remote_by_node(a, nr_nodes), "remote_if_on_node_new",
				      remote_by_node(b, nr_nodes)),
			    "walks that may move pages take %llu (old) and %llu (new) huge pages, "
			    "and %llu and %llu "
			    "slots lose a shared table by it, whose pages their owners have to "
			    "fault in again; each "
			    "user of a page counts alike, as accesses are not on record: "
			    "remote_if_on_node says "
			    "how many of %llu uses are remote with the pages on a node (modelled)",
			    ULL(a->isolated.value), ULL(b->isolated.value), ULL(a->left_by_moves),
			    ULL(b->left_by_moves), ULL(users));
}

void nrp_add_hugetlb_notes(struct nrp_comparison *c, const struct nrp_replay *r, int nr_nodes)
{
	if (!r->differs[NRP_FAMILY_HUGETLB_COUNT] || r->lane[0].off || r->lane[1].off)
		return;
	if (r->hugetlb_host < 0) {
		nrp_comparison_note(
			c, "hugetlb_not_recorded", NULL,
			"hugetlb.count: no walk over hugetlb pages is on record whose "
			"tables are known: record hugetlb faults, huge_pte_alloc() and the "
			"walks of mbind() from before the mappings are made");
		return;
	}
	smaps_note(c, r);
	moves_note(c, r, nr_nodes);
	work_note(c, r);
}
