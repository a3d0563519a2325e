#!/usr/bin/env bash
# Runs several processes that compete for the leadership. Kills the first leader, and tells the next leader to stop.
#
#   examples/leader_work/test.sh PROGRAM [URL]
#
# Without a URL, runs one process with the memory backend.
set -euo pipefail

program=$1
url=${2:-}
scratch=$(mktemp -d)
declare -A children=()
finish() {
    for child in "${children[@]}"; do
        kill -KILL "$child" 2>/dev/null && wait "$child" 2>/dev/null || true
    done
    rm -rf "$scratch"
}
trap finish EXIT

fail() {
    echo "FAILED: $*" >&2
    tail -n 5 "$scratch"/* >&2
    exit 1
}
# until_true WHAT COMMAND...: repeats COMMAND until it succeeds, for a minute at most
until_true() {
    local what=$1 deadline=$((SECONDS + 60))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || fail "$what: not within 60 s"
        sleep 0.05
    done
    echo "ok: $what"
}
begin() {
    "$program" ${url:+--backend "$url" --office "leader-$$"} --pace-ms 50 >"$scratch/$1" 2>&1 &
    children[$1]=$!
}
leads() { grep -q '^leads' "$scratch/$1"; }
works() { grep -q '^step 3$' "$scratch/$1"; }
term() { sed -n 's/^leads, term //p' "$scratch/$1"; }
# Tells the process to stop, and waits for its end.
stop() {
    kill "${children[$1]}"
    wait "${children[$1]}" || fail "$1 ended with $?"
    grep -q '^gone$' "$scratch/$1" || fail "the shutdown of $1 was not clean"
}

begin one
until_true "the first leads" works one
if [ -n "$url" ]; then
    begin two
    # If the backend has a queue, the second process has to be in it before the third starts.
    sleep 0.5
    kill -KILL "${children[one]}"
    wait "${children[one]}" 2>/dev/null || true
    leads two && fail "two processes lead"
    until_true "the second leads after the first was killed" works two
    [ "$(term two)" -gt "$(term one)" ] || fail "terms: $(term one), $(term two)"
    begin three
    sleep 0.5
    leads three && fail "two processes lead"
    stop two
    until_true "the third leads after the second has stopped" works three
    [ "$(term three)" -gt "$(term two)" ] || fail "terms: $(term two), $(term three)"
    stop three
else
    stop one
fi
