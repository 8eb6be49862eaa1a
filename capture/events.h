/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events that become records, resolved by system, name and field name against the formats
 * stored with the data. Positions and kernel versions play no part.
 */
#ifndef NRP_EVENTS_H
#define NRP_EVENTS_H

#include "capture/tracefile.h"
#include "numareplay/record.h"

#include <string.h>

/* clang-format off: the lists below are tables */
/*
 * E(NAME, system, "event", field, ..): one line per event. Fields may be absent from a format.
 * The group "numareplay" holds the dynamic probes.
 */
#define NRP_EVENTS(E)                                                                              \
	E(FAULT_BEGIN, numareplay, "fault_begin", page, page_flags, mapcount, refcount, addr, vma, \
	  vm_start, vm_end, vm_flags, mm)                                                          \
	E(FAULT_TARGET, numareplay, "fault_target", nid)                                           \
	E(FILTER_BEGIN, numareplay, "filter_begin", page, src_nid, dst_cpu, pid, preferred_nid,    \
	  scan_seq, scan_period, group, gid, faults, f0)                                           \
	E(FILTER_END, numareplay, "filter_end", allow)                                             \
	E(PREPARE_BEGIN, numareplay, "prepare_begin", page, nid, jiffies)                          \
	E(PREPARE_END, numareplay, "prepare_end", ret)                                             \
	E(MIGRATE_BEGIN, numareplay, "migrate_begin", page, nid, jiffies)                          \
	E(MIGRATE_END, numareplay, "migrate_end", ret)                                             \
	E(THP_BEGIN, numareplay, "thp_begin", addr, page, nid, jiffies)                            \
	E(THP_END, numareplay, "thp_end", ret)                                                     \
	E(TASK_FAULT, numareplay, "task_fault", last_cpupid, nid, pages, flags)                    \
	E(SCAN_BEGIN, numareplay, "scan_begin", jiffies, mm, mm_scan_seq, scan_offset, next_scan,  \
	  mm_users, nr_threads, scan_period, scan_period_max, task_scan_seq, preferred_nid)        \
	E(SCAN_END, numareplay, "scan_end", jiffies)                                               \
	E(RANGE_BEGIN, numareplay, "range_begin", vma, start, end, vm_start, vm_end, vm_flags, mm, \
	  mm_scan_seq, scan_offset, next_scan, pids_reset, pids0, pids1, start_seq, prev_seq)      \
	E(RANGE_END, numareplay, "range_end", pages)                                               \
	E(MIGRATION_WAIT, numareplay, "migration_wait", mm, addr)                                  \
	E(MIGRATION_WAIT_END, numareplay, "migration_wait_end", none)                              \
	E(PREFERRED, numareplay, "preferred", pid, nid)                                            \
	E(MUNMAP_BEGIN, numareplay, "munmap_begin", mm, start, len, downgrade)                     \
	E(MUNMAP_ZAP, numareplay, "munmap_zap", none)                                              \
	E(MUNMAP_PGTABLES, numareplay, "munmap_pgtables", none)                                    \
	E(MUNMAP_FLUSHED, numareplay, "munmap_flushed", none)                                      \
	E(MUNMAP_END, numareplay, "munmap_end", ret)                                               \
	E(MMAP_DOWNGRADE, numareplay, "mmap_downgrade", sem)                                       \
	E(HUGETLB_FAULT, numareplay, "hugetlb_fault", mm, vma, addr, vm_start, vm_end, vm_flags)   \
	E(HUGETLB_FAULT_END, numareplay, "hugetlb_fault_end", ret)                                 \
	E(HUGETLB_PTE_ALLOC, numareplay, "hugetlb_pte_alloc", mm, addr, size)                      \
	E(HUGETLB_PTE, numareplay, "hugetlb_pte", pte)                                             \
	E(HUGETLB_SHARE, numareplay, "hugetlb_share", none)                                        \
	E(HUGETLB_UNSHARE, numareplay, "hugetlb_unshare", dropped)                                 \
	E(HUGETLB_QUEUE, numareplay, "hugetlb_queue", pte, entry, addr)                            \
	E(HUGETLB_ISOLATE, numareplay, "hugetlb_isolate", page, mapcount)                          \
	E(HUGETLB_ISOLATE_END, numareplay, "hugetlb_isolate_end", ret)                             \
	E(HUGETLB_MOVED, numareplay, "hugetlb_moved", old, new, reason)                            \
	E(RATELIMIT, migrate, "mm_numa_migrate_ratelimit", pid, dst_nid, nr_pages)                 \
	E(MIGRATE_PAGES, migrate, "mm_migrate_pages", succeeded, failed, thp_succeeded,            \
	  thp_failed, thp_split, large_folio_split, mode, reason)                                  \
	E(MIGRATE_START, migrate, "mm_migrate_pages_start", mode, reason)                          \
	E(SET_PTE, migrate, "set_migration_pte", addr, pte, order)                                 \
	E(REMOVE_PTE, migrate, "remove_migration_pte", addr, pte, order)                           \
	E(SET_PMD, thp, "set_migration_pmd", addr, pmd)                                            \
	E(REMOVE_PMD, thp, "remove_migration_pmd", addr, pmd)                                      \
	E(MOVE_NUMA, sched, "sched_move_numa", pid, tgid, ngid, src_cpu, src_nid, dst_cpu,         \
	  dst_nid)                                                                                 \
	E(STICK_NUMA, sched, "sched_stick_numa", pid, tgid, ngid, src_pid, src_tgid, src_ngid,     \
	  src_cpu, src_nid, dst_pid, dst_tgid, dst_ngid, dst_cpu, dst_nid)                         \
	E(SWAP_NUMA, sched, "sched_swap_numa", src_pid, src_tgid, src_ngid, src_cpu, src_nid,      \
	  dst_pid, dst_tgid, dst_ngid, dst_cpu, dst_nid)                                           \
	E(SKIP_VMA, sched, "sched_skip_vma_numa", numa_scan_offset, vm_start, vm_end, reason)      \
	E(SKIP_CPUSET, sched, "sched_skip_cpuset_numa", pid, tgid)                                 \
	E(MIGRATE_TASK, sched, "sched_migrate_task", pid, orig_cpu, dest_cpu)                      \
	E(FORK, sched, "sched_process_fork", parent_pid, child_pid, child_comm)                    \
	E(EXEC, sched, "sched_process_exec", pid, filename)                                        \
	E(EXIT, sched, "sched_process_exit", pid, comm)                                            \
	E(LOCK_START, mmap_lock, "mmap_lock_start_locking", mm, write)                             \
	E(LOCK_RETURNED, mmap_lock, "mmap_lock_acquire_returned", mm, write, success)              \
	E(LOCK_RELEASED, mmap_lock, "mmap_lock_released", mm, write)                               \
	E(PAGE_FAULT_USER, exceptions, "page_fault_user", address, ip, error_code)                 \
	E(PAGE_FAULT_KERNEL, exceptions, "page_fault_kernel", address, ip, error_code)             \
	E(ENTER_MMAP, syscalls, "sys_enter_mmap", addr, len, prot, flags)                          \
	E(EXIT_MMAP, syscalls, "sys_exit_mmap", ret)                                               \
	E(ENTER_MUNMAP, syscalls, "sys_enter_munmap", addr, len)                                   \
	E(EXIT_MUNMAP, syscalls, "sys_exit_munmap", ret)                                           \
	E(ENTER_MBIND, syscalls, "sys_enter_mbind", start, len, mode, flags)                       \
	E(EXIT_MBIND, syscalls, "sys_exit_mbind", ret)                                             \
	E(ENTER_MPROTECT, syscalls, "sys_enter_mprotect", start, len, prot)                        \
	E(EXIT_MPROTECT, syscalls, "sys_exit_mprotect", ret)                                       \
	E(ENTER_MLOCK, syscalls, "sys_enter_mlock", start, len)                                    \
	E(EXIT_MLOCK, syscalls, "sys_exit_mlock", ret)                                             \
	E(ENTER_MUNLOCK, syscalls, "sys_enter_munlock", start, len)                                \
	E(EXIT_MUNLOCK, syscalls, "sys_exit_munlock", ret)                                         \
	E(ENTER_MREMAP, syscalls, "sys_enter_mremap", addr, old_len, flags)                        \
	E(EXIT_MREMAP, syscalls, "sys_exit_mremap", ret)                                           \
	E(ENTER_BRK, syscalls, "sys_enter_brk", brk)                                               \
	E(EXIT_BRK, syscalls, "sys_exit_brk", ret)                                                 \
	E(ENTER_MADVISE, syscalls, "sys_enter_madvise", start, len_in, behavior)                   \
	E(EXIT_MADVISE, syscalls, "sys_exit_madvise", ret)                                         \
	E(ENTER_SHMDT, syscalls, "sys_enter_shmdt", shmaddr)                                       \
	E(EXIT_SHMDT, syscalls, "sys_exit_shmdt", ret)                                             \
	E(CONTENTION_BEGIN, lock, "contention_begin", lock_addr, flags)                            \
	E(CONTENTION_END, lock, "contention_end", lock_addr, ret)

