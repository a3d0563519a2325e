#!/usr/bin/env bash
# Runs a command while the named servers run.
#
#   scripts/servers.sh run [redis8|valkey8|valkey9] [redis|redis_cluster|zookeeper|mongodb|mongodb_native|ferretdb]... \
#       -- COMMAND...
#
# Each named server is a child process of this script, on a free port of 127.0.0.1, with its files in a temporary
# folder. The servers are stopped when the command ends. If the address of a server is in the environment already, that
# server is used:
#
#   COLOCK_TEST_REDIS      redis://127.0.0.1:PORT, a server that is shared by tests
#   COLOCK_TEST_REDIS_CLUSTER  redis+cluster://127.0.0.1:PORT,127.0.0.1:PORT, six servers that are shared by tests: see
#                          scripts/redis_cluster.sh
#   COLOCK_TEST_ZOOKEEPER  zookeeper://127.0.0.1:PORT, the same; with a tick time of 500 ms
#   COLOCK_TEST_MONGODB    mongodb://127.0.0.1:PORT, the same; not set if no server is installed. mongodb_native and
#                          ferretdb, other servers that scripts/setup.sh can build, are always started, and set the
#                          same variable. ferretdb needs root, and some minutes for its installation
#
# The same variable with the suffix _ID is the id of the server's process, and with the suffix _FOLDER the folder of its
# files, if this script started the server. A server that is named twice is started twice. The second address is in
# COLOCK_TEST_REDIS_2, and so on.
#
# redis8, valkey8 and valkey9 name no server, but the program of all Redis servers of the run, in COLOCK_REDIS_SERVER.
# scripts/setup.sh unpacks these programs. Without them, the redis-server of the system is used.
#
# Tests that stop or damage servers start their own. For such tests the script exports:
#
#   COLOCK_REDIS_SERVER    the redis-server binary
#   COLOCK_ZOOKEEPER_CLASSES   the class path of ZooKeeper
#   COLOCK_CURATOR_CLASSES     the class path of Curator
#   COLOCK_MONGODB_SERVER      the server program of MongoDB's protocol
#   COLOCK_MONGODB_OPTIONS     its options, in addition to its port and its folder
#   COLOCK_TOXIPROXY       the Toxiproxy server binary
#
# The caller may set COLOCK_ZOOKEEPER_OPTIONS, the options of the Java program. By default, the server does not wait for
# the disk (forceSync=no), because a busy disk can delay it by more than the session timeouts of the tests.
#
# The caller may set COLOCK_REDIS_WITHOUT_TLS if the redis-server binary was built without TLS. Tests that need TLS are
# then reported as skipped.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

say() { printf 'servers: %s\n' "$*"; }
fail() {
    printf 'servers: error: %s\n' "$*" >&2
    exit 1
}

usage='usage: scripts/servers.sh run [redis8|valkey8|valkey9] [redis|redis_cluster|zookeeper|mongodb|mongodb_native|ferretdb]... -- COMMAND...'
[ "${1:-}" = run ] || fail "$usage"
shift
servers=()
program=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    redis8 | valkey8 | valkey9) program=$1 ;;
    redis | redis_cluster | zookeeper | mongodb | mongodb_native | ferretdb) servers+=("$1") ;;
    *) fail "unknown server '$1'; $usage" ;;
    esac
    shift
