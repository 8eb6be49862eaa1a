#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A database on a medium that cannot be written: everything but import works, and nothing is left there.
if [ "$(id -u)" -eq 0 ] && [ "${NRP_OWN_MOUNTS-}" != 1 ]; then
	# Permissions do not stop root: a file system that is mounted read-only does.
	if ! unshare --mount true 2>/dev/null; then
		echo "skipped: root without the right to mount"
		exit 77
	fi
	NRP_OWN_MOUNTS=1 exec unshare --mount "$0"
fi
. "$(dirname "$0")/lib.sh"

mkdir disk
"$NRP" import -q "$DATA/thp-5.10.dat" -o new.db
gzip -dc "$DATA/schema-1.db.gz" >old.db
if [ "${NRP_OWN_MOUNTS-}" = 1 ]; then
	mount -t tmpfs -o size=4m none disk || exit 77
	cp new.db old.db disk
	mount -o remount,ro disk
else
	cp new.db old.db disk
	chmod a-w disk disk/*.db
fi
for file in new old; do
	for command in info verify report 'export --kind hint_fault' 'replay --new off'; do
		want 0 "$NRP" $command $file.db
		mv out want
		want 0 "$NRP" $command disk/$file.db
		sed -i "s,$file.db,disk/$file.db," want
		want_same out want
	done
	want_error "disk/$file.db: is not writable: the comparison is not stored"
	want 0 "$NRP" query disk/$file.db 'SELECT count(*) FROM hint_fault'
	want 3 "$NRP" import "$DATA/thp-7.2.dat" -o disk/$file.db
	want_error "disk/$file.db: .*writable"
done
[ "$(ls disk)" = "new.db
old.db" ] && ok || not_ok "files were left: $(ls disk)"
if [ "${NRP_OWN_MOUNTS-}" = 1 ]; then
	umount disk
else
	chmod u+w disk/*.db # a file that could be written, but for its folder
	want 0 "$NRP" replay disk/new.db --new off
	want_error 'disk/new.db: is not writable: the comparison is not stored'
fi
done_testing
