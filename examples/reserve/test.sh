#!/usr/bin/env bash
# Tests the reservation server with curl as the client.
#
#   examples/reserve/test.sh SERVER memory|redis
#
# With redis, two servers share the seats and a Redis server that this script starts (COLOCK_REDIS_SERVER, or
# redis-server). The script stops this Redis server during the test. Exit code 77: skipped, because a tool that the
# output names is missing.
set -euo pipefail

program=$1
backend=$2
scratch=$(mktemp -d)
children=()
finish() {
    for child in "${children[@]}"; do
        kill -CONT "$child" 2>/dev/null && kill "$child" 2>/dev/null && wait "$child" 2>/dev/null || true
    done
    rm -rf "$scratch"
}
trap finish EXIT

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
skip() {
    echo "skipped: $*" >&2
    exit 77
}
# expect WHAT WANTED GOT
expect() {
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
    echo "ok: $1: $3"
}
# until_true WHAT COMMAND...: repeats COMMAND until it succeeds, for 30 seconds at most
until_true() {
    local what=$1 deadline=$((SECONDS + 30))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || fail "$what: not within 30 s"
        sleep 0.05
    done
}

# start_servers OPTION...: starts one server, or two with redis, and sets "one" and "two" to their addresses
start_servers() {
    servers=() urls=()
    for name in one ${redis:+two}; do
        # The file is emptied so that the address of an earlier server cannot be read from it.
        : >"$scratch/$name"
        "$program" --backend "$url" --folder "$scratch/seats" "$@" >"$scratch/$name" &
        servers+=($!)
        children+=($!)
        until_true "a server listens" grep -q '^listening on' "$scratch/$name"
        urls+=("$(sed -n 's/^listening on //p' "$scratch/$name")")
    done
    one=${urls[0]} two=${urls[-1]}
}
stop_servers() {
    for server in "${servers[@]}"; do
        kill "$server"
        wait "$server" || fail "a server ended with $?"
    done
    children=(${redis:+"$redis"})
}

