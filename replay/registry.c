/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct nrp_family families[NRP_NR_FAMILIES] = {
	[NRP_FAMILY_SCAN_VMA] = {
		.name = "scan.vma",
		.doc = "which VMAs a scan pass visits",
		.source = "task_numa_work(), vma_is_accessed()",
		.verified = true,
		.replayed = true,
		.variant = {
			{ "P0", "up to 6.3", "-", "every eligible VMA in address order" },
			{ "P1", "6.4 - 6.6", "ef6a22b70f6d, fc137c0ddab2, 20f586486b87",
			  "new VMAs wait; later only VMAs that the scanning thread accessed" },
			{ "P2", "6.7 - 6.11", "b7a5b537c55c, f169c62ff7cd, 84db47ca7146",
			  "P1 + partly scanned VMAs go on, one inactive VMA is forced per round" },
			{ "P3", "6.12 - 6.15", "f22cde4371f3",
			  "P2 + a VMA left out for nr_threads rounds is scanned" },
			{ "P4", "6.16 and later", "1f6c6ac03db4",
			  "P3 + no scan for tasks bound to one memory node" },
		},
		.param = {
			{ "delay", "0 or 1", "1", "P1+: new VMAs wait for the scan delay", 0, 1 },
			{ "pid", "0 or 1", "1", "P1+: leave out VMAs that the thread did not access",
			  0, 1 },
			{ "partial", "0 or 1", "1", "P2+: go on with a partly scanned VMA", 0, 1 },
			{ "forced", "0 or 1", "1", "P2+: one inactive VMA is scanned per round", 0,
			  1 },
			{ "stale", "0 or 1", "1",
			  "P3+: scan what was left out for nr_threads rounds", 0, 1 },
			{ "seq_completed", "0 or 1", "1", "P2+: no VMA twice in one round", 0, 1 },
			{ "start_seq", "0 or 1", "1",
			  "P2+: a VMA's first two rounds count from its first visit", 0, 1 },
			{ "cpuset", "0 or 1", "1", "P4: none for tasks bound to one node", 0, 1 },
		},
	},
	[NRP_FAMILY_SCAN_PTE] = {
		.name = "scan.pte",
		.doc = "which pages of a visited VMA are armed",
		.source = "change_pte_range()",
		.replayed = true,
		.variant = {
			{ "F0", "up to 4.15", "-", "shared copy-on-write pages too" },
			{ "F1", "4.16 - 5.16", "859d4adc3415", "not those with mapcount above 1" },
			{ "F2", "5.17 - 6.9", "80d47f5de5e3", "not those with refcount above 1" },
			{ "F3", "6.10 - 6.14", "mTHP NUMA balancing series",
			  "not those that are pinned or likely shared" },
			{ "F4", "6.15 - 6.18", "003fde4492c8",
			  "not those that are pinned or maybe shared" },
			{ "F5", "6.19 and later", "folio_can_map_prot_numa series",
			  "F4, pinned pages of any mapping, huge PMDs too" },
		},
		.param = {
			{ "cow", "0 or 1", "1", "F1+: the variant's test of shared copy-on-write pages",
			  0, 1 },
			{ "dirty", "0 or 1", "1", "F1+: not dirty pages of files", 0, 1 },
			{ "local", "0 or 1", "1",
			  "not pages that a single-threaded process has on its own node", 0, 1 },
			{ "device", "0 or 1", "1", "F2+: not pages of devices", 0, 1 },
			{ "tier", "0 or 1", "1",
			  "F2+: not the top tier, if only tiers are balanced", 0, 1 },
			{ "pinned", "0 or 1", "1",
			  "F3+: not pinned pages (up to F4 copy-on-write ones)", 0, 1 },
		},
	},
	[NRP_FAMILY_SCAN_SHMEM] = {
		.name = "scan.shmem",
		.doc = "whether shared memory without a policy is scanned",
		.source = "vma_policy_mof()",
		.replayed = true,
		.variant = {
			{ "SH0", "up to 7.1", "-", "never" },
			{ "SH1", "7.2 and later", "mempolicy fix of 2026-06-29", "like other VMAs" },
		},
	},
	[NRP_FAMILY_SCAN_RESET] = {
		.name = "scan.reset",
		.doc = "when a task's move resets its scan period",
		.source = "migrate_task_rq_fair(), numa_migrate_preferred()",
		.verified = true,
		.replayed = true,
		.variant = {
			{ "S418", "up to 4.18", "-", "on each placement attempt, moved or not" },
			{ "S_ALL", "never released alone", "3rd patch of the 2018 series",
			  "on each move across nodes" },
			{ "S_LIM", "4.19 and later", "4th patch of the 2018 series",
			  "on moves away from the preferred node" },
		},
	},
	[NRP_FAMILY_MIGRATE_FILTER] = {
		.name = "migrate.filter",
		.doc = "whether a fault may pull its page to the faulting node",
		.source = "should_numa_migrate_memory()",
		.verified = true,
		.replayed = true,
		.variant = {
			{ "4.18", "up to 4.18", "-",
			  "two faults of one task or node in a row, then the group's weights" },
			{ "4.19", "4.19 - 5.10", "37355bdc5a12",
			  "4.18 + young tasks pull untouched or own pages at once" },
			{ "6.1", "about 5.13 - 6.10", "mpol_misplaced early return",
			  "4.19, but local faults leave no mark on the page; tier rules" },
			{ "6.12", "6.11 and later", "-", "6.1 + never to a node without memory" },
		},
	},
	[NRP_FAMILY_MIGRATE_RATELIMIT] = {
		.name = "migrate.ratelimit",
		.doc = "how many pages one node may receive per window",
		.source = "numamigrate_update_ratelimit()",
		.verified = true,
		.replayed = true,
		.variant = {
			{ "spin", "about 3.14 - 4.18", "-",
			  "spin lock; a window of I+1 ticks opens at the first attempt after the last" },
			{ "trylock", "never released", "2018 trylock patch, v2",
			  "trylock; windows of I ticks on a fixed grid" },
			{ "spin-grid", "never released", "spin lock with the grid of trylock",
			  "spin lock; windows of I ticks on a fixed grid" },
			{ "trylock-stretch", "never released", "2018 trylock patch, v1",
			  "trylock; a window of I+1 ticks opens at the first attempt" },
			{ "none", "4.19 and later", "efaffc5e40ae", "no limit" },
		},
		.param = {
			{ "quota", "pages", "128 MiB in pages (4 KiB pages: 32768)",
			  "an attempt is refused when more pages are charged already", 0,
			  UINT64_C(1) << 40 },
			{ "interval", "ms", "100", "length of a window, rounded up to ticks", 1,
			  10000 },
		},
	},
	[NRP_FAMILY_MUNMAP_LOCK] = {
		.name = "munmap.lock",
		.doc = "how mmap_lock is held through an unmap",
		.source = "__do_munmap(), do_vmi_munmap()",
		.verified = true,
		.replayed = true,
		.variant = {
			{ "write", "up to 4.19", "-", "for write throughout" },
			{ "sections", "never released", "2018 RFC v1", "released between 1 GiB sections" },
			{ "two-phase", "never released", "2018 RFC v2, as designed",
			  "pages go under the read lock, VMAs under the write lock" },
			{ "two-phase-as-posted", "never released", "2018 RFC v2, literal",
			  "the early path is never reached: as write" },
			{ "two-phase-dead", "never released", "2018 RFC v3", "VMAs marked dead first" },
			{ "downgrade", "4.20 and later", "dd2283f2605e",
			  "VMAs detached for write, pages freed after a downgrade to read" },
		},
		.param = {
			{ "threshold", "bytes", "1 GiB", "sections: their length; two-phase: least length",
			  4096, UINT64_C(1) << 60 },
			{ "resched", "0 or 1", "1",
			  "sections: the task should yield whenever others wait", 0, 1 },
			{ "discipline", "0 or 1", "1",
			  "1: all waiting readers get the lock together (5.3+); 0: up to a writer", 0, 1 },
			{ "vma_locks", "0 or 1", "0, or the host's",
			  "faults of user mode take the lock of their VMA (6.4+)", 0, 1 },
			{ "wspin_ns", "ns", "0", "a writer spins so long before it waits in line", 0,
			  1000000000 },
			{ "handoff_ns", "ns", "0", "from a release until a waiter runs", 0, 1000000000 },
			{ "closed", "0 or 1", "0",
			  "1: a thread's next request comes its think time after the last", 0, 1 },
			{ "mbind_moves", "0 or 1", "1, as on record",
			  "0: mbind() has released the lock when it moves pages (6.7+)", 0, 1 },
		},
	},
	[NRP_FAMILY_HUGETLB_COUNT] = {
		.name = "hugetlb.count",
		.doc = "how a hugetlb page with a shared page table is counted",
		.source = "page_mapcount(), huge_pmd_share()",
		.verified = true,
		.replayed = true,
		.variant = {
			{ "mapcount", "up to 6.1", "-", "mapcount alone" },
			{ "pmd-check", "6.2 - 6.12", "3489dbb696d2, 73bdf65ea748",
			  "mapcount and whether the PMD page is shared" },
			{ "adjusted", "never released", "2023 patch",
			  "counts adjusted at each share and unshare" },
			{ "pt-share-count", "6.13 and later, stable", "59d9094df3d7",
			  "a counter of its own in the page table" },
			{ "actual", "-", "ground truth", "processes that really map the page" },
		},
	},
	[NRP_FAMILY_TIERING_PROMOTE] = {
		.name = "tiering.promote",
		.doc = "whether a fault on a slow node promotes its page",
		.source = "should_numa_migrate_memory(), numa_promotion_rate_limit()",
		.replayed = true,
		.variant = {
			{ "static", "-", "6.1 without the adjustment",
			  "pages touched within the hot threshold, up to the rate limit" },
			{ "6.1", "about 5.18 - 7.1", "33024536bafd, c6833e10008f, c959924b0dc5",
			  "static + the threshold follows the number of candidates" },
			{ "7.2", "6.18 and later", "-",
			  "6.1 + promotions into free memory are counted" },
		},
		.param = {
			{ "hot_threshold_ms", "ms", "1000", "age up to which a page is hot", 1, 60000 },
			{ "rate_limit_mbps", "MB/s", "65536, or the host's",
			  "promotions per second and target node", 0, 1 << 24 },
		},
	},
	[NRP_FAMILY_TASK_CLAIM] = {
		.name = "task.claim",
		.doc = "whether a task move claims its CPU, so that no other task picks it",
		.source = "task_numa_assign(), numa_migrate_on",
		.replayed = true,
		.variant = {
			{ "none", "up to 4.18", "-", "several tasks may pick one CPU" },
			{ "claim", "4.19 and later", "1st patch of the 2018 series",
			  "the second one must pick another CPU, or stay" },
		},
	},
	[NRP_FAMILY_MIGRATE_OUTCOME] = {
		.name = "migrate.outcome",
		.doc = "what an attempt must pass before its page moves, and what is counted",
		.source = "migrate_misplaced_page(), migrate_misplaced_folio(_prepare)()",
		.verified = true,
		.replayed = true,
		.variant = {
			{ "4.18", "up to 4.18", "-", "limiter behind the file checks; huge pages apart" },
			{ "5.10", "4.19 - 5.13", "-", "4.18 without limiter" },
			{ "6.1", "5.14 - 6.10", "-",
			  "huge pages like others, unless several processes map them" },
			{ "6.12", "6.11 and later", "-", "a prepare step; shared huge pages move, too" },
		},
	},
	[NRP_FAMILY_SCAN_PERIOD] = {
		.name = "scan.period",
		.doc = "how often a task scans; compared with --cadence modelled",
		.source = "task_scan_min(), update_task_scan_period(), task_numa_placement()",
		.verified = true,
		.replayed = true,
		.variant = {
			{ "4.18", "4.14 - 4.18", "b5dd77c8bdad, 37ec97deb3a8",
			  "a task adapts its period at its first fault in a new sequence" },
			{ "4.19", "4.19 and later", "task_numa_fault() of 4.19",
			  "4.18 + only past the time to try the preferred node again" },
		},
		.param = {
			{ "adapt", "0 or 1", "1", "periods adapt to faults", 0, 1 },
			{ "empty", "0 or 1", "1",
			  "without local or shared faults the period doubles", 0, 1 },
			{ "failed", "0 or 1", "1", "failed migrations double the period", 0, 1 },
			{ "sticky", "0 or 1", "1", "one failure doubles it for good", 0, 1 },
		},
	},
};

