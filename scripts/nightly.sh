#!/usr/bin/env bash
# Runs the checks that take too long for every change: clang-tidy on the sources that changed last, and both commands of
# README.md in a minimal Debian 12 and 13.
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
