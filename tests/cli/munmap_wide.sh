#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Unmaps while threads fault, below the folder that NRP_TRACES names. Waits and unmaps were counted from the text of
# trace-cmd by an independent reader: from the last mmap_lock_start_locking to mmap_lock_acquire_returned with success.
. "$(dirname "$0")/lib.sh"
[ -n "${NRP_TRACES-}" ] || {
	echo "skipped: NRP_TRACES does not name a folder of captures"
	exit 77
}

capture() { # NAME
	rm -f v.db
	want 0 "$NRP" import "$NRP_TRACES/$1.dat" -o v.db -q
}
replay() { # NEW [SET]
	want 0 "$NRP" replay v.db --new "munmap.lock=$1" ${2:+--set "new:munmap.lock.$2"} --json
}
metric() { # NAME CONDITION
	want_json ".metrics[] | select(.name == \"$1\") | $2"
}
class() { # CLASS CONDITION
	want_json ".notes[] | select(.code == \"lock_waits\") | .classes.$1 | $2"
}
noted() { # CODE CONDITION
	want_json "[.notes[] | select(.code == \"$1\") | $2] == [true]"
}
check='.checks[] | select(.family == "munmap.lock")'

# The host's own rule: order and waits; what is not explained is listed.
while read -r name variant requests; do
	capture "$name"
	want 0 "$NRP" verify v.db --json
	want_json "$check | .variant == \"$variant\" and .decisions == $requests"
	want_json "$check | .agree >= 0.99 * .decisions"
	noted lock_order '.text | capture("(?<n>[0-9]+) of (?<all>[0-9]+) requests") | (.n | tonumber) >= 0.999 * (.all | tonumber)'
	noted lock_order '.text | capture("(?<n>[0-9]+) of (?<all>[0-9]+) scans") | .n == .all'
	noted lock_rule ".text | contains(\"of $requests recorded grants\") and contains(\" 0 against the rule;\")"
	replay host
	metric lock_wait_readers_ns '.avoided | .value == 0 and .class == "exact"'
	metric lock_wait_readers_ns '.old.class != "exact" and .new.class != "exact"'
done <<-END
	kernels/6.1/munmap downgrade 6814
	kernels/6.12/munmap downgrade 118
	kernels/7.2/munmap downgrade 102
	policy-pairs/munmap-d0v0 write 76582
	policy-pairs/munmap-d1v0 downgrade 53002
	policy-pairs/munmap-d1v1 downgrade 125
	policy-pairs/munmap-big-d0v0 write 58601
	policy-pairs/munmap-big-d1v0 downgrade 5766
	policy-pairs/munmap-big-d1v1 downgrade 99
END

# Readers took locks that stood free, as they could not up to 5.2.
capture policy-pairs/munmap-d0v0
want 0 "$NRP" verify v.db --json
noted lock_rule '.text | capture("before (?<n>[0-9]+) would be against it") | (.n | tonumber) > 100'

# 6.1: below the stack no unmap gives the write lock up, whatever the variant.
capture kernels/6.1/munmap
want 0 "$NRP" verify v.db --json
noted munmap_kept_write '.text | contains("8 of 8") and contains("neighbour")'
replay write
noted munmap_nothing_to_gain '.unmaps == 8 and .contended_unmaps == 8 and (.text | contains("neighbour"))'
metric lock_wait_readers_over_2ms '.old.value == 27 and .avoided.value == 0'

# What the kernel with the downgrade did is in the interval that the kernel without one predicts.
capture policy-pairs/munmap-d0v0
replay downgrade
metric lock_wait_readers_over_2ms '.old.value == 26 and .new.lower <= 9 and .new.upper >= 9 and .new.upper <= 26'
metric lock_wait_readers_ns '.avoided.lower > 0 and .avoided.class == "modelled"'
class readers '.new.over_2ms_ns | .[0] <= 30844332 and .[2] >= 30844332'
class readers '.old.over_2ms_ns[0] / 674131184 | . > 0.999 and . < 1.001'
noted lock_blockers '.behind_munmap_ns > 100 * .behind_writers_ns and .blockers[0].munmap and .blockers[0].length == 167772160'
replay two-phase # begins at 1 GiB
metric lock_wait_readers_ns '.avoided | .value == 0 and .class == "exact"'
noted munmap_nothing_to_gain '.unmaps == 8'
replay two-phase threshold=4096
metric lock_wait_readers_over_2ms '.new.upper < 26'
replay two-phase-as-posted
metric lock_wait_readers_ns '.avoided | .value == 0 and .class == "exact"'
replay downgrade vma_locks=1 # no reader waits for an unmap: the longest waits less than an unmap's write part
metric lock_wait_readers_over_2ms '.new.upper == 0'
metric lock_wait_faults_over_2ms '.new.upper == 0'

capture policy-pairs/munmap-big-d0v0
replay downgrade
metric lock_wait_readers_over_2ms '.old.value == 11 and .new.lower <= 4 and .new.upper >= 4 and .new.upper <= 11'
class readers '.new.over_2ms_ns | .[0] <= 9695739 and .[2] >= 9695739'
replay two-phase
metric lock_wait_readers_over_2ms '.new.upper < 11 and .avoided.lower > 0'
replay downgrade vma_locks=1
metric lock_wait_readers_over_2ms '.new.upper == 0'

# With locks of VMAs most faults never ask: the report says how many, and no reader waits for an unmap.
for name in policy-pairs/munmap-d1v1 policy-pairs/munmap-big-d1v1 kernels/6.12/munmap kernels/7.2/munmap; do
	capture "$name"
	replay write
	noted faults_without_lock '.without > 0.99 * .page_faults'
	metric lock_wait_readers_over_2ms '.old.value == 0'
	want_json '[.notes[] | select(.code == "lock_blockers") | .behind_munmap_ns] | . == [] or . == [0]'
done

# 5.10 has no events of the lock: phases, and what cannot be told.
capture kernels/5.10/munmap
want 0 "$NRP" verify v.db --json
noted locks_not_recorded '.text | contains("8 unmaps")'
want 0 "$NRP" query v.db 'select count(*) from munmap where zap_time < pgtables_time and pgtables_time < flushed_time and len >= 167772160'
want_out '^8$'
replay write
noted locks_not_recorded 'true'
metric lock_wait_readers_ns '.avoided.class == "not_observable"'
done_testing
