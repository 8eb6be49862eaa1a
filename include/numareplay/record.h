/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record model: everything after capture/ sees these records and nothing else.
 *
 * Each record kind is one X-macro list. A line is
 *
 *	F(type, name, unit, null, source)
 *
 * type    C type of the field (u8 .. i64, see below).
 * name    field name here and column name in SQL.
 * unit    unit or value set.
 * null    what NULL means; "-" if the field is never NULL.
 * source  event(s) and field it comes from; "all" = every kernel, otherwise the kernel
 *	   generations whose captures can carry it (by event format, never by uname).
 *
 * The list expands to a struct (for C), to a column table (for the store, schema/record.c)
 * and to the SQL virtual table of the same name. A row's NULLs are bits of its first
 * member "null": bit i belongs to the i-th field of the list. NULL is never encoded as 0.
 *
 * Conventions: time is ns of the capture's clock; jiffies are the kernel's own ticks; addresses and
 * pointers are the kernel's raw values; nid is a node id, -1 meaning "none" where the kernel says so;
 * tid is the thread id in the initial pid namespace (ftrace common_pid). pages are base pages.
 * A field that the kernel fetched through a pointer that was NULL in the same record is NULL.
 */
#ifndef NUMAREPLAY_RECORD_H
#define NUMAREPLAY_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off: the lists below are tables */
typedef uint8_t nrp_u8;
typedef uint16_t nrp_u16;
typedef uint32_t nrp_u32;
typedef uint64_t nrp_u64;
typedef int8_t nrp_i8;
typedef int16_t nrp_i16;
typedef int32_t nrp_i32;
typedef int64_t nrp_i64;

/*
 * One NUMA hinting fault, joined per thread from fault_begin .. task_fault
 * (mpol_misplaced, should_numa_migrate_memory, the attempt to migrate, task_numa_fault).
 */
#define NRP_HINT_FAULT_FIELDS(F) \
F(u64, time, "ns", "-", "fault_begin: all") \
F(u32, cpu, "cpu", "-", "fault_begin: all; the CPU that took the fault") \
F(i32, tid, "tid", "-", "fault_begin: all") \
F(i32, tgid, "pid", "process not named by any event so far", "sched_{move,stick,swap}_numa of the same tid; text: its own column, where it has one") \
F(u64, mm, "pointer", "the probe lacks it", "fault_begin.mm") \
F(u64, addr, "bytes", "-", "fault_begin.addr: faulting address; 4.18, 5.10: page aligned by the kernel") \
F(u64, vma, "pointer", "the probe lacks it", "fault_begin.vma; reused by the slab, no identity") \
F(u64, vm_start, "bytes", "the probe lacks it", "fault_begin.vm_start") \
F(u64, vm_end, "bytes", "the probe lacks it", "fault_begin.vm_end") \
F(u64, vm_flags, "VM_* bits", "the probe lacks it", "fault_begin.vm_flags") \
F(u64, page, "pointer", "the probe lacks it", "fault_begin.page: struct page (4.18-6.1) or folio (6.12+)") \
F(u64, page_flags, "PG_* bits, cpupid, nid", "the probe lacks it", "fault_begin.page_flags, before the cpupid exchange") \
F(i32, mapcount, "count - 1", "the probe lacks it", "fault_begin.mapcount, raw: -1 unmapped, 0 mapped once") \
F(i32, refcount, "count", "the probe lacks it", "fault_begin.refcount") \
F(i16, src_nid, "nid", "not in the trace and not calibrated", "filter_begin.src_nid, else the node bits of page_flags, else task_fault.nid of a page that did not move") \
F(i16, this_nid, "nid", "CPU's node not known", "node of cpu: host facts, else inferred from the trace") \
F(i16, target_nid, "nid, -1: stay", "fault_target missing", "fault_target.nid: all; what mpol_misplaced answered") \
F(u32, last_cpupid, "cpupid", "no task_fault and not calibrated", "task_fault.last_cpupid, else the cpupid bits of page_flags; before the exchange") \
F(u64, filter_delay, "ns after time", "filter not called", "filter_begin: 4.18, 5.10 local faults too; 6.1+ remote faults") \
F(i32, dst_cpu, "cpu", "filter not called", "filter_begin.dst_cpu") \
F(i16, preferred_nid, "nid, -1: none", "filter not called", "filter_begin.preferred_nid") \
F(i32, scan_seq, "count", "filter not called", "filter_begin.scan_seq: the task's copy") \
F(u32, scan_period, "ms", "filter not called", "filter_begin.scan_period") \
F(u64, numa_group, "pointer", "filter not called, or the task has no group", "filter_begin.group") \
F(i32, group_id, "tid of the creator", "no group", "filter_begin.gid") \
F(u64, group_cpu_src, "weight", "no group", "filter_begin.faults / f0..: C[src], private + shared") \
F(u64, group_cpu_dst, "weight", "no group", "C[dst]") \
F(u64, group_mem_src, "weight", "no group", "M[src]") \
F(u64, group_mem_dst, "weight", "no group", "M[dst]") \
F(u8, filter_answer, "0 stay, 1 move", "filter not called, or its return lost", "filter_end.allow") \
F(u8, attempt, "0 none, 1 base page or folio, 2 THP function", "-", "migrate_begin, prepare_begin, thp_begin (4.18, 5.10)") \
F(u64, attempt_delay, "ns after time", "no attempt", "prepare_begin (6.12+), migrate_begin or thp_begin (older): first event of the attempt") \
F(u64, attempt_ns, "ns", "no attempt, or its return lost", "duration from the first to the last event of the attempt") \
F(u64, attempt_jiffies, "jiffies", "no attempt, or the probe lacks it", "prepare_begin / migrate_begin / thp_begin .jiffies") \
F(i16, attempt_nid, "nid", "no attempt", "prepare_begin / migrate_begin / thp_begin .nid: target of the attempt") \
F(i32, prepare_result, "0, -errno", "no prepare step (before 6.11) or no attempt", "prepare_end.ret") \
F(i32, migrate_result, "raw return value", "migrate_misplaced_* not reached", "migrate_end.ret / thp_end.ret; polarity differs: use moved") \
F(u8, moved, "0 no, 1 yes", "no attempt, or outcome lost", "task_fault flag MIGRATED, else migrate_result with the capture's polarity") \
F(u8, ratelimited, "0 no, 1 yes", "no attempt, or the kernel has no such tracepoint", "mm_numa_migrate_ratelimit inside the attempt: 4.18") \
F(u32, migrated_pages, "pages", "no mm_migrate_pages (reason numa_misplaced) inside the attempt", "mm_migrate_pages.succeeded") \
F(u32, failed_pages, "pages", "no mm_migrate_pages (reason numa_misplaced) inside the attempt", "mm_migrate_pages.failed") \
F(u32, pages, "pages", "no task_fault and size unknown", "task_fault.pages: 1, a folio, or a huge page") \
F(i16, mem_nid, "nid", "no task_fault", "task_fault.nid: after the migration") \
F(u8, tnf_flags, "TNF_* bits", "no task_fault: an unreported fault", "task_fault.flags: 1 MIGRATED 2 NO_GROUP 4 SHARED 8 FAULT_LOCAL 16 MIGRATE_FAIL") \
F(u64, end_delay, "ns after time", "no task_fault", "task_fault") \
F(u8, inferred, "bits", "-", "1 last_cpupid from page_flags, 2 src_nid from page_flags, 4 src_nid from mem_nid, 8 still open at a loss or at the end of the capture")

