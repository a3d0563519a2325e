#!/usr/bin/env bash
# Builds everything and runs all tests, with real servers beside them.
#
#   scripts/test.sh [release|debug|asan|tsan] [CTEST_OPTION]...     (debug, if none is named)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/environment.sh

preset=debug
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    preset=$1
    shift
fi

targets=(all)
case $preset in
release | debug) targets+=(all_verify_interface_header_sets) ;;
esac
scripts/build.sh "$preset" "${targets[@]}"

scripts/setup.sh peers

# It takes minutes to build, while the tests leave the processors idle half of the time: below them in priority.
native=
if [ "$preset" = release ]; then
    set -m
    nice -n 19 scripts/setup.sh mongodb_native &
    native=$!
    set +m
    trap 'kill -- "-$native" 2>/dev/null || true' EXIT
fi

echo "test: $preset"
# Most of them wait most of the time, for servers, leases and sessions.
run=(ctest --preset "$preset" --parallel "$((2 * $(nproc)))")
scripts/servers.sh run redis zookeeper mongodb -- "${run[@]}" "$@"

# What speaks to MongoDB again, with a server that misreads other things than the first: once is enough.
[ -n "$native" ] || exit 0
wait "$native"
trap - EXIT
if [ -x "$colock_mongodb_native/bin/secantusd-rs" ]; then
    echo "test: $preset, on the native MongoDB server"
    scripts/servers.sh run mongodb_native -- "${run[@]}" --label-regex '^mongodb$' --no-tests=ignore "$@"
fi
