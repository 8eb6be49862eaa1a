#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tables of counters: the worked example of the specification, forms of input, exit status, damage.
. "$(dirname "$0")/lib.sh"

# NAME FAULTS LOCAL HUGE MIGRATED, each before and after.
table() {
	printf 'numa_hint_faults %s %s\nnuma_hint_faults_local %s %s\nnuma_huge_pte_updates %s %s\nnuma_pages_migrated %s %s\n' \
		"${@:2}" >"$1"
}
# FILE PAGE-SIZE QUOTA BOUND-BEFORE BOUND-AFTER CAN-BEFORE CAN-AFTER
cell() {
	want 0 "$NRP" counters --json --page-size "$2" "$1"
	want_json '.schema == "numareplay.counters/1" and .tier == 0 and .runs == 2'
	want_json "[.limiter[] | .run, .quota, .upper_bound, .can_refuse] ==
		[\"before\", $3, $4, $6, \"after\", $3, $5, $7]"
	want_json '[.counters[], .invariants[] | .class, .tier] | unique == [0, "bounded", "exact"]'
	want_json '[.limiter[].classes[]] | unique == ["bounded", "exact"]'
}
table haswell-multi 26907 72692 24279 62270 0 48 363 2225
table haswell-single 3042 3989 0 0 20 42 668 915
table power9-multi 1258 622 0 0 0 0 149 92
table power9-single 101 45 0 0 0 0 5 2
table power7-multi 8089 18917 0 0 0 0 1224 2376
table power7-single 7803 9069 0 0 0 0 616 703
cell haswell-multi 4096 32768 2628 34950 false true
cell haswell-single 4096 32768 13262 25451 false false
cell power9-multi 65536 2048 1258 622 false false
cell power9-single 65536 2048 101 45 false false
cell power7-multi 65536 2048 8089 18917 true true
cell power7-single 65536 2048 7803 9069 true true

want 0 "$NRP" counters --page-size 4096 haswell-multi
want_out '^numa_hint_faults +26907 72692 45785 exact$'
want_out '^before +2628 +0 +363 +13.8 % +2628 +32768 +-$'
want_out '^after +10422 +48 +2225 +21.3 % +34950 +32768 93.8 %$'
want_out 'before: cannot have refused anything: the whole run attempts at most 2628 pages, fewer than'
want_out 'after: could have, if more than 32768 of at most 34950 pages fell into one window to one'
want_out '^  armed_before_window$'
want_out '^  what_would_decide$'
want 0 "$NRP" counters --json --page-size 4096 --hz 250 --nodes 2 --interval 100 haswell-multi
want_json '.options.window_ticks == 26 and .options.huge_pages == 512'
want_json '.limiter[0].share_of_run == null and (.limiter[1].share_of_run * 1000 | floor) == 937'
want_json '(.limiter[1].even_share * 1000 | floor) == 1875'
want_json '.counters[0] == {"name": "numa_hint_faults", "before": 26907, "after": 72692, "delta": 45785, "class": "exact", "tier": 0}'
want_json '[.invariants[] | select(.name == "local_faults_within_faults").holds] == [true, true]'
want_json '[.invariants[] | select(.name == "faults_within_pte_updates").holds] == [null, null]'
want 0 "$NRP" counters --json --quota 40000 haswell-multi
want_json '[.limiter[].can_refuse] == [false, false]'
want 0 "$NRP" counters --json haswell-multi
want_json '.notes[] | select(.code == "quota_assumed") | .quota_64k == 2048'

# The snapshots that ship with the captures; a host whose limiter refused with 200 pages could have.
want 0 "$NRP" counters "$DATA"/shared-4.18.vmstat0 "$DATA"/shared-4.18.vmstat1
want_out '^Counters of one run'
want_out 'further counters: --json lists them'
want 0 "$NRP" counters --json --quota 200 "$DATA"/limiter-spin-6.12.vmstat0 "$DATA"/limiter-spin-6.12.vmstat1
want_json '.runs == 1 and .limiter[0].run == "run" and .limiter[0].can_refuse'
want_json '[.notes[].code] | index("large_folios")'
want 0 "$NRP" counters --json "$DATA"/shared-4.18.vmstat[01] "$DATA"/shared-5.10.vmstat[01]
want_json '.runs == 2 and (.inputs | length) == 4 and .inputs[3].form == "vmstat"'
# A snapshot against itself: nothing happened.
want 0 "$NRP" counters --json "$DATA"/shared-4.18.vmstat0 - <"$DATA"/shared-4.18.vmstat0
want_json '.limiter[0].upper_bound == 0 and .inputs[1].file == "standard input"'
want_json '[.notes[].code] | index("no_balancing")'

# perf stat beside snapshots.
printf ' Performance counter stats:\n\n  1,350  migrate:mm_migrate_pages\n  <not counted>  sched:sched_swap_numa\n' >perf
printf 'numa_pages_migrated 100\r\n' >v0
printf 'numa_pages_migrated 1324\r\n' >v1
want 0 "$NRP" counters --json v0 v1 perf
want_json '.counters[] | select(.name == "migrate:mm_migrate_pages") | .before == null and .delta == 1350'
want_json '.counters[] | select(.name == "sched:sched_swap_numa") | .delta == null'
want_json '[.notes[].code] | index("inconsistent_windows") and index("not_counted")'

# What contradicts itself: status 1, and the numbers all the same.
table broken 100 100 100 101 0 0 0 0
want 1 "$NRP" counters broken
want_out 'local_faults_within_faults  broken \(not explained\)'
want 1 "$NRP" counters --json broken
want_json '[.invariants[] | select(.name == "local_faults_within_faults") | .holds, .explained] == [true, null, false, null]'

# Usage.
want 2 "$NRP" counters
want_error 'missing argument'
want 2 "$NRP" counters v0
want_error 'come in pairs'
want 2 "$NRP" counters v0 v1 broken
want_error 'tables only'
want 2 "$NRP" counters - - <v0
want_error 'standard input can be read once'
for option in --page-size=0 --page-size=5000 --page-size=x --huge-pages=-1 --quota=0 --quota=1e3 --hz=1 \
	--interval=0 --nodes=1 --nodes=; do
	want 2 "$NRP" counters "$option" broken
	want_error "^numareplay: ${option%%=*} takes "
done

# Damage: file and offset, nothing on standard output.
refused() { # PATTERN FILE..
	want 3 "$NRP" counters "${@:2}"
	want_error "$1"
	[ ! -s out ] && ok || not_ok "output in spite of an error: $(head -1 out)"
}
mkdir folder
: >empty
head -c 4096 /dev/zero >zeros
head -c 4096 /dev/urandom >junk
printf 'numa_hit 1\nnuma_miss\n' >short
printf 'numa_hit 1\nnuma_hit 1\n' >twice
refused '^numareplay: folder: .*directory' folder v1
refused '^numareplay: missing: .*No such file' v0 missing
refused '^numareplay: empty: is empty' empty v1
refused '^numareplay: zeros: offset 0: binary data' v0 zeros
refused '^numareplay: junk: offset [0-9]+: ' v0 junk
refused '^numareplay: short: offset 11: ' short v1
refused '^numareplay: twice: offset 11: numa_hit comes a second time' v0 twice
refused '^numareplay: v0: offset 0: numa_pages_migrated went down, from 1324 to 100' v1 v0
refused '^numareplay: standard input: offset 0: ' v0 - <zeros
refused 'larger than 16 MiB' v0 - < <(yes 'numa_hit 1' | head -c 17000000)

# A count that is none has no class of its own.
printf 'numa_pte_updates 0\nnuma_hint_faults 1\n' >vm0
printf 'numa_pte_updates 18446744073709551615\nnuma_hint_faults 5\nnuma_pages_migrated 2\n' >vm1
want 0 "$NRP" counters vm0 vm1
want_out '^numa_pte_updates +0 +\? +\? not_observable$'
want_out '^numa_hint_faults +1 +5 +4 exact$'
want_out '^numa_pages_migrated +- +2 +- not_observable$'
want 0 "$NRP" counters vm0 vm1 --json
want_json '[.counters[] | [.name, .delta, .class]] == [["numa_pte_updates", null, "not_observable"],
	["numa_hint_faults", 4, "exact"], ["numa_pages_migrated", null, "not_observable"]]'
done_testing
