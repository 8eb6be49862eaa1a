#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Bad input: one line with file, offset and remedy, the designed status, the database complete or untouched.
. "$(dirname "$0")/lib.sh"

"$NRP" import -q "$DATA/thp-5.10.dat" -o kept.db
cp kept.db before.db

refused() { # FILE PATTERN [OPTION..]: neither a new nor an existing database is touched
	want 3 "$NRP" import "$1" -o new.db "${@:3}"
	want_error "$2"
	want_absent new.db
	want_absent new.db-journal
	want 3 "$NRP" import "$1" -o kept.db "${@:3}"
	want_error "$2"
	want_same kept.db before.db
}

printf 'this is no trace\n' >text.dat
refused text.dat '^numareplay: text.dat: neither a trace-cmd file nor a trace as text: no line of 1 is an event: '
: >empty.dat
refused empty.dat '^numareplay: empty.dat: .*empty'
mkdir folder.dat
refused folder.dat '^numareplay: folder.dat: .*directory'
refused missing.dat '^numareplay: missing.dat: .*No such file'
head -c 4096 /dev/zero >zero.dat
refused zero.dat 'not a trace-cmd file'
printf '\027\010\104tracing9\0' >nine.dat
head -c 100 /dev/zero >>nine.dat
refused nine.dat 'version 9'

# Unreadable: root reads everything, so as somebody else where that is possible.
cp "$DATA/thp-5.10.dat" locked.dat
chmod 000 locked.dat
if [ "$(id -u)" -ne 0 ]; then
	refused locked.dat 'locked.dat: .*Permission denied'
elif chmod 755 . && mkdir theirs && chown 65534 theirs &&
	setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '"$0" --version && : >theirs/x' "$NRP" >/dev/null 2>&1; then
	want 3 setpriv --reuid=65534 --regid=65534 --clear-groups "$NRP" import locked.dat -o theirs/new.db
	want_error 'locked.dat: .*Permission denied'
	want_absent theirs/new.db
else
	echo "unreadable file: not tried (root, and the program is not in reach of another user)"
fi

# Cut short at every 64 KiB: nothing is kept if the user is strict (damage.sh: what is salvaged otherwise).
size=$(stat -c %s "$DATA/shared-4.18.dat")
for ((at = 0; at < size; at += 65536)); do
	head -c $at "$DATA/shared-4.18.dat" >cut.dat
	if [ $at -eq 0 ]; then
		refused cut.dat 'empty'
	else
		refused cut.dat '^numareplay: cut.dat: offset [0-9]+: .*: ' --strict
	fi
done
head -c $((size - 1)) "$DATA/shared-4.18.dat" >cut.dat
refused cut.dat '^numareplay: cut.dat: offset [0-9]+: ' --strict

# Cut in its headers: nothing can be salvaged.
for at in 30 300 1000 3000 4000; do
	head -c $at "$DATA/shared-4.18.dat" >cut.dat
	refused cut.dat '^numareplay: cut.dat: offset [0-9]+: cut short: '
	head -c $at "$DATA/thp-6.12-v6.dat" >cut.dat
	refused cut.dat '^numareplay: cut.dat: offset [0-9]+: cut short: '
done

# Side files that are none.
want 3 "$NRP" import "$DATA/thp-6.12-v6.dat" -o new.db --facts text.dat --vmstat text.dat text.dat
want_error 'text.dat: offset 0: '
want_absent new.db
want 3 "$NRP" import "$DATA/thp-6.12-v6.dat" -o new.db --facts /nowhere
want_error '/nowhere: No such file'
want 3 "$NRP" import "$DATA/thp-6.12-v6.dat" -o new.db --facts folder.dat
want_error 'folder.dat: .*directory'

# A database that cannot be written.
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o /nowhere/new.db
want_error '/nowhere/new.db: '
want 3 "$NRP" import "$DATA/thp-5.10.dat" -o folder.dat
want_error 'folder.dat: .*directory'
done_testing
