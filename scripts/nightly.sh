#!/usr/bin/env bash
# Runs the checks that take too long for every change: clang-tidy on the sources that changed last; the library with
# each file compiled by itself; the simulator with defects, and for longer; the tests of MongoDB, Redis Cluster and the
# contract over a network under ASan and TSan; the tests of MongoDB and Redis Cluster with other servers; searches for
# violations by scripts/prove.sh; artificial faults that the tests have to notice; memory and descriptors over many
# pairs; each fuzzer for five minutes; the commands of .devcontainer; the demo, all tests and each way to install colock
# in a minimal Debian 12 and 13; and the tests with Debian 13's newer Boost.
#
#   scripts/nightly.sh
#
# Needs root; see scripts/debian_root.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

echo "nightly: clang-tidy"
scripts/tidy.sh

# A unity build does not notice a missing include.
echo "nightly: each file of the library by itself"
(
    . scripts/environment.sh
    cmake -S . -B build/each_file -G Ninja --log-level=NOTICE -DCOLOCK_DEVELOPER=OFF -DCMAKE_BUILD_TYPE=Quick \
        -DCMAKE_UNITY_BUILD=OFF -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null
    cmake --build build/each_file
)

echo "nightly: the simulator with each defect put back, and ten minutes of random seeds"
scripts/build.sh release colock_test_simulation
build/release/test/simulation/colock_test_simulation --defects
build/release/test/simulation/colock_test_simulation --seconds 600

echo "nightly: the tests of MongoDB, Redis Cluster and the contract over a network, under the sanitizers"
scripts/test.sh tsan --tests-regex '^(mongo|networked|redis_cluster)[.]'
scripts/test.sh asan --tests-regex '^(mongo|networked|redis_cluster)[.]'

# The native server deviates from MongoDB in other details than the server of scripts/test.sh.
echo "nightly: the MongoDB tests with the native server"
scripts/setup.sh mongodb_native
scripts/build.sh release colock_test_mongo
(
    . scripts/environment.sh
    # Without a recent cargo it is not built.
    [ ! -x "$colock_mongodb_native/bin/secantusd-rs" ] ||
        scripts/servers.sh run mongodb_native -- ctest --preset release --label-regex '^mongodb$'
)

echo "nightly: the contract and MongoDB tests with FerretDB"
scripts/build.sh release colock_test_contract colock_test_mongo
scripts/servers.sh run ferretdb -- ctest --preset release --tests-regex '^(contract|mongo)[.]'

# scripts/test.sh uses the server of the system.
echo "nightly: the Redis Cluster tests"
scripts/test.sh release --tests-regex '^redis_cluster[.]'
scripts/setup.sh redis8 valkey8 valkey9
for program in redis8 valkey8 valkey9; do
    echo "nightly: the Redis Cluster tests with $program"
    (
        . scripts/environment.sh
        [ ! -x "$colock_cache/$program/redis-server" ] ||
            scripts/servers.sh run "$program" -- ctest --preset release --tests-regex '^redis_cluster[.]'
    )
done

for sabotage in blind_release always_granted repeated_fence late_break early_expiry unreported_create reused_ticket \
    early_release unraised_fence first_sentinel; do
    backend=redis
    [ $sabotage != first_sentinel ] || backend=sentinel
    echo "nightly: scripts/prove.sh $backend --sabotage $sabotage, which has to be found"
    status=0
    scripts/prove.sh $backend --sabotage $sabotage || status=$?
    [ "$status" = 1 ]
done
for backend in redis redis-cluster sentinel quorum zookeeper mongodb ferretdb; do
    echo "nightly: scripts/prove.sh $backend"
    scripts/prove.sh "$backend" --minutes 5
done

echo "nightly: mutants, which the tests have to notice"
scripts/mutants.sh

for backend in memory: redis; do
    echo "nightly: resident memory and open descriptors over 1,000,000 pairs, $backend"
    scripts/bench.sh --backend "$backend" --part growth --check
done

scripts/build.sh fuzz colock_fuzz
for corpus in test/fuzz/corpus/*; do
    name=$(basename "$corpus")
    echo "nightly: the fuzzer $name"
    "build/fuzz/test/fuzz/colock_fuzz_$name" -max_total_time=300 -timeout=5 -max_len=4096 -verbosity=0 \
        -print_final_stats=1 "-artifact_prefix=build/fuzz/test/fuzz/$name/" "build/fuzz/test/fuzz/$name/corpus" "$corpus"
done

echo "nightly: the commands of .devcontainer on Debian 13, and a build"
devcontainer=$(python3 -c 'import json; c = json.load(open(".devcontainer/devcontainer.json"))
print(c["onCreateCommand"], c["postCreateCommand"], sep=" && ")')
scripts/debian_root.sh 13 bash -euc "$devcontainer && scripts/build.sh debug colock_test_unit"

for debian in 12 13; do
    for command in demo test; do
        echo "nightly: scripts/$command.sh on Debian $debian"
        scripts/debian_root.sh "$debian" "scripts/$command.sh"
    done
    for way in readme conan; do
        echo "nightly: packaging/$way/check.sh on Debian $debian"
        scripts/debian_root.sh "$debian" "packaging/$way/check.sh"
    done
done

echo "nightly: scripts/test.sh on Debian 13 with Boost 1.88"
# With a compiler and CMake, setup.sh finds the newer Boost. Otherwise it would replace it by the default.
COLOCK_BOOST=system scripts/debian_root.sh 13 bash -euc '
    apt-get update -q
    apt-get install -y -q --no-install-recommends g++ cmake ninja-build libboost1.88-dev libboost-context1.88-dev
    scripts/setup.sh
    dpkg --status libboost1.88-dev >/dev/null
    scripts/test.sh
'

echo "nightly: Debian packages"
scripts/debian_root.sh 13 packaging/debian/build.sh
scripts/debian_root.sh 13 packaging/debian/check.sh
