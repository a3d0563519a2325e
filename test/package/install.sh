#!/usr/bin/env bash
# Runs the installation commands of README.md and docs/installing.md in FOLDER, as if FOLDER were a user's home.
#
#   test/package/install.sh static|shared FOLDER
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$2"
cd "$2"
ln -sfn "$source" colock
# Keeps the compiler cache of the real home folder.
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache} HOME=$PWD

# The commands below keep this setting.
if [ "$1" = shared ]; then
    cmake -S colock -B colock-build -DCOLOCK_DEVELOPER=OFF -DBUILD_SHARED_LIBS=ON
fi

#[ install
cmake -S colock -B colock-build -DCOLOCK_DEVELOPER=OFF # a Release build, unless CMAKE_BUILD_TYPE says otherwise
cmake --build colock-build --parallel "$(nproc)"
cmake --install colock-build --prefix ~/.local
#]

[ ! -d colock-build/test ] && [ ! -d colock-build/examples ] || {
    echo "install: error: the build also contains tests or examples" >&2
    exit 1
}
