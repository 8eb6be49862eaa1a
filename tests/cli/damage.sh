#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Damaged captures: what can be read is imported with a record of each loss, and never taken for whole.
. "$(dirname "$0")/lib.sh"

salvaged() { # FILE: imported as capture "cut", in cut.db
	rm -f cut.db
	want 3 "$NRP" import "$1" -o cut.db --name cut
	want_error "^numareplay: $1: offset [0-9]+: .*: the rest was imported, with its losses; --strict refuses such a file"
}

# A whole capture for comparison: CPU 0 has 989 events, 1 has 792, 2 has 1406, 3 has 817 (trace-cmd report).
want 0 "$NRP" import "$DATA/thp-5.10.dat" -o whole.db
want_out '^thp-5.10: 4004 events .* none lost$'
[ "$(wc -l <out)" -eq 1 ] && ok || not_ok 'a whole capture says no more than one line'

# Cut in the data of CPU 1: CPU 0 is complete, 2 and 3 are missing.
head -c 20000 "$DATA/thp-5.10.dat" >cut.dat
salvaged cut.dat
want_out '^  CPU 0: 989 events salvaged, undamaged$'
want_out '^  CPU 1: [0-9]+ events salvaged, 1 damaged place from offset 19959 on, its end is missing$'
want_out '^  CPU 3: 0 events salvaged, 1 damaged place from offset 20000 on, its end is missing$'
want 0 "$NRP" query cut.db 'SELECT cpu, count IS NULL, cause, end_time IS NULL, read_before > 0, offset FROM loss ORDER BY cpu'
want_out '^1,1,1,1,1,19959$'
want_out '^2,1,1,1,0,20000$'
want_out '^3,1,1,1,0,20000$'
want 0 "$NRP" query cut.db "SELECT count(*) FROM hint_fault WHERE cpu = 0"
cp out of-cut
want 0 "$NRP" query whole.db "SELECT count(*) FROM hint_fault WHERE cpu = 0"
want_same out of-cut
want 0 "$NRP" info cut.db
want_out 'LOST +0 events and 3 gaps of unknown size'
want_out 'CPU 1 +1 gap: damaged data, 1 of unknown size, from [0-9.]+ s to the end, offset 19959, [0-9]+ events read before'
want 0 "$NRP" info cut.db --json
want_json '.info.events.gaps == 3 and (.info.losses | length) == 3 and .info.losses[0].to == null'
want_json '.info.losses[0] | .cpu == 1 and .cause == "damaged data" and .offset == 19959'

# Its sums cannot agree with vmstat, and a replay promises nothing exact.
rm cut.db
want 3 "$NRP" import cut.dat -o cut.db -q --facts "$DATA/thp-5.10.facts" \
	--vmstat "$DATA/thp-5.10.vmstat0" "$DATA/thp-5.10.vmstat1"
[ ! -s out ] && ok || not_ok 'quiet import prints'
want 1 "$NRP" verify cut.db --json
want_json '.verdict == "disagrees" and ([.counters[] | select(.difference != 0).explained] | unique == ["lost_events"])'
want_json '[.notes[].code] | contains(["lost_events", "damaged_capture"])'
want 0 "$NRP" replay cut.db --new off --json
want_json '[.notes[].code] | contains(["lost_events", "damaged_capture"]) and (contains(["identical_on_trace"]) | not)'
want_json '[.metrics[] | select(.name == "hint_faults").old.class] == ["bounded"]'

# On request damage is no failure, or nothing is kept.
rm cut.db
want 0 "$NRP" import cut.dat -o cut.db --accept-damage --json
want_json '.captures[0].damage | .places == 5 and .offset == 4615 and (.cpus | length) == 4'
want_json '.captures[0].damage.cpus[0] == {"cpu":0,"events":989,"lost":0,"gaps":0,"damages":0,"offset":null,"lost_at_end":false}'
want_json '.captures[0].damage.cpus[1] | .lost_at_end and .gaps == 1 and .offset == 19959'
want 3 "$NRP" import cut.dat -o new.db --strict
want_absent new.db
want 2 "$NRP" import cut.dat -o new.db --strict --accept-damage
want_error 'give one of them'
want 0 "$NRP" import "$DATA/thp-5.10.dat" -o cut.db --json
want_json '.captures[0].damage == null'

# Several files, one of them damaged: all are imported, and the status tells.
want 3 "$NRP" import "$DATA/thp-6.1.dat" cut.dat "$DATA/thp-7.2.dat" -o several.db
want_error 'cut.dat: '
want 0 "$NRP" query several.db 'SELECT count(*) FROM capture'
want_out '^3$'

# All data there, only names of sections missing: no loss, but not silent.
head -c 37700 "$DATA/thp-5.10.dat" >cut.dat
salvaged cut.dat
want_out '^cut: 4004 events .* none lost$'

# Version 6, cut anywhere in its data: the table in front says what is missing.
size=$(stat -c %s "$DATA/thp-6.12-v6.dat")
head -c $((size - 1)) "$DATA/thp-6.12-v6.dat" >cut.dat
salvaged cut.dat
want 0 "$NRP" query cut.db 'SELECT cpu, read_before, offset FROM loss'
want_out "^3,666,$((size - 1))\$" # all 666 events of CPU 3: what is cut is padding

