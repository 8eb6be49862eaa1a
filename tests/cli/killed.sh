#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# kill -9 at moments spread over an import: the database holds the old state or the new one, whole.
# NRP_KILLS imports (default 10) that a kill ended, half of them into a database that was there, half into
# a new one.
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
killed=0
finished=0

# kill_import FILE: kills an import anywhere within it. How long one takes now is learnt on the way.
kill_import() {
	delay=$(((RANDOM << 15 | RANDOM) % took))
	"$NRP" import -q "$trace" -o "$1" >/dev/null 2>&1 &
	local pid=$!
	sleep "$(printf '%d.%06d' $((delay / 1000000)) $((delay % 1000000)))"
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	if [ $? -eq 137 ]; then
		killed=$((killed + 1))
		took=$((took * 21 / 20))
	else
		took=$((took * 9 / 10 + 1000))
	fi
}
check_whole() { # FILE
	"$NRP" query "$1" "$sum" >again 2>err
	want_same again whole
	finished=$((finished + 1))
}

for ((i = 0; killed < kills && i < 3 * kills; i++)); do
	rm -f killed.db killed.db-journal
	cp old.db killed.db
	kill_import killed.db
	n=$("$NRP" query killed.db 'SELECT count(*) FROM capture' 2>err | tail -1)
	[ "$(sqlite3 killed.db 'PRAGMA integrity_check')" = ok ] && ok || not_ok "after $delay us: not sound"
	case $n in
	1) want_same killed.db old.db ;;
	2) check_whole killed.db ;;
	*) not_ok "after $delay us: $n captures, $(cat err)" ;;
	esac

	# A file that was not there: absent, empty (and the next import fills it), or complete.
	rm -f fresh.db fresh.db-journal
	kill_import fresh.db
	if [ -e fresh.db ] && "$NRP" query fresh.db 'SELECT 1' >/dev/null 2>err; then
		check_whole fresh.db
	elif [ -e fresh.db ]; then
		want_error 'fresh.db: .*is empty'
		want 0 "$NRP" import -q "$trace" -o fresh.db
		want 2 "$NRP" import -q "$trace" -o fresh.db
	fi
done
printf '%d imports of about %d us killed; %d, killed or not, were complete\n' $killed $took $finished
[ $killed -ge $kills ] && ok || not_ok "only $killed imports were killed"
done_testing
