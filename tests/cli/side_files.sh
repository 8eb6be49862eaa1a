#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Side files that contradict the capture, themselves or each other.
. "$(dirname "$0")/lib.sh"

# ---- pages of a huge page: Hugepagesize is the default of hugetlb, which a boot parameter sets
huge_pages() { # FILE WANTED: of thp-FILE.dat with ./huge.facts
	want 0 "$NRP" import -q "$DATA/thp-$1.dat" -o huge.db --facts huge.facts --force
	want 0 "$NRP" query huge.db "SELECT huge_pages FROM capture WHERE name = 'thp-$1'"
	want_out "^$2\$"
}
sed 's/^Hugepagesize:.*/Hugepagesize:    1048576 kB/' "$DATA/thp-6.12.facts" >huge.facts
huge_pages 6.12 512 # a page of 4 KiB holds 512 entries
want 0 "$NRP" query huge.db "SELECT value FROM host_setting WHERE name = 'Hugepagesize'"
want_out '^1048576 kB$'
sed 's/^\[hugetlb\]/hpage_pmd_size 1048576\n&/' "$DATA/thp-6.12.facts" >huge.facts
huge_pages 6.12 256
want 0 "$NRP" query huge.db "SELECT name, value FROM host_setting WHERE name IN ('thp', 'hpage_pmd_size')"
want_out '^hpage_pmd_size,1048576$'
want_out '^thp,'
sed 's,^\[hugetlb\],/sys/kernel/mm/transparent_hugepage/hpage_pmd_size 1048576\n&,' \
	"$DATA/thp-5.10.facts" >huge.facts
huge_pages 5.10 512 # task_fault of a huge page says so
huge_pages 6.1 256
for size in '' x 0 3000000 -2097152; do
	printf '[thp]\nhpage_pmd_size %s\n' "$size" >huge.facts
	want 3 "$NRP" import -q "$DATA/thp-6.12.dat" -o none.db --facts huge.facts
	want_error 'huge.facts: offset 6: no size of a huge page: '
done
want_absent none.db

done_testing
