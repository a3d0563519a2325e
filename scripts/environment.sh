# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts, and by developers who call cmake directly. Sets the compiler and the paths of the
# dependencies. Changes only the environment, and keeps variables that are set already.

colock_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
colock_cache=${XDG_CACHE_HOME:-${HOME:?is not set}/.cache}/colock
colock_boost=$colock_cache/boost-1.92/usr
colock_redis_server=$colock_cache/redis/redis-server
colock_toxiproxy=$colock_cache/toxiproxy-2.5.0/server
colock_peers=$colock_cache/peers
colock_curator_classes=$(printf "/usr/share/java/%s.jar:" curator-recipes curator-framework curator-client zookeeper guava)
colock_curator_classes+=/usr/share/java/slf4j-simple.jar
colock_mongodb=$colock_cache/secantus-0.7.0b3
colock_mongodb_native=$colock_cache/secantus-native-0.5.3-beta.196
colock_ferretdb=$colock_cache/ferretdb-2.7.0
colock_conan=$colock_cache/conan-2.34.0
colock_docs=$colock_cache/docs
colock_prometheus=$colock_cache/prometheus-client-0.26.0
colock_zookeeper_classes=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar

# Prints the base addresses of the archives from which apt takes Debian's main packages, one per line.
colock_debian_archives() {
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v release="$(. /etc/os-release && echo "$VERSION_CODENAME")" \
            '$2 == release && $3 == "main" && !seen[$1]++ { print $1 }'
}

# A Boost that the user selects with Boost_DIR or CMAKE_PREFIX_PATH has priority. COLOCK_BOOST=system selects the system's
# own.
if [ -d "$colock_boost" ] && [ "${COLOCK_BOOST:-}" != system ]; then
    case ":${CMAKE_PREFIX_PATH:-}:" in
    *":$colock_boost:"*) ;;
    *) export CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:+$CMAKE_PREFIX_PATH:}$colock_boost ;;
    esac
fi

# Uses the system's g++ if it is recent enough (GCC 12 compiles coroutines wrongly), otherwise Clang 19.
if [ -z "${CXX:-}" ]; then
    colock_gcc=$(g++ -dumpversion 2>/dev/null || echo 0)
    if [ "${colock_gcc%%.*}" -ge 13 ]; then
        export CXX=g++
    elif command -v clang++-19 >/dev/null; then
        export CXX=clang++-19
    fi
    unset colock_gcc
fi