/*
 * System calls come in pairs, enter and exit, from ENTER_MMAP to EXIT_SHMDT, in the order of
 * NRP_CALL_*.
 */
enum nrp_event {
	NRP_EV_OTHER, /* an event that no record holds */
#define NRP_EVENT_ENUM(NAME, system, name, ...) NRP_EV_##NAME,
	NRP_EVENTS(NRP_EVENT_ENUM)
#undef NRP_EVENT_ENUM
		NRP_NR_EVENTS
};

static inline bool nrp_event_is_call(enum nrp_event event)
{
	return event >= NRP_EV_ENTER_MMAP && event <= NRP_EV_EXIT_SHMDT;
}

static inline bool nrp_event_is_exit(enum nrp_event event)
{
	return (event - NRP_EV_ENTER_MMAP) & 1;
}

/* NRP_CALL_* of the enter or exit of a system call. */
static inline unsigned int nrp_event_call(enum nrp_event event)
{
	return ((unsigned int)event - NRP_EV_ENTER_MMAP) / 2;
}

/* NRP_EF_FAULT_BEGIN_page and so on: index into nrp_event_desc.field. */
#define NRP_FE1(P, a) P##a,
#define NRP_FE2(P, a, ...) P##a, NRP_FE1(P, __VA_ARGS__)
#define NRP_FE3(P, a, ...) P##a, NRP_FE2(P, __VA_ARGS__)
#define NRP_FE4(P, a, ...) P##a, NRP_FE3(P, __VA_ARGS__)
#define NRP_FE5(P, a, ...) P##a, NRP_FE4(P, __VA_ARGS__)
#define NRP_FE6(P, a, ...) P##a, NRP_FE5(P, __VA_ARGS__)
#define NRP_FE7(P, a, ...) P##a, NRP_FE6(P, __VA_ARGS__)
#define NRP_FE8(P, a, ...) P##a, NRP_FE7(P, __VA_ARGS__)
#define NRP_FE9(P, a, ...) P##a, NRP_FE8(P, __VA_ARGS__)
#define NRP_FE10(P, a, ...) P##a, NRP_FE9(P, __VA_ARGS__)
#define NRP_FE11(P, a, ...) P##a, NRP_FE10(P, __VA_ARGS__)
#define NRP_FE12(P, a, ...) P##a, NRP_FE11(P, __VA_ARGS__)
#define NRP_FE13(P, a, ...) P##a, NRP_FE12(P, __VA_ARGS__)
#define NRP_FE14(P, a, ...) P##a, NRP_FE13(P, __VA_ARGS__)
#define NRP_FE15(P, a, ...) P##a, NRP_FE14(P, __VA_ARGS__)
#define NRP_FE16(P, a, ...) P##a, NRP_FE15(P, __VA_ARGS__)
#define NRP_FE_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, N, ...) N
#define NRP_FE(P, ...)                                                                             \
	NRP_FE_PICK(__VA_ARGS__, NRP_FE16, NRP_FE15, NRP_FE14, NRP_FE13, NRP_FE12, NRP_FE11,       \
		    NRP_FE10, NRP_FE9, NRP_FE8, NRP_FE7, NRP_FE6, NRP_FE5, NRP_FE4, NRP_FE3,       \
		    NRP_FE2, NRP_FE1, none)                                                        \
	(P, __VA_ARGS__)
