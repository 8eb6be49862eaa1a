#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Import: side files, names, several captures, duplicates, all or nothing.
. "$(dirname "$0")/lib.sh"

want 0 "$NRP" import "$DATA/thp-5.10.dat" -o a.db
want_out '^thp-5.10: 4004 events in 10\.'
want_out 'none lost'
want 0 "$NRP" info a.db
want_out 'kernel +Linux .* 5\.10\.0-32-amd64'
want_out 'hint_fault +656 '
want 0 "$NRP" info a.db --json
want_json '.info.facts.hz == 250 and .info.facts.cpupid_bits == 21 and .info.facts.nid_shift == 54'
want_json '.info.fingerprint.thp_function and (.info.fingerprint.prepare_step | not)'
want_json '.info.nodes[1].cpus == [2,3] and (.info.topology_inferred | not)'
want_json '.info.tier == 3 and .info.events.lost == 0 and .info.events.read == 4004'

# The same bytes again, or another capture of the name.
cp a.db before.db
want 2 "$NRP" import "$DATA/thp-5.10.dat" -o a.db
want_error 'in the database already: --force'
want_same a.db before.db
want 2 "$NRP" import "$DATA/thp-6.1.dat" -o a.db --name thp-5.10
want_error 'another capture of this name'
want_same a.db before.db
want 0 "$NRP" import "$DATA/thp-5.10.dat" -o a.db --force
want 0 "$NRP" query a.db 'SELECT count(*) FROM capture'
want_out '^1$'
want 0 "$NRP" query a.db 'SELECT count(*) FROM hint_fault'
want_out '^656$'

# Several captures in one file.
want 0 "$NRP" import "$DATA/thp-6.1.dat" "$DATA/thp-6.12.dat" -o a.db
want 2 "$NRP" info a.db
want_error 'thp-5.10.*thp-6.1.*thp-6.12.*--capture'
want 2 "$NRP" verify a.db --capture nothing
want_error 'thp-6.12'
want 0 "$NRP" verify a.db --capture thp-6.1
want_out '^thp-6.1, kernel 6\.1\.0-57-amd64: agrees'
want 0 "$NRP" verify a.db --capture 3
want_out '^thp-6.12, '

# One bad file of several: nothing is kept; strict, or nothing of it can be salvaged.
cp a.db before.db
for cut in 20000:--strict 2000:-q; do
	head -c "${cut%:*}" "$DATA/thp-7.2.dat" >cut.dat
	want 3 "$NRP" import "$DATA/thp-7.2.dat" cut.dat -o a.db "${cut#*:}"
	want_error 'cut.dat: offset [0-9]+: '
	want_same a.db before.db
	want 3 "$NRP" import "$DATA/thp-7.2.dat" cut.dat -o new.db "${cut#*:}"
	want_absent new.db
done

# Side files by option; a capture without any.
cp "$DATA/thp-6.12.dat" alone.dat
want 0 "$NRP" import alone.dat -o b.db
want 0 "$NRP" verify b.db --json
want_json '.verdict == "agrees" and (.counters | length) == 0'
want_json '[.notes[].code] | contains(["topology_inferred", "no_vmstat"])'
want 0 "$NRP" import alone.dat -o c.db --facts "$DATA/thp-6.12.facts" \
	--vmstat "$DATA/thp-6.12.vmstat0" "$DATA/thp-6.12.vmstat1" --name mine
want 0 "$NRP" verify c.db --json
want_json '.capture == "mine" and (.counters[] | select(.name == "numa_pages_migrated") | .difference == 0)'

# The inferred topology is the recorded one, but for the CPU that has no event to prove its node.
"$NRP" query b.db 'SELECT cpu, nid FROM host_cpu WHERE nid IS NOT NULL' >inferred
"$NRP" query c.db 'SELECT cpu, nid FROM host_cpu' >recorded
[ "$(wc -l <inferred)" -eq 4 ] && ! grep -vxFf recorded inferred && ok || not_ok 'inferred topology'

# Formats: v6, v7 without compression, v7 zstd hold the same records.
for pair in thp-6.12:thp-6.12-v6 thp-5.10:thp-5.10-none; do
	rm -f x.db y.db
	want 0 "$NRP" import "$DATA/${pair%:*}.dat" -o x.db
	want 0 "$NRP" import "$DATA/${pair#*:}.dat" -o y.db --facts "$DATA/${pair%:*}.facts"
	for kind in hint_fault scan_pass scan_range scan_skip migration task_move task_life; do
		"$NRP" query x.db "SELECT * FROM $kind ORDER BY time, tid" >x.csv
		"$NRP" query y.db "SELECT * FROM $kind ORDER BY time, tid" >y.csv
		want_same x.csv y.csv
	done
done

