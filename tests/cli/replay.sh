#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# verify, replay and report: documents, exit status, determinism.
. "$(dirname "$0")/lib.sh"

"$NRP" import -q "$DATA/limiter-6.12.dat" "$DATA/shared-4.18.dat" "$DATA/cowmix-4.18.dat" -o a.db
L="--capture limiter-6.12"
S="--capture shared-4.18"

# verify: the fixed document; every rule of the family, exercised or not.
want 0 "$NRP" verify a.db $L --json
want_json '.schema == "numareplay.verify/1" and .verdict == "agrees" and .kernel == "6.12.95"'
want_json '.checks[0] | .family == "migrate.filter" and .variant == "6.12" and .indistinguishable == ["6.1"]'
want_json '.checks[0] | .decisions == 3109 and .agree == 3109 and .disagree == 0 and .undecided == 0'
want_json '.checks[0].rules | map(.rule) == ["D0","D1","D2","D3","D4","D5","D6","D7","D8","D9"]'
want_json '.checks[0].others | map(.variant) == ["4.18","4.19","6.1"]'
want_json '.counters[] | select(.name == "numa_hint_faults") | .trace == 18448 and .vmstat == 18448 and .difference == 0 and .explained == null'
want_json '.coverage.pages_seen | length == 3'
want_json '.lost_events == 0 and .probe_misses == null and .unjoined_events == 0'
want 0 "$NRP" verify a.db $S --json
want_json '.checks[1] | .family == "migrate.ratelimit" and .variant == "spin" and .quota == 256 and .agree == 1703'
want_json '.checks[1].indistinguishable == ["trylock-stretch"]'
want_json '.counters[] | select(.name == "numa_pages_migrated") | .explained == "window_edges"'
# vmstat counts more PTE updates than the window's edges allow: the answer is no.
want 1 "$NRP" verify a.db --capture cowmix-4.18 --json
want_json '.verdict == "disagrees"'
want_json '.counters[] | select(.name == "numa_pte_updates") | .explained == null'

# replay: the fixed document; every published metric; identity; pairs.
want 0 "$NRP" replay a.db $L --old migrate.ratelimit=none --new migrate.ratelimit=spin --set quota=200 --json
cp out first.json
want_json '.schema == "numareplay.comparison/1" and .capture == "limiter-6.12" and .open_loop'
want_json '.new.variants["migrate.ratelimit"] == "spin" and .new.set["migrate.ratelimit.quota"] == 200'
want_json '[.metrics[].name] | contains(["hint_faults","hint_faults_remote","pte_updates","hint_fault_pages","migration_attempt_pages","migrated_pages","migration_attempts","migrations_admitted","migrations_denied","remote_accesses","remote_residency","scan_passes","scan_ranges","scans_lock_skipped","starved_vmas","cpu_cost","page_migration_waits","page_migration_wait_ns","lock_wait_faults_ns","lock_wait_readers_ns","lock_wait_writers_ns","lock_wait_munmap_ns","lock_wait_faults_over_2ms","hugetlb_isolated","hugetlb_migrated","smaps_private_hugetlb_bytes","smaps_shared_hugetlb_bytes"])'
want_json '.metrics[] | select(.name == "migrated_pages") | .old.value == 3063 and .old.class == "exact" and .new.class == "bounded" and .new.lower <= .new.value and .new.value <= .new.upper'
want_json '.metrics[] | select(.name == "migrated_pages") | .avoided.lower == .old.value - .new.upper and .avoided.upper == .old.value - .new.lower'
want_json '[.metrics[] | .old, .new, .avoided | select(.class == "exact") | .value == .lower and .value == .upper] | all'
want_json '[.metrics[] | .old, .new, .avoided | select(.class == "not_observable") | .value == null and .lower == null and .upper == null] | all'
want_json '.metrics[] | select(.name == "lock_wait_munmap_ns") | .avoided == {"value":0,"lower":0,"upper":0,"class":"exact","tier":3}'
want_json '.notes[] | select(.code == "verdict") | (.cost | keys) == ["hint_faults", "migrated_pages", "page_migration_wait_ns", "page_migration_waits"]'
want_json '.notes[] | select(.code == "e0_decisions") | .admitted + .denied == 3109'
want_json '[.notes[].code] | contains(["sticky_scan_period","first_window_unknown","divergence","open_loop"])'
want 0 "$NRP" report a.db $L --format json
want_same out first.json
want 0 "$NRP" replay a.db $L --old migrate.ratelimit=none --new migrate.ratelimit=spin --set quota=200 --json
want_same out first.json
want 0 "$NRP" query a.db 'SELECT count(*) FROM replay'
want_out '^1$'
want 0 "$NRP" query a.db 'SELECT count(*) FROM decision WHERE old_answer = 1 AND new_answer = 0'
want_out "^$(jq '.notes[] | select(.code == "e0_decisions") | .denied' first.json)\$"
want 0 "$NRP" query a.db "SELECT new_value FROM report_metrics WHERE metric = 'migrated_pages'"
want_out "^$(jq '.metrics[] | select(.name == "migrated_pages") | .new.value' first.json)(\.0)?\$"

