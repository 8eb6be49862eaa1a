#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What tables block and block_range say decides which blocks are read: a change of it is noticed.
. "$(dirname "$0")/lib.sh"

"$NRP" import -q "$DATA/cowmix-4.18.dat" -o good.db
read -r cpu tid < <("$NRP" query good.db 'SELECT cpu, tid FROM hint_fault LIMIT 1' | tail -1 | tr , ' ')
count="SELECT count(*) FROM hint_fault WHERE cpu = $cpu AND tid = $tid"
want 0 "$NRP" query good.db "$count"
want 0 "$NRP" query good.db "SELECT value GLOB '[1-9]*' FROM host_setting WHERE name = 'blocks.hint_fault'"
want_out '^1$'

# changed SQL QUERY PATTERN: after the change QUERY is refused
changed() {
	cp good.db bad.db
	sqlite3 bad.db "$1"
	want 3 "$NRP" query bad.db "$2"
	want_error "^numareplay: bad.db: .*$3"
}
of='of kind hint_fault'
written="is damaged: what it says about its blocks $of is not what was written"
range="block [0-9]+ $of is damaged: the range of a column is none"
first='block_id = (SELECT min(id) FROM block WHERE kind = 0)'
cpu_column="column = 1 AND $first"
node='SELECT count(*) FROM hint_fault WHERE this_nid = 0'

# A range that is one, but not that of the column: narrower, elsewhere, NULL, gone.
changed "UPDATE block_range SET min = max WHERE $cpu_column" "$count" "$written"
changed "UPDATE block_range SET min = max + 1, max = max + 1 WHERE $cpu_column" "$count" "$written"
changed "UPDATE block_range SET min = NULL, max = NULL WHERE $cpu_column" "$count" "$written"
changed "DELETE FROM block_range WHERE $cpu_column" "$count" "$written"
changed "UPDATE block SET tgid_min = 1, tgid_max = 1 WHERE kind = 0" \
	"SELECT count(*) FROM hint_fault WHERE tgid = 5" "$written"
changed "UPDATE block SET nid_min = 5, nid_max = 5 WHERE kind = 0" "$node" "$written"
changed "UPDATE block SET time_min = time_max WHERE kind = 0" \
	'SELECT count(*) FROM hint_fault WHERE time < 1' "$written"
# What is not used does not matter.
cp good.db bad.db
sqlite3 bad.db "UPDATE block_range SET min = max WHERE $cpu_column"
"$NRP" query good.db "$node" >want
want 0 "$NRP" query bad.db "$node"
want_same out want

# Blocks that are missing, or of another kind.
short='is damaged: its blocks of kind [a-z_]+ have [0-9]+ of [0-9]+ records: copy the file again'
for change in 'DELETE FROM block WHERE kind = 0' 'UPDATE block SET kind = 5 WHERE kind = 0'; do
	changed "$change" 'SELECT count(*) FROM hint_fault' "$short"
	for command in info verify export; do
		want 3 "$NRP" $command bad.db
		want_error "bad.db: $short"
	done
	want 3 "$NRP" replay bad.db --new off
	want_error "bad.db: $short"
done

# Without a seal, as earlier programs wrote it, what cannot be a range is still noticed.
unsealed="DELETE FROM host_setting WHERE name LIKE 'blocks.%'"
for change in 'min = 5, max = 4' 'min = NULL' 'max = NULL' 'min = -1' 'max = 4294967296'; do
	changed "$unsealed; UPDATE block_range SET $change WHERE $cpu_column" "$count" "$range"
done
for change in 'nid_min = 2, nid_max = 1' 'nid_min = NULL' 'nid_max = 40000'; do
	changed "$unsealed; UPDATE block SET $change WHERE kind = 0" "$node" "$range"
done
cp good.db old.db
sqlite3 old.db "$unsealed"
"$NRP" query good.db "$count" >want
want 0 "$NRP" query old.db "$count"
want_same out want
done_testing
