#!/usr/bin/env bash
# Runs the installation commands of README.md in FOLDER, as if FOLDER were a user's home.
#
#   test/package/install.sh FOLDER
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$1"
cd "$1"
ln -sfn "$source" colock
# Keeps the compiler cache of the real home folder.
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache} HOME=$PWD

#[ install
cmake -S colock -B colock-build -DCOLOCK_DEVELOPER=OFF # a Release build, unless CMAKE_BUILD_TYPE says otherwise
cmake --build colock-build --parallel
cmake --install colock-build --prefix ~/.local
#]

[ ! -d colock-build/test ] && [ ! -d colock-build/examples ] || {
    echo "install: error: the build also contains tests or examples" >&2
    exit 1
}
