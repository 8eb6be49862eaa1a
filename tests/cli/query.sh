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

# ---- values: NULL is nothing, a text is whole whatever is in it, a BLOB is its bytes in hexadecimal
values="SELECT NULL AS a, '' AS b, 'x,\"y' AS c, 'a' || char(0) || 'b' AS d, x'00ff7f' AS e, 0.5 AS f,
	-9223372036854775808 AS g, x'' AS h"
want 0 "$NRP" query a.db "$values"
printf 'a,b,c,d,e,f,g,h\n,"","x,""y",a\0b,00ff7f,0.5,-9223372036854775808,\n' >want
want_same out want
want 0 "$NRP" query a.db --json "$values"
want_json '. == [{"a": null, "b": "", "c": "x,\"y", "d": "a\u0000b", "e": "00ff7f", "f": 0.5,
	"g": -9223372036854775808, "h": ""}]'
want 0 "$NRP" query a.db --json "SELECT CAST(x'61ff00ff62' AS TEXT) AS a"
want_json '. == [{"a": "a?\u0000?b"}]'
# Many rows, more than a buffer holds, and none.
want 0 "$NRP" query a.db 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) SELECT i FROM n'
{ echo i; seq 30000; } >want
want_same out want
want 0 "$NRP" query a.db 'SELECT 1 AS x WHERE 0'
[ "$(cat out)" = x ] && ok || not_ok 'no rows'
done_testing
