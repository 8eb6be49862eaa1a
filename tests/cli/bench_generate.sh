#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The generator of bench/: what it writes is what its description says, and import joins all of it.
. "$(dirname "$0")/lib.sh"

# 8 nodes: a pass of each of 8 processes has 8 * 4614 = 36912 events, so 40000 take two passes.
want 0 "$GENERATE" numa --events 40000 "$DATA/thp-6.12.dat" numa.dat
want_out '^events 73824$'
want_out '^faults 12288$'
want 0 "$NRP" import numa.dat -o numa.db
want_out '^numa: 73824 events in .* 0 unjoined, 0 of kinds without a record, none lost$'
want 0 "$NRP" query numa.db 'SELECT nr_nodes, nr_cpus, hz, huge_pages, cpupid_bits FROM capture'
want_out '^8,32,250,512,21$'
# Of 768 faults a pass, half are remote, half of these move: 128 base pages and 64 huge ones.
want 0 "$NRP" query numa.db 'SELECT count(*), sum(src_nid <> this_nid), sum(moved),
	sum(moved * pages), sum(pages = 512) FROM hint_fault'
want_out '^12288,6144,3072,526336,4096$'
want 0 "$NRP" query numa.db 'SELECT count(*), sum(pages) FROM scan_range'
want_out "^32,$((16 * (512 + 256 * 512)))\$"
want 0 "$NRP" query numa.db 'SELECT count(*), count(DISTINCT mm) FROM scan_pass'
want_out '^16,8$'
# The rules of its kernel explain every answer in it.
want 0 "$NRP" verify numa.db
want_out 'agrees: the host'
want_out '^6\.12 +6144 +6144 +0 +0 the host'

# Four nodes, as version 6. The same arguments give the same bytes, another seed gives others.
four=(numa --v6 --nodes 4 --events 1 "$DATA/thp-6.12.dat")
want 0 "$GENERATE" "${four[@]}" four.dat
want_out '^events 18456$'
want 0 "$NRP" import four.dat -o four.db
want_out '^four: 18456 events in .* 0 unjoined'
want 0 "$GENERATE" "${four[@]}" again.dat
want_same four.dat again.dat
want 0 "$GENERATE" "${four[@]}" --seed 2 again.dat
want 1 cmp -s four.dat again.dat

# A capture repeated: all its events each time, and 1 ms between two of them.
span='SELECT last_time - first_time FROM capture'
want 0 "$NRP" import "$DATA/thp-6.12.dat" -o once.db
once=$("$NRP" query once.db "$span" | tail -1)
for version in '' --v6; do
	want 0 "$GENERATE" repeat $version "$DATA/thp-6.12.dat" three.dat 3
	want_out '^events 9120$'
	want 0 "$NRP" import three.dat -o three.db --facts "$DATA/thp-6.12.facts"
	want_out '^three: 9120 events in .* 0 unjoined'
	want 0 "$NRP" query three.db "$span"
	want_out "^$((3 * once + 2 * 1000000))\$"
	rm three.db
done

# Arguments.
want 2 "$GENERATE"
want 2 "$GENERATE" numa "$DATA/thp-6.12.dat" x.dat
want 2 "$GENERATE" numa --nodes 3 --events 1 "$DATA/thp-6.12.dat" x.dat
want 2 "$GENERATE" repeat "$DATA/thp-6.12.dat" x.dat 0
want 3 "$GENERATE" numa --events 1 "$DATA/thp-4.18.dat" x.dat
grep -q "no event prepare_begin" err && ok || not_ok "no reason given"
want 3 "$GENERATE" repeat missing.dat x.dat 2
done_testing
