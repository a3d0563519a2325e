#!/usr/bin/env bash
# Keeps the code blocks of README.md and docs/ equal to the source files from which they are copied. Tests compile and
# run these files.
#
#   scripts/snippets.sh [check|update]     (default: check)
#
# A line <!-- snippet: FILE NAME --> before a code block says that the block is a part of FILE: the lines between "//[
# NAME" and "//]", or "#[ NAME" and "#]". Every block of C++ or CMake needs such a line.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'snippets: error: %s\n' "$*" >&2
    exit 1
}

mode=${1:-check}
case $mode in check | update) ;; *) fail "unknown mode '$mode'; known: check, update" ;; esac

# Prints a page with its code blocks replaced by the parts of the source files.
with_current_snippets() {
    awk -v page="$1" '
        function stop(what) { print "snippets: error: " page ":" NR ": " what >"/dev/stderr"; failed = 1; exit 1 }
        function paste(file, name,    line, inside, lines, depth) {
            while ((getline line <file) > 0) {
                if (line ~ "^ *(//|#)\\[ " name "$") { inside = 1; match(line, /^ */); depth = RLENGTH; continue }
                if (inside && line ~ /^ *(\/\/|#)\]$/) { inside = 2; break }
                if (inside == 1) { print substr(line, 1, depth) ~ /^ *$/ ? substr(line, depth + 1) : line; ++lines }
            }
            close(file)
            if (inside != 2 || !lines) stop("no snippet " name " in " file)
        }
        /^<!-- snippet: / { file = $3; name = $4; print; pending = 1; next }
        /^```(cpp|cmake)$/ || (/^```/ && pending) {
            if (!pending) stop("a block of C++ or CMake without a <!-- snippet --> line")
            print; paste(file, name); pending = 0; skipping = 1; next
        }
        /^```$/ && skipping { skipping = 0 }
        skipping { next }
        pending { stop("no code block after the <!-- snippet --> line") }
        { print }
        END { if (!failed && (pending || skipping)) stop("the page ends inside a snippet") }
    ' "$1"
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
status=0
for page in README.md docs/*.md; do
    [ -f "$page" ] || continue
    with_current_snippets "$page" >"$new" || exit 1
    if cmp -s "$page" "$new"; then
        continue
    elif [ "$mode" = update ]; then
        cat "$new" >"$page"
        echo "snippets: updated $page"
    else
        diff -u "$page" "$new" >&2 || true
        echo "snippets: $page differs from its sources; run scripts/snippets.sh update" >&2
        status=1
    fi
done
exit $status