# The second reader gives the same records, and reads whole files only.
for file in thp-6.12-v6 thp-5.10 hugetlb-6.12; do
	rm -f x.db y.db
	want 0 "$NRP" import "$DATA/$file.dat" -o x.db --reader own
	cp out own
	want 0 known_leaks "$NRP" import "$DATA/$file.dat" -o y.db --reader libtracecmd
	want_same out own
	for kind in hint_fault scan_pass scan_range scan_skip migration task_move task_life hugetlb loss; do
		"$NRP" query x.db "SELECT * FROM $kind ORDER BY time, tid" >x.csv 2>/dev/null
		"$NRP" query y.db "SELECT * FROM $kind ORDER BY time, tid" >y.csv 2>/dev/null
		want_same x.csv y.csv
	done
done
head -c 20000 "$DATA/thp-5.10.dat" >cut.dat
want 3 "$NRP" import cut.dat -o new.db --reader libtracecmd
want_error 'cut.dat: offset [0-9]+: cut short'
want_absent new.db
want 2 "$NRP" import "$DATA/thp-5.10.dat" -o new.db --reader other
want_error 'own and libtracecmd'

# Side files: what is no number is refused, not guessed.
side() { # PATTERN TEXT: a facts file that is refused
	printf '%b' "$2" >side.facts
	want 3 "$NRP" import -q "$DATA/thp-5.10.dat" -o side.db --facts side.facts
	want_error "^numareplay: side.facts: offset [0-9]+: $1"
	want_absent side.db
}
for value in '' x -1 2147483648 99999999999999999999 1x; do
	side 'no value for a tunable' "[sysctl]\n/proc/sys/kernel/numa_balancing_scan_period_min_ms $value\n"
done
side 'bad node number' '[nodes]\n1024 cpus=0\n'
side 'bad node number' '[nodes]\n-1 cpus=0\n'
side 'bad CPU list' '[nodes]\n0 cpus=0-65536\n'
side 'bad CPU list' '[nodes]\n0 cpus=3-1\n'
for list in -1 0- 0-x 0,,1 0\;1; do
	side 'bad CPU list' "[nodes]\n0 cpus=$list\n"
done
side 'not a facts file' '[nodes]\n0 cpus=0\00001\n'
printf '[nodes]\r\n0 cpus=0-1 memkb=x\r\n0 cpus=0-1\r\n1 cpus=2-3 memkb=1\r\n[sysctl]\r\nnuma_balancing 1' >side.facts
want 0 "$NRP" import -q "$DATA/thp-5.10.dat" -o side.db --facts side.facts
want 0 "$NRP" info side.db --json
want_json '.info.nodes == [{"nid":0,"mem_kb":null,"cpus":[0,1]},{"nid":1,"mem_kb":1,"cpus":[2,3]}]'
rm side.db
for line in 'numa_hint_faults' 'numa_hint_faults -1' 'numa_hint_faults 1x' 'a 1\00002' 'a 9223372036854775808' ' 1'; do
	printf '%b\n' "$line" >side.vmstat
	want 3 "$NRP" import -q "$DATA/thp-5.10.dat" -o side.db --vmstat side.vmstat side.vmstat
	want_error 'side.vmstat: offset 0: not a "name value" line'
	want_absent side.db
done

# A node that no kernel has: not believed, not allocated, not cut off to a smaller number.
cp "$DATA/thp-5.10-none.dat" node.dat
printf '\001\000\001\151' | dd of=node.dat bs=1 seek=204468 conv=notrunc status=none # filter_begin.src_nid
want 0 "$NRP" import -q node.dat -o node.db
want 0 "$NRP" info node.db --json
want_json '.info.nodes | length == 2'
want 0 "$NRP" query node.db 'SELECT max(src_nid) FROM hint_fault'
want_out '^1$'
# A field of a size that its type has not: the format is damaged.
sed 's/field:s32 scan_seq;\toffset:40;\tsize:4;/field:s32 scan_seq;\toffset:40;\tsize:3;/' node.dat >size.dat
want 3 "$NRP" import -q size.dat -o size.db --strict
want_error 'size.dat: event format numareplay:filter_begin has a field that has not the size of its type: '
want_absent size.db

# Names are text: what is none is refused, and a name can be given.
cp "$DATA/thp-5.10.dat" $'bad\xff.dat'
want 2 "$NRP" import -q $'bad\xff.dat' -o text.db
want_error 'a name is UTF-8 text without control characters: give a name with --name'
want_absent text.db
want 2 "$NRP" import -q $'bad\xff.dat' -o text.db --name "$(printf '%0256d' 0)"
want_error 'at most 255 bytes: give a shorter one'
want 0 "$NRP" import -q $'bad\xff.dat' -o text.db --name good
want 0 "$NRP" verify text.db --json
want_json '.capture == "good"'
done_testing
