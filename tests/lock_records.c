/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lock_records.h"

void record_lock(struct lane_file *file, int32_t tid, uint64_t mm, int op, bool write, uint64_t us)
{
	LANE_ROW(lock, l, us * US);
	NRP_SET(&l, lock, tid, tid);
	NRP_SET(&l, lock, mm, mm);
	NRP_SET(&l, lock, op, (uint8_t)op);
	NRP_SET(&l, lock, write, write);
	lane_put(file, NRP_LOCK, &l);
}

void record_hold(struct lane_file *file, int32_t tid, bool write, uint64_t requested,
		 uint64_t granted, uint64_t released)
{
	record_lock(file, tid, MM, NRP_LOCK_REQUEST, write, requested);
	record_lock(file, tid, MM, NRP_LOCK_GRANT, write, granted);
	record_lock(file, tid, MM, NRP_LOCK_RELEASE, write, released);
}

void record_exception(struct lane_file *file, int32_t tid, uint64_t addr, uint64_t us)
{
	LANE_ROW(page_fault, p, us * US);
	NRP_SET(&p, page_fault, tid, tid);
	NRP_SET(&p, page_fault, addr, addr);
	NRP_SET(&p, page_fault, user, 1);
	lane_put(file, NRP_PAGE_FAULT, &p);
}

void record_pass(struct lane_file *file, int32_t tid, uint64_t us, uint64_t end_us)
{
	LANE_ROW(scan_pass, p, us * US);
	NRP_SET(&p, scan_pass, end_time, end_us * US);
	NRP_SET(&p, scan_pass, tid, tid);
	NRP_SET(&p, scan_pass, mm, MM);
	lane_put(file, NRP_SCAN_PASS, &p);
}

void record_munmap(struct lane_file *file, int32_t tid, uint64_t us, uint64_t zap_us,
		   uint64_t pgtables_us, uint64_t flushed_us, uint64_t end_us, uint64_t len)
{
	LANE_ROW(munmap, m, us * US);
	NRP_SET(&m, munmap, zap_time, zap_us * US);
	NRP_SET(&m, munmap, pgtables_time, pgtables_us * US);
	NRP_SET(&m, munmap, flushed_time, flushed_us * US);
	NRP_SET(&m, munmap, end_time, end_us * US);
	NRP_SET(&m, munmap, tid, tid);
	NRP_SET(&m, munmap, mm, MM);
	NRP_SET(&m, munmap, start, RANGE);
	NRP_SET(&m, munmap, len, len);
	NRP_SET(&m, munmap, downgrade, 1);
	lane_put(file, NRP_MUNMAP, &m);
}

void record_call(struct lane_file *file, int32_t tid, int call, uint64_t us, uint64_t end_us,
		 uint64_t len)
{
	LANE_ROW(mm_call, c, us * US);
	NRP_SET(&c, mm_call, end_time, end_us * US);
	NRP_SET(&c, mm_call, tid, tid);
	NRP_SET(&c, mm_call, call, (uint8_t)call);
	NRP_SET(&c, mm_call, addr, RANGE);
	NRP_SET(&c, mm_call, len, len);
	lane_put(file, NRP_MM_CALL, &c);
}
