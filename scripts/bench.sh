#!/usr/bin/env bash
# Builds and runs the benchmark.
#
#   scripts/bench.sh [OPTION]...
#
#   --backend URL       the backend; default: memory:. redis, zookeeper and mongodb start a server for the run; a URL
#                       such as redis://HOST:PORT uses that server
#   --peers             also measures other lock libraries for the backend; the libraries alternate. With --part
#                       cluster, measures those that have locks for a cluster
#   --docs              writes the results into docs/benchmarks/BACKEND.md, and generates the charts and the summary
#                       in docs/benchmarks.md again
#   --part NAME         runs one part; default: all parts except listing, growth and, for Redis, cluster and fail-over.
#                       All backends: uncontended, waiters, hand-off, load, listing, growth. Memory: verbs, allocations,
#                       threads. Backends with a server: forms. Redis: contended, groups, stalls, cluster, fail-over,
#                       threads. ZooKeeper: contended, processes, fail-over, many-waiters, resumptions, stalls.
#                       MongoDB: readers, groups, memory, stalls
#   --concurrency N     number of coroutines of the load; default: 64
#   --keys N            number of keys of the load; default: 1000
#   --seconds S         duration of each part of the run; default: 2
#   --rounds N          with --peers: number of measurements of each library; default: 3
#   --begins SECOND     for one of several processes: when it starts to count, in seconds since 1970
#   --json FILE         also writes the results to FILE; likewise --markdown FILE as tables, --svg FILE as a chart
#   --threaded          starts and ends a thread first, so that mutexes and reference counts work as in a program
#                       with threads
#   --check             exits with 1 if a limit is missed; --check-counts checks only numbers that do not depend on time
#
# The other libraries are installed into the cache, in the versions that benchmarks/peers names. A library that cannot
# be installed is reported as missing. Exits with 77 if no server can be started.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench=${COLOCK_BENCH:-$root/build/release/benchmarks/colock-bench}
. "$root/scripts/environment.sh"

say() { printf 'bench: %s\n' "$*" >&2; }

# Prints one line for each library: its name, a tab, and its command. The command is empty if the library is not
# available.
list_peers() {
    case $1 in
    redis) list_redis_peers ;;
    redis_cluster) list_redis_cluster_peers ;;
    zookeeper) list_zookeeper_peers ;;
    mongodb) list_node_peers locco-mongodb ;;
    esac
}
list_node_peers() {
    local name command=''
    if cmp -s "$colock_peers/node.installed" "$root/benchmarks/peers/package.json"; then
        command="node '$root/benchmarks/peers/NAME.js' --modules '$colock_peers'"
    fi
    for name in "$@"; do
        printf '%s\t%s\n' "${name%-mongodb}" "${command/NAME/$name}"
    done
}
list_redis_peers() {
    local command=''
    list_node_peers locco ioredis-lock redlock
    if cmp -s "$colock_peers/python.installed" "$root/benchmarks/peers/requirements.txt"; then
        command="'$colock_peers/python/bin/python' '$root/benchmarks/peers/redis_py.py'"
    fi
    printf 'redis-py\t%s\n' "$command"
}
list_redis_cluster_peers() {
    list_redis_peers | awk '/^(redlock|redis-py)\t/ { print $0 (/\t$/ ? "" : " --cluster") }'
}
list_zookeeper_peers() {
    local command=''
    if [ -f "${colock_curator_classes%%:*}" ] && command -v javac >/dev/null &&
        javac -cp "$colock_curator_classes" -d "$scratch/curator" "$root/benchmarks/peers/CuratorLoad.java"; then
        command="java -Xmx512m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        command+=" -cp '$scratch/curator:$colock_curator_classes' CuratorLoad"
    fi
    printf 'Curator\t%s\n' "$command"
    command=''
    if /usr/bin/python3 -c 'import kazoo' 2>/dev/null; then
        command="/usr/bin/python3 '$root/benchmarks/peers/kazoo_load.py'"
    fi
    printf 'kazoo\t%s\n' "$command"
}

backend=memory:
with_peers=no
docs=no
options=()
while [ $# -gt 0 ]; do
    case $1 in
    --backend) backend=${2:?--backend needs a URL} && shift ;;
    --backend=*) backend=${1#*=} ;;
    --peers) with_peers=yes ;;
    --docs) docs=yes ;;
    *) options+=("$1") ;;
    esac
    shift
done

[ -n "${COLOCK_BENCH:-}" ] || "$root/scripts/build.sh" release colock-bench

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
name=${backend%%:*}
if [ $with_peers = yes ]; then
    "$root/scripts/setup.sh" peers >&2
    case "$name ${options[*]} " in
    "redis "*"--part cluster "*) list_peers redis_cluster >"$scratch/peers" ;;
    *) list_peers "$name" >"$scratch/peers" ;;
    esac
    options=(--peers "$scratch/peers" "${options[@]}")
fi
if [ $docs = yes ]; then
    options=(--seconds 2 --markdown "$scratch/tables" "${options[@]}")
fi

# The results are written before a missed limit is reported.
status=0
case $backend in
redis | zookeeper | mongodb)
    address=COLOCK_TEST_${backend^^}
    # The mongodb server of the tests starts quickly but answers slowly; the native server is faster.
    if [ "$backend" = mongodb ]; then
        # A test has no time to build the native server.
        [ -n "${COLOCK_BENCH:-}" ] || "$root/scripts/setup.sh" mongodb_native >&2
        [ ! -x "$colock_mongodb_native/bin/secantusd-rs" ] || backend=mongodb_native
    fi
    servers=("$backend")
    # The part cluster compares one server with a cluster.
    case "$backend ${options[*]} " in
    "redis "*"--part cluster "*) servers+=(redis_cluster) ;;
    esac
    # The server waits for the disk, as in production, except in tests.
    [ -n "${COLOCK_BENCH:-}" ] || export COLOCK_ZOOKEEPER_OPTIONS=
    # With peers, each round uses its own ZooKeeper server.
    [ "$backend$with_peers" != zookeeperyes ] || servers=(zookeeper zookeeper zookeeper)
    # shellcheck disable=SC2016
    env -u "$address" "$root/scripts/servers.sh" run "${servers[@]}" -- \
        bash -c '[ -n "${!1:-}" ] || exit 77; "$0" --backend "${!1}" "${@:2}"' "$bench" "$address" "${options[@]}" ||
        status=$?
    ;;
*) "$bench" --backend "$backend" "${options[@]}" || status=$? ;;
esac

[ $docs = yes ] && [ -s "$scratch/tables" ] || exit "$status"
awk -v tables="$scratch/tables" -v mark="<!-- measured: $name -->" '
    /^<!-- \/measured -->$/ { inside = 0 }
    !inside { print }
    $0 == mark { inside = 1; while ((getline line <tables) > 0) print line }
' "$root/docs/benchmarks/$name.md" >"$scratch/page"
cat "$scratch/page" >"$root/docs/benchmarks/$name.md"
python3 "$root/scripts/benchmark_charts.py"
say "wrote docs/benchmarks/$name.md, the charts and the summary"
exit "$status"
