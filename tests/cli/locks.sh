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

done_testing
