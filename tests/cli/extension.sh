#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The loadable extension in the sqlite3 shell: the tables of query, and its errors.
. "$(dirname "$0")/lib.sh"

# A sanitizer's library has to come first in a program that was built without it.
asan=$(ldd "$EXTENSION" | awk '/libasan/ { print $3 }')
shell() { LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 sqlite3 -separator , "$1" ".load ${EXTENSION%.so}" "$2"; }

"$NRP" import -q "$DATA/munmap-6.12.dat" "$DATA/thp-5.10.dat" -o a.db
if ! shell a.db 'SELECT 1' >out 2>err; then
	echo "skipped: the sqlite3 shell does not load it: $(cat err)"
	exit 77
fi

# Every kind and every column: what query says.
for kind in $("$NRP" query a.db 'SELECT DISTINCT kind FROM column_doc' | tail -n +2); do
	"$NRP" query a.db "SELECT * FROM $kind" | tail -n +2 >want
	want 0 shell a.db "SELECT * FROM $kind"
	want_same out want
done
want 0 shell a.db 'SELECT count(*) FROM hint_fault'
want_out '^[1-9]'
want 0 shell a.db "SELECT unit FROM column_doc WHERE kind = 'scan_pass' AND name = 'scan_period'"
want_out '^ms$'
want 0 shell a.db 'SELECT c.name, count(*) FROM capture c JOIN hint_fault f ON f.capture_id = c.id GROUP BY 1'
want_out '^thp-5.10,656$'

# Blocks that a condition rules out are not read.
want 0 shell a.db 'SELECT count(*) FROM hint_fault WHERE time < 0; SELECT nrp_blocks_read(), nrp_blocks_left_out()'
want_out '^0,2$'
want 0 shell a.db 'SELECT count(*) > 0 FROM hint_fault WHERE capture_id = 2; SELECT nrp_blocks_read(), nrp_blocks_left_out()'
want_out '^1,0$'

# What is no database of ours, or a newer one, is named.
sqlite3 foreign.db 'CREATE TABLE t(x)'
want 1 shell foreign.db 'SELECT * FROM hint_fault'
grep -q "not numareplay's" err && ok || not_ok "foreign: $(cat err)"
want 1 shell :memory: 'SELECT * FROM hint_fault'
cp a.db newer.db
sqlite3 newer.db 'PRAGMA user_version = 99'
want 1 shell newer.db 'SELECT * FROM hint_fault'
grep -q 'use a newer numareplay' err && ok || not_ok "newer: $(cat err)"
cp a.db damaged.db
sqlite3 damaged.db 'UPDATE block SET checksum = checksum + 1'
want 11 shell damaged.db 'SELECT sum(addr) FROM hint_fault'
grep -q 'block 1 of kind hint_fault is damaged: its checksum does not match' err && ok ||
	not_ok "damaged: $(cat err)"

# The tables read only, and cannot be made part of a file.
want 1 shell a.db 'DELETE FROM hint_fault'
want 1 shell a.db 'CREATE VIRTUAL TABLE x USING hint_fault'
# It believes no range that was changed.
cp a.db changed.db
sqlite3 changed.db 'UPDATE block_range SET min = max + 1, max = max + 1 WHERE column = 1'
shell changed.db 'SELECT count(*) FROM hint_fault WHERE cpu = 0' >out 2>err && not_ok 'a changed range' || ok
grep -q 'what it says about its blocks of kind hint_fault is not what was written' err && ok ||
	not_ok "a changed range: $(cat err)"
done_testing
