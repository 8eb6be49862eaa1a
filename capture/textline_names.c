/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names in the text of events: of events, of fields where they differ from the format's, of enums.
 */
#include "capture/textline_internal.h"

static const struct {
	const char *system;
	const char *name;
	const char *fields; /* "page, page_flags, .." */
} specs[NRP_NR_EVENTS] = {
#define EVENT_SPEC(NAME, system, name, ...) [NRP_EV_##NAME] = { #system, name, #__VA_ARGS__ },
	NRP_EVENTS(EVENT_SPEC)
#undef EVENT_SPEC
};

/* A word of the print format that is not the field's name, or hexadecimal without 0x. */
static const struct {
	enum nrp_event event;
	int field;
	const char *key; /* NULL: the field's name */
	bool hex;
} printed[] = {
	{ NRP_EV_MIGRATE_PAGES, NRP_EF_MIGRATE_PAGES_succeeded, "nr_succeeded", false },
	{ NRP_EV_MIGRATE_PAGES, NRP_EF_MIGRATE_PAGES_failed, "nr_failed", false },
	{ NRP_EV_MIGRATE_PAGES, NRP_EF_MIGRATE_PAGES_thp_succeeded, "nr_thp_succeeded", false },
	{ NRP_EV_MIGRATE_PAGES, NRP_EF_MIGRATE_PAGES_thp_failed, "nr_thp_failed", false },
	{ NRP_EV_MIGRATE_PAGES, NRP_EF_MIGRATE_PAGES_thp_split, "nr_thp_split", false },
	{ NRP_EV_MIGRATE_PAGES, NRP_EF_MIGRATE_PAGES_large_folio_split, "nr_split", false },
	{ NRP_EV_SKIP_VMA, NRP_EF_SKIP_VMA_numa_scan_offset, NULL, true },
	{ NRP_EV_SKIP_VMA, NRP_EF_SKIP_VMA_vm_start, NULL, true },
	{ NRP_EV_SKIP_VMA, NRP_EF_SKIP_VMA_vm_end, NULL, true },
	{ NRP_EV_SET_PTE, NRP_EF_SET_PTE_addr, NULL, true },
	{ NRP_EV_SET_PTE, NRP_EF_SET_PTE_pte, NULL, true },
	{ NRP_EV_REMOVE_PTE, NRP_EF_REMOVE_PTE_addr, NULL, true },
	{ NRP_EV_REMOVE_PTE, NRP_EF_REMOVE_PTE_pte, NULL, true },
	{ NRP_EV_SET_PMD, NRP_EF_SET_PMD_addr, NULL, true },
	{ NRP_EV_SET_PMD, NRP_EF_SET_PMD_pmd, NULL, true },
	{ NRP_EV_REMOVE_PMD, NRP_EF_REMOVE_PMD_addr, NULL, true },
	{ NRP_EV_REMOVE_PMD, NRP_EF_REMOVE_PMD_pmd, NULL, true },
	{ NRP_EV_FORK, NRP_EF_FORK_parent_pid, "pid", false },
	{ NRP_EV_LOCK_START, NRP_EF_LOCK_START_mm, NULL, true },
	{ NRP_EV_LOCK_RETURNED, NRP_EF_LOCK_RETURNED_mm, NULL, true },
	{ NRP_EV_LOCK_RELEASED, NRP_EF_LOCK_RELEASED_mm, NULL, true },
	{ NRP_EV_CONTENTION_BEGIN, NRP_EF_CONTENTION_BEGIN_lock_addr, NULL, true },
	{ NRP_EV_CONTENTION_END, NRP_EF_CONTENTION_END_lock_addr, NULL, true },
};

static const struct {
	enum nrp_event event;
	const char *key, *resume;
	int field;
} texts[] = {
	{ NRP_EV_RATELIMIT, "comm=", " pid=", -1 },
	{ NRP_EV_SKIP_CPUSET, "comm=", " pid=", -1 },
	{ NRP_EV_MIGRATE_TASK, "comm=", " pid=", -1 },
	{ NRP_EV_FORK, "comm=", " pid=", -1 },
	{ NRP_EV_EXEC, "filename=", " pid=", NRP_EF_EXEC_filename },
	{ NRP_EV_EXIT, "comm=", " pid=", NRP_EF_EXIT_comm },
	{ NRP_EV_LOCK_START, "memcg_path=", " write=", -1 },
	{ NRP_EV_LOCK_RETURNED, "memcg_path=", " write=", -1 },
	{ NRP_EV_LOCK_RELEASED, "memcg_path=", " write=", -1 },
};

