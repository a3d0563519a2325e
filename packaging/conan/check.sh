#!/usr/bin/env bash
# Runs the command of docs/installing.md that makes the Conan package, which also runs the quick start with the package.
# Uses a Conan home of its own, build/conan.
#
#   packaging/conan/check.sh [OPTION=VALUE]...     options of the recipe, e.g. redis=OFF
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scripts/setup.sh build conan
. scripts/environment.sh

mkdir -p build/conan
CONAN_HOME=$(cd build/conan && pwd)
# The path of a source file in the package's folder is not the same in each checkout.
export CONAN_HOME CCACHE_BASEDIR=$CONAN_HOME CCACHE_NOHASHDIR=1 PATH=$colock_conan/bin:$PATH
rm -f "$CONAN_HOME/profiles/default"
conan profile detect
{
    echo '[options]'
    [ $# -eq 0 ] || printf 'colock/*:%s\n' "$@"
    echo '[conf]'
    echo 'tools.cmake.cmaketoolchain:generator=Ninja'
    echo "tools.build:compiler_executables={'cpp': '${CXX:?}'}"
    echo "tools.cmake.cmaketoolchain:extra_variables={'CMAKE_CXX_COMPILER_LAUNCHER': '$(command -v ccache || true)'}"
} >>"$CONAN_HOME/profiles/default"

#[ create
conan create packaging/conan -s compiler.cppstd=20
#]
