#!/usr/bin/env bash
# Builds everything, starts the servers of all backends, and runs all tests.
#
#   scripts/test.sh [release|debug|asan|tsan] [CTEST_OPTION]...     (default: debug)
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

scripts/setup.sh peers prometheus

# The native server takes minutes to build. The build has a low priority, because the tests leave the processors idle
# half of the time.
native=
if [ "$preset" = release ]; then
    set -m
    nice -n 19 scripts/setup.sh mongodb_native &
    native=$!
    set +m
    trap 'kill -- "-$native" 2>/dev/null || true' EXIT
fi

echo "test: $preset"
# Most tests wait most of the time for servers, leases and sessions. So more tests run than there are processors.
run=(ctest --preset "$preset" --parallel "$((2 * $(nproc)))")
scripts/servers.sh run redis zookeeper mongodb -- "${run[@]}" "$@"

# Runs the MongoDB tests again with the native server, which deviates from MongoDB in other details than the first
# server. One preset is enough.
[ -n "$native" ] || exit 0
wait "$native"
trap - EXIT
if [ -x "$colock_mongodb_native/bin/secantusd-rs" ]; then
    echo "test: $preset, on the native MongoDB server"
    scripts/servers.sh run mongodb_native -- "${run[@]}" --label-regex '^mongodb$' --no-tests=ignore "$@"
fi