/*
 * Columns in the order of enum nrp_family_id: vma pte shmem reset filter ratelimit munmap hugetlb
 * tiering claim outcome period.
 */
static const struct nrp_profile profiles[] = {
	{ "linux-4.15", { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "linux-4.18", { 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "linux-4.19", { 0, 1, 0, 2, 1, 4, 0, 0, 0, 1, 1, 1 } },
	{ "linux-5.10", { 0, 1, 0, 2, 1, 4, 5, 0, 0, 1, 1, 1 } },
	{ "linux-6.1", { 0, 2, 0, 2, 2, 4, 5, 0, 1, 1, 2, 1 } },
	{ "linux-6.4", { 1, 2, 0, 2, 2, 4, 5, 1, 1, 1, 2, 1 } },
	{ "linux-6.8", { 2, 2, 0, 2, 2, 4, 5, 1, 1, 1, 2, 1 } },
	{ "linux-6.12", { 3, 3, 0, 2, 3, 4, 5, 1, 1, 1, 3, 1 } },
	{ "linux-7.2", { 4, 5, 1, 2, 3, 4, 5, 3, 2, 1, 3, 1 } },
	{ "rhel-8", { 0, 1, 0, 2, 1, 4, 5, 0, 0, 1, 1, 1 } },
};

const struct nrp_param nrp_global_param[] = {
	{ "hz", "ticks/s", "from the capture", "tick rate, where the capture does not show it", 24,
	  20000 },
	{ "scan.period_min_ms", "ms", "the host's", "shortest scan period of one window", 1,
	  3600000 },
	{ "scan.period_max_ms", "ms", "the host's", "longest scan period of one window", 1,
	  3600000 },
	{ "scan.size_mb", "MB", "the host's", "what one scan pass covers: a window", 1, 65536 },
	{ "scan.delay_ms", "ms", "the host's", "before the first scan of a task or a VMA", 0,
	  3600000 },
	{ NULL, NULL, NULL, NULL, 0, 0 },
};

const struct nrp_family *nrp_family(enum nrp_family_id id)
{
	return &families[id];
}

size_t nrp_nr_profiles(void)
{
	return sizeof(profiles) / sizeof(profiles[0]);
}

const struct nrp_profile *nrp_profile(size_t i)
{
	return &profiles[i];
}

/* ---- names in error messages -------------------------------------------------------- */

static void append(char *list, size_t size, const char *name)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? " " : "", name);
}

