#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Kernels whose scanner is known, below the folder that NRP_TRACES names: the file's name, or the README there, says it.
. "$(dirname "$0")/lib.sh"
[ -n "${NRP_TRACES-}" ] || {
	echo "skipped: NRP_TRACES does not name a folder of captures"
	exit 77
}

verified() { # CAPTURE
	rm -f v.db
	want 0 "$NRP" import "$NRP_TRACES/$1" -o v.db -q
	want 0 "$NRP" verify v.db --json
}
scan='.checks[] | select(.family == "scan.vma")'

# One access to memory a scan, and nothing that tells the newer variants apart.
for kernel in 6.12 7.2; do
	verified kernels/$kernel/numa01-default.dat
	want_json '[.notes[] | select(.code == "scan_not_discriminated" and (.text | contains("no decision discriminates P1..P4")))] | length == 1'
done
# P2 and P3 built with the PID filter switched off.
verified policy-pairs/idle-vma0.dat
want_json "$scan | .decisions == .agree and .decisions > 100 and (.variant | endswith(\" without pid\"))"
want_json "[$scan | .reproduced_by[] | select(.variant == \"P2\" or .variant == \"P3\")] == [{\"variant\": \"P2\", \"switched_off\": \"pid\"}, {\"variant\": \"P3\", \"switched_off\": \"pid\"}]"
# P2 without partial scans: the capture has no VMA scanned in part, so that P2 does the same.
verified policy-pairs/idle-vma1.dat
want_json "$scan | .reproduced_by | index({\"variant\": \"P2\", \"switched_off\": \"partial\"}) != null"
want_json "$scan | .reproduced_by | index({\"variant\": \"P3\", \"switched_off\": null}) == null"
# What makes every recorded decision is the host's scanner, whatever it is called.
rm -f v.db
want 0 "$NRP" import "$NRP_TRACES/policy-pairs/idle-vma2.dat" -o v.db -q
want 0 "$NRP" replay v.db --old scan.vma=P2 --new scan.vma=P3 --set new:scan.vma.stale=0 --json
want_json '.metrics[] | select(.name == "hint_faults") | .avoided | .value == 0 and .class == "exact"'
want 0 "$NRP" replay v.db --old scan.vma=P2 --new scan.vma=P3 --set new:scan.vma.start_seq=0 --json
want_json '.metrics[] | select(.name == "hint_faults") | .avoided.class != "exact"'
for pair in 2 3; do
	verified policy-pairs/idle-vma$pair.dat
	want_json "$scan | .variant == \"P$pair\" and .disagree == 0"
	want_json "[$scan | .rules[] | select(.decisions != .agree)] == []"
done
done_testing
