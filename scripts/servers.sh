#!/usr/bin/env bash
# Runs a command with real servers beside it.
#
#   scripts/servers.sh run [redis]... -- COMMAND...
#
# Each named server is a child of this script, on a free port of 127.0.0.1, with its files in a temporary folder, and is
# stopped when the command ends. A server whose address is in the environment already is used as it is:
#
#   COLOCK_TEST_REDIS      redis://127.0.0.1:PORT, a server that tests share
#
# Tests that hurt their servers start their own from these, which are exported too:
#
#   COLOCK_REDIS_SERVER    the redis-server binary
#   COLOCK_REDIS_WITHOUT_TLS   set if that one was built without TLS: what needs it is skipped, and said to be
#   COLOCK_TOXIPROXY       the Toxiproxy server binary
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

say() { printf 'servers: %s\n' "$*"; }
fail() {
    printf 'servers: error: %s\n' "$*" >&2
    exit 1
}

usage='usage: scripts/servers.sh run [redis]... -- COMMAND...'
[ "${1:-}" = run ] || fail "$usage"
shift
servers=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    redis) servers+=("$1") ;;
    *) fail "unknown server '$1'; $usage" ;;
    esac
    shift
done
[ $# -gt 1 ] || fail "$usage"
shift

"$colock_root/scripts/setup.sh" servers
export COLOCK_REDIS_SERVER=${COLOCK_REDIS_SERVER:-$(command -v redis-server || echo "$colock_redis_server")}
export COLOCK_TOXIPROXY=${COLOCK_TOXIPROXY:-$colock_toxiproxy}

scratch=$(mktemp -d)
children=()
stop_all() {
    for child in "${children[@]}"; do
        kill "$child" 2>/dev/null && wait "$child" 2>/dev/null || true
    done
    rm -rf "$scratch"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

redis_answers() {
    local reply=''
    { exec {socket}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'PING\r\n' >&"$socket" && read -r -t 2 reply <&"$socket" || true
    exec {socket}>&-
    [ "${reply%$'\r'}" = +PONG ]
}

# A port cannot be reserved for another process, so one is tried, and another if the server could not have it.
start_redis() {
    local folder=$scratch/redis port child
    mkdir -p "$folder"
    for _ in {1..10}; do
        port=$((20000 + RANDOM % 12000))
        "$COLOCK_REDIS_SERVER" --bind 127.0.0.1 --port "$port" --save '' --appendonly no --dir "$folder" \
            --daemonize no >"$folder/log" 2>&1 &
        child=$!
        for _ in {1..200}; do
            kill -0 "$child" 2>/dev/null || break
            if redis_answers "$port"; then
                # Another's server on that port would answer too, but then ours has ended.
                sleep 0.1
                kill -0 "$child" 2>/dev/null || break
                children+=("$child")
                export COLOCK_TEST_REDIS=redis://127.0.0.1:$port
                say "redis at $COLOCK_TEST_REDIS"
                return 0
            fi
            sleep 0.1
        done
        kill "$child" 2>/dev/null || true
    done
    cat "$folder/log" >&2
    fail "redis-server did not start"
}

for server in "${servers[@]}"; do
    case $server in
    redis)
        if [ -n "${COLOCK_TEST_REDIS:-}" ]; then
            say "redis as COLOCK_TEST_REDIS says"
        else
            start_redis
        fi
        ;;
    esac
done

"$@"