/* The numa_group fault weights that one filter call saw; one row per node. */
#define NRP_GROUP_WEIGHT_FIELDS(F) \
F(u64, time, "ns", "-", "time of the hint_fault it belongs to") \
F(i32, tid, "tid", "-", "filter_begin") \
F(i32, group_id, "tid of the creator", "-", "filter_begin.gid") \
F(i16, nid, "nid", "-", "index in filter_begin.faults (5.10+) or f0.. (4.18)") \
F(u64, mem_shared, "weight", "-", "faults[2*nid]") \
F(u64, mem_private, "weight", "-", "faults[2*nid+1]") \
F(u64, cpu_shared, "weight", "-", "faults[2*(nodes+nid)]") \
F(u64, cpu_private, "weight", "-", "faults[2*(nodes+nid)+1]")

/* One run of task_numa_work. */
#define NRP_SCAN_PASS_FIELDS(F) \
F(u64, time, "ns", "-", "scan_begin: all") \
F(u64, end_time, "ns", "still running at the end of the capture", "scan_end: all") \
F(u32, cpu, "cpu", "-", "scan_begin") \
F(i32, tid, "tid", "-", "scan_begin") \
F(i32, tgid, "pid", "process not named by any event so far", "sched_*_numa of the same tid") \
F(u64, mm, "pointer", "-", "scan_begin.mm") \
F(u64, jiffies, "jiffies", "the probe lacks it", "scan_begin.jiffies") \
F(u64, jiffies_end, "jiffies", "still running", "scan_end.jiffies") \
F(i32, mm_scan_seq, "count", "the probe lacks it", "scan_begin.mm_scan_seq") \
F(u64, scan_offset, "bytes", "the probe lacks it", "scan_begin.scan_offset") \
F(u64, next_scan, "jiffies", "the probe lacks it", "scan_begin.next_scan") \
F(i32, mm_users, "count", "the probe lacks it", "scan_begin.mm_users") \
F(i32, nr_threads, "count", "the probe lacks it", "scan_begin.nr_threads") \
F(u32, scan_period, "ms", "the probe lacks it", "scan_begin.scan_period") \
F(u32, scan_period_max, "ms", "the probe lacks it", "scan_begin.scan_period_max") \
F(i32, task_scan_seq, "count", "the probe lacks it", "scan_begin.task_scan_seq") \
F(i16, preferred_nid, "nid, -1: none", "the probe lacks it", "scan_begin.preferred_nid") \
F(u32, ranges, "count", "-", "range_begin inside the pass") \
F(u32, skips, "count", "-", "sched_skip_vma_numa inside the pass (6.7+)") \
F(u64, armed_pages, "pages", "-", "sum of range_end.pages inside the pass")