# The kernel's default quota is never reached: identical, with the reason.
want 0 "$NRP" replay a.db $L --new migrate.ratelimit=spin --json
want_json '.notes[] | select(.code == "identical_on_trace") | .max_pages_in_window <= .quota and .window_ticks == 26'
want_json '[.metrics[].avoided | .value == 0 and .class == "exact"] | all'

# The host's own limiter, its quota taken from the evidence; off; families that are not replayed.
want 0 "$NRP" replay a.db $S --new migrate.ratelimit=none --json
want_json '.old.set["migrate.ratelimit.quota"] == 256'
want_json '.metrics[] | select(.name == "migrations_denied") | .old.value == 49 and .old.class == "exact" and .new.value == 0'
want_json '[.notes[] | select(.code == "balancing_off") | .metrics[] | {(.name): [.value, .lower, .upper]}] | add | .hint_faults == [0, 0, 0] and .migrated_pages == [0, 0, 0]'
want_json '[.notes[] | select(.code == "balancing_off")] | length == 1'
cp out beside.json
want 0 "$NRP" replay a.db $S --new off --json
# the note beside other lanes has the numbers of this lane, which has no such note
want_json '[.notes[] | select(.code == "balancing_off")] == []'
want_json "[.metrics[] | select(.name == \"remote_accesses\" or .name == \"remote_residency\") | .new | [.value, .lower, .upper]] ==
	$(jq -c '[.notes[] | select(.code == "balancing_off") | .metrics[] | select(.name | startswith("remote_a") or startswith("remote_r")) | [.value, .lower, .upper]]' beside.json)"
