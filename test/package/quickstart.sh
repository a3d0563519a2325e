#!/usr/bin/env bash
# Builds and runs the quick start with the CMakeLists.txt and the commands of docs/installing.md, with the library that
# test/package/install.sh has installed in FOLDER.
#
#   test/package/quickstart.sh FOLDER
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$1"
# Keeps the compiler cache of the real home folder.
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache} HOME=$PWD
mkdir -p shop
cp "$source"/packaging/readme/installed/CMakeLists.txt "$source"/examples/quickstart.cpp shop

#[ use
cmake -S shop -B shop-build -DCMAKE_PREFIX_PATH="$HOME/.local"
cmake --build shop-build
#]

shop-build/quickstart | tee output
grep -q '^charged 30' output || {
    echo "quickstart: error: the quick start did not charge the cart" >&2
    exit 1
}
