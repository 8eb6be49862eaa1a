#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Imports onto small file systems, of growing size until one is large enough: the database is at its old
# state or complete. Needs root, to mount them.
if [ "${NRP_OWN_MOUNTS-}" != 1 ]; then
	# In a name space of their own the mounts end with the test.
	if ! unshare --mount sh -c 'mkdir -p /tmp/nrp-mount.$$ && trap "rmdir /tmp/nrp-mount.$$" EXIT &&
		mount -t tmpfs -o size=64k none /tmp/nrp-mount.$$ && umount /tmp/nrp-mount.$$' 2>/dev/null; then
		echo "skipped: no small file system can be mounted here (root?)"
		exit 77
	fi
	NRP_OWN_MOUNTS=1 exec unshare --mount "$0"
fi
. "$(dirname "$0")/lib.sh"

trace=$DATA/limiter-6.12.dat
"$NRP" import -q "$DATA/thp-5.10.dat" -o old.db
"$NRP" import -q "$trace" -o whole.db
"$NRP" query whole.db 'SELECT count(*), sum(addr), sum(time) FROM hint_fault' >whole
mkdir disk
failed_imports=0
try() { # FILE SIZE-IN-KIB: import into it; 0: done
	"$NRP" import -q "$trace" -o "$1" >out 2>err && return 0
	[ $? -eq 5 ] && ok || not_ok "$2 KiB, $1: another status: $(cat err)"
	want_error "$1: .*(full|space|disk)"
	failed_imports=$((failed_imports + 1))
	return 1
}
check_complete() { # FILE
	"$NRP" query "$1" "SELECT count(*), sum(addr), sum(time) FROM hint_fault WHERE capture_id =
		(SELECT id FROM capture WHERE name = 'limiter-6.12')" >out
	want_same out whole
}

size=$(($(stat -c %s old.db) / 1024 + 20))
step=$(($(stat -c %s whole.db) / 1024 / 8))
for ((done = 0; !done; size += step)); do
	mount -t tmpfs -o size=${size}k none disk
	cp old.db disk/a.db
	if try disk/a.db $size; then
		check_complete disk/a.db
		done=1
	else
		want_same disk/a.db old.db
		want_absent disk/a.db-journal
		want 0 "$NRP" verify disk/a.db
		rm disk/a.db
		if try disk/new.db $size; then
			check_complete disk/new.db
		else
			want_absent disk/new.db
		fi
	fi
	umount disk
	[ $size -lt 100000 ] || { not_ok 'never large enough'; break; }
done
[ $failed_imports -gt 2 ] && ok || not_ok "only $failed_imports imports met a full disk"
done_testing