#define NRP_EVENT_FIELD_ENUM(NAME, system, name, ...)                                              \
	enum { NRP_FE(NRP_EF_##NAME##_, __VA_ARGS__) };
NRP_EVENTS(NRP_EVENT_FIELD_ENUM)
#undef NRP_EVENT_FIELD_ENUM

#define NRP_MAX_EVENT_FIELDS 16
#define NRP_MAX_EVENT_IDS 65536 /* common_type is 16 bits wide */

/* Where a field lies in the payload. */
struct nrp_field {
	uint16_t offset; /* bytes */
	uint16_t size;   /* bytes; 0: the format has no such field */
	bool is_signed;
	bool is_dynamic; /* __data_loc: size and offset of a string behind the fixed part */
	bool is_string;  /* text, whatever its size */
	uint8_t plain;   /* size of an integer that can be copied as it is; 0: see the others */
	uint32_t end;    /* offset + size of a plain one */
};

struct nrp_event_desc {
	enum nrp_event event;
	struct nrp_field field[NRP_MAX_EVENT_FIELDS]; /* in the order of the NRP_EVENTS line */
};

struct nrp_catalogue {
	const struct nrp_event_desc *by_id[NRP_MAX_EVENT_IDS]; /* NULL: NRP_EV_OTHER */
	struct nrp_event_desc desc[NRP_NR_EVENTS];
	bool present[NRP_NR_EVENTS]; /* the file has the format */
	struct nrp_field common_pid;
	bool swap;                /* payload has the other endianness */
	uint16_t weight_fields;   /* filter_begin f0, f1, ..: number of fields in a row */
	uint8_t skip_reason[256]; /* kernel's number -> NRP_SKIP_*, by printed name */
	char skip_name[256][32];  /* printed names of the numbers that are NRP_SKIP_UNKNOWN */
};

/* Resolves the formats of an open file; frees with free(). */
int nrp_catalogue_new(struct nrp_catalogue **ret, struct nrp_tracefile *file,
		      struct nrp_error *err);

/* NRP_SKIP_* of a reason's printed name. */
uint8_t nrp_skip_reason_by_name(const char *name, size_t length);

/* NRP_EV_OTHER: none of ours. */
enum nrp_event nrp_event_by_name(const char *system, const char *name);

/* Name of a catalogue event, "other" for NRP_EV_OTHER. */
const char *nrp_event_name(enum nrp_event event);

/* Is the field there and inside this event's payload? */
static inline bool nrp_has(const struct nrp_field *field, const struct nrp_raw_event *raw)
{
	return field->size && (uint32_t)field->offset + field->size <= raw->size;
}

/* The same for a field that is read as an integer; one of another size is none. */
static inline bool nrp_has_integer(const struct nrp_field *field, const struct nrp_raw_event *raw)
{
	return nrp_has(field, raw) && !field->is_string && (field->size & (field->size - 1)) == 0 &&
	       field->size <= 8;
}

/* Does a loaded integer keep its value in @size bytes, whatever the sign of either? */
static inline bool nrp_fits(uint64_t value, size_t size)
{
	return size >= 8 || !(value >> (8 * size)) || !(~value >> (8 * size - 1));
}

/* An integer of @size bytes at @p, sign-extended if asked. */
static inline uint64_t nrp_load(const uint8_t *p, unsigned int size, bool is_signed, bool swap)
{
	uint8_t b1;
	uint16_t b2;
	uint32_t b4;
	uint64_t b8;

	switch (size) {
	case 1:
		b1 = *p;
		return is_signed ? (uint64_t)(int64_t)(int8_t)b1 : b1;
	case 2:
		memcpy(&b2, p, 2);
		if (swap)
			b2 = __builtin_bswap16(b2);
		return is_signed ? (uint64_t)(int64_t)(int16_t)b2 : b2;
	case 4:
		memcpy(&b4, p, 4);
		if (swap)
			b4 = __builtin_bswap32(b4);
		return is_signed ? (uint64_t)(int64_t)(int32_t)b4 : b4;
	case 8:
		memcpy(&b8, p, 8);
		return swap ? __builtin_bswap64(b8) : b8;
	default:
		return 0;
	}
}

#endif
