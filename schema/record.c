/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The field lists of record.h as data, and the host facts. */
#include "numareplay/record.h"

#include <stdlib.h>
#include <string.h>

/* The field lists do not carry the kind's name, so each expansion names the struct it is in. */
#define FIELD(type_, name_, unit_, null_, source_)                                                 \
	{                                                                                          \
		.name = #name_,                                                                    \
		.type = NRP_T_##type_,                                                             \
		.offset = offsetof(ROW, name_),                                                    \
		.unit = unit_,                                                                     \
		.null = null_,                                                                     \
		.source = source_,                                                                 \
	},

#define ROW struct nrp_hint_fault
static const struct nrp_column hint_fault_columns[] = { NRP_HINT_FAULT_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_group_weight
static const struct nrp_column group_weight_columns[] = { NRP_GROUP_WEIGHT_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_scan_pass
static const struct nrp_column scan_pass_columns[] = { NRP_SCAN_PASS_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_scan_range
static const struct nrp_column scan_range_columns[] = { NRP_SCAN_RANGE_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_scan_skip
static const struct nrp_column scan_skip_columns[] = { NRP_SCAN_SKIP_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_migration
static const struct nrp_column migration_columns[] = { NRP_MIGRATION_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_migration_entry
static const struct nrp_column migration_entry_columns[] = { NRP_MIGRATION_ENTRY_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_ratelimit
static const struct nrp_column ratelimit_columns[] = { NRP_RATELIMIT_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_migration_wait
static const struct nrp_column migration_wait_columns[] = { NRP_MIGRATION_WAIT_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_task_move
static const struct nrp_column task_move_columns[] = { NRP_TASK_MOVE_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_preferred
static const struct nrp_column preferred_columns[] = { NRP_PREFERRED_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_task_life
static const struct nrp_column task_life_columns[] = { NRP_TASK_LIFE_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_lock
static const struct nrp_column lock_columns[] = { NRP_LOCK_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_munmap
static const struct nrp_column munmap_columns[] = { NRP_MUNMAP_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_mm_call
static const struct nrp_column mm_call_columns[] = { NRP_MM_CALL_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_page_fault
static const struct nrp_column page_fault_columns[] = { NRP_PAGE_FAULT_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_hugetlb
static const struct nrp_column hugetlb_columns[] = { NRP_HUGETLB_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_loss
static const struct nrp_column loss_columns[] = { NRP_LOSS_FIELDS(FIELD) };
#undef ROW
#define ROW struct nrp_memory_sample
static const struct nrp_column memory_sample_columns[] = { NRP_MEMORY_SAMPLE_FIELDS(FIELD) };
#undef ROW
#undef FIELD

/*
 * Columns that block minima and maxima come from: the tgid and up to three node ids. The order is
 * that of NRP_RECORD_KINDS, so that each macro below is picked up by name.
 */
#define NO_NID                                                                                     \
	{                                                                                          \
		-1, -1, -1                                                                         \
	}
#define TGID_hint_fault NRP_COL(hint_fault, tgid)
#define TGID_group_weight -1
#define TGID_scan_pass NRP_COL(scan_pass, tgid)
#define TGID_scan_range -1
#define TGID_scan_skip -1
#define TGID_migration -1
#define TGID_migration_entry -1
#define TGID_ratelimit -1
#define TGID_migration_wait -1
#define TGID_task_move NRP_COL(task_move, tgid)
#define TGID_preferred -1
#define TGID_task_life -1
#define TGID_lock -1
#define TGID_munmap -1
#define TGID_mm_call -1
#define TGID_page_fault -1
#define TGID_hugetlb -1
#define TGID_loss -1
#define TGID_memory_sample NRP_COL(memory_sample, tgid)

#define NID_hint_fault                                                                             \
	{                                                                                          \
		NRP_COL(hint_fault, src_nid), NRP_COL(hint_fault, this_nid),                       \
			NRP_COL(hint_fault, target_nid)                                            \
	}
#define NID_group_weight                                                                           \
	{                                                                                          \
		NRP_COL(group_weight, nid), -1, -1                                                 \
	}
#define NID_scan_pass                                                                              \
	{                                                                                          \
		NRP_COL(scan_pass, preferred_nid), -1, -1                                          \
	}
#define NID_scan_range NO_NID
#define NID_scan_skip NO_NID
#define NID_migration NO_NID
#define NID_migration_entry NO_NID
#define NID_ratelimit                                                                              \
	{                                                                                          \
		NRP_COL(ratelimit, dst_nid), -1, -1                                                \
	}
#define NID_migration_wait NO_NID
#define NID_task_move                                                                              \
	{                                                                                          \
		NRP_COL(task_move, src_nid), NRP_COL(task_move, dst_nid), -1                       \
	}
#define NID_preferred                                                                              \
	{                                                                                          \
		NRP_COL(preferred, nid), -1, -1                                                    \
	}
#define NID_task_life NO_NID
#define NID_lock NO_NID
#define NID_munmap NO_NID
#define NID_mm_call NO_NID
#define NID_page_fault NO_NID
#define NID_hugetlb NO_NID
#define NID_loss NO_NID
#define NID_memory_sample NO_NID

#define KIND(NAME, name_, doc_)                                                                    \
	[NRP_##NAME] = {                                                                           \
		.name = #name_,                                                                    \
		.doc = doc_,                                                                       \
		.row_size = sizeof(struct nrp_##name_),                                            \
		.nr_columns = NRP_NCOLS_##name_,                                                   \
		.columns = name_##_columns,                                                        \
		.tgid_column = TGID_##name_,                                                       \
		.nid_columns = NID_##name_,                                                        \
	},
static const struct nrp_kind kinds[NRP_NR_KINDS] = { NRP_RECORD_KINDS(KIND) };
#undef KIND

/* NULLs are bits of one u64, and every kind starts with its time. */
#define CHECK(NAME, name_, doc_)                                                                   \
	_Static_assert(NRP_NCOLS_##name_ <= 64, #name_ " has more fields than NULL bits");         \
	_Static_assert(NRP_COL(name_, time) == 0 && offsetof(struct nrp_##name_, null) == 0 &&     \
			       offsetof(struct nrp_##name_, time) == sizeof(uint64_t),             \
		       #name_ " does not start with its NULLs and time");
NRP_RECORD_KINDS(CHECK)
#undef CHECK

uint64_t nrp_column_value(const struct nrp_column *column, const void *row)
{
#define VALUE(type_)                                                                               \
	{                                                                                          \
		type_ v;                                                                           \
		memcpy(&v, (const uint8_t *)row + column->offset, sizeof(v));                      \
		return (uint64_t)v;                                                                \
	}
	switch (column->type) {
	case NRP_T_u8:
		VALUE(uint8_t)
	case NRP_T_u16:
		VALUE(uint16_t)
	case NRP_T_u32:
		VALUE(uint32_t)
	case NRP_T_u64:
		VALUE(uint64_t)
	case NRP_T_i8:
		VALUE(int8_t)
	case NRP_T_i16:
		VALUE(int16_t)
	case NRP_T_i32:
		VALUE(int32_t)
	case NRP_T_i64:
		VALUE(int64_t)
	}
#undef VALUE
	return 0;
}

const struct nrp_kind *nrp_kind(enum nrp_record_kind kind)
{
	if ((unsigned int)kind >= NRP_NR_KINDS)
		return NULL;
	return &kinds[kind];
}

void nrp_host_facts_init(struct nrp_host_facts *facts)
{
	*facts = (struct nrp_host_facts){
		.hz = -1,
		.page_size = -1,
		.huge_pages = -1,
		.cpupid_shift = -1,
		.cpupid_bits = -1,
		.nid_shift = -1,
		.balancing = -1,
		.scan_delay_ms = -1,
		.scan_period_min_ms = -1,
		.scan_period_max_ms = -1,
		.scan_size_mb = -1,
		.moved_result = -1,
	};
}

void nrp_host_facts_clear(struct nrp_host_facts *facts)
{
	if (!facts)
		return;
	free(facts->cpu_nid);
	free(facts->node_memkb);
	nrp_host_facts_init(facts);
}

int nrp_host_cpu_nid(const struct nrp_host_facts *facts, int cpu)
{
	if (!facts->cpu_nid || cpu < 0 || cpu >= facts->nr_cpus)
		return -1;
	return facts->cpu_nid[cpu];
}
