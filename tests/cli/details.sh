#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What comes beside the totals: per VMA, per outcome of a fault, per page, per process. Counted again by SQL over the records.
. "$(dirname "$0")/lib.sh"

rows() { "$NRP" query "$1" "$2" | tail -n +2; }
# same_rows DB SQL SQL: both give the same rows, and some.
same_rows() {
	rows "$1" "$2" >a.csv
	rows "$1" "$3" >b.csv
	[ -s a.csv ] && ok || not_ok "no rows: $2"
	cmp -s a.csv b.csv && ok || not_ok "$(diff a.csv b.csv | head -5) for $2"
}
outcomes="SELECT CASE WHEN moved = 1 THEN 'moved' WHEN ratelimited THEN 'limited'
	WHEN attempt THEN 'failed' WHEN src_nid = this_nid THEN 'local'
	ELSE 'refused' END AS outcome, count(*), sum(pages) FROM hint_fault GROUP BY 1 ORDER BY 1"
stored_outcomes="SELECT outcome, CAST(value AS INTEGER), pages FROM fault_outcome WHERE lane = 'record' AND value > 0
	AND outcome <> 'moved_back' ORDER BY 1"
faulters="SELECT nodes, count(*), sum(n) FROM (SELECT count(DISTINCT this_nid) AS nodes, count(*) AS n FROM hint_fault
	GROUP BY mm, addr / 4096) GROUP BY 1"
stored_faulters="SELECT nodes, pages, faults FROM faulter_nodes WHERE pages_of = 'all' ORDER BY 1"
processes="SELECT mm, count(*), sum(coalesce(moved, 0) * pages) FROM hint_fault GROUP BY 1 ORDER BY 1"
stored_processes="SELECT mm, CAST(max(value) FILTER (WHERE measure = 'hint_faults') AS INTEGER) AS n,
	CAST(max(value) FILTER (WHERE measure = 'migrated_pages') AS INTEGER) FROM lane_process WHERE lane = 'record'
	GROUP BY 1 HAVING n > 0 ORDER BY 1"

# A fork's copy-on-write pages: six processes, waits, and a lane that leaves the pages alone.
want 0 "$NRP" import -q "$DATA/cowmix-4.18.dat" -o c.db
want 0 "$NRP" replay c.db --new scan.pte=F1 --json
want_json '.notes[] | select(.code == "fault_outcomes") | .known == 2635 and .leads_nowhere <= 2635 and
	([.rows[] | select(.outcome != "moved_back") | .faults] | add) == 2635'
want_json '.notes[] | select(.code == "process_spread") | .processes >= 6 and (.rows | length) == 12 and
	([.rows[] | select(.measure == "hint_faults") | .percentile] == [5, 50, 95])'
# No lane has more than its total may be, and each its central world's share.
want_json '(.metrics[] | select(.name == "hint_faults") | .new) as $total | .notes[] | select(.code == "fault_outcomes") |
	[.rows[] | select(.new != null and .outcome != "moved_back") | .new] | ([.[].value] | add) == $total.value and
	all(.lower <= .value and .value <= .upper and .upper <= $total.upper)'
want_json '.notes[] | select(.code == "process_spread") | [.rows[] | select(.new != null) | .new] | length == 12 and
	all(.lower <= .value and .value <= .upper)'
same_rows c.db "$outcomes" "$stored_outcomes"
same_rows c.db "$faulters" "$stored_faulters"
same_rows c.db "$processes" "$stored_processes"
same_rows c.db "SELECT mm, count(*), sum(end_time - time) FROM migration_wait GROUP BY 1 ORDER BY 1" \
	"SELECT mm, CAST(max(value) FILTER (WHERE measure = 'page_migration_waits') AS INTEGER) AS n,
	CAST(max(value) FILTER (WHERE measure = 'page_migration_wait_ns') AS INTEGER)
	FROM lane_process WHERE lane = 'record' GROUP BY 1 HAVING n > 0 ORDER BY 1"