# ask METHOD URL: prints the status code. The time limit turns a hang into "000".
ask() { curl --silent --noproxy '*' --max-time 30 --output /dev/null --write-out '%{http_code}' -X "$1" "$2" || true; }
# both SEAT: sends two reservations at once, to different servers if there are two; prints both status codes, sorted
both() {
    ask POST "$one/reserve/$1" >"$scratch/first" &
    local first=$!
    ask POST "$two/reserve/$1" >"$scratch/second"
    wait $first
    printf '%s\n' "$(<"$scratch/first")" "$(<"$scratch/second")" | sort | paste -sd' '
}
# reason SEAT: prints the status code and the first word of the answer
reason() {
    local code
    code=$(curl --silent --noproxy '*' --max-time 30 --output "$scratch/answer" --write-out '%{http_code}' \
        -d '' "$one/reserve/$1" || true)
    printf '%s %s' "$code" "$(cut -d: -f1 "$scratch/answer")"
}
reserved() { [ "$(ask POST "$one/reserve/$1")" = 200 ]; }
# within MS COMMAND...: prints the output of the command, and the duration if it took longer
within() {
    local limit=$1 start=${EPOCHREALTIME//[.,]/} took
    shift
    "$@"
    took=$(((${EPOCHREALTIME//[.,]/} - start) / 1000))
    [ $took -le "$limit" ] || printf ' after %s ms' $took
}

command -v curl >/dev/null || skip "there is no curl"
redis=''
url=memory:
if [ "$backend" = redis ]; then
    redis_server=${COLOCK_REDIS_SERVER:-$(command -v redis-server || true)}
    [ -n "$redis_server" ] || skip "there is no redis-server"
    # A socket in the file system, because another process could take a port, but not this name.
    "$redis_server" --port 0 --unixsocket "$scratch/redis" --save '' --appendonly no --dir "$scratch" >"$scratch/log" &
    redis=$!
    children+=("$redis")
    url=redis+unix://$scratch/redis
    until_true "redis is ready" test -S "$scratch/redis"
fi

# --- the second client of a seat gets 409 -----------------------------------------------------------------------------

start_servers --hold-ms 300 --limit-ms 20000
for seat in A1 A2 A3; do
    expect "two clients, one seat" "200 409" "$(both $seat)"
done
expect "taken on both servers" 409 "$(ask POST "$two/reserve/A1")"

# --- a bad request gets an error, and its connection stays open -------------------------------------------------------

expect "another path" 404 "$(ask POST "$one/cancel/A1")"
expect "another method" 405 "$(ask GET "$one/reserve/B1")"
curl --silent --noproxy '*' --max-time 30 --head "$one/reserve/B1" >"$scratch/head"
grep -qi '^allow: POST' "$scratch/head" || fail "405 without Allow: $(<"$scratch/head")"
for seat in '' B B1234 b1 1B B-1 B1/ 'B1?x' %42%31 ..%2fB1; do
    expect "bad seat '$seat'" 400 "$(ask POST "$one/reserve/$seat")"
done
expect "not HTTP" "HTTP/1.1 400 Bad Request" "$(
    exec {socket}<>"/dev/tcp/127.0.0.1/${one##*:}"
    printf 'what is this\r\n\r\n' >&"$socket"
    read -r -t 30 line <&"$socket" && printf '%s' "${line%$'\r'}"
)"
expect "a long body" 413 "$(curl --silent --noproxy '*' --max-time 30 -o /dev/null -w '%{http_code}' \
    -d "$(printf '%2000s' '')" "$one/reserve/B1")"
expect "three requests on one connection" "1 200
0 405
0 404" "$(curl --silent --noproxy '*' --max-time 30 -o /dev/null -w '%{num_connects} %{http_code}\n' -d '' "$one/reserve/B2" \
    --next --silent --noproxy '*' --max-time 30 -o /dev/null -w '%{num_connects} %{http_code}\n' --head "$one/reserve/B2" \
    --next --silent --noproxy '*' --max-time 30 -o /dev/null -w '%{num_connects} %{http_code}' "$one/")"
stop_servers

# --- no client waits longer than the limit ----------------------------------------------------------------------------

# Two clients ask at the same time. The client that gets the lock keeps it longer than the other may wait, and is
# answered last.
start_servers --hold-ms 8000 --limit-ms 2000
clients=()
for url_of in "$one" "$two"; do
    curl --silent --noproxy '*' --max-time 30 -o "$scratch/said-${#clients[@]}" -w '%{http_code} %{time_total}\n' \
        -d '' "$url_of/reserve/C1" >>"$scratch/slow" &
    clients+=($!)
done
wait "${clients[@]}"
expect "one gets the lock, one reaches the limit" "200 503" "$(cut -d' ' -f1 "$scratch/slow" | sort | paste -sd' ')"
expect "the limit is reached first" 503 "$(head -n 1 "$scratch/slow" | cut -d' ' -f1)"
awk '$1 == 503 && $2 < 2 { exit 1 }' "$scratch/slow" || fail "503 before the limit: $(<"$scratch/slow")"
expect "the answers name the reason" "C1 is yours
busy: somebody else is reserving C1" "$(sort "$scratch"/said-*)"
expect "taken by the slow request" 409 "$(ask POST "$two/reserve/C1")"
stop_servers

# --- a backend that hangs does not delay the answer -------------------------------------------------------------------

[ -n "$redis" ] || exit 0
start_servers --hold-ms 0 --limit-ms 500
until_true "redis works" reserved D1
kill -STOP "$redis"
expect "redis hangs, and the connection is open" "503 unavailable" "$(within 6000 reason D2)"
expect "redis hangs, and there is no connection yet" 503 "$(within 6000 ask POST "$two/reserve/D2")"
kill -CONT "$redis"
until_true "redis answers again" reserved D3
until_true "the seat of the failed request can be reserved" reserved D2
kill -STOP "$redis"
expect "redis hangs again" 503 "$(within 6000 ask POST "$one/reserve/D4")"
stop_servers

# The process is killed here, and waited for at the end. Until then its process id cannot be reused.
kill -KILL "$redis"
start_servers --hold-ms 0 --limit-ms 500
expect "redis is killed" "503 unavailable" "$(within 6000 reason D5)"
stop_servers
