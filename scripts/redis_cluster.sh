#!/usr/bin/env bash
# Runs a Redis Cluster of three masters, each with a replica, until it receives SIGTERM.
#
#   scripts/redis_cluster.sh PORT FOLDER
#
# The servers listen on 127.0.0.1, at PORT to PORT+5. PORT+6 to PORT+11 are their cluster bus ports. The files of each
# server are in FOLDER/ITS_PORT. The script creates FOLDER/ready when all slots are served and all replicas connected.
#
# The caller may set:
#
#   COLOCK_REDIS_SERVER      the redis-server binary
#   COLOCK_CLUSTER_TIMEOUT   cluster-node-timeout in milliseconds (default: 2000)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
[ $# -eq 2 ] || {
    echo 'usage: scripts/redis_cluster.sh PORT FOLDER' >&2
    exit 2
}
port=$1 folder=$2 masters=3 nodes=6
server=${COLOCK_REDIS_SERVER:-redis-server}

children=()
stop_all() {
    for child in "${children[@]}"; do
        kill "$child" 2>/dev/null && wait "$child" 2>/dev/null || true
    done
}
trap stop_all EXIT
trap 'exit 143' TERM INT

addresses=()
for ((i = 0; i < nodes; ++i)); do
    own=$folder/$((port + i))
    mkdir -p "$own"
    "$server" --bind 127.0.0.1 --port $((port + i)) --dir "$own" --daemonize no --save '' --appendonly no \
        --cluster-enabled yes --cluster-port $((port + nodes + i)) \
        --cluster-node-timeout "${COLOCK_CLUSTER_TIMEOUT:-2000}" \
        --repl-diskless-sync-delay 0 --repl-ping-replica-period 1 >"$own/log" 2>&1 &
    children+=($!)
    addresses+=("127.0.0.1:$((port + i))")
done

# ask NODE COMMAND...: prints the reply; fails if there is none
ask() { timeout 5 redis-cli -p $((port + $1)) "${@:2}" 2>/dev/null; }
# await COMMAND...: repeats the command until it succeeds
await() {
    for ((attempt = 0; attempt < 300; ++attempt)); do
        "$@" && return 0
        # A server cannot start if its port is in use.
        for child in "${children[@]}"; do
            kill -0 "$child" || exit 1
        done
        sleep 0.1
    done
    echo "redis_cluster: error: timeout: $*" >&2
    exit 1
}
answers() { [ "$(ask "$1" PING)" = PONG ]; }
knows_all() { [[ $(ask "$1" CLUSTER INFO) = *cluster_known_nodes:$nodes* ]]; }
replicates() { [ "$(ask "$1" CLUSTER REPLICATE "$2")" = OK ]; }
is_linked() { [[ $(ask "$1" INFO replication) = *master_link_status:up* ]]; }
is_ok() { [[ $(ask "$1" CLUSTER INFO) = *cluster_state:ok*cluster_slots_ok:16384* ]]; }

for ((i = 0; i < nodes; ++i)); do
    await answers "$i"
done
for ((i = 0; i < masters; ++i)); do
    ask "$i" CLUSTER ADDSLOTSRANGE $((16384 * i / masters)) $((16384 * (i + 1) / masters - 1)) >"$folder/log_of_setup"
    ask "$i" CLUSTER SET-CONFIG-EPOCH $((i + 1)) >>"$folder/log_of_setup"
done
for ((i = 1; i < nodes; ++i)); do
    ask "$i" CLUSTER MEET 127.0.0.1 "$port" $((port + nodes)) >>"$folder/log_of_setup"
done
for ((i = 0; i < nodes; ++i)); do
    await knows_all "$i"
done
for ((i = masters; i < nodes; ++i)); do
    await replicates "$i" "$(ask $((i - masters)) CLUSTER MYID)"
done
for ((i = masters; i < nodes; ++i)); do
    await is_linked "$i"
done
for ((i = 0; i < nodes; ++i)); do
    await is_ok "$i"
done
touch "$folder/ready"
wait
