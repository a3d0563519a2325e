#!/usr/bin/env bash
# Runs a command in a minimal Debian, with this checkout at /colock.
#
#   scripts/debian_root.sh 12|13 COMMAND...        e.g. scripts/debian_root.sh 13 scripts/demo.sh
#
# Every run starts from the same minimal system. Packages that the command installs are gone afterwards. The minimal
# system, the downloaded packages and the compiler cache are kept in ${XDG_CACHE_HOME:-~/.cache}/colock, and builds in
# build/debian-13 or build/debian-12. The variables COLOCK_* and CI are passed to the command. Processes that the
# command leaves behind are killed.
#
# Needs root, debootstrap, and an apt with a Debian archive.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

say() { printf 'debian_root: %s\n' "$*" >&2; }
fail() {
    printf 'debian_root: error: %s\n' "$*" >&2
    exit 1
}
case ${1:-} in
12) codename=bookworm ;;
13) codename=trixie ;;
*) fail "unknown Debian '${1:-}'; known: 12, 13" ;;
esac
name=debian-$1
shift
[ $# -gt 0 ] || fail "no command; see scripts/debian_root.sh --help"
[ "$(id -u)" -eq 0 ] || fail "only root can change the root folder"

minimal=$colock_cache/$name
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One process creates the minimal system. Other processes wait for it.
mkdir -p "$colock_cache"
exec {lock}>"$minimal.lock"
flock "$lock"
if [ ! -d "$minimal" ]; then
    "$colock_root/scripts/setup.sh" debootstrap
    say "making a minimal Debian ($codename) in $colock_cache"
    for archive in $(colock_debian_archives); do
        rm -rf "$minimal.new"
        if debootstrap --variant=minbase --include=ca-certificates "$codename" "$minimal.new" "$archive" >"$scratch/log" 2>&1; then
            mv "$minimal.new" "$minimal"
            break
        fi
        tail -n 5 "$scratch/log" >&2
    done
    [ -d "$minimal" ] || fail "debootstrap could not create a minimal $codename"
fi
cp -a "$minimal" "$scratch/root"
flock -u "$lock"

cp /etc/resolv.conf /etc/hosts "$scratch/root/etc/"
# If a proxy decrypts the downloads, the certificate authorities of this machine are needed.
cp -a /usr/local/share/ca-certificates "$scratch/root/usr/local/share/"
chroot "$scratch/root" update-ca-certificates >"$scratch/log" 2>&1 || fail "no certificates: $(tail -n 1 "$scratch/log")"
kept=$minimal-kept
mkdir -p "$kept"/{packages/partial,ccache} "$colock_root/build/$name" "$scratch/root/colock" "$scratch/root/var/ccache"

variables=()
while IFS= read -r variable; do
    variables+=("$variable=${!variable}")
done < <(compgen -e | grep -E '^(COLOCK_.*|CI|TERM)$')

# The mounts and processes are in namespaces that end with the command or with this script. unshare ignores signals
# while it waits.
# shellcheck disable=SC2016 # expanded in the inner shell
unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 checkout=$2 build=$3 kept=$4
    shift 4
    mount --bind "$checkout" "$root/colock"
    mount --bind "$build" "$root/colock/build"
    mount --bind "$kept/packages" "$root/var/cache/apt/archives"
    mount --bind "$kept/ccache" "$root/var/ccache"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    mount -t proc proc "$root/proc"
    status=0
    chroot "$root" env -i "$@" || status=$?
    exit "$status"
' debian_root "$scratch/root" "$colock_root" "$colock_root/build/$name" "$kept" \
    HOME=/root LANG=C.UTF-8 CCACHE_DIR=/var/ccache PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    "${variables[@]}" bash -c 'cd /colock && exec "$@"' debian_root "$@" <&0 &
namespaces=$!
trap 'kill -KILL "$namespaces"; exit 143' INT TERM HUP
wait "$namespaces"
