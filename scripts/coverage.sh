#!/usr/bin/env bash
# Counts which lines of the library the tests execute, with the servers of all backends, and prints the share for each
# folder.
#
#   scripts/coverage.sh [--docs] [CTEST_OPTION]...
#
#   --docs    also writes the table into docs/testing.md
#
# A process that is killed, and the child of a fork that ends with _exit(), writes no counts.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

docs=()
if [ "${1:-}" = --docs ]; then
    docs=(docs/testing.md)
    shift
fi

scripts/build.sh coverage
. scripts/environment.sh

profiles=build/coverage/profiles
rm -rf "$profiles"
failed=0
scripts/servers.sh run redis zookeeper mongodb -- ctest --preset coverage --parallel "$((2 * $(nproc)))" "$@" || failed=$?

llvm-profdata-19 merge --sparse --output "$profiles/all.profdata" "$profiles"/*.profraw
# The export reads the mapping of the lines from each program that has written counts.
objects=()
while IFS= read -r -d '' program; do
    objects+=(--object "$program")
done < <(find build/coverage/test build/coverage/examples -type f -executable ! -name '*.so*' -print0)
llvm-cov-19 export --summary-only --instr-profile "$profiles/all.profdata" "${objects[@]}" >"$profiles/summary.json"
python3 scripts/coverage_table.py "$profiles/summary.json" "${docs[@]}"
exit "$failed"
