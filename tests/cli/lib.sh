# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the command-line tests. NRP: the program; DATA: tests/data. Each test runs in a folder of its own.
set -u
here=$(mktemp -d "$PWD/cli-XXXXXX") || exit 1
trap 'chmod -R u+rwX "$here"; rm -rf "$here"' EXIT
cd "$here" || exit 1
passed=0
failed=0

ok() { passed=$((passed + 1)); }
not_ok() {
	failed=$((failed + 1))
	printf 'FAILED: %s\n' "$*"
}

# known_leaks COMMAND..: libtraceevent 1.7 loses a few bytes of some event formats, libtracecmd a string of an option.
known_leaks() {
	printf 'leak:tep_parse_event\nleak:vsscanf\n' >leaks.supp
	LSAN_OPTIONS=suppressions=$PWD/leaks.supp:print_suppressions=0 "$@"
}

# want STATUS COMMAND..: runs it, stdout to ./out, stderr to ./err.
want() {
	local status=$1
	shift
	"$@" >out 2>err
	local got=$?
	if [ $got -eq "$status" ]; then
		ok
	else
		not_ok "status $got instead of $status: $*"
		sed 's/^/  | /' err | head -5
	fi
}
# The one-line form of an error: "numareplay: .. text ..".
want_error() {
	if [ "$(wc -l <err)" -eq 1 ] && grep -q '^numareplay: ' err && grep -qE -- "$1" err; then
		ok
	else
		not_ok "expected one error line with /$1/, got: $(cat err)"
	fi
	# A sanitizer's report would be more than one line, but say so.
	! grep -q 'Sanitizer\|runtime error' err || not_ok "sanitizer report: $(head -3 err)"
}
want_out() { grep -qE -- "$1" out && ok || not_ok "no /$1/ in the output"; }
want_json() { # JQ-CONDITION
	if jq -e "$1" out >/dev/null 2>jq.err; then ok; else not_ok "JSON: $1 is not so $(cat jq.err)"; fi
}
want_same() { cmp -s "$1" "$2" && ok || not_ok "$1 and $2 differ"; }
want_absent() { [ ! -e "$1" ] && ok || not_ok "$1 exists"; }
done_testing() {
	printf '%d passed, %d failed\n' $passed $failed
	[ $failed -eq 0 ]
	exit
}
