#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# query: what it prints, as CSV and as JSON.
. "$(dirname "$0")/lib.sh"

"$NRP" import -q "$DATA/thp-5.10.dat" -o a.db

# ---- --stats: one block of hint_fault, read by the first query and ruled out by the second
stats='SELECT count(*) AS n FROM hint_fault; SELECT count(*) AS n FROM hint_fault WHERE time < 0'
want 0 "$NRP" query a.db --stats "$stats"
grep -qx 'blocks: 1 read, 1 left out' err && ok || not_ok "stats: $(cat err)"
want 0 "$NRP" query a.db --stats --json "$stats"
jq -s -e '. == [{"schema": "numareplay.query_stats/1", "blocks": {"read": 1, "left_out": 1}}]' err >/dev/null &&
	ok || not_ok "stats as JSON: $(cat err)"
cp out with
want 0 "$NRP" query a.db --json "$stats"
want_same out with
done_testing
