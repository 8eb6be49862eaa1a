#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Traces as text: what is read, what is reported, what is refused; topology of other programs.
. "$(dirname "$0")/lib.sh"

# A fault that moves a page, as trace-cmd report, trace (flags, TGID), latency and perf script show it.
probes() { # PREFIX of every line, with TIME where the time goes
	local time=100
	while read -r event fields; do
		time=$((time + 1))
		printf '%s%s: %s\n' "${1/TIME/7.000$time}" "$event" "$fields"
	done <<-'EVENTS'
		fault_begin (mpol_misplaced+0x4/0x1b0) page=0xffffea0000000040 page_flags=0xfffffd802082c mapcount=0 refcount=1 addr=0x4be000 vma=0xff01 vm_start=0x4bd000 vm_end=0x4bf000 vm_flags=0x73 mm=0xffff888000000001
		filter_begin (should_numa_migrate_memory+0x4/0x1b0) page=0xffffea0000000040 src_nid=0 dst_cpu=3 pid=21 preferred_nid=-1 scan_seq=4 scan_period=100 group=0x0 gid=-5 faults={0,0,0,0,0,0,0,0}
		filter_end (should_numa_migrate_memory+0x4/0x1b0 <- mpol_misplaced+0xff/0x1b0) allow=1
		fault_target (mpol_misplaced+0x4/0x1b0 <- do_numa_page+0x12/0x300) nid=1
		migrate_begin (migrate_misplaced_folio+0x4/0x1b0) page=0xffffea0000000040 nid=1 jiffies=4294895981
		migrate_end (migrate_misplaced_folio+0x4/0x1b0 <- do_numa_page+0x44/0x300) ret=0
		task_fault (task_numa_fault+0x4/0x300) last_cpupid=2097151 nid=1 pages=1 flags=0x1
	EVENTS
}
probes '          rs:main Q:Reg-21 [003] TIME: ' >report.txt
probes '          rs:main Q:Reg-21      (   20) [003] d..1. TIME: ' >trace.txt
probes '   rs:main-21      3d..1. TIME: ' >latency.txt
probes 'rs:main Q:Reg    20/21 [003]     TIME: numareplay:' >perf.txt
probes 'inst:   rs:main Q:Reg-21 [003] TIME: ' >instance.txt
row='SELECT time, cpu, tid, addr, src_nid, target_nid, filter_answer, attempt, attempt_nid, attempt_jiffies, moved, pages, mem_nid, preferred_nid, group_id IS NULL FROM hint_fault'
expected=7000101000,3,21,4972544,0,1,1,1,1,4294895981,1,1,1,-1,1
for form in report trace latency perf instance; do
	want 0 "$NRP" import $form.txt -o $form.db
	want_out "^$form: 7 events in 0\.000 s, 0 unjoined, 0 of kinds without a record, none lost"
	want_out '1 arrays printed as zeros: NULL'
	want 0 "$NRP" query $form.db "$row"
	want_out "^$expected$"
done
# The process is known where the text has it.
want 0 "$NRP" query trace.db 'SELECT tgid FROM hint_fault'
want_out '^20$'
want 0 "$NRP" query perf.db 'SELECT tgid FROM hint_fault'
want_out '^20$'
want 0 "$NRP" query perf.db "SELECT name, value FROM host_setting WHERE name LIKE 'text.%' ORDER BY name"
want_out '^text.arrays_as_zeros,1$'
want_out '^text.format,perf script$'
want_out '^text.time_unit,us$'
want 0 "$NRP" info report.db --json
want_json '.info.source == "text" and .info.facts.page_size == 4096 and .info.kernel == null and .info.tier == 3'

# gzip, several members, a pipe, a file on standard input: the same capture, so the same bytes are refused.
gzip -c report.txt >report.txt.gz
head -3 report.txt | gzip -c >two.gz
tail -n +4 report.txt | gzip -c >>two.gz
for file in report.txt.gz two.gz; do
	want 2 "$NRP" import $file -o report.db
	want_error 'in the database already'
done
want 2 "$NRP" import - -o report.db < <(cat report.txt)
want_error '^numareplay: -: this capture is in the database already'
want 2 "$NRP" import - -o report.db <report.txt.gz
want_error 'in the database already'
want 0 "$NRP" import - -o stdin.db < <(cat report.txt.gz)
want_out '^stdin: 7 events'
want 0 "$NRP" import report.txt.gz -o name.db
want_out '^report: 7 events'

