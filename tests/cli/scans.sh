#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What verify says of the scanner: by rule as often as the kernel recorded it, and which variants do the same.
. "$(dirname "$0")/lib.sh"

recorded() { "$NRP" query m.db "SELECT count(*) FROM $1" | tail -1; }
rule() { printf '([.checks[] | select(.family == "scan.vma") | .rules[] | select(.rule | IN(%s)) | .%s] | add)' "$1" "$2"; }

# A kernel that records why a VMA is left out. Of what lets one through only the sum is on record.
want 0 "$NRP" import "$DATA"/munmap-6.12.dat -o m.db
want 0 "$NRP" verify m.db --json
for what in agree decisions; do
	for reason in 0:unsuitable 2:inaccessible 3:scan_delay 4:pid_inactive 6:seq_completed; do
		n=$(recorded "scan_skip WHERE pass_time IS NOT NULL AND reason = ${reason%%:*}")
		want_json "$(rule "\"${reason#*:}\"" $what) == $n"
	done
	want_json "$(rule '"first_two", "pid_active", "partial", "stale", "forced"' $what) == $(recorded 'scan_range WHERE pass_time IS NOT NULL')"
done
want_json '.checks[] | select(.family == "scan.vma") | .reproduced_by | index({"variant": "P3", "switched_off": null}) != null'
want_json '[.checks[] | select(.family == "scan.vma") | .reproduced_by[] | select(.switched_off == "forced")] == []'

# Without state of VMAs on record the oldest of equals is taken for the host's.
want 0 "$NRP" import "$DATA"/idle-5.10.dat -o i.db
want 0 "$NRP" verify i.db --json
want_json '.checks[] | select(.family == "scan.vma") | .variant == "P0" and .disagree == 0'

# The rules of scan.vma one after the other; report shows it again, alone and below a comparison.
want 0 "$NRP" replay m.db --ablation --json
want_json '.schema == "numareplay.ablation/1" and (.steps | length) == 7'
want_json '[.steps[] | select(.host)] | length > 0'
want_json '[.steps[] | select(.step == "+stale") | .host] == [true]'
want_json '[.steps[] | select(.discriminated == false) | .metrics[].change | .value == 0 and .class == "exact"] | all'
want_json '[.steps[0].metrics[].change] | all(. == null)'
mv out ablation.json
want 0 "$NRP" report m.db --json
want_same out ablation.json
want 0 "$NRP" replay m.db --ablation
mv out ablation.txt
want 0 "$NRP" report m.db
want_same out ablation.txt
want 0 "$NRP" replay m.db --new off --json
want_json 'has("ablation") | not'
want 0 "$NRP" report m.db --json
want_json '.schema == "numareplay.comparison/1" and .ablation.schema == "numareplay.ablation/1"'
want 0 "$NRP" report m.db
want_out 'each step adds a rule to the one before'
want 2 "$NRP" replay m.db --ablation --new off
want_error 'leave out --old and --new'
want 2 "$NRP" replay m.db --ablation --set scan.vma.pid=0
want_error 'takes no setting of scan.vma'
want 0 sqlite3 m.db 'SELECT count(*) FROM ablation_metric JOIN ablation_step USING (capture_id, step) JOIN ablation USING (capture_id)'
want_out '^35$'

# Modelled cadence: with the host's own shortest period, named, a lane is the record; with one of 1 ms it scans more.
own=$(awk '/scan_period_min_ms/ { print $2 }' "$DATA/idle-5.10.facts")
for min in "$own" 1; do
	want 0 "$NRP" replay i.db --new host --cadence modelled --set new:scan.period_min_ms="$min" --json
	want_json '.new.set.cadence == "modelled"'
	[ "$min" = 1 ] && compare='>' || compare='=='
	want_json ".notes[] | select(.code == \"cadence\") | .cadence == \"modelled\" and .passes_modelled $compare .passes"
	want_json '[.metrics[] | select(.name == "scan_passes") | .new.class] == ["modelled"]'
done
# Otherwise passes come as they did.
want 0 "$NRP" replay i.db --new scan.vma=P2 --json
want_json '.notes[] | select(.code == "cadence") | .cadence == "observed"'
want_json '.checks == null and (.new.set | has("cadence") | not)'
done_testing