# A report has the same tables as the replay that it reads.
want 0 "$NRP" replay c.db --new scan.pte=F1
sed 1d out >replay.txt
want_out '^PER ADDRESS SPACE +PERCENTILE +ON RECORD'
want_out '^moved_back '
want_out '^shared +2 '
want 0 "$NRP" report c.db
sed 1d out >report.txt
want_same replay.txt report.txt

# A page of one process that goes back and forth counts as often as it comes back.
want 0 "$NRP" import -q "$DATA/shared-5.10.dat" -o s.db
want 0 "$NRP" replay s.db --new migrate.filter=6.1 --json
want_json '[.notes[].code] | index("process_spread") == null and index("starved_vmas") == null'
same_rows s.db "$outcomes" "$stored_outcomes"
same_rows s.db "$faulters" "$stored_faulters"
same_rows s.db "$processes" "$stored_processes"
# Time from begin to end of each pass; a lane's is that of its ranges and entries.
want_json "(.metrics[] | select(.name == \"scan_time\") | .old) | .class == \"exact\" and
	.value == $(rows s.db 'SELECT sum(end_time - time) FROM scan_pass')"

# A kernel that records no skips: ranges say how often a VMA was armed to its end, and nothing else is told.
want 0 "$NRP" import -q "$DATA/idle-5.10.dat" -o i.db
want 0 "$NRP" verify i.db --json
want_json '.starved_vmas | .eligible > 0 and .starved == null and .rows == []'
same_rows i.db "SELECT mm, vm_start, count(*), sum(pages), sum(\"end\" = vm_end), max(pass_time) FILTER (WHERE \"end\" = vm_end)
	FROM scan_range WHERE pass_time IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2" \
	"SELECT mm, vm_start, armed_ranges, armed_pages, completed, last_complete FROM scan_vma WHERE lane = 'record' ORDER BY 1, 2"
same_rows i.db "SELECT count(*), 0, 0, 0 FROM scan_vma" \
	"SELECT count(*), count(visits), count(row_pid_inactive), count(starved) FROM scan_vma"
want 0 "$NRP" replay i.db --new scan.vma=P3 --json
# P0 filters nothing: no VMA can starve.
want_json '.metrics[] | select(.name == "starved_vmas") | .old.class == "exact" and .old.value == 0 and .new.lower == 0'
want_json '.metrics[] | select(.name == "scan_time") | .old.class == "exact" and .new.class == "modelled" and
	.new.lower <= .new.value and .new.value <= .new.upper'
want_json '.notes[] | select(.code == "scan_cost") | .ns_per_range >= 0 and .ns_per_entry >= 0 and .ranges > 0 and .explained <= 1'
same_rows i.db "SELECT count(*) FROM scan_vma WHERE lane = 'record'" "SELECT count(*) FROM scan_vma WHERE lane = 'new'"
same_rows i.db "SELECT lane, count(*) FROM scan_divergence" "SELECT 'new', count(DISTINCT mm) FROM scan_pass WHERE ranges > 0"
want_json '.notes[] | select(.code == "first_added_scan") // {spaces: []} | [.spaces[].time]'
"$NRP" query i.db "SELECT added_time FROM scan_divergence WHERE added_time IS NOT NULL" | tail -n +2 >a.csv
jq '.notes[] | select(.code == "first_added_scan") | .spaces[].time' out >b.csv
want_same a.csv b.csv
same_rows i.db "SELECT mm, diverged, uncertain, added_time FROM scan_divergence WHERE diverged" \
	"SELECT r.value ->> 'mm', r.value ->> 'diverged', r.value ->> 'uncertain', r.value ->> 'added_time'
	FROM note, json_each(detail, '\$.rows') r WHERE code = 'scan_divergence'"
# The same replay again replaces its rows.
rows i.db 'SELECT count(*) FROM scan_vma' >a.csv
want 0 "$NRP" replay i.db --new scan.vma=P3
rows i.db 'SELECT count(*) FROM scan_vma' >b.csv
want_same a.csv b.csv
done_testing
