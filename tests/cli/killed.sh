#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# kill -9 at moments spread over an import: the database holds the old state or the new one, whole.
# NRP_KILLS moments (default 10), each for a database that was there and for a new one.
. "$(dirname "$0")/lib.sh"

kills=${NRP_KILLS:-10}
trace=$DATA/limiter-6.12.dat
"$NRP" import -q "$DATA/thp-5.10.dat" -o old.db
cp old.db new.db
start=$EPOCHREALTIME
"$NRP" import -q "$trace" -o new.db
took=$((${EPOCHREALTIME/./} - ${start/./})) # us
sum="SELECT count(*), sum(addr), sum(time), sum(moved) FROM hint_fault WHERE capture_id =
	(SELECT id FROM capture WHERE name = 'limiter-6.12')"
"$NRP" query new.db "$sum" >whole
unfinished=0
finished=0

# kill_import FILE US: true if the import was killed
kill_import() {
	"$NRP" import -q "$trace" -o "$1" >/dev/null 2>&1 &
	local pid=$!
	sleep "$(printf '%d.%06d' $(($2 / 1000000)) $(($2 % 1000000)))"
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $? -eq 137 ]
}
check_whole() { # FILE
	"$NRP" query "$1" "$sum" >again 2>err
	want_same again whole
	finished=$((finished + 1))
}

for ((i = 0; i < kills; i++)); do
	# Anywhere within the import, and a little behind its end.
	delay=$((took * i / kills + RANDOM % (took / kills + took / 10 + 1)))
	rm -f killed.db killed.db-journal
	cp old.db killed.db
	kill_import killed.db $delay && unfinished=$((unfinished + 1))
	n=$("$NRP" query killed.db 'SELECT count(*) FROM capture' 2>err | tail -1)
	[ "$(sqlite3 killed.db 'PRAGMA integrity_check')" = ok ] && ok || not_ok "after $delay us: not sound"
	case $n in
	1) want_same killed.db old.db ;;
	2) check_whole killed.db ;;
	*) not_ok "after $delay us: $n captures, $(cat err)" ;;
	esac

	# A file that was not there: absent, empty (and the next import fills it), or complete.
	rm -f fresh.db fresh.db-journal
	kill_import fresh.db $delay && unfinished=$((unfinished + 1))
	if [ -e fresh.db ] && "$NRP" query fresh.db 'SELECT 1' >/dev/null 2>err; then
		check_whole fresh.db
	elif [ -e fresh.db ]; then
		want_error 'fresh.db: .*is empty'
		want 0 "$NRP" import -q "$trace" -o fresh.db
		want 2 "$NRP" import -q "$trace" -o fresh.db
	fi
done
printf '%d imports of %d us: %d killed, %d finished\n' $((2 * kills)) $took $unfinished $finished
[ $unfinished -gt 0 ] && ok || not_ok 'no import was killed'
done_testing
