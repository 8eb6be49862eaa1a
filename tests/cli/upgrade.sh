#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Files that earlier versions of numareplay wrote (schema 1 to 4; numbers are what those said) are read
# as they are, also when they cannot be written, and brought up to date by the first write.
. "$(dirname "$0")/lib.sh"

"$NRP" import -q "$DATA/thp-4.18.dat" -o today.db
"$NRP" export today.db --kind hint_fault >today.csv
for version in 1 2 3 4; do
	gzip -dc "$DATA/schema-$version.db.gz" >old.db
	cp old.db before.db
	for command in info report 'export --kind hint_fault'; do
		want 0 "$NRP" $command old.db
	done
	want_same out today.csv
	want 0 "$NRP" query old.db 'SELECT count(*), sum(addr), sum(moved) FROM hint_fault'
	want_out '^179,24398092446732288,7$'
	want 0 "$NRP" query old.db 'SELECT count(*) FROM scan_range'
	want_out '^49$'
	want 0 "$NRP" query old.db 'SELECT count(*), sum(time) FROM task_move'
	want_out '^8,316104183110$'
	# Comparisons that newer files answer by ranges that this one lacks.
	want 0 "$NRP" query old.db 'SELECT count(*) FROM hint_fault WHERE vm_start > 0 AND tid > 0'
	want_out '^179$'
	want_same old.db before.db

	want 0 "$NRP" verify old.db
	want 0 "$NRP" replay old.db --new off
	want 0 sqlite3 old.db 'PRAGMA user_version; PRAGMA integrity_check'
	want_out '^5$'
	want_out '^ok$'
	want 0 "$NRP" import -q "$DATA/thp-5.10.dat" -o old.db
	want 0 "$NRP" query old.db 'SELECT name, hint_fault FROM report_capture'
	want_out '^thp-4.18,179$'
	want_out '^thp-5.10,656$'
	want 0 "$NRP" query old.db 'SELECT count(*), count(DISTINCT replay_id) FROM lane_metric'
	want_out ',1$'
	want 0 "$NRP" export old.db --capture thp-4.18 --kind hint_fault
	want_same out today.csv
	want 2 "$NRP" import "$DATA/thp-4.18.dat" -o old.db
	want_error 'in the database already'
	# The tables are those of a new file.
	want 0 sqlite3 old.db "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY 1"
	mv out old.tables
	want 0 sqlite3 today.db "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY 1"
	want_same out old.tables
done
done_testing
