#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# mmap_lock events in hand-made texts: what verify and replay say of them.
. "$(dirname "$0")/lib.sh"

# Reads "TASK CPU US EVENT WRITE [SUCCESS]" and prints ftrace text; other lines as they are.
events() {
	local task cpu us event write success
	while read -r task cpu us event write success; do
		case $event in
		start) printf ' job-%d [%03d] 10.%s: mmap_lock_start_locking: mm=0xff11000000140f00 memcg_path= write=%s\n' \
			"$task" "$cpu" "$us" "$write" ;;
		got) printf ' job-%d [%03d] 10.%s: mmap_lock_acquire_returned: mm=0xff11000000140f00 memcg_path= write=%s success=%s\n' \
			"$task" "$cpu" "$us" "$write" "${success:-true}" ;;
		free) printf ' job-%d [%03d] 10.%s: mmap_lock_released: mm=0xff11000000140f00 memcg_path= write=%s\n' \
			"$task" "$cpu" "$us" "$write" ;;
		*) printf '%s\n' "$task $cpu $us $event $write $success" ;;
		esac
	done
}

# What cannot be is counted and listed, with the task, and apart from what lost events may explain.
events >odd.txt <<-'END'
	20 1 000010 start false
	20 1 000011 got false
	20 1 000012 free false
	20 1 000013 free false
	21 2 000020 start true
	21 2 000021 got true
	22 3 000030 start true
	22 3 002030 got true false
	23 3 002040 start false
	23 3 002041 got false false
	21 2 002050 free true
	20 1 002060 got true
END
for i in $(seq 20); do
	events <<<"20 1 0021$((10 + i)) free false"
done >>odd.txt
cat >>odd.txt <<-'END'
	 job-24 [004] 10.003000: mmap_lock_start_locking: mm=0xff11000000140f00 memcg_path= write=true
	CPU:4 [LOST 2 EVENTS]
	 job-24 [004] 10.003100: mmap_lock_released: mm=0xff11000000140f00 memcg_path= write=true
END
want 0 "$NRP" import odd.txt -o odd.db
want 0 "$NRP" verify odd.db --json
want_json '.lock_sequences | .impossible == 22 and .undecided == 1 and .killed_waits == 1 and .failed_tries == 1 and .unanswered == 1'
want_json '.lock_sequences.listed | length == 16'
want_json '.lock_sequences.more == 23 - 16'
want_json '.lock_sequences.listed[0] | .time == 10000013000 and .tid == 20 and .mm == "ff11000000140f00" and .kind == "release_without_acquire" and .undecided == false'
want_json '.lock_sequences.listed[1] | .time == 10002060000 and .kind == "acquire_without_start"'
want_json '[.lock_sequences.kinds[] | [.kind, .impossible, .undecided]] == [["acquire_without_start",1,0],["release_without_acquire",21,1]]'
want_json '[.notes[] | select(.code == "lock_sequences") | .text | contains("22 cannot follow") and contains("1 more may follow on lost events") and contains("1 waits ended without the lock")] == [true]'
want 0 "$NRP" verify odd.db
want_out '^mmap_lock events that cannot follow on what was before them: 22, and 1 that may follow on lost events$'
want_out '^ *10.000013000 +20 +ff11000000140f00 +releases what no task on record holds$'
want_out '^  and 7 more$'