# Side files of X.txt.gz and X.txt are X.facts, X.vmstat0, X.vmstat1.
printf '[nodes]\n0 cpus=0-1 memkb=5\n1 cpus=2-3 memkb=6\n[thp]\nhpage_pmd_size 2097152\n' >report.facts
want 0 "$NRP" import -q report.txt.gz -o side.db
want 0 "$NRP" info side.db --json
want_json '.info.nodes == [{"nid":0,"mem_kb":5,"cpus":[0,1]},{"nid":1,"mem_kb":6,"cpus":[2,3]}] and .info.facts.huge_pages == 512'
rm report.facts

# A text shows no event that did not happen: the facts name it.
printf '[events]\nmigrate:mm_numa_migrate_ratelimit\nsome:other\n' >events.facts
want 0 "$NRP" import -q report.txt -o events.db --facts events.facts
want 0 "$NRP" info events.db --json
want_json '.info.fingerprint.ratelimit_event and (.info.fingerprint.prepare_step | not)'
want 0 "$NRP" query events.db 'SELECT ratelimited FROM hint_fault'
want_out '^0$'
want 0 "$NRP" query report.db 'SELECT ratelimited IS NULL FROM hint_fault'
want_out '^1$'
"$NRP" verify report.db --json >out
want_json '[.notes[].code] | contains(["text_capture"])'
printf '[events]\nmm_migrate_pages\n' >events.facts
want 3 "$NRP" import -q report.txt -o new.db --facts events.facts
want_error 'events.facts: offset 9: no "system:event"'

# Losses become records, wherever they are told.
{
	printf '# tracer: nop\n#\n# entries-in-buffer/entries-written: 4/14   #P:2\n#\n'
	printf '  a-1 [000] ..... 1.000000: sched_process_exit: comm=a pid=1 prio=120\n'
	printf '  a-2 [001] ..... 1.500000: sched_process_exit: comm=a pid=2 prio=120\n'
	printf 'CPU:1 [LOST 113 EVENTS]\nCPU:1 [7 EVENTS DROPPED]\n'
	printf '  a-3 [000] ..... 2.000000: sched_process_exit: comm=a pid=3 prio=120\n'
	printf '  a-4 [001] ..... 3.000000: sched_process_exit: comm=a pid=4 prio=120\n'
	printf 'CPU:0 [EVENTS DROPPED]\nCPU:5 [LOST 2 EVENTS]\n'
} >loss.txt
want 0 "$NRP" import loss.txt -o loss.db
want_out '^loss: 4 events in 2\.000 s, .*LOST 132 events and 1 gaps of unknown size'
want 0 "$NRP" query loss.db 'SELECT time, end_time, cpu, count, cause FROM loss ORDER BY time, count'
want_out '^0,1000000000,,10,2$'           # overwritten before the first event
want_out '^1500000000,3000000000,1,120,0$' # two lines, one gap
want_out '^2000000000,,0,,0$'              # unknown number, up to the end
want_out '^0,,5,2,0$'                      # a CPU without events
# What was lost is told even if nobody can count it: no sum wraps, and a loss of nothing is none.
lost_by() { # LINE..: a capture with these lines in it
	printf '  a-1 [000] ..... 1.000000: sched_process_exit: comm=a pid=1 prio=120\n'
	printf '%s\n' "$@"
	for cpu in 1 2 3; do
		printf '  a-1 [00%d] ..... 2.000000: sched_process_exit: comm=a pid=1 prio=120\n' $cpu
	done
}
lost_by 'CPU:1 [LOST 9223372036854775807 EVENTS]' 'CPU:2 [LOST 9223372036854775807 EVENTS]' \
	'CPU:3 [LOST 2 EVENTS]' >wrap.txt