static int unknown_family(const char *name, struct nrp_error *err)
{
	char list[256] = "";

	for (int i = 0; i < NRP_NR_FAMILIES; i++)
		append(list, sizeof(list), families[i].name);
	return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "see numareplay policies",
			"no policy family '%s' (there are: %s)", name, list);
}

static int unknown_variant(int family, const char *name, struct nrp_error *err)
{
	char list[256] = "";

	for (size_t i = 0; families[family].variant[i].name; i++)
		append(list, sizeof(list), families[family].variant[i].name);
	return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "see numareplay policies",
			"%s has no variant '%s' (there are: %s)", families[family].name, name,
			list);
}

static int unknown_profile(const char *name, struct nrp_error *err)
{
	char list[256] = "host off";

	for (size_t i = 0; i < nrp_nr_profiles(); i++)
		append(list, sizeof(list), profiles[i].name);
	return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "see numareplay policies",
			"no profile '%s' (there are: %s)", name, list);
}

/* ---- lanes -------------------------------------------------------------------------- */

static int find_family(const char *name)
{
	for (int i = 0; i < NRP_NR_FAMILIES; i++)
		if (!strcmp(families[i].name, name))
			return i;
	return -1;
}

static int choose_variant(struct nrp_lane_spec *lane, char *family_name, const char *variant,
			  struct nrp_error *err)
{
	int family = find_family(family_name);