# lock:contention_begin and _end, where mmap_lock events are missing. Task 30 unmaps: its write wait, and the lock that it
# downgrades, 0x78 bytes into its address space. 31 reads: 40 and 60 us in line, one wait without end. 32's rw_semaphore is no
# mmap_lock, as no address space lies 0x78 bytes before it; spinlocks, mutexes and percpu semaphores are left out.
contention() { # with or without the probes of munmap; FAULT: a fault that can be replayed
	[ "$1" = without ] || cat <<-'END'
		 job-30 [000] 20.000100: munmap_begin: (do_vmi_munmap+0x0/0x90) mm=0xff11000000140f00 start=0x7f0000000000 len=0x40000000 downgrade=1
	END
	cat <<-'END'
		 job-30 [000] 20.000110: contention_begin: 0xff11000000140f78 (flags=WRITE)
		 job-30 [000] 20.000111: contention_begin: 0xffffffff82a00000 (flags=SPIN)
		 job-30 [000] 20.000112: contention_end: 0xffffffff82a00000 (ret=0)
		 job-30 [000] 20.000140: contention_end: 0xff11000000140f78 (ret=0)
	END
	[ "$1" = without ] || cat <<-'END'
		 job-30 [000] 20.000150: munmap_zap: (unmap_vmas+0x0/0x90)
		 job-30 [000] 20.000151: mmap_downgrade: (downgrade_write+0x0/0x90) sem=0xff11000000140f78
		 job-30 [000] 20.000190: munmap_end: (do_vmi_munmap+0x0/0x90 <- __vm_munmap+0x0/0x90) ret=0
	END
	cat <<-'END'
		 job-31 [001] 20.000200: contention_begin: 0xff11000000140f78 (flags=READ)
		 job-31 [001] 20.000240: contention_end: 0xff11000000140f78 (ret=0)
		 job-31 [001] 20.000300: contention_begin: 0xff11000000140f78 (flags=READ)
		 job-31 [001] 20.000360: contention_end: 0xff11000000140f78 (ret=-4)
		 job-32 [002] 20.000400: contention_begin: 0xff11000000999900 (flags=WRITE|RT)
		 job-32 [002] 20.000407: contention_end: 0xff11000000999900 (ret=0)
		 job-32 [002] 20.000410: contention_begin: 0xff11000000888800 (flags=READ|PERCPU)
		 job-32 [002] 20.000420: contention_end: 0xff11000000888800 (ret=0)
		 job-32 [002] 20.000430: contention_begin: 0xff11000000888800 (flags=MUTEX)
		 job-32 [002] 20.000440: contention_end: 0xff11000000888800 (ret=0)
		 job-31 [001] 20.000500: contention_begin: 0xff11000000140f78 (flags=READ)
		 job-40 [003] 20.000600: fault_begin: (mpol_misplaced+0x4/0x1b0) page=0xffffea0000000040 page_flags=0xfffffd802082c mapcount=0 refcount=1 addr=0x4be000 vma=0xff01 vm_start=0x4bd000 vm_end=0x4bf000 vm_flags=0x73 mm=0xff11000000140f00
		 job-40 [003] 20.000602: fault_target: (mpol_misplaced+0x4/0x1b0 <- do_numa_page+0x12/0x300) nid=-1
		 job-40 [003] 20.000603: task_fault: (task_numa_fault+0x4/0x300) last_cpupid=2097151 nid=1 pages=1 flags=0x8
	END
}
contention with >line.txt
want 0 "$NRP" import line.txt -o line.db
want 0 "$NRP" query line.db 'SELECT op, count(*), sum(write) FROM lock WHERE sem IS NOT NULL AND op >= 5 GROUP BY op'
want_out '^5,5,2$'
want_out '^6,3,2$'
want_out '^7,1,0$'
want 0 "$NRP" verify line.db --json
want_json '.lock_sequences == null'
want_json '.lock_contention | .mmap_lock_offset == 120 and .offset_samples == 1 and .more == 0'
want_json '.lock_contention.reads == {"waits":2,"ns":100000,"longest_ns":60000,"p99_ns":60000,"open":1,"left":1}'
want_json '.lock_contention.writes == {"waits":1,"ns":30000,"longest_ns":30000,"p99_ns":30000,"open":0,"left":0}'
want_json '.lock_contention.nameless_writes | .waits == 1 and .ns == 7000'
want_json '[.lock_contention.locks[] | [.lock, .mm, .reads.ns, .writes.ns]] == [["ff11000000140f78","ff11000000140f00",100000,30000],["ff11000000999900",null,0,7000]]'
want_json '[.notes[] | select(.code == "lock_contention") | .text | contains("reads 2 of 0.100, writes 1 of 0.030") and contains("lower bounds")] == [true]'
want 0 "$NRP" replay line.db --set hz=250 --new munmap.lock=write --json
want_json '[.notes[] | select(.code == "locks_not_recorded") | .text | contains("not observable") and contains("mmap_lock:*") and contains("down_read()")] == [true]'
want_json '.notes[] | select(.code == "locks_not_recorded") | .contention.reads.ns == 100000'
want_json '.metrics[] | select(.name == "lock_wait_readers_ns") | .old == {"value":null,"lower":100000,"upper":null,"class":"bounded","tier":2} and .avoided.class == "not_observable"'
want_json '.metrics[] | select(.name == "lock_wait_writers_ns") | .old.lower == 30000 and .new.class == "not_observable"'
# Nothing tells where the lock lies in its address space: locks stay nameless.
contention without >nameless.txt
want 0 "$NRP" import nameless.txt -o nameless.db
want 0 "$NRP" verify nameless.db --json
want_json '.lock_contention | .mmap_lock_offset == null and .reads.waits == 0 and .nameless_reads.ns == 100000 and .nameless_writes.ns == 37000'
want_json '[.notes[] | select(.code == "lock_contention") | .text | contains("is not known")] == [true]'
want 0 "$NRP" replay nameless.db --set hz=250 --new munmap.lock=write --json
want_json '.metrics[] | select(.name == "lock_wait_readers_ns") | .old.class == "not_observable"'
# Waits between mmap_lock events tell it, too.
contention without >taught.txt
cat >>taught.txt <<-'END'
	 job-35 [005] 20.500000: mmap_lock_start_locking: mm=0xff11000000140f00 memcg_path= write=false
	 job-35 [005] 20.500010: contention_begin: 0xff11000000140f78 (flags=READ)
	 job-35 [005] 20.500020: contention_end: 0xff11000000140f78 (ret=0)
	 job-35 [005] 20.500021: mmap_lock_acquire_returned: mm=0xff11000000140f00 memcg_path= write=false success=true
	 job-35 [005] 20.500030: mmap_lock_released: mm=0xff11000000140f00 memcg_path= write=false