want 0 "$NRP" import wrap.txt -o wrap.db
want_out 'LOST 9223372036854775807 events and 2 gaps of unknown size'
lost_by 'CPU:1 [LOST 0 EVENTS]' >zero.txt
want 0 "$NRP" import zero.txt -o zero.db
want_out 'LOST 0 events and 1 gaps of unknown size'
want 0 "$NRP" query zero.db 'SELECT cpu, count, cause FROM loss'
want_out '^1,,0$'
{ printf '# entries-in-buffer/entries-written: 5/18446744073709551615   #P:2\n'; lost_by; } >head.txt
want 0 "$NRP" import head.txt -o head.db
want_out 'LOST 0 events and 1 gaps of unknown size'
{ cat head.txt; cat head.txt; } >heads.txt
want 0 "$NRP" import heads.txt -o heads.db
want_out 'LOST 0 events and 1 gaps of unknown size'
# A head that cannot be true is no head: nobody knows what was lost before the first event.
for entries in '# entries-in-buffer/entries-written: 18446744073709551615/5   #P:2' \
	'# entries-in-buffer/entries-written: 99999999999999999999/5   #P:2' \
	'# entries-in-buffer/entries-written: 5   #P:2' '# latency: 40 us, #9/4, CPU#3 | (M:preempt)'; do
	{ printf '%s\n' "$entries"; lost_by; } >head.txt
	want 3 "$NRP" import head.txt -o head.db --force
	want_error '^numareplay: head.txt: offset 0: line 1 has numbers of entries that cannot be: '
	want_out 'LOST 0 events and 1 gaps of unknown size'
	want_out 'text of trace: 6 lines, 1 NOT UNDERSTOOD \(first: line 1\)'
done
# A fault that is open at a gap on any CPU is not joined across it.
{ head -4 report.txt; echo 'CPU:0 [LOST 1 EVENTS]'; echo 'a-9 [000] 7.000104: x: y'; tail -3 report.txt; } >gap.txt
want 0 "$NRP" import gap.txt -o gap.db
want_out 'unjoined: 1 task_fault'

# A value that no kernel has is NULL, and is counted.
for nid in -2 1024 4294967297; do
	sed "s/src_nid=0/src_nid=$nid/" report.txt >nid.txt
	want 0 "$NRP" import nid.txt -o nid.db --force
	want_out '1 values that are no numbers, or out of range: NULL'
	want 0 "$NRP" query nid.db "SELECT src_nid IN (-2, 1024, 4294967297) FROM hint_fault"
	want_out '^0?$'
	want 0 "$NRP" query nid.db "SELECT value FROM host_setting WHERE name = 'text.unresolved_values'"
	want_out '^1$'
done

# Names of later kernels are kept; hashed pointers, other tracers, backward times, bad lines are told.
{
	printf 'a-1 [000] 5.000000: sched_skip_vma_numa: numa_scan_offset=0 vm_start=400000 vm_end=401000 reason=userfault\n'
	printf 'a-1 [000] 5.000001: sched_skip_vma_numa: numa_scan_offset=0 vm_start=400000 vm_end=401000 reason=scan_delay\n'
	printf 'a-1 [000] 5.000002: schedule <-do_idle\n'
	printf 'a-1 [000] 5.000003: mmap_lock_released: mm=0000000082b6b905 memcg_id=1 write=true\n'
	printf 'a-1 [000] 5.000002: page_fault_kernel: address=0x10 ip=clear_user_erms error_code=0x2\n'
	printf 'what is this\n'
	printf 'a-1 [000] 5.000004: sched_process_exit: comm=a pi'
} >odd.txt
want 3 "$NRP" import odd.txt -o odd.db
want_error "^numareplay: odd.txt: offset [0-9]+: line 5 is older than the CPU's event before it: the rest was imported, with its losses"
want_out 'text of trace: 7 lines, 1 NOT UNDERSTOOD \(first: line 6\), the last one CUT'
want_out '1 lines of other tracers skipped'
want_out '1 events before the one above'
want_out '1 pointers printed hashed'
want_out '1 values that are no numbers'
want 0 "$NRP" query odd.db 'SELECT s.reason, s.reason_raw, n.text FROM scan_skip s LEFT JOIN name n ON n.id = s.reason_name ORDER BY s.time'
want_out '^254,,userfault$'
want_out '^3,,$'
want 0 "$NRP" query odd.db 'SELECT addr, ip, error_code FROM page_fault'
want_out '^16,,2$'
want 0 "$NRP" import odd.txt -o odd.json.db --json --accept-damage
want_json '.captures[0].damage | .places == 3 and .cpus == []'
want_json '.captures[0].text | .lines == 7 and .not_understood == 1 and .first_not_understood == 6 and .cut and .skipped == 1 and .hashed_pointers == 1 and .backwards == 1 and .time_unit == "us"'
printf 'a-1 [000] d.... 76503: x: y\na-1 [000] d.... 76504: x: y\n' >ticks.txt
want 0 "$NRP" import ticks.txt -o ticks.db
want_out 'times are ticks of an unknown length, not ns'
printf 'a-1 [000] 5.000000: x: y\r\na-1 [000] 5.000001: x: y\\n\\\n' >ends.txt
want 0 "$NRP" import ends.txt -o ends.db
want_out '^ends: 2 events'