want_json '.metrics[] | select(.name == "hint_faults") | .new == {"value":0,"lower":0,"upper":0,"class":"exact","tier":3}'
want 0 "$NRP" replay a.db $L --old linux-6.12 --new linux-7.2 --json
want_json '[.notes[] | select(.code == "family_not_replayed") | .family] | index("hugetlb.count")'
want_json '.metrics[] | select(.name == "hugetlb_migrated") | .new.class == "not_observable" and .avoided.class == "not_observable"'
# Shared memory is scanned since 7.2: what that adds is not on record. It is not more than all VMAs
# that were left out as unsuitable, in each pass; how remote it is, nobody knows.
want_json '[.notes[] | select(.code == "shared_memory") | .lane] == ["new"]'
want_json '.metrics[] | select(.name == "hint_faults") | .new.upper > .new.value and .avoided.lower < 0'
want_json '.metrics[] | select(.name == "remote_residency") | .new.upper == null and .avoided.lower == null'
# A variant of the filter of entries with a rule off is none of the host's; unknown ones are refused.
want 0 "$NRP" replay a.db $L --new scan.pte=F3 --set new:scan.pte.cow=0 --json
want_json '[.notes[] | select(.code == "unobserved_entries") | .lane] == ["new"]'
want_json '.new.set["scan.pte.cow"] == 0'
want 2 "$NRP" replay a.db $L --new scan.pte=F3 --set new:scan.pte.cow=2
want_error 'scan.pte.cow takes a number of 0 or 1 from 0 to 1'
want 2 "$NRP" replay a.db $L --new scan.pte=F3 --set new:scan.pte.stale=0
want_error "no parameter 'scan.pte.stale'"
want 2 "$NRP" replay a.db $L --new host --set scan.size_mb=0
want_error "scan.size_mb takes a number of MB from 1 to 65536, not '0'"
want 2 "$NRP" replay a.db $L --new host --set scan.delay_ms=3600001
want_error 'scan.delay_ms takes a number of ms from 0 to 3600000'
# The host's own size of a window changes nothing, another one does.
want 0 "$NRP" replay a.db $L --new host --set new:scan.size_mb=256 --json
want_json '.metrics[] | select(.name == "scan_ranges") | .avoided == {"value":0,"lower":0,"upper":0,"class":"exact","tier":3}'
want 0 "$NRP" replay a.db $L --new host --set new:scan.size_mb=1 --json
want_json '.new.set["scan.size_mb"] == 1 and (.old.set | has("scan.size_mb") | not)'
want_json '.metrics[] | select(.name == "scan_ranges") | .new.value != .old.value and .avoided.class == "bounded"'
want 0 "$NRP" replay a.db $L --new scan.pte=F3 --set new:scan.pte.cow=0 --json
want_json '.notes[] | select(.code == "unobserved_entries") | has("unarmed_entries") and has("narrow_by")'
want 0 "$NRP" replay a.db $L --new host --set new:scan.size_mb=1 --json
# A profile of the host's own kernel: what decides here is the same.
want 0 "$NRP" replay a.db $L --new linux-6.12 --json
want_json '[.metrics[] | select(.name == ("hint_faults", "migrated_pages", "remote_accesses")) | .avoided | .value == 0 and .class == "exact"] | all'

# Without --capture, and with several replays.
want 2 "$NRP" replay a.db --new migrate.ratelimit=spin
want_error 'limiter-6.12.*--capture'
want 0 "$NRP" report a.db $L --replay all
want_out 'migrate.ratelimit=spin'
want 2 "$NRP" report a.db $L --replay 999
want_error 'no replay 999'
want 2 "$NRP" report a.db $L --replay x
want_error "takes a number or all"
want 0 "$NRP" report a.db --capture cowmix-4.18
want_out 'nothing replayed yet'
want_out 'coverage: '
want_out '^migrate.filter: 4.18'
want 0 "$NRP" report a.db --capture cowmix-4.18 --json
want_json '.schema == "numareplay.summary/1" and .verify.verdict == "disagrees" and .replays == []'
want 0 "$NRP" report a.db $L --replay all --json
want_json 'length == 7 and all(.schema == "numareplay.comparison/1")'
want 0 "$NRP" report a.db $L -o report.txt
[ -s report.txt ] && ok || not_ok 'report -o wrote nothing'

# A limiter that the host does not report: without its name any failure may be a refusal.
"$NRP" import -q "$DATA/limiter-spin-6.12.dat" -o spin.db
want 0 "$NRP" replay spin.db --new off --json
want_json '(.notes[] | select(.code == "unexplained_failures") | .failed) as $n | .metrics[] | select(.name == "migrations_denied") | .old == {"value":0,"lower":0,"upper":$n,"class":"bounded","tier":3}'
want_json '.metrics[] | select(.name == "migrations_admitted") | .old.value == .old.upper and .old.lower < .old.value and .old.class == "bounded"'

# Class belongs to the difference, and says so.
want 0 "$NRP" replay a.db $L --new off
want_out '^METRIC +UNIT +OLD +NEW +AVOIDED CLASS OF AVOIDED$'

# Lost events: counts are lower bounds, no lane is exact, nothing is identical.
cp a.db lossy.db
sqlite3 lossy.db 'UPDATE capture SET lost_events = 7'
want 0 "$NRP" replay lossy.db $L --old migrate.ratelimit=none --new migrate.ratelimit=spin --set quota=200 --json
want_json '[.metrics[] | .old, .new | select(.value != null and .value != 0) | (.class == "bounded" or .class == "modelled") and .upper == null] | all'
want_json '.metrics[] | select(.name == "migrated_pages") | .old == {"value":3063,"lower":3063,"upper":null,"class":"bounded","tier":3}'
want_json '.metrics[] | select(.name == "migrations_denied") | .old.value == 0 and .old.class == "exact"'
want_json '.metrics[] | select(.name == "migrated_pages") | .avoided.lower == null and .avoided.upper == null'
want 0 "$NRP" replay lossy.db $L --new migrate.ratelimit=spin --json
want_json '[.notes[].code] | contains(["lost_events"]) and (contains(["identical_on_trace"]) | not)'

