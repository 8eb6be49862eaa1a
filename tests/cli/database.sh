#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Databases that are foreign, damaged or too new.
. "$(dirname "$0")/lib.sh"

"$NRP" import -q "$DATA/thp-5.10.dat" -o good.db

for command in info verify report; do
	want 3 "$NRP" $command missing.db
	want_error 'missing.db: .*No such file|missing.db: .*does not exist'
	: >empty.db
	want 3 "$NRP" $command empty.db
	want_error 'empty.db: '
	printf 'no database, but long enough to be looked at as one\n' >text.db
	want 3 "$NRP" $command text.db
	want_error 'text.db: .*not a'
	mkdir -p folder.db
	want 3 "$NRP" $command folder.db
	want_error 'folder.db: .*directory'
	rm -f foreign.db
	sqlite3 foreign.db 'CREATE TABLE t(x)'
	want 3 "$NRP" $command foreign.db
	want_error "foreign.db: .*not numareplay's|foreign.db: .*not a numareplay"
	cp good.db newer.db
	sqlite3 newer.db 'PRAGMA user_version = 99'
	want 3 "$NRP" $command newer.db
	want_error 'newer.db: .*99.*newer numareplay'
done
cp good.db newer.db
sqlite3 newer.db 'PRAGMA user_version = 99'
cp newer.db before.db
want 3 "$NRP" import "$DATA/thp-6.1.dat" -o newer.db
want_error 'newer.db: .*99'
want_same newer.db before.db
cp text.db before.db
want 3 "$NRP" import "$DATA/thp-6.1.dat" -o text.db
want_error 'text.db: '
want_same text.db before.db

# Tables and views that would be read instead of ours.
for change in 'TABLE hint_fault(time, cpu)' 'VIEW Scan_Pass AS SELECT 1 AS time' 'TABLE column_doc(x)'; do
	cp good.db shadow.db
	sqlite3 shadow.db "CREATE $change"
	want 3 "$NRP" query shadow.db 'SELECT count(*) FROM hint_fault'
	want_error 'shadow.db: has a table or view [a-z_]+ that numareplay did not make: drop it'
done
cp good.db shadow.db
sqlite3 shadow.db 'ALTER TABLE block_range RENAME TO r; CREATE VIEW block_range AS WITH RECURSIVE
	v(block_id, column, min, max) AS (SELECT 1, 1, 1, 1 UNION ALL SELECT * FROM v) SELECT * FROM v'
want 3 timeout 60 "$NRP" query shadow.db 'SELECT count(*) FROM hint_fault WHERE cpu = 1'
want_error 'has a table or view block_range'

# Blocks that somebody deleted, but not their ranges: their numbers are given again.
cp good.db deleted.db
sqlite3 deleted.db 'PRAGMA foreign_keys = OFF; DELETE FROM block'
want 0 "$NRP" import -q "$DATA/thp-6.1.dat" -o deleted.db
want 0 "$NRP" verify deleted.db --capture thp-6.1
"$NRP" import -q "$DATA/thp-6.1.dat" -o fresh.db
of="FROM block_range r JOIN block b ON b.id = r.block_id ORDER BY b.kind, b.id, column"
[ "$(sqlite3 deleted.db "SELECT kind, column $of")" = "$(sqlite3 fresh.db "SELECT kind, column $of")" ] &&
	ok || not_ok 'ranges of deleted blocks are left'

# A damaged block is found by its checksum; nothing crashes, nothing is believed.
cp good.db damaged.db
sqlite3 damaged.db 'UPDATE block SET data = zeroblob(length(data)) WHERE kind = 0'
want 3 "$NRP" verify damaged.db
want_error 'damaged.db: .*damaged'
want 3 "$NRP" replay damaged.db --new migrate.ratelimit=spin
want_error 'damaged.db: .*damaged'
want 3 "$NRP" query damaged.db 'SELECT sum(addr) FROM hint_fault'
want_error 'damaged'
cp good.db damaged.db
sqlite3 damaged.db 'UPDATE block SET checksum = checksum + 1 WHERE kind = 0'
want 3 "$NRP" verify damaged.db
want_error 'damaged.db: .*damaged'

