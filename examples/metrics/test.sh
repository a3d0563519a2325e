#!/usr/bin/env bash
# Reads the metrics of the example as Prometheus would, and checks them.
#
#   examples/metrics/test.sh PROGRAM
#
# Exit code 77: skipped, because Prometheus's client library is not installed; see scripts/setup.sh prometheus.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../scripts/environment.sh"

program=$1
[ -f "$colock_prometheus/installed" ] || {
    echo "skipped: there is no prometheus_client; see scripts/setup.sh prometheus" >&2
    exit 77
}
scratch=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } || true
    rm -rf "$scratch"
}
trap finish EXIT

# check TENANTS REPORTS: starts the program, waits until it has made the reports, and checks its metrics
check() {
    : >"$scratch/out"
    "$program" --tenants "$1" --reports "$2" >"$scratch/out" 2>"$scratch/log" &
    server=$!
    local deadline=$((SECONDS + 60))
    until grep -q '^all reports are made' "$scratch/out"; do
        if [ $SECONDS -ge $deadline ]; then
            echo "FAILED: the reports are not made within 60 s" >&2
            cat "$scratch/out" "$scratch/log" >&2
            exit 1
        fi
        sleep 0.05
    done
    "$colock_prometheus/bin/python" "$here/check.py" "$(sed -n 's/^listening on //p' "$scratch/out")" "$1" "$2"
    grep -q ' error lost key="forgotten" reason="expired"' "$scratch/log" || {
        echo "FAILED: the loss is not in the log" >&2
        cat "$scratch/log" >&2
        exit 1
    }
    kill "$server"
    wait "$server"
    server=
}

check 3 5
check 150 2
