/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of mmap_locks for hand-made captures. Times are us. */
#ifndef NRP_TESTS_LOCK_RECORDS_H
#define NRP_TESTS_LOCK_RECORDS_H

#include "tests/lane_util.h"

#define US UINT64_C(1000)
#define MM UINT64_C(0xff11000000140f00)
#define RANGE UINT64_C(0x7f0000000000)

/* @op: NRP_LOCK_REQUEST, .. */
void record_lock(struct lane_file *file, int32_t tid, uint64_t mm, int op, bool write, uint64_t us);
/* A request, its grant and the release, in MM. */
void record_hold(struct lane_file *file, int32_t tid, bool write, uint64_t requested,
		 uint64_t granted, uint64_t released);
/* An exception of user mode. */
void record_exception(struct lane_file *file, int32_t tid, uint64_t addr, uint64_t us);
/* A run of task_numa_work() over MM. */
void record_pass(struct lane_file *file, int32_t tid, uint64_t us, uint64_t end_us);
/* The phases of an unmap of @len bytes at RANGE in MM, whose caller may downgrade. */
void record_munmap(struct lane_file *file, int32_t tid, uint64_t us, uint64_t zap_us,
		   uint64_t pgtables_us, uint64_t flushed_us, uint64_t end_us, uint64_t len);
/* @call: NRP_CALL_MUNMAP, ..; of @len bytes at RANGE. */
void record_call(struct lane_file *file, int32_t tid, int call, uint64_t us, uint64_t end_us,
		 uint64_t len);

#endif
