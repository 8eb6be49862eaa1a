#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Help, usage errors and exit status 2.
. "$(dirname "$0")/lib.sh"

want 2 "$NRP"
want 0 "$NRP" --help
want_out '^exit status: 0 done, 1 the answer is no, 2 usage, 3 input'
want 0 "$NRP" --version
want_out '^numareplay [0-9]'
for command in import info verify replay report query export policies counters; do
	want 0 "$NRP" "$command" --help
	want_out "^usage: numareplay $command"
	want_out '--help'
	want 0 "$NRP" help "$command"
	want 2 "$NRP" "$command" --no-such-option
	want_error "no option --no-such-option: see numareplay $command --help"
done
for command in info verify report; do
	want 2 "$NRP" $command
	want_error 'missing argument'
	want 2 "$NRP" $command a b
	want_error 'one argument too many: b'
done
want 2 "$NRP" bogus
want_error "no command 'bogus'"
want 2 "$NRP" import x.dat
want_error 'name the database'
want 2 "$NRP" import x.dat -o
want_error 'missing value after -o'
want 2 "$NRP" import a.dat b.dat -o d.db --name n
want_error '--name goes with one file'
want 2 "$NRP" import x.dat -o d.db --vmstat before
want_error 'missing value after --vmstat'
want 2 "$NRP" import x.dat -o d.db --force=yes
want_error 'no value for --force=yes'
want 2 "$NRP" replay d.db
want_error 'name the new policy'
for p in linux-9.9 scan.bogus=P1 migrate.filter=9.9 migrate.ratelimit '' spin host,host; do
	want 2 "$NRP" replay d.db --new "$p"
	want_error 'there are|empty policy|not FAMILY=VARIANT'
done
for set in quota quota=x quota=-1 'quota= 1' quota=+1 'quota=1 ' nothing=1 migrate.filter.quota=1 migrate.ratelimit.interval=0 \
	interval=10001 hz=1 hz=20001; do
	want 2 "$NRP" replay d.db --new migrate.ratelimit=spin --set "$set"
	want_error "$set|no '='|no parameter|takes a number"
done
want 2 "$NRP" report d.db --format pdf
want_error "no format 'pdf'"
want 0 "$NRP" policies
for name in scan.vma scan.pte scan.shmem scan.reset scan.period migrate.filter migrate.ratelimit munmap.lock \
	hugetlb.count linux-4.18 linux-6.12 linux-7.2 rhel-8; do
	want_out "^$name "
	want 0 "$NRP" policies "$name"
	want 0 "$NRP" policies
done
want 0 "$NRP" policies --json
want_json '.schema == "numareplay.policies/1"'
want_json '[.families[].name] | length == 12'
want_json '.profiles[] | select(.name == "linux-4.18") | .variants["migrate.ratelimit"] == "spin"'
want_json '.profiles[] | select(.name == "linux-6.12") | .variants["scan.vma"] == "P3"'
want 2 "$NRP" policies bogus
want_error "no family or profile 'bogus'"

# An error is one line, whatever the names in it hold.
want 2 "$NRP" $'two\nlines'
want_error "no command 'two lines'"
want 3 "$NRP" import $'two\nlines.dat' -o d.db
want_error 'two lines.dat: '
want 3 "$NRP" info $'e\033[1mscape.db'
want_error 'e\?\[1mscape.db: '
done_testing
