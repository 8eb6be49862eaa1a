#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory samples: perf script and perf stat beside a capture or named, what is kept of them, errors.
. "$(dirname "$0")/lib.sh"

# A time in the middle of the capture, and a fault of it: thread and address.
"$NRP" import -q "$DATA/thp-5.10.dat" -o a.db
read -r first middle tid addr < <("$NRP" query a.db "SELECT first_time / 1000000000,
	(first_time + last_time) / 2000000000, tid, printf('%x', addr) FROM capture,
	(SELECT tid, addr FROM hint_fault LIMIT 1)" | tail -1 | tr , ' ')

sample() { # TIME LEVEL: a line of perf script
	printf '        numaload %d/%d [001] %s.123456:  1000 cpu/mem-loads,ldlat=30/P: %16s 68501042 |OP LOAD|LVL %s|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A  412 0 0 401234 sum+0x34 (/usr/bin/numaload)\n' \
		"$tid" "$tid" "$1" "$addr" "$2"
}
{
	echo '# captured on: Mon Nov 30 2026'
	sample "$middle" 'Remote RAM (1 hop) hit'
	sample "$middle" 'Local RAM hit'
	sample $((middle + 1)) 'Local RAM hit'
	sample $((middle + 1000)) 'Local RAM hit'
	echo 'torn li'
} >script.txt

# Named.
want 0 "$NRP" import "$DATA/thp-5.10.dat" -o b.db --samples script.txt
want_out 'memory samples: 3 sampled accesses, 1 outside of the capture, 1 lines not understood \(first: line 6\)'
want 0 "$NRP" query b.db "SELECT level, count(*), min(tid), min(weight), min(period), printf('%x', min(addr))
	FROM memory_sample GROUP BY 1"
want_out "^1,2,$tid,412,1000,$addr\$"
want_out "^2,1,$tid,412,1000,$addr\$"
want 0 "$NRP" info b.db
want_out 'memory_sample +3 '
want 0 "$NRP" query b.db 'SELECT memory_sample FROM report_capture'
want_out '^3$'
want 0 "$NRP" import --json "$DATA/thp-5.10.dat" -o c.db --samples script.txt
want_json '.captures[0].samples | .format == "perf script" and .kept == 3 and .not_understood == 1'
want 0 "$NRP" import --json "$DATA/thp-6.1.dat" -o c.db
want_json '.captures[0].samples == null'
# Nothing else changes: the same verdict with and without.
"$NRP" verify a.db --json >a.json
"$NRP" verify b.db --json >b.json
want_same a.json b.json

# The same row again is another sample: three weigh as much as one of three times the period.
for times in 1 3; do
	for ((i = 0; i < times; i++)); do
		sample "$middle" 'Remote RAM (1 hop) hit' | sed "s/ 1000 / $((3000 / times)) /"
	done >same.txt
	want 0 "$NRP" import --json "$DATA/thp-5.10.dat" -o same$times.db --samples same.txt
	want_json ".captures[0].samples.kept == $times"
	want 0 "$NRP" replay same$times.db --new off --json
	want_json '.metrics[] | select(.name == "remote_loads") | .old.value == 3000'
	cp out same$times.json
done
want_same same1.json same3.json

# Found by its name.
cp "$DATA/thp-5.10.dat" beside.dat
cp script.txt beside.samples
want 0 "$NRP" import beside.dat -o d.db
want_out 'memory samples: 3 sampled accesses'

# perf stat: its clock is its own.
cat >stat.csv <<-END
	# started on Mon Nov 30 12:00:00 2026

	     1.000100000,400,,node-loads,1000000,100.00,,
	     1.000100000,100,,node-load-misses,1000000,100.00,,
	     2.000200000,<not counted>,,node-loads,0,0.00,,
	     2.000200000,50,,node-load-misses,500000,50.00,,
END
want 2 "$NRP" import "$DATA/thp-5.10.dat" -o e.db --samples stat.csv
want_error 'stat.csv: perf stat counts time from its own start: .*--samples-start SECONDS'
want_absent e.db
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o e.db --samples stat.csv --samples-start 99999
want_error "stat.csv: its times, .* do not meet the capture's"
want_absent e.db
want 0 "$NRP" import "$DATA/thp-5.10.dat" -o e.db --samples stat.csv --samples-start "$middle.5"
want_out 'memory samples: 3 counted intervals, 1 intervals not counted$'
want 0 "$NRP" query e.db 'SELECT time, span, level, count, running FROM memory_sample ORDER BY time, level'
want_out "^${middle}500000000,1000100000,2,100,10000\$"
want_out "^${middle}500000000,1000100000,3,400,10000\$"
want_out "^$((middle + 1))500100000,1000100000,2,50,5000\$"
# One event for each level, or the one that is named.
sed 's/node-loads/remote_access/' stat.csv >two.csv
want 2 "$NRP" import "$DATA/thp-5.10.dat" -o f.db --samples two.csv --samples-start "$middle"
want_error 'remote_access and node-load-misses both count remote accesses: choose one with --samples-event NAME'
want 0 "$NRP" import "$DATA/thp-5.10.dat" -o f.db --samples two.csv --samples-start "$middle" \
	--samples-event node-load-misses
want 0 "$NRP" query f.db 'SELECT sum(count) FROM memory_sample'
want_out '^150$'
# They calibrate: what was counted belongs to the host, another lane has its share of touches.
want 0 "$NRP" replay f.db --new off --json
want_json '(.metrics | INDEX(.name)) as $m | ($m.remote_loads.new.value * $m.remote_accesses.old.value / $m.remote_accesses.new.value - 150) | fabs < 1e-6'
want_json '.metrics[] | select(.name == "remote_loads") | .old.value == 150 and .new.class == "modelled"'
want 2 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples two.csv --samples-start "$middle" \
	--samples-event other
want_error 'has no event other'

# Errors are one line, and nothing is kept.
for start in x -1 1.2.3 1.0000000001 99999999999999999999; do
	want 2 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples stat.csv --samples-start=$start
	want_error "samples-start $start is no time"
done
want 2 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples-start 5
want_error 'has no memory samples beside it: .*--samples FILE'
want 2 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples script.txt --samples-start 5
want_error 'script.txt: is no text of perf stat'
want 2 "$NRP" import "$DATA/thp-5.10.dat" "$DATA/thp-6.1.dat" -o g.db --samples script.txt
want_error '--samples goes with one file'
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples missing.txt
want_error 'missing.txt: No such file'
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples .
want_error '\.: is not a plain file'
printf 'PERFILE2\0\0\0\0' >perf.data
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples perf.data
want_error "perf.data: is perf's binary file, not text: print it with perf script"
head -c 100000 /dev/zero | tr '\0' a >long.txt
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples long.txt
want_error 'long.txt: line 1: is longer than 64 KiB'
{
	sample "$middle" 'Local RAM hit'
	printf 'a\0b\n'
} >nul.txt
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples nul.txt
want_error 'nul.txt: line 2: is not text'
sample 5 'Local RAM hit' | sed "s/ 5\.123456/ $((first + 5000)).123456/" >clock.txt
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o g.db --samples clock.txt
want_error "clock.txt: its times, .* s, do not meet the capture's, .*: sample during the capture"
want_absent g.db
done_testing
