#!/usr/bin/env bash
# Checks that the tests notice artificial faults (mutants) in src/core and in the backends: compiles all of
# test/mutants/mutants.toml into a copy of the sources in build/mutants, and runs the tests with one at a time.
#
#   scripts/mutants.sh [NAME]... [OPTION]...
#
# NAME is a mutant. Without a name, all of them run, which takes about an hour.
#
#   --list         prints the mutants and what they do
#   --table        prints the results of earlier runs
#   --jobs N       tests that run at the same time (default: two for each processor)
#   --timeout N    seconds of one suite with one mutant (default: 180)
#   --preset PRESET    the build (default: debug, which has assertions)
#
# Exits with 1 if a mutant is not noticed. docs/testing.md describes the mutants and how they were noticed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Each test that is killed would leave a file of libmongoc in /dev/shm.
export MONGOC_DISABLE_SHM=1

exec test/mutants/run.py "$@"
