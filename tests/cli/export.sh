#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# export: the same values as in SQL, NULL as an empty field, times, files.
. "$(dirname "$0")/lib.sh"

"$NRP" import -q "$DATA/thp-5.10.dat" -o a.db

# query prints numbers of 2^63 and more as negative ones: none of these columns has such.
columns=time,tid,tgid,addr,src_nid,target_nid,scan_period,moved,inferred
want 0 "$NRP" export a.db --csv --kind hint_fault
cut_columns() { # of out, by name
	awk -F, -v names="$1" 'NR == 1 { n = split(names, name); for (i = 1; i <= NF; i++) at[$i] = i }
		{ for (i = 1; i <= n; i++) printf "%s%s", $at[name[i]], i < n ? "," : "\n" }' out
}
cut_columns $columns >exported
want 0 "$NRP" query a.db "SELECT $columns FROM hint_fault"
want_same out exported
want_out '^4409285384,149,,140296746696704,0,1,100,1,0$'

want 0 "$NRP" export a.db --kind hint_fault
[ "$(awk -F, '{ print NF }' out | sort -u)" = 47 ] && ok || not_ok "rows of several lengths"
want 0 "$NRP" query a.db "SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info('hint_fault'))"
tail -1 out | tr -d '"' >names
"$NRP" export a.db --kind hint_fault | head -1 >head
want_same names head
# A pointer is a number of 64 bits without a sign.
want 0 "$NRP" query a.db "SELECT printf('%llu', mm) FROM hint_fault LIMIT 1"
tail -1 out >mm
want 0 "$NRP" export a.db --kind hint_fault
cut_columns mm | sed -n 2p >exported
want_same mm exported

# Times: both ends belong to it; seconds count from the first event of the capture.
count() { "$NRP" query a.db "SELECT count(*) FROM hint_fault WHERE $1" | tail -1; }
lines() { echo $(($("$NRP" export a.db --kind hint_fault "$@" | wc -l) - 1)); }
[ "$(lines --from 4409285384)" = "$(count 'time >= 4409285384')" ] && ok || not_ok from
[ "$(lines --from 4409285385)" = "$(count 'time > 4409285384')" ] && ok || not_ok 'from, later'
[ "$(lines --to 4420669197)" = "$(count 'time <= 4420669197')" ] && ok || not_ok to
[ "$(lines --from 4409285384 --to 4420669197)" = 2 ] && ok || not_ok 'from and to'
first=$("$NRP" query a.db 'SELECT first_time FROM capture' | tail -1)
[ "$(lines --from +2.5 --to +4)" = "$(count "time BETWEEN $first + 2500000000 AND $first + 4000000000")" ] &&
	ok || not_ok 'seconds'
[ "$(lines --from 5 --to 5)" = 0 ] && ok || not_ok 'nothing'
for times in '--from 5 --to 4' '--from +3 --to +2.9'; do
	want 2 "$NRP" export a.db $times
	want_error '^numareplay: --from is later than --to: '
done
for time in '' x 5s -3 +x +-1 +nan +1e30 99999999999999999999; do
	want 2 "$NRP" export a.db --from "$time"
	want_error 'is no time'
done
want 2 "$NRP" export a.db --kind hint_faults
want_error "no kind of record 'hint_faults'"

# Everything: to stdout, each kind behind its name, or to a folder with the names of tasks.
want 0 "$NRP" export a.db
want_out '^# hint_fault$'
want_out '^# task_life$'
want 0 "$NRP" export a.db -o folder
for kind in hint_fault scan_pass scan_range migration task_move preferred task_life; do
	"$NRP" export a.db --kind $kind >one
	want_same one folder/$kind.csv
done
want_absent folder/ratelimit.csv # no rows
[ "$(sed -n 1p folder/name.csv)" = id,text ] && ok || not_ok 'names'
want 0 "$NRP" export a.db --kind ratelimit -o folder
[ "$(wc -l <folder/ratelimit.csv)" = 1 ] && ok || not_ok 'a kind without rows'
want 2 "$NRP" export a.db -o a.db/folder
want_error 'a.db/folder: cannot be written: Not a directory: name another place'
want 2 "$NRP" export a.db -o no/such/folder
want_error 'no/such/folder: cannot be written: '
if [ -d /sys/kernel ]; then # nobody may make files there
	want 4 "$NRP" export a.db -o /sys/numareplay
	want_error '/sys/numareplay: cannot be written: .*: name a place that you may write to'
	want 4 "$NRP" report a.db -o /sys/numareplay
	want_error '/sys/numareplay: cannot be written: .*: name a place that you may write to'
fi
want 2 "$NRP" report a.db -o no/such/file
want_error 'no/such/file: cannot be written: '
cp a.db folder/loss.csv
want 2 "$NRP" export folder/loss.csv --kind loss -o folder
want_error 'is the database itself'
want_same a.db folder/loss.csv
want 2 "$NRP" export a.db --kind loss -o /dev/null
sh -c '"$NRP" export a.db >/dev/full' 2>err
[ $? -eq 5 ] && ok || not_ok 'a full disk'
want_error 'standard output: cannot be written: No space left on device: free some space'
sh -c '"$NRP" info a.db >&-' 2>err
[ $? -eq 2 ] && ok || not_ok 'no standard output'
want_error 'standard output: cannot be written: '
(ulimit -f 20 && exec "$NRP" export a.db --kind hint_fault -o short) 2>err
[ $? -eq 5 ] && ok || not_ok 'a file that may not grow'
want_error 'short/hint_fault.csv: cannot be written'
want_absent short

# Damage is an error, not half a table.
cp a.db good.db
sqlite3 a.db 'UPDATE block SET checksum = checksum + 1 WHERE kind = (SELECT max(kind) FROM block)'
want 3 "$NRP" export a.db -o damaged
want_error 'a.db: block [0-9]+ of kind [a-z_]+ is damaged'
want_absent damaged
sqlite3 a.db 'UPDATE block SET checksum = checksum + 1 WHERE kind = 0'
want 3 "$NRP" export a.db --kind hint_fault -o damaged
want_error 'a.db: block 1 of kind hint_fault is damaged'
want_absent damaged
# What was there stays: all files get their names, or none. Nothing is written through a link.
mkdir mixed
echo other >mixed/group_weight.csv
echo mine >target
ln -s ../target mixed/scan_pass.csv
want 3 "$NRP" export a.db -o mixed
[ "$(ls -A mixed)" = "$(printf 'group_weight.csv\nscan_pass.csv')" ] && ok || not_ok "left: $(ls -A mixed)"
want 0 "$NRP" export good.db -o mixed
[ "$(cat target)" = mine ] && ok || not_ok 'written through a link'
"$NRP" export good.db --kind scan_pass >one
want_same one mixed/scan_pass.csv
[ -z "$(ls -A mixed | grep '^\.')" ] && ok || not_ok "left: $(ls -A mixed)"
rm mixed/scan_range.csv mixed/scan_pass.csv
mkdir mixed/scan_range.csv
want 2 "$NRP" export good.db -o mixed
want_error 'mixed/scan_range.csv: cannot be written: Is a directory'
want_absent mixed/scan_pass.csv

# Several captures: which one?
"$NRP" import -q "$DATA/thp-6.1.dat" "$DATA/thp-7.2.dat" -o two.db
want 2 "$NRP" export two.db
want_error 'thp-7.2'
want 0 "$NRP" export two.db --capture thp-7.2 --kind hint_fault
done_testing
