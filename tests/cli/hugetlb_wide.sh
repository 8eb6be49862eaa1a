#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# hugetlb.count on captures below the folder that NRP_TRACES names. What smaps said is in the .log beside the capture.
. "$(dirname "$0")/lib.sh"
[ -n "${NRP_TRACES-}" ] || {
	echo "skipped: NRP_TRACES does not name a folder of captures"
	exit 77
}

check='.checks[] | select(.family == "hugetlb.count")'
said() { # NAME FIELD: kB that smaps of the caller said before mbind()
	awk -v f="before $2:" '$1 " " $2 == f { print $3 }' "$NRP_TRACES/$1.log"
}
of_caller() { # SIDE: its mapping in the note, whose process called last
	echo ".notes[] | select(.code == \"hugetlb_smaps\") | .smaps[-1] | .private_$1"
}

# A kernel of before 6.2: mapcount alone decides, and all 8 pages move.
capture=policy-pairs/hugetlb-check0
want 0 "$NRP" import "$NRP_TRACES/$capture.dat" -o h.db -q
want 0 "$NRP" verify h.db --json
want_json "$check | .variant == \"mapcount\" and .agree == 8 and .decisions == 8 and .indistinguishable == []"
want_json "$check | .others | all(.disagree == 8)"
want 0 "$NRP" replay h.db --new hugetlb.count=pmd-check --json
want_json '.metrics[] | select(.name == "hugetlb_isolated") | .old.value == 8 and .new.value == 0 and .avoided.class == "exact"'
want_json '.metrics[] | select(.name == "hugetlb_migrated") | .old.value == 8 and .new.value == 0'
want_json "$(of_caller old) == 1024 * $(said $capture Private_Hugetlb)"
want_json "$(of_caller new) == 1024 * $(said $capture Shared_Hugetlb)"
want_json '.notes[] | select(.code == "hugetlb_smaps") | .smaps[-1] | .shared_new == 16777216 and .shared_old == 0 and .shared_actual == 16777216'

# Kernels that look at the table move none, and say so in smaps.
for capture in policy-pairs/hugetlb-check1 kernels/5.10/hugetlb kernels/6.1/hugetlb kernels/6.12/hugetlb kernels/7.2/hugetlb; do
	rm -f h.db
	want 0 "$NRP" import "$NRP_TRACES/$capture.dat" -o h.db -q
	want 0 "$NRP" verify h.db --json
	want_json "$check | .variant == \"pmd-check\" and .agree == 8 and .decisions == 8"
	want 0 "$NRP" replay h.db --new hugetlb.count=mapcount --json
	want_json '.metrics[] | select(.name == "hugetlb_isolated") | .old.value == 0 and .new.lower == 0 and .new.upper == 8'
	want_json "$(of_caller old) == 1024 * $(said $capture Private_Hugetlb)"
	want_json "1024 * $(said $capture Shared_Hugetlb) == ($(of_caller new))"
done
done_testing