# Events that the ring buffer dropped while recording, a known number and an unknown one: lost, but no damage.
last=$((size - 4096))
commit=$(od -An -tu4 -j $((last + 8)) -N 4 "$DATA/thp-6.12-v6.dat")
for flags in '\200:NULL:0 events and 1 gaps' '\300:7:7 events and 0 gaps'; do
	IFS=: read -r bits count text <<<"$flags"
	cp "$DATA/thp-6.12-v6.dat" overrun.dat
	printf '\007' | dd of=overrun.dat bs=1 seek=$((last + 16 + commit)) conv=notrunc status=none
	printf "$bits" | dd of=overrun.dat bs=1 seek=$((last + 11)) conv=notrunc status=none
	rm -f overrun.db
	want 0 "$NRP" import overrun.dat -o overrun.db --strict
	want_out "LOST $text of unknown size"
	want 0 "$NRP" query overrun.db "SELECT cpu, ifnull(count, 'NULL'), cause, offset IS NULL, end_time > time FROM loss"
	want_out "^3,$count,0,1,1\$"
done

# A page of zeros in the middle: the reader finds the next one.
cp "$DATA/thp-6.12-v6.dat" hole.dat
dd if=/dev/zero of=hole.dat bs=4096 seek=$((size / 4096 - 3)) count=1 conv=notrunc status=none
salvaged hole.dat
want_error "offset $((size / 4096 * 4096 - 3 * 4096)): page header is empty"
want 0 "$NRP" query cut.db 'SELECT count(*), min(end_time) > min(time) FROM loss'
want_out '^1,1$'

# A damaged event format: events may be missing on every CPU, all the time.
sed 's/^ID: 1270$/IX: 1270/' "$DATA/thp-5.10-none.dat" >format.dat
cmp -s format.dat "$DATA/thp-5.10-none.dat" && not_ok 'no format was damaged'
salvaged format.dat
want 0 "$NRP" query cut.db 'SELECT cpu, time, end_time IS NULL, count IS NULL, cause FROM loss ORDER BY cpu'
for cpu in 0 1 2 3; do want_out "^$cpu,0,1,1,1\$"; done
want 3 "$NRP" import format.dat -o new.db --strict
want_error 'format.dat: offset [0-9]+: event format without a usable ID'
want_absent new.db

# A section that is not there: of symbols, nothing else needs it; of event formats, nothing is left.
section() { # OFFSET: its id becomes that of none
	cp "$DATA/thp-5.10.dat" section.dat
	printf '\143' | dd of=section.dat bs=1 seek="$1" conv=notrunc status=none
}
section 3590
salvaged section.dat
want_error 'option 19 points at a section of kind 99'
want_out 'none lost'
want 0 "$NRP" query cut.db 'SELECT count(*) FROM hint_fault'
want_out '^656$'
section 1555
want 3 "$NRP" import section.dat -o new.db
want_error 'option 18 points at a section of kind 99'
want_absent new.db

# Bytes changed at random: imported or refused, and what is imported can be looked at, verified and replayed.
seed=${NRP_TEST_SEED:-$$}
RANDOM=$seed
echo "NRP_TEST_SEED=$seed"
for file in thp-6.12-v6 thp-5.10; do
	for ((n = 0; n < 12; n++)); do
		cp "$DATA/$file.dat" random.dat
		size=$(stat -c %s random.dat)
		for ((i = 0; i <= n % 4; i++)); do
			printf -v byte '\\%03o' $((RANDOM % 256)) # here: a subshell has other random numbers
			seek=$((4000 + (RANDOM * 32768 + RANDOM) % (size - 4000)))
			printf "$byte" | dd of=random.dat bs=1 seek=$seek conv=notrunc status=none
		done
		rm -f random.db
		known_leaks "$NRP" import -q random.dat -o random.db --facts "$DATA/${file%-v6}.facts" >out 2>err
		status=$?
		case $status in
		0) [ ! -s err ] && ok || not_ok "exit 0 with an error line: $(cat err)" ;;
		# A wrong CPU or node in an event contradicts the facts.
		3) want_error '^numareplay: (random.dat: |[^ ]*[.]facts: contradicts the capture in )' ;;
		*) not_ok "import of random damage: exit $status: $(head -3 err)" ;;
		esac
		[ -e random.db ] || continue
		want 0 "$NRP" info random.db
		for command in 'verify random.db' 'replay random.db --new off'; do
			"$NRP" $command >out 2>err
			case $? in
			0 | 1 | 3) ok ;;
			*) not_ok "$command after random damage: $(head -3 err)" ;;
			esac
		done
	done
done
# A node that no kernel has (src_nid of a filter_begin is 4095): it is taken from the page's flags.
cp "$DATA/thp-6.12-v6.dat" node.dat
printf '\377\017' | dd of=node.dat bs=1 seek=59512 conv=notrunc status=none
want 0 "$NRP" import node.dat -o node.db
want 0 "$NRP" info node.db
want 0 "$NRP" query node.db 'SELECT count(*) FROM hint_fault WHERE src_nid > 1'
want_out '^0$'
done_testing
