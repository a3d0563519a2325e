#!/usr/bin/env bash
# Runs FerretDB and a PostgreSQL server with DocumentDB, both for this FerretDB alone. When FerretDB ends or is killed,
# PostgreSQL ends, too. A later run with the same folder has the same data.
#
#   scripts/ferretdb.sh --port PORT --storage-path FOLDER [OPTION]...
#   scripts/ferretdb.sh disconnect FOLDER
#
#   --auth                 demands a user and a password
#   --tls-cert-file FILE   accepts TLS connections only; likewise --tls-key-file FILE, --tls-ca-file FILE
#   --sync-on-commit, --standalone   without effect
#   disconnect             closes FerretDB's connections to the PostgreSQL server of this folder
#
# The options are those that the tests use for every MongoDB server. scripts/setup.sh ferretdb installs the programs.
# Needs root, because PostgreSQL runs in a Debian of its own.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

fail() {
    printf 'ferretdb: error: %s\n' "$*" >&2
    exit 1
}

# PostgreSQL serves each connection by a process with the name 'postgres: USER DATABASE ADDRESS STATE'.
# pg_terminate_backend sends it SIGTERM, too.
if [ "${1:-}" = disconnect ]; then
    server=$(head -n 1 "${2:?disconnect needs a folder}/postgresql/postmaster.pid")
    ps --ppid "$server" -o pid=,args= | awk '$2 == "postgres:" && $3 == "postgres" { print $1 }' |
        xargs --no-run-if-empty kill 2>/dev/null || true
    exit 0
fi

port='' folder='' options=(--no-auth) tls=()
while [ $# -gt 0 ]; do
    case $1 in
    --auth) options=() ;;
    --sync-on-commit | --standalone) ;;
    --port | --storage-path | --tls-cert-file | --tls-key-file | --tls-ca-file)
        [ $# -gt 1 ] || fail "$1 needs a value"
        case $1 in
        --port) port=$2 ;;
        --storage-path) folder=$2 ;;
        *) tls+=("--listen-${1#--}" "$2") ;;
        esac
        shift
        ;;
    *) fail "unknown option '$1'; see scripts/ferretdb.sh --help" ;;
    esac
    shift
done
[ -n "$port" ] && [ -n "$folder" ] || fail "--port and --storage-path are required"
[ -x "$colock_ferretdb/ferretdb" ] || fail "FerretDB is not installed; scripts/setup.sh ferretdb installs it"
[ "$(id -u)" -eq 0 ] || fail "only root can start PostgreSQL in a Debian of its own"

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
data=$folder/postgresql
[ -d "$data" ] || cp -a "$colock_ferretdb/root/srv/data" "$data"

# The PostgreSQL server of a FerretDB that was killed may still be ending.
for _ in {1..100}; do
    [ -e "$data/postmaster.pid" ] || break
    sleep 0.1
done
# FerretDB replaces this process. SIGQUIT ends PostgreSQL at once, as a crash would.
# shellcheck disable=SC2016 # expanded in the inner shell
unshare --mount bash -euc '
    mount --bind "$1" "$2/mnt"
    exec chroot --userspec=postgres "$2" setpriv --pdeathsig QUIT /usr/lib/postgresql/18/bin/postgres -D /mnt
' postgres "$data" "$colock_ferretdb/root" &
postgres=$!
until grep -q '^ready' "$data/postmaster.pid" 2>/dev/null; do
    kill -0 "$postgres" 2>/dev/null || fail "PostgreSQL did not start"
    sleep 0.05
done

address=127.0.0.1:$port
if [ ${#tls[@]} -gt 0 ]; then
    options+=(--listen-addr= --listen-tls "$address" "${tls[@]}")
else
    options+=(--listen-addr "$address")
fi
exec "$colock_ferretdb/ferretdb" "${options[@]}" --debug-addr - --telemetry disable --log-level warn \
    --state-dir "$folder" --postgresql-url "postgres://postgres@/postgres?host=$data"