/* One call of change_prot_numa: a range made PROT_NONE. */
#define NRP_SCAN_RANGE_FIELDS(F) \
F(u64, time, "ns", "-", "range_begin: all") \
F(u64, end_time, "ns", "return lost", "range_end: all") \
F(u32, cpu, "cpu", "-", "range_begin") \
F(i32, tid, "tid", "-", "range_begin") \
F(u64, mm, "pointer", "the probe lacks it", "range_begin.mm") \
F(u64, pass_time, "ns", "outside a scan pass (mbind lazy)", "time of the enclosing scan_pass") \
F(u32, ordinal, "count from 0", "-", "position among the ranges and skips of the pass") \
F(u64, vma, "pointer", "the probe lacks it", "range_begin.vma; reused by the slab, no identity") \
F(u64, start, "bytes", "-", "range_begin.start") \
F(u64, end, "bytes", "-", "range_begin.end") \
F(u64, vm_start, "bytes", "the probe lacks it", "range_begin.vm_start") \
F(u64, vm_end, "bytes", "the probe lacks it", "range_begin.vm_end") \
F(u64, vm_flags, "VM_* bits", "the probe lacks it", "range_begin.vm_flags") \
F(i32, mm_scan_seq, "count", "the probe lacks it", "range_begin.mm_scan_seq") \
F(u64, scan_offset, "bytes", "the probe lacks it", "range_begin.scan_offset") \
F(u64, vma_next_scan, "jiffies", "no per-VMA state (before 6.4), or outside a scan pass", "range_begin.next_scan: 6.12+") \
F(u64, pids_reset, "jiffies", "as vma_next_scan", "range_begin.pids_reset: 6.12+") \
F(u64, pids0, "bits", "as vma_next_scan", "range_begin.pids0: 6.12+") \
F(u64, pids1, "bits", "as vma_next_scan", "range_begin.pids1: 6.12+") \
F(i32, start_seq, "count", "as vma_next_scan", "range_begin.start_seq: 6.12+") \
F(i32, prev_seq, "count", "as vma_next_scan", "range_begin.prev_seq: 6.12+") \
F(u64, pages, "pages", "return lost", "range_end.pages: entries armed")

/* A VMA (or a whole pass) that the scanner left out. */
#define NRP_SCAN_SKIP_FIELDS(F) \
F(u64, time, "ns", "-", "sched_skip_vma_numa (6.7+), sched_skip_cpuset_numa (6.16+)") \
F(u32, cpu, "cpu", "-", "same") \
F(i32, tid, "tid", "-", "same") \
F(u64, mm, "pointer", "outside a scan pass", "mm of the thread's enclosing scan_pass") \
F(u64, pass_time, "ns", "outside a scan pass", "time of the enclosing scan_pass") \
F(u32, ordinal, "count from 0", "-", "position among the ranges and skips of the pass") \
F(u64, scan_offset, "bytes", "cpuset skip", "numa_scan_offset") \
F(u64, vm_start, "bytes", "cpuset skip", "vm_start") \
F(u64, vm_end, "bytes", "cpuset skip", "vm_end") \
F(u8, reason, "NRP_SKIP_*", "-", "reason, by the name in the event's own format; 254 = a name unknown here") \
F(u32, reason_raw, "kernel's number", "cpuset skip, or a text that gives the name", "reason") \
F(u32, reason_name, "id in table name", "a reason known here, or a number without a name", "reason, as the event's format or the text names it")

/* One migrate_pages() call, any reason. */
#define NRP_MIGRATION_FIELDS(F) \
F(u64, time, "ns", "-", "mm_migrate_pages: all") \
F(u64, start_time, "ns", "no start event (before 6.1)", "mm_migrate_pages_start: 6.1+") \
F(u32, cpu, "cpu", "-", "mm_migrate_pages") \
F(i32, tid, "tid", "-", "mm_migrate_pages") \
F(u64, succeeded, "pages; 4.18: a THP counts 1", "-", "mm_migrate_pages.succeeded") \
F(u64, failed, "pages; 4.18: a THP counts 1", "-", "mm_migrate_pages.failed") \
F(u64, thp_succeeded, "huge pages", "field absent (4.18)", "mm_migrate_pages.thp_succeeded") \
F(u64, thp_failed, "huge pages", "field absent (4.18)", "mm_migrate_pages.thp_failed") \
F(u64, thp_split, "huge pages", "field absent (4.18)", "mm_migrate_pages.thp_split") \
F(u64, folio_split, "folios", "field absent (before 6.12)", "mm_migrate_pages.large_folio_split") \
F(u8, mode, "0 async, 1 sync light, 2 sync", "-", "mm_migrate_pages.mode") \
F(u8, reason, "kernel's enum; 5 numa_misplaced", "-", "mm_migrate_pages.reason")

