#!/usr/bin/env bash
# Runs clang-tidy on the sources that the last commits changed.
#
#   scripts/tidy.sh [COMMITS]       (default: the last 20 commits)
#
# Checks at most 20 files: those that changed last. Fails if clang-tidy warns.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
commits=${1:-20}
max_files=20

scripts/setup.sh tidy
. scripts/environment.sh

mapfile -t files < <(
    git log --max-count "$commits" --format= --name-only -- 'src/*.cpp' 'examples/*.cpp' 'test/*.cpp' |
        awk '!seen[$0]++' | while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done |
        head -n "$max_files"
)
if [ ${#files[@]} -eq 0 ]; then
    echo "tidy: no source has changed in $commits commits"
    exit 0
fi

# clang-tidy needs the command of each file, which a unity build does not have.
cmake -S . -B build/tidy -G Ninja --log-level=NOTICE -DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=OFF \
    -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null

echo "tidy: ${#files[@]} files"
printf '%s\0' "${files[@]}" |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p build/tidy --quiet --warnings-as-errors='*'