done
[ $# -gt 1 ] || fail "$usage"
shift

"$colock_root/scripts/setup.sh" servers ${program:+"$program"}
if [ -n "$program" ]; then
    COLOCK_REDIS_SERVER=$colock_cache/$program/redis-server
    [ -x "$COLOCK_REDIS_SERVER" ] || fail "$program is not installed"
fi
export COLOCK_REDIS_SERVER=${COLOCK_REDIS_SERVER:-$(command -v redis-server || echo "$colock_redis_server")}
export COLOCK_TOXIPROXY=${COLOCK_TOXIPROXY:-$colock_toxiproxy}
export COLOCK_CURATOR_CLASSES=${COLOCK_CURATOR_CLASSES:-$colock_curator_classes}

scratch=$(mktemp -d)
children=()
stop_all() {
    for child in "${children[@]}"; do
        kill "$child" 2>/dev/null && wait "$child" 2>/dev/null || true
    done
    # The PostgreSQL server of FerretDB ends a moment later than FerretDB.
    rm -rf "$scratch" 2>/dev/null || { sleep 1; rm -rf "$scratch"; }
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ask PORT TEXT: prints the first line of the answer
ask() {
    local reply=''
    { exec {socket}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf '%b' "$2" >&"$socket" && read -r -t 2 reply <&"$socket" || true
    exec {socket}>&-
    printf '%s' "${reply%$'\r'}"
}

launch_redis() {
    exec "$COLOCK_REDIS_SERVER" --bind 127.0.0.1 --port "$1" --save '' --appendonly no --dir "$2" --daemonize no
}
redis_answers() { [ "$(ask "$1" 'PING\r\n')" = +PONG ]; }

launch_redis_cluster() { exec "$colock_root/scripts/redis_cluster.sh" "$1" "$2"; }
redis_cluster_answers() { [ -e "$folder/ready" ]; }

launch_zookeeper() {
    printf '%s\n' "dataDir=$2/data" "clientPort=$1" clientPortAddress=127.0.0.1 tickTime=500 maxClientCnxns=0 \
        admin.enableServer=false extendedTypesEnabled=true '4lw.commands.whitelist=*' >"$2/server.cfg"
    # shellcheck disable=SC2086 # a list of options
    exec java -Xmx256m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn ${COLOCK_ZOOKEEPER_OPTIONS--Dzookeeper.forceSync=no} \
        -cp "$COLOCK_ZOOKEEPER_CLASSES" org.apache.zookeeper.server.quorum.QuorumPeerMain "$2/server.cfg"
}
zookeeper_answers() { [[ $(ask "$1" srvr) = "Zookeeper version"* ]]; }

launch_mongodb() {
    # shellcheck disable=SC2086 # a list of options
    exec "$COLOCK_MONGODB_SERVER" --port "$1" --storage-path "$2/data" $COLOCK_MONGODB_OPTIONS
}
mongodb_answers() { { exec {socket}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null && exec {socket}>&-; }

# url_of NAME PORT
url_of() {
    if [ "$1" = redis_cluster ]; then
        echo "redis+cluster://127.0.0.1:$2,127.0.0.1:$(($2 + 1))"
    else
        echo "$1://127.0.0.1:$2"
    fi
}

# start NAME VARIABLE: starts a server and exports its address in VARIABLE
#
# A port cannot be reserved for another process. So a random port is tried, and another one if the server cannot use it.
start() {
    local folder=$scratch/$2 port child
    mkdir -p "$folder"
    for _ in {1..10}; do
        port=$((20000 + RANDOM % 12000))
        "launch_$1" "$port" "$folder" >"$folder/log" 2>&1 &
        child=$!
        for _ in {1..200}; do
            kill -0 "$child" 2>/dev/null || break
            if "$1_answers" "$port"; then
                # Another server on this port would answer too. But then our server cannot have bound the port, and has
                # ended.
                sleep 0.1
                kill -0 "$child" 2>/dev/null || break
                children+=("$child")
                export "$2=$(url_of "$1" "$port")" "$2_ID=$child" "$2_FOLDER=$folder"
                say "$1 at ${!2}"
                return 0
            fi
            sleep 0.1
        done
        kill "$child" 2>/dev/null || true
    done
    cat "$folder/log" >&2
    fail "$1 did not start"
}

declare -A named=()
for server in "${servers[@]}"; do
    variable=COLOCK_TEST_${server^^}
    named[$server]=$((${named[$server]:-0} + 1))
    [ "${named[$server]}" = 1 ] || variable+=_${named[$server]}
    if [ "$server" = mongodb_native ]; then
        # This server does not support fail points.
        export COLOCK_MONGODB_SERVER=$colock_mongodb_native/bin/secantusd-rs COLOCK_MONGODB_OPTIONS='--log-level WARNING'
        [ -x "$COLOCK_MONGODB_SERVER" ] || fail "mongodb_native is not installed; scripts/setup.sh mongodb_native builds it"
        start mongodb COLOCK_TEST_MONGODB
        continue
    fi
    if [ "$server" = ferretdb ]; then
        "$colock_root/scripts/setup.sh" ferretdb
        export COLOCK_MONGODB_SERVER=$colock_root/scripts/ferretdb.sh COLOCK_MONGODB_OPTIONS=
        start mongodb COLOCK_TEST_MONGODB
        continue
    fi
    if [ -n "${!variable:-}" ]; then
        say "using the $server server of $variable"
        continue
    fi
    if [ "$server" = zookeeper ]; then
        "$colock_root/scripts/setup.sh" zookeeper
        export COLOCK_ZOOKEEPER_CLASSES=${COLOCK_ZOOKEEPER_CLASSES:-$colock_zookeeper_classes}
    fi
    if [ "$server" = mongodb ]; then
        "$colock_root/scripts/setup.sh" mongodb
        export COLOCK_MONGODB_SERVER=${COLOCK_MONGODB_SERVER:-$colock_mongodb/bin/secantusd-py}
        export COLOCK_MONGODB_OPTIONS=${COLOCK_MONGODB_OPTIONS:---log-level WARNING --enable-test-commands}
        [ -x "$COLOCK_MONGODB_SERVER" ] || continue
    fi
    start "$server" "$variable"
done

"$@"