/* A PTE or PMD replaced by, or restored from, a migration entry. */
#define NRP_MIGRATION_ENTRY_FIELDS(F) \
F(u64, time, "ns", "-", "set_migration_{pte,pmd}, remove_migration_{pte,pmd}: 6.1+") \
F(u32, cpu, "cpu", "-", "same") \
F(i32, tid, "tid", "-", "same") \
F(u8, op, "0 set, 1 remove", "-", "which event") \
F(u8, pmd, "0 PTE, 1 PMD", "-", "which event") \
F(u64, addr, "bytes", "-", "addr, in the mm that owns the entry") \
F(u64, entry, "entry bits", "-", "pte / pmd: set: source pfn; remove: destination pfn") \
F(i32, order, "log2 pages", "PMD events", "order: nonzero for the head page only")

/* One refusal by the rate limiter. */
#define NRP_RATELIMIT_FIELDS(F) \
F(u64, time, "ns", "-", "mm_numa_migrate_ratelimit: up to 4.18") \
F(u32, cpu, "cpu", "-", "same") \
F(i32, tid, "tid", "-", "same (pid field)") \
F(i16, dst_nid, "nid", "-", "dst_nid: the limited target node") \
F(u64, pages, "pages", "-", "nr_pages: 1 or a huge page")

/* A task waiting for a page under migration. */
#define NRP_MIGRATION_WAIT_FIELDS(F) \
F(u64, time, "ns", "-", "migration_wait: where probed") \
F(u64, end_time, "ns", "still waiting, or return lost", "migration_wait_end") \
F(u32, cpu, "cpu", "-", "migration_wait") \
F(i32, tid, "tid", "-", "migration_wait") \
F(u64, mm, "pointer", "the probe lacks it", "migration_wait.mm") \
F(u64, addr, "bytes", "the probe lacks it", "migration_wait.addr")

/* A task moved, asked to be moved, or stuck. */
#define NRP_TASK_MOVE_FIELDS(F) \
F(u64, time, "ns", "-", "sched_{move,stick,swap}_numa, sched_migrate_task: all") \
F(u32, cpu, "cpu", "-", "same; where the event was emitted") \
F(u8, kind, "0 migrate, 1 move, 2 stick, 3 swap", "-", "which event; move and swap are requests") \
F(i32, tid, "tid", "-", "pid / src_pid") \
F(i32, tgid, "pid", "sched_migrate_task", "tgid / src_tgid") \
F(i32, ngid, "group id, 0: none", "sched_migrate_task", "ngid / src_ngid") \
F(i32, src_cpu, "cpu", "-", "src_cpu / orig_cpu") \
F(i16, src_nid, "nid", "sched_migrate_task", "src_nid") \
F(i32, dst_cpu, "cpu, -1: none found", "-", "dst_cpu / dest_cpu") \
F(i16, dst_nid, "nid, -1: none", "sched_migrate_task", "dst_nid") \
F(i32, dst_tid, "tid, 0: none", "not a pair event (move; stick before 4.19)", "dst_pid") \
F(i32, dst_tgid, "pid", "not a pair event", "dst_tgid") \
F(i32, dst_ngid, "group id, 0: none", "not a pair event", "dst_ngid")

/* A task's preferred node changed. */
#define NRP_PREFERRED_FIELDS(F) \
F(u64, time, "ns", "-", "preferred (sched_setnuma): all") \
F(u32, cpu, "cpu", "-", "preferred") \
F(i32, tid, "tid", "-", "preferred.pid") \
F(i16, nid, "nid", "-", "preferred.nid")

/* Birth, exec and death of tasks. */
#define NRP_TASK_LIFE_FIELDS(F) \
F(u64, time, "ns", "-", "sched_process_{fork,exec,exit}: all") \
F(u32, cpu, "cpu", "-", "same") \
F(u8, kind, "0 fork, 1 exec, 2 exit", "-", "which event; fork includes threads") \
F(i32, tid, "tid", "-", "parent_pid / pid") \
F(i32, child_tid, "tid", "not a fork", "child_pid") \
F(u32, name, "id in table name", "event without it", "comm, or filename of exec")

/* mmap_lock (mmap_sem) activity; waits in line for any rw_semaphore. */
#define NRP_LOCK_FIELDS(F) \
F(u64, time, "ns", "-", "mmap_lock_{start_locking,acquire_returned,released}: 5.11+; mmap_downgrade: where probed; contention_{begin,end}: 5.19+") \
F(u32, cpu, "cpu", "-", "same") \
F(i32, tid, "tid", "-", "same") \
F(u8, op, "0 request, 1 grant, 2 failed, 3 release, 4 downgrade, 5 in line, 6 out of line with the lock, 7 without", "-", "which event, success, ret") \
F(u64, mm, "pointer", "mmap_downgrade probe, contention", "mm") \
F(u64, sem, "pointer", "mmap_lock events", "mmap_downgrade.sem, contention_begin.lock_addr: the rw_semaphore; an mmap_lock lies inside its mm") \
F(u8, write, "0 read, 1 write", "mmap_downgrade probe", "write; contention_begin.flags")