# Refused: one line, nothing kept.
refused() { # FILE PATTERN
	want 3 "$NRP" import "$1" -o new.db
	want_error "$2"
	want_absent new.db
}
printf 'PERFILE2\0\0\0\0' >perf.data
refused perf.data 'perf.data: is perf.s binary file, not text: print it with perf script'
gzip -c perf.data >perf.data.gz
refused perf.data.gz 'print it with perf script'
gzip -c "$DATA/thp-5.10.dat" >thp.dat.gz
refused thp.dat.gz 'is a trace-cmd file, which is read from a plain file only: decompress it'
want 3 "$NRP" import - -o new.db < <(cat "$DATA/thp-5.10.dat")
want_error 'is a trace-cmd file'
want 3 "$NRP" import - -o new.db </dev/null
want_error '^numareplay: -: is empty'
yes 'no trace at all' | head -c 40000000 >long.txt
refused long.txt 'no line of [0-9]+ is an event'
yes 'no trace at all' | head -20 >few.txt
cat report.txt >>few.txt
refused few.txt '20 lines are not understood, from line 1 on, but 7 are events'
head -c 100 report.txt.gz >cut.gz
refused cut.gz 'offset 100: compressed data is cut short'
{ head -c 100 report.txt.gz; head -c 400 /dev/urandom; } >bad.gz
refused bad.gz 'compressed data is'
{ cat report.txt; yes '' | head -c 300000000; } | gzip -1c >bomb.gz
refused bomb.gz 'decompresses to more than 200 times its size'
mkfifo pipe.txt
refused pipe.txt 'not a (plain|regular) file'

# Hostile lines inside a good text: left out, counted, never more memory.
{
	head -3 report.txt
	head -c 3000000 /dev/zero | tr '\0' 'x'
	printf '\na-1 [000] 5.000000: a\0b: c\n'
	printf 'CPU:4294967295 [LOST 99999999999999999999 EVENTS]\n'
	tail -4 report.txt
} >hostile.txt
want 3 "$NRP" import hostile.txt -o hostile.db
want_out '^hostile: 7 events'
want_out '3 NOT UNDERSTOOD \(first: line 4\)'
want_error "^numareplay: hostile.txt: offset $(head -3 report.txt | wc -c): line 4 is too long"

# Lines that are not understood, the cut one, and a CPU's time that goes back: loss records, as of a damaged trace.dat.
{
	printf 'a-1 [000] 5.000000: x: y\n'
	printf 'what is this\nwhat is that\n'
	printf 'a-1 [001] 6.000000: x: y\n'
	printf 'CPU:1 [LOST 3 EVENTS]\nwhat\n'
	printf 'a-1 [001] 7.000000: x: y\na-1 [001] 6.500000: x: y\na-1 [000] 8.000000: x'
} >damage.txt
want 3 "$NRP" import damage.txt -o damage.db
want_out 'LOST 3 events and 4 gaps of unknown size'
want_out '9 lines, 3 NOT UNDERSTOOD \(first: line 2\), the last one CUT'
want_error '^numareplay: damage.txt: offset 25: line 2 is not understood: the rest was imported, with its losses; --strict refuses such a file'
want 0 "$NRP" query damage.db 'SELECT time, end_time, cpu, count, cause, offset, read_before FROM loss ORDER BY time, end_time, cause'
tail -n +2 out >losses
printf '%s\n' 5000000000,6000000000,,,1,25, 6000000000,7000000000,1,3,0,,1 6000000000,7000000000,,,1,98, \
	6500000000,,,,1,153, 6500000000,7000000000,1,,3,128,2 >expected
sort losses >out
sort -o expected expected
want_same out expected
want 0 "$NRP" info damage.db
want_out 'some CPU +3 gaps: damaged data, 3 of unknown size, from 0.000000 s to the end, offset 25$'
want 0 "$NRP" info damage.db --json
want_json '.info.losses[0] | .cpu == null and .gaps == 3'
want 3 "$NRP" import damage.txt -o new.db --strict
want_error '^numareplay: damage.txt: offset 25: line 2 is not understood: print or copy it again$'
want_absent new.db
"$NRP" verify damage.db --json >out
want_json '[.notes[].code] | contains(["lost_events", "damaged_capture", "text_capture"])'
# What was lost while recording is no damage.
want 0 "$NRP" import loss.txt -o strict.db --strict
# A fault is not joined across such a line.
{ head -4 report.txt; echo 'what is this'; tail -3 report.txt; } >across.txt
want 3 "$NRP" import across.txt -o across.db
want_out 'unjoined: 1 task_fault'
# The second reader is one of trace-cmd files.
want 2 "$NRP" import report.txt -o new.db --reader libtracecmd
want_error 'is no trace-cmd file, and libtracecmd reads no other: leave out --reader libtracecmd'
want_absent new.db

