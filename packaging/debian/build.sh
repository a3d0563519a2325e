#!/usr/bin/env bash
# Builds the Debian packages libcolock0, libcolock-dev and colock from this checkout, into build/packages.
#
#   scripts/debian_root.sh 13 packaging/debian/build.sh
#
# Without Redis if the system's Boost is older than 1.92. Needs root on a Debian 13, because it installs what the build
# needs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The packages are for the compiler and the Boost of the system, not for those of scripts/environment.sh.
unset CXX CMAKE_PREFIX_PATH Boost_DIR Boost_ROOT

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends \
    g++ cmake ninja-build ccache pkg-config dpkg-dev file \
    libboost-dev libboost-context-dev libboost-program-options-dev libssl-dev libzookeeper-st-dev libmongoc-dev

rm -rf build/packages
cmake -S . -B build/packages -G Ninja -DCOLOCK_DEVELOPER=OFF -DBUILD_SHARED_LIBS=ON \
    -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_SKIP_INSTALL_RPATH=ON -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
cmake --build build/packages
(cd build/packages && cpack -G DEB)
ls -l build/packages/*.deb