/* One munmap: the unlocked entry points of its phases. */
#define NRP_MUNMAP_FIELDS(F) \
F(u64, time, "ns", "-", "munmap_begin: where probed") \
F(u64, zap_time, "ns", "nothing unmapped", "munmap_zap (unmap_vmas entry)") \
F(u64, pgtables_time, "ns", "nothing unmapped", "munmap_pgtables (free_pgtables entry)") \
F(u64, flushed_time, "ns", "nothing unmapped", "munmap_flushed (tlb_finish_mmu return)") \
F(u64, end_time, "ns", "still running, or return lost", "munmap_end") \
F(u32, cpu, "cpu", "-", "munmap_begin") \
F(i32, tid, "tid", "-", "munmap_begin") \
F(u64, mm, "pointer", "the probe lacks it", "munmap_begin.mm") \
F(u64, start, "bytes", "the probe lacks it", "munmap_begin.start") \
F(u64, len, "bytes", "the probe lacks it", "munmap_begin.len") \
F(u8, downgrade, "0 no, 1 may downgrade", "the probe lacks it", "munmap_begin.downgrade") \
F(i32, result, "0, 1, -errno", "still running, or return lost", "munmap_end.ret")

/* System calls that take the mmap_lock to change an address space. */
#define NRP_MM_CALL_FIELDS(F) \
F(u64, time, "ns", "-", "sys_enter_{mmap,munmap,mbind,mprotect,mlock,munlock,mremap,brk,madvise,shmdt}") \
F(u64, end_time, "ns", "still running, or exit lost", "sys_exit_*") \
F(u32, cpu, "cpu", "-", "sys_enter_*") \
F(i32, tid, "tid", "-", "sys_enter_*") \
F(u8, call, "0 mmap, 1 munmap, 2 mbind, 3 mprotect, 4 mlock, 5 munlock, 6 mremap, 7 brk, 8 madvise, 9 shmdt", "-", "which event") \
F(u64, addr, "bytes", "-", "addr / start / brk / shmaddr") \
F(u64, len, "bytes", "brk, shmdt", "len / old_len / len_in") \
F(u64, mode, "MPOL_* (mbind), PROT_* (mmap, mprotect), MADV_*", "others", "mode / prot / behavior") \
F(u64, flags, "MPOL_MF_*, MAP_* or MREMAP_* bits", "others", "flags") \
F(i64, result, "return value", "still running, or exit lost", "sys_exit_*.ret")

/* One page-fault exception of any cause. */
#define NRP_PAGE_FAULT_FIELDS(F) \
F(u64, time, "ns", "-", "page_fault_user, page_fault_kernel: x86") \
F(u32, cpu, "cpu", "-", "same") \
F(i32, tid, "tid", "-", "same") \
F(u8, user, "0 kernel mode, 1 user mode", "-", "which event") \
F(u64, addr, "bytes", "-", "address") \
F(u64, ip, "bytes", "-", "ip") \
F(u64, error_code, "bits", "-", "error_code")

/* hugetlb faults, PMD sharing, isolation and moves. */
#define NRP_HUGETLB_FIELDS(F) \
F(u64, time, "ns", "-", "hugetlb_*: where probed") \
F(u64, end_time, "ns", "operation without a return probe, or return lost", "hugetlb_fault_end, _pte, _unshare, _isolate_end") \
F(u32, cpu, "cpu", "-", "same") \
F(i32, tid, "tid", "-", "same") \
F(u8, op, "0 fault, 1 pte_alloc, 2 share, 3 unshare, 4 queue, 5 isolate, 6 moved", "-", "which event") \
F(u64, mm, "pointer", "not fault or pte_alloc", "mm") \
F(u64, vma, "pointer", "not fault", "vma") \
F(u64, addr, "bytes", "not fault, pte_alloc or queue", "addr") \
F(u64, vm_start, "bytes", "not fault", "vm_start") \
F(u64, vm_end, "bytes", "not fault", "vm_end") \
F(u64, vm_flags, "VM_* bits", "not fault", "vm_flags") \
F(u64, size, "bytes", "not pte_alloc", "hugetlb_pte_alloc.size") \
F(u64, pte, "pointer", "not pte_alloc or queue", "hugetlb_pte.pte (returned), hugetlb_queue.pte") \
F(u64, entry, "entry bits", "not queue", "hugetlb_queue.entry") \
F(u64, page, "pointer", "not isolate or moved", "hugetlb_isolate.page, hugetlb_moved.old") \
F(u64, new_page, "pointer", "not moved", "hugetlb_moved.new") \
F(i32, mapcount, "count - 1", "not isolate", "hugetlb_isolate.mapcount") \
F(i32, reason, "migrate reason", "not moved", "hugetlb_moved.reason") \
F(i64, result, "return value", "no return value, or return lost", "ret / dropped")

/* Events that are missing from the capture. */
#define NRP_LOSS_FIELDS(F) \
F(u64, time, "ns", "-", "last event before the gap on that CPU; 0: from the start") \
F(u64, end_time, "ns", "the gap lasts to the end", "first event after the gap on that CPU") \
F(u32, cpu, "cpu", "a text that counts all CPUs together, or does not say", "ring buffer of that CPU") \
F(u64, count, "events", "unknown number", "sub-buffer header, per-CPU stats") \
F(u8, cause, "0 ring buffer overrun, 1 damaged data, 2 per-CPU stats only, 3 time went backwards", "-", "where it was noticed") \
F(u64, offset, "bytes", "not damaged data", "place of the damage in the capture's file") \
F(u64, read_before, "events", "per-CPU stats", "events of that CPU, of the same instance, read before the gap")

