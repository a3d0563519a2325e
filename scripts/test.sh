#!/usr/bin/env bash
# Builds everything and runs all tests, with real servers beside them.
#
#   scripts/test.sh [release|debug|asan|tsan] [CTEST_OPTION]...     (debug, if none is named)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

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
echo "test: $preset"
scripts/servers.sh run redis zookeeper mongodb -- ctest --preset "$preset" --parallel "$(nproc)" "$@"
