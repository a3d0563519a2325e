#!/usr/bin/env bash
# Builds and runs the benchmark.
#
#   scripts/bench.sh [OPTION]...     (scripts/bench.sh --help lists the benchmark's options)
#   scripts/bench.sh --docs          runs it for docs/benchmarks.md, and writes its numbers there
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench=$root/build/release/benchmarks/colock-bench

"$root/scripts/build.sh" release colock-bench
[ "${1:-}" = --docs ] || exec "$bench" "$@"
shift

tables=$(mktemp)
trap 'rm -f "$tables" "$tables.page"' EXIT
"$bench" --seconds 2 --markdown "$tables" --svg "$root/docs/benchmarks-memory.svg" "$@"
awk -v tables="$tables" '
    /^<!-- \/measured -->$/ { inside = 0 }
    !inside { print }
    /^<!-- measured: memory -->$/ { inside = 1; while ((getline line <tables) > 0) print line }
' "$root/docs/benchmarks.md" >"$tables.page"
cat "$tables.page" >"$root/docs/benchmarks.md"
echo "bench: wrote docs/benchmarks.md"