/*
 * One sampled memory access, or the accesses that a counter counted in one interval: a side file of
 * perf (perf script of perf mem, IBS or SPE; perf stat -I), not the trace.
 */
#define NRP_MEMORY_SAMPLE_FIELDS(F) \
F(u64, time, "ns", "-", "perf script: time of the sample; perf stat: start of the interval") \
F(u32, cpu, "cpu", "the text does not name it", "perf script: [cpu]; perf stat -A: CPUn") \
F(i32, tid, "tid", "the text does not name it, or a count", "perf script: tid") \
F(i32, tgid, "pid", "the text does not name it, or a count", "perf script: pid of pid/tid") \
F(u64, addr, "bytes", "the text does not name it, or a count", "perf script: addr, the data address") \
F(u8, level, "0 unknown, 1 local memory, 2 remote memory, 3 memory of any node, 4 cache, 5 cache of another node", "-", "data_src, else the event's name") \
F(u8, op, "0 unknown, 1 load, 2 store, 3 other", "-", "data_src, else the event's name") \
F(u32, weight, "cycles", "the text does not name it, or a count", "perf script: weight") \
F(u64, period, "events", "the text does not name it, or a count", "perf script: period") \
F(u64, count, "accesses", "a sample", "perf stat: value, scaled up by perf where the counter shared its register") \
F(u64, span, "ns", "a sample", "perf stat: length of the interval") \
F(u32, running, "1/100 %", "the text does not say, or a sample", "perf stat: share of the interval in which the counter ran") \
F(u32, event, "id in table name", "the text does not name it", "event name")

/*
 * Every kind: K(NAME, name, "what one row is"). The order is the kind's number in the database:
 * append only.
 */
#define NRP_RECORD_KINDS(K) \
K(HINT_FAULT, hint_fault, "one NUMA hinting fault with its decisions") \
K(GROUP_WEIGHT, group_weight, "numa_group weights of one node as one filter call saw them") \
K(SCAN_PASS, scan_pass, "one run of task_numa_work") \
K(SCAN_RANGE, scan_range, "one range made PROT_NONE") \
K(SCAN_SKIP, scan_skip, "one VMA or pass that the scanner left out") \
K(MIGRATION, migration, "one migrate_pages() call, any reason") \
K(MIGRATION_ENTRY, migration_entry, "one migration entry set or removed") \
K(RATELIMIT, ratelimit, "one refusal by the migration rate limiter") \
K(MIGRATION_WAIT, migration_wait, "one wait for a page under migration") \
K(TASK_MOVE, task_move, "one task move, swap, stick or migration") \
K(PREFERRED, preferred, "one change of a task's preferred node") \
K(TASK_LIFE, task_life, "one fork, exec or exit") \
K(LOCK, lock, "one event of an mmap_lock, or of a wait for a rw_semaphore") \
K(MUNMAP, munmap, "one munmap with its phases") \
K(MM_CALL, mm_call, "one system call that changes an address space") \
K(PAGE_FAULT, page_fault, "one page-fault exception") \
K(HUGETLB, hugetlb, "one hugetlb operation") \
K(LOSS, loss, "one gap in the capture") \
K(MEMORY_SAMPLE, memory_sample, "one memory access that perf sampled, or one interval it counted")

enum nrp_record_kind {
#define NRP_KIND_ENUM(NAME, name, doc) NRP_##NAME,
	NRP_RECORD_KINDS(NRP_KIND_ENUM)
#undef NRP_KIND_ENUM
	NRP_NR_KINDS
};

/* struct nrp_hint_fault { uint64_t null; uint64_t time; ... } and so on for every kind. */
#define NRP_FIELD_MEMBER(type, name, unit, null, source) nrp_##type name;
#define NRP_KIND_STRUCT(NAME, name, doc) \
	struct nrp_##name { \
		uint64_t null; \
		NRP_##NAME##_FIELDS(NRP_FIELD_MEMBER) \
	};
NRP_RECORD_KINDS(NRP_KIND_STRUCT)
#undef NRP_KIND_STRUCT

/*
 * Column numbers, for null bits and cursor masks: NRP_COL(hint_fault, addr).
 */
#define NRP_COL(kind, field) NRP_COL_##kind##_##field