# Text that is no text does not stop JSON, numbers that are none are not printed.
cp good.db damaged.db
sqlite3 damaged.db "UPDATE capture SET name = CAST(x'61ff0a62' AS TEXT), kernel = CAST(x'ff' AS TEXT)"
for command in info verify report; do
	want 0 "$NRP" $command damaged.db --json
	want_json '(.capture // .info.capture) == "a??b"'
done
want 0 "$NRP" query --json damaged.db 'SELECT name, 9e999 AS x FROM capture'
want_json '.[0].x == null and .[0].name == "a??b"'
cp good.db damaged.db
want 0 "$NRP" replay damaged.db --new migrate.ratelimit=spin
sqlite3 damaged.db 'UPDATE lane_metric SET old_upper = 9e999'
want 3 "$NRP" report damaged.db --json
want_error 'damaged.db: a stored metric is not a number: replay again'

# Host facts and counters that no host has: damage, or a difference, but no overflow.
for set in hz=0 hz=-5 hz=9223372036854775807 page_size=0 page_size=4294967296 huge_pages=-7 \
	cpupid_bits=200 cpupid_shift=64 nid_shift=99 balancing=-3 scan_period_min_ms=-9 \
	scan_period_max_ms=9223372036854775807 moved_result=2 nr_cpus=2147483648 nr_nodes=-1 \
	loss_gaps=-1 last_time=0; do
	cp good.db damaged.db
	sqlite3 damaged.db "UPDATE capture SET $set"
	for command in info verify 'replay --new off'; do
		want 3 "$NRP" $command damaged.db
		want_error 'damaged.db: capture thp-5.10 is damaged: .*: import the trace again'
	done
done
for value in 0 1 9223372036854775807 -9223372036854775808; do
	cp good.db damaged.db
	sqlite3 damaged.db "UPDATE counter SET value = $value WHERE snapshot = 1"
	want 1 "$NRP" verify damaged.db
	want 1 "$NRP" verify damaged.db --json
done

# Cut short, and with a page overwritten, at many places: an error or an answer, never a crash.
size=$(stat -c %s good.db)
for ((at = 0; at < size; at += 8192)); do
	head -c $at good.db >cut.db
	"$NRP" verify cut.db >out 2>err
	case $? in
	0 | 3) ok ;;
	*) not_ok "verify of a database cut at $at: status $?, $(head -2 err)" ;;
	esac
	cp good.db torn.db
	head -c 512 /dev/urandom | dd of=torn.db bs=1 seek=$at conv=notrunc status=none
	"$NRP" verify torn.db >out 2>err
	case $? in
	0 | 1 | 3) ok ;;
	*) not_ok "verify of a database torn at $at: status $?, $(head -2 err)" ;;
	esac
	cp torn.db before.db
	"$NRP" import "$DATA/thp-6.1.dat" -o torn.db >out 2>err
	case $? in
	0) ok ;;
	3)
		want_error ': '
		want_same torn.db before.db
		;;
	*) not_ok "import into a database torn at $at: $(head -2 err)" ;;
	esac
done

# A disk that is full: nothing is told, nothing stays.
cp good.db full.db
full=$(($(stat -c %s good.db) / 1024 + 8))
(ulimit -f $full && exec "$NRP" import "$DATA/limiter-6.12.dat" -o full.db) >out 2>err
[ $? -eq 5 ] && ok || not_ok "status of an import on a full disk"
want_error 'full.db: '
want_same out /dev/null
want_same full.db good.db
(ulimit -f $full && exec "$NRP" import "$DATA/limiter-6.12.dat" -o full-new.db) >out 2>err
want_error 'full-new.db: '
want_absent full-new.db