END
want 0 "$NRP" import taught.txt -o taught.db
want 0 "$NRP" verify taught.db --json
want_json '.lock_contention | .mmap_lock_offset == 120 and .reads.ns == 110000'

# Parameters of munmap.lock. An unmap of 64 KiB with the phases of the specification's tables (find and detach 10 us, zap 1000,
# page tables 8, free 2, all under the write lock), and vector V-7: a fault at 100, a writer at 150 for 20, a fault at 600.
# In sections of 16 KiB it has the four sections of the table's 4 GiB. Nobody is late, so that bounds and values are the same.
unmap() { # lines of other tasks on stdin
	sort -s -k3,3 - <<-END
		 job-40 [003] 29.000600: fault_begin: (mpol_misplaced+0x4/0x1b0) page=0xffffea0000000040 page_flags=0xfffffd802082c mapcount=0 refcount=1 addr=0x4be000 vma=0xff01 vm_start=0x4bd000 vm_end=0x4bf000 vm_flags=0x73 mm=0xff11000000140f00
		 job-40 [003] 29.000602: fault_target: (mpol_misplaced+0x4/0x1b0 <- do_numa_page+0x12/0x300) nid=-1
		 job-40 [003] 29.000603: task_fault: (task_numa_fault+0x4/0x300) last_cpupid=2097151 nid=1 pages=1 flags=0x8
		 job-40 [003] 29.000700: sched_skip_vma_numa: numa_scan_offset=0 vm_start=0x4bd000 vm_end=0x4bf000 reason=unsuitable
		 job-10 [000] 30.000000: mmap_lock_start_locking: mm=0xff11000000140f00 memcg_path= write=true
		 job-10 [000] 30.000000: mmap_lock_acquire_returned: mm=0xff11000000140f00 memcg_path= write=true success=true
		 job-10 [000] 30.000001: munmap_begin: (do_vmi_munmap+0x0/0x90) mm=0xff11000000140f00 start=0x7f0000000000 len=0x10000 downgrade=1
		 job-10 [000] 30.000010: munmap_zap: (unmap_vmas+0x0/0x90)
		 job-10 [000] 30.001010: munmap_pgtables: (free_pgtables+0x0/0x90)
		 job-10 [000] 30.001018: munmap_flushed: (tlb_finish_mmu+0x0/0x90 <- unmap_region+0x0/0x90)
		 job-10 [000] 30.001020: mmap_lock_released: mm=0xff11000000140f00 memcg_path= write=true
		 job-10 [000] 30.001021: munmap_end: (do_vmi_munmap+0x0/0x90 <- __vm_munmap+0x0/0x90) ret=0
		$(cat)
	END
}
request() { # TASK CPU START GRANT RELEASE WRITE, times in us behind 30 s
	local line=" job-$1 [00$2] 30.00"
	[ "$6" = true ] || printf '%s%s: page_fault_user: address=0x4be000 ip=0x401000 error_code=0x4\n' "$line" "$3"
	printf '%s%s: mmap_lock_start_locking: mm=0xff11000000140f00 memcg_path= write=%s\n' "$line" "$3" "$6"
	printf '%s%s: mmap_lock_acquire_returned: mm=0xff11000000140f00 memcg_path= write=%s success=true\n' "$line" "$4" "$6"
	printf '%s%s: mmap_lock_released: mm=0xff11000000140f00 memcg_path= write=%s\n' "$line" "$5" "$6"
}
waits() { # DB VARIANT SETTINGS.. -- FAULTS WRITERS MUNMAP, sums in us
	local db=$1 variant=$2 set=()
	shift 2
	while [ "$1" != -- ]; do
		set+=(--set "new:munmap.lock.$1")
		shift
	done
	want 0 "$NRP" replay "$db" --set hz=250 --new "munmap.lock=$variant" "${set[@]}" --json
	local name value
	for name in faults writers munmap; do
		shift
		value=$(($1 * 1000))
		want_json ".metrics[] | select(.name == \"lock_wait_${name}_ns\") | .new | .value == $value and .lower == $value and .upper == $value"
	done
}
{ request 11 1 0100 1020 1025 false; request 12 2 0150 1025 1045 true; request 13 3 0600 1020 1025 false; } >others.txt
unmap <others.txt >v7.txt
want 0 "$NRP" import v7.txt -o v7.db
want 0 "$NRP" verify v7.db --json
want_json '.checks[] | select(.family == "munmap.lock") | .variant == "write" and .decisions == 4 and .agree == 4'
waits v7.db write -- $((920 + 420)) 875 0
# The record does not part find from detach: two-phase reads for 10 + 1000 + 8.
# threshold: least length of two-phase (>=), length of a section (>), down to a page
waits v7.db two-phase -- $((920 + 420)) 875 0
waits v7.db two-phase threshold=65536 -- $((0 + 438)) 868 25
waits v7.db two-phase threshold=65537 -- $((920 + 420)) 875 0
waits v7.db two-phase threshold=4096 -- $((0 + 438)) 868 25
waits v7.db sections threshold=65536 -- $((920 + 420)) 875 0
waits v7.db sections threshold=16384 -- $((164 + 217)) 119 30
want_json '.notes[] | select(.code == "lock_waits") | .classes.munmap.change_ns == 30000 and .classes.faults.change_ns == 381000 - 1340000'
want_json '.notes[] | select(.code == "lock_waits") | .write_held_ns == {"old":1040000,"new":1076000}' # 4 x 264 and the writer
waits v7.db sections threshold=16384 resched=0 -- $((956 + 456)) 911 0
want 2 "$NRP" replay v7.db --set hz=250 --new munmap.lock=two-phase --set new:munmap.lock.threshold=4095
want_error 'threshold'
# A waiter runs 50 us after the release: both faults, and the writer behind them.
waits v7.db write handoff_ns=50000 -- $((970 + 470)) 975 0
# The writer is in line from 650 on only: the second fault comes before.
waits v7.db downgrade -- $((0 + 440)) 870 0
waits v7.db downgrade wspin_ns=500000 -- 0 870 0
# Faults of user mode on another VMA; the writer still waits for the unmap.
waits v7.db write vma_locks=1 -- 0 870 0
# V-3: a fault at 2, a writer at 4, a fault at 6: together with the first one (5.3 on), or behind the writer.
{ request 11 1 0002 1020 1025 false; request 12 2 0004 1025 1045 true; request 13 3 0006 1020 1025 false; } >others.txt
unmap <others.txt >v3.txt
want 0 "$NRP" import v3.txt -o v3.db
waits v3.db write -- $((1018 + 1014)) 1021 0
waits v3.db write discipline=0 -- $((1018 + 1039)) 1021 0
waits v3.db downgrade -- $((8 + 4)) 1016 0
waits v3.db downgrade discipline=0 -- $((8 + 1034)) 1016 0

