#!/usr/bin/env bash
# Builds and runs the benchmark.
#
#   scripts/bench.sh [OPTION]...     (scripts/bench.sh --help lists the benchmark's options)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh release colock-bench
exec build/release/benchmarks/colock-bench "$@"
