#!/usr/bin/env bash
# Searches for violations of what colock promises on a real backend: processes call all functions of a locker at random,
# while servers, links and processes fail, and a checker reads the histories of all calls.
#
#   scripts/prove.sh BACKEND [--minutes N] [--seed S] [--sabotage NAME] [OPTION]...
#
# BACKEND is redis, redis-cluster (three masters, each with a replica), sentinel (a master, a replica and a Sentinel),
# quorum (five masters), zookeeper (an ensemble of three), mongodb, mongodb_native or ferretdb. The servers are started
# for the run, on free ports of 127.0.0.1.
#
#   --minutes N        duration (default: 1; with a sabotage 0.3)
#   --seed S           seed of all random choices (default: random; it is printed)
#   --sabotage NAME    a fault of the lock service, which has to be found; docs/testing.md lists their names
#   --preset PRESET    the build (default: release)
#   --processes N, --workers N, --keys N    number of processes, of coroutines of each process, and of keys
#   --keep FOLDER      keeps the histories in this folder
#
# Exits with 1 after a violation, which is printed with a timeline of its key. docs/testing.md says what is checked.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

backend=${1:?usage: scripts/prove.sh BACKEND [OPTION]...; see --help}
shift
preset=release
minutes=
seed=$((RANDOM * 32768 + RANDOM))
folder=
options=()
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || {
        echo "prove: error: $1 needs a value; see --help" >&2
        exit 2
    }
    case $1 in
    --minutes) minutes=$2 ;;
    --seed) seed=$2 ;;
    --preset) preset=$2 ;;
    --keep) folder=$2 ;;
    *) options+=("$1" "$2") ;;
    esac
    shift 2
done

# The program starts its own servers, because it stops and restarts them. scripts/servers.sh sets the variables that it
# needs for this.
case $backend in
redis | redis-cluster | sentinel | quorum) servers=() ;;
zookeeper | mongodb | mongodb_native | ferretdb) servers=("$backend") ;;
*)
    echo "prove: error: unknown backend '$backend'; see --help" >&2
    exit 2
    ;;
esac
scripts/build.sh "$preset" colock_test_prove

[ -n "$folder" ] || {
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
}
mkdir -p "$folder"
[ -n "$minutes" ] || case " ${options[*]} " in
*' --sabotage '*) minutes=0.3 ;;
*) minutes=1 ;;
esac
echo "prove: scripts/prove.sh $backend --minutes $minutes --seed $seed ${options[*]}"
seconds=$(awk -v minutes="$minutes" 'BEGIN { print int(minutes * 60) }')
failed=0
scripts/servers.sh run "${servers[@]}" -- "build/$preset/test/prove/colock_test_prove" --backend "$backend" \
    --seconds "$seconds" --seed "$seed" --folder "$folder" "${options[@]}" || failed=$?
[ "$failed" -le 1 ] || exit "$failed"
test/prove/check.py "$folder" || failed=1
exit "$failed"
