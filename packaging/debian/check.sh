#!/usr/bin/env bash
# Installs the Debian packages of build/packages with the commands of docs/installing.md, builds and runs the quick start
# with CMake and with pkg-config, and removes the packages again.
#
#   scripts/debian_root.sh 13 packaging/debian/check.sh
#
# Needs root on a Debian 13 without colock.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/usage.sh"
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fail() {
    printf 'packaging: error: %s\n' "$*" >&2
    exit 1
}

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
cd "$source"
#[ install
apt-get install -y ./build/packages/libcolock0_*.deb ./build/packages/libcolock-dev_*.deb ./build/packages/colock_*.deb
#]
apt-get install -y -q --no-install-recommends g++ cmake make pkg-config
grep -q 'libcolock-core 0 libcolock0 (>= ' /var/lib/dpkg/info/libcolock0*.shlibs ||
    fail "the packages of programs cannot depend on libcolock0"

scratch=$(mktemp -d)
mkdir "$scratch/build"
cp examples/quickstart.cpp "$scratch/main.cpp"
cat >"$scratch/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(shop LANGUAGES CXX)
find_package(colock 0.1 REQUIRED COMPONENTS memory zookeeper mongo connect metrics)
add_executable(shop main.cpp)
target_link_libraries(shop PRIVATE colock::memory colock::zookeeper colock::mongo colock::connect colock::metrics)
CMAKE
cmake -S "$scratch" -B "$scratch/build"
cmake --build "$scratch/build"
"$scratch/build/shop" | tee "$scratch/output"
grep -q '^charged 30' "$scratch/output" || fail "the program did not charge the cart"

cd "$scratch"
# shellcheck disable=SC2046
g++ -std=c++20 main.cpp -o shop $(pkg-config --cflags --libs colock-memory)
./shop

colock --version

apt-get remove -y colock libcolock-dev libcolock0
left=$(find /usr -name '*colock*' -not -path '*/doc/*')
[ -z "$left" ] || fail "files are left behind: $left"
