#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# mmap_lock events of real kernels, below the folder that NRP_TRACES names. A kernel takes no lock twice and releases none
# that is free: what is counted as impossible, without lost events, is a mistake of the reader. Other numbers are
# counted from the records in SQL.
. "$(dirname "$0")/lib.sh"
[ -n "${NRP_TRACES-}" ] || {
	echo "skipped: NRP_TRACES does not name a folder of captures"
	exit 77
}

capture() { # NAME
	rm -f v.db
	want 0 "$NRP" import "$NRP_TRACES/$1.dat" -o v.db -q
}
number() { # SQL
	"$NRP" query v.db "$1" | tail -n 1
}

for name in kernels/6.1/munmap kernels/6.12/munmap kernels/7.2/munmap policy-pairs/munmap-d0v0 policy-pairs/munmap-d1v0 \
	policy-pairs/munmap-d1v1 policy-pairs/munmap-big-d0v0 policy-pairs/munmap-big-d1v0 policy-pairs/munmap-big-d1v1; do
	capture "$name"
	requests=$(number 'SELECT count(*) FROM lock WHERE op = 0')
	lost=$(number 'SELECT count(*) FROM lock l JOIN scan_pass p ON p.tid = l.tid AND p.mm = l.mm
		AND l.time BETWEEN p.time AND p.end_time WHERE l.op = 2')
	# A downgrade is a grant to read that the task did not ask for: its last event but for page tables was a grant to write.
	held=$(number "WITH e AS (SELECT tid, mm, time, op, write, lag(op) OVER w AS before, lag(write) OVER w AS wrote,
		lag(time) OVER w AS since FROM lock WINDOW w AS (PARTITION BY tid, mm ORDER BY time, rowid))
		SELECT coalesce(sum(time - since), 0) FROM e WHERE before = 1 AND wrote = 1 AND op IN (1, 3)")
	want 0 "$NRP" verify v.db --json
	want_json ".lock_sequences | .impossible == 0 and .undecided == 0 and .killed_waits == 0 and .requests == $requests"
	want_json '.lock_sequences | .began_before == 0 and .released_by_others == 0 and .touched_by_lost_events == 0'
	want 0 "$NRP" replay v.db --new munmap.lock=sections --set new:munmap.lock.threshold=4096 --json
	want_json ".metrics[] | select(.name == \"scans_lock_skipped\") | .old.value == $lost"
	want_json "[.notes[] | select(.code == \"lock_waits\") | .write_held_ns.old == $held] | . == [] or . == [true]"
	want 0 "$NRP" query v.db 'SELECT count(*) FROM lost_scan WHERE on_record'
	want_out "^$lost$"
done

# A scan that came while an unmap had downgraded the lock finds it written to in a lane that does not downgrade, unless
# its thread comes later there. In this capture none does.
capture kernels/6.12/munmap
while_read=$(number "WITH e AS (SELECT mm, time, op, write, lag(op) OVER w AS before, lag(write) OVER w AS wrote,
	lead(time) OVER w AS released FROM lock WINDOW w AS (PARTITION BY tid, mm ORDER BY time, rowid))
	SELECT count(*) FROM e JOIN lock l ON l.mm = e.mm AND l.op = 0 AND l.time >= e.time AND l.time < e.released
	JOIN scan_pass p ON p.tid = l.tid AND p.mm = l.mm AND l.time BETWEEN p.time AND p.end_time
	WHERE e.before = 1 AND e.wrote = 1 AND e.op = 1 AND e.write = 0")
want 0 "$NRP" replay v.db --new munmap.lock=write --json
want_json "$while_read == 5 and (.metrics[] | select(.name == \"scans_lock_skipped\") | .new.value == $while_read)"
want_json '.metrics[] | select(.name == "scan_lock_delay") | .avoided.lower < 0 and .avoided.upper == 0 and .new.upper == -.avoided.lower'
want 0 "$NRP" query v.db 'SELECT count(*) FROM lost_scan WHERE new_lane AND NOT old_lane AND followed AND gap_ns >= period_ns'
want_out '^5$'
# What each window would have armed is what its pass did arm.
want 0 "$NRP" query v.db 'SELECT count(*) FROM lost_scan s JOIN scan_pass p ON p.mm = s.mm AND p.time = s.window_time
	WHERE p.armed_pages = s.pages AND s.time BETWEEN p.time AND p.end_time'
want_out '^5$'

# Without the events it is said what to record.
for name in kernels/4.18/munmap kernels/5.10/munmap; do
	[ -e "$NRP_TRACES/$name.dat" ] || continue
	capture "$name"
	want 0 "$NRP" verify v.db --json
	want_json '.lock_sequences == null and .lock_contention == null'
	want 0 "$NRP" replay v.db --new munmap.lock=write --json
	want_json '[.notes[] | select(.code == "locks_not_recorded") | .text | contains("not observable") and contains("mmap_lock:*")] == [true]'
done
done_testing
