#!/usr/bin/env bash
# Runs the checks that take too long for every change: clang-tidy on the sources that changed last, and both commands of
# README.md in a minimal Debian 12 and 13, and the packages for Debian and Conan.
#
#   scripts/nightly.sh
#
# Needs root; see scripts/debian_root.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

echo "nightly: clang-tidy"
scripts/tidy.sh

for debian in 12 13; do
    for command in demo test; do
        echo "nightly: scripts/$command.sh on Debian $debian"
        scripts/debian_root.sh "$debian" "scripts/$command.sh"
    done
done

echo "nightly: Debian packages"
scripts/debian_root.sh 13 packaging/debian/build.sh
scripts/debian_root.sh 13 packaging/debian/check.sh

echo "nightly: Conan package"
packaging/conan/check.sh
