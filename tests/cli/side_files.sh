#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Side files that contradict the capture, themselves or each other.
. "$(dirname "$0")/lib.sh"

# ---- pages of a huge page: Hugepagesize is the default of hugetlb, which a boot parameter sets
huge_pages() { # FILE WANTED: of thp-FILE.dat with ./huge.facts
	want 0 "$NRP" import -q "$DATA/thp-$1.dat" -o huge.db --facts huge.facts --force
	want 0 "$NRP" query huge.db "SELECT huge_pages FROM capture WHERE name = 'thp-$1'"
	want_out "^$2\$"
}
sed 's/^Hugepagesize:.*/Hugepagesize:    1048576 kB/' "$DATA/thp-6.12.facts" >huge.facts
huge_pages 6.12 512 # a page of 4 KiB holds 512 entries
want 0 "$NRP" query huge.db "SELECT value FROM host_setting WHERE name = 'Hugepagesize'"
want_out '^1048576 kB$'
sed 's/^\[hugetlb\]/hpage_pmd_size 1048576\n&/' "$DATA/thp-6.12.facts" >huge.facts
huge_pages 6.12 256
want 0 "$NRP" query huge.db "SELECT name, value FROM host_setting WHERE name IN ('thp', 'hpage_pmd_size')"
want_out '^hpage_pmd_size,1048576$'
want_out '^thp,'
sed 's,^\[hugetlb\],/sys/kernel/mm/transparent_hugepage/hpage_pmd_size 1048576\n&,' \
	"$DATA/thp-5.10.facts" >huge.facts
huge_pages 5.10 512 # task_fault of a huge page says so
huge_pages 6.1 256
for size in '' x 0 3000000 -2097152; do
	printf '[thp]\nhpage_pmd_size %s\n' "$size" >huge.facts
	want 3 "$NRP" import -q "$DATA/thp-6.12.dat" -o none.db --facts huge.facts
	want_error 'huge.facts: offset 6: no size of a huge page: '
done
want_absent none.db

# ---- nodes and CPUs that are not those on record
facts() { # SED-SCRIPT PATTERN: refused
	sed "$1" "$DATA/thp-6.12.facts" >wrong.facts
	want 3 "$NRP" import -q "$DATA/thp-6.12.dat" -o none.db --facts wrong.facts
	want_error "^numareplay: wrong.facts: contradicts the capture in [0-9]+ records: $2: give the facts of"
	want_absent none.db
}
facts 's/cpus=0-1/cpus=X/; s/cpus=2-3/cpus=0-1/; s/cpus=X/cpus=2-3/' 'CPU [0-3] is on node [01] in the capture'
facts 's/cpus=0-1/cpus=0-2/; s/cpus=2-3/cpus=3/' 'CPU 2 is on node 1 in the capture'
facts 's/^0 cpus=0-1/0 cpus=0-3/; /^1 cpus=/d' '(lists 1 nodes, and the capture has pages on node 1|CPU [23] is on node 1 in the capture)'
facts '/^1 cpus=/d' '(lists no node with CPU [23], which has faults|lists 1 nodes, and the capture has pages on node 1)'
facts 's/cpus=2-3/cpus=3/' 'lists no node with CPU 2, which has faults'
facts 's/cpus=[-0-9]*//' 'lists no node with CPU [0-3], which has faults'
# More than the capture shows is no contradiction.
sed 's/^1 cpus=2-3/&,6-7/; s/^\[sysctl\]/2 cpus=4-5\n3 cpus=\n&/' "$DATA/thp-6.12.facts" >more.facts
want 0 "$NRP" import -q "$DATA/thp-6.12.dat" -o more.db --facts more.facts

# ---- samples of a CPU that the host does not have
second=$("$NRP" query more.db 'SELECT first_time / 1000000000 + 1 FROM capture' | tail -1)
for cpu in 000 007 008 4000; do
	printf ' prog 1/1 [%s] %s.000000: 1000 cpu/mem-loads/P: 7f0000001000 68501042 |OP LOAD|LVL Local RAM hit|SNP None|TLB No|LCK No|BLK  N/A  412\n' \
		$cpu "$second"
done >cpus.txt
want 0 "$NRP" import "$DATA/thp-6.12.dat" -o more.db --force --facts more.facts --samples cpus.txt
want_out 'memory samples: 2 sampled accesses, 2 lines not understood \(first: line 3\)'
{
	printf '1.000100000,CPU%s,400,,node-loads,1000000,100.00,,\n' 3 9
	printf '1.000100000,CPU%s,100,,node-load-misses,1000000,100.00,,\n' 3 9
} >cpus.csv
want 0 "$NRP" import "$DATA/thp-6.12.dat" -o more.db --force --facts more.facts --samples cpus.csv \
	--samples-start "$second.0"
want_out 'memory samples: 2 counted intervals, 2 lines not understood \(first: line 2\)'

# ---- snapshots of /proc/vmstat
snapshots() { # BEFORE AFTER PATTERN: refused
	want 3 "$NRP" import -q "$DATA/thp-5.10.dat" -o none.db --vmstat "$1" "$2"
	want_error "$3"
	want_absent none.db
}
: >empty.vmstat
before=$DATA/thp-5.10.vmstat0 after=$DATA/thp-5.10.vmstat1
snapshots "$after" "$before" \
	"vmstat0: offset [0-9]+: (numa_|pg)[a-z_]+ is smaller than before recording: give the snapshots of one boot"
snapshots empty.vmstat "$after" 'empty.vmstat: is empty: give the text of /proc/vmstat'
snapshots "$before" empty.vmstat 'empty.vmstat: is empty'
# Levels may fall.
printf 'nr_free_pages 5\nnuma_hint_faults 5\n' >high.vmstat
printf 'nr_free_pages 4\nnuma_hint_faults 5\n' >low.vmstat
want 0 "$NRP" import -q "$DATA/thp-5.10.dat" -o level.db --vmstat high.vmstat low.vmstat

done_testing
