#!/usr/bin/env bash
# Builds everything, starts the servers of all backends, and runs all tests.
#
#   scripts/test.sh [release|debug|asan|tsan] [--for FOLDER] [CTEST_OPTION]...     (default: debug)
#
# With --for, builds and runs only the suites that cover this folder, and starts only their servers, according to the
# table in CONTRIBUTING.md.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/environment.sh

preset=debug
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    preset=$1
    shift
fi

# What stands between backticks in a column of the row of the table whose folder contains $folder.
folder=
column() {
    awk -F'|' -v folder="$folder/" -v column="$1" '
        /^## / { inside = /^## Suites/ }
        inside && /^\| `/ {
            count = split($2, names, "`")
            for (i = 2; i <= count; i += 2)
                if (index(folder, names[i] "/") == 1 && length(names[i]) > longest) {
                    longest = length(names[i])
                    cell = $column
                }
        }
        END { count = split(cell, words, "`"); for (i = 2; i <= count; i += 2) print words[i] }' CONTRIBUTING.md
}

targets=(all)
tests=()
servers=(redis zookeeper mongodb)
if [ "${1:-}" = --for ]; then
    folder=${2:?--for needs a folder}
    folder=${folder%/}
    shift 2
    mapfile -t suites < <(column 3)
    mapfile -t servers < <(column 4)
    [ ${#suites[@]} -gt 0 ] || {
        echo "test: error: no suite covers '$folder'; the table is in CONTRIBUTING.md" >&2
        exit 1
    }
    targets=()
    names=
    for suite in "${suites[@]}"; do
        case $suite in
        command) targets+=(colock-command) ;;
        compile | examples* | benchmarks | package | scripts | docs) targets+=(all) ;;
        *) targets+=("colock_test_${suite%%.*}") ;;
        esac
        case $suite in
        *.*) names+="|$suite" ;;
        *) names+="|$suite[.]" ;;
        esac
    done
    tests=(--tests-regex "^(${names#|})")
fi
case ${folder:-$preset} in
release | debug) targets+=(all_verify_interface_header_sets) ;;
esac
scripts/build.sh "$preset" "${targets[@]}"

[ -n "$folder" ] || scripts/setup.sh peers prometheus

# Each test that is killed would leave a file of libmongoc in /dev/shm, and a later process with the same id would write
# a warning to stderr at its start.
export MONGOC_DISABLE_SHM=1

echo "test: $preset"
# Most tests wait most of the time for servers, leases and sessions. So more tests run than there are processors.
run=(ctest --preset "$preset" --parallel "$((2 * $(nproc)))")
if [ ${#servers[@]} -gt 0 ]; then
    scripts/servers.sh run "${servers[@]}" -- "${run[@]}" "${tests[@]}" "$@"
else
    "${run[@]}" "${tests[@]}" "$@"
fi