# A topology of another host is refused, as contradicting facts are; the line names the file.
printf 'node 0 cpus: 0 1 3\nnode 1 cpus: 2\n' >other.topo
want 3 "$NRP" import report.txt -o new.db --topology other.topo
want_error '^numareplay: other.topo: contradicts the capture in [0-9]+ records: CPU 3 is on node 1 in the capture'
want_absent new.db

# Topology of other programs. Node 1's CPUs prove this_nid.
cat >numactl.txt <<-'END'
	available: 2 nodes (0-1)
	node 0 cpus: 0 1
	node 0 size: 10 MB
	node 0 free: 4 MB
	node 1 cpus: 2 3
	node 1 size: 20 MB
	node 1 free: 8 MB
	node distances:
	node   0   1
	  0:  10  20
	  1:  20  10
END
printf '# The following is the parsable format\n# CPU,Core,Socket,Node,,L1d\n0,0,0,0,,0\n1,0,0,0,,0\n2,1,1,1,,1\n3,1,1,1,,1\n4,,,,,\n' >lscpu.txt
mkdir -p copy/sys/devices/system/node/node{0,1}
echo 0-1 >copy/sys/devices/system/node/node0/cpulist
echo 00000000,0000000c >copy/sys/devices/system/node/node1/cpumap
printf '\nNode 1 MemTotal:  20480 kB\nNode 1 MemFree: 1 kB\n' >copy/sys/devices/system/node/node1/meminfo
nodes() { # FILE.. MEMORY0 MEMORY1
	local options=()
	while [ $# -gt 2 ]; do
		options+=(--topology "$1")
		shift
	done
	rm -f topo.db
	want 0 "$NRP" import -q report.txt -o topo.db "${options[@]}"
	want 0 "$NRP" info topo.db --json
	want_json ".info.nodes == [{\"nid\":0,\"mem_kb\":$1,\"cpus\":[0,1]},{\"nid\":1,\"mem_kb\":$2,\"cpus\":[2,3]}] and (.info.topology_inferred | not)"
	want 0 "$NRP" query topo.db 'SELECT this_nid FROM hint_fault'
	want_out '^1$'
}
nodes numactl.txt 10240 20480
nodes lscpu.txt null null
nodes copy null 20480
nodes copy/sys null 20480
nodes copy/sys/devices/system/node null 20480
nodes lscpu.txt numactl.txt 10240 20480
printf '7f0000000000 default anon=3 dirty=3 N0=1 N2=2 kernelpagesize_kB=64\n7f0000800000 default huge N1=1 kernelpagesize_kB=2048\n' >numa_maps
grep -v fault_begin report.txt >nofault.txt
want 0 "$NRP" import -q nofault.txt -o maps.db --topology numa_maps
want 0 "$NRP" info maps.db --json
want_json '(.info.nodes | length) == 3 and .info.facts.page_size == 65536'
topology() { # PATTERN TEXT
	printf '%b' "$2" >bad.topo
	want 3 "$NRP" import -q report.txt -o new.db --topology bad.topo
	want_error "^numareplay: bad.topo: (offset [0-9]+: )?$1"
	want_absent new.db
}
topology 'no topology that is known' 'what\n'
topology 'names no node' ''
topology 'a CPU of two nodes' 'node 0 cpus: 1\nnode 1 cpus: 1\n'
topology 'a CPU that is no number' 'node 0 cpus: x\n'
topology 'node number too large' 'node 0 cpus: 1\nnode 1024 cpus: 1\n'
topology 'CPU or node number too large' 'node 0 cpus: 65536\n'
topology 'a size that is no number of MB' 'node 0 size: x MB\n'
topology 'lscpu -p without a column Node' '# CPU,Core\n0,0\n'
topology 'a CPU of two nodes' '# CPU,Node\n0,0\n0,1\n'
topology 'not text' 'node 0 cpus: \00001\n'
done_testing