	if (family < 0)
		return unknown_family(family_name, err);
	if (!strcmp(variant, "host")) {
		lane->variant[family] = NRP_HOST_VARIANT;
		return 0;
	}
	for (int8_t i = 0; families[family].variant[i].name; i++) {
		if (!strcmp(families[family].variant[i].name, variant)) {
			lane->variant[family] = i;
			return 0;
		}
	}
	return unknown_variant(family, variant, err);
}

static int choose_profile(struct nrp_lane_spec *lane, const char *name, struct nrp_error *err)
{
	if (!strcmp(name, "host"))
		return 0;
	if (!strcmp(name, "off")) {
		lane->off = true;
		return 0;
	}
	for (size_t i = 0; i < nrp_nr_profiles(); i++) {
		if (!strcmp(profiles[i].name, name)) {
			memcpy(lane->variant, profiles[i].variant, sizeof(lane->variant));
			lane->profile = true;
			return 0;
		}
	}
	return unknown_profile(name, err);
}

int nrp_lane_parse(struct nrp_lane_spec *ret, const char *text, struct nrp_error *err)
{
	struct nrp_lane_spec lane = { .off = false };
	char copy[sizeof(lane.name)];
	char *rest = copy, *part;
	bool first = true;

	if (strlen(text) >= sizeof(copy) || !*text)
		return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1, "see numareplay policies",
				*text ? "the policy's text is too long" : "empty policy");
	strcpy(lane.name, text);
	strcpy(copy, text);
	memset(lane.variant, NRP_HOST_VARIANT, sizeof(lane.variant));
	while ((part = strsep(&rest, ","))) {
		char *equals = strchr(part, '=');
		int r;

		if (equals && !strcmp(part, "balancing=off") && first) {
			r = choose_profile(&lane, "off", err);
		} else if (equals) {
			*equals = '\0';
			r = choose_variant(&lane, part, equals + 1, err);
		} else if (first) {
			r = choose_profile(&lane, part, err);
		} else {
			r = nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1,
				     "write [PROFILE,]FAMILY=VARIANT[,..]",
				     "'%s' is not FAMILY=VARIANT", part);
		}
		if (r < 0)
			return r;
		first = false;
	}
	*ret = lane;
	return 0;
}

