#!/usr/bin/env bash
# Checks that tests cover the statements of docs/coming-from.md.
#
#   scripts/named_tests.sh PROGRAM       the executable of these tests
#
# The last cell of each table row names a test, as `suite/case`. This test has to exist and to pass with at least one
# check. Code in a row that ends with a semicolon has to be a line of the test (white space and line breaks are
# ignored). Each test of test/docs/coming_from has to be named by a row. A test without its server is reported as
# skipped, with exit code 77.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=docs/coming-from.md
program=${1:?usage: scripts/named_tests.sh PROGRAM}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The exit code is ignored because the report contains the failed tests.
"$program" --log_level=error --report_level=detailed --report_format=XML --report_sink="$scratch/report" \
    --color_output=no >"$scratch/log" 2>&1 || true
"$program" --list_content 2>"$scratch/list" >/dev/null

# Lines of: suite/case, result, number of passed checks
tr '<' '\n' <"$scratch/report" | awk '
    function of(what) { match($0, " " what "=\"[^\"]*\""); return substr($0, RSTART + length(what) + 3, RLENGTH - length(what) - 4) }
    /^TestSuite / { path[++depth] = of("name") }
    /^\/TestSuite/ { --depth }
    /^TestCase / { print path[depth] "/" of("name"), of("result"), of("assertions_passed") }
' >"$scratch/results"
# Lines of: suite/case, "on" or "off"
awk '
    /^[^ ]/ { suite = $1; sub(/\*$/, "", suite) }
    /^ / { print suite "/" (/\*$/ ? substr($1, 1, length($1) - 1) " on" : $1 " off") }
' "$scratch/list" >"$scratch/known"

awk -v page="$page" -v results="$scratch/results" -v known="$scratch/known" '
    function bad(what) { printf "named_tests: error: %s:%d: %s\n", page, line_number, what >"/dev/stderr"; failed = 1 }
    function spaceless(text) { gsub(/[ \t\n]/, "", text); return text }
    # Test sources: collects the lines of each test.
    FILENAME ~ /\.cpp$/ {
        if (FNR == 1) suite = ""
        if (/^BOOST_(AUTO|FIXTURE)_TEST_SUITE\(/) { suite = $0; gsub(/^[^(]*\(|[,)].*/, "", suite) }
        else if (/^(BOOST_AUTO_TEST_CASE|COLOCK_FIXTURE)\(/) {
            test = $0; sub(/^BOOST_AUTO_TEST_CASE\(|^COLOCK_FIXTURE\([^,]*, /, "", test); sub(/[,)].*/, "", test)
            test = suite "/" test
            if (FILENAME ~ /coming_from/) ours[test] = 1
        } else if (/^}/) test = ""
        else if (test) body[test] = body[test] spaceless($0)
        next
    }
    FILENAME == results { result[$1] = $2; checks[$1] = $3; next }
    FILENAME == known { state[$1] = $2; next }
    # The page: the first two rows of a table are its head.
    !/^\|/ { rows = 0; next }
    ++rows < 3 { next }
    {
        line_number = FNR
        gsub(/<!--[^>]*-->/, "")
        gsub(/\\\|/, "\001")
        cells = split($0, cell, "|")
        names = split(cell[cells - 1], word, "`")
        found = 0
        lines = ""
        for (i = 2; i <= names; i += 2) {
            test = word[i]
            ++found
            ++total
            named[test] = 1
            lines = lines body[test]
            if (!(test in state)) bad("there is no test " test)
            else if (state[test] == "off") bad(test " is disabled")
            else if (!(test in result) || result[test] == "skipped") skipped[test] = 1
            else if (result[test] != "passed") bad(test ": " result[test])
            else if (checks[test] == 0) bad(test " has checked nothing")
        }
        if (!found) bad("a row without a test")
        for (c = 3; c < cells - 1; ++c) {
            spans = split(cell[c], span, "`")
            for (i = 2; i <= spans; i += 2) {
                code = spaceless(span[i])
                gsub("\001", "|", code)
                if (code ~ /;$/ && !index(lines, code)) bad("not in its test: " span[i])
            }
        }
    }
    END {
        line_number = 0
        for (test in ours) if (!(test in named)) bad("no row names " test)
        for (test in skipped) {
            suite = test; sub(/\/.*/, "", suite)
            server = "COLOCK_TEST_" toupper(substr(suite, 4))
            if (suite ~ /^on_/ && ENVIRON[server] == "") { missing[server] = 1; continue }
            bad(test " was skipped")
        }
        if (!total) bad("no row names a test")
        if (failed) exit 1
        for (server in missing) { print "skipped: docs.coming_from: there is no " server "; see scripts/servers.sh"; some = 1 }
        if (some) exit 77
        printf "named_tests: %d tests, named by %s\n", total, page
    }
' "$scratch/results" "$scratch/known" test/docs/*.cpp test/docs/coming_from/*.cpp "$page" || {
    status=$?
    [ $status -eq 77 ] || cat "$scratch/log" >&2
    exit $status
}