# A scan at 100 finds the unmap's write lock; the address space's next one, 0.1 s later, arms the 16 entries of its window.
pass() { # SECONDS EVENTS.., each "EVENT FIELDS" 1 us behind the one before
	local at=$1 us
	shift
	us=${at#*.}
	for event; do
		printf ' job-14 [004] %s.%s: %s %s mm=0xff11000000140f00\n' "${at%.*}" "$us" "${event%% *}:" "${event#* }"
		us=$(printf %06d $((10#$us + 1)))
	done
}
begun='(task_numa_work+0x0/0x90) jiffies=4294900000 mm_scan_seq=0 scan_offset=0 next_scan=4294900000 mm_users=4 nr_threads=4 scan_period=100 scan_period_max=60000 task_scan_seq=0 preferred_nid=-1'
ended='(task_numa_work+0x0/0x90 <- task_work_run+0x0/0x90) jiffies=4294900000'
asks='memcg_path= write=false'
{
	pass 30.000100 "scan_begin $begun" "mmap_lock_start_locking $asks" "mmap_lock_acquire_returned $asks success=false" "scan_end $ended"
	pass 30.100100 "scan_begin $begun" "mmap_lock_start_locking $asks" "mmap_lock_acquire_returned $asks success=true" \
		'range_begin (change_prot_numa+0x0/0x90) vma=0xff01 start=0x4bd000 end=0x4cd000 vm_start=0x4bd000 vm_end=0x4cd000 vm_flags=0x73 mm_scan_seq=0 scan_offset=0' \
		'range_end (change_prot_numa+0x0/0x90 <- task_numa_work+0x0/0x90) pages=16' "mmap_lock_released $asks" "scan_end $ended"
} >others.txt
unmap <others.txt >lost.txt
want 0 "$NRP" import lost.txt -o lost.db
want 0 "$NRP" verify lost.db --json
want_json '.lock_sequences | .impossible == 0 and .failed_tries == 0'
want 0 "$NRP" replay lost.db --set hz=250 --new munmap.lock=downgrade --json
want_json '.metrics[] | select(.name == "scans_lock_skipped") | .old.value == 1 and .new.value == 0 and .avoided.value == 1'
want_json '.metrics[] | select(.name == "scan_lock_delay") | .old == {"value":1.6,"lower":0,"upper":1.6,"class":"bounded","tier":2} and .new.value == 0 and .avoided.value == 1.6 and .avoided.lower == 0 and .avoided.upper == 1.6'
want_json '.metrics[] | select(.name == "scan_lock_delay_accesses") | .avoided.class == "modelled"'
want_json '.notes[] | select(.code == "scans_lost_to_the_lock") | .attempts == 2 and .old == 1 and .new == 0 and .address_spaces[0].mm == "ff11000000140f00" and .address_spaces[0].longest_period_ns == 100000000 and .address_spaces[0].record.pages == 16 and (.text | contains("lower estimate"))'
want_json '.notes[] | select(.code == "lock_blockers") | .blockers[0] | .munmap and .lost_scans == 1 and .victims == 0 and .worst_victim == null'
want 0 "$NRP" query lost.db 'SELECT time, tid, on_record, old_lane, new_lane, period_ns, gap_ns, followed, window_time, pages FROM lost_scan'
want_out '^30000101000,14,1,1,0,100000000,100000000,1,30100100000,16$'
# Also where the lanes do not differ in it.
want 0 "$NRP" replay lost.db --set hz=250 --new munmap.lock=write
want_out '^  scans_lost_to_the_lock$'

done_testing
