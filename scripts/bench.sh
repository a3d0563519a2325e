#!/usr/bin/env bash
# Builds and runs the benchmark.
#
#   scripts/bench.sh [OPTION]...     (scripts/bench.sh --help lists the benchmark's options)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/build.sh" release colock-bench
exec "$root/build/release/benchmarks/colock-bench" "$@"
