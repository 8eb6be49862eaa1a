#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# hugetlb.count: three processes map 1 GiB of one file, the first touches 8 huge pages, the others one each, and the
# third calls mbind() with MOVE. All share one table: 16 MiB in each smaps. Both kernels look at the table and move none.
. "$(dirname "$0")/lib.sh"

huge=$((2 << 20))
metric() { # NAME CONDITION
	want_json ".metrics[] | select(.name == \"$1\") | $2"
}
check='.checks[] | select(.family == "hugetlb.count")'

for kernel in 5.10 6.12; do
	rm -f h.db
	want 0 "$NRP" import "$DATA/hugetlb-$kernel.dat" -o h.db -q
	want 0 "$NRP" verify h.db --json
	want_json "$check | .variant == \"pmd-check\" and .decisions == 8 and .agree == 8 and .disagree == 0"
	want_json "$check | .indistinguishable == [\"adjusted\", \"pt-share-count\", \"actual\"]"
	want_json "$check | .others[] | select(.variant == \"mapcount\") | .undecided == 8 and .agree == 0"

	# ticks play no part, and are not known
	want 0 "$NRP" replay h.db --new hugetlb.count=mapcount --json
	metric hugetlb_isolated '.old.value == 0 and .old.class == "exact" and .new.value == 8 and .new.upper == 8'
	metric hugetlb_migrated '.old.value == 0 and .new.value == 8 and .new.lower == 0 and .new.class == "bounded"'
	metric smaps_private_hugetlb_bytes ".old.value == 0 and .new.value == 3 * 8 * $huge and .new.class == \"exact\""
	metric smaps_shared_hugetlb_bytes ".old.value == 3 * 8 * $huge and .new.value == 0"
	metric hint_faults '.avoided.value == 0 and .avoided.class == "exact"'
	# two of the three slots lose the table; each page has three users
	want_json '.notes[] | select(.code == "hugetlb_moves") | .left_old == 0 and .left_new == 2'
	want_json '.notes[] | select(.code == "hugetlb_moves") | .remote_if_on_node_new | add == 8 * 3 * (length - 1)'
	want_json ".notes[] | select(.code == \"hugetlb_smaps\") | .smaps | length == 3 and all(.private_new == 8 * $huge and
		.shared_actual == 8 * $huge)"

	want 0 "$NRP" replay h.db --new hugetlb.count=adjusted --json
	metric hugetlb_isolated '.avoided.value == 0'
	# 2 shares and 2 unshares look at 512 entries and change the counts of 8 pages each
	want_json '.notes[] | select(.code == "hugetlb_count_work") | .shares == 2 and .unshares == 2 and .entries == 2048 and .page_updates == 32'
	# other families need hinting faults
	want 3 "$NRP" replay h.db --new linux-6.1 --set hz=250
	want_error 'no hinting faults'
done

# A capture without hugetlb pages says what it lacks.
rm -f h.db
want 0 "$NRP" import "$DATA/thp-6.12.dat" -o h.db -q
want 0 "$NRP" replay h.db --new hugetlb.count=mapcount --json
metric hugetlb_isolated '.avoided.class == "not_observable"'
want_json '[.notes[] | select(.code == "hugetlb_not_recorded")] | length == 1'
done_testing