# Events that fit into no record, more than 1 %: the same, and said.
want 0 "$NRP" query a.db 'SELECT unjoined_events FROM capture'
want_out '^0$'
for share in 0.009 0.011; do
	cp a.db torn.db
	sqlite3 torn.db \
		"UPDATE capture SET unjoined_events = CAST($share * (events - other_events) AS INTEGER)"
	want 0 "$NRP" replay torn.db $L --new migrate.ratelimit=spin --json
	cp out torn-$share.json
	want 0 "$NRP" verify torn.db $L --json
	cp out verify-$share.json
done
cp torn-0.009.json out
want_json '[.notes[].code] | contains(["identical_on_trace"]) and (contains(["unjoined_events"]) | not)'
cp torn-0.011.json out
want_json '[.notes[].code] | contains(["unjoined_events"]) and (contains(["identical_on_trace"]) or contains(["lost_events"]) | not)'
want_json '.metrics[] | select(.name == "migrated_pages") | .old.class == "bounded" and .old.upper == null'
cp verify-0.009.json out
want_json '[.notes[].code] | contains(["unjoined_events"]) | not'
cp verify-0.011.json out
want_json '[.notes[].code] | contains(["unjoined_events"])'

# Faults without an address space or address: their pages are not known, and neither is locality.
for field in mm addr; do
	LC_ALL=C sed "/name: fault_begin\$/,/^print fmt/ s/field:u64 $field;/field:u64 ${field%?}_;/" \
		"$DATA/thp-6.12-v6.dat" >unknown.dat
	want 0 "$NRP" import -q unknown.dat -o unknown-$field.db
	want 0 "$NRP" replay unknown-$field.db --new off --json
	want_json '.notes[] | select(.code == "untracked_faults") | .faults == 386 and .share == 1'
	want_json '.metrics[] | select(.name == "remote_residency" or .name == "remote_accesses") | [.old, .new, .avoided | .class] | unique == ["not_observable"]'
	want_json '.metrics[] | select(.name == "hint_faults_remote") | .old.value == 213'
done

# Every parameter of a lane is in its row, and makes it a comparison of its own.
"$NRP" import -q "$DATA/idle-5.10.dat" -o idle.db
for pid in 0 1; do
	want 0 "$NRP" replay idle.db --new scan.vma=P2 --set new:scan.vma.pid=$pid --json
	want_json '.new.set["scan.vma.pid"] == '$pid
done
want 0 "$NRP" query idle.db 'SELECT count(*) AS n FROM replay'
want_out '^2$'
# Bounds that an exact number lacks are no bounds.
want 0 "$NRP" replay idle.db --new scan.pte=F0 --json
want_json '[.metrics[] | .old, .new, .avoided | select(.class == "exact") | .value == .lower and .value == .upper] | all'

# SQL.
want 0 "$NRP" query a.db 'SELECT 1 AS a, NULL AS b, '"'x,y'"' AS c; SELECT 2 AS d'
printf 'a,b,c\n1,,"x,y"\n\nd\n2\n' >want.csv
want_same out want.csv
want 0 "$NRP" query a.db 'SELECT 1 AS a, NULL AS b' --json
want_json '. == [{"a":1,"b":null}]'
want 2 "$NRP" query a.db 'SELECT x FROM nowhere'
want_error 'no such table'
printf 'SELECT count(*) AS n FROM ratelimit' | "$NRP" query a.db >out
want_out '^589$|^[0-9]+$'

# Work is bounded: one start per tick of the interval, each over all attempts.
want 2 "$NRP" replay a.db $L --new migrate.ratelimit=spin --set hz=20000 --set interval=10000
want_error 'an interval of 200000 ticks is longer than the 10000 that can be replayed: choose'
done_testing
