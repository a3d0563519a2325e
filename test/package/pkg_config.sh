#!/usr/bin/env bash
# Compiles and runs the consumer with pkg-config and without CMake.
#
#   test/package/pkg_config.sh PREFIX COMPONENT,COMPONENT... COMPILER...
set -euo pipefail
CXX=${*:3}
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=$(dirname "$(find "$1" -name colock-core.pc)")
export PKG_CONFIG_PATH=$library LD_LIBRARY_PATH=${library%/pkgconfig}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

modules=()
flags=()
for component in ${2//,/ }; do
    [ -f "$library/colock-$component.pc" ] || continue # internal libraries and the contract tests
    modules+=("colock-$component")
    flags+=("-DWITH_${component^^}")
done
# shellcheck disable=SC2046,SC2086 # lists of words
$CXX -std=c++20 "${flags[@]}" "$source/consumer.cpp" -o "$scratch/consumer" $(pkg-config --cflags --libs "${modules[@]}")
"$scratch/consumer"

# A program without MongoDB does not load its driver, which creates a shared file as soon as it is loaded.
if [ -f "$library/colock-connect.pc" ] && [ -f "$library/colock-redis.pc" ]; then
    # shellcheck disable=SC2046,SC2086
    $CXX -std=c++20 -DWITH_CONNECT -DWITH_REDIS "$source/consumer.cpp" -o "$scratch/without_mongodb" \
        $(pkg-config --cflags --libs colock-connect colock-redis)
    "$scratch/without_mongodb"
    if ldd "$scratch/without_mongodb" | grep -E 'mongo|zookeeper'; then
        echo "pkg_config: error: a program for Redis loads the libraries of other backends" >&2
        exit 1
    fi
fi

# The headers refuse a compiler that is too old, as the g++ of Debian 12 is: pkg-config checks no compiler.
if [ "$(g++ -dumpversion 2>/dev/null || echo 99)" -lt 13 ]; then
    # shellcheck disable=SC2046
    if g++ -std=c++20 -fsyntax-only "$source/consumer.cpp" $(pkg-config --cflags colock-core) 2>"$scratch/errors"; then
        echo "pkg_config: error: a GCC below 13 is accepted" >&2
        exit 1
    fi
    grep -m 1 'error:' "$scratch/errors" | grep 'colock needs GCC 13 or later'
fi

# The command of docs/installing.md.
cp "$source/../../examples/quickstart.cpp" "$scratch"
cd "$scratch"
# shellcheck disable=SC2046,SC2086
#[ use
${CXX:-g++} -std=c++20 quickstart.cpp -o quickstart $(pkg-config --cflags --libs colock-memory)
#]
./quickstart
