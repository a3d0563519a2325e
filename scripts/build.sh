#!/usr/bin/env bash
# Builds into build/PRESET.
#
#   scripts/build.sh [release|debug|asan|fuzz|tsan|coverage] [TARGET]...
#
# Without a preset: debug. Without a target: everything. With COLOCK_WARNINGS_AS_ERRORS=ON a warning fails the build.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-debug}
case $preset in
release | debug) scripts/setup.sh build ;;
asan | fuzz | tsan) scripts/setup.sh sanitizers ;;
coverage) scripts/setup.sh coverage ;;
*)
    echo "build: error: unknown preset '$preset'; known: release, debug, asan, fuzz, tsan, coverage" >&2
    exit 1
    ;;
esac
. scripts/environment.sh

# A failed configuration would keep wrong settings in its cache, for example the compiler.
fresh=()
[ -f "build/$preset/build.ninja" ] || fresh=(--fresh)

echo "build: $preset"
cmake --preset "$preset" "${fresh[@]}" --log-level=NOTICE \
    -DCMAKE_COMPILE_WARNING_AS_ERROR="${COLOCK_WARNINGS_AS_ERRORS:-OFF}" >/dev/null
[ $# -gt 1 ] || set -- "$preset" all
cmake --build --preset "$preset" --target "${@:2}"
