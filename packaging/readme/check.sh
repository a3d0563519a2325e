#!/usr/bin/env bash
# Follows docs/installing.md as a new user would, in a bare Debian: installs the requirements, builds colock from source,
# and builds and runs the quick start with CMake, with pkg-config and with FetchContent.
#
#   scripts/debian_root.sh 12|13 packaging/readme/check.sh
#
# packaging/debian/check.sh and packaging/conan/check.sh follow the rest of the page. Needs root.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/usage.sh"
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

HOME=$(mktemp -d)
export HOME DEBIAN_FRONTEND=noninteractive
cd ~
ln -s "$checkout" colock

case $(. /etc/os-release && echo "$VERSION_ID") in
12)
    #[ setup
    colock/scripts/setup.sh         # installs packages, and unpacks Boost 1.92 into ~/.cache/colock
    . colock/scripts/environment.sh # sets CXX and CMAKE_PREFIX_PATH in this shell
    #]
    ;;
13)
    #[ packages
    apt-get update
    apt-get install -y g++ cmake make pkg-config \
        libboost-dev libboost-context-dev libboost-program-options-dev libssl-dev libzookeeper-st-dev libmongoc-dev
    #]
    ;;
esac

echo "readme: from source"
"$checkout"/test/package/install.sh static ~

echo "readme: CMake"
"$checkout"/test/package/quickstart.sh ~

echo "readme: pkg-config"
"$checkout"/test/package/pkg_config.sh ~/.local memory "${CXX:-g++}"

echo "readme: FetchContent"
cp colock/packaging/readme/fetched/CMakeLists.txt shop
cmake -S shop -B shop-fetched
cmake --build shop-fetched --parallel "$(nproc)"
shop-fetched/quickstart | tee output
grep -q '^charged 30' output || {
    echo "readme: error: shop-fetched/quickstart did not charge the cart" >&2
    exit 1
}