static const struct nrp_param *find_param(const struct nrp_param *list, const char *name)
{
	for (; list->name; list++)
		if (!strcmp(list->name, name))
			return list;
	return NULL;
}

/* Splits NAME into family and parameter; a bare parameter must belong to one family only. */
static const struct nrp_param *resolve_param(const char *name, int *ret_family)
{
	const char *dot = strrchr(name, '.');
	const struct nrp_param *found;

	*ret_family = -1;
	found = find_param(nrp_global_param, name);
	if (dot && !found) {
		char family[64];

		snprintf(family, sizeof(family), "%.*s", (int)(dot - name), name);
		*ret_family = find_family(family);
		return *ret_family < 0 ? NULL : find_param(families[*ret_family].param, dot + 1);
	}
	for (int i = 0; !dot && i < NRP_NR_FAMILIES; i++) {
		const struct nrp_param *p = find_param(families[i].param, name);

		if (p && found)
			return NULL; /* ambiguous */
		if (p) {
			found = p;
			*ret_family = i;
		}
	}
	return found;
}

static int put(struct nrp_lane_spec *lane, int family, const char *name, uint64_t value,
	       struct nrp_error *err)
{
	size_t i = 0;

	while (i < lane->nr_set &&
	       (lane->set[i].family != family || strcmp(lane->set[i].name, name) != 0))
		i++;
	if (i == NRP_MAX_SETTINGS)
		return nrp_fail(err, NRP_USAGE, -E2BIG, NULL, -1, NULL, "too many --set options");
	lane->set[i].family = (int8_t)family;
	snprintf(lane->set[i].name, sizeof(lane->set[i].name), "%s", name);
	lane->set[i].value = value;
	if (i == lane->nr_set)
		lane->nr_set++;
	return 0;
}

int nrp_lane_set(struct nrp_lane_spec *old_lane, struct nrp_lane_spec *new_lane, const char *text,
		 struct nrp_error *err)
{
	bool to_old = strncmp(text, "new:", 4) != 0, to_new = strncmp(text, "old:", 4) != 0;
	const char *name = to_old && to_new ? text : text + 4;
	const char *equals = strchr(name, '=');
	const struct nrp_param *param;
	char key[96], *end;
	uint64_t value;
	int family, r = 0;

	if (!equals || (size_t)(equals - name) >= sizeof(key))
		return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1,
				"write --set [old:|new:]FAMILY.PARAM=VALUE", "'%s' has no '='",
				text);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - name), name);
	param = resolve_param(key, &family);
	if (!param)
		return nrp_fail(err, NRP_USAGE, -EINVAL, NULL, -1,
				"see numareplay policies for all parameters", "no parameter '%s'",
				key);
	errno = 0;
	value = strtoull(equals + 1, &end, 10);
	if (errno || !isdigit((unsigned char)equals[1]) || *end || value < param->min ||
	    value > param->max)
		return nrp_fail(err, NRP_USAGE, -ERANGE, NULL, -1, NULL,
				"%s takes a number of %s from %llu to %llu, not '%s'", key,
				param->unit, (unsigned long long)param->min,
				(unsigned long long)param->max, equals + 1);
	if (to_old)
		r = put(old_lane, family, param->name, value, err);
	if (r == 0 && to_new)
		r = put(new_lane, family, param->name, value, err);
	return r;
}

uint64_t nrp_lane_get(const struct nrp_lane_spec *lane, int family, const char *name,
		      uint64_t missing)
{
	for (size_t i = 0; i < lane->nr_set; i++)
		if (lane->set[i].family == family && !strcmp(lane->set[i].name, name))
			return lane->set[i].value;
	return missing;
}

bool nrp_lane_sets_periods(const struct nrp_lane_spec *lane)
{
	for (size_t i = 0; i < lane->nr_set; i++)
		if (lane->set[i].family == NRP_FAMILY_SCAN_PERIOD ||
		    (lane->set[i].family < 0 && !strncmp(lane->set[i].name, "scan.period_", 12)))
			return true;
	return false;
}