/* One enumerator per field; the helper macros carry the kind's name into the list. */
#define NRP_COLF_hint_fault(t, n, u, z, s) NRP_COL_hint_fault_##n,
#define NRP_COLF_group_weight(t, n, u, z, s) NRP_COL_group_weight_##n,
#define NRP_COLF_scan_pass(t, n, u, z, s) NRP_COL_scan_pass_##n,
#define NRP_COLF_scan_range(t, n, u, z, s) NRP_COL_scan_range_##n,
#define NRP_COLF_scan_skip(t, n, u, z, s) NRP_COL_scan_skip_##n,
#define NRP_COLF_migration(t, n, u, z, s) NRP_COL_migration_##n,
#define NRP_COLF_migration_entry(t, n, u, z, s) NRP_COL_migration_entry_##n,
#define NRP_COLF_ratelimit(t, n, u, z, s) NRP_COL_ratelimit_##n,
#define NRP_COLF_migration_wait(t, n, u, z, s) NRP_COL_migration_wait_##n,
#define NRP_COLF_task_move(t, n, u, z, s) NRP_COL_task_move_##n,
#define NRP_COLF_preferred(t, n, u, z, s) NRP_COL_preferred_##n,
#define NRP_COLF_task_life(t, n, u, z, s) NRP_COL_task_life_##n,
#define NRP_COLF_lock(t, n, u, z, s) NRP_COL_lock_##n,
#define NRP_COLF_munmap(t, n, u, z, s) NRP_COL_munmap_##n,
#define NRP_COLF_mm_call(t, n, u, z, s) NRP_COL_mm_call_##n,
#define NRP_COLF_page_fault(t, n, u, z, s) NRP_COL_page_fault_##n,
#define NRP_COLF_hugetlb(t, n, u, z, s) NRP_COL_hugetlb_##n,
#define NRP_COLF_loss(t, n, u, z, s) NRP_COL_loss_##n,
#define NRP_COLF_memory_sample(t, n, u, z, s) NRP_COL_memory_sample_##n,
#define NRP_KIND_COLS(NAME, kind, doc) \
	enum { NRP_##NAME##_FIELDS(NRP_COLF_##kind) NRP_NCOLS_##kind };
NRP_RECORD_KINDS(NRP_KIND_COLS)
#undef NRP_KIND_COLS

/* Is a field of a row NULL?  if (NRP_NULL(row, hint_fault, moved)) ... */
#define NRP_BIT(kind, field) (UINT64_C(1) << NRP_COL(kind, field))
#define NRP_NULL(row, kind, field) (((row)->null & NRP_BIT(kind, field)) != 0)
/* Sets a field and clears its NULL bit. */
#define NRP_SET(row, kind, field, value) \
	((row)->field = (value), (row)->null &= ~NRP_BIT(kind, field))

/* Scan-skip reasons, by the kernel's printed names. */
enum nrp_skip_reason {
	NRP_SKIP_UNSUITABLE = 0,
	NRP_SKIP_SHARED_RO = 1,
	NRP_SKIP_INACCESSIBLE = 2,
	NRP_SKIP_SCAN_DELAY = 3,
	NRP_SKIP_PID_INACTIVE = 4,
	NRP_SKIP_IGNORE_PID = 5, /* not a skip: scanned although the pid filter said no */
	NRP_SKIP_SEQ_COMPLETED = 6,
	NRP_SKIP_CPUSET = 253,	 /* sched_skip_cpuset_numa: the whole pass */
	NRP_SKIP_UNKNOWN = 254,	 /* a name this version does not know; see reason_name */
};

/* task_numa_fault flags (the same from 4.18 to 7.2). */
#define NRP_TNF_MIGRATED 0x01
#define NRP_TNF_NO_GROUP 0x02
#define NRP_TNF_SHARED 0x04
#define NRP_TNF_FAULT_LOCAL 0x08
#define NRP_TNF_MIGRATE_FAIL 0x10

#define NRP_REASON_MBIND 4
#define NRP_REASON_NUMA_MISPLACED 5 /* migrate reason, all kernels */

/* Bits of hint_fault.inferred. */
#define NRP_INFER_CPUPID 1
#define NRP_INFER_SRC_FLAGS 2
#define NRP_INFER_SRC_MEM 4
#define NRP_INFER_OPEN 8

/* Bits of hint_fault.attempt. */
#define NRP_ATTEMPT_NONE 0
#define NRP_ATTEMPT_FOLIO 1
#define NRP_ATTEMPT_THP 2

/* Values of task_move.kind, task_life.kind, lock.op, loss.cause, memory_sample.level and .op. */
enum { NRP_MOVE_MIGRATE, NRP_MOVE_MOVE, NRP_MOVE_STICK, NRP_MOVE_SWAP };
enum { NRP_LIFE_FORK, NRP_LIFE_EXEC, NRP_LIFE_EXIT };
enum { NRP_LOCK_REQUEST, NRP_LOCK_GRANT, NRP_LOCK_FAILED, NRP_LOCK_RELEASE, NRP_LOCK_DOWNGRADE,
       NRP_LOCK_QUEUED, NRP_LOCK_DEQUEUED, NRP_LOCK_LEFT };
enum { NRP_CALL_MMAP, NRP_CALL_MUNMAP, NRP_CALL_MBIND, NRP_CALL_MPROTECT, NRP_CALL_MLOCK,
       NRP_CALL_MUNLOCK, NRP_CALL_MREMAP, NRP_CALL_BRK, NRP_CALL_MADVISE, NRP_CALL_SHMDT,
       NRP_NR_CALLS };
enum { NRP_HUGETLB_FAULT, NRP_HUGETLB_PTE_ALLOC, NRP_HUGETLB_SHARE, NRP_HUGETLB_UNSHARE,
       NRP_HUGETLB_QUEUE, NRP_HUGETLB_ISOLATE, NRP_HUGETLB_MOVED };
enum { NRP_LOSS_OVERRUN, NRP_LOSS_DAMAGED, NRP_LOSS_STATS, NRP_LOSS_BACKWARDS, NRP_NR_LOSSES };
enum { NRP_LEVEL_UNKNOWN, NRP_LEVEL_LOCAL, NRP_LEVEL_REMOTE, NRP_LEVEL_MEMORY, NRP_LEVEL_CACHE,
       NRP_LEVEL_REMOTE_CACHE, NRP_NR_LEVELS };
enum { NRP_OP_UNKNOWN, NRP_OP_LOAD, NRP_OP_STORE, NRP_OP_OTHER };

/* ---- host facts --------------------------------------------------------------------- */

#define NRP_MAX_NODES 1024 /* MAX_NUMNODES of every 64-bit kernel configuration in use */
#define NRP_MAX_CPUS 65536 /* limit on CPU ids read from a file */
#define NRP_MAX_HUGE_PAGES (1 << 20) /* base pages in a huge page: 64 GiB of 64 KiB */
#define NRP_MAX_SYSCTL INT32_MAX     /* the kernel's tunables are ints */

/*
 * What a capture knows about its host. Numbers are -1 where unknown, strings "" where unknown;
 * in the database (tables capture, host_node, host_cpu, host_setting) unknown is NULL.
 */
struct nrp_host_facts {
	char kernel[256];	/* uname line; for people, never used to decide anything */
	char clock[32];		/* ftrace clock of the timestamps: local, global, mono, ... */
	int64_t hz;		/* ticks/s; fitted to (timestamp, jiffies) pairs */
	int64_t page_size;	/* bytes */
	int64_t huge_pages;	/* base pages in one PMD huge page; facts, or largest fault */
	int64_t cpupid_shift;	/* bit of last_cpupid in page_flags; calibrated */
	int64_t cpupid_bits;	/* width of last_cpupid incl. 8 pid bits; all ones = unset */
	int64_t nid_shift;	/* nid = page_flags >> nid_shift; calibrated */
	int64_t balancing;	/* kernel.numa_balancing: 0 off, 1 normal, 2 tiering, 3 both */
	int64_t scan_delay_ms, scan_period_min_ms, scan_period_max_ms, scan_size_mb;
	int64_t moved_result;	/* migrate_end.ret of a moved page: 1 (up to 6.1) or 0 */
	int nr_cpus;		/* CPU ids below this occur */
	int nr_nodes;		/* node ids below this occur */
	int16_t *cpu_nid;	/* [nr_cpus]: node of each CPU, -1 unknown */
	int64_t *node_memkb;	/* [nr_nodes]: memory in KiB, -1 unknown */
	bool topology_inferred;	/* no facts file: cpu_nid comes from the events */
	bool has_ratelimit_event; /* the kernel has migrate:mm_numa_migrate_ratelimit */
	bool has_prepare_step;	/* the kernel has migrate_misplaced_folio_prepare (6.11+) */
	bool has_thp_function;	/* the kernel has migrate_misplaced_transhuge_page (up to 5.13) */
	bool has_task_fault;	/* task_numa_fault was probed */
	bool has_fault_probe;	/* mpol_misplaced was probed: tier 3 evidence */
};

/* Starts with everything unknown. */
void nrp_host_facts_init(struct nrp_host_facts *facts);
/* Frees what it holds; accepts a zeroed or initialised object. */
void nrp_host_facts_clear(struct nrp_host_facts *facts);
/* Node of a CPU, or -1. */
int nrp_host_cpu_nid(const struct nrp_host_facts *facts, int cpu);

/* ---- descriptions (used by the store, SQL and documentation) ------------------------ */

enum nrp_column_type { NRP_T_u8, NRP_T_u16, NRP_T_u32, NRP_T_u64, NRP_T_i8, NRP_T_i16, NRP_T_i32,
		       NRP_T_i64 };

struct nrp_column {
	const char *name;
	enum nrp_column_type type;
	uint16_t offset; /* in the row struct */
	const char *unit;
	const char *null;   /* what NULL means, "-": never NULL */
	const char *source; /* events and kernels */
};

struct nrp_kind {
	const char *name;
	const char *doc;
	uint32_t row_size; /* bytes of the row struct */
	uint32_t nr_columns;
	const struct nrp_column *columns;
	int tgid_column; /* column that block min/max of tgid come from, -1: none */
	int nid_columns[3]; /* node columns for block min/max, -1: none */
};

/* Value of a column in a row where it is not NULL, sign-extended if its type is signed. */
uint64_t nrp_column_value(const struct nrp_column *column, const void *row);
static inline bool nrp_column_is_signed(const struct nrp_column *column)
{
	return column->type >= NRP_T_i8;
}

/* Description of a kind; NULL if @kind is out of range. */
const struct nrp_kind *nrp_kind(enum nrp_record_kind kind);

#endif