# The report does not go into the database.
want 2 "$NRP" report good.db -o ./good.db
want_error 'good.db: is the database itself: name another file'
want 0 "$NRP" info good.db

# query reads: it changes no file, makes none, and does not fill the memory with one value.
cp good.db before.db
for sql in "VACUUM INTO 'made.db'" "ATTACH 'made.db' AS made" VACUUM 'DELETE FROM capture' \
	"INSERT INTO capture(name) VALUES ('x')" 'CREATE TABLE t(x)' 'CREATE TEMP TABLE t(x)' \
	'DROP TABLE block' "UPDATE capture SET id = 2" 'PRAGMA user_version = 7' BEGIN \
	"SELECT 1; ATTACH 'made.db' AS made" 'PRAGMA temp_store_directory = "."'; do
	want 2 "$NRP" query good.db "$sql"
	want_error 'query reads only: give a SELECT$'
	want_absent made.db
	want_same good.db before.db
done
for sql in 'SELECT zeroblob(900000000)' 'SELECT hex(randomblob(900000000))'; do
	want 2 "$NRP" query good.db "$sql"
	want_error 'a value is larger than 64 MiB'
done
want 0 "$NRP" query good.db 'SELECT length(zeroblob(60000000))'
want_out '^60000000$'
want 0 "$NRP" query good.db "SELECT name FROM pragma_table_info('capture') LIMIT 1"
want_out '^id$'
want 0 "$NRP" query good.db 'PRAGMA user_version'
want 0 "$NRP" query good.db 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4)
	SELECT sum(x) FROM c; SELECT count(*) FROM hint_fault'
want_out '^10$'
want_out '^656$'

# kill -9 in the middle of an import leaves the old state.
cp good.db killed.db
"$NRP" info good.db --json >want.json
for delay in 0.01 0.03 0.06 0.1; do
	"$NRP" import "$DATA/limiter-6.12.dat" -o killed.db >/dev/null 2>&1 &
	sleep $delay
	kill -9 $! 2>/dev/null
	wait $! 2>/dev/null
	n=$("$NRP" query killed.db 'SELECT count(*) FROM capture' | tail -1)
	case $n in
	1) "$NRP" verify killed.db >/dev/null && ok || not_ok "killed after $delay s: verify" ;;
	2)
		ok # it was faster
		break
		;;
	*) not_ok "killed after $delay s: $n captures" ;;
	esac
done
# What the file brings with it is not run.
cp good.db trigger.db
sqlite3 trigger.db 'CREATE TRIGGER t AFTER INSERT ON replay BEGIN DELETE FROM counter; END'
want 0 "$NRP" replay trigger.db --new off
want 0 "$NRP" query trigger.db 'SELECT count(*) > 0 FROM counter'
want_out '^1$'
# A table that is missing is damage, with a way out.
for table in touch_rate counter; do
	cp good.db gone.db
	sqlite3 gone.db "DROP TABLE $table"
	want 3 "$NRP" replay gone.db --new off
	want_error "gone.db: .*$table.*: copy the file again, or import the trace again"
done
# Scans that find the same rows, joined by OR: SQLite without the scans' help says what is right.
want 0 "$NRP" import -q "$DATA/shared-6.1.dat" -o or.db
for terms in 'time<21000000000 time>21800000000' 'time<20900000000 time>21900000000' 'cpu=1 time>20951099305'; do
	set -- $terms
	for table in hint_fault migration_entry; do
		want 0 "$NRP" query or.db "SELECT (SELECT count(*) FROM $table WHERE $1 OR $2) = (SELECT count(*) FROM $table WHERE +$1 OR +$2) AS same"
		want_out '^1$'
	done
done
want 0 "$NRP" query or.db 'SELECT sum(moved) FROM hint_fault WHERE time<21000000000 OR time>21800000000'
want_out '^757$'
# The same capture has one place, whatever its name.
want 2 "$NRP" import -q "$DATA/shared-6.1.dat" -o or.db --name again
want_error 'this capture is in the database already: --force replaces it$'
done_testing
