#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Texts that kernels, trace-cmd and perf wrote, below the folder that NRP_TRACES names: what import counts is what grep counts.
. "$(dirname "$0")/lib.sh"
[ -n "${NRP_TRACES-}" ] || {
	echo "skipped: NRP_TRACES does not name a folder of captures"
	exit 77
}

n=0
counted() { # FILE EVENTS LOST GAPS: as import --json says
	n=$((n + 1))
	want 0 "$NRP" import "$1" -o $n.db --name $n --json --accept-damage
	want_json ".captures[0] | .events == $2 and .lost_events == $3 and .loss_gaps == $4"
}
# Lines with a time stamp and an event's name, numbers in LOST lines, entries overwritten.
events() { grep -cE '[ \t](\[[0-9]+\][^:]*|[0-9]+[^ ]{3,9} +)[0-9.]+(us[+!]?)?( )?: +([0-9]+ +)?[a-zA-Z_:]+: ?' <<<"$1"; }
lost() { grep -oE '\[LOST [0-9]+' <<<"$1" | awk '{ n += $2 } END { print n + 0 }'; }
overwritten() { sed -nE 's/.*(entries-written: |us, #)([0-9]+)\/([0-9]+).*/\2 \3/p' <<<"$1" | awk '{ n += $2 - $1 } END { print n + 0 }'; }
# Events that are older than the one before on their CPU.
backwards() {
	sed -nE 's/.*\[([0-9]+)\][^:]* ([0-9]+\.[0-9]+): .*/\1 \2/p' <<<"$1" |
		awk '{ n += $1 in last && $2 < last[$1]; last[$1] = $2 } END { print n + 0 }'
}

for file in "$NRP_TRACES"/local/*.txt "$NRP_TRACES"/local/*.txt.gz \
	"$NRP_TRACES"/public/ftrace_text/{catapult,pmgraph,trappy}*; do
	[ -r "$file" ] || continue
	text=$(gzip -cdf "$file" 2>/dev/null)
	gaps=$(backwards "$text")
	# The last line is left out if it has no end.
	[ -n "$(tail -c 1 "$file")" ] && [[ $file != *.gz ]] && text=$(sed '$d' <<<"$text") && gaps=$((gaps + 1))
	counted "$file" "$(events "$text")" $(($(lost "$text") + $(overwritten "$text"))) $gaps
	want_json ".captures[0] | (.damage != null) == ($gaps > 0)"
	want_json ".captures[0].text.not_understood == 0"
done
[ $n -gt 0 ] || not_ok 'no text was found'

# A whole capture's text in the form of tracefs and of perf script gives the records of trace-cmd's.
folder=$NRP_TRACES/kernels
for capture in 6.12/thp 4.18/cow 7.2/munmap 5.10/hugetlb; do
	[ -r "$folder/$capture.dat" ] || continue
	rm -f ./*.db
	trace-cmd report -t "$folder/$capture.dat" 2>/dev/null >report.txt
	sed -E 's/^( *.*-[0-9]+ +)\[([0-9]+)\]( +[0-9]+\.[0-9]+: [a-z_]+:)/\1(    -) [\2] d..1.\3/' report.txt >trace.txt
	sed -E 's/-([0-9]+) +\[([0-9]+)\]( +[0-9]+\.[0-9]+: )(fault|filter|prepare|migrate|thp|task|scan|range|migration|preferred|munmap|mmap_downgrade|hugetlb)([a-z_]*: *\()/ \1 [\2]\3 1 numareplay:\4\5/' report.txt >perf.txt
	grep -q numareplay: perf.txt && grep -q 'd\.\.1\.' trace.txt && ok || not_ok 'no line was changed'
	for form in report trace perf; do
		want 0 "$NRP" import -q $form.txt -o $form.db --facts "$folder/$capture.facts"
		for kind in hint_fault scan_pass scan_range scan_skip migration migration_entry ratelimit migration_wait task_move \
			preferred task_life lock munmap mm_call page_fault hugetlb; do
			"$NRP" query $form.db "SELECT * FROM $kind ORDER BY time, cpu" || not_ok "$form: $kind"
		done >$form.csv
	done
	want_same report.csv trace.csv
	want_same report.csv perf.csv
done
done_testing
