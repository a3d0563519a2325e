#!/usr/bin/env bash
# Asks the reservation server as its clients do, with curl.
#
#   examples/reserve/test.sh SERVER memory|redis
#
# With redis two servers share the seats and a Redis of this script's own (COLOCK_REDIS_SERVER, or redis-server), which
# is stopped on the way. Exit code 77: skipped, for want of what it names.
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
# until_true WHAT COMMAND...: tries for half a minute at most
until_true() {
    local what=$1 deadline=$((SECONDS + 30))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || fail "$what: not within 30 s"
        sleep 0.05
    done
}

# start_servers OPTION...: one, or with redis two; their addresses are in "one" and "two"
start_servers() {
    servers=() urls=()
    for name in one ${redis:+two}; do
        # Emptied here, so that the address of an earlier server cannot be read from it.
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

# ask METHOD URL: prints the status code. The bound turns a hang into "000".
ask() { curl --silent --noproxy '*' --max-time 30 --output /dev/null --write-out '%{http_code}' -X "$1" "$2" || true; }
# both SEAT: two reservations at once, on different servers if there are two; prints both status codes, sorted
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
# within MS COMMAND...: prints what the command does, and fails if it took longer
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
    # A socket in the file system: no other process can have taken its name, as one can a port.
    "$redis_server" --port 0 --unixsocket "$scratch/redis" --save '' --appendonly no --dir "$scratch" >"$scratch/log" &
    redis=$!
    children+=("$redis")
    url=redis+unix://$scratch/redis
    until_true "redis is ready" test -S "$scratch/redis"
fi

# --- who comes second is told so --------------------------------------------------------------------------------------

start_servers --hold-ms 300 --limit-ms 20000
for seat in A1 A2 A3; do
    expect "two clients, one seat" "200 409" "$(both $seat)"
done
expect "taken, on either server" 409 "$(ask POST "$two/reserve/A1")"

# --- what is wrong with a request is said, and its connection kept ----------------------------------------------------

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

# --- nobody waits beyond the limit ------------------------------------------------------------------------------------

# The two come at the same time: the one that gets the lock keeps it for far longer than the other waits, and is the last
# to be answered.
start_servers --hold-ms 8000 --limit-ms 2000
clients=()
for url_of in "$one" "$two"; do
    curl --silent --noproxy '*' --max-time 30 -o "$scratch/said-${#clients[@]}" -w '%{http_code} %{time_total}\n' \
        -d '' "$url_of/reserve/C1" >>"$scratch/slow" &
    clients+=($!)
done
wait "${clients[@]}"
expect "one had the lock, one gave up" "200 503" "$(cut -d' ' -f1 "$scratch/slow" | sort | paste -sd' ')"
expect "it gave up first" 503 "$(head -n 1 "$scratch/slow" | cut -d' ' -f1)"
awk '$1 == 503 && $2 < 2 { exit 1 }' "$scratch/slow" || fail "503, but when: $(<"$scratch/slow")"
expect "and was told why" "C1 is yours
busy: somebody else is reserving C1" "$(sort "$scratch"/said-*)"
expect "taken, by the slow one" 409 "$(ask POST "$two/reserve/C1")"
stop_servers

# --- nor does a backend that hangs keep anybody waiting ---------------------------------------------------------------

[ -n "$redis" ] || exit 0
start_servers --hold-ms 0 --limit-ms 500
until_true "redis is well" reserved D1
kill -STOP "$redis"
expect "redis hangs, and the connection is open" "503 unavailable" "$(within 6000 reason D2)"
expect "redis hangs, and there is no connection yet" 503 "$(within 6000 ask POST "$two/reserve/D2")"
kill -CONT "$redis"
until_true "redis is back" reserved D3
until_true "what was given up can be had again" reserved D2
kill -STOP "$redis"
expect "redis hangs again" 503 "$(within 6000 ask POST "$one/reserve/D4")"
stop_servers

# Killed, but not waited for before the end: until then its process id is no one else's.
kill -KILL "$redis"
start_servers --hold-ms 0 --limit-ms 500
expect "redis is gone" "503 unavailable" "$(within 6000 reason D5)"
stop_servers
