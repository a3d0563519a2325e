#!/usr/bin/env bash
# What README.md says about installing, done in FOLDER as a user's home.
#
#   test/package/install.sh FOLDER
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$1"
cd "$1"
ln -sfn "$source" colock
# The compiler cache stays where it is.
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache} HOME=$PWD

#[ install
cmake -S colock -B colock-build -DCOLOCK_DEVELOPER=OFF # a Release build, unless CMAKE_BUILD_TYPE says otherwise
cmake --build colock-build --parallel
cmake --install colock-build --prefix ~/.local
#]

[ ! -d colock-build/test ] && [ ! -d colock-build/examples ] || {
    echo "install: error: not the library alone" >&2
    exit 1
}