/* Fields that hold less than 64 bits, by their names; of one event, or of all. */
static const struct {
	const char *field;
	enum nrp_text_limit limit;
	enum nrp_event event; /* NRP_EV_OTHER: all */
} limits[] = {
	{ "nid", NRP_TEXT_NODE, NRP_EV_OTHER },
	{ "src_nid", NRP_TEXT_NODE, NRP_EV_OTHER },
	{ "dst_nid", NRP_TEXT_NODE, NRP_EV_OTHER },
	{ "preferred_nid", NRP_TEXT_NODE, NRP_EV_OTHER },
	{ "allow", NRP_TEXT_8_BITS, NRP_EV_OTHER },
	{ "write", NRP_TEXT_8_BITS, NRP_EV_OTHER },
	{ "success", NRP_TEXT_8_BITS, NRP_EV_OTHER },
	{ "downgrade", NRP_TEXT_8_BITS, NRP_EV_OTHER },
	{ "flags", NRP_TEXT_8_BITS, NRP_EV_TASK_FAULT },
	{ "mode", NRP_TEXT_8_BITS, NRP_EV_MIGRATE_PAGES },
	{ "reason", NRP_TEXT_8_BITS, NRP_EV_MIGRATE_PAGES },
	{ "reason", NRP_TEXT_32_BITS, NRP_EV_HUGETLB_MOVED },
	{ "pages", NRP_TEXT_32_BITS, NRP_EV_TASK_FAULT },
	{ "ret", NRP_TEXT_32_BITS, NRP_EV_PREPARE_END },
	{ "ret", NRP_TEXT_32_BITS, NRP_EV_MIGRATE_END },
	{ "ret", NRP_TEXT_32_BITS, NRP_EV_THP_END },
	{ "ret", NRP_TEXT_32_BITS, NRP_EV_MUNMAP_END },
	{ "mapcount", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "refcount", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "last_cpupid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "order", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "scan_seq", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "mm_scan_seq", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "task_scan_seq", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "start_seq", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "prev_seq", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "scan_period", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "scan_period_max", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "mm_users", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "nr_threads", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "gid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "pid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "tgid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "ngid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "src_pid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "src_tgid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "src_ngid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "src_cpu", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "dst_pid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "dst_tgid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "dst_ngid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "dst_cpu", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "orig_cpu", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "dest_cpu", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "parent_pid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
	{ "child_pid", NRP_TEXT_32_BITS, NRP_EV_OTHER },
};

static enum nrp_text_limit limit_of(enum nrp_event event, const char *field, size_t size)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if ((limits[i].event == event || limits[i].event == NRP_EV_OTHER) &&
		    strlen(limits[i].field) == size && !memcmp(limits[i].field, field, size))
			return limits[i].limit;
	return NRP_TEXT_ANY;
}

static void set_key(struct nrp_text_key *key, const char *name, size_t size)
{
	if (size >= sizeof(key->name))
		size = sizeof(key->name) - 1;
	memcpy(key->name, name, size);
	key->size = (uint8_t)size;
}

static void init_event(struct nrp_text_event *e, enum nrp_event event)
{
	const char *list = specs[event].fields;

	e->system = specs[event].system;
	e->name = specs[event].name;
	e->name_size = (uint8_t)strlen(e->name);
	e->text_field = -1;
	for (int i = 0; i < NRP_MAX_EVENT_FIELDS && *list; i++) {
		size_t n = strcspn(list, ", ");

		set_key(&e->key[i], list, n);
		e->key[i].limit = (uint8_t)limit_of(event, list, n);
		list += n;
		list += strspn(list, ", ");
	}
}

static uint32_t hash_name(const char *p, size_t size)
{
	uint32_t h = (uint32_t)size;

	for (size_t i = 0; i < size; i++)
		h = h * 31 + (unsigned char)p[i];
	return (h ^ (h >> 8)) % NRP_TEXT_SLOTS;
}

void nrp_text_names_init(struct nrp_textline *t)
{
	for (int i = NRP_EV_OTHER + 1; i < NRP_NR_EVENTS; i++) {
		uint32_t h;

		init_event(&t->event[i], (enum nrp_event)i);
		h = hash_name(t->event[i].name, t->event[i].name_size);
		while (t->slot[h])
			h = (h + 1) % NRP_TEXT_SLOTS;
		t->slot[h] = (uint8_t)i;
	}
	for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]); i++) {
		struct nrp_text_key *key = &t->event[printed[i].event].key[printed[i].field];

		key->hex = printed[i].hex;
		if (printed[i].key)
			set_key(key, printed[i].key, strlen(printed[i].key));
	}
	for (int i = NRP_EV_ENTER_MMAP; i <= NRP_EV_EXIT_SHMDT; i += 2)
		for (int k = 0; k < NRP_MAX_EVENT_FIELDS; k++)
			t->event[i].key[k].hex = true;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct nrp_text_event *e = &t->event[texts[i].event];

		e->text_key = texts[i].key;
		e->resume = texts[i].resume;
		e->text_field = texts[i].field;
	}
}

enum nrp_event nrp_text_event_by_name(const struct nrp_textline *t, const char *system,
				      size_t system_size, const char *name, size_t name_size)
{
	for (uint32_t h = hash_name(name, name_size); t->slot[h]; h = (h + 1) % NRP_TEXT_SLOTS) {
		const struct nrp_text_event *e = &t->event[t->slot[h]];

		if (e->name_size != name_size || memcmp(e->name, name, name_size) != 0)
			continue;
		if (system_size && (strlen(e->system) != system_size ||
				    memcmp(e->system, system, system_size) != 0))
			return NRP_EV_OTHER;
		return (enum nrp_event)t->slot[h];
	}
	return NRP_EV_OTHER;
}

bool nrp_text_enum(const char *p, size_t size, uint64_t *ret)
{
	/* enum migrate_mode and enum migrate_reason keep their numbers; 6 was renamed. */
	static const struct {
		const char *name;
		uint8_t value;
	} known[] = {
		{ "MIGRATE_ASYNC", 0 },
		{ "MIGRATE_SYNC_LIGHT", 1 },
		{ "MIGRATE_SYNC", 2 },
		{ "compaction", 0 },
		{ "memory_failure", 1 },
		{ "memory_hotplug", 2 },
		{ "syscall_or_cpuset", 3 },
		{ "mempolicy_mbind", 4 },
		{ "numa_misplaced", 5 },
		{ "contig_range", 6 },
		{ "cma", 6 },
		{ "longterm_pin", 7 },
		{ "demotion", 8 },
		{ "damon", 9 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].name) == size && !memcmp(known[i].name, p, size)) {
			*ret = known[i].value;
			return true;
		}
	}
	return false;
}
