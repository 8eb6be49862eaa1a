#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Kernels whose scanner is known, below the folder that NRP_TRACES names: the file's name, or the README there, says it.
. "$(dirname "$0")/lib.sh"
[ -n "${NRP_TRACES-}" ] || {
	echo "skipped: NRP_TRACES does not name a folder of captures"
	exit 77
}

verified() { # CAPTURE
	rm -f v.db
	want 0 "$NRP" import "$NRP_TRACES/$1" -o v.db -q
	want 0 "$NRP" verify v.db --json
}
scan='.checks[] | select(.family == "scan.vma")'

# One access to memory a scan, and nothing that tells the newer variants apart.
for kernel in 6.12 7.2; do
	verified kernels/$kernel/numa01-default.dat
	want_json '[.notes[] | select(.code == "scan_not_discriminated" and (.text | contains("no decision discriminates P1..P4")))] | length == 1'
done
# P2 and P3 built with the PID filter switched off.
verified policy-pairs/idle-vma0.dat
want_json "$scan | .decisions == .agree and .decisions > 100 and (.variant | endswith(\" without pid\"))"
want_json "[$scan | .reproduced_by[] | select(.variant == \"P2\" or .variant == \"P3\")] == [{\"variant\": \"P2\", \"switched_off\": \"pid\"}, {\"variant\": \"P3\", \"switched_off\": \"pid\"}]"
# P2 without partial scans: the capture has no VMA scanned in part, so that P2 does the same.
verified policy-pairs/idle-vma1.dat
want_json "$scan | .reproduced_by | index({\"variant\": \"P2\", \"switched_off\": \"partial\"}) != null"
want_json "$scan | .reproduced_by | index({\"variant\": \"P3\", \"switched_off\": null}) == null"
# What makes every recorded decision is the host's scanner, whatever it is called.
rm -f v.db
want 0 "$NRP" import "$NRP_TRACES/policy-pairs/idle-vma2.dat" -o v.db -q
want 0 "$NRP" replay v.db --old scan.vma=P2 --new scan.vma=P3 --set new:scan.vma.stale=0 --json
want_json '.metrics[] | select(.name == "hint_faults") | .avoided | .value == 0 and .class == "exact"'
want 0 "$NRP" replay v.db --old scan.vma=P2 --new scan.vma=P3 --set new:scan.vma.start_seq=0 --json
want_json '.metrics[] | select(.name == "hint_faults") | .avoided.class != "exact"'
for pair in 2 3; do
	verified policy-pairs/idle-vma$pair.dat
	want_json "$scan | .variant == \"P$pair\" and .disagree == 0"
	want_json "[$scan | .rules[] | select(.decisions != .agree)] == []"
done

# Six VMAs that P2 leaves out: each counted again over the records, and the worst first.
rows() { "$NRP" query v.db "$1" | tail -n +2; }
verified policy-pairs/idle-vma2.dat
want_json '.starved_vmas | .eligible == 9 and .starved == 6 and (.rows | length) == 6 and
	all(.rows[]; .pid_inactive == .never_set + .cleared + .others) and
	([.rows[].sequences_since] | . == (sort | reverse))'
rows "WITH last AS (SELECT mm, vm_start, max(pass_time) AS armed, max(pass_time) FILTER (WHERE \"end\" = vm_end) AS complete,
		count(*) AS ranges, count(DISTINCT pass_time) AS passes, sum(pages) AS pages, sum(\"end\" = vm_end) AS completed
		FROM scan_range WHERE pass_time IS NOT NULL GROUP BY 1, 2)
	SELECT mm, vm_start, complete, ranges, passes, pages, completed,
		(SELECT count(*) FROM scan_skip s WHERE s.mm = l.mm AND s.vm_start = l.vm_start AND reason = 4 AND pass_time > l.armed),
		(SELECT count(*) FROM scan_skip s WHERE s.mm = l.mm AND s.vm_start = l.vm_start AND reason = 4),
		(SELECT count(*) FROM scan_pass p WHERE p.mm = l.mm AND p.ranges + p.skips > 0 AND p.time > l.complete),
		(SELECT max(mm_scan_seq) FROM scan_pass p WHERE p.mm = l.mm) -
		(SELECT mm_scan_seq FROM scan_pass p WHERE p.mm = l.mm AND p.time = l.complete) AS sequences
	FROM last l ORDER BY 1, 2" >a.csv
rows "SELECT mm, vm_start, last_complete, armed_ranges, armed_passes, armed_pages, completed, row_pid_inactive,
	skips_pid_inactive, passes_since, sequences_since FROM scan_vma WHERE replay_id IS NULL ORDER BY 1, 2" >b.csv
want_same a.csv b.csv
rows 'SELECT count(*), min(rank), max(rank), min(row_pid_inactive) > 50 FROM report_starved' >a.csv
echo 6,1,6,1 >b.csv
want_same a.csv b.csv
want 0 "$NRP" replay v.db --new scan.vma=P3 --json
want_json '.metrics[] | select(.name == "starved_vmas") | .old == {"value": 6, "lower": 6, "upper": 6, "class": "exact", "tier": 3} and .new.value == 0'
want_json '.notes[] | select(.code == "starved_vmas") | .lanes.new == {"starved": 0, "certain": 9}'
# The real P3 kernel took 47 ms, and the real F1 kernel 10.6 ms.
want_json '.metrics[] | select(.name == "scan_time") | .new | .lower <= 47152741 and .upper >= 47152741'
want 0 "$NRP" replay v.db --new migrate.ratelimit=spin --json
want_json '.metrics[] | select(.name == "starved_vmas") | .old.value == 6 and .old.class == "exact"'
# P3 itself leaves none out for long.
verified policy-pairs/idle-vma3.dat
want_json '.starved_vmas | .starved == 0 and .rows == []'
rm -f v.db
want 0 "$NRP" import "$NRP_TRACES/policy-pairs/cow-skip0.dat" -o v.db -q
want 0 "$NRP" replay v.db --old scan.pte=F0 --new scan.pte=F1 --json
want_json '.metrics[] | select(.name == "scan_time") | .new | .lower <= 10647763 and .upper >= 10647763'

# Moves that a later one took back, of pages that one address space maps.
rm -f v.db
want 0 "$NRP" import "$NRP_TRACES/policy-pairs/idlemix-P2-s1.dat" -o v.db -q
want 0 "$NRP" replay v.db --new scan.vma=P3 --json
rows "SELECT count(*) FROM (SELECT attempt_nid, lag(src_nid) OVER (PARTITION BY mm, addr / 4096 ORDER BY time + attempt_delay)
	AS came FROM hint_fault WHERE moved = 1) WHERE came = attempt_nid" >a.csv
rows "SELECT CAST(value AS INTEGER) FROM fault_outcome WHERE lane = 'record' AND outcome = 'moved_back'" >b.csv
want_same a.csv b.csv
done_testing
